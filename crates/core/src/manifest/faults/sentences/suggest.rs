//! What to write instead of something wrong: the first row of `helps.yaml` that fits.
//!
//! Suggestions come from the tables of words, from names that are nearly the same, from other places of a
//! document that have the name, and from examples. Their order in the file is how sure they are.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    super::slips::Pattern,
    LocatedFault, RULE_HINT, SchemaPosition,
    example::{NAME_KEYS, USERNAME, can_be_quoted, has_only_fields, scalar_text, value_example},
};
use crate::{
    catalogue::{
        self,
        words::{self, Meaning},
    },
    field::{Field, Scope, Secrecy},
    kind::{forms::CONDITION_KEYS, is_list},
    manifest::read::templates::CHANGE_KEYS,
    secret::judge,
    text::{alternatives, is_name},
    value::Json,
    yaml::{self, NodeValue, write::scalar as quoted},
};

/// The maximum number of names in a help text.
pub(super) const MAX_LISTED_NAMES: usize = 12;

/// A suggestion and its conditions. An omitted condition always holds.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SuggestionRow {
    /// The accepted types of the field.
    want: Vec<&'static str>,
    /// Whether it takes nothing else, except `null`.
    only: bool,
    /// The written value, as JSON.
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

static HELPS: LazyLock<BTreeMap<&str, Vec<SuggestionRow>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/helps"));

/// A better message and help for a mistake.
struct Suggestion {
    code: Option<&'static str>,
    /// A better message than the usual one, and the key in the value that it is about.
    message: Option<(String, String)>,
    help: String,
}

impl SuggestionRow {
    /// The suggestion for a mistake with the value `json`, if the row fits.
    fn suggest(&self, position: &SchemaPosition<'_>, json: &str) -> Option<Suggestion> {
        let is_wanted = |kind: &&str| self.want.contains(kind);
        let matched_text = self.value.find(json)?;
        let is_wanted_type = (self.want.is_empty() || position.types.iter().any(is_wanted))
            && (!self.only || position.types.iter().all(|kind| *kind == "null" || is_wanted(kind)))
            && self.key.fits(position.key_name())
            && self.name.fits(position.subject)
            && self.text.fits(position.node.text().unwrap_or_default())
            && self.when.iter().all(|fact| position.fact_holds(fact))
            && !self.not.iter().any(|fact| position.fact_holds(fact));
        let help = is_wanted_type.then(|| position.fill(self.help, matched_text)).flatten()?;
        let message = self.message.and_then(|message| position.fill(message, matched_text));
        let message = message.map(|message| (message, matched_text.to_owned()));
        Some(Suggestion { code: self.code, message, help })
    }
}

impl<'d> SchemaPosition<'d> {
    pub(super) fn help_from_list(&self, list: &str) -> Option<String> {
        self.suggest(list).map(|found| found.help)
    }

    /// The fault with `code` and `message`, unless those of the surest suggestion in `list` are better.
    pub(super) fn fault(&self, list: &str, code: &'static str, message: String) -> LocatedFault {
        let fault = LocatedFault::error(code, message, self.span());
        let Some(Suggestion { code: suggested_code, message, help }) = self.suggest(list) else {
            return fault;
        };
        let mut fault =
            LocatedFault { code: suggested_code.unwrap_or(code), help: Some(help), ..fault };
        if let Some((message, key)) = message {
            fault.message = message;
            fault.position =
                self.node.get(&key).map_or(fault.position, |(key, _)| key.span.clone());
        }
        fault
    }

    /// The surest of the suggestions in `list`: the first that fits.
    fn suggest(&self, list: &str) -> Option<Suggestion> {
        let json = self.node.to_json().to_string();
        HELPS.get(list)?.iter().find_map(|row| row.suggest(self, &json))
    }

