//! Guards: refuse dangerous steps until they are acknowledged.
//!
//! They check the effects of steps ([`Effect`]) and name no section. A guard refuses with numbers
//! and prints the acknowledgement to pass. There is no way to switch all of them off.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approve::EVERYTHING;
use crate::{
    address::{Address, group_of},
    cause::Cause,
    desired::{Container, Guard},
    diff::{Action, Context, Findings, Incomplete, Refusal, Step},
    kind::{Effect, RefRule, Risk, Weaker, weaker},
    level::{Level, MAINTAINER, OWNER},
    live::{Caller, Inherited, Live, Question},
    origin::Origin,
    text::{count, escape},
};

/// How many objects may be removed, or reached by a rule, in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The maximum number of entries removed from one section, or of changed containers that one
    /// rule includes.
    pub count: usize,
    /// The maximum share of either, from 0 to 1; a few are always allowed.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { count: 5, share: 0.25 }
    }
}

impl Limits {
    /// The limits for containers that only a rule includes.
    pub const REACH: Self = Self { count: 50, share: 0.1 };
}

/// In a smaller collection one removal is a large share and means nothing.
const SHARE_FROM: usize = 4;
/// This many containers that a rule includes may change, however few there are.
const REACHED: usize = 5;
/// The maximum number of entries removed in one run.
const MOST_OF_ALL: usize = 50;

/// Whether a step removes an object.
fn removes(step: &&Step) -> bool {
    step.action == Action::Delete
}

/// Refuses removals from a section with `live` entries: too many, too large a share, or all of
/// them. A copy counts as a removal, but makes the share neither larger nor smaller: its original
/// stays.
pub(super) fn removals(
    address: &Address,
    origin: &Origin,
    live: usize,
    steps: &[Step],
    limits: &Limits,
) -> Option<Refusal> {
    let removed = steps.iter().filter(removes).count();
    let added = steps.iter().filter(|step| step.action == Action::Create).count();
    let copies = steps.iter().filter(|step| step.is_copy).count();
    let (lost, originals) = (removed - copies, live - copies);
    let share = lost as f64 / originals.max(1) as f64;
    let reason = if lost > 0 && lost == originals && added == 0 {
        if removed == 1 {
            "would remove the only entry".into()
        } else {
            format!("would remove all {}", count(removed, "entry"))
        }
    } else if removed > limits.count {
        format!("would remove {} of {live}; the limit is {}", count(removed, "entry"), limits.count)
    } else if originals >= SHARE_FROM && share > limits.share {
        format!(
            "would remove {} of {originals}; the limit is {:.0} %",
            count(lost, "entry"),
            limits.share * 100.0
        )
    } else {
        return None;
    };
    Some(Refusal::new(Guard::Removals, address, reason, removed, origin))
}

/// Refuses too many removals in the whole plan.
pub(super) fn whole(steps: &[&Step]) -> Option<Refusal> {
    let removed = steps.iter().copied().filter(removes).count();
    let first = steps.iter().copied().find(removes)?;
    (removed > MOST_OF_ALL).then(|| {
        let reason =
            format!("would remove {} in all; the limit is {MOST_OF_ALL}; acknowledged with `**`, so are all other removals", count(removed, "entry"));
        let everything = Address::container(EVERYTHING.into());
        Refusal::new(Guard::Removals, &everything, reason, removed, &first.origin)
    })
}

/// Refuses changes of too many, or too large a share, of the `all` groups and projects that only a
/// rule with the glob `by` includes.
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

/// A change of the access of a user, or of the group with which the container is shared.
struct Access<'s> {
    step: &'s Step,
    who: Option<u64>,
    before: u8,
    after: u8,
}

