//! Plain collections of projects and groups, which the reference leaves out: milestones,
//! environments, their protection, deploy tokens, external status checks, rules that protect packages and
//! container repositories, agents of clusters, and whose jobs reach a project.

use sha2::{Digest, Sha256};

use super::super::access::Memberships;
use super::super::params::{NONE_SENT, flag, integer, number_of};
use super::super::store::protection::Protection;
use super::super::store::record::Records;
use super::super::urls::{self, Reach};
use super::super::view::{self, Extras};
use super::names::in_sentences;
use super::prelude::*;
use super::rows::{Collection, Field, Form, Named, is_taken};
use super::{grants, instance};

pub(super) const COLLECTIONS: &[Collection] = &[
    MILESTONES,
    Collection { path: "/groups/{id}/milestones", ..MILESTONES },
    ENVIRONMENTS,
    PROTECTED,
    PROTECTED_TIERS,
    TOKENS,
    GROUP_TOKENS,
    CHECKS,
    PACKAGE_RULES,
    REPOSITORY_RULES,
    AGENTS,
    RESOURCE_GROUPS,
    JOB_TOKENS,
    ALLOWED,
    ALLOWED_GROUPS,
];

pub(super) const ROUTES: &[Route] =
    &[post("/projects/{id}/environments/{entry}/stop", stop), get("/deploy_tokens", every_token)];

/// The project, for its maintainers; all others get 403.
fn maintained(call: &Call<'_>) -> Result<Scope> {
    Ok(Scope::Project(Box::new(call.project_with(MAINTAINER)?)))
}

/// The group, likewise, for callers with a level in it.
fn led(call: &Call<'_>, level: i64) -> Result<Scope> {
    let group = call.group()?;
    refuse_if(call.level_in_group(&group)? < level, Failure::forbidden)?;
    Ok(Scope::Group(Box::new(group)))
}

const MILESTONES: Collection = Collection {
    reads: 0,
    writes: REPORTER,
    required: &["title"],
    fields: &[
        Field::new("title", Form::Text),
        Field::new("description", Form::Text),
        Field::new("due_date", Form::LooseDay),
        Field::new("start_date", Form::LooseDay),
        Field { shown: "", ..Field::new("state_event", Form::Word(&["close", "activate"])) },
    ],
    filters: &["state", "title"],
    order: &["due_date", "title"],
    narrow: |call, rows| {
        let found = call.params.text("search")?.unwrap_or_default().to_lowercase();
        rows.retain(|row| {
            ["title", "description"]
                .iter()
                .any(|name| row.text(name).to_lowercase().contains(&found))
        });
        if let Some(iids) = call.params.integers("iids")? {
            rows.retain(|row| row.value("iid").as_i64().is_some_and(|iid| iids.contains(&iid)));
        }
        Ok(())
    },
    settle: settle_milestone,
    json: |of, call, scope, row| {
        let address = match scope {
            Scope::Group(group) => format!("groups/{}", group.full_path),
            Scope::Project(project) => project.full_path.clone(),
        };
        let (due, iid) = (row.text("due_date"), row.value("iid"));
        let mut body = of.plain(call, row);
        body[scope.column()] = scope.id().into();
        body["state"] = row.value("state");
        body["expired"] = (!due.is_empty() && due < call.today()).into();
        body["web_url"] = format!("{}/{address}/-/milestones/{iid}", call.base).into();
        body["iid"] = iid;
        Ok(body)
    },
    ..Collection::new("/projects/{id}/milestones")
};

fn settle_milestone(
    of: &Collection,
    call: &Call<'_>,
    row: &mut Record,
    stored: &[Record],
) -> Result<()> {
    if row.id != 0 {
        call.params.require_any(&[
            "title",
            "description",
            "due_date",
            "start_date",
            "state_event",
        ])?;
    }
    let (start, due) = (row.text("start_date"), row.text("due_date"));
    let fault = if row.text("title").is_empty() {
        Some(("title", "can't be blank"))
    } else if is_taken(stored, row, "title") || is_taken_nearby(of, call, row)? {
        Some(("title", "already being used for another group or project milestone."))
    } else if !start.is_empty() && !due.is_empty() && due < start {
        Some(("due_date", "must be greater than start date"))
    } else {
        None
    };
    if let Some((field, words)) = fault {
        let text = format!("Failed to create milestone {{:{field}=>[\"{words}\"]}}");
        return Err(Failure::refused(text));
    }
    let closes = row.settings.remove("state_event").map(|event| event == "close");
    if row.id == 0 {
        let last = stored.iter().filter_map(|other| other.settings.get("iid")?.as_i64()).max();
        row.set("iid", last.unwrap_or(0) + 1);
    }
    if let Some(closed) = closes.or((row.id == 0).then_some(false)) {
        row.set("state", if closed { "closed" } else { "active" });
    }
    Ok(())
}

