//! Checks of acknowledgements: those that have ended, and those that acknowledge nothing.

use super::{ByPath, Context};
use crate::{
    address::is_literal,
    desired::{self, Acknowledgement, Container, Guard},
    field::Scope,
    manifest::{
        faults::{Faults, Spot},
        layer::Rules,
        read::document::Acknowledge,
    },
    text::nearest,
};

/// An expired acknowledgement must not stop a run. Planning ignores it.
pub(super) fn read(
    document: Acknowledge,
    context: &Context,
    faults: &mut Faults,
) -> Option<Acknowledgement> {
    if let Some(until) = document.until.filter(|until| until.value < context.today) {
        faults
            .warning("date", "`until` is in the past", Spot::value(&until.origin))
            .help("take the document away, or write a later day");
    }
    document.known
}

/// Reports acknowledgements that name nothing, and those of what the declarations cannot do to the very
/// project or group that is named.
pub(super) fn in_vain(
    all: &[Acknowledgement],
    by_path: &ByPath<'_>,
    rules: &Rules,
    faults: &mut Faults,
) {
    for (known, is_idle) in all.iter().zip(desired::idle(all, by_path.values().copied())) {
        let Some(origin) = &known.origin else { continue };
        if is_idle {
            names_nothing(known, Spot::value(origin), by_path, rules, faults);
        }
        let Some(container) = by_path.get(&known.at.written().to_lowercase()) else { continue };
        if container.life.absent().is_some() && known.guard != Guard::Deletion {
            let message = "only `deletion` asks about a project that is deleted";
            let other = faults.warning("acknowledgement", message, Spot::value(origin));
            other.related(Spot::value(&container.origin), "deleted here");
            other.help("write `guard: deletion`, or take the document away");
            continue;
        }
        let (what, needed) = match known.guard {
            Guard::Deletion if container.life.absent().is_none() => ("deletes", "state: absent"),
            Guard::Transfer if container.life.previously.is_empty() => {
                ("moves", "previously: [FORMER/PATH]")
            }
            _ => continue,
        };
        let noun = container.scope.noun();
        let message = format!("nothing {what} the {noun} that this is for");
        let vain = faults.warning("acknowledgement", message, Spot::value(origin));
        vain.related(Spot::value(&container.origin), "declared here");
        vain.help(format!("take the acknowledgement away; only `{needed}` {what} a {noun}"));
    }
}

/// Reports an acknowledgement of which the path is neither declared nor one that a rule includes.
fn names_nothing(
    known: &Acknowledgement,
    at: Spot,
    by_path: &ByPath<'_>,
    rules: &Rules,
    faults: &mut Faults,
) {
    let (written, path) = (known.at.written(), known.at.over_paths().to_lowercase());
    let is_included = match is_literal(&path) {
        true => Scope::ALL.iter().any(|of| rules.including(*of, &path, false).is_some()),
        false => rules.all().any(|rule| rule.includes),
    };
    // A path inside a project has a message of its own.
    if is_included || project_around(&path, by_path).is_some() {
        return;
    }
    let name = |path: &str| path.rsplit('/').next().map(str::to_lowercase);
    let is_meant = |container: &&&Container| match known.guard {
        Guard::Deletion => container.life.absent().is_some(),
        Guard::Transfer => !container.life.previously.is_empty(),
        _ => true,
    };
    let meant = || by_path.values().filter(is_meant).map(|container| &*container.path);
    let near = nearest(&path, meant()).or_else(|| meant().find(|of| name(of) == name(&path)));
    let rest = written.get(path.len()..).unwrap_or_default();
    let message = "this acknowledges nothing: no group or project with this path is declared";
    faults.warning("acknowledgement", message, at).help(match near {
        Some(near) => format!("did you mean `{near}{rest}`?"),
        None => "correct `at`, or take the document away".to_owned(),
    });
}

/// Reports acknowledgements for a path inside a project, where a `#` and a section must be.
pub(super) fn inside_projects(all: &[Acknowledgement], by_path: &ByPath<'_>, faults: &mut Faults) {
    for known in all {
        let (at, path) = (known.at.written(), known.at.over_paths().to_lowercase());
        let end = project_around(&path, by_path);
        let (Some(end), Some(origin)) = (end, &known.origin) else { continue };
        let message = "`at` names something inside a project as if it were a path";
        let inside = faults.warning("acknowledgement", message, Spot::value(origin));
        let rest = at.get(end + 1..).unwrap_or_default().replace('.', "/");
        inside.help(format!("write `{}#{rest}`", &at[..end]));
    }
}

/// Where the declared project ends that the lower-case `path` names something in; `None` if it is one.
fn project_around(path: &str, by_path: &ByPath<'_>) -> Option<usize> {
    let is_project =
        |path: &str| by_path.get(path).is_some_and(|known| known.scope == Scope::Project);
    let mut ends = path.match_indices(['/', '.', ':']).map(|(end, _)| end);
    ends.find(|end| !is_project(path) && is_project(&path[..*end]))
}
