//! Links of groups to groups of an identity provider (SAML), and to groups or a filter of a
//! directory (LDAP). In the real service, the linked people become members of the group. The
//! sandbox does not synchronise members. A service without SAML for groups answers everybody with
//! 401. In the sandbox SAML is set up, unless the seed disables it.

use super::member_roles::ROLE_ID;
use super::prelude::*;

pub(super) const CALLBACKS: &[Callbacks] = &[SAML_LINK_CALLBACKS, LDAP_LINK_CALLBACKS];

const SAML_LINK_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("saml_group_links"),
    find_scope: |_, call| {
        let is_off_sql =
            "SELECT EXISTS (SELECT 1 FROM meta WHERE key = 'saml' AND value = 'false')";
        refuse_if(call.query_value(is_off_sql, [])?, ErrorResponse::unauthorized)?;
        Ok(call.require_group(OWNER).map_err(|_| ErrorResponse::unauthorized())?.into())
    },
    complete: |call, row| {
        let level = read_level(call, ACCESS_LEVEL, Release::new(18, 5))?;
        row.set(ACCESS_LEVEL, level);
        let text = "Saml group name has already been taken";
        refuse_if(row.has_duplicate(&call.stored_rows()?, SAML_NAME), || text.into())?;
        let role_id =
            member_roles::read_role_id(call, SAML_ROLES_SINCE, level, |text| text.into())?;
        row.set(ROLE_ID, role_id);
        Ok(())
    },
    to_json: |call, row| link_json(call, row, SAML_ROLES_SINCE),
    ..Callbacks::DEFAULT
};

/// Callers who are not owners get 403, even if the group is hidden.
const LDAP_LINK_CALLBACKS: Callbacks = Callbacks {
    table: RecordTable("ldap_group_links"),
    // The newer form of a removal names the link by parameters.
    operations: &[
        (Method::DELETE, "", CollectionOperation::Remove),
        (Method::DELETE, "/{provider}/{cn}", CollectionOperation::Remove),
    ],
    find_scope: |_, call| {
        Ok(call.require_group(OWNER).map_err(|_| ErrorResponse::forbidden())?.into())
    },
    filter: |_, links| {
        refuse_if(links.is_empty(), || not_found_error("No linked LDAP groups found"))
    },
    find: find_ldap_link,
    complete: |call, row| {
        let selector = read_selector(call)?;
        let level = read_level(call, LDAP_LEVEL, Release::new(18, 6))?;
        row.set(ACCESS_LEVEL, level);
        let mut links = call.stored_rows()?;
        links.retain(|link| {
            [PROVIDER, selector].iter().all(|name| link.text(name) == row.text(name))
        });
        refuse_if(!links.is_empty(), || {
            let name = if selector == LDAP_SELECTORS[0] { "Cn" } else { "Filter" };
            ErrorResponse::conflict(&format!("{name} has already been taken"))
        })?;
        let make_error = ErrorResponse::conflict;
        let role_id = member_roles::read_role_id(call, LDAP_ROLES_SINCE, level, make_error)?;
        row.set(ROLE_ID, role_id);
        Ok(())
    },
    check_removal: |_, _| Ok(()),
    to_json: |call, row| link_json(call, row, LDAP_ROLES_SINCE),
    ..Callbacks::DEFAULT
};

const SAML_NAME: &str = "saml_group_name";
const ACCESS_LEVEL: &str = "access_level";
const SAML_ROLES_SINCE: Release = Release::new(16, 7);
const PROVIDER: &str = "provider";
const LDAP_LEVEL: &str = "group_access";
const LDAP_ROLES_SINCE: Release = Release::new(17, 2);
/// The fields that select people of a directory. A link has exactly one of these fields.
const LDAP_SELECTORS: [&str; 2] = ["cn", "filter"];

/// A link in responses, with its custom role from the release `roles_since` on.
fn link_json(call: &CollectionCall<'_>, row: &Record, roles_since: Release) -> Result<Value> {
    let mut body = remove_fields(call.plain_json(row), &["id", "created_at", "updated_at"]);
    if member_roles::are_roles_available(call, roles_since) {
        body[ROLE_ID] = member_roles::link_role_json(call, row)?;
    }
    Ok(body)
}

/// The level that a link gives. Minimal access is allowed from the release `minimal_since` on.
fn read_level(call: &Call<'_>, name: &str, minimal_since: Release) -> Result<Option<i64>> {
    let has_minimal = call.release() >= minimal_since;
    call.allowed_integer(name, |level| terms::is_valid_level(call, level, has_minimal))
}

/// The only field of [`LDAP_SELECTORS`] that the call contains.
fn read_selector(call: &Call<'_>) -> Result<&'static str> {
    call.refuse_both(LDAP_SELECTORS)?;
    let selector = LDAP_SELECTORS.into_iter().find(|name| call.has(name));
    selector
        .ok_or_else(|| ErrorResponse::parameter_error(&LDAP_SELECTORS.join(", "), NONE_OF_TWO_TEXT))
}

fn not_found_error(text: &str) -> ErrorResponse {
    ErrorResponse::message(StatusCode::NOT_FOUND, text)
}

/// Finds the link by the path, or by the parameters if the path names no link. A path without a provider
/// matches links of any provider.
fn find_ldap_link(call: &CollectionCall<'_>) -> Result<Record> {
    let mut names: Vec<&str> = [PROVIDER, "cn"].into_iter().collect();
    names.retain(|name| !call.segment(name).is_empty());
    let is_in_path = !names.is_empty();
    if !is_in_path {
        call.require(&[PROVIDER])?;
        names = vec![PROVIDER, read_selector(call)?];
    }
    let mut links = call.stored_rows()?;
    for name in names {
        let value = if is_in_path {
            call.segment(name).to_owned()
        } else {
            call.text(name)?.unwrap_or_default()
        };
        links.retain(|row| row.text(name) == value);
    }
    links.into_iter().next().ok_or_else(|| not_found_error("Linked LDAP group not found"))
}
