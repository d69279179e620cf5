//! Reads the body of a failed request: the message, and for a 404 also what is missing.

use crate::{field::Scope, secret::judge::mask_url, text::is_unsafe, value::Json};

/// The maximum length of the message kept from a response, in bytes.
const MAX_MESSAGE_BYTES: usize = 2048;

/// The message for a response that is a web page.
pub(super) const HTML_PAGE_MESSAGE: &str = "an HTML page";

/// The message for a web page that requests a client certificate.
pub(super) const CERTIFICATE_PAGE_MESSAGE: &str = "an HTML page about the client's certificate";

/// The reason for a 404, according to its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotFoundCause {
    /// The group or project does not exist, or is hidden from the caller.
    Container(Scope),
    /// The route does not exist, or something other than the service answered, such as a proxy.
    Route,
    /// The body does not tell what is missing. The service sends such a body if a licence, a flag or
    /// a setting hides the object.
    Hidden,
    /// Another object does not exist, or the status is not 404.
    Other,
}

/// Extracts the message from the body of a failed request, and the cause of a 404. Release 15.8 has
/// at least seven shapes of such bodies.
///
/// `redact` removes secrets. It is called twice: before and after the text is joined into one line.
pub(super) fn parse_failure_body(
    status: u16,
    body: &[u8],
    redact: impl Fn(&str) -> String,
) -> (String, NotFoundCause) {
    let json = serde_json::from_slice::<Json>(body).ok();
    let not_found_cause = match json.as_ref().map(|json| (json.get("message"), json.get("error"))) {
        _ if status != 404 => NotFoundCause::Other,
        Some((Some(Json::String(message)), _)) => {
            let not_found_text = |scope: &Scope| format!("404 {} Not Found", scope.noun());
            let mut scopes = Scope::ALL.into_iter();
            match scopes.find(|scope| message.eq_ignore_ascii_case(&not_found_text(scope))) {
                Some(scope) => NotFoundCause::Container(scope),
                // The upper-case `F` distinguishes this message from "404 Not found", which the
                // service sends for a member or hook.
                None if message == "404 Not Found" => NotFoundCause::Hidden,
                None => NotFoundCause::Other,
            }
        }
        Some((None, Some(Json::String(error)))) if error.eq_ignore_ascii_case("404 Not Found") => {
            NotFoundCause::Route
        }
        Some((None, None)) | None => NotFoundCause::Route,
        Some(_) => NotFoundCause::Other,
    };
    let body_text = match json {
        Some(json) if is_refusal_body(&json) => join_texts(&json),
        Some(_) => String::new(),
        // Redact the whole text before truncating it: half a secret would not be recognised.
        None => {
            let raw_text = String::from_utf8_lossy(body);
            match raw_text.trim_start().chars().next() {
                // nginx sends this page to request a client certificate.
                Some('<') if raw_text.contains("No required SSL certificate was sent") => {
                    CERTIFICATE_PAGE_MESSAGE.into()
                }
                Some('<') => HTML_PAGE_MESSAGE.into(),
                Some('{' | '[') => "incomplete JSON".into(),
                _ => raw_text.into_owned(),
            }
        }
    };
    let redacted_text = redact(&to_safe_line(&redact(&body_text)));
    let separators = [' ', '-', ':'];
    let text = redacted_text
        .strip_prefix(&status.to_string())
        .filter(|rest| rest.is_empty() || rest.starts_with(separators))
        .map_or(&*redacted_text, |rest| rest.trim_start_matches(separators));
    (truncate_message(text).to_owned(), not_found_cause)
}

/// True if `body` has one of the shapes of a refusal. Any other body may be the requested object
/// with a wrong status, and may contain unknown secrets.
fn is_refusal_body(body: &Json) -> bool {
    match body {
        Json::Object(fields) => {
            fields.contains_key("message")
                || fields.contains_key("error")
                || fields.values().all(is_text_list)
        }
        other => other.is_string() || is_text_list(other),
    }
}

fn is_text_list(json: &Json) -> bool {
    json.as_array().is_some_and(|items| items.iter().all(Json::is_string))
}

/// The message in the body of a successful response, on one line and without credentials.
pub fn success_message(body: &Json) -> String {
    truncate_message(&mask_url(&to_safe_line(&join_texts(body)))).to_owned()
}

/// Joins all texts of a body at any depth.
fn join_texts(json: &Json) -> String {
    let (mut texts, separator): (Vec<_>, _) = match json {
        Json::Null => return String::new(),
        Json::String(text) => return text.clone(),
        Json::Bool(_) | Json::Number(_) => return json.to_string(),
        Json::Array(items) => (items.iter().map(join_texts).collect(), ", "),
        Json::Object(object) => match (object.get("message"), object.get("error")) {
            (Some(message), _) => return join_texts(message),
            (None, Some(error)) => {
                let description = object.get("error_description");
                ([error].into_iter().chain(description).map(join_texts).collect(), ": ")
            }
            (None, None) => {
                let fields = object.iter().map(|(name, value)| match &**name {
                    // `base` holds the faults of the whole object, not of one field.
                    "base" => join_texts(value),
                    name => format!("{name}: {}", join_texts(value)),
                });
                (fields.collect(), "; ")
            }
        },
    };
    texts.retain(|part| !part.is_empty());
    texts.join(separator)
}

