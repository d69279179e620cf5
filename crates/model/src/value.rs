//! Values of manifests and requests.
//!
//! A value in a manifest is plain data, a reference to a secret, or a file to upload. Secrets stay
//! references until a request is sent, so values can be shown, compared and stored safely. An
//! omitted field is not managed; `null` is a value.

use std::{fmt, ops::Index};

use serde::{Serialize, Serializer};

use crate::secret::{Reference, ValueWithSecrets};

/// Plain JSON.
pub type Json = serde_json::Value;

/// A JSON object of the service, as in requests and responses.
pub type Object = serde_json::Map<String, Json>;

/// True if the field `name` of `object` is `true`.
pub fn is_true(object: &Object, name: &str) -> bool {
    object.get(name) == Some(&Json::Bool(true))
}

/// The field `name` of `object`, if it is a text.
pub fn text<'o>(object: &'o Object, name: &str) -> Option<&'o str> {
    object.get(name)?.as_str()
}

/// The items of the list in the field `name` of `object`; empty if the value is not a list.
pub fn items<'o>(
    object: &'o Object,
    name: &str,
) -> impl Iterator<Item = &'o Json> + Clone + use<'o> {
    object.get(name).and_then(Json::as_array).into_iter().flatten()
}

/// A scalar as plain text.
pub fn plain_text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The approximate number of bytes of `object` as JSON.
pub fn object_size(object: &Object) -> usize {
    object.iter().map(|(key, value)| key.len() + 3 + json_size(value)).sum::<usize>() + 2
}

fn json_size(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 5,
        Json::String(text) => text.len() + 3,
        Json::Array(items) => items.iter().map(json_size).sum::<usize>() + 2,
        Json::Object(object) => object_size(object),
    }
}

/// Sets `value` in `json` at the path `names`. Values on the path that are not mappings become
/// mappings.
pub fn set_nested(mut json: &mut Json, names: &[String], value: Json) {
    for name in names {
        if !json.is_object() {
            *json = Json::Object(Object::new());
        }
        json = &mut json[name.as_str()];
    }
    *json = value;
}

/// All texts in `value`, including the keys of mappings.
pub fn texts(value: &Json) -> impl Iterator<Item = &str> {
    let mut unvisited = vec![(None, value)];
    let name_text_pairs = std::iter::from_fn(move || {
        let (name, value) = unvisited.pop()?;
        match value {
            Json::Array(items) => unvisited.extend(items.iter().rev().map(|item| (None, item))),
            Json::Object(fields) => {
                unvisited.extend(fields.iter().rev().map(|(name, value)| (Some(&**name), value)));
            }
            _ => {}
        }
        Some([name, value.as_str()])
    });
    name_text_pairs.flatten().flatten()
}

/// Values by name, ordered by name. The collection is a sorted list instead of a map, because plans
/// keep and copy many small collections, and a map takes up to a kilobyte for one value.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, Value)>);

impl Fields {
    /// An empty collection.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// True if there is no value.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of values.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.find_index(name).ok().map(|index| &self.0[index].1)
    }

    /// The value of `name`, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.find_index(name).ok().map(|index| &mut self.0[index].1)
    }

    /// The value of `name`, if it is plain data.
    pub fn plain_json(&self, name: &str) -> Option<&Json> {
        self.get(name)?.plain_json()
    }

    /// The value of `name`, if it is plain text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.text()
    }

    /// The value of `name`, if it is a plain boolean.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.get(name)?.flag()
    }

    /// The value of `name`, if it is a plain list.
    pub fn list_field(&self, name: &str) -> Option<&Vec<Json>> {
        self.get(name)?.list()
    }

    /// True if the value of `name` is `true`.
    pub fn is_on(&self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    /// True if there is a value of `name`.
    pub fn contains_key(&self, name: &str) -> bool {
        self.find_index(name).is_ok()
    }

    /// Sets the value of `name`.
    pub fn insert(&mut self, name: String, value: Value) {
        match self.find_index(&name) {
            Ok(index) => self.0[index].1 = value,
            Err(index) => self.0.insert(index, (name, value)),
        }
    }

    /// Removes and returns the value of `name`.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.find_index(name).ok().map(|index| self.0.remove(index).1)
    }

    /// Keeps the values for which `is_kept` is true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&str, &Value) -> bool) {
        self.0.retain(|(name, value)| is_kept(name, value));
    }

    /// Every value with its name.
    pub fn iter(&self) -> FieldsIter<'_> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// The name of every value.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &String> + Clone {
        self.iter().map(|(name, _)| name)
    }

    /// Every value without its name.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Frees unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// The index of the value of `name`; the error is the index at which such a value would be
    /// inserted.
    fn find_index(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(name))
    }
}

