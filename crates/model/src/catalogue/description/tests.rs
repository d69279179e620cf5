//! Tests of description files, and of the kinds made from them.

use serde_json::json;

use super::*;
use crate::{
    field::{Acceptance, Equality, NamedObject, Scope, Secrecy, Tier},
    kind::{Effect, ReadSource, Risk, Section, forms, risk, testing},
    operation::{Method, RetrySafety, collection::EntryPath},
    release::Release,
    value::{Json, Object},
};

/// A description with every key.
const FULL_DESCRIPTION: &str = r"
section: toys
noun: toy
about: A thing to play with.
identity: [url, size]
removal: weakens
name_field: title
traits: [refuses_duplicates, returns_entry]
keys: [code]
fields:
  - {name: url, about: Where it is., type: address, weakens: never, compare: url, examples: ['https://h/x']}
  - {name: size, about: How large it is., type: integer, weakens: when_lower, valid: {size: 1..9}}
  - {name: title, about: What it is called., type: text, weakens: never, valid: {pattern: '^[a-z]+$'}, nullable: true}
  - name: kind
    about: What it is.
    type: word
    weakens: when_changed
    required: on_create
    words: [{word: ball, about: It is round.}, {word: kite, about: It flies.}]
    send_as: toy_kind
    read: {as: toy_kind_name}
  - {name: colours, about: Its colours., type: texts, weakens: never, compare: set, with_every_edit: true}
  - {name: nick, about: Its other name., type: text, weakens: never, compare: any_case, sensitive: true}
  - {name: key, about: What opens it., type: secret, weakens: never, relations: {reset_by: url}}
  - {name: note, about: What is written on it., type: text, weakens: never, read: never}
  - {name: until, about: When it goes., type: date, weakens: never, available: {tier: premium, since: '16.2', until: '18.0'}}
  - {name: loud, about: Whether it is loud., type: boolean, weakens: when_off, available: {only: project}}
  - {name: new_size, about: The new size., type: integer, weakens: never, accepted: by_call}
homes:
  - path: /projects/:id/play/toys/:toy_code?deep=false&most=3
    inherited: [owner!=project]
    available: {tier: premium, since: '16.2'}
    seen_from: developer
  - path: /groups/:id/toys/:toy_code
";

fn parse_kind(text: &str) -> serde_json::Result<Kind> {
    let parsed = yaml::parse(text);
    yaml::read_leaked(parsed.documents[0].to_json())
}

fn try_build_kind(
    text: &str,
    registry: &Registry,
    reserved: &[String],
) -> Result<DescribedKind, Vec<DescriptionFault>> {
    let json = yaml::parse(text).documents[0].to_json();
    DescribedKind::from_description(parse_kind(text).unwrap(), &json, registry, reserved)
}

