//! Applies the parts of a [`Profile`] that change every call: texts in requests, and responses.

use crate::prelude::*;

/// Changes the texts of a request as [`Profile::normalizes_values`] describes.
pub(crate) fn normalize_texts(params: &mut Params) {
    for name in ["name", "description"] {
        params.map_text(name, |text| text.trim().to_owned());
    }
    params.map_text("url", normalize_url);
}

/// The URL with its host in lower case, and with `/` as its path if it has none.
fn normalize_url(url: &str) -> String {
    let Some((scheme, after_scheme)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) =
        after_scheme.split_at(after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len()));
    // The credentials before the host are case-sensitive.
    let (credentials, host) =
        authority.split_at(authority.rfind('@').map_or(0, |position| position + 1));
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{credentials}{}{slash}{path}", host.to_ascii_lowercase())
}

/// Changes a response as the profile requires. `request_body` is the body of the call.
pub(crate) fn apply_profile(profile: &Profile, answer: &mut Answer, request_body: &[u8]) {
    let echoes_request =
        profile.echoes_input && answer.status.is_client_error() && !request_body.is_empty();
    if !(echoes_request || profile.changes_answers()) {
        return;
    }
    let Some(mut body) = answer.body.as_deref().and_then(|text| serde_json::from_slice(text).ok())
    else {
        return;
    };
    if let (true, Value::Object(body_fields)) = (echoes_request, &mut body) {
        quote_request(body_fields, &String::from_utf8_lossy(request_body));
    }
    apply_to_json(profile, &mut body);
    answer.body = Some(body.to_string().into_bytes());
}

/// Adds the request's body to the message of a refusal.
fn quote_request(body_fields: &mut Object, request_body: &str) {
    let text_key = ["message", "error", "errors"]
        .into_iter()
        .find(|name| body_fields.contains_key(*name))
        .unwrap_or("message");
    match body_fields.entry(text_key).or_insert(Value::Null) {
        Value::String(text) => text.push_str(&format!(": {request_body}")),
        Value::Object(fields) => {
            fields.insert("base".to_owned(), json!([request_body]));
        }
        other => *other = request_body.into(),
    }
}

fn apply_to_json(profile: &Profile, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| apply_to_json(profile, item)),
        Value::Object(fields) => {
            if profile.drop_null_keys {
                fields.retain(|_, value| !value.is_null());
            }
            for (key, value) in fields.iter_mut() {
                match value {
                    Value::Array(topics)
                        if profile.reverse_topics && (key == "topics" || key == "tag_list") =>
                    {
                        topics.reverse();
                    }
                    _ => apply_to_json(profile, value),
                }
            }
            if profile.unknown_extra_keys {
                fields.insert("x_unknown".to_owned(), json!({ "since": "later" }));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normalised_url_has_a_lower_case_host_and_a_path() {
        for (url, expected) in [
            ("https://CI.Example.org", "https://ci.example.org/"),
            (
                "https://User:Word@CI.example.org:8443?A=B#C",
                "https://User:Word@ci.example.org:8443/?A=B#C",
            ),
            ("https://ci.example.org/Path/@X", "https://ci.example.org/Path/@X"),
            ("no url", "no url"),
        ] {
            assert_eq!(normalize_url(url), expected);
            assert_eq!(normalize_url(expected), expected);
        }
    }

    #[test]
    fn a_refusal_of_any_shape_quotes_the_request() {
        for (body, expected) in [
            (json!({"message": "no"}), json!({"message": "no: sent"})),
            (json!({"error": "no"}), json!({"error": "no: sent"})),
            (json!({"errors": "no"}), json!({"errors": "no: sent"})),
            (
                json!({"message": {"key": ["no"]}}),
                json!({"message": {"key": ["no"], "base": ["sent"]}}),
            ),
            (json!({"message": ["no"]}), json!({"message": "sent"})),
            (json!({}), json!({"message": "sent"})),
        ] {
            let mut fields = body.as_object().cloned().unwrap_or_default();
            quote_request(&mut fields, "sent");
            assert_eq!(Value::Object(fields), expected);
        }
    }
}
