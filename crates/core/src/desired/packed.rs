//! Packs values into one text: for each, a tag and its data. The text never leaves the process.
//!
//! Tags and numbers are ASCII, so that texts can be taken out without checking their bytes.

use crate::value::{Json, Value};

const PLAIN_TAG: u8 = 0;
const TEXT_TAG: u8 = 1;
const SECRET_TAG: u8 = 2;
const UPLOAD_TAG: u8 = 3;

/// Packs values, one after another.
#[derive(Default)]
pub(super) struct Packer(pub(super) String);

impl Packer {
    /// Adds a byte below 0x80.
    pub(super) fn push_byte(&mut self, byte: u8) {
        self.0.push(byte.into());
    }

    /// Adds a number with six bits per byte, lowest first; the seventh bit means that more bytes follow.
    pub(super) fn push_number(&mut self, mut number: u64) {
        while number >= 0x40 {
            self.push_byte(number as u8 & 0x3f | 0x40);
            number >>= 6;
        }
        self.push_byte(number as u8);
    }

    pub(super) fn push_text(&mut self, text: &str) {
        self.push_number(text.len() as u64);
        self.0.push_str(text);
    }

    fn push_tagged(&mut self, tag: u8, text: &str) {
        self.push_byte(tag);
        self.push_text(text);
    }

    pub(super) fn push_value(&mut self, value: &Value) {
        match value {
            Value::Plain(Json::String(text)) => self.push_tagged(TEXT_TAG, text),
            Value::Plain(json) => self.push_tagged(PLAIN_TAG, &json.to_string()),
            Value::Secret(reference) => {
                let json = serde_json::to_string(reference).expect("a reference is JSON");
                self.push_tagged(SECRET_TAG, &json);
            }
            Value::File(path) => self.push_tagged(UPLOAD_TAG, path),
        }
    }
}

/// Unpacks the values of a [`Packer`], one after another.
pub(super) struct Unpacker<'p>(&'p str);

impl<'p> Unpacker<'p> {
    pub(super) const fn new(packed: &'p str) -> Self {
        Self(packed)
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take_byte(&mut self) -> u8 {
        self.take(1).as_bytes()[0]
    }

    pub(super) fn take_number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(6) {
            let byte = self.take_byte();
            number |= u64::from(byte & 0x3f) << shift;
            if byte < 0x40 {
                break;
            }
        }
        number
    }

    pub(super) fn take_text(&mut self) -> &'p str {
        let length = self.take_number() as usize;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> &'p str {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    pub(super) fn take_value(&mut self) -> PackedValue<'p> {
        PackedValue { tag: self.take_byte(), data: self.take_text() }
    }
}

/// A value that is still packed.
pub(super) struct PackedValue<'p> {
    tag: u8,
    data: &'p str,
}

impl PackedValue<'_> {
    /// True if it is neither a secret nor a file.
    pub(super) const fn is_plain(&self) -> bool {
        matches!(self.tag, PLAIN_TAG | TEXT_TAG)
    }

    pub(super) fn unpack(&self) -> Value {
        match (self.tag, self.data) {
            (TEXT_TAG, text) => Value::from(text),
            (SECRET_TAG, json) => Value::Secret(
                serde_json::from_str(json).expect("a packed reference is a reference"),
            ),
            (UPLOAD_TAG, path) => Value::File(path.to_owned()),
            (_, json) => Value::Plain(serde_json::from_str(json).expect("packed JSON is JSON")),
        }
    }
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
        let mut packer = Packer::default();
        values.iter().for_each(|value| packer.push_value(value));
        let packed = packer.0;
        let mut unpacker = Unpacker::new(&packed);
        for value in values {
            let packed = unpacker.take_value();
            assert_eq!(packed.is_plain(), value.plain_json().is_some());
            let unpacked = packed.unpack();
            // As text, because the order of keys must be equal too.
            assert_eq!(format!("{unpacked:?}"), format!("{value:?}"));
        }
        assert!(unpacker.is_at_end());
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
