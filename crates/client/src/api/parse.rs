//! Parses the JSON of a response, and builds only the parts that a [`KeyFilter`] keeps.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::{
    operation::KeyFilter,
    value::{Json, Object},
};

/// Parses `bytes`. Keeps only the keys in `key_filter` of an object, or of each object in a list.
/// Any other value is kept whole. Returns `None` if the JSON is broken anywhere, even in skipped
/// parts.
pub(super) fn parse_filtered(bytes: &[u8], key_filter: &KeyFilter) -> Option<Json> {
    // Check the UTF-8 of the whole response here: the parser does not check skipped texts.
    let text = std::str::from_utf8(bytes).ok()?;
    let mut json = serde_json::Deserializer::from_str(text);
    let value = FilteredJson { key_filter, is_entry: false }.deserialize(&mut json).ok()?;
    json.end().ok()?;
    Some(value)
}

/// Deserialises a whole response, or an entry of its list, with only the keys in `key_filter`.
#[derive(Clone, Copy)]
struct FilteredJson<'w> {
    key_filter: &'w KeyFilter,
    is_entry: bool,
}

impl<'de> DeserializeSeed<'de> for FilteredJson<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        match self.key_filter {
            KeyFilter::All => serde::Deserialize::deserialize(deserializer),
            KeyFilter::Keys(_) => deserializer.deserialize_any(self),
        }
    }
}

macro_rules! visit_scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, value: $type) -> Result<Json, E> {
            Ok(value.into())
        })*
    };
}

impl<'de> Visitor<'de> for FilteredJson<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut object = Object::new();
        while let Some(key) = map.next_key_seed(FilteredKey(self.key_filter))? {
            match key {
                Some(key) => drop(object.insert(key, map.next_value()?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Json::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let mut entries = Vec::new();
        // A list within a list is a value, which is kept whole.
        let entry_filter = if self.is_entry { &KeyFilter::All } else { self.key_filter };
        while let Some(entry) =
            list.next_element_seed(FilteredJson { key_filter: entry_filter, is_entry: true })?
        {
            entries.push(entry);
        }
        Ok(Json::Array(entries))
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    visit_scalars! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }
}

/// Deserialises a key; `None` for a key that the filter drops.
struct FilteredKey<'w>(&'w KeyFilter);

impl<'de> DeserializeSeed<'de> for FilteredKey<'_> {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FilteredKey<'_> {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.keeps(key).then(|| key.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parse_keys(text: &str, keys: &[&'static str]) -> Option<Json> {
        parse_filtered(text.as_bytes(), &KeyFilter::keys(keys.iter().copied()))
    }

    #[test]
    fn wanted_values_of_an_object_are_kept_whole() {
        let text =
            r#" {"a": {"b": [1, {"c": 2}], "x": null}, "x": {"a": 1}, "b": null, "a\u0063": 3} "#;
        assert_eq!(
            parse_keys(text, &["a", "b", "ac", "z"]),
            Some(json!({"a": {"b": [1, {"c": 2}], "x": null}, "b": null, "ac": 3}))
        );
        assert_eq!(parse_keys(text, &[]), Some(json!({})));
        assert_eq!(
            parse_filtered(text.as_bytes(), &KeyFilter::All),
            serde_json::from_str(text).ok()
        );
    }

    #[test]
    fn only_objects_of_a_list_are_reduced() {
        let text = r#"[{"a": 1, "x": 2}, {"x": 2}, [{"x": 1}], 1.5, -1, "x", null, true]"#;
        let kept_json = json!([{"a": 1}, {}, [{"x": 1}], 1.5, -1, "x", null, true]);
        assert_eq!(parse_keys(text, &["a"]), Some(kept_json));
        for text in ["null", "7", "\"x\"", "[]", "{}"] {
            assert_eq!(parse_keys(text, &["a"]), serde_json::from_str(text).ok(), "{text}");
        }
    }

    #[test]
    fn the_last_of_duplicate_keys_counts() {
        assert_eq!(parse_keys(r#"{"a": 1, "a": 2}"#, &["a"]), Some(json!({"a": 2})));
    }

    #[test]
    fn broken_json_is_refused_in_skipped_parts_too() {
        for text in [
            "",
            "{",
            r#"{"x": }"#,
            r#"{"x": "}"#,
            r#"{"x": 1,}"#,
            r#"{"a": 1} {}"#,
            r#"[{"x": nul}]"#,
            r#"[{"x": 1}"#,
        ] {
            assert_eq!(parse_keys(text, &["a"]), None, "{text}");
        }
        assert_eq!(parse_filtered(b"{\"x\": \"\xff\"}", &KeyFilter::keys(["a"])), None);
        let repeat_deep = |text: &str| text.repeat(200);
        let nested_json = format!(r#"{{"a": {}{}}}"#, repeat_deep("["), repeat_deep("]"));
        assert_eq!(parse_keys(&nested_json, &["a"]), None, "deeper than anything that is meant");
    }

    proptest! {
        #[test]
        fn kept_values_equal_those_of_a_full_parse(text in r#"[\[\]{}:," a-c0-2\\]{0,40}"#) {
            let full_json = serde_json::from_str::<Json>(&text).ok();
            let kept_json = parse_keys(&text, &["a", "b", "c"]);
            prop_assert_eq!(full_json.is_some(), kept_json.is_some());
            let strip = |json: Json| match json {
                Json::Object(object) => Json::Object(
                    object.into_iter().filter(|(key, _)| ["a", "b", "c"].contains(&&**key)).collect(),
                ),
                other => other,
            };
            let stripped = full_json.map(|whole| match whole {
                Json::Array(items) => Json::Array(items.into_iter().map(strip).collect()),
                other => strip(other),
            });
            prop_assert_eq!(stripped, kept_json);
        }
    }
}
