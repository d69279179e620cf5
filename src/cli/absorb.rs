//! `undrift absorb`: takes drift back into the manifests.
//!
//! It reads and plans as `plan` does, and edits the manifests so that they declare the live state.
//! [`crate::absorb`] decides what to edit and how. All files are replaced, or none.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use super::{
    AccessArgs, CommandError, CommandResult, Exit, Manifests, Progress, RunContext, Session,
    SessionArgs, SessionBuilder, into_manifests, require_match, write_files,
};
use crate::{
    absorb::{
        self, AbsorbError, AbsorbMode, AbsorbRefusal, Absorbed, ContainerComparison, Contents,
        Goal, RefusalKind,
    },
    address::{Address, Selector, is_literal},
    api::ApiError,
    apply,
    desired::{Container, Desired},
    diagnostic::{Diagnostic, FileName, FilePaths},
    diff::Reason,
    export::{self, Excerpt, ExportBuilder},
    live::Live,
    manifest::{self, LoadEnvironment, Options},
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
    /// What to absorb: a glob over PATH, PATH#SECTION, PATH#SECTION/ENTRY or the fields after it
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
    /// Edit the document that declares the difference, such as `Defaults`, instead of the one of
    /// the group or project itself
    #[arg(long)]
    at_source: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// The result of reading and planning.
#[derive(Default)]
struct PlannedAbsorb {
    goals: Vec<Goal>,
    refusals: Vec<AbsorbRefusal>,
    /// The selected entries that no manifest lists and that are not absorbed.
    unlisted_entries: Vec<Address>,
    addresses: Vec<Address>,
    /// The texts that are live and no secrets.
    public_texts: BTreeSet<String>,
    /// The reasons for which groups and projects that only a glob selects are omitted, by path: they are
    /// missing or renamed.
    skipped_paths: Vec<(String, String)>,
    /// The declared renames and moves, which stay as they are declared.
    pending_renames: Vec<AbsorbRefusal>,
}

impl PlannedAbsorb {
    /// Prints what is not absorbed.
    fn print_rest(&self, cx: &RunContext) {
        let line = |address: &Address| {
            format!("not absorbed: {address}: no manifest lists it; name it to take it in")
        };
        cx.output.eprint_lines(
            &self.unlisted_entries,
            "entry",
            |_| (),
            [&line, &Address::to_string],
        );
        cx.output.eprint_lines(
            &self.skipped_paths,
            "group or project",
            |_| (),
            [&|(path, why)| format!("not absorbed: {path}: {why}"), &|(path, _)| path.clone()],
        );
        let rename_line =
            |rename: &AbsorbRefusal| format!("not absorbed: {}: {}", rename.address, rename.reason);
        cx.output.eprint_lines(
            &self.pending_renames,
            "rename",
            |_| (),
            [&rename_line, &|rename| rename.address.to_string()],
        );
    }
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let (mut texts, manifests) = ManifestTexts::load(&args.dir, &args.access.allow_env, cx)?;
    let all_desired = manifests.desired.clone();
    let has_includes = manifests.includes.is_some();
    let manifests = Manifests { desired: select(&args, manifests.desired)?, ..manifests };
    let session = texts.open_session(manifests, &args.access).await?;
    let drift = find_drift(&args, &session, cx).await?;
    for selector in &args.addresses {
        if !drift.addresses.iter().any(|address| selector.matches(address)) {
            require_match(selector, &all_desired)?;
        }
    }
    if !drift.refusals.is_empty() {
        return Err(refuse(&drift.refusals, cx));
    }
    drift.print_rest(cx);
    if drift.goals.is_empty() {
        let reason = if session.desired.containers.is_empty() {
            "`--exclude` excludes everything that is selected"
        } else if drift.skipped_paths.is_empty() && drift.pending_renames.is_empty() {
            "the selection matches its manifest"
        } else {
            "the rest matches its manifest"
        };
        cx.output.eprint(&format!("nothing to absorb: {reason}\n"));
        return Ok(Exit::Success);
    }
    let mode = if args.at_source { AbsorbMode::AtSource } else { AbsorbMode::OwnDocument };
    let absorbed =
        texts.absorb(&all_desired, &drift.goals, mode).map_err(|failed| match failed {
            AbsorbError::Refused(refused) => refuse(&refused, cx),
            AbsorbError::InvalidResult(why) => {
                cx.output.eprint(&why);
                CommandError::usage("nothing was edited: the edited manifests would be wrong")
                    .help("edit them by hand, or absorb less")
            }
        })?;
    cx.output.print(&render_edits(
        &absorbed.files,
        &drift.public_texts,
        SCREEN_LINES,
        cx.output.style,
    ))?;
    if args.write {
        texts.store_edits(&absorbed);
        texts.write()?;
    }
    let affects_included = has_includes && absorbed.edits_rules;
    cx.output.eprint(&summary(&args, &drift.goals, &absorbed, affects_included));
    Ok(Exit::Success)
}

/// The selected containers.
fn select(args: &Args, mut desired: Desired) -> Result<Desired, CommandError> {
    for selector in &args.addresses {
        if !desired.containers.iter().any(|container| selector.touches(&container.path)) {
            require_match(selector, &desired)?;
        }
    }
    desired.containers.retain(|container| {
        args.addresses.iter().any(|selector| selector.touches(&container.path))
            && !args.exclude.iter().any(|selector| selector.matches(&container.address()))
    });
    Ok(desired)
}

/// Reads the containers of `session`, and finds their selected differences.
async fn find_drift(
    args: &Args,
    session: &Session,
    cx: &RunContext,
) -> Result<PlannedAbsorb, CommandError> {
    let observer = &session.observer;
    let settings =
        export::ExportSettings::plain(observer.caller().clone(), observer.release().await?);
    let containers: Vec<_> = session.desired.containers.iter().collect();
    let selection = Selection { only: args.addresses.clone(), exclude: args.exclude.clone() };
    let mut drift = PlannedAbsorb::default();
    let collect_drift = |comparison: &ContainerComparison<'_>| {
        let (goals, refused) = absorb::find_drift(comparison, &selection);
        let (renames, refused): (Vec<_>, Vec<_>) =
            refused.into_iter().partition(|it| it.kind == RefusalKind::PendingRename);
        let (path, container) = (&comparison.container.path, comparison.container.address());
        let is_named = args
            .addresses
            .iter()
            .any(|selector| selector.touches(path) && is_literal(selector.path_pattern()));
        let refusal = refused.iter().find(|refusal| refusal.address == container);
        if let Some(refusal) = refusal.filter(|_| !is_named) {
            drift.skipped_paths.push((path.to_string(), refusal.reason.clone()));
            return;
        }
        let absorbed: BTreeSet<_> = goals.iter().map(|goal| &goal.address).collect();
        for note in comparison.plan.notes.iter().filter(|note| note.reason == Reason::Unlisted) {
            if selection.selects(&note.address) && !absorbed.contains(&note.address) {
                drift.unlisted_entries.push(note.address.clone());
            }
        }
        // A text that is no secret in this place may be a secret in another one.
        let excerpt = comparison.excerpt.filter(|_| !goals.is_empty());
        drift.public_texts.extend(excerpt.into_iter().flat_map(Excerpt::texts));
        drift.addresses.extend(absorb::selectable_addresses(comparison));
        drift.goals.extend(goals);
        drift.pending_renames.extend(renames);
        drift.refusals.extend(refused);
    };
    compare_containers(
        session,
        &containers,
        (export::with_all_fields, &settings),
        cx,
        collect_drift,
    )
    .await?;
    drift.goals.sort_by(|a, b| a.address.cmp(&b.address));
    drift.refusals.sort_by(|a, b| a.address.cmp(&b.address));
    drift.unlisted_entries.sort();
    drift.skipped_paths.sort();
    drift.pending_renames.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(drift)
}

