//! Reads a paged list to its end, and proves that it is complete.
//!
//! [`Complete`] is a list that was read to its end. Only [`Pager::finish`] makes one, so an entry
//! that it lacks is absent. A [`Pager`] does no IO: it gives the next request and checks the
//! response.
//!
//! ```text
//! let mut pager = Pager::new(request, rows)?;
//! while let Some(request) = pager.next() {
//!     let (headers, objects) = send(request);
//!     pager.accept(&headers, objects)?;
//! }
//! let complete = pager.finish()?;
//! ```
//!
//! A list is complete if nothing in the responses contradicts that:
//!
//! - `X-Page` is the requested page, and the page size does not change.
//! - `Link`, `X-Next-Page` and `X-Total` agree on whether another page follows, and the page that
//!   they name is the next one.
//! - Every page except the last is full: it has `X-Per-Page` entries, or 100 without that header.
//!   An announced page is not empty.
//! - The number of entries is the last `X-Total`, and no entry is repeated.
//! - Without `X-Total`, one more page is read after the last one, and is `[]`. The same applies if
//!   only `X-Total` shows that a full page is the last.
//! - A list that the service sends in one answer (`NumberedRoute::unpaged`) is complete if no paging
//!   header is present.
//! - A list by keyset has no page numbers and no total. Its ids ascend, and it ends with a page
//!   that is `[]` and has no link to another.
//!
//! Anything else is a [`Contradiction`]. A list that is only searched ([`Pager::for_search`]) does
//! not need this; there, a contradiction is the end.

mod error;
mod headers;

use std::{cmp::Ordering, collections::BTreeSet, mem, ops::Deref};

use http::HeaderMap;

use crate::{
    operation::{KeyFilter, Read, Request},
    planted::Bug,
    value::{self, Json, Object},
};

pub use error::{Contradiction, PageError};
use headers::{Headers, PageLink};

/// The number of entries to request per page: the maximum of the service.
pub const PER_PAGE: usize = 100;

/// The maximum number of entries kept of one list, so that an endless list ends.
const MAX_ENTRIES: usize = 100_000;

/// The approximate maximum size of one list in bytes of JSON: twice the longest response. Keys that
/// are not kept do not count.
const MAX_BYTES: usize = 64 << 20;

/// The maximum number of pages of a filtered list.
const MAX_FILTERED_PAGES: u64 = 1_000;

/// A list that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete<T>(Vec<T>);

impl<T> Complete<T> {
    /// The entries without the proof.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }

    /// Converts every entry.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Complete<U> {
        Complete(self.0.into_iter().map(f).collect())
    }

    /// The entries for which `f` returns a value.
    pub fn filter_map<U>(self, f: impl FnMut(T) -> Option<U>) -> Complete<U> {
        Complete(self.0.into_iter().filter_map(f).collect())
    }
}

impl<T> Deref for Complete<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// The keys that every entry of a list must have. A list with another entry counts as not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    /// The keys that together identify an entry.
    pub keys: &'static [&'static str],
    /// Other keys that every entry has.
    pub other_keys: &'static [&'static str],
}

impl Rows {
    /// Entries that are identified by their id and have the keys `also`, too.
    pub const fn with_id(also: &'static [&'static str]) -> Self {
        Self { keys: &["id"], other_keys: also }
    }
}

/// Reads one list, page by page.
#[derive(Debug)]
pub struct Pager {
    base: Request<Read>,
    state: ReadingState,
    /// Whether the list is read by keyset instead of by page number.
    uses_keyset: bool,
    /// Whether all entries are kept, or only passed on.
    keeps_entries: bool,
    /// Whether the service removes entries from pages, so that a short page means nothing.
    is_filtered: bool,
    /// The keys that every entry must have.
    rows: Rows,
    /// The number of accepted pages.
    page_count: u64,
    /// The number of received entries.
    received_count: u64,
    /// The size of the kept entries in bytes of JSON.
    total_bytes: usize,
    /// The kept entries, or those of the last page.
    objects: Vec<Object>,
    /// The identities of the kept entries.
    identities: BTreeSet<String>,
    /// The page size, once known.
    size: Option<usize>,
    /// The last total.
    total: Option<u64>,
    total_pages: Option<u64>,
    /// Whether the next page of a list by number may or must have entries.
    expected: ExpectedEntries,
    /// The greatest id in a list by keyset.
    last_id: Option<u64>,
}

