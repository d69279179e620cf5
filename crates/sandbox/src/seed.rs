//! The initial data of a sandbox: the types of `sandbox.yaml`.
//!
//! Secrets in a seed are plain text, because seeds are for demonstrations.

use schemars::JsonSchema;

use super::routes::registry;
use crate::prelude::*;

/// The content of `sandbox.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Seed {
    /// The licence of the service.
    pub tier: Option<ServiceTier>,
    /// Its release, as text: `'18.2'`; by default that of the reference, 15.8.
    pub release: Option<Release>,
    /// Whether groups can have SAML links (default: true). If false, such links are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saml: Option<bool>,
    /// Users in addition to `root`, who always exists and is an administrator.
    pub users: Vec<SeedUser>,
    /// Groups. Groups above other groups and projects are created as needed.
    pub groups: Vec<SeedGroup>,
    /// Projects.
    pub projects: Vec<SeedProject>,
    /// Runners. Only a seed can create them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runners: Vec<SeedRunner>,
}

/// A runner of a seed: of a group, of projects, or of the instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedRunner {
    /// The description of the runner, by which users recognise it.
    pub description: Option<String>,
    /// The paths of the projects that use the runner. The first one owns it.
    #[serde(default)]
    pub projects: Vec<String>,
    /// The path of the group that owns the runner.
    pub group: Option<String>,
    /// Whether only administrators may add the runner to other projects.
    #[serde(default)]
    pub locked: bool,
}

/// A user of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedUser {
    /// The name in paths and mentions.
    #[schemars(example = &"alice")]
    pub username: String,
    /// The name shown to people; by default the username.
    pub name: Option<String>,
    /// An access token for this user.
    pub token: Option<String>,
    /// Whether the user may sign in.
    #[serde(default)]
    pub state: SeedState,
    /// Whether the user administers the service.
    #[serde(default)]
    pub administrator: bool,
    /// Whether the user is the bot of an access token. A service account is a user without this.
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
    /// May not sign in.
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

/// The word for a value in `sandbox.yaml`.
pub(super) fn serialized_word(value: impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|word| word.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// A group of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedGroup {
    /// The full path.
    #[schemars(example = &"acme")]
    pub path: String,
    /// The name shown to people; by default the last segment of the path.
    pub name: Option<String>,
    /// Its visibility; by default that of the group above, or private.
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
    #[schemars(example = &"alice")]
    pub user: String,
    /// The role: guest, reporter, developer, maintainer or owner, or its number.
    pub access_level: SeedLevel,
    /// The last day, as `YYYY-MM-DD`.
    #[schemars(regex(pattern = r"^\d{4}-\d{2}-\d{2}$"), example = &"2099-01-31")]
    pub expires_at: Option<String>,
}

/// A role, written as a word or as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeedLevel(pub(super) i64);

impl<'de> Deserialize<'de> for SeedLevel {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let level = value.as_str().map_or_else(|| value.as_i64(), access::level_by_name);
        let level = level.filter(|level| access::ROLE_LEVELS.iter().any(|(role, _)| role == level));
        level.map(Self).ok_or_else(|| {
            let message = format!(
                "`access_level` is {value}, but must be a role ({}) or its number",
                role_words().join(", ")
            );
            serde::de::Error::custom(message)
        })
    }
}

impl JsonSchema for SeedLevel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SeedLevel".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words = role_words();
        let numbers: Vec<_> = access::ROLE_LEVELS.iter().map(|(level, _)| *level).collect();
        // JSON schema patterns cannot ignore case.
        let patterns: Vec<String> =
            words.iter().map(|word| word.chars().map(case_insensitive_pattern).collect()).collect();
        schemars::json_schema!({
            "anyOf": [
                { "type": "string", "enum": words },
                { "type": "integer", "enum": numbers },
                { "type": "string", "pattern": format!("^({})$", patterns.join("|")) },
            ],
        })
    }
}

/// A pattern that matches a character of a role's name in upper or lower case.
fn case_insensitive_pattern(character: char) -> String {
    match character {
        '_' => "[_ ]".to_owned(),
        _ => format!("[{}{character}]", character.to_ascii_uppercase()),
    }
}

/// The words for roles, as in manifests.
fn role_words() -> Vec<String> {
    let levels = access::ROLE_LEVELS.iter();
    levels.map(|(_, name)| name.to_lowercase().replace(' ', "_")).collect()
}

/// Allows only known attributes, because the service silently ignores other attributes.
fn attributes_of_projects(schema: &mut schemars::Schema) {
    let mut editable_attributes: Vec<&Attribute> = ATTRIBUTE_TABLE.projects.iter().collect();
    editable_attributes.retain(|attribute| {
        attribute.is_accepted_on(WriteRoute::Create) || attribute.is_accepted_on(WriteRoute::Edit)
    });
    let properties =
        editable_attributes.iter().map(|attribute| (attribute.name.to_owned(), true.into()));
    schema.insert("properties".to_owned(), Value::Object(properties.collect()));
    schema.insert("additionalProperties".to_owned(), false.into());
}

