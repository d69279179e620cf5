//! Pages of lists: `page` and `per_page` with all their headers, and keyset pages of projects and users.

use crate::prelude::*;

const DEFAULT_PAGE_SIZE: i64 = 20;
const MAX_PAGE_SIZE: i64 = 100;
/// Longer lists are not counted: their responses have no total and no last page.
pub(crate) const MAX_COUNTED_ITEMS: i64 = 10_000;
/// The maximum offset in lists that also have keyset pages (reference 1, 8).
const MAX_OFFSET: i64 = 50_000;

/// One page of a list. Pages are numbered from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) number: i64,
    pub(crate) size: i64,
}

impl Page {
    /// The requested page.
    pub(crate) fn from_call(call: &Call<'_>) -> Result<Self> {
        let number = call.integer("page")?.unwrap_or(1).max(1);
        let size = match call.integer("per_page")?.unwrap_or(DEFAULT_PAGE_SIZE) {
            0 => return Err(ErrorResponse::parameter_error("per_page", "has a value not allowed")),
            // A negative number is ignored.
            ..0 => DEFAULT_PAGE_SIZE,
            size => size.min(MAX_PAGE_SIZE),
        };
        let cap = call.profile().page_cap.map_or(MAX_PAGE_SIZE, |cap| cap.max(1) as i64);
        Ok(Self { number, size: size.min(cap) })
    }

    /// The number of items before this page.
    pub(crate) fn offset(self) -> i64 {
        (self.number - 1).saturating_mul(self.size)
    }

    /// Refuses pages above the limit of offset paging. `type_name` is the type of the listed objects.
    pub(crate) fn check_offset(self, type_name: &str) -> Result<Self> {
        let is_refused = self.number.saturating_mul(self.size) > MAX_OFFSET;
        refuse_if(is_refused, || {
            let text = format!(
                "Offset pagination has a maximum allowed offset of {MAX_OFFSET} for requests that return objects \
                 of type {type_name}. Remaining records can be retrieved using keyset pagination."
            );
            ErrorResponse::error(StatusCode::METHOD_NOT_ALLOWED, text)
        })
        .map(|()| self)
    }

    /// Adds the paging headers to the response with the items of this page. `has_more` is true if
    /// other items follow. A `total` above [`MAX_COUNTED_ITEMS`] means "not counted".
    pub(crate) fn add_page_headers(
        self,
        call: &Call<'_>,
        mut answer: Answer,
        total: i64,
        has_more: bool,
    ) -> Answer {
        let last_page = ((total + self.size - 1) / self.size).max(1);
        let is_counted = total <= MAX_COUNTED_ITEMS;
        let next_page = has_more.then_some(self.number.saturating_add(1));
        // A page after the last one has no previous page.
        let is_empty = answer.body.as_deref() == Some(b"[]");
        let previous_page = (self.number > 1 && !is_empty).then(|| self.number - 1);
        let page_links = [
            (previous_page, "prev"),
            (next_page, "next"),
            (Some(1), "first"),
            (is_counted.then_some(last_page), "last"),
        ];
        let links: Vec<String> = page_links
            .into_iter()
            .filter_map(|(page, rel)| {
                let params = [("page", page?.to_string()), ("per_page", self.size.to_string())];
                Some(format!("<{}>; rel=\"{rel}\"", url_with_params(call, &params)))
            })
            .collect();
        let [next_text, previous_text] = [next_page, previous_page]
            .map(|page| page.map(|page| page.to_string()).unwrap_or_default());
        answer.headers = vec![
            ("link", links.join(", ")),
            ("x-next-page", next_text),
            ("x-page", self.number.to_string()),
            ("x-per-page", self.size.to_string()),
            ("x-prev-page", previous_text),
        ];
        if is_counted {
            answer.headers.push(("x-total", total.to_string()));
            answer.headers.push(("x-total-pages", last_page.to_string()));
        }
        answer
    }
}

/// Answers with one page of a list that is completely in memory.
pub(crate) fn list_page(call: &Call<'_>, items: impl IntoIterator<Item = Value>) -> Result<Answer> {
    list_objects(call, items.into_iter().collect::<Vec<_>>(), Ok)
}

/// Like [`list()`], for objects that `to_json` converts. Only the objects on the page are
/// converted.
pub(crate) fn list_objects<T>(
    call: &Call<'_>,
    objects: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    to_json: impl FnMut(T) -> Result<Value>,
) -> Result<Answer> {
    let (page, object_iter) = (Page::from_call(call)?, objects.into_iter());
    let total_count = object_iter.len() as i64;
    let page_objects = object_iter
        .skip(usize::try_from(page.offset()).unwrap_or(usize::MAX))
        .take(usize::try_from(page.size).unwrap_or(0));
    let items = page_objects.map(to_json).collect::<Result<Vec<_>>>()?;
    let has_more = page.offset().saturating_add(page.size) < total_count;
    Ok(page.add_page_headers(call, Answer::ok(&items)?, total_count, has_more))
}

/// True if the call requests keyset pages.
pub(crate) fn requests_keyset(call: &Call<'_>) -> Result<bool> {
    Ok(call.text("pagination")?.as_deref() == Some("keyset"))
}

/// Answers with a keyset page: the `objects` after the object whose id is the cursor.
pub(crate) fn list_keyset_page<T>(
    call: &Call<'_>,
    objects: &[T],
    read_id: impl Fn(&T) -> i64,
    to_json: impl FnMut(&T) -> Result<Value>,
) -> Result<Answer> {
    let cursor: Option<i64> = call.text("cursor")?.and_then(|cursor| cursor.parse().ok());
    let start = match cursor {
        None => Some(0),
        Some(last_id) => {
            objects.iter().position(|object| read_id(object) == last_id).map(|index| index + 1)
        }
    };
    let remaining_objects = start.map_or(&[][..], |index| &objects[index..]);
    let size = usize::try_from(Page::from_call(call)?.size).unwrap_or(usize::MAX);
    let page_objects = &remaining_objects[..size.min(remaining_objects.len())];
    let items = page_objects.iter().map(to_json).collect::<Result<Vec<_>>>()?;
    let last_object = page_objects.last().filter(|_| page_objects.len() < remaining_objects.len());
    let next_cursor = last_object.map(|last| ("cursor", read_id(last)));
    Ok(add_keyset_link(call, Answer::ok(&items)?, next_cursor))
}

/// Adds the link to the next keyset page. `next_param` is the query parameter that selects that page.
pub(crate) fn add_keyset_link(
    call: &Call<'_>,
    mut answer: Answer,
    next_param: Option<(&'static str, i64)>,
) -> Answer {
    if let Some((name, value)) = next_param {
        let link = url_with_params(call, &[(name, value.to_string())]);
        answer.headers.push(("link", format!("<{link}>; rel=\"next\"")));
    }
    answer
}

/// The URL of the call with some query parameters replaced.
fn url_with_params(call: &Call<'_>, new_params: &[(&str, String)]) -> String {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let other_pairs = query.split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        !pair.is_empty() && new_params.iter().all(|(new_name, _)| *new_name != name)
    });
    let query: Vec<String> = other_pairs
        .map(str::to_owned)
        .chain(new_params.iter().map(|(name, value)| format!("{name}={value}")))
        .collect();
    format!("{}{path}?{}", call.base_url, query.join("&"))
}
