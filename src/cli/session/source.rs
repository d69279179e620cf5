//! The source of a session: a service, a snapshot, or a service from which a snapshot is taken.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{Manifests, SessionArgs, add_manifest_secrets, args::read_allowed_variables};
use crate::{
    api::{ClientSettings, Clock as _, ReadClient, ServiceAddress, SystemClock},
    cli::{CommandError, Environment, Exit, Result, RunContext, input},
    desired::Desired,
    digest::DigestKey,
    manifest::Config,
    report::SnapshotSource,
    secret::{Secrets, judge},
    snapshot::{
        self, OfflineTransport, Snapshot, SnapshotHeader, SnapshotRecorder, file::MAX_BYTES,
    },
    text,
};

/// The target of the sandbox, which has no public address.
const SANDBOX_ADDRESS: &str = "sandbox";
/// The environment variable with the key for digests of secrets in a snapshot.
const KEY_VARIABLE: &str = "UNDRIFT_SNAPSHOT_KEY";
/// The age after which a snapshot is reported as old.
const MAX_FRESH_AGE: SignedDuration = SignedDuration::from_hours(24);

/// The option to plan from a snapshot.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Service")]
pub(in crate::cli) struct LiveArgs {
    /// Plan from this snapshot instead of the service; needs no token and no connection
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "token_file", "ca_file", "client_cert", "proxy"])]
    #[cfg_attr(feature = "sandbox", arg(conflicts_with = "sandbox"))]
    pub(in crate::cli) live: Option<PathBuf>,
}

impl LiveArgs {
    /// The source that the option selects.
    pub(in crate::cli) fn session_source(&self) -> SessionSource<'_> {
        self.live.as_deref().map_or(SessionSource::Service, SessionSource::Snapshot)
    }
}

/// The source of a session.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) enum SessionSource<'w> {
    /// A service.
    Service,
    /// The snapshot in this file.
    Snapshot(&'w Path),
    /// A service from which a snapshot is taken.
    TakeSnapshot,
}

/// An opened source, from which the live state can be read.
pub(super) struct OpenedSource {
    /// The address of the service.
    pub(super) target: String,
    /// The description of the snapshot for reports; `None` if the source is a service.
    pub(super) snapshot_source: Option<SnapshotSource>,
    /// True if the user provided a token; false for a snapshot and the sandbox.
    pub(super) has_token: bool,
    /// The client for reading.
    pub(super) client: ReadClient,
    /// The secrets of the manifests.
    pub(super) secrets: Arc<Secrets>,
    /// The transport that answers requests from the snapshot, without a connection.
    offline_transport: Option<Arc<OfflineTransport>>,
    /// The snapshot that is being taken.
    pub(super) recorder: Option<Arc<SnapshotRecorder>>,
}

impl OpenedSource {
    /// Passes the declarations to the snapshot that is read or taken.
    pub(super) fn use_declarations(&self, desired: &Desired) {
        self.offline_transport
            .iter()
            .for_each(|transport| transport.use_declarations(desired, &self.secrets));
        self.recorder.iter().for_each(|recorder| recorder.use_declarations(desired));
    }
}

impl SessionSource<'_> {
    /// Finds the service, or reads the snapshot, for `manifests`.
    ///
    /// # Errors
    /// If there is no service, the snapshot belongs to another service, or the token, a certificate or the
    /// proxy is not valid.
    pub(super) async fn open(
        self,
        args: &SessionArgs,
        manifests: &Manifests,
        cx: &RunContext,
    ) -> Result<OpenedSource> {
        let allowed_variables = read_allowed_variables(&args.access.allow_env, &cx.env)?;
        let collect_secrets = |secrets: Secrets| {
            Arc::new(add_manifest_secrets(
                manifests,
                secrets.with_allowed_variables(allowed_variables),
            ))
        };
        let opened_source = match self {
            Self::Snapshot(path) => open_snapshot(path, args, manifests, collect_secrets, cx)?,
            Self::Service | Self::TakeSnapshot => {
                let takes_snapshot = matches!(self, Self::TakeSnapshot);
                open_service(args, takes_snapshot, manifests, collect_secrets, cx).await?
            }
        };
        opened_source.use_declarations(&manifests.desired);
        Ok(opened_source)
    }
}

fn open_snapshot(
    path: &Path,
    args: &SessionArgs,
    Manifests { root, config, .. }: &Manifests,
    collect_secrets: impl FnOnce(Secrets) -> Arc<Secrets>,
    cx: &RunContext,
) -> Result<OpenedSource> {
    let snapshot = load_snapshot(path)?;
    let SnapshotHeader { service_address: target, started_at: taken_at, .. } = &snapshot.header;
    let (target, taken_at) = (target.clone(), *taken_at);
    let key = cx.env.digest_key(KEY_VARIABLE)?;
    check_key(&snapshot.header, key.as_ref())?;
    let service = args.access.connect.resolve_snapshot_service(&target, config, &cx.env)?;
    warn_if_old(&snapshot.header, cx);
    let display_text = format!("{}, {}", snapshot::format_to_minute(taken_at), age_text(taken_at));
    let snapshot_source = Some(SnapshotSource { taken_at: taken_at.to_string(), display_text });
    let secrets = collect_secrets(Secrets::new(root, cx.env.variables()));
    cx.output.redactor.set_secrets(Arc::clone(&secrets));
    let offline_transport = Arc::new(OfflineTransport::new(snapshot, key));
    let transport = Arc::clone(&offline_transport);
    let client =
        ReadClient::new(service, transport, Arc::clone(&secrets), ClientSettings::default());
    let (offline_transport, recorder) = (Some(offline_transport), None);
    Ok(OpenedSource {
        target,
        snapshot_source,
        has_token: false,
        client,
        secrets,
        offline_transport,
        recorder,
    })
}

