//! Badges of projects and groups. The reference leaves them out; all of this is the real service's
//! behaviour.
//!
//! A project shows the badges of all groups above it with its own, but changes only its own.

use super::prelude::*;
use super::rows::INHERITED;

pub(super) const COLLECTIONS: &[Collection] =
    &[BADGES, Collection { path: "/groups/{id}/badges", writes: OWNER, ..BADGES }];

const BADGES: Collection = Collection {
    entry: "badge_id",
    required: &URLS,
    fields: &[
        Field { trims: true, ..Field::new(URLS[0], Form::Text) },
        Field { trims: true, ..Field::new(URLS[1], Form::Text) },
        Field::new("name", Form::Text),
    ],
    scope,
    filters: &["name"],
    inherited,
    settle: |_, _, _, badge| check(badge),
    json: |_, call, scope, badge| json(call, scope, badge),
    ..Collection::new("/projects/{id}/badges")
};

pub(super) const ROUTES: &[Route] = &[get("/{holder}/badges/render", preview)];

const URLS: [&str; 2] = ["link_url", "image_url"];

/// The project or group; everybody who sees it can read badges, also without a token.
fn scope(of: &Collection, call: &Call<'_>) -> Result<Scope> {
    if call.writes { of.place(call, of.writes) } else { Scope::seen(call) }
}

/// The badges of all groups above a project.
fn inherited(of: &Collection, call: &Call<'_>, scope: &Scope) -> Result<Vec<Record>> {
    let Scope::Project(_) = scope else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for group in scope.groups() {
        all.extend(of.rows.all(call, Holder::Group(group))?);
    }
    all.iter_mut().for_each(|badge| badge.set(INHERITED, true));
    Ok(all)
}

/// A badge as the service shows it. Placeholders for the project are filled in only in projects.
fn json(call: &Call<'_>, scope: &Scope, badge: &Record) -> Result<Value> {
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
        "kind": if badge.is_set(INHERITED) { "group" } else { scope.name() },
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

fn check(badge: &Record) -> Result<()> {
    for name in URLS.into_iter().filter(|name| badge.settings.contains_key(*name)) {
        // Placeholders may be anywhere.
        let plain = badge.text(name).replace("%{", "").replace('}', "");
        if let Some(why) = urls::refused(&plain, &["http", "https"], Reach::Anywhere) {
            return Err(Failure::model(name, why));
        }
    }
    Ok(())
}

/// A preview of a badge.
fn preview(call: &Call<'_>) -> Result<Answer> {
    let scope = scope(&BADGES, call)?;
    call.params.require(&URLS)?;
    let mut badge = Record::new(call.now());
    BADGES.take(call, &mut badge)?;
    check(&badge)?;
    let mut body = json(call, &scope, &badge)?;
    if let Some(body) = body.as_object_mut() {
        body.retain(|name, _| name.ends_with("_url"));
    }
    Answer::ok(&body)
}
