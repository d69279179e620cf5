//! Kinds that nobody has: each feature of the description, proven without any real kind. They are
//! not in the list of kinds; their operations are borrowed, because there is one table of those.
//!
//! `toys` are read from a list and edited, `loans` are a list within their container's object and
//! can only be replaced, and a container has one `lid` or none.

use std::sync::LazyLock;

use schemars::JsonSchema;

use super::*;
use crate::{
    field::{Accepted, FIELD, Named, Secrecy},
    level::{Level, RuleLevel},
    operation, schema,
    secret::Reference,
};

/// A toy, by its name and the room that it is in.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct Toy {
    /// The name.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate).harmless())]
    name: String,
    /// The room.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate).harmless())]
    room: String,
    /// What a child has to be allowed to play with it.
    #[schemars(transform = FIELD.level().read_as("play_level").with_every_edit().harmless())]
    level: Option<Level>,
    /// Where it calls home.
    #[schemars(transform = FIELD.as_url().secrecy(Secrecy::Address).harmless())]
    home: Option<String>,
    /// The word that it says there. Another home forgets it.
    #[schemars(transform = FIELD.write_only().secrecy(Secrecy::Reference).forgotten_with("home").harmless())]
    word: Option<Reference>,
    /// Who looks after it.
    #[schemars(transform = FIELD.names(Named::User, "keeper_id").read_as("keeper_name").in_any_case().harmless())]
    keeper: Option<String>,
    /// Who may play.
    #[schemars(transform = FIELD.as_rows().read_as("player_rows").send_as("players_rows").harmless())]
    players: Option<Vec<Player>>,
    /// Its colours.
    #[schemars(transform = FIELD.as_set().nullable().harmless())]
    colours: Option<Vec<String>>,
    /// A label. Left out of an edit, it is lost.
    #[schemars(transform = FIELD.nullable().with_every_edit().premium().harmless())]
    label: Option<String>,
    /// Where it used to stand; for manifests only.
    #[schemars(transform = FIELD.local().harmless())]
    previously: Option<Vec<String>>,
    /// A picture.
    #[schemars(transform = FIELD.upload().read_as("picture_url").harmless())]
    picture: Option<Reference>,
}

/// Who may play: a user, a group, or everybody of a level.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct Player {
    /// A level.
    #[schemars(transform = FIELD.level().harmless())]
    level: Option<RuleLevel>,
    /// A user.
    #[schemars(transform = FIELD.names(Named::User, "user_id").harmless())]
    user: Option<String>,
    /// A group.
    #[schemars(transform = FIELD.names(Named::Group, "group_id").harmless())]
    group: Option<String>,
}

/// A group that borrows all toys.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct Loan {
    /// The group.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate).names(Named::Group, "group_id").read_as("group_full_path").harmless())]
    group: String,
    /// How far it may go.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate).read_as("group_level").level().harmless())]
    level: Option<Level>,
    /// Until when.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate).nullable().harmless())]
    until: Option<String>,
}

/// The lid of the box.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used")]
struct Lid {
    /// What it is made of.
    material: Option<String>,
}

static TOYS: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Toy>()));
static LOANS: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Loan>()));
static LIDS: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Lid>()));

static TOY: Kind = Kind {
    section: "toys",
    noun: "toy",
    shape: Shape::List,
    identity: &["name", "room"],
    required: &["level"],
    removal: Removal::Nothing,
    homes: &[Home {
        fields: &TOYS,
        place: Place::List(operation::PROTECTED_BRANCH_LIST),
        create: Create::With(operation::PROTECTED_BRANCH_CREATE),
        change: Change::Edit(operation::PROTECTED_BRANCH_UPDATE),
        delete: Some(operation::PROTECTED_BRANCH_DELETE),
        handle: &[Handle::path("name", "name"), Handle::query("room", "filter[room]")],
        rows: Rows { keys: &["name", "room"], also: &[] },
        needs: &[Capability::Ci],
        ..Home::PLAIN
    }],
    rules: &Toys,
};