    /// Fills in the words of `template`, and `matched_text` for `<found>`; `None` if a word has no
    /// value here.
    fn fill(&self, template: &str, matched_text: &str) -> Option<String> {
        let mut parts = template.split('<');
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (name, rest) = part.split_once('>')?;
            text += &match name {
                "found" if judge::may_be_secret(matched_text, Secrecy::Sensitive) => return None,
                "found" => matched_text.to_owned(),
                name => self.find_word(name)?,
            };
            text += rest;
        }
        Some(text)
    }

    /// True if a fact holds, or there is such a word.
    fn fact_holds(&self, fact: &str) -> bool {
        let node = self.node;
        let (entries, key, field) =
            (node.entries(), self.key_name(), Field::from_schema(self.schema));
        match fact {
            "item" => self.is_list_item,
            "top" => self.depth == 1,
            "deep" => self.depth > 3,
            "nested" => self.depth > 1 && !self.is_list_item && self.key.is_some(),
            "of_section" => self.is_of_section(),
            "param" => self.section == "params",
            "required" => self.is_required(),
            "one" => self.schema[self.subject] == 1,
            "several" => node.items().len() > 1 || entries.len() > 1,
            "single" => entries.len() == 1,
            "nullable" => field.nullable,
            "expression" => field.is_expression(),
            "reference" => field.secrecy() == Secrecy::Reference,
            "date" => self.schema["format"] == "date",
            "json" => self.description().is_some_and(|about| about.contains("JSON")),
            "any_text" => self.schema.get("enum").is_none(),
            "takes_star" => self.accepts("*"),
            "names_user" => self.describe_named_object() == Some(USERNAME),
            "identity_of_entry" => self.depth == 3 && self.is_identity(key),
            "item_or_identity" => self.is_list_item || self.is_identity(key),
            "tried" => self.is_reference_tried(),
            "only_projects" => self.other_scope() == Some(Scope::Project),
            "only_groups" => self.other_scope() == Some(Scope::Group),
            "has_extra" => self.property_names().contains(&"extra"),
            fact => self.holds_of_value(fact) || self.find_word(fact).is_some(),
        }
    }

    /// True if a fact of the written value, or of the value of an unknown key, holds.
    fn holds_of_value(&self, fact: &str) -> bool {
        let (node, entries) = (self.node, self.node.entries());
        match fact {
            "fields_of_item" => has_only_fields(node, &self.schema["items"]),
            "fields_in_items" => node.items().iter().all(|item| has_only_fields(item, self.schema)),
            "in_braces" => {
                entries.first().is_some_and(|(key, _)| key.span.start != node.span.start)
            }
            "entries_by_name" => {
                let of = catalogue::all_sections().find(|of| of.section == self.key_name());
                // The other fields that tell entries apart have defaults.
                let first = of.and_then(|of| of.identity.first());
                first.is_some_and(|first| {
                    entries.iter().all(|(_, entry)| {
                        has_only_fields(entry, &self.schema["items"]) && entry.get(first).is_some()
                    })
                })
            }
            "first_is_field" => {
                entries.first().is_some_and(|(key, _)| self.property_names().contains(&&*key.name))
            }
            "changes" => {
                let mut names = entries.iter().map(|(key, _)| &*key.name);
                let has_only_change_keys =
                    names.all(|name| CHANGE_KEYS.contains(&name) || CONDITION_KEYS.contains(&name));
                is_list(self.schema) && !entries.is_empty() && has_only_change_keys
            }
            "field_of_entry" => {
                let entry_properties =
                    &self.root["properties"][&*self.section]["items"]["properties"];
                entry_properties.get(self.subject).is_some()
            }
            "fields_inside" => {
                let fields = self.current_names();
                let inside = self.inner_entries();
                !inside.is_empty() && inside.iter().all(|(key, _)| fields.contains(&&*key.name))
            }
            "scalar_alias" => {
                let target =
                    self.find_alias(self.subject).and_then(Meaning::field).unwrap_or_default();
                let target = &self.schema["properties"][target];
                target["properties"].is_null() && !is_list(target)
            }
            _ => false,
        }
    }

    /// The text for `name` in a suggestion; nothing if there is no such thing here.
    fn find_word(&self, name: &str) -> Option<String> {
        let node = self.node;
        match name {
            "key" => Some(self.key_name().to_owned()),
            "variable" => Some(self.key_name().to_uppercase()),
            "what" => Some(self.name()),
            "name" => Some(self.subject).filter(|name| is_name(name)).map(str::to_owned),
            "pattern" => Some(self.subject.to_owned()),
            "corrected" => {
                let text = scalar_text(node).filter(|text| can_be_quoted(text))?;
                let spellings = [text.clone(), text.to_lowercase()];
                let mut rows =
                    HELPS["corrected"].iter().filter(|row| row.key.fits(self.key_name()));
                let is_date = self.schema["format"] == "date";
                let corrected = rows.find_map(|row| {
                    let mut corrections = spellings
                        .iter()
                        .filter_map(|spelling| row.text.replace(spelling, row.help));
                    corrections.find(|corrected| {
                        *corrected != text
                            && self.accepts(corrected)
                            && (!is_date || corrected.parse::<jiff::civil::Date>().is_ok())
                    })
                });
                corrected.map(|text| if is_date { text } else { quoted(&text, false) })
            }
            "limit" => Some(self.schema.get(self.subject)?.to_string()),
            "fields" => Some(alternatives(&self.property_names())),
            "first" => Some(node.entries().first()?.0.name.clone()).filter(|name| is_name(name)),
            "kind" => Some(node.get("kind")?.1.text()?.to_lowercase()),
            "description" => self.description(),
            "names" => self.describe_named_object().map(str::to_owned),
            "example" => self.example(),
            "entry" => self.entry_example(),
            "mapping" => self.mapping_example(),
            "list" => self.list_example(),
            "alias" => self.explain_alias(),
            "other_scope" => self.help_for_other_scope(self.subject),
            "by_rule" => Some(RULE_HINT.to_owned()),
            "section_of_items" => self.find_section_of(node.items()).map(str::to_owned),
            "signs" => self.find_separator().map(|(_, signs)| signs.to_owned()),
            "separated" => {
                let (sign, _) = self.find_separator()?;
                let examples = self.schema["examples"].as_array().into_iter().flatten();
                let mut examples = examples.filter_map(Json::as_str);
                examples.find(|example| example.contains(sign)).map(str::to_owned)
            }
            "change" => {
                let names = node.entries().iter().filter(|_| is_list(self.schema));
                let mut changes =
                    names.filter_map(|(key, _)| words::find_alias(&["change"], &key.name));
                changes.find_map(Meaning::field).map(str::to_owned)
            }
            "stray" => {
                let (_, schema) = self.parent.filter(|_| self.is_reference_tried())?;
                let mut keys = node.entries().iter().map(|(key, _)| &key.name);
                keys.find(|key| schema["properties"].get(key).is_some()).cloned()
            }
            name => (self.word_for_key(name).or_else(|| self.word_for_value(name)))
                .or_else(|| self.help_from_list(name)),
        }
    }

    /// Help for a key, or a value, that is a word for something else.
    fn explain_alias(&self) -> Option<String> {
        if self.value.is_some() {
            return Some(self.alias_help(self.subject, self.find_alias(self.subject)?));
        }
        let alias = match &self.node.data {
            NodeValue::Map(entries) => entries.iter().find_map(|(name, value)| {
                let places = [self.key_name(), "change", words::ANY_SECTION];
                let alias = words::find_alias_in(self.schema, &places, &name.name)?;
                let is_text = NAME_KEYS.contains(&&*name.name);
                let is_whole = !is_text && matches!(alias, Meaning::Write(_) | Meaning::Leave(_));
                (is_whole || matches!(value.data, NodeValue::List(_))).then_some(alias)
            }),
            NodeValue::List(items) if !items.is_empty() => self.alias_of("[...]"),
            NodeValue::List(_) | NodeValue::Null => self.alias_of("[]"),
            NodeValue::Number(_) if self.types.contains(&"object") => self.alias_of("count"),
            NodeValue::Text(text) if text.contains("://") => self.alias_of("url"),
            _ => {
                let word = scalar_text(self.node)?;
                let is_list = self.types.contains(&"array") && self.entry_example().is_some();
                let place = if is_list { "list" } else { "row" };
                (self.alias_of(&word).filter(|_| self.depth < 4)).or_else(|| {
                    words::find_alias(&[place], &word).filter(|_| is_list || self.depth > 3)
                })
            }
        }?;
        match alias {
            Meaning::Field(field) if self.types.contains(&"object") => self.write_as_field(field),
            alias => Some(alias.help()),
        }
    }

    /// True if its field takes `text`.
    pub(super) fn accepts(&self, text: &str) -> bool {
        jsonschema::is_valid(self.schema, &Json::from(text))
    }

    /// True if it looks like a reference to a secret.
    pub(super) fn is_reference_tried(&self) -> bool {
        let mut keys = self.node.entries().iter().map(|(key, _)| key.name.to_lowercase());
        keys.any(|key| ["env", "file"].contains(&&*key))
    }

    /// The alias that `word` is in the place of its value.
    pub(super) fn alias_of(&self, word: &str) -> Option<Meaning<'_>> {
        words::find_alias_in(self.schema, &[&self.key?.name], word)
    }

    /// The character between the parts of the text, if it has some.
    fn find_separator(&self) -> Option<(char, &'static str)> {
        let description = self.description()?;
        [(',', "commas"), (' ', "blanks")]
            .into_iter()
            .find(|(_, signs)| description.contains(signs))
    }

    /// An example of its value, if its schema shows one.
    fn example(&self) -> Option<String> {
        Some(value_example(self.schema)).filter(|example| example != "..." && example != "[...]")
    }
}

pub(super) fn option_texts(options: &Json) -> Vec<String> {
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
