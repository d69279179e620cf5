//! Tests of faults in manifests.

use super::*;
use crate::{desired::EntryPresence, diagnostic::Severity};

/// A segment `..` is removed from a URL, so no request could address an entry with this name.
#[test]
fn a_name_of_dots_is_refused() {
    for (name, expected) in [("..", vec![("value", 4)]), (".", vec![("value", 4)]), ("a..", vec![])]
    {
        let text = format!(
            "kind: Group\npath: acme\nsaml_group_links:\n  - {{saml_group_name: '{name}', access_level: developer}}\n"
        );
        assert_eq!(faults(&[("a.yaml", &text)]), expected, "{name}");
    }
}

#[test]
fn a_fault_hides_no_other() {
    let found_faults = faults(&[
        ("a.yaml", "kind: Project\npath: acme/a\nvariables: [{key: A B}]\nhooks: [\n"),
        (
            "b.yaml",
            "kind: Project\npath: acme/b\nvariables: [{key: A B}, {key: C, value: 1}]\n---\nkind: Project\npath: ACME/C\nx: 1\n",
        ),
        ("c.yaml", "kind: Project\npath: acme/c\nsettings: {issues_enabled: true}\n"),
    ]);
    let expected = [
        ("syntax", 4),
        ("pattern", 3),
        ("quote", 3),
        ("unknown-field", 7),
        ("duplicate-project", 2),
        ("deprecated", 3),
    ];
    assert_eq!(found_faults, expected);
}

/// The code and the message of every diagnostic about `text`, with `service` in `undrift.yaml`.
fn check_messages(service: &str, text: &str) -> Vec<String> {
    let config = format!("version: 1\nservice: {{{service}}}\n");
    let text = format!("kind: Project\npath: a/b\n{text}");
    let diagnostics = load_files(&[("undrift.yaml", &config), ("a.yaml", &text)]).diagnostics;
    let sorted_faults = diagnostics.sorted().into_iter();
    sorted_faults
        .map(|d| format!("{}: {}; {}", d.code, d.message, d.help.clone().unwrap_or_default()))
        .collect()
}

#[test]
fn more_entries_than_the_service_accepts_are_a_warning() {
    let schedules = |count: usize| {
        let entry =
            |at| format!("  - {{description: s{at}, ref: refs/heads/main, cron: 0 1 * * *}}\n");
        format!("pipeline_schedules:\n{}", (0..count).map(entry).collect::<String>())
    };
    assert_eq!(check_messages("", &schedules(10)), [""; 0]);
    let warning = "exclusive: a project can have only 10 pipeline schedules by default, and 11 are declared; \
                   remove some of them; an administrator can raise the limit";
    assert_eq!(check_messages("", &schedules(11)), [warning]);
}

#[test]
fn a_field_must_exist_in_the_configured_release() {
    let release_key = |release: &str| format!("release: '{release}'");
    let variable = "variables: [{key: A, value: b, description: c}]\n";
    let too_old = "release: `description` needs release 16.2 or later; `service.release` is `15.8`; \
                   leave it out, or correct `service.release` in undrift.yaml";
    assert_eq!(check_messages(&release_key("15.8"), variable), [too_old]);
    assert_eq!(check_messages(&release_key("16.1.9-ee"), variable).len(), 1);
    for service in ["", &release_key("16.2"), &release_key("18.2.0-pre")] {
        assert_eq!(check_messages(service, variable), [""; 0], "{service}");
    }
    let planner =
        "members: [{user: a, access_level: Planner}]\nshares: [{group: g, group_access: 15}]\n";
    let messages = check_messages(&release_key("17.6"), planner);
    assert!(
        messages.len() == 2 && messages.iter().all(|f| f.contains("`planner` needs release 17.7")),
        "{messages:?}"
    );
    assert_eq!(check_messages(&release_key("17.7"), planner), [""; 0]);
    let removed_field = "settings: {operations_access_level: enabled}\n";
    assert!(
        check_messages(&release_key("16.0"), removed_field)[0]
            .starts_with("release: `operations_access_level` is gone from release 16.0 on")
    );
    assert!(check_messages(&release_key("15.11"), removed_field)[0].starts_with("deprecated"));
    // A field that only undrift uses does not depend on the release.
    let hook = "hooks: [{name: ci, url: 'https://h'}]\n";
    assert_eq!(check_messages(&release_key("15.8"), hook), [""; 0]);
}

