//! Live states for tests, made from responses of the service.

use std::{collections::BTreeSet, time::Duration};

use super::{Caller, Live, LiveEntries, Presence};
use crate::{
    desired::{Container, DeclaredSection},
    kind::{Facts, ReadSource, Target, Wanted, testing::with_flags},
    page,
    release::{self, DetectedRelease},
    value::{Json, Object},
};

/// The id of [`caller`].
pub const CALLER: u64 = 7;

/// An administrator as the caller.
pub fn caller() -> Caller {
    Caller { id: CALLER, username: "root".into(), administrator: true }
}

/// `container` with the id 1.
pub fn target(container: &Container) -> Target {
    Target { id: Some(1), ..Target::new(container.scope, container.path.clone()) }
}

/// The live state of `section`: an array, an object, or `null`. Only declared fields and those that
/// `more` selects are read. Flags that edits repeat are off by default.
pub fn collection(section: &DeclaredSection, raw: &Json, more: Wanted<'_>) -> LiveEntries {
    let of = section.section;
    let mut declared: BTreeSet<_> = section.names().collect();
    let wanted = match more {
        Wanted::Only(more) => {
            declared.extend(more);
            Wanted::Only(&declared)
        }
        all => all,
    };
    let read = |raw: &Object| of.read(raw, wanted);
    let object = |raw: &Json| with_flags(of, raw.as_object().cloned().unwrap_or_default());
    match (raw, of.home.place) {
        (Json::Array(raw), ReadSource::In(_)) => {
            LiveEntries::Within(raw.iter().map(|raw| read(&object(raw))).collect())
        }
        (Json::Array(raw), _) => {
            let raw = page::whole(raw.iter().map(object).collect());
            LiveEntries::Complete(raw.map(|raw| read(&raw)))
        }
        (Json::Null, ReadSource::Part { .. }) => LiveEntries::Within(Vec::new()),
        (raw, ReadSource::Part { .. }) => LiveEntries::Within(vec![read(&object(raw))]),
        (Json::Null, _) => LiveEntries::One(None),
        (raw, _) => LiveEntries::One(Some(read(&object(raw)).into())),
    }
}

/// The live state of `container`, with the responses in `sections`.
pub fn here(container: &Container, sections: &Json) -> Live {
    here_reading(container, sections, Wanted::Only(&[].into()))
}

/// The same, with more than the declared fields.
pub fn here_reading(container: &Container, sections: &Json, more: Wanted<'_>) -> Live {
    let facts = Facts { id: Some(1), ..Facts::default() };
    let sections = container.sections.iter().filter_map(|section| {
        let name = section.section.section;
        Some((name, collection(section, sections.get(name)?, more)))
    });
    Live {
        sections: sections.collect(),
        release: DetectedRelease::Is(release::REFERENCE),
        ..Live::of(Presence::Here(target(container), facts), Duration::ZERO)
    }
}
