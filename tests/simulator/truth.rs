//! The true state of the service, read without rights, limits and dialects, and compared with the
//! declarations without undrift's own code.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use undrift::sandbox::Model;

use crate::{dump::dump, identity::Id, scenario::SECRETS};

type Object = Map<String, Json>;

/// All projects and groups, by path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Truth(pub(crate) BTreeMap<String, Project>);

/// One project, or a group, which is never archived and protects no branches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Project {
    pub(crate) is_group: bool,
    pub(crate) id: u64,
    pub(crate) archived: bool,
    pub(crate) fork_of: Option<String>,
    pub(crate) settings: Object,
    pub(crate) variables: BTreeMap<(String, String), Object>,
    pub(crate) members: BTreeMap<String, Object>,
    pub(crate) hooks: Vec<Object>,
    pub(crate) remote_mirrors: Vec<Object>,
    pub(crate) pipeline_schedules: Vec<Object>,
    pub(crate) push_rule: Option<Object>,
    pub(crate) shares: BTreeMap<String, Object>,
    pub(crate) protected_branches: BTreeMap<String, Object>,
    pub(crate) labels: BTreeMap<String, Object>,
}

impl Truth {
    pub(crate) fn of(model: &Model) -> Self {
        let dump = model.inspect(dump).unwrap();
        let rows = |table: &str| {
            dump[table].as_array().unwrap().iter().map(|row| row.as_object().unwrap().clone())
        };
        let text = |row: &Object, column: &str| row[column].as_str().unwrap_or_default().to_owned();
        let users: BTreeMap<_, _> =
            rows("users").map(|row| (row["id"].as_u64(), text(&row, "username"))).collect();
        let paths: BTreeMap<_, _> =
            rows("projects").map(|row| (row["id"].as_u64(), text(&row, "full_path"))).collect();
        let groups: BTreeMap<_, _> =
            rows("namespaces").map(|row| (row["id"].as_u64(), text(&row, "full_path"))).collect();
        let member = |row: Object| {
            let fields =
                ["access_level", "expires_at"].map(|name| (name.to_owned(), row[name].clone()));
            (users[&row["user_id"].as_u64()].clone(), fields.into_iter().collect())
        };
        let groups_and_projects = rows("namespaces")
            .filter(|row| row["kind"] == "group")
            .map(|row| (true, row))
            .chain(rows("projects").map(|row| (false, row)));
        let mut projects = BTreeMap::new();
        for (is_group, row) in groups_and_projects {
            let (attributes, owner) =
                if is_group { ("settings", "group_id") } else { ("attributes", "project_id") };
            let mut settings = row[attributes].as_object().cloned().unwrap_or_default();
            let columns = ["name", "visibility"];
            settings.extend(columns.map(|name| (name.to_owned(), row[name].clone())));
            let owned_rows = |table: &str| {
                let id = row["id"].clone();
                rows(table).filter(move |other| other.get(owner) == Some(&id))
            };
            settings.insert("avatar".to_owned(), owned_rows("avatars").next().is_some().into());
            let flag = |row: &Object, name: &str| (row[name] == 1).into();
            let variable = |row: Object| {
                let set = row["settings"].as_object().cloned().unwrap_or_default();
                let fields = ["value", "variable_type", "protected", "masked", "raw"]
                    .map(|name| (name.to_owned(), set.get(name).cloned().unwrap_or_default()));
                ((text(&set, "key"), text(&set, "environment_scope")), fields.into_iter().collect())
            };
            let share = |row: Object| {
                let fields = [
                    ("group_access".to_owned(), row["access_level"].clone()),
                    ("expires_at".to_owned(), row["expires_at"].clone()),
                ];
                (groups[&row["invited_id"].as_u64()].clone(), fields.into_iter().collect())
            };
            let protection = |row: Object| {
                let mut fields: Object = ["allow_force_push", "code_owner_approval_required"]
                    .map(|name| (name.to_owned(), flag(&row, name)))
                    .into_iter()
                    .collect();
                for action in ["push", "merge", "unprotect"] {
                    let granted = rows("protected_branch_grants").filter(|grant| {
                        grant["branch_id"] == row["id"] && grant["action"] == action
                    });
                    let grant = |grant: Object| match (
                        grant["user_id"].as_u64(),
                        grant["group_id"].as_u64(),
                    ) {
                        (None, None) => json!({"access_level": grant["access_level"]}),
                        (None, group) => json!({"group": groups[&group]}),
                        (user, _) => json!({"user": users[&user]}),
                    };
                    fields.insert(format!("allowed_to_{action}"), granted.map(grant).collect());
                }
                (text(&row, "name"), fields)
            };
            let hook = |row: Object| {
                let mut fields = row["settings"].as_object().cloned().unwrap_or_default();
                fields.entry("token").or_insert(Json::Null);
                fields
            };
            let set = |row: Object| row["settings"].as_object().cloned().unwrap_or_default();
            let label = |row: Object| {
                let set = &row["settings"];
                let fields =
                    ["color", "description"].map(|name| (name.to_owned(), set[name].clone()));
                (set["title"].as_str().unwrap().to_owned(), fields.into_iter().collect())
            };
            let project = Project {
                is_group,
                id: row["id"].as_u64().unwrap(),
                archived: row.get("archived").is_some_and(|archived| *archived == 1),
                fork_of: row
                    .get("forked_from_id")
                    .and_then(Json::as_u64)
                    .map(|id| paths[&Some(id)].clone()),
                settings,
                variables: owned_rows("variables").map(variable).collect(),
                members: owned_rows("members")
                    .filter(|row| !row["user_id"].is_null())
                    .map(member)
                    .collect(),
                hooks: owned_rows("hooks").map(hook).collect(),
                remote_mirrors: owned_rows("remote_mirrors").map(set).collect(),
                pipeline_schedules: owned_rows("pipeline_schedules").map(set).collect(),
                push_rule: owned_rows("push_rules")
                    .next()
                    .map(|row| row["settings"].as_object().cloned().unwrap_or_default()),
                shares: owned_rows("shares").map(share).collect(),
                protected_branches: owned_rows("protected_branches").map(protection).collect(),
                labels: owned_rows("labels").map(label).collect(),
            };
            projects.insert(text(&row, "full_path"), project);
        }
        Self(projects)
    }

