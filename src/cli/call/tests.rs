//! Tests of arguments, requests and output of `undrift call`.

use futures_util::future::BoxFuture;
use serde_json::json;

use super::{arguments::make_request, *};
use crate::{
    api::{
        ClientSettings, RequestPhase, SendError, SendErrorKind, ServiceAddress, Transport,
        WireRequest, WireResponse,
    },
    operation::{
        FORK_LIST, GROUP_MEMBER_CREATE, HOOK_CREATE, IMPORT_EXTGIT, IMPORT_EXTSERVER,
        MEMBER_DELETE, MEMBER_LIST, MEMBER_UPDATE, NOTE_LIST, PROJECT_CREATE, PROJECT_FORK,
        PROJECT_GET, PROJECT_LIST, PROJECT_UPDATE, PROJECT_UPLOAD, PROTECTED_BRANCH_CREATE,
        PROTECTED_BRANCH_UPDATE, STARRED_PROJECTS, VARIABLE_CREATE, VARIABLE_DELETE, VARIABLE_GET,
        VARIABLE_UPDATE,
    },
};

#[test]
fn an_unknown_operation_is_compared_by_its_words() {
    for (written_id, similar_id) in [
        ("project-update", Some("project-edit")),
        ("group-update", Some("group-edit")),
        ("projects-list", Some("project-list")),
        ("get-project", Some("project-get")),
        ("project-remove", Some("project-delete")),
        ("hook-create", Some("hook-add")),
        ("member-add", Some("project-member-add")),
        ("project-variable-create", Some("variable-create")),
        ("branch-protect", Some("protected-branch-add")),
        ("labelCreate", Some("label-create")),
        ("projct-get", Some("project-get")),
        ("frobnicate", None),
    ] {
        assert_eq!(nearest_id(written_id), similar_id, "{written_id}");
    }
}

fn owned_arguments(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|&argument| argument.to_owned()).collect()
}

/// The target and the body of a request, or all faults of the arguments. The body has the form that
/// saved plans use.
fn build_request<E: Copy>(op: Op<E>, arguments: &[&str]) -> Result<(String, Json), Vec<String>> {
    let request = make_request(op, &owned_arguments(arguments)).map_err(|faults| {
        faults
            .into_iter()
            .map(|fault| {
                [fault.error.map(|error| error.to_string()), fault.help]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("; ")
            })
            .collect::<Vec<_>>()
    })?;
    let body = match request.body_fields() {
        None => Json::Null,
        Some(fields) => fields
            .iter()
            .map(|(name, value)| {
                (name.clone(), value.plain_json().cloned().unwrap_or(json!(value)))
            })
            .collect::<Object>()
            .into(),
    };
    Ok((request.path_and_query(), body))
}

