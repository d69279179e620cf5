//! The container of each write: a rule of the oracle about ids.
//!
//! Paths can pass to other containers during a run. So a write may only name containers that the
//! service showed to this run at a declared path, or that this run created. A secret is only sent
//! into containers whose document refers to it, and never into two with the same path.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value as Json;
use undrift::api::{EncodedBody, WireRequest};

use crate::{
    oracle::Violation,
    scenario::SECRETS,
    service::{RunRole, SentRequest, State},
};

/// Identifies a group or project, whatever its path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    /// Groups and personal namespaces share their ids.
    pub(crate) is_namespace: bool,
    pub(crate) id: u64,
}

impl Id {
    pub(crate) const fn namespace(id: u64) -> Self {
        Self { is_namespace: true, id }
    }

    pub(crate) const fn project(id: u64) -> Self {
        Self { is_namespace: false, id }
    }
}

/// A group or project in a response to a run.
#[derive(Clone, Debug)]
pub(crate) struct ShownContainer {
    who: RunRole,
    at: Duration,
    id: Id,
    path: String,
    /// True if the response is to its creation.
    is_new: bool,
}

/// True if a write to `target` creates a container in the group that the body names.
fn is_create(target: &str) -> bool {
    matches!(target, "/projects" | "/groups") || target.starts_with("/import/")
}

/// The containers in a response, at any depth.
pub(crate) fn shown_containers(
    who: RunRole,
    at: Duration,
    target: &str,
    body: &Bytes,
) -> Vec<ShownContainer> {
    let Ok(body) = serde_json::from_slice::<Json>(body) else { return Vec::new() };
    let is_import = target.starts_with("/import/");
    let to_shown = |id: Id, path: &Json| {
        // The response to an import has no project object.
        let id = if is_import { Id::project(id.id) } else { id };
        let is_new = body["id"] == id.id && is_create(target);
        let path = path.as_str()?.trim_start_matches('/').to_lowercase();
        Some(ShownContainer { who, at, id, path, is_new })
    };
    let mut found = Vec::new();
    let mut pending = vec![&body];
    while let Some(value) = pending.pop() {
        let id = |name: &str| value[name].as_u64();
        let project = id("id").map(|id| (Id::project(id), &value["path_with_namespace"]));
        let group = id("id").map(|id| (Id::namespace(id), &value["full_path"]));
        let shared = id("group_id").map(|id| (Id::namespace(id), &value["group_full_path"]));
        let all = [project, group, shared].into_iter().flatten();
        found.extend(all.filter_map(|(id, path)| to_shown(id, path)));
        match value {
            Json::Array(rows) => pending.extend(rows),
            Json::Object(fields) => pending.extend(fields.values()),
            _ => {}
        }
    }
    found
}

/// The body of `request`, as text.
fn body_text(request: &WireRequest) -> String {
    match &request.body {
        EncodedBody::Empty => String::new(),
        EncodedBody::Json(json) => String::from_utf8_lossy(json).into_owned(),
        EncodedBody::Form(parts) => {
            parts.iter().map(|part| String::from_utf8_lossy(&part.value).into_owned()).collect()
        }
    }
}

/// The secrets in a request.
pub(crate) fn secrets_in(request: &WireRequest) -> Vec<&'static str> {
    let body = body_text(request);
    let first_line = |secret: &'static str| secret.lines().next().unwrap_or_default();
    let secrets = SECRETS.iter().map(|(name, secret)| (*name, first_line(secret)));
    secrets.filter(|(_, secret)| body.contains(secret)).map(|(name, _)| name).collect()
}

/// The containers that a write is for, and those whose ids it contains.
pub(crate) fn target_ids(request: &WireRequest) -> Vec<Id> {
    let mut named = Vec::new();
    let mut segments = request.target.split(['/', '?']).skip(1);
    let scope = segments.next().unwrap_or_default();
    let id = segments.next().and_then(|id| id.parse().ok());
    named.extend(id.and_then(|id| match scope {
        "projects" => Some(Id::project(id)),
        "groups" => Some(Id::namespace(id)),
        _ => None,
    }));
    let body = serde_json::from_str::<Json>(&body_text(request)).unwrap_or_default();
    let group_fields = ["namespace_id", "namespace", "parent_id", "group_id"].into_iter();
    named.extend(group_fields.filter_map(|name| body[name].as_u64()).map(Id::namespace));
    named
}

