//! CI/CD variables of a project or a group.

use std::borrow::Cow;

use crate::{
    release::{DetectedRelease, Release},
    secret::{Reference, judge},
};

use super::prelude::*;

/// The first release in which an edit of a group's variable respects the environment filter.
const RESPECTS_FILTER_SINCE: Release = Release::new(16, 9);

/// The field that shows whether a variable is hidden. A service that returns this field respects the
/// environment filter.
const HIDDEN_FIELD: &str = "masked_and_hidden";

pub(super) struct Variables;

impl KindRules for Variables {
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let (declared, live, changed) = match context.purpose {
            CallPurpose::Change(declared, live, changed) => (declared, live, changed),
            // An unknown release is refused, because an older service would not hide the value.
            CallPurpose::Create(declared)
                if declared.is_on(HIDDEN_FIELD) && context.release == DetectedRelease::Hidden =>
            {
                return Err(EntryFault::for_field(fault_text::MAY_BE_SHOWN, HIDDEN_FIELD).into());
            }
            CallPurpose::Create(_) | CallPurpose::Remove(_) | CallPurpose::Container(_) => {
                return context.default_calls();
            }
        };
        // Only a create request can hide a variable, and no request can make it visible again.
        if is_true(live.fields.raw(), HIDDEN_FIELD) {
            if let Some(field) =
                [HIDDEN_FIELD, "masked"].iter().find(|field| changed.contains(field))
            {
                return Err(EntryFault::for_field(fault_text::STAYS_HIDDEN, field).into());
            }
        } else if changed.contains(&HIDDEN_FIELD) {
            return context.replace_calls(declared, live);
        }
        if context.has_unique_address || context.section.scoped_kind.scope == Scope::Project {
            return context.default_calls();
        }
        // In older releases, an edit of a group's variable ignores the filter and may change
        // another variable with the same key.
        let shows_hidden_flag = live.fields.raw().contains_key(HIDDEN_FIELD);
        match context.release {
            _ if shows_hidden_flag || context.release.is_at_least(RESPECTS_FILTER_SINCE) => {
                context.default_calls()
            }
            DetectedRelease::NotRequested => Err(NoCalls::DependsOnRelease),
            DetectedRelease::Hidden | DetectedRelease::Known(_) => {
                context.replace_calls(declared, live)
            }
        }
    }

    // Variables of type `file` contain long values, such as keys, certificates, or configurations
    // with passwords.
    fn secrecy_reason(&self, live: &Object) -> Option<&'static str> {
        let is_file = value::text(live, "variable_type") == Some("file");
        let flag = ["masked", "protected"].into_iter().find(|flag| is_true(live, flag));
        flag.or_else(|| is_file.then_some("a file"))
    }

    fn check(&self, declared: &Fields, is_unresolved: bool, report: Reporter<'_>) {
        let value = declared.text("value");
        let masked_value =
            value.filter(|_| declared.is_on("masked") || declared.is_on(HIDDEN_FIELD));
        let is_quoted =
            value.is_some_and(|value| Reference::quoted_reference_start(value).is_some());
        let masked_value = masked_value.filter(|_| !is_quoted);
        let mask_fault =
            masked_value.and_then(|value| check_maskable(value, declared.is_on("raw")).err());
        if let Some(mask_fault) = &mask_fault {
            let flag = if declared.is_on("masked") { "masked" } else { HIDDEN_FIELD };
            let value = value.unwrap_or_default();
            let message = if is_expression(value) {
                fault_text::MASKED_EXPRESSION
            } else if value.trim() != value && mask_fault.contains("white space") {
                fault_text::MASKED_BLANK
            } else {
                fault_text::MASKED
            };
            report(
                EntryFault::for_field(message, "value")
                    .with_other_field(flag)
                    .fill("why", mask_fault)
                    .fill("name", environment_variable(value).unwrap_or("NAME")),
            );
        }
        if declared.is_on(HIDDEN_FIELD) && declared.flag("masked") == Some(false) {
            report(
                EntryFault::for_field(fault_text::HIDDEN_UNMASKED, "masked")
                    .with_other_field(HIDDEN_FIELD),
            );
        }
        let is_literal = is_unresolved && value.is_some_and(|value| !value.is_empty());
        let last_word = declared.text("key").and_then(|key| key.rsplit('_').next());
        let has_secret_name = last_word.is_some_and(judge::is_named_like_secret);
        // Many protected values, such as host names, are not secrets.
        let is_likely_secret = has_secret_name || value.is_some_and(judge::has_random_run);
        let flags =
            ["masked", HIDDEN_FIELD].into_iter().chain(is_likely_secret.then_some("protected"));
        let secret_flag = flags.into_iter().find(|name| declared.is_on(name));
        // A quoted reference or a placeholder is not reported here, because another check reports
        // it for all fields.
        let has_certain_secret = is_quoted
            || value.is_some_and(|value| {
                judge::find_credential(value).is_some() || judge::is_filler(value)
            });
        // A value that cannot be masked is skipped. It must be corrected first, and is perhaps no
        // secret.
        if let Some(flag) =
            secret_flag.filter(|_| is_literal && !has_certain_secret && mask_fault.is_none())
        {
            report(EntryFault::for_field(fault_text::LITERAL_VALUE, "value").fill("flag", flag));
        }
    }
}