#[test]
fn an_old_spelling_is_valid_until_the_new_one_exists() {
    let (old, new) = ("settings: {emails_disabled: true}\n", "settings: {emails_enabled: true}\n");
    assert_eq!(check_messages("release: '15.8'", old), [""; 0]);
    assert_eq!(
        check_messages("release: '16.3'", old),
        [
            "deprecated: `emails_disabled` is deprecated from release 16.3 on; use `emails_enabled` with the opposite value"
        ]
    );
    assert!(
        check_messages("", old)[0]
            .ends_with("; for an older service, set `service.release` in undrift.yaml")
    );
    assert_eq!(
        check_messages("release: '15.8'", new),
        ["release: `emails_enabled` needs release 16.3 or later; `service.release` is `15.8`; \
          use `emails_disabled` with the opposite value, or correct `service.release` in undrift.yaml"]
    );
    let both_spellings = "settings: {emails_disabled: true, emails_enabled: false}\n";
    assert!(check_messages("", both_spellings)[0].starts_with("both-spellings"));
    let release_faults = faults(&[
        ("undrift.yaml", "version: 1\nservice: {release: 16.10}\n"),
        ("a.yaml", "kind: Project\npath: a/b\n"),
    ]);
    assert_eq!(release_faults, [("quote", 2)], "16.10 is another number than 16.1");
}

#[test]
fn settings_that_the_service_would_ignore_or_refuse_are_reported() {
    let first_message = |config: &str, settings: &str| {
        let messages = check_messages(config, &format!("settings: {settings}\n"));
        messages.first().map(|message| message.split(':').next().unwrap().to_owned())
    };
    for (settings, code) in [
        ("{container_expiration_policy: {enabled: true}}", Some("unlimited")),
        ("{container_expiration_policy: {enabled: true, name_regex: ''}}", Some("unlimited")),
        (
            "{container_expiration_policy: {enabled: true, name_regex_delete: a}}",
            Some("deprecated"),
        ),
        ("{container_expiration_policy: {enabled: true, name_regex: a}}", None),
        ("{container_expiration_policy: {enabled: false}}", None),
        (
            "{container_expiration_policy: {name_regex: a, name_regex_delete: a}}",
            Some("both-spellings"),
        ),
        ("{ci_config_path: /x.yml}", Some("path")),
        ("{ci_config_path: ../x.yml}", Some("path")),
        ("{ci_config_path: x.yml@acme/ci}", None),
        ("{repository_access_level: private, builds_access_level: enabled}", Some("too-visible")),
        ("{repository_access_level: private, builds_access_level: private}", None),
        ("{mirror: false, mirror_trigger_builds: true}", Some("no-effect")),
        ("{mirror: false, mirror_trigger_builds: false}", None),
        ("{issues_access_level: disabled, issues_template: x}", Some("no-effect")),
        ("{topics: [ü]}", Some("ascii")),
    ] {
        assert_eq!(first_message("", settings).as_deref(), code, "{settings}");
    }
    let long_topic = format!("{{topics: [{}]}}", "x".repeat(256));
    assert!(first_message("", &long_topic).is_some());
    // The declared value of a group above decides.
    let first_code = |project_settings: &str, group_settings: &str| {
        let text = format!(
            "kind: Group\npath: acme\nsettings: {group_settings}\n---\nkind: Project\npath: acme/shop\nsettings: {project_settings}\n"
        );
        faults(&[("a.yaml", &text)]).first().map(|(code, _)| *code)
    };
    for (project_settings, group_settings, code) in [
        ("{visibility: public}", "{visibility: private}", Some("too-visible")),
        ("{visibility: private}", "{visibility: private}", None),
        ("{lfs_enabled: true}", "{lfs_enabled: false}", None),
        (
            "{show_diff_preview_in_email: true}",
            "{show_diff_preview_in_email: false}",
            Some("no-effect"),
        ),
        (
            "{shared_runners_enabled: true}",
            "{shared_runners_setting: disabled_and_unoverridable}",
            Some("too-visible"),
        ),
    ] {
        assert_eq!(
            first_code(project_settings, group_settings),
            code,
            "{project_settings} below {group_settings}"
        );
    }
    let rules = "kind: Project\npath: acme/shop\nsettings: {approvals_before_merge: 1}\napproval_rules: [{name: A, approvals_required: 1}]\n";
    assert_eq!(faults(&[("a.yaml", rules)]), []);
    let delete = format!("{rules}unlisted: {{approval_rules: delete}}\n");
    assert_eq!(faults(&[("a.yaml", &delete)]), [("approvals-twice", 3)]);
}

