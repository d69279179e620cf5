//! Orders the steps that change the access of users. Access is granted before a rule names the user, and removed
//! only after no rule names the user any more.

use std::collections::{BTreeSet, HashMap};

use super::{StepRelations, addresses_by_path, values_above};
use crate::{
    address::{Address, groups_above},
    diff::{
        Note, Problem, Reason, Step,
        texts::{self, placeholders},
    },
    field::Scope,
    kind::{Capability, Effect, Outsider},
    level::{AccessLevel, MAINTAINER},
    plan::grants::UserRule,
    text,
};

/// Orders steps that change access and steps that need it, and refuses conflicts between them.
pub(super) fn order_access(steps: &[Step]) -> StepRelations {
    let mut relations = StepRelations::default();
    let grants = collect_changes(steps, |_, change| change.level_before < change.level_after);
    let reductions = collect_changes(steps, |scope, change| {
        scope == Scope::Group && change.level_before > change.level_after
    });
    order_needed_access(steps, &grants, &mut relations);
    refuse_outsiders(steps, &grants, &mut relations);
    order_removals(steps, &grants, &reductions, &mut relations);
    order_lower_levels(steps, &grants, &reductions, &mut relations);
    relations
}

/// The change of a user's level in a container by a step. The level 0 means no access.
struct AccessChange<'s> {
    /// The position of the step.
    index: usize,
    address: &'s Address,
    level_before: u8,
    level_after: u8,
    /// The level from the group above before the run.
    inherited_level: u8,
}

/// The changes of the level of each user, by the path of their container in lower case.
type ChangesByUser<'s> = HashMap<u64, ChangesByPath<'s>>;
type ChangesByPath<'s> = HashMap<String, AccessChange<'s>>;

fn collect_changes(
    steps: &[Step],
    is_wanted: impl Fn(Scope, &AccessChange<'_>) -> bool,
) -> ChangesByUser<'_> {
    let mut changes = ChangesByUser::new();
    for (index, step) in steps.iter().enumerate() {
        for (user_id, level_before, level_after) in step.user_access_changes() {
            let (address, inherited_level) = (&step.address, step.inherited_level());
            let change =
                AccessChange { index, address, level_before, level_after, inherited_level };
            if is_wanted(step.scope, &change) {
                let path = step.address.path.to_lowercase();
                changes.entry(user_id).or_default().insert(path, change);
            }
        }
    }
    changes
}

/// The grants that give access to the container at `path` through a group above. For an `outsider`,
/// also the grants in groups with which the container is shared, and in groups above these.
fn find_grants<'g>(
    grants: &'g ChangesByPath<'g>,
    path: &str,
    outsider: Option<&'g Outsider>,
) -> impl Iterator<Item = &'g AccessChange<'g>> {
    let groups = outsider.into_iter().flat_map(|outsider| outsider.sharing_groups.iter());
    let shared_grants =
        groups.flat_map(|group| grants.get(group).into_iter().chain(values_above(grants, group)));
    values_above(grants, path).chain(shared_grants)
}

/// Adds edges so that users get access, in a group above or through shares, before a rule names
/// them.
fn order_needed_access(steps: &[Step], grants: &ChangesByUser<'_>, relations: &mut StepRelations) {
    let reason = Capability::NamedAccess.order_reason(Scope::Project);
    let raised_shares =
        addresses_by_path(steps, |step| step.scope == Scope::Group && raises_share(step));
    for (index, step) in steps.iter().enumerate() {
        let path = &step.address.path;
        for (user_id, outsider) in step.users_needing_access() {
            let Some(user_grants) = grants.get(&user_id) else { continue };
            for grant in find_grants(user_grants, path, outsider)
                .filter(|grant| grant.level_before == 0 || outsider.is_some())
            {
                relations.add_edge(index, grant.address, reason);
            }
        }
        if step.users_needing_access().next().is_some() {
            values_above(&raised_shares, path)
                .flatten()
                .for_each(|grant_address| relations.add_edge(index, grant_address, reason));
        }
    }
}

/// True if a step adds a share with a group, or raises its level.
fn raises_share(step: &Step) -> bool {
    step.effects
        .iter()
        .any(|effect| matches!(effect, Effect::Share { before, after, .. } if before < after))
}

/// True if a step of a group ends a share with another group.
fn ends_share(step: &Step) -> bool {
    let mut effects = step.effects.iter();
    step.scope == Scope::Group
        && effects.any(|effect| matches!(effect, Effect::Share { after: 0, .. }))
}

