//! The second part: located documents to merged groups and projects.
//!
//! In come the documents of all files. Out comes one [`Merged`] for each group and project: in each
//! section the parts, in each part the fields, each with the origin of the document that it was
//! taken from. This part decides what outranks what, and nothing else: it changes no value, and
//! whether the whole makes sense is checked later.
//!
//! There is one layer for now: exactly one document for each group or project. So merging is finding
//! those that have two.

use std::sync::Arc;

use super::{
    faults::{Faults, Spot},
    read::document::{Acknowledge, Body, Container, Document},
};
use crate::{desired::Life, field::Scope, origin::Sourced};

/// A group or project, put together from every document that says something about it.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) scope: Scope,
    /// The full path, and where the document that declares it says so.
    pub(super) path: Sourced<Arc<str>>,
    /// Whether what declares it was named.
    pub(super) is_named: bool,
    /// What becomes of it as a whole, as its own document says.
    pub(super) life: Life,
    /// What the layers come to.
    pub(super) body: Body,
}

/// What all documents come to.
#[derive(Debug, Default)]
pub(super) struct Layered {
    /// The groups and projects, ordered by their path in lower case. Of those that are declared
    /// twice both are here, since either may have other faults.
    pub(super) containers: Vec<Merged>,
    /// What guards may let pass, ordered by what they say.
    pub(super) acknowledged: Vec<Acknowledge>,
    /// What is wrong between documents.
    pub(super) faults: Faults,
}

/// Merges the documents, whose order does not matter.
pub(super) fn merge(documents: Vec<Document>) -> Layered {
    let mut layered = Layered::default();
    for document in documents {
        match document {
            Document::Container(Container { scope, path, is_named, life, body }) => {
                layered.containers.push(Merged { scope, path, is_named, life, body });
            }
            Document::Acknowledge(document) => layered.acknowledged.push(*document),
        }
    }
    let key = |merged: &Merged| (merged.path.value.to_lowercase(), merged.path.origin.clone());
    layered.containers.sort_by_cached_key(key);
    layered.acknowledged.sort_by_cached_key(|document| {
        let known = document.known.clone();
        let written = (known.guard, known.at.written().to_owned());
        (written, known.at_most, known.until, known.reason, known.origin)
    });
    twice(&layered.containers, &mut layered.faults);
    layered
}

/// A group or project that is declared twice is an error at both places. Both share one space of
/// paths.
fn twice(containers: &[Merged], faults: &mut Faults) {
    let same = |a: &Merged, b: &Merged| a.path.value.to_lowercase() == b.path.value.to_lowercase();
    for declared in containers.chunk_by(same) {
        let Some((first, others)) = declared.split_first() else { continue };
        let help = if others.iter().all(|other| other.scope == first.scope) {
            format!("keep one document for each {}", first.scope.noun())
        } else {
            "a path belongs to a group or to a project, never to both".to_owned()
        };
        for other in others {
            let is_same = first.path.value == other.path.value;
            let case =
                if is_same { "" } else { "; the service takes paths for the same in any case" };
            let message = format!("`{}` is declared twice{case}", other.path.value);
            faults
                .error("duplicate-project", message, Spot::value(&other.path.origin))
                .related(Spot::value(&first.path.origin), "first declared here")
                .help(help.clone());
        }
    }
}