/// The paths at which a container at `path` may be declared: its own, and those to which
/// `documents` move it, by itself or with a group above, in either order.
pub(crate) fn declared_at(documents: &[Json], path: &str) -> BTreeSet<String> {
    let mut paths = moved_paths(documents, path);
    for (former, document) in documents.iter().flat_map(former_paths) {
        let declared = document["path"].as_str().unwrap();
        // If both change, the rename comes first, unless the service ignores it.
        let joined = |one: &str, other: &str| match (one.rsplit_once('/'), other.rsplit_once('/')) {
            (Some((above, _)), Some((_, name))) => format!("{above}/{name}"),
            _ => former.to_owned(),
        };
        let old = [former.to_owned(), joined(former, declared), joined(declared, former)];
        if old.iter().any(|old| moved_paths(documents, old).contains(path)) {
            paths.insert(declared.to_owned());
        }
    }
    paths
}

/// The former paths of the container in `document`, each with its declared one.
fn former_paths(document: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let formers = document["previously"].as_array().into_iter().flatten();
    formers.filter_map(move |former| Some((former.as_str()?, document)))
}

/// `path`, and all results of moves.
fn moved_paths(documents: &[Json], path: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::from([path.to_owned()]);
    let mut rest = vec![path.to_owned()];
    while let Some(path) = rest.pop() {
        for (former, document) in documents.iter().flat_map(former_paths) {
            let Some(suffix) = path.strip_prefix(former) else { continue };
            let moved = format!("{}{suffix}", document["path"].as_str().unwrap());
            if (suffix.is_empty() || suffix.starts_with('/')) && paths.insert(moved.clone()) {
                rest.push(moved);
            }
        }
    }
    paths
}

/// The containers shown to a run at a declared path, or at one that moves there.
pub(crate) fn found_at(
    state: &State,
    documents: &[Json],
    who: RunRole,
    path: &str,
) -> BTreeSet<Id> {
    let is_there = |shown: &&ShownContainer| {
        shown.who == who && declared_at(documents, &shown.path).contains(path)
    };
    state.shown.iter().filter(is_there).map(|shown| shown.id).collect()
}

/// The secrets and paths in the documents of a simulation.
struct DeclaredPaths<'d> {
    documents: &'d [Json],
    /// The paths whose documents refer to a secret, by its name.
    referring: BTreeMap<&'static str, BTreeSet<String>>,
    /// Every text, and the paths above those that are paths.
    mentioned: BTreeSet<String>,
}

impl<'d> DeclaredPaths<'d> {
    fn new(documents: &'d [Json]) -> Self {
        let mut referring = BTreeMap::<_, BTreeSet<_>>::new();
        let mut mentioned = BTreeSet::new();
        for document in documents {
            let mut rest = vec![document];
            while let Some(value) = rest.pop() {
                match value {
                    Json::Array(items) => rest.extend(items),
                    Json::Object(fields) => rest.extend(fields.values()),
                    Json::String(text) => {
                        let ends = text.match_indices('/').map(|(end, _)| end);
                        mentioned
                            .extend(ends.chain([text.len()]).map(|end| text[..end].to_lowercase()));
                    }
                    _ => {}
                }
            }
            let text = document.to_string();
            for (name, _) in SECRETS {
                if text.contains(&format!("{{\"env\":\"{name}\"}}")) {
                    let path = document["path"].as_str().unwrap().to_owned();
                    referring.entry(name).or_default().insert(path);
                }
            }
        }
        Self { documents, referring, mentioned }
    }

    /// True if `id` was shown to the run that `sent` something at one of `paths`, or is new.
    fn was_shown(
        &self,
        state: &State,
        sent: &SentRequest,
        id: Id,
        is_one: impl Fn(&str) -> bool,
    ) -> bool {
        let mut before =
            state.shown.iter().filter(|shown| shown.who == sent.who && shown.at <= sent.at);
        before.any(|shown| {
            // A container marked for deletion has another path until it is restored.
            let path = shown.path.strip_suffix(&format!("-deletion_scheduled-{}", id.id));
            let path = path.unwrap_or(&shown.path);
            let mut paths = declared_at(self.documents, path).into_iter();
            let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
            let is_new = || {
                let mut declared = self.documents.iter().filter_map(|d| d["path"].as_str());
                // The group above may have got another path since.
                shown.is_new && declared.any(|path| is_one(path) && last(path) == last(&shown.path))
            };
            shown.id == id && (paths.any(|path| is_one(&path)) || is_new())
        })
    }
}

