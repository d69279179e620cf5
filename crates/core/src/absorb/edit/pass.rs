//! Applies many edits to a text, with as few parses as possible.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
};

use super::{EditFailure, Pointer, TextChanges, TextEdit, written_entry};
use crate::yaml::{self, ParsedYaml};

/// Applies all `edits` to `text`, each to the result of the previous edits. Edits whose changes do
/// not overlap share one pass, which parses the text once. If an edit fails, calls `refuse` with
/// the number of the edit, the failure, and the text before the edit.
pub(in crate::absorb) fn apply_all(
    mut text: String,
    edits: Vec<(usize, TextEdit)>,
    refuse: &mut dyn FnMut(usize, &EditFailure, &str),
) -> String {
    let mut remaining_edits = edits;
    while !remaining_edits.is_empty() {
        let parsed = yaml::parse(&text);
        let mut pass = EditPass::default();
        let mut later_edits: Vec<(usize, TextEdit)> = Vec::new();
        for (number, edit) in mem::take(&mut remaining_edits) {
            // Positions in lists are only valid after all earlier edits.
            if !later_edits.is_empty() && !matches!(edit, TextEdit::Put { .. }) {
                later_edits.push((number, edit));
                continue;
            }
            match edit.changes(&text, &parsed) {
                Err(failure) => refuse(number, &failure, &text),
                Ok(changes) if pass.accepts(&edit, &changes, &parsed) => {
                    pass.add(&edit, changes, &parsed);
                }
                Ok(_) => later_edits.push((number, edit)),
            }
        }
        text = pass.apply(&text);
        remaining_edits = later_edits;
    }
    text
}

/// Changes of a text that can be made in one pass, because they do not overlap.
#[derive(Default)]
pub(super) struct EditPass {
    /// The replacement texts, by start, end and order of addition.
    changes: BTreeMap<(usize, usize, usize), String>,
    edit_kind: Option<mem::Discriminant<TextEdit>>,
    /// The number of items removed from each list, by document and key.
    removed_counts: HashMap<(usize, String), usize>,
    /// The list that each insertion appends to, by position in the text.
    appended_lists: HashMap<usize, (Pointer, String)>,
}

impl EditPass {
    /// True if the `changes` of `edit` can be made in this pass, together with the accepted
    /// changes.
    fn accepts(&self, edit: &TextEdit, changes: &TextChanges, parsed: &ParsedYaml) -> bool {
        if self.edit_kind.is_some_and(|variant| variant != mem::discriminant(edit)) {
            return false;
        }
        match edit {
            TextEdit::Push { target, key, .. }
                if let [(range, _)] = &changes[..]
                    && self.appended_lists.get(&range.start)
                        == Some(&(target.clone(), key.clone())) =>
            {
                true
            }
            TextEdit::Remove { target, key, .. } => {
                let items = item_count(parsed, target, key);
                let removed_count =
                    self.removed_counts.get(&(target.document, key.clone())).copied();
                removed_count.is_none_or(|removed| removed + 2 <= items)
                    && self.is_disjoint(changes, true)
            }
            _ => self.is_disjoint(changes, false),
        }
    }

    /// True if `changes` overlap no accepted change. If `can_touch` is false, `changes` must also
    /// not touch an accepted change.
    fn is_disjoint(&self, changes: &TextChanges, can_touch: bool) -> bool {
        let gap = usize::from(!can_touch);
        changes.iter().all(|(range, _)| {
            let previous_change =
                self.changes.range(..(range.start, usize::MAX, usize::MAX)).next_back();
            let next_change = self.changes.range((range.start, 0, 0)..).next();
            previous_change.is_none_or(|((_, end, _), _)| end + gap <= range.start)
                && next_change.is_none_or(|((start, ..), _)| range.end + gap <= *start)
        })
    }

    pub(super) fn add(&mut self, edit: &TextEdit, changes: TextChanges, parsed: &ParsedYaml) {
        self.edit_kind = Some(mem::discriminant(edit));
        match (edit, &changes[..]) {
            (TextEdit::Remove { target, key, .. }, _) => {
                *self.removed_counts.entry((target.document, key.clone())).or_default() += 1;
            }
            // The edit appends to a list that has items.
            (TextEdit::Push { target, key, .. }, [(range, _)])
                if range.is_empty() && item_count(parsed, target, key) > 0 =>
            {
                self.appended_lists.insert(range.start, (target.clone(), key.clone()));
            }
            _ => {}
        }
        for (range, replacement) in changes {
            self.changes.insert((range.start, range.end, self.changes.len()), replacement);
        }
    }

    /// Applies the changes to `text`. New lines get the line endings of `text`.
    pub(super) fn apply(self, text: &str) -> String {
        let has_crlf = text.contains("\r\n");
        let (mut result, mut copied_end) = (String::with_capacity(text.len()), 0);
        for ((start, end, _), replacement) in self.changes {
            let crlf_replacement = has_crlf.then(|| replacement.replace('\n', "\r\n"));
            result += &text[copied_end..start];
            result += &crlf_replacement.unwrap_or(replacement);
            copied_end = end;
        }
        result + &text[copied_end..]
    }
}

/// The number of items in the list with `key` in `mapping`.
fn item_count(parsed: &ParsedYaml, mapping: &Pointer, key: &str) -> usize {
    let document = parsed.documents.get(mapping.document).filter(|_| mapping.steps.is_empty());
    document
        .and_then(|node| written_entry(node, key))
        .map_or(0, |(_, list)| list.children().count())
}
