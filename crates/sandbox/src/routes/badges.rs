//! Badges of projects and groups. The reference does not describe badges. This module follows the
//! real service.
//!
//! The badges of a project include the badges of all groups above it. A call for a project can
//! change only badges of the project itself.

use super::callbacks::INHERITED;
use super::prelude::*;

const BADGES: RecordTable = RecordTable("badges");

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: BADGES,
    operations: &[(Method::GET, "/render", CollectionOperation::Custom(preview_badge))],
    // Everybody who sees the project or group can read badges, even without a token.
    find_scope: |collection, call| {
        if call.is_write {
            GroupOrProject::from_call_read_archived(call, collection.write_level)
        } else {
            GroupOrProject::from_call_if_visible(call)
        }
    },
    list_inherited: inherited_badges,
    complete: |_, badge| check_urls(badge),
    to_json: json,
    ..Callbacks::DEFAULT
}];

const URL_FIELDS: [&str; 2] = ["link_url", "image_url"];

/// The badges of all groups above a project.
fn inherited_badges(call: &CollectionCall<'_>) -> Result<Vec<Record>> {
    let GroupOrProject::Project(_) = call.scope else { return Ok(Vec::new()) };
    let mut badges = Vec::new();
    for group_id in call.scope.group_ids() {
        badges.extend(BADGES.list(call, Holder::Group(group_id))?);
    }
    badges.iter_mut().for_each(|badge| badge.set(INHERITED, true));
    Ok(badges)
}

/// A badge as the service shows it. Placeholders for the project are filled in only in projects.
fn json(call: &CollectionCall<'_>, badge: &Record) -> Result<Value> {
    let names = "name link_url image_url rendered_link_url rendered_image_url id kind";
    let mut body = badge.json_fields(names);
    for name in URL_FIELDS {
        let url = badge.text(name);
        body[name] = url.into();
        body[format!("rendered_{name}")] = match call.scope {
            GroupOrProject::Project(project) => render_url(call, project, url)?.into(),
            GroupOrProject::Group(_) => url.into(),
        };
    }
    body["kind"] = if badge.is_true(INHERITED) { "group" } else { call.scope.type_name() }.into();
    Ok(body)
}

fn render_url(call: &Call<'_>, project: &Project, url: &str) -> Result<String> {
    let attributes = project.attributes(call.db)?;
    let branch = attributes.get("default_branch").and_then(Value::as_str).unwrap_or_default();
    Ok(url
        .replace("%{project_path}", &project.full_path)
        .replace("%{project_name}", &project.path)
        .replace("%{project_id}", &project.id.to_string())
        .replace("%{default_branch}", branch))
}

fn check_urls(badge: &Record) -> Result<()> {
    for name in URL_FIELDS.into_iter().filter(|name| badge.settings.contains_key(*name)) {
        // Placeholders may be at any position in the URL.
        let plain_url = badge.text(name).replace("%{", "").replace('}', "");
        let error = urls::url_error(&plain_url, &["http", "https"], None);
        refuse_field(name, error)?;
    }
    Ok(())
}

/// Answers with a preview of a badge, and stores nothing.
fn preview_badge(call: &CollectionCall<'_>) -> Result<Answer> {
    call.require(&URL_FIELDS)?;
    let mut badge = Record::new(call.time_text());
    call.store_params(&mut badge)?;
    check_urls(&badge)?;
    Answer::ok(&remove_fields(json(call, &badge)?, &["name", "id", "kind"]))
}
