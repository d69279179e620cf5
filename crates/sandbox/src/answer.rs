//! Responses to calls: a body with its status, or a failure in one of the service's error shapes.
//!
//! The reference does not define the shape of errors (chapter 1, section 7). The shapes here are
//! those of the real service. The application sends `{"message": …}`. The parameter checks and the
//! router send `{"error": …}`. A model sends `{"message": {field: [texts]}}`.

use crate::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// The fields of a JSON object.
pub(crate) type Object = Map<String, Value>;

/// The result of handlers, and of most functions that they call.
pub(crate) type Result<T, E = ErrorResponse> = std::result::Result<T, E>;

/// A successful response.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status code.
    pub(crate) status: StatusCode,
    /// The body, which is mostly JSON text; `None` if the status has no body (204, 304).
    pub(crate) body: Option<Vec<u8>>,
    /// Additional headers of this response, such as the paging headers.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl Answer {
    /// 200 with `body` as JSON.
    pub(crate) fn ok(body: &impl Serialize) -> Result<Self> {
        Self::with_status(StatusCode::OK, body)
    }

    /// 201 with `body` as JSON.
    pub(crate) fn created(body: &impl Serialize) -> Result<Self> {
        Self::with_status(StatusCode::CREATED, body)
    }

    /// `status` with `body` as JSON.
    pub(crate) fn with_status(status: StatusCode, body: &impl Serialize) -> Result<Self> {
        let text = serde_json::to_vec(body).map_err(|error| ErrorResponse::internal(&error))?;
        Ok(Self::with_json_text(status, text))
    }

    /// `status` with a body that already is JSON text.
    pub(crate) fn with_json_text(status: StatusCode, text: Vec<u8>) -> Self {
        Self { status, body: Some(text), headers: Vec::new() }
    }

    /// A response with `status` and no body.
    pub(crate) fn without_body(status: StatusCode) -> Self {
        Self { status, body: None, headers: Vec::new() }
    }

    /// Adds an `ETag` to a response with 200. If the client sent the same `ETag`, the response
    /// becomes 304 without a body.
    pub(crate) fn with_etag(mut self, if_none_match: Option<&HeaderValue>) -> Self {
        let Some(body) = self.body.as_ref().filter(|_| self.status == StatusCode::OK) else {
            return self;
        };
        let tag = format!("W/\"{:016x}\"", xxh3_64(body));
        if if_none_match.is_some_and(|if_none_match| if_none_match.as_bytes() == tag.as_bytes()) {
            self = Self { headers: self.headers, ..Self::without_body(StatusCode::NOT_MODIFIED) };
        }
        self.headers.push(("etag", tag));
        self
    }

    /// A response with 204 and no body.
    pub(crate) fn no_content() -> Self {
        Self::without_body(StatusCode::NO_CONTENT)
    }
}

/// The response to a refused call. The changes of the call are rolled back.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    /// The status code.
    pub(crate) status: StatusCode,
    /// The whole body. A JSON string is sent as plain text.
    pub(crate) body: Value,
    /// An additional header of the response.
    pub(crate) header: Option<(&'static str, String)>,
}

impl ErrorResponse {
    /// The application's errors: `{"message": text}`.
    pub(crate) fn message(status: StatusCode, text: impl Into<Value>) -> Self {
        Self::with_body(status, json!({ "message": text.into() }))
    }

    /// The errors of the parameter checks and the router: `{"error": text}`.
    pub(crate) fn error(status: StatusCode, text: impl Into<String>) -> Self {
        Self::with_body(status, json!({ "error": text.into() }))
    }

    /// 400 for a parameter. The text is the name of the parameter, followed by the problem.
    pub(crate) fn parameter_error(subject: &str, problem: &str) -> Self {
        Self::error(StatusCode::BAD_REQUEST, format!("{subject} {problem}"))
    }

    /// 400 for a parameter of the wrong type.
    pub(crate) fn invalid_parameter(name: &str) -> Self {
        Self::parameter_error(name, "is invalid")
    }

    /// 400 for a parameter outside its list of values.
    pub(crate) fn unlisted_parameter_value(name: &str) -> Self {
        Self::parameter_error(name, "does not have a valid value")
    }

    /// 400 for a parameter of the wrong type that also has a list of values.
    pub(crate) fn invalid_and_unlisted(name: &str) -> Self {
        Self::parameter_error(name, &format!("is invalid, {name} does not have a valid value"))
    }

    /// 400 for an invalid field of an object: `{"message": {field: [text]}}`.
    pub(crate) fn field_error(field: &str, text: impl Into<String>) -> Self {
        Self::bad_request_message(json!({ field: [text.into()] }))
    }

    /// 400 with several errors of one field.
    pub(crate) fn field_errors(field: &str, texts: &[&str]) -> Self {
        Self::bad_request_message(json!({ field: texts }))
    }

