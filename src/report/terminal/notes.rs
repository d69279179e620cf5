//! What a plan says besides its steps: why other things do not happen, what could not be read, what
//! stands in the way.

use std::collections::{BTreeMap, BTreeSet};

use unicode_width::UnicodeWidthStr as _;

use crate::{
    address::Address,
    cause::Cause,
    desired::{Exception, Guard},
    diagnostic::{Diagnostic, Diagnostics, Place},
    diff::{Held, Incomplete, Note, Problem, Reason, Refusal},
    plan::{Estimate, LeftOut, Limited, Plan},
    report::canvas::{Canvas, Line, Paint},
    text::{count, shell_word},
};

use super::{
    branch,
    change::{self, tail},
};

/// How many projects a paragraph names unless all are.
const PROJECTS: usize = 20;
/// How many scopes that could not be read for the same cause are shown each.
const ALIKE: usize = 5;
/// How many objects of one project a paragraph names unless all are.
const OBJECTS: usize = 8;

/// Notes: a paragraph for each sort, in it a line for each project.
pub(super) fn notes(canvas: &mut Canvas, notes: &[Note]) {
    let mut sorts: BTreeMap<Sort, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for note in notes {
        let projects = sorts.entry(Sort::of(&note.reason)).or_default();
        projects.entry(&note.address.path).or_default().push(object(note));
    }
    for (sort, projects) in sorts {
        paragraph(canvas, sort.title(), projects);
    }
}

/// What is left alone until a day: a paragraph for each day.
pub(super) fn held(canvas: &mut Canvas, held: &[Held]) {
    let mut days: BTreeMap<_, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for Held { address, until } in held {
        let projects = days.entry(until).or_default();
        projects.entry(&address.path).or_default().push(tail(address));
    }
    for (until, projects) in days {
        paragraph(canvas, &format!("held until {until}, that day included; unchanged"), projects);
    }
}

/// A title with a line for each project, or for several with the same objects.
fn paragraph(canvas: &mut Canvas, title: &str, projects: BTreeMap<&str, Vec<String>>) {
    canvas.gap();
    canvas.line(&Line::default().put(Paint::Note, "note: ").text(title));
    let groups = grouped(projects, canvas.style().full);
    let column =
        groups.iter().map(|(projects, _)| projects.width()).filter(|n| *n <= 40).max().unwrap_or(0);
    few(canvas, PROJECTS, "line", groups.into_iter(), |canvas, (projects, objects)| {
        let shown = if canvas.style().full || objects.len() <= OBJECTS + 1 {
            objects.len()
        } else {
            OBJECTS
        };
        let mut text = objects[..shown].join(", ");
        if shown < objects.len() {
            text.push_str(&format!(" … and {} more, shown by --full", objects.len() - shown));
        }
        let line = Line::indented(2).text(projects);
        let start = (2 + column).max(line.len()) + 2;
        canvas.line(&line.pad_to(start).hang_here().text(text));
    });
}

/// Projects with the objects that a note is about. Where they are many, those with the same objects
/// are put together.
fn grouped(projects: BTreeMap<&str, Vec<String>>, full: bool) -> Vec<(String, Vec<String>)> {
    if full || projects.len() <= PROJECTS {
        return projects.into_iter().map(|(path, objects)| (path.to_owned(), objects)).collect();
    }
    let mut groups: BTreeMap<Vec<String>, Vec<&str>> = BTreeMap::new();
    for (path, objects) in projects {
        groups.entry(objects).or_default().push(path);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, projects)| projects[0]);
    let named = |projects: &[&str]| match projects {
        [one] => (*one).to_owned(),
        [first, others @ ..] => format!("{first} and {}", count(others.len(), "more project")),
        [] => String::new(),
    };
    groups.into_iter().map(|(objects, projects)| (named(&projects), objects)).collect()
}

/// The sort of a note, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::report) enum Sort {
    ArchivedByHand,
    Archived,
    Vanished,
    Closed,
    UndeclaredFails,
    UnlistedFails,
    Undeclared,
    Unlisted,
    Protected,
    TakesAlong,
    Besides,
    Waits,
    NotReturned,
    CannotVerify,
    SecretMissing,
}

