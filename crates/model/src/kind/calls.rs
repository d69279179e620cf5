//! The calls that create an entry, change it or remove it.
//!
//! [`CallContext::default_calls`] builds these calls from the scoped kind. A kind that needs other
//! calls overrides [`KindRules::calls`](super::KindRules::calls). The result is at least one call,
//! or the reason why there are no calls.

use super::{
    EntryFault, FieldSelection, FieldSpec, FormerLocation, LiveEntry, NameIndex, Section, Target,
    fault_text,
    forms::{self, Encoder},
    limits,
};
use crate::{
    address::Address,
    cause::Cause,
    field::{Acceptance, WriteRequest},
    kind::KeyLocation,
    operation::{Op, Request, Write},
    planted::Bug,
    release::DetectedRelease,
    value::{Fields, Value},
};

/// The calls of a step, in order. There is at least one call, or the reason why there are no calls.
pub type Calls = Result<Vec<PlannedCall>, NoCalls>;

/// A call of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCall {
    /// The request.
    pub request: Request<Write>,
    /// True if the call is sent only after the previous call failed. It restores the entry that an
    /// earlier call removed.
    pub is_restore: bool,
    /// True if the call is sent only after the previous call turned on a switch, but the response
    /// lacks the limit of the switch. It turns the switch off again.
    pub is_undo: bool,
    /// True if apply waits for the background jobs of this call and of earlier calls, before it
    /// sends any other request for the container.
    pub awaits_jobs: bool,
    /// An effect that the fields of the step do not show, as a sentence that starts with "it".
    pub side_effects: Option<&'static str>,
    /// The access that the call gives to somebody, if a guard checks this access. The text is the
    /// end of a sentence that starts with "would".
    pub opened_access: Option<&'static str>,
}

impl From<Request<Write>> for PlannedCall {
    fn from(request: Request<Write>) -> Self {
        Self {
            request,
            is_restore: false,
            is_undo: false,
            awaits_jobs: false,
            side_effects: None,
            opened_access: None,
        }
    }
}

impl PlannedCall {
    /// True if the call is sent only after a failure.
    pub const fn is_only_after_failure(&self) -> bool {
        self.is_restore || self.is_undo
    }
}

/// The reason why there are no calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoCalls {
    /// No call is needed.
    NotNeeded,
    /// Too little of the live state is known. A change would reset or lose live values.
    LiveUnknown(Cause),
    /// The calls depend on the release of the service, which was not requested yet.
    DependsOnRelease,
    /// The entry names entries of this section, whose ids were not requested yet.
    DependsOnEntries(String),
    /// The calls depend on whether the token's user is in the group with this id, which was not looked up yet.
    DependsOnCallerGroup(u64),
    /// The change is impossible, because of a fault of the entry or of one of its fields.
    Impossible(EntryFault),
}

impl From<Cause> for NoCalls {
    fn from(cause: Cause) -> Self {
        Self::LiveUnknown(cause)
    }
}

impl From<EntryFault> for NoCalls {
    fn from(fault: EntryFault) -> Self {
        Self::Impossible(fault)
    }
}

/// Everything that is needed to build calls.
#[derive(Clone, Copy, Debug)]
pub struct CallContext<'a> {
    /// The section, in its scope.
    pub section: Section,
    /// The container.
    pub target: &'a Target,
    /// The ids of the objects that entries refer to.
    pub names: &'a NameIndex,
    /// The release of the service.
    pub release: DetectedRelease,
    /// True if no other entry, live or declared, has the same address in request paths.
    pub has_unique_address: bool,
    /// The purpose of the calls.
    pub purpose: CallPurpose<'a>,
}

