//! Webhooks of a project or group.
//!
//! The service identifies hooks by an id that manifests do not contain, and accepts two hooks with
//! the same URL. Therefore a manifest may give a hook a name, which newer releases store. A hook
//! without a stored name is found by its URL or a former URL. A URL may contain a credential and is
//! never shown in full.

use std::collections::HashSet;

use crate::{kind::Identity, secret::judge};

use super::prelude::*;

const HEADERS_FIELD: &str = "custom_headers";
const VARIABLES_FIELD: &str = "url_variables";
/// The lists of keys with secret values, in the same order as the operations that remove a key.
const KEYED_LISTS: [&str; 2] = [HEADERS_FIELD, VARIABLES_FIELD];
const HEADERS_REMOVED_NOTE: &str = "the service removes its `custom_headers`, if it has any";

/// The keys in `rows`, a list of keyed secrets.
fn row_keys(rows: &Json) -> impl Iterator<Item = &str> {
    rows.as_array().into_iter().flatten().filter_map(|row| row["key"].as_str())
}

/// The declared keys of the list `name`.
fn declared_keys(declared: &Fields, name: &str) -> Vec<String> {
    let rows = match declared.get(name) {
        Some(Value::Secret(reference)) => reference.masked_json(),
        value => value.and_then(Value::plain_json).cloned(),
    };
    rows.iter().flat_map(row_keys).map(str::to_owned).collect()
}

pub(super) struct Hooks;

impl KindRules for Hooks {
    // Without stored names, the service cannot distinguish two hooks with one URL, so manifests
    // must not list a URL twice.
    fn identify(&self, _section: Section, find_value: FieldLookup<'_>) -> Identity {
        let [url, name] = ["url", "name"].map(|name| Some(find_value(name)?.as_str()?.to_owned()));
        let name = name.filter(|name| !name.is_empty());
        let masked_url = url.as_deref().map(|url| judge::mask_url(url).into_owned());
        let previous_value = find_value("previously");
        let previous_urls =
            previous_value.as_ref().and_then(|urls| urls.as_array()).into_iter().flatten();
        let urls: Vec<_> = url
            .as_deref()
            .into_iter()
            .chain(previous_urls.filter_map(Json::as_str))
            .map(text::normal_url)
            .collect();
        Identity {
            other_name: masked_url.clone().filter(|_| name.is_some()),
            former_keys: Vec::new(),
            name: name.as_deref().map(judge::mask_name).or(masked_url).unwrap_or_default(),
            service_name: name,
            similar_keys: urls.iter().map(|url| toggle_final_slash(url)).collect(),
            keys: urls,
        }
    }

    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let previous_items = declared.list_field("previously").into_iter().flatten();
        let previous_urls = previous_items.filter_map(Json::as_str).map(|url| ("previously", url));
        let url = declared.text("url").map(|url| ("url", url));
        for (field, url) in url.into_iter().chain(previous_urls) {
            check_url("the URL of a hook", field, url.trim(), report);
            if url.chars().count() > MAX_URL_CHARACTERS {
                report(
                    EntryFault::for_field(fault_text::LONG_URL, field)
                        .fill("most", &MAX_URL_CHARACTERS.to_string()),
                );
            }
        }
        for name in KEYED_LISTS {
            let mut unique_keys = HashSet::new();
            if !declared_keys(declared, name).into_iter().all(|key| unique_keys.insert(key)) {
                report(EntryFault::for_field(fault_text::KEY_TWICE, name));
            }
        }
    }

    // The service adds the keys of an edit to the stored keys. If the URL changes, the service
    // removes all headers, even the headers of the same request. It also removes all variables
    // whose secret does not change.
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let (CallPurpose::Change(declared, live, changed), Some(op)) =
            (context.purpose, context.section.scoped_kind.operations.edit)
        else {
            return context.default_calls();
        };
        let has_new_url = changed.contains(&"url");
        if has_new_url && declared.contains_key(VARIABLES_FIELD) {
            return Err(EntryFault::for_field(fault_text::VARIABLES_LOST, "url").into());
        }
        let mut calls = context.default_calls()?;
        if has_new_url && declared.contains_key(HEADERS_FIELD) {
            calls.extend(context.edit_calls(op, declared, live, &[HEADERS_FIELD])?);
        } else if has_new_url {
            let side_effect = header_side_effect(live)?;
            calls = calls
                .into_iter()
                .map(|call| PlannedCall { side_effects: side_effect, ..call })
                .collect();
        }
        let key_removals = KEYED_LISTS.iter().zip(&context.section.scoped_kind.operations.others);
        let key_removals = key_removals.filter(|(name, _)| changed.contains(name) && !has_new_url);
        for (name, remove_key) in key_removals {
            let kept_keys = declared_keys(declared, name);
            let live_keys = live.fields.raw().get(*name).into_iter().flat_map(row_keys);
            let keys_to_remove =
                live_keys.filter(|key| kept_keys.iter().all(|kept_key| kept_key != key));
            calls.extend(keys_to_remove.map(|key| {
                PlannedCall::from(
                    context.entry_request(*remove_key, live).with_argument("key", key),
                )
            }));
        }
        Ok(calls)
    }
}