fn build_kind(text: &str) -> DescribedKind {
    try_build_kind(text, &Registry::with_built_in_kinds(), &[])
        .unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn section_in_scope(described: &DescribedKind, scope: Scope) -> Section {
    described.kind.find_section(scope).unwrap()
}

fn object(json: Json) -> Object {
    testing::object(json)
}

#[test]
fn every_built_in_file_describes_a_kind() {
    let add_kind = |registry: Registry, kind: Kind| {
        let files =
            DESCRIPTION_TEXTS.iter().map(|file| serde_json::from_str::<Json>(file).unwrap());
        let description = files.into_iter().find(|file| file["section"] == kind.section).unwrap();
        let mut faults = check::check(&kind, &description, &registry, &[]);
        // A developer has checked the access and the shared paths of the built-in kinds.
        let is_accepted = |text: &str| {
            text.starts_with("this gives access") || text.starts_with("undrift already knows")
        };
        faults.retain(|fault| !is_accepted(&fault.message) && kind.hooks.is_none());
        assert_eq!(faults, []);
        let described_kind = make::make_kind(kind, &registry).unwrap();
        registry.with_kind(described_kind)
    };
    let registry = super::read_descriptions().into_iter().fold(Registry::default(), add_kind);
    assert_eq!(registry.kinds().len(), DESCRIPTION_TEXTS.len());
    assert_eq!(registry.kinds().len(), Registry::with_built_in_kinds().kinds().len());
}

#[test]
fn a_kind_has_all_described_properties() {
    let toys = build_kind(FULL_DESCRIPTION);
    let (kind, section) = (toys.kind, section_in_scope(&toys, Scope::Project));
    assert_eq!((kind.section, kind.noun, kind.identity), ("toys", "toy", &["url", "size"][..]));
    assert_eq!(kind.required_fields, ["kind"]);
    let names = |scope_section: Section| -> Vec<_> {
        scope_section.specs().iter().map(|spec| spec.name).collect()
    };
    let field_names =
        ["url", "size", "title", "kind", "colours", "nick", "key", "note", "until", "loud"];
    assert_eq!(names(section), field_names);
    assert_eq!(names(section_in_scope(&toys, Scope::Group)), field_names[..9]);
    let field = |name| section.field(name);
    assert_eq!((field("url").secrecy(), field("url").compare), (Secrecy::Address, Equality::Url));
    assert_eq!(field("kind").sent_name(), "toy_kind");
    assert_eq!(field("kind").live_name(), Some("toy_kind_name"));
    assert_eq!((field("key").secrecy(), field("key").live_name()), (Secrecy::Reference, None));
    assert_eq!(field("key").relations.reset_by, Some("url"));
    assert_eq!(
        (field("nick").secrecy(), field("nick").compare),
        (Secrecy::Sensitive, Equality::AnyCase)
    );
    assert!(field("title").nullable && field("colours").with_every_edit);
    assert_eq!((field("note").secrecy(), field("note").live_name()), (Secrecy::Open, None));
    assert_eq!(field("until").available.tier, Tier::Premium);
    assert_eq!(
        field("until").available.since.zip(field("until").available.until),
        Some((Release::new(16, 2), Release::new(18, 0)))
    );
    let is_valid = |entry: Json| jsonschema::is_valid(&section.table().schema, &entry);
    let entry_with = |name: &str, value: Json| {
        let mut entry = json!({"url": "https://h", "size": 3});
        entry[name] = value;
        entry
    };
    assert!(
        is_valid(entry_with("kind", "kite".into())) && !is_valid(entry_with("kind", "car".into()))
    );
    assert!(is_valid(entry_with("size", 9.into())) && !is_valid(entry_with("size", 10.into())));
    assert!(
        is_valid(entry_with("title", Json::Null)) && !is_valid(entry_with("title", "B".into()))
    );
    assert!(
        is_valid(entry_with("key", json!({"env": "A"})))
            && !is_valid(entry_with("key", "a".into()))
    );
    assert!(
        is_valid(entry_with("url", json!({"env": "A"})))
            && !is_valid(entry_with("colours", "red".into()))
    );
    assert!(!is_valid(json!({"url": "https://h"})) && !is_valid(entry_with("other", 1.into())));
}

#[test]
fn only_get_operations_are_reads() {
    let toys = build_kind(FULL_DESCRIPTION);
    for op in &toys.operations {
        let is_read = matches!(op, AnyOp::Read(_));
        assert_eq!(is_read, op.row().method == Method::Get, "{}", op.row().id);
        assert!(op.row().path.contains("/:id/"), "{}", op.row().path);
    }
    let scoped_kind = section_in_scope(&toys, Scope::Project).scoped_kind;
    let (create, edit) =
        (scoped_kind.operations.create.unwrap(), scoped_kind.operations.edit.unwrap());
    assert_eq!(
        (create.row().retry_safety, create.row().shows_object),
        (RetrySafety::RefusesDuplicates, true)
    );
    assert_eq!(edit.row().path, "/projects/:id/play/toys/:toy_code");
    assert_eq!((create.row().tier, create.row().since), (Tier::Premium, Some(Release::new(16, 2))));
    assert_eq!(scoped_kind.entry_keys.identity_keys, ["code"]);
    assert_eq!(scoped_kind.entry_keys.other_keys, ["url", "size", "owner"]);
    assert_eq!(scoped_kind.list_query, [("deep", "false"), ("most", "3")]);
    assert_eq!((scoped_kind.min_read_level(), scoped_kind.address_keys[0].field), (30, "code"));
    assert!(!scoped_kind.is_inherited(&object(json!({"owner": "project"}))));
    assert!(
        scoped_kind.is_inherited(&object(json!({"owner": "group"})))
            && scoped_kind.is_inherited(&Object::new())
    );
    assert!(!section_in_scope(&toys, Scope::Group).scoped_kind.is_inherited(&Object::new()));
}

/// A collection without anything special.
const BADGES_DESCRIPTION: &str = r"
section: odd_badges
noun: odd badge
about: A badge.
identity: [name]
removal: nothing
traits: [returns_entry]
fields: [{name: name, about: Its name., type: text, weakens: never}]
homes:
  - path: /groups/:id/odd_badges/:badge_id?own=true
    available: {tier: premium, since: '16.2'}
";

#[test]
fn a_collection_has_five_operations_and_reads_only_with_get() {
    let badges = build_kind(BADGES_DESCRIPTION);
    let rows: Vec<_> = badges.operations.iter().map(|op| (op.effect(), op.row())).collect();
    let summaries: Vec<_> = rows
        .iter()
        .map(|(effect, row)| {
            format!("{effect} {} {} {}: {}", row.id, row.method, row.path, row.purpose)
        })
        .collect();
    assert_eq!(
        summaries,
        [
            "read group-odd-badge-list GET /groups/:id/odd_badges: list a group's odd badges",
            "read group-odd-badge-get GET /groups/:id/odd_badges/:badge_id: get a group's odd badge",
            "write group-odd-badge-create POST /groups/:id/odd_badges: create an odd badge of a group",
            "write group-odd-badge-edit PUT /groups/:id/odd_badges/:badge_id: edit a group's odd badge",
            "write group-odd-badge-delete DELETE /groups/:id/odd_badges/:badge_id: delete a group's odd badge",
        ]
    );
    let operations = &section_in_scope(&badges, Scope::Group).scoped_kind.operations;
    assert_eq!(operations.create.unwrap().row().retry_safety, RetrySafety::MayDuplicate);
    assert!(
        operations.create.unwrap().row().shows_object
            && !operations.delete.unwrap().row().shows_object
    );
    assert!(rows.iter().all(|(_, row)| row.tier == Tier::Premium && row.since.is_some()));
    let text_without_edit =
        BADGES_DESCRIPTION.replace("traits: [", "edit: replace\ntraits: [refuses_duplicates, ");
    let other_badges = build_kind(&text_without_edit.replace("/groups/", "/projects/"));
    let create = section_in_scope(&other_badges, Scope::Project)
        .scoped_kind
        .operations
        .create
        .unwrap()
        .row();
    assert_eq!(
        (other_badges.operations.len(), create.retry_safety),
        (4, RetrySafety::RefusesDuplicates)
    );
    assert_eq!(create.id, "odd-badge-create");
}

/// The method of an operation determines its use, in any order of the operations. Planning only
/// gets operations that read.
#[test]
fn operations_are_assigned_by_method() {
    let kind_with = |operations: &str| {
        parse_kind(
            &BADGES_DESCRIPTION
                .replace("    avail", &format!("    operations: [{operations}]\n    avail")),
        )
    };
    let parsed_kind =
        kind_with("hook-delete, hook-add, hook-get, hook-header-delete, hook-edit, hook-list");
    let ops = &parsed_kind.unwrap().homes[0].operations;
    let ids = [ops.list, ops.get].map(|op| op.unwrap().row().id);
    assert_eq!(ids, ["hook-list", "hook-get"]);
    let ids = [ops.create, ops.edit, ops.delete].map(|op| op.unwrap().row().id);
    assert_eq!(ids, ["hook-add", "hook-edit", "hook-delete"]);
    assert_eq!(ops.others.iter().map(|op| op.row().id).collect::<Vec<_>>(), ["hook-header-delete"]);
    let error = kind_with("hooks-list").err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(error, "unknown operation `hooks-list`");
}

#[test]
fn an_entry_is_shown_by_name_else_by_identity_without_credentials() {
    let toys = build_kind(FULL_DESCRIPTION);
    let section = section_in_scope(&toys, Scope::Project);
    let identity = |fields| section.identify(&object(fields));
    let unnamed_toy = identity(json!({"url": "HTTPS://u:p@H", "size": 3, "title": ""}));
    assert_eq!((&*unnamed_toy.name, unnamed_toy.service_name), ("HTTPS://***@H@3", None));
    assert_eq!(unnamed_toy.keys, ["https://u:p@h/@3"]);
    let named_toy = identity(json!({"url": "https://h/", "size": 3, "title": "red"}));
    assert_eq!((&*named_toy.name, named_toy.service_name.as_deref()), ("red", Some("red")));
    assert_eq!(named_toy.keys, ["https://h/@3"]);
}

#[test]
fn a_new_entry_with_grants_is_a_risk() {
    let toys =
        build_kind(&FULL_DESCRIPTION.replace("keys: [code]", "keys: [code]\ngrants: [kind]"));
    let section = section_in_scope(&toys, Scope::Project);
    let effects =
        section.rules().effects(None, &object(json!({})), &object(json!({"kind": "red"})));
    assert_eq!(effects, [Effect::Risk(Risk::Weakens, "add a toy".to_owned())]);
}

#[test]
fn a_key_is_identified_by_its_material_and_shown_by_its_fingerprint() {
    let text = FULL_DESCRIPTION
        .replace("type: address", "type: text")
        .replace("compare: url", "compare: public_key");
    let keys = build_kind(
        &text.replace("'https://h/x'", "ssh-rsa AAAA").replace("name_field: title\n", ""),
    );
    let section = section_in_scope(&keys, Scope::Project);
    let identity = |url: &str| section.identify(&object(json!({"url": url, "size": 3})));
    assert_eq!(identity("ssh-rsa  AAAA me"), identity("ssh-rsa AAAA"));
    assert_ne!(identity("ssh-rsa AAAA me"), identity("ssh-rsa AAAB me"));
    assert!(identity("ssh-rsa AAAA me").name.starts_with("SHA256:"));
    let is_equal = |live: &str| {
        forms::are_equal(section.field("url").compare, &"ssh-rsa AAAA a b".into(), &live.into())
    };
    assert!(is_equal("ssh-rsa AAAA a") && !is_equal("ssh-dss AAAA a"));
}

#[test]
fn hidden_credentials_are_ignored() {
    let text = FULL_DESCRIPTION
        .replace("compare: url", "compare: location")
        .replace("name_field: title\n", "");
    let mirrors = build_kind(&text);
    let section = section_in_scope(&mirrors, Scope::Project);
    let identity = |url: &str| section.identify(&object(json!({"url": url, "size": 3})));
    assert_eq!(identity("https://u:p@H/x"), identity("https://*****:*****@h/x"));
    assert_eq!(identity("https://u:p@H/x").name, "https://h/x@3");
    let is_equal = |live: &str| {
        forms::are_equal(section.field("url").compare, &"https://u:p@h/x".into(), &live.into())
    };
    assert!(is_equal("https://*****:*****@h/x") && !is_equal("https://*****:*****@h/y"));
}

#[test]
fn an_entry_without_an_edit_is_replaced() {
    let text = "
section: gates
noun: gate
about: A gate.
identity: [name]
removal: nothing
edit: replace
fields:
  - {name: name, about: Its name., type: text, weakens: never}
  - {name: height, about: Its height., type: integer, weakens: never, accepted: on_create}
homes: [{path: '/projects/:id/gates/:gate_id'}]
";
    let gates = build_kind(text);
    let section = section_in_scope(&gates, Scope::Project);
    assert!(section.scoped_kind.operations.edit.is_none() && section.allows_duplicates());
    assert_eq!(gates.operations.len(), 4, "no edit");
    let declared = testing::fields(json!({"name": "east", "height": 3}));
    let calls = testing::edit_requests_for(
        section,
        &declared,
        json!({"id": 5, "name": "east", "height": 2}),
        &["height"],
    );
    let request_lines: Vec<_> = calls.iter().map(ToString::to_string).collect();
    assert_eq!(
        request_lines,
        ["DELETE /projects/7/gates/5", "POST /projects/7/gates", "POST /projects/7/gates"]
    );
    assert_eq!(section.identify(&object(json!({"name": "east"}))).name, "east");
}

/// A description of entries with grants.
const GATES_DESCRIPTION: &str = "
section: town_gates
noun: town gate
about: An environment with who may deploy to it.
identity: [name]
removal: weakens
traits: [refuses_duplicates]
fields:
  - {name: name, about: Its name., type: text, weakens: never, accepted: on_create}
  - {name: deploy_access_levels, about: Who may deploy to it., type: grants, required: on_create, weakens: when_wider, grants: {lets: deploy}}
homes: [{path: '/projects/:id/town_gates/:name', available: {tier: premium}}]
";

#[test]
fn grants_are_edited_by_row_and_guarded() {
    let gates = build_kind(GATES_DESCRIPTION);
    let section = section_in_scope(&gates, Scope::Project);
    let row = |id: u64, level: u64, user: Option<u64>| json!({"id": id, "access_level": level, "user_id": user, "group_id": null});
    let raw =
        json!({"name": "prod", "deploy_access_levels": [row(1, 40, None), row(2, 40, Some(5))]});
    let declared_json = json!({"name": "prod", "deploy_access_levels": [{"user": "alice"}, {"access_level": "developer"}]});
    let mut names = crate::kind::NameIndex::default();
    names.insert(crate::field::NamedObject::User, "alice", Some(5));
    let declared = testing::fields(declared_json);
    let live = testing::live_entry(section, raw);
    let purpose =
        crate::kind::calls::CallPurpose::Change(&declared, &live, &["deploy_access_levels"]);
    let requests = testing::requests_for(section, &names, purpose);
    let body = json!({"deploy_access_levels": [{"id": 1, "_destroy": true}, {"access_level": 30}]});
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].to_string(), "PUT /projects/7/town_gates/prod");
    assert_eq!(requests[0].body_fields(), Some(&testing::fields(body)));

    let after = json!({"name": "prod", "deploy_access_levels": [{"access_level": "developer"}, {"user_id": 5}, {"group_id": 6}]});
    let effects = section.rules().effects(None, live.fields.raw(), &object(after));
    let [Effect::Rule { before: Some(before), after: Some(after) }, access_effects @ ..] =
        &effects[..]
    else {
        panic!("{effects:?}")
    };
    assert_eq!(
        access_effects,
        [(NamedObject::User, 5), (NamedObject::Group, 6)]
            .map(|(object_type, id)| Effect::needs_access(object_type, crate::kind::Id::Known(id)))
    );
    let weaknesses =
        crate::kind::find_weaker_protections(&[(**before).clone()], &[(**after).clone()]);
    let descriptions: Vec<_> = weaknesses.iter().map(|weakness| &*weakness.description).collect();
    assert_eq!(descriptions, ["let more people deploy"]);
    assert!(section.scoped_kind.requires_members);
    assert_eq!(section.scoped_kind.entry_keys.other_keys, ["name", "deploy_access_levels"]);
}

