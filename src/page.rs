//! Reading a paged collection to its end, and the proof that it was.
//!
//! [`Complete`] is a collection that was read to its end. Only [`Pager::finish`] makes one, so
//! whoever holds one may take what is not in it for absent. A [`Pager`] does no IO: it says what to
//! ask next and judges what came back.
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
//! A list is whole if nothing that the answers say contradicts it:
//!
//! - `X-Page` is the page that was asked for, and the page size does not change.
//! - `Link`, `X-Next-Page` and `X-Total` agree on whether another page follows, and the page that
//!   they name is the next one.
//! - A page that another follows is full: it has as many entries as `X-Per-Page` says, 100 where
//!   that says nothing. A page that was announced is not empty.
//! - As many entries came as the last `X-Total` says, and none came twice.
//! - Where there is no `X-Total`, one more page than the last is read, which is `[]`. So it is
//!   where nothing but an `X-Total` says that a full page is the last.
//! - A list that the service sends in one answer ([`Operation::unpaged`](crate::operation::Operation::unpaged)) is whole after it, where no
//!   header says anything of pages.
//! - A list by keyset has no page numbers and no total. Its ids ascend, and it ends with a page
//!   that is `[]` and links to no other.
//!
//! Anything else is a [`Contradiction`]. A list that is only looked through ([`Pager::passing`])
//! needs none of this; there a contradiction is the end.

mod error;
mod headers;

use std::{cmp::Ordering, collections::BTreeSet, mem, ops::Deref};

use http::HeaderMap;

use crate::{
    operation::{Read, Request, Wanted},
    planted::Bug,
    value::{Json, Object},
};

pub use error::{Contradiction, PageError};
use headers::Said;

/// How many entries a page is asked to hold: the most that the service gives.
pub const PER_PAGE: usize = 100;

/// How many entries of one list are kept, so that a list without end ends.
const MAX_ENTRIES: usize = 100_000;

/// How many bytes of JSON of one list are kept, about: twice the longest answer. What a request does
/// not keep of it does not count.
const MAX_BYTES: usize = 64 << 20;

/// How many pages of a list are read that may be empty all the same.
const MAX_FILTERED: u64 = 1_000;

/// A collection that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complete<T>(Vec<T>);

impl<T> Complete<T> {
    /// The entries, without the proof.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }

    /// Every entry in another form: still all of them.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Complete<U> {
        Complete(self.0.into_iter().map(f).collect())
    }

    /// The entries that `f` keeps: all of those that it would keep.
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

/// What every entry of a list has to have: otherwise the answer is none, and nothing follows from
/// what is not in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    /// What together tells an entry from all others.
    pub keys: &'static [&'static str],
    /// What else no entry lacks.
    pub also: &'static [&'static str],
}

impl Rows {
    /// Entries that are told from each other by their id, and have no less than `also`.
    pub const fn with_id(also: &'static [&'static str]) -> Self {
        Self { keys: &["id"], also }
    }
}

/// Reads one collection, page by page.
#[derive(Debug)]
pub struct Pager {
    base: Request<Read>,
    state: State,
    /// Whether it is read by keyset, and not by page number.
    keyset: bool,
    /// Whether pages are kept for the whole collection, or only passed on.
    keeps: bool,
    /// Whether the service takes entries out of pages, so that a short page means nothing.
    filtered: bool,
    /// What every entry has to have.
    rows: Rows,
    /// How many pages were accepted; the number of the page that is being judged.
    pages: u64,
    /// How many entries came.
    received: u64,
    /// How many bytes of JSON are kept.
    bytes: usize,
    /// The entries that are kept, or those of the last page.
    objects: Vec<Object>,
    /// What the entries that are kept are known by.
    known: BTreeSet<String>,
    /// How many entries a page holds, once the first page is known.
    size: Option<usize>,
    /// The last total that the service said.
    total: Option<u64>,
    total_pages: Option<u64>,
    /// What the next page has to be, in a list by number.
    expected: Expected,
    /// The greatest id of a list by keyset.
    last_id: Option<u64>,
}

/// How far a list is read.
#[derive(Debug)]
enum State {
    /// The page at this position is next.
    Ask(Position),
    /// The end is proven, or nothing more is looked at.
    Ended,
    /// A page was refused.
    Refused,
}

/// Where a page begins.
#[derive(Debug)]
enum Position {
    /// At the start of a list by keyset.
    Start,
    Page(u64),
    /// Behind this id.
    After(u64),
    Cursor(String),
}

/// What the pages so far say of the entries of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// It may have some.
    Possible,
    /// It has some.
    Announced,
    /// It has none.
    Nothing,
}

