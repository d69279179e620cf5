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

use super::approve::WHOLE_RUN;
use crate::{
    address::{Address, group_of},
    cause::Cause,
    desired::{Container, DeclaredSection, Guard},
    diff::{Action, DiffContext, Findings, GuardRefusal, Incomplete, Step},
    kind::{Effect, RefRule, Risk, WeakerProtection, find_weaker_protections},
    level::{AccessLevel, MAINTAINER, OWNER},
    live::{Caller, ExtraFact, InheritedLevels},
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

/// The share counts only from this number of entries on.
const MIN_ENTRIES_FOR_SHARE: usize = 4;
/// The number of included containers that may always change, whatever their share.
const MIN_REACH: usize = 5;
/// The maximum number of entries removed in one run.
const MAX_REMOVALS: usize = 50;

/// True if a step removes an object.
fn is_removal(step: &&Step) -> bool {
    step.action == Action::Delete
}

/// Refuses removals from a section with `live` entries: too many, too large a share, or all of
/// them. A copy counts as a removal, but makes the share neither larger nor smaller: its original
/// stays.
pub(super) fn refuse_removals(
    address: &Address,
    origin: &Origin,
    live: usize,
    steps: &[Step],
    limits: &Limits,
) -> Option<GuardRefusal> {
    let removed = steps.iter().filter(is_removal).count();
    let added_count = steps.iter().filter(|step| step.action == Action::Create).count();
    let copies = steps.iter().filter(|step| step.is_copy).count();
    let (lost_count, originals) = (removed - copies, live - copies);
    let share = lost_count as f64 / originals.max(1) as f64;
    let reason = if lost_count > 0 && lost_count == originals && added_count == 0 {
        if removed == 1 {
            "would remove the only entry".into()
        } else {
            format!("would remove all {}", count(removed, "entry"))
        }
    } else if removed > limits.count {
        format!("would remove {} of {live}; the limit is {}", count(removed, "entry"), limits.count)
    } else if originals >= MIN_ENTRIES_FOR_SHARE && share > limits.share {
        format!(
            "would remove {} of {originals}; the limit is {:.0} %",
            count(lost_count, "entry"),
            limits.share * 100.0
        )
    } else {
        return None;
    };
    Some(GuardRefusal::new(Guard::Removals, address, reason, removed, origin))
}

/// Refuses too many removals in the whole plan.
pub(super) fn refuse_many_removals(steps: &[&Step]) -> Option<GuardRefusal> {
    let removed = steps.iter().copied().filter(is_removal).count();
    let first = steps.iter().copied().find(is_removal)?;
    (removed > MAX_REMOVALS).then(|| {
        let reason =
            format!("would remove {} in all; the limit is {MAX_REMOVALS}; acknowledged with `**`, so are all other removals", count(removed, "entry"));
        let everything = Address::container(WHOLE_RUN.into());
        GuardRefusal::new(Guard::Removals, &everything, reason, removed, &first.origin)
    })
}

/// Refuses changes of too many, or too large a share, of the `included_count` groups and projects
/// that only the rule with this `glob` includes.
pub(super) fn refuse_reach(
    glob: &Arc<str>,
    origin: &Origin,
    included_count: usize,
    changed_count: usize,
    limits: &Limits,
) -> Option<GuardRefusal> {
    let limit = if changed_count > limits.count {
        limits.count.to_string()
    } else if changed_count > MIN_REACH
        && changed_count as f64 > included_count as f64 * limits.share
    {
        format!("{:.0} %", limits.share * 100.0)
    } else {
        return None;
    };
    let reason = format!(
        "would change {changed_count} of {included_count} undeclared groups or projects that the rule includes; the limit is {limit}"
    );
    let address = Address::container(glob.clone());
    Some(GuardRefusal::new(Guard::Reach, &address, reason, changed_count, origin))
}

/// A change of the access of a user, or of the group with which the container is shared.
struct AccessChange<'s> {
    step: &'s Step,
    subject_id: Option<u64>,
    before: u8,
    after: u8,
}

/// The refusals of the guards for single steps.
pub(super) fn check_steps(
    steps: &[Step],
    declared: &Container,
    context: DiffContext<'_>,
) -> Findings {
    let mut guards = GuardedSteps { steps, declared, context, findings: Findings::default() };
    guards.check_access();
    guards.check_caller_shares();
    let unknown = steps.iter().filter_map(|step| refuse_directory_access(step, context.caller));
    guards.findings.refusals.extend(unknown);
    guards.check_transfer();
    guards.findings.refusals.extend(steps.iter().filter_map(refuse_visibility));
    let rules = guards.rule_weaknesses();
    guards
        .findings
        .refusals
        .extend(steps.iter().filter_map(|step| refuse_weaker_protection(step, &rules)));
    guards.findings
}

