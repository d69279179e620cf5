//! The pager against hand-made pages, and against a model of the service under every set of headers.

use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::operation::HOOK_LIST;

fn object(json: &Json) -> Object {
    json.as_object().unwrap().clone()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs.iter().map(|(n, v)| (HeaderName::try_from(*n).unwrap(), HeaderValue::from_str(v).unwrap())).collect()
}

#[test]
fn a_list_that_is_only_looked_through_is_not_kept_and_proves_nothing() {
    let mut pager = Pager::passing(HOOK_LIST.request().arg("id", 1));
    let hook = |id: u32, url: &str| object(&json!({"id": id, "url": url}));
    let first = pager.accept(&headers(&[("x-next-page", "2")]), vec![hook(1, "a"), hook(2, "b")]).unwrap();
    assert_eq!(first.len(), 2);
    let second = pager.accept(&headers(&[("x-next-page", "")]), vec![hook(2, "changed"), hook(3, "c")]).unwrap();
    assert_eq!(second, [hook(3, "c")], "what was seen is not passed on again");
    assert_eq!((pager.objects.len(), pager.next().is_none()), (1, true));
    assert_eq!(pager.finish(), Err(PageError::Unfinished));
}

fn hooks() -> Pager {
    Pager::new(HOOK_LIST.request().arg("id", 1))
}

/// A service with objects 1 to `count`, that gives at most `cap` a page and sends the headers that `keeps` allows.
struct Model {
    count: usize,
    cap: usize,
    keyset: bool,
    keeps: BTreeSet<&'static str>,
}

impl Model {
    fn answer(&self, target: &str) -> (HeaderMap, Vec<Object>) {
        let query = target.split_once('?').unwrap().1;
        let number = |name: &str| query.split('&').find_map(|p| p.strip_prefix(name)?.strip_prefix('=')?.parse::<usize>().ok());
        let per_page = number("per_page").unwrap().min(self.cap);
        let page = number("page").unwrap_or(1);
        let start = if self.keyset { number("id_after").unwrap_or(0) } else { (page - 1) * per_page };
        let end = (start + per_page).min(self.count);
        let ids = start + 1..=end;
        let more = end < self.count;
        let next = if self.keyset { format!("id_after={end}") } else { format!("page={}", page + 1) };
        let mut links = vec!["<https://evil.example/x?page=1&private_token=y>; rel=\"first\"".to_owned()];
        if more {
            links.push(format!("<https://evil.example/x?{next}&per_page={per_page}&simple=true>; rel=\"next\""));
        }
        let mut all = vec![("link", links.join(", ")), ("x-per-page", per_page.to_string()), ("x-total", self.count.to_string())];
        if !self.keyset {
            all.push(("x-next-page", if more { (page + 1).to_string() } else { String::new() }));
            all.push(("x-total-pages", self.count.div_ceil(per_page).to_string()));
        }
        all.retain(|(name, _)| self.keeps.contains(name));
        let pairs: Vec<_> = all.iter().map(|(n, v)| (*n, v.as_str())).collect();
        (headers(&pairs), ids.map(|id| object(&json!({"id": id}))).collect())
    }
}

const NAMES: [&str; 5] = ["link", "x-next-page", "x-per-page", "x-total", "x-total-pages"];

proptest! {
    #[test]
    fn every_list_is_read_to_its_end(
        count in 0usize..450, cap in 1usize..=100, keyset: bool, keeps in proptest::sample::subsequence(NAMES.to_vec(), 0..=5),
    ) {
        let keeps: BTreeSet<_> = keeps.into_iter().collect();
        // A service that gives less than it was asked for has to say so in some way.
        let mute = !["link", "x-per-page", "x-total"].iter().any(|n| keeps.contains(n)) && (keyset || !keeps.contains("x-next-page"));
        let model = Model { count, cap: if mute { PER_PAGE } else { cap }, keyset, keeps };
        let mut pager = if keyset { Pager::new(PROJECT_LIST.request()) } else { hooks() };
        let mut streamed = 0;
        while let Some(request) = pager.next() {
            let target = request.target();
            prop_assert!(!target.contains("token") && !target.contains("simple"), "{}", target);
            let (headers, page) = model.answer(&target);
            streamed += pager.accept(&headers, page).unwrap().len();
        }
        let ids: Vec<_> = pager.finish().unwrap().iter().map(|o| o["id"].as_u64().unwrap()).collect();
        prop_assert_eq!(streamed, ids.len());
        prop_assert_eq!(ids, (1..=count as u64).collect::<Vec<_>>());
    }

    #[test]
    fn headers_that_mean_nothing_do_no_harm(link in "[ -~]{0,60}", next in "[ -~]{0,12}") {
        let mut pager = hooks();
        let accepted = pager.accept(&headers(&[("link", &link), ("x-next-page", &next)]), vec![]).is_ok();
        prop_assert!(accepted || pager.finish().is_err());
    }
}

