//! Live states for tests, made from responses of the service.

use std::{collections::BTreeSet, time::Duration};

use super::{Caller, Live, LiveEntries, Presence};
use crate::{
    desired::{Container, DeclaredSection},
    kind::{Facts, FieldSelection, ReadSource, Target, testing::with_flags},
    page,
    release::{self, DetectedRelease},
    value::{Json, Object},
};

/// The id of [`caller`].
pub const CALLER_ID: u64 = 7;

/// An administrator as the caller.
pub fn caller() -> Caller {
    Caller { id: CALLER_ID, username: "root".into(), is_administrator: true }
}

/// `container` with the id 1.
pub fn target(container: &Container) -> Target {
    Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) }
}

/// The live state of `section`: an array, an object, or `null`. Only declared fields and those that
/// `extra` selects are read. Flags that edits repeat are off by default.
pub fn live_entries(
    section: &DeclaredSection,
    raw: &Json,
    extra: FieldSelection<'_>,
) -> LiveEntries {
    let kind = section.section;
    let mut declared: BTreeSet<_> = section.names().collect();
    let wanted = match extra {
        FieldSelection::Only(more) => {
            declared.extend(more);
            FieldSelection::Only(&declared)
        }
        all => all,
    };
    let read = |raw: &Object| kind.read(raw, wanted);
    let object = |raw: &Json| with_flags(kind, raw.as_object().cloned().unwrap_or_default());
    match (raw, kind.scoped_kind.place) {
        (Json::Array(raw), ReadSource::ListField(_)) => {
            LiveEntries::Within(raw.iter().map(|raw| read(&object(raw))).collect())
        }
        (Json::Array(raw), _) => {
            let raw = page::whole(raw.iter().map(object).collect());
            LiveEntries::Complete(raw.map(|raw| read(&raw)))
        }
        (Json::Null, ReadSource::ObjectField { .. }) => LiveEntries::Within(Vec::new()),
        (raw, ReadSource::ObjectField { .. }) => LiveEntries::Within(vec![read(&object(raw))]),
        (Json::Null, _) => LiveEntries::One(None),
        (raw, _) => LiveEntries::One(Some(read(&object(raw)).into())),
    }
}

/// The live state of `container`, with the responses in `sections`.
pub fn live_container(container: &Container, sections: &Json) -> Live {
    here_reading(container, sections, FieldSelection::Only(&[].into()))
}

/// As [`live_container`], with more than the declared fields.
pub fn here_reading(container: &Container, sections: &Json, more: FieldSelection<'_>) -> Live {
    let facts = Facts { id: Some(1), ..Facts::default() };
    let sections = container.sections.iter().filter_map(|section| {
        let name = section.section.section;
        Some((name, live_entries(section, sections.get(name)?, more)))
    });
    Live {
        sections: sections.collect(),
        release: DetectedRelease::Known(release::REFERENCE),
        ..Live::with_presence(Presence::Here(target(container), facts), Duration::ZERO)
    }
}
