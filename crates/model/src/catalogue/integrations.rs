//! Integrations of a project or group, by slug.
//!
//! The service keeps a row for each integration that was ever set up: one that is not active counts as
//! absent. A PUT creates, edits and activates it, and must contain its required fields, also the
//! secrets. The list shows active ones without their properties, so each declared one is read alone.
//!
//! Below a group, an integration of the group is inherited. Such a one is not the project's own: a
//! PUT without `use_inherited_settings: false` changes nothing in it, and a DELETE only lasts until
//! the next PUT of the group.

use super::{hooks, prelude::*};
use crate::{
    field::Variant,
    kind::{Spec, forms},
    operation::RequestBody,
    release::{DetectedRelease, Release},
};

const SECTION: &str = "integrations";
const SLUG: &str = "slug";
/// The most addresses that the service writes to.
const MAX_RECIPIENTS: usize = 750;
/// The field of the addresses that it writes to.
const RECIPIENTS: &str = "recipients";
/// The field of a secret URL to call.
const WEBHOOK: &str = "webhook";
/// The release that added the parameter [`INHERITS_PARAMETER`].
const INHERITS_SINCE: Release = Release::new(17, 3);
/// The parameter that makes an inherited integration its own, or inherits it again.
const INHERITS_PARAMETER: &str = "use_inherited_settings";

/// The field for the user, which the service needs for Jira unless a token is used.
fn user_field(slug: &str) -> Option<&'static &'static str> {
    (slug == "jira").then_some(&"username")
}

pub(super) struct Integrations;

impl KindRules for Integrations {
    // Some stored values are still texts, from older releases.
    fn decode(&self, spec: &Spec, raw: &Object) -> Option<Json> {
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

    fn check(&self, declared: &Fields, _is_as_written: bool, report: Reporter<'_>) {
        let Some(slug) = declared.text(SLUG) else { return };
        // Projects have all integrations that there are.
        let Some(section) = super::section(Scope::Project, SECTION) else { return };
        let Some(variant) = section.table().variant(slug) else { return };
        // An invalid value may stand for 1.
        let with_token = declared.plain("jira_auth_type");
        let with_token = with_token.is_some_and(|kind| *kind != 0);
        let user = user_field(slug).filter(|_| !with_token);
        let needed = variant.needs.iter().chain(user);
        let missing: Vec<_> = needed.filter(|name| !declared.contains_key(name)).collect();
        let specs = section.specs().iter().filter(|spec| declared.contains_key(spec.name));
        let foreign_specs =
            specs.filter(|spec| spec.name != SLUG && !variant.fields.contains(spec.name));
        let foreign_fields: Vec<_> = foreign_specs.collect();
        let fault_of = |texts, field| EntryFault::for_field(texts, field).fill("slug", slug);
        if let ([name], [spec]) = (&*missing, &*foreign_fields) {
            return report(fault_of(texts::FIELD_IN_PLACE, spec.name).fill("name", name));
        }
        for name in missing {
            let is_secret = section.field(name).secrecy() != Secrecy::Open;
            let value = if is_secret { "{env: NAME}" } else { "..." };
            report(fault_of(texts::FIELD_NEEDED, "").fill("name", name).fill("value", value));
        }
        for spec in foreign_fields {
            let others = section.field(SLUG).variants();
            let others = others.filter(|(_, variant)| variant.fields.contains(spec.name));
            let others = text::list_names(&others.map(|(slug, _)| slug).collect::<Vec<_>>());
            report(fault_of(texts::FIELD_OF_OTHERS, spec.name).fill("others", &others));
        }
        check_recipients(slug, variant, declared, report);
        // Its value is known in a plan, if the environment has it.
        if let Some(url) = declared.text(WEBHOOK) {
            hooks::check_url("the URL of a webhook", WEBHOOK, url, report);
        }
        check_channels(variant, declared, report);
    }

    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let mut calls = context.plain_calls()?;
        let is_old =
            matches!(context.release, DetectedRelease::Known(release) if release < INHERITS_SINCE);
        let is_group = context.section.scoped_kind.scope == Scope::Group;
        for call in &mut calls {
            if let RequestBody::Json(fields) = &mut call.request.body
                && !is_old
            {
                fields.insert(INHERITS_PARAMETER.to_owned(), Json::Bool(false).into());
            }
            call.side_effect = is_group.then_some(match context.purpose {
                CallPurpose::Remove(_) => REMOVAL_BELOW_NOTE,
                _ => CHANGE_BELOW_NOTE,
            });
        }
        Ok(calls)
    }
}

fn check_recipients(slug: &str, variant: &Variant, declared: &Fields, report: Reporter<'_>) {
    let recipients = declared.get(RECIPIENTS).filter(|_| variant.fields.contains(RECIPIENTS));
    let recipients = recipients.and_then(Value::text).unwrap_or_default();
    if slug == "irker" && recipients.contains('@') {
        report(EntryFault::for_field(texts::EMAIL_FOR_CHANNEL, RECIPIENTS));
    } else if recipients.split_whitespace().count() > MAX_RECIPIENTS {
        report(EntryFault::for_field(texts::MANY_RECIPIENTS, RECIPIENTS));
    }
}

/// True if a channel has a name.
fn is_set(value: &Value) -> bool {
    !value.is_null() && value.text() != Some("")
}