#[test]
fn a_grants_field_needs_a_verb_and_a_guard() {
    let faults = |old_text: &str, new_text: &str| -> Vec<_> {
        assert!(GATES_DESCRIPTION.contains(old_text), "{old_text}");
        let result = try_build_kind(
            &GATES_DESCRIPTION.replacen(old_text, new_text, 1),
            &Registry::with_built_in_kinds(),
            &[],
        );
        let faults = result.err().unwrap_or_default().into_iter();
        faults.map(|fault| format!("{}: {}", fault.pointer, fault.message)).collect()
    };
    let message = "guards must see every new grant";
    for (old_text, new_text, expected) in [
        (", grants: {lets: deploy}", "", format!("fields/1/type: {message}")),
        ("{lets: deploy}", "{lets: deploy}, read: never", format!("fields/1/type: {message}")),
        ("when_wider", "never", format!("fields/1/type: {message}")),
        (
            "removal: weakens",
            "removal: nothing",
            "fields/1/type: an entry with grants is a protection".to_owned(),
        ),
        (
            "[name]",
            "[name, name]",
            "fields/1/type: an entry with grants must be identified by one field".to_owned(),
        ),
        (
            "{lets: deploy}",
            "{lets: deploy}, words: [{word: everybody, about: Any.}]",
            "fields/1/words: a word is not a level of access".to_owned(),
        ),
        (
            "type: text, weakens: never",
            "type: text, weakens: when_wider",
            "fields/0/weakens: `weakens` does not fit this type".to_owned(),
        ),
        (
            "grants, required: on_create, weakens: when_wider, grants: {lets: deploy}}\nhomes: [{path: '/projects/:id/town_gates/:name'",
            "texts, weakens: never}\nhomes: [{path: '/groups/:id/protected_tags/:name'",
            "homes/0/path: this is a protection, but no field has the type `grants`".to_owned(),
        ),
    ] {
        let messages = faults(old_text, new_text);
        assert!(messages.contains(&expected), "{new_text}: {messages:?}");
    }
    assert_eq!(faults("name", "name"), [""; 0]);
}