    /// The container with this id.
    pub(crate) fn get(&self, id: Id) -> Option<&Project> {
        let mut all = self.0.values();
        all.find(|project| project.is_group == id.is_namespace && project.id == id.id)
    }

    /// The same by declared paths, for containers that had other paths in `before`.
    pub(crate) fn as_declared(&self, before: &Self, documents: &[Json]) -> Self {
        let former = |document: &Json, path: &str| {
            let formers = document["previously"].as_array().into_iter().flatten();
            let formers = formers.filter_map(Json::as_str);
            let rest = formers.filter_map(|former| path.strip_prefix(former)).next()?;
            let new = document["path"].as_str().unwrap();
            (rest.is_empty() || rest.starts_with('/')).then(|| (rest.len(), format!("{new}{rest}")))
        };
        let former_path = |id: u64, is_group: bool| {
            let is_it = |project: &Project| project.id == id && project.is_group == is_group;
            before.0.iter().find(|(_, project)| is_it(project)).map(|(path, _)| path)
        };
        let declared = |(path, project): (&String, &Project)| {
            let old = former_path(project.id, project.is_group).unwrap_or(path);
            let new = documents.iter().filter_map(|document| former(document, old));
            // Its own move counts before that of a group above.
            let new = new.min().map_or_else(|| path.clone(), |(_, new)| new);
            (new, project.clone())
        };
        Self(self.0.iter().map(declared).collect())
    }

    /// The addresses of declarations in `documents` that are not met.
    pub(crate) fn unmet(&self, documents: &[Json]) -> BTreeSet<String> {
        let mut unmet = BTreeSet::new();
        for document in documents {
            let path = document["path"].as_str().unwrap();
            match self.0.get(path) {
                found if document["state"] == "absent" => {
                    unmet.extend(found.map(|_| path.to_owned()));
                }
                Some(project) => unmet.extend(
                    project.unmet(document).into_iter().map(|part| format!("{path}#{part}")),
                ),
                None => drop(unmet.insert(path.to_owned())),
            }
        }
        unmet
    }