impl Access<'_> {
    /// Refuses to lower the access of the caller from `before` to `after`.
    fn refusal(&self, caller: &Caller, before: u8, after: u8, why: &str) -> Refusal {
        let (caller, before, after) = (escape(&caller.username), word(before), word(after));
        let reason = format!(
            "would lower the access of `{caller}`, the token's owner, from {before} to {after}{why}"
        );
        refusal(Guard::OwnAccess, self.step, reason)
    }
}

/// The refusals of the guards for single steps.
pub(super) fn steps(
    steps: &[Step],
    live: &Live,
    declared: &Container,
    context: Context<'_>,
) -> Findings {
    let mut findings = access(steps, live, declared, context);
    findings.extend(own_shares(steps, live, declared, context));
    let unknown = steps.iter().filter_map(|step| of_unknown_people(step, context.caller));
    findings.refusals.extend(unknown);
    findings.extend(transfer(steps, live));
    findings.refusals.extend(steps.iter().filter_map(visibility));
    let rules = rules(steps, live, declared);
    findings.refusals.extend(steps.iter().filter_map(|step| protection(step, &rules)));
    findings
}

fn refusal(guard: Guard, step: &Step, reason: String) -> Refusal {
    Refusal::new(guard, &step.address, reason, 1, &step.origin)
}

/// Refuses to leave a container without an owner, and to remove the caller's own access.
fn access(steps: &[Step], live: &Live, declared: &Container, context: Context<'_>) -> Findings {
    let mut findings = Findings::default();
    let changes: Vec<_> = steps.iter().flat_map(|step| accesses(step, false)).collect();
    let caller = context.caller;
    for change in &changes {
        let is_own = change.who == Some(caller.id);
        if is_own && change.after < change.before && change.after < MAINTAINER {
            let lower = change.refusal(caller, change.before, change.after, "");
            findings.refusals.push(lower);
        } else if is_own && let Some(role) = lost_role(change.step) {
            let (role, caller) = (escape(role), escape(&caller.username));
            let reason =
                format!("would take the custom role `{role}` from `{caller}`, the token's owner");
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
    let stays = |user: &&u64| !demoted.iter().any(|change| change.who == Some(**user));
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

/// The custom role that the user of a step loses.
fn lost_role(step: &Step) -> Option<&str> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Access { lost_role, .. } => lost_role.as_deref(),
        _ => None,
    })
}

/// Refuses to remove the caller's own access with a share: the run could then neither finish nor
/// undo it.
fn own_shares(steps: &[Step], live: &Live, declared: &Container, context: Context<'_>) -> Findings {
    let mut findings = Findings::default();
    let caller = context.caller;
    let changes: Vec<_> = steps.iter().flat_map(|step| accesses(step, true)).collect();
    let is_lower = |change: &&Access<'_>| change.after < change.before;
    let Some(first) = changes.iter().find(is_lower) else { return findings };
    if caller.administrator || context.personal_owner == Some(caller.id) {
        return findings;
    }
    let Some(own) = &live.own else {
        findings.ask(Question::Own);
        return findings;
    };
    let unread = own.groups.values().chain([&own.otherwise]).find_map(|level| level.as_ref().err());
    let (Ok(otherwise), None) = (&own.otherwise, unread) else {
        let reason = unread.cloned().unwrap_or_else(|| Cause::new("not read"));
        let reason = reason.context("whether the token's own access depends on this share");
        findings.incomplete.push(Incomplete { address: first.step.address.clone(), reason });
        return findings;
    };
    let by = |group: u64, level: u8| match own.groups.get(&group) {
        Some(Ok(within)) => level.min(*within),
        _ => 0,
    };
    let there: Vec<_> = shared(live, declared).collect();
    let before = there.iter().map(|(group, level)| by(*group, *level)).max().max(Some(*otherwise));
    let after = there.iter().map(|(group, level)| {
        let change = changes.iter().find(|change| change.who == Some(*group));
        by(*group, change.map_or(*level, |change| change.after))
    });
    let (before, after) = (before.unwrap_or(0), after.max().max(Some(*otherwise)).unwrap_or(0));
    let strongest = changes
        .iter()
        .filter(is_lower)
        .max_by_key(|c| c.who.map_or(0, |group| by(group, c.before)));
    if let Some(change) = strongest.filter(|_| after < before && after < MAINTAINER) {
        let how = if change.step.replaces { ", which is removed to be added anew" } else { "" };
        let why = format!(": it comes from this share{how}");
        findings.refusals.push(change.refusal(caller, before, after, &why));
    }
    findings
}

