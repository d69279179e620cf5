//! Entries: one as a whole, and those of a list among each other.

use std::collections::HashMap;

use super::{Check, found};
use crate::{
    desired::{Declared, Entry, State},
    field::Accepted,
    kind::{Section, Shape},
    manifest::{
        faults::{Spot, missing},
        read::document::Part,
    },
    text::alternatives,
    value::{Json, Object, Value},
};

impl Check<'_> {
    /// An entry; its kind looks at it only if its schema accepts it and nothing is missing.
    pub(super) fn entry(&mut self, of: Section, part: Part) -> Entry {
        self.fields(of, &part.fields);
        let is_complete = self.required(of, &part);
        match part.state {
            State::Absent => self.absent(of, &part),
            State::Present if part.is_sound && is_complete => self.rules(of, &part),
            State::Present => {}
        }
        let Part { origin, state, fields, .. } = part;
        let key = if of.shape == Shape::List { of.name(&plain(&fields)) } else { String::new() };
        Entry { key, origin, state, fields }
    }

    /// Whether everything is there that an entry has to have: of an absent one, what it is found by.
    fn required(&mut self, of: Section, part: &Part) -> bool {
        if of.shape == Shape::Mapping && part.state == State::Absent {
            return true;
        }
        let schema = &of.table().schema;
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let missed: Vec<_> = names
            .filter(|name| part.state == State::Present || of.identity.contains(name))
            .filter(|name| !part.fields.contains_key(name))
            .collect();
        for name in &missed {
            let fault = missing(name, schema, Spot::key(&part.origin));
            let fault = self.faults.push(fault);
            if of.shape == Shape::List {
                fault.label("in this entry");
            }
        }
        missed.is_empty()
    }

    /// What its kind finds wrong with an entry.
    fn rules(&mut self, of: Section, part: &Part) {
        of.rules.check(&part.fields.values(), true, &mut |fault| {
            let at = match fault.field.and_then(|field| part.fields.origin(field)) {
                // A value that should not be written is not pointed at.
                Some(field) if fault.code == "literal-secret" => Spot::key(&field),
                Some(field) => Spot::value(&field),
                None => Spot::key(&part.origin),
            };
            self.faults.push(found(fault, at));
        });
    }

    /// An absent entry says only what it is found by.
    fn absent(&mut self, of: Section, part: &Part) {
        let has_meaning = |name: &str| match of.table().get(name) {
            // What is never sent tells the entry from others, as a hook's earlier addresses do.
            Some(spec) => of.identity.contains(&name) || spec.field.accepted == Accepted::Never,
            None => false,
        };
        for (name, field) in part.fields.iter().filter(|(name, _)| !has_meaning(name)) {
            // What is below `extra:` may be anything, and is not quoted.
            let name = if of.table().get(name).is_some() { name } else { "extra" };
            let message = format!("`{name}` has no meaning for an absent {}", of.noun);
            let absent = self.faults.error("absent", message, Spot::key(&field.origin));
            absent.help("take the field away, or `state: absent`");
        }
    }

    /// Two entries that are the same thing are an error at both places.
    pub(super) fn twice(&mut self, of: Section, entries: &[Entry]) {
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.key.is_empty()) {
            let on_service = of.rules.identify(of, &plain(&entry.fields)).keys.into_iter().next();
            let on_service = on_service.unwrap_or_default();
            // Where manifests may give a name of their own, the service has another identity.
            let is_named = on_service != entry.key;
            let keys = [(format!("by name {}", entry.key), false), (on_service, is_named)];
            let twice = keys.into_iter().find_map(|(key, on_service)| {
                let first = *seen.entry(key).or_insert(at);
                (first != at).then_some((first, on_service))
            });
            let Some((first, on_service)) = twice else { continue };
            let identity: Vec<_> = match on_service {
                true => of.identity.last().copied().into_iter().collect(),
                false => of.identity.to_vec(),
            };
            let identity = alternatives(&identity).replace(" or ", " and ");
            let message = format!("a {} that is declared twice", of.noun);
            self.faults
                .error("duplicate-entry", message, Spot::key(&entry.origin))
                .related(Spot::key(&entries[first].origin), "first declared here")
                .help(format!("keep one of them; one is told from another by {identity}"));
        }
    }
}

/// Fields as plain JSON: a reference to a secret is the text that names it.
fn plain(fields: &Declared) -> Object {
    let json = |value| match value {
        Value::Plain(json) => json,
        Value::Secret(reference) => Json::from(reference.to_string()),
        Value::File(path) => Json::from(path),
    };
    fields.values().into_iter().map(|(name, value)| (name, json(value))).collect()
}
