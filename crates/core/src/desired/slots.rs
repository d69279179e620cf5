//! The declared values of a group or project without their origins, to compare two declarations
//! slot by slot.

use std::collections::BTreeMap;

use super::{Container, Declared, State};
use crate::{address::Glob, value::Value};

/// The declared values by section, entry and field, without origins.
pub type Values = BTreeMap<(&'static str, String, String), Value>;

/// The key for the container itself, and for a section or entry as a whole.
pub const ITSELF: &str = "";

/// The key for a section as a whole; no entry has this name.
pub const SECTION: &str = "\0";

/// The declared values of `container`.
pub fn meaning(container: &Container) -> Values {
    let mut meaning = Values::new();
    let mut say = |section, key: &str, field: &str, value: Value| {
        meaning.insert((section, key.to_owned(), field.to_owned()), value);
    };
    let life = &container.life;
    let former: Vec<_> = container.former().collect();
    let state = life.state.as_ref().map(|state| state.value);
    let undeclared = life.unlisted_projects.as_ref().map(|policy| policy.value);
    let creation = container.create.fields().map(Declared::values);
    let itself = format!("{:?}", (container.is_watched, former, state, undeclared, creation));
    say(ITSELF, ITSELF, ITSELF, Value::from(itself.as_str()));
    for section in &container.sections {
        let name = section.of.section;
        let unmanaged: Vec<_> = section.unmanaged.iter().map(Glob::written).collect();
        let whole = format!("{:?}", (section.unlisted.value, unmanaged));
        say(name, SECTION, ITSELF, Value::from(whole.as_str()));
        for entry in &section.entries {
            say(name, &entry.key, ITSELF, state_of(entry.state));
            for (field, value) in entry.values() {
                say(name, &entry.key, &field, value);
            }
        }
    }
    meaning
}

/// The value for the state of an entry.
pub fn state_of(state: State) -> Value {
    Value::from(if state == State::Absent { "absent" } else { "present" })
}
