//! Suggests corrections for mistakes. A suggestion is the first row of `helps.yaml` that matches
//! the mistake.
//!
//! Suggestions come from the tables of aliases, from similar names, from other places in a document
//! where the name is allowed, and from examples. `helps.yaml` lists the most certain suggestions
//! first.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    super::slips::Pattern,
    LocatedFault, RULE_HINT, SchemaPosition,
    example::{NAME_KEYS, USERNAME_PHRASE, can_be_quoted, has_only_fields, value_example},
    find_sections,
    guess::has_property,
};
use crate::{
    catalogue::words::{self, Meaning},
    field::{Field, Scope, Secrecy},
    kind::{forms::CONDITION_KEYS, is_list},
    manifest::read::templates::CHANGE_KEYS,
    secret::judge,
    text::{alternatives, looks_like_name},
    value::Json,
    yaml::{self, NodeValue, write::format_scalar as quoted},
};

/// The maximum number of names in a help text.
pub(super) const MAX_LISTED_NAMES: usize = 12;

/// A row of `helps.yaml`: a suggestion and its conditions. An omitted condition always holds.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SuggestionRow {
    /// The field must accept one of these types.
    want: Vec<&'static str>,
    /// True if the field must accept no other type, except `null`.
    only: bool,
    /// The pattern for the written value as JSON. The next three are patterns for the key, for the
    /// subject of the error, and for the text of the value.
    value: Pattern,
    key: Pattern,
    name: Pattern,
    text: Pattern,
    /// The facts that must be true; `not` lists the facts that must be false.
    when: Vec<&'static str>,
    not: Vec<&'static str>,
    /// The code that replaces the usual code of the fault, if there is one.
    code: Option<&'static str>,
    message: Option<&'static str>,
    help: &'static str,
}

static SUGGESTIONS: LazyLock<BTreeMap<&str, Vec<SuggestionRow>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/helps"));

/// A better message and help for a mistake.
struct Suggestion {
    code: Option<&'static str>,
    /// The message that replaces the usual message, and the matched text. If the matched text is a
    /// key in the value, the fault is reported at that key.
    message: Option<(String, String)>,
    help: String,
}

impl SuggestionRow {
    /// The suggestion of this row for a mistake with the value `json`; `None` if the row does not
    /// match.
    fn suggest(&self, position: &SchemaPosition<'_>, json: &str) -> Option<Suggestion> {
        let is_wanted = |type_name: &&str| self.want.contains(type_name);
        let mut other_types = position.allowed_types.iter().filter(|name| !is_wanted(name));
        let matched_text = self.value.find(json)?;
        let is_match = (self.want.is_empty() || position.allowed_types.iter().any(is_wanted))
            && (!self.only || other_types.all(|name| *name == "null"))
            && self.key.is_match(position.key_name())
            && self.name.is_match(position.subject)
            && self.text.is_match(position.node.text().unwrap_or_default())
            && self.when.iter().all(|fact| position.fact_holds(fact))
            && !self.not.iter().any(|fact| position.fact_holds(fact));
        let fill = |text| position.fill_placeholders(text, matched_text);
        let help = is_match.then(|| fill(self.help)).flatten()?;
        let message = self.message.and_then(fill).map(|text| (text, matched_text.to_owned()));
        Some(Suggestion { code: self.code, message, help })
    }
}

/// The help of the first row in the table `table_name` whose pattern matches `text`.
pub(in crate::manifest) fn suggest_for_text(table_name: &str, text: &str) -> Option<&'static str> {
    SUGGESTIONS[table_name].iter().find(|row| row.text.is_match(text)).map(|row| row.help)
}

impl<'d> SchemaPosition<'d> {
    pub(super) fn suggest_help(&self, table_name: &str) -> Option<String> {
        self.find_suggestion(table_name).map(|suggestion| suggestion.help)
    }

    /// The fault with `code` and `message`, and with help from the table `table_name`. The matching
    /// row may replace code and message.
    pub(super) fn build_fault(
        &self,
        table_name: &str,
        code: &'static str,
        message: String,
    ) -> LocatedFault {
        let mut fault = LocatedFault::error(code, message, self.span());
        let Some(suggestion) = self.find_suggestion(table_name) else { return fault };
        fault.code = suggestion.code.unwrap_or(code);
        fault.set_help(suggestion.help);
        if let Some((message, key)) = suggestion.message {
            fault.message = message;
            fault.position =
                self.node.get(&key).map_or(fault.position, |(key, _)| key.span.clone());
        }
        fault
    }

    /// The suggestion of the first row that matches in the table `table_name`.
    fn find_suggestion(&self, table_name: &str) -> Option<Suggestion> {
        let json = self.node.to_json().to_string();
        SUGGESTIONS.get(table_name)?.iter().find_map(|row| row.suggest(self, &json))
    }

    /// Fills the placeholders of `template`; `<found>` becomes `matched_text`. `None` if a
    /// placeholder has no value at this position.
    fn fill_placeholders(&self, template: &str, matched_text: &str) -> Option<String> {
        let mut parts = template.split('<');
        let mut text = parts.next()?.to_owned();
        for part in parts {
            let (name, literal) = part.split_once('>')?;
            text += &match name {
                "found" if judge::may_be_secret(matched_text, Secrecy::Sensitive) => return None,
                "found" => matched_text.to_owned(),
                name => self.placeholder_value(name)?,
            };
            text += literal;
        }
        Some(text)
    }