/// Refuses rules that name users without access, unless the users get access in a group above or by
/// a share.
fn refuse_outsiders(steps: &[Step], grants: &ChangesByUser<'_>, relations: &mut StepRelations) {
    for step in steps {
        let path = step.address.path.to_lowercase();
        let min_level = step.scope.choose(MAINTAINER, 1);
        let names = step.users_needing_access().filter_map(|(user_id, outsider)| {
            let user_grants = grants.get(&user_id).into_iter();
            let mut user_grants =
                user_grants.flat_map(|grants| find_grants(grants, &path, outsider));
            let has_access = user_grants.any(|grant| grant.level_after >= min_level);
            outsider.filter(|_| !has_access).map(|outsider| &*outsider.name)
        });
        let names: BTreeSet<_> = names.collect();
        if names.is_empty() {
            continue;
        }
        let names: Vec<_> = names.into_iter().collect();
        let (have, user) = if names.len() == 1 { ("has", "user") } else { ("have", "users") };
        let args = placeholders![names = text::list_names(&names), have, user];
        let problem_texts = step.scope.choose(texts::NO_MAINTAINERS, texts::OUTSIDERS);
        relations.refuse(problem_texts, args, step);
    }
}

/// The user who loses all access through a step.
fn user_losing_access(step: &Step) -> Option<u64> {
    step.user_access_changes().find(|(.., after)| *after == 0).map(|(user, ..)| user)
}

/// Orders removals of members. A user gets access in a group above before losing access below it.
/// Rules that name the user are changed before the user leaves a group, or a share of a group above
/// ends.
fn order_removals(
    steps: &[Step],
    grants: &ChangesByUser<'_>,
    reductions: &ChangesByUser<'_>,
    relations: &mut StepRelations,
) {
    let mut ended_shares: HashMap<_, Vec<_>> = HashMap::new();
    for (index, step) in steps.iter().enumerate().filter(|(_, step)| ends_share(step)) {
        ended_shares.entry(step.address.path.to_lowercase()).or_default().push(index);
    }
    let reason = "access ends after the changes that need it";
    for (index, step) in steps.iter().enumerate() {
        let path = &step.address.path;
        if step.users_needing_access().next().is_some() {
            values_above(&ended_shares, path)
                .flatten()
                .for_each(|share_index| relations.add_edge(*share_index, &step.address, reason));
        }
        let user_grants = user_losing_access(step).and_then(|user| grants.get(&user));
        let mut grants_above =
            user_grants.into_iter().flat_map(|grants_by_path| values_above(grants_by_path, path));
        if let Some(first_grant) = grants_above.find(|grant| grant.level_before == 0) {
            let reason = "the user must first get access through the group above";
            relations.add_edge(index, first_grant.address, reason);
        }
        for (user_id, _) in step.users_needing_access() {
            let user_reductions =
                reductions.get(&user_id).filter(|_| !gains_access_at(grants, user_id, path));
            let removals = user_reductions.into_iter().flat_map(HashMap::values);
            for removal in removals.filter(|reduction| reduction.level_after == 0) {
                relations.add_edge(removal.index, &step.address, reason);
            }
        }
    }
}

/// True if a user gets access at `path`, or in a group above.
fn gains_access_at(grants: &ChangesByUser<'_>, user_id: u64, path: &str) -> bool {
    grants.get(&user_id).is_some_and(|grants_by_path| {
        grants_by_path.contains_key(&path.to_lowercase())
            || values_above(grants_by_path, path).next().is_some()
    })
}

/// Notes about members and shares that are removed from groups while one of `rules` needs their
/// access. The keys of `rules` are usernames.
pub(in crate::plan) fn note_lost_access(
    steps: &[Step],
    rules: &HashMap<String, Vec<UserRule>>,
) -> Vec<Note> {
    let grants = if rules.is_empty() {
        ChangesByUser::new()
    } else {
        collect_changes(steps, |_, change| change.level_before < change.level_after)
    };
    let notes = steps.iter().filter(|_| !rules.is_empty()).filter_map(|step| {
        let user_id = user_losing_access(step).filter(|_| step.scope == Scope::Group);
        let user_rules: Vec<_> = match user_id {
            Some(_) => rules.get(&step.address.entry.as_deref()?.to_lowercase())?.iter().collect(),
            None if ends_share(step) => rules.values().flatten().collect(),
            None => return None,
        };
        let group = step.address.path.to_lowercase();
        let affected_rules: BTreeSet<_> = user_rules
            .into_iter()
            .filter(|rule| {
                let path = &rule.address.path;
                let is_below = groups_above(&path.to_lowercase()).any(|ancestor| ancestor == group);
                match user_id {
                    Some(id) => {
                        (is_below || !rule.is_member) && !gains_access_at(&grants, id, path)
                    }
                    None => is_below && !rule.is_member,
                }
            })
            .map(|rule| rule.address.to_string())
            .collect();
        let rule_texts: Vec<_> = affected_rules.iter().map(String::as_str).collect();
        let description =
            format!("it may end access that rules need: {}", text::list_first(&rule_texts));
        let note = Note::new(&step.address, Reason::Besides { what: description }, &step.origin);
        (!rule_texts.is_empty()).then_some(note)
    });
    notes.collect()
}

