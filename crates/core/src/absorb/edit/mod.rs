//! Edits a YAML text and preserves the rest: comments, order, quotes, indentation and line endings.
//!
//! An [`TextEdit`] names its node by keys and list positions, never by bytes, so edits can follow each
//! other: each applies to the result of the one before. This module does not interpret the edited
//! text; the caller reads it again.

mod copy;
mod pass;

use std::{collections::HashMap, ops::Range};

use super::AbsorbRefusal;
use crate::{
    diagnostic::{FileName, SourceText},
    origin::Layer,
    text::is_unsafe,
    value::Json,
    yaml::write::{self as writer, Item},
    yaml::{MappingKey, Node, NodeValue, Parsed},
};

pub(super) use copy::copy_document;
pub(super) use pass::apply_all;

/// The new value of a key.
pub(super) use writer::OutputNode as New;

/// A step from a node to a node inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathStep {
    /// The value of a key in a mapping.
    Key(String),
    /// An item of a list.
    Item(usize),
}

impl PathStep {
    /// The node that it leads to from `node`.
    pub(super) fn follow<'n>(&self, node: &'n Node) -> Option<&'n Node> {
        match self {
            Self::Key(name) => written_entry(node, name).map(|(_, value)| value),
            Self::Item(at) => node.items().get(*at),
        }
    }
}

/// A node in a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pointer {
    /// The number of the document in the text.
    pub(super) document: usize,
    /// The path to the node.
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

/// An edit of a text. Edits of one list keep positions valid in the order of the variants, with
/// removals from the end.
#[derive(Clone, Debug)]
pub(super) enum TextEdit {
    /// Sets the last of `keys` below the mapping `at` to `value`. Missing mappings in between are
    /// added. New keys are placed in the documented `order`.
    Put { at: Pointer, keys: Vec<String>, value: New, order: Vec<&'static str> },
    /// Appends an entry to the list with `key` in the mapping `at`.
    Push {
        at: Pointer,
        key: String,
        entry: Vec<Item>,
        comment: Option<String>,
        order: Vec<&'static str>,
    },
    /// Removes an item from the list, or an entry from the mapping, with `key` in the mapping `at`.
    Remove { at: Pointer, key: String, item: usize },
}

/// Ranges of a text, and their replacements.
type Changes = Vec<(Range<usize>, String)>;

/// The changes of an edit, or why it cannot be made.
type Edited = Result<Changes, NoEdit>;

/// Why a text cannot be edited, and the byte concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NoEdit {
    pub(super) reason: &'static str,
    pub(super) byte: usize,
}

impl NoEdit {
    /// Adds the place in the `text` of `file` to `refusal`.
    pub(super) fn add_place(
        &self,
        refusal: AbsorbRefusal,
        file: &FileName,
        text: &str,
    ) -> AbsorbRefusal {
        let origin = SourceText::new(file.clone(), text).origin(self.byte, Layer::Project);
        AbsorbRefusal { origin: Some(origin), ..refusal }
    }
}

impl TextEdit {
    /// The node in which the edit is made.
    pub(super) const fn target_pointer(&self) -> &Pointer {
        match self {
            Self::Put { at, .. } | Self::Remove { at, .. } | Self::Push { at, .. } => at,
        }
    }

    /// Applies the edit to `text`.
    #[cfg(test)]
    fn apply(&self, text: &str) -> Result<String, NoEdit> {
        let parsed = crate::yaml::parse(text);
        let mut pass = pass::Pass::default();
        pass.add(self, self.changes(text, &parsed)?, &parsed);
        Ok(pass.apply(text))
    }

    /// The changes for `text`, whose parsed form is `parsed`.
    fn changes(&self, text: &str, parsed: &Parsed) -> Edited {
        let text = YamlText(text);
        let document = parsed.documents.get(self.target_pointer().document);
        let document = document.ok_or_else(|| text.misplaced_error(0))?;
        let node = text.find_node(document, &self.target_pointer().steps)?;
        match self {
            Self::Put { keys, value: to, order, .. } => text.put_value(node, keys, to, order),
            Self::Remove { key, item, .. } => {
                let (key, list) = written_entry(node, key)
                    .ok_or_else(|| text.misplaced_error(node.span.start))?;
                text.remove_item(node, key, list, *item)
            }
            Self::Push { key, entry, comment: about, order, .. } => {
                text.append_entry(node, key, entry, about.as_deref(), order)
            }
        }
    }
}

/// The value of `name` in the mapping `map`, if it is written there and not merged in.
pub(super) fn written_entry<'n>(map: &'n Node, name: &str) -> Option<(&'n MappingKey, &'n Node)> {
    written_entries(map).find(|(key, _)| key.name == name)
}

