//! The rows of a step, one for each field, and the steps that must come before the step.

use super::value::{ValueText, comparable_text, multi_line_text, value_text};
use crate::{
    address::Address,
    catalogue,
    diff::{Action, FieldChange, Label, Shown, Step},
    field::{Scope, is_on},
    kind::plain_text,
    origin::Origin,
    report::Paint,
    value::Json,
};

/// Remarks about how a step is applied.
pub fn remarks(step: &Step) -> Vec<String> {
    let replacement_note = step.replaces.then(|| {
        "removed and added again, because the service cannot edit it: for a moment it does not exist"
            .to_owned()
    });
    let condition_note = step.possible.map(|condition| format!("possible: {condition}"));
    replacement_note.into_iter().chain(condition_note).collect()
}

/// The colour and the sign for an action.
pub const fn action_sign(action: Action) -> (Paint, char) {
    match action {
        Action::Create => (Paint::Add, '+'),
        Action::Update => (Paint::Change, '~'),
        Action::Delete => (Paint::Remove, '-'),
    }
}

/// The name of an object for readers: its address without the container, decoded. The container
/// itself is called by the noun of its `scope`.
pub fn object_name(scope: Scope, address: &Address) -> String {
    if address.section.is_some() { local_name(address) } else { scope.noun().to_owned() }
}

/// The file and the line of a declaration.
pub fn file_line(origin: &Origin) -> String {
    format!("{}:{}", origin.file, origin.line)
}

/// An address, decoded for reading.
pub fn full_name(address: &Address) -> String {
    match address.section {
        None => address.to_string(),
        Some(_) => format!("{}#{}", address.path, local_name(address)),
    }
}

/// An address without its container, decoded for reading.
pub fn local_name(address: &Address) -> String {
    match (address.section, &address.entry) {
        (None, _) => "itself".into(),
        (Some(section), None) => section.into(),
        (Some(section), Some(entry)) => format!("{section}/{entry}"),
    }
}

/// The name of an object, with a colon, for a line about its group or project; empty for the container.
pub fn object_prefix(address: &Address) -> String {
    address.section.map_or_else(String::new, |_| local_name(address) + ": ")
}

/// The identity fields of a new entry whose values are already in its address.
fn identity_fields(step: &Step) -> Vec<&str> {
    let section_name = step.address.section.filter(|_| step.action == Action::Create);
    // A section of this name has the same identity in every scope.
    let section = catalogue::all_sections().find(|section| Some(section.section) == section_name);
    let (Some(section), Some(entry)) = (section, &step.address.entry) else { return Vec::new() };
    let identity_changes = step.changes.iter().filter(|change| match &*change.after {
        Shown::Value(value) => {
            section.identity.contains(&&*change.field) && entry.contains(&plain_text(value))
        }
        _ => false,
    });
    identity_changes.map(|change| &*change.field).collect()
}

/// The names of the steps that must come before `step`, by reason. Steps of the same section and of
/// the container itself are omitted, because readers expect them. The names of steps in the same
/// container have no path.
pub fn predecessors(step: &Step) -> Vec<(&'static str, Vec<String>)> {
    let mut names_by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for edge in &step.after {
        let is_same_container = edge.address.path == step.address.path;
        let section = edge.address.section;
        if is_same_container && (section.is_none() || section == step.address.section) {
            continue;
        }
        let name =
            if is_same_container { local_name(&edge.address) } else { edge.address.to_string() };
        match names_by_reason.iter_mut().find(|(reason, _)| *reason == edge.reason) {
            Some((_, names)) => names.push(name),
            None => names_by_reason.push((edge.reason, vec![name])),
        }
    }
    names_by_reason
}

/// The rows for `changes` of a step. Fields that the address shows have no row. A mapping has a row
/// for each key that differs. Fields whose removal loses nothing have a row only with `is_full`.
pub fn build_rows<'s>(
    step: &'s Step,
    changes: impl IntoIterator<Item = &'s FieldChange>,
    is_full: bool,
) -> Vec<StepRow<'s>> {
    let identity_names = identity_fields(step);
    let changes = changes.into_iter().filter(|change| !identity_names.contains(&&*change.field));
    let rows = changes.flat_map(|change| step_rows(step, change));
    rows.filter(|row| is_full || !row.loses_nothing()).collect()
}

