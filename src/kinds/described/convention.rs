//! The operations of a plain collection, by convention: they follow from its path.
//!
//! The method and the effect of each follow from its purpose. All stand side by side, so the functions
//! are long.

use super::make::{self, Parents};
use crate::{
    field::{Route, Scope},
    kind::{
        Home, Kind,
        description::{Create, Edit, Operations, QueryParameter},
    },
    operation::{
        Again, Answer, AnyOp, Method, Operation, Parameter, Type,
        collection::{self, SubPath, kept, read, write},
    },
    text,
    value::Json,
};

/// Sets the operations of `home`, at `below`, and returns those that only it has.
pub(super) fn operate(
    kind: &Kind,
    home: &mut Home,
    below: SubPath,
    parents: Option<Parents>,
) -> Vec<AnyOp> {
    let made = operations(kind, home, below, parents);
    let is_shared = parents.is_some_and(|parents| parents.one.is_some());
    let reads = [made.list, made.get].into_iter().flatten().filter(|_| !is_shared);
    let create = made.create.filter(|op| Some(*op) != made.edit);
    let act = made.others.first().copied();
    let writes = [create, made.edit, act, made.delete].into_iter().flatten();
    let all = reads.map(AnyOp::Read).chain(writes.map(AnyOp::Write)).collect();
    home.operations = made;
    all
}

fn operations(kind: &Kind, home: &Home, below: SubPath, parents: Option<Parents>) -> Operations {
    let (scope, noun) = (below.scope, kind.noun);
    let below = match parents {
        Some(parents) => below.of_entry(parents.parent.argument),
        None => below,
    };
    let parent = parents.map(|parents| {
        let about = String::leak(format!("The id of the {}.", parents.of.noun));
        kept([collection::parent(parents.parent.argument, about)])
    });
    let of_group = scope == Scope::Group;
    let one = match of_group {
        true => format!("a group's {noun}"),
        false if kind.document => format!("the {noun}"),
        false => text::with_article(noun),
    };
    let all = if of_group { "a group's " } else { "" }.to_owned() + &text::plural(noun);
    let new = text::with_article(noun) + if of_group { " of a group" } else { "" };
    let argument = make::argument(kind);
    let entry = (!kind.document && kind.entry.query.is_empty()).then(|| {
        let field = kind.entry.field.unwrap_or("id");
        let about = || &*String::leak(format!("The {noun}, by its `{field}`."));
        kept([collection::entry(argument, kind.entry.about.unwrap_or_else(about))])
    });
    let row = |verb, method, purpose: String, answer, is_of_entry, more: &[_]| {
        let entry = entry.filter(|_| is_of_entry);
        let path = match entry {
            Some(_) => format!("{}/:{argument}", below.path()),
            None => below.path(),
        };
        let lists = [collection::of_container(scope)].into_iter().chain(parent).chain(entry);
        let lists = lists.chain(more.iter().copied()).collect();
        let id = collection::id(scope, noun, verb);
        let row = collection::row(&id, method, &path, purpose, answer, lists);
        let denies_with_401 = kind.denies_with_401;
        Operation { tier: home.available.tier, since: home.available.since, denies_with_401, ..row }
    };
    let body = |row: Operation, route| {
        let row = row.fields_of(scope, kind.section, route);
        write(Operation { shows: kind.write_returns_entry, ..row })
    };
    let get = || read(row("get", Method::Get, format!("get {one}"), Answer::One, true, &[]));
    let edit = |method| {
        let beside = kind.edit_parameters.iter();
        let beside = kept(beside.map(|of| collection::edit_parameter(of.name, of.about)));
        let row = row("edit", method, format!("edit {one}"), Answer::One, true, &[beside]);
        body(row, Route::Edit)
    };
    let edit = match kind.edit {
        Edit::Put | Edit::OrReplace => Some(edit(Method::Put)),
        Edit::Patch => Some(edit(Method::Patch)),
        Edit::Replace => None,
    };
    if kind.document {
        return Operations { get: Some(get()), create: edit, edit, ..Operations::default() };
    }
    let list = || {
        let query = kept(home.list.query.iter().map(query));
        let more = [query, collection::PAGING];
        let row = row("list", Method::Get, format!("list {all}"), Answer::List, false, &more);
        read(Operation { unpaged: home.list.whole, empty_as: home.list.empty_as, ..row })
    };
    let create = || {
        let again = if kind.unique { Again::Refused } else { Again::Second };
        let row = row("create", Method::Post, format!("create {new}"), Answer::One, false, &[]);
        body(row.again(again), Route::Create)
    };
    let before_removal = make::act_before(kind).map(|(act, parameter)| {
        let about = "Without it, the service refuses some entries.";
        let of = |(name, _)| collection::query_parameter(name, Type::Text, about);
        let more = [kept(parameter.map(of))];
        let row = row(act, Method::Post, format!("{act} {one}"), Answer::Unsaid, true, &more);
        let path = String::leak(format!("{}/{act}", row.path));
        write(Operation { path, ..row.again(Again::Same) })
    });
    let delete = || {
        let by_query = kept(kind.entry.query.iter().map(|name| by_query(kind, name)));
        let purpose = format!("delete {one}");
        write(row("delete", Method::Delete, purpose, Answer::Nothing, true, &[by_query]))
    };
    let shared = parents.and_then(|parents| parents.one);
    let only_edits = kind.create == Create::Never;
    Operations {
        list: Some(shared.unwrap_or_else(list)),
        get: (shared.is_none() && kind.read_alone).then(get),
        create: match edit.filter(|_| kind.create == Create::Put) {
            None => (!only_edits).then(create),
            edit => edit,
        },
        edit,
        delete: (!only_edits).then(delete),
        others: before_removal.into_iter().collect(),
    }
}

/// The query parameter that addresses an entry by this field.
fn by_query(kind: &Kind, name: &'static str) -> Parameter {
    let about = kind.fields.iter().find(|field| field.name == name);
    let about = about.map_or("", |field| field.about);
    collection::query_parameter(name, Type::Text, about)
}

fn query(parameter: &QueryParameter) -> Parameter {
    let value = match parameter.value.0 {
        Json::Bool(_) => Type::Boolean,
        Json::Number(_) => Type::Integer,
        _ => Type::Text,
    };
    collection::query_parameter(parameter.name, value, parameter.about)
}
