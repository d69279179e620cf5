//! Checks the attributes in a call and stores them.
//!
//! Rules for a single attribute are rows of [`attributes`]. Rules that connect two attributes are
//! in this module.

use super::attribute_value::{
    check_claims, counts_as_null, normalize_topics, parse_value, value_for_null,
};
use super::attributes::{
    DELETE_PIPELINES_AFTER, PACKAGES_ENABLED, PACKAGES_LEVEL, PUBLIC_LEVELS, RESTRICT_VARIABLES,
    VARIABLES_OVERRIDE_ROLE,
};
use super::cleanup_policy;
use crate::prelude::*;

/// The attributes of a project created at this time.
pub(crate) fn new_project_attributes(time: Timestamp) -> Object {
    let mut default_values = Map::new();
    for attribute in ATTRIBUTE_TABLE.projects.iter().filter(|attribute| has_stored_value(attribute))
    {
        let default_value = match attribute.kind {
            ValueKind::CleanupPolicy => {
                cleanup_policy::add_next_run(attribute.preset.clone(), time)
            }
            _ => attribute.preset.clone(),
        };
        default_values.insert(attribute.name.to_owned(), default_value);
    }
    default_values
}

/// True if the attribute is stored. Aliases of other attributes are not stored.
const fn has_stored_value(attribute: &Attribute) -> bool {
    !matches!(
        attribute.kind,
        ValueKind::Elsewhere
            | ValueKind::TwinOf(_)
            | ValueKind::AliasOf(_)
            | ValueKind::OppositeOf(_)
    )
}

/// The attributes of a project in one call.
#[derive(Clone, Copy)]
pub(crate) struct ProjectEdit<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) route: WriteRoute,
    pub(crate) params: &'a Params,
    /// The caller's level in the project, or in the namespace of a new project.
    pub(crate) caller_level: i64,
    pub(crate) is_fork: bool,
    /// The project's visibility after the call.
    pub(crate) visibility: &'a str,
}

