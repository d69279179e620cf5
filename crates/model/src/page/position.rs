//! Finds the position of the next page of a list, and contradictions between pages and headers.

use std::cmp::Ordering;

use http::HeaderMap;

use super::{
    Contradiction, ExpectedEntries, PER_PAGE, PagePosition, Pager,
    headers::{PageLink, PagingHeaders},
};
use crate::value::Json;

/// The position of the next page, if there is one.
type NextPosition = Result<Option<PagePosition>, Contradiction>;

impl Pager {
    /// The position of the page after the page with the entries `self.objects[first_index..]`;
    /// `None` at the end.
    pub(super) fn next_position(
        &mut self,
        headers: &HeaderMap,
        first_index: usize,
    ) -> NextPosition {
        let headers = PagingHeaders::read(headers, self.page_count)?;
        self.total_pages = headers.total_pages.or(self.total_pages);
        if self.base_request.operation.unpaged && headers == PagingHeaders::default() {
            Ok(None)
        } else if self.uses_keyset {
            self.next_position_by_id(&headers, first_index)
        } else {
            self.next_position_by_number(&headers, self.objects.len() - first_index)
        }
    }

    /// The next position in a list by keyset. A link shows whether another page follows, and may
    /// contain a cursor. Without a cursor, the next page starts after the last received id, so that
    /// a wrong link cannot skip an entry.
    fn next_position_by_id(&mut self, headers: &PagingHeaders, first_index: usize) -> NextPosition {
        for object in &self.objects[first_index..] {
            let id = object
                .get("id")
                .and_then(Json::as_u64)
                .filter(|id| self.last_id.is_none_or(|last_id| last_id < *id));
            self.last_id = Some(id.ok_or_else(|| {
                Contradiction(format!(
                    "the ids on page {} of the list do not ascend",
                    self.page_count
                ))
            })?);
        }
        let entry_count = self.objects.len() - first_index;
        let page_size = headers.page_size.unwrap_or(PER_PAGE);
        let next_link = headers.next_link.as_ref().and_then(Option::as_ref);
        if entry_count == 0 {
            return match next_link {
                Some(_) => Err(Contradiction::short_page(self.page_count, entry_count, page_size)),
                None => Ok(None),
            };
        }
        let Some(last_id) = self.last_id else { return Ok(None) };
        if next_link.and_then(|link| link.id_after).is_some_and(|start_id| start_id < last_id) {
            let header = format!("the `Link` header of page {} of the list", self.page_count);
            return Err(Contradiction(format!("{header} leads backwards")));
        }
        let has_more = next_link.is_some()
            || self.keeps_entries
            || (headers.next_link.is_none() && entry_count >= page_size);
        let cursor =
            next_link.filter(|link| link.id_after.is_none()).and_then(|link| link.cursor.clone());
        Ok(has_more.then(|| cursor.map_or(PagePosition::After(last_id), PagePosition::Cursor)))
    }

    /// The next position in a list by page number, after a page with `entry_count` entries.
    fn next_position_by_number(
        &mut self,
        headers: &PagingHeaders,
        entry_count: usize,
    ) -> NextPosition {
        let page = self.page_count;
        if let Some(received_page) = headers.page.filter(|number| *number != page) {
            let message =
                format!("requested page {page} of the list, received page {received_page}");
            return Err(Contradiction(message));
        }
        let page_size = self.page_size(headers)?;
        if entry_count > page_size {
            let message = format!("has {entry_count} entries, more than the {page_size} of a page");
            return Err(Contradiction::on_page(page, &message));
        }
        if self.is_filtered {
            return self.next_filtered_position(headers, entry_count);
        }
        match self.expected_entries {
            ExpectedEntries::Announced if entry_count == 0 => {
                return Err(Contradiction::on_page(page, "is empty although it was announced"));
            }
            ExpectedEntries::Nothing if entry_count > 0 => {
                let message = "has entries although the page before it was the last";
                return Err(Contradiction::on_page(page, message));
            }
            _ => {}
        }
        let is_next_announced = self.announces_next_page(headers)?;
        let has_more = self.has_next_page(headers, is_next_announced)?;
        let is_full = entry_count == page_size;
        self.expected_entries = match has_more {
            Some(true) if !is_full => {
                return Err(Contradiction::short_page(page, entry_count, page_size));
            }
            Some(true) => ExpectedEntries::Announced,
            _ if entry_count == 0 => return Ok(None),
            None if is_full => ExpectedEntries::Possible,
            _ if !self.keeps_entries => return Ok(None),
            // The total alone does not prove the end, because a wrong total would end the list too early.
            Some(false) if self.total.is_some() && (is_next_announced.is_some() || !is_full) => {
                return Ok(None);
            }
            _ => ExpectedEntries::Nothing,
        };
        Ok(Some(PagePosition::Page(page + 1)))
    }

