//! Compares one declared entry with its live entry, field by field.

use std::collections::BTreeMap;

use super::EntryDiff;
use crate::{
    catalogue::constraints,
    diff::{
        DiffContext, FieldChange, Findings, Reason, Shown, Support, release_support, show_declared,
        show_live,
        texts::{self, placeholders},
    },
    field::{Acceptance, Equality, Readback, Tier},
    kind::{
        LiveEntry, Shape, forms, is_readable,
        needs::{self, SwitchState},
    },
    live::ExtraFact,
    secret::Reference,
    value::{Json, Value},
};

impl EntryDiff<'_> {
    /// True if the service supports a declared field, so that it can be compared. Adds a question if the
    /// release is unknown, and a problem if the service lacks the field.
    pub(super) fn check_support(&self, name: &str, value: &Value, findings: &mut Findings) -> bool {
        match release_support(self.section, name, value, self.context.release) {
            Support::Supported => return true,
            Support::LocalOnly => {}
            Support::UnknownRelease => findings.add_missing_fact(ExtraFact::Release),
            Support::Unsupported(limit) => {
                findings.problems.extend(limit.into_problem(&self.address, &self.origin(name)));
            }
        }
        false
    }

    /// True if only undrift uses the field `name`, or if the field only identifies the entry. Such
    /// a field is neither compared nor shown as a change.
    pub(super) fn is_local_only(&self, name: &str) -> bool {
        let field = self.field(name);
        let is_identity = self.section.identity.contains(&name);
        (field.accepted == Acceptance::Never && (!is_readable(field) || is_identity))
            || (is_identity && field.names.is_some())
    }

    /// The live entry as it will be after this run changes groups above. `None` if these changes
    /// replace no declared value.
    pub(super) fn predict_live_entry(
        &self,
        live: &LiveEntry,
        findings: &mut Findings,
    ) -> Option<LiveEntry> {
        let DiffContext { group_declarations: groups, target, .. } = self.context;
        let is_transferred =
            target.former_location.as_ref().is_some_and(|former| former.is_transferred);
        if self.section.shape == Shape::List
            || !(is_transferred || groups.has_setting_above(&target.path))
        {
            return None;
        }
        let replaced_values = self.values.iter().filter_map(|(name, value)| {
            let plain_value =
                value.plain_json().filter(|plain| live.fields.raw().get(name) == Some(plain))?;
            let replacement = constraints::find_constraints(self.section.section, Some(name))
                .find_map(|constraint| {
                    let replacement = match self.context.changed_setting(constraint, findings) {
                        Some(group_value) => constraint.value_below(group_value)?.clone(),
                        None if is_transferred => {
                            let (_, limit) = self.context.live_value_above(constraint, findings)?;
                            constraint.value_after_move(&limit, plain_value)?.clone()
                        }
                        None => return None,
                    };
                    (replacement != *plain_value).then_some(replacement)
                });
            Some((name.clone(), replacement?))
        });
        let replacements: Vec<_> = replaced_values.collect();
        let mut live_after_groups = (!replacements.is_empty()).then(|| live.clone())?;
        live_after_groups.fields.raw_mut().extend(replacements);
        Some(live_after_groups)
    }

    /// True if the service would refuse these changes, because the visibility of a field would
    /// exceed its limit. Adds a problem for each field whose visibility exceeds its limit.
    pub(super) fn check_visibility(
        &self,
        live: &LiveEntry,
        changes: &[FieldChange],
        findings: &mut Findings,
    ) -> bool {
        let value_after = |name: &str| {
            let declared = self.values.get(name).and_then(Value::plain_json);
            declared.or_else(|| live.fields.raw().get(name)).cloned()
        };
        let is_changed = |name: &str| changes.iter().any(|change| &*change.field == name);
        let exceeding = needs::fields_above_limit(self.section, value_after);
        let problems: Vec<_> = exceeding
            .filter(|(name, _, most, _)| is_changed(most) || is_changed(name))
            .map(|(name, value, most, limit)| {
                let [value, limit] = [value, limit].map(|json| forms::plain_text(&json));
                // The unchanged field must be adapted to the changed one.
                let (field_name, other, needed) =
                    if is_changed(most) { (most, name, &limit) } else { (name, most, &value) };
                let args = placeholders![name, value, most, limit, other, needed];
                self.problem(texts::TOO_VISIBLE, args, field_name)
            })
            .collect();
        let has_problems = !problems.is_empty();
        findings.problems.extend(problems);
        has_problems
    }

    /// The fields that differ from `live`. Adds notes for fields that are not compared.
    pub(super) fn find_changes(
        &self,
        live: &LiveEntry,
        findings: &mut Findings,
    ) -> Vec<FieldChange> {
        let mut changes = Vec::new();
        let (mut unverified_fields, mut not_returned_fields) = (Vec::new(), Vec::new());
        let mut fields_by_wait_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let is_resent =
            self.context.resend_selectors.iter().any(|selector| selector.matches(&self.address));
        for (name, value) in &self.values {
            if let Some(wait_reason) = self.wait_reason(name, Some(live)) {
                fields_by_wait_reason.entry(wait_reason).or_default().push(name.clone());
                continue;
            }
            let field_diff = self.compare_field(name, value, live);
            let needs_support = !matches!(field_diff, FieldDiff::Same | FieldDiff::Local);
            if needs_support && !self.check_support(name, value, findings) {
                continue;
            }
            if let FieldDiff::Differs = field_diff
                && let Some(limit) = self.context.group_limit(self.section, name, value, findings)
            {
                match limit.into_problem(&self.address, &self.origin(name)) {
                    Ok(problem) => findings.problems.push(problem),
                    Err(why) => fields_by_wait_reason.entry(why).or_default().push(name.clone()),
                }
                continue;
            }
            match field_diff {
                FieldDiff::Same
                    if is_resent
                        && (self.section.needs_new_entry(name, value)
                            || self.section.can_send_credential(name, value)) =>
                {
                    changes.push(self.new_change(name, Some(live)));
                }
                FieldDiff::Same if matches!(value, Value::Secret(Reference::Data(_))) => {
                    unverified_fields.push(name.clone());
                }
                FieldDiff::Same | FieldDiff::Local | FieldDiff::SecretMissing => {}
                FieldDiff::Differs => changes.push(self.new_change(name, Some(live))),
                FieldDiff::NotReadable if is_resent => {
                    changes.push(self.new_change(name, Some(live)));
                }
                FieldDiff::NotReadable => unverified_fields.push(name.clone()),
                FieldDiff::NotReturned => not_returned_fields.push(name.clone()),
            }
        }
        let wait_notes =
            fields_by_wait_reason.into_iter().map(|(why, fields)| (Reason::Waits { why }, fields));
        let unverified_notes =
            [(Reason::CannotVerify, unverified_fields), (Reason::NotReturned, not_returned_fields)]
                .into_iter();
        let notes = wait_notes.chain(unverified_notes.filter(|(_, fields)| !fields.is_empty()));
        findings.notes.extend(notes.map(|(reason, fields)| self.new_note(reason, fields)));
        changes
    }

    fn compare_field(&self, name: &str, value: &Value, live: &LiveEntry) -> FieldDiff {
        let field = self.field(name);
        // A field that only the creation of an entry uses has no meaning later.
        let is_used_once = field.accepted == Acceptance::OnCreate && field.read == Readback::Never;
        if is_used_once || self.is_local_only(name) {
            return FieldDiff::Local;
        }
        // It is unknown how the service shows a secret in a field that undrift does not know.
        let is_secret_extra = self.spec(name).is_none() && matches!(value, Value::Secret(_));
        if !is_readable(field) || forms::is_hidden_in_responses(field, live) || is_secret_extra {
            return FieldDiff::NotReadable;
        }
        let declared = match &*self.expose_secret(name, value) {
            Value::Plain(declared) => {
                forms::to_comparable(self.spec(name), declared, self.context.names)
            }
            Value::Secret(_) => return FieldDiff::SecretMissing,
            // The service shows that a file exists, but not its content.
            Value::File(_)
                if live.fields.raw().get(name).is_some_and(|live_value| !live_value.is_null()) =>
            {
                return FieldDiff::NotReadable;
            }
            Value::File(_) => Json::Bool(true),
        };
        let is_same = |live: &Json| forms::are_equal(field.compare, &declared, live);
        let switch_state = needs::switch_state(field, &self.values, Some(live));
        match live.fields.raw().get(name) {
            Some(live_value) if is_same(live_value) => FieldDiff::Same,
            Some(_) if self.context.facts.is_unlicensed && field.available.tier > Tier::Free => {
                FieldDiff::NotReturned
            }
            Some(_) => FieldDiff::Differs,
            None if switch_state == SwitchState::TurnedOn => FieldDiff::Differs,
            None if switch_state == SwitchState::Off => FieldDiff::Same,
            None if field.read == Readback::IfPresent => FieldDiff::NotReadable,
            // A response may omit a null. A missing field means null only if the service shows fields of
            // that tier.
            None if field.nullable
                && field.available.tier <= live.tier
                && !live.fields.is_withheld(name) =>
            {
                if is_same(&Json::Null) {
                    FieldDiff::Same
                } else {
                    FieldDiff::Differs
                }
            }
            None => FieldDiff::NotReturned,
        }
    }

    pub(super) fn new_change(&self, name: &str, live: Option<&LiveEntry>) -> FieldChange {
        let field = self.field(name);
        let before = match live {
            None => Shown::Absent,
            Some(_) if !is_readable(field) => Shown::Unknown,
            // A value that is declared as a secret is secret on the service too.
            Some(live)
                if matches!(self.values[name], Value::Secret(_))
                    && field.compare != Equality::Rows
                    && live.fields.raw().contains_key(name) =>
            {
                Shown::Hidden
            }
            Some(live) => {
                show_live(self.spec(name), live.fields.raw().get(name), self.context.names)
            }
        };
        let after = match (show_declared(field, &self.values[name], &self.values), &before) {
            // Omit the defaults of rows, because live rows are shown without their defaults too.
            (Shown::Value(rows), Shown::Value(_)) => Shown::Value(
                self.spec(name).map_or_else(|| rows.clone(), |spec| spec.strip_defaults(&rows)),
            ),
            (after, _) => after,
        };
        FieldChange::new(name, before, after, self.entry.fields.origin(name))
    }
}