    /// 400 for a parameter that must have a value.
    pub(crate) fn empty_parameter(name: &str) -> Self {
        Self::parameter_error(name, "is empty")
    }

    /// 200 with the body `null`: the service saved nothing, and gives no reason.
    pub(crate) fn not_saved() -> Self {
        Self::with_body(StatusCode::OK, Value::Null)
    }

    /// 400 with `text` as the message.
    pub(crate) fn bad_request_message(text: impl Into<Value>) -> Self {
        Self::message(StatusCode::BAD_REQUEST, text)
    }

    /// 400 with the errors of several parameters.
    pub(crate) fn parameter_errors(errors: &[String]) -> Self {
        Self::error(StatusCode::BAD_REQUEST, errors.join(", "))
    }

    /// 400 with the message `400 Bad request - {text}`.
    pub(crate) fn bad_request(text: &str) -> Self {
        Self::bad_request_message(format!("400 Bad request - {text}"))
    }

    /// 401 with the message `401 Unauthorized`.
    pub(crate) fn unauthorized() -> Self {
        Self::message(StatusCode::UNAUTHORIZED, "401 Unauthorized")
    }

    /// Turns 403 into 401, because the service answers with 401 for some operations.
    pub(crate) fn forbidden_as_unauthorized(self) -> Self {
        if self.status == StatusCode::FORBIDDEN { Self::unauthorized() } else { self }
    }

    /// 403 without a reason.
    pub(crate) fn forbidden() -> Self {
        Self::message(StatusCode::FORBIDDEN, "403 Forbidden")
    }

    /// 403 with `text` as the message.
    pub(crate) fn forbidden_message(text: impl Into<Value>) -> Self {
        Self::message(StatusCode::FORBIDDEN, text)
    }

    /// 403 with the message `403 Forbidden - {reason}`.
    pub(crate) fn forbidden_because(reason: &str) -> Self {
        Self::message(StatusCode::FORBIDDEN, format!("403 Forbidden - {reason}"))
    }

    /// 404 for a missing object of a type, such as `404 Project Not Found`. An object that the
    /// caller may not see gets the same response.
    pub(crate) fn not_found(type_name: &str) -> Self {
        Self::message(StatusCode::NOT_FOUND, format!("404 {type_name} Not Found"))
    }

    /// 404 for a missing record, such as a member or a hook. The text differs from the text of
    /// [`Self::not_found_hidden`] only in its spelling.
    pub(crate) fn record_not_found() -> Self {
        Self::message(StatusCode::NOT_FOUND, "404 Not found")
    }

    /// 404 for an object or operation that a flag, the tier or a setting hides.
    pub(crate) fn not_found_hidden() -> Self {
        Self::message(StatusCode::NOT_FOUND, "404 Not Found")
    }

    /// 404 of the router, for a path without a route.
    pub(crate) fn route_not_found() -> Self {
        Self::error(StatusCode::NOT_FOUND, "404 Not Found")
    }

    /// 301 to the current URL of a project, in plain text.
    pub(crate) fn redirect(location: String) -> Self {
        let message = format!("This resource has been moved permanently to {location}");
        Self {
            header: Some(("location", location)),
            ..Self::with_body(StatusCode::MOVED_PERMANENTLY, message.into())
        }
    }

    /// `status` with any body.
    pub(crate) fn with_body(status: StatusCode, body: Value) -> Self {
        Self { status, body, header: None }
    }

    /// 422 with `{"error": text}`.
    pub(crate) fn unprocessable(text: &str) -> Self {
        Self::error(StatusCode::UNPROCESSABLE_ENTITY, text)
    }

    /// 422 with `{"message": text}`, an error of the application.
    pub(crate) fn invalid_record(text: impl Into<Value>) -> Self {
        Self::message(StatusCode::UNPROCESSABLE_ENTITY, text)
    }

    /// 409 with `text` as the message.
    pub(crate) fn conflict(text: &str) -> Self {
        Self::message(StatusCode::CONFLICT, text)
    }

    /// 500 for null in a column that does not allow null, if no parameter check refuses null first.
    pub(crate) fn null_column(name: &str) -> Self {
        Self::internal(&format!("`{name}` cannot be null"))
    }

    /// 500. The cause is written to the log of the process and never sent to the client.
    pub(crate) fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!(%cause, "the sandbox could not answer");
        Self::message(StatusCode::INTERNAL_SERVER_ERROR, "500 Internal Server Error")
    }
}

/// The validation errors of an object, by field.
#[derive(Debug, Default)]
pub(crate) struct FieldErrors(Object);

impl FieldErrors {
    pub(crate) fn add(&mut self, field: &str, text: impl Into<Value>) {
        let texts = self.0.entry(field).or_insert_with(|| json!([]));
        if let Value::Array(texts) = texts {
            texts.push(text.into());
        }
    }

