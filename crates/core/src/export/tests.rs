//! Tests of unread parts, names of references, and common values, without a service.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    cause::CauseParts,
    desired,
    field::Tier,
    kind::{ContainerFacts, FieldSelection, Target, testing::object},
    live::{LiveEntries, Presence},
    manifest::{self, Config},
    steps,
    value::Json,
};

fn settings(secret_handling: SecretHandling) -> ExportSettings {
    ExportSettings {
        secret_handling,
        extracts_defaults: true,
        ..ExportSettings::for_caller(
            Caller { id: 1, username: "root".into(), is_administrator: true },
            DetectedRelease::NotRequested,
        )
    }
}

/// A project at `path` with the live `sections` by name. All other sections are empty.
fn live_project(path: &str, sections: &Json) -> LiveContainer {
    live_container(Scope::Project, path, sections)
}

fn live_container(scope: Scope, path: &str, sections: &Json) -> LiveContainer {
    let target = Target { id: Some(7), ..Target::new(scope, path.into()) };
    let mut live = LiveContainer::with_presence(
        Presence::Existing(target, ContainerFacts::default()),
        std::time::Duration::ZERO,
    );
    for section in
        catalogue::sections(scope).filter(|candidate| candidate.shape != Shape::Container)
    {
        let read = |raw: &Json| section.read(&object(raw.clone()), FieldSelection::All);
        let entries = match &sections[section.section] {
            Json::Array(rows) => LiveEntries::Updated(rows.iter().map(read).collect()),
            Json::Null => LiveEntries::Updated(Vec::new()),
            single => LiveEntries::Single(Some(read(single).into())),
        };
        live.sections.insert(section.section, entries);
    }
    live
}

fn builder(secret_handling: SecretHandling, projects: &[(&str, Json)]) -> ExportBuilder {
    let mut builder = ExportBuilder::new(settings(secret_handling), BTreeSet::new());
    for (path, sections) in projects {
        builder.add(Scope::Project, path, &live_project(path, sections), &NameIndex::default());
    }
    builder
}

fn texts_by_path(export: &Export) -> BTreeMap<&str, &str> {
    export.files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect()
}

#[test]
fn unread_sections_are_missing_and_hidden_ones_are_not() {
    let new_cause = |status| {
        let (message, operation) = ("refused".into(), Some("variable-list"));
        Cause::from(CauseParts { message, operation, status, ..CauseParts::default() })
    };
    for (entries, is_missing) in [
        (LiveEntries::Unreadable(new_cause(Some(403))), true),
        (LiveEntries::Unreadable(new_cause(Some(404))), true),
        (LiveEntries::Partial("the token's role is too low".into()), false),
        (LiveEntries::Unreadable(new_cause(Some(500))), true),
        (LiveEntries::Partial(new_cause(None)), true),
        (LiveEntries::Unreadable(Cause::new("no answer").mark_transient()), true),
    ] {
        let mut live = live_project("acme/shop", &json!({}));
        live.sections.insert("variables", entries);
        let mut builder = builder(SecretHandling::Plain, &[]);
        builder.add(Scope::Project, "acme/shop", &live, &NameIndex::default());
        let missing: Vec<_> =
            builder.missing_reads().iter().map(|missing| missing.subject.clone()).collect();
        assert_eq!(missing, if is_missing { vec!["acme/shop#variables"] } else { vec![] });
        let export = builder.finish();
        let comment =
            if is_missing { "# Missing: variables (" } else { "# Not exported: variables (" };
        assert!(export.files[0].text.contains(comment), "{}", export.files[0].text);
    }
}

#[test]
fn an_entry_whose_response_lacks_an_expected_field_is_left_out() {
    for (section, entry, omitted) in [
        ("variables", json!({"key": "A", "environment_scope": "*", "value": "x"}), None),
        (
            "variables",
            json!({"key": "A", "environment_scope": "*", "value": null, "hidden": true, "masked": true}),
            None,
        ),
        ("variables", json!({"key": "A", "environment_scope": "*"}), Some("variables/A@*.value")),
        (
            "variables",
            json!({"key": "A", "environment_scope": "*", "value": null}),
            Some("variables/A@*.value"),
        ),
        (
            "variables",
            json!({"key": "A", "environment_scope": "*", "value": 7}),
            Some("variables/A@*.value"),
        ),
        ("labels", json!({"id": 1, "name": "bug"}), Some("labels/bug.color")),
    ] {
        let mut builder =
            builder(SecretHandling::Plain, &[("acme/shop", json!({section: [entry]}))]);
        let names: Vec<_> =
            builder.omitted_reads().iter().map(|read| read.subject.clone()).collect();
        assert_eq!(names.len(), usize::from(omitted.is_some()), "{entry} {names:?}");
        assert!(names.iter().all(|name| name.ends_with(omitted.unwrap_or_default())), "{names:?}");
        builder.finish();
    }
}

