//! The file of a snapshot: canonical JSON, with a published schema.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Head, Snapshot,
    question::Question,
    things::{Failed, Kept, Packed, Thing, Things},
};
use crate::field::Scope;

/// The version of the format. 0: still unstable.
pub const FORMAT_VERSION: u32 = 0;

/// The largest file that is read, in bytes: about 50,000 projects.
pub const MAX_BYTES: u64 = 256 << 20;

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is not whole.
    #[error("it is not whole, or not JSON ({0}); take it again with `undrift snapshot`")]
    Broken(String),
    /// It is something else.
    #[error("it is no snapshot; take one with `undrift snapshot`")]
    Other,
    /// Another undrift wrote it.
    #[error(
        "it has format {0}, and this undrift reads format {FORMAT_VERSION}; take it again with this one"
    )]
    Version(u64),
    /// Something in it cannot be.
    #[error("{0}; take it again with `undrift snapshot`")]
    Wrong(String),
}

/// The file. Its keys are in the order of canonical JSON.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File<'a> {
    /// Whether `users` are all there are.
    all_users: bool,
    /// What else was asked, and what the service said.
    answers: Vec<AnswerRow<'a>>,
    /// The version of the format; 0 is unstable.
    format_version: u32,
    /// What could not be read, or was not kept, apart from what is not there.
    incomplete: Vec<Cow<'a, str>>,
    /// What tells the key of the digests of sensitive values from others, if there are any.
    key: Option<Cow<'a, str>>,
    /// Groups and projects that were asked for and not found.
    missing: Vec<MissingRow<'a>>,
    /// Groups and projects.
    objects: Vec<ObjectRow<'a>>,
    /// Other paths that lead to them.
    paths: Vec<PathRow<'a>>,
    /// What exists below a group.
    rosters: Vec<RosterRow<'a>>,
    /// Whether the service was the embedded sandbox.
    sandbox: bool,
    /// When it was begun.
    #[schemars(extend("format" = "date-time"))]
    taken_at: Cow<'a, str>,
    /// The address of the service.
    target: Cow<'a, str>,
    /// The version of undrift that wrote it.
    tool_version: Cow<'a, str>,
    /// What it is.
    undrift: Sort,
    /// Users by their names.
    users: Vec<UserRow<'a>>,
    /// The scopes of which a row of a list says all that there is to say.
    whole_rows: BTreeMap<Scope, bool>,
}

/// What a file is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Sort {
    /// A snapshot.
    Snapshot,
}

/// A group or project.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ObjectRow<'a> {
    /// Whether it was read by itself; otherwise it is a row of a list.
    by_itself: bool,
    /// Its id.
    id: u64,
    /// What plans look at of it.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    object: Cow<'a, Packed>,
    /// Its full path.
    path: Cow<'a, str>,
    /// Which of the two it is.
    scope: Scope,
}

/// A path that leads elsewhere.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PathRow<'a> {
    /// The id of what it leads to.
    id: u64,
    /// The path, in lower case.
    path: Cow<'a, str>,
    /// What it leads to.
    scope: Scope,
}

/// A group or project that was not found.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MissingRow<'a> {
    /// The path or id that was asked for.
    at: Cow<'a, str>,
    /// Why not.
    failed: Cow<'a, Failed>,
    /// What was asked for.
    scope: Scope,
}

/// What exists below a group.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RosterRow<'a> {
    /// Why that is not known, if it is not.
    failed: Option<Cow<'a, Failed>>,
    /// The ids of all that exists, subgroups and what is in them included.
    ids: Cow<'a, BTreeSet<u64>>,
    /// The path of the group, in lower case; empty for what is at the top.
    root: Cow<'a, str>,
    /// What exists: groups, or projects.
    scope: Scope,
}

/// What was asked, and what the service said.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerRow<'a> {
    /// What the service said.
    answer: AnswerForm<'a>,
    /// What was asked.
    question: Cow<'a, Question>,
}