/// Reads `containers` after `widen` has changed their declarations, and passes each comparison to
/// `process`. The settings are those of an export.
pub(super) async fn compare_containers(
    session: &Session,
    containers: &[&Container],
    (widen, settings): (
        fn(&Container, &export::ExportSettings) -> Container,
        &export::ExportSettings,
    ),
    cx: &RunContext,
    process: impl FnMut(&ContainerComparison<'_>),
) -> Result<(), ApiError> {
    let observer = &session.observer;
    let declared: BTreeMap<_, _> = containers.iter().map(|one| (&one.path, *one)).collect();
    let widened_containers: Vec<Container> =
        containers.iter().map(|one| widen(one, settings)).collect();
    let progress = Progress::for_reading(widened_containers.iter(), observer.client(), &cx.output);
    let process = RefCell::new(process);
    let compare_container = async |container: &Container, mut live: Live| {
        let container = declared[&container.path];
        let plan =
            &apply::plan_with_answers(observer, container, &mut live, &session.settings).await?;
        let names =
            &observer.read_names(ExportBuilder::referenced_ids(container.scope, &live)).await?;
        let excerpt = Excerpt::from_live(container.scope, &container.path, &live, names, settings);
        let words = excerpt.as_ref();
        (process.borrow_mut())(&ContainerComparison {
            container,
            plan,
            live: &live,
            names,
            excerpt: words,
        });
        progress.step(&container.path);
        Ok(())
    };
    observer
        .read_all(
            &widened_containers.iter().collect::<Vec<_>>(),
            session.concurrency,
            compare_container,
        )
        .await
}

/// Reports the differences that cannot be absorbed, with reasons.
fn refuse(refusal_error: &[AbsorbRefusal], cx: &RunContext) -> CommandError {
    let diagnostics = refusal_error.iter().map(|refusal| {
        let message = format!("cannot absorb `{}`: {}", refusal.address, refusal.reason);
        let diagnostic = Diagnostic::error("absorb", message);
        match &refusal.origin {
            Some(origin) => diagnostic.at_place(origin.into()),
            None => diagnostic,
        }
    });
    cx.output.eprint_diagnostics(&diagnostics.collect());
    let is_unread = refusal_error.iter().all(|refusal| refusal.kind == RefusalKind::Unread);
    let exit = if is_unread { Exit::Incomplete } else { Exit::Usage };
    let addresses = count(refusal_error.len(), "address");
    let error = anyhow::anyhow!("nothing was edited: {addresses} cannot be absorbed");
    CommandError::new(exit, error).help("edit the manifest by hand, or name only the others")
}

/// The texts of the manifests while they are edited.
pub(super) struct ManifestTexts<'a> {
    pub(super) dir: &'a Path,
    environment: LoadEnvironment,
    pub(super) cx: &'a RunContext,
    /// The paths of the files.
    pub(super) paths: FilePaths,
    /// The old texts of changed files; new files have none.
    pub(super) old_texts: BTreeMap<FileName, Option<String>>,
    /// The new texts.
    pub(super) new_texts: Contents,
}