static LOAN: Kind = Kind {
    section: "loans",
    noun: "loan",
    shape: Shape::List,
    identity: &["group"],
    required: &["level"],
    removal: Removal::Nothing,
    homes: &[Home {
        fields: &LOANS,
        place: Place::In("loaned_to"),
        create: Create::With(operation::SHARE_CREATE),
        change: Change::Replace,
        delete: Some(operation::SHARE_DELETE),
        handle: &[Handle::path("group_id", "group_id")],
        rows: Rows { keys: &["group_id"], also: &["group_full_path"] },
        ..Home::PLAIN
    }],
    rules: &Plain,
};

static LID: Kind = Kind {
    section: "lid",
    noun: "lid",
    shape: Shape::Mapping,
    identity: &[],
    required: &[],
    removal: Removal::Nothing,
    homes: &[Home {
        fields: &LIDS,
        place: Place::Optional(operation::PUSH_RULE_GET),
        create: Create::With(operation::PUSH_RULE_CREATE),
        change: Change::Edit(operation::PUSH_RULE_UPDATE),
        delete: Some(operation::PUSH_RULE_DELETE),
        ..Home::PLAIN
    }],
    rules: &Plain,
};

/// The toys of a project.
pub(crate) fn toys() -> Section {
    TOY.in_scope(Scope::Project).unwrap()
}

/// To whom a project is lent.
pub(crate) fn loans() -> Section {
    LOAN.in_scope(Scope::Project).unwrap()
}

/// The lid of a project.
pub(crate) fn lid() -> Section {
    LID.in_scope(Scope::Project).unwrap()
}

/// A lower level protects a toy less, one that nobody may touch takes CI away, and whoever keeps it
/// needs access.
struct Toys;

impl Rules for Toys {
    fn protected(&self, raw: &Object) -> Option<&'static str> {
        raw.contains_key("glued").then_some("glued to the floor")
    }

    fn waits(
        &self,
        _: Section,
        name: &str,
        _: &Fields,
        live: Option<&LiveEntry>,
        _: bool,
    ) -> Option<&'static str> {
        (name == "label" && live.is_none()).then_some("until the paint is dry")
    }

    fn effects(&self, _who: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let level = |fields: &Object| fields.get("level").and_then(Level::parse).map(|l| l.number);
        match (level(before), level(after)) {
            (Some(before), Some(after)) if after < before => {
                vec![Effect::Weakens(format!("lower the level from {before} to {after}"))]
            }
            (None, Some(_)) => vec![Effect::Provides(Capability::People)],
            (Some(_), None) => vec![Effect::Takes(Capability::People)],
            _ => Vec::new(),
        }
    }
}

mod tests {
    use serde_json::json;

    use super::{
        calls::Act,
        testing::{act, fields, live, object, requests, said, target},
        *,
    };
    use crate::{
        field::Compare,
        operation::{
            PROTECTED_BRANCH_CREATE, PROTECTED_BRANCH_DELETE, PROTECTED_BRANCH_UPDATE,
            PUSH_RULE_CREATE, PUSH_RULE_DELETE, PUSH_RULE_UPDATE, SHARE_CREATE, SHARE_DELETE,
        },
        release::Known,
        value::Value,
    };

    fn names() -> Names {
        let mut names = Names::default();
        names.insert(Named::User, "Alice", Some(3));
        names.insert(Named::User, "nobody", None);
        names.insert(Named::Group, "acme/Kids", Some(5));
        names
    }

    fn robot() -> Json {
        json!({
            "id": 9, "name": "Robot", "room": "attic/*", "play_level": 30, "home": "https://h/",
            "keeper_name": "Alice", "keeper_id": 3, "colours": ["red"], "label": "L",
            "player_rows": [
                {"id": 1, "level": 40, "user_id": 3, "group_id": null},
                {"id": 2, "level": 0, "user_id": null, "group_id": null},
                {"id": 4, "level": 30, "group_id": 5},
            ],
            "picture_url": null, "other": 1,
        })
    }

    #[test]
    fn a_live_entry_reads_in_comparable_form() {
        let robot = live(toys(), robot());
        assert_eq!(
            robot.fields,
            object(json!({
                "name": "Robot", "room": "attic/*", "level": "developer", "home": "https://h/",
                "keeper": "Alice", "colours": ["red"], "label": "L", "picture": null,
                "players": [
                    {"id": 1, "user_id": 3}, {"id": 2, "level": "no_access"},
                    {"id": 4, "group_id": 5},
                ],
            }))
        );
        assert_eq!(robot.handle, [json!("Robot"), json!("attic/*")]);
        assert_eq!((robot.tier, robot.protected), (Tier::Premium, None));
        let glued = live(toys(), json!({"name": "x", "room": "*", "glued": true}));
        assert_eq!((glued.tier, glued.protected), (Tier::Free, Some("glued to the floor")));
    }