/// Finds writes into containers that were neither found at a declared path nor created.
pub(crate) fn check_targets(state: &State, documents: &[Json], found: &mut Vec<Violation>) {
    let declared = DeclaredPaths::new(documents);
    let mut received = BTreeMap::<_, BTreeSet<Id>>::new();
    let mut wrong = |sent: &SentRequest, what: &str| {
        let what = format!("{:?}: {} {} {what}", sent.who, sent.method, sent.target);
        found.push(Violation { rule: "only what was found", details: what });
    };
    for sent in state.sent.iter().filter(|sent| sent.method != "GET") {
        for id in &sent.containers {
            if !declared.was_shown(state, sent, *id, |path| declared.mentioned.contains(path)) {
                wrong(sent, &format!("is for {id:?}, which was nowhere found"));
            }
        }
        for secret in &sent.secrets {
            let no_paths = BTreeSet::new();
            let paths = declared.referring.get(secret).unwrap_or(&no_paths);
            // New containers are created in the group above.
            let is_create = is_create(&sent.target);
            let is_for = |path: &str| {
                let above = |own: &String| own.rsplit_once('/').map(|(above, _)| above.to_owned());
                match is_create {
                    true => paths.iter().filter_map(above).any(|above| above == path),
                    false => paths.contains(path),
                }
            };
            match sent.containers.first() {
                Some(id) if !declared.was_shown(state, sent, *id, is_for) => {
                    wrong(sent, &format!("gives {secret} to {id:?}"));
                }
                Some(id) if !is_create && paths.len() == 1 => {
                    received.entry((sent.who as u8, *secret)).or_default().insert(*id);
                }
                Some(_) => {}
                // An import names the group above by path.
                None if is_create => {}
                None => wrong(sent, &format!("gives {secret} to what goes by its path")),
            }
        }
    }
    for ((who, secret), ids) in received.into_iter().filter(|(_, ids)| ids.len() > 1) {
        let what = format!("run {who} gives {secret}, which is for one, to {ids:?}");
        found.push(Violation { rule: "only what was found", details: what });
    }
}

#[test]
fn a_write_to_an_unknown_container_is_detected() {
    let documents = [
        serde_json::json!({"path": "acme/a", "variables": [{"key": "S", "value": {"env": "VALUE"}}]}),
        serde_json::json!({"path": "acme/b", "previously": ["acme/old"]}),
    ];
    let shown = |id, path: &str| ShownContainer {
        who: RunRole::First,
        at: Duration::ZERO,
        id: Id::project(id),
        path: path.to_owned(),
        is_new: false,
    };
    let wrong = |paths: &[(u64, &str)], writes: &[(u64, &[&'static str])]| {
        let write = |(id, carries): &(u64, &[&'static str])| SentRequest {
            containers: vec![Id::project(*id)],
            secrets: carries.to_vec(),
            method: "POST",
            target: format!("/projects/{id}/variables"),
            ..SentRequest::of(RunRole::First)
        };
        let mut state = State::default();
        state.shown = paths.iter().map(|(id, path)| shown(*id, path)).collect();
        state.sent = writes.iter().map(write).collect();
        let mut found = Vec::new();
        check_targets(&state, &documents, &mut found);
        found.len()
    };
    let shown_paths = [(1, "acme/a"), (2, "acme/old"), (3, "acme/other")];
    assert_eq!(wrong(&shown_paths, &[(1, &["VALUE"]), (2, &[])]), 0);
    assert_eq!(wrong(&shown_paths, &[(3, &[])]), 1, "not declared");
    assert_eq!(wrong(&shown_paths, &[(4, &[])]), 1, "never shown");
    assert_eq!(wrong(&shown_paths, &[(2, &["VALUE"])]), 1, "the secret of another one");
    let swapped = [(1, "acme/a"), (2, "acme/a")];
    assert_eq!(wrong(&swapped, &[(1, &["VALUE"]), (2, &["VALUE"])]), 1, "two of one path");
}
