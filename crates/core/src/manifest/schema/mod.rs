//! The JSON schemas of manifests and of `undrift.yaml`, for checks and for editors.
//!
//! The schema of a document for a group or project is made from the tables of the kinds, so a new
//! kind needs no code here. The schemas for editors demand required fields. When a file is read,
//! these fields are optional, because other layers may set them. Required fields are checked after
//! the layers are merged.

use std::{collections::BTreeMap, sync::LazyLock};

use jsonschema::{ValidationError, Validator};
use schemars::JsonSchema;
use serde_json::json;

use super::Config;
use crate::{
    catalogue,
    desired::Guard,
    field::Scope,
    kind::{Kind, Section, Shape},
    schema,
    value::{Json, Object},
    yaml::{self, Node},
};

mod container;
mod lookup;
mod published;

pub(super) use container::{INCLUDE_VALUE, OLD_UNLISTED_KEY};
pub use lookup::{NameDescription, all_names, describe_name, document_names, find_full_names};
use published::object_values_mut;
pub use published::published_schema;

use container::SchemaUse;

/// A value that is computed on first use.
type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// A schema with its validators. Each section has its own validator, which is built on first use,
/// because building all validators takes longer than the rest of a short run.
#[derive(Debug)]
pub(super) struct Checker {
    /// The schema of the whole document.
    pub(super) schema: Lazy<Json>,
    /// The validator of the document. If the document has sections, this validator accepts any
    /// value in a section.
    validator: Lazy<Validator>,
    /// The scope of the sections; `None` if the document has no sections.
    scope: Option<Scope>,
}

impl Checker {
    /// The checker of a document without sections.
    pub(super) fn new(schema: Json) -> Self {
        let validator = Self::build_validator(&schema);
        Self {
            schema: LazyLock::new(Box::new(|| schema)),
            validator: LazyLock::new(Box::new(|| validator)),
            scope: None,
        }
    }

    fn build_validator(schema: &Json) -> Validator {
        // This crate makes all schemas, and a test builds all validators, so building does not
        // fail. The safe fallback is a validator that refuses everything.
        let options = jsonschema::options();
        match options.build(schema).or_else(|_| options.build(&json!(false))) {
            Ok(validator) => validator,
            Err(_) => unreachable!("`false` is a schema"),
        }
    }

    /// True if `document` has no fault.
    pub(super) fn is_valid(&self, document: &Json) -> bool {
        self.validator.is_valid(document)
            && self
                .section_validators(document)
                .all(|(_, json, validator)| validator.is_valid(json))
    }

    /// The faults of `document`, each with the JSON pointer to the refused value.
    pub(super) fn schema_errors<'a>(
        &'a self,
        document: &'a Json,
    ) -> impl Iterator<Item = (String, ValidationError<'a>)> {
        let section_errors =
            self.section_validators(document).flat_map(|(name, json, validator)| {
                validator.iter_errors(json).map(move |error| (format!("/{name}"), error))
            });
        let document_errors =
            self.validator.iter_errors(document).map(|error| (String::new(), error));
        document_errors
            .chain(section_errors)
            .map(|(pointer, error)| (pointer + error.instance_path().as_str(), error))
    }

    /// The name and the value of each section in `document`, with the validator of the section.
    fn section_validators<'a>(
        &self,
        document: &'a Json,
    ) -> impl Iterator<Item = (&'a str, &'a Json, &'static Validator)> {
        let entries = self.scope.zip(document.as_object()).into_iter();
        entries.flat_map(|(scope, entries)| {
            entries.iter().filter_map(move |(name, json)| {
                Some((&**name, json, section_validator(catalogue::find_section(scope, name)?)))
            })
        })
    }
}

