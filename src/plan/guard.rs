//! Guards: what a plan must not do unless somebody said so.
//!
//! They look at what steps do ([`Effect`]), at no section by name. A guard refuses with numbers and
//! names the acknowledgement that lets it through. There is no way to switch all of them off.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approve::EVERYTHING;
use crate::{
    address::Address,
    desired::{Container, Guard},
    diff::{Action, Context, Findings, Refusal, Step},
    kind::{Effect, VISIBILITIES, visibility_rank},
    level::{Level, MAINTAINER, OWNER},
    live::{Inherited, Live, Question},
    origin::Origin,
    text::{count, escape},
};

/// How much may be removed, or reached, in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most entries that may be removed from one section, or the most of what a rule brings in
    /// that may change.
    pub count: usize,
    /// The largest share of either, from 0 to 1; a few of few always may.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { count: 5, share: 0.25 }
    }
}

impl Limits {
    /// How much of what only a rule brings in may change.
    pub const REACH: Self = Self { count: 50, share: 0.1 };
}

/// In a smaller collection one removal is a large share, and says nothing.
const SHARE_FROM: usize = 4;
/// So many may change of what a rule brings in, however few that is.
const REACHED: usize = 5;
/// The most entries that may be removed in one run.
const MOST_OF_ALL: usize = 50;

/// Whether a step removes something: a copy stays as what it is a copy of.
fn removes(step: &&Step) -> bool {
    step.action == Action::Delete && !step.is_copy
}

/// Refuses removals from a section of `live` entries: too many, too large a share, or all.
pub(super) fn removals(
    address: &Address,
    origin: &Origin,
    live: usize,
    steps: &[Step],
    limits: &Limits,
) -> Option<Refusal> {
    let removed = steps.iter().filter(removes).count();
    let added = steps.iter().filter(|step| step.action == Action::Create).count();
    let live = live - steps.iter().filter(|step| step.is_copy).count();
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
    Some(Refusal::new(Guard::Removals, address, reason, removed, origin))
}

/// Refuses more removals in all than a run should have, wherever they are.
pub(super) fn whole(steps: &[Step]) -> Option<Refusal> {
    let removed = steps.iter().filter(removes).count();
    let first = steps.iter().find(removes)?;
    (removed > MOST_OF_ALL).then(|| {
        let reason =
            format!("would remove {} in all; the limit is {MOST_OF_ALL}", count(removed, "entry"));
        let everything = Address::container(EVERYTHING.into());
        Refusal::new(Guard::Removals, &everything, reason, removed, &first.origin)
    })
}

/// Refuses to change too much, or too large a share, of the `all` groups and projects that only a
/// rule with the glob `by` brings in.
pub(super) fn reach(
    by: &Arc<str>,
    origin: &Origin,
    all: usize,
    changed: usize,
    limits: &Limits,
) -> Option<Refusal> {
    let limit = if changed > limits.count {
        limits.count.to_string()
    } else if changed > REACHED && changed as f64 > all as f64 * limits.share {
        format!("{:.0} %", limits.share * 100.0)
    } else {
        return None;
    };
    let reason = format!(
        "would change {changed} of the {all} that exist there and no document declares; the limit is {limit}"
    );
    let address = Address::container(by.clone());
    Some(Refusal::new(Guard::Reach, &address, reason, changed, origin))
}

/// How a step changes the access of a user.
struct Access<'s> {
    step: &'s Step,
    user: Option<u64>,
    before: u8,
    after: u8,
}

/// What the guards that look at single steps refuse.
pub(super) fn steps(
    steps: &[Step],
    live: &Live,
    declared: &Container,
    context: Context<'_>,
) -> Findings {
    let mut findings = access(steps, live, declared, context);
    findings.extend(transfer(steps, live));
    findings.refusals.extend(steps.iter().filter_map(visibility));
    findings.refusals.extend(steps.iter().filter_map(protection));
    findings
}

fn refusal(guard: Guard, step: &Step, reason: String) -> Refusal {
    Refusal::new(guard, &step.address, reason, 1, &step.origin)
}

