//! `undrift absorb`: takes drift back into the manifests.
//!
//! It reads and plans as `plan` does, and edits the manifests so that they declare the live state.
//! [`crate::absorb`] decides what to edit and how. All files are replaced, or none.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use similar::TextDiff;

use super::{
    Context,
    connect::ConnectArgs,
    exit::{Exit, Failure, Outcome},
    input,
    progress::Progress,
    reports::Reports,
    session::{Manifests, Opening, Session, SessionArgs, selects_something, usable},
};
use crate::{
    absorb::{self, Absorbed, Contents, Failed, Mode, Refusal, Seen, Wish},
    address::{Address, Selector},
    apply,
    desired::{Container, Desired},
    diagnostic::{Diagnostic, Diagnostics, FileName},
    export::{self, Estate, Words},
    live::Live,
    manifest::{self, Options, Surroundings},
    text::{count, escape_lines, listed},
};

/// The options of `absorb`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/absorb.txt"))]
pub(super) struct Args {
    /// What to absorb: a glob over PATH, PATH#SECTION, PATH#SECTION/ENTRY or the fields behind
    #[arg(value_name = "ADDRESS", required = true, value_parser = Selector::parse)]
    addresses: Vec<Selector>,
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
struct Found {
    wishes: Vec<Wish>,
    refused: Vec<Refusal>,
    addresses: Vec<Address>,
}

/// Runs the command.
pub(super) async fn run(args: Args, reports: &mut Reports, cx: &Context) -> Outcome {
    let around = Surroundings::of_process();
    let loaded = manifest::load(&args.dir, &around);
    let paths = loaded.paths();
    let manifests = usable(loaded, reports, cx)?;
    let before = manifests.desired.clone();
    let found = look(&args, manifests, &around, reports, cx).await?;
    for selector in &args.addresses {
        if !found.addresses.iter().any(|address| selector.matches(address)) {
            selects_something(selector, &before)?;
        }
    }
    if !found.refused.is_empty() {
        return Err(refuse(&found.refused, cx));
    }
    if found.wishes.is_empty() {
        cx.output.tell("nothing to absorb: the selection matches its manifest\n");
        return Ok(Exit::Success);
    }
    let mode = if args.at_source { Mode::AtSource } else { Mode::Own };
    let read = |file: &FileName| read(paths.get(file).map_or(Path::new(""), PathBuf::as_path));
    let reload = |texts: &Contents| reload(&args.dir, &around, texts, cx);
    let absorbed = absorb::absorb(&before, &found.wishes, mode, &read, &reload);
    let absorbed = absorbed.map_err(|failed| match failed {
        Failed::Refused(refused) => refuse(&refused, cx),
        Failed::Wrong(why) => {
            cx.output.tell(&why);
            Failure::usage("nothing was edited: the edited manifests would be wrong")
                .help("edit them by hand, or absorb less")
        }
    })?;
    cx.output.print(&escape_lines(&shown(&absorbed, &found.wishes)))?;
    if args.write {
        write(&absorbed, &paths)?;
    }
    cx.output.tell(&summary(&args, &found.wishes, &absorbed));
    Ok(Exit::Success)
}

/// Reads the selected containers, and finds their differences.
async fn look(
    args: &Args,
    manifests: Manifests,
    around: &Surroundings,
    reports: &mut Reports,
    cx: &Context,
) -> Result<Found, Failure> {
    let touched = |container: &Container| {
        args.addresses.iter().any(|selector| selector.touches(&container.path))
    };
    for selector in &args.addresses {
        let is_idle = |container: &Container| !selector.touches(&container.path);
        if manifests.desired.containers.iter().all(is_idle) {
            selects_something(selector, &manifests.desired)?;
        }
    }
    let mut desired = manifests.desired;
    desired.containers.retain(touched);
    // A container without a document has none to edit.
    let manifests = Manifests { desired, includes: None, ..manifests };
    let of_session = SessionArgs::choosing(&args.dir, &args.allow_env, &args.connect, Vec::new());
    let opening = Opening::of(&of_session);
    let session = opening.with(manifests, around.today, reports, cx).await?;
    let found = differences(args, &session, cx).await;
    session.close().await;
    found
}

async fn differences(args: &Args, session: &Session, cx: &Context) -> Result<Found, Failure> {
    let Session { desired, observer, settings, .. } = session;
    let words = export::Settings::plain(observer.caller().clone(), observer.release().await?);
    let declared: BTreeMap<_, _> =
        desired.containers.iter().map(|container| (&container.path, container)).collect();
    let whole = desired.containers.iter().map(|container| export::everything(container, &words));
    let whole: Vec<Container> = whole.collect();
    let progress = Progress::reading(whole.len(), &cx.output);
    let found = Mutex::new(Found::default());
    let each = async |container: &Container, mut live: Live| {
        let container = declared[&container.path];
        let plan = apply::plan(observer, container, &mut live, settings).await?;
        let names = observer.called(Estate::ids(container.scope, &live)).await?;
        let said = Words::of(container.scope, &container.path, &live, &names, &words);
        let seen =
            Seen { container, plan: &plan, live: &live, names: &names, words: said.as_ref() };
        let (wishes, refused) = absorb::drift(&seen, &args.addresses);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.addresses.extend(absorb::addresses(&seen));
        found.wishes.extend(wishes);
        found.refused.extend(refused);
        progress.step(&container.path);
        Ok(())
    };
    observer.all(&whole.iter().collect::<Vec<_>>(), session.ahead, each).await?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.wishes.sort_by(|a, b| a.address.cmp(&b.address));
    found.refused.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(found)
}

/// Reports what cannot be absorbed, and why.
fn refuse(refused: &[Refusal], cx: &Context) -> Failure {
    let diagnostic = |refusal: &Refusal| {
        let message = format!("cannot absorb `{}`: {}", refusal.address, refusal.why);
        let diagnostic = Diagnostic::error("absorb", message);
        match &refusal.origin {
            Some(origin) => diagnostic.at(origin.into()),
            None => diagnostic,
        }
    };
    let diagnostics: Diagnostics = refused.iter().map(diagnostic).collect();
    cx.output.tell(&diagnostics.render(cx.output.stderr.into()));
    let exit = Exit::first_of(refused.iter().map(|refusal| match refusal.is_unread {
        true => Exit::Incomplete,
        false => Exit::Usage,
    }));
    let addresses = count(refused.len(), "address");
    let error = anyhow::anyhow!("nothing was edited: {addresses} cannot be absorbed");
    Failure::new(exit, error).help("edit the manifest by hand, or name only the others")
}

/// The declarations of all manifests with some `texts` replaced.
fn reload(
    dir: &Path,
    around: &Surroundings,
    texts: &Contents,
    cx: &Context,
) -> Result<Desired, String> {
    let loaded =
        manifest::load_with(dir, around, &Options { instead: Some(texts), ..Options::default() });
    loaded.desired.ok_or_else(|| loaded.diagnostics.render(cx.output.stderr.into()))
}

/// The text of a manifest that may be edited.
fn read(path: &Path) -> Result<String, String> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_file() => {}
        Ok(_) => return Err("its manifest is not a regular file".into()),
        Err(error) => return Err(format!("its manifest cannot be read: {error}")),
    }
    let text = input::read(path, manifest::MAX_FILE).ok().and_then(|it| String::from_utf8(it).ok());
    text.ok_or_else(|| "its manifest cannot be read any more".into())
}

