//! The cleanup policy of a project's container registry: an attribute that is an object.

use crate::prelude::*;
use jiff::SignedDuration;

/// The keys of the cleanup policy with their values; `None` means any text.
const POLICY_KEYS: &[(&str, Option<&[&str]>)] = &[
    ("cadence", Some(&["1d", "7d", "14d", "1month", "3month"])),
    ("older_than", Some(&["7d", "14d", "30d", "60d", "90d"])),
    ("name_regex", None),
    ("name_regex_keep", None),
];
const KEEP_N_VALUES: [i64; 6] = [1, 5, 10, 25, 50, 100];

fn policy_error(key: &str, texts: &[&str]) -> ErrorResponse {
    ErrorResponse::field_errors(&format!("container_expiration_policy.{key}"), texts)
}

fn not_listed_error(key: &str) -> ErrorResponse {
    policy_error(key, &["is not included in the list"])
}

/// Changes the keys of `policy` that `value` contains. In the reference, `name_regex` has the name
/// `name_regex_delete`.
pub(super) fn set_policy(name: &str, value: &Value, policy: &mut Value) -> Result<()> {
    let Value::Object(policy_params) = value else {
        return if value.is_null() { Ok(()) } else { Err(ErrorResponse::invalid_parameter(name)) };
    };
    for (key, values) in POLICY_KEYS {
        let Some(value) = policy_params.get(*key) else { continue };
        let requested_text = read_text(&format!("{name}[{key}]"), value)?;
        match (values, requested_text.as_deref()) {
            (Some(_), None | Some("")) if *key == "cadence" => {
                return Err(policy_error(key, &["can't be blank", "is not included in the list"]));
            }
            (Some(values), Some(text)) if !values.contains(&text) => {
                return Err(not_listed_error(key));
            }
            (None, Some(regex)) => {
                if let Some(error) = re2::syntax_error(regex) {
                    return Err(policy_error(key, &[&error]));
                }
            }
            _ => {}
        }
        policy[*key] = requested_text.into();
    }
    if let Some(value) = policy_params.get("keep_n") {
        let keep_count = read_integer(&format!("{name}[keep_n]"), value)?;
        let is_listed = keep_count.is_none_or(|keep| KEEP_N_VALUES.contains(&keep));
        refuse_if(!is_listed, || not_listed_error("keep_n"))?;
        policy["keep_n"] = keep_count.into();
    }
    if let Some(value) = policy_params.get("enabled") {
        let is_enabled = read_flag(&format!("{name}[enabled]"), value)?;
        policy["enabled"] = is_enabled.ok_or_else(|| not_listed_error("enabled"))?.into();
    }
    let name_regex = policy["name_regex"].as_str().unwrap_or_default();
    let lacks_regex = policy["enabled"] == true && name_regex.trim().is_empty();
    refuse_if(lacks_regex, || policy_error("name_regex", &["can't be blank"]))
}

/// Adds the time of the next run to the policy, even if the policy is disabled: `time` plus the
/// cadence. A month counts as 30 days.
pub(super) fn add_next_run(mut policy: Value, time: Timestamp) -> Value {
    let days = match policy["cadence"].as_str() {
        Some("7d") => 7,
        Some("14d") => 14,
        Some("1month") => 30,
        Some("3month") => 90,
        _ => 1,
    };
    policy["next_run_at"] =
        clock::format_time(time.checked_add(SignedDuration::from_hours(24 * days)).unwrap_or(time))
            .into();
    policy
}