/// Refuses to lower the access of members of an external directory.
fn of_unknown_people(step: &Step, caller: &Caller) -> Option<Refusal> {
    let lower = |effect: &Effect| match effect {
        Effect::Share { group: None, before, after, .. } if after < before => {
            Some((*before, *after))
        }
        _ => None,
    };
    let (before, after) = step.effects.iter().find_map(lower).filter(|_| !caller.administrator)?;
    let (caller, before, after) = (escape(&caller.username), word(before), word(after));
    let reason = format!(
        "would lower access from {before} to {after} for people whom only a directory knows; `{caller}`, the token's owner, may be one of them"
    );
    Some(refusal(Guard::OwnAccess, step, reason))
}

/// The groups that the container is shared with, and their levels.
fn shared(live: &Live, declared: &Container) -> impl Iterator<Item = (u64, u8)> {
    effects_as_is(live, declared).filter_map(|effect| match effect {
        Effect::Share { group: Some(group), before, .. } => Some((group, before)),
        _ => None,
    })
}

/// The effects of the declared sections as they are live.
fn effects_as_is(live: &Live, declared: &Container) -> impl Iterator<Item = Effect> {
    let sections = declared
        .sections
        .iter()
        .filter_map(|section| Some((section.of, live.entries(section.of.section)?)));
    sections.flat_map(|(section, entries)| {
        entries.iter().flat_map(move |entry| {
            section.rules.effects(entry.id(), entry.fields.raw(), entry.fields.raw())
        })
    })
}

/// The changes of access in a step: of groups `by_share`, or of users.
fn accesses(step: &Step, by_share: bool) -> impl Iterator<Item = Access<'_>> {
    step.effects.iter().filter_map(move |effect| {
        // Access with an end date counts as gone, and a replaced share takes it away for a while.
        let (who, before, after, is_gone) = match effect {
            Effect::Share { group: Some(group), before, after, ends } if by_share => {
                (Some(*group), before, after, *ends || step.replaces)
            }
            Effect::Access { user, before, after, ends, .. } if !by_share => {
                (*user, before, after, *ends)
            }
            _ => return None,
        };
        Some(Access { step, who, before: *before, after: if is_gone { 0 } else { *after } })
    })
}

/// The users who own the container directly.
fn owners(live: &Live, declared: &Container) -> Vec<u64> {
    let owner = |effect| match effect {
        Effect::Access { user: Some(user), before: OWNER, .. } => Some(user),
        _ => None,
    };
    effects_as_is(live, declared).filter_map(owner).collect()
}

/// Refuses to delete a project.
pub(super) fn deletion(step: &Step) -> Refusal {
    let reason = "would delete the project with everything in it; to keep it readable, write `archived: true` instead of `state: absent`";
    refusal(Guard::Deletion, step, reason.to_owned())
}

/// Refuses to move a container into a group with other members.
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
    let group = |path: &str| group_of(path).unwrap_or("the top").to_owned();
    let reason = format!(
        "would move it from {} to {}: {} would inherit more access, {} less, and the variables that it inherits change",
        escape(&group(from)),
        escape(&group(&step.address.path)),
        count(more, "user"),
        count(less, "user")
    );
    // The number of users may change while groups above move in the same run.
    findings.refusals.push(refusal(Guard::Transfer, step, reason));
    findings
}

