//! The project itself: its lookup, creation, renaming, move, deletion and restoration.

use crate::{
    kind::{
        ContainerFacts, ContainerLookup, ImportState, LiveNamespace, NamespaceOwner,
        calls::Lifecycle, needs, plain_text,
    },
    level::MAINTAINER,
};

use super::{
    creation::{self, CreationRequests},
    fork_of::FORK_OF,
    prelude::*,
    source,
};

/// Finds and reads a project.
pub(super) static LOOKUP: ContainerLookup = ContainerLookup {
    creator_level: MAINTAINER,
    get_request: |path| operation::PROJECT_GET.request().with_argument("id", path),
    path_field: "path_with_namespace",
    read_facts,
    secret_facts: &[],
    import_fields: &[FORK_OF, source::IMPORT_FIELD],
    level_request: None,
};

pub(super) struct ProjectRules;

impl KindRules for ProjectRules {
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        match context.purpose {
            CallPurpose::Create(declared) => creation_calls(context, declared),
            CallPurpose::Container(Lifecycle::Move(former_location)) => {
                let ops = [operation::PROJECT_UPDATE, operation::PROJECT_TRANSFER];
                Ok(creation::relocation_calls(context, former_location, ops, "namespace"))
            }
            CallPurpose::Container(Lifecycle::Delete) => {
                Ok(vec![context.target.request(operation::PROJECT_DELETE).into()])
            }
            CallPurpose::Container(Lifecycle::Restore) => {
                Ok(vec![context.target.request(operation::PROJECT_RESTORE).into()])
            }
            CallPurpose::Change(..) | CallPurpose::Remove(_) => Err(NoCalls::NotNeeded),
        }
    }

    /// Checks `create:` and `settings:` of one project together.
    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        check_create(declared, report);
        // An undeclared setting gets the service's default, `enabled`.
        let Some(settings) = super::find_section(Scope::Project, super::settings::SECTION) else {
            return;
        };
        for (name, _, max_field, max_value) in
            needs::fields_above_limit(settings, |name| match declared.get(name) {
                Some(value) => value.plain_json().cloned(),
                None => Some("enabled".into()),
            })
        {
            if declared.contains_key(max_field) && !declared.contains_key(name) {
                let fault =
                    EntryFault::for_field(fault_text::TOO_VISIBLE, max_field).fill("name", name);
                report(fault.fill("limit", &plain_text(&max_value)));
            }
        }
    }

    fn effects(&self, _subject_id: Option<u64>, _before: &Object, after: &Object) -> Vec<Effect> {
        let mut effects = Vec::new();
        if source::has_undeclared_contents(after) {
            effects.push(Effect::AddsContents);
        }
        if is_true(after, "initialize_with_readme") {
            effects.push(Effect::provides(Capability::Branch));
        }
        if source::is_imported(after)
            && after.get("visibility").is_some_and(|visibility| visibility != "public")
        {
            let note = "first has the service's visibility for imports; an edit right after sets the declared one";
            effects.push(Effect::SideEffect(note.to_owned()));
        }
        effects
    }
}

/// Reads the facts in the object of a project.
fn read_facts(raw: &Object) -> ContainerFacts {
    let is_personal = raw.get("namespace").is_some_and(|namespace| namespace["kind"] == "user");
    let owner = raw.get("owner").filter(|_| is_personal);
    let deletion_marks =
        ["marked_for_deletion_on", "marked_for_deletion_at"].map(|name| raw.get(name));
    let deletion_mark = deletion_marks.into_iter().flatten().find(|mark| !mark.is_null());
    // With a licence, the complete object of a project contains these fields.
    let is_licensed = LICENSED_FIELDS.iter().any(|name| raw.contains_key(*name));
    ContainerFacts {
        id: raw.get("id").and_then(Json::as_u64),
        name: value::text(raw, "name").map(str::to_owned),
        visibility: value::text(raw, "visibility").map(str::to_owned),
        is_archived: raw.get("archived").and_then(Json::as_bool).unwrap_or(false),
        has_no_branch: is_true(raw, "empty_repo"),
        personal_owner_id: owner.and_then(|owner| owner["id"].as_u64()),
        caller_level: raw.get("permissions").map(caller_level),
        deletion_mark: deletion_mark.map(|mark| mark.as_str().map(str::to_owned)),
        import_state: import_state(raw),
        tier: if is_licensed { Tier::Premium } else { Tier::Free },
        disabled_settings: raw
            .iter()
            .filter(|(_, setting)| *setting == "disabled")
            .map(|(name, _)| name.clone())
            .collect(),
        is_unlicensed: raw.contains_key("merge_method") && !is_licensed,
    }
}

