//! What plans need to know of a service, in one file: so that a job that plans a merge request needs
//! no token.
//!
//! A snapshot keeps what the service answered, cut down to what plans look at (`keep`), by the thing
//! that it is about and not by the request that brought it: objects, lists of what exists, collections,
//! users (`things`). So manifests that ask in another way, or for more, are answered from it too.
//! [`Taking`] is a transport between the client and the service that fills it: whatever a plan of the
//! manifests asks is in it because that plan asked it there. [`Offline`] is a transport that has
//! nothing but the snapshot, and so cannot reach anybody. Observing, diffing and planning know of
//! neither.
//!
//! What the snapshot does not have is a failed read, which is never absence. The exception is a path
//! below a group of which it knows all that exists: what is not among that does not exist.

pub mod file;
mod keep;
mod offline;
mod question;
mod seal;
mod take;
mod things;

use jiff::Timestamp;

pub use offline::Offline;
pub use take::Taking;
pub use things::Things;

/// What a snapshot says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The address of the service.
    pub target: String,
    /// Whether the service was the embedded sandbox.
    pub sandbox: bool,
    /// When it was begun.
    pub taken_at: Timestamp,
    /// Under which key it keeps what is secret as digests ([`Key::id`](crate::digest::Key::id)), if it does.
    pub key: Option<String>,
}

/// What plans need to know of a service.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// What it says about itself.
    pub head: Head,
    /// What is there.
    pub things: Things,
}

/// `instant` to the minute, as sentences show it.
pub fn shown(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
