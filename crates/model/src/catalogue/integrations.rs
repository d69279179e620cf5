//! Integrations of a project or group, by slug.
//!
//! The service keeps a row for each integration that was ever configured. An inactive integration
//! is treated as absent. A PUT creates, edits and activates an integration. The PUT must contain
//! the required fields of the integration, including the secrets. The list shows active
//! integrations without their properties, so each declared integration is read with a request of
//! its own.
//!
//! Groups and projects below a group inherit the integrations of the group. A PUT to an inherited
//! integration without `use_inherited_settings: false` changes nothing. A DELETE of an inherited
//! integration lasts only until the next PUT to the integration of the group.

use super::{hooks, prelude::*};
use crate::{
    field::Variant,
    kind::{FieldSpec, forms},
    operation::RequestBody,
    release::{DetectedRelease, Release},
};

const SECTION: &str = "integrations";
const SLUG_FIELD: &str = "slug";
/// The maximum number of email recipients.
const MAX_RECIPIENTS: usize = 750;
/// The field with the email recipients.
const RECIPIENTS_FIELD: &str = "recipients";
/// The field with the URL that the service calls. The URL is a secret.
const WEBHOOK_FIELD: &str = "webhook";
/// The release that added the parameter [`INHERITS_PARAMETER`].
const INHERITS_PARAMETER_SINCE: Release = Release::new(17, 3);
/// The parameter that makes an integration independent of the group (`false`), or inherits it again
/// (`true`).
const INHERITS_PARAMETER: &str = "use_inherited_settings";

/// The field for the user name, which Jira requires unless a token is used.
fn user_field(slug: &str) -> Option<&'static &'static str> {
    (slug == "jira").then_some(&"username")
}

pub(super) struct Integrations;

impl KindRules for Integrations {
    // Booleans and numbers that older releases stored may be texts.
    fn decode(&self, spec: &FieldSpec, raw: &Object) -> Option<Json> {
        let value = forms::decode(spec, raw)?;
        let decoded = match (spec.schema["type"].as_str(), value.as_str()) {
            (Some("boolean"), Some("true" | "1")) => Some(true.into()),
            (Some("boolean"), Some("false" | "0")) => Some(false.into()),
            (Some("integer"), Some(text)) => text.parse::<i64>().ok().map(Json::from),
            _ => None,
        };
        Some(decoded.unwrap_or(value))
    }

    fn protection_reason(&self, raw: &Object) -> Option<&'static str> {
        let is_inherited = is_true(raw, "inherited");
        is_inherited.then_some("inherited from a group above or from the service")
    }

    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let Some(slug) = declared.text(SLUG_FIELD) else { return };
        // Projects have all integrations; groups may have fewer.
        let Some(section) = super::find_section(Scope::Project, SECTION) else { return };
        let Some(variant) = section.table().variant(slug) else { return };
        // The value 1 means a token. With an invalid value, the user probably meant a token, too.
        let auth_type = declared.plain_json("jira_auth_type");
        let uses_token = auth_type.is_some_and(|number| *number != 0);
        let required_user_field = user_field(slug).filter(|_| !uses_token);
        let required_fields = variant.needs.iter().chain(required_user_field);
        let missing_fields: Vec<_> =
            required_fields.filter(|name| !declared.contains_key(name)).collect();
        let specs = section.specs().iter().filter(|spec| declared.contains_key(spec.name));
        let foreign_specs =
            specs.filter(|spec| spec.name != SLUG_FIELD && !variant.fields.contains(spec.name));
        let foreign_fields: Vec<_> = foreign_specs.collect();
        let new_fault =
            |fault_text, field| EntryFault::for_field(fault_text, field).fill("slug", slug);
        if let ([name], [spec]) = (&*missing_fields, &*foreign_fields) {
            return report(new_fault(fault_text::FIELD_IN_PLACE, spec.name).fill("name", name));
        }
        for name in missing_fields {
            let is_secret = section.field(name).secrecy() != Secrecy::Open;
            let value = if is_secret { "{env: NAME}" } else { "..." };
            report(new_fault(fault_text::FIELD_NEEDED, "").fill("name", name).fill("value", value));
        }
        for spec in foreign_fields {
            let variants = section.field(SLUG_FIELD).variants();
            let matching_variants =
                variants.filter(|(_, variant)| variant.fields.contains(spec.name));
            let other_slugs =
                text::list_names(&matching_variants.map(|(slug, _)| slug).collect::<Vec<_>>());
            report(new_fault(fault_text::FIELD_OF_OTHERS, spec.name).fill("others", &other_slugs));
        }
        check_recipients(slug, variant, declared, report);
        // A plan knows the URL only if the environment contains the secret.
        if let Some(url) = declared.text(WEBHOOK_FIELD) {
            hooks::check_url("the URL of a webhook", WEBHOOK_FIELD, url, report);
        }
        check_channels(variant, declared, report);
    }

    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let mut calls = context.default_calls()?;
        let lacks_parameter = matches!(context.release, DetectedRelease::Known(release) if release < INHERITS_PARAMETER_SINCE);
        let is_group = context.section.scoped_kind.scope == Scope::Group;
        for call in &mut calls {
            if let RequestBody::Json(fields) = &mut call.request.body
                && !lacks_parameter
            {
                fields.insert(INHERITS_PARAMETER.to_owned(), Json::Bool(false).into());
            }
            call.side_effects = is_group.then_some(match context.purpose {
                CallPurpose::Remove(_) => REMOVAL_BELOW_NOTE,
                _ => CHANGE_BELOW_NOTE,
            });
        }
        Ok(calls)
    }
}

