//! Finds containers: projects in lists if that costs fewer calls than single reads, and all other
//! containers by single reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::mpsc;

use super::{Observer, is_fatal, keys, none_if_absent};
use crate::{
    address::parent_group_path,
    api::{ApiError, Result},
    catalogue,
    desired::{Container, DeclaredSection},
    field::Scope,
    kind::{Absence, ContainerFacts, FieldSelection, ReadSource, Target},
    live::{LiveEntries, Presence},
    lock,
    operation::{self, KeyFilter, Read, Request},
    page::Pager,
    planted::Bug,
    value::{Json, Object},
};

use LocateResult::{Absent, Present};

/// The field of a project object with the caller's permissions.
const PERMISSIONS_FIELD: &str = "permissions";
/// The status that the service returns for a page number beyond its limit.
const OFFSET_LIMIT_STATUS: u16 = 405;
/// The list of all projects is read if more than this number of projects are still missing.
const MIN_KEYSET_PROJECTS: usize = 10;

/// The result of locating a container, before its sections are read.
pub(super) enum LocateResult {
    Present(LiveObject),
    Absent(Presence),
}

/// The parts of a container's object that undrift uses. Other parts are dropped, so that thousands
/// of objects fit into memory.
pub(super) struct LiveObject {
    /// The full path of the container, as the service spells it.
    pub(super) path: String,
    pub(super) target: Target,
    pub(super) facts: ContainerFacts,
    /// The declared sections that are fields of the object, or lists in the object.
    pub(super) sections: BTreeMap<&'static str, LiveEntries>,
    /// Declared fields that a list row lacks, but that a single read may return.
    pub(super) missing_fields: Vec<String>,
    /// When the object was read, on the client's clock.
    pub(super) read_at: Duration,
}

/// Sends each container with its list row. A container without a row needs a single read. The
/// channel is bounded, so that lists are not read long before their rows are used.
pub(super) type RowSender<'c> = mpsc::Sender<(&'c Container, Option<LiveObject>)>;

/// Declared projects that are not found yet, by their live path in lower case.
type PendingProjects<'c> = BTreeMap<String, &'c Container>;

/// The end of a search in a list.
enum ListEnd {
    /// The list does not exist.
    NoList,
    /// The list ended or failed, or further pages would cost more requests than they save.
    Stopped,
    /// The service refuses further page numbers (reference 1, 8). Contains the id of the last project.
    Truncated(u64),
}

/// A search for projects in lists.
struct ProjectSearch<'o, 'c> {
    observer: &'o Observer,
    /// The fields that are kept from the rows.
    key_filter: KeyFilter,
    sender: &'o RowSender<'c>,
}

