//! Answers that only plans of other manifests need: all objects below managed groups, their members, the users,
//! and sections that nobody declares yet.

use std::collections::BTreeSet;

use super::super::{
    contents::{self, ObjectRow, Recorded, SnapshotContents},
    question::Query,
};
use super::{Recorder, keep_failure, parse_user};
use crate::{
    address::group_of,
    api::Result,
    catalogue,
    desired::Desired,
    field::Scope,
    kind::{ReadSource, Section},
    observe::{list_below, outermost_paths},
    operation::{self, Op, Read, Request},
    page::{Complete, Pager, Rows},
    value::{Json, Object},
};

/// The maximum number of pages of users, or of namespaces, that are read to know all of them.
const MAX_PAGES: u64 = 100;

impl Recorder {
    /// Reads what plans of other manifests may need: what exists below managed groups, their
    /// members, and the users. Call it before planning, so that the plan finds more in lists.
    ///
    /// # Errors
    /// [`ApiError`](crate::api::ApiError) if all further requests would fail too.
    pub async fn fetch_extra(&self, desired: &Desired) -> Result<()> {
        self.fetch_request(operation::CURRENT_USER.request()).await?;
        self.fetch_request(operation::VERSION_GET.request()).await?;
        let groups = managed_groups(desired);
        for root in outermost_paths(&groups) {
            self.fetch_below(&root).await?;
        }
        if self.contents().sees_all() {
            let list = operation::GROUP_LIST.request().query("top_level_only", true);
            self.fetch_request(list.query("all_available", true)).await?;
        }
        self.fetch_namespaces().await?;
        self.fetch_all_users().await?;
        let groups: BTreeSet<_> = {
            let contents = self.contents();
            let rosters = contents.rosters.iter();
            let group_rosters =
                rosters.filter(|((of, root), _)| *of == Scope::Group && !root.is_empty());
            let listed_ids = group_rosters.flat_map(|(_, ids)| ids.iter().flatten().copied());
            let managed = groups.iter().filter_map(|group| contents.find_id(Scope::Group, group));
            listed_ids.chain(managed).collect()
        };
        let members = operation::GROUP_MEMBER_LIST_ALL;
        let members = groups.iter().map(|group| members.request().arg("id", group));
        self.fetch_all(members.collect(), || {}).await?;
        let namespaces: Vec<_> = {
            let contents = self.contents();
            let groups = groups.iter().filter_map(|id| contents.objects.get(&(Scope::Group, *id)));
            groups.map(|group| operation::NAMESPACE_GET.request().arg("id", &group.path)).collect()
        };
        self.fetch_all(namespaces, || {}).await
    }

    /// Reads the group at `root` and everything below it. Also checks whether rows have all fields
    /// of the object; if not, groups are read one by one.
    async fn fetch_below(&self, root: &str) -> Result<()> {
        self.fetch_request((catalogue::container_lookup(Scope::Group).get)(root)).await?;
        if self.contents().find_id(Scope::Group, root).is_none() {
            return Ok(());
        }
        for scope in Scope::ALL {
            self.fetch_request(list_below(scope).arg("id", root)).await?;
        }
        for scope in Scope::ALL {
            let get = catalogue::container_lookup(scope).get;
            let rows: Vec<_> = {
                let contents = self.contents();
                let rows = contents.objects.range((scope, 0)..=(scope, u64::MAX));
                let rows = rows.filter(|(_, thing)| !thing.by_itself);
                rows.map(|((_, id), thing)| (*id, thing.clone())).collect()
            };
            let Some((id, row)) = rows.first() else { continue };
            if let Some(query) = Query::read(&get(&id.to_string()).target()) {
                self.fetch_object(scope, &query).await?;
            }
            let has_whole_rows = {
                let mut contents = self.contents();
                let whole = contents.objects.get(&(scope, *id)).filter(|whole| whole.by_itself);
                let is_whole = whole.is_some_and(|whole| keys(whole).is_subset(&keys(row)));
                let has_whole_rows = contents.rows_are_whole.entry(scope).or_insert(true);
                *has_whole_rows &= is_whole;
                *has_whole_rows
            };
            if scope == Scope::Group && !has_whole_rows {
                let requests = rows.iter().skip(1).map(|(id, _)| get(&id.to_string()));
                self.fetch_all(requests.collect(), || {}).await?;
            }
        }
        Ok(())
    }

