//! Snapshots. A snapshot is one file with everything that plans read from a service. With a
//! snapshot, a job that plans a merge request needs no token.
//!
//! A snapshot keeps responses of the service, reduced to the fields that plans use (`reduce`). The
//! responses are stored by their content, not by request: groups and projects, lists of groups and
//! projects (rosters), collections, and users (`contents`). Therefore a snapshot can also answer
//! the requests that other manifests need. [`SnapshotRecorder`] is a transport between client and
//! service that fills a snapshot with everything that a plan reads. [`OfflineTransport`] is a
//! transport that answers from a snapshot and has no connection. The code that observes, diffs and
//! plans depends on neither transport.
//!
//! A request that the snapshot cannot answer is a failed read, never absence. There is one
//! exception: the snapshot may have the complete list of the groups or projects below a group. Then
//! a path below this group that is not in the list does not exist.

mod contents;
pub mod file;
mod offline;
mod question;
mod reduce;
mod seal;
mod take;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

pub use contents::SnapshotContents;
pub use offline::OfflineTransport;
pub use take::SnapshotRecorder;

/// The header of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The address of the service.
    pub service_address: String,
    /// True if the service was the embedded sandbox.
    pub is_sandbox: bool,
    /// When the snapshot was started.
    pub started_at: Timestamp,
    /// The id of the key for digests of secret values
    /// ([`DigestKey::id`](crate::digest::DigestKey::id)); `None` if the snapshot has no such
    /// digests.
    pub key_id: Option<String>,
}

/// Everything that plans read from a service.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The header: the service, the time and the key.
    pub header: SnapshotHeader,
    /// The recorded responses.
    pub contents: SnapshotContents,
}

/// Formats `instant` to the minute, for messages.
pub fn format_to_minute(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
