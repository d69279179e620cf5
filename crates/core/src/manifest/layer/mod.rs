//! The second part of loading: merges documents into groups and projects.
//!
//! The input is the documents of all files. The output is one [`Container`] for each group and
//! project: the `Defaults` that match its path, the `Profile`s that it uses, and its own document,
//! merged. Every field keeps the origin of its document. `rules` orders the layers, `merge` merges
//! them, and `text` fills in templates. The result is checked later.
//!
//! | layer | outranks | among each other |
//! |---|---|---|
//! | `Defaults` | | the more literal match; different values of equal matches are an error |
//! | `Profile` | `Defaults` | the later in `uses`; a profile outranks those that it uses |
//! | `Group`, `Project` | both | one document for each |
//!
//! Containers that a rule includes (`undeclared: include`) have no document of their own. Only the
//! service knows their paths; offline, the rules are checked at invented ones ([`include`]).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    faults::{Faults, NodePosition, texts, words},
    parallel::map_parallel,
    read::document::{DeclaredContainer, Document, DocumentAcknowledgement, FilledName},
};
use crate::{address::Glob, secret::Reference};

mod idle;
mod include;
mod merge;
mod rules;
mod slots;
mod text;
mod trace;

pub(super) use include::Included;
pub(super) use rules::LayerRules;
pub(super) use text::find_references;
pub use trace::{LayerEffect, LayerValue, Trace, TracedLayer, TracedSlot, TracedValue};

/// The result of merging all documents.
#[derive(Debug, Default)]
pub(super) struct Layered {
    /// The groups and projects, ordered by their path in lower case. If one is declared twice, both
    /// are here, because each may have other faults.
    #[expect(clippy::vec_box, reason = "each is freed as soon as it is checked")]
    pub(super) containers: Vec<Box<DeclaredContainer>>,
    /// Containers at invented paths that rules would include, only to check them, and the faults of
    /// their layers.
    pub(super) invented_containers: Vec<(Box<DeclaredContainer>, Faults)>,
    /// All rules, to include undeclared containers later.
    pub(super) rules: LayerRules,
    /// The acknowledgements, in order of their content.
    pub(super) acknowledgements: Vec<DocumentAcknowledgement>,
    /// The requested traces.
    pub(super) traces: Vec<Trace>,
    /// Faults that span documents.
    pub(super) faults: Faults,
}

/// Merges the documents, in any order, and traces the containers that `traced_globs` match.
pub(super) fn merge_documents(documents: Vec<Document>, traced_globs: &[Glob]) -> Layered {
    let mut layered = Layered::default();
    let (mut containers, mut rules) = (Vec::new(), Vec::new());
    for document in documents {
        match document {
            Document::Container(container) => containers.push(container),
            Document::Rule(rule) => rules.push(*rule),
            Document::Acknowledge(document) => layered.acknowledgements.push(*document),
        }
    }
    containers.sort_by_cached_key(|container| (path_key(container), container.path.origin.clone()));
    check_duplicates(&containers, &mut layered.faults);
    let rules = LayerRules::new(rules, &mut layered.faults);
    for (container, trace, faults) in
        map_parallel(containers, |container| merge_container(container, &rules, traced_globs))
    {
        layered.containers.push(container);
        layered.traces.extend(trace);
        layered.faults.items.extend(faults.items);
    }
    drop_used_params(&layered.containers, &mut layered.faults);
    check_shared_secrets(&layered.containers, &mut layered.faults);
    include::check_invented_paths(&rules, &mut layered);
    rules.report_idle(&layered.containers, &mut layered.faults);
    layered.rules = rules;
    layered.acknowledgements.sort_by_cached_key(|document| {
        document.content.clone().map(|content| {
            let address = (content.guard, content.selector.pattern().to_owned());
            (address, content.max_objects, content.until, content.reason, content.origin)
        })
    });
    layered
}

