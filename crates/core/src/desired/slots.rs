//! Collects the declared values of a group or project without origins, so that two declarations can
//! be compared entry by entry.

use std::collections::BTreeMap;

use super::{Container, DeclaredFields, EntryPresence};
use crate::{
    address::Glob,
    value::{Fields, Value},
};

/// The declared fields by section name and entry key, without origins.
pub type DeclaredValues = BTreeMap<(&'static str, String), Fields>;

/// The section name and entry key of the container itself. Also the name of the field for a
/// container, section or entry as a whole.
pub const WHOLE_KEY: &str = "";

/// The entry key for a section as a whole. No entry has this name.
pub const SECTION_KEY: &str = "\0";

/// The declared values of `container`.
pub fn declared_values(container: &Container) -> DeclaredValues {
    let lifecycle = &container.lifecycle;
    let former_paths: Vec<_> = container.former_paths().collect();
    let state = lifecycle.state.as_ref().map(|state| state.value);
    let unlisted_policy = lifecycle.unlisted_projects.as_ref().map(|policy| policy.value);
    let creation = container.creation_policy.create_fields().map(DeclaredFields::values);
    let container_text =
        format!("{:?}", (container.is_watched, former_paths, state, unlisted_policy, creation));
    let mut values =
        DeclaredValues::from([((WHOLE_KEY, WHOLE_KEY.to_owned()), whole_fields(&container_text))]);
    for section in &container.sections {
        let name = section.kind.section;
        let unmanaged: Vec<_> = section.unmanaged_globs.iter().map(Glob::pattern).collect();
        let policy = format!("{:?}", (section.unlisted.value, unmanaged));
        values.insert((name, SECTION_KEY.to_owned()), whole_fields(&policy));
        for entry in &section.entries {
            let mut fields = entry.values();
            fields.insert(WHOLE_KEY.to_owned(), state_value(entry.state));
            values.insert((name, entry.key.clone()), fields);
        }
    }
    values
}

/// The fields for a container or section as a whole: one field with `text`.
fn whole_fields(text: &str) -> Fields {
    Fields::from([(WHOLE_KEY.to_owned(), Value::from(text))])
}

/// The word for the state of an entry, as a value.
pub fn state_value(state: EntryPresence) -> Value {
    Value::from(if state == EntryPresence::Absent { "absent" } else { "present" })
}
