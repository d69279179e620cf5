//! Plans the creation of a container with its settings: a POST with the fields that a create request
//! accepts, a PUT with the fields that only an edit accepts, and one more request for each file.

use crate::{
    kind::{FormerLocation, calls::split_files, forms::Encoder, limits},
    operation::Request,
};

use super::prelude::*;

/// The requests that create a container.
pub(super) struct CreationRequests<'c> {
    /// The create request, without a body.
    pub(super) create_request: Request<Write>,
    /// Returns true if the create request accepts a field. The parameters are the name of the
    /// field, the field, and the name of the field in requests.
    pub(super) accepts: &'c dyn Fn(&str, &Field, &str) -> bool,
    /// The operation of the edits after the create request.
    pub(super) edit_op: Op<Write>,
    /// The fields for the namespace and the name.
    pub(super) base_fields: Fields,
}

impl CreationRequests<'_> {
    /// The calls that create the container of `context` with its `declared` fields and with the
    /// sections that are created with it.
    ///
    /// # Errors
    /// If a field names something that the service does not have.
    pub(super) fn plan_calls(self, context: &CallContext<'_>, declared: &Fields) -> Calls {
        let base_names: Vec<_> = self.base_fields.keys().cloned().collect();
        let mut create_body = self.base_fields.clone();
        let mut edit_body = Fields::new();
        let settings = super::find_section(context.target.scope, super::settings::SECTION);
        for (name, value) in declared {
            let container_section = context.section.spec(name).map(|_| context.section);
            let Some(section) = container_section.or(settings) else { continue };
            let is_waiting = section.describe_wait(name, declared, None, true).is_some();
            if is_waiting || equals_default(context.section, section, name, value) {
                continue;
            }
            let field = section.field(name);
            let is_accepted = self.accepts_with_limits(section, name, declared);
            // Files are sent by edits, because a form with a file cannot contain nested values.
            let body = if is_accepted && !matches!(value, Value::File(_)) {
                &mut create_body
            } else if field.accepted.includes(WriteRequest::Edit) {
                &mut edit_body
            } else {
                continue;
            };
            body.extend([Encoder { section, names: context.names }.encode_field(name, value)?]);
        }
        if let Some(settings) = settings {
            let encoder = Encoder { section: settings, names: context.names };
            encoder.add_required_fields(&mut edit_body, declared, None)?;
        }
        let mut calls = Vec::new();
        let post = self.create_request.with_fields(create_body).with_id_fields(base_names);
        for request in std::iter::once(post).chain(edit_requests(context, self.edit_op, edit_body))
        {
            let body = request.body_fields();
            let undo_body = settings
                .zip(body)
                .map(|(section, body)| limits::switch_off_body(section, body, None));
            calls.push(PlannedCall::from(request));
            for undo_request in edit_requests(context, self.edit_op, undo_body.unwrap_or_default())
            {
                calls.push(PlannedCall { is_undo: true, ..undo_request.into() });
            }
        }
        Ok(calls)
    }

    /// True if the create request accepts a field and all its limits.
    fn accepts_with_limits(&self, section: Section, name: &str, declared: &Fields) -> bool {
        let is_accepted =
            |name: &str| (self.accepts)(name, section.field(name), section.table().sent_name(name));
        let limit_specs = limits::limiting_fields(section, name)
            .filter(|limit| declared.contains_key(limit.name));
        is_accepted(name)
            && !limit_specs.into_iter().any(|limit| {
                !is_accepted(limit.name)
                    && section.field(name).accepted.includes(WriteRequest::Edit)
            })
    }
}

/// The calls that rename a container (its path, its name or both) and transfer it, usually in this
/// order. The service cannot rename and transfer in one call. The transfer request contains the new
/// namespace in `namespace_field`.
pub(super) fn relocation_calls(
    context: &CallContext<'_>,
    former_location: &FormerLocation,
    [edit, transfer]: [Op<Write>; 2],
    namespace_field: &str,
) -> Vec<PlannedCall> {
    let path = former_location.is_renamed.then(|| context.target.slug());
    let new_names = [("path", path), ("name", former_location.name.as_deref())];
    let new_names = new_names.into_iter().filter_map(|(field, name)| Some((field, name?.into())));
    let new_names: Fields = new_names.map(|(field, name)| (field.to_owned(), name)).collect();
    let rename_request =
        (!new_names.is_empty()).then(|| context.target.request(edit).with_fields(new_names));
    let transfer_request = former_location.is_transferred.then(|| {
        let namespace = context.target.namespace.as_ref();
        let namespace_fields =
            namespace.map(|namespace| (namespace_field.to_owned(), namespace.id.to_json().into()));
        let request =
            context.target.request(transfer).with_fields(namespace_fields.into_iter().collect());
        request.with_id_fields([namespace_field.to_owned()])
    });
    let mut requests = [rename_request, transfer_request];
    if former_location.is_transferred_first {
        requests.reverse();
    }
    requests.into_iter().flatten().map(PlannedCall::from).collect()
}

/// True if a create request can omit the field without another result. This is the case for an
/// empty avatar, and for a switch of `create:` that is off. A switch that is off must be omitted,
/// because the service answers `use_custom_template: false` with an internal error.
fn equals_default(container: Section, section: Section, name: &str, value: &Value) -> bool {
    let is_container_section = std::ptr::eq(section.kind, container.kind);
    (section.field(name).is_upload() && value.is_null())
        || (is_container_section && value.plain_json() == Some(&Json::Bool(false)))
}

/// The edit requests that send `body`: one request for all fields without a file, and one request
/// for each file.
fn edit_requests(
    context: &CallContext<'_>,
    edit_op: Op<Write>,
    body: Fields,
) -> Vec<Request<Write>> {
    let (file_fields, data_fields) = split_files(body);
    let file_bodies = file_fields.into_iter().map(|file| Fields::from([file]));
    let bodies = std::iter::once(data_fields).filter(|data| !data.is_empty()).chain(file_bodies);
    bodies.map(|body| context.target.request(edit_op).with_fields(body)).collect()
}
