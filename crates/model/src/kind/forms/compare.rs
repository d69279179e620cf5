//! Equality of values, and the identity of entries.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use sha2::{Digest as _, Sha256};

use super::{plain_text, rows};
use crate::{
    field::Equality,
    kind::{FORMER_FIELD, FieldLookup, Identity, Section},
    level::AccessLevel,
    secret::judge,
    text,
    value::Json,
};

/// The identity of an entry. Names of objects are compared case-insensitively, other texts by the
/// comparison of their field. Values that may contain a credential are shown without the
/// credential. If the service stores a name ([`Kind::name_field`](crate::kind::Kind::name_field)),
/// the entry is called by that name.
pub fn identify(section: Section, find_value: FieldLookup<'_>) -> Identity {
    let identity_values = section.identity.iter().filter_map(|name| {
        let value = find_value(name).filter(|value| !value.is_null())?;
        let (field, text) = (section.field(name), plain_text(&value));
        let key = match field.names {
            Some(_) => text.to_lowercase(),
            None => normal_form(field.compare, &text).into_owned(),
        };
        let display_text = match field.compare {
            _ if field.names.is_some() => key.clone(),
            Equality::Location => key.clone(),
            Equality::PublicKey => fingerprint(&key),
            _ => text,
        };
        Some((judge::mask_text(&display_text, field.secrecy()).into_owned(), key))
    });
    let (readable_parts, keys): (Vec<_>, Vec<_>) = identity_values.unzip();
    let stored_name =
        section.name_field.and_then(|name| Some(find_value(name)?.as_str()?.to_owned()));
    let service_name = stored_name.filter(|name| !name.is_empty());
    let name = service_name.as_deref().map_or_else(|| readable_parts.join("@"), judge::mask_name);
    let former_names = find_value(FORMER_FIELD);
    let former_names =
        former_names.as_ref().and_then(|names| names.as_array()).into_iter().flatten();
    let former_keys = former_names.map(|name| {
        let leading_keys = keys.split_last().map_or(&[][..], |(_, leading_part)| leading_part);
        let compare = section.field(section.identity[section.identity.len() - 1]).compare;
        let last_key = normal_form(compare, &plain_text(name)).into_owned();
        leading_keys.iter().cloned().chain([last_key]).collect::<Vec<_>>().join("@")
    });
    let former_keys = former_keys.collect();
    Identity { keys: vec![keys.join("@")], name, service_name, former_keys, ..Identity::default() }
}

/// The normal form of a text: equal for all texts that `compare` treats as equal.
fn normal_form(compare: Equality, text: &str) -> Cow<'_, str> {
    match compare {
        Equality::Url => text::normal_url(text).into(),
        Equality::Location => text::url_without_user(text).into(),
        Equality::AnyCase => text.to_lowercase().into(),
        Equality::Ref => text.strip_prefix("refs/heads/").unwrap_or(text).into(),
        Equality::PublicKey => key_without_comment(text).into(),
        Equality::Instant => normal_instant(text).into(),
        Equality::Trimmed => text.trim().into(),
        Equality::Exact | Equality::Set | Equality::Topics | Equality::Rows => text.into(),
    }
}

/// True if a declared and a live value, both comparable, are equal. Mappings are compared by the
/// declared keys. `null` means "not set": it equals empty text, and a live `null` equals `false`.
pub fn are_equal(compare: Equality, declared: &Json, live: &Json) -> bool {
    match (declared, live) {
        (Json::Null, Json::String(text)) | (Json::String(text), Json::Null) => text.is_empty(),
        (Json::Bool(declared), Json::Null) => !declared,
        (Json::Object(declared), Json::Object(live)) => declared
            .iter()
            .all(|(name, value)| are_equal(compare, value, live.get(name).unwrap_or(&Json::Null))),
        (Json::Array(declared), Json::Array(live)) if compare == Equality::Set => {
            let [declared, live] =
                [declared, live].map(|items| items.iter().collect::<HashSet<_>>());
            declared == live
        }
        (Json::Array(declared), Json::Array(live)) if compare == Equality::Topics => {
            normalised_topics(declared) == normalised_topics(live)
        }
        (Json::Array(declared), Json::Array(live)) if compare == Equality::Rows => {
            let is_effective = |rows: &[Json], row: &Json| rows.len() == 1 || !is_nobody_row(row);
            declared.iter().all(|row| !is_effective(declared, row) || has_row(live, row))
                && live.iter().all(|row| !is_effective(live, row) || has_row(declared, row))
        }
        (Json::Array(declared), Json::Array(live)) => {
            declared.len() == live.len()
                && declared
                    .iter()
                    .zip(live)
                    .all(|(declared, live)| are_equal(compare, declared, live))
        }
        (Json::Number(declared), Json::Number(live)) => declared.as_f64() == live.as_f64(),
        (Json::String(declared), Json::String(live)) => {
            normal_form(compare, declared) == normal_form(compare, live)
        }
        _ => declared == live,
    }
}

