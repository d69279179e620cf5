//! The dialects of the sandbox, for tests that try each of them.

use undrift_sandbox::{AbsentDelete, Profile};

/// The name of a switch of a [`Profile`], and the function that turns it on.
pub(crate) type Switch = (&'static str, fn(&mut Profile));

/// Each second answer to a question that neither the reference nor the real service settles, or on
/// which they disagree: the name of the switch, and the function that turns it on.
pub(crate) fn switches() -> Vec<Switch> {
    vec![
        ("absent_delete", |profile| profile.absent_delete = AbsentDelete::NotFound),
        ("archive_twice_refused", |profile| profile.archive_twice_refused = true),
        ("archived_read_only", |profile| profile.archived_read_only = true),
        ("code_owner_approval_kept", |profile| profile.code_owner_approval_kept = true),
        ("accepts_only_reference_attributes", |profile| {
            profile.accepts_only_reference_attributes = true;
        }),
        ("developers_read_protections", |profile| profile.developers_read_protections = true),
        ("empty_has_no_branch", |profile| profile.empty_has_no_branch = true),
        ("former_paths_answer", |profile| profile.former_paths_answer = true),
        ("group_variable_filter", |profile| profile.group_variable_filter = true),
        ("import_members_created", |profile| profile.import_members_created = true),
        ("last_owner_bad_request", |profile| profile.last_owner_bad_request = true),
        ("errors_as_after_16", |profile| profile.errors_as_after_16 = true),
        ("maintainer_grants_owner", |profile| profile.maintainer_grants_owner = true),
        ("maintainer_relates_forks", |profile| profile.maintainer_relates_forks = true),
        ("optional_variable_value", |profile| profile.optional_variable_value = true),
        ("override_needs_directory", |profile| profile.override_needs_directory = true),
        ("owner_has_three_fields", |profile| profile.owner_has_three_fields = true),
        ("put_clears_expiry", |profile| profile.put_clears_expiry = true),
        ("put_resets_omitted_flags", |profile| profile.put_resets_omitted_flags = true),
        ("raw_values_need_plain_alphabet", |profile| profile.raw_values_need_plain_alphabet = true),
        ("requirements_never_public", |profile| profile.requirements_never_public = true),
        ("runners_setting_shown", |profile| profile.runners_setting_shown = true),
        ("star_answers_ok", |profile| profile.star_answers_ok = true),
        ("tag_allowed_to_create_ignored", |profile| profile.tag_allowed_to_create_ignored = true),
        ("unlisted_attributes_hidden", |profile| profile.unlisted_attributes_hidden = true),
        ("unlicensed_forbidden", |profile| profile.unlicensed_forbidden = true),
    ]
}

/// Profiles with half of `switches` each, and one with all of them. For any two switches, one
/// profile has the first without the second, so that the effect of one cannot hide the other's.
pub(crate) fn halves(switches: &[Switch]) -> Vec<(String, Profile)> {
    let with = |name: String, is_on: &dyn Fn(usize) -> bool| {
        let mut profile = Profile::default();
        let on = switches.iter().enumerate().filter(|(number, _)| is_on(*number));
        on.for_each(|(_, (_, turn_on))| turn_on(&mut profile));
        (name, profile)
    };
    let bits = usize::BITS - switches.len().leading_zeros();
    let mut halves = vec![with("all switches".to_owned(), &|_| true)];
    for (bit, side) in (0..bits).flat_map(|bit| [(bit, 0), (bit, 1)]) {
        let name = format!("switches with bit {bit} of their number {side}");
        halves.push(with(name, &|number| (number >> bit) & 1 == side));
    }
    halves
}
