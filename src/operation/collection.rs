//! The operations of a plain collection below a group or project, made from data.
//!
//! The data contains the path of the collection and the parameters of its requests. The effect of a
//! request only depends on the operation: a list is a GET and an [`Op<Read>`], an entry is created
//! by a write. So data cannot make a plan write, and no path can reach the group or project itself:
//! a fixed segment always follows its id.

use super::{
    Again, Answer, AnyOp, List, Method, Op, Operation, Parameter, Place, Read, Type, Write,
};
use crate::{
    field::{Route, Scope, Tier},
    release::Release,
    text,
};

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

/// The data of a collection.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Where it is.
    pub below: SubPath,
    /// The section of manifests whose fields its requests contain.
    pub section: &'static str,
    /// The noun for one entry.
    pub noun: &'static str,
    /// The parameter of the path that addresses an entry.
    pub entry: Parameter,
    /// The path argument for the parent, if entries have one.
    pub parent: Option<Parameter>,
    /// The read of a parent whose response contains the list, if no request returns the list.
    pub read: Option<Op<Read>>,
    /// Query parameters of the list request.
    pub query: Vec<Parameter>,
    /// Parameters of the edit request that are not fields of manifests.
    pub edit_parameters: Vec<Parameter>,
    /// The method of the edit, if entries can be edited.
    pub edit: Option<Method>,
    /// Whether one entry can be read.
    pub read_alone: bool,
    /// Whether it is a single object instead, which is read and edited at the path.
    pub is_document: bool,
    /// Whether the edit of an entry also creates it.
    pub is_put: bool,
    /// Whether no request creates or deletes an entry.
    pub only_edits: bool,
    /// The action that must precede the removal of an entry, and the parameter that it needs.
    pub before_removal: Option<(&'static str, Option<Parameter>)>,
    /// Whether the service refuses duplicates.
    pub is_unique: bool,
    /// Whether the response to a write shows the entry as a GET does.
    pub write_returns_entry: bool,
    /// Whether the service answers 401 if the caller lacks permission.
    pub denies_with_401: bool,
    /// Whether one response contains the whole list.
    pub unpaged: bool,
    /// The message of the 404 with which the service answers if the list is empty.
    pub empty_as: Option<&'static str>,
    /// The query parameters that address an entry, if paths have no argument for it.
    pub entry_query: Vec<Parameter>,
    /// The lowest tier of the service that has the collection.
    pub tier: Tier,
    /// The release that added the collection.
    pub since: Option<Release>,
}

/// The operations of a collection.
#[derive(Clone, Debug)]
pub struct Operations {
    /// Reads all entries.
    pub list: Op<Read>,
    /// The reads that only this collection has: of all entries, and of one.
    pub reads: Vec<Op<Read>>,
    /// Creates an entry, if a request does. The same as `edit` if the edit creates entries.
    pub create: Option<Op<Write>>,
    /// Edits an entry, if the service can.
    pub edit: Option<Op<Write>>,
    /// Removes an entry, if a request does.
    pub delete: Option<Op<Write>>,
    /// Precedes the removal of an entry.
    pub before_removal: Option<Op<Write>>,
}

impl Operations {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = AnyOp> {
        let reads = self.reads.iter().copied().map(AnyOp::Read);
        let is_edit = |op: &Op<Write>| self.edit.is_some_and(|edit| edit.row() == op.row());
        let create = self.create.filter(|op| !is_edit(op));
        let writes = [create, self.edit, self.before_removal, self.delete];
        reads.chain(writes.into_iter().flatten().map(AnyOp::Write))
    }
}

/// A list of parameters that lives as long as the program, like those of the table.
fn kept(parameters: impl IntoIterator<Item = Parameter>) -> List {
    List::Made(Vec::leak(parameters.into_iter().collect()))
}

/// All possible ids of operations for a collection of `noun`s.
pub fn ids(scope: Scope, noun: &str) -> impl Iterator<Item = String> {
    ["list", "get", "create", "edit", "delete"].into_iter().map(move |verb| id(scope, noun, verb))
}

fn id(scope: Scope, noun: &str, verb: &str) -> String {
    let group = if scope == Scope::Group { "group-" } else { "" };
    format!("{group}{}-{verb}", noun.replace(' ', "-"))
}