/// Fields that the service shows only with a licence.
const LICENSED_FIELDS: [&str; 2] = ["mirror", "approvals_before_merge"];

/// The state of an import. The reference lists only two words of `import_status`; unknown words are
/// treated as running. A pull mirror uses the same field for its regular updates.
fn import_state(raw: &Object) -> Option<ImportState> {
    if is_true(raw, "mirror") {
        return None;
    }
    match value::text(raw, "import_status")? {
        "none" | "finished" => None,
        "failed" => {
            let error = value::text(raw, "import_error").map(crate::secret::judge::mask_url);
            Some(ImportState::Failed(error.map(|reason| text::escape(&reason).into_owned())))
        }
        "canceled" => Some(ImportState::Failed(Some("it was canceled".to_owned()))),
        _ => Some(ImportState::Running),
    }
}

/// The caller's highest level of access; 0 means none.
fn caller_level(permissions: &Json) -> u8 {
    let levels = ["project_access", "group_access"];
    let levels = levels.map(|name| permissions[name]["access_level"].as_u64());
    let level = levels.into_iter().max().flatten();
    level.and_then(|level| u8::try_from(level).ok()).unwrap_or(0)
}

fn creation_calls(context: &CallContext<'_>, declared: &Fields) -> Calls {
    // Without a namespace, the service would create the project in the caller's namespace.
    let Some(namespace) = &context.target.namespace else { return Err(NoCalls::NotNeeded) };
    let mut calls = match source::source_calls(context, namespace, declared) {
        Some(calls) => calls?,
        None => plain_creation_calls(context, namespace, declared)?,
    };
    calls.extend(source::import_members_call(context, declared)?);
    Ok(calls)
}

/// The calls that create a project that is neither a fork nor an import from another host.
fn plain_creation_calls(
    context: &CallContext<'_>,
    namespace: &LiveNamespace,
    declared: &Fields,
) -> Calls {
    let (create_request, request_type) = match namespace.owner {
        NamespaceOwner::User(user_id) => (
            operation::PROJECT_CREATE_FOR_USER.request().with_argument("user_id", user_id),
            WriteRequest::CreateForUser,
        ),
        NamespaceOwner::Group | NamespaceOwner::Caller => {
            (operation::PROJECT_CREATE.request(), WriteRequest::Create)
        }
    };
    let mut base_fields = context.target.naming_fields();
    if request_type == WriteRequest::Create {
        base_fields.insert("namespace_id".to_owned(), namespace.id.to_json().into());
    }
    let accepts = &|_: &str, field: &Field, _: &str| field.accepted.includes(request_type);
    CreationRequests { create_request, accepts, edit_op: operation::PROJECT_UPDATE, base_fields }
        .plan_calls(context, declared)
}

