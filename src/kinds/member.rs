//! Direct members of a project (reference 1, 2.3 and 4.3).
//!
//! Inherited members are never read, so they are never touched. A level is a word in manifests and
//! in the plan, and a number in requests.

use std::{borrow::Cow, sync::LazyLock};

use jiff::civil::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    field::{Accepted, FIELD, Route},
    kind::{self, Fault, Kind, Routes, Source, Spec, Subject, Table, Target},
    operation::{self, Request, Write},
    page::Rows,
    schema,
    value::{Fields, Json, Object, Value},
};

/// A person who is a member of the project itself.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Member {
    /// The username; upper and lower case are the same.
    #[schemars(
        transform = FIELD.accepted(Accepted::Never).read_as("username"),
        regex(pattern = "^[A-Za-z0-9_.-]{1,255}$"),
        example = &"alice"
    )]
    pub user: String,
    /// What the member may do.
    pub access_level: Option<Level>,
    /// The day on which the membership ends, as `YYYY-MM-DD`. `null` means never.
    #[schemars(transform = FIELD.nullable(), regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), extend("format" = "date"), example = &"2099-01-31")]
    pub expires_at: Option<String>,
}

/// A level of access (reference 1, 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level {
    /// The number that requests and answers carry.
    pub number: u8,
    /// The word that manifests and plans carry.
    pub word: &'static str,
    description: &'static str,
}

/// The levels that a member of a project can have. Whoever has no access (0) is not one.
pub const LEVELS: [Level; 6] = [
    Level {
        number: 5,
        word: "minimal_access",
        description: "Is a member, and sees nothing by that alone.",
    },
    Level { number: 10, word: "guest", description: "Sees and writes issues." },
    Level { number: 20, word: "reporter", description: "Reads the repository too." },
    Level {
        number: 30,
        word: "developer",
        description: "Pushes to branches that are not protected, and runs pipelines too.",
    },
    Level {
        number: 40,
        word: "maintainer",
        description: "Manages settings, variables, hooks and members too.",
    },
    Level { number: 50, word: "owner", description: "Does everything." },
];

impl Level {
    /// The level that `written` means: its number, or its word in any case.
    pub fn parse(written: &Json) -> Option<Self> {
        let is = |level: &Self| match written {
            Json::String(word) => word.eq_ignore_ascii_case(level.word),
            _ => written.as_u64() == Some(level.number.into()),
        };
        LEVELS.into_iter().find(is)
    }
}

impl JsonSchema for Level {
    fn schema_name() -> Cow<'static, str> {
        "Level".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // The words come first: they are what editors offer. Patterns cannot ignore case in JSON
        // schemas, so each letter says it.
        let either_case = |c: char| {
            if c.is_ascii_lowercase() {
                format!("[{}{c}]", c.to_ascii_uppercase())
            } else {
                c.into()
            }
        };
        let words: Vec<String> =
            LEVELS.iter().map(|level| level.word.chars().map(either_case).collect()).collect();
        json_schema!({
            "anyOf": [
                {
                    "type": "string",
                    "enum": LEVELS.map(|level| level.word),
                    "markdownEnumDescriptions": LEVELS.map(|level| level.description),
                },
                { "type": "integer", "enum": LEVELS.map(|level| level.number) },
                { "type": "string", "pattern": format!("^({})$", words.join("|")) },
            ],
            "examples": ["developer", 30],
        })
    }
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Member>()));

/// The section `members`.
pub struct Members;

