//! Reads the groups and projects that exist at and below paths, from complete lists.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Observer, cache::id_key, find::object_id, split_fatal};
use crate::{
    address::{Glob, groups_above, is_literal},
    api::Result,
    catalogue,
    field::{NamedObject, Scope},
    kind::NameIndex,
    live::ListedContainer,
    operation::{self, KeyFilter, Read, Request},
    value::{Json, Object},
};

/// The existing groups and projects that globs match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExistingContainers {
    /// The scope and the path as written of each group and project, by the path in lower case.
    pub containers: BTreeMap<String, (Scope, Arc<str>)>,
    /// The paths of matching containers that are marked for deletion.
    pub pending_deletion: BTreeSet<String>,
    /// The number of matching projects in personal namespaces, if a glob can match everywhere.
    /// Otherwise 0: then each personal namespace that a glob names is read, and its projects are in
    /// `containers`.
    pub personal_project_count: usize,
    /// The globs that matched nothing, as written.
    pub unmatched_globs: Vec<String>,
}

/// Collects groups and projects from lists.
struct ExistenceScan<'g> {
    observer: &'g Observer,
    globs: &'g [Glob],
    existing: ExistingContainers,
    /// The ids of the groups read so far.
    group_ids: BTreeSet<u64>,
    glob_matches: Vec<bool>,
}

impl ExistenceScan<'_> {
    /// Adds a group or project if a glob matches it or a group above it.
    fn add_if_matched(&mut self, scope: Scope, raw: &Object) {
        let lookup = catalogue::container_lookup(scope);
        let Some(path) = raw.get(lookup.path_field).and_then(Json::as_str) else { return };
        let lower_path = path.to_lowercase();
        let prefix_lengths =
            lower_path.match_indices('/').map(|(index, _)| index).chain([lower_path.len()]);
        let ancestor_paths: Vec<_> = prefix_lengths.map(|end| &lower_path[..end]).collect();
        let mut is_any_matched = false;
        for (glob, is_matched) in self.globs.iter().zip(&mut self.glob_matches) {
            if ancestor_paths.iter().any(|path| glob.matches(path)) {
                (*is_matched, is_any_matched) = (true, true);
            }
        }
        if !is_any_matched {
            return;
        }
        if (lookup.read_facts)(raw).deletion_mark.is_some() {
            self.existing.pending_deletion.insert(path.to_owned());
        } else {
            self.existing.containers.insert(lower_path, (scope, path.into()));
        }
    }

    /// Reads the group, project or user at `root` with all containers below it. An empty `root`
    /// means all top-level groups.
    async fn scan_root(&mut self, root: &str) -> Result<()> {
        let observer = self.observer;
        if root.is_empty() {
            for group in observer.list_top_level(&identity_keys(Scope::Group)).await? {
                let path =
                    catalogue::container_lookup(Scope::Group).read_path(&group).to_lowercase();
                if self.globs.iter().any(|glob| may_match_in_group(glob, &path)) {
                    self.add_group(&group).await?;
                }
            }
            self.existing.personal_project_count = self.count_personal_projects().await?;
            return Ok(());
        }
        if let Some(group) =
            observer.find_container(Scope::Group, root, &identity_keys(Scope::Group)).await?
        {
            return self.add_group(&group).await;
        }
        if root.contains('/') {
            let keys = identity_keys(Scope::Project);
            if let Some(project) = observer.find_container(Scope::Project, root, &keys).await? {
                self.add_if_matched(Scope::Project, &project);
            }
            return Ok(());
        }
        // No list of groups contains a personal namespace, so read it by the user's name.
        if observer.find_declared_namespace(root).await?.is_some() {
            let request = operation::USER_PROJECTS.request().with_argument("user_id", root);
            self.add_matching_rows(Scope::Project, request).await?;
        }
        Ok(())
    }

    /// Counts the projects in personal namespaces that the globs match and the caller can list.
    async fn count_personal_projects(&self) -> Result<usize> {
        let lookup = catalogue::container_lookup(Scope::Project);
        let request = operation::PROJECT_LIST.request();
        // Callers who are not administrators count only projects of which they are members.
        let is_administrator = self.observer.caller.is_administrator;
        let list_request =
            if is_administrator { request } else { request.with_query("membership", true) };
        let key_filter = KeyFilter::keys(["namespace", lookup.path_field]);
        let projects =
            self.observer.list_containers(Scope::Project, list_request, &key_filter).await?;
        let matching_projects = projects.iter().filter(|project| {
            let path = lookup.read_path(project);
            project.get("namespace").is_some_and(|namespace| namespace["kind"] == "user")
                && self.globs.iter().any(|glob| glob.matches(&path.to_lowercase()))
        });
        Ok(matching_projects.count())
    }

    async fn add_group(&mut self, group: &Object) -> Result<()> {
        let id = object_id(group).unwrap_or_default();
        if !self.group_ids.insert(id) {
            return Ok(());
        }
        self.add_if_matched(Scope::Group, group);
        for scope in [Scope::Group, Scope::Project] {
            self.add_matching_rows(scope, descendants_request(scope).with_argument("id", id))
                .await?;
        }
        Ok(())
    }

    /// Adds the groups or projects that `request` lists and a glob matches.
    async fn add_matching_rows(&mut self, scope: Scope, request: Request<Read>) -> Result<()> {
        let rows = self.observer.list_containers(scope, request, &identity_keys(scope)).await?;
        rows.iter().for_each(|raw| self.add_if_matched(scope, raw));
        Ok(())
    }
}

