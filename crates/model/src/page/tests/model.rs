//! A model of the service, and everything that can become of one of its answers on the way.

use std::collections::BTreeSet;

use super::*;

const NAMES: [&str; 5] = ["link", "x-next-page", "x-page", "x-per-page", "x-total"];

/// A service with entries 1 to `count`, that gives at most `cap` a page and sends the headers of
/// `says`.
#[derive(Clone, Debug)]
struct Model {
    count: u64,
    cap: u64,
    keyset: bool,
    says: BTreeSet<&'static str>,
}

/// An answer: its headers, and the ids of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    pairs: Vec<(&'static str, String)>,
    ids: Vec<u64>,
}

impl Answer {
    /// With another value of a header, if it has that.
    fn set(mut self, name: &str, value: impl ToString) -> Self {
        for pair in self.pairs.iter_mut().filter(|pair| pair.0 == name) {
            pair.1 = value.to_string();
        }
        self
    }
}

impl Model {
    fn number(target: &str, name: &str) -> Option<u64> {
        target
            .split_once('?')?
            .1
            .split('&')
            .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    fn answer(&self, target: &str) -> Answer {
        assert_eq!(Self::number(target, "per_page"), Some(100), "{target}");
        if self.keyset {
            self.after(Self::number(target, "id_after").unwrap_or(0))
        } else {
            self.page(Self::number(target, "page").unwrap())
        }
    }

    fn page(&self, page: u64) -> Answer {
        let start = (page - 1) * self.cap;
        let end = (start + self.cap).min(self.count);
        let next = if end < self.count { (page + 1).to_string() } else { String::new() };
        let mut link = "<https://evil.example/x?page=1&private_token=y>; rel=\"first\"".to_owned();
        if !next.is_empty() {
            link += &format!(
                ", <https://evil.example/x?page={next}&per_page={}&simple=true>; rel=\"next\"",
                self.cap
            );
        }
        let mut pairs = vec![
            ("link", link),
            ("x-next-page", next),
            ("x-page", page.to_string()),
            ("x-per-page", self.cap.to_string()),
            ("x-total", self.count.to_string()),
        ];
        pairs.retain(|(name, _)| self.says.contains(name));
        Answer { pairs, ids: (start + 1..=end).collect() }
    }

    /// A page by keyset. As the real service does, the last page with entries has a link too.
    fn after(&self, id: u64) -> Answer {
        let ids: Vec<_> = (id + 1..=self.count).take(usize::try_from(self.cap).unwrap()).collect();
        let link = ids.last().map(|last| {
            ("link", format!("<https://evil.example/x?id_after={last}&simple=true>; rel=\"next\""))
        });
        let mut pairs: Vec<_> = link.into_iter().collect();
        pairs.retain(|(name, _)| self.says.contains(name));
        Answer { pairs, ids }
    }

    fn pages(&self) -> u64 {
        self.count.div_ceil(self.cap)
    }

    /// How many calls a whole list takes.
    fn calls(&self) -> u64 {
        let has = |name| self.says.contains(name);
        let full = self.count.is_multiple_of(self.cap);
        let proven = !self.keyset && has("x-total") && (has("link") || has("x-next-page") || !full);
        if self.count == 0 { 1 } else { self.pages() + u64::from(!proven) }
    }

    fn pager(&self) -> Pager {
        if self.keyset {
            Pager::new(PROJECT_LIST.request(), Rows::with_id(&[])).unwrap()
        } else {
            hooks()
        }
    }

    /// Reads the list through `change`: the ids in ascending order, and how many calls it took.
    fn read(&self, change: impl Fn(&str, Answer) -> Answer) -> (Result<Vec<u64>, PageError>, u64) {
        let mut pager = self.pager();
        let mut calls = 0;
        while let Some(request) = pager.next() {
            let target = request.target();
            assert!(!target.contains("token") && !target.contains("simple"), "{target}");
            let answer = change(&target, self.answer(&target));
            calls += 1;
            let pairs: Vec<_> =
                answer.pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
            if let Err(error) = pager.accept(&headers(&pairs), ids(answer.ids)) {
                return (Err(error), calls);
            }
        }
        let read = pager.finish().map(|all| {
            let mut ids: Vec<_> = all.iter().map(|object| object["id"].as_u64().unwrap()).collect();
            ids.sort_unstable();
            ids
        });
        (read, calls)
    }

    fn truth(&self) -> Vec<u64> {
        (1..=self.count).collect()
    }
}

/// Lists around the sizes of pages, with pages of at most 3 entries that say so, and of 100 that
/// need not.
fn every_model(keyset: bool) -> Vec<Model> {
    let small = (1..=3).flat_map(|cap| (0..=7).map(move |count| (count, cap)));
    let large = [0, 1, 99, 100, 101, 200, 201].map(|count| (count, 100));
    let sets = (0..1 << NAMES.len()).map(|bits: u32| {
        let chosen = NAMES.into_iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1);
        chosen.map(|(_, name)| name).collect::<BTreeSet<_>>()
    });
    let sets: Vec<_> = sets.collect();
    let models = small.chain(large).flat_map(|(count, cap)| {
        let sets =
            sets.iter().filter(move |says| keyset || cap == 100 || says.contains("x-per-page"));
        sets.map(move |says| Model { count, cap, keyset, says: says.clone() })
    });
    models.collect()
}

