//! Converts steps and declarations into the records of a saved plan.
//!
//! The same code records the plan to save and, later, the new plan for the comparison. Therefore
//! both records omit the same values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::form::{Declaration, SavedCall, SavedChange, SavedStep, Sent};
use crate::{
    address::Address,
    catalogue,
    desired::{Container, DeclaredFields, DeclaredSection, EntryPresence},
    diff::{self, Shown, show_declared},
    digest::{self, DigestKey},
    field::{Field, Secrecy},
    kind::{self, FieldSpec, Section},
    secret::{Secrets, judge},
    value::{Fields, Json, Object, Value},
};

/// Records steps and declarations for a saved plan, without secrets.
#[derive(Clone, Copy)]
pub struct PlanRecorder<'a> {
    /// The secrets that no text may contain.
    pub secrets: &'a Secrets,
    /// The key for digests of hidden values; without it, these values have no digest.
    pub key: Option<&'a DigestKey>,
}

impl PlanRecorder<'_> {
    /// The record of the declaration of `container`.
    pub(super) fn record_declaration(self, container: &Container) -> Declaration {
        Declaration {
            scope: container.scope,
            path: self.redact_text(&container.path),
            declared: digest::json_digest(&self.declaration_content(container)),
        }
    }

    /// The record of `step`.
    pub(super) fn record_step(self, step: &diff::Step) -> SavedStep {
        assert_eq!(step.planned_calls.len(), step.calls.len(), "the plan keeps its requests");
        let sections = StepSections::for_step(step);
        let live = step.live_entry().map(|live| live.fields.raw());
        let record_change = |change: &diff::FieldChange| {
            let live_value = live.and_then(|live| live.get(&*change.field));
            let hidden_value = live_value.filter(|live| {
                is_masked(live) || sections.is_secret(|spec| *spec.name == *change.field)
            });
            SavedChange {
                field: self.redact_text(&change.field),
                before: self.redact_shown(&change.before),
                after: self.redact_shown(&change.after),
                found: hidden_value
                    .and_then(|live| self.keyed_digest(&step.address, &change.field, live)),
                origin: change.origin.clone(),
            }
        };
        let calls = step.planned_calls.iter();
        SavedStep {
            scope: step.scope,
            path: self.redact_text(&step.address.path).into(),
            section: step.address.section.map(str::to_owned),
            entry: step.address.entry.as_deref().map(|entry| self.redact_text(entry)),
            action: step.action,
            replaces: step.replaces,
            possible: step.possible.is_some(),
            origin: step.origin.clone(),
            changes: step.changes.iter().map(record_change).collect(),
            calls: calls.map(|call| self.record_call(step, &sections, call)).collect(),
        }
    }

    fn record_call(
        self,
        step: &diff::Step,
        sections: &StepSections,
        call: &kind::PlannedCall,
    ) -> SavedCall {
        let request = &call.request;
        let changed_names = sections.sent_names(step);
        let is_secret = |name: &str, value: &Json| {
            is_masked(value)
                || request.is_sensitive(name)
                || sections.is_secret(|spec| is_sent_as(spec, name))
        };
        // A replacement also sends the unchanged fields, with their live values.
        let keeps_live_value =
            |name: &str| call.is_restore || (step.replaces && !changed_names.contains(name));
        let digest_live = |name: &str, value: &Json| {
            Sent::AsItIs(if is_secret(name, value) {
                self.keyed_digest(&step.address, name, value)
            } else {
                Some(digest::json_digest(&self.redact_json(value)))
            })
        };
        let declared_fields = request.body_fields().into_iter().flatten().map(|(name, value)| {
            let sent_value = match value {
                Value::Secret(reference) => Sent::Secret(reference.to_string()),
                Value::File(path) => Sent::File(self.redact_text(path)),
                Value::Plain(value) if keeps_live_value(name) => digest_live(name, value),
                Value::Plain(value) if is_secret(name, value) => Sent::Hidden,
                Value::Plain(value) => Sent::Value(self.redact_json(value)),
            };
            (self.redact_text(name), sent_value)
        });
        let repeated_fields = request
            .repeated_values()
            .map(|(name, value)| (self.redact_text(name), digest_live(name, value)));
        SavedCall {
            operation: request.operation.id.to_owned(),
            path: self.redact_text(&request.display_target()),
            body: declared_fields.chain(repeated_fields).collect(),
            restores: call.is_restore,
            undoes: call.is_undo,
            awaits: call.awaits_jobs,
        }
    }

    fn declaration_content(self, container: &Container) -> Json {
        let (container_kind, _) = catalogue::container(container.scope);
        let address = container.address();
        let sections = container.sections.iter();
        let sections: Object = sections
            .map(|section| {
                (section.kind.section.to_owned(), self.section_content(section, &address))
            })
            .collect();
        let lifecycle = &container.lifecycle;
        let former_paths: Vec<_> =
            container.former_paths().map(|path| self.redact_text(path)).collect();
        json!({
            "create": container.creation_policy.create_fields().map(|fields| self.fields_content(container_kind, fields, &address)),
            "watch": container.is_watched,
            "previously": former_paths,
            "is_absent": lifecycle.absent_origin().is_some(),
            "unlisted_projects": lifecycle.unlisted_projects.as_ref().map(|policy| policy.value.word()),
            "sections": sections,
        })
    }

    fn section_content(self, section: &DeclaredSection, container: &Address) -> Json {
        let unmanaged: Vec<_> =
            section.unmanaged_globs.iter().map(|glob| self.redact_text(glob.pattern())).collect();
        json!({
            "unlisted": section.unlisted.value.word(),
            "unmanaged": unmanaged,
            "entries": section.entries.iter().map(|entry| {
            let address = section.address_of(entry, container);
            let fields = self.fields_content(section.kind, &entry.fields, &address);
            let is_present = entry.state == EntryPresence::Present;
            (self.redact_text(&entry.key), json!({ "is_present": is_present, "fields": fields }))
        }).collect::<Object>(),
        })
    }

    fn fields_content(self, section: Section, fields: &DeclaredFields, address: &Address) -> Json {
        let values = fields.values();
        let contents = values.iter().map(|(name, value)| {
            let field = section.field(name);
            (self.redact_text(name), self.field_content(field, name, value, &values, address))
        });
        contents.collect::<Object>().into()
    }

    /// A declared value in a form that may be shown, with a keyed digest if parts are hidden.
    fn field_content(
        self,
        field: &Field,
        name: &str,
        value: &Value,
        other_fields: &Fields,
        address: &Address,
    ) -> Json {
        let shown_value = show_declared(field, value, other_fields);
        let keyed = value
            .plain_json()
            .filter(|plain| !matches!(&shown_value, Shown::Value(shown) if shown == *plain))
            .and_then(|plain| self.keyed_digest(address, name, plain));
        json!({ "value": self.redact_shown(&shown_value), "keyed": keyed })
    }

    /// The keyed digest of a field's `value`; `None` without a key. The digest depends on the
    /// address, so that equal values of two objects have different digests.
    fn keyed_digest(self, address: &Address, field: &str, value: &Json) -> Option<String> {
        let address_text = address.to_string();
        Some(self.key?.digest(&json!({ "at": address_text, "field": field, "value": value })))
    }

    fn redact_shown(self, shown: &Shown) -> Shown {
        match shown {
            Shown::Value(value) => Shown::Value(self.redact_json(value)),
            Shown::File(path) => Shown::File(self.redact_text(path)),
            other => other.clone(),
        }
    }

    fn redact_json(self, value: &Json) -> Json {
        match value {
            Json::String(text) => self.redact_text(text).into(),
            Json::Array(items) => items.iter().map(|item| self.redact_json(item)).collect(),
            Json::Object(object) => object
                .iter()
                .map(|(name, value)| (self.redact_text(name), self.redact_json(value)))
                .collect(),
            other => other.clone(),
        }
    }

    pub(super) fn redact_text(self, text: &str) -> String {
        self.secrets.redact(text)
    }
}

