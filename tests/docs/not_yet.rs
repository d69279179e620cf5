//! What the book and the pipeline use and what is not there yet. Each list fails for an entry that is
//! there already, and for one that nothing uses.

/// Parts of commands. A command that has one of them has to fail.
pub(crate) const COMMANDS: &[&str] = &[];

/// Options and environment variables that pages name in passing.
pub(crate) const NAMES: &[&str] = &[];

/// Tests that the threat model names, in order.
pub(crate) const TESTS: &[&str] = &[];
