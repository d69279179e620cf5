//! The summary of a plan, in a few lines.

use std::collections::BTreeSet;

use crate::{
    desired::Exception,
    diff::{Label, Note, Reason},
    plan::{Counts, Estimate, Limited, Plan, Strictness},
    report::{Line, Paint},
    text::{count, few_listed},
};

/// How many groups and projects a sentence names.
const NAMED: usize = 3;

/// How a plan is titled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Title {
    /// What apply would do.
    Plan,
    /// What apply is about to do: steps that are written are not folded as drift.
    Approval,
    /// What differs.
    Drift,
}

impl Title {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Plan | Self::Approval => "plan",
            Self::Drift => "drift",
        }
    }
}

/// The lines at the end: the size of the plan, and what blocks it.
pub fn lines(plan: &Plan, title: Title) -> Vec<Line> {
    let first = if plan.steps.is_empty() { nothing(plan, title) } else { something(plan, title) };
    let mut lines = vec![first];
    lines.extend(unverified(plan, title));
    lines.extend(next(plan).filter(|_| title == Title::Drift));
    lines.extend(obstacles(plan));
    lines
}

/// What to do about drift.
fn next(plan: &Plan) -> Option<Line> {
    let text = match (plan.steps.is_empty(), plan.watched.is_empty()) {
        (false, _) if plan.guarded > 0 => {
            "`undrift absorb ADDRESS` declares it; to revert it, acknowledge what `undrift plan` refuses"
        }
        (false, _) => "`undrift apply` reverts it, or `undrift absorb ADDRESS` declares it",
        (true, false) => "`undrift absorb ADDRESS` declares it",
        (true, true) => return None,
    };
    Some(Line::default().text(format!("next: {text}")))
}

/// What blocks the plan, or a part of it.
pub fn obstacles(plan: &Plan) -> Vec<Line> {
    let mut lines = Vec::new();
    let obstacles = [(plan.problems.len(), "problem"), (plan.refusals.len(), "refusal")];
    let obstacles: Vec<_> =
        obstacles.into_iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(n, noun)).collect();
    if !obstacles.is_empty() {
        let so = if plan.is_refused() {
            "a guard refuses the run as a whole"
        } else if plan.is_mostly_broken() {
            "too many to apply anything; fix what they have in common, or use `--only`"
        } else {
            "each leaves out its group or project"
        };
        let text = format!("{}; {so}", obstacles.join(" and "));
        lines.push(Line::of(Paint::Error, "blocked: ").text(text));
    }
    let paths: BTreeSet<_> = plan.incomplete.iter().map(|scope| &scope.address.path).collect();
    if !paths.is_empty() {
        let unread = plan.unread();
        let left_out = plan.steps.iter().filter(|step| unread.contains(&step.address.path));
        let so = match left_out.count() {
            0 => String::new(),
            steps => {
                let paths: Vec<&str> = unread.iter().map(|path| &***path).collect();
                let changes = count(steps, "change");
                format!("; apply leaves out {}, with {changes}", few_listed(&paths))
            }
        };
        let text = count(paths.len(), "group or project") + " could not be read completely" + &so;
        lines.push(Line::of(Paint::Change, "incomplete: ").text(text));
    }
    lines
}

