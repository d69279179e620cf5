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
    CommandError, CommandResult, ConnectArgs, Exit, Manifests, Progress, RunContext, Session,
    SessionArgs, SessionBuilder, into_manifests, require_match, write_files,
};
use crate::{
    absorb::{self, AbsorbError, AbsorbRefusal, Absorbed, Compared, Contents, Goal, Mode},
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
    text::{count, few_listed},
};

/// The options of `absorb`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/absorb.txt"))]
pub(super) struct Args {
    /// What to absorb: a glob over PATH, PATH#SECTION, PATH#SECTION/ENTRY or the fields behind
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
    /// Let manifests use only matching environment variables (never CI_*, GITLAB_* or UNDRIFT_*);
    /// may be repeated [env: UNDRIFT_ALLOW_ENV]
    #[arg(long, value_name = "GLOB")]
    allow_env: Vec<String>,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// The result of reading and planning.
#[derive(Default)]
struct PlannedAbsorb {
    goals: Vec<Goal>,
    refused: Vec<AbsorbRefusal>,
    /// The selected entries that no manifest lists and that are not absorbed.
    unlisted: Vec<Address>,
    addresses: Vec<Address>,
    /// The texts that are live and no secrets.
    plain: BTreeSet<String>,
    /// Why groups and projects that only a glob selects are left out, by path: they are missing or
    /// renamed.
    skipped: Vec<(String, String)>,
}

/// Runs the command.
pub(super) async fn run(args: Args, cx: &RunContext) -> CommandResult {
    let (mut texts, manifests) = ManifestTexts::load(&args.dir, &args.allow_env, cx)?;
    let before = manifests.desired.clone();
    let has_includes = manifests.includes.is_some();
    let manifests = Manifests { desired: select(&args, manifests.desired)?, ..manifests };
    let session = texts.open(manifests, &args.allow_env, &args.connect).await?;
    let drift = find_drift(&args, &session, cx).await?;
    for selector in &args.addresses {
        if !drift.addresses.iter().any(|address| selector.matches(address)) {
            require_match(selector, &before)?;
        }
    }
    if !drift.refused.is_empty() {
        return Err(refuse(&drift.refused, cx));
    }
    cx.output.eprint_lines(
        &drift.unlisted,
        "entry",
        |_| (),
        [
            &|address| {
                format!("not absorbed: {address}: no manifest lists it; name it to take it in")
            },
            &Address::to_string,
        ],
    );
    cx.output.eprint_lines(
        &drift.skipped,
        "group or project",
        |_| (),
        [&|(path, why)| format!("not absorbed: {path}: {why}"), &|(path, _)| path.clone()],
    );
    if drift.goals.is_empty() {
        let why = if session.desired.containers.is_empty() {
            "`--exclude` excludes everything that is selected"
        } else if drift.skipped.is_empty() {
            "the selection matches its manifest"
        } else {
            "the rest matches its manifest"
        };
        cx.output.eprint(&format!("nothing to absorb: {why}\n"));
        return Ok(Exit::Success);
    }
    let mode = if args.at_source { Mode::AtSource } else { Mode::Own };
    let absorbed = texts.absorb(&before, &drift.goals, mode).map_err(|failed| match failed {
        AbsorbError::Refused(refused) => refuse(&refused, cx),
        AbsorbError::Wrong(why) => {
            cx.output.eprint(&why);
            CommandError::usage("nothing was edited: the edited manifests would be wrong")
                .help("edit them by hand, or absorb less")
        }
    })?;
    cx.output.print(&render_edits(&absorbed.files, &drift.plain, SCREEN_LINES, cx.output.style))?;
    if args.write {
        texts.store(&absorbed);
        texts.write()?;
    }
    let includes = has_includes && absorbed.edits_rules;
    cx.output.eprint(&summary(&args, &drift.goals, &absorbed, includes));
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
    let each = |seen: &Compared<'_>| {
        let (goals, refused) = absorb::find_drift(seen, &selection);
        let (path, container) = (&seen.container.path, seen.container.address());
        let is_named = args
            .addresses
            .iter()
            .any(|selector| selector.touches(path) && is_literal(selector.over_paths()));
        let refusal = refused.iter().find(|refusal| refusal.address == container);
        if let Some(refusal) = refusal.filter(|_| !is_named) {
            drift.skipped.push((path.to_string(), refusal.why.clone()));
            return;
        }
        let absorbed: BTreeSet<_> = goals.iter().map(|goal| &goal.address).collect();
        for note in seen.plan.notes.iter().filter(|note| note.reason == Reason::Unlisted) {
            if selection.holds(&note.address) && !absorbed.contains(&note.address) {
                drift.unlisted.push(note.address.clone());
            }
        }
        // What is no secret here may be one elsewhere.
        let excerpt = seen.words.filter(|_| !goals.is_empty());
        drift.plain.extend(excerpt.into_iter().flat_map(Excerpt::texts));
        drift.addresses.extend(absorb::addresses(seen));
        drift.goals.extend(goals);
        drift.refused.extend(refused);
    };
    compare(session, &containers, (export::with_all_fields, &settings), cx, each).await?;
    drift.goals.sort_by(|a, b| a.address.cmp(&b.address));
    drift.refused.sort_by(|a, b| a.address.cmp(&b.address));
    drift.unlisted.sort();
    drift.skipped.sort();
    Ok(drift)
}

