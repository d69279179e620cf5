//! Labels of a project or a group.
//!
//! The list of a project also shows those of the groups above. The service looks for a label by its
//! title in the group above too, so that requests name labels by their id.

use std::sync::LazyLock;

use schemars::JsonSchema;

use crate::{
    field::{Accepted, FIELD, Scope},
    kind::{Change, Create, Handle, Home, Kind, Place, Plain, Shape, Table},
    operation,
    page::Rows,
    schema,
    value::{Json, Object},
};

/// A label for issues and merge requests.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Label {
    /// The title. Upper and lower case differ. No group above may have the same.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate), regex(pattern = "^[^,?&]{1,255}$"), example = &"bug")]
    pub name: String,
    /// The colour: `#` and six hexadecimal digits.
    #[schemars(transform = FIELD.in_any_case(), regex(pattern = "^#[0-9A-Fa-f]{6}$"), example = &"#DC143C")]
    pub color: Option<String>,
    /// What it is for.
    #[schemars(transform = FIELD.nullable())]
    pub description: Option<String>,
    /// The place among the labels that have one: the lower, the more important. `null` is none.
    #[schemars(transform = FIELD.only(Scope::Project).nullable())]
    pub priority: Option<u32>,
}

static OF_PROJECT: LazyLock<Table> =
    LazyLock::new(|| Table::in_scope(&schema::of::<Label>(), Scope::Project));
static OF_GROUP: LazyLock<Table> =
    LazyLock::new(|| Table::in_scope(&schema::of::<Label>(), Scope::Group));

/// What keeps most inherited ones out of the lists.
const OWN: &[(&str, &str)] = &[("include_ancestor_groups", "false")];

/// The section `labels`.
pub static KIND: Kind = Kind {
    section: "labels",
    noun: "label",
    shape: Shape::List,
    identity: &["name"],
    required: &["color"],
    homes: &[
        Home {
            scope: Scope::Project,
            fields: &OF_PROJECT,
            place: Place::List(operation::LABEL_LIST),
            create: Create::With(operation::LABEL_CREATE),
            change: Change::Edit(operation::LABEL_UPDATE),
            delete: Some(operation::LABEL_DELETE),
            handle: &[Handle::path("id", "label_id")],
            rows: Rows::with_id(&["name", "is_project_label"]),
            query: OWN,
            is_own,
            ..Home::PLAIN
        },
        Home {
            scope: Scope::Group,
            fields: &OF_GROUP,
            place: Place::List(operation::GROUP_LABEL_LIST),
            create: Create::With(operation::GROUP_LABEL_CREATE),
            change: Change::Edit(operation::GROUP_LABEL_UPDATE),
            delete: Some(operation::GROUP_LABEL_DELETE),
            handle: &[Handle::path("id", "label_id")],
            rows: Rows::with_id(&["name"]),
            query: OWN,
            ..Home::PLAIN
        },
    ],
    rules: &Plain,
};

/// The labels of the group directly above are in the list of a project whatever it is asked.
fn is_own(label: &Object) -> bool {
    label.get("is_project_label") == Some(&Json::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kind::testing::object;

    #[test]
    fn a_label_of_the_group_above_is_not_the_projects() {
        let of_project = |is: Json| object(json!({"id": 1, "name": "bug", "is_project_label": is}));
        assert!(is_own(&of_project(true.into())));
        assert!(!is_own(&of_project(false.into())));
    }
}
