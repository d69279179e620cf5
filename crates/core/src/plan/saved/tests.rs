//! Tests of saved plans: changes that make them stale, and the content of the file.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::{
    desired::{
        CreationPolicy, Unlisted,
        testing::{fields, shop},
    },
    kind::{FieldSelection, Id, LiveNamespace, NamespaceOwner, Target},
    live::{
        LiveContainer, Presence,
        testing::{live_container, live_container_with, target},
    },
    plan::{ApprovalPolicy, Extent, tests::settings},
    secret::{Secret, Secrets},
};

const SECRET: &str = "a-secret-of-the-environment";
const NOW: &str = "2030-01-15T12:00:00Z";

fn declared_sections() -> Json {
    json!({
        "settings": {"description": "new", "merge_method": "ff", "topics": ["a"]},
        "variables": [
            {"key": "MODE", "value": "fast"},
            {"key": "TOKEN", "value": {"env": "A"}, "protected": true},
            {"key": "MASKED", "value": "declared-and-masked", "masked": true},
        ],
        "hooks": [{"url": "https://user:in-the-url@ci.example.org/x", "push_events": true}],
        "protected_tags": [{"name": "v*", "allowed_to_create": [{"access_level": "maintainer"}]}],
    })
}

fn live_sections() -> Json {
    json!({
        "settings": {"description": "old", "merge_method": "ff", "topics": ["b"], "lfs_enabled": true},
        "variables": [
            {"key": "MODE", "value": "live-and-open", "environment_scope": "*", "variable_type": "env_var", "protected": false, "masked": false, "raw": false},
            {"key": "MASKED", "value": "live-and-masked", "environment_scope": "*", "variable_type": "env_var", "protected": true, "masked": true, "raw": false},
            {"key": "OLD", "value": "live-and-old", "environment_scope": "*", "variable_type": "env_var", "protected": false, "masked": false, "raw": false},
        ],
        "hooks": [{"id": 4, "url": "https://user:in-the-url@ci.example.org/x", "push_events": false, "tag_push_events": true}],
        "protected_tags": [{"name": "v*", "create_access_levels": [{"id": 1, "access_level": 30}]}],
    })
}

/// A plan of `container`, made now.
fn plan_now(container: &Container, live: LiveContainer, secrets: &Secrets) -> Plan {
    let secrets = Arc::new(secrets.clone());
    let settings = crate::plan::PlanSettings { secrets, ..settings(&[]) };
    let mut plan = Plan::default().with_container_plans();
    plan.add(container, super::super::plan_container(container, &live, &settings), live);
    plan.finish(&Extent::default())
}

/// The inputs of a plan: declarations, live state, secrets, and the key.
struct PlanInputs {
    container: Container,
    live: LiveContainer,
    secrets: Secrets,
    key: Option<DigestKey>,
}

impl PlanInputs {
    fn new(declared: &Json, live: &Json) -> Self {
        let container = shop(declared, Unlisted::Delete);
        let live =
            live_container_with(&container, live, FieldSelection::Only(&["lfs_enabled"].into()));
        Self { container, live, secrets: (*settings(&[("A", SECRET)]).secrets).clone(), key: None }
    }

    fn with_key(self) -> Self {
        Self { key: Some(DigestKey::new(&Secret::new("the key"))), ..self }
    }

    fn plan(&self) -> Plan {
        plan_now(&self.container, self.live.clone(), &self.secrets)
    }

    fn recorder(&self) -> PlanRecorder<'_> {
        PlanRecorder { secrets: &self.secrets, key: self.key.as_ref() }
    }

    fn save(&self) -> SealedPlan {
        let source = SaveContext {
            made_at: NOW.parse().unwrap(),
            target: "https://x.example".into(),
            caller: "alice".into(),
            is_sandbox: false,
            manifests: Some("manifests".into()),
            selectors: [vec!["acme/**".into()], Vec::new(), Vec::new()],
        };
        let containers = std::slice::from_ref(&self.container);
        let saved = SavedPlan::from_plan(&self.plan(), containers, source, self.recorder());
        saved.seal(self.key.as_ref())
    }

    /// The reasons why `sealed` is stale for a new plan from these inputs.
    fn stale_reasons(&self, sealed: &SealedPlan) -> Vec<String> {
        let containers = std::slice::from_ref(&self.container);
        let comparison = sealed.plan.compare(&sealed.id, &self.plan(), containers, self.recorder());
        let describe = |stale: &StaleObject| format!("{}: {}", stale.address, stale.reason);
        comparison.stale.iter().map(describe).collect()
    }
}

