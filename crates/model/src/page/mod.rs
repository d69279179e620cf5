//! Reads a paged list to its end, and proves that it is complete.
//!
//! A [`CompleteList`] is a list that was read to its end, so an entry that the list lacks is
//! absent. Only [`Pager::finish`] makes a complete list. A [`Pager`] does no IO: it returns the
//! next request and checks the response.
//!
//! ```text
//! let mut pager = Pager::new(request, entry_keys)?;
//! while let Some(request) = pager.next_request() {
//!     let (headers, objects) = send(request);
//!     pager.accept(&headers, objects)?;
//! }
//! let complete = pager.finish()?;
//! ```
//!
//! A list is complete if its responses follow these rules:
//!
//! - `X-Page` is the requested page, and the page size does not change.
//! - `Link`, `X-Next-Page` and `X-Total` agree on whether another page follows. The page that they
//!   name is the next page.
//! - Every page except the last is full: it has `X-Per-Page` entries, or 100 if the header is
//!   missing. An announced page is not empty.
//! - The number of entries is the last `X-Total`, and no entry is repeated.
//! - Without `X-Total`, the page after the last one is requested too, and is `[]`. The same applies
//!   if only `X-Total` shows that a full page is the last.
//! - A list that the service sends in one response (`Operation::unpaged`) is complete if no paging
//!   header is present.
//! - A list by keyset has no page numbers and no total. The ids in the list ascend. The last page
//!   is `[]` and has no link to another page.
//!
//! A response that breaks a rule is a [`Contradiction`]. A list that is only searched
//! ([`Pager::for_search`]) need not be complete, so a contradiction only ends the reading.

mod error;
mod headers;
mod position;

use std::{collections::BTreeSet, mem, ops::Deref};

use http::HeaderMap;

use crate::{
    operation::{KeyFilter, Read, Request},
    planted::Bug,
    value::{self, Json, Object},
};

pub use error::{Contradiction, PageError};

/// The number of entries to request per page: the maximum of the service.
pub const PER_PAGE: usize = 100;

/// The maximum number of entries that are kept of one list. Because of this limit, an endless list
/// is refused.
const MAX_ENTRIES: usize = 100_000;

/// The approximate maximum size of one list in bytes of JSON. The limit is twice the longest
/// response. Only kept keys are counted.
const MAX_BYTES: usize = 64 << 20;

/// The maximum number of pages of a filtered list.
const MAX_FILTERED_PAGES: u64 = 1_000;

/// A list that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteList<T>(Vec<T>);

impl<T> CompleteList<T> {
    /// The entries without the proof.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }

    /// Converts every entry.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> CompleteList<U> {
        CompleteList(self.0.into_iter().map(f).collect())
    }

    /// The entries for which `f` returns a value.
    pub fn filter_map<U>(self, f: impl FnMut(T) -> Option<U>) -> CompleteList<U> {
        CompleteList(self.0.into_iter().filter_map(f).collect())
    }
}

impl<T> Deref for CompleteList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// The keys that every entry of a list must have. If an entry lacks a key, the list is treated as unread.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryKeys {
    /// The keys that together identify an entry.
    pub identity_keys: &'static [&'static str],
    /// Other keys that every entry has.
    pub other_keys: &'static [&'static str],
}

impl EntryKeys {
    /// Entries that are identified by their id and also have the keys `other_keys`.
    pub const fn with_id(other_keys: &'static [&'static str]) -> Self {
        Self { identity_keys: &["id"], other_keys }
    }
}

/// Reads one list, page by page.
#[derive(Debug)]
pub struct Pager {
    base_request: Request<Read>,
    state: ReadingState,
    /// True if the list is read by keyset instead of by page number.
    uses_keyset: bool,
    /// True if all entries are kept; false if each page is returned and then dropped.
    keeps_entries: bool,
    /// True if the service removes entries from pages, so that a short page proves nothing.
    is_filtered: bool,
    /// The keys that every entry must have.
    entry_keys: EntryKeys,
    /// The number of accepted pages.
    page_count: u64,
    /// The number of received entries.
    received_count: u64,
    /// The size of the kept entries in bytes of JSON.
    total_bytes: usize,
    /// The kept entries, or the entries of the last page.
    objects: Vec<Object>,
    /// The identities of the kept entries.
    identities: BTreeSet<String>,
    /// The number of entries in a full page; `None` before the first page.
    page_size: Option<usize>,
    /// The last received number of entries in the whole list (`X-Total`).
    total: Option<u64>,
    /// The last received number of pages of the list (`X-Total-Pages`).
    total_pages: Option<u64>,
    /// The expected entries of the next page, for a list by page number.
    expected_entries: ExpectedEntries,
    /// The greatest id in a list by keyset.
    last_id: Option<u64>,
}