/// The checkers of documents, in the order of [`DocumentKind::ALL`].
static CHECKERS: LazyLock<[Checker; 7]> = LazyLock::new(|| {
    DocumentKind::ALL.map(|kind| Checker {
        schema: LazyLock::new(Box::new(move || kind.build_schema(SchemaUse::Checking))),
        validator: LazyLock::new(Box::new(move || {
            Checker::build_validator(&kind.build_schema(SchemaUse::CheckingFrame))
        })),
        scope: kind.scope(),
    })
});

type SectionMap<T> = BTreeMap<(Scope, &'static str), T>;

/// The validators of sections, by scope and name.
static SECTION_VALIDATORS: LazyLock<SectionMap<Lazy<Validator>>> = LazyLock::new(|| {
    let sections = catalogue::all_sections().map(|section| {
        let validator: Lazy<_> = LazyLock::new(Box::new(move || {
            Checker::build_validator(&container::section_schema(section, SchemaUse::Checking))
        }));
        ((section.scoped_kind.scope, section.section), validator)
    });
    sections.collect()
});

/// The validator of a section.
fn section_validator(section: Section) -> &'static Validator {
    &SECTION_VALIDATORS[&(section.scoped_kind.scope, section.section)]
}

/// The checker of `undrift.yaml`.
pub(super) static CONFIG_CHECKER: LazyLock<Checker> =
    LazyLock::new(|| Checker::new(config_schema()));

/// The checker of a description file.
pub(super) static DESCRIPTION_CHECKER: LazyLock<Checker> =
    LazyLock::new(|| Checker::new(description_schema()));

/// The kind of a document, with its scope if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// A group or project.
    Container(Scope),
    /// A rule for all groups or projects whose path matches.
    Defaults(Scope),
    /// A rule for all groups or projects that use it.
    Profile(Scope),
    /// An acknowledgement of refusals of a guard.
    Acknowledge,
}

impl DocumentKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Container(Scope::Project),
        Self::Container(Scope::Group),
        Self::Defaults(Scope::Project),
        Self::Defaults(Scope::Group),
        Self::Profile(Scope::Project),
        Self::Profile(Scope::Group),
        Self::Acknowledge,
    ];

    /// The name of the kind, which is the value of the key `kind`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Container(scope) => scope.document_kind(),
            Self::Defaults(_) => "Defaults",
            Self::Profile(_) => "Profile",
            Self::Acknowledge => "Acknowledge",
        }
    }

    /// The names of all kinds, without duplicates.
    pub fn names() -> Vec<&'static str> {
        let mut names = Self::ALL.map(Self::name).to_vec();
        names.dedup();
        names
    }

    /// The kind of `document`; `None` if the key `kind` is missing or its value is unknown.
    pub(super) fn from_document(document: &Node) -> Option<Self> {
        let kind = document["kind"].text()?;
        let is_for_groups = document["for"].text() == Some(Scope::Group.document_kind());
        Self::ALL.into_iter().find(|candidate| {
            let matches_scope =
                candidate.rule_scope().is_none_or(|scope| (scope == Scope::Group) == is_for_groups);
            matches_scope && kind == candidate.name()
        })
    }

    /// The scope of a rule, which its key `for` sets; `None` for other documents.
    fn rule_scope(self) -> Option<Scope> {
        self.scope().filter(|_| !matches!(self, Self::Container(_)))
    }

    /// The scope of the document; `None` for an acknowledgement.
    pub const fn scope(self) -> Option<Scope> {
        match self {
            Self::Container(scope) | Self::Defaults(scope) | Self::Profile(scope) => Some(scope),
            Self::Acknowledge => None,
        }
    }

    /// The checker of documents of this kind.
    pub(super) fn checker(self) -> &'static Checker {
        let index = Self::ALL.iter().position(|kind| *kind == self).unwrap_or_default();
        &CHECKERS[index]
    }

    /// The schema of documents of this kind, for editors. It refers to no other schema.
    pub fn schema(self) -> Json {
        self.build_schema(SchemaUse::Editing)
    }

    fn build_schema(self, usage: SchemaUse) -> Json {
        let name = self.name();
        let Some(scope) = self.scope() else {
            let mut schema = document_part(name);
            let guards = schema::inline_schema::<Guard>();
            for keyword in ["enum", "markdownEnumDescriptions"] {
                schema["properties"]["guard"][keyword] = json!(guards.get(keyword));
            }
            return schema.into();
        };
        let kind = json!({"type": "string", "enum": [name], "description": KIND_DESCRIPTION});
        let mut properties = Object::from_iter([("kind".to_owned(), kind)]);
        properties.extend(document_part(name));
        if let Some(paths) = properties.get_mut("paths").filter(|_| usage == SchemaUse::Editing) {
            container::accept_references(&mut paths["additionalProperties"]);
        }
        properties.extend(container::layering_key_schemas(usage));
        properties.extend(container::section_schemas(scope, usage));
        let mut schema = json!({
            "description": document_part("descriptions")[name],
            "type": "object",
            "properties": properties,
            "required": document_part("required")[name],
            "additionalProperties": false,
        });
        if let (Self::Container(_), Some(schema)) = (self, schema.as_object_mut()) {
            schema.extend(document_part("one_path"));
        }
        schema
    }

    /// The schema of a document of this kind, with only the keys that identify the kind.
    fn condition_schema(self) -> Json {
        let kind = json!({"const": self.name()});
        let mut condition = json!({"properties": {"kind": kind}, "required": ["kind"]});
        if let Some(scope) = self.rule_scope() {
            condition["properties"]["for"] = json!({"const": scope.document_kind()});
        }
        if self.rule_scope() == Some(Scope::Group) {
            condition["required"] = json!(["kind", "for"]);
        }
        condition
    }
}

