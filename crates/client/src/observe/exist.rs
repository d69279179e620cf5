//! The groups and projects that exist at and below paths, read from complete lists.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Observer, find::id_of};
use crate::{
    address::{Glob, groups_above, is_literal},
    api::Result,
    catalogue,
    field::{NamedObject, Scope},
    kind::Names,
    operation::{self, KeyFilter, Read, Request},
    value::{Json, Object},
};

/// The groups and projects that exist and that the globs match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExistingContainers {
    /// By path in lower case.
    pub containers: BTreeMap<String, (Scope, Arc<str>)>,
    /// The paths of those that are marked for deletion; they disappear by themselves.
    pub deleting: BTreeSet<String>,
    /// How many matching projects are in personal namespaces whose user no glob names.
    pub personal_count: usize,
    /// The globs that matched nothing, as written.
    pub unmatched: Vec<String>,
}

/// Collects groups and projects from lists.
struct Scan<'g> {
    observer: &'g Observer,
    globs: &'g [Glob],
    existing: ExistingContainers,
    /// The ids of the groups read so far.
    group_ids: BTreeSet<u64>,
    is_matched: Vec<bool>,
}

impl Scan<'_> {
    /// Adds a group or project if a glob matches it or a group above it.
    fn add_if_matched(&mut self, scope: Scope, raw: &Object) {
        let lookup = catalogue::container_lookup(scope);
        let Some(path) = raw.get(lookup.path).and_then(Json::as_str) else { return };
        let lower = path.to_lowercase();
        let prefix_lengths = lower.match_indices('/').map(|(at, _)| at).chain([lower.len()]);
        let ancestor_paths: Vec<_> = prefix_lengths.map(|end| &lower[..end]).collect();
        let mut is_wanted = false;
        for (glob, is_matched) in self.globs.iter().zip(&mut self.is_matched) {
            if ancestor_paths.iter().any(|path| glob.matches(path)) {
                (*is_matched, is_wanted) = (true, true);
            }
        }
        if !is_wanted {
            return;
        }
        if (lookup.facts)(raw).deletion_mark.is_some() {
            self.existing.deleting.insert(path.to_owned());
        } else {
            self.existing.containers.insert(lower, (scope, path.into()));
        }
    }

    /// Reads the group or user at `root` and everything below; an empty `root` means everywhere.
    async fn scan_root(&mut self, root: &str) -> Result<()> {
        let observer = self.observer;
        if root.is_empty() {
            for group in observer.list_top_level(&identity_keys(Scope::Group)).await? {
                let path = catalogue::container_lookup(Scope::Group).path_in(&group).to_lowercase();
                if self.globs.iter().any(|glob| may_match_in(glob, &path)) {
                    self.add_group(&group).await?;
                }
            }
            self.existing.personal_count = self.count_personal().await?;
            return Ok(());
        }
        if let Some(group) =
            observer.find_at(Scope::Group, root, &identity_keys(Scope::Group)).await?
        {
            return self.add_group(&group).await;
        }
        if root.contains('/') {
            let keys = identity_keys(Scope::Project);
            if let Some(project) = observer.find_at(Scope::Project, root, &keys).await? {
                self.add_if_matched(Scope::Project, &project);
            }
            return Ok(());
        }
        // The owner of a personal namespace is only listed by name.
        if observer.find_namespace(root).await?.is_some() {
            let list = operation::USER_PROJECTS.request().arg("user_id", root);
            self.add_matching_rows(Scope::Project, list).await?;
        }
        Ok(())
    }

    /// How many projects in personal namespaces the globs match, of all that are listed for the caller.
    async fn count_personal(&self) -> Result<usize> {
        let lookup = catalogue::container_lookup(Scope::Project);
        let list = operation::PROJECT_LIST.request();
        // Others count only projects of which they are members.
        let sees_all = self.observer.caller.is_administrator;
        let list = if sees_all { list } else { list.query("membership", true) };
        let wanted = KeyFilter::keys(["namespace", lookup.path]);
        let projects = self.observer.list_all(Scope::Project, list, &wanted).await?;
        let matching = projects.iter().filter(|project| {
            let path = lookup.path_in(project);
            project.get("namespace").is_some_and(|namespace| namespace["kind"] == "user")
                && self.globs.iter().any(|glob| glob.matches(&path.to_lowercase()))
        });
        Ok(matching.count())
    }

    async fn add_group(&mut self, group: &Object) -> Result<()> {
        let id = id_of(group).unwrap_or_default();
        if !self.group_ids.insert(id) {
            return Ok(());
        }
        self.add_if_matched(Scope::Group, group);
        for scope in [Scope::Group, Scope::Project] {
            self.add_matching_rows(scope, list_below(scope).arg("id", id)).await?;
        }
        Ok(())
    }

    /// Adds the groups or projects in `list` that a glob matches.
    async fn add_matching_rows(&mut self, scope: Scope, list: Request<Read>) -> Result<()> {
        let listed = self.observer.list_all(scope, list, &identity_keys(scope)).await?;
        listed.iter().for_each(|raw| self.add_if_matched(scope, raw));
        Ok(())
    }
}