    /// Reads all namespaces, if there are not too many. One that is not in the list may still
    /// exist.
    async fn fetch_namespaces(&self) -> Result<()> {
        let Some(all) = self.list_if_short(operation::NAMESPACE_FIND, &["full_path"]).await? else {
            return Ok(());
        };
        for raw in all.iter() {
            let path = raw.get("full_path").and_then(Json::as_str).unwrap_or_default();
            let query = Query::read(&operation::NAMESPACE_GET.request().arg("id", path).target());
            // The service would read a path of digits as an id.
            let query = query.filter(|_| contents::parse_id(path).is_none());
            let reduced = self.reducer().reduce_one(operation::NAMESPACE_GET, "", raw);
            if let (Some(query), Ok(reduced)) = (query, reduced) {
                self.contents().answers.insert(query.key, Recorded::one(Some(reduced)));
            }
        }
        Ok(())
    }

    /// Reads all users, if there are not too many.
    async fn fetch_all_users(&self) -> Result<()> {
        let Some(all) = self.list_if_short(operation::USER_FIND, &["username"]).await? else {
            return Ok(());
        };
        let mut contents = self.contents();
        contents.users.extend(all.iter().filter_map(|row| parse_user(&Json::Object(row.clone()))));
        contents.has_all_users = true;
        Ok(())
    }

    /// The complete list that `op` reads, unless it is long or fails.
    async fn list_if_short(
        &self,
        op: Op<Read>,
        extra_keys: &'static [&'static str],
    ) -> Result<Option<Complete<Object>>> {
        let Ok(mut pager) = Pager::new(op.request(), Rows::with_id(extra_keys)) else {
            return Ok(None);
        };
        loop {
            match self.client.read_page(&mut pager).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(pager.finish().ok()),
                Err(error) => return keep_failure(error).map(|_| None),
            }
            // The service counts at most 10,000 entries.
            if pager.total_pages().is_none_or(|pages| pages > MAX_PAGES) {
                return Ok(None);
            }
        }
    }

    /// Requests for all sections of every declared group and project that were not read yet, because
    /// a branch may declare them: for those without parents, or for those with parents, below each
    /// parent that was read.
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
                        let get_request = get.request().arg("id", id);
                        let rows = recorded_entries(&contents, section, id).into_iter();
                        let row_requests = rows.filter_map(|row| {
                            scoped_kind.entry_request(get_request.clone(), row.as_object()?)
                        });
                        requests.extend(row_requests);
                    }
                    (Some(parent), _) if only_nested => {
                        let parent_kind = catalogue::section(container.scope, parent.section);
                        let rows = parent_kind.map(|of| recorded_entries(&contents, of, id));
                        let ids = rows.into_iter().flatten().filter_map(|row| row["id"].as_u64());
                        requests.extend(ids.map(|id| request.clone().arg(parent.argument, id)));
                    }
                    _ => {}
                }
            }
        }
        requests.retain(|request| {
            let query = Query::read(&request.target());
            query.is_some_and(|query| contents.answer(&query).is_none())
        });
        requests
    }
}

/// The request for all entries of a section of the container with this `id`.
fn list_request(section: Section, id: u64) -> Option<Request<Read>> {
    let (ReadSource::List(op) | ReadSource::Optional(op)) = section.scoped_kind.place else {
        return None;
    };
    if section.scoped_kind.name_filter().is_some() {
        return None;
    }
    Some(section.scoped_kind.list_request(op.request().arg("id", id)))
}

/// The entries of a section of the container with this `id`, if they were read.
fn recorded_entries(contents: &SnapshotContents, section: Section, id: u64) -> Vec<Json> {
    let list = list_request(section, id).and_then(|list| Query::read(&list.target()));
    match list.and_then(|list| contents.answer(&list)) {
        Some(Ok(Json::Array(rows))) => rows,
        _ => Vec::new(),
    }
}

/// The paths of declared groups, and of groups of declared projects, in lower case.
fn managed_groups(desired: &Desired) -> BTreeSet<String> {
    let groups = desired.containers.iter().filter_map(|container| {
        container.scope.choose(Some(&*container.path), group_of(&container.path))
    });
    groups.map(str::to_lowercase).collect()
}

fn keys(thing: &ObjectRow) -> BTreeSet<String> {
    thing.object.json().as_object().into_iter().flat_map(Object::keys).cloned().collect()
}
