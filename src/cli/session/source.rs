//! The source of a session: a service, a snapshot, or a service of which a snapshot is taken.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::{Manifests, SessionArgs, secrets_of};
use crate::{
    api::{Clock as _, ReadClient, Service, Settings, SystemClock},
    cli::{Context, Environment, Exit, Failure, input},
    desired::Desired,
    digest::Key,
    manifest::Config,
    report::SnapshotSource,
    secret::{Secrets, judge},
    snapshot::{self, Head, Offline, Recorder, Snapshot, file::MAX_BYTES},
    text,
};

/// The name of the embedded service where others have an address.
const SANDBOX: &str = "sandbox";
/// Where to look for the key of the digests of secrets in a snapshot.
const KEY_NAME: &str = "UNDRIFT_SNAPSHOT_KEY";
/// The age from which a snapshot is reported as old.
const OLD: SignedDuration = SignedDuration::from_hours(24);

/// The option to plan from a snapshot.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Service")]
pub(in crate::cli) struct LiveArgs {
    /// Use this snapshot in place of the service: no token, no connection
    #[arg(long, value_name = "FILE", conflicts_with_all = ["url", "token_file", "ca_file", "client_cert", "proxy"])]
    #[cfg_attr(feature = "sandbox", arg(conflicts_with = "sandbox"))]
    live: Option<PathBuf>,
}

impl LiveArgs {
    /// The source that it names.
    pub(in crate::cli) fn source(&self) -> Source<'_> {
        self.live.as_deref().map_or(Source::Service, Source::Snapshot)
    }
}

/// The source of a session.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) enum Source<'w> {
    /// A service.
    Service,
    /// The snapshot in this file.
    Snapshot(&'w Path),
    /// A service of which a snapshot is taken.
    Taking,
}

/// A source that can be read.
pub(super) struct Opened {
    /// The address of the service.
    pub(super) target: String,
    /// The snapshot in place of the service, if any.
    pub(super) live: Option<SnapshotSource>,
    /// Whether a user gave it a token.
    pub(super) has_token: bool,
    /// For reading.
    pub(super) client: ReadClient,
    /// The secrets of the manifests.
    pub(super) secrets: Arc<Secrets>,
    pub(super) through: Transports,
}

/// The transports that must know the declarations.
#[derive(Default)]
pub(super) struct Transports {
    /// A snapshot in place of the service.
    offline: Option<Arc<Offline>>,
    /// The snapshot that is being taken, if any.
    pub(super) taking: Option<Arc<Recorder>>,
}

impl Transports {
    /// Passes on the declarations.
    pub(super) fn declare(&self, desired: &Desired, secrets: &Secrets) {
        self.offline.iter().for_each(|offline| offline.declare(desired, secrets));
        self.taking.iter().for_each(|taking| taking.declare(desired));
    }

    /// Whether a snapshot takes the place of the service.
    pub(super) const fn is_offline(&self) -> bool {
        self.offline.is_some()
    }
}

impl Source<'_> {
    /// Finds the service, or reads the snapshot, for `manifests`.
    ///
    /// # Errors
    /// If there is no service, the snapshot is of another one, or the token, the certificates or
    /// the proxy are not valid.
    pub(super) async fn open(
        self,
        args: &SessionArgs,
        manifests: &Manifests,
        cx: &Context,
    ) -> Result<Opened, Failure> {
        let allowed = args.allowed(&cx.env)?;
        let find_all =
            |secrets: Secrets| Arc::new(secrets_of(manifests, secrets.allowing(allowed)));
        let opened = match self {
            Self::Snapshot(path) => from_snapshot(path, args, manifests, find_all, cx)?,
            Self::Service | Self::Taking => {
                let is_taken = matches!(self, Self::Taking);
                from_service(args, is_taken, manifests, find_all, cx).await?
            }
        };
        opened.through.declare(&manifests.desired, &opened.secrets);
        Ok(opened)
    }
}

fn from_snapshot(
    path: &Path,
    args: &SessionArgs,
    Manifests { root, config, .. }: &Manifests,
    find_all: impl FnOnce(Secrets) -> Arc<Secrets>,
    cx: &Context,
) -> Result<Opened, Failure> {
    let snapshot = load(path)?;
    let Head { target, taken_at, .. } = &snapshot.head;
    let (target, taken_at) = (target.clone(), *taken_at);
    let key = cx.env.key(KEY_NAME)?;
    check_key(&snapshot.head, key.as_ref())?;
    let service = args.connect.confirmed(&target, config, &cx.env)?;
    warn_if_old(&snapshot.head, cx);
    let shown = format!("{}, {}", snapshot::shown(taken_at), age(taken_at));
    let live = Some(SnapshotSource { taken_at: taken_at.to_string(), shown });
    let secrets = find_all(Secrets::new(root, cx.env.clone()));
    cx.output.redactor.learn(Arc::clone(&secrets));
    let offline = Arc::new(Offline::new(snapshot, key));
    let through = Arc::clone(&offline);
    let client = ReadClient::new(service, through, Arc::clone(&secrets), Settings::default());
    let through = Transports { offline: Some(offline), taking: None };
    Ok(Opened { target, live, has_token: false, client, secrets, through })
}

