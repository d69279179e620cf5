//! Handles SIGINT and SIGTERM. After the first signal, a run finishes its requests and exits. The
//! second signal ends the run immediately.

use std::{
    io,
    sync::{Arc, OnceLock},
    thread,
};

use tokio::{runtime::Builder, sync::oneshot};

use super::{CommandError, Exit, Output, Result};

/// Starts to handle signals. The first signal calls `interrupt`, and its exit code is stored in the
/// returned cell. The second signal calls `on_second`, then ends the process.
///
/// # Errors
/// If the system does not allow handling signals.
pub(super) fn watch_signals(
    output: Output,
    interrupt: impl FnOnce() + Send + 'static,
    on_second: impl FnOnce(Exit) + Send + 'static,
) -> io::Result<Arc<OnceLock<Exit>>> {
    let first_signal = Arc::new(OnceLock::new());
    let signal_cell = Arc::clone(&first_signal);
    let on_first = move |signal| {
        let _ = signal_cell.set(signal);
        interrupt();
        output.eprint("\ninterrupted: waiting for the responses to writes in progress; interrupt again to stop immediately\n");
    };
    handle_two_signals(on_first, on_second)?;
    Ok(first_signal)
}

/// Runs `task`, which only reads, until a signal arrives. A second signal ends the process
/// immediately.
///
/// # Errors
/// The error of `task`, or the exit code of the signal.
pub(super) async fn run_until_signal<T>(
    output: &Output,
    task: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (sender, signal_receiver) = oneshot::channel();
    let output = output.clone();
    let on_first = move |signal| {
        output.eprint("\ninterrupted: nothing was changed\n");
        let _ = sender.send(signal);
    };
    handle_two_signals(on_first, |_| {})?;
    tokio::select! {
        result = task => result,
        Ok(signal) = signal_receiver => Err(CommandError::already_reported(signal)),
    }
}

/// Starts to handle signals. Calls `on_first` for the first signal. For the second signal, calls
/// `on_second`, then ends the process.
fn handle_two_signals(
    on_first: impl FnOnce(Exit) + Send + 'static,
    on_second: impl FnOnce(Exit) + Send + 'static,
) -> io::Result<()> {
    spawn_handler(async move |mut signals: Signals| {
        on_first(signals.next().await);
        let signal = signals.next().await;
        on_second(signal);
        std::process::exit(signal.code().into());
    })
}

/// Handles signals on a separate thread, because the thread of the caller may compute, or wait for the
/// answer to a prompt.
///
/// # Errors
/// If the system does not allow handling signals.
pub(super) fn spawn_handler<F: Future<Output = ()>>(
    handler: impl FnOnce(Signals) -> F + Send + 'static,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let signals = {
        let _guard = runtime.enter();
        Signals::new()?
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || runtime.block_on(handler(signals))).map(drop)
}

/// Receives the SIGINT and SIGTERM signals that arrive after its creation.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system does not allow handling signals.
    pub(super) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal, and returns its exit code.
    pub(super) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}

/// Receives Ctrl-C.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// Never.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for the next signal, and returns its exit code.
    pub(super) async fn next(&mut self) -> Exit {
        // If Ctrl-C cannot be handled, there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Exit::Interrupted
    }
}
