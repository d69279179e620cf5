//! The texts for the live and the declared value of a change. They are as short as possible without
//! ambiguity.

use crate::{diff::Shown, text::count, value::Json};

/// The text for one side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueText {
    /// A remark about the value, in brackets.
    Remark(String),
    /// The value itself, on one line if it has no control characters.
    Value(String),
}

/// The text for one side of a change.
pub fn value_text(value: &Shown) -> ValueText {
    ValueText::Remark(match value {
        Shown::Absent => "(absent)".into(),
        Shown::Unknown => "(not shown by the service)".into(),
        Shown::Hidden => "(hidden)".into(),
        Shown::Secret(reference) => format!("(secret {reference})"),
        Shown::File(path) => format!("(file {path})"),
        Shown::Value(Json::String(text)) if text.contains('\n') => {
            format!("({}, {})", count(text.lines().count(), "line"), count(text.len(), "byte"))
        }
        Shown::Value(value) => return ValueText::Value(json_text(value)),
    })
}

/// The text of a value, if it has several lines.
pub fn multi_line_text(value: &Shown) -> Option<&str> {
    match value {
        Shown::Value(Json::String(text)) if text.contains('\n') => Some(text),
        _ => None,
    }
}

/// The text of a value, if it can be compared by lines.
pub fn comparable_text(value: &Shown) -> Option<&str> {
    match value {
        Shown::Value(Json::String(text)) => Some(text),
        Shown::Value(Json::Null) | Shown::Absent => Some(""),
        _ => None,
    }
}

/// A value on one line. Texts have no quotes if they cannot be mistaken for another value.
fn json_text(value: &Json) -> String {
    match value {
        Json::String(text) if is_bare(text) => text.clone(),
        Json::Array(items) => {
            format!("[{}]", items.iter().map(json_text).collect::<Vec<_>>().join(", "))
        }
        Json::Object(object) => {
            let entries = object.iter().map(|(key, value)| format!("{key}: {}", json_text(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

/// True if a text needs no quotes.
fn is_bare(text: &str) -> bool {
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "_-./:@*+%~^$=?&()|\\".contains(c));
    // Without quotes, a text such as `(hidden)` would look like a remark of undrift.
    let is_ambiguous = text.starts_with('(') || serde_json::from_str::<Json>(text).is_ok();
    !text.is_empty() && is_plain && !is_ambiguous
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    #[test]
    fn texts_are_unquoted_only_if_unambiguous() {
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
            assert_eq!(json_text(&data), text);
        }
    }
}
