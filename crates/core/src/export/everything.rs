//! A declaration to read everything: every section, with every field that the service may show.

use std::sync::Arc;

use super::Settings;
use crate::{
    catalogue,
    desired::{Container, Creation, Declared, DeclaredSection, Entry, Life, State},
    field::Scope,
    kind::{Section, Shape, is_readable},
    origin::{Layer, Origin, Sourced},
    value::Json,
};

/// What to read of the group or project at `path`. It is in no manifest, and nothing is planned for
/// it.
pub fn to_read(scope: Scope, path: Arc<str>, settings: &Settings) -> Container {
    let origin = Origin::new("", 0, 0, Layer::Project);
    let section = |of: Section| {
        let readable = of.table().specs().iter().filter(|spec| {
            is_readable(spec.field) && of.table().is_current(spec, settings.release)
        });
        let nothing = || Sourced { value: Json::Null.into(), origin: origin.clone() };
        let entry = Entry {
            key: String::new(),
            origin: origin.clone(),
            state: State::Present,
            fields: readable.map(|spec| (spec.name, nothing())).collect::<Declared>(),
        };
        let also_read = of.unmanaged().map(|(name, _)| name.into()).collect();
        DeclaredSection { also_read, ..DeclaredSection::with(of, &origin, vec![entry]) }
    };
    let sections = catalogue::sections(scope)
        .filter(|of| of.shape != Shape::Container && settings.takes(&path, *of));
    let mut sections: Vec<_> = sections.map(section).collect();
    sections.sort_by_key(|section| section.of.section);
    let create = Creation::Forbidden;
    let life = Life::default();
    Container { scope, path, origin, brought_in: None, create, is_watched: false, life, sections }
}

/// `container`, changed so that its declared sections are read completely.
pub fn everything(container: &Container, settings: &Settings) -> Container {
    widened(container, settings, false)
}

/// `container` with every section looked at in full, whether it declares it or not.
pub fn whole(container: &Container, settings: &Settings) -> Container {
    widened(container, settings, true)
}

fn widened(container: &Container, settings: &Settings, adds_sections: bool) -> Container {
    let mut whole = container.clone();
    for section in to_read(container.scope, container.path.clone(), settings).sections {
        match whole.sections.iter_mut().find(|existing| existing.of.section == section.of.section) {
            Some(declared) => declared.entries.extend(section.entries),
            None if adds_sections => whole.sections.push(section),
            None => {}
        }
    }
    whole.sections.sort_by_key(|section| section.of.section);
    whole
}
