//! Whether a project is archived: read-only, and out of the lists (reference 2, 4.4).

use std::sync::LazyLock;

use schemars::JsonSchema;

use crate::{
    field::{Accepted, FIELD},
    kind::{Kind, LiveEntry, Shape, Source, Subject, Table, Target},
    operation::{self, Op, Request, Write},
    schema,
    value::{Json, Value},
};

/// `archived: true` archives the project, `archived: false` brings it back.
// The project object carries the switch; what turns it is an operation of its own, never a field of
// a request.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct State {
    /// Whether the project is archived. Nothing else of an archived project can be changed.
    #[schemars(transform = FIELD.accepted(Accepted::Never))]
    pub archived: bool,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<State>()));

/// The section `archived`.
pub struct Archived;

impl Kind for Archived {
    fn section(&self) -> &'static str {
        "archived"
    }
    fn noun(&self) -> &'static str {
        "archive switch"
    }
    fn shape(&self) -> Shape {
        Shape::Switch
    }
    fn table(&self) -> &'static Table {
        &TABLE
    }
    fn source(&self, _target: &Target) -> Source {
        Source::Project
    }
    // A new project is not archived.
    fn create(&self, subject: Subject<'_>) -> Vec<Request<Write>> {
        declared(subject)
            .filter(|archived| *archived)
            .map(|_| request(operation::PROJECT_ARCHIVE, subject.target))
            .into_iter()
            .collect()
    }
    fn update(
        &self,
        subject: Subject<'_>,
        _live: &LiveEntry,
        _changed: &[&str],
    ) -> Vec<Request<Write>> {
        let operation = |archived| {
            if archived { operation::PROJECT_ARCHIVE } else { operation::PROJECT_UNARCHIVE }
        };
        declared(subject)
            .map(|archived| request(operation(archived), subject.target))
            .into_iter()
            .collect()
    }
}

fn declared(subject: Subject<'_>) -> Option<bool> {
    subject.declared.get("archived").and_then(Value::plain).and_then(Json::as_bool)
}

fn request(op: Op<Write>, target: &Target) -> Request<Write> {
    op.request().arg("id", target.id())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::testing::{create, fields, live, target, update},
        operation::{PROJECT_ARCHIVE, PROJECT_UNARCHIVE},
    };

    #[test]
    fn the_switch_is_turned_by_operations() {
        let (on, off) = (fields(json!({"archived": true})), fields(json!({"archived": false})));
        let turn = |op: Op<Write>| op.request().arg("id", 7);
        assert_eq!(
            update(&Archived, &on, json!({"archived": false}), &["archived"]),
            [turn(PROJECT_ARCHIVE)]
        );
        assert_eq!(
            update(&Archived, &off, json!({"archived": true}), &["archived"]),
            [turn(PROJECT_UNARCHIVE)]
        );
        assert_eq!(create(&Archived, &on), [turn(PROJECT_ARCHIVE)]);
        assert_eq!(create(&Archived, &off), []);
        assert_eq!(Archived.delete(&target(), &live(&Archived, json!({"archived": true}))), []);
    }
}
