//! Data from the service, and stored data: headers, answers, snapshots, saved plans.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use http::HeaderMap;
use serde_json::{Value as Json, json};
use undrift::{
    api::{
        HttpOptions, HttpTransport, ReadClient, SendError, ServiceAddress, Transport, WireRequest,
        WireResponse, budget::Quota, limit::retry_after,
    },
    desired::{Desired, GroupDeclarations, Roster},
    digest::{self, DigestKey},
    manifest::IncludeRules,
    observe::Observer,
    operation::HOOK_LIST,
    page::{EntryKeys, Pager},
    plan::{
        ApprovalPolicy,
        saved::{SealedPlan, file_text},
    },
    secret::{Secret, Secrets},
    snapshot::{OfflineTransport, Snapshot},
    value::Object,
};

use super::{CANARY, run_inputs};
use crate::numbers::Numbers;
use crate::{
    random,
    saved::PlanRun,
    world::{World, instant_settings, project},
};

#[test]
fn headers_are_read_or_ignored() {
    run_inputs("headers", 5000, |chance| {
        let mut headers = HeaderMap::new();
        chance.headers(&mut headers);
        let wall = SystemTime::UNIX_EPOCH
            + Duration::from_secs(*chance.pick(&[0, 4_000_000_000, 253_402_300_799]));
        for status in [200, 429, 503] {
            let _ = retry_after(status, &headers, wall);
        }
        let _ = Quota::read(&headers, wall);
        let mut pager =
            Pager::new(HOOK_LIST.request().with_argument("id", 1), EntryKeys::with_id(&[]))
                .unwrap();
        let (mut pages, mut received) = (0, 0);
        while pager.next_request().is_some() {
            let rows: Vec<Object> = (0..chance.below(4))
                .map(|_| {
                    let mut row = json!({"id": chance.below(9), "url": "https://a.example.org"});
                    if chance.once_in(4) {
                        chance.damage(&mut row);
                    }
                    row.as_object().cloned().unwrap_or_default()
                })
                .collect();
            pages += 1;
            received += rows.len();
            if pager.accept(&headers, rows).is_err() {
                break;
            }
            if chance.once_in(2) {
                chance.headers(&mut headers);
            }
        }
        // A page without any new row is the last one.
        assert!(pages <= received + 2, "{pages} pages of {received} rows");
        let _ = pager.finish();
    });
}

/// A secret in manifests; the other one is known only to the service.
const DECLARED: &str = "DECLARED-0nly-4-tests";

/// Asserts that a text has no secret.
fn assert_no_secret(output: &str) {
    for secret in [CANARY, DECLARED] {
        assert!(!output.contains(secret), "{output}");
    }
}

/// Manifests with every sort of section, and a service with some of it.
async fn world() -> World {
    let mut world = random::world().await;
    world.set_variable("A", CANARY);
    world.set_variable("D", DECLARED);
    let sections = json!({
        "settings": {"description": "new", "merge_method": "ff", "topics": ["a"]},
        "variables": [{"key": "A", "value": {"env": "A"}}, {"key": "D", "value": {"env": "D"}}, {"key": "B", "environment_scope": "prod", "value": "y"}],
        "labels": [{"name": "a", "color": "#ff0000"}],
        "members": [{"user": "alice", "access_level": "developer"}],
        "hooks": [{"name": "ci", "url": "https://a.example.org/x"}],
        "protected_branches": [{"name": "main"}],
        "push_rule": {"member_check": true},
        "shares": [{"group": "acme/security", "group_access": "guest"}],
        "unlisted": {"variables": "delete", "labels": "delete"},
    });
    let mut created = project("acme/shop", sections.clone());
    created["create"] = json!(true);
    let mut rule =
        json!({"kind": "Defaults", "match": {"path": "acme/**"}, "undeclared": "include"});
    rule["settings"] = json!({"merge_method": "ff"});
    world.declare(std::slice::from_ref(&created));
    world.apply().await;
    created["settings"]["description"] = json!("newer");
    created["variables"] = json!([{"key": "C", "value": "z"}, {"key": "D", "value": {"env": "D"}}]);
    let group = json!({"kind": "Group", "path": "acme", "settings": {"description": "x"}});
    world.declare(&[created, group, rule]);
    world
}

/// The responses to the reads of a plan, by target.
#[derive(Debug)]
struct Recorder {
    inner: HttpTransport,
    answers: Mutex<BTreeMap<String, WireResponse>>,
}

