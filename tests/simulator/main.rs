//! A simulator of everything that can go wrong between undrift and the service.
//!
//! The client's transport, clock and randomness are simulated: the service is the sandbox's model
//! in memory, on a clock that only advances when everybody waits. A [`schedule`] contains which
//! fault happens at which request. The rules of the [`oracle`] are checked against a run of
//! undrift, its results, a run without faults after it, and a plan after that. The same schedule
//! gives the same run, byte for byte.
//!
//! ```text
//! cargo test --profile simulator --test simulator                              the sample of `tests/README.md`
//! UNDRIFT_TESTS=all cargo test --profile simulator --test simulator            everything once
//! UNDRIFT_SEEDS=1000000 cargo test --profile simulator --test simulator random   so many random schedules
//! UNDRIFT_SEEDS=1 cargo test --profile simulator --test simulator without        with and without trust in the plan
//! UNDRIFT_EXHAUSTIVE=all cargo test --profile simulator --test simulator every    each fault at each request of each scenario
//! ```
//!
//! Other tests give the path of each group and project to another one between any two requests
//! (`a_new_container_at_the_path_is_never_written_to`), let two runs cross
//! (`two_concurrent_runs_leave_no_duplicates`), generate organisations with moves and forks
//! (`random_organisations_become_what_is_declared`), damage the reads of `export` and `absorb` ([`taking`]), and
//! apply random estates in which declared things decide about each other ([`constraints`]).
//!
//! `UNDRIFT_ONLY=share-replace,protect` selects scenarios, `UNDRIFT_FAULTS=surprise` selects faults
//! whose names begin so, `UNDRIFT_VERBOSE=1` prints each request and output, and `UNDRIFT_GATHER=1`
//! prints all failures instead of keeping the first. A failing schedule is made as small as
//! possible and written to `tests/simulator/schedules/`; those are played on every run. [`kept`]
//! lists the attacks that they stand for.

#![cfg(feature = "sandbox")]
#![expect(clippy::print_stdout, reason = "figures and traces are what it is run for")]

mod anew;
mod constraints;
#[path = "../support/dump.rs"]
mod dump;
mod estate;
mod identity;
mod kept;
#[path = "../support/numbers.rs"]
mod numbers;
mod oracle;
mod organisation;
#[path = "../support/parts.rs"]
mod parts;
mod people;
#[cfg(feature = "planted")]
mod planted;
#[path = "../support/sample.rs"]
mod sample;
mod scenario;
mod schedule;
mod service;
mod spoil;
#[path = "../../crates/sandbox/tests/switches/mod.rs"]
mod switches;
mod taking;
mod truth;
mod undrift;

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    panic::AssertUnwindSafe,
    sync::{Arc, LazyLock, Mutex, OnceLock},
    time::Duration,
};

use ::undrift::sandbox::{OBSERVED_RELEASE, Profile};

use oracle::{Evidence, Violation};
use parts::{in_parts, items_of_part};
use scenario::Prepared;
use schedule::{Act, Fault, FaultlessRun, Schedule};
use service::{RunRole, World};
use switches::{halves, switches};
use truth::Truth;

/// The default number of random schedules; half of that in the usual run.
const SEED_COUNT: usize = 100;
/// The default number of scenarios, smallest first, in which every fault is tried at every request.
const SCENARIO_COUNT: usize = 1;
/// The scenarios in which faults of the connection are tried at every request, by turns.
const LARGER_SCENARIOS: [&str; 5] =
    ["create-all", "change-all", "project-rename-and-move", "group-rename", "group-move"];
/// The default number of scenarios in which paths pass to others between any two requests.
const PATH_SCENARIOS: usize = 1;

/// The result of playing a schedule.
struct Playback {
    violations: Vec<Violation>,
    /// A digest of all requests and of the whole output.
    trace: u64,
    /// The requests of the first run.
    course: FaultlessRun,
    /// The faults that occurred, by name.
    triggered: Vec<String>,
}

