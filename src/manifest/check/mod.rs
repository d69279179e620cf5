//! The third part: merged groups and projects to [`Desired`].
//!
//! In come the merged containers. Out come those that the run is about, and every fault that can be
//! told without the service: what spans fields, entries or documents, and what kinds find. A fault
//! is reported by origin, so it points into the document that says it, whichever that is. This part
//! reads no manifest: texts and trees are gone. It knows no live state.

use jiff::civil::Date;

use super::{
    faults::{Faults, Finding, Spot},
    layer::{Layered, Merged},
    parallel::for_each,
    read::document::{Acknowledge, Body, Section},
};
use crate::{
    desired::{Acknowledgement, Container, Creation, DeclaredSection, Desired, State, Unlisted},
    field::{Scope, Tier},
    kind::{self, Fault, Shape},
    kinds,
    origin::Sourced,
    release::Release,
    secret::Secrets,
};

mod entry;
mod field;
mod named;
mod path;

pub(super) use named::is_below;

/// What checks depend on besides what is declared.
#[derive(Debug)]
pub(super) struct Context {
    /// The tier of the service, if `undrift.yaml` says it.
    pub(super) tier: Option<Tier>,
    /// Its release, if `undrift.yaml` says it.
    pub(super) release: Option<Release>,
    pub(super) today: Date,
    /// The files of the root.
    pub(super) files: Secrets,
}

/// Checks everything. What was named becomes [`Desired`].
pub(super) fn check(layered: Layered, context: &Context) -> (Desired, Faults) {
    let Layered { containers, acknowledged, mut faults } = layered;
    let checked = for_each(containers, |merged| {
        let (scope, is_named) = (merged.scope, merged.is_named);
        let mut check = Check { context, scope, faults: Faults::default() };
        let container = check.container(merged);
        (is_named.then_some(container), check.faults)
    });
    let mut containers = Vec::new();
    for (container, found) in checked {
        containers.extend(container);
        faults.0.extend(found.0);
    }
    let acknowledgements =
        acknowledged.into_iter().map(|known| acknowledge(known, context, &mut faults)).collect();
    (Desired { containers, acknowledgements }, faults)
}

/// An acknowledgement that is over acknowledges nothing, which must not stop a run. Planning passes
/// over it without another word.
fn acknowledge(document: Acknowledge, context: &Context, faults: &mut Faults) -> Acknowledgement {
    let is_over = document.known.is_over(context.today);
    if let Some(until) = document.until.filter(|_| is_over) {
        faults
            .warning("date", "`until` is in the past", Spot::value(&until))
            .help("take the document away, or write a later day");
    }
    document.known
}

/// What a kind found, at its place.
fn found(fault: Fault, at: Spot) -> Finding<Spot> {
    let Fault { severity, code, message, help, .. } = fault;
    Finding { severity, help, ..Finding::error(code, message, at) }
}

/// The check of one container.
struct Check<'c> {
    context: &'c Context,
    scope: Scope,
    faults: Faults,
}

impl Check<'_> {
    fn container(&mut self, merged: Merged) -> Container {
        let Merged { scope, path, body: Body { mut sections, mut unlisted }, .. } = merged;
        let (own, _) = kinds::container(scope);
        self.created_with(own, &sections);
        let create = sections.extract_if(.., |section| section.of.section == own.section).next();
        let create = create.map_or(Creation::Forbidden, |section| self.creation(section));
        if let Err(why) = path::check(scope, &path.value, create.fields().is_some()) {
            self.faults.error("path", format!("the path {why}"), Spot::value(&path.origin));
        }
        let section = |section: Section| {
            let policy = unlisted.remove(section.of.section);
            self.section(section, policy)
        };
        let sections = sections.into_iter().map(section).collect();
        for (name, policy) in unlisted {
            let message = format!("`unlisted` names `{name}`, which is not in the document");
            let idle = self.faults.error("unlisted", message, Spot::key(&policy.origin));
            idle.help(format!("write `{name}: []` if there are to be none"));
        }
        let container =
            Container { scope, path: path.value, origin: path.origin, create, sections };
        self.named_files(&container);
        container
    }

    /// What the kind of the container says about everything that it is created with.
    fn created_with(&mut self, own: kind::Section, sections: &[Section]) {
        let section = |name: &str| sections.iter().find(|section| section.of.section == name);
        let along = kinds::sections(self.scope).filter(|section| section.comes_with_container());
        let parts: Vec<_> = std::iter::once(own)
            .chain(along)
            .filter_map(|of| section(of.section)?.parts.first())
            .collect();
        let may_create = section(own.section).is_some_and(|section| {
            section.parts.first().is_some_and(|create| create.state == State::Present)
        });
        if !may_create || parts.iter().any(|part| !part.is_sound) {
            return;
        }
        let declared = parts.iter().flat_map(|part| part.fields.values()).collect();
        own.rules.check(&declared, true, &mut |fault| {
            let field = fault
                .field
                .and_then(|field| parts.iter().find_map(|part| part.fields.origin(field)));
            let origin = field.unwrap_or_else(|| parts[0].origin.clone());
            self.faults.push(found(fault, Spot::key(&origin)));
        });
    }

    /// Whether the container may be created, and with what.
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
        self.lacks(of.section, of.tier(), &origin);
        let mut identities = Vec::new();
        // `unzip` would set aside room for entries that never come.
        let mut entries: Vec<_> = parts
            .into_iter()
            .map(|part| {
                let (entry, identity) = self.entry(of, part);
                identities.push(identity);
                entry
            })
            .collect();
        if of.shape == Shape::List {
            self.twice(of, &entries, identities);
            entries.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let unlisted = policy
            .unwrap_or_else(|| Sourced { value: Unlisted::default(), origin: origin.clone() });
        DeclaredSection { of, origin, unlisted, entries }
    }
}
