//! Badges of projects and groups. The reference leaves them out; all of this is the real service's.
//!
//! A project shows the badges of all groups above it among its own, and changes its own only.

use serde_json::{Value, json};

use super::super::access::{MAINTAINER, OWNER, ids};
use super::super::answer::{Answer, Failure, Result};
use super::super::call::Call;
use super::super::outbound::{self, Reach};
use super::super::page;
use super::super::scope::Scope;
use super::super::store::holder::Holder;
use super::super::store::project::Project;
use super::super::store::record::{Record, Records};
use super::{Route, delete, get, post, put};

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/badges", |call| list(call, &seen_project(call)?)),
    post("/projects/{id}/badges", |call| create(call, &Scope::project(call, MAINTAINER)?)),
    get("/projects/{id}/badges/render", |call| preview(call, &seen_project(call)?)),
    get("/projects/{id}/badges/{badge_id}", |call| show(call, &seen_project(call)?)),
    put("/projects/{id}/badges/{badge_id}", |call| {
        update(call, &Scope::project(call, MAINTAINER)?)
    }),
    delete("/projects/{id}/badges/{badge_id}", |call| {
        remove(call, &Scope::project(call, MAINTAINER)?)
    }),
    get("/groups/{id}/badges", |call| list(call, &seen_group(call)?)),
    post("/groups/{id}/badges", |call| create(call, &Scope::group(call, OWNER)?)),
    get("/groups/{id}/badges/render", |call| preview(call, &seen_group(call)?)),
    get("/groups/{id}/badges/{badge_id}", |call| show(call, &seen_group(call)?)),
    put("/groups/{id}/badges/{badge_id}", |call| update(call, &Scope::group(call, OWNER)?)),
    delete("/groups/{id}/badges/{badge_id}", |call| remove(call, &Scope::group(call, OWNER)?)),
];

const BADGES: Records = Records("badges");
const URLS: [&str; 2] = ["link_url", "image_url"];

/// The project, for everybody who sees it, also without a token.
fn seen_project(call: &Call<'_>) -> Result<Scope> {
    Ok(Scope::Project(Box::new(call.project()?)))
}

/// The group, likewise.
fn seen_group(call: &Call<'_>) -> Result<Scope> {
    Ok(Scope::Group(Box::new(call.group()?)))
}

/// Each badge that is shown here, in the order in which they were made, with whose sort it is.
fn shown(call: &Call<'_>, scope: &Scope) -> Result<Vec<(&'static str, Record)>> {
    let own = BADGES.all(call.db, scope.holder())?;
    let mut all: Vec<_> = own.into_iter().map(|badge| (scope.name(), badge)).collect();
    if let Scope::Project(project) = scope
        && project.namespace.is_group()
    {
        for group in ids(&project.namespace.traversal) {
            let inherited = BADGES.all(call.db, Holder::Group(group))?;
            all.extend(inherited.into_iter().map(|badge| ("group", badge)));
        }
        all.sort_by_key(|(_, badge)| badge.id);
    }
    Ok(all)
}

/// As the service shows one. What varies with the project is filled in through a project only.
fn json(call: &Call<'_>, scope: &Scope, kind: &str, badge: &Record) -> Result<Value> {
    let rendered = |name| match scope {
        Scope::Project(project) => rendered(call, project, badge.text(name)),
        Scope::Group(_) => Ok(badge.text(name).to_owned()),
    };
    Ok(json!({
        "name": badge.settings.get("name"),
        "link_url": badge.text("link_url"),
        "image_url": badge.text("image_url"),
        "rendered_link_url": rendered("link_url")?,
        "rendered_image_url": rendered("image_url")?,
        "id": badge.id,
        "kind": kind,
    }))
}

fn rendered(call: &Call<'_>, project: &Project, url: &str) -> Result<String> {
    let attributes = project.attributes(call.db)?;
    let branch = attributes.get("default_branch").and_then(Value::as_str).unwrap_or_default();
    Ok(url
        .replace("%{project_path}", &project.full_path)
        .replace("%{project_name}", &project.path)
        .replace("%{project_id}", &project.id.to_string())
        .replace("%{default_branch}", branch))
}

/// The own badge that the call changes or removes.
fn own(call: &Call<'_>, scope: &Scope) -> Result<Record> {
    let id = call.segment_id("badge_id")?;
    BADGES.find(call.db, scope.holder(), id)?.ok_or_else(Failure::no_record)
}

/// Takes what the call says.
fn take(call: &Call<'_>, badge: &mut Record) -> Result<()> {
    for name in URLS.into_iter().filter(|name| call.params.has(name)) {
        let url = call.params.text(name)?.unwrap_or_default().trim().to_owned();
        // Placeholders may be anywhere.
        let plain = url.replace("%{", "").replace('}', "");
        if let Some(why) = outbound::refused(&plain, &["http", "https"], Reach::Anywhere) {
            return Err(Failure::model(name, why));
        }
        badge.set(name, url);
    }
    if call.params.has("name") {
        badge.set("name", call.params.text("name")?);
    }
    Ok(())
}

/// What a badge would look like.
fn preview(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    call.params.require(&URLS)?;
    let mut badge = Record::new(call.now());
    take(call, &mut badge)?;
    let mut body = json(call, scope, scope.name(), &badge)?;
    if let Some(body) = body.as_object_mut() {
        body.retain(|name, _| name.ends_with("_url"));
    }
    Answer::ok(&body)
}

fn list(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let name = call.params.text("name")?;
    let all: Vec<Value> = shown(call, scope)?
        .iter()
        .filter(|(_, badge)| name.as_deref().is_none_or(|name| badge.text("name") == name))
        .map(|(kind, badge)| json(call, scope, kind, badge))
        .collect::<Result<_, _>>()?;
    page::list(call, &all)
}

fn show(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let id = call.segment_id("badge_id")?;
    let found = shown(call, scope)?.into_iter().find(|(_, badge)| badge.id == id);
    let (kind, badge) = found.ok_or_else(Failure::no_record)?;
    Answer::ok(&json(call, scope, kind, &badge)?)
}

fn create(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    call.params.require(&URLS)?;
    let mut badge = Record::new(call.now());
    take(call, &mut badge)?;
    BADGES.save(call.db, scope.holder(), &mut badge, call.now())?;
    Answer::created(&json(call, scope, scope.name(), &badge)?)
}

fn update(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let mut badge = own(call, scope)?;
    take(call, &mut badge)?;
    BADGES.save(call.db, scope.holder(), &mut badge, call.now())?;
    Answer::ok(&json(call, scope, scope.name(), &badge)?)
}

fn remove(call: &Call<'_>, scope: &Scope) -> Result<Answer> {
    let badge = own(call, scope)?;
    call.check_unmodified(&badge.updated_at)?;
    BADGES.remove(call.db, &badge)?;
    Ok(Answer::no_content())
}
