//! A step creates, changes or removes one object, and contains the calls for that change.

use std::{borrow::Cow, collections::HashSet, hash::Hash, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    address::Address,
    catalogue,
    field::{NamedObject, Scope, WriteRequest},
    kind::{self, Capability, Effect, Id, LiveEntry, Outsider, Risk, Section},
    operation::{Request, Write},
    origin::Origin,
    value::{Fields, Json, Value},
};

/// The action of a step on an object.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The object is created.
    Create,
    /// Some fields of the object change.
    Update,
    /// The object is removed.
    Delete,
}

// The label is derived from three values: the value declared at the base of the branch, the value
// declared on the branch, and the live value.
/// The source of a difference.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The difference comes from the branch.
    Change,
    /// The branch edits a value that also drifted.
    Both,
    /// The base declares the entry, and the branch does not.
    Removed,
    /// The difference existed before the branch: somebody changed the service.
    Drift,
    /// The declaration at the base is not known.
    Unknown,
}

/// One side of a change, in a form that may be shown to anybody.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", content = "value", rename_all = "snake_case")]
pub enum Shown {
    /// There is no value.
    Absent,
    /// The service does not return the value.
    Unknown,
    /// Plain data.
    Value(Json),
    /// There is a value that is not shown: a live value of a sensitive field, or a literal that is
    /// declared to be masked.
    Hidden,
    /// The value of a secret, by its source: `env:NAME` or `file:PATH`.
    Secret(String),
    /// The content of a file.
    File(String),
}

impl Shown {
    /// The value; `None` if it is not plain data.
    pub const fn value(&self) -> Option<&Json> {
        match self {
            Self::Value(value) => Some(value),
            _ => None,
        }
    }
}

/// A field that differs.
// Equal parts of changes are stored once, because many groups and projects have the same changes:
// see `StepInterner`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldChange {
    /// The name of the field in the manifest.
    #[serde(serialize_with = "catalogue::serialize_name")]
    pub field: Arc<str>,
    /// The live value.
    pub before: Arc<Shown>,
    /// The declared value.
    pub after: Arc<Shown>,
    /// The place of the declaration; absent if the field is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The source of the difference; absent if the plan was made without a base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
}

impl FieldChange {
    /// A change of `field`, without a label.
    pub fn new(field: &str, before: Shown, after: Shown, origin: Option<Origin>) -> Self {
        let (field, before, after) = (field.into(), before.into(), after.into());
        Self { field, before, after, origin, label: None }
    }
}

/// A step that comes first, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// The step that comes first. A section means all steps of the section that come earlier in the
    /// plan.
    pub address: Address,
    /// The reason.
    #[serde(serialize_with = "crate::text::serialize_word")]
    pub reason: &'static str,
}

/// One object to create, change or remove.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The scope: `group` for a group and for objects in a group, `project` for a project and for
    /// objects in a project.
    pub scope: Scope,
    /// The object.
    pub address: Address,
    /// The action on the object.
    pub action: Action,
    /// True if the object is removed and added again, because the service cannot edit it. The
    /// object is missing for a moment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
    /// The condition of a possible step; absent for other steps. The object of a possible step can
    /// be read only after an earlier step. Then the step may be unnecessary, or a smaller change.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::text::serialize_optional_word"
    )]
    pub possible: Option<&'static str>,
    /// The part of a possible step that does not depend on its condition; `None` if there is no
    /// such part.
    #[serde(skip)]
    pub certain_part: Option<Box<Step>>,
    /// The place of the declaration: the entry, or the line of `unlisted` that removes the entry.
    pub origin: Origin,
    /// The changes, field by field.
    pub changes: Vec<FieldChange>,
    /// The source of the difference; absent if the plan was made without a base. This is the first
    /// label of the changes, in the order of [`Label`]. For a missing entry, the label is `both` if
    /// the base declared other values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// The calls, in order.
    pub calls: Vec<ShownCall>,
    /// The steps that come first, with reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Edge>,
    /// The calls in the form in which they are sent. The calls contain secret references, and live
    /// values that are not shown. The list is empty if the plan dropped the calls.
    #[serde(skip)]
    pub planned_calls: Vec<kind::PlannedCall>,
    /// The objects that the dropped requests refer to; `None` if there are no such objects.
    #[serde(skip)]
    pub dropped_references: Option<Box<RequestReferences>>,
    /// The effects of the step beyond the object itself.
    #[serde(skip)]
    pub effects: Vec<Effect>,
    /// True if the step removes a copy of another entry.
    #[serde(skip)]
    pub removes_copy: bool,
    /// The live entry. With it, apply detects later whether the entry changed meanwhile.
    #[serde(skip)]
    pub live: Option<KeptLive<LiveEntry>>,
}

