//! The contract of the embedded service, checked over real HTTP on the loopback interface.
//!
//! Every test names where its expectation comes from: [`Source::Reference`] with chapter and section,
//! [`Source::Service`] where the reference is silent and the real service is known, [`Source::Inferred`] where
//! neither says and a choice was made.
#![cfg(feature = "sandbox")]

mod actions;
mod around;
mod client;
mod members;
mod operations;
mod paging;
mod projects;
mod running;
mod table;
mod things;

/// Where an expectation comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// The reference: chapter and section.
    Reference(&'static str),
    /// The real service.
    Service,
    /// A choice of the sandbox.
    Inferred,
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reference(section) => write!(formatter, "the reference ({section})"),
            Self::Service => formatter.write_str("the real service"),
            Self::Inferred => formatter.write_str("a choice of the sandbox"),
        }
    }
}
