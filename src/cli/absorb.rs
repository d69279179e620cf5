//! `undrift absorb`: edits the manifests so that they declare the live state.
//!
//! The command reads and plans like `plan`. [`crate::absorb`] decides what to edit and how. Either
//! all changed files are replaced, or none.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    AccessArgs, CommandError, CommandResult, Exit, Manifests, Progress, Result, RunContext,
    Session, SessionArgs, SessionBuilder, into_manifests, require_match, write_files,
};
use crate::{
    absorb::{
        self, AbsorbError, AbsorbMode, AbsorbRefusal, ContainerComparison, EditedFiles, FileTexts,
        Goal, RefusalKind,
    },
    address::{Address, Selector, is_literal},
    api::ApiError,
    apply,
    desired::{Container, Desired},
    diagnostic::{Diagnostic, FileName, FilePaths},
    diff::Reason,
    export::{self, Excerpt, ExportBuilder},
    live::LiveContainer,
    manifest::{self, LoadEnvironment, LoadOptions},
    report::{
        TextStyle,
        terminal::{self, SCREEN_LINES},
    },
    selection::Selection,
    text::{count, list_first},
};

/// The options of `absorb`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/absorb.txt"))]
pub(super) struct Args {
    /// What to absorb: a glob over PATH, PATH#SECTION, PATH#SECTION/ENTRY or
    /// PATH#SECTION/ENTRY/FIELD
    #[arg(value_name = "ADDRESS", required = true, value_parser = Selector::parse)]
    addresses: Vec<Selector>,
    /// Exclude matching objects; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse)]
    exclude: Vec<Selector>,
    /// Folder of manifests, or one file
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Write the edited files instead of only showing the edit
    #[arg(long)]
    write: bool,
    /// Edit the document that declares the difference, such as `Defaults`, instead of the document
    /// of the group or project itself
    #[arg(long)]
    at_source: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// The selected differences: those to absorb, and those that cannot be absorbed.
#[derive(Default)]
struct SelectedDrift {
    goals: Vec<Goal>,
    refusals: Vec<AbsorbRefusal>,
    /// The selected entries that no manifest lists and that are not absorbed.
    unlisted_entries: Vec<AbsorbRefusal>,
    selectable_addresses: Vec<Address>,
    /// The live texts that are not secrets.
    public_texts: BTreeSet<String>,
    /// Groups and projects that only a glob selects and that are missing or renamed.
    skipped_containers: Vec<AbsorbRefusal>,
    /// The declared renames and moves that are not applied yet; absorb keeps their declarations.
    pending_renames: Vec<AbsorbRefusal>,
}

impl SelectedDrift {
    /// Prints the selected objects that are not absorbed.
    fn print_skipped(&self, cx: &RunContext) {
        let skipped_line = |skipped: &AbsorbRefusal| {
            format!("not absorbed: {}: {}", skipped.address, skipped.reason)
        };
        for (refusals, noun) in [
            (&self.unlisted_entries, "entry"),
            (&self.skipped_containers, "group or project"),
            (&self.pending_renames, "rename"),
        ] {
            let name = |skipped: &AbsorbRefusal| skipped.address.to_string();
            cx.output.eprint_lines(refusals, noun, |_| (), skipped_line, name);
        }
    }
}

/// Adds help to `failure` if one of the addresses is a folder.
fn explain_folder(failure: CommandError, addresses: &[Selector]) -> CommandError {
    let mut patterns = addresses.iter().map(Selector::pattern);
    match patterns.find(|pattern| Path::new(pattern).is_dir()) {
        Some(folder) => failure.help(format!(
            "`{folder}` is a folder, not an address: write `undrift absorb '**' -d {folder}`"
        )),
        None => failure,
    }
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let load_result = ManifestEditor::load(&args.dir, &args.access.allow_env, cx);
    let (mut editor, manifests) =
        load_result.map_err(|failure| explain_folder(failure, &args.addresses))?;
    let full_desired = manifests.desired.clone();
    let has_includes = manifests.includes.is_some();
    let manifests =
        Manifests { desired: select_containers(&args, manifests.desired)?, ..manifests };
    let session = editor.open_session(manifests, &args.access).await?;
    let drift = find_drift(&args, &session, cx).await?;
    for selector in &args.addresses {
        if !drift.selectable_addresses.iter().any(|address| selector.matches(address)) {
            require_match(selector, &full_desired)?;
        }
    }
    if !drift.refusals.is_empty() {
        return Err(report_refusals(&drift.refusals, cx));
    }
    drift.print_skipped(cx);
    if drift.goals.is_empty() {
        let reason = if session.desired.containers.is_empty() {
            "`--exclude` excludes everything that is selected"
        } else if drift.skipped_containers.is_empty() && drift.pending_renames.is_empty() {
            "the selection matches its manifest"
        } else {
            "the other selected objects match their manifests"
        };
        cx.output.eprint(&format!("nothing to absorb: {reason}\n"));
        return Ok(Exit::Success);
    }
    let mode = if args.at_source { AbsorbMode::AtSource } else { AbsorbMode::OwnDocument };
    let edits = editor.absorb(&full_desired, &drift.goals, mode).map_err(|error| match error {
        AbsorbError::Refused(refusals) => report_refusals(&refusals, cx),
        AbsorbError::InvalidResult(message) => {
            cx.output.eprint(&message);
            CommandError::usage("nothing was edited: the edited manifests would be wrong")
                .help("edit them by hand, or absorb less")
        }
    })?;
    cx.output.print(&render_edits(
        &edits.files,
        &drift.public_texts,
        SCREEN_LINES,
        cx.output.style,
    ))?;
    if args.write {
        editor.store_edits(&edits);
        editor.write()?;
    }
    let affects_included = has_includes && edits.edits_rules;
    cx.output.eprint(&summary_text(&args, &drift.goals, &edits, affects_included));
    Ok(Exit::Success)
}

/// Keeps the selected containers of `desired`. Fails if an address matches nothing.
fn select_containers(args: &Args, mut desired: Desired) -> Result<Desired> {
    for selector in &args.addresses {
        if !desired.containers.iter().any(|container| selector.matches_path(&container.path)) {
            require_match(selector, &desired)?;
        }
    }
    desired.containers.retain(|container| {
        args.addresses.iter().any(|selector| selector.matches_path(&container.path))
            && !args.exclude.iter().any(|selector| selector.matches(&container.address()))
    });
    Ok(desired)
}

/// Reads the containers of `session`, and finds their selected differences.
async fn find_drift(args: &Args, session: &Session, cx: &RunContext) -> Result<SelectedDrift> {
    let observer = &session.observer;
    let settings =
        export::ExportSettings::for_caller(observer.caller().clone(), observer.release().await?);
    let containers: Vec<_> = session.desired.containers.iter().collect();
    let selection = Selection { only: args.addresses.clone(), exclude: args.exclude.clone() };
    let mut drift = SelectedDrift::default();
    let collect_drift = |comparison: &ContainerComparison<'_>| {
        let (goals, refusals) = absorb::find_drift(comparison, &selection);
        let (renames, other_refusals): (Vec<_>, Vec<_>) = refusals
            .into_iter()
            .partition(|absorb_refusal| absorb_refusal.kind == RefusalKind::PendingRename);
        let (path, address) = (&comparison.container.path, comparison.container.address());
        let is_named_exactly = args
            .addresses
            .iter()
            .any(|selector| selector.matches_path(path) && is_literal(selector.path_pattern()));
        let refusal = other_refusals.iter().find(|refusal| refusal.address == address);
        if let Some(refusal) = refusal.filter(|_| !is_named_exactly) {
            drift.skipped_containers.push(refusal.clone());
            return;
        }
        let goal_addresses: BTreeSet<_> = goals.iter().map(|goal| &goal.address).collect();
        for note in comparison.plan.notes.iter().filter(|note| note.reason == Reason::Unlisted) {
            if selection.selects(&note.address) && !goal_addresses.contains(&note.address) {
                let reason = "no manifest lists it; pass its address to absorb it";
                drift.unlisted_entries.push(AbsorbRefusal::new(&note.address, reason));
            }
        }
        // Collect texts only from containers with edits, because a text that is public in one
        // container may be a secret in another one.
        let excerpt = comparison.excerpt.filter(|_| !goals.is_empty());
        drift.public_texts.extend(excerpt.into_iter().flat_map(Excerpt::texts));
        drift.selectable_addresses.extend(absorb::selectable_addresses(comparison));
        drift.goals.extend(goals);
        drift.pending_renames.extend(renames);
        drift.refusals.extend(other_refusals);
    };
    compare_containers(
        session,
        &containers,
        (export::widen_to_all_fields, &settings),
        cx,
        collect_drift,
    )
    .await?;
    drift.goals.sort_by(|a, b| a.address.cmp(&b.address));
    for refusals in [
        &mut drift.refusals,
        &mut drift.unlisted_entries,
        &mut drift.skipped_containers,
        &mut drift.pending_renames,
    ] {
        refusals.sort_by(|a, b| a.address.cmp(&b.address));
    }
    Ok(drift)
}