/// The reason why the schema refuses `value` for the field `name` of a section of `kind`; `None` if
/// the schema accepts the value.
pub fn find_refusal(kind: Section, name: &str, value: &Json) -> Option<String> {
    let fields = Object::from_iter([(name.to_owned(), value.clone())]);
    let section = match kind.shape {
        Shape::List => Json::Array(vec![fields.into()]),
        Shape::Switch => value.clone(),
        Shape::Container | Shape::Mapping => fields.into(),
    };
    let first_error = section_validator(kind).iter_errors(&section).next();
    first_error.map(|error| error.masked_with("the value").to_string())
}

/// The schema of any manifest, for editors.
pub fn manifest_schema() -> Json {
    let documents = DocumentKind::ALL.map(|kind| {
        let mut schema = kind.schema();
        // Documents of one scope share the schemas of sections, so these schemas are in `$defs`.
        let sections =
            kind.scope().map(|scope| container::section_schemas(scope, SchemaUse::Editing));
        for name in sections.iter().flat_map(|sections| sections.keys()) {
            let scope = kind.scope().map_or("", Scope::document_kind);
            schema["properties"][name] = json!({"$ref": format!("#/$defs/{scope}/{name}")});
        }
        json!({"if": kind.condition_schema(), "then": schema})
    });
    let sections = Scope::ALL.map(|scope| {
        let schemas = container::section_schemas(scope, SchemaUse::Editing);
        (scope.document_kind().to_owned(), schemas.into())
    });
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "undrift manifest",
        "description": "A document of a manifest: what it declares depends on its `kind`.",
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string", "enum": DocumentKind::names(), "description": KIND_DESCRIPTION}},
        "allOf": documents,
        "$defs": sections.into_iter().collect::<Object>(),
    });
    published_schema("manifest", schema)
}

/// Two schemas: one for the keys of any document except `Acknowledge`, and one for the keys of any
/// entry and the forms that may replace a value.
pub fn shared_schemas() -> [Json; 2] {
    let mut keys = json!({"properties": container::layering_key_schemas(SchemaUse::Checking)});
    keys["properties"]["ignore_layers"] = container::ignore_layers_schema(&[]);
    keys["properties"]["unlisted"] = container::unlisted_schema(Scope::Group);
    [keys, container::value_keys_schema()]
}

