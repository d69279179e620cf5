//! Levels of access: words in manifests and plans, numbers in requests and responses.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{release::Release, value::Json};

/// A level of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessLevel {
    /// The number in requests and responses.
    pub number: u8,
    /// The word in manifests and plans.
    pub word: &'static str,
    /// The release that added the level; `None` for a level of the reference.
    pub since: Option<Release>,
    description: &'static str,
}

/// The number of the level of members without any permission.
pub const MINIMAL_ACCESS: u8 = 5;
/// The number of the lowest level that may push.
pub const DEVELOPER: u8 = 30;
/// The number of the lowest level that may administer a project.
pub const MAINTAINER: u8 = 40;
/// The number of the level that may do everything.
pub const OWNER: u8 = 50;

/// The levels of members. No access (0) is not a level of members.
pub const MEMBER_LEVELS: [AccessLevel; 8] = [
    new_level(MINIMAL_ACCESS, "minimal_access", "Is a member without any permission."),
    new_level(10, "guest", "Sees and writes issues."),
    AccessLevel {
        since: Some(Release::new(17, 7)),
        ..new_level(
            15,
            "planner",
            "Plans with issues, milestones and the like (from release 17.7).",
        )
    },
    new_level(20, "reporter", "Reads the repository too."),
    AccessLevel {
        since: Some(Release::new(18, 7)),
        ..new_level(
            25,
            "security_manager",
            "Manages security findings and policies (from release 18.7).",
        )
    },
    new_level(
        DEVELOPER,
        "developer",
        "Pushes to branches that are not protected, and runs pipelines too.",
    ),
    new_level(MAINTAINER, "maintainer", "Manages settings, variables, hooks and members too."),
    new_level(OWNER, "owner", "Does everything."),
];

/// Levels that only rules for pushing and merging have, in addition to the levels of members.
const RULE_ONLY_LEVELS: [AccessLevel; 2] = [
    new_level(0, "no_access", "Nobody."),
    new_level(60, "admin", "Administrators of the service."),
];

const fn new_level(number: u8, word: &'static str, description: &'static str) -> AccessLevel {
    AccessLevel { number, word, since: None, description }
}

impl AccessLevel {
    /// The level with the number or the word in `value`; `None` for an unknown level. The case of a
    /// word is ignored.
    pub fn parse(value: &Json) -> Option<Self> {
        MEMBER_LEVELS.into_iter().chain(RULE_ONLY_LEVELS).find(|level: &Self| match value {
            Json::String(word) => word.eq_ignore_ascii_case(level.word),
            _ => value.as_u64() == Some(level.number.into()),
        })
    }

    /// The word of a level. Unknown levels are returned unchanged.
    pub fn convert_to_word(level: &Json) -> Json {
        Self::parse(level).map_or_else(|| level.clone(), |level| level.word.into())
    }

    /// The number of a level. Unknown levels are returned unchanged.
    pub fn convert_to_number(level: &Json) -> Json {
        Self::parse(level).map_or_else(|| level.clone(), |level| level.number.into())
    }
}

impl JsonSchema for AccessLevel {
    fn schema_name() -> Cow<'static, str> {
        "Level".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        level_schema(&MEMBER_LEVELS, &["developer".into(), 30.into()])
    }
}

/// The schema of a level in a rule, which also accepts `no_access` and `admin`.
pub fn rule_level_schema() -> Schema {
    let [nobody, admin] = RULE_ONLY_LEVELS;
    let push_levels =
        MEMBER_LEVELS.into_iter().filter(|level| [DEVELOPER, MAINTAINER].contains(&level.number));
    let levels: Vec<_> = [nobody].into_iter().chain(push_levels).chain([admin]).collect();
    level_schema(&levels, &["maintainer".into(), 40.into()])
}

/// The schema of a value that is one of `levels`. Words come first, because editors suggest the
/// first values. JSON schema patterns cannot ignore case, so the pattern lists both cases of each
/// letter.
fn level_schema(levels: &[AccessLevel], examples: &[Json]) -> Schema {
    let patterns: Vec<String> =
        levels.iter().map(|level| level.word.chars().map(either_case_pattern).collect()).collect();
    let words: Vec<_> = levels.iter().map(|level| level.word).collect();
    let descriptions: Vec<_> = levels.iter().map(|level| level.description).collect();
    let numbers: Vec<_> = levels.iter().map(|level| level.number).collect();
    json_schema!({
        "anyOf": [
            { "type": "string", "enum": words, "markdownEnumDescriptions": descriptions },
            { "type": "integer", "enum": numbers },
            { "type": "string", "pattern": format!("^({})$", patterns.join("|")) },
        ],
        "examples": examples,
    })
}

fn either_case_pattern(c: char) -> String {
    if c.is_ascii_lowercase() { format!("[{}{c}]", c.to_ascii_uppercase()) } else { c.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_spelling_of_a_level_is_parsed() {
        for (spelling, canonical) in [
            (json!("guest"), json!("guest")),
            (json!("Maintainer"), json!("maintainer")),
            (json!("OWNER"), json!("owner")),
            (json!("Minimal_Access"), json!("minimal_access")),
            (json!(0), json!("no_access")),
            (json!(5), json!("minimal_access")),
            (json!(10), json!("guest")),
            (json!(15), json!("planner")),
            (json!(25), json!("security_manager")),
            (json!(20), json!("reporter")),
            (json!(30), json!("developer")),
            (json!(40), json!("maintainer")),
            (json!(50), json!("owner")),
            (json!(60), json!("admin")),
            (json!(35), json!(35)),
            (json!("boss"), json!("boss")),
        ] {
            assert_eq!(AccessLevel::convert_to_word(&spelling), canonical);
            let number = AccessLevel::convert_to_number(&spelling);
            assert_eq!(AccessLevel::convert_to_word(&number), canonical, "there and back");
        }
    }
}