impl Observer {
    /// The groups and projects that `globs` match, and everything in them.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if a list could not be read to its end.
    pub async fn list_existing(&self, globs: &[Glob]) -> Result<ExistingContainers> {
        let glob_matches = vec![false; globs.len()];
        let (existing, group_ids) = (ExistingContainers::default(), BTreeSet::new());
        let mut scan = ExistenceScan { observer: self, globs, existing, group_ids, glob_matches };
        for root in glob_roots(globs) {
            scan.scan_root(&root).await?;
        }
        let unmatched =
            globs.iter().zip(&scan.glob_matches).filter(|(_, is_matched)| !**is_matched);
        scan.existing.unmatched_globs =
            unmatched.map(|(glob, _)| glob.pattern().to_owned()).collect();
        Ok(scan.existing)
    }

    /// The top-level groups, with only the keys in `key_filter`.
    pub(super) async fn list_top_level(&self, key_filter: &KeyFilter) -> Result<Vec<Object>> {
        let list_request = operation::GROUP_LIST.request().with_query("top_level_only", true);
        // Only administrators list groups of which they are not members.
        let list_request = list_request.with_query("all_available", self.caller.is_administrator);
        self.list_containers(Scope::Group, list_request, key_filter).await
    }

    /// The complete list of groups or projects that the request returns, with only the keys in
    /// `key_filter`.
    pub(super) async fn list_containers(
        &self,
        scope: Scope,
        request: Request<Read>,
        key_filter: &KeyFilter,
    ) -> Result<Vec<Object>> {
        let (container_kind, _) = catalogue::container(scope);
        let list_request = request
            .with_query("order_by", "id")
            .with_query("sort", "asc")
            .with_key_filter(key_filter.clone());
        Ok(self
            .client
            .list_with_keys(list_request, container_kind.scoped_kind.entry_keys)
            .await?
            .into_vec())
    }

    /// The groups or projects below the group at `parent`. The service is asked only once for each
    /// `parent`. The list is empty if it cannot be read.
    pub(super) async fn list_below(
        &self,
        scope: Scope,
        parent: &str,
    ) -> Result<Arc<[ListedContainer]>> {
        let read_rows = async || {
            let list_request = descendants_request(scope).with_argument("id", parent);
            let rows = self.list_containers(scope, list_request, &identity_keys(scope)).await?;
            let lookup = catalogue::container_lookup(scope);
            let containers = rows.iter().map(|raw| ListedContainer {
                path: lookup.read_path(raw).into(),
                facts: (lookup.read_facts)(raw),
            });
            Ok(containers.collect())
        };
        let key = id_key(scope, &parent.to_lowercase());
        let containers = self.cache.containers_below.get_or_read(&key, read_rows).await;
        Ok(split_fatal(containers)?.unwrap_or_default())
    }

