//! What a schema refuses, in words that say what to do.

use std::ops::Range;

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};

use super::{Finding, Findings};
use crate::{
    field::{Field, Secrecy},
    kinds::words::{self, Meant},
    manifest::schema::{PLANNED_CONFIG, PLANNED_FIELD, PLANNED_KEYS, PLANNED_WORDS},
    text::{alternatives, is_name, nearest},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The most names that a hint lists.
const MOST_NAMES: usize = 12;

/// Where an error is: in the tree and in the schema.
struct Spot<'d> {
    node: &'d Node,
    /// The key that the value belongs to, or the list that it is in.
    key: Option<&'d Key>,
    is_item: bool,
    depth: usize,
    /// The first key on the way to it; empty at the top.
    section: String,
    schema: &'d Json,
    root: &'d Json,
}

/// Puts `error` into words. Of several at one place only the first is told (`is_new`), except where
/// each tells something else.
pub(super) fn explain(
    error: &ValidationError<'_>,
    document: &Node,
    root: &Json,
    is_new: bool,
    findings: &mut Findings,
) {
    let Some(spot) = locate(error.instance_path().as_str(), document, root) else { return };
    if spot.node.data == Data::Unreadable {
        return;
    }
    if Field::of(spot.schema).secrecy != Secrecy::Open {
        if is_new {
            findings.push(spot.secret());
        }
        return;
    }
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let shown = unexpected.len().min(findings.room());
            for name in &unexpected[..shown] {
                findings.push(spot.unknown(name));
            }
            findings.skip(unexpected.len() - shown);
        }
        Kind::Required { property } => {
            findings.push(spot.missing(property.as_str().unwrap_or_default()));
        }
        _ if !is_new => {}
        Kind::Type { kind } => {
            findings.push(spot.wrong_type(&type_names(kind)));
        }
        Kind::Enum { options } => {
            findings.push(spot.not_among(&strings(options)));
        }
        Kind::Constant { expected_value } => {
            findings.push(spot.not_among(&strings(&Json::Array(vec![(**expected_value).clone()]))));
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => {
            findings.push(spot.no_alternative());
        }
        Kind::Pattern { pattern } => {
            findings.push(spot.pattern(pattern));
        }
        kind => {
            let message =
                spot.limit(kind).unwrap_or_else(|| error.masked_with("the value").to_string());
            let mut finding = Finding::error("value", message, spot.span());
            finding.help_if(spot.description());
            findings.push(finding);
        }
    }
}

/// Follows a JSON pointer through the tree and the schema, up to a secret at most.
fn locate<'d>(pointer: &str, document: &'d Node, root: &'d Json) -> Option<Spot<'d>> {
    let mut spot = Spot {
        node: document,
        key: None,
        is_item: false,
        depth: 0,
        section: String::new(),
        schema: root,
        root,
    };
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        if spot.depth == 0 {
            spot.section.clone_from(&token);
        }
        match &spot.node.data {
            Data::List(items) => {
                spot.node = items.get(token.parse::<usize>().ok()?)?;
                spot.schema = spot.schema.get("items").unwrap_or(&Json::Null);
                spot.is_item = true;
            }
            _ => {
                let (key, value) = spot.node.get(&token)?;
                (spot.node, spot.key, spot.is_item) = (value, Some(key), false);
                spot.schema = spot
                    .schema
                    .pointer(&format!(
                        "/properties/{}",
                        token.replace('~', "~0").replace('/', "~1")
                    ))
                    .unwrap_or(&Json::Null);
            }
        }
        spot.depth += 1;
        if Field::of(spot.schema).secrecy != Secrecy::Open {
            break;
        }
    }
    Some(spot)
}

