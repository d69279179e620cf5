//! A property of runs without faults: an apply that ends with 0 leaves an empty plan.
//!
//! ```text
//! UNDRIFT_SEEDS=1000 cargo test --profile simulator --test simulator an_apply_that_ends
//! ```
//!
//! Each random estate has two stages: the first is applied until it rests, the second once.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use ::undrift::sandbox::{OBSERVED_RELEASE, Profile};

use crate::{
    env_number, estate,
    scenario::Prepared,
    schedule::{self, FaultlessRun},
    service::{RunRole, World},
    undrift,
};

/// Estates that were once wrong, such as one in which a project without a value of its own got the
/// new one of its group.
const REGRESSION_SEEDS: [u64; 2] = [215, 286];

/// The result of an estate.
enum EstateResult {
    /// `check` refuses a stage.
    Refused,
    /// The exit code of the second stage.
    With(u8),
    /// It ended with 0, and something is left.
    Left(String),
}

fn play(seed: u64) -> EstateResult {
    let [first, second] = estate::stages(seed);
    let Some((first, mut second)) = first.try_prepare().zip(second.try_prepare()) else {
        return EstateResult::Refused;
    };
    let course = FaultlessRun { scenario: format!("estate-{seed}"), ..FaultlessRun::default() };
    let profile = || Profile::default().with_release(OBSERVED_RELEASE);
    let trusts = !seed.is_multiple_of(3);
    let world = |prepared: Prepared| {
        let schedule = schedule::Schedule {
            trusts,
            ..schedule::faultless(seed, std::slice::from_ref(&course), &[])
        };
        World::new(Arc::new(prepared), schedule, profile())
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let first = world(first);
        for _ in 0..2 {
            undrift::run(&first, RunRole::Clean, true).await;
        }
        let model = Arc::clone(&first.model);
        drop(first);
        second.image = Arc::into_inner(model).unwrap().take_image().unwrap();
        let second = world(second);
        let ran = undrift::run(&second, RunRole::First, true).await;
        if std::env::var_os("UNDRIFT_VERBOSE").is_some() {
            for sent in &second.state().sent {
                println!("{} {} {:?}", sent.method, sent.target, sent.answered);
            }
            println!("estate {seed}, exit {}: {}", ran.exit, ran.output);
        }
        if ran.exit > 0 {
            return EstateResult::With(ran.exit);
        }
        let again = undrift::run(&second, RunRole::Clean, false).await;
        let steps = again.plan.as_ref().map_or(0, |plan| plan.steps.len());
        if again.exit > 0 || steps > 0 {
            let texts: Vec<_> =
                second.prepared.documents().iter().map(ToString::to_string).collect();
            let declarations = format!("estate {seed}:\n{}", texts.join("\n---\n"));
            return EstateResult::Left(format!("{declarations}\n{}\n{}", ran.output, again.output));
        }
        EstateResult::With(0)
    })
}

#[test]
fn an_apply_that_ends_with_0_leaves_an_empty_plan() {
    let seeds =
        env_number("UNDRIFT_SEEDS").unwrap_or(if crate::sample::plays_all() { 60 } else { 30 });
    let first = env_number("UNDRIFT_FIRST_SEED").unwrap_or(0);
    let next = Mutex::new((first..first + seeds).chain(REGRESSION_SEEDS));
    let (counts, remaining) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(seed) = next.lock().unwrap().next() else { return };
                    let result = match play(seed) {
                        EstateResult::Refused => "refused by check".to_owned(),
                        EstateResult::With(exit) => format!("exit {exit}"),
                        EstateResult::Left(what) => {
                            remaining.lock().unwrap().push(what);
                            "exit 0, and something left".to_owned()
                        }
                    };
                    *counts.lock().unwrap().entry(result).or_insert(0) += 1;
                }
            });
        }
    });
    let left = remaining.into_inner().unwrap();
    println!("{seeds} estates: {:?}", counts.into_inner().unwrap());
    assert!(left.is_empty(), "{}", left.join("\n==========\n"));
}
