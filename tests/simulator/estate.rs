//! Random estates in which declared things decide about each other: settings of groups about those
//! below, locks, rules that name people, features that are off, and what may exist once.

use serde_json::{Map, Value as Json, json};

use crate::{numbers::Numbers, scenario::Scenario};

/// Two stages: the first is live when the second is applied.
pub(crate) fn stages(seed: u64) -> [Scenario; 2] {
    let numbers = &mut Numbers::new(seed);
    let mut stages = [documents(numbers), documents(numbers)];
    // Estates of the first seeds stay as they were when one of them was kept.
    if seed % 5 > 1 {
        let numbers = &mut Numbers::new(!seed);
        let documents = stages.iter_mut().flatten();
        documents.for_each(|document| add_more(numbers, document));
    }
    let [first, second] = stages;
    [first, second].map(|documents| {
        let there = |path: &str| json!({"path": path, "branches": ["main"], "settings": {"visibility": "private"}});
        let projects = [there("acme/shop"), there("acme/lab")];
        Scenario::new(format!("estate-{seed}"), &projects, &documents)
            .group("other", json!([]))
            .acknowledging(&[
                "protection:**",
                "visibility:**",
                "removals:**",
                "own-access:**",
                "last-owner:**",
            ])
    })
}

/// Some parts of a document.
struct DocumentParts<'n> {
    numbers: &'n mut Numbers,
    parts: Map<String, Json>,
}

impl DocumentParts<'_> {
    fn of<'n>(numbers: &'n mut Numbers, kind: &str, path: &str) -> DocumentParts<'n> {
        let head = json!({"kind": kind, "path": path});
        DocumentParts { numbers, parts: head.as_object().unwrap().clone() }
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.numbers.below(of) == 0
    }

    /// Each of `names` with one of its values, or without.
    fn pick_fields(&mut self, fields: &[(&str, &[Json])]) -> Json {
        let mut some = Map::new();
        for (name, values) in fields {
            if self.one_in(4) {
                some.insert((*name).to_owned(), self.numbers.pick(values).clone());
            }
        }
        Json::Object(some)
    }

    /// Adds the section `name` unless it is empty.
    fn add(&mut self, name: &str, value: Json) {
        let is_empty = value.as_object().is_some_and(Map::is_empty)
            || value.as_array().is_some_and(Vec::is_empty);
        if !is_empty {
            self.parts.insert(name.to_owned(), value);
        }
    }

    /// Adds a list; its unlisted entries are removed in every other document.
    fn add_list(&mut self, name: &str, all: &[Json]) {
        if self.one_in(2) {
            let chosen: Vec<_> =
                all.iter().filter(|_| self.numbers.below(2) == 0).cloned().collect();
            self.parts.insert(name.to_owned(), chosen.into());
            if self.one_in(2) {
                self.parts.entry("unlisted").or_insert_with(|| json!({}))[name] = "delete".into();
            }
        }
    }
}

const FLAGS: [Json; 2] = [Json::Bool(true), Json::Bool(false)];

fn words(words: &[&str]) -> Vec<Json> {
    words.iter().map(|word| Json::from(*word)).collect()
}

fn documents(numbers: &mut Numbers) -> Vec<Json> {
    let mut documents = vec![group(numbers, "acme", false)];
    if numbers.below(2) == 0 {
        documents.push(group(numbers, "acme/web", true));
        documents.push(project(numbers, "acme/web/api", true));
    }
    for path in ["acme/shop", "acme/lab"] {
        if numbers.below(4) > 0 {
            documents.push(project(numbers, path, false));
        }
    }
    if numbers.below(3) == 0 {
        documents.push(project(numbers, "acme/fresh", true));
    }
    documents
}

fn members() -> [Json; 3] {
    let level = |user: &str| json!({"user": user, "access_level": "developer"});
    ["alice", "carol", "dave"].map(level)
}

