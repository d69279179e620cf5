//! The steps of a plan: one object, then its fields.

use similar::ChangeTag;
use unicode_width::UnicodeWidthStr as _;

use super::{branch, count_shown};
use crate::{
    diff::{Action, FieldChange, Shown, Step},
    report::{
        Canvas, Line, Paint,
        compare::{self, TextComparison},
        model::{
            StepRow, ValueText, action_sign, build_rows, predecessors, remarks, step::object_name,
            value_text,
        },
    },
    text::count,
};

/// The maximum width to which field names are aligned, in columns. On a terminal, it is at most a
/// third of the width. A longer name moves only its own value to the right.
const MAX_NAME_WIDTH: usize = 36;

/// Draws a step with `changes`, which are all or some of its changes.
pub(super) fn draw_step<'s>(
    canvas: &mut Canvas,
    step: &'s Step,
    changes: impl IntoIterator<Item = &'s FieldChange>,
    shows_origins: bool,
) {
    let rows = build_rows(step, changes, canvas.style().is_full);
    // The origin of the object is useless if all its fields are declared in other files.
    let shows_object_origin = rows.is_empty() || !rows.iter().all(is_in_other_file);
    let (paint, sign) = action_sign(step.action);
    let heading =
        Line::indented(2).put(paint, format!("{sign} {}", object_name(step.scope, &step.address)));
    let head = heading.put(Paint::Dim, branch::label_mark(step.label));
    canvas
        .add_line_with_origin(head, (shows_origins && shows_object_origin).then_some(&step.origin));
    for remark in remarks(step) {
        canvas.add_line(&Line::indented(6).put(Paint::Dim, remark));
    }
    draw_predecessors(canvas, step);
    let max_name_width =
        canvas.style().width.map_or(MAX_NAME_WIDTH, |width| MAX_NAME_WIDTH.min(width / 3));
    let name_width = rows.iter().map(|row| row.name.width()).filter(|n| *n <= max_name_width).max();
    let row_count = rows.len();
    for (index, row) in rows.into_iter().enumerate() {
        if canvas.remaining_lines() == 0 && index + 1 < row_count {
            let text = format!("… {}, shown by --full", count(row_count - index, "more field"));
            return canvas.add_line(&Line::indented(6).put(Paint::Dim, text));
        }
        draw_field(canvas, &row, name_width.unwrap_or(0), shows_origins);
    }
}

/// True if the field is declared in another file than its object.
fn is_in_other_file(row: &StepRow<'_>) -> bool {
    row.origin.is_some_and(|origin| origin.file != row.step.origin.file)
}

fn draw_predecessors(canvas: &mut Canvas, step: &Step) {
    for (reason, earlier_steps) in predecessors(step) {
        let earlier = if earlier_steps.len() > 3 {
            count(earlier_steps.len(), "other step")
        } else {
            earlier_steps.join(", ")
        };
        canvas.add_line(&Line::indented(6).put(Paint::Dim, format!("after {earlier}: {reason}")));
    }
}

/// Draws a field, and its origin if `shows_origin`.
fn draw_field(canvas: &mut Canvas, row: &StepRow<'_>, name_width: usize, shows_origin: bool) {
    let origin = row.origin.filter(|_| shows_origin);
    let draw_line = |canvas: &mut Canvas, line| {
        let overflow = canvas.add_line_with_fitting_origin(line, origin);
        // An origin that does not fit is omitted if it is in the file of the object. The line of
        // the object already names that file.
        overflow.iter().filter(|_| is_in_other_file(row)).for_each(|line| canvas.add_line(line));
    };
    let name = Line::indented(6).text(&row.name).put(Paint::Dim, branch::label_mark(row.label));
    let value_column = (6 + name_width + 2).max(name.width() + 2);
    let new_name_cell = || name.clone().pad_to(value_column).set_hanging_indent();
    let (before, after) = match row.before_and_after_texts().map(|side| side.map(paint_value)) {
        [Some(before), Some(after)] => (before, after),
        [before, after] => {
            let value = before.or(after).unwrap_or_default();
            draw_line(canvas, new_name_cell().append(value));
            if let (Action::Create, Some((_, text))) = (row.step.action, row.multi_line_texts()) {
                draw_new_text(canvas, 8, text);
            }
            return;
        }
    };
    if let Some((before, after)) = row.multi_line_texts() {
        draw_line(canvas, name);
        return draw_comparison(canvas, 8, before, after);
    }
    if row.before == row.after && !matches!(row.after, Shown::Hidden) {
        let value = after.put(Paint::Dim, ", unchanged");
        return draw_line(canvas, new_name_cell().append(value));
    }
    let one_line =
        new_name_cell().append(before.clone().put(Paint::Change, " → ").append(after.clone()));
    if canvas.style().width.is_none_or(|width| one_line.width() <= width) {
        return draw_line(canvas, one_line);
    }
    draw_line(canvas, name);
    for (paint, sign, value) in [(Paint::Remove, "- ", before), (Paint::Add, "+ ", after)] {
        canvas.add_line(&Line::indented(8).put(paint, sign).set_hanging_indent().append(value));
    }
}

