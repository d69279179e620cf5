//! Tests of guards.

use super::*;
use crate::{
    cause::Cause,
    desired::testing,
    diff::{DiffContext, GuardRefusal},
    field::Scope,
    kind::{NameIndex, Risk},
    live::{CallerAccess, InheritedLevels},
    plan::connect::add_edges,
    plan::guard,
    release::DetectedRelease,
};

#[test]
fn too_many_removals_are_refused_by_count_and_share() {
    for (live_count, removed_count, expected) in [
        (1, 1, Some("would remove the only entry")),
        (3, 2, None),
        (4, 1, None),
        (4, 2, Some("would remove 2 entries of 4; the limit is 25 %")),
        (60, 5, None),
        (60, 6, Some("would remove 6 entries of 60; the limit is 5")),
        (0, 0, None),
    ] {
        let names: Vec<_> = (0..live_count).map(|i| format!("V{i}")).collect();
        let entries = names.iter().enumerate().map(|(i, name)| {
            let mut entry = json!({"key": name, "environment_scope": "*"});
            if i < removed_count {
                entry["state"] = "absent".into();
            }
            entry
        });
        let raw: Vec<_> = names
            .iter()
            .map(|name| json!({"key": name, "environment_scope": "*", "value": "x"}))
            .collect();
        let plan = plan_sections(
            &json!({"variables": entries.collect::<Vec<_>>()}),
            &json!({"variables": raw}),
        );
        let refusals: Vec<_> =
            plan.refusals.iter().map(|r| (r.reason.as_str(), r.acknowledgement.clone())).collect();
        let expected_refusals: Vec<_> = expected
            .map(|reason| (reason, "removals:acme/shop#variables".to_owned()))
            .into_iter()
            .collect();
        assert_eq!(refusals, expected_refusals, "{removed_count} of {live_count}");
    }
}

/// The refusals in `plan`, as acknowledgements.
fn refusals(plan: &ContainerPlan) -> Vec<&str> {
    plan.refusals.iter().map(|refusal| refusal.acknowledgement.as_str()).collect()
}

#[test]
fn removing_a_duplicate_counts_but_leaves_its_original() {
    let hook =
        |id: u64, url: &str| json!({"id": id, "url": url, "created_at": "2026-01-31T12:00:00Z"});
    let declare_hooks = |state: Option<&str>| {
        let mut other = json!({"url": "https://b.example.org"});
        if let Some(state) = state {
            other["state"] = state.into();
        }
        json!({"hooks": [{"url": "https://a.example.org"}, other]})
    };
    let copies: Vec<_> = (1..=5).map(|id| hook(id, "https://a.example.org")).collect();
    let with_copies = |other_hooks: Vec<Json>| {
        let hooks = [copies.clone(), other_hooks].concat();
        json!({"hooks": hooks})
    };
    let plan =
        plan_sections(&declare_hooks(None), &with_copies(vec![hook(20, "https://b.example.org")]));
    assert_eq!((plan.steps.len(), refusals(&plan)), (4, vec![]), "four copies, none is missed");
    // Only one of two different hooks is removed: not all hooks are removed, and there are too few
    // hooks for the limit of the share.
    let plan = plan_sections(
        &declare_hooks(Some("absent")),
        &with_copies(vec![hook(20, "https://b.example.org")]),
    );
    assert_eq!((plan.steps.len(), refusals(&plan)), (5, vec![]));
    // A copy makes the share neither smaller nor larger.
    for (copy_count, other_count, removed_count, expected) in [
        (2, 2, 2, None),
        (5, 4, 1, None),
        (4, 4, 2, Some("would remove 2 entries of 5; the limit is 25 %")),
        (7, 4, 0, Some("would remove 6 entries of 11; the limit is 5")),
    ] {
        let url = |at: u64| format!("https://{at}.example.org");
        let copies = (1..=copy_count).map(|id| hook(id, "https://a.example.org"));
        let all_hooks = copies.chain((20..20 + other_count).map(|id| hook(id, &url(id))));
        let mut entries = vec![json!({"url": "https://a.example.org"})];
        entries
            .extend((20..20 + removed_count).map(|id| json!({"url": url(id), "state": "absent"})));
        let live_hooks = json!({"hooks": all_hooks.collect::<Vec<_>>()});
        let plan = plan_sections(&json!({"hooks": entries}), &live_hooks);
        let reason = plan.refusals.first().map(|refusal| refusal.reason.as_str());
        assert_eq!(reason, expected, "{copy_count} {other_count} {removed_count}");
    }
    let removal = json!({"hooks": [{"url": "https://a.example.org", "state": "absent"}]});
    let plan = plan_sections(&removal, &json!({"hooks": [hook(1, "https://a.example.org")]}));
    assert_eq!(plan.refusals[0].reason, "would remove the only entry");
}

