//! What people write: loaded, checked, and resolved to [`Desired`].

pub mod desired;

pub use desired::{Desired, Entry, Project, Section, State, Unlisted};
