//! Holds: a run does not change what somebody changed by hand in an emergency, until a day.
//!
//! A hold is a watch with an end: differences are compared and shown, but not written. They are
//! known, so they count as differences only with `--strict`. Holds come from the environment of a
//! run, never from a manifest, and last [`MAX_HOLD_DAYS`] days at most: lasting values belong into a
//! manifest. A branch cannot rename its way out of a hold: it also holds what is declared to have
//! had its path.

use std::collections::BTreeMap;

use jiff::{Span, civil::Date};

use super::Plan;
use crate::{
    address::{Address, Selector},
    desired::{Container, Moves},
    diagnostic::Diagnostic,
    diff::{Action, Findings, Held, Step},
    kind::Section,
    text::{count, escape},
};

/// How many days a hold may last: a week including a weekend, so that nobody has to work at night
/// for it, and not longer, so that nobody forgets it.
const MAX_HOLD_DAYS: i32 = 7;

/// The code of diagnostics about holds.
const HOLD_CODE: &str = "hold";

/// A hold.
#[derive(Clone, Debug)]
struct Hold {
    /// The text as written.
    text: String,
    selector: Selector,
    /// The last day.
    until: Date,
}

/// The holds of a run.
#[derive(Clone, Debug, Default)]
pub struct Holds(Vec<Hold>);

impl Hold {
    /// Parses `ADDRESS@YYYY-MM-DD`; the address may be a glob.
    fn parse(written: &str, today: Date) -> Result<Self, String> {
        let shown = escape(written);
        let (at, day) = written.rsplit_once('@').unwrap_or((written, ""));
        // Accept only days: other formats of the date parser would be accidents.
        let until = day.parse::<Date>().ok().filter(|date| date.to_string() == day);
        let Some(until) = until.filter(|_| !at.is_empty()) else {
            return Err(format!(
                "`{shown}` has no end; write ADDRESS@YYYY-MM-DD, with the last day on which it holds"
            ));
        };
        let at = Selector::parse(at).map_err(|reason| format!("`{shown}`: {reason}"))?;
        let last = today.saturating_add(Span::new().days(MAX_HOLD_DAYS));
        if until > last {
            return Err(format!(
                "`{shown}` is too long; a hold ends within {}, by {last}; put lasting values into a manifest",
                count(MAX_HOLD_DAYS, "day")
            ));
        }
        Ok(Self { text: written.to_owned(), selector: at, until })
    }

    /// True if this hold covers the object at `address`, also under a former path from `moves`.
    fn matches(&self, address: &Address, moves: &Moves) -> bool {
        moves.any_path_matches(address, |former| self.selector.matches(former))
    }
}

impl Holds {
    /// Parses holds, and returns warnings for expired ones, which have no effect. If expiry were an
    /// error, every run would fail the day after.
    ///
    /// # Errors
    /// What is wrong with one of them, as text.
    pub fn parse<'w>(
        written: impl IntoIterator<Item = &'w str>,
        today: Date,
    ) -> Result<(Self, Vec<Diagnostic>), String> {
        let (mut holds, mut warnings) = (Vec::new(), Vec::new());
        for written in written {
            let hold = Hold::parse(written, today)?;
            if hold.until < today {
                let message =
                    format!("the hold `{}` has expired and has no effect", escape(written));
                warnings.push(warning(&message, "remove it"));
            } else {
                holds.push(hold);
            }
        }
        Ok((Self(holds), warnings))
    }

    /// The last day on which the object at `address` is held, also by a former path in `moves`.
    pub fn held_until(&self, address: &Address, moves: &Moves) -> Option<Date> {
        self.0.iter().filter(|hold| hold.matches(address, moves)).map(|hold| hold.until).max()
    }

    /// Turns held steps of one section into watched ones. A hold also covers the entry that replaces a
    /// held one.
    pub(super) fn watch_held(&self, section: Section, findings: &mut Findings, moves: &Moves) {
        if self.0.is_empty() {
            return;
        }
        let exchanged = |step: &Step| {
            let name = step.address.entry.as_deref().filter(|_| step.action != Action::Update)?;
            section.exclusive_group(name)
        };
        let steps = std::mem::take(&mut findings.steps);
        let mut exchanges: BTreeMap<&str, Option<Date>> = BTreeMap::new();
        for step in &steps {
            if let Some(what) = exchanged(step) {
                let until = exchanges.entry(what).or_default();
                *until = (*until).max(self.held_until(&step.address, moves));
            }
        }
        for step in steps {
            let own_until = self.held_until(&step.address, moves);
            let until = exchanged(&step).and_then(|what| exchanges[what]).max(own_until);
            if let Some(until) = until.filter(|_| until > own_until) {
                findings.held.push(Held { address: step.address.clone(), until });
            }
            let target_steps =
                if until.is_some() { &mut findings.watched } else { &mut findings.steps };
            target_steps.push(step);
        }
    }

    /// Adds the largest held parts of `declared`, and held objects that no manifest declares.
    pub(super) fn add_held(&self, declared: &Container, findings: &mut Findings, moves: &Moves) {
        if self.0.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut findings.held);
        let found = findings.watched.iter().map(|step| &step.address);
        let found = found.chain(findings.notes.iter().map(|note| &note.address)).cloned();
        for address in declared.addresses().chain(found) {
            if let Some(until) = self.held_until(&address, moves)
                && !held.iter().any(|held| held.covers(&address))
            {
                held.push(Held { address, until });
            }
        }
        findings.held = held;
    }

    /// Warns of holds that match nothing in `plan`.
    pub fn unmatched_warnings(&self, plan: &Plan, moves: &Moves) -> Vec<Diagnostic> {
        self.0
            .iter()
            .filter(|hold| !plan.held.iter().any(|held| hold.matches(&held.address, moves)))
            .map(|hold| {
                let message =
                    format!("the hold `{}` matches no declared or live object", escape(&hold.text));
                warning(&message, "correct its address, or remove it")
            })
            .collect()
    }
}

