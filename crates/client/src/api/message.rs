//! The message in the body of a failure, and what a 404 reports as absent.

use crate::{field::Scope, secret::judge::mask_url, text::is_unsafe, value::Json};

/// The maximum length of a message that is kept from an answer, in bytes.
const MAX_MESSAGE: usize = 2048;

/// The message for an answer that is a web page.
pub(super) const HTML_PAGE: &str = "an HTML page";

/// The message for a web page that asks for a client certificate.
pub(super) const NO_CERTIFICATE: &str = "an HTML page about the client's certificate";

/// The thing that a 404 reports as absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence404 {
    /// The group or project; or the caller may not see it.
    Container(Scope),
    /// The route; or the answer is not the service's own.
    Route,
    /// Nothing named: a licence, a flag or a setting hides it.
    Hidden,
    /// Something else, or the status is not 404.
    Other,
}

/// The message in the body of a failure, in any of its shapes (release 15.8 has at least seven).
///
/// `redact` removes secrets. It sees the text both as received and as kept.
pub(super) fn read_failure(
    status: u16,
    body: &[u8],
    redact: impl Fn(&str) -> String,
) -> (String, Absence404) {
    let json = serde_json::from_slice::<Json>(body).ok();
    let absence = match json.as_ref().map(|json| (json.get("message"), json.get("error"))) {
        _ if status != 404 => Absence404::Other,
        Some((Some(Json::String(message)), _))
            if message.eq_ignore_ascii_case("404 Project Not Found") =>
        {
            Absence404::Container(Scope::Project)
        }
        Some((Some(Json::String(message)), _))
            if message.eq_ignore_ascii_case("404 Group Not Found") =>
        {
            Absence404::Container(Scope::Group)
        }
        // The upper-case `F` distinguishes this from "404 Not found", which is for a member or
        // hook.
        Some((Some(Json::String(message)), _)) if message == "404 Not Found" => Absence404::Hidden,
        Some((None, Some(Json::String(error)))) if error.eq_ignore_ascii_case("404 Not Found") => {
            Absence404::Route
        }
        Some((None, None)) | None => Absence404::Route,
        Some(_) => Absence404::Other,
    };
    let text = match json {
        Some(json) if is_refusal(&json) => joined_texts(&json),
        Some(_) => String::new(),
        // The whole text, whatever its length: a text cut before redaction might end with half a
        // secret, which nothing recognises.
        None => {
            let text = String::from_utf8_lossy(body);
            match text.trim_start().chars().next() {
                // The one of nginx that asks for a client certificate.
                Some('<') if text.contains("No required SSL certificate was sent") => {
                    NO_CERTIFICATE.into()
                }
                Some('<') => HTML_PAGE.into(),
                Some('{' | '[') => "incomplete JSON".into(),
                _ => text.into_owned(),
            }
        }
    };
    let text = redact(&plain(&redact(&text)));
    let text = text
        .strip_prefix(&status.to_string())
        .map_or(text.as_str(), |rest| rest.trim_start_matches([' ', '-', ':']));
    (bounded(text).to_owned(), absence)
}

/// True if `body` has one of the shapes of a refusal. Anything else may be the requested object
/// with a wrong status, and may hold secrets that nothing recognises.
fn is_refusal(body: &Json) -> bool {
    match body {
        Json::Object(fields) => {
            fields.contains_key("message")
                || fields.contains_key("error")
                || fields.values().all(are_texts)
        }
        other => other.is_string() || are_texts(other),
    }
}

fn are_texts(json: &Json) -> bool {
    json.as_array().is_some_and(|items| items.iter().all(Json::is_string))
}

/// The message in the body of a success, on one line and without credentials.
pub fn message_of_success(body: &Json) -> String {
    bounded(&mask_url(&plain(&joined_texts(body)))).to_owned()
}

/// All texts of a body, however nested.
fn joined_texts(json: &Json) -> String {
    let (mut parts, separator): (Vec<_>, _) = match json {
        Json::Null => return String::new(),
        Json::String(text) => return text.clone(),
        Json::Bool(_) | Json::Number(_) => return json.to_string(),
        Json::Array(items) => (items.iter().map(joined_texts).collect(), ", "),
        Json::Object(object) => match (object.get("message"), object.get("error")) {
            (Some(message), _) => return joined_texts(message),
            (None, Some(error)) => {
                let description = object.get("error_description");
                ([error].into_iter().chain(description).map(joined_texts).collect(), ": ")
            }
            (None, None) => {
                let fields = object.iter().map(|(name, value)| match &**name {
                    // The object as a whole.
                    "base" => joined_texts(value),
                    name => format!("{name}: {}", joined_texts(value)),
                });
                (fields.collect(), "; ")
            }
        },
    };
    parts.retain(|part| !part.is_empty());
    parts.join(separator)
}

/// `text` on one line, without characters that control a terminal or the text direction.
pub(super) fn plain(text: &str) -> String {
    text.replace(is_unsafe, " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of `text`, at most [`MAX_MESSAGE`] bytes.
fn bounded(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_MESSAGE)).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or_default()].trim_end()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(status: u16, body: &str) -> (String, Absence404) {
        read_failure(status, body.as_bytes(), str::to_owned)
    }

    #[test]
    fn the_message_is_found_in_every_shape_of_body() {
        let table = [
            (r#"{"message":"400 Bad request - name is bad"}"#, "Bad request - name is bad"),
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
        for (body, words) in table {
            assert_eq!(read(400, body), (words.to_owned(), Absence404::Other), "{body}");
        }
    }

    #[test]
    fn four_kinds_of_404_are_told_apart() {
        let table = [
            (r#"{"message":"404 Project Not Found"}"#, Absence404::Container(Scope::Project)),
            (r#"{"message":"404 Group Not Found"}"#, Absence404::Container(Scope::Group)),
            (r#"{"message":"404 Not Found"}"#, Absence404::Hidden),
            (r#"{"message":"404 Not found"}"#, Absence404::Other),
            (r#"{"message":"404 Variable Not Found"}"#, Absence404::Other),
            (r#"{"message":{"base":["404 Project Not Found"]}}"#, Absence404::Other),
            (r#"{"error":"404 Project Not Found"}"#, Absence404::Other),
            (r#"{"error":"404 Not Found"}"#, Absence404::Route),
            ("<html>404</html>", Absence404::Route),
            ("404 page not found", Absence404::Route),
            ("", Absence404::Route),
            ("{}", Absence404::Route),
        ];
        for (body, absence) in table {
            assert_eq!(read(404, body).1, absence, "{body}");
        }
        assert_eq!(read(403, r#"{"message":"404 Project Not Found"}"#).1, Absence404::Other);
    }

    proptest! {
        #[test]
        fn a_message_is_one_bounded_line_without_secrets(body in proptest::collection::vec(any::<u8>(), 0..200), times in 0usize..60, pad in "\\PC{0,80}") {
            let mut long = body;
            (0..times).for_each(|_| long.extend_from_slice(format!("{pad} hunter2hunter2 ").as_bytes()));
            let (text, _) = read_failure(500, &long, |text| text.replace("hunter2hunter2", "[secret]"));
            prop_assert!(text.len() <= MAX_MESSAGE && !text.contains("hunter2"));
            prop_assert_eq!(plain(&text), text);
        }
    }
}
