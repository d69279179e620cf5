//! The steps of a plan: one object, then its fields.

use unicode_width::UnicodeWidthStr as _;

use crate::{
    address::Address,
    diff::{Action, Change, Edge, Shown, Step},
    field::{Limits, Scope},
    kind::plain_text,
    kinds,
    origin::Origin,
    report::canvas::{Canvas, Crowded, Line, Paint},
    text::count,
    value::Json,
};

use super::{branch, value};

/// Field names are aligned up to this width, and up to a third of the terminal's; a longer one
/// pushes its own value to the right.
const WIDEST_NAME: usize = 36;

/// The steps of one project. Without `origins`, equal changes of two projects give equal text.
pub(super) fn steps(canvas: &mut Canvas, steps: &[&Step], origins: bool) {
    for step in steps {
        let (paint, sign) = sign(step.action);
        let head =
            Line::indented(2).put(paint, format!("{sign} {}", named(step.scope, &step.address)));
        let head = head.put(Paint::Dim, branch::mark(step.label));
        if origins {
            canvas.line_from(head, &step.origin, Crowded::Wrap);
        } else {
            canvas.line(&head);
        }
        for remark in remarks(step) {
            canvas.line(&Line::indented(6).put(Paint::Dim, remark));
        }
        edges(canvas, step);
        let rows = rows_of(step, canvas.style().full);
        let widest = canvas.style().width.map_or(WIDEST_NAME, |width| WIDEST_NAME.min(width / 3));
        let column =
            rows.iter().map(|row| row.name.width()).filter(|n| *n <= widest).max().unwrap_or(0);
        for row in rows {
            field(canvas, step, &row, column, origins);
        }
    }
}

/// What is special about how a step is carried out.
pub(in crate::report) fn remarks(step: &Step) -> Vec<String> {
    let replaces = step.replaces.then(|| {
        "removed and added anew, since the service cannot edit it: for a moment it is not there"
            .to_owned()
    });
    let possible = step.possible.map(|condition| format!("possible: {condition}"));
    replaces.into_iter().chain(possible).collect()
}

/// The colour and the sign of what is done.
pub(in crate::report) const fn sign(action: Action) -> (Paint, char) {
    match action {
        Action::Create => (Paint::Add, '+'),
        Action::Update => (Paint::Change, '~'),
        Action::Delete => (Paint::Remove, '-'),
    }
}

/// The address of what is in a container of `scope` without that, spelt out for reading.
pub(in crate::report) fn named(scope: Scope, address: &Address) -> String {
    if address.section.is_some() { tail(address) } else { scope.noun().to_owned() }
}

/// An address without its container, spelt out for reading.
pub(in crate::report) fn tail(address: &Address) -> String {
    match (address.section, &address.entry) {
        (None, _) => "itself".into(),
        (Some(section), None) => section.into(),
        (Some(section), Some(entry)) => format!("{section}/{entry}"),
    }
}

/// The fields of a new entry that its address tells already: those that tell it from others, unless
/// it goes by another name.
fn identity(step: &Step) -> Vec<&str> {
    let named = step.address.section.filter(|_| step.action == Action::Create);
    // A section of this name tells its entries apart in the same way in every scope.
    let section = kinds::everywhere().find(|section| Some(section.section) == named);
    let (Some(section), Some(entry)) = (section, &step.address.entry) else { return Vec::new() };
    let is_told = |change: &&Change| match &change.after {
        Shown::Value(value) => {
            section.identity.contains(&change.field.as_str()) && entry.contains(&plain_text(value))
        }
        _ => false,
    };
    step.changes.iter().filter(is_told).map(|change| change.field.as_str()).collect()
}

/// What comes first, where one would not expect it: steps of other sections, and of none but the
/// project itself. Each reason with the steps that come first for it, as the address of the step
/// itself would call them.
pub(in crate::report) fn firsts(step: &Step) -> Vec<(&'static str, Vec<String>)> {
    let surprises = |edge: &&Edge| {
        edge.address.path != step.address.path
            || (edge.address.section.is_some() && edge.address.section != step.address.section)
    };
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for edge in step.after.iter().filter(surprises) {
        let is_near = edge.address.path == step.address.path;
        let first = if is_near { tail(&edge.address) } else { edge.address.to_string() };
        match reasons.iter_mut().find(|(reason, _)| *reason == edge.reason) {
            Some((_, firsts)) => firsts.push(first),
            None => reasons.push((edge.reason, vec![first])),
        }
    }
    reasons
}

fn edges(canvas: &mut Canvas, step: &Step) {
    for (reason, firsts) in firsts(step) {
        let firsts =
            if firsts.len() > 3 { count(firsts.len(), "other step") } else { firsts.join(", ") };
        canvas.line(&Line::indented(6).put(Paint::Dim, format!("after {firsts}: {reason}")));
    }
}

