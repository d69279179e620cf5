//! Opens a session: first the choices that need no service, then those that do.

use std::{path::PathBuf, sync::Arc};

use jiff::civil::Date;

use super::{
    ChangeArgs, Manifests, PlanInputs, Session, SessionArgs, Source, Use, args,
    manifests::{secrets_of, tell},
    preflight,
    source::{Opened, Transports},
    usable,
};
use crate::{
    address::Address,
    cli::{Context, base, exit::Failure, rehearsed, reports::Reports, saved},
    desired::{Acknowledgement, Desired, Groups, Roster},
    kinds::settings,
    manifest::{self, Config, Includes, Surroundings, config::Limit},
    observe::Observer,
    plan::{self, Drift, Extent, Holds, Limits, Outline},
    report::Run,
    secret::Secrets,
};

/// What to open.
pub(in crate::cli) struct Opening<'a> {
    args: &'a SessionArgs,
    changes: ChangeArgs,
    source: Source<'a>,
    base: Option<(base::Request, Use)>,
}

impl<'a> Opening<'a> {
    /// Uses the service in the arguments.
    pub(in crate::cli) fn of(args: &'a SessionArgs) -> Self {
        Self { args, changes: ChangeArgs::default(), source: Source::Service, base: None }
    }

    /// Uses `source` instead.
    pub(in crate::cli) fn from(self, source: Source<'a>) -> Self {
        Self { source, ..self }
    }

    /// For changes.
    pub(in crate::cli) fn changing(self, changes: &ChangeArgs) -> Self {
        Self { changes: changes.clone(), ..self }
    }

    /// With a `base`, if there is one.
    pub(in crate::cli) fn against(self, base: Option<base::Request>, used: Use) -> Self {
        Self { base: base.map(|base| (base, used)), ..self }
    }

