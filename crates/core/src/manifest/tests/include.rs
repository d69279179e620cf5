//! Tests of rules that include undeclared projects: at sample paths, and at existing paths.

use std::sync::Arc;

use super::*;
use crate::{
    desired::{ExclusionReason, MatchedContainer, PathClass, Roster},
    field::Scope,
    origin::Layer,
};

const RULES: &str = "kind: Defaults
match: {path: acme/**, except: [acme/legacy/*]}
undeclared: include
create: {initialize_with_readme: true}
settings: {merge_method: ff}
uses: [base]
---
kind: Profile
name: base
variables: [{key: NAME, value: {text: '{name}'}}]
---
kind: Defaults
match: {path: acme/web/*}
settings: {merge_method: merge}
";

/// The code and the message of each fault.
fn fault_messages(files: &[(&str, &str)]) -> Vec<String> {
    let diagnostics = load_files(files).diagnostics;
    let sorted = diagnostics.sorted();
    sorted.into_iter().map(|fault| format!("{}: {}", fault.code, fault.message)).collect()
}

fn roster(scoped_paths: &[(Scope, &str)]) -> Roster {
    let match_container = |(scope, path): &(Scope, &str)| MatchedContainer {
        scope: *scope,
        path: (*path).to_owned(),
        exclusion: None,
    };
    Roster { containers: scoped_paths.iter().map(match_container).collect(), ..Roster::default() }
}

/// The declarations after the projects at `paths` are included.
fn include_paths(files: &[(&str, &str)], paths: &[&str]) -> Result<Desired, Diagnostics> {
    let loaded = load_files(files);
    let scoped_paths: Vec<_> = paths.iter().map(|path| (Scope::Project, *path)).collect();
    let mut roster = roster(&scoped_paths);
    loaded.include_rules.unwrap().include_from(loaded.desired.unwrap(), &mut roster)
}

/// Two paths can result in the same name, so an included project could get the secret of another
/// project.
#[test]
fn no_secret_is_named_after_an_included_project() {
    let document = "kind: Project\npath: acme/a-b\n";
    // The second glob has no sample path: only the existing project shows the fault.
    for (path, has_sample) in [("acme/**", true), ("'acme/[!x]*'", false)] {
        for body in [
            "variables: [{key: A, value: {env: 'T_{path_slug}'}}]",
            "variables: [{key: A, value: {file: 's/{path_slug}'}}]",
            "params: {t: {env: 'T_{path_slug}'}}\nvariables: [{key: A, value: {text: '{t}'}}]",
            "uses: [p]\n---\nkind: Profile\nname: p\nvariables: [{key: A, value: {env: 'T_{name}'}}]",
        ] {
            let rule =
                format!("kind: Defaults\nmatch: {{path: {path}}}\nundeclared: include\n{body}\n");
            let files = [("a.yaml", &*rule), ("b.yaml", document)];
            let diagnostics = match has_sample {
                true => load_files(&files).diagnostics,
                false => include_paths(&files, &["acme/a.b"]).unwrap_err(),
            };
            let message = "the path of an undeclared project must not choose a secret";
            let is_refused = |fault: &&Diagnostic| {
                fault.severity == crate::diagnostic::Severity::Error && fault.message == message
            };
            assert!(diagnostics.sorted().iter().any(is_refused), "{path}: {body}: {diagnostics:?}");
        }
    }
}

/// The secrets that rules need are resolved before the roster is read.
#[test]
fn secrets_in_templates_and_data_of_rules_are_listed() {
    let rules = "kind: Defaults
match: {path: acme/**}
undeclared: include
params: {t: {env: PARAM}}
variables: [{key: A, value: {text: 'a{t}{env:TEXT}'}}]
hooks: [{url: 'https://h.example.org', custom_headers: [{key: A, value: {env: ROW}}], extra: {b: {c: [{file: d}]}}}]
";
    let includes = load_files(&[("a.yaml", rules)]).include_rules.unwrap();
    let mut references: Vec<_> = includes
        .referenced_values()
        .flat_map(|value| value.sources())
        .map(|reference| reference.to_string())
        .collect();
    references.sort();
    assert_eq!(references, ["env:PARAM", "env:ROW", "env:TEXT", "file:d"]);
}

#[test]
fn including_rules_are_checked_offline() {
    let no_faults = [""; 0];
    assert_eq!(
        fault_messages(&[("a.yaml", RULES)]),
        no_faults,
        "included projects use each rule and profile"
    );
    let rules_without_include = RULES.replace("undeclared: include\n", "");
    assert_eq!(
        fault_messages(&[("a.yaml", &rules_without_include)]).len(),
        1,
        "without any project, there is only one fault"
    );
    for (rule, expected) in [
        ("uses: [other]", "unknown-profile: unknown profile `other`"),
        ("settings: {description: {text: '{port}'}}", "template: "),
        ("variables: [{key: A, value: abc, masked: true}]", "masked-value: "),
        ("unlisted: {variables: delete}", "unlisted: "),
        (
            "uses: [a]\n---\nkind: Profile\nname: a\n---\nkind: Defaults\nmatch: {path: 'acme/**'}\nuses: []",
            "ambiguous-layers: `uses` has two values",
        ),
    ] {
        let text =
            format!("kind: Defaults\nmatch: {{path: acme/**}}\nundeclared: include\n{rule}\n");
        let lines = fault_messages(&[("a.yaml", &text)]);
        assert!(lines.iter().any(|fault| fault.starts_with(expected)), "{rule}: {lines:?}");
    }
    // A rule that only applies to projects included by another rule is checked too.
    let inner_rule = "kind: Defaults\nmatch: {path: acme/x/y*}\nsettings: {merge_method: up}\n";
    let lines = fault_messages(&[("a.yaml", RULES), ("b.yaml", inner_rule)]);
    assert!(lines.len() == 1 && lines[0].starts_with("choice"), "{lines:?}");
    // A rule without a match is still reported.
    let other_rule = "kind: Defaults\nmatch: {path: other/*}\nsettings: {}\n";
    let idle_messages = fault_messages(&[("a.yaml", RULES), ("b.yaml", other_rule)]);
    assert_eq!(idle_messages, ["idle-rule: this matches no declared project"]);
    for path in ["'**/site'", "'acme/[a-m]*'", "'*/shop'", "'acme/**/a'"] {
        let other_rule = format!("kind: Defaults\nmatch: {{path: {path}}}\nsettings: {{}}\n");
        assert_eq!(
            fault_messages(&[("a.yaml", RULES), ("b.yaml", &other_rule)]),
            no_faults,
            "{path}"
        );
    }
}

