//! Against a service with limits, a plan and an apply of hundreds of projects use the limits, and
//! are not refused for too many requests.
//!
//! The service is the sandbox's model behind a transport. Its clock and the client's are tokio's,
//! which advances when everybody waits. So hours pass in no time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use http::HeaderValue;
use serde_json::{Value as Json, json};
use tokio::time::Instant;
use undrift::{
    api::{
        self, Clock, EncodedBody, ReadClient, SendError, ServiceAddress, Transport, WireRequest,
        WireResponse, WriteClient,
    },
    apply::{self, Apply, TRUST_DURATION},
    desired::{Acknowledgement, Container, Desired},
    manifest::{self, LoadEnvironment},
    observe::Observer,
    plan::{ApprovalPolicy, Extent, Plan, PlanSettings},
    sandbox::{self, Model, RateLimits, Seed, ServiceOptions},
    secret::{Secret, Secrets},
};

use crate::world::{project, seed};

const TOKEN: &str = "sandbox-of-the-limits";
/// The start, in seconds of the Unix epoch, at the start of a minute.
const EPOCH: u64 = 1_900_000_020;
/// Requests per user and minute: below a real limit, so that fewer projects suffice.
const USER_LIMIT: u32 = 600;
/// A real limit, for `UNDRIFT_PROJECTS`.
const REAL_USER_LIMIT: u32 = 2_000;

/// An operation with its own limit, and that limit per minute.
const SINGLE_LIMIT: (&str, u32) = ("single project", 400);
const REMOVAL: (&str, u32) = ("removal of a member", 60);

/// A request that was answered.
#[derive(Clone, Debug)]
struct SentRequest {
    category: String,
    at: Duration,
    status: u16,
}

/// The transport to the service, with latency.
struct ModelTransport {
    model: Arc<Model>,
    token: String,
    start: Instant,
    sent: Mutex<Vec<SentRequest>>,
}

impl std::fmt::Debug for ModelTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wire")
    }
}

impl Transport for ModelTransport {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(async move {
            tokio::time::sleep(LATENCY / 2).await;
            let what = categorise(&request);
            let content = match request.body {
                EncodedBody::Json(json) => json,
                EncodedBody::Empty | EncodedBody::Form(_) => bytes::Bytes::new(),
            };
            let asked = http::Request::builder()
                .method(request.method.as_str())
                .uri(format!("/api/v4{}", request.target))
                .header("private-token", &self.token)
                .header("content-type", "application/json");
            let (parts, body) = self.model.answer(asked.body(content).unwrap()).into_parts();
            let at = self.start.elapsed();
            self.sent.lock().unwrap().push(SentRequest {
                category: what,
                at,
                status: parts.status.as_u16(),
            });
            tokio::time::sleep(LATENCY / 2).await;
            let mut headers = parts.headers;
            let date = httpdate::fmt_http_date(wall_time(at));
            headers.insert("date", HeaderValue::from_str(&date).unwrap());
            Ok(WireResponse { status: parts.status.as_u16(), headers, body: Ok(body) })
        })
    }
}

/// The sort of a request, as limits distinguish it.
fn categorise(request: &WireRequest) -> String {
    let path = request.target.split('?').next().unwrap();
    let parts: Vec<_> = path.split('/').skip(1).collect();
    let named = match (request.method.as_str(), &parts[..]) {
        ("GET", ["projects", _]) => SINGLE_LIMIT.0,
        ("DELETE", ["projects", _, "members", _]) => REMOVAL.0,
        (method, ["projects", _, rest @ ..]) => return format!("{method} {}", rest.join("/")),
        (method, _) => method,
    };
    named.to_owned()
}

fn wall_time(at: Duration) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH) + at
}

/// The client's clock, which is wrong by hours.
#[derive(Debug)]
struct SkewedClock(Instant);

impl Clock for SkewedClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
    fn system_time(&self) -> SystemTime {
        wall_time(self.now()) + Duration::from_secs(10_000)
    }
    fn sleep(&self, wait: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(wait))
    }
}

/// A service with limits, the declarations, and a client.
struct LimitedService {
    wire: Arc<ModelTransport>,
    desired: Arc<Desired>,
    observer: Observer,
    settings: PlanSettings,
    /// The time of the middle of a plan, and the client's estimate of the minutes left.
    midpoint: Mutex<Option<(Duration, u64)>>,
}

impl LimitedService {
    async fn new(projects: &[Json], documents: &[Json]) -> Self {
        Self::with_limit(projects, documents, USER_LIMIT).await
    }