/// The summary of a plan without steps.
fn nothing(plan: &Plan, title: Title) -> Line {
    let (matches, unchanged) = (matching(plan), plan.unchanged().len());
    let is_whole = plan.incomplete.is_empty() && plan.problems.is_empty();
    let unread = plan.base.as_ref().map_or(0, |base| base.unchanged);
    let text = match (title, is_whole) {
        (_, true) if unread > 0 && plan.projects + plan.groups == 0 => {
            let is_less = plan.base.as_ref().is_some_and(|base| !base.removed.is_empty());
            let what = if is_less { "what is declared here" } else { "everything" };
            format!("no changes: {what} is declared as at the base")
        }
        (_, true) if unchanged > 0 => {
            let differ = if unchanged == 1 { "differs" } else { "differ" };
            let all = of_all(plan);
            format!(
                "nothing to apply: {unchanged} of {all} {differ} in what `apply` does not write"
            )
        }
        (Title::Plan | Title::Approval, true) => format!("no changes: {matches}"),
        // `--strict` counts the rest.
        (Title::Drift, true) if plan.differs(Strictness::Unlisted) => matches,
        (Title::Drift, true) => format!("in sync: {matches}"),
        (_, false) if !plan.problems.is_empty() => {
            format!("no steps until the problems are solved; {}", uncompared(plan))
        }
        (_, false) => format!("no differences in what could be read; {}", uncompared(plan)),
    };
    let secrets = |note: &&Note| matches!(note.reason, Reason::SecretMissing { .. });
    let secrets = match plan.notes.iter().filter(secrets).count() {
        0 => String::new(),
        objects => format!("; secrets of {} not set", count(objects, "object")),
    };
    let paint = if is_whole && unchanged == 0 { Paint::Add } else { Paint::Change };
    Line::of(paint, text + &secrets + &against(plan) + &unlisted(plan))
}

/// How many groups and projects match their manifests, and how many are only known to be archived.
fn matching(plan: &Plan) -> String {
    let is_archived = |note: &&Note| matches!(note.reason, Reason::Archived);
    let archived = plan.notes.iter().filter(is_archived).count();
    let closed = count(archived, "archived project") + " not compared";
    let matches = match (plan.groups + plan.projects).saturating_sub(archived) {
        0 if archived > 0 => return count(archived, "archived project") + " as declared",
        1 => "matches its manifest",
        _ => "match their manifests",
    };
    let compared = containers(plan.groups, plan.projects.saturating_sub(archived));
    let closed = if archived == 0 { String::new() } else { format!("; {closed}") };
    format!("{compared} {matches}{closed}")
}

/// Which groups and projects were not compared, or not in full.
fn uncompared(plan: &Plan) -> String {
    let unread = plan.incomplete.iter().map(|scope| &*scope.address.path);
    let paths = unread.chain(plan.problems.iter().map(|problem| &*problem.address.path));
    let paths: BTreeSet<&str> = paths.collect();
    let paths: Vec<&str> = paths.into_iter().collect();
    let (named, others) = paths.split_at(paths.len().min(NAMED));
    let others = match others.len() {
        0 => String::new(),
        others => format!(" and {others} more"),
    };
    let were = if paths.len() == 1 { "was" } else { "were" };
    format!("{}{others} {were} not fully compared", named.join(", "))
}

/// How much could not be verified; the notes name it.
fn unverified(plan: &Plan, title: Title) -> Option<Line> {
    let objects = plan.notes.iter().filter(|note| note.reason.is_unverified());
    let objects: BTreeSet<_> = objects.map(|note| &note.address).collect();
    let counted = match title {
        Title::Plan | Title::Approval => "",
        Title::Drift => "; only --strict=unverified counts them as differences",
    };
    let text = format!("fields of {}{counted}", count(objects.len(), "object"));
    let line = Line::of(Paint::Note, "not verified: ").text(text);
    // A plan with steps is about those.
    let is_told = title == Title::Drift || plan.steps.is_empty();
    (is_told && !objects.is_empty()).then_some(line)
}

/// The estimated time of apply.
fn estimate(Estimate { seconds, a_minute, operation, .. }: Estimate) -> String {
    let minutes = count(usize::try_from(seconds / 60).unwrap_or(usize::MAX), "minute");
    let requests = count(usize::try_from(a_minute).unwrap_or(usize::MAX), "request");
    let of = operation.map_or_else(String::new, |id| format!(" of `{id}`"));
    format!(", about {minutes} at {requests}{of} a minute")
}

