//! What exists: the groups and projects at and below paths, read from whole lists.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Observer;
use crate::{
    address::Glob,
    api::ApiError,
    field::{Named, Scope},
    kind::{Itself, Names},
    kinds,
    operation::{self, Read, Request, Wanted},
    value::{Json, Object},
};

/// What exists of what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Existing {
    /// The groups and projects, by their path in lower case.
    pub containers: BTreeMap<String, (Scope, Arc<str>)>,
    /// The paths of those that are marked for deletion, and go away by themselves.
    pub deleting: BTreeSet<String>,
    /// The globs, as they were written, that nothing matched.
    pub unmatched: Vec<String>,
}

/// What is below a path.
struct Below<'g> {
    globs: &'g [Glob],
    found: Existing,
    /// What is at the paths so far, selected or not.
    read: BTreeSet<String>,
    is_matched: Vec<bool>,
}

impl Below<'_> {
    /// Takes in what the service says of a group or project, if a glob matches it or what it is in.
    fn take(&mut self, scope: Scope, raw: &Object) {
        let (_, itself) = kinds::container(scope);
        let Some(path) = raw.get(itself.path).and_then(Json::as_str) else { return };
        let lower = path.to_lowercase();
        let ends = lower.match_indices('/').map(|(at, _)| at).chain([lower.len()]);
        let above: Vec<_> = ends.map(|end| &lower[..end]).collect();
        let mut is_wanted = false;
        for (glob, is_matched) in self.globs.iter().zip(&mut self.is_matched) {
            if above.iter().any(|path| glob.matches(path)) {
                (*is_matched, is_wanted) = (true, true);
            }
        }
        if !is_wanted {
            return;
        }
        if (itself.facts)(raw).deleting.is_some() {
            self.found.deleting.insert(path.to_owned());
        } else {
            self.found.containers.insert(lower, (scope, path.into()));
        }
    }
}

impl Observer {
    /// The groups and projects that `globs` match, with all that is in them.
    ///
    /// # Errors
    /// [`ApiError`] if a list could not be read to its end: half of what exists is of no use.
    pub async fn existing(&self, globs: &[Glob]) -> Result<Existing, ApiError> {
        let mut below = Below {
            globs,
            found: Existing::default(),
            read: BTreeSet::new(),
            is_matched: vec![false; globs.len()],
        };
        let roots: BTreeSet<String> = globs.iter().map(|glob| literal(glob.written())).collect();
        for root in &roots {
            let is_inside = |other: &&String| {
                other.is_empty()
                    || root.strip_prefix(*other).is_some_and(|rest| rest.starts_with('/'))
            };
            if !roots.iter().filter(|other| *other != root).any(|other| is_inside(&other)) {
                self.at(root, &mut below).await?;
            }
        }
        let unmatched = globs.iter().zip(&below.is_matched).filter(|(_, is_matched)| !**is_matched);
        below.found.unmatched = unmatched.map(|(glob, _)| glob.written().to_owned()).collect();
        Ok(below.found)
    }

    /// What is at `root` and below; for none, what is anywhere.
    async fn at(&self, root: &str, below: &mut Below<'_>) -> Result<(), ApiError> {
        if root.is_empty() {
            let list = operation::GROUP_LIST.request().query("top_level_only", true);
            // What everybody may see is not meant, unless by somebody who sees all.
            let list = list.query("all_available", self.caller.administrator);
            for group in self.listed(Scope::Group, list).await? {
                self.top_level(&group, below).await?;
            }
            return Ok(());
        }
        if let Some(group) = self.one_at(Scope::Group, root).await? {
            return self.group_and_below(&group, below).await;
        }
        if root.contains('/') {
            if let Some(project) = self.one_at(Scope::Project, root).await? {
                below.take(Scope::Project, &project);
            }
            return Ok(());
        }
        // The owner of a personal namespace is asked for by name only.
        if self.namespace(root).await?.is_some() {
            let list = operation::USER_PROJECTS.request().arg("user_id", root);
            for project in self.listed(Scope::Project, list).await? {
                below.take(Scope::Project, &project);
            }
        }
        Ok(())
    }

