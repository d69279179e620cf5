//! Fills a database with `root` and its token, and then with the seed.
//!
//! A seed is applied only if no seed was applied to the database before. Missing objects are
//! inserted, and existing objects stay unchanged. The SHA-256 digest of the seed is stored. A later
//! start can then report a changed seed. The start neither applies a part of the change nor ignores
//! it silently.

use super::DataLocation;
use super::routes::runners::Runner;
use super::routes::terms::MembershipTerms;
use super::routes::{collections, groups, project_rules, projects, protected_branches, registry};
use super::seed::{
    Seed, SeedError, SeedGroup, SeedMember, SeedMergeRequest, SeedProject, SeedUser,
    SeedVisibility, serialized_word,
};
use super::store::Store;
use crate::prelude::*;

/// Prepares the database for calls: `root` and its token, the seed, the tier. Returns notes for the
/// user.
pub(super) fn prepare_database(
    service: &ServiceState,
    db: &Connection,
    seed: Option<&Seed>,
    token: &str,
    data_location: &DataLocation,
) -> Result<Vec<String>, SeedError> {
    registry::create_missing_tables(db, service.described_collections)?;
    let now = clock::format_time(service.options.clock.now());
    if User::find_by_username(db, "root")?.is_none() {
        let root = User::new_active("root", "Administrator", "admin@example.com");
        User { admin: true, ..root }.insert(db, &now)?;
    }
    let root = User::find_by_username(db, "root")?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    store_token(db, root.id, token, &now)?;
    set_meta(db, "tier", &service.tier.name())?;
    set_meta(db, "release", &service.options.profile.release.to_string())?;
    let Some(seed) = seed else {
        return Ok(Vec::new());
    };
    let digest = seed.digest();
    match read_meta(db, "seed")? {
        Some(applied_digest) if applied_digest == digest => Ok(Vec::new()),
        Some(_) => {
            let file = match data_location {
                DataLocation::File(path) => path.display().to_string(),
                DataLocation::Memory => "it".to_owned(),
            };
            Ok(vec![format!(
                "the seed differs from the one that this data was filled from, and was not applied; \
                 delete `{file}` to start over"
            )])
        }
        None => {
            apply_seed(service, db, &root, seed)?;
            set_meta(db, "seed", &digest)?;
            set_meta(db, "saml", &seed.saml.unwrap_or(true).to_string())?;
            Ok(Vec::new())
        }
    }
}

fn read_meta(db: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    db.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()
}

/// The release and the tier of the last start with this data.
pub(super) fn read_last_start(store: &Store) -> (Option<Release>, Option<ServiceTier>) {
    let [release, tier] =
        ["release", "tier"].map(|key| store.read(|db| Ok(read_meta(db, key)?)).ok().flatten());
    (
        release.and_then(|release| release.parse().ok()),
        tier.and_then(|tier| ServiceTier::from_name(&tier)),
    )
}

fn set_meta(db: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [key, value])?;
    Ok(())
}

fn store_token(db: &Connection, user_id: i64, token: &str, now: &str) -> rusqlite::Result<()> {
    // A revoked token that is requested again becomes valid again.
    let is_stored = db.execute(
        "UPDATE tokens SET revoked = 0 WHERE digest = ?1",
        [&access::token_digest(token)[..]],
    )? > 0;
    if !is_stored {
        let [name, scopes, created_at] = ["sandbox", "api", now].map(str::to_owned);
        let new_token = AccessToken::new(token);
        AccessToken { user_id, name, scopes, created_at, ..new_token }.upsert(db)?;
    }
    Ok(())
}

/// Inserts missing objects, like calls of `root`.
fn apply_seed(
    service: &ServiceState,
    db: &Connection,
    root: &User,
    seed: &Seed,
) -> Result<(), SeedError> {
    let (caller, request) = ((Some(root.clone()), None), ParsedRequest::post(Params::default()));
    let call = Call::new(service, db, caller, service.options.clock.now(), request);
    seed.users.iter().try_for_each(|user| add_user(&call, user))?;
    seed.groups.iter().try_for_each(|group| add_group(&call, group))?;
    seed.projects.iter().try_for_each(|project| add_project(&call, project))?;
    seed.runners.iter().try_for_each(|runner| {
        let context = format!("runner {}", runner.description.as_deref().unwrap_or_default());
        Runner::create(&call, runner).with_seed_context(&context)
    })
}

