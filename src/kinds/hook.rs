//! Webhooks of a project (reference 1, 2.9; reference 2, 4.5).
//!
//! The service knows a hook by an id that no manifest can know, and takes two with one URL. So a manifest may give it a name of its own;
//! on the service it is found by its URL, or by one that it had before. Its URL may hold a credential and is never shown whole.

use std::sync::LazyLock;

use schemars::JsonSchema;

use crate::{
    field::{FIELD, Secrecy},
    kind::{self, Fault, Found, Kind, LiveEntry, Routes, Source, Table, Target},
    operation,
    schema::{self, TextOrSecret},
    secret::Reference,
    value::{Fields, Json, Object, Value},
};

/// A webhook: an address that the service calls when something happens in the project.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Hook {
    /// A name for manifests and plans only; the service does not know it. With it, a changed `url` is an edit.
    #[schemars(transform = FIELD.local(), length(min = 1, max = 255), example = &"ci")]
    pub name: Option<String>,
    /// The address: text, or a reference to a secret if it holds a credential.
    #[schemars(transform = FIELD.secrecy(Secrecy::Address), example = &"https://ci.example.org/events")]
    pub url: TextOrSecret,
    /// Addresses that the hook had before; it is found by them if none has the new one.
    #[schemars(transform = FIELD.local(), example = &["https://old.example.org/events"])]
    pub previously: Option<Vec<String>>,
    /// What the receiver knows the service by. The service never returns it, and forgets it when the URL changes.
    #[schemars(transform = FIELD.write_only().secrecy(Secrecy::Reference))]
    pub token: Option<Reference>,
    /// Whether the receiver's certificate is verified.
    pub enable_ssl_verification: Option<bool>,
    /// Whether it is called for pushes to branches.
    pub push_events: Option<bool>,
    /// The branches whose pushes count: a name or a pattern such as `release/*`. `null` is all of them.
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
        Some(Routes { create: operation::HOOK_CREATE, update: operation::HOOK_UPDATE, delete: operation::HOOK_DELETE })
    }
    fn handle(&self) -> (&'static str, &'static str) {
        ("id", "hook_id")
    }

    fn key(&self, fields: &Object) -> String {
        let text = |name| fields.get(name).and_then(Json::as_str);
        text("name").map(str::to_owned).or_else(|| text("url").map(mask_url)).unwrap_or_default()
    }
    fn find<'l>(&self, declared: &Fields, _key: &str, live: &'l [LiveEntry]) -> Found<'l> {
        let previously = declared.get("previously").and_then(Value::plain).and_then(Json::as_array);
        let urls = declared.get("url").and_then(Value::text).into_iter().chain(previously.into_iter().flatten().filter_map(Json::as_str));
        let at = |url: &str| live.iter().filter(|hook| hook.fields.get("url").and_then(Json::as_str) == Some(url)).collect::<Vec<_>>();
        match urls.map(at).find(|hooks| !hooks.is_empty()) {
            Some(hooks) => one_of(&hooks),
            // Creating it all the same could double a hook that is there.
            None if matches!(declared.get("url"), Some(Value::Secret(_))) && !live.is_empty() => {
                Found::Ambiguous("its `url` is a secret that is not available, so any live hook may be the one".into())
            }
            None => Found::None,
        }
    }

    // An edit has to carry the URL and resets every flag that it leaves out.
    fn carried(&self, name: &str) -> bool {
        name == "url" || name == "push_events_branch_filter" || TABLE.get(name).is_some_and(|spec| spec.schema["type"] == "boolean")
    }
    fn forgets(&self, name: &str, changed: &[&str]) -> bool {
        name == "token" && changed.contains(&"url")
    }

    fn check(&self, declared: &Fields, report: &mut dyn FnMut(Fault)) {
        kind::check_own_token(declared, &TABLE, report);
        let previously = declared.get("previously").and_then(Value::plain).and_then(Json::as_array);
        let previously = previously.into_iter().flatten().filter_map(Json::as_str).map(|url| ("previously", url));
        let urls = declared.get("url").and_then(Value::text).map(|url| ("url", url)).into_iter().chain(previously);
        for (field, why) in urls.filter_map(|(field, url)| Some((field, valid_url(url).err()?))) {
            report(Fault {
                code: "hook-url",
                field: Some(field),
                message: format!("a hook's URL {why}"),
                help: Some("write it as `https://HOST/PATH`".into()),
            });
        }
    }
}

/// The one of several hooks with the same URL: which does not matter if they are equal, and the oldest then stays.
fn one_of<'l>(hooks: &[&'l LiveEntry]) -> Found<'l> {
    let first = hooks.iter().min_by_key(|hook| hook.handle.as_u64());
    match first {
        Some(first) if hooks.iter().all(|hook| hook.fields == first.fields) => Found::One(first),
        _ => {
            let ids: Vec<_> = hooks.iter().map(|hook| hook.handle.to_string()).collect();
            Found::Ambiguous(format!("the hooks {} have this URL and differ otherwise", ids.join(", ")))
        }
    }
}

/// Whether the service takes `url` as the address of a hook: HTTP or HTTPS, with a host, without white space.
fn valid_url(url: &str) -> Result<(), &'static str> {
    let (scheme, rest) = url.split_once("://").ok_or("starts with `https://` or `http://`")?;
    if !["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Err("starts with `https://` or `http://`");
    }
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("holds no white space");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') { Err("names a host") } else { Ok(()) }
}

/// `url` without what may be a credential: user information, the values of the query, and the fragment.
fn mask_url(url: &str) -> String {
    let (url, fragment) = url.split_once('#').map_or((url, ""), |(url, _)| (url, "#***"));
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let mask = |part: &str| part.split_once('=').map_or_else(|| "***".to_owned(), |(name, _)| format!("{name}=***"));
    let query = query.map(|query| format!("?{}", query.split('&').map(mask).collect::<Vec<_>>().join("&"))).unwrap_or_default();
    let (scheme, rest) = base.split_once("://").map_or(("", base), |(scheme, _)| base.split_at(scheme.len() + 3));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = authority.rsplit_once('@').map_or_else(|| authority.to_owned(), |(_, host)| format!("***@{host}"));
    format!("{scheme}{authority}{path}{query}{fragment}")
}