impl Sort {
    /// The sort of a note with this reason.
    pub(in crate::report) const fn of(reason: &Reason) -> Self {
        match reason {
            Reason::ArchivedByHand => Self::ArchivedByHand,
            Reason::Archived => Self::Archived,
            Reason::Vanished => Self::Vanished,
            Reason::Closed { .. } => Self::Closed,
            Reason::UndeclaredFails { .. } => Self::UndeclaredFails,
            Reason::Undeclared { .. } => Self::Undeclared,
            Reason::UnlistedFails => Self::UnlistedFails,
            Reason::Unlisted => Self::Unlisted,
            Reason::Protected { .. } => Self::Protected,
            Reason::TakesAlong { .. } => Self::TakesAlong,
            Reason::Besides { .. } => Self::Besides,
            Reason::Waits { .. } => Self::Waits,
            Reason::NotReturned => Self::NotReturned,
            Reason::CannotVerify => Self::CannotVerify,
            Reason::SecretMissing { .. } => Self::SecretMissing,
        }
    }

    /// What is said of all notes of this sort.
    pub(in crate::report) const fn title(self) -> &'static str {
        match self {
            Self::ArchivedByHand => {
                "archived, but not declared so: a difference; write `archived: true`, or `archived: false` to bring it back"
            }
            Self::Archived => "archived, as declared; skipped",
            Self::Vanished => {
                "deleted, renamed or archived while this run was reading; no rule brings it in any more"
            }
            Self::Closed => "closed, as declared; skipped",
            Self::UndeclaredFails => "projects that no manifest declares: a difference; unchanged",
            Self::Undeclared => "projects that no manifest declares; unchanged",
            Self::UnlistedFails => "not in any manifest: a difference; unchanged",
            Self::Unlisted => "not in any manifest; unchanged",
            Self::Protected => "protected from changes",
            Self::TakesAlong => {
                "grants that no manifest declares; the service removes them along with the share"
            }
            Self::Besides => "what these steps do besides",
            Self::NotReturned => {
                "not compared: the service does not return these fields, or ignores them in its tier"
            }
            Self::CannotVerify => {
                "cannot be verified: the service never returns these fields; `--resend` sends them again"
            }
            Self::SecretMissing => {
                "not compared: these secrets are not set here; `apply` needs them"
            }
            Self::Waits => "not sent yet; a later run sets it",
        }
    }
}

/// What a note is about, without its group or project; nothing if it is about that alone.
pub(in crate::report) fn object(note: &Note) -> String {
    let tail = tail(&note.address);
    let about = match &note.reason {
        Reason::Archived | Reason::ArchivedByHand | Reason::Vanished => return String::new(),
        Reason::Undeclared { state } | Reason::UndeclaredFails { state } => {
            return state.unwrap_or_default().to_owned();
        }
        Reason::Unlisted | Reason::UnlistedFails => return tail,
        Reason::Protected { why } | Reason::Closed { why } => why.clone(),
        Reason::Besides { what } => what.clone(),
        Reason::TakesAlong { grants_of } => {
            let each = |address: &Address| match address.entry {
                Some(_) => change::tail(address),
                None => format!("any of {}: not read", change::tail(address)),
            };
            grants_of.iter().map(each).collect::<Vec<_>>().join(", ")
        }
        Reason::Waits { why } => format!("{} waits {why}", note.fields.join(", ")),
        Reason::NotReturned | Reason::CannotVerify => note.fields.join(", "),
        Reason::SecretMissing { secrets } => secrets.join(", "),
    };
    format!("{tail} ({about})")
}

/// What exists, and stays out although a rule is about it: a line for each reason.
pub(in crate::report) fn exceptions(canvas: &mut Canvas, exceptions: &BTreeMap<Exception, usize>) {
    for (at, (exception, number)) in exceptions.iter().enumerate() {
        if at == 0 {
            canvas.gap();
        }
        let text = format!("not brought in by any rule: {number} {}", exception.words());
        canvas.line(&Line::default().put(Paint::Note, "note: ").text(text));
    }
}

