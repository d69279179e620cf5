//! The operations: one table a subject, one function an operation.

pub(crate) mod actions;
pub(crate) mod avatars;
pub(crate) mod bots;
pub(crate) mod custom_attributes;
pub(crate) mod forks;
pub(crate) mod groups;
pub(crate) mod hooks;
pub(crate) mod imports;
pub(crate) mod instance;
pub(crate) mod invitations;
pub(crate) mod members;
pub(crate) mod memberships;
pub(crate) mod project_list;
pub(crate) mod projects;
pub(crate) mod push_rules;
pub(crate) mod repository;
pub(crate) mod shares;
pub(crate) mod system;
pub(crate) mod tokens;
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

/// What is served beside the operations; the paths are whole.
pub(crate) fn pages() -> &'static [Route] {
    avatars::PAGES
}

/// All operations.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    [
        actions::ROUTES,
        bots::ROUTES,
        custom_attributes::ROUTES,
        forks::ROUTES,
        groups::ROUTES,
        hooks::ROUTES,
        imports::ROUTES,
        instance::ROUTES,
        invitations::ROUTES,
        members::ROUTES,
        memberships::ROUTES,
        project_list::ROUTES,
        projects::ROUTES,
        push_rules::ROUTES,
        repository::ROUTES,
        shares::ROUTES,
        system::ROUTES,
        tokens::ROUTES,
        users::ROUTES,
        variables::ROUTES,
    ]
    .into_iter()
    .flatten()
}