/// Whether the group of the project, or a project of the group, has a milestone with the same title.
fn is_taken_nearby(of: &Collection, call: &Call<'_>, row: &Record) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM milestones WHERE settings ->> 'title' = ?1
                   AND (group_id = ?2 OR project_id IN (SELECT id FROM projects WHERE namespace_id = ?3)))";
    let (group, projects) = match of.path.starts_with("/groups/") {
        true => (None, Some(call.group()?.id)),
        false => (Some(call.project()?.namespace.id), None),
    };
    call.one(sql, params![row.text("title"), group, projects])
}

const TIERS: &[&str] = &["production", "staging", "testing", "development", "other"];

/// Words in a name that show the tier of an environment.
const TIER_WORDS: [(&str, &[&str]); 4] = [
    ("development", &["dev", "review", "trunk"]),
    ("testing", &["test", "tst", "int", "acpt", "acept", "qa", "qc", "control", "quality"]),
    ("staging", &["stg", "stag", "modl", "model", "pre", "demo", "non"]),
    ("production", &["prd", "prod", "live"]),
];

const ENVIRONMENTS: Collection = Collection {
    reads: 0,
    writes: DEVELOPER,
    required: &["name"],
    fields: &[
        Field::new("name", Form::Text),
        Field::new("external_url", Form::Text),
        Field::new("tier", Form::Word(TIERS)),
        Field { since: Some(Release::new(17, 8)), ..Field::new("description", Form::Text) },
        Field {
            since: Some(Release::new(17, 8)),
            preset: r#""always""#,
            ..Field::new(AUTO_STOP, Form::Word(&["always", "with_action"]))
        },
        Field { shown: "", since: AGENTS_SINCE, ..Field::new(AGENT, Form::Integer) },
        Field { shown: "", since: AGENTS_SINCE, ..Field::new(NAMESPACE, Form::Text) },
        Field { shown: "", since: AGENTS_SINCE, ..Field::new(FLUX, Form::Text) },
    ],
    shows: &[("auto_stop_at", "null")],
    filters: &["name"],
    narrow: narrow_environments,
    settle: |_, call, row, stored| settle_environment(call, row, stored),
    kept: |call, scope, row| {
        let may_go = row.text("state") == "stopped" && may_deploy(call, scope, row)?;
        refuse_if(!may_go, Failure::forbidden)
    },
    json: |_, call, scope, row| environment(call, scope, row),
    ..Collection::new("/projects/{id}/environments")
};

const AUTO_STOP: &str = "auto_stop_setting";
const AGENT: &str = "cluster_agent_id";
const NAMESPACE: &str = "kubernetes_namespace";
const FLUX: &str = "flux_resource_path";
/// The first release with the fields of the agent.
const AGENTS_SINCE: Option<Release> = Some(Release::new(17, 5));

/// The states of an environment.
const STATES: &[&str] = &["available", "stopping", "stopped"];

fn narrow_environments(call: &Call<'_>, rows: &mut Vec<Record>) -> Result<()> {
    let params = &call.params;
    if params.has("name") && params.has("search") {
        return Err(Failure::parameter("name, search", "are mutually exclusive"));
    }
    if let Some(state) = params.one_of("states", STATES)? {
        rows.retain(|row| row.text("state") == state);
    }
    if let Some(text) = params.text("search")?.filter(|text| !text.is_empty()) {
        let is_short = text.chars().count() < 3;
        refuse_if(is_short, || Failure::bad_request("Search query is less than 3 characters"))?;
        let text = text.to_lowercase();
        rows.retain(|row| row.text("name").to_lowercase().contains(&text));
    }
    Ok(())
}