/// The lines of a step: its fields but for those that its address tells already, a mapping by those
/// of its keys that differ. With `full`, also what nothing is lost with.
pub(in crate::report) fn rows_of(step: &Step, full: bool) -> Vec<Row<'_>> {
    let told = identity(step);
    let changes = step.changes.iter().filter(|change| !told.contains(&change.field.as_str()));
    let rows = changes.flat_map(|change| rows(step, change));
    rows.filter(|row| full || !row.is_idle(step.action)).collect()
}

/// A line of a step: a field, or a key of one that is a mapping.
pub(in crate::report) struct Row<'c> {
    /// The field, or the field and the key.
    pub(in crate::report) name: String,
    /// What is there.
    pub(in crate::report) before: Shown,
    /// What is to be there.
    pub(in crate::report) after: Shown,
    /// What it is a part of.
    pub(in crate::report) change: &'c Change,
}

impl Row<'_> {
    /// Whether nothing is lost with it when its object is removed.
    fn is_idle(&self, action: Action) -> bool {
        action == Action::Delete
            && matches!(self.before, Shown::Value(Json::Null | Json::Bool(false)))
    }
}

/// A mapping is shown by those of its keys that differ, and what is switched on by what limits it.
fn rows<'c>(step: &Step, change: &'c Change) -> Vec<Row<'c>> {
    let row = |name: String, before: Shown, after: Shown| Row { name, before, after, change };
    let whole = || vec![row(change.field.clone(), change.before.clone(), change.after.clone())];
    let Shown::Value(Json::Object(after)) = &change.after else { return whole() };
    let before = |key: &str| match &change.before {
        Shown::Value(Json::Object(before)) => {
            before.get(key).map_or(Shown::Unknown, |value| Shown::Value(value.clone()))
        }
        other => other.clone(),
    };
    let keys = after.iter().map(|(key, value)| (key, before(key), Shown::Value(value.clone())));
    let section = step.address.section.and_then(|name| kinds::section(step.scope, name));
    let spec = section.and_then(|of| of.table().get(&change.field));
    let is_limit = |key: &str| {
        let limits = spec.and_then(|spec| spec.part(key)?.limits.as_ref());
        limits.is_some_and(|Limits { switch, .. }| {
            let now = after.get(&**switch).filter(|now| Limits::is_on(now));
            now.is_some_and(|now| before(switch) != Shown::Value(now.clone()))
        })
    };
    let rows: Vec<_> = keys
        .filter(|(key, b, a)| b != a || is_limit(key))
        .map(|(key, b, a)| row(format!("{}.{key}", change.field), b, a))
        .collect();
    if rows.is_empty() { whole() } else { rows }
}

fn field(canvas: &mut Canvas, step: &Step, row: &Row<'_>, column: usize, origins: bool) {
    // What is as all of its object needs no mark of its own.
    let label = row.change.label.filter(|_| row.change.label != step.label);
    let name = Line::indented(6).text(&row.name).put(Paint::Dim, branch::mark(label));
    let start = 6 + column + 2;
    let labelled =
        |value: Line| name.clone().pad_to(start.max(name.len() + 2)).hang_here().with(value);
    let arrow = |before: Line, after: Line| before.put(Paint::Change, " → ").with(after);
    // What stands on one line with its object comes from where that comes from.
    let is_news = |origin: &&Origin| {
        origins && (&origin.file, origin.line) != (&step.origin.file, step.origin.line)
    };
    let origin = row.change.origin.as_ref().filter(is_news);
    let draw = |canvas: &mut Canvas, line: Line| match origin {
        Some(origin) => canvas.line_from(line, origin, Crowded::Drop),
        None => canvas.line(&line),
    };
    match step.action {
        Action::Create => match value::lines(&row.after) {
            Some(text) => {
                draw(canvas, labelled(value::shown(&row.after)));
                value::block(canvas, 8, text);
            }
            None => draw(canvas, labelled(value::shown(&row.after))),
        },
        Action::Delete => draw(canvas, labelled(value::shown(&row.before))),
        Action::Update => {
            let by_lines = value::lines(&row.before).or(value::lines(&row.after)).is_some();
            if by_lines
                && let (Some(before), Some(after)) =
                    (value::comparable(&row.before), value::comparable(&row.after))
            {
                draw(canvas, name);
                value::comparison(canvas, 8, before, after);
                return;
            }
            if row.before == row.after && !matches!(row.after, Shown::Hidden) {
                let same = Line::default().put(Paint::Dim, ", as it is");
                draw(canvas, labelled(value::shown(&row.after).with(same)));
                return;
            }
            let after = match (&row.before, &row.after) {
                (Shown::Hidden, Shown::Hidden) => Line::default().put(Paint::Dim, value::ANOTHER),
                (_, after) => value::shown(after),
            };
            let one_line = labelled(arrow(value::shown(&row.before), after.clone()));
            if canvas.style().width.is_none_or(|width| one_line.len() <= width) {
                draw(canvas, one_line);
            } else {
                draw(canvas, name);
                let side = |paint, sign: &str, value: Line| {
                    Line::indented(8).put(paint, sign).hang_here().with(value)
                };
                canvas.line(&side(Paint::Remove, "- ", value::shown(&row.before)));
                canvas.line(&side(Paint::Add, "+ ", after));
            }
        }
    }
}
