//! Finds differences that remain after the steps of a container.

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
    /// Records the remaining differences, after reading everything that responses to writes did not
    /// show.
    pub(super) async fn verify(&self, state: &mut RunState<'_>) {
        let has_sent = state.progress.has_sent;
        if has_sent && Bug::SkipReadBack.is_planted() {
            return;
        }
        if has_sent && (self.has_run_ended() || state.error.is_some()) {
            state.mismatches = self.find_unsaved_fields(state);
            return;
        }
        let container = self.container.address();
        let stale_sections = self.cache.borrow().stale_sections.clone();
        let is_current = self.cache.borrow().is_fully_up_to_date();
        let reading = if is_current {
            let live = self.cache.borrow().live.clone();
            self.replan(live).await
        } else {
            self.reread(&stale_sections).await
        };
        state.mismatches = match reading {
            Err(error) => vec![Mismatch::unreadable(container.clone(), Cause::from(&error))],
            Ok(reading) => self.find_mismatches(reading.plan_without_resends(), state),
        };
        if has_sent {
            let mismatches = state.mismatches.clone();
            (self.emit)(Event::Verified { container, mismatches });
        }
    }

    /// The differences that remain according to the responses to writes. This function is used if
    /// no further read is possible.
    fn find_unsaved_fields(&self, state: &RunState<'_>) -> Vec<Mismatch> {
        let cache = self.cache.borrow();
        let plan = self.replan_without_resends(&cache.live);
        let fresh_steps = plan.steps.iter().filter(|step| cache.is_up_to_date(&step.address));
        let step_mismatches = fresh_steps.filter_map(|step| self.find_mismatch(step, state));
        step_mismatches.filter(|mismatch| mismatch.reason == MismatchReason::NotSaved).collect()
    }

    /// The differences that remain after the steps, and the objects that could not be read.
    fn find_mismatches(&self, plan: &ContainerPlan, state: &RunState<'_>) -> Vec<Mismatch> {
        let incomplete_scopes = plan.incomplete.iter();
        let mut mismatches: Vec<_> = incomplete_scopes
            .map(|scope| Mismatch::unreadable(scope.address.clone(), scope.reason.clone()))
            .collect();
        let succeeded_steps = self.steps.iter().copied().filter(|step| {
            state.results.get(&step.address).is_some_and(|result| result.outcome.is_success())
        });
        // A closed (archived) container cannot be read. It was verified before it was closed.
        let is_closed = succeeded_steps.clone().any(Step::archives_container);
        for step in succeeded_steps {
            let is_reported = mismatches.iter().any(|mismatch| {
                mismatch.address.section.is_none_or(|section| step.address.section == Some(section))
            });
            // A section whose feature was turned off cannot be read: trust the responses to its
            // writes.
            let is_section_closed =
                step.address.section.is_some_and(|section| plan.is_section_closed(section));
            if is_reported || is_section_closed || (is_closed && !step.archives_container()) {
                continue;
            }
            if let Some(cause) = plan.unconfirmed_cause(step) {
                mismatches.push(Mismatch::unreadable(step.address.clone(), cause));
            }
        }
        mismatches.extend(plan.steps.iter().filter_map(|step| self.find_mismatch(step, state)));
        mismatches
    }

    /// The mismatch for a step that is still needed after the run. Returns `None` if the result of
    /// the step already reports the difference, or if the step closes the container later.
    fn find_mismatch(&self, remaining_step: &Step, state: &RunState<'_>) -> Option<Mismatch> {
        // Some sections are created together with their container.
        let section = remaining_step.address.section.and_then(|name| self.container.section(name));
        let is_part_of_container =
            section.is_some_and(|section| section.kind.is_created_with_container());
        let container_results = state.results.values();
        let container_result = container_results
            .filter(|_| is_part_of_container)
            .find(|result| result.address.section.is_none());
        let reason = match state.results.get(&remaining_step.address).or(container_result) {
            Some(result) if result.outcome.is_success() => {
                let fields = self.written_fields(remaining_step, result);
                if !fields.is_empty() {
                    let help = self.explain_unsaved(remaining_step, &fields);
                    let mismatch = Mismatch::new(remaining_step, MismatchReason::NotSaved);
                    return Some(Mismatch { fields, help, ..mismatch });
                }
                MismatchReason::NotPlanned
            }
            Some(_) => return None,
            None => {
                let mut steps = self.steps.iter();
                if steps
                    .any(|step| step.archives_container() && step.address == remaining_step.address)
                {
                    return None;
                }
                // The section became visible only after a step of this run.
                let is_newly_visible = self.steps.iter().any(|step| {
                    step.possible.is_some()
                        && step.address.section == remaining_step.address.section
                });
                if is_newly_visible {
                    MismatchReason::NotPlanned
                } else {
                    MismatchReason::ChangedMeanwhile
                }
            }
        };
        Some(Mismatch::new(remaining_step, reason))
    }

    /// The fields of `remaining_step` that the step with this `result` wrote. A create does not
    /// write all fields of a new container.
    fn written_fields(&self, remaining_step: &Step, result: &StepResult) -> Vec<String> {
        let creating_step = self.steps.iter().find(|step| step.address == result.address);
        let creating_step = creating_step.filter(|_| remaining_step.address != result.address);
        let fields = remaining_step.changes.iter().map(|change| &change.field);
        let written_fields = fields.filter(|field| {
            creating_step
                .is_none_or(|step| step.changes.iter().any(|change| change.field == **field))
        });
        written_fields.map(ToString::to_string).collect()
    }

    /// Possible reasons why the service did not save `fields`.
    fn explain_unsaved(&self, remaining_step: &Step, fields: &[String]) -> Option<String> {
        let section = self.container.section(remaining_step.address.section?)?;
        let reasons = fields
            .iter()
            .filter_map(|name| self.explain_unsaved_field(remaining_step, section, name));
        let reasons: Vec<_> = reasons.collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// A possible reason why the service did not save the field `name`. The reason may be the
    /// release or the tier that the field needs, a setting of a group above, or a feature flag.
    fn explain_unsaved_field(
        &self,
        remaining_step: &Step,
        section: &DeclaredSection,
        name: &str,
    ) -> Option<String> {
        let spec = section.kind.spec(name)?;
        let cache = self.cache.borrow();
        let live_tier = match &cache.live.presence {
            Presence::Existing(_, facts) => facts.tier,
            _ => Tier::Free,
        };
        let added_release = spec.field.available.since.filter(|since| since.is_after_reference());
        if let Some(since) =
            added_release.filter(|since| !cache.live.read_release.is_at_least(*since))
        {
            return Some(format!("`{name}` needs release {since} of the service or later"));
        }
        if spec.field.available.tier > live_tier {
            return Some(format!("`{name}` needs the {} tier", spec.field.available.tier));
        }
        let key = remaining_step.address.entry.as_deref().unwrap_or_default();
        let field = section.entry(key).and_then(|entry| entry.fields.get(name));
        let row_tiers = field
            .map(|declared_field| spec.used_key_tiers(&declared_field.value))
            .unwrap_or_default();
        if let Some((row_field, tier)) = row_tiers.into_iter().find(|(_, tier)| *tier > live_tier) {
            return Some(format!("`{row_field}` in `{name}` needs the {tier} tier"));
        }
        let mut constraints = constraints::find_constraints(section.kind.section, Some(name));
        if let Some(row) = constraints.find(|_| self.container.path.contains('/')) {
            let (setting, section_name) = (&row.group_setting.field, &row.group_setting.section);
            return Some(format!(
                "`{setting}` in the `{section_name}` of a group above may override `{name}`"
            ));
        }
        let is_unset = remaining_step
            .changes
            .iter()
            .any(|change| *change.field == *name && *change.before == Shown::Value(Json::Null));
        is_unset.then(|| format!("`{name}` is not available here: the service ignores it; remove it from the manifest"))
    }
}
