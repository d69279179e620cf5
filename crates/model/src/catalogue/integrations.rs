//! Integrations of a project or group, by slug. Which ones and which fields is data
//! (`integration.yaml`).
//!
//! The service keeps a row for each integration that was ever set up: one that is not active counts as
//! absent. A PUT creates, edits and activates it, and must contain its required fields, also the
//! secrets. The list shows active ones without their properties, so each declared one is read alone.
//!
//! Below a group, an integration of the group is inherited. Such a one is not the project's own: a
//! PUT without `use_inherited_settings: false` changes nothing in it, and a DELETE only lasts until
//! the next PUT of the group.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use serde::Deserialize;
use serde_json::json;

use super::{hooks, prelude::*};
use crate::{
    field::Available,
    kind::{Spec, Table, Variant, forms},
    operation::Body,
    release::{Known, Release},
    yaml,
};

/// The name of the rules.
pub(super) const NAME: &str = "integrations";

/// The fields of integrations of projects, which are all that there are.
static OF_PROJECT: LazyLock<Table> = LazyLock::new(|| table(Scope::Project));

const SLUG: &str = "slug";
/// The most addresses that the service writes to.
const MOST_RECIPIENTS: usize = 750;
/// The field of the addresses that it writes to.
const RECIPIENTS: &str = "recipients";
/// The field of a secret URL to call.
const WEBHOOK: &str = "webhook";
/// The release that added group integrations.
const OF_GROUPS_SINCE: Release = Release::new(17, 9);
/// The release that added the parameter [`INHERITS`].
const INHERITS_SINCE: Release = Release::new(17, 3);
/// The parameter that makes an inherited integration its own, or inherits it again.
const INHERITS: &str = "use_inherited_settings";

/// The content of the data file.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), deny_unknown_fields)]
struct Data {
    entry: Field,
    slug: Field,
    integrations: Vec<Integration>,
    fields: Vec<Field>,
    events: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Integration {
    slug: &'static str,
    /// What it is, in a sentence.
    about: &'static str,
    /// The only scope that has it.
    only: Option<Scope>,
    /// What it is, if a project can have only one of these.
    only_one: Option<&'static str>,
    /// The fields that each request must contain.
    required: Vec<&'static str>,
    #[serde(default)]
    optional: Vec<&'static str>,
    #[serde(default)]
    channels: Vec<&'static str>,
    #[serde(default)]
    events: Vec<&'static str>,
}

impl Integration {
    fn is_in(&self, scope: Scope) -> bool {
        self.only.is_none_or(|only| only == scope)
    }

    /// Its fields in `scope`.
    fn variant(&'static self, scope: Scope) -> Variant {
        let named = [SLUG].iter().chain(&self.required).chain(&self.optional);
        let channels = self.channels.iter().map(|name| format!("{name}_channel"));
        let events = self.events.iter().map(|name| format!("{name}_events"));
        Variant {
            fields: named.map(ToString::to_string).chain(channels).chain(events).collect(),
            needed: &self.required,
            only_one: self.only_one.filter(|_| scope == Scope::Project),
        }
    }
}

/// An event, and the channel for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    name: &'static str,
    channel: Option<&'static str>,
    about: &'static str,
}

static DATA: LazyLock<Data> =
    LazyLock::new(|| yaml::built_in!("catalogue/tables/integration_fields"));

type Variants = BTreeMap<&'static str, Variant>;

/// The field for the user, which the service needs for Jira unless a token is used.
fn user(slug: &str) -> Option<&'static &'static str> {
    (slug == "jira").then_some(&"username")
}

/// The slugs of `variants` that have the field `name`, in the order of the data.
fn slugs<'v>(
    variants: &'v Variants,
    name: &'v str,
) -> impl Iterator<Item = (&'static str, &'v Variant)> + Clone {
    let known = DATA.integrations.iter().filter_map(|of| Some((of.slug, variants.get(of.slug)?)));
    known.filter(move |(_, variant)| variant.fields.contains(name))
}

