//! The file of `apply --record`: one line of JSON per run, also for runs that failed, wrote nothing
//! or were interrupted.
//!
//! The file is opened before anything else, so that a run that cannot be recorded changes nothing. The line
//! is appended with one write when the run ends. A run that is killed, or ends with an internal
//! error, leaves no line.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;

use super::{CommandError, Exit, Output, Result, signal};
use crate::report::run_record::{CiJob, RecordLine};

/// The source of the time.
pub(super) type TimeSource = fn() -> Timestamp;

/// The record of this run, if the run keeps one. Clones share the record.
#[derive(Clone, Debug, Default)]
pub(super) struct RunRecord {
    file: Option<Arc<RecordFile>>,
    /// True if changes are being made. A signal then does not end the process immediately.
    is_changing: Arc<AtomicBool>,
}

#[derive(Debug)]
struct RecordFile {
    path: PathBuf,
    time_source: TimeSource,
    output: Output,
    /// The open file, and the record so far; `None` after the line was written.
    open_record: Mutex<Option<(File, RecordLine)>>,
}

impl RunRecord {
    /// Opens the file at `path` for the record of a run that begins now.
    ///
    /// # Errors
    /// If the file cannot be opened for appending.
    pub(super) fn begin(
        path: &Path,
        job: CiJob,
        time_source: TimeSource,
        output: &Output,
    ) -> Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)
            .map_err(|error| write_failure(path, &error))?;
        let record = RecordLine::new(format_time(time_source()), job);
        let open_record = Mutex::new(Some((file, record)));
        let record_file =
            RecordFile { path: path.to_owned(), time_source, output: output.clone(), open_record };
        Ok(Self { file: Some(Arc::new(record_file)), ..Self::default() })
    }

    /// Adds facts to the record.
    pub(super) fn add_facts(&self, add: impl FnOnce(&mut RecordLine)) {
        if let Some(file) = &self.file
            && let Some((_, record)) = file.lock_open_record().as_mut()
        {
            add(record);
        }
    }

    /// Records that changes are being made from now on.
    pub(super) fn begin_changes(&self) {
        self.is_changing.store(true, Ordering::SeqCst);
    }

    /// Handles signals before the first change: the handler writes the record, reports that nothing was
    /// changed, and ends the process immediately.
    ///
    /// # Errors
    /// If the system does not allow handling signals.
    pub(super) fn watch_signals(&self, output: &Output) -> io::Result<()> {
        let (record, output) = (self.clone(), output.clone());
        signal::spawn_handler(async move |mut signals: signal::Signals| {
            let signal = signals.next().await;
            if !record.is_changing.load(Ordering::SeqCst) {
                output.eprint("\ninterrupted: nothing was changed\n");
                record.end_by_signal(signal);
                std::process::exit(signal.code().into());
            }
        })
    }

    /// Writes the record of a run that a signal ends.
    pub(super) fn end_by_signal(&self, signal: Exit) {
        if let Err(failure) = self.end(signal, Some("interrupted".to_owned()))
            && let Some(file) = &self.file
        {
            file.output.eprint_failure(&failure);
        }
    }

    /// Completes the record with `exit` and `error`, and writes it. Later calls do nothing.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub(super) fn end(&self, exit: Exit, error: Option<String>) -> Result<()> {
        let Some(record_file) = &self.file else { return Ok(()) };
        let Some((mut file, mut record)) = record_file.lock_open_record().take() else {
            return Ok(());
        };
        record.ended_at = format_time((record_file.time_source)());
        record.exit_code = exit.code();
        record.error = error;
        let line = record
            .to_line(&record_file.output.secrets())
            .map_err(|error| CommandError::new(Exit::Internal, error))?;
        append_line(&mut file, &line).map_err(|error| write_failure(&record_file.path, &error))
    }
}

impl RecordFile {
    fn lock_open_record(&self) -> MutexGuard<'_, Option<(File, RecordLine)>> {
        self.open_record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time in whole seconds, in the form of RFC 3339.
fn format_time(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// Appends a line with one write. First ends an unfinished line of another run.
fn append_line(file: &mut File, line: &str) -> io::Result<()> {
    let line = if ends_within_line(file)? { format!("\n{line}") } else { line.to_owned() };
    file.write_all(line.as_bytes())?;
    // A device or a pipe cannot be flushed.
    if file.metadata()?.is_file() { file.sync_data() } else { Ok(()) }
}

fn ends_within_line(file: &mut File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(false);
    }
    let mut last_byte = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last_byte)?;
    Ok(last_byte != [b'\n'])
}

fn write_failure(path: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot write the record `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::environment::Environment, value::Json};

    fn begin(path: &Path) -> Result<RunRecord> {
        let output = Output::new(clap::ColorChoice::Never, 0, false, &Environment::default());
        RunRecord::begin(path, CiJob::default(), || Timestamp::UNIX_EPOCH, &output)
    }

    fn read_lines(path: &Path) -> Vec<Json> {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'), "{text:?}");
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect()
    }

    #[test]
    fn each_run_appends_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        let first = begin(&path).unwrap();
        first.add_facts(|record| record.left_out = 3);
        first.end(Exit::Guarded, None).unwrap();
        first.end(Exit::Success, None).unwrap();
        let second = begin(&path).unwrap();
        second.clone().end_by_signal(Exit::Interrupted);
        second.end(Exit::Success, None).unwrap();
        let lines = read_lines(&path);
        let codes: Vec<_> = lines.iter().map(|line| line["exit_code"].clone()).collect();
        assert_eq!(codes, [4, 130]);
        assert_eq!(
            (&lines[0]["left_out"], &lines[0]["ended_at"]),
            (&3.into(), &"1970-01-01T00:00:00Z".into())
        );
    }

    #[test]
    fn an_unfinished_line_is_ended_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.jsonl");
        std::fs::write(&path, "{\"undrift\": \"rec").unwrap();
        begin(&path).unwrap().end(Exit::Success, None).unwrap();
        let lines = read_lines(&path);
        assert_eq!((lines.len(), &lines[1]["exit_code"]), (2, &0.into()));
    }
}
