//! Everything that `apply` sends is in the plan that was shown, in JSON and in the terminal.
//!
//! Every run of [`World`](crate::world::World) is checked for this. A request that writes is one of
//! the calls of a step. Each field of its body is listed with that call, and is one of:
//!
//! - a change of the step, which has a line in the terminal;
//! - named in the line of the step: the path of a container, the identity of an entry;
//! - repeated because the service would reset it, with its live value. It has no line in the
//!   terminal, because nothing changes.
//!
//! A request without a body does what the line of the step shows, or a note names its effect.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use serde_json::{Map, Value as Json, json};
use undrift::{
    api::{EncodedBody, SendError, Transport, WireRequest, WireResponse},
    catalogue,
    field::Scope,
    kind::Section,
    operation::Method,
    plan::Plan,
    report::{
        Canvas, ReportedRun, TextStyle,
        json::{JsonReport, PlanContent, ReportKind},
        terminal,
    },
    sandbox::Profile,
    secret::Secrets,
};

use crate::world::{World, project, seed};

/// Names in the line of a step: of the container, and of the object.
const NAMING_FIELDS: &[&str] = &[
    "path",
    "name",
    "namespace_id",
    "parent_id",
    "namespace",
    "group_id",
    "new_name",
    "target_namespace",
];

/// Fields that are sent although no manifest declares them, because their page documents this
/// default.
const DEFAULT_FIELDS: &[(&str, &str)] = &[("rule_type", "regular")];

/// Fields with a single level of a rule, each with its list in manifests.
const LEVEL_LISTS: &[(&str, &str)] = &[
    ("push_access_level", "allowed_to_push"),
    ("merge_access_level", "allowed_to_merge"),
    ("unprotect_access_level", "allowed_to_unprotect"),
    ("create_access_level", "allowed_to_create"),
];

/// Requests without a body that do what a field declares, each with that field.
const SWITCH_CALLS: &[(&str, &str)] = &[
    ("archive", "archived"),
    ("unarchive", "archived"),
    ("restore", "state"),
    ("transfer", "path"),
    ("fork", "fork_of"),
    ("import_project_members", "members_from"),
    ("override", "override"),
];

/// Marks the reads of a [`SnapshotRecorder`].
const READ_MARK: &str = "recorder=looks";

/// The read of `target` by a [`SnapshotRecorder`].
pub(crate) fn look(target: &str) -> String {
    let mark = if target.contains('?') { '&' } else { '?' };
    format!("{target}{mark}{READ_MARK}")
}

/// True if a line of the request log is a read of a [`SnapshotRecorder`].
pub(crate) fn is_recorder_read(request: &str) -> bool {
    request.ends_with(READ_MARK)
}

/// A request that wrote.
#[derive(Clone, Debug)]
pub(crate) struct SentWrite {
    method: Method,
    target: String,
    body: Map<String, Json>,
    /// The target before the write, as the service showed it.
    before: Json,
}

/// Records the writes sent through it, and the state before each.
pub(crate) struct Recorder {
    pub(crate) inner: Arc<dyn Transport>,
    /// The transport to the service without faults.
    pub(crate) service: Arc<dyn Transport>,
    pub(crate) sent: Arc<Mutex<Vec<SentWrite>>>,
    pub(crate) ids: Arc<Mutex<Ids>>,
}

/// The ids of containers by path, and of entries by name, encoded as in requests.
pub(crate) type Ids = BTreeSet<(String, u64)>;

/// The path and the id of the container in `shown`.
pub(crate) fn container_id(shown: &Json) -> Option<(String, u64)> {
    let path = shown["path_with_namespace"].as_str().or(shown["full_path"].as_str())?;
    Some((path.replace('/', "%2F").to_lowercase(), shown["id"].as_u64()?))
}

/// The name and the id of the entry `shown`.
fn entry_id(shown: &Json) -> Option<(String, u64)> {
    let name = ["description", "title", "name"].iter().find_map(|name| shown[*name].as_str())?;
    Some((name.replace(' ', "%20").replace('/', "%2F").to_lowercase(), shown["id"].as_u64()?))
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Recorder")
    }
}

impl Recorder {
    async fn look(&self, like: &WireRequest, target: &str) -> Json {
        let look = WireRequest {
            method: Method::Get,
            target: look(target),
            body: EncodedBody::Empty,
            if_unmodified_since: None,
            ..like.clone()
        };
        let response = self.service.send(look).await.ok().filter(|response| response.status == 200);
        let body = response.and_then(|response| response.body.ok());
        body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default()
    }

