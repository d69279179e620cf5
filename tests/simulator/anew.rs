//! Live values that an edit repeats are current: a rule of the oracle about reads.
//!
//! Some edits repeat values that their manifest does not declare. Such a value is right only while
//! nobody changes it. So the run must have read the list with it a short time ago, and after its
//! last edit of the same object. An edit with only declared values may be sent again unchanged.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::{
    identity,
    oracle::{Evidence, Violation},
    scenario::USERS,
    service::{Sent, State, Who},
    truth::{entries, identity as variable, resolved},
};

/// The maximum age of a repeated value.
const FRESH: Duration = Duration::from_secs(5);

/// The target of an edit: an entry of a section.
struct Edited<'s> {
    section: &'s str,
    /// The entry's identity in a request: a key, an id or a name.
    handle: String,
    /// The environment scope of a variable.
    scope: String,
}

impl<'s> Edited<'s> {
    /// The entry in `target`, if its edits may repeat live values.
    fn of(target: &'s str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = path.split('/').skip(3);
        let section = parts.next()?;
        let known = ["variables", "hooks", "members", "protected_branches"].contains(&section);
        let handle = plain(parts.next()?);
        let query = plain(query);
        let scope = query.strip_prefix("filter[environment_scope]=").unwrap_or("*").to_owned();
        known.then_some(Self { section, handle, scope })
    }

    /// True if `entry`, of this section, declares it. The id of a hook is in no manifest, so the
    /// URL in the edit identifies it; without a URL every hook matches.
    fn is(&self, entry: &Json, says: &Map<String, Json>) -> bool {
        match self.section {
            "variables" => variable(entry) == (self.handle.clone(), self.scope.clone()),
            "members" => USERS.iter().zip(1..).any(|(user, id): (_, u64)| {
                entry["user"] == **user && self.handle == id.to_string()
            }),
            "hooks" => says.get("url").is_none_or(|url| *url == resolved(&entry["url"])),
            _ => entry["name"] == *self.handle,
        }
    }
}

/// A decoded part of a path.
fn plain(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// True if an edit contains values that no entry of `documents` declares for its target.
fn repeats(edited: &Edited<'_>, says: &Map<String, Json>, documents: &[&Json]) -> bool {
    let sections = documents.iter().flat_map(|document| entries(document, edited.section));
    let mut declared = sections.filter(|entry| edited.is(entry, says));
    // Identifying fields are not values.
    let addresses = |name: &str| name == "filter" || name == "environment_scope";
    !declared.any(|entry| says.keys().all(|name| addresses(name) || entry.get(name).is_some()))
}

impl Evidence<'_> {
    /// Finds edits of the first run with repeated live values that it did not read in time.
    pub(crate) fn read_anew(&self, state: &State, found: &mut Vec<Violation>) {
        let own = || state.sent.iter().filter(|sent| sent.who == Who::First);
        let edits = own().filter(|sent| matches!(sent.method, "PUT" | "PATCH"));
        for (at, edit) in edits.clone().enumerate() {
            let target = self.by_path(&edit.target);
            let Some(edited) = Edited::of(&target) else { continue };
            let path = plain(target.split('/').nth(2).unwrap_or_default());
            let paths = identity::declared_at(self.documents(), &path);
            let is_own = |document: &&Json| paths.contains(document["path"].as_str().unwrap());
            let documents: Vec<_> = self.documents().iter().filter(is_own).collect();
            if !repeats(&edited, &edit.says, &documents) {
                continue;
            }
            let earlier = edits.clone().take(at).filter(|earlier| earlier.target == edit.target);
            let since = earlier.map(|earlier| earlier.at).max();
            let shows = |sent: &&Sent| {
                let place = self.by_path(&sent.target);
                let mut parts = place.split(['/', '?']).skip(2);
                let path = plain(parts.next().unwrap_or_default());
                let own = !identity::declared_at(self.documents(), &path).is_disjoint(&paths);
                own && parts.next() == Some(edited.section)
            };
            let reads = own().filter(|sent| sent.method == "GET").filter(shows);
            // A slow answer has its age, but no run can have it earlier.
            let looks = reads.filter_map(|look| Some((look.arrived, look.answered?)));
            let last = looks.filter(|(_, answered)| *answered <= edit.at).max();
            if last.is_none_or(|(arrived, answered)| {
                since.is_some_and(|since| arrived < since) || answered + FRESH < edit.at
            }) {
                let what =
                    format!("{} {} at {:?}, looked at {last:?}", edit.method, edit.target, edit.at);
                found.push(Violation { rule: "live values are as they are", what });
            }
        }
    }
}

#[test]
fn an_edit_repeats_what_its_entry_does_not_declare() {
    let documents = [serde_json::json!({
        "variables": [{"key": "A", "environment_scope": "prod", "value": {"env": "VALUE"}, "raw": true}],
        "members": [{"user": "bob", "access_level": "developer"}],
        "hooks": [{"url": "https://a.example.org/", "push_events": true}, {"url": "https://b.example.org/"}],
        "protected_branches": [{"name": "release/*", "allow_force_push": true}],
    })];
    let of = |target: &str, says: Json| {
        let edited = Edited::of(target).unwrap();
        repeats(&edited, says.as_object().unwrap(), &documents.each_ref())
    };
    let prod = "/projects/1/variables/A?filter%5Benvironment_scope%5D=prod";
    assert!(!of(prod, serde_json::json!({"value": "v", "raw": true})));
    assert!(of(prod, serde_json::json!({"value": "v", "masked": true})));
    assert!(of("/projects/1/variables/A", serde_json::json!({"value": "v"})), "another scope");
    assert!(!of("/groups/1/members/3", serde_json::json!({"access_level": 30})));
    assert!(of("/groups/1/members/3", serde_json::json!({"access_level": 30, "expires_at": null})));
    assert!(of("/groups/1/members/2", serde_json::json!({"access_level": 30})), "another user");
    let hook = |url: &str| serde_json::json!({"url": url, "push_events": true});
    assert!(!of("/projects/1/hooks/7", hook("https://a.example.org/")));
    assert!(of("/projects/1/hooks/7", hook("https://b.example.org/")));
    let branch = "/projects/1/protected_branches/release%2F%2A";
    assert!(!of(branch, serde_json::json!({"allow_force_push": true})));
    assert!(of(branch, serde_json::json!({"code_owner_approval_required": true})));
    assert!(Edited::of("/projects/1/push_rule").is_none() && Edited::of("/projects/1").is_none());
}
