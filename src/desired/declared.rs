//! The fields of one entry, packed: a large organisation declares millions of them.

use std::{fmt, sync::Arc};

use super::packed::{Packer, Unpacker};
use crate::{
    origin::{Layer, Origin, Sourced},
    steps,
    value::{Fields, Value},
};

/// Named values with their origins, in the order of their names.
///
/// Packed into one piece of memory, and unpacked on access. Unpacked, `true` needs 72 bytes and its
/// origin 32, which would be half a gigabyte for the fields of 100,000 projects.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// The file of the first field; nearly always that of all fields.
    file: Option<Arc<str>>,
    /// For each field: its name, its layer, its file if different, its line, its column, and its
    /// value.
    packed: Box<[u8]>,
}

impl Declared {
    /// The field `name`.
    pub fn get(&self, name: &str) -> Option<Sourced<Value>> {
        self.packed(name).map(|field| field.unpack(self))
    }

    /// The origin of the field `name`.
    pub fn origin(&self, name: &str) -> Option<Origin> {
        self.packed(name).map(|field| field.origin(self))
    }

    /// Whether there is a field `name`.
    pub fn contains_key(&self, name: &str) -> bool {
        self.packed(name).is_some()
    }

    /// Every field with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Sourced<Value>)> {
        self.each().map(|field| (field.name, field.unpack(self)))
    }

    /// The secrets and files among the values, with their origins.
    pub fn named(&self) -> impl Iterator<Item = Sourced<Value>> {
        let named = self.each().filter(|field| !Unpacker::new(field.value).is_plain());
        named.map(|field| field.unpack(self))
    }

    /// Every name.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.each().map(|field| field.name)
    }

    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.each().map(|field| (field.name.to_owned(), field.value())).collect()
    }

    fn packed(&self, name: &str) -> Option<Packed<'_>> {
        self.each().find(|field| field.name == name)
    }

    fn each(&self) -> impl Iterator<Item = Packed<'_>> {
        let mut rest = Unpacker::new(&self.packed);
        let all = std::iter::from_fn(move || (!rest.is_at_end()).then(|| Packed::next(&mut rest)));
        all.inspect(|_| steps::step())
    }
}

/// The last of two fields with the same name counts.
impl<N: AsRef<str>> FromIterator<(N, Sourced<Value>)> for Declared {
    fn from_iter<I: IntoIterator<Item = (N, Sourced<Value>)>>(fields: I) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        // The last one comes first, and is kept.
        fields.reverse();
        fields.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
        fields.dedup_by(|(next, _), (name, _)| next.as_ref() == name.as_ref());
        let file = fields.first().map(|(_, field)| field.origin.file.clone());
        let mut packer = Packer::default();
        for (name, Sourced { value, origin }) in &fields {
            let other = Some(&origin.file).filter(|other| file.as_ref() != Some(other));
            packer.text(name.as_ref());
            packer.byte(origin.layer as u8);
            packer.text(other.map_or("", |file| file));
            packer.number(origin.line.into());
            packer.number(origin.column.into());
            let mut packed = Packer::default();
            packed.value(value);
            packer.bytes(&packed.finish());
        }
        Self { file, packed: packer.finish() }
    }
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A field whose value is still packed.
struct Packed<'d> {
    name: &'d str,
    layer: u8,
    /// Empty for the file of the first field.
    file: &'d str,
    line: u32,
    column: u32,
    value: &'d [u8],
}

impl<'d> Packed<'d> {
    fn next(fields: &mut Unpacker<'d>) -> Self {
        Self {
            name: fields.text(),
            layer: fields.byte(),
            file: fields.text(),
            line: fields.number() as u32,
            column: fields.number() as u32,
            value: fields.bytes(),
        }
    }

    fn value(&self) -> Value {
        Unpacker::new(self.value).value()
    }

    fn origin(&self, of: &Declared) -> Origin {
        let file = of.file.clone().filter(|_| self.file.is_empty());
        let lower = [Layer::Defaults, Layer::Profile, Layer::Group];
        let layer = lower.into_iter().find(|layer| *layer as u8 == self.layer);
        let layer = layer.unwrap_or(Layer::Project);
        let file = file.unwrap_or_else(|| self.file.into());
        Origin { file, line: self.line, column: self.column, layer }
    }

    fn unpack(&self, of: &Declared) -> Sourced<Value> {
        Sourced { value: self.value(), origin: self.origin(of) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(value: Value, file: &str, line: u32, layer: Layer) -> Sourced<Value> {
        Sourced { value, origin: Origin { file: file.into(), line, column: 200, layer } }
    }

    #[test]
    fn fields_are_unpacked_unchanged_and_ordered_by_name() {
        let written = [
            ("url", field("https://a".into(), "a.yaml", 70_000, Layer::Project)),
            ("active", field(json!([true]).into(), "b.yaml", 1, Layer::Defaults)),
            ("key", field("old".into(), "b.yaml", 2, Layer::Group)),
            ("key", field("new".into(), "c.yaml", 3, Layer::Group)),
        ];
        let declared = Declared::from_iter(written.clone());
        let [url, active, _, key] = written;
        let expected = [active, key, url];
        assert!(declared.iter().eq(expected.clone()));
        for (name, field) in expected {
            assert_eq!(declared.get(name).as_ref(), Some(&field));
            assert_eq!(declared.origin(name), Some(field.origin));
            assert_eq!(declared.values()[name], field.value);
            assert!(declared.contains_key(name));
        }
        assert!(declared.get("ur").is_none() && !declared.contains_key(""));
    }
}