/// A plan of `project_count` projects, each of which removes `removed_count` of 60 variables.
fn plan_removals(project_count: usize, removed_count: usize) -> Plan {
    let entry = |i: usize| json!({"key": format!("V{i}"), "environment_scope": "*"});
    let entries: Vec<_> = (0..60)
        .map(|i| {
            let mut entry = entry(i);
            if i < removed_count {
                entry["state"] = "absent".into();
            }
            entry
        })
        .collect();
    let raw: Vec<_> = (0..60).map(entry).collect();
    let mut plan = Plan::default();
    for i in 0..project_count {
        let path = format!("acme/p{i:02}");
        let sections = json!({"variables": entries});
        let declared = testing::container(Scope::Project, &path, &sections, Unlisted::Report);
        let live = live_container(&declared, &json!({"variables": raw}));
        plan.add(&declared, plan_container(&declared, &live, &settings(&[])), live);
    }
    plan.finish(&Extent::default())
}

#[test]
fn too_many_removals_in_one_run_are_refused() {
    assert_eq!(plan_removals(10, 5).refusals, [], "fifty in all are still few");
    let plan = plan_removals(11, 5);
    let refusal = &plan.refusals[0];
    assert_eq!(
        (plan.refusals.len(), &*refusal.reason, refusal.objects, &*refusal.acknowledgement),
        (
            1,
            "would remove 55 entries in all; the limit is 50; acknowledging it with `**` also acknowledges all other removals",
            55,
            "removals:**"
        )
    );
}

#[test]
fn wider_visibility_is_refused() {
    let refusal_reason = |before: Json, after: &str| {
        let plan = plan_sections(
            &json!({"settings": {"visibility": after}}),
            &json!({"settings": before}),
        );
        plan.refusals.first().map(|refusal| refusal.reason.clone())
    };
    let visibility = |word: &str| json!({"visibility": word});
    assert_eq!(
        refusal_reason(visibility("internal"), "public").as_deref(),
        Some("would widen `visibility` from internal to public")
    );
    assert_eq!(refusal_reason(visibility("public"), "private"), None);
    assert_eq!(refusal_reason(visibility("public"), "public"), None);
}

#[test]
fn weaker_protection_is_refused() {
    let address = Address::container("acme/shop".into()).with_section("settings");
    let step =
        Step::new(Scope::Project, address, Action::Update, origin(4), Vec::new(), Vec::new());
    let weakness = |text: &str| Effect::Risk(Risk::Weakens, text.to_owned());
    let step = Step { effects: vec![weakness("let guests push"), weakness("allow force")], ..step };
    let declared = shop(&json!({}), Unlisted::Report);
    let settings = settings(&[]);
    let context = DiffContext {
        declared_sections: &[],
        target: &target(&declared),
        container_address: &declared.address(),
        caller: &settings.caller,
        facts: &ContainerFacts::default(),
        live: &live_container(&declared, &json!({})),
        names: &NameIndex::default(),
        group_declarations: &settings.group_declarations,
        release: DetectedRelease::NotRequested,
        secrets: &settings.secrets,
        resend_selectors: &[],
    };
    let findings = guard::check_steps(&[step], &declared, context);
    let plan = ContainerPlan { findings, ..ContainerPlan::default() };
    assert_eq!(refusals(&plan), ["protection:acme/shop#settings"]);
    assert_eq!(plan.refusals[0].reason, "would let guests push, and allow force");
}

