//! The settings of a project or a group.
//!
//! The settings are part of the object of their container. The module `creation` creates them
//! together with the container.

use std::{collections::BTreeSet, sync::LazyLock};

use super::{fork_of::FORK_OF, prelude::*};
use crate::kind::{
    FieldSpec,
    forms::{self, is_level_enabled},
};

/// The field that lists the claims in the subject of ID tokens.
const CLAIMS_FIELD: &str = "ci_id_token_sub_claim_components";

/// The name of the section.
pub const SECTION: &str = "settings";

/// The field with the URL from which a project's contents are imported or mirrored.
pub const IMPORT_URL_FIELD: &str = "import_url";

pub(super) struct Settings;

impl KindRules for Settings {
    // Some installations omit deprecated fields from responses. Then the value comes from the replacement field.
    fn decode(&self, spec: &FieldSpec, raw: &Object) -> Option<Json> {
        let live = forms::decode(spec, raw);
        if spec.name == IMPORT_URL_FIELD {
            // Without a mirror, the URL is only the former source of the contents.
            return live.filter(|_| raw.get("mirror").and_then(Json::as_bool) == Some(true));
        }
        if spec.name == "container_expiration_policy" {
            return live.as_ref().map(cleanup_policy);
        }
        let replacement_name = spec.field.replacement_name();
        let replacement = replacement_name.and_then(|name| Some((name, raw.get(name)?)));
        match replacement {
            // The deprecated field may show the value of the groups above. Its replacement shows
            // the container's own value.
            Some((_, Json::Bool(flag))) if spec.field.has_opposite_replacement() => {
                Some(if *flag && spec.field.nullable { Json::Null } else { (!flag).into() })
            }
            Some((name, replacement_value)) if live.is_none() => {
                deprecated_value(spec, name, replacement_value)
            }
            _ => live,
        }
    }

    // The service refuses a default branch that does not exist. For an empty repository, it shows
    // the name of the future first branch, or null.
    fn wait_reason(
        &self,
        section: Section,
        name: &str,
        declared: &Fields,
        live: Option<&LiveEntry>,
        has_no_branch: bool,
    ) -> Option<&'static str> {
        if live.is_none() && name == "mr_default_target_self" && !declared.contains_key(FORK_OF) {
            return Some("until the project is a fork");
        }
        if section.scoped_kind.scope != Scope::Project || name != "default_branch" {
            return None;
        }
        let needs_branch = match live.map(|live| live.fields.raw().get(name)) {
            Some(None) => false,
            Some(Some(Json::Null)) => true,
            Some(live_branch) => has_no_branch && declared.plain_json(name) != live_branch,
            // An import or a template creates its first branch later, in the background.
            None => has_no_branch && !declared.is_on("initialize_with_readme"),
        };
        needs_branch.then_some("until the repository has a branch")
    }

    fn check(&self, declared: &Fields, is_unresolved: bool, report: Reporter<'_>) {
        let config_path = declared.text("ci_config_path");
        if config_path.is_some_and(|path| path.starts_with('/') || path.contains("..")) {
            report(EntryFault::for_field(fault_text::CONFIG_PATH, "ci_config_path"));
        }
        let claims = declared.list_field(CLAIMS_FIELD);
        if claims.and_then(|claims| claims.first()).is_some_and(|first| first != "project_path") {
            report(EntryFault::for_field(fault_text::FIRST_CLAIM, CLAIMS_FIELD));
        }
        let import_url = declared.text(IMPORT_URL_FIELD);
        if is_unresolved && import_url.is_some_and(has_user) {
            report(EntryFault::for_field(fault_text::IMPORT_WITH_USER, IMPORT_URL_FIELD));
        }
    }

    fn effects(&self, _subject_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let mut effects = Vec::new();
        let [old_visibility, new_visibility] =
            [before, after].map(|fields| value::text(fields, "visibility").map(str::to_owned));
        effects.extend(
            new_visibility.map(|visibility| Effect::visibility(old_visibility, visibility)),
        );
        effects.extend(FEATURE_SETTINGS.iter().filter_map(|feature| {
            let [was_enabled, is_enabled] =
                [before, after].map(|fields| is_feature_on(fields, feature));
            Effect::capability_change(Capability::Feature(feature.0), was_enabled, is_enabled)
        }));
        if INHERITED_SETTINGS
            .iter()
            .any(|name| after.contains_key(*name) && before.get(*name) != after.get(*name))
        {
            effects.push(Effect::AffectsNewContainers);
        }
        effects
    }
}