    /// The missing shares, protections and variables of `documents`, whatever their
    /// fields.
    pub(crate) fn missing_entries(
        &self,
        documents: &[Json],
    ) -> BTreeSet<(String, &'static str, String)> {
        let mut lacking = BTreeSet::new();
        for document in documents {
            let path = document["path"].as_str().unwrap();
            let none = Project::default();
            let project = self.0.get(path).unwrap_or(&none);
            for (section, key, there) in [
                ("shares", "group", &project.shares),
                ("protected_branches", "name", &project.protected_branches),
            ] {
                for entry in entries(document, section).filter(|entry| entry["state"] != "absent") {
                    let name = entry[key].as_str().unwrap();
                    if !there.contains_key(name) {
                        lacking.insert((path.to_owned(), section, name.to_owned()));
                    }
                }
            }
            for entry in entries(document, "variables").filter(|entry| entry["state"] != "absent") {
                let key = variable_identity(entry);
                if !project.variables.contains_key(&key) {
                    lacking.insert((path.to_owned(), "variables", format!("{}@{}", key.0, key.1)));
                }
            }
        }
        lacking
    }

    /// Everything that `documents` do not declare, with its value. Unlisted entries in a section
    /// that deletes them are left out. Undeclared fields of declared entries begin with
    /// [`FIELD_PREFIX`].
    pub(crate) fn undeclared(&self, documents: &[Json]) -> BTreeSet<String> {
        let none = json!({});
        let of = |path: &str| {
            documents.iter().find(|document| document["path"] == path).unwrap_or(&none)
        };
        self.0.iter().flat_map(|(path, project)| project.undeclared(path, of(path))).collect()
    }

    /// The projects that are more visible than declared, except those that existed `before`.
    pub(crate) fn too_visible(&self, documents: &[Json], before: &Self) -> BTreeSet<String> {
        let rank = |word: &Json| ["private", "internal", "public"].iter().position(|w| word == w);
        let is_wider = |document: &&Json| {
            let path = document["path"].as_str().unwrap();
            let declared = &document["settings"]["visibility"];
            let live = self.0.get(path).filter(|_| !before.0.contains_key(path));
            !declared.is_null()
                && live.is_some_and(|live| rank(&live.settings["visibility"]) > rank(declared))
        };
        let wider = documents.iter().filter(is_wider);
        wider.map(|document| document["path"].as_str().unwrap().to_owned()).collect()
    }

    /// Declared entries that exist more than once, with their number.
    pub(crate) fn duplicates(&self, documents: &[Json]) -> BTreeMap<String, usize> {
        let mut twice = BTreeMap::new();
        for document in documents {
            let path = document["path"].as_str().unwrap();
            let Some(project) = self.0.get(path) else { continue };
            for (section, key, live) in project.repeatable() {
                for entry in entries(document, section) {
                    let name = resolve(&entry[key]);
                    let count = live.iter().filter(|live| live[key] == name).count();
                    if count > 1 {
                        twice.insert(format!("{path} {name}"), count);
                    }
                }
            }
        }
        twice
    }
}

/// The start of a line of [`Truth::undeclared`] for a field of a declared entry.
pub(crate) const FIELD_PREFIX: &str = "~ ";

/// A declared value, with its secret filled in.
pub(crate) fn resolve(value: &Json) -> Json {
    match value["env"].as_str() {
        Some(name) => SECRETS
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(Json::Null, |(_, secret)| (*secret).into()),
        None => value.clone(),
    }
}

fn level_number(value: &Json) -> Json {
    match value.as_str() {
        Some("no_access") => 0.into(),
        Some("guest") => 10.into(),
        Some("reporter") => 20.into(),
        Some("developer") => 30.into(),
        Some("maintainer") => 40.into(),
        Some("owner") => 50.into(),
        _ => value.clone(),
    }
}

/// True if a live value equals a declared one. Null equals an empty text, and the order of lists
/// does not matter.
fn are_equal(declared: &Json, live: Option<&Json>) -> bool {
    let empty = |value: &Json| value.is_null() || value == "";
    match (declared, live.unwrap_or(&Json::Null)) {
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().all(|item| b.contains(item))
        }
        (declared, live) => declared == live || empty(declared) && empty(live),
    }
}

