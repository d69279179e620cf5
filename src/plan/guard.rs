//! Guards: what a plan must not do unless somebody said so for this one object.
//!
//! A guard refuses with numbers and names the acknowledgement that lets this object through, `--ack
//! GUARD:ADDRESS`. There is no way to switch all of them off.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    address::Address,
    diff::{Action, Difference, Shown},
    live::{Caller, Live},
    origin::Origin,
    text::count,
};

/// The level of an owner (reference 1, 2.1).
const OWNER: u8 = 50;
/// The lowest level that may administer a project.
const MAINTAINER: u8 = 40;

/// A guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Too many entries of a section are removed, or all of them.
    Removals,
    /// A project loses its last owner.
    LastOwner,
    /// The caller loses the access that it works with.
    OwnAccess,
    /// A project becomes visible to more people.
    Visibility,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Removals => "removals",
            Self::LastOwner => "last-owner",
            Self::OwnAccess => "own-access",
            Self::Visibility => "visibility",
        })
    }
}

/// What a guard refuses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Refusal {
    /// The object.
    pub address: Address,
    /// The guard.
    pub guard: Guard,
    /// Why, with numbers.
    pub reason: String,
    /// Where it is declared.
    pub origin: Origin,
    /// What lets this object through this guard, `GUARD:ADDRESS`.
    pub acknowledgement: String,
}

impl Refusal {
    fn new(guard: Guard, address: &Address, reason: String, origin: &Origin) -> Self {
        Self {
            address: address.clone(),
            guard,
            reason,
            origin: origin.clone(),
            acknowledgement: format!("{guard}:{address}"),
        }
    }
}

/// How much may be removed from one section in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most entries that may be removed from one section.
    pub count: usize,
    /// The largest share of a section with 4 entries or more that may be removed, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { count: 5, share: 0.25 }
    }
}

/// In a smaller collection one removal is a large share, and says nothing.
const SHARE_FROM: usize = 4;

/// Refuses removals from a section of `live` entries: too many, too large a share, or all.
pub(super) fn removals(
    address: &Address,
    origin: &Origin,
    live: usize,
    differences: &[Difference],
    limits: &Limits,
) -> Option<Refusal> {
    let removed = differences.iter().filter(|d| d.action == Action::Delete).count();
    let added = differences.iter().filter(|d| d.action == Action::Create).count();
    let share = removed as f64 / live.max(1) as f64;
    let reason = if removed > 0 && removed == live && added == 0 {
        if removed == 1 {
            "would remove the only entry".into()
        } else {
            format!("would remove all {}", count(removed, "entry"))
        }
    } else if removed > limits.count {
        format!("would remove {} of {live}; the limit is {}", count(removed, "entry"), limits.count)
    } else if live >= SHARE_FROM && share > limits.share {
        format!(
            "would remove {} of {live}; the limit is {:.0} %",
            count(removed, "entry"),
            limits.share * 100.0
        )
    } else {
        return None;
    };
    Some(Refusal::new(Guard::Removals, address, reason, origin))
}

/// Refuses to leave a project without an owner, and to take away the caller's own access.
pub(super) fn access(differences: &[Difference], live: &Live, caller: &Caller) -> Vec<Refusal> {
    let changes: Vec<_> = differences.iter().filter_map(|d| Some((d, d.access?))).collect();
    let mut refusals = Vec::new();
    let refuse = |difference: &Difference, guard, reason| {
        Refusal::new(guard, &difference.address, reason, &difference.origin)
    };
    for (difference, change) in &changes {
        if change.user == caller.id && change.after < change.before && change.after < MAINTAINER {
            let reason = format!(
                "would lower the access of `{}`, the token's owner, from {} to {}",
                caller.username, change.before, change.after
            );
            refusals.push(refuse(difference, Guard::OwnAccess, reason));
        }
    }
    let demoted: Vec<_> = changes
        .iter()
        .filter(|(_, change)| change.before == OWNER && change.after < OWNER)
        .collect();
    if let Some((difference, _)) = demoted.last() {
        let raised = changes
            .iter()
            .filter(|(_, change)| change.before < OWNER && change.after == OWNER)
            .count();
        let before = live.owners.as_deref().unwrap_or_default();
        let left = before
            .iter()
            .filter(|user| !demoted.iter().any(|(_, change)| change.user == **user))
            .count()
            + raised;
        if left == 0 {
            let reason =
                format!("would remove the last owner (of {})", before.len().max(demoted.len()));
            refusals.push(refuse(difference, Guard::LastOwner, reason));
        }
    }
    refusals
}

/// The visibilities, from the narrowest.
const VISIBILITIES: [&str; 3] = ["private", "internal", "public"];

/// Refuses to show a project to more people than before.
pub(super) fn visibility(difference: &Difference) -> Option<Refusal> {
    let change = difference.changes.iter().find(|change| change.field == "visibility")?;
    if difference.action != Action::Update || difference.address.section != Some("settings") {
        return None;
    }
    let rank = |shown: &Shown| match shown {
        Shown::Value(value) => VISIBILITIES.iter().position(|v| value == v),
        _ => None,
    };
    let (before, after) = (rank(&change.before), rank(&change.after)?);
    // What was not seen is taken for the narrowest.
    if before.unwrap_or(0) >= after {
        return None;
    }
    let reason = format!(
        "would widen visibility from {} to {}",
        before.map_or("unknown", |i| VISIBILITIES[i]),
        VISIBILITIES[after]
    );
    let origin = change.origin.as_ref().unwrap_or(&difference.origin);
    Some(Refusal::new(Guard::Visibility, &difference.address, reason, origin))
}
