//! The initial contents of a new project: none, a readme, a template, a URL, another project or a
//! repository on another host.

use crate::{
    address::parent_group_path,
    kind::{Id, LiveNamespace},
    operation::ParameterLocation,
};

use super::{creation::CreationRequests, fork_of::FORK_OF, prelude::*};

/// The field with the project whose members are copied.
pub const MEMBERS_FROM_FIELD: &str = "members_from";
/// The field with the host that the repository is imported from.
pub(super) const IMPORT_FIELD: &str = "import";

/// The import hosts. Each has the prefix of its fields, which are below [`IMPORT_FIELD`], and the
/// operation that imports.
const IMPORT_HOSTS: [(&str, Op<Write>); 2] = [
    ("import.extgit.", operation::IMPORT_EXTGIT),
    ("import.extserver.", operation::IMPORT_EXTSERVER),
];

/// The calls that create the project of `context` in `namespace` as a fork or by an import, and wait
/// for its contents. `None` if `declared` names no source.
///
/// # Errors
/// If `declared` names an object that the service does not have.
pub(super) fn source_calls(
    context: &CallContext<'_>,
    namespace: &LiveNamespace,
    declared: &Fields,
) -> Option<Calls> {
    let fork_path = declared.text(FORK_OF);
    let is_declared = |prefix: &str| declared.keys().any(|name| name.starts_with(prefix));
    let import_host = IMPORT_HOSTS.iter().find(|(prefix, _)| is_declared(prefix));
    let calls = match (fork_path, import_host) {
        (Some(upstream), _) => fork_calls(context, namespace, upstream, declared),
        (None, Some((prefix, op))) => import_calls(context, namespace, prefix, *op, declared),
        (None, None) => return None,
    };
    Some(calls.map(|mut calls| {
        if let Some(last_call) = calls.last_mut() {
            last_call.awaits_jobs = true;
        }
        calls
    }))
}

/// The calls that create a fork. The request contains the declared visibility, so the fork is never
/// more visible than declared.
fn fork_calls(
    context: &CallContext<'_>,
    namespace: &LiveNamespace,
    upstream: &str,
    declared: &Fields,
) -> Calls {
    let id = context.names.require_id(NamedObject::Project, upstream, FORK_OF)?;
    let create_request =
        operation::PROJECT_FORK.request().with_argument_by_path("id", upstream, id.number());
    let parameters = create_request.operation.parameters();
    let body_parameters: Vec<_> = parameters
        .filter(|parameter| parameter.location == ParameterLocation::Body)
        .map(|p| p.name)
        .collect();
    let accepts = &|_: &str, field: &Field, request_name: &str| {
        field.accepted != Acceptance::Never && body_parameters.contains(&request_name)
    };
    let mut base_fields = context.target.naming_fields();
    base_fields.insert("namespace_id".to_owned(), namespace.id.to_json().into());
    CreationRequests { create_request, accepts, edit_op: operation::PROJECT_UPDATE, base_fields }
        .plan_calls(context, declared)
}

/// The calls that import a repository. The import request contains no visibility. An edit right
/// after the import sets the visibility.
fn import_calls(
    context: &CallContext<'_>,
    namespace: &LiveNamespace,
    prefix: &str,
    op: Op<Write>,
    declared: &Fields,
) -> Calls {
    let parent = parent_group_path(&context.target.path).unwrap_or_default();
    let create_request = match &namespace.id {
        Id::Known(_) => op.request(),
        Id::Pending(group) => op.request().with_awaited_path(group),
    };
    let accepts = &|name: &str, _: &Field, _: &str| name.starts_with(prefix);
    let target_params = [("new_name", context.target.slug()), ("target_namespace", parent)];
    let base_fields = target_params.map(|(name, value)| (name.to_owned(), value.into())).into();
    CreationRequests { create_request, accepts, edit_op: operation::PROJECT_UPDATE, base_fields }
        .plan_calls(context, declared)
}

/// The call that copies the members of another project, if `declared` has `members_from`.
///
/// # Errors
/// If the service does not have the other project.
pub(super) fn import_members_call(
    context: &CallContext<'_>,
    declared: &Fields,
) -> Result<Option<PlannedCall>, NoCalls> {
    let Some(source_path) = declared.text(MEMBERS_FROM_FIELD) else { return Ok(None) };
    let id = context.names.require_id(NamedObject::Project, source_path, MEMBERS_FROM_FIELD)?;
    let request = context.target.request(operation::IMPORT_MEMBERS);
    Ok(Some(request.with_argument_by_path("project_id", source_path, id.number()).into()))
}