    /// With `user` requests of one user in a minute.
    async fn with_limit(projects: &[Json], documents: &[Json], user: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (at, chunk) in documents.chunks(1_000).enumerate() {
            let text: Vec<_> = chunk.iter().map(Json::to_string).collect();
            let file = folder.path().join(format!("{at}.yaml"));
            std::fs::write(file, text.join("\n---\n")).unwrap();
        }
        let today = jiff::civil::date(2030, 1, 1);
        let around = LoadEnvironment {
            working_folder: folder.path().to_owned(),
            today,
            ..LoadEnvironment::for_process()
        };
        let loaded = manifest::load(folder.path(), &around);
        let desired = loaded.desired.unwrap_or_else(|| {
            panic!("{}", loaded.diagnostics.render(undrift::diagnostic::TextStyle::default()))
        });
        let start = Instant::now();
        let clock = sandbox::Clock::new(move || {
            jiff::Timestamp::try_from(wall_time(start.elapsed())).unwrap()
        });
        let rate_limits = RateLimits {
            max_per_user: Some(user),
            max_per_operation: None,
            has_route_limits: true,
        };
        let options = ServiceOptions { rate_limits, clock, ..ServiceOptions::default() };
        let mut seed = seed(projects);
        for at in 0..MOST_JOBS {
            let user = json!({"username": format!("job{at}"), "token": token_of(at), "administrator": true});
            seed["users"].as_array_mut().unwrap().push(user);
        }
        let model = Model::new(&Seed::from_json(seed).unwrap(), TOKEN, options).unwrap();
        Self::connect(Arc::new(model), Arc::new(desired), start, TOKEN.to_owned()).await
    }

    /// A client of the same service with another token.
    async fn job(&self, at: usize) -> Self {
        let ModelTransport { model, start, .. } = &*self.wire;
        Self::connect(Arc::clone(model), Arc::clone(&self.desired), *start, token_of(at)).await
    }

    async fn connect(
        model: Arc<Model>,
        desired: Arc<Desired>,
        start: Instant,
        token: String,
    ) -> Self {
        let mut secrets = Secrets::new(std::path::Path::new("."), BTreeMap::new());
        secrets.add_redaction(Secret::new(&token));
        let wire = Arc::new(ModelTransport { model, token, start, sent: Mutex::default() });
        let secrets = Arc::new(secrets);
        let api = api::ClientSettings {
            clock: Arc::new(SkewedClock(start)),
            ..api::ClientSettings::default()
        };
        let service = ServiceAddress::parse("https://service.example", false).unwrap();
        let client = ReadClient::new(service, wire.clone(), Arc::clone(&secrets), api);
        let observer = Observer::connect(client).await.unwrap();
        let settings = PlanSettings::for_run(observer.caller().clone(), secrets, &desired);
        Self { wire, desired, observer, settings, midpoint: Mutex::default() }
    }

    async fn plan(&self) -> Plan {
        self.plan_part(0, 1).await
    }

    /// Plans one of several equal parts.
    async fn plan_part(&self, at: usize, parts: usize) -> Plan {
        let plan = Mutex::new(Plan::default());
        let containers = self.desired.containers.iter().skip(at).step_by(parts);
        let containers: Vec<Container> = containers.cloned().collect();
        let (client, all) = (self.observer.client(), containers.len());
        let before = client.counts();
        let each = async |container: &Container, mut live| {
            let planned =
                apply::plan_with_extra_facts(&self.observer, container, &mut live, &self.settings)
                    .await?;
            let mut plan = plan.lock().unwrap();
            plan.add(container, planned, live);
            if plan.projects == all / 2 {
                let left = client.remaining_minutes(&before, plan.projects, all);
                *self.midpoint.lock().unwrap() = Some((self.wire.start.elapsed(), left.unwrap()));
            }
            Ok(())
        };
        self.observer.read_all(&containers, 64, each).await.unwrap();
        let mut plan = plan.into_inner().unwrap().finish(&Extent::default());
        let ack = ["removals:**"].map(|ack| Acknowledgement::parse(ack).unwrap());
        plan.acknowledge(&ack, &self.settings.moves, jiff::civil::date(2030, 1, 1));
        plan.with_estimate(client.requests_per_minute())
    }

