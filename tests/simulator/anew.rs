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
    service::{RunRole, SentRequest, State},
    truth::{entries, resolve, variable_identity as variable},
};

/// The maximum age of a repeated value.
const MAX_AGE: Duration = Duration::from_secs(5);

/// The target of an edit: an entry of a section.
struct EditTarget<'s> {
    section: &'s str,
    /// The entry's identity in a request: a key, an id or a name.
    handle: String,
    /// The environment scope of a variable.
    scope: String,
}

impl<'s> EditTarget<'s> {
    /// The entry in `target`, if its edits may repeat live values.
    fn of(target: &'s str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parts = path.split('/').skip(3);
        let section = parts.next()?;
        let is_tracked = ["variables", "hooks", "members", "protected_branches"].contains(&section);
        let handle = decode(parts.next()?);
        let query = decode(query);
        let scope = query.strip_prefix("filter[environment_scope]=").unwrap_or("*").to_owned();
        is_tracked.then_some(Self { section, handle, scope })
    }

    /// True if `entry`, of this section, declares it. The id of a hook is in no manifest, so the
    /// URL in the edit identifies it; without a URL every hook matches.
    fn is_declared_by(&self, entry: &Json, says: &Map<String, Json>) -> bool {
        match self.section {
            "variables" => variable(entry) == (self.handle.clone(), self.scope.clone()),
            "members" => USERS.iter().zip(1..).any(|(user, id): (_, u64)| {
                entry["user"] == **user && self.handle == id.to_string()
            }),
            "hooks" => says.get("url").is_none_or(|url| *url == resolve(&entry["url"])),
            _ => entry["name"] == *self.handle,
        }
    }
}

/// A decoded part of a path.
fn decode(part: &str) -> String {
    percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned()
}

/// True if an edit contains values that no entry of `documents` declares for its target.
fn has_live_values(edited: &EditTarget<'_>, body: &Map<String, Json>, documents: &[&Json]) -> bool {
    let sections = documents.iter().flat_map(|document| entries(document, edited.section));
    let mut declared = sections.filter(|entry| edited.is_declared_by(entry, body));
    // Identifying fields are not values.
    let addresses = |name: &str| name == "filter" || name == "environment_scope";
    !declared.any(|entry| body.keys().all(|name| addresses(name) || entry.get(name).is_some()))
}

impl Evidence<'_> {
    /// Finds edits of the first run with repeated live values that it did not read in time.
    pub(crate) fn check_freshness(&self, state: &State, violations: &mut Vec<Violation>) {
        let first_run = || state.sent.iter().filter(|sent| sent.who == RunRole::First);
        let edits = first_run().filter(|sent| matches!(sent.method, "PUT" | "PATCH"));
        for (at, edit) in edits.clone().enumerate() {
            let target = self.by_path(&edit.target);
            let Some(edited) = EditTarget::of(&target) else { continue };
            let path = decode(target.split('/').nth(2).unwrap_or_default());
            let paths = identity::declared_at(self.documents(), &path);
            let is_own = |document: &&Json| paths.contains(document["path"].as_str().unwrap());
            let documents: Vec<_> = self.documents().iter().filter(is_own).collect();
            if !has_live_values(&edited, &edit.body, &documents) {
                continue;
            }
            let earlier = edits.clone().take(at).filter(|earlier| earlier.target == edit.target);
            let last_edit = earlier.map(|earlier| earlier.at).max();
            let shows = |sent: &&SentRequest| {
                let place = self.by_path(&sent.target);
                let mut parts = place.split(['/', '?']).skip(2);
                let path = decode(parts.next().unwrap_or_default());
                let own = !identity::declared_at(self.documents(), &path).is_disjoint(&paths);
                own && parts.next() == Some(edited.section)
            };
            let reads = first_run().filter(|sent| sent.method == "GET").filter(shows);
            // A slow answer has its age, but no run can have it earlier.
            let answered_reads = reads.filter_map(|look| Some((look.arrived, look.answered?)));
            let last = answered_reads.filter(|(_, answered)| *answered <= edit.at).max();
            if last.is_none_or(|(arrived, answered)| {
                last_edit.is_some_and(|since| arrived < since) || answered + MAX_AGE < edit.at
            }) {
                let what =
                    format!("{} {} at {:?}, looked at {last:?}", edit.method, edit.target, edit.at);
                violations.push(Violation { rule: "live values are as they are", details: what });
            }
        }
    }
}

#[test]
fn undeclared_values_in_an_edit_count_as_repeated() {
    let documents = [serde_json::json!({
        "variables": [{"key": "A", "environment_scope": "prod", "value": {"env": "VALUE"}, "raw": true}],
        "members": [{"user": "bob", "access_level": "developer"}],
        "hooks": [{"url": "https://a.example.org/", "push_events": true}, {"url": "https://b.example.org/"}],
        "protected_branches": [{"name": "release/*", "allow_force_push": true}],
    })];
    let of = |target: &str, says: Json| {
        let edited = EditTarget::of(target).unwrap();
        has_live_values(&edited, says.as_object().unwrap(), &documents.each_ref())
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
    assert!(
        EditTarget::of("/projects/1/push_rule").is_none()
            && EditTarget::of("/projects/1").is_none()
    );
}
