//! Guesses the meaning of an unknown key, and of a value that its field does not accept.
//!
//! The candidates for an unknown key are the fields that are not written yet. The candidates are
//! compared by aliases, by spelling, and by the fields that an entry still needs. If only a few
//! other parts of a document know the key, the key probably belongs in one of these parts. A
//! refused value may be a synonym, have another unit, or contain characters that the field refuses.

use std::collections::BTreeSet;

use super::{
    SchemaPosition,
    example::{is_switch, parse_level},
    find_sections,
    suggest::{MAX_LISTED_NAMES, option_texts},
};
use crate::{
    catalogue::words,
    field::{Field, Secrecy},
    kind::{Section, is_list},
    text::{alternatives, likely_candidates, list_names, nearest},
    value::Json,
    yaml::{MappingKey, Node, NodeValue, write::format_scalar as quoted},
};

/// The units of fields. Each unit has factors that convert other units to this unit, by the first
/// letter of the other unit's name.
const UNITS: [(&str, &[(&str, f64)]); 5] = [
    ("in seconds", &[("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)]),
    ("in minutes", &[("m", 1.0), ("h", 60.0), ("d", 1440.0)]),
    ("in hours", &[("h", 1.0), ("d", 24.0), ("w", 168.0)]),
    ("in megabytes", &[("m", 1.0), ("g", 1024.0)]),
    ("from 0 to 1", &[("%", 0.01)]),
];

/// Words in the names of switches. The first list has words that forbid something, the second list
/// has words that permit something.
const NEGATION_WORDS: &str =
    "block deny disable disabled disallow forbid no prevent reject without";
const PERMISSION_WORDS: &str = "allow can enable enabled";

/// The maximum number of suggested names for one unknown key.
const MAX_LIKELY_NAMES: usize = 4;

/// The maximum number of places that a help text lists for one name.
const MAX_PLACES: usize = 3;

impl<'d> SchemaPosition<'d> {
    /// The text of the placeholder `name` for an unknown key.
    pub(super) fn unknown_key_placeholder(&self, name: &str) -> Option<String> {
        match name {
            "open" => self.suggest_unwritten(),
            // The written field that has the unknown key as an alias.
            "twin" => {
                let written_field = self.node.keys().find(|name| {
                    words::aliases(&self.schema["properties"][name])
                        .any(|word| word == self.subject)
                });
                written_field.map(str::to_owned)
            }
            "dotted" => {
                let (section, field) = self.subject.split_once('.')?;
                let is_section = self.suggestable_names().contains(&section);
                is_section.then(|| format!("`{field}` below `{section}:`"))
            }
            "here" => Some(match self.key {
                None => "at the top of the document".to_owned(),
                Some(_) if self.is_list_item => "in the entry".to_owned(),
                Some(key) => format!("below `{}:`", key.name),
            }),
            "inner_fields" => {
                let fields = self.suggestable_names();
                let inner_entries = self.inner_entries().iter();
                let guesses =
                    inner_entries.filter_map(|(key, _)| self.guess_field(&key.name, &fields));
                let guesses: Vec<_> = guesses.collect();
                (!guesses.is_empty()).then(|| list_names(&guesses))
            }
            "likely" => {
                let likely_names = self.likely_names();
                (1..=MAX_LIKELY_NAMES)
                    .contains(&likely_names.len())
                    .then(|| alternatives(&likely_names))
            }
            "shape" => {
                let [likely_name] = self.likely_names()[..] else { return None };
                let (key, node) = self.node.get(self.subject)?;
                let position = self.child_position(key, node, likely_name);
                let is_open = Field::from_schema(position.schema).secrecy() == Secrecy::Open;
                position
                    .suggest_correction()
                    .filter(|_| is_open && matches!(node.data, NodeValue::List(_)))
            }
            "opposite" => {
                let [likely_name] = self.likely_names()[..] else { return None };
                let value = self.unknown_value?.to_json().as_bool()?;
                is_opposite(self.subject, likely_name).then(|| format!("{likely_name}: {}", !value))
            }
            "homes" => Some(self.other_places().join(" or ")).filter(|places| !places.is_empty()),
            "setting" => {
                let settings = self.root_schema["properties"]["settings"]["properties"].as_object();
                let settings = settings.filter(|_| self.key.is_none())?;
                nearest(self.subject, settings.keys().map(String::as_str)).map(str::to_owned)
            }
            name => self.section_placeholder(name),
        }
    }

    /// The text of the placeholder `name` that depends on the section.
    fn section_placeholder(&self, name: &str) -> Option<String> {
        let section = find_sections(&self.section).next()?;
        let mut keys = self.node.keys();
        match name {
            "removable" => section.is_removable().then(|| self.section.clone()),
            "identity" => {
                let identity = *section.identity.first()?;
                let mut inner_keys = self.inner_entries().iter().map(|(key, _)| &*key.name);
                let is_written = keys.chain(&mut inner_keys).any(|key| key == identity);
                (!is_written).then(|| identity.to_owned())
            }
            "by_place" => {
                let (unknown_key, field) = words::suggest_by_position(section, &mut keys)?;
                (unknown_key == self.subject && self.nearest_name().is_none())
                    .then(|| field.to_owned())
            }
            _ => None,
        }
    }

    /// The fields that are not written yet. A hint must not suggest a field that is already
    /// written.
    fn unwritten_names(&self) -> Vec<&str> {
        let written_keys: BTreeSet<_> = self.node.keys().collect();
        let mut names = self.suggestable_names();
        names.retain(|name| !written_keys.contains(name));
        names
    }

    /// All fields that are not written yet, if they are few. A single field must accept the value.
    fn suggest_unwritten(&self) -> Option<String> {
        let unwritten_names = self.unwritten_names();
        let has_field = unwritten_names.iter().any(|name| !words::ENTRY_KEYS.contains(name));
        let is_possible = unwritten_names.len() > 1
            || unwritten_names.iter().all(|name| self.accepts_written_value(name));
        (has_field && is_possible && unwritten_names.len() <= MAX_LISTED_NAMES)
            .then(|| alternatives(&unwritten_names))
    }

    fn nearest_name(&self) -> Option<&str> {
        nearest(self.subject, self.unwritten_names())
    }

    fn likely_names(&self) -> Vec<&str> {
        // At the top of a document, fields of entries are ignored.
        let places = self.other_places();
        let nearby_places =
            places.iter().filter(|place| self.depth > 0 || !place.starts_with("in an entry"));
        match (self.nearest_name(), nearby_places.count()) {
            (Some(nearest_name), _) => vec![nearest_name],
            (None, 1 | 2) => Vec::new(),
            (None, _) => {
                let unwritten_names = self.unwritten_names();
                let mut names = likely_candidates(self.subject, &unwritten_names);
                if names.is_empty() {
                    let name = remove_words(self.subject, NEGATION_WORDS);
                    names =
                        likely_candidates(&remove_words(&name, PERMISSION_WORDS), &unwritten_names);
                }
                // At the top of a document, `create_labels` names something else than `create`.
                names.retain(|name| {
                    let extends_name = self.subject.starts_with(&format!("{name}_"));
                    self.accepts_written_value(name) && !(self.depth == 0 && extends_name)
                });
                names
            }
        }
    }

    /// True if `field` may accept the written value. A written list needs a field for a list or a
    /// mapping. A written `true` or `false` needs a switch or an enumeration.
    fn accepts_written_value(&self, field: &str) -> bool {
        let schema = &self.schema["properties"][field];
        match self.unknown_value.map(|value| &value.data) {
            Some(NodeValue::List(_)) => schema["properties"].is_object() || is_list(schema),
            Some(NodeValue::Bool(_)) => is_switch(schema) || schema["enum"].is_array(),
            _ => true,
        }
    }

    /// The other places where the document accepts the key.
    fn other_places(&self) -> Vec<String> {
        // `unlisted` and `match` are not sections, although their keys may have names of sections.
        let is_section = self.key.is_none_or(|key| !["unlisted", "match"].contains(&&*key.name));
        if !is_section {
            return Vec::new();
        }
        // An unknown field of an entry does not belong at another place, unless the field is a
        // whole section that is indented too much.
        let section = &self.root_schema["properties"][self.subject];
        let is_whole_section = is_list(section) || section["properties"].is_object();
        let is_collection = matches!(
            self.unknown_value.map(|value| &value.data),
            Some(NodeValue::List(_) | NodeValue::Map(_))
        );
        if self.is_list_item && !(is_whole_section && is_collection) {
            return Vec::new();
        }
        let is_in_object = find_sections(&self.section).any(Section::is_part_of_container);
        find_key_places(self.subject, self.root_schema, self.depth > 0 && !is_in_object)
    }

    /// The entries of the mapping below the unknown key.
    pub(super) fn inner_entries(&self) -> &'d [(MappingKey, Node)] {
        self.unknown_value.map_or(&[], Node::entries)
    }

    /// The field of `fields` that `name` most likely means: the field with this name or alias, or a
    /// field with a similar name.
    pub(super) fn guess_field<'k>(&self, name: &str, fields: &[&'k str]) -> Option<&'k str> {
        let same_name = fields.iter().copied().find(|field| *field == name);
        same_name.or_else(|| words::suggest_field(self.find_alias(name), name, fields))
    }
}

