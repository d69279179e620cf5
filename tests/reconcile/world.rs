//! A service, a folder of manifests, and undrift between them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use undrift::{
    api::{
        self, ApiError, Clock, EncodedBody, HttpOptions, HttpTransport, Random, ReadClient,
        SendError, ServiceAddress, Transport, WireRequest, WireResponse, WriteClient,
    },
    apply::{self, Apply, ApplyResult, Event},
    desired::{Acknowledgement, Container, Desired, GroupDeclarations, Roster},
    manifest::{self, IncludeRules, LoadEnvironment, LoadedManifests},
    observe::Observer,
    operation::Method,
    plan::{ApprovalPolicy, Extent, Plan, PlanSettings},
    release::Release,
    sandbox::{self, Profile, RunningSandbox, Seed},
    secret::{Secret, Secrets},
    value::Value,
};

use crate::shown::{self, Ids, Recorder, SentWrite};

/// A release that is later than any field needs.
pub(crate) const NEWEST: Release = Release::new(18, 9);

/// A clock on which waiting takes no time.
#[derive(Debug, Default)]
struct InstantClock(AtomicU64);

impl Clock for InstantClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
    fn system_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000) + self.now()
    }
    fn sleep(&self, wait: Duration) -> BoxFuture<'_, ()> {
        self.0.fetch_add(u64::try_from(wait.as_millis()).unwrap(), Ordering::SeqCst);
        Box::pin(tokio::task::yield_now())
    }
}

/// Randomness that always returns the same.
#[derive(Debug)]
struct FixedRandom;

impl Random for FixedRandom {
    fn fraction(&self) -> f64 {
        0.5
    }
}

/// Settings of a client that never waits.
pub(crate) fn instant_settings() -> api::ClientSettings {
    api::ClientSettings {
        clock: Arc::new(InstantClock::default()),
        random: Arc::new(FixedRandom),
        ..api::ClientSettings::default()
    }
}

/// A change of a write's body before it reaches the service, by its method and path. It may remove
/// parts, or return a response so that the write is not carried out.
pub(crate) type BodyEdit = fn(&str, &str, &mut Json) -> Option<Json>;

/// A service with a quirk.
#[derive(Debug)]
struct EditingTransport {
    inner: Arc<dyn Transport>,
    quirk: BodyEdit,
}

impl Transport for EditingTransport {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        let mut request = request;
        let body = match &request.body {
            EncodedBody::Json(text) => serde_json::from_slice::<Json>(text).ok(),
            EncodedBody::Empty | EncodedBody::Form(_) => None,
        };
        if let Some(mut body) = body {
            if let Some(response) =
                (self.quirk)(request.method.as_str(), &request.target, &mut body)
            {
                let json = (http::header::CONTENT_TYPE, "application/json".parse().unwrap());
                let (headers, body) =
                    ([json].into_iter().collect(), Ok(response.to_string().into()));
                return Box::pin(async { Ok(WireResponse { status: 200, headers, body }) });
            }
            request.body = EncodedBody::Json(body.to_string().into());
        }
        self.inner.send(request)
    }
}

/// Calls by somebody else just before a request: method, path and body.
pub(crate) type ForeignCalls =
    Arc<dyn Fn(&WireRequest) -> Vec<(Method, String, Json)> + Send + Sync>;

/// A service that somebody else uses too.
struct SharedTransport {
    inner: Arc<dyn Transport>,
    meddling: ForeignCalls,
}

impl std::fmt::Debug for SharedTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Busy")
    }
}

impl Transport for SharedTransport {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(async move {
            for (method, target, body) in (self.meddling)(&request) {
                let other = WireRequest {
                    method,
                    target,
                    body: EncodedBody::Json(body.to_string().into()),
                    if_unmodified_since: None,
                    timeout: Duration::from_secs(60),
                    idle_timeout: Duration::from_secs(60),
                };
                // It may be refused.
                let _ = self.inner.send(other).await;
            }
            self.inner.send(request).await
        })
    }
}