/// The progress of reading.
#[derive(Debug)]
enum ReadingState {
    /// The page at this position is next.
    NextPage(Position),
    /// The end is proven, or reading was stopped.
    Ended,
    /// A page was refused.
    Refused,
}

/// The start of a page.
#[derive(Debug)]
enum Position {
    /// The start of a list by keyset.
    Start,
    Page(u64),
    /// After this id.
    After(u64),
    Cursor(String),
}

/// The start of the next page, if there is one.
type NextPosition = Result<Option<Position>, Contradiction>;

/// Whether the next page has entries, according to the pages so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedEntries {
    /// Perhaps.
    Possible,
    /// Yes.
    Announced,
    /// No.
    Nothing,
}

impl Pager {
    /// Starts before the first page of `request`. Every entry must have the keys of `rows`. Without
    /// keys, an entry is identified by its id, or by its key and scope, or by its whole content.
    ///
    /// The list of all projects is read by keyset, because the service stops at 50,000 records by
    /// number (reference 1, 8). A keyset has its own order, so a request with an order is read by
    /// number.
    ///
    /// # Errors
    /// [`PageError::Filtered`].
    pub fn new(request: Request<Read>, rows: Rows) -> Result<Self, PageError> {
        if request.operation.filtered_after_paging {
            return Err(PageError::Filtered);
        }
        // Without keys, the whole content of an entry may be its identity.
        let has_no_keys = rows.keys.is_empty();
        let request = if has_no_keys { request.keeping(KeyFilter::All) } else { request };
        Ok(Self { is_filtered: false, ..Self::for_filtered(request, rows) })
    }

    /// As [`new`](Self::new), for a list that the service filters after dividing it into pages: any
    /// page may be short or empty. It is read to the end that the responses announce, and never
    /// gives a complete list ([`into_visible`](Self::into_visible)).
    pub fn for_filtered(request: Request<Read>, rows: Rows) -> Self {
        let request = request.keeping_also(rows.keys).keeping_also(rows.other_keys);
        Self { keeps_entries: true, is_filtered: true, rows, ..Self::for_search(request) }
    }

    /// As [`new`](Self::new), for a list that is only searched: each page is passed on and dropped,
    /// so a long list needs no more memory than a short one. It requests no more pages to prove the
    /// end, and never gives a complete list.
    pub fn for_search(request: Request<Read>) -> Self {
        let keyset = request.operation.by_keyset
            && !["order_by", "sort"].iter().any(|name| request.has_query(name));
        let request = request.query("per_page", PER_PAGE).keeping_also(&["id"]);
        let base = if keyset {
            request.query("pagination", "keyset").query("order_by", "id").query("sort", "asc")
        } else {
            request
        };
        Self {
            base,
            state: ReadingState::NextPage(if keyset { Position::Start } else { Position::Page(1) }),
            uses_keyset: keyset,
            keeps_entries: false,
            is_filtered: false,
            rows: Rows::default(),
            page_count: 0,
            received_count: 0,
            total_bytes: 0,
            objects: Vec::new(),
            identities: BTreeSet::new(),
            size: None,
            total: None,
            total_pages: None,
            expected: ExpectedEntries::Possible,
            last_id: None,
        }
    }

    /// The next request; `None` at the end.
    pub fn next(&self) -> Option<Request<Read>> {
        let ReadingState::NextPage(position) = &self.state else { return None };
        let request = self.base.clone();
        Some(match position {
            Position::Start => request,
            Position::Page(number) => request.query("page", number),
            Position::After(id) => request.query("id_after", id),
            Position::Cursor(cursor) => request.query("cursor", cursor),
        })
    }