/// Reads and compares `containers`, and passes each comparison to `process`. Before the
/// reading, `extend_declarations` adds fields to each declaration: those that an export with `settings`
/// includes. Then these fields are read too.
pub(super) async fn compare_containers(
    session: &Session,
    containers: &[&Container],
    (extend_declarations, settings): (
        fn(&Container, &export::ExportSettings) -> Container,
        &export::ExportSettings,
    ),
    cx: &RunContext,
    process: impl FnMut(&ContainerComparison<'_>),
) -> Result<(), ApiError> {
    let observer = &session.observer;
    let containers_by_path: BTreeMap<_, _> =
        containers.iter().map(|declared| (&declared.path, *declared)).collect();
    let extended_containers: Vec<Container> =
        containers.iter().map(|declared| extend_declarations(declared, settings)).collect();
    let progress = Progress::for_reading(&extended_containers, observer.client(), &cx.output);
    let process = RefCell::new(process);
    let compare_container = async |container: &Container, mut live: LiveContainer| {
        let container = containers_by_path[&container.path];
        let plan = &apply::plan_with_extra_facts(observer, container, &mut live, &session.settings)
            .await?;
        let names =
            &observer.read_names(ExportBuilder::referenced_ids(container.scope, &live)).await?;
        let excerpt = Excerpt::from_live(container.scope, &container.path, &live, names, settings);
        let (live, excerpt) = (&live, excerpt.as_ref());
        let comparison = ContainerComparison { container, plan, live, names, excerpt };
        (process.borrow_mut())(&comparison);
        progress.count_step(&container.path);
        Ok(())
    };
    observer.read_all(&extended_containers, session.concurrency, compare_container).await
}

/// Prints the differences that cannot be absorbed, with reasons. Returns the error of the run.
fn report_refusals(refusals: &[AbsorbRefusal], cx: &RunContext) -> CommandError {
    let diagnostics = refusals.iter().map(|refusal| {
        let message = format!("cannot absorb `{}`: {}", refusal.address, refusal.reason);
        let diagnostic = Diagnostic::error("absorb", message);
        match &refusal.origin {
            Some(origin) => diagnostic.with_location(origin.into()),
            None => diagnostic,
        }
    });
    cx.output.eprint_diagnostics(&diagnostics.collect());
    let are_all_unread = refusals.iter().all(|refusal| refusal.kind == RefusalKind::Unread);
    let exit = if are_all_unread { Exit::Incomplete } else { Exit::Usage };
    let addresses = count(refusals.len(), "address");
    let error = anyhow::anyhow!("nothing was edited: {addresses} cannot be absorbed");
    let help = if refusals
        .iter()
        .all(|refusal| refusal.reason.contains(absorb::DECLARED_BY_REFERENCE))
    {
        "change the variable or file that the reference names, or send it again with `undrift apply`"
    } else {
        "edit the manifest by hand, or name only the others"
    };
    CommandError::new(exit, error).help(help)
}

/// Edits the manifests of a folder in memory, and writes them.
pub(super) struct ManifestEditor<'a> {
    pub(super) dir: &'a Path,
    load_environment: LoadEnvironment,
    pub(super) cx: &'a RunContext,
    /// The paths of the files.
    pub(super) paths: FilePaths,
    /// The texts of the changed files before the edits; `None` for new files.
    pub(super) old_texts: BTreeMap<FileName, Option<String>>,
    /// The edited texts of the changed files.
    pub(super) new_texts: FileTexts,
}

