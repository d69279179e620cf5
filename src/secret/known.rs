//! Texts that must not be shown, and where in other texts they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, OnceLock},
};

use aho_corasick::{AhoCorasick, MatchKind};

use super::forms;

/// What stands in the place of a secret.
pub const MARK: &str = "[secret]";

/// How much of a form is looked for, in bytes; what follows is compared. A large file would else
/// become a larger automaton.
const LOOKED_FOR: usize = 64;

/// A set of secrets, in all their forms.
#[derive(Clone, Default)]
pub(super) struct Known {
    forms: BTreeSet<Arc<str>>,
    /// Made when it is first needed, because secrets are learnt one by one.
    finder: OnceLock<Finder>,
}

/// Finds forms by their beginnings. Without an automaton, which can only be too large, everything
/// is taken for secret.
#[derive(Clone)]
struct Finder {
    automaton: Option<AhoCorasick>,
    /// For each beginning the forms that begin so, and where they go on.
    forms: Vec<Vec<(Arc<str>, usize)>>,
}

impl Known {
    /// Adds `secret`.
    pub(super) fn learn(&mut self, secret: &str) {
        self.forms.extend(forms::of(secret).into_iter().map(Arc::from));
        self.finder = OnceLock::new();
    }

    /// Where secrets are in `text`: ordered and apart. Those that overlap are one.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        if self.forms.is_empty() {
            return Vec::new();
        }
        let Finder { automaton, forms } = self.finder.get_or_init(|| Finder::new(&self.forms));
        let Some(automaton) = automaton else { return std::iter::once(0..text.len()).collect() };
        let mut found: Vec<Range<usize>> = Vec::new();
        for beginning in automaton.find_overlapping_iter(text) {
            let rest = &text[beginning.end()..];
            let more = forms[beginning.pattern()]
                .iter()
                .map(|(form, from)| agreeing(rest, &form[*from..]))
                .max();
            found.push(beginning.start()..beginning.end() + more.unwrap_or(0));
        }
        found.sort_by_key(|range| range.start);
        found.dedup_by(|next, range| {
            let overlaps = next.start < range.end;
            if overlaps {
                range.end = range.end.max(next.end);
            }
            overlaps
        });
        found
    }
}

impl Finder {
    fn new(forms: &BTreeSet<Arc<str>>) -> Self {
        // The mark is one of them, so that a secret which is part of it is not struck from it, and
        // striking twice is striking once.
        let forms: Vec<Arc<str>> = forms.iter().cloned().chain([MARK.into()]).collect();
        let mut by_beginning: BTreeMap<&str, Vec<(Arc<str>, usize)>> = BTreeMap::new();
        for form in &forms {
            let mut end = form.len().min(LOOKED_FOR);
            while !form.is_char_boundary(end) {
                end -= 1;
            }
            by_beginning.entry(&form[..end]).or_default().push((Arc::clone(form), end));
        }
        let automaton =
            AhoCorasick::builder().match_kind(MatchKind::Standard).build(by_beginning.keys()).ok();
        Self { automaton, forms: by_beginning.into_values().collect() }
    }
}

/// How many bytes `a` and `b` begin with in common, in whole characters.
fn agreeing(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(c, _)| c.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn known<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Known {
        let mut known = Known::default();
        secrets.into_iter().for_each(|secret| known.learn(secret));
        known
    }

    fn struck(known: &Known, text: &str) -> String {
        super::super::struck(text, &known.find(text))
    }

    #[test]
    fn what_overlaps_is_struck_whole() {
        let known = known(["abcdefgh", "efghijkl", "abcdefghijklmnop"]);
        for (text, result) in [
            ("abcdefgh", "[secret]"),
            ("-abcdefghijkl-", "-[secret]-"),
            ("abcdefghijklmnop", "[secret]"),
            ("abcdefghabcdefgh", "[secret][secret]"),
            ("abcdefg", "abcdefg"),
            ("", ""),
        ] {
            assert_eq!(struck(&known, text), result, "{text}");
        }
        assert_eq!(struck(&super::Known::default(), "abcdefgh"), "abcdefgh");
    }

    #[test]
    fn a_secret_that_looks_like_the_mark_is_struck_once() {
        for secret in ["secret", "[secret]", "[secret", "secret]"] {
            let known = known([secret, "another one"]);
            for text in [
                format!("is {secret}."),
                format!("is [secret]{secret}."),
                "is another one.".to_owned(),
                "is [secret].".to_owned(),
            ] {
                let once = struck(&known, &text);
                assert_eq!(struck(&known, &once), once, "{secret}: {text}");
                assert_eq!(once.replace(MARK, ""), "is .", "{secret}: {text}");
            }
        }
    }

    #[test]
    fn the_beginning_of_a_large_secret_is_struck_too() {
        let secret: String = (0..9_000).map(|i| format!("{i}é")).collect();
        let known = known([secret.as_str(), "0é1é2é3é4é5é and something else"]);
        for (text, rest) in [
            (format!("<{secret}>"), ">"),
            (format!("<{}… and so on", &secret[..1_001]), "… and so on"),
            (format!("<{}è", &secret[..1_001]), "è"),
        ] {
            assert_eq!(struck(&known, &text), format!("<[secret]{rest}"));
        }
    }

    #[test]
    fn forms_are_put_together_once_and_not_for_every_text() {
        let mut known = known(["one secret"]);
        let finder = |known: &Known| known.finder.get().map(std::ptr::from_ref);
        assert_eq!((finder(&known), struck(&known, "one secret")), (None, MARK.to_owned()));
        let first = finder(&known);
        assert!(first.is_some() && struck(&known, "one secret") == MARK && finder(&known) == first);
        known.learn("another");
        assert_eq!((finder(&known), struck(&known, "another")), (None, MARK.to_owned()));
    }

    proptest! {
        #[test]
        fn no_form_survives(secrets in proptest::collection::vec("[ab\"\\\\é&\n ]{6,9}", 1..4), text in "[ab\"\\\\é&\n ]{0,40}") {
            let known = known(secrets.iter().map(String::as_str));
            let parts = format!("{text}{}{text}", secrets[0]);
            let found = known.find(&parts);
            let mut from = 0;
            for part in found.iter().map(|range| (range.start, range.end)).chain([(parts.len(), parts.len())]) {
                let between = &parts[from..part.0];
                prop_assert!(known.forms.iter().all(|form| !between.contains(&**form)), "{:?}", between);
                from = part.1;
            }
            let once = struck(&known, &parts);
            prop_assert_eq!(struck(&known, &once), once);
        }
    }
}
