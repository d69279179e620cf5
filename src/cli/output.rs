//! Writes text: results to stdout, everything else to stderr. Secrets are removed from all texts.
//! Machine-readable data must already be without secrets.

use std::{
    io::{self, BufRead as _, ErrorKind, IsTerminal as _, Read as _, Write},
    sync::{Arc, PoisonError, RwLock},
};

use clap::ColorChoice;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use super::{CommandError, Environment, Exit, Result};
use crate::{
    diagnostic::Diagnostics,
    report::{Canvas, Line, Paint, Sink, TextStyle, terminal},
    secret::Secrets,
};

/// The maximum length of a response to a prompt, in bytes.
const MAX_ANSWER_BYTES: u64 = 1 << 10;

/// Removes from texts all secrets that were looked up so far. Clones share the secrets.
#[derive(Clone, Debug, Default)]
pub(super) struct Redactor(Arc<RwLock<Arc<Secrets>>>);

impl Redactor {
    /// Removes `secrets` from now on.
    pub(super) fn set_secrets(&self, secrets: Arc<Secrets>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = secrets;
    }

    /// The secrets that were looked up so far.
    fn secrets(&self) -> Arc<Secrets> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn redact(&self, text: &str) -> String {
        self.secrets().redact(text)
    }
}

/// The output streams: their styles, and the redaction of secrets.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// The redaction of all output.
    pub(super) redactor: Redactor,
    /// The style of results.
    pub(super) style: TextStyle,
    /// The style of text on stderr.
    pub(super) stderr_style: TextStyle,
    /// True if progress bars may be drawn on stderr.
    pub(super) shows_progress: bool,
    /// True if the user can answer a prompt.
    pub(super) is_interactive: bool,
}

impl Output {
    /// Determines the styles from the streams, the options and the environment.
    pub(super) fn new(colour: ColorChoice, verbose: u8, full: bool, env: &Environment) -> Self {
        let columns = env.get("COLUMNS").and_then(|columns| columns.parse().ok());
        let terminal_flags = [io::stdout().is_terminal(), io::stderr().is_terminal()];
        let [style, stderr_style] = terminal_flags.map(|is_terminal| {
            let terminal_width = || Some(usize::from(terminal_size::terminal_size()?.0.0));
            let width = is_terminal.then(|| columns.or_else(terminal_width).unwrap_or(80));
            TextStyle { is_coloured: uses_colour(colour, is_terminal, env), width, is_full: full }
        });
        let [_, is_stderr_terminal] = terminal_flags;
        Self {
            redactor: Redactor::default(),
            style,
            stderr_style,
            shows_progress: is_stderr_terminal && verbose == 0 && env.get("CI").is_none(),
            is_interactive: is_stderr_terminal && io::stdin().is_terminal(),
        }
    }

    /// The secrets that were looked up so far.
    pub(super) fn secrets(&self) -> Arc<Secrets> {
        self.redactor.secrets()
    }

    /// Writes a result, as text. A closed pipe is not an error.
    ///
    /// # Errors
    /// If stdout cannot be written for another reason, such as a full disk.
    pub(super) fn print(&self, text: &str) -> Result<()> {
        self.print_data(&self.redactor.secrets().redact_values(text))
    }

