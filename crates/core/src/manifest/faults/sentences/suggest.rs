//! What to write instead of something wrong: the first row of `helps.yaml` that fits.
//!
//! Suggestions come from the tables of words, from names that are nearly the same, from other places of a
//! document that have the name, and from examples. Their order in the file is how sure they are.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    super::slips::Pattern,
    BY_RULE, Finding, Located,
    example::{NAMES, USERNAME, has_all, scalar, value_example},
};
use crate::{
    field::{Field, Scope, Secrecy},
    kind::{forms::CONDITION, is_list},
    kinds::{
        self,
        words::{self, Meaning},
    },
    manifest::{mask::may_be_secret, read::templates::CHANGE},
    text::{alternatives, is_name, nearest},
    value::Json,
    yaml::{self, Data, Key, Node},
};

/// The maximum number of names in a help text.
pub(super) const MOST_NAMES: usize = 12;

/// A suggestion, and when it fits. What is left out fits always.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Row {
    /// The types of which the field takes one.
    want: Vec<&'static str>,
    /// Whether it takes nothing else, except `null`.
    only: bool,
    /// What is written, as JSON.
    value: Pattern,
    key: Pattern,
    name: Pattern,
    text: Pattern,
    /// The facts that must hold, and those that must not.
    when: Vec<&'static str>,
    not: Vec<&'static str>,
    /// The code of the fault, if it is not the usual one.
    code: Option<&'static str>,
    message: Option<&'static str>,
    help: &'static str,
}

static HELPS: LazyLock<BTreeMap<&str, Vec<Row>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/helps"));

/// What to say about a mistake.
struct Suggestion {
    code: Option<&'static str>,
    /// A better message than the usual one, and the key in the value that it is about.
    message: Option<(String, String)>,
    help: String,
}

/// Something that is wrong at a place.
#[derive(Clone, Copy)]
pub(super) struct Mistake<'l, 'd> {
    pub(super) at: &'l Located<'d>,
    /// The types that the field takes.
    pub(super) types: &'l [&'l str],
    /// The words that it takes.
    pub(super) options: &'l [String],
    /// A key that is not a field, the pattern that the text does not have, or another keyword of the schema.
    pub(super) name: &'l str,
    /// What is written below the key.
    pub(super) value: Option<&'d Node>,
}

impl Row {
    /// What it suggests for a mistake with the value `json`, if it fits.
    fn suggest(&self, of: &Mistake<'_, '_>, json: &str) -> Option<Suggestion> {
        let at = of.at;
        let is_wanted = |kind: &&str| self.want.contains(kind);
        let found = self.value.find(json)?;
        let fits = (self.want.is_empty() || of.types.iter().any(is_wanted))
            && (!self.only || of.types.iter().all(|kind| *kind == "null" || is_wanted(kind)))
            && self.key.fits(at.key_name())
            && self.name.fits(of.name)
            && self.text.fits(at.node.text().unwrap_or_default())
            && self.when.iter().all(|fact| of.is(fact))
            && !self.not.iter().any(|fact| of.is(fact));
        let filled = |template: &str| {
            let mut parts = template.split('<');
            let mut text = parts.next()?.to_owned();
            for part in parts {
                let (name, rest) = part.split_once('>')?;
                text.push_str(&if name == "found" { found.to_owned() } else { of.word(name)? });
                text.push_str(rest);
            }
            Some(text)
        };
        let help = fits.then(|| filled(self.help)).flatten()?;
        let message = self.message.and_then(filled).map(|message| (message, found.to_owned()));
        Some(Suggestion { code: self.code, message, help })
    }
}

impl<'l, 'd> Mistake<'l, 'd> {
    /// The key `name` at a mapping.
    pub(super) fn of_key(at: &'l Located<'d>, name: &'l str) -> Self {
        let value = at.node.get(name).map(|(_, value)| value);
        Self { value, name, ..Self::of_value(at, &[]) }
    }