impl Transport for Recorder {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(async move {
            let target = request.target.clone();
            let response = self.inner.send(request).await?;
            self.answers.lock().unwrap().insert(target, response.clone());
            Ok(response)
        })
    }
}

/// A service that repeats its responses, except for damaged ones.
#[derive(Debug)]
struct DamagedService {
    answers: Arc<BTreeMap<String, WireResponse>>,
    chance: Mutex<Numbers>,
    /// One in this many responses is damaged.
    interval: usize,
    requests: AtomicUsize,
}

impl Transport for DamagedService {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let not_found = || WireResponse {
            status: 404,
            headers: HeaderMap::new(),
            body: Ok(br#"{"message":"404 Not Found"}"#.to_vec().into()),
        };
        let mut response = self.answers.get(&request.target).cloned().unwrap_or_else(not_found);
        let mut chance = self.chance.lock().unwrap();
        if chance.once_in(self.interval) {
            response.body = response.body.map(|body| chance.body(&body).into());
        }
        if chance.once_in(2 * self.interval) {
            chance.headers(&mut response.headers);
        }
        if chance.once_in(10 * self.interval) {
            response.status = *chance.pick(&[0, 204, 301, 401, 403, 404, 412, 429, 500, 999]);
        }
        if chance.once_in(20 * self.interval) {
            // The response to another question.
            let other = chance.below(self.answers.len());
            response = self.answers.values().nth(other).unwrap().clone();
        }
        Box::pin(async { Ok(response) })
    }
}

/// The inputs of all plans in one world.
struct Planner {
    world: World,
    runtime: tokio::runtime::Runtime,
    desired: Desired,
    includes: Option<IncludeRules>,
    secrets: Arc<Secrets>,
}

impl Planner {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let world = runtime.block_on(world());
        let desired = world.desired();
        let (_, secrets) = world.client_as(world.sandbox.token(), &desired);
        Self { includes: world.load_manifests().include_rules, world, runtime, desired, secrets }
    }

    /// A plan through another transport, as JSON, or why there is none.
    fn plan(&self, transport: Arc<dyn Transport>) -> Result<String, String> {
        let service = ServiceAddress::parse(&self.world.sandbox.url(), false).unwrap();
        let client =
            ReadClient::new(service, transport, Arc::clone(&self.secrets), instant_settings());
        let describe = |error: undrift::api::ApiError| format!("{error:#} {:?}", error.hint());
        self.runtime.block_on(async {
            let connected =
                self.world.connect_with(client, Arc::clone(&self.secrets), &self.desired);
            let (observer, mut settings): (Observer, _) = connected.await.map_err(describe)?;
            let (mut desired, mut roster) = (self.desired.clone(), Roster::default());
            if let Some(includes) = &self.includes {
                roster = observer
                    .read_roster(&includes.roster_query(&desired))
                    .await
                    .map_err(describe)?;
                let included = includes.include_from(desired, &mut roster);
                desired = included.map_err(|wrong| wrong.render(Default::default()))?;
                settings.moves = Arc::clone(&desired.moves);
                settings.group_declarations =
                    GroupDeclarations::from_containers(&desired.containers);
            }
            let plan = self.world.plan_with_roster(roster, &observer, &desired, &settings);
            Ok(serde_json::to_string(&plan.await.map_err(describe)?).unwrap())
        })
    }
}

#[test]
fn answers_are_read_or_refused() {
    let planner = Planner::new();
    let url = ServiceAddress::parse(&planner.world.sandbox.url(), false).unwrap();
    let token = Secret::new(planner.world.sandbox.token());
    let inner = HttpTransport::new(&url, &token, &HttpOptions::default()).unwrap();
    let recorded = Arc::new(Recorder { inner, answers: Mutex::default() });
    let clean = planner.plan(recorded.clone()).unwrap();
    let answers = Arc::new(std::mem::take(&mut *recorded.answers.lock().unwrap()));
    let replay_transport = |chance: Numbers, rarely| {
        let (chance, requests) = (Mutex::new(chance), AtomicUsize::new(0));
        Arc::new(DamagedService {
            answers: Arc::clone(&answers),
            chance,
            interval: rarely,
            requests,
        })
    };
    let same = planner.plan(replay_transport(Numbers::new(0), usize::MAX / 100)).unwrap();
    assert_eq!(same, clean, "what was recorded is all that it takes");
    let mut plans = 0;
    let is_usual = run_inputs("answers", 300, |chance| {
        let rarely = *chance.pick(&[3, 10, answers.len()]);
        let spoiled = replay_transport(Numbers::new(chance.next()), rarely);
        let plan = planner.plan(spoiled.clone());
        plans += usize::from(plan.is_ok());
        let told = plan.unwrap_or_else(|why| why);
        assert_no_secret(&told);
        assert!(!told.contains(planner.world.sandbox.token()), "{told}");
        // Each of these reads is repeated at most five times, or once at another place.
        let requests = spoiled.requests.load(Ordering::SeqCst);
        assert!(requests <= 8 * answers.len(), "{requests} requests instead of {}", answers.len());
    });
    assert!(!is_usual || plans >= 50, "only {plans} plans came of it");
}

