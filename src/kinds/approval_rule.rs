//! Who has to approve merge requests of a project.
//!
//! The service drops users who are no members, and groups that the caller does not see, without a
//! word; what is missing afterwards is named. At most one rule is for anybody, and is known by that
//! instead of by its name.

use std::sync::LazyLock;

use schemars::JsonSchema;

use crate::{
    field::{Accepted, FIELD, Named, Scope},
    kind::{
        Call, Capability, Change, Create, Effect, Handle, Home, Identity, Job, Kind, Place, Rules,
        Section, Shape, Spec, Table, Unable, forms,
    },
    operation::{self, Request, Write},
    page::Rows,
    schema,
    value::{Json, Object},
};

/// Who has to approve merge requests, and how many of them.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ApprovalRule {
    /// The name of the rule.
    #[schemars(length(min = 1, max = 1024), example = &"Security")]
    pub name: String,
    /// How many approvals it takes.
    #[schemars(range(max = 100), example = &2)]
    pub approvals_required: Option<u8>,
    /// Whether it is for `users` and `groups` (`regular`, also if this is left out) or for anybody.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate))]
    pub rule_type: Option<RuleType>,
    /// The users who may approve: members of the project.
    // The documents say that an edit without the list empties it; the code leaves it alone.
    #[schemars(transform = FIELD.names(Named::User, "user_ids").as_set().with_every_edit(), inner(regex(pattern = "^[A-Za-z0-9_.-]{1,255}$")), example = &["alice"])]
    pub users: Option<Vec<String>>,
    /// The groups whose members may approve.
    #[schemars(transform = FIELD.names(Named::Group, "group_ids").as_set().with_every_edit(), inner(length(min = 1)), example = &["acme/security"])]
    pub groups: Option<Vec<String>>,
    /// Whether it is for all protected branches and for no other branch.
    // An edit that leaves it out switches it off.
    #[schemars(transform = FIELD.since(15, 3).with_every_edit())]
    pub applies_to_all_protected_branches: Option<bool>,
}

/// Whom a rule is for.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum RuleType {
    /// Those whom it names.
    Regular,
    /// Anybody who may approve.
    AnyApprover,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<ApprovalRule>()));

/// The section `approval_rules`.
pub static KIND: Kind = Kind {
    section: "approval_rules",
    noun: "approval rule",
    shape: Shape::List,
    identity: &["name"],
    required: &["approvals_required"],
    homes: &[Home {
        scope: Scope::Project,
        fields: &TABLE,
        place: Place::List(operation::APPROVAL_RULE_LIST),
        create: Create::With(operation::APPROVAL_RULE_CREATE),
        change: Change::Edit(operation::APPROVAL_RULE_UPDATE),
        delete: Some(operation::APPROVAL_RULE_DELETE),
        handle: &[Handle::path("id", "approval_rule_id")],
        rows: Rows::with_id(&["name", "rule_type"]),
        needs: &[Capability::People],
        ..Home::PLAIN
    }],
    rules: &ApprovalRules,
};

const ANY: &str = "any_approver";

struct ApprovalRules;

impl Rules for ApprovalRules {
    fn decode(&self, spec: &Spec, raw: &Object) -> Option<Json> {
        // The list of groups is without those that the caller does not see.
        let is_whole = raw.get("contains_hidden_groups") != Some(&Json::Bool(true));
        forms::decode(spec, raw).filter(|_| spec.name != "groups" || is_whole)
    }

    fn identify(&self, section: Section, fields: &Object) -> Identity {
        let mut identity = forms::identify(section, fields);
        if fields.get("rule_type").and_then(Json::as_str) == Some(ANY) {
            // No name has a NUL.
            identity.keys = vec![format!("\0{ANY}")];
        }
        identity
    }

    // Without a type the service makes a rule that names nobody one for anybody.
    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let with_type = |call: Call| Call { request: with_type(call.request), ..call };
        Ok(job.plain()?.into_iter().map(with_type).collect())
    }

    fn effects(&self, _who: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let required = |fields: &Object| fields.get("approvals_required").and_then(Json::as_u64);
        let is_less = required(after).unwrap_or_default() < required(before).unwrap_or_default();
        let weaker = is_less.then(|| Effect::Weakens("require fewer approvals".to_owned()));
        let users = after.get("users").and_then(Json::as_array).into_iter().flatten();
        let users = users.filter_map(Json::as_u64).map(Effect::NeedsAccess);
        weaker.into_iter().chain(users).collect()
    }
}

fn with_type(request: Request<Write>) -> Request<Write> {
    if request.operation != operation::APPROVAL_RULE_CREATE.row() {
        return request;
    }
    let mut body = request.body_fields().cloned().unwrap_or_default();
    body.entry("rule_type".to_owned()).or_insert_with(|| "regular".into());
    request.fields(body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            Names,
            calls::Act,
            testing::{act, fields, live, object, section, update},
        },
        operation::{APPROVAL_RULE_CREATE, APPROVAL_RULE_UPDATE},
    };

    fn raw() -> Json {
        json!({
            "id": 9, "name": "Security", "rule_type": "regular", "approvals_required": 2,
            "users": [{"id": 5, "username": "alice"}], "groups": [{"id": 6, "full_path": "acme/security"}],
            "contains_hidden_groups": false, "applies_to_all_protected_branches": true,
        })
    }

    fn names() -> Names {
        let mut names = Names::default();
        names.insert(Named::User, "alice", Some(5));
        names.insert(Named::Group, "acme/security", Some(6));
        names
    }

    #[test]
    fn a_rule_is_created_with_its_type_and_the_ids_of_those_whom_it_names() {
        let declared = json!({"name": "Security", "approvals_required": 2, "users": ["Alice"], "groups": ["acme/security"]});
        let body = json!({"name": "Security", "approvals_required": 2, "user_ids": [5], "group_ids": [6], "rule_type": "regular"});
        let declared = fields(declared);
        assert_eq!(
            act(section("approval_rules"), &names(), Act::Create(&declared)),
            [APPROVAL_RULE_CREATE.request().arg("id", 7).fields(fields(body))]
        );
    }

    #[test]
    fn an_edit_repeats_what_the_service_may_reset() {
        let declared = fields(json!({"name": "Security", "approvals_required": 3}));
        let edit = update(section("approval_rules"), &declared, raw(), &["approvals_required"]);
        let repeated =
            json!({"user_ids": [5], "group_ids": [6], "applies_to_all_protected_branches": true});
        let request = APPROVAL_RULE_UPDATE.request().arg("id", 7).arg("approval_rule_id", 9);
        let request = request.fields(fields(json!({"approvals_required": 3})));
        assert_eq!(edit, [request.repeating(object(repeated))]);
    }

    #[test]
    fn the_rule_for_anybody_is_known_by_its_type() {
        let section = section("approval_rules");
        let key = |rule: Json| ApprovalRules.identify(section, &object(rule)).keys;
        let any = |name: &str| key(json!({"name": name, "rule_type": ANY}));
        assert_eq!(any("All"), any("Everybody"));
        assert_ne!(any("All"), key(json!({"name": "All", "rule_type": "regular"})));
        assert_eq!(
            key(json!({"name": "All"})),
            key(json!({"name": "All", "rule_type": "regular"}))
        );
    }

    #[test]
    fn groups_that_are_hidden_from_the_caller_leave_the_list_unknown() {
        let mut hidden = raw();
        hidden["contains_hidden_groups"] = true.into();
        let groups = |raw| live(section("approval_rules"), raw).fields.get("groups").cloned();
        assert_eq!(groups(raw()), Some(json!([6])));
        assert_eq!(groups(hidden), None);
    }
}
