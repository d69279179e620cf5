//! Tests of reports for people, from plans made without a service.
//!
//! The snapshots in `snapshots/` contain the reports; `INSTA_UPDATE=always` updates them.

use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    address::Address,
    apply::{ApplyResult, Mismatch, MismatchReason, StepOutcome, StepResult},
    cause::{Cause, CauseParts},
    desired::{Container, Desired, Guard},
    diff::{Action, Findings, GuardRefusal, Incomplete, Label, Note, Problem, Reason},
    field::Scope,
    kind::{FieldSelection, Id, LiveNamespace, NamespaceOwner, Target},
    live::{
        Caller, LiveContainer, Presence,
        testing::{live_container_with, target},
    },
    manifest,
    origin::{Layer, Origin},
    plan::{self, Extent},
    release::{self, DetectedRelease},
    report::{ReportKind, TextStyle, html, markdown, marker::Marker, testing::ReportFixture},
    secret::Secrets,
    text::is_unsafe,
    value::Json,
};

const SHOP: &str = "kind: Project
path: acme/shop
settings:
  description: Where customers buy what we make, and where they come back when it does not fit
  visibility: private
  merge_method: ff
  topics: [rust, shop]
  container_expiration_policy: {enabled: true, cadence: 7d, name_regex: '^x'}
  issues_template: |
    ## What happened

    ## What should have happened

    ## How to see it
