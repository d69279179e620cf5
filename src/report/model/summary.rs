//! The summary of a plan, in a few lines.

use std::collections::BTreeSet;

use crate::{
    diff::{Label, Reason},
    plan::{AppliedLimit, Counts, Estimate, Plan, Strictness},
    report::{Line, Paint, ReportKind},
    text::{count, list_first},
};

/// The maximum number of groups and projects that a sentence names.
const MAX_NAMED_PATHS: usize = 3;

/// The last lines of a plan: its size, and its blockers.
pub fn summary_lines(plan: &Plan, kind: ReportKind) -> Vec<Line> {
    let first_line = if plan.steps.is_empty() {
        summary_without_steps(plan, kind)
    } else {
        summary_with_steps(plan, kind)
    };
    let mut lines = vec![first_line];
    lines.extend(unverified_line(plan, kind));
    lines.extend(advice_line(plan).filter(|_| kind == ReportKind::Drift));
    lines.extend(blocker_lines(plan));
    lines
}

/// The line with the next commands to run if there is drift.
fn advice_line(plan: &Plan) -> Option<Line> {
    let text = match (plan.steps.is_empty(), plan.watched.is_empty()) {
        (false, _) if plan.hidden_refusal_count > 0 => {
            "`undrift absorb ADDRESS` writes the drift into the manifests; to revert the drift, acknowledge the refusals that `undrift plan` shows"
        }
        (false, _) => {
            "`undrift apply` reverts the drift, or `undrift absorb ADDRESS` writes it into the manifests"
        }
        (true, false) => "`undrift absorb ADDRESS` writes the drift into the manifests",
        (true, true) => return None,
    };
    Some(Line::default().text(format!("next: {text}")))
}

/// The lines about findings that block the plan or a part of it.
pub fn blocker_lines(plan: &Plan) -> Vec<Line> {
    let mut lines = Vec::new();
    let counts = [(plan.problems.len(), "problem"), (plan.refusals.len(), "refusal")];
    let nonzero = counts.into_iter().filter(|(number, _)| *number > 0);
    let blocker_texts: Vec<_> = nonzero.map(|(number, noun)| count(number, noun)).collect();
    if !blocker_texts.is_empty() {
        let effect = if plan.is_refused() {
            "a guard refuses the whole run"
        } else if plan.has_too_many_problems() {
            "too many to apply anything; fix the common cause, or use `--only`"
        } else if plan.problems.len() + plan.refusals.len() == 1 {
            "its group or project is skipped"
        } else {
            "their groups and projects are skipped"
        };
        let text = format!("{}; {effect}", blocker_texts.join(" and "));
        lines.push(Line::with_text(Paint::Error, "blocked: ").text(text));
    }
    let paths: BTreeSet<_> = plan.incomplete.iter().map(|scope| &scope.address.path).collect();
    if !paths.is_empty() {
        let unread_paths = plan.unread_containers();
        let skipped_steps =
            plan.steps.iter().filter(|step| unread_paths.contains(&step.address.path));
        let effect = text_if_any(skipped_steps.count(), |steps| {
            let paths: Vec<&str> = unread_paths.iter().map(|path| &***path).collect();
            format!("; apply skips {}, with {}", list_first(&paths), count(steps, "change"))
        });
        let unread_text = count(paths.len(), "group or project") + " could not be read completely";
        let text = unread_text + &effect;
        lines.push(Line::with_text(Paint::Change, "incomplete: ").text(text));
    }
    lines
}

/// The summary of a plan without steps.
fn summary_without_steps(plan: &Plan, kind: ReportKind) -> Line {
    let (match_text, unapplied_count) = (describe_matching(plan), plan.unapplied_paths().len());
    let is_complete = uncompared_paths(plan).is_empty();
    let same_as_base_count = plan.base.as_ref().map_or(0, |base| base.unchanged);
    let text = match (kind, is_complete) {
        (_, true) if same_as_base_count > 0 && plan.projects + plan.groups == 0 => {
            let has_removed = plan.base.as_ref().is_some_and(|base| !base.removed.is_empty());
            let subject = if has_removed { "each remaining declaration" } else { "everything" };
            format!("no changes: {subject} is the same as at the base")
        }
        (_, true) if unapplied_count > 0 => {
            let verb = if unapplied_count == 1 { "differs" } else { "differ" };
            let total = describe_total(plan);
            format!(
                "nothing to apply: {unapplied_count} of {total} {verb} in objects that `apply` does not write"
            )
        }
        // A plan with unlisted objects is not "in sync", because `--strict` counts them as
        // differences.
        (ReportKind::Drift, true)
            if plan.has_differences(Strictness::Unlisted) || count_partly_compared(plan) > 0 =>
        {
            match_text
        }
        (ReportKind::Drift, true) => format!("in sync: {match_text}"),
        (_, true) => format!("no changes: {match_text}"),
        (_, false) if !plan.problems.is_empty() => {
            format!("no steps until the problems are fixed; {}", describe_uncompared(plan))
        }
        (_, false) => {
            format!("no differences in what could be read; {}", describe_uncompared(plan))
        }
    };
    let object_count = count_notes(plan, |reason| matches!(reason, Reason::SecretMissing { .. }));
    let secret_text = text_if_any(object_count, |objects| {
        format!("; secrets of {} not set", count(objects, "object"))
    });
    let paint = if is_complete && unapplied_count == 0 { Paint::Add } else { Paint::Change };
    Line::with_text(
        paint,
        text + &secret_text + &drift_count_text(plan) + &unmanaged_count_text(plan),
    )
}