/// True if new projects and groups below a group start with its setting `name`.
pub fn is_inherited(name: &str) -> bool {
    INHERITED_SETTINGS.contains(&name)
}

/// Settings of a group that affect new projects and groups below, or who may create them.
const INHERITED_SETTINGS: [&str; 4] = [
    "default_branch",
    "default_branch_protection",
    "project_creation_level",
    "subgroup_creation_level",
];

/// The value of the deprecated field of `spec`, converted from the value of its replacement.
fn deprecated_value(
    spec: &FieldSpec,
    replacement_name: &str,
    replacement_value: &Json,
) -> Option<Json> {
    if spec.schema["type"] != "boolean" || replacement_value.is_boolean() {
        Some(replacement_value.clone())
    } else if replacement_name.ends_with("_access_level") {
        is_level_enabled(replacement_value).map(Json::from)
    } else {
        replacement_value.as_str().map(|role| (role != "developer").into())
    }
}

/// The settings that can turn off a section of a project. Each has the deprecated setting that it
/// replaces, if there is one.
static FEATURE_SETTINGS: LazyLock<Vec<(&str, Option<&str>)>> = LazyLock::new(|| {
    let closing_settings =
        super::sections(Scope::Project).flat_map(|section| &section.scoped_kind.closed_by);
    let names: BTreeSet<&str> = closing_settings.flatten().copied().collect();
    let table = super::find_section(Scope::Project, SECTION).map(Section::table);
    let deprecated_spec =
        |name| table?.specs().iter().find(|spec| spec.field.replacement_name() == Some(name));
    names.into_iter().map(|name| (name, deprecated_spec(name).map(|spec| spec.name))).collect()
});

/// True if a feature is on; `None` if unknown.
fn is_feature_on(fields: &Object, (name, deprecated_name): &(&str, Option<&str>)) -> Option<bool> {
    let level = fields.get(*name).and_then(is_level_enabled);
    level.or_else(|| fields.get((*deprecated_name)?).and_then(Json::as_bool))
}

/// True if a URL contains a user name, and therefore possibly a password.
fn has_user(url: &str) -> bool {
    let after_scheme = url.split_once("://").map_or(url, |(_, tail)| tail);
    // Without `://`, as in `git@host:path`, the user name has no password.
    url.contains("://")
        && after_scheme
            .split(['/', '?', '#'])
            .next()
            .is_some_and(|authority| authority.contains('@'))
}