#[test]
fn included_projects_get_the_merged_rules() {
    let document = "kind: Project\npath: acme/own\nuses: []\n";
    let files = [("a.yaml", RULES), ("b.yaml", document)];
    let desired = include_paths(&files, &["acme/Shop", "acme/web/site"]).unwrap();
    let paths: Vec<_> = desired.containers.iter().map(|container| &*container.path).collect();
    assert_eq!(paths, ["acme/own", "acme/Shop", "acme/web/site"]);
    let [declared, shop, site] = &desired.containers[..] else { panic!() };
    assert_eq!(
        (declared.including_glob.as_deref(), shop.including_glob.as_deref()),
        (None, Some("acme/**"))
    );
    assert_eq!((shop.origin.layer, shop.origin.line), (Layer::Defaults, 2));
    assert!(shop.creation_policy.create_fields().is_none(), "it exists");
    let field_value = |container: &Container, section: &str, name: &str| {
        let entry = &container.section(section).unwrap().entries[0];
        entry.fields.get(name).unwrap().value.plain_json().cloned().unwrap()
    };
    assert_eq!(field_value(shop, "settings", "merge_method"), "ff");
    assert_eq!(field_value(site, "settings", "merge_method"), "merge");
    assert_eq!(field_value(shop, "variables", "value"), "Shop");
}