impl Index<&str> for Fields {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        self.get(name).expect("the field exists")
    }
}

impl Extend<(String, Value)> for Fields {
    fn extend<I: IntoIterator<Item = (String, Value)>>(&mut self, fields: I) {
        fields.into_iter().for_each(|(name, value)| self.insert(name, value));
    }
}

impl FromIterator<(String, Value)> for Fields {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        let fields = fields.into_iter();
        let mut sorted = Self(Vec::with_capacity(fields.size_hint().0));
        sorted.extend(fields);
        sorted
    }
}

impl<const N: usize> From<[(String, Value); N]> for Fields {
    fn from(fields: [(String, Value); N]) -> Self {
        fields.into_iter().collect()
    }
}

/// References to the values of [`Fields`] with their names.
type FieldsIter<'f> = std::iter::Map<
    std::slice::Iter<'f, (String, Value)>,
    fn(&(String, Value)) -> (&String, &Value),
>;

impl<'f> IntoIterator for &'f Fields {
    type Item = (&'f String, &'f Value);
    type IntoIter = FieldsIter<'f>;

    fn into_iter(self) -> FieldsIter<'f> {
        self.iter()
    }
}

impl IntoIterator for Fields {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// A value in a manifest or a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Plain data. Reports show plain data unchanged.
    Plain(Json),
    /// A secret, as a reference to its source.
    Secret(Reference),
    /// A file to upload: its path below the manifest folder.
    File(String),
}

impl Value {
    /// The plain data; `None` for a secret or a file.
    pub const fn plain_json(&self) -> Option<&Json> {
        match self {
            Self::Plain(json) => Some(json),
            Self::Secret(_) | Self::File(_) => None,
        }
    }

    /// The text, if the value is plain text.
    pub fn text(&self) -> Option<&str> {
        self.plain_json().and_then(Json::as_str)
    }

    /// The value of a plain boolean.
    pub fn flag(&self) -> Option<bool> {
        self.plain_json().and_then(Json::as_bool)
    }

    /// The list, if the value is a plain list.
    pub fn list(&self) -> Option<&Vec<Json>> {
        self.plain_json().and_then(Json::as_array)
    }

    /// The environment variables and files that the value needs.
    pub fn sources(&self) -> Vec<Reference> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Secret(reference) => reference.sources().into_iter().cloned().collect(),
            Self::File(path) => vec![Reference::File(path.clone())],
        }
    }

    /// True if the value is `null`.
    pub fn is_null(&self) -> bool {
        self.plain_json().is_some_and(Json::is_null)
    }
}

impl From<Json> for Value {
    fn from(json: Json) -> Self {
        Self::Plain(json)
    }
}

impl From<ValueWithSecrets> for Value {
    fn from(data: ValueWithSecrets) -> Self {
        match data {
            ValueWithSecrets::Secret(reference) => Self::Secret(*reference),
            data if data.references().is_empty() => {
                Self::Plain(data.to_json(&mut |_| Err(())).unwrap_or_default())
            }
            data => Self::Secret(Reference::Data(data)),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Plain(text.into())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fields_are_an_ordered_map(written in prop::collection::vec(("[a-f]", any::<u8>()), 0..9), name in "[a-f]") {
            let pairs = written.into_iter().map(|(name, number)| (name, Value::Plain(number.into())));
            let (mut map, mut fields) = (BTreeMap::new(), Fields::new());
            map.extend(pairs.clone());
            fields.extend(pairs);
            prop_assert!(fields.iter().eq(&map));
            prop_assert_eq!(fields.get(&name), map.get(&name));
            prop_assert_eq!(fields.remove(&name), map.remove(&name));
            prop_assert!(fields.clone().into_iter().eq(map));
            prop_assert!(!fields.contains_key(&name));
        }
    }
}
