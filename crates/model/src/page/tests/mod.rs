//! Tests of the pager with hand-made pages, and with a model of the service. The responses of the
//! model are tested without damage, and with each single damage.

mod model;

use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::operation::{HOOK_LIST, NOTE_LIST, PROJECT_LIST, VARIABLE_LIST};
use crate::operation::{Method, Operation, ResponseBody, collection};

fn contradiction(text: &str) -> PageError {
    Contradiction(text.to_owned()).into()
}

pub(super) fn make_headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn object(json: &Json) -> Object {
    json.as_object().unwrap().clone()
}

fn objects_with_ids(ids: impl IntoIterator<Item = u64>) -> Vec<Object> {
    ids.into_iter().map(|id| object(&json!({"id": id}))).collect()
}

fn hook_pager() -> Pager {
    Pager::new(HOOK_LIST.request().with_argument("id", 1), EntryKeys::with_id(&[])).unwrap()
}

/// Headers from `text`, one `name: value` per line.
fn parse_headers(text: &str) -> HeaderMap {
    let pairs: Vec<_> = text
        .lines()
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name, value.trim()))
        .collect();
    make_headers(&pairs)
}

/// The result of reading a list of hooks whose responses are `pages`.
fn read_list(pages: &[(&str, Vec<Object>)]) -> Result<Vec<Object>, PageError> {
    let mut pager = hook_pager();
    for (text, page) in pages {
        assert!(pager.next_request().is_some(), "asks for {} pages only", pager.page_count);
        pager.accept(&parse_headers(text), page.clone())?;
    }
    pager.finish().map(CompleteList::into_vec)
}

#[test]
fn each_contradiction_is_named_with_its_page() {
    let first_page = || ("x-per-page: 2\nx-next-page: 2", objects_with_ids(1..=2));
    let table = [
        (
            vec![("x-total: 20\nx-next-page:", objects_with_ids(1..=18))],
            "the service announced 20 entries and sent 18",
        ),
        (
            vec![("x-total: 1", objects_with_ids(1..=2))],
            "the service announced 1 entries and sent 2",
        ),
        (
            vec![("x-page: 3", objects_with_ids(1..=2))],
            "requested page 1 of the list, received page 3",
        ),
        (
            vec![("x-next-page: 99", objects_with_ids(1..=100))],
            "page 1 of the list announces page 99 as the next one",
        ),
        (
            vec![("link: <x?page=7>; rel=next", objects_with_ids(1..=100))],
            "page 1 of the list announces page 7 as the next one",
        ),
        (
            vec![("link: <x?page=2>; rel=next\nx-next-page:", objects_with_ids(1..=100))],
            "the `Link` and `X-Next-Page` headers of page 1 of the list contradict each other",
        ),
        (
            vec![first_page(), ("x-next-page:", objects_with_ids([]))],
            "page 2 of the list is empty although it was announced",
        ),
        (
            vec![("x-next-page: 2", objects_with_ids(1..=99))],
            "page 1 of the list has 99 of 100 entries although another page follows",
        ),
        (
            vec![("x-total: 130", objects_with_ids(1..=99))],
            "page 1 of the list has 99 of 100 entries although another page follows",
        ),
        (
            vec![("x-per-page: 2", objects_with_ids(1..=3))],
            "page 1 of the list has 3 entries, more than the 2 of a page",
        ),
        (
            vec![("", objects_with_ids(1..=3)), ("", objects_with_ids([4]))],
            "page 2 of the list has entries although the page before it was the last",
        ),
        (
            vec![first_page(), ("x-per-page: 5", objects_with_ids([3]))],
            "page 2 of the list announces 5 entries per page, earlier pages 2",
        ),
        (
            vec![("x-per-page: 2\nx-total: 2\nx-next-page: 2", objects_with_ids(1..=2))],
            "page 1 of the list announces another page although all 2 entries were sent",
        ),
        (vec![first_page(), ("", objects_with_ids(2..=3))], "page 2 of the list repeats an entry"),
        (vec![("", objects_with_ids([3, 3]))], "page 1 of the list repeats an entry"),
        (
            vec![("x-total: many", objects_with_ids([]))],
            "the `X-Total` header of page 1 of the list cannot be understood",
        ),
        (
            vec![("link: <x?id_after=2>; rel=next", objects_with_ids(1..=100))],
            "the `Link` header of page 1 of the list cannot be understood",
        ),
    ];
    for (pages, text) in table {
        let error = read_list(&pages).unwrap_err();
        assert!(matches!(error, PageError::Contradiction(_)), "{error}");
        assert_eq!(error.to_string(), text);
    }
}