/// Scenarios, prepared once.
struct Simulator {
    scenarios: BTreeMap<String, Arc<Prepared>>,
    /// In the order of the list.
    names: Vec<String>,
    dialects: BTreeMap<String, Profile>,
    /// Each scenario without faults, once a test needs them.
    courses: OnceLock<Vec<FaultlessRun>>,
}

/// Counts of played schedules.
#[derive(Default)]
struct Tally {
    played: u64,
    /// The count of each fault, by name.
    triggered: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds a schedule with the faults that occurred.
    fn add(&mut self, struck: Vec<String>) {
        self.played += 1;
        struck.into_iter().for_each(|name| *self.triggered.entry(name).or_default() += 1);
    }
}

impl Simulator {
    /// The one that all tests share.
    fn get() -> &'static Self {
        static SIMULATOR: LazyLock<Simulator> = LazyLock::new(Simulator::new);
        &SIMULATOR
    }

    fn new() -> Self {
        let prepared: Vec<_> =
            scenario::all_scenarios().into_iter().map(scenario::Scenario::prepare).collect();
        let names: Vec<_> =
            prepared.iter().map(|prepared| prepared.scenario.name.to_string()).collect();
        let mut dialects = BTreeMap::new();
        for (name, turn_on) in switches() {
            turn_on(dialects.entry(name.to_owned()).or_insert_with(Profile::default));
        }
        let faithful = Profile::default;
        dialects.insert("faithful".to_owned(), faithful());
        dialects.insert("release 18.9".to_owned(), faithful().with_release(OBSERVED_RELEASE));
        dialects.insert("pages of 3".to_owned(), Profile { page_cap: Some(3), ..faithful() });
        dialects.insert(
            "nulls dropped".to_owned(),
            Profile { drop_null_keys: true, unknown_extra_keys: true, ..faithful() },
        );
        dialects.insert(
            "bots".to_owned(),
            Profile { bots_among_members: true, reverse_topics: true, ..faithful() },
        );
        dialects.insert(
            "normalizes_values".to_owned(),
            Profile { normalizes_values: true, ..faithful() },
        );
        dialects.insert("echoes".to_owned(), Profile { echoes_input: true, ..faithful() });
        dialects.extend(halves(&switches()));
        let scenarios = names.iter().cloned().zip(prepared).collect();
        Self { scenarios, names, dialects, courses: OnceLock::new() }
    }

    /// Plays a schedule to its end, or to a panic.
    fn play(&self, schedule: &Schedule) -> Playback {
        let played = std::panic::catch_unwind(AssertUnwindSafe(|| self.play_unguarded(schedule)));
        played.unwrap_or_else(|_| Playback {
            violations: vec![Violation { rule: "no panic", details: String::new() }],
            trace: 0,
            course: FaultlessRun::default(),
            triggered: Vec::new(),
        })
    }

    fn play_unguarded(&self, schedule: &Schedule) -> Playback {
        self.simulate(schedule, async |world| {
            let before = Truth::of(&world.model);
            let (first, second) = run_both(&world).await;
            let after = Truth::of(&world.model);
            let settled = world.state().settled.saturating_sub(world.now());
            tokio::time::sleep(settled + Duration::from_secs(80)).await;
            let at_rest = Truth::of(&world.model);
            let clean = undrift::run(&world, RunRole::Clean, true).await;
            let healed = Truth::of(&world.model);
            let again = undrift::run(&world, RunRole::Clean, false).await;
            let evidence = Evidence {
                world: &world,
                before: &before,
                after: &after,
                settled: &at_rest,
                healed: &healed,
                first: first.as_ref(),
                second: second.as_ref(),
                clean: &clean,
                again: &again,
            };
            let violations = evidence.violations();
            let state = world.state();
            let mut trace = DefaultHasher::new();
            for sent in &state.sent {
                (sent.number, sent.at, sent.arrived, sent.method, &sent.target).hash(&mut trace);
                sent.body.keys().for_each(|name| name.hash(&mut trace));
            }
            for ran in
                [first.as_ref(), second.as_ref(), Some(&clean), Some(&again)].into_iter().flatten()
            {
                (ran.exit, &ran.output).hash(&mut trace);
            }
            if std::env::var_os("UNDRIFT_VERBOSE").is_some() {
                print_trace(&world, &state, &evidence);
            }
            let sent = || state.sent.iter().filter(|sent| sent.who == RunRole::First);
            let writes =
                sent().filter(|sent| sent.method != "GET").map(|sent| sent.number).collect();
            let course = FaultlessRun {
                scenario: schedule.scenario.clone(),
                requests: sent().count(),
                writes,
                documents: world.prepared.documents().len(),
            };
            let struck =
                state.triggered.iter().map(|place| schedule.faults[*place].1.name()).collect();
            Playback { violations, trace: trace.finish(), course, triggered: struck }
        })
    }

    /// The scenario with this name. A random one is generated.
    fn prepared(&self, name: &str) -> Arc<Prepared> {
        match name.strip_prefix(organisation::PREFIX) {
            Some(seed) => organisation::random(seed.parse().unwrap()).prepare(),
            None => Arc::clone(&self.scenarios[name]),
        }
    }

    /// Runs `runs` in a world with a schedule.
    fn simulate<T>(&self, schedule: &Schedule, runs: impl AsyncFnOnce(Arc<World>) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let prepared = self.prepared(&schedule.scenario);
        let import_delay = prepared.scenario.import_delay;
        let profile = Profile { import_delay, ..self.dialects[&schedule.dialect].clone() };
        runtime.block_on(async { runs(World::new(prepared, schedule.clone(), profile)).await })
    }

    fn calm(&self, scenario: &str) -> Schedule {
        let course = FaultlessRun { scenario: scenario.to_owned(), ..FaultlessRun::default() };
        schedule::faultless(7, &[course], &[])
    }

    /// Each scenario without faults.
    fn courses(&self) -> Vec<FaultlessRun> {
        self.courses_of("")
    }

    /// The same for scenarios whose names begin with `start`.
    fn courses_of(&self, start: &str) -> Vec<FaultlessRun> {
        let only = std::env::var("UNDRIFT_ONLY").ok();
        let is_selected = |course: &&FaultlessRun| {
            let name = &course.scenario;
            name.starts_with(start)
                && only
                    .as_ref()
                    .is_none_or(|only| only.split(',').any(|part| name.starts_with(part)))
        };
        let courses = self.courses.get_or_init(|| {
            self.names.iter().map(|name| self.play(&self.calm(name)).course).collect()
        });
        courses.iter().filter(is_selected).cloned().collect()
    }

    /// The schedules for the seeds from `first` on.
    fn random(&self, first: u64) -> impl Iterator<Item = Schedule> + Send + use<> {
        self.random_of(self.courses(), first)
    }

    /// The same for the scenarios of `courses` only.
    fn random_of(
        &self,
        courses: Vec<FaultlessRun>,
        first: u64,
    ) -> impl Iterator<Item = Schedule> + Send + use<> {
        let dialects: Vec<_> = self.dialects.keys().cloned().collect();
        (first..).map(move |seed| schedule::random(seed, &courses, &dialects))
    }

    /// A schedule with one fault, at the request number `at`.
    fn with_one_fault(
        &self,
        course: &FaultlessRun,
        at: usize,
        fault: &Fault,
        trusts: bool,
    ) -> Schedule {
        let faults = vec![(at, fault.clone())];
        Schedule { faults, trusts, ..self.calm(&course.scenario) }
    }

    /// The schedules with two runs at once, for the seeds from `first` on.
    fn crossed(&self, first: u64) -> impl Iterator<Item = Schedule> + Send + use<> {
        let courses = self.courses();
        let dialects: Vec<_> = self.dialects.keys().cloned().collect();
        (first..).map(move |seed| schedule::crossed(seed, &courses, &dialects))
    }

    /// Plays `schedules` on all processors. The first failing one is made small, kept, and
    /// reported.
    fn play_all(&self, schedules: impl Iterator<Item = Schedule> + Send) -> Tally {
        let (schedules, tally) = (Mutex::new(schedules), Mutex::new(Tally::default()));
        let failed = Mutex::new(Vec::new());
        let gathers = std::env::var_os("UNDRIFT_GATHER").is_some();
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    while gathers || failed.lock().unwrap().is_empty() {
                        let Some(schedule) = schedules.lock().unwrap().next() else { return };
                        let outcome = self.play(&schedule);
                        tally.lock().unwrap().add(outcome.triggered);
                        if gathers && !outcome.violations.is_empty() {
                            let schedule = serde_json::to_string(&schedule).unwrap();
                            println!("{schedule}\n    {:?}", outcome.violations);
                        } else if !outcome.violations.is_empty() {
                            failed.lock().unwrap().push(schedule);
                        }
                    }
                });
            }
        });
        if let Some(schedule) = failed.into_inner().unwrap().first() {
            self.report_failure(schedule);
        }
        tally.into_inner().unwrap()
    }

    /// Makes a failing schedule small, keeps it, and reports the violations.
    fn report_failure(&self, schedule: &Schedule) -> ! {
        let small = smallest(schedule, |schedule| self.play(schedule).violations);
        let file = kept::keep(&small);
        let violations: Vec<_> = self
            .play(&small)
            .violations
            .iter()
            .map(|v| format!("{}: {}", v.rule, v.details))
            .collect();
        panic!(
            "{}\n{}\nkept in {}",
            serde_json::to_string(&small).unwrap(),
            violations.join("\n"),
            file.display()
        );
    }
}