fn new_refusal(guard: Guard, step: &Step, reason: String) -> GuardRefusal {
    GuardRefusal::new(guard, &step.address, reason, 1, &step.origin)
}

/// The steps of a container, and what guards find in them.
struct GuardedSteps<'a> {
    steps: &'a [Step],
    declared: &'a Container,
    context: DiffContext<'a>,
    findings: Findings,
}

impl<'a> GuardedSteps<'a> {
    fn refuse(&mut self, guard: Guard, step: &Step, reason: String) {
        self.findings.refusals.push(new_refusal(guard, step, reason));
    }

    /// Refuses to lower the access of the caller from `before` to `after`.
    fn refuse_lower(&mut self, step: &Step, before: u8, after: u8, why: &str) {
        let caller = escape(&self.context.caller.username);
        let (before, after) = (level_word(before), level_word(after));
        let reason = format!(
            "would lower the access of `{caller}`, the token's owner, from {before} to {after}{why}"
        );
        self.refuse(Guard::OwnAccess, step, reason);
    }

    /// Refuses to leave a container without an owner, and to remove the caller's own access.
    fn check_access(&mut self) {
        let changes: Vec<_> =
            self.steps.iter().flat_map(|step| access_changes(step, false)).collect();
        let (context, caller) = (self.context, self.context.caller);
        for change in changes.iter().filter(|change| change.subject_id == Some(caller.id)) {
            if change.after < change.before && change.after < MAINTAINER {
                self.refuse_lower(change.step, change.before, change.after, "");
            } else if let Some(role) = lost_role(change.step) {
                let (role, caller) = (escape(role), escape(&caller.username));
                let reason = format!(
                    "would take the custom role `{role}` from `{caller}`, the token's owner"
                );
                self.refuse(Guard::OwnAccess, change.step, reason);
            }
        }
        let demoted: Vec<_> = changes
            .iter()
            .filter(|change| change.before == OWNER && change.after < OWNER)
            .collect();
        let Some(last) = demoted.last() else { return };
        let has_group = context.target.path.contains('/') && context.facts.personal_owner.is_none();
        let inherited_owners = match &context.live.levels_above {
            Some(inherited) => inherited.values().filter(|level| **level >= OWNER).count(),
            None if has_group => return self.findings.add_question(ExtraFact::Inherited),
            None => 0,
        };
        let owners: Vec<u64> = self.live_effects().filter_map(direct_owner).collect();
        let raised =
            changes.iter().filter(|change| change.before < OWNER && change.after == OWNER).count();
        let others =
            inherited_owners + raised + usize::from(context.facts.personal_owner.is_some());
        let mut remaining_owners = owners
            .iter()
            .filter(|user| !demoted.iter().any(|change| change.subject_id == Some(**user)));
        if remaining_owners.next().is_none() && others == 0 {
            let owner_count = owners.len().max(demoted.len());
            let reason = format!("would remove the last owner (of {owner_count})");
            self.refuse(Guard::LastOwner, last.step, reason);
        }
    }

    /// Refuses to remove the caller's own access with a share: the run could then neither finish nor
    /// undo it.
    fn check_caller_shares(&mut self) {
        let caller = self.context.caller;
        let changes: Vec<_> =
            self.steps.iter().flat_map(|step| access_changes(step, true)).collect();
        let lowered = changes.iter().filter(|change| change.after < change.before);
        let Some(first) = lowered.clone().next() else { return };
        if caller.is_administrator || self.context.facts.personal_owner == Some(caller.id) {
            return;
        }
        let Some(access) = &self.context.live.caller_access else {
            return self.findings.add_question(ExtraFact::CallerAccess);
        };
        let unread = access
            .groups
            .values()
            .chain([&access.without_shares])
            .find_map(|level| level.as_ref().err());
        let (Ok(otherwise), None) = (&access.without_shares, unread) else {
            let reason = unread.cloned().unwrap_or_else(|| Cause::new("not read"));
            let reason = reason.context("whether the token's own access depends on this share");
            let address = first.step.address.clone();
            return self.findings.incomplete.push(Incomplete { address, reason });
        };
        let level_in = |group: u64, level: u8| match access.groups.get(&group) {
            Some(Ok(within)) => level.min(*within),
            _ => 0,
        };
        let (mut before, mut after) = (*otherwise, *otherwise);
        for effect in self.live_effects() {
            let Effect::Share { group: Some(group), before: level, .. } = effect else { continue };
            let change = changes.iter().find(|change| change.subject_id == Some(group));
            before = before.max(level_in(group, level));
            after = after.max(level_in(group, change.map_or(level, |change| change.after)));
        }
        let strongest = lowered
            .max_by_key(|change| change.subject_id.map_or(0, |of| level_in(of, change.before)));
        if let Some(change) = strongest.filter(|_| after < before && after < MAINTAINER) {
            let replacement_note =
                if change.step.replaces { ", which is removed and added again" } else { "" };
            let why = format!(": it comes from this share{replacement_note}");
            self.refuse_lower(change.step, before, after, &why);
        }
    }

