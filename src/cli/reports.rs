//! Writes the reports of a run, even if the run fails.
//!
//! [`Reports::begin`] replaces an old report by an unfinished one, so that nobody takes the old one
//! for a report of this run. A command reports its result with [`Reports::finish`], which returns a
//! [`ReportedExit`] as the proof. If the command fails without a result, [`Reports::end`] reports the
//! failure. A file is replaced as a whole, so a reader never gets half a report. Every [`Format`] has
//! the same content, from one model.

use std::{
    cell::RefCell,
    fs,
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{CommandError, CommandResult, Exit, Output, Result, record::RunRecord, saved::is_yaml};
use crate::{
    diagnostic::Diagnostics,
    plan::Plan,
    report::{
        Canvas, Format, PlanContent, ReportContent, ReportKind, ReportedRun, RunReportState, Sink,
        marker::Marker, model::Report, terminal,
    },
};

/// The target and format of a report: `FORMAT=FILE`, or `FORMAT=-` for stdout instead of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReportTarget {
    format: Format,
    /// The file, written in addition to the text; `None` for stdout, which replaces the text.
    file: Option<PathBuf>,
}

impl std::str::FromStr for ReportTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, target) = text.split_once('=').unwrap_or((text, "-"));
        if target.is_empty() {
            return Err("write `FORMAT=FILE`, or `FORMAT` for stdout".to_owned());
        }
        let file = Some(target).filter(|target| *target != "-").map(PathBuf::from);
        Ok(Self { format: format.parse()?, file })
    }
}

/// The targets of a command's reports.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ReportArgs {
    /// Also write a report, even if the run fails: json, markdown, gitlab-terraform, codequality,
    /// html or concise; without FILE, the report replaces the text on stdout; may be repeated
    #[arg(long, value_name = "FORMAT[=FILE]", help_heading = "Output")]
    pub(super) out: Vec<ReportTarget>,
    /// Name in the hidden marker of a Markdown report, to distinguish the comments of several jobs
    /// [default: the command]
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub(super) marker: Option<Marker>,
}

/// The reports of a run.
#[derive(Debug)]
pub(super) struct Reports {
    output: Output,
    kind: ReportKind,
    marker: Marker,
    /// The folder or file of manifests of the command.
    manifests: String,
    targets: Vec<ReportTarget>,
    diagnostics: RefCell<Diagnostics>,
    /// The record of the run.
    pub(super) record: RunRecord,
}

/// The proof that the result of a run was reported, with the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct ReportedExit(Exit);

impl ReportedExit {
    /// The exit code.
    pub(super) const fn exit(self) -> Exit {
        self.0
    }
}

impl Reports {
    /// The reports of a command for `manifests`: their targets, and their default kind.
    pub(super) fn new(
        args_and_kind: Option<(&ReportArgs, ReportKind)>,
        manifests: Option<&Path>,
        output: &Output,
    ) -> Self {
        // A command without reports has no kind, and writes none.
        let (args, kind) = match args_and_kind {
            Some((args, kind)) => (args.clone(), kind),
            None => (ReportArgs::default(), ReportKind::Check),
        };
        let manifests = manifests.map_or_else(|| ".".into(), Path::to_string_lossy).into_owned();
        let marker = args.marker.unwrap_or_else(|| kind.into());
        let (targets, diagnostics) = (args.out, RefCell::default());
        let record = RunRecord::default();
        Self { output: output.clone(), kind, marker, manifests, targets, diagnostics, record }
    }

    /// Fails if a report would replace a manifest, `output_file` (another output of the command) or
    /// `input_file`. Such a report is removed from the targets. Also fails if `output_file` would
    /// replace a manifest or `input_file`.
    ///
    /// # Errors
    /// If one of the files is used twice, or a later run would read it as a manifest. Nothing is
    /// written in this case.
    pub(super) fn check_outputs(
        &mut self,
        output_file: Option<&Path>,
        input_file: Option<&Path>,
    ) -> Result<()> {
        let manifests = resolve_path(Path::new(&self.manifests));
        let check_path = |path: &Path, other_files: [Option<&Path>; 2]| {
            let resolved = resolve_path(path);
            // The shell decides which file `/dev/stdout` is, so it is not checked.
            let is_checked = !path.starts_with("/dev") && !path.starts_with("/proc");
            if (resolved == manifests && resolved.is_file())
                || (is_checked && is_yaml(&resolved) && resolved.starts_with(&manifests))
            {
                return Err(manifest_refusal(path, "write to a file with another name"));
            }
            let mut other_files = other_files.into_iter().flatten().map(resolve_path);
            if is_checked && other_files.any(|other| other == resolved) {
                let message = format!("`{}` is named for two purposes", path.display());
                return Err(CommandError::usage(message).help("name two different files"));
            }
            Ok(())
        };
        let output_result = output_file.map_or(Ok(()), |path| check_path(path, [None, input_file]));
        retain_targets(&mut self.targets, |target| {
            let path = target.file.as_deref();
            path.map_or(Ok(()), |path| check_path(path, [output_file, input_file]))
        })
        .and(output_result)
    }