#[test]
fn only_changes_that_weaken_protection_are_refused() {
    let level =
        |level: u8| json!([{"id": 1, "access_level": level, "access_level_description": "x"}]);
    let branch = |name: &str, push: u8| json!({"id": 1, "name": name, "allow_force_push": false, "push_access_levels": level(push), "merge_access_levels": level(40)});
    let tag = |name: &str, create: u8| json!({"name": name, "create_access_levels": level(create)});
    let developers = json!([{"access_level": "developer"}]);
    let nobody = json!([{"access_level": "no_access"}]);
    let variable = json!({"key": "A", "environment_scope": "*", "value": "abcdefghijk", "protected": true, "masked": true, "raw": false, "variable_type": "env_var"});
    let hook = json!({"id": 1, "url": "https://a.example.org", "enable_ssl_verification": true, "push_events": true});
    let maintainers = json!([{"access_level": "maintainer"}]);
    let mut empty = branch("main", 40);
    empty["push_access_levels"] = json!([]);
    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    let jenkins = json!({"slug": "jenkins", "active": true, "properties": {"jenkins_url": "https://ci.example.org", "project_name": "p", "enable_ssl_verification": true}});
    let jira = json!({"slug": "jira", "active": true, "properties": {"url": "https://j.example.org", "jira_check_enabled": true, "jira_allowed_statuses_as_string": "Ready"}});
    let schedule = json!({"id": 1, "description": "nightly", "ref": "main", "cron": "0 4 * * *", "cron_timezone": "UTC", "active": true, "owner": {"id": CALLER_ID + 1}});
    let rule = json!({"prevent_secrets": true, "branch_name_regex": "^a", "max_file_size": 5});
    for (section, declared, live, expected) in [
        (
            "settings",
            json!({"approvals_before_merge": 0}),
            json!({"approvals_before_merge": 2}),
            Some("lower `approvals_before_merge` from 2 to 0"),
        ),
        (
            "settings",
            json!({"approvals_before_merge": 2}),
            json!({"approvals_before_merge": 0}),
            None,
        ),
        (
            "settings",
            json!({"merge_method": "ff", "build_timeout": 60}),
            json!({"merge_method": "merge", "build_timeout": 3600}),
            None,
        ),
        (
            "settings",
            json!({"only_allow_merge_if_pipeline_succeeds": false, "allow_merge_on_skipped_pipeline": true}),
            json!({"only_allow_merge_if_pipeline_succeeds": true, "allow_merge_on_skipped_pipeline": false}),
            Some(
                "switch on `allow_merge_on_skipped_pipeline`, and switch off `only_allow_merge_if_pipeline_succeeds`",
            ),
        ),
        ("push_rule", Json::Null, rule.clone(), Some("remove the push rule")),
        (
            "push_rule",
            json!({"prevent_secrets": false, "max_file_size": 0}),
            rule.clone(),
            Some("switch off `prevent_secrets`"),
        ),
        (
            "push_rule",
            json!({"branch_name_regex": null}),
            rule.clone(),
            Some("clear `branch_name_regex`"),
        ),
        (
            "push_rule",
            json!({"reject_unsigned_commits": true}),
            json!({"reject_unsigned_commits": false}),
            None,
        ),
        (
            "variables",
            json!([{"key": "A", "environment_scope": "*", "value": "abcdefghijk", "protected": false, "masked": false}]),
            json!([variable]),
            Some("switch off `masked`, and switch off `protected`"),
        ),
        (
            "variables",
            json!([{"key": "A", "environment_scope": "*", "value": "another-value"}]),
            json!([variable]),
            None,
        ),
        (
            "hooks",
            json!([{"url": "https://a.example.org", "enable_ssl_verification": false}]),
            json!([hook]),
            Some("switch off `enable_ssl_verification`"),
        ),
        (
            "hooks",
            json!([{"url": "https://a.example.org", "push_events": false}]),
            json!([hook]),
            None,
        ),
        (
            "protected_branches",
            json!([{"name": "m*", "allowed_to_push": developers}]),
            json!([branch("main", 0)]),
            Some("let more people push what `main` protects"),
        ),
        (
            "protected_branches",
            json!([{"name": "v*", "allowed_to_push": developers}]),
            json!([branch("main", 0)]),
            None,
        ),
        (
            "protected_branches",
            json!([{"name": "main", "allowed_to_push": nobody}]),
            json!([branch("main", 40)]),
            None,
        ),
        (
            "protected_branches",
            json!([{"name": "main", "state": "absent"}, {"name": "x"}]),
            json!([branch("main", 40), branch("x", 40)]),
            Some("remove the protection"),
        ),
        (
            "protected_branches",
            json!([{"name": "main", "state": "absent"}, {"name": "m*"}]),
            json!([branch("main", 40), branch("m*", 40)]),
            None,
        ),
        (
            "protected_tags",
            json!([{"name": "v1*", "allowed_to_create": developers}]),
            json!([tag("v*", 0)]),
            Some("let more people create what `v*` protects"),
        ),
        (
            "protected_tags",
            json!([{"name": "v1*", "allowed_to_create": nobody}]),
            json!([tag("v*", 0)]),
            None,
        ),
        // Nobody may push now, which is stricter than the default.
        (
            "protected_branches",
            json!([{"name": "main", "allowed_to_push": maintainers}]),
            json!([empty]),
            Some("let more people push"),
        ),
        (
            "protected_tags",
            json!([{"name": "v1", "allowed_to_create": maintainers}]),
            json!([{"name": "v1", "create_access_levels": []}]),
            Some("let more people create"),
        ),
        (
            "protected_environments",
            json!([{"name": "production", "deploy_access_levels": maintainers}]),
            json!([{"name": "production", "deploy_access_levels": [], "approval_rules": []}]),
            Some("let more people deploy"),
        ),
        (
            "protected_branches",
            json!([{"name": "main", "allowed_to_push": nobody}]),
            json!([empty]),
            None,
        ),
        (
            "protected_branches",
            json!([{"name": "main", "allow_force_push": false}]),
            json!([{"id": 1, "name": "main", "allow_force_push": true}]),
            None,
        ),
        (
            "protected_branches",
            json!([{"name": "m*"}]),
            json!([empty]),
            Some("let more people push what `main` protects"),
        ),
        // A stored secret would be sent to the new URL.
        (
            "integrations",
            json!([{"slug": "jenkins", "jenkins_url": "https://evil.example.org", "project_name": "p"}]),
            json!([jenkins]),
            Some("send a stored secret to a new `jenkins_url`"),
        ),
        (
            "integrations",
            json!([{"slug": "jenkins", "jenkins_url": "https://evil.example.org", "project_name": "p", "password": {"env": "A"}}]),
            json!([jenkins]),
            None,
        ),
        // Removing an entry counts as unsetting its fields.
        (
            "integrations",
            json!([{"slug": "jira", "state": "absent"}]),
            json!([jira]),
            Some("switch off `jira_check_enabled`"),
        ),
        ("integrations", json!([{"slug": "jenkins", "state": "absent"}]), json!([jenkins]), None),
        (
            "variables",
            json!([{"key": "A", "environment_scope": "*", "state": "absent"}]),
            json!([variable]),
            None,
        ),
        (
            "hooks",
            json!([{"url": "https://a.example.org", "state": "absent"}]),
            json!([hook]),
            None,
        ),
        // Creating an entry counts as changing its fields from the defaults.
        (
            "hooks",
            json!([{"url": "https://a.example.org", "enable_ssl_verification": false}]),
            json!([]),
            Some("switch off `enable_ssl_verification`"),
        ),
        (
            "hooks",
            json!([{"url": "https://a.example.org", "enable_ssl_verification": true}]),
            json!([]),
            None,
        ),
        (
            "variables",
            json!([{"key": "A", "environment_scope": "*", "value": "x", "protected": false}]),
            json!([]),
            None,
        ),
        (
            "deploy_keys",
            json!([{"key": KEY, "title": "ci", "can_push": true}]),
            json!([]),
            Some("switch on `can_push`"),
        ),
        (
            "pipeline_schedules",
            json!([{"description": "nightly", "cron": "0 5 * * *"}]),
            json!([schedule]),
            Some("run its pipelines with the rights of the token's user"),
        ),
        (
            "settings",
            json!({"ci_config_path": "ci.yml@evil/ci"}),
            json!({"ci_config_path": null}),
            Some("load the pipeline from outside with `ci_config_path`"),
        ),
        (
            "settings",
            json!({"ci_config_path": "ci.yml"}),
            json!({"ci_config_path": "https://a.example.org/ci.yml"}),
            None,
        ),
        (
            "settings",
            json!({"shared_runners_enabled": true}),
            json!({"shared_runners_enabled": false}),
            Some("switch on `shared_runners_enabled`"),
        ),
        (
            "settings",
            json!({"import_url": {"env": "A"}, "mirror": true}),
            json!({"import_url": "https://a.example.org/x.git", "mirror": true}),
            Some("change `import_url`"),
        ),
        (
            "settings",
            json!({"only_mirror_protected_branches": false, "mirror": true}),
            json!({"only_mirror_protected_branches": true, "mirror": true}),
            Some("switch off `only_mirror_protected_branches`"),
        ),
    ] {
        let plan = if declared.is_null() {
            let absent = json!({"state": "absent"});
            plan_sections(&json!({section: absent}), &json!({section: live}))
        } else {
            plan_sections(&json!({section: declared}), &json!({section: live}))
        };
        let is_protection =
            |refusal: &&GuardRefusal| refusal.acknowledgement.starts_with("protection:");
        let texts: Vec<_> =
            plan.refusals.iter().filter(is_protection).map(|r| first_clause(&r.reason)).collect();
        let expected_texts: Vec<_> =
            expected.map(|want| format!("would {want}")).into_iter().collect();
        assert_eq!(texts, expected_texts, "{section} {declared} {:?}", plan.problems);
        assert!(!plan.steps.is_empty(), "{section} {declared}");
    }
}