/// Whether the caller has a level that a protected environment asks for, by its name or by its tier.
fn may_deploy(call: &Call<'_>, scope: &Scope, row: &Record) -> Result<bool> {
    let Scope::Project(project) = scope else { return Ok(true) };
    if call.is_administrator() || call.tier() < PROTECTED.tier {
        return Ok(true);
    }
    let mut protections = PROTECTED.rows.all(call.db, scope.holder())?;
    protections.retain(|one| one.text("name") == row.text("name"));
    for group in ids(&project.namespace.traversal).filter(|_| project.namespace.is_group()) {
        let of_group = PROTECTED_TIERS.rows.all(call.db, Holder::Group(group))?;
        protections.extend(of_group.into_iter().filter(|one| one.text("name") == row.text("tier")));
    }
    let (user, level) = (call.user()?.id, call.level_in(project)?);
    let admits = |grant: &Value| -> Result<bool> {
        let group = Namespace::by_any(call.db, grant["group_id"].as_i64())?;
        let of_group = group.map(|group| call.level_in_group(&group)).transpose()?.unwrap_or(0);
        Ok(grant["user_id"] == user
            || grant["access_level"].as_i64().is_some_and(|least| level >= least)
            || of_group > 0)
    };
    for protection in protections {
        let grants = protection.value(LEVELS);
        let mut admitted = false;
        for grant in grants.as_array().into_iter().flatten() {
            admitted |= admits(grant)?;
        }
        if !admitted {
            return Ok(false);
        }
    }
    Ok(true)
}

fn settle_environment(call: &Call<'_>, row: &mut Record, stored: &[Record]) -> Result<()> {
    if call.params.has("slug") {
        return Err(Failure::parameter("slug", "is automatically generated and cannot be changed"));
    }
    // From 16.0 on a name cannot be changed.
    let before = stored.iter().find(|other| other.id == row.id);
    if let Some(before) = before.filter(|_| call.is_from(16, 0)) {
        row.set("name", before.text("name"));
    }
    let agent = agent(call, Holder::Project(call.project()?.id), row)?;
    let is_named = call.params.has(AGENT) && !row.value(AGENT).is_null();
    refuse_if(is_named && agent.is_none(), || {
        let text = "cluster agent doesn't exist or cannot be associated with this environment";
        Failure::bad_request(text)
    })?;
    let mut wrong = Complaints::default();
    let name = row.text("name").to_owned();
    wrong.add_if(name.is_empty(), "name", "can't be blank");
    wrong.add_if(is_taken(stored, row, "name"), "name", "has already been taken");
    let slug = slug(&name);
    let same_slug = stored.iter().any(|other| row.id == 0 && other.text("slug") == slug);
    wrong.add_if(same_slug, "slug", "has already been taken");
    let url = row.text("external_url");
    // A text without a scheme is not checked.
    if url.contains(':')
        && let Some(why) = urls::refused(url, &["http", "https"], Reach::Anywhere)
    {
        wrong.add("external_url", why);
    }
    if url.is_empty() {
        row.settings.remove("external_url");
    }
    // What an edit leaves as it is is not checked again.
    let is_changed =
        |name: &str| before.map_or(Value::Null, |before| before.value(name)) != row.value(name);
    for (name, other, is_missing, words) in [
        (NAMESPACE, AGENT, agent.is_none(), "cannot be set without a cluster agent"),
        (
            FLUX,
            NAMESPACE,
            row.text(NAMESPACE).is_empty(),
            "cannot be set without a kubernetes namespace",
        ),
    ] {
        let is_set = !row.text(name).is_empty() && (is_changed(name) || is_changed(other));
        wrong.add_if(is_set && is_missing, name, words);
    }
    wrong.settle().map_err(|failure| if row.id == 0 { in_sentences(failure) } else { failure })?;
    if row.text(AUTO_STOP).is_empty() {
        row.settings.remove(AUTO_STOP);
    }
    let lower = name.to_lowercase();
    if row.id == 0 {
        row.set("state", "available");
        row.set("slug", slug);
    }
    if row.text("tier").is_empty() {
        let known = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let tier =
            TIER_WORDS.iter().find(|(_, words)| known(words)).map_or("other", |(tier, _)| tier);
        row.set("tier", tier);
    }
    Ok(())
}

/// A name in the form for URLs: short, plain, and with a mark if it was changed.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mut slug: String = name.chars().map(plain).collect();
    if !slug.starts_with(|c: char| c.is_ascii_lowercase()) {
        slug.insert_str(0, "env-");
    }
    if slug == name && slug.len() <= 24 && !slug.ends_with('-') {
        return slug;
    }
    slug.truncate(17);
    let mark = format!("{:x}", Sha256::digest(name.as_bytes()));
    format!("{}-{}", slug.trim_end_matches('-'), &mark[..6])
}

fn environment(call: &Call<'_>, scope: &Scope, row: &Record) -> Result<Value> {
    let Scope::Project(project) = scope else { return Err(Failure::no_record()) };
    let wanted = Extras::of(call)?;
    let project = view::value(|text| view::simple(call, project, wanted, text))?;
    let mut body = ENVIRONMENTS.plain(call, row);
    body["slug"] = row.value("slug");
    body["project"] = project;
    body["state"] = row.value("state");
    if let Some(agent) = agent(call, scope.holder(), row)?
        && scope.level(call)? >= AGENTS.reads
    {
        body["cluster_agent"] = (AGENTS.json)(&AGENTS, call, scope, &agent)?;
        body[NAMESPACE] = row.value(NAMESPACE);
        body[FLUX] = row.value(FLUX);
    }
    Ok(body)
}

