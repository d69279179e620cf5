//! What to write instead of something wrong: the first row of `helps.yaml` that fits.
//!
//! Suggestions come from the tables of words, from names that are nearly the same, from other places of a
//! document that have the name, and from examples. Their order in the file is how sure they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use jiff::civil::Date;
use serde::Deserialize;

use super::{
    super::slips::Pattern,
    BY_RULE, Located,
    example::{NAMES, USERNAME, has_all, scalar, value_example},
};
use crate::{
    field::{Field, Scope, Secrecy},
    kind::{Section, forms::CONDITION, is_list},
    kinds::{
        self,
        words::{self, Meaning},
    },
    manifest::{mask::may_be_secret, read::templates::CHANGE},
    text::{alternatives, is_name, joined, likely, listed, nearest},
    value::Json,
    yaml::{self, Data, Key, Node, write::scalar as quoted},
};

/// The maximum number of names in a help text.
const MOST_NAMES: usize = 12;

/// The most names that a hint offers for one.
const MOST_LIKELY: usize = 4;

/// The maximum number of places for one name in a help text.
const MOST_HOMES: usize = 3;

/// Units in which a field counts, and how many of them are in others, by how these begin.
const UNITS: [(&str, &[(&str, f64)]); 5] = [
    ("in seconds", &[("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)]),
    ("in minutes", &[("m", 1.0), ("h", 60.0), ("d", 1440.0)]),
    ("in hours", &[("h", 1.0), ("d", 24.0), ("w", 168.0)]),
    ("in megabytes", &[("m", 1.0), ("g", 1024.0)]),
    ("from 0 to 1", &[("%", 0.01)]),
];

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
    /// The code of the fault, if it is not `type`.
    code: Option<&'static str>,
    message: Option<&'static str>,
    help: &'static str,
}

static HELPS: LazyLock<BTreeMap<&str, Vec<Row>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/helps"));

/// What to say about a mistake.
#[derive(Debug)]
pub(super) struct Suggestion {
    pub(super) code: &'static str,
    /// A better message than the usual one, and the key in the value that it is about.
    pub(super) message: Option<(String, String)>,
    pub(super) help: String,
}

/// Something that is wrong at a place.
#[derive(Clone, Copy)]
pub(super) struct Mistake<'l, 'd> {
    pub(super) at: &'l Located<'d>,
    /// The types that the field takes.
    pub(super) types: &'l [&'l str],
    /// The words that it takes.
    pub(super) options: &'l [String],
    /// A key that is not a field, or the pattern that the text does not have.
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
        Some(Suggestion { code: self.code.unwrap_or("type"), message, help })
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

    /// The surest of the suggestions in `list`: the first that fits.
    pub(super) fn suggest(&self, list: &str) -> Option<Suggestion> {
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

    /// Words for a key that its mapping does not have.
    fn word_for_key(&self, name: &str) -> Option<String> {
        let (at, node) = (self.at, self.at.node);
        let section = || kinds::everywhere().find(|of| of.section == at.section);
        match name {
            "open" => {
                let open = self.open();
                let is_some = open.iter().any(|name| !words::OF_ENTRIES.contains(name));
                (is_some && open.len() <= MOST_NAMES).then(|| alternatives(&open))
            }
            "identity" => {
                let is_written = |name: &str, entries: &[(Key, Node)]| {
                    entries.iter().any(|(key, _)| key.name == name)
                };
                let identity = *section()?.identity.first()?;
                let is_missing =
                    ![node.entries(), self.inside()].iter().any(|of| is_written(identity, of));
                is_missing.then(|| identity.to_owned())
            }
            "removable" => section()?.is_removable().then(|| at.section.clone()),
            "dotted" => {
                let (section, field) = self.name.split_once('.')?;
                let is_known = at.current_names().contains(&section);
                is_known.then(|| format!("`{field}` below `{section}:`"))
            }
            "here" => Some(match at.key {
                None => "at the top of the document".to_owned(),
                Some(_) if at.is_item => "in the entry".to_owned(),
                Some(key) => format!("below `{}:`", key.name),
            }),
            "inner_fields" => {
                let fields = at.current_names();
                let inside = self.inside().iter();
                let found = inside.filter_map(|(key, _)| at.field_for(&key.name, &fields));
                let found: Vec<_> = found.collect();
                (!found.is_empty()).then(|| listed(&found))
            }
            "by_place" => {
                let keys = node.entries().iter().map(|(key, _)| &*key.name);
                let (only, field) = words::by_place(section()?, keys)?;
                (only == self.name && self.near().is_none()).then(|| field.to_owned())
            }
            "likely" => {
                let likely = self.likely();
                (1..=MOST_LIKELY).contains(&likely.len()).then(|| alternatives(&likely))
            }
            "shape" => {
                let [only] = self.likely()[..] else { return None };
                self.shape_of(only)
            }
            "homes" => {
                let homes = self.homes();
                (!homes.is_empty()).then(|| homes.join(" or "))
            }
            "setting" => {
                let settings = at.root["properties"]["settings"]["properties"].as_object();
                let settings = settings.filter(|_| at.key.is_none())?;
                nearest(self.name, settings.keys().map(String::as_str)).map(str::to_owned)
            }
            _ => None,
        }
    }

    /// Words for a value that its field does not take.
    fn word_for_value(&self, name: &str) -> Option<String> {
        let (at, node) = (self.at, self.at.node);
        let text = node.text().unwrap_or_default();
        let option = |options: &[&'static str]| {
            words::option(&scalar(node)?, options.iter().copied()).map(str::to_owned)
        };
        match name {
            "none_word" => option(&["null"]),
            "boolean" => option(&["true", "false"]),
            "option" => {
                let option = words::options(text).find(|word| *word != "null" && at.takes(word));
                option.map(|option| quoted(option, false))
            }
            "digits" => {
                let word = || option(&["0", "1", "2", "3", "4", "5", "10"]);
                let first = || text.split(' ').next().filter(|_| text.contains(" of "));
                digits(text).or_else(word).or_else(|| digits(first()?))
            }
            "in_unit" => at.in_unit(node.text()?),
            "day" => day(&scalar(node).filter(|_| at.schema["format"] == "date")?),
            "home_of_text" => {
                let name = text.rsplit(['.', '/']).next()?;
                homes(name, at.root, true).into_iter().next()
            }
            "near" => {
                // A name that begins with a word is not that word, misspelt.
                let goes_on = |near: &str| {
                    text.strip_prefix(near).is_some_and(|rest| rest.starts_with(['/', '-']))
                };
                let near = at.option_among(self.options).filter(|near| !goes_on(near));
                near.map(str::to_owned)
            }
            "address" => at.guarded().map(str::to_owned),
            "many" => (self.options.len() > MOST_NAMES).then(|| alternatives(self.options)),
            "with_hash" => Some(format!("#{text}")).filter(|text| at.takes(text)),
            "unwanted" => {
                let is_open = Field::of(at.schema).secrecy() == Secrecy::Open;
                let is_shown = is_open && text.len() <= 255;
                unwanted(Some(text).filter(|_| is_shown)?, |text| at.takes(text))
            }
            _ => None,
        }
    }

    /// Help for a key, or a value, that is a word for something else.
    fn alias(&self) -> Option<String> {
        let at = self.at;
        if !self.name.is_empty() {
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

impl<'l, 'd: 'l> Mistake<'l, 'd> {
    /// The fields that are not written yet: a hint must not lead to one that is.
    fn open(&self) -> Vec<&'l str> {
        let written = self.at.node.entries().iter().map(|(key, _)| &*key.name);
        let written: BTreeSet<_> = written.collect();
        let mut names = self.at.current_names();
        names.retain(|name| !written.contains(name));
        names
    }

    fn near(&self) -> Option<&'l str> {
        nearest(self.name, self.open())
    }

    fn likely(&self) -> Vec<&'l str> {
        match (self.near(), self.homes().len()) {
            (Some(near), _) => vec![near],
            (None, 1 | 2) => Vec::new(),
            (None, _) => likely(self.name, &self.open()),
        }
    }

    /// Other places of the document that have the name.
    fn homes(&self) -> Vec<String> {
        let at = self.at;
        // `unlisted` and `match` are no sections, although they have fields of such names. A field of an
        // entry that is none there never means a field elsewhere.
        let is_section = at.key.is_none_or(|key| !["unlisted", "match"].contains(&&*key.name));
        if !is_section || at.is_item {
            return Vec::new();
        }
        let is_of_itself = |of: Section| of.section == at.section && of.is_in_object();
        homes(self.name, at.root, at.depth > 0 && !kinds::everywhere().any(is_of_itself))
    }

    /// The mapping that is written below the name.
    fn inside(&self) -> &'d [(Key, Node)] {
        self.value.map_or(&[], Node::entries)
    }

    /// How the list that is written must be written for `field`, which takes none.
    fn shape_of(&self, field: &str) -> Option<String> {
        let (key, node) = self.at.node.get(self.name)?;
        let at = self.at.at(key, node, field);
        let kind = at.schema["type"].as_str()?;
        let is_other = matches!(node.data, Data::List(_)) && kind != "array";
        let is_open = Field::of(at.schema).secrecy() == Secrecy::Open;
        at.instead(&[kind]).filter(|_| is_other && is_open).map(|found| found.help)
    }
}

