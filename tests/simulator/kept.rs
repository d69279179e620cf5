//! Plays the kept schedules: former attacks on undrift, and former failures of the simulator.
//!
//! Release 0.1.0 was attacked through a proxy that damages, delays, loses and repeats answers. This
//! table lists the successful attacks, the result then and now, and the proof: a file of
//! `tests/simulator/schedules/`, or a test. Attacks on the plan itself need no network and no file.
//!
//! | attack | then | now | shown by |
//! |---|---|---|---|
//! | a create takes 30 s | sent twice | waited for, 75 s in all | `slow-create` |
//! | a create breaks off and is carried out 3 s, or 60 s, later | sent twice | looked for until the sending must have ended | `late-create`, `late-create-at-the-limit` |
//! | a resent secret never arrives | "done" | sent again; unknown if it never arrives | `resend-never-arrives` |
//! | a create in a personal namespace loses its response | the edit after it was never sent | sent | `create-for-user-lost` |
//! | a list lacks entries that its total counts | counted as complete | read again, then incomplete | `short-list` |
//! | a page is empty, repeated or skipped | the end of the list | read again, then incomplete | `lost-page-*` |
//! | entries are removed between two pages | (found by the simulator) | a total that falls is a contradiction | `removed-while-paging` |
//! | a list has no end | memory ran out | 100,000 entries, 64 MiB | `a_list_above_the_size_limit_is_refused` |
//! | a change is lost in an outage, and the project is archived | the change was lost | archived only after everything else matches | `outage-then-archive` |
//! | somebody archives the project between plan and apply | "already done" | skipped and reported | `archived-before-apply` |
//! | a second read returns `{}` | "already done" | a failed read: required keys are missing | `unread-before-apply` |
//! | one wrong 404 for an object declared absent | (found by the simulator) nothing to do | read twice | `not-there-for-a-moment` |
//! | a project that leaves a group is read while that group is renamed | reported as moved (found by the simulator) | read once more | `left-below-a-moving-group` |
//! | the object is deleted or renamed before the read-back | "applied" | reported as not read back | `deleted-before-read-back`, `renamed-before-read-back` |
//! | somebody changes the project before it is archived | archived | skipped | `changed-before-archive` |
//! | a section cannot be read, and the rest archives the project | archived | skipped | `unread-before-archive` |
//! | somebody rotates a value while an edit waits | overwritten | read again | `rotated-in-a-wait` |
//! | an edit repeats a value that was read long before another, slow list | counted as fresh (found by the simulator) | read again | `waited-behind-another-list`, `read-long-before-another-list` |
//! | a hook is replaced by another with its URL while an edit waits | (found by the simulator) | changed meanwhile | `replaced-in-a-wait` |
//! | the service quotes a live value, or a hook's credentials | printed | redacted | `live-value-quoted`, `credentials-quoted` |
//! | a signal among many writes | all were sent | none starts after it | `interrupted-at-a-write` |
//! | a signal while the service asks to wait | waited out, then all were sent | none starts after it | `interrupted-in-a-wait` |
//! | a response that trickles beyond the deadline | waited for | reads are cut, a write is unknown | `deadline-in-a-read`, `deadline-in-a-write` |
//! | projects with a forbidden section | ended the run | incomplete, the others are applied | `forbidden-sections` |
//! | a user cannot be looked up | ended the plan | incomplete, the others are applied | `user-not-found-out` |
//! | undrift's own token under another name, or its file | a variable's value | refused | `the_own_token_is_never_a_value_under_any_name` |
//! | a hook's URL is a secret that is not set here | the live URL was shown | masked | `no_report_shows_a_live_secret` |
//! | a secret that is wrapped at the width of the terminal | shown in two pieces | redacted before wrapping | `a_secret_in_several_colours_is_removed` |
//! | a secret of several lines, or a common word, in a JSON report | broken, or keys renamed | redacted in values | `a_report_does_not_depend_on_the_secrets` |
//! | `extra:` contains a parameter that addresses the object | another object was changed | refused | the corpus of manifests |
//! | a list that lacks fields, for 200 projects | read one at a time | read concurrently | `a_maintainer_can_plan_without_administrator_rights` |
//! | a group whose path is a number | the group with that id | found by its path | `a_group_is_found_by_its_path_and_never_by_a_number` |
//! | a report that cannot be written after the writes | hid that the run was incomplete | the exit code of the run counts | `a_lost_report_does_not_hide_the_exit_code` |
//! | a run that fails early | the old report stayed | every run writes its own | `every_run_leaves_its_own_report` |
//! | somebody changes the project while it is written, before it is archived | archived (found by the simulator) | its object is read first, with everything that it shows | `changed-while-trusted` |
//! | the removal of a replacement breaks off, and is carried out 3 s later | sent twice; the late one removed the new entry (found by the simulator) | looked for until the sending must have ended | `replaced-then-removed-late` |
//! | a rule names a member that the same run adds to a group above | refused, because nothing waited (found by the simulator) | waits for the other container | `rule-before-member` |
//! | a response lacks a flag that an edit must repeat | reset by the edit (found by the simulator) | no edit is planned unless the flag is declared | `flag-not-shown` |
//! | the same for a rule that loses a grant with a share | the share was replaced, and the grant not restored (found by the simulator) | the share is not replaced | `flag-not-shown-after-share` |
//! | a group moves while a moving project below it is read again | the guard counted other users than the plan, and the project was skipped (found by the simulator) | acknowledgements of a transfer ignore the number | `group-move-while-below-moves` |
//! | a group that must move cannot be read, and a project below it moves | reported as done, at another path (found by the simulator) | skipped until the group moves | `group-unread-and-not-moved` |
//! | a group is renamed and its path given to another one while a run writes to it | reported as done, exit 0 (found by the simulator) | the path is read after the last write | `group-swapped-in-a-run` |
//! | a response hides that the service has tiers | edited where the plan showed a replacement (found by the simulator) | changed meanwhile: the next run does it | `tier-not-shown` |
//! | two runs at once replace the same variable | the failed run reported the old value as restored (found by the simulator) | it reports that somebody else added it | `replaced-by-two` |
//! | the same, and the response to one add is lost | done, without the undeclared fields (found by the simulator) | changed meanwhile | `replaced-by-two-unheard` |
//! | a fork names a path to which another project moves | the service finds none, or the wrong one (found by the simulator) | the project that is declared there | `a_fork_has_the_upstream_that_is_declared_at_the_path` |
//!
//! Attacks on the plan itself, and the tests that show that they no longer succeed, in
//! `crates/core/src/plan/tests`, `crates/core/src/diff/tests.rs`, `tests/reconcile` and here.
//!
//! | attack | now | shown by |
//! |---|---|---|
//! | a copy after a lost response, and a guard against removals | the younger copies count, and their original stays | `removing_a_duplicate_counts_but_leaves_its_original` |
//! | two unlisted hooks that differ only in their query | distinguished by their ids | `an_unlisted_hook_has_its_id_in_its_address` |
//! | a project that is archived by hand, and differs | a difference, and skipped | `an_archived_project_is_skipped_and_differs_unless_declared_archived` |
//! | a run switches CI/CD off and declares variables | switched off after the variables | `a_section_follows_the_switch_that_it_needs`, the scenario `ci-off` |
//! | variables of an archived project that the run unarchives | planned as possible, and done by the same run | `unarchiving_makes_the_other_steps_possible_except_removals`, the scenarios `unarchive-*` |
//! | a hook's query changes, and unlisted hooks are deleted | an unlisted hook has its id in its address | `an_unlisted_hook_has_its_id_in_its_address` |
//! | a hook made by hand that equals a declared one except in unknown fields | ambiguous: a copy must equal the whole response, and be created soon after | `a_copy_equals_the_first_and_was_made_soon_after_it` |
//! | a service that rewrites hooks' URLs | identified by their normal form; one that differs by a `/` is a problem | `a_hook_is_the_same_in_normal_form_and_nearly_the_same_but_for_a_slash`, the dialect `normalizes_values` |
//! | the last owner is replaced, or expires | the new one is added first; the last one is guarded | `the_old_owner_is_removed_after_the_new_one_is_added`, `an_expiry_date_is_guarded_like_a_removal`, the scenario `group-owner-swap` |
//! | 400 variables replaced by 400 others | found by lookup; sections share edges | `sections_share_edges` |
//! | a selection without some entries of a new project, or with faulty entries | applied once, before anything is read | `an_unselected_creation_is_a_problem_with_help` |
//! | 50 projects refused by the same guard | shown as one, and acknowledged by one glob | `an_acknowledgement_covers_refusals_that_its_glob_matches` |
//! | one broken project of many | skipped with its dependents; the rest is applied | `broken_containers_are_skipped_and_too_many_stop_the_run`, `containers_that_depend_on_a_skipped_one_are_skipped` |

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::{Path, PathBuf},
};

