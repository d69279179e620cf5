//! Switches and the fields that limit them ([`Relations::limits`](crate::field::Relations::limits)).
//!
//! The service ignores unknown fields. If the service ignores a limit, the switch does more than
//! was declared. Therefore one request contains the switch and its limits, and the response must
//! show all of them.

use super::{FieldSpec, Section, forms};
use crate::{
    field::{self, Field, Requirement},
    kind::LiveEntry,
    level::AccessLevel,
    value::{Fields, Json, Object, Value},
};

/// True if the declared `value` turns a switch on.
pub fn is_on(value: &Value) -> bool {
    value.plain_json().is_none_or(field::is_on)
}

/// The fields of an entry of `section` that limit `switch`.
pub fn limiting_fields(section: Section, switch: &str) -> impl Iterator<Item = &'static FieldSpec> {
    let specs = section.specs().iter();
    specs.filter(move |spec| spec.field.relations.limits == Some(switch))
}

/// Pairs of keys of a mapping: a limit, and the switch that it limits.
fn key_limit_pairs(spec: &FieldSpec) -> impl Iterator<Item = (&'static str, &'static str)> {
    spec.key_fields.iter().filter_map(|field| Some((field.name, field.relations.limits?)))
}

/// True if `key` limits a switch that is on in `mapping`, and that switch requires `key`.
pub fn is_limit_required(spec: &FieldSpec, key: &str, mapping: &Json) -> bool {
    let required_limit =
        spec.key_field(key).filter(|field| field.required == Requirement::WithLimited);
    let switch = required_limit.and_then(|field| field.relations.limits);
    switch.is_some_and(|switch| field::is_on(&mapping[switch]))
}

/// The body of the request that undoes an edit with `body`: it turns off each limited switch that
/// the edit turns on. The body is empty if the edit turns on no limited switch. `live` is `None`
/// for a new entry.
pub fn switch_off_body(section: Section, body: &Fields, live: Option<&LiveEntry>) -> Fields {
    let specs = section.specs().iter();
    let switches: Vec<_> = specs.clone().filter_map(|spec| spec.field.relations.limits).collect();
    let limited_specs = specs
        .filter(|spec| switches.contains(&spec.name) || key_limit_pairs(spec).next().is_some());
    let off_fields = limited_specs.filter_map(|spec| {
        let sent_name = spec.field.sent_name();
        let value = body.get(sent_name)?;
        let live_value = live.and_then(|live| live.fields.raw().get(spec.name));
        if spec.schema["type"] == "boolean" {
            let is_limited = limiting_fields(section, spec.name)
                .any(|spec: &FieldSpec| body.contains_key(spec.field.sent_name()));
            let turns_on = is_limited && is_on(value) && !live_value.is_some_and(field::is_on);
            return turns_on.then(|| (sent_name.to_owned(), Value::from(Json::Bool(false))));
        }
        let object = value.plain_json()?.as_object()?;
        let mut switched_off_keys = Object::new();
        for (limit, switch) in key_limit_pairs(spec) {
            let [was_enabled, is_enabled] =
                [live_value.and_then(|live| live.get(switch)), object.get(switch)]
                    .map(|value| value.is_some_and(field::is_on));
            if object.contains_key(limit) && is_enabled && !was_enabled {
                switched_off_keys.insert(switch.to_string(), false.into());
            }
        }
        (!switched_off_keys.is_empty())
            .then(|| (sent_name.to_owned(), Value::from(Json::Object(switched_off_keys))))
    });
    off_fields.collect()
}

