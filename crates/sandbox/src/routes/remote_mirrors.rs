//! Push mirrors of a project. The reference does not describe push mirrors. This module follows the
//! real service. Mirrors are stored and validated, but the sandbox pushes nothing.
//!
//! The URL of a mirror is set at its creation, and never changes. Responses do not contain the
//! credentials in the URL.

use super::prelude::*;

const PUSH_MIRRORS: RecordTable = RecordTable("remote_mirrors");

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: PUSH_MIRRORS,
    operations: &[(
        Method::GET,
        "/{mirror_id}/public_key",
        CollectionOperation::Custom(show_public_key),
    )],
    // A caller below Maintainer gets 401 here, not 403.
    find_scope: |_, call| {
        let project = call.require_project(0)?;
        refuse_if(
            call.caller_level_in_project(&project)? < MAINTAINER,
            ErrorResponse::unauthorized,
        )?;
        if call.is_write {
            call.check_writable(&project)?;
        }
        Ok(project.into())
    },
    complete: normalize_mirror,
    to_json: |call, mirror| Ok(push_mirror_json(call, mirror)),
    ..Callbacks::DEFAULT
}];

pub(super) const ROUTES: &[Route] =
    &[post("/projects/{id}/remote_mirrors/{mirror_id}/sync", start_sync)];

fn start_sync(call: &Call<'_>) -> Result<Answer> {
    refuse_if(!call.is_at_least(16, 11), ErrorResponse::route_not_found)?;
    let collection = find_built_in(PUSH_MIRRORS);
    let mirror =
        CollectionCall { collection, scope: &collection.find_scope(call)?, call }.find_entry()?;
    let text = "Cannot proceed with the push mirroring. Please verify your mirror configuration.";
    refuse_if(!mirror.is_true("enabled"), || text.into())?;
    Ok(Answer::no_content())
}

/// All mirrors have the same key, because nothing is pushed.
fn show_public_key(call: &CollectionCall<'_>) -> Result<Answer> {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    let has_key =
        call.find_entry()?.text("auth_method") == "ssh_public_key" && call.is_at_least(17, 9);
    refuse_if(!has_key, ErrorResponse::not_found_hidden)?;
    Answer::ok(&json!({ "public_key": key }))
}

const SCHEMES: [&str; 4] = ["http", "https", "ssh", "git"];
/// The only user name that is not masked in URLs.
const GIT_USER: &str = "git";
const MASK: &str = "*****";
const PROTECTED_ONLY: &str = "only_protected_branches";
const BRANCH_REGEX: &str = "mirror_branch_regex";

fn push_mirror_json(call: &CollectionCall<'_>, mirror: &Record) -> Value {
    let mut body = remove_fields(call.plain_json(mirror), &["created_at", "updated_at"]);
    body["url"] = mask_credentials(mirror.text("url")).into();
    set_field_if(&mut body, call.is_observed_release_or_later(), "host_keys", json!([]));
    body
}

/// A URL with stars instead of credentials.
pub(super) fn mask_credentials(text: &str) -> String {
    static CREDENTIALS: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = Regex::new("^([^:]*://)([^/?#:]*)(:[^/?#]*)?@");
        pattern.expect("a test uses the pattern")
    });
    let masked_url = CREDENTIALS.replace(text, |captures: &Captures<'_>| {
        let name = if captures[2] == *GIT_USER { GIT_USER } else { MASK };
        let password = captures.get(3).map(|_| format!(":{MASK}")).unwrap_or_default();
        format!("{}{name}{password}@", &captures[1])
    });
    masked_url.into_owned()
}

/// Refuses a URL that the service could not call; `field` is the name of the URL in the error.
pub(super) fn check_url(call: &Call<'_>, field: &str, url: &str) -> Result<()> {
    refuse_if(url.is_empty(), || ErrorResponse::field_error(field, BLANK_TEXT))?;
    refuse_field(field, urls::url_error(url, &SCHEMES, instance::own_url_if_local_blocked(call)?))
}

/// Fills in the flags of a mirror. Null turns a flag off. "All protected branches" and a pattern
/// exclude each other: the value in the call replaces the stored value.
fn normalize_mirror(call: &CollectionCall<'_>, mirror: &mut Record) -> Result<()> {
    check_url(call, "url", mirror.text("url"))?;
    for name in ["enabled", PROTECTED_ONLY] {
        mirror.set(name, mirror.is_true(name));
    }
    if call.has(BRANCH_REGEX) && call.is_at_least(16, 2) && call.is_premium() {
        call.refuse_both([PROTECTED_ONLY, BRANCH_REGEX])?;
        refuse_field(BRANCH_REGEX, re2::syntax_error(mirror.text(BRANCH_REGEX)))?;
        if !mirror.text(BRANCH_REGEX).is_empty() {
            mirror.set(PROTECTED_ONLY, false);
        }
    }
    if mirror.is_true(PROTECTED_ONLY) {
        mirror.set(BRANCH_REGEX, Value::Null);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_wherever_they_are() {
        for (url, masked_url) in [
            ("https://h/p.git", "https://h/p.git"),
            ("https://u:p@h/p.git", "https://*****:*****@h/p.git"),
            ("https://u:p@q@h", "https://*****:*****@h"),
            ("ssh://git@h:22/p.git", "ssh://git@h:22/p.git"),
            ("ssh://git:p@h/p.git", "ssh://git:*****@h/p.git"),
            ("ssh://u@h/p.git", "ssh://*****@h/p.git"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(mask_credentials(url), masked_url);
        }
    }
}
