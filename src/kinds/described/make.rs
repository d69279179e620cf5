//! Makes a kind and its operations from a description.
//!
//! Both live as long as the program, as kinds written in Rust do. Each description is made into a
//! kind once.

use super::{
    Described,
    description::{Create as Creation, Description, Edit, Home as Collected, QueryParameter},
};
use crate::{
    field::{Accepted, Field, Keys, Named, Scope, ValueType},
    kind::{
        Capability, Change, Create, Effect, Fault, FieldOf, Handle, HandlePlace, Home, Identity,
        Job, Kind, Parent, Place, Removal, Rules, Section, Shape, Spec, Table, Unable,
        calls::{Act, Call},
        forms,
    },
    kinds::{Registry, member, protected_branch::effects},
    level::{Level, MAINTAINER},
    operation::{
        Method, Op, Parameter, Read, Type,
        collection::{self, Collection, NoPath, Operations, SubPath},
    },
    page::Rows,
    text,
    value::{self, Fields, Json, Object},
};

/// Makes the kind. Only the paths are checked. `known` has the parent section.
///
/// # Errors
/// If a path is not that of a collection.
pub(super) fn make(description: &Description, known: &Registry) -> Result<Described, NoPath> {
    let (mut homes, mut operations) = (Vec::new(), Vec::new());
    for home in &description.homes {
        let below = SubPath::parse(&home.path)?;
        let parent = above(description, home, &below, known)?;
        let made = collection(description, home, below.clone(), parent).operations();
        operations.extend(made.all());
        homes.push(of_scope(description, home, below.scope, parent, &made));
    }
    let name_field = description.name_field.as_deref().map(keep);
    let lists_of = |value: ValueType| -> &'static [_] {
        let of = description.fields.iter().filter(|field| field.value_type == value);
        let of = of.filter_map(|field| Some((field.name, field.lets?)));
        of.collect::<Vec<_>>().leak()
    };
    let lets = lists_of(ValueType::Grants);
    let level = description.fields.iter().find(|field| field.value_type == ValueType::Level);
    let kind = Kind {
        section: keep(&description.section),
        noun: keep(&description.noun),
        shape: if description.document { Shape::Mapping } else { Shape::List },
        identity: keep_all(&description.identity),
        required: keep_all(&description.required),
        removal: if lets.is_empty() { description.removal } else { Removal::ByKind },
        homes: homes.leak(),
        rules: Box::leak(Box::new(DescribedRules {
            noun: keep(&description.noun),
            name_field,
            takes_jobs: description.fields.iter().any(|of| of.names == Some(Named::Runner)),
            pattern: description.identity.first().map_or("", |name| keep(name)),
            lets,
            approves: lists_of(ValueType::Approvals),
            grants: keep_all(&description.grants),
            is_named: description.called_by.is_some(),
            either: keep_all(&description.either),
            level: level.map(|field| field.name),
            before_removal: description.before_removal.as_deref().map(|text| {
                let parameter = act_before(description).and_then(|(_, parameter)| parameter);
                (keep(&format!("sends `POST …/{text}` first")), parameter)
            }),
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

/// The name of the path argument that addresses an entry.
pub(super) fn argument(description: &Description) -> String {
    let default = || description.noun.replace(' ', "_") + "_id";
    description.entry.argument.clone().unwrap_or_else(default)
}

/// The ids of the operations of the collection at `below`.
pub(super) fn ids(description: &Description, below: &SubPath) -> impl Iterator<Item = String> {
    collection::ids(below.scope, &description.noun)
}

/// The parents of a collection, their section, and the request for one of them.
#[derive(Clone, Copy)]
pub(super) struct Parents {
    parent: &'static Parent,
    of: Section,
    one: Option<Op<Read>>,
}

/// The parents of the collection at `below`, if it has parents.
///
/// # Errors
/// If the path does not start with that of the section of the parents.
pub(super) fn above(
    description: &Description,
    home: &Collected,
    below: &SubPath,
    known: &Registry,
) -> Result<Option<Parents>, NoPath> {
    let (path, under) = match (below.parent(), &description.below) {
        (None, None) => return Ok(None),
        (Some(path), Some(under)) => (path, under),
        (Some(_), None) => {
            return Err("has an `:entry`, and `below` does not say of which section");
        }
        (None, Some(_)) => return Err("must have an `:entry`, which is what `below` is about"),
    };
    let of = known.section(below.scope, &under.section);
    let at = |of: &Section| matches!(of.home.place, Place::List(list) if list.row().path == path);
    let of = of.filter(at).ok_or("must start with that of the section which `below` names")?;
    let is_id = |handle: &&Handle| handle.field == "id";
    let argument = of.home.handle.iter().find(is_id).and_then(|handle| match handle.place {
        HandlePlace::Path(argument) => Some(argument),
        _ => None,
    });
    let argument = argument.filter(|_| !matches!(of.home.change, Change::Replace));
    let argument = argument.ok_or("must be below entries that keep an id in their paths")?;
    let one = known.reads_one(&format!("{path}/:{argument}"));
    let one = one.filter(|_| home.within.is_some());
    if one.is_none() && home.within.is_some() {
        return Err("must be below entries that are read one by one");
    }
    let parent = Parent {
        section: of.section,
        field: keep(&under.field),
        argument,
        within: home.within.as_deref().map(keep),
    };
    Ok(Some(Parents { parent: Box::leak(Box::new(parent)), of, one }))
}

fn collection(
    description: &Description,
    home: &Collected,
    below: SubPath,
    above: Option<Parents>,
) -> Collection {
    let field = description.entry.field.as_deref().unwrap_or("id");
    let about = || format!("The {}, by its `{field}`.", description.noun);
    let about = description.entry.about.clone().unwrap_or_else(about);
    let edit_parameters = description.edit_parameters.iter();
    let parent = above.map(|above| {
        let about = format!("The id of the {}.", above.of.noun);
        collection::parent(above.parent.argument, keep(&about))
    });
    Collection {
        below: parent.iter().fold(below, |below, parent| below.of_entry(parent.name)),
        parent,
        read: above.and_then(|above| above.one),
        section: keep(&description.section),
        noun: keep(&description.noun),
        entry: collection::entry(keep(&argument(description)), keep(&about)),
        query: home.query.iter().map(query).collect(),
        edit_parameters: edit_parameters
            .map(|p| collection::edit_parameter(keep(&p.name), keep(&p.about)))
            .collect(),
        edit: match description.edit {
            Edit::Put => Some(Method::Put),
            Edit::Patch => Some(Method::Patch),
            Edit::Replace => None,
        },
        read_alone: description.read_alone,
        is_document: description.document,
        is_put: description.create == Creation::Put,
        only_edits: description.create == Creation::Never,
        before_removal: act_before(description).map(|(act, parameter)| {
            let about = "Without it, the service refuses some entries.";
            let of = |(name, _)| collection::query_parameter(name, Type::Text, about);
            (act, parameter.map(of))
        }),
        is_unique: description.unique,
        write_returns_entry: description.write_returns_entry,
        denies_with_401: description.denies_with_401,
        unpaged: !home.paged,
        empty_as: home.empty_as.as_deref().map(keep),
        entry_query: description
            .entry
            .query
            .iter()
            .map(|name| by_query(description, name))
            .collect(),
        tier: home.tier,
        since: home.since,
    }
}

/// An action before a removal, or a text about it, with the name and the value of its parameter.
type ActBefore = (&'static str, Option<(&'static str, &'static str)>);

fn act_before(description: &Description) -> Option<ActBefore> {
    let text = keep(description.before_removal.as_deref()?);
    let (act, parameter) = text.split_once('?').unwrap_or((text, ""));
    Some((act, parameter.split_once('=')))
}

/// The query parameter that addresses an entry by this field.
fn by_query(description: &Description, name: &str) -> Parameter {
    let about = description.fields.iter().find(|field| field.name == name);
    let about = about.map_or("", |field| field.about);
    collection::query_parameter(keep(name), Type::Text, about)
}

fn query(parameter: &QueryParameter) -> Parameter {
    let value = match parameter.value.0 {
        Json::Bool(_) => Type::Boolean,
        Json::Number(_) => Type::Integer,
        _ => Type::Text,
    };
    collection::query_parameter(keep(&parameter.name), value, keep(&parameter.about))
}

/// Where the collection is in one scope. All of it stands side by side, so the function is long.
fn of_scope(
    description: &Description,
    home: &Collected,
    scope: Scope,
    above: Option<Parents>,
    operations: &Operations,
) -> Home {
    let table: &'static Table = Box::leak(Box::new(Table::new(keys(description, home, scope))));
    let parent = above.map(|above| above.parent);
    let field = keep(description.entry.field.as_deref().unwrap_or("id"));
    let argument = keep(&argument(description));
    let inherited_unless =
        home.inherited_unless.iter().map(|own| (keep(&own.field), own.value.0.clone()));
    let inherited_unless: &'static [_] = inherited_unless.collect::<Vec<_>>().leak();
    // A row of the list must have these fields; without them it counts as not read.
    // A runner may have no description.
    let is_needed = |spec: &&Spec| {
        (spec.field.names != Some(Named::Runner)
            && description.always_named().any(|name| *name == spec.name)
            && parent.is_none_or(|parent| parent.field != spec.name))
            || (spec.has_rows() && spec.field.tier <= home.tier && !spec.field.is_late())
    };
    let grants = table.specs().iter().any(Spec::has_rows);
    let names = table.specs().iter().filter(is_needed);
    let names = names.filter_map(|spec| spec.field.live_name());
    let also = names.chain(inherited_unless.iter().map(|(field, _)| *field));
    let query = home.query.iter();
    let query = query.map(|p| (keep(&p.name), keep(&forms::plain_text(&p.value.0))));
    let named = parent.map(|parent| Handle::path(parent.argument, parent.argument));
    let by_query = &description.entry.query;
    let handle =
        (!description.document && by_query.is_empty()).then(|| Handle::path(field, argument));
    let by_query = by_query.iter().map(|name| Handle::query(keep(name), keep(name)));
    let handles = handle.into_iter().chain(by_query).chain(named);
    Home {
        scope,
        fields: Box::leak(Box::new(table)),
        place: match description.document {
            true => Place::Optional(operations.list),
            false => Place::List(operations.list),
        },
        parent,
        create: operations.create.map_or(Create::Never, Create::With),
        change: operations.edit.map_or(Change::Replace, Change::Edit),
        delete: operations.delete,
        acts: operations.before_removal.into_iter().collect::<Vec<_>>().leak(),
        handle: handles.collect::<Vec<_>>().leak(),
        rows: Rows {
            keys: handle.map(|_| field).into_iter().collect::<Vec<_>>().leak(),
            also: also.collect::<Vec<_>>().leak(),
        },
        seen_from: home
            .seen_from
            .as_ref()
            .and_then(Level::parse)
            .map_or(MAINTAINER, |at| at.number),
        needs: match above {
            _ if grants => &[Capability::People],
            Some(above) => above.of.home.needs,
            None => &[],
        },
        closed_by: match above.filter(|_| home.closed_by.is_empty()) {
            Some(above) => above.of.home.closed_by,
            None => {
                let kept = |set: &Vec<String>| {
                    &*set.iter().map(|name| keep(name)).collect::<Vec<_>>().leak()
                };
                home.closed_by.iter().map(kept).collect::<Vec<_>>().leak()
            }
        },
        lists_itself: home.lists_itself,
        called_by: description.called_by.as_deref().map(keep),
        unmanaged: description
            .unmanaged
            .iter()
            .map(|name| (keep(name), ""))
            .collect::<Vec<_>>()
            .leak(),
        query: query.collect::<Vec<_>>().leak(),
        inherited_unless,
        ..Home::PLAIN
    }
}

/// The fields of an entry of `home`, which is in `scope`.
fn keys(description: &Description, home: &Collected, scope: Scope) -> Keys {
    let of = |field: &Field| {
        // The path contains the id of the parent.
        let is_parent = description.below.as_ref().is_some_and(|below| below.field == field.name);
        Field {
            since: field.since.or(home.since),
            accepted: if is_parent { Accepted::Never } else { field.accepted },
            top_level: field.top_level || home.top_level,
            always: field.always || description.always_named().any(|name| *name == field.name),
            ..field.clone()
        }
    };
    let fields = description.fields.iter().filter(|field| field.is_in(scope));
    Keys {
        about: keep(&description.about),
        aliases: description.aliases.clone(),
        fields: fields.map(of).collect(),
        min_keys: description.document.then_some(1),
        max_keys: None,
    }
}

/// What a description adds to the rules of a plain collection.
struct DescribedRules {
    noun: &'static str,
    grants: &'static [&'static str],
    /// Whether rules name its entries, which must grant something by then.
    is_named: bool,
    /// The fields of the identity of which each entry has one.
    either: &'static [&'static str],
    /// The field with the level of access that an entry gives. undrift does not know which people
    /// get it.
    level: Option<&'static str>,
    name_field: Option<&'static str>,
    /// The field with the name or pattern of what is protected, if an entry grants something.
    pattern: &'static str,
    /// The fields that grant something, each with the verb for what they allow.
    lets: &'static [(&'static str, &'static str)],
    /// The fields that require approvals, each with the verb for what needs them.
    approves: &'static [(&'static str, &'static str)],
    /// The note that another call precedes the removal.
    before_removal: Option<ActBefore>,
    /// Whether its entries are runners.
    takes_jobs: bool,
}

impl Rules for DescribedRules {
    fn identify(&self, section: Section, field: FieldOf<'_>) -> Identity {
        let plain = forms::identify(section, field);
        let name = self.name_field.and_then(|name| Some(field(name)?.as_str()?.to_owned()));
        match name.filter(|name| !name.is_empty()) {
            Some(name) => Identity {
                name: crate::secret::judge::masked_name(&name),
                service_name: Some(name),
                ..plain
            },
            None => plain,
        }
    }

    fn has(&self, fields: &Object, name: &str) -> bool {
        !self.either.contains(&name) || fields.get(name).is_some_and(|value| !value.is_null())
    }

    fn check(&self, declared: &Fields, _written: bool, report: &mut dyn FnMut(Fault)) {
        let has_one = self.either.iter().any(|name| declared.contains_key(name));
        if let Some(first) = self.either.first().filter(|_| !has_one) {
            let (one, names) = (text::with_article(self.noun), text::alternatives(self.either));
            let message = format!("{one} must have {names}");
            report(Fault::error("missing-field", first, message, "add one of them"));
        }
        for (list, _) in self.approves {
            let rows = declared.get(list).and_then(value::Value::list).into_iter().flatten();
            let has_one =
                |row: &Json| WHO.iter().filter(|name| !row[**name].is_null()).count() == 1;
            if !rows.clone().all(has_one) {
                let names = text::alternatives(&WHO);
                let message = format!("each entry of `{list}` must have exactly one of {names}");
                report(Fault::error("value", list, message, "write an entry for each of them"));
            }
        }
    }

    fn effects(&self, _: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let is_new = before.is_empty();
        let gives = |fields: &Object, name: &str| fields.get(name).is_some_and(|it| *it != false);
        // The stake of a switch suffices.
        let given = |name: &&&str| is_new && after.get(**name).is_some_and(|it| !it.is_boolean());
        let given = self.grants.iter().filter(given);
        // A new project has to say whose job tokens it accepts, but not whose code runs its jobs.
        let given = given.map(|_| match self.takes_jobs {
            true => Effect::Opens(format!("add a {}", self.noun)),
            false => Effect::Weakens(format!("add a {}", self.noun)),
        });
        let lists: Vec<_> = self.lets.iter().chain(self.approves).map(|(list, _)| *list).collect();
        let list = |fields: &Object, name: &str| fields.get(name).and_then(Json::as_array).cloned();
        let fewer = self.approves.iter().filter(|(name, _)| {
            list(before, name).zip(list(after, name)).is_some_and(|(was, is)| are_fewer(&was, &is))
        });
        let fewer =
            fewer.map(|(_, does)| Effect::Weakens(format!("require fewer approvals to {does}")));
        let rule = || effects(self.pattern, before, after, self.lets, &lists, false);
        let access = self.level.map(|name| Effect::Share {
            group: None,
            before: member::level(before, name),
            after: member::level(after, name),
            ends: false,
        });
        let rules = (!lists.is_empty()).then(rule).into_iter().flatten();
        let any = |fields: &Object| self.grants.iter().any(|name| gives(fields, name));
        let people = match (any(before), any(after)) {
            (false, true) if self.is_named => Some(Effect::Provides(Capability::People)),
            (true, false) if self.is_named => Some(Effect::Takes(Capability::People)),
            _ => None,
        };
        given.chain(access).chain(rules).chain(fewer).chain(people).collect()
    }

    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let mut calls = job.plain()?;
        if let Act::Remove(live) = job.act {
            let before = job.section.home.acts.iter().zip(self.before_removal);
            let before = before.map(|(op, (side_effect, parameter))| {
                let request = job.addressed(*op, live);
                let request = parameter
                    .into_iter()
                    .fold(request, |request, (name, value)| request.query(name, value));
                Call { side_effect: Some(side_effect), ..request.into() }
            });
            calls.splice(..0, before);
        }
        Ok(calls)
    }
}

/// The keys of a row of which it has one.
const WHO: [&str; 3] = ["access_level", "user", "group"];

/// Whether an approval that `before` requires is no longer required, or can be given by others too.
fn are_fewer(before: &[Json], after: &[Json]) -> bool {
    let number = |row: &Json, name: &str| row[name].as_u64().unwrap_or_default();
    let still = |was: &Json, is: &Json| {
        ["access_level", "user_id", "group_id"].iter().all(|name| was[*name] == is[*name])
            && number(is, "required_approvals") >= number(was, "required_approvals")
            && number(is, "group_inheritance_type") <= number(was, "group_inheritance_type")
    };
    before.iter().any(|was| !after.iter().any(|is| still(was, is)))
}