    /// Writes an unfinished report into each file. A device or a pipe only gets the final report.
    ///
    /// # Errors
    /// If two reports have the same target, a format cannot express this report, or a file cannot
    /// be written. The run does nothing else in this case.
    pub(super) fn begin(&mut self) -> Result<()> {
        let retain_result = self.retain_usable_targets();
        let mut targets = std::mem::take(&mut self.targets);
        let begin_result = retain_targets(&mut targets, |target| {
            let path = target.file.as_deref().filter(|path| !is_stream(path));
            let Some(path) = path else { return Ok(()) };
            let text = self.render(target.format, self.kind, RunReportState::UNFINISHED)?;
            write_text(path, &text).map_err(|error| {
                if fs::symlink_metadata(path).is_ok_and(|old| old.is_file()) {
                    // An old report that cannot be replaced may still be removable. The error is
                    // reported in both cases.
                    let _ = fs::remove_file(path);
                }
                write_failure(path, &error)
            })
        });
        self.targets = targets;
        begin_result.and(retain_result)
    }

    /// Removes the targets that this run cannot use, so that the remaining targets can report why
    /// the run fails.
    fn retain_usable_targets(&mut self) -> Result<()> {
        let (mut files, mut has_stdout, kind) = (Vec::new(), false, self.kind);
        retain_targets(&mut self.targets, |ReportTarget { format, file }| {
            let failure = match file {
                _ if !format.can_express(kind) => {
                    format!("`{}` has nothing to report as `{}`", kind.word(), format.name())
                }
                None if has_stdout => "only one report can go to stdout".into(),
                Some(path) if !is_stream(path) && files.contains(&resolve_path(path)) => {
                    format!("two reports would go to `{}`", path.display())
                }
                file => {
                    has_stdout |= file.is_none();
                    files.extend(file.as_deref().map(resolve_path));
                    return Ok(());
                }
            };
            Err(CommandError::usage(failure))
        })
    }

    /// True if a report replaces the text on stdout.
    pub(super) fn replaces_text(&self) -> bool {
        self.targets.iter().any(|target| target.file.is_none())
    }

    /// A report of this run in one format.
    fn render(
        &self,
        format: Format,
        kind: ReportKind,
        state: RunReportState<'_>,
    ) -> Result<String> {
        let diagnostics = &self.diagnostics.borrow();
        let report = Report { kind, manifests: &self.manifests, diagnostics, state };
        format
            .render(&report, &self.marker, &self.output.secrets())
            .map_err(|error| CommandError::new(Exit::Internal, error))
    }

    /// Keeps the diagnostics of the manifests, for the report of a run that fails.
    pub(super) fn add_diagnostics(&self, diagnostics: Diagnostics) {
        self.diagnostics.borrow_mut().extend(diagnostics);
    }

