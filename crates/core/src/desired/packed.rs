//! Values as bytes: a tag and its data. They never leave the process.

use crate::value::{Json, Value};

const PLAIN: u8 = 0;
const TEXT: u8 = 1;
const SECRET: u8 = 2;
const FILE: u8 = 3;

/// Packs values one after another.
#[derive(Default)]
pub(super) struct Packer(pub(super) Vec<u8>);

impl Packer {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Seven bits per byte, lowest first; the eighth bit means that more bytes follow.
    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn tagged(&mut self, tag: u8, text: &str) {
        self.byte(tag);
        self.text(text);
    }

    pub(super) fn value(&mut self, value: &Value) {
        match value {
            Value::Plain(Json::String(text)) => self.tagged(TEXT, text),
            Value::Plain(json) => self.tagged(PLAIN, &json.to_string()),
            Value::Secret(reference) => {
                let json = serde_json::to_string(reference).expect("a reference is JSON");
                self.tagged(SECRET, &json);
            }
            Value::File(path) => self.tagged(FILE, path),
        }
    }
}

/// Unpacks the values of a [`Packer`], one after another.
pub(super) struct Unpacker<'p>(&'p [u8]);

impl<'p> Unpacker<'p> {
    pub(super) const fn new(packed: &'p [u8]) -> Self {
        Self(packed)
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    pub(super) fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    pub(super) fn bytes(&mut self) -> &'p [u8] {
        let length = self.number() as usize;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> &'p str {
        text(self.bytes())
    }

    fn take(&mut self, length: usize) -> &'p [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    pub(super) fn value(&mut self) -> Packed<'p> {
        Packed { tag: self.byte(), data: self.bytes() }
    }
}

/// A value that is still packed.
pub(super) struct Packed<'p> {
    tag: u8,
    data: &'p [u8],
}

impl Packed<'_> {
    /// Whether it is neither a secret nor a file.
    pub(super) const fn is_plain(&self) -> bool {
        matches!(self.tag, PLAIN | TEXT)
    }

    pub(super) fn unpack(&self) -> Value {
        match (self.tag, text(self.data)) {
            (TEXT, text) => Value::from(text),
            (SECRET, json) => Value::Secret(
                serde_json::from_str(json).expect("what was packed as a reference is one"),
            ),
            (FILE, path) => Value::File(path.to_owned()),
            (_, json) => {
                Value::Plain(serde_json::from_str(json).expect("what was packed as JSON is JSON"))
            }
        }
    }
}

fn text(packed: &[u8]) -> &str {
    str::from_utf8(packed).expect("what was packed as text is text")
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

    fn there_and_back(values: &[Value]) {
        let mut packer = Packer::default();
        values.iter().for_each(|value| packer.value(value));
        let packed = packer.0;
        let mut unpacker = Unpacker::new(&packed);
        for value in values {
            let packed = unpacker.value();
            assert_eq!(packed.is_plain(), value.plain().is_some());
            let unpacked = packed.unpack();
            // As text, because the order of keys must be equal too.
            assert_eq!(format!("{unpacked:?}"), format!("{value:?}"));
        }
        assert!(unpacker.is_at_end());
    }

    #[test]
    fn numbers_keep_their_form() {
        let plain = |json: Json| Value::Plain(json);
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
        there_and_back(&numbers.map(plain));
    }

    proptest! {
        #[test]
        fn values_come_out_as_they_went_in(values in prop::collection::vec(value(), 0..4)) {
            there_and_back(&values);
        }
    }
}
