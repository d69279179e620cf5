//! Tests of comparisons, without a plan around them.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::json;

use super::*;
use crate::{
    catalogue,
    desired::testing::{section as declared_section, shop},
    field::Scope,
    kind::{FieldLookup, FieldSelection, Identity, Kind, KindRules, testing},
    live::{
        Presence,
        testing::{CALLER_ID, caller, live_entries},
    },
    release,
    secret::Reference,
};

const SECRET: &str = "https://chat.example.org/hooks/T0123/canary-path";

/// Owns the values that a [`DiffContext`] borrows.
pub(super) struct DiffFixture {
    target: Target,
    address: Address,
    caller: Caller,
    names: NameIndex,
    secrets: Secrets,
    release: DetectedRelease,
    groups: GroupDeclarations,
    facts: ContainerFacts,
    live: LiveContainer,
}

impl Default for DiffFixture {
    fn default() -> Self {
        let target = testing::existing_target();
        Self {
            address: Address::container(target.path.clone()),
            target,
            caller: caller(),
            names: NameIndex::default(),
            secrets: Secrets::default(),
            groups: GroupDeclarations::default(),
            facts: ContainerFacts::default(),
            live: LiveContainer::with_presence(
                Presence::Missing(testing::existing_target()),
                Duration::ZERO,
            ),
            release: DetectedRelease::Known(release::REFERENCE),
        }
    }
}

impl DiffFixture {
    pub(super) fn context(&self) -> DiffContext<'_> {
        DiffContext {
            declared_sections: &[],
            target: &self.target,
            container_address: &self.address,
            caller: &self.caller,
            facts: &self.facts,
            live: &self.live,
            names: &self.names,
            group_declarations: &self.groups,
            release: self.release,
            secrets: &self.secrets,
            resend_selectors: &[],
        }
    }
}

/// Compares the declared `hooks` of `acme/shop` with the live ones, which are complete. `chat` is
/// the value of the variable `CHAT`; `None` if it is not set.
fn compare_hooks(hooks: &Json, unlisted: Unlisted, live: &Json, chat: Option<&str>) -> Findings {
    let project = shop(&json!({"hooks": hooks}), unlisted);
    let declared = project.section("hooks").unwrap();
    let live = live_entries(declared, live, FieldSelection::All);
    let mut secrets = Secrets::new("/", chat.map(|value| ("CHAT".to_owned(), value.to_owned())));
    secrets.resolve([&Reference::Env("CHAT".into())]);
    let world = DiffFixture { secrets, ..DiffFixture::default() };
    compare_section(declared, &live, world.context()).unwrap()
}

/// A live hook with its own creation time.
fn hook(id: u64, url: &str) -> Json {
    json!({"id": id, "url": url, "push_events": true, "created_at": format!("20{id:02}-01-31T12:00:00Z")})
}

/// The addresses of unlisted entries that were not removed, and the steps.
fn unlisted_and_step_lines(
    hooks: &Json,
    unlisted: Unlisted,
    urls: [&str; 2],
    chat: Option<&str>,
) -> Vec<String> {
    let live = json!([hook(7, urls[0]), hook(8, urls[1])]);
    let findings = compare_hooks(hooks, unlisted, &live, chat);
    let notes = findings
        .notes
        .iter()
        .filter(|note| matches!(note.reason, Reason::Unlisted | Reason::Protected { .. }));
    let steps = findings.steps.iter().map(|step| format!("{:?} {}", step.action, step.address));
    notes.map(|note| note.address.to_string()).chain(steps).collect()
}