/// The text before the first semicolon. Reasons that concern rules end with a sentence about rules.
fn first_clause(reason: &str) -> String {
    reason.split("; ").next().unwrap_or_default().to_owned()
}

/// Only rules for branches and tags count together.
#[test]
fn only_weaker_rules_explain_how_rules_are_combined() {
    for (section, declared, live, is_rule) in [
        (
            "protected_branches",
            json!([{"name": "m*", "allowed_to_push": [{"access_level": "developer"}]}]),
            json!([{"name": "main", "push_access_levels": [{"access_level": 0}]}]),
            true,
        ),
        (
            "settings",
            json!({"only_allow_merge_if_pipeline_succeeds": false}),
            json!({"only_allow_merge_if_pipeline_succeeds": true}),
            false,
        ),
    ] {
        let plan = plan_sections(&json!({section: declared}), &json!({section: live}));
        let reasons: Vec<_> = plan.refusals.iter().map(|refusal| &refusal.reason).collect();
        assert_eq!(reasons.len(), 1, "{section}: {reasons:?}");
        let explains =
            reasons[0].ends_with("; of all rules that match, the most permissive counts");
        assert_eq!(explains, is_rule, "{}", reasons[0]);
        assert_eq!(plan.refusals[0].guard.alternative(), Some("keep the stricter values"));
    }
}

