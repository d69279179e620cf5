//! Finds what does not match after the steps of a container.

#[cfg(test)]
mod tests;

use super::{ContainerRun, RunState};
use crate::{
    apply::{Event, Mismatch, MismatchReason, StepResult},
    catalogue::constraints,
    cause::Cause,
    desired::DeclaredSection,
    diff::{Shown, Step},
    field::Tier,
    live::Presence,
    plan::ContainerPlan,
    planted::Bug,
    value::Json,
};

impl ContainerRun<'_> {
    /// Records what does not match, after reading what the answers to writes did not show.
    pub(super) async fn verify(&self, state: &mut RunState<'_>) {
        let has_sent = state.progress.has_sent;
        if has_sent && Bug::SkipReadBack.is_planted() {
            return;
        }
        if has_sent && (self.has_run_ended() || state.error.is_some()) {
            state.mismatches = self.unsaved_in_answers(state);
            return;
        }
        let container = self.container.address();
        let stale = self.cache.borrow().stale_sections.clone();
        let is_current = self.cache.borrow().is_fully_up_to_date();
        let reading = if is_current {
            let live = self.cache.borrow().live.clone();
            self.replan(live).await
        } else {
            self.reread(&stale).await
        };
        state.mismatches = match reading {
            Err(error) => vec![Mismatch::unread(container.clone(), Cause::from(&error))],
            Ok(reading) => self.find_mismatches(reading.plan_without_resends(), state),
        };
        if has_sent {
            let mismatches = state.mismatches.clone();
            (self.emit)(Event::Verified { container, mismatches });
        }
    }

    /// Differences that remain according to the answers to the writes themselves, if nothing can be
    /// read any more.
    fn unsaved_in_answers(&self, state: &RunState<'_>) -> Vec<Mismatch> {
        let cache = self.cache.borrow();
        let plan = self.replan_without_resends(&cache.live);
        let certain = plan.steps.iter().filter(|step| cache.is_up_to_date(&step.address));
        let mismatches = certain.filter_map(|step| self.find_mismatch(step, state));
        mismatches.filter(|mismatch| mismatch.reason == MismatchReason::NotSaved).collect()
    }

    /// The differences that remain, or cannot be excluded, after the steps.
    fn find_mismatches(&self, plan: &ContainerPlan, state: &RunState<'_>) -> Vec<Mismatch> {
        let incomplete = plan.incomplete.iter();
        let mut mismatches: Vec<_> = incomplete
            .map(|scope| Mismatch::unread(scope.address.clone(), scope.reason.clone()))
            .collect();
        let succeeded = self.steps.iter().copied().filter(|step| {
            state.results.get(&step.address).is_some_and(|result| result.outcome.is_success())
        });
        // A closed container cannot be read any more; it was verified before.
        let is_closed = succeeded.clone().any(Step::closes_container);
        for step in succeeded {
            let is_reported = mismatches.iter().any(|other| {
                other.address.section.is_none_or(|section| step.address.section == Some(section))
            });
            // The section of a switch that was turned off was last seen in the answers to its own
            // writes.
            let is_shut =
                step.address.section.is_some_and(|section| plan.is_section_closed(section));
            if is_reported || is_shut || (is_closed && !step.closes_container()) {
                continue;
            }
            if let Some(doubt) = plan.unconfirmed_cause(step) {
                mismatches.push(Mismatch::unread(step.address.clone(), doubt));
            }
        }
        mismatches.extend(plan.steps.iter().filter_map(|step| self.find_mismatch(step, state)));
        mismatches
    }

    /// The mismatch for a step that is still needed after the run; `None` if its own result
    /// explains it, or if it had to wait.
    fn find_mismatch(&self, remaining: &Step, state: &RunState<'_>) -> Option<Mismatch> {
        // A container is created together with parts of its own object.
        let section = remaining.address.section.and_then(|name| self.container.section(name));
        let is_part = section.is_some_and(|section| section.section.comes_with_container());
        let created = state.results.values();
        let created = created.filter(|_| is_part).find(|result| result.address.section.is_none());
        let reason = match state.results.get(&remaining.address).or(created) {
            Some(result) if result.outcome.is_success() => {
                let fields = self.written_fields(remaining, result);
                if !fields.is_empty() {
                    let help = self.explain_unsaved(remaining, &fields);
                    let mismatch = Mismatch::new(remaining, MismatchReason::NotSaved);
                    return Some(Mismatch { fields, help, ..mismatch });
                }
                MismatchReason::NotPlanned
            }
            Some(_) => return None,
            None => {
                let mut steps = self.steps.iter();
                if steps.any(|step| step.closes_container() && step.address == remaining.address) {
                    return None;
                }
                // The section became visible only after a step of this run.
                let is_newly_visible = self.steps.iter().any(|step| {
                    step.possible.is_some() && step.address.section == remaining.address.section
                });
                if is_newly_visible {
                    MismatchReason::NotPlanned
                } else {
                    MismatchReason::ChangedMeanwhile
                }
            }
        };
        Some(Mismatch::new(remaining, reason))
    }

    /// The fields of `remaining` that the step with this `result` set: a new container may have to
    /// wait with others.
    fn written_fields(&self, remaining: &Step, result: &StepResult) -> Vec<String> {
        let created = self.steps.iter().find(|step| step.address == result.address);
        let created = created.filter(|_| remaining.address != result.address);
        let fields = remaining.changes.iter().map(|change| &change.field);
        let written = fields.filter(|field| {
            created.is_none_or(|step| step.changes.iter().any(|change| change.field == **field))
        });
        written.map(ToString::to_string).collect()
    }

    /// Why the service may not have saved `fields`.
    fn explain_unsaved(&self, remaining: &Step, fields: &[String]) -> Option<String> {
        let section = self.container.section(remaining.address.section?)?;
        let reasons =
            fields.iter().filter_map(|name| self.explain_unsaved_field(remaining, section, name));
        let reasons: Vec<_> = reasons.collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Why the service may not have saved the field `name`: too old a release, too low a tier, a
    /// limit of a group above, or a flag.
    fn explain_unsaved_field(
        &self,
        remaining: &Step,
        section: &DeclaredSection,
        name: &str,
    ) -> Option<String> {
        let spec = section.section.table().get(name)?;
        let cache = self.cache.borrow();
        let live_tier = match &cache.live.presence {
            Presence::Here(_, facts) => facts.tier,
            _ => Tier::Free,
        };
        let since = spec.field.available.since.filter(|since| since.is_after_reference());
        if let Some(since) = since.filter(|since| !cache.live.release.is_at_least(*since)) {
            return Some(format!("`{name}` needs release {since} of the service or later"));
        }
        if spec.field.available.tier > live_tier {
            return Some(format!("`{name}` needs the {} tier", spec.field.available.tier));
        }
        let key = remaining.address.entry.as_deref().unwrap_or_default();
        let rows = section.entry(key).and_then(|entry| entry.fields.get(name));
        let rows = rows.map(|rows| spec.row_tiers(&rows.value)).unwrap_or_default();
        if let Some((part, tier)) = rows.into_iter().find(|(_, tier)| *tier > live_tier) {
            return Some(format!("`{part}` in `{name}` needs the {tier} tier"));
        }
        let mut constraints = constraints::constraints_over(section.section.section, Some(name));
        if let Some(row) = constraints.find(|_| self.container.path.contains('/')) {
            let (by, of) = (&row.by.field, &row.by.section);
            return Some(format!("`{by}` in the `{of}` of a group above may override `{name}`"));
        }
        let is_unset = remaining
            .changes
            .iter()
            .any(|change| *change.field == *name && *change.before == Shown::Value(Json::Null));
        is_unset.then(|| format!("`{name}` is not available here: the service drops it; remove it"))
    }
}