/// Tests every first page of up to three entries with every set of headers. Compares the result
/// with a second implementation of the rules. Also tests which second page is accepted.
#[test]
fn the_first_page_decides_what_may_follow() {
    let count = every_first_page(|entries, first_page| {
        let mut pager = hook_pager();
        let accept_result = pager
            .accept(&make_headers(&first_page.pairs()), objects_with_ids(1..=entries))
            .map(drop);
        let expected = first_page.expected_result(entries);
        let label = format!("{entries} entries, {first_page:?}: {accept_result:?}, {expected:?}");
        assert_eq!(accept_result.is_err(), expected == ExpectedResult::Contradiction, "{label}");
        match expected {
            ExpectedResult::Contradiction => {
                assert_eq!(pager.finish(), Err(PageError::Unfinished), "{label}");
            }
            ExpectedResult::End => {
                assert_eq!(pager.finish().unwrap().len() as u64, entries, "{label}");
            }
            ExpectedResult::Next(entries_expected) => {
                assert!(
                    pager.next_request().unwrap().path_and_query().ends_with("page=2"),
                    "{label}"
                );
                let mut empty_pager = hook_pager();
                empty_pager
                    .accept(&make_headers(&first_page.pairs()), objects_with_ids(1..=entries))
                    .unwrap();
                let accepts_end =
                    empty_pager.accept(&HeaderMap::new(), objects_with_ids([])).is_ok();
                assert_eq!(accepts_end, entries_expected != ExpectedEntries::Announced, "{label}");
                assert_eq!(empty_pager.finish().is_ok(), accepts_end, "{label}");
                let accepts_entries =
                    pager.accept(&HeaderMap::new(), objects_with_ids([9])).is_ok();
                assert_eq!(
                    accepts_entries,
                    entries_expected != ExpectedEntries::Nothing,
                    "{label}"
                );
            }
        }
    });
    assert_eq!(count, 4 * 2 * 3 * 4 * 4 * 5);
}