    /// The next position in a list from which the service removes entries after paging. The total
    /// includes the removed entries. If the headers do not show whether another page follows,
    /// another page is requested after every page with entries.
    fn next_filtered_position(
        &mut self,
        headers: &PagingHeaders,
        entry_count: usize,
    ) -> NextPosition {
        let is_next_announced = self.announces_next_page(headers)?;
        self.update_total(headers)?;
        let page_size = self.page_size.unwrap_or(PER_PAGE) as u64;
        let total_shows_more =
            self.total.map(|total| self.page_count.saturating_mul(page_size) < total);
        let has_more = is_next_announced.or(total_shows_more).unwrap_or(entry_count > 0);
        Ok(has_more.then_some(PagePosition::Page(self.page_count + 1)))
    }

    /// The number of entries in a full page.
    fn page_size(&mut self, headers: &PagingHeaders) -> Result<usize, Contradiction> {
        let page_size = *self.page_size.get_or_insert(headers.page_size.unwrap_or(PER_PAGE));
        match headers.page_size {
            Some(received_size) if received_size != page_size => {
                let text = format!(
                    "announces {received_size} entries per page, earlier pages {page_size}"
                );
                Err(Contradiction::on_page(self.page_count, &text))
            }
            _ => Ok(page_size),
        }
    }

    /// True if `Link` and `X-Next-Page` announce another page; `None` if neither is present.
    fn announces_next_page(&self, headers: &PagingHeaders) -> Result<Option<bool>, Contradiction> {
        let page = self.page_count;
        let linked_page = match &headers.next_link {
            Some(Some(PageLink { page: None, .. })) => {
                return Err(Contradiction::malformed_header(page, "Link"));
            }
            link => link.as_ref().map(|link| link.as_ref().and_then(|link| link.page)),
        };
        let mut announced_pages = [linked_page, headers.next_page].into_iter().flatten().flatten();
        if let Some(announced_page) = announced_pages.find(|announced| *announced != page + 1) {
            let text = format!("announces page {announced_page} as the next one");
            return Err(Contradiction::on_page(page, &text));
        }
        match (linked_page, headers.next_page) {
            (Some(link_page), Some(header_page)) if link_page != header_page => {
                let headers =
                    format!("`Link` and `X-Next-Page` headers of page {page} of the list");
                Err(Contradiction(format!("the {headers} contradict each other")))
            }
            (link_page, header_page) => Ok(link_page.or(header_page).map(|next| next.is_some())),
        }
    }

    /// Stores the total. Refuses a total that is lower than before. In this case an entry was
    /// removed, so another entry may have moved to a page that was already read.
    fn update_total(&mut self, headers: &PagingHeaders) -> Result<(), Contradiction> {
        if let (Some(earlier_total), Some(total)) = (self.total, headers.total)
            && total < earlier_total
        {
            let message =
                format!("announces {total} entries in all, earlier pages {earlier_total}");
            return Err(Contradiction::on_page(self.page_count, &message));
        }
        self.total = headers.total.or(self.total);
        Ok(())
    }

    /// True if another page follows, according to `is_next_announced` and the last total. `None` if
    /// both are missing.
    fn has_next_page(
        &mut self,
        headers: &PagingHeaders,
        is_next_announced: Option<bool>,
    ) -> Result<Option<bool>, Contradiction> {
        self.update_total(headers)?;
        let (received_count, Some(total)) = (self.received_count, self.total) else {
            return Ok(is_next_announced);
        };
        match (received_count.cmp(&total), is_next_announced) {
            (Ordering::Less, Some(false)) | (Ordering::Greater, _) => Err(Contradiction(format!(
                "the service announced {total} entries and sent {received_count}"
            ))),
            (Ordering::Equal, Some(true)) => {
                let message =
                    format!("announces another page although all {total} entries were sent");
                Err(Contradiction::on_page(self.page_count, &message))
            }
            (Ordering::Less, _) => Ok(Some(true)),
            (Ordering::Equal, _) => Ok(Some(false)),
        }
    }
}