    /// Accepts the response to the request of [`next`](Self::next), and returns its entries.
    ///
    /// # Errors
    /// A [`PageError`]; the pager cannot be used afterwards. In a list that is only searched, a
    /// contradiction is the end and not an error.
    pub fn accept(
        &mut self,
        headers: &HeaderMap,
        page: Vec<Object>,
    ) -> Result<&[Object], PageError> {
        if !matches!(
            mem::replace(&mut self.state, ReadingState::Refused),
            ReadingState::NextPage(_)
        ) {
            return Err(PageError::Unfinished);
        }
        self.page_count += 1;
        if self.is_filtered && self.page_count > MAX_FILTERED_PAGES {
            return Err(PageError::TooLong("1,000 pages"));
        }
        self.received_count += page.len() as u64;
        let first_new = if self.keeps_entries { self.objects.len() } else { 0 };
        if self.keeps_entries {
            self.keep_entries(page)?;
        } else {
            self.objects = page;
        }
        self.state = match self.position_after(headers, first_new) {
            Ok(Some(position)) if !Bug::FirstPageOnly.is_planted() => {
                ReadingState::NextPage(position)
            }
            Ok(_) => ReadingState::Ended,
            Err(_) if !self.keeps_entries || Bug::TrustLists.is_planted() => ReadingState::Ended,
            Err(contradiction) => return Err(contradiction.into()),
        };
        Ok(&self.objects[first_new..])
    }

    /// The number of pages, if the service gives it. It does not for more than 10,000 records.
    pub const fn total_pages(&self) -> Option<u64> {
        self.total_pages
    }