/// The agent of an environment, if the project still has it.
fn agent(call: &Call<'_>, of: Holder, row: &Record) -> Result<Option<Record>> {
    let id = row.value(AGENT).as_i64();
    Ok(id.map_or(Ok(None), |id| AGENTS.rows.find(call.db, of, id))?)
}

/// No jobs run here, so it stops at once.
fn stop(call: &Call<'_>) -> Result<Answer> {
    let scope = ENVIRONMENTS.scope(call)?;
    let mut row = ENVIRONMENTS.find(call, &scope)?;
    refuse_if(!may_deploy(call, &scope, &row)?, Failure::forbidden)?;
    row.set("state", "stopped");
    ENVIRONMENTS.rows.save(call.db, scope.holder(), &mut row, call.now())?;
    Answer::ok(&environment(call, &scope, &row)?)
}

const PROTECTED: Collection = Collection {
    key: "name",
    tier: Tier::Premium,
    required: &["name", LEVELS],
    fields: &[Field::new("name", Form::Text)],
    scope: |_, call| maintained(call),
    order: &["name"],
    settle: settle_protected,
    json: |_, _, _, row| {
        let shown = |name: &str| (name.to_owned(), row.value(name));
        Ok(["name", LEVELS, COUNT, RULES].into_iter().map(shown).collect())
    },
    ..Collection::new("/projects/{id}/protected_environments")
};

/// Groups protect the environments of a tier.
const PROTECTED_TIERS: Collection = Collection {
    path: "/groups/{id}/protected_environments",
    scope: |_, call| led(call, OWNER),
    ..PROTECTED
};

const LEVELS: &str = "deploy_access_levels";
const RULES: &str = "approval_rules";
const COUNT: &str = "required_approval_count";

fn settle_protected(
    of: &Collection,
    call: &Call<'_>,
    row: &mut Record,
    stored: &[Record],
) -> Result<()> {
    let group = (of.path == PROTECTED_TIERS.path).then(|| call.group()).transpose()?;
    let count = call.params.integer(COUNT)?;
    if count.is_some_and(|count| count > 0) && call.release() >= OBSERVED {
        return Err(Failure::invalid_record(
            "Parameter 'required_approval_count' is deprecated and shouldn't be used. See https://gitlab.com/groups/gitlab-org/-/epics/9662",
        ));
    }
    if row.id != 0 {
        // The path contains the name; it cannot be changed.
        row.set("name", call.segment("entry"));
    } else if is_taken(stored, row, "name") {
        let name = row.text("name");
        return Err(Failure::conflict(&match group.is_none() && call.release() >= OBSERVED {
            true => format!("Environment '{name}' is already protected"),
            false => format!("Protected environment '{name}' already exists"),
        }));
    } else if group.is_some() && !TIERS.contains(&row.text("name")) {
        let tiers = TIERS.join(", ");
        let words = format!("Name must be one of environment tiers: {tiers}");
        return Err(Failure::invalid_record(vec![words]));
    }
    let before = row.settings.get(COUNT).and_then(Value::as_i64);
    row.set(COUNT, count.or(before).unwrap_or(0));
    for list in [LEVELS, RULES] {
        let row_of = |id, sent: &Value| grant(call, group.as_ref(), list, id, sent);
        let changed = changed(call, list, row.value(list), row_of)?;
        refuse_if(list == LEVELS && changed.is_empty(), || {
            Failure::invalid_record("Deploy access levels is too short (minimum is 1 character)")
        })?;
        row.set(list, changed);
    }
    Ok(())
}

/// A list of rows after the changes of a call: an element without `id` adds a row, one with `id`
/// changes that row, and one with `_destroy` removes it. `row` makes a row from an id (0 for a new
/// one) and the element, or `None` to leave it out.
pub(super) fn changed(
    call: &Call<'_>,
    list: &str,
    stored: Value,
    row: impl Fn(i64, &Value) -> Result<Option<Value>>,
) -> Result<Vec<Value>> {
    let mut all = stored.as_array().cloned().unwrap_or_default();
    let Some(changes) = call.params.array(list)? else { return Ok(all) };
    refuse_if(!changes.iter().all(Value::is_object), || Failure::invalid(list))?;
    for change in changes {
        if let Some(id) = integer(&format!("{list}[id]"), &change["id"])? {
            let at = all.iter().position(|one| one["id"] == id).ok_or_else(Failure::no_record)?;
            match flag("_destroy", &change["_destroy"])? == Some(true) {
                // Rules of approval must name themselves again.
                true if list == RULES => {
                    named_once(list, change)?;
                    all.remove(at);
                }
                true => drop(all.remove(at)),
                false => {
                    let row = row(id, change)?.unwrap_or_default();
                    let is_other = |name: &str| row[name].is_null() != all[at][name].is_null();
                    let is_of_environments = [LEVELS, RULES].contains(&list);
                    refuse_if(is_of_environments && WHO.into_iter().any(is_other), || {
                        invalid_row(list, EXACTLY_ONE)
                    })?;
                    all[at] = row;
                }
            }
        } else {
            all.extend(row(0, change)?);
        }
    }
    Ok(all)
}