fn add_user(call: &Call<'_>, user: &SeedUser) -> Result<(), SeedError> {
    let context = format!("user {}", user.username);
    if User::find_by_username(call.db, &user.username)?.is_none() {
        project_rules::check_path_only(&user.username).with_seed_context(&context)?;
        let name = user.name.as_deref().unwrap_or(&user.username);
        let new_user = User {
            state: serialized_word(user.state),
            admin: user.administrator,
            bot: user.bot,
            ..User::new_active(&user.username, name, &format!("{}@localhost", user.username))
        };
        new_user.insert(call.db, call.time_text())?;
    }
    let stored_user = User::find_by_username(call.db, &user.username)?;
    if let (Some(token), Some(seeded_user)) = (&user.token, stored_user) {
        store_token(call.db, seeded_user.id, token, call.time_text())?;
    }
    Ok(())
}

fn add_group(call: &Call<'_>, group: &SeedGroup) -> Result<(), SeedError> {
    let namespace =
        find_or_create_namespace(call, &group.path, group.name.as_deref(), group.visibility)?;
    let scope = GroupOrProject::from(namespace);
    add_members(call, &scope, &format!("group {}", group.path), &group.members)
}

/// The namespace with the full path, created with all groups above it if needed.
fn find_or_create_namespace(
    call: &Call<'_>,
    path: &str,
    name: Option<&str>,
    visibility: Option<SeedVisibility>,
) -> Result<Namespace, SeedError> {
    if let Some(namespace) = Namespace::find_by_path(call.db, path)? {
        return Ok(namespace);
    }
    let (parent, segment) = match path.rsplit_once('/') {
        Some((parent_path, segment)) => {
            (Some(find_or_create_namespace(call, parent_path, None, None)?), segment)
        }
        None => (None, path),
    };
    let inherited_visibility = parent.as_ref().map_or("private", |parent| &parent.visibility);
    let visibility = visibility.map(serialized_word);
    let new_group = NewGroup {
        name: name.unwrap_or(segment),
        path: segment,
        parent: parent.as_ref(),
        visibility: visibility.as_deref().unwrap_or(inherited_visibility),
    };
    // Paths in a seed may have one character.
    groups::insert(call, new_group, 1).with_seed_context(&format!("group {path}"))
}

fn add_project(call: &Call<'_>, seed: &SeedProject) -> Result<(), SeedError> {
    let project_context = format!("project {}", seed.path);
    let Some((parent_path, segment)) = seed.path.rsplit_once('/') else {
        return Err(SeedError::Refused {
            place: project_context,
            reason: "the path needs a group or user in front: `acme/shop`".to_owned(),
        });
    };
    let mut settings = seed.settings.clone();
    settings.insert("path".to_owned(), segment.into());
    let settings = seed_params(&settings).with_seed_context(&project_context)?;
    let is_new = Project::find_by_path(call.db, &seed.path)?.is_none();
    if is_new {
        let namespace = find_or_create_namespace(call, parent_path, None, None)?;
        let root = call.require_user().with_seed_context(&project_context)?;
        projects::create_project(call, WriteRoute::Create, root, &namespace, &settings)
            .with_seed_context(&project_context)?;
    }
    let project = find_seed_project(call, seed).with_seed_context(&project_context)?;
    let repository = Repository { call, project: &project };
    for branch in &seed.branches {
        repository
            .add_seed_branch(branch)
            .with_seed_context(&format!("{project_context}, branch {branch}"))?;
    }
    // The edit comes after the branches, because the default branch must exist.
    if is_new {
        projects::edit_project(call, &project, &settings).with_seed_context(&project_context)?;
    }
    let project = find_seed_project(call, seed).with_seed_context(&project_context)?;
    add_project_contents(call, &project_context, &project, seed)?;
    for (number, merge_request) in seed.merge_requests.iter().enumerate() {
        let context = format!("{project_context}, merge request {}", number + 1);
        add_merge_request(call, &project, &context, merge_request)?;
    }
    if seed.archived {
        call.set_column("projects", project.id, "archived", true)
            .with_seed_context(&project_context)?;
    }
    Ok(())
}

fn find_seed_project(call: &Call<'_>, seed: &SeedProject) -> Result<Project> {
    Project::find_by_path(call.db, &seed.path)?.or_no_record()
}

