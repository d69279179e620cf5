//! Links from groups of a directory, or from a filter for its people, to groups. Nothing is synchronised
//! here.

use super::member_roles::{self, ROLE};
use super::prelude::*;
use super::saml_links::level;

pub(super) const ROUTES: &[Route] = &[
    get("/groups/{id}/ldap_group_links", list),
    post("/groups/{id}/ldap_group_links", create),
    delete("/groups/{id}/ldap_group_links", remove),
    delete("/groups/{id}/ldap_group_links/{cn}", |call| remove_at(call, &["cn"])),
    delete("/groups/{id}/ldap_group_links/{provider}/{cn}", |call| {
        remove_at(call, &[PROVIDER, "cn"])
    }),
];

pub(super) const LINKS: Records = Records("ldap_group_links");

const PROVIDER: &str = "provider";
const LEVEL: &str = "group_access";
const ROLES_SINCE: Release = Release::new(17, 2);
/// The fields of which a link has one.
const EITHER: [&str; 2] = ["cn", "filter"];

/// The group, for its owners; all others get 403, also for a group that they do not see.
fn owned(call: &Call<'_>) -> Result<Holder> {
    let scope = Scope::group(call, OWNER).map_err(|_| Failure::forbidden())?;
    call.require_tier(Tier::Premium)?;
    Ok(scope.holder())
}

/// The field of [`EITHER`] that the call has.
fn named(call: &Call<'_>) -> Result<&'static str> {
    match EITHER.map(|name| call.params.has(name)) {
        [true, false] => Ok(EITHER[0]),
        [false, true] => Ok(EITHER[1]),
        [both, _] => Err(Failure::parameter(
            "cn, filter",
            match both {
                true => "are mutually exclusive",
                false => "are missing, exactly one parameter must be provided",
            },
        )),
    }
}

fn json(call: &Call<'_>, row: &Record) -> Result<Value> {
    let mut body = json!({
        "cn": row.value(EITHER[0]),
        "group_access": row.value(LEVEL),
        "provider": row.value(PROVIDER),
        "filter": row.value(EITHER[1]),
    });
    if member_roles::are_there(call, ROLES_SINCE) {
        body[ROLE] = member_roles::shown(call, row)?;
    }
    Ok(body)
}

fn list(call: &Call<'_>) -> Result<Answer> {
    let all = LINKS.all(call.db, owned(call)?)?;
    refuse_if(all.is_empty(), || {
        Failure::message(StatusCode::NOT_FOUND, "No linked LDAP groups found")
    })?;
    Answer::ok(&all.iter().map(|row| json(call, row)).collect::<Result<Vec<_>>>()?)
}

/// A row with what identifies the link in the call.
fn wanted(call: &Call<'_>, field: &str) -> Result<Record> {
    let mut row = Record::new(call.now());
    row.set(PROVIDER, call.params.text(PROVIDER)?);
    row.set(field, call.params.text(field)?);
    Ok(row)
}

fn create(call: &Call<'_>) -> Result<Answer> {
    let holder = owned(call)?;
    call.params.require(&[PROVIDER, LEVEL])?;
    let field = named(call)?;
    let mut row = wanted(call, field)?;
    let level = level(call, LEVEL, Release::new(18, 6))?;
    row.set(LEVEL, level);
    refuse_if(is_there(call, holder, &row, field)?.is_some(), || {
        let name = if field == EITHER[0] { "Cn" } else { "Filter" };
        Failure::conflict(&format!("{name} has already been taken"))
    })?;
    row.set(ROLE, member_roles::of_link(call, ROLES_SINCE, level, Failure::conflict)?);
    LINKS.save(call.db, holder, &mut row, call.now())?;
    Answer::created(&json(call, &row)?)
}

/// The stored link that `row` identifies by `field`.
fn is_there(call: &Call<'_>, of: Holder, row: &Record, field: &str) -> Result<Option<Record>> {
    let mut all = LINKS.all(call.db, of)?;
    all.retain(|own| [PROVIDER, field].iter().all(|name| own.text(name) == row.text(name)));
    Ok(all.pop())
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let holder = owned(call)?;
    call.params.require(&[PROVIDER])?;
    let field = named(call)?;
    remove_found(call, is_there(call, holder, &wanted(call, field)?, field)?)
}

/// An older form, with `fields` of the link in the path; without the provider, any one is removed.
fn remove_at(call: &Call<'_>, fields: &[&str]) -> Result<Answer> {
    let mut all = LINKS.all(call.db, owned(call)?)?.into_iter();
    let found = all.find(|row| fields.iter().all(|name| row.text(name) == call.segment(name)));
    remove_found(call, found)
}

fn remove_found(call: &Call<'_>, link: Option<Record>) -> Result<Answer> {
    let link =
        link.ok_or_else(|| Failure::message(StatusCode::NOT_FOUND, "Linked LDAP group not found"))?;
    LINKS.remove(call.db, &link)?;
    Ok(Answer::no_content())
}
