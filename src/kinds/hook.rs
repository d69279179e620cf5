//! Webhooks of a project (reference 1, 2.9; reference 2, 4.5).
//!
//! The service knows a hook by an id that no manifest can know, and takes two with one URL. So a
//! manifest may give it a name of its own; on the service it is found by its URL, or by one that it
//! had before. Its URL may hold a credential and is never shown whole.

use std::sync::LazyLock;

use schemars::JsonSchema;

use crate::{
    field::{FIELD, Secrecy},
    kind::{self, Fault, Found, Kind, LiveEntry, Routes, Source, Table, Target},
    operation,
    page::Rows,
    planted::Bug,
    schema::{self, TextOrSecret},
    secret::Reference,
    text,
    value::{Fields, Json, Object, Value},
};

/// A webhook: an address that the service calls when something happens in the project.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Hook {
    /// Name for manifests and plans; the service does not store it. When `url` changes, list the
    /// old URL in `previously`: without it the old hook stays, and a new one is created.
    #[schemars(transform = FIELD.local(), length(min = 1, max = 255), example = &"ci")]
    pub name: Option<String>,
    /// URL to call: text, or a reference to a secret if it holds a credential.
    #[schemars(transform = FIELD.secrecy(Secrecy::Address), example = &"https://ci.example.org/events")]
    pub url: TextOrSecret,
    /// URLs that the hook had before. If no hook has the new URL, one with an old URL is changed.
    #[schemars(transform = FIELD.local().secrecy(Secrecy::Address), example = &["https://old.example.org/events"])]
    pub previously: Option<Vec<String>>,
    /// Secret sent in the header `X-Gitlab-Token`. The service never returns it, and resets it when
    /// the URL changes.
    #[schemars(transform = FIELD.write_only().secrecy(Secrecy::Reference))]
    pub token: Option<Reference>,
    /// Whether the receiver's certificate is verified.
    pub enable_ssl_verification: Option<bool>,
    /// Whether it is called for pushes to branches.
    pub push_events: Option<bool>,
    /// The branches whose pushes count: a name or a pattern such as `release/*`. `null` is all of
    /// them.
    #[schemars(transform = FIELD.nullable(), example = &"main")]
    pub push_events_branch_filter: Option<String>,
    /// Whether it is called for pushed tags.
    pub tag_push_events: Option<bool>,
    /// Whether it is called for issues.
    pub issues_events: Option<bool>,
    /// Whether it is called for confidential issues.
    pub confidential_issues_events: Option<bool>,
    /// Whether it is called for merge requests.
    pub merge_requests_events: Option<bool>,
    /// Whether it is called for comments.
    pub note_events: Option<bool>,
    /// Whether it is called for confidential comments.
    pub confidential_note_events: Option<bool>,
    /// Whether it is called for jobs.
    pub job_events: Option<bool>,
    /// Whether it is called for pipelines.
    pub pipeline_events: Option<bool>,
    /// Whether it is called for wiki pages.
    pub wiki_page_events: Option<bool>,
    /// Whether it is called for deployments.
    pub deployment_events: Option<bool>,
    /// Whether it is called for releases.
    pub releases_events: Option<bool>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Hook>()));

/// The section `hooks`.
pub struct Hooks;

