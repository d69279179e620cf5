//! Pages of lists: `page` and `per_page` with all their headers, and keyset pages of projects.

use http::StatusCode;
use serde_json::Value;

use super::answer::{Answer, Failure, Result};
use super::call::Call;

const USUAL: i64 = 20;
const MOST: i64 = 100;
/// Longer lists are not counted: no total, no last page.
pub(crate) const COUNTED: i64 = 10_000;
/// Offset paging ends here if a list also has keyset pages (reference 1, 8).
const DEEPEST: i64 = 50_000;

/// One page of a list that is numbered from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) number: i64,
    pub(crate) size: i64,
}

impl Page {
    /// The requested page.
    pub(crate) fn of(call: &Call<'_>) -> Result<Self> {
        let number = call.params.integer("page")?.unwrap_or(1).max(1);
        let size = match call.params.integer("per_page")?.unwrap_or(USUAL) {
            0 => return Err(Failure::parameter("per_page", "has a value not allowed")),
            // A negative number counts as none.
            ..0 => USUAL,
            size => size.min(MOST),
        };
        let cap = call.service.profile.page_cap.map_or(MOST, |cap| cap.max(1) as i64);
        Ok(Self { number, size: size.min(cap) })
    }

    /// How many items come before this page.
    pub(crate) fn offset(self) -> i64 {
        (self.number - 1).saturating_mul(self.size)
    }

    /// Refuses pages beyond the limit of offset paging. `kind` is the type of the listed objects.
    pub(crate) fn bounded(self, kind: &str) -> Result<Self> {
        if self.number.saturating_mul(self.size) > DEEPEST {
            return Err(Failure::error(
                StatusCode::METHOD_NOT_ALLOWED,
                format!(
                    "Offset pagination has a maximum allowed offset of {DEEPEST} for requests that return objects \
                     of type {kind}. Remaining records can be retrieved using keyset pagination."
                ),
            ));
        }
        Ok(self)
    }

    /// Adds the headers to the answer with the items of this page. `more`: other items follow, also
    /// in a list of more than [`COUNTED`]. A larger `total` means "not counted".
    pub(crate) fn answer(
        self,
        call: &Call<'_>,
        mut answer: Answer,
        total: i64,
        more: bool,
    ) -> Answer {
        let last = ((total + self.size - 1) / self.size).max(1);
        let counted = total <= COUNTED;
        let next = more.then_some(self.number.saturating_add(1));
        // A page after the last has none.
        let is_empty = answer.body.as_deref() == Some(b"[]");
        let previous = (self.number > 1 && !is_empty).then(|| self.number - 1);
        let spelled = |page: Option<i64>| page.map(|page| page.to_string()).unwrap_or_default();

        let link = |page: i64, rel: &str| {
            let own = [("page", page.to_string()), ("per_page", self.size.to_string())];
            format!("<{}>; rel=\"{rel}\"", address(call, &own))
        };
        let mut links = Vec::new();
        links.extend(previous.map(|page| link(page, "prev")));
        links.extend(next.map(|page| link(page, "next")));
        links.push(link(1, "first"));
        if counted {
            links.push(link(last, "last"));
        }
        answer.headers = vec![
            ("link", links.join(", ")),
            ("x-next-page", spelled(next)),
            ("x-page", self.number.to_string()),
            ("x-per-page", self.size.to_string()),
            ("x-prev-page", spelled(previous)),
        ];
        if counted {
            answer.headers.push(("x-total", total.to_string()));
            answer.headers.push(("x-total-pages", last.to_string()));
        }
        answer
    }
}

/// Answers one page of a list that is completely in memory.
pub(crate) fn list(call: &Call<'_>, all: impl IntoIterator<Item = Value>) -> Result<Answer> {
    each(call, all.into_iter().map(Ok))
}

/// The same for items that may fail.
pub(crate) fn each(call: &Call<'_>, all: impl Iterator<Item = Result<Value>>) -> Result<Answer> {
    list_of(call, all.collect::<Result<Vec<_>>>()?, Ok)
}

/// The same for objects that `json` converts: only those on the page.
pub(crate) fn list_of<T>(
    call: &Call<'_>,
    all: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    json: impl FnMut(T) -> Result<Value>,
) -> Result<Answer> {
    let (page, all) = (Page::of(call)?, all.into_iter());
    let total = all.len() as i64;
    let own = all
        .skip(usize::try_from(page.offset()).unwrap_or(usize::MAX))
        .take(usize::try_from(page.size).unwrap_or(0));
    let items = own.map(json).collect::<Result<Vec<_>>>()?;
    let more = page.offset().saturating_add(page.size) < total;
    Ok(page.answer(call, Answer::ok(&items)?, total, more))
}

/// Completes one keyset page; `cursor` is the parameter and value that continue after its last item.
pub(crate) fn keyset(
    call: &Call<'_>,
    mut answer: Answer,
    cursor: Option<(&'static str, i64)>,
) -> Answer {
    if let Some((name, value)) = cursor {
        let link = address(call, &[(name, value.to_string())]);
        answer.headers.push(("link", format!("<{link}>; rel=\"next\"")));
    }
    answer
}

/// The URL of the call with some query parameters replaced.
fn address(call: &Call<'_>, replaced: &[(&str, String)]) -> String {
    let (path, query) = call.target.split_once('?').unwrap_or((&call.target, ""));
    let kept = query.split('&').filter(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        !pair.is_empty() && replaced.iter().all(|(other, _)| *other != name)
    });
    let query: Vec<String> = kept
        .map(str::to_owned)
        .chain(replaced.iter().map(|(name, value)| format!("{name}={value}")))
        .collect();
    format!("{}{path}?{}", call.base, query.join("&"))
}
