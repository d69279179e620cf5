//! What `plan`, `apply` and `drift` have in common: manifests, a service, and the way from both to
//! a plan. `args` are the options, `manifests` what is loaded, `way` what is looked at, `preflight` what
//! is said of the token before anything is planned, `against` what a base adds.

mod against;
mod args;
mod manifests;
mod preflight;
mod way;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::civil::Date;

use super::{
    Context, base,
    connect::{self, ConnectArgs, Embedded, Endpoint},
    exit::{Exit, Failure},
    reports::Reports,
    saved,
};
pub(super) use against::Use;
pub(super) use args::{ChangeArgs, SessionArgs, selects_something};
pub(super) use manifests::{Manifests, usable};
pub(super) use way::{LiveArgs, Way};

use crate::{
    api::{HttpTransport, ReadClient, Settings},
    apply,
    desired::{Acknowledgement, Container, Desired, Groups, Roster},
    diagnostic::Diagnostics,
    live::Live,
    manifest::{self, Config, Surroundings},
    observe::Observer,
    plan::{self, Extent, Limits, Plan},
    report::{Run, progress::Progress},
    secret::Secrets,
    snapshot::Taking,
};
use against::Compared;
use manifests::{secrets_of, tell};

/// Everything that a run needs after its start.
pub(super) struct Session {
    /// What is declared and selected.
    pub(super) desired: Desired,
    /// What exists and is not planned, although rules are about it.
    roster: Roster,
    /// What rules bring in besides and a saved plan is not about: it counts for guards alone.
    apart: Vec<Container>,
    /// Whether plans remember what they could see, to be compared with a saved one.
    remembers: bool,
    /// How far the run goes.
    extent: Extent,
    /// What guards may let pass.
    acknowledged: Vec<Acknowledgement>,
    /// The day of the run.
    today: Date,
    /// Whether the run looks at everything that is declared.
    selects_all: bool,
    /// What reads.
    pub(super) observer: Observer,
    /// What plans depend on.
    pub(super) settings: plan::Settings,
    /// How many projects are looked at at once.
    pub(super) ahead: usize,
    /// What reports say about it.
    pub(super) run: Run,
    /// The snapshot that is taken.
    pub(super) taking: Option<Arc<Taking>>,
    embedded: Option<Embedded>,
    compared: Option<Compared>,
}

