//! The declared fields of one entry. They are packed into text, because a large organisation
//! declares millions of fields.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use serde_json::json;

use super::packed::{is_plain, push_value, read_json, unpack_value};
use crate::{
    origin::{FileLayer, Origin, Sourced},
    steps,
    value::{Fields, Value},
};

/// Named values with their origins, in the order of their names.
///
/// The values are packed into one block of memory, and unpacked on access. An unpacked `true` needs
/// 72 bytes, and its origin needs 16 bytes. The unpacked fields of 100,000 projects would need a
/// third of a gigabyte.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DeclaredFields {
    /// The file and layer of the first field. Nearly always, all fields have the same file and
    /// layer.
    common_layer: Option<Arc<FileLayer>>,
    /// The names of the fields.
    names: Arc<Vec<String>>,
    /// One line of text for each field, with four columns: the line and the column of the origin,
    /// the layer and file as JSON, and the value. The third column is empty if the field has the
    /// common layer and file.
    packed: Arc<str>,
}

thread_local! {
    /// The lists of names that this thread used before, by their hash. Most entries have the same
    /// names as many others.
    static NAMES: RefCell<HashMap<u64, Arc<Vec<String>>>> = RefCell::default();
}

/// A shared list of `names`.
fn intern_names<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Arc<Vec<String>> {
    let mut hasher = DefaultHasher::new();
    names.clone().for_each(|name| name.hash(&mut hasher));
    let new_list = || Arc::new(names.clone().map(str::to_owned).collect::<Vec<_>>());
    NAMES.with_borrow_mut(|lists| {
        let list = lists.entry(hasher.finish()).or_insert_with(new_list);
        // Another list may have the same hash.
        if !list.iter().map(String::as_str).eq(names.clone()) {
            *list = new_list();
        }
        Arc::clone(list)
    })
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
        self.find_index(name).is_some()
    }

    /// Every field with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Sourced<Value>)> {
        self.packed_fields().map(|field| (field.name, field.unpack(self)))
    }

    /// The secrets and files among the values, with their origins.
    pub fn secrets_and_files(&self) -> impl Iterator<Item = Sourced<Value>> {
        self.packed_fields().filter(|field| !is_plain(field.value)).map(|field| field.unpack(self))
    }

    /// The name of every field.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.packed_fields()
            .map(|field| (field.name.to_owned(), unpack_value(field.value)))
            .collect()
    }

    fn find_field(&self, name: &str) -> Option<PackedField<'_>> {
        let index = self.find_index(name)?;
        steps::count_step();
        self.packed.split('\n').nth(index).map(|line| PackedField::new(&self.names[index], line))
    }

    fn find_index(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|other| other.as_str().cmp(name)).ok()
    }

    fn packed_fields(&self) -> impl Iterator<Item = PackedField<'_>> {
        let fields = self.names.iter().zip(self.packed.split('\n'));
        fields.map(|(name, line)| PackedField::new(name, line)).inspect(|_| steps::count_step())
    }
}

/// Keeps the last of several fields with the same name.
impl<N: AsRef<str>> FromIterator<(N, Sourced<Value>)> for DeclaredFields {
    fn from_iter<I: IntoIterator<Item = (N, Sourced<Value>)>>(fields: I) -> Self {
        let mut fields: Vec<_> = fields.into_iter().collect();
        // The sort is stable: of fields with the same name, the last one comes first and is kept.
        fields.reverse();
        fields.sort_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
        fields.dedup_by(|(next, _), (name, _)| next.as_ref() == name.as_ref());
        let common_layer = fields.first().map(|(_, field)| field.origin.file_layer.clone());
        let mut packed = String::new();
        for (_, Sourced { value, origin }) in &fields {
            let has_common_layer = common_layer.as_ref() == Some(&origin.file_layer);
            let own_layer = (!has_common_layer).then(|| json!((origin.layer, &origin.file)));
            let own_layer = own_layer.map(|layer| layer.to_string()).unwrap_or_default();
            packed += &format!("{}\t{}\t{own_layer}\t", origin.line, origin.column);
            push_value(&mut packed, value);
            packed.push('\n');
        }
        let names = intern_names(fields.iter().map(|(name, _)| name.as_ref()));
        // Copying the text saves memory, because the allocator does not shrink a buffer by less
        // than half.
        Self { common_layer, names, packed: packed.as_str().into() }
    }
}

impl fmt::Debug for DeclaredFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A field that is still packed.
struct PackedField<'d> {
    name: &'d str,
    line: &'d str,
    column: &'d str,
    /// The layer and file as JSON; empty if they are the common ones.
    own_layer: &'d str,
    value: &'d str,
}

impl<'d> PackedField<'d> {
    fn new(name: &'d str, packed: &'d str) -> Self {
        let mut columns = packed.splitn(4, '\t');
        let [line, column, own_layer, value] =
            std::array::from_fn(|_| columns.next().unwrap_or_default());
        Self { name, line, column, own_layer, value }
    }

    fn origin(&self, declared: &DeclaredFields) -> Origin {
        let within = match &declared.common_layer {
            Some(within) if self.own_layer.is_empty() => within.clone(),
            _ => {
                let (layer, file) = read_json(self.own_layer);
                Arc::new(FileLayer { file, layer })
            }
        };
        let [line, column] =
            [self.line, self.column].map(|number| number.parse().unwrap_or_default());
        Origin { file_layer: within, line, column }
    }

    fn unpack(&self, declared: &DeclaredFields) -> Sourced<Value> {
        Sourced { value: unpack_value(self.value), origin: self.origin(declared) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Layer;

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
