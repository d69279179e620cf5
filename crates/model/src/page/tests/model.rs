//! A model of the service, and the ways in which its responses can be damaged.

use std::collections::BTreeSet;

use super::*;

const HEADER_NAMES: [&str; 5] = ["link", "x-next-page", "x-page", "x-per-page", "x-total"];

/// A service with the entries 1 to `count`. The service sends at most `page_size` entries per page,
/// and the headers in `sent_headers`.
#[derive(Clone, Debug)]
struct ServiceModel {
    count: u64,
    page_size: u64,
    uses_keyset: bool,
    sent_headers: BTreeSet<&'static str>,
}

/// A response: its headers, and the ids of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ModelResponse {
    pairs: Vec<(&'static str, String)>,
    ids: Vec<u64>,
}

impl ModelResponse {
    /// Replaces the value of the header `name`, if the response has this header.
    fn replace_header(mut self, name: &str, value: impl ToString) -> Self {
        for pair in self.pairs.iter_mut().filter(|pair| pair.0 == name) {
            pair.1 = value.to_string();
        }
        self
    }
}

impl ServiceModel {
    fn query_number(target: &str, name: &str) -> Option<u64> {
        target
            .split_once('?')?
            .1
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    fn respond(&self, target: &str) -> ModelResponse {
        assert_eq!(Self::query_number(target, "per_page"), Some(100), "{target}");
        if self.uses_keyset {
            self.page_response_after(Self::query_number(target, "id_after").unwrap_or(0))
        } else {
            self.page_response(Self::query_number(target, "page").unwrap())
        }
    }

    fn page_response(&self, page: u64) -> ModelResponse {
        let start = (page - 1) * self.page_size;
        let end = (start + self.page_size).min(self.count);
        let next = if end < self.count { (page + 1).to_string() } else { String::new() };
        let mut link = "<https://evil.example/x?page=1&private_token=y>; rel=\"first\"".to_owned();
        if !next.is_empty() {
            link += &format!(
                ", <https://evil.example/x?page={next}&per_page={}&simple=true>; rel=\"next\"",
                self.page_size
            );
        }
        let mut pairs = vec![
            ("link", link),
            ("x-next-page", next),
            ("x-page", page.to_string()),
            ("x-per-page", self.page_size.to_string()),
            ("x-total", self.count.to_string()),
        ];
        pairs.retain(|(name, _)| self.sent_headers.contains(name));
        ModelResponse { pairs, ids: (start + 1..=end).collect() }
    }

    /// A page by keyset. As in the real service, the last page with entries has a link too.
    fn page_response_after(&self, id: u64) -> ModelResponse {
        let ids: Vec<_> =
            (id + 1..=self.count).take(usize::try_from(self.page_size).unwrap()).collect();
        let link = ids.last().map(|last| {
            ("link", format!("<https://evil.example/x?id_after={last}&simple=true>; rel=\"next\""))
        });
        let mut pairs: Vec<_> = link.into_iter().collect();
        pairs.retain(|(name, _)| self.sent_headers.contains(name));
        ModelResponse { pairs, ids }
    }

    fn page_count(&self) -> u64 {
        self.count.div_ceil(self.page_size)
    }

    /// The number of calls that are needed to read a complete list.
    fn min_calls(&self) -> u64 {
        let sends = |name| self.sent_headers.contains(name);
        let is_last_page_full = self.count.is_multiple_of(self.page_size);
        let is_proven = !self.uses_keyset
            && sends("x-total")
            && (sends("link") || sends("x-next-page") || !is_last_page_full);
        if self.count == 0 { 1 } else { self.page_count() + u64::from(!is_proven) }
    }

    fn pager(&self) -> Pager {
        if self.uses_keyset {
            Pager::new(PROJECT_LIST.request(), EntryKeys::with_id(&[])).unwrap()
        } else {
            hook_pager()
        }
    }

    /// Reads the list, with each response changed by `change`. Returns the ids in ascending order,
    /// and the number of calls.
    fn read(
        &self,
        change: impl Fn(&str, ModelResponse) -> ModelResponse,
    ) -> (Result<Vec<u64>, PageError>, u64) {
        let mut pager = self.pager();
        let mut call_count = 0;
        while let Some(request) = pager.next_request() {
            let target = request.path_and_query();
            assert!(!target.contains("token") && !target.contains("simple"), "{target}");
            let response = change(&target, self.respond(&target));
            call_count += 1;
            let pairs: Vec<_> =
                response.pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
            if let Err(error) = pager.accept(&make_headers(&pairs), objects_with_ids(response.ids))
            {
                return (Err(error), call_count);
            }
        }
        let result = pager.finish().map(|objects| {
            let mut ids: Vec<_> =
                objects.iter().map(|object| object["id"].as_u64().unwrap()).collect();
            ids.sort_unstable();
            ids
        });
        (result, call_count)
    }

    fn all_ids(&self) -> Vec<u64> {
        (1..=self.count).collect()
    }
}

/// Lists with about the size of one or two pages, with many combinations of headers. Pages of at
/// most 3 entries announce their size. Pages of 100 entries may omit the size.
fn every_model(uses_keyset: bool) -> Vec<ServiceModel> {
    let small_lists = (1..=3).flat_map(|size| (0..=7).map(move |count| (count, size)));
    let large_lists = [0, 1, 99, 100, 101, 200, 201].map(|count| (count, 100));
    let sets = (0..1 << HEADER_NAMES.len()).map(|bits: u32| {
        let chosen_names = HEADER_NAMES.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
        chosen_names.map(|(_, name)| name).collect::<BTreeSet<_>>()
    });
    let header_sets: Vec<_> = sets.collect();
    let models = small_lists.chain(large_lists).flat_map(|(count, size)| {
        let sets = header_sets
            .iter()
            .filter(move |names| uses_keyset || size == 100 || names.contains("x-per-page"));
        sets.map(move |names| ServiceModel {
            count,
            page_size: size,
            uses_keyset,
            sent_headers: names.clone(),
        })
    });
    models.collect()
}

#[test]
fn an_undamaged_list_needs_the_fewest_calls() {
    for model in [every_model(false), every_model(true)].concat() {
        let (result, call_count) = model.read(|_, response| response);
        assert_eq!((result, call_count), (Ok(model.all_ids()), model.min_calls()), "{model:?}");
    }
}

/// A change that damages the response to one page only.
#[derive(Clone, Copy, Debug)]
enum Damage {
    DropFirst,
    DropLast,
    EmptyPage,
    RepeatEntry,
    RepeatPage,
    SendNextPage,
    SwapWithNext,
    NextPage(&'static str),
    PageNumber(u64),
    LinkToNext(u64),
    RemoveLink,
    LowerTotal,
    RaiseTotal,
    OtherSize,
}

const DAMAGES: [Damage; 16] = [
    Damage::DropFirst,
    Damage::DropLast,
    Damage::EmptyPage,
    Damage::RepeatEntry,
    Damage::RepeatPage,
    Damage::SendNextPage,
    Damage::SwapWithNext,
    Damage::NextPage(""),
    Damage::NextPage("1"),
    Damage::NextPage("99"),
    Damage::PageNumber(7),
    Damage::LinkToNext(2),
    Damage::RemoveLink,
    Damage::LowerTotal,
    Damage::RaiseTotal,
    Damage::OtherSize,
];

impl Damage {
    /// The response to `page` when the response to page `damaged_page` is damaged.
    fn damaged_response(self, model: &ServiceModel, damaged_page: u64, page: u64) -> ModelResponse {
        let response = model.page_response(page);
        if let Self::SwapWithNext = self {
            return swapped_response(model, damaged_page, page);
        }
        if page != damaged_page {
            return response;
        }
        match self {
            Self::DropFirst => {
                ModelResponse { ids: response.ids.into_iter().skip(1).collect(), ..response }
            }
            Self::DropLast => ModelResponse {
                ids: response.ids[..response.ids.len().saturating_sub(1)].to_vec(),
                ..response
            },
            Self::EmptyPage => ModelResponse { ids: vec![], ..response },
            Self::RepeatEntry => {
                let last = response.ids.len().saturating_sub(1);
                let ids = response.ids[..last]
                    .iter()
                    .copied()
                    .chain((!response.ids.is_empty()).then(|| response.ids[0].max(2) - 1));
                ModelResponse { ids: ids.collect(), ..response }
            }
            Self::RepeatPage => {
                ModelResponse { ids: model.page_response(page.max(2) - 1).ids, ..response }
            }
            Self::SendNextPage => model.page_response(page + 1),
            Self::SwapWithNext => response,
            Self::NextPage(next) => response.replace_header("x-next-page", next),
            Self::PageNumber(number) => response.replace_header("x-page", number),
            Self::LinkToNext(distance) => {
                response.replace_header("link", format!("<x?page={}>; rel=next", page + distance))
            }
            Self::RemoveLink => ModelResponse {
                pairs: response.pairs.into_iter().filter(|(name, _)| *name != "link").collect(),
                ..response
            },
            Self::LowerTotal => response.replace_header("x-total", model.count.saturating_sub(1)),
            Self::RaiseTotal => response.replace_header("x-total", model.count + 1),
            Self::OtherSize => response.replace_header("x-per-page", model.page_size + 1),
        }
    }
}

/// The response to `page` when the last entry of page `damaged_page` and the first of the next page
/// are swapped.
fn swapped_response(model: &ServiceModel, damaged_page: u64, page: u64) -> ModelResponse {
    let (mut current, mut next) =
        (model.page_response(damaged_page), model.page_response(damaged_page + 1));
    if let (Some(last), Some(first)) = (current.ids.last_mut(), next.ids.first_mut()) {
        std::mem::swap(last, first);
    }
    match page {
        page if page == damaged_page => current,
        page if page == damaged_page + 1 => next,
        page => model.page_response(page),
    }
}

#[test]
fn with_a_total_every_damage_is_detected() {
    let mut detected_damages = BTreeSet::new();
    for model in
        every_model(false).into_iter().filter(|model| model.sent_headers.contains("x-total"))
    {
        for (damage, damaged_page) in DAMAGES.into_iter().flat_map(|damage| {
            (1..=model.page_count()).map(move |damaged_page| (damage, damaged_page))
        }) {
            let (result, call_count) = model.read(|target, _| {
                damage.damaged_response(
                    &model,
                    damaged_page,
                    ServiceModel::query_number(target, "page").unwrap(),
                )
            });
            assert!(
                call_count <= model.min_calls() + 1,
                "{damage:?} of page {damaged_page} of {model:?}: {call_count} calls"
            );
            match result {
                Ok(ids) => assert_eq!(
                    ids,
                    model.all_ids(),
                    "{damage:?} of page {damaged_page} of {model:?}"
                ),
                Err(error) => {
                    assert!(matches!(error, PageError::Contradiction(_)), "{error}");
                    detected_damages.insert(format!("{damage:?}"));
                }
            }
        }
    }
    // Swapped entries are all in the list, and a missing link is harmless if another header
    // replaces it.
    let undetected_damages =
        [Damage::SwapWithNext, Damage::RemoveLink].map(|damage| format!("{damage:?}"));
    let expected: BTreeSet<_> = DAMAGES
        .iter()
        .map(|damage| format!("{damage:?}"))
        .filter(|damage| !undetected_damages.contains(damage))
        .collect();
    assert_eq!(detected_damages, expected);
}

/// Without a total, a loss is only visible if it contradicts the page size, the pages before the
/// last, or the announced end.
#[test]
fn without_a_total_some_losses_are_detected() {
    let losses = [
        Damage::EmptyPage,
        Damage::RepeatEntry,
        Damage::SendNextPage,
        Damage::NextPage(""),
        Damage::NextPage("99"),
    ];
    for model in every_model(false).into_iter().filter(|model| {
        !model.sent_headers.contains("x-total") && model.sent_headers.contains("x-next-page")
    }) {
        for (damage, damaged_page) in losses.into_iter().flat_map(|damage| {
            (1..=model.page_count()).map(move |damaged_page| (damage, damaged_page))
        }) {
            let (result, _) = model.read(|target, _| {
                damage.damaged_response(
                    &model,
                    damaged_page,
                    ServiceModel::query_number(target, "page").unwrap(),
                )
            });
            // In a list of one page, no other page proves that entries are missing.
            let is_undetectable = model.page_count() == 1
                && matches!(damage, Damage::EmptyPage | Damage::SendNextPage);
            if !is_undetectable && result.as_ref().is_ok_and(|ids| *ids != model.all_ids()) {
                panic!("{damage:?} of page {damaged_page} of {model:?}: {result:?}");
            }
        }
    }
}

#[test]
fn a_wrong_link_skips_no_entry_of_a_keyset_list() {
    for model in every_model(true)
        .into_iter()
        .filter(|model| model.page_size <= 3 && model.sent_headers.contains("link"))
    {
        for (last_id, linked_id) in (0..=model.count)
            .flat_map(|last_id| (0..=model.count + 2).map(move |linked_id| (last_id, linked_id)))
        {
            let (result, _) = model.read(|target, response| {
                let is_damaged = ServiceModel::query_number(target, "id_after").unwrap_or(0)
                    == last_id
                    && !response.ids.is_empty();
                if is_damaged {
                    response.replace_header("link", format!("<x?id_after={linked_id}>; rel=next"))
                } else {
                    response
                }
            });
            assert!(
                result.is_err() || result == Ok(model.all_ids()),
                "{last_id} {linked_id} {model:?}: {result:?}"
            );
        }
    }
}