/// The smallest schedule that breaks a rule which `schedule` breaks.
fn smallest(schedule: &Schedule, broken: impl Fn(&Schedule) -> Vec<Violation>) -> Schedule {
    let rules = |schedule: &Schedule| {
        broken(schedule).into_iter().map(|violation| violation.rule).collect::<BTreeSet<_>>()
    };
    let all = rules(schedule);
    schedule::shrink(schedule, |candidate| !rules(candidate).is_disjoint(&all))
}

/// Prints what happened, to examine a schedule (`UNDRIFT_VERBOSE=1`).
fn print_trace(world: &World, state: &service::State, evidence: &Evidence<'_>) {
    println!("{}", serde_json::to_string(&world.schedule).unwrap());
    for sent in &state.sent {
        let response = if sent.answered.is_some() { "" } else { " (no answer)" };
        println!(
            "{:?} {} {:?} {:?} {} {}{response}",
            sent.who, sent.number, sent.at, sent.arrived, sent.method, sent.target
        );
    }
    println!("{:?}", state.changes);
    for ran in [evidence.first, evidence.second, Some(evidence.clean), Some(evidence.again)] {
        println!("{}", ran.map_or("killed", |ran| &ran.output));
    }
}

/// The first run of a simulation, and the second if one started. The first is `None` if it was
/// killed.
async fn run_both(world: &Arc<World>) -> (Option<undrift::RunResult>, Option<undrift::RunResult>) {
    let first = async {
        tokio::select! {
            biased;
            ran = undrift::run(world, RunRole::First, true) => Some(ran),
            () = world.killed.notified() => None,
        }
    };
    if world.schedule.crossed {
        world.second.notify_one();
    }
    let second = async {
        world.second.notified().await;
        undrift::run(world, RunRole::Second, true).await
    };
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let mut ended = None;
    loop {
        tokio::select! {
            biased;
            ran = &mut second => return (match ended { Some(first) => first, None => first.await }, Some(ran)),
            ran = &mut first, if ended.is_none() => {
                let started = world.state().sent.iter().any(|sent| sent.who == RunRole::Second);
                if !started {
                    return (ran, None);
                }
                ended = Some(ran);
            }
        }
    }
}