#[test]
fn arguments_become_the_path_the_query_and_the_body() {
    let table = [
        (build_request(PROJECT_GET, &["id=acme/shop"]), "/projects/acme%2Fshop", json!(null)),
        (
            build_request(PROJECT_GET, &["id=7", "license=true"]),
            "/projects/7?license=true",
            json!(null),
        ),
        (
            build_request(STARRED_PROJECTS, &["user_id=007"]),
            "/users/007/starred_projects",
            json!(null),
        ),
        (
            build_request(
                PROTECTED_BRANCH_UPDATE,
                &["id=7", "name=a/b", r#"allowed_to_push=[{"id": 1, "_destroy": true}]"#],
            ),
            "/projects/7/protected_branches/a%2Fb",
            json!({"allowed_to_push": [{"id": 1, "_destroy": true}]}),
        ),
        (
            build_request(FORK_LIST, &["id=7", "min_access_level=Developer"]),
            "/projects/7/forks?min_access_level=30",
            json!(null),
        ),
        (
            build_request(
                PROJECT_LIST,
                &["custom_attributes[a b]=c=d", "custom_attributes.x=y", "order_by=name"],
            ),
            "/projects?custom_attributes%5Ba%20b%5D=c%3Dd&custom_attributes%5Bx%5D=y&order_by=name",
            json!(null),
        ),
        (
            build_request(
                PROJECT_LIST,
                &["last_activity_after=2024-01-31T00:00:00Z", "page=2", "per_page=5"],
            ),
            "/projects?last_activity_after=2024-01-31T00%3A00%3A00Z&page=2&per_page=5",
            json!(null),
        ),
        (
            build_request(MEMBER_LIST, &["id=7", "user_ids=1,2", "user_ids[]=3"]),
            "/projects/7/members?user_ids=1%2C2%2C3",
            json!(null),
        ),
        (
            build_request(VARIABLE_GET, &["id=7", "key=A", "filter[environment_scope]=prod/*"]),
            "/projects/7/variables/A?filter%5Benvironment_scope%5D=prod%2F%2A",
            json!(null),
        ),
        (
            build_request(VARIABLE_DELETE, &["id=7", "key=A", "filter.environment_scope=*"]),
            "/projects/7/variables/A?filter%5Benvironment_scope%5D=%2A",
            json!(null),
        ),
        (
            build_request(
                VARIABLE_CREATE,
                &["id=7", "key=A", "value=@env:TOKEN", "masked=true", "variable_type=file"],
            ),
            "/projects/7/variables",
            json!({"key": "A", "value": {"secret": {"env": "TOKEN"}}, "masked": true, "variable_type": "file"}),
        ),
        (
            build_request(VARIABLE_UPDATE, &["id=7", "key=A", "value=@@home"]),
            "/projects/7/variables/A",
            json!({"value": "@home"}),
        ),
        (
            build_request(
                HOOK_CREATE,
                &[
                    "id=7",
                    "url=https://ci.example.org",
                    "token=@file:/run/token",
                    "push_events=false",
                ],
            ),
            "/projects/7/hooks",
            json!({"url": "https://ci.example.org", "token": {"secret": {"file": "/run/token"}}, "push_events": false}),
        ),
        (
            build_request(
                MEMBER_UPDATE,
                &["id=7", "user_id=9", "access_level=no_access", "expires_at="],
            ),
            "/projects/7/members/9",
            json!({"access_level": 0, "expires_at": ""}),
        ),
        (
            build_request(
                GROUP_MEMBER_CREATE,
                &[
                    "id=acme",
                    "user_id=1,2",
                    "access_level=40",
                    "tasks_to_be_done=ci,code",
                    "tasks_project_id=3",
                ],
            ),
            "/groups/acme/members",
            json!({"user_id": "1,2", "access_level": 40, "tasks_to_be_done": ["ci", "code"], "tasks_project_id": 3}),
        ),
        (
            build_request(MEMBER_DELETE, &["id=7", "user_id=9", "unassign_issuables=true"]),
            "/projects/7/members/9?unassign_issuables=true",
            json!(null),
        ),
        (
            build_request(
                PROJECT_CREATE,
                &[
                    "path=shop",
                    "namespace_id=3",
                    "topics=a,b",
                    "topics=c",
                    "initialize_with_readme=true",
                ],
            ),
            "/projects",
            json!({"path": "shop", "namespace_id": 3, "topics": ["a", "b", "c"], "initialize_with_readme": true}),
        ),
        (
            build_request(
                PROJECT_UPDATE,
                &[
                    "id=7",
                    "container_expiration_policy_attributes.enabled=true",
                    "container_expiration_policy_attributes[keep_n]=5",
                    "topics=",
                ],
            ),
            "/projects/7",
            json!({"container_expiration_policy_attributes": {"enabled": true, "keep_n": 5}, "topics": []}),
        ),
        (
            build_request(PROJECT_UPDATE, &["id=7", "avatar=@file:a.png"]),
            "/projects/7",
            json!({"avatar": {"file": "a.png"}}),
        ),
        (
            build_request(PROJECT_UPDATE, &["id=7", "avatar=", "import_url="]),
            "/projects/7",
            json!({"avatar": "", "import_url": ""}),
        ),
        (
            build_request(
                IMPORT_EXTGIT,
                &[
                    "personal_access_token=@env:T",
                    "repo_id=5",
                    "target_namespace=acme",
                    "optional_stages[attachments_import]=true",
                ],
            ),
            "/import/extgit",
            json!({
                "personal_access_token": {"secret": {"env": "T"}}, "repo_id": 5, "target_namespace": "acme",
                "optional_stages": {"attachments_import": true},
            }),
        ),
    ];
    for (result, target, body) in table {
        assert_eq!(result, Ok((target.to_owned(), body)));
    }
}

#[test]
fn faults_of_arguments_are_reported_with_hints() {
    let variable =
        |argument| build_request(VARIABLE_CREATE, &["id=7", "key=A", "value=x", argument]);
    let edit = |argument| build_request(PROJECT_UPDATE, &["id=7", argument]);
    let list = |argument| build_request(PROJECT_LIST, &[argument]);
    let protect =
        |argument| build_request(PROTECTED_BRANCH_CREATE, &["id=7", "name=main", argument]);
    let table = [
        (
            protect("allowed_to_push=30"),
            "`allowed_to_push` must be a list of objects in JSON; write `[{\"KEY\": VALUE}]`",
        ),
        (
            protect(r#"allowed_to_push=[{"user": 1}]"#),
            "`allowed_to_push` has no key `user`; it has `access_level`, `user_id` or `group_id`",
        ),
        (edit("visibility"), "`visibility` is not `name=value`; write `visibility=VALUE`"),
        (
            build_request(PROJECT_GET, &["acme/shop"]),
            "`acme/shop` is not `name=value`; write `id=acme/shop`",
        ),
        (
            edit("visiblity=private"),
            "`project-edit` has no parameter `visiblity`; did you mean `visibility`?",
        ),
        (
            edit("frobnicate=1"),
            "`project-edit` has no parameter `frobnicate`; `undrift call project-edit --help` explains what it takes",
        ),
        (
            edit("namespace_id=1"),
            "`project-edit` has no parameter `namespace_id`; `undrift call project-edit --help` explains what it takes",
        ),
        (
            edit("visibility=privat"),
            "`visibility` must be `private`, `internal` or `public`, not `privat`; did you mean `private`?",
        ),
        (edit("build_timeout=1h"), "`build_timeout` must be a whole number, not `1h`"),
        (
            edit("build_timeout=@env:T"),
            "`build_timeout` must be a number, not a reference; write the value itself",
        ),
        (edit("lfs_enabled=yes"), "`lfs_enabled` must be `true` or `false`, not `yes`"),
        (edit("name.x=1"), "`name` has no keys"),
        (edit("avatar=a.png"), "`avatar` takes a file; write `avatar=@file:PATH`"),
        (edit("avatar=@env:A"), "`avatar` takes a file; write `avatar=@file:PATH`"),
        (
            edit("container_expiration_policy_attributes={}"),
            "`container_expiration_policy_attributes` needs a key; write `container_expiration_policy_attributes[KEY]=VALUE`",
        ),
        (
            edit("container_expiration_policy_attributes.keep=1"),
            "`container_expiration_policy_attributes` has no key `keep`; it has `enabled`, `cadence`, `keep_n`, `older_than`, `name_regex` or \
             `name_regex_keep`",
        ),
        (
            edit("import_url=https://canary@x"),
            "`import_url` is a secret, and everybody on this machine can see the command line; write `import_url=@env:NAME` or \
             `import_url=@file:PATH`",
        ),
        (
            edit("import_url=@@canary"),
            "`import_url` is a secret, and everybody on this machine can see the command line; write `import_url=@env:NAME` or \
             `import_url=@file:PATH`",
        ),
        (edit("id=8"), "`id` is given twice; it takes one value"),
        (
            variable("protected=@TOKEN"),
            "the `@` in `protected` must be followed by `env:` or `file:`; write `@env:NAME`, `@file:PATH`, or `@@` for a text that starts with `@`",
        ),
        (
            build_request(PROJECT_GET, &[]),
            "`project-get` needs `id`; `undrift call project-get --help` explains what it takes",
        ),
        (build_request(PROJECT_GET, &["id="]), "`` is not allowed as `id` in a path"),
        (build_request(PROJECT_GET, &["id=.."]), "`..` is not allowed as `id` in a path"),
        (
            build_request(PROJECT_GET, &["id=@env:ID"]),
            "`id` is part of the URL, which logs show, so it must not be a secret; write the value itself",
        ),
        (
            build_request(PROJECT_CREATE, &["visibility=private"]),
            "`project-create` needs `name` or `path`; `undrift call project-create --help` explains what it takes",
        ),
        (
            build_request(PROJECT_UPLOAD, &["id=7", "file="]),
            "`file` takes a file; write `file=@file:PATH`",
        ),
        (list("per_page=5"), "`per_page` needs `page`; leave both out to read the whole list"),
        (
            list("last_activity_after=2024-01-31"),
            "`last_activity_after` must be a time such as `2099-01-31T12:00:00Z`, not `2024-01-31`",
        ),
        (
            list("custom_attributes[]=x"),
            "`custom_attributes` needs a key; write `custom_attributes[KEY]=VALUE`",
        ),
        (
            list("min_access_level=35"),
            "`min_access_level` must be a level (`no_access`, `minimal_access`, `guest`, `planner`, `reporter`, `security_manager`, `developer`, `maintainer` or `owner`), not `35`",
        ),
        (
            build_request(
                MEMBER_UPDATE,
                &["id=7", "user_id=9", "access_level=5", "expires_at=2024-02-30"],
            ),
            "`expires_at` must be a date such as `2099-01-31`, not `2024-02-30`",
        ),
        (
            build_request(MEMBER_LIST, &["id=7", "user_ids=1,a"]),
            "`user_ids` must be a whole number, not `a`",
        ),
    ];
    for (result, message) in table {
        assert_eq!(result, Err(vec![message.to_owned()]));
    }
}

#[test]
fn deprecated_arguments_are_reported() {
    let warnings = |op: Op<Write>, arguments: &[&str]| {
        arguments::deprecation_warnings(op.row(), &owned_arguments(arguments))
    };
    assert_eq!(
        warnings(
            PROJECT_UPDATE,
            &["id=7", "tag_list[]=a", "operations_access_level=private", "topics=a"]
        ),
        ["`tag_list` is deprecated: use `topics`", "`operations_access_level` is deprecated"]
    );
    assert_eq!(
        warnings(PROJECT_FORK, &["namespace=a"]),
        ["`namespace` is deprecated: use `namespace_id`"]
    );
    assert!(warnings(PROJECT_FORK, &["namespace_id=1", "namespace"]).is_empty());
}

#[test]
fn all_faults_of_arguments_are_reported_at_once() {
    let faults =
        build_request(HOOK_CREATE, &["id=7", "tokn=canary", "token=canary", "push_events=maybe"])
            .unwrap_err();
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(!faults.concat().contains("canary"), "{faults:?}");
    assert_eq!(build_request(HOOK_CREATE, &[]).unwrap_err().len(), 2);
}

#[test]
fn every_operation_needs_only_its_required_parameters() {
    for op in crate::catalogue::operations::all_operations() {
        let sample = |parameter: &&operation::Parameter| match parameter.value_type {
            operation::ParameterType::Word(words) => format!("{}={}", parameter.name, words[0]),
            operation::ParameterType::File => format!("{}=@file:x", parameter.name),
            operation::ParameterType::Objects(_) => format!("{}=[]", parameter.name),
            _ if parameter.secret => format!("{}=@env:X", parameter.name),
            _ => format!("{}=40", parameter.name),
        };
        let row = op.row();
        let is_needed = |parameter: &&operation::Parameter| {
            parameter.required || row.one_of.contains(&parameter.name)
        };
        let arguments: Vec<_> = crate::catalogue::operations::request_parameters(row)
            .into_iter()
            .filter(is_needed)
            .map(|p| sample(&p))
            .collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let (target, _) = match op {
            AnyOp::Read(op) => build_request(op, &arguments),
            AnyOp::Write(op) => build_request(op, &arguments),
        }
        .unwrap_or_else(|faults| panic!("{}: {faults:?}", row.id));
        assert!(!target.contains(':'), "{target}");
    }
}

#[test]
fn parameters_are_renamed_for_the_real_import_hosts() {
    let arguments = [
        "personal_access_token=@env:T",
        "extserver_url=u",
        "extserver_username=n",
        "extserver_project=p",
        "extserver_repo=extserver_r",
    ];
    let request = make_request(IMPORT_EXTSERVER, &owned_arguments(&arguments))
        .unwrap()
        .rename_segment("extgit", "a")
        .rename_segment("extserver", "own_host");
    assert_eq!(request.path(), "/import/own_host");
    let names: Vec<_> = request.body_fields().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "own_host_project",
            "own_host_repo",
            "own_host_url",
            "own_host_username",
            "personal_access_token"
        ]
    );
    assert_eq!(request.body_fields().unwrap()["own_host_repo"], "extserver_r".into());
}