/// A single level is sent in a parameter that the free tier has too.
#[test]
fn a_changed_protected_tag_is_replaced() {
    let section = testing::project_section("protected_tags");
    let row = json!({"id": 1, "access_level": 40, "access_level_description": "x"});
    let declared = json!({"name": "v*", "allowed_to_create": [{"access_level": "no_access"}]});
    let sent_requests = testing::edit_requests_for(
        section,
        &testing::fields(declared),
        json!({"name": "v*", "create_access_levels": [row]}),
        &["allowed_to_create"],
    );
    let requests: Vec<_> = sent_requests.iter().map(ToString::to_string).collect();
    let tags = "/projects/7/protected_tags";
    assert_eq!(
        requests,
        [format!("DELETE {tags}/v%2A"), format!("POST {tags}"), format!("POST {tags}")]
    );
    for (request, level) in sent_requests[1..].iter().zip([0, 40]) {
        let body = json!({"name": "v*", "create_access_level": level});
        assert_eq!(request.body_fields(), Some(&testing::fields(body)));
    }
}

/// The faults of [`FULL_DESCRIPTION`] after `new_text` replaced `old_text`.
fn find_faults_after(old_text: &str, new_text: &str) -> Vec<(String, String)> {
    assert!(FULL_DESCRIPTION.contains(old_text), "{old_text}");
    let reserved = ["path".to_owned()];
    let text = FULL_DESCRIPTION.replacen(old_text, new_text, 1);
    let result = try_build_kind(&text, &Registry::with_built_in_kinds(), &reserved);
    let faults = result.err().unwrap_or_default();
    assert!(faults.iter().all(|fault| !fault.help.is_empty()), "{faults:?}");
    faults.into_iter().map(|fault| (fault.pointer, fault.message)).collect()
}