/// The fields of all integrations of `scope`.
pub(super) fn table(scope: Scope) -> Table {
    let own = || DATA.integrations.iter().filter(|of| of.is_in(scope));
    let variants: Variants = own().map(|of| (of.slug, of.variant(scope))).collect();
    let word = |of: &Integration| {
        let about = format!("{} Needs {}.", of.about, text::listed(&of.required)).leak();
        Word { word: of.slug, about, since: None, until: None }
    };
    let slug = Field { words: own().map(word).collect(), ..DATA.slug.clone() };
    let channel = |event: &Event| Field {
        name: format!("{}_channel", event.channel.unwrap_or(event.name)).leak(),
        about: format!("The channel for {}, if not `channel`.", event.about).leak(),
        examples: vec!["#ops".into(), "#dev".into()],
        nullable: true,
        ..Field::default()
    };
    let event = |event: &Event| Field {
        name: format!("{}_events", event.name).leak(),
        about: format!("Whether {} trigger it.", event.about).leak(),
        value_type: ValueType::Boolean,
        ..Field::default()
    };
    let described = DATA.fields.iter().filter(|field| field.is_in(scope)).cloned();
    let events = DATA.events.iter();
    let all = described.chain(events.clone().map(channel)).chain(events.map(event));
    let mut names = BTreeSet::new();
    let all = all.filter(|field| names.insert(field.name));
    let fields = all.filter_map(|field| of_some(field, &variants));
    let since = (scope == Scope::Group).then_some(OF_GROUPS_SINCE);
    let all = std::iter::once(slug).chain(fields);
    let keys = all.map(|field| newer(field, since)).collect();
    let entry = Field { keys, ..DATA.entry.clone() };
    let mut table = Table::new(entry.complete());
    table.variants = variants;
    let beside =
        table.specs().iter().filter_map(|spec| Some((spec.name, beside(&table, spec.name)?)));
    table.beside = beside.collect();
    table
}

/// The other fields of an example of an integration with the field `name`.
fn beside(table: &Table, name: &str) -> Option<Object> {
    let wanted = if name == SLUG { "external_wiki_url" } else { name };
    let is_secret = |name: &str| table.field(name).secrecy() == Secrecy::Reference;
    let secrets = |(_, of): &(&str, &Variant)| of.needed.iter().filter(|it| is_secret(it)).count();
    // Its recipients are channels, and the examples are email addresses.
    let takes_example = |(slug, _): &(&str, _)| (*slug, wanted) != ("irker", RECIPIENTS);
    let fitting = slugs(&table.variants, wanted).filter(takes_example);
    let (slug, variant) = fitting.min_by_key(secrets)?;
    let password = (slug == "jenkins" && wanted == "username").then_some(&"password");
    let needed = variant.needed.iter().chain(user(slug)).chain(password).map(|name| {
        let value = match &table.get(name)?.schema["examples"][0] {
            _ if is_secret(name) => json!({"env": name.to_uppercase()}),
            _ if (slug, *name) == ("irker", RECIPIENTS) => "irc://a.example/b".into(),
            example => example.clone(),
        };
        Some(((*name).to_owned(), value))
    });
    Some(std::iter::once((SLUG.to_owned(), slug.into())).chain(needed.flatten()).collect())
}

/// The field, which has existed at most since `since`.
fn newer(field: Field, since: Option<Release>) -> Field {
    let since = field.available.since.max(since);
    Field { available: Available { since, ..field.available }, ..field }
}

/// The field, if one of the `variants` has it.
fn of_some(field: Field, variants: &Variants) -> Option<Field> {
    let all = slugs(variants, field.name);
    all.clone().next()?;
    let needing = all.clone().filter(|(_, of)| of.needed.contains(&field.name));
    let others = all.clone().filter(|(_, of)| !of.needed.contains(&field.name));
    let named = |slugs: Vec<&str>, what: &str| match slugs[..] {
        [] => String::new(),
        _ => format!(" {what} {}.", text::listed(&slugs)),
    };
    let needing = named(needing.map(|(slug, _)| slug).collect(), "Required for");
    let others = named(others.map(|(slug, _)| slug).collect(), "For");
    let about = [field.about, &needing, &others].concat().leak();
    Some(Field { about, ..field })
}

pub(super) struct Integrations;

impl Rules for Integrations {
    // Some values are texts, as they were sent long ago.
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

