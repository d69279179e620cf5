//! What a new project gets its contents from: nothing, a readme, a template, an address, another
//! project (reference 2, 4.3 and 4.4) or another host (reference 1, 4.2).

use schemars::JsonSchema;

use super::{creation::Creation, fork::FORK_OF, project::KIND};
use crate::{
    diagnostic::Severity,
    field::{Accepted, FIELD, Field, Named, Scope, Secrecy},
    kind::{Call, Fault, Id, Job, Namespace, Unable},
    operation::{self, Op, Place, Write},
    secret::Reference,
    value::{Fields, Json, Object, Value},
};

/// From where the repository is imported: one of the two.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Import {
    /// A hosted Git service.
    #[schemars(transform = FIELD.spread())]
    pub extgit: Option<Extgit>,
    /// A self-hosted server.
    #[schemars(transform = FIELD.spread())]
    pub extserver: Option<Extserver>,
}

/// A repository on a hosted Git service.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Extgit {
    /// The id of the repository there.
    #[schemars(transform = FIELD.local(), range(min = 1), example = &7)]
    pub repo_id: u64,
    /// The credential for the host.
    #[schemars(transform = FIELD.local().secrecy(Secrecy::Reference))]
    pub personal_access_token: Reference,
    /// The host name of an enterprise installation; not for the public host.
    #[schemars(transform = FIELD.local(), length(min = 1), example = &"git.example.org")]
    pub extgit_hostname: Option<String>,
    /// What else is imported.
    #[schemars(transform = FIELD.local())]
    pub optional_stages: Option<Stages>,
}

/// What is imported besides the repository.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stages {
    /// Events of issues and pull requests.
    pub single_endpoint_issue_events_import: Option<bool>,
    /// Comments, in a slower and more thorough way.
    pub single_endpoint_notes_import: Option<bool>,
    /// Files attached in Markdown.
    pub attachments_import: Option<bool>,
}

/// A repository on a self-hosted server.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Extserver {
    /// The address of the server, without credentials.
    #[schemars(
        transform = FIELD.local(), regex(pattern = "^https?://[^/?#@]+(/[^?#@]*)?$"),
        example = &"https://server.example.org",
    )]
    pub extserver_url: String,
    /// The user there.
    #[schemars(transform = FIELD.local(), length(min = 1))]
    pub extserver_username: String,
    /// The credential for the server: a token or the user's password.
    #[schemars(transform = FIELD.local().secrecy(Secrecy::Reference))]
    pub personal_access_token: Reference,
    /// The key of the project there.
    #[schemars(transform = FIELD.local(), length(min = 1), example = &"SHOP")]
    pub extserver_project: String,
    /// The name of the repository there.
    #[schemars(transform = FIELD.local(), length(min = 1), example = &"shop")]
    pub extserver_repo: String,
}

/// The field that names whose members a new project gets.
const MEMBERS_FROM: &str = "members_from";
/// The field that says from which host a repository is imported.
pub(super) const IMPORT: &str = "import";

/// The hosts: the field below [`IMPORT`] and the operation.
const HOSTS: [(&str, Op<Write>); 2] = [
    ("import.extgit.", operation::IMPORT_EXTGIT),
    ("import.extserver.", operation::IMPORT_EXTSERVER),
];

/// The calls that create the project of `job` in `namespace` with contents from elsewhere, and wait
/// for them; `None` if `declared` names no such contents.
///
/// # Errors
/// If it names something that the service does not know.
pub(super) fn calls(
    job: &Job<'_>,
    namespace: &Namespace,
    declared: &Fields,
) -> Option<Result<Vec<Call>, Unable>> {
    let fork = declared.get(FORK_OF).and_then(Value::text);
    let host = HOSTS.iter().find(|(prefix, _)| is_from(declared, prefix));
    let calls = match (fork, host) {
        (Some(upstream), _) => fork_of(job, namespace, upstream, declared),
        (None, Some((prefix, op))) => import(job, namespace, prefix, *op, declared),
        (None, None) => return None,
    };
    Some(calls.map(|mut calls| {
        if let Some(last) = calls.last_mut() {
            last.awaits = true;
        }
        calls
    }))
}

