//! The schemas of documents about many groups or projects, and of the keys and forms for other
//! layers.

use serde_json::json;

use super::{
    DocumentKind,
    container::{self, Use},
    kind,
};
use crate::{
    field::{Field, Scope, Secrecy},
    value::{Json, Object},
};

/// The value of `undeclared` with which a rule includes undeclared containers.
pub(in crate::manifest) const INCLUDE: &str = "include";

/// The schema of a `Defaults` document, which selects by path.
pub(super) fn defaults(scope: Scope, to: Use) -> Json {
    let globs = |text: &str| json!({"type": ["string", "array"], "items": {"type": "string", "minLength": 1}, "minLength": 1, "minItems": 1, "description": text});
    let matches = json!({
        "type": "object",
        "description": "Of which paths it holds. `*` matches within a part of a path, `**` across; `acme/**` is what is below `acme`, not `acme` itself. Case does not matter.",
        "properties": {
            "path": globs("A glob over full paths, or a list of them."),
            "except": globs("Paths that it does not hold of: a glob or a list of them."),
        },
        "required": ["path"],
        "additionalProperties": false,
    });
    let undeclared = json!({"type": "string", "enum": [INCLUDE], "description": "`include` brings in every project, or group, that exists where this holds and that no document declares: all rules that match it hold for it, `create` aside. Never what is archived or marked for deletion, what is in a personal namespace, or where the token's role is below Maintainer."});
    let own = [
        ("match".to_owned(), matches),
        ("for".to_owned(), is_for()),
        ("undeclared".to_owned(), undeclared),
    ];
    let text = "What holds for all declared projects, or groups, of which the path matches. The more literal match outranks, profiles outrank defaults, and what a document itself says outranks both.";
    rule(DocumentKind::Defaults(scope), text, own, &["kind", "match"], to)
}

/// The schema of a `Profile` document, which is selected by name.
pub(super) fn profile(scope: Scope, to: Use) -> Json {
    let name = json!({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$", "description": "What `uses` calls it.", "examples": ["service"]});
    let needs = json!({"type": "array", "items": {"type": "string"}, "description": "The parameters that whoever uses it has to give."});
    let own =
        [("name".to_owned(), name), ("for".to_owned(), is_for()), ("needs".to_owned(), needs)];
    let text = "A named set of sections for the projects, or groups, that use it. Of several profiles the one that is named later outranks.";
    rule(DocumentKind::Profile(scope), text, own, &["kind", "name"], to)
}

fn is_for() -> Json {
    let scopes = [Scope::Project, Scope::Group].map(Scope::document);
    json!({"type": "string", "enum": scopes, "description": "What it is for (default: `Project`)."})
}

fn rule(
    of: DocumentKind,
    text: &str,
    own: impl IntoIterator<Item = (String, Json)>,
    required: &[&str],
    to: Use,
) -> Json {
    let mut properties = Object::from_iter([("kind".to_owned(), kind(of.name()))]);
    properties.extend(own);
    properties.extend(keys(to));
    properties.extend(of.scope().map(|scope| container::sections(scope, to)).unwrap_or_default());
    json!({
        "description": text,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The keys of any document that concern other layers, except `ignore_layers`.
pub(super) fn keys(to: Use) -> Object {
    let mut uses = json!({"type": "array", "items": {"type": "string"}, "description": "The profiles that are used, the later outranking the earlier. A document's own list replaces what its defaults use; `{add: [...]}` adds to it."});
    if to == Use::Editing {
        open(&mut uses);
    }
    let params = json!({
        "type": "object",
        "additionalProperties": {"type": ["string", "number", "boolean"]},
        "description": "What `{text: '...'}` fills in by name, besides `{path}`, `{name}`, `{group}` and `{path_slug}`.",
    });
    let watch = json!({"type": "boolean", "description": "Whether it is only compared and reported, and never written: for adopting step by step."});
    Object::from_iter([
        ("uses".to_owned(), uses),
        ("params".to_owned(), params),
        ("watch".to_owned(), watch),
    ])
}

/// `ignore_layers: [SECTION, ...]`, or `true`.
pub(super) fn ignore(sections: &[&str]) -> Json {
    let section = match sections {
        [] => json!({"type": "string"}),
        sections => json!({"type": "string", "enum": sections}),
    };
    json!({
        "type": ["boolean", "array"],
        "items": section,
        "description": "The sections for which nothing is taken from lower layers; `true` for none at all.",
    })
}

/// Adds the forms that may replace a value to the schema of a field: `{text: ...}` for a text or
/// number; `{add: [...]}`, `{remove: [...]}` and conditions for a list.
pub(super) fn open(schema: &mut Json) {
    if Field::of(schema).secrecy == Secrecy::Reference {
        return;
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.values_mut().for_each(open);
        return;
    }
    let is = |name: &str| match &schema["type"] {
        Json::Array(types) => types.iter().any(|own| own == name),
        own => own == name,
    };
    let instead = if is("array") {
        let items = schema.get("items").cloned().unwrap_or(json!(true));
        let list = json!({"type": "array", "items": items, "minItems": 1});
        let pair = |first: &str, second: &str| {
            json!({
                "type": "object",
                "properties": {first: list, second: list},
                "minProperties": 1,
                "additionalProperties": false,
            })
        };
        vec![pair("add", "remove"), pair("at_least", "none_of")]
    } else if is("boolean") {
        return;
    } else {
        vec![json!({
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": false,
        })]
    };
    let mut plain = std::mem::take(schema);
    let description = plain.as_object_mut().and_then(|plain| plain.remove("description"));
    let choices: Vec<_> = std::iter::once(plain).chain(instead).collect();
    *schema = json!({"anyOf": choices});
    if let Some(description) = description {
        schema["description"] = description;
    }
}

/// What an entry may also hold, and what may stand in place of a value: names with what they mean.
pub(super) fn in_values() -> Json {
    let list =
        |text: &str| json!({"type": "array", "items": {"type": "string"}, "description": text});
    let text = |text: &str| json!({"type": "string", "description": text});
    json!({"properties": {
        "extra": {"type": "object", "description": EXTRA},
        "text": text("Text with placeholders: `{path}`, `{name}`, `{group}`, `{path_slug}` and the `params` of the document. `{{` is a brace."),
        "add": list("In place of a list: entries to add to the list that lower layers give."),
        "remove": list("In place of a list: entries to take from the list that lower layers give."),
        "at_least": list("In place of a list: entries that the live list must have; others may be there."),
        "none_of": list("In place of a list: entries that the live list must not have."),
        "env": text("In place of a secret: the environment variable that holds it."),
        "file": text("In place of a secret or a file: its path below the manifest folder. One newline at its end is dropped."),
    }})
}

/// What `extra` is.
pub(super) const EXTRA: &str =
    "API attributes that undrift does not know yet; sent and compared as they are.";
