//! The command line from outside: the binary in an empty environment, in its own folder.
//!
//! What only the binary shows belongs here: arguments, exit codes, files, what is printed, the page
//! in a real browser, the build without the sandbox. A broken manifest is a case of `tests/corpus`.
//!
//! A snapshot contains the stdout, the stderr and the exit code of a run. Texts that differ from
//! run to run are replaced: the folder, addresses, generated tokens and the version.
//! `INSTA_UPDATE=always` writes the snapshots anew.

mod absorb;
mod base;
mod browser;
mod call;
#[path = "../support/corpus.rs"]
mod cases;
mod commands;
mod comment;
mod conditional;
mod corpus;
mod estates;
mod explain;
mod export;
mod front;
mod harness;
mod holds;
mod kinds;
mod lean;
mod new;
mod paths;
mod policy;
mod record;
mod reports;
mod sandbox;
mod saved;
mod secrets;
mod selftest;
mod snapshot;
mod token;