impl Kind for Members {
    fn section(&self) -> &'static str {
        "members"
    }
    fn noun(&self) -> &'static str {
        "member"
    }
    fn table(&self) -> &'static Table {
        &TABLE
    }
    fn identity(&self) -> &'static [&'static str] {
        &["user"]
    }
    fn source(&self, target: &Target) -> Source {
        Source::List(operation::MEMBER_LIST.request().arg("id", target.id()))
    }
    fn routes(&self) -> Option<Routes> {
        Some(Routes {
            create: operation::MEMBER_CREATE,
            update: operation::MEMBER_UPDATE,
            delete: operation::MEMBER_DELETE,
        })
    }
    fn handle(&self) -> (&'static str, &'static str) {
        ("id", "user_id")
    }
    fn required(&self) -> &'static [&'static str] {
        &["access_level"]
    }

    fn rows(&self) -> Rows {
        Rows::with_id(&["username", "access_level"])
    }
    fn key(&self, fields: &Object) -> String {
        fields.get("user").map(kind::plain_text).unwrap_or_default().to_lowercase()
    }
    fn user<'f>(&self, declared: &'f Fields) -> Option<&'f str> {
        declared.get("user").and_then(Value::text)
    }
    fn access(&self, fields: &Object) -> Option<u8> {
        Some(Level::parse(fields.get("access_level")?)?.number)
    }
    // Bots of access tokens show up among the members; the service removes them along with their
    // token and in no other way.
    fn protected(&self, raw: &Object) -> Option<&'static str> {
        let name = raw.get("username").and_then(Json::as_str)?;
        let rest = name.strip_prefix("project_").or_else(|| name.strip_prefix("group_"))?;
        let bot = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        (bot.len() < rest.len() && bot.starts_with("_bot")).then_some("bot user")
    }

    fn decode(&self, spec: &Spec, raw: &Object) -> Option<Json> {
        let live = raw.get(spec.field.live_name(&spec.name)?)?;
        Some(if spec.name == "access_level" { word(live) } else { live.clone() })
    }
    fn normalise(&self, name: &str, declared: &mut Value) {
        if let ("access_level", Value::Plain(level)) = (name, declared) {
            *level = word(level);
        }
    }
    fn encode(&self, name: &str, value: &Value) -> Value {
        match value.plain().filter(|_| name == "access_level").and_then(Level::parse) {
            Some(level) => Json::from(level.number).into(),
            None => kind::cleared(value),
        }
    }
    // An edit has to carry the level, and forgets an expiry that it leaves out.
    fn sent_with_every_edit(&self, name: &str) -> bool {
        matches!(name, "access_level" | "expires_at")
    }

    fn create(&self, subject: Subject<'_>) -> Vec<Request<Write>> {
        let user = self.user(subject.declared).map(str::to_lowercase);
        let Some(id) = user.and_then(|user| subject.users.get(&user).copied().flatten()) else {
            return Vec::new();
        };
        let mut body = self.body(subject.declared, Route::Create);
        // One user a call: for several the service answers success even where it failed.
        body.insert("user_id".into(), Json::from(id).into());
        vec![operation::MEMBER_CREATE.request().arg("id", subject.target.id()).fields(body)]
    }

    fn check(&self, declared: &Fields, report: &mut dyn FnMut(Fault)) {
        let date = declared.get("expires_at").and_then(Value::text);
        if date.is_some_and(|date| date.parse::<Date>().is_err()) {
            report(Fault {
                code: "date",
                field: Some("expires_at"),
                message: "there is no such day".into(),
                help: Some("write a day of the calendar as YYYY-MM-DD".into()),
            });
        }
    }
}