/// A new project has nothing to protect yet, but a step that gives outside access is refused.
#[test]
fn a_new_project_is_opened_only_with_an_acknowledgement() {
    let key = |push: bool| json!([{"key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f", "title": "ci", "can_push": push}]);
    for (sections, expected) in [
        (
            json!({"deploy_keys": key(true)}),
            vec![
                "protection:acme/shop#deploy_keys/SHA256%3AZkAslGjFiUHdGf%2FWUL8rQvkib4PTvQatUV0OUQSncCA",
            ],
        ),
        (json!({"deploy_keys": key(false)}), vec![]),
        (json!({"runners": [{"runner": "7"}]}), vec!["protection:acme/shop#runners/7"]),
        (json!({"job_token_allowlist": [{"project": "acme/tools"}]}), vec![]),
        (
            json!({"job_token_scope": {"inbound_enabled": false}}),
            vec!["protection:acme/shop#job_token_scope"],
        ),
        (json!({"job_token_scope": {"inbound_enabled": true}}), vec![]),
        (
            json!({
                "settings": {"visibility": "internal", "only_allow_merge_if_pipeline_succeeds": false, "shared_runners_enabled": true},
                "protected_branches": [{"name": "main", "allowed_to_push": [{"access_level": "developer"}], "allow_force_push": true}],
                "approvals": {"merge_requests_author_approval": true},
                "variables": [{"key": "A", "value": "x", "protected": false}],
                "hooks": [{"url": "https://a.example.org"}],
            }),
            vec![],
        ),
    ] {
        let mut declared = shop(&sections, Unlisted::Report);
        declared.creation_policy = CreationPolicy::Allowed(DeclaredFields::default());
        let namespace = Some(LiveNamespace { id: Id::Known(5), owner: NamespaceOwner::Group });
        let target = Target { id: None, namespace, ..target(&declared) };
        let mut live =
            LiveContainer::with_presence(Presence::Missing(target), std::time::Duration::ZERO);
        live.names.insert(NamedObject::Runner, "7", Some(7));
        live.names.insert(NamedObject::Project, "acme/tools", Some(8));
        let plan = plan_container(&declared, &live, &settings(&[]));
        assert_eq!(refusals(&plan), expected, "{sections}");
    }
}

fn inherited_levels(levels: &[(u64, u8)]) -> Option<InheritedLevels> {
    Some(Arc::new(levels.iter().copied().collect()))
}

/// The plan of a project in a group. The project has these declared and live members; `inherited`
/// contains the levels from the group above.
fn plan_members(declared: &Json, live: &Json, inherited: Option<InheritedLevels>) -> ContainerPlan {
    let declared = shop(&json!({"members": declared}), Unlisted::Report);
    let mut names = NameIndex::default();
    names.insert(NamedObject::User, "alice", Some(3));
    names.insert(NamedObject::User, "bob", Some(2));
    let live = LiveContainer {
        levels_above: inherited,
        names,
        ..live_container(&declared, &json!({"members": live}))
    };
    plan_container(&declared, &live, &settings(&[]))
}