    /// Reports a plan that is not applied.
    pub(super) fn finish_plan(
        &self,
        run: &ReportedRun,
        plan: &Plan,
        kind: ReportKind,
        exit: Exit,
    ) -> ReportedExit {
        let secrets = &self.output.secrets();
        let content = &PlanContent::new(run, plan);
        let report_kind =
            if kind == ReportKind::Drift { ReportKind::Drift } else { ReportKind::Plan };
        let write_text = |sink: Sink<'_>| {
            let canvas = Canvas::with_sink(sink, self.output.style, secrets);
            terminal::render_plan(canvas, plan, run, kind);
        };
        self.finish(report_kind, exit, ReportContent::Plan(content), write_text, None)
    }

    /// Reports the result of a run: as text, and in each requested format. A failure to write a report is
    /// shown with `help`, and changes the exit code unless the current one is more important.
    pub(super) fn finish<'c>(
        &self,
        kind: ReportKind,
        exit: Exit,
        content: ReportContent<'c>,
        render_text: impl FnOnce(Sink<'_>),
        help: Option<&str>,
    ) -> ReportedExit {
        // The text comes first: it shows what was done even if a file cannot be written.
        let print_result =
            if self.replaces_text() { Ok(()) } else { self.output.print_parts(render_text) };
        let exit = self.report_write_failure(print_result, exit, help);
        ReportedExit(self.write_targets(exit, help, kind, |exit_code| {
            RunReportState::finished(exit_code, content)
        }))
    }

    /// Ends a run, and reports its failure if it failed. Returns the final exit code.
    pub(super) fn end(self, result: CommandResult) -> Exit {
        let failure = match result {
            Ok(exit) => return self.end_record(exit, None),
            Err(failure) => failure,
        };
        self.output.eprint_failure(&failure);
        let error = failure.error.map_or("see stderr".to_owned(), |error| format!("{error:#}"));
        let (text, help) = (error.as_str(), failure.help.as_deref());
        let diagnostics = &self.diagnostics.borrow();
        let failed_state = |exit_code| RunReportState::failed(exit_code, text, help, diagnostics);
        let exit = self.write_targets(failure.exit, None, self.kind, failed_state);
        self.end_record(exit, Some(error))
    }

    /// Writes the record, and returns the final exit code.
    fn end_record(&self, exit: Exit, error: Option<String>) -> Exit {
        self.report_write_failure(self.record.end(exit, error), exit, None)
    }

    /// Writes the state that `make_state` returns for the exit code to all targets. Returns the final
    /// exit.
    fn write_targets<'s>(
        &self,
        exit: Exit,
        help: Option<&str>,
        kind: ReportKind,
        make_state: impl Fn(u8) -> RunReportState<'s>,
    ) -> Exit {
        let (mut written_targets, mut final_exit) = (Vec::new(), exit);
        for target in &self.targets {
            let Some(path) = &target.file else { continue };
            let write_result =
                self.render(target.format, kind, make_state(exit.code())).and_then(|text| {
                    write_text(path, &text).map_err(|error| write_failure(path, &error))
                });
            if write_result.is_ok() {
                written_targets.push((target.format, path));
            }
            final_exit = self.report_write_failure(write_result, final_exit, help);
        }
        if final_exit != exit {
            // Files that were written before another one failed contain the wrong exit code, so
            // write them again. They were writable, so errors are ignored.
            for (format, path) in written_targets.into_iter().filter(|(_, path)| !is_stream(path)) {
                let text = self.render(format, kind, make_state(final_exit.code()));
                text.into_iter().for_each(|text| drop(write_text(path, &text)));
            }
        }
        let Some(target) = self.targets.iter().find(|target| target.file.is_none()) else {
            return final_exit;
        };
        let print_result = self
            .render(target.format, kind, make_state(final_exit.code()))
            .and_then(|text| self.output.print_data(&text));
        self.report_write_failure(print_result, final_exit, help)
    }

    /// If `result` is a failure to write something, reports it. Returns the exit code for a run
    /// that would otherwise end with `exit`.
    fn report_write_failure(&self, result: Result<()>, exit: Exit, help: Option<&str>) -> Exit {
        let Err(failure) = result else { return exit };
        self.output.eprint_failure(&CommandError { help: help.map(str::to_owned), ..failure });
        Exit::first_of([exit, Exit::Usage])
    }
}

pub(super) fn write_failure(path: &Path, error: &io::Error) -> CommandError {
    let failure = CommandError::usage(format!("cannot write `{}`: {error}", path.display()));
    match path.parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound && !folder.is_dir() => {
            failure.help(format!("create its folder first: `mkdir -p {}`", folder.display()))
        }
        _ => failure,
    }
}

/// The refusal to write a file that a later run would read.
pub(super) fn manifest_refusal(path: &Path, help: &'static str) -> CommandError {
    CommandError::usage(format!("`{}` would be read as a manifest", path.display())).help(help)
}