    /// A value where one of `types` should be.
    pub(super) const fn of_value(at: &'l Located<'d>, types: &'l [&'l str]) -> Self {
        Self { at, types, options: &[], name: "", value: None }
    }

    pub(super) fn help(&self, list: &str) -> Option<String> {
        self.suggest(list).map(|found| found.help)
    }

    /// The fault with `code` and `message`, unless those of the surest suggestion in `list` are better.
    pub(super) fn fault(&self, list: &str, code: &'static str, message: String) -> Finding {
        let fault = Finding::error(code, message, self.at.span());
        let Some(Suggestion { code: better, message, help }) = self.suggest(list) else {
            return fault;
        };
        let mut fault = Finding { code: better.unwrap_or(code), help: Some(help), ..fault };
        if let Some((message, key)) = message {
            fault.message = message;
            fault.at = self.at.node.get(&key).map_or(fault.at, |(key, _)| key.span.clone());
        }
        fault
    }

    /// The surest of the suggestions in `list`: the first that fits.
    fn suggest(&self, list: &str) -> Option<Suggestion> {
        let json = self.at.node.to_json().to_string();
        HELPS.get(list)?.iter().find_map(|row| row.suggest(self, &json))
    }

    /// Whether a fact holds, or there is such a word.
    fn is(&self, fact: &str) -> bool {
        let (at, node) = (self.at, self.at.node);
        let (entries, key, field) = (node.entries(), at.key_name(), Field::of(at.schema));
        match fact {
            "item" => at.is_item,
            "top" => at.depth == 1,
            "deep" => at.depth > 3,
            "nested" => at.depth > 1 && !at.is_item && at.key.is_some(),
            "of_section" => at.is_of_section(),
            "param" => at.section == "params",
            "required" => at.is_required(),
            "one" => at.schema[self.name] == 1,
            "several" => node.items().len() > 1 || entries.len() > 1,
            "single" => entries.len() == 1,
            "nullable" => field.nullable,
            "expression" => field.is_expression(),
            "reference" => field.secrecy() == Secrecy::Reference,
            "date" => at.schema["format"] == "date",
            "json" => at.description().is_some_and(|about| about.contains("JSON")),
            "any_text" => at.schema.get("enum").is_none(),
            "takes_star" => at.takes("*"),
            "names_user" => at.names() == Some(USERNAME),
            "identity_of_entry" => at.depth == 3 && at.tells_apart(key),
            "item_or_identity" => at.is_item || at.tells_apart(key),
            "fields_of_item" => has_all(node, &at.schema["items"]),
            "fields_in_items" => node.items().iter().all(|item| has_all(item, at.schema)),
            "in_braces" => {
                entries.first().is_some_and(|(key, _)| key.span.start != node.span.start)
            }
            "entries_by_name" => at.are_entries(entries),
            "first_is_field" => {
                entries.first().is_some_and(|(key, _)| at.property_names().contains(&&*key.name))
            }
            "changes" => {
                let is_change = |name: &str| CHANGE.contains(&name) || CONDITION.contains(&name);
                let is_all = entries.iter().all(|(key, _)| is_change(&key.name));
                is_list(at.schema) && !entries.is_empty() && is_all
            }
            "tried" => at.is_reference_tried(),
            "only_projects" => at.other_home() == Some(Scope::Project),
            "only_groups" => at.other_home() == Some(Scope::Group),
            "has_extra" => at.property_names().contains(&"extra"),
            "field_of_entry" => {
                let of_entry = &at.root["properties"][&*at.section]["items"]["properties"];
                of_entry.get(self.name).is_some()
            }
            "fields_inside" => {
                let fields = at.current_names();
                let inside = self.inside();
                !inside.is_empty() && inside.iter().all(|(key, _)| fields.contains(&&*key.name))
            }
            "scalar_alias" => {
                let target = at.alias(self.name).and_then(Meaning::field).unwrap_or_default();
                let target = &at.schema["properties"][target];
                target["properties"].is_null() && !is_list(target)
            }
            word => self.word(word).is_some(),
        }
    }

    /// What `name` stands for in a suggestion; nothing if there is no such thing here.
    fn word(&self, name: &str) -> Option<String> {
        let (at, node) = (self.at, self.at.node);
        let first = || Some(node.entries().first()?.0.name.clone());
        match name {
            "key" => Some(at.key_name().to_owned()),
            "what" => Some(at.name()),
            "name" => Some(self.name).filter(|name| is_name(name)).map(str::to_owned),
            "pattern" => Some(self.name.to_owned()),
            "limit" => Some(at.schema.get(self.name)?.to_string()),
            "fields" => Some(alternatives(&at.property_names())),
            "first" => first().filter(|name| is_name(name)),
            "kind" => Some(node.get("kind")?.1.text()?.to_lowercase()),
            "description" => at.description(),
            "names" => at.names().map(str::to_owned),
            "example" => at.example(),
            "entry" => at.entry_example(),
            "mapping" => at.mapping_example(),
            "list" => at.list_example(),
            "alias" => self.alias(),
            "other_scope" => at.of_other_scope(self.name),
            "by_rule" => Some(BY_RULE.to_owned()),
            "section_of_items" => at.section_of(node.items()).map(str::to_owned),
            "signs" => at.separators().map(|(_, signs)| signs.to_owned()),
            "separated" => {
                let (sign, _) = at.separators()?;
                let examples = at.schema["examples"].as_array().into_iter().flatten();
                let mut examples = examples.filter_map(Json::as_str);
                examples.find(|example| example.contains(sign)).map(str::to_owned)
            }
            "change" => {
                let names = node.entries().iter().filter(|_| is_list(at.schema));
                let mut changes = names.filter_map(|(key, _)| words::alias(&["change"], &key.name));
                changes.find_map(Meaning::field).map(str::to_owned)
            }
            "inner_text" => {
                let (key, value) = node.entries().first()?;
                let is_shown = |text: &&str| {
                    NAMES.contains(&&*key.name)
                        && is_name(&text.replace('/', "."))
                        && !may_be_secret(at.schema)
                };
                let written = value.text().filter(is_shown);
                let example = written.or_else(|| at.schema["examples"][0].as_str());
                Some(example.unwrap_or("...").to_owned())
            }
            "reference_near" => match node.entries() {
                [(key, _)] => nearest(&key.name.to_lowercase(), ["env", "file"]).map(str::to_owned),
                _ => None,
            },
            "stray" => {
                let (_, schema) = at.parent.filter(|_| at.is_reference_tried())?;
                let mut keys = node.entries().iter().map(|(key, _)| &key.name);
                keys.find(|key| schema["properties"].get(key).is_some()).cloned()
            }
            name => (self.word_for_key(name).or_else(|| self.word_for_value(name)))
                .or_else(|| self.help(name)),
        }
    }

    /// Help for a key, or a value, that is a word for something else.
    fn alias(&self) -> Option<String> {
        let at = self.at;
        if self.value.is_some() {
            return Some(at.as_written(self.name, at.alias(self.name)?));
        }
        let alias = match &at.node.data {
            Data::Map(entries) => entries.iter().find_map(|(name, value)| {
                let places = [at.key_name(), "change", words::ANY];
                let alias = words::alias_in(at.schema, &places, &name.name)?;
                let is_whole = matches!(alias, Meaning::Write(_) | Meaning::Leave(_));
                (is_whole || matches!(value.data, Data::List(_))).then_some(alias)
            }),
            Data::List(items) if !items.is_empty() => at.alias_of("[...]"),
            Data::List(_) | Data::Null => at.alias_of("[]"),
            Data::Number(_) if self.types.contains(&"object") => at.alias_of("count"),
            Data::Text(text) if text.contains("://") => at.alias_of("url"),
            _ => {
                let word = scalar(at.node)?;
                let is_list = self.types.contains(&"array") && at.entry_example().is_some();
                let place = if is_list { "list" } else { "row" };
                let of_any = || words::alias(&[place], &word).filter(|_| is_list || at.depth > 3);
                at.alias_of(&word).filter(|_| at.depth < 4).or_else(of_any)
            }
        }?;
        match alias {
            Meaning::Field(field) if self.types.contains(&"object") => at.as_field(field),
            alias => Some(alias.help()),
        }
    }
}

