//! The declared fields of one entry. They are packed, because a large organisation declares millions
//! of fields.

use std::{
    cell::RefCell,
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use crate::{
    origin::{FileLayer, Origin, Sourced},
    steps,
    value::{Fields, Json, Value},
};

/// Named values with their origins, in the order of their names.
///
/// The fields are packed, and unpacked on access: an unpacked `true` needs 72 bytes, and its origin
/// needs 16 bytes. The unpacked fields of 100,000 projects would need a third of a gigabyte.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct DeclaredFields {
    /// The file and layer of the first field. Nearly always, all fields have the same file and
    /// layer.
    common_layer: Option<Arc<FileLayer>>,
    /// The names of the fields.
    names: Arc<Vec<String>>,
    /// For each name, its field.
    fields: Box<[PackedField]>,
}

/// A value and its origin, in 32 bytes.
#[derive(Clone, PartialEq, Eq)]
struct PackedField {
    line: u32,
    column: u32,
    value: PackedValue,
}

#[derive(Clone, PartialEq, Eq)]
enum PackedValue {
    Null,
    Flag(bool),
    Integer(i64),
    Text(Box<str>),
    /// Every other value, and every value that has not the common file and layer.
    Other(Box<Sourced<Value>>),
}

thread_local! {
    /// The lists of names that this thread used before, by their hash. Most entries have the same
    /// names as many others.
    static INTERNED_NAMES: RefCell<HashMap<u64, Arc<Vec<String>>>> = RefCell::default();
}

/// A shared list of `names`.
fn intern_names<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Arc<Vec<String>> {
    let mut hasher = DefaultHasher::new();
    names.clone().for_each(|name| name.hash(&mut hasher));
    let new_list = || Arc::new(names.clone().map(str::to_owned).collect::<Vec<_>>());
    INTERNED_NAMES.with_borrow_mut(|lists| {
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
        self.find_field(name).map(|field| self.unpack(field))
    }

    /// The origin of the field `name`.
    pub fn origin(&self, name: &str) -> Option<Origin> {
        self.find_field(name).map(|field| self.unpack_origin(field))
    }

    /// True if there is a field `name`.
    pub fn contains_key(&self, name: &str) -> bool {
        self.find_index(name).is_some()
    }

    /// Every field with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Sourced<Value>)> {
        self.keys().zip(&self.fields).map(|(name, field)| {
            steps::count_step();
            (name, self.unpack(field))
        })
    }

    /// The secrets and files among the values, with their origins.
    pub fn secrets_and_files(&self) -> impl Iterator<Item = Sourced<Value>> {
        self.fields.iter().filter_map(|field| match &field.value {
            PackedValue::Other(other) if other.value.plain_json().is_none() => {
                Some(Sourced::clone(other))
            }
            _ => None,
        })
    }

    /// The name of every field.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.iter().map(|(name, field)| (name.to_owned(), field.value)).collect()
    }

    fn find_field(&self, name: &str) -> Option<&PackedField> {
        let index = self.find_index(name)?;
        steps::count_step();
        Some(&self.fields[index])
    }

    fn find_index(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|other| other.as_str().cmp(name)).ok()
    }

    fn unpack(&self, field: &PackedField) -> Sourced<Value> {
        let value = match &field.value {
            PackedValue::Null => Json::Null.into(),
            PackedValue::Flag(flag) => Json::from(*flag).into(),
            PackedValue::Integer(integer) => Json::from(*integer).into(),
            PackedValue::Text(text) => Value::from(&**text),
            PackedValue::Other(other) => return Sourced::clone(other),
        };
        Sourced { value, origin: self.unpack_origin(field) }
    }

    fn unpack_origin(&self, field: &PackedField) -> Origin {
        if let PackedValue::Other(other) = &field.value {
            return other.origin.clone();
        }
        let file_layer = self.common_layer.clone().expect("only an empty list has no common layer");
        Origin { file_layer, line: field.line, column: field.column }
    }
}

impl PackedField {
    fn new(field: Sourced<Value>, common_layer: &Arc<FileLayer>) -> Self {
        let Origin { line, column, ref file_layer } = field.origin;
        let packed_value =
            (file_layer == common_layer).then(|| PackedValue::pack(&field.value)).flatten();
        let value = packed_value.unwrap_or_else(|| PackedValue::Other(Box::new(field)));
        Self { line, column, value }
    }
}

impl PackedValue {
    /// `value` in few bytes, if that is possible.
    fn pack(value: &Value) -> Option<Self> {
        match value.plain_json()? {
            Json::Null => Some(Self::Null),
            Json::Bool(flag) => Some(Self::Flag(*flag)),
            Json::Number(number) => number.as_i64().map(Self::Integer),
            Json::String(text) => Some(Self::Text(text.as_str().into())),
            Json::Array(_) | Json::Object(_) => None,
        }
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
        let Some((_, first)) = fields.first() else { return Self::default() };
        let common_layer = first.origin.file_layer.clone();
        let names = intern_names(fields.iter().map(|(name, _)| name.as_ref()));
        let fields =
            fields.into_iter().map(|(_, field)| PackedField::new(field, &common_layer)).collect();
        Self { common_layer: Some(common_layer), names, fields }
    }
}

impl fmt::Debug for DeclaredFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{origin::Layer, secret::Reference};

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

    #[test]
    fn every_kind_of_value_is_unpacked_unchanged() {
        let secret = Value::Secret(Reference::Env("TOKEN".to_owned()));
        let file = Value::File("logo.png".to_owned());
        let json = [
            json!(null),
            json!(-1),
            json!(u64::MAX),
            json!(1.5),
            json!(""),
            json!("a\nb"),
            json!({"a": [1]}),
        ];
        let values: Vec<Value> = json.into_iter().map(Value::from).chain([secret, file]).collect();
        let origin = |index| {
            if index % 2 == 0 { ("a.yaml", Layer::Group) } else { ("b.yaml", Layer::Project) }
        };
        for skipped in 0..2 {
            let fields: Vec<_> = values
                .iter()
                .enumerate()
                .skip(skipped)
                .map(|(index, value)| {
                    let (file, layer) = origin(index);
                    (index.to_string(), field(value.clone(), file, 3, layer))
                })
                .collect();
            let declared: DeclaredFields = fields.iter().cloned().collect();
            assert!(
                declared
                    .iter()
                    .eq(fields.iter().map(|(name, field)| (name.as_str(), field.clone())))
            );
            assert_eq!(declared.secrets_and_files().count(), 2);
        }
    }
}
