//! Tests of every kind: the derived properties of its scoped kinds, and the guards for each
//! relevant change of a field.

use serde_json::json;

use crate::{
    catalogue,
    field::{Equality, Field, Risk, Scope, Weakening},
    kind::{Effect, Section, risk::change_risks, testing::object},
    value::Json,
};

/// Values of a field. The first value protects most or shows least. The last value protects least
/// or shows most.
fn values_by_strictness(field: &Field, schema: &Json) -> Vec<Json> {
    let example = || schema["examples"].get(0).cloned().unwrap_or(json!("^a$"));
    match field.weakens {
        Weakening::Never
        | Weakening::Access
        | Weakening::WhenWider
        | Weakening::WhenFewer
        | Weakening::ByKind => Vec::new(),
        Weakening::Shows if schema["type"] == "boolean" => vec![json!(false), json!(true)],
        Weakening::Shows => {
            let words = ["disabled", "private", "internal", "enabled", "public"].iter();
            let words = words.map(|word| json!(word));
            let is_known =
                |word: &Json| schema["enum"].as_array().is_none_or(|words| words.contains(word));
            words.filter(is_known).collect()
        }
        Weakening::WhenOff | Weakening::OpensWhenOff => vec![json!(true), json!(false)],
        Weakening::WhenOn | Weakening::OpensWhenOn => vec![json!(false), json!(true)],
        Weakening::WhenLower => vec![json!(3), json!(2), json!(0)],
        Weakening::WhenHigher => vec![json!(0), json!(2), json!(3)],
        Weakening::WhenChanged
        | Weakening::OpensWhenChanged
        | Weakening::WhenCleared
        | Weakening::OpensWhenMoved => vec![example(), json!("")],
        Weakening::OpensWhenOutside => vec![json!("ci.yml"), json!("ci.yml@acme/ci")],
        Weakening::WhenMoreListed => {
            vec![json!("10.0.0.1"), json!("10.0.0.2, 10.0.0.1"), json!("")]
        }
        Weakening::WhenLater | Weakening::WhenLaterIn(_) => field.strictness_order(),
    }
}

fn change_effects(section: Section, name: &str, old: Option<&Json>, new: &Json) -> Vec<Effect> {
    let before = old.map(|old| object(json!({name: old}))).unwrap_or_default();
    // The slug is `jira`, because this integration stores a secret in projects and groups.
    change_risks(section, &[name], &before, &object(json!({"slug": "jira", name: new})))
}

#[test]
fn only_a_weaker_value_has_an_effect() {
    for section in catalogue::all_sections() {
        for spec in section.specs() {
            let values = values_by_strictness(spec.field, &spec.schema);
            let name = format!("{section:?}.{}", spec.name);
            let weakens = &spec.field.weakens;
            let is_guarded = weakens.risk().is_some();
            assert_eq!(is_guarded, values.len() > 1, "{name}");
            for (index, strict_value) in values.iter().enumerate() {
                let validator = jsonschema::validator_for(&spec.schema).unwrap();
                assert!(
                    validator.is_valid(strict_value) || *strict_value == "",
                    "{name}: {strict_value}"
                );
                for lax_value in &values[index + 1..] {
                    // A change to `private`, for members only, does not show the feature to more
                    // people.
                    let is_members_only =
                        weakens.risk() == Some(Risk::Shows) && *lax_value == "private";
                    let effects = change_effects(section, spec.name, Some(strict_value), lax_value);
                    assert_eq!(
                        effects.len(),
                        usize::from(!is_members_only),
                        "{name}: {strict_value} to {lax_value}"
                    );
                    assert_eq!(
                        change_effects(section, spec.name, Some(lax_value), strict_value),
                        [],
                        "{name}: {lax_value} to {strict_value}"
                    );
                }
                assert_eq!(
                    change_effects(section, spec.name, Some(strict_value), strict_value),
                    [],
                    "{name}"
                );
            }
            if let (Some(strictest_value), Some(laxest_value)) = (values.first(), values.last()) {
                assert_eq!(
                    change_effects(section, spec.name, None, laxest_value).len(),
                    1,
                    "{name}: unknown"
                );
                let is_safe_if_unknown = !matches!(
                    weakens,
                    Weakening::WhenChanged
                        | Weakening::OpensWhenChanged
                        | Weakening::OpensWhenMoved
                        | Weakening::WhenMoreListed
                        | Weakening::WhenLower
                );
                let unknown_old_effects = change_effects(section, spec.name, None, strictest_value);
                assert!(!is_safe_if_unknown || unknown_old_effects.is_empty(), "{name}");
            }
        }
    }
}

