//! The contents of a snapshot, and how a snapshot answers requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::question::{Query, QuerySubject, RequestKey};
use crate::{
    address::groups_above,
    catalogue, digest,
    field::Scope,
    operation,
    value::{Json, Object},
};

/// JSON as canonical text, which needs a tenth of the memory of parsed JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PackedJson(Box<str>);

impl PackedJson {
    pub(super) fn new(json: &Json) -> Self {
        Self(digest::canonical_text(json).into())
    }

    /// Parses the text.
    pub(super) fn json(&self) -> Json {
        // The text is always valid JSON: it was serialised from JSON.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl Serialize for PackedJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PackedJson {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(|json| Self::new(&json))
    }
}

/// The reason why a read failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFailure {
    /// True if the route does not exist, or a proxy answered.
    pub is_route: bool,
    /// The reason, as a fragment of a sentence. For a refusal, it is the service's message.
    pub message: String,
    /// The id of the project that a redirect leads to.
    pub moved_to: Option<u64>,
    /// The request's id in the service's log.
    pub request_id: Option<String>,
    /// The HTTP status, if the service refused the request.
    pub status: Option<u16>,
}

impl ReadFailure {
    pub(super) fn from_message(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

impl fmt::Display for ReadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status} {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// A recorded response of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedAnswer {
    /// A complete list.
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    Entries(Vec<PackedJson>),
    /// A failed read.
    Failed(ReadFailure),
    /// One object, or `null` if the object does not exist.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    One(Option<PackedJson>),
}

impl RecordedAnswer {
    pub(super) fn from_object(object: Option<Object>) -> Self {
        Self::One(object.map(|object| PackedJson::new(&Json::Object(object))))
    }
}

/// A group or project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ObjectRow {
    /// True if the object was read with a single read, false if it is a row of a list.
    pub by_itself: bool,
    /// The id of the group or project.
    pub id: u64,
    /// The fields that plans use.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub object: PackedJson,
    /// The full path of the group or project.
    pub path: String,
    /// The scope: group or project.
    pub scope: Scope,
}

impl ObjectRow {
    /// The row of the object `raw`, if it has an id and a path.
    pub(super) fn new(scope: Scope, raw: &Object, by_itself: bool) -> Option<Self> {
        let id = raw.get("id")?.as_u64()?;
        let path = raw.get(catalogue::container_lookup(scope).path_field)?.as_str()?.to_owned();
        let object = PackedJson::new(&Json::Object(raw.clone()));
        Some(Self { by_itself, id, object, path, scope })
    }
}

/// The contents of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct SnapshotContents {
    /// The objects, by scope and id.
    pub(super) objects: BTreeMap<(Scope, u64), ObjectRow>,
    /// The ids of containers, by scope and path in lower case. Contains current paths, and former
    /// paths that redirect.
    pub(super) paths: BTreeMap<(Scope, String), u64>,
    /// Failed reads of single objects, by scope and requested path or id.
    pub(super) failed_objects: BTreeMap<(Scope, String), ReadFailure>,
    /// The ids of all containers of a scope below a group, by scope and path of the group in lower
    /// case. An empty path means the top level.
    pub(super) rosters: BTreeMap<(Scope, String), Result<BTreeSet<u64>, ReadFailure>>,
    /// For each scope, true if the rows of lists have all fields that single reads return. A scope
    /// is missing if rows and single reads were not compared.
    pub(super) are_rows_complete: BTreeMap<Scope, bool>,
    /// All other responses, by request.
    pub(super) answers: BTreeMap<RequestKey, RecordedAnswer>,
    /// The users, by name in lower case. Contains the id, and the name as the service writes it;
    /// `None` if no user has this name.
    pub(super) users: BTreeMap<String, Option<(u64, String)>>,
    /// True if `users` contains all users of the service.
    pub(super) has_all_users: bool,
}

/// The recorded response to a request, or the reason why the response could not be read. `None` if
/// the snapshot has neither a response nor a reason.
pub(super) type LookupResult = Option<Result<Json, ReadFailure>>;

