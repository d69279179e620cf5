//! The sandbox: an implementation of the service that stores its data in SQLite.
//!
//! The sandbox answers as the reference describes. If the reference does not describe the
//! behaviour, the sandbox answers as the real service does. The sandbox shares no code with the
//! client. Its table of attributes, its parameter checks and its handlers are written from the
//! reference a second time. A mistake in the client is therefore not repeated in the sandbox, and
//! tests find it. In comments, `reference 1, 8` means chapter 8 of the first of the reference's two
//! documents.
//!
//! ```text
//! connection -> server    time limits, slots, Host check, latency, faults, request log
//!      Model -> dispatch  route, parameters, caller, one transaction, response
//!            -> routes    one function for each operation
//!            -> store     rows; settings and attributes: what a project has
//! ```
//!
//! [`start`] opens the database, applies a [`seed`], and listens. It returns a [`RunningSandbox`].
//! [`Model`] is the same service in memory without a network: `dispatch` answers requests
//! synchronously, from any source. A call is answered only after its transaction was committed. A
//! handler that fails or panics changes nothing.

mod access;
mod answer;
mod attribute_value;
mod attributes;
mod body;
mod call;
mod cleanup_policy;
mod clock;
mod closed;
mod connection_slots;
mod cron;
mod dialect;
mod dispatch;
mod facts;
mod generator;
mod host;
mod limit;
mod model;
mod page;
mod params;
mod prelude;
mod profile;
mod project_view;
mod re2;
mod request_bodies;
mod routes;
mod scope;
pub mod seed;
mod seeding;
mod server;
mod settings;
mod store;
mod stored_settings;
mod urls;

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use jiff::Span;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

pub use attributes::ServiceTier;
pub use facts::{FACTS, Fact, format_table as facts_table};
pub use generator::{Clock, Generator, RandomSource};
pub use limit::RateLimits;
pub use model::{Model, ModelImage};
pub use profile::{AbsentDelete, FaultEffect, InjectedFault, OBSERVED_RELEASE, Profile};
pub use routes::fields::{FieldType, ReferencedType, RowField};
pub use routes::registry::serves_path;
pub use routes::rows::Collection;
pub use seed::{Seed, SeedError};
pub use store::DataLocation;

use host::AllowedHosts;
use limit::RateLimiter;
use prelude::{Arc, Connection, Date, Duration, Mutex, PoisonError, Release, Result, Timestamp};
use profile::InjectedFaults;
use request_bodies::BodyReader;
use routes::registry::DescribedCollections;
use store::Store;

/// The maximum delay of a deletion, in days.
const MAX_DELETION_DELAY_DAYS: i64 = 3_650;

/// The options of the sandbox. By default the data is in memory and contains only the administrator
/// `root`.
#[derive(Default)]
pub struct SandboxConfig {
    /// The address to listen on. Port 0 selects a free port. Without an address, the sandbox
    /// listens on a free port of the loopback interface.
    pub listen: Option<SocketAddr>,
    /// Further names for this machine in `Host` headers, without a port. `localhost` and the
    /// address that the sandbox listens on are always allowed.
    pub allowed_hosts: Vec<String>,
    /// The location of the data.
    pub data: DataLocation,
    /// The initial data, applied once.
    pub seed: Option<Seed>,
    /// The licence, which overrides the seed's licence. If neither is set, the licence of the
    /// previous start with this data is used, or [`ServiceTier::Premium`] for new data.
    pub tier: Option<ServiceTier>,
    /// The release, which overrides the seed's release. If neither is set, the profile's release or
    /// the release of the previous start with this data is used, whichever is later.
    pub release: Option<Release>,
    /// The delay of every response.
    pub latency: Duration,
    /// The file to which the sandbox appends one JSON line per request.
    pub request_log: Option<PathBuf>,
    /// The token of `root`. If it is `None`, the sandbox generates a token.
    pub token: Option<String>,
    /// The rate limits.
    pub rate_limits: RateLimits,
    /// True if each write is flushed to the disk before it is answered. Such a write survives a
    /// crash of the machine; other writes survive only a crash of this process.
    pub is_durable: bool,
    /// The dialects and faults.
    pub profile: Profile,
    /// The source of time.
    pub clock: Clock,
    /// The source of generated secrets and ids.
    pub random: RandomSource,
    /// Additional collections to serve, defined only by these descriptions. A collection that the
    /// sandbox [`serves_path`] itself is ignored.
    pub collections: Vec<Collection>,
}