/// The description of the key `kind`.
const KIND_DESCRIPTION: &str = "What the document declares.";

/// The schema of `undrift.yaml`, for editors.
pub fn config_schema() -> Json {
    type_schema::<Config>("undrift", "undrift configuration")
}

/// The schema of a description file, for editors.
pub fn description_schema() -> Json {
    type_schema::<Kind>("kind", "undrift kind")
}

/// The schema of a file with the content `T`, published under `name`.
fn type_schema<T: JsonSchema>(name: &str, title: &str) -> Json {
    let mut schema = schema::inline_schema::<T>().as_value().clone();
    schema["title"] = json!(title);
    remove_null_defaults(&mut schema);
    published_schema(name, schema)
}

/// The keys of groups, projects and rules that are not sections.
pub(super) fn document_keys() -> Vec<String> {
    let part_properties =
        ["Project", "Group", "Defaults", "Profile", "any"].into_iter().flat_map(document_part);
    let other_keys = ["kind", "unlisted", "ignore_layers"].map(str::to_owned);
    part_properties.map(|(key, _)| key).chain(other_keys).collect()
}

/// Removes `null` as the default of properties, because the value of an optional field must not be
/// `null`.
fn remove_null_defaults(schema: &mut Json) {
    for property in schema.get_mut("properties").into_iter().flat_map(object_values_mut) {
        if property.get("default").is_some_and(Json::is_null) {
            property.as_object_mut().and_then(|property| property.remove("default"));
        }
        remove_null_defaults(property);
        property.get_mut("items").into_iter().for_each(remove_null_defaults);
    }
}

/// A part of a schema, by its name in `documents.yaml`.
fn document_part(name: &str) -> Object {
    static PARTS: LazyLock<Object> = LazyLock::new(|| yaml::built_in!("manifest/schema/documents"));
    PARTS.get(name).and_then(Json::as_object).cloned().unwrap_or_default()
}

/// A root schema without the keys that only a root may have.
fn strip_root_keys(schema: &Json) -> Object {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.remove("$schema");
    schema.remove("title");
    schema
}