#[test]
fn each_fault_has_its_pointer() {
    let path = "/groups/:id/toys/:toy_code";
    for (old_text, new_text, pointer, message) in [
        (
            "noun: toy",
            "noun: toy\naliases: [games, hooks]",
            "aliases",
            "`hooks` is a key of documents",
        ),
        (
            "name: url,",
            "name: url, aliases: [where, size],",
            "fields/0/aliases",
            "`size` is a field, or also stands for another",
        ),
        (
            "keys: [code]",
            "keys: [code]\ngrants: [loud]",
            "fields/9/weakens",
            "guards must see who is let in",
        ),
        (
            "keys: [code]",
            "keys: [code]\ncreate: put",
            "create",
            "a request for a new entry needs its path",
        ),
        (
            "keys: [code]",
            "keys: [code]\ncreate: never",
            "create",
            "no request creates or removes an entry",
        ),
        (
            "type: integer, weakens: when_lower",
            "type: integer, weakens: when_lower, names: user",
            "fields/1/names",
            "`names` does not fit this type",
        ),
        ("section: toys", "section: labels", "section", "there is a section `labels` already"),
        ("section: toys", "section: path", "section", "`path` is a key of documents"),
        ("noun: toy", "noun: hook", "noun", "there is an operation `hook-list` already"),
        ("identity: [url, size]", "identity: [url, sise]", "identity/1", "unknown field `sise`"),
        ("identity: [url, size]\n", "", "identity", "no field identifies an entry"),
        ("keys: [code]", "shape: mapping", "shape", "a single object has no entries"),
        (
            "type: date, weakens: never",
            "type: date, weakens: when_later",
            "fields/8/weakens",
            "`weakens` does not fit this type",
        ),
        ("name_field: title", "name_field: titel", "name_field", "unknown field `titel`"),
        (
            "name_field: title",
            "name_field: size",
            "name_field",
            "the name of an entry must be a text outside `identity`",
        ),
        (
            "[url, size]",
            "[url, size, loud]",
            "identity/2",
            "a field of this type cannot identify an entry",
        ),
        (
            "[url, size]",
            "[url, size, title]",
            "identity/2",
            "a field that may be null cannot identify an entry",
        ),
        (
            "[url, size]",
            "[url, size, note]",
            "identity/2",
            "a field that responses leave out cannot identify an entry",
        ),
        ("{name: size,", "{name: url,", "fields/1/name", "`url` is described twice"),
        ("{name: note,", "{name: state,", "fields/7/name", "every entry has a key `state`"),
        ("reset_by: url", "reset_by: urls", "fields/6/relations/reset_by", "unknown field `urls`"),
        (
            "weakens: never, compare: set",
            "weakens: never, valid: {pattern: x}, compare: set",
            "fields/4/valid/pattern",
            "`valid/pattern` does not fit this type",
        ),
        ("compare: set", "compare: url", "fields/4/compare", "`compare` does not fit this type"),
        (
            "type: boolean,",
            "type: boolean, nullable: true,",
            "fields/9/nullable",
            "`nullable` does not fit this type",
        ),
        (
            "type: date,",
            "type: date, valid: {size: 1..},",
            "fields/8/valid/size",
            "`valid/size` does not fit this type",
        ),
        (
            "type: word\n    weakens: when_changed\n    required: on_create\n    words:",
            "type: text\n    weakens: never\n    words:",
            "fields/3/words",
            "`words` does not fit this type",
        ),
        ("{word: kite,", "{word: ball,", "fields/3/words", "a word is listed twice"),
        ("type: boolean,", "type: word,", "fields/9/type", "`words` is missing"),
        (
            "type: boolean,",
            "type: boolean, accepted: on_create,",
            "fields/9/accepted",
            "a field with `accepted: on_create` can never change",
        ),
        (
            "type: secret, weakens: never",
            "type: secret, weakens: never, read: {as: x}",
            "fields/6/read",
            "responses do not contain this field",
        ),
        ("'^[a-z]+$'", "'^[a-z+$'", "fields/2/valid/pattern", "not a valid regular expression"),
        ("{pattern: '^[a-z]+$'}", "{size: -1..}", "fields/2/valid/size", "a length is below 0"),
        ("1..9", "9..1", "fields/1/valid/size", "the lowest number is above the highest"),
        (
            "valid: {size: 1..9}",
            "valid: {size: 1..}, examples: [0]",
            "fields/1/examples",
            "the field does not allow this example",
        ),
        (
            path,
            "/groups/toys",
            "homes/1/path",
            "the path must start with `/projects/:id/` or `/groups/:id/`",
        ),
        (path, "/groups/:id", "homes/1/path", "the path must name a collection after `:id`"),
        (
            path,
            "/groups/:id/../7",
            "homes/1/path",
            "the path must have only names of lower-case letters, digits and `_` after `:id`",
        ),
        (path, "/projects/:id/toys/:one", "homes/1/path", "there is a path below projects already"),
        (
            path,
            "/groups/:id/labels/:one",
            "homes/1/path",
            "undrift already knows `/groups/:id/labels`",
        ),
        (
            path,
            "/groups/:id/milestones/:one",
            "homes/1/path",
            "undrift already knows `/groups/:id/milestones`",
        ),
        (
            path,
            "/groups/:id/saml/identities/:one",
            "homes/1/path",
            "this gives access, but no field has the type `level`",
        ),
        (
            path,
            "/groups/:id/group_links/:one",
            "homes/1/path",
            "this gives access, but no field has the type `level`",
        ),
        (
            path,
            "/groups/:id/clusters/:one",
            "homes/1/path",
            "this gives access, but no field has the type `level`",
        ),
        (
            path,
            "/groups/:id/wiki/files/:one",
            "homes/1/path",
            "these are contents of a repository, which a removal would destroy",
        ),
        (
            path,
            "/groups/:id/members/all/:one",
            "homes/1/path",
            "undrift already knows `/groups/:id/members`",
        ),
        (
            "type: texts, weakens: never",
            "type: texts, weakens: when_off",
            "fields/4/weakens",
            "`weakens` does not fit this type",
        ),
        (
            "weakens: when_lower",
            "weakens: when_on",
            "fields/1/weakens",
            "`weakens` does not fit this type",
        ),
        (
            path,
            "/groups/:id/access_tokens/:one",
            "homes/1/path",
            "the service shows these entries only once, so they cannot be managed",
        ),
        (
            path,
            "/groups/:id/runners/:one",
            "homes/1/path",
            "the service shows these entries only once, so they cannot be managed",
        ),
        (
            path,
            "/groups/:id/invitations/:one",
            "homes/1/path",
            "this gives access, but no field has the type `level`",
        ),
        (
            path,
            "/groups/:id/toys/:toy_code?sudo=root",
            "homes/1/path",
            "only undrift itself sends the parameter `sudo`",
        ),
        (
            "identity: [url, size]",
            "identity: [url, new_size]",
            "identity/1",
            "unknown field `new_size`",
        ),
        (
            path,
            "/groups/:id/toys/:id",
            "homes/1/path",
            "`id` is the argument of the project or group",
        ),
        (
            "traits: [refuses_duplicates, returns_entry]",
            "edit: replace",
            "fields/6/name",
            "a field that responses leave out would be lost when its entry is replaced",
        ),
    ] {
        let messages = find_faults_after(old_text, new_text);
        assert!(
            messages.contains(&(pointer.to_owned(), message.to_owned())),
            "{new_text}: {messages:?}"
        );
    }
    assert_eq!(find_faults_after("noun: toy", "noun: toy"), []);
}