use crate::{Simulator, schedule::Schedule};

/// The folder of kept schedules.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator/schedules")
}

/// Keeps a schedule that failed.
pub(crate) fn keep(schedule: &Schedule) -> PathBuf {
    let mut digest = DefaultHasher::new();
    text(schedule).hash(&mut digest);
    let file = folder().join(format!("found-{:08x}.json", digest.finish() as u32));
    write(&file, schedule);
    file
}

fn text(schedule: &Schedule) -> String {
    serde_json::to_string_pretty(schedule).unwrap() + "\n"
}

pub(crate) fn write(file: &Path, schedule: &Schedule) {
    std::fs::write(file, text(schedule)).unwrap();
}

pub(crate) fn read(file: &Path) -> Schedule {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// All kept schedules, by name.
pub(crate) fn kept_schedules() -> Vec<(PathBuf, Schedule)> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.into_iter().map(|file| (file.clone(), read(&file))).collect()
}

#[test]
fn every_kept_schedule_passes() {
    let simulator = Simulator::get();
    let mut failed = Vec::new();
    for (file, schedule) in kept_schedules() {
        let played = simulator.play(&schedule);
        let name = file.file_name().unwrap_or_default().display().to_string();
        if !played.violations.is_empty() {
            failed.push(format!("{name}: {:#?}", played.violations));
        }
        // A fault that no longer occurs shows nothing.
        if played.triggered.len() != schedule.faults.len() {
            let (struck, all) = (played.triggered, schedule.faults.len());
            failed.push(format!("{name}: only {struck:?} of {all} came to pass"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
