//! Push mirrors of a project. The reference leaves them out; all of this is the real service's
//! behaviour. They are stored and validated, but never pushed to.
//!
//! The URL of a mirror is set at its creation, and never changes; answers do not contain its
//! credentials.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::instance;
use super::prelude::*;

pub(super) const COLLECTIONS: &[Collection] = &[MIRRORS];

const MIRRORS: Collection = Collection {
    entry: "mirror_id",
    required: &["url"],
    fields: &[
        RowField { only_new: true, ..RowField::new("url", Form::Text) },
        RowField { preset: "false", ..RowField::new("enabled", Form::Flag) },
        RowField { preset: "false", ..RowField::new(PROTECTED, Form::Flag) },
        RowField::new("keep_divergent_refs", Form::Flag),
        RowField {
            preset: r#""password""#,
            since: Some(Release::new(16, 10)),
            ..RowField::new("auth_method", Form::Word(&["password", "ssh_public_key"]))
        },
        RowField {
            tier: AttributeTier::Premium,
            since: Some(REGEX_SINCE),
            ..RowField::new(REGEX, Form::Text)
        },
    ],
    shows: &[
        ("update_status", r#""none""#),
        ("last_update_at", "null"),
        ("last_update_started_at", "null"),
        ("last_successful_update_at", "null"),
        ("last_error", "null"),
    ],
    scope: |_, call| project(call),
    complete,
    json: |call, mirror| Ok(json(call, mirror)),
    ..Collection::new("/projects/{id}/remote_mirrors")
};

pub(super) const ROUTES: &[Route] = &[
    post("/projects/{id}/remote_mirrors/{mirror_id}/sync", |call| {
        refuse_if(!call.is_from(16, 11), ErrorResponse::no_route)?;
        let mirror =
            CollectionCall { collection: &MIRRORS, scope: &project(call)?, call }.find()?;
        refuse_if(!mirror.is_set("enabled"), || ErrorResponse::refused(DISABLED))?;
        Ok(Answer::no_content())
    }),
    MIRRORS.route(Method::GET, "/projects/{id}/remote_mirrors/{mirror_id}/public_key", PUBLIC_KEY),
];

const DISABLED: &str =
    "Cannot proceed with the push mirroring. Please verify your mirror configuration.";
/// Nothing is pushed, so all mirrors may have the same key.
const PUBLIC_KEY: Verb = Verb::Custom(|call| {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    let has_key = call.find()?.text("auth_method") == "ssh_public_key" && call.is_from(17, 9);
    refuse_if(!has_key, ErrorResponse::hidden)?;
    Answer::ok(&json!({ "public_key": key }))
});

const SCHEMES: [&str; 4] = ["http", "https", "ssh", "git"];
/// The user name that is no secret in a URL.
const GIT: &str = "git";
const STARS: &str = "*****";
const PROTECTED: &str = "only_protected_branches";
const REGEX: &str = "mirror_branch_regex";
const REGEX_SINCE: Release = Release::new(16, 2);

/// The project. A caller without the right gets 401 here, not 403.
fn project(call: &Call<'_>) -> Result<GroupOrProject> {
    let project = call.project_as(0)?;
    refuse_if(call.level_in(&project)? < MAINTAINER, ErrorResponse::unauthorized)?;
    if call.writes {
        call.check_writable(&project)?;
    }
    Ok(GroupOrProject::Project(Box::new(project)))
}

fn json(call: &CollectionCall<'_>, mirror: &Record) -> Value {
    let mut body = without(call.plain(mirror), &["created_at", "updated_at"]);
    body["url"] = mask_credentials(mirror.text("url")).into();
    set_if(&mut body, call.release() >= OBSERVED, "host_keys", json!([]));
    body
}

/// A URL with stars instead of credentials.
pub(super) fn mask_credentials(text: &str) -> String {
    static CREDENTIALS: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = Regex::new("^([^:]*://)([^/?#:]*)(:[^/?#]*)?@");
        pattern.expect("a test masks credentials")
    });
    let starred = CREDENTIALS.replace(text, |found: &Captures<'_>| {
        let name = if found[2] == *GIT { GIT } else { STARS };
        let password = found.get(3).map(|_| format!(":{STARS}")).unwrap_or_default();
        format!("{}{name}{password}@", &found[1])
    });
    starred.into_owned()
}

/// Refuses a URL that cannot be called, in the name of a field.
pub(super) fn check_url(call: &Call<'_>, field: &str, url: &str) -> Result<()> {
    match urls::refused(url, &SCHEMES, instance::reach(call)?) {
        _ if url.is_empty() => Err(ErrorResponse::model(field, "can't be blank")),
        Some(why) => Err(ErrorResponse::model(field, why)),
        None => Ok(()),
    }
}

/// Null as a flag means off. "All protected branches" and a pattern exclude each other: the one
/// that is sent replaces the other.
fn complete(call: &CollectionCall<'_>, mirror: &mut Record) -> Result<()> {
    check_url(call, "url", mirror.text("url"))?;
    for name in ["enabled", PROTECTED] {
        mirror.set(name, mirror.is_set(name));
    }
    if call.params.has(REGEX)
        && call.release() >= REGEX_SINCE
        && call.tier() >= AttributeTier::Premium
    {
        call.params.exclude([PROTECTED, REGEX])?;
        if let Some(refusal) = re2::refusal(mirror.text(REGEX)) {
            return Err(ErrorResponse::model(REGEX, refusal));
        }
        if !mirror.text(REGEX).is_empty() {
            mirror.set(PROTECTED, false);
        }
    }
    if mirror.is_set(PROTECTED) {
        mirror.set(REGEX, Value::Null);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_wherever_they_are() {
        for (url, shown) in [
            ("https://h/p.git", "https://h/p.git"),
            ("https://u:p@h/p.git", "https://*****:*****@h/p.git"),
            ("https://u:p@q@h", "https://*****:*****@h"),
            ("ssh://git@h:22/p.git", "ssh://git@h:22/p.git"),
            ("ssh://git:p@h/p.git", "ssh://git:*****@h/p.git"),
            ("ssh://u@h/p.git", "ssh://*****@h/p.git"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(mask_credentials(url), shown);
        }
    }
}
