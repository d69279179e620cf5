//! Finds the differences between two answers in [normal form](super::normal).

use serde_json::Value;

/// Keys that depend on what the recorded installation lacked: contents of repositories, uploads,
/// storages, a registry, incoming mail, rendered Markdown. The last one holds bare ids of users of
/// that installation.
const IGNORED_KEYS: [&str; 14] = [
    "avatar_url",
    "ssh_url_to_repo",
    "readme_url",
    "repository_storage",
    "repository_object_format",
    "empty_repo",
    "container_registry_image_prefix",
    "description_html",
    "service_desk_address",
    "forks_count",
    "import_status",
    "license_url",
    "runner_token_expiration_interval",
    "unique_project_download_limit_alertlist",
];

/// The keys that identify entries of a list; the first existing one counts.
const IDENTITY_KEYS: [&str; 9] = [
    "username",
    "path_with_namespace",
    "full_path",
    "key",
    "name",
    "title",
    "url",
    "link_url",
    "id",
];

/// Adds the differences between `recorded` and `here` at `place` to `found`.
pub(crate) fn find_differences(
    recorded: &Value,
    here: &Value,
    place: &str,
    found: &mut Vec<String>,
) {
    match (recorded, here) {
        (Value::Object(recorded), Value::Object(here)) => {
            for (key, value) in recorded {
                match here.get(key) {
                    _ if IGNORED_KEYS.contains(&key.as_str()) => {}
                    None => found.push(format!("{place}.{key} is missing")),
                    Some(other) => find_differences(value, other, &format!("{place}.{key}"), found),
                }
            }
            let extra = here.keys().filter(|key| !recorded.contains_key(*key));
            let extra = extra.filter(|key| !IGNORED_KEYS.contains(&key.as_str()));
            found.extend(extra.map(|key| format!("{place}.{key} is extra")));
        }
        (Value::Array(recorded), Value::Array(here)) => {
            let entries = |list: &[Value]| list.iter().map(identity).collect::<Vec<_>>();
            let (recorded_ids, here_ids) = (entries(recorded), entries(here));
            if recorded_ids == here_ids {
                for (recorded, here) in recorded.iter().zip(here) {
                    find_differences(recorded, here, &format!("{place}[]"), found);
                }
            } else {
                found.push(format!("{place}: entries {recorded_ids:?}, here {here_ids:?}"));
            }
        }
        _ if recorded == here => {}
        // The recorder did not name everything that has a name here.
        (Value::String(id), Value::String(name)) if id == "<id>" && name.starts_with('<') => {}
        _ => found.push(format!("{place}: {recorded}, here {here}")),
    }
}

fn identity(entry: &Value) -> String {
    match IDENTITY_KEYS.iter().find_map(|name| entry.get(name)) {
        Some(identity) => format!("{identity}@{}", entry["environment_scope"]),
        // Keys in order, so that the same object has the same text.
        None => {
            let mut sorted = entry.clone();
            sorted.sort_all_objects();
            sorted.to_string()
        }
    }
}
