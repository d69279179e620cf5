//! Ways of the sandbox to make work for clients.

use crate::switches::Switch;

/// Possible behaviour of a service that makes work for clients: switches too, but not an open
/// question of the reference.
pub(crate) fn hostile() -> Vec<Switch> {
    vec![
        ("page_cap", |profile| profile.page_cap = Some(3)),
        ("unknown_extra_keys", |profile| profile.unknown_extra_keys = true),
        ("drop_null_keys", |profile| profile.drop_null_keys = true),
        ("shuffle_topics", |profile| profile.shuffle_topics = true),
        ("bots_among_members", |profile| profile.bots_among_members = true),
    ]
}