impl Step {
    /// True if the step creates the container.
    pub fn creates_container(&self) -> bool {
        self.action == Action::Create && self.address.section.is_none()
    }

    /// True if the container accepts no changes after the step.
    pub fn archives_container(&self) -> bool {
        self.removes_capability(Capability::Writable)
    }

    /// True if the step gives the container `capability`.
    pub fn provides(&self, capability: Capability) -> bool {
        self.effects.contains(&Effect::provides(capability))
    }

    /// True if the step takes `capability` from the container.
    pub fn removes_capability(&self, capability: Capability) -> bool {
        self.effects.contains(&Effect::revokes(capability))
    }

    /// A step without label, edges, effects or live entry.
    pub fn new(
        scope: Scope,
        address: Address,
        action: Action,
        origin: Origin,
        changes: Vec<FieldChange>,
        planned_calls: Vec<kind::PlannedCall>,
    ) -> Self {
        Self {
            scope,
            address,
            action,
            replaces: planned_calls.iter().any(|call| call.is_restore),
            possible: None,
            certain_part: None,
            origin,
            changes,
            label: None,
            calls: planned_calls.iter().map(ShownCall::from).collect(),
            after: Vec::new(),
            planned_calls,
            dropped_references: None,
            effects: Vec::new(),
            removes_copy: false,
            live: None,
        }
    }

    /// True if the step adds an entry, as a creation or as part of a replacement.
    pub fn adds_entry(&self) -> bool {
        self.action == Action::Create || self.replaces
    }

    /// The entry name that is in use after the step, but not before it.
    pub fn taken_name(&self) -> Option<&str> {
        let is_new = self.adds_entry() || self.former_name().is_some();
        self.address.entry.as_deref().filter(|_| is_new)
    }

    /// The entry name that is in use before the step, but not after it.
    pub fn freed_name(&self) -> Option<&str> {
        match self.action {
            Action::Delete => self.address.entry.as_deref(),
            _ => self.former_name(),
        }
    }

    /// The former name of the entry; `None` if the step does not rename the entry.
    pub fn former_name(&self) -> Option<&str> {
        let section = catalogue::find_section(self.scope, self.address.section?)?;
        let [name] = section.identity else { return None };
        let change = self.change(name).filter(|_| self.action == Action::Update)?;
        change.before.value()?.as_str()
    }

    /// Adds the live entry.
    #[must_use]
    pub fn with_live(self, live: &LiveEntry) -> Self {
        Self { live: Some(KeptLive(Box::new(live.clone()))), ..self }
    }

    /// Sets the effects to `effects` and `risks`, and adds effects of the calls that no field shows.
    pub(super) fn with_effects(mut self, effects: Vec<Effect>, risks: Vec<Effect>) -> Self {
        self.effects = effects;
        self.effects.extend(risks);
        for call in &self.planned_calls {
            let opening_risk =
                call.opened_access.map(|text| Effect::Risk(Risk::Opens, text.to_owned()));
            let side_effect =
                call.side_effects.map(|description| Effect::SideEffect(description.to_owned()));
            self.effects.extend(side_effect.into_iter().chain(opening_risk));
        }
        self
    }

