//! Finds what does not match after the steps of a container.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{Ended, Run};
use crate::{
    apply::{Event, Mismatch, MismatchReason, StepResult},
    catalogue::constraints,
    cause::Cause,
    desired::DeclaredSection,
    diff::{Change, Shown, Step},
    field::Tier,
    live::Presence,
    plan::ContainerPlan,
    planted::Bug,
    value::Json,
};

impl<F: FnMut(Event)> Run<'_, F> {
    /// Records what does not match, after reading what the answers to writes did not show.
    pub(super) async fn verify(&self, ended: &mut Ended<'_>) {
        let sent = ended.progress.sent;
        if sent && Bug::SkipReadBack.is_planted() {
            return;
        }
        if sent && (self.is_over() || ended.error.is_some()) {
            ended.mismatches = self.refuted(ended);
            return;
        }
        let container = self.container.address();
        let stale = self.known.borrow().stale.clone();
        let is_all = self.known.borrow().is_all();
        let look = if is_all {
            let live = self.known.borrow().live.clone();
            self.look_at(live).await
        } else {
            self.look(&stale).await
        };
        ended.mismatches = match look {
            Err(error) => vec![Mismatch::unread(container.clone(), Cause::from(&error))],
            Ok(look) => self.mismatches(look.seen(), ended),
        };
        if sent {
            let mismatches = ended.mismatches.clone();
            self.teller.tell(Event::Verified { container, mismatches });
        }
    }

    /// What was not saved according to the answers to the writes themselves, if nothing can be read
    /// any more.
    fn refuted(&self, ended: &Ended<'_>) -> Vec<Mismatch> {
        let known = self.known.borrow();
        let seen = self.seen(&known.live, self.settings());
        let heard = seen.steps.iter().filter(|left| known.is_certain(&left.address));
        let mismatches = heard.filter_map(|left| self.mismatch(left, ended));
        mismatches.filter(|mismatch| mismatch.reason == MismatchReason::NotSaved).collect()
    }

    /// What does not match, or is not known to match, after the steps.
    fn mismatches(&self, left: &ContainerPlan, ended: &Ended<'_>) -> Vec<Mismatch> {
        let mut mismatches: Vec<_> = left
            .incomplete
            .iter()
            .map(|scope| Mismatch::unread(scope.address.clone(), scope.reason.clone()))
            .collect();
        let done = || {
            self.steps.iter().copied().filter(|step| {
                ended.results.get(&step.address).is_some_and(|result| result.outcome.is_success())
            })
        };
        // A closed container cannot be read any more; it was verified before.
        let closed = done().any(Step::closes);
        for step in done() {
            let told = mismatches.iter().any(|known| {
                known.address.section.is_none_or(|section| step.address.section == Some(section))
            });
            // The section of a switch that was turned off was last seen in the answers to its own
            // writes.
            let shut = step.address.section.is_some_and(|section| left.is_shut(section));
            let is_seen = (!closed || step.closes()) && !shut;
            if !told && let Some(doubt) = left.doubt(step).filter(|_| is_seen) {
                mismatches.push(Mismatch::unread(step.address.clone(), doubt));
            }
        }
        mismatches.extend(left.steps.iter().filter_map(|step| self.mismatch(step, ended)));
        mismatches
    }

    /// The mismatch for a step that is still needed after the run; `None` if its own result
    /// explains it, or if it had to wait.
    fn mismatch(&self, left: &Step, ended: &Ended<'_>) -> Option<Mismatch> {
        // A container is created together with parts of its own object.
        let section = left.address.section.and_then(|name| self.container.section(name));
        let is_part = section.is_some_and(|section| section.of.comes_with_container());
        let created = ended.results.values();
        let created = created.filter(|_| is_part).find(|result| result.address.section.is_none());
        let closes = |step: &&Step| step.closes() && step.address == left.address;
        // The section became visible only after a step of this run.
        let was_possible =
            |step: &&Step| step.possible.is_some() && step.address.section == left.address.section;
        let reason = match ended.results.get(&left.address).or(created) {
            Some(result) if result.outcome.is_success() => match self.sent(left, result) {
                sent if sent.is_empty() => MismatchReason::NotPlanned,
                sent => {
                    let help = self.late(left, &sent);
                    let (address, reason) = (left.address.clone(), MismatchReason::NotSaved);
                    return Some(Mismatch { address, fields: sent, reason, help });
                }
            },
            Some(_) => return None,
            None if self.steps.iter().any(closes) => return None,
            None if self.steps.iter().any(was_possible) => MismatchReason::NotPlanned,
            None => MismatchReason::ChangedMeanwhile,
        };
        let fields = left.changes.iter().map(|change| change.field.to_string()).collect();
        Some(Mismatch { address: left.address.clone(), fields, reason, help: None })
    }

    /// The fields of `left` that the step with this `result` set: a new container may have to wait with
    /// others.
    fn sent(&self, left: &Step, result: &StepResult) -> Vec<String> {
        let fields = left.changes.iter().map(|change| &change.field);
        let created = self.steps.iter().find(|step| step.address == result.address);
        let created = created.filter(|_| left.address != result.address);
        let is_sent = |field: &&Arc<str>| {
            created.is_none_or(|step| step.changes.iter().any(|change| change.field == **field))
        };
        fields.filter(is_sent).map(ToString::to_string).collect()
    }

    /// Why the service may not have saved `fields`.
    fn late(&self, left: &Step, fields: &[String]) -> Option<String> {
        let section = self.container.section(left.address.section?)?;
        let late = fields.iter().filter_map(|name| self.why_dropped(left, section, name));
        let late: Vec<_> = late.collect();
        (!late.is_empty()).then(|| late.join("; "))
    }

    /// Why the service may not have saved the field `name`: too old a release, too low a tier, a
    /// limit of a group above, or a flag.
    fn why_dropped(&self, left: &Step, section: &DeclaredSection, name: &str) -> Option<String> {
        let spec = section.of.table().get(name)?;
        let known = self.known.borrow();
        let has = match &known.live.presence {
            Presence::Here(_, facts) => facts.tier,
            _ => Tier::Free,
        };
        let since = spec.field.available.since.filter(|since| since.is_late());
        if let Some(since) = since.filter(|since| !known.live.release.has(*since)) {
            return Some(format!("`{name}` needs release {since} of the service or later"));
        }
        if spec.field.available.tier > has {
            return Some(format!("`{name}` needs the {} tier", spec.field.available.tier));
        }
        let key = left.address.entry.as_deref().unwrap_or_default();
        let entry = section.entries.iter().find(|entry| *entry.key == *key);
        let rows = entry.and_then(|entry| entry.fields.get(name));
        let rows = rows.map(|rows| spec.row_tiers(&rows.value)).unwrap_or_default();
        if let Some((part, tier)) = rows.into_iter().find(|(_, tier)| *tier > has) {
            return Some(format!("`{part}` in `{name}` needs the {tier} tier"));
        }
        let mut decides = constraints::over(section.of.section, Some(name));
        if let Some(row) = decides.find(|_| self.container.path.contains('/')) {
            let (by, of) = (&row.by.field, &row.by.section);
            return Some(format!(
                "`{by}` in the `{of}` of a group above may decide about `{name}`"
            ));
        }
        let is_unset =
            |change: &Change| *change.field == *name && *change.before == Shown::Value(Json::Null);
        left.changes
            .iter()
            .any(is_unset)
            .then(|| format!("`{name}` is not available here: the service drops it; take it out"))
    }
}
