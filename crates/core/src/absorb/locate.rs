//! Finds the document and the node with the declaration of a [`Goal`], and makes the edits that
//! change the declaration.
//!
//! An edit must not replace an expression by a plain value. Expressions are templates, references,
//! conditions, and changes of a lower layer's list. Only a change of a list (`add`, `remove`) can
//! be edited.

use std::rc::Rc;

use super::{
    AbsorbMode, AbsorbRefusal,
    edit::{OutputNode, PathStep, Pointer, TextEdit, written_entry},
    goal::{EXTRA_KEY, FieldValues, Goal, GoalChange},
    source::{Location, SourceFile, SourceFiles},
};
use crate::{
    catalogue,
    desired::{Container, DeclaredEntry},
    diagnostic::FileName,
    kind::{Shape, forms},
    origin::{Layer, Origin, Sourced},
    value::{Json, Value},
    yaml::write::{MapItem, insert_nested},
    yaml::{Node, NodeValue},
};

/// The keys that come after the sections in a document.
const LAST_KEYS: [&str; 2] = ["unlisted", "undeclared_projects"];

/// The reason for a refusal if the file has no declaration at the line and column of the origin.
const NOT_FOUND_REASON: &str = "its declaration was not found in the file";

/// A result, or the refusal of a goal that cannot be edited.
type LocateResult<T> = Result<T, AbsorbRefusal>;

/// Edits, each with its file.
pub(super) type Edits = Vec<(FileName, TextEdit)>;

/// The edits that make `container` declare the goal. If `is_covered` is true, a lower layer also
/// declares the entry. Then the removal of the entry is written as `state: absent`.
///
/// # Errors
/// If the goal cannot be edited.
pub(super) fn locate_edits(
    goal: &Goal,
    container: &Container,
    mode: AbsorbMode,
    is_covered: bool,
    files: &mut SourceFiles<'_>,
) -> Result<Edits, AbsorbRefusal> {
    let entry = container.entry(goal.section.section, &goal.key);
    let origin = &container.origin;
    let mut locator = Locator { goal, container, entry, is_covered, origin };
    if let (AbsorbMode::AtSource, Some(entry)) = (mode, entry) {
        locator.origin = &entry.origin;
        if let GoalChange::SetFields(fields) = &goal.change {
            return locator.source_field_edits(entry, fields, files);
        }
        let file = locator.open(&entry.origin, files)?;
        let location = match goal.section.shape {
            Shape::List => file.item_location(&entry.origin),
            _ => file.key_location(&entry.origin),
        };
        let location = location.ok_or_else(|| locator.new_refusal(NOT_FOUND_REASON, None))?;
        return locator.edits_at(&file, location);
    }
    let file = locator.open(&container.origin, files)?;
    let location = locator.locate_in_document(&file)?;
    locator.edits_at(&file, &location)
}

struct Locator<'a> {
    goal: &'a Goal,
    container: &'a Container,
    entry: Option<&'a DeclaredEntry>,
    /// True if a lower layer also declares the entry. A removal is then written as `state: absent`.
    is_covered: bool,
    /// The origin of the declaration to edit.
    origin: &'a Origin,
}