/// Reads `containers` as far as `widened`, and passes each comparison to `each`. The settings are
/// those of an export.
pub(super) async fn compare(
    session: &Session,
    containers: &[&Container],
    (widened, settings): (
        fn(&Container, &export::ExportSettings) -> Container,
        &export::ExportSettings,
    ),
    cx: &RunContext,
    each: impl FnMut(&Compared<'_>),
) -> Result<(), ApiError> {
    let observer = &session.observer;
    let declared: BTreeMap<_, _> = containers.iter().map(|one| (&one.path, *one)).collect();
    let whole: Vec<Container> = containers.iter().map(|one| widened(one, settings)).collect();
    let progress = Progress::reading(whole.iter(), observer.client(), &cx.output);
    let each = RefCell::new(each);
    let look = async |container: &Container, mut live: Live| {
        let container = declared[&container.path];
        let plan = &apply::plan(observer, container, &mut live, &session.settings).await?;
        let names = &observer.called(ExportBuilder::ids(container.scope, &live)).await?;
        let excerpt = Excerpt::of(container.scope, &container.path, &live, names, settings);
        let words = excerpt.as_ref();
        (each.borrow_mut())(&Compared { container, plan, live: &live, names, words });
        progress.step(&container.path);
        Ok(())
    };
    observer.read_all(&whole.iter().collect::<Vec<_>>(), session.concurrency, look).await
}

/// Reports what cannot be absorbed, and why.
fn refuse(refused: &[AbsorbRefusal], cx: &RunContext) -> CommandError {
    let diagnostics = refused.iter().map(|refusal| {
        let message = format!("cannot absorb `{}`: {}", refusal.address, refusal.why);
        let diagnostic = Diagnostic::error("absorb", message);
        match &refusal.origin {
            Some(origin) => diagnostic.at(origin.into()),
            None => diagnostic,
        }
    });
    cx.output.eprint_diagnostics(&diagnostics.collect());
    let is_unread = refused.iter().all(|refusal| refusal.is_unread);
    let exit = if is_unread { Exit::Incomplete } else { Exit::Usage };
    let addresses = count(refused.len(), "address");
    let error = anyhow::anyhow!("nothing was edited: {addresses} cannot be absorbed");
    CommandError::new(exit, error).help("edit the manifest by hand, or name only the others")
}

/// The texts of the manifests while they are edited.
pub(super) struct ManifestTexts<'a> {
    pub(super) dir: &'a Path,
    surroundings: LoadEnvironment,
    pub(super) cx: &'a RunContext,
    /// The paths of the files.
    pub(super) paths: FilePaths,
    /// The old texts of changed files; new files have none.
    pub(super) old: BTreeMap<FileName, Option<String>>,
    /// The new texts.
    pub(super) new: Contents,
}

impl<'a> ManifestTexts<'a> {
    /// Loads the manifests in `dir`. Their texts are unchanged.
    pub(super) fn load(
        dir: &'a Path,
        allow_env: &[String],
        cx: &'a RunContext,
    ) -> Result<(Self, Manifests), CommandError> {
        let surroundings = cx.surroundings(allow_env)?;
        let loaded = manifest::load(dir, &surroundings);
        let (paths, old) = (loaded.paths.clone(), BTreeMap::new());
        let texts = Self { dir, surroundings, cx, paths, old, new: Contents::new() };
        Ok((texts, into_manifests(loaded, cx)?))
    }

