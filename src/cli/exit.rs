//! Exit codes, and the errors that end a run.

use std::{fmt, process::ExitCode};

use crate::api::ApiError;

/// The way in which a run ends. The variants are ordered: if several apply, the first one is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exit {
    /// SIGINT ended the run, or the prompt was declined.
    Interrupted,
    /// SIGTERM ended the run.
    Terminated,
    /// undrift has a bug, or the system failed.
    Internal,
    /// Apply did not carry out all steps, or the service did not save a change.
    Unfinished,
    /// The plan is stale, expired or for another target.
    Stale,
    /// A guard refuses a change.
    Guarded,
    /// The arguments, the configuration or the manifests are wrong.
    Usage,
    /// The token, its permissions or the tier do not allow a request.
    Denied,
    /// The service cannot be reached, or the run has no requests or no time left.
    Unreachable,
    /// Some data could not be read.
    Incomplete,
    /// The live state differs from the manifests.
    Differences,
    /// Success.
    Success,
}

impl Exit {
    /// The exit code of each variant, in the order of the variants.
    const EXIT_CODES: [(Self, u8); 12] = [
        (Self::Interrupted, 130),
        (Self::Terminated, 143),
        (Self::Internal, 1),
        (Self::Unfinished, 6),
        (Self::Stale, 5),
        (Self::Guarded, 4),
        (Self::Usage, 3),
        (Self::Denied, 7),
        (Self::Unreachable, 8),
        (Self::Incomplete, 10),
        (Self::Differences, 2),
        (Self::Success, 0),
    ];

    /// The variant with this exit code, if there is one.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::EXIT_CODES.into_iter().find(|(_, other)| *other == code).map(|(exit, _)| exit)
    }

    /// The exit code of the process.
    pub(super) const fn code(self) -> u8 {
        Self::EXIT_CODES[self as usize].1
    }

    /// The exit for a failed request. If the service refused it, but not for a missing permission, the
    /// exit is `refusal_exit`.
    pub(super) fn from_api_error(error: &ApiError, refusal_exit: Self) -> Self {
        match error.status() {
            _ if error.in_doubt_since().is_some() => Self::Unfinished,
            _ if error.is_unauthorized() || error.is_forbidden() => Self::Denied,
            Some(_) => refusal_exit,
            None if error.page_error().is_some() => refusal_exit,
            None => Self::Unreachable,
        }
    }

    /// The first of `exits` in the order of the variants; success if there is none.
    pub(super) fn first_of(exits: impl IntoIterator<Item = Self>) -> Self {
        exits.into_iter().min().unwrap_or(Self::Success)
    }

    /// `self` if `condition` is true, else success. Callers pass the result to [`Self::first_of`].
    pub(super) const fn only_if(self, condition: bool) -> Self {
        if condition { self } else { Self::Success }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The exit codes, for `--help`.
pub(super) const EXIT_CODES_HELP: &str = include_str!("help/exit-codes.txt");

/// An error that ends a run, with advice for the user and the exit code.
#[derive(Debug)]
pub(super) struct CommandError {
    /// The error; `None` if it was reported already.
    pub(super) error: Option<anyhow::Error>,
    /// The advice for the user.
    pub(super) help: Option<String>,
    /// The exit code of the run.
    pub(super) exit: Exit,
}

/// The result of a part of a command.
pub(super) type Result<T, E = CommandError> = std::result::Result<T, E>;

/// The result of a command.
pub(super) type CommandResult = Result<Exit>;

impl CommandError {
    /// An error that exits with `exit`.
    pub(super) fn new(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { error: Some(error.into()), help: None, exit }
    }

    /// An error of configuration or usage.
    pub(super) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, anyhow::anyhow!("{message}"))
    }

    /// The error of a run whose reason was already reported.
    pub(super) const fn already_reported(exit: Exit) -> Self {
        Self { error: None, help: None, exit }
    }

    /// Adds advice for the user.
    #[must_use]
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl From<ApiError> for CommandError {
    fn from(error: ApiError) -> Self {
        let exit = if error.is_unauthorized() || error.is_forbidden() {
            Exit::Denied
        } else {
            Exit::Unreachable
        };
        let help = error.hint().map(str::to_owned);
        Self { help, ..Self::new(exit, error) }
    }
}

/// An unexpected error of the operating system.
impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        Self::new(Exit::Internal, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_code_wins() {
        let order = [1, 6, 5, 4, 3, 7, 8, 10, 2, 0];
        let all = [
            Exit::Internal,
            Exit::Unfinished,
            Exit::Stale,
            Exit::Guarded,
            Exit::Usage,
            Exit::Denied,
            Exit::Unreachable,
            Exit::Incomplete,
            Exit::Differences,
            Exit::Success,
        ];
        assert_eq!(all.map(Exit::code), order);
        for (i, first) in all.iter().enumerate() {
            for later in &all[i..] {
                assert_eq!(Exit::first_of([*later, *first]), *first);
            }
            assert_eq!(Exit::first_of([*first, Exit::Interrupted]).code(), 130);
        }
        assert_eq!(Exit::first_of([]), Exit::Success);
    }

    #[test]
    fn the_help_explains_every_code() {
        for code in [0, 1, 2, 3, 4, 5, 6, 7, 8, 10] {
            assert!(
                EXIT_CODES_HELP
                    .lines()
                    .any(|line| line.trim_start().starts_with(&format!("{code} "))),
                "{code}"
            );
        }
    }
}
