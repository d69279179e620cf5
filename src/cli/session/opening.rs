//! Opens a session. The steps that need no service come first, then the steps that need one.

use std::sync::Arc;

use jiff::civil::Date;

use super::{
    BaseUse, ChangeArgs, Manifests, Session, SessionArgs, SessionSource, args, into_manifests,
    preflight, source::OpenedSource,
};
use crate::{
    address::Address,
    catalogue::settings,
    cli::{
        Result, RunContext,
        base::{self, ResolvedBase},
        rehearsed, saved,
    },
    desired::{Desired, GroupDeclarations, Roster},
    manifest::{self, Config, IncludeRules, config::ChangeLimit},
    observe::Observer,
    plan::{self, DeclarationOutline, DriftPolicy, Extent, GuardLimits, Holds},
    report::ReportedRun,
};

/// The properties of the session to open.
pub(in crate::cli) struct SessionBuilder<'a> {
    pub(in crate::cli) args: &'a SessionArgs,
    pub(in crate::cli) changes: ChangeArgs,
    pub(in crate::cli) source: SessionSource<'a>,
    /// The base, if there is one.
    pub(in crate::cli) base: Option<(base::BaseRequest, BaseUse)>,
    /// True for a plan that may be applied.
    pub(in crate::cli) is_plan_for_apply: bool,
}

impl<'a> SessionBuilder<'a> {
    /// The properties of a session with the service in the arguments and without a base, for a run
    /// that changes nothing.
    pub(in crate::cli) fn new(args: &'a SessionArgs) -> Self {
        Self {
            args,
            changes: ChangeArgs::default(),
            source: SessionSource::Service,
            base: None,
            is_plan_for_apply: false,
        }
    }

    /// Loads the manifests, finds the service, and reads the token's user.
    ///
    /// # Errors
    /// If the manifests are wrong, a selector matches nothing, the named base or snapshot does not
    /// exist, or there is no service. A run that writes needs a base without faults.
    pub(in crate::cli) async fn open(mut self, cx: &RunContext) -> Result<Session> {
        let (dir, load_environment) =
            (&self.args.dir, cx.make_load_environment(&self.args.access.allow_env)?);
        let mut loaded = manifest::load(dir, &load_environment);
        self.args.select.drop_other_warnings(&mut loaded);
        let base_and_use = match self.base.take().filter(|_| loaded.desired.is_some()) {
            Some((base, base_use)) => {
                let excludes_drift = base_use.drift_policy == DriftPolicy::Exclude;
                Some((base.resolve(dir, &load_environment, excludes_drift, cx)?, base_use))
            }
            None => None,
        };
        if let Some((ResolvedBase { content: Some(content), .. }, _)) = &base_and_use {
            loaded.apply_base_lints(&content.config.lints);
            let paths = loaded.paths_below_root();
            loaded.diagnostics.replace_old_warnings(&paths, &content.diagnostics, &content.paths);
        }
        let manifests = into_manifests(loaded, cx)?;
        let mut outline = DeclarationOutline::default();
        if base_and_use.is_some() {
            outline.add(&manifests.desired.containers);
        }
        let selection = self.args.select.selection();
        let session = self.open_manifests(manifests, load_environment.today, cx).await?;
        Ok(match base_and_use {
            Some((resolved_base, base_use)) => {
                session.with_base(resolved_base, base_use, (selection, outline), cx)
            }
            None => session,
        })
    }