/// Says how much `--limit` left out.
pub(in crate::report) fn limited(canvas: &mut Canvas, limited: Option<Limited>) {
    let Some(Limited { to, left_out }) = limited.filter(|limited| limited.left_out > 0) else {
        return;
    };
    canvas.gap();
    let (things, have) = match left_out {
        1 => ("1 more group or project".to_owned(), "has"),
        more => (format!("{more} more groups and projects"), "have"),
    };
    let text = format!("{things} {have} changes; --limit {to} left them out");
    canvas.line(&Line::default().put(Paint::Note, "note: ").text(text));
}

/// Scopes that could not be read.
pub(super) fn incomplete(canvas: &mut Canvas, incomplete: &[Incomplete]) {
    if incomplete.is_empty() {
        return;
    }
    canvas.gap();
    canvas.line(
        &Line::default()
            .put(Paint::Change, "incomplete: ")
            .text("could not be read; nothing is planned there"),
    );
    let (alike, others) = by_cause(incomplete, canvas.style().full);
    for scopes in alike {
        let line = Line::indented(2).text(count(scopes.len(), "scope")).text("  ").hang_here();
        canvas.line(&line.put(Paint::Dim, together_told(&scopes)));
    }
    few(canvas, PROJECTS, "scope", others.into_iter(), |canvas, scope| {
        let line = Line::indented(2).text(scope.address.to_string()).text("  ").hang_here();
        canvas.line(&line.put(Paint::Dim, told(&scope.reason)));
    });
}

/// Scopes that could not be read for the same cause, where they are many, and the others.
fn by_cause(incomplete: &[Incomplete], full: bool) -> (Vec<Vec<&Incomplete>>, Vec<&Incomplete>) {
    let mut causes: BTreeMap<_, Vec<&Incomplete>> = BTreeMap::new();
    let cause = |scope: &Incomplete| scope.reason.operation.zip(scope.reason.status);
    for scope in incomplete.iter().filter(|_| !full) {
        if let Some(cause) = cause(scope) {
            causes.entry(cause).or_default().push(scope);
        }
    }
    causes.retain(|_, scopes| scopes.len() > ALIKE);
    let is_alone =
        |scope: &&Incomplete| !cause(scope).is_some_and(|cause| causes.contains_key(&cause));
    let others = incomplete.iter().filter(is_alone).collect();
    (causes.into_values().collect(), others)
}

/// What scopes that could not be read for the same cause have in common, and the first of them.
fn together_told(scopes: &[&Incomplete]) -> String {
    let reason = scopes.first().map(|scope| &scope.reason);
    let status = reason.and_then(|reason| reason.status).unwrap_or_default();
    let operation = reason.and_then(|reason| reason.operation).unwrap_or_default();
    let named: Vec<_> = scopes.iter().take(ALIKE).map(|scope| scope.address.to_string()).collect();
    let help = reason.and_then(|reason| reason.help.as_deref());
    let help = help.map_or_else(String::new, |help| format!("; {help}"));
    format!(
        "{operation} was answered with {status}: {}, … (--full lists them){help}",
        named.join(", ")
    )
}

/// A cause on one line, with the id by which the service's log knows the request.
pub(in crate::report) fn told(cause: &Cause) -> String {
    match &cause.request_id {
        Some(id) => format!("{cause} (request {id})"),
        None => cause.to_string(),
    }
}

/// What has to be put right first, as the compiler would say it.
pub(super) fn problems(canvas: &mut Canvas, problems: &[Problem]) {
    let located = problems.iter().map(|problem| {
        let diagnostic =
            Diagnostic::error(problem.code, &problem.message).at(Place::from(&problem.origin));
        diagnostic.label(problem.address.to_string()).help_if(problem.help.as_ref())
    });
    diagnostics(canvas, located);
}

/// What guards refuse, each with the words that let it through; what one guard refuses in many
/// places is shown once.
pub(super) fn refusals(canvas: &mut Canvas, refusals: &[Refusal]) {
    let mut sorts: BTreeMap<_, Vec<&Refusal>> = BTreeMap::new();
    for refusal in refusals {
        sorts.entry((refusal.guard, refusal.address.section)).or_default().push(refusal);
    }
    let full = canvas.style().full;
    let located = sorts.into_values().flat_map(|refusals| match &refusals[..] {
        // What has to be named to be let through is named.
        [first, others @ ..] if !full && !others.is_empty() && first.guard != Guard::Deletion => {
            vec![together(first, &refusals)]
        }
        each => each.iter().map(|refusal| alone(refusal)).collect(),
    });
    diagnostics(canvas, located);
}