/// Cross-checks the descriptions by the names of fields.
#[test]
fn fields_that_sound_like_protections_are_guarded() {
    const PROTECTIVE_WORDS: [&str; 18] = [
        "allow",
        "approv",
        "check",
        "committer",
        "deny",
        "disable_",
        "force",
        "lock",
        "mask",
        "only_",
        "prevent",
        "protected",
        "reject",
        "require",
        "reset_approvals",
        "restrict",
        "secret",
        "verification",
    ];
    const HARMLESS_FIELDS: [&str; 11] = [
        "ci_forward_deployment_rollback_allowed",
        "lock_math_rendering_limits_enabled",
        "mirror_branch_regex",
        "approval_rules",
        "allowed",
        "shared_secret",
        "disable_diffs",
        "notify_only_broken_pipelines",
        "notify_only_when_pipeline_status_changes",
        "send_from_committer_email",
        "restrict_to_branch",
    ];
    let mut unguarded_fields = Vec::new();
    for section in catalogue::all_sections() {
        for spec in section.specs() {
            let sounds_protective = PROTECTIVE_WORDS.iter().any(|word| spec.name.contains(word));
            if sounds_protective
                && !HARMLESS_FIELDS.contains(&spec.name)
                && spec.field.weakens == Weakening::Never
            {
                unguarded_fields.push(format!("{section:?}.{}", spec.name));
            }
        }
    }
    assert_eq!(unguarded_fields, [""; 0]);
}

#[test]
fn in_a_private_project_only_public_features_are_shown() {
    let settings = catalogue::find_section(Scope::Project, "settings").unwrap();
    for (visibility, name, level, is_shown) in [
        ("private", "pages_access_level", json!("enabled"), false),
        ("private", "pages_access_level", json!("public"), true),
        ("private", "public_jobs", json!(true), false),
        ("internal", "pages_access_level", json!("enabled"), true),
        ("public", "wiki_access_level", json!("private"), false),
        ("public", "public_jobs", json!(true), true),
    ] {
        let before = object(json!({"visibility": visibility}));
        let after = object(json!({"visibility": visibility, name: level}));
        let effects = change_risks(settings, &[name], &before, &after);
        assert_eq!(!effects.is_empty(), is_shown, "{visibility} {name} {level}");
    }
}

#[test]
fn section_properties_follow_from_operations() {
    let removable_sections = ["push_rule", "fork_of"];
    let duplicate_sections =
        ["hooks", "pipeline_schedules", "badges", "freeze_periods", "remote_mirrors"];
    for section in catalogue::sections(Scope::Project) {
        let is_among = |names: &[&str]| names.contains(&section.section);
        assert_eq!(section.is_removable(), is_among(&removable_sections), "{section:?}");
        assert_eq!(section.allows_duplicates(), is_among(&duplicate_sections), "{section:?}");
        assert_eq!(
            section.is_created_with_container(),
            is_among(&["settings", "fork_of"]),
            "{section:?}"
        );
    }
    let top_level_sections = catalogue::sections(Scope::Group)
        .filter(|section| section.is_only_top_level())
        .map(|section| section.section);
    let expected = ["protected_branches", "merge_request_approval_setting"];
    assert_eq!(top_level_sections.collect::<Vec<_>>(), expected);
    assert!(catalogue::find_section(Scope::Group, "approvals").is_none());
}

/// An export omits only values that a kind declares confidential.
#[test]
fn an_empty_entry_has_no_secrecy_reason() {
    for section in Scope::ALL.into_iter().flat_map(catalogue::sections) {
        assert_eq!(section.rules().secrecy_reason(&object(json!({}))), None, "{}", section.section);
    }
}

/// `kind/limits` compares the value of a limit in a request with the value in the response.
#[test]
fn requests_contain_the_comparable_form_of_every_limit() {
    for section in catalogue::all_sections() {
        for spec in section.specs().iter().filter(|spec| spec.field.relations.limits.is_some()) {
            let Field { compare, names, relations, .. } = spec.field;
            let is_plain = names.is_none() && relations.names_entries.is_none();
            assert!(*compare != Equality::Rows && is_plain, "{} {}", section.section, spec.name);
        }
    }
}