/// Each integration has required fields. A manifest that lacks a required field is not valid.
#[test]
fn an_entry_whose_needed_field_may_hold_a_credential_is_left_out() {
    let wiki = |url| json!({"slug": "external-wiki", "active": true, "external_wiki_url": url});
    for (url, is_omitted) in
        [("https://bot:pw123456@wiki.example.org", true), ("https://wiki.example.org", false)]
    {
        for values in [SecretHandling::Plain, SecretHandling::None, SecretHandling::Env] {
            let sections = json!({"integrations": [wiki(url)]});
            let mut builder = builder(values, &[("acme/shop", sections)]);
            let reads: Vec<_> = builder.omitted_reads().iter().map(IncompleteRead::clone).collect();
            let subjects: Vec<_> = reads.iter().map(|read| read.subject.as_str()).collect();
            let expected = ["acme/shop#integrations/external-wiki"];
            assert_eq!(subjects, if is_omitted { &expected[..] } else { &[] }, "{values:?}");
            let text = &builder.finish().files[0].text;
            assert_eq!(text.contains("slug: external-wiki"), !is_omitted, "{text}");
        }
    }
}

#[test]
fn the_callers_own_access_is_known_by_id_or_by_name() {
    for (id, username, is_written) in
        [(1, "root", false), (9, "Root", false), (1, "other", false), (9, "alice", true)]
    {
        let row = json!({"id": id, "username": username, "access_level": 50});
        let builder = builder(SecretHandling::Plain, &[("acme/shop", json!({"members": [row]}))]);
        let export = builder.finish();
        assert_eq!(export.files[0].text.contains("members:"), is_written, "{id} {username}");
    }
}

#[test]
fn vanished_projects_are_missing_or_marked_for_deletion() {
    let path = "acme/shop";
    let marked_facts = ContainerFacts { deletion_mark: Some(None), ..ContainerFacts::default() };
    for (presence, cause, is_deleted) in [
        (
            Presence::Redirected { new_path: Some("acme/store".into()) },
            "it is now `acme/store`",
            false,
        ),
        (Presence::Redirected { new_path: None }, "it was renamed", false),
        (Presence::MissingNamespace("acme".into()), "it is gone", false),
        (Presence::Unreadable("no answer".into()), "no answer", false),
        (Presence::Existing(Target::new(Scope::Project, path.into()), marked_facts), "", true),
    ] {
        let mut builder = builder(SecretHandling::Plain, &[("acme/other", json!({}))]);
        let live = LiveContainer::with_presence(presence, std::time::Duration::ZERO);
        builder.add(Scope::Project, path, &live, &NameIndex::default());
        let causes: Vec<_> =
            builder.missing_reads().iter().map(|missing| missing.cause.to_string()).collect();
        assert_eq!(causes.join(""), cause);
        let export = builder.finish();
        let (text, notes) = (texts_by_path(&export)["acme.yaml"], export.notes.join("\n"));
        assert_eq!(notes.contains("marked for deletion: `acme/shop`"), is_deleted, "{notes}");
        assert!(!text.contains("path: acme/shop"), "{text}");
    }
}

#[test]
fn references_have_stable_and_unique_names() {
    let variable = |key: &str, scope: &str| json!({"key": key, "environment_scope": scope, "value": format!("v-{key}-{scope}"), "masked": true});
    let names = |projects: &[(&str, Json)]| -> Vec<String> {
        let export = builder(SecretHandling::Env, projects).finish();
        for (name, value) in &export.secrets {
            assert!(export.files.iter().any(|file| file.text.contains(&format!("env: {name}}}"))));
            let is_shown = |file: &ExportedFile| file.text.contains(value.expose());
            // A value that the service never shows is empty here.
            assert!(value.expose().is_empty() || !export.files.iter().any(is_shown));
        }
        export.secrets.into_keys().collect()
    };
    let shop = ("acme/shop", json!({"variables": [variable("A", "*"), variable("A", "prod/*")]}));
    assert_eq!(names(std::slice::from_ref(&shop)), ["ACME_SHOP__A", "ACME_SHOP__A_PROD__"]);
    // Equal names get different suffixes, which do not depend on other projects.
    let web = ("acme/web", json!({"variables": [variable("A", "a-b"), variable("A", "a/b")]}));
    let all_names = names(&[shop, web.clone()]);
    assert_eq!(all_names.len(), 4, "{all_names:?}");
    assert_eq!(names(&[web]), all_names[2..]);
    // Names that the CI system reserves, and texts that are not valid names, are changed.
    let others = [
        ("ci/x", json!({"variables": [variable("A", "*")]})),
        ("1a/x", json!({"variables": [variable("A", "*")]})),
    ];
    assert_eq!(names(&others), ["THE_1A_X__A", "THE_CI_X__A"]);
    // A secret in the path of a URL is not part of a name.
    let hook = json!({"id": 1, "url": "https://hooks.example.org/services/xQ9ZrT2mW8vK1pL5sD7Q"});
    assert_eq!(names(&[("acme/a", json!({"hooks": [hook]}))]), ["ACME_A__HOOKS_EXAMPLE_ORG"]);
    // An entry may have several secrets.
    let pushover = json!({"slug": "pushover", "active": true, "properties": {"priority": "0"}});
    assert_eq!(
        names(&[("acme/a", json!({"integrations": [pushover]}))]),
        ["ACME_A__PUSHOVER_API_KEY", "ACME_A__PUSHOVER_USER_KEY"]
    );
    let url = |host| format!("https://bob:hunter2@{host}/x");
    let jira = json!({"url": url("j.example"), "api_url": url("j.example"), "username": "a"});
    let jira = json!({"slug": "jira", "active": true, "properties": jira});
    let jira_names = names(&[("acme/a", json!({"integrations": [jira]}))]);
    assert_eq!(jira_names.len(), 3, "{jira_names:?}");
}