/// The request takes what makes the fork no more visible than declared.
fn fork_of(
    job: &Job<'_>,
    namespace: &Namespace,
    upstream: &str,
    declared: &Fields,
) -> Result<Vec<Call>, Unable> {
    let id = job.names.id(Named::Project, upstream);
    let id = id.ok_or_else(|| Unable::unknown(Named::Project, upstream, FORK_OF))?;
    let post = operation::PROJECT_FORK.request().arg_of("id", upstream, id.known());
    let parameters = post.operation.parameters.iter().copied().flatten();
    let body: Vec<_> = parameters.filter(|own| own.place == Place::Body).map(|p| p.name).collect();
    let takes = |_: &str, field: &Field, sent: &str| {
        field.accepted != Accepted::Never && body.contains(&sent)
    };
    let slug = || Value::from(job.target.slug());
    let within = [("name", slug()), ("path", slug()), ("namespace_id", namespace.id.sent().into())];
    let within = within.map(|(name, value)| (name.to_owned(), value)).into();
    Creation { post, takes: &takes, edit: operation::PROJECT_UPDATE, within }.calls(job, declared)
}

/// The request takes no visibility: an edit sets that right after.
fn import(
    job: &Job<'_>,
    namespace: &Namespace,
    prefix: &str,
    op: Op<Write>,
    declared: &Fields,
) -> Result<Vec<Call>, Unable> {
    let parent = job.target.path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let post = match &namespace.id {
        Id::Known(_) => op.request(),
        Id::OfStep(group) => op.request().after(group),
    };
    let takes = |name: &str, _: &Field, _: &str| name.starts_with(prefix);
    let within = [("new_name", job.target.slug()), ("target_namespace", parent)];
    let within = within.map(|(name, value)| (name.to_owned(), value.into())).into();
    Creation { post, takes: &takes, edit: operation::PROJECT_UPDATE, within }.calls(job, declared)
}

/// The call that copies the members of another project, if `declared` names one.
///
/// # Errors
/// If the service does not know it.
pub(super) fn members(job: &Job<'_>, declared: &Fields) -> Result<Option<Call>, Unable> {
    let Some(from) = declared.get(MEMBERS_FROM).and_then(Value::text) else { return Ok(None) };
    let id = job.names.id(Named::Project, from);
    let id = id.ok_or_else(|| Unable::unknown(Named::Project, from, MEMBERS_FROM))?;
    let request = operation::IMPORT_MEMBERS.request().arg("id", job.target.id());
    Ok(Some(request.arg_of("project_id", from, id.known()).into()))
}

/// Whether a new project is imported from a host by a request that takes no visibility.
pub(super) fn is_imported(declared: &Object) -> bool {
    declared.keys().any(|name| HOSTS.iter().any(|(prefix, _)| name.starts_with(prefix)))
}

/// Whether a new project has things in it that nobody declares.
pub(super) fn fills(declared: &Object) -> bool {
    let is_there = |name: &str| declared.contains_key(name);
    is_there(FORK_OF) || is_there(MEMBERS_FROM) || is_imported(declared)
}

fn is_from(declared: &Fields, prefix: &str) -> bool {
    declared.keys().any(|name| name.starts_with(prefix))
}

/// Reports contents that exclude each other.
pub(super) fn check(declared: &Fields, report: &mut dyn FnMut(Fault)) {
    let is_on = |name: &&str| declared[*name].plain() == Some(&Json::Bool(true));
    let is_there = |name: &&'static str| declared.contains_key(*name);
    let host = |prefix: &str| -> Option<&'static str> {
        let specs = KIND.in_scope(Scope::Project).into_iter().flat_map(|of| of.table().specs());
        let mut names = specs.map(|spec| spec.name.as_str());
        names.find(|name| name.starts_with(prefix) && declared.contains_key(*name))
    };
    let sources = [
        (Some("import_url").filter(is_there), "from `import_url`"),
        (Some("initialize_with_readme").filter(is_there).filter(is_on), "with a readme"),
        (
            ["template_name", "template_project_id"].into_iter().find(|name| is_there(name)),
            "from a template",
        ),
        (Some(FORK_OF).filter(is_there), "as a fork"),
        (host(HOSTS[0].0), "by `import.extgit`"),
        (host(HOSTS[1].0), "by `import.extserver`"),
    ];
    let sources: Vec<_> =
        sources.into_iter().filter_map(|(field, how)| Some((field?, how))).collect();
    for pair in sources.windows(2) {
        let ((_, first), (field, second)) = (pair[0], pair[1]);
        report(Fault {
            severity: Severity::Error,
            code: "create-conflict",
            field: Some(field),
            message: format!("a project is not created both {second} and {first}"),
            help: Some("keep one source of its contents".into()),
        });
    }
}
