//! What a fresh sandbox is filled with: the types of `sandbox.yaml`, and how they are applied.
//!
//! A seed is applied once, to a database that has none yet: what is missing is inserted, what exists stays as it
//! is. Its SHA-256 is kept, so that a later start can say that the seed has changed since, instead of applying
//! half of a change or ignoring it silently. Secrets are plain texts here: a seed is for demonstrations.

use std::cell::OnceCell;
use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::answer::Failure;
use super::attributes::{Route, Tier};
use super::call::Call;
use super::params::Params;
use super::routes::members::Scope;
use super::routes::{groups, hooks, members, projects, push_rules, variables};
use super::store::Store;
use super::store::namespace::{Namespace, NewGroup};
use super::store::project::Project;
use super::store::user::{NewUser, User};
use super::{Data, Service, StartError, access};

/// The content of `sandbox.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Seed {
    /// What the service is licensed for.
    pub tier: Option<Tier>,
    /// Users besides `root`, who always exists and is an administrator.
    pub users: Vec<SeedUser>,
    /// Groups. Those above a group and above a project are created as needed.
    pub groups: Vec<SeedGroup>,
    /// Projects.
    pub projects: Vec<SeedProject>,
}

/// A user of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedUser {
    /// The name in paths and mentions.
    pub username: String,
    /// The name shown to people; the username when it is missing.
    #[serde(default)]
    pub name: Option<String>,
    /// An access token for this user.
    #[serde(default)]
    pub token: Option<String>,
    /// Whether the user may sign in.
    #[serde(default)]
    pub state: SeedState,
    /// Whether the user administers the service.
    #[serde(default)]
    pub administrator: bool,
    /// Whether the user is a bot, such as those of project access tokens.
    #[serde(default)]
    pub bot: bool,
}

/// The state of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeedState {
    /// May sign in.
    #[default]
    Active,
    /// May not.
    Blocked,
}

/// How visible a group is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeedVisibility {
    /// Only members see it.
    #[default]
    Private,
    /// Every user sees it.
    Internal,
    /// Everybody sees it.
    Public,
}

impl SeedVisibility {
    fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Internal => "internal",
            Self::Public => "public",
        }
    }
}

/// A group of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedGroup {
    /// The full path.
    pub path: String,
    /// The name shown to people; the last segment of the path when it is missing.
    #[serde(default)]
    pub name: Option<String>,
    /// How visible it is; as visible as the group above, or private, when it is missing.
    #[serde(default)]
    pub visibility: Option<SeedVisibility>,
    /// Direct members.
    #[serde(default)]
    pub members: Vec<SeedMember>,
}

/// A member of a group or project of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedMember {
    /// The username.
    pub user: String,
    /// The role: guest, reporter, developer, maintainer or owner, or its number.
    pub access_level: SeedLevel,
    /// The last day, as `YYYY-MM-DD`.
    #[serde(default)]
    pub expires_at: Option<String>,
}

/// A role, written as a word or as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedLevel(i64);

impl Serialize for SeedLevel {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

impl<'de> Deserialize<'de> for SeedLevel {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let known = match &value {
            Value::Number(number) => access::LEVELS.iter().find(|(level, _)| number.as_i64() == Some(*level)),
            Value::String(word) => access::LEVELS.iter().find(|(_, name)| name.eq_ignore_ascii_case(word)),
            _ => None,
        };
        known.map(|(level, _)| Self(*level)).ok_or_else(|| {
            let text = format!("`access_level` is {value}, but has to be a role ({}) or its number", role_words().join(", "));
            serde::de::Error::custom(text)
        })
    }
}

impl JsonSchema for SeedLevel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SeedLevel".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let numbers = access::LEVELS.iter().map(|(level, _)| Value::from(*level));
        let words = role_words().into_iter().map(Value::from);
        schemars::json_schema!({ "enum": words.chain(numbers).collect::<Vec<_>>() })
    }
}

fn role_words() -> Vec<String> {
    access::LEVELS.iter().map(|(_, name)| name.to_lowercase()).collect()
}

