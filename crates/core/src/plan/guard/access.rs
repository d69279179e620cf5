//! Guards against the loss of the caller's own access, and against the loss of the last owner of a
//! container.

use super::{GuardChecker, new_refusal};
use crate::{
    cause::Cause,
    desired::Guard,
    diff::{GuardRefusal, Incomplete, Step},
    kind::Effect,
    level::{AccessLevel, MAINTAINER, OWNER},
    live::{Caller, ExtraFact},
    text::escape,
};

/// A change of the access level of a user, or of a group with which the container is shared. The
/// level 0 means no access.
struct AccessChange<'s> {
    step: &'s Step,
    subject_id: Option<u64>,
    before: u8,
    after: u8,
}

impl GuardChecker<'_> {
    /// Refuses to lower the access of the caller from `before` to `after`.
    fn refuse_lower_access(&mut self, step: &Step, before: u8, after: u8, suffix: &str) {
        let caller = escape(&self.context.caller.username);
        let (before, after) = (level_word(before), level_word(after));
        let reason = format!(
            "would lower the access of `{caller}`, the token's owner, from {before} to {after}{suffix}"
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
                self.refuse_lower_access(change.step, change.before, change.after, "");
            } else if let Some(role) = lost_role(change.step) {
                let (role, caller) = (escape(role), escape(&caller.username));
                let reason = format!(
                    "would take the custom role `{role}` from `{caller}`, the token's owner"
                );
                self.refuse(Guard::OwnAccess, change.step, reason);
            }
        }
        let mut demotions = changes.iter().collect::<Vec<_>>();
        demotions.retain(|change| change.before == OWNER && change.after < OWNER);
        let Some(last_demotion) = demotions.last() else { return };
        let inherited_owner_count = match &context.live.levels_above {
            Some(levels) => levels.values().filter(|level| **level >= OWNER).count(),
            None if context.has_group_above() => {
                return self.findings.add_missing_fact(ExtraFact::LevelsAbove);
            }
            None => 0,
        };
        let direct_owners = self.live_effects().filter_map(|effect| match effect {
            Effect::Access { user_id: user, before: OWNER, .. } => user,
            _ => None,
        });
        let owner_ids: Vec<u64> = direct_owners.collect();
        let new_owner_count =
            changes.iter().filter(|change| change.before < OWNER && change.after == OWNER).count();
        let other_owner_count = inherited_owner_count
            + new_owner_count
            + usize::from(context.facts.personal_owner_id.is_some());
        let mut remaining_ids = owner_ids
            .iter()
            .filter(|user| !demotions.iter().any(|change| change.subject_id == Some(**user)));
        if remaining_ids.next().is_none() && other_owner_count == 0 {
            let owner_count = owner_ids.len().max(demotions.len());
            let reason = match owner_count {
                1 => "would remove the last owner".to_owned(),
                _ => format!("would remove all {owner_count} owners"),
            };
            self.refuse(Guard::LastOwner, last_demotion.step, reason);
        }
    }

    /// Refuses to lower or remove a share through which the caller has access: without that access, the run can
    /// neither finish nor undo the change.
    pub(super) fn check_caller_shares(&mut self) {
        let caller = self.context.caller;
        let changes: Vec<_> =
            self.steps.iter().flat_map(|step| access_changes(step, true)).collect();
        let reductions = changes.iter().filter(|change| change.after < change.before);
        let Some(first_reduction) = reductions.clone().next() else { return };
        if caller.is_administrator || self.context.facts.personal_owner_id == Some(caller.id) {
            return;
        }
        let Some(access) = &self.context.live.caller_access else {
            return self.findings.add_missing_fact(ExtraFact::CallerAccess);
        };
        let mut levels = access.group_levels.values().chain([&access.level_without_shares]);
        let unread_cause = levels.find_map(|level| level.as_ref().err());
        let (Ok(level_without_shares), None) = (&access.level_without_shares, unread_cause) else {
            let reason = unread_cause.cloned().unwrap_or_else(|| Cause::new("not read"));
            let reason = reason
                .with_context("cannot tell whether the token's own access depends on this share");
            let address = first_reduction.step.address.clone();
            let origin = Some(first_reduction.step.origin.clone());
            return self.findings.incomplete.push(Incomplete { address, reason, origin });
        };
        let level_through = |group_id: u64, level: u8| match access.group_levels.get(&group_id) {
            Some(Ok(group_level)) => level.min(*group_level),
            _ => 0,
        };
        let (mut level_before, mut level_after) = (*level_without_shares, *level_without_shares);
        for effect in self.live_effects() {
            let Effect::Share { group_id: Some(group), before: level, .. } = effect else {
                continue;
            };
            let change = changes.iter().find(|change| change.subject_id == Some(group));
            level_before = level_before.max(level_through(group, level));
            level_after =
                level_after.max(level_through(group, change.map_or(level, |change| change.after)));
        }
        let main_reduction = reductions.max_by_key(|change| {
            change.subject_id.map_or(0, |id| level_through(id, change.before))
        });
        if let Some(change) =
            main_reduction.filter(|_| level_after < level_before && level_after < MAINTAINER)
        {
            let replacement_note =
                if change.step.replaces { ", which is removed and added again" } else { "" };
            let suffix = format!(": it comes from this share{replacement_note}");
            self.refuse_lower_access(change.step, level_before, level_after, &suffix);
        }
    }

    /// The effects of the live entries in the declared sections.
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

/// Refuses to lower the access of the members of an external directory. The members are unknown,
/// and the caller may be one of them.
pub(super) fn refuse_directory_access(step: &Step, caller: &Caller) -> Option<GuardRefusal> {
    let level_change = step.effects.iter().find_map(|effect| match effect {
        Effect::Share { group_id: None, before, after, .. } if after < before => {
            Some((*before, *after))
        }
        _ => None,
    });
    let (before, after) = level_change.filter(|_| !caller.is_administrator)?;
    let (caller, before, after) = (escape(&caller.username), level_word(before), level_word(after));
    let reason = format!(
        "would lower access from {before} to {after} for the members of an external directory; `{caller}`, the token's owner, may be one of them"
    );
    Some(new_refusal(Guard::OwnAccess, step, reason))
}

/// The changes of access in a step: of groups if `is_share` is true, otherwise of users.
fn access_changes(step: &Step, is_share: bool) -> impl Iterator<Item = AccessChange<'_>> {
    step.effects.iter().filter_map(move |effect| {
        // Treat access that gets an end date as removed. Treat a replaced share the same way: between its removal and
        // its creation there is no access.
        let (subject_id, before, after, is_removed) = match effect {
            Effect::Share { group_id: Some(group), before, after, gets_end_date } if is_share => {
                (Some(*group), before, after, *gets_end_date || step.replaces)
            }
            Effect::Access { user_id: user, before, after, gets_end_date, .. } if !is_share => {
                (*user, before, after, *gets_end_date)
            }
            _ => return None,
        };
        let (before, after) = (*before, if is_removed { 0 } else { *after });
        Some(AccessChange { step, subject_id, before, after })
    })
}

fn level_word(level: u8) -> &'static str {
    AccessLevel::parse(&level.into())
        .filter(|level| level.number > 0)
        .map_or("none", |level| level.word)
}