    /// Like [`Self::open`], for manifests that are already loaded, and without a base.
    ///
    /// # Errors
    /// If a selector matches nothing, or there is no service.
    pub(in crate::cli) async fn open_manifests(
        self,
        mut manifests: Manifests,
        today: Date,
        cx: &RunContext,
    ) -> Result<Session> {
        let select = &self.args.select;
        manifests.includes.take_if(|_| !select.may_include_undeclared(&manifests.desired));
        if manifests.includes.is_none() {
            // A selector that matches nothing is refused before anything is read from the service.
            manifests.desired = self.select(manifests.desired)?;
        }
        let mut acknowledgements = self.changes.acknowledgements(&cx.env)?;
        let (holds, expired_warnings) = args::parse_holds(&cx.env, today)?;
        cx.output.eprint_diagnostics(&expired_warnings);
        let opened_source = self.source.open(self.args, &manifests, cx).await?;
        if let Some(saved_plan) = &select.saved_plan {
            let target_check =
                saved_plan.check_target(&opened_source.target, jiff::Timestamp::now());
            target_check.map_err(saved::unusable_failure)?;
        }
        let Manifests { mut desired, includes, config, .. } = manifests;
        let (connect, client) = (&self.args.access.connect, opened_source.client.clone());
        let observer = connect.connect_observer(client, &opened_source.target, &cx.env).await?;
        let observer = observer.with_moves(Arc::clone(&desired.moves));
        let (has_token, output) = (opened_source.has_token, &cx.output);
        let token =
            if has_token { preflight::check_token(&observer, today, output).await? } else { None };
        let (caller, sandbox) = (observer.caller().username.clone(), observer.is_sandbox());
        let rehearsed = if sandbox { rehearsed::rehearsed_sections() } else { Vec::new() };
        let mut roster = Roster::default();
        if let Some(includes) = includes {
            (desired, roster) = self.include_by_rules(includes, desired, &observer, cx).await?;
            opened_source.use_declarations(&desired);
        }
        let mut unplanned_containers = select.take_unplanned(&mut desired);
        unplanned_containers.retain(|container| container.including_glob.is_some());
        acknowledgements.extend(desired.acknowledgements.iter().cloned());
        let OpenedSource { target, snapshot_source: snapshot, secrets, recorder, .. } =
            opened_source;
        let can_write =
            has_token && token.as_ref().is_none_or(|properties| !properties.cannot_write());
        let settings = plan::PlanSettings {
            may_write: self.is_plan_for_apply && can_write,
            ..plan::PlanSettings::for_run(observer.caller().clone(), secrets, &desired)
        };
        let (_, reach_limits) = guard_limits(&config);
        Ok(Session {
            settings: self.complete_settings(settings, &desired, holds, &config),
            desired,
            roster,
            unplanned_containers,
            keeps_container_plans: select.saved_plan.is_some(),
            selects_all: select.is_everything(),
            acknowledgements,
            today,
            observer,
            extent: Extent {
                max_containers: self.changes.limit,
                reach_limits,
                ignores_drift: false,
            },
            concurrency: self.args.access.connect.in_flight_range(&config).max(),
            run: ReportedRun { target, caller, sandbox, rehearsed, snapshot, token },
            recorder,
            session_base: None,
        })
    }

    fn select(&self, desired: Desired) -> Result<Desired> {
        self.args.select.select(desired.without_idle_acknowledgements(), &self.changes.resend)
    }

    /// Adds the containers that rules include. Only the service knows which of them exist. The
    /// roster contains the containers that rules match but that are not planned.
    async fn include_by_rules(
        &self,
        includes: IncludeRules,
        desired: Desired,
        observer: &Observer,
        cx: &RunContext,
    ) -> Result<(Desired, Roster)> {
        let mut roster = observer.read_roster(&includes.roster_query(&desired)).await?;
        let desired = includes
            .include_from(desired, &mut roster)
            .map_err(|faults| cx.report_unusable("the manifests", faults))?;
        cx.output.eprint_diagnostics(&roster.idle_rule_warnings);
        cx.reports.add_diagnostics(roster.idle_rule_warnings.clone());
        let desired = self.select(desired)?;
        let selection = self.args.select.selection();
        roster.containers.retain(|member| selection.selects_path(&member.path, &desired.moves));
        Ok((desired, roster))
    }

    /// Completes `settings` with values from `desired`, the configuration and the options.
    fn complete_settings(
        &self,
        settings: plan::PlanSettings,
        desired: &Desired,
        holds: Holds,
        config: &Config,
    ) -> plan::PlanSettings {
        let is_held = |address: &Address| holds.held_until(address, &desired.moves).is_some();
        let containers = desired.containers.iter();
        let unheld_containers = containers
            .filter(|container| !is_held(&container.address().with_section(settings::SECTION)));
        plan::PlanSettings {
            release: config.service.release,
            creatable_containers: desired.creatable_containers(is_held),
            group_declarations: GroupDeclarations::from_containers(unheld_containers),
            resend_selectors: self.changes.resend.clone(),
            holds,
            guard_limits: guard_limits(config).0,
            host_names: config.service.import_hosts.names(),
            is_offline: matches!(self.source, SessionSource::Snapshot(_)),
            ..settings
        }
    }
}

/// The limits of guards: for removals, and for containers that only rules include.
pub(super) fn guard_limits(config: &Config) -> (GuardLimits, GuardLimits) {
    let guards = config.guards;
    (
        complete_limits(guards.removals, GuardLimits::default()),
        complete_limits(guards.reach, GuardLimits::REACH),
    )
}

fn complete_limits(limit: ChangeLimit, defaults: GuardLimits) -> GuardLimits {
    let count = limit.count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    GuardLimits {
        count: count.unwrap_or(defaults.count),
        share: limit.share.unwrap_or(defaults.share),
    }
}
