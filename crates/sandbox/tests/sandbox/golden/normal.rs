//! The form in which two answers are compared: without ids, times, hosts and secrets.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::world::{HOST, PORT, TODAY, World};

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

static TIME: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?UTC|Z|[+-]\d\d:?\d\d)?")
});
static GRAVATAR: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"https?://(www|secure)\.gravatar\.com/avatar/[0-9a-f]+\?s=\d+&d=identicon")
});
static ID_IN_PATH: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"/(projects|groups|users|namespaces|variables|hooks|project|group|user|system/group|system/user|appearance)/(avatar/)?\d+",
    )
});
static MARKED: LazyLock<Regex> = LazyLock::new(|| pattern(r"deletion_scheduled-\d+"));
static DEPLOY_TOKEN: LazyLock<Regex> = LazyLock::new(|| pattern(r"deploy-token-\d+"));
static JOB: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[0-9a-f]{24}$"));
static SSH: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(ssh://)?git@[\w.-]+(:\d+/|:)"));

/// Keys with new random values each time.
const SECRET: [&str; 8] = [
    "token",
    "runners_token",
    "feed_token",
    "static_object_token",
    "incoming_email_token",
    "invite_token",
    "fingerprint",
    "fingerprint_sha256",
];

/// Brings `value`, at `key` in `parent`, into that form.
pub(crate) fn normalise(
    world: &World,
    value: &Value,
    key: Option<&str>,
    parent: Option<&Map<String, Value>>,
) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), normalise(world, value, Some(key), Some(members))))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => {
            items.iter().map(|item| normalise(world, item, key, parent)).collect::<Vec<_>>().into()
        }
        Value::Number(number) if number.is_i64() => {
            match key.and_then(|key| prefixes(key, parent)) {
                None => value.clone(),
                Some(prefixes) => name_of(world, value, prefixes).into(),
            }
        }
        Value::String(text) => normalize_text(world, text, key.unwrap_or_default()).into(),
        other => other.clone(),
    }
}

/// The prefixes of names for ids in `key`; `None` if it has no id.
fn prefixes(key: &str, parent: Option<&Map<String, Value>>) -> Option<&'static [&'static str]> {
    let has = |name| parent.is_some_and(|parent| parent.contains_key(name));
    Some(match key {
        // Deploy tokens have usernames too.
        "id" if has("username") && has("scopes") => &[],
        "id" | "iid" if has("username") => &["u"],
        "id" | "iid" if has("path_with_namespace") => &["p"],
        "id" | "iid" if has("full_path") => &["g", "nu"],
        "user_id" | "creator_id" | "author_id" | "owner_id" | "user_ids" | "mirror_user_id" => {
            &["u"]
        }
        "group_id" | "namespace_id" | "parent_id" | "group_ids" | "root_group_id" | "source_id"
        | "marked" => &["g", "nu"],
        "project_id" | "source_project_id" | "file_template_project_id" => &["p"],
        _ if ["id", "iid"].contains(&key) || key.ends_with("_id") || key.ends_with("_ids") => &[],
        _ => return None,
    })
}

fn name_of(world: &World, id: &Value, prefixes: &[&str]) -> String {
    let known = world.names.iter().find(|(name, value)| {
        *value == id && prefixes.contains(&name.split('_').next().unwrap_or_default())
    });
    known.map_or_else(|| "<id>".to_owned(), |(name, _)| format!("<{name}>"))
}

fn normalize_text(world: &World, text: &str, key: &str) -> String {
    if SECRET.contains(&key) && !text.is_empty() {
        return "<secret>".to_owned();
    }
    let text = text
        .replace(&format!("http://{HOST}:{PORT}"), "<host>")
        .replace(&format!("{HOST}:{PORT}"), "<hostport>");
    let text = SSH.replace(&text, "git@<host>:");
    let text = GRAVATAR.replace_all(&text, "<gravatar>");
    let text = TIME.replace_all(&text, "<time>").replace(TODAY, "<today>");
    let text = ID_IN_PATH.replace_all(&text, |found: &Captures<'_>| {
        format!("/{}/{}<id>", &found[1], found.get(2).map_or("", |part| part.as_str()))
    });
    let text = MARKED.replace_all(&text, "deletion_scheduled-<id>");
    let text = DEPLOY_TOKEN.replace_all(&text, "deploy-token-<id>");
    let text = JOB.replace_all(&text, "<id>");
    let prefix = world.prefix();
    let text = text.replace(prefix, "<x>").replace(&prefix.to_uppercase(), "<X>");
    match key {
        "web_url" | "avatar_url" | "link" => text.replace(HOST, "<ip>"),
        _ => text,
    }
}
