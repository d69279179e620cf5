//! Checks of acknowledgements: those that have ended, and those that acknowledge nothing.

use super::{CheckContext, DeclaredPaths};
use crate::{
    address::is_literal,
    desired::{self, Acknowledgement, Guard},
    field::Scope,
    manifest::{
        faults::{Faults, texts, words},
        layer::LayerRules,
        read::document::DocumentAcknowledgement,
    },
    origin::Origin,
    text::nearest,
};

/// An expired acknowledgement must not stop a run. Planning ignores it.
pub(super) fn check_expiry(
    document: DocumentAcknowledgement,
    context: &CheckContext,
    faults: &mut Faults,
) -> Option<Acknowledgement> {
    if let Some(until) = document.until.filter(|until| until.value < context.today) {
        faults.report_value(texts::EXPIRED, &until.origin, &[]);
    }
    document.content
}

/// Warns about acknowledgements that match no declared object, or no possible refusal.
pub(super) fn report_unused(
    all: &[Acknowledgement],
    declared: &DeclaredPaths<'_>,
    rules: &LayerRules,
    faults: &mut Faults,
) {
    let is_idle = desired::idle(all, declared.values().copied());
    for (acknowledgement, is_idle) in all.iter().zip(is_idle) {
        let Some(origin) = &acknowledgement.origin else { continue };
        if is_idle {
            check_path(acknowledgement, origin, declared, rules, faults);
        }
        let path = acknowledgement.at.written().to_lowercase();
        let Some(container) = declared.get(&path) else { continue };
        let texts = match (acknowledgement.guard, container.life.absent()) {
            (Guard::Deletion, None) => texts::NO_DELETION,
            (Guard::Deletion, Some(_)) => continue,
            (_, Some(_)) => texts::ACKNOWLEDGED_DELETION,
            (Guard::Transfer, None) if container.life.previously.is_empty() => texts::NO_TRANSFER,
            _ => continue,
        };
        let words = words![noun = container.scope.noun()];
        faults.report_values(texts, [origin, &container.origin], words);
    }
}

/// Warns about an acknowledgement of which the path is neither declared nor one that a rule includes.
fn check_path(
    acknowledgement: &Acknowledgement,
    at: &Origin,
    declared: &DeclaredPaths<'_>,
    rules: &LayerRules,
    faults: &mut Faults,
) {
    let address = acknowledgement.at.written();
    let path = acknowledgement.at.over_paths().to_lowercase();
    let is_included = if is_literal(&path) {
        Scope::ALL.iter().any(|scope| rules.including_rule(*scope, &path, false).is_some())
    } else {
        rules.all().any(|rule| rule.includes_undeclared)
    };
    // A path inside a project has a message of its own.
    if is_included || enclosing_project(&path, declared).is_some() {
        return;
    }
    let candidates = declared.values().filter(|container| match acknowledgement.guard {
        Guard::Deletion => container.life.absent().is_some(),
        Guard::Transfer => !container.life.previously.is_empty(),
        _ => true,
    });
    let candidates: Vec<&str> = candidates.map(|container| &*container.path).collect();
    let name = path.rsplit('/').next().unwrap_or_default();
    let near = nearest(&path, candidates.iter().copied()).or_else(|| {
        let mut candidates = candidates.into_iter();
        candidates.find(|other| other.to_lowercase().rsplit('/').next() == Some(name))
    });
    let rest = address.get(path.len()..).unwrap_or_default();
    let fault = faults.report_value(texts::ACKNOWLEDGES_NOTHING, at, &[]);
    fault.suggest(near.map(|near| format!("{near}{rest}")));
}

/// Reports acknowledgements for a path inside a project, where a `#` and a section must be.
pub(super) fn check_addresses(
    all: &[Acknowledgement],
    declared: &DeclaredPaths<'_>,
    faults: &mut Faults,
) {
    for acknowledgement in all {
        let address = acknowledgement.at.written();
        let path = acknowledgement.at.over_paths().to_lowercase();
        let end = enclosing_project(&path, declared);
        let (Some(end), Some(origin)) = (end, &acknowledgement.origin) else { continue };
        let rest = address.get(end + 1..).unwrap_or_default().replace('.', "/");
        let words = words![project = &address[..end], rest];
        faults.report_value(texts::INSIDE_PROJECT, origin, words);
    }
}

/// The length of the path of the declared project that the lower-case `path` names something in; `None` if it
/// is that of a project.
fn enclosing_project(path: &str, declared: &DeclaredPaths<'_>) -> Option<usize> {
    let is_project = |path: &str| declared.get(path).is_some_and(|of| of.scope == Scope::Project);
    let mut ends = path.match_indices(['/', '.', ':']).map(|(end, _)| end);
    ends.find(|end| !is_project(path) && is_project(&path[..*end]))
}