#[test]
fn a_live_value_is_not_shown_where_it_may_be_a_declared_secret() {
    use Unlisted::{Delete, Report};
    let declared = json!([{"url": {"env": "CHAT"}, "push_events": true}]);
    let named_hook = json!([{"name": "chat", "url": {"env": "CHAT"}, "push_events": true}]);
    let urls = [SECRET, "https://ci.example.org/x"];
    let id_addresses = ["acme/shop#hooks/id%3A7", "acme/shop#hooks/id%3A8"];
    // The secret is not set: each of the two hooks may be the declared one.
    assert_eq!(unlisted_and_step_lines(&declared, Report, urls, None), id_addresses);
    assert_eq!(unlisted_and_step_lines(&named_hook, Report, urls, None), id_addresses);
    assert_eq!(unlisted_and_step_lines(&declared, Delete, urls, None), id_addresses);
    // The secret has a new value: a live hook may have the old value.
    let creation_line = "Create acme/shop#hooks/env%3ACHAT".to_owned();
    let new_url = Some("https://chat.example.org/new");
    assert_eq!(
        unlisted_and_step_lines(&declared, Report, urls, new_url),
        [id_addresses[0].to_owned(), id_addresses[1].to_owned(), creation_line]
    );
    let removed = unlisted_and_step_lines(&declared, Delete, urls, new_url);
    assert_eq!(removed[1..], ["Delete acme/shop#hooks/id%3A7", "Delete acme/shop#hooks/id%3A8"]);
    // The secret is set, and one hook has its value: the other hook is not declared.
    let other_address = "acme/shop#hooks/https%3A%2F%2Fci.example.org%2Fx@8";
    assert_eq!(unlisted_and_step_lines(&declared, Report, urls, Some(SECRET)), [other_address]);
    // No secret is declared.
    let plain_hook = json!([{"url": "https://other.example.org"}]);
    assert_eq!(unlisted_and_step_lines(&plain_hook, Report, urls, None)[1], other_address);
    // A match for one secret proves nothing for the other.
    let two_secrets =
        json!([{"url": {"env": "CHAT"}, "push_events": true}, {"url": {"env": "OTHER"}}]);
    assert_eq!(
        unlisted_and_step_lines(&two_secrets, Report, urls, Some(SECRET)),
        ["acme/shop#hooks/id%3A8"]
    );
}

#[test]
fn a_removal_has_the_origin_of_its_entry_or_of_the_policy() {
    let absent = json!([{"url": "https://a.example.org", "state": "absent"}]);
    let live = json!([hook(7, "https://a.example.org"), hook(8, "https://b.example.org")]);
    let findings = compare_hooks(&absent, Unlisted::Delete, &live, None);
    let origins: Vec<_> = findings.steps.iter().map(|step| step.origin.line).collect();
    assert_eq!(origins, [2, 9], "the entry, and the policy for what is unlisted");
}

#[test]
fn an_unlisted_hook_has_its_id_in_its_address() {
    // Two live hooks have the same URL, and no manifest lists them.
    let live = json!([hook(7, "https://u:p@h/x"), hook(8, "https://u:p@h/x")]);
    let findings = compare_hooks(&json!([]), Unlisted::Delete, &live, None);
    let addresses: Vec<_> = findings.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(
        addresses,
        ["acme/shop#hooks/https%3A%2F%2F***@h%2Fx@7", "acme/shop#hooks/https%3A%2F%2F***@h%2Fx@8"]
    );
    assert!(
        findings.steps.iter().all(|step| !step.removes_copy),
        "neither hook is known to be a copy"
    );
}

/// Compares a hook with the `declared` URL with a live hook. Returns problem codes and actions.
fn hook_result(declared: &str, live: &str) -> String {
    let declared = json!([{"name": "ci", "url": declared, "push_events": true}]);
    let findings = compare_hooks(&declared, Unlisted::Report, &json!([hook(7, live)]), None);
    let problems = findings.problems.iter().map(|problem| problem.code.to_owned());
    let steps = findings.steps.iter().map(|step| format!("{:?}", step.action));
    problems.chain(steps).collect::<Vec<_>>().join(" ")
}

#[test]
fn hook_urls_are_compared_in_normal_form() {
    for (declared, live, expected) in [
        ("https://h/x", "https://h/x", ""),
        ("HTTPS://H:443/x", "https://h/x", ""),
        ("https://h", "https://h/", ""),
        ("https://h/a/../x", "https://h/x", ""),
        ("https://h/%7ex", "https://h/~x", ""),
        ("https://h/x", "https://h/x/", "nearly-the-same"),
        ("https://h/x/", "https://h/x", "nearly-the-same"),
        ("https://h/x", "https://h/X", "Create"),
        ("https://h/x", "https://h/x?a=b", "Create"),
        ("https://h/x", "http://h/x", "Create"),
    ] {
        assert_eq!(hook_result(declared, live), expected, "{declared} and {live}");
    }
}

