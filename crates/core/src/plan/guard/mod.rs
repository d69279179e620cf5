//! Guards refuse dangerous steps until they are acknowledged.
//!
//! Guards check the effects of steps ([`Effect`]) and name no section. A refusal contains the
//! numbers and the acknowledgement to pass. Guards cannot be switched off as a whole.

mod access;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use access::refuse_directory_access;

use super::approve::WHOLE_RUN;
use crate::{
    address::{Address, parent_group_path},
    desired::{Container, DeclaredSection, Guard},
    diff::{Action, DiffContext, Findings, GuardRefusal, Step},
    kind::{Effect, RefRule, Risk, WeakerProtection, find_weaker_protections},
    live::{ExtraFact, InheritedLevels},
    origin::Origin,
    text::{count, escape},
};

/// The limits of a guard for one run: for removed entries, or for containers that a rule changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GuardLimits {
    /// The maximum number of entries removed from one section, or of changed containers that one
    /// rule includes.
    pub count: usize,
    /// The maximum share of these entries or containers, from 0 to 1. A small number is always
    /// allowed.
    pub share: f64,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self { count: 5, share: 0.25 }
    }
}

impl GuardLimits {
    /// The limits for containers that only a rule includes.
    pub const REACH: Self = Self { count: 50, share: 0.1 };
}

/// The share is checked only in sections with at least this number of entries.
const MIN_ENTRIES_FOR_SHARE: usize = 4;
/// This number of included containers may always change, regardless of their share.
const MIN_REACH: usize = 5;
/// The maximum number of entries removed in one run.
const MAX_REMOVALS: usize = 50;

/// True if a step removes an object.
fn is_removal(step: &&Step) -> bool {
    step.action == Action::Delete
}

/// Refuses removals from a section with `live_count` entries: too many entries, too large a share,
/// or all entries. A copy counts as a removal, but not for the share, because its original is kept.
pub(super) fn refuse_removals(
    address: &Address,
    origin: &Origin,
    live_count: usize,
    steps: &[Step],
    limits: &GuardLimits,
) -> Option<GuardRefusal> {
    let removed_count = steps.iter().filter(is_removal).count();
    let added_count = steps.iter().filter(|step| step.action == Action::Create).count();
    let copy_count = steps.iter().filter(|step| step.removes_copy).count();
    let (lost_count, original_count) = (removed_count - copy_count, live_count - copy_count);
    let share = lost_count as f64 / original_count.max(1) as f64;
    let reason = if lost_count > 0 && lost_count == original_count && added_count == 0 {
        if removed_count == 1 {
            "would remove the only entry".into()
        } else {
            format!("would remove all {}", count(removed_count, "entry"))
        }
    } else if removed_count > limits.count {
        format!(
            "would remove {} of {live_count}; the limit is {}",
            count(removed_count, "entry"),
            limits.count
        )
    } else if original_count >= MIN_ENTRIES_FOR_SHARE && share > limits.share {
        format!(
            "would remove {} of {original_count}; the limit is {:.0} %",
            count(lost_count, "entry"),
            limits.share * 100.0
        )
    } else {
        return None;
    };
    Some(GuardRefusal::new(Guard::Removals, address, reason, removed_count, origin))
}

/// Refuses too many removals in the whole plan.
pub(super) fn refuse_many_removals(steps: &[&Step]) -> Option<GuardRefusal> {
    let removal_count = steps.iter().copied().filter(is_removal).count();
    let first_removal = steps.iter().copied().find(is_removal)?;
    (removal_count > MAX_REMOVALS).then(|| {
        let reason =
            format!("would remove {} in all; the limit is {MAX_REMOVALS}; acknowledging it with `**` also acknowledges all other removals", count(removal_count, "entry"));
        let whole_run = Address::container(WHOLE_RUN.into());
        GuardRefusal::new(Guard::Removals, &whole_run, reason, removal_count, &first_removal.origin)
    })
}

