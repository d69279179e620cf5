//! A page of limited size. An element is added as a whole or not at all. Omitted elements are
//! counted.

use super::escape::MarkdownEscaper;

/// The part of the budget that is reserved for sentences about omitted elements.
const RESERVED_BUDGET: PageBudget = PageBudget { bytes: 5_000, lines: 30 };

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
    remaining_budget: PageBudget,
    /// True if an element did not fit.
    pub(super) has_omissions: bool,
    /// The titles of collapsible blocks that were omitted because no element of them fitted.
    pub(super) omitted_titles: Vec<String>,
    /// The number of elements on the page.
    element_count: usize,
}

impl<'s> MarkdownPage<'s> {
    /// An empty page with this limit.
    pub(super) const fn new(limit: PageBudget, escaper: MarkdownEscaper<'s>) -> Self {
        let bytes = limit.bytes.saturating_sub(RESERVED_BUDGET.bytes);
        let lines = limit.lines.saturating_sub(RESERVED_BUDGET.lines);
        let room = PageBudget { bytes, lines };
        Self {
            escaper,
            text: String::new(),
            remaining_budget: room,
            has_omissions: false,
            omitted_titles: Vec::new(),
            element_count: 0,
        }
    }

    /// Adds an element if it fits. Returns true if it was added.
    pub(super) fn try_add(&mut self, element: &str) -> bool {
        let room = self.remaining_budget.remaining_after(element);
        let is_added = room.is_some();
        if let Some(room) = room {
            self.remaining_budget = room;
            self.text.push_str(element);
            self.element_count += 1;
        }
        self.has_omissions |= !is_added;
        is_added
    }

    /// Adds `head`, then calls `add_elements`. Removes `head` again if no element after it fits.
    /// Returns true if `head` stays.
    pub(super) fn try_add_section(
        &mut self,
        head: &str,
        add_elements: impl FnOnce(&mut Self),
    ) -> bool {
        let (length, old_budget) = (self.text.len(), self.remaining_budget);
        if self.try_add(head) {
            let old_count = self.element_count;
            add_elements(self);
            if self.element_count > old_count {
                return true;
            }
        }
        self.text.truncate(length);
        self.remaining_budget = old_budget;
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
            let Some(budget_after_text) = self
                .remaining_budget
                .remaining_after(&text)
                .and_then(|room| room.remaining_after(tail))
            else {
                self.has_omissions = true;
                break;
            };
            self.remaining_budget = budget_after_text;
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
