//! Values that are secret, kept as digests under a key.
//!
//! With the key, whoever plans from the snapshot can tell whether such a value is the declared one, and
//! nothing else. So it must not be where a branch can reach it. Without the key they are as if the
//! service had not told them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::things::Failed;
use crate::{
    desired::{Desired, Entry},
    digest::Key,
    field::{Compare, Scope, Secrecy},
    kind::{Section, Spec},
    secret::Secrets,
    text,
    value::{Json, Object, Value},
};

/// The key of the object that stands in the place of a value.
const MARK: &str = "undrift_digest";

/// Sensitive values that are declared, by container and section: with the field.
type Declared = BTreeMap<(Scope, String, &'static str), Vec<(String, Json)>>;

/// The digest of the `value` of a field of the entry `raw` below `path`, in its place. Two things with
/// the same value have different ones.
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
    let own: Vec<_> = section.home.rows.keys.iter().map(|key| raw.get(*key)).collect();
    serde_json::json!([scope, path, section.section, own, spec.name, value])
}

/// Puts values back in the place of their digests.
#[derive(Debug, Default)]
pub(super) struct Unsealing {
    key: Option<Key>,
    declared: Mutex<Arc<Declared>>,
}

impl Unsealing {
    /// With `key`, if somebody has it.
    pub(super) fn new(key: Option<Key>) -> Self {
        Self { key, declared: Mutex::default() }
    }

    /// Takes into account what is declared by now, and what `secrets` knows of that.
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

    /// The entries of `section` below `path`, or the one thing, as the service told them so far as
    /// that is known.
    ///
    /// # Errors
    /// If what is not known tells entries apart, or would count as null.
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

    /// The declared value that has this digest; for any other one a text that equals nothing.
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
            // What tells entries apart is shown, and is the same in each run.
            None if section.identity.contains(&spec.name.as_str()) => {
                let own = section.home.rows.keys.iter().filter_map(|key| raw.get(*key));
                let own: Vec<_> = own.map(Json::to_string).collect();
                format!("sealed:{}", own.join("-")).into()
            }
            None => format!("sealed:{:032x}", rand::random::<u128>()).into(),
        }
    }
}

/// Whether it says something if an answer leaves a field out.
pub(super) fn matters(section: Section, spec: &Spec) -> bool {
    section.identity.contains(&spec.name.as_str()) || spec.field.nullable
}

/// Why an entry is not known without a field.
pub(super) fn withheld(section: Section, live: &str) -> Failed {
    let message = format!("the `{live}` of a {} may hold a credential", section.noun);
    Failed { message, ..Failed::default() }
}