/// In place of an empty channel for what is confidential, the service shows the other one.
fn check_channels(variant: &'static Variant, declared: &Fields, report: Reporter<'_>) {
    for name in &variant.fields {
        let other =
            name.strip_prefix("confidential_").filter(|channel| channel.ends_with("_channel"));
        let is_empty = declared.get(name).is_some_and(|value| !is_set(value));
        let Some(other) = other.filter(|_| is_empty) else { continue };
        match declared.get(other) {
            Some(value) if is_set(value) => {
                report(EntryFault::for_field(texts::EMPTY_BESIDE, name).with_other_field(other));
            }
            Some(_) => {}
            None => report(EntryFault::for_field(texts::EMPTY_ALONE, name).fill("shown", other)),
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
                as_sent, create, faults, fields, live, object, remove, section, target, update,
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
    fn each_integration_has_fields_of_its_own() {
        let of = section("integrations");
        for (declared, secret, expected) in [
            (json!({"slug": "slack", "channel": "#ops", "alert_events": true}), "webhook", None),
            (json!({"slug": "slack", "commit_events": true}), "webhook", Some("unknown-field")),
            (json!({"slug": "slack"}), "token", Some("unknown-field")),
            (json!({"slug": "jira", "url": "https://j"}), "password", Some("missing")),
            (json!({"slug": "jira", "url": "https://j", "username": "a"}), "password", None),
            (json!({"slug": "jira", "url": "https://j", "jira_auth_type": 1}), "password", None),
        ] {
            let found = faults(of, &with_secret(declared.clone(), secret));
            assert_eq!(found.first().map(|(_, code)| *code), expected, "{declared}");
        }
    }

    /// Every name in the data is that of a field, and every field is in the table of projects.
    #[test]
    fn the_names_of_the_data_are_fields() {
        let of_project = section(SECTION);
        for (slug, variant) in of_project.field(SLUG).variants() {
            for name in &variant.fields {
                assert!(of_project.spec(name).is_some(), "{slug}: {name}");
            }
        }
        assert_eq!(of_project.specs().len(), of_project.fields.len());
        let of_group = catalogue::section(Scope::Group, SECTION).unwrap().table();
        assert!(of_group.get("jenkins_url").is_none() && of_group.get("recipients").is_some());
    }

    #[test]
    fn only_its_own_fields_are_read_and_texts_become_values() {
        let raw = json!({
            "slug": "telegram", "active": true, "push_events": true, "commit_events": true,
            "properties": {"room": "@a", "thread": "7", "notify_only_broken_pipelines": "0", "other": 1},
        });
        let read = live(section("integrations"), raw).fields;
        let read = read.raw();
        assert_eq!(
            (&read["thread"], &read["notify_only_broken_pipelines"]),
            (&7.into(), &false.into())
        );
        assert_eq!((&read["room"], &read["push_events"]), (&"@a".into(), &true.into()));
        assert!(!read.contains_key("commit_events") && !read.contains_key("other"));
    }

    #[test]
    fn each_put_is_for_its_own_and_contains_what_is_required() {
        let of = section("integrations");
        let put = |body| INTEGRATION_SET.request().arg("id", 7).arg("slug", "jenkins").fields(body);
        let declared = json!({"slug": "jenkins", "jenkins_url": "https://ci", "project_name": "shop", "push_events": true});
        let declared = with_secret(declared, "password");
        let mut body = declared.clone();
        body.retain(|name, _| name != "slug");
        assert_eq!(as_sent(&create(of, &declared)), as_sent(&[put(body.clone())]));
        let raw = json!({
            "slug": "jenkins", "push_events": false, "merge_requests_events": true,
            "properties": {"jenkins_url": "https://ci", "project_name": "shop", "username": "bot"},
        });
        let edit = update(of, &declared, raw.clone(), &["push_events"]);
        assert_eq!(as_sent(&edit), as_sent(&[put(body)]));
        assert_eq!(edit[0].repeated().count(), 0);
        let delete = INTEGRATION_DELETE.request().arg("id", 7).arg("slug", "jenkins");
        assert_eq!(remove(of, raw), [delete]);
    }

    #[test]
    fn a_webhook_is_a_url() {
        for (url, expected) in
            [("https://chat.example.org/hooks/1", &[][..]), ("chat", &[("webhook", "hook-url")])]
        {
            let declared = fields(json!({"slug": "slack", "webhook": url}));
            assert_eq!(faults(section("integrations"), &declared), expected, "{url}");
        }
    }

    /// True if a PUT says that nothing is inherited.
    #[test]
    fn what_is_declared_is_not_inherited() {
        let declared =
            fields(json!({"slug": "external-wiki", "external_wiki_url": "https://wiki"}));
        let at = |major, minor| DetectedRelease::Known(Release::new(major, minor));
        for (release, expected) in [
            (at(17, 2), None),
            (at(17, 3), Some(false)),
            (DetectedRelease::Hidden, Some(false)),
            (DetectedRelease::NotRequested, Some(false)),
        ] {
            let context = CallContext {
                section: section("integrations"),
                target: &target(),
                names: &kind::Names::default(),
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
    fn an_inherited_one_is_not_removed() {
        let why = |inherited: bool| {
            Integrations.protection_reason(&object(json!({"inherited": inherited})))
        };
        assert!(why(true).is_some() && why(false).is_none());
    }
}
