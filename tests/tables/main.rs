//! Written tables agree: those of kinds and operations with the reference and with each
//! other, the published schemas with the checks, and imports between modules with the layers.
//!
//! A test belongs here if it reads tables and never runs undrift. A rule of one module is tested
//! beside that module.

mod attributes;
#[path = "../support/corpus.rs"]
#[expect(dead_code, reason = "no suite of tables reads a report")]
mod corpus;
mod kinds;
mod layers;
mod operations;
#[path = "../support/reached.rs"]
mod reached;
mod schemas;
