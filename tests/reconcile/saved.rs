//! Saved plans of random organisations: only those saved steps run that are still needed, whatever
//! happened since.

use proptest::prelude::*;
use serde_json::json;
use undrift::{
    api::WriteClient,
    apply::{Apply, ApplyResult},
    desired::{Desired, Roster},
    digest::DigestKey,
    observe::Observer,
    plan::{
        ApprovalPolicy, Plan, PlanSettings,
        saved::{PlanComparison, PlanRecorder, SaveContext, SavedPlan, SealedPlan},
    },
    secret::Secret,
};

use crate::{
    random::{cases, documents, group, project_sections, world},
    world::World,
};

/// The state of a run.
pub(crate) struct PlanRun<'w> {
    world: &'w World,
    desired: Desired,
    observer: Observer,
    settings: PlanSettings,
}

impl<'w> PlanRun<'w> {
    pub(crate) async fn connect(world: &'w World) -> Self {
        let desired = world.desired();
        let (observer, settings) = world.connect(&desired).await.unwrap();
        Self { world, desired, observer, settings }
    }

    async fn plan(&self) -> Plan {
        let Self { world, desired, observer, settings } = self;
        world.plan_with_roster(Roster::default(), observer, desired, settings).await.unwrap()
    }

    fn recorder<'a>(&'a self, key: &'a DigestKey) -> PlanRecorder<'a> {
        PlanRecorder { secrets: &self.settings.secrets, key: Some(key) }
    }

    /// A plan, and the text of its file.
    pub(crate) async fn save(&self, key: &DigestKey) -> (Plan, String) {
        let plan = self.plan().await;
        let source = SaveContext {
            made_at: "2030-01-01T10:00:00Z".parse().unwrap(),
            target: self.world.sandbox.url(),
            caller: "root".to_owned(),
            is_sandbox: true,
            manifests: None,
            selectors: [Vec::new(), Vec::new(), Vec::new()],
        };
        let containers = &self.desired.containers;
        let saved = SavedPlan::from_plan(&plan, containers, source, self.recorder(key));
        let text = saved.seal(Some(key)).to_text();
        (plan, text)
    }

    fn compare(&self, saved: &SealedPlan, plan: &Plan, key: &DigestKey) -> PlanComparison {
        saved.check_seal(Some(key)).unwrap();
        self.compare_unsealed(saved, plan, key)
    }

    /// The same for a file that somebody may have edited.
    pub(crate) fn compare_unsealed(
        &self,
        saved: &SealedPlan,
        plan: &Plan,
        key: &DigestKey,
    ) -> PlanComparison {
        saved.plan.compare(&saved.id, plan, &self.desired.containers, self.recorder(key))
    }

    /// Applies the agreed part of `plan`; also returns the paths that are left out.
    async fn apply(&self, plan: &Plan, comparison: &PlanComparison) -> (ApplyResult, Vec<String>) {
        let policy = ApprovalPolicy { comparison: Some(comparison), ..ApprovalPolicy::default() };
        let (approved, left_out) = plan.approve(policy).unwrap();
        let writer = WriteClient::new(self.observer.client().clone());
        let apply = Apply {
            desired: &self.desired,
            observer: &self.observer,
            writer: &writer,
            settings: &self.settings,
            max_containers: 4,
            trust_duration: self.world.trust_time,
        };
        let applied = apply.run(&approved, |_| ()).await;
        let left_out = left_out.iter().map(|entry| entry.address.path.to_string()).collect();
        (applied, left_out)
    }
}

fn key() -> DigestKey {
    DigestKey::new(&Secret::new("the key of both jobs"))
}

/// The steps of a container by field, so that a smaller step is a subset.
fn changes(plan: &Plan, path: &str) -> Vec<String> {
    let mut all = Vec::new();
    for step in plan.steps.iter().filter(|step| &*step.address.path == path) {
        all.push(format!("{:?} {}", step.action, step.address));
        for change in &step.changes {
            let (before, after) = (&change.before, &change.after);
            all.push(format!("{} {}: {before:?} {after:?}", step.address, change.field));
        }
    }
    all
}

