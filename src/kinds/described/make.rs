//! The kind that a description describes, and its operations.
//!
//! Both live as long as the program, as those that are written in Rust do; a description is made
//! into a kind once.

use super::{
    Described,
    description::{Create as Creation, Description, Edit, Home as Collected, Value},
    entry,
};
use crate::{
    kind::{
        Capability, Change, Create, Effect, Handle, Home, Identity, Job, Kind, Place, Removal,
        Rules, Section, Shape, Spec, Table, Unable,
        calls::{Act, Call},
        forms,
    },
    kinds::{member, protected_branch::effects},
    level::{Level, MAINTAINER},
    operation::{
        Parameter, Type,
        collection::{self, Below, Collection, NoPath, Operations},
    },
    page::Rows,
    value::{Json, Object},
};

/// Makes it, with nothing checked but the paths.
///
/// # Errors
/// If a path is none of a collection.
pub(super) fn make(description: &Description) -> Result<Described, NoPath> {
    let (mut homes, mut operations) = (Vec::new(), Vec::new());
    for home in &description.homes {
        let below = Below::parse(&home.path)?;
        let made = collection(description, home, below.clone()).operations();
        operations.extend(made.all());
        homes.push(of_scope(description, home, &below, &made));
    }
    let called = description.called.as_deref().map(keep);
    let lets = description
        .fields
        .iter()
        .filter_map(|field| field.lets.as_ref().map(|does| (keep(&field.name), keep(does))));
    let lets: Vec<_> = lets.collect();
    let level = description.fields.iter().find(|field| field.value == Value::Level);
    let kind = Kind {
        section: keep(&description.section),
        noun: keep(&description.noun),
        shape: Shape::List,
        identity: keep_all(&description.identity),
        required: keep_all(&description.required),
        removal: if lets.is_empty() { description.removal } else { Removal::ByKind },
        homes: homes.leak(),
        rules: Box::leak(Box::new(Identified {
            noun: keep(&description.noun),
            called,
            pattern: keep(&description.identity[0]),
            lets: lets.leak(),
            grants: keep_all(&description.grants),
            level: level.map(|field| keep(&field.name)),
            before_removal: description
                .before_removal
                .as_deref()
                .map(|act| keep(&format!("sends `POST …/{act}` first"))),
        })),
    };
    Ok(Described { kind: Box::leak(Box::new(kind)), operations })
}

fn keep(text: &str) -> &'static str {
    String::leak(text.to_owned())
}

fn keep_all(texts: &[String]) -> &'static [&'static str] {
    texts.iter().map(|text| keep(text)).collect::<Vec<_>>().leak()
}

/// What names an entry in its path.
pub(super) fn argument(description: &Description) -> String {
    let default = || description.noun.replace(' ', "_") + "_id";
    description.entry.argument.clone().unwrap_or_else(default)
}

/// The names of the operations of the collection at `below`.
pub(super) fn ids(description: &Description, below: &Below) -> impl Iterator<Item = String> {
    collection::ids(below.scope, &description.noun)
}

fn collection(description: &Description, home: &Collected, below: Below) -> Collection {
    let field = description.entry.field.as_deref().unwrap_or("id");
    let about = || format!("The {}, by its `{field}`.", description.noun);
    let about = description.entry.about.clone().unwrap_or_else(about);
    let besides = description.edit_takes_besides.iter();
    Collection {
        below,
        section: keep(&description.section),
        noun: keep(&description.noun),
        entry: collection::entry(keep(&argument(description)), keep(&about)),
        query: home.query.iter().map(query).collect(),
        beside: besides.map(|p| collection::beside(keep(&p.name), keep(&p.about))).collect(),
        is_edited: description.edit == Edit::Put,
        is_put: description.create == Creation::Put,
        before_removal: description.before_removal.as_deref().map(keep),
        is_unique: description.unique,
        shows: description.answers_show_it,
        denies_with_401: description.denies_with_401,
        in_one: !home.paged,
        tier: home.tier,
        since: home.since,
    }
}

fn query(asked: &super::description::Asked) -> Parameter {
    let value = match asked.value.0 {
        Json::Bool(_) => Type::Boolean,
        Json::Number(_) => Type::Integer,
        _ => Type::Text,
    };
    collection::asked(keep(&asked.name), value, keep(&asked.about))
}