fn word(level: u8) -> &'static str {
    Level::parse(&level.into()).filter(|level| level.number > 0).map_or("none", |level| level.word)
}

/// Refuses to show a container, or a part of it, to more people than before.
fn visibility(step: &Step) -> Option<Refusal> {
    let how: Vec<_> = risks(step, &[Risk::Shows]).collect();
    let origin = step.change("visibility").and_then(|change| change.origin.as_ref());
    let origin = origin.unwrap_or(&step.origin);
    let reason = format!("would {}", how.join(", and "));
    (!how.is_empty()).then(|| Refusal::new(Guard::Visibility, &step.address, reason, 1, origin))
}

/// Refuses to open a new container to something outside. It has no protection yet that could
/// become weaker.
pub(super) fn openings(steps: &[Step]) -> impl Iterator<Item = Refusal> {
    steps
        .iter()
        .filter_map(|step| weaker_by(step, &risks(step, &[Risk::Opens]).collect::<Vec<_>>()))
}

/// How a step is one of `asked`.
fn risks<'s>(step: &'s Step, asked: &'s [Risk]) -> impl Iterator<Item = &'s str> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Risk(risk, how) if asked.contains(risk) => Some(how.as_str()),
        _ => None,
    })
}

fn weaker_by(step: &Step, how: &[&str]) -> Option<Refusal> {
    let reason = || format!("would {}", how.join(", and "));
    (!how.is_empty()).then(|| refusal(Guard::Protection, step, reason()))
}

/// Refuses to weaken protection, also by `rules` for branches and tags.
fn protection(step: &Step, rules: &Weaknesses) -> Option<Refusal> {
    let how = risks(step, &[Risk::Weakens, Risk::Opens]);
    let of_rules = rules_of(step).flat_map(|(before, after)| [before, after]).flatten();
    let mut patterns: Vec<_> = of_rules.map(|rule| &*rule.pattern).collect();
    patterns.dedup();
    let section = step.address.section.unwrap_or_default();
    let by_rules = patterns.iter().filter_map(|by| rules.get(&(section, (*by).to_owned())));
    let mut how: Vec<_> = how.chain(by_rules.flatten().map(String::as_str)).collect();
    how.dedup();
    weaker_by(step, &how)
}

/// The ways in which rules get weaker, by section and pattern.
type Weaknesses = BTreeMap<(&'static str, String), Vec<String>>;

/// How the rules for branches, and those for tags, are weaker after all steps.
fn rules(steps: &[Step], live: &Live, declared: &Container) -> Weaknesses {
    let mut found = Weaknesses::new();
    for section in &declared.sections {
        let name = section.of.section;
        let own = || steps.iter().filter(|step| step.address.section == Some(name));
        if !own().flat_map(rules_of).any(|_| true) {
            continue;
        }
        let there = live.entries(name).into_iter().flatten().flat_map(|entry| {
            let effects = section.of.rules.effects(None, entry.fields.raw(), entry.fields.raw());
            effects.into_iter().filter_map(|effect| match effect {
                Effect::Rule { before, .. } => before,
                _ => None,
            })
        });
        let before: Vec<RefRule> = there.map(|rule| *rule).collect();
        let changes = || own().flat_map(rules_of);
        let changed = changes().filter_map(|(was, _)| Some(was?.pattern.as_str()));
        let changed: BTreeSet<_> = changed.collect();
        let stays = before.iter().filter(|rule| !changed.contains(rule.pattern.as_str()));
        let after: Vec<RefRule> =
            stays.chain(changes().filter_map(|(_, is)| is)).cloned().collect();
        for Weaker { by, how } in weaker(&before, &after) {
            found.entry((name, by)).or_default().push(how);
        }
    }
    found
}

fn rules_of(step: &Step) -> impl Iterator<Item = (Option<&RefRule>, Option<&RefRule>)> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Rule { before, after } => Some((before.as_deref(), after.as_deref())),
        _ => None,
    })
}
