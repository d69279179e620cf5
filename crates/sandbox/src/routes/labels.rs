//! Labels of projects and groups. The reference leaves them out; all of this is the real service's
//! behaviour.
//!
//! A call names a label by id or title; an id is tried first. Reads also see the labels of all
//! groups above. Changes and removals through a project also see those of the project's own group.

use http::Method;

use super::super::store::label::Label;
use super::colors::{self, Color};
use super::group_settings;
use super::group_settings::ARCHIVED;
use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/labels", |call| list(call, &place(call, 0)?)),
    post("/{holder}/labels", |call| create(call, &place(call, REPORTER)?)),
    get("/{holder}/labels/{name}", |call| show(call, &place(call, 0)?)),
    // The old forms, with the label among the parameters.
    put("/{holder}/labels", |call| update(call, &place(call, REPORTER)?)),
    delete("/{holder}/labels", |call| remove(call, &place(call, 0)?)),
    put("/{holder}/labels/{name}", |call| update(call, &place(call, REPORTER)?)),
    delete("/{holder}/labels/{name}", |call| remove(call, &place(call, 0)?)),
    put("/projects/{id}/labels/{name}/promote", promote),
];

const LONGEST: usize = 255;

/// The color of a label without one.
const PLAIN: &str = "#6699cc";

/// The project or group of a call; level 0 is for reads, for every user who sees it.
fn place(call: &Call<'_>, level: i64) -> Result<Scope> {
    let place = Scope::of(call, [level, level])?;
    let is_closed = match &place {
        Scope::Project(project) => level > 0 && is_without(call, project)?,
        Scope::Group(group) => {
            call.writes && group_settings::is_set_above(call, group, ARCHIVED, true)?
        }
    };
    refuse_if(is_closed, Failure::forbidden).map(|()| place)
}

/// The labels here: with those of all groups above, or without. Even without, a project includes
/// the labels of its own group.
fn labels(call: &Call<'_>, place: &Scope, with_above: bool) -> Result<Vec<Label>> {
    let mut groups = place.groups();
    if !with_above {
        groups.drain(..groups.len().saturating_sub(1));
    }
    Ok(Label::of(call.db, place.project_id().as_slice(), &groups)?)
}

/// Whether a project has neither issues nor merge requests, so that nothing can have a label.
fn is_without(call: &Call<'_>, project: &Project) -> Result<bool> {
    let attributes = project.attributes(call.db)?;
    let is_off = |name| attributes.get(name).is_some_and(|level| level == "disabled");
    Ok(["issues_access_level", "merge_requests_access_level"].into_iter().all(is_off))
}

/// A label as the service shows it. Only projects show whether it is their own, and its priority.
fn json(call: &Call<'_>, place: &Scope, label: &Label) -> Result<Value> {
    let mut body = json!({
        "id": label.id,
        "name": label.title,
        "description": label.description,
        "description_html": label.description.as_deref().map(view::escaped).unwrap_or_default(),
        "text_color": colors::readable_on(&label.color),
        "color": label.color,
        "subscribed": false,
    });
    if call.params.is_set("with_counts")? {
        for name in ["open_issues_count", "closed_issues_count", "open_merge_requests_count"] {
            body[name] = 0.into();
        }
    }
    if let Scope::Project(project) = place {
        body["priority"] = label.priority(call.db, project.id)?.into();
        body["is_project_label"] = label.group_id.is_none().into();
    }
    Ok(body)
}

/// The label's name in a call: in the path, or in one of two parameters.
fn name(call: &Call<'_>) -> Result<String> {
    const BOTH: &str = "label_id, name";
    match call.segment("name") {
        "" => {}
        name => return Ok(name.to_owned()),
    }
    match (call.params.integer("label_id")?, call.params.text("name")?) {
        (Some(id), None) => Ok(id.to_string()),
        (None, Some(name)) => Ok(name),
        (Some(_), Some(_)) => Err(Failure::parameter(BOTH, "are mutually exclusive")),
        (None, None) => {
            let text = "are missing, exactly one parameter must be provided";
            Err(Failure::parameter(BOTH, text))
        }
    }
}