fn of_scope(
    description: &Description,
    home: &Collected,
    below: &Below,
    operations: &Operations,
) -> Home {
    let table: &'static Table =
        Box::leak(Box::new(Table::of_scope(entry::schema(description), below.scope)));
    let field = keep(description.entry.field.as_deref().unwrap_or("id"));
    let argument = keep(&argument(description));
    let own = home.own.iter().map(|own| (keep(&own.field), own.value.0.clone()));
    let own: &'static [_] = own.collect::<Vec<_>>().leak();
    // Without these a row is none: what tells it apart, and whether it is the container's own.
    let is_one = |spec: &&Spec| {
        description.identity.contains(&spec.name)
            || (spec.has_rows() && spec.field.tier <= home.tier && !spec.field.is_late())
    };
    let grants = table.specs().iter().any(Spec::has_rows);
    let names = table.specs().iter().filter(is_one);
    let names = names.filter_map(|spec| spec.field.live_name(&spec.name));
    let also = names.map(keep).chain(own.iter().map(|(field, _)| *field));
    let said = home.query.iter();
    let said = said.map(|asked| (keep(&asked.name), keep(&forms::plain_text(&asked.value.0))));
    Home {
        scope: below.scope,
        fields: Box::leak(Box::new(table)),
        place: Place::List(operations.list),
        create: Create::With(operations.create),
        change: operations.edit.map_or(Change::Replace, Change::Edit),
        delete: Some(operations.delete),
        acts: operations.before_removal.into_iter().collect::<Vec<_>>().leak(),
        handle: vec![Handle::path(field, argument)].leak(),
        rows: Rows { keys: vec![field].leak(), also: also.collect::<Vec<_>>().leak() },
        seen_from: home
            .seen_from
            .as_ref()
            .and_then(Level::parse)
            .map_or(MAINTAINER, |at| at.number),
        needs: if grants { &[Capability::People] } else { &[] },
        closed_by: home.closed_by.iter().map(|name| keep(name)).collect::<Vec<_>>().leak(),
        query: said.collect::<Vec<_>>().leak(),
        own,
        ..Home::PLAIN
    }
}

/// What tells entries apart, where the service may also keep a name of them.
struct Identified {
    noun: &'static str,
    grants: &'static [&'static str],
    /// The level of access that an entry gives, to people whom nobody here can tell.
    level: Option<&'static str>,
    called: Option<&'static str>,
    /// The field that says what an entry is about, where it grants something.
    pattern: &'static str,
    /// The fields that grant something, each with what they let people do.
    lets: &'static [(&'static str, &'static str)],
    /// That another call comes before a removal.
    before_removal: Option<&'static str>,
}

impl Rules for Identified {
    fn identify(&self, section: Section, fields: &Object) -> Identity {
        let plain = forms::identify(section, fields);
        let called = self.called.and_then(|name| fields.get(name)?.as_str());
        match called.filter(|called| !called.is_empty()) {
            Some(called) => {
                let called = called.to_owned();
                Identity { name: called.clone(), called: Some(called), ..plain }
            }
            None => plain,
        }
    }

    fn effects(&self, _: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let is_new = before.is_empty();
        let given = |name: &&&str| is_new && after.get(**name).is_some_and(|is_on| *is_on == true);
        let how = |name: &&str| format!("add a {} with `{name}`", self.noun);
        let given = self.grants.iter().filter(given).map(|name| Effect::Weakens(how(name)));
        let lists: Vec<_> = self.lets.iter().map(|(list, _)| *list).collect();
        let rule = || effects(self.pattern, before, after, self.lets, &lists);
        let access = self.level.map(|name| Effect::Share {
            group: None,
            before: member::level(before, name),
            after: member::level(after, name),
            ends: false,
        });
        let rules = (!lists.is_empty()).then(rule).into_iter().flatten();
        given.chain(access).chain(rules).collect()
    }

    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let mut calls = job.plain()?;
        if let Act::Remove(live) = job.act {
            let before = job.section.home.acts.iter().map(|act| Call {
                besides: self.before_removal,
                ..job.addressed(*act, live).into()
            });
            calls.splice(..0, before);
        }
        Ok(calls)
    }
}
