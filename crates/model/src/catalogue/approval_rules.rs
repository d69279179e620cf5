//! Approval rules of a project: who must approve its merge requests.
//!
//! The service silently drops users who are not members and groups that the caller cannot see.
//! Apply then reports that they were not saved. A project has at most one rule for any approver.
//! This rule is identified by its type instead of its name.

use crate::{
    kind::{FieldSpec, Id, Identity, forms},
    operation::Request,
};

use super::prelude::*;

/// The type of the rule for any approver.
pub const ANY_APPROVER: &str = "any_approver";

/// The type of a rule that applies only if a report shows a problem.
const REPORT_APPROVER: &str = "report_approver";

/// The only valid name of a rule for code coverage.
const COVERAGE_RULE_NAME: &str = "Coverage-Check";

/// The note shown if a rule for all protected branches gets a list of branches.
const NARROWING_NOTE: &str = "is no longer for all protected branches";

/// The project setting from which the service creates the rule "All Members".
pub const APPROVALS_SETTING: &str = "approvals_before_merge";

/// True if an entry is the rule for any approver. A project has at most one.
pub fn is_any_approver_rule(declared: &Fields) -> bool {
    declared.text("rule_type") == Some(ANY_APPROVER)
}

/// The name of the section.
pub const SECTION: &str = "approval_rules";

pub(super) struct ApprovalRules;

impl KindRules for ApprovalRules {
    fn decode(&self, spec: &FieldSpec, raw: &Object) -> Option<Json> {
        // Groups that the caller cannot see are missing in the list.
        let shows_all_groups = raw.get("contains_hidden_groups") != Some(&Json::Bool(true));
        // For a rule that applies to all protected branches, the response lists every protected
        // branch, although the rule itself has no list of branches.
        if spec.name == BRANCHES_FIELD && is_true(raw, ALL_PROTECTED_FIELD) {
            return Some(Json::Array(Vec::new()));
        }
        forms::decode(spec, raw).filter(|_| spec.name != "groups" || shows_all_groups)
    }

    fn identify(&self, section: Section, find_value: FieldLookup<'_>) -> Identity {
        let mut identity = forms::identify(section, find_value);
        if find_value("rule_type").is_some_and(|rule_type| *rule_type == ANY_APPROVER) {
            // No name contains a NUL.
            identity.keys = vec![format!("\0{ANY_APPROVER}")];
            identity.former_keys.clear();
        }
        identity
    }

    // A rule that is created without users, groups and a type would become the rule for any
    // approver. Therefore the type is always sent.
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let calls = match context.purpose {
            CallPurpose::Change(declared, live, changed) if has_items(declared, BRANCHES_FIELD) => {
                // Turn off the flag that makes the rule apply to all protected branches. Otherwise
                // the edit would repeat the live value of the flag.
                let mut declared = declared.clone();
                let is_narrowed = !declared.contains_key(ALL_PROTECTED_FIELD)
                    && is_true(live.fields.raw(), ALL_PROTECTED_FIELD);
                let side_effect = is_narrowed.then_some(NARROWING_NOTE);
                declared.insert(ALL_PROTECTED_FIELD.to_owned(), Json::Bool(false).into());
                let calls = CallContext {
                    purpose: CallPurpose::Change(&declared, live, changed),
                    ..*context
                }
                .default_calls()?;
                calls
                    .into_iter()
                    .map(|call| PlannedCall { side_effects: side_effect, ..call })
                    .collect()
            }
            _ => context.default_calls()?,
        };
        let typed_calls = calls
            .into_iter()
            .map(|call| PlannedCall { request: with_rule_type(call.request), ..call });
        Ok(typed_calls.collect())
    }

    fn effects(&self, _subject_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let user_ids = value::items(after, "users").filter_map(Json::as_u64);
        let access_effects =
            user_ids.map(|user_id| Effect::needs_access(NamedObject::User, Id::Known(user_id)));
        let weakness_texts = weaknesses(before, after).into_iter();
        let weakness_effects =
            weakness_texts.map(|text| Effect::Risk(Risk::Weakens, text.to_owned()));
        weakness_effects.chain(access_effects).collect()
    }

    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let mut approver_fields =
            ["users", "groups"].into_iter().filter(|_| is_any_approver_rule(declared));
        if let Some(list) = approver_fields.find(|list| has_items(declared, list)) {
            report(EntryFault::for_field(fault_text::APPROVERS_OF_ANY, list));
        }
        let report_type = declared.text("report_type");
        if declared.text("rule_type") == Some(REPORT_APPROVER) && report_type.is_none() {
            report(EntryFault::for_field(fault_text::REPORT_OF_NONE, "report_type"));
        }
        let is_misnamed = declared.text("name").is_some_and(|name| name != COVERAGE_RULE_NAME);
        if report_type == Some("code_coverage") && is_misnamed {
            report(EntryFault::for_field(fault_text::REPORT_OF_ANOTHER, "name"));
        }
        if has_items(declared, BRANCHES_FIELD) && declared.is_on(ALL_PROTECTED_FIELD) {
            report(EntryFault::for_field(fault_text::BRANCHES_OF_ALL, BRANCHES_FIELD));
        }
    }
}