impl Located<'_> {
    /// What to write in place of a value whose type is none of `types`.
    pub(super) fn instead(&self, types: &[&str]) -> Option<Suggestion> {
        Mistake::of_value(self, types).suggest("type")
    }

    /// Whether its field takes `text`.
    fn takes(&self, text: &str) -> bool {
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

    /// The one of `fields` that `name` is or stands for.
    fn field_for<'k>(&self, name: &str, fields: &[&'k str]) -> Option<&'k str> {
        let section = self.key_name();
        let same = fields.iter().copied().find(|field| *field == name);
        same.or_else(|| words::suggest_field(self.schema, section, name, fields))
    }

    /// The mapping for which a word in its place stands, with the one `field` that the word is about.
    fn as_field(&self, field: &str) -> Option<String> {
        let is_switch = self.schema["properties"][field]["type"] == "boolean";
        let value = if is_switch { "true".to_owned() } else { digits(&scalar(self.node)?)? };
        Some(format!("write `{{{field}: {value}}}`"))
    }

    /// The number for one that is written with other units, as in `1h 30m`, and the unit of the field.
    fn in_unit(&self, text: &str) -> Option<String> {
        let about = self.schema["description"].as_str()?;
        let (base, units) = UNITS.iter().find(|(base, _)| about.contains(base))?;
        let (mut rest, mut sum) = (text.trim(), 0.0);
        while !rest.is_empty() {
            let is_unit = |c: char| !c.is_ascii_digit() && c != '.';
            let (count, unit) = rest.split_at(rest.find(is_unit)?);
            let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
            let unit_name = unit[..end].trim().to_lowercase();
            let is_word = !unit_name.contains(' ') && !unit_name.starts_with("mo");
            let mut named = units.iter().filter(|(name, _)| is_word && unit_name.starts_with(name));
            sum += count.parse::<f64>().ok()? * named.next()?.1;
            rest = &unit[end..];
        }
        Some(format!("`{sum}`: it is {base}"))
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

    /// The option of its schema that another word stands for, if it takes only some.
    pub(super) fn option(&self) -> Option<String> {
        let alternatives = self.schema["anyOf"].as_array().into_iter().flatten();
        let options = alternatives.chain([self.schema]).flat_map(|one| strings(&one["enum"]));
        let mut options: Vec<_> = options.collect();
        if self.schema["type"] == "boolean" {
            options = ["true", "false"].map(str::to_owned).to_vec();
        }
        let written = scalar(self.node)?;
        self.option_among(&options).filter(|_| !options.contains(&written)).map(str::to_owned)
    }

    /// The one of `options` that another word stands for.
    fn option_among<'o>(&self, options: &'o [String]) -> Option<&'o str> {
        let written = scalar(self.node)?;
        let all = || options.iter().map(String::as_str);
        let level = || all().find(|option| super::example::level(&written) == Some(option));
        let begins = || all().find(|option| written.split([':', ' ', '(']).next() == Some(option));
        let alias = level().or_else(|| words::option(&written, all())).or_else(begins);
        let is_text = matches!(self.node.data, Data::Text(_));
        alias.or_else(|| nearest(&written, all()).filter(|_| is_text))
    }
}

