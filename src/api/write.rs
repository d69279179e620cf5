//! The client that writes.

use std::time::Duration;

use bytes::Bytes;

use super::{
    client::{Answer, ReadClient},
    error::{ApiError, Kind},
    transport::{Content, Part},
};
use crate::{
    operation::{Body, Method, Request, Write},
    secret::{Missing, Reference, Secrets},
    value::{Fields, Json, Object, Value},
};

/// How long the service gets to finish what it may still be doing before one looks whether it has.
const SETTLE: Duration = Duration::from_secs(2);

/// Sends requests that write, and, through [`reads`](Self::reads), those that read.
#[derive(Clone, Debug)]
pub struct WriteClient {
    reads: ReadClient,
}

impl WriteClient {
    /// Lets `reads` write too: same gate, same budget, same end. Only `apply` and `call` do this.
    pub const fn new(reads: ReadClient) -> Self {
        Self { reads }
    }

    /// The client that reads.
    pub const fn reads(&self) -> &ReadClient {
        &self.reads
    }

    /// Sends a write. Its secrets and files are put in now. Any 2xx is success; so is a 404 to the delete of a thing in a project that
    /// is there, because the thing was absent already.
    ///
    /// # Errors
    /// [`ApiError`]. If its [`maybe_applied`](ApiError::maybe_applied) holds, the write may have been carried out all the same; it is
    /// up to the caller to [`settle`](Self::settle) and look.
    pub async fn send(&self, request: Request<Write>) -> Result<Answer, ApiError> {
        let core = &self.reads.core;
        let content = content(&request.body, &core.secrets).map_err(|why| core.error(&request, Kind::Body(why)))?;
        let result = core.call(&request, content).await;
        let delete = request.operation.method == Method::Delete;
        match &result {
            Err(e) if delete && e.is_not_found() && !e.is_project_not_found() && !e.is_unknown_route() => {
                Ok(Answer { status: 404, headers: http::HeaderMap::new(), body: Json::Null, length: 0 })
            }
            _ => result,
        }
    }

    /// Waits until a write that got no answer has had time to be carried out. Look only after that.
    pub async fn settle(&self) {
        self.reads.clock().sleep(SETTLE).await;
    }
}

/// The body as it is sent, with its secrets.
fn content(body: &Body, secrets: &Secrets) -> Result<Content, String> {
    let fields = match body {
        Body::None => return Ok(Content::Empty),
        Body::Json(fields) | Body::Multipart(fields) => fields,
    };
    if matches!(body, Body::Multipart(_)) || fields.values().any(|value| matches!(value, Value::File(_))) {
        return form(fields, secrets).map(Content::Form);
    }
    let mut object = Object::new();
    for (name, value) in fields {
        let json = match value {
            Value::Plain(json) => json.clone(),
            Value::Secret(reference) => secret(reference, secrets)?.into(),
            Value::File(_) => continue, // A body with a file is a form.
        };
        object.insert(name.clone(), json);
    }
    Ok(Content::Json(Json::Object(object).to_string().into()))
}

fn form(fields: &Fields, secrets: &Secrets) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Plain(json) => flatten(name.clone(), json, &mut parts),
            Value::Secret(reference) => parts.push(text_part(name.clone(), secret(reference, secrets)?.to_owned())),
            Value::File(path) => {
                let bytes = secrets.read_file(path).map_err(|missing| missing.to_string())?;
                let file_name = path.rsplit('/').next().map(str::to_owned);
                parts.push(Part { name: name.clone(), file_name, value: bytes.into() });
            }
        }
    }
    Ok(parts)
}

/// Nested data as forms have it: `name[key]`, and `name[]` for each item of a list.
fn flatten(name: String, json: &Json, parts: &mut Vec<Part>) {
    match json {
        Json::Null => parts.push(text_part(name, String::new())),
        Json::String(text) => parts.push(text_part(name, text.clone())),
        Json::Bool(_) | Json::Number(_) => parts.push(text_part(name, json.to_string())),
        Json::Array(items) => items.iter().for_each(|item| flatten(format!("{name}[]"), item, parts)),
        Json::Object(object) => object.iter().for_each(|(key, value)| flatten(format!("{name}[{key}]"), value, parts)),
    }
}

fn text_part(name: String, text: String) -> Part {
    Part { name, file_name: None, value: Bytes::from(text) }
}

fn secret<'s>(reference: &Reference, secrets: &'s Secrets) -> Result<&'s str, String> {
    secrets.get(reference).map(crate::secret::Secret::expose).ok_or_else(|| {
        let why = secrets.missing().find(|(missing, _)| *missing == reference).map(|(_, why): (_, &Missing)| why.to_string());
        why.unwrap_or_else(|| format!("the secret `{reference}` was not looked up"))
    })
}