pub(crate) struct World {
    pub(crate) sandbox: RunningSandbox,
    folder: tempfile::TempDir,
    environment: BTreeMap<String, String>,
    pub(crate) tweak: fn(&mut PlanSettings),
    /// Changes the bodies of writes before they reach the service.
    pub(crate) body_edit: Option<BodyEdit>,
    /// Changes made by somebody else at the same time.
    pub(crate) foreign_calls: Option<ForeignCalls>,
    /// The writes of clients.
    sent: Arc<Mutex<Vec<SentWrite>>>,
    /// The ids of the containers that clients were shown.
    ids: Arc<Mutex<Ids>>,
    /// The acknowledgements, as on the command line.
    pub(crate) acknowledged: Vec<&'static str>,
    /// The extent of runs.
    pub(crate) extent: Extent,
    /// The time for which a plan's live state counts as current; zero by default.
    pub(crate) trust_time: Duration,
}

/// The result of plan and apply.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    pub(crate) applied: Option<ApplyResult>,
    pub(crate) events: Vec<Event>,
}

impl World {
    pub(crate) async fn new(profile: Profile, seed: Json) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = sandbox::SandboxConfig {
            profile,
            seed: Some(Seed::from_json(seed).unwrap()),
            request_log: Some(folder.path().join("requests.jsonl")),
            ..sandbox::SandboxConfig::default()
        };
        let sandbox = sandbox::start(config).await.unwrap();
        std::fs::create_dir(folder.path().join("manifests")).unwrap();
        Self {
            sandbox,
            folder,
            environment: BTreeMap::new(),
            tweak: |_| (),
            body_edit: None,
            foreign_calls: None,
            sent: Arc::default(),
            ids: Arc::default(),
            acknowledged: Vec::new(),
            extent: Extent::default(),
            trust_time: Duration::ZERO,
        }
    }

    pub(crate) fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.insert(name.into(), value.into());
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("manifests")
    }

    /// Replaces the manifests. JSON is YAML.
    pub(crate) fn declare(&self, documents: &[Json]) {
        let text: Vec<_> = documents.iter().map(Json::to_string).collect();
        std::fs::write(self.root().join("all.yaml"), text.join("\n---\n")).unwrap();
    }

    pub(crate) fn load_manifests(&self) -> LoadedManifests {
        manifest::load(
            &self.root(),
            &LoadEnvironment {
                working_folder: self.root(),
                today: jiff::civil::date(2030, 1, 1),
                ..LoadEnvironment::for_process()
            },
        )
    }

    /// The declarations in the documents.
    pub(crate) fn desired(&self) -> Desired {
        let loaded = self.load_manifests();
        loaded.desired.unwrap_or_else(|| {
            panic!("{}", loaded.diagnostics.render(undrift::diagnostic::TextStyle::default()))
        })
    }

    /// `desired` with the containers that rules include, as selected by `settings`; and the rest of
    /// the roster.
    pub(crate) async fn include_live(
        &self,
        observer: &Observer,
        desired: Desired,
        settings: &mut PlanSettings,
    ) -> Result<(Desired, Roster), ApiError> {
        let Some(includes) = self.load_manifests().include_rules else {
            return Ok((desired, Roster::default()));
        };
        let mut roster = observer.read_roster(&includes.roster_query(&desired)).await?;
        let desired = includes.include_from(desired, &mut roster).unwrap_or_else(|wrong| {
            panic!("{}", wrong.render(undrift::diagnostic::TextStyle::default()))
        });
        settings.moves = Arc::clone(&desired.moves);
        settings.group_declarations = GroupDeclarations::from_containers(&desired.containers);
        Ok((desired, roster))
    }

    pub(crate) async fn connect(
        &self,
        desired: &Desired,
    ) -> Result<(Observer, PlanSettings), ApiError> {
        self.connect_as(self.sandbox.token(), desired).await
    }

    pub(crate) async fn connect_as(
        &self,
        token: &str,
        desired: &Desired,
    ) -> Result<(Observer, PlanSettings), ApiError> {
        let (client, secrets) = self.client_as(token, desired);
        self.connect_with(client, secrets, desired).await
    }

    /// A client for the holder of `token`, and the secrets in `desired`.
    pub(crate) fn client_as(&self, token: &str, desired: &Desired) -> (ReadClient, Arc<Secrets>) {
        let mut secrets = Secrets::new(self.root(), self.environment.clone());
        let references: Vec<_> = desired.references().map(|(_, _, reference)| reference).collect();
        secrets.resolve(&references);
        let of_rules = self.load_manifests().include_rules;
        let rule_values = of_rules.iter().flat_map(IncludeRules::referenced_values);
        secrets.resolve(rule_values.filter_map(|value| match value {
            Value::Secret(reference) => Some(reference),
            Value::Plain(_) | Value::File(_) => None,
        }));
        let token = Secret::new(token);
        secrets.add_redaction(token.clone());
        let secrets = Arc::new(secrets);
        let service = ServiceAddress::parse(&self.sandbox.url(), false).unwrap();
        let http = HttpTransport::new(&service, &token, &HttpOptions::default()).unwrap();
        let http: Arc<dyn Transport> = Arc::new(http);
        let transport: Arc<dyn Transport> = match self.body_edit {
            Some(quirk) => Arc::new(EditingTransport { inner: Arc::clone(&http), quirk }),
            None => Arc::clone(&http),
        };
        let transport = match &self.foreign_calls {
            Some(meddling) => {
                Arc::new(SharedTransport { inner: transport, meddling: meddling.clone() })
            }
            None => transport,
        };
        let (sent, ids) = (Arc::clone(&self.sent), Arc::clone(&self.ids));
        let transport = Arc::new(Recorder { inner: transport, service: http, sent, ids });
        (ReadClient::new(service, transport, secrets.clone(), instant_settings()), secrets)
    }

    /// An observer with `client`.
    pub(crate) async fn connect_with(
        &self,
        client: ReadClient,
        secrets: Arc<Secrets>,
        desired: &Desired,
    ) -> Result<(Observer, PlanSettings), ApiError> {
        let observer = Observer::connect(client).await?.with_moves(Arc::clone(&desired.moves));
        let mut settings = PlanSettings::for_run(observer.caller().clone(), secrets, desired);
        (self.tweak)(&mut settings);
        Ok((observer, settings))
    }

    pub(crate) async fn plan_with(
        &self,
        observer: &Observer,
        desired: &Desired,
        settings: &PlanSettings,
    ) -> Result<Plan, ApiError> {
        self.plan_with_roster(Roster::default(), observer, desired, settings).await
    }

    /// The same, with the unplanned part of a roster.
    pub(crate) async fn plan_with_roster(
        &self,
        roster: Roster,
        observer: &Observer,
        desired: &Desired,
        settings: &PlanSettings,
    ) -> Result<Plan, ApiError> {
        let plan = Mutex::new(Plan::from_roster(roster).with_container_plans());
        let each = async |container: &Container, mut live| {
            let planned =
                apply::plan_with_extra_facts(observer, container, &mut live, settings).await?;
            plan.lock().unwrap().add(container, planned, live);
            Ok(())
        };
        observer.read_all(&desired.containers, 16, each).await?;
        let mut plan = plan.into_inner().unwrap().finish(&self.extent);
        let acknowledged: Vec<_> =
            self.acknowledged.iter().map(|ack| Acknowledgement::parse(ack).unwrap()).collect();
        plan.acknowledge(&acknowledged, &settings.moves, jiff::civil::date(2030, 1, 1));
        Ok(plan)
    }

    pub(crate) async fn try_plan(&self) -> Result<Plan, ApiError> {
        self.try_plan_as(self.sandbox.token()).await
    }

    pub(crate) async fn try_plan_as(&self, token: &str) -> Result<Plan, ApiError> {
        let desired = self.desired();
        let (observer, mut settings) = self.connect_as(token, &desired).await?;
        let (desired, roster) = self.include_live(&observer, desired, &mut settings).await?;
        self.plan_with_roster(roster, &observer, &desired, &settings).await
    }

    pub(crate) async fn plan(&self) -> Plan {
        self.try_plan().await.unwrap()
    }

    /// Plans and, unless something blocks it, applies.
    pub(crate) async fn try_apply(&self) -> Result<Outcome, ApiError> {
        self.apply_after(async |_: &Self| ()).await
    }

    pub(crate) async fn apply(&self) -> Outcome {
        self.try_apply().await.unwrap()
    }

    /// The same, with an action between plan and apply.
    pub(crate) async fn apply_after(
        &self,
        between: impl AsyncFnOnce(&Self),
    ) -> Result<Outcome, ApiError> {
        let desired = self.desired();
        let (observer, mut settings) = self.connect(&desired).await?;
        let (desired, roster) = self.include_live(&observer, desired, &mut settings).await?;
        let plan = self.plan_with_roster(roster, &observer, &desired, &settings).await?;
        between(self).await;
        if !plan.problems.is_empty()
            || !plan.refusals.is_empty()
            || settings.secrets.unresolved_references().next().is_some()
        {
            return Ok(Outcome { plan, applied: None, events: Vec::new() });
        }
        let (approved, _) = plan
            .approve(ApprovalPolicy::default())
            .unwrap_or_else(|blocked| panic!("{}: {:#?}", blocked.0, plan.incomplete));
        let writer = WriteClient::new(observer.client().clone());
        let apply = Apply {
            desired: &desired,
            observer: &observer,
            writer: &writer,
            settings: &settings,
            max_containers: 16,
            trust_duration: self.trust_time,
        };
        let events = Mutex::new(Vec::new());
        self.sent.lock().unwrap().clear();
        let applied = apply.run(&approved, |event| events.lock().unwrap().push(event)).await;
        let (ids, sent) = (self.ids.lock().unwrap(), self.sent.lock().unwrap());
        shown::assert_shown(&plan, &settings.secrets, &ids, &sent);
        drop((ids, sent));
        Ok(Outcome { plan, applied: Some(applied), events: events.into_inner().unwrap() })
    }

    /// Applies, and asserts that everything matches afterwards.
    pub(crate) async fn converge(&self, about: &str) -> Plan {
        let outcome = self.apply().await;
        assert!(
            outcome.plan.problems.is_empty() && outcome.plan.refusals.is_empty(),
            "{about}: {:#?}",
            outcome.plan
        );
        let applied = outcome.applied.unwrap();
        let failed: Vec<_> =
            applied.steps.iter().filter(|step| !step.outcome.is_success()).collect();
        assert!(applied.is_complete(), "{about}: {failed:#?} {:#?}", applied.mismatches);
        let again = self.plan().await;
        assert!(again.steps.is_empty(), "{about}, planned again: {:#?}", again.steps);
        assert!(again.incomplete.is_empty(), "{about}: {:#?}", again.incomplete);
        outcome.plan
    }

    /// The requests so far, as `METHOD path`, without those outside the API.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log =
            std::fs::read_to_string(self.folder.path().join("requests.jsonl")).unwrap_or_default();
        let line = |line: &str| {
            let line: Json = serde_json::from_str(line).unwrap();
            format!("{} {}", line["method"].as_str().unwrap(), line["path"].as_str().unwrap())
        };
        // The last line may be incomplete.
        let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(line).filter(|request| !shown::is_recorder_read(request)).collect()
    }

    pub(crate) fn writes(&self) -> Vec<String> {
        self.requests().into_iter().filter(|request| !request.starts_with("GET ")).collect()
    }

    /// One object of the service, read without undrift.
    pub(crate) async fn get(&self, path: &str) -> Json {
        self.call("GET", path, None).await
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Option<Json>) -> Json {
        let client = reqwest_client();
        let url = format!("{}/api/v4{path}", self.sandbox.url());
        let mut request = client
            .request(method.parse().unwrap(), url)
            .header("PRIVATE-TOKEN", self.sandbox.token());
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let text = request.send().await.unwrap().text().await.unwrap();
        serde_json::from_str(&text).unwrap_or(Json::Null)
    }
}

/// A plain client that needs no system certificates.
fn reqwest_client() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
}

/// A seed with one public group, some users, and `projects`.
pub(crate) fn seed(projects: &[Json]) -> Json {
    let users: Vec<_> =
        ["alice", "bob", "carol", "dave"].iter().map(|name| json!({"username": name})).collect();
    json!({
        "tier": "ultimate",
        "users": users,
        "groups": [{"path": "acme", "visibility": "public", "members": [{"user": "root", "access_level": 50}]}],
        "projects": projects,
    })
}

/// A declared group.
pub(crate) fn group(path: &str, sections: Json) -> Json {
    let mut document = project(path, sections);
    document["kind"] = "Group".into();
    document
}

/// A declared project.
pub(crate) fn project(path: &str, sections: Json) -> Json {
    let mut document = json!({"kind": "Project", "path": path});
    document.as_object_mut().unwrap().extend(sections.as_object().unwrap().clone());
    document
}