#[test]
fn an_honest_list_is_read_whole_with_as_few_calls_as_prove_it() {
    for model in [every_model(false), every_model(true)].concat() {
        let (read, calls) = model.read(|_, answer| answer);
        assert_eq!((read, calls), (Ok(model.truth()), model.calls()), "{model:?}");
    }
}

/// What can become of the answer to one page; the others come as they are.
#[derive(Clone, Copy, Debug)]
enum Damage {
    FirstDropped,
    LastDropped,
    Emptied,
    EntryRepeated,
    PageRepeated,
    NextPageInstead,
    SwappedWithNext,
    NextPage(&'static str),
    PageNumber(u64),
    LinkToNext(u64),
    LinkGone,
    TotalLess,
    TotalMore,
    OtherSize,
}

const DAMAGES: [Damage; 16] = [
    Damage::FirstDropped,
    Damage::LastDropped,
    Damage::Emptied,
    Damage::EntryRepeated,
    Damage::PageRepeated,
    Damage::NextPageInstead,
    Damage::SwappedWithNext,
    Damage::NextPage(""),
    Damage::NextPage("1"),
    Damage::NextPage("99"),
    Damage::PageNumber(7),
    Damage::LinkToNext(2),
    Damage::LinkGone,
    Damage::TotalLess,
    Damage::TotalMore,
    Damage::OtherSize,
];

impl Damage {
    /// The answer to `page` when the answer to page `at` is damaged.
    fn of(self, model: &Model, at: u64, page: u64) -> Answer {
        let answer = model.page(page);
        if let Self::SwappedWithNext = self {
            return swapped(model, at, page);
        }
        if page != at {
            return answer;
        }
        match self {
            Self::FirstDropped => {
                Answer { ids: answer.ids.into_iter().skip(1).collect(), ..answer }
            }
            Self::LastDropped => {
                Answer { ids: answer.ids[..answer.ids.len().saturating_sub(1)].to_vec(), ..answer }
            }
            Self::Emptied => Answer { ids: vec![], ..answer },
            Self::EntryRepeated => {
                let last = answer.ids.len().saturating_sub(1);
                let ids = answer.ids[..last]
                    .iter()
                    .copied()
                    .chain((!answer.ids.is_empty()).then(|| answer.ids[0].max(2) - 1));
                Answer { ids: ids.collect(), ..answer }
            }
            Self::PageRepeated => Answer { ids: model.page(page.max(2) - 1).ids, ..answer },
            Self::NextPageInstead => model.page(page + 1),
            Self::SwappedWithNext => answer,
            Self::NextPage(next) => answer.set("x-next-page", next),
            Self::PageNumber(number) => answer.set("x-page", number),
            Self::LinkToNext(ahead) => {
                answer.set("link", format!("<x?page={}>; rel=next", page + ahead))
            }
            Self::LinkGone => Answer {
                pairs: answer.pairs.into_iter().filter(|(name, _)| *name != "link").collect(),
                ..answer
            },
            Self::TotalLess => answer.set("x-total", model.count.saturating_sub(1)),
            Self::TotalMore => answer.set("x-total", model.count + 1),
            Self::OtherSize => answer.set("x-per-page", model.cap + 1),
        }
    }
}

/// The answer to `page` when the last entry of page `at` and the first of the page after it have
/// changed places.
fn swapped(model: &Model, at: u64, page: u64) -> Answer {
    let (mut this, mut next) = (model.page(at), model.page(at + 1));
    if let (Some(last), Some(first)) = (this.ids.last_mut(), next.ids.first_mut()) {
        std::mem::swap(last, first);
    }
    match page {
        page if page == at => this,
        page if page == at + 1 => next,
        page => model.page(page),
    }
}

#[test]
fn no_single_damage_makes_a_list_with_a_total_whole_that_is_not() {
    let mut refused = BTreeSet::new();
    for model in every_model(false).into_iter().filter(|model| model.says.contains("x-total")) {
        for (damage, at) in
            DAMAGES.into_iter().flat_map(|damage| (1..=model.pages()).map(move |at| (damage, at)))
        {
            let (read, calls) = model
                .read(|target, _| damage.of(&model, at, Model::number(target, "page").unwrap()));
            assert!(
                calls <= model.calls() + 1,
                "{damage:?} of page {at} of {model:?}: {calls} calls"
            );
            match read {
                Ok(ids) => assert_eq!(ids, model.truth(), "{damage:?} of page {at} of {model:?}"),
                Err(error) => {
                    assert!(matches!(error, PageError::Contradiction(_)), "{error}");
                    refused.insert(format!("{damage:?}"));
                }
            }
        }
    }
    // Entries that changed places are all there, and nothing is lost with a link that another
    // header stands in for.
    let harmless = [Damage::SwappedWithNext, Damage::LinkGone].map(|damage| format!("{damage:?}"));
    let expected: BTreeSet<_> = DAMAGES
        .iter()
        .map(|damage| format!("{damage:?}"))
        .filter(|damage| !harmless.contains(damage))
        .collect();
    assert_eq!(refused, expected);
}

/// Without a total a loss can only be seen in what was announced: the page size, the pages before
/// the last, and its end.
#[test]
fn without_a_total_what_was_announced_is_still_held_against_what_came() {
    let losses = [
        Damage::Emptied,
        Damage::EntryRepeated,
        Damage::NextPageInstead,
        Damage::NextPage(""),
        Damage::NextPage("99"),
    ];
    for model in every_model(false)
        .into_iter()
        .filter(|model| !model.says.contains("x-total") && model.says.contains("x-next-page"))
    {
        for (damage, at) in
            losses.into_iter().flat_map(|damage| (1..=model.pages()).map(move |at| (damage, at)))
        {
            let (read, _) = model
                .read(|target, _| damage.of(&model, at, Model::number(target, "page").unwrap()));
            // In a list of one page, only that page shows that the list has entries.
            let alone =
                model.pages() == 1 && matches!(damage, Damage::Emptied | Damage::NextPageInstead);
            if !alone && read.as_ref().is_ok_and(|ids| *ids != model.truth()) {
                panic!("{damage:?} of page {at} of {model:?}: {read:?}");
            }
        }
    }
}

#[test]
fn no_link_leads_past_an_entry_of_a_list_by_keyset() {
    for model in
        every_model(true).into_iter().filter(|model| model.cap <= 3 && model.says.contains("link"))
    {
        for (at, led) in
            (0..=model.count).flat_map(|at| (0..=model.count + 2).map(move |led| (at, led)))
        {
            let (read, _) = model.read(|target, answer| {
                let damaged =
                    Model::number(target, "id_after").unwrap_or(0) == at && !answer.ids.is_empty();
                if damaged {
                    answer.set("link", format!("<x?id_after={led}>; rel=next"))
                } else {
                    answer
                }
            });
            assert!(read.is_err() || read == Ok(model.truth()), "{at} {led} {model:?}: {read:?}");
        }
    }
}