/// A project of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedProject {
    /// The full path.
    pub path: String,
    /// Attributes, in the service's own names: those that edit a project, and those that create one.
    #[serde(default)]
    pub settings: Map<String, Value>,
    /// CI/CD variables, in the service's own field names.
    #[serde(default)]
    pub variables: Vec<Map<String, Value>>,
    /// Direct members.
    #[serde(default)]
    pub members: Vec<SeedMember>,
    /// Hooks, in the service's own field names.
    #[serde(default)]
    pub hooks: Vec<Map<String, Value>>,
    /// The push rule, in the service's own field names.
    #[serde(default)]
    pub push_rule: Option<Map<String, Value>>,
    /// Whether the project is archived.
    #[serde(default)]
    pub archived: bool,
}

/// Why a seed is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// It does not have the shape of a seed.
    #[error("the seed does not have the shape of one")]
    Shape(#[source] serde_json::Error),
    /// The service refuses something that it holds.
    #[error("{place}: {reason}")]
    Refused {
        /// What was refused: `project acme/shop, hook 1`.
        place: String,
        /// The service's own words.
        reason: String,
    },
    /// It names something that is not there.
    #[error("{place}: there is no user `{user}`; list it under `users`")]
    UnknownUser {
        /// What names it.
        place: String,
        /// The username.
        user: String,
    },
    /// The database failed.
    #[error("the sandbox's database failed")]
    Database(#[from] rusqlite::Error),
}

impl Seed {
    /// Reads a seed from JSON.
    ///
    /// # Errors
    ///
    /// [`SeedError::Shape`] names the field that does not fit.
    pub fn from_json(value: Value) -> Result<Self, SeedError> {
        serde_json::from_value(value).map_err(SeedError::Shape)
    }

    fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Gets the database ready for calls: `root` and its token, the seed, answers of this tier. Returns notes for the
/// user.
pub(super) fn prepare(service: &Service, seed: Option<&Seed>, token: &str, data: &Data) -> Result<Vec<String>, StartError> {
    let mut outcome = Ok(Vec::new());
    let result = service.store.write(|db| {
        outcome = prepare_in(service, db, seed, token, data);
        // The error is kept beside; this one only makes the transaction roll back.
        match &outcome {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::error(http::StatusCode::BAD_REQUEST, error.to_string())),
        }
    });
    let notes = outcome?;
    result.map_err(|failure| SeedError::Refused { place: "the database".to_owned(), reason: reason(&failure) })?;
    Ok(notes)
}

fn prepare_in(service: &Service, db: &Connection, seed: Option<&Seed>, token: &str, data: &Data) -> Result<Vec<String>, SeedError> {
    let now = super::clock::spell(service.clock.now());
    if User::by_username(db, "root")?.is_none() {
        let root = NewUser { username: "root", name: "Administrator", email: "root@localhost", state: "active", admin: true, bot: false };
        User::insert(db, root, &now)?;
    }
    let root = User::by_username(db, "root")?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    plant_token(db, root.id, token, &now)?;
    follow_tier(db, service.tier)?;
    let Some(seed) = seed else {
        return Ok(Vec::new());
    };
    let digest = seed.digest();
    match meta(db, "seed")? {
        Some(applied) if applied == digest => Ok(Vec::new()),
        Some(_) => {
            let file = match data {
                Data::File(path) => path.display().to_string(),
                Data::Memory => "it".to_owned(),
            };
            Ok(vec![format!(
                "the seed differs from the one that this data was filled from, and was not applied; \
                 delete `{file}` to start over"
            )])
        }
        None => {
            apply(service, db, &root, seed)?;
            set_meta(db, "seed", &digest)?;
            Ok(Vec::new())
        }
    }
}

fn meta(db: &Connection, key: &str) -> Result<Option<String>, rusqlite::Error> {
    db.query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0)).optional()
}

/// The tier of the last start with this data.
pub(super) fn stored_tier(store: &Store) -> Option<Tier> {
    let name = store.read(|db| Ok(meta(db, "tier")?)).ok().flatten()?;
    [Tier::Free, Tier::Premium, Tier::Ultimate].into_iter().find(|tier| tier.name() == name)
}

fn set_meta(db: &Connection, key: &str, value: &str) -> Result<(), rusqlite::Error> {
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", [key, value])?;
    Ok(())
}