/// True if a new project is imported by a request without visibility.
pub(super) fn is_imported(declared: &Object) -> bool {
    declared.keys().any(|name| IMPORT_HOSTS.iter().any(|(prefix, _)| name.starts_with(prefix)))
}

/// True if a new project contains objects that no field declares.
pub(super) fn has_undeclared_contents(declared: &Object) -> bool {
    [FORK_OF, MEMBERS_FROM_FIELD].iter().any(|name| declared.contains_key(*name))
        || is_imported(declared)
}

/// Reports sources that exclude each other. `table` contains the fields that only a create request
/// accepts.
pub(super) fn check_sources(
    table: &'static crate::kind::FieldTable,
    declared: &Fields,
    report: Reporter<'_>,
) {
    let is_declared = |name: &&'static str| declared.contains_key(name);
    let find_import = |prefix: &str| -> Option<&'static str> {
        let mut names = table.specs().iter().map(|spec| spec.name);
        names.find(|name| name.starts_with(prefix) && declared.contains_key(name))
    };
    let sources = [
        (Some("import_url").filter(is_declared), "from `import_url`"),
        (Some("initialize_with_readme").filter(|name| declared.is_on(name)), "with a readme"),
        (
            ["template_name", "template_project_id"].into_iter().find(|name| is_declared(name)),
            "from a template",
        ),
        (Some(FORK_OF).filter(is_declared), "as a fork"),
        (find_import(IMPORT_HOSTS[0].0), "by `import.extgit`"),
        (find_import(IMPORT_HOSTS[1].0), "by `import.extserver`"),
    ];
    let sources: Vec<_> =
        sources.into_iter().filter_map(|(field, phrase)| Some((field?, phrase))).collect();
    for pair in sources.windows(2) {
        let ((first_field, first_phrase), (second_field, second_phrase)) = (pair[0], pair[1]);
        let fault =
            EntryFault::for_field(fault_text::SOURCES, second_field).with_other_field(first_field);
        report(fault.fill("first", first_phrase).fill("second", second_phrase));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{
        catalogue,
        field::Scope,
        kind::{
            CreatedContainers, NameIndex, NamespaceOwner, Target,
            calls::CallPurpose,
            testing::{collect_faults, fields, new_target, request_parts},
        },
        operation::{
            IMPORT_EXTGIT, IMPORT_EXTSERVER, IMPORT_MEMBERS, PROJECT_FORK, PROJECT_UPDATE,
        },
        value::Json,
    };

    fn names() -> NameIndex {
        let mut names = NameIndex::default();
        names.insert(NamedObject::Project, "acme/up", Some(4));
        names.insert(NamedObject::Project, "acme/neo", None);
        names.with_created_containers(
            &[(Scope::Project, Arc::from("acme/neo"))].into_iter().collect::<CreatedContainers>(),
        )
    }

    fn create_in(target: &Target, declared: Json) -> Result<Vec<PlannedCall>, NoCalls> {
        let declared = fields(declared);
        let section = catalogue::container(Scope::Project).0;
        let purpose = CallPurpose::Create(&declared);
        let release = crate::release::DetectedRelease::NotRequested;
        let context = CallContext {
            section,
            target,
            names: &names(),
            release,
            has_unique_address: true,
            purpose,
        };
        section.rules().calls(&context)
    }

    fn create(declared: Json) -> Vec<PlannedCall> {
        create_in(&new_target(NamespaceOwner::Group), declared).unwrap()
    }

    fn awaits_jobs(calls: &[PlannedCall]) -> Vec<bool> {
        calls.iter().map(|call| call.awaits_jobs).collect()
    }

    fn requests(calls: Vec<PlannedCall>) -> Vec<crate::operation::Request<Write>> {
        calls.into_iter().map(|call| call.request).collect()
    }

    fn edit(body: Json) -> crate::operation::Request<Write> {
        PROJECT_UPDATE.request().with_container("acme/shop", None).with_fields(fields(body))
    }

    #[test]
    fn a_fork_is_requested_with_its_visibility_and_waited_for() {
        let calls = create(json!({
            "fork_of": "acme/up", "visibility": "private", "description": null, "name": "Shop",
            "merge_method": "ff", "mr_default_target_self": true, "default_branch": "trunk",
            "members_from": "acme/neo",
        }));
        assert_eq!(awaits_jobs(&calls), [false, true, false]);
        let fork = PROJECT_FORK
            .request()
            .with_argument_by_path("id", "acme/up", Some(4))
            .with_fields(fields(json!({
                "name": "Shop", "path": "shop", "namespace_id": 3, "visibility": "private",
                "description": "", "mr_default_target_self": true,
            })));
        let members = IMPORT_MEMBERS.request().with_container("acme/shop", None);
        let members = members.with_argument_by_path("project_id", "acme/neo", None);
        let expected = [fork, edit(json!({"merge_method": "ff"})), members];
        let requests = requests(calls);
        assert_eq!(request_parts(&requests), request_parts(&expected));
        assert_eq!(requests[2].awaited_containers().collect::<Vec<_>>(), ["acme/neo"]);
    }

    #[test]
    fn an_import_goes_to_its_namespace_and_gets_its_visibility_right_after() {
        let calls = create(json!({
            "import.extgit.repo_id": 7, "import.extgit.personal_access_token": "t",
            "visibility": "private", "name": "Shop",
        }));
        assert_eq!(awaits_jobs(&calls), [false, true]);
        let import = IMPORT_EXTGIT.request().with_fields(fields(json!({
            "new_name": "shop", "target_namespace": "acme", "repo_id": 7,
            "personal_access_token": "t",
        })));
        let edit_request = edit(json!({"visibility": "private", "name": "Shop"}));
        assert_eq!(request_parts(&requests(calls)), request_parts(&[import, edit_request]));

        let calls = create(json!({"import.extserver.extserver_repo": "r"}));
        assert_eq!(awaits_jobs(&calls), [true]);
        let import = IMPORT_EXTSERVER.request().with_fields(fields(
            json!({"new_name": "shop", "target_namespace": "acme", "extserver_repo": "r"}),
        ));
        assert_eq!(request_parts(&requests(calls)), request_parts(&[import]));
    }

    #[test]
    fn an_import_comes_after_its_group() {
        let owner = NamespaceOwner::Group;
        let namespace = Some(LiveNamespace { id: Id::Pending("acme".into()), owner });
        let target = Target { namespace, ..new_target(owner) };
        let calls = create_in(&target, json!({"import.extgit.repo_id": 7})).unwrap();
        assert_eq!(calls[0].request.awaited_containers().collect::<Vec<_>>(), ["acme"]);
        let fork = create_in(&target, json!({"fork_of": "acme/neo"})).unwrap();
        let awaited_paths: Vec<_> = fork[0].request.awaited_containers().collect();
        assert_eq!(awaited_paths, ["acme", "acme/neo"]);
    }

    #[test]
    fn an_unknown_source_is_refused() {
        for declared in [json!({"fork_of": "acme/none"}), json!({"members_from": "acme/none"})] {
            let result = create_in(&new_target(NamespaceOwner::Group), declared);
            let is_unknown = matches!(
                result,
                Err(NoCalls::Impossible(EntryFault { code: "unknown-project", .. }))
            );
            assert!(is_unknown, "{result:?}");
        }
    }

    #[test]
    fn contents_have_one_source() {
        let import = json!({"import.extgit.repo_id": 7});
        for (declared, expected) in [
            (json!({"fork_of": "a/b", "initialize_with_readme": false}), vec![]),
            (json!({"fork_of": "a/b", "members_from": "a/b"}), vec![]),
            (json!({"fork_of": "a/b", "initialize_with_readme": true}), vec!["fork_of"]),
            (json!({"fork_of": "a/b", "template_name": "rails"}), vec!["fork_of"]),
            (json!({"fork_of": "a/b", "import_url": "https://h/x"}), vec!["fork_of"]),
            (import.clone(), vec![]),
            (
                json!({"import.extgit.repo_id": 7, "import.extserver.extserver_repo": "r"}),
                vec!["import.extserver.extserver_repo"],
            ),
            (json!({"fork_of": "a/b", "import.extgit.repo_id": 7}), vec!["import.extgit.repo_id"]),
        ] {
            let table = catalogue::container(Scope::Project).0.table();
            let found_faults =
                collect_faults(|report| check_sources(table, &fields(declared.clone()), report));
            let fault_fields: Vec<_> = found_faults.into_iter().map(|(field, _)| field).collect();
            assert_eq!(fault_fields, expected, "{declared}");
        }
    }
}