fn warning(message: &str, help: &str) -> Diagnostic {
    Diagnostic::warning(HOLD_CODE, message.to_owned()).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Date = jiff::civil::date(2027, 1, 5);

    fn parse(written: &[&str]) -> Result<(Holds, Vec<String>), String> {
        let (holds, warnings) = Holds::parse(written.iter().copied(), TODAY)?;
        Ok((holds, warnings.into_iter().map(|warning| warning.message).collect()))
    }

    #[test]
    fn a_hold_ends_within_a_week() {
        for (written, expected) in [
            ("acme/shop@2027-01-05", Ok(true)),
            ("acme/shop#members@2027-01-12", Ok(true)),
            ("**#variables/TOKEN@*@2027-01-06", Ok(true)),
            ("acme/shop@2027-01-04", Ok(false)),
            ("acme/shop@1999-12-31", Ok(false)),
            ("acme/shop@2027-01-13", Err("too long")),
            ("acme/shop@9999-12-31", Err("too long")),
            ("acme/shop", Err("no end")),
            ("acme/shop@", Err("no end")),
            ("acme/shop@tomorrow", Err("no end")),
            ("acme/shop@20270106", Err("no end")),
            ("acme/shop@2027-1-6", Err("no end")),
            ("acme/shop@2027-02-30", Err("no end")),
            ("acme/shop@2027-01-06T00:00:00", Err("no end")),
            ("@2027-01-06", Err("no end")),
            ("#members@2027-01-06", Err("starts with a path")),
            ("acme/[@2027-01-06", Err("`acme/[@2027-01-06`: ")),
        ] {
            match (parse(&[written]), expected) {
                (Ok((holds, warnings)), Ok(holding)) => {
                    assert_eq!(holds.0.len(), usize::from(holding), "{written}");
                    assert_eq!(warnings.len(), usize::from(!holding), "{written}");
                }
                (Err(why), Err(part)) => assert!(why.contains(part), "{written}: {why}"),
                (found, _) => panic!("{written}: {found:?}"),
            }
        }
    }

    #[test]
    fn the_last_day_of_several_holds_counts() {
        let (holds, _) =
            parse(&["acme/**@2027-01-06", "acme/shop#members@2027-01-08"]).expect("two holds");
        let shop = Address::container("acme/shop".into());
        let day = |address: &Address| {
            holds.held_until(address, &Moves::default()).map(|day| day.to_string())
        };
        assert_eq!(day(&shop).as_deref(), Some("2027-01-06"));
        assert_eq!(day(&shop.section("members").entry("a")).as_deref(), Some("2027-01-08"));
        assert_eq!(day(&Address::container("other".into())), None);
    }
}