    /// A group that a list brought, and what is below it, if a glob may match something there.
    async fn top_level(&self, group: &Object, below: &mut Below<'_>) -> Result<(), ApiError> {
        let (_, itself) = kinds::container(Scope::Group);
        let path = group.get(itself.path).and_then(Json::as_str).unwrap_or_default().to_lowercase();
        let may_hold = |glob: &Glob| {
            let first = glob.written().split('/').next().unwrap_or_default();
            first.contains("**") || Glob::over_paths(first).is_ok_and(|first| first.matches(&path))
        };
        if below.globs.iter().any(may_hold) {
            self.group_and_below(group, below).await?;
        }
        Ok(())
    }

    async fn group_and_below(&self, group: &Object, below: &mut Below<'_>) -> Result<(), ApiError> {
        let id = group.get("id").and_then(Json::as_u64).unwrap_or_default();
        if !below.read.insert(id.to_string()) {
            return Ok(());
        }
        below.take(Scope::Group, group);
        let groups = operation::GROUP_DESCENDANTS.request().arg("id", id);
        for group in self.listed(Scope::Group, groups.query("all_available", true)).await? {
            below.take(Scope::Group, &group);
        }
        let projects = operation::GROUP_PROJECTS.request().arg("id", id);
        let projects = projects.query("include_subgroups", true).query("with_shared", false);
        for project in self.listed(Scope::Project, projects).await? {
            below.take(Scope::Project, &project);
        }
        Ok(())
    }

    /// A whole list of groups or projects, each with no more than what it is known by.
    async fn listed(&self, scope: Scope, list: Request<Read>) -> Result<Vec<Object>, ApiError> {
        let (own, itself) = kinds::container(scope);
        let list = list.query("order_by", "id").query("sort", "asc").keeping(known_by(itself));
        Ok(self.client.list_known(list, own.home.rows).await?.into_vec())
    }

    /// The group or project at `path`, under whichever path it is known now.
    async fn one_at(&self, scope: Scope, path: &str) -> Result<Option<Object>, ApiError> {
        let (_, itself) = kinds::container(scope);
        let request = (itself.get)(path).keeping(known_by(itself));
        match self.client.get_known(request, &["id", itself.path]).await {
            Ok(answer) => Ok(answer.object().cloned()),
            Err(error) if error.is_missing(scope) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What users and groups with `ids` are called; one that the service does not show has no name.
    ///
    /// # Errors
    /// [`ApiError`] if a name could not be read.
    pub async fn called(
        &self,
        ids: impl IntoIterator<Item = (Named, u64)>,
    ) -> Result<Names, ApiError> {
        let mut names = Names::default();
        for (named, id) in ids {
            let look_up = async || {
                let (request, field) = match named {
                    Named::User => (operation::USER_GET.request().arg("user_id", id), "username"),
                    Named::Group => {
                        let group = operation::GROUP_GET.request().arg("id", id);
                        (group.query("with_projects", false), "full_path")
                    }
                    Named::Project => {
                        (operation::PROJECT_GET.request().arg("id", id), "path_with_namespace")
                    }
                };
                match self.client.get_known(request.keeping(Wanted::keys([field])), &[field]).await
                {
                    Ok(answer) => Ok(answer.body[field].as_str().map(str::to_owned)),
                    Err(error) if error.is_not_found() || error.is_forbidden() => Ok(None),
                    Err(error) => Err(error),
                }
            };
            let name = self.called.of(&format!("{} {id}", named.noun()), look_up).await?;
            if let Some(name) = name {
                names.call(named, id, &name);
            }
        }
        Ok(names)
    }
}

/// What is looked at of the object of a group or project to know it.
fn known_by(itself: &Itself) -> Wanted {
    Wanted::keys(itself.looked_at.iter().copied())
}

/// The part of a glob before the first segment in which something may stand for something else.
fn literal(glob: &str) -> String {
    let segments =
        glob.split('/').take_while(|segment| !segment.contains(['*', '?', '[', '{', '\\']));
    segments.collect::<Vec<_>>().join("/").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_begins_with_what_is_literal() {
        for (glob, expected) in [
            ("acme", "acme"),
            ("Acme/web/**", "acme/web"),
            ("acme/w*", "acme"),
            ("**", ""),
            ("*/web", ""),
            ("{a,b}/c", ""),
        ] {
            assert_eq!(literal(glob), expected, "{glob}");
        }
    }
}
