//! The second part of loading: merges documents into groups and projects.
//!
//! The input is the documents of all files. The output is one [`DeclaredContainer`] for each group
//! and project. The container is merged from the `Defaults` that match its path, the `Profile`s
//! that it uses, and its own document. Every field keeps the origin of its document. `rules` orders
//! the layers, `merge` merges them, and `fill` and `text` fill in templates. `check` checks the
//! result later.
//!
//! | layer | outranks | among each other |
//! |---|---|---|
//! | `Defaults` | | the more literal match; different values of equal matches are an error |
//! | `Profile` | `Defaults` | the later in `uses`; a profile outranks the profiles that it uses |
//! | `Group`, `Project` | `Defaults`, `Profile` | one document for each group or project |
//!
//! Containers that a rule includes (`undeclared: include`) have no document. Only the service knows
//! their paths. Offline, the rules are checked at sample paths ([`include`]).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    faults::{Faults, placeholders, texts},
    parallel::map_parallel,
    read::document::{DeclaredContainer, Document, DocumentAcknowledgement, FilledName},
};
use crate::{address::Glob, desired::Acknowledgement, secret::Reference};

mod fill;
mod idle;
mod include;
mod merge;
mod rules;
mod slots;
mod text;
mod trace;

pub(super) use rules::LayerRules;
pub(super) use text::find_references;
pub use trace::{ChainLink, LayerEffect, LayerValue, Trace, TracedLayer, TracedValue};

/// The result of merging all documents.
#[derive(Debug, Default)]
pub(super) struct MergeResult {
    /// The groups and projects, ordered by their lower-case paths. If a path is declared twice, the
    /// list has both declarations, because they may have different faults.
    #[expect(clippy::vec_box, reason = "each is freed as soon as it is checked")]
    pub(super) containers: Vec<Box<DeclaredContainer>>,
    /// Containers at sample paths that rules would include, with the faults of their layers. These
    /// containers are only checked.
    pub(super) sample_containers: Vec<(Box<DeclaredContainer>, Faults)>,
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
pub(super) fn merge_documents(documents: Vec<Document>, traced_globs: &[Glob]) -> MergeResult {
    let mut result = MergeResult::default();
    let (mut containers, mut rules) = (Vec::new(), Vec::new());
    for document in documents {
        match document {
            Document::Container(container) => containers.push(container),
            Document::Rule(rule) => rules.push(*rule),
            Document::Acknowledge(document) => result.acknowledgements.push(*document),
        }
    }
    containers.sort_by_cached_key(|container| (path_key(container), container.path.origin.clone()));
    check_duplicates(&containers, &mut result.faults);
    let rules = LayerRules::new(rules, &mut result.faults);
    for (container, trace, faults) in
        map_parallel(containers, |container| merge_container(container, &rules, traced_globs))
    {
        result.containers.push(container);
        result.traces.extend(trace);
        result.faults.items.extend(faults.items);
    }
    drop_used_param_faults(&result.containers, &mut result.faults);
    check_shared_secrets(&result.containers, &mut result.faults);
    include::merge_sample_paths(&rules, &mut result);
    rules.report_idle(&result.containers, &mut result.faults);
    result.rules = rules;
    result.acknowledgements.sort_by_cached_key(|declaration| {
        let Acknowledgement { guard, selector, max_objects, until, reason, origin } =
            declaration.acknowledgement.clone()?;
        Some((guard, selector.pattern().to_owned(), max_objects, until, reason, origin))
    });
    result
}

/// Merges one group or project.
fn merge_container(
    mut container: Box<DeclaredContainer>,
    rules: &LayerRules,
    traced_globs: &[Glob],
) -> (Box<DeclaredContainer>, Option<Trace>, Faults) {
    let mut faults = Faults::default();
    let layers = rules.collect_layers(&container, &mut faults);
    let DeclaredContainer { path, lifecycle, body, .. } = &mut *container;
    let lower_path = path.value.to_lowercase();
    let is_traced = traced_globs.iter().any(|glob| glob.matches(&lower_path));
    let document_body = is_traced.then(|| body.clone());
    let params = std::mem::take(&mut body.params);
    // An absent container is not merged: nothing else may be declared for it.
    let is_absent = lifecycle.absent_origin().is_some();
    if !(is_absent || layers.rules.is_empty() && body.is_plain()) {
        *body = merge::merge_layers(path, &layers, body, &mut faults);
    }
    LayerRules::track_use(&layers, body, is_absent);
    // Unused parameters are only reported if there is no fault: a misspelled parameter may be the
    // cause of a fault.
    if faults.is_empty() {
        for (name, value) in params.iter().filter(|(name, _)| !layers.uses_param(name, body)) {
            idle::report_idle_param(name, &value.origin, body.params.keys(), &mut faults);
        }
    }
    let trace =
        document_body.map(|document_body| Trace::new(&layers, &document_body, container.clone()));
    (container, trace, faults)
}

/// Drops faults about unused parameters of a document with several paths if one of the paths uses
/// them.
fn drop_used_param_faults(containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    let multi_path_containers = containers.iter().filter(|container| container.shares_document);
    let params = multi_path_containers.flat_map(|container| container.body.params.values());
    let used_origins: BTreeSet<_> = params.map(|param| &param.origin).collect();
    faults.items.retain(|fault| {
        fault.code != texts::IDLE_PARAM[1] || !used_origins.contains(&fault.position.origin)
    });
}

/// Reports two groups or projects in which templates result in the same name of a secret. One group
/// or project would get the secret of the other. For included containers, [`text`] refuses templates
/// in names of secrets.
fn check_shared_secrets(containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    let mut owner_by_secret: BTreeMap<&Reference, (&DeclaredContainer, &[String])> =
        BTreeMap::new();
    for container in containers {
        for FilledName { secret, inserted_texts, origin } in &container.body.filled_names {
            let (first_container, first_inserted_texts) =
                *owner_by_secret.entry(secret).or_insert((container, inserted_texts));
            if first_container.path.value == container.path.value
                || first_inserted_texts == inserted_texts
            {
                continue;
            }
            let (one, other) = (&first_container.path.value, &container.path.value);
            let (Reference::Env(name) | Reference::File(name)) = secret else { continue };
            let problem_texts = match secret {
                Reference::File(_) => texts::SHARED_FILE,
                _ if text::variable_name(one) == text::variable_name(other) => {
                    texts::SHARED_VARIABLE_SPELLING
                }
                _ => texts::SHARED_VARIABLE,
            };
            faults.report_key(problem_texts, origin, placeholders![secret = name, one, other]);
        }
    }
}

/// The path in lower case. Paths that differ only in case are equal.
fn path_key(container: &DeclaredContainer) -> String {
    container.path.value.to_lowercase()
}

/// Reports groups and projects that are declared twice, with both places. A group and a project
/// cannot have the same path.
fn check_duplicates(containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    for duplicates in containers.chunk_by(|a, b| path_key(a) == path_key(b)) {
        let Some((first_container, others)) = duplicates.split_first() else { continue };
        let is_one_scope = others.iter().all(|other| other.scope == first_container.scope);
        let problem_texts =
            if is_one_scope { texts::DECLARED_TWICE } else { texts::DECLARED_AS_BOTH };
        for other in others {
            let path = &other.path.value;
            let has_same_case = first_container.path.value == *path;
            let other_case = "; the service ignores case in paths";
            let case = if has_same_case { "" } else { other_case };
            let origins = [&other.path.origin, &first_container.path.origin];
            faults.report_values(problem_texts, origins, placeholders![path, case]);
        }
    }
}