#[test]
fn secrets_in_responses_are_hidden() {
    let mask = |row: &Operation, mut response: Json| {
        mask_response(row, &mut response);
        response
    };
    let project = json!({"runners_token": "canary", "value": "v", "forked": {"import_url": "https://u:canary@h/x"}});
    assert_eq!(
        mask(PROJECT_GET.row(), project),
        json!({"runners_token": "***", "value": "v", "forked": {"import_url": "https://***@h/x"}})
    );
    assert_eq!(
        mask(VARIABLE_GET.row(), json!([{"key": "A", "value": "canary"}])),
        json!([{"key": "A", "value": "***"}])
    );
    let variable = |value| json!({"key": "A", "variable_type": "env_var", "value": value});
    assert_eq!(
        mask(PROJECT_GET.row(), json!({"id": 3, "variables": [variable("canary")]})),
        json!({"id": 3, "variables": [variable("***")]}),
        "as of a pipeline schedule"
    );
    assert_eq!(
        mask(HOOK_CREATE.row(), json!({"url": "https://h/x?token=canary"})),
        json!({"url": "https://h/x?token=***"})
    );
    assert_eq!(
        mask(PROJECT_GET.row(), json!({"runners_token": null})),
        json!({"runners_token": null})
    );
}

#[test]
fn an_operation_is_found_by_its_id_or_suggested() {
    assert!(find_operation("project-star").is_ok());
    for (wrong_id, hint) in [
        ("project_star", "project-star"),
        ("variables-list", "variable-list"),
        ("frobnicate", "--list"),
    ] {
        let failure = find_operation(wrong_id).unwrap_err();
        assert!(
            failure.exit == Exit::Usage
                && failure.help.as_deref().is_some_and(|help| help.contains(hint)),
            "{failure:?}"
        );
    }
}

