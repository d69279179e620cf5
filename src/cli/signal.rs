//! Signals: the first one ends a run in good order, the second one at once.

use std::{
    io,
    sync::{Arc, OnceLock},
    thread,
};

use tokio::{runtime::Builder, sync::oneshot};

use super::{CommandError, Exit, Output};

/// Handles signals from now on: calls `interrupt` for the first one, and `at_once` for the second,
/// before that ends the process. The result has the exit code for the first one, after it came.
///
/// # Errors
/// If the system does not allow handling signals.
pub(super) fn watch(
    output: Output,
    interrupt: impl FnOnce() + Send + 'static,
    at_once: impl FnOnce(Exit) + Send + 'static,
) -> io::Result<Arc<OnceLock<Exit>>> {
    let first = Arc::new(OnceLock::new());
    let received = Arc::clone(&first);
    let once = move |signal| {
        let _ = received.set(signal);
        interrupt();
        output.eprint("\ninterrupted: waiting for the answers to writes that were sent; interrupt again to stop at once\n");
    };
    listen(once, at_once)?;
    Ok(first)
}

/// Runs something that only reads, until a signal arrives; a second one ends the process.
///
/// # Errors
/// The result of that, or the signal.
pub(super) async fn unless_signalled<T>(
    output: &Output,
    reading: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    let (sender, received) = oneshot::channel();
    let output = output.clone();
    let once = move |signal| {
        output.eprint("\ninterrupted: the service was only read\n");
        let _ = sender.send(signal);
    };
    listen(once, |_| {})?;
    tokio::select! {
        done = reading => done,
        Ok(signal) = received => Err(CommandError::reported(signal)),
    }
}

/// Handles signals from now on: calls `once` for the first one, and `twice` for the second, before
/// that ends the process.
fn listen(
    once: impl FnOnce(Exit) + Send + 'static,
    twice: impl FnOnce(Exit) + Send + 'static,
) -> io::Result<()> {
    handle(async move |mut source: Signals| {
        once(source.next().await);
        let signal = source.next().await;
        twice(signal);
        std::process::exit(signal.code().into());
    })
}

/// Handles signals on a thread of its own, so that they are handled while this one computes or waits
/// for the answer to a prompt.
///
/// # Errors
/// If the system does not allow handling signals.
pub(super) fn handle<F: Future<Output = ()>>(
    handler: impl FnOnce(Signals) -> F + Send + 'static,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let source = {
        let _entered = runtime.enter();
        Signals::new()?
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || runtime.block_on(handler(source))).map(drop)
}

/// SIGINT and SIGTERM, from its creation on.
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

    /// Waits for the next one; returns its exit code.
    pub(super) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}

/// Ctrl-C.
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

    /// Waits for the next one; returns its exit code.
    pub(super) async fn next(&mut self) -> Exit {
        // If Ctrl-C cannot be handled, there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Exit::Interrupted
    }
}