impl SnapshotContents {
    /// Looks up the response to a request.
    pub(super) fn look_up(&self, query: &Query) -> LookupResult {
        match query.subject() {
            QuerySubject::Object(scope) => self.answer_object(scope, query.container_key()),
            QuerySubject::Roster(scope, root) => self.answer_roster(scope, root),
            QuerySubject::User(name) => {
                self.answer_user(name).or_else(|| self.recorded_response(query))
            }
            // A plan only searches for projects in these lists. If a list lacks a project, the plan
            // reads the single project.
            QuerySubject::Other if query.is_operation(operation::PROJECT_LIST) => {
                Some(Ok(Json::Array(Vec::new())))
            }
            QuerySubject::Other if query.is_operation(operation::GROUP_PROJECTS) => {
                Some(Ok(self.rows_below(query.container_key())))
            }
            QuerySubject::Other => self.recorded_response(query),
        }
    }

    /// Adds the object of a group or project that was requested at `path_or_id`. `path_or_id` is
    /// `None` for a row of a list.
    pub(super) fn add_object(&mut self, row: ObjectRow, path_or_id: Option<&str>) {
        let (scope, id) = (row.scope, row.id);
        self.paths.insert((scope, row.path.to_lowercase()), id);
        if let Some(path_or_id) = path_or_id.filter(|path_or_id| parse_id(path_or_id).is_none()) {
            self.paths.insert((scope, path_or_id.to_lowercase()), id);
        }
        // A list row never replaces an object from a single read, because the row may have fewer
        // fields.
        let existing_object = self.objects.get(&(scope, id));
        if row.by_itself || existing_object.is_none_or(|present| !present.by_itself) {
            self.objects.insert((scope, id), row);
        }
    }

    /// The id of the container at `path_or_id`.
    pub(super) fn find_id(&self, scope: Scope, path_or_id: &str) -> Option<u64> {
        let id = parse_id(path_or_id).filter(|id| self.objects.contains_key(&(scope, *id)));
        id.or_else(|| self.paths.get(&(scope, path_or_id.to_lowercase())).copied())
    }

    /// The path of the container at `path_or_id`, in lower case; `None` if the container is
    /// unknown.
    pub(super) fn find_path(&self, scope: Scope, path_or_id: &str) -> Option<String> {
        let id = self.find_id(scope, path_or_id)?;
        Some(self.objects.get(&(scope, id))?.path.to_lowercase())
    }

    /// The path of the container of a request. If the container is unknown, returns the requested
    /// path or id.
    pub(super) fn container_path(&self, query: &Query) -> String {
        let path = query.scope.and_then(|scope| self.find_path(scope, query.container_key()));
        path.unwrap_or_else(|| query.container_key().to_owned())
    }

    fn answer_object(&self, scope: Scope, path_or_id: &str) -> LookupResult {
        if let Some(row) =
            self.find_id(scope, path_or_id).and_then(|id| self.objects.get(&(scope, id)))
        {
            let has_whole_rows = self.are_rows_complete.get(&scope).copied().unwrap_or_default();
            return (row.by_itself || has_whole_rows).then(|| Ok(row.object.json()));
        }
        let failure = self.failed_objects.get(&(scope, path_or_id.to_lowercase())).cloned();
        failure
            .or_else(|| {
                self.is_certainly_absent(scope, path_or_id).then(|| missing_container(scope))
            })
            .map(Err)
    }

    /// True if a complete list shows that no container of `scope` exists at `path`. The complete
    /// list is the roster of a group above. At the top level, it is the list of all top-level
    /// groups, and counts only for an administrator.
    fn is_certainly_absent(&self, scope: Scope, path: &str) -> bool {
        let path = path.to_lowercase();
        if parse_id(&path).is_some() || self.paths.contains_key(&(scope, path.clone())) {
            return false;
        }
        let is_in_top_roster =
            !path.contains('/') && scope == Scope::Group && self.is_caller_administrator();
        let parent_paths = groups_above(&path).chain(is_in_top_roster.then_some(""));
        let mut rosters =
            parent_paths.map(|ancestor| self.rosters.get(&(scope, ancestor.to_owned())));
        rosters.any(|roster| matches!(roster, Some(Ok(_))))
    }