#[test]
fn a_nearly_equal_hook_is_named_without_its_credential() {
    let declared = json!([{"url": "https://u:canary@h/x"}]);
    let live = json!([hook(7, "https://u:canary@h/x/")]);
    let findings = compare_hooks(&declared, Unlisted::Report, &live, None);
    let problem = &findings.problems[0];
    assert_eq!(
        problem.message,
        "the hook `https://***@h/x/` (id 7) is live and differs only in a `/` at the end"
    );
    assert!(!format!("{findings:?}").contains("canary"), "{findings:?}");
}

/// The steps for a declared hook and several live ones with its URL, and the reasons if
/// several of them could be the declared one.
fn compare_copies(live: &[Json]) -> (Vec<String>, Vec<String>) {
    let declared = json!([{"name": "ci", "url": "https://h/x"}]);
    let findings = compare_hooks(&declared, Unlisted::Delete, &json!(live), None);
    let steps = findings.steps.iter().map(|step| format!("{:?} {}", step.action, step.address));
    let reasons =
        findings.incomplete.iter().map(|incomplete| incomplete.reason.message.to_string());
    (steps.collect(), reasons.collect())
}

#[test]
fn a_copy_equals_the_first_and_was_made_soon_after_it() {
    let new_hook = |id: u64, created_at: &str| json!({"id": id, "url": "https://h/x", "push_events": true, "created_at": created_at, "updated_at": created_at});
    let first_hook = new_hook(3, "2026-01-31T12:00:00.000Z");
    for created_at in
        ["2026-01-31T12:00:00.500Z", "2026-01-31T12:15:00.000Z", "2026-01-31T11:45:00Z"]
    {
        let copy = "Delete acme/shop#hooks/ci@4".to_owned();
        assert_eq!(
            compare_copies(&[new_hook(4, created_at), first_hook.clone()]),
            (vec![copy], vec![]),
            "{created_at}"
        );
    }
    let find_ambiguity = |live: &[Json]| {
        let (steps, reasons) = compare_copies(live);
        assert_eq!((steps.len(), reasons.len()), (0, 1));
        reasons[0].clone()
    };
    let reason = find_ambiguity(&[first_hook.clone(), new_hook(4, "2026-01-31T12:15:01Z")]);
    assert!(
        reason.contains("`3`") && reason.contains("`4`") || reason.contains("3 and 4"),
        "{reason}"
    );
    assert!(reason.contains("were created more than 15 minutes apart"), "{reason}");
    let mut undated_hook = first_hook.clone();
    undated_hook["id"] = 4.into();
    undated_hook.as_object_mut().unwrap().remove("created_at");
    assert!(
        find_ambiguity(&[first_hook.clone(), undated_hook.clone()])
            .contains("do not show when they were created")
    );
    // Both may have a token, and the tokens may differ.
    let mut other_hook = undated_hook.clone();
    other_hook["id"] = 5.into();
    assert!(
        find_ambiguity(&[undated_hook, other_hook]).contains("do not show when they were created")
    );
    // Different values of undeclared fields also make the hooks ambiguous.
    for (name, value) in [
        ("push_events", json!(false)),
        ("alert_status", json!("disabled")),
        ("url", json!("https://H/x")),
    ] {
        let mut other_hook = new_hook(4, "2026-01-31T12:00:00.000Z");
        other_hook[name] = value;
        let reason = find_ambiguity(&[first_hook.clone(), other_hook]);
        assert!(reason.contains(&format!("differ in `{name}`")), "{reason}");
        assert!(!reason.contains("https://"), "{reason}");
    }
}

#[test]
fn a_former_url_matches_only_if_the_new_one_does_not_exist() {
    let declared = json!([
        {"name": "ci", "url": "https://h/new", "previously": ["https://h/old", "https://h/older"]},
    ]);
    let compare_live = |live: &[Json]| {
        let findings = compare_hooks(&declared, Unlisted::Report, &json!(live), None);
        let steps = findings.steps.iter().map(|step| format!("{:?}", step.action));
        let unlisted = findings.notes.iter().filter(|note| note.reason == Reason::Unlisted);
        (steps.collect::<Vec<_>>(), unlisted.count())
    };
    assert_eq!(compare_live(&[hook(7, "https://h/old")]), (vec!["Update".to_owned()], 0));
    assert_eq!(compare_live(&[hook(7, "https://h/older")]), (vec!["Update".to_owned()], 0));
    assert_eq!(compare_live(&[hook(7, "https://h/new"), hook(8, "https://h/old")]), (vec![], 1));
    assert_eq!(compare_live(&[hook(7, "https://h/other")]), (vec!["Create".to_owned()], 1));
}

