//! The third part: makes [`Desired`] from merged groups and projects.
//!
//! Its input are merged containers. Its output are the containers of the run and every fault that
//! can be found without the service: faults that span fields, entries or documents, and those that
//! kinds find. A fault has an origin, so it points into the right document. This part reads no
//! manifest (the texts are gone) and knows no live state.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    hash::Hash,
    sync::Arc,
};

use jiff::civil::Date;

use super::{
    config::{self, Manages},
    faults::{Faults, Finding, Spot},
    layer::{Included, Layered, Rules},
    parallel::for_each,
    read::document::{self, Body, Part, Section, Sound, State},
};
use crate::{
    catalogue::{
        self,
        words::{self, Meaning},
    },
    desired::{self, Container, Creation, DeclaredSection, Desired, Life, PROJECTS, Unlisted},
    field::{Scope, Tier},
    kind::{self, Fault, Shape, Trait},
    origin::{Layer, Sourced},
    release::Release,
    secret::Secrets,
};

mod access;
mod acknowledgements;
mod between;
mod entry;
mod field;
mod moves;
mod named;
pub(super) mod path;
mod within;

pub(super) use named::is_below;

/// Facts for checks apart from the declarations.
#[derive(Debug)]
pub(super) struct Context {
    /// The tier of the service, if `undrift.yaml` sets it.
    pub(super) tier: Option<Tier>,
    /// The groups and projects that may be declared; all by default.
    pub(super) manages: Option<Manages>,
    /// The release, if `undrift.yaml` sets it.
    pub(super) release: Option<Release>,
    pub(super) today: Date,
    /// Access to files that manifests name, unless they are elsewhere.
    pub(super) files: Option<Secrets>,
}

impl Context {
    /// Whether these manifests may declare the group or project at `path`.
    pub(super) fn manages(&self, path: &str) -> bool {
        self.manages.as_ref().is_none_or(|managed| !managed.holding(path).is_empty())
    }
}

/// Checks everything. The named containers become [`Desired`].
pub(super) fn check(layered: Layered, rules: &Rules, context: &Context) -> (Desired, Faults) {
    let Layered { containers, invented, acknowledged, mut faults, .. } = layered;
    let mut named = containers.iter().map(|merged| merged.is_named).collect::<Vec<_>>().into_iter();
    let checked = for_each(containers, |merged| one(merged, context));
    self::invented(invented, context, &mut faults);
    let container = |(container, found): (_, Faults)| {
        faults.found.extend(found.found);
        container
    };
    let mut containers: Vec<_> = checked.into_iter().map(container).collect();
    between::get_projects(&mut containers);
    let by_path = containers.iter().map(|known| (known.path.to_lowercase(), known)).collect();
    between::above(&by_path, context, &mut faults);
    between::sources(&by_path, &mut faults);
    between::of_another_scope(&containers, &by_path, &mut faults);
    between::display_names(&containers, &mut faults);
    let moves = Arc::new(moves::check(&containers, &mut faults));
    let acknowledgements: Vec<_> = acknowledged
        .into_iter()
        .filter_map(|of| acknowledgements::read(of, context, &mut faults))
        .collect();
    acknowledgements::inside_projects(&acknowledgements, &by_path, &mut faults);
    acknowledgements::in_vain(&acknowledgements, &by_path, rules, &mut faults);
    between::shared(&containers, &mut faults);
    containers.retain(|_| named.next().unwrap_or_default());
    (Desired { containers, acknowledgements, moves }, faults)
}

/// All containers by their paths in lower case.
type ByPath<'c> = BTreeMap<String, &'c Container>;

/// Checks the containers that rules would include. A fault at a place is reported once, and not if
/// a declared container has the same fault.
fn invented(
    invented: Vec<(Box<document::Container>, Faults)>,
    context: &Context,
    faults: &mut Faults,
) {
    let key = |fault: &Finding<Spot>| (fault.at.clone(), fault.code);
    let mut known: BTreeSet<_> = faults.found.iter().map(key).collect();
    // Rules never include containers outside of `manages`.
    for (merged, of_layers) in
        invented.into_iter().filter(|(merged, _)| context.manages(&merged.path.value))
    {
        let found = of_layers.found.into_iter().chain(one(merged, context).1.found);
        let new: Vec<_> = found.filter(|fault| !known.contains(&key(fault))).collect();
        known.extend(new.iter().map(key));
        faults.found.extend(new);
    }
}

/// Checks a container that a rule includes.
pub(super) fn included(included: Included, context: &Context) -> (Container, Faults) {
    let (container, faults) = one(included.merged, context);
    (Container { brought_in: Some(included.by), ..container }, faults)
}

fn one(merged: Box<document::Container>, context: &Context) -> (Container, Faults) {
    let mut check = Check { context, scope: merged.scope, faults: Faults::default() };
    let container = check.container(merged);
    access::rows(&container, &mut check.faults);
    (container, check.faults)
}