/// The service neither shows nor changes entries of a feature that is off.
#[test]
fn sections_of_a_feature_that_is_off_are_reported() {
    let schedule = "pipeline_schedules: [{description: nightly, ref: main, cron: 0 4 * * *}]\n";
    let label = "labels: [{name: bug, color: '#ff0000'}]\n";
    let count_closed_faults = |settings: &str, section: &str| {
        let messages = check_messages("", &format!("settings: {{{settings}}}\n{section}"));
        messages.iter().filter(|message| message.contains("turns its feature off")).count()
    };
    let message = "no-effect: `pipeline_schedules` has no effect while `builds_access_level` turns its feature off; \
                   turn the feature on, or leave `pipeline_schedules` out; \
                   if a rule declares it, write `ignore_layers: [pipeline_schedules]`";
    let off = format!("settings: {{builds_access_level: disabled}}\n{schedule}");
    assert_eq!(check_messages("", &off), [message]);
    for (settings, section, count) in [
        ("builds_access_level: private", schedule, 0),
        ("jobs_enabled: false", schedule, 1),
        ("jobs_enabled: true", schedule, 0),
        ("builds_access_level: disabled", "pipeline_schedules: []\n", 0),
        // Merge requests have labels too.
        ("issues_access_level: disabled", label, 0),
        ("issues_access_level: disabled, merge_requests_access_level: disabled", label, 1),
        ("environments_access_level: disabled", "environments: [{name: prod}]\n", 1),
    ] {
        assert_eq!(count_closed_faults(settings, section), count, "{settings} {section}");
    }
    let ignoring = format!(
        "settings: {{builds_access_level: disabled}}\nignore_layers: [pipeline_schedules]\n\
         ---\nkind: Defaults\nmatch: {{path: a/**}}\n{schedule}"
    );
    assert_eq!(check_messages("", &ignoring), [""; 0], "as the help says");
}