/// The sections whose fields may occur in a step.
struct StepSections(Vec<Section>);

impl StepSections {
    /// The sections for `step`. The creation of a container also contains fields of other sections.
    fn for_step(step: &diff::Step) -> Self {
        let (container_kind, _) = catalogue::container(step.scope);
        let container_kind = step.address.section.is_none().then_some(container_kind);
        let sections =
            catalogue::sections(step.scope).filter(|section| match step.address.section {
                Some(name) => section.section == name,
                None => section.is_created_with_container(),
            });
        Self(sections.chain(container_kind).collect())
    }

    /// True if a field for which `matches_field` returns true has hidden values.
    fn is_secret(&self, matches_field: impl Fn(&FieldSpec) -> bool) -> bool {
        let specs = self.0.iter().flat_map(|section| section.specs());
        specs.filter(|spec| spec.field.secrecy() != Secrecy::Open).any(matches_field)
    }

    /// The names in requests of the fields that `step` changes.
    fn sent_names<'s>(&'s self, step: &'s diff::Step) -> BTreeSet<&'s str> {
        let names = step.changes.iter().map(|change| &*change.field);
        names
            .flat_map(|name| self.0.iter().map(move |section| section.table().sent_name(name)))
            .collect()
    }
}

/// True if records mask `value`, regardless of the field that contains it.
fn is_masked(value: &Json) -> bool {
    judge::contains_secret(value, Secrecy::Open)
}

/// True if `name` is the field's name in requests.
fn is_sent_as(spec: &FieldSpec, name: &str) -> bool {
    spec.field.sent_name() == name
}

/// The records of `steps`, and of their containers.
pub(super) fn record_all(
    steps: &[diff::Step],
    containers: &[Container],
    recorder: PlanRecorder<'_>,
) -> (Vec<SavedStep>, Vec<Declaration>) {
    let containers_by_path: BTreeMap<_, _> =
        containers.iter().map(|container| (&container.path, container)).collect();
    let changed_paths: BTreeSet<_> = steps.iter().map(|step| &step.address.path).collect();
    let declarations = changed_paths.into_iter().filter_map(|path| containers_by_path.get(path));
    let declarations =
        declarations.map(|container| recorder.record_declaration(container)).collect();
    (steps.iter().map(|step| recorder.record_step(step)).collect(), declarations)
}
