//! The creation of a container with its settings: a POST with the fields that a create request
//! accepts, a PUT with those that only an edit accepts, and a request for each file.

use crate::{
    kind::{Former, calls::split_files, forms::Encoder, limits},
    operation::Request,
};

use super::prelude::*;

/// The requests that create a container.
pub(super) struct CreationRequests<'c> {
    /// The create request, without a body.
    pub(super) post: Request<Write>,
    /// Whether the create request accepts a field, given its name, its treatment, and its name in
    /// requests.
    pub(super) accepts: &'c dyn Fn(&str, &Field, &str) -> bool,
    /// The operation of the other requests.
    pub(super) edit: Op<Write>,
    /// The fields with the namespace and the name.
    pub(super) base_fields: Fields,
}

impl CreationRequests<'_> {
    /// The calls that create the container of `context` with its `declared` fields and with the
    /// sections that are created with it.
    ///
    /// # Errors
    /// If a field names something that the service does not have.
    pub(super) fn plan_calls(self, context: &CallContext<'_>, declared: &Fields) -> Calls {
        let naming_fields: Vec<_> = self.base_fields.keys().cloned().collect();
        let mut first = self.base_fields.clone();
        let mut then = Fields::new();
        let settings = super::section(context.target.scope, super::settings::SECTION);
        for (name, value) in declared {
            let container = context.section.spec(name).map(|_| context.section);
            let Some(section) = container.or(settings) else { continue };
            let is_waiting = section.describe_wait(name, declared, None, true).is_some();
            if is_waiting || equals_default(context.section, section, name, value) {
                continue;
            }
            let field = section.field(name);
            let takes = self.accepts_with_limits(section, name, declared);
            // A form with a file cannot contain nested values.
            let body = if takes && !matches!(value, Value::File(_)) {
                &mut first
            } else if field.accepted.includes(WriteRequest::Edit) {
                &mut then
            } else {
                continue;
            };
            body.extend([Encoder { section, names: context.names }.encode_field(name, value)?]);
        }
        if let Some(settings) = settings {
            let encoder = Encoder { section: settings, names: context.names };
            encoder.add_required_fields(&mut then, declared, None)?;
        }
        let mut calls = Vec::new();
        let post = self.post.fields(first).naming(naming_fields);
        for request in std::iter::once(post).chain(edit_requests(context, self.edit, then)) {
            let body = request.body_fields();
            let undo_body = settings
                .zip(body)
                .map(|(section, body)| limits::switch_off_body(section, body, None));
            calls.push(PlannedCall::from(request));
            for undo in edit_requests(context, self.edit, undo_body.unwrap_or_default()) {
                calls.push(PlannedCall { is_undo: true, ..undo.into() });
            }
        }
        Ok(calls)
    }

    /// True if the create request accepts a field and all its limits.
    fn accepts_with_limits(&self, section: Section, name: &str, declared: &Fields) -> bool {
        let takes =
            |name: &str| (self.accepts)(name, section.field(name), section.table().sent_name(name));
        let limits = limits::limiting_fields(section, name)
            .filter(|limit| declared.contains_key(limit.name));
        takes(name)
            && !limits.into_iter().any(|limit| {
                !takes(limit.name) && section.field(name).accepted.includes(WriteRequest::Edit)
            })
    }
}

/// The calls that rename a container and then move it: the service cannot do both in one call.
/// `field` of the `transfer` has the new namespace.
pub(super) fn relocate(
    job: &CallContext<'_>,
    former: &Former,
    edit: Op<Write>,
    transfer: Op<Write>,
    field: &str,
) -> Vec<PlannedCall> {
    let renamed = former.is_renamed.then(|| {
        let path = Some(("path".to_owned(), job.target.slug().into()));
        let name = former.name.as_deref().map(|name| ("name".to_owned(), name.into()));
        job.target.request(edit).fields(path.into_iter().chain(name).collect())
    });
    let moved = former.is_transferred.then(|| {
        let namespace = job.target.namespace.as_ref();
        let to = namespace.map(|namespace| (field.to_owned(), namespace.id.to_json().into()));
        let transfer = job.target.request(transfer);
        transfer.fields(to.into_iter().collect()).naming([field.to_owned()])
    });
    renamed.into_iter().chain(moved).map(PlannedCall::from).collect()
}

/// True if the field can be left out of a create request because the result is the same: an empty
/// avatar, or a switch of `create:` that is off. The service answered `use_custom_template: false`
/// with an internal error, so switches that are off are left out.
fn equals_default(container: Section, section: Section, name: &str, value: &Value) -> bool {
    let is_container_section = std::ptr::eq(section.kind, container.kind);
    (section.field(name).is_upload() && value.is_null())
        || (is_container_section && value.plain() == Some(&Json::Bool(false)))
}

/// The edits with `body`: one for the data, and one for each file.
fn edit_requests(context: &CallContext<'_>, edit: Op<Write>, body: Fields) -> Vec<Request<Write>> {
    let (files, data) = split_files(body);
    let files = files.into_iter().map(|file| Fields::from([file]));
    let bodies = std::iter::once(data).filter(|data| !data.is_empty()).chain(files);
    bodies.map(|body| context.target.request(edit).fields(body)).collect()
}