/// If only the misspelled field were reported, a user would see the missing field only after
/// correcting it.
#[test]
fn a_misspelled_field_hides_no_missing_one() {
    let codes = |fields: &str| {
        let text =
            format!("kind: Project\npath: a/b\nintegrations:\n  - {{slug: jira, {fields}}}\n");
        faults(&[("a.yaml", &text)]).into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    let url = "https://jira.example.org";
    assert_eq!(codes(&format!("jira_url: '{url}', username: bot")), ["missing", "unknown-field"]);
    let password = "password: {env: JIRA}";
    assert_eq!(codes(&format!("jira_url: '{url}', username: bot, {password}")), ["unknown-field"]);
    let group = "kind: Group\npath: a\nintegrations: [{slug: jenkins, jenkins_url: 'https://h', project_name: x}]\n";
    assert_eq!(
        faults(&[("a.yaml", group)]).len(),
        1,
        "no missing field: `project_name` is a field of projects"
    );
    // The key `frobnicate` has no known meaning.
    assert_eq!(codes(&format!("frobnicate: '{url}', username: bot")), ["unknown-field"]);
}

/// A second message would advise to leave the reference for jobs, which contradicts the error.
#[test]
fn a_masked_reference_in_the_syntax_of_a_shell_is_reported_once() {
    for (value, reference) in [
        ("${SHOP_TOKEN}", "`{env: SHOP_TOKEN}`"),
        ("$SHOP_TOKEN", "`{env: SHOP_TOKEN}`"),
        ("{{ shop_token }}", "`{env: NAME}`"),
        ("${var.shop_token}", "`{env: NAME}`"),
    ] {
        let text = format!("variables: [{{key: A, masked: true, value: '{value}'}}]\n");
        let messages = check_messages("", &text);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(
            messages[0].starts_with("masked-value") && messages[0].contains(reference),
            "{messages:?}"
        );
    }
}

/// Without documents, a rule declares nothing unless it has `undeclared: include`.
#[test]
fn advice_to_write_a_rule_names_undeclared_projects() {
    let group = "kind: Group\npath: acme\nsettings: {merge_method: ff}\n";
    let glob = "kind: Project\npath: acme/*\n";
    for text in [group, glob] {
        let diagnostics = load_files(&[("a.yaml", text)]).diagnostics;
        let help = diagnostics.sorted().into_iter().find_map(|fault| fault.help.clone());
        assert!(help.as_deref().unwrap_or_default().contains("`undeclared: include`"), "{help:?}");
    }
}

#[test]
fn several_errors_at_one_place_are_reported_once() {
    assert_eq!(
        faults(&[("a.yaml", "kind: Project\npath: a/b\nsettings: {visibility: 3}\n")]),
        [("choice", 3)]
    );
    assert_eq!(
        faults(&[("a.yaml", "kind: Project\npath: a/b\nmembers: [{user: a, access_level: []}]\n")]),
        [("choice", 3)]
    );
}

#[test]
fn an_absent_entry_may_have_its_identity_only() {
    let text = "kind: Project\npath: a/b\nhooks: [{name: x, url: 'https://h', previously: ['https://g'], state: absent}]\n";
    assert_eq!(
        containers(text)[0].section("hooks").unwrap().entries[0].state,
        EntryPresence::Absent
    );
    let text = "kind: Project\npath: a/b\nhooks: [{url: 'https://h', push_events: true, extra: {a: 1}, state: absent}]\n";
    assert_eq!(faults(&[("a.yaml", text)]), [("absent", 3), ("absent", 3)]);
}

#[test]
fn the_tier_is_checked_only_if_it_is_configured() {
    let text = "kind: Project\npath: a/b\nsettings: {only_allow_merge_if_all_status_checks_passed: true, mirror: true}\n";
    for (tier, count) in [
        ("", 0),
        ("service: {tier: free}\n", 2),
        ("service: {tier: premium}\n", 1),
        ("service: {tier: ultimate}\n", 0),
    ] {
        let faults = faults(&[("undrift.yaml", &format!("version: 1\n{tier}")), ("a.yaml", text)]);
        assert_eq!(faults, vec![("tier", 3); count], "{tier}");
    }
}

#[test]
fn warnings_are_not_errors() {
    let loaded =
        load_files(&[("a.yaml", "kind: Project\npath: a/b\nsettings: {issues_enabled: true}\n")]);
    assert!(loaded.desired.is_some());
    assert_eq!(
        (
            loaded.diagnostics.count_severity(Severity::Warning),
            loaded.diagnostics.count_severity(Severity::Error)
        ),
        (1, 0)
    );
}

#[test]
fn hidden_warnings_are_not_errors() {
    let document = |i| {
        format!(
            "---\nkind: Project\npath: a/p{i}\nsettings: {{issues_enabled: true, wiki_enabled: true}}\n"
        )
    };
    let loaded = load_files(&[("a.yaml", &(0..100).map(document).collect::<String>())]);
    assert_eq!(
        (
            loaded.diagnostics.count_severity(Severity::Warning),
            loaded.diagnostics.count_severity(Severity::Error)
        ),
        (101, 0)
    );
    let faulty_text =
        (0..100).map(document).collect::<String>() + "---\nkind: Projct\n" + &document(100);
    assert!(load_files(&[("a.yaml", &faulty_text)]).diagnostics.has_errors());
}

#[test]
fn folders_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    // A sparse file needs no disk space.
    fs::File::create(folder.path().join("a.yaml")).unwrap().set_len(257 << 20).unwrap();
    let loaded = load(folder.path(), &environment_in(folder.path()));
    let messages: Vec<_> =
        loaded.diagnostics.sorted().into_iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!((messages, loaded.paths.len()), (vec!["more than 256 MiB of manifests"], 0));
}