impl<'a> ManifestTexts<'a> {
    /// Loads the manifests in `dir`. Their texts are unchanged.
    pub(super) fn load(
        dir: &'a Path,
        allow_env: &[String],
        cx: &'a RunContext,
    ) -> Result<(Self, Manifests), CommandError> {
        let environment = cx.surroundings(allow_env)?;
        let loaded = manifest::load(dir, &environment);
        let (paths, old) = (loaded.paths.clone(), BTreeMap::new());
        let texts =
            Self { dir, environment, cx, paths, old_texts: old, new_texts: Contents::new() };
        Ok((texts, into_manifests(loaded, cx)?))
    }

    /// Opens a session for `manifests`, without the containers that only rules include: they have no
    /// document to edit.
    pub(super) async fn open_session(
        &self,
        manifests: Manifests,
        access: &AccessArgs,
    ) -> Result<Session, CommandError> {
        let manifests = Manifests { includes: None, ..manifests };
        let args = SessionArgs::with_selection(self.dir, access, Vec::new());
        SessionBuilder::new(&args).open_manifests(manifests, self.environment.today, self.cx).await
    }

    /// The present text of `file`.
    pub(super) fn read(&self, file: &FileName) -> Result<String, String> {
        match self.new_texts.get(file) {
            Some(text) => Ok(text.clone()),
            None => write_files::read_manifest(
                self.paths.get(file).map_or(Path::new(""), PathBuf::as_path),
            ),
        }
    }