fn group(numbers: &mut Numbers, path: &str, is_new: bool) -> Json {
    let mut parts = DocumentParts::of(numbers, "Group", path);
    let runners =
        words(&["disabled_and_unoverridable", "disabled_and_overridable", "enabled", "enabled"]);
    let settings = parts.pick_fields(&[
        ("visibility", &words(&["private", "internal", "public", "public", "public"])),
        ("share_with_group_lock", &FLAGS),
        ("membership_lock", &FLAGS),
        ("project_creation_level", &words(&["noone", "maintainer"])),
        ("shared_runners_setting", &runners),
        ("show_diff_preview_in_email", &FLAGS),
    ]);
    parts.add("settings", settings);
    // A new group gets these only by an edit.
    let late = parts.pick_fields(&[
        ("math_rendering_limits_enabled", &FLAGS),
        ("lock_math_rendering_limits_enabled", &FLAGS),
        ("lfs_enabled", &FLAGS),
        ("auto_devops_enabled", &FLAGS),
        ("emails_enabled", &FLAGS),
    ]);
    if let Some(late) = late.as_object().filter(|late| !late.is_empty()) {
        let settings = parts.parts.entry("settings").or_insert_with(|| json!({}));
        settings.as_object_mut().unwrap().extend(late.clone());
    }
    if is_new {
        parts.add("create", true.into());
    } else {
        let approvals = parts.pick_fields(&[
            ("allow_author_approval", &FLAGS),
            ("allow_committer_approval", &FLAGS),
            ("allow_overrides_to_approver_list_per_merge_request", &FLAGS),
            ("retain_approvals_on_push", &FLAGS),
            ("require_password_to_approve", &FLAGS),
        ]);
        parts.add("merge_request_approval_setting", approvals);
    }
    let [alice, carol, _] = members();
    let root = json!({"user": "root", "access_level": "owner"});
    let bob = json!({"user": "bob", "access_level": "maintainer"});
    if parts.one_in(2) {
        let chosen: Vec<_> = [alice, carol]
            .into_iter()
            .filter(|_| parts.numbers.below(2) == 0)
            .chain([root, bob])
            .collect();
        parts.add("members", chosen.into());
        if parts.one_in(2) {
            parts.add("unlisted", json!({"members": "delete"}));
        }
    }
    let label = json!({"name": "bug", "color": "#ff0000"});
    parts.add_list("labels", &[label]);
    Json::Object(parts.parts)
}

const PUBLIC_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

fn project(numbers: &mut Numbers, path: &str, is_new: bool) -> Json {
    let mut parts = DocumentParts::of(numbers, "Project", path);
    if is_new {
        parts.add("create", json!({"initialize_with_readme": true}));
    }
    let levels = words(&["disabled", "enabled", "private"]);
    let settings = parts.pick_fields(&[
        ("visibility", &words(&["private", "private", "internal", "public"])),
        ("shared_runners_enabled", &FLAGS),
        ("show_diff_preview_in_email", &FLAGS),
        ("issues_access_level", &levels),
        ("merge_requests_access_level", &words(&["disabled", "private"])),
        ("builds_access_level", &words(&["disabled", "private"])),
        ("lfs_enabled", &FLAGS),
    ]);
    parts.add("settings", settings);
    let approvals = parts.pick_fields(&[
        ("merge_requests_author_approval", &FLAGS),
        ("merge_requests_disable_committers_approval", &FLAGS),
        ("disable_overriding_approvers_per_merge_request", &FLAGS),
        ("reset_approvals_on_push", &FLAGS),
        ("require_password_to_approve", &FLAGS),
    ]);
    parts.add("approvals", approvals);
    parts.add_list("members", &members());
    let share = json!({"group": "other", "group_access": "developer"});
    parts.add_list("shares", &[share, json!({"group": "beta", "group_access": "maintainer"})]);
    parts.add_list("deploy_keys", &[json!({"title": "ci", "key": PUBLIC_KEY, "can_push": true})]);
    let user = |parts: &mut DocumentParts<'_>| {
        *parts.numbers.pick(&["alice", "bob", "bob", "bob", "carol"])
    };
    let grantee = match parts.numbers.below(6) {
        0 if parts.parts.contains_key("shares") => json!({"group": "other"}),
        1 if parts.parts.contains_key("deploy_keys") => json!({"deploy_key": "ci"}),
        2 | 3 => json!({"access_level": "maintainer"}),
        _ => json!({"user": user(&mut parts)}),
    };
    let branch = json!({"name": "main", "allowed_to_push": [grantee]});
    parts.add_list("protected_branches", &[branch]);
    let mut rule = json!({"name": "Leads", "approvals_required": 1, "users": [user(&mut parts)]});
    if parts.one_in(3) {
        rule["protected_branches"] = json!(["main"]);
    }
    if parts.one_in(3) {
        rule["groups"] = json!(["other"]);
    }
    parts.add_list("approval_rules", &[rule]);
    let tag = json!({"name": "v*", "allowed_to_create": [{"user": user(&mut parts)}]});
    parts.add_list("protected_tags", &[tag]);
    parts.add_list("labels", &[json!({"name": "bug", "color": "#00ff00"})]);
    parts.add_list("milestones", &[json!({"title": "one"})]);
    parts.add_list("variables", &[json!({"key": "A", "value": "x"})]);
    parts.add_list("job_token_allowlist", &[json!({"project": path})]);
    if parts.one_in(3) {
        let [one, other] =
            if parts.one_in(2) { ["redmine", "bugzilla"] } else { ["bugzilla", "redmine"] };
        parts.add("integrations", json!([tracker(one), {"slug": other, "state": "absent"}]));
    }
    Json::Object(parts.parts)
}