/// The prepared answers of projects depend on the tier, so another tier makes them anew.
fn follow_tier(db: &Connection, tier: Tier) -> Result<(), rusqlite::Error> {
    if meta(db, "tier")?.as_deref() == Some(tier.name()) {
        return Ok(());
    }
    let ids: Vec<i64> = db.prepare("SELECT id FROM projects")?.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for id in ids {
        if let Some(project) = Project::by_id(db, id)? {
            let updated: String = db.query_row("SELECT updated_at FROM projects WHERE id = ?1", [id], |row| row.get(0))?;
            project.save_attributes(db, &project.attributes(db)?, tier, &updated)?;
        }
    }
    set_meta(db, "tier", tier.name())
}

fn plant_token(db: &Connection, user: i64, token: &str, now: &str) -> Result<(), rusqlite::Error> {
    let known = db.prepare("SELECT 1 FROM tokens WHERE digest = ?1")?.exists([&access::digest(token)[..]])?;
    if !known {
        access::add_token(db, user, token, "sandbox", "api", None, now)?;
    }
    Ok(())
}

/// Inserts what is missing, as calls of `root` would.
fn apply(service: &Service, db: &Connection, root: &User, seed: &Seed) -> Result<(), SeedError> {
    let call = Call {
        db,
        service,
        caller: Some(root.clone()),
        token: None,
        writes: true,
        params: Params::default(),
        segments: HashMap::new(),
        base: String::new(),
        target: String::new(),
        time: service.clock.now(),
        unmodified_since: None,
        now: OnceCell::new(),
        standing: OnceCell::new(),
    };
    for user in &seed.users {
        add_user(&call, user)?;
    }
    for group in &seed.groups {
        add_group(&call, group)?;
    }
    for project in &seed.projects {
        add_project(&call, root, project)?;
    }
    Ok(())
}

fn add_user(call: &Call<'_>, user: &SeedUser) -> Result<(), SeedError> {
    let place = format!("user {}", user.username);
    if User::by_username(call.db, &user.username)?.is_none() {
        projects::check_path(&user.username).map_err(refused(&place))?;
        let new = NewUser {
            username: &user.username,
            name: user.name.as_deref().unwrap_or(&user.username),
            email: &format!("{}@localhost", user.username),
            state: match user.state {
                SeedState::Active => "active",
                SeedState::Blocked => "blocked",
            },
            admin: user.administrator,
            bot: user.bot,
        };
        User::insert(call.db, new, call.now())?;
    }
    if let (Some(token), Some(known)) = (&user.token, User::by_username(call.db, &user.username)?) {
        plant_token(call.db, known.id, token, call.now())?;
    }
    Ok(())
}

fn add_group(call: &Call<'_>, group: &SeedGroup) -> Result<(), SeedError> {
    let namespace = namespace(call, &group.path, group.name.as_deref(), group.visibility)?;
    let scope = Scope::Group(Box::new(namespace));
    add_members(call, &scope, &format!("group {}", group.path), &group.members)
}

/// The namespace with the full path, created with all above it as needed.
fn namespace(call: &Call<'_>, path: &str, name: Option<&str>, visibility: Option<SeedVisibility>) -> Result<Namespace, SeedError> {
    if let Some(known) = Namespace::by_path(call.db, path)? {
        return Ok(known);
    }
    let (parent, own) = match path.rsplit_once('/') {
        Some((above, own)) => (Some(namespace(call, above, None, None)?), own),
        None => (None, path),
    };
    let inherited = match &parent {
        Some(parent) => parent.visibility.as_str(),
        None => "private",
    };
    let new = NewGroup {
        name: name.unwrap_or(own),
        path: own,
        parent: parent.as_ref(),
        visibility: visibility.map_or(inherited, |visibility| visibility.name()),
        description: "",
    };
    groups::insert(call, new).map_err(refused(&format!("group {path}")))
}