impl Pager {
    /// Starts before the first page of `request`. Every entry must have what `rows` says; without
    /// keys it is told from others by its id, else by its key and scope, else by all that it is.
    ///
    /// The list of all projects is read by keyset, because by number the service stops at 50,000
    /// records (reference 1, 8); but a keyset has an order of its own, so a request that asks for
    /// one is read by number.
    ///
    /// # Errors
    /// [`PageError::Filtered`].
    pub fn new(request: Request<Read>, rows: Rows) -> Result<Self, PageError> {
        if request.operation.filtered_after_paging {
            return Err(PageError::Filtered);
        }
        // Without keys an entry may be told from others only by all that it is.
        let request = if rows.keys.is_empty() {
            request.keeping(Wanted::All)
        } else {
            request.keeping_also(rows.keys).keeping_also(rows.also)
        };
        Ok(Self { keeps: true, rows, ..Self::passing(request) })
    }

    /// As [`new`](Self::new), for a list of which the service shows only what the caller may see,
    /// after it cut all of it into pages: a page may be short, or empty, anywhere. It is read by what
    /// the answers announce, to the end, and never makes a whole collection
    /// ([`into_shown`](Self::into_shown)).
    pub fn shown(request: Request<Read>, rows: Rows) -> Self {
        let request = request.keeping_also(rows.keys).keeping_also(rows.also);
        Self { keeps: true, filtered: true, rows, ..Self::passing(request) }
    }

