//! The settings of a project (reference 2, 4.3; reference 1, 2.8).
//!
//! They are part of the project object, so this kind also creates the project: a POST with what a
//! create accepts, a PUT with what only an edit accepts, and the avatar on its own. It has no way
//! to delete one: undrift never does. The fields are in [`fields`].

pub mod fields;

use std::sync::LazyLock;

use crate::{
    diagnostic::Severity,
    field::{Field, Route},
    kind::{
        self, Fault, Kind, LiveEntry, NamespaceOwner, Shape, Source, Spec, Subject, Table, Target,
    },
    operation::{self, Request, Write},
    schema,
    value::{Fields, Json, Object, Value},
};

pub use fields::{Create, ProjectSettings};

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<ProjectSettings>()));
static CREATE_TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Create>()));

/// The fields of a manifest's `create:`.
pub fn create_table() -> &'static Table {
    &CREATE_TABLE
}

/// The section `settings`.
pub struct Settings;

impl Kind for Settings {
    fn section(&self) -> &'static str {
        "settings"
    }
    fn noun(&self) -> &'static str {
        "settings"
    }
    fn shape(&self) -> Shape {
        Shape::Mapping
    }
    fn table(&self) -> &'static Table {
        &TABLE
    }
    fn source(&self, _target: &Target) -> Source {
        Source::Project
    }
    // An installation may leave deprecated fields out; what replaces them says the same.
    fn decode(&self, spec: &Spec, raw: &Object) -> Option<Json> {
        // Some releases answer with the branch that an empty repository will get: it is not there.
        if spec.name == "default_branch" && raw.get("empty_repo") == Some(&Json::Bool(true)) {
            return Some(Json::Null);
        }
        let live = spec.field.live_name(&spec.name).and_then(|name| raw.get(name));
        if spec.name == "container_expiration_policy" {
            return live.map(policy);
        }
        live.cloned().or_else(|| {
            let twin = raw.get(spec.field.replaced_by.as_deref()?)?;
            if spec.schema["type"] == "boolean" {
                kind::enabled(twin).map(Json::from)
            } else {
                Some(twin.clone())
            }
        })
    }
    fn encode(&self, _name: &str, value: &Value) -> Value {
        match value {
            Value::Plain(Json::Object(object)) => {
                let inner = object.iter().map(|(name, value)| {
                    (name.clone(), if value.is_null() { "".into() } else { value.clone() })
                });
                Value::Plain(Json::Object(inner.collect()))
            }
            _ => kind::cleared(value),
        }
    }

    // The service refuses a default branch that is not there, and an empty repository has none.
    fn waits(
        &self,
        name: &str,
        declared: &Fields,
        live: Option<&LiveEntry>,
    ) -> Option<&'static str> {
        let is_empty = || match live {
            Some(live) => live.fields.get(name).is_some_and(Json::is_null),
            None => !brings_contents(declared),
        };
        (name == "default_branch" && is_empty()).then_some("until the repository has a branch")
    }

    fn create(&self, subject: Subject<'_>) -> Vec<Request<Write>> {
        // Without a namespace the service would take the caller's own: rather nothing than a
        // project in the wrong place.
        let Some(namespace) = &subject.target.namespace else { return Vec::new() };
        let (mut post, route) = match namespace.owner {
            NamespaceOwner::User(user) => (
                operation::PROJECT_CREATE_FOR_USER.request().arg("user_id", user),
                Route::CreateForUser,
            ),
            NamespaceOwner::Group | NamespaceOwner::Caller => {
                (operation::PROJECT_CREATE.request(), Route::Create)
            }
        };
        let slug = subject.target.path.rsplit('/').next().unwrap_or_default();
        let mut first =
            Fields::from([("name".to_owned(), slug.into()), ("path".to_owned(), slug.into())]);
        if route == Route::Create {
            first.insert("namespace_id".into(), Json::from(namespace.id).into());
        }
        let mut then = Fields::new();
        let is_sent = |name: &str, value| {
            !says_nothing(name, value) && self.waits(name, subject.declared, None).is_none()
        };
        for (name, value) in subject.declared.iter().filter(|(name, value)| is_sent(name, value)) {
            let field = treatment(name);
            let body = if field.accepted.on(route) && !comes_later(name, value, subject.declared) {
                &mut first
            } else if field.accepted.on(Route::Edit) {
                &mut then
            } else {
                continue;
            };
            body.insert(field.sent_name(name).to_owned(), self.encode(name, value));
        }
        post = post.fields(first);
        std::iter::once(post).chain(edits(subject.target, then)).collect()
    }
    fn update(
        &self,
        subject: Subject<'_>,
        _live: &LiveEntry,
        changed: &[&str],
    ) -> Vec<Request<Write>> {
        edits(subject.target, self.edit_body(subject.declared, changed))
    }

    fn check(&self, declared: &Fields, report: &mut dyn FnMut(Fault)) {
        let policy = declared.get("container_expiration_policy").and_then(Value::plain);
        if policy
            .is_some_and(|p| p.get("name_regex").is_some() && p.get("name_regex_delete").is_some())
        {
            report(Fault {
                code: "both-spellings",
                field: Some("container_expiration_policy"),
                message: "`name_regex` and `name_regex_delete` are two names of one thing".into(),
                help: Some("leave out `name_regex`, the deprecated one".into()),
            });
        }
    }
    fn check_written(&self, declared: &Fields, report: &mut dyn FnMut(Severity, Fault)) {
        if declared.get("import_url").and_then(Value::text).is_some_and(has_user) {
            let fault = Fault {
                code: "literal-secret",
                field: Some("import_url"),
                message: "an `import_url` with credentials must be a reference to a secret".into(),
                help: Some(
                    "put the whole address into an environment variable and write `{env: NAME}`"
                        .into(),
                ),
            };
            report(Severity::Error, fault);
        }
    }
}

