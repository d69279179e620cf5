//! Declarations that make a read complete: every section, with every field that the service may show.

use std::sync::Arc;

use super::ExportSettings;
use crate::{
    catalogue,
    desired::{Container, DeclaredEntry, DeclaredSection, EntryPresence},
    field::Scope,
    kind::{Shape, is_readable},
    origin::{Layer, Origin, Sourced},
    value::{Json, Value},
};

/// A declaration that is only used to read the group or project at `path`. No manifest contains
/// this declaration, and no plan is made from it.
pub fn readable_container(scope: Scope, path: Arc<str>, settings: &ExportSettings) -> Container {
    let origin = Origin::new("", 0, 0, Layer::Project);
    let mut sections = Vec::new();
    for section in catalogue::sections(scope) {
        if section.shape == Shape::Container || !settings.exports_section(&path, section) {
            continue;
        }
        let specs = section.specs().iter();
        let readable_specs = specs.filter(|spec| {
            is_readable(spec.field) && section.table().is_current(spec, settings.release)
        });
        let null_value = Sourced { value: Value::Plain(Json::Null), origin: origin.clone() };
        let entry = DeclaredEntry {
            key: String::new(),
            origin: origin.clone(),
            state: EntryPresence::Present,
            fields: readable_specs.map(|spec| (spec.name, null_value.clone())).collect(),
        };
        let extra_fields = section.unmanaged_fields().map(|(name, _)| name.into()).collect();
        let declared = DeclaredSection::with_entries(section, &origin, vec![entry]);
        sections.push(DeclaredSection { extra_fields, ..declared });
    }
    sections.sort_by_key(|section| section.kind.section);
    Container::new(scope, path, origin, sections)
}

/// A copy of `container` with which a read of the declared sections is complete: each section
/// declares every field that the service may show.
pub fn widen_to_all_fields(container: &Container, settings: &ExportSettings) -> Container {
    let mut widened = widen_to_all_sections(container, settings);
    widened.sections.retain(|section| container.section(section.kind.section).is_some());
    widened
}

/// A copy of `container` with which a read of all sections is complete, even of undeclared
/// sections: each section declares every field that the service may show.
pub fn widen_to_all_sections(container: &Container, settings: &ExportSettings) -> Container {
    let mut full_container = container.clone();
    for section in readable_container(container.scope, container.path.clone(), settings).sections {
        let mut sections = full_container.sections.iter_mut();
        match sections.find(|existing| existing.kind.section == section.kind.section) {
            Some(declared) => declared.entries.extend(section.entries),
            None => full_container.sections.push(section),
        }
    }
    full_container.sections.sort_by_key(|section| section.kind.section);
    full_container
}
