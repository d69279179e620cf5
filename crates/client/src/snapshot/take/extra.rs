//! Reads data that only plans of other manifests need: all groups and projects below managed
//! groups, the members of groups, the users, and sections that no manifest declares yet.

use std::collections::BTreeSet;

use super::super::{
    contents::{self, ObjectRow, RecordedAnswer, SnapshotContents},
    question::Query,
};
use super::{SnapshotRecorder, parse_user, reduce_failure};
use crate::{
    address::parent_group_path,
    api::Result,
    catalogue,
    desired::Desired,
    field::Scope,
    kind::{ReadSource, Section},
    observe::{descendants_request, outermost_paths},
    operation::{self, Op, Read, Request},
    page::{CompleteList, EntryKeys, Pager},
    value::{Json, Object},
};

/// The maximum number of pages of a list of users or of namespaces. Longer lists are skipped.
const MAX_PAGES: u64 = 100;

impl SnapshotRecorder {
    /// Reads data that plans of other manifests may need: all containers below managed groups, the
    /// members of groups, and the users. Call this function before planning, so that the plan needs
    /// fewer single reads.
    ///
    /// # Errors
    /// A fatal [`ApiError`](crate::api::ApiError), after which all further requests would fail too.
    pub async fn fetch_extra(&self, desired: &Desired) -> Result<()> {
        self.fetch_request(operation::CURRENT_USER.request()).await?;
        self.fetch_request(operation::VERSION_GET.request()).await?;
        let groups = managed_groups(desired);
        for root in outermost_paths(&groups) {
            self.fetch_below(&root).await?;
        }
        if self.contents().is_caller_administrator() {
            let request = operation::GROUP_LIST.request().with_query("top_level_only", true);
            self.fetch_request(request.with_query("all_available", true)).await?;
        }
        self.fetch_namespaces().await?;
        self.fetch_all_users().await?;
        let group_ids: BTreeSet<_> = {
            let contents = self.contents();
            let rosters = contents.rosters.iter();
            let group_rosters =
                rosters.filter(|((scope, root), _)| *scope == Scope::Group && !root.is_empty());
            let listed_ids = group_rosters.flat_map(|(_, ids)| ids.iter().flatten().copied());
            let managed_ids =
                groups.iter().filter_map(|group| contents.find_id(Scope::Group, group));
            listed_ids.chain(managed_ids).collect()
        };
        let list_op = operation::GROUP_MEMBER_LIST_ALL;
        let member_requests =
            group_ids.iter().map(|group| list_op.request().with_argument("id", group));
        self.fetch_all(member_requests.collect(), || {}).await?;
        let namespace_requests: Vec<_> = {
            let contents = self.contents();
            let group_rows =
                group_ids.iter().filter_map(|id| contents.objects.get(&(Scope::Group, *id)));
            group_rows
                .map(|group| operation::NAMESPACE_GET.request().with_argument("id", &group.path))
                .collect()
        };
        self.fetch_all(namespace_requests, || {}).await
    }

    /// Reads the group at `root` and all containers below it. For each scope, also reads one
    /// container with a single read, to check if list rows have all fields. If the rows of groups
    /// lack fields, reads each group with a single read.
    async fn fetch_below(&self, root: &str) -> Result<()> {
        self.fetch_request((catalogue::container_lookup(Scope::Group).get_request)(root)).await?;
        if self.contents().find_id(Scope::Group, root).is_none() {
            return Ok(());
        }
        for scope in Scope::ALL {
            self.fetch_request(descendants_request(scope).with_argument("id", root)).await?;
        }
        for scope in Scope::ALL {
            let make_get_request = catalogue::container_lookup(scope).get_request;
            let rows: Vec<_> = {
                let contents = self.contents();
                let scope_objects = contents.objects.range((scope, 0)..=(scope, u64::MAX));
                let listed_objects = scope_objects.filter(|(_, object)| !object.by_itself);
                listed_objects.map(|((_, id), object)| (*id, object.clone())).collect()
            };
            let Some((id, row)) = rows.first() else { continue };
            if let Some(query) = Query::parse(&make_get_request(&id.to_string()).path_and_query()) {
                self.fetch_object(scope, &query).await?;
            }
            let are_rows_complete = {
                let mut contents = self.contents();
                let full_object = contents
                    .objects
                    .get(&(scope, *id))
                    .filter(|stored_object| stored_object.by_itself);
                let has_all_fields = full_object.is_some_and(|stored_object| {
                    field_names(stored_object).is_subset(&field_names(row))
                });
                let are_rows_complete = contents.are_rows_complete.entry(scope).or_insert(true);
                *are_rows_complete &= has_all_fields;
                *are_rows_complete
            };
            if scope == Scope::Group && !are_rows_complete {
                let requests = rows.iter().skip(1).map(|(id, _)| make_get_request(&id.to_string()));
                self.fetch_all(requests.collect(), || {}).await?;
            }
        }
        Ok(())
    }

