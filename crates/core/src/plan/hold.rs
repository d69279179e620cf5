//! Holds: until a given day, runs do not change an object that somebody changed by hand in an emergency.
//!
//! A hold is a watch with an end: differences are compared and shown, but not written. A held
//! difference is reported as a difference only with `--strict`. Holds come from the environment of
//! a run, never from a manifest. A hold lasts at most [`MAX_HOLD_DAYS`] days, because lasting
//! values belong in a manifest. A branch cannot avoid a hold by a rename: a hold that matches a
//! declared former path of an object also covers the object.

use std::collections::BTreeMap;

use jiff::{Span, civil::Date};

use super::Plan;
use crate::{
    address::{Address, Selector},
    desired::{Container, Moves},
    diagnostic::Diagnostic,
    diff::{Action, Findings, HeldObject, Step},
    kind::Section,
    text::{count, escape},
};

/// The maximum duration of a hold. A week is long enough to change the manifest in working hours,
/// and short enough that nobody forgets the hold.
const MAX_HOLD_DAYS: i32 = 7;

/// The code of diagnostics about holds.
const HOLD_CODE: &str = "hold";

/// A hold: the held addresses, and the last day.
#[derive(Clone, Debug)]
struct Hold {
    /// The text of the hold as written.
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
    fn parse(hold_text: &str, today: Date) -> Result<Self, String> {
        let shown_text = escape(hold_text);
        let (address_text, day) = hold_text.rsplit_once('@').unwrap_or((hold_text, ""));
        // Accept only `YYYY-MM-DD`: the date parser also accepts times and other formats.
        let until = day.parse::<Date>().ok().filter(|date| date.to_string() == day);
        let Some(until) = until.filter(|_| !address_text.is_empty()) else {
            let fault = match (address_text, day) {
                ("", _) => "has no address",
                (_, "") => "has no end",
                _ => "must end with a day as in YYYY-MM-DD",
            };
            return Err(format!(
                "`{shown_text}` {fault}; write ADDRESS@YYYY-MM-DD, with the last day on which it holds"
            ));
        };
        let selector =
            Selector::parse(address_text).map_err(|reason| format!("`{shown_text}`: {reason}"))?;
        let last_day = today.saturating_add(Span::new().days(MAX_HOLD_DAYS));
        if until > last_day {
            return Err(format!(
                "`{shown_text}` is too long; a hold ends within {}, by {last_day}; put lasting values into a manifest",
                count(MAX_HOLD_DAYS, "day")
            ));
        }
        Ok(Self { text: hold_text.to_owned(), selector, until })
    }

    /// True if this hold covers the object at `address`, also under a former path from `moves`.
    fn matches(&self, address: &Address, moves: &Moves) -> bool {
        moves.any_path_matches(address, |candidate| self.selector.matches(candidate))
    }
}

impl Holds {
    /// Parses holds, and returns a warning for each expired hold, which has no effect. An expired
    /// hold is no error, because otherwise every run would fail on the day after the end of the
    /// hold.
    ///
    /// # Errors
    /// If one of the texts is not a valid hold. The error is a message.
    pub fn parse<'w>(
        hold_texts: impl IntoIterator<Item = &'w str>,
        today: Date,
    ) -> Result<(Self, Vec<Diagnostic>), String> {
        let (mut holds, mut warnings) = (Vec::new(), Vec::new());
        for hold_text in hold_texts {
            let hold = Hold::parse(hold_text, today)?;
            if hold.until < today {
                let message =
                    format!("the hold `{}` has expired and has no effect", escape(hold_text));
                warnings.push(new_warning(&message, "remove it"));
            } else {
                holds.push(hold);
            }
        }
        Ok((Self(holds), warnings))
    }

    /// The last day on which the object at `address` is held; `None` if it is not held. A hold may
    /// also match a former path in `moves`.
    pub fn held_until(&self, address: &Address, moves: &Moves) -> Option<Date> {
        self.0.iter().filter(|hold| hold.matches(address, moves)).map(|hold| hold.until).max()
    }

    /// Turns held steps of one section into watched steps. If only one of several entries can
    /// exist, a hold on one entry also covers the others, because the run must not replace a held
    /// entry.
    pub(super) fn watch_held_steps(
        &self,
        section: Section,
        findings: &mut Findings,
        moves: &Moves,
    ) {
        if self.0.is_empty() {
            return;
        }
        let find_group = |step: &Step| {
            let name = step.address.entry.as_deref().filter(|_| step.action != Action::Update)?;
            section.exclusive_set(name)
        };
        let steps = std::mem::take(&mut findings.steps);
        let mut group_holds: BTreeMap<&str, Option<Date>> = BTreeMap::new();
        for step in &steps {
            if let Some(group) = find_group(step) {
                let until = group_holds.entry(group).or_default();
                *until = (*until).max(self.held_until(&step.address, moves));
            }
        }
        for step in steps {
            let step_until = self.held_until(&step.address, moves);
            let until = find_group(&step).and_then(|group| group_holds[group]).max(step_until);
            if let Some(until) = until.filter(|_| until > step_until) {
                findings.held.push(HeldObject { address: step.address.clone(), until });
            }
            let target_steps =
                if until.is_some() { &mut findings.watched } else { &mut findings.steps };
            target_steps.push(step);
        }
    }

    /// Adds the held parts of `declared`, and held objects that no manifest declares. Omits parts
    /// that are inside another held part.
    pub(super) fn add_held_objects(
        &self,
        declared: &Container,
        findings: &mut Findings,
        moves: &Moves,
    ) {
        if self.0.is_empty() {
            return;
        }
        let Findings { watched, notes, held, .. } = findings;
        let live_addresses = watched.iter().map(|step| &step.address);
        let live_addresses = live_addresses.chain(notes.iter().map(|note| &note.address)).cloned();
        for address in declared.addresses().chain(live_addresses) {
            if let Some(until) = self.held_until(&address, moves)
                && !held.iter().any(|held| held.covers(&address))
            {
                held.push(HeldObject { address, until });
            }
        }
    }

    /// Warns of holds that match nothing in `plan`.
    pub fn unmatched_warnings(&self, plan: &Plan, moves: &Moves) -> Vec<Diagnostic> {
        self.0
            .iter()
            .filter(|hold| !plan.held.iter().any(|held| hold.matches(&held.address, moves)))
            .map(|hold| {
                let message =
                    format!("the hold `{}` matches no declared or live object", escape(&hold.text));
                new_warning(&message, "correct its address, or remove it")
            })
            .collect()
    }
}

