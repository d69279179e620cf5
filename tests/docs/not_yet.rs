//! What the book and the pipeline use and what is not there yet. Each list fails for an entry that is
//! there already, and for one that nothing uses.

/// Parts of commands. A command that has one of them has to fail.
pub(crate) const COMMANDS: &[&str] = &[
    "undrift snapshot",
    "undrift comment",
    "--live ",
    "--base ",
    "--changed",
    "-o plan.json",
    "undrift apply plan.json",
    "--record ",
    "--out markdown=",
    "--out html=",
    "--out codequality=",
];

/// Options and environment variables that pages name in passing.
pub(crate) const NAMES: &[&str] = &[
    "--base",
    "--changed",
    "--on-stale",
    "UNDRIFT_HOLD",
    "UNDRIFT_PLAN_KEY",
    "UNDRIFT_SNAPSHOT_KEY",
];

/// Tests that the threat model names.
pub(crate) const TESTS: &[&str] = &[
    "a_branch_cannot_lift_its_own_limits",
    "a_file_that_is_cut_or_changed_is_refused_or_read",
    "a_plan_is_stale_when_a_field_changed_since",
    "an_edited_plan_does_no_more_than_a_new_one",
    "names_cannot_inject_into_a_comment",
    "names_cannot_inject_into_a_page",
    "no_secret_is_in_a_snapshot_and_no_guess_is_answered",
];