/// Resolves the links in `path`, so that two names of one file are equal. The file need not exist.
fn resolve_path(path: &Path) -> PathBuf {
    let resolved = fs::canonicalize(path).ok().or_else(|| {
        let folder = match path.parent()? {
            parent if parent.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
    });
    resolved.unwrap_or_else(|| path.to_owned())
}

/// True if `path` is a device or a pipe, whose content cannot be replaced.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Keeps the `targets` for which `check` succeeds. Returns the last failure of `check`.
fn retain_targets(
    targets: &mut Vec<ReportTarget>,
    mut check: impl FnMut(&ReportTarget) -> Result<()>,
) -> Result<()> {
    let mut last_result = Ok(());
    targets.retain(|target| check(target).map_err(|failure| last_result = Err(failure)).is_ok());
    last_result
}

/// Writes `text` to `path`, as [`write_with`] does.
pub(super) fn write_text(path: &Path, text: &str) -> io::Result<()> {
    write_with(path, |file| file.write_all(text.as_bytes()))
}

/// Lets `write` fill the file at `path`. A regular or new file is replaced as a whole; links, devices
/// and pipes are written in place.
///
/// # Errors
/// If the file cannot be written. A file that was to be replaced as a whole is then unchanged. A
/// file that was written in place may be incomplete.
pub(super) fn write_with(
    path: &Path,
    write: impl Fn(&mut fs::File) -> io::Result<()>,
) -> io::Result<()> {
    let permissions = match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => Some(old.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        _ => return write(&mut fs::File::create(path)?),
    };
    use ErrorKind::{CrossesDevices, PermissionDenied, ResourceBusy};
    let exists = permissions.is_some();
    match write_temporary(path, permissions, &write)
        .and_then(|file| Ok(file.persist(path).map(drop)?))
    {
        // A mounted file, or one in a folder of another user, cannot be replaced but may be writable.
        Err(error)
            if exists
                && matches!(error.kind(), PermissionDenied | ResourceBusy | CrossesDevices) =>
        {
            write(&mut fs::File::create(path)?)
        }
        result => result,
    }
}

/// Lets `write` fill a hidden file in the folder of `path`, and renames it to `path`. After a failure
/// the hidden file is removed.
pub(super) fn write_temporary(
    path: &Path,
    permissions: Option<fs::Permissions>,
    write: impl FnOnce(&mut fs::File) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut file = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .make_in(folder, |temporary_path| fs::File::create_new(temporary_path))?;
    permissions.map_or(Ok(()), |permissions| file.as_file().set_permissions(permissions))?;
    write(file.as_file_mut())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::{cli::environment::Environment, report::CheckContent, value::Json};

    fn make_reports(files: &[&Path]) -> Reports {
        let target =
            |path: &&Path| ReportTarget { format: Format::Json, file: Some(path.to_path_buf()) };
        let out = files.iter().map(target).collect();
        Reports::new(
            Some((&ReportArgs { out, marker: None }, ReportKind::Check)),
            None,
            &Output::new(clap::ColorChoice::Never, 0, false, &Environment::default()),
        )
    }

    fn make_checked() -> CheckContent<'static> {
        static NOTHING: LazyLock<Diagnostics> = LazyLock::new(Diagnostics::default);
        CheckContent::new(&NOTHING, 0)
    }

    fn read_status(path: &Path) -> Json {
        serde_json::from_str::<Json>(&fs::read_to_string(path).unwrap()).unwrap()["status"].take()
    }

    fn count_files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_run_removes_the_old_report_and_writes_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.json"), folder.path().join("new.json"));
        fs::write(&old, "{\"status\": \"of another run\"}").unwrap();
        let mut reports = make_reports(&[&old, &new]);
        reports.begin().unwrap();
        assert_eq!(
            (read_status(&old), read_status(&new), count_files(folder.path())),
            ("unfinished".into(), "unfinished".into(), 2)
        );
        let reported_exit = reports.finish(
            ReportKind::Check,
            Exit::Differences,
            ReportContent::Check(&make_checked()),
            |_| {},
            None,
        );
        assert_eq!(
            (read_status(&old), read_status(&new), count_files(folder.path())),
            ("finished".into(), "finished".into(), 2)
        );
        assert_eq!(
            (reported_exit.exit(), reports.end(Ok(reported_exit.exit()))),
            (Exit::Differences, Exit::Differences)
        );
        assert_eq!(read_status(&old), "finished");
    }

    #[test]
    fn a_failed_run_writes_a_report() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.json");
        let mut reports = make_reports(&[&path]);
        reports.begin().unwrap();
        assert_eq!(reports.end(Err(CommandError::already_reported(Exit::Denied))), Exit::Denied);
        assert_eq!((read_status(&path), count_files(folder.path())), ("failed".into(), 1));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_permissions_and_a_link_its_target() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            write_text(path, "text").unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "text");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
            fs::write(&file, "").unwrap();
        }
        assert!(link.is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_gets_only_the_final_report() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reports = make_reports(&[&pipe]);
        // The pipe has no reader, and the write does not wait for one.
        reports.begin().unwrap();
        let reader = std::thread::spawn(move || read_status(&pipe));
        assert_eq!(
            reports
                .finish(
                    ReportKind::Check,
                    Exit::Success,
                    ReportContent::Check(&make_checked()),
                    |_| {},
                    None
                )
                .exit(),
            Exit::Success
        );
        assert_eq!(reader.join().unwrap(), "finished");
    }

    #[test]
    fn a_target_names_its_format() {
        let parsed_target = |format, file| Ok(ReportTarget { format, file });
        assert_eq!("json=-".parse(), parsed_target(Format::Json, None));
        assert_eq!("html=a=b".parse(), parsed_target(Format::Html, Some("a=b".into())));
        for (format, name) in Format::ALL {
            assert_eq!(format!("{name}=-").parse(), parsed_target(format, None));
        }
        assert_eq!("json".parse(), parsed_target(Format::Json, None));
        for wrong in ["", "json=", "xml=a", "-", "=a", "JSON=a"] {
            assert!(wrong.parse::<ReportTarget>().is_err(), "{wrong}");
        }
    }
}