/// The clean-up policy, reduced to the keys that manifests can declare. The reference lists one of
/// these keys under two names.
fn cleanup_policy(live: &Json) -> Json {
    let Some(live) = live.as_object() else { return live.clone() };
    let settings = super::find_section(Scope::Project, SECTION);
    let policy_spec = settings.and_then(|section| section.spec("container_expiration_policy"));
    let key_fields = policy_spec.map(|spec| spec.key_fields);
    let mut policy = Object::new();
    for key_field in key_fields.into_iter().flatten() {
        let name = key_field.replacement_name().unwrap_or(key_field.name);
        let other_name = (name == "name_regex").then_some("name_regex_delete");
        let mut values = [name].into_iter().chain(other_name).filter_map(|name| live.get(name));
        if let Some(value) = values.find(|value| !value.is_null()).or_else(|| live.get(name)) {
            policy.insert(name.to_owned(), value.clone());
        }
    }
    Json::Object(policy)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        catalogue,
        field::Equality,
        kind::{
            are_equal,
            testing::{edit_requests_for, fields, live_entry, project_section, request_parts},
        },
        operation::PROJECT_UPDATE,
    };

    #[test]
    fn inherited_settings_affect_new_containers() {
        let object = |value: Json| value.as_object().cloned().unwrap();
        for (before, after, has_effect) in [
            (
                json!({"project_creation_level": "noone"}),
                json!({"project_creation_level": "developer"}),
                true,
            ),
            (json!({}), json!({"default_branch_protection": 2}), true),
            (
                json!({"default_branch_protection": 2}),
                json!({"default_branch_protection": 2}),
                false,
            ),
            (json!({"default_branch_protection": 2}), json!({}), false),
            (json!({"description": "a"}), json!({"description": "b"}), false),
        ] {
            let effects = Settings.effects(None, &object(before.clone()), &object(after.clone()));
            assert_eq!(
                effects.contains(&Effect::AffectsNewContainers),
                has_effect,
                "{before} {after}"
            );
        }
    }

    #[test]
    fn the_default_branch_of_an_empty_repository_is_not_sent() {
        let declared = fields(json!({"default_branch": "trunk"}));
        for (has_no_branch, raw, is_waiting) in [
            (true, json!({"default_branch": null}), true),
            (true, json!({"default_branch": "main"}), true),
            (true, json!({"default_branch": "trunk"}), false),
            (false, json!({"default_branch": null}), true),
            (false, json!({"default_branch": "main"}), false),
            (true, json!({}), false),
        ] {
            let entry = live_entry(project_section("settings"), raw.clone());
            assert_eq!(
                Settings
                    .wait_reason(
                        project_section("settings"),
                        "default_branch",
                        &declared,
                        Some(&entry),
                        has_no_branch
                    )
                    .is_some(),
                is_waiting,
                "{raw}"
            );
            assert_eq!(
                Settings.wait_reason(
                    project_section("settings"),
                    "description",
                    &declared,
                    Some(&entry),
                    true
                ),
                None
            );
        }
    }

    #[test]
    fn an_edit_contains_changed_fields_and_sends_files_separately() {
        let put_request = |body| PROJECT_UPDATE.request().with_argument("id", 7).with_fields(body);
        let mut declared =
            fields(json!({"description": null, "visibility": "private", "topics": ["a"]}));
        let edit_requests = edit_requests_for(
            project_section("settings"),
            &declared,
            json!({}),
            &["description", "topics"],
        );
        assert_eq!(
            request_parts(&edit_requests),
            request_parts(&[put_request(fields(json!({"description": "", "topics": ["a"]})))])
        );
        assert!(edit_requests[0].is_sensitive("import_url"), "`import_url` may contain a password");
        declared.insert("avatar".into(), Value::File("a.png".into()));
        let avatar = || put_request(Fields::from([("avatar".into(), Value::File("a.png".into()))]));
        assert_eq!(
            edit_requests_for(project_section("settings"), &declared, json!({}), &["avatar"]),
            [avatar()]
        );
        assert_eq!(
            request_parts(&edit_requests_for(
                project_section("settings"),
                &declared,
                json!({}),
                &["avatar", "visibility"]
            )),
            request_parts(&[put_request(fields(json!({"visibility": "private"}))), avatar()])
        );
        let cleared_avatar = fields(json!({"avatar": null}));
        assert_eq!(
            request_parts(&edit_requests_for(
                project_section("settings"),
                &cleared_avatar,
                json!({}),
                &["avatar"]
            )),
            request_parts(&[put_request(fields(json!({"avatar": ""})))])
        );
    }

    #[test]
    fn deprecated_fields_are_read_from_their_replacements() {
        for (level, is_enabled) in [("disabled", false), ("private", true), ("enabled", true)] {
            let live_fields = live_entry(
                project_section("settings"),
                json!({"builds_access_level": level, "topics": ["a"]}),
            )
            .fields;
            assert_eq!(
                (&live_fields.raw()["jobs_enabled"], &live_fields.raw()["tag_list"]),
                (&json!(is_enabled), &json!(["a"]))
            );
        }
        // A value in the response takes precedence.
        let live_fields = live_entry(
            project_section("settings"),
            json!({"builds_access_level": "enabled", "jobs_enabled": false}),
        )
        .fields;
        assert_eq!(live_fields.raw()["jobs_enabled"], json!(false));
        assert!(
            !live_entry(project_section("settings"), json!({}))
                .fields
                .raw()
                .contains_key("jobs_enabled")
        );
    }

    #[test]
    fn a_new_flag_gives_the_value_of_the_old_one() {
        let find_settings = |scope| catalogue::find_section(scope, "settings").unwrap();
        let read_flag = |scope, raw| {
            live_entry(find_settings(scope), raw).fields.raw().get("emails_disabled").cloned()
        };
        let raw_flags = |enabled: bool| json!({"emails_disabled": true, "emails_enabled": enabled});
        for (scope, enabled, expected) in [
            // In the first case, a group above switches emails off.
            (Scope::Project, true, json!(false)),
            (Scope::Project, false, json!(true)),
            // In a group, `null` means `false`.
            (Scope::Group, true, json!(null)),
            (Scope::Group, false, json!(true)),
        ] {
            assert_eq!(read_flag(scope, raw_flags(enabled)), Some(expected), "{scope:?} {enabled}");
        }
        assert_eq!(read_flag(Scope::Project, json!({"emails_disabled": true})), Some(json!(true)));
        assert_eq!(read_flag(Scope::Project, json!({})), None);
    }

    #[test]
    fn a_role_gives_the_value_of_a_missing_flag() {
        let role = "ci_pipeline_variables_minimum_override_role";
        for (word, is_restricted) in [("developer", false), ("maintainer", true), ("owner", true)] {
            let live_fields = live_entry(project_section("settings"), json!({role: word})).fields;
            assert_eq!(
                live_fields.raw()["restrict_user_defined_variables"],
                is_restricted,
                "{word}"
            );
        }
        let live_fields =
            live_entry(project_section("settings"), json!({"public_jobs": false})).fields;
        assert_eq!(live_fields.raw()["public_builds"], json!(false));
    }

    #[test]
    fn the_clean_up_policy_is_compared_by_its_declared_keys() {
        let raw = json!({"container_expiration_policy": {"cadence": "1d", "name_regex": ".*", "name_regex_keep": null, "next_run_at": "x"}});
        let entry = live_entry(project_section("settings"), raw);
        let live_policy = &entry.fields.raw()["container_expiration_policy"];
        assert_eq!(
            *live_policy,
            json!({"cadence": "1d", "name_regex": ".*", "name_regex_keep": null})
        );
        for (declared, is_same) in [
            (json!({"cadence": "1d"}), true),
            (json!({"cadence": "7d"}), false),
            (json!({"name_regex": ".*"}), true),
            (json!({"name_regex": "a"}), false),
            (json!({"name_regex_keep": null}), true),
            (json!({"name_regex_keep": ""}), true),
            (json!({"enabled": true}), false),
        ] {
            assert_eq!(are_equal(Equality::Exact, &declared, live_policy), is_same, "{declared}");
        }
        // The reference's example has both names.
        for raw in [
            json!({"name_regex": null, "name_regex_delete": "a"}),
            json!({"name_regex": "a", "name_regex_delete": "a"}),
            json!({"name_regex_delete": "a"}),
        ] {
            let live_settings = live_entry(
                project_section("settings"),
                json!({"container_expiration_policy": raw}),
            );
            assert_eq!(
                live_settings.fields.raw()["container_expiration_policy"],
                json!({"name_regex": "a"})
            );
        }
    }

    #[test]
    fn topics_compare_without_order() {
        assert!(are_equal(Equality::Set, &json!(["b", "a"]), &json!(["a", "b"])));
        assert!(!are_equal(Equality::Set, &json!(["a"]), &json!(["a", "b"])));
    }
}