const ALL_PROTECTED_FIELD: &str = "applies_to_all_protected_branches";
const BRANCHES_FIELD: &str = "protected_branches";

fn has_items(declared: &Fields, list_field: &str) -> bool {
    declared.list_field(list_field).is_some_and(|items| !items.is_empty())
}

/// The ways in which the rule `after` protects less than the rule `before`. Each text is the end of
/// a sentence that starts with "would". The number of approvals is ignored. A rule that requires no
/// approval protects nothing.
fn weaknesses(before: &Object, after: &Object) -> Vec<&'static str> {
    let requires_none = before.get("approvals_required").is_some_and(|number| *number == 0);
    if before.is_empty() || requires_none {
        return Vec::new();
    }
    if after.is_empty() {
        return vec!["remove the approval rule"];
    }
    let mut weaknesses_found = Vec::new();
    if covers_less(before, after) {
        weaknesses_found.push("make it cover fewer branches");
    }
    let [old_lists, new_lists] = [before, after]
        .map(|fields| ["users", "groups"].map(|list| fields.get(list).and_then(Json::as_array)));
    if are_empty(old_lists) {
        return weaknesses_found;
    }
    let mut list_pairs = old_lists
        .into_iter()
        .zip(new_lists)
        .filter_map(|(old_list, new_list)| old_list.zip(new_list));
    if list_pairs.any(|(old_approvers, new_approvers)| {
        new_approvers.iter().any(|approver| !old_approvers.contains(approver))
    }) {
        weaknesses_found.push("let more people approve");
    }
    if are_empty(new_lists) {
        weaknesses_found.push("leave nobody who may approve");
    }
    weaknesses_found
}

/// True if both lists are known and empty. The service treats a rule without possible approvers as
/// approved.
fn are_empty(lists: [Option<&Vec<Json>>; 2]) -> bool {
    lists.iter().all(|list| list.is_some_and(Vec::is_empty))
}

/// The branches that a rule applies to.
enum CoveredBranches<'r> {
    All,
    Protected,
    Named(&'r [Json]),
}

/// The branches that `rule` applies to; `None` if unknown.
fn covered_branches(rule: &Object) -> Option<CoveredBranches<'_>> {
    if is_true(rule, ALL_PROTECTED_FIELD) {
        return Some(CoveredBranches::Protected);
    }
    let branches = rule.get(BRANCHES_FIELD)?.as_array()?;
    Some(if branches.is_empty() { CoveredBranches::All } else { CoveredBranches::Named(branches) })
}

/// True if `after` does not apply to a branch that `before` applies to.
fn covers_less(before: &Object, after: &Object) -> bool {
    match (covered_branches(before), covered_branches(after)) {
        (Some(CoveredBranches::All), Some(new_coverage)) => {
            !matches!(new_coverage, CoveredBranches::All)
        }
        (Some(CoveredBranches::Protected), Some(CoveredBranches::Named(_))) => true,
        (Some(CoveredBranches::Named(old_names)), Some(CoveredBranches::Named(new_names))) => {
            old_names.iter().any(|name| !new_names.contains(name))
        }
        _ => false,
    }
}

