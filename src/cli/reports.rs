//! Reports for machines: each is written, whatever becomes of the run.
//!
//! [`Reports::begin`] puts an unfinished report in the place of an old one, so that nobody takes
//! that for this run's. A command ends with [`Reports::finish`], which it has to: what it returns
//! is the proof. [`Reports::end`] writes what failed instead. A reader never sees half a report: a
//! file is replaced as a whole.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    exit::{Exit, Failure, Outcome},
    output::Output,
};
use crate::{
    diagnostic::Diagnostics,
    report::json::{Report, Sort},
};

/// Where a machine format goes: `json=FILE`, or `json=-` for stdout in place of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// In place of the text.
    Stdout,
    /// Into a file, beside the text.
    File(PathBuf),
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("json", "-")) => Ok(Self::Stdout),
            Some(("json", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            _ => Err("write `json=FILE`, or `json=-` for stdout".into()),
        }
    }
}

/// Where a command's report goes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct ReportArgs {
    /// Write the report as JSON too, also when the run fails; `json=-` replaces the text on stdout
    #[arg(long, value_name = "json=FILE", help_heading = "Output")]
    pub(super) out: Vec<Target>,
}

/// The reports of a run.
#[derive(Debug)]
pub(super) struct Reports {
    output: Output,
    sort: Sort,
    files: Vec<PathBuf>,
    stdout: bool,
    diagnostics: Diagnostics,
}

/// The proof that what a run came to was reported, with the code to exit with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Done(Exit);

impl Done {
    /// The code.
    pub(super) const fn exit(self) -> Exit {
        self.0
    }
}

impl Reports {
    /// The reports of a command: where they go, and of which sort they are unless it says
    /// otherwise.
    pub(super) fn new(command: Option<(&ReportArgs, Sort)>, output: &Output) -> Self {
        let targets = command.map(|(args, _)| args.out.as_slice()).unwrap_or_default();
        let files = targets.iter().filter_map(|target| {
            if let Target::File(path) = target { Some(path.clone()) } else { None }
        });
        // A command without reports has no sort, and writes none.
        let sort = command.map_or(Sort::Check, |(_, sort)| sort);
        let (files, stdout) = (files.collect(), targets.contains(&Target::Stdout));
        Self { output: output.clone(), sort, files, stdout, diagnostics: Diagnostics::default() }
    }

    /// Puts an unfinished report into each file. A device or a pipe gets the last word only.
    ///
    /// # Errors
    /// If a file cannot be written, before anything else was done.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let text = Report::unfinished(self.sort)
            .to_text(&self.output.secrets())
            .map_err(|error| Failure::new(Exit::Internal, error))?;
        let mut begun = Ok(());
        self.files.retain(|path| {
            let Err(error) = (if is_stream(path) { Ok(()) } else { write(path, &text) }) else {
                return true;
            };
            if fs::symlink_metadata(path).is_ok_and(|old| old.is_file()) {
                // An old report that cannot be replaced may still be taken away; if not, that is
                // what is told anyway.
                let _ = fs::remove_file(path);
            }
            begun = Err(cannot_write(path, &error));
            false
        });
        begun
    }

    /// Whether stdout gets something else than text.
    pub(super) const fn replace_text(&self) -> bool {
        self.stdout
    }

    /// Keeps what was found in the manifests, for the report of a run that fails.
    pub(super) fn keep(&mut self, diagnostics: Diagnostics) {
        self.diagnostics = diagnostics;
    }

    /// Reports what a run came to: as text, and as JSON where somebody wants that. What cannot be
    /// written is told, with `help`, and counts for the code, but never hides a more telling one.
    pub(super) fn finish<T: Serialize>(
        &mut self,
        sort: Sort,
        exit: Exit,
        content: &T,
        text: impl FnOnce() -> String,
        help: Option<&str>,
    ) -> Done {
        // The text first: what was done is told even where a file cannot be written.
        let printed = if self.stdout { Ok(()) } else { self.output.print(&text()) };
        let exit =
            printed.map_or_else(|failure| self.tell_unwritten(failure, exit, help), |()| exit);
        Done(self.write(exit, help, |exit| {
            Report::finished(sort, exit.code(), content).to_text(&self.output.secrets())
        }))
    }

    /// Ends a run: tells what failed, and reports it.
    pub(super) fn end(self, outcome: Outcome) -> Exit {
        let failure = match outcome {
            Ok(exit) => return exit,
            Err(failure) => failure,
        };
        self.output.tell_failure(&failure);
        let told = || "see stderr".to_owned();
        let error = failure.error.map_or_else(told, |error| format!("{error:#}"));
        let report = |exit: Exit| {
            Report::failed(
                self.sort,
                exit.code(),
                error.clone(),
                failure.help.clone(),
                self.diagnostics.clone(),
            )
        };
        self.write(failure.exit, None, |exit| report(exit).to_text(&self.output.secrets()))
    }

    /// Writes the JSON for `exit` wherever it goes. The code that the run ends with then.
    fn write(
        &self,
        exit: Exit,
        help: Option<&str>,
        json: impl Fn(Exit) -> serde_json::Result<String>,
    ) -> Exit {
        if self.files.is_empty() && !self.stdout {
            return exit;
        }
        let (mut written, mut last) = (Vec::new(), exit);
        let text = match json(exit) {
            Ok(text) => text,
            Err(error) => {
                return self.tell_unwritten(Failure::new(Exit::Internal, error), exit, help);
            }
        };
        for path in &self.files {
            match write(path, &text) {
                Ok(()) => written.push(path),
                Err(error) => last = self.tell_unwritten(cannot_write(path, &error), last, help),
            }
        }
        let Ok(text) = json(last) else { return last };
        if last != exit {
            // What was written before another file failed has to say how the run ends. It could be
            // written a moment ago.
            written
                .into_iter()
                .filter(|path| !is_stream(path))
                .for_each(|path| drop(write(path, &text)));
        }
        let printed = if self.stdout { self.output.print_data(&text) } else { Ok(()) };
        printed.map_or_else(|failure| self.tell_unwritten(failure, last, help), |()| last)
    }

    /// Tells that something could not be written; the code of a run that would have ended with
    /// `exit`.
    fn tell_unwritten(&self, failure: Failure, exit: Exit, help: Option<&str>) -> Exit {
        self.output.tell_failure(&Failure { help: help.map(str::to_owned), ..failure });
        Exit::first_of([exit, Exit::Usage])
    }
}

