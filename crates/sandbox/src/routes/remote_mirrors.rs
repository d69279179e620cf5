//! Push mirrors of a project. The reference leaves them out; all of this is the real service's.
//! They are stored and validated; nothing is ever pushed.
//!
//! The URL of a mirror is said when it is created, and never changes; its credentials are in no
//! answer.

use serde_json::{Value, json};

use super::super::access::MAINTAINER;
use super::super::answer::{Failure, Result};
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::outbound::{self, Reach};
use super::super::profile::OBSERVED;
use super::super::re2;
use super::super::scope::Scope;
use super::super::store::record::Record;
use super::rows::Collection;

pub(super) const MIRRORS: Collection = Collection {
    entry: "mirror_id",
    required: &["url"],
    scope: |_, call| project(call),
    settle: |_, call, _, mirror, _| take(call, mirror),
    json: |_, call, _, mirror| Ok(json(call, mirror)),
    ..Collection::new("/projects/{id}/remote_mirrors")
};

const FLAGS: [&str; 2] = ["enabled", PROTECTED];
/// A flag that may be unset.
const DIVERGENT: &str = "keep_divergent_refs";
const SCHEMES: [&str; 4] = ["http", "https", "ssh", "git"];
/// Whose name is in no URL a secret.
const GIT: &str = "git";
const METHODS: [&str; 2] = ["password", "ssh_public_key"];
const PROTECTED: &str = "only_protected_branches";
const REGEX: &str = "mirror_branch_regex";

/// The project. Who lacks the right to it gets 401 here, not 403.
fn project(call: &Call<'_>) -> Result<Scope> {
    let project = call.project_as(0)?;
    if call.level_in(&project)? < MAINTAINER {
        return Err(Failure::unauthorized());
    }
    if call.writes {
        call.check_writable(&project)?;
    }
    Ok(Scope::Project(Box::new(project)))
}

fn has_regex(call: &Call<'_>) -> bool {
    call.is_from(16, 2) && call.tier() >= Tier::Premium
}

fn json(call: &Call<'_>, mirror: &Record) -> Value {
    let mut body = json!({
        "id": mirror.id,
        "url": masked(mirror.text("url")),
        "update_status": "none",
        "last_update_at": null,
        "last_update_started_at": null,
        "last_successful_update_at": null,
        "last_error": null,
    });
    for name in FLAGS {
        body[name] = mirror.settings.get(name).cloned().unwrap_or(Value::Bool(false));
    }
    body[DIVERGENT] = mirror.settings.get(DIVERGENT).cloned().unwrap_or_default();
    if call.release() >= OBSERVED {
        body["host_keys"] = json!([]);
    }
    if call.is_from(16, 10) {
        body["auth_method"] =
            mirror.settings.get("auth_method").cloned().unwrap_or(METHODS[0].into());
    }
    if has_regex(call) {
        body[REGEX] = mirror.settings.get(REGEX).cloned().unwrap_or_default();
    }
    body
}

/// A URL with stars for whatever it has of credentials.
pub(super) fn masked(text: &str) -> String {
    const STARS: &str = "*****";
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority);
    match authority.rsplit_once('@') {
        None => text.to_owned(),
        Some((user, host)) => {
            let (name, password) = match user.split_once(':') {
                Some((name, _)) => (name, format!(":{STARS}")),
                None => (user, String::new()),
            };
            let name = if name == GIT { GIT } else { STARS };
            format!("{scheme}://{name}{password}@{host}{path}")
        }
    }
}

pub(super) fn checked_url(text: String) -> Result<String> {
    match outbound::refused(&text, &SCHEMES, Reach::Outside) {
        _ if text.is_empty() => Err(Failure::model("url", "can't be blank")),
        Some(why) => Err(Failure::model("url", why)),
        None => Ok(text),
    }
}

/// Takes what the call says; a URL of a new mirror only. All protected branches and a pattern exclude
/// each other: what is said takes the place of the other.
fn take(call: &Call<'_>, mirror: &mut Record) -> Result<()> {
    if mirror.id == 0 {
        mirror.set("url", checked_url(call.params.text("url")?.unwrap_or_default())?);
    }
    for name in FLAGS.into_iter().filter(|name| call.params.has(name)) {
        mirror.set(name, call.params.is_set(name)?);
    }
    if call.params.has(DIVERGENT) {
        mirror.set(DIVERGENT, call.params.flag(DIVERGENT)?);
    }
    if call.is_from(16, 10)
        && let Some(method) = call.params.one_of("auth_method", &METHODS)?
    {
        mirror.set("auth_method", method);
    }
    if !has_regex(call) {
        return Ok(());
    }
    if call.params.has(REGEX) {
        if call.params.has(PROTECTED) {
            let both = format!("{PROTECTED}, {REGEX}");
            return Err(Failure::parameter(&both, "are mutually exclusive"));
        }
        let regex = call.params.text(REGEX)?;
        let text = regex.as_deref().unwrap_or_default();
        if let Some(why) = re2::refusal(text) {
            return Err(Failure::model(REGEX, why));
        }
        if !text.is_empty() {
            mirror.set(PROTECTED, false);
        }
        mirror.set(REGEX, regex);
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
            assert_eq!(masked(url), shown);
        }
    }
}
