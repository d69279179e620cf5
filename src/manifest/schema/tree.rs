//! Lets the validator read the tree of a YAML text as it is, without a copy in JSON.

use std::{borrow::Cow, iter, ptr, slice};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object},
};

use crate::{
    value,
    yaml::{self, Data, Key},
};

/// Trees as a representation of JSON.
#[derive(Debug)]
pub(in crate::manifest) struct Tree;

impl Json for Tree {
    type Node<'a> = &'a yaml::Node;
    type PreparedKey = String;
    type StringBuffer = ();

    // A lookup compares one key after another.
    const KEYS_PER_LOOKUP: usize = u16::MAX as usize;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Self::Node<'_>) -> T) -> T {
        f(&yaml::Node { data: Data::Text(string.to_owned()), span: 0..0 })
    }
}

impl<'a> Node<'a, Tree> for &'a yaml::Node {
    type Array = &'a [yaml::Node];
    type Number = &'a serde_json::Number;
    type Object = &'a [(Key, yaml::Node)];

    fn as_object(&self) -> Option<Self::Object> {
        if let Data::Map(entries) = &self.data { Some(entries) } else { None }
    }

    fn as_array(&self) -> Option<Self::Array> {
        if let Data::List(items) = &self.data { Some(items) } else { None }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.text().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Self::Number> {
        if let Data::Number(number) = &self.data { Some(number) } else { None }
    }

    fn as_boolean(&self) -> Option<bool> {
        if let Data::Bool(value) = self.data { Some(value) } else { None }
    }

    fn is_null(&self) -> bool {
        self.json_type() == JsonType::Null
    }

    fn json_type(&self) -> JsonType {
        match self.data {
            Data::Null | Data::Unreadable => JsonType::Null,
            Data::Bool(_) => JsonType::Boolean,
            Data::Number(_) => JsonType::Number,
            Data::Text(_) => JsonType::String,
            Data::List(_) => JsonType::Array,
            Data::Map(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &value::Json) -> bool {
        match (&self.data, expected) {
            (Data::Text(text), expected) => expected.as_str() == Some(text),
            (Data::Bool(value), expected) => expected.as_bool() == Some(*value),
            _ => jsonschema::json::cmp::equal(&self.to_json(), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, value::Json> {
        Cow::Owned(self.to_json())
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(ptr::from_ref::<yaml::Node>(self).addr()))
    }
}

impl<'a> Object<'a, Tree> for &'a [(Key, yaml::Node)] {
    type MemberName = &'a str;
    type MembersIter = iter::Map<
        slice::Iter<'a, (Key, yaml::Node)>,
        fn(&'a (Key, yaml::Node)) -> (&'a str, Self::Node),
    >;
    type Node = &'a yaml::Node;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn get(&self, key: &String) -> Option<&'a yaml::Node> {
        let mut entries = self.iter();
        entries.find(|(known, _)| known.name == *key).map(|(_, value)| value)
    }

    fn members(&self) -> Self::MembersIter {
        self.iter().map(|(key, value)| (&*key.name, value))
    }
}

impl<'a> Array<'a, Tree> for &'a [yaml::Node] {
    type ElementsIter = slice::Iter<'a, yaml::Node>;
    type Node = &'a yaml::Node;

    fn len(&self) -> usize {
        <[_]>::len(self)
    }

    fn elements(&self) -> Self::ElementsIter {
        self.iter()
    }
}