/// The section of projects that declares what `of` declares for a group.
fn for_projects(of: kind::Section) -> Option<&'static str> {
    let is_known = |name: &&str| catalogue::section(Scope::Project, name).is_some();
    let meant = || words::alias(&["Project"], of.section).and_then(Meaning::field);
    Some(of.section).filter(is_known).or_else(|| meant().filter(is_known))
}

/// Each item with the key of an earlier one, behind the first that has this key.
fn repeats<K: Eq + Hash, T: Clone>(
    items: impl IntoIterator<Item = (K, T)>,
) -> impl Iterator<Item = (T, T)> {
    let mut firsts = HashMap::new();
    items.into_iter().filter_map(move |(key, item)| match firsts.entry(key) {
        Entry::Occupied(first) => Some((T::clone(first.get()), item)),
        Entry::Vacant(first) => {
            first.insert(item);
            None
        }
    })
}

/// A fault of a kind with its place.
fn found(fault: Fault, at: Spot) -> Finding<Spot> {
    let Fault { severity, code, message, help, .. } = fault;
    Finding { severity, help: Some(help), ..Finding::error(code, message, at) }
}

/// The check of one container.
struct Check<'c> {
    context: &'c Context,
    scope: Scope,
    faults: Faults,
}

impl Check<'_> {
    fn container(&mut self, merged: Box<document::Container>) -> Container {
        let document::Container { scope, path, mut life, body, .. } = *merged;
        let Body { mut sections, mut unlisted, watch, .. } = body;
        self.absent_container(&life, &sections, &unlisted);
        let projects = unlisted.remove(PROJECTS);
        life.unlisted_projects = projects.filter(|policy| policy.value != Unlisted::Ignore);
        let (own, _) = catalogue::container(scope);
        self.boundary(&path, &life, &sections);
        self.created_with(own, &sections);
        let create = sections.extract_if(.., |section| section.of.section == own.section).next();
        let create = create.map_or(Creation::Forbidden, |section| self.creation(section));
        let is_new = create.fields().is_some()
            || life.previously.iter().any(|former| path::is_renamed(&former.value, &path.value));
        if let Err(why) = path::check(scope, &path.value, is_new) {
            let wrong =
                self.faults.error("path", format!("the path {why}"), Spot::value(&path.origin));
            wrong.help_if(path::help(&path.value));
        }
        let section = |section: Section| {
            let policy = unlisted.remove(section.of.section);
            self.section(section, policy)
        };
        let mut sections: Vec<_> = sections.into_iter().map(section).collect();
        self.always_there(&path.value, &mut sections);
        for (name, policy) in unlisted {
            let message = format!("`unlisted` names `{name}`, which is not in the document");
            let idle = self.faults.error("unlisted", message, Spot::key(&policy.origin));
            idle.help(format!("write `{name}: []` if there are to be none"));
        }
        let is_watched = watch.is_some_and(|watch| watch.value);
        let (path, origin) = (path.value, path.origin);
        let brought_in = None;
        let container =
            Container { scope, path, origin, brought_in, create, is_watched, life, sections };
        within::check(&container, &mut self.faults);
        self.named_files(&container);
        self.label(&container.path);
        container
    }

    /// The declared container must be within `manages`.
    fn boundary(&mut self, path: &Sourced<Arc<str>>, life: &Life, sections: &[Section]) {
        let Some(manages) = &self.context.manages else { return };
        let mut outside = |message: String, at: Spot, how: &str| {
            let file = config::FILE;
            let help = format!("declare it elsewhere, or extend `manages` in {file}: {how}");
            self.faults.error("outside", message, at).help(help);
        };
        // A former path also declares the container that is there.
        for path in std::iter::once(path).chain(&life.previously) {
            if manages.holding(&path.value).is_empty() {
                let message = format!("`{}` is outside of what these manifests manage", path.value);
                outside(message, Spot::value(&path.origin), &manages.why_not(&path.value));
            }
        }
        let holding = manages.holding(&path.value);
        for section in sections.iter().filter(|_| !holding.is_empty()) {
            let name = section.of.section;
            if !holding.iter().any(|managed| managed.has(name)) {
                let message = format!("`{name}` of `{}` is not managed here", path.value);
                let how = format!("add `{name}` to the `sections` there");
                outside(message, Spot::key(&section.origin), &how);
            }
        }
    }

    /// Adds the path of the container: the fault of a rule may only exist in this container.
    fn label(&mut self, path: &str) {
        let of_a_rule = |fault: &&mut Finding<Spot>| fault.at.origin.layer <= Layer::Profile;
        for fault in self.faults.found.iter_mut().filter(of_a_rule) {
            fault.label.get_or_insert_with(|| format!("for `{path}`"));
        }
    }

    /// An absent container must not declare anything else, and must not be a group.
    fn absent_container(
        &mut self,
        life: &Life,
        sections: &[Section],
        unlisted: &BTreeMap<&'static str, Sourced<Unlisted>>,
    ) {
        let Some(absent) = life.absent() else { return };
        if self.scope == Scope::Group {
            let never = "undrift never deletes a group";
            let group = self.faults.error("absent", never, Spot::value(absent));
            group.help("take the document away, and delete the group by hand");
            return;
        }
        let former = life.previously.first().map(|former| ("previously", &former.origin));
        let others = sections.iter().map(|section| (section.of.section, &section.origin));
        let policy = unlisted.values().next().map(|policy| ("unlisted", &policy.origin));
        for (name, origin) in others.chain(former).chain(policy) {
            let message = format!("`{name}` means nothing beside `state: absent`");
            let beside = self.faults.error("absent", message, Spot::key(origin));
            beside.help("take it away, or `state: absent`; to keep the project, write `archived: true` instead");
        }
    }

    /// Checks all fields of the create request together.
    fn created_with(&mut self, own: kind::Section, sections: &[Section]) {
        let section =
            |of: kind::Section| sections.iter().find(|known| known.of.section == of.section);
        let create = section(own).and_then(|section| section.parts.first());
        let Some(create) = create.filter(|create| create.state == State::Present) else { return };
        let along =
            catalogue::sections(self.scope).filter(|section| section.comes_with_container());
        let along: Vec<_> =
            along.filter_map(section).filter_map(|of| Some((of, of.parts.first()?))).collect();
        let parts: Vec<_> = std::iter::once(create).chain(along.iter().map(|of| of.1)).collect();
        if parts.iter().any(|part| part.sound != Sound::Whole) {
            return;
        }
        for (section, part) in along {
            self.said_twice(own, create, section, part);
        }
        let declared = parts.iter().flat_map(|part| part.fields.values()).collect();
        own.check(&declared, true, &mut |fault| {
            let origin = |name| parts.iter().find_map(|part| part.fields.origin(name));
            let at = origin(fault.field).unwrap_or_else(|| parts[0].origin.clone());
            let other = fault.other.and_then(origin);
            let fault = self.faults.push(found(fault, Spot::key(&at)));
            if let Some(other) = other {
                fault.related(Spot::key(&other), "the other one");
            }
        });
    }

    /// A section that is part of the creation must be equal to the fields of `create`.
    fn said_twice(&mut self, own: kind::Section, create: &Part, along: &Section, part: &Part) {
        for (name, field) in create.fields.iter() {
            let kept = part.fields.get(name);
            let is_gone = kept.is_none() && part.state == State::Absent && along.of.section == name;
            if is_gone || kept.is_some_and(|kept| kept.value != field.value) {
                let message =
                    format!("`{}` and the document say different things of `{name}`", own.section);
                let twice = self.faults.error("create-conflict", message, Spot::key(&field.origin));
                twice
                    .related(Spot::key(&along.origin), "what is kept")
                    .help(format!("leave it out of `{}`", own.section));
            }
        }
    }

    /// Drops entries that name the project itself where the service always has one: a rule for many
    /// projects may name one of them.
    fn always_there(&mut self, path: &str, sections: &mut [DeclaredSection]) {
        for section in
            sections.iter_mut().filter(|section| section.of.traits.contains(&Trait::ListsItself))
        {
            let is_itself = |entry: &mut desired::Entry| entry.key.eq_ignore_ascii_case(path);
            for entry in section.entries.extract_if(.., is_itself) {
                if entry.origin.layer > Layer::Profile {
                    let message = "a project is always in its own list";
                    let idle = self.faults.warning("no-effect", message, Spot::key(&entry.origin));
                    idle.help("take it away");
                }
            }
        }
    }

    /// Whether the container may be created, and with which fields.
    fn creation(&mut self, section: Section) -> Creation {
        let part = section.parts.into_iter().next();
        let Some(part) = part.filter(|part| part.state == State::Present) else {
            return Creation::Forbidden;
        };
        self.fields(section.of, &part.fields);
        Creation::Allowed(part.fields)
    }

    fn section(&mut self, section: Section, policy: Option<Sourced<Unlisted>>) -> DeclaredSection {
        let Section { of, origin, parts } = section;
        self.lacks(of.section, of.tier(), Spot::key(&origin));
        if let (Some(release), Some(since)) = (self.context.release, of.since())
            && release < since
        {
            let message = format!("`{}` needs release {since} or later", of.section);
            self.unfit(&message, "take the section out", release, Spot::key(&origin));
        }
        let parts = if self.is_split(of, &parts) { Vec::new() } else { parts };
        let (mut identities, mut unmanaged) = (Vec::new(), Vec::new());
        // `unzip` would reserve memory for entries that never come.
        let mut entries: Vec<_> = parts
            .into_iter()
            .filter_map(|part| {
                if part.state == State::Unmanaged {
                    unmanaged.extend(self.unmanaged(of, &part));
                    return None;
                }
                let (entry, identity) = self.entry(of, part);
                identities.push(identity);
                Some(entry)
            })
            .collect();
        if of.shape == Shape::List {
            self.twice(of, &entries, identities);
            entries.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let usual = if of.only_edits() { Unlisted::Ignore } else { Unlisted::default() };
        let unlisted = policy.unwrap_or_else(|| Sourced { value: usual, origin: origin.clone() });
        let also_read = BTreeSet::new();
        DeclaredSection { of, origin, unlisted, entries, unmanaged, also_read }
    }
}