impl Locator<'_> {
    /// The refusal to edit the goal, at `origin`, or else at the origin of the declaration.
    fn new_refusal(&self, reason: impl Into<String>, origin: Option<Origin>) -> AbsorbRefusal {
        let origin = Some(origin.unwrap_or_else(|| self.origin.clone()));
        AbsorbRefusal { origin, ..AbsorbRefusal::new(&self.goal.address, reason) }
    }

    fn open(&self, origin: &Origin, files: &mut SourceFiles<'_>) -> LocateResult<Rc<SourceFile>> {
        files.open(&origin.file).map_err(|reason| self.new_refusal(reason, Some(origin.clone())))
    }

    /// The location of the section in the document of the container itself. For a list entry in
    /// this document, the location also contains the index of the entry.
    fn locate_in_document(&self, file: &SourceFile) -> LocateResult<Location> {
        let document = file.path_location(&self.container.origin);
        let Some(Location { mapping, .. }) = document else {
            return Err(self.new_refusal("its document was not found in the file", None));
        };
        let key = self.goal.section.section.to_owned();
        let entry_origin = self.entry.map(|entry| &entry.origin).filter(|origin| {
            let is_in_file = origin.layer >= Layer::Group && origin.file == file.name;
            is_in_file && self.goal.section.shape == Shape::List
        });
        let entry_location = entry_origin.and_then(|origin| file.item_location(origin));
        let item = entry_location
            .filter(|location| location.mapping == mapping && location.key == key)
            .and_then(|declared| declared.item);
        Ok(Location { mapping, key, item })
    }

    /// The edits at `location` in `file`.
    fn edits_at(&self, file: &SourceFile, location: &Location) -> LocateResult<Edits> {
        let edits = if self.goal.section.shape == Shape::List && !self.goal.key.is_empty() {
            self.list_edits(file, location)?
        } else {
            self.section_edits(file, location)?
        };
        Ok(edits.into_iter().map(|edit| (file.name.clone(), edit)).collect())
    }

    /// The edits of an entry of a list.
    fn list_edits(&self, file: &SourceFile, location: &Location) -> LocateResult<Vec<TextEdit>> {
        let Location { mapping: target, key, item } = location.clone();
        if let (GoalChange::SetFields(fields), Some(item)) = (&self.goal.change, item) {
            let entry = target.child(PathStep::Key(key)).child(PathStep::Item(item));
            return self.field_edits(&entry, file.node(&entry), fields);
        }
        let removal =
            item.map(|item| TextEdit::Remove { target: target.clone(), key: key.clone(), item });
        let (entry, comment) = match &self.goal.change {
            GoalChange::RemoveEntry if item.is_some() && !self.is_covered => {
                return Ok(removal.into_iter().collect());
            }
            GoalChange::RemoveEntry => {
                let state = MapItem::value("state", "absent");
                (self.identity_items()?.into_iter().chain([state]).collect(), None)
            }
            GoalChange::DeclareEntry(fields, comment) => {
                (nested_items(Vec::new(), fields), comment.clone())
            }
            GoalChange::SetFields(fields) => (nested_items(self.identity_items()?, fields), None),
        };
        let addition = TextEdit::Push { target, key, entry, comment, order: self.section_order() };
        Ok(removal.into_iter().chain([addition]).collect())
    }

    /// The edits of a section that is not a list, or the edit that declares an empty list.
    fn section_edits(&self, file: &SourceFile, location: &Location) -> LocateResult<Vec<TextEdit>> {
        let Location { mapping: target, key, .. } = location.clone();
        let pointer = target.child(PathStep::Key(key.clone()));
        let written_node = file.node(&pointer);
        let is_mapping = written_node.is_some_and(|node| matches!(node.data, NodeValue::Map(_)));
        let value = match (&self.goal.change, self.goal.section.shape) {
            (_, Shape::List) => OutputNode::Value(Json::Array(Vec::new())),
            (GoalChange::RemoveEntry, _) => OutputNode::Value(Json::Null),
            (
                GoalChange::SetFields(fields) | GoalChange::DeclareEntry(fields, _),
                Shape::Switch,
            ) => {
                let Some((_, value)) = fields.last() else { return Ok(Vec::new()) };
                OutputNode::Value(value.clone())
            }
            (GoalChange::SetFields(fields), _) if is_mapping => {
                return self.field_edits(&pointer, written_node, fields);
            }
            (GoalChange::SetFields(fields) | GoalChange::DeclareEntry(fields, _), _) => {
                OutputNode::Map(nested_items(Vec::new(), fields))
            }
        };
        Ok(vec![TextEdit::Put { target, keys: vec![key], value, order: self.section_order() }])
    }

    /// The edits that set `fields` in `mapping`, which is at `pointer`.
    fn field_edits(
        &self,
        pointer: &Pointer,
        mapping: Option<&Node>,
        fields: &FieldValues,
    ) -> LocateResult<Vec<TextEdit>> {
        let specs = self.goal.section.specs().iter();
        let order: Vec<_> = specs.map(|spec| spec.name).chain([EXTRA_KEY]).collect();
        let mut edits = Vec::new();
        for (keys, value) in fields {
            let node = mapping.and_then(|mapping| node_at(mapping, keys));
            let values = match node.and_then(|node| Some((node, expression_kind(node)?))) {
                None => vec![(keys.clone(), value.clone())],
                Some((node, kind)) => self.list_change_values(node, kind, keys, value)?,
            };
            edits.extend(values.into_iter().map(|(keys, value)| {
                let (target, new_value) = (pointer.clone(), OutputNode::Value(value));
                TextEdit::Put { target, keys, value: new_value, order: order.clone() }
            }));
        }
        Ok(edits)
    }

    /// The new `add` and `remove` lists in `node`, so that the merged list is `value`. Refuses any
    /// other expression. `kind` describes the expression in the message.
    fn list_change_values(
        &self,
        node: &Node,
        kind: &str,
        keys: &[String],
        value: &Json,
    ) -> LocateResult<FieldValues> {
        let field = field_name(keys).and_then(|name| self.entry?.fields.get(name));
        let declared_items = field.as_ref().and_then(|field| field.value.plain_json()?.as_array());
        let lists = declared_items
            .and_then(|declared| update_change_lists(node, declared, value.as_array()?));
        let lists = lists.ok_or_else(|| {
            let reason = format!("`{}` is written {kind}", keys.join("."));
            self.new_refusal(reason, field.map(|Sourced { origin, .. }| origin))
        })?;
        let lists = lists.into_iter();
        Ok(lists.map(|(key, list)| ([keys, &[key.to_owned()]].concat(), list.into())).collect())
    }

    /// The edits that change each of `fields` at its declaration, in any layer.
    fn source_field_edits(
        &self,
        entry: &DeclaredEntry,
        fields: &FieldValues,
        files: &mut SourceFiles<'_>,
    ) -> LocateResult<Edits> {
        let mut edits = Edits::new();
        for (keys, value) in fields {
            let origin = field_name(keys).and_then(|name| entry.fields.origin(name));
            let origin = origin.unwrap_or_else(|| entry.origin.clone());
            let file = self.open(&origin, files)?;
            let inner_keys = keys.iter().skip_while(|key| *key == EXTRA_KEY).skip(1);
            let edit = key_edit(&file, &origin, inner_keys, value)
                .map_err(|reason| self.new_refusal(reason, Some(origin)))?;
            edits.push((file.name.clone(), edit));
        }
        Ok(edits)
    }

    /// The sections of a document in the documented order, then the keys after the sections.
    fn section_order(&self) -> Vec<&'static str> {
        let sections = catalogue::sections(self.container.scope).map(|section| section.section);
        sections.chain(LAST_KEYS).collect()
    }

    /// The identity of the entry as written in a document.
    fn identity_items(&self) -> LocateResult<Vec<MapItem>> {
        let Some(entry) = self.entry else { return Ok(Vec::new()) };
        let mut items = Vec::new();
        for name in self.goal.section.identity {
            let Some(field) = entry.fields.get(name) else { continue };
            let Value::Plain(value) = field.value else {
                return Err(self.new_refusal("its identity is a reference", Some(field.origin)));
            };
            let spec = self.goal.section.spec(name);
            if spec.and_then(|spec| spec.schema.get("default")) != Some(&value) {
                items.push(MapItem::value(*name, value));
            }
        }
        Ok(items)
    }
}