/// Refuses to leave a container without an owner, and to take away the caller's own access.
fn access(steps: &[Step], live: &Live, declared: &Container, context: Context<'_>) -> Findings {
    let mut findings = Findings::default();
    let changes: Vec<_> = steps.iter().flat_map(accesses).collect();
    let caller = context.caller;
    for change in &changes {
        let is_own = change.user == Some(caller.id);
        if is_own && change.after < change.before && change.after < MAINTAINER {
            let reason = format!(
                "would lower the access of `{}`, the token's owner, from {} to {}",
                escape(&caller.username),
                word(change.before),
                word(change.after)
            );
            findings.refusals.push(refusal(Guard::OwnAccess, change.step, reason));
        }
    }
    let demoted: Vec<_> =
        changes.iter().filter(|change| change.before == OWNER && change.after < OWNER).collect();
    let Some(last) = demoted.last() else { return findings };
    let has_group = context.target.path.contains('/') && context.personal_owner.is_none();
    let above = match context.inherited {
        Some(inherited) => inherited.values().filter(|level| **level >= OWNER).count(),
        None if has_group => {
            findings.ask(Question::Inherited);
            return findings;
        }
        None => 0,
    };
    let owners = owners(live, declared);
    let stays = |user: &&u64| !demoted.iter().any(|change| change.user == Some(**user));
    let raised =
        changes.iter().filter(|change| change.before < OWNER && change.after == OWNER).count();
    let others = above + raised + usize::from(context.personal_owner.is_some());
    if owners.iter().filter(stays).count() + others == 0 {
        let reason =
            format!("would remove the last owner (of {})", owners.len().max(demoted.len()));
        findings.refusals.push(refusal(Guard::LastOwner, last.step, reason));
    }
    findings
}

fn accesses(step: &Step) -> impl Iterator<Item = Access<'_>> {
    step.effects.iter().filter_map(move |effect| match effect {
        Effect::Access { user, before, after, ends } => {
            // Access that ends on a day counts as gone.
            let after = if *ends { 0 } else { *after };
            Some(Access { step, user: *user, before: *before, after })
        }
        _ => None,
    })
}

/// The users who own the container by an entry of its own.
fn owners(live: &Live, declared: &Container) -> Vec<u64> {
    let sections = declared.sections.iter().filter_map(|section| {
        Some((section.of, live.sections.get(section.of.section)?.entries().ok()?))
    });
    let levels = sections.flat_map(|(section, entries)| {
        entries
            .iter()
            .flat_map(move |entry| section.rules.effects(entry.id(), &entry.fields, &entry.fields))
    });
    let owner = |effect| match effect {
        Effect::Access { user: Some(user), before: OWNER, .. } => Some(user),
        _ => None,
    };
    levels.filter_map(owner).collect()
}

/// Refuses to delete a project.
pub(super) fn deletion(step: &Step) -> Refusal {
    let reason = "would delete the project with everything in it; to keep it readable, write `archived: true` instead of `state: absent`";
    refusal(Guard::Deletion, step, reason.to_owned())
}

/// Refuses to move a container to where others have access.
fn transfer(steps: &[Step], live: &Live) -> Findings {
    let mut findings = Findings::default();
    let moved = steps.iter().find_map(|step| {
        let from = step.effects.iter().find_map(|effect| match effect {
            Effect::Transfers { from } => Some(from),
            _ => None,
        });
        Some((step, from?))
    });
    let Some((step, from)) = moved else { return findings };
    let (Some(before), Some(after)) = (&live.inherited_before, &live.inherited) else {
        findings.ask(Question::Inherited);
        findings.ask(Question::InheritedBefore);
        return findings;
    };
    let more = |one: &Inherited, other: &Inherited| {
        let level = |user| other.get(user).copied().unwrap_or(0);
        one.iter().filter(|(user, own)| **own > level(user)).count()
    };
    let (more, less) = (more(after, before), more(before, after));
    let group = |path: &str| path.rsplit_once('/').map_or("the top", |(group, _)| group).to_owned();
    let reason = format!(
        "would move it from {} to {}: {} would inherit more access, {} less, and the variables that it inherits change",
        escape(&group(from)),
        escape(&group(&step.address.path)),
        count(more, "user"),
        count(less, "user")
    );
    // How many users it is about may change while groups above move in the same run.
    findings.refusals.push(refusal(Guard::Transfer, step, reason));
    findings
}

fn word(level: u8) -> &'static str {
    Level::parse(&level.into()).filter(|level| level.number > 0).map_or("none", |level| level.word)
}

/// Refuses to show a container to more people than before.
fn visibility(step: &Step) -> Option<Refusal> {
    let (before, after) = step.effects.iter().find_map(|effect| match effect {
        Effect::Visibility { before, after } => {
            Some((before.as_deref().and_then(visibility_rank), visibility_rank(after)?))
        }
        _ => None,
    })?;
    // What was not seen is taken for the narrowest.
    if step.action != Action::Update || before.unwrap_or(0) >= after {
        return None;
    }
    let reason = format!(
        "would widen visibility from {} to {}",
        before.map_or("unknown", |i| VISIBILITIES[i]),
        VISIBILITIES[after]
    );
    let change = step.changes.iter().find(|change| change.field == "visibility");
    let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
    Some(Refusal::new(Guard::Visibility, &step.address, reason, 1, origin))
}

/// Refuses to protect less.
fn protection(step: &Step) -> Option<Refusal> {
    let how = step.effects.iter().filter_map(|effect| match effect {
        Effect::Weakens(how) => Some(how.as_str()),
        _ => None,
    });
    let how: Vec<_> = how.collect();
    (!how.is_empty())
        .then(|| refusal(Guard::Protection, step, format!("would {}", how.join(", and "))))
}
