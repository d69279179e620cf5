//! A page of limited size, made of whole elements; counts those that do not fit.

/// Room reserved for the words about what does not fit.
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
    /// What is left after `text`, if it fits.
    fn minus(self, text: &str) -> Option<Self> {
        Some(Self {
            bytes: self.bytes.checked_sub(text.len())?,
            lines: self.lines.checked_sub(text.matches('\n').count())?,
        })
    }
}

/// A page that is being written.
pub(super) struct MarkdownPage {
    out: String,
    /// The room left for elements.
    room: Room,
    /// True if something did not fit.
    pub(super) is_cut: bool,
    /// The titles of folds of which nothing fits.
    pub(super) without: Vec<String>,
    /// How many elements it has.
    elements: usize,
}

impl MarkdownPage {
    /// An empty page with the limit `budget`.
    pub(super) const fn new(budget: Room) -> Self {
        let bytes = budget.bytes.saturating_sub(RESERVED.bytes);
        let lines = budget.lines.saturating_sub(RESERVED.lines);
        let room = Room { bytes, lines };
        Self { out: String::new(), room, is_cut: false, without: Vec::new(), elements: 0 }
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// Adds an element if it fits.
    pub(super) fn put(&mut self, element: &str) -> bool {
        let room = self.room.minus(element);
        let fits = room.is_some();
        if let Some(room) = room {
            self.room = room;
            self.out.push_str(element);
            self.elements += 1;
        }
        self.is_cut |= !fits;
        fits
    }

    /// Adds `head` and what `draw` adds, or nothing if no element after `head` fits.
    pub(super) fn put_section(&mut self, head: &str, draw: impl FnOnce(&mut Self)) -> bool {
        let (length, room) = (self.out.len(), self.room);
        if self.put(head) {
            let elements = self.elements;
            draw(self);
            if self.elements > elements {
                return true;
            }
        }
        self.out.truncate(length);
        self.room = room;
        false
    }

    /// Adds our own words about what does not fit, for which room is reserved.
    pub(super) fn append(&mut self, words: &str) {
        self.out.push_str(words);
    }

    /// Adds as many of `elements` as fit, between `head` and `tail`, or nothing if not even one
    /// fits. Returns how many did not fit.
    pub(super) fn list(
        &mut self,
        head: &str,
        elements: impl ExactSizeIterator<Item = String>,
        tail: &str,
    ) -> usize {
        let (all, mut shown) = (elements.len(), 0);
        for element in elements {
            let (head, tail) = if shown == 0 { (head, tail) } else { ("", "") };
            let text = head.to_owned() + &element;
            let Some(room) = self.room.minus(&text).and_then(|room| room.minus(tail)) else {
                self.is_cut = true;
                break;
            };
            self.room = room;
            self.out.push_str(&text);
            shown += 1;
            self.elements += 1;
        }
        if shown > 0 {
            self.out.push_str(tail);
        }
        all - shown
    }
}
