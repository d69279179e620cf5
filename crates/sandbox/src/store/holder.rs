//! The owner of data that projects, groups and users can have.

/// A project, group or user, by its id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    Project(i64),
    Group(i64),
    User(i64),
}

impl Holder {
    /// The column for the id in a table, and the id.
    pub(crate) fn column_and_id(self) -> (&'static str, i64) {
        match self {
            Self::Project(id) => ("project_id", id),
            Self::Group(id) => ("group_id", id),
            Self::User(id) => ("user_id", id),
        }
    }
}
