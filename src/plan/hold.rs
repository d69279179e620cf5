//! Holds: what somebody changed by hand in an emergency, and a run leaves alone until a day.
//!
//! A hold is a watch with an end. What differs where it holds is compared and shown, and nobody
//! writes it; it is known, so it counts as a difference only where everything open does. Holds come
//! from the environment of a run, never from a manifest, and for [`LONGEST`] days at most: what is
//! to stay so belongs into a manifest. So a branch cannot rename its way out of one: a hold on a path is
//! on what is declared to have had that path, too.

use jiff::{Span, civil::Date};

use super::Plan;
use crate::{
    address::{Address, Selector},
    desired::{Container, Moves},
    diagnostic::Diagnostic,
    diff::{Findings, Held},
    text::{count, escape},
};

/// For how many days ahead something may be held: a week with a weekend in it, so that nobody has to
/// get up for it, and no more, so that nobody forgets it.
const LONGEST: i32 = 7;

/// The sort of what is said of holds.
const CODE: &str = "hold";

/// A hold.
#[derive(Clone, Debug)]
struct Hold {
    /// As it was written.
    written: String,
    at: Selector,
    /// The last day.
    until: Date,
}

/// What a run leaves alone.
#[derive(Clone, Debug, Default)]
pub struct Holds(Vec<Hold>);

impl Hold {
    /// Reads `ADDRESS@YYYY-MM-DD`, in which the address may be a glob.
    fn parse(written: &str, today: Date) -> Result<Self, String> {
        let shown = escape(written);
        let (at, day) = written.rsplit_once('@').unwrap_or((written, ""));
        // Only days: everything else that a parser of dates takes would be an accident.
        let until = day.parse::<Date>().ok().filter(|date| date.to_string() == day);
        let Some(until) = until.filter(|_| !at.is_empty()) else {
            return Err(format!(
                "`{shown}` has no end; write ADDRESS@YYYY-MM-DD, with the last day on which it holds"
            ));
        };
        let at = Selector::parse(at).map_err(|why| format!("`{shown}`: {why}"))?;
        let last = today.saturating_add(Span::new().days(LONGEST));
        if until > last {
            return Err(format!(
                "`{shown}` is too long; a hold ends within {}, by {last}: what is to stay so belongs into a manifest",
                count(usize::try_from(LONGEST).unwrap_or_default(), "day")
            ));
        }
        Ok(Self { written: written.to_owned(), at, until })
    }

    /// Whether it holds what is at `address`, or was elsewhere in `moves`.
    fn matches(&self, address: &Address, moves: &Moves) -> bool {
        moves.any(address, |known| self.at.matches(known))
    }
}

impl Holds {
    /// Reads holds, and says which of them are over and hold nothing any more: an end that needs
    /// somebody to take it away would stop every run on the day after.
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
                    format!("the hold `{}` is over; nothing is held by it", escape(written));
                warnings.push(warning(&message, "take it away"));
            } else {
                holds.push(hold);
            }
        }
        Ok((Self(holds), warnings))
    }

    /// Until which day, that day included, what is at `address`, or was in `moves`, is left alone, if
    /// it is.
    pub fn until(&self, address: &Address, moves: &Moves) -> Option<Date> {
        let holding = self.0.iter().filter(|hold| hold.matches(address, moves));
        holding.map(|hold| hold.until).max()
    }

    /// Takes out of the steps of `findings` what is held: it is only watched.
    pub(super) fn leave(&self, findings: &mut Findings, moves: &Moves) {
        if self.0.is_empty() {
            return;
        }
        let steps = std::mem::take(&mut findings.steps);
        let (held, steps): (Vec<_>, Vec<_>) =
            steps.into_iter().partition(|step| self.until(&step.address, moves).is_some());
        findings.steps = steps;
        findings.watched.extend(held);
    }

    /// Says in `findings`, which are all of `declared`, what is held: of what is declared, the
    /// largest parts, and what else was found.
    pub(super) fn say(&self, declared: &Container, findings: &mut Findings, moves: &Moves) {
        if self.0.is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut findings.held);
        let found = findings.watched.iter().map(|step| &step.address);
        let found = found.chain(findings.notes.iter().map(|note| &note.address)).cloned();
        for address in declared.addresses().chain(found) {
            if let Some(until) = self.until(&address, moves)
                && !held.iter().any(|held| held.holds(&address))
            {
                held.push(Held { address, until });
            }
        }
        findings.held = held;
    }

    /// Warns of holds that match nothing in `plan`.
    pub fn idle(&self, plan: &Plan, moves: &Moves) -> Vec<Diagnostic> {
        let is_idle =
            |hold: &&Hold| !plan.held.iter().any(|held| hold.matches(&held.address, moves));
        let idle = self.0.iter().filter(is_idle);
        idle.map(|hold| {
            let message = format!(
                "the hold `{}` matches nothing that is declared or was found",
                escape(&hold.written)
            );
            warning(&message, "correct its address, or take it away")
        })
        .collect()
    }
}

fn warning(message: &str, help: &str) -> Diagnostic {
    Diagnostic::warning(CODE, message.to_owned()).help(help)
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
        let day =
            |address: &Address| holds.until(address, &Moves::default()).map(|day| day.to_string());
        assert_eq!(day(&shop).as_deref(), Some("2027-01-06"));
        assert_eq!(day(&shop.section("members").entry("a")).as_deref(), Some("2027-01-08"));
        assert_eq!(day(&Address::container("other".into())), None);
    }
}
