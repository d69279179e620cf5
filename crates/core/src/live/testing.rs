//! Live states for tests, made from responses of the service.

use std::{collections::BTreeSet, time::Duration};

use super::{Caller, LiveContainer, LiveEntries, Presence};
use crate::{
    desired::{Container, DeclaredSection},
    kind::{ContainerFacts, FieldSelection, ReadSource, Target, testing::with_flags},
    page,
    release::{self, DetectedRelease},
    value::{Json, Object},
};

/// The id of [`caller`].
pub const CALLER_ID: u64 = 7;

/// A caller who is an administrator.
pub fn caller() -> Caller {
    Caller { id: CALLER_ID, username: "root".into(), is_administrator: true }
}

/// The target of `container`, with the id 1.
pub fn target(container: &Container) -> Target {
    Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) }
}

/// The live state of `section`, from the response `raw`: an array, an object, or `null`. Only
/// declared fields and those that `extra` selects are read. A flag that edits repeat is off if
/// `raw` lacks it.
pub fn live_entries(
    section: &DeclaredSection,
    raw: &Json,
    extra: FieldSelection<'_>,
) -> LiveEntries {
    let kind = section.kind;
    let mut declared: BTreeSet<_> = section.field_names().collect();
    let selection = match extra {
        FieldSelection::Only(names) => {
            declared.extend(names);
            FieldSelection::Only(&declared)
        }
        all => all,
    };
    let read_entry = |raw: &Object| kind.read(raw, selection);
    let flagged_object =
        |raw: &Json| with_flags(kind, raw.as_object().cloned().unwrap_or_default());
    match (raw, kind.scoped_kind.read_source) {
        (Json::Array(raw), ReadSource::ListField(_)) => {
            LiveEntries::Nested(raw.iter().map(|raw| read_entry(&flagged_object(raw))).collect())
        }
        (Json::Array(raw), _) => {
            let raw = page::assume_complete(raw.iter().map(flagged_object).collect());
            LiveEntries::Complete(raw.map(|raw| read_entry(&raw)))
        }
        (Json::Null, ReadSource::ObjectField { .. }) => LiveEntries::Nested(Vec::new()),
        (raw, ReadSource::ObjectField { .. }) => {
            LiveEntries::Nested(vec![read_entry(&flagged_object(raw))])
        }
        (Json::Null, _) => LiveEntries::Single(None),
        (raw, _) => LiveEntries::Single(Some(read_entry(&flagged_object(raw)).into())),
    }
}

/// The live state of `container`, from the responses in `sections`, by section name. Only declared
/// fields are read.
pub fn live_container(container: &Container, sections: &Json) -> LiveContainer {
    live_container_with(container, sections, FieldSelection::Only(&[].into()))
}

/// Like [`live_container`], but also reads the fields that `extra` selects.
pub fn live_container_with(
    container: &Container,
    sections: &Json,
    extra: FieldSelection<'_>,
) -> LiveContainer {
    let facts = ContainerFacts { id: Some(1), ..ContainerFacts::default() };
    let sections = container.sections.iter().filter_map(|section| {
        let name = section.kind.section;
        Some((name, live_entries(section, sections.get(name)?, extra)))
    });
    LiveContainer {
        sections: sections.collect(),
        read_release: DetectedRelease::Known(release::REFERENCE),
        ..LiveContainer::with_presence(Presence::Existing(target(container), facts), Duration::ZERO)
    }
}
