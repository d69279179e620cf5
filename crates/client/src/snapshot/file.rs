//! The file format of snapshots: canonical JSON, with a published schema.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    io::{self, Write},
};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Snapshot, SnapshotHeader,
    contents::{ObjectRow, ReadFailure, RecordedAnswer, SnapshotContents},
    question::RequestKey,
};
use crate::field::Scope;

/// The version of the format. Version 0 is unstable.
pub const FORMAT_VERSION: u32 = 0;

/// The maximum size of a file, in bytes. This is enough for about 50,000 projects.
pub const MAX_BYTES: u64 = 256 << 20;

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is truncated, or is not JSON. Contains the place.
    #[error("it is truncated, or not JSON ({0}); take it again with `undrift snapshot`")]
    InvalidJson(String),
    /// The file is not a snapshot.
    #[error("it is not a snapshot; take one with `undrift snapshot`")]
    NotSnapshot,
    /// Another version of undrift wrote the file. Contains the version of its format.
    #[error(
        "it has format {0}, but this undrift reads format {FORMAT_VERSION}; take the snapshot again with this undrift"
    )]
    OtherVersion(u64),
    /// The contents of the file are not valid. Contains the reason.
    #[error("{0}; take it again with `undrift snapshot`")]
    InvalidContents(String),
}

/// The snapshot file. Its keys are in the order of canonical JSON.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotFile<'a> {
    /// True if `users` contains all users of the service.
    all_users: bool,
    /// The requests and responses that no other key of this file contains.
    answers: Vec<AnswerRow<'a>>,
    /// The version of the format; 0 is unstable.
    format_version: u32,
    /// The requests that failed, or whose response was not kept. Requests for absent objects are
    /// not listed.
    incomplete: Vec<Cow<'a, str>>,
    /// The id of the key for digests of sensitive values; `null` if the file has no such digests.
    key: Option<Cow<'a, str>>,
    /// Groups and projects that could not be read, for example because they do not exist.
    missing: Vec<MissingRow<'a>>,
    /// The groups and projects.
    objects: Vec<Cow<'a, ObjectRow>>,
    /// Former paths that redirect to groups and projects.
    paths: Vec<PathRow<'a>>,
    /// Rosters: the groups or projects below a group.
    rosters: Vec<RosterRow<'a>>,
    /// True if the service was the embedded sandbox.
    sandbox: bool,
    /// When the snapshot was started.
    #[schemars(extend("format" = "date-time"))]
    taken_at: Cow<'a, str>,
    /// The address of the service.
    target: Cow<'a, str>,
    /// The version of undrift that wrote the file.
    tool_version: Cow<'a, str>,
    /// The kind of file.
    undrift: SnapshotFileKind,
    /// Users by name.
    users: Vec<UserRow<'a>>,
    /// For each scope: true if a row of a list has all fields that the response for a single group or
    /// project has.
    whole_rows: BTreeMap<Scope, bool>,
}

/// The kind of a file.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SnapshotFileKind {
    /// A snapshot.
    Snapshot,
}

/// A path that redirects.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PathRow<'a> {
    /// The id of the group or project that the path redirects to.
    id: u64,
    /// The path, in lower case.
    path: Cow<'a, str>,
    /// The scope of the group or project that the path redirects to.
    scope: Scope,
}

/// A group or project that could not be read.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MissingRow<'a> {
    /// The requested path or id.
    at: Cow<'a, str>,
    /// The reason why the read failed.
    failed: Cow<'a, ReadFailure>,
    /// The requested scope.
    scope: Scope,
}

/// A roster: the groups or projects below a group.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RosterRow<'a> {
    /// The failure, if the list could not be read.
    failed: Option<Cow<'a, ReadFailure>>,
    /// The ids of all groups or projects below the group, at any depth.
    ids: Cow<'a, BTreeSet<u64>>,
    /// The path of the group, in lower case; empty for the top level.
    root: Cow<'a, str>,
    /// The scope of the listed containers.
    scope: Scope,
}

/// A request, and the service's response.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerRow<'a> {
    /// The response.
    #[serde(rename = "answer")]
    response: Cow<'a, RecordedAnswer>,
    /// The request.
    question: Cow<'a, RequestKey>,
}

