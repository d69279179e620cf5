//! Decides how long to wait for the contents of a fork or an import, which the service adds in the
//! background.
//!
//! The pauses between readings grow with the elapsed time, so a small fork is noticed soon, and a
//! large import needs few requests. If contents have not arrived after [`MAX_ARRIVAL_WAIT`], the
//! run stops waiting.

use std::time::Duration;

use super::StepOutcome;
use crate::{
    cause::Cause,
    kind::{ContainerFacts, ImportState},
    live::Presence,
};

/// The maximum wait for contents. Imports that take longer should be done before the run.
pub(super) const MAX_ARRIVAL_WAIT: Duration = Duration::from_secs(600);
/// The first pause between two readings.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause between two readings.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The next action of a step that waits for contents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ArrivalVerdict {
    /// The contents have arrived: send the next call.
    SendNext,
    /// Read the container again when this time has passed since the container was created.
    Reread(Duration),
    /// The contents will not arrive, or the run stops waiting.
    Ended(StepOutcome),
}

/// The time of the next reading. Like `elapsed`, it is counted from the create. It is never later
/// than [`MAX_ARRIVAL_WAIT`].
pub(super) fn next_reading_at(elapsed: Duration) -> Duration {
    elapsed.saturating_add((elapsed / 2).clamp(FIRST_PAUSE, MAX_PAUSE)).min(MAX_ARRIVAL_WAIT)
}

/// Decides the next action, without IO. `presence` is the state of the container at `elapsed` after
/// the create, or an error if the container could not be read.
pub(super) fn decide_arrival(
    presence: Result<&Presence, Cause>,
    elapsed: Duration,
) -> ArrivalVerdict {
    let unfinished_cause = match presence {
        Ok(Presence::Existing(_, ContainerFacts { import_state: None, .. })) => {
            return ArrivalVerdict::SendNext;
        }
        Ok(Presence::Existing(
            _,
            ContainerFacts { import_state: Some(ImportState::Failed(failure_text)), .. },
        )) => {
            let reason =
                failure_text.clone().unwrap_or_else(|| "the service gave no reason".to_owned());
            let help = "delete the project, fix the cause and run apply again";
            let cause = Cause::new(reason)
                .with_context("the import of its contents failed")
                .with_help(help);
            return ArrivalVerdict::Ended(StepOutcome::Failed(cause));
        }
        Ok(Presence::Existing(..)) => Cause::new("its contents are still being imported"),
        Ok(Presence::Unreadable(cause)) => cause.clone().with_context("it could not be read again"),
        Err(cause) => cause.with_context("it could not be read again"),
        Ok(
            Presence::Missing(_)
            | Presence::MissingNamespace(_)
            | Presence::Redirected { .. }
            | Presence::Ambiguous { .. }
            | Presence::PartlyMoved { .. },
        ) => {
            let missing_cause = Cause::new("accepted, but nothing is at its path");
            let hinted_cause = missing_cause.with_help("look for it at another path");
            return ArrivalVerdict::Ended(StepOutcome::Failed(hinted_cause));
        }
    };
    if elapsed < MAX_ARRIVAL_WAIT {
        return ArrivalVerdict::Reread(next_reading_at(elapsed));
    }
    let minutes = MAX_ARRIVAL_WAIT.as_secs() / 60;
    let timeout_cause =
        unfinished_cause.with_context(format!("not finished after {minutes} minutes"));
    let transient_cause =
        timeout_cause.mark_transient().with_help("run apply again when the import has finished");
    ArrivalVerdict::Ended(StepOutcome::Unknown(transient_cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{field::Scope, kind::Target};

    fn presence_with_import(import_state: Option<ImportState>) -> Presence {
        let target = Target { id: Some(1), ..Target::new(Scope::Project, "acme/x".into()) };
        Presence::Existing(target, ContainerFacts { import_state, ..ContainerFacts::default() })
    }

    #[test]
    fn contents_are_polled_at_growing_intervals_until_a_deadline() {
        let mut elapsed = Duration::ZERO;
        let mut rereads = Vec::new();
        while elapsed < MAX_ARRIVAL_WAIT {
            let running = presence_with_import(Some(ImportState::Running));
            let ArrivalVerdict::Reread(reread_at) = decide_arrival(Ok(&running), elapsed) else {
                panic!("{elapsed:?}")
            };
            assert!(reread_at > elapsed && reread_at <= MAX_ARRIVAL_WAIT);
            elapsed = reread_at;
            rereads.push(reread_at.as_millis());
        }
        assert_eq!(rereads[..6], [500, 1_000, 1_500, 2_250, 3_375, 5_062]);
        assert!(rereads.len() < 35, "{rereads:?}");
        let end =
            decide_arrival(Ok(&presence_with_import(Some(ImportState::Running))), MAX_ARRIVAL_WAIT);
        let ArrivalVerdict::Ended(StepOutcome::Unknown(cause)) = end else { panic!("{end:?}") };
        assert!(cause.transient && cause.message.contains("after 10 minutes"), "{cause}");
    }

    #[test]
    fn an_arrived_import_continues_and_a_failed_one_gives_the_reason() {
        assert_eq!(
            decide_arrival(Ok(&presence_with_import(None)), Duration::ZERO),
            ArrivalVerdict::SendNext
        );
        let failed_presence =
            presence_with_import(Some(ImportState::Failed(Some("no such repository".into()))));
        let ArrivalVerdict::Ended(StepOutcome::Failed(cause)) =
            decide_arrival(Ok(&failed_presence), Duration::ZERO)
        else {
            panic!()
        };
        assert_eq!(cause.message, "the import of its contents failed: no such repository");
        assert!(!cause.transient);
        let verdict = decide_arrival(Ok(&Presence::Redirected { new_path: None }), Duration::ZERO);
        assert!(matches!(verdict, ArrivalVerdict::Ended(StepOutcome::Failed(_))));
    }

    #[test]
    fn a_failed_read_is_repeated_until_the_deadline() {
        let unread_cause = || Cause::new("503");
        assert!(matches!(
            decide_arrival(Err(unread_cause()), Duration::ZERO),
            ArrivalVerdict::Reread(_)
        ));
        let unreadable = Presence::Unreadable(unread_cause());
        assert!(matches!(
            decide_arrival(Ok(&unreadable), Duration::ZERO),
            ArrivalVerdict::Reread(_)
        ));
        assert!(matches!(
            decide_arrival(Err(unread_cause()), MAX_ARRIVAL_WAIT),
            ArrivalVerdict::Ended(StepOutcome::Unknown(_))
        ));
    }
}