/// True if every declared field of an entry, except the identity, is met.
fn are_fields_met(entry: &Json, live: &Object, identity: &[&str]) -> bool {
    let declared =
        entry.as_object().unwrap().iter().filter(|(name, _)| !identity.contains(&name.as_str()));
    declared.into_iter().all(|(name, value)| match name.as_str() {
        "access_level" | "group_access" => level_number(value) == live[name],
        _ if name.starts_with("allowed_to_") => {
            let mut rows = value.clone();
            for row in rows.as_array_mut().unwrap() {
                if row.get("access_level").is_some() {
                    row["access_level"] = level_number(&row["access_level"]);
                }
            }
            are_equal(&rows, live.get(name))
        }
        _ => are_equal(&resolve(value), live.get(name)),
    })
}

const VARIABLE_KEYS: [&str; 3] = ["key", "environment_scope", "state"];
const HOOK_KEYS: [&str; 4] = ["name", "url", "previously", "state"];
const MEMBER_KEYS: [&str; 2] = ["user", "state"];
const SHARE_KEYS: [&str; 2] = ["group", "state"];
const PROTECTION_KEYS: [&str; 2] = ["name", "state"];
const LABEL_KEYS: [&str; 2] = ["name", "state"];

pub(crate) fn variable_identity(entry: &Json) -> (String, String) {
    let text = |name: &str| entry[name].as_str().map(str::to_owned);
    (text("key").unwrap_or_default(), text("environment_scope").unwrap_or_else(|| "*".to_owned()))
}

pub(crate) fn entries<'d>(document: &'d Json, section: &str) -> impl Iterator<Item = &'d Json> {
    document[section].as_array().into_iter().flatten()
}