    async fn apply(&self, plan: &Plan) {
        let (approved, left_out) = plan.approve(ApprovalPolicy::default()).unwrap();
        assert!(left_out.is_empty(), "{left_out:?}");
        let writer = WriteClient::new(self.observer.client().clone());
        let apply = Apply {
            desired: &self.desired,
            observer: &self.observer,
            writer: &writer,
            settings: &self.settings,
            max_containers: 16,
            trust_duration: TRUST_DURATION,
        };
        let applied = apply.run(&approved, |_| ()).await;
        let failed = applied.steps.iter().find(|step| !step.outcome.is_success());
        assert!(applied.is_complete(), "{failed:?} {:?}", applied.mismatches.first());
    }

    /// The requests since the last call, by the minutes in which the service counts them.
    fn minutes(&self) -> Vec<Vec<SentRequest>> {
        let mut minutes: BTreeMap<u64, Vec<SentRequest>> = BTreeMap::new();
        for sent in self.wire.sent.lock().unwrap().drain(..) {
            minutes.entry((sent.at.as_secs() + EPOCH) / 60).or_default().push(sent);
        }
        minutes.into_values().collect()
    }
}

/// Asserts that each minute except the last one uses 95 % of some budget, and that no request is
/// refused twice in a row.
fn check_usage(about: &str, minutes: &[Vec<SentRequest>]) {
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for sent in minutes.iter().flatten() {
        let times = refused.entry(&sent.category).or_default();
        *times = if sent.status == 429 { *times + 1 } else { 0 };
        assert!(
            *times < 2,
            "{about}: {} was refused twice in a row at {:?}",
            sent.category,
            sent.at
        );
    }
    let [full @ .., _] = minutes else { panic!("{about}: no requests") };
    for (minute, requests) in full.iter().enumerate() {
        let of = |what: &str| requests.iter().filter(|sent| sent.category == what).count() as f64;
        let used = [
            requests.len() as f64 / f64::from(USER_LIMIT),
            of(SINGLE_LIMIT.0) / f64::from(SINGLE_LIMIT.1),
            of(REMOVAL.0) / f64::from(REMOVAL.1),
        ];
        let most = used.into_iter().fold(0.0, f64::max);
        assert!(most >= 0.95, "{about}: of minute {minute} only {used:?} is used");
    }
}

fn refusals(minutes: &[Vec<SentRequest>]) -> usize {
    minutes.iter().flatten().filter(|sent| sent.status == 429).count()
}

/// Projects with two variables, all in one list of their group.
fn projects(number: usize, members: &Json) -> Vec<Json> {
    let project = |index| {
        json!({
            "path": format!("acme/p{index}"), "members": members,
            "variables": [{"key": "A", "value": "a"}, {"key": "B", "value": "b"}],
        })
    };
    (0..number).map(project).collect()
}

/// The most jobs that share an organisation.
const MOST_JOBS: usize = 8;

fn token_of(job: usize) -> String {
    format!("sandbox-of-the-job-{job}")
}

/// `UNDRIFT_PROJECTS=20000` gives the figures in docs/howto/parts.md, with `--nocapture`.
#[expect(clippy::print_stdout, reason = "figures on request")]
#[tokio::test(start_paused = true)]
async fn jobs_with_separate_tokens_divide_the_time() {
    let given = std::env::var("UNDRIFT_PROJECTS").ok();
    let number = given.as_ref().map_or(720, |number| number.parse().unwrap());
    let (jobs, user): (&[usize], _) = match given {
        Some(_) => (&[1, 4, MOST_JOBS], REAL_USER_LIMIT),
        None => (&[1, MOST_JOBS], USER_LIMIT),
    };
    let sections =
        json!({"variables": [{"key": "A", "value": "a"}], "settings": {"merge_method": "merge"}});
    let documents: Vec<_> =
        (0..number).map(|index| project(&format!("acme/p{index}"), sections.clone())).collect();
    let limited = LimitedService::with_limit(&projects(number, &json!([])), &documents, user).await;
    for &jobs in jobs {
        let begun = limited.wire.start.elapsed();
        let each = (0..jobs).map(async |at| {
            let job = limited.job(at).await;
            let plan = job.plan_part(at, jobs).await;
            assert!(
                plan.incomplete.is_empty() && plan.problems.is_empty(),
                "{:?}",
                plan.incomplete
            );
            let minutes = job.minutes();
            assert_eq!(refusals(&minutes), 0);
            (plan.projects, minutes.iter().map(Vec::len).sum::<usize>())
        });
        let done = futures_util::future::join_all(each).await;
        let took = (limited.wire.start.elapsed() - begun).as_secs();
        assert_eq!(done.iter().map(|(projects, _)| projects).sum::<usize>(), number);
        let most = done.iter().map(|(_, requests)| *requests).max().unwrap();
        println!("{number} projects, {jobs} jobs: {took} s, {most} requests of the busiest");
        // Full minutes of the busiest job, and the rests of minutes before and after them.
        let full = most as u64 / u64::from(user) * 60;
        assert!(took <= full * 20 / 19 + 120, "{jobs} jobs: {took} s, {most} requests");
        assert!(most <= number / jobs + number / 20 + 200, "{jobs} jobs: {most} requests");
    }
}