/// The purpose of calls.
#[derive(Clone, Copy, Debug)]
pub enum CallPurpose<'a> {
    /// Create the entry as declared.
    Create(&'a Fields),
    /// Change the named fields of the live entry to their declared values.
    Change(&'a Fields, &'a LiveEntry, &'a [&'a str]),
    /// Remove the entry.
    Remove(&'a LiveEntry),
    /// Change the container itself.
    Container(Lifecycle<'a>),
}

/// A change of an existing container.
#[derive(Clone, Copy, Debug)]
pub enum Lifecycle<'a> {
    /// Rename the container, or move it to its declared path.
    Move(&'a FormerLocation),
    /// Delete the container with everything in it.
    Delete,
    /// Restore the container, which is marked for deletion.
    Restore,
}

/// The calls that must precede every change of `live`, an entry of `section`, by the user with the
/// id `caller_id`. They are the calls of a change without fields.
pub fn preparatory_calls(
    section: Section,
    live: &LiveEntry,
    target: &Target,
    caller_id: u64,
) -> Vec<PlannedCall> {
    let (names, no_fields) = (NameIndex::default().with_caller_id(caller_id), Fields::new());
    let purpose = CallPurpose::Change(&no_fields, live, &[]);
    let (names, release) = (&names, DetectedRelease::NotRequested);
    let context =
        CallContext { section, target, names, release, has_unique_address: true, purpose };
    section.rules().calls(&context).unwrap_or_default()
}

impl<'a> CallContext<'a> {
    /// The encoder of entries.
    const fn encoder(&self) -> Encoder<'a> {
        Encoder { section: self.section, names: self.names }
    }

    /// The calls of a collection whose kind does not override them.
    ///
    /// # Errors
    /// If the entry names an object that the service does not have, or if the entry cannot be
    /// changed.
    pub fn default_calls(&self) -> Calls {
        let calls = match self.purpose {
            CallPurpose::Create(declared) => vec![self.creation_request(declared)?.into()],
            CallPurpose::Remove(live) => vec![self.removal_request(live)?.into()],
            CallPurpose::Container(_) => return Err(NoCalls::NotNeeded),
            CallPurpose::Change(declared, live, changed) => {
                match self.section.scoped_kind.operations.edit {
                    Some(op) if self.needs_new_entry(declared, changed) => {
                        let mut edited_fields = changed.to_vec();
                        edited_fields.retain(|name| !self.needs_new_entry(declared, &[*name]));
                        // Edit the old entry first, so that the new entry differs from it only in
                        // the hidden secret.
                        let mut calls = match edited_fields[..] {
                            [] => Vec::new(),
                            _ => self.edit_calls(op, declared, live, &edited_fields)?,
                        };
                        calls.extend(self.recreate_calls(declared, live)?);
                        calls
                    }
                    Some(op) => {
                        self.require_changeable(changed)?;
                        self.edit_calls(op, declared, live, changed)?
                    }
                    None => self.replace_calls(declared, live)?,
                }
            }
        };
        let parent_calls = self.parent_calls().into_iter().flatten().cloned();
        Ok(self.action_before_removal().into_iter().chain(parent_calls).chain(calls).collect())
    }

    /// Refuses changes of fields that can only be set at creation.
    fn require_changeable(&self, changed: &[&str]) -> Result<(), NoCalls> {
        let fixed_field = changed.iter().find(|name| {
            self.section.field(name).accepted == Acceptance::OnCreate
                && !self.section.identity.contains(name)
        });
        match fixed_field.and_then(|name| self.section.spec(name)) {
            Some(spec) => {
                let fault = EntryFault::for_field(fault_text::FIXED, spec.name);
                Err(fault.fill("noun", self.section.noun).into())
            }
            None => Ok(()),
        }
    }

    /// The action that the service requires before it removes the entry.
    fn action_before_removal(&self) -> Option<PlannedCall> {
        let (CallPurpose::Remove(live), Some(action)) = (self.purpose, self.section.before_removal)
        else {
            return None;
        };
        let op = self.section.scoped_kind.operations.others.first()?;
        let request = self.entry_request(*op, live);
        let request = action
            .parameter
            .into_iter()
            .fold(request, |built_request, (name, value)| built_request.with_query(name, value));
        Some(PlannedCall { side_effects: Some(action.note), ..request.into() })
    }

    /// The request that creates the entry as declared.
    ///
    /// # Errors
    /// The errors of [`Self::default_calls`].
    pub fn creation_request(&self, declared: &Fields) -> Result<Request<Write>, NoCalls> {
        let op = self.section.scoped_kind.operations.create.ok_or(NoCalls::NotNeeded)?;
        let request = self.create_request_with_body(
            op,
            self.encoder().encode_body(declared, WriteRequest::Create)?,
        );
        self.with_parent_id(request, declared)
    }

    /// Adds the id of the parent entry, which `fields` name, to the path of `request`.
    fn with_parent_id(
        &self,
        request: Request<Write>,
        fields: &Fields,
    ) -> Result<Request<Write>, NoCalls> {
        let Some(parent) = self.section.scoped_kind.parent else { return Ok(request) };
        let name = fields.text(parent.field).unwrap_or_default();
        let id = self.names.require_entry_id(parent.section, name, parent.field)?;
        let container = Address::container(self.target.path.clone());
        let address = container.with_section(parent.section).with_entry(name).to_string();
        Ok(request.with_argument_by_path(parent.argument, &address, id.number()))
    }

    /// The calls that must precede a change below the parent entry; `None` if there is no parent
    /// entry, or no such call.
    fn parent_calls(&self) -> Option<&[PlannedCall]> {
        let parent = self.section.scoped_kind.parent?;
        let id = match self.purpose {
            CallPurpose::Create(declared) => {
                let name = declared.get(parent.field)?.text()?;
                self.names.require_entry_id(parent.section, name, parent.field).ok()?.number()
            }
            CallPurpose::Change(_, live, _) | CallPurpose::Remove(live) => {
                self.section.address_value(live, parent.argument)?.as_u64()
            }
            CallPurpose::Container(_) => None,
        };
        self.names.preparatory_calls(parent.section, id?)
    }

    fn create_request_with_body(&self, op: Op<Write>, mut body: Fields) -> Request<Write> {
        forms::prefer_single_levels(self.section, &mut body);
        let mut request = self.target.request(op);
        // The name of an entry that is created at its own path is in the path, not in the body.
        let specs = self.section.specs();
        for address_key in &self.section.scoped_kind.address_keys {
            if let KeyLocation::Path(argument) = address_key.location
                && op.row().has_argument(argument)
                && let Some(spec) = specs
                    .iter()
                    .find(|spec: &&FieldSpec| spec.field.live_name() == Some(address_key.field))
                && let Some(Value::Plain(name)) = body.remove(spec.field.sent_name())
            {
                request = request.with_argument(argument, forms::plain_text(&name));
            }
        }
        self.mark_fields(request.with_fields(body))
    }

    /// The calls that edit the entry: one call for the data, and one call for each file. A call
    /// that undoes the edit of the data may follow it.
    ///
    /// # Errors
    /// The errors of [`Self::default_calls`].
    pub fn edit_calls(
        &self,
        op: Op<Write>,
        declared: &Fields,
        live: &LiveEntry,
        changed: &[&str],
    ) -> Calls {
        let body = self.encoder().encode_edit_body(declared, live, changed)?;
        let (file_fields, data_fields) = split_files(body);
        let data_calls: Vec<_> = if data_fields.is_empty() {
            Vec::new()
        } else {
            let repeated_fields = self.encoder().repeated_fields(declared, live)?;
            let undo_body = limits::switch_off_body(self.section, &data_fields, Some(live));
            let make_edit_request = |edit_fields| {
                self.mark_fields(
                    self.entry_request(op, live)
                        .with_fields(edit_fields)
                        .with_repeated_values(repeated_fields.clone()),
                )
            };
            let edit_call = PlannedCall::from(make_edit_request(data_fields));
            let undo_call = (!undo_body.is_empty())
                .then(|| PlannedCall { is_undo: true, ..make_edit_request(undo_body).into() });
            std::iter::once(edit_call).chain(undo_call).collect()
        };
        let file_requests = file_fields
            .into_iter()
            .map(|file| self.entry_request(op, live).with_fields([file].into()));
        Ok(data_calls.into_iter().chain(file_requests.map(PlannedCall::from)).collect())
    }

    /// The calls that remove the entry, add it again as declared, and restore the old entry if the
    /// addition fails. Undeclared fields keep their live values.
    ///
    /// # Errors
    /// The errors of [`Self::default_calls`].
    pub fn replace_calls(&self, declared: &Fields, live: &LiveEntry) -> Calls {
        let current_body = self.live_entry_body(live)?;
        let mut new_body = current_body.clone();
        // Keep the live id of the object that the identity names, because the declared name may not
        // have been looked up.
        let mut declared = declared.clone();
        declared.retain(|name, _| {
            !self.section.identity.contains(&name) || self.section.field(name).names.is_none()
        });
        new_body.extend(self.encoder().encode_body(&declared, WriteRequest::Create)?);
        let op = self.section.scoped_kind.operations.create.ok_or(NoCalls::NotNeeded)?;
        let add_request =
            |body| self.with_parent_id(self.create_request_with_body(op, body), &declared);
        Ok(vec![
            self.removal_request(live)?.prevent_resend().into(),
            add_request(new_body)?.into(),
            PlannedCall { is_restore: true, ..add_request(current_body)?.into() },
        ])
    }

    /// True if a declared secret must be sent, but no edit can change it.
    fn needs_new_entry(&self, declared: &Fields, changed: &[&str]) -> bool {
        changed.iter().any(|name: &&str| {
            declared.get(name).is_some_and(|value| self.section.needs_new_entry(name, value))
        })
    }

    /// The calls that add the entry again with the declared secrets, and then remove the old entry.
    /// Undeclared fields keep their live values.
    fn recreate_calls(&self, declared: &Fields, live: &LiveEntry) -> Calls {
        let Some(whole_object) = &live.whole_object else { return Err(NoCalls::NotNeeded) };
        let whole_entry = self.section.read(whole_object.raw(), FieldSelection::Known);
        let reason = format!("which a new {} would not have", self.section.noun);
        forms::require_shown(self.section, &whole_entry, &reason, |spec| {
            spec.field.accepted.includes(WriteRequest::Create) && !declared.contains_key(spec.name)
        })?;
        let live_values = whole_entry.fields.raw().iter().filter(|(_, value)| !value.is_null());
        let mut new_fields: Fields =
            live_values.map(|(name, value)| (name.clone(), value.clone().into())).collect();
        new_fields.extend(declared.clone());
        let note = "it is added again, and then the old one is removed";
        let add_call =
            PlannedCall { side_effects: Some(note), ..self.creation_request(&new_fields)?.into() };
        Ok(vec![add_call, self.removal_request(live)?.into()])
    }

    /// Marks the fields of the body that are secret, and the fields that contain ids of referenced
    /// objects.
    fn mark_fields(&self, request: Request<Write>) -> Request<Write> {
        request
            .with_sensitive_fields(forms::sensitive_fields(self.section))
            .with_id_fields(forms::id_fields(self.section))
    }

    /// The body of a request that would create the live entry again.
    fn live_entry_body(&self, live: &LiveEntry) -> Result<Fields, NoCalls> {
        forms::require_shown(self.section, live, "which cannot be put back", |spec| {
            spec.field.accepted.includes(WriteRequest::Create)
        })?;
        let mut specs = self.section.specs().iter();
        if let Some(hidden_field) =
            specs.find(|spec| forms::is_hidden_in_responses(spec.field, live))
        {
            let cause =
                format!("the service hides `{}`, which cannot be put back", hidden_field.name);
            return Err(Cause::new(cause).into());
        }
        let mut body = Fields::new();
        for (name, value) in live.fields.raw() {
            let field = self.section.field(name);
            if !field.accepted.includes(WriteRequest::Create) || value.is_null() {
                continue;
            }
            // The id of a referenced object is one of the values that address the live entry.
            let sent_name = self.section.table().sent_name(name);
            match field.names.and_then(|_| self.section.address_value(live, sent_name)) {
                Some(id) => body.insert(sent_name.to_owned(), id.clone().into()),
                None => {
                    let value = Value::from(forms::strip_ids(value));
                    let (name, value) = self.encoder().encode_field(name, &value)?;
                    body.insert(name, value);
                }
            }
        }
        Ok(body)
    }

    /// The request that removes the entry.
    ///
    /// # Errors
    /// If undrift never removes entries of this section.
    pub fn removal_request(&self, live: &LiveEntry) -> Result<Request<Write>, NoCalls> {
        self.section
            .scoped_kind
            .operations
            .delete
            .map(|op| self.entry_request(op, live))
            .ok_or(NoCalls::NotNeeded)
    }

    /// A request of `op` that addresses the entry `live`.
    pub fn entry_request(&self, op: Op<Write>, live: &LiveEntry) -> Request<Write> {
        let request = self.target.request(op);
        let address_keys = self.section.scoped_kind.address_keys.iter().zip(&live.address_values);
        address_keys.fold(request, |request, (key, value)| match key.location {
            KeyLocation::Path(name) => request.with_argument(name, forms::plain_text(value)),
            KeyLocation::Query(_) if value.is_null() || Bug::OmitVariableScope.is_planted() => {
                request
            }
            KeyLocation::Query(name) => request.with_query(name, forms::plain_text(value)),
            KeyLocation::PathOnCreate(_) | KeyLocation::References => request,
        })
    }
}

/// Splits a body into its files and its other fields, because a form with a file cannot contain
/// nested values.
pub fn split_files(body: Fields) -> (Fields, Fields) {
    body.into_iter().partition(|(_, value)| matches!(value, Value::File(_)))
}
