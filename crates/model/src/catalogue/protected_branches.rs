//! Protected branches of a project, and protected branches that a top-level group sets for all its
//! projects. A protection defines who may push, merge and unprotect. The reference does not
//! describe protected branches. This module follows the documentation and the behaviour of the
//! service.
//!
//! A permission is a list of rows. Each row names a level, a user or a group. An edit contains the
//! rows to add and the ids of the rows to remove. On the free tier, a permission is a single level
//! that cannot be edited, so the protection is removed and added again.

use crate::{
    kind::{Id, NameIndex, RefRule, forms},
    level::AccessLevel,
};

use super::prelude::*;

pub(super) struct ProtectedBranches;

impl KindRules for ProtectedBranches {
    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let rows = declared.list_field(UNPROTECT_FIELD).into_iter().flatten();
        let mut levels = rows.filter_map(|row| AccessLevel::parse(row.get("access_level")?));
        if levels.any(|level| level.number == 0) {
            report(EntryFault::for_field(fault_text::NOBODY_UNPROTECTS, UNPROTECT_FIELD));
        }
    }

    fn calls(&self, context: &CallContext<'_>) -> Calls {
        check_right_to_unprotect(context)?;
        match context.purpose {
            CallPurpose::Change(declared, live, changed) if needs_replacement(live, changed) => {
                context.replace_calls(declared, live)
            }
            _ => context.default_calls(),
        }
    }

    fn effects(&self, _subject_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let permissions = [("allowed_to_push", "push"), ("allowed_to_merge", "merge")];
        rule_effects(
            "name",
            before,
            after,
            &permissions,
            &[permissions[0].0, permissions[1].0, UNPROTECT_FIELD],
            true,
        )
    }
}

/// Checks that the token's user may unprotect the branch. Without this right, no user can protect,
/// change or unprotect a branch, not even an administrator.
///
/// # Errors
/// If the declared or live rows certainly exclude the token's user.
fn check_right_to_unprotect(context: &CallContext<'_>) -> Result<(), NoCalls> {
    let spec = context.section.spec(UNPROTECT_FIELD);
    let (rows, verb) = match context.purpose {
        CallPurpose::Create(declared) => {
            let rows = declared.plain_json(UNPROTECT_FIELD);
            (rows.map(|rows| forms::to_comparable(spec, rows, context.names)), "would")
        }
        CallPurpose::Change(_, live, _) | CallPurpose::Remove(live) => {
            (live.fields.raw().get(UNPROTECT_FIELD).cloned(), "do")
        }
        CallPurpose::Container(_) => return Ok(()),
    };
    match rows.zip(context.names.caller_id()) {
        Some((rows, caller)) if excludes_user(&rows, caller, context.names)? => {
            let fault = EntryFault::for_field(fault_text::LOCKED_OUT, UNPROTECT_FIELD);
            Err(fault.fill("what", verb).into())
        }
        _ => Ok(()),
    }
}

const UNPROTECT_FIELD: &str = "allowed_to_unprotect";