fn default_inputs() -> PlanInputs {
    PlanInputs::new(&declared_sections(), &live_sections())
}

#[test]
fn a_written_file_reads_back_and_matches_the_same_plan() {
    for inputs in [default_inputs(), default_inputs().with_key()] {
        let sealed = inputs.save();
        let text = sealed.to_text();
        assert_eq!(SealedPlan::read(text.as_bytes()).unwrap(), sealed);
        assert_eq!(inputs.save().to_text(), text);
        assert_eq!(inputs.stale_reasons(&sealed), [""; 0]);
        assert!(sealed.plan.steps.len() > 5, "{text}");
        assert!(sealed.plan.hides_values());
    }
}

#[test]
fn a_file_holds_no_secret_and_nothing_that_identifies_one() {
    let secrets = [
        SECRET,
        "live-and-open",
        "live-and-masked",
        "live-and-old",
        "declared-and-masked",
        "in-the-url",
    ];
    for inputs in [default_inputs(), default_inputs().with_key()] {
        let text = inputs.save().to_text();
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} in {text}");
            // The digest of a correctly guessed secret must not be in the file either.
            for guess in [json!(secret), json!({"value": secret})] {
                assert!(!text.contains(&digest::json_digest(&guess)), "the digest of {secret}");
            }
        }
    }
    // Other secrets give the same file, unless there is a key.
    let saved_text = |secret: &str, is_keyed: bool| {
        let replace_secrets = |json: Json| {
            let text = json.to_string();
            let text = secrets[1..5].iter().fold(text, |text, old| text.replace(old, secret));
            serde_json::from_str(&text).unwrap()
        };
        let inputs = PlanInputs::new(
            &replace_secrets(declared_sections()),
            &replace_secrets(live_sections()),
        );
        if is_keyed { inputs.with_key() } else { inputs }.save().to_text()
    };
    assert_eq!(saved_text("one-value-for-all", false), saved_text("another-value-here", false));
    assert_ne!(saved_text("one-value-for-all", true), saved_text("another-value-here", true));
}

/// Parts of a text that look like a credential are masked, but the key detects changes of these
/// parts.
#[test]
fn masked_parts_of_open_texts_are_covered_by_the_key() {
    let address = |secret: &str| format!("https://h.example.org/x?token={secret}");
    let new_inputs = |[sent_text, live_text, repeated_text]: [&str; 3]| {
        let mut declared = json!({"settings": {"description": address(sent_text)}});
        declared["hooks"] = json!([{"url": "https://h.example.org/", "push_events": true}]);
        let mut live = json!({"settings": {"description": address(live_text)}});
        live["hooks"] = json!([{
            "id": 4, "url": "https://h.example.org/", "push_events": false,
            "push_events_branch_filter": address(repeated_text),
        }]);
        PlanInputs::new(&declared, &live).with_key()
    };
    let saved = new_inputs(["sent-AAAA", "found-AAAA", "repeated-AAAA"]).save();
    for now in [
        ["sent-BBBB", "found-AAAA", "repeated-AAAA"],
        ["sent-AAAA", "found-BBBB", "repeated-AAAA"],
        ["sent-AAAA", "found-AAAA", "repeated-BBBB"],
    ] {
        assert_ne!(new_inputs(now).stale_reasons(&saved), [] as [&str; 0], "{now:?}");
    }
    assert!(!saved.to_text().contains("-AAAA"));
}

