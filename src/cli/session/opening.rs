//! Opens a session: first the choices that need no service, then those that do.

use std::sync::Arc;

use jiff::civil::Date;

use super::{
    BaseUse, ChangeArgs, Manifests, Session, SessionArgs, SessionSource, args, into_manifests,
    preflight,
    source::{LateTransport, OpenedSource},
};
use crate::{
    address::Address,
    catalogue::settings,
    cli::{CommandError, RunContext, base, rehearsed, saved},
    desired::{Desired, Groups, Roster},
    manifest::{self, Config, Includes, config::ChangeLimit},
    observe::Observer,
    plan::{self, DriftPolicy, Extent, Holds, Limits, Outline},
    report::Run,
};

/// What to open.
pub(in crate::cli) struct SessionBuilder<'a> {
    pub(in crate::cli) args: &'a SessionArgs,
    pub(in crate::cli) changes: ChangeArgs,
    pub(in crate::cli) source: SessionSource<'a>,
    /// The base, if there is one.
    pub(in crate::cli) base: Option<(base::BaseRequest, BaseUse)>,
}

impl<'a> SessionBuilder<'a> {
    /// Uses the service in the arguments, without a base, and changes nothing.
    pub(in crate::cli) fn new(args: &'a SessionArgs) -> Self {
        Self { args, changes: ChangeArgs::default(), source: SessionSource::Service, base: None }
    }

    /// Loads the manifests, finds the service, and reads the token's user.
    ///
    /// # Errors
    /// If the manifests are wrong, a selector matches nothing, the named base or snapshot does not
    /// exist, or there is no service. A run that writes needs a base without faults.
    pub(in crate::cli) async fn open(mut self, cx: &RunContext) -> Result<Session, CommandError> {
        let (dir, surroundings) = (&self.args.dir, cx.surroundings(&self.args.allow_env)?);
        let mut loaded = manifest::load(dir, &surroundings);
        self.args.select.drop_other_warnings(&mut loaded);
        let base = match self.base.take().filter(|_| loaded.desired.is_some()) {
            Some((base, used)) => {
                Some((base.read(dir, &surroundings, used.drift == DriftPolicy::Exclude, cx)?, used))
            }
            None => None,
        };
        if let Some(content) = base.as_ref().and_then(|(found, _)| found.content.as_ref()) {
            loaded.apply_base_lints(&content.config.lints);
            let paths = loaded.paths_below_root();
            loaded.diagnostics.replace_old_warnings(&paths, &content.diagnostics, &content.paths);
        }
        let manifests = into_manifests(loaded, cx)?;
        let mut outline = Outline::default();
        if base.is_some() {
            outline.add(&manifests.desired.containers);
        }
        let selection = self.args.select.selection();
        let session = self.with(manifests, surroundings.today, cx).await?;
        Ok(match base {
            Some((found, used)) => session.with_base(found, used, (selection, outline), cx),
            None => session,
        })
    }