/// True if `rows` contain only users and groups, and the user `id`, the token's user, is certainly not
/// among them.
///
/// # Errors
/// If it was not looked up whether the token's user is in one of the groups.
fn excludes_user(rows: &Json, id: u64, names: &NameIndex) -> Result<bool, NoCalls> {
    let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
    let id_of = |row: &Json, key: &str| row.get(key).and_then(Json::as_u64);
    let is_other_grantee = |row| {
        id_of(row, "group_id").is_some() || id_of(row, "user_id").is_some_and(|user| user != id)
    };
    if rows.is_empty() || !rows.iter().all(is_other_grantee) {
        return Ok(false);
    }
    for group_id in rows.iter().filter_map(|row| id_of(row, "group_id")) {
        if names.is_caller_in_group(group_id)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if the change needs a new protection. On the free tier, the service can edit only the flag
/// `allow_force_push`.
fn needs_replacement(live: &LiveEntry, changed: &[&str]) -> bool {
    live.tier < Tier::Premium && changed.iter().any(|name| *name != "allow_force_push")
}

/// The effects of changing a rule. `pattern_field` is the field with the pattern. `permissions` are
/// pairs of a field with rows and the verb of its permission. `grantee_lists` are the fields whose
/// rows name users and groups. If `edits_rows` is true, the service edits single rows, and checks
/// only the access of new rows.
pub(super) fn rule_effects(
    pattern_field: &str,
    before: &Object,
    after: &Object,
    permissions: &[(&'static str, &'static str)],
    grantee_lists: &[&str],
    edits_rows: bool,
) -> Vec<Effect> {
    let is_new = before.is_empty();
    let [old_rule, new_rule] = [before, after]
        .map(|fields| RefRule::from_fields(fields, pattern_field, permissions, is_new));
    let mut effects = vec![Effect::Rule { before: old_rule, after: new_rule }];
    for (object_type, key) in [(NamedObject::User, "user_id"), (NamedObject::Group, "group_id")] {
        for list in grantee_lists {
            let [old_ids, new_ids] = [before, after].map(|fields| -> Vec<_> {
                value::items(fields, list).filter_map(|row| Id::from_json(row.get(key)?)).collect()
            });
            let added_ids = new_ids.into_iter().filter(|id| !edits_rows || !old_ids.contains(id));
            effects.extend(added_ids.map(|id| Effect::needs_access(object_type, id)));
        }
    }
    effects
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            FieldSelection,
            testing::{
                existing_target, fields, live_entry, object, project_section, removal_requests,
                request_parts, requests_for,
            },
        },
        operation::{PROTECTED_BRANCH_CREATE, PROTECTED_BRANCH_DELETE, PROTECTED_BRANCH_UPDATE},
        release::DetectedRelease,
    };

    #[test]
    fn inherited_protections_are_recognised() {
        let scoped_kind = project_section("protected_branches").scoped_kind;
        for (raw, is_inherited) in [
            (json!({"name": "main"}), false),
            (json!({"name": "main", "inherited": false}), false),
            (json!({"name": "main", "inherited": true}), true),
        ] {
            assert_eq!(scoped_kind.is_inherited(&object(raw.clone())), is_inherited, "{raw}");
        }
    }

    fn free_tier_branch() -> Json {
        json!({
            "id": 1, "name": "main", "allow_force_push": false,
            "push_access_levels": [{"id": 1, "access_level": 40, "access_level_description": "Maintainers"}],
            "merge_access_levels": [{"id": 2, "access_level": 40, "access_level_description": "Maintainers"}],
        })
    }

    fn premium_branch() -> Json {
        let row = |id, level, user: Option<u64>, group: Option<u64>| json!({"id": id, "access_level": level, "access_level_description": "x", "user_id": user, "group_id": group});
        json!({
            "id": 1, "name": "main", "allow_force_push": false, "code_owner_approval_required": true,
            "push_access_levels": [row(1, 40, None, None), row(2, 40, Some(5), None)],
            "merge_access_levels": [row(3, 40, None, Some(6))],
            "unprotect_access_levels": [],
        })
    }

    fn names() -> NameIndex {
        let mut names = NameIndex::default();
        names.insert(NamedObject::User, "alice", Some(5));
        names.insert(NamedObject::Group, "acme/leads", Some(6));
        names
    }

    #[test]
    fn locking_out_the_caller_is_refused() {
        let branch_section = project_section("protected_branches");
        let mut names = names().with_caller_id(4);
        names.insert(NamedObject::User, "me", Some(4));
        let target = existing_target();
        let is_refused = |names: &NameIndex, purpose: CallPurpose<'_>| {
            let release = DetectedRelease::NotRequested;
            let (section, target) = (branch_section, &target);
            let context =
                CallContext { section, target, names, release, has_unique_address: true, purpose };
            matches!(
                branch_section.rules().calls(&context),
                Err(NoCalls::Impossible(EntryFault { code: "locked-out", .. }))
            )
        };
        for (rows, refused) in [
            (json!([{"user": "alice"}]), true),
            (json!([{"user": "alice"}, {"user": "me"}]), false),
            (json!([{"user": "alice"}, {"access_level": "maintainer"}]), false),
            (json!([{"group": "acme/leads"}, {"user": "me"}]), false),
        ] {
            let declared = fields(json!({"name": "main", "allowed_to_unprotect": rows}));
            assert_eq!(is_refused(&names, CallPurpose::Create(&declared)), refused, "{rows}");
            assert!(
                !is_refused(&self::names(), CallPurpose::Create(&declared)),
                "the caller is unknown"
            );
        }
        for (user, refused) in [(5, true), (4, false)] {
            let mut raw = premium_branch();
            raw["unprotect_access_levels"] =
                json!([{"id": 4, "access_level": 40, "user_id": user}]);
            let branch = live_entry(branch_section, raw);
            let declared = fields(json!({"name": "main", "allow_force_push": true}));
            let change = CallPurpose::Change(&declared, &branch, &["allow_force_push"]);
            assert_eq!(is_refused(&names, change), refused);
            assert_eq!(is_refused(&names, CallPurpose::Remove(&branch)), refused);
        }
        assert!(!is_refused(
            &names,
            CallPurpose::Remove(&live_entry(branch_section, premium_branch()))
        ));
    }

    /// Whether the caller is in a group that may unprotect is looked up only if nothing else decides.
    #[test]
    fn a_group_without_the_caller_locks_it_out() {
        let section = project_section("protected_branches");
        let target = existing_target();
        let mut raw = premium_branch();
        raw["unprotect_access_levels"] = json!([{"id": 4, "access_level": 40, "group_id": 6}]);
        let live = live_entry(section, raw);
        let only_group =
            fields(json!({"name": "main", "allowed_to_unprotect": [{"group": "acme/leads"}]}));
        let rows = json!([{"user": "alice"}, {"group": "acme/leads"}]);
        let with_user = fields(json!({"name": "main", "allowed_to_unprotect": rows}));
        for purpose in [
            CallPurpose::Create(&only_group),
            CallPurpose::Create(&with_user),
            CallPurpose::Remove(&live),
        ] {
            for (is_inside, expected) in
                [(None, "depends"), (Some(true), "calls"), (Some(false), "locked-out")]
            {
                let mut names = names().with_caller_id(4);
                is_inside.into_iter().for_each(|inside| names.insert_caller_group(6, inside));
                let context = CallContext {
                    section,
                    target: &target,
                    names: &names,
                    release: DetectedRelease::NotRequested,
                    has_unique_address: true,
                    purpose,
                };
                let outcome = match section.rules().calls(&context) {
                    Ok(_) => "calls",
                    Err(NoCalls::DependsOnCallerGroup(6)) => "depends",
                    Err(NoCalls::Impossible(fault)) => fault.code,
                    Err(other) => panic!("{other:?}"),
                };
                assert_eq!(outcome, expected, "{purpose:?}");
            }
        }
    }

    #[test]
    fn rows_are_identified_by_user_or_group_before_level() {
        let branch = live_entry(project_section("protected_branches"), premium_branch());
        assert_eq!(
            branch.fields.raw()["allowed_to_push"],
            json!([{"id": 1, "access_level": "maintainer"}, {"id": 2, "user_id": 5}])
        );
        assert_eq!(branch.fields.raw()["allowed_to_merge"], json!([{"id": 3, "group_id": 6}]));
        assert_eq!(
            (
                branch.tier,
                live_entry(project_section("protected_branches"), free_tier_branch()).tier
            ),
            (Tier::Premium, Tier::Free)
        );
    }

    #[test]
    fn a_single_level_is_sent_in_the_form_that_every_tier_has() {
        let declared = fields(json!({
            "name": "main",
            "allowed_to_push": [{"access_level": "no_access"}],
            "allowed_to_merge": [{"access_level": "maintainer"}, {"user": "alice"}],
        }));
        let body = fields(json!({
            "name": "main", "push_access_level": 0, "allowed_to_merge": [{"access_level": 40}, {"user_id": 5}],
        }));
        assert_eq!(
            requests_for(
                project_section("protected_branches"),
                &names(),
                CallPurpose::Create(&declared)
            ),
            [PROTECTED_BRANCH_CREATE.request().with_argument("id", 7).with_fields(body)]
        );
        assert_eq!(
            removal_requests(project_section("protected_branches"), free_tier_branch()),
            [PROTECTED_BRANCH_DELETE
                .request()
                .with_argument("id", 7)
                .with_argument("name", "main")]
        );
    }

    #[test]
    fn an_edit_contains_rows_to_add_and_rows_to_remove() {
        let declared = fields(json!({
            "name": "main",
            "allowed_to_push": [{"access_level": "maintainer"}, {"group": "acme/leads"}],
        }));
        let entry = live_entry(project_section("protected_branches"), premium_branch());
        let edit = requests_for(
            project_section("protected_branches"),
            &names(),
            CallPurpose::Change(&declared, &entry, &["allowed_to_push"]),
        );
        let body = fields(json!({
            "allowed_to_push": [{"id": 2, "_destroy": true}, {"group_id": 6}],
            "code_owner_approval_required": true,
        }));
        let patch =
            PROTECTED_BRANCH_UPDATE.request().with_argument("id", 7).with_argument("name", "main");
        assert_eq!(request_parts(&edit), request_parts(&[patch.with_fields(body)]));
    }

    #[test]
    fn on_the_free_tier_a_level_needs_a_replacement() {
        let entry = live_entry(project_section("protected_branches"), free_tier_branch());
        let change_requests = |declared: &Fields, changed: &[&str]| {
            requests_for(
                project_section("protected_branches"),
                &names(),
                CallPurpose::Change(declared, &entry, changed),
            )
        };
        let declared = fields(json!({"name": "main", "allow_force_push": true}));
        let edit_requests = change_requests(&declared, &["allow_force_push"]);
        assert_eq!(
            edit_requests.iter().map(|r| r.operation.id).collect::<Vec<_>>(),
            ["protected-branch-edit"]
        );
        let declared =
            fields(json!({"name": "main", "allowed_to_push": [{"access_level": "no_access"}]}));
        let replace_requests = change_requests(&declared, &["allowed_to_push"]);
        let add_request = |push| {
            PROTECTED_BRANCH_CREATE.request().with_argument("id", 7).with_fields(fields(json!({
                "name": "main", "allow_force_push": false, "push_access_level": push, "merge_access_level": 40,
            })))
        };
        let remove =
            PROTECTED_BRANCH_DELETE.request().with_argument("id", 7).with_argument("name", "main");
        assert_eq!(
            request_parts(&replace_requests),
            request_parts(&[remove, add_request(0), add_request(40)])
        );
    }

    /// An edit without `code_owner_approval_required` switches this field off.
    #[test]
    fn fields_that_an_edit_would_reset_must_be_known() {
        let block_reason = |raw: Json, missing_fields: &[&str]| {
            let mut raw = object(raw);
            raw.retain(|name, _| !missing_fields.contains(&name.as_str()));
            let entry = live_entry(project_section("protected_branches"), raw.into());
            let declared = fields(json!({"name": "main", "allow_force_push": true}));
            let context = CallContext {
                release: DetectedRelease::NotRequested,
                has_unique_address: true,
                section: project_section("protected_branches"),
                target: &existing_target(),
                names: &names(),
                purpose: CallPurpose::Change(&declared, &entry, &["allow_force_push"]),
            };
            project_section("protected_branches").rules().calls(&context).err()
        };
        let code_owner_field = "code_owner_approval_required";
        assert_eq!(block_reason(premium_branch(), &[]), None);
        assert!(matches!(
            block_reason(premium_branch(), &[code_owner_field]),
            Some(NoCalls::LiveUnknown(_))
        ));
        // A row for a user or group also proves the Premium tier.
        let premium_fields = [code_owner_field, "unprotect_access_levels"];
        assert!(matches!(
            block_reason(premium_branch(), &premium_fields),
            Some(NoCalls::LiveUnknown(_))
        ));
        assert_eq!(block_reason(free_tier_branch(), &[]), None);
    }

    /// Undeclared fields keep their values, even if a replacement changes the entry instead of an
    /// edit.
    #[test]
    fn a_replacement_keeps_undeclared_fields() {
        let mut raw = free_tier_branch();
        raw["merge_access_levels"][0]["access_level"] = 0.into();
        let entry = project_section("protected_branches")
            .read(&object(raw), FieldSelection::Only(&["allowed_to_push"].into()));
        let declared =
            fields(json!({"name": "main", "allowed_to_push": [{"access_level": "no_access"}]}));
        let calls = requests_for(
            project_section("protected_branches"),
            &names(),
            CallPurpose::Change(&declared, &entry, &["allowed_to_push"]),
        );
        let body = calls[1].body_fields().unwrap();
        assert_eq!(body["merge_access_level"], Json::from(0).into());
    }
}