fn alone(refusal: &Refusal) -> Diagnostic {
    let diagnostic = Diagnostic::error("guard", format!("{}: {}", refusal.address, refusal.reason));
    let help = format!("if intended, pass `--ack {}`", shell_word(&refusal.acknowledgement));
    diagnostic.at(Place::from(&refusal.origin)).help(help)
}

/// Refusals of one sort: how many there are, the first of them, and what lets all of them through.
fn together(first: &Refusal, all: &[&Refusal]) -> Diagnostic {
    let objects = count(all.len(), "object");
    let message =
        format!("{} in {objects}, the first: {}: {}", first.guard, first.address, first.reason);
    let paths: Vec<_> = all.iter().map(|refusal| &*refusal.address.path).collect();
    let section = first.address.section.map_or_else(String::new, |name| format!("#{name}"));
    let glob = format!("{}:{}{section}", first.guard, common(&paths));
    let help =
        format!("if all are intended, pass `--ack {}`; `--full` lists each", shell_word(&glob));
    Diagnostic::error("guard", message).at(Place::from(&first.origin)).help(help)
}

/// The narrowest glob that matches all of `paths` and ends at a slash.
fn common(paths: &[&str]) -> String {
    let first = paths.first().copied().unwrap_or_default();
    if paths.iter().all(|path| *path == first) {
        return first.to_owned();
    }
    let shared = first
        .match_indices('/')
        .map(|(at, _)| &first[..=at])
        .rfind(|start| paths.iter().all(|path| path.starts_with(start)))
        .unwrap_or_default();
    format!("{shared}**")
}

/// Diagnostics lay themselves out, so secrets are struck from what they say before.
fn diagnostics(canvas: &mut Canvas, diagnostics: impl Iterator<Item = Diagnostic>) {
    let struck = diagnostics.map(|mut diagnostic| {
        let Diagnostic { message, place, label, help, .. } = &mut diagnostic;
        let said = [Some(message), label.as_mut(), help.as_mut()];
        said.into_iter().flatten().for_each(|text| *text = canvas.strike(text));
        place.iter_mut().for_each(|place| place.file = canvas.strike(&place.file).into());
        diagnostic
    });
    let struck: Diagnostics = struck.collect();
    if !struck.is_empty() {
        canvas.gap();
        canvas.verbatim(&struck.render(canvas.style().into()));
    }
}

/// Draws each of `items`, or the first few with word of the rest.
pub(super) fn few<T>(
    canvas: &mut Canvas,
    most: usize,
    noun: &str,
    items: impl ExactSizeIterator<Item = T>,
    mut draw: impl FnMut(&mut Canvas, T),
) {
    let shown = if canvas.style().full || items.len() <= most + 1 { items.len() } else { most };
    let left = items.len() - shown;
    for item in items.take(shown) {
        draw(canvas, item);
    }
    if left > 0 {
        let text = format!("… and {} (--full lists them)", count(left, &format!("more {noun}")));
        canvas.line(&Line::indented(2).put(Paint::Dim, text));
    }
}

/// How many groups and projects were looked at.
fn containers(plan: &Plan) -> String {
    match (plan.groups, plan.projects) {
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
        (0, _) | (_, 0) => containers(plan),
        (groups, projects) => format!("{} groups and projects", groups + projects),
    }
}

