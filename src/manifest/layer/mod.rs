//! The second part: located documents to merged groups and projects.
//!
//! In come the documents of all files. Out comes one [`Merged`] for each group and project: what
//! `Defaults` say of its path, what the `Profile`s say that it uses, and what its own document says,
//! put together. In each section the parts, in each part the fields, each with the origin of the
//! document that it was taken from. This part decides what outranks what (`rules`), puts it together
//! (`merge`), and fills in templates (`text`); whether the whole makes sense is checked later.
//!
//! | layer | outranks | among each other |
//! |---|---|---|
//! | `Defaults` | | the more literal match; different claims of equal matches are an error |
//! | `Profile` | `Defaults` | the later in `uses`, what a profile itself uses before it |
//! | `Group`, `Project` | both | one document for each |
//!
//! What a rule brings in (`undeclared: include`) has no document of its own. Which paths that are is
//! known only to the service; offline the rules are tried on invented ones ([`include`]).

use std::sync::Arc;

use super::{
    faults::{Faults, Spot},
    parallel::for_each,
    read::document::{Acknowledge, Body, Container, Document},
};
use crate::{address::Glob, desired::Life, field::Scope, origin::Sourced};

mod include;
mod merge;
mod rules;
mod text;
mod trace;

pub(super) use include::Included;
pub(super) use rules::Rules;
pub use trace::{Fate, Link, Said, Told, Trace, What};

/// A group or project, put together from every document that says something about it.
#[derive(Clone, Debug)]
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
    /// What rules would bring in at paths that are invented, only to be checked, and what is wrong
    /// with the layers of it.
    pub(super) invented: Vec<(Merged, Faults)>,
    /// All rules, for what they bring in.
    pub(super) rules: Rules,
    /// What guards may let pass, ordered by what they say.
    pub(super) acknowledged: Vec<Acknowledge>,
    /// How those were put together for which somebody asked.
    pub(super) traces: Vec<Trace>,
    /// What is wrong between documents.
    pub(super) faults: Faults,
}

/// Merges the documents, whose order does not matter, and traces what is at `traced`.
pub(super) fn merge(documents: Vec<Document>, traced: &[Glob]) -> Layered {
    let mut layered = Layered::default();
    let (mut containers, mut rules) = (Vec::new(), Vec::new());
    for document in documents {
        match document {
            Document::Container(container) => containers.push(*container),
            Document::Rule(rule) => rules.push(*rule),
            Document::Acknowledge(document) => layered.acknowledged.push(*document),
        }
    }
    let key = |container: &Container| {
        (container.path.value.to_lowercase(), container.path.origin.clone())
    };
    containers.sort_by_cached_key(key);
    twice(&containers, &mut layered.faults);
    let rules = Rules::new(rules, &mut layered.faults);
    let merged = for_each(containers, |container| one(container, &rules, traced));
    for (merged, trace, faults) in merged {
        layered.containers.push(merged);
        layered.traces.extend(trace);
        layered.faults.0.extend(faults.0);
    }
    include::invented(&rules, &mut layered);
    rules.idle(&mut layered.faults);
    layered.rules = rules;
    layered.acknowledged.sort_by_cached_key(|document| {
        let known = document.known.clone();
        let written = (known.guard, known.at.written().to_owned());
        (written, known.at_most, known.until, known.reason, known.origin)
    });
    layered
}

/// One group or project with all that is said about it.
fn one(container: Container, rules: &Rules, traced: &[Glob]) -> (Merged, Option<Trace>, Faults) {
    let mut faults = Faults::default();
    let Container { scope, path, is_named, life, body } = container;
    let layers = rules.of(scope, &path, &body, &mut faults);
    let lower = path.value.to_lowercase();
    let own = traced.iter().any(|glob| glob.matches(&lower)).then(|| body.clone());
    // What is to be gone has nothing else said about it.
    let body = if life.absent().is_some() || (layers.is_empty() && body.is_closed()) {
        body
    } else {
        merge::merge(&path, &layers, &body, &mut faults)
    };
    rules.count(&layers, &body);
    let merged = Merged { scope, path, is_named, life, body };
    let trace = own.map(|own| Trace::new(&layers, &own, merged.clone()));
    (merged, trace, faults)
}

/// A group or project that is declared twice is an error at both places. Both share one space of
/// paths.
fn twice(containers: &[Container], faults: &mut Faults) {
    let same =
        |a: &Container, b: &Container| a.path.value.to_lowercase() == b.path.value.to_lowercase();
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
