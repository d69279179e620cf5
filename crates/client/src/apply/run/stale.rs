//! Compares a new plan of the container with the approved plan. Finds the steps that must not be
//! sent, because their objects changed meanwhile.

use super::{ContainerRun, unreadable_outcome};
use crate::{
    address::Address,
    apply::{
        StepOutcome, find_step,
        lost::{CallState, determine_call_state},
    },
    cause::Cause,
    diff::{Action, GuardRefusal, Step},
    plan::ContainerPlan,
    text,
};

impl ContainerRun<'_> {
    /// The first step whose object changed since the plan was made, or could not be read. Returns
    /// the address and the outcome of the step.
    pub(super) fn find_stale_step(
        &self,
        new_plan: &ContainerPlan,
    ) -> Option<(Address, StepOutcome)> {
        if let Some((address, outcome)) = self.find_container_change(new_plan) {
            // Report the change at a planned step of the changed section, or else at the first
            // step.
            let mut steps = self.steps.iter();
            let step = steps.find(|step| step.address.section == address.section);
            return Some((step.unwrap_or(&self.steps[0]).address.clone(), outcome));
        }
        self.steps.iter().find_map(|step| {
            Some((step.address.clone(), self.stale_outcome(step, new_plan, false)?))
        })
    }

    /// The address of the changed object and the outcome of its step, if the change concerns the whole
    /// container: a problem, an unread part, a move, or a new refusal.
    fn find_container_change<'p>(
        &self,
        new_plan: &'p ContainerPlan,
    ) -> Option<(&'p Address, StepOutcome)> {
        if let Some(problem) = new_plan.problems.first() {
            return Some((&problem.address, changed_outcome(problem.message.clone())));
        }
        if let Some(incomplete_scope) = new_plan.incomplete.first() {
            return Some((
                &incomplete_scope.address,
                unreadable_outcome(incomplete_scope.reason.clone()),
            ));
        }
        let container_step = new_plan.steps.iter().find(|step| step.address.section.is_none());
        if let Some(container_step) = container_step
            && self.steps.iter().all(|step| step.address != container_step.address)
        {
            let message = "it was renamed, moved or marked for deletion";
            return Some((&container_step.address, changed_outcome(message)));
        }
        // If a step of this run changed a group above, the service may already have set a field
        // that a step of this container sets. If a guard then refuses this step, the refusal is no
        // sign of a change by somebody else.
        let replaces_values_below =
            self.apply.settings.group_declarations.replaces_values_below(&self.container.path);
        let refusal = new_plan.refusals.iter().find(|refusal| {
            let is_refused_step_planned =
                find_step(new_plan, &refusal.address).is_some_and(|new_step| {
                    new_step.address.entry.is_none()
                        && self.steps.iter().any(|step| step.is_same_change(new_step))
                });
            !(self.plan.acknowledges(refusal) || (replaces_values_below && is_refused_step_planned))
        })?;
        Some((&refusal.address, refusal_outcome(refusal)))
    }

    /// Returns the outcome of `step` if the step must not be sent. This is so if its object changed
    /// since the plan was made, and does not match its manifest. If this run `may_have_changed` the
    /// object, a part of the step may be done already.
    pub(super) fn stale_outcome(
        &self,
        step: &Step,
        new_plan: &ContainerPlan,
        may_have_changed: bool,
    ) -> Option<StepOutcome> {
        if let Some(new_step) = find_step(new_plan, &step.address) {
            let may_be_partly_done = may_have_changed || step.possible.is_some();
            if step.is_same_change(new_step) || (may_be_partly_done && new_step.is_subset_of(step))
            {
                return None;
            }
            return Some(changed_outcome("someone changed it since it was planned"));
        }
        if let Some(cause) = new_plan.unconfirmed_cause(step) {
            return Some(match &new_plan.not_compared_cause {
                Some(_) => StepOutcome::ChangedMeanwhile(cause),
                None => unreadable_outcome(cause),
            });
        }
        // Somebody else created the container, perhaps not as planned.
        if step.address.section.is_none()
            && (0..step.planned_calls.len()).any(|index| {
                determine_call_state(self.container.scope, step, index, new_plan)
                    != CallState::Applied
            })
        {
            return Some(changed_outcome("someone created it, but not as planned"));
        }
        let unverifiable_fields = new_plan.unverifiable_fields(step);
        if unverifiable_fields.is_empty() {
            return None;
        }
        let reason = "someone changed it, and the service does not return";
        Some(changed_outcome(format!("{reason} {}", text::list_names(&unverifiable_fields))))
    }
    /// Returns the step of `new_plan` for the possible `step`, if the new step does no more than
    /// planned.
    ///
    /// # Errors
    /// The outcome of the step if it is not sent.
    pub(super) fn find_replanned(
        &self,
        step: &Step,
        new_plan: &ContainerPlan,
    ) -> Result<Step, StepOutcome> {
        let replanned_step = find_step(new_plan, &step.address).and_then(|new_step| {
            // The section was compared, so only the certain part of the step remains.
            let is_resolved = new_step.possible.is_some() && new_plan.has_compared(new_step);
            if is_resolved { new_step.certain_part.as_deref() } else { Some(new_step) }
        });
        let Some(new_step) = replanned_step else {
            return Err(new_plan
                .unconfirmed_cause(step)
                .map_or(StepOutcome::Already, unreadable_outcome));
        };
        // A guard may refuse this creation in the new live state. Such a refusal does not count if
        // this run creates the container.
        let creates_container = self.steps.iter().any(|step| step.creates_container());
        if step.action == Action::Create && !creates_container {
            let mut refusals = new_plan.refusals.iter();
            let refusal = refusals.find(|refusal| {
                refusal.address == step.address && !self.plan.acknowledges(refusal)
            });
            if let Some(refusal) = refusal {
                return Err(refusal_outcome(refusal));
            }
        }
        if new_step.is_subset_of(step) && new_step.possible.is_none() {
            return Ok(new_step.clone());
        }
        Err(changed_outcome("it differs from its manifest by more than was planned"))
    }
}

/// The outcome of a step that a new plan refuses.
fn refusal_outcome(refusal: &GuardRefusal) -> StepOutcome {
    changed_outcome(format!("a guard now refuses it: {}", refusal.reason))
}

fn changed_outcome(cause: impl Into<Cause>) -> StepOutcome {
    StepOutcome::ChangedMeanwhile(cause.into())
}
