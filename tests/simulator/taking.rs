//! `export` and `absorb` with failing reads: each fault at each request.
//!
//! Both are assembled here as in `src/cli`, because that code needs a process and files. Neither
//! writes, so the service is the same before and after. The result is compared with that without
//! faults: it must be the same, or report what is missing. The oracle also reads it back through a
//! service without faults, where it must plan to nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use undrift::{
    absorb::{self, AbsorbError, AbsorbMode, ContainerComparison, RefusalKind},
    address::{Glob, Selector},
    api::{ApiError, ReadClient},
    apply,
    desired::{Container, Desired},
    export::{self, Excerpt, ExportBuilder},
    kind::CreatedContainers,
    live::LiveContainer,
    manifest::{self, LoadEnvironment, LoadOptions},
    observe::Observer,
    plan,
    secret::Secrets,
    selection::Selection,
};

use crate::{
    Simulator, env_number, sample,
    schedule::{Fault, Missing, Schedule},
    service::{RunRole, World},
    spoil::Spoil,
    undrift::{client, exit_of},
};

/// The scenario: its live state is exported, and differs from its manifests, which absorb edits.
const SCENARIO: &str = "takeover";
/// With `UNDRIFT_TESTS=all` one in this many pairs of a fault and a request is tried. The sample has each fault
/// once.
const SAMPLE_INTERVAL: usize = 32;

/// The result of a run: its exit code, and the files that it wrote.
#[derive(Clone, Debug, PartialEq)]
struct CommandResult {
    exit: u8,
    files: BTreeMap<String, String>,
    /// True if it reported missing parts.
    is_incomplete: bool,
    /// True if it reported entries that no manifest can express.
    has_omissions: bool,
}

impl CommandResult {
    fn without_files(exit: u8) -> Self {
        Self { exit, files: BTreeMap::new(), is_incomplete: false, has_omissions: false }
    }

    /// All files as one text, without the comments about such entries.
    fn without_comments(&self) -> String {
        let lines = self
            .files
            .iter()
            .flat_map(|(path, text)| [path.as_str()].into_iter().chain(text.lines()));
        let own = |line: &str| line.split("# ").next().unwrap_or_default().trim_end().to_owned();
        lines.map(own).filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
    }
}

/// The command to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Export { partial: bool },
    Absorb,
}

const COMMANDS: [Command; 3] =
    [Command::Export { partial: false }, Command::Export { partial: true }, Command::Absorb];

fn settings(observer: &Observer, desired: &Desired, secrets: &Arc<Secrets>) -> plan::PlanSettings {
    plan::PlanSettings {
        creatable_containers: CreatedContainers::default(),
        ..plan::PlanSettings::for_run(observer.caller().clone(), Arc::clone(secrets), desired)
    }
}

/// Exports everything at and below `acme`.
async fn export(
    client: ReadClient,
    secrets: &Arc<Secrets>,
    partial: bool,
) -> Result<CommandResult, ApiError> {
    let observer = Observer::connect(client).await?;
    let settings =
        export::ExportSettings::for_caller(observer.caller().clone(), observer.release().await?);
    let existing = observer.list_existing(&[Glob::for_paths("acme").unwrap()]).await?;
    if !existing.unmatched_globs.is_empty() || existing.containers.is_empty() {
        return Ok(CommandResult::without_files(2));
    }
    let containers = existing.containers.into_values();
    let containers: Vec<_> = containers
        .map(|(scope, path)| export::readable_container(scope, path, &settings))
        .collect();
    let builder =
        Mutex::new((ExportBuilder::new(settings, existing.pending_deletion), BTreeMap::new()));
    let each = async |container: &Container, mut live: LiveContainer| {
        let names =
            observer.read_names(ExportBuilder::referenced_ids(container.scope, &live)).await?;
        let (builder, lives) = &mut *builder.lock().unwrap();
        builder.add(container.scope, &container.path, &live, &names);
        live.names.extend(names.with_reverse_lookups());
        lives.insert(container.path.clone(), live);
        Ok(())
    };
    observer.read_all(&containers, 16, each).await?;
    let (mut builder, lives) = builder.into_inner().unwrap();
    let left_out = builder.omitted_reads().len();
    let missing = builder.missing_reads().len();
    if missing > 0 && !partial {
        return Ok(CommandResult::without_files(10));
    }
    let files: BTreeMap<_, _> =
        builder.finish().files.into_iter().map(|file| (file.path, file.text)).collect();
    let wrong = changes(&observer, &files, secrets, Some(lives)).await?;
    if !wrong.is_empty() && !partial {
        return Ok(CommandResult::without_files(10));
    }
    let lacks = missing > 0 || !wrong.is_empty();
    let is_whole = !lacks && (left_out == 0 || partial);
    Ok(CommandResult {
        exit: if is_whole { 0 } else { 10 },
        files,
        is_incomplete: lacks,
        has_omissions: left_out > 0,
    })
}