impl Kind for Hooks {
    fn section(&self) -> &'static str {
        "hooks"
    }
    fn noun(&self) -> &'static str {
        "hook"
    }
    fn table(&self) -> &'static Table {
        &TABLE
    }
    fn identity(&self) -> &'static [&'static str] {
        &["name", "url"]
    }
    fn source(&self, target: &Target) -> Source {
        Source::List(operation::HOOK_LIST.request().arg("id", target.id()))
    }
    fn routes(&self) -> Option<Routes> {
        Some(Routes {
            create: operation::HOOK_CREATE,
            update: operation::HOOK_UPDATE,
            delete: operation::HOOK_DELETE,
        })
    }
    fn handle(&self) -> (&'static str, &'static str) {
        ("id", "hook_id")
    }

    fn rows(&self) -> Rows {
        Rows::with_id(&["url"])
    }
    fn key(&self, fields: &Object) -> String {
        let text = |name| fields.get(name).and_then(Json::as_str);
        text("name")
            .map(str::to_owned)
            .or_else(|| text("url").map(|url| text::mask_url(url).into_owned()))
            .unwrap_or_default()
    }
    // Its name is of no help there: of two hooks with one URL nobody could say which is which.
    fn identity_on_service(&self) -> &'static [&'static str] {
        &["url"]
    }
    fn key_on_service(&self, fields: &Object) -> String {
        fields.get("url").map(kind::plain_text).unwrap_or_default()
    }
    fn find<'l>(&self, declared: &Fields, _key: &str, live: &'l [LiveEntry]) -> Found<'l> {
        let previously = declared.get("previously").and_then(Value::plain).and_then(Json::as_array);
        let urls = declared
            .get("url")
            .and_then(Value::text)
            .into_iter()
            .chain(previously.into_iter().flatten().filter_map(Json::as_str));
        let at = |url: &str| {
            live.iter()
                .filter(|hook| hook.fields.get("url").and_then(Json::as_str) == Some(url))
                .collect::<Vec<_>>()
        };
        urls.map(at).find(|hooks| !hooks.is_empty()).map_or(Found::None, |hooks| one_of(&hooks))
    }

    // An edit has to carry the URL and resets every flag that it leaves out.
    fn sent_with_every_edit(&self, name: &str) -> bool {
        name == "url"
            || name == "push_events_branch_filter"
            || TABLE.get(name).is_some_and(|spec| spec.schema["type"] == "boolean")
    }
    fn resets(&self, name: &str, changed: &[&str]) -> bool {
        name == "token" && changed.contains(&"url") && !Bug::ForgetToken.is_planted()
    }

    fn check(&self, declared: &Fields, report: &mut dyn FnMut(Fault)) {
        let previously = declared.get("previously").and_then(Value::plain).and_then(Json::as_array);
        let previously = previously
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(|url| ("previously", url));
        let urls = declared
            .get("url")
            .and_then(Value::text)
            .map(|url| ("url", url))
            .into_iter()
            .chain(previously);
        for (field, why) in urls.filter_map(|(field, url)| Some((field, valid_url(url).err()?))) {
            report(Fault {
                code: "hook-url",
                field: Some(field),
                message: format!("the URL of a hook {why}"),
                help: Some("write it as `https://HOST/PATH`".into()),
            });
        }
    }
}

/// The one of several hooks with the same URL: which does not matter if they are equal, and the
/// oldest then stays.
fn one_of<'l>(hooks: &[&'l LiveEntry]) -> Found<'l> {
    let equal = |a: &LiveEntry, b: &LiveEntry| {
        TABLE.specs().iter().all(|spec| a.fields.get(&spec.name) == b.fields.get(&spec.name))
    };
    match hooks.iter().min_by_key(|hook| hook.handle.as_u64()) {
        Some(first) if hooks.iter().all(|hook| equal(hook, first)) => Found::One(first),
        _ => {
            let ids: Vec<_> = hooks.iter().map(|hook| hook.handle.to_string()).collect();
            Found::Ambiguous(format!(
                "the hooks {} have this URL and differ otherwise",
                ids.join(", ")
            ))
        }
    }
}