/// True if a run trusts its plan: both, or by default one of the two in turns.
fn trust_options(all: bool, turn: usize) -> impl Iterator<Item = bool> {
    [false, true].into_iter().filter(move |trusts| all || *trusts == turn.is_multiple_of(2))
}

/// The number of random schedules of a test that plays `all` of them by default.
fn seed_count(all: usize) -> usize {
    let usual = if sample::plays_all() { all } else { all / 2 };
    env_number("UNDRIFT_SEEDS").map_or(usual, |seeds| usize::try_from(seeds).unwrap())
}

/// A number from the environment.
fn env_number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

in_parts!(without_faults_no_rule_is_broken);

fn without_faults_no_rule_is_broken(part: usize) {
    let simulator = Simulator::get();
    assert!(simulator.names.len() >= 30);
    let single: BTreeSet<_> = switches().into_iter().map(|(name, _)| name).collect();
    let dialects = || simulator.dialects.keys().filter(|name| !single.contains(&***name));
    let all = env_number("UNDRIFT_SEEDS").is_some();
    let step = if all || sample::plays_all() { 1 } else { 4 };
    let mut schedules = Vec::new();
    for (number, name) in simulator.names.iter().enumerate() {
        for (at, dialect) in dialects().enumerate().skip(number % step).step_by(step) {
            let calm = Schedule { dialect: dialect.clone(), ..simulator.calm(name) };
            schedules.extend(
                trust_options(all, at / step + number)
                    .map(|trusts| Schedule { trusts, ..calm.clone() }),
            );
        }
    }
    let Tally { played, .. } = simulator.play_all(items_of_part(part, schedules));
    println!("{played} runs without faults");
}

