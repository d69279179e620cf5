//! Labels of projects and groups. The reference does not describe labels. This module follows the
//! real service.
//!
//! A call names a label by id or title; an id is tried first. Reads also find the labels of all groups above.
//! Changes and removals through a project also find the labels of the group that contains the project.

use super::colors;
use super::prelude::*;

const LABELS: RecordTable = RecordTable("labels");

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: LABELS,
    // Older forms, with the label in the parameters.
    operations: &[
        (Method::POST, "", CollectionOperation::Custom(create_label)),
        (Method::PUT, "", CollectionOperation::Update),
        (Method::DELETE, "", CollectionOperation::Remove),
    ],
    find_scope: |_, call| {
        let is_change = [Method::POST, Method::PUT].contains(&call.method);
        label_scope(call, if is_change { REPORTER } else { 0 })
    },
    find: find_label,
    list_inherited: inherited_labels,
    filter: filter_labels,
    complete: complete_label,
    to_json: label_json,
    ..Callbacks::DEFAULT
}];

pub(super) const ROUTES: &[Route] = &[put("/projects/{id}/labels/{name}/promote", promote_label)];

/// The field with the id of the group; null for a label of a project.
const GROUP_ID: &str = "group_id";
/// The field with the priorities: a number for each project id. A group's label can have a priority
/// for each project below the group.
const PRIORITIES: &str = "priorities";
const TITLE: &str = "title";

/// The color of a label that was created without one.
const DEFAULT_COLOR: &str = "#6699cc";

/// The project or group of a call. Reads use level 0: everybody who sees the project or group may
/// read its labels.
fn label_scope(call: &Call<'_>, level: i64) -> Result<GroupOrProject> {
    let scope = GroupOrProject::from_call(call, [level, level])?;
    let is_refused = match &scope {
        GroupOrProject::Project(project) => {
            level > 0 && call.are_features_off(project, &LABELLED_FEATURES)?
        }
        GroupOrProject::Group(group) => call.is_write && call.is_group_archived(group)?,
    };
    refuse_if(is_refused, ErrorResponse::forbidden).map(|()| scope)
}

/// The labels of some projects and groups, sorted by title.
fn list_labels(call: &Call<'_>, holders: impl IntoIterator<Item = Holder>) -> Result<Vec<Record>> {
    let mut labels = Vec::new();
    for holder in holders {
        labels.extend(LABELS.list(call, holder)?);
    }
    sort_labels(&mut labels);
    Ok(labels)
}

fn sort_labels(labels: &mut [Record]) {
    labels.sort_by_cached_key(|label| (label.text(TITLE).to_owned(), label.id));
}

/// The groups whose labels can be used in `scope`: the nearest group, and with `includes_ancestors`
/// also all groups above it.
fn label_groups(scope: &GroupOrProject, includes_ancestors: bool) -> impl Iterator<Item = Holder> {
    let groups = scope.group_ids();
    let skipped_count = if includes_ancestors { 0 } else { groups.len().saturating_sub(1) };
    groups.into_iter().skip(skipped_count).map(Holder::Group)
}

/// The labels of the project, and of the [groups](label_groups) whose labels can be used in the
/// scope.
fn list_visible_labels(call: &CollectionCall<'_>, includes_ancestors: bool) -> Result<Vec<Record>> {
    let project_holder = call.scope.project_id().map(Holder::Project);
    list_labels(call, label_groups(call.scope, includes_ancestors).chain(project_holder))
}

/// The features with labels. If both features are off, a project shows no labels, and changes of
/// labels are refused.
const LABELLED_FEATURES: [&str; 2] = ["issues_access_level", "merge_requests_access_level"];

/// A label as the service shows it. Only responses for projects show the origin and the priority of
/// a label.
fn label_json(call: &CollectionCall<'_>, label: &Record) -> Result<Value> {
    let mut body = json!({
        "id": label.id,
        "name": label.text(TITLE),
        "description": label.value("description"),
        "description_html": view::escape_html(label.text("description")),
        "text_color": colors::choose_text_color(label.text("color")),
        "color": label.text("color"),
        "subscribed": false,
    });
    if call.is_true("with_counts")? {
        for name in ["open_issues_count", "closed_issues_count", "open_merge_requests_count"] {
            body[name] = 0.into();
        }
    }
    if let GroupOrProject::Project(project) = call.scope {
        let priorities = label.value(PRIORITIES);
        body["priority"] = priorities[project.id.to_string()].clone();
        body["is_project_label"] = label.value(GROUP_ID).is_null().into();
    }
    Ok(body)
}

/// The id or title of the label in a call, from the path or from one of two parameters.
fn requested_reference(call: &Call<'_>) -> Result<String> {
    const LABEL_PARAMETERS: &str = "label_id, name";
    match call.segment("name") {
        "" => {}
        name => return Ok(name.to_owned()),
    }
    match (call.integer("label_id")?, call.text("name")?) {
        (Some(id), None) => Ok(id.to_string()),
        (None, Some(name)) => Ok(name),
        (Some(_), Some(_)) => {
            Err(ErrorResponse::parameter_error(LABEL_PARAMETERS, "are mutually exclusive"))
        }
        (None, None) => Err(ErrorResponse::parameter_error(LABEL_PARAMETERS, NONE_OF_TWO_TEXT)),
    }
}