#[test]
fn the_limit_counts_the_faults_of_all_stages() {
    let schema_fault = |i| format!("  - {{key: A{i}, value: 1}}\n");
    let check_fault = |i| {
        format!(
            "  - {{key: B{i}, value: short, masked: true}}\n  - {{key: C{i}_TOKEN, value: a, protected: true}}\n"
        )
    };
    let entries: String = (0..60).map(schema_fault).chain((0..60).map(check_fault)).collect();
    let text = format!("kind: Project\npath: a/b\nvariables:\n{entries}");
    let loaded = load_files(&[("a.yaml", &text), ("b.yaml", "kind: Project\npath: a/c\nx: 1\n")]);
    let messages: Vec<_> =
        loaded.diagnostics.sorted().into_iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(messages.len(), 102);
    assert_eq!(messages[0], "80 more faults in `a.yaml` are not shown");
    assert_eq!(messages[101], "unknown key `x`");
}

#[test]
fn a_file_that_changes_while_it_is_checked_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.yaml");
    let file = ManifestFile {
        name: "a.yaml".into(),
        path: path.clone(),
        is_named_by_command: true,
        replacement: None,
    };
    let text = "kind: Project\npath: a/b\nvariables:\n  - {key: A, value: short, masked: true}\n";
    let context = CheckContext {
        config: Config::default(),
        today: jiff::civil::date(2030, 1, 1),
        file_reader: Some(Secrets::new(folder.path(), [])),
        variables: crate::secret::AllowedVariables::default(),
    };
    let show_faults = |new_text: Option<&str>| {
        match new_text {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let (_, faults) = check::check_declarations(
            layer::merge_documents(read::read_text(&file, text).documents, &[]),
            &layer::LayerRules::default(),
            &context,
        );
        let files = [ManifestFile {
            name: file.name.clone(),
            path: path.clone(),
            is_named_by_command: true,
            replacement: None,
        }];
        let diagnostics = locate::locate_faults(faults, locate::FaultCounts::new(), &files);
        diagnostics.into_iter().collect::<Diagnostics>().render(TextStyle::default())
    };
    for new_text in [
        "kind: Project\nx: [\n  CANARY\n  CANARY CANARY CANARY CANARY CANARY",
        "",
        "a",
        "CANARY\n\n\nCANARY: CANARY",
    ] {
        let report = show_faults(Some(new_text));
        assert!(report.contains("--> a.yaml:") && !report.contains("CANARY"), "{report}");
    }
    let shown = show_faults(None);
    assert!(shown.contains("--> a.yaml:4:14"), "{shown}");
}

#[test]
fn a_manifest_instead_of_a_seed_is_recognised() {
    let text = "kind: Project\npath: acme/a\n---\nkind: Project\npath: acme/b\n";
    let faults =
        find_seed_faults(text, "sandbox.yaml".into(), json!({"type": "object"}), "", |_| None);
    let [fault] = faults.sorted()[..] else { panic!("{faults:?}") };
    let message =
        "this is a manifest, and `sandbox.yaml` is the file for the initial data of the sandbox";
    assert_eq!((fault.code, &*fault.message), ("document", message));
}

