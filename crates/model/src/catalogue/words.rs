//! Words that are often mistaken for fields: names in responses, names in other tools, and
//! attributes of newer releases that undrift does not support yet.
//!
//! A suggestion of the field with the most similar name would often be wrong. For example,
//! `emails_enabled` is the opposite of `emails_disabled`.
//!
//! A word that means exactly one field or section is an alias. The description of the field or
//! section lists its `aliases`, and its schema contains them. All other words are in `words.yaml`.
//! This file is read only if a manifest has a fault.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;
use serde_json::json;

use crate::{field::ALIASES_KEYWORD, kind::Section, text, value::Json, yaml};

/// Keys that every entry of a manifest has.
pub const ENTRY_KEYS: [&str; 2] = ["extra", "state"];

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", bound(deserialize = "'de: 'm"))]
pub enum Meaning<'m> {
    /// The word means this field, with the same value.
    Field(&'m str),
    /// The word means this boolean field, with the opposite value.
    Opposite(&'m str),
    /// The word is the boolean form of this field, whose value is an access level.
    Level(&'m str),
    /// The user must write something in another form, or in another place of the document. The text
    /// is the end of a sentence that starts with "write".
    Write(&'m str),
    /// The key must be omitted. The text is the reason.
    Leave(&'m str),
    /// The word is an attribute that the service has from this release on.
    Since(&'m str),
    /// The word is a value that only responses contain. No request can set it.
    Answer,
    /// The word is a feature that undrift does not manage yet.
    NotYet,
    /// The word is the first key of a document of the tool with this name.
    Foreign(&'m str),
}

use Meaning::{Answer, Field, Foreign, Leave, Level, NotYet, Opposite, Since, Write};

/// The words of one place in `words.yaml`, by the kind of their meaning. If the meaning has a text,
/// the words are also grouped by this text.
type WordsByMeaning = BTreeMap<&'static str, Json>;

/// The meanings of words that are not an alias of a field, by place.
static WORDS: LazyLock<BTreeMap<&str, BTreeMap<&str, Meaning<'_>>>> = LazyLock::new(|| {
    let word_tables: BTreeMap<&str, WordsByMeaning> = yaml::built_in!("catalogue/tables/words");
    let words_by_place = word_tables.into_iter().map(|(place, words_by_meaning)| {
        let word_meanings = words_by_meaning
            .into_iter()
            .flat_map(|(meaning_kind, words)| words_with_meaning(meaning_kind, words));
        (place, word_meanings.collect())
    });
    words_by_place.collect()
});

/// The words with one kind of meaning, each with its meaning.
fn words_with_meaning(meaning_kind: &str, words: Json) -> Vec<(&'static str, Meaning<'static>)> {
    let words_by_text: Vec<_> = match words {
        Json::Object(texts) => {
            texts.into_iter().map(|(text, words)| (json!({meaning_kind: text}), words)).collect()
        }
        words => vec![(json!(meaning_kind), words)],
    };
    let mut word_meanings = Vec::new();
    for (meaning_json, words) in words_by_text {
        if let (Ok(meaning), Ok(words)) =
            (yaml::read_leaked(meaning_json), yaml::read_leaked(words))
        {
            let words: Vec<&'static str> = words;
            word_meanings.extend(words.into_iter().map(|word| (word, meaning)));
        }
    }
    word_meanings
}

/// The key in `words.yaml` for words at the top level of a document.
pub const TOP_LEVEL: &str = "";

/// The key in `words.yaml` for words in any section.
pub const ANY_SECTION: &str = "*";

/// Words that are often used instead of a value, by the correct value.
static MISSPELLED_VALUES: LazyLock<BTreeMap<&str, Vec<&str>>> =
    LazyLock::new(|| yaml::built_in!("catalogue/tables/values"));

/// The option that `word` most likely means.
pub fn find_option<'o>(word: &str, options: impl IntoIterator<Item = &'o str>) -> Option<&'o str> {
    let values: Vec<_> = self::possible_values(word).collect();
    options.into_iter().find(|option| values.contains(option))
}

/// All values that `word` may mean.
pub fn possible_values(word: &str) -> impl Iterator<Item = &'static str> {
    let normal_word = word.trim().to_lowercase().replace(['_', '-'], " ");
    let matching_values =
        MISSPELLED_VALUES.iter().filter(move |(_, words)| words.contains(&&*normal_word));
    matching_values.map(|(option, _)| *option)
}

/// The field that the unknown `word` most likely means. `alias` is the meaning of the word in the
/// tables, and `fields` are the possible fields.
pub fn suggest_field<'k>(
    meaning: Option<Meaning<'_>>,
    word: &str,
    fields: &[&'k str],
) -> Option<&'k str> {
    match meaning.map(Meaning::field) {
        Some(field) => fields.iter().copied().find(|name| Some(*name) == field),
        None => text::likely_candidate(word, fields),
    }
}