/// Examples of entries, by the last segment of the collection's path.
const EXAMPLES: [(&str, &str); 3] = [
    ("variables", r#"[[{"key": "LOG_LEVEL", "value": "debug"}]]"#),
    ("hooks", r#"[[{"url": "https://ci.example.org", "push_events": true}]]"#),
    ("resource_groups", r#"[["production"]]"#),
];

/// Allows only the names of project collections as keys. A name is the last segment of the path.
fn collections_of_projects(schema: &mut schemars::Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    properties.extend(registry::seedable_collections().map(|(name, collection)| {
        let description = format!("Entries of `{name}`, in the service's own field names.");
        let entry = serde_json::json!({"type": ["object", "string"]});
        let mut entries =
            serde_json::json!({"description": description, "type": "array", "items": entry});
        if let Some((_, example)) = EXAMPLES.iter().find(|(path_end, _)| *path_end == name) {
            entries["examples"] = serde_json::from_str(example).unwrap_or_default();
        }
        if collection.is_single {
            entries = serde_json::json!({"description": description, "type": "object"});
        }
        (name.to_owned(), entries)
    }));
    schema.insert("additionalProperties".to_owned(), false.into());
}

/// A project of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = collections_of_projects)]
pub struct SeedProject {
    /// The full path.
    #[schemars(example = &"acme/shop")]
    pub path: String,
    /// Attributes with the service's own names: those for editing a project, and those for creating
    /// one.
    #[serde(default)]
    #[schemars(transform = attributes_of_projects)]
    pub settings: Map<String, Value>,
    /// Direct members.
    #[serde(default)]
    pub members: Vec<SeedMember>,
    /// Protected branches, in the service's own field names; levels may be words.
    #[serde(default)]
    #[schemars(example = serde_json::json!([{"name": "main", "push_access_level": "maintainer"}]))]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub protected_branches: Vec<Value>,
    /// Branches of the repository; the first one is the default branch. None of them is protected.
    #[serde(default)]
    pub branches: Vec<String>,
    /// Merge requests, which get the numbers 1, 2 and so on.
    #[serde(default)]
    pub merge_requests: Vec<SeedMergeRequest>,
    /// Whether the project is archived.
    #[serde(default)]
    pub archived: bool,
    /// Entries of collections by the last segment of their paths, such as `hooks`. Entries have the service's
    /// own field names; a text is an entry with this name.
    #[serde(flatten)]
    pub collections: Map<String, Value>,
}

/// A merge request of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedMergeRequest {
    /// The title.
    pub title: String,
    /// Its state.
    #[serde(default)]
    pub state: SeedMergeState,
    /// Whether only members may comment.
    #[serde(default)]
    pub discussion_locked: bool,
    /// The username of its author; `root` by default.
    pub author: Option<String>,
    /// Notes, the oldest first.
    #[serde(default)]
    pub notes: Vec<SeedNote>,
}

/// The state of a merge request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeedMergeState {
    /// It is open.
    #[default]
    Opened,
    /// It was closed.
    Closed,
    /// It is being merged.
    Locked,
    /// It was merged.
    Merged,
}

/// A note of a merge request of a seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SeedNote {
    /// The text.
    pub body: String,
    /// The username of its author; `root` by default.
    pub author: Option<String>,
    /// Whether the service wrote it, to record an action.
    #[serde(default)]
    pub system: bool,
    /// Whether only reporters and above can see it.
    #[serde(default)]
    pub internal: bool,
}

/// The reason why a seed cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// The seed has an unknown or invalid field.
    #[error("the seed is not valid")]
    Invalid(#[source] serde_json::Error),
    /// The service refuses a part of the seed.
    #[error("{place}: {reason}")]
    Refused {
        /// The refused part: `project acme/shop, hook 1`.
        place: String,
        /// The service's error message.
        reason: String,
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
    /// [`SeedError::Invalid`] names the field that is not valid.
    pub fn from_json(value: Value) -> Result<Self, SeedError> {
        let seed: Self = serde_json::from_value(value).map_err(SeedError::Invalid)?;
        let names = seed.projects.iter().flat_map(|project| project.collections.keys());
        for name in names {
            if registry::find_seedable(name).is_none() {
                let message = format!("unknown field `{name}`");
                return Err(SeedError::Invalid(serde::de::Error::custom(message)));
            }
        }
        Ok(seed)
    }

    /// The SHA-256 digest of the seed, as hexadecimal digits.
    pub(super) fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{:x}", Sha256::digest(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_describes_every_field_and_refuses_others() {
        let schema = schemars::schema_for!(Seed).to_value();
        let mut objects: Vec<&Value> =
            schema["$defs"].as_object().expect("definitions").values().collect();
        objects.push(&schema);
        let mut field_count = 0;
        for object in objects {
            let Some(properties) = object["properties"].as_object() else { continue };
            assert_eq!(object["additionalProperties"], false, "{object}");
            for (name, field) in properties {
                assert!(field["description"].is_string(), "{name} has no description");
                field_count += 1;
            }
        }
        // Do not count collections, so that a new collection does not break this test.
        assert_eq!(field_count - registry::seedable_collections().count(), 40);
    }

    #[test]
    fn roles_are_words_or_numbers() {
        for (value, level) in
            [(Value::from(30), 30), ("Maintainer".into(), 40), ("minimal_access".into(), 5)]
        {
            assert_eq!(serde_json::from_value(value).ok(), Some(SeedLevel(level)));
        }
        for wrong in [Value::from(31), "30".into(), "boss".into(), Value::Null, true.into()] {
            assert!(serde_json::from_value::<SeedLevel>(wrong).is_err());
        }
    }
}