/// Adds the contents of a project. Members come first, because grants can name only members.
fn add_project_contents(
    call: &Call<'_>,
    context: &str,
    project: &Project,
    seed: &SeedProject,
) -> Result<(), SeedError> {
    let scope = GroupOrProject::from(project.clone());
    add_members(call, &scope, context, &seed.members)?;
    for (name, entries) in &seed.collections {
        let Some(collection) = registry::find_seedable(name) else { continue };
        let entries = match entries {
            Value::Null => &[],
            Value::Array(list) => &**list,
            entry => std::slice::from_ref(entry),
        };
        let key = collection.seed_key().unwrap_or("id");
        add_entries(call, context, (name, key), entries, |call| {
            collections::add_seed_entry(call, collection, &scope)
        })?;
    }
    add_entries(call, context, ("protected_branches", "name"), &seed.protected_branches, |call| {
        protected_branches::add_seed_protection(call, &scope)
    })
}

/// Adds entries of a seed. An entry is an object, or the value of its field `key`.
fn add_entries(
    call: &Call<'_>,
    context: &str,
    (list_name, key): (&str, &str),
    entries: &[Value],
    add_entry: impl Fn(&Call<'_>) -> Result<()>,
) -> Result<(), SeedError> {
    let noun = list_name.trim_end_matches('s').replace('_', " ");
    for (number, entry) in entries.iter().enumerate() {
        let make_keyed_entry = || Map::from_iter([(key.to_owned(), entry.clone())]);
        let result = seed_params(&entry.as_object().cloned().unwrap_or_else(make_keyed_entry))
            .and_then(|params| {
                let caller = (call.caller.clone(), None);
                let request = ParsedRequest::post(params);
                add_entry(&Call::new(call.service, call.db, caller, call.time, request))
            });
        result.with_seed_context(&format!("{context}, {noun} {}", number + 1))?;
    }
    Ok(())
}

/// The user with a name, who must exist.
fn find_user(call: &Call<'_>, context: &str, name: &str) -> Result<User, SeedError> {
    let unknown_user = || format!("there is no user `{name}`; list it under `users`").into();
    User::find_by_username(call.db, name)?.ok_or_else(unknown_user).with_seed_context(context)
}

fn add_members(
    call: &Call<'_>,
    scope: &GroupOrProject,
    parent_context: &str,
    seeds: &[SeedMember],
) -> Result<(), SeedError> {
    for seed in seeds {
        let context = format!("{parent_context}, member {}", seed.user);
        let user = find_user(call, &context, &seed.user)?;
        let mut terms = MembershipTerms::granted_by_caller(call, seed.access_level.0);
        let mut params = Params::default();
        let result = params.add("expires_at", seed.expires_at.clone().into()).and_then(|()| {
            terms.expires_at = params.date_text("expires_at")?;
            terms.insert(call, scope, user.id)
        });
        result.with_seed_context(&context)?;
    }
    Ok(())
}

/// The id of the named author, `root` by default.
fn author_id(call: &Call<'_>, context: &str, name: Option<&str>) -> Result<i64, SeedError> {
    let Some(name) = name else { return Ok(call.require_user().with_seed_context(context)?.id) };
    find_user(call, context, name).map(|user| user.id)
}

fn add_merge_request(
    call: &Call<'_>,
    project: &Project,
    context: &str,
    seed: &SeedMergeRequest,
) -> Result<(), SeedError> {
    let last_iid_sql = "SELECT coalesce(max(iid), 0) FROM merge_requests WHERE project_id = ?1";
    let iid = call.db.query_row(last_iid_sql, [project.id], |row| row.get::<_, i64>(0))? + 1;
    let merge_request = MergeRequestRow {
        project_id: project.id,
        iid,
        title: seed.title.clone(),
        state: serialized_word(seed.state),
        discussion_locked: seed.discussion_locked,
        author_id: Some(author_id(call, context, seed.author.as_deref())?),
        source_branch: "change".to_owned(),
        target_branch: "main".to_owned(),
        created_at: call.time_text().to_owned(),
        updated_at: call.time_text().to_owned(),
        ..MergeRequestRow::default()
    };
    let merge_request_id = merge_request.upsert(call.db)?;
    for note in &seed.notes {
        let note = NoteRow {
            merge_request_id,
            author_id: author_id(call, context, note.author.as_deref())?,
            body: note.body.clone(),
            system: note.system,
            internal: note.internal,
            created_at: call.time_text().to_owned(),
            updated_at: call.time_text().to_owned(),
            ..NoteRow::default()
        };
        note.upsert(call.db)?;
    }
    Ok(())
}

fn seed_params(fields: &Object) -> Result<Params> {
    let mut params = Params::default();
    for (name, value) in fields {
        params.add(name, with_level_numbers(name, value))?;
    }
    Ok(params)
}

/// The value of `name` with access levels as numbers. Levels that are words are replaced.
fn with_level_numbers(name: &str, value: &Value) -> Value {
    match value {
        Value::String(word) if name.ends_with("access_level") => {
            access::level_by_name(word).map_or_else(|| value.clone(), Value::from)
        }
        Value::Array(items) => items.iter().map(|item| with_level_numbers(name, item)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields.map(|(name, value)| (name.clone(), with_level_numbers(name, value))).collect()
        }
        _ => value.clone(),
    }
}

trait SeedErrorContext<T> {
    /// Adds the refused part of the seed to a failure.
    fn with_seed_context(self, context: &str) -> Result<T, SeedError>;
}

impl<T> SeedErrorContext<T> for Result<T> {
    fn with_seed_context(self, context: &str) -> Result<T, SeedError> {
        self.map_err(|failure| SeedError::Refused {
            place: context.to_owned(),
            reason: error_text(&failure),
        })
    }
}

/// The text of a failure: `url is missing`, or `path: has already been taken`.
fn error_text(failure: &ErrorResponse) -> String {
    match failure.body.get("message").or_else(|| failure.body.get("error")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(texts)) => {
            texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
        }
        Some(Value::Object(fields)) => {
            let texts = fields.iter().map(|(field, texts)| match texts {
                Value::Array(texts) => {
                    let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                    format!("{field}: {}", texts.join(", "))
                }
                other => format!("{field}: {other}"),
            });
            texts.collect::<Vec<_>>().join("; ")
        }
        _ => failure.status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ServiceOptions, model::Model, store::stored::ROWS};
    use super::*;

    #[test]
    fn the_default_branch_may_be_any_branch_of_the_seed() {
        let project = json!({"path": "acme/shop", "branches": ["trunk", "main"],
            "settings": {"default_branch": "trunk"}});
        let seed = Seed::from_json(json!({"projects": [project]})).expect("a seed");
        Model::new(&seed, "token", ServiceOptions::default()).expect("a model");
    }

    #[test]
    fn a_level_of_a_rule_may_be_a_word() {
        let rule = json!({"name": "main", "allowed_to_push": [{"access_level": "maintainer"}],
            "merge_access_level": "no_access"});
        let project = json!({"path": "acme/shop", "protected_branches": [rule]});
        let seed = Seed::from_json(json!({"projects": [project]})).expect("a seed");
        Model::new(&seed, "token", ServiceOptions::default()).expect("a model");
    }

    /// Ten times as many objects of any type in a seed need about ten times as many reads.
    #[test]
    fn seeding_time_grows_linearly() {
        let repeat_value = |n: usize, make: fn(usize) -> Value| (0..n).map(make).collect::<Value>();
        let users = |n| repeat_value(n, |i| json!({"username": format!("u{i}")}));
        type ListMaker = (&'static str, fn(usize) -> Value);
        let makers: [ListMaker; 6] = [
            ("branches", |i| json!(format!("b{i}"))),
            ("protected_branches", |i| json!({"name": format!("b{i}")})),
            ("members", |i| json!({"user": format!("u{i}"), "access_level": 30})),
            ("hooks", |i| json!({"url": format!("https://h.example/{i}")})),
            ("variables", |i| json!({"key": format!("V{i}"), "value": "x"})),
            ("merge_requests", |i| json!({"title": format!("m{i}")})),
        ];
        for (name, make_value) in makers {
            let count_rows = |n: usize| {
                let project = json!({"path": "acme/shop", name: repeat_value(n, make_value)});
                let seed = json!({"users": users(n), "projects": [project]});
                let seed = Seed::from_json(seed).expect("a seed");
                let rows_before = ROWS.get();
                Model::new(&seed, "token", ServiceOptions::default()).expect("a model");
                ROWS.get() - rows_before
            };
            let (few, many) = (count_rows(30), count_rows(300));
            assert!(few >= 30, "{name}: {few}");
            assert!(many <= 15 * few, "{name}: {few} rows, and {many} for ten times as many");
        }
    }
}
