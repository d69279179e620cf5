//! The operations: one table per subject, one function per operation.

mod access_requests;
pub(crate) mod actions;
mod approval_rules;
mod approvals;
pub(crate) mod avatars;
mod badges;
pub(crate) mod bots;
mod callbacks;
pub(crate) mod collections;
mod colors;
mod conditions;
pub(crate) mod custom_attributes;
mod default_branches;
mod deletion;
mod deploy_keys;
mod empty;
mod environments;
pub(crate) mod fields;
mod files;
pub(crate) mod forks;
mod grants;
mod group_links;
mod group_moves;
mod group_rules;
mod group_runners;
pub(crate) mod group_settings;
pub(crate) mod groups;
mod hook_secrets;
pub(crate) mod hooks;
mod identities;
pub(crate) mod imports;
pub(crate) mod instance;
mod integrations;
pub(crate) mod invitations;
mod job_tokens;
mod labels;
mod member_roles;
pub(crate) mod members;
pub(crate) mod memberships;
mod names;
mod notes;
mod pipeline_schedules;
mod prelude;
mod project_contents;
pub(crate) mod project_list;
pub(crate) mod project_rules;
pub(crate) mod projects;
pub(crate) mod protected_branches;
mod protected_tags;
mod pull_mirror;
pub(crate) mod push_rules;
pub(crate) mod registry;
mod remote_mirrors;
pub(crate) mod repository;
pub(crate) mod rows;
pub(super) mod runners;
pub(crate) mod shares;
pub(crate) mod system;
pub(crate) mod terms;
pub(crate) mod tokens;
mod user_rules;
pub(crate) mod users;
pub(crate) mod variables;
pub(super) mod view;

use matchit::{Match, Router};
use percent_encoding::percent_decode_str;

use super::call::Segments;
use crate::prelude::*;
use callbacks::Callbacks;
use registry::DescribedCollections;
use rows::{Collection, CollectionOperation};