/// What a row names.
const WHO: [&str; 3] = ["access_level", "user_id", "group_id"];

const EXACTLY_ONE: &str = "Exactly one of access_level, group_id, user_id must be present";

/// Refuses an element that does not name exactly one thing.
fn named_once(list: &str, sent: &Value) -> Result<()> {
    match WHO.iter().filter(|name| !sent[**name].is_null()).count() {
        1 => Ok(()),
        0 if list == RULES => {
            let names = WHO.map(|name| format!("{list}[{name}]"));
            Err(Failure::parameter(&names.join(", "), NONE_SENT))
        }
        _ => Err(invalid_row(list, EXACTLY_ONE)),
    }
}

fn invalid_row(list: &str, words: &str) -> Failure {
    let noun = if list == RULES { "Approval rules" } else { "Deploy access levels" };
    Failure::invalid_record(vec![format!("{noun} {words}")])
}

/// One element of a list of grants; `None` if its user or group has no access: in a project the ways
/// are all, and the group is invited; in a `group` the user leads it, and the other one is below it.
fn grant(
    call: &Call<'_>,
    group: Option<&Namespace>,
    list: &str,
    id: i64,
    sent: &Value,
) -> Result<Option<Value>> {
    let read = |name: &str| integer(&format!("{list}[{name}]"), &sent[name]);
    named_once(list, sent)?;
    let (user, named) = (read("user_id")?, read("group_id")?);
    let level = number_of(&format!("{list}[access_level]"), &sent["access_level"], |level| {
        [DEVELOPER, MAINTAINER, 60].contains(&level)
    })?;
    let description = match (user, named, level) {
        (Some(id), ..) if deploys(call, group, id)? => {
            User::by_id(call.db, id)?.map(|user| user.name)
        }
        (_, Some(id), _) if takes_part(call, group, id)? => {
            Namespace::by_id(call.db, id)?.map(|group| group.name)
        }
        (None, None, Some(level)) => Some(grants::describe(level).to_owned()),
        _ => None,
    };
    let Some(description) = description else { return Ok(None) };
    let id = if id == 0 { next_grant(call)? } else { id };
    let mut body = json!({
        "id": id,
        "access_level": level,
        "access_level_description": description,
        "user_id": user,
        "group_id": named,
        "group_inheritance_type": read("group_inheritance_type")?.unwrap_or(0),
    });
    if list == RULES {
        let count = read("required_approvals")?.unwrap_or(1);
        refuse_if(count < 1, || {
            invalid_row(list, "required approvals must be greater than or equal to 1")
        })?;
        body["required_approvals"] = count.into();
    }
    Ok(Some(body))
}

/// Whether a user has enough access to be named.
fn deploys(call: &Call<'_>, group: Option<&Namespace>, user: i64) -> Result<bool> {
    Ok(match group {
        Some(group) => {
            let standing = Memberships::of(call.db, user, call.today())?;
            standing.in_namespace(&group.traversal) >= MAINTAINER
        }
        None => grants::level_of(call, &call.project()?, user)? > 0,
    })
}

/// Whether a group can be named.
fn takes_part(call: &Call<'_>, group: Option<&Namespace>, named: i64) -> Result<bool> {
    let Some(group) = group else {
        let sql = "SELECT EXISTS (SELECT 1 FROM shares WHERE project_id = ?1 AND invited_id = ?2)";
        return call.one(sql, [call.project()?.id, named]);
    };
    let named = Namespace::by_id(call.db, named)?;
    Ok(named.is_some_and(|named| {
        named.id != group.id && named.traversal.starts_with(&*group.traversal)
    }))
}

/// Ids are shared by all environments.
pub(super) fn next_grant(call: &Call<'_>) -> Result<i64> {
    let sql = "INSERT INTO meta (key, value) VALUES ('grants of environments', 1)
               ON CONFLICT (key) DO UPDATE SET value = value + 1 RETURNING CAST (value AS INTEGER)";
    call.one(sql, [])
}