    #[test]
    fn what_nobody_asks_for_is_not_kept_but_what_edits_carry_is() {
        let kept = toys().read(&object(robot()), &|name| ["home", "other"].contains(&name));
        let names: Vec<_> = kept.fields.keys().map(String::as_str).collect();
        assert_eq!(names, ["name", "room", "level", "home", "label", "other"]);
        // A replacement adds all of it anew, whatever is declared.
        let raw = json!({"group_id": 5, "group_full_path": "acme/Kids", "group_level": 10, "until": "2099-01-31"});
        let kept = loans().read(&object(raw), &|_| false);
        let names: Vec<_> = kept.fields.keys().map(String::as_str).collect();
        assert_eq!(names, ["group", "level", "until"]);
    }

    #[test]
    fn a_list_within_an_object_is_read_whole_or_not_at_all() {
        let read = |object: Json| {
            loans().read_within(&self::object(object), &|_| true).map(|rows| rows.len())
        };
        let row = json!({"group_id": 5, "group_full_path": "acme/kids"});
        assert_eq!(read(json!({"loaned_to": [row, row]})), Some(2));
        assert_eq!(read(json!({"loaned_to": []})), Some(0));
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({"loaned_to": [row, {"group_id": 5}]})), None);
        assert_eq!(read(json!({"loaned_to": [row, 5]})), None);
    }

    #[test]
    fn an_entry_is_told_by_its_identity() {
        assert_eq!(toys().name(&object(json!({"name": "Robot", "room": "*"}))), "Robot@*");
        let identity = Plain.identify(loans(), &object(json!({"group": "Acme/Kids"})));
        assert_eq!(identity.keys, ["acme/kids"], "names are the same in any case");
        assert_eq!(lid().name(&object(json!({"material": "oak"}))), "");
    }

    #[test]
    fn what_a_home_is_follows_from_its_operations() {
        assert!(lid().is_removable() && !toys().is_removable() && !loans().is_removable());
        assert!(!toys().may_come_twice(), "its create is refused the second time");
        let twice = Home { create: Create::With(operation::HOOK_CREATE), ..Home::PLAIN };
        let twice = Section { kind: &TOY, home: Box::leak(Box::new(twice)) };
        assert!(twice.may_come_twice());
        assert!(!toys().comes_with_container());
        assert!(TOY.in_scope(Scope::Group).is_none());
    }

    fn create(declared: &Fields) -> Result<Vec<Call>, Unable> {
        let (target, names) = (target(), names());
        let job = Job {
            section: toys(),
            target: &target,
            names: &names,
            release: Known::NotAsked,
            is_alone: true,
            act: Act::Create(declared),
        };
        toys().rules.calls(&job)
    }

    #[test]
    fn a_create_carries_what_it_accepts_in_the_form_that_is_sent() {
        let mut declared = fields(json!({
            "name": "Robot", "room": "*", "level": "maintainer", "keeper": "ALICE",
            "label": null, "previously": ["cellar"], "players": [{"user": "alice"}, {"level": "admin"}],
        }));
        declared.insert("word".into(), Value::Secret(Reference::Env("WORD".into())));
        let mut body = fields(json!({
            "name": "Robot", "room": "*", "level": 40, "keeper_id": 3, "label": "",
            "players_rows": [{"user_id": 3}, {"level": 60}],
        }));
        body.insert("word".into(), Value::Secret(Reference::Env("WORD".into())));
        let calls = requests(create(&declared).unwrap());
        assert_eq!(
            said(&calls),
            said(&[PROTECTED_BRANCH_CREATE.request().arg("id", 7).fields(body)])
        );
        assert!(calls[0].is_sensitive("word") && calls[0].is_sensitive("home"));
        assert!(!calls[0].is_sensitive("label"));
    }

    #[test]
    fn what_is_not_known_by_name_is_no_call_but_a_reason() {
        for (declared, at, code) in [
            (json!({"name": "x", "keeper": "nobody"}), "keeper", "unknown-user"),
            (json!({"name": "x", "keeper": "never-asked"}), "keeper", "unknown-user"),
            (json!({"name": "x", "players": [{"group": "acme/gone"}]}), "players", "unknown-group"),
        ] {
            match create(&fields(declared.clone())) {
                Err(Unable::Because { code: found, field, .. }) => {
                    assert_eq!((found, &*field), (code, at), "{declared}");
                }
                other => panic!("{declared}: {other:?}"),
            }
        }
    }

    fn change(section: Section, declared: &Fields, raw: Json, changed: &[&str]) -> Vec<Call> {
        let (target, names, live) = (target(), names(), live(section, raw));
        let act = Act::Change(declared, &live, changed);
        section
            .rules
            .calls(&Job {
                section,
                target: &target,
                names: &names,
                release: Known::NotAsked,
                is_alone: true,
                act,
            })
            .unwrap()
    }

    #[test]
    fn an_edit_carries_what_changes_what_would_be_lost_and_what_would_be_forgotten() {
        let put = |body| {
            let request = PROTECTED_BRANCH_UPDATE.request().arg("id", 7).arg("name", "Robot");
            request.query("filter[room]", "attic/*").fields(body)
        };
        let mut declared = fields(
            json!({"name": "Robot", "room": "attic/*", "colours": ["blue"], "home": "https://new"}),
        );
        declared.insert("word".into(), Value::Secret(Reference::Env("WORD".into())));
        let calls = requests(change(toys(), &declared, robot(), &["colours"]));
        let body = fields(json!({"colours": ["blue"], "level": 30, "label": "L"}));
        assert_eq!(said(&calls), said(&[put(body)]));
        let repeated: Vec<_> = calls[0].repeated().map(|(name, _)| name).collect();
        assert_eq!(repeated, ["level", "label"], "as they are there");
        assert!(calls[0].goes_stale());

        let calls = requests(change(toys(), &declared, robot(), &["home"]));
        let mut body = fields(json!({"home": "https://new", "level": 30, "label": "L"}));
        body.insert("word".into(), Value::Secret(Reference::Env("WORD".into())));
        assert_eq!(said(&calls), said(&[put(body)]));

        declared.insert("picture".into(), Value::File("robot.png".into()));
        let calls = requests(change(toys(), &declared, robot(), &["colours", "picture"]));
        let file = Fields::from([("picture".to_owned(), Value::File("robot.png".into()))]);
        let body = fields(json!({"colours": ["blue"], "level": 30, "label": "L"}));
        assert_eq!(said(&calls), said(&[put(body), put(file)]), "a file comes by itself");
    }

    #[test]
    fn an_edit_of_rows_adds_and_removes() {
        let rows = |declared: Json| {
            let declared = fields(json!({"players": declared}));
            let calls = requests(change(toys(), &declared, robot(), &["players"]));
            calls[0].body_fields().unwrap()["players_rows"].plain().unwrap().clone()
        };
        assert_eq!(
            rows(json!([{"user": "alice"}, {"level": "maintainer"}])),
            json!([{"id": 2, "_destroy": true}, {"id": 4, "_destroy": true}, {"level": 40}])
        );
        assert_eq!(
            rows(json!([{"user": "alice"}, {"level": "no_access"}, {"group": "ACME/kids"}])),
            json!([])
        );
        assert_eq!(
            rows(json!([])),
            json!([{"id": 1, "_destroy": true}, {"id": 2, "_destroy": true}, {"id": 4, "_destroy": true}])
        );
    }

    #[test]
    fn an_entry_is_addressed_by_path_and_query() {
        let removal = act(toys(), &names(), Act::Remove(&live(toys(), robot())));
        let request = PROTECTED_BRANCH_DELETE.request().arg("id", 7).arg("name", "Robot");
        assert_eq!(removal, [request.query("filter[room]", "attic/*")]);
        assert_eq!(
            removal[0].target(),
            "/projects/7/protected_branches/Robot?filter%5Broom%5D=attic%2F%2A"
        );
    }

    #[test]
    fn a_replacement_removes_adds_and_puts_back() {
        let raw = json!({"group_id": 5, "group_full_path": "acme/Kids", "group_level": 10, "until": "2099-01-31"});
        let declared = fields(json!({"group": "acme/kids", "level": "reporter"}));
        let calls = change(loans(), &declared, raw, &["level"]);
        let restores: Vec<_> = calls.iter().map(|call| call.restores).collect();
        assert_eq!(restores, [false, false, true]);
        let add = |level| {
            SHARE_CREATE
                .request()
                .arg("id", 7)
                .fields(fields(json!({"group_id": 5, "level": level, "until": "2099-01-31"})))
        };
        let remove = SHARE_DELETE.request().arg("id", 7).arg("group_id", 5);
        assert_eq!(said(&requests(calls)), said(&[remove, add(20), add(10)]));
    }

    /// Why `raw` is not changed, if so; `changed` with what is declared of it.
    fn why_not(section: Section, declared: Json, mut raw: Json, lacks: &str) -> Option<String> {
        raw.as_object_mut().unwrap().remove(lacks);
        let (target, names, live, declared) =
            (target(), names(), live(section, raw), fields(declared));
        let changed: Vec<_> = declared.keys().map(String::as_str).collect();
        let act = Act::Change(&declared, &live, &changed);
        match section.rules.calls(&Job {
            section,
            target: &target,
            names: &names,
            release: Known::NotAsked,
            is_alone: true,
            act,
        }) {
            Ok(_) => None,
            Err(Unable::Unseen(cause)) => Some(cause.to_string()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_change_would_reset_has_to_be_known() {
        let blue = || json!({"colours": ["blue"]});
        assert_eq!(why_not(toys(), blue(), robot(), "other"), None);
        let why = "the service's answer lacks `level`, which this edit would reset";
        assert_eq!(why_not(toys(), blue(), robot(), "play_level").unwrap(), why);
        let declared = json!({"colours": ["blue"], "level": "guest"});
        assert_eq!(why_not(toys(), declared, robot(), "play_level"), None, "it is sent");
        assert_eq!(why_not(toys(), blue(), robot(), "label"), None, "that is null");

        let lent = || json!({"group_id": 5, "group_full_path": "acme/kids", "group_level": 10, "until": null});
        let level = || json!({"level": "guest"});
        assert_eq!(why_not(loans(), level(), lent(), "until"), None, "that is null");
        let why = "the service's answer lacks `level`, which cannot be put back";
        assert_eq!(why_not(loans(), level(), lent(), "group_level").unwrap(), why);
    }

    #[test]
    fn one_thing_or_none_needs_no_handle() {
        let oak = fields(json!({"material": "oak"}));
        let post = PUSH_RULE_CREATE.request().arg("id", 7).fields(oak.clone());
        assert_eq!(act(lid(), &names(), Act::Create(&oak)), [post]);
        let put = PUSH_RULE_UPDATE.request().arg("id", 7).fields(oak.clone());
        let calls = change(lid(), &oak, json!({"material": "pine"}), &["material"]);
        assert_eq!(requests(calls), [put]);
        let gone = act(lid(), &names(), Act::Remove(&live(lid(), json!({"material": "pine"}))));
        assert_eq!(gone, [PUSH_RULE_DELETE.request().arg("id", 7)]);
    }

    #[test]
    fn what_cannot_be_removed_needs_no_call() {
        let kept = Home { handle: &[], delete: None, ..Home::PLAIN };
        let section = Section { kind: &LID, home: Box::leak(Box::new(kept)) };
        let (target, names) = (target(), names());
        let live = live(lid(), json!({}));
        let job = Job {
            section,
            target: &target,
            names: &names,
            release: Known::NotAsked,
            is_alone: true,
            act: Act::Remove(&live),
        };
        assert_eq!(job.plain(), Err(Unable::Needless));
    }

    #[test]
    fn effects_follow_from_both_forms() {
        let effects =
            |before: Json, after: Json| Toys.effects(None, &object(before), &object(after));
        let level = |level: &str| json!({"level": level});
        assert_eq!(
            effects(level("maintainer"), level("guest")),
            [Effect::Weakens("lower the level from 40 to 10".into())]
        );
        assert_eq!(effects(level("guest"), level("maintainer")), []);
        assert_eq!(effects(json!({}), level("guest")), [Effect::Provides(Capability::People)]);
        assert_eq!(effects(level("guest"), json!({})), [Effect::Takes(Capability::People)]);
        assert_eq!(Plain.effects(None, &Object::new(), &object(level("guest"))), []);
    }

    fn spec(name: &str) -> &'static Spec {
        TOYS.get(name).unwrap()
    }

    #[test]
    fn what_is_written_in_several_ways_is_normalised_to_one() {
        for (name, written, normal) in [
            ("level", json!("Maintainer"), json!("maintainer")),
            ("level", json!(40), json!("maintainer")),
            ("level", json!(35), json!(35)),
            (
                "players",
                json!([{"level": 40}, {"level": "NO_ACCESS"}, {"user": "Alice"}]),
                json!([{"level": "maintainer"}, {"level": "no_access"}, {"user": "Alice"}]),
            ),
            ("label", json!("Maintainer"), json!("Maintainer")),
        ] {
            let mut value = Value::Plain(written);
            forms::normalise(spec(name), &mut value);
            assert_eq!(value, Value::Plain(normal), "{name}");
        }
    }

    #[test]
    fn what_is_named_is_known_by_field() {
        let declared = fields(json!({
            "keeper": "Alice", "players": [{"user": "bob"}, {"level": "guest"}, {"group": "acme/kids"}],
            "name": "carol",
        }));
        let named = forms::named_by(toys(), &declared);
        let named: Vec<_> =
            named.iter().map(|(field, named, name)| (&**field, *named, &**name)).collect();
        assert_eq!(
            named,
            [
                ("keeper", Named::User, "Alice"),
                ("players", Named::User, "bob"),
                ("players", Named::Group, "acme/kids"),
            ]
        );
    }

    #[test]
    fn rows_are_compared_by_id_and_shown_by_name() {
        let declared = json!([{"user": "alice"}, {"level": "no_access"}, {"group": "acme/kids"}]);
        let comparable = forms::comparable(Some(spec("players")), &declared, &names());
        assert_eq!(comparable, json!([{"user_id": 3}, {"level": "no_access"}, {"group_id": 5}]));
        let live = live(toys(), robot()).fields["players"].clone();
        assert!(same(Compare::Rows, &comparable, &live), "{live}");
        for other in [
            json!([{"user": "alice"}, {"level": "no_access"}]),
            json!([{"user": "alice"}, {"level": "guest"}, {"group": "acme/kids"}]),
            json!([{"user": "bob"}, {"level": "no_access"}, {"group": "acme/kids"}]),
        ] {
            let other = forms::comparable(Some(spec("players")), &other, &names());
            assert!(!same(Compare::Rows, &other, &live), "{other}");
        }
        assert_eq!(
            forms::shown(Some(spec("players")), &live, &names()),
            json!([{"user": "alice"}, {"level": "no_access"}, {"group": "acme/kids"}])
        );
        let strangers = json!([{"id": 8, "user_id": 77}]);
        assert_eq!(
            forms::shown(Some(spec("players")), &strangers, &names()),
            json!([{"user_id": 77}]),
            "whom nobody named is shown by id"
        );
    }

    #[test]
    fn two_values_are_the_same_as_their_field_says() {
        for (compare, declared, live, is_same) in [
            (Compare::Exact, json!("a"), json!("A"), false),
            (Compare::AnyCase, json!("a"), json!("A"), true),
            (Compare::Set, json!(["a", "b"]), json!(["b", "a"]), true),
            (Compare::Exact, json!(["a", "b"]), json!(["b", "a"]), false),
            (Compare::Set, json!(["a"]), json!(["a", "b"]), false),
            (Compare::Url, json!("https://H:443"), json!("https://h/"), true),
            (Compare::Exact, json!("https://H"), json!("https://h/"), false),
            (Compare::Exact, json!(null), json!(""), true),
            (Compare::Exact, json!(""), json!(null), true),
            (Compare::Exact, json!(false), json!(null), true),
            (Compare::Exact, json!(null), json!(false), false),
            (Compare::Exact, json!(1), json!(1.0), true),
            (Compare::Exact, json!({"a": 1}), json!({"a": 1, "b": 2}), true),
            (Compare::Exact, json!({"a": 1, "b": 2}), json!({"a": 1}), false),
            (Compare::Exact, json!({"a": null}), json!({}), true),
            (Compare::Rows, json!([]), json!([]), true),
            (Compare::Rows, json!([]), json!([{"id": 1, "user_id": 3}]), false),
        ] {
            assert_eq!(same(compare, &declared, &live), is_same, "{compare:?} {declared} {live}");
        }
    }
}
