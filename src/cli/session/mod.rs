//! The shared code of `plan`, `apply` and `drift`: makes a plan from manifests and a service.
//! `opening` opens a session. `args` has the options, `source` opens the service or a snapshot,
//! `preflight` checks the token, and `with_base` adds a base.

mod args;
mod opening;
mod preflight;
mod source;
mod with_base;

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    sync::Arc,
};

use jiff::civil::Date;

use super::{CommandError, Progress, Result, RunContext};
pub(super) use args::{AccessArgs, ChangeArgs, SessionArgs, require_match};
pub(super) use opening::SessionBuilder;
pub(super) use preflight::check_can_write;
pub(super) use source::{LiveArgs, SessionSource};
pub(super) use with_base::BaseUse;

use crate::{
    api::WriteClient,
    apply::{self, Apply, ApplyResult, Event, TRUST_DURATION},
    desired::{Acknowledgement, Container, Desired, Roster},
    diagnostic::Diagnostics,
    live::LiveContainer,
    manifest::{Config, IncludeRules, LoadedManifests},
    observe::Observer,
    plan::{self, ApprovedPlan, Extent, Plan},
    report::ReportedRun,
    secret::Secrets,
    snapshot::SnapshotRecorder,
    value::Value,
};
use with_base::SessionBase;

/// The state that a run needs after the session is opened.
pub(super) struct Session {
    /// The selected declarations.
    pub(super) desired: Desired,
    /// The undeclared groups and projects that exist and that rules match.
    roster: Roster,
    /// Containers that rules include but the saved plan does not contain. Guards count them, but they are
    /// not planned.
    unplanned_containers: Vec<Container>,
    /// True if the plan of the run keeps the plan of each container, to compare it with a saved plan.
    keeps_container_plans: bool,
    /// True if everything is selected.
    selects_all: bool,
    /// The acknowledgements.
    acknowledgements: Vec<Acknowledgement>,
    /// The day of the run.
    today: Date,
    /// Reads the live state.
    pub(super) observer: Observer,
    /// The settings of plans.
    pub(super) settings: plan::PlanSettings,
    /// The extent of the run.
    extent: Extent,
    /// The maximum number of projects that are read at the same time.
    pub(super) concurrency: usize,
    /// The description of the run for reports.
    pub(super) run: ReportedRun,
    /// The snapshot that is being taken.
    pub(super) recorder: Option<Arc<SnapshotRecorder>>,
    session_base: Option<SessionBase>,
}

impl Session {
    /// Reads and plans the selected containers.
    ///
    /// # Errors
    /// If all further requests would fail too.
    pub(super) async fn plan(&self, cx: &RunContext) -> Result<Plan> {
        let plan = Plan::from_roster(self.roster.clone());
        let plan = if self.keeps_container_plans {
            plan.with_container_plans()
        } else {
            plan.without_requests()
        };
        self.plan_containers(plan, cx).await
    }

    /// Like [`Self::plan`], but keeps all requests, so that the plan can be saved.
    ///
    /// # Errors
    /// If all further requests would fail too.
    pub(super) async fn plan_to_save(&self, cx: &RunContext) -> Result<Plan> {
        self.plan_containers(Plan::from_roster(self.roster.clone()), cx).await
    }

