//! Writes the merged declaration of a group or project as one document. Comments show where each
//! value is declared.
//!
//! The result is a valid document that declares the same values without rules. Values that must not
//! be shown are omitted. A comment names the omitted fields.

use super::{
    layer::Trace,
    read::document::{DocumentSection, EntryState, LayerBody, LayerEntry},
};
use crate::{
    catalogue, desired,
    field::{Field, Secrecy},
    kind::{Section, Shape, forms},
    origin::Origin,
    secret::{Reference, judge::mask_url},
    value::{Fields, Json, Value},
    yaml::write::{self, MapItem, OutputNode, insert_nested},
};

impl Trace {
    /// The merged declaration as a YAML document.
    pub fn to_yaml(&self) -> String {
        let declaration = &self.declaration;
        let LayerBody { sections, unlisted, watch, .. } = &declaration.body;
        let mut items = vec![
            MapItem::value("kind", declaration.scope.document_kind()),
            self.item_with_origin("path", &*declaration.path.value, &declaration.path.origin),
        ];
        items.extend(self.lifecycle_items());
        items.extend(
            watch.iter().map(|watch| self.item_with_origin("watch", watch.value, &watch.origin)),
        );
        for section_kind in catalogue::sections(declaration.scope) {
            let mut sections = sections.iter();
            let section = sections.find(|s| s.section_kind.section == section_kind.section);
            items.extend(section.map(|section| self.section_item(section)));
        }
        if !unlisted.is_empty() {
            let policies = unlisted.iter();
            let policies = policies.map(|(name, policy)| {
                self.item_with_origin(*name, policy.value.word(), &policy.origin)
            });
            items.push(MapItem::new("unlisted", OutputNode::Map(policies.collect())));
        }
        write::render_document(&items)
    }

    /// The items `previously` and `state`.
    fn lifecycle_items(&self) -> Vec<MapItem> {
        let lifecycle = &self.declaration.lifecycle;
        let mut items = Vec::new();
        if let Some(first_path) = lifecycle.former_paths.first() {
            let paths: Vec<Json> =
                lifecycle.former_paths.iter().map(|path| (*path.value).into()).collect();
            items.push(self.item_with_origin("previously", paths, &first_path.origin));
        }
        if let Some(state) = &lifecycle.state {
            let is_absent = state.value == desired::EntryPresence::Absent;
            let word = if is_absent { "absent" } else { "present" };
            items.push(self.item_with_origin("state", word, &state.origin));
        }
        items
    }

    fn section_item(&self, section: &DocumentSection) -> MapItem {
        let (section_kind, mut hidden_notes) = (section.section_kind, Vec::new());
        let node = match (section_kind.shape, section.entries.first()) {
            (Shape::List, _) => OutputNode::List(
                section
                    .entries
                    .iter()
                    .map(|layer_entry| self.entry_items(section_kind, layer_entry))
                    .collect(),
            ),
            (shape, Some(layer_entry)) if layer_entry.state == EntryState::Absent => {
                let is_container = shape == Shape::Container;
                OutputNode::Value(if is_container { false.into() } else { Json::Null })
            }
            (Shape::Container, Some(layer_entry)) if layer_entry.fields.keys().next().is_none() => {
                OutputNode::Value(true.into())
            }
            (Shape::Mapping | Shape::Container, Some(layer_entry)) => {
                let (items, hidden_fields) = self.field_items(section_kind, layer_entry);
                hidden_notes = hidden_fields;
                OutputNode::Map(items)
            }
            (Shape::Switch, Some(layer_entry)) => {
                let value = layer_entry
                    .fields
                    .get(section_kind.section)
                    .map(|field| manifest_json(&field.value));
                OutputNode::Value(value.unwrap_or_default())
            }
            (_, None) => OutputNode::Map(Vec::new()),
        };
        // Show the origin of the section only if none of its values shows an origin.
        let needs_origin = match &node {
            OutputNode::Value(_) => true,
            OutputNode::Map(items) => items.is_empty(),
            OutputNode::List(entries) => entries.is_empty(),
        };
        let origin_comment = needs_origin.then(|| self.describe_origin(&section.origin));
        MapItem {
            comments_above: hidden_notes,
            comment_after: origin_comment,
            ..MapItem::new(section_kind.section, node)
        }
    }

    /// The items of a list entry, and a comment if a field is hidden.
    fn entry_items(&self, section: Section, entry: &LayerEntry) -> (Vec<MapItem>, Option<String>) {
        let (mut items, hidden_notes) = self.field_items(section, entry);
        let state = match entry.state {
            EntryState::Present => None,
            EntryState::Absent => Some("absent"),
            EntryState::Unmanaged => Some("unmanaged"),
        };
        items.extend(state.map(|state| self.item_with_origin("state", state, &entry.origin)));
        (items, (!hidden_notes.is_empty()).then(|| hidden_notes.join("; ")))
    }

