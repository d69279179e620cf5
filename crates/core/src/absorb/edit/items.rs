//! Adds, changes and removes the items of lists, and removes the entries of mappings.

use std::ops::Range;

use super::{Changes, EditFailure, EditResult, New, YamlText, written_entry};
use crate::{
    value::Json,
    yaml::write::{self as writer, Item},
    yaml::{MappingKey, Node, NodeValue},
};

impl YamlText<'_> {
    /// The changes that edit a block list line by line, so that comments stay with their items. `None`
    /// if no item remains, or if the remaining ones change their order.
    pub(super) fn edit_items(
        self,
        list: &Node,
        new: &[Json],
    ) -> Result<Option<Changes>, EditFailure> {
        let old: Vec<Json> = list.items().iter().map(Node::to_json).collect();
        let remaining: Vec<&Json> = old.iter().filter(|item| new.contains(item)).collect();
        let keeps_order =
            remaining.len() <= new.len() && remaining.iter().copied().eq(&new[..remaining.len()]);
        let last = list.items().last().filter(|_| keeps_order && !remaining.is_empty());
        let Some(last) = last else { return Ok(None) };
        let margin = " ".repeat(self.column(self.dash_before(last.span.start)?));
        let added_items = new[remaining.len()..].iter();
        let added: Vec<_> = added_items
            .map(|item| format!("\n{margin}- {}", writer::inline(item, false)))
            .collect();
        let at = self.line_end(self.node_end(last));
        let mut ranges = vec![(at..at, added.concat())];
        for (item, _) in list.items().iter().zip(&old).filter(|(_, old)| !new.contains(old)) {
            // Remove the preceding line feed, so that text appended to the last line stays separate.
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
        entry: &[Item],
        comment: Option<&str>,
        order: &[&str],
    ) -> EditResult {
        self.check_written(map)?;
        let existing = written_entry(map, key);
        let last = existing.and_then(|(_, list)| Some((list, list.items().last()?)));
        let Some((list, last)) = last else {
            let new = New::List(vec![(entry.to_vec(), comment.map(str::to_owned))]);
            return match existing {
                None => self.insert_key(map, key, &new, order),
                Some((key, value)) => self.replace_value(map, key, value, &new),
            };
        };
        self.check_written(list)?;
        if self.is_flow(list) {
            let entry = writer::inline(&writer::mapping(entry), true);
            return Ok(self.insert_in_brackets(list, Some(self.node_end(last)), &entry));
        }
        let column = self.column(self.dash_before(last.span.start)?);
        let lines = writer::entry(entry, comment, column);
        Ok(self.insert_lines(self.node_end(last), &lines))
    }

    /// Removes an item from a list, or an entry from a mapping.
    pub(super) fn remove_item(
        self,
        map: &Node,
        key: &MappingKey,
        list: &Node,
        at: usize,
    ) -> EditResult {
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
    fn item_lines(self, list: &Node, item: Range<usize>) -> Result<Range<usize>, EditFailure> {
        let is_mapping = matches!(list.data, NodeValue::Map(_));
        let start = if is_mapping { item.start } else { self.dash_before(item.start)? };
        let before = self.0[..self.line_start(start)].strip_suffix('\n');
        let before = before.ok_or_else(|| Self::shared_line_failure(item.start))?;
        let before = before.strip_suffix('\r').unwrap_or(before);
        Ok(before.len()..self.line_end(item.end))
    }

    /// The position of the dash before the item at the byte `start`. The dash must be the first character
    /// in its line except for spaces.
    fn dash_before(self, start: usize) -> Result<usize, EditFailure> {
        let dash = self.0[..start].trim_end().strip_suffix('-').map(str::len);
        dash.filter(|dash| self.0[self.line_start(*dash)..*dash].trim().is_empty())
            .ok_or_else(|| Self::shared_line_failure(start))
    }

    /// The failure for an item at the byte `at` that shares its first line with other text.
    fn shared_line_failure(at: usize) -> EditFailure {
        Self::new_failure("it is not written line by line", at)
    }
}