type CallHandler = fn(&Call<'_>) -> Result<Answer>;

/// The handler of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handler {
    /// A separate function.
    Function(CallHandler),
    /// The handler of all collections.
    Collection(&'static Collection, CollectionOperation),
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path below `/api/v4`, or the whole path of a page. `{name}` is a variable segment.
    pub(crate) path: &'static str,
    pub(crate) handler: Handler,
}

macro_rules! methods {
    ($($name:ident $method:ident)*) => {
        $(const fn $name(path: &'static str, handler: CallHandler) -> Route {
            Route { method: Method::$method, path, handler: Handler::Function(handler) }
        })*
    };
}

methods! { get GET post POST put PUT patch PATCH delete DELETE }

impl Route {
    /// Runs the handler of the operation.
    pub(crate) fn answer(&self, call: &Call<'_>) -> Result<Answer> {
        match self.handler {
            Handler::Function(answer) => answer(call),
            Handler::Collection(collection, operation) => collection.answer(operation, call),
        }
    }
}

/// Routes by their full paths. Routes with the same path have different methods.
type RouteTable = Router<Vec<&'static Route>>;

/// The sandbox's own routes.
static ROUTE_TABLE: LazyLock<RouteTable> = LazyLock::new(|| build_router(all_routes()));

/// Makes a router of operations by path. No two routes have the same path and method. A described
/// collection with a path that the router does not accept gets no route.
fn build_router(routes: impl Iterator<Item = (String, &'static Route)>) -> RouteTable {
    let mut paths: BTreeMap<String, Vec<&Route>> = BTreeMap::new();
    for (path, route) in routes {
        paths.entry(path).or_default().push(route);
    }
    let mut route_table = Router::new();
    paths.into_iter().for_each(|(path, operations)| drop(route_table.insert(path, operations)));
    route_table
}

/// The operations of a path. A path that ends in a word may have a format suffix (`variables.json`).
fn find_operations<'p>(
    described_collections: Option<&'static DescribedCollections>,
    path: &'p str,
) -> Result<Match<'static, 'p, &'static Vec<&'static Route>>> {
    let find_by_path = |path| {
        let table_match = ROUTE_TABLE.at(path).ok();
        let described_match =
            described_collections.and_then(|described| described.route_table.at(path).ok());
        // A described collection can add writes to a path for which the sandbox itself has only
        // reads.
        let is_preferred = |candidate: &Match<'_, '_, &Vec<&Route>>| {
            let params = described_match.as_ref().map(|described| described.params.len());
            let has_writes = candidate.value.iter().any(|entry| entry.method != Method::GET);
            has_writes || params.is_none_or(|params| candidate.params.len() < params)
        };
        if table_match.as_ref().is_some_and(is_preferred) { table_match } else { described_match }
    };
    let find_without_format = || {
        let (plain_path, format) =
            path.rsplit_once('.').filter(|(_, format)| !format.contains('/'))?;
        let operations = find_by_path(plain_path)?;
        let ends_in_word = operations.value.iter().all(|entry| !entry.path.ends_with('}'));
        (ends_in_word && !format.is_empty()).then_some(operations)
    };
    find_by_path(path).or_else(find_without_format).ok_or_else(ErrorResponse::route_not_found)
}

/// Finds the operation of a request, and decodes the variable segments of its path. An unknown
/// method results in 404, because the service's last route matches everything.
pub(crate) fn find_route(
    described_collections: Option<&'static DescribedCollections>,
    method: &Method,
    path: &str,
) -> Result<(&'static Route, Segments)> {
    let operations = find_operations(described_collections, path)?;
    let table_method = if *method == Method::HEAD { &Method::GET } else { method };
    let operation = operations.value.iter().find(|operation| operation.method == *table_method);
    let operation = operation.ok_or_else(ErrorResponse::route_not_found)?;
    let decoded_params = operations
        .params
        .iter()
        .map(|(name, value)| Ok((name, percent_decode_str(value).decode_utf8()?.into_owned())));
    let segments = decoded_params
        .collect::<Result<_, std::str::Utf8Error>>()
        .map_err(|_| ErrorResponse::route_not_found())?;
    Ok((*operation, segments))
}

/// Answers OPTIONS with 204 and the methods of a path. Below a project or group the response is
/// 404, because the real service searches the project or group without an id.
pub(crate) fn answer_options(
    described_collections: Option<&'static DescribedCollections>,
    path: &str,
) -> Result<Answer> {
    let operations = find_operations(described_collections, path)?;
    for (path_prefix, type_name) in [("/projects/{id}/", "Project"), ("/groups/{id}/", "Group")] {
        if operations.value.iter().any(|entry| entry.path.starts_with(path_prefix)) {
            return Err(ErrorResponse::not_found(type_name));
        }
    }
    let has_method = |method: &Method| operations.value.iter().any(|entry| entry.method == *method);
    let methods = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let mut allowed_methods = vec![Method::OPTIONS];
    allowed_methods.extend(methods.into_iter().filter(has_method));
    allowed_methods.extend(has_method(&Method::GET).then_some(Method::HEAD));
    let method_names: Vec<&str> = allowed_methods.iter().map(Method::as_str).collect();
    let mut answer = Answer::no_content();
    answer.headers.push(("allow", method_names.join(", ")));
    Ok(answer)
}

/// All routes, with their whole paths.
pub(crate) fn all_routes() -> impl Iterator<Item = (String, &'static Route)> {
    let operations = OPERATIONS.iter().map(|route| (format!("/api/v4{}", route.path), route));
    let pages = avatars::PAGE_ROUTES.iter().chain(system::PAGE_ROUTES);
    operations.chain(pages.map(|route| (route.path.to_owned(), route)))
}

macro_rules! collect_tables {
    ($table:ident: $($module:ident)*) => { [$($module::$table),*] };
}

/// The tables of all modules. In paths, `/{holder}` means a project or a group. `/{any_holder}`
/// means a project, a group or a user.
const MODULE_ROUTES: &[&[Route]] = &collect_tables! { ROUTES:
    actions approvals avatars bots collections
    custom_attributes deletion deploy_keys empty files forks group_moves groups
    identities imports instance invitations labels member_roles
    members memberships notes pipeline_schedules project_list projects protected_branches
    pull_mirror remote_mirrors repository runners shares system
    tokens users
};

/// The callbacks of all modules.
const ALL_CALLBACKS: &[&[Callbacks]] = &collect_tables! { CALLBACKS:
    access_requests approval_rules approvals badges collections environments
    group_links hooks integrations job_tokens labels pipeline_schedules protected_tags push_rules
    remote_mirrors variables
};

/// The paths that replace each placeholder.
const HOLDER_PATHS: [(&str, &[&str]); 2] = [
    ("/{holder}", &["/projects/{id}", "/groups/{id}"]),
    ("/{any_holder}", &["/projects/{id}", "/groups/{id}", "/users/{user_id}"]),
];

/// Replaces the placeholder at the start of a path with each of its paths. Other paths stay unchanged.
fn expand_holder(path: &'static str) -> Vec<&'static str> {
    let mut holders = HOLDER_PATHS.iter();
    let holder = holders.find_map(|(name, paths)| Some((path.strip_prefix(name)?, paths)));
    let Some((suffix, paths)) = holder else { return vec![path] };
    paths.iter().map(|path| &*format!("{path}{suffix}").leak()).collect()
}

/// The operations of [`MODULE_ROUTES`] and of the collections.
static OPERATIONS: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let expand_route = |route: &Route| {
        let (paths, route) = (expand_holder(route.path), route.clone());
        paths.into_iter().map(move |path| Route { path, ..route.clone() })
    };
    MODULE_ROUTES
        .iter()
        .copied()
        .flatten()
        .flat_map(expand_route)
        .chain(registry::routes())
        .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_route_is_found_by_its_method_and_path() {
        for (path, route) in all_routes() {
            let path = path.replace('{', "%7B").replace('}', "%2F%C3%A9");
            let (operation, segments) = find_route(None, &route.method, &path).expect("a route");
            assert!(std::ptr::eq(operation, route), "{path}");
            let names: Vec<&str> = route.path.split(['{', '}']).skip(1).step_by(2).collect();
            let expected: Segments =
                names.into_iter().map(|name| (name, format!("{{{name}/é"))).collect();
            assert_eq!(segments, expected, "{path}");
        }
    }

    #[test]
    fn paths_without_a_route_are_refused() {
        for (method, path, status) in [
            (Method::HEAD, "/api/v4/projects", None),
            (Method::GET, "/api/v4/project", Some(404)),
            (Method::GET, "/projects", Some(404)),
            (Method::GET, "/api/v4/projects/%ff", Some(404)),
            (Method::GET, "/api/v4/projects.json", None),
            (Method::GET, "/api/v4/projects.", Some(404)),
            (Method::GET, "/api/v4/nothing.json", Some(404)),
            (Method::PATCH, "/api/v4/projects", Some(404)),
            (Method::HEAD, "/api/v4/projects/1/star", Some(404)),
        ] {
            let code = find_route(None, &method, path).err().map(|failure| failure.status.as_u16());
            assert_eq!(code, status, "{method} {path}");
        }
        // A name that a client chooses has no format suffix.
        let (_, segments) =
            find_route(None, &Method::GET, "/api/v4/projects/a.json").expect("a route");
        assert_eq!(segments, [("id", "a.json".to_owned())]);
    }
}
