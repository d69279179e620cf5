//! Helpers for the tests of kinds.

use std::sync::Arc;

use super::{
    CallContext, EntryFault, FieldSelection, FieldSpec, Id, LiveEntry, LiveNamespace, NameIndex,
    NamespaceOwner, PlannedCall, Section, Target, calls::CallPurpose,
};
use crate::{
    catalogue,
    field::{Scope, Tier},
    operation::{Request, Write},
    release::{self, DetectedRelease},
    value::{Fields, Json, Object, Value},
};

/// The section of projects with this name.
pub fn project_section(name: &str) -> Section {
    catalogue::find_section(Scope::Project, name).unwrap()
}

/// The fields of a JSON object.
pub fn fields(json: Json) -> Fields {
    object(json).into_iter().map(|(name, value)| (name, Value::Plain(value))).collect()
}

/// Converts `json`, which must be an object.
pub fn object(json: Json) -> Object {
    serde_json::from_value(json).unwrap()
}

/// A project that exists, with the id 7.
pub fn existing_target() -> Target {
    Target { id: Some(7), ..new_target(NamespaceOwner::Group) }
}

/// A project that does not exist yet, in the namespace with the id 3.
pub fn new_target(owner: NamespaceOwner) -> Target {
    Target {
        namespace: Some(LiveNamespace { id: Id::Known(3), owner }),
        ..Target::new(Scope::Project, Arc::from("acme/shop"))
    }
}

/// Reads every field of a live object.
pub fn live_entry(section: Section, raw: Json) -> LiveEntry {
    section.read(&object(raw), FieldSelection::Known)
}

/// Adds to `raw` every flag that an edit repeats and that `raw` lacks. The added flags are off.
pub fn with_flags(section: Section, mut raw: Object) -> Object {
    let is_flag = |spec: &&FieldSpec| {
        spec.field.with_every_edit
            && spec.field.available.tier == Tier::Free
            && spec.schema["type"] == "boolean"
    };
    for spec in section.specs().iter().filter(is_flag) {
        let name = spec.field.live_name().unwrap_or(spec.name);
        raw.entry(name).or_insert(false.into());
    }
    raw
}

/// The requests of `calls`.
pub fn requests(calls: Vec<PlannedCall>) -> Vec<Request<Write>> {
    calls.into_iter().map(|call| call.request).collect()
}

/// The requests for `purpose` in the project with the id 7; none if no call is needed.
pub fn requests_for(
    section: Section,
    names: &NameIndex,
    purpose: CallPurpose<'_>,
) -> Vec<Request<Write>> {
    let release = DetectedRelease::Known(release::REFERENCE);
    let context = CallContext {
        section,
        target: &existing_target(),
        names,
        release,
        has_unique_address: true,
        purpose,
    };
    requests(section.rules().calls(&context).unwrap_or_default())
}

/// The requests that create an entry of the project with the id 7.
pub fn creation_requests(section: Section, declared: &Fields) -> Vec<Request<Write>> {
    requests_for(section, &NameIndex::default(), CallPurpose::Create(declared))
}

/// The requests that change a live entry of the project with the id 7.
pub fn edit_requests_for(
    section: Section,
    declared: &Fields,
    raw: Json,
    changed: &[&str],
) -> Vec<Request<Write>> {
    requests_for(
        section,
        &NameIndex::default(),
        CallPurpose::Change(declared, &live_entry(section, raw), changed),
    )
}

/// The requests that remove a live entry of the project with the id 7.
pub fn removal_requests(section: Section, raw: Json) -> Vec<Request<Write>> {
    requests_for(section, &NameIndex::default(), CallPurpose::Remove(&live_entry(section, raw)))
}

/// The operation, the target and the body of each request. The body includes repeated fields.
pub fn request_parts(requests: &[Request<Write>]) -> Vec<(&'static str, String, Fields)> {
    let body = |request: &Request<Write>| {
        let repeated_fields = request
            .repeated_values()
            .map(|(name, value)| (name.to_owned(), Value::Plain(value.clone())));
        repeated_fields.chain(request.body_fields().cloned().unwrap_or_default()).collect()
    };
    requests
        .iter()
        .map(|request| (request.operation.id, request.path_and_query(), body(request)))
        .collect()
}

/// The field and code of every fault that a kind finds.
pub fn find_faults(section: Section, declared: &Fields) -> Vec<(&'static str, &'static str)> {
    collect_faults(|report| section.check(declared, false, report))
}

/// The field and code of every fault that `check` reports.
pub fn collect_faults(
    check: impl FnOnce(&mut dyn FnMut(EntryFault)),
) -> Vec<(&'static str, &'static str)> {
    let mut faults = Vec::new();
    check(&mut |fault| faults.push((fault.field, fault.code)));
    faults
}