in_parts!(every_single_fault_at_every_request_is_survived);

/// In the smallest scenario, or in as many as `UNDRIFT_EXHAUSTIVE` names.
fn every_single_fault_at_every_request_is_survived(part: usize) {
    let simulator = Simulator::get();
    let exhaustive = std::env::var("UNDRIFT_EXHAUSTIVE").ok();
    let scenarios = match exhaustive.as_deref() {
        Some("all") => usize::MAX,
        Some(number) => number.parse().unwrap(),
        None => SCENARIO_COUNT,
    };
    let (faults, courses) = (Fault::all(), simulator.courses());
    let mut schedules = Vec::new();
    for course in courses.iter().take(scenarios) {
        for at in 0..course.requests {
            for (number, fault) in faults.iter().enumerate() {
                let turns = trust_options(exhaustive.is_some(), at + number);
                schedules.extend(
                    turns.map(|trusts| simulator.with_one_fault(course, at, fault, trusts)),
                );
            }
        }
    }
    let Tally { played, .. } = simulator.play_all(items_of_part(part, schedules));
    println!("{played} runs: each of {} faults at each request", faults.len());
}

in_parts!(every_fault_of_the_connection_is_survived_in_larger_scenarios);

fn every_fault_of_the_connection_is_survived_in_larger_scenarios(part: usize) {
    let simulator = Simulator::get();
    let all = std::env::var_os("UNDRIFT_EXHAUSTIVE").is_some();
    let step = match (all, sample::plays_all()) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => 8,
    };
    let (faults, courses) = (Fault::all(), simulator.courses());
    let mut schedules = Vec::new();
    for name in LARGER_SCENARIOS {
        let course = courses.iter().find(|course| course.scenario == *name);
        let course = course.unwrap_or_else(|| panic!("no scenario `{name}`"));
        for at in 0..course.requests {
            let numbered = faults.iter().enumerate().filter(|(_, fault)| fault.is_of_connection());
            for (number, fault) in
                numbered.filter(|(number, _)| (at + number / 2).is_multiple_of(step))
            {
                let turns = trust_options(all, at + number);
                schedules.extend(
                    turns.map(|trusts| simulator.with_one_fault(course, at, fault, trusts)),
                );
            }
        }
    }
    let Tally { played, .. } = simulator.play_all(items_of_part(part, schedules));
    println!("{played} runs with faults of the connection");
}