const LATENCY: Duration = Duration::from_millis(80);

#[tokio::test(start_paused = true)]
async fn a_plan_uses_the_budget_of_the_user() {
    let sections = json!({
        "variables": [{"key": "A", "value": "a"}], "members": [], "hooks": [],
        "protected_branches": [], "push_rule": {"member_check": false}, "settings": {"merge_method": "merge"},
    });
    let documents: Vec<_> =
        (0..300).map(|index| project(&format!("acme/p{index}"), sections.clone())).collect();
    let limited = LimitedService::new(&projects(300, &json!([])), &documents).await;
    let requests = Observer::estimate_requests(&limited.desired.containers);
    let told = limited.observer.client().estimate_minutes(requests).unwrap();
    let plan = limited.plan().await;
    let now = limited.wire.start.elapsed().as_secs_f64();
    let (half, left) = limited.midpoint.lock().unwrap().unwrap();
    // The first minute's requests are sent at once, and so are those of each further one.
    for (told, took) in [(told, now), (left, now - half.as_secs_f64())] {
        assert!(told > 0 && (took / 60.0 - told as f64).abs() < 1.0, "{told} minutes, {took} s");
    }
    assert!(plan.incomplete.is_empty() && plan.problems.is_empty(), "{:?}", plan.incomplete);
    let minutes = limited.minutes();
    assert!(minutes.len() >= 3, "{} minutes", minutes.len());
    check_usage("plan", &minutes);
    assert_eq!(refusals(&minutes), 0);
}

#[tokio::test(start_paused = true)]
async fn a_plan_with_single_reads_uses_the_limit_for_them() {
    // Only a look at its path shows that a project is missing.
    let documents: Vec<_> =
        (0..1_000).map(|at| project(&format!("acme/p{at}"), json!({"create": true}))).collect();
    let limited = LimitedService::new(&[], &documents).await;
    let plan = limited.plan().await;
    assert_eq!((plan.counts().create, plan.problems.len()), (1_000, 0));
    let now = limited.wire.start.elapsed();
    let (half, left) = limited.midpoint.lock().unwrap().unwrap();
    assert!(left > 0 && ((now - half).as_secs_f64() / 60.0 - left as f64).abs() < 1.0, "{left}");
    let minutes = limited.minutes();
    assert!(minutes.len() >= 3, "{} minutes", minutes.len());
    check_usage("plan of single projects", &minutes);
    assert_eq!(refusals(&minutes), 0);
}

#[tokio::test(start_paused = true)]
async fn an_apply_uses_the_limits_of_edits_and_removals() {
    let members = json!([{"user": "bob", "access_level": 30}]);
    let sections = |at: usize| {
        let mut sections = json!({
            "settings": {"description": "new"},
            "variables": [{"key": "A", "value": "new"}, {"key": "B", "value": "new"}, {"key": "C", "value": "c"}],
        });
        if at.is_multiple_of(4) {
            sections["members"] = json!([]);
            sections["unlisted"] = json!({"members": "delete"});
        }
        sections
    };
    let documents: Vec<_> =
        (0..240).map(|index| project(&format!("acme/p{index}"), sections(index))).collect();
    let limited = LimitedService::new(&projects(240, &members), &documents).await;
    let plan = limited.plan().await;
    let counts = plan.counts();
    assert_eq!((counts.update, counts.create, counts.delete), (720, 240, 60));
    check_usage("plan", &limited.minutes());
    // The rest of the plan's last minute is below a full minute's limit.
    let elapsed_seconds = limited.wire.start.elapsed().as_secs() % 60;
    tokio::time::sleep(Duration::from_secs(60 - elapsed_seconds)).await;
    limited.apply(&plan).await;
    let minutes = limited.minutes();
    check_usage("apply", &minutes);
    assert_eq!(refusals(&minutes), 0);
    let estimate = plan.estimate.unwrap();
    let took = minutes.len() as u64 - 1;
    assert!(
        estimate.seconds / 60 <= took && took <= estimate.seconds / 60 + 1,
        "{estimate:?} {took}"
    );
    let again = limited.plan().await;
    assert!(again.steps.is_empty(), "{:?}", again.steps.first());
}