/// A row of a step: a field, or a key of a mapping.
pub struct StepRow<'s> {
    /// The step.
    pub step: &'s Step,
    /// The field, or the field and the key.
    pub name: String,
    /// The live value.
    pub before: Shown,
    /// The declared value.
    pub after: Shown,
    /// The label of the change, if it differs from the label of the step.
    pub label: Option<Label>,
    /// The origin of the change, if it differs from the origin of the step.
    pub origin: Option<&'s Origin>,
}

impl StepRow<'_> {
    /// True if the object is removed, and the removal of this value loses nothing.
    fn loses_nothing(&self) -> bool {
        self.step.action == Action::Delete
            && matches!(self.before, Shown::Value(Json::Null | Json::Bool(false)))
    }

    /// The texts of the live and the declared value. A creation or a removal has only one of them.
    pub fn before_and_after_texts(&self) -> [Option<ValueText>; 2] {
        let (before, after) = (value_text(&self.before), value_text(&self.after));
        match (self.step.action, &self.before, &self.after) {
            (Action::Create, ..) => [None, Some(after)],
            (Action::Delete, ..) => [Some(before), None],
            (Action::Update, Shown::Hidden, Shown::Hidden) => {
                [Some(before), Some(ValueText::Remark("(hidden, changed)".into()))]
            }
            (Action::Update, ..) => [Some(before), Some(after)],
        }
    }

    /// The live and the declared value as texts for a comparison by lines, if one of them has
    /// several lines.
    pub fn multi_line_texts(&self) -> Option<(&str, &str)> {
        match self.step.action {
            Action::Create => Some(("", multi_line_text(&self.after)?)),
            Action::Delete => Some((multi_line_text(&self.before)?, "")),
            Action::Update => {
                multi_line_text(&self.before).or(multi_line_text(&self.after))?;
                comparable_text(&self.before).zip(comparable_text(&self.after))
            }
        }
    }
}

/// The rows of a change. A mapping has a row for each key that differs. If a switch is turned on,
/// the keys that limit the switch also have a row.
fn step_rows<'s>(step: &'s Step, change: &'s FieldChange) -> Vec<StepRow<'s>> {
    let label = change.label.filter(|_| change.label != step.label);
    let origin = change
        .origin
        .as_ref()
        .filter(|origin| (&origin.file, origin.line) != (&step.origin.file, step.origin.line));
    let (before, after) = (&*change.before, &*change.after);
    let whole_row = || {
        let (before, after) = (before.clone(), after.clone());
        vec![StepRow { step, name: change.field.to_string(), before, after, label, origin }]
    };
    let Shown::Value(Json::Object(object_after)) = after else { return whole_row() };
    let section = step.address.section.and_then(|name| catalogue::find_section(step.scope, name));
    let spec = section.and_then(|section| section.spec(&change.field));
    let mut rows = Vec::new();
    for (key, value) in object_after {
        let (live_value, declared_value) =
            (live_value_at(before, key), Shown::Value(value.clone()));
        let switch = spec.and_then(|spec| spec.key_field(key)?.relations.limits);
        let is_limit = switch.is_some_and(|switch| {
            let new_value = object_after.get(switch).filter(|new| is_on(new));
            new_value.is_some_and(|new| live_value_at(before, switch) != Shown::Value(new.clone()))
        });
        if live_value != declared_value || is_limit {
            let name = format!("{}.{key}", change.field);
            rows.push(StepRow {
                step,
                name,
                before: live_value,
                after: declared_value,
                label,
                origin,
            });
        }
    }
    if rows.is_empty() { whole_row() } else { rows }
}

/// The live value at a key of a mapping.
fn live_value_at(before: &Shown, key: &str) -> Shown {
    match before {
        Shown::Value(Json::Object(before)) => {
            before.get(key).map_or(Shown::Unknown, |value| Shown::Value(value.clone()))
        }
        other => other.clone(),
    }
}