/// The edit as a diff, without the secrets in the manifests.
fn shown(absorbed: &Absorbed, wishes: &[Wish]) -> String {
    let plain: BTreeSet<String> = wishes.iter().flat_map(Wish::texts).collect();
    let file = |(name, (old, new)): (&FileName, &(String, String))| {
        let [old, new] = [old, new].map(|text| manifest::shown(text, &plain));
        let diff = TextDiff::from_lines(&old, &new);
        diff.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string()
    };
    absorbed.files.iter().map(file).collect()
}

fn summary(args: &Args, wishes: &[Wish], absorbed: &Absorbed) -> String {
    let differences = count(wishes.len(), "difference");
    let files = count(absorbed.files.len(), "file");
    let mut summary = match args.write {
        true => format!("absorbed {differences} into {files}\n"),
        false => format!("would absorb {differences} into {files}; pass `--write` to do it\n"),
    };
    if !absorbed.others.is_empty() {
        let others: Vec<_> = absorbed.others.iter().map(String::as_str).collect();
        let number = count(others.len(), "other group or project");
        summary += &format!("it also changes the declarations of {number}: {}\n", listed(&others));
    }
    summary
}

/// Writes all files beside their places and then moves them there, all of them or none.
fn write(absorbed: &Absorbed, paths: &BTreeMap<FileName, PathBuf>) -> Result<(), Failure> {
    let mut staged = Vec::new();
    let result = absorbed.files.iter().try_for_each(|(name, (old, new))| {
        let path = &paths[name];
        match read(path) {
            Ok(now) if now == *old => {}
            Ok(_) => return Err(Failure::usage(format!("`{name}` changed meanwhile; run again"))),
            Err(why) => return Err(Failure::usage(why)),
        }
        let beside = stage(path, new).map_err(|error| unwritten(name, &error))?;
        staged.push((beside, name, path, old));
        Ok(())
    });
    let mut placed = Vec::new();
    let result = result.and_then(|()| {
        staged.iter().try_for_each(|(beside, name, path, old)| {
            fs::rename(beside, path).map_err(|error| unwritten(name, &error))?;
            placed.push((*path, *old));
            Ok(())
        })
    });
    if result.is_err() {
        for (beside, ..) in &staged {
            let _ = fs::remove_file(beside);
        }
        for (path, old) in placed {
            let _ = stage(path, old).and_then(|beside| fs::rename(beside, path));
        }
    }
    result
}

fn unwritten(name: &FileName, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot write `{name}`: {error}"))
        .help("nothing was edited; make it writable and run again")
}

/// Writes `text` beside `path`, with the same permissions. The temporary file is hidden, so it is
/// not read as a manifest.
fn stage(path: &Path, text: &str) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.undrift-new"));
    let _ = fs::remove_file(&beside);
    let mut file = fs::File::create_new(&beside)?;
    let written = file
        .set_permissions(fs::metadata(path)?.permissions())
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written.map(|()| beside)
}