fn every_first_page(mut check: impl FnMut(u64, &FirstPageHeaders)) -> usize {
    let mut count = 0;
    for entries in 0..=3 {
        for size in [None, Some(2)] {
            for page in [None, Some(1), Some(2)] {
                for next in [None, Some(None), Some(Some(2)), Some(Some(3))] {
                    for link in [None, Some(None), Some(Some(2)), Some(Some(3))] {
                        for total in [None, Some(0), Some(1), Some(2), Some(3)] {
                            check(entries, &FirstPageHeaders { size, page, next, link, total });
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    count
}

/// The headers of a first page.
#[derive(Debug)]
struct FirstPageHeaders {
    size: Option<u64>,
    page: Option<u64>,
    next: Option<Option<u64>>,
    link: Option<Option<u64>>,
    total: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum ExpectedResult {
    Contradiction,
    End,
    Next(ExpectedEntries),
}

impl FirstPageHeaders {
    fn pairs(&self) -> Vec<(&'static str, &'static str)> {
        const NUMBERS: [&str; 4] = ["0", "1", "2", "3"];
        let number = |n: u64| NUMBERS[usize::try_from(n).unwrap()];
        let link = |next| match next {
            None => "</x?page=1>; rel=first",
            Some(2) => "</x?page=2>; rel=next, </x?page=1>; rel=first",
            Some(_) => "</x?page=3>; rel=next, </x?page=1>; rel=first",
        };
        let pairs = [
            ("x-per-page", self.size.map(number)),
            ("x-page", self.page.map(number)),
            ("x-next-page", self.next.map(|next| next.map_or("", number))),
            ("link", self.link.map(link)),
            ("x-total", self.total.map(number)),
        ];
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    fn expected_result(&self, entries: u64) -> ExpectedResult {
        let size = self.size.unwrap_or(100);
        let announced =
            [self.next.map(|next| next.is_some()), self.link.map(|link| link.is_some())];
        let more_by_total = self.total.map(|total| total > entries);
        let announces = |more: bool| announced.contains(&Some(more)) || more_by_total == Some(more);
        let is_contradictory = self.page.is_some_and(|page| page != 1)
            || [self.next, self.link].contains(&Some(Some(3)))
            || entries > size
            || self.total.is_some_and(|total| total < entries)
            || announces(true) && announces(false)
            || announces(true) && entries < size;
        let is_silent = announced == [None, None];
        match entries {
            _ if is_contradictory => ExpectedResult::Contradiction,
            _ if announces(true) => ExpectedResult::Next(ExpectedEntries::Announced),
            0 => ExpectedResult::End,
            _ if more_by_total.is_some() && !(is_silent && entries == size) => ExpectedResult::End,
            _ if is_silent && more_by_total.is_none() && entries == size => {
                ExpectedResult::Next(ExpectedEntries::Possible)
            }
            _ => ExpectedResult::Next(ExpectedEntries::Nothing),
        }
    }
}

#[test]
fn a_list_by_keyset_ascends_and_ends_with_an_empty_page() {
    let projects = || Pager::new(PROJECT_LIST.request(), EntryKeys::with_id(&[])).unwrap();
    let link =
        |query: &str| format!("<https://evil.example/x?{query}&private_token=y>; rel=\"next\"");
    let target_suffix = |pager: &Pager| {
        pager.next_request().unwrap().path_and_query().split_once("sort=asc").unwrap().1.to_owned()
    };
    // Wherever the links lead, no entry is skipped.
    for (query, next) in [
        ("id_after=7", "&id_after=7"),
        ("id_after=90", "&id_after=7"),
        ("page=2", "&id_after=7"),
        ("cursor=a%2Bb%3D", "&cursor=a%2Bb%3D"),
        ("cursor=x&id_after=7", "&id_after=7"),
    ] {
        let mut pager = projects();
        assert_eq!(target_suffix(&pager), "");
        pager.accept(&make_headers(&[("link", &link(query))]), objects_with_ids([3, 7])).unwrap();
        assert_eq!(target_suffix(&pager), next, "{query}");
        pager.accept(&HeaderMap::new(), objects_with_ids([8])).unwrap();
        assert_eq!(target_suffix(&pager), "&id_after=8", "a link that is gone is no end");
        pager.accept(&HeaderMap::new(), objects_with_ids([])).unwrap();
        assert_eq!(pager.finish().unwrap().len(), 3);
    }
    let empty_message = "page 2 of the list has 0 of 100 entries although another page follows";
    let backwards_message = "the `Link` header of page 2 of the list leads backwards";
    let unordered_message = "the ids on page 2 of the list do not ascend";
    for (query, page, text) in [
        ("id_after=7", objects_with_ids([]), empty_message),
        ("id_after=7", objects_with_ids([9]), backwards_message),
        ("id_after=9", objects_with_ids([9, 8]), unordered_message),
        ("id_after=9", objects_with_ids([4]), unordered_message),
        ("id_after=9", objects_with_ids([7]), "page 2 of the list repeats an entry"),
    ] {
        let mut pager = projects();
        pager.accept(&HeaderMap::new(), objects_with_ids([3, 7])).unwrap();
        let error = pager.accept(&make_headers(&[("link", &link(query))]), page).unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(pager.finish(), Err(PageError::Unfinished));
    }
    let mut pager = Pager::new(PROJECT_LIST.request(), EntryKeys::default()).unwrap();
    let page_without_id = vec![object(&json!({"path": "a"}))];
    assert_eq!(
        pager.accept(&HeaderMap::new(), page_without_id).map(drop),
        Err(contradiction("the ids on page 1 of the list do not ascend"))
    );
}

#[test]
fn a_search_keeps_no_entries_and_proves_nothing() {
    let mut pager = Pager::for_search(HOOK_LIST.request().with_argument("id", 1));
    let pairs =
        |next| make_headers(&[("x-next-page", next), ("x-per-page", "2"), ("x-total-pages", "2")]);
    assert_eq!(pager.accept(&pairs("2"), objects_with_ids(1..=2)).unwrap().len(), 2);
    assert_eq!(pager.total_pages(), Some(2));
    assert_eq!(
        pager.accept(&pairs(""), objects_with_ids(2..=3)).unwrap(),
        objects_with_ids(2..=3),
        "all that the page has"
    );
    assert!(pager.next_request().is_none(), "without a page more");
    assert_eq!((pager.objects.len(), pager.identities.len()), (2, 0));
    assert_eq!(pager.finish(), Err(PageError::Unfinished));
}

#[test]
fn a_contradiction_ends_a_search_without_an_error() {
    let texts = [
        "x-next-page: 2",
        "x-next-page: 7",
        "x-page: 2",
        "x-per-page: 2",
        "x-total: 2",
        "x-total: many",
        "link: <x>; rel=next",
    ];
    for text in texts {
        let mut pager = Pager::for_search(HOOK_LIST.request().with_argument("id", 1));
        assert_eq!(
            pager.accept(&parse_headers(text), objects_with_ids([1, 2, 3])).map(<[_]>::len),
            Ok(3),
            "{text}"
        );
        assert!(pager.next_request().is_none(), "{text}");
    }
    for page in [objects_with_ids([2, 1]), vec![object(&json!({"path": "a"}))]] {
        let mut pager = Pager::for_search(PROJECT_LIST.request());
        assert_eq!(
            pager.accept(&parse_headers("link: <x?id_after=2>; rel=next"), page.clone()),
            Ok(&*page)
        );
        assert!(pager.next_request().is_none());
    }
}

#[test]
fn a_search_requests_no_more_pages_than_exist() {
    let hooks = HOOK_LIST.request().with_argument("id", 1);
    let projects = PROJECT_LIST.request();
    let table = [
        (&hooks, "", 100, true),
        (&hooks, "", 99, false),
        (&hooks, "x-per-page: 2", 2, true),
        (&hooks, "x-next-page:", 100, false),
        (&hooks, "x-next-page: 2", 100, true),
        (&hooks, "x-total: 100", 100, false),
        (&hooks, "x-total: 101", 100, true),
        (&hooks, "link: <x?page=1>; rel=first", 100, false),
        (&projects, "", 100, true),
        (&projects, "", 99, false),
        (&projects, "link: <x?id_after=7>; rel=next", 7, true),
        (&projects, "link: <x?id_after=0>; rel=prev", 100, false),
        (&projects, "", 0, false),
    ];
    for (request, text, entries, has_next) in table {
        let mut pager = Pager::for_search(request.clone());
        pager.accept(&parse_headers(text), objects_with_ids(1..=entries)).unwrap();
        assert_eq!(pager.next_request().is_some(), has_next, "{request} {text} {entries}");
    }
}

#[test]
fn an_entry_needs_its_identifying_keys() {
    let variable = |scope: &Json, value: &str| {
        object(&json!({"key": "K", "environment_scope": scope, "value": value}))
    };
    let variables = |keys| {
        Pager::new(
            VARIABLE_LIST.request().with_argument("id", 1),
            EntryKeys { identity_keys: keys, other_keys: &[] },
        )
        .unwrap()
    };
    let total_headers = make_headers(&[("x-total", "2")]);
    for keys in [&["key", "environment_scope"][..], &[]] {
        let distinct_rows = vec![variable(&json!("*"), "a"), variable(&json!("prod"), "b")];
        assert_eq!(variables(keys).accept(&total_headers, distinct_rows).unwrap().len(), 2);
        let repeated_rows = vec![variable(&json!("*"), "a"), variable(&json!("*"), "b")];
        assert_eq!(
            variables(keys).accept(&total_headers, repeated_rows).map(drop),
            Err(contradiction("page 1 of the list repeats an entry"))
        );
    }
    let null_rows = vec![variable(&json!("*"), "a"), variable(&Json::Null, "hunter2")];
    let error = variables(&["key", "environment_scope"])
        .accept(&total_headers, null_rows)
        .map(drop)
        .unwrap_err();
    assert_eq!(error.to_string(), "an entry on page 1 of the list has no `environment_scope`");
    assert_eq!(error, PageError::Unidentified { page: 1, key: "environment_scope" });
    // Without identity keys, an entry without an id is identified by its whole content.
    let row_of_user = |user: u64| object(&json!({"id": null, "user": {"id": user}}));
    let mut pager = variables(&[]);
    assert_eq!(
        pager.accept(&total_headers, vec![row_of_user(1), row_of_user(2)]).unwrap().len(),
        2
    );
    assert_eq!(pager.finish().unwrap().len(), 2);
    assert!(variables(&[]).accept(&total_headers, vec![row_of_user(1), row_of_user(1)]).is_err());
}

#[test]
fn an_endless_list_is_refused() {
    let page = |n: u64, bytes: usize| {
        let mut page = objects_with_ids((n - 1) * 100 + 1..=n * 100);
        page[0].insert("url".to_owned(), "x".repeat(bytes).into());
        page
    };
    let next_page_headers = |n: u64| make_headers(&[("x-next-page", &(n + 1).to_string())]);
    let read_until_error = |bytes: usize| {
        let mut pager = hook_pager();
        let error = (1..).find_map(|n| pager.accept(&next_page_headers(n), page(n, bytes)).err());
        (error.unwrap().to_string(), pager.objects.len())
    };
    assert_eq!(read_until_error(1), ("the list has more than 100,000 entries".to_owned(), 100_000));
    assert_eq!(
        read_until_error(10 << 20),
        ("the list has more than 64 MiB of JSON".to_owned(), 600)
    );
    assert_eq!(read_until_error(65 << 20), ("the list has more than 64 MiB of JSON".to_owned(), 0));
    let mut pager = Pager::for_search(HOOK_LIST.request().with_argument("id", 1));
    for n in 1..200 {
        pager.accept(&next_page_headers(n), page(n, 1 << 20)).unwrap();
        assert_eq!((pager.objects.len(), pager.identities.len()), (100, 0));
    }
}

#[test]
fn the_size_of_kept_entries_is_counted_as_json() {
    for object in [
        json!({}),
        json!({"id": 12345, "url": "https://h", "on": true, "rows": [{"a": null}, "x"]}),
    ] {
        let (counted, written) =
            (value::object_size(object.as_object().unwrap()), object.to_string().len());
        assert!(counted.abs_diff(written) <= written / 10 + 4, "{counted} {written}");
    }
}

#[test]
fn a_list_that_is_filtered_after_paging_is_never_whole() {
    let request = || NOTE_LIST.request().with_argument("id", 1);
    assert_eq!(Pager::new(request(), EntryKeys::default()).err(), Some(PageError::Filtered));
    let mut pager = Pager::for_search(request());
    assert_eq!(
        pager.accept(&make_headers(&[("x-total", "1")]), objects_with_ids([1])).unwrap().len(),
        1
    );
    assert_eq!(pager.finish(), Err(PageError::Unfinished));
}

/// The result of reading a filtered list whose responses are `pages`.
fn read_filtered(pages: &[(&str, Vec<Object>)]) -> Result<Vec<Object>, PageError> {
    let mut pager =
        Pager::for_filtered(NOTE_LIST.request().with_argument("id", 1), EntryKeys::with_id(&[]));
    for (text, page) in pages {
        assert!(pager.next_request().is_some(), "asks for {} pages only", pager.page_count);
        pager.accept(&parse_headers(text), page.clone())?;
    }
    pager.into_visible()
}

#[test]
fn a_filtered_list_is_read_as_far_as_the_responses_announce() {
    let empty_page = || objects_with_ids([]);
    for (pages, expected) in [
        (vec![("x-next-page:\nx-total: 100", objects_with_ids([1]))], Ok(objects_with_ids([1]))),
        (
            vec![
                ("x-next-page: 2", empty_page()),
                ("x-next-page: 3", objects_with_ids([7])),
                ("x-next-page:", empty_page()),
            ],
            Ok(objects_with_ids([7])),
        ),
        // Only the total shows that a second page follows. The total includes filtered entries.
        (
            vec![("x-total: 101", objects_with_ids([1])), ("x-total: 101", empty_page())],
            Ok(objects_with_ids([1])),
        ),
        // Without any header, the first empty page is the end.
        (
            vec![("", objects_with_ids([1])), ("", objects_with_ids([2])), ("", empty_page())],
            Ok(objects_with_ids([1, 2])),
        ),
        (vec![("x-next-page: 2", objects_with_ids([1]))], Err(PageError::Unfinished)),
        (
            vec![("x-next-page: 3", objects_with_ids([1]))],
            Err(contradiction("page 1 of the list announces page 3 as the next one")),
        ),
        (
            vec![("x-page: 2", objects_with_ids([1]))],
            Err(contradiction("requested page 1 of the list, received page 2")),
        ),
        (
            vec![
                ("x-next-page: 2", objects_with_ids([1])),
                ("x-next-page:", objects_with_ids([1])),
            ],
            Err(contradiction("page 2 of the list repeats an entry")),
        ),
        // The removal of an entry moved another entry to a page that was already read.
        (
            vec![("x-total: 300", objects_with_ids([1])), ("x-total: 299", objects_with_ids([2]))],
            Err(contradiction(
                "page 2 of the list announces 299 entries in all, earlier pages 300",
            )),
        ),
    ] {
        assert_eq!(read_filtered(&pages), expected, "{pages:?}");
    }
    let endless: Vec<_> = (2..1_003).map(|next| format!("x-next-page: {next}")).collect();
    let endless: Vec<_> = endless.iter().map(|text| (text.as_str(), empty_page())).collect();
    assert_eq!(read_filtered(&endless), Err(PageError::TooLong("1,000 pages")));
    let mut pager = Pager::for_filtered(NOTE_LIST.request(), EntryKeys::with_id(&[]));
    pager.accept(&parse_headers("x-next-page:"), objects_with_ids([1])).unwrap();
    assert_eq!(pager.finish(), Err(PageError::Unfinished), "never whole");
}

#[test]
fn repeated_pages_are_refused() {
    let full_page = || objects_with_ids(1..=100);
    let table = [
        (
            vec![("x-next-page", "1")],
            contradiction("page 1 of the list announces page 1 as the next one"),
        ),
        (
            vec![("link", "<x?page=1>; rel=next")],
            contradiction("page 1 of the list announces page 1 as the next one"),
        ),
        (vec![("x-next-page", "2")], contradiction("page 2 of the list repeats an entry")),
        (vec![], contradiction("page 2 of the list repeats an entry")),
    ];
    for (pairs, error) in table {
        let mut pager = hook_pager();
        let result =
            (0..9).try_for_each(|_| pager.accept(&make_headers(&pairs), full_page()).map(drop));
        assert_eq!(result, Err(error), "{pairs:?}");
        assert_eq!(pager.accept(&HeaderMap::new(), vec![]).map(drop), Err(PageError::Unfinished));
        assert_eq!(pager.finish(), Err(PageError::Unfinished));
    }
    let mut cursor_pager = Pager::new(PROJECT_LIST.request(), EntryKeys::default()).unwrap();
    let pairs = make_headers(&[("link", "<x?cursor=a>; rel=next")]);
    cursor_pager.accept(&pairs, full_page()).unwrap();
    assert!(cursor_pager.accept(&pairs, full_page()).is_err());
}

#[test]
fn a_requested_order_is_kept() {
    let target = |request: Request<Read>| {
        Pager::for_search(request).next_request().unwrap().path_and_query()
    };
    let keyset = "pagination=keyset&order_by=id&sort=asc";
    assert_eq!(
        target(PROJECT_LIST.request().with_query("owned", true)),
        format!("/projects?owned=true&per_page=100&{keyset}")
    );
    assert_eq!(
        target(PROJECT_LIST.request().with_query("order_by", "name")),
        "/projects?order_by=name&per_page=100&page=1"
    );
    assert_eq!(
        target(PROJECT_LIST.request().with_query("sort", "desc")),
        "/projects?sort=desc&per_page=100&page=1"
    );
}

#[test]
fn without_its_last_page_no_list_is_complete() {
    assert_eq!(hook_pager().finish(), Err(PageError::Unfinished));
    assert_eq!(
        read_list(&[("x-next-page: 2", objects_with_ids(1..=100))]),
        Err(PageError::Unfinished)
    );
    assert_eq!(
        read_list(&[("", objects_with_ids([1]))]),
        Err(PageError::Unfinished),
        "the page that proves the end"
    );
    assert_eq!(
        read_list(&[("", objects_with_ids([1])), ("", objects_with_ids([]))]),
        Ok(objects_with_ids([1]))
    );
}

#[test]
fn the_last_total_is_used() {
    let page = |text, from, to| (text, objects_with_ids(from..=to));
    let first_page = || page("x-per-page: 2\nx-total: 3", 1, 2);
    assert_eq!(
        read_list(&[first_page(), page("x-total: 4", 3, 4), ("", objects_with_ids([]))]),
        Ok(objects_with_ids(1..=4)),
        "one more meanwhile"
    );
    assert_eq!(
        read_list(&[first_page(), page("", 3, 3)]),
        Ok(objects_with_ids(1..=3)),
        "said once"
    );
    assert!(read_list(&[first_page(), page("x-total: 4", 3, 3)]).is_err());
    assert!(read_list(&[first_page(), page("x-total: 2", 3, 3)]).is_err());
}

#[test]
fn a_list_that_becomes_shorter_may_have_lost_other_entries_too() {
    // The first of five entries is removed after the first page was read. The third entry then
    // moves to the first page and is missed.
    let pages = [
        ("x-per-page: 2\nx-total: 5", objects_with_ids(1..=2)),
        ("x-total: 4", objects_with_ids(4..=5)),
    ];
    let message = "page 2 of the list announces 4 entries in all, earlier pages 5";
    assert_eq!(read_list(&pages), Err(contradiction(message)));
}

#[test]
fn a_collection_derived_from_a_complete_one_is_complete() {
    let mut pager = hook_pager();
    pager.accept(&make_headers(&[("x-total", "2")]), objects_with_ids(1..=2)).unwrap();
    let filtered = pager
        .finish()
        .unwrap()
        .map(|o| o["id"].as_u64().unwrap())
        .filter_map(|id| (id > 1).then_some(id));
    assert_eq!(filtered.into_vec(), [2]);
}

proptest! {
    #[test]
    fn headers_that_mean_nothing_do_no_harm(link in "[ -~]{0,60}", next in "[ -~]{0,12}", total in "[ -~]{0,3}") {
        let mut pager = hook_pager();
        let accepted = pager.accept(&make_headers(&[("link", &link), ("x-next-page", &next), ("x-total", &total)]), vec![]).is_ok();
        prop_assert!(accepted || pager.finish().is_err());
    }
}

#[test]
fn a_row_without_a_text_as_path_is_refused() {
    for path in [json!(5), json!(true), json!(["acme/shop"]), json!({}), json!(null)] {
        let entry_keys = EntryKeys::with_id(&["path_with_namespace"]);
        let mut pager = Pager::new(PROJECT_LIST.request(), entry_keys).unwrap();
        let row = json!({"id": 1, "path_with_namespace": path});
        let page = vec![row.as_object().unwrap().clone()];
        assert!(pager.accept(&HeaderMap::new(), page).is_err(), "{path}");
    }
}

/// The service sends some lists in one response, whatever page is requested. Their paging headers
/// are still checked.
#[test]
fn an_unpaged_list_is_complete_after_one_response() {
    let (path, response) = ("/projects/:id/odd", ResponseBody::List);
    let row = Operation { path, response, unpaged: true, ..Operation::with_defaults(Method::Get) };
    let op = collection::make_read_op(row);
    for (text, entry_count, is_complete) in [
        ("", 0, true),
        ("", 3, true),
        ("", 150, true),
        ("x-total: 3", 3, true),
        ("x-total: 4", 3, false),
        ("x-next-page: 2", 3, false),
    ] {
        let mut pager =
            Pager::new(op.request().with_argument("id", 1), EntryKeys::with_id(&[])).unwrap();
        let is_page_accepted =
            pager.accept(&parse_headers(text), objects_with_ids(1..=entry_count)).is_ok();
        let is_accepted = is_page_accepted && pager.finish().is_ok();
        assert_eq!(is_accepted, is_complete, "{text} {entry_count}");
    }
}
