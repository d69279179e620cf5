//! Writes that differ, each with the reason. At most 20.

/// The name of an exchange, and why it may differ.
pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[
    ("var/group-delete-0009", "it had an If-Unmodified-Since, which was not recorded"),
    ("var/group-delete-0010", "it deletes what the request before it did not"),
];