    /// The declarations of all manifests with some `edited` texts replaced.
    pub(super) fn reload(&self, edited: &Contents) -> Result<Desired, String> {
        let mut texts = self.new_texts.clone();
        texts.extend(edited.iter().map(|(name, text)| (name.clone(), text.clone())));
        let options = Options { replaced_texts: Some(&texts), ..Options::default() };
        let loaded = manifest::load_with(self.dir, &self.environment, &options);
        loaded.desired.ok_or_else(|| loaded.diagnostics.render(self.cx.output.stderr_style.into()))
    }

    /// The edits that make the manifests declare the goals.
    pub(super) fn absorb(
        &self,
        desired: &Desired,
        goals: &[Goal],
        mode: AbsorbMode,
    ) -> Result<Absorbed, AbsorbError> {
        absorb::absorb(desired, goals, mode, &|file| self.read(file), &|edited| self.reload(edited))
    }

    /// Stores edited texts.
    pub(super) fn store_edits(&mut self, absorbed: &Absorbed) {
        for (name, (old, new)) in &absorbed.files {
            self.old_texts.entry(name.clone()).or_insert_with(|| Some(old.clone()));
            self.new_texts.insert(name.clone(), new.clone());
        }
    }

    /// Writes all changed files, or none.
    pub(super) fn write(&self) -> Result<(), CommandError> {
        let files = self.new_texts.iter().map(|(name, new)| {
            let (path, old) = (self.paths[name].clone(), self.old_texts[name].clone());
            write_files::FileEdit { path, old_text: old, new_text: new.clone() }
        });
        write_files::write_all(&files.collect::<Vec<_>>())
    }
}

/// The edits without secrets: texts of the manifests that may be secret are removed unless they are in
/// `public_texts`. On a terminal they have about `max_lines` lines.
pub(super) fn render_edits(
    files: &BTreeMap<FileName, (String, String)>,
    public_texts: &BTreeSet<String>,
    max_lines: usize,
    style: TextStyle,
) -> String {
    let files = files.iter().map(|(name, (old, new))| {
        (name.clone(), [old, new].map(|text| manifest::hide_secrets(text, public_texts)))
    });
    terminal::render_edits_text(&files.collect::<Vec<_>>(), max_lines, style)
}

/// A summary of the edits. With `has_includes` the edits also apply to groups and projects that rules
/// include; only the service has the list of those.
fn summary(args: &Args, goals: &[Goal], absorbed: &Absorbed, has_includes: bool) -> String {
    let differences = count(goals.iter().map(Goal::count_differences).sum::<usize>(), "difference");
    let files = count(absorbed.files.len(), "file");
    let mut summary = if args.write {
        format!("absorbed {differences} into {files}\n")
    } else {
        format!("would absorb {differences} into {files}; pass `--write` to do it\n")
    };
    let mut lines = Vec::new();
    if !absorbed.other_containers.is_empty() {
        let others: Vec<_> = absorbed.other_containers.iter().map(String::as_str).collect();
        let number = count(others.len(), "other group or project");
        let others = list_first(&others);
        lines.push(format!("it also changes the declarations of {number}: {others}"));
    }
    if has_includes {
        lines.push("groups and projects that a rule includes may change too".to_owned());
    }
    if !lines.is_empty() {
        summary += &(lines.join("; ") + "\n");
    }
    summary
}