/// Compares one declared hook with a live one (or none) for this release. Returns a line for each question,
/// problem and step. The line of a step lists its changed and its sent fields.
fn compare_in_release(
    declared: &Json,
    live: Option<Json>,
    release: DetectedRelease,
) -> Vec<String> {
    let project = shop(&json!({"hooks": [declared]}), Unlisted::Report);
    let declared = project.section("hooks").unwrap();
    let live = live_entries(declared, &Json::from_iter(live), FieldSelection::All);
    let world = DiffFixture { release, ..DiffFixture::default() };
    let findings = compare_section(declared, &live, world.context()).unwrap();
    let questions = findings.questions.iter().map(|question| format!("{question:?}?"));
    let problems = findings.problems.iter().map(|problem| problem.message.clone());
    let steps = findings.steps.iter().map(|step| {
        let changed: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
        let sent = step.planned_calls[0].request.body_fields().cloned().unwrap_or_default();
        let sent: Vec<_> = sent.keys().cloned().collect();
        format!("{:?} {}: {}", step.action, changed.join(" "), sent.join(" "))
    });
    questions.chain(problems).chain(steps).collect()
}

fn known_release(text: &str) -> DetectedRelease {
    DetectedRelease::Known(text.parse().unwrap())
}

#[test]
fn the_release_matters_only_for_fields_that_differ() {
    let url = "https://h/x";
    let declared = json!({"url": url, "description": "x"});
    let live = |description: Option<&str>| {
        let mut live = hook(7, url);
        live.as_object_mut()
            .unwrap()
            .extend(description.map(|it| ("description".into(), it.into())));
        Some(live)
    };
    for service_release in [
        DetectedRelease::NotRequested,
        DetectedRelease::Hidden,
        known_release("15.8"),
        known_release("17.1"),
    ] {
        assert_eq!(
            compare_in_release(&declared, live(Some("x")), service_release),
            [""; 0],
            "{service_release:?}"
        );
    }
    let too_old = "`description` needs release 17.1 or later; the service has release 15.8";
    for (live, step) in [
        (None, "Create description url: description url"),
        (live(None), "Update description: description url"),
        (live(Some("y")), "Update description: description url"),
    ] {
        for (known_release, expected) in [
            (DetectedRelease::NotRequested, "Release?"),
            (DetectedRelease::Hidden, step),
            (known_release("15.8"), too_old),
            (known_release("17.1"), step),
        ] {
            let lines = compare_in_release(&declared, live.clone(), known_release);
            assert_eq!(
                lines.first().map(String::as_str),
                Some(expected),
                "{known_release:?} {live:?}"
            );
            assert!(
                known_release == DetectedRelease::NotRequested || lines.len() == 1,
                "{lines:?}"
            );
        }
    }
}

#[test]
fn the_name_of_a_hook_is_compared_if_the_release_stores_it() {
    let declared = json!({"name": "ci", "url": "https://h/new"});
    let named_hook = |url: &str, name: Json| {
        let mut live = hook(7, url);
        live["name"] = name;
        live
    };
    // The name of a hook takes precedence over its URL.
    assert_eq!(
        compare_in_release(
            &declared,
            Some(named_hook("https://h/old", "ci".into())),
            known_release("17.1")
        ),
        ["Update url: name url"]
    );
    assert_eq!(
        compare_in_release(
            &declared,
            Some(named_hook("https://h/new", "ci".into())),
            DetectedRelease::NotRequested
        ),
        [""; 0]
    );
    for old in [json!(null), json!("other")] {
        assert_eq!(
            compare_in_release(
                &declared,
                Some(named_hook("https://h/new", old)),
                known_release("17.1")
            ),
            ["Update name: name url"]
        );
    }
    // If the service lacks the field, only undrift uses it.
    for known_release in [known_release("15.8"), DetectedRelease::Hidden] {
        assert_eq!(
            compare_in_release(&declared, Some(hook(7, "https://h/new")), known_release),
            [""; 0]
        );
        assert_eq!(compare_in_release(&declared, None, known_release), ["Create url: url"]);
    }
    assert_eq!(
        compare_in_release(
            &declared,
            Some(hook(7, "https://h/new")),
            DetectedRelease::NotRequested
        ),
        ["Release?"]
    );
    assert_eq!(
        compare_in_release(&declared, None, known_release("18.0")),
        ["Create name url: name url"]
    );
}

