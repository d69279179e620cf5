//! The operations: one table a subject, one function an operation.

pub(crate) mod groups;
pub(crate) mod hooks;
pub(crate) mod members;
pub(crate) mod project_list;
pub(crate) mod projects;
pub(crate) mod push_rules;
pub(crate) mod system;
pub(crate) mod users;
pub(crate) mod variables;

use http::Method;

use super::call::Handler;

/// One operation.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Below `/api/v4`, with `{name}` for what varies.
    pub(crate) path: &'static str,
    pub(crate) handler: Handler,
}

const fn get(path: &'static str, handler: Handler) -> Route {
    route(Method::GET, path, handler)
}

const fn post(path: &'static str, handler: Handler) -> Route {
    route(Method::POST, path, handler)
}

const fn put(path: &'static str, handler: Handler) -> Route {
    route(Method::PUT, path, handler)
}

const fn delete(path: &'static str, handler: Handler) -> Route {
    route(Method::DELETE, path, handler)
}

const fn route(method: Method, path: &'static str, handler: Handler) -> Route {
    Route { method, path, handler }
}

/// All operations.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    [
        groups::ROUTES,
        hooks::ROUTES,
        members::ROUTES,
        project_list::ROUTES,
        projects::ROUTES,
        push_rules::ROUTES,
        system::ROUTES,
        users::ROUTES,
        variables::ROUTES,
    ]
    .into_iter()
    .flatten()
}
