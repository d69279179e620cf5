//! Lets the validator read the tree of a YAML text directly, without a copy as JSON.

use std::{borrow::Cow, iter, ptr, slice};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, cmp, unique},
};
use serde_json::{Number, Value};

use crate::yaml::{self, MappingKey, NodeValue};

/// Marks YAML trees as a representation of JSON for the validator.
#[derive(Debug)]
pub(in crate::manifest) struct Tree;

impl Json for Tree {
    type Node<'a> = &'a yaml::Node;
    type PreparedKey = String;
    type StringBuffer = ();

    // A lookup scans all keys, so one pass over the members is never slower than several lookups.
    // The value is so small that products of it do not overflow.
    const KEYS_PER_LOOKUP: usize = u16::MAX as usize;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Self::Node<'_>) -> T) -> T {
        f(&yaml::Node { data: NodeValue::Text(string.to_owned()), span: 0..0 })
    }
}

impl<'a> Node<'a, Tree> for &'a yaml::Node {
    type Array = &'a [yaml::Node];
    type Number = &'a Number;
    type Object = Self;

    fn as_object(&self) -> Option<Self::Object> {
        matches!(self.data, NodeValue::Map(_)).then_some(self)
    }

    fn as_array(&self) -> Option<Self::Array> {
        if let NodeValue::List(items) = &self.data { Some(items) } else { None }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        self.text().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<Self::Number> {
        if let NodeValue::Number(number) = &self.data { Some(number) } else { None }
    }

    fn as_boolean(&self) -> Option<bool> {
        if let NodeValue::Bool(value) = self.data { Some(value) } else { None }
    }

    fn is_null(&self) -> bool {
        self.json_type() == JsonType::Null
    }

    fn json_type(&self) -> JsonType {
        match self.data {
            NodeValue::Null | NodeValue::Unreadable => JsonType::Null,
            NodeValue::Bool(_) => JsonType::Boolean,
            NodeValue::Number(_) => JsonType::Number,
            NodeValue::Text(_) => JsonType::String,
            NodeValue::List(_) => JsonType::Array,
            NodeValue::Map(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (&self.data, expected) {
            (NodeValue::Null | NodeValue::Unreadable, Value::Null) => true,
            (NodeValue::Bool(value), expected) => expected.as_bool() == Some(*value),
            (NodeValue::Text(text), expected) => expected.as_str() == Some(text),
            (NodeValue::Number(_), Value::Number(_))
            | (NodeValue::List(_), Value::Array(_))
            | (NodeValue::Map(_), Value::Object(_)) => cmp::equal(&self.to_json(), expected),
            _ => false,
        }
    }

    /// Errors contain the value, but no message shows it. Collections become `null`, because copies
    /// would multiply the memory for a large document.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(if self.is_collection() { Value::Null } else { self.to_json() })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        Some(NodeIdentity::new(ptr::from_ref::<yaml::Node>(self).addr()))
    }
}

/// A mapping.
impl<'a> Object<'a, Tree> for &'a yaml::Node {
    type MemberName = &'a str;
    type MembersIter = iter::Map<
        slice::Iter<'a, (MappingKey, yaml::Node)>,
        fn(&'a (MappingKey, yaml::Node)) -> (&'a str, Self::Node),
    >;
    type Node = Self;

    fn len(&self) -> usize {
        self.entries().len()
    }

    fn get(&self, key: &String) -> Option<&'a yaml::Node> {
        yaml::Node::get(self, key).map(|(_, value)| value)
    }

    fn members(&self) -> Self::MembersIter {
        self.entries().iter().map(|(key, value)| (&*key.name, value))
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

    fn is_unique(&self) -> bool {
        let items: Vec<_> = self.iter().map(yaml::Node::to_json).collect();
        unique::is_unique(&items)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jsonschema::ValidationError;

    use super::{super::DocumentKind, *};
    use crate::corpus;

    /// The pointer and the text of each fault.
    fn fault_texts<'a>(
        errors: impl Iterator<Item = (String, ValidationError<'a>)>,
    ) -> BTreeSet<(String, String)> {
        errors.map(|(at, error)| (at, error.masked_with("the value").to_string())).collect()
    }

    #[test]
    fn a_tree_has_the_faults_of_its_json() {
        let kinds = DocumentKind::ALL.map(|kind| {
            let checker = kind.checker();
            (checker, jsonschema::validator_for(&checker.schema).unwrap())
        });
        let files = corpus::cases().into_iter().flat_map(|case| case.files);
        let manifests = files.filter(|(name, _)| name.ends_with(".yaml"));
        let mut texts: Vec<_> = manifests.map(|(_, text)| text).collect();
        // Equal numbers and lists, and names that are not words.
        texts.push("kind: Project\npath: a/b\nsettings: {topics: [a, a, 1, 1.0], build_timeout: 3600.0, 'ü\"/~': 1e3}".to_owned());
        let (mut count, mut of_sections) = (0, 0);
        for text in &texts {
            for document in yaml::parse(text).documents {
                let json = document.to_json();
                for (checker, plain_validator) in &kinds {
                    let errors = plain_validator.iter_errors(&json);
                    let expected =
                        fault_texts(errors.map(|error| (error.instance_path().to_string(), error)));
                    assert_eq!(fault_texts(checker.schema_errors(&document)), expected, "{text}");
                    assert_eq!(checker.is_valid(&document), expected.is_empty(), "{text}");
                    count += usize::from(!expected.is_empty());
                    let is_in_section = expected.iter().all(|(at, _)| at.matches('/').count() > 1);
                    of_sections += usize::from(!expected.is_empty() && is_in_section);
                }
            }
        }
        assert!(count > 1000 && of_sections > 50, "{count} and {of_sections}");
    }
}