/// The label in the call, by id or else by title.
fn find_by_id_or_title(call: &CollectionCall<'_>, includes_ancestors: bool) -> Result<Record> {
    let reference = requested_reference(call)?;
    let mut labels = list_visible_labels(call, includes_ancestors)?;
    // An edit in a group also finds the labels of its projects. Among labels with the same title,
    // the edit changes the oldest label.
    if let (GroupOrProject::Group(group), true) = (call.scope, call.method == Method::PUT) {
        labels.extend(list_labels(call, group_projects(call, group.id)?)?);
        labels.sort_by_key(|label| label.id);
    }
    let position_by_id = reference
        .parse()
        .ok()
        .and_then(|id: i64| labels.iter().position(|candidate| candidate.id == id));
    let position = position_by_id
        .or_else(|| labels.iter().position(|listed_label| listed_label.text(TITLE) == reference));
    position.map(|index| labels.swap_remove(index)).or_not_found("Label")
}

/// The projects directly in a group.
fn group_projects(call: &Call<'_>, group_id: i64) -> Result<impl Iterator<Item = Holder> + use<>> {
    let sql = "SELECT id FROM projects WHERE namespace_id = ?1";
    Ok(call.query_column(sql, [group_id])?.into_iter().map(Holder::Project))
}

/// Sorts a list by title, and removes the labels that do not match the filters of the call.
fn filter_labels(call: &CollectionCall<'_>, labels: &mut Vec<Record>) -> Result<()> {
    if let GroupOrProject::Project(project) = call.scope
        && call.are_features_off(project, &LABELLED_FEATURES)?
    {
        labels.clear();
    }
    let search = call.text("search")?.unwrap_or_default().to_lowercase();
    labels.retain(|label| {
        [TITLE, "description"].iter().any(|name| label.text(name).to_lowercase().contains(&search))
    });
    sort_labels(labels);
    labels.dedup_by_key(|label| label.id);
    Ok(())
}

fn requests_ancestors(call: &Call<'_>) -> Result<bool> {
    Ok(call.flag("include_ancestor_groups")?.unwrap_or(true))
}

/// The labels of other projects and groups that a list shows. They come from the groups above, and
/// for a group also from the groups and projects below. Parameters of the call select these groups
/// and projects.
fn inherited_labels(call: &CollectionCall<'_>) -> Result<Vec<Record>> {
    let mut labels = list_labels(call, label_groups(call.scope, requests_ancestors(call)?))?;
    let GroupOrProject::Group(group) = call.scope else { return Ok(labels) };
    let includes_descendants = call.is_true("include_descendant_groups")?;
    let groups = if includes_descendants { group.subtree_ids(call.db)? } else { vec![group.id] };
    let includes_projects = call.flag("only_group_labels")? == Some(false);
    for group in groups {
        if includes_descendants {
            labels.extend(list_labels(call, [Holder::Group(group)])?);
        }
        for holder in group_projects(call, group)?.filter(|_| includes_projects) {
            if let Some(project) = Project::find_by_id(call.db, holder.column_and_id().1)?
                && call.may_see_project(&project)?
            {
                labels.extend(list_labels(call, [holder])?);
            }
        }
    }
    Ok(labels)
}

/// The label that the call names. A missing label results in 404, even for callers who may not
/// remove labels.
fn find_label(call: &CollectionCall<'_>) -> Result<Record> {
    if call.method == Method::PUT {
        require_any_field(call)?;
        return find_changeable_label(call);
    }
    if call.method != Method::DELETE {
        return find_by_id_or_title(call, requests_ancestors(call)?);
    }
    if matches!(call.scope, GroupOrProject::Group(_)) && call.segment("name").is_empty() {
        call.require(&["name"])?;
    }
    find_by_id_or_title(call, false)?;
    GroupOrProject::from_call(call, [REPORTER; 2])?;
    find_changeable_label(call)
}

/// Refuses an edit without fields.
fn require_any_field(call: &CollectionCall<'_>) -> Result<()> {
    let mut fields = vec!["new_name", "color", "description"];
    fields.extend(call.scope.project_id().map(|_| "priority"));
    fields.extend(call.is_observed_release_or_later().then_some("archived"));
    call.require_any(&fields)
}

fn parse_title(title: &str) -> Result<String> {
    let (title, mut errors) = (title.trim(), FieldErrors::default());
    errors.add_if(title.is_empty(), TITLE, BLANK_TEXT);
    errors.add_if(title.is_empty() || title.contains(','), TITLE, "is invalid");
    if !title.contains(',') {
        errors.check_length(TITLE, title, MAX_NAME_LENGTH);
    }
    errors.into_result().map(|()| title.to_owned())
}

/// The color in a call; null means the default.
fn requested_color(call: &Call<'_>) -> Result<String> {
    let text = call.text("color")?;
    let color = colors::parse(text.as_deref().unwrap_or(DEFAULT_COLOR).trim());
    color.ok_or_else(|| ErrorResponse::field_error("color", "must be a valid color code"))
}