    /// The same for manifests that are already loaded, without a base.
    ///
    /// # Errors
    /// If a selector matches nothing, or there is no service.
    pub(in crate::cli) async fn with(
        self,
        mut manifests: Manifests,
        today: Date,
        cx: &RunContext,
    ) -> Result<Session, CommandError> {
        let select = &self.args.select;
        manifests.includes.take_if(|_| !select.may_include_undeclared(&manifests.desired));
        if manifests.includes.is_none() {
            // A selector without a match is refused before anything is read.
            manifests.desired = self.select(manifests.desired)?;
        }
        let mut acknowledged = self.changes.acknowledged(&cx.env)?;
        let (holds, over) = args::holds(&cx.env, today)?;
        cx.output.eprint_diagnostics(&over);
        let opened = self.source.open(self.args, &manifests, cx).await?;
        let OpenedSource { target, live, has_token, client, secrets, transport } = opened;
        if let Some(saved) = &select.saved {
            saved.fits(&target, jiff::Timestamp::now()).map_err(saved::unusable)?;
        }
        let Manifests { mut desired, includes, config, .. } = manifests;
        let observer = Observer::connect(client).await?.following(Arc::clone(&desired.moves));
        let token =
            if has_token { preflight::token(&observer, today, &cx.output).await? } else { None };
        let (caller, sandbox) = (observer.caller().username.clone(), observer.is_sandbox());
        let rehearsed = if sandbox { rehearsed::sections() } else { Vec::new() };
        let mut roster = Roster::default();
        if let Some(includes) = includes {
            (desired, roster) = self.include_by_rules(includes, desired, &observer, cx).await?;
            transport.declare(&desired, &secrets);
        }
        let mut unplanned = select.take_unplanned(&mut desired);
        unplanned.retain(|container| container.brought_in.is_some());
        acknowledged.extend(desired.acknowledgements.iter().cloned());
        let settings = plan::PlanSettings {
            is_offline: matches!(transport, LateTransport::Offline(_)),
            ..plan::PlanSettings::of(observer.caller().clone(), secrets, &desired)
        };
        let (_, reach) = limits(&config);
        Ok(Session {
            settings: self.settings(settings, &desired, holds, &config),
            desired,
            roster,
            unplanned,
            keeps_parts: select.saved.is_some(),
            selects_all: select.is_everything(),
            acknowledged,
            today,
            observer,
            extent: Extent { limit: self.changes.limit, reach, spares_drift: false },
            concurrency: self.args.connect.in_flight(&config).most(),
            run: Run { target, caller, sandbox, rehearsed, live, token },
            recorder: match transport {
                LateTransport::Recorder(recorder) => Some(recorder),
                LateTransport::Service | LateTransport::Offline(_) => None,
            },
            compared: None,
        })
    }

    fn select(&self, desired: Desired) -> Result<Desired, CommandError> {
        self.args.select.select(desired.without_idle_acknowledgements(), &self.changes.resend)
    }

    /// Adds the containers that rules include, which only the service knows. Returns also those
    /// that rules match and that are not planned.
    async fn include_by_rules(
        &self,
        includes: Includes,
        desired: Desired,
        observer: &Observer,
        cx: &RunContext,
    ) -> Result<(Desired, Roster), CommandError> {
        let mut roster = observer.roster(&includes.roster_request(&desired)).await?;
        let desired = includes
            .bring_in(desired, &mut roster)
            .map_err(|wrong| cx.unusable("the manifests", wrong))?;
        cx.output.eprint_diagnostics(&roster.idle);
        cx.reports.add_diagnostics(roster.idle.clone());
        let desired = self.select(desired)?;
        let roster = self.args.select.select_roster(roster, &desired.moves);
        Ok((desired, roster))
    }

    /// `settings` with what the configuration and the options say about `desired`.
    fn settings(
        &self,
        settings: plan::PlanSettings,
        desired: &Desired,
        holds: Holds,
        config: &Config,
    ) -> plan::PlanSettings {
        let is_held = |address: &Address| holds.until(address, &desired.moves).is_some();
        let free = desired.containers.iter();
        let free =
            free.filter(|container| !is_held(&container.address().section(settings::SECTION)));
        plan::PlanSettings {
            release: config.service.release,
            created: desired.created_unless(is_held),
            groups: Groups::of(free),
            resend: self.changes.resend.clone(),
            holds,
            limits: limits(config).0,
            hosts: config.service.import_hosts.names(),
            ..settings
        }
    }
}

/// The limits of guards: for removals, and for containers that only rules include.
pub(super) fn limits(config: &Config) -> (Limits, Limits) {
    let guards = config.guards;
    (limits_of(guards.removals, Limits::default()), limits_of(guards.reach, Limits::REACH))
}

fn limits_of(limit: ChangeLimit, defaults: Limits) -> Limits {
    let count = limit.count.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    Limits { count: count.unwrap_or(defaults.count), share: limit.share.unwrap_or(defaults.share) }
}
