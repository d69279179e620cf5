//! Waits for the contents of a fork or an import, which arrive in the background.
//!
//! The pauses between readings grow with the time passed, so a small fork is noticed at once and a
//! large import costs few calls. Contents that have not arrived after [`PATIENCE`] are left to a
//! later run.

use std::time::Duration;

use super::StepOutcome;
use crate::{
    cause::Cause,
    kind::{Arrival, Facts},
    live::Presence,
};

/// How long to wait for contents. Larger imports should be done before the run.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// The first pause.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArrivalVerdict {
    /// The contents have arrived: send the next call.
    Next,
    /// Read again this long after the create.
    Reread(Duration),
    /// They will not arrive, or the run stops waiting.
    Ended(StepOutcome),
}

/// When to read again after `passed`; never later than [`PATIENCE`].
pub(super) fn next_poll(passed: Duration) -> Duration {
    passed.saturating_add((passed / 2).clamp(FIRST, LONGEST)).min(PATIENCE)
}

/// Decides, without IO, from the state of the container when `passed` had passed since the create;
/// `presence` is an error if it could not be read.
pub(super) fn decide(presence: Result<&Presence, Cause>, passed: Duration) -> ArrivalVerdict {
    let unfinished = match presence {
        Ok(Presence::Here(_, Facts { arrival: None, .. })) => return ArrivalVerdict::Next,
        Ok(Presence::Here(_, Facts { arrival: Some(Arrival::Failed(why)), .. })) => {
            let why = why.clone().unwrap_or_else(|| "the service gave no reason".to_owned());
            let help = "delete the project, fix the cause and run apply again";
            let cause = Cause::new(why).context("the import of its contents failed").help(help);
            return ArrivalVerdict::Ended(StepOutcome::Failed(cause));
        }
        Ok(Presence::Here(..)) => Cause::new("its contents are still being imported"),
        Ok(Presence::Unreadable(cause)) => cause.clone().context("it could not be read again"),
        Err(cause) => cause.context("it could not be read again"),
        Ok(
            Presence::Missing(_)
            | Presence::NoNamespace(_)
            | Presence::Moved { .. }
            | Presence::Twice { .. }
            | Presence::Halfway { .. },
        ) => {
            let missing = Cause::new("accepted, but nothing is at its path");
            let missing = missing.help("look for it at another path");
            return ArrivalVerdict::Ended(StepOutcome::Failed(missing));
        }
    };
    if passed < PATIENCE {
        return ArrivalVerdict::Reread(next_poll(passed));
    }
    let minutes = PATIENCE.as_secs() / 60;
    let unfinished = unfinished.context(format!("not finished after {minutes} minutes"));
    let unfinished = unfinished.transient().help("run apply again when the import has finished");
    ArrivalVerdict::Ended(StepOutcome::Unknown(unfinished))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{field::Scope, kind::Target};

    fn here(arrival: Option<Arrival>) -> Presence {
        let target = Target { id: Some(1), ..Target::new(Scope::Project, "acme/x".into()) };
        Presence::Here(target, Facts { arrival, ..Facts::default() })
    }

    #[test]
    fn contents_are_polled_at_growing_intervals_until_a_deadline() {
        let mut passed = Duration::ZERO;
        let mut rereads = Vec::new();
        while passed < PATIENCE {
            let running = here(Some(Arrival::Running));
            let ArrivalVerdict::Reread(next) = decide(Ok(&running), passed) else {
                panic!("{passed:?}")
            };
            assert!(next > passed && next <= PATIENCE);
            passed = next;
            rereads.push(next.as_millis());
        }
        assert_eq!(rereads[..6], [500, 1_000, 1_500, 2_250, 3_375, 5_062]);
        assert!(rereads.len() < 35, "{rereads:?}");
        let end = decide(Ok(&here(Some(Arrival::Running))), PATIENCE);
        let ArrivalVerdict::Ended(StepOutcome::Unknown(cause)) = end else { panic!("{end:?}") };
        assert!(cause.transient && cause.message.contains("after 10 minutes"), "{cause}");
    }

    #[test]
    fn an_arrived_import_continues_and_a_failed_one_gives_the_reason() {
        assert_eq!(decide(Ok(&here(None)), Duration::ZERO), ArrivalVerdict::Next);
        let failed = here(Some(Arrival::Failed(Some("no such repository".into()))));
        let ArrivalVerdict::Ended(StepOutcome::Failed(cause)) = decide(Ok(&failed), Duration::ZERO)
        else {
            panic!()
        };
        assert_eq!(cause.message, "the import of its contents failed: no such repository");
        assert!(!cause.transient);
        let first_stale_step = decide(Ok(&Presence::Moved { to: None }), Duration::ZERO);
        assert!(matches!(first_stale_step, ArrivalVerdict::Ended(StepOutcome::Failed(_))));
    }

    #[test]
    fn a_failed_read_is_repeated_until_the_deadline() {
        let unread = || Cause::new("503");
        assert!(matches!(decide(Err(unread()), Duration::ZERO), ArrivalVerdict::Reread(_)));
        let unreadable = Presence::Unreadable(unread());
        assert!(matches!(decide(Ok(&unreadable), Duration::ZERO), ArrivalVerdict::Reread(_)));
        assert!(matches!(
            decide(Err(unread()), PATIENCE),
            ArrivalVerdict::Ended(StepOutcome::Unknown(_))
        ));
    }
}