/// The name of the field with these keys.
fn field_name(keys: &[String]) -> Option<&String> {
    keys.iter().find(|key| *key != EXTRA_KEY)
}

/// Adds `fields` to the `items` of a mapping, each at its keys.
fn nested_items(mut items: Vec<MapItem>, fields: &FieldValues) -> Vec<MapItem> {
    for (keys, value) in fields {
        insert_nested(&mut items, keys, MapItem::value("", value.clone()));
    }
    items
}

/// The edit that sets the value of the key at `origin`, or the value at `inner_keys` below this
/// key.
fn key_edit<'n>(
    file: &SourceFile,
    origin: &Origin,
    inner_keys: impl Iterator<Item = &'n String>,
    value: &Json,
) -> Result<TextEdit, String> {
    let Location { mapping: target, key, .. } =
        file.key_location(origin).ok_or(NOT_FOUND_REASON)?.clone();
    let mapping = file.node(&target).ok_or(NOT_FOUND_REASON)?;
    let keys: Vec<_> = std::iter::once(key).chain(inner_keys.cloned()).collect();
    let node = node_at(mapping, &keys).ok_or("several layers declare parts of it")?;
    if let Some(kind) = expression_kind(node) {
        return Err(format!("it is written {kind}"));
    }
    let value = OutputNode::Value(value.clone());
    Ok(TextEdit::Put { target, keys, value, order: Vec::new() })
}