/// If an entry has one unknown key and lacks one identity field, returns the key, and the field that
/// the key probably means.
pub fn suggest_by_position<'k>(
    section: Section,
    keys: impl Iterator<Item = &'k str>,
) -> Option<(&'k str, &'static str)> {
    let (fields, unknown_keys): (Vec<_>, Vec<_>) =
        keys.partition(|key| section.spec(key).is_some() || ENTRY_KEYS.contains(key));
    let [unknown_key] = unknown_keys[..] else { return None };
    let required_names = section.table().schema["required"].as_array()?;
    let mut missing_fields = section.identity.iter().copied().filter(|field: &&str| {
        required_names.iter().any(|name| name == field) && !fields.contains(field)
    });
    let field =
        missing_fields.next().filter(|_| missing_fields.next().is_none() && !fields.is_empty())?;
    Some((unknown_key, field))
}

/// The meaning of `word` in the first of `places` that lists it. A place is the key of a section,
/// mapping, entry or value, or the kind of a document.
pub fn find_meaning(places: &[&str], word: &str) -> Option<Meaning<'static>> {
    let snake_word = text::snake_case(word);
    places.iter().find_map(|place: &&str| {
        let meanings = WORDS.get(place)?;
        meanings.get(word).or_else(|| meanings.get(&*snake_word)).copied()
    })
}

/// The aliases in the schema `property` of a field, or in the schema of the entries of a section.
pub fn aliases(property: &Json) -> impl Iterator<Item = &str> {
    let aliases = property.get(ALIASES_KEYWORD).or_else(|| property["items"].get(ALIASES_KEYWORD));
    aliases.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
}

/// The meaning of `word`. The first of `places` is searched first, then the aliases of the
/// properties of `schema`, then the other `places`.
pub fn find_meaning_with_schema<'s>(
    schema: &'s Json,
    places: &[&str],
    word: &str,
) -> Option<Meaning<'s>> {
    let (first_place, other_places) = places.split_at(places.len().min(1));
    find_meaning(first_place, word)
        .or_else(|| find_schema_alias(schema, word))
        .or_else(|| find_meaning(other_places, word))
}

/// The property of `schema` with the alias `word`, as a meaning.
fn find_schema_alias<'s>(schema: &'s Json, word: &str) -> Option<Meaning<'s>> {
    let snake_word = text::snake_case(word);
    let properties = schema.get("properties").or_else(|| schema["items"].get("properties"))?;
    let mut properties = properties.as_object()?.iter();
    let (name, _) = properties.find(|(_, property)| {
        aliases(property).any(|alias| alias == word || alias == snake_word)
    })?;
    Some(Field(name))
}

