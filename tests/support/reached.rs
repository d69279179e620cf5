//! The use of each operation.

use undrift::{
    catalogue,
    field::Scope,
    kind::{Operations, ReadSource, Section},
    operation::{self, Op, Operation, Read, Write},
};

/// The use of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// By declarations in this section of groups or projects.
    Declaring(Scope, &'static str),
    /// By what every plan reads.
    Reading,
    /// Only with `undrift call`.
    Calling,
}

impl std::fmt::Display for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Declaring(scope, section) => write!(f, "`{section}` of a {}", scope.noun()),
            Self::Reading => f.write_str("reading"),
            Self::Calling => f.write_str("`undrift call`"),
        }
    }
}

/// Operations that find containers, and the users and objects that they name.
const LOOKUPS: [Op<Read>; 16] = [
    operation::CURRENT_USER,
    operation::VERSION_GET,
    operation::USER_FIND,
    operation::USER_GET,
    operation::NAMESPACE_GET,
    operation::NAMESPACE_FIND,
    operation::GROUP_LIST,
    operation::GROUP_DESCENDANTS,
    operation::GROUP_GET,
    operation::GROUP_PROJECTS,
    operation::GROUP_MEMBER_GET_ALL,
    operation::GROUP_MEMBER_LIST_ALL,
    operation::MEMBER_LIST_ALL,
    operation::PROJECT_GET,
    operation::PROJECT_LIST,
    operation::USER_PROJECTS,
];

/// Returns the use of `operation` besides `undrift call`.
pub(crate) fn reach(operation: &Operation) -> Reach {
    let is_it = |op: &Operation| op == operation;
    let of = |section: &Section| {
        writes(*section).any(|op| is_it(op.row())) || reads(*section).any(|op| is_it(op.row()))
    };
    if LOOKUPS.iter().any(|op| is_it(op.row())) {
        return Reach::Reading;
    }
    catalogue::all_sections().find(of).map_or(Reach::Calling, |section| {
        Reach::Declaring(section.scoped_kind.scope, section.section)
    })
}

/// The operations that write it.
fn writes(section: Section) -> impl Iterator<Item = Op<Write>> {
    let Operations { create, edit, delete, others, .. } = &section.scoped_kind.operations;
    [create, edit, delete].into_iter().flatten().chain(others).copied()
}

/// The operations that read its live entries, where they are no part of the container's object.
fn reads(section: Section) -> impl Iterator<Item = Op<Read>> {
    let own = match section.scoped_kind.read_source {
        ReadSource::List(op) | ReadSource::Optional(op) => Some(op),
        ReadSource::Container
        | ReadSource::Object
        | ReadSource::ListField(_)
        | ReadSource::ObjectField { .. } => None,
    };
    let one = section.detail.and(section.scoped_kind.operations.get);
    own.into_iter().chain(one).chain(catalogue::side_list(section).map(|side| side.list_op))
}
