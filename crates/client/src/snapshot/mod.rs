//! Snapshots: everything that plans read from a service, in one file, so that a job that plans a
//! merge request needs no token.
//!
//! A snapshot keeps answers of the service, reduced to the fields that plans use (`reduce`). They
//! are stored by what they contain, not by request: groups and projects, lists of groups and projects
//! (rosters), collections, users (`contents`). So a
//! snapshot can also answer the requests of other manifests. [`SnapshotRecorder`] is a transport
//! between client and service that fills a snapshot: it records everything that a plan reads.
//! [`OfflineTransport`] is a transport that answers from a snapshot and has no connection.
//! Observing, diffing and planning depend on neither of them.
//!
//! A request that the snapshot cannot answer is a failed read, never absence. The exception is a
//! path below a group of which the snapshot has the complete list of groups or projects: if the path is not
//! in that list, it does not exist.

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
    /// The key of the digests of secret values ([`DigestKey::id`](crate::digest::DigestKey::id)), if there are
    /// any.
    pub key_id: Option<String>,
}

/// Everything that plans read from a service.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The header.
    pub header: SnapshotHeader,
    /// The contents.
    pub contents: SnapshotContents,
}

/// Formats `instant` to the minute, for messages.
pub fn format_to_minute(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
