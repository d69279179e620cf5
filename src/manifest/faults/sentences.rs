//! Messages for schema errors, with help.

mod example;
mod value;

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

use super::{
    Finding, Findings,
    locate::{Located, first_sentence, locate},
};
use crate::{
    field::{Field, Scope, Secrecy},
    kinds::{
        self,
        words::{self, Meaning},
    },
    level::Level,
    manifest::schema::{PLANNED_FIELD, PLANNED_KEYS},
    text::{alternatives, is_name, likely, nearest},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The maximum number of names in a help text.
const MOST_NAMES: usize = 12;

/// The most names that a hint offers for one.
const MOST_LIKELY: usize = 4;

/// The maximum number of places for one name in a help text.
const MOST_HOMES: usize = 3;

/// The message for `error`. Of several errors at one place only the first is reported (`is_new`),
/// unless each has its own message.
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
            if let Some(foreign) = spot.foreign() {
                findings.push(foreign);
                return;
            }
            let shown = unexpected.len().min(findings.room());
            for name in &unexpected[..shown] {
                findings.push(spot.unknown(name));
            }
            findings.skip(unexpected.len() - shown);
        }
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            if spot.has_another_name_for(property) {
                return;
            }
            let missing = findings.push(missing(property, spot.schema, spot.span()));
            if spot.is_item {
                missing.label("in this entry");
            }
        }
        _ if is_new => drop(findings.push(spot.wrong(error))),
        _ => {}
    }
}

/// A missing required field. `schema` is that of its parent.
pub(in crate::manifest) fn missing<A>(property: &str, schema: &Json, at: A) -> Finding<A> {
    let help = schema["properties"].get(property).and_then(first_sentence);
    Finding::error("missing", format!("`{property}` is missing"), at).with_help(help)
}