    /// Saves memory, because plans keep many steps: shrinks the lists, and shares equal parts with
    /// other steps through `interner`.
    pub(crate) fn shrink(&mut self, interner: &mut StepInterner) {
        self.changes.shrink_to_fit();
        self.effects.shrink_to_fit();
        self.after.shrink_to_fit();
        for change in &mut self.changes {
            intern(&mut interner.names, &mut change.field);
            intern(&mut interner.shown_values, &mut change.before);
            intern(&mut interner.shown_values, &mut change.after);
        }
        self.calls.iter_mut().for_each(|call| intern(&mut interner.bodies, &mut call.fields));
        self.planned_calls.iter_mut().for_each(|call| call.request.shrink());
    }

    /// Drops the requests, because apply plans the step again. Keeps the objects that the requests
    /// refer to. A step of the group or project itself keeps its requests. With these requests,
    /// apply detects that somebody else made the same change.
    pub(crate) fn drop_requests(&mut self) {
        if self.address.section.is_some() {
            self.dropped_references = RequestReferences::from_step(self);
            self.planned_calls = Vec::new();
        }
    }

    /// True if planning again from the same live state would give the same step: this step keeps
    /// its requests, and was not compared with a base.
    pub fn is_reusable(&self) -> bool {
        self.label.is_none() && self.planned_calls.len() == self.calls.len()
    }

    /// True if the difference existed before the reviewed branch.
    pub fn is_drift(&self) -> bool {
        self.label == Some(Label::Drift)
    }

    /// True if `other`, planned later, makes the same change to an unchanged object, with a subset of the
    /// calls.
    pub fn is_same_change(&self, other: &Self) -> bool {
        let mut calls = self.calls.iter();
        self.address == other.address
            && self.action == other.action
            && self.changes.len() == other.changes.len()
            && self.changes.iter().all(|change| self.is_same_field_change(other, &change.field))
            && other.calls.iter().all(|other| {
                calls.any(|call| {
                    call.has_same_target(other)
                        && other.fields.iter().all(|field| call.fields.contains(field))
                })
            })
    }

    /// True if `other`, planned later, makes the same change to an unchanged field.
    pub fn is_same_field_change(&self, other: &Self, field: &str) -> bool {
        let value_before = |step: &Self| step.live_entry()?.fields.raw().get(field).cloned();
        let value_after = |step: &Self| step.change(field).map(|change| change.after.clone());
        value_after(self) == value_after(other) && value_before(self) == value_before(other)
    }

    /// True if this step does no more than `possible`, a step that was shown. Both steps must
    /// concern the same object, and `possible` must contain all changes of this step. This step may
    /// replace the object only if `possible` replaces it.
    pub fn is_subset_of(&self, possible: &Self) -> bool {
        // A creation may become an update. A replacement may become a creation if the object no
        // longer exists.
        let is_other_action = !self.replaces && self.action != possible.action;
        self.has_changes_within(possible) && (self.replaces == possible.replaces || is_other_action)
    }

    /// True if this step concerns the same object as `possible`, sets only fields that `possible`
    /// sets, to the same values, and does not remove the object.
    pub fn has_changes_within(&self, possible: &Self) -> bool {
        self.address == possible.address
            && self.action != Action::Delete
            && self.changes.iter().all(|change| {
                possible.change(&change.field).is_some_and(|other| other.after == change.after)
            })
    }

    /// True if the fields that this step does not change have the same values in `new_entry`, the
    /// entry read later. A field that `new_entry` lacks is treated as unchanged.
    pub fn leaves_rest_unchanged(&self, section: Section, new_entry: &LiveEntry) -> bool {
        let live_fields = self.live_entry().into_iter().flat_map(|live| live.fields.raw());
        live_fields.filter(|(name, _)| self.change(name).is_none()).all(|(name, value_before)| {
            let field = section.field(name);
            let current = new_entry.fields.raw().get(name);
            !field.accepted.includes(WriteRequest::Create)
                || current.is_none_or(|value| kind::are_equal(field.compare, value_before, value))
        })
    }

