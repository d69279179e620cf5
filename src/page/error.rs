//! Why a list could not be read as a whole.

/// Why a collection could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The answers do not fit together. Reading the list again may help.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// An entry lacks what tells it from others, or has null there.
    #[error("an entry on page {page} of the list has no `{key}`")]
    Unidentified {
        /// The page, counted from 1.
        page: u64,
        /// What is missing.
        key: &'static str,
    },
    /// The list is longer than what is kept, which is said here: 100,000 entries, 64 MiB of JSON,
    /// or 1,000 pages that may be empty.
    #[error("the list has more than {0}")]
    TooLong(&'static str),
    /// The operation's list cannot prove that something is absent.
    #[error("the service filters the pages of this list, so it cannot be proven complete")]
    Filtered,
    /// The end was not reached.
    #[error("the list was not read to its end")]
    Unfinished,
}

/// Two things that the service said of one list and that exclude each other: the list changed while
/// it was read, or something between here and the service changed an answer. Pages count from 1.
/// Its text holds nothing of any entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// Another page than the one that was asked for.
    #[error("page {page} of the list says that it is page {said}")]
    OtherPage {
        /// The page that was asked for.
        page: u64,
        /// `X-Page`.
        said: u64,
    },
    /// The page that is said to follow is not the next one.
    #[error("page {page} of the list says that page {said} follows")]
    OtherNext {
        /// The page that says so.
        page: u64,
        /// `X-Next-Page`, or the page of the `Link`.
        said: u64,
    },
    /// One header announces another page, the other the end.
    #[error("the `Link` and `X-Next-Page` headers of page {0} of the list contradict each other")]
    Announcements(u64),
    /// The link to the next page leads to entries that came already.
    #[error("the `Link` header of page {0} of the list leads backwards")]
    Backwards(u64),
    /// A page that the page before it announced has no entries.
    #[error("page {0} of the list is empty although it was announced")]
    Empty(u64),
    /// A page that another follows has fewer entries than a page holds.
    #[error(
        "page {page} of the list has {entries} of {size} entries although another page follows"
    )]
    Short {
        /// The page.
        page: u64,
        /// How many entries it has.
        entries: usize,
        /// How many a page holds.
        size: usize,
    },
    /// A page has more entries than a page holds.
    #[error("page {page} of the list has {entries} entries, more than the {size} of a page")]
    Overfull {
        /// The page.
        page: u64,
        /// How many entries it has.
        entries: usize,
        /// How many a page holds.
        size: usize,
    },
    /// There are entries after the page that was the last.
    #[error("page {0} of the list has entries although the page before it was the last")]
    Beyond(u64),
    /// `X-Per-Page` changed.
    #[error("page {page} of the list says {said} entries per page, earlier pages {before}")]
    PageSize {
        /// The page that says something else.
        page: u64,
        /// How many entries a page held so far.
        before: usize,
        /// `X-Per-Page` of this page.
        said: usize,
    },
    /// Fewer entries than `X-Total` says, or more.
    #[error("the service said {said} entries and sent {sent}")]
    Total {
        /// The last `X-Total`.
        said: u64,
        /// How many entries came.
        sent: u64,
    },
    /// `X-Total` is lower than it was: what was removed meanwhile moved others to a page that was
    /// read before.
    #[error("page {page} of the list says {said} entries in all, earlier pages {before}")]
    Fewer {
        /// The page that says something else.
        page: u64,
        /// What was said before.
        before: u64,
        /// `X-Total` of this page.
        said: u64,
    },
    /// As many entries came as `X-Total` says, and another page is announced.
    #[error("page {page} of the list announces another page although all {said} entries were sent")]
    Surplus {
        /// The page that announces.
        page: u64,
        /// The last `X-Total`.
        said: u64,
    },
    /// An entry came twice.
    #[error("page {0} of the list repeats an entry")]
    Repeated(u64),
    /// An entry of a list by keyset has no id, or not a greater one than the entry before it.
    #[error("the ids on page {0} of the list do not ascend")]
    Unordered(u64),
    /// A header cannot be understood.
    #[error("the `{header}` header of page {page} of the list cannot be understood")]
    Header {
        /// The page.
        page: u64,
        /// The header's name.
        header: &'static str,
    },
}