/// A level as its word; one that is not known stays as it is.
fn word(level: &Json) -> Json {
    Level::parse(level).map_or_else(|| level.clone(), |level| level.word.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            Users,
            testing::{create, faults, fields, live, object, said, target, update},
        },
        operation::{MEMBER_CREATE, MEMBER_DELETE, MEMBER_UPDATE},
    };

    const RAW: &str =
        r#"{"id": 4, "username": "Alice", "access_level": 30, "expires_at": "2099-01-31"}"#;

    fn raw() -> Json {
        serde_json::from_str(RAW).unwrap()
    }

    #[test]
    fn a_level_is_one_thing_however_it_is_written() {
        for (written, canonical) in [
            (json!("guest"), json!("guest")),
            (json!("Maintainer"), json!("maintainer")),
            (json!("OWNER"), json!("owner")),
            (json!("Minimal_Access"), json!("minimal_access")),
            (json!(5), json!("minimal_access")),
            (json!(10), json!("guest")),
            (json!(20), json!("reporter")),
            (json!(30), json!("developer")),
            (json!(40), json!("maintainer")),
            (json!(50), json!("owner")),
            (json!(60), json!(60)),
            (json!("boss"), json!("boss")),
        ] {
            let mut value = Value::Plain(written);
            Members.normalise("access_level", &mut value);
            assert_eq!(value.plain(), Some(&canonical));
        }
        let mut other = Value::from("GUEST");
        Members.normalise("user", &mut other);
        assert_eq!(other, Value::from("GUEST"));
    }

    #[test]
    fn a_live_member_reads_in_the_shape_of_a_manifest() {
        let member = live(&Members, raw());
        assert_eq!(
            member.fields,
            object(
                json!({"user": "Alice", "access_level": "developer", "expires_at": "2099-01-31"})
            )
        );
        assert_eq!(
            (Members.key(&member.fields), Members.access(&member.fields)),
            ("alice".into(), Some(30))
        );
        assert_eq!(live(&Members, json!({"access_level": 35})).fields["access_level"], json!(35));
    }

    #[test]
    fn a_member_is_added_by_id_and_not_at_all_if_unknown() {
        let users = Users::from([("alice".into(), Some(4)), ("nobody".into(), None)]);
        let add = |declared: &Fields| {
            Members.create(Subject { target: &target(), declared, users: &users })
        };
        let declared =
            fields(json!({"user": "ALICE", "access_level": "developer", "expires_at": null}));
        let body = fields(json!({"user_id": 4, "access_level": 30, "expires_at": ""}));
        assert_eq!(add(&declared), [MEMBER_CREATE.request().arg("id", 7).fields(body)]);
        assert_eq!(add(&fields(json!({"user": "nobody", "access_level": "guest"}))), []);
        assert_eq!(create(&Members, &declared), []);
    }

    #[test]
    fn an_edit_carries_level_and_expiry() {
        let put =
            |body| MEMBER_UPDATE.request().arg("id", 7).arg("user_id", 4).fields(fields(body));
        let level = fields(json!({"user": "alice", "access_level": "owner"}));
        let edit = update(&Members, &level, raw(), &["access_level"]);
        assert_eq!(
            said(&edit),
            said(&[put(json!({"access_level": 50, "expires_at": "2099-01-31"}))])
        );
        let expiry = fields(json!({"user": "alice", "expires_at": null}));
        let edit = update(&Members, &expiry, raw(), &["expires_at"]);
        assert_eq!(said(&edit), said(&[put(json!({"access_level": 30, "expires_at": ""}))]));
        let removal = MEMBER_DELETE.request().arg("id", 7).arg("user_id", 4);
        assert_eq!(Members.delete(&target(), &live(&Members, raw())), [removal]);
    }

    #[test]
    fn bots_are_left_alone() {
        for (username, bot) in [
            ("project_12_bot", true),
            ("project_12_bot_a1b2", true),
            ("group_3_bot1", true),
            ("project__bot", false),
            ("project_x_bot", false),
            ("my_project_12_bot", false),
            ("alice", false),
        ] {
            assert_eq!(
                live(&Members, json!({"username": username})).protected.is_some(),
                bot,
                "{username}"
            );
        }
    }

    #[test]
    fn a_day_has_to_be_in_the_calendar() {
        for (day, valid) in [
            ("2099-01-31", true),
            ("2096-02-29", true),
            ("2099-02-29", false),
            ("2099-13-01", false),
            ("2099-00-10", false),
        ] {
            assert_eq!(
                faults(&Members, &fields(json!({"user": "alice", "expires_at": day}))).is_empty(),
                valid,
                "{day}"
            );
        }
    }
}