#[test]
fn a_value_that_the_service_hides_is_a_reference_without_a_value() {
    let hidden = json!({"key": "A", "environment_scope": "*", "value": null, "masked": true, "hidden": true});
    let mirror = json!({"id": 1, "url": "https://*****:*****@m.example.org/x.git"});
    let hook = json!({"id": 1, "url": "https://bob:hunter2@h.example.org/"});
    let sections = json!({"variables": [hidden], "remote_mirrors": [mirror], "hooks": [hook]});
    for (create, unshown) in [
        (false, vec!["ACME_SHOP__M_EXAMPLE_ORG"]),
        (true, vec!["ACME_SHOP__A", "ACME_SHOP__M_EXAMPLE_ORG"]),
    ] {
        let mut builder = ExportBuilder::new(
            ExportSettings { writes_create: create, ..settings(SecretHandling::Env) },
            BTreeSet::new(),
        );
        builder.add(
            Scope::Project,
            "acme/shop",
            &live_project("acme/shop", &sections),
            &NameIndex::default(),
        );
        let export = builder.finish();
        assert_eq!(export.unshown_secrets.iter().map(String::as_str).collect::<Vec<_>>(), unshown);
        assert!(export.secrets.contains_key("ACME_SHOP__H_EXAMPLE_ORG"));
        let note = format!("does not show the values: {}", list_names(&unshown));
        assert!(export.notes.iter().any(|line| line.ends_with(&note)), "{:?}", export.notes);
        let text = texts_by_path(&export)["acme.yaml"];
        assert_eq!(text.contains("value: {env: ACME_SHOP__A}"), create, "{text}");
    }
}

/// A section that is refused with 403 or 404 is always reported. The report names a tier or a role
/// only if the tier or role can be the cause.
#[test]
fn a_refused_section_is_missing_left_out_or_noted() {
    let maintainer = crate::level::MAINTAINER;
    let disabled_builds = json!({"settings": {"builds_access_level": "disabled"}});
    for (section, is_administrator, level, tier, sections, expected) in [
        ("variables", false, Some(maintainer), Tier::Free, &json!({}), "missing"),
        ("variables", true, None, Tier::Free, &json!({}), "missing"),
        ("variables", false, Some(30), Tier::Free, &json!({}), "left out"),
        ("variables", false, None, Tier::Free, &json!({}), "left out"),
        ("labels", false, Some(maintainer), Tier::Free, &json!({}), "missing"),
        ("push_rule", false, Some(maintainer), Tier::Premium, &json!({}), "missing"),
        ("push_rule", false, Some(30), Tier::Premium, &json!({}), "left out"),
        ("push_rule", true, None, Tier::Free, &json!({}), "not in the service's tier: `push_rule`"),
        (
            "variables",
            true,
            None,
            Tier::Free,
            &disabled_builds,
            "switched off by settings, in some or all projects: `variables`",
        ),
    ] {
        for status in [403, 404] {
            let mut live = live_project("acme/shop", sections);
            // Remove the other sections, because even an empty section of a higher tier would prove
            // that tier.
            live.sections.retain(|name, _| *name == section || *name == "settings");
            let mut cause = Cause::new("refused");
            cause.status = Some(status);
            cause.withheld = (*sections == disabled_builds).then_some(Withheld::SwitchedOff);
            live.sections.insert(section, LiveEntries::Unreadable(cause));
            if let Presence::Existing(_, facts) = &mut live.presence {
                *facts = ContainerFacts { caller_level: level, tier, ..facts.clone() };
            }
            let mut builder = builder(SecretHandling::Plain, &[]);
            builder.settings.caller.is_administrator = is_administrator;
            builder.add(Scope::Project, "acme/shop", &live, &NameIndex::default());
            builder.unread_sections.retain(|(_, unread)| unread.section == section);
            let (missing, omitted) = (builder.missing_reads().len(), builder.omitted_reads().len());
            let notes = builder.finish().notes.join("\n");
            let outcome = match (missing, omitted) {
                (1, 0) => "missing",
                (0, 1) => "left out",
                _ => &notes,
            };
            assert!(outcome.contains(expected), "{section} {level:?} {tier:?}: {outcome}");
        }
    }
}