/// A user.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserRow<'a> {
    /// The id; `null` if no user has this name.
    id: Option<u64>,
    /// The user name.
    username: Cow<'a, str>,
}

/// The fields that identify the format. These fields are checked before all other fields.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Preamble {
    undrift: serde_json::Value,
    format_version: serde_json::Value,
}

impl Snapshot {
    /// Writes the snapshot as a file to `writer`.
    ///
    /// # Errors
    /// If the file cannot be written, or would be larger than [`MAX_BYTES`].
    pub fn write(&self, writer: impl Write) -> io::Result<()> {
        let mut output = BoundedWriter { inner: writer, remaining_bytes: MAX_BYTES };
        serde_json::to_writer(&mut output, &self.to_file())?;
        output.write_all(b"\n")?;
        output.flush()
    }

    fn to_file(&self) -> SnapshotFile<'_> {
        let (header, contents) = (&self.header, &self.contents);
        let redirects = contents.paths.iter().filter(|((scope, path), id)| {
            let object = contents.objects.get(&(*scope, **id));
            object.is_none_or(|target| target.path.to_lowercase() != *path)
        });
        let incomplete = contents.failed_reads();
        SnapshotFile {
            all_users: contents.has_all_users,
            answers: map_rows(&contents.answers, |question, response| AnswerRow {
                response: Cow::Borrowed(response),
                question: Cow::Borrowed(question),
            }),
            format_version: FORMAT_VERSION,
            incomplete: incomplete
                .map(|(request, why)| format!("{request}: {why}").into())
                .collect(),
            key: header.key_id.as_deref().map(Cow::Borrowed),
            missing: map_rows(&contents.failed_objects, |(scope, path_or_id), failure| {
                MissingRow { at: path_or_id.into(), failed: Cow::Borrowed(failure), scope: *scope }
            }),
            objects: contents.objects.values().map(Cow::Borrowed).collect(),
            paths: redirects
                .map(|((scope, path), id)| PathRow { id: *id, path: path.into(), scope: *scope })
                .collect(),
            rosters: map_rows(&contents.rosters, |(scope, root), roster| RosterRow {
                failed: roster.as_ref().err().map(Cow::Borrowed),
                ids: roster.as_ref().map_or_else(|_| Cow::default(), Cow::Borrowed),
                root: root.into(),
                scope: *scope,
            }),
            sandbox: header.is_sandbox,
            taken_at: header.started_at.to_string().into(),
            target: (&header.service_address).into(),
            tool_version: env!("CARGO_PKG_VERSION").into(),
            undrift: SnapshotFileKind::Snapshot,
            users: map_rows(&contents.users, |key, user| match user {
                Some((id, name)) => UserRow { id: Some(*id), username: name.into() },
                None => UserRow { id: None, username: key.into() },
            }),
            whole_rows: contents.are_rows_complete.clone(),
        }
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// [`LoadError`] if the text is not a snapshot of this format.
    pub fn read(text: &[u8]) -> Result<Self, LoadError> {
        // Check the format first, because a file of another format may have unknown fields.
        let preamble: Preamble =
            serde_json::from_slice(text).map_err(|error| describe_parse_error(&error))?;
        if preamble.undrift != "snapshot" {
            return Err(LoadError::NotSnapshot);
        }
        match preamble.format_version.as_u64() {
            Some(version) if version == u64::from(FORMAT_VERSION) => {}
            Some(version) => return Err(LoadError::OtherVersion(version)),
            None => return Err(LoadError::NotSnapshot),
        }
        let file: SnapshotFile<'_> =
            serde_json::from_slice(text).map_err(|error| describe_parse_error(&error))?;
        let taken_at: Timestamp = file
            .taken_at
            .parse()
            .map_err(|_| LoadError::InvalidContents("`taken_at` is not a time".to_owned()))?;
        let header = SnapshotHeader {
            service_address: file.target.clone().into_owned(),
            is_sandbox: file.sandbox,
            started_at: taken_at,
            key_id: file.key.clone().map(Cow::into_owned),
        };
        Ok(Self { header, contents: file.into_contents()? })
    }
}