/// Whether a URL names a user, and with it often a password.
fn has_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    // An address such as `git@host:path` has a user and no password.
    url.contains("://")
        && rest.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// How the service treats a field of `settings:` or `create:`.
fn treatment(name: &str) -> &'static Field {
    CREATE_TABLE.get(name).map_or_else(|| TABLE.field(name), |spec| &spec.field)
}

/// Whether a new project is the same without this: no avatar to clear, and a switch of `create:`
/// that is off. The service has answered a `use_custom_template` of false with an internal error,
/// so what is off is left out.
fn says_nothing(name: &str, value: &Value) -> bool {
    (treatment(name).upload && value.is_null())
        || (CREATE_TABLE.get(name).is_some() && value.plain() == Some(&Json::Bool(false)))
}

/// Whether a field that a create accepts has to wait for the edit: a file, because a form cannot
/// carry what is nested, and the default branch unless the create makes one (reference 2, 4.3).
fn comes_later(name: &str, value: &Value, declared: &Fields) -> bool {
    matches!(value, Value::File(_))
        || (name == "default_branch" && !is_on(declared, "initialize_with_readme"))
}

/// Whether what a project is created with fills its repository.
fn brings_contents(declared: &Fields) -> bool {
    let has = |name: &&str| declared.contains_key(*name);
    is_on(declared, "initialize_with_readme")
        || ["import_url", "template_name", "template_project_id"].iter().any(has)
}

/// The edits that carry `body`: one for data, one for each file.
fn edits(target: &Target, body: Fields) -> Vec<Request<Write>> {
    let (files, data): (Fields, Fields) =
        body.into_iter().partition(|(_, value)| matches!(value, Value::File(_)));
    let files = files.into_iter().map(|file| Fields::from([file]));
    let bodies = std::iter::once(data).filter(|data| !data.is_empty()).chain(files);
    bodies
        .map(|body| operation::PROJECT_UPDATE.request().arg("id", target.id()).fields(body))
        .collect()
}

