//! Links of groups: to groups of an identity provider, whose members become members when they sign in,
//! and to groups of a directory, or to a filter for its people. Nothing is synchronised here. A
//! service without SAML for groups answers 401 to everybody; here it is set up, unless the seed
//! disables it.

use super::member_roles::{self, ROLE};
use super::names::NONE_OF_TWO_TEXT;
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] = &[SAML, LDAP];

const SAML: Collection = Collection {
    entry: "saml_group_name",
    key: "name",
    tier: AttributeTier::Premium,
    required: &[SAML_NAME, SAML_LEVEL],
    fields: &[
        RowField { answer_name: "name", ..RowField::new(SAML_NAME, Form::Text) },
        RowField::new(SAML_LEVEL, Form::Integer),
        RowField { since: Some(Release::new(18, 2)), ..RowField::new(PROVIDER, Form::Text) },
    ],
    is_edited: false,
    scope: |_, call| {
        let is_off_sql =
            "SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'saml' AND value = 'false')";
        refuse_if(call.query_value(is_off_sql, [])?, ErrorResponse::unauthorized)?;
        GroupOrProject::group(call, OWNER).map_err(|_| ErrorResponse::unauthorized())
    },
    complete: |call, row| {
        let level = read_level(call, SAML_LEVEL, Release::new(18, 5))?;
        row.set(SAML_LEVEL, level);
        refuse_if(row.is_taken(&call.stored_rows()?, SAML_NAME), || {
            ErrorResponse::bad_request_message("Saml group name has already been taken")
        })?;
        let role = member_roles::role_id(call, SAML_ROLES_SINCE, level, |text| {
            ErrorResponse::bad_request_message(text)
        })?;
        row.set(ROLE, role);
        Ok(())
    },
    json: |call, row| json(call, row, SAML_ROLES_SINCE),
    ..Collection::new("/groups/{id}/saml_group_links")
};

/// All callers but owners get 403, also for a group that they do not see.
const LDAP: Collection = Collection {
    entry: LDAP_SELECTORS[0],
    tier: AttributeTier::Premium,
    required: &[PROVIDER, LDAP_LEVEL],
    fields: &[
        RowField::new(LDAP_SELECTORS[0], Form::Text),
        RowField { answer_name: LDAP_LEVEL, ..RowField::new(SAML_LEVEL, Form::Integer) },
        RowField::new(PROVIDER, Form::Text),
        RowField::new(LDAP_SELECTORS[1], Form::Text),
    ],
    is_shown: false,
    is_edited: false,
    is_unpaged: true,
    scope: |_, call| GroupOrProject::group(call, OWNER).map_err(|_| ErrorResponse::forbidden()),
    filter: |_, all| refuse_if(all.is_empty(), || not_found("No linked LDAP groups found")),
    find: find_ldap,
    complete: |call, row| {
        let field = sent_selector(call)?;
        let level = read_level(call, LDAP_LEVEL, Release::new(18, 6))?;
        row.set(SAML_LEVEL, level);
        let mut links = call.stored_rows()?;
        links.retain(|link| [PROVIDER, field].iter().all(|name| link.text(name) == row.text(name)));
        refuse_if(!links.is_empty(), || {
            let name = if field == LDAP_SELECTORS[0] { "Cn" } else { "Filter" };
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

const SAML_NAME: &str = "saml_group_name";
const SAML_LEVEL: &str = "access_level";
const SAML_ROLES_SINCE: Release = Release::new(16, 7);
const PROVIDER: &str = "provider";
const LDAP_LEVEL: &str = "group_access";
const LDAP_ROLES_SINCE: Release = Release::new(17, 2);
/// The fields that select people of a directory; a link has exactly one of them.
const LDAP_SELECTORS: [&str; 2] = ["cn", "filter"];

/// A link in answers, with its custom role from a release on.
fn json(call: &CollectionCall<'_>, row: &Record, roles_since: Release) -> Result<Value> {
    let mut body = remove_members(call.plain_json(row), &["id", "created_at", "updated_at"]);
    if member_roles::are_available(call, roles_since) {
        body[ROLE] = member_roles::link_role_json(call, row)?;
    }
    Ok(body)
}

/// The level that a link gives, which may be minimal access from a release on.
fn read_level(call: &Call<'_>, name: &str, minimal_since: Release) -> Result<Option<i64>> {
    let has_minimal = call.release() >= minimal_since;
    call.params.allowed_integer(name, |level| terms::is_valid_level(call, level, has_minimal))
}

/// The field of [`LDAP_SELECTORS`] in the call.
fn sent_selector(call: &Call<'_>) -> Result<&'static str> {
    call.params.refuse_both(LDAP_SELECTORS)?;
    let selector = LDAP_SELECTORS.into_iter().find(|name| call.params.has(name));
    selector.ok_or_else(|| ErrorResponse::parameter(&LDAP_SELECTORS.join(", "), NONE_OF_TWO_TEXT))
}

fn not_found(words: &str) -> ErrorResponse {
    ErrorResponse::message(StatusCode::NOT_FOUND, words)
}

/// The link in the path, where a missing provider means any, or else in the parameters.
fn find_ldap(call: &CollectionCall<'_>) -> Result<Record> {
    let mut names: Vec<&str> = [PROVIDER, "cn"].into_iter().collect();
    names.retain(|name| !call.segment(name).is_empty());
    let is_in_path = !names.is_empty();
    if !is_in_path {
        call.params.require(&[PROVIDER])?;
        names = vec![PROVIDER, sent_selector(call)?];
    }
    let mut links = call.stored_rows()?;
    for name in names {
        let requested = if is_in_path {
            call.segment(name).to_owned()
        } else {
            call.params.text(name)?.unwrap_or_default()
        };
        links.retain(|row| row.text(name) == requested);
    }
    links.into_iter().next().ok_or_else(|| not_found("Linked LDAP group not found"))
}
