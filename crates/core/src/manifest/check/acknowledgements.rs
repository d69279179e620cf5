//! Checks acknowledgements: reports acknowledgements that have expired, and acknowledgements that
//! cannot match any refusal.

use super::{CheckContext, ContainersByPath};
use crate::{
    address::is_literal,
    desired::{self, Acknowledgement, Guard},
    field::Scope,
    manifest::{
        faults::{Faults, placeholders, texts},
        layer::LayerRules,
        read::document::DocumentAcknowledgement,
    },
    origin::Origin,
    text::nearest,
};

/// The acknowledgements in `declarations`. Warns about expired acknowledgements, which the planner
/// ignores. Also warns about acknowledgements that match no declared object, or no possible
/// refusal. Reports addresses such as `group/project/section`, which must be
/// `group/project#section`.
pub(super) fn check_acknowledgements(
    declarations: Vec<DocumentAcknowledgement>,
    containers_by_path: &ContainersByPath<'_>,
    rules: &LayerRules,
    context: &CheckContext,
    faults: &mut Faults,
) -> Vec<Acknowledgement> {
    let expiry_dates = declarations.iter().filter_map(|document| document.until.as_ref());
    for expiry_date in expiry_dates.filter(|until| until.value < context.today) {
        faults.report_value(texts::EXPIRED, &expiry_date.origin, &[]);
    }
    let acknowledgements: Vec<_> =
        declarations.into_iter().filter_map(|declaration| declaration.acknowledgement).collect();
    let idle_flags = desired::find_idle_acknowledgements(
        &acknowledgements,
        containers_by_path.values().copied(),
    );
    for (acknowledgement, is_idle) in acknowledgements.iter().zip(idle_flags) {
        let Some(origin) = &acknowledgement.origin else { continue };
        let address = acknowledgement.selector.pattern();
        let lower_path = acknowledgement.selector.path_pattern().to_ascii_lowercase();
        if let Some(project_end) = find_project_end(&lower_path, containers_by_path) {
            let rest = address.get(project_end + 1..).unwrap_or_default().replace('.', "/");
            let args = placeholders![project = &address[..project_end], rest];
            faults.report_value(texts::INSIDE_PROJECT, origin, args);
        } else if is_idle {
            check_declared_path(acknowledgement, origin, containers_by_path, rules, faults);
        }
        let lower_address = address.to_lowercase();
        let Some(container) = containers_by_path.get(&lower_address) else { continue };
        let problem_texts = match (acknowledgement.guard, container.lifecycle.absent_origin()) {
            (Guard::Deletion, None) => texts::NO_DELETION,
            (Guard::Deletion, Some(_)) => continue,
            (_, Some(_)) => texts::ACKNOWLEDGED_DELETION,
            (Guard::Transfer, None) if container.lifecycle.former_paths.is_empty() => {
                texts::NO_TRANSFER
            }
            _ => continue,
        };
        let args = placeholders![noun = container.scope.noun()];
        faults.report_values(problem_texts, [origin, &container.origin], args);
    }
    acknowledgements
}

/// Warns about an acknowledgement whose path is neither declared nor included by a rule.
fn check_declared_path(
    acknowledgement: &Acknowledgement,
    origin: &Origin,
    containers_by_path: &ContainersByPath<'_>,
    rules: &LayerRules,
    faults: &mut Faults,
) {
    let address = acknowledgement.selector.pattern();
    let path = acknowledgement.selector.path_pattern().to_ascii_lowercase();
    let is_included = if is_literal(&path) {
        Scope::ALL.iter().any(|scope| rules.including_rule(*scope, &path, false).is_some())
    } else {
        rules.iter().any(|rule| rule.includes_undeclared)
    };
    if is_included {
        return;
    }
    let candidates = containers_by_path.values().filter(|container| match acknowledgement.guard {
        Guard::Deletion => container.lifecycle.absent_origin().is_some(),
        Guard::Transfer => !container.lifecycle.former_paths.is_empty(),
        _ => true,
    });
    let candidates: Vec<&str> = candidates.map(|container| &*container.path).collect();
    let name = path.rsplit('/').next().unwrap_or_default();
    let similar_path = nearest(&path, candidates.iter().copied()).or_else(|| {
        let mut candidates = candidates.into_iter();
        candidates.find(|other| other.to_lowercase().rsplit('/').next() == Some(name))
    });
    let path_length = acknowledgement.selector.path_pattern().len();
    let address_end = address.get(path_length..).unwrap_or_default();
    let fault = faults.report_value(texts::ACKNOWLEDGES_NOTHING, origin, &[]);
    fault.suggest_name(similar_path.map(|nearest_path| format!("{nearest_path}{address_end}")));
}

/// The length of the project's path if the lower-case `path` names something inside a declared
/// project. `None` if `path` is itself a project, or is not inside a project.
fn find_project_end(path: &str, containers_by_path: &ContainersByPath<'_>) -> Option<usize> {
    let is_project = |path: &str| {
        containers_by_path.get(path).is_some_and(|container| container.scope == Scope::Project)
    };
    let mut prefix_lengths = path.match_indices(['/', '.', ':']).map(|(end, _)| end);
    prefix_lengths.find(|end| !is_project(path) && is_project(&path[..*end]))
}