/// The label in the call, by id or else by title.
fn named(call: &Call<'_>, place: &Scope, with_above: bool) -> Result<Label> {
    let name = name(call)?;
    let mut all = labels(call, place, with_above)?;
    // An edit of a group's label also finds those of the projects in it; for equal titles, the
    // oldest.
    if let (Scope::Group(group), true) = (place, call.method == Method::PUT) {
        let sql = "SELECT id FROM projects WHERE namespace_id = ?1";
        all.extend(Label::of(call.db, &call.many::<i64>(sql, [group.id])?, &[])?);
        all.sort_by_key(|label| label.id);
    }
    let by_id = name.parse().ok().and_then(|id: i64| all.iter().position(|one| one.id == id));
    let found = by_id.or_else(|| all.iter().position(|one| one.title == name));
    found.map(|at| all.swap_remove(at)).ok_or_else(|| Failure::not_found("Label"))
}

fn list(call: &Call<'_>, place: &Scope) -> Result<Answer> {
    let search = call.params.text("search")?.unwrap_or_default().to_lowercase();
    let with_above = call.params.flag("include_ancestor_groups")?.unwrap_or(true);
    let mut labels = match place {
        Scope::Project(project) if is_without(call, project)? => Vec::new(),
        _ => labels(call, place, with_above)?,
    };
    if let Scope::Group(group) = place {
        labels.extend(labels_below(call, group)?);
        labels.sort_by(|one, other| (&one.title, one.id).cmp(&(&other.title, other.id)));
        labels.dedup_by_key(|label| label.id);
    }
    let found = |text: &str| text.to_lowercase().contains(&search);
    let all = labels
        .iter()
        .filter(|label| found(&label.title) || label.description.as_deref().is_some_and(found))
        .map(|label| json(call, place, label));
    page::each(call, all)
}

/// The labels below a group in its list, if the call asks for them.
fn labels_below(call: &Call<'_>, group: &Namespace) -> Result<Vec<Label>> {
    let deep = call.params.is_set("include_descendant_groups")?;
    let groups = if deep { group.subtree(call.db)? } else { vec![group.id] };
    let mut projects = Vec::new();
    if call.params.flag("only_group_labels")? == Some(false) {
        let sql = "SELECT id FROM projects WHERE namespace_id IN (SELECT value FROM json_each(?1))";
        let ids: Vec<i64> = call.many(sql, [Value::from(groups.clone()).to_string()])?;
        for id in ids {
            let project = Project::by_id(call.db, id)?;
            if project.is_some_and(|project| call.sees(&project).unwrap_or(false)) {
                projects.push(id);
            }
        }
    }
    Ok(Label::of(call.db, &projects, if deep { &groups } else { &[] })?)
}

fn show(call: &Call<'_>, place: &Scope) -> Result<Answer> {
    let with_above = call.params.flag("include_ancestor_groups")?.unwrap_or(true);
    let label = named(call, place, with_above)?;
    Answer::ok(&json(call, place, &label)?)
}

fn checked_title(title: &str) -> Result<String> {
    let title = title.trim();
    if title.is_empty() {
        let body = json!({"title": ["can't be blank", "is invalid"]});
        return Err(Failure::refused(body));
    }
    let complaint = if title.contains(',') {
        "is invalid".to_owned()
    } else if title.chars().count() > LONGEST {
        format!("is too long (maximum is {LONGEST} characters)")
    } else {
        return Ok(title.to_owned());
    };
    Err(Failure::model("title", complaint))
}

/// The color in a call; null means the default.
fn wanted_color(call: &Call<'_>) -> Result<String> {
    let Some(text) = call.params.text("color")? else { return Ok(PLAIN.to_owned()) };
    match Color::read(text.trim()) {
        Some(color) => Ok(color.kept()),
        None => Err(Failure::model("color", "must be a valid color code")),
    }
}

/// The priority in a call, if any; null removes it.
fn wanted_priority(call: &Call<'_>) -> Result<Option<Option<i64>>> {
    const NAME: &str = "priority";
    if call.params.get(NAME).is_none() {
        return Ok(None);
    }
    match call.params.integer(NAME)? {
        Some(priority) if priority < 0 => {
            Err(Failure::model(NAME, "must be greater than or equal to 0"))
        }
        priority => Ok(Some(priority)),
    }
}

