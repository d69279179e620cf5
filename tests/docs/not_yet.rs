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

/// Tests that the threat model names, in order.
pub(crate) const TESTS: &[&str] = &[
    "a_branch_cannot_lift_its_own_limits",
    "a_file_holds_no_secret_and_nothing_that_identifies_one",
    "a_file_that_is_cut_or_changed_is_refused_or_read",
    "an_edited_file_with_the_right_id_only_leaves_things_out",
    "every_live_value_that_the_plan_is_made_of_makes_it_stale",
    "guards_are_asked_again_and_take_nothing_from_the_file",
    "names_that_inject_are_text",
    "no_secret_is_in_a_snapshot_and_no_guess_is_answered",
    "what_others_say_is_code_and_comes_out_as_it_went_in",
];