/// True if mappings with this schema may have the key `name`.
pub(super) fn has_property(schema: &Json, name: &str) -> bool {
    schema["properties"].get(name).is_some()
}

/// The places of a document where the key `name` is known, as the end of a sentence that starts
/// with "it belongs". If `is_in_entry` is true, fields of entries are ignored.
pub(super) fn find_key_places(name: &str, root: &Json, is_in_entry: bool) -> Vec<String> {
    // A key at the top takes precedence over fields of entries with the same name.
    if has_property(root, name) {
        return vec!["at the top of the document".to_owned()];
    }
    let mut places = Vec::new();
    for (section, schema) in root["properties"].as_object().into_iter().flatten() {
        if section != "unlisted" && has_property(schema, name) {
            places.push(format!("below `{section}:`"));
        } else if has_property(&schema["items"], name) && !is_in_entry {
            places.push(format!("in an entry of `{section}`"));
        }
    }
    // `settings` takes precedence: a name that several sections have is usually the name of a
    // setting.
    if let Some(settings_index) = places.iter().position(|place| place.contains("`settings:`")) {
        places = vec![places.swap_remove(settings_index)];
    }
    if places.len() > MAX_PLACES {
        places.truncate(MAX_PLACES);
        places.push("elsewhere".to_owned());
    }
    places
}