fn member(id: u64, name: &str, level: u8) -> Json {
    json!({"id": id, "username": name, "access_level": level, "expires_at": null})
}

#[test]
fn removing_the_last_owner_is_refused_unless_an_owner_is_inherited() {
    let demotion = json!([{"user": "bob", "access_level": "maintainer"}]);
    let bob = json!([member(2, "bob", 50)]);
    let first_plan = plan_members(&demotion, &bob, None);
    assert_eq!(
        (refusals(&first_plan), &first_plan.questions[..]),
        (vec![], &[ExtraFact::LevelsAbove][..])
    );
    let refusal = ["last-owner:acme/shop#members/bob"];
    assert_eq!(refusals(&plan_members(&demotion, &bob, inherited_levels(&[]))), refusal);
    assert_eq!(refusals(&plan_members(&demotion, &bob, inherited_levels(&[(9, 40)]))), refusal);
    let second_plan = plan_members(&demotion, &bob, inherited_levels(&[(9, 50)]));
    assert_eq!((refusals(&second_plan), &second_plan.questions[..]), (vec![], &[][..]));
    // A user who gets more access, but does not become an owner, does not replace one.
    let changes = json!([
        {"user": "bob", "access_level": "maintainer"},
        {"user": "alice", "access_level": "maintainer"},
    ]);
    let plan = plan_members(
        &changes,
        &json!([member(2, "bob", 50), member(3, "alice", 30)]),
        inherited_levels(&[]),
    );
    assert_eq!(refusals(&plan), refusal);
    let owners = json!([member(2, "bob", 50), member(3, "alice", 50)]);
    assert_eq!(refusals(&plan_members(&demotion, &owners, inherited_levels(&[]))), [] as [&str; 0]);
}

/// Guards check access that is removed, not access that is given, for keys as for members.
#[test]
fn a_new_read_only_key_is_not_refused() {
    let new_owner = json!([{"user": "alice", "access_level": "owner"}]);
    let plan = plan_members(&new_owner, &json!([member(2, "bob", 50)]), inherited_levels(&[]));
    assert_eq!((plan.steps.len(), refusals(&plan)), (1, vec![]));
    let public_key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
    let plan_key = |other_fields: Json| {
        let mut key = json!({"key": public_key, "title": "ci"});
        key.as_object_mut().unwrap().extend(other_fields.as_object().unwrap().clone());
        plan_sections(&json!({"deploy_keys": [key]}), &json!({"deploy_keys": []}))
    };
    for fields in [json!({}), json!({"can_push": false})] {
        let plan = plan_key(fields);
        assert_eq!((plan.steps.len(), refusals(&plan)), (1, vec![]));
    }
    let plan = plan_key(json!({"can_push": true}));
    assert_eq!(refusals(&plan).len(), 1);
    assert!(refusals(&plan)[0].starts_with("protection:acme/shop#deploy_keys/"));
}

#[test]
fn the_old_owner_is_removed_after_the_new_one_is_added() {
    let declared = json!([
        {"user": "bob", "access_level": "maintainer"},
        {"user": "alice", "access_level": "owner"},
    ]);
    for (live, first_step) in [
        (json!([member(2, "bob", 50)]), "Create acme/shop#members/alice access_level"),
        (
            json!([member(2, "bob", 50), member(3, "alice", 30)]),
            "Update acme/shop#members/alice access_level",
        ),
    ] {
        let plan = plan_members(&declared, &live, inherited_levels(&[]));
        assert_eq!(refusals(&plan), [] as [&str; 0]);
        assert_eq!(step_lines(&plan), [first_step, "Update acme/shop#members/bob access_level"]);
        let edge = &plan.steps[1].after[0];
        assert_eq!(edge.address, plan.steps[0].address);
        assert_eq!(edge.reason, "the new owner must be added before the old one is removed");
    }
}

