//! Schedules that are played first: attacks on undrift, and findings of the simulator.
//!
//! Release 0.1.0 was attacked through a proxy that damages, delays, loses and repeats. The
//! successful attacks are listed here, with the result then and now, and what shows it: a file of
//! `tests/simulator/schedules/`, or a test. Attacks on the plan itself, without the network, have
//! no file.
//!
//! | attack | then | now | shown by |
//! |---|---|---|---|
//! | a create takes 30 s | sent twice | waited for, 75 s in all | `slow-create` |
//! | a create breaks off and is carried out 3 s, or 60 s, later | sent twice | looked for until nothing can come any more | `late-create`, `late-create-at-the-limit` |
//! | a secret is sent on request, and never arrives | "done" | sent again; unknown if it never gets through | `resend-never-arrives` |
//! | a create in a person's namespace loses its answer | the edit after it was never sent | sent | `create-for-user-lost` |
//! | a list lacks entries that its total counts | taken for whole | read again, then incomplete | `short-list` |
//! | a page is empty, comes twice, or is skipped | the end of the list | read again, then incomplete | `lost-page-*` |
//! | entries are removed between two pages | (found by the simulator) | a total that falls is a contradiction | `removed-while-paging` |
//! | a list has no end | memory ran out | 100,000 entries, 64 MiB | `no_more_of_a_list_is_kept_than_allowed` |
//! | an outage takes a change, and the project is archived | the change was lost | archived when everything before is as declared | `outage-then-archive` |
//! | somebody archives it between plan and apply | "already so" | left alone, and said | `archived-before-apply` |
//! | what is read again is `{}` | "already so" | failed: not what the route answers | `unread-before-apply` |
//! | one wrong 404 for what is declared to be gone | (found by the simulator) nothing to do | looked at twice | `not-there-for-a-moment` |
//! | a project that leaves a group is looked at while that group is renamed | told to be elsewhere (found by the simulator) | looked at once more | `left-below-a-moving-group` |
//! | it is deleted, or renamed, before the read-back | "applied" | not read back, and said | `deleted-before-read-back`, `renamed-before-read-back` |
//! | somebody changes it before it is archived | archived | skipped | `changed-before-archive` |
//! | a section cannot be read, and the rest archives the project | archived | skipped | `unread-before-archive` |
//! | somebody rotates a value while an edit waits | put back | read again | `rotated-in-a-wait` |
//! | a value is repeated that was read long before another, slow list | counted as just read (found by the simulator) | read again | `waited-behind-another-list`, `read-long-before-another-list` |
//! | a hook is replaced by another with its URL while an edit waits | (found by the simulator) | changed meanwhile | `replaced-in-a-wait` |
//! | the service quotes a live value, or a hook's credentials | printed | struck | `live-value-quoted`, `credentials-quoted` |
//! | a signal among many writes | all were sent | none starts after it | `interrupted-at-a-write` |
//! | a signal while the service asks to wait | waited out, then all were sent | none starts after it | `interrupted-in-a-wait` |
//! | an answer that trickles beyond the deadline | waited for | reads are cut, a write is unknown | `deadline-in-a-read`, `deadline-in-a-write` |
//! | projects of which a section is forbidden | ended the run | incomplete, the others go on | `forbidden-sections` |
//! | a person cannot be looked up | ended the plan | incomplete, the others go on | `user-not-found-out` |
//! | undrift's own token under another name, or its file | a variable's value | refused | `the_own_token_is_never_a_value_under_any_name` |
//! | a hook's URL is a secret that is not set here | the live URL was shown | masked | `no_report_shows_a_live_secret` |
//! | a secret that is wrapped to the terminal | shown in two pieces | struck before | `a_secret_is_struck_from_the_line_whatever_its_pieces_and_their_colours` |
//! | a secret of several lines, or a common word, in a JSON report | broken, or keys renamed | struck in values | `a_report_does_not_depend_on_the_secrets` |
//! | `extra:` names what addresses a write | another thing was changed | refused | the corpus of manifests |
//! | a list that lacks fields, for 200 projects | read one at a time | read side by side | `a_maintainer_without_the_rights_of_an_administrator_is_enough` |
//! | a group whose path is a number | the group with that id | found by its path | `a_group_is_found_by_its_path_and_never_by_a_number` |
//! | a report that cannot be written after the writes | hid that the run was incomplete | the more telling code | `a_lost_report_does_not_hide_the_exit_code` |
//! | a run that fails early | left the last report | every run leaves its own | `every_run_leaves_its_own_report` |
//! | somebody changes it while it is written, and it is archived | archived (found by the simulator) | its object is read before that, and all that this shows counts | `changed-while-trusted` |
//! | the removal of a replacement breaks off, and is carried out 3 s later | sent twice; the late one removed what had been added anew (found by the simulator) | looked for until nothing can come any more | `replaced-then-removed-late` |
//! | a rule names a member whom the same run adds to a group above | refused, because nothing waited (found by the simulator) | waits for the other container | `rule-before-member` |
//! | an answer lacks a flag that an edit has to repeat | reset by the edit (found by the simulator) | nothing is planned there, unless the flag is declared | `flag-not-shown` |
//! | the same of a rule that a share takes its grants from | the share was replaced, and the grant not given back (found by the simulator) | the share is not replaced | `flag-not-shown-after-share` |
//! | a group moves while what moves below it is looked at again | the guard counted other users than the plan, and the project was left (found by the simulator) | a transfer is acknowledged whatever the numbers | `group-move-while-below-moves` |
//! | a group that is to move cannot be read, and what is below it moves | told as done, at another path (found by the simulator) | left out until the group moves | `group-unread-and-not-moved` |
//! | a group is renamed and its path given to another one while a run writes to it | told as done, exit 0 (found by the simulator) | what is at the path is looked at after the last write | `group-swapped-in-a-run` |
//! | an answer hides that the service has tiers | edited where the plan showed a replacement (found by the simulator) | changed meanwhile: the next run does it | `tier-not-shown` |
//! | two runs at once replace the same variable | the one that failed said that what was there was put back (found by the simulator) | it says that someone else added it anew | `replaced-by-two` |
//! | the same, and the one's add is lost | done, without what no manifest declares (found by the simulator) | changed meanwhile | `replaced-by-two-unheard` |
//! | a run names a project that another one's move gives its path to | the service has none, or the wrong one (found by the simulator) | the one that is declared there | `a_fork_has_the_upstream_that_is_declared_at_the_path` |
//!
//! Attacks on the plan itself, and what shows that they no longer succeed: tests in
//! `src/plan/tests`, `src/diff/tests.rs`, `tests/reconcile` and here.
//!
//! | attack | now | shown by |
//! |---|---|---|
//! | two copies that a lost answer left, and a guard against removals | healed: the younger copy is not counted against the guard | `removing_a_duplicate_does_not_count_as_a_removal` |
//! | two unlisted hooks that differ in their query, of which one is not deleted | told apart | `an_unlisted_hook_has_its_id_in_its_address` |
//! | a project that is archived by hand, and differs | a difference, and left alone | `an_archived_project_is_skipped_and_differs_unless_declared_archived` |
//! | CI/CD switched off by the run that declares variables | after the variables; then they are closed, as declared | `a_section_follows_the_switch_that_it_needs`, the scenario `ci-off` |
//! | CI/CD closed by `archived` until the run opens the project | planned as possible, and done by the same run | `unarchiving_makes_the_other_steps_possible_except_removals`, the scenarios `unarchive-*` |
//! | a hook's query changes, and unlisted hooks are deleted | an unlisted hook has its id in its address | `an_unlisted_hook_has_its_id_in_its_address` |
//! | a hook made by hand like a declared one, but for what undrift does not know | ambiguous: a copy equals the whole answer, and was made soon after | `a_copy_equals_the_first_and_was_made_soon_after_it` |
//! | a service that rewrites hooks' URLs | told by their normal form; one that differs by a `/` is a problem | `a_hook_is_the_same_in_normal_form_and_nearly_the_same_but_for_a_slash`, the dialect `normalises` |
//! | the last owner is replaced, or ends on a day | the new one comes first; the last one is guarded | `the_old_owner_is_removed_after_the_new_one_is_added`, `an_expiry_date_is_guarded_like_a_removal`, the scenario `group-owner-swap` |
//! | 400 variables replaced by 400 others | looked up, and a section shares its edges | `sections_share_edges` |
//! | a selection that leaves out entries of a new project, or entries with problems | applied once, before anything is read | `an_unselected_creation_is_a_problem_with_help` |
//! | 50 projects refused by the same guard | shown as one, and acknowledged by one glob | `an_acknowledgement_covers_refusals_that_its_glob_matches` |
//! | one broken project of many | left out with what depends on it; the rest is applied | `broken_containers_are_skipped_and_too_many_stop_the_run`, `containers_that_depend_on_a_skipped_one_are_skipped` |

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
pub(crate) fn all() -> Vec<(PathBuf, Schedule)> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.into_iter().map(|file| (file.clone(), read(&file))).collect()
}

#[test]
fn every_kept_schedule_passes() {
    let simulator = Simulator::new();
    let mut failed = Vec::new();
    for (file, schedule) in all() {
        let played = simulator.play(&schedule);
        let name = file.file_name().unwrap_or_default().display().to_string();
        if !played.violations.is_empty() {
            failed.push(format!("{name}: {:#?}", played.violations));
        }
        // A fault that no longer occurs shows nothing.
        if played.struck.len() != schedule.faults.len() {
            let (struck, all) = (played.struck, schedule.faults.len());
            failed.push(format!("{name}: only {struck:?} of {all} came to pass"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
