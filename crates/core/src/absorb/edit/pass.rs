//! Applies many edits to a text and reads it as rarely as possible.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
};

use super::{Changes, NoEdit, Pointer, TextEdit, written_entry};
use crate::yaml::{self, Parsed};

/// Applies all `edits` to `text`, each to the result of those before it. Edits with separate
/// changes share one pass, which reads the text once. `refuse` is called for an edit that fails,
/// with the text at that point.
pub(in crate::absorb) fn apply_all(
    mut text: String,
    edits: Vec<(usize, TextEdit)>,
    refuse: &mut dyn FnMut(usize, &NoEdit, &str),
) -> String {
    let mut remaining = edits;
    while !remaining.is_empty() {
        let parsed = yaml::parse(&text);
        let mut pass = Pass::default();
        let mut postponed: Vec<(usize, TextEdit)> = Vec::new();
        for (number, edit) in mem::take(&mut remaining) {
            // Positions in lists assume that all earlier edits are made.
            if !postponed.is_empty() && !matches!(edit, TextEdit::Put { .. }) {
                postponed.push((number, edit));
                continue;
            }
            match edit.changes(&text, &parsed) {
                Err(failure) => refuse(number, &failure, &text),
                Ok(changes) if pass.accepts(&edit, &changes, &parsed) => {
                    pass.add(&edit, changes, &parsed);
                }
                Ok(_) => postponed.push((number, edit)),
            }
        }
        text = pass.apply(&text);
        remaining = postponed;
    }
    text
}

/// Changes of a text that do not touch each other.
#[derive(Default)]
pub(super) struct Pass {
    /// The replacement texts, by start, end and order of addition.
    changes: BTreeMap<(usize, usize, usize), String>,
    variant: Option<mem::Discriminant<TextEdit>>,
    /// How many items each list loses.
    removed_counts: HashMap<(usize, String), usize>,
    /// The list that an insertion at a position appends to.
    appended_lists: HashMap<usize, (Pointer, String)>,
}

impl Pass {
    /// True if the `changes` of `edit` can be made in this pass, together with those before.
    fn accepts(&self, edit: &TextEdit, changes: &Changes, parsed: &Parsed) -> bool {
        if self.variant.is_some_and(|variant| variant != mem::discriminant(edit)) {
            return false;
        }
        match edit {
            TextEdit::Push { at, key, .. }
                if let [(range, _)] = &changes[..]
                    && self.appended_lists.get(&range.start)
                        == Some(&(at.clone(), key.clone())) =>
            {
                true
            }
            TextEdit::Remove { at, key, .. } => {
                let items = item_count(parsed, at, key);
                let removed = self.removed_counts.get(&(at.document, key.clone())).copied();
                removed.is_none_or(|removed| removed + 2 <= items)
                    && self.is_disjoint(changes, true)
            }
            _ => self.is_disjoint(changes, false),
        }
    }

    /// True if `changes` overlap no accepted change. They may touch one only if `can_touch`.
    fn is_disjoint(&self, changes: &Changes, can_touch: bool) -> bool {
        let gap = usize::from(!can_touch);
        changes.iter().all(|(range, _)| {
            let before = self.changes.range(..(range.start, usize::MAX, usize::MAX)).next_back();
            let after = self.changes.range((range.start, 0, 0)..).next();
            before.is_none_or(|((_, end, _), _)| end + gap <= range.start)
                && after.is_none_or(|((start, ..), _)| range.end + gap <= *start)
        })
    }

    pub(super) fn add(&mut self, edit: &TextEdit, changes: Changes, parsed: &Parsed) {
        self.variant = Some(mem::discriminant(edit));
        match (edit, &changes[..]) {
            (TextEdit::Remove { at, key, .. }, _) => {
                *self.removed_counts.entry((at.document, key.clone())).or_default() += 1;
            }
            // Appends to a list that exists.
            (TextEdit::Push { at, key, .. }, [(range, _)])
                if range.is_empty() && item_count(parsed, at, key) > 0 =>
            {
                self.appended_lists.insert(range.start, (at.clone(), key.clone()));
            }
            _ => {}
        }
        for (range, new) in changes {
            self.changes.insert((range.start, range.end, self.changes.len()), new);
        }
    }

    /// Applies the changes to `text`, with its line endings.
    pub(super) fn apply(self, text: &str) -> String {
        let has_crlf = text.contains("\r\n");
        let (mut changed, mut copied_end) = (String::with_capacity(text.len()), 0);
        for ((start, end, _), new) in self.changes {
            changed.push_str(&text[copied_end..start]);
            changed.push_str(&if has_crlf { new.replace('\n', "\r\n") } else { new });
            copied_end = end;
        }
        changed + &text[copied_end..]
    }
}

/// The number of items in the list with `key` at `at`.
fn item_count(parsed: &Parsed, at: &Pointer, key: &str) -> usize {
    let document = parsed.documents.get(at.document).filter(|_| at.steps.is_empty());
    document
        .and_then(|node| written_entry(node, key))
        .map_or(0, |(_, list)| list.children().count())
}