/// How much is live that no manifest lists, how much differs that is only watched, and how much is
/// held.
fn unlisted(plan: &Plan) -> String {
    let unlisted = match plan.unlisted() {
        0 => String::new(),
        unlisted => format!("; {} not in any manifest", count(unlisted, "object")),
    };
    let (watched, held) = plan.watched_and_held();
    let watched = match watched.len() {
        0 => String::new(),
        watched => format!("; {} only watched", count(watched, "difference")),
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

/// What of a plan is not applied, a line each.
pub fn left_out(left_out: &[LeftOut]) -> String {
    let line = |LeftOut { address, steps }: &LeftOut| {
        format!("`{address}` is left out, with {}\n", count(*steps, "change"))
    };
    left_out.iter().map(line).collect()
}

/// The lines at the end: what the plan comes to, and what stands in its way.
pub(in crate::report) fn summary(canvas: &mut Canvas, plan: &Plan, title: super::Title) {
    canvas.gap();
    let line = if plan.steps.is_empty() { nothing(plan, title) } else { something(plan, title) };
    canvas.line(&line);
    let obstacles = [(plan.problems.len(), "problem"), (plan.refusals.len(), "refusal")];
    let obstacles: Vec<_> =
        obstacles.into_iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(n, noun)).collect();
    if !obstacles.is_empty() {
        let so = if plan.is_refused() {
            "a guard refuses the run as a whole"
        } else {
            "each leaves out its group or project"
        };
        let text = format!("{}; {so}", obstacles.join(" and "));
        canvas.line(&Line::default().put(Paint::Error, "blocked: ").text(text));
    }
    let scopes: BTreeSet<_> = plan.incomplete.iter().map(|scope| &scope.address).collect();
    if !scopes.is_empty() {
        let text = format!("{} could not be read completely", count(scopes.len(), "object"));
        canvas.line(&Line::default().put(Paint::Change, "incomplete: ").text(text));
    }
}

/// What is said of a plan without steps.
fn nothing(plan: &Plan, title: super::Title) -> Line {
    let containers = containers(plan);
    let (read, differs) = (plan.incomplete.is_empty(), plan.leaves_alone());
    let matches = if plan.projects + plan.groups == 1 {
        "matches its manifest"
    } else {
        "match their manifests"
    };
    let uncompared = |note: &Note| {
        matches!(
            note.reason,
            Reason::Archived
                | Reason::NotReturned
                | Reason::SecretMissing { .. }
                | Reason::Waits { .. }
        )
    };
    let is_limited = plan.notes.iter().any(uncompared);
    let limit = if is_limited { " (some fields cannot be verified)" } else { "" };
    let unread = plan.base.as_ref().map_or(0, |base| base.unchanged);
    let text = match (title, read && plan.problems.is_empty()) {
        (_, true) if unread > 0 && plan.projects + plan.groups == 0 => {
            "no changes: everything is declared as at the base".to_owned()
        }
        (_, true) if differs => {
            format!("nothing to apply; what differs in {containers} is left alone{limit}")
        }
        (super::Title::Plan | super::Title::Approval, true) => {
            format!("no changes: {containers} {matches}{limit}")
        }
        (super::Title::Drift, true) => format!("in sync: {containers} {matches}{limit}"),
        (_, false) => {
            format!("no difference found, but not all of {containers} could be compared")
        }
    };
    let paint = if read && !differs { Paint::Add } else { Paint::Change };
    Line::default().put(paint, text + &branch::summary(plan) + &unlisted(plan))
}

/// How long apply takes.
fn estimate(Estimate { seconds, a_minute, operation, .. }: Estimate) -> String {
    let minutes = count(usize::try_from(seconds / 60).unwrap_or(usize::MAX), "minute");
    let requests = count(usize::try_from(a_minute).unwrap_or(usize::MAX), "request");
    let of = operation.map_or_else(String::new, |id| format!(" of `{id}`"));
    format!(", about {minutes} at {requests}{of} a minute")
}

/// What is said of a plan with steps.
fn something(plan: &Plan, title: super::Title) -> Line {
    let counts = plan.counts();
    let parts =
        [(counts.create, "to create"), (counts.update, "to change"), (counts.delete, "to remove")];
    let parts = parts.into_iter().filter(|(n, _)| *n > 0);
    let parts: Vec<_> = parts.map(|(n, what)| format!("{n} {what}")).collect();
    let text = format!(
        "{} in {} of {}; {}{}{}{}",
        parts.join(", "),
        counts.projects,
        of_all(plan),
        count(counts.calls, "call"),
        plan.estimate.map_or_else(String::new, estimate),
        branch::summary(plan),
        unlisted(plan)
    );
    Line::default().put(Paint::Bold, format!("{}: ", title.word())).text(text)
}