/// Pairs of a switch and its limit: `body` sets both, but the `response` shows the switch on without
/// the limit.
pub fn unlimited_switches(
    section: Section,
    body: &Fields,
    response: &Object,
) -> Vec<(String, String)> {
    let mut unlimited_pairs = Vec::new();
    let limiting_specs = section.specs().iter().filter(|spec| {
        spec.field.relations.limits.is_some() || key_limit_pairs(spec).next().is_some()
    });
    for spec in limiting_specs {
        let Some(sent_value) = body.plain_json(spec.field.sent_name()) else { continue };
        let shown_value = section.rules().decode(spec, response);
        if let Some(switch) = spec.field.relations.limits
            // A limit that is `false` limits nothing.
            && *sent_value != Json::Bool(false)
            && is_switched_on(section, switch, body, response)
            && spec.field.live_name().is_some()
            && !is_shown(spec.field, sent_value, shown_value.as_ref())
        {
            unlimited_pairs.push((switch.to_string(), spec.name.to_owned()));
        }
        let Some(sent_mapping) = sent_value.as_object() else { continue };
        let shown_mapping = shown_value.as_ref().and_then(Json::as_object);
        for (limit, switch) in key_limit_pairs(spec) {
            // A mapping that the response lacks is ignored, because the service did not accept it
            // or does not show it.
            if let (Some(sent_limit), Some(shown_object)) = (sent_mapping.get(limit), shown_mapping)
                && [sent_mapping, shown_object]
                    .iter()
                    .all(|object| object.get(switch).is_some_and(field::is_on))
                && !is_shown(&Field::default(), sent_limit, shown_object.get(limit))
            {
                let [switch, limit] = [switch, limit].map(|key| format!("{}.{key}", spec.name));
                unlimited_pairs.push((switch, limit));
            }
        }
    }
    unlimited_pairs
}

/// True if a request with `body` turns `switch` on, and the response does not show that the switch
/// is off.
fn is_switched_on(section: Section, switch: &str, body: &Fields, response: &Object) -> bool {
    let Some(spec) = section.spec(switch) else { return false };
    let is_turned_on = body.get(spec.field.sent_name()).is_some_and(is_on);
    is_turned_on
        && section
            .rules()
            .decode(spec, response)
            .is_none_or(|shown_value| field::is_on(&shown_value))
}

