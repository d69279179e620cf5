//! Protected tags of a project. The service has no edit: a protection that differs is removed and
//! added anew.

use std::sync::LazyLock;

use schemars::JsonSchema;

use super::protected_branch::{Grant, effects, with_levels};
use crate::{
    field::{Accepted, FIELD, Scope},
    kind::{
        Call, Capability, Change, Create, Effect, Handle, Home, Job, Kind, Place, Removal, Rules,
        Shape, Table, Unable,
    },
    operation,
    page::Rows,
    schema,
    value::Object,
};

/// A tag, or a pattern of tags, with who may create it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ProtectedTag {
    /// The name of a tag, or a pattern such as `v*`. The tag need not exist.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate).by_kind(), length(min = 1, max = 255), example = &"v*")]
    pub name: String,
    /// Who may create it: levels, users and groups. `no_access` alone is nobody.
    #[schemars(transform = FIELD.accepted(Accepted::OnCreate).as_rows().read_as("create_access_levels").by_kind(), length(min = 1))]
    pub allowed_to_create: Option<Vec<Grant>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<ProtectedTag>()));

/// The section `protected_tags`.
pub static KIND: Kind = Kind {
    section: "protected_tags",
    noun: "protected tag",
    shape: Shape::List,
    identity: &["name"],
    required: &[],
    removal: Removal::ByKind,
    homes: &[Home {
        scope: Scope::Project,
        fields: &TABLE,
        place: Place::List(operation::PROTECTED_TAG_LIST),
        create: Create::With(operation::PROTECTED_TAG_CREATE),
        change: Change::Replace,
        delete: Some(operation::PROTECTED_TAG_DELETE),
        handle: &[Handle::path("name", "name")],
        rows: Rows { keys: &["name"], also: &["create_access_levels"] },
        needs: &[Capability::People],
        ..Home::PLAIN
    }],
    rules: &ProtectedTags,
};

const LIST: &str = "allowed_to_create";

struct ProtectedTags;

impl Rules for ProtectedTags {
    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let levels = [(LIST, "create_access_level")];
        let with_levels = |call: Call| Call { request: with_levels(call.request, &levels), ..call };
        Ok(job.plain()?.into_iter().map(with_levels).collect())
    }

    fn effects(&self, _who: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        effects(before, after, &[(LIST, "create")], &[LIST])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        kind::{
            Names,
            calls::Act,
            testing::{act, fields, live, said, section},
        },
        operation::{PROTECTED_TAG_CREATE, PROTECTED_TAG_DELETE},
        value::Json,
    };

    fn row(level: u8) -> Json {
        json!({"id": 1, "access_level": level, "access_level_description": "x"})
    }

    #[test]
    fn a_protection_that_differs_is_replaced_and_put_back_if_that_fails() {
        let live = live(
            section("protected_tags"),
            json!({"name": "v*", "create_access_levels": [row(40)]}),
        );
        let declared =
            fields(json!({"name": "v*", "allowed_to_create": [{"access_level": "no_access"}]}));
        let act = act(
            section("protected_tags"),
            &Names::default(),
            Act::Change(&declared, &live, &["allowed_to_create"]),
        );
        let add = |level: u8| {
            let body = json!({"name": "v*", "create_access_level": level});
            PROTECTED_TAG_CREATE.request().arg("id", 7).fields(fields(body))
        };
        let remove = PROTECTED_TAG_DELETE.request().arg("id", 7).arg("name", "v*");
        assert_eq!(said(&act), said(&[remove, add(0), add(40)]));
    }
}