variables:
  - {key: TOKEN, environment_scope: prod/*, value: {env: PROD_TOKEN}, masked: true}
  - {key: MODE, value: fast}
hooks:
  - {name: ci, url: https://ci.example.org/x, push_events: true, token: {env: HOOK_TOKEN}}
archived: true
unlisted: {variables: delete}
";

fn shop_live() -> Json {
    json!({
        "settings": {
            "description": "A shop", "visibility": "internal", "merge_method": "ff", "topics": ["shop"],
            "container_expiration_policy": {"enabled": false, "cadence": "7d", "keep_n": 10, "name_regex": "^x"},
            "issues_template": "## What happened\n\n## How to see it\n",
        },
        "variables": [
            {"key": "MODE", "environment_scope": "*", "value": "slow", "variable_type": "env_var"},
            {"key": "OLD", "environment_scope": "*", "value": "canary", "variable_type": "env_var", "protected": true, "masked": false},
        ],
        "hooks": [
            {"id": 1, "url": "https://ci.example.org/x", "push_events": true},
            {"id": 2, "url": "https://user:canary@other.example.org/", "push_events": true},
        ],
        "archived": {"archived": false},
    })
}

fn load_desired(manifests: &str) -> Desired {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.yaml"), manifests).unwrap();
    std::fs::write(folder.path().join("a.png"), "").unwrap();
    let loaded = manifest::load(
        folder.path(),
        &manifest::LoadEnvironment {
            working_folder: folder.path().into(),
            today: jiff::civil::date(2030, 1, 1),
            ..manifest::LoadEnvironment::for_process()
        },
    );
    loaded.desired.unwrap_or_else(|| panic!("{}", loaded.diagnostics.render(TextStyle::default())))
}

/// The live state of `project`. All its entries were read.
fn make_live(project: &Container, sections: &Json) -> LiveContainer {
    live_container_with(project, sections, FieldSelection::All)
}

fn missing_live(project: &Container) -> LiveContainer {
    let namespace = Some(LiveNamespace { id: Id::Known(2), owner: NamespaceOwner::Group });
    let presence = Presence::Missing(Target { namespace, ..target(project) });
    LiveContainer {
        read_release: DetectedRelease::Known(release::REFERENCE),
        ..LiveContainer::with_presence(presence, Duration::ZERO)
    }
}

fn make_plan(desired: &Desired, live: impl Fn(&Container) -> LiveContainer) -> Plan {
    let settings = plan::PlanSettings::for_run(
        Caller { id: 7, username: "alice".into(), is_administrator: false },
        Arc::new(Secrets::default()),
        &Desired::default(),
    );
    let mut plan = Plan::default();
    for project in &desired.containers {
        let live = live(project);
        plan.add(project, plan::plan_container(project, &live, &settings), live);
    }
    plan.finish(&Extent::default())
}

/// Renders `plan` for a run that knows no secrets.
fn render_plan_text(plan: &Plan, run: &ReportedRun, kind: ReportKind, style: TextStyle) -> String {
    super::render_plan(Canvas::new(style, &Secrets::default()), plan, run, kind)
}

/// The text of a result without known secrets.
fn render_applied_text(applied: &ApplyResult, run: &ReportedRun, style: TextStyle) -> String {
    super::render_applied(Canvas::new(style, &Secrets::default()), applied, run)
}

pub(in crate::report) fn sample_run() -> ReportedRun {
    ReportedRun {
        target: "https://gitlab.example.org".into(),
        caller: "alice".into(),
        sandbox: false,
        rehearsed: Vec::new(),
        snapshot: None,
        token: None,
    }
}

pub(in crate::report) fn shop_plan() -> Plan {
    make_plan(&load_desired(SHOP), |project| make_live(project, &shop_live()))
}

fn shop_origin(line: u32) -> Origin {
    Origin::new("shop.yaml", line, 3, Layer::Project)
}

/// A plan without steps, with a problem, an unreadable section and a refusal.
pub(in crate::report) fn blocked_plan() -> Plan {
    let shop = Address::container("acme/shop".into());
    let findings = Findings {
        problems: vec![Problem {
            address: shop.clone(),
            code: "missing-project",
            message: "the project `acme/shop` does not exist".into(),
            help: Some(
                "write `create: true` to allow undrift to create it, or correct `path`".into(),
            ),
            origin: shop_origin(2),
        }],
        incomplete: vec![Incomplete {
            address: shop.with_section("variables"),
            reason: "variable-list: answered 403".into(),
            origin: None,
        }],
        refusals: vec![GuardRefusal::new(
            Guard::Removals,
            &shop.with_section("hooks"),
            "would remove 6 entries of 8; the limit is 5".into(),
            6,
            &shop_origin(17),
        )],
        ..Findings::default()
    };
    Plan::for_test(findings, 1)
}

#[test]
fn a_plan_in_a_pipe() {
    insta::assert_snapshot!(render_plan_text(
        &shop_plan(),
        &sample_run(),
        ReportKind::Plan,
        TextStyle::default()
    ));
}

#[test]
fn a_plan_on_a_terminal() {
    let style = |width| TextStyle { width: Some(width), ..TextStyle::default() };
    insta::assert_snapshot!(render_plan_text(
        &shop_plan(),
        &sample_run(),
        ReportKind::Plan,
        style(120)
    ));
    let narrow = render_plan_text(&shop_plan(), &sample_run(), ReportKind::Plan, style(60));
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    insta::assert_snapshot!(narrow);
}

#[test]
fn a_plan_in_colour() {
    let style = TextStyle { is_coloured: true, ..TextStyle::default() };
    let text = render_plan_text(&shop_plan(), &sample_run(), ReportKind::Plan, style);
    assert!(
        text.contains("\u{1b}[33m~ settings\u{1b}[0m")
            && text.contains("\u{1b}[31m- variables/OLD@*\u{1b}[0m"),
        "{text}"
    );
}

#[test]
fn a_new_project_on_the_sandbox() {
    let desired = load_desired(&SHOP.replace("settings:", "create: true\nsettings:"));
    let run = ReportedRun { sandbox: true, ..sample_run() };
    insta::assert_snapshot!(render_plan_text(
        &make_plan(&desired, missing_live),
        &run,
        ReportKind::Plan,
        TextStyle::default()
    ));
}

/// The identity of an entry is left out only if the address shows it.
#[test]
fn an_entry_with_another_name_is_shown_in_full() {
    let manifest = "kind: Project
path: acme/shop
badges: [{name: ci, link_url: 'https://ci.example.org/', image_url: 'https://ci.example.org/x.svg'}]
labels: [{name: bug, color: '#FF0000'}]
";
    let empty_live = |project: &Container| make_live(project, &json!({"badges": [], "labels": []}));
    let text = render_plan_text(
        &make_plan(&load_desired(manifest), empty_live),
        &sample_run(),
        ReportKind::Plan,
        TextStyle::default(),
    );
    assert!(text.contains("https://ci.example.org/x.svg"), "{text}");
    assert!(text.contains("color  \"#FF0000\"") && !text.contains("name  bug"), "{text}");
}

#[test]
fn no_report_shows_a_live_secret() {
    for kind in [ReportKind::Plan, ReportKind::Drift] {
        let text = render_plan_text(
            &shop_plan(),
            &sample_run(),
            kind,
            TextStyle { is_full: true, ..TextStyle::default() },
        );
        assert!(!text.contains("canary"), "{text}");
    }
}

#[test]
fn what_blocks_a_plan() {
    insta::assert_snapshot!(render_plan_text(
        &blocked_plan(),
        &sample_run(),
        ReportKind::Plan,
        TextStyle::default()
    ));
}

#[test]
fn unreadable_scopes_with_one_cause_are_one_line() {
    let scope = |number: usize, status| Incomplete {
        address: Address::container(format!("acme/p{number}").into()).with_section("variables"),
        reason: Cause::from(CauseParts {
            message: format!("answered {status}").into(),
            operation: Some("variable-list"),
            status: Some(status),
            help: Some("use another token".into()),
            ..CauseParts::default()
        }),
        origin: None,
    };
    let mut incomplete: Vec<_> = (0..1_000).map(|number| scope(number, 403)).collect();
    incomplete.extend((1_000..1_003).map(|number| scope(number, 500)));
    let findings = Findings { incomplete, ..Findings::default() };
    let render = |full| {
        render_plan_text(
            &Plan::for_test(findings.clone(), 1_003),
            &sample_run(),
            ReportKind::Plan,
            TextStyle { is_full: full, ..TextStyle::default() },
        )
    };
    let folded = render(false);
    let line = "  acme/p0#variables  answered 403; use another token\n  the same for 999 more scopes: \
        acme/p1#variables, acme/p2#variables, acme/p3#variables, …; --full shows each\n";
    assert!(folded.contains(line), "{folded}");
    assert_eq!(folded.matches("answered 500").count(), 1, "{folded}");
    assert_eq!(render(true).matches("answered 403").count(), 1_000);
}

#[test]
fn the_summary_of_a_plan_without_steps() {
    let render_unchanged_plan = |kind, projects| {
        render_plan_text(
            &Plan::for_test(Findings::default(), projects),
            &sample_run(),
            kind,
            TextStyle::default(),
        )
    };
    assert!(
        render_unchanged_plan(ReportKind::Plan, 12)
            .ends_with("\n\nno changes: 12 projects match their manifests\n")
    );
    assert!(
        render_unchanged_plan(ReportKind::Drift, 1)
            .ends_with("\n\nin sync: 1 project matches its manifest\n")
    );
    let drift_text = |plan: &Plan| {
        super::tests::render_plan_text(plan, &sample_run(), ReportKind::Drift, TextStyle::default())
    };
    let address = Address::container("acme/shop".into());
    let unset = Reason::SecretMissing { secrets: vec!["env:A".into()] };
    let unverified =
        "not verified: fields of 1 object; only --strict=unverified counts them as differences\n";
    let matches = "1 project matches its manifest";
    for (reason, sync, tail, line) in [
        (Reason::CannotVerify, "in sync: ", "", unverified),
        (Reason::NotReturned, "in sync: ", "", unverified),
        // With `--strict`, the following two are differences.
        (unset, "", "; secrets of 1 object not set", ""),
        (Reason::Unlisted, "", "; 1 object not in any manifest", ""),
    ] {
        let note = Note { address: address.clone(), reason, fields: Vec::new(), origin: None };
        let findings = Findings { notes: vec![note], ..Findings::default() };
        let text = drift_text(&Plan::for_test(findings, 1));
        let end = format!("\n\n{sync}{matches}{tail}\n{line}");
        assert!(text.ends_with(&end), "{text}");
    }
    for (projects, expected) in [
        (1, "1 archived project as declared"),
        (2, "1 project matches its manifest; 1 archived project not compared"),
    ] {
        let (reason, fields) = (Reason::Archived, Vec::new());
        let note = Note { address: address.clone(), reason, fields, origin: None };
        let findings = Findings { notes: vec![note], ..Findings::default() };
        let text = drift_text(&Plan::for_test(findings, projects));
        assert!(text.ends_with(&format!("\n\nin sync: {expected}\n")), "{text}");
    }
}

/// The entries of a feature that is off are not compared, so nobody knows whether they match.
#[test]
fn a_project_with_a_closed_section_does_not_match() {
    let partly_compared_text = "not fully compared, because a feature is declared off";
    let shop = Address::container("acme/shop".into());
    let sections = ["variables", "pipeline_schedules"].map(|name| shop.with_section(name));
    let notes = sections.map(|address| Note {
        address,
        reason: Reason::Closed { why: "CI/CD must be on".into() },
        fields: Vec::new(),
        origin: None,
    });
    let findings = Findings { notes: notes.into(), ..Findings::default() };
    for (kind, projects, expected) in [
        (ReportKind::Plan, 1, format!("no changes: 1 project {partly_compared_text}")),
        (ReportKind::Drift, 1, format!("1 project {partly_compared_text}")),
        (
            ReportKind::Drift,
            3,
            format!("2 projects match their manifests; 1 project {partly_compared_text}"),
        ),
    ] {
        let partial_plan = Plan::for_test(findings.clone(), projects);
        let text = render_plan_text(&partial_plan, &sample_run(), kind, TextStyle::default());
        assert!(text.ends_with(&format!("\n\n{expected}\n")), "{text}");
    }
}

/// Unchanged and unread objects are counted separately.
#[test]
fn the_summary_counts_unwritten_and_unread_objects() {
    let address_of = |name: &str| Address::container(format!("acme/{name}").into());
    let summary = |findings| {
        let plan = Plan::for_test(findings, 9);
        let text = super::tests::render_plan_text(
            &plan,
            &sample_run(),
            ReportKind::Plan,
            TextStyle::default(),
        );
        text.lines()
            .find(|line| line.starts_with("no") && !line.starts_with("note"))
            .map(str::to_owned)
    };
    let archived_note = |name| Note {
        address: address_of(name),
        reason: Reason::ArchivedByHand,
        fields: Vec::new(),
        origin: None,
    };
    let notes = vec![archived_note("a"), archived_note("b")];
    let notes_summary = summary(Findings { notes, ..Findings::default() });
    let unread_summary = |names: &[&str]| {
        let incomplete = |name: &&str| Incomplete {
            address: address_of(name),
            reason: Cause::new("answered 500"),
            origin: None,
        };
        summary(Findings {
            incomplete: names.iter().map(incomplete).collect(),
            ..Findings::default()
        })
    };
    for (sentence, expected) in [
        (
            notes_summary,
            "nothing to apply: 2 of 9 projects differ in objects that `apply` does not write",
        ),
        (
            unread_summary(&["a"]),
            "no differences in what could be read; acme/a was not fully compared",
        ),
        (
            unread_summary(&["a", "b", "c", "d", "e"]),
            "no differences in what could be read; acme/a, acme/b, acme/c and 2 more were not fully compared",
        ),
    ] {
        assert_eq!(sentence.as_deref(), Some(expected));
    }
}

/// A plan for `projects` projects. `depth` returns the declared `ci_default_git_depth` of the
/// project with an index.
pub(in crate::report) fn repeated_plan(projects: usize, depth: impl Fn(usize) -> usize) -> Plan {
    let manifests = (0..projects).map(|i| {
        let depth = depth(i);
        format!("---\nkind: Project\npath: acme/p{i:03}\nsettings: {{ci_default_git_depth: {depth}, avatar: {{file: a.png}}}}\n")
    });
    let live_sections = json!({"settings": {"ci_default_git_depth": 50, "avatar_url": "https://gitlab.example.org/a.png"}});
    make_plan(&load_desired(&manifests.collect::<String>()), |project| {
        make_live(project, &live_sections)
    })
}

#[test]
fn the_same_change_in_many_projects_is_shown_once() {
    let render = |projects, style| {
        let depth = |i| if i == 3 { 30 } else { 20 };
        render_plan_text(&repeated_plan(projects, depth), &sample_run(), ReportKind::Plan, style)
    };
    insta::assert_snapshot!(render(60, TextStyle::default()));
    // Two equal projects are not folded.
    let full = TextStyle { is_full: true, ..TextStyle::default() };
    for (text, projects) in [(render(60, full), 60), (render(2, TextStyle::default()), 2)] {
        assert_eq!(text.matches("50 → ").count(), projects);
    }
    assert_eq!(render(3, TextStyle::default()).matches("50 → ").count(), 1);
}

/// A plan for five projects with two changes in common. Two of the projects also have other
/// changes.
pub(in crate::report) fn partly_shared_plan() -> Plan {
    let manifests = (0..5).map(|i| {
        let own_variables = match i {
            1 => "{key: OWN, value: one}, ",
            3 => "{key: OWN, value: two}, {key: MORE, value: three}, ",
            _ => "",
        };
        format!("---\nkind: Project\npath: acme/p{i}\nsettings: {{ci_default_git_depth: 20}}\nvariables: [{own_variables}{{key: COMPANY, value: acme}}]\n")
    });
    let settings = json!({"settings": {"ci_default_git_depth": 50}, "variables": []});
    make_plan(&load_desired(&manifests.collect::<String>()), |project| {
        make_live(project, &settings)
    })
}

#[test]
fn a_change_that_many_projects_share_is_shown_once_beside_their_own_changes() {
    let shared_plan = partly_shared_plan();
    let render = |style| render_plan_text(&shared_plan, &sample_run(), ReportKind::Plan, style);
    insta::assert_snapshot!(render(TextStyle::default()), @r"
    plan for https://gitlab.example.org as alice

    acme/p0
      ~ settings  # shop.yaml:4
          ci_default_git_depth  50 → 20
      + variables/COMPANY@*  # shop.yaml:5
          value  acme
      the same change in 4 more projects: acme/p1, acme/p2, acme/p3, …; --full shows each

    acme/p1  (and 2 more changes, shared with others)
      + variables/OWN@*  # shop.yaml:10
          value  one

    acme/p3  (and 2 more changes, shared with others)
      + variables/MORE@*  # shop.yaml:20
          value  three
      + variables/OWN@*  # shop.yaml:20
          value  two

    plan: 8 to create, 5 to change in 5 of 5 projects; 13 calls
    ");
    let full = render(TextStyle { is_full: true, ..TextStyle::default() });
    assert_eq!(full.matches("COMPANY").count(), 5, "{full}");
}

/// Omitted steps are counted once, and removals are named in any width.
#[test]
fn a_long_plan_names_each_removal_and_refusal() {
    let count = 40;
    let manifests: String = (0..count)
        .map(|i| format!("---\nkind: Project\npath: acme/p{i:02}\nsettings: {{description: own {i}, ci_default_git_depth: 20}}\nvariables: []\nunlisted: {{variables: delete}}\n"))
        .collect();
    let mut long_plan = make_plan(&load_desired(&manifests), |project| {
        let key = format!("OLD_{}", &project.path[5..]);
        let variable =
            json!({"key": key, "environment_scope": "*", "value": "x", "variable_type": "env_var"});
        let settings = json!({"description": "", "ci_default_git_depth": 50});
        make_live(project, &json!({"settings": settings, "variables": [variable]}))
    });
    let refusal_for = |i: usize| {
        let address = Address::container(format!("acme/p{i:02}").into()).with_section("variables");
        GuardRefusal::new(
            Guard::Removals,
            &address,
            "would remove all entries".into(),
            1,
            &shop_origin(1),
        )
    };
    long_plan.refusals = (0..count).map(refusal_for).collect();
    for width in [None, Some(60), Some(80), Some(120)] {
        let text = render_plan_text(
            &long_plan,
            &sample_run(),
            ReportKind::Plan,
            TextStyle { width, ..TextStyle::default() },
        );
        let lines: Vec<_> = text.lines().collect();
        let cut_index = lines.iter().position(|line| line.starts_with('…')).unwrap();
        let shown_lines = lines[..cut_index]
            .iter()
            .filter(|line| line.starts_with("  - ") || line.starts_with("  ~ "));
        let omitted_count: usize =
            lines[cut_index].split_whitespace().nth(2).unwrap().parse().unwrap();
        // The settings of the first project are in two excerpts.
        assert_eq!(omitted_count + shown_lines.count() - 1, 2 * count, "{text}");
        for i in 0..count {
            assert!(text.contains(&format!("- variables/OLD_p{i:02}@*")), "{i} {width:?}: {text}");
            assert!(text.contains(&format!("acme/p{i:02}#variables")), "{i} {width:?}: {text}");
        }
        let refusals = &text[text.find("error[guard]").unwrap()..];
        assert!(refusals.lines().all(|line| line.len() < 200), "{width:?}: {text}");
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with("acme/")) {
            assert!(pair[1].starts_with("  "), "a bare head: {text}");
        }
    }
    long_plan.steps.iter_mut().for_each(|step| step.label = Some(Label::Drift));
    let text = render_plan_text(&long_plan, &sample_run(), ReportKind::Plan, TextStyle::default());
    for i in 0..count {
        assert!(text.contains(&format!("- variables/OLD_p{i:02}@*")), "{i}: {text}");
    }
}

/// Each project is named, even if many have the same removal.
#[test]
fn a_removal_in_many_projects_names_them() {
    let manifests: String = (0..9)
        .map(|i| format!("---\nkind: Project\npath: acme/p{i}\nvariables: []\nunlisted: {{variables: delete}}\n"))
        .collect();
    let old = json!([{"key": "OLD", "environment_scope": "*", "value": "x"}]);
    let removal_plan = make_plan(&load_desired(&manifests), |project| {
        make_live(project, &json!({"variables": old}))
    });
    let text =
        render_plan_text(&removal_plan, &sample_run(), ReportKind::Plan, TextStyle::default());
    assert!((0..9).all(|i| text.contains(&format!("acme/p{i}"))), "{text}");
}

/// The origin of the rule is always shown; the origin of the project may be omitted.
#[test]
fn a_narrow_plan_has_the_line_of_the_rule() {
    let manifests = "kind: Defaults\nmatch: {path: acme/**}\nsettings: {only_allow_merge_if_pipeline_succeeds: true}\n---\nkind: Project\npath: acme/shop\nsettings: {}\n";
    let manifests = load_desired(manifests);
    let mut narrow_plan = make_plan(&manifests, |project| {
        make_live(project, &json!({"settings": {"only_allow_merge_if_pipeline_succeeds": false}}))
    });
    narrow_plan.steps[0].changes[0].origin = Some(Origin::new("rules.yaml", 3, 1, Layer::Project));
    let style = TextStyle { width: Some(60), ..TextStyle::default() };
    insta::assert_snapshot!(render_plan_text(&narrow_plan, &sample_run(), ReportKind::Plan, style), @r"
    plan for https://gitlab.example.org as alice

    acme/shop
      ~ settings
          only_allow_merge_if_pipeline_succeeds  false → true
                                                 # rules.yaml:3

    plan: 1 to change in 1 of 1 project; 1 call
    ");
}

pub(in crate::report) fn sample_applied() -> ApplyResult {
    let address = Address::container("acme/shop".into());
    let variable = address.with_section("variables").with_entry("A@*");
    let outcomes = [
        StepOutcome::Done,
        StepOutcome::Already,
        StepOutcome::Failed(
            "hook-create: `POST /projects/1/hooks` answered 422: Invalid url given".into(),
        ),
        StepOutcome::ChangedMeanwhile("the variables were changed meanwhile".into()),
        StepOutcome::Skipped("settings failed".into()),
        StepOutcome::NotStarted,
        StepOutcome::Unknown("no answer".into()),
    ];
    let actions = [Action::Create, Action::Update, Action::Delete].into_iter().cycle();
    let steps = outcomes.into_iter().zip(actions).map(|(outcome, action)| StepResult {
        scope: Scope::Project,
        address: variable.clone(),
        action,
        outcome,
        origin: None,
    });
    let mismatch = |fields: &[&str], reason| Mismatch {
        address: address.with_section("settings"),
        fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        reason,
        help: None,
    };
    let help = Some("`emails_enabled` needs release 16.3 of the service or later".to_owned());
    let mismatches = vec![
        Mismatch { help, ..mismatch(&["emails_enabled", "topics"], MismatchReason::NotSaved) },
        mismatch(&["visibility"], MismatchReason::ChangedMeanwhile),
        mismatch(&[], MismatchReason::Unreadable("answered 500".into())),
    ];
    ApplyResult { steps: steps.collect(), mismatches, ..ApplyResult::default() }
}

#[test]
fn the_result_of_an_apply() {
    insta::assert_snapshot!(render_applied_text(
        &sample_applied(),
        &sample_run(),
        TextStyle::default()
    ));
    let interrupted = ApplyResult { interrupted: true, ..sample_applied() };
    assert!(
        render_applied_text(&interrupted, &sample_run(), TextStyle::default())
            .contains("\ninterrupted: ")
    );
    let failed = StepResult { origin: Some(shop_origin(3)), ..sample_applied().steps[2].clone() };
    let refused = ApplyResult { steps: vec![failed], ..ApplyResult::default() };
    let refused = render_applied_text(&refused, &sample_run(), TextStyle::default());
    assert!(refused.contains(":3\n\nnot applied: 1 failed\n"), "{refused}");
    let done = StepResult { outcome: StepOutcome::Done, ..sample_applied().steps[0].clone() };
    let complete = ApplyResult { steps: vec![done; 51], ..ApplyResult::default() };
    assert!(
        render_applied_text(&complete, &sample_run(), TextStyle::default())
            .ends_with("51 steps succeeded (--full lists them)\n\napplied: 51 done\n")
    );
}

#[test]
fn equal_failures_are_folded_in_every_format() {
    let mut fixture = ReportFixture::new();
    fixture.applied = ApplyResult::default();
    for n in 0..200 {
        let request = format!("PUT /projects/{n}");
        let cause = Cause::from(CauseParts {
            message: format!("project-edit: `{request}` answered 403: no").into(),
            request_line: request,
            request_id: Some(format!("id-{n}")),
            ..CauseParts::default()
        });
        let address = Address::container(format!("acme/p{n}").into()).with_section("settings");
        let failed = StepResult {
            scope: Scope::Project,
            address: address.clone(),
            action: Action::Update,
            outcome: StepOutcome::Failed(cause.clone()),
            origin: None,
        };
        let hooks = Address::container(address.path.clone()).with_section("hooks");
        let not_started =
            StepResult { address: hooks, outcome: StepOutcome::NotStarted, ..failed.clone() };
        fixture.applied.steps.extend([failed, not_started]);
        let reason = MismatchReason::Unreadable(cause);
        fixture.applied.mismatches.push(Mismatch { address, fields: vec![], reason, help: None });
    }
    let text = render_applied_text(&fixture.applied, &sample_run(), TextStyle::default());
    assert!(text.lines().count() < 20, "{text}");
    assert!(text.contains("the same for 199 more steps: acme/p1#settings, "), "{text}");
    let full = TextStyle { is_full: true, ..TextStyle::default() };
    assert!(render_applied_text(&fixture.applied, &sample_run(), full).lines().count() > 800);
    // The text occurs three times: for the failed steps, for the mismatches, and for a section that
    // the plan of the fixture could not read.
    let secrets = Secrets::default();
    let marker = Marker::from(ReportKind::Apply);
    let comment =
        fixture.render_named("apply", |report| markdown::render(report, &marker, &secrets));
    let page = fixture.render_named("apply", |report| html::render(report, &secrets));
    assert_eq!(comment.matches("answered 403").count(), 3, "{comment}");
    assert_eq!(page.matches("answered 403").count(), 3, "{page}");
}

/// The addresses of the other steps have the same form as in the line of the first step.
#[test]
fn addresses_of_folded_steps_are_decoded() {
    let failed = |n: usize| StepResult {
        scope: Scope::Project,
        address: Address::container(format!("acme/p{n}").into())
            .with_section("hooks")
            .with_entry("https://ci.example.org/x"),
        action: Action::Create,
        outcome: StepOutcome::NotStarted,
        origin: None,
    };
    let result = ApplyResult { steps: (0..4).map(failed).collect(), ..ApplyResult::default() };
    let text = render_applied_text(&result, &sample_run(), TextStyle::default());
    assert!(text.contains("+ hooks/https://ci.example.org/x  not started\n"), "{text}");
    assert!(text.contains(": acme/p1#hooks/https://ci.example.org/x, acme/p2#"), "{text}");
}

/// One acknowledgement accepts all refusals of the same guard and section, except deletions, which must
/// be acknowledged one by one.
#[test]
fn equal_refusals_are_folded_in_every_format() {
    let secrets = Secrets::default();
    let marker = Marker::from(ReportKind::Plan);
    for (guard, acknowledgement_count) in [(Guard::Removals, 1), (Guard::Deletion, 40)] {
        let mut fixture = ReportFixture::new();
        let first = fixture.plan.refusals[0].clone();
        let refusal = |n: usize| GuardRefusal {
            guard,
            address: Address::container(format!("acme/p{n}").into()).with_section("hooks"),
            reason: format!("would remove {n} entries"),
            objects: n,
            acknowledgement: format!("{guard}:acme/p{n}#hooks"),
            ..first.clone()
        };
        fixture.plan.findings.refusals = (1..=40).map(refusal).collect();
        let text =
            render_plan_text(&fixture.plan, &sample_run(), ReportKind::Plan, TextStyle::default());
        let is_for_all = text.contains(&format!("pass `--ack '{guard}:acme/**#hooks'`"));
        assert_eq!(is_for_all, acknowledgement_count == 1, "{text}");
        let comment =
            fixture.render_named("plan", |report| markdown::render(report, &marker, &secrets));
        let joint_document = format!("guard: {guard}, at: \"acme/**#hooks\", at_most: 820}}");
        assert_eq!(
            comment.matches("{kind: Acknowledge").count(),
            acknowledgement_count,
            "{comment}"
        );
        assert_eq!(comment.contains(&joint_document), acknowledgement_count == 1, "{comment}");
        let page = fixture.render_named("plan", |report| html::render(report, &secrets));
        assert_eq!(page.matches("--ack ").count(), acknowledgement_count, "{page}");
    }
}

#[test]
fn equal_problems_notes_and_results_are_folded() {
    let address = |n: usize| Address::container(format!("acme/p{n:03}").into());
    let mut fixture = ReportFixture::new();
    let problem = fixture.plan.problems[0].clone();
    let problem = |n| Problem {
        address: Address::container(format!("acme/g{n}/p").into()),
        message: format!("the project `acme/g{n}/p` does not exist"),
        help: Some(format!("look at the group `acme/g{n}`")),
        ..problem.clone()
    };
    let archived = |n| Note {
        address: address(n),
        reason: Reason::ArchivedByHand,
        fields: Vec::new(),
        origin: None,
    };
    fixture.plan.findings.problems = (0..100).map(problem).collect();
    fixture.plan.findings.notes = (0..100).map(archived).collect();
    let marker = Marker::from(ReportKind::Plan);
    let comment = fixture
        .render_named("plan", |report| markdown::render(report, &marker, &Secrets::default()));
    assert_eq!(comment.matches("does not exist").count(), 1, "{comment}");
    assert!(comment.contains("- `acme/p000`, `acme/p001`, "), "{comment}");
    assert!(comment.contains(", `acme/p019` and 80 more\n"), "{comment}");
    let text =
        render_plan_text(&fixture.plan, &sample_run(), ReportKind::Plan, TextStyle::default());
    assert!(text.contains(" (--full lists all)\n  acme/p000 and 99 more\n"), "{text}");

    // Without steps, the title names the blockers.
    fixture.plan.steps.clear();
    let comment = fixture
        .render_named("plan", |report| markdown::render(report, &marker, &Secrets::default()));
    assert!(comment.contains("\n### undrift blocked: 100 problems"), "{comment}");

    let skipped = |n| plan::SkippedContainer { address: address(n), steps: 1 };
    let skipped_list: Vec<_> = (0..100).map(skipped).collect();
    let full = TextStyle { is_full: true, ..TextStyle::default() };
    let no_secrets = Secrets::default();
    let skipped_text = |style| super::skipped_text(Canvas::new(style, &no_secrets), &skipped_list);
    assert_eq!(skipped_text(TextStyle::default()).lines().count(), 1);
    assert_eq!(skipped_text(full).lines().count(), 100);
    let narrow = TextStyle { width: Some(60), ..TextStyle::default() };
    let text = skipped_text(narrow);
    assert!(text.lines().all(|line| line.len() <= 60), "{text}");
    let done = |n| StepResult {
        scope: Scope::Project,
        address: address(n).with_section("settings"),
        action: Action::Update,
        outcome: StepOutcome::Done,
        origin: None,
    };
    let result =
        |steps| ApplyResult { steps: (0..steps).map(done).collect(), ..ApplyResult::default() };
    let text = render_applied_text(&result(12), &sample_run(), TextStyle::default());
    assert!(text.contains("~ settings  done\n  the same for 11 more steps: acme/p001#"), "{text}");
}

/// Steps that wait for their parent groups are equal, although the groups have different names.
#[test]
fn steps_that_wait_for_their_own_groups_are_folded() {
    let mut waiting_plan = repeated_plan(6, |_| 20);
    for (n, step) in waiting_plan.steps.iter_mut().enumerate() {
        let group = format!("acme/g{n}");
        step.address = Address::container(format!("{group}/p").into()).with_section("settings");
        let awaited_address = Address::container(group.into()).with_section("settings");
        let awaited_address =
            if n == 5 { Address::container("acme/other".into()) } else { awaited_address };
        step.after =
            vec![crate::diff::Edge { address: awaited_address, reason: "groups come first" }];
    }
    let text =
        render_plan_text(&waiting_plan, &sample_run(), ReportKind::Plan, TextStyle::default());
    assert_eq!(text.matches("groups come first").count(), 2, "{text}");
    assert!(text.contains("the same change in 4 more projects: acme/g1/p, "), "{text}");
    let fixture = ReportFixture { plan: waiting_plan, ..ReportFixture::new() };
    let marker = Marker::from(ReportKind::Plan);
    let comment = fixture
        .render_named("plan", |report| markdown::render(report, &marker, &Secrets::default()));
    assert_eq!(comment.matches("groups come first").count(), 2, "{comment}");
}

/// `text` without the colour sequences of canvas and diagnostics.
fn strip_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let end =
            part.find('m').unwrap_or_else(|| panic!("a sequence that is no colour: {part:?}"));
        assert!(part[..end].chars().all(|c| c.is_ascii_digit() || c == ';'), "{part:?}");
        text + &part[end + 1..]
    })
}

/// A run, a plan and its result, with `text` in every place where others can write text.
pub(in crate::report) fn hostile_content(text: &str) -> (ReportedRun, Plan, ApplyResult) {
    let run = ReportedRun {
        target: text.to_owned(),
        caller: text.to_owned(),
        sandbox: false,
        rehearsed: Vec::new(),
        snapshot: None,
        token: None,
    };
    let mut hostile_live = shop_live();
    hostile_live["settings"]["description"] = text.into();
    hostile_live["settings"]["issues_template"] = format!("{text}\n{text}").into();
    hostile_live["settings"]["topics"] = json!([text]);
    hostile_live["variables"][1]["key"] = text.into();
    let mut hostile_plan =
        make_plan(&load_desired(SHOP), |project| make_live(project, &hostile_live));
    let mut blocked = blocked_plan();
    blocked.problems[0].message = text.to_owned();
    blocked.problems[0].help = Some(text.to_owned());
    blocked.refusals[0].reason = text.to_owned();
    blocked.refusals[0].acknowledgement = text.to_owned();
    blocked.refusals[0].origin = Origin::new(text, 1, 1, Layer::Project);
    blocked.incomplete[0].reason = text.to_owned().into();
    blocked.incomplete[0].address.path = text.into();
    hostile_plan.problems = blocked.findings.problems;
    hostile_plan.refusals = blocked.findings.refusals;
    hostile_plan.incomplete = blocked.findings.incomplete;
    let mut hostile_result = sample_applied();
    hostile_result.steps[2].outcome = StepOutcome::Failed(text.to_owned().into());
    hostile_result.steps[2].address.path = text.into();
    hostile_result.mismatches[0].fields = vec![text.to_owned()];
    (run, hostile_plan, hostile_result)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn hostile_text_is_harmless_in_every_report(text in "(\\PC|\\p{C}|\u{1b}|\u{9b}|\u{202e}|\n){0,12}", width in proptest::option::of(20_usize..100), colour: bool) {
        let style = TextStyle { is_coloured: colour, width, is_full: false };
        let (run, hostile_plan, hostile_result) = hostile_content(&text);
        for report in [render_plan_text(&hostile_plan, &run, ReportKind::Plan, style), render_applied_text(&hostile_result, &run, style)] {
            let report = if colour { strip_colours(&report) } else { report };
            let unsafe_chars: Vec<_> = report.chars().filter(|c| is_unsafe(*c) && *c != '\n').collect();
            prop_assert!(unsafe_chars.is_empty(), "{:?} in {:?}", unsafe_chars, report);
        }
    }
}

#[test]
fn a_field_that_many_projects_share_is_shown_once_beside_their_own_fields() {
    let manifests = (0..5).map(|i| {
        let own_setting = if i % 2 == 0 { format!(", description: own {i}") } else { String::new() };
        format!(
            "---\nkind: Project\npath: acme/p{i}\nsettings: {{ci_default_git_depth: 20{own_setting}}}\n"
        )
    });
    let settings = json!({"settings": {"ci_default_git_depth": 50, "description": ""}});
    let shared_plan = make_plan(&load_desired(&manifests.collect::<String>()), |project| {
        make_live(project, &settings)
    });
    insta::assert_snapshot!(render_plan_text(
        &shared_plan,
        &sample_run(),
        ReportKind::Plan,
        TextStyle::default()
    ));
}
