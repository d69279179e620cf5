//! Reading a paged collection to its end, and the proof that it was.
//!
//! [`Complete`] is a collection that was read to its end. Only [`Pager::finish`] makes one, so whoever holds one may take what is
//! not in it for absent. A [`Pager`] does no IO: it says what to ask next and judges what came back.
//!
//! ```text
//! let mut pager = Pager::new(request);
//! while let Some(request) = pager.next() {
//!     let (headers, objects) = send(request);
//!     pager.accept(&headers, objects)?;
//! }
//! let complete = pager.finish()?;
//! ```
//!
//! Where the next page is: the `Link` header's `rel="next"` says it, else `X-Next-Page` (empty: there is none), else a full page, or an
//! `X-Total` beyond what has come, means that there may be another. Of a link only its paging parameters are used, never its address: a service whose links point at
//! another host must not be able to send the token there.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
};

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::{
    operation::{PROJECT_LIST, Read, Request},
    value::Object,
};

/// How many objects a page is asked to hold: the most that the service gives.
pub const PER_PAGE: usize = 100;

/// More pages than any collection has; a service that still says "next" is going round in circles.
const MAX_PAGES: u32 = 10_000;

/// The parameters that are taken from a `Link`.
const PAGING: [&str; 5] = ["page", "per_page", "id_after", "id_before", "cursor"];

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

/// Why a collection could not be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The service sent one object twice, and it was not the same; it changed while it was read. Reading again helps.
    #[error("{0} changed while the list was read")]
    Changed(String),
    /// The service says that there is more, but sends what it has sent before.
    #[error("the list goes round in circles at page {0}")]
    Loop(u32),
    /// More than 10,000 pages.
    #[error("the list has more than {MAX_PAGES} pages")]
    Endless,
    /// A paging header that cannot be understood.
    #[error("the `{0}` header of the list cannot be understood")]
    Header(&'static str),
    /// The end was not reached.
    #[error("the list was not read to its end")]
    Unfinished,
}