/// True if the response shows the value that was sent.
fn is_shown(field: &Field, encoded_value: &Json, shown_value: Option<&Json>) -> bool {
    let sent_value = if field.is_level() {
        AccessLevel::convert_to_word(encoded_value)
    } else {
        encoded_value.clone()
    };
    forms::are_equal(field.compare, &sent_value, shown_value.unwrap_or(&Json::Null))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::testing::{fields, live_entry, project_section};

    #[test]
    fn an_undo_turns_off_only_new_limited_switches() {
        let hooks = project_section("hooks");
        let (on_value, branch_filter) = (json!(true), json!("main"));
        for (entry, body, is_undone) in [
            (
                Some(false),
                json!({"push_events": on_value, "push_events_branch_filter": branch_filter}),
                true,
            ),
            (
                None,
                json!({"push_events": on_value, "push_events_branch_filter": branch_filter}),
                true,
            ),
            (
                Some(true),
                json!({"push_events": on_value, "push_events_branch_filter": branch_filter}),
                false,
            ),
            (
                Some(false),
                json!({"push_events": false, "push_events_branch_filter": branch_filter}),
                false,
            ),
            (Some(false), json!({"push_events": on_value}), false),
        ] {
            let old_entry = entry.map(|push_events| {
                live_entry(hooks, json!({"id": 1, "url": "https://h", "push_events": push_events}))
            });
            let off_body = switch_off_body(hooks, &fields(body.clone()), old_entry.as_ref());
            let old_fields = old_entry.map(|entry| entry.fields);
            let expected = if is_undone { json!({"push_events": false}) } else { json!({}) };
            assert_eq!(off_body, fields(expected), "{old_fields:?} {body}");
        }
    }

    /// The keys of a mapping have the same rule. A switch that was on before, or that has no limit,
    /// stays on.
    #[test]
    fn an_undo_turns_off_only_new_limited_keys() {
        let settings = project_section("settings");
        let (policy_field, attributes_field) =
            ("container_expiration_policy", "container_expiration_policy_attributes");
        for (old_settings, body, is_undone) in [
            (
                json!({policy_field: {"enabled": false}}),
                json!({"enabled": true, "keep_n": 10}),
                true,
            ),
            (json!({policy_field: null}), json!({"enabled": true, "keep_n": 10}), true),
            (json!({}), json!({"enabled": true, "name_regex": ".*"}), true),
            (
                json!({policy_field: {"enabled": true}}),
                json!({"enabled": true, "keep_n": 10}),
                false,
            ),
            (
                json!({policy_field: {"enabled": false}}),
                json!({"enabled": false, "keep_n": 10}),
                false,
            ),
            (
                json!({policy_field: {"enabled": false}}),
                json!({"enabled": true, "cadence": "1d"}),
                false,
            ),
        ] {
            let off_body = switch_off_body(
                settings,
                &fields(json!({attributes_field: body})),
                Some(&live_entry(settings, old_settings.clone())),
            );
            let expected_off_body = json!({attributes_field: {"enabled": false}});
            assert_eq!(
                off_body,
                fields(if is_undone { expected_off_body } else { json!({}) }),
                "{old_settings} {body}"
            );
        }
    }

    /// Each case has the sent body, the response, and the switch that is then on without its limit.
    #[test]
    fn a_response_must_show_the_limit_of_a_switch() {
        let policy_body = |policy_json: Json| json!({"container_expiration_policy": policy_json});
        let attributes_body =
            |policy_json: Json| json!({"container_expiration_policy_attributes": policy_json});
        let limited_hook = || json!({"push_events": true, "push_events_branch_filter": "main"});
        let rule_body =
            || attributes_body(json!({"enabled": true, "keep_n": 10, "name_regex": ".*"}));
        let filter_pair = Some(("push_events", "push_events_branch_filter"));
        let keep_pair =
            ("container_expiration_policy.enabled", "container_expiration_policy.keep_n");
        for (name, body, response, expected) in [
            ("hooks", limited_hook(), limited_hook(), None),
            ("hooks", limited_hook(), json!({"push_events": true}), filter_pair),
            ("hooks", limited_hook(), json!({}), filter_pair),
            (
                "hooks",
                limited_hook(),
                json!({"push_events": true, "push_events_branch_filter": "dev"}),
                filter_pair,
            ),
            ("hooks", limited_hook(), json!({"push_events": false}), None),
            ("hooks", json!({"push_events": true}), json!({"push_events": true}), None),
            (
                "hooks",
                json!({"push_events_branch_filter": "main"}),
                json!({"push_events": true}),
                None,
            ),
            (
                "hooks",
                json!({"push_events": false, "push_events_branch_filter": "main"}),
                json!({"push_events": true}),
                None,
            ),
            (
                "variables",
                json!({"value": "x", "protected": true}),
                json!({"value": "x", "protected": false}),
                Some(("value", "protected")),
            ),
            (
                "variables",
                json!({"value": "x", "protected": false}),
                json!({"value": "x", "protected": true}),
                None,
            ),
            (
                "settings",
                rule_body(),
                policy_body(json!({"enabled": true, "keep_n": 10, "name_regex": ".*"})),
                None,
            ),
            (
                "settings",
                rule_body(),
                policy_body(json!({"enabled": true, "keep_n": 5, "name_regex": ".*"})),
                Some(keep_pair),
            ),
            (
                "settings",
                rule_body(),
                policy_body(json!({"enabled": true, "name_regex": ".*"})),
                Some(keep_pair),
            ),
            ("settings", rule_body(), policy_body(json!({"enabled": false})), None),
            ("settings", rule_body(), json!({}), None),
            (
                "settings",
                attributes_body(json!({"enabled": false, "keep_n": 10})),
                policy_body(json!({"enabled": true})),
                None,
            ),
            (
                "settings",
                attributes_body(json!({"keep_n": 10})),
                policy_body(json!({"enabled": true})),
                None,
            ),
        ] {
            let raw = crate::kind::testing::object(response.clone());
            let found_pairs =
                unlimited_switches(project_section(name), &fields(body.clone()), &raw);
            let expected_pairs =
                expected.map(|(switch, limit)| (switch.to_owned(), limit.to_owned()));
            assert_eq!(found_pairs, Vec::from_iter(expected_pairs), "{name} {body} {response}");
        }
    }

    #[test]
    fn only_an_active_switch_needs_its_limit() {
        let spec = project_section("settings").spec("container_expiration_policy").unwrap();
        for (key, mapping, is_required) in [
            ("name_regex", json!({"enabled": true}), true),
            ("name_regex", json!({"enabled": false}), false),
            ("name_regex", json!({}), false),
            ("keep_n", json!({"enabled": true}), false),
            ("cadence", json!({"enabled": true}), false),
        ] {
            assert_eq!(is_limit_required(spec, key, &mapping), is_required, "{key} {mapping}");
        }
    }
}
