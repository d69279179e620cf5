//! Answers that are JSON but that no service sends.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::numbers::Numbers;

/// The damage of a response. Its place and details are random.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Spoil {
    /// The whole response is something else: null, a number, a text, a list for an object, or the
    /// reverse.
    Whole,
    /// A field, at any depth, has a value of another type.
    Type,
    /// A field, at any depth, is null.
    Null,
    /// A field, at any depth, is missing.
    Missing,
    /// There are unknown fields, with names that have a meaning elsewhere.
    Extra,
    /// A number is far too large, negative or broken.
    Number,
    /// An id is missing, unknown, or not a number.
    Id,
    /// A row of a list is something else.
    Row,
    /// A text is empty, very long, or of invisible characters.
    Text,
}

impl Spoil {
    pub(crate) const ALL: [Self; 9] = [
        Self::Whole,
        Self::Type,
        Self::Null,
        Self::Missing,
        Self::Extra,
        Self::Number,
        Self::Id,
        Self::Row,
        Self::Text,
    ];

    /// Damages `body`, if that is possible.
    pub(crate) fn apply(self, body: &mut Json, numbers: &mut Numbers) {
        let is_id = |name: &str, _: &Json| name == "id" || name.ends_with("_id");
        match self {
            Self::Whole => *body = other_type(body, numbers),
            Self::Type => change_field(body, numbers, |_, _| true, other_type),
            Self::Null => {
                change_field(body, numbers, |_, value| !value.is_null(), |_, _| Json::Null);
            }
            Self::Missing => drop_field(body, numbers),
            Self::Extra => add_fields(body),
            Self::Number => change_field(body, numbers, |_, value| value.is_number(), odd_number),
            Self::Id => {
                change_field(body, numbers, is_id, |value, numbers| match numbers.below(2) {
                    0 => odd_number(value, numbers),
                    _ => other_type(value, numbers),
                });
            }
            Self::Row => {
                if let Some(rows) = body.as_array_mut().filter(|rows| !rows.is_empty()) {
                    let at = numbers.below(rows.len());
                    rows[at] = other_type(&rows[at], numbers);
                }
            }
            Self::Text => change_field(body, numbers, |_, value| value.is_string(), odd_text),
        }
    }
}

/// A value of another type than `value`, which the service never sends for it.
fn other_type(value: &Json, numbers: &mut Numbers) -> Json {
    let all = [
        json!(null),
        json!(true),
        json!(-7),
        json!("spoiled"),
        json!([]),
        json!([1, null, "a", {}]),
        json!({}),
        json!({"id": 1, "name": [], "message": 5, "error": {"x": []}}),
    ];
    let others: Vec<_> = all
        .iter()
        .filter(|other| type_number(other) != type_number(value) && !other.is_null())
        .collect();
    (*numbers.pick(&others)).clone()
}

fn type_number(value: &Json) -> u8 {
    match value {
        Json::Null => 0,
        Json::Bool(_) => 1,
        Json::Number(_) => 2,
        Json::String(_) => 3,
        Json::Array(_) => 4,
        Json::Object(_) => 5,
    }
}

fn odd_number(_: &Json, numbers: &mut Numbers) -> Json {
    let all =
        [json!(-1), json!(u64::MAX), json!(i64::MIN), json!(1e300), json!(1.5), json!(9_999_999)];
    numbers.pick(&all).clone()
}

fn odd_text(_: &Json, numbers: &mut Numbers) -> Json {
    let all = ["", "\u{0}", "\u{202e}\u{1b}[2J", "../../x", "**", "https://[::1"];
    match numbers.below(all.len() + 1) {
        at if at < all.len() => all[at].into(),
        _ => "x".repeat(70_000).into(),
    }
}

/// Changes one of the fields that satisfy `is_selected`, at any depth.
fn change_field(
    body: &mut Json,
    numbers: &mut Numbers,
    is_meant: impl Fn(&str, &Json) -> bool,
    replace: impl Fn(&Json, &mut Numbers) -> Json,
) {
    let mut fields = Vec::new();
    let mut rest = vec![body];
    while let Some(value) = rest.pop() {
        match value {
            Json::Array(rows) => rest.extend(rows),
            Json::Object(object) => {
                for (name, value) in object {
                    match is_meant(name, value) && numbers.below(2) == 0 {
                        true => fields.push(value),
                        false => rest.push(value),
                    }
                }
            }
            _ => {}
        }
    }
    if !fields.is_empty() {
        let at = numbers.below(fields.len());
        *fields[at] = replace(fields[at], numbers);
    }
}

fn drop_field(body: &mut Json, numbers: &mut Numbers) {
    let mut fields = Vec::new();
    let mut rest = vec![(String::new(), &*body)];
    while let Some((at, value)) = rest.pop() {
        let own = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        match value {
            Json::Array(rows) => {
                rest.extend(
                    rows.iter().enumerate().map(|(row, value)| (own(&row.to_string()), value)),
                );
            }
            Json::Object(object) => {
                fields.extend(object.keys().map(|name| (at.clone(), name.clone())));
                rest.extend(object.iter().map(|(name, value)| (own(name), value)));
            }
            _ => {}
        }
    }
    if !fields.is_empty() {
        let (at, name) = numbers.pick(&fields);
        let object = body.pointer_mut(at).and_then(Json::as_object_mut);
        object.map(|object| object.remove(name));
    }
}

fn add_fields(body: &mut Json) {
    let objects: Vec<&mut Json> = match body {
        Json::Array(rows) => rows.iter_mut().collect(),
        other => vec![other],
    };
    for object in objects.into_iter().filter_map(Json::as_object_mut) {
        let extra_fields = json!({
            "": 1, "error": "invalid_token", "message": {"base": ["nothing"]}, "__proto__": {},
            "state": "absent", "deleted": true, "status": 404, "unknown": [[[[{"id": 1}]]]],
        });
        for (name, value) in extra_fields.as_object().unwrap() {
            object.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
}
