//! `undrift selftest`: creates, changes and removes every kind of object on a real service with the
//! user's token, and compares the results with the sandbox.
//!
//! Everything happens in a new group with a random name. The parent group must be empty, so that a
//! mistyped `--group` is refused. The manifests of `sample` are planned and applied to the service,
//! and then to a sandbox of the same release and tier; `outcome` compares the results. At the end,
//! the new group is always removed by its id, but only if it still has the random name.

mod outcome;
mod sample;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tempfile::TempDir;

use super::{
    CommandError, CommandResult, ConnectArgs, Exit, Manifests, Result, RunContext, Session,
    SessionArgs, SessionBuilder, reports, signal,
};
use crate::{
    api::{ApiError, ReadClient, WriteClient},
    desired::{Acknowledgement, Moves},
    field::{NamedObject, Scope, Tier},
    kind::unmarked_path,
    level::OWNER,
    manifest::{self, Config, LoadEnvironment},
    observe::Observer,
    operation,
    page::EntryKeys,
    plan::{ApprovalPolicy, Plan},
    secret::Secrets,
    text::escape,
    value::Json,
};
use outcome::{Deviations, SelftestReport};
use sample::{SamplePhase, TestSetup};

/// The prefix of the new group's name.
const NAME_PREFIX: &str = "undrift-selftest-";
/// The maximum number of containers that are changed at the same time.
const MAX_CONCURRENT: usize = 4;
/// The maximum number of checks whether the group is deleted. Each pause between checks is
/// [`PAUSE_STEP`] longer than the previous one, 30 seconds in total.
const MAX_CHECKS: u32 = 15;
const PAUSE_STEP: Duration = Duration::from_millis(250);

/// The options of `selftest`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("../help/selftest.txt"))]
pub(super) struct Args {
    /// Group to work in; must exist and be empty, and the token needs the role Owner there
    #[arg(long, value_name = "PATH")]
    group: String,
    /// User to add as a member; without it, members are skipped
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Tier of the service (free, premium or ultimate); kinds and fields of higher tiers are skipped
    #[arg(long, value_name = "TIER", default_value = "free", value_parser = parse_tier)]
    tier: Tier,
    /// Also change each field of each kind and change it back; needs several hundred more groups
    /// and projects
    #[arg(long)]
    attributes: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Write the whole report to this file. The report contains no names, values or secrets
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    connect: ConnectArgs,
}

fn parse_tier(text: &str) -> Result<Tier, String> {
    let result = serde_json::from_value(text.into());
    result.map_err(|_| "must be `free`, `premium` or `ultimate`".to_owned())
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let mut tester = Tester::new(args.connect.clone())?;
    let setup = prepare_setup(&args, &tester.connect(cx).await?).await?;
    cx.output.eprint(&format!("everything happens in `{}`\n", escape(&setup.root)));
    if !args.yes && !cx.output.confirm(&format!("create and remove `{}`", setup.root))? {
        cx.output.eprint("nothing was changed\n");
        return Ok(Exit::Interrupted);
    }
    let client = Arc::clone(&tester.client);
    let interrupt =
        move || client.lock().iter().flat_map(|client| &**client).for_each(ReadClient::interrupt);
    let first_signal = signal::watch_signals(cx.output.clone(), interrupt, |_| {})?;
    tester.first_signal = Arc::clone(&first_signal);
    let deviations = tester.run_phases(&setup, cx).await;
    let is_clean = tester.clean_up(&setup, cx).await;
    if let Some(signal) = first_signal.get() {
        return Ok(Exit::first_of([*signal, Exit::Unfinished.only_if(!is_clean)]));
    }
    let deviations = deviations?;
    let sandbox_deviations = run_sandbox(&setup, cx).await?;
    let report = SelftestReport::new(&setup, &deviations, sandbox_deviations.as_ref());
    if let Some(file) = &args.output {
        reports::write_text(file, &report.full_text())
            .map_err(|error| reports::write_failure(file, &error))?;
    }
    cx.output.print(&report.screen_text(args.output.as_deref()))?;
    let has_differences = !deviations.has_same_findings(&sandbox_deviations.unwrap_or_default());
    Ok(Exit::first_of([
        Exit::Unfinished.only_if(!is_clean),
        Exit::Differences.only_if(has_differences),
    ]))
}

