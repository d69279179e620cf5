//! The contract of the embedded service, checked over real HTTP on the loopback interface.
//!
//! Every expectation names its rule: `fact("variable-ambiguous")` is a row of the table that
//! `undrift sandbox --facts` prints, with its source. [`facts`] checks that every rule is tested
//! here.
//!
//! `golden` compares answers with recorded ones of the service's own code, and `clients` lets
//! independent clients work with the sandbox.

mod access_requests;
mod actions;
mod approvals;
mod archived;
mod around;
mod authorisation;
mod badges;
mod client;
mod clients;
mod collections;
mod crash;
mod deletion;
mod dialects;
#[path = "../../../../tests/support/dump.rs"]
mod dump;
mod facts;
mod golden;
mod group_rules;
mod group_things;
mod groups;
mod hierarchy;
mod hooks;
#[path = "../switches/hostile.rs"]
mod hostile;
mod imports;
mod instance;
mod integrations;
mod keys_and_mirrors;
mod labels;
mod member_roles;
mod members;
mod model;
mod notes;
mod operations;
mod paging;
mod projects;
mod protected_branches;
mod protected_tags;
mod releases;
mod repository;
mod robustness;
mod running;
#[path = "../../../../tests/support/sample.rs"]
mod sample;
mod schedules;
mod shares;
#[path = "../switches/mod.rs"]
mod switches;
mod table;
mod things;
mod users;