    /// Like [`Self::print`], for a text that `write` produces in parts.
    ///
    /// # Errors
    /// The errors of [`Self::print`].
    pub(super) fn print_parts(&self, write: impl FnOnce(Sink<'_>)) -> Result<()> {
        let mut result = Ok(());
        write(&mut |part| {
            if result.is_ok() {
                result = self.print(part);
            }
        });
        result
    }

    /// Writes a machine-readable result. Secrets were removed from the values of `text` when it was
    /// made. Removing secrets now could break the JSON.
    ///
    /// # Errors
    /// The errors of [`Self::print`].
    pub(super) fn print_data(&self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(CommandError::usage(format!("cannot write to stdout: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Writes a warning, an error or a prompt. Errors of stderr are ignored, because they cannot be
    /// reported.
    pub(super) fn eprint(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ =
            stderr.write_all(self.redactor.redact(text).as_bytes()).and_then(|()| stderr.flush());
    }

    /// Writes a line for each of `items`, as [`terminal::render_lines`] does.
    pub(super) fn eprint_lines<T, K: Ord>(
        &self,
        items: &[T],
        noun: &str,
        key: impl Fn(&T) -> K,
        line: impl Fn(&T) -> String,
        name: impl Fn(&T) -> String,
    ) {
        let secrets = self.secrets();
        let canvas = Canvas::new(self.stderr_style, &secrets);
        self.eprint(&terminal::render_lines(canvas, items, noun, key, line, name));
    }

    /// Writes diagnostics, if there are any.
    pub(super) fn eprint_diagnostics(&self, diagnostics: &Diagnostics) {
        self.eprint(&diagnostics.render(self.stderr_style));
    }

    /// Writes diagnostics.
    ///
    /// # Errors
    /// If one of the diagnostics is an error.
    pub(super) fn refuse_errors(&self, diagnostics: &Diagnostics) -> Result<()> {
        self.eprint_diagnostics(diagnostics);
        if diagnostics.has_errors() {
            Err(CommandError::already_reported(Exit::Usage))
        } else {
            Ok(())
        }
    }

    /// Asks the user to confirm an action, such as `apply these changes`.
    ///
    /// # Errors
    /// If there is no terminal for the prompt.
    pub(super) fn confirm(&self, action_text: &str) -> Result<bool> {
        if !self.is_interactive {
            let failure =
                CommandError::usage(format!("cannot ask whether to {action_text}: not a terminal"));
            return Err(failure.help("pass `--yes` to skip the question"));
        }
        self.eprint(&format!("{action_text}? [y/N] "));
        let mut response = Vec::new();
        let read_result =
            io::stdin().lock().take(MAX_ANSWER_BYTES).read_until(b'\n', &mut response);
        read_result
            .map_err(|error| CommandError::usage(format!("cannot read the answer: {error}")))?;
        Ok(is_yes(&String::from_utf8_lossy(&response)))
    }

    /// Writes the error that ended a run.
    pub(super) fn eprint_failure(&self, failure: &CommandError) {
        let secrets = self.secrets();
        let mut canvas = Canvas::new(self.stderr_style, &secrets);
        let error = failure.error.as_ref().map(|error| format!("{error:#}"));
        let labelled_texts = [
            (Paint::Error, "error:", error.as_ref()),
            (Paint::Note, " help:", failure.help.as_ref()),
        ];
        for (paint, label, text) in labelled_texts {
            let text = canvas.redact(text.map_or("", String::as_str));
            for (index, line) in text.lines().enumerate() {
                let head = Line::default();
                let head = if index == 0 {
                    head.put(paint, label).text(" ").set_hanging_indent()
                } else {
                    head
                };
                canvas.add_line(&head.text(line));
            }
        }
        self.eprint(&canvas.finish());
    }

    /// Reports panics like other errors: on one line and without secrets.
    pub(super) fn install_panic_hook(&self) {
        let output = self.clone();
        std::panic::set_hook(Box::new(move |panic| {
            let origin = panic
                .location()
                .map(|location| format!(" at {}:{}", location.file(), location.line()))
                .unwrap_or_default();
            let payload = panic.payload();
            let message = payload
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let message = message.unwrap_or("no message");
            let failure = CommandError::new(
                Exit::Internal,
                anyhow::anyhow!("internal error{origin}: {message}"),
            );
            output.eprint_failure(
                &failure.help("this is a bug; please report it with the command that led to it"),
            );
        }));
    }

    /// Sends the log to stderr: filtered by UNDRIFT_LOG, or else by `verbose`.
    ///
    /// # Errors
    /// If UNDRIFT_LOG is not a valid filter.
    pub(super) fn start_log(&self, verbose: u8, env: &Environment) -> Result<()> {
        let default_filter =
            ["undrift=warn", "undrift=info", "undrift=debug"][usize::from(verbose.min(2))];
        let filter = EnvFilter::try_new(env.get("UNDRIFT_LOG").unwrap_or(default_filter)).map_err(
            |error| {
                CommandError::usage(format!("UNDRIFT_LOG is not a valid filter: {error}"))
                    .help("write it like `undrift=debug`")
            },
        )?;
        let writer = RedactedStderr(self.redactor.clone());
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(writer)
            .with_ansi(self.stderr_style.is_coloured);
        // In a process with several runs, as in tests, all of them use the log of the first one.
        let _ = log.without_time().try_init();
        Ok(())
    }
}

/// True if the response is `y` or `yes`.
fn is_yes(response: &str) -> bool {
    matches!(response.trim().to_lowercase().as_str(), "y" | "yes")
}

/// True if a stream gets colours; by default on a terminal, unless NO_COLOR or CI is set.
fn uses_colour(colour: ColorChoice, is_terminal: bool, env: &Environment) -> bool {
    match colour {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            is_terminal
                && ["NO_COLOR", "CI"].iter().all(|name| env.get(name).is_none())
                && env.get("TERM") != Some("dumb")
        }
    }
}

/// Stderr for the log, which writes one event at a time.
#[derive(Clone, Debug)]
struct RedactedStderr(Redactor);

impl Write for RedactedStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(self.0.redact(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'w> MakeWriter<'w> for RedactedStderr {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_only_for_terminals() {
        let environment_with = |name: &str, value: &str| {
            Environment::default().with_variables([(name.to_owned(), value.to_owned())])
        };
        for (colour, terminal, env, expected) in [
            (ColorChoice::Auto, true, Environment::default(), true),
            (ColorChoice::Auto, false, Environment::default(), false),
            (ColorChoice::Auto, true, environment_with("NO_COLOR", "1"), false),
            (ColorChoice::Auto, true, environment_with("NO_COLOR", ""), true),
            (ColorChoice::Auto, true, environment_with("CI", "true"), false),
            (ColorChoice::Auto, true, environment_with("TERM", "dumb"), false),
            (ColorChoice::Always, false, environment_with("NO_COLOR", "1"), true),
            (ColorChoice::Never, true, Environment::default(), false),
        ] {
            assert_eq!(
                uses_colour(colour, terminal, &env),
                expected,
                "{colour:?} {terminal} {env:?}"
            );
        }
    }

    #[test]
    fn only_y_and_yes_confirm() {
        assert!(["y", "Y\n", " yes\r\n", "YES"].into_iter().all(is_yes));
        assert!(!["", "\n", "n", "no", "yep", "y n", "j"].into_iter().any(is_yes));
    }
}