async fn open_service(
    args: &SessionArgs,
    takes_snapshot: bool,
    Manifests { root, config, .. }: &Manifests,
    collect_secrets: impl FnOnce(Secrets) -> Arc<Secrets>,
    cx: &RunContext,
) -> Result<OpenedSource> {
    let endpoint = args.access.connect.find_endpoint(root, config, cx).await?;
    let (service, is_sandbox) = (endpoint.service.clone(), endpoint.is_embedded);
    let secrets = collect_secrets(
        endpoint.exclude_token(Secrets::new(root, endpoint.environment.variables())),
    );
    let mut client =
        args.access.connect.create_client(&endpoint, config, Arc::clone(&secrets), &cx.output)?;
    let target = if is_sandbox { SANDBOX_ADDRESS.to_owned() } else { service.to_string() };
    let mut recorder = None;
    if takes_snapshot {
        let header = SnapshotHeader {
            service_address: target.clone(),
            is_sandbox,
            started_at: current_time(),
            key_id: None,
        };
        let key = cx.env.digest_key(KEY_VARIABLE)?;
        let new_recorder =
            Arc::new(SnapshotRecorder::new(client, header, Arc::clone(&secrets), key));
        let in_flight = args.access.connect.in_flight_range(config);
        let settings = ClientSettings { in_flight, ..ClientSettings::default() };
        client = ReadClient::new(service, new_recorder.clone(), Arc::clone(&secrets), settings);
        recorder = Some(new_recorder);
    }
    let (snapshot_source, has_token, offline_transport) = (None, !is_sandbox, None);
    Ok(OpenedSource {
        target,
        snapshot_source,
        has_token,
        client,
        secrets,
        offline_transport,
        recorder,
    })
}

fn load_snapshot(path: &Path) -> Result<Snapshot> {
    let bytes = input::read_bytes(path, MAX_BYTES).map_err(|error| {
        input::read_failure(path, &error).help("take a snapshot with `undrift snapshot -o FILE` in a job that has a token; in CI, one run of the pipeline of the default branch does that")
    })?;
    let path = path.display();
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CommandError::usage(format!(
            "`{path}` is larger than 256 MiB, the maximum of a snapshot"
        )));
    }
    Snapshot::read(&bytes)
        .map_err(|error| CommandError::usage(format!("cannot use `{path}`: {error}")))
}

/// Refuses a key that differs from the snapshot's key, because all secrets would appear to have
/// changed.
fn check_key(header: &SnapshotHeader, key: Option<&DigestKey>) -> Result<()> {
    match (&header.key_id, key) {
        (Some(snapshot_key_id), Some(key)) if *snapshot_key_id != key.id() => {
            let message = format!("the snapshot was taken with another {KEY_VARIABLE}");
            let failure = CommandError::new(Exit::Stale, anyhow::anyhow!(message));
            Err(failure.help("use the same key or none, or take the snapshot again"))
        }
        _ => Ok(()),
    }
}

fn current_time() -> Timestamp {
    Timestamp::try_from(SystemClock::default().system_time()).unwrap_or_default()
}

/// The age of `instant`, in words.
fn age_text(instant: Timestamp) -> String {
    let age = current_time().duration_since(instant);
    let hours = age.as_hours();
    match hours {
        ..0 => "in the future".to_owned(),
        0 if age.as_mins() < 1 => "just now".to_owned(),
        0 => format!("{} ago", text::count(age.as_mins(), "minute")),
        1..48 => format!("{} ago", text::count(hours, "hour")),
        _ => format!("{} ago", text::count(hours / 24, "day")),
    }
}

fn warn_if_old(header: &SnapshotHeader, cx: &RunContext) {
    if current_time().duration_since(header.started_at) > MAX_FRESH_AGE {
        let age = age_text(header.started_at);
        cx.output.eprint(&format!(
            "warning: the snapshot was taken {age}; later changes are not in the plan\n"
        ));
    }
}

impl crate::cli::connect::ConnectArgs {
    /// Finds the service of a snapshot. Fails if the run names another service.
    fn resolve_snapshot_service(
        &self,
        target: &str,
        config: &Config,
        env: &Environment,
    ) -> Result<ServiceAddress> {
        // The sandbox has no public address.
        if target == SANDBOX_ADDRESS {
            return ServiceAddress::parse("http://127.0.0.1", false)
                .map_err(|error| CommandError::new(Exit::Internal, error));
        }
        let service = ServiceAddress::parse(target, true).map_err(|error| {
            CommandError::usage(format!("the address in the snapshot is not valid: {error}"))
        })?;
        let declared_url = config.service.url.as_deref();
        let declared_address = declared_url.map(|url| ("`service.url` in undrift.yaml", url));
        for (name, url) in declared_address.into_iter().chain(self.named_address(env)) {
            if !ServiceAddress::parse(url, true).is_ok_and(|url| url == service) {
                let (target, url) = (text::escape(target), judge::mask_url(url));
                let message = format!("the snapshot is for `{target}`, but {name} is `{url}`");
                let failure = CommandError::new(Exit::Stale, anyhow::anyhow!(message));
                return Err(failure.help(
                    "take a snapshot of that service, or name the service of this snapshot",
                ));
            }
        }
        Ok(service)
    }
}
