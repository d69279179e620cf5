//! A page of limited size, made of whole elements; counts those that do not fit.

/// The room reserved for the sentences about omitted elements.
const RESERVED: Room = Room { bytes: 5_000, lines: 30 };

/// An amount of room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Bytes in UTF-8.
    pub(super) bytes: usize,
    /// Line feeds.
    pub(super) lines: usize,
}

impl Room {
    /// The room that remains after `text`; `None` if it does not fit.
    fn after_text(self, text: &str) -> Option<Self> {
        Some(Self {
            bytes: self.bytes.checked_sub(text.len())?,
            lines: self.lines.checked_sub(text.matches('\n').count())?,
        })
    }
}

/// A page that is being written.
pub(super) struct MarkdownPage {
    text: String,
    /// The room left for elements.
    room: Room,
    /// True if something did not fit.
    pub(super) is_cut: bool,
    /// The titles of folds of which nothing fits.
    pub(super) omitted_titles: Vec<String>,
    /// How many elements it has.
    elements: usize,
}

impl MarkdownPage {
    /// An empty page with the limit `budget`.
    pub(super) const fn new(budget: Room) -> Self {
        let bytes = budget.bytes.saturating_sub(RESERVED.bytes);
        let lines = budget.lines.saturating_sub(RESERVED.lines);
        let room = Room { bytes, lines };
        Self { text: String::new(), room, is_cut: false, omitted_titles: Vec::new(), elements: 0 }
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Adds an element if it fits.
    pub(super) fn put(&mut self, element: &str) -> bool {
        let room = self.room.after_text(element);
        let is_added = room.is_some();
        if let Some(room) = room {
            self.room = room;
            self.text.push_str(element);
            self.elements += 1;
        }
        self.is_cut |= !is_added;
        is_added
    }

    /// Adds `head` and what `draw` adds, or nothing if no element after `head` fits.
    pub(super) fn put_section(&mut self, head: &str, draw: impl FnOnce(&mut Self)) -> bool {
        let (length, room) = (self.text.len(), self.room);
        if self.put(head) {
            let elements = self.elements;
            draw(self);
            if self.elements > elements {
                return true;
            }
        }
        self.text.truncate(length);
        self.room = room;
        false
    }

    /// Adds a sentence about omitted elements, for which room is reserved.
    pub(super) fn append(&mut self, words: &str) {
        self.text.push_str(words);
    }

    /// Adds as many of `elements` as fit, between `head` and `tail`, or nothing if not even one
    /// fits. Returns how many did not fit.
    pub(super) fn list(
        &mut self,
        head: &str,
        elements: impl ExactSizeIterator<Item = String>,
        tail: &str,
    ) -> usize {
        let (element_count, mut shown) = (elements.len(), 0);
        for element in elements {
            let (head, tail) = if shown == 0 { (head, tail) } else { ("", "") };
            let text = head.to_owned() + &element;
            let Some(room) = self.room.after_text(&text).and_then(|room| room.after_text(tail))
            else {
                self.is_cut = true;
                break;
            };
            self.room = room;
            self.text.push_str(&text);
            shown += 1;
            self.elements += 1;
        }
        if shown > 0 {
            self.text.push_str(tail);
        }
        element_count - shown
    }
}