    /// Refuses to move a container into a group with other members.
    fn check_transfer(&mut self) {
        let moved = self.steps.iter().find_map(|step| {
            let from = step.effects.iter().find_map(|effect| match effect {
                Effect::Transfers { from } => Some(from),
                _ => None,
            });
            Some((step, from?))
        });
        let Some((step, from)) = moved else { return };
        let (Some(before), Some(after)) =
            (&self.context.live.levels_above_former, &self.context.live.levels_above)
        else {
            self.findings.add_question(ExtraFact::Inherited);
            return self.findings.add_question(ExtraFact::InheritedAtFormerPath);
        };
        let count_higher_levels = |one: &InheritedLevels, other: &InheritedLevels| {
            let level = |user| other.get(user).copied().unwrap_or(0);
            one.iter().filter(|(user, level_here)| **level_here > level(user)).count()
        };
        let (more, less) = (count_higher_levels(after, before), count_higher_levels(before, after));
        let group = |path: &str| escape(group_of(path).unwrap_or("the top")).into_owned();
        let reason = format!(
            "would move it from {} to {}: {} would inherit more access, {} less, and the variables that it inherits change",
            group(from),
            group(&step.address.path),
            count(more, "user"),
            count(less, "user")
        );
        // The number of users may change while groups above move in the same run.
        self.refuse(Guard::Transfer, step, reason);
    }

    /// How the rules for branches, and those for tags, are weaker after all steps.
    fn rule_weaknesses(&self) -> Weaknesses {
        let mut found = Weaknesses::new();
        for section in &self.declared.sections {
            let name = section.section.section;
            let steps_here = self.steps.iter().filter(|step| step.address.section == Some(name));
            let changes: Vec<_> = steps_here.flat_map(rule_changes).collect();
            if changes.is_empty() {
                continue;
            }
            let live_rules = self.section_effects(section).filter_map(|effect| match effect {
                Effect::Rule { before, .. } => before,
                _ => None,
            });
            let before: Vec<RefRule> = live_rules.map(|rule| *rule).collect();
            let changed =
                changes.iter().filter_map(|(was, _)| Some(was.as_ref()?.pattern.as_str()));
            let changed: BTreeSet<_> = changed.collect();
            let stays = before.iter().filter(|rule| !changed.contains(rule.pattern.as_str()));
            let new = changes.iter().filter_map(|(_, is)| *is);
            let after: Vec<RefRule> = stays.chain(new).cloned().collect();
            for WeakerProtection { pattern: by, description: how } in
                find_weaker_protections(&before, &after)
            {
                found.entry((name, by)).or_default().push(how);
            }
        }
        found
    }

    /// The effects of the declared sections as they are live.
    fn live_effects(&self) -> impl Iterator<Item = Effect> {
        self.declared.sections.iter().flat_map(|section| self.section_effects(section))
    }

    fn section_effects(&self, section: &'a DeclaredSection) -> impl Iterator<Item = Effect> + 'a {
        self.context.live.entries(section.section.section).into_iter().flatten().flat_map(|entry| {
            section.section.rules().effects(entry.id(), entry.fields.raw(), entry.fields.raw())
        })
    }
}

/// The custom role that the user of a step loses.
fn lost_role(step: &Step) -> Option<&str> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Access { lost_role, .. } => lost_role.as_deref(),
        _ => None,
    })
}

/// The user, if one owns the container directly.
fn direct_owner(effect: Effect) -> Option<u64> {
    match effect {
        Effect::Access { user, before: OWNER, .. } => user,
        _ => None,
    }
}

