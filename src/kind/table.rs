//! The fields of a kind, read once from its schema.

use std::collections::BTreeMap;

use schemars::Schema;

use crate::{
    field::{FIELD, Field, Scope},
    value::Json,
};

/// One field of a kind: its name, its treatment and its schema.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The name in manifests.
    pub name: String,
    /// The treatment.
    pub field: Field,
    /// The schema of the property.
    pub schema: Json,
}

/// Whether `schema` is that of a list.
pub fn is_list(schema: &Json) -> bool {
    match &schema["type"] {
        Json::Array(types) => types.iter().any(|kind| kind == "array"),
        kind => kind == "array",
    }
}

/// Every field of a kind, built once from its schema.
#[derive(Debug)]
pub struct Table {
    specs: Vec<Spec>,
    by_name: BTreeMap<String, usize>,
    /// The schema of an entry.
    pub schema: Json,
}

/// The treatment of a key below `extra:`: sent as it is, compared where it comes back.
static EXTRA: std::sync::LazyLock<Field> =
    std::sync::LazyLock::new(|| FIELD.read_if_present().nullable());

impl Table {
    /// Reads the fields out of `schema`.
    pub fn new(schema: &Schema) -> Self {
        Self::of(schema.as_value().clone())
    }

    /// The fields that `scope` has.
    pub fn in_scope(schema: &Schema, scope: Scope) -> Self {
        let mut schema = schema.as_value().clone();
        if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
            properties
                .retain(|_, property| Field::of(property).only.is_none_or(|only| only == scope));
        }
        Self::of(schema)
    }

    fn of(schema: Json) -> Self {
        let properties = schema.get("properties").and_then(Json::as_object);
        let specs: Vec<_> = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| Spec {
                name: name.clone(),
                field: Field::of(property),
                schema: property.clone(),
            })
            .collect();
        let by_name = specs.iter().enumerate().map(|(i, spec)| (spec.name.clone(), i)).collect();
        Self { specs, by_name, schema }
    }

    /// The fields in the order of the struct.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// One field.
    pub fn get(&self, name: &str) -> Option<&Spec> {
        self.by_name.get(name).map(|i| &self.specs[*i])
    }

    /// The treatment of `name`; one that is not in the table was written below `extra:`.
    pub fn field(&self, name: &str) -> &Field {
        self.get(name).map_or(&*EXTRA, |spec| &spec.field)
    }
}