#[test]
fn an_expiry_date_is_guarded_like_a_removal() {
    let expiring_member =
        |level: &str| json!([{"user": "bob", "access_level": level, "expires_at": "2099-01-31"}]);
    let plan = plan_members(
        &expiring_member("owner"),
        &json!([member(2, "bob", 50)]),
        inherited_levels(&[]),
    );
    assert_eq!(refusals(&plan), ["last-owner:acme/shop#members/bob"]);
    // If access already ends on a date, keeping that date is no change and not refused.
    let bob = json!({"id": 2, "username": "bob", "access_level": 50, "expires_at": "2099-01-31"});
    let plan = plan_members(&expiring_member("owner"), &json!([bob]), inherited_levels(&[]));
    assert_eq!((plan.steps.len(), refusals(&plan)), (0, vec![]));
    let root = json!([{"user": "root", "access_level": "maintainer", "expires_at": "2099-01-31"}]);
    let plan = plan_members(&root, &json!([member(CALLER_ID, "root", 40)]), inherited_levels(&[]));
    assert_eq!(
        plan.refusals[0].reason,
        "would lower the access of `root`, the token's owner, from maintainer to none"
    );
}

#[test]
fn the_callers_own_access_is_guarded() {
    let root = json!([{"user": "root", "access_level": "developer"}]);
    let live = json!([member(CALLER_ID, "root", 50), member(3, "alice", 50)]);
    assert_eq!(
        refusals(&plan_members(&root, &live, inherited_levels(&[]))),
        ["own-access:acme/shop#members/root"]
    );
    let maintainer_level = json!([{"user": "root", "access_level": "maintainer"}]);
    assert_eq!(
        refusals(&plan_members(&maintainer_level, &live, inherited_levels(&[]))),
        [] as [&str; 0]
    );
}

/// The plan of a project that is shared with `team` and `crew`. The caller is no administrator, has these
/// levels in the two groups, and `level` in the project without them.
fn plan_shares(declared: &Json, level: u8, team: Result<u8, Cause>, crew: u8) -> ContainerPlan {
    let declared = shop(&json!({"shares": declared}), Unlisted::Report);
    let share = |id: u64, name: &str| json!({"group_id": id, "group_full_path": name, "group_access_level": 40, "expires_at": null});
    let live = live_container(&declared, &json!({"shares": [share(7, "team"), share(8, "crew")]}));
    let live = LiveContainer { group_above: Some(Arc::default()), ..live };
    let mut names = NameIndex::default();
    names.insert(NamedObject::Group, "team", Some(7));
    names.insert(NamedObject::Group, "crew", Some(8));
    let groups = [(7, team), (8, Ok(crew))].into();
    let caller_access =
        Some(CallerAccess { level_without_shares: Ok(level), group_levels: groups });
    let mut settings = settings(&[]);
    settings.caller.is_administrator = false;
    let first_plan = plan_container(
        &declared,
        &LiveContainer { names: names.clone(), ..live.clone() },
        &settings,
    );
    assert!(first_plan.steps.is_empty() || first_plan.questions == [ExtraFact::CallerAccess]);
    plan_container(&declared, &LiveContainer { names, caller_access, ..live }, &settings)
}

#[test]
fn the_callers_access_through_a_share_is_guarded() {
    let lower_share = json!([{"group": "team", "group_access": "guest"}]);
    let removal = json!([{"group": "team", "state": "absent"}]);
    let expiring_share =
        json!([{"group": "team", "group_access": "maintainer", "expires_at": "2099-01-31"}]);
    let raised_share = json!([{"group": "team", "group_access": "owner"}]);
    let both_absent =
        json!([{"group": "team", "state": "absent"}, {"group": "crew", "state": "absent"}]);
    let refusal = &["own-access:acme/shop#shares/team"][..];
    let is_own_access = |acknowledgement: &&str| acknowledgement.starts_with("own-access");
    for (declared, level, team, crew, expected) in [
        (&lower_share, 0, 50, 0, refusal),
        (&removal, 30, 50, 0, refusal),
        // A share cannot be edited: after its removal, the caller may not add the share again.
        (&raised_share, 0, 50, 0, refusal),
        (&expiring_share, 0, 50, 0, refusal),
        (&both_absent, 0, 50, 30, refusal),
        // The caller keeps enough access without this share, or never had it through this share.
        (&removal, 40, 50, 0, &[]),
        (&removal, 0, 50, 40, &[]),
        (&removal, 0, 0, 40, &[]),
        (&lower_share, 30, 30, 0, &[]),
    ] {
        let plan = plan_shares(declared, level, Ok(team), crew);
        let texts: Vec<_> = refusals(&plan).into_iter().filter(is_own_access).collect();
        assert_eq!(texts, expected, "{declared} {level} {team} {crew}");
    }
    let unread_plan = plan_shares(&removal, 0, Err(Cause::new("500")), 0);
    assert_eq!(
        (
            unread_plan.incomplete.len(),
            refusals(&unread_plan).iter().filter(|r| is_own_access(r)).count()
        ),
        (1, 0)
    );
}