/// Between any two requests somebody gives the path of each group and project to another one, or to
/// none, or creates it anew.
#[test]
fn a_new_container_at_the_path_is_never_written_to() {
    let simulator = Simulator::get();
    let scenarios = if env_number("UNDRIFT_SEEDS").is_some() { usize::MAX } else { PATH_SCENARIOS };
    let courses = simulator.courses_of("secrets-").into_iter().take(scenarios);
    let mut schedules = Vec::new();
    for course in courses {
        for (at, place) in
            (0..course.requests).flat_map(|index| (0..course.documents).map(move |p| (index, p)))
        {
            for act in [Act::Rename, Act::Swap, Act::Recreate] {
                let faults = vec![(at, Fault::Elsewhere(place, act))];
                let calm = simulator.calm(&course.scenario);
                let trusts = [false, true].into_iter();
                schedules.extend(trusts.map(|trusts| Schedule {
                    faults: faults.clone(),
                    trusts,
                    ..calm.clone()
                }));
            }
        }
    }
    let Tally { played, .. } = simulator.play_all(schedules.into_iter());
    println!("{played} runs in which somebody renames, swaps or makes anew");
}

#[test]
fn random_schedules_are_survived() {
    let simulator = Simulator::get();
    let seeds = seed_count(SEED_COUNT);
    let first = env_number("UNDRIFT_FIRST_SEED").unwrap_or(0);
    // The kept ones have a test of their own; here they only add to what came to pass.
    let is_whole = seeds >= 5_000;
    let kept =
        kept::kept_schedules().into_iter().filter(|_| is_whole).map(|(_, schedule)| schedule);
    let Tally { played, triggered: struck } =
        simulator.play_all(kept.chain(simulator.random(first).take(seeds)));
    println!("{played} random schedules, {} faults came to pass", struck.values().sum::<u64>());
    // With fewer seeds the result would depend on luck.
    if is_whole {
        let never: Vec<_> = Fault::all()
            .iter()
            .map(Fault::name)
            .filter(|name| !struck.contains_key(name))
            .collect();
        assert!(never.is_empty(), "never came to pass: {never:?}");
    }
}

#[test]
fn two_concurrent_runs_leave_no_duplicates() {
    let simulator = Simulator::get();
    let seeds = seed_count(SEED_COUNT / 2);
    let first = env_number("UNDRIFT_FIRST_SEED").unwrap_or(0);
    let Tally { played, .. } = simulator.play_all(simulator.crossed(first).take(seeds));
    println!("{played} times two runs at once");
}

#[test]
fn random_organisations_become_what_is_declared() {
    let simulator = Simulator::get();
    let seeds = seed_count(SEED_COUNT / 2);
    let first = env_number("UNDRIFT_FIRST_SEED").unwrap_or(0);
    let dialects: Vec<_> = simulator.dialects.keys().cloned().collect();
    let schedules = (first..).map(|seed| {
        let course = FaultlessRun {
            scenario: format!("{}{seed}", organisation::PREFIX),
            requests: organisation::REQUESTS,
            writes: Vec::new(),
            documents: organisation::DOCUMENTS,
        };
        let kinds = [schedule::faultless, schedule::random, schedule::crossed];
        kinds[usize::try_from(seed % 3).unwrap()](seed, &[course], &dialects)
    });
    let Tally { played, .. } = simulator.play_all(schedules.take(seeds));
    println!("{played} random organisations");
}

#[test]
fn the_same_schedule_gives_the_same_run() {
    let simulator = Simulator::get();
    let seeds = match (env_number("UNDRIFT_SEEDS"), sample::plays_all()) {
        (Some(_), _) => SEED_COUNT,
        (None, true) => SEED_COUNT / 2,
        (None, false) => SEED_COUNT / 8,
    };
    let crossed = simulator.crossed(0).take(seeds / 2);
    for schedule in simulator.random(0).take(seeds).chain(crossed) {
        assert_eq!(
            simulator.play(&schedule).trace,
            simulator.play(&schedule).trace,
            "{schedule:?}"
        );
    }
}