/// Whether the service takes `url` as the address of a hook: HTTP or HTTPS, with a host, without
/// white space.
fn valid_url(url: &str) -> Result<(), &'static str> {
    let (scheme, rest) = url.split_once("://").ok_or("must start with `http://` or `https://`")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err("must start with `http://` or `https://`");
    }
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("must not have white space");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') { Err("must name a host") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::testing::{create, faults, fields, live, object, said, target, update},
        operation::{HOOK_CREATE, HOOK_DELETE, HOOK_UPDATE},
    };

    const URL: &str = "https://ci.example.org/a";

    fn secret() -> Value {
        Value::Secret(Reference::Env("HOOK".into()))
    }

    #[test]
    fn a_hook_is_created_without_what_only_manifests_know() {
        let mut declared =
            fields(json!({"name": "ci", "url": URL, "previously": [], "push_events": false}));
        declared.insert("token".into(), secret());
        let mut body = fields(json!({"url": URL, "push_events": false}));
        body.insert("token".into(), secret());
        assert_eq!(
            said(&create(&Hooks, &declared)),
            said(&[HOOK_CREATE.request().arg("id", 7).fields(body)])
        );
    }

    #[test]
    fn an_edit_carries_the_url_every_flag_and_the_token_if_it_would_be_forgotten() {
        let raw = json!({
            "id": 3, "url": URL, "push_events": true, "issues_events": true, "confidential_note_events": null,
            "push_events_branch_filter": "main", "created_at": "x",
        });
        let mut declared = fields(json!({"name": "ci", "url": URL, "push_events": false}));
        declared.insert("token".into(), secret());
        let put = |body| HOOK_UPDATE.request().arg("id", 7).arg("hook_id", 3).fields(body);
        let mut body = fields(
            json!({"url": URL, "push_events": false, "issues_events": true, "push_events_branch_filter": "main"}),
        );
        let edit = update(&Hooks, &declared, raw.clone(), &["push_events"]);
        assert_eq!(said(&edit), said(&[put(body.clone())]));
        let repeated: Vec<_> = edit[0].repeated().map(|(name, _)| name).collect();
        assert_eq!(
            repeated,
            ["push_events_branch_filter", "issues_events"],
            "what is declared is not taken from what is there"
        );
        assert!(edit[0].is_sensitive("url") && !edit[0].is_sensitive("issues_events"));

        declared.insert("url".into(), "https://new.example.org".into());
        body.insert("url".into(), "https://new.example.org".into());
        body.insert("token".into(), secret());
        assert_eq!(
            said(&update(&Hooks, &declared, raw.clone(), &["url", "push_events"])),
            said(&[put(body)])
        );
        assert_eq!(
            Hooks.delete(&target(), &live(&Hooks, raw)),
            [HOOK_DELETE.request().arg("id", 7).arg("hook_id", 3)]
        );
    }

    #[test]
    fn every_flag_is_carried() {
        let carried: Vec<_> = TABLE
            .specs()
            .iter()
            .map(|spec| &*spec.name)
            .filter(|name| Hooks.sent_with_every_edit(name))
            .collect();
        let rest: Vec<_> = TABLE
            .specs()
            .iter()
            .map(|spec| &*spec.name)
            .filter(|name| !Hooks.sent_with_every_edit(name))
            .collect();
        assert_eq!(carried.len(), 13 + 2, "{carried:?}");
        assert_eq!(rest, ["name", "previously", "token"]);
    }

    /// The id of the hook that is found among hooks with these ids, URLs and one flag.
    fn found(declared: &Fields, hooks: &[(u64, &str, bool)]) -> Result<Option<u64>, String> {
        let hooks: Vec<_> = hooks
            .iter()
            .map(|(id, url, flag)| live(&Hooks, json!({"id": id, "url": url, "push_events": flag})))
            .collect();
        match Hooks.find(declared, "key", &hooks) {
            Found::None => Ok(None),
            Found::One(hook) => Ok(hook.handle.as_u64()),
            Found::Ambiguous(why) => Err(why),
        }
    }

    #[test]
    fn a_hook_is_found_by_its_url_then_by_its_old_ones() {
        let declared = fields(json!({"name": "ci", "url": "u", "previously": ["p", "q"]}));
        assert_eq!(
            found(&declared, &[(1, "q", true), (2, "p", true), (3, "u", true)]),
            Ok(Some(3))
        );
        assert_eq!(found(&declared, &[(1, "q", true), (2, "p", true)]), Ok(Some(2)));
        assert_eq!(found(&declared, &[(1, "U", true)]), Ok(None));
    }

    #[test]
    fn of_equal_hooks_the_oldest_is_meant_and_of_others_none() {
        let declared = fields(json!({"url": "u"}));
        assert_eq!(
            found(&declared, &[(5, "u", true), (2, "u", true), (1, "v", true)]),
            Ok(Some(2))
        );
        let why = found(&declared, &[(5, "u", true), (2, "u", false)]).unwrap_err();
        assert!(why.contains("5, 2"), "{why}");
    }

    #[test]
    fn a_hook_whose_url_is_not_known_is_found_by_its_old_ones_only() {
        let declared = Fields::from([
            ("url".to_owned(), secret()),
            ("previously".to_owned(), json!(["u"]).into()),
        ]);
        assert_eq!(found(&declared, &[(1, "u", true)]), Ok(Some(1)));
        assert_eq!(found(&declared, &[(1, "env:HOOK", true)]), Ok(None));
    }

    #[test]
    fn a_key_never_holds_a_credential() {
        let key = |fields| Hooks.key(&object(fields));
        assert_eq!(key(json!({"name": "ci", "url": URL})), "ci");
        for (url, shown) in [
            (URL, URL),
            ("env:HOOK", "env:HOOK"),
            ("https://h", "https://h"),
            ("https://u:p@h:8/x", "https://***@h:8/x"),
            ("https://u:p@q@h", "https://***@h"),
            ("https://h/x?token=s&flag&b=c=d#f", "https://h/x?token=***&***&b=***#***"),
            ("https://h/a@b", "https://h/a@b"),
        ] {
            assert_eq!(key(json!({"url": url})), shown);
        }
    }

    #[test]
    fn a_url_has_to_be_one() {
        for (url, valid) in [
            ("https://h/x", true),
            ("HTTP://h", true),
            ("https://u:p@h", true),
            ("ftp://h", false),
            ("h/x", false),
            ("https://", false),
            ("https:///x", false),
            ("https://:80/", false),
            ("https://u@/x", false),
            ("https://h/a b", false),
            ("https://h/\n", false),
        ] {
            let expected: &[_] = if valid { &[] } else { &[("url", "hook-url")] };
            assert_eq!(faults(&Hooks, &fields(json!({"url": url}))), expected, "{url}");
        }
        assert_eq!(
            faults(&Hooks, &fields(json!({"url": URL, "previously": ["x"]}))),
            [("previously", "hook-url")]
        );
    }
}