impl<'c> ProjectSearch<'_, 'c> {
    /// Searches the list of the top-level group (or user) `root_name` for the `pending` projects.
    /// If the service truncates that list, searches the list of all projects.
    async fn search_group(&self, root_name: &str, pending: &mut PendingProjects<'c>) -> Result<()> {
        let list_request = operation::GROUP_PROJECTS.request().with_argument("id", root_name);
        let list_request =
            list_request.with_query("include_subgroups", true).with_query("order_by", "id");
        let mut list_end =
            self.search_list(list_request.with_query("sort", "asc"), pending).await?;
        if matches!(list_end, ListEnd::NoList) {
            let list_request =
                operation::USER_PROJECTS.request().with_argument("user_id", root_name);
            let list_request = list_request.with_query("order_by", "id").with_query("sort", "asc");
            list_end = self.search_list(list_request, pending).await?;
        }
        if let ListEnd::Truncated(last_id) = list_end
            && pending.len() > MIN_KEYSET_PROJECTS
        {
            let later_projects = operation::PROJECT_LIST.request().with_query("id_after", last_id);
            self.search_list(later_projects, pending).await?;
        }
        Ok(())
    }

    /// Sends the `pending` projects that a list contains, and removes them from `pending`. Stops
    /// when further pages would cost more requests than they save.
    async fn search_list(
        &self,
        list_request: Request<Read>,
        pending: &mut PendingProjects<'c>,
    ) -> Result<ListEnd> {
        let mut pager = Pager::for_search(list_request.with_key_filter(self.key_filter.clone()));
        let (mut page_count, mut found_count, mut last_id) = (0, 0, None);
        let lookup = catalogue::container_lookup(Scope::Project);
        loop {
            let objects = match self.observer.client.read_page(&mut pager).await {
                Ok(Some(objects)) => objects,
                Ok(None) => return Ok(ListEnd::Stopped),
                Err(error) if is_fatal(&error) => return Err(error),
                Err(error) if page_count == 0 && error.is_not_found() => {
                    return Ok(ListEnd::NoList);
                }
                // The remaining projects are read one by one.
                Err(error) => {
                    let cutoff_id = last_id.filter(|_| error.status() == Some(OFFSET_LIMIT_STATUS));
                    return Ok(cutoff_id.map_or(ListEnd::Stopped, ListEnd::Truncated));
                }
            };
            page_count += 1;
            last_id = objects.last().and_then(object_id).or(last_id);
            for raw in objects.iter().filter(|raw| object_id(raw).is_some()) {
                let path = lookup.read_path(raw).to_lowercase();
                let Some(project) = pending.remove(&path) else { continue };
                found_count += 1;
                // A project that is marked for deletion is sent without a row, because it needs a
                // single read.
                let row = Some(self.observer.parse_object(project, raw));
                let row = row.filter(|row| row.facts.deletion_mark.is_none());
                // An error means that the receiver is closed: the run is over.
                let _ = self.sender.send((project, row)).await;
            }
            let remaining_pages = pager.total_pages().map_or(1, |total| {
                usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(page_count)
            });
            if remaining_pages > pending.len() || page_count > found_count + MIN_KEYSET_PROJECTS {
                return Ok(ListEnd::Stopped);
            }
        }
    }
}