/// The members of a directory group are unknown; the caller may be one.
#[test]
fn lowering_the_level_of_a_directory_group_is_refused() {
    let address = "own-access:acme#saml_group_links/ops";
    let link = |level| json!([{"saml_group_name": "ops", "access_level": level}]);
    let live = json!([{"name": "ops", "access_level": 30, "member_role_id": null}]);
    for (declared, is_administrator, expected) in [
        (link("guest"), false, &[address][..]),
        (json!([{"saml_group_name": "ops", "state": "absent"}]), false, &[address]),
        (link("guest"), true, &[]),
        (link("developer"), false, &[]),
        (link("owner"), false, &[]),
    ] {
        let declared = testing::container(
            Scope::Group,
            "acme",
            &json!({"saml_group_links": declared}),
            Unlisted::Report,
        );
        let live = live_container(&declared, &json!({"saml_group_links": live}));
        let mut settings = settings(&[]);
        settings.caller.is_administrator = is_administrator;
        let plan = plan_container(&declared, &live, &settings);
        let mut texts = refusals(&plan);
        texts.retain(|refusal| refusal.starts_with("own-access"));
        assert_eq!(texts, expected, "{is_administrator} {:?}", declared.sections);
    }
}

#[test]
fn a_level_below_the_inherited_one_is_a_problem() {
    let declared = json!([{"user": "bob", "access_level": "developer"}]);
    let codes = |plan: &ContainerPlan| -> Vec<_> {
        let problems = add_edges(&mut plan.steps.clone()).into_iter();
        problems.map(|problem| (problem.code, problem.message)).collect()
    };
    let expected_problems = vec![(
        "inherited-access",
        "`bob` is already maintainer through the group above, and the service refuses developer here"
            .to_owned(),
    )];
    for live in [json!([]), json!([member(2, "bob", 20)])] {
        let plan = plan_members(&declared, &live, inherited_levels(&[(2, 40)]));
        assert_eq!(codes(&plan), expected_problems, "{live}");
        for levels in
            [inherited_levels(&[(2, 30)]), inherited_levels(&[(3, 50)]), inherited_levels(&[])]
        {
            let plan = plan_members(&declared, &live, levels);
            assert_eq!((plan.steps.len(), codes(&plan)), (1, vec![]), "{live}");
        }
        // A new member also depends on a lock of the group.
        assert!(plan_members(&declared, &live, None).questions.contains(&ExtraFact::LevelsAbove));
    }
    // Members that match need no further facts.
    let same_plan = plan_members(&declared, &json!([member(2, "bob", 30)]), None);
    assert_eq!((same_plan.steps.len(), same_plan.questions.len()), (0, 0));
}

#[test]
fn in_a_personal_namespace_nothing_is_inherited() {
    let declared =
        shop(&json!({"members": [{"user": "bob", "access_level": "developer"}]}), Unlisted::Report);
    let mut live = live_container(&declared, &json!({"members": [member(2, "bob", 20)]}));
    if let Presence::Existing(_, facts) = &mut live.presence {
        facts.personal_owner_id = Some(CALLER_ID);
    }
    let plan = plan_container(&declared, &live, &settings(&[]));
    assert_eq!((plan.steps.len(), plan.questions.len()), (1, 0));
}

/// A personal namespace has no members, so that nobody keeps access through it.
#[test]
fn in_a_personal_namespace_a_removed_member_loses_the_rule_that_names_them() {
    let rule = json!({"name": "main", "allowed_to_push": [{"user": "bob"}]});
    let declared = shop(&json!({"protected_branches": [rule], "members": []}), Unlisted::Delete);
    let live_rule = json!({"name": "main", "push_access_levels": [{"id": 1, "access_level": 40, "user_id": 2}], "merge_access_levels": [], "allow_force_push": false});
    let live = json!({"protected_branches": [live_rule], "members": [member(2, "bob", 30)]});
    let mut names = NameIndex::default();
    names.insert(NamedObject::User, "bob", Some(2));
    let levels_above = inherited_levels(&[]);
    let mut live = LiveContainer { names, levels_above, ..live_container(&declared, &live) };
    if let Presence::Existing(_, facts) = &mut live.presence {
        facts.personal_owner_id = Some(CALLER_ID);
    }
    let plan = plan_container(&declared, &live, &settings(&[]));
    let messages: Vec<_> = plan.problems.iter().map(|problem| &*problem.message).collect();
    assert!(messages[0].contains("`bob`, whose access this run removes"), "{messages:?}");
}