const TOKENS: Collection = Collection {
    required: &["name", "scopes"],
    fields: &[
        Field::new("name", Form::Text),
        Field::new("expires_at", Form::Day),
        Field::new("username", Form::Text),
        Field::new(
            "scopes",
            Form::Words(&[
                "read_repository",
                "read_registry",
                "write_registry",
                "read_virtual_registry",
                "write_virtual_registry",
                "read_package_registry",
                "write_package_registry",
            ]),
        ),
    ],
    is_edited: false,
    scope: |_, call| maintained(call),
    settle: |_, _, row, _| match row.value("scopes").as_array().is_none_or(Vec::is_empty) {
        true => Err(Failure::refused("Scopes can't be blank")),
        false => Ok(()),
    },
    json: |_, call, _, row| Ok(token(call, row)),
    ..Collection::new("/projects/{id}/deploy_tokens")
};

fn token(call: &Call<'_>, row: &Record) -> Value {
    let (expires, username) = (row.text("expires_at"), row.text("username"));
    let usual = format!("gitlab+deploy-token-{}", row.id);
    let mut body = json!({
        "id": row.id,
        "name": row.value("name"),
        "username": if username.is_empty() { &usual } else { username },
        "expires_at": (!expires.is_empty()).then(|| format!("{expires}T00:00:00.000Z")),
        "scopes": row.value("scopes"),
        "revoked": false,
        "expired": !expires.is_empty() && expires <= call.today(),
    });
    if call.writes {
        // Nothing accepts it here, so it is not stored.
        body["token"] = call.random_hex().into();
    }
    body
}

/// All tokens of the service, for administrators.
fn every_token(call: &Call<'_>) -> Result<Answer> {
    call.administrator()?;
    let all: Vec<Value> = TOKENS.rows.every(call.db)?.iter().map(|row| token(call, row)).collect();
    page::list(call, &all)
}

/// Maintainers of a group see its tokens, owners create and remove them.
const GROUP_TOKENS: Collection = Collection {
    path: "/groups/{id}/deploy_tokens",
    scope: |_, call| led(call, if call.writes { OWNER } else { MAINTAINER }),
    ..TOKENS
};

const CHECKS: Collection = Collection {
    tier: Tier::Ultimate,
    required: &["name", "external_url"],
    fields: &[
        Field::new("name", Form::Text),
        Field::new("external_url", Form::Text),
        Field::new("protected_branch_ids", Form::Ids),
        Field::new("shared_secret", Form::Text),
    ],
    is_shown: false,
    scope: |_, call| Scope::project(call, MAINTAINER).map_err(Failure::without_403),
    settle: |_, call, row, stored| {
        if row.id != 0 {
            check_branches(call)?;
        }
        let mut wrong = Vec::new();
        for (field, words) in [("name", "Name"), ("external_url", "External url")] {
            if row.text(field).is_empty() {
                wrong.push(format!("{words} can't be blank"));
            } else if is_taken(stored, row, field) {
                wrong.push(format!("{words} has already been taken"));
            }
        }
        refuse_if(!wrong.is_empty(), || Failure::invalid_record(wrong))
    },
    json: |_, call, scope, row| check(call, scope, row),
    ..Collection::new("/projects/{id}/external_status_checks")
};

/// 404 for an id of a protected branch that the project does not have.
fn check_branches(call: &Call<'_>) -> Result<()> {
    let Some(wanted) = call.params.integers("protected_branch_ids")? else { return Ok(()) };
    let known = Protection::all(call.db, call.project()?.id, call.now())?;
    let is_known = |id: &i64| known.iter().any(|branch| branch.id == *id);
    refuse_if(!wanted.iter().all(is_known), Failure::no_record)
}

fn check(call: &Call<'_>, scope: &Scope, row: &Record) -> Result<Value> {
    let wanted = row.value("protected_branch_ids");
    let wanted = wanted.as_array().cloned().unwrap_or_default();
    let branches = Protection::all(call.db, scope.id(), call.now())?;
    let branches = branches.iter().filter(|branch| wanted.contains(&branch.id.into()));
    let branches = branches.map(|branch| {
        json!({
            "id": branch.id,
            "name": branch.name,
            "project_id": scope.id(),
            "code_owner_approval_required": branch.code_owner_approval_required,
        })
    });
    let mut body = json!({
        "id": row.id,
        "name": row.value("name"),
        "project_id": scope.id(),
        "external_url": row.value("external_url"),
        "protected_branches": branches.collect::<Vec<_>>(),
    });
    set_if(&mut body, call.release() >= OBSERVED, "hmac", !row.text("shared_secret").is_empty());
    Ok(body)
}