/// The progress of reading.
#[derive(Debug)]
enum ReadingState {
    /// The page at this position is next.
    NextPage(PagePosition),
    /// The end is proven, or reading was stopped.
    Ended,
    /// A page was refused.
    Refused,
}

/// The position of a page.
#[derive(Debug)]
enum PagePosition {
    /// The start of a list by keyset.
    Start,
    /// The page with this number, from 1.
    Page(u64),
    /// The page after the entry with this id.
    After(u64),
    /// The page at this cursor, as received in a link.
    Cursor(String),
}

/// The entries of the next page, according to the earlier pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedEntries {
    /// The page may have entries.
    Possible,
    /// The page must have entries.
    Announced,
    /// The page must be empty.
    Nothing,
}

impl Pager {
    /// Starts before the first page of `request`. Every entry must have the keys in `entry_keys`.
    /// Without keys, an entry is identified by its id, or by its key and scope, or by its whole
    /// content.
    ///
    /// The list of all projects is read by keyset, because with page numbers the service shows only
    /// the first 50,000 records. A list by keyset has a fixed order, so a request that sets an order
    /// is read by page number.
    ///
    /// # Errors
    /// [`PageError::Filtered`] if the service filters the list after dividing it into pages.
    pub fn new(request: Request<Read>, entry_keys: EntryKeys) -> Result<Self, PageError> {
        if request.operation.filtered_after_paging {
            return Err(PageError::Filtered);
        }
        // Without keys, the whole content of an entry may be its identity.
        let has_no_keys = entry_keys.identity_keys.is_empty();
        let request = if has_no_keys { request.with_key_filter(KeyFilter::All) } else { request };
        Ok(Self { is_filtered: false, ..Self::for_filtered(request, entry_keys) })
    }

    /// Like [`new`](Self::new), for a list that the service filters after dividing it into pages.
    /// Any page of such a list may be short or empty. The list is read to the end that the
    /// responses announce, but is never complete. [`into_visible`](Self::into_visible) returns the
    /// entries.
    pub fn for_filtered(request: Request<Read>, entry_keys: EntryKeys) -> Self {
        let request = request.keep_keys(entry_keys.identity_keys).keep_keys(entry_keys.other_keys);
        Self { keeps_entries: true, is_filtered: true, entry_keys, ..Self::for_search(request) }
    }

    /// Like [`new`](Self::new), for a list that is only searched. Each page is returned and then
    /// dropped, so a long list needs no more memory than a short one. No further pages are
    /// requested to prove the end, and the list is never complete.
    pub fn for_search(request: Request<Read>) -> Self {
        let uses_keyset = request.operation.by_keyset
            && !["order_by", "sort"].iter().any(|name| request.has_query_parameter(name));
        let request = request.with_query("per_page", PER_PAGE).keep_keys(&["id"]);
        let (base_request, first_position) = if uses_keyset {
            let request = request.with_query("pagination", "keyset").with_query("order_by", "id");
            (request.with_query("sort", "asc"), PagePosition::Start)
        } else {
            (request, PagePosition::Page(1))
        };
        Self {
            base_request,
            state: ReadingState::NextPage(first_position),
            uses_keyset,
            keeps_entries: false,
            is_filtered: false,
            entry_keys: EntryKeys::default(),
            page_count: 0,
            received_count: 0,
            total_bytes: 0,
            objects: Vec::new(),
            identities: BTreeSet::new(),
            page_size: None,
            total: None,
            total_pages: None,
            expected_entries: ExpectedEntries::Possible,
            last_id: None,
        }
    }

    /// The next request; `None` at the end.
    pub fn next_request(&self) -> Option<Request<Read>> {
        let ReadingState::NextPage(position) = &self.state else { return None };
        let request = self.base_request.clone();
        Some(match position {
            PagePosition::Start => request,
            PagePosition::Page(number) => request.with_query("page", number),
            PagePosition::After(id) => request.with_query("id_after", id),
            PagePosition::Cursor(cursor) => request.with_query("cursor", cursor),
        })
    }

    /// Accepts the response to the request of [`next_request`](Self::next_request), and returns its entries.
    ///
    /// # Errors
    /// A [`PageError`]. The pager cannot be used after an error. In a list that is only searched, a
    /// contradiction ends the list without an error.
    pub fn accept(
        &mut self,
        headers: &HeaderMap,
        page: Vec<Object>,
    ) -> Result<&[Object], PageError> {
        let old_state = mem::replace(&mut self.state, ReadingState::Refused);
        if !matches!(old_state, ReadingState::NextPage(_)) {
            return Err(PageError::Unfinished);
        }
        self.page_count += 1;
        if self.is_filtered && self.page_count > MAX_FILTERED_PAGES {
            return Err(PageError::TooLong("1,000 pages"));
        }
        self.received_count += page.len() as u64;
        let page_start = if self.keeps_entries { self.objects.len() } else { 0 };
        if self.keeps_entries {
            self.keep_entries(page)?;
        } else {
            self.objects = page;
        }
        self.state = match self.next_position(headers, page_start) {
            Ok(Some(position)) if !Bug::FirstPageOnly.is_planted() => {
                ReadingState::NextPage(position)
            }
            Ok(_) => ReadingState::Ended,
            Err(_) if !self.keeps_entries || Bug::AcceptInconsistentLists.is_planted() => {
                ReadingState::Ended
            }
            Err(contradiction) => return Err(contradiction.into()),
        };
        Ok(&self.objects[page_start..])
    }

