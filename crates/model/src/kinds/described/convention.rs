//! The operations of a plain collection, by convention: they follow from its path.
//!
//! The method and the effect of each follow from its purpose. All stand side by side, so the functions
//! are long.

use super::make::{self, Parents};
use crate::{
    field::{Accepted, Field, Route, Scope},
    kind::{
        Home, Kind, Shape,
        description::{Create, Edit, Operations, Trait},
    },
    operation::{
        Again, Answer, AnyOp, Method, Operation, Parameter, Place, Type,
        collection::{self, EntryPath, kept, read, write},
    },
    text,
    value::Json,
};

/// Sets the operations of `home`, at `path`, and returns those that only it has.
pub(super) fn operate(
    kind: &Kind,
    home: &mut Home,
    path: &EntryPath,
    parents: Option<Parents>,
) -> Vec<AnyOp> {
    let made = operations(kind, home, path, parents);
    let is_shared = parents.is_some_and(|parents| parents.one.is_some());
    let reads = [made.list, made.get].into_iter().flatten().filter(|_| !is_shared);
    let create = made.create.filter(|op| Some(*op) != made.edit);
    let act = made.others.first().copied();
    let writes = [create, made.edit, act, made.delete].into_iter().flatten();
    let all = reads.map(AnyOp::Read).chain(writes.map(AnyOp::Write)).collect();
    home.operations = made;
    all
}

fn operations(kind: &Kind, home: &Home, path: &EntryPath, parents: Option<Parents>) -> Operations {
    let (scope, noun) = (path.scope, kind.noun);
    let (collection, is_document) = (path.collection(), kind.shape == Shape::Mapping);
    let parent = parents.map(|parents| {
        let about = String::leak(format!("The id of the {}.", parents.of.noun));
        kept([collection::parent(parents.parent.argument, about)])
    });
    let of_group = scope == Scope::Group;
    let one = match of_group {
        true => format!("a group's {noun}"),
        false if is_document => format!("the {noun}"),
        false => text::with_article(noun),
    };
    let all = if of_group { "a group's " } else { "" }.to_owned() + &text::plural(noun);
    let new = text::with_article(noun) + if of_group { " of a group" } else { "" };
    let entry = path.argument.map(|argument| {
        let about = format!("The {noun}, by its `{}`.", make::addressing(kind, argument));
        (argument, kept([collection::entry(argument, String::leak(about))]))
    });
    let row = |verb, method, purpose: String, answer, is_of_entry, more: &[_]| {
        let entry = entry.filter(|_| is_of_entry);
        let path = match entry {
            Some((argument, _)) => format!("{collection}/:{argument}"),
            None => collection.clone(),
        };
        let entry = entry.map(|(_, parameters)| parameters);
        let lists = [collection::of_container(scope)].into_iter().chain(parent).chain(entry);
        let lists = lists.chain(more.iter().copied()).collect();
        let id = collection::id(scope, noun, verb);
        let row = collection::row(&id, method, &path, purpose, answer, lists);
        let denies_with_401 = kind.traits.contains(&Trait::DeniesWith401);
        Operation { tier: home.available.tier, since: home.available.since, denies_with_401, ..row }
    };
    let body = |row: Operation, route| {
        let row = row.fields_of(scope, kind.section, route);
        write(Operation { shows: kind.traits.contains(&Trait::ReturnsEntry), ..row })
    };
    let get = || read(row("get", Method::Get, format!("get {one}"), Answer::One, true, &[]));
    let edit = |method| {
        let beside = kind.fields.iter().filter(|field| field.accepted == Accepted::ByCall);
        let parameter = |of: &Field| Parameter::new(Place::Body, of.name, Type::Text, of.about);
        let beside = kept(beside.map(parameter));
        let row = row("edit", method, format!("edit {one}"), Answer::One, true, &[beside]);
        body(row, Route::Edit)
    };
    let edit = match kind.edit {
        Edit::Put | Edit::OrReplace => Some(edit(Method::Put)),
        Edit::Patch => Some(edit(Method::Patch)),
        Edit::Replace => None,
    };
    if is_document {
        return Operations { get: Some(get()), create: edit, edit, ..Operations::default() };
    }
    let list = || {
        let query = kept(path.listing.iter().map(|(name, value)| list_query(name, value)));
        let more = [query, collection::PAGING];
        let row = row("list", Method::Get, format!("list {all}"), Answer::List, false, &more);
        let unpaged = kind.traits.contains(&Trait::ListsWithoutPages);
        read(Operation { unpaged, empty_as: home.empty_as, ..row })
    };
    let create = || {
        let again = if kind.traits.contains(&Trait::RefusesDuplicates) {
            Again::Refused
        } else {
            Again::Second
        };
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
        let by_query = kept(path.addresses.iter().map(|(name, field)| by_query(kind, name, field)));
        let purpose = format!("delete {one}");
        write(row("delete", Method::Delete, purpose, Answer::Nothing, true, &[by_query]))
    };
    let shared = parents.and_then(|parents| parents.one);
    let only_edits = kind.create == Create::Never;
    Operations {
        list: Some(shared.unwrap_or_else(list)),
        get: (shared.is_none() && !kind.traits.contains(&Trait::HasNoGet)).then(get),
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
fn by_query(kind: &Kind, name: &'static str, field: &str) -> Parameter {
    let about = kind.fields.iter().find(|of| of.name == field);
    let about = about.map_or("", |field| field.about);
    collection::query_parameter(name, Type::Text, about)
}

/// A query parameter of the list, with the value that undrift sends.
fn list_query(name: &'static str, value: &str) -> Parameter {
    let of = match serde_json::from_str(value) {
        Ok(Json::Bool(_)) => Type::Boolean,
        Ok(Json::Number(_)) => Type::Integer,
        _ => Type::Text,
    };
    let about = String::leak(format!("Which entries the list has: undrift sends `{value}`."));
    collection::query_parameter(name, of, about)
}
