//! What `plan`, `apply` and `drift` have in common: manifests, a service, and the way from both to
//! a plan.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::civil::Date;

use super::{
    Context,
    connect::{self, ConnectArgs, Embedded, Endpoint},
    environment::Environment,
    exit::{Exit, Failure},
    reports::Reports,
};
use crate::{
    address::{Address, Selector},
    api::{HttpTransport, ReadClient, Settings},
    apply,
    desired::{Acknowledgement, Container, Desired, Roster},
    diagnostic::Diagnostics,
    live::Live,
    manifest::{self, Config, Includes, Loaded, Surroundings},
    observe::Observer,
    plan::{self, Extent, Limits, Plan},
    report::{Run, Style, progress::Progress},
    secret::{Allowed, Secrets},
    selection::Selection,
    value::Value,
};

/// Where it is looked for which environment variables manifests may use, after `--allow-env`.
const ALLOW_NAME: &str = "UNDRIFT_ALLOW_ENV";
/// Where acknowledgements are looked for, after `--ack`.
const ACK_NAME: &str = "UNDRIFT_ACK";

/// Which manifests, which service, which part of both.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SessionArgs {
    /// Folder of manifests, or one file
    #[arg(value_name = "DIR", default_value = ".")]
    pub(super) dir: PathBuf,
    /// Do not fold or truncate
    #[arg(long, help_heading = "Output")]
    full: bool,
    /// Let manifests use only matching environment variables (never CI_*, GITLAB_* or UNDRIFT_*);
    /// may be repeated [env: UNDRIFT_ALLOW_ENV]
    #[arg(long, value_name = "GLOB")]
    allow_env: Vec<String>,
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl SessionArgs {
    /// Those of a run that chooses in its own way what it looks at: `only` this, or everything.
    pub(super) fn choosing(
        dir: &Path,
        allow_env: &[String],
        connect: &ConnectArgs,
        only: Vec<Selector>,
    ) -> Self {
        Self {
            dir: dir.to_owned(),
            full: false,
            allow_env: allow_env.to_vec(),
            select: SelectArgs { only, exclude: Vec::new() },
            connect: connect.clone(),
        }
    }

    /// How results look.
    pub(super) fn style(&self, cx: &Context) -> Style {
        Style { full: self.full, ..cx.output.style }
    }

    /// The environment variables that manifests may use: as the options say, else as
    /// UNDRIFT_ALLOW_ENV does.
    fn allowed(&self, env: &Environment) -> Result<Allowed, Failure> {
        let (name, globs) = match env.get(ALLOW_NAME) {
            _ if !self.allow_env.is_empty() => {
                ("--allow-env", self.allow_env.iter().map(String::as_str).collect())
            }
            Some(globs) => (ALLOW_NAME, words(globs).collect::<Vec<_>>()),
            None => return Ok(Allowed::default()),
        };
        Allowed::only(globs).map_err(|why| {
            Failure::usage(format!("{name}: {why}")).help("write a glob such as `SHOP_*`")
        })
    }
}

/// Which part of what is declared.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
struct SelectArgs {
    /// Include only matching objects: a glob over PATH, PATH#SECTION or PATH#SECTION/ENTRY; may be
    /// repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse)]
    only: Vec<Selector>,
    /// Exclude matching objects; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse)]
    exclude: Vec<Selector>,
}

impl SelectArgs {
    /// Whether something is selected that no document of `desired` declares, for all that is known
    /// before it is read what rules bring in. What rules bring in also says of a group which projects
    /// are declared nowhere.
    fn reaches_beyond(&self, desired: &Desired) -> bool {
        let is_declared = |selector: &Selector| {
            let path = selector.written().split('#').next().unwrap_or_default().to_lowercase();
            desired.containers.iter().any(|container| {
                container.path.to_lowercase() == path
                    && container.life.undeclared_projects.is_none()
            })
        };
        self.only.is_empty() || !self.only.iter().all(is_declared)
    }

    /// The part of what a roster says that is selected.
    fn of_roster(&self, mut roster: Roster) -> Roster {
        let selection = self.selection();
        let address = |path: &str| Address::container(path.into());
        roster.members.retain(|member| selection.holds(&address(&member.path)));
        roster
    }

    fn selection(&self) -> Selection {
        Selection { only: self.only.clone(), exclude: self.exclude.clone() }
    }

    /// The part of `desired` that is selected. Each selector has to match something, those that say
    /// what to `resend` too.
    fn of(&self, desired: Desired, resend: &[Selector]) -> Result<Desired, Failure> {
        for selector in self.only.iter().chain(&self.exclude).chain(resend) {
            selects_something(selector, &desired)?;
        }
        let selected = self.selection().of(desired);
        if selected.containers.is_empty() && !self.exclude.is_empty() {
            return Err(Failure::usage("`--exclude` excludes everything that is selected"));
        }
        Ok(selected)
    }
}

