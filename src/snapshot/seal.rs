//! Keeps secret values as digests under a key.
//!
//! With the key, a plan from the snapshot can tell whether such a value equals the declared one,
//! and nothing else. So a branch must not be able to read the key. Without the key, such values
//! count as not returned by the service.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::contents::Failed;
use crate::{
    desired::{Desired, Entry},
    digest::Key,
    field::{Compare, Scope, Secrecy},
    kind::{Section, Spec},
    secret::Secrets,
    text,
    value::{Json, Object, Value},
};

/// The key of the JSON object that replaces a value.
const MARK: &str = "undrift_digest";

/// Declared sensitive values, by container and section, with the field.
type Declared = BTreeMap<(Scope, String, &'static str), Vec<(String, Json)>>;

/// The digest that replaces the `value` of a field in the entry `raw` below `path`. Equal values of
/// two objects have different digests.
pub(super) fn sealed(
    key: &Key,
    section: Section,
    path: &str,
    spec: &Spec,
    raw: &Object,
    value: &Json,
) -> Json {
    let digest = key.of(&subject(section, path, spec, raw, value));
    Json::Object(Object::from_iter([(MARK.to_owned(), digest.into())]))
}

fn subject(section: Section, path: &str, spec: &Spec, raw: &Object, value: &Json) -> Json {
    let value = match (spec.field.compare, value) {
        (Compare::Url, Json::String(url)) => text::normal_url(url).into(),
        (Compare::Location, Json::String(url)) => text::location(url).into(),
        _ => value.clone(),
    };
    let scope = section.home.scope.noun();
    let above = section.home.parent.iter().map(|parent| &parent.argument);
    let own: Vec<_> = section.home.rows.keys.iter().chain(above).map(|key| raw.get(*key)).collect();
    serde_json::json!([scope, path, section.section, own, spec.name, value])
}

/// Replaces digests by their values.
#[derive(Debug, Default)]
pub(super) struct Unsealing {
    key: Option<Key>,
    declared: Mutex<Arc<Declared>>,
}

impl Unsealing {
    /// With `key`, if it is known.
    pub(super) fn new(key: Option<Key>) -> Self {
        Self { key, declared: Mutex::default() }
    }

    /// Uses the present declarations, and the values in `secrets`, to recognise digests.
    pub(super) fn declare(&self, desired: &Desired, secrets: &Secrets) {
        let mut declared = Declared::new();
        for container in desired.containers.iter().filter(|_| self.key.is_some()) {
            for section in &container.sections {
                let of = (container.scope, container.path.to_lowercase(), section.of.section);
                let values = section.entries.iter().flat_map(Entry::values);
                let values = values.filter_map(|(name, value)| {
                    let is_open = section.of.field(&name).secrecy == Secrecy::Open;
                    let value = match value {
                        Value::Plain(json) => json,
                        Value::Secret(reference) => secrets.get(&reference)?.expose().into(),
                        Value::File(_) => return None,
                    };
                    (!is_open).then_some((name, value))
                });
                declared.entry(of).or_default().extend(values);
            }
        }
        *self.declared.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(declared);
    }

    /// The entries of `section` below `path`, or the single object, with all values that are known.
    ///
    /// # Errors
    /// If an unknown value belongs to an identity, or would count as null.
    pub(super) fn unseal(&self, section: Section, path: &str, json: Json) -> Result<Json, Failed> {
        match json {
            Json::Array(entries) => {
                entries.into_iter().map(|entry| self.unseal(section, path, entry)).collect()
            }
            Json::Object(mut raw) => {
                for spec in section.table().specs() {
                    let Some(live) = spec.field.live_name(&spec.name) else { continue };
                    let Some(digest) = raw.get(live).and_then(|value| value.get(MARK)) else {
                        continue;
                    };
                    let digest = digest.as_str().unwrap_or_default().to_owned();
                    match &self.key {
                        Some(key) => {
                            let value = self.value(key, section, path, spec, &raw, &digest);
                            raw.insert(live.to_owned(), value);
                        }
                        None if matters(section, spec) => return Err(withheld(section, live)),
                        None => drop(raw.remove(live)),
                    }
                }
                Ok(Json::Object(raw))
            }
            other => Ok(other),
        }
    }

    /// The declared value with this digest, or else a text that equals nothing.
    fn value(
        &self,
        key: &Key,
        section: Section,
        path: &str,
        spec: &Spec,
        raw: &Object,
        digest: &str,
    ) -> Json {
        let declared = Arc::clone(&self.declared.lock().unwrap_or_else(PoisonError::into_inner));
        let of = (section.home.scope, path.to_owned(), section.section);
        let mut values = declared.get(&of).into_iter().flatten();
        let known = values.find(|(name, value)| {
            *name == spec.name && key.of(&subject(section, path, spec, raw, value)) == digest
        });
        match known {
            Some((_, value)) => value.clone(),
            // An identity is shown, and must be the same in each run.
            None if section.identity.contains(&spec.name.as_str()) => {
                let own = section.home.rows.keys.iter().filter_map(|key| raw.get(*key));
                let own: Vec<_> = own.map(Json::to_string).collect();
                format!("sealed:{}", own.join("-")).into()
            }
            None => format!("sealed:{:032x}", rand::random::<u128>()).into(),
        }
    }
}

/// Whether the absence of a field in an answer has a meaning.
pub(super) fn matters(section: Section, spec: &Spec) -> bool {
    section.identity.contains(&spec.name.as_str()) || spec.field.nullable
}

/// Why an entry is unknown without a field.
pub(super) fn withheld(section: Section, live: &str) -> Failed {
    let message = format!("the `{live}` of a {} may hold a credential", section.noun);
    Failed { message, ..Failed::default() }
}