    /// The complete list, each object once.
    ///
    /// # Errors
    /// [`PageError::Unfinished`] if a request is left, a page was refused, or pages were only
    /// passed on.
    pub fn finish(self) -> Result<Complete<Object>, PageError> {
        let is_complete =
            self.keeps_entries && !self.is_filtered && matches!(self.state, ReadingState::Ended);
        if is_complete { Ok(Complete(self.objects)) } else { Err(PageError::Unfinished) }
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
            if !self.identities.insert(self.identity(&object)?) {
                return Err(Contradiction::on_page(self.page_count, "repeats an entry").into());
            }
            self.objects.push(object);
        }
        Ok(())
    }

    /// The identity of an entry.
    fn identity(&self, object: &Object) -> Result<String, PageError> {
        let needed = |key: &'static str| {
            identifying_value(object, key)
                .ok_or(PageError::Unidentified { page: self.page_count, key })
        };
        for key in self.rows.other_keys.iter().filter(|_| !Bug::TrustRows.is_planted()) {
            // The value may be a mapping, such as an author.
            if is_path(key) || !object.get(*key).is_some_and(Json::is_object) {
                needed(key)?;
            }
        }
        if self.rows.keys.is_empty() {
            return Ok(default_identity(object));
        }
        let mut identity = String::new();
        for key in self.rows.keys {
            identity += &format!("{} ", needed(key)?);
        }
        Ok(identity)
    }

    /// The start of the page after the one with the entries `self.objects[from..]`; `None` at the
    /// end.
    fn position_after(&mut self, headers: &HeaderMap, from: usize) -> NextPosition {
        let headers = Headers::read(headers, self.page_count)?;
        self.total_pages = headers.total_pages.or(self.total_pages);
        if self.base.operation.unpaged && headers == Headers::default() {
            Ok(None)
        } else if self.uses_keyset {
            self.position_by_id(&headers, from)
        } else {
            self.position_by_number(&headers, self.objects.len() - from)
        }
    }

    /// As [`Self::position_after`], for a list by keyset. Links only show whether another page follows. The
    /// request continues after the last received id, so no link can skip an entry.
    fn position_by_id(&mut self, headers: &Headers, from: usize) -> NextPosition {
        for object in &self.objects[from..] {
            let id = object
                .get("id")
                .and_then(Json::as_u64)
                .filter(|id| self.last_id.is_none_or(|last| last < *id));
            self.last_id = Some(id.ok_or_else(|| {
                Contradiction(format!(
                    "the ids on page {} of the list do not ascend",
                    self.page_count
                ))
            })?);
        }
        let entries = self.objects.len() - from;
        let size = headers.size.unwrap_or(PER_PAGE);
        let next = headers.link.as_ref().and_then(Option::as_ref);
        if entries == 0 {
            return match next {
                Some(_) => Err(Contradiction::short_page(self.page_count, entries, size)),
                None => Ok(None),
            };
        }
        let Some(last) = self.last_id else { return Ok(None) };
        if next.and_then(|link| link.id_after).is_some_and(|after| after < last) {
            let header = format!("the `Link` header of page {} of the list", self.page_count);
            return Err(Contradiction(format!("{header} leads backwards")));
        }
        let has_more =
            next.is_some() || self.keeps_entries || (headers.link.is_none() && entries >= size);
        let cursor =
            next.filter(|link| link.id_after.is_none()).and_then(|link| link.cursor.clone());
        Ok(has_more.then(|| cursor.map_or(Position::After(last), Position::Cursor)))
    }

    /// As [`Self::position_after`], for a list by page number, after a page of `entries` entries.
    fn position_by_number(&mut self, headers: &Headers, entries: usize) -> NextPosition {
        let page = self.page_count;
        if let Some(received) = headers.page.filter(|received| *received != page) {
            let message = format!("requested page {page} of the list, received page {received}");
            return Err(Contradiction(message));
        }
        let size = self.page_size(headers)?;
        if entries > size {
            let message = format!("has {entries} entries, more than the {size} of a page");
            return Err(Contradiction::on_page(page, &message));
        }
        if self.is_filtered {
            return self.position_in_filtered(headers, entries);
        }
        match self.expected {
            ExpectedEntries::Announced if entries == 0 => {
                return Err(Contradiction::on_page(page, "is empty although it was announced"));
            }
            ExpectedEntries::Nothing if entries > 0 => {
                let message = "has entries although the page before it was the last";
                return Err(Contradiction::on_page(page, message));
            }
            _ => {}
        }
        let announced = self.announced_next(headers)?;
        let has_more = self.has_next(headers, announced)?;
        let is_full = entries == size;
        self.expected = match has_more {
            Some(true) if !is_full => return Err(Contradiction::short_page(page, entries, size)),
            Some(true) => ExpectedEntries::Announced,
            _ if entries == 0 => return Ok(None),
            None if is_full => ExpectedEntries::Possible,
            _ if !self.keeps_entries => return Ok(None),
            // A single wrong total would end the list too early here.
            Some(false) if self.total.is_some() && (announced.is_some() || !is_full) => {
                return Ok(None);
            }
            _ => ExpectedEntries::Nothing,
        };
        Ok(Some(Position::Page(page + 1)))
    }

    /// As [`Self::position_by_number`], for a list that the service filters. Totals include filtered
    /// entries. If the headers do not show whether another page follows, any page with entries may have
    /// a successor.
    fn position_in_filtered(&mut self, headers: &Headers, entries: usize) -> NextPosition {
        let announced = self.announced_next(headers)?;
        self.keep_total(headers)?;
        let size = self.size.unwrap_or(PER_PAGE) as u64;
        let by_total = self.total.map(|total| self.page_count.saturating_mul(size) < total);
        let has_more = announced.or(by_total).unwrap_or(entries > 0);
        Ok(has_more.then_some(Position::Page(self.page_count + 1)))
    }

    /// The number of entries in a full page.
    fn page_size(&mut self, headers: &Headers) -> Result<usize, Contradiction> {
        let size = *self.size.get_or_insert(headers.size.unwrap_or(PER_PAGE));
        match headers.size {
            Some(other) if other != size => {
                let text = format!("announces {other} entries per page, earlier pages {size}");
                Err(Contradiction::on_page(self.page_count, &text))
            }
            _ => Ok(size),
        }
    }

    /// True if `Link` and `X-Next-Page` announce another page; `None` if neither is present.
    fn announced_next(&self, headers: &Headers) -> Result<Option<bool>, Contradiction> {
        let page = self.page_count;
        let by_link = match &headers.link {
            Some(Some(PageLink { page: None, .. })) => {
                return Err(Contradiction::malformed_header(page, "Link"));
            }
            link => link.as_ref().map(|link| link.as_ref().and_then(|link| link.page)),
        };
        let mut announced_pages = [by_link, headers.next].into_iter().flatten().flatten();
        if let Some(next) = announced_pages.find(|announced| *announced != page + 1) {
            let text = format!("announces page {next} as the next one");
            return Err(Contradiction::on_page(page, &text));
        }
        match (by_link, headers.next) {
            (Some(one), Some(other)) if one != other => {
                let headers =
                    format!("`Link` and `X-Next-Page` headers of page {page} of the list");
                Err(Contradiction(format!("the {headers} contradict each other")))
            }
            (one, other) => Ok(one.or(other).map(|next| next.is_some())),
        }
    }

    /// Stores the total. A lower total than before shows that an entry may have moved to a page
    /// that was read already.
    fn keep_total(&mut self, headers: &Headers) -> Result<(), Contradiction> {
        if let (Some(before), Some(total)) = (self.total, headers.total)
            && total < before
        {
            let does = format!("announces {total} entries in all, earlier pages {before}");
            return Err(Contradiction::on_page(self.page_count, &does));
        }
        self.total = headers.total.or(self.total);
        Ok(())
    }

    /// True if another page follows, by `announced` and the last total; `None` if unknown.
    fn has_next(
        &mut self,
        headers: &Headers,
        announced: Option<bool>,
    ) -> Result<Option<bool>, Contradiction> {
        self.keep_total(headers)?;
        let (sent, Some(total)) = (self.received_count, self.total) else { return Ok(announced) };
        match (sent.cmp(&total), announced) {
            (Ordering::Less, Some(false)) | (Ordering::Greater, _) => {
                Err(Contradiction(format!("the service announced {total} entries and sent {sent}")))
            }
            (Ordering::Equal, Some(true)) => {
                let does = format!("announces another page although all {total} entries were sent");
                Err(Contradiction::on_page(self.page_count, &does))
            }
            (Ordering::Less, _) => Ok(Some(true)),
            (Ordering::Equal, _) => Ok(Some(false)),
        }
    }
}