/// Orders and refuses steps that give a user a lower level than a group above gives, because the
/// service refuses such a level. The steps of groups above that lower or end the higher level come
/// first. A step is refused if the user keeps or gets a higher level in a group above.
fn order_lower_levels(
    steps: &[Step],
    grants: &ChangesByUser<'_>,
    reductions: &ChangesByUser<'_>,
    relations: &mut StepRelations,
) {
    let no_changes = ChangesByPath::new();
    let mut share_levels = HashMap::new();
    for (step, level) in steps.iter().filter_map(|step| Some((step, lowered_share_level(step)?))) {
        let highest = share_levels.entry(step.address.path.to_lowercase()).or_insert(level);
        *highest = level.max(*highest);
    }
    for (index, step) in steps.iter().enumerate() {
        for (user_id, before, after) in step.user_access_changes().filter(|(.., after)| *after > 0)
        {
            let path = &step.address.path;
            let user_grants = grants.get(&user_id).unwrap_or(&no_changes);
            let higher_grant =
                values_above(user_grants, path).find(|grant| grant.level_after > after);
            let user_reductions = reductions.get(&user_id).unwrap_or(&no_changes);
            let level_above = level_after_run(user_reductions, path, step.inherited_level());
            let kept_memberships = step.memberships_above().filter(|(group, _)| {
                ![user_grants, user_reductions].iter().any(|steps| steps.contains_key(&**group))
            });
            let kept_level = kept_memberships.map(|(_, level)| *level).max().unwrap_or(0);
            let key = text::escape(step.address.entry.as_deref().unwrap_or_default());
            let level = level_word(after);
            if let Some(grant) = higher_grant {
                let (above, group) = (level_word(grant.level_after), &grant.address.path);
                relations.refuse(
                    texts::BELOW_GRANTED,
                    placeholders![key, above, group, level],
                    step,
                );
            } else if kept_level > after
                || level_above > after
                // The level may come from a share. The service does not compare with that.
                && !values_above(&share_levels, path).any(|share_level| *share_level >= level_above)
            {
                let above = level_word(level_above.max(kept_level));
                let args = placeholders![key, above, level];
                let change = step.change("access_level");
                let origin =
                    change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
                let address = &step.address;
                let problem = Problem::from_texts(texts::BELOW_INHERITED, args, address, origin);
                relations.problems.push(problem);
            } else {
                let higher_levels = values_above(user_reductions, path);
                for reduction in higher_levels.filter(|reduction| reduction.level_before > after) {
                    let reason = match (before, reduction.level_after) {
                        (0, 0) => "the access above ends first, so for a moment there is none",
                        _ => "the level in the group above must be lowered first",
                    };
                    relations.add_edge(index, reduction.address, reason);
                }
            }
        }
    }
}

/// The level that a user has from the groups above `path` after the run, if it is `level` before.
/// `reductions` are the steps in groups that lower the user's level. If `level` is higher than the
/// levels in the nearest of these groups, it comes from a group in between, and does not change.
fn level_after_run(reductions: &ChangesByPath<'_>, path: &str, level: u8) -> u8 {
    let Some(nearest) = values_above(reductions, path).next() else { return level };
    if nearest.level_before.max(nearest.inherited_level) < level {
        return level;
    }
    nearest.level_after.max(level_after_run(
        reductions,
        &nearest.address.path,
        nearest.inherited_level,
    ))
}

/// The level of a share of a group before the step, if the step lowers or ends the share.
fn lowered_share_level(step: &Step) -> Option<u8> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Share { before, after, .. } if before > after => Some(*before),
        _ => None,
    })
}

fn level_word(level: u8) -> &'static str {
    AccessLevel::parse(&level.into()).map_or("a level", |level| level.word)
}
