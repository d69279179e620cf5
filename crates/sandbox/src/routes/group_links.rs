//! Links of groups: to groups of an identity provider, whose members become members when they sign in,
//! and to groups of a directory, or to a filter for its people. Nothing is synchronised here. A
//! service without SAML for groups answers 401 to everybody; here it is set up, unless the seed says
//! otherwise.

use super::member_roles::{self, ROLE};
use super::names::NONE_OF_TWO;
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] = &[SAML, LDAP];

const SAML: Collection = Collection {
    entry: "saml_group_name",
    key: "name",
    tier: AttributeTier::Premium,
    required: &[NAME, SAML_LEVEL],
    fields: &[
        RowField { shown: "name", ..RowField::new(NAME, Form::Text) },
        RowField::new(SAML_LEVEL, Form::Integer),
        RowField { since: Some(Release::new(18, 2)), ..RowField::new(PROVIDER, Form::Text) },
    ],
    is_edited: false,
    scope: |_, call| {
        let is_off = "SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'saml' AND value = 'false')";
        refuse_if(call.one(is_off, [])?, ErrorResponse::unauthorized)?;
        GroupOrProject::group(call, OWNER).map_err(|_| ErrorResponse::unauthorized())
    },
    complete: |call, row| {
        let level = level(call, SAML_LEVEL, Release::new(18, 5))?;
        row.set(SAML_LEVEL, level);
        refuse_if(is_taken(&call.stored()?, row, NAME), || {
            ErrorResponse::refused("Saml group name has already been taken")
        })?;
        let role = member_roles::role_id(call, SAML_ROLES_SINCE, level, |text| {
            ErrorResponse::refused(text)
        })?;
        row.set(ROLE, role);
        Ok(())
    },
    json: |call, row| json(call, row, SAML_ROLES_SINCE),
    ..Collection::new("/groups/{id}/saml_group_links")
};

/// All callers but owners get 403, also for a group that they do not see.
const LDAP: Collection = Collection {
    entry: EITHER[0],
    tier: AttributeTier::Premium,
    required: &[PROVIDER, LDAP_LEVEL],
    fields: &[
        RowField::new(EITHER[0], Form::Text),
        RowField { shown: LDAP_LEVEL, ..RowField::new(SAML_LEVEL, Form::Integer) },
        RowField::new(PROVIDER, Form::Text),
        RowField::new(EITHER[1], Form::Text),
    ],
    is_shown: false,
    is_edited: false,
    unpaged: true,
    scope: |_, call| GroupOrProject::group(call, OWNER).map_err(|_| ErrorResponse::forbidden()),
    filter: |_, all| refuse_if(all.is_empty(), || not_found("No linked LDAP groups found")),
    find: find_ldap,
    complete: |call, row| {
        let field = named_field(call)?;
        let level = level(call, LDAP_LEVEL, Release::new(18, 6))?;
        row.set(SAML_LEVEL, level);
        let mut links = call.stored()?;
        links.retain(|link| [PROVIDER, field].iter().all(|name| link.text(name) == row.text(name)));
        refuse_if(!links.is_empty(), || {
            let name = if field == EITHER[0] { "Cn" } else { "Filter" };
            ErrorResponse::conflict(&format!("{name} has already been taken"))
        })?;
        row.set(
            ROLE,
            member_roles::role_id(call, LDAP_ROLES_SINCE, level, ErrorResponse::conflict)?,
        );
        Ok(())
    },
    check_removal: |_, _| Ok(()),
    json: |call, row| json(call, row, LDAP_ROLES_SINCE),
    ..Collection::new("/groups/{id}/ldap_group_links")
};

/// The newer form of a removal names the link by parameters.
pub(super) const ROUTES: &[Route] = &[
    LDAP.route(Method::DELETE, LDAP.path, Verb::Remove),
    LDAP.route(Method::DELETE, "/groups/{id}/ldap_group_links/{provider}/{cn}", Verb::Remove),
];

const NAME: &str = "saml_group_name";
const SAML_LEVEL: &str = "access_level";
const SAML_ROLES_SINCE: Release = Release::new(16, 7);
const PROVIDER: &str = "provider";
const LDAP_LEVEL: &str = "group_access";
const LDAP_ROLES_SINCE: Release = Release::new(17, 2);
/// The fields of which a link to a directory has one.
const EITHER: [&str; 2] = ["cn", "filter"];

/// A link in answers, with its custom role from a release on.
fn json(call: &CollectionCall<'_>, row: &Record, roles_since: Release) -> Result<Value> {
    let mut body = without(call.plain(row), &["id", "created_at", "updated_at"]);
    if member_roles::are_available(call, roles_since) {
        body[ROLE] = member_roles::link_role_json(call, row)?;
    }
    Ok(body)
}

/// The level that a link gives, which may be minimal access from a release on.
fn level(call: &Call<'_>, name: &str, minimal_from: Release) -> Result<Option<i64>> {
    let has_minimal = call.release() >= minimal_from;
    call.params.number_of(name, |level| terms::valid_level(call, level, has_minimal))
}

/// The field of [`EITHER`] that the call has.
fn named_field(call: &Call<'_>) -> Result<&'static str> {
    call.params.exclude(EITHER)?;
    let sent = EITHER.into_iter().find(|name| call.params.has(name));
    sent.ok_or_else(|| ErrorResponse::parameter(&EITHER.join(", "), NONE_OF_TWO))
}

fn not_found(words: &str) -> ErrorResponse {
    ErrorResponse::message(StatusCode::NOT_FOUND, words)
}

/// The link in the path, where a missing provider means any, or else in the parameters.
fn find_ldap(call: &CollectionCall<'_>) -> Result<Record> {
    let mut names: Vec<&str> = [PROVIDER, "cn"].into_iter().collect();
    names.retain(|name| !call.segment(name).is_empty());
    let in_path = !names.is_empty();
    if !in_path {
        call.params.require(&[PROVIDER])?;
        names = vec![PROVIDER, named_field(call)?];
    }
    let mut found = call.stored()?;
    for name in names {
        let requested = if in_path {
            call.segment(name).to_owned()
        } else {
            call.params.text(name)?.unwrap_or_default()
        };
        found.retain(|row| row.text(name) == requested);
    }
    found.into_iter().next().ok_or_else(|| not_found("Linked LDAP group not found"))
}