/// True if `rows` contains `row`, ignoring the ids.
fn has_row(rows: &[Json], row: &Json) -> bool {
    rows.iter().any(|other| rows::strip_id(other) == rows::strip_id(row))
}

/// True if `row` gives the level "nobody". Such a row has no effect in a list with other rows.
fn is_nobody_row(row: &Json) -> bool {
    row.get("access_level").and_then(AccessLevel::parse).is_some_and(|level| level.number == 0)
}

/// Topics in the form in which the service compares them.
fn normalised_topics(list: &[Json]) -> BTreeSet<String> {
    let texts = list.iter().filter_map(Json::as_str).flat_map(|text| text.split(','));
    texts.map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty()).collect()
}

/// The point in time that `text` names, in UTC. For a day, this is its start. Any other text is
/// returned unchanged.
fn normal_instant(text: &str) -> String {
    let instant = text.parse::<Timestamp>().or_else(|_| {
        let day = text.parse::<Date>()?;
        Ok::<_, jiff::Error>(day.to_zoned(TimeZone::UTC)?.timestamp())
    });
    instant.map_or_else(|_| text.to_owned(), |instant| instant.to_string())
}

/// An SSH key without its comment.
fn key_without_comment(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

/// The fingerprint of an SSH key, as SSH tools show it; the key itself if it is not valid.
fn fingerprint(key: &str) -> String {
    let material = key.split_once(' ').and_then(|(_, material)| STANDARD.decode(material).ok());
    material.map_or_else(
        || key.to_owned(),
        |bytes| format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(bytes))),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::testing::{object, project_section};

    #[test]
    fn an_entry_is_named_by_its_identity() {
        let entry_name = |section_name: &str, fields: Json| {
            project_section(section_name).entry_name(&object(fields))
        };
        let variable = json!({"key": "A", "environment_scope": "prod/*"});
        assert_eq!(entry_name("variables", variable), "A@prod/*");
        assert_eq!(entry_name("push_rule", json!({"member_check": true})), "");
        let identity = project_section("shares").identify(&object(json!({"group": "Acme/Kids"})));
        assert_eq!(identity.keys, ["acme/kids"], "names are the same in any case");
    }

    #[test]
    fn each_comparison_has_its_own_rules() {
        for (compare, declared, live, is_same) in [
            (Equality::Exact, json!("a"), json!("A"), false),
            (Equality::AnyCase, json!("a"), json!("A"), true),
            (Equality::Instant, json!("2099-01-31"), json!("2099-01-31T00:00:00.000Z"), true),
            (
                Equality::Instant,
                json!("2099-01-31T02:00:00+02:00"),
                json!("2099-01-31T00:00:00.000Z"),
                true,
            ),
            (Equality::Instant, json!("2099-01-31"), json!("2099-01-31T00:00:01.000Z"), false),
            (Equality::Instant, json!(null), json!("2099-01-31T00:00:00.000Z"), false),
            (
                Equality::Rows,
                json!([{"access_level": "no_access"}, {"user_id": 3}]),
                json!([{"id": 1, "user_id": 3}]),
                true,
            ),
            (
                Equality::Rows,
                json!([{"user_id": 3}]),
                json!([{"access_level": "no_access"}, {"user_id": 3}]),
                true,
            ),
            (
                Equality::Rows,
                json!([{"access_level": "no_access"}]),
                json!([{"user_id": 3}]),
                false,
            ),
            (
                Equality::Rows,
                json!([{"user_id": 3}]),
                json!([{"access_level": "no_access"}]),
                false,
            ),
            (
                Equality::Rows,
                json!([{"access_level": "no_access"}]),
                json!([{"access_level": "no_access"}, {"user_id": 3}]),
                false,
            ),
            (Equality::Set, json!(["a", "b"]), json!(["b", "a"]), true),
            (Equality::Exact, json!(["a", "b"]), json!(["b", "a"]), false),
            (Equality::Set, json!(["a"]), json!(["a", "b"]), false),
            (Equality::Set, json!(["a", "a"]), json!(["a", "b"]), false),
            (Equality::Set, json!(["a", "a"]), json!(["a"]), true),
            (Equality::Url, json!("https://H:443"), json!("https://h/"), true),
            (Equality::Exact, json!("https://H"), json!("https://h/"), false),
            (Equality::Exact, json!(null), json!(""), true),
            (Equality::Exact, json!(""), json!(null), true),
            (Equality::Exact, json!(false), json!(null), true),
            (Equality::Exact, json!(null), json!(false), false),
            (Equality::Exact, json!(1), json!(1.0), true),
            (Equality::Exact, json!({"a": 1}), json!({"a": 1, "b": 2}), true),
            (Equality::Exact, json!({"a": 1, "b": 2}), json!({"a": 1}), false),
            (Equality::Exact, json!({"a": null}), json!({}), true),
            (Equality::Rows, json!([]), json!([]), true),
            (Equality::Rows, json!([]), json!([{"id": 1, "user_id": 3}]), false),
        ] {
            assert_eq!(
                are_equal(compare, &declared, &live),
                is_same,
                "{compare:?} {declared} {live}"
            );
        }
    }
}
