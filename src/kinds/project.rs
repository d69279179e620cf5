//! The project itself (reference 2, 4.2 and 4.3): how one is found and created. undrift never
//! deletes one.

use std::sync::LazyLock;

use super::{creation::Creation, settings::fields::Create as CreateOnly};
use crate::{
    diagnostic::Severity,
    field::{Route, Scope},
    kind::{
        Call, Facts, Fault, Home, Itself, Job, Kind, NamespaceOwner, Place, Rules, Shape, Table,
        Unable, calls::Act,
    },
    level::MAINTAINER,
    operation,
    page::Rows,
    schema,
    value::{Fields, Json, Object, Value},
};

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<CreateOnly>()));

/// The key `create`: the project itself, with what only its create takes.
pub static KIND: Kind = Kind {
    section: "create",
    noun: "project",
    shape: Shape::Container,
    identity: &[],
    required: &[],
    homes: &[Home {
        scope: Scope::Project,
        fields: &TABLE,
        place: Place::Itself(&Itself {
            creator: MAINTAINER,
            get: |path| operation::PROJECT_GET.request().arg("id", path),
            path: "path_with_namespace",
            facts,
            looked_at: &[
                "id",
                "path_with_namespace",
                "archived",
                "permissions",
                "owner",
                "namespace",
                "empty_repo",
                "marked_for_deletion_on",
                "marked_for_deletion_at",
            ],
            level: None,
        }),
        rows: Rows::with_id(&["path_with_namespace"]),
        acts: &[operation::PROJECT_CREATE, operation::PROJECT_CREATE_FOR_USER],
        ..Home::PLAIN
    }],
    rules: &Project,
};

struct Project;

impl Rules for Project {
    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        match job.act {
            Act::Create(declared) => create(job, declared),
            Act::Change(..) | Act::Remove(_) => Err(Unable::Needless),
        }
    }

    /// What is wrong with the `create:` and the `settings:` of one project together.
    fn check(&self, declared: &Fields, _written: bool, report: &mut dyn FnMut(Fault)) {
        check_create(declared, report);
    }
}

/// What the object of a project says whatever is declared.
fn facts(raw: &Object) -> Facts {
    let in_personal = raw.get("namespace").is_some_and(|namespace| namespace["kind"] == "user");
    let owner = raw.get("owner").filter(|_| in_personal);
    let marks = ["marked_for_deletion_on", "marked_for_deletion_at"].map(|name| raw.get(name));
    let mark = marks.into_iter().flatten().find(|mark| !mark.is_null());
    Facts {
        id: raw.get("id").and_then(Json::as_u64),
        archived: raw.get("archived").and_then(Json::as_bool).unwrap_or(false),
        personal_owner: owner.and_then(|owner| owner["id"].as_u64()),
        level: raw.get("permissions").map(level),
        deleting: mark.map(|mark| mark.as_str().map(str::to_owned)),
    }
}

/// The caller's highest level of access; 0 is none.
fn level(permissions: &Json) -> u8 {
    let level = |name| permissions[name]["access_level"].as_u64();
    let level = level("project_access").max(level("group_access"));
    level.and_then(|level| u8::try_from(level).ok()).unwrap_or(0)
}

fn create(job: &Job<'_>, declared: &Fields) -> Result<Vec<Call>, Unable> {
    // Without a namespace the service would take the caller's own: rather nothing than a project in
    // the wrong place.
    let Some(namespace) = &job.target.namespace else { return Err(Unable::Needless) };
    let (post, route) = match namespace.owner {
        NamespaceOwner::User(user) => (
            operation::PROJECT_CREATE_FOR_USER.request().arg("user_id", user),
            Route::CreateForUser,
        ),
        NamespaceOwner::Group | NamespaceOwner::Caller => {
            (operation::PROJECT_CREATE.request(), Route::Create)
        }
    };
    let namespace = match route {
        Route::Create => Fields::from([("namespace_id".to_owned(), namespace.id.sent().into())]),
        _ => Fields::new(),
    };
    Creation { post, route, edit: operation::PROJECT_UPDATE, within: namespace }
        .calls(job, declared)
}

/// Whether what a project is created with makes its first branch at once. An import or a template
/// does so later, in the background.
pub(super) fn makes_a_branch(declared: &Fields) -> bool {
    is_on(declared, "initialize_with_readme")
}

fn is_on(fields: &Fields, name: &str) -> bool {
    fields.get(name).and_then(Value::plain).and_then(Json::as_bool).unwrap_or(false)
}

/// What is wrong with the `settings:` and the `create:` of one project together (reference 2, 4.3).
fn check_create(declared: &Fields, report: &mut dyn FnMut(Fault)) {
    let mut fault = |field, message: &str, help: &str| {
        report(Fault {
            severity: Severity::Error,
            code: "create-conflict",
            field: Some(field),
            message: message.into(),
            help: Some(help.into()),
        });
    };
    let readme = is_on(declared, "initialize_with_readme");
    let import = declared.contains_key("import_url");
    let template = ["template_name", "template_project_id"]
        .into_iter()
        .find(|name| declared.contains_key(*name));
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
        if declared.contains_key(name) && !is_on(declared, "use_custom_template") {
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
        field::Scope,
        kind::{
            Names, Target,
            testing::{collect, fields, new_target, requests},
        },
        operation::{PROJECT_CREATE, PROJECT_CREATE_FOR_USER, PROJECT_UPDATE, Request, Write},
        release::Known,
    };

    fn create_at(target: &Target, declared: &Fields) -> Vec<Request<Write>> {
        let section = KIND.in_scope(Scope::Project).unwrap();
        let job = Job {
            section,
            target,
            names: &Names::default(),
            release: Known::NotAsked,
            is_alone: true,
            act: Act::Create(declared),
        };
        requests(Project.calls(&job).unwrap_or_default())
    }

    fn create(owner: NamespaceOwner, declared: &Fields) -> Vec<Request<Write>> {
        create_at(&new_target(owner), declared)
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
        assert_eq!(create(NamespaceOwner::Group, &declared), [post]);
        let declared = fields(json!({"default_branch": "trunk"}));
        let post = PROJECT_CREATE
            .request()
            .fields(fields(json!({"name": "shop", "path": "shop", "namespace_id": 3})));
        assert_eq!(create(NamespaceOwner::Group, &declared), [post]);
    }

    #[test]
    fn a_project_is_never_created_where_nobody_said() {
        let target = Target { namespace: None, ..new_target(NamespaceOwner::Group) };
        assert_eq!(create_at(&target, &Fields::new()), []);
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
                let mut both = fields(settings.clone());
                both.extend(fields(create.clone()));
                check_create(&both, report);
            });
            assert_eq!(
                found.iter().map(|fault| fault.0).collect::<Vec<_>>(),
                expected,
                "{settings} {create}"
            );
        }
    }
}