fn add_project(call: &Call<'_>, root: &User, seed: &SeedProject) -> Result<(), SeedError> {
    let place = format!("project {}", seed.path);
    let Some((above, own)) = seed.path.rsplit_once('/') else {
        return Err(SeedError::Refused { place, reason: "the path needs a group or user in front: `acme/shop`".to_owned() });
    };
    if Project::by_path(call.db, &seed.path)?.is_none() {
        let namespace = namespace(call, above, None, None)?;
        let mut settings = seed.settings.clone();
        settings.insert("path".to_owned(), own.into());
        let settings = parameters(&settings).map_err(refused(&place))?;
        let id = projects::insert(call, Route::Create, root, &namespace, &settings).map_err(refused(&place))?;
        if let Some(project) = Project::by_id(call.db, id)? {
            projects::edit(call, &project, &settings).map_err(refused(&place))?;
        }
    }
    let project = Project::by_path(call.db, &seed.path)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    for (number, fields) in seed.variables.iter().enumerate() {
        let add = parameters(fields).and_then(|fields| variables::plant(call, project.id, &fields));
        add.map_err(refused(&format!("{place}, variable {}", number + 1)))?;
    }
    for (number, fields) in seed.hooks.iter().enumerate() {
        let add = parameters(fields).and_then(|fields| hooks::plant(call, project.id, &fields));
        add.map_err(refused(&format!("{place}, hook {}", number + 1)))?;
    }
    if let Some(fields) = &seed.push_rule {
        let add = parameters(fields).and_then(|fields| push_rules::plant(call, project.id, &fields));
        add.map_err(refused(&format!("{place}, push rule")))?;
    }
    let id = project.id;
    add_members(call, &Scope::Project(Box::new(project)), &place, &seed.members)?;
    if seed.archived {
        call.db.execute("UPDATE projects SET archived = 1 WHERE id = ?1", params![id])?;
    }
    Ok(())
}

fn add_members(call: &Call<'_>, scope: &Scope, place: &str, seeds: &[SeedMember]) -> Result<(), SeedError> {
    for seed in seeds {
        let place = format!("{place}, member {}", seed.user);
        let Some(user) = User::by_username(call.db, &seed.user)? else {
            return Err(SeedError::UnknownUser { place, user: seed.user.clone() });
        };
        let mut fields = Map::new();
        fields.insert("access_level".to_owned(), seed.access_level.0.into());
        fields.insert("expires_at".to_owned(), seed.expires_at.clone().into());
        let add = parameters(&fields).and_then(|fields| members::plant(call, scope, &user, &fields));
        add.map_err(refused(&place))?;
    }
    Ok(())
}

fn parameters(fields: &Map<String, Value>) -> Result<Params, Failure> {
    let mut params = Params::default();
    for (name, value) in fields {
        params.add(name, value.clone())?;
    }
    Ok(params)
}

fn refused(place: &str) -> impl Fn(Failure) -> SeedError + use<> {
    let place = place.to_owned();
    move |failure| SeedError::Refused { place: place.clone(), reason: reason(&failure) }
}

/// The words of a failure: `url is missing`, or `path: has already been taken`.
fn reason(failure: &Failure) -> String {
    match failure.body.get("message").or_else(|| failure.body.get("error")) {
        Some(Value::String(text)) => text.clone(),
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
    use super::*;

    #[test]
    fn the_schema_describes_every_field_and_refuses_others() {
        let schema = schemars::schema_for!(Seed).to_value();
        let mut objects: Vec<&Value> = schema["$defs"].as_object().expect("definitions").values().collect();
        objects.push(&schema);
        let mut fields = 0;
        for object in objects {
            let Some(properties) = object["properties"].as_object() else { continue };
            assert_eq!(object["additionalProperties"], false, "{object}");
            for (name, field) in properties {
                assert!(field["description"].is_string(), "{name} has no description");
                fields += 1;
            }
        }
        assert_eq!(fields, 24);
    }

    #[test]
    fn roles_are_words_or_numbers() {
        for (written, level) in [(Value::from(30), 30), ("Maintainer".into(), 40), ("minimal access".into(), 5)] {
            assert_eq!(serde_json::from_value(written).ok(), Some(SeedLevel(level)));
        }
        for wrong in [Value::from(31), "30".into(), "boss".into(), Value::Null, true.into()] {
            assert!(serde_json::from_value::<SeedLevel>(wrong).is_err());
        }
    }
}
