//! Rows of the table that are made from data: the operations of plain collections.
//!
//! The effect of a request only depends on the operation: only a GET becomes an [`Op<Read>`]. So data
//! cannot make a plan write, and no path can reach the group or project itself: a fixed segment
//! always follows its id.

use super::{Again, Answer, List, Method, Op, Operation, Parameter, Place, Read, Type, Write};
use crate::field::Scope;

/// The path of a collection, as the part after the id of the group or project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubPath {
    /// The scope of the container.
    pub scope: Scope,
    segments: Vec<String>,
    /// For a collection below each entry of the one at `segments`: the names after the entry, and the
    /// argument for the id of the entry.
    entry: Option<(Vec<String>, String)>,
}

/// The placeholder for a parent entry in paths.
const ENTRY: &str = ":entry";

/// Why a path is not that of a collection: the end of a sentence that starts with "the path".
pub type NoPath = &'static str;

impl SubPath {
    /// Reads a path such as `/projects/:id/badges`.
    ///
    /// # Errors
    /// If the path is not below a group or project, or contains anything but plain names.
    pub fn parse(path: &str) -> Result<Self, NoPath> {
        let below = |scope: Scope| path.strip_prefix(&root(scope));
        let found = Scope::ALL.into_iter().find_map(|scope| Some((scope, below(scope)?)));
        let (scope, rest) = found.ok_or("must start with `/projects/:id/` or `/groups/:id/`")?;
        let rest = rest.strip_prefix('/').filter(|rest| !rest.is_empty());
        let rest = rest.ok_or("must name a collection behind `:id`")?;
        let is_plain = |segment: &str| {
            segment.starts_with(|c: char| c.is_ascii_lowercase())
                && segment.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let all: Vec<_> = rest.split('/').collect();
        let mut parts = all.split(|segment| *segment == ENTRY).map(|part| {
            let is_good = !part.is_empty() && part.iter().all(|segment| is_plain(segment));
            is_good.then(|| part.iter().map(|segment| (*segment).to_owned()).collect::<Vec<_>>())
        });
        match (parts.next().flatten(), parts.next(), parts.next()) {
            (Some(segments), None, None) => Ok(Self { scope, segments, entry: None }),
            (Some(segments), Some(Some(below)), None) => {
                Ok(Self { scope, segments, entry: Some((below, ENTRY.to_owned())) })
            }
            _ if all.contains(&ENTRY) => Err("must have one `:entry`, between plain names"),
            _ => Err("must be made of names of lower-case letters, digits and `_` behind `:id`"),
        }
    }

    /// The names in the path; there is at least one.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        let below = self.entry.iter().flat_map(|(below, _)| below);
        self.segments.iter().chain(below).map(String::as_str)
    }

    /// The path of the collection of the parents, if there are parents.
    pub fn parent(&self) -> Option<String> {
        self.entry.as_ref().map(|_| format!("{}/{}", root(self.scope), self.segments.join("/")))
    }

    /// The same with the service's name for the argument of the parent.
    #[must_use]
    pub fn of_entry(self, argument: &str) -> Self {
        let entry = self.entry.map(|(below, _)| (below, format!(":{argument}")));
        Self { entry, ..self }
    }

    /// The path of the collection.
    pub fn path(&self) -> String {
        let own = format!("{}/{}", root(self.scope), self.segments.join("/"));
        match &self.entry {
            Some((below, entry)) => format!("{own}/{entry}/{}", below.join("/")),
            None => own,
        }
    }

    /// Whether `operation` has the same first name in its path, or the same after a parent entry.
    pub fn shares_ground_with(&self, operation: &Operation) -> bool {
        let Some(rest) = operation.path.strip_prefix(&root(self.scope)) else { return false };
        let mut rest = rest.split('/').skip(1);
        let Some((below, _)) = &self.entry else {
            return rest.next() == self.segments.first().map(String::as_str);
        };
        rest.by_ref().take(self.segments.len()).eq(&self.segments)
            && rest.nth(1) == below.first().map(String::as_str)
    }

    /// Whether a request for the collection, or for an entry if it is no document, could be meant for
    /// `operation`.
    pub fn shares_path_with(&self, operation: &Operation, is_document: bool) -> bool {
        let path = self.path();
        let own: Vec<_> = path.split('/').collect();
        let other: Vec<_> = operation.path.split('/').collect();
        let meets = |(own, other): (&&str, &&str)| {
            own == other || own.starts_with(':') || other.starts_with(':')
        };
        let is_of_entry = !is_document && other.len() == own.len() + 1;
        (other.len() == own.len() || is_of_entry) && own.iter().zip(&other).all(meets)
    }
}

/// The path of a container.
fn root(scope: Scope) -> String {
    format!("/{}s/:id", scope.noun())
}

/// A row with the usual properties of its method. It lives as long as the program, so each is made
/// once.
pub fn row(
    id: &str,
    method: Method,
    path: &str,
    purpose: String,
    answer: Answer,
    lists: Vec<List>,
) -> Operation {
    let kept = |text: &str| &*String::leak(text.to_owned());
    let (id, path, purpose) = (kept(id), kept(path), String::leak(purpose));
    Operation::new(id, method, path, purpose, "supporting", answer, lists.leak())
}

/// The parameters of paths that begin with a container of `scope`.
pub const fn of_container(scope: Scope) -> List {
    List::Named(scope.noun())
}

/// The paging parameters of a list.
pub const PAGING: List = List::Named("paging");

/// A list of parameters that lives as long as the program, like those of the table.
pub fn kept(parameters: impl IntoIterator<Item = Parameter>) -> List {
    List::Made(Vec::leak(parameters.into_iter().collect()))
}

/// The operation that reads as `row` says. It is a GET, whatever the row says.
pub fn read(row: Operation) -> Op<Read> {
    Op::new(Box::leak(Box::new(Operation { method: Method::Get, again: Again::Reads, ..row })))
}

/// The operation that writes as `row` says.
pub fn write(row: Operation) -> Op<Write> {
    Op::new(Box::leak(Box::new(row)))
}

/// All possible ids of operations for a collection of `noun`s.
pub fn ids(scope: Scope, noun: &str) -> impl Iterator<Item = String> {
    ["list", "get", "create", "edit", "delete"].into_iter().map(move |verb| id(scope, noun, verb))
}

/// The id of the operation of a collection of `noun`s that does `verb`.
pub fn id(scope: Scope, noun: &str, verb: &str) -> String {
    let group = if scope == Scope::Group { "group-" } else { "" };
    format!("{group}{}-{verb}", noun.replace(' ', "-"))
}

/// The path argument for a parent entry.
pub const fn parent(name: &'static str, about: &'static str) -> Parameter {
    Parameter { required: true, ..Parameter::new(Place::Path, name, Type::Integer, about) }
}

/// The parameter that addresses an entry.
pub const fn entry(name: &'static str, about: &'static str) -> Parameter {
    Parameter { required: true, ..Parameter::new(Place::Path, name, Type::IdOrName, about) }
}

/// A query parameter of the list request.
pub const fn query_parameter(name: &'static str, value: Type, about: &'static str) -> Parameter {
    Parameter::new(Place::Query, name, value, about)
}

/// A parameter of the edit request.
pub const fn edit_parameter(name: &'static str, about: &'static str) -> Parameter {
    Parameter::new(Place::Body, name, Type::Text, about)
}

#[cfg(test)]
mod tests;