    /// Reads the group or project at `path`, with only the keys in `key_filter`; `None` if the
    /// container does not exist.
    pub(super) async fn find_container(
        &self,
        scope: Scope,
        path: &str,
        key_filter: &KeyFilter,
    ) -> Result<Option<Object>> {
        match self.get_container_object(scope, path, key_filter).await {
            Err(error) if error.is_container_not_found_in(scope) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Reads the group or project at `path_or_id`, with only the keys in `key_filter`.
    pub(super) async fn get_container_object(
        &self,
        scope: Scope,
        path_or_id: &str,
        key_filter: &KeyFilter,
    ) -> Result<Object> {
        let lookup = catalogue::container_lookup(scope);
        let request = (lookup.get_request)(path_or_id).with_key_filter(key_filter.clone());
        let response = self.client.get_object(request, &["id", lookup.path_field]).await?;
        Ok(response.object().cloned().unwrap_or_default())
    }

    /// Reads the names of the objects with `ids`. Objects that the caller cannot see get no name.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if a name could not be read.
    pub async fn read_names(
        &self,
        ids: impl IntoIterator<Item = (NamedObject, u64)>,
    ) -> Result<NameIndex> {
        let mut names = NameIndex::default();
        for (object_type, id) in ids {
            let read = async || {
                let lookup = object_type.scope().map(catalogue::container_lookup);
                let (request, field) = match (lookup, object_type) {
                    (Some(lookup), _) => ((lookup.get_request)(&id.to_string()), lookup.path_field),
                    (None, NamedObject::User) => {
                        (operation::USER_GET.request().with_argument("user_id", id), "username")
                    }
                    // Roles and runners need no look-up. Entries contain the name of a role, not
                    // its id. Entries contain the id of a runner only if its description is
                    // ambiguous.
                    _ => return Ok(None),
                };
                let request = request.with_key_filter(KeyFilter::keys([field]));
                match self.client.get_object(request, &["id", field]).await {
                    Ok(response) => Ok(response.body[field].as_str().map(str::to_owned)),
                    Err(error) if error.is_not_found() || error.is_forbidden() => Ok(None),
                    Err(error) => Err(error),
                }
            };
            let name =
                self.cache.names.get_or_read(&format!("{} {id}", object_type.noun()), read).await?;
            if let Some(name) = name {
                names.insert_reverse_lookup(object_type, id, &name);
            }
        }
        Ok(names)
    }
}

/// The request for the list of all groups or projects in a group, at any depth.
pub(crate) fn descendants_request(scope: Scope) -> Request<Read> {
    match scope {
        Scope::Group => operation::GROUP_DESCENDANTS.request().with_query("all_available", true),
        Scope::Project => operation::GROUP_PROJECTS
            .request()
            .with_query("include_subgroups", true)
            .with_query("with_shared", false),
    }
}

/// The fields that identify a group or project.
pub(super) fn identity_keys(scope: Scope) -> KeyFilter {
    let (container_kind, _) = catalogue::container(scope);
    KeyFilter::keys(container_kind.looked_at.iter().copied())
}

/// The paths below which `globs` can match. No path is inside another path. An empty path means
/// everywhere.
pub(super) fn glob_roots<'g>(globs: impl IntoIterator<Item = &'g Glob>) -> BTreeSet<String> {
    outermost_paths(&globs.into_iter().map(|glob| literal_prefix(glob.pattern())).collect())
}

/// The paths that are not inside another path; an empty path means everywhere.
pub(crate) fn outermost_paths(paths: &BTreeSet<String>) -> BTreeSet<String> {
    let outermost = paths.iter().filter(|root| {
        (root.is_empty() || !paths.contains(""))
            && !groups_above(root).any(|ancestor| paths.contains(ancestor))
    });
    outermost.cloned().collect()
}

/// True if `glob` may match a path in the top-level group at `path`, in lower case.
pub(super) fn may_match_in_group(glob: &Glob, path: &str) -> bool {
    let first_segment = glob.pattern().split('/').next().unwrap_or_default();
    // A first segment that is no valid glob counts as a match. For example, the first segment of
    // `{acme,other/web}/*` is `{acme,other`.
    first_segment.contains("**")
        || Glob::for_paths(first_segment).map_or(true, |segment_glob| segment_glob.matches(path))
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
            assert_eq!(
                may_match_in_group(&Glob::for_paths(glob).unwrap(), group),
                expected,
                "{glob}"
            );
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