/// What the service said.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AnswerForm<'a> {
    /// A whole list.
    #[schemars(with = "Vec<BTreeMap<String, serde_json::Value>>")]
    Entries(Cow<'a, [Packed]>),
    /// Nothing of use.
    Failed(Cow<'a, Failed>),
    /// One thing, or that there is none.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    One(Option<Cow<'a, Packed>>),
}

/// A user.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserRow<'a> {
    /// The id; none if nobody has this name.
    id: Option<u64>,
    /// The name.
    username: Cow<'a, str>,
}

/// What is looked at first.
#[derive(Deserialize)]
struct Beginning {
    #[serde(default)]
    undrift: serde_json::Value,
    #[serde(default)]
    format_version: serde_json::Value,
}

impl Snapshot {
    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written, or nobody could read it because it is too large.
    pub fn write(&self, to: impl Write) -> io::Result<()> {
        let mut to = Bounded { to, left: MAX_BYTES };
        serde_json::to_writer(&mut to, &self.form())?;
        to.write_all(b"\n")?;
        to.flush()
    }

    fn form(&self) -> File<'_> {
        let (head, things) = (&self.head, &self.things);
        let is_own = |(scope, path): &(Scope, String), id: u64| {
            let own = things.objects.get(&(*scope, id));
            own.is_some_and(|own| own.path.to_lowercase() == *path)
        };
        let incomplete = things.incomplete();
        File {
            all_users: things.all_users,
            answers: things
                .answers
                .iter()
                .map(|(question, kept)| AnswerRow {
                    answer: match kept {
                        Kept::Entries(entries) => AnswerForm::Entries(entries.into()),
                        Kept::Failed(failed) => AnswerForm::Failed(Cow::Borrowed(failed)),
                        Kept::One(one) => AnswerForm::One(one.as_ref().map(Cow::Borrowed)),
                    },
                    question: Cow::Borrowed(question),
                })
                .collect(),
            format_version: FORMAT_VERSION,
            incomplete: incomplete.map(|(what, why)| format!("{what}: {why}").into()).collect(),
            key: head.key.as_deref().map(Cow::Borrowed),
            missing: things
                .missing
                .iter()
                .map(|((scope, at), failed)| MissingRow {
                    at: at.into(),
                    failed: Cow::Borrowed(failed),
                    scope: *scope,
                })
                .collect(),
            objects: things
                .objects
                .iter()
                .map(|((scope, id), thing)| ObjectRow {
                    by_itself: thing.by_itself,
                    id: *id,
                    object: Cow::Borrowed(&thing.object),
                    path: (&thing.path).into(),
                    scope: *scope,
                })
                .collect(),
            paths: things
                .paths
                .iter()
                .filter(|(at, id)| !is_own(at, **id))
                .map(|((scope, path), id)| PathRow { id: *id, path: path.into(), scope: *scope })
                .collect(),
            rosters: things
                .rosters
                .iter()
                .map(|((scope, root), roster)| RosterRow {
                    failed: roster.as_ref().err().map(Cow::Borrowed),
                    ids: roster.as_ref().map_or_else(|_| Cow::default(), Cow::Borrowed),
                    root: root.into(),
                    scope: *scope,
                })
                .collect(),
            sandbox: head.sandbox,
            taken_at: head.taken_at.to_string().into(),
            target: (&head.target).into(),
            tool_version: env!("CARGO_PKG_VERSION").into(),
            undrift: Sort::Snapshot,
            users: things
                .users
                .iter()
                .map(|(key, user)| match user {
                    Some((id, name)) => UserRow { id: Some(*id), username: name.into() },
                    None => UserRow { id: None, username: key.into() },
                })
                .collect(),
            whole_rows: things.whole_rows.clone(),
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn read(text: &[u8]) -> Result<Self, LoadError> {
        // What this undrift does not know of another format is no fault of the file.
        let beginning: Beginning = serde_json::from_slice(text).map_err(|error| broken(&error))?;
        if beginning.undrift != "snapshot" {
            return Err(LoadError::Other);
        }
        match beginning.format_version.as_u64() {
            Some(version) if version == u64::from(FORMAT_VERSION) => {}
            Some(version) => return Err(LoadError::Version(version)),
            None => return Err(LoadError::Other),
        }
        let file: File<'_> = serde_json::from_slice(text).map_err(|error| broken(&error))?;
        let taken_at: Timestamp = file
            .taken_at
            .parse()
            .map_err(|_| LoadError::Wrong("`taken_at` is no time".to_owned()))?;
        let head = Head {
            target: file.target.clone().into_owned(),
            sandbox: file.sandbox,
            taken_at,
            key: file.key.clone().map(Cow::into_owned),
        };
        Ok(Self { head, things: file.things()? })
    }
}

impl File<'_> {
    /// The things in it.
    fn things(self) -> Result<Things, LoadError> {
        let mut things =
            Things { all_users: self.all_users, whole_rows: self.whole_rows, ..Things::default() };
        let twice = |what: String| LoadError::Wrong(format!("{what} is in it twice"));
        for row in self.objects {
            let (path, object) = (row.path.into_owned(), row.object.into_owned());
            let what = format!("{} {}", row.scope.noun(), row.id);
            if object.json()["id"].as_u64() != Some(row.id) {
                return Err(LoadError::Wrong(format!("the object of {what} has another id")));
            }
            let at = things.paths.insert((row.scope, path.to_lowercase()), row.id);
            let thing = Thing { path, by_itself: row.by_itself, object };
            if things.objects.insert((row.scope, row.id), thing).is_some() || at.is_some() {
                return Err(twice(what));
            }
        }
        for row in self.paths {
            let path = row.path.into_owned();
            if things.paths.insert((row.scope, path.clone()), row.id).is_some() {
                return Err(twice(format!("the path `{path}`")));
            }
        }
        for row in self.missing {
            let at = row.at.into_owned();
            let failed = row.failed.into_owned();
            if things.missing.insert((row.scope, at.clone()), checked(failed)?).is_some() {
                return Err(twice(format!("what is missing at `{at}`")));
            }
        }
        for row in self.rosters {
            let root = row.root.into_owned();
            let roster = match row.failed {
                Some(failed) => Err(checked(failed.into_owned())?),
                None => Ok(row.ids.into_owned()),
            };
            if things.rosters.insert((row.scope, root.clone()), roster).is_some() {
                return Err(twice(format!("what exists below `{root}`")));
            }
        }
        for row in self.answers {
            let kept = match row.answer {
                AnswerForm::Entries(entries) => Kept::Entries(entries.into_owned()),
                AnswerForm::Failed(failed) => Kept::Failed(checked(failed.into_owned())?),
                AnswerForm::One(one) => Kept::One(one.map(Cow::into_owned)),
            };
            let question = row.question.into_owned();
            let operation = question.operation.clone();
            if things.answers.insert(question, kept).is_some() {
                return Err(twice(format!("an answer to {operation}")));
            }
        }
        for row in self.users {
            let name = row.username.into_owned();
            let user = row.id.map(|id| (id, name.clone()));
            if things.users.insert(name.to_lowercase(), user).is_some() {
                return Err(twice(format!("the user `{name}`")));
            }
        }
        Ok(things)
    }
}

/// `failed`, if its status is one of a failure.
fn checked(failed: Failed) -> Result<Failed, LoadError> {
    match failed.status {
        None | Some(300..=499) => Ok(failed),
        Some(status) => Err(LoadError::Wrong(format!("{status} is no status of a refusal"))),
    }
}

/// What is wrong with a text, without what is in it.
fn broken(error: &serde_json::Error) -> LoadError {
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early".to_owned(),
        _ => format!("line {}, column {}", error.line(), error.column()),
    };
    LoadError::Broken(what)
}

/// Writes no more than what can be read.
struct Bounded<W> {
    to: W,
    left: u64,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            let why = "the snapshot is larger than 256 MiB; take one for each of several folders";
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        };
        self.left = left;
        self.to.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
