//! Other people, who change the same groups and projects during a run.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value as Json, json};

use crate::{scenario::TOKEN, schedule::Act, service::World};

/// A change by somebody else.
#[derive(Clone, Debug)]
pub(crate) struct ForeignChange {
    pub(crate) at: Duration,
    pub(crate) act: Act,
    /// The declared paths of its target.
    pub(crate) paths: Vec<String>,
    pub(crate) is_group: bool,
}

impl World {
    /// A read by an administrator, without undrift.
    fn read(&self, path: &str) -> Json {
        serde_json::from_slice(self.call("GET", path, &Json::Null).body()).unwrap_or_default()
    }

    /// A call by an administrator, without undrift.
    fn call(&self, method: &str, path: &str, body: &Json) -> http::Response<Bytes> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("/api/v4{path}"))
            .header("private-token", TOKEN);
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string().into())
            .unwrap();
        self.model.answer(request)
    }

    /// Carries out `act` on the container of the document at a position, and records it if the
    /// service accepts it.
    pub(crate) fn act(&self, at: usize, act: Act) {
        let documents = self.prepared.documents();
        let of_projects =
            matches!(act, Act::Archive | Act::Unarchive | Act::Unprotect | Act::ForcePush);
        let of = |document: &&Json| !of_projects || document["kind"] != "Group";
        let count = documents.iter().filter(of).count();
        let Some(document) = documents.iter().filter(of).nth(at % count.max(1)) else { return };
        let partner = (act == Act::Swap).then(|| self.sibling(document)).flatten();
        if self.carry_out(document, act) {
            let paths = [Some(document), partner].into_iter().flatten();
            let paths = paths.map(|document| document["path"].as_str().unwrap().to_owned());
            let is_group = document["kind"] == "Group";
            let deed = ForeignChange { at: self.now(), act, paths: paths.collect(), is_group };
            self.state().changes.push(deed);
        }
    }

    fn carry_out(&self, document: &Json, act: Act) -> bool {
        let documents = self.prepared.documents();
        let project = self.live_api_path(document);
        let first = |list: &str, key: &str| {
            let rows = self.read(&format!("{project}/{list}"));
            let value = rows[0][key].clone();
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        };
        let scope = || {
            let rows = self.read(&format!("{project}/variables"));
            rows[0]["environment_scope"].as_str().unwrap_or("*").replace('*', "%2A")
        };
        let variable = || {
            format!(
                "{project}/variables/{}?filter%5Benvironment_scope%5D={}",
                first("variables", "key"),
                scope()
            )
        };
        let nothing = json!({});
        let done = match act {
            Act::Settings => self.call(
                "PUT",
                &project,
                &json!({"description": "somebody else's", "merge_method": "rebase_merge"}),
            ),
            Act::AddVariable => self.call(
                "POST",
                &format!("{project}/variables"),
                &json!({"key": "FOREIGN", "value": "x"}),
            ),
            Act::RotateVariable => {
                self.call("PUT", &variable(), &json!({"value": "rotated-canary-99"}))
            }
            Act::RemoveVariable => self.call("DELETE", &variable(), &nothing),
            Act::AddHook => self.call(
                "POST",
                &format!("{project}/hooks"),
                &json!({"url": "https://foreign.example.org/"}),
            ),
            Act::RemoveHook => {
                self.call("DELETE", &format!("{project}/hooks/{}", first("hooks", "id")), &nothing)
            }
            Act::AddMember => self.call(
                "POST",
                &format!("{project}/members"),
                &json!({"user_id": 5, "access_level": 20}),
            ),
            Act::DemoteMember => self.call(
                "PUT",
                &format!("{project}/members/{}", first("members", "id")),
                &json!({"access_level": 20}),
            ),
            Act::PushRule => self.call(
                "PUT",
                &format!("{project}/push_rule"),
                &json!({"commit_message_regex": "^other"}),
            ),
            Act::RemoveShare => {
                let shown = self.read(&project);
                let group = &shown["shared_with_groups"][0]["group_id"];
                self.call("DELETE", &format!("{project}/share/{group}"), &nothing)
            }
            Act::Unprotect => {
                let name = first("protected_branches", "name").replace('/', "%2F");
                self.call("DELETE", &format!("{project}/protected_branches/{name}"), &nothing)
            }
            Act::ForcePush => {
                let name = first("protected_branches", "name").replace('/', "%2F");
                let path = format!("{project}/protected_branches/{name}");
                self.call("PATCH", &path, &json!({"allow_force_push": true}))
            }
            Act::Archive => self.call("POST", &format!("{project}/archive"), &nothing),
            Act::Unarchive => self.call("POST", &format!("{project}/unarchive"), &nothing),
            Act::Rename => self.call("PUT", &project, &json!({"path": "renamed"})),
            Act::Delete => self.call("DELETE", &project, &nothing),
            Act::Swap => return self.swap(document, &project),
            Act::Recreate => return self.recreate(document, &project),
            Act::Create => {
                let is_missing =
                    |document: &&Json| self.read(&declared_api_path(document))["id"].is_null();
                match documents.iter().find(is_missing) {
                    Some(document) => {
                        let there = self.read(&self.live_api_path(document));
                        self.create(document, document["path"].as_str().unwrap(), &there)
                    }
                    None => return false,
                }
            }
        };
        done.status().is_success()
    }

    /// The API path of the container in `document`: at its declared path, or a former one.
    fn live_api_path(&self, document: &Json) -> String {
        let formers = document["previously"].as_array().into_iter().flatten();
        let mut places = formers.filter_map(|former| Some(api_path(document, former.as_str()?)));
        let declared = declared_api_path(document);
        match self.read(&declared)["id"].is_null() {
            true => places.find(|place| !self.read(place)["id"].is_null()).unwrap_or(declared),
            false => declared,
        }
    }

    /// Creates a container of the same type as `document`, without its declared parts, but with the
    /// visibility of `like`: otherwise its contents could not be moved there.
    fn create(&self, document: &Json, path: &str, template: &Json) -> http::Response<Bytes> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let namespace =
            self.read(&format!("/namespaces/{}", above.replace('/', "%2F")))["id"].clone();
        let (list, within) = if document["kind"] == "Group" {
            ("/groups", "parent_id")
        } else {
            ("/projects", "namespace_id")
        };
        let mut body = json!({"name": name, "path": name});
        if !above.is_empty() {
            body[within] = namespace;
        }
        if !template["visibility"].is_null() {
            body["visibility"] = template["visibility"].clone();
        }
        self.call("POST", list, &body)
    }

    /// The declaration of an existing container in the same group as that of `document`.
    fn sibling(&self, document: &Json) -> Option<&Json> {
        let above =
            |place: &str| container_path(place).rsplit_once('/').map(|(above, _)| above.to_owned());
        let place = self.live_api_path(document);
        self.prepared.documents().iter().find(|other| {
            let there = self.live_api_path(other);
            other["kind"] == document["kind"]
                && other["state"] != "absent"
                && there != place
                && above(&there) == above(&place)
                && !self.read(&there)["id"].is_null()
        })
    }

    /// Swaps the paths of the container at `place` and another one beside it, if possible a
    /// declared one.
    fn swap(&self, document: &Json, place: &str) -> bool {
        let path = container_path(place);
        let other = if let Some(other) = self.sibling(document) {
            self.live_api_path(other)
        } else {
            let path = match path.rsplit_once('/') {
                Some((above, _)) => format!("{above}/{STRANGER}"),
                None => STRANGER.to_owned(),
            };
            self.create(document, &path, &self.read(place));
            api_path(document, &path)
        };
        let ids = [place, &*other].map(|place| self.read(place)["id"].clone());
        let names = [&path, &container_path(&other)]
            .map(|path| path.rsplit('/').next().unwrap().to_owned());
        if ids.iter().any(Json::is_null) {
            return false;
        }
        let scope = if document["kind"] == "Group" { "groups" } else { "projects" };
        let steps = [(&ids[0], "elsewhere"), (&ids[1], &names[0]), (&ids[0], &names[1])];
        let rename = |(id, path): (&Json, &str)| {
            let response = self.call("PUT", &format!("/{scope}/{id}"), &json!({"path": path}));
            response.status().is_success()
        };
        steps.into_iter().all(rename)
    }

    /// Deletes the container at `place` for good, and creates another one with its path, unless a
    /// container beside it has that name.
    fn recreate(&self, document: &Json, place: &str) -> bool {
        let there = self.read(place);
        let scope = if document["kind"] == "Group" { "groups" } else { "projects" };
        let by_id = format!("/{scope}/{}", there["id"]);
        let deleted = self.call("DELETE", &by_id, &json!({})).status().is_success();
        // If deletion is delayed, it is marked, and may then be deleted at once under its new path.
        // A top-level group may only get another path.
        let marked = self.read(&by_id);
        let full = marked["full_path"].as_str().or(marked["path_with_namespace"].as_str());
        if let Some(path) = full {
            let at_once = format!("{by_id}?permanently_remove=true&full_path={path}");
            if !self.call("DELETE", &at_once, &json!({})).status().is_success() {
                self.call("PUT", &by_id, &json!({"path": "deleted"}));
            }
        }
        self.create(document, &container_path(place), &there);
        deleted
    }
}

/// The path of the other container of a swap, if it is not declared.
const STRANGER: &str = "stranger";

/// The API path of the container in `document`.
fn declared_api_path(document: &Json) -> String {
    api_path(document, document["path"].as_str().unwrap())
}

/// The API path of a container of the type of `document` at `path`.
fn api_path(document: &Json, path: &str) -> String {
    let scope = if document["kind"] == "Group" { "groups" } else { "projects" };
    format!("/{scope}/{}", path.replace('/', "%2F"))
}

/// The path of the container at `place`.
fn container_path(place: &str) -> String {
    place.rsplit('/').next().unwrap().replace("%2F", "/")
}