#[test]
fn secrets_of_a_creation_are_not_in_the_file() {
    let sections = json!({"settings": {"import_url": "https://me:in-the-url@git.example.org/x"}});
    let mut container = shop(&sections, Unlisted::Report);
    container.creation_policy =
        CreationPolicy::Allowed(fields(&json!({"initialize_with_readme": true})));
    let namespace = Some(LiveNamespace { id: Id::Known(3), owner: NamespaceOwner::Group });
    let target = Target { id: None, namespace, ..target(&container) };
    let live = LiveContainer {
        presence: Presence::Missing(target),
        ..live_container(&container, &json!({}))
    };
    let inputs = PlanInputs { container, live, ..default_inputs() };
    let text = inputs.save().to_text();
    assert!(text.contains("import_url") && !text.contains("in-the-url"), "{text}");
}

#[test]
fn every_changed_byte_is_detected() {
    let small = |declared: &Json| json!({"variables": declared["variables"]});
    let inputs = PlanInputs::new(&small(&declared_sections()), &small(&live_sections())).with_key();
    let original = inputs.save();
    let text = original.to_text();
    for byte_index in 0..text.len() {
        assert!(SealedPlan::read(&text.as_bytes()[..byte_index]).is_err(), "cut at {byte_index}");
        let mut bytes = text.clone().into_bytes();
        bytes[byte_index] ^= 1 << (byte_index % 8);
        let Ok(sealed) = SealedPlan::read(&bytes) else { continue };
        // The digest does not cover the seal.
        assert_eq!((&sealed.plan, &sealed.id), (&original.plan, &original.id), "{byte_index}");
        assert!(sealed.check_seal(inputs.key.as_ref()).is_err(), "{byte_index}");
    }
    for other in [format!(" {text}"), format!("{text} "), text.replace(':', ": "), text.repeat(2)] {
        assert!(SealedPlan::read(other.as_bytes()).is_err(), "{other}");
    }
}

/// Adds the path of every value in `json` to `paths`.
fn collect_leaves(json: &Json, path: &str, paths: &mut Vec<String>) {
    match json {
        Json::Object(object) if !object.contains_key("env") => {
            object
                .iter()
                .for_each(|(name, json)| collect_leaves(json, &format!("{path}/{name}"), paths));
        }
        Json::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(i, json)| collect_leaves(json, &format!("{path}/{i}"), paths));
        }
        _ => paths.push(path.to_owned()),
    }
}

/// Another value of the same type.
fn changed_value(json: &Json) -> Json {
    match json {
        Json::Bool(flag) => json!(!flag),
        Json::String(text) if text == "ff" => "merge".into(),
        Json::String(text) if text == "maintainer" => "developer".into(),
        Json::String(text) if text.starts_with("https://") => {
            text.replace("user:in-the-url", "user:other-in-it").into()
        }
        Json::String(text) => format!("{text}X").into(),
        Json::Object(_) => json!({"env": "B"}),
        Json::Number(_) => json!(0),
        other => other.clone(),
    }
}

#[test]
fn an_edit_of_any_declared_value_makes_the_plan_stale() {
    let mut pointers = Vec::new();
    collect_leaves(&declared_sections(), "", &mut pointers);
    assert_eq!(pointers.len(), 15, "{pointers:?}");
    // Hidden values are compared only with the key.
    let hidden_paths = ["/variables/2/value"];
    for (is_keyed, pointer) in pointers.iter().flat_map(|path| [(false, path), (true, path)]) {
        let add_key = |inputs: PlanInputs| if is_keyed { inputs.with_key() } else { inputs };
        let mut edited = declared_sections();
        let value = edited.pointer_mut(pointer).unwrap();
        *value = changed_value(value);
        let stale_reasons = add_key(PlanInputs::new(&edited, &live_sections()))
            .stale_reasons(&add_key(default_inputs()).save());
        let is_seen = is_keyed || !hidden_paths.contains(&pointer.as_str());
        assert_eq!(
            !stale_reasons.is_empty(),
            is_seen,
            "{pointer} with a key: {is_keyed}: {stale_reasons:?}"
        );
    }
}

