//! Edits a YAML text, but keeps its comments, order, quotes, indentation and line endings.
//!
//! A [`TextEdit`] names its node by keys and list positions, never by bytes. Therefore each edit
//! can be applied to the result of the previous edit. This module does not check the edited text.
//! The caller loads the text again and checks the result.

mod copy;
mod items;
mod pass;

use std::{collections::HashMap, ops::Range};

use super::AbsorbRefusal;
use crate::{
    address::Address,
    diagnostic::{FileName, SourceText},
    origin::Layer,
    text::is_unsafe,
    value::Json,
    yaml::write::{self as writer, MapItem},
    yaml::{MappingKey, Node, NodeValue, ParsedYaml},
};

pub(super) use copy::copy_document;
pub(super) use pass::apply_all;

/// The new value of a key.
pub(super) use writer::OutputNode;

/// A step from a node to a node inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathStep {
    /// The value of a key in a mapping.
    Key(String),
    /// An item of a list.
    Item(usize),
}

impl PathStep {
    /// The node that this step leads to from `node`.
    pub(super) fn follow<'n>(&self, node: &'n Node) -> Option<&'n Node> {
        match self {
            Self::Key(name) => written_entry(node, name).map(|(_, value)| value),
            Self::Item(index) => node.items().get(*index),
        }
    }
}

/// The path to a node in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pointer {
    /// The number of the document in the text.
    pub(super) document: usize,
    /// The steps from the root of the document to the node.
    pub(super) steps: Vec<PathStep>,
}

impl Pointer {
    /// The node that `step` leads to.
    pub(super) fn child(&self, step: PathStep) -> Self {
        let mut child = self.clone();
        child.steps.push(step);
        child
    }
}

/// An edit of a text. Several edits of one list must be applied in the order of the variants.
/// Removals start with the last item, so that the indexes of the other items do not change.
#[derive(Clone, Debug)]
pub(super) enum TextEdit {
    /// Sets the last of `keys` below the mapping `target` to `value`. Missing mappings in between are
    /// added. New keys are placed in the documented `order`.
    Put { target: Pointer, keys: Vec<String>, value: OutputNode, order: Vec<&'static str> },
    /// Appends an entry to the list that is the value of `key` in the mapping `target`.
    Push {
        target: Pointer,
        key: String,
        entry: Vec<MapItem>,
        comment: Option<String>,
        order: Vec<&'static str>,
    },
    /// Removes the item at index `item` from the value of `key` in the mapping `target`. The value is a
    /// list or a mapping.
    Remove { target: Pointer, key: String, item: usize },
}

/// Ranges of a text, and their replacements.
type TextChanges = Vec<(Range<usize>, String)>;

/// The changes of an edit, or the failure.
type EditResult = Result<TextChanges, EditFailure>;

/// The reason why a text cannot be edited, and the position of the fault in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EditFailure {
    pub(super) reason: &'static str,
    pub(super) offset: usize,
}

impl EditFailure {
    /// The refusal for the object at `address`, with the position in the `text` of `file`.
    pub(super) fn refuse(&self, address: &Address, file: &FileName, text: &str) -> AbsorbRefusal {
        let origin = SourceText::new(file.clone(), text).origin(self.offset, Layer::Project);
        AbsorbRefusal { origin: Some(origin), ..AbsorbRefusal::new(address, self.reason) }
    }
}

impl TextEdit {
    /// The node in which the edit is made.
    pub(super) const fn target_pointer(&self) -> &Pointer {
        match self {
            Self::Put { target, .. } | Self::Remove { target, .. } | Self::Push { target, .. } => {
                target
            }
        }
    }

    /// The changes for `text`, whose parsed form is `parsed`.
    fn changes(&self, text: &str, parsed: &ParsedYaml) -> EditResult {
        let text = YamlText(text);
        let document = parsed.documents.get(self.target_pointer().document);
        let document = document.ok_or_else(|| text.misplaced_failure(0))?;
        let node = text.find_node(document, &self.target_pointer().steps)?;
        match self {
            Self::Put { keys, value: new_value, order, .. } => {
                text.put_value(node, keys, new_value, order)
            }
            Self::Remove { key, item, .. } => {
                let (key, collection) = written_entry(node, key)
                    .ok_or_else(|| text.misplaced_failure(node.span.start))?;
                text.remove_item(node, key, collection, *item)
            }
            Self::Push { key, entry, comment, order, .. } => {
                text.append_entry(node, key, entry, comment.as_deref(), order)
            }
        }
    }
}

/// The key `name` of the mapping `map` and its value, if the text of `map` contains the entry. A
/// merged entry is in the text of another mapping.
pub(super) fn written_entry<'n>(map: &'n Node, name: &str) -> Option<(&'n MappingKey, &'n Node)> {
    written_entries(map).find(|(key, _)| key.name == name)
}

/// The entries that the text of `map` contains. Merged entries are in the text of another mapping.
pub(super) fn written_entries(map: &Node) -> impl Iterator<Item = (&MappingKey, &Node)> {
    let entries = map.entries().iter().map(|(key, value)| (key, value));
    entries.filter(|(key, _)| map.span.contains(&key.span.start))
}