impl Spot<'_> {
    /// What is pointed at: the value if it fits into a line, else its key or its first key.
    fn span(&self) -> Range<usize> {
        match (&self.node.data, self.key) {
            (Data::Map(entries), _) if self.is_item || self.key.is_none() => {
                entries.first().map_or_else(|| self.node.span.clone(), |(key, _)| key.span.clone())
            }
            (Data::Map(_) | Data::List(_) | Data::Null, Some(key)) if !self.is_item => {
                key.span.clone()
            }
            _ => self.node.span.clone(),
        }
    }

    /// What the value is called.
    fn name(&self) -> String {
        match (self.key, self.is_item) {
            (Some(key), false) => format!("`{}`", key.name),
            (Some(key), true) => format!("an entry of `{}`", key.name),
            (None, _) => "the document".into(),
        }
    }

    fn property_names(&self) -> Vec<&str> {
        names(self.schema)
    }

    /// The first sentence of the description.
    fn description(&self) -> Option<String> {
        first_sentence(self.schema)
    }

    fn secret(&self) -> Finding {
        let name = self.name();
        let form = "`{env: NAME}` or `{file: PATH}`";
        let has_reference_keys =
            self.node.entries().iter().any(|(key, _)| matches!(key.name.as_str(), "env" | "file"));
        let (code, message) = match (Field::of(self.schema).secrecy, &self.node.data) {
            (_, Data::Null) => ("null", format!("{name} is empty")),
            (_, Data::Map(_)) if has_reference_keys => {
                ("reference", format!("{name} is not a well-formed reference to a secret"))
            }
            (Secrecy::Reference, _) => {
                ("reference", format!("{name} must be a reference to a secret"))
            }
            (_, Data::Bool(_) | Data::Number(_)) => ("quote", format!("{name} must be text")),
            _ => ("reference", format!("{name} must be text or a reference to a secret")),
        };
        let help = match code {
            "null" => format!("write `''` for an empty text, or a reference to a secret: {form}"),
            "quote" => "put it in quotes: without them YAML may change it (`1.10` is `1.1`)".into(),
            _ => format!("write exactly one of {form}"),
        };
        let mut finding = Finding::error(
            code,
            message,
            self.key.map_or_else(|| self.span(), |key| key.span.clone()),
        );
        finding.help(help);
        finding
    }

    fn unknown(&self, name: &str) -> Finding {
        let span = self.node.get(name).map_or_else(|| self.span(), |(key, _)| key.span.clone());
        let known = self.property_names();
        let what = if self.depth == 0 && self.key.is_none() { "key" } else { "field" };
        let meant = self.meant(name);
        if meant == Some(Meant::NotYet) {
            return not_supported(format!("`{name}`"), span);
        }
        if !is_name(name) {
            let mut finding = Finding::error("unknown-field", format!("an unknown {what}"), span);
            finding.help("names are made of letters, digits and `_`; check the quotes around it");
            return finding;
        }
        let mut finding = Finding::error("unknown-field", format!("unknown {what} `{name}`"), span);
        // `unlisted` has the sections for its fields, but not all of them.
        let homes = if self.key.is_some_and(|key| key.name == "unlisted") {
            Vec::new()
        } else {
            homes(name, self.root)
        };
        let help = if let Some(meant) = meant {
            meant.help()
        } else if let Some(near) = nearest(name, known.iter().copied()) {
            format!("did you mean `{near}`?")
        } else if !homes.is_empty() {
            format!("`{name}` belongs {}", homes.join(" or "))
        } else if known.len() <= MOST_NAMES && !known.is_empty() {
            format!("it can be {}", alternatives(&known))
        } else if known.contains(&"extra") {
            "a field of the service's that undrift does not know yet may stand below `extra:`"
                .into()
        } else {
            return finding;
        };
        finding.help(help);
        finding
    }

    /// What an unknown key is known to stand for.
    fn meant(&self, name: &str) -> Option<Meant> {
        let is_config = self.root["properties"].get("kind").is_none();
        let is_planned = match self.depth {
            _ if is_config => PLANNED_CONFIG.contains(&(self.section.as_str(), name)),
            0 => PLANNED_KEYS.contains(&name),
            1 if self.section == "unlisted" => PLANNED_KEYS.contains(&name),
            _ => name == PLANNED_FIELD,
        };
        let of_entry =
            self.depth == usize::from(!self.section.is_empty()) + usize::from(self.is_item);
        let known = || words::meant(&self.section, name).filter(|_| of_entry && !is_config);
        if is_planned { Some(Meant::NotYet) } else { known() }
    }

    fn missing(&self, property: &str) -> Finding {
        let (message, label) =
            (format!("`{property}` is missing"), self.is_item.then_some("in this entry"));
        let mut finding = Finding::error("missing", message, self.span());
        finding.help_if(
            self.schema.pointer(&format!("/properties/{property}")).and_then(first_sentence),
        );
        if let Some(label) = label {
            finding.label(label);
        }
        finding
    }

    fn wrong_type(&self, expected: &[&str]) -> Finding {
        let name = self.name();
        let wants = |kind: &str| expected.contains(&kind);
        if self.node.data == Data::Null {
            let help = match (self.depth, wants("array")) {
                _ if self.is_item => "write what it is to be, or take the line away",
                (1, true) => "write `[]` for none, or leave it out: then it is not managed",
                (1, false) => "write what it is to be, or leave it out: then it is not managed",
                _ => "leave it out: then it is not managed; the API has no way to clear it",
            };
            let mut finding = Finding::error("null", format!("{name} is empty"), self.span());
            finding.help(help);
            return finding;
        }
        let words: Vec<_> =
            expected.iter().filter(|kind| **kind != "null").map(|kind| in_words(kind)).collect();
        let message = format!("{name} must be {}", words.join(" or "));
        let (code, help) = match &self.node.data {
            Data::Text(text) if wants("boolean") => match yes_or_no(text) {
                Some(_) if text == "true" || text == "false" => {
                    ("boolean", Some("take the quotes away".into()))
                }
                Some(meant) => (
                    "boolean",
                    Some(format!(
                        "write `{meant}`: in YAML 1.2 only `true` and `false` are booleans"
                    )),
                ),
                None => ("type", self.description()),
            },
            Data::Text(text)
                if (wants("integer") || wants("number")) && text.parse::<f64>().is_ok() =>
            {
                ("type", Some("take the quotes away".into()))
            }
            Data::Number(_) | Data::Bool(_) if wants("string") => (
                "quote",
                Some("put it in quotes: without them YAML may change it (`1.10` is `1.1`)".into()),
            ),
            _ if wants("object") && self.is_item => (
                "type",
                self.property_names()
                    .first()
                    .map(|first| format!("write its fields, as in `- {first}: ...`")),
            ),
            Data::Map(_) if wants("array") => {
                ("type", Some("write a list of entries, each with `- ` in front".into()))
            }
            Data::Text(_) | Data::Number(_) if wants("array") => {
                ("type", Some("write it as a list: `[...]`".into()))
            }
            _ => ("type", self.description()),
        };
        let mut finding = Finding::error(code, message, self.span());
        finding.help_if(help);
        finding
    }

    fn not_among(&self, options: &[String]) -> Finding {
        let key = self.key.map(|key| key.name.as_str()).unwrap_or_default();
        let planned = |(field, word): &(&str, &str)| {
            self.node.text() == Some(*word) && (key == *field || self.section == *field)
        };
        if let Some((_, word)) = PLANNED_WORDS.iter().find(|row| planned(row)) {
            return not_supported(format!("`{key}: {word}`"), self.span());
        }
        let mut finding = Finding::error(
            "choice",
            format!("{} must be {}", self.name(), alternatives(options)),
            self.span(),
        );
        let near =
            self.node.text().and_then(|text| nearest(text, options.iter().map(String::as_str)));
        finding.help_if(
            near.map_or_else(|| self.description(), |near| Some(format!("did you mean `{near}`?"))),
        );
        finding
    }

    /// None of several schemas fits: what each of them wants, as one list.
    fn no_alternative(&self) -> Finding {
        let choices = ["anyOf", "oneOf"]
            .iter()
            .filter_map(|keyword| self.schema.get(keyword)?.as_array())
            .flatten();
        let (mut options, mut types) = (Vec::new(), Vec::new());
        for choice in choices {
            match (choice.get("enum").or_else(|| choice.get("const")), choice["type"].as_str()) {
                // Numbers that stand for the same things as words are accepted, not advertised.
                (Some(Json::Array(words)), _) if words.iter().all(Json::is_string) => {
                    options.extend(strings(&choice["enum"]));
                }
                (Some(_), _) => {}
                (None, Some(kind)) if kind != "null" => types.push(in_words(kind)),
                (None, _) => {}
            }
        }
        if self.node.data == Data::Null || options.is_empty() {
            let mut finding = self.wrong_type(&[]);
            if self.node.data != Data::Null {
                finding.message = format!("{} must be {}", self.name(), types.join(" or "));
            }
            return finding;
        }
        self.not_among(&options)
    }

    fn pattern(&self, pattern: &str) -> Finding {
        let mut finding = Finding::error(
            "pattern",
            format!("{} has a form that is not allowed", self.name()),
            self.span(),
        );
        let example =
            self.schema["examples"][0].as_str().map(|example| format!("for example `{example}`"));
        let help: Vec<_> = self.description().into_iter().chain(example).collect();
        finding.help(if help.is_empty() {
            format!("it has to match `{pattern}`")
        } else {
            help.join("; ")
        });
        finding
    }

    /// A limit that is not kept, as a message.
    fn limit(&self, kind: &Kind) -> Option<String> {
        let name = self.name();
        Some(match kind {
            Kind::Minimum { limit } => format!("{name} must be at least {limit}"),
            Kind::Maximum { limit } => format!("{name} must be at most {limit}"),
            Kind::ExclusiveMinimum { limit } => format!("{name} must be more than {limit}"),
            Kind::ExclusiveMaximum { limit } => format!("{name} must be less than {limit}"),
            Kind::MinLength { limit: 1 }
            | Kind::MinItems { limit: 1 }
            | Kind::MinProperties { limit: 1 } => format!("{name} is empty"),
            Kind::MaxProperties { limit: 1 } => {
                format!("{name} must have only one of {}", alternatives(&self.property_names()))
            }
            Kind::MinLength { limit } => format!("{name} must have at least {limit} characters"),
            Kind::MaxLength { limit } => format!("{name} must have at most {limit} characters"),
            Kind::MinItems { limit } => format!("{name} must have at least {limit} entries"),
            Kind::MaxItems { limit } => format!("{name} must have at most {limit} entries"),
            Kind::UniqueItems => format!("{name} lists something twice"),
            _ => return None,
        })
    }
}