/// The summary of a plan with steps.
fn something(plan: &Plan, title: Title) -> Line {
    // A plan counts changes of the branch; an approval counts all steps.
    let counts = match title {
        Title::Approval => plan.counts(),
        Title::Plan | Title::Drift => Counts::of(plan.branch_steps()),
    };
    let does = match to_do(&counts) {
        none if none.is_empty() => "nothing that this branch changes".to_owned(),
        to_do => {
            let calls = count(counts.calls, "call");
            format!("{to_do} in {} of {}; {calls}", counts.projects, of_all(plan))
        }
    };
    let estimate = plan.estimate.map_or_else(String::new, estimate);
    let text = does + &estimate + &against(plan) + &unlisted(plan);
    Line::of(Paint::Bold, format!("{}: ", title.word())).text(text)
}

/// How many containers match a rule but stay out: a line for each reason.
pub fn exceptions(plan: &Plan) -> Vec<Line> {
    let line = |(exception, number): (&Exception, &usize)| {
        Line::note(format!("not brought in by any rule: {number} {}", exception.words()))
    };
    plan.exceptions.iter().map(line).collect()
}

/// How many containers `--limit` left out.
pub fn limited(plan: &Plan) -> Option<Line> {
    let Limited { to, left_out } = plan.limited.filter(|limited| limited.left_out > 0)?;
    let (things, have) = match left_out {
        1 => ("1 more group or project".to_owned(), "has"),
        more => (format!("{more} more groups and projects"), "have"),
    };
    Some(Line::note(format!("{things} {have} changes; --limit {to} left them out")))
}

/// The number of steps by action: `1 to create, 2 to change`.
pub fn to_do(counts: &Counts) -> String {
    let parts =
        [(counts.create, "to create"), (counts.update, "to change"), (counts.delete, "to remove")];
    counted(parts).join(", ")
}

/// The `parts` of which there are some, with their number.
pub fn counted<'w>(parts: impl IntoIterator<Item = (usize, &'w str)>) -> Vec<String> {
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    parts.map(|(n, what)| format!("{n} {what}")).collect()
}

/// Additions to the last line: the number of steps that are drift, and of excluded ones.
fn against(plan: &Plan) -> String {
    let Some(base) = &plan.base else { return String::new() };
    let labels = plan.labels();
    let number = |label| labels.get(&label).copied().unwrap_or(0);
    let parts = [
        (number(Label::Drift), "differed before"),
        (number(Label::Unknown), "not known to be this branch's"),
        (base.left.len(), "left alone"),
    ];
    counted(parts).into_iter().map(|part| format!("; {part}")).collect()
}

/// The number of groups and of projects.
fn containers(groups: usize, projects: usize) -> String {
    match (groups, projects) {
        (0, projects) => count(projects, "project"),
        (groups, 0) => count(groups, "group"),
        (groups, projects) => {
            format!("{} and {}", count(groups, "group"), count(projects, "project"))
        }
    }
}

/// The same as one number.
fn of_all(plan: &Plan) -> String {
    match (plan.groups, plan.projects) {
        (0, _) | (_, 0) => containers(plan.groups, plan.projects),
        (groups, projects) => format!("{} groups and projects", groups + projects),
    }
}

/// How many live entries no manifest lists, how many differences are only watched, and how many are
/// held.
fn unlisted(plan: &Plan) -> String {
    let unlisted = match plan.unlisted() {
        0 => String::new(),
        unlisted => format!("; {} not in any manifest", count(unlisted, "object")),
    };
    let (watched, held) = plan.watched_and_held();
    let watched = match watched.len() {
        0 => String::new(),
        watched => format!("; {}", count(watched, "watched difference")),
    };
    let held = match (plan.held.len(), held.len()) {
        (0, _) => String::new(),
        (objects, 0) => format!("; {} held", count(objects, "object")),
        (objects, differences) => {
            format!(
                "; {} held, with {}",
                count(objects, "object"),
                count(differences, "difference")
            )
        }
    };
    unlisted + &watched + &held
}