    /// The present object at `request`'s target.
    async fn read_before(&self, request: &WireRequest) -> Json {
        // A new container did not exist before, and the list of all is long.
        let list_routes = ["/projects", "/groups"];
        if request.method == Method::Post && list_routes.contains(&&*request.target) {
            return Json::Null;
        }
        // Only its container shows a share.
        match request.target.split_once("/share/") {
            Some((container, group)) => {
                let shares = self.look(request, container).await["shared_with_groups"].take();
                let mut shares = shares.as_array().cloned().unwrap_or_default().into_iter();
                shares
                    .find(|share| share["group_id"].as_u64() == group.parse().ok())
                    .unwrap_or_default()
            }
            None => self.look(request, &request.target).await,
        }
    }
}

impl Transport for Recorder {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(async move {
            if request.method != Method::Get {
                let body = match &request.body {
                    EncodedBody::Empty => Map::new(),
                    EncodedBody::Json(text) => serde_json::from_slice(text).unwrap(),
                    EncodedBody::Form(parts) => {
                        parts.iter().map(|part| (part.name.clone(), Json::Null)).collect()
                    }
                };
                let before = self.read_before(&request).await;
                let (method, target) = (request.method, request.target.clone());
                let sent = SentWrite { method, target, body, before };
                self.sent.lock().unwrap().push(sent);
            }
            let response = self.inner.send(request).await?;
            let body =
                response.body.as_ref().ok().and_then(|body| serde_json::from_slice(body).ok());
            let rows = body.as_ref().and_then(Json::as_array).into_iter().flatten();
            let found = rows
                .chain(&body)
                .flat_map(|shown| [container_id(shown), entry_id(shown)])
                .flatten();
            self.ids.lock().unwrap().extend(found);
            Ok(response)
        })
    }
}

/// A step as it was shown.
struct ShownStep<'r> {
    json: &'r Json,
    /// The first words of its lines in the terminal.
    lines: &'r [String],
    is_noted: bool,
    /// The ids of containers that the plan names by path, encoded as in requests.
    ids: &'r Ids,
}

/// Asserts that everything in `sent` is in `plan`. `ids` are those of containers named by path.
pub(crate) fn assert_shown(plan: &Plan, secrets: &Secrets, ids: &Ids, sent: &[SentWrite]) {
    let run = ReportedRun {
        target: "https://service.example".into(),
        caller: "root".into(),
        sandbox: false,
        rehearsed: Vec::new(),
        snapshot: None,
        token: None,
    };
    let json = JsonReport::finished(ReportKind::Plan, 2, PlanContent::new(&run, plan))
        .to_text(secrets)
        .unwrap();
    let json: Json = serde_json::from_str(&json).unwrap();
    let style = TextStyle { is_full: true, ..TextStyle::default() };
    let text = terminal::render_plan(Canvas::new(style, secrets), plan, &run, ReportKind::Plan);
    let blocks = parse_blocks(&text);
    let is_noted = |step: &Json| {
        let notes = json["notes"].as_array().into_iter().flatten();
        let is_besides = |note: &&Json| note["reason"]["is"] == "besides";
        notes.filter(is_besides).any(|note| note["address"]["full"] == step["address"]["full"])
    };
    let no_lines = Vec::new();
    let steps = json["steps"].as_array().unwrap().iter().map(|step| ShownStep {
        json: step,
        lines: blocks.get(&step_head(step)).unwrap_or(&no_lines),
        is_noted: is_noted(step),
        ids,
    });
    let steps: Vec<_> = steps.collect();
    for request in sent {
        let objections =
            steps.iter().map(|step| step.check_request(request, sent)).collect::<Vec<_>>();
        assert!(
            objections.iter().any(Result::is_ok),
            "{} {} {:?} is not shown: {:#?}\n{text}\n{json:#}",
            request.method,
            request.target,
            request.body.keys(),
            objections.into_iter().filter_map(Result::err).flatten().collect::<Vec<_>>()
        );
    }
}