/// The enterprise build shows some fields of a higher tier even without a licence.
#[test]
fn a_field_of_the_settings_proves_no_tier_without_a_licence() {
    for (tier, is_missing) in [(Tier::Free, false), (Tier::Premium, true)] {
        let settings = json!({"settings": {"merge_trains_enabled": false}});
        let mut live = live_project("acme/shop", &settings);
        live.sections.retain(|name, _| *name == "settings");
        let mut cause =
            Cause::new("`push_rule` needs the premium tier").mark_withheld(Withheld::Tier);
        cause.status = Some(404);
        live.sections.insert("push_rule", LiveEntries::Unreadable(cause));
        if let Presence::Existing(_, facts) = &mut live.presence {
            facts.tier = tier;
        }
        let mut builder = builder(SecretHandling::Plain, &[]);
        builder.add(Scope::Project, "acme/shop", &live, &NameIndex::default());
        builder.unread_sections.retain(|(_, unread)| unread.section == "push_rule");
        assert_eq!(!builder.missing_reads().is_empty(), is_missing, "{tier}");
        let notes = builder.finish().notes.join("\n");
        let note = "not in the service's tier: `push_rule`";
        assert_eq!(notes.contains(note), !is_missing, "{notes}");
    }
}

/// The Jira integration shows fields of the highest tier in every tier.
#[test]
fn a_field_without_a_value_proves_no_tier() {
    for (project_key, is_missing) in [(Json::Null, false), (json!("SHOP"), true)] {
        let jira =
            json!({"slug": "jira", "url": "https://jira.example.org", "project_key": project_key});
        let mut live = live_project("acme/shop", &json!({"integrations": [jira]}));
        let name = "external_status_checks";
        let mut cause = Cause::new("needs the ultimate tier").mark_withheld(Withheld::Tier);
        cause.status = Some(404);
        live.sections.insert(name, LiveEntries::Unreadable(cause));
        if let Presence::Existing(_, facts) = &mut live.presence {
            facts.tier = Tier::Premium;
        }
        let mut builder = builder(SecretHandling::Plain, &[]);
        builder.add(Scope::Project, "acme/shop", &live, &NameIndex::default());
        builder.unread_sections.retain(|(_, unread)| unread.section == name);
        assert_eq!(!builder.missing_reads().is_empty(), is_missing, "{project_key}");
    }
}

/// If one project shows a section, the service has the tier of the section.
#[test]
fn a_section_shown_by_another_project_is_not_above_the_tier() {
    let mut refused_live = live_project("acme/shop", &json!({}));
    let mut cause = Cause::new("refused");
    cause.status = Some(404);
    refused_live.sections.insert("push_rule", LiveEntries::Unreadable(cause));
    let mut builder = builder(SecretHandling::Plain, &[]);
    builder.add(Scope::Project, "acme/shop", &refused_live, &NameIndex::default());
    let rule = json!({"push_rule": {"deny_delete_tag": true}});
    builder.add(
        Scope::Project,
        "acme/web",
        &live_project("acme/web", &rule),
        &NameIndex::default(),
    );
    let missing: Vec<_> =
        builder.missing_reads().iter().map(|missing| missing.subject.clone()).collect();
    assert_eq!(missing, ["acme/shop#push_rule"]);
}

/// A mistyped path must not create a project.
#[test]
fn create_is_exported_only_on_request() {
    let projects = ["acme/a", "acme/b", "acme/c"].map(|path| (path, json!({})));
    for create in [false, true] {
        let mut builder = builder(SecretHandling::Plain, &[]);
        builder.settings.writes_create = create;
        for (path, sections) in &projects {
            builder.add(Scope::Project, path, &live_project(path, sections), &NameIndex::default());
        }
        let text = builder.finish().files[0].text.clone();
        let paths = "paths: [acme/a, acme/b, acme/c]\n";
        let expected = if create { format!("{paths}create: true\n") } else { paths.to_owned() };
        assert_eq!(text, format!("kind: Project\n{expected}"));
    }
}

/// The entries of a section that the manifests of `text` declare for `path`, in order.
fn declared_entries(text: &str, path: &str, section: &str) -> Vec<String> {
    let today = "2026-11-01".parse().unwrap();
    let desired =
        manifest::load_texts([("a.yaml".into(), text.to_owned())], today, &Config::default())
            .unwrap();
    let container = desired.containers.iter().find(|container| &*container.path == path).unwrap();
    let entries = container.section(section).into_iter().flat_map(|section| &section.entries);
    entries.map(|entry| format!("{}: {:?}", entry.key, entry.state)).collect()
}

