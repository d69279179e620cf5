//! Integrations of projects and groups, by slug. They are stored and inherited, but never called: no
//! other service is asked. A PUT of a group changes what is below at once; the service has a job for
//! that.

use std::sync::LazyLock;

use http::Method;
use serde::Deserialize;

use super::instance;
use super::names::BLANK;
use super::prelude::*;
use super::rows::Verb;

pub(super) const COLLECTIONS: &[Collection] = &[
    INTEGRATIONS,
    Collection {
        path: "/groups/{id}/integrations",
        since: Some(Release::new(17, 9)),
        ..INTEGRATIONS
    },
];

const INTEGRATIONS: Collection = Collection {
    entry: "slug",
    key: "slug",
    unpaged: true,
    is_put: true,
    only_edited: true,
    scope: |_, call| Scope::kept_by(call, [MAINTAINER, OWNER]),
    // 400 for an unknown one, 404 if it was never set up.
    find: |_, call, scope| {
        let slug = call.segment("slug");
        let is_known = known(call).is_some() || BY_HAND.contains(&slug);
        refuse_if(!is_known, || Failure::no_valid_value("slug"))?;
        find(call, scope.holder(), slug)?.ok_or_else(|| Failure::not_found("Integration"))
    },
    narrow: |_, rows| {
        rows.retain(|row| row.is_set("active"));
        Ok(())
    },
    settle: |_, call, scope, row| set(call, scope, row),
    json: |_, call, _, row| Ok(json(call, row)),
    ..Collection::new("/projects/{id}/integrations")
};

pub(super) const ROUTES: &[Route] = &[
    delete("/projects/{id}/integrations/{slug}", |call| remove(&COLLECTIONS[0], call)),
    delete("/groups/{id}/integrations/{slug}", |call| remove(&COLLECTIONS[1], call)),
    // The old paths, which only projects have.
    row(Method::GET, "/projects/{id}/services", &INTEGRATIONS, Verb::List),
    row(Method::GET, "/projects/{id}/services/{slug}", &INTEGRATIONS, Verb::Show),
    row(Method::PUT, "/projects/{id}/services/{slug}", &INTEGRATIONS, Verb::Update),
    delete("/projects/{id}/services/{slug}", |call| remove(&INTEGRATIONS, call)),
];

/// One of `integrations.jsonc`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Integration {
    slug: String,
    title: String,
    required: Vec<String>,
    text: Vec<String>,
    flag: Vec<String>,
    number: Vec<String>,
    texts: Vec<String>,
    secret: Vec<String>,
    hidden: Vec<String>,
    urls: Vec<String>,
    events: Vec<String>,
    presets: Map<String, Value>,
    blanks: Map<String, Value>,
    /// Whether groups cannot have it.
    of_projects: bool,
    is_issue_tracker: bool,
}

static ALL: LazyLock<Vec<Integration>> = LazyLock::new(|| {
    let text = without_comments(include_str!("../integrations.jsonc"));
    serde_json::from_str(text).expect("each test of integrations reads the table")
});

const STATUS_CHANGES: &str = "notify_only_when_pipeline_status_changes";
const STATUS_CHANGES_SINCE: Release = Release::new(18, 0);

impl Integration {
    /// Its flags. Chats have one more in later releases.
    fn flags(&self, call: &Call<'_>) -> impl Iterator<Item = &str> {
        let is_chat = self.events.iter().any(|event| event == "confidential_note");
        let changes = is_chat && call.release() >= STATUS_CHANGES_SINCE;
        let changes = changes.then_some(STATUS_CHANGES);
        self.flag.iter().map(String::as_str).chain(changes)
    }

    /// The properties that are shown.
    fn shown(&self, call: &Call<'_>) -> impl Iterator<Item = &str> {
        let named = self.text.iter().chain(&self.number).chain(&self.texts);
        named.map(String::as_str).chain(self.flags(call))
    }
}