/// The clean-up policy with the keys that can be declared. Either name of the expression reads as
/// the other where one is missing.
fn policy(live: &Json) -> Json {
    let Some(live) = live.as_object() else { return live.clone() };
    let properties =
        TABLE.get("container_expiration_policy").map(|spec| &spec.schema["properties"]);
    let known = |name: &str| properties.is_some_and(|p| p.get(name).is_some());
    let mut policy: Object =
        live.iter().filter(|(name, _)| known(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    for (name, twin) in [("name_regex", "name_regex_delete"), ("name_regex_delete", "name_regex")] {
        if let Some(value) = live.get(twin).filter(|_| live.get(name).is_none_or(Json::is_null)) {
            policy.insert(name.into(), value.clone());
        }
    }
    Json::Object(policy)
}

fn is_on(fields: &Fields, name: &str) -> bool {
    fields.get(name).and_then(Value::plain).and_then(Json::as_bool).unwrap_or(false)
}

/// What is wrong with the `settings:` and the `create:` of one project together, seen without the
/// service (reference 2, 4.3).
pub fn check_create(settings: &Fields, create: &Fields, report: &mut dyn FnMut(Fault)) {
    let mut fault = |field, message: &str, help: &str| {
        report(Fault {
            code: "create-conflict",
            field: Some(field),
            message: message.into(),
            help: Some(help.into()),
        });
    };
    let readme = is_on(create, "initialize_with_readme");
    let import = settings.contains_key("import_url");
    let template = ["template_name", "template_project_id"]
        .into_iter()
        .find(|name| create.contains_key(*name));
    if readme && import {
        fault(
            "initialize_with_readme",
            "a project is not created both with a readme and from `import_url`",
            "leave out `initialize_with_readme`: the import brings the contents",
        );
    }
    if let Some(template) = template.filter(|_| readme || import) {
        let other = if readme { "with a readme" } else { "from `import_url`" };
        fault(
            template,
            &format!("a project is not created both from a template and {other}"),
            "keep one source of its contents",
        );
    }
    for name in ["template_project_id", "group_with_project_templates_id"] {
        if create.contains_key(name) && !is_on(create, "use_custom_template") {
            fault(
                name,
                &format!("`{name}` works only for a custom template"),
                "add `use_custom_template: true` below `create:`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            Users,
            testing::{collect, faults, fields, live, new_target, target, update},
        },
        operation::{PROJECT_CREATE, PROJECT_CREATE_FOR_USER, PROJECT_UPDATE},
    };

    fn create(owner: NamespaceOwner, declared: &Fields) -> Vec<Request<Write>> {
        Settings.create(Subject { target: &new_target(owner), declared, users: &Users::new() })
    }

    fn edit(body: Json) -> Request<Write> {
        PROJECT_UPDATE.request().arg("id", "acme/shop").fields(fields(body))
    }

    #[test]
    fn a_create_carries_what_it_accepts_and_edits_carry_the_rest() {
        let mut declared = fields(json!({
            "visibility": "private",
            "description": null,
            "merge_commit_template": "%{title}",
            "container_expiration_policy": {"enabled": true, "name_regex_keep": null},
            "ci_default_git_depth": 20,
            "initialize_with_readme": true,
            "default_branch": "trunk",
            "template_project_id": 5,
            "use_custom_template": false,
            "new_attribute": 1,
        }));
        declared.insert("avatar".into(), Value::File("a.png".into()));
        let avatar = || {
            PROJECT_UPDATE
                .request()
                .arg("id", "acme/shop")
                .fields([("avatar".to_owned(), Value::File("a.png".into()))].into())
        };
        let policy = json!({"enabled": true, "name_regex_keep": ""});

        let own = PROJECT_CREATE.request().fields(fields(json!({
            "name": "shop", "path": "shop", "namespace_id": 3, "visibility": "private", "description": "",
            "container_expiration_policy_attributes": policy, "initialize_with_readme": true, "default_branch": "trunk",
            "template_project_id": 5, "new_attribute": 1,
        })));
        let then = edit(json!({"merge_commit_template": "%{title}", "ci_default_git_depth": 20}));
        assert_eq!(create(NamespaceOwner::Group, &declared), [own.clone(), then.clone(), avatar()]);
        assert_eq!(create(NamespaceOwner::Caller, &declared), [own, then, avatar()]);

        let for_user = PROJECT_CREATE_FOR_USER.request().arg("user_id", 9).fields(fields(json!({
            "name": "shop", "path": "shop", "visibility": "private", "description": "", "merge_commit_template": "%{title}",
            "initialize_with_readme": true, "default_branch": "trunk", "new_attribute": 1,
        })));
        let then = edit(
            json!({"container_expiration_policy_attributes": policy, "ci_default_git_depth": 20}),
        );
        assert_eq!(create(NamespaceOwner::User(9), &declared), [for_user, then, avatar()]);
    }

    #[test]
    fn a_create_with_nothing_to_add_is_one_request() {
        let declared = fields(json!({"name": "Shop", "avatar": null}));
        let post = PROJECT_CREATE
            .request()
            .fields(fields(json!({"name": "Shop", "path": "shop", "namespace_id": 3})));
        assert_eq!(create(NamespaceOwner::Group, &declared), [post]);
    }

    #[test]
    fn the_default_branch_waits_unless_the_create_makes_it() {
        let declared = fields(json!({"default_branch": "trunk", "template_name": "rails"}));
        let post = PROJECT_CREATE.request().fields(fields(
            json!({"name": "shop", "path": "shop", "namespace_id": 3, "template_name": "rails"}),
        ));
        assert_eq!(
            create(NamespaceOwner::Group, &declared),
            [post, edit(json!({"default_branch": "trunk"}))]
        );
    }

    #[test]
    fn the_default_branch_of_an_empty_repository_is_not_sent() {
        let declared = fields(json!({"default_branch": "trunk"}));
        let post = PROJECT_CREATE
            .request()
            .fields(fields(json!({"name": "shop", "path": "shop", "namespace_id": 3})));
        assert_eq!(create(NamespaceOwner::Group, &declared), [post]);
        for (raw, waits) in [
            (json!({"empty_repo": true, "default_branch": null}), true),
            (json!({"empty_repo": true, "default_branch": "main"}), true),
            (json!({"default_branch": null}), true),
            (json!({"empty_repo": false, "default_branch": "main"}), false),
            (json!({}), false),
        ] {
            let entry = live(&Settings, raw.clone());
            assert_eq!(
                Settings.waits("default_branch", &declared, Some(&entry)).is_some(),
                waits,
                "{raw}"
            );
            assert_eq!(Settings.waits("description", &declared, Some(&entry)), None);
        }
    }

    #[test]
    fn a_project_is_never_created_where_nobody_said() {
        let target = Target { namespace: None, ..new_target(NamespaceOwner::Group) };
        assert_eq!(
            Settings.create(Subject {
                target: &target,
                declared: &Fields::new(),
                users: &Users::new()
            }),
            []
        );
    }

    #[test]
    fn an_edit_carries_what_changes_and_files_on_their_own() {
        let put = |body| PROJECT_UPDATE.request().arg("id", 7).fields(body);
        let mut declared =
            fields(json!({"description": null, "visibility": "private", "topics": ["a"]}));
        assert_eq!(
            update(&Settings, &declared, json!({}), &["description", "topics"]),
            [put(fields(json!({"description": "", "topics": ["a"]})))]
        );
        declared.insert("avatar".into(), Value::File("a.png".into()));
        let avatar = || put(Fields::from([("avatar".into(), Value::File("a.png".into()))]));
        assert_eq!(update(&Settings, &declared, json!({}), &["avatar"]), [avatar()]);
        assert_eq!(
            update(&Settings, &declared, json!({}), &["avatar", "visibility"]),
            [put(fields(json!({"visibility": "private"}))), avatar()]
        );
        let cleared = fields(json!({"avatar": null}));
        assert_eq!(
            update(&Settings, &cleared, json!({}), &["avatar"]),
            [put(fields(json!({"avatar": ""})))]
        );
        assert_eq!(Settings.delete(&target(), &live(&Settings, json!({}))), []);
    }

    #[test]
    fn deprecated_spellings_read_from_what_replaces_them() {
        for (level, enabled) in [("disabled", false), ("private", true), ("enabled", true)] {
            let read =
                live(&Settings, json!({"builds_access_level": level, "topics": ["a"]})).fields;
            assert_eq!(
                (&read["jobs_enabled"], &read["tag_list"]),
                (&json!(enabled), &json!(["a"]))
            );
        }
        // What the service says itself goes before.
        let read =
            live(&Settings, json!({"builds_access_level": "enabled", "jobs_enabled": false}))
                .fields;
        assert_eq!(read["jobs_enabled"], json!(false));
        assert!(!live(&Settings, json!({})).fields.contains_key("jobs_enabled"));
    }

    #[test]
    fn the_clean_up_policy_compares_by_the_keys_that_are_declared() {
        let raw = json!({"container_expiration_policy": {"cadence": "1d", "name_regex": ".*", "name_regex_keep": null, "next_run_at": "x"}});
        let read = &live(&Settings, raw).fields["container_expiration_policy"];
        assert_eq!(
            *read,
            json!({"cadence": "1d", "name_regex": ".*", "name_regex_keep": null, "name_regex_delete": ".*"})
        );
        for (declared, same) in [
            (json!({"cadence": "1d"}), true),
            (json!({"cadence": "7d"}), false),
            (json!({"name_regex": ".*"}), true),
            (json!({"name_regex_delete": ".*"}), true),
            (json!({"name_regex_keep": null}), true),
            (json!({"name_regex_keep": ""}), true),
            (json!({"enabled": true}), false),
        ] {
            assert_eq!(
                Settings.same("container_expiration_policy", &declared, read),
                same,
                "{declared}"
            );
        }
        let both = fields(
            json!({"container_expiration_policy": {"name_regex": "a", "name_regex_delete": "a"}}),
        );
        assert_eq!(faults(&Settings, &both), [("container_expiration_policy", "both-spellings")]);
    }

    #[test]
    fn topics_compare_without_order() {
        assert!(Settings.same("topics", &json!(["b", "a"]), &json!(["a", "b"])));
        assert!(!Settings.same("topics", &json!(["a"]), &json!(["a", "b"])));
    }

    #[test]
    fn combinations_that_a_create_cannot_have_are_named() {
        let import = json!({"import_url": "from elsewhere"});
        let branch = json!({"default_branch": "main"});
        for (settings, create, expected) in [
            (json!({}), json!({}), vec![]),
            (import.clone(), json!({}), vec![]),
            (import.clone(), json!({"initialize_with_readme": false}), vec![]),
            (
                import.clone(),
                json!({"initialize_with_readme": true}),
                vec!["initialize_with_readme"],
            ),
            (import, json!({"template_name": "rails"}), vec!["template_name"]),
            (
                json!({}),
                json!({"template_name": "rails", "initialize_with_readme": true}),
                vec!["template_name"],
            ),
            (branch.clone(), json!({}), vec![]),
            (branch.clone(), json!({"initialize_with_readme": true}), vec![]),
            (branch, json!({"template_name": "rails"}), vec![]),
            (json!({}), json!({"template_project_id": 1, "use_custom_template": true}), vec![]),
            (json!({}), json!({"template_project_id": 1}), vec!["template_project_id"]),
            (
                json!({}),
                json!({"group_with_project_templates_id": 1}),
                vec!["group_with_project_templates_id"],
            ),
        ] {
            let found = collect(|report| {
                check_create(&fields(settings.clone()), &fields(create.clone()), report);
            });
            assert_eq!(
                found.iter().map(|fault| fault.0).collect::<Vec<_>>(),
                expected,
                "{settings} {create}"
            );
        }
    }
}
