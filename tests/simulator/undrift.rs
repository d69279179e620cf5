//! One run of undrift against the simulated service, from manifests to exit code and report, as the
//! command line does it.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use undrift::{
    address::Selector,
    api::{self, ApiError, ReadClient, ServiceAddress, WriteClient},
    apply::{self, Apply, ApplyResult, TRUST_DURATION},
    desired::{Acknowledgement, Container},
    observe::Observer,
    plan::{self, ApprovalPolicy, Plan, PlanSettings},
    report::{
        Canvas, ReportedRun, TextStyle,
        json::{ApplyContent, JsonReport, PlanContent, ReportKind},
        terminal,
    },
    secret::{Secret, Secrets},
};

use crate::{
    numbers::Numbers,
    scenario::Prepared,
    service::{ADDRESS, ModelTransport, RunRole, SimulatedChance, SimulatedClock, World},
};

/// The result of a run.
pub(crate) struct RunResult {
    /// The code that it exits with.
    pub(crate) exit: u8,
    /// Its plan, if it got that far.
    pub(crate) plan: Option<Plan>,
    /// The result of applying it.
    pub(crate) applied: Option<ApplyResult>,
    /// Its whole output.
    pub(crate) output: String,
}

/// Releases a run's client when the run ends, also if it is killed.
pub(crate) struct ClientGuard(Arc<ModelTransport>);

impl Drop for ClientGuard {
    fn drop(&mut self) {
        *self.0.client.lock().unwrap() = None;
    }
}

/// A client for one run, its secrets, and the guard that releases it.
pub(crate) fn client(world: &Arc<World>, who: RunRole) -> (ReadClient, Arc<Secrets>, ClientGuard) {
    let prepared = &world.prepared;
    let token = Secret::new(prepared.scenario.token);
    let mut secrets =
        Secrets::new(prepared.root(), Prepared::environment()).with_service_token(token, None);
    let references: Vec<_> =
        prepared.desired.references().map(|(_, _, reference)| reference).collect();
    secrets.resolve(&references);
    let secrets = Arc::new(secrets);
    let wire = Arc::new(ModelTransport { world: Arc::clone(world), who, client: Mutex::default() });
    let chance = Numbers::new(world.schedule.seed ^ 0x5eed);
    let settings = api::ClientSettings {
        clock: Arc::new(SimulatedClock(tokio::time::Instant::now())),
        random: Arc::new(SimulatedChance(Mutex::new(chance))),
        deadline: world
            .schedule
            .deadline
            .filter(|_| who == RunRole::First)
            .map(Duration::from_secs),
        ..api::ClientSettings::default()
    };
    let client = ReadClient::new(
        ServiceAddress::parse(ADDRESS, false).unwrap(),
        wire.clone(),
        Arc::clone(&secrets),
        settings,
    );
    *wire.client.lock().unwrap() = Some(client.clone());
    (client, secrets, ClientGuard(wire))
}

/// Plans and, if `applies`, applies.
pub(crate) async fn run(world: &Arc<World>, who: RunRole, applies: bool) -> RunResult {
    let (client, secrets, _held) = client(world, who);
    let mut ran = RunResult { exit: 0, plan: None, applied: None, output: String::new() };
    if let Err(error) = plan_and_apply(&mut ran, world, client, secrets, applies).await {
        ran.output += &format!("{:#}\n{:?}\n", anyhow::Error::new(error.clone()), error.hint());
        ran.exit = exit_of(&error);
    }
    ran
}

async fn plan_and_apply(
    ran: &mut RunResult,
    world: &Arc<World>,
    client: ReadClient,
    secrets: Arc<Secrets>,
    applies: bool,
) -> Result<(), ApiError> {
    let prepared = &world.prepared;
    let observer = Observer::connect(client.clone()).await?;
    let observer = observer.with_moves(Arc::clone(&prepared.desired.moves));
    // A repeated run would ask again, but a plan that resends is never empty.
    let resend = if applies { prepared.scenario.resend } else { &[] };
    let settings = PlanSettings {
        resend_selectors: resend.iter().map(|glob| Selector::parse(glob).unwrap()).collect(),
        ..PlanSettings::for_run(observer.caller().clone(), Arc::clone(&secrets), &prepared.desired)
    };
    let plan = Mutex::new(Plan::default());
    let each = async |container: &Container, mut live| {
        let planned =
            apply::plan_with_extra_facts(&observer, container, &mut live, &settings).await?;
        plan.lock().unwrap().add(container, planned, live);
        Ok(())
    };
    observer.read_all(&prepared.desired.containers, 16, each).await?;
    let mut plan = plan.into_inner().unwrap().finish(&plan::Extent::default());
    let acknowledged = prepared.scenario.acknowledged.iter();
    let acknowledged: Vec<_> =
        acknowledged.map(|text| Acknowledgement::parse(text).unwrap()).collect();
    plan.acknowledge(&acknowledged, &settings.moves, jiff::civil::date(2030, 1, 1));
    let reported_run = ReportedRun {
        target: ADDRESS.to_owned(),
        caller: observer.caller().username.clone(),
        sandbox: false,
        rehearsed: Vec::new(),
        snapshot: None,
        token: None,
    };
    ran.output += &terminal::render_plan(
        Canvas::new(TextStyle::default(), &secrets),
        &plan,
        &reported_run,
        ReportKind::Plan,
    );
    ran.output +=
        &JsonReport::finished(ReportKind::Plan, 0, &PlanContent::new(&reported_run, &plan))
            .to_text(&secrets)
            .unwrap();
    let exit_of_plan =
        match (plan.refusals.is_empty(), plan.problems.is_empty(), plan.incomplete.is_empty()) {
            (false, ..) => 4,
            (_, false, _) => 3,
            (.., false) => 10,
            _ => 0,
        };
    ran.exit = exit_of_plan;
    let approved = plan.approve(ApprovalPolicy::default()).ok().map(|(approved, _)| approved);
    let approved = approved.filter(|approved| approved.steps().next().is_some());
    if let Some(approved) = approved.filter(|_| applies) {
        let writer = WriteClient::new(client.clone());
        let apply = Apply {
            desired: &prepared.desired,
            observer: &observer,
            writer: &writer,
            settings: &settings,
            trust_duration: if world.schedule.trusts { TRUST_DURATION } else { Duration::ZERO },
            max_containers: 16,
        };
        let applied = apply.run(&approved, |_| ()).await;
        let canvas = Canvas::new(TextStyle::default(), &secrets);
        ran.output += &terminal::render_applied(canvas, &applied, &reported_run);
        ran.output += &JsonReport::finished(
            ReportKind::Apply,
            0,
            &ApplyContent::new(&reported_run, &plan, &applied, &[]),
        )
        .to_text(&secrets)
        .unwrap();
        ran.exit = match &applied {
            _ if client.is_interrupted() => 130,
            applied if !applied.is_complete() => 6,
            _ => exit_of_plan,
        };
        ran.applied = Some(applied);
    }
    ran.plan = Some(plan);
    Ok(())
}

pub(crate) fn exit_of(error: &ApiError) -> u8 {
    if error.is_interrupted() {
        130
    } else if error.is_unauthorized() || error.is_forbidden() {
        7
    } else {
        8
    }
}

/// The writes in a plan: method, path, and the names of their fields.
pub(crate) fn writes(plan: &Plan) -> BTreeSet<(&'static str, String, Vec<String>)> {
    let calls = plan.steps.iter().flat_map(|step| &step.calls);
    calls.map(|call| (call.method, call.path.clone(), call.fields.to_vec())).collect()
}
