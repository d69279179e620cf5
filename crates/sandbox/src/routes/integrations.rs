//! Integrations of projects and groups, by slug. The sandbox stores integrations and lets groups
//! and projects inherit them, but never calls another service. A PUT in a group changes the groups
//! and projects below immediately. The real service changes them in a background job.

use super::fields::{FieldType, RowField};
use super::prelude::*;

const INTEGRATIONS: RecordTable = RecordTable("integrations");

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: INTEGRATIONS,
    find_scope: |_, call| {
        let is_early = call.is_group_operation() && !call.is_at_least(17, 9);
        refuse_if(is_early, ErrorResponse::route_not_found)?;
        GroupOrProject::from_call_read_archived(call, [MAINTAINER, OWNER])
    },
    // An unknown slug gets 400. An integration that was never set up gets 404.
    find: |call| {
        let slug = call.segment("slug");
        let exists = requested_kind(call).is_some() || WEB_ONLY_SLUGS.contains(&slug);
        refuse_if(!exists, || ErrorResponse::unlisted_parameter_value("slug"))?;
        find_integration(call, call.scope.holder(), slug)?.or_not_found("Integration")
    },
    filter: |_, rows| {
        rows.retain(|row| row.is_true("active"));
        Ok(())
    },
    complete: complete_integration,
    check_removal: |_, _| Ok(()),
    // A DELETE only deactivates the integration and removes its properties. The row stays.
    remove: |call, row| {
        row.settings.retain(|name, _| !name.starts_with("properties."));
        row.set("active", false);
        call.store(row)
    },
    to_json: |call, row| Ok(integration_json(call, row)),
    ..Callbacks::DEFAULT
}];

/// An integration in the table `integrations.jsonc`.
///
/// `required` has the names of the required properties. `text`, `flag`, `number` and `texts` have
/// the names of the properties of each type. Responses show neither `secret` properties, which are
/// texts, nor `hidden` properties, which are flags. `urls` has the names of the properties that are
/// URLs. `events` has the events that the integration reacts to, and `presets` the initial values.
/// `blanks` has the values that responses show instead of null.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IntegrationKind {
    slug: &'static str,
    title: &'static str,
    required: Vec<&'static str>,
    text: Vec<&'static str>,
    flag: Vec<&'static str>,
    number: Vec<&'static str>,
    texts: Vec<&'static str>,
    secret: Vec<&'static str>,
    hidden: Vec<&'static str>,
    urls: Vec<&'static str>,
    events: Vec<&'static str>,
    presets: Object,
    blanks: Object,
    /// True if only projects can have this integration.
    of_projects: bool,
    is_issue_tracker: bool,
}

static INTEGRATION_KINDS: LazyLock<Vec<IntegrationKind>> =
    LazyLock::new(|| read_table(include_str!("../integrations.jsonc")));

const STATUS_CHANGES_ONLY: &str = "notify_only_when_pipeline_status_changes";
const STATUS_CHANGES_SINCE: Release = Release::new(18, 0);