/// Checks that the group of `--group` can be used, and returns the parameters of the selftest.
async fn prepare_setup(args: &Args, observer: &Observer) -> Result<TestSetup> {
    let path = args.group.trim_matches('/');
    let shown_path = escape(path);
    let client = observer.client();
    let Some(group) = read_group(client, path).await? else {
        let failure = CommandError::usage(format!("the group `{shown_path}` does not exist"));
        return Err(failure
            .help("create an empty group for the selftest, and pass its path with `--group`"));
    };
    let path = group["full_path"].as_str().unwrap_or(path).to_owned();
    let id = group["id"].as_u64().unwrap_or_default();
    if !observer.caller().is_administrator
        && observer.read_caller_level(Scope::Group, id).await? < Some(OWNER)
    {
        let failure =
            CommandError::usage(format!("the token is not an owner of the group `{shown_path}`"));
        return Err(failure.help("use a token with the role Owner in this group"));
    }
    if let Some(content) = find_content(client, id, &path).await? {
        let failure =
            CommandError::usage(format!("the group `{shown_path}` is not empty: `{content}`"));
        return Err(failure.help("the selftest only works in a group that holds nothing else"));
    }
    if let Some(user) = &args.user {
        let reason = match observer.find_id(NamedObject::User, user).await? {
            None => "does not exist, or the token cannot see it",
            Some(id) if id == observer.caller().id => "is the token's own user",
            Some(_) => "",
        };
        if !reason.is_empty() {
            let failure = CommandError::usage(format!("the user `{}` {reason}", escape(user)));
            return Err(failure.help("name another one, or leave out `--user`"));
        }
    }
    let release = observer.release().await?;
    let name = format!("{NAME_PREFIX}{:08x}", rand::random::<u32>());
    let group_path = format!("{path}/{name}");
    let (user, attributes) = (args.user.clone(), args.attributes);
    Ok(TestSetup { root: group_path, user, tier: args.tier, release, tests_all_fields: attributes })
}

/// The path of any group or project in a group, escaped for display. Ignores groups of earlier
/// selftests that are marked for deletion.
async fn find_content(
    client: &ReadClient,
    id: u64,
    path: &str,
) -> Result<Option<String>, ApiError> {
    let groups = operation::GROUP_DESCENDANTS.request().with_argument("id", id);
    let groups = groups.with_query("all_available", true);
    let projects = operation::GROUP_PROJECTS.request().with_argument("id", id);
    let projects = projects.with_query("include_subgroups", true);
    let prefix = format!("{path}/{NAME_PREFIX}");
    let mut deleted_prefixes: Vec<String> = Vec::new();
    for (request, path_field) in [(groups, "full_path"), (projects, "path_with_namespace")] {
        let rows = client.list_with_keys(request, EntryKeys::with_id(&[])).await?;
        let paths: Vec<_> = rows
            .iter()
            .map(|row| row.get(path_field).and_then(Json::as_str).unwrap_or("something"))
            .collect();
        for (row, path) in rows.iter().zip(&paths).filter(|(_, path)| path.starts_with(&prefix)) {
            let mark_fields = ["marked_for_deletion_on", "marked_for_deletion_at"];
            if mark_fields.iter().any(|mark| row.get(*mark).is_some_and(|day| !day.is_null())) {
                deleted_prefixes.push(format!("{path}/"));
            }
        }
        let other_path = paths.into_iter().find(|path| {
            !deleted_prefixes.iter().any(|parent| format!("{path}/").starts_with(parent))
        });
        if let Some(content_path) = other_path {
            return Ok(Some(escape(content_path).into_owned()));
        }
    }
    Ok(None)
}

/// Runs the phases against the sandbox.
#[cfg(feature = "sandbox")]
async fn run_sandbox(setup: &TestSetup, cx: &RunContext) -> Result<Option<Deviations>> {
    use crate::{
        cli::embedded,
        release::REFERENCE,
        sandbox::{self, DataLocation, Profile, Seed},
    };
    let users: Vec<_> =
        setup.user.iter().map(|name| serde_json::json!({"username": name})).collect();
    let (path, _) = setup.root.rsplit_once('/').unwrap_or_default();
    let mut paths: Vec<_> = path.match_indices('/').map(|(index, _)| &path[..index]).collect();
    paths.push(path);
    let groups: Vec<_> = paths.iter().map(|path| serde_json::json!({"path": path})).collect();
    let release = setup.release.release().map_or(REFERENCE, |release| release.max(REFERENCE));
    let seed = serde_json::json!({
        "tier": setup.tier.to_string(), "release": release.to_string(),
        "users": users, "groups": groups,
    });
    let seed = Seed::from_json(seed).map_err(|error| CommandError::new(Exit::Internal, error))?;
    // Imports finish immediately: the selftest does not compare delays.
    let profile = Profile { import_delay: Duration::ZERO, ..Profile::default() };
    let config = sandbox::SandboxConfig {
        data: DataLocation::Memory,
        seed: Some(seed),
        profile,
        ..Default::default()
    };
    let running_sandbox = embedded::launch(config, &cx.output).await?;
    let known_endpoint = Some(embedded::sandbox_endpoint(&running_sandbox, cx.env.clone())?);
    let tester = Tester::new(ConnectArgs { known_endpoint, ..ConnectArgs::default() })?;
    let deviations = tester.run_phases(setup, cx).await;
    running_sandbox.stop().await;
    deviations.map(Some)
}

