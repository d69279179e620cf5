//! A run without a service, for tests of its decisions. Tests supply the readings of the run, and
//! nothing is sent.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures_util::future::BoxFuture;
use serde_json::json;

use super::{ContainerRun, LiveCache, Reading};
use crate::{
    address::Selector,
    api::{
        ClientSettings, Clock, ReadClient, SendError, ServiceAddress, Transport, WireRequest,
        WireResponse, WriteClient,
    },
    apply::{Apply, dependencies::StepDependencies},
    desired::{Container, Desired, Unlisted, testing::shop},
    diff::{Findings, Step},
    kind::CreatedContainers,
    live::{LiveContainer, ReadTimes, testing::caller},
    observe::Observer,
    plan::{self, ApprovalPolicy, Plan, PlanSettings},
    secret::Secrets,
    value::Json,
};

/// A project with a declared setting and a declared variable.
pub(super) fn declared_shop() -> Container {
    let sections = json!({
        "settings": {"merge_method": "ff"},
        "variables": [{"key": "A", "environment_scope": "*", "value": "new"}],
    });
    shop(&sections, Unlisted::Report)
}

/// A live state in which neither declaration of [`declared_shop`] is fulfilled.
pub(super) fn live_before() -> Json {
    json!({"settings": {"merge_method": "merge"}, "variables": []})
}

/// The live state that matches [`declared_shop`].
pub(super) fn live_after() -> Json {
    let variable = json!({"key": "A", "environment_scope": "*", "value": "new"});
    json!({"settings": {"merge_method": "ff"}, "variables": [variable]})
}

/// Answers every request with the caller's user.
#[derive(Debug)]
struct UserOnlyTransport;

impl Transport for UserOnlyTransport {
    fn send(&self, _: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        let json = (http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
        let body = json!({"id": 7, "username": "root", "is_admin": true}).to_string();
        let headers = [json].into_iter().collect();
        Box::pin(async { Ok(WireResponse { status: 200, headers, body: Ok(body.into()) }) })
    }
}

/// A clock that always shows the same time.
#[derive(Debug)]
struct StoppedClock(Duration);

impl Clock for StoppedClock {
    fn now(&self) -> Duration {
        self.0
    }
    fn system_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

pub(super) const NOW: Duration = Duration::from_secs(103);
/// The time of all readings.
pub(super) const READ_AT: Duration = Duration::from_secs(102);

/// Calls `check` with a run that carries out `steps` in `container`, whose live state is `live`.
pub(super) fn with_run<T>(
    container: &Container,
    steps: Vec<Step>,
    live: &LiveContainer,
    check: impl FnOnce(&ContainerRun<'_>) -> T,
) -> T {
    with_plan(container, &Plan::for_test(Findings { steps, ..Findings::default() }, 1), live, check)
}

/// Like [`with_run`], for all steps of `plan`.
pub(super) fn with_plan<T>(
    container: &Container,
    plan: &Plan,
    live: &LiveContainer,
    check: impl FnOnce(&ContainerRun<'_>) -> T,
) -> T {
    let service = ServiceAddress::parse("https://example.org", false).unwrap();
    let options =
        ClientSettings { clock: Arc::new(StoppedClock(NOW)), ..ClientSettings::default() };
    let client = ReadClient::new(service, Arc::new(UserOnlyTransport), Arc::default(), options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let observer = runtime.block_on(Observer::connect(client)).unwrap();
    let writer = WriteClient::new(observer.client().clone());
    let (desired, settings) = (Desired::default(), settings());
    let apply = Apply {
        desired: &desired,
        observer: &observer,
        writer: &writer,
        settings: &settings,
        trust_duration: Duration::ZERO,
        max_containers: 1,
    };
    let (approved, _) = plan.approve(ApprovalPolicy::default()).unwrap();
    let steps: Vec<_> = plan.steps.iter().collect();
    let dependencies = StepDependencies::new(approved.steps(), CreatedContainers::default());
    let slots = tokio::sync::Semaphore::new(1);
    let run =
        ContainerRun::new(&apply, &approved, container, &steps, &|_| (), &dependencies, &slots);
    *run.cache.borrow_mut() = LiveCache::new(live.clone());
    check(&run)
}

pub(super) fn settings() -> PlanSettings {
    PlanSettings::for_run(caller(), Arc::new(Secrets::default()), &Desired::default())
}

/// The reading of `live`. Its plan resends the fields of the objects that `resend` selects.
pub(super) fn reading(container: &Container, live: &LiveContainer, resend: &[&str]) -> Reading {
    let resend = resend.iter().map(|selector| Selector::parse(selector).unwrap()).collect();
    let plan = plan::plan_container(
        container,
        live,
        &PlanSettings { resend_selectors: resend, ..settings() },
    );
    let without_resends = Some(plan::plan_container(container, live, &settings()));
    Reading { times: ReadTimes::uniform(READ_AT), plan, resend_free_plan: without_resends }
}