fn with_rule_type(request: Request<Write>) -> Request<Write> {
    if request.operation != operation::APPROVAL_RULE_CREATE.row() {
        return request;
    }
    let mut body = request.body_fields().cloned().unwrap_or_default();
    if !body.contains_key("rule_type") {
        body.insert("rule_type".to_owned(), "regular".into());
    }
    request.with_fields(body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use std::collections::BTreeMap;

    use crate::{
        cause::Cause,
        kind::{
            Id, NameIndex,
            testing::{
                edit_requests_for, existing_target, fields, live_entry, object, project_section,
                requests_for,
            },
        },
        operation::{APPROVAL_RULE_CREATE, APPROVAL_RULE_UPDATE},
        release::DetectedRelease,
    };

    fn raw() -> Json {
        json!({
            "id": 9, "name": "Security", "rule_type": "regular", "approvals_required": 2,
            "users": [{"id": 5, "username": "alice"}], "groups": [{"id": 6, "full_path": "acme/security"}],
            "contains_hidden_groups": false, "applies_to_all_protected_branches": true,
        })
    }

    fn names() -> NameIndex {
        let mut names = NameIndex::default();
        names.insert(NamedObject::User, "alice", Some(5));
        names.insert(NamedObject::Group, "acme/security", Some(6));
        names
    }

    #[test]
    fn a_rule_is_created_with_its_type_and_the_ids_of_users_and_groups() {
        let declared = json!({"name": "Security", "approvals_required": 2, "users": ["Alice"], "groups": ["acme/security"]});
        let body = json!({"name": "Security", "approvals_required": 2, "user_ids": [5], "group_ids": [6], "rule_type": "regular"});
        let declared = fields(declared);
        assert_eq!(
            requests_for(
                project_section("approval_rules"),
                &names(),
                CallPurpose::Create(&declared)
            ),
            [APPROVAL_RULE_CREATE.request().with_argument("id", 7).with_fields(fields(body))]
        );
    }

    #[test]
    fn an_edit_repeats_values_that_may_be_reset() {
        let declared = fields(json!({"name": "Security", "approvals_required": 3}));
        let edit_requests = edit_requests_for(
            project_section("approval_rules"),
            &declared,
            raw(),
            &["approvals_required"],
        );
        let repeated_fields =
            json!({"user_ids": [5], "group_ids": [6], "applies_to_all_protected_branches": true});
        let request = APPROVAL_RULE_UPDATE
            .request()
            .with_argument("id", 7)
            .with_argument("approval_rule_id", 9);
        let request = request.with_fields(fields(json!({"approvals_required": 3})));
        assert_eq!(edit_requests, [request.with_repeated_values(object(repeated_fields))]);
    }

    #[test]
    fn protected_branches_are_sent_by_id() {
        let section = project_section("approval_rules");
        let sent_values = |live: Json, declared: Json, names: &NameIndex| {
            let (declared, target) = (fields(declared), existing_target());
            let live = crate::kind::testing::live_entry(section, live);
            let purpose = CallPurpose::Change(&declared, &live, &["protected_branches"]);
            let context = CallContext {
                section,
                target: &target,
                names,
                release: DetectedRelease::NotRequested,
                has_unique_address: true,
                purpose,
            };
            let body = |calls: Vec<PlannedCall>| {
                let body = calls[0].request.body_fields().unwrap().clone();
                ["protected_branch_ids", ALL_PROTECTED_FIELD]
                    .map(|name| body.plain_json(name).cloned())
            };
            ApprovalRules.calls(&context).map(body)
        };
        let declared = json!({"name": "Security", "protected_branches": ["main", "new"]});
        let mut names = names();
        assert_eq!(
            sent_values(raw(), declared.clone(), &names),
            Err(NoCalls::DependsOnEntries("protected_branches".to_owned()))
        );
        let entry_ids = [("main", Id::Known(4)), ("new", Id::Pending("acme/shop#x/new".into()))];
        let entry_ids: BTreeMap<_, _> =
            entry_ids.map(|(name, id)| (name.to_owned(), Some(id))).into();
        names.insert_entry_ids("protected_branches", Ok(entry_ids));
        let sent_ids = json!([4, Id::Pending("acme/shop#x/new".into()).to_json()]);
        assert_eq!(sent_values(raw(), declared, &names), Ok([Some(sent_ids), Some(json!(false))]));
        let other_rule = json!({"name": "Security", "protected_branches": ["other"]});
        assert!(matches!(
            sent_values(raw(), other_rule.clone(), &names),
            Err(NoCalls::Impossible(EntryFault { code: "unknown-entry", .. }))
        ));
        names.insert_entry_ids("protected_branches", Err(Cause::new("cut")));
        assert_eq!(
            sent_values(raw(), other_rule, &names),
            Err(NoCalls::LiveUnknown(Cause::new("cut")))
        );
    }

    #[test]
    fn a_rule_covers_less_only_if_a_branch_is_left_out() {
        let all_branches = json!({BRANCHES_FIELD: [], ALL_PROTECTED_FIELD: false});
        let protected_branches = json!({BRANCHES_FIELD: [], ALL_PROTECTED_FIELD: true});
        let named_branches =
            |names: &[&str]| json!({BRANCHES_FIELD: names, ALL_PROTECTED_FIELD: false});
        for (before, after, expected) in [
            (all_branches.clone(), protected_branches.clone(), true),
            (all_branches.clone(), named_branches(&["a"]), true),
            (protected_branches.clone(), named_branches(&["a"]), true),
            (named_branches(&["a", "b"]), named_branches(&["b"]), true),
            (named_branches(&["a"]), named_branches(&["b", "a"]), false),
            (named_branches(&["a"]), all_branches, false),
            (named_branches(&["a"]), protected_branches.clone(), false),
            (json!({ALL_PROTECTED_FIELD: false}), protected_branches, false),
        ] {
            assert_eq!(
                covers_less(&object(before.clone()), &object(after.clone())),
                expected,
                "{before} {after}"
            );
        }
    }

    #[test]
    fn a_rule_protects_less_if_more_people_may_approve_or_nobody() {
        let rule = |users: &[u64], groups: &[u64], required: u64| {
            object(json!({"users": users, "groups": groups, "approvals_required": required}))
        };
        for (before, after, expected) in [
            (rule(&[1], &[], 1), rule(&[1, 2], &[], 1), &["let more people approve"][..]),
            (rule(&[1], &[], 1), rule(&[2], &[], 1), &["let more people approve"]),
            (rule(&[1], &[], 1), rule(&[1], &[7], 1), &["let more people approve"]),
            (rule(&[1, 2], &[7], 1), rule(&[1], &[], 1), &[]),
            (rule(&[1], &[7], 1), rule(&[], &[], 1), &["leave nobody who may approve"]),
            (rule(&[1], &[], 0), rule(&[1, 2], &[], 0), &[]),
            (rule(&[], &[], 1), rule(&[1], &[], 1), &[]),
            (rule(&[1], &[], 1), Object::new(), &["remove the approval rule"]),
            (rule(&[1], &[], 0), Object::new(), &[]),
            (Object::new(), rule(&[1, 2], &[], 1), &[]),
        ] {
            assert_eq!(weaknesses(&before, &after), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn the_rule_for_any_approver_is_identified_by_its_type() {
        let section = project_section("approval_rules");
        let find_keys = |rule: Json| section.identify(&object(rule)).keys;
        let any_approver_keys =
            |name: &str| find_keys(json!({"name": name, "rule_type": ANY_APPROVER}));
        assert_eq!(any_approver_keys("All"), any_approver_keys("Everybody"));
        assert_ne!(
            any_approver_keys("All"),
            find_keys(json!({"name": "All", "rule_type": "regular"}))
        );
        assert_eq!(
            find_keys(json!({"name": "All"})),
            find_keys(json!({"name": "All", "rule_type": "regular"}))
        );
    }

    #[test]
    fn hidden_groups_leave_the_list_of_groups_unknown() {
        let mut hidden_raw = raw();
        hidden_raw["contains_hidden_groups"] = true.into();
        let groups = |raw| {
            live_entry(project_section("approval_rules"), raw).fields.raw().get("groups").cloned()
        };
        assert_eq!(groups(raw()), Some(json!([6])));
        assert_eq!(groups(hidden_raw), None);
    }
}