#[test]
fn snapshots_are_read_or_refused() {
    let planner = Planner::new();
    let text = planner.runtime.block_on(planner.world.snapshot_with(None));
    let good: Json = serde_json::from_str(&text).unwrap();
    let (mut read, mut plans) = (0, 0);
    let is_usual = run_inputs("snapshots", 500, |chance| {
        let bytes = if chance.once_in(4) {
            chance.bytes(text.as_bytes())
        } else {
            let mut json = good.clone();
            let part = *chance.pick(&["answers", "answers", "objects", "rosters", ""]);
            let part = if part.is_empty() { &mut json } else { &mut json[part] };
            (0..=chance.below(3)).for_each(|_| chance.damage(part));
            json.to_string().into_bytes()
        };
        let snapshot = match Snapshot::read(&bytes) {
            Ok(snapshot) => snapshot,
            Err(why) => return assert_no_secret(&why.to_string()),
        };
        read += 1;
        let mut written = Vec::new();
        snapshot.write(&mut written).unwrap();
        let mut again = Vec::new();
        Snapshot::read(&written).unwrap().write(&mut again).unwrap();
        assert!(again == written, "{}", String::from_utf8_lossy(&again));
        let plan = planner.plan(Arc::new(OfflineTransport::new(snapshot, None)));
        plans += usize::from(plan.is_ok());
        let told = plan.unwrap_or_else(|why| why);
        assert_no_secret(&told);
    });
    assert!(!is_usual || (read >= 50 && plans >= 50), "{read} were read, {plans} plans came of it");
}

#[test]
fn saved_plans_are_read_or_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let world = runtime.block_on(world());
    let key = DigestKey::new(&Secret::new("a key that is long enough for it"));
    let run = runtime.block_on(PlanRun::connect(&world));
    let (plan, text) = runtime.block_on(run.save(&key));
    let good: Json = serde_json::from_str(&text).unwrap();
    let mut read = 0;
    let is_usual = run_inputs("saved plans", 750, |chance| {
        let bytes = if chance.once_in(4) {
            chance.bytes(text.as_bytes())
        } else {
            let mut json = good.clone();
            let part = *chance.pick(&["steps", "steps", "containers", "target", "selected"]);
            (0..=chance.below(3)).for_each(|_| chance.damage(&mut json[part]));
            // An attacker can compute the id anew.
            let fields = json.as_object_mut().unwrap();
            let seal = fields.remove("seal").unwrap();
            fields.remove("id");
            json["id"] = digest::json_digest(&json).into();
            json["seal"] = seal;
            file_text(json).into_bytes()
        };
        let checked = |saved: SealedPlan| saved.plan.check().map(|()| saved);
        let saved = match SealedPlan::read(&bytes).and_then(checked) {
            Ok(saved) => saved,
            Err(why) => return assert!(!why.message.is_empty() && !why.help.is_empty()),
        };
        read += 1;
        assert_eq!(saved.to_text().as_bytes(), bytes);
        let _ = (saved.plan.shown_steps(), saved.check_seal(Some(&key)));
        assert_no_secret(&serde_json::to_string(&saved.plan.shown_steps()).unwrap());
        let comparison = run.compare_unsealed(&saved, &plan, &key);
        // No step runs that the new plan does not have.
        let policy = ApprovalPolicy { comparison: Some(&comparison), ..ApprovalPolicy::default() };
        if let Ok((_, left_out)) = plan.approve(policy) {
            assert!(left_out.len() <= plan.steps.len());
        }
    });
    assert!(!is_usual || read >= 50, "{read} were read");
}