/// The code refers to fault texts by their keys.
#[test]
fn each_fault_text_is_used() {
    let code = include_str!("check.rs");
    let is_named = |name: &&&str| code.contains(&format!("\"{name}\""));
    let unused = fault::FAULT_TABLE.faults.keys().find(|name| !is_named(name));
    assert_eq!(unused, None);
}

#[test]
fn a_collection_that_gives_access_without_a_level_is_refused() {
    for collection in [
        "deploy_keys",
        "job_token_scope/allowlist",
        "job_token_scope/groups_allowlist",
        "access_requests",
        "service_accounts",
    ] {
        for scope in ["projects", "groups"] {
            let found_faults = find_faults_after(
                "/groups/:id/toys/:toy_code",
                &format!("/{scope}/:id/{collection}/:one"),
            );
            let is_access_fault =
                |(_, message): &(String, String)| message.starts_with("this gives access");
            // [`FULL_DESCRIPTION`] already has a path below projects.
            let has_fault = found_faults.iter().any(is_access_fault) || scope == "projects";
            assert!(
                has_fault && !found_faults.is_empty(),
                "{scope} {collection}: {found_faults:?}"
            );
        }
    }
}

#[test]
fn a_description_without_guards_is_refused() {
    let parses = |text: &str| parse_kind(text).is_ok();
    assert!(parses(FULL_DESCRIPTION));
    assert!(!parses(&FULL_DESCRIPTION.replacen("removal: weakens\n", "", 1)));
    assert!(!parses(&FULL_DESCRIPTION.replacen(", weakens: never", "", 1)));
    let toys = build_kind(FULL_DESCRIPTION);
    let section = section_in_scope(&toys, Scope::Project);
    let before = object(json!({"size": 3, "loud": true, "kind": "ball", "nick": "a"}));
    let after = object(json!({"size": 2, "loud": false, "kind": "kite", "nick": "b"}));
    let effects = risk::change_risks(section, &["size", "loud", "kind", "nick"], &before, &after);
    let weakens = |description: &str| Effect::Risk(Risk::Weakens, description.to_owned());
    let expected = ["lower `size` from 3 to 2", "switch off `loud`", "change `kind`"].map(weakens);
    assert_eq!(effects, expected);
    assert_eq!(risk::removal_risks(section, &before), [weakens("remove the toy")]);
}

