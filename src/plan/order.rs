//! The order of the steps of one project: edges with reasons, and a sequence that keeps them.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Call, Sealed, Step};
use crate::{
    address::Address,
    diff::{Action, Difference, Shown},
    live::Caller,
};

/// A step that comes first, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edge {
    /// The step that comes first.
    pub address: Address,
    /// Why.
    #[serde(serialize_with = "crate::text::word")]
    pub reason: &'static str,
}

/// The settings without which the service refuses to show or change a project's variables.
const CI_SWITCHES: [&str; 2] = ["builds_access_level", "jobs_enabled"];

/// The steps for `differences` of one project, each after those that it depends on.
pub(super) fn steps(differences: Vec<Difference>, caller: &Caller) -> Vec<Step> {
    let ranks: Vec<u8> = differences.iter().map(|difference| rank(difference, caller)).collect();
    let edges: Vec<Vec<Edge>> = differences
        .iter()
        .zip(&ranks)
        .map(|(later, later_rank)| {
            let firsts = differences.iter().zip(&ranks).filter(|(_, rank)| *rank < later_rank);
            firsts
                .filter_map(|(first, rank)| {
                    Some(Edge {
                        address: first.address.clone(),
                        reason: reason(first, *rank, later, *later_rank)?,
                    })
                })
                .collect()
        })
        .collect();
    let mut steps: Vec<_> = differences.into_iter().zip(edges).zip(ranks).collect();
    // An edge leads from a lower rank to a higher one, so that the order of ranks keeps every edge.
    steps.sort_by_key(|(_, rank)| *rank);
    steps.into_iter().map(|((difference, after), _)| step(difference, after)).collect()
}

/// Whether a project refuses changes after this one.
pub(super) fn closes(difference: &Difference) -> bool {
    difference.address.section == Some("archived") && sets(difference, "archived", &true.into())
}

fn step(difference: Difference, after: Vec<Edge>) -> Step {
    Step {
        closes: closes(&difference),
        address: difference.address,
        action: difference.action,
        origin: difference.origin,
        changes: difference.changes,
        calls: difference.requests.iter().map(Call::from).collect(),
        after,
        requests: difference.requests,
        live: difference.live.map(Sealed),
    }
}

// Ranks: a step may depend on steps of a lower rank only.
const PROJECT: u8 = 0;
const UNARCHIVE: u8 = 1;
const SETTINGS: u8 = 2;
const ENTRIES: u8 = 3;
const SETTINGS_THAT_CLOSE: u8 = 4;
const REMOVALS: u8 = 5;
const OWN_ACCESS: u8 = 6;
const ARCHIVE: u8 = 7;

fn rank(difference: &Difference, caller: &Caller) -> u8 {
    match difference.address.section {
        None => PROJECT,
        Some("archived") if closes(difference) => ARCHIVE,
        Some("archived") => UNARCHIVE,
        Some("settings") if CI_SWITCHES.iter().any(|name| switches_off(difference, name)) => {
            SETTINGS_THAT_CLOSE
        }
        Some("settings") => SETTINGS,
        Some(_)
            if difference
                .access
                .is_some_and(|access| access.user == caller.id && access.after < access.before) =>
        {
            OWN_ACCESS
        }
        Some(_) if difference.action == Action::Delete => REMOVALS,
        Some(_) => ENTRIES,
    }
}

fn sets(difference: &Difference, field: &str, value: &serde_json::Value) -> bool {
    difference
        .changes
        .iter()
        .any(|change| change.field == field && change.after == Shown::Value(value.clone()))
}

fn switches_off(difference: &Difference, field: &str) -> bool {
    sets(difference, field, &"disabled".into()) || sets(difference, field, &false.into())
}

/// Why `later` waits for `first`, if it does.
fn reason(
    first: &Difference,
    first_rank: u8,
    later: &Difference,
    later_rank: u8,
) -> Option<&'static str> {
    let same_section = first.address.section == later.address.section;
    match (first_rank, later_rank) {
        (PROJECT, _) => Some("the project must exist"),
        (UNARCHIVE, _) => Some("an archived project cannot be changed"),
        (_, ARCHIVE) => Some("an archived project cannot be changed"),
        (_, OWN_ACCESS) => Some("the token's owner needs this access until then"),
        (SETTINGS, _)
            if later.address.section == Some("variables")
                && CI_SWITCHES.iter().any(|name| touches(first, name)) =>
        {
            Some("variables need CI/CD")
        }
        (_, SETTINGS_THAT_CLOSE) if first.address.section == Some("variables") => {
            Some("variables need CI/CD")
        }
        (ENTRIES, REMOVALS) if same_section => Some("create first, then remove"),
        _ => None,
    }
}

fn touches(difference: &Difference, field: &str) -> bool {
    difference.changes.iter().any(|change| change.field == field)
}