/// A text to edit.
#[derive(Clone, Copy)]
struct YamlText<'t>(&'t str);

impl YamlText<'_> {
    fn new_failure(reason: &'static str, offset: usize) -> EditFailure {
        EditFailure { reason, offset }
    }

    fn misplaced_failure(self, offset: usize) -> EditFailure {
        Self::new_failure("its declaration was not found in the file", offset)
    }

    /// The node that `steps` lead to.
    fn find_node<'n>(
        self,
        mut node: &'n Node,
        steps: &[PathStep],
    ) -> Result<&'n Node, EditFailure> {
        for step in steps {
            self.reject_alias(node)?;
            node = step.follow(node).ok_or_else(|| self.misplaced_failure(node.span.start))?;
        }
        Ok(node)
    }

    /// Returns a failure if `node` is an alias, because its value is written elsewhere in the text.
    fn reject_alias(self, node: &Node) -> Result<(), EditFailure> {
        if self.0[node.span.clone()].starts_with('*') {
            let reason = "it is an alias of a YAML anchor";
            return Err(Self::new_failure(reason, node.span.start));
        }
        Ok(())
    }

    /// True if a node is written in flow style.
    fn is_flow(self, node: &Node) -> bool {
        self.0[node.span.start..].starts_with(['{', '['])
    }

    fn is_block(self, node: &Node) -> bool {
        node.is_collection() && !self.is_flow(node) && !self.0[node.span.clone()].starts_with('*')
    }

    /// The byte after the colon of `key`.
    fn offset_after_colon(self, key: &MappingKey) -> usize {
        let text_after = &self.0[key.span.end..];
        key.span.end + text_after.find(':').map_or(0, |colon| colon + 1)
    }

    /// True if nothing is written after the colon for a null value.
    fn is_omitted_null(self, key: &MappingKey, value: &Node) -> bool {
        value.data == NodeValue::Null
            && (value.span.start < key.span.end || self.0[value.span.clone()].trim().is_empty())
    }

    /// The end of a node's text, without comments after it.
    fn node_end(self, node: &Node) -> usize {
        let last_end = match &node.data {
            NodeValue::Map(_) if self.is_block(node) => {
                written_entries(node).map(|(key, value)| self.entry_end(key, value)).max()
            }
            NodeValue::List(items) if self.is_block(node) => {
                items.iter().map(|item| self.node_end(item)).max()
            }
            _ => None,
        };
        last_end.unwrap_or_else(|| node.span.start + self.0[node.span.clone()].trim_end().len())
    }

    fn entry_end(self, key: &MappingKey, value: &Node) -> usize {
        if self.is_omitted_null(key, value) {
            self.offset_after_colon(key)
        } else {
            self.node_end(value)
        }
    }

    fn line_start(self, offset: usize) -> usize {
        self.0[..offset].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The end of the line with the byte `offset`, without its line feed.
    fn line_end(self, offset: usize) -> usize {
        let end = self.0[offset..].find('\n').map_or(self.0.len(), |length| offset + length);
        if self.0[offset..end].ends_with('\r') { end - 1 } else { end }
    }

    /// The number of characters before the byte `offset` in its line.
    fn column(self, offset: usize) -> usize {
        self.0[self.line_start(offset)..offset].trim_start_matches('\u{feff}').chars().count()
    }

    /// Inserts whole `lines` after the line with the byte `offset`.
    fn insert_lines(self, offset: usize, lines: &str) -> TextChanges {
        let end = self.line_end(offset);
        let lines = format!("\n{}", lines.trim_end_matches('\n'));
        vec![(end..end, lines)]
    }

    fn put_value(
        self,
        map: &Node,
        keys: &[String],
        new_value: &OutputNode,
        order: &[&str],
    ) -> EditResult {
        self.reject_alias(map)?;
        let Some((name, inner_keys)) = keys.split_first() else {
            return Err(self.misplaced_failure(map.span.start));
        };
        let existing_entry = written_entry(map, name);
        if let Some((_, value)) = existing_entry
            && !inner_keys.is_empty()
            && matches!(value.data, NodeValue::Map(_))
        {
            return self.put_value(value, inner_keys, new_value, &[]);
        }
        let keys = inner_keys.iter().rev();
        let nested_value = keys
            .fold(new_value.clone(), |node, name| OutputNode::Map(vec![MapItem::new(name, node)]));
        match existing_entry {
            None => self.insert_key(map, name, &nested_value, order),
            Some((key, value)) => self.replace_value(map, key, value, &nested_value),
        }
    }

    /// Replaces the value of `key` in `map`.
    fn replace_value(
        self,
        map: &Node,
        key: &MappingKey,
        value: &Node,
        new_value: &OutputNode,
    ) -> EditResult {
        let colon = self.offset_after_colon(key);
        let is_empty_value = self.is_omitted_null(key, value);
        let text_before =
            if is_empty_value { "" } else { self.0.get(colon..value.span.start).unwrap_or("&") };
        let old_text = if is_empty_value { "" } else { &self.0[value.span.clone()] };
        if [text_before.trim_start(), old_text].iter().any(|text| text.starts_with(['&', '!'])) {
            return Err(Self::new_failure("it has a YAML anchor or a tag", value.span.start));
        }
        if self.is_flow(map) {
            let new_text = writer::format_inline(&new_value.to_json(), true);
            let range =
                if is_empty_value { colon..colon } else { value.span.start..self.node_end(value) };
            let gap = if is_empty_value { " " } else { "" };
            return Ok(vec![(range, format!("{gap}{new_text}"))]);
        }
        if let (OutputNode::Value(Json::Array(new_items)), true) = (new_value, self.is_block(value))
            && let Some(changes) = self.edit_items(value, new_items)?
        {
            return Ok(changes);
        }
        let end = self.entry_end(key, value);
        let column = self.column(key.span.start);
        let lines = match new_value {
            OutputNode::Value(Json::String(new_string)) => self.quote_like_old(value, new_string),
            _ => None,
        };
        let lines = lines.unwrap_or_else(|| text_after_key(key, new_value, column));
        let is_one_line = !lines.contains('\n');
        let replaced_text = &self.0[colon.min(end)..end];
        if is_one_line && !is_empty_value && !replaced_text.contains('\n') {
            return Ok(vec![(value.span.start..end, lines.trim_start().to_owned())]);
        }
        // Keep a comment after the value, or after the header (`|`, `>`) of a block text.
        let header_end = self.line_end(colon);
        let (range_end, after_value) = if replaced_text.trim_start().starts_with(['|', '>']) {
            (end, &self.0[colon..header_end])
        } else {
            let value_line_end = self.line_end(end);
            (value_line_end, &self.0[end..value_line_end])
        };
        let comment = after_value.find(" #").map_or("", |comment_start| {
            after_value[after_value[..comment_start].trim_end().len()..].trim_end()
        });
        let (first_line, later_lines) =
            lines.split_once('\n').map_or((&*lines, ""), |(a, b)| (a, b));
        let newline = if is_one_line { "" } else { "\n" };
        let replacement = format!("{first_line}{comment}{newline}{later_lines}");
        Ok(vec![(colon..range_end, replacement)])
    }

    /// `new_text` in the same quotes as the old value; `None` if the old value has no quotes.
    fn quote_like_old(self, old_node: &Node, new_text: &str) -> Option<String> {
        let old_text = &self.0[old_node.span.clone()];
        if old_text.starts_with('"') {
            Some(format!(" {}", writer::quote_double(new_text)))
        } else if old_text.starts_with('\'') && !new_text.contains(is_unsafe) {
            Some(format!(" '{}'", new_text.replace('\'', "''")))
        } else {
            None
        }
    }

    /// Adds a new key to `map`.
    fn insert_key(
        self,
        map: &Node,
        name: &str,
        new_value: &OutputNode,
        order: &[&str],
    ) -> EditResult {
        if self.is_flow(map) {
            let value = writer::format_inline(&new_value.to_json(), true);
            let entry = format!("{}: {value}", writer::format_scalar(name, true));
            let last = written_entries(map).map(|(key, value)| self.entry_end(key, value)).max();
            return Ok(self.insert_in_brackets(map, last, &entry));
        }
        let positions: HashMap<&str, usize> =
            order.iter().enumerate().map(|(position, name)| (*name, position)).collect();
        let new_position = positions.get(name);
        // The last of the keys before the new key, or else the last key.
        let previous_entry = written_entries(map).max_by_key(|(key, _)| {
            let position = positions.get(&*key.name);
            let is_before =
                position.is_none_or(|position| new_position.is_none_or(|new| position < new));
            (is_before, key.span.start)
        });
        let Some((previous_key, value)) = previous_entry else {
            let reason = "all of it is merged in from a YAML anchor";
            return Err(Self::new_failure(reason, map.span.start));
        };
        let item = MapItem::new(name, new_value.clone());
        let lines = writer::render_item(&item, self.column(previous_key.span.start));
        Ok(self.insert_lines(self.entry_end(previous_key, value), &lines))
    }

    /// Adds `new_text` inside the brackets of `node`, after its last item or entry, which ends at
    /// `last_end`.
    fn insert_in_brackets(
        self,
        node: &Node,
        last_end: Option<usize>,
        new_text: &str,
    ) -> TextChanges {
        let (offset, inserted_text) = match last_end {
            None => (node.span.start + 1, new_text.to_owned()),
            Some(end) => match self.0[end..].trim_start().strip_prefix(',') {
                Some(text_after) => (self.0.len() - text_after.len(), format!(" {new_text}")),
                None => (end, format!(", {new_text}")),
            },
        };
        vec![(offset..offset, inserted_text)]
    }
}

/// The text to write after the colon of `key` for `new_value`, without the last line feed.
fn text_after_key(key: &MappingKey, new_value: &OutputNode, column: usize) -> String {
    let lines = writer::render_item(&MapItem::new(&*key.name, new_value.clone()), column);
    let value_start = column + writer::format_scalar(&key.name, false).len() + 1;
    lines[value_start..].trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests;