impl Observer {
    /// Finds `containers` in lists, and sends the found containers to `sender`. Returns the
    /// containers that were not found.
    pub(super) async fn find_in_lists<'c>(
        &self,
        containers: &'c [Container],
        sender: &RowSender<'c>,
    ) -> Result<Vec<&'c Container>> {
        let containers = self.find_in_roster(containers, sender).await?;
        let mut groups: BTreeMap<String, PendingProjects<'c>> = BTreeMap::new();
        let (projects, single_reads): (Vec<&Container>, Vec<_>) =
            containers.into_iter().partition(|container| {
                container.scope == Scope::Project
                    && self.moves.find_moved_container(&container.path).is_none()
                    && self.moves.former_occupant(&container.path).is_none()
            });
        let key_filter = keys::object_keys(projects.iter().copied());
        let search = ProjectSearch { observer: self, key_filter, sender };
        for project in projects {
            let path = self.resolve_live_path(&project.path).await?.to_lowercase();
            let root_name = path.split('/').next().unwrap_or_default().to_owned();
            groups.entry(root_name).or_default().insert(path, project);
        }
        let searches = groups.into_iter().map(async |(root_name, mut pending)| {
            if pending.len() > 1 {
                search.search_group(&root_name, &mut pending).await?;
            }
            Ok::<_, ApiError>(pending)
        });
        let remaining_by_root: Vec<PendingProjects<'c>> =
            stream::iter(searches).buffered(4).try_collect().await?;
        let mut remaining_projects: PendingProjects<'c> =
            remaining_by_root.into_iter().flatten().collect();
        if remaining_projects.len() > MIN_KEYSET_PROJECTS {
            search.search_list(operation::PROJECT_LIST.request(), &mut remaining_projects).await?;
        }
        Ok(single_reads.into_iter().chain(remaining_projects.into_values()).collect())
    }

    /// Returns the `row` of the project. If the row lacks a declared field, reads the single
    /// project instead.
    pub(super) async fn complete_row(
        &self,
        project: &Container,
        row: LiveObject,
    ) -> Result<LocateResult> {
        // Do not hold the lock during a read, because the lock would serialise all readers.
        if row
            .missing_fields
            .iter()
            .all(|name| lock(&self.cache.never_returned_fields).contains(name))
        {
            return Ok(Present(row));
        }
        let location = self.read_by_path(project).await?;
        if let Present(object) = &location {
            lock(&self.cache.never_returned_fields).extend(object.missing_fields.iter().cloned());
        }
        Ok(location)
    }

    /// Parses the parts of a container's object that undrift uses.
    pub(super) fn parse_object(&self, container: &Container, raw: &Object) -> LiveObject {
        let lookup = catalogue::container_lookup(container.scope);
        let facts = container.read_facts(raw);
        let target =
            Target { id: facts.id, ..Target::new(container.scope, container.path.clone()) };
        let (path, read_at) = (lookup.read_path(raw).to_owned(), self.now());
        let (mut sections, mut missing_fields) = (BTreeMap::new(), Vec::new());
        for section in &container.sections {
            let entries = entries_in_object(section, raw);
            match section.kind.scoped_kind.read_source {
                ReadSource::Object => {
                    let table = section.kind.table();
                    let names = section.field_names().filter(|name| {
                        table.live_name(name).is_some_and(|live| !raw.contains_key(live))
                    });
                    let names: BTreeSet<_> = names.collect();
                    missing_fields.extend(names.into_iter().map(str::to_owned));
                }
                ReadSource::ListField(field) | ReadSource::ObjectField { field, .. }
                    if entries.is_none() =>
                {
                    missing_fields.push(field.to_owned());
                }
                _ => {}
            }
            sections.extend(entries.map(|shown_entries| (section.kind.section, shown_entries)));
        }
        // Some list rows lack the caller's permissions. Without these permissions, undrift cannot
        // know if a list in the container is complete.
        let needs_level = container.sections.iter().any(|declared_section| {
            matches!(declared_section.kind.scoped_kind.read_source, ReadSource::List(_))
                || declared_section.kind.scoped_kind.absent_as == Absence::NotFound
        }) || container.lifecycle.unlisted_projects.is_some();
        if needs_level && !self.caller.is_administrator && facts.caller_level.is_none() {
            missing_fields.push(PERMISSIONS_FIELD.to_owned());
        }
        LiveObject { path, target, facts, sections, missing_fields, read_at }
    }

    /// Reads a container by its `id` if the id is known, or else by its path.
    pub(super) async fn read_by_id_or_path(
        &self,
        container: &Container,
        id: Option<u64>,
    ) -> Result<LocateResult> {
        match id {
            Some(id) => self.read_by_id(container, id).await,
            None => self.read_by_path(container).await,
        }
    }

    pub(super) async fn read_by_path(&self, container: &Container) -> Result<LocateResult> {
        match self.locate_by_path(container).await? {
            // A 404 means that `state: absent` is fulfilled, so confirm the 404 with a second read.
            Absent(Presence::Missing(_)) if container.lifecycle.absent_origin().is_some() => {
                self.locate_by_path(container).await
            }
            location => Ok(location),
        }
    }

    async fn locate_by_path(&self, container: &Container) -> Result<LocateResult> {
        let location = if self.moves.is_path_affected(&container.path) {
            self.retry_during_move(container, async || self.search_paths(container).await).await?
        } else {
            self.read_at_path(container, &container.path).await?
        };
        match location {
            // The redirect leads to a container that another declaration names.
            Absent(Presence::Redirected { new_path: Some(new_path) })
                if self.moves.declares_container(&new_path)
                    && !paths_are_equal(&self.moves.declared_path(&new_path), &container.path) =>
            {
                self.explain_absence(container).await.map(Absent)
            }
            location => Ok(location),
        }
    }

    /// Reads the container that was found or created with `id`. Another container may have the path
    /// of this container by now.
    async fn read_by_id(&self, container: &Container, id: u64) -> Result<LocateResult> {
        let locate = async || self.locate_by_id(container, id).await;
        match self.retry_during_move(container, locate).await {
            Err(error) if error.is_container_not_found_in(container.scope) => {
                let noun = container.scope.noun();
                Ok(match self.read_by_path(container).await? {
                    Present(other) if other.target.id != Some(id) => {
                        let reason = format!("the {noun} is gone, and another one has its path");
                        Absent(Presence::Unreadable(reason.into()))
                    }
                    location => location,
                })
            }
            read => read,
        }
    }

    /// Calls `locate` once, and up to twice again while a group above may be moving. A move is a
    /// rename and then a transfer. Both may happen between two requests, and cached group paths may
    /// be even older.
    async fn retry_during_move(
        &self,
        container: &Container,
        locate: impl AsyncFn() -> Result<LocateResult>,
    ) -> Result<LocateResult> {
        let mut location = locate().await?;
        for is_first in [true, false] {
            let is_at_other_path = matches!(location, Absent(Presence::Redirected { .. }));
            let may_be_moving = is_at_other_path || (is_first && matches!(location, Absent(_)));
            if !may_be_moving || !self.is_below_moving_group(container) {
                break;
            }
            self.cache.live_paths.clear();
            location = locate().await?;
        }
        Ok(location)
    }

    /// Reads the object of the container at `path_or_id`.
    pub(super) async fn fetch_object(
        &self,
        container: &Container,
        path_or_id: &str,
    ) -> Result<Object> {
        self.get_container_object(container.scope, path_or_id, &keys::object_keys([container]))
            .await
    }

    /// Reads the object at `path_or_id`, and parses it as the object of `container`.
    pub(super) async fn read_at_path(
        &self,
        container: &Container,
        path_or_id: &str,
    ) -> Result<LocateResult> {
        let lookup = catalogue::container_lookup(container.scope);
        let raw = match self.fetch_object(container, path_or_id).await {
            Err(error) if error.is_moved() => {
                let Some(id) = error.moved_to() else {
                    return Ok(Absent(Presence::Redirected { new_path: None }));
                };
                self.fetch_object(container, &id.to_string()).await?
            }
            Err(error) if error.is_container_not_found_in(container.scope) => {
                return self.explain_absence_at(container, path_or_id).await.map(Absent);
            }
            raw => raw?,
        };
        // Some releases rename a container that is marked for deletion, and rename it back when it
        // is restored (reference "since 15.8", section 9).
        let is_marked = (lookup.read_facts)(&raw).deletion_mark.is_some();
        let is_renamed =
            !paths_are_equal(lookup.read_path(&raw), path_or_id) && !Bug::IgnoreRename.is_planted();
        if is_renamed && !is_marked {
            let new_path = Some(lookup.read_path(&raw).to_owned());
            return Ok(Absent(Presence::Redirected { new_path }));
        }
        self.parse_with_level(container, &raw).await.map(Present)
    }

    /// Parses a container's object. Reads the caller's access level if the object lacks this level
    /// and a list depends on the level.
    pub(super) async fn parse_with_level(
        &self,
        container: &Container,
        raw: &Object,
    ) -> Result<LiveObject> {
        let mut object = self.parse_object(container, raw);
        let lacks_level = object.missing_fields.iter().any(|name| name == PERMISSIONS_FIELD);
        if let Some(id) = object.facts.id.filter(|_| lacks_level) {
            object.facts.caller_level = self.read_caller_level(container.scope, id).await?;
        }
        Ok(object)
    }

    /// The caller's access level to the container with `id`; `None` if no response contains the
    /// level.
    ///
    /// # Errors
    /// [`ApiError`] if the level could not be read.
    pub async fn read_caller_level(&self, scope: Scope, id: u64) -> Result<Option<u8>> {
        let lookup = catalogue::container_lookup(scope);
        let Some(request) = lookup.level_request else { return Ok(None) };
        let response = none_if_absent(self.client.get(request(id, self.caller.id)).await)?;
        Ok(response.and_then(|response| object_level(response.object()?, "access_level")))
    }

    /// Explains why a container is not at its declared path.
    pub(super) async fn explain_absence(&self, container: &Container) -> Result<Presence> {
        let live_path = self.resolve_live_path(&container.path).await?;
        self.explain_absence_at(container, &live_path).await
    }

    /// Explains why a container is not at `path`. The container counts as missing only if the
    /// caller can see its namespace.
    async fn explain_absence_at(&self, container: &Container, path: &str) -> Result<Presence> {
        let target = Target::new(container.scope, container.path.clone());
        let Some(parent) = parent_group_path(path) else {
            return Ok(Presence::Missing(target));
        };
        let namespace = self.read_namespace_at(parent).await?;
        Ok(match namespace {
            Some(namespace) => Presence::Missing(Target { namespace: Some(namespace), ..target }),
            None => Presence::MissingNamespace(parent.to_owned()),
        })
    }
}