#[test]
fn hooks_with_equal_names_are_matched_by_url() {
    let mut live = [hook(7, "https://h/a"), hook(8, "https://h/b"), hook(9, "https://h/c")];
    for hook in &mut live[..2] {
        hook["name"] = "ci".into();
    }
    let declared = json!([
        {"name": "chat", "url": "https://h/c"},
        {"name": "ci", "url": "https://h/b", "push_events": false},
    ]);
    let findings = compare_hooks(&declared, Unlisted::Report, &live.into_iter().collect(), None);
    let step = &findings.steps[0];
    assert_eq!((step.live_id(), findings.steps.len(), findings.notes.len()), (Some(8), 1, 1));
}

#[test]
fn a_live_hook_matches_only_one_declared_hook() {
    let declared = json!([
        {"name": "a", "url": "https://h/x"},
        {"name": "b", "url": "https://h/y", "previously": ["https://h/x"]},
    ]);
    let findings =
        compare_hooks(&declared, Unlisted::Report, &json!([hook(7, "https://h/x")]), None);
    let incomplete: Vec<_> =
        findings.incomplete.iter().map(|incomplete| incomplete.address.to_string()).collect();
    assert_eq!((findings.steps.len(), incomplete), (0, vec!["acme/shop#hooks/b".to_owned()]));
}

/// The number of computed identities.
static IDENTIFY_CALLS: AtomicUsize = AtomicUsize::new(0);

/// The default rules, which also count computed identities.
struct CountingRules;

impl KindRules for CountingRules {
    fn identify(&self, section: Section, field: FieldLookup<'_>) -> Identity {
        IDENTIFY_CALLS.fetch_add(1, Ordering::Relaxed);
        forms::identify(section, field)
    }
}

#[test]
fn matching_takes_linear_time() {
    const ENTRY_COUNT: usize = 1_000;
    let kind = Kind {
        rules_in_rust: Some(&CountingRules),
        ..testing::project_section("variables").kind.clone()
    };
    let section = Box::leak(Box::new(kind)).find_section(Scope::Project).unwrap();
    let variables = |from: usize| -> Json {
        (from..from + ENTRY_COUNT)
            .map(|i| json!({"key": format!("V{i}"), "environment_scope": "*", "value": "x"}))
            .collect()
    };
    let declared = declared_section(section, &variables(ENTRY_COUNT / 2), Unlisted::Report);
    let live = live_entries(&declared, &variables(0), FieldSelection::Only(&[].into()));
    IDENTIFY_CALLS.store(0, Ordering::Relaxed);
    let findings = compare_section(&declared, &live, DiffFixture::default().context()).unwrap();
    assert_eq!((findings.steps.len(), findings.notes.len()), (ENTRY_COUNT / 2, ENTRY_COUNT / 2));
    let call_count = IDENTIFY_CALLS.load(Ordering::Relaxed);
    assert!(
        call_count <= 4 * ENTRY_COUNT,
        "{call_count} times for {ENTRY_COUNT} entries on each side"
    );
}

/// The service accepts a field of a tier that it lacks, and then shows it switched off.
#[test]
fn a_field_that_an_unlicensed_service_ignores_is_a_note() {
    let branch = json!([{"name": "main", "code_owner_approval_required": true}]);
    let project = shop(&json!({"protected_branches": branch}), Unlisted::Report);
    let declared = project.section("protected_branches").unwrap();
    let live = json!([{"id": 1, "name": "main", "code_owner_approval_required": false}]);
    let live = live_entries(declared, &live, FieldSelection::All);
    let mut world = DiffFixture::default();
    for (is_unlicensed, steps, notes) in [(false, 1, vec![]), (true, 0, vec![Reason::NotReturned])]
    {
        world.facts.is_unlicensed = is_unlicensed;
        let findings = compare_section(declared, &live, world.context()).unwrap();
        let reasons: Vec<_> = findings.notes.into_iter().map(|note| note.reason).collect();
        assert_eq!((findings.steps.len(), reasons), (steps, notes));
    }
}