fn check_recipients(slug: &str, variant: &Variant, declared: &Fields, report: Reporter<'_>) {
    let recipients =
        declared.get(RECIPIENTS_FIELD).filter(|_| variant.fields.contains(RECIPIENTS_FIELD));
    let recipients = recipients.and_then(Value::text).unwrap_or_default();
    if slug == "irker" && recipients.contains('@') {
        report(EntryFault::for_field(fault_text::EMAIL_FOR_CHANNEL, RECIPIENTS_FIELD));
    } else if recipients.split_whitespace().count() > MAX_RECIPIENTS {
        report(EntryFault::for_field(fault_text::MANY_RECIPIENTS, RECIPIENTS_FIELD));
    }
}

/// True if a channel has a name.
fn is_channel_set(value: &Value) -> bool {
    !value.is_null() && value.text() != Some("")
}

/// Reports an empty channel for confidential events, because the service then shows the public
/// channel.
fn check_channels(variant: &'static Variant, declared: &Fields, report: Reporter<'_>) {
    for name in &variant.fields {
        let public_channel =
            name.strip_prefix("confidential_").filter(|channel| channel.ends_with("_channel"));
        let is_empty = declared.get(name).is_some_and(|value| !is_channel_set(value));
        let Some(public_channel) = public_channel.filter(|_| is_empty) else { continue };
        match declared.get(public_channel) {
            Some(value) if is_channel_set(value) => {
                report(
                    EntryFault::for_field(fault_text::EMPTY_BESIDE, name)
                        .with_other_field(public_channel),
                );
            }
            Some(_) => {}
            None => report(
                EntryFault::for_field(fault_text::EMPTY_ALONE, name).fill("shown", public_channel),
            ),
        }
    }
}

const CHANGE_BELOW_NOTE: &str =
    "it also changes this integration in all groups and projects below that do not have their own";