/// The side effect of a new URL for a hook with undeclared headers; `None` if the hook has no
/// headers. List responses do not show headers.
fn header_side_effect(live: &LiveEntry) -> Result<Option<&'static str>, NoCalls> {
    let Some(live_headers) =
        live.whole_object.as_ref().and_then(|object| object.raw().get(HEADERS_FIELD))
    else {
        return Ok(Some(HEADERS_REMOVED_NOTE));
    };
    if row_keys(live_headers).next().is_none() {
        return Ok(None);
    }
    Err(EntryFault::for_field(fault_text::HEADERS_LOST, "url").into())
}

/// Reports a URL that the service would refuse to call. `subject` is the noun for the URL in the
/// message.
pub(super) fn check_url(subject: &str, field: &'static str, url: &str, report: Reporter<'_>) {
    let Err(reason) = validate_url(url) else { return };
    let is_quoted = url.starts_with(['“', '„', '‘', '«']);
    let fault = EntryFault::for_field(
        if is_quoted { fault_text::URL_IN_QUOTES } else { fault_text::URL },
        field,
    );
    report(fault.fill("called", subject).fill("why", reason));
}

/// Removes the final `/` of `url`, or adds one if there is none.
fn toggle_final_slash(url: &str) -> String {
    url.strip_suffix('/').map_or_else(|| format!("{url}/"), str::to_owned)
}

/// The maximum number of characters in the URL of a hook.
const MAX_URL_CHARACTERS: usize = 8192;