/// The sentence about groups and projects that match their manifests. Archived projects are not
/// compared. Projects with a feature that is declared off are compared only in part. So both kinds
/// of projects are counted separately.
fn describe_matching(plan: &Plan) -> String {
    let archived_count = count_notes(plan, |reason| matches!(reason, Reason::Archived));
    let partly_compared_count = count_partly_compared(plan);
    let compared_projects = plan.projects.saturating_sub(archived_count + partly_compared_count);
    let matches = match plan.groups + compared_projects {
        0 if archived_count > 0 && partly_compared_count == 0 => {
            return count(archived_count, "archived project") + " as declared";
        }
        0 if partly_compared_count > 0 => None,
        1 => Some("matches its manifest"),
        _ => Some("match their manifests"),
    };
    let matching = matches.map(|matches| {
        format!("{} {matches}", describe_containers(plan.groups, compared_projects))
    });
    let archived = (archived_count > 0)
        .then(|| format!("{} not compared", count(archived_count, "archived project")));
    let closed = (partly_compared_count > 0).then(|| {
        let projects = count(partly_compared_count, "project");
        format!("{projects} not fully compared, because a feature is declared off")
    });
    [matching, archived, closed].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The number of projects with sections that are not compared, because their feature is declared off.
fn count_partly_compared(plan: &Plan) -> usize {
    let notes = plan.notes.iter();
    let closed = notes.filter(|note| matches!(note.reason, Reason::Closed { .. }));
    closed.map(|note| &note.address.path).collect::<BTreeSet<_>>().len()
}

/// The number of notes with a reason that `matches_reason` accepts.
fn count_notes(plan: &Plan, matches_reason: impl Fn(&Reason) -> bool) -> usize {
    plan.notes.iter().filter(|note| matches_reason(&note.reason)).count()
}

/// The text that `describe` returns for `number`; empty if the number is zero.
fn text_if_any(number: usize, describe: impl FnOnce(usize) -> String) -> String {
    if number == 0 { String::new() } else { describe(number) }
}

/// The sentence about groups and projects that were not compared, or not completely.
fn describe_uncompared(plan: &Plan) -> String {
    let paths: Vec<&str> = uncompared_paths(plan).into_iter().collect();
    let (named, others) = paths.split_at(paths.len().min(MAX_NAMED_PATHS));
    let others = text_if_any(others.len(), |others| format!(" and {others} more"));
    let verb = if paths.len() == 1 { "was" } else { "were" };
    format!("{}{others} {verb} not fully compared", named.join(", "))
}

/// The groups and projects that were not compared completely, including those with findings from the
/// base only.
fn uncompared_paths(plan: &Plan) -> BTreeSet<&str> {
    let base_findings = plan.base.iter().map(|base| (&base.incomplete, &base.problems));
    let parts = base_findings.chain([(&plan.incomplete, &plan.problems)]);
    let addresses = parts.flat_map(|(incomplete, problems)| {
        let unread = incomplete.iter().map(|part| &part.address);
        unread.chain(problems.iter().map(|problem| &problem.address))
    });
    addresses.map(|address| &*address.path).collect()
}

/// The line with the number of objects with fields that could not be verified. The notes name these
/// objects.
fn unverified_line(plan: &Plan, kind: ReportKind) -> Option<Line> {
    let objects = plan.notes.iter().filter(|note| note.reason.has_unverified_fields());
    let objects: BTreeSet<_> = objects.map(|note| &note.address).collect();
    let is_drift = kind == ReportKind::Drift;
    let strict_note =
        if is_drift { "; only --strict=unverified counts them as differences" } else { "" };
    let text = format!("fields of {}{strict_note}", count(objects.len(), "object"));
    let line = Line::with_text(Paint::Note, "not verified: ").text(text);
    // If there are steps, only a drift report shows this line.
    ((is_drift || plan.steps.is_empty()) && !objects.is_empty()).then_some(line)
}

/// The estimated time of apply.
fn describe_estimate(Estimate { seconds, a_minute, operation, .. }: Estimate) -> String {
    let minutes = count(seconds / 60, "minute");
    let requests = count(a_minute, "request");
    let operation = operation.map_or_else(String::new, |id| format!(" of `{id}`"));
    format!(", about {minutes} at {requests}{operation} a minute")
}

/// The summary of a plan with steps.
fn summary_with_steps(plan: &Plan, kind: ReportKind) -> Line {
    // The summary of `plan` counts the changes of the branch. The summary before an approval counts
    // all steps.
    let is_approval = kind == ReportKind::Apply;
    let counts = if is_approval { plan.counts() } else { Counts::from_steps(plan.branch_steps()) };
    let changes = match describe_counts(&counts) {
        none if none.is_empty() => "no changes of this branch".to_owned(),
        count_text => {
            let calls = count(counts.calls, "call");
            format!("{count_text} in {} of {}; {calls}", counts.projects, describe_total(plan))
        }
    };
    let estimate = plan.estimate.map_or_else(String::new, describe_estimate);
    let text = changes + &estimate + &drift_count_text(plan) + &unmanaged_count_text(plan);
    Line::with_text(Paint::Bold, format!("{}: ", kind.plan_word())).text(text)
}

/// One line for each reason why a rule skipped containers, with the number of containers.
pub fn exception_notes(plan: &Plan) -> Vec<Line> {
    let exceptions = plan.exceptions.iter().map(|(exception, number)| {
        Line::note(format!("skipped by rules: {number} {}", exception.description()))
    });
    exceptions.collect()
}

/// The number of containers that `--limit` left out.
pub fn limit_note(plan: &Plan) -> Option<Line> {
    let AppliedLimit { to, left_out } = plan.limited.filter(|limited| limited.left_out > 0)?;
    let (subject, verb) = match left_out {
        1 => ("1 more group or project".to_owned(), "has"),
        more => (format!("{more} more groups and projects"), "have"),
    };
    Some(Line::note(format!("{subject} {verb} changes; --limit {to} left them out")))
}

/// The number of steps by action: `1 to create, 2 to change`.
pub fn describe_counts(counts: &Counts) -> String {
    let count_parts =
        [(counts.create, "to create"), (counts.update, "to change"), (counts.delete, "to remove")];
    nonzero_counts(count_parts).join(", ")
}

/// The texts of the `parts` whose number is not zero.
pub fn nonzero_counts<'w>(parts: impl IntoIterator<Item = (usize, &'w str)>) -> Vec<String> {
    let nonzero_parts = parts.into_iter().filter(|(number, _)| *number > 0);
    nonzero_parts.map(|(number, subject)| format!("{number} {subject}")).collect()
}