impl<'a> ManifestEditor<'a> {
    /// Loads the manifests in `dir`.
    pub(super) fn load(
        dir: &'a Path,
        allow_env: &[String],
        cx: &'a RunContext,
    ) -> Result<(Self, Manifests)> {
        let load_environment = cx.make_load_environment(allow_env)?;
        let loaded = manifest::load(dir, &load_environment);
        let (paths, old_texts) = (loaded.paths.clone(), BTreeMap::new());
        let editor =
            Self { dir, load_environment, cx, paths, old_texts, new_texts: FileTexts::new() };
        Ok((editor, into_manifests(loaded, cx)?))
    }

    /// Opens a session for `manifests`. Leaves out the containers that only rules include, because
    /// they have no document to edit.
    pub(super) async fn open_session(
        &self,
        manifests: Manifests,
        access: &AccessArgs,
    ) -> Result<Session> {
        let manifests = Manifests { includes: None, ..manifests };
        let args = SessionArgs::with_selection(self.dir, access, Vec::new());
        SessionBuilder::new(&args)
            .open_manifests(manifests, self.load_environment.today, self.cx)
            .await
    }

    /// The text of `file`, with the stored edits.
    pub(super) fn read_text(&self, file: &FileName) -> Result<String, String> {
        match self.new_texts.get(file) {
            Some(text) => Ok(text.clone()),
            None => write_files::read_manifest(
                self.paths.get(file).map_or(Path::new(""), PathBuf::as_path),
            ),
        }
    }