/// The keys of a mapping that changes the list of a lower layer.
const CHANGE_KEYS: [&str; 2] = ["add", "remove"];

/// The node below `names` in the mapping `map`.
fn node_at<'n>(map: &'n Node, names: &[String]) -> Option<&'n Node> {
    names.iter().try_fold(map, |node, name| written_entry(node, name).map(|(_, node)| node))
}

/// The kind of expression in `node` as text for a message; `None` for a plain value.
fn expression_kind(node: &Node) -> Option<&'static str> {
    let kinds: [(&[&str], _); 4] = [
        (&["text"], "as a template"),
        (&["env", "file"], "as a reference"),
        (&CHANGE_KEYS, "as a change of lower layers"),
        (&forms::CONDITION_KEYS, "as a condition on the live value"),
    ];
    let mut kinds = kinds.into_iter();
    kinds.find(|(names, _)| has_any_key(node, names)).map(|(_, kind)| kind)
}

/// True if `node` is a mapping with one of these keys.
fn has_any_key(node: &Node, names: &[&str]) -> bool {
    names.iter().any(|name| node.get(name).is_some())
}

/// The items of `list` that `others` lack.
fn missing_items(list: &[Json], others: &[Json]) -> Vec<Json> {
    list.iter().filter(|item| !others.contains(item)).cloned().collect()
}

/// The new `add` and `remove` lists for `node`, which changes the list of a lower layer. The merged
/// list is `declared` now, and must become `target`. `None` if `node` does not change a list, or if
/// one of its lists would become empty.
fn update_change_lists(
    node: &Node,
    declared: &[Json],
    target: &[Json],
) -> Option<Vec<(&'static str, Vec<Json>)>> {
    let (new_items, lost_items) =
        (missing_items(target, declared), missing_items(declared, target));
    let [old_add, old_remove] =
        CHANGE_KEYS.map(|key| match node.get(key).map(|(_, list)| list.to_json()) {
            Some(Json::Array(list)) => list,
            _ => Vec::new(),
        });
    let new_add =
        [missing_items(&old_add, &lost_items), missing_items(&new_items, &old_remove)].concat();
    let new_remove =
        [missing_items(&old_remove, &new_items), missing_items(&lost_items, &old_add)].concat();
    let lists = [(CHANGE_KEYS[0], new_add, old_add), (CHANGE_KEYS[1], new_remove, old_remove)];
    let is_possible = has_any_key(node, &CHANGE_KEYS)
        && lists.iter().all(|(_, new, old)| !new.is_empty() || old.is_empty());
    let changed_lists = lists.into_iter().filter(|(_, new, old)| new != old);
    is_possible.then(|| changed_lists.map(|(key, new, _)| (key, new)).collect())
}