/// Refuses to lower the access of members of an external directory.
fn refuse_directory_access(step: &Step, caller: &Caller) -> Option<GuardRefusal> {
    let lowered_levels = step.effects.iter().find_map(|effect| match effect {
        Effect::Share { group: None, before, after, .. } if after < before => {
            Some((*before, *after))
        }
        _ => None,
    });
    let (before, after) = lowered_levels.filter(|_| !caller.is_administrator)?;
    let (caller, before, after) = (escape(&caller.username), level_word(before), level_word(after));
    let reason = format!(
        "would lower access from {before} to {after} for people whom only a directory lists; `{caller}`, the token's owner, may be one of them"
    );
    Some(new_refusal(Guard::OwnAccess, step, reason))
}

/// The changes of access in a step: of groups `by_share`, or of users.
fn access_changes(step: &Step, by_share: bool) -> impl Iterator<Item = AccessChange<'_>> {
    step.effects.iter().filter_map(move |effect| {
        // Access with an end date counts as gone, and a replaced share takes it away for a while.
        let (subject, before, after, is_gone) = match effect {
            Effect::Share { group: Some(group), before, after, ends } if by_share => {
                (Some(*group), before, after, *ends || step.replaces)
            }
            Effect::Access { user, before, after, ends, .. } if !by_share => {
                (*user, before, after, *ends)
            }
            _ => return None,
        };
        Some(AccessChange {
            step,
            subject_id: subject,
            before: *before,
            after: if is_gone { 0 } else { *after },
        })
    })
}

/// Refuses to delete a project.
pub(super) fn refuse_deletion(step: &Step) -> GuardRefusal {
    let reason = "would delete the project with everything in it; to keep it readable, write `archived: true` instead of `state: absent`";
    new_refusal(Guard::Deletion, step, reason.to_owned())
}

fn level_word(level: u8) -> &'static str {
    AccessLevel::parse(&level.into())
        .filter(|level| level.number > 0)
        .map_or("none", |level| level.word)
}

/// Refuses to show a container, or a part of it, to more people than before.
fn refuse_visibility(step: &Step) -> Option<GuardRefusal> {
    let how: Vec<_> = risk_texts(step, &[Risk::Shows]).collect();
    let origin = step.change("visibility").and_then(|change| change.origin.as_ref());
    let origin = origin.unwrap_or(&step.origin);
    let reason = format!("would {}", how.join(", and "));
    (!how.is_empty())
        .then(|| GuardRefusal::new(Guard::Visibility, &step.address, reason, 1, origin))
}

/// Refuses to open a new container to something outside. It has no protection yet that could
/// become weaker.
pub(super) fn refuse_openings(steps: &[Step]) -> impl Iterator<Item = GuardRefusal> {
    steps.iter().filter_map(|step| {
        protection_refusal(step, &risk_texts(step, &[Risk::Opens]).collect::<Vec<_>>())
    })
}

/// The texts of the risks of a step that are `wanted`.
fn risk_texts<'s>(step: &'s Step, wanted: &'s [Risk]) -> impl Iterator<Item = &'s str> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Risk(risk, how) if wanted.contains(risk) => Some(how.as_str()),
        _ => None,
    })
}

fn protection_refusal(step: &Step, how: &[&str]) -> Option<GuardRefusal> {
    (!how.is_empty())
        .then(|| new_refusal(Guard::Protection, step, format!("would {}", how.join(", and "))))
}

/// Refuses to weaken protection, also by `rules` for branches and tags.
fn refuse_weaker_protection(step: &Step, rules: &Weaknesses) -> Option<GuardRefusal> {
    let risk_text = risk_texts(step, &[Risk::Weakens, Risk::Opens]);
    let changed_rules = rule_changes(step).flat_map(|(before, after)| [before, after]).flatten();
    let mut patterns: Vec<_> = changed_rules.map(|rule| &*rule.pattern).collect();
    patterns.dedup();
    let section = step.address.section.unwrap_or_default();
    let by_rules = patterns.iter().filter_map(|by| rules.get(&(section, (*by).to_owned())));
    let mut how: Vec<_> = risk_text.chain(by_rules.flatten().map(String::as_str)).collect();
    how.dedup();
    protection_refusal(step, &how)
}

/// The ways in which rules get weaker, by section and pattern.
type Weaknesses = BTreeMap<(&'static str, String), Vec<String>>;

fn rule_changes(step: &Step) -> impl Iterator<Item = (Option<&RefRule>, Option<&RefRule>)> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Rule { before, after } => Some((before.as_deref(), after.as_deref())),
        _ => None,
    })
}
