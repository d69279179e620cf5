//! Values in a plan: as short as they can be read without doubt.

use crate::{
    diff::Shown,
    report::{
        canvas::{Canvas, Line, Paint},
        compare::{self, Compared, Sign},
    },
    text::count,
    value::Json,
};

/// How many lines of a text or of a comparison are shown unless everything is.
const LINES: usize = 40;

/// One side of a change.
pub(super) fn shown(value: &Shown) -> Line {
    match said(value) {
        Said::Aside(words) => Line::default().put(Paint::Dim, words),
        Said::Value(text) => Line::default().text(text),
    }
}

/// What is said of one side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::report) enum Said {
    /// Something about the value, in brackets.
    Aside(String),
    /// The value itself, on one line as far as it has no controls in it.
    Value(String),
}

/// What is said of one side of a change.
pub(in crate::report) fn said(value: &Shown) -> Said {
    Said::Aside(match value {
        Shown::Absent => "(absent)".into(),
        Shown::Unknown => "(not shown by the service)".into(),
        Shown::Hidden => "(hidden)".into(),
        Shown::Secret(reference) => format!("(secret {reference})"),
        Shown::File(path) => format!("(file {path})"),
        Shown::Value(Json::String(text)) if text.contains('\n') => size(text),
        Shown::Value(value) => return Said::Value(json(value)),
    })
}

/// The two sides of an update where both are hidden.
pub(in crate::report) const ANOTHER: &str = "(another value, hidden)";

/// The text, if it has several lines.
pub(in crate::report) fn lines(value: &Shown) -> Option<&str> {
    match value {
        Shown::Value(Json::String(text)) if text.contains('\n') => Some(text),
        _ => None,
    }
}

/// The text on this side of a comparison by lines, if that makes sense.
pub(in crate::report) fn comparable(value: &Shown) -> Option<&str> {
    match value {
        Shown::Value(Json::String(text)) => Some(text),
        Shown::Value(Json::Null) | Shown::Absent => Some(""),
        _ => None,
    }
}

/// Data on one line: texts stand bare where they cannot be taken for anything else.
fn json(value: &Json) -> String {
    match value {
        Json::String(text) if is_bare(text) => text.clone(),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(", "))
        }
        Json::Object(object) => {
            let entries = object.iter().map(|(key, value)| format!("{key}: {}", json(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

/// Whether a text can stand without quotes.
fn is_bare(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_-./:@*+%~^$=?&()|\\".contains(c);
    // `(hidden)` and its like are ours alone.
    let other = text.starts_with('(') || serde_json::from_str::<Json>(text).is_ok();
    !text.is_empty() && text.chars().all(plain) && !other
}

fn size(text: &str) -> String {
    format!("({}, {})", count(text.lines().count(), "line"), count(text.len(), "byte"))
}

/// A text of several lines that comes into being.
pub(super) fn block(canvas: &mut Canvas, indent: usize, text: &str) {
    let lines =
        canvas.strike(text).lines().map(|line| (Paint::Add, '+', line.to_owned())).collect();
    cut(canvas, indent, lines);
}

/// How one text becomes another, line by line.
pub(super) fn comparison(canvas: &mut Canvas, indent: usize, before: &str, after: &str) {
    match compare::texts(before, after, |text| canvas.strike(text)) {
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

/// Writes `lines`, or as many as are shown with word of the rest.
fn cut(canvas: &mut Canvas, indent: usize, lines: Vec<(Paint, char, String)>) {
    let shown = if canvas.style().full || lines.len() <= LINES + 1 { lines.len() } else { LINES };
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
    use serde_json::json as value;

    #[test]
    fn texts_are_bare_only_where_nothing_else_looks_like_them() {
        for (data, text) in [
            (value!("private"), "private"),
            (value!("release/*"), "release/*"),
            (value!("true"), r#""true""#),
            (value!(true), "true"),
            (value!("12"), r#""12""#),
            (value!(12), "12"),
            (value!("null"), r#""null""#),
            (value!(null), "null"),
            (value!(""), r#""""#),
            (value!("two words"), r#""two words""#),
            (value!("(hidden)"), r#""(hidden)""#),
            (value!(["a", "b, c"]), r#"[a, "b, c"]"#),
            (value!({"enabled": true, "cadence": "1d"}), "{enabled: true, cadence: 1d}"),
        ] {
            assert_eq!(json(&data), text);
        }
    }

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