impl IntegrationKind {
    /// The names of the integration's flags. From 18.0 on, chat integrations have one more flag.
    fn flags(&self, call: &Call<'_>) -> impl Iterator<Item = &'static str> {
        let is_chat = self.events.contains(&"confidential_note");
        let has_status_changes = is_chat && call.release() >= STATUS_CHANGES_SINCE;
        let status_flag = has_status_changes.then_some(STATUS_CHANGES_ONLY);
        self.flag.iter().copied().chain(status_flag)
    }

    /// The names of the properties that responses show.
    fn shown_properties(&self, call: &Call<'_>) -> impl Iterator<Item = &'static str> {
        let field_names = self.text.iter().chain(&self.number).chain(&self.texts);
        field_names.copied().chain(self.flags(call))
    }
}

/// Integrations that only the web interface sets up.
const WEB_ONLY_SLUGS: [&str; 2] = ["gitlab-slack-application", "jira-cloud-app"];
const COMMENTS_ENABLED: &str = "comment_on_event_enabled";
const LABEL_BEHAVIOR: &str = "labels_to_be_notified_behavior";

/// The first release that shows `inherited` and accepts it in requests.
const INHERITED_SINCE: Release = Release::new(17, 3);
const USE_INHERITED: &str = "use_inherited_settings";

fn requested_kind(call: &Call<'_>) -> Option<&'static IntegrationKind> {
    INTEGRATION_KINDS.iter().find(|kind| kind.slug == call.segment("slug"))
}

fn find_integration(call: &Call<'_>, holder: Holder, slug: &str) -> Result<Option<Record>> {
    Ok(INTEGRATIONS.list_with_text(call, holder, "slug", slug)?.pop())
}

/// An integration as in a response; lists do not contain the properties.
fn integration_json(call: &Call<'_>, row: &Record) -> Value {
    let slug = row.text("slug");
    let kind = INTEGRATION_KINDS.iter().find(|kind| kind.slug == slug);
    let names = "id title slug created_at updated_at active comment_on_event_enabled";
    let mut body = row.json_fields(names);
    body["title"] = json!(kind.map(|kind| kind.title));
    body["active"] = row.is_true("active").into();
    for event in &ATTRIBUTE_TABLE.integration_events {
        body[event.name] = row.value(event.name);
    }
    set_field_if(
        &mut body,
        call.release() >= INHERITED_SINCE,
        "inherited",
        row.is_true("inherited"),
    );
    if !call.segment("slug").is_empty() {
        let properties = kind.map(|kind| {
            let property_names = kind.shown_properties(call);
            property_names.map(|name| (name.to_owned(), shown_value(kind, row, name))).collect()
        });
        body["properties"] = Value::Object(properties.unwrap_or_default());
    }
    body
}

/// The value of a property in a response. If a confidential channel is empty, the response contains the
/// ordinary channel.
fn shown_value(kind: &IntegrationKind, row: &Record, name: &str) -> Value {
    let ordinary_channel =
        name.strip_prefix("confidential_").filter(|suffix| suffix.ends_with("_channel"));
    let name =
        ordinary_channel.filter(|_| row.text(&property_key(name)).is_empty()).unwrap_or(name);
    match row.value(&property_key(name)) {
        Value::Null => kind.blanks.get(name).cloned().unwrap_or_default(),
        value => value,
    }
}

/// The key of a stored property. Its prefix separates properties from other settings.
fn property_key(name: &str) -> String {
    format!("properties.{name}")
}

/// Sets an integration up, or changes it.
fn complete_integration(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let slug = call.segment("slug");
    let unavailable_message = "400 Integration not available";
    refuse_if(WEB_ONLY_SLUGS.contains(&slug), || unavailable_message.into())?;
    let kind = requested_kind(call).ok_or_else(ErrorResponse::route_not_found)?;
    refuse_if(kind.of_projects && call.is_group_operation(), || unavailable_message.into())?;
    call.require(&kind.required)?;
    if row.id == 0 {
        set_defaults(call, kind, row);
    }
    let is_inherited =
        if call.release() >= INHERITED_SINCE { call.flag(USE_INHERITED)? } else { Some(false) };
    if is_inherited == Some(true) {
        let inherited_row = find_inherited(call, slug)?;
        let (group_id, inherited_row) = inherited_row.ok_or("Default integration not found.")?;
        make_inherited(row, &inherited_row, group_id);
    } else if !row.is_true("inherited") || is_inherited == Some(false) {
        store_properties(call, kind, row)?;
        row.set("inherited", false);
        row.set("active", true);
    }
    match call.scope {
        GroupOrProject::Group(group) => {
            call.store(row)?;
            copy_to_subtree(call, group, row)
        }
        GroupOrProject::Project(_) => Ok(()),
    }
}

/// Gives a new row the default values.
fn set_defaults(call: &Call<'_>, kind: &IntegrationKind, row: &mut Record) {
    row.set(COMMENTS_ENABLED, true);
    for event in &ATTRIBUTE_TABLE.integration_events {
        row.set(event.name, *event.preset == true && kind.slug != "jenkins");
    }
    for (name, preset) in &kind.presets {
        row.set(&property_key(name), preset.clone());
    }
    if kind.flags(call).any(|name| name == STATUS_CHANGES_ONLY) {
        row.set(&property_key(STATUS_CHANGES_ONLY), false);
    }
}

/// Stores the events and properties in the call.
fn store_properties(
    call: &CollectionCall<'_>,
    kind: &'static IntegrationKind,
    row: &mut Record,
) -> Result<()> {
    for name in kind.events.iter().map(|event| format!("{event}_events")) {
        if call.has(&name) {
            row.set(&name, call.flag(&name)?);
        }
    }
    if kind.slug == "jira" && call.has(COMMENTS_ENABLED) {
        row.set(COMMENTS_ENABLED, call.flag(COMMENTS_ENABLED)?);
    }
    let former_url = row.value(&property_key("jenkins_url"));
    let texts = kind.text.iter().chain(&kind.secret).copied();
    let flags = kind.flags(call).chain(kind.hidden.iter().copied());
    let properties = (texts.map(|name| (name, FieldType::Text)))
        .chain(flags.map(|name| (name, FieldType::Flag)))
        .chain(kind.number.iter().map(|name| (*name, FieldType::Integer)))
        .chain(kind.texts.iter().map(|name| (*name, FieldType::Texts)));
    for (name, field_type) in properties.filter(|(name, _)| call.has(name)) {
        let value = RowField::new(name, field_type).read_value(call, None)?;
        let is_null = call.get(name).is_some_and(Value::is_null);
        row.set(&property_key(name), if is_null { Value::Null } else { value });
    }
    check_properties(call, kind, row)?;
    let is_url_changed =
        !former_url.is_null() && former_url != row.value(&property_key("jenkins_url"));
    if is_url_changed && !property_text(row, "username").is_empty() && !call.has("password") {
        return Err(update_error("password", BLANK_TEXT));
    }
    let stored_rows = INTEGRATIONS.list(call, call.scope.holder())?;
    let mut active_rows =
        stored_rows.iter().filter(|other| other.id != row.id && other.is_true("active"));
    // Only a project is limited to one issue tracker.
    let is_limited = kind.is_issue_tracker && matches!(call.scope, GroupOrProject::Project(_));
    let is_second_tracker = is_limited
        && active_rows.any(|other| {
            INTEGRATION_KINDS
                .iter()
                .any(|kind| kind.is_issue_tracker && kind.slug == other.text("slug"))
        });
    let message = "Another issue tracker is already in use. Only one issue tracker service can be active at a time";
    refuse_if(is_second_tracker, || update_error("base", message))
}

fn property_text<'a>(row: &'a Record, name: &str) -> &'a str {
    row.text(&property_key(name))
}

/// Refuses invalid properties.
fn check_properties(call: &Call<'_>, kind: &IntegrationKind, row: &Record) -> Result<()> {
    let missing_name = kind.required.iter().find(|name| property_text(row, name).is_empty());
    if let Some(name) = missing_name {
        return Err(update_error(name, BLANK_TEXT));
    }
    let url_properties = kind.urls.iter().map(|name| (*name, property_text(row, name)));
    // The service builds the URL of the Matrix webhook from the host name.
    let matrix_webhook =
        (kind.slug == "matrix").then(|| ("webhook", property_text(row, "hostname")));
    for (name, url) in url_properties.chain(matrix_webhook).filter(|(_, url)| !url.is_empty()) {
        if let Some(error) =
            urls::url_error(url, &["http", "https"], instance::own_url_if_local_blocked(call)?)
        {
            return Err(update_error(name, &error));
        }
    }
    let uses_token = row.value(&property_key("jira_auth_type")) == 1;
    let (slug, password) = (kind.slug, property_text(row, "password"));
    // The service stores the Harbor password as a masked variable.
    let can_be_masked = password.len() >= 8 && password.chars().all(is_maskable_char);
    let behaviors = ["", "match_any", "match_all"];
    // A recipient must be an IRC URL, unless there is a default server.
    let has_channel = property_text(row, "recipients").split_whitespace().any(|recipient: &str| {
        !property_text(row, "default_irc_uri").is_empty()
            || ["irc://", "ircs://"].iter().any(|scheme| recipient.starts_with(scheme))
    });
    let is_behavior = behaviors.contains(&property_text(row, LABEL_BEHAVIOR));
    let is_number = property_text(row, "thread").chars().all(|c| c.is_ascii_digit());
    let has_no_user = !uses_token && property_text(row, "username").is_empty();
    for (is_wrong, name, problem) in [
        (!is_behavior, LABEL_BEHAVIOR, "is not included in the list"),
        (!is_number, "thread", "is not a number"),
        (slug == "jira" && has_no_user, "username", BLANK_TEXT),
        (slug == "irker" && !has_channel, "recipients", "are all invalid"),
        (slug == "harbor" && !can_be_masked, "password", "is invalid"),
    ] {
        refuse_if(is_wrong, || update_error(name, problem))?;
    }
    Ok(())
}

/// The error of a failed validation. The real service writes it as a Ruby hash.
fn update_error(field: &str, problem: &str) -> ErrorResponse {
    format!("Failed to update integration. {{:{field}=>[\"{problem}\"]}}").into()
}

/// The active integration of the closest group above, with the id of the group.
fn find_inherited(call: &CollectionCall<'_>, slug: &str) -> Result<Option<(i64, Record)>> {
    for group_id in call.scope.parent_group_ids().into_iter().rev() {
        let row = find_integration(call, Holder::Group(group_id), slug)?;
        if let Some(row) = row.filter(|row| row.is_true("active")) {
            return Ok(Some((group_id, row)));
        }
    }
    Ok(None)
}

/// Makes `row` an inherited copy of `group_row`, the integration of a group.
fn make_inherited(row: &mut Record, group_row: &Record, group_id: i64) {
    row.settings = group_row.settings.clone();
    row.set("inherited", true);
    row.set("from", group_id);
}

/// Copies the integration of a group to groups and projects below. A group or project gets the copy
/// if it lacks the integration, or inherits it from this group or a group above.
fn copy_to_subtree(call: &Call<'_>, group: &Namespace, integration: &Record) -> Result<()> {
    let subtree_ids = group.subtree_ids(call.db)?;
    let project_ids: Vec<i64> = call.query_column(
        "SELECT id FROM projects WHERE namespace_id IN (SELECT value FROM json_each(?1))",
        [json!(subtree_ids).to_string()],
    )?;
    let groups = subtree_ids.into_iter().filter(|id| *id != group.id).map(Holder::Group);
    let group_ids: Vec<i64> = traversal_ids(&group.traversal).collect();
    for holder in groups.chain(project_ids.into_iter().map(Holder::Project)) {
        let stored_row = find_integration(call, holder, integration.text("slug"))?;
        if stored_row.as_ref().is_none_or(|row| {
            row.is_true("inherited")
                && row.value("from").as_i64().is_some_and(|id| group_ids.contains(&id))
        }) {
            let mut row = stored_row.unwrap_or_else(|| Record::new(call.time_text()));
            make_inherited(&mut row, integration, group.id);
            INTEGRATIONS.save(call, holder, &mut row)?;
        }
    }
    Ok(())
}

/// Gives a new project the active integrations of the groups above.
pub(super) fn inherit_integrations(
    call: &Call<'_>,
    project_id: i64,
    namespace: &Namespace,
) -> Result<()> {
    for group_id in traversal_ids(&namespace.traversal).rev() {
        for row in INTEGRATIONS.list(call, Holder::Group(group_id))? {
            let is_new =
                find_integration(call, Holder::Project(project_id), row.text("slug"))?.is_none();
            if row.is_true("active") && is_new {
                let source_id = row.value("from").as_i64().filter(|_| row.is_true("inherited"));
                let mut new_row = Record::new(call.time_text());
                make_inherited(&mut new_row, &row, source_id.unwrap_or(group_id));
                INTEGRATIONS.save(call, Holder::Project(project_id), &mut new_row)?;
            }
        }
    }
    Ok(())
}
