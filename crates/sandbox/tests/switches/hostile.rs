//! Switches that make the sandbox harder for clients.

use crate::switches::Switch;

/// Switches for behaviour that a real service may have, but that the reference does not leave open.
pub(crate) fn hostile() -> Vec<Switch> {
    vec![
        ("page_cap", |profile| profile.page_cap = Some(3)),
        ("unknown_extra_keys", |profile| profile.unknown_extra_keys = true),
        ("drop_null_keys", |profile| profile.drop_null_keys = true),
        ("reverse_topics", |profile| profile.reverse_topics = true),
        ("bots_among_members", |profile| profile.bots_among_members = true),
    ]
}