fn new_warning(message: &str, help: &str) -> Diagnostic {
    Diagnostic::warning(HOLD_CODE, message.to_owned()).with_help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Date = jiff::civil::date(2027, 1, 5);

    fn parse(texts: &[&str]) -> Result<(Holds, Vec<String>), String> {
        let (holds, warnings) = Holds::parse(texts.iter().copied(), TODAY)?;
        Ok((holds, warnings.into_iter().map(|warning| warning.message).collect()))
    }

    #[test]
    fn a_hold_ends_within_a_week() {
        for (hold_text, expected) in [
            ("acme/shop@2027-01-05", Ok(true)),
            ("acme/shop#members@2027-01-12", Ok(true)),
            ("**#variables/TOKEN@*@2027-01-06", Ok(true)),
            ("acme/shop@2027-01-04", Ok(false)),
            ("acme/shop@1999-12-31", Ok(false)),
            ("acme/shop@2027-01-13", Err("too long")),
            ("acme/shop@9999-12-31", Err("too long")),
            ("acme/shop", Err("no end")),
            ("acme/shop@", Err("no end")),
            ("acme/shop@tomorrow", Err("must end with a day")),
            ("acme/shop@20270106", Err("must end with a day")),
            ("acme/shop@2027-1-6", Err("must end with a day")),
            ("acme/shop@2027-02-30", Err("must end with a day")),
            ("acme/shop@2027-01-06T00:00:00", Err("must end with a day")),
            ("@2027-01-06", Err("no address")),
            ("#members@2027-01-06", Err("starts with a path")),
            ("acme/[@2027-01-06", Err("`acme/[@2027-01-06`: ")),
        ] {
            match (parse(&[hold_text]), expected) {
                (Ok((holds, warnings)), Ok(is_active)) => {
                    assert_eq!(holds.0.len(), usize::from(is_active), "{hold_text}");
                    assert_eq!(warnings.len(), usize::from(!is_active), "{hold_text}");
                }
                (Err(error), Err(text)) => assert!(error.contains(text), "{hold_text}: {error}"),
                (result, _) => panic!("{hold_text}: {result:?}"),
            }
        }
    }

    #[test]
    fn the_last_day_of_several_holds_counts() {
        let (holds, _) =
            parse(&["acme/**@2027-01-06", "acme/shop#members@2027-01-08"]).expect("two holds");
        let shop = Address::container("acme/shop".into());
        let hold_day = |address: &Address| {
            holds.held_until(address, &Moves::default()).map(|day| day.to_string())
        };
        assert_eq!(hold_day(&shop).as_deref(), Some("2027-01-06"));
        assert_eq!(
            hold_day(&shop.with_section("members").with_entry("a")).as_deref(),
            Some("2027-01-08")
        );
        assert_eq!(hold_day(&Address::container("other".into())), None);
    }
}
