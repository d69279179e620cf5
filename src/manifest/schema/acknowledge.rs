//! The schema of an `Acknowledge` document: what a guard may let pass.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{bare, insert, kind};
use crate::{
    desired::Guard,
    schema,
    value::{Json, Object},
};

/// What a guard may let pass, reviewed like everything else in Git. Without it the guard refuses, and the object is left alone.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::manifest) struct Acknowledge {
    /// The guard that refuses.
    pub(in crate::manifest) guard: Guard,
    /// What it refuses, as printed: `PATH`, `PATH#SECTION` or `PATH#SECTION/ENTRY`, or a glob over such addresses. `*` matches within a path segment, `**` across segments.
    #[schemars(length(min = 1), example = &"acme/shop#members")]
    #[expect(dead_code, reason = "read from the document, so that a fault in it has a place")]
    pub(in crate::manifest) at: String,
    /// The most objects that the refusal may be about. Without it any number passes.
    #[schemars(range(min = 1))]
    pub(in crate::manifest) at_most: Option<usize>,
    /// The last day on which it counts, in UTC. Without it there is no end.
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), extend("format" = "date"), example = &"2099-01-31")]
    #[expect(dead_code, reason = "as `at`")]
    pub(in crate::manifest) until: Option<String>,
    /// Why, for reviewers and reports.
    #[schemars(length(min = 1), example = &"INC-123")]
    pub(in crate::manifest) reason: Option<String>,
}

/// The schema of the document.
pub(super) fn schema() -> Json {
    let mut schema = bare(schema::of::<Acknowledge>().as_value());
    let own = schema.remove("properties");
    let properties = Object::from_iter([("kind".to_owned(), kind("Acknowledge"))]);
    schema.insert("properties".into(), Json::Object(properties));
    for (name, property) in own.as_ref().and_then(Json::as_object).into_iter().flatten() {
        insert(&mut schema, name, property.clone());
    }
    schema.insert("required".into(), json!(["kind", "guard", "at"]));
    Json::Object(schema)
}