#[test]
fn a_change_of_any_planned_live_value_makes_the_plan_stale() {
    let mut pointers = Vec::new();
    collect_leaves(&live_sections(), "", &mut pointers);
    // These values do not matter: no call sends them, or they become the declared value.
    let unimportant = [
        "/settings/lfs_enabled",
        "/protected_tags/0/create_access_levels/0/id",
        "/hooks/0/push_events",
    ];
    let hidden = ["/variables/0/value", "/variables/1/value", "/variables/2/value"];
    for (is_keyed, pointer) in pointers.iter().flat_map(|path| [(false, path), (true, path)]) {
        let add_key = |inputs: PlanInputs| if is_keyed { inputs.with_key() } else { inputs };
        let mut changed_live = live_sections();
        let value = changed_live.pointer_mut(pointer).unwrap();
        *value = changed_value(value);
        let stale_reasons = add_key(PlanInputs::new(&declared_sections(), &changed_live))
            .stale_reasons(&add_key(default_inputs()).save());
        let is_seen = (is_keyed || !hidden.contains(&pointer.as_str()))
            && !unimportant.contains(&pointer.as_str());
        assert_eq!(
            !stale_reasons.is_empty(),
            is_seen,
            "{pointer} with a key: {is_keyed}: {stale_reasons:?}"
        );
    }
}

#[test]
fn a_finished_step_counts_as_already_done() {
    let sealed = default_inputs().save();
    let mut changed_live = live_sections();
    changed_live["settings"]["description"] = "new".into();
    changed_live["settings"]["topics"] = json!(["a"]);
    changed_live["hooks"][0]["push_events"] = true.into();
    let inputs = PlanInputs::new(&declared_sections(), &changed_live);
    let comparison = sealed.plan.compare(
        &sealed.id,
        &inputs.plan(),
        std::slice::from_ref(&inputs.container),
        inputs.recorder(),
    );
    let already: Vec<_> = comparison.already.iter().map(ToString::to_string).collect();
    assert_eq!((already.len(), comparison.stale.len()), (2, 0), "{comparison:?}");
    // A part of a step may be done too.
    changed_live["settings"]["topics"] = json!(["b"]);
    assert_eq!(
        PlanInputs::new(&declared_sections(), &changed_live).stale_reasons(&sealed),
        [""; 0]
    );
    // Without a read, no step counts as done.
    let unread_plan = Plan::default().finish(&Extent::default());
    let unread_comparison = sealed.plan.compare(
        &sealed.id,
        &unread_plan,
        std::slice::from_ref(&inputs.container),
        inputs.recorder(),
    );
    assert!(unread_comparison.already.is_empty() && !unread_comparison.stale.is_empty());
}

#[test]
fn a_saved_plan_is_valid_for_one_service_and_one_week() {
    let saved = default_inputs().save().plan;
    let hours = |n| NOW.parse::<Timestamp>().unwrap() + SignedDuration::from_hours(n);
    for (target, age, is_valid) in [
        ("https://x.example", 0, true),
        ("https://x.example", 7 * 24, true),
        ("https://x.example", 7 * 24 + 1, false),
        ("https://x.example", -1, true),
        ("https://x.example", -2, false),
        ("https://y.example", 0, false),
        ("sandbox", 0, false),
    ] {
        assert_eq!(saved.check_target(target, hours(age)).is_ok(), is_valid, "{target} {age}");
    }
    let damaged = SavedPlan { created_at: "yesterday".into(), ..saved };
    assert!(damaged.check_target("https://x.example", hours(0)).is_err());
}

#[test]
fn a_seal_is_valid_only_with_its_key() {
    let (first_key, second_key) =
        (DigestKey::new(&Secret::new("one")), DigestKey::new(&Secret::new("two")));
    for (save_key, read_key, is_valid) in [
        (None, None, true),
        (Some(&first_key), Some(&first_key), true),
        (Some(&first_key), Some(&second_key), false),
        (Some(&first_key), None, false),
        (None, Some(&first_key), false),
    ] {
        let sealed = default_inputs().save().plan.seal(save_key);
        assert_eq!(sealed.check_seal(read_key).is_ok(), is_valid);
    }
}

