//! What differs between a declared section and the live one, as data.
//!
//! Pure and synchronous: the same input gives the same differences in the same order. What cannot
//! be compared becomes a note, never a difference, so that a run which changed nothing plans
//! nothing.

mod entry;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

use entry::{Comparing, Match};

use crate::{
    address::{Address, Selector},
    cause::Cause,
    field::{Field, Secrecy},
    kind::{Kind, LiveEntry, Target, Users, plain_text},
    kinds,
    live::{Caller, Collection},
    manifest::{Section, Unlisted},
    operation::{Request, Write},
    origin::{Origin, Sourced},
    planted::Bug,
    secret::Secrets,
    text,
    value::{Json, Value},
};

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is brought into being.
    Create,
    /// Some of its fields change.
    Update,
    /// It is removed.
    Delete,
}

/// One side of a change, as it may be shown to anybody.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "is", content = "value", rename_all = "snake_case")]
pub enum Shown {
    /// Nothing is there.
    Absent,
    /// The service does not say.
    Unknown,
    /// Plain data.
    Value(Json),
    /// Something is there that is not shown: a live value of a sensitive field, or a literal that
    /// is declared to be masked.
    Hidden,
    /// The value of a secret, by where it comes from: `env:NAME` or `file:PATH`.
    Secret(String),
    /// The content of a file.
    File(String),
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Its name in the manifest.
    #[serde(serialize_with = "kinds::serialize_name")]
    pub field: String,
    /// What is there.
    pub before: Shown,
    /// What is to be there.
    pub after: Shown,
    /// Where it is declared; a removal has none of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// An object that differs.
pub struct Difference {
    /// The object.
    pub address: Address,
    /// What is to be done.
    pub action: Action,
    /// Where it is declared: the entry, or the line of `unlisted` that says so.
    pub origin: Origin,
    /// What changes.
    pub changes: Vec<Change>,
    /// The calls, in order.
    pub requests: Vec<Request<Write>>,
    /// What was found, to tell later whether it moved. Never shown.
    pub live: Option<LiveEntry>,
    /// The user whose access this is about, with the levels before and after.
    pub access: Option<AccessChange>,
}

/// How a user's access changes. Levels are the service's numbers (reference 1, 2.1); 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessChange {
    /// The user.
    pub user: u64,
    /// The level that they have.
    pub before: u8,
    /// The level that they will have.
    pub after: u8,
}

/// Why something that one might expect does not happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Note {
    /// The object.
    pub address: Address,
    /// The reason.
    pub reason: Reason,
    /// The fields that it is about.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "kinds::serialize_names")]
    pub fields: Vec<String>,
    /// Where it is declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The reason of a [`Note`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(tag = "is", content = "detail", rename_all = "snake_case")]
pub enum Reason {
    /// It is live, and no manifest lists it.
    Unlisted,
    /// It is live and unlisted, and is protected for the reason given.
    Protected {
        /// The reason, for example `it is a bot`.
        why: String,
    },
    /// The service does not return these fields.
    CannotVerify,
    /// These secrets are not set here.
    SecretMissing {
        /// Where they come from: `env:NAME` or `file:PATH`.
        secrets: Vec<String>,
    },
    /// The service's answer lacks these fields, which other installations, tiers or roles have.
    NotReturned,
    /// It is archived and stays archived; nothing below it is read or changed.
    Archived,
    /// These fields are not set yet, and wait for what the text says.
    Waits {
        /// The end of a sentence that begins with `waits`.
        why: String,
    },
}

/// Something that has to be put right before anything is applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Problem {
    /// The object.
    pub address: Address,
    /// The code, for example `missing-project`.
    #[serde(serialize_with = "text::word")]
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Where it is declared.
    pub origin: Origin,
}

/// Something of which too little is known, so that nothing is planned there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Incomplete {
    /// The project, the section or the entry.
    pub address: Address,
    /// Why.
    pub reason: Cause,
}

/// What the comparison of a section brings.
#[derive(Default)]
pub struct SectionDiff {
    /// What differs, in the order of the entries; removals of unlisted entries last.
    pub differences: Vec<Difference>,
    /// Why other things do not happen.
    pub notes: Vec<Note>,
    /// What has to be put right first.
    pub problems: Vec<Problem>,
    /// Entries of which too little is known.
    pub incomplete: Vec<Incomplete>,
}

/// What a comparison may look at besides the two sides.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The project.
    pub target: &'a Target,
    /// Its address.
    pub project: &'a Address,
    /// Who asks.
    pub caller: &'a Caller,
    /// The user in whose personal namespace the project is.
    pub personal_owner: Option<u64>,
    /// The users that entries name.
    pub users: &'a Users,
    /// What secret references stand for, as far as it is known here.
    pub secrets: &'a Secrets,
    /// The objects whose write-only fields are sent again.
    pub resend: &'a [Selector],
}