impl Observer {
    /// The groups and projects that `globs` match, and everything in them.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if a list could not be read to its end: part of a list is
    /// of no use.
    pub async fn list_existing(&self, globs: &[Glob]) -> Result<ExistingContainers> {
        let is_matched = vec![false; globs.len()];
        let (existing, group_ids) = (ExistingContainers::default(), BTreeSet::new());
        let mut scan = Scan { observer: self, globs, existing, group_ids, is_matched };
        for root in glob_roots(globs) {
            scan.scan_root(&root).await?;
        }
        let unmatched = globs.iter().zip(&scan.is_matched).filter(|(_, is_matched)| !**is_matched);
        scan.existing.unmatched = unmatched.map(|(glob, _)| glob.pattern().to_owned()).collect();
        Ok(scan.existing)
    }

    /// The top-level groups; entries hold only the `wanted` fields.
    pub(super) async fn list_top_level(&self, wanted: &KeyFilter) -> Result<Vec<Object>> {
        let list = operation::GROUP_LIST.request().query("top_level_only", true);
        // Only an administrator means groups in which the caller is not a member.
        let list = list.query("all_available", self.caller.is_administrator);
        self.list_all(Scope::Group, list, wanted).await
    }

    /// A complete list of groups or projects; entries hold only the `wanted` fields.
    pub(super) async fn list_all(
        &self,
        scope: Scope,
        list: Request<Read>,
        wanted: &KeyFilter,
    ) -> Result<Vec<Object>> {
        let (container_kind, _) = catalogue::container(scope);
        let list = list.query("order_by", "id").query("sort", "asc").keeping(wanted.clone());
        Ok(self.client.list_rows(list, container_kind.scoped_kind.rows).await?.into_vec())
    }

    /// The group or project at `path`, or at the path that it has now, with only the `wanted`
    /// fields.
    pub(super) async fn find_at(
        &self,
        scope: Scope,
        path: &str,
        wanted: &KeyFilter,
    ) -> Result<Option<Object>> {
        match self.get_container_object(scope, path, wanted).await {
            Err(error) if error.is_missing(scope) => Ok(None),
            read => read.map(Some),
        }
    }

    /// Reads the group or project at `path_or_id`, with these `keys`.
    pub(super) async fn get_container_object(
        &self,
        scope: Scope,
        path_or_id: &str,
        keys: &KeyFilter,
    ) -> Result<Object> {
        let lookup = catalogue::container_lookup(scope);
        let request = (lookup.get)(path_or_id).keeping(keys.clone());
        let answer = self.client.get_object(request, &["id", lookup.path]).await?;
        Ok(answer.object().cloned().unwrap_or_default())
    }