impl SnapshotFile<'_> {
    /// Converts the file to contents, and checks the contents.
    fn into_contents(self) -> Result<SnapshotContents, LoadError> {
        let mut contents = SnapshotContents {
            has_all_users: self.all_users,
            are_rows_complete: self.whole_rows,
            ..SnapshotContents::default()
        };
        for row in self.objects {
            let row = row.into_owned();
            let object_name = format!("{} {}", row.scope.noun(), row.id);
            if row.object.json()["id"].as_u64() != Some(row.id) {
                let reason = format!("the object of {object_name} has another id");
                return Err(LoadError::InvalidContents(reason));
            }
            let key = (row.scope, row.path.to_lowercase());
            insert_unique(&mut contents.paths, key, row.id, |_| object_name.clone())?;
            insert_unique(&mut contents.objects, (row.scope, row.id), row, |_| object_name)?;
        }
        for row in self.paths {
            let key = (row.scope, row.path.into_owned());
            insert_unique(&mut contents.paths, key, row.id, |(_, path)| {
                format!("the path `{path}`")
            })?;
        }
        for row in self.missing {
            let key = (row.scope, row.at.into_owned());
            let failure = require_failure_status(row.failed.into_owned())?;
            insert_unique(&mut contents.failed_objects, key, failure, |(_, at)| {
                format!("the missing object at `{at}`")
            })?;
        }
        for row in self.rosters {
            let roster = match row.failed {
                Some(failure) => Err(require_failure_status(failure.into_owned())?),
                None => Ok(row.ids.into_owned()),
            };
            let key = (row.scope, row.root.into_owned());
            insert_unique(&mut contents.rosters, key, roster, |(_, root)| {
                format!("the roster below `{root}`")
            })?;
        }
        for row in self.answers {
            let mut response = row.response.into_owned();
            if let RecordedAnswer::Failed(failure) = response {
                response = RecordedAnswer::Failed(require_failure_status(failure)?);
            }
            insert_unique(
                &mut contents.answers,
                row.question.into_owned(),
                response,
                |question| format!("an answer to {}", question.operation),
            )?;
        }
        for row in self.users {
            let name = row.username.into_owned();
            let user = row.id.map(|id| (id, name.clone()));
            insert_unique(&mut contents.users, name.to_lowercase(), user, |_| {
                format!("the user `{name}`")
            })?;
        }
        Ok(contents)
    }
}

/// Builds a row for each entry of a map.
fn map_rows<'t, K, V, R>(map: &'t BTreeMap<K, V>, build_row: impl Fn(&'t K, &'t V) -> R) -> Vec<R> {
    map.iter().map(|(key, value)| build_row(key, value)).collect()
}

/// Inserts a value under a key that the map must not contain yet.
fn insert_unique<K: Ord, V>(
    map: &mut BTreeMap<K, V>,
    key: K,
    value: V,
    describe_key: impl FnOnce(&K) -> String,
) -> Result<(), LoadError> {
    match map.entry(key) {
        Entry::Vacant(entry) => {
            entry.insert(value);
            Ok(())
        }
        Entry::Occupied(entry) => {
            Err(LoadError::InvalidContents(format!("{} is in it twice", describe_key(entry.key()))))
        }
    }
}

/// Returns `failure` if it has no status, or the status of a refusal.
fn require_failure_status(failure: ReadFailure) -> Result<ReadFailure, LoadError> {
    match failure.status {
        None | Some(300..=499) => Ok(failure),
        Some(status) => {
            Err(LoadError::InvalidContents(format!("{status} is not the status of a refusal")))
        }
    }
}

/// Describes a parse error without quoting the file, which may contain secrets.
fn describe_parse_error(error: &serde_json::Error) -> LoadError {
    let location = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early".to_owned(),
        _ => format!("line {}, column {}", error.line(), error.column()),
    };
    LoadError::InvalidJson(location)
}

/// A writer that refuses to write more than [`MAX_BYTES`].
struct BoundedWriter<W> {
    inner: W,
    remaining_bytes: u64,
}

impl<W: Write> Write for BoundedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(remaining_bytes) = self.remaining_bytes.checked_sub(bytes.len() as u64) else {
            let message =
                "the snapshot is larger than 256 MiB; take one for each of several folders";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        };
        self.remaining_bytes = remaining_bytes;
        self.inner.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