/// The container and the object in the head of a step in the terminal.
fn step_head(step: &Json) -> (String, String) {
    let address = &step["address"];
    let text = |name: &str| address[name].as_str().map(str::to_owned);
    let object = match (text("section"), text("entry")) {
        (None, _) => step["scope"].as_str().unwrap().to_owned(),
        (Some(section), None) => section,
        (Some(section), Some(entry)) => format!("{section}/{entry}"),
    };
    (text("path").unwrap(), object)
}

/// The first words of each step's lines.
fn parse_blocks(text: &str) -> BTreeMap<(String, String), Vec<String>> {
    let mut blocks = BTreeMap::<_, Vec<String>>::new();
    let (mut container, mut object) = (String::new(), String::new());
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match (indent, line.trim_start().split_at_checked(2)) {
            (0, _) => container = line.to_owned(),
            (2, Some(("+ " | "~ " | "- ", head))) => {
                object = head.split("  # ").next().unwrap_or_default().to_owned();
                blocks.entry((container.clone(), object.clone())).or_default();
            }
            (6, _) => {
                let word = line.split_whitespace().next().unwrap_or_default().to_owned();
                blocks.entry((container.clone(), object.clone())).or_default().push(word);
            }
            _ => {}
        }
    }
    blocks
}

impl ShownStep<'_> {
    /// The part of `request` that this step does not show; `None` if it belongs to another step.
    fn check_request(&self, request: &SentWrite, all: &[SentWrite]) -> Result<(), Option<String>> {
        let calls = self.json["calls"].as_array().unwrap();
        let is_to = |call: &Json, request: &SentWrite| {
            call["method"] == request.method.as_str()
                && self.is_same(call["path"].as_str().unwrap(), &request.target)
        };
        let fields = |call: &Json| call["fields"].as_array().cloned().unwrap_or_default();
        // The object of a possible create may exist, and is edited then.
        let is_it = |call: &&Json| {
            let entry = request.target.rsplit_once('/').map(|(collection, _)| collection);
            is_to(call, request)
                || (self.json["possible"].is_string()
                    && call["method"] == "POST"
                    && entry.is_some_and(|of| self.is_same(call["path"].as_str().unwrap(), of)))
        };
        let carries = |call: &&Json| {
            let is_listed = |name: &String| fields(call).iter().any(|field| field == name);
            !is_to(call, request) || request.body.keys().all(is_listed)
        };
        if !calls.iter().any(|call| is_it(&call)) {
            return Err(None);
        }
        if !calls.iter().filter(is_it).any(|call| carries(&call)) {
            return Err(Some(format!("{} lists less", self.json["address"]["full"])));
        }
        if request.body.is_empty()
            && request.method != Method::Delete
            && !self.is_effect_shown(request)
        {
            return Err(Some("neither a line nor a note tells what it does".to_owned()));
        }
        // A replacement adds the object with its undeclared fields.
        let mut removals = calls.iter().filter(|call| call["method"] == "DELETE");
        let removed = removals.find_map(|call| all.iter().rfind(|other| is_to(call, other)));
        let before = match removed {
            Some(removed) if request.method == Method::Post => &removed.before,
            _ => &request.before,
        };
        let hidden =
            request.body.iter().find(|(name, value)| !self.is_value_shown(name, value, before));
        hidden.map_or(Ok(()), |(name, value)| Err(Some(format!("{name}: {value}, now {before}"))))
    }

    /// True if a request went to the planned target. The plan names containers by path that were
    /// still to be created.
    fn is_same(&self, planned: &str, sent: &str) -> bool {
        let is_id = |planned: &str, sent: &str| {
            sent.parse().is_ok_and(|id| self.ids.contains(&(planned.to_lowercase(), id)))
        };
        let mut segments = planned.split('/').zip(sent.split('/'));
        planned.split('/').count() == sent.split('/').count()
            && segments.all(|(planned, sent)| planned == sent || is_id(planned, sent))
    }

    /// True if a line or a note shows the effect of a request without a body.
    fn is_effect_shown(&self, request: &SentWrite) -> bool {
        let act = |name: &str| request.target.split('/').skip(3).any(|segment| segment == name);
        let mut fields = SWITCH_CALLS.iter().filter(|(name, _)| act(name)).map(|(_, field)| *field);
        self.is_noted || fields.any(|field| self.is_change_shown(field))
    }

    /// True if a line in the terminal, and a change in JSON, show the new value of `field`.
    fn is_change_shown(&self, field: &str) -> bool {
        let changes = self.json["changes"].as_array().unwrap();
        let is_line = |line: &String| {
            line == field || line.split_once('.').is_some_and(|(whole, _)| whole == field)
        };
        changes.iter().any(|change| change["field"] == field) && self.lines.iter().any(is_line)
    }

    /// True if `value` is shown, names the object of the step, or is its value in `before`.
    fn is_value_shown(&self, sent: &str, value: &Json, before: &Json) -> bool {
        let name = LEVEL_LISTS.iter().find(|(own, _)| *own == sent).map_or(&sent, |(_, list)| list);
        let (sections, is_container) = self.sections();
        // An edit renames under another name.
        let renamed =
            sections.iter().flat_map(|of| of.identity.iter().map(move |name| (of, *name)));
        let mut renamed = renamed
            .filter(|(of, name)| of.renaming_field(name).is_some_and(|field| field.name == sent));
        let name = renamed.next().map_or(*name, |(_, name)| name);
        if (is_container && NAMING_FIELDS.contains(&sent))
            || DEFAULT_FIELDS.iter().any(|(name, said)| *name == sent && value == said)
            // A key below `extra:`, which no table has.
            || (sections.iter().all(|of| of.table().get(sent).is_none()) && self.is_change_shown(sent))
            || (sent == "applies_to_all_protected_branches" && self.is_noted)
            // A declared value is not inherited.
            || (sent == "use_inherited_settings" && value == false)
        {
            return true;
        }
        let specs = sections.iter().flat_map(|of| of.table().specs().iter().map(move |s| (of, s)));
        let mut fields = specs.filter(|(_, spec)| spec.field.sent_name() == name);
        fields.any(|(section, spec)| {
            let live = spec.field.live_name();
            let is_named = section.identity.contains(&spec.name)
                && (self.json["action"] != "update" || self.json["replaces"] == true)
                && self.json["address"]["entry"].is_string();
            self.is_change_shown(spec.name)
                || is_named
                || live.zip(before.as_object()).is_some_and(|(live, before)| {
                    let before = section.flatten_detail(before);
                    let now = before.get(live).unwrap_or(&Json::Null);
                    let is_nested = spec.field.is_nested();
                    plain(if is_nested { &now["value"] } else { now }) == plain(value)
                })
        })
    }

    /// The sections whose fields its requests send, and whether it concerns a container itself.
    fn sections(&self) -> (Vec<Section>, bool) {
        let scope = match self.json["scope"].as_str() {
            Some("group") => Scope::Group,
            _ => Scope::Project,
        };
        match self.json["address"]["section"].as_str() {
            Some(name) => (Vec::from_iter(catalogue::find_section(scope, name)), false),
            None => {
                let with = ["settings", "fork_of"].map(|name| catalogue::find_section(scope, name));
                let own = catalogue::container(scope).0;
                (std::iter::once(own).chain(with.into_iter().flatten()).collect(), true)
            }
        }
    }
}

