//! The whole path against the embedded service, in one process: manifests, observe, plan, apply,
//! and plan again.
//!
//! A test belongs here if it needs both the client and the service, and no faults on the way.
//! Each test requires the same: the live state matches the declarations afterwards, a second run
//! writes nothing, and every failure in between is reported.
#![cfg(feature = "sandbox")]

mod absence;
mod absorb;
mod apply;
mod base;
mod branches;
mod comment;
mod constraints;
mod convergence;
#[path = "../support/corpus.rs"]
#[expect(dead_code, reason = "only the suite of the command line checks the cases")]
mod corpus;
mod economy;
mod environments;
mod export;
mod faults;
mod fuzz;
mod groups;
mod hooks;
#[path = "../../crates/sandbox/tests/switches/hostile.rs"]
mod hostile;
mod integrations;
mod keys;
mod life;
mod limits;
mod moves;
mod nested;
#[path = "../support/numbers.rs"]
mod numbers;
mod observe;
mod only_new;
#[path = "../support/parts.rs"]
mod parts;
mod quirks;
mod random;
#[path = "../support/reached.rs"]
mod reached;
mod releases;
mod renames;
mod resource_groups;
mod roles;
mod roster;
mod runners;
#[path = "../support/sample.rs"]
mod sample;
mod saved;
mod schedules;
mod shown;
mod snapshot;
mod sources;
#[path = "../../crates/sandbox/tests/switches/mod.rs"]
mod switches;
mod world;