/// What else a plan to be applied depends on.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(super) struct ChangeArgs {
    /// Acknowledge a guard's refusal, as printed (GUARD:ADDRESS); the address may be a glob; may be
    /// repeated [env: UNDRIFT_ACK]
    #[arg(long, value_name = "GUARD:ADDRESS", value_parser = Acknowledgement::parse)]
    ack: Vec<Acknowledgement>,
    /// Resend write-only fields of matching objects; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse)]
    resend: Vec<Selector>,
    /// Change only the first N groups and projects that have changes, and what those depend on
    #[arg(long, value_name = "N")]
    limit: Option<NonZeroUsize>,
}

impl ChangeArgs {
    /// What the command line acknowledges, or else UNDRIFT_ACK.
    fn acknowledged(&self, env: &Environment) -> Result<Vec<Acknowledgement>, Failure> {
        match env.get(ACK_NAME) {
            Some(written) if self.ack.is_empty() => words(written)
                .map(Acknowledgement::parse)
                .collect::<Result<_, _>>()
                .map_err(|why| Failure::usage(format!("{ACK_NAME}: {why}"))),
            _ => Ok(self.ack.clone()),
        }
    }
}

/// The words of a list in an environment variable.
fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ', '\t', '\n', '\r']).filter(|word| !word.is_empty())
}

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
            let planned = apply::plan(&self.observer, container, &mut live, &self.settings).await?;
            plan.lock().unwrap_or_else(PoisonError::into_inner).add(container, planned, live);
            progress.step(&container.path);
            Ok(())
        };
        self.observer.all(&containers, self.ahead, each).await?;
        let plan = plan.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut plan = plan.sorted(&self.extent);
        let warnings: Diagnostics =
            plan.acknowledge(&self.acknowledged, self.today).into_iter().collect();
        if !warnings.is_empty() {
            cx.output.tell(&warnings.render(cx.output.stderr.into()));
        }
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

/// Manifests without a fault.
pub(super) struct Manifests {
    /// What they declare.
    pub(super) desired: Desired,
    /// The rules that bring in more, if there are any.
    pub(super) includes: Option<Includes>,
    /// Their folder.
    pub(super) root: PathBuf,
    /// What `undrift.yaml` says.
    pub(super) config: Config,
}

/// What was `loaded`, after saying what is wrong with it.
///
/// # Errors
/// If something is wrong with it.
pub(super) fn usable(
    loaded: Loaded,
    reports: &mut Reports,
    cx: &Context,
) -> Result<Manifests, Failure> {
    match (loaded.desired, tell(loaded.diagnostics, reports, cx)) {
        (Some(desired), _) => {
            let (includes, root, config) = (loaded.includes, loaded.root, loaded.config);
            Ok(Manifests { desired, includes, root, config })
        }
        (None, unusable) => Err(unusable),
    }
}

/// Says what is wrong with manifests; if that is an error, the run ends with it.
fn tell(diagnostics: Diagnostics, reports: &mut Reports, cx: &Context) -> Failure {
    if !diagnostics.is_empty() {
        cx.output.tell(&diagnostics.render(cx.output.stderr.into()));
    }
    let summary = diagnostics.summary().unwrap_or_default();
    reports.keep(diagnostics);
    Failure::usage(format!("cannot use the manifests: {summary}"))
}

/// What the secrets of `desired`, and of what rules may bring in besides, stand for, of those that
/// manifests may use.
fn secrets_of(
    desired: &Desired,
    includes: Option<&Includes>,
    root: PathBuf,
    allowed: Allowed,
    endpoint: &Endpoint,
) -> Secrets {
    let secrets = Secrets::new(root, endpoint.environment.clone()).allowing(allowed);
    let mut secrets =
        secrets.with_own_token(endpoint.token.clone(), endpoint.token_file.as_deref());
    let declared = desired.containers.iter().flat_map(Container::named);
    let named = declared.map(|(.., value)| value).chain(includes.iter().flat_map(|i| i.named()));
    for value in named {
        match value {
            Value::Secret(reference) => secrets.resolve([reference]),
            Value::File(path) => secrets.look_through([path]),
            Value::Plain(_) => {}
        }
    }
    secrets
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

/// Refuses a selector that matches nothing declared: it is a slip of the pen, and "nothing to do"
/// would hide it.
pub(super) fn selects_something(selector: &Selector, desired: &Desired) -> Result<(), Failure> {
    let declared = || desired.containers.iter().flat_map(Container::addresses);
    if declared().any(|address| selector.matches(&address)) {
        return Ok(());
    }
    let failure =
        Failure::usage(format!("`{}` matches nothing that is declared", selector.written()));
    let near = match selector.written().split_once('#') {
        None => declared()
            .filter(|address| address.section.is_none())
            .map(|address| address.to_string())
            .collect(),
        // The section may be misspelt behind a glob, too.
        Some((path, _)) => {
            let sections: BTreeSet<_> = declared().filter_map(|address| address.section).collect();
            let within = sections.iter().map(|section| format!("{path}#{section}"));
            let entries = declared()
                .filter(|address| address.entry.is_some())
                .map(|address| address.to_string());
            within.chain(entries).collect::<Vec<_>>()
        }
    };
    Err(match crate::text::nearest(selector.written(), near.iter().map(String::as_str)) {
        Some(near) => failure.help(format!("did you mean `{near}`?")),
        None => failure.help(
            "`*` matches within a path segment, `**` across segments: `acme/**`, `**#variables`",
        ),
    })
}