async fn from_service(
    args: &SessionArgs,
    is_taken: bool,
    Manifests { root, config, .. }: &Manifests,
    find_all: impl FnOnce(Secrets) -> Arc<Secrets>,
    cx: &Context,
) -> Result<Opened, Failure> {
    let endpoint = args.connect.endpoint(root, config, cx).await?;
    let (service, sandbox) = (endpoint.service.clone(), endpoint.is_embedded);
    let secrets = find_all(endpoint.apart_from(Secrets::new(root, endpoint.environment.clone())));
    let mut client = args.connect.client(&endpoint, config, Arc::clone(&secrets), &cx.output)?;
    let target = if sandbox { SANDBOX.to_owned() } else { service.to_string() };
    let mut through = Transports::default();
    if is_taken {
        let head = Head { target: target.clone(), sandbox, taken_at: now(), key: None };
        let key = cx.env.key(KEY_NAME)?;
        let taking = Arc::new(Recorder::new(client, head, Arc::clone(&secrets), key));
        let settings =
            Settings { in_flight: args.connect.in_flight(config), ..Settings::default() };
        let recorder = Arc::clone(&taking);
        client = ReadClient::new(service, recorder, Arc::clone(&secrets), settings);
        through.taking = Some(taking);
    }
    Ok(Opened { target, live: None, has_token: !sandbox, client, secrets, through })
}

fn load(path: &Path) -> Result<Snapshot, Failure> {
    let cannot = |error: std::io::Error| {
        input::cannot_read(path, &error).help("take a snapshot with `undrift snapshot -o FILE`, where there is a token; in CI, run the pipeline of the default branch once")
    };
    let too_large = || {
        Failure::usage(format!("`{}` is larger than 256 MiB, and no snapshot is", path.display()))
    };
    if fs::metadata(path).map_err(cannot)?.len() > MAX_BYTES {
        return Err(too_large());
    }
    // The size of a pipe is not known before it is read.
    let text = input::bytes(path, MAX_BYTES).map_err(cannot)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(too_large());
    }
    Snapshot::read(&text)
        .map_err(|error| Failure::usage(format!("cannot use `{}`: {error}", path.display())))
}

/// Refuses another key than that of the snapshot: all secrets would seem to differ.
fn check_key(head: &Head, key: Option<&Key>) -> Result<(), Failure> {
    match (&head.key, key) {
        (Some(taken), Some(key)) if *taken != key.id() => {
            let message = format!("the snapshot was taken with another {KEY_NAME}");
            let failure = Failure::new(Exit::Stale, anyhow::anyhow!(message));
            Err(failure.help("use the key that it was taken with, or none, or take it again"))
        }
        _ => Ok(()),
    }
}

fn now() -> Timestamp {
    Timestamp::try_from(SystemClock::default().wall()).unwrap_or_default()
}

/// The age of `instant`, in words.
fn age(instant: Timestamp) -> String {
    let age = now().duration_since(instant);
    let hours = age.as_hours();
    match hours {
        ..0 => "in the future".to_owned(),
        0 if age.as_mins() < 1 => "just now".to_owned(),
        0 => format!("{} ago", counted(age.as_mins(), "minute")),
        1..48 => format!("{} ago", counted(hours, "hour")),
        _ => format!("{} ago", counted(hours / 24, "day")),
    }
}

fn counted(number: i64, noun: &str) -> String {
    text::count(usize::try_from(number).unwrap_or_default(), noun)
}

fn warn_if_old(head: &Head, cx: &Context) {
    if now().duration_since(head.taken_at) > OLD {
        let age = age(head.taken_at);
        cx.output.tell(&format!(
            "warning: the snapshot was taken {age}; later changes are not in the plan\n"
        ));
    }
}

/// The service of a snapshot, unless the run names another one.
impl crate::cli::connect::ConnectArgs {
    fn confirmed(
        &self,
        target: &str,
        config: &Config,
        env: &Environment,
    ) -> Result<Service, Failure> {
        let other = |who: &str, url: &str| {
            let message = format!(
                "the snapshot is of `{}`, and {who} names `{}`",
                text::escape(target),
                judge::mask_url(url)
            );
            let failure = Failure::new(Exit::Stale, anyhow::anyhow!(message));
            failure.help("take a snapshot of that service, or use that of this one")
        };
        // The embedded service has no address that anybody would name.
        if target == SANDBOX {
            return Service::parse("http://127.0.0.1", false)
                .map_err(|error| Failure::new(Exit::Internal, error));
        }
        let service = Service::parse(target, true)
            .map_err(|error| Failure::usage(format!("the snapshot names no service: {error}")))?;
        let is_same = |url: &str| Service::parse(url, true).is_ok_and(|url| url == service);
        if let Some(url) = config.service.url.as_deref().filter(|url| !is_same(url)) {
            return Err(other("`service.url` in undrift.yaml", url));
        }
        match self.named(env) {
            Some((name, url)) if !is_same(url) => Err(other(name, url)),
            _ => Ok(service),
        }
    }
}
