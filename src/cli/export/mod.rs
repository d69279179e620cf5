//! `undrift export`: writes the live state as manifests for which a plan has no steps.
//!
//! The command finds the groups and projects below the given paths, and reads them as a plan does.
//! It writes files only after it has read everything and checked the manifests with a plan.
//! [`crate::export`] decides the content of the files; `folder` writes all of them, or none.

mod folder;
mod update;
mod verify;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::{
    CommandError, CommandResult, ConnectArgs, Endpoint, Exit, Progress, Result, RunContext,
};
use crate::{
    address::{Glob, Selector},
    catalogue,
    desired::Container,
    diagnostic::Diagnostics,
    export::{self, Export, ExportBuilder, ExportSettings, SecretHandling},
    field::Scope,
    live::LiveContainer,
    manifest::{
        Config, LoadEnvironment, ManagedPaths,
        config::{self, CONFIG_FILE},
    },
    observe::{ExistingContainers, Observer},
    selection::Selection,
    text::{
        alternatives, count, escape, join_words, list_first, list_names, nearest, shell_argument,
    },
};

/// The options of `export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("../help/export.txt"))]
pub(super) struct Args {
    /// Group or project to export, with everything in it: a path, or a glob over paths
    #[arg(value_name = "PATHGLOB", required = true, value_parser = Glob::for_paths)]
    paths: Vec<Glob>,
    /// Folder to write into; must be empty, unless `--update` is given
    #[arg(short, long, value_name = "DIR")]
    dir: PathBuf,
    /// Add missing objects to the manifests in the folder; show differences without writing them
    #[arg(long, conflicts_with_all = ["all", "create", "no_defaults", "rehearse", "secrets"])]
    update: bool,
    /// Write what could be read; exit with 0 if only refused sections and unsupported fields are
    /// missing, otherwise with 10
    #[arg(long)]
    partial: bool,
    /// Also write defaults of the service, and empty sections
    #[arg(long)]
    all: bool,
    /// Write each project in full, without `Defaults`, profiles and `paths` for what several
    /// projects have in common
    #[arg(long)]
    no_defaults: bool,
    /// Let `apply` create the groups and projects, to build them elsewhere (`create: true`)
    #[arg(long)]
    create: bool,
    /// Write `watch: true` into new documents: undrift then compares and reports their objects, but
    /// never changes them; implies `--all`
    #[arg(long)]
    watch: bool,
    /// Secret values: leave them out (plain), leave out all values of variables (none), or write
    /// references to environment variables (env)
    #[arg(long, value_name = "HOW", default_value = "plain", hide_possible_values = true, value_parser = values())]
    values: SecretHandling,
    /// With `--values env`, write the values into this file, which only its owner can read
    #[arg(long, value_name = "FILE")]
    secrets: Option<PathBuf>,
    /// With `--values env`, also write data for a rehearsal in the sandbox: users, branches and
    /// placeholders for secrets; implies `--create`
    #[arg(long)]
    rehearse: bool,
    /// Include only these sections, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Selection")]
    sections: Vec<String>,
    /// Include only matching objects: a glob over PATH, PATH#SECTION or PATH#SECTION/ENTRY; may be
    /// repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse, help_heading = "Selection")]
    only: Vec<Selector>,
    /// Exclude matching objects; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse, help_heading = "Selection")]
    exclude: Vec<Selector>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Parses the value of `--values`.
fn values() -> impl TypedValueParser<Value = SecretHandling> {
    PossibleValuesParser::new(["plain", "none", "env"]).map(|name| match &*name {
        "none" => SecretHandling::None,
        "env" => SecretHandling::Env,
        _ => SecretHandling::Plain,
    })
}

impl Args {
    /// Refuses options that contradict each other, before anything is read.
    fn check_options(&self) -> Result<()> {
        let names: Vec<_> = catalogue::all_sections().map(|section| section.section).collect();
        let unknown_names = self.sections.iter().filter(|name| !names.contains(&name.as_str()));
        let unknown_names: Vec<_> = unknown_names.map(String::as_str).collect();
        if !unknown_names.is_empty() {
            let noun = if unknown_names.len() == 1 { "section" } else { "sections" };
            let failure =
                CommandError::usage(format!("unknown {noun} {}", list_names(&unknown_names)));
            let similar_names =
                unknown_names.iter().filter_map(|name| nearest(name, names.iter().copied()));
            let similar_names: Vec<_> = similar_names.collect();
            return Err(failure.help(if similar_names.is_empty() {
                "`undrift schema` and docs/reference/fields.md list all sections".into()
            } else {
                format!("did you mean {}?", list_names(&similar_names))
            }));
        }
        if self.update && self.values == SecretHandling::Env {
            let failure = CommandError::usage("`--values env` cannot be combined with `--update`");
            return Err(failure.help("export into an empty folder to get references"));
        }
        let dependent_options =
            [("--secrets", self.secrets.is_some()), ("--rehearse", self.rehearse)];
        if let Some((option, _)) = dependent_options.into_iter().find(|(_, is_given)| *is_given)
            && self.values != SecretHandling::Env
        {
            let failure = CommandError::usage(format!("`{option}` needs `--values env`"));
            return Err(failure.help("add `--values env` to write references instead of values"));
        }
        Ok(())
    }