/// A value for comparison: names become ids, and unset becomes null.
fn plain(value: &Json) -> Json {
    match value {
        Json::Bool(false) => Json::Null,
        Json::String(text) if text.is_empty() => Json::Null,
        Json::Array(items) if items.is_empty() => Json::Null,
        Json::Array(items) => {
            let id = |item: &Json| item.get("id").cloned().unwrap_or_else(|| item.clone());
            items.iter().map(id).collect()
        }
        _ => value.clone(),
    }
}

/// The service deletes a hook's token when its URL changes, so it is sent again.
#[tokio::test]
async fn a_token_sent_with_another_url_is_shown() {
    let mut world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
    world.set_variable("TOKEN", "token-of-the-hook");
    let hook = |url: &str, former: &[&str]| {
        let hook = json!({"url": url, "token": {"env": "TOKEN"}, "previously": former});
        [project("acme/shop", json!({"hooks": [hook]}))]
    };
    let (old, new) = ("https://a.example.org/x", "https://b.example.org/x");
    world.declare(&hook(old, &[]));
    world.converge("a new hook").await;
    world.declare(&hook(new, &[old]));
    world.converge("another address").await;
    let sql = "SELECT settings ->> 'token' FROM hooks WHERE id = 1";
    let token: String =
        world.sandbox.inspect(|db| db.query_row(sql, [], |row| row.get(0)).unwrap());
    assert_eq!(token, "token-of-the-hook");
}