#[test]
fn unknown_sections_operations_and_formats_are_refused() {
    type Edit = fn(&mut Json);
    let edits: [(Edit, &str); 7] = [
        (|json| json["steps"][0]["section"] = "unheard".into(), "a section that undrift does not"),
        (|json| json["steps"][0]["calls"][0]["operation"] = "x".into(), "an operation that"),
        (|json| json["steps"][0]["calls"][0]["operation"] = "project-get".into(), "an operation"),
        (|json| json["steps"][0]["path"] = "acme/other".into(), "was edited"),
        (|json| json["format_version"] = 1.into(), "has format 1"),
        (
            |json| {
                let step = json["steps"][0].clone();
                json["steps"].as_array_mut().unwrap().push(step);
            },
            "was edited",
        ),
        (
            |json| {
                let container = json["containers"][0].clone();
                json["containers"].as_array_mut().unwrap().push(container);
            },
            "was edited",
        ),
    ];
    for (edit, expected) in edits {
        let mut json = json!(default_inputs().save());
        edit(&mut json);
        let result = SealedPlan::read(resealed(json).as_bytes());
        let unusable = result.and_then(|sealed| sealed.plan.check()).unwrap_err();
        assert!(unusable.to_string().contains(expected), "{unusable:?}");
    }
}

/// The text of a file with a correct id for any content.
fn resealed(mut json: Json) -> String {
    let object = json.as_object_mut().unwrap();
    object.remove("seal");
    object.remove("id");
    let id = digest::json_digest(&json);
    json["id"] = id.into();
    file_text(json)
}