const REMOVAL_BELOW_NOTE: &str =
    "it stays active in the groups and projects below that inherit it; remove it there too";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        catalogue,
        kind::{
            self,
            testing::{
                creation_requests, edit_requests_for, existing_target, fields, find_faults,
                live_entry, object, project_section, removal_requests, request_parts,
            },
        },
        operation::{INTEGRATION_DELETE, INTEGRATION_SET},
        secret::Reference,
    };

    fn with_secret(declared: Json, name: &str) -> Fields {
        let mut declared = fields(declared);
        declared.insert(name.to_owned(), Value::Secret(Reference::Env("SECRET".into())));
        declared
    }

    #[test]
    fn each_integration_has_its_own_fields() {
        let section = project_section("integrations");
        for (declared, secret, expected) in [
            (json!({"slug": "slack", "channel": "#ops", "alert_events": true}), "webhook", None),
            (json!({"slug": "slack", "commit_events": true}), "webhook", Some("unknown-field")),
            (json!({"slug": "slack"}), "token", Some("unknown-field")),
            (json!({"slug": "jira", "url": "https://j"}), "password", Some("missing")),
            (json!({"slug": "jira", "url": "https://j", "username": "a"}), "password", None),
            (json!({"slug": "jira", "url": "https://j", "jira_auth_type": 1}), "password", None),
        ] {
            let found_faults = find_faults(section, &with_secret(declared.clone(), secret));
            assert_eq!(found_faults.first().map(|(_, code)| *code), expected, "{declared}");
        }
    }

    /// Every name in a variant is a field, and every field is in the table of projects.
    #[test]
    fn names_in_variants_are_fields() {
        let project_section = project_section(SECTION);
        for (slug, variant) in project_section.field(SLUG_FIELD).variants() {
            for name in &variant.fields {
                assert!(project_section.spec(name).is_some(), "{slug}: {name}");
            }
        }
        assert_eq!(project_section.specs().len(), project_section.fields.len());
        let group_table = catalogue::find_section(Scope::Group, SECTION).unwrap().table();
        assert!(
            group_table.get("jenkins_url").is_none() && group_table.get("recipients").is_some()
        );
    }

    #[test]
    fn own_fields_are_read_and_texts_are_converted() {
        let raw = json!({
            "slug": "telegram", "active": true, "push_events": true, "commit_events": true,
            "properties": {"room": "@a", "thread": "7", "notify_only_broken_pipelines": "0", "other": 1},
        });
        let live_fields = live_entry(project_section("integrations"), raw).fields;
        let live_fields = live_fields.raw();
        assert_eq!(
            (&live_fields["thread"], &live_fields["notify_only_broken_pipelines"]),
            (&7.into(), &false.into())
        );
        assert_eq!(
            (&live_fields["room"], &live_fields["push_events"]),
            (&"@a".into(), &true.into())
        );
        assert!(!live_fields.contains_key("commit_events") && !live_fields.contains_key("other"));
    }

    #[test]
    fn a_put_contains_all_required_fields() {
        let section = project_section("integrations");
        let put_request = |body| {
            INTEGRATION_SET
                .request()
                .with_argument("id", 7)
                .with_argument("slug", "jenkins")
                .with_fields(body)
        };
        let declared = json!({"slug": "jenkins", "jenkins_url": "https://ci", "project_name": "shop", "push_events": true});
        let declared = with_secret(declared, "password");
        let mut body = declared.clone();
        body.retain(|name, _| name != "slug");
        assert_eq!(
            request_parts(&creation_requests(section, &declared)),
            request_parts(&[put_request(body.clone())])
        );
        let raw = json!({
            "slug": "jenkins", "push_events": false, "merge_requests_events": true,
            "properties": {"jenkins_url": "https://ci", "project_name": "shop", "username": "bot"},
        });
        let edit_requests = edit_requests_for(section, &declared, raw.clone(), &["push_events"]);
        assert_eq!(request_parts(&edit_requests), request_parts(&[put_request(body)]));
        assert_eq!(edit_requests[0].repeated_values().count(), 0);
        let delete =
            INTEGRATION_DELETE.request().with_argument("id", 7).with_argument("slug", "jenkins");
        assert_eq!(removal_requests(section, raw), [delete]);
    }

    #[test]
    fn a_webhook_is_a_url() {
        for (url, expected) in
            [("https://chat.example.org/hooks/1", &[][..]), ("chat", &[("webhook", "hook-url")])]
        {
            let declared = fields(json!({"slug": "slack", "webhook": url}));
            assert_eq!(find_faults(project_section("integrations"), &declared), expected, "{url}");
        }
    }

    /// A PUT sets `use_inherited_settings: false` if the release has the parameter.
    #[test]
    fn a_declared_integration_is_not_inherited() {
        let declared =
            fields(json!({"slug": "external-wiki", "external_wiki_url": "https://wiki"}));
        let release_at = |major, minor| DetectedRelease::Known(Release::new(major, minor));
        for (release, expected) in [
            (release_at(17, 2), None),
            (release_at(17, 3), Some(false)),
            (DetectedRelease::Hidden, Some(false)),
            (DetectedRelease::NotRequested, Some(false)),
        ] {
            let context = CallContext {
                section: project_section("integrations"),
                target: &existing_target(),
                names: &kind::NameIndex::default(),
                release,
                has_unique_address: true,
                purpose: CallPurpose::Create(&declared),
            };
            let calls = Integrations.calls(&context).unwrap();
            let body = calls[0].request.body_fields().unwrap();
            assert_eq!(body.flag(INHERITS_PARAMETER), expected, "{release:?}");
        }
    }

    #[test]
    fn an_inherited_integration_is_not_removed() {
        let protection_reason = |inherited: bool| {
            Integrations.protection_reason(&object(json!({"inherited": inherited})))
        };
        assert!(protection_reason(true).is_some() && protection_reason(false).is_none());
    }
}