/// The steps of a plan of `files`, and what it could not know; from an earlier reading, if given.
async fn changes(
    observer: &Observer,
    files: &BTreeMap<String, String>,
    secrets: &Arc<Secrets>,
    lives: Option<BTreeMap<Arc<str>, LiveContainer>>,
) -> Result<Vec<String>, ApiError> {
    let manifests = files.iter().filter(|(path, _)| {
        path.ends_with(".yaml") && path.as_str() != manifest::config::CONFIG_FILE
    });
    let texts = manifests.map(|(path, text)| (path.as_str().into(), text.clone()));
    let today = jiff::civil::date(2030, 1, 1);
    let desired = match manifest::load_texts(texts, today, &manifest::Config::default()) {
        Ok(desired) => desired,
        Err(wrong) => {
            return Ok(vec![wrong.render(undrift::diagnostic::TextStyle::default())]);
        }
    };
    let settings = settings(observer, &desired, secrets);
    let wrong = Mutex::new(Vec::new());
    let each = async |container: &Container, mut live: LiveContainer| {
        let plan = apply::plan_with_extra_facts(observer, container, &mut live, &settings).await?;
        let mut wrong = wrong.lock().unwrap();
        wrong.extend(plan.steps.iter().map(|step| step.address.to_string()));
        wrong.extend(plan.problems.iter().map(|p| format!("{}: {}", p.address, p.message)));
        wrong.extend(plan.incomplete.iter().map(|unread| unread.address.to_string()));
        Ok(())
    };
    let containers = &desired.containers;
    match lives {
        None => observer.read_all(containers, 16, each).await?,
        Some(mut lives) => {
            for container in containers {
                if let Some(live) = lives.remove(&container.path) {
                    each(container, live).await?;
                }
            }
        }
    }
    Ok(wrong.into_inner().unwrap())
}

/// The manifests after absorbing all drift.
async fn absorb(
    world: &World,
    client: ReadClient,
    secrets: &Arc<Secrets>,
) -> Result<CommandResult, ApiError> {
    let desired = &world.prepared.desired;
    let observer = Observer::connect(client).await?;
    let words =
        export::ExportSettings::for_caller(observer.caller().clone(), observer.release().await?);
    let settings = settings(&observer, desired, secrets);
    let whole: Vec<_> =
        desired.containers.iter().map(|own| export::widen_to_all_fields(own, &words)).collect();
    let only = vec![Selector::parse("**").unwrap()];
    let chosen = Selection { only, ..Selection::default() };
    let found = Mutex::new((Vec::new(), Vec::new()));
    let each = async |container: &Container, mut live: LiveContainer| {
        let own = desired.containers.iter().find(|own| own.path == container.path).unwrap();
        let plan = apply::plan_with_extra_facts(&observer, own, &mut live, &settings).await?;
        let names = observer.read_names(ExportBuilder::referenced_ids(own.scope, &live)).await?;
        let said = Excerpt::from_live(own.scope, &own.path, &live, &names, &words);
        let seen = ContainerComparison {
            container: own,
            plan: &plan,
            live: &live,
            names: &names,
            excerpt: said.as_ref(),
        };
        let (goals, refused) = absorb::find_drift(&seen, &chosen);
        let mut found = found.lock().unwrap();
        found.0.extend(goals);
        found.1.extend(refused);
        Ok(())
    };
    observer.read_all(&whole, 16, each).await?;
    let (mut goals, mut refused) = found.into_inner().unwrap();
    goals.sort_by(|a, b| a.address.cmp(&b.address));
    refused.retain(|refused| refused.kind != RefusalKind::PendingRename);
    if !refused.is_empty() {
        let is_unread = refused.iter().any(|refused| refused.kind == RefusalKind::Unread);
        return Ok(CommandResult::without_files(if is_unread { 10 } else { 3 }));
    }
    let root = world.prepared.root();
    let read = |file: &Arc<str>| {
        std::fs::read_to_string(root.join(&**file)).map_err(|error| error.to_string())
    };
    let around = LoadEnvironment {
        working_folder: root.to_owned(),
        today: jiff::civil::date(2030, 1, 1),
        ..LoadEnvironment::for_process()
    };
    let reload = |texts: &_| {
        let options = LoadOptions { replaced_texts: Some(texts), ..LoadOptions::default() };
        let loaded = manifest::load_with_options(root, &around, &options);
        let said = loaded.diagnostics.render(undrift::diagnostic::TextStyle::default());
        loaded.desired.ok_or(said)
    };
    match absorb::absorb(desired, &goals, AbsorbMode::OwnDocument, &read, &reload) {
        Ok(absorbed) => {
            let files = absorbed.files.into_iter();
            let files = files.map(|(file, (_, text))| (file.to_string(), text)).collect();
            Ok(CommandResult { exit: 0, files, is_incomplete: false, has_omissions: false })
        }
        Err(AbsorbError::Refused(_)) => Ok(CommandResult::without_files(3)),
        Err(AbsorbError::InvalidResult(_)) => Ok(CommandResult::without_files(2)),
    }
}