/// The entries written in `map`, without merged ones.
pub(super) fn written_entries(map: &Node) -> impl Iterator<Item = (&MappingKey, &Node)> {
    let entries = map.entries().iter().map(|(key, value)| (key, value));
    entries.filter(|(key, _)| map.span.contains(&key.span.start))
}

/// A text to edit.
#[derive(Clone, Copy)]
struct YamlText<'t>(&'t str);

impl YamlText<'_> {
    fn no_edit(why: &'static str, at: usize) -> NoEdit {
        NoEdit { reason: why, byte: at }
    }

    fn misplaced_error(self, at: usize) -> NoEdit {
        Self::no_edit("it is not written where it was found", at)
    }

    /// The node that `steps` lead to.
    fn find_node<'n>(self, mut node: &'n Node, steps: &[PathStep]) -> Result<&'n Node, NoEdit> {
        for step in steps {
            self.check_written(node)?;
            node = step.follow(node).ok_or_else(|| self.misplaced_error(node.span.start))?;
        }
        Ok(node)
    }

    /// Refuses a node that is written elsewhere and only referenced here.
    fn check_written(self, node: &Node) -> Result<(), NoEdit> {
        if self.0[node.span.clone()].starts_with('*') {
            let reason = "it is an alias of a YAML anchor";
            return Err(Self::no_edit(reason, node.span.start));
        }
        Ok(())
    }

    /// True if a node, or a part of it, is in flow style.
    fn is_flow(self, node: &Node) -> bool {
        self.0[node.span.start..].starts_with(['{', '['])
    }

    fn is_block(self, node: &Node) -> bool {
        matches!(node.data, NodeValue::List(_) | NodeValue::Map(_))
            && !self.is_flow(node)
            && !self.0[node.span.clone()].starts_with('*')
    }

    /// The byte after the colon of `key`.
    fn after_colon(self, key: &MappingKey) -> usize {
        let rest = &self.0[key.span.end..];
        key.span.end + rest.find(':').map_or(0, |at| at + 1)
    }

    /// True if a null is written as an empty value.
    fn is_omitted_null(self, key: &MappingKey, value: &Node) -> bool {
        value.data == NodeValue::Null
            && (value.span.start < key.span.end || self.0[value.span.clone()].trim().is_empty())
    }

    /// The end of a node's text, without comments after it.
    fn node_end(self, node: &Node) -> usize {
        let inner = match &node.data {
            NodeValue::Map(_) if self.is_block(node) => {
                written_entries(node).map(|(key, value)| self.entry_end(key, value)).max()
            }
            NodeValue::List(items) if self.is_block(node) => {
                items.iter().map(|item| self.node_end(item)).max()
            }
            _ => None,
        };
        inner.unwrap_or_else(|| node.span.start + self.0[node.span.clone()].trim_end().len())
    }

    fn entry_end(self, key: &MappingKey, value: &Node) -> usize {
        if self.is_omitted_null(key, value) { self.after_colon(key) } else { self.node_end(value) }
    }

    fn line_start(self, at: usize) -> usize {
        self.0[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The end of the line with the byte `at`, without its line feed.
    fn line_end(self, at: usize) -> usize {
        let end = self.0[at..].find('\n').map_or(self.0.len(), |length| at + length);
        if self.0[at..end].ends_with('\r') { end - 1 } else { end }
    }

    /// The number of characters before the byte `at` in its line.
    fn column(self, at: usize) -> usize {
        self.0[self.line_start(at)..at].trim_start_matches('\u{feff}').chars().count()
    }

    /// Inserts whole `lines` after the line with the byte `at`.
    fn insert_lines(self, at: usize, lines: &str) -> Changes {
        let end = self.line_end(at);
        let lines = format!("\n{}", lines.trim_end_matches('\n'));
        vec![(end..end, lines)]
    }

    fn put_value(self, map: &Node, keys: &[String], to: &New, order: &[&str]) -> Edited {
        self.check_written(map)?;
        let Some((name, inner_keys)) = keys.split_first() else {
            return Err(self.misplaced_error(map.span.start));
        };
        let written = written_entry(map, name);
        if let Some((_, value)) = written
            && !inner_keys.is_empty()
            && matches!(value.data, NodeValue::Map(_))
        {
            return self.put_value(value, inner_keys, to, &[]);
        }
        let keys = inner_keys.iter().rev();
        let nested = keys.fold(to.clone(), |node, name| New::Map(vec![Item::new(name, node)]));
        match written {
            None => self.insert_key(map, name, &nested, order),
            Some((key, value)) => self.replace_value(map, key, value, &nested),
        }
    }

    /// Replaces the value of `key` in `map`.
    fn replace_value(self, map: &Node, key: &MappingKey, value: &Node, to: &New) -> Edited {
        let colon = self.after_colon(key);
        let is_nothing = self.is_omitted_null(key, value);
        let before =
            if is_nothing { "" } else { self.0.get(colon..value.span.start).unwrap_or("&") };
        let old = if is_nothing { "" } else { &self.0[value.span.clone()] };
        if [before.trim_start(), old].iter().any(|text| text.starts_with(['&', '!'])) {
            return Err(Self::no_edit("it has a YAML anchor or a tag", value.span.start));
        }
        if self.is_flow(map) {
            let new = writer::inline(&to.to_json(), true);
            let range =
                if is_nothing { colon..colon } else { value.span.start..self.node_end(value) };
            let gap = if is_nothing { " " } else { "" };
            return Ok(vec![(range, format!("{gap}{new}"))]);
        }
        if let (New::Value(Json::Array(new)), true) = (to, self.is_block(value))
            && let Some(text) = self.edit_items(value, new)
        {
            return text;
        }
        let end = self.entry_end(key, value);
        let column = self.column(key.span.start);
        let lines = match to {
            New::Value(Json::String(new)) => self.quote_like_old(value, new),
            _ => None,
        };
        let lines = lines.unwrap_or_else(|| text_after_key(key, to, column));
        let is_one_line = !lines.contains('\n');
        let old = &self.0[colon.min(end)..end];
        if is_one_line && !is_nothing && !old.contains('\n') {
            return Ok(vec![(value.span.start..end, lines.trim_start().to_owned())]);
        }
        // A comment after the value, or after the mark of a block text, stays there.
        let header = self.line_end(colon);
        let (range_end, after_value) = if old.trim_start().starts_with(['|', '>']) {
            (end, &self.0[colon..header])
        } else {
            let until = self.line_end(end);
            (until, &self.0[end..until])
        };
        let comment = after_value
            .find(" #")
            .map_or("", |at| after_value[after_value[..at].trim_end().len()..].trim_end());
        let (first, rest) = lines.split_once('\n').map_or((&*lines, ""), |(a, b)| (a, b));
        let newline = if is_one_line { "" } else { "\n" };
        let new = format!("{first}{comment}{newline}{rest}");
        Ok(vec![(colon..range_end, new)])
    }

    /// A text with the quotes of the old value.
    fn quote_like_old(self, old: &Node, new: &str) -> Option<String> {
        let old = &self.0[old.span.clone()];
        if old.starts_with('"') {
            Some(format!(" {}", writer::double_quoted(new)))
        } else if old.starts_with('\'') && !new.contains(is_unsafe) {
            Some(format!(" '{}'", new.replace('\'', "''")))
        } else {
            None
        }
    }

    /// Changes a block list line by line if the remaining items keep their order, so that comments
    /// stay with their items.
    fn edit_items(self, list: &Node, new: &[Json]) -> Option<Edited> {
        let old: Vec<Json> = list.items().iter().map(Node::to_json).collect();
        let remaining: Vec<&Json> = old.iter().filter(|item| new.contains(item)).collect();
        let is_same =
            remaining.len() <= new.len() && remaining.iter().copied().eq(&new[..remaining.len()]);
        let last = list.items().last()?;
        let dash = self.dash_before(last.span.start);
        if remaining.is_empty() || !is_same {
            return None;
        }
        let Some(dash) = dash else {
            return Some(Err(Self::no_edit("it is not written line by line", last.span.start)));
        };
        let margin = " ".repeat(self.column(dash));
        let added_items = new[remaining.len()..].iter();
        let added: Vec<_> = added_items
            .map(|item| format!("\n{margin}- {}", writer::inline(item, false)))
            .collect();
        let at = self.line_end(self.node_end(last));
        let mut ranges = vec![(at..at, added.concat())];
        for (item, _) in list.items().iter().zip(&old).filter(|(_, old)| !new.contains(old)) {
            match self.item_lines(list, item.span.start..self.node_end(item)) {
                // Remove the preceding line feed, so that text appended to the last line stays
                // separate.
                Ok(lines) => ranges.push((lines, String::new())),
                Err(failure) => return Some(Err(failure)),
            }
        }
        Some(Ok(ranges))
    }

    /// Adds a new key to `map`.
    fn insert_key(self, map: &Node, name: &str, to: &New, order: &[&str]) -> Edited {
        if self.is_flow(map) {
            let entry =
                format!("{}: {}", writer::scalar(name, true), writer::inline(&to.to_json(), true));
            let last = written_entries(map).map(|(key, value)| self.entry_end(key, value)).max();
            return Ok(self.insert_in_brackets(map, last, &entry));
        }
        let Some((first, _)) = written_entries(map).next() else {
            return Err(Self::no_edit("all of it is merged in from a YAML anchor", map.span.start));
        };
        let positions: HashMap<&str, usize> =
            order.iter().enumerate().map(|(position, name)| (*name, position)).collect();
        let new = positions.get(name);
        let before = written_entries(map).filter(|(key, _)| {
            let position = positions.get(&*key.name);
            position.is_none_or(|position| new.is_none_or(|new| position < new))
        });
        let before = before.max_by_key(|(key, _)| key.span.start);
        let before = before.or_else(|| written_entries(map).max_by_key(|(key, _)| key.span.start));
        let end = before.map_or(first.span.end, |(key, value)| self.entry_end(key, value));
        let item = Item::new(name, to.clone());
        Ok(self.insert_lines(end, &writer::item(&item, self.column(first.span.start))))
    }

    /// Adds `new` inside the brackets of `node`, after its last part, which ends at `last`.
    fn insert_in_brackets(self, node: &Node, last: Option<usize>, new: &str) -> Changes {
        let (at, new) = match last {
            None => (node.span.start + 1, new.to_owned()),
            Some(last) => {
                let rest = &self.0[last..];
                if rest.trim_start().starts_with(',') {
                    (last + rest.find(',').map_or(0, |comma| comma + 1), format!(" {new}"))
                } else {
                    (last, format!(", {new}"))
                }
            }
        };
        vec![(at..at, new)]
    }

    /// Appends an entry to a list.
    fn append_entry(
        self,
        map: &Node,
        key: &str,
        entry: &[Item],
        about: Option<&str>,
        order: &[&str],
    ) -> Edited {
        self.check_written(map)?;
        let written = written_entry(map, key);
        let last = written.and_then(|(_, list)| Some((list, list.items().last()?)));
        let Some((list, last)) = last else {
            let new = New::List(vec![(entry.to_vec(), about.map(str::to_owned))]);
            return match written {
                None => self.insert_key(map, key, &new, order),
                Some((key, value)) => self.replace_value(map, key, value, &new),
            };
        };
        self.check_written(list)?;
        if self.is_flow(list) {
            let entry = writer::inline(&writer::mapping(entry), true);
            return Ok(self.insert_in_brackets(list, Some(self.node_end(last)), &entry));
        }
        let dash = self.dash_before(last.span.start);
        let dash =
            dash.ok_or_else(|| Self::no_edit("it is not written line by line", last.span.start))?;
        let lines = writer::entry(entry, about, self.column(dash));
        Ok(self.insert_lines(self.node_end(last), &lines))
    }

    /// Removes an item from a list, or an entry from a mapping.
    fn remove_item(self, map: &Node, key: &MappingKey, list: &Node, at: usize) -> Edited {
        self.check_written(list)?;
        let item =
            self.item_range(list, at).ok_or_else(|| self.misplaced_error(list.span.start))?;
        let next = self.item_range(list, at + 1);
        let before = at.checked_sub(1).and_then(|at| self.item_range(list, at));
        if !self.is_flow(list) && (next.is_some() || before.is_some()) {
            return Ok(vec![(self.item_lines(list, item)?, String::new())]);
        }
        let range = match (next, before) {
            (Some(next), _) => item.start..next.start,
            (None, Some(before)) => before.end..item.end,
            (None, None) => return self.replace_value(map, key, list, &New::List(Vec::new())),
        };
        Ok(vec![(range, String::new())])
    }

    /// The range of an item of a list, or of an entry of a mapping.
    fn item_range(self, list: &Node, at: usize) -> Option<Range<usize>> {
        let item = list.items().get(at).map(|item| item.span.start..self.node_end(item));
        item.or_else(|| {
            let (key, value) = list.entries().get(at)?;
            Some(key.span.start..self.entry_end(key, value))
        })
    }

    /// The lines of an `item` of a list or mapping, from the line feed before them.
    fn item_lines(self, list: &Node, item: Range<usize>) -> Result<Range<usize>, NoEdit> {
        let is_mapping = matches!(list.data, NodeValue::Map(_));
        let start = if is_mapping { Some(item.start) } else { self.dash_before(item.start) };
        let before = start.and_then(|start| self.0[..self.line_start(start)].strip_suffix('\n'));
        let Some(before) = before else {
            return Err(Self::no_edit("it is not written line by line", item.start));
        };
        let before = before.strip_suffix('\r').unwrap_or(before);
        Ok(before.len()..self.line_end(item.end))
    }

    /// The dash of the item at the byte `start`, if it is the first thing in its line.
    fn dash_before(self, start: usize) -> Option<usize> {
        let before = self.0[..start].trim_end();
        let dash = before.strip_suffix('-')?.len();
        self.0[self.line_start(dash)..dash].trim().is_empty().then_some(dash)
    }
}

/// The text to write after the colon of `key` for the value `to`, without the last line feed.
fn text_after_key(key: &MappingKey, to: &New, column: usize) -> String {
    let lines = writer::item(&Item::new(&*key.name, to.clone()), column);
    let before = column + writer::scalar(&key.name, false).len() + 1;
    lines[before..].trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests;