impl Collection {
    /// Makes the operations. They live as long as the program, so each collection is made once. All
    /// of them stand side by side, so the function is long.
    pub fn operations(&self) -> Operations {
        let in_path = !self.is_document && self.entry_query.is_empty();
        let entry = in_path.then(|| kept([self.entry]));
        let by_query = kept(self.entry_query.iter().copied());
        let noun = self.noun;
        let of_group = self.below.scope == Scope::Group;
        let one = match of_group {
            true => format!("a group's {noun}"),
            false if self.is_document => format!("the {noun}"),
            false => text::with_article(noun),
        };
        let all = if of_group { "a group's " } else { "" }.to_owned() + &text::plural(noun);
        let new = text::with_article(noun) + if of_group { " of a group" } else { "" };
        let row = |verb, method, purpose: String, answer, entry: Option<_>, more: &[_]| {
            let path = self.path(entry.is_some());
            let parent = self.parent.map(|parent| kept([parent]));
            let lists =
                [List::Named(self.below.scope.noun())].into_iter().chain(parent).chain(entry);
            let lists: Vec<_> = lists.chain(more.iter().copied()).collect();
            let (id, purpose) =
                (String::leak(id(self.below.scope, noun, verb)), String::leak(purpose));
            let row = Operation::new(id, method, path, purpose, "supporting", answer, lists.leak());
            let denies_with_401 = self.denies_with_401;
            Operation { tier: self.tier, since: self.since, denies_with_401, ..row }
        };
        let fields = |row: Operation, route| row.fields_of(self.below.scope, self.section, route);
        let query = kept(self.query.iter().copied());
        let list = row(
            "list",
            Method::Get,
            format!("list {all}"),
            Answer::List,
            None,
            &[query, List::Named("paging")],
        );
        let get = row("get", Method::Get, format!("get {one}"), Answer::One, entry, &[]);
        let again = if self.is_unique { Again::Refused } else { Again::Second };
        let create = || {
            let purpose = format!("create {new}");
            let row = row("create", Method::Post, purpose, Answer::One, None, &[]);
            self.write(fields(row, Route::Create).again(again))
        };
        let edit = |method| {
            let beside = kept(self.edit_parameters.iter().copied());
            let purpose = format!("edit {one}");
            let row = row("edit", method, purpose, Answer::One, entry, &[beside]);
            self.write(fields(row, Route::Edit))
        };
        let before_removal = |(act, parameter): (&'static str, Option<Parameter>)| {
            let purpose = format!("{act} {one}");
            let row = row(act, Method::Post, purpose, Answer::Unsaid, entry, &[kept(parameter)]);
            let path = String::leak(format!("{}/{act}", row.path));
            write(Operation { path, ..row.again(Again::Same) })
        };
        let before_removal = self.before_removal.map(before_removal);
        let purpose = format!("delete {one}");
        let delete = row("delete", Method::Delete, purpose, Answer::Nothing, entry, &[by_query]);
        let edit = self.edit.map(edit);
        let list = Operation { unpaged: self.unpaged, empty_as: self.empty_as, ..list };
        let (list, get) = match self.is_document {
            true => (get, None),
            false => (list, Some(get).filter(|_| self.read_alone)),
        };
        let list = self.read.unwrap_or_else(|| read(list));
        let reads = match self.read {
            Some(_) => Vec::new(),
            None => std::iter::once(list).chain(get.map(read)).collect(),
        };
        Operations {
            list,
            reads,
            create: match edit.filter(|_| self.is_put || self.is_document) {
                None => (!self.only_edits).then(create),
                edit => edit,
            },
            edit,
            delete: (!self.is_document && !self.only_edits).then(|| write(delete)),
            before_removal,
        }
    }

    /// The path of all entries, or of one.
    fn path(&self, of_one: bool) -> &'static str {
        let entry = if of_one { format!("/:{}", self.entry.name) } else { String::new() };
        String::leak(self.below.path() + &entry)
    }

    /// A write with a body.
    fn write(&self, row: Operation) -> Op<Write> {
        write(if self.write_returns_entry { row.shows() } else { row })
    }
}

fn read(row: Operation) -> Op<Read> {
    Op::new(Box::leak(Box::new(row)))
}

fn write(row: Operation) -> Op<Write> {
    Op::new(Box::leak(Box::new(row)))
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
pub(crate) mod tests;