    /// Loads all manifests again, with the stored edits and `edited_texts`.
    pub(super) fn reload(&self, edited_texts: &FileTexts) -> Result<Desired, String> {
        let mut texts = self.new_texts.clone();
        texts.extend(edited_texts.iter().map(|(name, text)| (name.clone(), text.clone())));
        let options = LoadOptions { replaced_texts: Some(&texts), ..LoadOptions::default() };
        let loaded = manifest::load_with_options(self.dir, &self.load_environment, &options);
        loaded.desired.ok_or_else(|| loaded.diagnostics.render(self.cx.output.stderr_style))
    }

    /// Computes edits of the manifests. With these edits, the manifests declare the `goals`.
    pub(super) fn absorb(
        &self,
        desired: &Desired,
        goals: &[Goal],
        mode: AbsorbMode,
    ) -> Result<EditedFiles, AbsorbError> {
        absorb::absorb(desired, goals, mode, &|file| self.read_text(file), &|edited| {
            self.reload(edited)
        })
    }

    /// Keeps the edited texts for [`Self::write`].
    pub(super) fn store_edits(&mut self, edits: &EditedFiles) {
        for (name, (old_text, new_text)) in &edits.files {
            self.old_texts.entry(name.clone()).or_insert_with(|| Some(old_text.clone()));
            self.new_texts.insert(name.clone(), new_text.clone());
        }
    }

    /// Writes all changed files, or none.
    pub(super) fn write(&self) -> Result<()> {
        let files = self.new_texts.iter().map(|(name, new_text)| {
            let (path, old_text) = (self.paths[name].clone(), self.old_texts[name].clone());
            write_files::FileEdit { path, old_text, new_text: new_text.clone() }
        });
        write_files::write_all(&files.collect::<Vec<_>>())
    }
}

/// The old and the new text of each changed file.
pub(super) type FileEdits = BTreeMap<FileName, (String, String)>;

/// Renders the edits without secrets. Texts that may be secret are hidden unless they are in
/// `public_texts`. On a terminal, the result has about `max_lines` lines.
pub(super) fn render_edits(
    files: &FileEdits,
    public_texts: &BTreeSet<String>,
    max_lines: usize,
    style: TextStyle,
) -> String {
    let files = files.iter().map(|(name, (old, new))| {
        (name.clone(), [old, new].map(|text| manifest::hide_secrets(text, public_texts)))
    });
    terminal::render_edits_text(&files.collect::<Vec<_>>(), max_lines, style)
}

/// A summary of the edits. With `affects_included_paths`, the summary warns that groups and projects
/// that a rule includes may change too. Only the service knows which groups and projects these are.
fn summary_text(
    args: &Args,
    goals: &[Goal],
    edits: &EditedFiles,
    affects_included_paths: bool,
) -> String {
    let differences_text =
        count(goals.iter().map(Goal::count_differences).sum::<usize>(), "difference");
    let files_text = count(edits.files.len(), "file");
    let mut summary = if args.write {
        format!("absorbed {differences_text} into {files_text}\n")
    } else {
        format!("would absorb {differences_text} into {files_text}; pass `--write` to do it\n")
    };
    let mut lines = Vec::new();
    if !edits.other_containers.is_empty() {
        let other_paths: Vec<_> = edits.other_containers.iter().map(String::as_str).collect();
        let others_text = count(other_paths.len(), "other group or project");
        let others = list_first(&other_paths);
        lines.push(format!("the edits also change the declarations of {others_text}: {others}"));
    }
    if affects_included_paths {
        lines.push("groups and projects that a rule includes may change too".to_owned());
    }
    if !lines.is_empty() {
        summary += &(lines.join("; ") + "\n");
    }
    summary
}