    /// Opens a session for `manifests`. A container without a document has none to edit.
    pub(super) async fn open(
        &self,
        manifests: Manifests,
        allow_env: &[String],
        connect: &ConnectArgs,
    ) -> Result<Session, CommandError> {
        let manifests = Manifests { includes: None, ..manifests };
        let args = SessionArgs::selecting(self.dir, allow_env, connect, Vec::new());
        SessionBuilder::new(&args).with(manifests, self.surroundings.today, self.cx).await
    }

    /// The present text of `file`.
    pub(super) fn read(&self, file: &FileName) -> Result<String, String> {
        match self.new.get(file) {
            Some(text) => Ok(text.clone()),
            None => write_files::read(self.paths.get(file).map_or(Path::new(""), PathBuf::as_path)),
        }
    }

    /// The declarations of all manifests with some `edited` texts replaced.
    pub(super) fn reload(&self, edited: &Contents) -> Result<Desired, String> {
        let mut all = self.new.clone();
        all.extend(edited.iter().map(|(name, text)| (name.clone(), text.clone())));
        let options = Options { instead: Some(&all), ..Options::default() };
        let loaded = manifest::load_with(self.dir, &self.surroundings, &options);
        loaded.desired.ok_or_else(|| loaded.diagnostics.render(self.cx.output.stderr.into()))
    }

    /// The edits that make the manifests declare the goals.
    pub(super) fn absorb(
        &self,
        before: &Desired,
        goals: &[Goal],
        mode: Mode,
    ) -> Result<Absorbed, AbsorbError> {
        absorb::absorb(before, goals, mode, &|file| self.read(file), &|edited| self.reload(edited))
    }

    /// Stores edited texts.
    pub(super) fn store(&mut self, absorbed: &Absorbed) {
        for (name, (old, new)) in &absorbed.files {
            self.old.entry(name.clone()).or_insert_with(|| Some(old.clone()));
            self.new.insert(name.clone(), new.clone());
        }
    }

    /// Writes all changed files, or none.
    pub(super) fn write(&self) -> Result<(), CommandError> {
        let files = self.new.iter().map(|(name, new)| {
            let (path, old) = (self.paths[name].clone(), self.old[name].clone());
            write_files::FileEdit { path, old, new: new.clone() }
        });
        write_files::all(&files.collect::<Vec<_>>())
    }
}

/// The edits, without what may be secret in the manifests unless it is `plain`, on a terminal in about
/// `max_lines` lines.
pub(super) fn render_edits(
    files: &BTreeMap<FileName, (String, String)>,
    plain: &BTreeSet<String>,
    max_lines: usize,
    style: TextStyle,
) -> String {
    let files = files.iter().map(|(name, (old, new))| {
        (name.clone(), [old, new].map(|text| manifest::hide_secrets(text, plain)))
    });
    terminal::edits(&files.collect::<Vec<_>>(), max_lines, style)
}

/// What was edited. `includes`: the edit also counts for groups and projects that rules include;
/// which ones, only the service knows.
fn summary(args: &Args, goals: &[Goal], absorbed: &Absorbed, includes: bool) -> String {
    let differences = count(goals.iter().map(Goal::differences).sum::<usize>(), "difference");
    let files = count(absorbed.files.len(), "file");
    let mut summary = if args.write {
        format!("absorbed {differences} into {files}\n")
    } else {
        format!("would absorb {differences} into {files}; pass `--write` to do it\n")
    };
    let mut lines = Vec::new();
    if !absorbed.others.is_empty() {
        let others: Vec<_> = absorbed.others.iter().map(String::as_str).collect();
        let number = count(others.len(), "other group or project");
        let others = few_listed(&others);
        lines.push(format!("it also changes the declarations of {number}: {others}"));
    }
    if includes {
        lines.push("groups and projects that a rule includes may change too".to_owned());
    }
    if !lines.is_empty() {
        summary += &(lines.join("; ") + "\n");
    }
    summary
}
