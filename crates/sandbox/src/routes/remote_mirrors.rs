//! Push mirrors of a project. The reference leaves them out; all of this is the real service's.
//! They are stored and validated; nothing is ever pushed.
//!
//! The URL of a mirror is said when it is created, and never changes; its credentials are in no
//! answer.

use serde_json::{Value, json};
use url::Url;

use super::super::access::MAINTAINER;
use super::super::answer::{Answer, Failure};
use super::super::attributes::Tier;
use super::super::call::Call;
use super::super::page;
use super::super::store::holder::Holder;
use super::super::store::record::{Record, Records};
use super::{Route, delete, get, post, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/remote_mirrors", list),
    post("/projects/{id}/remote_mirrors", create),
    get("/projects/{id}/remote_mirrors/{mirror_id}", show),
    put("/projects/{id}/remote_mirrors/{mirror_id}", update),
    delete("/projects/{id}/remote_mirrors/{mirror_id}", remove),
];

const MIRRORS: Records = Records("remote_mirrors");
const FLAGS: [&str; 3] = ["enabled", "only_protected_branches", "keep_divergent_refs"];
const METHODS: [&str; 2] = ["password", "ssh_public_key"];
const PROTECTED: &str = "only_protected_branches";
const REGEX: &str = "mirror_branch_regex";

/// The project. Who lacks the right to it gets 401 here, not 403.
fn project(call: &Call<'_>) -> Result<Holder, Failure> {
    let project = call.project_as(0)?;
    if call.level_in(&project)? < MAINTAINER {
        return Err(Failure::unauthorized());
    }
    if call.writes {
        call.check_writable(&project)?;
    }
    Ok(Holder::Project(project.id))
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
        body[name] = mirror.is_set(name).into();
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
        Some((user, host)) if user.contains(':') => {
            format!("{scheme}://{STARS}:{STARS}@{host}{path}")
        }
        Some((_, host)) => format!("{scheme}://{STARS}@{host}{path}"),
    }
}

pub(super) fn checked_url(text: String) -> Result<String, Failure> {
    let scheme = Url::parse(&text).ok().filter(Url::has_host).map(|url| url.scheme().to_owned());
    match scheme.as_deref() {
        Some("http" | "https" | "ssh" | "git") => Ok(text),
        _ => {
            let text = "is blocked: Only allowed schemes are http, https, ssh, git";
            Err(Failure::model("url", text))
        }
    }
}

fn find(call: &Call<'_>, of: Holder) -> Result<Record, Failure> {
    let id = call.segment_id("mirror_id")?;
    MIRRORS.find(call.db, of, id)?.ok_or_else(Failure::no_record)
}

/// Takes what the call says, but for the URL. All protected branches and a pattern exclude each
/// other: what is said takes the place of the other.
fn take(call: &Call<'_>, mirror: &mut Record) -> Result<(), Failure> {
    for name in FLAGS.into_iter().filter(|name| call.params.has(name)) {
        match call.params.flag(name)? {
            Some(on) => mirror.set(name, on),
            None => return Err(Failure::model(name, "can't be blank")),
        }
    }
    if call.is_from(16, 10)
        && let Some(method) = call.params.one_of("auth_method", &METHODS)?
    {
        mirror.set("auth_method", method);
    }
    if !has_regex(call) {
        return Ok(());
    }
    let regex = call.params.text(REGEX)?.filter(|text| !text.is_empty());
    if regex.is_some() && call.params.is_set(PROTECTED)? {
        return Err(Failure::parameter(&format!("{PROTECTED}, {REGEX}"), "are mutually exclusive"));
    }
    if regex.is_some() {
        mirror.set(PROTECTED, false);
    }
    if call.params.has(REGEX) || mirror.is_set(PROTECTED) {
        mirror.set(REGEX, regex);
    }
    Ok(())
}

fn list(call: &Call<'_>) -> Result<Answer, Failure> {
    let mirrors = MIRRORS.all(call.db, project(call)?)?;
    let all: Vec<Value> = mirrors.iter().map(|mirror| json(call, mirror)).collect();
    page::list(call, &all)
}

fn show(call: &Call<'_>) -> Result<Answer, Failure> {
    let mirror = find(call, project(call)?)?;
    Answer::ok(&json(call, &mirror))
}

fn create(call: &Call<'_>) -> Result<Answer, Failure> {
    let of = project(call)?;
    call.params.require(&["url"])?;
    let mut mirror = Record::new(call.now());
    mirror.set("url", checked_url(call.params.text("url")?.unwrap_or_default())?);
    take(call, &mut mirror)?;
    MIRRORS.save(call.db, of, &mut mirror, call.now())?;
    Answer::created(&json(call, &mirror))
}

/// A URL in the call is ignored.
fn update(call: &Call<'_>) -> Result<Answer, Failure> {
    let of = project(call)?;
    let mut mirror = find(call, of)?;
    take(call, &mut mirror)?;
    MIRRORS.save(call.db, of, &mut mirror, call.now())?;
    Answer::ok(&json(call, &mirror))
}

fn remove(call: &Call<'_>) -> Result<Answer, Failure> {
    let mirror = find(call, project(call)?)?;
    call.check_unmodified(&mirror.updated_at)?;
    MIRRORS.remove(call.db, &mirror)?;
    Ok(Answer::no_content())
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
            ("ssh://git@h:22/p.git", "ssh://*****@h:22/p.git"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(masked(url), shown);
        }
    }
}
