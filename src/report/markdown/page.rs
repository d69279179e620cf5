//! A page of bounded size: it is made of whole elements, and says how many did not fit.

/// What is kept for the words about what did not fit.
const RESERVED: usize = 5_000;

/// A page under construction.
pub(super) struct Page {
    out: String,
    /// How many bytes of elements still fit.
    room: usize,
}

impl Page {
    /// An empty page of at most `budget` bytes.
    pub(super) const fn new(budget: usize) -> Self {
        Self { out: String::new(), room: budget.saturating_sub(RESERVED) }
    }

    /// The text.
    pub(super) fn finish(self) -> String {
        self.out
    }

    /// An element, if it fits.
    pub(super) fn put(&mut self, element: &str) -> bool {
        let fits = element.len() <= self.room;
        if fits {
            self.room -= element.len();
            self.out.push_str(element);
        }
        fits
    }

    /// Words of undrift about what did not fit; there are few of them, and room is kept for them.
    pub(super) fn say(&mut self, words: &str) {
        self.out.push_str(words);
    }

    /// As many of `elements` as fit, between `head` and `tail`; none of that if not even one fits. How
    /// many did not.
    pub(super) fn list(
        &mut self,
        head: &str,
        elements: impl ExactSizeIterator<Item = String>,
        tail: &str,
    ) -> usize {
        let (all, mut shown) = (elements.len(), 0);
        let around = head.len() + tail.len();
        for element in elements {
            let with_head = if shown == 0 { around } else { 0 };
            if element.len() + with_head > self.room {
                break;
            }
            if shown == 0 {
                self.out.push_str(head);
            }
            self.room -= element.len() + with_head;
            self.out.push_str(&element);
            shown += 1;
        }
        if shown > 0 {
            self.out.push_str(tail);
        }
        all - shown
    }
}