/// Reads one collection, page by page.
#[derive(Debug)]
pub struct Pager {
    base: Request<Read>,
    /// The parameters of the next page; `None` at the end.
    next: Option<Vec<(&'static str, String)>>,
    /// How many pages were accepted.
    pages: u32,
    keyset: bool,
    /// How many objects the pages held, those that came twice counted twice.
    received: usize,
    asked: BTreeSet<Vec<(&'static str, String)>>,
    /// Whether pages are kept for the whole collection, or only passed on.
    keeps: bool,
    objects: Vec<Object>,
    /// Where in `objects` an identity stands; nothing that counts if pages are only passed on.
    known: BTreeMap<String, usize>,
    total_pages: Option<u64>,
    /// Whether the end was proven.
    ended: bool,
}

impl Pager {
    /// Starts before the first page of `request`.
    ///
    /// The list of all projects is read by keyset, because by number the service stops at 50,000 records (reference 1, 8); but a keyset
    /// has an order of its own, so a request that asks for one is read by number.
    pub fn new(request: Request<Read>) -> Self {
        let keyset = request.operation == PROJECT_LIST.row() && !["order_by", "sort"].iter().any(|name| request.has_query(name));
        let request = request.query("per_page", PER_PAGE);
        let base = if keyset { request.query("pagination", "keyset").query("order_by", "id").query("sort", "asc") } else { request };
        let next = if keyset { vec![] } else { vec![("page", "1".to_owned())] };
        Self {
            base,
            next: Some(next),
            pages: 0,
            received: 0,
            keyset,
            asked: BTreeSet::new(),
            keeps: true,
            objects: Vec::new(),
            known: BTreeMap::new(),
            total_pages: None,
            ended: false,
        }
    }

    /// As [`new`](Self::new), for a list that is only looked through: each page is passed on and forgotten, so that a long one takes no more
    /// memory than a short one. Such a pager never makes a whole collection.
    pub fn passing(request: Request<Read>) -> Self {
        Self { keeps: false, ..Self::new(request) }
    }

    /// What to ask next; `None` at the end.
    pub fn next(&self) -> Option<Request<Read>> {
        let parameters = self.next.as_ref()?;
        Some(parameters.iter().fold(self.base.clone(), |request, (name, value)| request.query(*name, value)))
    }

    /// Takes the page that [`next`](Self::next) asked for, and returns what it brought that earlier pages had not.
    ///
    /// # Errors
    /// A [`PageError`]; the pager is then of no more use.
    pub fn accept(&mut self, headers: &HeaderMap, page: Vec<Object>) -> Result<&[Object], PageError> {
        let asked = self.next.take().ok_or(PageError::Unfinished)?;
        self.pages += 1;
        self.received += page.len();
        self.total_pages = header(headers, "x-total-pages").and_then(|v| v.parse().ok()).or(self.total_pages);
        let next = self.find_next(headers, &asked, &page)?;
        let empty = page.is_empty();
        if !self.keeps {
            self.objects.clear();
        }
        let before = self.objects.len();
        for object in page {
            self.add(object)?;
        }
        self.asked.insert(asked);
        if let Some(next) = &next {
            let nothing_new = !empty && self.objects.len() == before;
            if nothing_new || self.asked.contains(next) {
                return Err(PageError::Loop(self.pages));
            }
            if self.pages >= MAX_PAGES {
                return Err(PageError::Endless);
            }
        }
        self.ended = next.is_none();
        self.next = next;
        Ok(&self.objects[before..])
    }

    /// How many pages there are, if the service said so; it does not for more than 10,000 records.
    pub const fn total_pages(&self) -> Option<u64> {
        self.total_pages
    }

    /// The whole collection, each object once.
    ///
    /// # Errors
    /// [`PageError::Unfinished`] if there is still something to ask, a page was refused, or pages were only passed on.
    pub fn finish(self) -> Result<Complete<Object>, PageError> {
        if self.ended && self.keeps { Ok(Complete(self.objects)) } else { Err(PageError::Unfinished) }
    }

    fn add(&mut self, object: Object) -> Result<(), PageError> {
        let identity = identity(&object);
        match self.known.get(&identity) {
            None => {
                self.known.insert(identity, self.objects.len());
                self.objects.push(object);
                Ok(())
            }
            // Whoever looks through a list has seen this one, and what was seen first counts.
            Some(_) if !self.keeps => Ok(()),
            // An object that was added while the list was read moves its neighbour to the next page.
            Some(&at) if self.objects[at] == object => Ok(()),
            Some(_) => Err(PageError::Changed(identity)),
        }
    }

    /// The parameters of the page after this one, if there is one.
    fn find_next(
        &self,
        headers: &HeaderMap,
        asked: &[(&'static str, String)],
        page: &[Object],
    ) -> Result<Option<Vec<(&'static str, String)>>, PageError> {
        if let Some(link) = next_link(headers)? {
            let parameters = paging_parameters(&link)?;
            return if parameters.is_empty() { Err(PageError::Header("Link")) } else { Ok(Some(parameters)) };
        }
        match header(headers, "x-next-page") {
            // A list by keyset has no page numbers; where its links were lost on the way, this says nothing.
            Some("") if !self.keyset => return Ok(None),
            Some("") => {}
            Some(number) => {
                let number: u32 = number.parse().map_err(|_| PageError::Header("X-Next-Page"))?;
                return Ok(Some(vec![("page", number.to_string())]));
            }
            None => {}
        }
        // A service that gives fewer than it was asked for says so here; a full page is one that has what it gives.
        let number = |name| header(headers, name).and_then(|v| v.parse::<usize>().ok());
        let full = page.len() >= number("x-per-page").unwrap_or(PER_PAGE).clamp(1, PER_PAGE);
        let more = number("x-total").is_some_and(|total| total > self.received);
        if page.is_empty() || !(full || more) {
            return Ok(None);
        }
        if self.keyset {
            let last = page.last().and_then(|o| o.get("id")).and_then(serde_json::Value::as_u64).ok_or(PageError::Unfinished)?;
            return Ok(Some(vec![("id_after", last.to_string())]));
        }
        let number = asked.iter().find(|(name, _)| *name == "page").and_then(|(_, v)| v.parse::<u32>().ok());
        Ok(Some(vec![("page", (number.unwrap_or(self.pages) + 1).to_string())]))
    }
}

/// What makes an object of a list the same as another: its id; a variable, which has none, is known by key and scope.
fn identity(object: &Object) -> String {
    match (object.get("id"), object.get("key"), object.get("environment_scope")) {
        (Some(id), _, _) => format!("id {id}"),
        (None, Some(key), scope) => format!("key {key} of scope {}", scope.unwrap_or(&serde_json::Value::Null)),
        (None, None, _) => serde_json::Value::Object(object.clone()).to_string(),
    }
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// The target of the link whose relation is `next` (RFC 8288), over all `Link` headers.
fn next_link(headers: &HeaderMap) -> Result<Option<String>, PageError> {
    for value in headers.get_all("link") {
        let mut rest = value.to_str().map_err(|_| PageError::Header("Link"))?;
        while let Some(start) = rest.find('<') {
            let end = rest[start..].find('>').ok_or(PageError::Header("Link"))? + start;
            let target = &rest[start + 1..end];
            let (parameters, after) = split_outside_quotes(&rest[end + 1..], ',');
            if relations(parameters).any(|relation| relation.eq_ignore_ascii_case("next")) {
                return Ok(Some(target.to_owned()));
            }
            rest = after;
        }
    }
    Ok(None)
}

/// The relations that a link's parameters, such as `; rel="next last"`, name.
fn relations(parameters: &str) -> impl Iterator<Item = &str> {
    let mut rest = parameters;
    let each = std::iter::from_fn(move || {
        (!rest.is_empty()).then(|| {
            let (one, after) = split_outside_quotes(rest, ';');
            rest = after;
            one
        })
    });
    each.filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("rel"))
        .flat_map(|(_, value)| value.trim().trim_matches('"').split_ascii_whitespace())
}

/// Splits at the first `separator` that stands outside of double quotes.
fn split_outside_quotes(text: &str, separator: char) -> (&str, &str) {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            c if c == separator && !quoted => return (&text[..at], &text[at + c.len_utf8()..]),
            _ => {}
        }
    }
    (text, "")
}

/// The paging parameters of a link's query, decoded.
fn paging_parameters(link: &str) -> Result<Vec<(&'static str, String)>, PageError> {
    let query = link.split('#').next().and_then(|l| l.split_once('?')).map_or("", |(_, query)| query);
    let mut found = BTreeMap::new();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        if let Some(known) = PAGING.into_iter().find(|known| *known == name) {
            let value = value.replace('+', " ");
            let value = percent_decode_str(&value).decode_utf8().map_err(|_| PageError::Header("Link"))?;
            found.insert(known, value.into_owned());
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests;
