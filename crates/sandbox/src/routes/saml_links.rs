//! Links from groups of an identity provider: their members become members of a group when they
//! sign in. A service without SAML for groups answers 401 to everybody; here it is set up, unless the seed
//! says otherwise.

use super::member_roles::{self, ROLE};
use super::prelude::*;

pub(super) const LINKS: Collection = Collection {
    entry: "saml_group_name",
    key: "name",
    tier: Tier::Premium,
    required: &[NAME, LEVEL],
    fields: &[
        Field { shown: "name", ..Field::new(NAME, Form::Text) },
        Field::new(LEVEL, Form::Integer),
        Field { since: Some(Release::new(18, 2)), ..Field::new("provider", Form::Text) },
    ],
    is_edited: false,
    scope: |_, call| {
        let is_off = "SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'saml' AND value = 'false')";
        refuse_if(call.one(is_off, [])?, Failure::unauthorized)?;
        Scope::group(call, OWNER).map_err(|_| Failure::unauthorized())
    },
    settle: |of, call, scope, row| {
        let level = level(call, LEVEL, Release::new(18, 5))?;
        row.set(LEVEL, level);
        refuse_if(is_taken(&of.stored(call, scope)?, row, NAME), || {
            let words = "Saml group name has already been taken";
            Failure::refused(words)
        })?;
        let refused = |text: &str| Failure::refused(text);
        row.set(ROLE, member_roles::of_link(call, ROLES_SINCE, level, refused)?);
        Ok(())
    },
    json: |of, call, _, row| {
        let mut body = of.plain(call, row);
        if let Some(body) = body.as_object_mut() {
            body.retain(|name, _| !["id", "created_at", "updated_at"].contains(&name.as_str()));
        }
        if member_roles::are_there(call, ROLES_SINCE) {
            body[ROLE] = member_roles::shown(call, row)?;
        }
        Ok(body)
    },
    ..Collection::new("/groups/{id}/saml_group_links")
};

/// The level that a link gives, which may be minimal access from a release on.
pub(super) fn level(call: &Call<'_>, name: &str, minimal_from: Release) -> Result<Option<i64>> {
    call.params.number_of(name, |level| {
        LEVELS.iter().any(|(known, _)| *known == level)
            && match level {
                MINIMAL => call.release() >= minimal_from,
                PLANNER => call.is_from(17, 7),
                level => level >= GUEST,
            }
    })
}

const NAME: &str = "saml_group_name";
const LEVEL: &str = "access_level";
const ROLES_SINCE: Release = Release::new(16, 7);