    /// True if the step removes a copy of the entry at `address`.
    pub fn removes_copy_of(&self, address: &Address) -> bool {
        let name_and_id = self.address.entry.as_deref().and_then(|name| name.rsplit_once('@'));
        self.removes_copy
            && self.address.section == address.section
            && address.entry.as_deref() == name_and_id.map(|(name, _)| name)
    }

    /// The id of the live object; `None` if the object has no id.
    pub fn live_id(&self) -> Option<u64> {
        self.live_entry()?.id()
    }

    /// The live entry in comparable form.
    pub(crate) fn live_entry(&self) -> Option<&LiveEntry> {
        self.live.as_ref().map(|live| &*live.0)
    }

    /// The change of the field `name`.
    pub fn change(&self, name: &str) -> Option<&FieldChange> {
        self.changes.iter().find(|change| *change.field == *name)
    }

    /// The requests of the calls, unless they were dropped.
    pub fn requests(&self) -> impl Iterator<Item = &Request<Write>> {
        self.planned_calls.iter().map(|call| &call.request)
    }

    /// The paths of the containers, and the addresses of the entries, that must be created before
    /// the requests can be sent.
    pub fn awaited_objects(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let dropped = self.dropped_references.iter().flat_map(|dropped| &dropped.awaited_objects);
        let awaited = self.requests().flat_map(Request::awaited_containers);
        let entry_addresses = self.awaited_entries().map(|entry| entry.to_string().into());
        awaited.chain(dropped.map(String::as_str)).map(Cow::from).chain(entry_addresses)
    }

    /// The entries that the step refers to and that the run creates.
    pub fn awaited_entries(&self) -> impl Iterator<Item = &Address> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Follows { object, is_created: true } => Some(object),
            _ => None,
        })
    }

    /// The entries of the same container whose renames free the name of this entry.
    pub fn followed_entries(&self) -> impl Iterator<Item = &Address> {
        self.followed_addresses().filter(|address| address.path == self.address.path)
    }

    /// The paths that the arguments of the requests name.
    pub fn named_paths(&self) -> impl Iterator<Item = &str> {
        let dropped = self.dropped_references.iter().flat_map(|dropped| &dropped.named_paths);
        self.requests().flat_map(Request::named_paths).chain(dropped.map(String::as_str))
    }

    /// The secrets and files that the requests send.
    pub fn secrets_and_files(&self) -> impl Iterator<Item = &Value> {
        let fields = self.requests().filter_map(Request::body_fields).flat_map(Fields::values);
        let dropped = self.dropped_references.iter().flat_map(|dropped| &dropped.secrets_and_files);
        fields.filter(|value| value.plain_json().is_none()).chain(dropped)
    }

    /// The objects that must be moved, renamed or removed before the service accepts the step.
    pub fn followed_addresses(&self) -> impl Iterator<Item = &Address> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Follows { object, is_created: false } => Some(object),
            _ => None,
        })
    }

    /// The ids of the users whose access the step changes, each with the level before and after.
    pub fn user_access_changes(&self) -> impl Iterator<Item = (u64, u8, u8)> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Access { user_id: Some(user), before, after, .. } => {
                Some((*user, *before, *after))
            }
            _ => None,
        })
    }

    /// The path before the step, if the step moves the container to another namespace.
    pub fn former_path(&self) -> Option<&str> {
        self.effects.iter().find_map(|effect| match effect {
            Effect::Transfers { former_path, .. } => Some(&**former_path),
            _ => None,
        })
    }

    /// The level that the user whose access the step changes has from the group above before the
    /// run; 0 if unknown.
    pub fn inherited_level(&self) -> u8 {
        let levels = self.effects.iter().filter_map(|effect| match effect {
            Effect::Access { inherited_level: inherited, .. } => Some(*inherited),
            _ => None,
        });
        levels.max().unwrap_or(0)
    }

    /// The memberships that the user whose access the step changes has in groups above, if they were
    /// read: the path of each group in lower case, and the level.
    pub fn memberships_above(&self) -> impl Iterator<Item = &(Arc<str>, u8)> {
        self.effects.iter().flat_map(|effect| match effect {
            Effect::Access { memberships_above, .. } => &memberships_above[..],
            _ => &[],
        })
    }

    /// The ids of the users who need access. The second value is present for users without access
    /// to the container.
    pub fn users_needing_access(&self) -> impl Iterator<Item = (u64, Option<&Outsider>)> {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::NeedsAccess { object_type: NamedObject::User, id: Id::Known(id), outsider } => {
                Some((*id, outsider.as_ref()))
            }
            _ => None,
        })
    }
}

