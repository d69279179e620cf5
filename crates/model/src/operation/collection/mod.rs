//! Operations of plain collections. These operations are generated from data and are not in the
//! table.
//!
//! Only a GET becomes an [`Op<Read>`], so planning never writes, even if data are wrong. No path
//! addresses the group or project itself, because a fixed segment always follows its id.

use super::{Method, Op, Operation, Read, RetrySafety, Write};
use crate::field::Scope;

/// The path of a collection and of its entries, or of a single object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPath {
    /// The scope of the container.
    pub scope: Scope,
    /// The argument that addresses an entry; `None` for a single object, and for entries that the
    /// query addresses.
    pub argument: Option<&'static str>,
    /// The parameters of the query that address an entry, each with its field.
    pub address_query: Vec<(&'static str, &'static str)>,
    /// The parameters of the query of the list, with their values.
    pub list_query: Vec<(&'static str, &'static str)>,
    /// The segments after the id of the container. Most segments are names. At most one `:argument`
    /// is between the names, and addresses the parent entry.
    segments: Vec<&'static str>,
}

/// The reason why a text is not the path of an entry. The reason completes the sentence "the path
/// …".
pub type EntryPathError = &'static str;

impl EntryPath {
    /// Reads a path such as `/projects/:id/badges/:badge_id`.
    ///
    /// # Errors
    /// If the path is not below a group or project, or if it contains other text than plain names
    /// and arguments.
    pub fn parse(path: &'static str) -> Result<Self, EntryPathError> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut scopes = Scope::ALL.into_iter();
        let scope_and_subpath =
            scopes.find_map(|scope| Some((scope, path.strip_prefix(&container_path(scope))?)));
        let (scope, subpath) =
            scope_and_subpath.ok_or("must start with `/projects/:id/` or `/groups/:id/`")?;
        let subpath = subpath.strip_prefix('/').filter(|rest| !rest.is_empty());
        let subpath = subpath.ok_or("must name a collection after `:id`")?;
        let mut segments: Vec<_> = subpath.split('/').collect();
        if !segments
            .iter()
            .all(|segment| is_plain_name(segment.strip_prefix(':').unwrap_or(segment)))
        {
            return Err("must have only names of lower-case letters, digits and `_` after `:id`");
        }
        let last_argument = segments.pop_if(|last| last.starts_with(':'));
        let name_lists: Vec<_> = segments.split(|part| part.starts_with(':')).collect();
        if name_lists.len() > 2 || (name_lists.len() == 2 && name_lists.contains(&&[][..])) {
            return Err("must have at most one argument between names, for a parent entry");
        }
        if segments.is_empty() {
            return Err("must name a collection after `:id`");
        }
        let mut path = Self {
            scope,
            argument: last_argument.and_then(|part| part.strip_prefix(':')),
            address_query: Vec::new(),
            list_query: Vec::new(),
            segments,
        };
        path.add_query(query)?;
        Ok(path)
    }

    /// Adds the parameters of a query. A parameter with a value `:field` addresses an entry. Other
    /// parameters are sent unchanged.
    fn add_query(&mut self, query: &'static str) -> Result<(), EntryPathError> {
        for pair in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or("has a query without `=`")?;
            let filter_name = name.strip_prefix("filter[").and_then(|rest| rest.strip_suffix(']'));
            if !is_plain_name(filter_name.unwrap_or(name)) || value.is_empty() {
                return Err("has a query that is not made of plain names with values");
            }
            if self.address_query.iter().chain(&self.list_query).any(|(other, _)| *other == name) {
                return Err("names a parameter of the query twice");
            }
            match value.strip_prefix(':') {
                Some(field) => self.address_query.push((name, field)),
                None => self.list_query.push((name, value)),
            }
        }
        Ok(())
    }

    /// The names in the path after the id of the container. The path has at least one name.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.segments.iter().copied().filter(|segment| !segment.starts_with(':'))
    }

    /// The index and the name of the argument that addresses the parent entry. `None` if entries
    /// have no parent.
    fn find_parent_argument(&self) -> Option<(usize, &'static str)> {
        let mut segments = self.segments.iter().enumerate();
        segments.find_map(|(index, segment)| Some((index, segment.strip_prefix(':')?)))
    }

    /// The path of the collection of parent entries, and the argument that addresses one parent.
    /// `None` if entries have no parent.
    pub fn parent_path(&self) -> Option<(String, &'static str)> {
        let (index, argument) = self.find_parent_argument()?;
        let names = self.segments[..index].join("/");
        Some((format!("{}/{names}", container_path(self.scope)), argument))
    }

    /// The path of the collection, or of the single object.
    pub fn collection_path(&self) -> String {
        format!("{}/{}", container_path(self.scope), self.segments.join("/"))
    }

    /// True if the path of `operation` has the same first name after the id of the container, or
    /// after the id of the parent entry.
    pub fn starts_with_same_segment_as(&self, operation: &Operation) -> bool {
        let Some(subpath) = operation.path.strip_prefix(&container_path(self.scope)) else {
            return false;
        };
        let segment_count = self.find_parent_argument().map_or(1, |(index, _)| index + 2);
        let other_segments: Vec<_> = subpath.split('/').skip(1).take(segment_count).collect();
        let mut pairs = self.segments.iter().zip(&other_segments);
        other_segments.len() == segment_count
            && pairs.all(|(segment, other)| segment == other || segment.starts_with(':'))
    }

    /// True if the path of a request for the collection, or for one of its entries, also matches the
    /// path of `operation`. A single object (`is_single_object`) has no entries.
    pub fn shares_path_with(&self, operation: &Operation, is_single_object: bool) -> bool {
        let path = self.collection_path();
        let segments: Vec<_> = path.split('/').collect();
        let other_segments: Vec<_> = operation.path.split('/').collect();
        let is_entry_path = !is_single_object && other_segments.len() == segments.len() + 1;
        (other_segments.len() == segments.len() || is_entry_path)
            && segments.iter().zip(&other_segments).all(|(segment, other): (&&str, &&str)| {
                segment == other || segment.starts_with(':') || other.starts_with(':')
            })
    }
}

/// True if a segment of a path is a plain name.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The path template of a container, such as `/projects/:id`.
fn container_path(scope: Scope) -> String {
    format!("/{}s/:id", scope.noun())
}

/// The operation in `row` as a GET that is safe to retry.
pub fn make_read_op(row: Operation) -> Op<Read> {
    Op::new(Box::leak(Box::new(Operation {
        method: Method::Get,
        retry_safety: RetrySafety::Reads,
        ..row
    })))
}

/// The write operation in `row`.
pub fn make_write_op(row: Operation) -> Op<Write> {
    Op::new(Box::leak(Box::new(row)))
}

/// The ids that operations of a collection of `noun`s may have.
pub fn operation_ids(scope: Scope, noun: &str) -> impl Iterator<Item = String> {
    ["list", "get", "create", "edit", "delete"]
        .into_iter()
        .map(move |verb| operation_id(scope, noun, verb))
}

/// The id of the operation `verb` on a collection of `noun`s, such as `group-push-mirror-edit`.
pub fn operation_id(scope: Scope, noun: &str, verb: &str) -> String {
    let prefix = if scope == Scope::Group { "group-" } else { "" };
    format!("{prefix}{}-{verb}", noun.replace(' ', "-"))
}

#[cfg(test)]
mod tests;