/// Merges one group or project.
fn merge_container(
    mut container: Box<DeclaredContainer>,
    rules: &LayerRules,
    traced_globs: &[Glob],
) -> (Box<DeclaredContainer>, Option<Trace>, Faults) {
    let mut faults = Faults::default();
    let DeclaredContainer { scope, path, lifecycle, body, .. } = &mut *container;
    let layers = rules.collect_layers(*scope, path, body, &mut faults);
    let lower = path.value.to_lowercase();
    let is_traced = traced_globs.iter().any(|glob| glob.matches(&lower));
    let document = is_traced.then(|| body.clone());
    let params = std::mem::take(&mut body.params);
    // Nothing else may be declared for an absent container.
    let is_absent = lifecycle.is_absent().is_some();
    if !(is_absent || layers.is_empty() && body.has_no_forms()) {
        *body = merge::merge_layers(path, &layers, body, &mut faults);
    }
    LayerRules::track_use(&layers, body, is_absent);
    // Unused parameters are only reported without faults: a fault may come from a misspelled
    // parameter.
    if faults.is_empty() {
        for (name, value) in params.iter().filter(|(name, _)| !layers.uses_param(name, body)) {
            idle::report_idle_param(name, &value.origin, body.params.keys(), &mut faults);
        }
    }
    let trace = document.map(|document| Trace::new(&layers, &document, container.clone()));
    (container, trace, faults)
}

/// Drops faults about parameters of a document with several paths that one of these uses.
fn drop_used_params(containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    let shared = containers.iter().filter(|container| container.is_shared);
    let used = shared.flat_map(|container| container.body.params.values());
    let used: BTreeSet<_> = used.map(|param| &param.origin).collect();
    faults.items.retain(|fault| {
        fault.code != texts::IDLE_PARAM[1] || !used.contains(&fault.position.origin)
    });
}

/// Reports templates in two groups or projects that result in the same secret name: one would get
/// the secret of the other. For included containers, [`text`] refuses such templates.
fn check_shared_secrets(containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    let mut owner_by_secret: BTreeMap<&Reference, (&DeclaredContainer, &[String])> =
        BTreeMap::new();
    for container in containers {
        for FilledName { secret, fillings, origin } in &container.body.filled_names {
            let (first, first_fillings) =
                *owner_by_secret.entry(secret).or_insert((container, fillings));
            if first.path.value == container.path.value || first_fillings == fillings {
                continue;
            }
            let (one, other) = (&first.path.value, &container.path.value);
            let (Reference::Env(name) | Reference::File(name)) = secret else { continue };
            let texts = match secret {
                Reference::File(_) => texts::SHARED_FILE,
                _ if text::variable_name(one) == text::variable_name(other) => {
                    texts::SHARED_VARIABLE_SPELLING
                }
                _ => texts::SHARED_VARIABLE,
            };
            faults.report_key(texts, origin, words![secret = name, one, other]);
        }
    }
}

/// The path in lower case: paths that differ only in case are one.
fn path_key(container: &DeclaredContainer) -> String {
    container.path.value.to_lowercase()
}

/// Reports groups and projects that are declared twice, at both places. Groups and projects share
/// one space of paths.
fn check_duplicates(containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    for declared in containers.chunk_by(|a, b| path_key(a) == path_key(b)) {
        let Some((first, others)) = declared.split_first() else { continue };
        let is_one_scope = others.iter().all(|other| other.scope == first.scope);
        let texts = if is_one_scope { texts::DECLARED_TWICE } else { texts::DECLARED_AS_BOTH };
        for other in others {
            let words = words![noun = first.scope.noun()];
            let fault = faults.report_value(texts, &other.path.origin, words);
            fault.related(NodePosition::value(&first.path.origin));
            let path = &other.path.value;
            let has_same_case = first.path.value == *path;
            let case = if has_same_case {
                ""
            } else {
                "; the service takes paths for the same in any case"
            };
            fault.message = format!("`{path}` is declared twice{case}");
        }
    }
}