/// The identity of an entry without keys: its id, or key and scope for a variable, which has no id.
fn default_identity(object: &Object) -> String {
    match (
        identifying_value(object, "id"),
        identifying_value(object, "key"),
        identifying_value(object, "environment_scope"),
    ) {
        (Some(id), _, _) => format!("id {id}"),
        (None, Some(key), scope) => format!("key {key} of scope {}", scope.unwrap_or(&Json::Null)),
        (None, None, _) => Json::Object(object.clone()).to_string(),
    }
}

/// A field that is present and identifies its object: not null, and of the right type.
fn identifying_value<'o>(object: &'o Object, name: &str) -> Option<&'o Json> {
    object.get(name).filter(|value| is_identifying(name, value))
}

fn is_path(name: &str) -> bool {
    name.split('_').any(|word| word == "path")
}

/// True if `value` can identify something under this name: an id must be a number, a path must be
/// text, and a mapping identifies nothing.
pub fn is_identifying(name: &str, value: &Json) -> bool {
    match value {
        Json::Null | Json::Object(_) => false,
        _ if matches!(name, "id" | "iid") || name.ends_with("_id") => value.is_u64(),
        _ if is_path(name) || name == "username" => value.is_string(),
        _ => true,
    }
}

/// `objects` as a complete list, for tests: no release contains it.
#[cfg(debug_assertions)]
pub const fn whole(objects: Vec<Object>) -> Complete<Object> {
    Complete(objects)
}

#[cfg(test)]
mod tests;