const LEVEL_WORDS: &[&str] = &["maintainer", "owner", "admin"];
const PUSH: &str = "minimum_access_level_for_push";
const DELETE: &str = "minimum_access_level_for_delete";
const PATH: &str = "repository_path_pattern";

const PACKAGE_RULES: Collection = Collection {
    reads: MAINTAINER,
    since: Some(Release::new(17, 6)),
    required: &["package_name_pattern", "package_type"],
    unique: &["package_name_pattern", "package_type"],
    fields: &[
        Field::new("package_name_pattern", Form::Text),
        Field::new("package_type", Form::Text),
        Field::new(PUSH, Form::Word(LEVEL_WORDS)),
        Field {
            since: Some(Release::new(17, 11)),
            ..Field::new(DELETE, Form::Word(LEVEL_WORDS.split_at(1).1))
        },
    ],
    is_shown: false,
    is_patched: true,
    unpaged: true,
    settle: |of, _, row, stored| settle_rule(of, row, stored),
    rows: Records("package_rules"),
    json: |of, call, scope, row| rule(of, call, scope, row),
    ..Collection::new("/projects/{id}/packages/protection/rules")
};

const REPOSITORY_RULES: Collection = Collection {
    path: "/projects/{id}/registry/protection/repository/rules",
    since: Some(Release::new(17, 8)),
    required: &[PATH],
    unique: &[PATH],
    fields: &[
        Field::new(PATH, Form::Text),
        Field::new(PUSH, Form::Word(LEVEL_WORDS)),
        Field::new(DELETE, Form::Word(LEVEL_WORDS)),
    ],
    settle: |of, call, row, stored| {
        let own = call.project()?.full_path.to_lowercase();
        refuse_if(!row.text(PATH).starts_with(&own), || {
            unprocessable("Repository path pattern should start with the project's full path")
        })?;
        settle_rule(of, row, stored)
    },
    rows: Records("registry_rules"),
    ..PACKAGE_RULES
};

fn unprocessable(words: &str) -> Failure {
    Failure::invalid_record(json!({ "error": [words] }))
}

/// A rule has a level, and no other rule has the same pattern.
fn settle_rule(of: &Collection, row: &Record, stored: &[Record]) -> Result<()> {
    refuse_if([PUSH, DELETE].iter().all(|level| row.text(level).is_empty()), || {
        unprocessable("A rule must have at least a minimum access role for push or delete.")
    })?;
    of.check_unique(row, stored).map_err(|_| {
        let name = of.unique[0].replace('_', " ");
        unprocessable(&format!("{}{} has already been taken", name[..1].to_uppercase(), &name[1..]))
    })
}

fn rule(of: &Collection, call: &Call<'_>, scope: &Scope, row: &Record) -> Result<Value> {
    let mut body = of.plain(call, row);
    body["project_id"] = scope.id().into();
    Ok(body)
}

/// From the documentation, not tried.
const AGENTS: Collection = Collection {
    entry: "agent_id",
    reads: DEVELOPER,
    required: &["name"],
    unique: &["name"],
    fields: &[Field::new("name", Form::Text)],
    is_edited: false,
    json: |of, call, scope, row| {
        let mut body = of.plain(call, row);
        body["config_project"] = json!({ "id": scope.id() });
        Ok(body)
    },
    ..Collection::new("/projects/{id}/cluster_agents")
};

const KEY: &str = "key";
const MODE: &str = "process_mode";
const MODES: &[&str] = &["unordered", "oldest_first", "newest_first", "newest_ready_first"];

/// Only jobs make one, and no request removes it.
const RESOURCE_GROUPS: Collection = Collection {
    entry: KEY,
    key: KEY,
    reads: DEVELOPER,
    writes: DEVELOPER,
    fields: &[
        Field { only_new: true, ..Field::new(KEY, Form::Text) },
        Field::new(MODE, Form::Word(MODES)),
    ],
    only_edited: true,
    ..Collection::new("/projects/{id}/resource_groups")
};

/// Stores a resource group of a seed. From 18.4 on a setting of the project has the mode of new ones.
pub(crate) fn plant_resource_group(call: &Call<'_>, project: &Project, key: &str) -> Result<()> {
    let mode = project.attributes(call.db)?.get("resource_group_default_process_mode").cloned();
    let mut row = Record::new(call.now());
    row.set(KEY, key);
    row.set(MODE, mode.filter(Value::is_string).unwrap_or_else(|| MODES[0].into()));
    let of = Holder::Project(project.id);
    Ok(RESOURCE_GROUPS.rows.save(call.db, of, &mut row, call.now())?)
}

