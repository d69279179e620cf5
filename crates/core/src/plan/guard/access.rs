//! Guards of access: the caller's own, and that of the last owner.

use super::{GuardedSteps, new_refusal};
use crate::{
    cause::Cause,
    desired::Guard,
    diff::{GuardRefusal, Incomplete, Step},
    kind::Effect,
    level::{AccessLevel, MAINTAINER, OWNER},
    live::{Caller, ExtraFact},
    text::escape,
};

/// A change of the access level of a user, or of a group with which the container is shared.
struct AccessChange<'s> {
    step: &'s Step,
    subject_id: Option<u64>,
    before: u8,
    after: u8,
}

impl GuardedSteps<'_> {
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
    pub(super) fn check_access(&mut self) {
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
            None if has_group => return self.findings.add_missing_fact(ExtraFact::LevelsAbove),
            None => 0,
        };
        let direct_owners = self.live_effects().filter_map(|effect| match effect {
            Effect::Access { user, before: OWNER, .. } => user,
            _ => None,
        });
        let owners: Vec<u64> = direct_owners.collect();
        let raised_count =
            changes.iter().filter(|change| change.before < OWNER && change.after == OWNER).count();
        let other_owners =
            inherited_owners + raised_count + usize::from(context.facts.personal_owner.is_some());
        let mut remaining_owners = owners
            .iter()
            .filter(|user| !demoted.iter().any(|change| change.subject_id == Some(**user)));
        if remaining_owners.next().is_none() && other_owners == 0 {
            let owner_count = owners.len().max(demoted.len());
            let reason = format!("would remove the last owner (of {owner_count})");
            self.refuse(Guard::LastOwner, last.step, reason);
        }
    }

    /// Refuses to remove the caller's own access with a share: the run could then neither finish nor
    /// undo it.
    pub(super) fn check_caller_shares(&mut self) {
        let caller = self.context.caller;
        let changes: Vec<_> =
            self.steps.iter().flat_map(|step| access_changes(step, true)).collect();
        let lowered = changes.iter().filter(|change| change.after < change.before);
        let Some(first) = lowered.clone().next() else { return };
        if caller.is_administrator || self.context.facts.personal_owner == Some(caller.id) {
            return;
        }
        let Some(access) = &self.context.live.caller_access else {
            return self.findings.add_missing_fact(ExtraFact::CallerAccess);
        };
        let unread = access
            .groups
            .values()
            .chain([&access.without_shares])
            .find_map(|level| level.as_ref().err());
        let (Ok(level_without_shares), None) = (&access.without_shares, unread) else {
            let reason = unread.cloned().unwrap_or_else(|| Cause::new("not read"));
            let reason = reason.context("whether the token's own access depends on this share");
            let address = first.step.address.clone();
            let origin = Some(first.step.origin.clone());
            return self.findings.incomplete.push(Incomplete { address, reason, origin });
        };
        let level_in = |group: u64, level: u8| match access.groups.get(&group) {
            Some(Ok(group_level)) => level.min(*group_level),
            _ => 0,
        };
        let (mut before, mut after) = (*level_without_shares, *level_without_shares);
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

    /// The effects of the declared sections as they are live.
    fn live_effects(&self) -> impl Iterator<Item = Effect> {
        self.declared.sections.iter().flat_map(|section| self.section_effects(section))
    }
}

/// The custom role that the user of a step loses.
fn lost_role(step: &Step) -> Option<&str> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Access { lost_role, .. } => lost_role.as_deref(),
        _ => None,
    })
}

/// Refuses to lower the access of an external directory: its members are unknown, and the caller may be
/// one.
pub(super) fn refuse_directory_access(step: &Step, caller: &Caller) -> Option<GuardRefusal> {
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

/// The changes of access in a step: with `is_share` those of groups, otherwise those of users.
fn access_changes(step: &Step, is_share: bool) -> impl Iterator<Item = AccessChange<'_>> {
    step.effects.iter().filter_map(move |effect| {
        // Access with an end date counts as removed. So does a replaced share: it is missing for a moment.
        let (subject_id, before, after, is_gone) = match effect {
            Effect::Share { group: Some(group), before, after, gets_end_date: ends }
                if is_share =>
            {
                (Some(*group), before, after, *ends || step.replaces)
            }
            Effect::Access { user, before, after, gets_end_date: ends, .. } if !is_share => {
                (*user, before, after, *ends)
            }
            _ => return None,
        };
        Some(AccessChange {
            step,
            subject_id,
            before: *before,
            after: if is_gone { 0 } else { *after },
        })
    })
}

fn level_word(level: u8) -> &'static str {
    AccessLevel::parse(&level.into())
        .filter(|level| level.number > 0)
        .map_or("none", |level| level.word)
}
