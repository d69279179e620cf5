//! Writes that differ, each with the reason. At most 20.

/// The name of an exchange, and why it may differ.
pub(crate) const EXCEPTIONS: &[(&str, &str)] = &[];
