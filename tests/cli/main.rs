//! The command line from outside: the binary in an empty environment, in its own folder.
//!
//! A snapshot contains the stdout, the stderr and the exit code of a run. Texts that differ from
//! run to run are replaced: the folder, addresses, generated tokens and the version.
//! `INSTA_UPDATE=always` writes the snapshots anew.
#![cfg(feature = "sandbox")]

mod absorb;
mod base;
mod call;
mod commands;
#[cfg(unix)]
mod comment;
#[cfg(unix)]
mod conditional;
mod explain;
mod export;
#[cfg(unix)]
mod front;
mod harness;
mod holds;
#[cfg(unix)]
mod kinds;
mod new;
mod policy;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod reports;
#[cfg(unix)]
mod sandbox;
mod saved;
#[cfg(unix)]
mod secrets;
#[cfg(unix)]
mod selftest;
mod snapshot;
#[cfg(unix)]
mod token;
