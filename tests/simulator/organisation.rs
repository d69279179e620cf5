//! Random organisations: groups and projects with parts of all kinds. Some are new, some move,
//! alone or with a group above, and some are forks.

use serde_json::{Map, Value as Json, json};

use crate::{numbers::Numbers, scenario::Scenario};

/// The start of their names; the rest is the seed.
pub(crate) const PREFIX: &str = "organisation-";

/// The approximate number of requests in a run, and of documents.
pub(crate) const REQUESTS: usize = 40;
pub(crate) const DOCUMENTS: usize = 5;

/// A part of a project, with the same form in manifests and seeds.
type Part = (&'static str, fn(&mut Numbers) -> Json);

/// The parts whose form is the same in manifests and seeds.
const PARTS: [Part; 5] = [
    ("settings", |numbers| {
        let method = *numbers.pick(&["merge", "ff"]);
        json!({"description": *numbers.pick(&["old", "new"]), "merge_method": method, "visibility": "public"})
    }),
    ("variables", |numbers| {
        let keys = numbers.pick_some(&["A", "B", "C"]);
        let value = |key: &&str| json!({"key": key, "value": *numbers.pick(&["old", "new"])});
        keys.iter().map(value).collect()
    }),
    ("hooks", |numbers| {
        let hosts = numbers.pick_some(&["a", "b"]);
        let hook = |host: &&str| {
            let url = format!("https://{host}.example.org/x");
            json!({"url": url, "issues_events": numbers.below(2) == 0})
        };
        hosts.iter().map(hook).collect()
    }),
    ("push_rule", |numbers| json!({"commit_message_regex": *numbers.pick(&["^a", "^b"])})),
    (
        "protected_branches",
        |numbers| json!([{"name": "main", "allow_force_push": numbers.below(2) == 0}]),
    ),
];

impl Numbers {
    /// Some of `all`, in their order.
    fn pick_some<T: Clone>(&mut self, all: &[T]) -> Vec<T> {
        all.iter().filter(|_| self.below(2) == 0).cloned().collect()
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

fn parts(numbers: &mut Numbers) -> Map<String, Json> {
    let chosen = numbers.pick_some(&PARTS);
    chosen.into_iter().map(|(name, make_part)| (name.to_owned(), make_part(numbers))).collect()
}

/// The present and the declared path of a group.
struct GroupMove {
    from: &'static str,
    to: &'static str,
}

/// The organisation for `seed`.
pub(crate) fn random(seed: u64) -> Scenario {
    let numbers = &mut Numbers::new(seed);
    let mut documents = Vec::new();
    let moves = [("team", "team"), ("team", "crew"), ("team", "acme/team")];
    let (was, is) = *numbers.pick(&moves);
    let team = GroupMove { from: was, to: is };
    documents.push(group(numbers, &team));
    let places =
        [GroupMove { from: "acme", to: "acme" }, GroupMove { from: "beta", to: "beta" }, team];
    let mut projects = Vec::new();
    let mut forked = Vec::new();
    for name in ["app", "lib", "site", "tool"] {
        let (from, to) = (&places[numbers.below(3)], &places[numbers.below(3)]);
        let path = format!("{}/{name}", to.to);
        let mut document = json!({"kind": "Project", "path": path});
        let declared = document.as_object_mut().unwrap();
        declared.extend(parts(numbers));
        match numbers.below(4) {
            // It is new: empty, or a fork of an existing or new project.
            0 => {
                declared.insert("create".to_owned(), true.into());
                if let Some(upstream) = forked.first() {
                    declared.insert("fork_of".to_owned(), Json::clone(upstream));
                    declared.insert("settings".to_owned(), json!({"visibility": "public"}));
                }
            }
            // It stays in its group, which may move.
            1 => projects.push(live_project(numbers, &format!("{}/{name}", to.from))),
            // It gets another name or group.
            _ => {
                let former = match numbers.one_in(2) {
                    true => format!("{}/{name}", from.from),
                    false => format!("{}/old-{name}", from.from),
                };
                if former != format!("{}/{name}", to.from) {
                    declared.insert("previously".to_owned(), json!([former]));
                }
                projects.push(live_project(numbers, &former));
            }
        }
        if numbers.one_in(3) && declared.get("fork_of").is_none() {
            let secret = json!({"key": "S", "value": {"env": "VALUE"}, "masked": true});
            let variables = declared.entry("variables").or_insert_with(|| json!([]));
            variables.as_array_mut().unwrap().push(secret);
        }
        forked.push(path.into());
        documents.push(document);
    }
    // Most faults concern the first document.
    let first = numbers.below(documents.len());
    documents.rotate_left(first);
    let name = format!("{PREFIX}{seed}");
    Scenario::new(name, &projects, &documents)
        .group("team", json!([{"user": "alice", "access_level": "developer"}]))
        .acknowledging(&["protection:**", "visibility:**", "transfer:**"])
}

fn group(numbers: &mut Numbers, place: &GroupMove) -> Json {
    let mut document = json!({
        "kind": "Group", "path": place.to,
        "settings": {"description": *numbers.pick(&["old", "new"])},
        "variables": [{"key": "A", "value": "new"}],
    });
    if place.from != place.to {
        document["previously"] = json!([place.from]);
    }
    if numbers.one_in(2) {
        document["members"] = json!([{"user": "carol", "access_level": "developer"}]);
    }
    document
}

/// An existing project with its own parts.
fn live_project(numbers: &mut Numbers, path: &str) -> Json {
    let mut project = Json::Object(parts(numbers));
    project["settings"]["visibility"] = "public".into();
    project["path"] = path.into();
    project
}