const JOB_TOKENS: Collection = Collection {
    reads: MAINTAINER,
    since: Some(Release::new(16, 3)),
    fields: &[Field {
        shown: "inbound_enabled",
        preset: "true",
        ..Field::new("enabled", Form::Flag)
    }],
    is_document: true,
    is_patched: true,
    is_silent: true,
    settle: |_, call, row, _| {
        call.params.require_all(&[Need::Filled("enabled")])?;
        let is_enforced = instance::setting(call, instance::INBOUND_ENFORCED)? == Value::Bool(true);
        refuse_if(is_enforced && !row.is_set("enabled"), || {
            Failure::refused(
                "Job token scope cannot be disabled for this project because it is enforced for the instance.",
            )
        })
    },
    json: |of, call, _, row| {
        let inbound = of.plain(call, row)["inbound_enabled"].take();
        Ok(json!({ "inbound_enabled": inbound, "outbound_enabled": false }))
    },
    ..Collection::new("/projects/{id}/job_token_scope")
};

const PROJECT: &str = "target_project_id";
const GROUP: &str = "target_group_id";

/// The projects whose jobs reach a project: itself, and others.
const ALLOWED: Collection = Collection {
    entry: PROJECT,
    key: PROJECT,
    since: Some(Release::new(16, 3)),
    required: &[PROJECT],
    fields: &[Field::new(PROJECT, Form::Named(Named::Project))],
    is_shown: false,
    is_edited: false,
    scope: |of, call| {
        let scope = of.place(call, MAINTAINER)?;
        // Only reads take the path of the project.
        if call.writes {
            call.segment_id("id")?;
        }
        refuse_if(call.segment(PROJECT) == scope.id().to_string(), || {
            Failure::refused("Source project cannot be removed from the job token scope")
        })?;
        Ok(scope)
    },
    // Adding the project itself is no error, and it is listed once.
    inherited: |of, call, scope| {
        let mut itself = Record::new(call.now());
        itself.set(PROJECT, scope.id());
        let is_listed = is_listed(of, &itself, &of.stored(call, scope)?);
        Ok(if is_listed { Vec::new() } else { vec![itself] })
    },
    settle: settle_allowed,
    rows: Records("job_token_allowlist"),
    missing: || Failure::refused("Target project is not in the job token scope"),
    json: allowed,
    ..Collection::new("/projects/{id}/job_token_scope/allowlist")
};

/// The groups whose projects' jobs reach a project.
const ALLOWED_GROUPS: Collection = Collection {
    path: "/projects/{id}/job_token_scope/groups_allowlist",
    entry: GROUP,
    key: GROUP,
    since: Some(Release::new(17, 0)),
    required: &[GROUP],
    fields: &[Field::new(GROUP, Form::Named(Named::Group))],
    inherited: |_, _, _| Ok(Vec::new()),
    rows: Records("job_token_groups_allowlist"),
    missing: || Failure::refused("Target group is not in the job token scope"),
    ..ALLOWED
};

/// What a list of allowed ones shows; a POST answers with ids.
fn allowed(of: &Collection, call: &Call<'_>, scope: &Scope, row: &Record) -> Result<Value> {
    let named = row.value(of.key);
    if call.writes {
        return Ok(json!({ "source_project_id": scope.id(), of.key: named }));
    }
    let id = named.as_i64().unwrap_or_default();
    if of.key == GROUP {
        let group = Namespace::by_id(call.db, id)?.ok_or_else(Failure::no_record)?;
        let url = group.web_url(&call.base);
        return Ok(json!({ "id": group.id, "web_url": url, "name": group.name }));
    }
    let project = Project::by_id(call.db, id)?.ok_or_else(Failure::no_record)?;
    let wanted = Extras::of(call)?;
    view::value(|text| view::simple(call, &project, wanted, text))
}

fn is_listed(of: &Collection, row: &Record, stored: &[Record]) -> bool {
    stored.iter().any(|other| other.value(of.key) == row.value(of.key))
}

fn settle_allowed(
    of: &Collection,
    call: &Call<'_>,
    row: &mut Record,
    stored: &[Record],
) -> Result<()> {
    let noun = if of.key == GROUP { "group" } else { "project" };
    let unknown = format!("{} not found", of.key);
    refuse_if(!of.is_known(call, row)?, || Failure::not_found(&unknown))?;
    let again = format!("This {noun} is already in the job token allowlist.");
    refuse_if(is_listed(of, row, stored), || Failure::refused(again))
}
