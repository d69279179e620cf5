//! The schema of an `Acknowledge` document.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{bare, insert, kind};
use crate::{
    desired::Guard,
    schema,
    value::{Json, Object},
};

/// Acknowledges a guard's refusal, reviewed like everything else in Git. Without it, the object is
/// not changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::manifest) struct Acknowledge {
    /// The guard that refuses.
    pub(in crate::manifest) guard: Guard,
    /// The address in the refusal, as printed: `PATH`, `PATH#SECTION` or `PATH#SECTION/ENTRY`, or a
    /// glob for such addresses. `*` stays within a path segment, `**` crosses segments.
    #[schemars(length(min = 1), example = &"acme/shop#members")]
    #[expect(dead_code, reason = "read from the document, so that a fault in it has a place")]
    pub(in crate::manifest) at: String,
    /// The maximum number of objects in all refusals that it matches together. Default: any
    /// number.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(in crate::manifest) at_most: Option<usize>,
    /// The last day on which it is valid, in UTC. Default: no end.
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), extend("format" = "date"), example = &"2099-01-31")]
    #[expect(dead_code, reason = "as `at`")]
    pub(in crate::manifest) until: Option<String>,
    /// The reason, for reviewers and reports.
    #[schemars(length(min = 1), example = &"INC-123")]
    pub(in crate::manifest) reason: Option<String>,
}

/// The schema of the document.
pub(super) fn schema() -> Json {
    let mut schema = bare(schema::of::<Acknowledge>().as_value());
    let fields = schema.remove("properties");
    let properties = Object::from_iter([("kind".to_owned(), kind("Acknowledge"))]);
    schema.insert("properties".into(), Json::Object(properties));
    for (name, property) in fields.as_ref().and_then(Json::as_object).into_iter().flatten() {
        insert(&mut schema, name, property.clone());
    }
    schema.insert("required".into(), json!(["kind", "guard", "at"]));
    Json::Object(schema)
}
