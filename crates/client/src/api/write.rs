//! The client that writes.

use std::{borrow::Borrow, time::Duration};

use bytes::Bytes;

use super::{
    Result,
    call::{Freshness, SendInputs},
    client::{ApiResponse, ReadClient},
    error::ErrorKind,
    quote::{MIN_REDACTED_CHARS, QuoteRedactor},
    transport::{EncodedBody, FormPart},
};
use crate::{
    operation::{Method, Request, RequestBody, Write},
    planted::Bug,
    secret::{Reference, Secrets, UnresolvedReference},
    value::{Json, Object, Value},
};

/// Sends requests that write and, through [`read_client`](Self::read_client), requests that read.
#[derive(Clone, Debug)]
pub struct WriteClient {
    read_client: ReadClient,
}

impl WriteClient {
    /// Adds writing to `read_client`. Both clients share the limits on requests. If one client is
    /// stopped, the other is stopped too.
    /// Only `apply`, `comment`, `call` and `selftest` call this function.
    pub const fn new(read_client: ReadClient) -> Self {
        Self { read_client }
    }

    /// The client that reads.
    pub const fn read_client(&self) -> &ReadClient {
        &self.read_client
    }

    /// Fills in secrets and files, and sends a write. Any 2xx is a success. A delete also succeeds
    /// on a 404 for the object itself (not for its container): the object was absent already.
    ///
    /// # Errors
    /// [`ApiError`](super::ApiError). If the write is [in doubt](super::ApiError::in_doubt_since),
    /// it may have taken effect: the caller must wait and read the live state.
    pub async fn send(&self, request: Request<Write>) -> Result<ApiResponse> {
        self.encode_and_send(&request, None, None).await
    }

    /// Like [`send`](Self::send), for a request that was built from live values. `freshness`
    /// contains the time when those values were read. A request can become stale if it
    /// [repeats](Request::repeated_values) live values, or if sending it twice would create two
    /// objects. A request that can become stale is sent at most once, and never after a wait. If a
    /// retry is possible, the error contains [its time](super::ApiError::retry_at). Before the
    /// retry, the caller must read the live values again and rebuild the request.
    ///
    /// # Errors
    /// [`ApiError`](super::ApiError), also if the request is [stale](super::ApiError::is_stale).
    pub async fn send_fresh(
        &self,
        request: impl Borrow<Request<Write>>,
        freshness: Freshness,
    ) -> Result<ApiResponse> {
        let request = request.borrow();
        let can_become_stale = request.becomes_stale()
            && !Bug::SendStaleValues.is_planted()
            && !Bug::ResendLostCreates.is_planted();
        self.encode_and_send(
            request,
            can_become_stale.then_some(freshness),
            Some(freshness.read_at),
        )
        .await
    }

    async fn encode_and_send(
        &self,
        request: &Request<Write>,
        freshness: Option<Freshness>,
        read_at: Option<Duration>,
    ) -> Result<ApiResponse> {
        let core = &self.read_client.core;
        let (body, redactor) = encode_body(request, &core.secrets)
            .map_err(|reason| core.error(request, ErrorKind::MissingBodyInput(reason)))?;
        let result = core.call(request, SendInputs { body, redactor, freshness, read_at }).await;
        let is_delete = request.operation.method == Method::Delete;
        match &result {
            Err(e) if is_delete && e.is_object_not_found() && !e.is_container_not_found() => {
                Ok(ApiResponse { status: 404, headers: http::HeaderMap::new(), body: Json::Null })
            }
            _ => result,
        }
    }
}

/// Encodes the body of `request`. Returns the encoded body, and a redactor of its sensitive values.
fn encode_body(
    request: &Request<Write>,
    secrets: &Secrets,
) -> Result<(EncodedBody, QuoteRedactor), String> {
    let mut redactor = QuoteRedactor::default();
    let (mut object, mut form_parts) = (Object::new(), Vec::new());
    let fields = request.body_fields().into_iter().flatten();
    let is_form = matches!(request.body, RequestBody::Multipart(_))
        || fields.clone().any(|(_, value)| matches!(value, Value::File(_)));
    for (name, value) in fields {
        let json = match value {
            Value::File(path) => {
                let bytes = secrets.read_file(path).map_err(|missing| missing.to_string())?;
                let file_name = path.rsplit('/').next().map(str::to_owned);
                form_parts.push(FormPart { name: name.clone(), file_name, value: bytes.into() });
                continue;
            }
            Value::Secret(reference) => {
                for secret_part in reference.inner_references() {
                    redactor
                        .add(resolve_secret(secret_part, secrets)?.as_str().unwrap_or_default());
                }
                resolve_secret(reference, secrets)?
            }
            Value::Plain(json) => {
                // Do not redact short literals. With a short text, the redactor would hide the whole
                // message of the service. Everybody can read the literal in the manifests anyway.
                if let Some(text) = json.as_str()
                    && request.is_sensitive(name)
                    && text.chars().count() >= MIN_REDACTED_CHARS
                {
                    redactor.add(text);
                }
                json.clone()
            }
        };
        if is_form {
            push_form_fields(name.clone(), &json, &mut form_parts);
        } else {
            object.insert(name.clone(), json);
        }
    }
    for (name, value) in request.repeated_values() {
        if let (Json::String(text), true) = (value, request.is_sensitive(name)) {
            redactor.add(text);
        }
        object.insert(name.to_owned(), value.clone());
    }
    let body = match &request.body {
        RequestBody::None => EncodedBody::Empty,
        _ if is_form => EncodedBody::Form(form_parts),
        _ => {
            let json = serde_json::to_vec(&object).map_err(|error| error.to_string())?;
            EncodedBody::Json(json.into())
        }
    };
    Ok((body, redactor))
}

/// Adds nested data as form fields: `name[key]`, and `name[]` for each item of a list.
fn push_form_fields(name: String, json: &Json, parts: &mut Vec<FormPart>) {
    match json {
        Json::Null => parts.push(new_text_part(name, String::new())),
        Json::String(text) => parts.push(new_text_part(name, text.clone())),
        Json::Bool(_) | Json::Number(_) => parts.push(new_text_part(name, json.to_string())),
        Json::Array(items) => {
            items.iter().for_each(|item| push_form_fields(format!("{name}[]"), item, parts));
        }
        Json::Object(object) => {
            object
                .iter()
                .for_each(|(key, value)| push_form_fields(format!("{name}[{key}]"), value, parts));
        }
    }
}

fn new_text_part(name: String, text: String) -> FormPart {
    FormPart { name, file_name: None, value: Bytes::from(text) }
}

fn resolve_secret(reference: &Reference, secrets: &Secrets) -> Result<Json, String> {
    secrets.request_value(reference).ok_or_else(|| {
        let reason = secrets.unresolved_reason(reference).map(UnresolvedReference::to_string);
        reason.unwrap_or_else(|| format!("the secret `{reference}` was not resolved"))
    })
}