/// The options that can change with each start on the same data. The default is the faithful service.
#[derive(Clone, Debug, Default)]
pub struct ServiceOptions {
    /// The rate limits.
    pub rate_limits: RateLimits,
    /// The dialects.
    pub profile: Profile,
    /// The source of time.
    pub clock: Clock,
    /// The source of generated secrets and ids.
    pub random: RandomSource,
}

/// The reason why the sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process uses the data.
    #[error(
        "`{}` is in use by another sandbox; stop that one, use its address with `--url`, or choose another file",
        .0.display()
    )]
    InUse(PathBuf),
    /// The lock file in the folder of the data could not be used.
    #[error("cannot lock `{}`; check that its folder exists and is writable", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The data could not be opened.
    #[error("cannot use `{}` as the sandbox's database; delete it to start over", path.display())]
    Database {
        /// The database file.
        path: PathBuf,
        /// The error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// The data was written by another version of the sandbox.
    #[error("`{}` has format {version}, which this version does not know; delete it to start over", path.display())]
    OtherVersion {
        /// The database file.
        path: PathBuf,
        /// The format version of the data.
        version: i64,
    },
    /// SQLite failed, and the database is not a file.
    #[error("the sandbox's database failed")]
    Memory(#[source] rusqlite::Error),
    /// The address could not be used.
    #[error("cannot listen on {address}; choose another address or port 0")]
    Bind {
        /// The requested address.
        address: SocketAddr,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The request log could not be opened.
    #[error("cannot write the request log `{}`", path.display())]
    RequestLog {
        /// The log file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The seed cannot be applied.
    #[error("the seed cannot be applied")]
    Seed(#[from] SeedError),
}

impl StartError {
    /// True if another process uses the data.
    pub fn is_in_use(&self) -> bool {
        matches!(self, Self::InUse(_))
    }
}

/// The state that all calls share.
#[derive(Debug)]
pub(crate) struct ServiceState {
    store: Store,
    tier: ServiceTier,
    options: ServiceOptions,
    limiter: Option<RateLimiter>,
    /// The collections that are known only from descriptions.
    described_collections: Option<&'static DescribedCollections>,
    /// The day of the last purge.
    last_purge: Mutex<Option<Date>>,
}

impl ServiceState {
    fn new(store: Store, tier: ServiceTier, options: ServiceOptions) -> Self {
        let limiter = RateLimiter::new(options.rate_limits);
        let (described_collections, last_purge) = Default::default();
        Self { store, tier, options, limiter, described_collections, last_purge }
    }

    /// Resets the state to that of a newly started service.
    fn restart(&mut self, tier: ServiceTier, options: ServiceOptions) {
        (self.tier, self.limiter) = (tier, RateLimiter::new(options.rate_limits));
        self.options = options;
        self.last_purge = Mutex::new(None);
    }

    /// The number of days in which a deleted project can be restored; `None` if deletion is immediate.
    /// Deletion is delayed with every licence from 18.0 on, and with Premium from 16.0 on.
    fn deletion_delay(&self) -> Option<u32> {
        let release = self.options.profile.release;
        let default_delay = if release >= Release::new(18, 3) {
            Some(30)
        } else {
            (release >= Release::new(16, 0)).then_some(7)
        };
        let is_licensed = self.tier >= ServiceTier::Premium || release >= Release::new(18, 0);
        self.options.profile.deletion_delay.or(default_delay).filter(|_| is_licensed)
    }

    /// Deletes the marked projects and groups whose delay is over. The deletion runs once a day.
    fn purge_deleted(&self, now: Timestamp) -> Result<()> {
        let Some(delay_days) = self.deletion_delay() else { return Ok(()) };
        let today = clock::utc_day(now);
        let mut last_purge = self.last_purge.lock().unwrap_or_else(PoisonError::into_inner);
        if *last_purge != Some(today) {
            let delay = Span::new().days(i64::from(delay_days).min(MAX_DELETION_DELAY_DAYS));
            let last_deletion_day = today.saturating_sub(delay).to_string();
            self.store.write(|db| {
                ["projects", "namespaces"].into_iter().try_for_each(|table| {
                    let sql = format!("DELETE FROM {table} WHERE marked_for_deletion_on <= ?1");
                    db.execute(&sql, [&last_deletion_day]).map(drop)
                })
            })?;
            *last_purge = Some(today);
        }
        Ok(())
    }
}

/// A running sandbox. Dropping this value stops the sandbox without waiting;
/// [`RunningSandbox::stop`] waits.
pub struct RunningSandbox {
    address: SocketAddr,
    token: String,
    is_token_generated: bool,
    notes: Vec<String>,
    service: Arc<ServiceState>,
    faults: Arc<InjectedFaults>,
    stop_sender: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// Opens the data, applies the seed, and listens.
///
/// # Errors
///
/// If another process uses the data, or the data is not valid. If the seed contradicts itself or
/// the rules of the service. If the address or the request log cannot be used.
pub async fn start(config: SandboxConfig) -> Result<RunningSandbox, StartError> {
    let store = Store::open(&config.data, config.is_durable)?;
    let seed = config.seed.as_ref();
    let (previous_release, previous_tier) = seeding::read_last_start(&store);
    let seed_tier = seed.and_then(|seed| seed.tier);
    let tier = config.tier.or(seed_tier).or(previous_tier).unwrap_or_default();
    let faults = Arc::new(InjectedFaults::new(config.profile.faults.clone()));
    let SandboxConfig { rate_limits, profile, clock, random, .. } = config;
    let requested_release = config.release.or(seed.and_then(|seed| seed.release));
    let profile = match requested_release
        .or(previous_release.map(|previous| previous.max(profile.release)))
    {
        Some(release) => profile.with_release(release),
        None => profile,
    };
    let options = ServiceOptions { rate_limits, profile, clock, random };
    let described_collections = DescribedCollections::new(config.collections);
    let service =
        Arc::new(ServiceState { described_collections, ..ServiceState::new(store, tier, options) });
    let is_token_generated = config.token.is_none();
    let token =
        config.token.unwrap_or_else(|| format!("sandbox-{}", service.options.random.next_hex()));
    let notes = service
        .store
        .write(|db: &_| seeding::prepare_database(&service, db, seed, &token, &config.data))?;
    let log = config.request_log.map(open_request_log).transpose()?.map(Mutex::new);
    let bind_address = config.listen.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
    let bind_error = |source| StartError::Bind { address: bind_address, source };
    let listener = TcpListener::bind(bind_address).await.map_err(bind_error)?;
    let address = listener.local_addr().map_err(bind_error)?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let server_state = Arc::new(server::ServerState {
        service: Arc::clone(&service),
        read_permits: Semaphore::new(processors),
        write_permit: Semaphore::new(1),
        faults: Arc::clone(&faults),
        latency: config.latency,
        request_log: log,
        allowed_hosts: AllowedHosts::new(bind_address, config.allowed_hosts),
        body_reader: BodyReader::default(),
    });
    let (stop_sender, stop_receiver) = watch::channel(false);
    let task = tokio::spawn(server::serve(listener, server_state, stop_receiver));
    Ok(RunningSandbox {
        address,
        token,
        is_token_generated,
        notes,
        service,
        faults,
        stop_sender,
        task,
    })
}

fn open_request_log(path: PathBuf) -> Result<File, StartError> {
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.map_err(|source| StartError::RequestLog { path, source })
}

impl std::fmt::Debug for RunningSandbox {
    /// Hides the token.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RunningSandbox")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl RunningSandbox {
    /// The address that the sandbox listens on.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// The address for clients, without `/api/v4`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The token of `root`.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// True if the sandbox generated the token. The user then needs to see it.
    pub fn is_token_generated(&self) -> bool {
        self.is_token_generated
    }

    /// Notes for the user about the data, as fragments of text.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The licence of the service.
    pub fn tier(&self) -> ServiceTier {
        self.service.tier
    }

    /// True if every write is flushed to the disk before it is answered.
    pub fn is_durable(&self) -> bool {
        self.service.store.is_durable().unwrap_or(false)
    }

    /// Calls `work` with the stored data. Tests use this for data that no operation returns.
    pub fn inspect<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        self.service.store.inspect(work)
    }

    /// Adds a fault. Its [`InjectedFault::nth`] counts only later calls.
    pub fn add_fault(&self, fault: InjectedFault) {
        self.faults.add(fault);
    }

    /// Finishes the open requests, writes all data into the database file, and closes the file.
    pub async fn stop(self) {
        self.stop_sender.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "the sandbox did not stop cleanly");
        }
        if let Err(error) = self.service.store.checkpoint() {
            tracing::warn!(%error, "the sandbox's write-ahead log stays beside its file");
        }
    }
}