    /// Loads the manifests, finds the service, and reads the token's user.
    ///
    /// # Errors
    /// If the manifests are wrong, a selector matches nothing, the named base or snapshot does not
    /// exist, or there is no service. A run that writes needs a base without faults.
    pub(in crate::cli) async fn open(
        mut self,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Session, Failure> {
        let (dir, around) = (&self.args.dir, Surroundings::of_process());
        let mut loaded = manifest::load(dir, &around);
        self.args.select.without_others(&mut loaded);
        let read = |(base, used): (base::Request, Use)| {
            base.read(dir, &around, used.drift == Drift::Exclude, cx).map(|found| (found, used))
        };
        let base = self.base.take().filter(|_| loaded.desired.is_some());
        let base = base.map(read).transpose()?;
        if let Some(content) = base.as_ref().and_then(|(found, _)| found.content.as_ref()) {
            loaded.against(&content.config.lints);
            let paths = loaded.paths_below_root();
            loaded.diagnostics.since(&paths, &content.diagnostics, &content.paths);
        }
        let manifests = usable(loaded, reports, cx)?;
        let mut outline = Outline::default();
        if base.is_some() {
            outline.add(&manifests.desired.containers);
        }
        let selection = self.args.select.selection();
        let session = self.with(manifests, around.today, reports, cx).await?;
        Ok(match base {
            Some((found, used)) => session.against(found, used, (selection, outline), cx),
            None => session,
        })
    }

    /// The same for manifests that are already loaded, without a base.
    ///
    /// # Errors
    /// If a selector matches nothing, or there is no service.
    pub(in crate::cli) async fn with(
        self,
        manifests: Manifests,
        today: Date,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Session, Failure> {
        let chosen = self.choose(manifests, today, cx)?;
        chosen.reach(&self, cx).await?.session(&self, reports, cx).await
    }

    /// Selects, and reads the environment. Without rules that include more, a selector without a
    /// match is refused before anything is read.
    fn choose(&self, manifests: Manifests, today: Date, cx: &Context) -> Result<Choices, Failure> {
        let Manifests { mut desired, includes, root, config, .. } = manifests;
        let includes = includes.filter(|_| self.args.select.reaches_beyond(&desired));
        if includes.is_none() {
            desired = self.select(desired)?;
        }
        let acknowledged = self.changes.acknowledged(&cx.env)?;
        let (holds, over) = args::holds(&cx.env, today)?;
        cx.output.tell_faults(&over);
        Ok(Choices { desired, includes, root, config, acknowledged, holds, today })
    }

    fn select(&self, desired: Desired) -> Result<Desired, Failure> {
        self.args.select.of(desired.without_idle_acknowledgements(), &self.changes.resend)
    }
}

/// The choices made before anything is read.
struct Choices {
    desired: Desired,
    /// The rules with `undeclared: include`.
    includes: Option<Includes>,
    root: PathBuf,
    config: Config,
    acknowledged: Vec<Acknowledgement>,
    holds: Holds,
    today: Date,
}

impl Choices {
    /// Finds the service, and reads the token's user.
    async fn reach(self, opening: &Opening<'_>, cx: &Context) -> Result<Connected, Failure> {
        let args = opening.args;
        let allowed = args.allowed(&cx.env)?;
        let mut found = opening.source.find(args, &self.root, &self.config, cx).await?;
        let secrets = found.secrets(&self.root, &cx.env).allowing(allowed);
        let secrets = Arc::new(secrets_of(&self.desired, self.includes.as_ref(), secrets));
        cx.output.redactor().learn(Arc::clone(&secrets));
        let target = found.target();
        if let Some(saved) = &args.select.saved {
            saved.fits(&target, jiff::Timestamp::now()).map_err(saved::unusable)?;
        }
        let (live, has_token) = (found.live(), found.has_token());
        let (client, through) = found.client(args, &self.config, Arc::clone(&secrets), cx)?;
        through.declare(&self.desired, &secrets);
        let moves = Arc::clone(&self.desired.moves);
        let observer = Observer::connect(client).await?.following(moves);
        let token = match has_token {
            true => preflight::token(&observer, self.today, &cx.output).await?,
            false => None,
        };
        let run = Run {
            target,
            caller: observer.caller().username.clone(),
            sandbox: observer.is_sandbox(),
            rehearsed: if observer.is_sandbox() { rehearsed::sections() } else { Vec::new() },
            live,
            token,
        };
        Ok(Connected { chosen: self, found, secrets, through, observer, run })
    }
}

/// A service that answers, with the choices so far.
struct Connected {
    chosen: Choices,
    found: Opened,
    secrets: Arc<Secrets>,
    through: Transports,
    observer: Observer,
    run: Run,
}

impl Connected {
    /// Adds the containers that rules include, which only the service knows.
    async fn session(
        self,
        opening: &Opening<'_>,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Session, Failure> {
        let Self { chosen, found, secrets, through, observer, run } = self;
        let Choices { mut desired, includes, config, mut acknowledged, holds, today, .. } = chosen;
        let select = &opening.args.select;
        let mut roster = Roster::default();
        if let Some(includes) = includes {
            roster = observer.roster(&includes.ask(&desired)).await?;
            desired = includes
                .bring_in(desired, &mut roster)
                .map_err(|wrong| tell(wrong, reports, cx))?;
            cx.output.tell_faults(&roster.idle);
            reports.keep(roster.idle.clone());
            desired = opening.select(desired)?;
            roster = select.of_roster(roster, &desired.moves);
            through.declare(&desired, &secrets);
        }
        let mut apart = select.take_unplanned(&mut desired);
        apart.retain(|container| container.brought_in.is_some());
        acknowledged.extend(desired.acknowledgements.iter().cloned());
        let (removals, reach) = limits(&config);
        let is_held = |address: &Address| holds.until(address, &desired.moves).is_some();
        let changed = desired
            .containers
            .iter()
            .filter(|of| !is_held(&of.address().section(settings::SECTION)));
        let settings = plan::Settings {
            release: config.service.release,
            created: desired.created_unless(is_held),
            groups: Groups::of(changed),
            resend: opening.changes.resend.clone(),
            holds,
            limits: removals,
            hosts: config.service.import_hosts.names(),
            is_offline: through.is_offline(),
            ..plan::Settings::of(observer.caller().clone(), secrets, &desired)
        };
        Ok(Session {
            desired,
            beside: PlanInputs {
                roster,
                apart,
                remembers: select.saved.is_some(),
                selects_all: select.is_everything(),
            },
            acknowledged,
            today,
            observer,
            settings,
            extent: Extent { limit: opening.changes.limit, reach, spares_drift: false },
            ahead: opening.args.connect.in_flight(&config).most(),
            run,
            taking: through.taking,
            embedded: found.embedded(),
            compared: None,
        })
    }
}

/// The limits of guards: for removals, and for containers that only rules include.
pub(super) fn limits(config: &Config) -> (Limits, Limits) {
    let of = |limit: Limit, defaults: Limits| Limits {
        count: limit.count.map_or(defaults.count, |n| usize::try_from(n).unwrap_or(usize::MAX)),
        share: limit.share.unwrap_or(defaults.share),
    };
    let guards = config.guards;
    (of(guards.removals, Limits::default()), of(guards.reach, Limits::REACH))
}