    /// As [`new`](Self::new), for a list that is only looked through: each page is passed on and
    /// forgotten, so that a long one takes no more memory than a short one. It does not ask for
    /// more pages to prove the end, and never makes a whole collection.
    pub fn passing(request: Request<Read>) -> Self {
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
            state: State::Ask(if keyset { Position::Start } else { Position::Page(1) }),
            keyset,
            keeps: false,
            filtered: false,
            rows: Rows::default(),
            pages: 0,
            received: 0,
            bytes: 0,
            objects: Vec::new(),
            known: BTreeSet::new(),
            size: None,
            total: None,
            total_pages: None,
            expected: Expected::Possible,
            last_id: None,
        }
    }

    /// What to ask next; `None` at the end.
    pub fn next(&self) -> Option<Request<Read>> {
        let State::Ask(position) = &self.state else { return None };
        let request = self.base.clone();
        Some(match position {
            Position::Start => request,
            Position::Page(number) => request.query("page", number),
            Position::After(id) => request.query("id_after", id),
            Position::Cursor(cursor) => request.query("cursor", cursor),
        })
    }

    /// Takes what is kept of the page that [`next`](Self::next) asked for, and returns its entries.
    ///
    /// # Errors
    /// A [`PageError`]; the pager is then of no more use. Of a list that is only looked through a
    /// contradiction is the end, and no error.
    pub fn accept(
        &mut self,
        headers: &HeaderMap,
        page: Vec<Object>,
    ) -> Result<&[Object], PageError> {
        if !matches!(mem::replace(&mut self.state, State::Refused), State::Ask(_)) {
            return Err(PageError::Unfinished);
        }
        self.pages += 1;
        if self.filtered && self.pages > MAX_FILTERED {
            return Err(PageError::TooLong("1,000 pages"));
        }
        self.received += page.len() as u64;
        let before = if self.keeps { self.objects.len() } else { 0 };
        if self.keeps {
            self.keep(page)?;
        } else {
            self.objects = page;
        }
        self.state = match self.position_after(headers, before) {
            Ok(Some(position)) if !Bug::FirstPageOnly.is_planted() => State::Ask(position),
            Ok(_) => State::Ended,
            Err(_) if !self.keeps || Bug::TrustLists.is_planted() => State::Ended,
            Err(contradiction) => return Err(contradiction.into()),
        };
        Ok(&self.objects[before..])
    }

    /// How many pages there are, if the service said so; it does not for more than 10,000 records.
    pub const fn total_pages(&self) -> Option<u64> {
        self.total_pages
    }

    /// The whole collection, each object once.
    ///
    /// # Errors
    /// [`PageError::Unfinished`] if there is still something to ask, a page was refused, or pages
    /// were only passed on.
    pub fn finish(self) -> Result<Complete<Object>, PageError> {
        let whole = self.keeps && !self.filtered && matches!(self.state, State::Ended);
        if whole { Ok(Complete(self.objects)) } else { Err(PageError::Unfinished) }
    }

    /// All that the service shows of a list that it filters. What is not among it may be there.
    ///
    /// # Errors
    /// [`PageError::Unfinished`] as of [`finish`](Self::finish).
    pub fn into_shown(self) -> Result<Vec<Object>, PageError> {
        let read = self.keeps && matches!(self.state, State::Ended);
        if read { Ok(self.objects) } else { Err(PageError::Unfinished) }
    }

    /// Adds a page to what is kept.
    fn keep(&mut self, page: Vec<Object>) -> Result<(), PageError> {
        self.bytes += page.iter().map(length).sum::<usize>();
        if self.bytes > MAX_BYTES {
            return Err(PageError::TooLong("64 MiB of JSON"));
        }
        if self.objects.len() + page.len() > MAX_ENTRIES {
            return Err(PageError::TooLong("100,000 entries"));
        }
        for object in page {
            if !self.known.insert(self.identity(&object)?) {
                return Err(Contradiction::Repeated(self.pages).into());
            }
            self.objects.push(object);
        }
        Ok(())
    }

    /// What tells an entry from all others.
    fn identity(&self, object: &Object) -> Result<String, PageError> {
        let needed = |key: &'static str| {
            field(object, key).ok_or(PageError::Unidentified { page: self.pages, key })
        };
        for key in self.rows.also.iter().filter(|_| !Bug::TrustRows.is_planted()) {
            // It may be a mapping, such as who wrote something.
            if is_path(key) || !object.get(*key).is_some_and(Json::is_object) {
                needed(key)?;
            }
        }
        if self.rows.keys.is_empty() {
            return Ok(usual_identity(object));
        }
        let mut identity = String::new();
        for key in self.rows.keys {
            identity += &format!("{} ", needed(key)?);
        }
        Ok(identity)
    }

    /// Where the page begins that follows the one whose entries are `self.objects[from..]`; `None`
    /// at the end.
    fn position_after(
        &mut self,
        headers: &HeaderMap,
        from: usize,
    ) -> Result<Option<Position>, Contradiction> {
        let said = Said::read(headers, self.pages)?;
        self.total_pages = said.total_pages.or(self.total_pages);
        if self.base.operation.unpaged && said == Said::default() {
            Ok(None)
        } else if self.keyset {
            self.position_by_id(&said, from)
        } else {
            self.position_by_number(&said, self.objects.len() - from)
        }
    }

    /// The same in a list by keyset. Where its links lead says only whether there are more: what is
    /// asked for is what follows the last id that came, so that no link leads past an entry.
    fn position_by_id(
        &mut self,
        said: &Said,
        from: usize,
    ) -> Result<Option<Position>, Contradiction> {
        for object in &self.objects[from..] {
            let id = object
                .get("id")
                .and_then(Json::as_u64)
                .filter(|id| self.last_id.is_none_or(|last| last < *id));
            self.last_id = Some(id.ok_or(Contradiction::Unordered(self.pages))?);
        }
        let entries = self.objects.len() - from;
        let size = said.size.unwrap_or(PER_PAGE);
        let next = said.link.as_ref().and_then(Option::as_ref);
        if entries == 0 {
            return if next.is_some() {
                Err(Contradiction::Short { page: self.pages, entries, size })
            } else {
                Ok(None)
            };
        }
        let Some(last) = self.last_id else { return Ok(None) };
        if next.and_then(|link| link.id_after).is_some_and(|after| after < last) {
            return Err(Contradiction::Backwards(self.pages));
        }
        let more = next.is_some() || self.keeps || (said.link.is_none() && entries >= size);
        let cursor =
            next.filter(|link| link.id_after.is_none()).and_then(|link| link.cursor.clone());
        Ok(more.then(|| cursor.map_or(Position::After(last), Position::Cursor)))
    }

    /// The same in a list by number, after a page of `entries` entries.
    fn position_by_number(
        &mut self,
        said: &Said,
        entries: usize,
    ) -> Result<Option<Position>, Contradiction> {
        let page = self.pages;
        if let Some(said) = said.page.filter(|said| *said != page) {
            return Err(Contradiction::OtherPage { page, said });
        }
        let size = self.page_size(said)?;
        if entries > size {
            return Err(Contradiction::Overfull { page, entries, size });
        }
        if self.filtered {
            return self.position_in_filtered(said, entries);
        }
        match self.expected {
            Expected::Announced if entries == 0 => return Err(Contradiction::Empty(page)),
            Expected::Nothing if entries > 0 => return Err(Contradiction::Beyond(page)),
            _ => {}
        }
        let announced = self.announced(said)?;
        let more = self.more(said, announced)?;
        let full = entries == size;
        self.expected = match more {
            Some(true) if !full => return Err(Contradiction::Short { page, entries, size }),
            Some(true) => Expected::Announced,
            _ if entries == 0 => return Ok(None),
            None if full => Expected::Possible,
            _ if !self.keeps => return Ok(None),
            // One total that is too low would cut a list off here.
            Some(false) if self.total.is_some() && (announced.is_some() || !full) => {
                return Ok(None);
            }
            _ => Expected::Nothing,
        };
        Ok(Some(Position::Page(page + 1)))
    }

    /// The same in a list that the service filters. Totals count what it was before; without any
    /// word of another page, a page with entries may have one behind it.
    fn position_in_filtered(
        &mut self,
        said: &Said,
        entries: usize,
    ) -> Result<Option<Position>, Contradiction> {
        let announced = self.announced(said)?;
        self.keep_total(said)?;
        let size = self.size.unwrap_or(PER_PAGE) as u64;
        let by_total = self.total.map(|total| self.pages.saturating_mul(size) < total);
        let more = announced.or(by_total).unwrap_or(entries > 0);
        Ok(more.then_some(Position::Page(self.pages + 1)))
    }

    /// How many entries a page holds.
    fn page_size(&mut self, said: &Said) -> Result<usize, Contradiction> {
        let size = *self.size.get_or_insert(said.size.unwrap_or(PER_PAGE));
        match said.size {
            Some(said) if said != size => {
                Err(Contradiction::PageSize { page: self.pages, before: size, said })
            }
            _ => Ok(size),
        }
    }

    /// Whether `Link` and `X-Next-Page` announce another page; `None` if they say nothing.
    fn announced(&self, said: &Said) -> Result<Option<bool>, Contradiction> {
        let page = self.pages;
        let by_link = match &said.link {
            Some(Some(link)) => {
                Some(Some(link.page.ok_or(Contradiction::Header { page, header: "Link" })?))
            }
            Some(None) => Some(None),
            None => None,
        };
        let named =
            [by_link, said.next].into_iter().flatten().flatten().find(|named| *named != page + 1);
        if let Some(said) = named {
            return Err(Contradiction::OtherNext { page, said });
        }
        match (by_link, said.next) {
            (Some(one), Some(other)) if one != other => Err(Contradiction::Announcements(page)),
            (one, other) => Ok(one.or(other).map(|next| next.is_some())),
        }
    }

    /// Keeps the total. One that falls says that an entry moved to a page that was read already.
    fn keep_total(&mut self, said: &Said) -> Result<(), Contradiction> {
        if let (Some(before), Some(said)) = (self.total, said.total)
            && said < before
        {
            return Err(Contradiction::Fewer { page: self.pages, before, said });
        }
        self.total = said.total.or(self.total);
        Ok(())
    }

    /// Whether another page follows, as `announced` and the last total say; `None` if neither says
    /// it.
    fn more(
        &mut self,
        said: &Said,
        announced: Option<bool>,
    ) -> Result<Option<bool>, Contradiction> {
        self.keep_total(said)?;
        let (sent, Some(said)) = (self.received, self.total) else { return Ok(announced) };
        match (sent.cmp(&said), announced) {
            (Ordering::Less, Some(false)) | (Ordering::Greater, _) => {
                Err(Contradiction::Total { said, sent })
            }
            (Ordering::Equal, Some(true)) => Err(Contradiction::Surplus { page: self.pages, said }),
            (Ordering::Less, _) => Ok(Some(true)),
            (Ordering::Equal, _) => Ok(Some(false)),
        }
    }
}