impl SchemaPosition<'_> {
    /// The text of the placeholder `name` for a value that its field refuses.
    pub(super) fn refused_value_placeholder(&self, name: &str) -> Option<String> {
        let node = self.node;
        let text = node.text().unwrap_or_default();
        match name {
            "none_word" => self.option_by_synonym(&["null"]),
            "boolean" => self.option_by_synonym(&["true", "false"]),
            "option" => {
                let option =
                    words::possible_values(text).find(|word| *word != "null" && self.accepts(word));
                option.map(|option| quoted(option, false))
            }
            "digits" => (parse_digits(text)
                .or_else(|| self.option_by_synonym(&["0", "1", "2", "3", "4", "5", "10"])))
            .or_else(|| parse_digits(text.split_once(" of ")?.0.split(' ').next()?)),
            "in_unit" => self.convert_units(node.text()?),
            "home_of_text" => {
                let name = text.rsplit(['.', '/']).next()?;
                find_key_places(name, self.root_schema, true).into_iter().next()
            }
            "near" => {
                let similar_option = self.match_option(self.allowed_words)?;
                // `word-x` and `word/x` are other names, not misspellings of `word`.
                let has_suffix = text
                    .strip_prefix(similar_option)
                    .is_some_and(|suffix| suffix.starts_with(['/', '-']));
                (!has_suffix).then(|| similar_option.to_owned())
            }
            "address" => self.address_after_guard().map(str::to_owned),
            "many" => (self.allowed_words.len() > MAX_LISTED_NAMES)
                .then(|| alternatives(self.allowed_words)),
            "namespace" => {
                let (_, path) = self.parent?.0.get("path")?;
                Some(path.text()?.rsplit_once('/')?.0.to_owned())
            }
            _ => None,
        }
    }

    /// The option that has the written word as a synonym.
    fn option_by_synonym(&self, options: &[&'static str]) -> Option<String> {
        words::find_option(&self.node.scalar_text()?, options.iter().copied()).map(str::to_owned)
    }

    /// Help to write a mapping with `field` instead of a single word or number.
    pub(super) fn suggest_field_mapping(&self, field: &str) -> Option<String> {
        let is_switch = is_switch(&self.schema["properties"][field]);
        let value =
            if is_switch { "true".to_owned() } else { parse_digits(&self.node.scalar_text()?)? };
        Some(format!("write `{{{field}: {value}}}`"))
    }

    /// Converts a value with units, as in `1h 30m`, to the unit of the field. Returns a text with
    /// the number and the unit.
    pub(super) fn convert_units(&self, text: &str) -> Option<String> {
        let description = self.schema["description"].as_str()?;
        let mut units = UNITS.iter();
        let (base_unit, units) =
            units.find(|(base, _)| description.contains(base.trim_start_matches("in ")))?;
        let (mut rest_text, mut sum) = (text.trim(), 0.0);
        while !rest_text.is_empty() {
            let (count, unit) =
                rest_text.split_at(rest_text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
            let unit_end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
            let unit_name = unit[..unit_end].trim().to_lowercase();
            let is_word = !unit_name.contains(' ') && !unit_name.starts_with("mo");
            let mut matching_units =
                units.iter().filter(|(name, _)| is_word && unit_name.starts_with(name));
            sum += count.parse::<f64>().ok()? * matching_units.next()?.1;
            rest_text = &unit[unit_end..];
        }
        Some(format!("`{sum}`: it is {base_unit}"))
    }

    /// The option of the field that the written word most likely means. `None` if the word is an
    /// option itself.
    pub(super) fn suggest_option(&self) -> Option<String> {
        let choices = self.schema["anyOf"].as_array().into_iter().flatten();
        let options = choices.chain([self.schema]).flat_map(|schema| option_texts(&schema["enum"]));
        let mut options: Vec<_> = options.collect();
        if is_switch(self.schema) {
            options = ["true", "false"].map(str::to_owned).to_vec();
        }
        let written_word = self.node.scalar_text()?;
        self.match_option(&options).filter(|_| !options.contains(&written_word)).map(str::to_owned)
    }

    /// The option that the written word most likely means.
    fn match_option<'o>(&self, options: &'o [String]) -> Option<&'o str> {
        let written_word = self.node.scalar_text()?;
        let option_words = || options.iter().map(String::as_str);
        let first_word = written_word.split([' ', '+']).next().unwrap_or_default();
        let candidates = [
            parse_level(&written_word),
            words::find_option(&written_word, option_words()),
            parse_level(first_word),
            written_word.split([':', ' ', '(']).next(),
        ];
        let mut candidates = candidates.into_iter().flatten();
        // The unit may be a longer word, as in `30 days`.
        let joined_word = written_word.replace(' ', "");
        let has_unit = |option: &&str| {
            option.starts_with(|c: char| c.is_ascii_digit()) && joined_word.starts_with(option)
        };
        candidates
            .find_map(|candidate| option_words().find(|option| *option == candidate))
            .or_else(|| option_words().find(has_unit))
            .or_else(|| nearest(self.node.text()?, option_words()))
    }
}

/// True if one of two switches forbids something and the other switch permits something.
fn is_opposite(key: &str, field: &str) -> bool {
    has_any_word(key, NEGATION_WORDS) != has_any_word(field, NEGATION_WORDS)
        && (has_any_word(key, NEGATION_WORDS) || has_any_word(key, PERMISSION_WORDS))
}

/// True if a name has one of these words.
fn has_any_word(name: &str, words: &str) -> bool {
    name.split('_').any(|word| words.split(' ').any(|other| other == word))
}

/// A name without these words.
fn remove_words(name: &str, words: &str) -> String {
    let kept_words = name.split('_').filter(|word| !words.split(' ').any(|other| other == *word));
    kept_words.collect::<Vec<_>>().join("_")
}

/// The digits of a number that is written with separators, as in `1_000`.
fn parse_digits(text: &str) -> Option<String> {
    let digits = text.replace(['_', ',', '\'', ' '], "");
    digits.chars().all(|c| c.is_ascii_digit()).then_some(digits).filter(|digits| !digits.is_empty())
}
