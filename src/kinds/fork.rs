//! Which project a project is a fork of (reference 2, 4.4).
//!
//! A new project comes into being with this relation: as a fork, if nothing else fills it (see
//! [`project`](super::project)).

use std::sync::LazyLock;

use schemars::JsonSchema;

use crate::{
    field::{Accepted, FIELD, Named, Scope},
    kind::{
        Call, Change, Create, Effect, Handle, HandlePlace, Home, Job, Kind, LiveEntry, Place,
        Rules, Shape, Table, Unable, calls::Act, plain_text,
    },
    operation::{self, Request, Write},
    page::Rows,
    schema, text,
    value::{Fields, Json, Object, Value},
};

/// The name of the section, of its field, and of what `create` says with it.
pub(super) const FORK_OF: &str = "fork_of";

/// `fork_of: PATH` makes the project a fork of the one at `PATH`, `fork_of: null` one of its own. A
/// missing project is created as a fork of it, unless `create` names other contents.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Fork {
    /// The full path of the project that this one is a fork of.
    #[schemars(
        transform = FIELD.accepted(Accepted::Never).names(Named::Project, "forked_from_id")
            .read_as("path_with_namespace").in_any_case(),
        length(min = 1), example = &"acme/shop",
    )]
    pub fork_of: String,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table::new(&schema::of::<Fork>()));

/// The section `fork_of`.
pub static KIND: Kind = Kind {
    section: FORK_OF,
    noun: "fork relation",
    shape: Shape::Switch,
    identity: &[],
    required: &[],
    homes: &[Home {
        scope: Scope::Project,
        fields: &TABLE,
        // A fork has the sign whether one sees what it is a fork of or not.
        place: Place::Part { field: "forked_from_project", sign: "mr_default_target_self" },
        create: Create::Container,
        change: Change::Rules,
        delete: Some(operation::FORK_RELATION_DELETE),
        acts: &[operation::FORK_RELATION_CREATE],
        handle: &[Handle { field: "id", place: HandlePlace::Added(UPSTREAM) }],
        rows: Rows::with_id(&["path_with_namespace"]),
        ..Home::PLAIN
    }],
    rules: &Relation,
};

const UPSTREAM: &str = "forked_from_id";

struct Relation;

impl Rules for Relation {
    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        match job.act {
            Act::Create(declared) => Ok(vec![relate(job, declared)?.into()]),
            Act::Remove(live) => Ok(vec![job.remove(live)?.into()]),
            // The service refuses a second relation.
            Act::Change(declared, live, _) => Ok(vec![
                job.remove(live)?.once().into(),
                relate(job, declared)?.into(),
                Call { restores: true, ..relate_again(job, live).into() },
            ]),
            Act::Itself(_) => Err(Unable::Needless),
        }
    }

    fn effects(&self, _who: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let upstream =
            |fields: &Object| fields.get(FORK_OF).and_then(Json::as_str).map(str::to_owned);
        let lost = upstream(before).filter(|lost| upstream(after).as_ref() != Some(lost));
        let closes = |lost: String| {
            format!("closes the open merge requests from here into `{}`", text::escape(&lost))
        };
        lost.map(closes).map(Effect::Besides).into_iter().collect()
    }
}

/// The request that makes the project a fork of the declared one.
pub(super) fn relate(job: &Job<'_>, declared: &Fields) -> Result<Request<Write>, Unable> {
    let path = declared.get(FORK_OF).and_then(Value::text).unwrap_or_default();
    let id = job.names.id(Named::Project, path);
    let id = id.ok_or_else(|| Unable::unknown(Named::Project, path, FORK_OF))?;
    let request = operation::FORK_RELATION_CREATE.request().arg("id", job.target.id());
    Ok(request.arg_of(UPSTREAM, path, id.known()))
}

/// The request that makes it a fork of what it was a fork of.
fn relate_again(job: &Job<'_>, live: &LiveEntry) -> Request<Write> {
    let path = live.fields.get(FORK_OF).map(plain_text).unwrap_or_default();
    let request = operation::FORK_RELATION_CREATE.request().arg("id", job.target.id());
    request.arg_of(UPSTREAM, &path, live.id())
}