#[test]
fn a_link_is_read_as_the_standard_says() {
    let table = [
        (r#"<https://h/x?page=2>; rel="next""#, Some("https://h/x?page=2")),
        ("</x?page=2>;REL=next", Some("/x?page=2")),
        (r#"<a?page=1>; rel="prev", <b?page=3>; title="a, b; rel=prev"; rel="last next""#, Some("b?page=3")),
        (r#"<a,b?page=2>; rel="next""#, Some("a,b?page=2")),
        (r#"<a?page=1>; rel="first""#, None),
        (r#"<a?page=1>; title="rel=next""#, None),
        (r#"<a?page=1>; rel="nextish""#, None),
        ("", None),
    ];
    for (link, target) in table {
        assert_eq!(next_link(&headers(&[("link", link)])).unwrap().as_deref(), target, "{link}");
    }
    assert_eq!(next_link(&headers(&[("link", "<a")])), Err(PageError::Header("Link")));
    let two = headers(&[("link", "<a>; rel=first"), ("link", "<b>; rel=next")]);
    assert_eq!(next_link(&two).unwrap().as_deref(), Some("b"));
    let cursor = paging_parameters("https://h/x?cursor=a%2Bb+c%3D&page=2&evil=1#f").unwrap();
    assert_eq!(cursor, [("cursor", "a+b c=".to_owned()), ("page", "2".to_owned())]);
}

#[test]
fn an_object_that_moved_to_the_next_page_counts_once_and_a_changed_one_is_an_error() {
    let next = headers(&[("x-next-page", "2")]);
    let ids = |ids: &[u64]| ids.iter().map(|id| object(&json!({"id": id, "url": "u"}))).collect::<Vec<_>>();
    let mut pager = hooks();
    assert_eq!(pager.accept(&next, ids(&[1, 2])).unwrap().len(), 2);
    assert_eq!(pager.accept(&headers(&[("x-next-page", "")]), ids(&[2, 3])).unwrap().len(), 1);
    assert_eq!(pager.finish().unwrap().len(), 3);

    let mut pager = hooks();
    pager.accept(&next, ids(&[1, 2])).unwrap();
    let changed = vec![object(&json!({"id": 2, "url": "other"}))];
    assert!(matches!(pager.accept(&HeaderMap::new(), changed), Err(PageError::Changed(_))));
    assert_eq!(pager.finish(), Err(PageError::Unfinished));
}

#[test]
fn a_variable_is_known_by_key_and_scope() {
    let variable = |scope: &str, value: &str| object(&json!({"key": "K", "environment_scope": scope, "value": value}));
    let mut pager = hooks();
    assert_eq!(pager.accept(&HeaderMap::new(), vec![variable("*", "a"), variable("prod", "b")]).unwrap().len(), 2);
    let mut pager = hooks();
    assert!(pager.accept(&HeaderMap::new(), vec![variable("*", "a"), variable("*", "b")]).is_err());
}

#[test]
fn an_order_that_was_asked_for_is_kept() {
    let target = |request: Request<Read>| Pager::new(request).next().unwrap().target();
    let keyset = "pagination=keyset&order_by=id&sort=asc";
    assert_eq!(target(PROJECT_LIST.request().query("owned", true)), format!("/projects?owned=true&per_page=100&{keyset}"));
    assert_eq!(target(PROJECT_LIST.request().query("order_by", "name")), "/projects?order_by=name&per_page=100&page=1");
    assert_eq!(target(PROJECT_LIST.request().query("sort", "desc")), "/projects?sort=desc&per_page=100&page=1");
}

#[test]
fn a_service_that_goes_round_in_circles_is_left() {
    for pairs in [[("x-next-page", "1")], [("x-next-page", "2")], [("link", "<x?page=1>; rel=next")]] {
        let mut pager = hooks();
        let page = || vec![object(&json!({"id": 1}))];
        let result = (0..9).try_for_each(|_| pager.accept(&headers(&pairs), page()).map(drop));
        assert!(matches!(result, Err(PageError::Loop(1 | 2))), "{pairs:?} {result:?}");
        assert_eq!(pager.finish(), Err(PageError::Unfinished));
    }
    let mut pager = hooks();
    let error = (2u64..).find_map(|n| {
        let next = n.to_string();
        pager.accept(&headers(&[("x-next-page", &next)]), vec![object(&json!({"id": n}))]).err()
    });
    assert_eq!((error, pager.pages), (Some(PageError::Endless), MAX_PAGES));
}

#[test]
fn without_its_last_page_no_list_is_complete() {
    assert_eq!(hooks().finish(), Err(PageError::Unfinished));
    let mut pager = hooks();
    pager.accept(&headers(&[("x-next-page", "2"), ("x-total-pages", "2")]), vec![object(&json!({"id": 1}))]).unwrap();
    assert_eq!(pager.total_pages(), Some(2));
    assert_eq!(pager.finish(), Err(PageError::Unfinished));
}

#[test]
fn what_is_derived_from_a_complete_collection_is_complete() {
    let mut pager = hooks();
    pager.accept(&HeaderMap::new(), vec![object(&json!({"id": 1})), object(&json!({"id": 2}))]).unwrap();
    let ids = pager.finish().unwrap().map(|o| o["id"].as_u64().unwrap()).filter_map(|id| (id > 1).then_some(id));
    assert_eq!(ids.into_vec(), [2]);
}