/// The objects that the requests of a step refer to.
#[derive(Clone, Debug)]
pub struct RequestReferences {
    awaited_objects: Vec<String>,
    named_paths: Vec<String>,
    secrets_and_files: Vec<Value>,
}

impl RequestReferences {
    fn from_step(step: &Step) -> Option<Box<Self>> {
        let references = Self {
            awaited_objects: step.awaited_objects().map(Cow::into_owned).collect(),
            named_paths: step.named_paths().map(str::to_owned).collect(),
            secrets_and_files: step.secrets_and_files().cloned().collect(),
        };
        let is_empty = references.awaited_objects.is_empty()
            && references.named_paths.is_empty()
            && references.secrets_and_files.is_empty();
        (!is_empty).then(|| Box::new(references))
    }
}

/// Shares equal parts of steps.
#[derive(Debug, Default)]
pub(crate) struct StepInterner {
    names: HashSet<Arc<str>>,
    shown_values: HashSet<Arc<Shown>>,
    bodies: HashSet<Arc<[String]>>,
}

/// Replaces `item` by an equal item in `interned_items`. If there is no equal item, adds `item` to
/// `interned_items`.
fn intern<T: Hash + Eq + ?Sized>(interned_items: &mut HashSet<Arc<T>>, item: &mut Arc<T>) {
    match interned_items.get(item) {
        Some(equal) => *item = Arc::clone(equal),
        None => drop(interned_items.insert(Arc::clone(item))),
    }
}

/// Live state that is kept but not shown.
#[derive(Clone)]
pub struct KeptLive<T>(pub(crate) Box<T>);

impl<T> std::fmt::Debug for KeptLive<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[live]")
    }
}

/// A call in a form that may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Call")]
pub struct ShownCall {
    /// The id of the operation.
    #[serde(serialize_with = "crate::text::serialize_word")]
    pub operation: &'static str,
    /// The HTTP method.
    #[serde(serialize_with = "crate::text::serialize_word")]
    pub method: &'static str,
    /// The path and the query below `/api/v4`.
    pub path: String,
    /// The names of the fields in the body.
    #[serde(
        default,
        skip_serializing_if = "<[String]>::is_empty",
        serialize_with = "catalogue::serialize_names"
    )]
    pub fields: Arc<[String]>,
    /// True if the call is sent only if the call before it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
    /// True if the call is sent only if the call before it turned on a switch, and the response
    /// lacks the limit of that switch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoes: bool,
    /// True if the call waits for the import of the contents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub awaits: bool,
}

impl ShownCall {
    /// True if the call is sent only if the previous call fails, or if the response to the previous
    /// call is incomplete.
    pub const fn is_fallback(&self) -> bool {
        self.restores || self.undoes
    }

    /// True if `other` has the same target in its container. The segment of the container is
    /// ignored, because a new plan may address the container by its id.
    fn has_same_target(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.path.split('/').skip(3).eq(other.path.split('/').skip(3))
    }
}

impl From<&kind::PlannedCall> for ShownCall {
    fn from(call: &kind::PlannedCall) -> Self {
        let request = &call.request;
        let mut fields: Vec<_> = request.body_names().map(str::to_owned).collect();
        fields.sort();
        let operation = request.operation;
        Self {
            operation: operation.id,
            method: operation.method.as_str(),
            path: request.display_target(),
            fields: fields.into(),
            restores: call.is_restore,
            undoes: call.is_undo,
            awaits: call.awaits_jobs,
        }
    }
}