/// Returns `None`, because this build contains no sandbox.
#[cfg(not(feature = "sandbox"))]
#[expect(clippy::unused_async, reason = "the variant with a sandbox is async")]
async fn run_sandbox(_: &TestSetup, _: &RunContext) -> Result<Option<Deviations>> {
    Ok(None)
}

/// Runs all phases against one service.
struct Tester {
    connect: ConnectArgs,
    /// The folder of the manifests, removed when dropped.
    folder: TempDir,
    /// The client of the current session, which a signal interrupts.
    client: Arc<Mutex<Option<ReadClient>>>,
    /// The first signal that arrived, if any.
    first_signal: Arc<OnceLock<Exit>>,
}

impl Tester {
    fn new(connect: ConnectArgs) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix(NAME_PREFIX).tempdir();
        let folder = folder.map_err(|error| {
            CommandError::usage(format!("cannot make a temporary folder: {error}"))
        })?;
        Ok(Self { connect, folder, client: Arc::default(), first_signal: Arc::default() })
    }

    /// Connects without a session.
    async fn connect(&self, cx: &RunContext) -> Result<Observer> {
        let (root, config) = (Path::new("."), Config::default());
        let endpoint = self.connect.find_endpoint(root, &config, cx).await?;
        let secrets = Secrets::new(root.to_owned(), endpoint.environment.variables());
        let secrets = Arc::new(endpoint.exclude_token(secrets));
        let client = self.connect.create_client(&endpoint, &config, secrets, &cx.output)?;
        self.connect.connect_observer(client, &endpoint.service, &cx.env).await
    }

    /// Runs all phases, unless interrupted.
    async fn run_phases(&self, setup: &TestSetup, cx: &RunContext) -> Result<Deviations> {
        let mut deviations = Deviations::default();
        for phase in SamplePhase::ALL {
            let session = self.open_session(phase, setup, cx).await?;
            apply_phase(phase, session.plan(cx).await?, &session, &mut deviations).await?;
            if self.first_signal.get().is_some() {
                break;
            }
            // Plan again in a new session, because the first session would use the lists that it
            // has already read.
            let session = self.open_session(phase, setup, cx).await?;
            deviations.add_next_plan(phase, &session.plan(cx).await?);
        }
        Ok(deviations)
    }

    /// Writes the manifests of a phase, and opens a session for them.
    async fn open_session(
        &self,
        phase: SamplePhase,
        setup: &TestSetup,
        cx: &RunContext,
    ) -> Result<Session> {
        let documents: Vec<_> = setup.documents(phase).iter().map(Json::to_string).collect();
        std::fs::write(self.folder.path().join("selftest.yaml"), documents.join("\n---\n"))?;
        let load_environment = LoadEnvironment::for_process();
        let loaded = manifest::load(self.folder.path(), &load_environment);
        let Some(desired) = loaded.desired else {
            // Print diagnostics only on errors: users cannot fix warnings about generated manifests.
            cx.output.eprint_diagnostics(&loaded.diagnostics);
            let error = anyhow::anyhow!("the manifests of the selftest are wrong");
            return Err(CommandError::new(Exit::Internal, error));
        };
        let (root, config) = (PathBuf::from("."), loaded.config);
        let manifests = Manifests { desired, includes: None, root, config };
        let access_args = self.connect.clone().into();
        let args = SessionArgs::with_selection(self.folder.path(), &access_args, Vec::new());
        let builder = SessionBuilder::new(&args);
        let session = builder.open_manifests(manifests, load_environment.today, cx).await?;
        let client = session.observer.client();
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        self.first_signal.get().iter().for_each(|_| client.interrupt());
        Ok(session)
    }

    /// Removes the new group. Returns true if nothing remains, or the service deletes the group
    /// later.
    async fn clean_up(&self, setup: &TestSetup, cx: &RunContext) -> bool {
        let root = escape(&setup.root);
        let result = match self.connect(cx).await {
            Ok(observer) => remove_group(&observer, &setup.root).await.map_err(CommandError::from),
            Err(failure) => Err(failure),
        };
        let (is_removed, state) = match result {
            Ok(None) => return true,
            Ok(Some(true)) => (true, "is marked for deletion; the service deletes it later"),
            Ok(Some(false)) => (false, "is still there; delete it by hand"),
            Err(failure) => {
                cx.output.eprint_failure(&failure);
                (false, "may still be there; delete it by hand")
            }
        };
        cx.output.eprint(&format!("`{root}` {state}\n"));
        is_removed
    }
}