pub(super) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::usage(format!("cannot write `{}`: {error}", path.display()))
}

/// Whether what is written to `path` cannot be taken back: a device or a pipe.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Writes `text` to `path`: a plain or a new file is replaced as a whole, anything else is written
/// to.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(old) if old.is_file() => {
            replace(path, text, Some(old.permissions())).or_else(|error| match error.kind() {
                // A file that is mounted by itself, or in a folder that others own, can be written to
                // all the same.
                ErrorKind::PermissionDenied
                | ErrorKind::ResourceBusy
                | ErrorKind::CrossesDevices => fs::write(path, text),
                _ => Err(error),
            })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, text, None),
        _ => fs::write(path, text),
    }
}

/// Writes a file beside `path` and gives it that name.
fn replace(path: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
    let part = path.with_file_name(format!(".{name}.{:016x}", rand::random::<u64>()));
    let mut file = fs::File::create_new(&part)?;
    let written = permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions));
    let written = written
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::{environment::Environment, output::Colour},
        value::Json,
    };

    fn reports(files: &[&Path]) -> Reports {
        let out = files.iter().map(|path| Target::File(path.to_path_buf())).collect();
        Reports::new(
            Some((&ReportArgs { out }, Sort::Plan)),
            &Output::new(Colour::Never, 0, &Environment::default()),
        )
    }

    fn status(path: &Path) -> Json {
        serde_json::from_str::<Json>(&fs::read_to_string(path).unwrap()).unwrap()["status"].take()
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn an_old_report_is_gone_as_soon_as_a_run_begins_and_a_new_one_there_when_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.json"), folder.path().join("new.json"));
        fs::write(&old, "{\"status\": \"of another run\"}").unwrap();
        let mut reports = reports(&[&old, &new]);
        reports.begin().unwrap();
        assert_eq!(
            (status(&old), status(&new), names(folder.path())),
            ("unfinished".into(), "unfinished".into(), 2)
        );
        let done = reports.finish(Sort::Plan, Exit::Differences, &(), String::new, None);
        assert_eq!(
            (status(&old), status(&new), names(folder.path())),
            ("finished".into(), "finished".into(), 2)
        );
        assert_eq!(
            (done.exit(), reports.end(Ok(done.exit()))),
            (Exit::Differences, Exit::Differences)
        );
        assert_eq!(status(&old), "finished");
    }

    #[test]
    fn a_run_that_fails_reports_that() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.json");
        let mut reports = reports(&[&path]);
        reports.begin().unwrap();
        assert_eq!(reports.end(Err(Failure::said(Exit::Denied))), Exit::Denied);
        assert_eq!((status(&path), names(folder.path())), ("failed".into(), 1));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_permissions_and_a_link_its_end() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            write(path, "text").unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "text");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
            fs::write(&file, "").unwrap();
        }
        assert!(link.is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_gets_the_last_word_only() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reports = reports(&[&pipe]);
        // Nobody reads yet, and nobody waits for that.
        reports.begin().unwrap();
        let reader = std::thread::spawn(move || status(&pipe));
        assert_eq!(
            reports.finish(Sort::Plan, Exit::Success, &(), String::new, None).exit(),
            Exit::Success
        );
        assert_eq!(reader.join().unwrap(), "finished");
    }

    #[test]
    fn a_target_names_its_format() {
        assert_eq!("json=-".parse(), Ok(Target::Stdout));
        assert_eq!("json=a=b".parse(), Ok(Target::File("a=b".into())));
        for wrong in ["", "json", "json=", "xml=a", "-"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
    }
}