#[test]
fn paths_of_operations_are_refused() {
    let registry = Registry::with_built_in_kinds();
    let rows = crate::operation::OPERATIONS.iter().map(|op| op.row());
    for row in rows.chain(registry.described_operations().iter().map(|op| op.row())) {
        let path_start = row.path.split('/').take(4).collect::<Vec<_>>().join("/");
        let path_prefix: &'static str = path_start.leak();
        if EntryPath::parse(path_prefix).is_ok() {
            let path = "/groups/:id/toys/:toy_code";
            let found_faults = find_faults_after(path, path_prefix);
            assert!(!found_faults.is_empty(), "{path_prefix}");
        }
    }
}

#[test]
fn kinds_in_use_cannot_be_extended() {
    let kind_count = super::super::registry().kinds().len();
    assert_eq!(
        super::super::set_registry(Registry::with_built_in_kinds()),
        Err(super::super::RegistryInUse)
    );
    assert_eq!(super::super::registry().kinds().len(), kind_count);
}

const LINKS_DESCRIPTION: &str = r"
section: town_links
noun: town link
about: A guild whose people may enter.
identity: [name]
removal: access
edit: replace
fields:
  - {name: name, about: Its name., type: text, weakens: never, accepted: on_create}
  - {name: may, about: What they may do., type: level, weakens: never, required: on_create, accepted: on_create}
homes: [{path: '/groups/:id/saml_town_links/:name'}]
";

#[test]
fn a_level_gives_access_to_unknown_people() {
    let section = build_kind(LINKS_DESCRIPTION).kind.find_section(Scope::Group).unwrap();
    let link = |level: &str| object(json!({"name": "guild", "may": level}));
    let share =
        |before, after| [Effect::Share { group_id: None, before, after, gets_end_date: false }];
    let (no_link, low_link, high_link) = (Object::default(), link("reporter"), link("maintainer"));
    for (before, after, expected) in [
        (&no_link, &low_link, share(0, 20)),
        (&low_link, &high_link, share(20, 40)),
        (&high_link, &no_link, share(40, 0)),
    ] {
        assert_eq!(section.rules().effects(None, before, after), expected);
    }
    let declared = testing::fields(json!({"name": "guild", "may": "maintainer"}));
    let sent_requests = testing::edit_requests_for(
        section,
        &declared,
        json!({"name": "guild", "may": 20}),
        &["may"],
    );
    let requests: Vec<_> = sent_requests.iter().map(ToString::to_string).collect();
    assert_eq!(
        requests[..2],
        ["DELETE /groups/7/saml_town_links/guild", "POST /groups/7/saml_town_links"]
    );
    assert_eq!(
        sent_requests[1].body_fields(),
        Some(&testing::fields(json!({"name": "guild", "may": 40})))
    );
}

#[test]
fn an_access_level_field_must_be_guarded() {
    for (old_text, new_text, expected) in [
        ("removal: access", "removal: nothing", "guards must see who loses access"),
        (
            "level, weakens: never",
            "level, weakens: when_changed",
            "guards must see who loses access",
        ),
        ("type: level", "type: text", "`removal: access` needs a field with the type `level`"),
        (
            "fields:\n",
            "fields:\n  - {name: more, about: More., type: level, weakens: never}\n",
            "an entry must have exactly one visible level of access",
        ),
    ] {
        assert!(LINKS_DESCRIPTION.contains(old_text), "{old_text}");
        let result = try_build_kind(
            &LINKS_DESCRIPTION.replacen(old_text, new_text, 1),
            &Registry::with_built_in_kinds(),
            &[],
        );
        let found_faults = result.err().unwrap_or_default();
        assert!(
            found_faults.iter().any(|fault| fault.message == expected),
            "{new_text}: {found_faults:?}"
        );
    }
}

/// A description of the parts of widgets. Widgets are a described collection, too.
const PARTS_DESCRIPTION: &str = r"
section: widget_parts
noun: widget part
about: A part of a widget.
identity: [widget, name]
removal: nothing
traits: [refuses_duplicates]
fields:
  - {name: widget, about: The widget., type: text, weakens: never}
  - {name: name, about: What it is called., type: text, weakens: never, accepted: on_create}
  - {name: secret, about: What it hides., type: text, weakens: never, sensitive: true, nullable: true}
