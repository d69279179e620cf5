//! The sorts of notes, and the object of a note.

use super::step::tail;
use crate::{
    address::Address,
    diff::{Note, Reason},
};

/// The sort of a note, in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::report) enum Sort {
    ArchivedByHand,
    Archived,
    Vanished,
    Closed,
    UndeclaredFails,
    UnlistedFails,
    Undeclared,
    Unlisted,
    Protected,
    TakesAlong,
    Besides,
    Waits,
    NotReturned,
    CannotVerify,
    SecretMissing,
}

impl Sort {
    /// The sort of a note with this reason.
    pub(in crate::report) const fn of(reason: &Reason) -> Self {
        match reason {
            Reason::ArchivedByHand => Self::ArchivedByHand,
            Reason::Archived => Self::Archived,
            Reason::Vanished => Self::Vanished,
            Reason::Closed { .. } => Self::Closed,
            Reason::UndeclaredFails { .. } => Self::UndeclaredFails,
            Reason::Undeclared { .. } => Self::Undeclared,
            Reason::UnlistedFails => Self::UnlistedFails,
            Reason::Unlisted => Self::Unlisted,
            Reason::Protected { .. } => Self::Protected,
            Reason::TakesAlong { .. } => Self::TakesAlong,
            Reason::Besides { .. } => Self::Besides,
            Reason::Waits { .. } => Self::Waits,
            Reason::NotReturned => Self::NotReturned,
            Reason::CannotVerify => Self::CannotVerify,
            Reason::SecretMissing { .. } => Self::SecretMissing,
        }
    }

    /// The title for all notes of this sort.
    pub(in crate::report) const fn title(self) -> &'static str {
        match self {
            Self::ArchivedByHand => {
                "archived, but not declared so: a difference; write `archived: true`, or `archived: false` to bring it back"
            }
            Self::Archived => "archived, as declared; skipped",
            Self::Vanished => {
                "deleted, renamed or archived while this run was reading; no rule brings it in any more"
            }
            Self::Closed => "closed, as declared; skipped",
            Self::UndeclaredFails => "projects that no manifest declares: a difference; unchanged",
            Self::Undeclared => "projects that no manifest declares; unchanged",
            Self::UnlistedFails => "not in any manifest: a difference; unchanged",
            Self::Unlisted => "not in any manifest; unchanged",
            Self::Protected => "protected from changes",
            Self::TakesAlong => {
                "grants that no manifest declares; the service removes them along with the share"
            }
            Self::Besides => "further effects of these steps",
            Self::NotReturned => {
                "not compared: the service does not return these fields, or ignores them in its tier"
            }
            Self::CannotVerify => {
                "cannot be verified: the service never returns these fields; `--resend` sends them again"
            }
            Self::SecretMissing => {
                "not compared: these secrets are not set here; `apply` needs them"
            }
            Self::Waits => "not sent yet; a later run sets it",
        }
    }
}

/// The object of a note, without its group or project; empty for the container itself.
pub fn object(note: &Note) -> String {
    let object = tail(&note.address);
    let about = match &note.reason {
        Reason::Archived | Reason::ArchivedByHand | Reason::Vanished => return String::new(),
        Reason::Undeclared { state } | Reason::UndeclaredFails { state } => {
            return state.unwrap_or_default().to_owned();
        }
        Reason::Unlisted | Reason::UnlistedFails => return object,
        Reason::Protected { why } | Reason::Closed { why } => why.clone(),
        Reason::Besides { what } => what.clone(),
        Reason::TakesAlong { grants_of } => {
            let each = |address: &Address| match address.entry {
                Some(_) => tail(address),
                None => format!("any of {}: not read", tail(address)),
            };
            grants_of.iter().map(each).collect::<Vec<_>>().join(", ")
        }
        Reason::Waits { why } => format!("{} waits {why}", note.fields.join(", ")),
        Reason::NotReturned | Reason::CannotVerify => note.fields.join(", "),
        Reason::SecretMissing { secrets } => secrets.join(", "),
    };
    format!("{object} ({about})")
}