    /// The number of pages. `None` if the service does not send the number, for example for more
    /// than 10,000 records.
    pub const fn total_pages(&self) -> Option<u64> {
        self.total_pages
    }

    /// The complete list, each object once.
    ///
    /// # Errors
    /// [`PageError::Unfinished`] if pages are left, a page was refused, or the entries were not
    /// kept.
    pub fn finish(self) -> Result<CompleteList<Object>, PageError> {
        let is_complete =
            self.keeps_entries && !self.is_filtered && matches!(self.state, ReadingState::Ended);
        if is_complete { Ok(CompleteList(self.objects)) } else { Err(PageError::Unfinished) }
    }

    /// All entries that the service shows of a filtered list. Other entries may exist.
    ///
    /// # Errors
    /// [`PageError::Unfinished`] as in [`finish`](Self::finish).
    pub fn into_visible(self) -> Result<Vec<Object>, PageError> {
        let is_at_end = self.keeps_entries && matches!(self.state, ReadingState::Ended);
        if is_at_end { Ok(self.objects) } else { Err(PageError::Unfinished) }
    }

    /// Keeps the entries of a page.
    fn keep_entries(&mut self, page: Vec<Object>) -> Result<(), PageError> {
        self.total_bytes += page.iter().map(value::object_size).sum::<usize>();
        if self.total_bytes > MAX_BYTES {
            return Err(PageError::TooLong("64 MiB of JSON"));
        }
        if self.objects.len() + page.len() > MAX_ENTRIES {
            return Err(PageError::TooLong("100,000 entries"));
        }
        for object in page {
            if !self.identities.insert(self.check_identity(&object)?) {
                return Err(Contradiction::on_page(self.page_count, "repeats an entry").into());
            }
            self.objects.push(object);
        }
        Ok(())
    }

    /// The identity of an entry.
    fn check_identity(&self, object: &Object) -> Result<String, PageError> {
        let require_value = |key: &'static str| {
            identifying_value(object, key)
                .ok_or(PageError::Unidentified { page: self.page_count, key })
        };
        let skips_other_keys = Bug::AcceptRowsWithoutIdentity.is_planted();
        for key in self.entry_keys.other_keys.iter().filter(|_| !skips_other_keys) {
            // The value may be a mapping, such as an author.
            if is_path_key(key) || !object.get(*key).is_some_and(Json::is_object) {
                require_value(key)?;
            }
        }
        if self.entry_keys.identity_keys.is_empty() {
            return Ok(default_identity(object));
        }
        let mut identity = String::new();
        for key in self.entry_keys.identity_keys {
            identity += &format!("{} ", require_value(key)?);
        }
        Ok(identity)
    }
}

/// The identity of an entry if the list has no identity keys. The identity is the id of the entry,
/// or the key and scope of a variable, or else the whole content.
fn default_identity(object: &Object) -> String {
    let [id, key, scope] =
        ["id", "key", "environment_scope"].map(|name| identifying_value(object, name));
    match (id, key) {
        (Some(id), _) => format!("id {id}"),
        (None, Some(key)) => format!("key {key} of scope {}", scope.unwrap_or(&Json::Null)),
        (None, None) => Json::Object(object.clone()).to_string(),
    }
}

/// The value of the field `name`, if this value can identify the object.
fn identifying_value<'o>(object: &'o Object, name: &str) -> Option<&'o Json> {
    object.get(name).filter(|value| is_identifying(name, value))
}

fn is_path_key(name: &str) -> bool {
    name.split('_').any(|word| word == "path")
}

/// True if `value` can identify an object under this name: an id must be a number, a path must be
/// text, and a mapping identifies nothing.
pub fn is_identifying(name: &str, value: &Json) -> bool {
    match value {
        Json::Null | Json::Object(_) => false,
        _ if matches!(name, "id" | "iid") || name.ends_with("_id") => value.is_u64(),
        _ if is_path_key(name) || name == "username" => value.is_string(),
        _ => true,
    }
}

/// Treats `objects` as a complete list, for tests. Releases of undrift do not contain this
/// function.
#[cfg(debug_assertions)]
pub const fn assume_complete(objects: Vec<Object>) -> CompleteList<Object> {
    CompleteList(objects)
}

#[cfg(test)]
mod tests;