/// True if `value` contains an expression that another tool would fill in or decrypt, or is a
/// placeholder.
pub fn is_expression(value: &str) -> bool {
    let markers = ["{{", "${var.", "${local."];
    environment_variable(value).is_some()
        || value.starts_with("ENC[")
        || judge::is_filler(value)
        || markers.iter().any(|marker| value.contains(marker))
}

/// The name in `$NAME` and `${NAME}`. Names have only upper-case letters, digits and `_`.
fn environment_variable(value: &str) -> Option<&str> {
    let name = value.strip_prefix('$')?;
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    let is_env_char = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    Some(name).filter(|name| {
        name.starts_with(|c: char| c.is_ascii_uppercase()) && name.chars().all(is_env_char)
    })
}

/// Checks that the service accepts `value` as masked. The value must be one line of at least 8
/// characters, without white space. Unless `is_raw` is true, only the characters
/// `[a-zA-Z0-9_+=/@:.~-]` are accepted.
///
/// # Errors
/// The broken rule, as the end of a sentence that starts with "a masked value".
pub fn check_maskable(value: &str, is_raw: bool) -> Result<(), Cow<'static, str>> {
    if value.chars().count() < 8 {
        return Err("must have at least 8 characters".into());
    }
    if value.trim_end().contains('\n') {
        return Err("must be a single line".into());
    }
    if let Some((index, blank)) = value.char_indices().find(|(_, c)| c.is_whitespace()) {
        let verb = match index {
            0 => "starts with",
            _ if value[index..].trim().is_empty() => "ends in",
            _ => "has",
        };
        let noun = match blank {
            ' ' => "a space",
            '\t' => "a tab",
            '\r' => "a carriage return (a Windows line end)",
            '\n' => "a line break",
            _ => "a special space",
        };
        return Err(format!("must not have white space: it {verb} {noun}").into());
    }
    if !is_raw && !value.chars().all(|c| c.is_ascii_alphanumeric() || "_+=/@:.~-".contains(c)) {
        return Err("must have only letters, digits and `_+=/@:.~-`, unless `raw` is true".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        catalogue,
        kind::{
            NameIndex,
            testing::{
                creation_requests, edit_requests_for, existing_target, fields, find_faults,
                live_entry, project_section, removal_requests, request_parts,
            },
        },
        operation::{Op, VARIABLE_CREATE, VARIABLE_DELETE, VARIABLE_UPDATE, Write},
    };

    #[test]
    fn an_edit_contains_all_fields_and_always_the_scope() {
        let declared = fields(json!({"key": "A", "environment_scope": "prod/*", "value": "new"}));
        assert_eq!(
            request_parts(&creation_requests(project_section("variables"), &declared)),
            request_parts(&[VARIABLE_CREATE
                .request()
                .with_argument("id", 7)
                .with_fields(declared.clone())])
        );
        let raw = json!({"key": "A", "environment_scope": "prod/*", "value": "old", "protected": false, "masked": true, "raw": true, "variable_type": "file"});
        let entry_request = |op: Op<Write>| {
            op.request()
                .with_argument("id", 7)
                .with_argument("key", "A")
                .with_query("filter[environment_scope]", "prod/*")
        };
        let body = fields(json!({
            "value": "new", "protected": false, "masked": true, "raw": true, "variable_type": "file",
        }));
        assert_eq!(
            request_parts(&edit_requests_for(
                project_section("variables"),
                &declared,
                raw.clone(),
                &["value"]
            )),
            request_parts(&[entry_request(VARIABLE_UPDATE).with_fields(body)])
        );
        let unmasked_fields =
            fields(json!({"key": "A", "environment_scope": "prod/*", "masked": false}));
        let edit_requests = edit_requests_for(
            project_section("variables"),
            &unmasked_fields,
            raw.clone(),
            &["masked"],
        );
        assert_eq!(
            edit_requests[0].repeated_values().map(|(name, _)| name).collect::<Vec<_>>(),
            ["value", "variable_type", "protected", "raw"]
        );
        assert!(edit_requests[0].is_sensitive("value"));
        assert_eq!(
            removal_requests(project_section("variables"), raw),
            [entry_request(VARIABLE_DELETE)]
        );
    }

    /// The number of calls that change a variable of a group, or the reason why there are no calls.
    /// Another variable has the same key. The result depends on `release`.
    fn calls_with_duplicates(
        raw: Json,
        changed: &str,
        release: DetectedRelease,
    ) -> Result<usize, NoCalls> {
        let section = catalogue::find_section(Scope::Group, "variables").unwrap();
        let declared = fields(json!({"key": "A", "environment_scope": "*", "value": "new"}));
        let entry = live_entry(section, raw);
        let context = CallContext {
            section,
            target: &existing_target(),
            names: &NameIndex::default(),
            release,
            has_unique_address: false,
            purpose: CallPurpose::Change(&declared, &entry, &[changed]),
        };
        section.rules().calls(&context).map(|calls| calls.len())
    }

    #[test]
    fn a_group_variable_of_several_scopes_is_edited_if_the_service_respects_the_filter() {
        let raw = json!({"key": "A", "environment_scope": "*", "value": "old", "protected": false, "masked": false, "raw": false, "variable_type": "env_var"});
        let parse_release = |text: &str| DetectedRelease::Known(text.parse().unwrap());
        assert_eq!(
            calls_with_duplicates(raw.clone(), "value", DetectedRelease::NotRequested),
            Err(NoCalls::DependsOnRelease)
        );
        for (release, call_count) in
            [(DetectedRelease::Hidden, 3), (parse_release("16.8"), 3), (parse_release("16.9"), 1)]
        {
            assert_eq!(
                calls_with_duplicates(raw.clone(), "value", release),
                Ok(call_count),
                "{release:?}"
            );
        }
        let mut shown_raw = raw;
        shown_raw["hidden"] = false.into();
        assert_eq!(
            calls_with_duplicates(shown_raw.clone(), "value", DetectedRelease::NotRequested),
            Ok(1),
            "only newer releases show `hidden`"
        );
        shown_raw["hidden"] = true.into();
        let result = calls_with_duplicates(shown_raw, "masked", DetectedRelease::NotRequested);
        assert!(
            matches!(result, Err(NoCalls::Impossible(EntryFault { code: "hidden-variable", .. }))),
            "{result:?}"
        );
    }

    #[test]
    fn a_hidden_variable_is_masked() {
        let hidden_variable = |masked: Json| {
            fields(
                json!({"key": "A", "value": "long-enough", "masked_and_hidden": true, "masked": masked}),
            )
        };
        assert_eq!(
            find_faults(project_section("variables"), &hidden_variable(false.into())),
            [("masked", "hidden-variable")]
        );
        assert_eq!(find_faults(project_section("variables"), &hidden_variable(true.into())), []);
        let short_variable =
            fields(json!({"key": "A", "value": "short", "masked_and_hidden": true}));
        assert_eq!(
            find_faults(project_section("variables"), &short_variable),
            [("value", "masked-value")]
        );
    }

    #[test]
    fn masked_and_file_values_are_confidential() {
        let section = project_section("variables");
        for (fields, reason) in [
            (json!({"masked": true, "protected": true}), Some("masked")),
            (json!({"masked": false, "protected": true}), Some("protected")),
            (json!({"variable_type": "file"}), Some("a file")),
            (json!({"variable_type": "env_var", "masked": false, "raw": true}), None),
        ] {
            assert_eq!(
                section.rules().secrecy_reason(fields.as_object().unwrap()),
                reason,
                "{fields}"
            );
        }
    }

    #[test]
    fn secret_literals_are_not_shown() {
        let field = project_section("variables").field("value");
        for (values, is_masked, is_secret) in [
            (json!({"value": "a", "masked": true}), true, true),
            (json!({"value": "a", "masked_and_hidden": true}), true, true),
            (json!({"value": "a", "masked": false, "protected": true}), false, true),
            (json!({"value": "glpat-0123456789abcdefghij"}), false, true),
            (json!({"value": "a", "protected": false}), false, false),
        ] {
            let declared_fields = fields(values.clone());
            assert_eq!(
                crate::kind::forms::is_masked_in_logs(field, &declared_fields),
                is_masked,
                "{values}"
            );
            assert_eq!(
                crate::kind::forms::is_literal_hidden(field, &values["value"], &declared_fields),
                is_secret
            );
        }
    }

    #[test]
    fn a_value_is_maskable_or_not() {
        for (value, is_maskable, is_raw_maskable) in [
            ("12345678", true, true),
            ("1234567", false, false),
            ("", false, false),
            ("aZ0_+=/@:.~-", true, true),
            ("dollar$8", false, true),
            ("white space", false, false),
            ("two\nlines", false, false),
            ("éééééééé", false, true),
        ] {
            assert_eq!(
                (check_maskable(value, false).is_ok(), check_maskable(value, true).is_ok()),
                (is_maskable, is_raw_maskable),
                "{value:?}"
            );
            let masked_variable =
                |raw| fields(json!({"key": "A", "value": value, "masked": true, "raw": raw}));
            assert_eq!(
                (
                    find_faults(project_section("variables"), &masked_variable(false)).is_empty(),
                    find_faults(project_section("variables"), &masked_variable(true)).is_empty()
                ),
                (is_maskable, is_raw_maskable)
            );
        }
        for (value, why) in [
            ("abcdefgh12\r", "ends in a carriage return (a Windows line end)"),
            ("abcdefgh12 \n", "ends in a space"),
            ("abcdefgh12\n", "ends in a line break"),
            ("\tabcdefgh", "starts with a tab"),
            ("abcd efgh", "has a space"),
        ] {
            let expected = format!("must not have white space: it {why}");
            assert_eq!(check_maskable(value, true).unwrap_err(), expected, "{value:?}");
        }
        assert_eq!(
            find_faults(
                project_section("variables"),
                &fields(json!({"key": "A", "value": "short"}))
            ),
            []
        );
    }
}