/// The export does not declare a missing entry absent, because somebody may add the entry later.
#[test]
fn a_project_that_lacks_shared_entries_is_excluded_from_defaults() {
    let shared_sections = json!({
        "variables": [{"key": "A", "value": "x", "environment_scope": "*"}],
        "hooks": [{"id": 1, "url": "https://e.example.org/"}],
        "labels": [{"id": 1, "name": "bug", "color": "#ff0000", "is_project_label": true}],
        "push_rule": {"deny_delete_tag": true},
    });
    let mut projects: Vec<_> = ["acme/a", "acme/b", "acme/c", "acme/d", "acme/e"]
        .map(|path| (path, shared_sections.clone()))
        .into();
    projects.push(("acme/f", json!({})));
    let export = builder(SecretHandling::Plain, &projects).finish();
    let text = texts_by_path(&export)["acme.yaml"];
    assert!(!text.contains("absent") && !text.contains("push_rule: null"), "{text}");
    assert!(text.contains("match: {path: acme/**, except: [acme/f]}\n"), "{text}");
    for section in ["variables", "hooks", "labels", "push_rule"] {
        assert_eq!(declared_entries(text, "acme/a", section).len(), 1, "{section}: {text}");
        assert_eq!(declared_entries(text, "acme/f", section), [""; 0], "{section}: {text}");
    }
}

#[test]
fn settings_of_most_groups_move_to_defaults_of_groups() {
    let mut builder = builder(SecretHandling::Plain, &[]);
    let settings = json!({"settings": {
        "visibility": "internal", "project_creation_level": "maintainer", "lfs_enabled": false,
        "request_access_enabled": false, "mentions_disabled": true,
    }});
    for path in ["acme", "acme/a", "acme/b", "acme/b/c"] {
        let live = live_container(Scope::Group, path, &settings);
        builder.add(Scope::Group, path, &live, &NameIndex::default());
    }
    let export = builder.finish();
    let text = texts_by_path(&export)["acme.yaml"];
    assert!(
        text.contains("kind: Defaults\nmatch: {path: acme/**}\nfor: Group\nsettings:\n"),
        "{text}"
    );
    assert_eq!(texts_by_path(&export)["acme/b/c.yaml"], "kind: Group\npath: acme/b/c\n");
}

#[test]
fn an_empty_value_is_exported() {
    let variables = json!([{"key": "A", "value": "", "environment_scope": "*"}]);
    let written =
        builder(SecretHandling::Plain, &[("acme/shop", json!({"variables": variables}))]).finish();
    let text = texts_by_path(&written)["acme.yaml"];
    assert!(text.contains("  - {key: A, value: ''}\n"), "{text}");
}

#[test]
fn a_top_level_group_with_a_one_letter_path_is_exported() {
    let settings = json!({"settings": {
        "visibility": "private", "merge_method": "ff", "topics": ["a"], "lfs_enabled": false,
    }});
    // The service refuses this name for new groups.
    let mut builder = builder(SecretHandling::Plain, &[]);
    builder.settings.writes_create = true;
    builder.add(
        Scope::Group,
        "a",
        &live_container(Scope::Group, "a", &json!({})),
        &NameIndex::default(),
    );
    for path in ["a/x", "a/y", "a/z"] {
        builder.add(Scope::Project, path, &live_project(path, &settings), &NameIndex::default());
    }
    let export = builder.finish();
    let text = texts_by_path(&export)["a.yaml"];
    assert!(text.contains("kind: Group\npath: a\n---\nkind: Defaults\n"), "{text}");
    assert!(text.contains("paths: [a/x, a/y, a/z]\ncreate: true\n"), "{text}");
    assert_eq!(declared_entries(text, "a/x", "settings").len(), 1, "{text}");
}

#[test]
fn a_subgroup_is_exported_without_settings_of_top_level_groups() {
    let settings = json!({"settings": {"share_with_group_lock": true, "prevent_sharing_groups_outside_hierarchy": true}});
    for (path, is_exported) in [("acme", true), ("acme/web", false)] {
        let mut builder = builder(SecretHandling::Plain, &[]);
        builder.add(
            Scope::Group,
            path,
            &live_container(Scope::Group, path, &settings),
            &NameIndex::default(),
        );
        let export = builder.finish();
        let text = texts_by_path(&export).values().copied().collect::<String>();
        assert!(text.contains("share_with_group_lock: true"), "{text}");
        assert_eq!(text.contains("prevent_sharing"), is_exported, "{text}");
    }
}

#[test]
fn the_seed_has_the_release_and_the_groups_that_are_not_exported() {
    let visible = |word: &str| json!({"settings": {"visibility": word}});
    let projects = [("acme/web/shop", visible("internal")), ("acme/web/site", visible("public"))];
    let mut builder = builder(SecretHandling::Env, &[]);
    builder.settings.writes_create = true;
    builder.settings.writes_sandbox_seed = true;
    builder.settings.release = DetectedRelease::Known("18.2".parse().unwrap());
    for (path, sections) in &projects {
        builder.add(Scope::Project, path, &live_project(path, sections), &NameIndex::default());
    }
    let export = builder.finish();
    let seed = texts_by_path(&export)["sandbox.yaml"];
    assert_eq!(
        seed,
        "tier: ultimate\nrelease: '18.2'\ngroups:\n  - {path: acme, visibility: public}\n  - {path: acme/web, visibility: public}\n"
    );
}