    /// Reads all namespaces, if there are not too many. A namespace that is not in the list may
    /// still exist.
    async fn fetch_namespaces(&self) -> Result<()> {
        let Some(namespaces) =
            self.list_if_short(operation::NAMESPACE_FIND, &["full_path"]).await?
        else {
            return Ok(());
        };
        for raw in namespaces.iter() {
            let path = raw.get("full_path").and_then(Json::as_str).unwrap_or_default();
            let query = Query::parse(
                &operation::NAMESPACE_GET.request().with_argument("id", path).path_and_query(),
            );
            // Skip a path of digits, because the service would read the path as an id.
            let query = query.filter(|_| contents::parse_id(path).is_none());
            let reduced_object = self.reducer().reduce_row(operation::NAMESPACE_GET, "", raw);
            if let (Some(query), Ok(reduced)) = (query, reduced_object) {
                self.contents()
                    .answers
                    .insert(query.key, RecordedAnswer::from_object(Some(reduced)));
            }
        }
        Ok(())
    }

    /// Reads all users, if there are not too many.
    async fn fetch_all_users(&self) -> Result<()> {
        let Some(users) = self.list_if_short(operation::USER_FIND, &["username"]).await? else {
            return Ok(());
        };
        let mut contents = self.contents();
        contents
            .users
            .extend(users.iter().filter_map(|row| parse_user(&Json::Object(row.clone()))));
        contents.has_all_users = true;
        Ok(())
    }

    /// Reads the list of `op` to its end. Returns `None` if the list is too long or cannot be read.
    async fn list_if_short(
        &self,
        op: Op<Read>,
        extra_keys: &'static [&'static str],
    ) -> Result<Option<CompleteList<Object>>> {
        let Ok(mut pager) = Pager::new(op.request(), EntryKeys::with_id(extra_keys)) else {
            return Ok(None);
        };
        loop {
            match self.client.read_page(&mut pager).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(pager.finish().ok()),
                Err(error) => return reduce_failure(error).map(|_| None),
            }
            // The service counts pages only up to 10,000 entries.
            if pager.total_pages().is_none_or(|pages| pages > MAX_PAGES) {
                return Ok(None);
            }
        }
    }

    /// The requests for those sections of declared groups and projects that the snapshot lacks, in
    /// case a branch declares them. If `only_nested` is false, returns the requests for sections
    /// whose entries have no parent entries. If `only_nested` is true, returns the requests that
    /// need the ids of entries in the snapshot: for the details of these entries, and for their
    /// children.
    pub fn unread_section_requests(
        &self,
        desired: &Desired,
        only_nested: bool,
    ) -> Vec<Request<Read>> {
        let contents = self.contents();
        let mut requests = Vec::new();
        for container in &desired.containers {
            let Some(id) = contents.find_id(container.scope, &container.path) else { continue };
            for section in catalogue::sections(container.scope) {
                let Some(request) = list_request(section, id) else { continue };
                let scoped_kind = section.scoped_kind;
                match (scoped_kind.parent, section.detail.and(scoped_kind.operations.get)) {
                    (None, _) if !only_nested => requests.push(request),
                    (None, Some(get)) => {
                        let get_request = get.request().with_argument("id", id);
                        let snapshot_entries =
                            entries_in_snapshot(&contents, section, id).into_iter();
                        let detail_requests = snapshot_entries.filter_map(|row| {
                            scoped_kind.entry_request(get_request.clone(), row.as_object()?)
                        });
                        requests.extend(detail_requests);
                    }
                    (Some(parent), _) if only_nested => {
                        let parent_section =
                            catalogue::find_section(container.scope, parent.section);
                        let parent_entries = parent_section
                            .map(|parent_kind| entries_in_snapshot(&contents, parent_kind, id));
                        let ids = parent_entries
                            .into_iter()
                            .flatten()
                            .filter_map(|row| row["id"].as_u64());
                        requests.extend(
                            ids.map(|id| request.clone().with_argument(parent.argument, id)),
                        );
                    }
                    _ => {}
                }
            }
        }
        requests.retain(|request| {
            let query = Query::parse(&request.path_and_query());
            query.is_some_and(|query| contents.look_up(&query).is_none())
        });
        requests
    }
}

/// The request for all entries of a section of the container with this `id`.
fn list_request(section: Section, id: u64) -> Option<Request<Read>> {
    let (ReadSource::List(op) | ReadSource::Optional(op)) = section.scoped_kind.read_source else {
        return None;
    };
    if section.scoped_kind.name_filter().is_some() {
        return None;
    }
    Some(section.scoped_kind.list_request(op.request().with_argument("id", id)))
}

/// The entries of a section of the container with this `id`, if they were read.
fn entries_in_snapshot(contents: &SnapshotContents, section: Section, id: u64) -> Vec<Json> {
    let list = list_request(section, id).and_then(|list| Query::parse(&list.path_and_query()));
    match list.and_then(|query| contents.look_up(&query)) {
        Some(Ok(Json::Array(rows))) => rows,
        _ => Vec::new(),
    }
}

/// The paths of declared groups, and of the parent groups of declared projects, in lower case.
fn managed_groups(desired: &Desired) -> BTreeSet<String> {
    let groups = desired.containers.iter().filter_map(|container| {
        container.scope.choose(Some(&*container.path), parent_group_path(&container.path))
    });
    groups.map(str::to_lowercase).collect()
}

fn field_names(row: &ObjectRow) -> BTreeSet<String> {
    row.object.json().as_object().into_iter().flat_map(Object::keys).cloned().collect()
}