impl<'m> Meaning<'m> {
    /// The help text for a user who wrote the word.
    pub fn help(self) -> String {
        match self {
            Field(name) => format!("use `{name}`"),
            Opposite(name) => format!("use `{name}` with the opposite value"),
            Level(name) => {
                format!("use `{name}`: `enabled` or `private` for true, `disabled` for false")
            }
            Write(text) => format!("write {text}"),
            Leave(reason) => format!("leave it out: {reason}"),
            Since(release) => format!(
                "it is an attribute of newer releases of the service (about {release} on): write it below `extra:`"
            ),
            Answer => "leave it out: the service sets it, and it cannot be declared".into(),
            NotYet => "leave it out; this release does not read it".into(),
            Foreign(_) => "write `kind: Project`, `path: acme/shop` and sections such as `settings:` at the top of the document".into(),
        }
    }

    /// The field to use instead of the word, if the field is in the same mapping.
    pub fn field(self) -> Option<&'m str> {
        match self {
            Field(name) | Opposite(name) | Level(name) => Some(name),
            Write(text) => text.strip_prefix('`')?.split(['`', ':']).next(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogue, field::Scope, kind::Section};

    fn project_section(name: &str) -> Option<Section> {
        catalogue::find_section(Scope::Project, name)
    }

    #[test]
    fn a_value_is_found_by_its_misspellings() {
        let find =
            |written: &str, options: &[&'static str]| find_option(written, options.iter().copied());
        assert_eq!(find("Fast-Forward", &["merge", "ff"]), Some("ff"));
        assert_eq!(find("no one", &["no_access", "admin"]), Some("no_access"));
        assert_eq!(find("no one", &["merge"]), None);
        for (value, words) in MISSPELLED_VALUES.iter() {
            for word in words {
                assert_eq!(*word, word.to_lowercase().replace(['_', '-'], " "), "{value}");
                assert_ne!(value, word);
            }
        }
    }

    #[test]
    fn a_word_has_one_meaning_per_place() {
        let places: BTreeMap<&str, WordsByMeaning> = yaml::built_in!("catalogue/tables/words");
        let count = |words: &Json| words.as_array().map_or(0, Vec::len);
        for (place, words_by_meaning) in places {
            let word_counts = words_by_meaning.values().map(|words| match words.as_object() {
                Some(texts) => texts.values().map(count).sum(),
                None => count(words),
            });
            assert_eq!(word_counts.sum::<usize>(), WORDS[place].len(), "{place}");
        }
    }

    #[test]
    fn words_are_no_fields_but_name_existing_ones() {
        let tables = WORDS.iter().filter_map(|(section_name, words)| {
            Some((section_name, project_section(section_name)?.table(), words))
        });
        for (section, table, words) in tables {
            for (word, meaning) in words {
                let is_field_named = meaning.field().is_some_and(|name| table.get(name).is_some());
                assert!(
                    table.get(word).is_none() || !is_field_named,
                    "{section}: {word} is a field"
                );
                if let Field(name) | Opposite(name) | Level(name) = meaning {
                    let group_table =
                        catalogue::find_section(Scope::Group, section).map(Section::table);
                    let scope_tables = [Some(table), group_table].into_iter().flatten();
                    assert!(
                        scope_tables.into_iter().any(|table| table.get(name).is_some()),
                        "{section}: {word} means {name}, which is no field"
                    );
                }
            }
        }
        for (word, meaning) in &WORDS[""] {
            let is_resolved = meaning.field().is_none_or(|name| {
                [
                    "ignore_layers",
                    "import_url",
                    "params",
                    "path",
                    "name",
                    "previously",
                    "state",
                    "unlisted",
                    "uses",
                    "watch",
                ]
                .contains(&name)
                    || Scope::ALL
                        .into_iter()
                        .any(|scope| catalogue::find_section(scope, name).is_some())
            });
            let is_everywhere =
                Scope::ALL.into_iter().all(|scope| catalogue::find_section(scope, word).is_some());
            assert!(!is_everywhere && is_resolved, "{word}");
        }
    }
}