fn take_priority(call: &Call<'_>, place: &Scope, label: &Label) -> Result<()> {
    if let Scope::Project(project) = place
        && let Some(priority) = wanted_priority(call)?
    {
        label.set_priority(call.db, project.id, priority)?;
    }
    Ok(())
}

/// A title is taken if a label of a group above has it.
fn create(call: &Call<'_>, place: &Scope) -> Result<Answer> {
    call.params.require(&["name", "color"])?;
    let title = call.params.text("name")?.unwrap_or_default();
    if labels(call, place, true)?.iter().any(|label| label.title == title) {
        return Err(Failure::conflict("Label already exists"));
    }
    let project_id = place.project_id();
    let group_id = project_id.is_none().then(|| place.id());
    let mut label = Label {
        id: 0,
        project_id,
        group_id,
        title: checked_title(&title)?,
        color: wanted_color(call)?,
        description: call.params.text("description")?,
        updated_at: call.now().to_owned(),
    };
    check_free(call, place, &label)?;
    label.id = label.put(call.db)?;
    take_priority(call, place, &label)?;
    Answer::created(&json(call, place, &label)?)
}

/// 400 if another label of the same project or group has the title.
fn check_free(call: &Call<'_>, place: &Scope, label: &Label) -> Result<()> {
    let others = match (place, label.group_id) {
        (_, Some(group)) => Label::of(call.db, &[], &[group])?,
        (Scope::Project(project), None) => Label::of(call.db, &[project.id], &[])?,
        (Scope::Group(_), None) => Vec::new(),
    };
    let is_taken = others.iter().any(|other| other.title == label.title && other.id != label.id);
    refuse_if(is_taken, || Failure::model("title", "has already been taken"))
}

/// The label to change or remove. Through a project it may be a label of its group, which needs
/// rights in the group.
fn named_to_change(call: &Call<'_>, place: &Scope) -> Result<Label> {
    let label = named(call, place, false)?;
    if let (Scope::Project(_), Some(group)) = (place, label.group_id)
        && let Some(group) = Namespace::by_id(call.db, group)?
        && call.level_in_group(&group)? < REPORTER
    {
        return Err(Failure::forbidden());
    }
    Ok(label)
}

fn update(call: &Call<'_>, place: &Scope) -> Result<Answer> {
    let mut known = vec!["new_name", "color", "description"];
    if matches!(place, Scope::Project(_)) {
        known.push("priority");
    }
    if call.release() >= OBSERVED {
        known.push("archived");
    }
    call.params.require_any(&known)?;
    let mut label = named_to_change(call, place)?;
    if call.params.has("new_name") {
        label.title = checked_title(&call.params.text("new_name")?.unwrap_or_default())?;
    }
    if call.params.has("color") {
        label.color = wanted_color(call)?;
    }
    if call.params.has("description") {
        label.description = call.params.text("description")?;
    }
    check_free(call, place, &label)?;
    label.updated_at = call.now().to_owned();
    label.put(call.db)?;
    take_priority(call, place, &label)?;
    Answer::ok(&json(call, place, &label)?)
}

/// A missing label is 404, also for callers who may not remove it.
fn remove(call: &Call<'_>, place: &Scope) -> Result<Answer> {
    if matches!(place, Scope::Group(_)) && call.segment("name").is_empty() {
        call.params.require(&["name"])?;
    }
    named(call, place, false)?;
    match place {
        Scope::Project(_) => call.writable_project_as(REPORTER).map(drop)?,
        Scope::Group(_) => call.group_as(REPORTER).map(drop)?,
    }
    let label = named_to_change(call, place)?;
    call.remove(&label, &label.updated_at)
}

/// Turns a project's label into one of its group; it absorbs those of the group's other projects
/// with this title.
fn promote(call: &Call<'_>) -> Result<Answer> {
    let project = call.project_as(0)?;
    let place = Scope::Project(Box::new(project.clone()));
    let group = project.namespace.as_ref().clone();
    let own = named(call, &place, false).ok().filter(|label| label.group_id.is_none());
    let mut label = own.filter(|_| group.is_group()).ok_or_else(|| Failure::not_found("Label"))?;
    refuse_if(call.level_in_group(&group)? < REPORTER, Failure::forbidden)?;
    call.check_open(&project)?;
    label.promote(call.db, group.id)?;
    Answer::ok(&json(call, &Scope::Group(Box::new(group)), &label)?)
}
