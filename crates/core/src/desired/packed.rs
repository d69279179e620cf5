//! Packs a value into one line of text: a tag and the data. The text never leaves the process.

use serde::de::DeserializeOwned;
use serde_json::json;

use crate::value::{Json, Value};

const PLAIN_TAG: char = 'j';
const TEXT_TAG: char = 't';
const SECRET_TAG: char = 's';
const UPLOAD_TAG: char = 'f';

/// Appends `value` in packed form to `packed`. The packed form contains no line feed, because JSON
/// escapes the line feeds of texts.
pub(super) fn push_value(packed: &mut String, value: &Value) {
    match value {
        Value::Plain(Json::String(text)) if !text.contains('\n') => {
            packed.push(TEXT_TAG);
            packed.push_str(text);
        }
        Value::Plain(json) => *packed += &format!("{PLAIN_TAG}{json}"),
        Value::Secret(reference) => *packed += &format!("{SECRET_TAG}{}", json!(reference)),
        Value::File(path) => *packed += &format!("{UPLOAD_TAG}{}", json!(path)),
    }
}

/// True if the packed value is neither a secret nor a file.
pub(super) fn is_plain(packed: &str) -> bool {
    packed.starts_with([PLAIN_TAG, TEXT_TAG])
}

/// The value that [`push_value`] packed.
pub(super) fn unpack_value(packed: &str) -> Value {
    if let Some(text) = packed.strip_prefix(TEXT_TAG) {
        return Value::from(text);
    }
    let json = &packed[1..];
    if packed.starts_with(SECRET_TAG) {
        Value::Secret(read_json(json))
    } else if packed.starts_with(UPLOAD_TAG) {
        Value::File(read_json(json))
    } else {
        Value::Plain(read_json(json))
    }
}

/// Reads packed JSON.
pub(super) fn read_json<T: DeserializeOwned>(json: &str) -> T {
    serde_json::from_str(json).expect("packed JSON is what was packed")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::secret::{Reference, TextPiece};

    fn json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<u64>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<f64>().prop_map(Json::from),
            ".{0,200}".prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                prop::collection::vec((".{0,8}", inner), 0..4)
                    .prop_map(|entries| Json::Object(entries.into_iter().collect())),
            ]
        })
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            json().prop_map(Value::Plain),
            ".*".prop_map(|name| Value::Secret(Reference::Env(name))),
            ".*".prop_map(|path| Value::Secret(Reference::File(path))),
            (".*", ".*").prop_map(|(text, name)| {
                let source = TextPiece::Secret(Reference::Env(name));
                Value::Secret(Reference::Text(vec![TextPiece::Shown(text), source]))
            }),
            ".*".prop_map(Value::File),
        ]
    }

    fn assert_round_trip(values: &[Value]) {
        for value in values {
            let mut packed = String::new();
            push_value(&mut packed, value);
            assert!(!packed.contains('\n'), "{packed}");
            assert_eq!(is_plain(&packed), value.plain_json().is_some());
            // Compare as text, because the order of keys must be equal too.
            assert_eq!(format!("{:?}", unpack_value(&packed)), format!("{value:?}"));
        }
    }

    #[test]
    fn numbers_keep_their_form() {
        let plain_value = |json: Json| Value::Plain(json);
        let numbers = [
            json!(0),
            json!(127),
            json!(128),
            json!(u64::MAX),
            json!(-1),
            json!(i64::MIN),
            json!(0.1),
            json!(-0.0),
            json!(1.0),
            json!(f64::MAX),
            json!(f64::MIN_POSITIVE),
        ];
        assert_round_trip(&numbers.map(plain_value));
    }

    proptest! {
        #[test]
        fn values_come_out_as_they_went_in(values in prop::collection::vec(value(), 0..4)) {
            assert_round_trip(&values);
        }
    }
}