#[test]
fn the_seed_has_a_project_with_a_runner() {
    let sections = json!({
        "settings": {"visibility": "private"},
        "runners": [{"id": 1, "description": "builder", "runner_type": "project_type"}],
    });
    let mut builder = builder(SecretHandling::Env, &[]);
    builder.settings.writes_create = true;
    builder.settings.writes_sandbox_seed = true;
    builder.add(
        Scope::Project,
        "acme/shop",
        &live_project("acme/shop", &sections),
        &NameIndex::default(),
    );
    let export = builder.finish();
    let seed = texts_by_path(&export)["sandbox.yaml"];
    assert!(
        seed.contains("{description: builder, projects: [rehearsal/runners, acme/shop]}"),
        "{seed}"
    );
}

#[test]
fn ambiguous_entries_are_left_out_and_named() {
    let badge = |id: u64, name: Option<&str>, page: &str| {
        let picture = "https://e.org/i.png";
        json!({"id": id, "name": name, "link_url": page, "image_url": picture, "kind": "project"})
    };
    let (first_url, other_url) = ("https://e.org/x", "https://e.org/y");
    let sections = json!({
        "labels": [
            {"id": 1, "name": "bell \u{1}", "color": "#ff0000", "is_project_label": true},
            {"id": 2, "name": "good", "color": "#ff0000", "is_project_label": true},
        ],
        "badges": [badge(1, Some("docs"), first_url), badge(2, None, first_url), badge(3, Some("other"), other_url)],
    });
    let mut builder = builder(SecretHandling::Plain, &[("acme/shop", sections)]);
    let omitted: Vec<_> =
        builder.omitted_reads().iter().map(|missing| missing.subject.clone()).collect();
    assert_eq!(
        omitted,
        [
            "acme/shop#badges/docs".to_owned(),
            format!("acme/shop#badges/{first_url}@https://e.org/i.png"),
            "acme/shop#labels/bell \u{1}".to_owned()
        ]
    );
    assert_eq!(builder.missing_reads(), []);
    let export = builder.finish();
    let text = texts_by_path(&export)["acme.yaml"];
    assert!(text.contains("name: good") && text.contains("name: other"), "{text}");
    assert!(
        !text.contains("name: docs") && !text.contains(&format!("link_url: {first_url}")),
        "{text}"
    );
    let today = "2026-11-01".parse().unwrap();
    let file = ("acme.yaml".into(), text.to_owned());
    assert_eq!(
        manifest::load_texts([file], today, &Config::default()).unwrap().containers.len(),
        1
    );
}

