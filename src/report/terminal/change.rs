//! The steps of a plan: one object, then its fields.

use unicode_width::UnicodeWidthStr as _;

use super::{branch, value};
use crate::{
    diff::{Action, Change, Shown, Step},
    report::{
        Canvas, Line, Overflow, Paint,
        model::{Row, firsts, remarks, rows_of, sign, step::object},
    },
    text::count,
};

/// Field names are aligned up to this width, and up to a third of the terminal's width. A longer
/// one moves its own value to the right.
const WIDEST_NAME: usize = 36;

/// A step with `changes` of it, and with origins unless they are shown elsewhere.
pub(super) fn step<'s>(
    canvas: &mut Canvas,
    step: &'s Step,
    changes: impl IntoIterator<Item = &'s Change>,
    origins: bool,
) {
    let rows = rows_of(step, changes, canvas.style().full);
    // Where nothing about its fields is written is of no use.
    let is_elsewhere = |row: &Row<'_>| row.origin.is_some_and(|at| at.file != step.origin.file);
    let has_place = rows.is_empty() || !rows.iter().all(is_elsewhere);
    let (paint, sign) = sign(step.action);
    let head =
        Line::indented(2).put(paint, format!("{sign} {}", object(step.scope, &step.address)));
    let head = head.put(Paint::Dim, branch::mark(step.label));
    canvas.line_from(head, (origins && has_place).then_some(&step.origin), Overflow::Wrap);
    for remark in remarks(step) {
        canvas.line(&Line::indented(6).put(Paint::Dim, remark));
    }
    edges(canvas, step);
    let widest = canvas.style().width.map_or(WIDEST_NAME, |width| WIDEST_NAME.min(width / 3));
    let column = rows.iter().map(|row| row.name.width()).filter(|n| *n <= widest).max();
    let number = rows.len();
    for (at, row) in rows.into_iter().enumerate() {
        if canvas.room() == 0 && at + 1 < number {
            let text = format!("… {}, shown by --full", count(number - at, "more field"));
            return canvas.line(&Line::indented(6).put(Paint::Dim, text));
        }
        let crowded = if is_elsewhere(&row) { Overflow::Wrap } else { Overflow::Drop };
        field(canvas, &row, column.unwrap_or(0), origins.then_some(crowded));
    }
}

fn edges(canvas: &mut Canvas, step: &Step) {
    for (reason, firsts) in firsts(step) {
        let firsts =
            if firsts.len() > 3 { count(firsts.len(), "other step") } else { firsts.join(", ") };
        canvas.line(&Line::indented(6).put(Paint::Dim, format!("after {firsts}: {reason}")));
    }
}

/// A field; with its origin, unless it is `None`, and then what to do if there is no room for it.
fn field(canvas: &mut Canvas, row: &Row<'_>, column: usize, origin: Option<Overflow>) {
    let name = Line::indented(6).text(&row.name).put(Paint::Dim, branch::mark(row.label));
    let start = 6 + column + 2;
    let labelled =
        |value: Line| name.clone().pad_to(start.max(name.len() + 2)).hang_here().with(value);
    let draw = |canvas: &mut Canvas, line: Line| {
        let crowded = origin.unwrap_or(Overflow::Drop);
        canvas.line_from(line, row.origin.filter(|_| origin.is_some()), crowded);
    };
    let (before, after) = match row.sides().map(|said| said.map(value::side)) {
        [Some(before), Some(after)] => (before, after),
        [before, after] => {
            draw(canvas, labelled(before.or(after).unwrap_or_default()));
            if let (Action::Create, Some((_, text))) = (row.action, row.texts()) {
                value::block(canvas, 8, text);
            }
            return;
        }
    };
    if let Some((before, after)) = row.texts() {
        draw(canvas, name);
        value::comparison(canvas, 8, before, after);
        return;
    }
    if row.before == row.after && !matches!(row.after, Shown::Hidden) {
        draw(canvas, labelled(after.put(Paint::Dim, ", as it is")));
        return;
    }
    let one_line = labelled(before.clone().put(Paint::Change, " → ").with(after.clone()));
    if canvas.style().width.is_none_or(|width| one_line.len() <= width) {
        draw(canvas, one_line);
        return;
    }
    draw(canvas, name);
    for (paint, sign, side) in [(Paint::Remove, "- ", before), (Paint::Add, "+ ", after)] {
        canvas.line(&Line::indented(8).put(paint, sign).hang_here().with(side));
    }
}