    /// Collects the settings of an export. `managed_paths` limits the paths that its manifests may
    /// declare.
    async fn read_settings(
        &self,
        observer: &Observer,
        managed_paths: Option<&ManagedPaths>,
    ) -> Result<ExportSettings> {
        let release = observer.release().await?;
        Ok(ExportSettings {
            caller: observer.caller().clone(),
            release,
            secret_handling: self.values,
            includes_defaults: self.all || self.watch,
            extracts_defaults: !self.no_defaults,
            writes_create: self.create || self.rehearse,
            marks_watched: self.watch,
            writes_sandbox_seed: self.rehearse,
            sections: self.sections.clone(),
            selection: Selection { only: self.only.clone(), exclude: self.exclude.clone() },
            managed_paths: managed_paths.cloned(),
        })
    }
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    args.check_options()?;
    let folder_check = folder::check_empty(&args.dir);
    if args.update && folder_check.is_err() {
        return update::run(&args, cx).await;
    }
    folder_check?;
    if let Some(file) = &args.secrets {
        folder::check_secrets_file(file, &args.dir)?;
    }
    let managed_paths = find_managed_paths(&args.dir, cx)?;
    let (endpoint, config) = args.connect.find_endpoint_and_config(None, cx).await?;
    let (export, exit) =
        read_export(&args, &endpoint, (&config, managed_paths.as_ref()), cx).await?;
    let manifest_count = folder::write_export(&args.dir, &export, args.secrets.as_deref())?;
    cx.output.print(&summary_text(&args, &export, manifest_count))?;
    Ok(exit)
}

/// The live state of each group and project, by path.
type LiveStates = BTreeMap<Arc<str>, LiveContainer>;

/// Reads all groups and projects, and builds and checks their manifests. Reports every part that the
/// result lacks.
async fn read_export(
    args: &Args,
    endpoint: &Endpoint,
    (config, managed_paths): (&Config, Option<&ManagedPaths>),
    cx: &RunContext,
) -> Result<(Export, Exit)> {
    let secrets = Arc::new(endpoint.command_line_secrets());
    let client = args.connect.create_client(endpoint, config, secrets, &cx.output)?;
    let observer = args.connect.connect_observer(client, &endpoint.service, &cx.env).await?;
    let settings = args.read_settings(&observer, managed_paths).await?;
    let existing = find_existing(args, &settings, &observer, cx).await?;
    let containers = existing.containers.into_values();
    let containers: Vec<Container> = containers
        .map(|(scope, path)| export::readable_container(scope, path, &settings))
        .collect();
    if containers.is_empty() {
        return Err(CommandError::usage("`--only` and `--exclude` select nothing"));
    }
    let progress = Progress::for_reading(&containers, observer.client(), &cx.output);
    let shared_state =
        RefCell::new((ExportBuilder::new(settings, existing.pending_deletion), LiveStates::new()));
    let add_container = async |container: &Container, mut live: LiveContainer| {
        let names =
            observer.read_names(ExportBuilder::referenced_ids(container.scope, &live)).await?;
        let (builder, live_states) = &mut *shared_state.borrow_mut();
        builder.add(container.scope, &container.path, &live, &names);
        live.names.extend(names.with_reverse_lookups());
        live_states.insert(container.path.clone(), live);
        progress.count_step(&container.path);
        Ok(())
    };
    let max_concurrent = args.connect.in_flight_range(config).max();
    observer.read_all(&containers, max_concurrent, add_container).await?;
    drop(progress);
    let (mut builder, live_states) = shared_state.into_inner();
    let is_complete = report_unread(&mut builder, args, cx)?;
    let export = builder.finish();
    for note in &export.notes {
        cx.output.eprint(&format!("note: {}\n", escape(note)));
    }
    let faults = verify::verify_export(&export, live_states, &observer, config, cx).await?;
    for fault in &faults {
        cx.output.eprint(&format!("warning: {}\n", escape(fault)));
    }
    if !faults.is_empty() && !args.partial {
        return Err(unwritten_failure("the exported manifests do not match the live state"));
    }
    Ok((export, Exit::Incomplete.only_if(!is_complete || !faults.is_empty())))
}

/// Prints the sections that were not read or are left out. Returns true if the export is complete;
/// with `--partial`, sections that are left out do not make it incomplete.
///
/// # Errors
/// If something could not be read and `--partial` is not given.
fn report_unread(builder: &mut ExportBuilder, args: &Args, cx: &RunContext) -> Result<bool> {
    eprint_missing("could not read", builder.missing_reads(), cx);
    eprint_missing("left out", builder.omitted_reads(), cx);
    let missing_count = builder.missing_reads().len();
    if missing_count > 0 && !args.partial {
        let parts = count(missing_count, "part");
        return Err(unwritten_failure(&format!("{parts} could not be read")));
    }
    Ok(missing_count == 0 && (args.partial || builder.omitted_reads().is_empty()))
}

fn eprint_missing(introduction: &str, reads: &[export::IncompleteRead], cx: &RunContext) {
    let warning_line = |read: &export::IncompleteRead| {
        format!("warning: {introduction} {}: {}", read.subject, read.cause)
    };
    let cause_key =
        |read: &export::IncompleteRead| read.cause.message.replace(&read.cause.request_line, "");
    let name = |read: &export::IncompleteRead| read.subject.clone();
    cx.output.eprint_lines(reads, "object", cause_key, warning_line, name);
}

fn unwritten_failure(reason: &str) -> CommandError {
    let failure =
        CommandError::new(Exit::Incomplete, anyhow::anyhow!("nothing was written: {reason}"));
    failure.help("run export again, or pass `--partial` to write the rest")
}

/// The paths that manifests in `folder` may declare, according to the `undrift.yaml` that applies
/// there. The folder need not exist.
fn find_managed_paths(folder: &Path, cx: &RunContext) -> Result<Option<ManagedPaths>> {
    let folder = std::path::absolute(folder)?;
    let existing_folder = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(&folder);
    let mut diagnostics = Diagnostics::default();
    let (_, config) =
        config::find(existing_folder, &LoadEnvironment::for_process(), &mut diagnostics);
    if diagnostics.has_errors() {
        cx.output.refuse_errors(&diagnostics)?;
    }
    Ok(config.manages)
}

/// The requested groups and projects that exist, are selected, and may be declared.
async fn find_existing(
    args: &Args,
    settings: &ExportSettings,
    observer: &Observer,
    cx: &RunContext,
) -> Result<ExistingContainers> {
    let mut existing = observer.list_existing(&args.paths).await?;
    if existing.personal_project_count > 0 {
        let project_count = count(existing.personal_project_count, "project");
        let note = format!(
            "note: skipped {project_count} in personal namespaces; name a user to export them\n"
        );
        cx.output.eprint(&note);
    }
    if !existing.unmatched_globs.is_empty() {
        let globs: Vec<_> = existing.unmatched_globs.iter().map(String::as_str).collect();
        let failure = CommandError::usage(format!("nothing exists at {}", list_first(&globs)));
        return Err(failure.help("correct the path, or use a token that can see it"));
    }
    if existing.containers.is_empty() {
        return Err(CommandError::usage("everything there is marked for deletion"));
    }
    existing.containers.retain(|_, (_, path)| settings.selects_part_of(path));
    remove_unmanaged(&mut existing, settings, cx)?;
    Ok(existing)
}

/// Removes the objects that the manifests must not declare, and reports them.
fn remove_unmanaged(
    existing: &mut ExistingContainers,
    settings: &ExportSettings,
    cx: &RunContext,
) -> Result<()> {
    let Some(managed_paths) = &settings.managed_paths else { return Ok(()) };
    let containers = std::mem::take(&mut existing.containers).into_iter();
    let (managed_containers, unmanaged_containers): (BTreeMap<_, _>, BTreeMap<_, _>) =
        containers.partition(|(_, (_, path))| managed_paths.allows_path(path));
    existing.containers = managed_containers;
    let unmanaged_paths: Vec<_> =
        unmanaged_containers.into_values().map(|(_, path)| path).collect();
    existing.pending_deletion.retain(|path| managed_paths.allows_path(path));
    if existing.containers.is_empty() && !unmanaged_paths.is_empty() {
        let failure = CommandError::usage(format!(
            "everything there is outside of `manages` in {CONFIG_FILE}"
        ));
        return Err(failure.help("name another path or another folder, or extend `manages`"));
    }
    let paths = existing.containers.values().map(|(_, path)| path.clone());
    let partial_paths: Vec<_> =
        paths.filter(|path| !managed_paths.allows_all_sections(path)).collect();
    for (description, paths) in [
        ("skipped, because they are outside of", unmanaged_paths),
        ("exported only with the sections of", partial_paths),
    ] {
        if !paths.is_empty() {
            let paths: Vec<_> = paths.iter().map(|path| &**path).collect();
            let paths = list_first(&paths);
            cx.output.eprint(&format!("note: {description} `manages` in {CONFIG_FILE}: {paths}\n"));
        }
    }
    Ok(())
}

fn summary_text(args: &Args, export: &Export, file_count: usize) -> String {
    let counts =
        Scope::ALL.iter().filter_map(|scope| Some((export.container_counts.get(scope)?, scope)));
    let counts = counts.filter(|(number, _)| **number > 0);
    let count_texts: Vec<_> = counts.map(|(number, scope)| count(*number, scope.noun())).collect();
    let dir = args.dir.display();
    let next_command = format!("undrift check {}", shell_argument(&dir.to_string()));
    format!(
        "exported {} into {} in `{dir}`\nnext: {}\n",
        join_words(&count_texts),
        count(file_count, "file"),
        alternatives(&[next_command])
    )
}