    fn protected(&self, raw: &Object) -> Option<&'static str> {
        let is_inherited = raw.get("inherited") == Some(&Json::Bool(true));
        is_inherited.then_some("inherited from a group above or from the service")
    }

    fn check(&self, declared: &Fields, _written: bool, report: &mut dyn FnMut(Fault)) {
        let Some(slug) = declared.get(SLUG).and_then(Value::text) else { return };
        let Some(variant) = OF_PROJECT.variants.get(slug) else { return };
        // A value that is wrong may be meant as 1.
        let with_token = declared.get("jira_auth_type").and_then(Value::plain);
        let with_token = with_token.is_some_and(|kind| *kind != 0);
        let user = user(slug).filter(|_| !with_token);
        let needed = variant.needed.iter().chain(user);
        let missing: Vec<_> = needed.filter(|name| !declared.contains_key(name)).collect();
        let specs = OF_PROJECT.specs().iter().filter(|spec| declared.contains_key(spec.name));
        let strange: Vec<_> = specs.filter(|spec| !variant.fields.contains(spec.name)).collect();
        let of = |texts, field| Fault::of(texts, field).fill("slug", slug);
        if let ([name], [spec]) = (&*missing, &*strange) {
            return report(of(texts::FIELD_IN_PLACE, spec.name).fill("name", name));
        }
        for name in missing {
            let is_secret =
                OF_PROJECT.get(name).is_some_and(|of| of.field.secrecy() != Secrecy::Open);
            let value = if is_secret { "{env: NAME}" } else { "..." };
            report(of(texts::FIELD_NEEDED, "").fill("name", name).fill("value", value));
        }
        for spec in strange {
            let others = slugs(&OF_PROJECT.variants, spec.name).map(|(slug, _)| slug);
            let others = text::listed(&others.collect::<Vec<_>>());
            report(of(texts::FIELD_OF_OTHERS, spec.name).fill("others", &others));
        }
        check_recipients(slug, variant, declared, report);
        // Its value is known in a plan, if the environment has it.
        if let Some(url) = declared.get(WEBHOOK).and_then(Value::text) {
            hooks::check_url("the URL of a webhook", WEBHOOK, url, report);
        }
        check_channels(variant, declared, report);
    }

    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let mut calls = job.plain()?;
        let is_old = matches!(job.release, Known::Is(release) if release < INHERITS_SINCE);
        let of_group = job.section.home.scope == Scope::Group;
        for call in &mut calls {
            if let Body::Json(fields) = &mut call.request.body
                && !is_old
            {
                fields.insert(INHERITS.to_owned(), Json::Bool(false).into());
            }
            call.side_effect = of_group.then_some(match job.act {
                Act::Remove(_) => BELOW_STAYS,
                _ => BELOW_FOLLOWS,
            });
        }
        Ok(calls)
    }
}

fn check_recipients(
    slug: &str,
    variant: &Variant,
    declared: &Fields,
    report: &mut dyn FnMut(Fault),
) {
    let recipients = declared.get(RECIPIENTS).filter(|_| variant.fields.contains(RECIPIENTS));
    let recipients = recipients.and_then(Value::text).unwrap_or_default();
    if slug == "irker" && recipients.contains('@') {
        report(Fault::of(texts::EMAIL_FOR_CHANNEL, RECIPIENTS));
    } else if recipients.split_whitespace().count() > MOST_RECIPIENTS {
        report(Fault::of(texts::MANY_RECIPIENTS, RECIPIENTS));
    }
}

/// In place of an empty channel for what is confidential, the service shows the other one.
fn check_channels(variant: &'static Variant, declared: &Fields, report: &mut dyn FnMut(Fault)) {
    let is_set = |value: &Value| !value.is_null() && value.text() != Some("");
    for name in &variant.fields {
        let other = name.strip_prefix("confidential_").filter(|it| it.ends_with("_channel"));
        let is_empty = declared.get(name).is_some_and(|value| !is_set(value));
        let Some(other) = other.filter(|_| is_empty) else { continue };
        match declared.get(other) {
            Some(value) if is_set(value) => {
                report(Fault::of(texts::EMPTY_BESIDE, name).with(other));
            }
            Some(_) => {}
            None => report(Fault::of(texts::EMPTY_ALONE, name).fill("shown", other)),
        }
    }
}

const BELOW_FOLLOWS: &str =
    "it also changes this integration in all groups and projects below that do not have their own";
const BELOW_STAYS: &str =
    "it stays active in the groups and projects below that inherit it; remove it there too";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
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
        for (slug, variant) in &OF_PROJECT.variants {
            for name in &variant.fields {
                assert!(OF_PROJECT.get(name).is_some(), "{slug}: {name}");
            }
        }
        let known = DATA.fields.len() + 2 * DATA.events.len();
        // No integration has a channel for commits.
        assert_eq!(OF_PROJECT.specs().len(), known);
        let of_group = table(Scope::Group);
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

    /// Whether a PUT says that nothing is inherited.
    #[test]
    fn what_is_declared_is_not_inherited() {
        let declared =
            fields(json!({"slug": "external-wiki", "external_wiki_url": "https://wiki"}));
        let at = |major, minor| Known::Is(Release::new(major, minor));
        for (release, expected) in [
            (at(17, 2), None),
            (at(17, 3), Some(false)),
            (Known::Hidden, Some(false)),
            (Known::NotAsked, Some(false)),
        ] {
            let job = Job {
                section: section("integrations"),
                target: &target(),
                names: &kind::Names::default(),
                release,
                is_alone: true,
                act: Act::Create(&declared),
            };
            let calls = Integrations.calls(&job).unwrap();
            let body = calls[0].request.body_fields().unwrap();
            assert_eq!(body.get(INHERITS).and_then(Value::flag), expected, "{release:?}");
        }
    }

    #[test]
    fn an_inherited_one_is_not_removed() {
        let why =
            |inherited: bool| Integrations.protected(&object(json!({"inherited": inherited})));
        assert!(why(true).is_some() && why(false).is_none());
    }
}