fn tracker(slug: &str) -> Json {
    let url = |what: &str| format!("https://{slug}.example.org/{what}");
    json!({
        "slug": slug, "project_url": url("p"), "issues_url": url("i/:id"), "new_issue_url": url("n"),
    })
}

/// Adds sections of `document` that groups share with projects, and others that may be refused.
fn add_more(numbers: &mut Numbers, document: &mut Json) {
    let is_group = document["kind"] == "Group";
    let is_top = document["path"] == "acme";
    let mut parts = DocumentParts { numbers, parts: document.as_object().unwrap().clone() };
    let words_of = |level: &str| words(&["enabled", level]);
    let settings = if is_top {
        parts.pick_fields(&[("prevent_sharing_groups_outside_hierarchy", &FLAGS)])
    } else if is_group {
        json!({})
    } else {
        parts.pick_fields(&[
            ("wiki_access_level", &words_of("disabled")),
            ("environments_access_level", &words_of("disabled")),
            ("package_registry_access_level", &words_of("disabled")),
            ("container_registry_access_level", &words_of("private")),
            ("group_runners_enabled", &FLAGS),
        ])
    };
    if let Some(settings) = settings.as_object().filter(|settings| !settings.is_empty()) {
        let all = parts.parts.entry("settings").or_insert_with(|| json!({}));
        all.as_object_mut().unwrap().extend(settings.clone());
    }
    if is_group {
        parts.add_list("shares", &[json!({"group": "other", "group_access": "developer"})]);
        if parts.one_in(4) {
            parts.add("integrations", json!([tracker("redmine")]));
        }
        if parts.one_in(4) {
            parts.add("milestones", json!([{"title": "two"}]));
        }
        let user = *parts.numbers.pick(&["alice", "bob", "carol"]);
        let who = json!([{"access_level": "maintainer"}, {"user": user}]);
        parts.add_list(
            "protected_environments",
            &[json!({"name": "production", "deploy_access_levels": who})],
        );
    } else {
        parts.add_list("environments", &[json!({"name": "production"})]);
        parts.add_list("milestones", &[json!({"title": "one"}), json!({"title": "two"})]);
        let groups = ["other", "acme/web", "acme"];
        let group = *parts.numbers.pick(&groups);
        let who = json!([{"access_level": "maintainer"}, {"group": group}]);
        parts.add_list(
            "protected_environments",
            &[json!({"name": "production", "deploy_access_levels": who})],
        );
    }
    *document = Json::Object(parts.parts);
}