impl Project {
    /// The entries identified by names, by section, each with its identity.
    fn named_entries(&self) -> [(&'static str, [&'static str; 2], &BTreeMap<String, Object>); 4] {
        [
            ("members", MEMBER_KEYS, &self.members),
            ("shares", SHARE_KEYS, &self.shares),
            ("protected_branches", PROTECTION_KEYS, &self.protected_branches),
            ("labels", LABEL_KEYS, &self.labels),
        ]
    }

    /// The entries that the service accepts twice, by section, each with its identity.
    const fn repeatable(&self) -> [(&'static str, &'static str, &Vec<Object>); 3] {
        [
            ("hooks", "url", &self.hooks),
            ("remote_mirrors", "url", &self.remote_mirrors),
            ("pipeline_schedules", "description", &self.pipeline_schedules),
        ]
    }

    fn unmet(&self, document: &Json) -> Vec<String> {
        let mut unmet = Vec::new();
        let mut require = |met: bool, what: String| {
            if !met {
                unmet.push(what);
            }
        };
        for (name, value) in document["settings"].as_object().into_iter().flatten() {
            let met = if name == "avatar" {
                self.settings[name] == true
            } else {
                are_equal(value, self.settings.get(name))
            };
            require(met, format!("settings/{name}"));
        }
        if let Some(archived) = document["archived"].as_bool() {
            require(self.archived == archived, "archived".to_owned());
        }
        if let Some(upstream) = document.get("fork_of") {
            require(upstream.as_str() == self.fork_of.as_deref(), "fork_of".to_owned());
        }
        for entry in entries(document, "variables") {
            let key = variable_identity(entry);
            let live = self.variables.get(&key);
            let met = if entry["state"] == "absent" {
                live.is_none()
            } else {
                live.is_some_and(|live| are_fields_met(entry, live, &VARIABLE_KEYS))
            };
            require(met, format!("variables/{}@{}", key.0, key.1));
        }
        for (section, identity, there) in self.named_entries() {
            for entry in entries(document, section) {
                let name = entry[identity[0]].as_str().unwrap();
                let live = there.get(name);
                let met = if entry["state"] == "absent" {
                    live.is_none()
                } else {
                    live.is_some_and(|live| are_fields_met(entry, live, &identity))
                };
                require(met, format!("{section}/{name}"));
            }
        }
        for (section, key, live) in &self.repeatable()[1..] {
            for entry in entries(document, section) {
                let name = resolve(&entry[*key]);
                let met = live.iter().any(|live| live[*key] == name);
                require(met, format!("{section}/{}", entry[*key]));
            }
        }
        for entry in entries(document, "hooks") {
            let url = resolve(&entry["url"]);
            let there: Vec<_> = self.hooks.iter().filter(|hook| hook["url"] == url).collect();
            let met = if entry["state"] == "absent" {
                there.is_empty()
            } else {
                there.len() == 1 && are_fields_met(entry, there[0], &HOOK_KEYS)
            };
            require(
                met,
                format!(
                    "hooks/{}",
                    entry["name"].as_str().or(entry["url"].as_str()).unwrap_or("env:CHAT_URL")
                ),
            );
        }
        if let Some(rule) = document.get("push_rule") {
            let met = match (rule, &self.push_rule) {
                (Json::Null, live) => live.is_none(),
                (rule, Some(live)) => are_fields_met(rule, live, &[]),
                (_, None) => false,
            };
            require(met, "push_rule".to_owned());
        }
        for section in document["unlisted"].as_object().into_iter().flat_map(Object::keys) {
            let (there, listed) = match section.as_str() {
                "variables" => (self.variables.len(), entries(document, "variables").count()),
                "hooks" => (self.hooks.len(), entries(document, "hooks").count()),
                _ => (self.members.len(), entries(document, "members").count()),
            };
            require(there <= listed, format!("{section}/unlisted"));
        }
        unmet
    }

    fn undeclared(&self, path: &str, document: &Json) -> Vec<String> {
        let mut lines = Vec::new();
        if document.get("fork_of").is_none() {
            lines.push(format!("{path}#fork_of = {:?}", self.fork_of));
        }
        let is_kept = |section: &str| document["unlisted"][section] != "delete";
        for (name, value) in &self.settings {
            if document["settings"].get(name).is_none() {
                lines.push(format!("{path}#settings/{name} = {value}"));
            }
        }
        let declared: Vec<_> = entries(document, "variables").map(variable_identity).collect();
        for (key, value) in
            self.variables.iter().filter(|(key, _)| is_kept("variables") && !declared.contains(key))
        {
            lines.push(format!(
                "{path}#variables/{}@{} = {}",
                key.0,
                key.1,
                Json::Object(value.clone())
            ));
        }
        for entry in entries(document, "variables").filter(|entry| entry["state"] != "absent") {
            for (name, value) in self
                .variables
                .get(&variable_identity(entry))
                .into_iter()
                .flatten()
                .filter(|(name, _)| entry.get(name).is_none())
            {
                let (key, scope) = variable_identity(entry);
                lines
                    .push(format!("{FIELD_PREFIX}{path}#variables/{key}@{scope}/{name} = {value}"));
            }
        }
        for (section, identity, there) in self.named_entries() {
            for (name, value) in there {
                let is_it = |entry: &&Json| entry[identity[0]] == name.as_str();
                let Some(entry) = entries(document, section).find(is_it) else {
                    if is_kept(section) {
                        let value = Json::Object(value.clone());
                        lines.push(format!("{path}#{section}/{name} = {value}"));
                    }
                    continue;
                };
                for (field, value) in value.iter().filter(|_| entry["state"] != "absent") {
                    if entry.get(field).is_none() {
                        lines.push(format!(
                            "{FIELD_PREFIX}{path}#{section}/{name}/{field} = {value}"
                        ));
                    }
                }
            }
        }
        let urls = |entry: &Json| {
            let before = entry["previously"].as_array().cloned().unwrap_or_default();
            before.into_iter().chain([resolve(&entry["url"])]).collect::<Vec<_>>()
        };
        let declared: Vec<_> = entries(document, "hooks").flat_map(urls).collect();
        for entry in entries(document, "hooks").filter(|entry| entry["state"] != "absent") {
            let there = self.hooks.iter().find(|hook| urls(entry).contains(&hook["url"]));
            for (name, value) in
                there.into_iter().flatten().filter(|(name, _)| entry.get(name.as_str()).is_none())
            {
                lines.push(format!("{FIELD_PREFIX}{path}#hooks/{}/{name} = {value}", entry["url"]));
            }
        }
        for hook in
            self.hooks.iter().filter(|hook| is_kept("hooks") && !declared.contains(&hook["url"]))
        {
            lines.push(format!("{path}#hooks = {}", Json::Object(hook.clone())));
        }
        // A rule is declared by field, or as a whole.
        if document.get("push_rule").is_none_or(|rule| !rule.is_null()) {
            for (name, value) in self
                .push_rule
                .iter()
                .flatten()
                .filter(|(name, _)| document["push_rule"].get(name.as_str()).is_none())
            {
                lines.push(format!("{path}#push_rule/{name} = {value}"));
            }
        }
        lines
    }
}
