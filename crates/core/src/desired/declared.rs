//! The fields of one entry, packed: a large organisation declares millions of them.

use std::{cell::RefCell, collections::HashSet, fmt, sync::Arc};

use super::packed::{self, Packer, Unpacker};
use crate::{
    origin::{FileLayer, Layer, Origin, Sourced},
    steps,
    value::{Fields, Value},
};

/// Named values with their origins, in the order of their names.
///
/// They are packed into one block of memory, and unpacked on access. Unpacked, `true` needs 72
/// bytes and its origin 16; the fields of 100,000 projects would need a third of a gigabyte.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DeclaredFields {
    /// The file and layer of the first field. Nearly always, all fields have the same.
    common_layer: Option<Arc<FileLayer>>,
    /// The packed names of the fields.
    names: Arc<String>,
    /// For each field: its layer and file if they differ from the common ones, its line, its column, and
    /// its value.
    packed: Arc<str>,
}

thread_local! {
    /// The packed names that this thread used before. Most entries have the same names as many others.
    static NAMES: RefCell<HashSet<Arc<String>>> = RefCell::default();
}

impl DeclaredFields {
    /// The field `name`.
    pub fn get(&self, name: &str) -> Option<Sourced<Value>> {
        self.find_field(name).map(|field| field.unpack(self))
    }

    /// The origin of the field `name`.
    pub fn origin(&self, name: &str) -> Option<Origin> {
        self.find_field(name).map(|field| field.origin(self))
    }

    /// True if there is a field `name`.
    pub fn contains_key(&self, name: &str) -> bool {
        self.find_field(name).is_some()
    }

    /// Every field with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Sourced<Value>)> {
        self.packed_fields().map(|field| (field.name, field.unpack(self)))
    }

    /// The secrets and files among the values, with their origins.
    pub fn secrets_and_files(&self) -> impl Iterator<Item = Sourced<Value>> {
        self.packed_fields().filter(|field| !field.value.is_plain()).map(|field| field.unpack(self))
    }

    /// The name of every field.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.packed_fields().map(|field| field.name)
    }

    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.packed_fields().map(|field| (field.name.to_owned(), field.value.unpack())).collect()
    }

    fn find_field(&self, name: &str) -> Option<PackedField<'_>> {
        self.packed_fields().find(|field| field.name == name)
    }

    fn packed_fields(&self) -> impl Iterator<Item = PackedField<'_>> {
        let (mut names, mut fields) = (Unpacker::new(&self.names), Unpacker::new(&self.packed));
        std::iter::from_fn(move || {
            (!fields.is_at_end()).then(|| PackedField::next(names.take_text(), &mut fields))
        })
        .inspect(|_| steps::count_step())
    }
}

/// Keeps the last of several fields with the same name.
impl<N: AsRef<str>> FromIterator<(N, Sourced<Value>)> for DeclaredFields {
    fn from_iter<I: IntoIterator<Item = (N, Sourced<Value>)>>(fields: I) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        // The sort is stable: of equal names, the last one comes first and is kept.
        fields.reverse();
        fields.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
        fields.dedup_by(|(next, _), (name, _)| next.as_ref() == name.as_ref());
        let common_layer = fields.first().map(|(_, field)| field.origin.within.clone());
        let (mut names, mut packer) = (Packer::default(), Packer::default());
        for (name, Sourced { value, origin }) in &fields {
            names.push_text(name.as_ref());
            if common_layer.as_ref() == Some(&origin.within) {
                packer.push_byte(0);
            } else {
                packer.push_byte(origin.layer as u8 + 1);
                packer.push_text(&origin.file);
            }
            packer.push_number(origin.line.into());
            packer.push_number(origin.column.into());
            packer.push_value(value);
        }
        let names = NAMES.with_borrow_mut(|interned| {
            interned.get(&names.0).cloned().unwrap_or_else(|| {
                let new_names = Arc::new(names.0);
                interned.insert(Arc::clone(&new_names));
                new_names
            })
        });
        // A copy needs less memory: the allocator would not shrink the buffer by less than half.
        Self { common_layer, names, packed: packer.0.as_str().into() }
    }
}

impl fmt::Debug for DeclaredFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A field whose value is still packed.
struct PackedField<'d> {
    name: &'d str,
    /// Its layer and file, if they differ from the common ones.
    own_layer: Option<(Layer, &'d str)>,
    line: u32,
    column: u32,
    value: packed::PackedValue<'d>,
}

impl<'d> PackedField<'d> {
    fn next(name: &'d str, unpacker: &mut Unpacker<'d>) -> Self {
        Self {
            name,
            own_layer: match unpacker.take_byte() {
                0 => None,
                layer => Some((Layer::ALL[usize::from(layer) - 1], unpacker.take_text())),
            },
            line: unpacker.take_number() as u32,
            column: unpacker.take_number() as u32,
            value: unpacker.take_value(),
        }
    }

    fn origin(&self, declared: &DeclaredFields) -> Origin {
        let within = match (&declared.common_layer, self.own_layer) {
            (Some(within), None) => within.clone(),
            (_, own_layer) => {
                let (layer, file) = own_layer.unwrap_or((Layer::Project, ""));
                Arc::new(FileLayer { file: file.into(), layer })
            }
        };
        Origin { within, line: self.line, column: self.column }
    }

    fn unpack(&self, declared: &DeclaredFields) -> Sourced<Value> {
        Sourced { value: self.value.unpack(), origin: self.origin(declared) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(value: Value, file: &str, line: u32, layer: Layer) -> Sourced<Value> {
        Sourced { value, origin: Origin::new(file, line, 200, layer) }
    }

    #[test]
    fn fields_are_unpacked_unchanged_and_ordered_by_name() {
        let written_fields = [
            ("url", field("https://a".into(), "a.yaml", 70_000, Layer::Project)),
            ("active", field(json!([true]).into(), "b.yaml", 1, Layer::Defaults)),
            ("key", field("old".into(), "b.yaml", 2, Layer::Group)),
            ("key", field("new".into(), "c.yaml", 3, Layer::Group)),
        ];
        let declared = DeclaredFields::from_iter(written_fields.clone());
        let [url, active, _, key] = written_fields;
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