/// Applies a plan. Acknowledges all refusals of guards: the group exists only for the test.
async fn apply_phase(
    phase: SamplePhase,
    mut plan: Plan,
    session: &Session,
    deviations: &mut Deviations,
) -> Result<()> {
    let results =
        plan.refusals.iter().map(|refusal| Acknowledgement::parse(&refusal.acknowledgement));
    let acknowledgements: Vec<_> =
        results.collect::<Result<_, _>>().map_err(CommandError::usage)?;
    plan.acknowledge(&acknowledgements, &Moves::default(), LoadEnvironment::for_process().today);
    deviations.add_plan_findings(phase, &plan);
    let Ok((approved, _)) = plan.approve(ApprovalPolicy::default()) else { return Ok(()) };
    let applied = session.apply(&approved, MAX_CONCURRENT, |_| ()).await;
    if !applied.interrupted {
        deviations.add_apply_findings(phase, &applied);
    }
    match applied.fatal_error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// Removes the group at `path`, and waits until it is deleted. Returns `None` if the group is
/// deleted, `Some(true)` if it is marked for later deletion, and `Some(false)` if it still exists.
async fn remove_group(observer: &Observer, path: &str) -> Result<Option<bool>, ApiError> {
    let client = observer.client();
    let writer = WriteClient::new(client.clone());
    let Some(TestGroup { id, .. }) = find_group(client, path, path).await? else { return Ok(None) };
    let delete_request = operation::GROUP_DELETE.request().with_argument("id", id);
    writer.send(delete_request.clone()).await?;
    // Marking a group for deletion may change its path, so use the id.
    let id = id.to_string();
    for check_number in 1..=MAX_CHECKS {
        let Some(group) = find_group(client, &id, path).await? else { return Ok(None) };
        if group.is_marked_for_deletion {
            // Delete the group immediately instead of after some days, if the service supports
            // that.
            let request = delete_request.clone().with_query("permanently_remove", true);
            if writer.send(request.with_query("full_path", group.path)).await.is_err() {
                return Ok(Some(true));
            }
        }
        client.clock().sleep(PAUSE_STEP * check_number).await;
    }
    Ok(find_group(client, &id, path).await?.map(|group| group.is_marked_for_deletion))
}

/// The new group.
struct TestGroup {
    id: u64,
    /// The current path.
    path: String,
    /// True if the group is marked for deletion.
    is_marked_for_deletion: bool,
}

/// The group with the id or path `reference`. Its path must be `path`, or must have been `path`
/// before the group was marked for deletion; otherwise the result is `None`.
async fn find_group(
    client: &ReadClient,
    reference: &str,
    path: &str,
) -> Result<Option<TestGroup>, ApiError> {
    let Some(response) = read_group(client, reference).await? else { return Ok(None) };
    let is_marked = !response["marked_for_deletion_on"].is_null();
    let id = response["id"].as_u64().unwrap_or_default();
    let current_path = response["full_path"].as_str().unwrap_or_default();
    let former_path = if is_marked { unmarked_path(current_path, id) } else { current_path };
    Ok((former_path == path).then(|| TestGroup {
        id,
        path: current_path.to_owned(),
        is_marked_for_deletion: is_marked,
    }))
}

/// Reads the group with the id or path `reference`; `None` if it does not exist.
async fn read_group(client: &ReadClient, reference: &str) -> Result<Option<Json>, ApiError> {
    let request = operation::GROUP_GET
        .request()
        .with_argument("id", reference)
        .with_query("with_projects", false);
    match client.get_object(request, &["id", "full_path"]).await {
        Ok(response) => Ok(Some(response.body)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
