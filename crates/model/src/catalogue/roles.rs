//! The roles that the service needs for calls: the table of `roles.yaml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::{
    level::AccessLevel,
    operation::{Request, Write},
    release::Release,
    value::Json,
    yaml,
};

/// A role that the service needs for some calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeededRole {
    operations: Vec<String>,
    role: Json,
    field: Option<String>,
    /// True if the role is needed only for steps that give or take the access of an owner.
    #[serde(default)]
    pub concerns_owner: bool,
    /// The first release that certainly needs the role; `None` for every release.
    pub since: Option<Release>,
}

impl NeededRole {
    /// The role.
    pub fn level(&self) -> Option<AccessLevel> {
        AccessLevel::parse(&self.role)
    }
}

static NEEDED_ROLES: LazyLock<Vec<NeededRole>> =
    LazyLock::new(|| yaml::built_in!("catalogue/tables/roles"));

/// The roles that the service needs for `request`.
pub fn needed_roles(request: &Request<Write>) -> impl Iterator<Item = &'static NeededRole> {
    let id = request.operation.id;
    NEEDED_ROLES.iter().filter(move |needed| {
        let has_field = |field: &String| request.body_names().any(|name| name == field);
        needed.operations.iter().any(|operation| operation == id)
            && needed.field.as_ref().is_none_or(has_field)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::OPERATIONS;

    #[test]
    fn the_table_names_roles_and_operations_that_exist() {
        for needed in NEEDED_ROLES.iter() {
            assert!(needed.level().is_some(), "{needed:?}");
            for id in &needed.operations {
                assert!(OPERATIONS.iter().any(|operation| operation.row().id == id), "{id}");
            }
        }
    }
}
