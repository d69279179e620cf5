//! A page of limited size. An element is added as a whole or not at all. Omitted elements are
//! counted.

use super::escape::MarkdownEscaper;

/// The part of the budget that is reserved for sentences about omitted elements.
const RESERVED: PageBudget = PageBudget { bytes: 5_000, lines: 30 };

/// The maximum size of a text: of a page, or of the elements that can still be added.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageBudget {
    /// The number of bytes in UTF-8.
    pub(super) bytes: usize,
    /// The number of line feeds.
    pub(super) lines: usize,
}

impl PageBudget {
    /// The budget that remains after `text`; `None` if `text` does not fit.
    fn remaining_after(self, text: &str) -> Option<Self> {
        Some(Self {
            bytes: self.bytes.checked_sub(text.len())?,
            lines: self.lines.checked_sub(text.matches('\n').count())?,
        })
    }
}

/// A page that is being written.
pub(super) struct MarkdownPage<'s> {
    /// Escapes text from manifests and the service.
    pub(super) escaper: MarkdownEscaper<'s>,
    pub(super) text: String,
    /// The remaining budget for elements.
    room: PageBudget,
    /// True if something did not fit.
    pub(super) is_cut: bool,
    /// The titles of collapsible blocks that were omitted because no element of them fitted.
    pub(super) omitted_titles: Vec<String>,
    /// The number of elements on the page.
    element_count: usize,
}

impl<'s> MarkdownPage<'s> {
    /// An empty page with this limit.
    pub(super) const fn new(limit: PageBudget, escaper: MarkdownEscaper<'s>) -> Self {
        let bytes = limit.bytes.saturating_sub(RESERVED.bytes);
        let lines = limit.lines.saturating_sub(RESERVED.lines);
        let room = PageBudget { bytes, lines };
        Self {
            escaper,
            text: String::new(),
            room,
            is_cut: false,
            omitted_titles: Vec::new(),
            element_count: 0,
        }
    }

    /// Adds an element if it fits. Returns true if it was added.
    pub(super) fn try_add(&mut self, element: &str) -> bool {
        let room = self.room.remaining_after(element);
        let is_added = room.is_some();
        if let Some(room) = room {
            self.room = room;
            self.text.push_str(element);
            self.element_count += 1;
        }
        self.is_cut |= !is_added;
        is_added
    }

    /// Adds `head`, then calls `add_elements`. Removes `head` again if no element after it fits.
    /// Returns true if `head` stays.
    pub(super) fn try_add_section(
        &mut self,
        head: &str,
        add_elements: impl FnOnce(&mut Self),
    ) -> bool {
        let (length, room) = (self.text.len(), self.room);
        if self.try_add(head) {
            let old_count = self.element_count;
            add_elements(self);
            if self.element_count > old_count {
                return true;
            }
        }
        self.text.truncate(length);
        self.room = room;
        false
    }

    /// Adds a sentence about omitted elements, which uses the reserved part of the budget.
    pub(super) fn append_reserved(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds `head`, as many of `elements` as fit, and an empty line. Adds nothing if no element
    /// fits. Returns the number of elements that did not fit.
    pub(super) fn add_list(
        &mut self,
        head: &str,
        elements: impl ExactSizeIterator<Item = String>,
    ) -> usize {
        let (total_count, mut shown_count) = (elements.len(), 0);
        for element in elements {
            let (head, tail) = if shown_count == 0 { (head, "\n") } else { ("", "") };
            let text = head.to_owned() + &element;
            let Some(room) =
                self.room.remaining_after(&text).and_then(|room| room.remaining_after(tail))
            else {
                self.is_cut = true;
                break;
            };
            self.room = room;
            self.text.push_str(&text);
            shown_count += 1;
            self.element_count += 1;
        }
        if shown_count > 0 {
            self.text.push('\n');
        }
        total_count - shown_count
    }
}