/// Reports sources of contents that exclude each other, and fields that need `use_custom_template`.
fn check_create(declared: &Fields, report: Reporter<'_>) {
    source::check_sources(super::container(Scope::Project).0.table(), declared, report);
    for name in ["template_project_id", "group_with_project_templates_id"] {
        if declared.contains_key(name) && declared.flag("use_custom_template") != Some(true) {
            report(EntryFault::for_field(fault_text::TEMPLATE, name));
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
            NameIndex, Target,
            testing::{collect_faults, fields, new_target, requests},
        },
        operation::{
            PROJECT_CREATE, PROJECT_CREATE_FOR_USER, PROJECT_TRANSFER, PROJECT_UPDATE, Request,
        },
        release::DetectedRelease,
    };

    fn create_at(target: &Target, declared: &Fields) -> Vec<Request<Write>> {
        let section = crate::catalogue::container(Scope::Project).0;
        let context = CallContext {
            section,
            target,
            names: &NameIndex::default(),
            release: DetectedRelease::NotRequested,
            has_unique_address: true,
            purpose: CallPurpose::Create(declared),
        };
        requests(ProjectRules.calls(&context).unwrap_or_default())
    }

    fn create(owner: NamespaceOwner, declared: &Fields) -> Vec<Request<Write>> {
        create_at(&new_target(owner), declared)
    }

    fn edit(body: Json) -> Request<Write> {
        PROJECT_UPDATE.request().with_container("acme/shop", None).with_fields(fields(body))
    }

    #[test]
    fn a_create_contains_the_fields_that_it_accepts_and_edits_the_rest() {
        let mut declared = fields(json!({
            "visibility": "private",
            "description": null,
            "merge_commit_template": "%{title}",
            "container_expiration_policy": {"enabled": false, "name_regex_keep": null},
            "ci_default_git_depth": 20,
            "initialize_with_readme": true,
            "default_branch": "trunk",
            "template_project_id": 5,
            "use_custom_template": false,
            "new_attribute": 1,
        }));
        declared.insert("avatar".into(), Value::File("a.png".into()));
        let avatar_request = || {
            PROJECT_UPDATE
                .request()
                .with_container("acme/shop", None)
                .with_fields([("avatar".to_owned(), Value::File("a.png".into()))].into())
        };
        let policy = json!({"enabled": false, "name_regex_keep": ""});

        let post = PROJECT_CREATE.request().with_fields(fields(json!({
            "name": "shop", "path": "shop", "namespace_id": 3, "visibility": "private", "description": "",
            "container_expiration_policy_attributes": policy, "initialize_with_readme": true, "default_branch": "trunk",
            "template_project_id": 5, "new_attribute": 1,
        })));
        let edit_request =
            edit(json!({"merge_commit_template": "%{title}", "ci_default_git_depth": 20}));
        assert_eq!(
            create(NamespaceOwner::Group, &declared),
            [post.clone(), edit_request.clone(), avatar_request()]
        );
        assert_eq!(
            create(NamespaceOwner::Caller, &declared),
            [post, edit_request, avatar_request()]
        );

        let user_post = PROJECT_CREATE_FOR_USER.request().with_argument("user_id", 9).with_fields(fields(json!({
            "name": "shop", "path": "shop", "visibility": "private", "description": "", "merge_commit_template": "%{title}",
            "initialize_with_readme": true, "default_branch": "trunk", "new_attribute": 1,
        })));
        let edit_request = edit(
            json!({"container_expiration_policy_attributes": policy, "ci_default_git_depth": 20}),
        );
        assert_eq!(
            create(NamespaceOwner::User(9), &declared),
            [user_post, edit_request, avatar_request()]
        );
    }

    #[test]
    fn a_create_without_other_fields_is_one_request() {
        let declared = fields(json!({"name": "Shop", "avatar": null}));
        let post = PROJECT_CREATE
            .request()
            .with_fields(fields(json!({"name": "Shop", "path": "shop", "namespace_id": 3})));
        assert_eq!(create(NamespaceOwner::Group, &declared), [post]);
    }

    #[test]
    fn the_default_branch_waits_unless_the_create_request_makes_it() {
        let declared = fields(json!({"default_branch": "trunk", "template_name": "rails"}));
        let post = PROJECT_CREATE.request().with_fields(fields(
            json!({"name": "shop", "path": "shop", "namespace_id": 3, "template_name": "rails"}),
        ));
        assert_eq!(create(NamespaceOwner::Group, &declared), [post]);
        let declared = fields(json!({"default_branch": "trunk"}));
        let post = PROJECT_CREATE
            .request()
            .with_fields(fields(json!({"name": "shop", "path": "shop", "namespace_id": 3})));
        assert_eq!(create(NamespaceOwner::Group, &declared), [post]);
    }

    #[test]
    fn the_import_status_shows_whether_the_contents_arrived() {
        let read_state = |raw: Json| import_state(raw.as_object().unwrap());
        for status in ["none", "finished"] {
            assert_eq!(read_state(json!({"import_status": status})), None);
        }
        // An unknown word does not end an import.
        for status in ["scheduled", "started", "something new"] {
            assert_eq!(read_state(json!({"import_status": status})), Some(ImportState::Running));
            assert_eq!(read_state(json!({"import_status": status, "mirror": true})), None);
        }
        let failed_state =
            |reason: Json| read_state(json!({"import_status": "failed", "import_error": reason}));
        assert_eq!(failed_state(Json::Null), Some(ImportState::Failed(None)));
        let Some(ImportState::Failed(Some(why))) =
            failed_state(json!("no https://u:canary@h/x\u{1b}[2J"))
        else {
            panic!()
        };
        assert!(why.starts_with("no https://"), "{why}");
        assert!(!why.contains("canary") && !why.contains('\u{1b}'), "{why}");
        assert_eq!(read_state(json!({})), None);
    }

    #[test]
    fn a_project_without_a_known_namespace_is_not_created() {
        let target = Target { namespace: None, ..new_target(NamespaceOwner::Group) };
        assert_eq!(create_at(&target, &Fields::new()), []);
    }

    #[test]
    fn a_project_is_renamed_and_moved_in_the_order_that_is_possible() {
        let rename = edit(json!({"path": "shop"}));
        let transfer_request = |id: u64| {
            PROJECT_TRANSFER
                .request()
                .with_container("acme/shop", None)
                .with_fields(fields(json!({"namespace": id})))
        };
        let name_request = edit(json!({"name": "Shop"}));
        for (renames, transfers, is_transferred_first, name, expected) in [
            (true, false, false, None, vec![rename.clone()]),
            (false, true, false, None, vec![transfer_request(3)]),
            (false, true, false, Some("Shop"), vec![name_request, transfer_request(3)]),
            (true, true, false, None, vec![rename.clone(), transfer_request(3)]),
            (true, true, true, None, vec![transfer_request(3), rename]),
        ] {
            let former_location = crate::kind::FormerLocation {
                path: "old/stall".into(),
                is_renamed: renames,
                is_transferred: transfers,
                is_transferred_first,
                namesake: None,
                name: name.map(str::to_owned),
            };
            let target = new_target(NamespaceOwner::Group);
            let context = CallContext {
                section: crate::catalogue::container(Scope::Project).0,
                target: &target,
                names: &NameIndex::default(),
                release: DetectedRelease::NotRequested,
                has_unique_address: true,
                purpose: CallPurpose::Container(Lifecycle::Move(&former_location)),
            };
            assert_eq!(requests(ProjectRules.calls(&context).unwrap()), expected);
        }
    }

    #[test]
    fn combinations_that_a_create_request_does_not_accept_are_named() {
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
            let found_faults = collect_faults(|report| {
                let mut all_fields = fields(settings.clone());
                all_fields.extend(fields(create.clone()));
                check_create(&all_fields, report);
            });
            assert_eq!(
                found_faults.iter().map(|fault| fault.0).collect::<Vec<_>>(),
                expected,
                "{settings} {create}"
            );
        }
    }
}