impl ProjectEdit<'_> {
    /// Stores the attributes in `stored_values`. As in the real service, attributes above the tier
    /// and attributes only for administrators are ignored without an error.
    pub(crate) fn apply(&self, stored_values: &mut Object) -> Result<()> {
        let (params, former_values) = (self.params, stored_values.clone());
        let mut accepted_attributes: Vec<_> = self.call.edition().project_attributes().collect();
        accepted_attributes.retain(|attribute| self.accepts(attribute));
        // Deprecated booleans come first, so that an access level in the same call overrides them.
        // New names come before old names.
        accepted_attributes.sort_by_key(|attribute| match attribute.kind {
            ValueKind::TwinOf(_) => 0,
            ValueKind::AliasOf(_) | ValueKind::OppositeOf(_) => 2,
            _ => 1,
        });
        for attribute in accepted_attributes {
            let name = match attribute.kind {
                ValueKind::Topics if !params.has(attribute.name) => "tag_list",
                _ => attribute.name,
            };
            if let Some(value) = params.get(name)
                && let Some((name, new_value)) =
                    self.compute_new_value(attribute, (name, value), stored_values)?
            {
                stored_values.insert(name.to_owned(), new_value);
            }
        }
        self.check_owner_attributes(&former_values, stored_values)?;
        check_feature_levels(stored_values)?;
        self.sync_renamed_attributes(&former_values, stored_values)
    }

    fn accepts(&self, attribute: &Attribute) -> bool {
        let Self { call, route, .. } = *self;
        let profile = call.profile();
        let is_allowed_unlisted = route == WriteRoute::Create && attribute.routes.contains('c');
        let is_edit_only = attribute.not_on_create && call.is_observed_release_or_later();
        (attribute.is_accepted_on(route)
            || (is_allowed_unlisted && !profile.accepts_only_reference_attributes))
            && (route == WriteRoute::Edit || !is_edit_only)
            && (call.is_administrator() || !attribute.administrators_only)
            && (self.caller_level >= OWNER || !attribute.owners_only)
            && profile.drop_attribute.as_deref() != Some(attribute.name)
    }

    /// The name of the attribute to store, and its new value. `name` and `value` come from the
    /// call. `None` if nothing changes.
    fn compute_new_value(
        &self,
        attribute: &'static Attribute,
        (name, value): (&str, &Value),
        stored_values: &Object,
    ) -> Result<Option<(&'static str, Value)>> {
        let is_edit = self.route == WriteRoute::Edit;
        let new_value = match attribute.kind {
            ValueKind::Elsewhere => None,
            ValueKind::TwinOf(target) => {
                let level =
                    read_flag(name, value)?.map(|is_on| if is_on { "enabled" } else { "disabled" });
                return Ok(level.map(|level| (target, level.into())));
            }
            ValueKind::AliasOf(target) | ValueKind::OppositeOf(target) => {
                let is_enabled = read_flag(name, value)?;
                refuse_if(is_enabled.is_none() && is_edit, ErrorResponse::not_saved)?;
                let is_opposite = matches!(attribute.kind, ValueKind::OppositeOf(_));
                return Ok(is_enabled.map(|on| (target, (on != is_opposite).into())));
            }
            ValueKind::Claims(allowed_claims) => {
                Some(check_claims(attribute, self.texts(name)?, allowed_claims)?)
            }
            ValueKind::Topics => match normalize_topics(&self.texts(name)?) {
                None if is_edit => return Err(ErrorResponse::not_saved()),
                None => return Err(ErrorResponse::field_error("topics", "is invalid")),
                topics => topics,
            },
            ValueKind::CleanupPolicy => {
                let stored_policy = stored_values.get(attribute.name).cloned();
                let mut policy = stored_policy.unwrap_or_else(|| attribute.preset.clone());
                cleanup_policy::set_policy(name, value, &mut policy)?;
                Some(cleanup_policy::add_next_run(policy, self.call.time))
            }
            _ => {
                self.check_attribute(attribute, value)?;
                let sets_null = is_edit
                    || matches!(attribute.on_null, NullHandling::Stored | NullHandling::Last);
                if sets_null && counts_as_null(attribute, value) {
                    value_for_null(attribute, value)?
                } else {
                    parse_value(attribute, name, value)?
                }
            }
        };
        Ok(new_value.map(|stored_value| (attribute.name, stored_value)))
    }

    fn texts(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.params.texts(name)?.unwrap_or_default())
    }

    /// Checks the rules for single attributes that do not follow from their type.
    fn check_attribute(&self, attribute: &Attribute, value: &Value) -> Result<()> {
        let is_edit = self.route == WriteRoute::Edit;
        match attribute.name {
            "mr_default_target_self"
                if !self.is_fork && read_flag(attribute.name, value)? != Some(false) =>
            {
                let message = "This setting is allowed for forked projects only";
                Err(ErrorResponse::field_error(attribute.name_in_errors(), message))
            }
            "auto_cancel_pending_pipelines" if !is_edit && value.is_null() => {
                Err(not_null_violation("projects", attribute.name))
            }
            "auto_devops_deploy_strategy" if !is_edit && value.is_null() => {
                Err(not_null_violation("project_auto_devops", "deploy_strategy"))
            }
            "repository_storage" if value.is_null() => Err(ErrorResponse::field_errors(
                attribute.name,
                &["can't be blank", "is not included in the list"],
            )),
            "repository_storage" if value != "default" => {
                let field = if is_edit { "repository_storage_moves" } else { attribute.name };
                Err(ErrorResponse::field_error(field, "is invalid"))
            }
            "requirements_access_level"
                if value == "public" && self.call.profile().requirements_never_public =>
            {
                Err(ErrorResponse::unlisted_parameter_value(attribute.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses attributes that only an owner may send.
    fn check_owner_attributes(&self, former_values: &Object, stored_values: &Object) -> Result<()> {
        if self.caller_level >= OWNER {
            return Ok(());
        }
        let mut attributes = self.call.edition().project_attributes();
        let has_retention = attributes.any(|attribute| attribute.name == DELETE_PIPELINES_AFTER);
        let sets_retention = has_retention && self.params.has(DELETE_PIPELINES_AFTER);
        refuse_if(sets_retention, ErrorResponse::forbidden)?;
        let [was_owner_role, is_owner_role] = [former_values, stored_values]
            .map(|values| values.get(VARIABLES_OVERRIDE_ROLE) == Some(&"owner".into()));
        let (field, text) = (VARIABLES_OVERRIDE_ROLE, "can only be changed by an owner");
        refuse_if(was_owner_role != is_owner_role, || ErrorResponse::field_error(field, text))
    }

    /// Keeps a renamed attribute and its old name equal. If both are sent, the new name decides.
    fn sync_renamed_attributes(
        &self,
        former_values: &Object,
        stored_values: &mut Object,
    ) -> Result<()> {
        let Self { call, route, params, .. } = *self;
        if route == WriteRoute::Edit && call.release() >= ROLE_ONLY_SINCE {
            let is_developer =
                stored_values.get(VARIABLES_OVERRIDE_ROLE) == Some(&"developer".into());
            let role = match params
                .flag(RESTRICT_VARIABLES)?
                .filter(|_| !params.has(VARIABLES_OVERRIDE_ROLE))
            {
                Some(true) if is_developer => Some("maintainer"),
                Some(false) => Some("developer"),
                _ => None,
            };
            if let Some(role) = role {
                stored_values.insert(VARIABLES_OVERRIDE_ROLE.to_owned(), role.into());
            }
        }
        // A change of the old flag also changes the level. A change of the level does not change
        // the flag.
        let is_packages_change = route == WriteRoute::Edit
            && former_values.get(PACKAGES_ENABLED) != stored_values.get(PACKAGES_ENABLED);
        if is_packages_change
            && !params.has(PACKAGES_LEVEL)
            && call.edition().project_attributes().any(|attribute| attribute.name == PACKAGES_LEVEL)
        {
            let is_enabled = stored_values.get(PACKAGES_ENABLED) == Some(&true.into());
            let level =
                if is_enabled { default_packages_level(self.visibility) } else { "disabled" };
            stored_values.insert(PACKAGES_LEVEL.to_owned(), level.into());
        }
        Ok(())
    }
}

/// Checks the parameters of an edit without reading the project. Each value must be valid, and the
/// call must have at least one attribute.
pub(crate) fn check_edit_params(params: &Params, edition: Edition) -> Result<()> {
    let mut errors = Vec::new();
    let mut accepted_names = HashSet::new();
    for attribute in
        edition.project_attributes().filter(|attribute| attribute.is_accepted_on(WriteRoute::Edit))
    {
        accepted_names.insert(attribute.name);
        let Some(value) = params.get(attribute.name) else { continue };
        let result = if counts_as_null(attribute, value) {
            value_for_null(attribute, value)
        } else {
            parse_value(attribute, attribute.name, value)
        };
        let error = result.err().map(|failure| failure.body["error"].clone());
        errors.extend(error.as_ref().and_then(Value::as_str).map(str::to_owned));
    }
    let mut sufficient_names = ATTRIBUTE_TABLE.enough.clone();
    sufficient_names.retain(|name| accepted_names.contains(name));
    errors.extend(ParamRequirement::AnyOf(&sufficient_names).errors(params));
    refuse_if(!errors.is_empty(), || ErrorResponse::parameter_errors(&errors))
}

/// Refuses access levels of merge requests or CI/CD that are wider than the level of the repository.
fn check_feature_levels(stored_values: &Object) -> Result<()> {
    let repository_rank = access_rank(stored_values, "repository_access_level");
    let mut errors = FieldErrors::default();
    for feature in ["merge_requests_access_level", "builds_access_level"] {
        let message = "cannot have higher visibility level than repository access level";
        let is_higher = access_rank(stored_values, feature) > repository_rank;
        errors.add_if(is_higher, &format!("project_feature.{feature}"), message);
    }
    errors.into_result()
}

/// The rank of the access level of a feature. With a higher rank, more people have access.
fn access_rank(stored_values: &Object, feature: &str) -> Option<usize> {
    let level = stored_values.get(feature).and_then(Value::as_str).unwrap_or("enabled");
    PUBLIC_LEVELS.iter().position(|name| level == *name)
}

/// From this release on, only the attribute with the minimum role restricts variables of pipelines.
pub(super) const ROLE_ONLY_SINCE: Release = Release::new(17, 7);

/// The level of an enabled package registry, by the visibility of the project.
fn default_packages_level(visibility: &str) -> &'static str {
    match visibility {
        "private" => "private",
        "internal" => "enabled",
        _ => "public",
    }
}

/// The error for a null that only the database refuses. The error names the table.
fn not_null_violation(relation: &str, column: &str) -> ErrorResponse {
    let message = format!(
        "PG::NotNullViolation: ERROR:  null value in column \"{column}\" of relation \"{relation}\" \
         violates not-null constraint\nDETAIL:  Failing row contains (...)."
    );
    ErrorResponse::field_error("base", message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Profile;
    use crate::ServiceTier;
    use crate::access::MAINTAINER;
    use crate::attributes::{AnswerKey, Audience};
    use crate::call::ParsedRequest;
    use crate::project_view::ProjectView;
    use crate::routes::view::ExtraFields;
    use crate::store::{Store, project::Project, user::User};
    use crate::{DataLocation, ServiceOptions, ServiceState};
    use undrift_release::REFERENCE;

    /// The rights of a caller in a private fork.
    #[derive(Clone, Copy)]
    struct Rights {
        edition: Edition,
        is_administrator: bool,
        is_owner: bool,
    }

    fn administrator_rights() -> Rights {
        let edition = Edition { tier: ServiceTier::Ultimate, release: REFERENCE };
        Rights { edition, is_administrator: true, is_owner: true }
    }

    /// Like [`administrator_rights`], for release 18.9.
    fn later_release_rights() -> Rights {
        let edition = Edition { tier: ServiceTier::Ultimate, release: Release::new(18, 9) };
        Rights { edition, ..administrator_rights() }
    }

    fn edit(body: &Value, rights: Rights) -> Result<Map<String, Value>> {
        let mut params = Params::default();
        params.add_json(body.to_string().as_bytes())?;
        let store = Store::open(&DataLocation::Memory, false).expect("memory");
        let Edition { tier, release } = rights.edition;
        let profile = Profile { release, ..Profile::default() };
        let service =
            ServiceState::new(store, tier, ServiceOptions { profile, ..ServiceOptions::default() });
        let visibility = "private";
        let project = &Project {
            visibility: visibility.to_owned(),
            forked_from_id: Some(1),
            ..Project::default()
        };
        service.store.read(|db| {
            let time = Timestamp::UNIX_EPOCH;
            let [call, root_call] = [rights.is_administrator, true].map(|admin| {
                let caller = (Some(User { admin, ..User::default() }), None);
                Call::new(&service, db, caller, time, ParsedRequest::default())
            });
            let level = if rights.is_owner { OWNER } else { MAINTAINER };
            let (route, params, is_fork) = (WriteRoute::Edit, &params, true);
            let mut values = new_project_attributes(time);
            ProjectEdit { call: &call, route, params, caller_level: level, is_fork, visibility }
                .apply(&mut values)?;
            let (call, stored, extras) = (&root_call, &values, ExtraFields::default());
            let view =
                ProjectView { call, project, attributes: stored, caller_level: OWNER, extras };
            let fields = view.simple_form_fields().chain(view.full_form_only_fields());
            Ok(fields.map(|(key, value)| (key.to_owned(), value.into_owned())).collect())
        })
    }

    /// A valid value that differs from the preset.
    fn changed_value(attribute: &Attribute) -> Value {
        match attribute.kind {
            ValueKind::Flag => json!(attribute.preset.clone() != json!(true)),
            // There is only one storage.
            ValueKind::Name(_) if attribute.name == "repository_storage" => json!("default"),
            ValueKind::Text(_)
            | ValueKind::Name(_)
            | ValueKind::Pattern(_)
            | ValueKind::File(_) => json!("other"),
            ValueKind::Number(bounds) => json!(bounds.least.max(700)),
            ValueKind::Count(bounds) => json!(bounds.least),
            ValueKind::Claims(_) => json!(["project_path", "ref"]),
            ValueKind::AliasOf(_) | ValueKind::OppositeOf(_) => json!(false),
            ValueKind::OneOf(values) => {
                let default_value = attribute.preset.clone();
                json!(values.iter().find(|value| default_value != **value))
            }
            ValueKind::Choice(values) => json!(values.last()),
            ValueKind::Topics => json!(["b", "a"]),
            ValueKind::CleanupPolicy => json!({"enabled": true}),
            ValueKind::TwinOf(_) | ValueKind::Elsewhere => Value::Null,
        }
    }

    #[test]
    fn settings_are_read_back_unchanged() {
        let releases = [administrator_rights(), later_release_rights()].into_iter();
        let rows = releases.flat_map(|rights| {
            rights.edition.project_attributes().map(move |attribute| (attribute, rights))
        });
        for (row, rights) in rows {
            let value = changed_value(row);
            // In later releases, this attribute shows the effective value, which depends on the
            // groups above.
            let is_elsewhere = row.name == "emails_disabled" && rights.edition.release > REFERENCE;
            let is_conditional = row.audience == Audience::WhileMirroring
                || row.name.starts_with("merge_trains_")
                || (row.answer_key == AnswerKey::Never && row.name != "public_jobs");
            if value.is_null()
                || !row.is_accepted_on(WriteRoute::Edit)
                || is_elsewhere
                || is_conditional
            {
                continue;
            }
            let mut body = json!({ row.name: value });
            // No feature may be open to more people than the repository.
            if row.name == "repository_access_level" {
                for name in ["merge_requests_access_level", "builds_access_level"] {
                    body[name] = value.clone();
                }
            }
            let answer = edit(&body, rights).expect(row.name);
            let key = match (row.answer_key, row.name) {
                (_, "public_jobs") => "public_jobs",
                (AnswerKey::As(key), _) => key,
                _ => row.name,
            };
            match row.kind {
                ValueKind::Topics => assert_eq!(answer[key], json!(["a", "b"])),
                ValueKind::CleanupPolicy => assert_eq!(answer[key]["enabled"], json!(true)),
                _ => assert_eq!(answer[key], value, "{}", row.name),
            }
        }
    }

    #[test]
    fn a_boolean_and_its_level_agree_and_the_level_wins() {
        for (body, level, boolean) in [
            (json!({"issues_enabled": false}), "disabled", false),
            (json!({"issues_access_level": "disabled"}), "disabled", false),
            (json!({"issues_access_level": "private"}), "private", true),
            (json!({"issues_enabled": "0", "issues_access_level": "private"}), "private", true),
            (json!({"issues_enabled": true}), "enabled", true),
        ] {
            let answer = edit(&body, administrator_rights()).expect("valid");
            assert_eq!(answer["issues_access_level"], level, "{body}");
            assert_eq!(answer["issues_enabled"], boolean, "{body}");
        }
    }

    #[test]
    fn old_names_follow_new_ones_and_the_new_ones_win() {
        let (level, packages) = ("package_registry_access_level", "packages_enabled");
        let (role, restricted) = (VARIABLES_OVERRIDE_ROLE, RESTRICT_VARIABLES);
        for (body, expected) in [
            (json!({"public_builds": false}), json!({"public_jobs": false})),
            (json!({"public_builds": true, "public_jobs": false}), json!({"public_jobs": false})),
            (json!({"emails_disabled": true}), json!({"emails_enabled": false})),
            (
                json!({"emails_disabled": true, "emails_enabled": true}),
                json!({"emails_enabled": true}),
            ),
            (json!({packages: false}), json!({level: "disabled", packages: false})),
            (json!({packages: true}), json!({level: "enabled", packages: true})),
            (json!({level: "disabled"}), json!({level: "disabled", packages: true})),
            (json!({level: "public"}), json!({level: "public", packages: true})),
            (json!({restricted: true}), json!({role: "maintainer", restricted: true})),
            (json!({restricted: false}), json!({role: "developer", restricted: false})),
            (json!({role: "owner"}), json!({role: "owner", restricted: true})),
            (
                json!({role: "developer", restricted: true}),
                json!({role: "developer", restricted: false}),
            ),
        ] {
            let answer = edit(&body, later_release_rights()).expect("valid");
            for (name, value) in expected.as_object().expect("an object") {
                assert_eq!(answer[name], *value, "{body}");
            }
            let earlier = edit(&body, administrator_rights()).expect("valid");
            assert!(
                ![level, role, "emails_enabled"].iter().any(|name| earlier.contains_key(*name))
            );
        }
    }

    #[test]
    fn some_settings_need_an_owner() {
        let maintainer_rights = Rights { is_owner: false, ..later_release_rights() };
        let answer = edit(&json!({"emails_enabled": false}), maintainer_rights).expect("accepted");
        assert_eq!(answer["emails_enabled"], true);
        for body in
            [json!({VARIABLES_OVERRIDE_ROLE: "owner"}), json!({DELETE_PIPELINES_AFTER: null})]
        {
            assert!(edit(&body, maintainer_rights).is_err(), "{body}");
            assert!(edit(&body, later_release_rights()).is_ok(), "{body}");
        }
        assert!(edit(&json!({VARIABLES_OVERRIDE_ROLE: "maintainer"}), maintainer_rights).is_ok());
    }

    #[test]
    fn wrong_values_are_refused_in_the_words_of_the_service() {
        for (body, expected) in [
            (
                json!({"merge_method": "x"}),
                json!({"error": "merge_method does not have a valid value"}),
            ),
            (json!({"build_timeout": "x"}), json!({"error": "build_timeout is invalid"})),
            (json!({"lfs_enabled": "x"}), json!({"error": "lfs_enabled is invalid"})),
            (
                json!({"container_expiration_policy_attributes": {"keep_n": "x"}}),
                json!({"error": "container_expiration_policy_attributes[keep_n] is invalid"}),
            ),
            (
                json!({"build_timeout": 1}),
                json!({"message": {"build_timeout": ["needs to be between 10 minutes and 1 month"]}}),
            ),
        ] {
            assert_eq!(
                edit(&body, administrator_rights()).expect_err("refused").body,
                expected,
                "{body}"
            );
        }
    }

    #[test]
    fn settings_above_the_tier_or_role_are_dropped() {
        let edition = Edition { tier: ServiceTier::Free, ..administrator_rights().edition };
        let free = Rights { edition, ..administrator_rights() };
        let answer =
            edit(&json!({"mirror": true, "approvals_before_merge": 2}), free).expect("accepted");
        assert!(!answer.contains_key("mirror") && !answer.contains_key("approvals_before_merge"));
        let maintainer_rights = Rights { is_administrator: false, ..administrator_rights() };
        let answer =
            edit(&json!({"repository_storage": "x"}), maintainer_rights).expect("accepted");
        assert_eq!(answer["repository_storage"], "default");
    }
}