/// The maximum number of shown lines of a text or a comparison without `--full`.
const MAX_LINES: usize = 40;
/// The minimum number of shown lines of a text or of a comparison.
const MIN_LINES: usize = 5;

/// The text of a value, with its colour.
pub(super) fn value_line(value: &Shown) -> Line {
    paint_value(value_text(value))
}

/// The text of one side of a change, with its colour.
fn paint_value(value: ValueText) -> Line {
    match value {
        ValueText::Remark(remark) => Line::with_text(Paint::Dim, remark),
        ValueText::Value(text) => Line::default().text(text),
    }
}

/// Draws a new text of several lines.
fn draw_new_text(canvas: &mut Canvas, indent: usize, text: &str) {
    let lines =
        canvas.redact(text).lines().map(|line| (Paint::Add, '+', line.to_owned())).collect();
    draw_lines(canvas, indent, lines);
}

/// Draws the comparison of two texts.
fn draw_comparison(canvas: &mut Canvas, indent: usize, before: &str, after: &str) {
    match compare::compare_texts(before, after, |text| canvas.redact(text)) {
        TextComparison::Remark(remark) => {
            canvas.add_line(&Line::indented(indent).put(Paint::Change, remark));
        }
        TextComparison::Lines(lines) => {
            let painted_lines = lines.into_iter().map(|(tag, line)| {
                let paint = match tag {
                    None => Paint::Note,
                    Some(ChangeTag::Equal) => Paint::Dim,
                    Some(ChangeTag::Delete) => Paint::Remove,
                    Some(ChangeTag::Insert) => Paint::Add,
                };
                (paint, compare::line_sign(tag), line)
            });
            draw_lines(canvas, indent, painted_lines.collect());
        }
    }
}

/// Draws `lines`, or the first ones and the number of the others.
fn draw_lines(canvas: &mut Canvas, indent: usize, lines: Vec<(Paint, char, String)>) {
    let max_lines = MAX_LINES.min(canvas.remaining_lines().max(MIN_LINES));
    let shown_count = count_shown(lines.len(), max_lines, canvas.style().is_full);
    let omitted_count = lines.len() - shown_count;
    for (paint, sign, line) in lines.into_iter().take(shown_count) {
        canvas.add_line(
            &Line::indented(indent)
                .put(paint, format!("{sign} "))
                .set_hanging_indent()
                .put(paint, line),
        );
    }
    if omitted_count > 0 {
        let text = format!("… {}, shown by --full", count(omitted_count, "more line"));
        canvas.add_line(&Line::indented(indent).put(Paint::Dim, text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::TextStyle,
        secret::{Secret, Secrets},
    };

    fn render_comparison(before: &str, after: &str, full: bool) -> String {
        render_redacted_comparison(&Secrets::default(), before, after, full)
    }

    fn render_redacted_comparison(
        secrets: &Secrets,
        before: &str,
        after: &str,
        full: bool,
    ) -> String {
        let mut canvas = Canvas::new(TextStyle { is_full: full, ..TextStyle::default() }, secrets);
        draw_comparison(&mut canvas, 2, before, after);
        canvas.finish()
    }

    #[test]
    fn texts_are_compared_by_lines() {
        insta::assert_snapshot!(render_comparison("one\ntwo\nthree\n", "one\n2\nthree", true), @r"
          @@ -1,3 +1,3 @@
          one
        - two
        - three
        + 2
        + three (no line feed at the end)
        ");
    }

    #[test]
    fn a_long_comparison_is_cut_with_a_remark() {
        let (before, after) = ("a\n".repeat(300), "b\n".repeat(300));
        assert!(
            render_comparison(&before, &after, false)
                .ends_with("… 561 more lines, shown by --full\n")
        );
        assert_eq!(render_comparison(&before, &after, true).lines().count(), 601);
    }

    #[test]
    fn no_line_of_a_secret_is_in_a_comparison() {
        let key = "-----BEGIN KEY-----\nQUJDREVGR0hJSktM\nTU5P\n-----END KEY-----\n";
        let mut secrets = Secrets::default();
        secrets.add_redaction(Secret::new(key));
        let text =
            render_redacted_comparison(&secrets, &format!("one\n{key}two\n"), "one\ntwo\n", true);
        assert_eq!(text, "    @@ -1,2 +1,2 @@\n    one\n  - [secret]two\n  + two\n");
        let mut canvas = Canvas::new(TextStyle::default(), &secrets);
        draw_new_text(&mut canvas, 2, key);
        assert_eq!(canvas.finish(), "  + [secret]\n");
        secrets.add_redaction(Secret::new("QUJDREVGR0hJSktM"));
        let rotated = render_redacted_comparison(
            &secrets,
            &format!("one\n{key}"),
            "one\nQUJDREVGR0hJSktM",
            true,
        );
        assert_eq!(rotated, "  changed in a secret, which is not shown\n");
    }
}
