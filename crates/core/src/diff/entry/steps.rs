//! Plans the steps for one declared entry.

use super::EntryDiff;
use crate::{
    catalogue::preset,
    desired::{EntryPresence, subject_field},
    diagnostic::Severity,
    diff::{
        Action, FieldChange, Findings, Problem, Reason, Step, add_removal, plan_removal,
        subject_id,
        texts::{self, placeholders},
    },
    kind::{
        CallContext, Effect, FieldSelection, LiveEntry, PlannedCall, calls::CallPurpose, forms,
        is_readable, risk,
    },
    value::{Object, Value},
};

impl EntryDiff<'_> {
    /// Plans an entry that is live.
    pub(in crate::diff) fn plan_present(&self, live: &LiveEntry, findings: &mut Findings) {
        // If a section reads its entries one by one, a protected entry is an inherited entry. It was
        // read because it is declared absent. This is a problem while a group above has the entry.
        if let Some(protection) = live.protection_reason
            && !self.context.is_orphaned(self.section, &self.entry.key, findings)
        {
            if self.section.detail.is_some() {
                findings.problems.push(self.problem(texts::INHERITED, &[("why", &protection)], ""));
            } else {
                let reason = Reason::Protected { why: protection.into() };
                findings.notes.push(self.new_note(reason, Vec::new()));
            }
            return;
        }
        if self.entry.state == EntryPresence::Absent {
            let (address, origin) = (self.address.clone(), &self.entry.origin);
            return add_removal(self.section, &address, origin, live, self.context, findings);
        }
        let live_after_groups = self.predict_live_entry(live, findings);
        let live_after_groups = live_after_groups.as_ref().unwrap_or(live);
        let resolved_diff = self.resolve_list_conditions(live.fields.raw());
        resolved_diff.as_ref().unwrap_or(self).plan_change(live, live_after_groups, findings);
    }

    /// Adds the step that changes `live`. `live` is the entry after changes of groups above;
    /// `live_before` is the entry before the run. Guards compare with `live_before`, because
    /// undoing a change by a group needs no acknowledgement.
    fn plan_change(&self, live_before: &LiveEntry, live: &LiveEntry, findings: &mut Findings) {
        let changes = self.find_changes(live, findings);
        if changes.is_empty()
            || self.has_release_problem(findings)
            || self.check_visibility(live, &changes, findings)
        {
            return;
        }
        if let Some(step) = self.change_step(live_before, live, changes, findings) {
            self.add_step(step.with_live(live), findings);
        }
    }

    /// The step that makes these `changes` to `live`. The step does not contain the live entry.
    fn change_step(
        &self,
        live_before: &LiveEntry,
        live: &LiveEntry,
        mut changes: Vec<FieldChange>,
        findings: &mut Findings,
    ) -> Option<Step> {
        let changed_fields: Vec<&str> = changes.iter().map(|change| &*change.field).collect();
        let fields = self.fields_to_send();
        let context = self.call_context(CallPurpose::Change(&fields, live, &changed_fields));
        let planned_calls = self.plan_calls(&context, findings)?;
        let reset_fields = fields.keys().filter(|name| {
            let field = self.field(name);
            let mut companions = changed_fields
                .iter()
                .map(|changed_name| self.field(changed_name).relations.sent_with);
            !changed_fields.contains(&name.as_str())
                && (forms::is_reset(field, &changed_fields)
                    // A secret that each request must contain is written again, too.
                    || (field.with_every_edit && !is_readable(field))
                    || (!live.fields.raw().contains_key(name.as_str())
                        && companions.any(|companion| companion == Some(name.as_str()))))
        });
        let reset_changes: Vec<_> =
            reset_fields.map(|name| self.new_change(name, Some(live))).collect();
        changes.extend(reset_changes);
        let step = self.new_step(Action::Update, changes, planned_calls);
        let fields_after = self.object_after(live.fields.raw());
        let changed_names: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
        if !step.replaces && self.check_with_live(&changed_names, &fields_after, findings) {
            return None;
        }
        let subject = subject_id(self.section, live);
        let fields_before = live_before.fields.raw();
        let effects = self.section.rules().effects(subject, fields_before, &fields_after);
        let fields_after = self.add_secret_values(fields_after);
        let risks = risk::change_risks(self.section, &changed_names, fields_before, &fields_after);
        Some(step.with_effects(effects, risks))
    }

    /// Plans an entry that is not live.
    pub(in crate::diff) fn plan_absent(&self, findings: &mut Findings) {
        if self.entry.state == EntryPresence::Absent {
            return;
        }
        if self.section.is_only_edited() {
            let fields: Vec<_> = self.other_fields().map(str::to_owned).collect();
            let wait_reason = format!("until the service has the {}", self.section.noun);
            let note = (!fields.is_empty())
                .then(|| self.new_note(Reason::Waits { why: wait_reason }, fields));
            return findings.notes.extend(note);
        }
        let required = self.section.required_fields.iter();
        let missing_fields = required.filter(|name| !self.values.contains_key(name));
        let missing_fields: Vec<_> = missing_fields.map(|name| format!("`{name}`")).collect();
        if !missing_fields.is_empty() {
            let args = placeholders![names = missing_fields.join(", ")];
            return findings.problems.push(self.problem(texts::MISSING_FIELD, args, ""));
        }
        let mut required = self.section.required_fields.iter();
        if let Some((name, wait_reason)) =
            required.find_map(|name| Some((name, self.wait_reason(name, None)?)))
        {
            let note = self.new_note(Reason::Waits { why: wait_reason }, vec![(*name).to_owned()]);
            return findings.notes.push(note);
        }
        if let Some(step) = self.creation_step(findings) {
            self.add_step(step, findings);
        }
    }

    /// Plans an entry that cannot be read yet, as if it were absent. `condition` describes when the step
    /// is needed.
    pub(in crate::diff) fn plan_possible(&self, condition: &'static str, findings: &mut Findings) {
        let is_only_edited = self.section.is_only_edited();
        let exists = is_only_edited && self.context.target.id.is_some();
        let step = if exists || self.section.is_created_with_container() {
            self.unread_edit_step(findings)
        } else if !is_only_edited {
            self.creation_step(findings)
        } else {
            // The container does not exist yet. Therefore the entry does not exist either.
            return self.plan_absent(findings);
        };
        if let Some(step) = step {
            self.add_step(Step { possible: Some(condition), ..step }, findings);
        }
    }

    /// The step that sets all declared fields of an entry that exists, but cannot be read yet.
    fn unread_edit_step(&self, findings: &mut Findings) -> Option<Step> {
        for (name, value) in &self.values {
            self.check_support(name, value, findings);
        }
        if self.other_fields().next().is_none() || self.has_release_problem(findings) {
            return None;
        }
        let identity = self.section.identity.iter();
        let identity_fields = identity.filter_map(|name| {
            Some(((*name).to_owned(), self.values.get(name)?.plain_json()?.clone()))
        });
        let live = self.section.read(&identity_fields.collect(), FieldSelection::All);
        let changes = self.other_fields().map(|name| self.new_change(name, Some(&live))).collect();
        self.change_step(&live, &live, changes, findings)
    }

    /// The declared fields that do not identify the entry.
    fn other_fields(&self) -> impl Iterator<Item = &str> {
        let names = self.values.keys().map(String::as_str);
        names.filter(|name| !self.section.identity.contains(name))
    }

    fn creation_step(&self, findings: &mut Findings) -> Option<Step> {
        if let Some(resolved_diff) = self.resolve_list_conditions(&Object::new()) {
            return resolved_diff.creation_step(findings);
        }
        if let Some(complete_diff) = self.with_create_defaults() {
            return complete_diff.creation_step(findings);
        }
        for (name, value) in &self.values {
            self.check_support(name, value, findings);
        }
        if self.has_release_problem(findings) {
            return None;
        }
        let sent_fields = self.fields_to_send();
        let calls =
            self.plan_calls(&self.call_context(CallPurpose::Create(&sent_fields)), findings)?;
        let changes = sent_fields.keys().filter(|name| !self.is_local_only(name));
        let changes = changes.map(|name| self.new_change(name, None)).collect();
        let subject_id = subject_field(self.section).and_then(|(name, object_type)| {
            self.context.names.numeric_id(object_type, self.values.get(name)?.text()?)
        });
        let empty = Object::new();
        let fields_after = self.object_after(&empty);
        let effects = self.section.rules().effects(subject_id, &empty, &fields_after);
        let find_preset =
            |name: &str| preset::service_default(self.section, name, &self.context.target.path);
        let risks =
            risk::creation_risks(self.section, find_preset, &self.add_secret_values(fields_after));
        Some(self.new_step(Action::Create, changes, calls).with_effects(effects, risks))
    }

    /// Adds the values of declared secrets to `fields_after`, for guards only.
    fn add_secret_values(&self, mut fields_after: Object) -> Object {
        for (name, value) in &self.values {
            if matches!(value, Value::Secret(_)) {
                // A secret that is not set becomes `true`, which equals no live value.
                let value =
                    self.expose_secret(name, value).plain_json().cloned().unwrap_or(true.into());
                let value = forms::to_comparable(self.spec(name), &value, self.context.names);
                fields_after.insert(name.clone(), value);
            }
        }
        fields_after
    }

    fn new_step(
        &self,
        action: Action,
        changes: Vec<FieldChange>,
        planned_calls: Vec<PlannedCall>,
    ) -> Step {
        let (address, origin) = (self.address.clone(), self.entry.origin.clone());
        Step::new(self.context.target.scope, address, action, origin, changes, planned_calls)
    }

    /// Returns `fields_before` with the declared changes, in comparable form.
    fn object_after(&self, fields_before: &Object) -> Object {
        let mut fields_after = fields_before.clone();
        let plain_values =
            self.values.iter().filter_map(|(name, value)| Some((name, value.plain_json()?)));
        fields_after.extend(plain_values.map(|(name, value)| {
            (name.clone(), forms::to_comparable(self.spec(name), value, self.context.names))
        }));
        fields_after
    }

    /// Adds a step. If the service would refuse the step because of the group above, adds a problem
    /// instead.
    fn add_step(&self, mut step: Step, findings: &mut Findings) {
        if step.possible.is_none() {
            if step.adds_entry()
                && let Some(problem) = self.context.creation_problem(self.section, &step, findings)
            {
                return findings.problems.push(problem);
            }
            if step.taken_name().is_some() {
                self.context.mark_collision(self.section, &mut step, findings);
            }
        }
        findings.steps.push(step);
    }

    /// The step that removes `copy`, a copy of `kept_entry`.
    pub(in crate::diff) fn plan_copy_removal(
        &self,
        copy: &LiveEntry,
        kept_entry: &LiveEntry,
    ) -> Step {
        let address =
            self.address.with_entry(format!("{}@{}", self.entry.key, copy.address_text()));
        let step = plan_removal(self.section, &address, &self.entry.origin, copy, self.context);
        match step {
            Ok(mut step) => {
                let id = kept_entry.address_text();
                let reason = format!("it is a copy of the {} with the id {id}", self.section.noun);
                step.effects.push(Effect::SideEffect(reason));
                Step { removes_copy: true, ..step }
            }
            Err(_) => unreachable!("an entry that can have copies is removable, as a test checks"),
        }
    }

    fn call_context<'j>(&'j self, purpose: CallPurpose<'j>) -> CallContext<'j> {
        CallContext {
            has_unique_address: self.has_unique_path,
            ..self.context.call_context(self.section, purpose)
        }
    }

    /// The calls for `context`. If no calls are possible, adds the reason to `findings`.
    fn plan_calls(
        &self,
        context: &CallContext<'_>,
        findings: &mut Findings,
    ) -> Option<Vec<PlannedCall>> {
        let calls = self.section.rules().calls(context);
        let entry_origin = &self.entry.origin;
        calls
            .map_err(|no_calls| {
                findings.add_no_calls(
                    no_calls,
                    self.context.target.scope,
                    &self.address,
                    entry_origin,
                    |field| self.origin(field),
                );
            })
            .ok()
    }

    /// True if there is a problem because the release of the service lacks a declared field.
    fn has_release_problem(&self, findings: &Findings) -> bool {
        findings.problems.iter().any(|p| p.code == "release" && p.address == self.address)
    }

    /// Adds a problem for each changed field whose value the service refuses together with the
    /// value of an undeclared field in `fields_after`. Returns true if it added a problem.
    fn check_with_live(
        &self,
        changed_fields: &[&str],
        fields_after: &Object,
        findings: &mut Findings,
    ) -> bool {
        let fields = fields_after.iter().map(|(name, value)| (name.clone(), value.clone().into()));
        let problem_count = findings.problems.len();
        self.section.check(&fields.collect(), false, &mut |fault| {
            let Some(other_field) = fault.other_field else { return };
            let names = [fault.field, other_field];
            // Do not check sensitive fields against live values.
            if fault.severity == Severity::Error
                && names.iter().all(|name| !self.field(name).sensitive)
                && names.iter().any(|name| !self.values.contains_key(name))
                && let Some(name) = names.iter().find(|name| changed_fields.contains(name))
            {
                let (address, origin) = (&self.address, self.origin(name));
                let problem = Problem::new(address, fault.code, fault.message, fault.help, &origin);
                findings.problems.push(problem);
            }
        });
        findings.problems.len() > problem_count
    }
}