    /// Adds an error if `is_wrong`.
    pub(crate) fn add_if(&mut self, is_wrong: bool, field: &str, text: impl Into<Value>) {
        if is_wrong {
            self.add(field, text);
        }
    }

    /// Adds an error if a text has more than `max` characters.
    pub(crate) fn check_length(&mut self, field: &str, text: &str, max: usize) {
        if let Some(error) = length_error(text, max) {
            self.add(field, error);
        }
    }

    /// Fails with 400 and all errors if there is an error.
    pub(crate) fn into_result(self) -> Result<()> {
        refuse_if(!self.0.is_empty(), || self.into())
    }
}

/// Turns a missing object into a refusal.
pub(crate) trait OrRefusal<T> {
    /// Fails with [`ErrorResponse::not_found`] if the object is missing.
    fn or_not_found(self, type_name: &str) -> Result<T>;
    /// Fails with [`ErrorResponse::record_not_found`] if the object is missing.
    fn or_no_record(self) -> Result<T>;
}

impl<T> OrRefusal<T> for Option<T> {
    fn or_not_found(self, type_name: &str) -> Result<T> {
        self.ok_or_else(|| ErrorResponse::not_found(type_name))
    }

    fn or_no_record(self) -> Result<T> {
        self.ok_or_else(ErrorResponse::record_not_found)
    }
}

/// Fails with the error that `make_error` returns if `is_refused`.
pub(crate) fn refuse_if(
    is_refused: bool,
    make_error: impl FnOnce() -> ErrorResponse,
) -> Result<()> {
    if is_refused { Err(make_error()) } else { Ok(()) }
}

/// Fails with 400 for a field if there is an `error`.
pub(crate) fn refuse_field(field: &str, error: Option<String>) -> Result<()> {
    error.map_or(Ok(()), |error| Err(ErrorResponse::field_error(field, error)))
}

/// True if one of the items matches.
pub(crate) fn try_any<T>(
    items: impl IntoIterator<Item = T>,
    mut matches: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    for item in items {
        if matches(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The items that match.
pub(crate) fn try_filter<T>(
    items: impl IntoIterator<Item = T>,
    mut matches: impl FnMut(&T) -> Result<bool>,
) -> Result<Vec<T>> {
    let matching = items.into_iter().map(|item| Ok(matches(&item)?.then_some(item)));
    matching.filter_map(Result::transpose).collect()
}

/// Adds a field to a body if it `is_shown`.
pub(crate) fn set_field_if(body: &mut Value, is_shown: bool, name: &str, value: impl Into<Value>) {
    if is_shown {
        body[name] = value.into();
    }
}

/// Adds the fields of another object to a body.
pub(crate) fn add_fields(body: &mut Value, extra_fields: Value) {
    if let (Value::Object(body), Value::Object(extra)) = (body, extra_fields) {
        body.extend(extra);
    }
}

/// Removes some fields from an object.
pub(crate) fn remove_fields(mut body: Value, names: &[&str]) -> Value {
    if let Value::Object(fields) = &mut body {
        fields.retain(|name, _| !names.contains(&name.as_str()));
    }
    body
}

/// The error text for a text with more than `max` characters; `None` for a shorter text.
pub(crate) fn length_error(text: &str, max: usize) -> Option<String> {
    let is_long = text.chars().count() > max;
    is_long.then(|| format!("is too long (maximum is {max} characters)"))
}

/// The error text for a number that must be from 0 to `max`; `None` for a valid number.
pub(crate) fn number_error(number: Option<i64>, max: i64) -> Option<String> {
    match number {
        None => Some("is not a number".to_owned()),
        Some(..0) => Some("must be greater than or equal to 0".to_owned()),
        Some(number) if number > max => Some(format!("must be less than or equal to {max}")),
        Some(_) => None,
    }
}

impl From<FieldErrors> for ErrorResponse {
    fn from(errors: FieldErrors) -> Self {
        Self::bad_request_message(errors.0)
    }
}

/// 400 with this text as the message.
impl From<&str> for ErrorResponse {
    fn from(text: &str) -> Self {
        Self::bad_request_message(text)
    }
}

/// 400 with this text as the message.
impl From<String> for ErrorResponse {
    fn from(text: String) -> Self {
        Self::bad_request_message(text)
    }
}

impl From<rusqlite::Error> for ErrorResponse {
    fn from(error: rusqlite::Error) -> Self {
        Self::internal(&error)
    }
}

impl From<ErrorResponse> for Answer {
    fn from(failure: ErrorResponse) -> Self {
        let ErrorResponse { status, body, header } = failure;
        let (text, media_type) = match body {
            Value::String(text) => (text, Some(("content-type", "text/plain".to_owned()))),
            body => (body.to_string(), None),
        };
        let mut answer = Self::with_json_text(status, text.into_bytes());
        answer.headers.extend(header.into_iter().chain(media_type));
        answer
    }
}
