//! What `plan`, `apply` and `drift` have in common: manifests, a service, and the way from both to
//! a plan. `args` are the options, `manifests` what is loaded, `against` what a base adds.

mod against;
mod args;
mod manifests;

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
};
pub(super) use against::Use;
pub(super) use args::{ChangeArgs, SessionArgs, selects_something};
pub(super) use manifests::{Manifests, usable};

use crate::{
    api::{HttpTransport, ReadClient, Settings},
    apply,
    desired::{Acknowledgement, Container, Desired, Roster},
    diagnostic::Diagnostics,
    live::Live,
    manifest::{self, Config, Surroundings},
    observe::Observer,
    plan::{self, Extent, Limits, Plan},
    report::{Run, progress::Progress},
    secret::Secrets,
};
use against::Compared;
use manifests::{secrets_of, tell};

/// Everything that a run needs after its start.
pub(super) struct Session {
    /// What is declared and selected.
    pub(super) desired: Desired,
    /// What exists and is not planned, although rules are about it.
    roster: Roster,
    /// How far the run goes.
    extent: Extent,
    /// What guards may let pass.
    acknowledged: Vec<Acknowledgement>,
    /// The day of the run.
    today: Date,
    /// What reads.
    pub(super) observer: Observer,
    /// What plans depend on.
    pub(super) settings: plan::Settings,
    /// How many projects are looked at at once.
    pub(super) ahead: usize,
    /// What reports say about it.
    pub(super) run: Run,
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
        let around = Surroundings::of_process();
        let manifests = usable(manifest::load(&args.dir, &around), reports, cx)?;
        Self::of(manifests, around.today, args, changes, reports, cx).await
    }

    /// The same against a `base`, if there is one.
    ///
    /// # Errors
    /// If the base that was named is not there, too. What is written needs one without faults.
    pub(super) async fn open_against(
        base: Option<base::Request>,
        used: Use,
        args: &SessionArgs,
        changes: &ChangeArgs,
        reports: &mut Reports,
        cx: &Context,
    ) -> Result<Self, Failure> {
        let around = Surroundings::of_process();
        let manifests = usable(manifest::load(&args.dir, &around), reports, cx)?;
        let base = base.map(|base| base.read(&args.dir, &around, !used.heals, cx)).transpose()?;
        let session = Self::of(manifests, around.today, args, changes, reports, cx).await?;
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
        let Manifests { mut desired, includes, root, config } = manifests;
        let includes = includes.filter(|_| args.select.reaches_beyond(&desired));
        // Without such rules a slip is told before anything is read.
        if includes.is_none() {
            desired = args.select.of(desired.without_idle_acknowledgements(), &changes.resend)?;
        }
        let mut acknowledged = changes.acknowledged(&cx.env)?;
        let allowed = args.allowed(&cx.env)?;
        let endpoint = args.connect.endpoint(&root, &config, &cx.env, &cx.output).await?;
        let ahead = args.connect.in_flight(&config).most();
        let secrets = secrets_of(&desired, includes.as_ref(), root, allowed, &endpoint);
        let secrets = Arc::new(secrets);
        cx.output.redactor().learn(Arc::clone(&secrets));
        let client = args.connect.client(&endpoint, &config, Arc::clone(&secrets))?;
        let observer = Observer::connect(client).await?.following(Arc::clone(&desired.moves));
        let target = if endpoint.embedded.is_some() {
            "sandbox".to_owned()
        } else {
            endpoint.service.to_string()
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
        acknowledged.extend(desired.acknowledgements.iter().cloned());
        let run = Run {
            target,
            caller: observer.caller().username.clone(),
            sandbox: observer.is_sandbox(),
        };
        let settings = plan::Settings {
            caller: observer.caller().clone(),
            secrets,
            release: config.service.release,
            created: desired.created(),
            moves: Arc::clone(&desired.moves),
            resend: changes.resend.clone(),
            limits: limits(&config).0,
            hosts: config.service.import_hosts.names(),
        };
        let extent = Extent { limit: changes.limit, reach: limits(&config).1 };
        let embedded = endpoint.embedded;
        Ok(Self {
            desired,
            roster,
            extent,
            acknowledged,
            today,
            observer,
            settings,
            ahead,
            run,
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
        let plan = Mutex::new(Plan::beside(self.roster.clone()));
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
        let warnings: Diagnostics =
            plan.acknowledge(&self.acknowledged, self.today).into_iter().collect();
        if !warnings.is_empty() {
            cx.output.tell(&warnings.render(cx.output.stderr.into()));
        }
        self.compared.iter().for_each(|compared| compared.mark(&mut plan, &self.acknowledged));
        Ok(plan)
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