/// Refuses to change too many groups and projects that only the rule with this `glob` includes, or
/// too large a share of them. The rule includes `included_count` of them.
pub(super) fn refuse_reach(
    glob: &Arc<str>,
    origin: &Origin,
    included_count: usize,
    changed_count: usize,
    limits: &GuardLimits,
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

/// The refusals of the guards for single steps.
pub(super) fn check_steps(
    steps: &[Step],
    declared: &Container,
    context: DiffContext<'_>,
) -> Findings {
    let mut checker = GuardChecker { steps, declared, context, findings: Findings::default() };
    checker.check_access();
    checker.check_caller_shares();
    let refusals = steps.iter().filter_map(|step| refuse_directory_access(step, context.caller));
    checker.findings.refusals.extend(refusals);
    checker.check_transfer();
    checker.findings.refusals.extend(steps.iter().filter_map(refuse_visibility));
    let weaknesses = checker.find_rule_weaknesses();
    let refusals = steps.iter().filter_map(|step| refuse_weaker_protection(step, &weaknesses));
    checker.findings.refusals.extend(refusals);
    checker.findings
}

fn new_refusal(guard: Guard, step: &Step, reason: String) -> GuardRefusal {
    GuardRefusal::new(guard, &step.address, reason, 1, &step.origin)
}

/// Checks the steps of a container, and collects the refusals.
struct GuardChecker<'a> {
    steps: &'a [Step],
    declared: &'a Container,
    context: DiffContext<'a>,
    findings: Findings,
}

impl<'a> GuardChecker<'a> {
    fn refuse(&mut self, guard: Guard, step: &Step, reason: String) {
        self.findings.refusals.push(new_refusal(guard, step, reason));
    }

    /// Refuses to move a container into a group with other members.
    fn check_transfer(&mut self) {
        let transfer = self.steps.iter().find_map(|step| Some((step, step.former_path()?)));
        let Some((step, old_path)) = transfer else { return };
        let (Some(levels_before), Some(levels_after)) =
            (&self.context.live.levels_above_former_path, &self.context.live.levels_above)
        else {
            self.findings.add_missing_fact(ExtraFact::LevelsAbove);
            return self.findings.add_missing_fact(ExtraFact::LevelsAboveFormerPath);
        };
        let gain_count = count_higher_levels(levels_after, levels_before);
        let loss_count = count_higher_levels(levels_before, levels_after);
        let group_text =
            |path: &str| escape(parent_group_path(path).unwrap_or("the top")).into_owned();
        let reason = format!(
            "would move it from {} to {}: {} would inherit more access, {} less, and the variables that it inherits change",
            group_text(old_path),
            group_text(&step.address.path),
            count(gain_count, "user"),
            count(loss_count, "user")
        );
        // The refusal counts one object, not the users, because the number of users may change
        // while groups above move in the same run.
        self.refuse(Guard::Transfer, step, reason);
    }

    /// The ways in which rules for branches or tags are weaker after all steps.
    fn find_rule_weaknesses(&self) -> Weaknesses {
        let mut weaknesses = Weaknesses::new();
        for section in &self.declared.sections {
            let name = section.kind.section;
            let section_steps = self.steps.iter().filter(|step| step.address.section == Some(name));
            let changes: Vec<_> = section_steps.flat_map(rule_changes).collect();
            if changes.is_empty() {
                continue;
            }
            let live_rules = self.section_effects(section).filter_map(|effect| match effect {
                Effect::Rule { before, .. } => before,
                _ => None,
            });
            let rules_before: Vec<RefRule> = live_rules.map(|rule| *rule).collect();
            let changed_patterns = changes
                .iter()
                .filter_map(|(old_rule, _)| Some(old_rule.as_ref()?.pattern.as_str()));
            let changed_patterns: BTreeSet<_> = changed_patterns.collect();
            let unchanged_rules = rules_before
                .iter()
                .filter(|rule| !changed_patterns.contains(rule.pattern.as_str()));
            let new_rules = changes.iter().filter_map(|(_, new_rule)| *new_rule);
            let rules_after: Vec<RefRule> = unchanged_rules.chain(new_rules).cloned().collect();
            for WeakerProtection { pattern, description } in
                find_weaker_protections(&rules_before, &rules_after)
            {
                weaknesses.entry((name, pattern)).or_default().push(description);
            }
        }
        weaknesses
    }