    async fn plan_containers(&self, mut plan: Plan, cx: &RunContext) -> Result<Plan> {
        let containers = &self.desired.containers;
        // The recorder has its own client, which sends the requests. Only that client knows the
        // limits.
        let recorder_client = self.recorder.as_ref().map(|recorder| recorder.client());
        let client = recorder_client.unwrap_or_else(|| self.observer.client());
        let progress = Progress::for_reading(containers, client, &cx.output);
        self.unplanned_containers.iter().for_each(|container| plan.count_included(container));
        let plan = RefCell::new(plan);
        let plan_container = async |container, mut live: LiveContainer| {
            let container_plan = match &self.session_base {
                Some(base) => base.plan(self, container, &mut live).await?,
                None => {
                    apply::plan_with_extra_facts(
                        &self.observer,
                        container,
                        &mut live,
                        &self.settings,
                    )
                    .await?
                }
            };
            plan.borrow_mut().add(container, container_plan, live);
            progress.count_step(&container.path);
            Ok(())
        };
        self.observer.read_all(containers, self.concurrency, plan_container).await?;
        let mut plan = plan.into_inner();
        self.session_base.iter().for_each(|session_base| session_base.finish(&mut plan));
        let mut plan = plan.finish(&self.extent);
        let mut warnings: Diagnostics = plan
            .acknowledge(&self.acknowledgements, &self.settings.moves, self.today)
            .into_iter()
            .collect();
        // If only a part is selected, a hold that matches nothing may be for another part.
        if self.selects_all {
            warnings.extend(self.settings.holds.unmatched_warnings(&plan, &self.settings.moves));
        }
        cx.output.eprint_diagnostics(&warnings);
        if !plan.incomplete.is_empty() || !plan.problems.is_empty() {
            cx.output.eprint(&preflight::token_scope_note(&self.run.caller));
        }
        self.session_base.iter().for_each(|session_base| {
            session_base.mark_new_acknowledgements(&mut plan, &self.acknowledgements);
        });
        Ok(plan.with_estimate(client.requests_per_minute()))
    }

    /// Reads and plans the one selected group or project. Returns its plan and its live state.
    ///
    /// # Errors
    /// If all further requests would fail too.
    pub(super) async fn inspect(&self) -> Result<(Plan, LiveContainer)> {
        let plan_and_live = Cell::new(None);
        let inspect_container = async |container, mut live: LiveContainer| {
            let container_plan =
                apply::plan_with_extra_facts(&self.observer, container, &mut live, &self.settings)
                    .await?;
            let mut plan = Plan::default();
            plan.add(container, container_plan, live.clone());
            plan_and_live.set(Some((plan.finish(&self.extent), live)));
            Ok(())
        };
        self.observer.read_all(&self.desired.containers, 1, inspect_container).await?;
        plan_and_live.into_inner().ok_or_else(|| CommandError::usage("nothing is selected"))
    }

    /// Applies the approved steps, to at most `max_concurrent` groups and projects at the same time.
    pub(super) async fn apply(
        &self,
        approved: &ApprovedPlan<'_>,
        max_concurrent: usize,
        on_event: impl Fn(Event),
    ) -> ApplyResult {
        let apply = Apply {
            desired: &self.desired_to_apply(),
            observer: &self.observer,
            writer: &WriteClient::new(self.observer.client().clone()),
            settings: &self.settings,
            trust_duration: TRUST_DURATION,
            max_containers: max_concurrent,
        };
        apply.run(approved, on_event).await
    }
}

/// Manifests without errors.
pub(super) struct Manifests {
    /// The declarations of the manifests.
    pub(super) desired: Desired,
    /// The rules of the manifests with `undeclared: include`, if there are any.
    pub(super) includes: Option<IncludeRules>,
    /// The folder of the manifests.
    pub(super) root: PathBuf,
    /// The `undrift.yaml` of the manifests.
    pub(super) config: Config,
}

/// The manifests in `loaded`, after reporting its diagnostics.
///
/// # Errors
/// If `loaded` has errors.
pub(super) fn into_manifests(loaded: LoadedManifests, cx: &RunContext) -> Result<Manifests> {
    let LoadedManifests { include_rules: includes, root, config, .. } = loaded;
    let Some(desired) = loaded.desired else {
        return Err(cx.report_unusable("the manifests", loaded.diagnostics));
    };
    cx.output.eprint_diagnostics(&loaded.diagnostics);
    cx.reports.add_diagnostics(loaded.diagnostics);
    Ok(Manifests { desired, includes, root, config })
}

/// Adds to `secrets` the secrets and files that `manifests` refer to. References in rules are
/// included.
fn add_manifest_secrets(manifests: &Manifests, mut secrets: Secrets) -> Secrets {
    let declared_values =
        manifests.desired.containers.iter().flat_map(Container::secrets_and_files);
    let rule_values = manifests.includes.iter().flat_map(IncludeRules::referenced_values);
    let values = declared_values.map(|(.., value)| value).chain(rule_values);
    for value in values {
        match value {
            Value::Secret(reference) => secrets.resolve([reference]),
            Value::File(path) => secrets.check_uploads([path]),
            Value::Plain(_) => {}
        }
    }
    secrets
}