/// Says that `what` is to come.
fn not_supported(what: String, span: Range<usize>) -> Finding {
    let mut finding = Finding::error("not-supported", format!("{what} is not supported yet"), span);
    finding.help("leave it out; this release does not read it");
    finding
}

/// The properties that a schema knows.
fn names(schema: &Json) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Json::as_object)
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect()
}

/// Where else in a document a key is known, as the end of a sentence that starts with "it belongs".
fn homes(name: &str, root: &Json) -> Vec<String> {
    let knows = |schema: &Json| schema["properties"].get(name).is_some();
    let mut homes = Vec::new();
    if knows(root) {
        homes.push("at the top of the document".to_owned());
    }
    for (section, schema) in root["properties"].as_object().into_iter().flatten() {
        if section != "unlisted" && knows(schema) {
            homes.push(format!("below `{section}:`"));
        } else if knows(&schema["items"]) {
            homes.push(format!("in an entry of `{section}`"));
        }
    }
    homes
}

fn first_sentence(schema: &Json) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    let end = text.find(". ").unwrap_or(text.len());
    let sentence = text[..end].trim_end_matches('.').replace('\n', " ");
    let mut characters = sentence.chars();
    // Hints are fragments; a word that is all capitals stays as it is.
    let first = characters.next()?;
    let rest = characters.as_str();
    let lower = rest.starts_with(|c: char| c.is_lowercase() || c == ' ');
    Some(if lower { first.to_lowercase().chain(rest.chars()).collect() } else { sentence })
}

fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    let name = |kind: JsonType| match kind {
        JsonType::Array => "array",
        JsonType::Boolean => "boolean",
        JsonType::Integer => "integer",
        JsonType::Null => "null",
        JsonType::Number => "number",
        JsonType::Object => "object",
        JsonType::String => "string",
    };
    match kind {
        TypeKind::Single(kind) => vec![name(*kind)],
        TypeKind::Multiple(kinds) => kinds.iter().map(name).collect(),
    }
}

fn in_words(kind: &str) -> &'static str {
    match kind {
        "array" => "a list",
        "boolean" => "`true` or `false`",
        "integer" => "a whole number",
        "null" => "`null`",
        "number" => "a number",
        "object" => "a mapping",
        _ => "text",
    }
}

/// What a word that other readers of YAML take for a boolean stands for.
fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "yes" | "y" | "on" | "true" => Some(true),
        "no" | "n" | "off" | "false" => Some(false),
        _ => None,
    }
}

fn strings(options: &Json) -> Vec<String> {
    options.as_array().into_iter().flatten().map(crate::kind::plain_text).collect()
}