    fn section_effects(&self, section: &'a DeclaredSection) -> impl Iterator<Item = Effect> + 'a {
        self.context.live.entries(section.kind.section).into_iter().flatten().flat_map(|entry| {
            section.kind.rules().effects(entry.id(), entry.fields.raw(), entry.fields.raw())
        })
    }
}

/// The number of users who have a higher level in `levels` than in `other_levels`.
fn count_higher_levels(levels: &InheritedLevels, other_levels: &InheritedLevels) -> usize {
    levels.iter().filter(|(id, level)| *level > other_levels.get(id).unwrap_or(&0)).count()
}

/// Refuses to delete a project.
pub(super) fn refuse_deletion(step: &Step) -> GuardRefusal {
    let reason = "would delete the project with everything in it; to keep it readable, write `archived: true` instead of `state: absent`";
    new_refusal(Guard::Deletion, step, reason.to_owned())
}

/// Refuses to make a container, or a part of it, visible to more people.
fn refuse_visibility(step: &Step) -> Option<GuardRefusal> {
    let texts: Vec<_> = risk_texts(step, &[Risk::Shows]).collect();
    let origin = step.change("visibility").and_then(|change| change.origin.as_ref());
    let origin = origin.unwrap_or(&step.origin);
    let reason = format!("would {}", texts.join(", and "));
    (!texts.is_empty())
        .then(|| GuardRefusal::new(Guard::Visibility, &step.address, reason, 1, origin))
}

/// Refuses to open a new container to outside access. Other guards of protection do not apply,
/// because a new container has no protection that could become weaker.
pub(super) fn refuse_openings(steps: &[Step]) -> impl Iterator<Item = GuardRefusal> {
    steps.iter().filter_map(|step| {
        protection_refusal(step, &risk_texts(step, &[Risk::Opens]).collect::<Vec<_>>())
    })
}

/// The texts of the effects of a step that have one of these `risks`.
fn risk_texts<'s>(step: &'s Step, risks: &'s [Risk]) -> impl Iterator<Item = &'s str> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Risk(risk, text) if risks.contains(risk) => Some(text.as_str()),
        _ => None,
    })
}

fn protection_refusal(step: &Step, texts: &[&str]) -> Option<GuardRefusal> {
    (!texts.is_empty())
        .then(|| new_refusal(Guard::Protection, step, format!("would {}", texts.join(", and "))))
}

/// Refuses to weaken protection, including the `weaknesses` of rules for branches and tags.
fn refuse_weaker_protection(step: &Step, weaknesses: &Weaknesses) -> Option<GuardRefusal> {
    let risk_text = risk_texts(step, &[Risk::Weakens, Risk::Opens]);
    let changed_rules = rule_changes(step).flat_map(|(before, after)| [before, after]).flatten();
    let mut patterns: Vec<_> = changed_rules.map(|rule| &*rule.pattern).collect();
    patterns.dedup();
    let section = step.address.section.unwrap_or_default();
    let rule_texts =
        patterns.iter().filter_map(|pattern| weaknesses.get(&(section, (*pattern).to_owned())));
    let rule_texts: Vec<_> = rule_texts.flatten().map(String::as_str).collect();
    let mut texts: Vec<_> = risk_text.chain(rule_texts.iter().copied()).collect();
    texts.dedup();
    let mut refusal = protection_refusal(step, &texts)?;
    if !rule_texts.is_empty() {
        refusal.reason += "; of all rules that match, the most permissive counts";
    }
    Some(refusal)
}

/// The ways in which rules get weaker, by section and pattern.
type Weaknesses = BTreeMap<(&'static str, String), Vec<String>>;

fn rule_changes(step: &Step) -> impl Iterator<Item = (Option<&RefRule>, Option<&RefRule>)> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Rule { before, after } => Some((before.as_deref(), after.as_deref())),
        _ => None,
    })
}