impl Located<'_> {
    /// What to write in place of a value whose type is none of `types`.
    pub(super) fn instead(&self, types: &[&str]) -> Option<String> {
        Mistake::of_value(self, types).help("type")
    }

    /// Whether its field takes `text`.
    pub(super) fn takes(&self, text: &str) -> bool {
        jsonschema::is_valid(self.schema, &Json::from(text))
    }

    /// Whether it is meant as a reference to a secret.
    pub(super) fn is_reference_tried(&self) -> bool {
        let is_form = |key: &Key| ["env", "file"].contains(&&*key.name.to_lowercase());
        self.node.entries().iter().any(|(key, _)| is_form(key))
    }

    /// The alias that `word` is in the place of its value.
    pub(super) fn alias_of(&self, word: &str) -> Option<Meaning<'_>> {
        words::alias_in(self.schema, &[&self.key?.name], word)
    }

    /// Whether each of these is an entry of the section, with what tells it from others.
    fn are_entries(&self, named: &[(Key, Node)]) -> bool {
        let section = self.key_name();
        let of = kinds::everywhere().find(|of| of.section == section);
        let identity = of.map_or(&[][..], |of| of.identity);
        let is_entry = |entry: &Node| {
            has_all(entry, &self.schema["items"])
                && identity.iter().all(|name| entry.get(name).is_some())
        };
        !identity.is_empty() && !named.is_empty() && named.iter().all(|(_, entry)| is_entry(entry))
    }

    /// The character between the parts of the text, if it has some.
    fn separators(&self) -> Option<(char, &'static str)> {
        let about = self.description()?;
        [(',', "commas"), (' ', "blanks")].into_iter().find(|(_, signs)| about.contains(signs))
    }

    /// What it may hold, if its schema shows that.
    fn example(&self) -> Option<String> {
        Some(value_example(self.schema)).filter(|example| example != "..." && example != "[...]")
    }
}

pub(super) fn strings(options: &Json) -> Vec<String> {
    options.as_array().into_iter().flatten().map(crate::kind::plain_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_the_tables_can_be_compiled() {
        let rows = HELPS.values().flatten();
        let helps = rows.flat_map(|row| [&row.value, &row.key, &row.name, &row.text]);
        for pattern in helps.chain(crate::manifest::faults::slips::patterns()) {
            assert!(pattern.is_valid(), "{pattern:?}");
        }
    }
}