/// An edit of JSON: the position to change, the kind of edit, and the position of the new value.
fn edit() -> impl Strategy<Value = (prop::sample::Index, u8, prop::sample::Index)> {
    (any::<prop::sample::Index>(), 0..4_u8, any::<prop::sample::Index>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_forged_file_can_only_leave_steps_out(
        edits in prop::collection::vec(edit(), 1..4)
    ) {
        let side = default_inputs();
        let mut json = json!(side.save());
        for (at, how, from) in edits {
            let mut all = Vec::new();
            collect_leaves(&json, "", &mut all);
            if all.is_empty() {
                continue;
            }
            let (at, from) = (at.get(&all).clone(), json.pointer(from.get(&all).as_str()));
            let from = from.unwrap().clone();
            let Some((parent, name)) = at.rsplit_once('/') else { return Ok(()) };
            let whole = json.pointer(parent).unwrap().clone();
            match (how, json.pointer_mut(parent).unwrap()) {
                (0, Json::Array(items)) => drop(items.pop()),
                (0, Json::Object(object)) => drop(object.remove(name)),
                (1, Json::Array(items)) => items.push(whole),
                (2, parent) => *parent = from,
                (_, parent) => match parent.pointer_mut(&format!("/{name}")) {
                    Some(leaf) => *leaf = from,
                    None => continue,
                },
            }
        }
        prop_assume!(json.is_object());
        let Ok(edited) = SealedPlan::read(resealed(json).as_bytes()) else { return Ok(()) };
        if edited.plan.check().is_err() {
            return Ok(());
        }
        let plan = side.plan();
        let containers = std::slice::from_ref(&side.container);
        let compared = edited.plan.compare(&edited.id, &plan, containers, side.recorder());
        let policy = ApprovalPolicy { comparison: Some(&compared), ..ApprovalPolicy::default() };
        let Ok((approved, _)) = plan.approve(policy) else { return Ok(()) };
        for step in approved.steps() {
            // Both the file and the new plan contain all steps that run.
            let saved = edited.plan.shown_steps();
            let saved = saved.iter().find(|saved| saved.address == step.address);
            let has = |field: &str| {
                saved.is_some_and(|saved| saved.changes.iter().any(|other| *other.field == *field))
            };
            let is_saved = saved.is_some_and(|saved| saved.action == step.action)
                && step.changes.iter().all(|change| has(&change.field));
            prop_assert!(is_saved);
            let is_planned = plan.steps.iter().any(|own| std::ptr::eq(own, step));
            prop_assert!(is_planned);
        }
    }
}

#[test]
fn a_stale_container_is_skipped_and_stops_all_or_nothing() {
    let sealed = default_inputs().save();
    let mut changed_live = live_sections();
    changed_live["settings"]["description"] = "mine".into();
    for (live, runs) in [(live_sections(), true), (changed_live, false)] {
        let inputs = PlanInputs::new(&declared_sections(), &live);
        let plan = inputs.plan();
        let containers = std::slice::from_ref(&inputs.container);
        let comparison = sealed.plan.compare(&sealed.id, &plan, containers, inputs.recorder());
        let approve = |all_or_nothing| {
            let policy = ApprovalPolicy { comparison: Some(&comparison), all_or_nothing };
            plan.approve(policy).map(|(approved, _)| approved.steps().count() > 0)
        };
        // The guard for removals may refuse the plan.
        if plan.refusals.is_empty() {
            assert_eq!(approve(false), Ok(runs));
            assert_eq!(approve(true).is_ok(), runs);
        }
    }
}

#[test]
fn the_digest_covers_every_part_of_a_declaration() {
    // Declarations that differ in any way have different digests.
    let declared_digest = |declared: &Json, tweak: &dyn Fn(&mut Container)| {
        let mut container = shop(declared, Unlisted::Report);
        tweak(&mut container);
        default_inputs().recorder().record_declaration(&container).declared
    };
    let tweaks: [&dyn Fn(&mut Container); 7] = [
        &|_| (),
        &|c| c.is_watched = true,
        &|c| c.creation_policy = CreationPolicy::Allowed(fields(&json!({}))),
        &|c| {
            c.creation_policy =
                CreationPolicy::Allowed(fields(&json!({"initialize_with_readme": true})));
        },
        &|c| c.sections[0].unlisted.value = Unlisted::Delete,
        &|c| c.sections[0].unmanaged_globs = vec![crate::address::Glob::for_names("A*").unwrap()],
        &|c| c.lifecycle.former_paths = vec![crate::desired::testing::former_path("acme/old")],
    ];
    let digests: BTreeSet<_> =
        tweaks.iter().map(|tweak| declared_digest(&declared_sections(), tweak)).collect();
    assert_eq!(digests.len(), tweaks.len());
    let absent = json!({"variables": [{"key": "MODE", "value": "fast", "state": "absent"}]});
    let present = json!({"variables": [{"key": "MODE", "value": "fast"}]});
    assert_ne!(declared_digest(&absent, &|_| ()), declared_digest(&present, &|_| ()));
}

/// The file shows the same steps as the plan.
#[test]
fn a_saved_plan_shows_the_steps_of_the_plan() {
    let row = |id: u64, level: u8| json!({"id": id, "access_level": level});
    let declared = json!({
        "settings": {"merge_method": "ff"},
        "hooks": [{"url": "https://ci.example.org", "push_events": true}],
        "shares": [{"group": "acme/leads", "group_access": "maintainer"}],
        "protected_tags": [{"name": "v*", "allowed_to_create": [{"access_level": "maintainer"}]}],
    });
    let live = json!({
        "settings": {"merge_method": "merge"},
        "hooks": [],
        "shares": [{"group_id": 4, "group_full_path": "acme/leads", "group_access_level": 20, "expires_at": null}],
        "protected_tags": [{"name": "v*", "create_access_levels": [row(1, 30), {"id": 2, "access_level": 30, "group_id": 4}]}],
    });
    let inputs = PlanInputs::new(&declared, &live);
    let plan = inputs.plan();
    let describe = |step: &crate::diff::Step| {
        let fields: Vec<_> = step.changes.iter().map(|change| change.field.to_string()).collect();
        let calls: Vec<_> = step.calls.iter().map(|call| (call.operation, call.restores)).collect();
        (step.address.clone(), step.action, step.replaces, step.possible.is_some(), fields, calls)
    };
    let shown: Vec<_> = inputs.save().plan.shown_steps().iter().map(describe).collect();
    assert_eq!(shown, plan.steps.iter().map(describe).collect::<Vec<_>>());
    assert!(plan.steps.iter().any(|step| step.replaces), "{:?}", plan.steps);
    assert!(plan.steps.iter().any(|step| !step.replaces), "{:?}", plan.steps);
}

#[test]
fn a_file_beyond_the_limit_is_not_parsed() {
    let mut bytes = vec![b' '; usize::try_from(MAX_BYTES).unwrap()];
    for is_larger in [false, true, true] {
        let unusable = SealedPlan::read(&bytes).unwrap_err();
        assert_eq!(unusable.message.contains("larger than"), is_larger, "{}", bytes.len());
        bytes.push(b' ');
    }
}