/// Other places of a document where a key is known, as the end of a sentence that starts with "it
/// belongs": no other entries for what `is_within` one.
fn homes(name: &str, root: &Json, is_within: bool) -> Vec<String> {
    let has = |schema: &Json| schema["properties"].get(name).is_some();
    // Entries may have a field of the same name, which is meant less often.
    if has(root) {
        return vec!["at the top of the document".to_owned()];
    }
    let mut homes = Vec::new();
    for (section, schema) in root["properties"].as_object().into_iter().flatten() {
        if section != "unlisted" && has(schema) {
            homes.push(format!("below `{section}:`"));
        } else if has(&schema["items"]) && !is_within {
            homes.push(format!("in an entry of `{section}`"));
        }
    }
    // Most fields are settings, and most names that sections share mean those.
    if let Some(settings) = homes.iter().position(|home| home.contains("`settings:`")) {
        homes = vec![homes.swap_remove(settings)];
    }
    if homes.len() > MOST_HOMES {
        homes.truncate(MOST_HOMES);
        homes.push("elsewhere".to_owned());
    }
    homes
}

/// The characters of `text` that a field accepts nowhere, if `takes` accepts the text without them.
fn unwanted(text: &str, takes: impl Fn(&str) -> bool) -> Option<String> {
    let characters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    let mut unwanted: Vec<_> = characters.collect();
    unwanted.sort_unstable();
    unwanted.dedup();
    unwanted.retain(|c| !takes(c) && !takes(&format!("a{c}a")) && !takes(&format!("1{c}1")));
    let rest = unwanted.iter().fold(text.to_owned(), |rest, c| rest.replace(c, ""));
    // With more of them, something else is wrong.
    ((1..=3).contains(&unwanted.len()) && takes(&rest)).then_some(())?;
    let named = |c: &&str| if *c == " " { "blanks".to_owned() } else { alternatives(&[c]) };
    Some(joined(&unwanted.iter().map(named).collect::<Vec<_>>()))
}

/// A day that is written in another form, if it can be only one.
fn day(text: &str) -> Option<String> {
    let parts = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let (year, month, day) = match parts[..] {
        [year, month, day, ..] if year.len() == 4 => (year, month, day),
        [all] if all.len() == 8 => (&all[..4], &all[4..6], &all[6..]),
        [day, month, year] if year.len() == 4 && text.contains('.') => (year, month, day),
        _ => return None,
    };
    let date = Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
    Some(date.to_string())
}

/// The digits of a number that is written with something in between.
fn digits(text: &str) -> Option<String> {
    let digits = text.replace(['_', ',', '\'', ' '], "");
    digits.chars().all(|c| c.is_ascii_digit()).then_some(digits).filter(|digits| !digits.is_empty())
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