#[test]
fn protected_members_are_not_removed() {
    let project = shop(&json!({"members": []}), Unlisted::Delete);
    let declared = project.section("members").unwrap();
    let live = live_entries(
        declared,
        &json!([
            {"id": CALLER_ID, "username": "root", "access_level": 50},
            {"id": 9, "username": "owner", "access_level": 50},
            {"id": 10, "username": "project_1_bot", "access_level": 40},
            {"id": 11, "username": "bob", "access_level": 30},
        ]),
        FieldSelection::All,
    );
    let mut world = DiffFixture::default();
    world.facts.personal_owner_id = Some(9);
    let findings = compare_section(declared, &live, world.context()).unwrap();
    let steps: Vec<_> = findings.steps.iter().map(|step| step.address.to_string()).collect();
    assert_eq!(steps, ["acme/shop#members/bob"]);
    let protection_reasons = findings.notes.iter().map(|note| match &note.reason {
        Reason::Protected { why } => why.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(
        protection_reasons.collect::<Vec<_>>(),
        ["the token's own access", "the owner of the personal namespace", "bot user"]
    );
}

/// The differences between the `declared` and the `live` section, one line per step, and the codes
/// of the problems.
fn diff_lines(section_name: &str, declared: &Json, live: &Json) -> Vec<String> {
    let mut names = NameIndex::default();
    names.insert(crate::field::NamedObject::User, "alice", Some(3));
    names.insert(crate::field::NamedObject::Group, "acme/kids", Some(5));
    let world = DiffFixture { names, ..DiffFixture::default() };
    let declared =
        declared_section(testing::project_section(section_name), declared, Unlisted::Delete);
    let live = live_entries(&declared, live, FieldSelection::Only(&[].into()));
    let findings = compare_section(&declared, &live, world.context()).unwrap();
    let line = |step: &Step| {
        let fields: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
        let calls: Vec<_> = step.calls.iter().map(|call| call.method).collect();
        let entry = step.address.entry.as_deref().unwrap_or("-");
        let replaces = if step.replaces { " replaces" } else { "" };
        format!("{:?} {entry}: {} by {}{replaces}", step.action, fields.join(" "), calls.join(" "))
    };
    let codes = findings.problems.iter().map(|problem| problem.code.to_owned());
    findings.steps.iter().map(line).chain(codes).collect()
}

#[test]
fn kinds_of_every_shape_are_compared() {
    let no_lines = [""; 0];
    // A field with rows: their order and the case of names do not matter.
    let live_branch = json!([{"id": 1, "name": "main", "code_owner_approval_required": false,
        "push_access_levels": [{"id": 1, "access_level": 40, "user_id": 3}]}]);
    let branch = |row: Json| json!([{"name": "main", "allowed_to_push": [row]}]);
    let compare_row = |row| diff_lines("protected_branches", &branch(row), &live_branch);
    assert_eq!(compare_row(json!({"user": "ALICE"})), no_lines);
    let update = "Update main: allowed_to_push by PATCH";
    assert_eq!(compare_row(json!({"group": "acme/kids"})), [update]);
    assert_eq!(compare_row(json!({"user": "nobody"})), ["unknown-user"]);

    // Another scope means another variable.
    let variable = |scope: &str| json!({"key": "A", "environment_scope": scope, "value": "x", "variable_type": "env_var"});
    let (everywhere, prod) = (json!([variable("*")]), json!([variable("prod")]));
    assert_eq!(diff_lines("variables", &everywhere, &everywhere), no_lines);
    assert_eq!(
        diff_lines("variables", &everywhere, &prod),
        [
            "Create A@*: environment_scope key value variable_type by POST",
            "Delete A@prod: value variable_type protected masked raw by DELETE",
        ]
    );
    let without_value = json!([{"key": "A", "environment_scope": "*"}]);
    assert_eq!(diff_lines("variables", &without_value, &json!([])), ["missing-field"]);
    assert_eq!(diff_lines("variables", &without_value, &everywhere), no_lines);

    // A create must also send `cron_timezone`, which is not declared.
    let period = json!([{"freeze_start": "0 23 * * 5", "freeze_end": "0 8 * * 1"}]);
    let create = "Create 0 23 * * 5@0 8 * * 1: cron_timezone freeze_end freeze_start by POST";
    assert_eq!(diff_lines("freeze_periods", &period, &json!([])), [create]);

    // A section without an edit operation.
    let share = |level: &str| json!([{"group": "acme/kids", "group_access": level}]);
    let live_share = json!([{"group_id": 5, "group_full_path": "Acme/Kids", "group_access_level": 10, "expires_at": null}]);
    assert_eq!(diff_lines("shares", &share("guest"), &live_share), no_lines);
    let replacement = "Update acme/kids: group_access by DELETE POST POST replaces";
    assert_eq!(diff_lines("shares", &share("reporter"), &live_share), [replacement]);
    let removal = "Delete acme/kids: group_access expires_at by DELETE";
    assert_eq!(diff_lines("shares", &json!([]), &live_share), [removal]);

    // A section with at most one object.
    let (large, small) = (json!({"max_file_size": 9}), json!({"max_file_size": 5}));
    let no_rule = json!(null);
    let compare_rule = |declared: &Json, live: &Json| diff_lines("push_rule", declared, live);
    assert_eq!(compare_rule(&large, &no_rule), ["Create -: max_file_size by POST"]);
    assert_eq!(compare_rule(&large, &small), ["Update -: max_file_size by PUT"]);
    assert_eq!(compare_rule(&large, &large), no_lines);
    let absent = json!({"state": "absent"});
    assert_eq!(compare_rule(&absent, &small), ["Delete -:  by DELETE"]);
    assert_eq!(compare_rule(&absent, &no_rule), no_lines);
}

#[test]
fn a_change_that_would_reset_an_unknown_field_is_not_planned() {
    let live_variable = json!([{"key": "A", "environment_scope": "*", "value": "old"}]);
    let world = DiffFixture::default();
    let compare_declared = |declared: Json| {
        let declared = declared_section(
            testing::project_section("variables"),
            &json!([declared]),
            Unlisted::Delete,
        );
        compare_section(
            &declared,
            &live_entries(&declared, &live_variable, FieldSelection::Only(&[].into())),
            world.context(),
        )
        .unwrap()
    };
    let variable = |value: &str| json!({"key": "A", "environment_scope": "*", "value": value});
    let findings = compare_declared(variable("new"));
    assert!(findings.steps.is_empty() && findings.problems.is_empty());
    let [incomplete] = &findings.incomplete[..] else { panic!("{findings:?}") };
    assert_eq!(incomplete.address.to_string(), "acme/shop#variables/A@*");
    assert!(incomplete.reason.help.is_some());
    let mut complete = variable("new");
    complete["variable_type"] = "file".into();
    assert_eq!(compare_declared(complete).steps.len(), 1);
    assert!(
        compare_declared(variable("old")).incomplete.is_empty(),
        "nothing changes, so nothing is missing"
    );
}

#[test]
fn a_step_detects_changes_by_others_in_fields_that_it_does_not_change() {
    let section = catalogue::find_section(Scope::Group, "variables").unwrap();
    let raw = |value: &str, protected: bool| json!({"key": "A", "environment_scope": "prod", "value": value, "protected": protected});
    let live = |raw: Json| testing::live_entry(section, raw);
    let change = FieldChange::new("value", Shown::Hidden, Shown::Value("new".into()), None);
    let address = Address::container("acme".into()).with_section("variables").with_entry("A@prod");
    let origin = shop(&json!({}), Unlisted::Report).origin;
    let step = Step::new(Scope::Group, address, Action::Update, origin, vec![change], Vec::new());
    let step = step.with_live(&live(raw("old", true)));
    assert!(step.leaves_rest_unchanged(section, &live(raw("new", true))));
    assert!(!step.leaves_rest_unchanged(section, &live(raw("new", false))));
    let response = json!({"key": "A", "environment_scope": "prod", "value": "new"});
    assert!(
        step.leaves_rest_unchanged(section, &live(response)),
        "a field that the response lacks does not count as changed"
    );
}