/// Checks that the service would accept `url`: the scheme must be `http` or `https` in lower case,
/// and there must be a host. White space inside the URL is accepted.
///
/// # Errors
/// Returns the requirement that `url` does not meet as an error.
fn validate_url(url: &str) -> Result<(), &'static str> {
    const SCHEME: &str = "must start with `http://` or `https://`, in lower case";
    let (scheme, after_scheme) = url.split_once("://").ok_or(SCHEME)?;
    if !["http", "https"].contains(&scheme) {
        return Err(SCHEME);
    }
    if url.contains(char::is_control) {
        return Err("must not have control characters");
    }
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') { Err("must name a host") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::testing::{
            creation_requests, edit_requests_for, fields, find_faults, object, project_section,
            removal_requests, request_parts, with_flags,
        },
        operation::{HOOK_CREATE, HOOK_DELETE, HOOK_UPDATE},
        secret::Reference,
    };

    const URL: &str = "https://ci.example.org/a";

    fn secret() -> Value {
        Value::Secret(Reference::Env("HOOK".into()))
    }

    #[test]
    fn former_urls_are_not_sent_in_a_create() {
        let mut declared =
            fields(json!({"name": "ci", "url": URL, "previously": [], "push_events": false}));
        declared.insert("token".into(), secret());
        let mut body = fields(json!({"name": "ci", "url": URL, "push_events": false}));
        body.insert("token".into(), secret());
        assert_eq!(
            request_parts(&creation_requests(project_section("hooks"), &declared)),
            request_parts(&[HOOK_CREATE.request().with_argument("id", 7).with_fields(body)])
        );
    }

    #[test]
    fn an_edit_repeats_the_url_and_every_flag() {
        let raw = json!({
            "id": 3, "url": URL, "push_events": true, "issues_events": true, "confidential_note_events": null,
            "push_events_branch_filter": "main", "created_at": "x",
        });
        let raw = Json::from(with_flags(project_section("hooks"), object(raw)));
        let mut declared = fields(json!({"name": "ci", "url": URL, "push_events": false}));
        declared.insert("token".into(), secret());
        let put_request = |body| {
            HOOK_UPDATE
                .request()
                .with_argument("id", 7)
                .with_argument("hook_id", 3)
                .with_fields(body)
        };
        let mut body = fields(raw.clone());
        body.retain(|name, _| !["id", "confidential_note_events", "created_at"].contains(&name));
        body.insert("push_events".into(), Json::from(false).into());
        body.insert("name".into(), "ci".into());
        let edit_requests =
            edit_requests_for(project_section("hooks"), &declared, raw.clone(), &["push_events"]);
        assert_eq!(request_parts(&edit_requests), request_parts(&[put_request(body.clone())]));
        let repeated_names: Vec<_> =
            edit_requests[0].repeated_values().map(|(name, _)| name).collect();
        assert!(repeated_names.contains(&"push_events_branch_filter"), "{repeated_names:?}");
        assert!(
            !repeated_names.iter().any(|name| ["url", "push_events"].contains(name)),
            "declared values are not repeated from the live entry"
        );
        assert!(
            edit_requests[0].is_sensitive("url") && !edit_requests[0].is_sensitive("issues_events")
        );

        declared.insert("url".into(), "https://new.example.org".into());
        body.insert("url".into(), "https://new.example.org".into());
        body.insert("token".into(), secret());
        assert_eq!(
            request_parts(&edit_requests_for(
                project_section("hooks"),
                &declared,
                raw.clone(),
                &["url", "push_events"]
            )),
            request_parts(&[put_request(body)])
        );
        assert_eq!(
            removal_requests(project_section("hooks"), raw),
            [HOOK_DELETE.request().with_argument("id", 7).with_argument("hook_id", 3)]
        );
    }

    #[test]
    fn an_edit_contains_every_flag() {
        let repeated_fields: Vec<_> = project_section("hooks")
            .specs()
            .iter()
            .map(|spec| spec.name)
            .filter(|name| project_section("hooks").field(name).with_every_edit)
            .collect();
        let other_fields: Vec<_> = project_section("hooks")
            .specs()
            .iter()
            .map(|spec| spec.name)
            .filter(|name| !project_section("hooks").field(name).with_every_edit)
            .collect();
        assert_eq!(repeated_fields.len(), 18 + 5, "{repeated_fields:?}");
        assert_eq!(other_fields, ["previously", "token", "custom_headers", "url_variables"]);
    }

    #[test]
    fn a_hook_is_identified_by_its_normalised_url_and_its_former_ones() {
        let find_keys = |fields| project_section("hooks").identify(&object(fields)).keys;
        assert_eq!(
            find_keys(
                json!({"name": "ci", "url": "HTTPS://H.example.org", "previously": ["https://h:443/a/../%7eb"]})
            ),
            ["https://h.example.org/", "https://h/~b"]
        );
        assert_eq!(find_keys(json!({"url": "https://h/x"})), ["https://h/x"]);
        let similar_keys =
            project_section("hooks").identify(&object(json!({"url": "https://h/x/"}))).similar_keys;
        assert_eq!(similar_keys, ["https://h/x"]);
    }

    #[test]
    fn an_address_of_a_hook_contains_no_credential() {
        let entry_name = |fields| project_section("hooks").entry_name(&object(fields));
        assert_eq!(entry_name(json!({"name": "ci", "url": URL})), "ci");
        for (url, shown_url) in [
            (URL, URL),
            ("env:HOOK", "env:HOOK"),
            ("https://h", "https://h"),
            ("https://u:p@h:8/x", "https://***@h:8/x"),
            ("https://u:p@q@h", "https://***@h"),
            ("https://h/x?token=s&flag&b=c=d#f", "https://h/x?token=***&***&b=***#***"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(entry_name(json!({"url": url})), shown_url);
        }
    }

    #[test]
    fn an_invalid_url_is_refused() {
        for (url, is_valid) in [
            ("https://h/x", true),
            ("HTTP://h", false),
            ("https://m\u{fc}nchen.example.org/", true),
            (&format!("https://h/{}", "a".repeat(MAX_URL_CHARACTERS - 10)), true),
            (&format!("https://h/{}", "a".repeat(MAX_URL_CHARACTERS - 9)), false),
            ("https://u:p@h", true),
            ("ftp://h", false),
            ("h/x", false),
            ("https://", false),
            ("https:///x", false),
            ("https://:80/", false),
            ("https://u@/x", false),
            ("https://h/\na", false),
        ] {
            let expected: &[_] = if is_valid { &[] } else { &[("url", "hook-url")] };
            assert_eq!(
                find_faults(project_section("hooks"), &fields(json!({"url": url}))),
                expected,
                "{url}"
            );
        }
        assert_eq!(
            find_faults(project_section("hooks"), &fields(json!({"url": format!("{URL} ")}))),
            [("url", "blank")]
        );
        assert_eq!(
            find_faults(project_section("hooks"), &fields(json!({"url": "https://h/a b"}))),
            [("url", "no-effect")]
        );
        assert_eq!(
            find_faults(
                project_section("hooks"),
                &fields(json!({"url": URL, "previously": ["x"]}))
            ),
            [("previously", "hook-url")]
        );
    }
}
