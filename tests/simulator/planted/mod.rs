//! The test of the simulator itself: each planted bug is found, and the finding is that bug.
//!
//! Each bug has a schedule that shows it, in `tests/simulator/planted/`. If that no longer shows
//! it, or there is none, the schedules that failed once are searched, then random ones from the
//! first seed on, and the one found replaces it. With `UNDRIFT_SEEDS` that many random ones of the
//! same scenario are searched for each bug instead; `UNDRIFT_BUGS=AcceptInconsistentLists,AcceptRowsWithoutIdentity` selects
//! bugs.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use undrift::planted::Bug;

use crate::{Simulator, env_number, kept, oracle::Violation, schedule::Schedule, smallest};

/// Every bug.
const BUGS: [Bug; 26] = [
    Bug::ResendLostCreates,
    Bug::ResendEarly,
    Bug::AssumeLostWriteApplied,
    Bug::AcceptInconsistentLists,
    Bug::FirstPageOnly,
    Bug::AcceptRowsWithoutIdentity,
    Bug::AssumeUnreadProjectDone,
    Bug::ArchiveUnfinishedProject,
    Bug::SkipReadBack,
    Bug::SendStaleValues,
    Bug::OmitRepeatedValues,
    Bug::OmitVariableScope,
    Bug::OmitHookSecret,
    Bug::IgnoreRetryAfter,
    Bug::ContinueAfterSignal,
    Bug::ContinueAfterTokenRefusal,
    Bug::QuoteUnredacted,
    Bug::TreatAnyNotFoundAsMissing,
    Bug::IgnoreRename,
    Bug::RemoveUnlisted,
    Bug::SkipRestore,
    Bug::ResendRemovals,
    Bug::TreatResponseAsWholeList,
    Bug::TrustIncompleteResponses,
    Bug::RemoveUnplannedEntries,
    Bug::IgnoreOtherContainers,
];

/// The number of schedules after which a bug counts as not found.
const MAX_SCHEDULES: u64 = 20_000;

/// The file of the schedule that shows a bug.
fn file(bug: Bug) -> PathBuf {
    let mut name = String::new();
    for (at, letter) in format!("{bug:?}").char_indices() {
        if letter.is_uppercase() && at > 0 {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator/planted");
    folder.join(name + ".json")
}

/// The result of the search for a bug.
type SearchResult = Result<String, String>;

impl Simulator {
    /// Returns the rules that a bug breaks if nothing breaks without it.
    ///
    /// # Errors
    /// The rules that break without the bug.
    fn broken_rules(&self, bug: Bug, schedule: &Schedule) -> Result<Vec<Violation>, String> {
        let broken = bug.run_with_bug(|| self.play(schedule)).violations;
        let anyhow = if broken.is_empty() { Vec::new() } else { self.play(schedule).violations };
        let schedule = || serde_json::to_string(schedule).unwrap();
        if anyhow.is_empty() { Ok(broken) } else { Err(format!("{}: {anyhow:?}", schedule())) }
    }

    /// Searches for a bug: with its kept schedule, unless `seeds` are given.
    fn search(&self, bug: Bug, seeds: Option<u64>) -> SearchResult {
        let describe = |schedule: &Schedule, broken: &Violation| {
            format!("{bug:?}: {}: {}: {}", schedule.scenario, broken.rule, broken.details)
        };
        let file = file(bug);
        let kept_schedule = file.exists().then(|| kept::read(&file));
        if let Some(schedule) = kept_schedule.as_ref().filter(|_| seeds.is_none())
            && let Some(first) = self.broken_rules(bug, schedule)?.first()
        {
            return Ok(describe(schedule, first));
        }
        let failed_once = kept::kept_schedules().into_iter().map(|(_, schedule)| schedule);
        let courses = match kept_schedule.filter(|_| seeds.is_some()) {
            Some(own) => vec![self.play(&self.calm(&own.scenario)).course],
            None => self.courses(),
        };
        let others = failed_once.filter(|_| seeds.is_none()).chain(self.random_of(courses, 0));
        for (number, schedule) in (1..=seeds.unwrap_or(MAX_SCHEDULES)).zip(others) {
            let broken = self.broken_rules(bug, &schedule)?;
            let Some(first) = broken.first() else { continue };
            let told = describe(&schedule, first);
            if seeds.is_some() {
                return Ok(format!("{told}, run {number}"));
            }
            let shown = |schedule: &Schedule| self.broken_rules(bug, schedule).unwrap_or_default();
            kept::write(&file, &smallest(&schedule, shown));
            return Err(format!("{told}: now kept in {}", file.display()));
        }
        Err(format!("{bug:?} is not found"))
    }
}

#[test]
fn every_planted_bug_is_found() {
    let simulator = Simulator::get();
    let (next, seeds) = (AtomicUsize::new(0), env_number("UNDRIFT_SEEDS"));
    let only = std::env::var("UNDRIFT_BUGS").unwrap_or_default();
    let is_selected = |bug: &Bug| only.split(',').any(|part| format!("{bug:?}").starts_with(part));
    let bugs: Vec<_> = BUGS.into_iter().filter(is_selected).collect();
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(bug) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match simulator.search(*bug, seeds) {
                        Ok(told) => println!("{told}"),
                        Err(told) => wrong.lock().unwrap().push(told),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
