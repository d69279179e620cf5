//! Values in a plan.

use crate::{
    diff::Shown,
    report::{
        Canvas, Line, Paint,
        compare::{self, Compared, Sign},
        model::{Cell, cell},
    },
    text::count,
};

/// How many lines of a text or of a comparison are shown without `--full`.
const LINES: usize = 40;
/// How many of them are shown at least.
const SOME: usize = 5;

/// A value.
pub(super) fn shown(value: &Shown) -> Line {
    side(cell(value))
}

/// One side of a change.
pub(super) fn side(said: Cell) -> Line {
    match said {
        Cell::Aside(words) => Line::of(Paint::Dim, words),
        Cell::Value(text) => Line::default().text(text),
    }
}

/// A new text of several lines.
pub(super) fn block(canvas: &mut Canvas, indent: usize, text: &str) {
    let lines =
        canvas.redact(text).lines().map(|line| (Paint::Add, '+', line.to_owned())).collect();
    cut(canvas, indent, lines);
}

/// The comparison of two texts.
pub(super) fn comparison(canvas: &mut Canvas, indent: usize, before: &str, after: &str) {
    match compare::texts(before, after, |text| canvas.redact(text)) {
        Compared::Aside(words) => {
            canvas.line(&Line::indented(indent).put(Paint::Change, words));
        }
        Compared::Lines(lines) => {
            let painted = lines.into_iter().map(|(sign, line)| {
                let paint = match sign {
                    Sign::Head => Paint::Note,
                    Sign::Same => Paint::Dim,
                    Sign::Out => Paint::Remove,
                    Sign::In => Paint::Add,
                };
                (paint, sign.character(), line)
            });
            cut(canvas, indent, painted.collect());
        }
    }
}

/// Writes `lines`, or the first ones and the number of the rest.
fn cut(canvas: &mut Canvas, indent: usize, lines: Vec<(Paint, char, String)>) {
    let most = LINES.min(canvas.room().max(SOME));
    let shown = if canvas.style().full || lines.len() <= most + 1 { lines.len() } else { most };
    let left = lines.len() - shown;
    for (paint, sign, line) in lines.into_iter().take(shown) {
        canvas.line(
            &Line::indented(indent).put(paint, format!("{sign} ")).hang_here().put(paint, line),
        );
    }
    if left > 0 {
        canvas.line(
            &Line::indented(indent)
                .put(Paint::Dim, format!("… {}, shown by --full", count(left, "more line"))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        report::Style,
        secret::{Secret, Secrets},
    };

    fn compared(before: &str, after: &str, full: bool) -> String {
        compared_without(&Secrets::default(), before, after, full)
    }

    fn compared_without(secrets: &Secrets, before: &str, after: &str, full: bool) -> String {
        let mut canvas = Canvas::new(Style { full, ..Style::default() }, secrets);
        comparison(&mut canvas, 2, before, after);
        canvas.finish()
    }

    #[test]
    fn texts_are_compared_by_lines() {
        insta::assert_snapshot!(compared("one\ntwo\nthree\n", "one\n2\nthree", true), @r"
          @@ -1,3 +1,3 @@
          one
        - two
        - three
        + 2
        + three (no line feed at the end)
        ");
    }

    #[test]
    fn a_long_comparison_is_cut_and_says_so() {
        let (before, after) = ("a\n".repeat(300), "b\n".repeat(300));
        assert!(compared(&before, &after, false).ends_with("… 561 more lines, shown by --full\n"));
        assert_eq!(compared(&before, &after, true).lines().count(), 601);
    }

    #[test]
    fn no_line_of_a_secret_is_in_a_comparison() {
        let key = "-----BEGIN KEY-----\nQUJDREVGR0hJSktM\nTU5P\n-----END KEY-----\n";
        let mut secrets = Secrets::default();
        secrets.also_redact(Secret::new(key));
        let text = compared_without(&secrets, &format!("one\n{key}two\n"), "one\ntwo\n", true);
        assert_eq!(text, "    @@ -1,2 +1,2 @@\n    one\n  - [secret]two\n  + two\n");
        let mut canvas = Canvas::new(Style::default(), &secrets);
        block(&mut canvas, 2, key);
        assert_eq!(canvas.finish(), "  + [secret]\n");
        secrets.also_redact(Secret::new("QUJDREVGR0hJSktM"));
        let rotated =
            compared_without(&secrets, &format!("one\n{key}"), "one\nQUJDREVGR0hJSktM", true);
        assert_eq!(rotated, "  changed in a secret, which is not shown\n");
    }
}