/// The service ignores the case of paths.
#[test]
fn paths_ignore_case() {
    let helps = |files: &[(&str, &str)]| {
        let diagnostics = load_files(files).diagnostics;
        diagnostics
            .sorted()
            .into_iter()
            .map(|d| d.help.clone().unwrap_or_default())
            .collect::<Vec<_>>()
    };
    for (glob, expected) in [
        (
            "Acme/**",
            "`Acme/**` matches only what is below this group; add `{path: ACME}` for the group itself",
        ),
        (
            "acme/**",
            "`acme/**` matches only what is below this group; add `{path: ACME}` for the group itself",
        ),
        ("Top", "`*` matches within one part of a path, `**` matches everything below"),
    ] {
        let config = format!("version: 1\nmanages: [{{path: {glob}}}]\n");
        let found_helps =
            helps(&[("undrift.yaml", &config), ("a.yaml", "kind: Group\npath: ACME\n")]);
        assert!(
            found_helps.len() == 1 && found_helps[0].ends_with(expected),
            "{glob}: {found_helps:?}"
        );
    }
    let config = "version: 1\nmanages: [{path: Acme}]\n";
    let actual = helps(&[("undrift.yaml", config), ("a.yaml", "kind: Project\npath: acme/shop\n")]);
    let expected = "`Acme` matches only this group; `Acme/**` matches everything below it";
    assert!(actual.len() == 1 && actual[0].ends_with(expected), "{actual:?}");
    let moved_group = "kind: Group\npath: new\npreviously: [old/team]\n---\nkind: Project\npath: new/shop\n\
                 settings: {ci_config_path: ci.yml@Old/Team/templates}\n";
    assert_eq!(helps(&[("a.yaml", moved_group)]), ["if this is its path, write `new`"]);
}

/// The limit of files also applies to texts of exports and edits.
#[test]
fn a_text_of_more_than_1_mib_is_refused() {
    let today = jiff::civil::date(2030, 1, 1);
    let text = |bytes: usize| format!("kind: Group\npath: acme\n#{}\n", "x".repeat(bytes));
    let load_text = |bytes| load_texts([("a.yaml".into(), text(bytes))], today, &Config::default());
    assert!(load_text(1000).is_ok());
    let faults = load_text(1 << 20).unwrap_err();
    let codes: Vec<_> = faults.sorted().into_iter().map(|fault| fault.code).collect();
    assert_eq!(codes, ["too-large"]);
}

/// The messages of the errors in `text`.
fn error_messages(text: &str) -> Vec<String> {
    let diagnostics = load_files(&[("a.yaml", text)]).diagnostics;
    let sorted_faults = diagnostics.sorted().into_iter();
    let errors = sorted_faults.filter(|fault| fault.severity == Severity::Error);
    errors.map(|fault| format!("{}: {}", fault.code, fault.message)).collect()
}

#[test]
fn nothing_names_a_project_that_is_deleted() {
    let deleted = "kind: Project\npath: acme/shop\nstate: absent\n---\n";
    let other = "kind: Project\npath: acme/api\n";
    for (naming, field) in [
        ("job_token_allowlist: [{project: Acme/Shop}]", Some("project")),
        ("create: true\nfork_of: Acme/Shop", Some("fork_of")),
        ("job_token_allowlist: [{project: Acme/Shop, state: absent}]", None),
        // Once the project exists, its members are not copied again.
        ("create: {members_from: Acme/Shop}", None),
    ] {
        let expected = field
            .map(|field| format!("unknown-project: `{field}` names `Acme/Shop`, which is deleted"));
        let text = format!("{deleted}{other}{naming}\n");
        assert_eq!(error_messages(&text), Vec::from_iter(expected), "{naming}");
    }
}

#[test]
fn an_integration_that_a_group_declares_is_not_absent_below() {
    let absent =
        "kind: Project\npath: acme/web/api\nintegrations: [{slug: external-wiki, state: absent}]\n";
    let group = "---\nkind: Group\npath: acme\nintegrations: ";
    let entry = "slug: external-wiki, external_wiki_url: 'https://h.example.org'";
    for (integrations, expected) in [
        (
            format!("[{{{entry}}}]"),
            vec!["inherited: `external-wiki` is inherited from `acme`, which declares it"],
        ),
        ("[{slug: external-wiki, state: absent}]".to_owned(), vec![]),
    ] {
        assert_eq!(error_messages(&format!("{absent}{group}{integrations}\n")), expected);
    }
}