    /// True if the caller is an administrator.
    pub(super) fn is_caller_administrator(&self) -> bool {
        let operation = operation::CURRENT_USER.row().id;
        let mut answers = self.answers.iter();
        let caller = answers.find(|(key, _)| key.operation == operation);
        matches!(caller, Some((_, RecordedAnswer::One(Some(user)))) if user.json()["is_admin"] == true)
    }

    /// The key of the roster of the group at `root`: its current path in lower case.
    pub(super) fn roster_key(&self, root: &str) -> String {
        self.find_path(Scope::Group, root).unwrap_or_else(|| root.to_lowercase())
    }

    /// All containers of `scope` below the group at `root`, from the list of that group or of a
    /// group above.
    fn answer_roster(&self, scope: Scope, root: &str) -> LookupResult {
        let root = self.roster_key(root);
        if let Some(roster) = self.rosters.get(&(scope, root.clone())) {
            let rows = roster.as_ref().map(|ids| self.object_rows(scope, ids));
            return Some(rows.map_err(ReadFailure::clone));
        }
        if self.is_certainly_absent(Scope::Group, &root) {
            return Some(Err(missing_container(Scope::Group)));
        }
        let is_known_group = self.paths.contains_key(&(Scope::Group, root.clone()));
        let mut rosters = groups_above(&root)
            .filter_map(|ancestor| self.rosters.get(&(scope, ancestor.to_owned()))?.as_ref().ok());
        let ids = rosters.find(|_| is_known_group)?;
        Some(Ok(self.object_rows(scope, &self.ids_below(scope, ids, &root))))
    }

    /// Returns the ids in `ids` whose objects are below the group at `root`.
    fn ids_below(&self, scope: Scope, ids: &BTreeSet<u64>, root: &str) -> BTreeSet<u64> {
        let ids_below = ids.iter().copied().filter(|id| {
            self.objects.get(&(scope, *id)).is_some_and(|row| {
                let path = row.path.to_lowercase();
                path.strip_prefix(root).is_some_and(|suffix| suffix.starts_with('/'))
            })
        });
        ids_below.collect()
    }

    /// The recorded projects below the group at `root`.
    fn rows_below(&self, root: &str) -> Json {
        let root = self.roster_key(root);
        let ids = self.objects.keys().filter(|(scope, _)| *scope == Scope::Project);
        let ids = ids.map(|(_, id)| *id).collect();
        self.object_rows(Scope::Project, &self.ids_below(Scope::Project, &ids, &root))
    }

    fn object_rows(&self, scope: Scope, ids: &BTreeSet<u64>) -> Json {
        let rows = ids.iter().filter_map(|id| self.objects.get(&(scope, *id)));
        rows.map(|row| row.object.json()).collect()
    }

    fn answer_user(&self, name: &str) -> LookupResult {
        let user = match self.users.get(&name.to_lowercase()) {
            None if !self.has_all_users => return None,
            found_user => found_user.into_iter().flatten(),
        };
        let user = user.map(|(id, name)| serde_json::json!({"id": id, "username": name}));
        Some(Ok(user.collect()))
    }

    /// The key under which the response to `query` is stored. It contains the id of the container,
    /// if the id is known.
    pub(super) fn storage_key(&self, query: &Query) -> RequestKey {
        let id = query.scope.and_then(|scope| self.find_id(scope, query.container_key()));
        let container_id = id.map(|id| id.to_string()).or_else(|| query.key.of.clone());
        RequestKey { of: container_id, ..query.key.clone() }
    }