impl Session {
    /// Loads the manifests, finds the service, and asks who the token belongs to.
    ///
    /// # Errors
    /// If the manifests are wrong, a selector selects nothing, or there is no service to talk to.
    pub(super) async fn open(
        args: &SessionArgs,
        changes: &ChangeArgs,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Self, Failure> {
        Self::by(Way::Service, args, changes, reports, cx).await
    }

    /// The same for what `way` leads to.
    ///
    /// # Errors
    /// As of [`Self::open`], or if there is no snapshot where one is named.
    pub(super) async fn by(
        way: Way<'_>,
        args: &SessionArgs,
        changes: &ChangeArgs,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Self, Failure> {
        let everything = Use { heals: true, only_changed: false };
        Self::open_against(way, (None, everything), args, changes, reports, cx).await
    }

    /// The same against a `base`, if there is one.
    ///
    /// # Errors
    /// If the base that was named is not there, too. What is written needs one without faults.
    pub(super) async fn open_against(
        way: Way<'_>,
        (base, used): (Option<base::Request>, Use),
        args: &SessionArgs,
        changes: &ChangeArgs,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Self, Failure> {
        let around = Surroundings::of_process();
        let manifests = usable(manifest::load(&args.dir, &around), reports, cx)?;
        let base = base.map(|base| base.read(&args.dir, &around, !used.heals, cx)).transpose()?;
        let session = Self::along(way, manifests, around.today, args, changes, reports, cx).await?;
        Ok(match base {
            Some(found) => session.against(found, used, cx),
            None => session,
        })
    }

    /// The same for manifests that were loaded already.
    ///
    /// # Errors
    /// If a selector selects nothing, or there is no service to talk to.
    pub(super) async fn of(
        manifests: Manifests,
        today: Date,
        args: &SessionArgs,
        changes: &ChangeArgs,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Self, Failure> {
        Self::along(Way::Service, manifests, today, args, changes, reports, cx).await
    }

    async fn along(
        way: Way<'_>,
        manifests: Manifests,
        today: Date,
        args: &SessionArgs,
        changes: &ChangeArgs,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Self, Failure> {
        let Manifests { mut desired, includes, root, config } = manifests;
        let includes = includes.filter(|_| args.select.reaches_beyond(&desired));
        // Without such rules a slip is told before anything is read.
        if includes.is_none() {
            desired = args.select.of(desired.without_idle_acknowledgements(), &changes.resend)?;
        }
        let mut acknowledged = changes.acknowledged(&cx.env)?;
        let (holds, over) = args::holds(&cx.env, today)?;
        cx.output.tell(&over.render(cx.output.stderr.into()));
        let allowed = args.allowed(&cx.env)?;
        let mut found = way.find(args, &root, &config, cx).await?;
        let ahead = args.connect.in_flight(&config).most();
        let secrets = found.secrets(&root, &cx.env).allowing(allowed);
        let secrets = Arc::new(secrets_of(&desired, includes.as_ref(), secrets));
        cx.output.redactor().learn(Arc::clone(&secrets));
        let (target, live, has_token) = (found.target(), found.live(), found.has_token());
        if let Some(saved) = &args.select.saved {
            saved.fits(&target, jiff::Timestamp::now()).map_err(saved::unusable)?;
        }
        let (client, through) = found.client(args, &config, Arc::clone(&secrets), cx)?;
        through.declare(&desired, &secrets);
        let observer = Observer::connect(client).await?.following(Arc::clone(&desired.moves));
        let token = match has_token {
            true => preflight::token(&observer, today, &cx.output).await?,
            false => None,
        };
        let mut roster = Roster::default();
        if let Some(includes) = includes {
            roster = observer.roster(&includes.ask(&desired)).await?;
            let sees_all = observer.caller().administrator;
            desired = includes
                .bring_in(desired, &mut roster, sees_all)
                .map_err(|wrong| tell(wrong, reports, cx))?;
            desired = args.select.of(desired.without_idle_acknowledgements(), &changes.resend)?;
            roster = args.select.of_roster(roster);
        }
        // Rules may have brought in more.
        through.declare(&desired, &secrets);
        let mut apart = args.select.apart(&mut desired);
        apart.retain(|container| container.brought_in.is_some());
        let remembers = args.select.saved.is_some();
        acknowledged.extend(desired.acknowledgements.iter().cloned());
        let run = Run {
            target,
            caller: observer.caller().username.clone(),
            sandbox: observer.is_sandbox(),
            live,
            token,
        };
        let settings = plan::Settings {
            caller: observer.caller().clone(),
            secrets,
            release: config.service.release,
            created: desired
                .created_unless(|address| holds.until(address, &desired.moves).is_some()),
            moves: Arc::clone(&desired.moves),
            groups: Groups::of(&desired.containers),
            resend: changes.resend.clone(),
            holds,
            limits: limits(&config).0,
            hosts: config.service.import_hosts.names(),
        };
        let extent = Extent { limit: changes.limit, reach: limits(&config).1 };
        let embedded = found.embedded();
        Ok(Self {
            desired,
            roster,
            apart,
            remembers,
            extent,
            acknowledged,
            today,
            selects_all: args.select.is_everything(),
            observer,
            settings,
            ahead,
            run,
            taking: through.taking(),
            embedded,
            compared: None,
        })
    }

    /// Reads what is selected and plans it.
    ///
    /// # Errors
    /// If reading on is pointless.
    pub(super) async fn plan(&self, cx: &Context) -> Result<Plan, Failure> {
        let containers: Vec<&Container> = self.desired.containers.iter().collect();
        let progress = Progress::new(
            cx.output.progress,
            "reading",
            containers.len(),
            Arc::clone(&self.settings.secrets),
        );
        let mut plan = Plan::beside(self.roster.clone());
        if self.remembers {
            plan = plan.remembering();
        }
        self.apart.iter().for_each(|container| plan.also_brought_in(container));
        let plan = Mutex::new(plan);
        let each = async |container, mut live: Live| {
            let planned = match &self.compared {
                Some(compared) => compared.plan(self, container, &mut live).await?,
                None => apply::plan(&self.observer, container, &mut live, &self.settings).await?,
            };
            plan.lock().unwrap_or_else(PoisonError::into_inner).add(container, planned, live);
            progress.step(&container.path);
            Ok(())
        };
        self.observer.all(&containers, self.ahead, each).await?;
        let mut plan = plan.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.compared.iter().for_each(|compared| compared.finish(&mut plan));
        let mut plan = plan.sorted(&self.extent);
        let mut warnings: Diagnostics = plan
            .acknowledge(&self.acknowledged, &self.settings.moves, self.today)
            .into_iter()
            .collect();
        // A hold for another part of the organisation is no slip.
        if self.selects_all {
            warnings.extend(self.settings.holds.idle(&plan, &self.settings.moves));
        }
        if !warnings.is_empty() {
            cx.output.tell(&warnings.render(cx.output.stderr.into()));
        }
        if !plan.incomplete.is_empty() || !plan.problems.is_empty() {
            cx.output.tell(&preflight::reach(&self.run.caller));
        }
        self.compared.iter().for_each(|compared| compared.mark(&mut plan, &self.acknowledged));
        Ok(plan.estimated(self.observer.client().a_minute()))
    }

    /// Reads the one group or project that is selected and plans it, and hands out both.
    ///
    /// # Errors
    /// If reading on is pointless.
    pub(super) async fn look(&self) -> Result<(Plan, Live), Failure> {
        let containers: Vec<&Container> = self.desired.containers.iter().collect();
        let found = Mutex::new(None);
        let each = async |container, mut live: Live| {
            let planned = apply::plan(&self.observer, container, &mut live, &self.settings).await?;
            let mut plan = Plan::default();
            plan.add(container, planned, live.clone());
            *found.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((plan.sorted(&self.extent), live));
            Ok(())
        };
        self.observer.all(&containers, 1, each).await?;
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.ok_or_else(|| Failure::usage("nothing is selected"))
    }

    /// Refuses to apply anything with a token that cannot write.
    ///
    /// # Errors
    /// If that is certain.
    pub(super) fn may_write(&self) -> Result<(), Failure> {
        preflight::may_write(self.run.token.as_ref())
    }

    /// Ends the embedded service, if there is one, with everything written.
    pub(super) async fn close(self) {
        if let Some(embedded) = self.embedded {
            connect::stop(embedded).await;
        }
    }
}

impl ConnectArgs {
    /// A client of the service at `endpoint`.
    ///
    /// # Errors
    /// If the token, the certificates or the proxy are of no use.
    pub(super) fn client(
        &self,
        endpoint: &Endpoint,
        config: &Config,
        secrets: Arc<Secrets>,
    ) -> Result<ReadClient, Failure> {
        let in_flight = self.in_flight(config);
        let options = self.http_options(in_flight)?;
        let transport = HttpTransport::new(&endpoint.service, &endpoint.token, &options)
            .map_err(|error| Failure::new(Exit::Usage, error))?;
        let deadline = self.deadline.map(Duration::from_secs);
        let settings = Settings {
            in_flight,
            max_requests: self.max_requests,
            deadline,
            ..Settings::default()
        };
        Ok(ReadClient::new(endpoint.service.clone(), Arc::new(transport), secrets, settings))
    }
}

/// What guards let pass: removals, and changes of what only rules bring in.
fn limits(config: &Config) -> (Limits, Limits) {
    let of = |count: Option<u32>, share: Option<f64>, defaults: Limits| Limits {
        count: count.map_or(defaults.count, |n| usize::try_from(n).unwrap_or(usize::MAX)),
        share: share.unwrap_or(defaults.share),
    };
    let (removals, reach) = (config.guards.removals, config.guards.reach);
    (
        of(removals.count, removals.share, Limits::default()),
        of(reach.count, reach.share, Limits::REACH),
    )
}