#[test]
fn values_that_a_manifest_cannot_contain_are_named() {
    let sections = json!({
        "settings": {"description": "bell \u{7}", "issues_template": "a\r\nb", "build_timeout": 0},
        "protected_branches": [{
            "name": "main", "merge_access_levels": [{"access_level": 40}],
            "push_access_levels": [{"user_id": 9, "access_level": null}],
        }],
    });
    let export = builder(SecretHandling::Plain, &[("acme/shop", sections)]).finish();
    let text = texts_by_path(&export)["acme.yaml"];
    for line in [
        "# description not exported: a manifest cannot express it\n",
        "# build_timeout not exported: a manifest cannot express it\n",
        "issues_template: \"a\\r\\nb\"",
        "  # allowed_to_push not exported: it names something that the token cannot see\n  - {name: main, allowed_to_merge: [{access_level: maintainer}]}\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// Exports projects in `acme`, each with one of `methods` as merge method; returns the text.
fn export_methods(methods: &[&str]) -> String {
    let paths: Vec<_> = (0..methods.len()).map(|i| format!("acme/p{i:02}")).collect();
    let project = |method: &&str| {
        json!({"settings": {
            "merge_method": method, "visibility": "private", "topics": ["a"], "wiki_access_level": "disabled",
            "snippets_access_level": "disabled", "lfs_enabled": false, "packages_enabled": false,
        }})
    };
    let projects: Vec<_> =
        paths.iter().map(String::as_str).zip(methods.iter().map(project)).collect();
    let export = builder(SecretHandling::Plain, &projects).finish();
    export.files[0].text.clone()
}

#[test]
fn settings_of_most_projects_move_to_defaults() {
    let text = export_methods(&["ff", "ff", "ff", "ff", "merge", "rebase_merge"]);
    assert!(text.contains("kind: Defaults\nmatch: {path: acme/**}\n"), "{text}");
    assert!(text.contains("  merge_method: ff\n"), "{text}");
    // Because of the `Defaults`, the service's default `merge` must now be declared.
    assert!(text.ends_with(
        "paths: [acme/p00, acme/p01, acme/p02, acme/p03]\n---\nkind: Project\npath: acme/p04\nsettings: {merge_method: merge}\n---\nkind: Project\npath: acme/p05\nsettings: {merge_method: rebase_merge}\n"
    ), "{text}");
    // Half is not a majority.
    let text = export_methods(&["ff", "ff", "ff", "rebase_merge", "rebase_merge", "rebase_merge"]);
    let expected = "paths: [acme/p00, acme/p01, acme/p02]\nsettings: {merge_method: ff}\n";
    assert!(text.contains(expected), "{text}");
}

/// A project at `path` with `badges` badges and one label.
fn sections_with_badges(path: &str, badges: usize) -> Json {
    let badge = |index: usize| {
        let (name, page) = (format!("b{index}"), format!("https://e.org/{index}"));
        json!({"name": name, "link_url": page, "image_url": page, "kind": "project"})
    };
    let label = json!({"name": path, "color": "#ff0000", "is_project_label": true});
    json!({"badges": (0..badges).map(badge).collect::<Vec<_>>(), "labels": [label]})
}

#[test]
fn values_of_three_projects_become_a_profile() {
    let paths = ["acme/a/x", "acme/a/y", "acme/b/z", "acme/c/x", "acme/c/y", "acme/c/z", "acme/d"];
    let badges = [6, 6, 6, 0, 0, 0, 0];
    let sections =
        paths.iter().zip(badges).map(|(path, badges)| (*path, sections_with_badges(path, badges)));
    let export = builder(SecretHandling::Plain, &sections.collect::<Vec<_>>()).finish();
    let texts = texts_by_path(&export);
    let badge = |index| {
        let page = format!("https://e.org/{index}");
        format!("  - {{name: b{index}, link_url: {page}, image_url: {page}}}\n")
    };
    let badges: String = (0..6).map(badge).collect();
    let profile = format!("kind: Profile\nname: acme-badges\nbadges:\n{badges}");
    assert!(texts["acme.yaml"].starts_with(&format!("{profile}---\nkind: Project\n")));
    let project = "kind: Project\npath: acme/b/z\nuses: [acme-badges]\nlabels:\n  - {name: acme/b/z, color: '#ff0000'}\n";
    assert_eq!(texts["acme/b.yaml"], project);
    assert!(!texts["acme/c.yaml"].contains("uses"));
}

/// One file may contain profiles of groups and profiles of projects. Exports of several groups may
/// share a folder.
#[test]
fn each_profile_has_a_unique_name() {
    let mut builder = builder(SecretHandling::Plain, &[]);
    for scope in Scope::ALL {
        for (index, labels) in [8, 8, 8, 0, 0, 0, 0].into_iter().enumerate() {
            let path = format!("acme/{}{index}", scope.noun());
            let label = |i: usize| json!({"name": format!("l{i}"), "color": "#ff0000", "is_project_label": true});
            let description = json!({"description": path});
            let labels: Json = (0..labels).map(label).collect();
            let live =
                live_container(scope, &path, &json!({"settings": description, "labels": labels}));
            builder.add(scope, &path, &live, &NameIndex::default());
        }
    }
    let export = builder.finish();
    let lines = export.files.iter().flat_map(|file| file.text.lines());
    let mut names: Vec<_> = lines.filter_map(|line| line.strip_prefix("name: ")).collect();
    names.sort_unstable();
    assert_eq!(names, ["acme-labels", "acme-labels-2"]);
}

#[test]
fn a_comment_of_many_documents_is_written_once() {
    let mut builder = builder(SecretHandling::Plain, &[]);
    for path in ["acme/a", "acme/b", "acme/c", "acme/d"] {
        let mut live = live_project(path, &json!({"settings": {"description": path}}));
        live.sections.insert("variables", LiveEntries::Partial("no answer".into()));
        builder.add(Scope::Project, path, &live, &NameIndex::default());
    }
    let export = builder.finish();
    let text = texts_by_path(&export)["acme.yaml"];
    assert_eq!(text.matches("variables (").count(), 1, "{text}");
    assert!(text.contains("variables (no answer); also in 3 other documents\n"), "{text}");
}

#[test]
fn values_of_all_top_level_groups_are_written_once() {
    let paths = ["one/a", "one/b", "two/c", "two/d"];
    let settings = json!({"settings": {
        "visibility": "internal", "merge_method": "ff", "lfs_enabled": false, "topics": ["a"],
    }});
    let written =
        builder(SecretHandling::Plain, &paths.map(|path| (path, settings.clone()))).finish();
    let texts = texts_by_path(&written);
    assert!(texts["defaults.yaml"].starts_with("kind: Defaults\nmatch: {path: '**'}\n"));
    assert_eq!(texts["one.yaml"], "kind: Project\npaths: [one/a, one/b]\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sharing_loses_no_declaration(
        projects in prop::collection::vec((0..3_usize, 0..4_usize, 0..4_usize, any::<bool>()), 1..12),
    ) {
        let paths: Vec<_> =
            projects.iter().enumerate().map(|(index, project)| format!("g{}/p{index}", project.0)).collect();
        let sections = projects.iter().map(|(_, badges, method, has_label)| {
            let mut sections = sections_with_badges("same", badges * 4);
            if !has_label {
                sections["labels"] = json!([]);
            }
            let method = ["merge", "ff", "rebase_merge", "ff"][*method];
            sections["settings"] = json!({"merge_method": method, "lfs_enabled": *has_label});
            sections
        });
        let projects: Vec<_> = paths.iter().map(String::as_str).zip(sections).collect();
        let [separate, shared] = [false, true].map(|defaults| {
            let mut builder = builder(SecretHandling::Plain, &projects);
            builder.settings.extracts_defaults = defaults;
            let files = builder.finish().files.into_iter();
            let files = files.map(|file| (file.path.into(), file.text));
            let today = jiff::civil::date(2026, 11, 1);
            manifest::load_texts(files, today, &Config::default()).unwrap()
        });
        prop_assert_eq!(separate.containers.len(), shared.containers.len());
        for (separate, shared) in separate.containers.iter().zip(&shared.containers) {
            prop_assert_eq!(&separate.path, &shared.path);
            let [separate, shared] = [separate, shared].map(desired::declared_values);
            for (entry, fields) in separate {
                // Shared values may include a default of the service.
                for (name, value) in fields {
                    prop_assert_eq!(shared.get(&entry).and_then(|fields| fields.get(&name)), Some(&value));
                }
            }
        }
    }
}

#[test]
fn two_projects_have_no_defaults() {
    assert!(!export_methods(&["ff", "ff"]).contains("Defaults"));
}

#[test]
fn the_order_of_reads_does_not_change_the_export() {
    let projects: Vec<_> = ["acme/a", "acme/B", "acme/c", "acme/sub/d"]
        .map(|path| (path, json!({"settings": {"visibility": "private", "merge_method": "ff", "lfs_enabled": false}, "members": [
            {"id": 3, "username": "bob", "access_level": 30}, {"id": 2, "username": "Alice", "access_level": 40},
        ]}))).into();
    let mut reversed = projects.clone();
    reversed.reverse();
    let export = builder(SecretHandling::Plain, &projects).finish();
    assert_eq!(builder(SecretHandling::Plain, &reversed).finish(), export);
    assert!(
        texts_by_path(&export)["acme.yaml"]
            .contains("  - {user: Alice, access_level: maintainer}\n")
    );
}

#[test]
fn a_group_with_many_projects_is_split_into_several_files() {
    let text = "x".repeat(2_000);
    let paths: Vec<_> = (0..600).map(|i| format!("acme/p{i}")).collect();
    let projects: Vec<_> = paths
        .iter()
        .map(|path| (path.as_str(), json!({"settings": {"description": text}})))
        .collect();
    let mut split_builder = builder(SecretHandling::Plain, &projects);
    split_builder.settings.extracts_defaults = false;
    let export = split_builder.finish();
    assert_eq!(
        texts_by_path(&export).into_keys().collect::<Vec<_>>(),
        ["acme.yaml", "acme~2.yaml", "acme~3.yaml"]
    );
    assert!(export.files.iter().all(|file| file.text.len() < 1 << 20));
}

#[test]
fn a_document_of_many_paths_is_split_into_several_files() {
    let name = "x".repeat(240);
    let paths: Vec<_> = (0..5_000).map(|i| format!("acme/{name}{i}")).collect();
    let topics = json!({"settings": {"topics": ["rust"]}});
    let projects: Vec<_> = paths.iter().map(|path| (path.as_str(), topics.clone())).collect();
    let export = builder(SecretHandling::Plain, &projects).finish();
    assert!(export.files.len() > 1);
    assert!(export.files.iter().all(|file| file.text.len() < 1 << 20));
    let text: String = export.files.iter().map(|file| &*file.text).collect();
    assert!(paths.iter().all(|path| text.matches(&format!("{path}\n")).count() == 1));
}

#[test]
fn export_time_grows_linearly_with_projects() {
    steps::assert_linear_growth("exported projects", |n| {
        let new_sections = |index: usize| {
            let (name, method) = (format!("OWN_{index}"), ["ff", "merge"][index % 2]);
            json!({
                "settings": {"merge_method": method, "description": name},
                "variables": [{"key": name, "value": "x", "environment_scope": "*"},
                    {"key": "SHARED", "value": "x", "environment_scope": "*"}],
            })
        };
        let paths: Vec<_> = (0..n).map(|i| format!("acme/g{}/p{i}", i / 10)).collect();
        let projects: Vec<_> =
            paths.iter().enumerate().map(|(at, path)| (path.as_str(), new_sections(at))).collect();
        builder(SecretHandling::Plain, &projects).finish();
    });
}
