//! Reasons why a list could not be read to its end.

/// Why a list could not be read to its end.
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
    /// The list exceeds a limit, which is given here: 100,000 entries, 64 MiB of JSON, or 1,000
    /// pages that may be empty.
    #[error("the list has more than {0}")]
    TooLong(&'static str),
    /// The list of this operation cannot prove that an entry is absent.
    #[error("the service filters the pages of this list, so it cannot be proven complete")]
    Filtered,
    /// The end of the list was not reached.
    #[error("the list was not read to its end")]
    Unfinished,
}

/// Two headers or pages of one list that contradict each other: the list changed while it
/// was read, or a proxy changed a response. Pages are counted from 1. The text contains no data of
/// entries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// The response contains another page than requested.
    #[error("requested page {page} of the list, received page {received}")]
    OtherPage {
        /// The requested page.
        page: u64,
        /// `X-Page`.
        received: u64,
    },
    /// The announced next page has a wrong number.
    #[error("page {page} of the list announces page {next} as the next one")]
    OtherNext {
        /// The page that announces it.
        page: u64,
        /// `X-Next-Page`, or the page of the `Link`.
        next: u64,
    },
    /// One header announces another page, the other the end.
    #[error("the `Link` and `X-Next-Page` headers of page {0} of the list contradict each other")]
    Announcements(u64),
    /// The link to the next page leads to entries that were received already.
    #[error("the `Link` header of page {0} of the list leads backwards")]
    Backwards(u64),
    /// A page that the page before it announced has no entries.
    #[error("page {0} of the list is empty although it was announced")]
    Empty(u64),
    /// A page is not full although another page follows.
    #[error(
        "page {page} of the list has {entries} of {size} entries although another page follows"
    )]
    Short {
        /// The page.
        page: u64,
        /// The number of its entries.
        entries: usize,
        /// The number of entries in a full page.
        size: usize,
    },
    /// A page has too many entries.
    #[error("page {page} of the list has {entries} entries, more than the {size} of a page")]
    Overfull {
        /// The page.
        page: u64,
        /// The number of its entries.
        entries: usize,
        /// The number of entries in a full page.
        size: usize,
    },
    /// There are entries after the last page.
    #[error("page {0} of the list has entries although the page before it was the last")]
    Beyond(u64),
    /// `X-Per-Page` changed.
    #[error("page {page} of the list announces {size} entries per page, earlier pages {before}")]
    PageSize {
        /// The page with the other value.
        page: u64,
        /// The page size so far.
        before: usize,
        /// `X-Per-Page` of this page.
        size: usize,
    },
    /// The number of entries differs from `X-Total`.
    #[error("the service announced {total} entries and sent {sent}")]
    Total {
        /// The last `X-Total`.
        total: u64,
        /// The number of received entries.
        sent: u64,
    },
    /// `X-Total` became lower: a removal may have moved other entries to a page that was already
    /// read.
    #[error("page {page} of the list announces {total} entries in all, earlier pages {before}")]
    Fewer {
        /// The page with the lower value.
        page: u64,
        /// The value before.
        before: u64,
        /// `X-Total` of this page.
        total: u64,
    },
    /// Another page is announced although all entries of `X-Total` were received.
    #[error(
        "page {page} of the list announces another page although all {total} entries were sent"
    )]
    Surplus {
        /// The page with the announcement.
        page: u64,
        /// The last `X-Total`.
        total: u64,
    },
    /// An entry came twice.
    #[error("page {0} of the list repeats an entry")]
    Repeated(u64),
    /// An entry of a list by keyset has no id, or an id that is not greater than the one before.
    #[error("the ids on page {0} of the list do not ascend")]
    Unordered(u64),
    /// A header is malformed.
    #[error("the `{header}` header of page {page} of the list cannot be understood")]
    Header {
        /// The page.
        page: u64,
        /// The name of the header.
        header: &'static str,
    },
}
