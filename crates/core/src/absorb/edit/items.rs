//! Adds, changes and removes the items of lists, and removes the entries of mappings.

use std::ops::Range;

use super::{EditFailure, EditResult, OutputNode, TextChanges, YamlText, written_entry};
use crate::{
    value::Json,
    yaml::write::{self as writer, MapItem},
    yaml::{MappingKey, Node, NodeValue},
};

impl YamlText<'_> {
    /// The changes that replace the items of a block list by `new_items` and keep the comments of
    /// unchanged items. `None` if no old item remains, or if the order of the remaining items
    /// changes.
    pub(super) fn edit_items(
        self,
        list: &Node,
        new_items: &[Json],
    ) -> Result<Option<TextChanges>, EditFailure> {
        let old_items: Vec<Json> = list.items().iter().map(Node::to_json).collect();
        let common_items: Vec<&Json> =
            old_items.iter().filter(|item| new_items.contains(item)).collect();
        let keeps_order = common_items.len() <= new_items.len()
            && common_items.iter().copied().eq(&new_items[..common_items.len()]);
        let last_item = list.items().last().filter(|_| keeps_order && !common_items.is_empty());
        let Some(last_item) = last_item else { return Ok(None) };
        let indentation = " ".repeat(self.column(self.find_dash_before(last_item.span.start)?));
        let added_items = new_items[common_items.len()..].iter();
        let added_texts: Vec<_> = added_items
            .map(|item| format!("\n{indentation}- {}", writer::format_inline(item, false)))
            .collect();
        let list_end = self.line_end(self.node_end(last_item));
        let mut ranges = vec![(list_end..list_end, added_texts.concat())];
        for (item, _) in
            list.items().iter().zip(&old_items).filter(|(_, old)| !new_items.contains(old))
        {
            // Remove the line feed before the item instead of the line feed after it, because new
            // items are inserted after the last line.
            let lines = self.item_lines(list, item.span.start..self.node_end(item))?;
            ranges.push((lines, String::new()));
        }
        Ok(Some(ranges))
    }

    /// Appends an entry to a list.
    pub(super) fn append_entry(
        self,
        map: &Node,
        key: &str,
        entry: &[MapItem],
        comment: Option<&str>,
        order: &[&str],
    ) -> EditResult {
        self.reject_alias(map)?;
        let last = written_entry(map, key).and_then(|(_, list)| Some((list, list.items().last()?)));
        let Some((list, last)) = last else {
            let new_list = OutputNode::List(vec![(entry.to_vec(), comment.map(str::to_owned))]);
            return self.put_value(map, &[key.to_owned()], &new_list, order);
        };
        self.reject_alias(list)?;
        if self.is_flow(list) {
            let entry = writer::format_inline(&writer::mapping(entry), true);
            return Ok(self.insert_in_brackets(list, Some(self.node_end(last)), &entry));
        }
        let column = self.column(self.find_dash_before(last.span.start)?);
        let lines = writer::render_entry(entry, comment, column);
        Ok(self.insert_lines(self.node_end(last), &lines))
    }

    /// Removes an item from a list, or an entry from a mapping.
    pub(super) fn remove_item(
        self,
        map: &Node,
        key: &MappingKey,
        list: &Node,
        index: usize,
    ) -> EditResult {
        self.reject_alias(list)?;
        let item =
            self.item_range(list, index).ok_or_else(|| self.misplaced_failure(list.span.start))?;
        let next_range = self.item_range(list, index + 1);
        let previous_range =
            index.checked_sub(1).and_then(|previous_index| self.item_range(list, previous_index));
        if !self.is_flow(list) && (next_range.is_some() || previous_range.is_some()) {
            return Ok(vec![(self.item_lines(list, item)?, String::new())]);
        }
        let range = match (next_range, previous_range) {
            (Some(next), _) => item.start..next.start,
            (None, Some(previous)) => previous.end..item.end,
            (None, None) => {
                return self.replace_value(map, key, list, &OutputNode::List(Vec::new()));
            }
        };
        Ok(vec![(range, String::new())])
    }

    /// The range of an item of a list, or of an entry of a mapping.
    fn item_range(self, list: &Node, index: usize) -> Option<Range<usize>> {
        let item = list.items().get(index).map(|item| item.span.start..self.node_end(item));
        item.or_else(|| {
            let (key, value) = list.entries().get(index)?;
            Some(key.span.start..self.entry_end(key, value))
        })
    }

    /// The range of the lines of an `item` of a list or mapping, with the line feed before them.
    fn item_lines(self, list: &Node, item: Range<usize>) -> Result<Range<usize>, EditFailure> {
        let is_mapping = matches!(list.data, NodeValue::Map(_));
        let start = if is_mapping { item.start } else { self.find_dash_before(item.start)? };
        let text_before = self.0[..self.line_start(start)].strip_suffix('\n');
        let text_before = text_before.ok_or_else(|| Self::shared_line_failure(item.start))?;
        let text_before = text_before.strip_suffix('\r').unwrap_or(text_before);
        Ok(text_before.len()..self.line_end(item.end))
    }

    /// The position of the dash before the item at the byte `start`. Only spaces may be before the
    /// dash in its line.
    fn find_dash_before(self, start: usize) -> Result<usize, EditFailure> {
        let dash = self.0[..start].trim_end().strip_suffix('-').map(str::len);
        dash.filter(|dash| self.0[self.line_start(*dash)..*dash].trim().is_empty())
            .ok_or_else(|| Self::shared_line_failure(start))
    }

    /// The failure for an item at the byte `offset` that shares its first line with other text.
    fn shared_line_failure(offset: usize) -> EditFailure {
        Self::new_failure("it shares a line with other text", offset)
    }
}