impl Simulator {
    /// Runs a command under a schedule. Also returns how many requests it sent, and what a plan of
    /// its files does to a service without faults.
    fn run_command(
        &self,
        command: Command,
        schedule: &Schedule,
    ) -> (CommandResult, usize, Vec<String>) {
        self.simulate(schedule, async |world| {
            let (reader, secrets, _held) = client(&world, RunRole::First);
            let ran = match command {
                Command::Export { partial } => export(reader, &secrets, partial).await,
                Command::Absorb => absorb(&world, reader, &secrets).await,
            };
            let left = ran.unwrap_or_else(|error| CommandResult::without_files(exit_of(&error)));
            let sent = world.state().sent.len();
            let (calm, secrets, _held) = client(&world, RunRole::Clean);
            let observer = Observer::connect(calm).await.unwrap();
            let wrong = changes(&observer, &left.files, &secrets, None).await.unwrap();
            (left, sent, wrong)
        })
    }

    /// The faults of a command's result.
    fn faults_of(
        &self,
        command: Command,
        schedule: &Schedule,
        calm: &CommandResult,
    ) -> Vec<String> {
        let taken =
            std::panic::catch_unwind(AssertUnwindSafe(|| self.run_command(command, schedule)));
        let Ok((left, _, changes)) = taken else { return vec!["it panicked".to_owned()] };
        let mut wrong = Vec::new();
        // If not everything was absorbed, the rest still differs.
        if !changes.is_empty() && !left.is_incomplete {
            wrong.push(format!("what it wrote plans to {changes:?}"));
        }
        // A null in a push rule means that the value is not set.
        let nulls = schedule.faults.iter().any(|(_, fault)| *fault == Fault::Spoiled(Spoil::Null));
        let text = |left: &CommandResult| {
            let text = left.without_comments();
            let lines = text.lines().filter(|line| !nulls || !line.starts_with("push_rule:"));
            lines.flat_map(|line| [line, "\n"]).collect::<String>()
        };
        let (told, meant) = (text(&left), text(calm));
        if left.exit == 0 && !left.has_omissions && told != meant {
            let diff = similar::TextDiff::from_lines(&meant, &told).unified_diff().to_string();
            wrong.push(format!("exit 0, but not what is there: {diff}"));
        }
        if left.exit != 0 && !left.files.is_empty() && command == Command::Absorb {
            wrong.push(format!("exit {}, but it edited", left.exit));
        }
        if left.is_incomplete && left.exit == 0 {
            wrong.push("exit 0, although something is missing".to_owned());
        }
        wrong
    }
}

/// True if a fault concerns reads.
fn is_of_reading(fault: &Fault) -> bool {
    let others = |fault: &Fault| {
        matches!(
            fault,
            Fault::Foreign(_)
                | Fault::Elsewhere(..)
                | Fault::Second
                | Fault::Surprise(_)
                | Fault::KillBefore
                | Fault::KillAfter
        )
    };
    // A part that the service reports as absent counts as absent, and a text may be any text.
    let is_believed = |fault: &Fault| {
        let missing = matches!(fault, Fault::NotFound(what) if *what != Missing::Project);
        missing || *fault == Fault::Spoiled(Spoil::Text)
    };
    !others(fault) && !is_believed(fault)
}

#[test]
fn exports_and_edits_under_read_faults_are_right_or_refused() {
    let simulator = Simulator::get();
    let every = if env_number("UNDRIFT_SEEDS").is_some() { 1 } else { SAMPLE_INTERVAL };
    let faults: Vec<_> = Fault::all().into_iter().filter(is_of_reading).collect();
    let (mut played, mut failed, mut tried) = (0, BTreeSet::new(), BTreeSet::new());
    for (turn, command) in COMMANDS.into_iter().enumerate() {
        let calm = simulator.calm(SCENARIO);
        let (left, requests, changes) = simulator.run_command(command, &calm);
        assert_eq!((left.exit, left.is_incomplete, changes), (0, false, vec![]), "{command:?}");
        assert!(!left.files.is_empty());
        let all = (0..requests).flat_map(|at| faults.iter().enumerate().map(move |it| (at, it)));
        for (pair, (at, (number, fault))) in all.enumerate() {
            let is_tried = match every == 1 || sample::plays_all() {
                true => pair % every == 0,
                false => number % COMMANDS.len() == turn && at == (7 * number + 1) % requests,
            };
            // Only the first response shows who the caller is, and so whose own access it is.
            let is_of_caller = at == 0 && *fault == Fault::Spoiled(Spoil::Number);
            if !is_tried || is_of_caller {
                continue;
            }
            played += 1;
            tried.insert(fault.name());
            let schedule = Schedule { faults: vec![(at, fault.clone())], ..calm.clone() };
            for wrong in simulator.faults_of(command, &schedule, &left) {
                failed.insert(format!("{command:?} {at} {fault:?}: {wrong}"));
            }
        }
    }
    println!("{played} exports and absorbs with a fault");
    assert_eq!(tried, faults.iter().map(Fault::name).collect(), "each fault is in the sample");
    assert!(failed.is_empty(), "{failed:#?}");
}