/// What tells an entry from others where no keys are given: its id; a variable, which has none, is
/// known by key and scope.
fn usual_identity(object: &Object) -> String {
    match (field(object, "id"), field(object, "key"), field(object, "environment_scope")) {
        (Some(id), _, _) => format!("id {id}"),
        (None, Some(key), scope) => format!("key {key} of scope {}", scope.unwrap_or(&Json::Null)),
        (None, None, _) => Json::Object(object.clone()).to_string(),
    }
}

/// A field that is there and not null.
fn field<'o>(object: &'o Object, name: &str) -> Option<&'o Json> {
    object.get(name).filter(|value| tells_apart(name, value))
}

fn is_path(name: &str) -> bool {
    name.split('_').any(|word| word == "path")
}

/// Whether `value` can be what tells things apart under this name: an id is a number, a path is text; a
/// mapping says nothing.
pub fn tells_apart(name: &str, value: &Json) -> bool {
    match value {
        Json::Null | Json::Object(_) => false,
        _ if name == "id" || name.ends_with("_id") => value.is_u64(),
        _ if is_path(name) => value.is_string(),
        _ => true,
    }
}

/// `objects` as the whole of a collection, for tests of what is concluded from one.
#[cfg(test)]
pub(crate) const fn whole(objects: Vec<Object>) -> Complete<Object> {
    Complete(objects)
}

/// How many bytes an object has as JSON, about.
fn length(object: &Object) -> usize {
    fn of(value: &Json) -> usize {
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => 5,
            Json::String(text) => text.len() + 3,
            Json::Array(items) => items.iter().map(of).sum::<usize>() + 2,
            Json::Object(object) => length(object),
        }
    }
    object.iter().map(|(key, value)| key.len() + 3 + of(value)).sum::<usize>() + 2
}

#[cfg(test)]
mod tests;