    /// True if `fact` is true at this position. The name of a placeholder is also a fact: it is
    /// true if the placeholder has a value.
    fn fact_holds(&self, fact: &str) -> bool {
        let node = self.node;
        let (entries, key, field) =
            (node.entries(), self.key_name(), Field::from_schema(self.schema));
        match fact {
            "item" => self.is_list_item,
            "top" => self.depth == 1,
            "deep" => self.depth > 3,
            "nested" => self.depth > 1 && !self.is_list_item && self.key.is_some(),
            "of_section" => self.is_section_or_entry(),
            "param" => self.section == "params",
            "required" => self.is_required(),
            "one" => self.schema[self.subject] == 1,
            "several" => node.items().len() > 1 || entries.len() > 1,
            "single" => entries.len() == 1,
            "nullable" => field.nullable,
            "expression" => field.is_regular_expression(),
            "reference" => field.secrecy() == Secrecy::Reference,
            "date" => self.schema["format"] == "date",
            "json" => self.description().is_some_and(|about| about.contains("JSON")),
            "any_text" => self.schema.get("enum").is_none(),
            "takes_star" => self.accepts("*"),
            "names_user" => self.describe_named_object() == Some(USERNAME_PHRASE),
            "identity_of_entry" => self.depth == 3 && self.is_identity(key),
            "item_or_identity" => self.is_list_item || self.is_identity(key),
            "tried" => self.looks_like_reference(),
            "only_projects" => self.other_scope() == Some(Scope::Project),
            "only_groups" => self.other_scope() == Some(Scope::Group),
            "has_extra" => self.property_names().contains(&"extra"),
            fact => self.value_fact_holds(fact) || self.placeholder_value(fact).is_some(),
        }
    }

    /// True if `fact` is true. The fact concerns the written value, or the value of an unknown key.
    fn value_fact_holds(&self, fact: &str) -> bool {
        let (node, entries) = (self.node, self.node.entries());
        match fact {
            "fields_of_item" => has_only_fields(node, &self.schema["items"]),
            "fields_in_items" => node.items().iter().all(|item| has_only_fields(item, self.schema)),
            "in_braces" => {
                entries.first().is_some_and(|(key, _)| key.span.start != node.span.start)
            }
            "entries_by_name" => {
                // Check only the first field of the identity, because the other fields have
                // defaults.
                let section = find_sections(self.key_name()).next();
                let identity = section.and_then(|kind| kind.identity.first());
                identity.is_some_and(|identity| {
                    entries.iter().all(|(_, entry)| {
                        has_only_fields(entry, &self.schema["items"])
                            && entry.get(identity).is_some()
                    })
                })
            }
            "first_is_field" => {
                entries.first().is_some_and(|(key, _)| self.property_names().contains(&&*key.name))
            }
            "changes" => {
                let has_only_change_keys = node
                    .keys()
                    .all(|name| CHANGE_KEYS.contains(&name) || CONDITION_KEYS.contains(&name));
                is_list(self.schema) && !entries.is_empty() && has_only_change_keys
            }
            "field_of_entry" => {
                let entry_properties =
                    &self.root_schema["properties"][&*self.section]["items"]["properties"];
                entry_properties.get(self.subject).is_some()
            }
            "fields_inside" => {
                let fields = self.suggestable_names();
                let inner_entries = self.inner_entries();
                !inner_entries.is_empty()
                    && inner_entries.iter().all(|(key, _)| fields.contains(&&*key.name))
            }
            "scalar_alias" => {
                let target_field =
                    self.find_alias(self.subject).and_then(Meaning::field).unwrap_or_default();
                let target_schema = &self.schema["properties"][target_field];
                target_schema["properties"].is_null() && !is_list(target_schema)
            }
            _ => false,
        }
    }