/// Integrations that only the web interface sets up.
const BY_HAND: [&str; 2] = ["gitlab-slack-application", "jira-cloud-app"];
const COMMENTS: &str = "comment_on_event_enabled";
const BEHAVIOR: &str = "labels_to_be_notified_behavior";

const ROWS: Records = INTEGRATIONS.rows;
/// The first release in which `inherited` is shown, and can be set.
const INHERITS_SINCE: Release = Release::new(17, 3);
const INHERITS: &str = "use_inherited_settings";

fn known(call: &Call<'_>) -> Option<&'static Integration> {
    ALL.iter().find(|of| of.slug == call.segment("slug"))
}

fn find(call: &Call<'_>, of: Holder, slug: &str) -> Result<Option<Record>> {
    Ok(ROWS.with(call, of, "slug", slug)?.pop())
}

/// An integration as the service shows it; lists leave out its properties.
fn json(call: &Call<'_>, row: &Record) -> Value {
    let slug = row.text("slug");
    let of = ALL.iter().find(|of| of.slug == slug);
    let mut body = json!({
        "id": row.id,
        "title": of.map(|of| &of.title),
        "slug": slug,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "active": row.is_set("active"),
        COMMENTS: row.value(COMMENTS),
    });
    for event in &TABLE.integration_events {
        body[event.name] = row.value(event.name);
    }
    set_if(&mut body, call.release() >= INHERITS_SINCE, "inherited", row.is_set("inherited"));
    if !call.segment("slug").is_empty() {
        let value = |of, name: &str| (name.to_owned(), shown_value(of, row, name));
        let shown = of.map(|of| of.shown(call).map(|name| value(of, name)).collect());
        body["properties"] = Value::Object(shown.unwrap_or_default());
    }
    body
}

/// A property as it is shown. A blank confidential channel shows the other one.
fn shown_value(of: &Integration, row: &Record, name: &str) -> Value {
    let open = name.strip_prefix("confidential_").filter(|open| open.ends_with("_channel"));
    let name = open.filter(|_| row.text(&property(name)).is_empty()).unwrap_or(name);
    match row.value(&property(name)) {
        Value::Null => of.blanks.get(name).cloned().unwrap_or_default(),
        value => value,
    }
}

/// The key under which a property is stored, so that it differs from other settings.
fn property(name: &str) -> String {
    format!("properties.{name}")
}

/// Sets an integration up, or changes it.
fn set(call: &Call<'_>, scope: &Scope, row: &mut Record) -> Result<()> {
    let slug = call.segment("slug");
    let unavailable = || Failure::refused("400 Integration not available");
    refuse_if(BY_HAND.contains(&slug), unavailable)?;
    let of = known(call).ok_or_else(Failure::no_route)?;
    refuse_if(of.of_projects && call.is_of_group(), unavailable)?;
    let required: Vec<&str> = of.required.iter().map(String::as_str).collect();
    call.params.require(&required)?;
    if row.id == 0 {
        begin(call, of, row);
    }
    let inherits = match call.release() >= INHERITS_SINCE {
        true => call.params.flag(INHERITS)?,
        false => Some(false),
    };
    if inherits == Some(true) {
        let above = above(call, scope, slug)?;
        let above = above.ok_or_else(|| Failure::refused("Default integration not found."))?;
        take_over(row, &above.1, above.0);
    } else if !row.is_set("inherited") || inherits == Some(false) {
        take(call, scope, of, row)?;
        row.set("inherited", false);
        row.set("active", true);
    }
    match scope {
        Scope::Group(group) => {
            ROWS.save(call, scope.holder(), row)?;
            spread(call, group, row)
        }
        Scope::Project(_) => Ok(()),
    }
}

/// Gives a new row the values of the first PUT.
fn begin(call: &Call<'_>, of: &Integration, row: &mut Record) {
    row.set(COMMENTS, true);
    for event in &TABLE.integration_events {
        row.set(event.name, *event.preset == true && of.slug != "jenkins");
    }
    for (name, preset) in &of.presets {
        row.set(&property(name), preset.clone());
    }
    if of.flags(call).any(|name| name == STATUS_CHANGES) {
        row.set(&property(STATUS_CHANGES), false);
    }
}

/// Stores what the call contains.
fn take(call: &Call<'_>, scope: &Scope, of: &'static Integration, row: &mut Record) -> Result<()> {
    for name in of.events.iter().map(|event| format!("{event}_events")) {
        if call.params.has(&name) {
            row.set(&name, call.params.flag(&name)?);
        }
    }
    if of.slug == "jira" && call.params.has(COMMENTS) {
        row.set(COMMENTS, call.params.flag(COMMENTS)?);
    }
    let address = row.value(&property("jenkins_url"));
    let (texts, flags) = (of.text.iter().chain(&of.secret), of.flags(call));
    let flags = flags.chain(of.hidden.iter().map(String::as_str));
    let properties = (texts.map(|name| (name.as_str(), Form::Text)))
        .chain(flags.map(|name| (name, Form::Flag)))
        .chain(of.number.iter().map(|name| (name.as_str(), Form::Integer)))
        .chain(of.texts.iter().map(|name| (name.as_str(), Form::Texts)));
    for (name, form) in properties.filter(|(name, _)| call.params.has(name)) {
        let value = Field::new(name, form).sent(call, None)?;
        let is_null = call.params.get(name).is_some_and(Value::is_null);
        row.set(&property(name), if is_null { Value::Null } else { value });
    }
    check(call, of, row)?;
    let text = |name: &str| row.text(&property(name)).to_owned();
    let moved = !address.is_null() && address != row.value(&property("jenkins_url"));
    if moved && !text("username").is_empty() && !call.params.has("password") {
        return Err(refused("password", BLANK));
    }
    let others = ROWS.all(call, scope.holder())?;
    let mut others = others.iter().filter(|other| other.id != row.id && other.is_set("active"));
    let is_tracker = |slug: &str| ALL.iter().any(|of| of.is_issue_tracker && of.slug == slug);
    // A group may have several.
    let is_limited = of.is_issue_tracker && matches!(scope, Scope::Project(_));
    let is_second = is_limited && others.any(|other| is_tracker(other.text("slug")));
    refuse_if(is_second, || {
        let words = "Another issue tracker is already in use. Only one issue tracker service can be active at a time";
        refused("base", words)
    })
}

/// Refuses invalid properties.
fn check(call: &Call<'_>, of: &Integration, row: &Record) -> Result<()> {
    let text = |name: &str| row.text(&property(name)).to_owned();
    let blank = of.required.iter().find(|name| text(name).is_empty());
    if let Some(name) = blank {
        return Err(refused(name, BLANK));
    }
    let addresses = of.urls.iter().map(|name| (name.as_str(), text(name)));
    // The service builds the webhook of Matrix from this.
    let matrix = (of.slug == "matrix").then(|| ("webhook", text("hostname")));
    for (name, url) in addresses.chain(matrix).filter(|(_, url)| !url.is_empty()) {
        if let Some(why) = urls::refused(&url, &["http", "https"], instance::reach(call)?) {
            return Err(refused(name, &why));
        }
    }
    let with_token = row.value(&property("jira_auth_type")) == 1;
    // A channel without a server follows the default one.
    let is_channel = |one: &str| {
        !text("default_irc_uri").is_empty()
            || ["irc://", "ircs://"].iter().any(|s| one.starts_with(s))
    };
    // It becomes a masked variable.
    let is_maskable = |c: char| c.is_ascii_alphanumeric() || "_+=/@:.~-".contains(c);
    let (slug, password) = (of.slug.as_str(), text("password"));
    let is_masked = password.len() >= 8 && password.chars().all(is_maskable);
    let behaviors = ["", "match_any", "match_all"];
    let has_channel = text("recipients").split_whitespace().any(is_channel);
    for (wrong, name, words) in [
        (!behaviors.contains(&text(BEHAVIOR).as_str()), BEHAVIOR, "is not included in the list"),
        (!text("thread").chars().all(|c| c.is_ascii_digit()), "thread", "is not a number"),
        (slug == "jira" && !with_token && text("username").is_empty(), "username", BLANK),
        (slug == "irker" && !has_channel, "recipients", "are all invalid"),
        (slug == "harbor" && !is_masked, "password", "is invalid"),
    ] {
        refuse_if(wrong, || refused(name, words))?;
    }
    Ok(())
}

/// The refusal of a model: a Ruby hash in a text.
fn refused(field: &str, words: &str) -> Failure {
    Failure::refused(format!("Failed to update integration. {{:{field}=>[\"{words}\"]}}"))
}

fn remove(of: &Collection, call: &Call<'_>) -> Result<Answer> {
    refuse_if(of.since.is_some_and(|since| call.release() < since), Failure::no_route)?;
    let scope = of.scope(call)?;
    let mut row = of.found(call, &scope)?;
    row.settings.retain(|name, _| !name.starts_with("properties."));
    row.set("active", false);
    ROWS.save(call, scope.holder(), &mut row)?;
    Ok(Answer::no_content())
}

/// The active integration of the closest group above, with the id of the group.
fn above(call: &Call<'_>, scope: &Scope, slug: &str) -> Result<Option<(i64, Record)>> {
    let groups = scope.groups().into_iter().rev();
    let groups = groups.filter(|id| scope.project_id().is_some() || *id != scope.id());
    for group in groups {
        let row = find(call, Holder::Group(group), slug)?;
        if let Some(row) = row.filter(|row| row.is_set("active")) {
            return Ok(Some((group, row)));
        }
    }
    Ok(None)
}

/// Makes `row` an inherited copy of the one of `group`.
fn take_over(row: &mut Record, above: &Record, group: i64) {
    row.settings = above.settings.clone();
    row.set("inherited", true);
    row.set("from", group);
}

/// Copies the integration of a group to everything below that has none of its own, or inherits it
/// from here or from further above.
fn spread(call: &Call<'_>, group: &Namespace, own: &Record) -> Result<()> {
    let all = group.subtree(call.db)?;
    let projects: Vec<i64> = call.many(
        "SELECT id FROM projects WHERE namespace_id IN (SELECT value FROM json_each(?1))",
        [json!(all).to_string()],
    )?;
    let groups = all.into_iter().filter(|id| *id != group.id).map(Holder::Group);
    let above: Vec<i64> = ids(&group.traversal).collect();
    for of in groups.chain(projects.into_iter().map(Holder::Project)) {
        let found = find(call, of, own.text("slug"))?;
        let is_from =
            |row: &Record| row.value("from").as_i64().is_some_and(|id| above.contains(&id));
        if found.as_ref().is_none_or(|row| row.is_set("inherited") && is_from(row)) {
            let mut row = found.unwrap_or_else(|| Record::new(call.now()));
            take_over(&mut row, own, group.id);
            ROWS.save(call, of, &mut row)?;
        }
    }
    Ok(())
}

/// Gives a new project the active integrations of the groups above.
pub(super) fn inherit(call: &Call<'_>, project: i64, namespace: &Namespace) -> Result<()> {
    for group in ids(&namespace.traversal).rev() {
        for row in ROWS.all(call, Holder::Group(group))? {
            let is_new = find(call, Holder::Project(project), row.text("slug"))?.is_none();
            if row.is_set("active") && is_new {
                let from = row.value("from").as_i64().filter(|_| row.is_set("inherited"));
                let mut copy = Record::new(call.now());
                take_over(&mut copy, &row, from.unwrap_or(group));
                ROWS.save(call, Holder::Project(project), &mut copy)?;
            }
        }
    }
    Ok(())
}