/// The result of comparing a field.
enum FieldDiff {
    Same,
    Differs,
    /// Only undrift uses the field. It is never sent.
    Local,
    /// The service never returns the field.
    NotReadable,
    /// The service can return the field, but the response lacks it.
    NotReturned,
    /// The declared value is a secret that is not set.
    SecretMissing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogue, desired::testing, diff::tests::DiffFixture, field::Scope};

    /// The fields that are neither compared nor shown are exactly the fields of this list.
    #[test]
    fn local_fields_are_neither_compared_nor_shown() {
        let mut found_fields = Vec::new();
        for section in catalogue::sections(Scope::Project) {
            let entry = testing::entry(section, &Json::Null);
            let world = DiffFixture::default();
            let entry_diff = EntryDiff::new(section, &entry, world.context());
            let specs = section.specs().iter();
            let local_specs = specs.filter(|spec| entry_diff.is_local_only(spec.name));
            found_fields
                .extend(local_specs.map(|spec| format!("{}.{}", section.section, spec.name)));
        }
        found_fields.retain(|name| !name.starts_with("create."));
        let expected = [
            "members.user",
            "shares.group",
            "approval_rules.previously",
            "pipeline_schedules.previously",
            "hooks.previously",
            "job_token_allowlist.project",
            "job_token_groups_allowlist.group",
            "labels.previously",
            "milestones.previously",
            "pipeline_schedule_variables.schedule",
            "runners.runner",
        ];
        assert_eq!(found_fields, expected);
    }
}