    /// The value of the placeholder `name`; `None` if it has no value at this position.
    fn placeholder_value(&self, name: &str) -> Option<String> {
        let node = self.node;
        match name {
            "key" => Some(self.key_name().to_owned()),
            "variable" => Some(self.key_name().to_uppercase()),
            "what" => Some(self.name()),
            "name" => Some(self.subject).filter(|name| looks_like_name(name)).map(str::to_owned),
            "pattern" => Some(self.subject.to_owned()),
            "corrected" => self.correct_text(),
            "limit" => Some(self.schema.get(self.subject)?.to_string()),
            "fields" => Some(alternatives(&self.property_names())),
            "first" => node.keys().next().filter(|name| looks_like_name(name)).map(str::to_owned),
            "kind" => Some(node.get("kind")?.1.text()?.to_lowercase()),
            "description" => self.description(),
            "names" => self.describe_named_object().map(str::to_owned),
            "example" => Some(value_example(self.schema))
                .filter(|example| !["...", "[...]"].contains(&&**example)),
            "entry" => self.entry_example(),
            "mapping" => self.mapping_example(),
            "list" => self.list_example(),
            "alias" => self.explain_alias(),
            "other_scope" => self.explain_other_scope(self.subject),
            "by_rule" => Some(RULE_HINT.to_owned()),
            "section_of_items" => self.guess_section(node.items()).map(str::to_owned),
            "signs" => self.find_separator().map(|(_, signs)| signs.to_owned()),
            "separated" => {
                let (separator, _) = self.find_separator()?;
                let examples = self.schema["examples"].as_array().into_iter().flatten();
                let mut examples = examples.filter_map(Json::as_str);
                examples.find(|example| example.contains(separator)).map(str::to_owned)
            }
            "change" => {
                let keys = node.keys().filter(|_| is_list(self.schema));
                let mut changes = keys.filter_map(|key| words::find_meaning(&["change"], key));
                changes.find_map(Meaning::field).map(str::to_owned)
            }
            "stray" => {
                let (_, schema) = self.parent.filter(|_| self.looks_like_reference())?;
                node.keys().find(|key| has_property(schema, key)).map(str::to_owned)
            }
            name => (self
                .unknown_key_placeholder(name)
                .or_else(|| self.refused_value_placeholder(name)))
            .or_else(|| self.suggest_help(name)),
        }
    }

    /// The written text with the first correction that the field accepts. It is quoted if
    /// necessary.
    fn correct_text(&self) -> Option<String> {
        let text = self.node.scalar_text().filter(|text| can_be_quoted(text))?;
        let spellings = [text.clone(), text.to_lowercase()];
        let mut rows =
            SUGGESTIONS["corrected"].iter().filter(|row| row.key.is_match(self.key_name()));
        let is_date = self.schema["format"] == "date";
        let correction = rows.find_map(|row| {
            let mut corrections =
                spellings.iter().filter_map(|spelling| row.text.replace(spelling, row.help));
            corrections.find(|corrected| {
                *corrected != text
                    && self.accepts(corrected)
                    && (!is_date || corrected.parse::<jiff::civil::Date>().is_ok())
            })
        });
        correction.map(|text| if is_date { text } else { quoted(&text, false) })
    }

    /// Help for a key or value that is an alias.
    fn explain_alias(&self) -> Option<String> {
        if self.unknown_value.is_some() {
            return Some(self.alias_help(self.subject, self.find_alias(self.subject)?));
        }
        let alias = match &self.node.data {
            NodeValue::Map(entries) => entries.iter().find_map(|(key, value)| {
                let places = [self.key_name(), "change", words::ANY_SECTION];
                let alias = words::find_meaning_with_schema(self.schema, &places, &key.name)?;
                let is_name_key = NAME_KEYS.contains(&&*key.name);
                let needs_rewrite =
                    !is_name_key && matches!(alias, Meaning::Write(_) | Meaning::Leave(_));
                (needs_rewrite || matches!(value.data, NodeValue::List(_))).then_some(alias)
            }),
            NodeValue::List(items) if !items.is_empty() => self.find_value_alias("[...]"),
            NodeValue::List(_) | NodeValue::Null => self.find_value_alias("[]"),
            NodeValue::Number(_) if self.allowed_types.contains(&"object") => {
                self.find_value_alias("count")
            }
            NodeValue::Text(text) if text.contains("://") => self.find_value_alias("url"),
            _ => {
                let word = self.node.scalar_text()?;
                let is_list =
                    self.allowed_types.contains(&"array") && self.entry_example().is_some();
                let place = if is_list { "list" } else { "row" };
                (self.find_value_alias(&word).filter(|_| self.depth < 4)).or_else(|| {
                    words::find_meaning(&[place], &word).filter(|_| is_list || self.depth > 3)
                })
            }
        }?;
        match alias {
            Meaning::Field(field) if self.allowed_types.contains(&"object") => {
                self.suggest_field_mapping(field)
            }
            alias => Some(alias.help()),
        }
    }

    /// True if the field at this position accepts `text`.
    pub(super) fn accepts(&self, text: &str) -> bool {
        jsonschema::is_valid(self.schema, &Json::from(text))
    }

    /// True if the value looks like a reference to a secret.
    pub(super) fn looks_like_reference(&self) -> bool {
        self.node.keys().any(|key| ["env", "file"].contains(&&*key.to_lowercase()))
    }

    /// The meaning of `word` as the value of the key at this position, if `word` is an alias.
    pub(super) fn find_value_alias(&self, word: &str) -> Option<Meaning<'_>> {
        words::find_meaning_with_schema(self.schema, &[&self.key?.name], word)
    }

    /// The separator that the description of the field mentions, with its name in the plural.
    fn find_separator(&self) -> Option<(char, &'static str)> {
        let description = self.description()?;
        [(',', "commas"), (' ', "blanks")]
            .into_iter()
            .find(|(_, signs)| description.contains(signs))
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
        let rows = SUGGESTIONS.values().flatten();
        let patterns = rows.flat_map(|row| [&row.value, &row.key, &row.name, &row.text]);
        for pattern in patterns {
            assert!(pattern.is_valid(), "{pattern:?}");
        }
    }
}