    /// The names of the users and groups with `ids`; `None` for one that the caller may not see.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if a name could not be read.
    pub async fn read_names(
        &self,
        ids: impl IntoIterator<Item = (NamedObject, u64)>,
    ) -> Result<Names> {
        let mut names = Names::default();
        for (named, id) in ids {
            let read = async || {
                let scope = match named {
                    NamedObject::User => None,
                    NamedObject::Group => Some(Scope::Group),
                    NamedObject::Project => Some(Scope::Project),
                    // Entries contain ids of runners with ambiguous descriptions, and names of
                    // roles.
                    NamedObject::Runner | NamedObject::Role => return Ok(None),
                };
                let (request, field) = match scope.map(catalogue::container_lookup) {
                    Some(lookup) => ((lookup.get)(&id.to_string()), lookup.path),
                    None => (operation::USER_GET.request().arg("user_id", id), "username"),
                };
                let request = request.keeping(KeyFilter::keys([field]));
                match self.client.get_object(request, &["id", field]).await {
                    Ok(answer) => Ok(answer.body[field].as_str().map(str::to_owned)),
                    Err(error) if error.is_not_found() || error.is_forbidden() => Ok(None),
                    Err(error) => Err(error),
                }
            };
            let name = self.memory.names.read(&format!("{} {id}", named.noun()), read).await?;
            if let Some(name) = name {
                names.insert_name(named, id, &name);
            }
        }
        Ok(names)
    }
}

/// The list of all groups or projects in a group, at any depth.
pub(crate) fn list_below(scope: Scope) -> Request<Read> {
    match scope {
        Scope::Group => operation::GROUP_DESCENDANTS.request().query("all_available", true),
        Scope::Project => operation::GROUP_PROJECTS
            .request()
            .query("include_subgroups", true)
            .query("with_shared", false),
    }
}

/// The fields that identify a group or project.
pub(super) fn identity_keys(scope: Scope) -> KeyFilter {
    let (container_kind, _) = catalogue::container(scope);
    KeyFilter::keys(container_kind.looked_at.iter().copied())
}

/// The paths below which `globs` match, none inside another; an empty path means everywhere.
pub(super) fn glob_roots<'g>(globs: impl IntoIterator<Item = &'g Glob>) -> BTreeSet<String> {
    outermost_paths(&globs.into_iter().map(|glob| literal_prefix(glob.pattern())).collect())
}

/// The paths that are not inside another one; an empty path means everywhere.
pub(crate) fn outermost_paths(paths: &BTreeSet<String>) -> BTreeSet<String> {
    let outermost = paths.iter().filter(|root| {
        (root.is_empty() || !paths.contains(""))
            && !groups_above(root).any(|above| paths.contains(above))
    });
    outermost.cloned().collect()
}

/// True if `glob` may match something in the top-level group at `path`, in lower case.
pub(super) fn may_match_in(glob: &Glob, path: &str) -> bool {
    let first = glob.pattern().split('/').next().unwrap_or_default();
    // An incomplete glob continues after the slash: `{acme,other/web}/*`.
    first.contains("**") || Glob::for_paths(first).map_or(true, |first| first.matches(path))
}

/// The part of a glob before the first segment with a wildcard.
fn literal_prefix(glob: &str) -> String {
    let segments = glob.split('/').take_while(|segment| is_literal(segment));
    segments.collect::<Vec<_>>().join("/").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_may_match_in_a_group() {
        for (glob, group, expected) in [
            ("acme/**", "acme", true),
            ("acme/**", "other", false),
            ("ac*/web", "acme", true),
            ("acme{/a,/b}", "acme", true),
            ("{acme/web,other}/*", "acme", true),
            ("**", "acme", true),
        ] {
            assert_eq!(may_match_in(&Glob::for_paths(glob).unwrap(), group), expected, "{glob}");
        }
    }

    #[test]
    fn the_literal_prefix_of_a_glob_is_found() {
        for (glob, expected) in [
            ("acme", "acme"),
            ("Acme/web/**", "acme/web"),
            ("acme/w*", "acme"),
            ("**", ""),
            ("*/web", ""),
            ("{a,b}/c", ""),
        ] {
            assert_eq!(literal_prefix(glob), expected, "{glob}");
        }
    }
}