/// A service that gives every request the same response.
#[derive(Debug)]
struct FixedTransport(Result<u16, (RequestPhase, SendErrorKind)>);

impl Transport for FixedTransport {
    fn send(&self, _: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        let headers =
            [(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"))]
                .into_iter()
                .collect();
        let response = self.0.map(|status| WireResponse { status, headers, body: Ok("{}".into()) });
        Box::pin(std::future::ready(
            response.map_err(|(phase, kind)| SendError::new(phase, kind, "planted")),
        ))
    }
}

fn client(response: Result<u16, (RequestPhase, SendErrorKind)>) -> ReadClient {
    let service = ServiceAddress::parse("https://example.org", false).unwrap();
    ReadClient::new(
        service,
        Arc::new(FixedTransport(response)),
        Arc::default(),
        ClientSettings::default(),
    )
}

#[tokio::test]
async fn the_exit_code_of_a_failed_call_shows_its_outcome() {
    let tls_failure = |phase| Err((phase, SendErrorKind::Tls));
    for (response, read_code, write_code) in [
        (Ok(400), 10, 6),
        (Ok(401), 7, 7),
        (Ok(403), 7, 7),
        (Ok(404), 10, 6),
        (Ok(409), 10, 6),
        (Ok(422), 10, 6),
        (tls_failure(RequestPhase::NotSent), 8, 8),
    ] {
        let error = client(response)
            .get_optional(PROJECT_GET.request().with_argument("id", 1), &[])
            .await
            .unwrap_err();
        assert_eq!(call_failure(error, Exit::Incomplete).exit.code(), read_code, "{response:?}");
        let error = WriteClient::new(client(response))
            .send(PROJECT_FORK.request().with_argument("id", 1))
            .await
            .unwrap_err();
        assert_eq!(call_failure(error, Exit::Unfinished).exit.code(), write_code, "{response:?}");
    }
    let error = client(Ok(200)).list(NOTE_LIST.request().with_argument("id", 1)).await.unwrap_err();
    assert_eq!(call_failure(error, Exit::Incomplete).exit.code(), 10, "a list that is not whole");
}

#[tokio::test]
async fn a_write_without_a_response_may_have_been_carried_out() {
    for response in [Ok(500), Ok(503), Err((RequestPhase::MaybeSent, SendErrorKind::Network))] {
        let error = WriteClient::new(client(response))
            .send(PROJECT_FORK.request().with_argument("id", 1))
            .await
            .unwrap_err();
        let failure = call_failure(error, Exit::Unfinished);
        assert!(
            failure.exit == Exit::Unfinished
                && failure.help.is_some_and(|help| help.contains("look")),
            "{response:?}"
        );
    }
}