impl Located<'_> {
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
        let speaks_of = |words: &[&str]| {
            let entries = self.node.entries().iter();
            let mut names = entries.map(|(key, _)| key.name.to_lowercase());
            names.any(|name| words.iter().any(|word| name.contains(word)))
        };
        let help = match code {
            "null" => format!("write `''` for an empty text, or a reference to a secret: {form}"),
            "quote" => "put it in quotes: without them YAML may change it (`1.10` is `1.1`)".into(),
            _ if speaks_of(&["vault", "sops", "secret", "ssm", "command"]) => format!(
                "write {form}: undrift reads nothing else, so let the job put the secret there"
            ),
            _ if Field::of(self.schema).secrecy == Secrecy::Reference
                || has_reference_keys
                || speaks_of(&["env", "file", "var", "text"]) =>
            {
                format!("write exactly one of {form}")
            }
            _ => format!("put it in quotes if it is text; a secret is exactly one of {form}"),
        };
        let at = self.key.map_or_else(|| self.span(), |key| key.span.clone());
        Finding::error(code, message, at).with_help(Some(help))
    }

    fn unknown(&self, name: &str) -> Finding {
        let span = self.node.get(name).map_or_else(|| self.span(), |(key, _)| key.span.clone());
        let what = if self.depth == 0 && self.key.is_none() { "key" } else { "field" };
        let meant = self.meant(name);
        if let Some(meant @ Meaning::NotYet) = meant {
            let message = format!("`{name}` is not supported yet");
            return Finding::error("not-supported", message, span).with_help(Some(meant.help()));
        }
        if !is_name(name) {
            let help = "names are made of letters, digits and `_`; check the quotes around it";
            return Finding::error("unknown-field", format!("an unknown {what}"), span)
                .with_help(Some(help));
        }
        let help = meant.map(|meant| self.with_level(name, meant.help()));
        let help = help.or_else(|| self.of_other_scope(name));
        let help = help.or_else(|| self.known_instead_of(name));
        Finding::error("unknown-field", format!("unknown {what} `{name}`"), span).with_help(help)
    }

    /// Help for `name`, with the level that was written.
    fn with_level(&self, name: &str, help: String) -> String {
        let written = self.node.get(name).and_then(|(_, value)| {
            let number = || Some(Level::parse(&value.to_json())?.word);
            value.text().and_then(value::level).or_else(number)
        });
        match written {
            Some(level) => {
                help.replace("access_level: maintainer", &format!("access_level: {level}"))
            }
            None => help,
        }
    }

    /// The name of the tool, if the document belongs to another tool.
    fn foreign(&self) -> Option<Finding> {
        let mut entries = self.node.entries().iter();
        entries.find_map(|(key, _)| match self.meant(&key.name) {
            Some(meant @ Meaning::Foreign(tool)) => {
                let message = format!("`{}` is a key of {tool}, not of undrift", key.name);
                let foreign = Finding::error("unknown-field", message, key.span.clone());
                Some(foreign.with_help(Some(meant.help())))
            }
            _ => None,
        })
    }

    /// Whether an unknown name probably means the missing `property`. That is reported once.
    fn has_another_name_for(&self, property: &str) -> bool {
        let known = self.property_names();
        self.node.entries().iter().map(|(key, _)| key.name.as_str()).any(|name| {
            !known.contains(&name)
                && match self.meant(name) {
                    Some(Meaning::Foreign(_)) => true,
                    Some(meant) => meant.field() == Some(property),
                    None => likely(name, &known) == [property],
                }
        })
    }

    /// The scope whose documents have the section `name`, or this field of the section, if it is
    /// not this scope.
    fn of_other_scope(&self, name: &str) -> Option<String> {
        let is_container = self.root["properties"].get("unlisted").is_some();
        let mut everywhere = kinds::everywhere().filter(|_| is_container);
        if self.depth == 0 {
            let other = everywhere.find(|section| section.section == name)?;
            return Some(format!("only a {} has this section", other.home.scope.noun()));
        }
        let other = everywhere
            .find(|of| of.section == self.section && of.table().get(name).is_some())
            .filter(|_| self.is_of_section())?;
        let rule = self.root["properties"].get("for").filter(|_| other.home.scope == Scope::Group);
        let rule = if rule.is_some() { "; write `for: Group` for a rule about groups" } else { "" };
        Some(format!("only a {} has this field{rule}", other.home.scope.noun()))
    }

    /// Whether the position is a section or one of its entries.
    fn is_of_section(&self) -> bool {
        self.depth == usize::from(!self.section.is_empty()) + usize::from(self.is_item)
    }

    /// The known name that an unknown one probably means.
    fn known_instead_of(&self, name: &str) -> Option<String> {
        let known = self.property_names();
        let inner = self.node.get(name).map_or(&[][..], |(_, value)| value.entries());
        if !inner.is_empty() && inner.iter().all(|(key, _)| known.contains(&key.name.as_str())) {
            let place = match self.key {
                None => "at the top of the document".to_owned(),
                Some(_) if self.is_item => "in the entry".to_owned(),
                Some(key) => format!("below `{}:`", key.name),
            };
            return Some(format!("take `{name}:` away: its fields belong directly {place}"));
        }
        if name.starts_with("x-") || name.starts_with('.') {
            return Some("nothing here only holds an anchor: set the anchor where its value is first used, or write a `kind: Profile`".to_owned());
        }
        if self.key.is_some_and(|key| key.name == "unlisted")
            && nearest(name, known.iter().copied()).is_none()
        {
            return Some(
                "only sections that are lists of entries can have unlisted ones".to_owned(),
            );
        }
        if name == "kind" {
            return Some("leave it out: this file is no manifest".to_owned());
        }
        // `unlisted` and `match` are no sections, although they have fields of such names.
        let is_section = |key: &Key| !["unlisted", "match"].contains(&key.name.as_str());
        let homes =
            if self.key.is_none_or(is_section) { homes(name, self.root) } else { Vec::new() };
        let near = nearest(name, known.iter().copied());
        let likely = match (near, homes.len()) {
            (Some(near), _) => vec![near],
            (None, 1) => Vec::new(),
            (None, _) => likely(name, &known),
        };
        if let Some(entry) = self.entry_example().filter(|_| {
            let is_alone = self.is_item && self.node.entries().len() == 1;
            is_alone && likely.is_empty() && homes.is_empty() && self.is_of_section()
        }) {
            Some(format!("write its fields, as in `- {entry}`"))
        } else if (1..=MOST_LIKELY).contains(&likely.len()) {
            Some(format!("did you mean {}?", alternatives(&likely)))
        } else if !homes.is_empty() {
            Some(format!("`{name}` belongs {}", homes.join(" or ")))
        } else if known.len() <= MOST_NAMES && !known.is_empty() {
            Some(format!("it can be {}", alternatives(&known)))
        } else if known.contains(&"extra") {
            Some("if the service has this field and undrift does not know it yet, write it below `extra:`".to_owned())
        } else {
            // The top of a document.
            let kind = self.node.get("kind").and_then(|(_, kind)| kind.text());
            kind.map(|kind| {
                format!("`undrift explain {}` lists what there is", kind.to_lowercase())
            })
        }
    }

    /// The known meaning of an unknown key.
    fn meant(&self, name: &str) -> Option<Meaning> {
        let is_config = self.root["properties"].get("kind").is_none();
        let planned = || PLANNED_KEYS.split(' ').any(|key| key == name);
        let is_planned = match self.depth {
            _ if is_config => false,
            0 => planned(),
            1 if self.section == "unlisted" => planned(),
            _ => name == PLANNED_FIELD,
        };
        let fits = |meant: &Meaning| match meant {
            _ if is_config => false,
            Meaning::Field(name) => self.property_names().contains(name),
            _ => self.is_of_section(),
        };
        let known = || words::meant(&self.section, name).filter(fits);
        if is_planned { Some(Meaning::NotYet) } else { known() }
    }
}

/// Other places of a document where a key is known, as the end of a sentence that starts with "it
/// belongs".
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
    if homes.len() > MOST_HOMES {
        homes.truncate(MOST_HOMES);
        homes.push("elsewhere".to_owned());
    }
    homes
}