#[test]
fn a_conflict_in_an_included_project_is_an_error_with_both_places() {
    let rule = "kind: Defaults\nmatch: {path: '**/shop'}\nsettings: {merge_method: merge}\n";
    let result = include_paths(&[("a.yaml", RULES), ("b.yaml", rule)], &["acme/shop", "acme/site"]);
    let text = result.unwrap_err().render(TextStyle::default());
    for expected in ["error[ambiguous-layers]", "--> a.yaml:5", "b.yaml:3"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn a_path_is_declared_or_included_or_unmatched() {
    let files = [
        ("undrift.yaml", "version: 1\nmanages: [{path: acme/**, except: [acme/theirs]}]\n"),
        ("a.yaml", RULES),
        ("b.yaml", "kind: Project\npath: acme/neo\npreviously: [acme/old]\n"),
    ];
    let loaded = load_files(&files);
    let (desired, includes) = (loaded.desired.unwrap(), loaded.include_rules.unwrap());
    let query = includes.roster_query(&desired);
    for (path, expected) in [
        ("acme/neo", PathClass::Declared),
        ("ACME/Old", PathClass::Declared),
        ("acme/shop", PathClass::Included),
        ("acme/web/site", PathClass::Included),
        ("acme/legacy/x", PathClass::Unmatched),
        ("acme/theirs", PathClass::Unmatched),
        ("acme", PathClass::Unmatched),
        ("other/shop", PathClass::Unmatched),
    ] {
        assert_eq!((query.classify)(Scope::Project, path), expected, "{path}");
    }
    assert_eq!((query.classify)(Scope::Group, "acme/shop"), PathClass::Unmatched);
}

#[test]
fn only_named_rules_include_projects() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("undrift.yaml", "version: 1\n");
    write("rules/a.yaml", RULES);
    write("shop/b.yaml", "kind: Project\npath: acme/own\n");
    for (named_path, has_includes) in
        [("", true), ("rules", true), ("rules/a.yaml", true), ("shop", false)]
    {
        let loaded = load(&folder.path().join(named_path), &environment_in(folder.path()));
        assert!(loaded.desired.is_some(), "{}", loaded.diagnostics.render(TextStyle::default()));
        assert_eq!(loaded.include_rules.is_some(), has_includes, "{named_path}");
    }
}

#[test]
fn excluded_projects_are_not_included() {
    let loaded = load_files(&[("a.yaml", RULES)]);
    let mut roster = roster(&[(Scope::Project, "acme/shop"), (Scope::Project, "acme/old")]);
    roster.containers[1].exclusion = Some(ExclusionReason::Archived);
    roster.missing_namespaces = vec!["acme".to_owned()];
    let includes = loaded.include_rules.unwrap();
    let desired = includes.include_from(loaded.desired.unwrap(), &mut roster).unwrap();
    let paths: Vec<Arc<str>> =
        desired.containers.into_iter().map(|container| container.path).collect();
    assert_eq!(paths, ["acme/shop".into()]);
    assert_eq!(&*roster.incomplete_globs[0].0, "acme/**");
}

/// Without this warning, a mistyped rule would pass every check.
#[test]
fn a_rule_that_matches_nothing_at_all_is_a_warning() {
    let rule = |path: &str| {
        format!(
            "kind: Defaults\nmatch: {{path: {path}}}\nundeclared: include\nsettings: {{merge_method: ff}}\n"
        )
    };
    let check_rule = |path: &str, change: fn(&mut Roster)| {
        let loaded = load_files(&[("a.yaml", &rule(path))]);
        let mut roster = roster(&[(Scope::Project, "acme/shop")]);
        change(&mut roster);
        let includes = loaded.include_rules.unwrap();
        let desired = includes.include_from(loaded.desired.unwrap(), &mut roster).unwrap();
        let warnings = roster.idle_rule_warnings.sorted().into_iter();
        let warnings: Vec<_> =
            warnings.map(|warning| (warning.message.clone(), warning.help.clone())).collect();
        (warnings, roster.incomplete_globs.len(), desired.containers.len())
    };
    let message = "this matches no declared or existing project".to_owned();
    let help = "correct `match`, or remove the document";
    let change_nothing = |_: &mut Roster| ();
    let found = vec![(message.clone(), Some(help.to_owned()))];
    assert_eq!(check_rule("acme/web-*", change_nothing), (found, 0, 0));
    let found =
        vec![(message, Some(crate::manifest::faults::texts::IDLE_EXPRESSION[3].to_owned()))];
    let lose_namespace = |roster: &mut Roster| roster.missing_namespaces = vec!["^acme".to_owned()];
    assert_eq!(check_rule("'^acme/.*$'", lose_namespace), (found, 1, 0));
    assert_eq!(check_rule("acme/**", change_nothing), (vec![], 0, 1));
    // If the matched project is archived, or may be in a list that could not be read, the rule
    // needs no correction.
    let archive =
        |roster: &mut Roster| roster.containers[0].exclusion = Some(ExclusionReason::Archived);
    assert_eq!(check_rule("acme/**", archive), (vec![], 0, 0));
    let fail_list = |roster: &mut Roster| {
        roster.incomplete_globs = vec![("other/**".into(), crate::cause::Cause::new("503"))];
    };
    assert_eq!(check_rule("other/*", fail_list), (vec![], 1, 0));
    // Groups that the token cannot see are reported elsewhere.
    let hide_group = |roster: &mut Roster| roster.missing_namespaces = vec!["other".to_owned()];
    for path in ["other/*", "Other/web/**", "[other/**, acme/web-*]"] {
        assert_eq!(check_rule(path, hide_group), (vec![], 1, 0), "{path}");
    }
    assert_eq!(check_rule("others/*", hide_group).0.len(), 1);
}