homes:
  - path: /projects/:id/widgets/:widget_id/parts/:widget_part_id
";

const WIDGETS_DESCRIPTION: &str = r"
section: widgets
noun: widget
about: A widget.
identity: [title]
removal: nothing
traits: [refuses_duplicates]
fields:
  - {name: title, about: What it is called., type: text, weakens: never, accepted: on_create}
homes:
  - path: /projects/:id/widgets/:widget_id
";

#[test]
fn a_nested_collection_has_the_paths_and_the_field_of_its_parent() {
    let registry = Registry::with_built_in_kinds().with_kind(build_kind(WIDGETS_DESCRIPTION));
    for (text, list_path, operation_count) in [
        (PARTS_DESCRIPTION.to_owned(), "/projects/:id/widgets/:widget_id/parts", 5),
        (format!("{PARTS_DESCRIPTION}    in: parts\n"), "/projects/:id/widgets/:widget_id", 3),
    ] {
        let parts = try_build_kind(&text, &registry, &[]).unwrap();
        let section = section_in_scope(&parts, Scope::Project);
        let parent = section.scoped_kind.parent.unwrap();
        assert_eq!((parent.section, parent.field), ("widgets", "widget"));
        assert_eq!(section.scoped_kind.nested_field, text.contains("in: parts").then_some("parts"));
        let ReadSource::List(read) = section.scoped_kind.read_source else { panic!("it is read") };
        assert_eq!((read.row().path, parts.operations.len()), (list_path, operation_count));
        let key_fields: Vec<_> =
            section.scoped_kind.address_keys.iter().map(|key| key.field).collect();
        assert_eq!(key_fields, ["id", "widget_id"]);
        assert_eq!(
            (
                section.scoped_kind.entry_keys.identity_keys,
                section.scoped_kind.entry_keys.other_keys
            ),
            (&["id"][..], &["name"][..])
        );
        let writes = parts.operations.iter().filter(|op| matches!(op, AnyOp::Write(_)));
        let paths: Vec<_> = writes.map(|op| op.row().path).collect();
        let entry_path = "/projects/:id/widgets/:widget_id/parts/:widget_part_id";
        assert_eq!(paths, ["/projects/:id/widgets/:widget_id/parts", entry_path, entry_path]);
        assert_eq!(section.field("widget").accepted, Acceptance::Never);
        for value in [json!("x"), json!({"env": "X"}), Json::Null] {
            let entry = json!({"widget": "w", "name": "n", "secret": value});
            assert!(jsonschema::is_valid(&section.table().schema, &entry), "{entry}");
        }
    }
}

#[test]
fn a_nested_collection_must_name_its_parent_and_field() {
    let registry = Registry::with_built_in_kinds().with_kind(build_kind(WIDGETS_DESCRIPTION));
    let path = "/projects/:id/widgets/:widget_id/parts/:widget_part_id";
    let other_path = "/projects/:id/others/:widget_id/parts/:widget_part_id";
    let renamed_path = "/projects/:id/widgets/:widget/parts/:widget_part_id";
    let deep_path = "/projects/:id/widgets/:widget_id/a/:b/c/:d";
    for (old_text, new_text, pointer, reason) in [
        (path, other_path, "homes/0/path", "must start with"),
        (path, renamed_path, "homes/0/path", "under the same name"),
        (path, deep_path, "homes/0/path", "at most one argument"),
        ("[widget, name]", "[other, name]", "identity/0", "unknown field `other`"),
        ("[widget, name]", "[secret, name]", "identity/0", "cannot name the parent"),
        ("[widget, name]", "[widget]", "homes/0/path", "must name the parent"),
        (
            "The widget., type: text",
            "The widget., read: {as: other}, type: text",
            "identity/0",
            "cannot name the parent",
        ),
        ("noun: widget part", "noun: widget", "noun", "there is an operation"),
    ] {
        let text = PARTS_DESCRIPTION.replace(old_text, new_text);
        assert_ne!(text, PARTS_DESCRIPTION, "{old_text}");
        let faults = try_build_kind(&text, &registry, &[]).map(|_| ()).unwrap_err();
        let is_expected =
            |fault: &DescriptionFault| fault.pointer == pointer && fault.message.contains(reason);
        assert!(faults.iter().any(is_expected), "{new_text}: {faults:?}");
    }
    // Describe another kind below the same entries.
    let parts = try_build_kind(PARTS_DESCRIPTION, &registry, &[]).unwrap();
    let registry_with_parts = registry.with_kind(parts);
    let other_text = PARTS_DESCRIPTION
        .replace("widget_parts", "other_parts")
        .replace("widget part", "other part");
    let faults = try_build_kind(&other_text, &registry_with_parts, &[]).map(|_| ()).unwrap_err();
    assert!(faults[0].message.contains("already knows"), "{faults:?}");
    let text =
        PARTS_DESCRIPTION.replace(path, "/projects/:id/protected_tags/:name/parts/:widget_part_id");
    let faults = try_build_kind(&text, &registry_with_parts, &[]).map(|_| ()).unwrap_err();
    assert!(faults.iter().any(|fault| fault.message.contains("contain their id")), "{faults:?}");
}