/// The entries of `section` in the object `raw` of its container; `None` if the object does not
/// contain these entries.
pub(crate) fn entries_in_object(section: &DeclaredSection, raw: &Object) -> Option<LiveEntries> {
    let names: BTreeSet<&str> = section.field_names().collect();
    let selection = FieldSelection::Only(&names);
    match section.kind.scoped_kind.read_source {
        ReadSource::Object => {
            Some(LiveEntries::Single(Some(section.kind.read(raw, selection).into())))
        }
        ReadSource::ListField(_) | ReadSource::ObjectField { .. } => {
            section.kind.read_nested(raw, selection).map(LiveEntries::Nested)
        }
        ReadSource::Container | ReadSource::List(_) | ReadSource::Optional(_) => None,
    }
}

/// The id of an object in a response.
pub(super) fn object_id(raw: &Object) -> Option<u64> {
    raw.get("id").and_then(Json::as_u64)
}

/// The access level in the field `name` of an object.
pub(super) fn object_level(raw: &Object, name: &str) -> Option<u8> {
    raw.get(name)?.as_u64()?.try_into().ok()
}

/// True if two paths are equal for the service, which ignores their case.
pub(crate) fn paths_are_equal(left: &str, right: &str) -> bool {
    left.to_lowercase() == right.to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures_util::future::BoxFuture;
    use http::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;
    use crate::{
        api::{
            ClientSettings, ReadClient, SendError, ServiceAddress, Transport, WireRequest,
            WireResponse,
        },
        desired::{Moves, Unlisted, testing},
    };

    /// The paths of a group before its rename, between its rename and its move, and after its move.
    const GROUP_PATHS: [&str; 3] = ["inner/renamed", "inner/again", "deep/again"];

    /// A service that moves the group by one step after each successful response to a path that
    /// starts with `prefix`.
    #[derive(Debug)]
    struct MovingGroup {
        prefix: &'static str,
        step_index: AtomicUsize,
    }

    impl Transport for MovingGroup {
        fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
            let current_path = GROUP_PATHS[self.step_index.load(Ordering::Relaxed).min(2)];
            let (shop, path) = (format!("{current_path}/shop"), request.target.replace("%2F", "/"));
            let path = path.split('?').next().unwrap_or_default();
            let (status, body) = match path.split_once("s/").unwrap_or((path, "")) {
                ("/user", _) => (200, json!({"id": 1, "username": "root", "is_admin": true})),
                ("/project", at) if at == shop || at == "7" => {
                    (200, json!({"id": 7, "path_with_namespace": shop}))
                }
                ("/project", _) => (301, json!({})),
                ("/group", at) if at == current_path => {
                    (200, json!({"id": 5, "full_path": current_path}))
                }
                _ => (404, json!({"message": "404 Group Not Found"})),
            };
            if status == 200 && path.starts_with(self.prefix) {
                self.step_index.fetch_add(1, Ordering::Relaxed);
            }
            let headers =
                [("content-type", "application/json"), ("location", "/api/v4/projects/7")];
            let headers = headers.map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            let (headers, body) = (headers.into_iter().collect(), Ok(body.to_string().into()));
            Box::pin(std::future::ready(Ok(WireResponse { status, headers, body })))
        }
    }

    #[tokio::test]
    async fn a_project_is_found_while_the_group_above_is_renamed_and_moved() {
        let [former_path, _, declared_path] = GROUP_PATHS;
        let container_at =
            |scope, path: &str| testing::container(scope, path, &json!({}), Unlisted::Report);
        let mut group = container_at(Scope::Group, declared_path);
        group.lifecycle.former_paths = vec![testing::former_path(former_path)];
        let project = container_at(Scope::Project, &format!("{declared_path}/shop"));
        for (id, prefix) in [(Some(7), "/projects/"), (None, "/groups/")] {
            let service = Arc::new(MovingGroup { prefix, step_index: AtomicUsize::new(0) });
            let address = ServiceAddress::parse("https://example.org", false).unwrap();
            let client =
                ReadClient::new(address, service, Arc::default(), ClientSettings::default());
            let moves = Arc::new(Moves::from_containers(&[group.clone(), project.clone()]));
            let observer = Observer::connect(client).await.unwrap().with_moves(moves);
            let live = observer.read_container(&project, id).await.unwrap();
            assert!(matches!(live.presence, Presence::Existing(..)), "{id:?}: {:?}", live.presence);
        }
    }
}