/// Additions to the summary line: the numbers of steps that are drift, of unknown origin, or
/// excluded, and of groups and projects with parts that only the base needs and that were not read.
fn drift_count_text(plan: &Plan) -> String {
    let Some(base) = &plan.base else { return String::new() };
    let mut labels = plan.label_counts();
    let unread_paths: BTreeSet<_> = base.incomplete.iter().map(|part| &part.address.path).collect();
    let label_parts = [
        (labels.remove(&Label::Drift).unwrap_or(0), "differed before this branch"),
        (labels.remove(&Label::Unknown).unwrap_or(0), "of unknown origin"),
        (base.excluded_steps.len(), "left out"),
        (unread_paths.len(), "not read completely"),
    ];
    nonzero_counts(label_parts).into_iter().map(|part| format!("; {part}")).collect()
}

/// The number of groups and of projects.
fn describe_containers(groups: usize, projects: usize) -> String {
    match (groups, projects) {
        (0, projects) => count(projects, "project"),
        (groups, 0) => count(groups, "group"),
        (groups, projects) => {
            format!("{} and {}", count(groups, "group"), count(projects, "project"))
        }
    }
}

/// The number of groups and projects together.
fn describe_total(plan: &Plan) -> String {
    match (plan.groups, plan.projects) {
        (0, _) | (_, 0) => describe_containers(plan.groups, plan.projects),
        (groups, projects) => format!("{} groups and projects", groups + projects),
    }
}

/// Additions to the summary line: the numbers of unlisted objects, and of watched and held differences.
fn unmanaged_count_text(plan: &Plan) -> String {
    let (watched, held) = plan.split_watched_steps();
    let unlisted_text = text_if_any(plan.unlisted_count(), |number| {
        format!("; {} not in any manifest", count(number, "object"))
    });
    let watched_text =
        text_if_any(watched.len(), |number| format!("; {}", count(number, "watched difference")));
    let difference_text =
        text_if_any(held.len(), |number| format!(", with {}", count(number, "difference")));
    let held_text =
        text_if_any(plan.held.len(), |number| format!("; {} held", count(number, "object")));
    unlisted_text
        + &watched_text
        + &if held_text.is_empty() { held_text } else { held_text + &difference_text }
}