/// Creates a label. The service stores the label before its priority. Therefore a negative priority
/// fails with 500, and the label exists without a priority.
fn create_label(call: &CollectionCall<'_>) -> Result<Answer> {
    let answer = call.answer(CollectionOperation::Create)?;
    let has_invalid_priority =
        call.scope.project_id().is_some() && requests_negative_priority(call)?;
    Ok(if has_invalid_priority {
        ErrorResponse::internal(&"the priority of the new label is negative").into()
    } else {
        answer
    })
}

const PRIORITY_PARAM: &str = "priority";

fn requests_negative_priority(call: &CollectionCall<'_>) -> Result<bool> {
    Ok(call.integer(PRIORITY_PARAM)?.is_some_and(|priority| priority < 0))
}

/// Stores the priority if the call contains one. Null removes the priority.
fn store_priority(call: &CollectionCall<'_>, label: &mut Record) -> Result<()> {
    let GroupOrProject::Project(project) = call.scope else { return Ok(()) };
    if call.has(PRIORITY_PARAM) {
        if requests_negative_priority(call)? {
            let text = "must be greater than or equal to 0";
            let is_new = label.id == 0;
            return refuse_if(!is_new, || ErrorResponse::field_error(PRIORITY_PARAM, text));
        }
        let priority = call.integer(PRIORITY_PARAM)?;
        let mut priorities = label.value(PRIORITIES);
        priorities[project.id.to_string()] = priority.into();
        label.set(PRIORITIES, priorities);
    }
    Ok(())
}

/// Fills in and checks a label. A group above must not have a label with the title of a new label.
fn complete_label(call: &CollectionCall<'_>, label: &mut Record) -> Result<()> {
    let (is_new, mut title_parameter) = (label.id == 0, "new_name");
    if is_new {
        title_parameter = "name";
        let title = call.text(title_parameter)?.unwrap_or_default();
        let is_taken =
            list_visible_labels(call, true)?.iter().any(|label| label.text(TITLE) == title);
        refuse_if(is_taken, || ErrorResponse::conflict("Label already exists"))?;
        label.set(GROUP_ID, call.scope.choose(None, Some(call.scope.id())));
    }
    if call.has(title_parameter) {
        label.set(TITLE, parse_title(&call.text(title_parameter)?.unwrap_or_default())?);
    }
    if call.has("color") {
        label.set("color", requested_color(call)?);
    }
    check_title_free(call, label)?;
    store_priority(call, label)
}

/// Fails with 400 if another label of the same project or group has the title.
fn check_title_free(call: &CollectionCall<'_>, label: &Record) -> Result<()> {
    let group_holder = label.value(GROUP_ID).as_i64().map(Holder::Group);
    let Some(holder) = group_holder.or(call.scope.project_id().map(Holder::Project)) else {
        return Ok(());
    };
    let is_taken = label.has_duplicate(&list_labels(call, [holder])?, TITLE);
    refuse_if(is_taken, || ErrorResponse::field_error(TITLE, TAKEN_TEXT))
}

/// The label to change or remove. Through a project, a call can also change labels of the project's
/// group. Such a change needs the level reporter in the group.
fn find_changeable_label(call: &CollectionCall<'_>) -> Result<Record> {
    let label = find_by_id_or_title(call, false)?;
    if let (GroupOrProject::Project(_), Some(id)) = (call.scope, label.value(GROUP_ID).as_i64())
        && let Some(group) = Namespace::find_by_id(call.db, id)?
        && call.caller_level_in_group(&group)? < REPORTER
    {
        return Err(ErrorResponse::forbidden());
    }
    Ok(label)
}

/// Makes a project's label a label of its group. Labels with this title in other projects of the
/// group are removed. If the group already has a label with this title, the label of the group is
/// kept.
fn promote_label(call: &Call<'_>) -> Result<Answer> {
    let project = call.require_project(0)?;
    let scope = &GroupOrProject::from(project.clone());
    let call = &CollectionCall { collection: find_built_in(LABELS), scope, call };
    let group = project.namespace.as_ref().clone();
    let project_label =
        find_by_id_or_title(call, false).ok().filter(|label| label.value(GROUP_ID).is_null());
    let project_label = project_label.filter(|_| group.is_group()).or_not_found("Label")?;
    refuse_if(call.caller_level_in_group(&group)? < REPORTER, ErrorResponse::forbidden)?;
    call.check_archive_rule(&project)?;
    let has_same_title = |label: &Record| label.text(TITLE) == project_label.text(TITLE);
    let group_label =
        list_labels(call, [Holder::Group(group.id)])?.into_iter().find(has_same_title);
    for duplicate in list_labels(call, group_projects(call, group.id)?)?
        .iter()
        .filter(|label| has_same_title(label))
    {
        LABELS.remove(call, duplicate)?;
    }
    let mut label = group_label.unwrap_or_else(|| project_label.clone());
    label.set(GROUP_ID, group.id);
    let call = &CollectionCall { scope: &GroupOrProject::from(group), ..*call };
    call.store(&mut label)?;
    Answer::ok(&label_json(call, &label)?)
}