    /// The fields of an entry, and a note for each field that is not shown.
    fn field_items(
        &self,
        section: Section,
        layer_entry: &LayerEntry,
    ) -> (Vec<MapItem>, Vec<String>) {
        let (mut items, mut extra_items, mut hidden_notes) = (Vec::new(), Vec::new(), Vec::new());
        let values = layer_entry.fields.values();
        let mut names: Vec<&str> = layer_entry.fields.keys().collect();
        names.sort_by_cached_key(|name| {
            let position = section.specs().iter().position(|spec| spec.name == *name);
            (position.is_none(), position)
        });
        for name in names {
            let Some(field) = layer_entry.fields.get(name) else { continue };
            let Some(spec) = section.spec(name) else {
                let value = manifest_json(&field.value);
                extra_items.push(self.item_with_origin(name, value, &field.origin));
                continue;
            };
            let default = spec.schema.get("default");
            if default.is_some()
                && default == field.value.plain_json()
                && section.identity.contains(&name)
            {
                continue;
            }
            let value = match visible_value(spec.field, &field.value, &values) {
                Ok(value) => value,
                Err(reason) => {
                    hidden_notes.push(format!("{name}: {reason}"));
                    continue;
                }
            };
            if let Value::Plain(Json::String(text)) = &field.value
                && value != *text
            {
                hidden_notes.push(format!("{name}: a possible credential is not shown"));
            }
            let field_path = [name.to_owned()];
            let entry_key = (section, layer_entry.key(section));
            let node = self.field_item(entry_key, &field_path, &spec.schema, value, &field.origin);
            insert_nested(&mut items, &name.split('.').collect::<Vec<_>>(), node);
        }
        if !extra_items.is_empty() {
            items.push(MapItem::new("extra", OutputNode::Map(extra_items)));
        }
        (items, hidden_notes)
    }

    /// An item for a value, with a comment that names the place of its declaration. Layers are
    /// merged leaf by leaf, so each leaf of a mapping has its own place.
    fn field_item(
        &self,
        entry_key: (Section, &str),
        field_path: &[String],
        schema: &Json,
        value: Json,
        origin: &Origin,
    ) -> MapItem {
        let key = field_path.last().map_or("", String::as_str);
        match value {
            Json::Object(object) if schema.get("properties").is_some() && !object.is_empty() => {
                let leaves = object.into_iter().map(|(name, value)| {
                    let schema = &schema["properties"][&name];
                    let leaf_path: Vec<_> = field_path.iter().cloned().chain([name]).collect();
                    self.field_item(entry_key, &leaf_path, schema, value, origin)
                });
                MapItem::new(key, OutputNode::Map(leaves.collect()))
            }
            value => {
                let leaf_origin = self.deciding_origin(entry_key.0, entry_key.1, field_path);
                self.item_with_origin(key, value, leaf_origin.unwrap_or(origin))
            }
        }
    }

    /// An item for `value`, with a comment that shows its `origin`.
    fn item_with_origin(
        &self,
        key: impl Into<String>,
        value: impl Into<Json>,
        origin: &Origin,
    ) -> MapItem {
        MapItem::value(key, value).with_comment(self.describe_origin(origin))
    }

    /// The comment about the origin of a value: file, line, and the name of the rule if a rule sets
    /// the value.
    fn describe_origin(&self, origin: &Origin) -> String {
        let (file, line) = (&origin.file, origin.line);
        match self.rule_at(origin) {
            Some(rule) => format!("{file}:{line} {}", rule.name),
            None => format!("{file}:{line}"),
        }
    }
}

/// The visible form of a declared value, or the reason why it must not be shown.
fn visible_value(
    field: &Field,
    value: &Value,
    entry_fields: &Fields,
) -> Result<Json, &'static str> {
    match value {
        Value::Plain(value) if forms::is_literal_hidden(field, value, entry_fields) => {
            Err("not shown: it may be a secret")
        }
        Value::Plain(Json::String(url)) if field.secrecy() == Secrecy::Address => {
            Ok(mask_url(url).into())
        }
        value => Ok(manifest_json(value)),
    }
}

/// `value` in the form in which manifests write it.
fn manifest_json(value: &Value) -> Json {
    match value {
        Value::Plain(json) => json.clone(),
        Value::Secret(reference) => reference.to_manifest_json(),
        Value::File(path) => Reference::File(path.clone()).to_manifest_json(),
    }
}
