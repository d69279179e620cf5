//! Reasons why a list could not be read to its end.

/// The reason why a list could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The responses contradict each other. Reading the list again may help.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// An entry lacks an identifying key, or the key is null.
    #[error("an entry on page {page} of the list has no `{key}`")]
    Unidentified {
        /// The page, counted from 1.
        page: u64,
        /// The missing key.
        key: &'static str,
    },
    /// The list exceeds this limit: 100,000 entries, 64 MiB of JSON, or 1,000 pages of a filtered
    /// list.
    #[error("the list has more than {0}")]
    TooLong(&'static str),
    /// The service removes entries from each page of this list, so a missing entry may exist.
    #[error("the service filters the pages of this list, so it cannot be proven complete")]
    Filtered,
    /// The end of the list was not reached.
    #[error("the list was not read to its end")]
    Unfinished,
}

/// A contradiction between two headers or pages of one list. Either the list changed while it was
/// read, or a proxy changed a response. The text counts pages from 1 and contains no data of
/// entries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(pub(super) String);

impl Contradiction {
    /// A contradiction on page `page`. `text` is the end of a sentence that starts with "page N of
    /// the list".
    pub(super) fn on_page(page: u64, text: &str) -> Self {
        Self(format!("page {page} of the list {text}"))
    }

    /// The contradiction that a page is not full although another page follows.
    pub(super) fn short_page(page: u64, entry_count: usize, size: usize) -> Self {
        let text = format!("has {entry_count} of {size} entries although another page follows");
        Self::on_page(page, &text)
    }

    /// The contradiction that a header is malformed.
    pub(super) fn malformed_header(page: u64, header: &str) -> Self {
        Self(format!("the `{header}` header of page {page} of the list cannot be understood"))
    }
}