/// `text` on one line, without characters that control a terminal or the text direction.
pub(super) fn to_safe_line(text: &str) -> String {
    text.replace(is_unsafe, " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates `text` to [`MAX_MESSAGE_BYTES`].
fn truncate_message(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_MESSAGE_BYTES)).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or_default()].trim_end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_text(status: u16, body: &str) -> (String, NotFoundCause) {
        parse_failure_body(status, body.as_bytes(), str::to_owned)
    }

    #[test]
    fn the_message_is_found_in_every_shape_of_body() {
        let table = [
            (r#"{"message":"400 Bad request - name is bad"}"#, "Bad request - name is bad"),
            (r#"{"message":"400"}"#, ""),
            (r#"{"message":"4000 entries are too many"}"#, "4000 entries are too many"),
            (
                r#"{"message":{"key":["has already been taken","is short"],"base":["no"]}}"#,
                "key: has already been taken, is short; no",
            ),
            (r#"{"message":{"base":["Maximum number reached"]}}"#, "Maximum number reached"),
            (r#"{"message":["one","two"]}"#, "one, two"),
            (r#"{"message":{"error":"Try again later."}}"#, "Try again later."),
            (r#"{"error":"name is missing"}"#, "name is missing"),
            (
                r#"{"error":"insufficient_scope","error_description":"More is needed.","scope":"api"}"#,
                "insufficient_scope: More is needed.",
            ),
            (r#"{"error":{"url":["is blocked"]}}"#, "url: is blocked"),
            (r#"{"name":["is short"],"url":["is blocked"]}"#, "name: is short; url: is blocked"),
            (r#"["one","two"]"#, "one, two"),
            // The requested object is not a refusal, whatever the status.
            (r#"{"key":"A","value":"hunter2"}"#, ""),
            (r#"[{"key":"A","value":"hunter2"}]"#, ""),
            (r#"[{"key":"A","value":"hun"#, "incomplete JSON"),
            (r#"{"message":null}"#, ""),
            (r#"{"message":7}"#, "7"),
            (r#""just text""#, "just text"),
            ("[]", ""),
            ("Retry later\n", "Retry later"),
            ("", ""),
            (" <!DOCTYPE html><html>Sign in</html>", "an HTML page"),
            (
                "<html><h1>400 Bad Request</h1>No required SSL certificate was sent</html>",
                "an HTML page about the client's certificate",
            ),
            ("a\u{1b}[31mred\u{7}\r\nb\u{202e}c\u{9b}d", "a [31mred b c d"),
        ];
        for (body, message) in table {
            assert_eq!(parse_text(400, body), (message.to_owned(), NotFoundCause::Other), "{body}");
        }
    }

    #[test]
    fn four_kinds_of_404_are_told_apart() {
        let table = [
            (r#"{"message":"404 Project Not Found"}"#, NotFoundCause::Container(Scope::Project)),
            (r#"{"message":"404 Group Not Found"}"#, NotFoundCause::Container(Scope::Group)),
            (r#"{"message":"404 Not Found"}"#, NotFoundCause::Hidden),
            (r#"{"message":"404 Not found"}"#, NotFoundCause::Other),
            (r#"{"message":"404 Variable Not Found"}"#, NotFoundCause::Other),
            (r#"{"message":{"base":["404 Project Not Found"]}}"#, NotFoundCause::Other),
            (r#"{"error":"404 Project Not Found"}"#, NotFoundCause::Other),
            (r#"{"error":"404 Not Found"}"#, NotFoundCause::Route),
            ("<html>404</html>", NotFoundCause::Route),
            ("404 page not found", NotFoundCause::Route),
            ("", NotFoundCause::Route),
            ("{}", NotFoundCause::Route),
        ];
        for (body, cause) in table {
            assert_eq!(parse_text(404, body).1, cause, "{body}");
        }
        assert_eq!(
            parse_text(403, r#"{"message":"404 Project Not Found"}"#).1,
            NotFoundCause::Other
        );
    }

    proptest! {
        #[test]
        fn a_message_is_one_bounded_line_without_secrets(body in proptest::collection::vec(any::<u8>(), 0..200), times in 0usize..60, pad in "\\PC{0,80}") {
            let mut long = body;
            (0..times).for_each(|_| long.extend_from_slice(format!("{pad} hunter2hunter2 ").as_bytes()));
            let (text, _) = parse_failure_body(500, &long, |text| text.replace("hunter2hunter2", "[secret]"));
            prop_assert!(text.len() <= MAX_MESSAGE_BYTES && !text.contains("hunter2"));
            prop_assert_eq!(to_safe_line(&text), text);
        }
    }
}
