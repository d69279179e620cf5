//! `undrift show`: shows merged manifests, a saved plan, or the reports of several jobs as one.

mod parts;

use std::path::{Path, PathBuf};

use super::{
    CommandError, CommandResult, Exit, ManifestFolder, ReportArgs, ReportedExit, RunContext, saved,
};
use crate::{
    address::Glob,
    manifest::{self, LoadOptions, Trace},
    report::{TextStyle, terminal},
    text::did_you_mean,
};

/// The options of `show`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = include_str!("../help/show.txt"),
    mut_arg("dir", describe_file),
    mut_arg("out", |out| out.requires("report")),
    mut_arg("marker", |marker| marker.requires("report"))
)]
pub(super) struct Args {
    /// Show the merged manifest of the group or project at PATH, with the origin of each line; PATH
    /// may be a glob; may be repeated
    #[arg(long, value_name = "PATH", value_parser = Glob::for_paths)]
    effective: Vec<Glob>,
    /// Show the plans of several jobs as one, from their JSON reports; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "effective")]
    report: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) out: ReportArgs,
    #[command(flatten)]
    pub(super) dir: ManifestFolder,
}

fn describe_file(dir: clap::Arg) -> clap::Arg {
    dir.value_name("FILE")
        .help("Saved plan; with --effective a folder of manifests, or one file [default: .]")
}

/// Runs the command.
pub(super) fn run(args: &Args, cx: &RunContext) -> CommandResult {
    if !args.report.is_empty() {
        return parts::show(&args.report, cx).map(ReportedExit::exit);
    }
    if args.effective.is_empty() {
        return show_saved_plan(&args.dir, cx.output.style, cx);
    }
    let loaded = manifest::load_with_options(
        &args.dir,
        &cx.make_load_environment(&[])?,
        &LoadOptions { traced_globs: &args.effective, ..LoadOptions::default() },
    );
    let Some(desired) = &loaded.desired else {
        return Err(cx.report_unusable("the manifests", loaded.diagnostics));
    };
    for glob in &args.effective {
        let mut traces = loaded.traces.iter();
        if !traces.any(|trace| glob.matches(&trace.path().to_lowercase())) {
            let path = glob.pattern();
            let failure =
                CommandError::usage(format!("no manifest declares a group or project `{path}`"));
            let paths = desired.containers.iter().map(|container| &*container.path);
            return Err(CommandError { help: did_you_mean(path, paths), ..failure });
        }
    }
    let texts: Vec<_> = loaded.traces.iter().map(Trace::to_yaml).collect();
    cx.output.print(&texts.join("---\n"))?;
    Ok(Exit::Success)
}

fn show_saved_plan(path: &Path, style: TextStyle, cx: &RunContext) -> CommandResult {
    if !path.try_exists().unwrap_or(true) {
        let failure = CommandError::usage(format!("the file `{}` does not exist", path.display()));
        return Err(failure.help("name the file of `undrift plan -o FILE`"));
    }
    let is_manifest = path.is_file() && saved::is_yaml(path);
    if is_manifest || !path.is_file() {
        let failure = CommandError::usage(format!("`{}` is not a saved plan", path.display()));
        return Err(failure.help(if is_manifest {
            "pass `--effective PATH` to show the merged manifest of a group or project"
        } else {
            "name the file of `undrift plan -o FILE`, or pass `--effective`"
        }));
    }
    let sealed = saved::read_saved_plan(path)?;
    sealed.plan.check().map_err(saved::unusable_failure)?;
    cx.output.print(&terminal::render_saved_plan(&sealed, style))?;
    Ok(Exit::Success)
}