/// Compares a declared section with the live one.
///
/// # Errors
/// Why the live section does not say enough: then nothing is concluded.
pub fn section(
    declared: &Section,
    live: &Collection,
    context: Context<'_>,
) -> Result<SectionDiff, Cause> {
    let live = live.entries().map_err(Cause::clone)?;
    let mut diff = SectionDiff::default();
    // The live entries that a declared one stands for.
    let mut listed: Vec<&LiveEntry> = Vec::new();
    let mut doubt = Doubt::default();
    for entry in &declared.entries {
        let comparing = Comparing::new(declared.kind, entry, context);
        let listed_before = listed.len();
        match comparing.find(live) {
            Match::None => comparing.absent(&mut diff),
            Match::One(found) if !listed.iter().any(|other| std::ptr::eq(*other, found)) => {
                listed.push(found);
                comparing.present(found, &mut diff);
                for copy in live.iter().filter(|other| comparing.is_copy(found, other)) {
                    listed.push(copy);
                    let address = comparing.address.entry(format!(
                        "{}@{}",
                        entry.key,
                        plain_text(&copy.handle)
                    ));
                    diff.differences.push(removal(
                        declared.kind,
                        address,
                        &entry.origin,
                        copy,
                        context.target,
                    ));
                }
            }
            Match::One(_) => {
                comparing
                    .ambiguous("another entry already matches the same live object", &mut diff);
            }
            Match::Ambiguous(why) => {
                doubt.unmatched = true;
                comparing.ambiguous(why, &mut diff);
            }
            Match::Unknown => doubt.unmatched = true,
        }
        doubt.secret |= listed.len() == listed_before && comparing.is_told_by_secret();
        comparing.secrets_missing(&mut diff);
        comparing.secrets_unfit(&mut diff);
    }
    for entry in
        live.iter().filter(|entry| !listed.iter().any(|other| std::ptr::eq(*other, *entry)))
    {
        unlisted(declared, entry, doubt, context, &mut diff);
    }
    Ok(diff)
}

/// What an unlisted live entry may be all the same.
#[derive(Clone, Copy, Default)]
struct Doubt {
    /// A declared one could not be told from others, so this may be it.
    unmatched: bool,
    /// A declared one that is told by a secret was not found: what tells this one may be that
    /// secret, or what it was before.
    secret: bool,
}

/// Why a live entry is spared that may be a declared one of which too little is known.
const UNMATCHED: &str = "may be a declared one: ambiguous";

/// What happens to a live entry that no manifest lists.
fn unlisted(
    declared: &Section,
    live: &LiveEntry,
    doubt: Doubt,
    context: Context<'_>,
    diff: &mut SectionDiff,
) {
    let kind = declared.kind;
    if kind.shape() != crate::kind::Shape::List || declared.unlisted == Unlisted::Ignore {
        return;
    }
    let id = || format!("{}:{}", kind.handle().0, plain_text(&live.handle));
    let address = context.project.section(kind.section()).entry(if doubt.secret {
        id()
    } else {
        kind.key(&live.fields)
    });
    let user = access_of(kind, live).map(|(user, _)| user);
    let spared = live
        .protected
        .or_else(|| (user == Some(context.caller.id)).then_some("the token's own access"))
        .or_else(|| {
            (user.is_some() && user == context.personal_owner)
                .then_some("the owner of the personal namespace")
        })
        .or_else(|| doubt.unmatched.then_some(UNMATCHED));
    let note = |reason| Note {
        address: address.clone(),
        reason,
        fields: Vec::new(),
        origin: Some(declared.origin.clone()),
    };
    let policy =
        if Bug::RemoveUnlisted.is_planted() { Unlisted::Delete } else { declared.unlisted };
    match (policy, spared) {
        (Unlisted::Delete, None) => diff.differences.push(removal(
            kind,
            address,
            &declared.unlisted_origin,
            live,
            context.target,
        )),
        (Unlisted::Delete, Some(why)) => {
            diff.notes.push(note(Reason::Protected { why: why.into() }));
        }
        // Bots come and go with the tokens that they belong to; a report of them would never end.
        _ if live.protected.is_some() => {}
        _ if doubt.unmatched => diff.notes.push(note(Reason::Protected { why: UNMATCHED.into() })),
        _ => diff.notes.push(note(Reason::Unlisted)),
    }
}

fn removal(
    kind: &dyn Kind,
    address: Address,
    origin: &Origin,
    live: &LiveEntry,
    target: &Target,
) -> Difference {
    let identity = kind.identity();
    let changes = live
        .fields
        .iter()
        .filter(|(name, _)| !identity.contains(&name.as_str()) && kind.table().get(name).is_some());
    let changes = changes.map(|(name, value)| Change {
        field: name.clone(),
        before: shown_live(kind.table().field(name), Some(value)),
        after: Shown::Absent,
        origin: None,
    });
    Difference {
        address,
        action: Action::Delete,
        origin: origin.clone(),
        changes: changes.collect(),
        requests: kind.delete(target, live),
        live: Some(live.clone()),
        access: access_of(kind, live).map(|(user, before)| AccessChange { user, before, after: 0 }),
    }
}

/// The user that an entry gives access to, and the level.
fn access_of(kind: &dyn Kind, live: &LiveEntry) -> Option<(u64, u8)> {
    Some((live.handle.as_u64()?, kind.access(&live.fields)?))
}

fn shown_live(field: &Field, value: Option<&Json>) -> Shown {
    match (value, field.secrecy) {
        (None, _) => Shown::Unknown,
        (Some(_), Secrecy::Sensitive | Secrecy::Reference) => Shown::Hidden,
        (Some(value), Secrecy::Open | Secrecy::Address) => Shown::Value(shown_plain(field, value)),
    }
}

/// A field of an object that is about to be created.
pub fn creation_change(kind: &dyn Kind, name: &str, declared: &Sourced<Value>) -> Change {
    let after = match &declared.value {
        Value::Secret(reference) => Shown::Secret(reference.to_string()),
        Value::File(path) => Shown::File(path.clone()),
        Value::Plain(value) => Shown::Value(shown_plain(kind.table().field(name), value)),
    };
    Change {
        field: name.to_owned(),
        before: Shown::Absent,
        after,
        origin: Some(declared.origin.clone()),
    }
}

/// Plain data without the credentials that an address may hold.
fn shown_plain(field: &Field, value: &Json) -> Json {
    match (field.secrecy, value) {
        (Secrecy::Address, Json::String(url)) => text::mask_url(url).into(),
        _ => value.clone(),
    }
}