    fn recorded_response(&self, query: &Query) -> LookupResult {
        // The response may have been stored under the path, before the id was known.
        let response = self.answers.get(&self.storage_key(query));
        if let Some(response) = response.or_else(|| self.answers.get(&query.key)) {
            return Some(match response {
                RecordedAnswer::Entries(entries) => {
                    Ok(entries.iter().map(PackedJson::json).collect())
                }
                RecordedAnswer::One(object) => {
                    Ok(object.as_ref().map(PackedJson::json).unwrap_or_default())
                }
                RecordedAnswer::Failed(failure) => Err(failure.clone()),
            });
        }
        if query.is_operation(operation::GROUP_MEMBER_GET_ALL) {
            return self.answer_group_member(query);
        }
        let namespace = query.argument("id");
        if query.is_operation(operation::NAMESPACE_GET)
            && namespace.contains('/')
            && self.is_certainly_absent(Scope::Group, namespace)
        {
            return Some(Err(not_found_failure("Namespace Not Found")));
        }
        let scope =
            query.scope.filter(|scope| self.is_certainly_absent(*scope, query.container_key()))?;
        Some(Err(missing_container(scope)))
    }

    /// Answers a request for one member of a group from the list of the group's members.
    fn answer_group_member(&self, query: &Query) -> LookupResult {
        let list =
            operation::GROUP_MEMBER_LIST_ALL.request().with_argument("id", query.container_key());
        let list = self.answers.get(&self.storage_key(&Query::parse(&list.path_and_query())?))?;
        let RecordedAnswer::Entries(members) = list else { return None };
        let user_id = parse_id(query.argument("user_id"));
        let mut members = members.iter().map(PackedJson::json);
        let member = members.find(|member| member["id"].as_u64() == user_id);
        Some(member.ok_or_else(|| not_found_failure("Not found")))
    }

    /// The number of groups and of projects in the snapshot.
    pub fn container_counts(&self) -> BTreeMap<Scope, usize> {
        let mut counts = BTreeMap::new();
        for (scope, _) in self.objects.keys() {
            *counts.entry(*scope).or_default() += 1;
        }
        counts
    }

    /// The failed reads, except reads of absent or moved objects: a description of each request,
    /// and the failure.
    pub fn failed_reads(&self) -> impl Iterator<Item = (String, &ReadFailure)> {
        let lists = self.rosters.iter().filter_map(|((scope, root), roster)| {
            Some((format!("the {}s below `{root}`", scope.noun()), roster.as_ref().err()?))
        });
        let answers = self.answers.iter().filter_map(|(key, response)| match response {
            RecordedAnswer::Failed(failure) => Some((self.describe_request(key), failure)),
            RecordedAnswer::Entries(_) | RecordedAnswer::One(_) => None,
        });
        let objects = self.failed_objects.iter();
        let objects = objects.map(|((scope, path_or_id), failure)| {
            (format!("{} `{path_or_id}`", scope.noun()), failure)
        });
        objects
            .chain(lists)
            .chain(answers)
            .filter(|(_, failure)| failure.status != Some(404) && failure.moved_to.is_none())
    }

    /// Describes a request for a message. Contains the operation, and the path of its container or
    /// else the value that the request looks up.
    fn describe_request(&self, key: &RequestKey) -> String {
        let scope = Query::operation_scope(&key.operation);
        let container = key.of.as_deref();
        let path = scope.zip(container).and_then(|(scope, id)| self.find_path(scope, id));
        let mut values = key.arguments.values().chain(key.query.values());
        match path.as_deref().or(container).or_else(|| values.next().map(String::as_str)) {
            Some(subject) => format!("{} of `{subject}`", key.operation),
            None => key.operation.clone(),
        }
    }
}

/// The service's response for an absent container.
fn missing_container(scope: Scope) -> ReadFailure {
    not_found_failure(if scope == Scope::Group { "Group Not Found" } else { "Project Not Found" })
}

/// A failure with the status 404.
fn not_found_failure(message: &str) -> ReadFailure {
    ReadFailure { status: Some(404), message: message.to_owned(), ..ReadFailure::default() }
}

/// Parses `text` as an id, which has only digits.
pub(super) fn parse_id(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