/// Adds a property to an object schema.
fn insert_property(schema: &mut Object, name: &str, property: Json) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert(name.to_owned(), property);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{catalogue::words, corpus, text};

    /// The pointer and the text of each fault.
    fn fault_texts<'a>(
        errors: impl Iterator<Item = (String, ValidationError<'a>)>,
    ) -> BTreeSet<(String, String)> {
        errors
            .map(|(pointer, error)| (pointer, error.masked_with("the value").to_string()))
            .collect()
    }

    #[test]
    fn sections_have_the_faults_that_the_whole_schema_finds() {
        let kinds = DocumentKind::ALL.map(|kind| {
            let checker = kind.checker();
            (checker, jsonschema::validator_for(&checker.schema).unwrap())
        });
        let files = corpus::cases().into_iter().flat_map(|case| case.files);
        let manifests = files.filter(|(name, _)| name.ends_with(".yaml"));
        let mut texts: Vec<_> = manifests.map(|(_, text)| text).collect();
        // Also test equal numbers, equal items of a list, and names that are not words.
        texts.push("kind: Project\npath: a/b\nsettings: {topics: [a, a, 1, 1.0], build_timeout: 3600.0, 'ü\"/~': 1e3}".to_owned());
        let (mut faulty_count, mut section_only_count) = (0, 0);
        for text in &texts {
            for document in yaml::parse(text).documents {
                let json = document.to_json();
                for (checker, plain_validator) in &kinds {
                    let errors = plain_validator.iter_errors(&json);
                    let expected =
                        fault_texts(errors.map(|error| (error.instance_path().to_string(), error)));
                    assert_eq!(fault_texts(checker.schema_errors(&json)), expected, "{text}");
                    assert_eq!(checker.is_valid(&json), expected.is_empty(), "{text}");
                    faulty_count += usize::from(!expected.is_empty());
                    let is_in_section =
                        expected.iter().all(|(pointer, _)| pointer.matches('/').count() > 1);
                    section_only_count += usize::from(!expected.is_empty() && is_in_section);
                }
            }
        }
        assert!(
            faulty_count > 1000 && section_only_count > 50,
            "{faulty_count} and {section_only_count}"
        );
    }

    #[test]
    fn built_in_descriptions_match_their_schema() {
        // Descriptions with hooks have rules in Rust, for which the schema has no keys.
        let is_without_hooks = |text: &&&str| !text.contains("\"hooks\":");
        for text in catalogue::description::DESCRIPTION_TEXTS.iter().filter(is_without_hooks) {
            let parsed = crate::yaml::parse(text);
            let document = parsed.documents[0].to_json();
            let errors: Vec<_> = DESCRIPTION_CHECKER.schema_errors(&document).collect();
            assert!(errors.is_empty(), "{errors:?}");
        }
    }

    #[test]
    fn descriptions_must_not_have_keys_of_built_in_kinds() {
        let is_valid = |key: &str, value: Json| {
            let mut field =
                json!({"name": "url", "about": "A.", "type": "word", "weakens": "never"});
            field[key] = value;
            let description = json!({
                "section": "toys", "noun": "toy", "about": "A.", "identity": ["url"],
                "removal": "nothing", "fields": [field], "homes": [{"path": "/projects/:id/toys"}],
            });
            DESCRIPTION_CHECKER.validator.is_valid(&description)
        };
        let limit_to_one = |name: &str| json!({name: "..1"});
        assert!(
            is_valid("valid", limit_to_one("size")) && !is_valid("valid", limit_to_one("items"))
        );
        assert!(is_valid("weakens", json!("when_on")) && !is_valid("weakens", json!("shows")));
        assert!(is_valid("type", json!("text")) && !is_valid("type", json!("plain")));
    }

    #[test]
    fn an_alias_means_one_property_and_is_no_name() {
        fn check_aliases(parent_name: &str, depth: usize, schema: &Json) -> usize {
            let mut count = 0;
            let properties = schema.get("properties").or_else(|| schema["items"].get("properties"));
            let list_properties = || properties.and_then(Json::as_object).into_iter().flatten();
            let mut names: BTreeSet<_> = list_properties().map(|(name, _)| name.as_str()).collect();
            for (name, property) in list_properties() {
                count += check_aliases(name, depth + 1, property);
                for alias in words::aliases(property) {
                    assert_eq!(alias, text::snake_case(alias), "{parent_name}.{name}");
                    assert!(names.insert(alias), "{parent_name}: {alias}");
                    let other_meaning = words::find_meaning(&[parent_name], alias);
                    // Check only the fields of sections (depth 1). At the top of a document (depth
                    // 0), a meaning for one kind of document takes precedence. Deeper, a list may
                    // have the name of a section.
                    assert!(
                        other_meaning.is_none() || depth != 1,
                        "{parent_name}: {alias} is {other_meaning:?}"
                    );
                    count += 1;
                }
            }
            count
        }
        let counts =
            DocumentKind::ALL.map(|kind| check_aliases(kind.name(), 0, &kind.checker().schema));
        assert!(counts.iter().sum::<usize>() > 1_500, "{counts:?}");
    }

    #[test]
    fn every_key_of_a_document_is_a_section_or_listed_as_another_key() {
        let keys = document_keys();
        for kind in DocumentKind::ALL {
            let Some(scope) = kind.scope() else { continue };
            for key in kind.schema()["properties"].as_object().unwrap().keys() {
                let is_section = catalogue::find_section(scope, key).is_some();
                assert_ne!(is_section, keys.contains(key), "{kind:?}: {key}");
            }
        }
    }
}