#[test]
fn a_saved_plan_of_an_unchanged_service_is_applied_completely_and_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let states = (group(), project_sections(), group(), project_sections());
    cases(12)
        .run(&states, |(old_group, old, new_group, new)| {
            runtime.block_on(async {
                let world = world().await;
                world.declare(&documents(old_group.clone(), old.clone()));
                world.converge("from nothing").await;
                world.declare(&documents(new_group.clone(), new.clone()));
                let key = key();
                let run = PlanRun::connect(&world).await;
                let (first, text) = run.save(&key).await;
                let saved = SealedPlan::read(text.as_bytes()).unwrap();
                assert_eq!(saved.to_text(), text);

                // Another process has only the file.
                let run = PlanRun::connect(&world).await;
                let plan = run.plan().await;
                let comparison = run.compare(&saved, &plan, &key);
                assert_eq!(json!(comparison.stale), json!([]), "{first:#?}");
                assert!(comparison.already.is_empty(), "{:?}", comparison.already);
                let (applied, left_out) = run.apply(&plan, &comparison).await;
                assert!(applied.is_complete() && left_out.is_empty(), "{left_out:?}");

                let run = PlanRun::connect(&world).await;
                let plan = run.plan().await;
                let comparison = run.compare(&saved, &plan, &key);
                assert!(plan.steps.is_empty(), "{:#?}", plan.steps);
                assert_eq!(json!(comparison.stale), json!([]));
                assert_eq!(comparison.already.len(), first.steps.len());
            });
            Ok(())
        })
        .unwrap();
}

#[test]
fn only_saved_steps_run_whatever_happened_since() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let states =
        (group(), project_sections(), group(), project_sections(), group(), project_sections());
    let parts = (any::<bool>(), any::<bool>());
    cases(16)
        .run(&(states, parts), |(states, (in_group, in_project))| {
            runtime.block_on(async {
                let (old_group, old, new_group, new, other_group, other) = states;
                let world = world().await;
                world.declare(&documents(old_group.clone(), old.clone()));
                world.converge("from nothing").await;
                world.declare(&documents(new_group.clone(), new.clone()));
                let key = key();
                let (first, text) = PlanRun::connect(&world).await.save(&key).await;
                let saved = SealedPlan::read(text.as_bytes()).unwrap();

                // Somebody else changes the group, the project, both or neither.
                let group = if in_group { other_group } else { old_group };
                let project = if in_project { other } else { old };
                world.declare(&documents(group, project));
                world.converge("what somebody else does").await;
                world.declare(&documents(new_group, new));

                let run = PlanRun::connect(&world).await;
                let plan = run.plan().await;
                let comparison = run.compare(&saved, &plan, &key);
                let before = world.writes().len();
                let (applied, left_out) = run.apply(&plan, &comparison).await;
                assert!(applied.is_complete(), "{:#?}", applied.mismatches);
                for step in &applied.steps {
                    let path = &*step.address.path;
                    assert!(!left_out.iter().any(|left| left == path), "{}", step.address);
                    let said = changes(&first, path);
                    let needed = changes(&plan, path);
                    let unsaved: Vec<_> = needed.iter().filter(|one| !said.contains(one)).collect();
                    assert!(unsaved.is_empty(), "{unsaved:?} was not saved");
                }
                if applied.steps.is_empty() {
                    assert_eq!(world.writes().len(), before);
                }
                // Containers left out are stale, or depend on stale ones.
                if !left_out.is_empty() {
                    assert!(!comparison.stale.is_empty(), "{left_out:?}");
                }
                let left = PlanRun::connect(&world).await.plan().await;
                for step in &left.steps {
                    let is_left = left_out.iter().any(|path| path == &*step.address.path);
                    assert!(is_left, "{} was agreed on, and is not done", step.address);
                }
            });
            Ok(())
        })
        .unwrap();
}
