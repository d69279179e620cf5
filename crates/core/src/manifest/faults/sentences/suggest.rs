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
    kind::Section,
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
    /// The data that is written; `fields` is a mapping with something in it.
    is: Vec<&'static str>,
    key: Pattern,
    /// The keys of a mapping, each with a blank behind it.
    keys: Pattern,
    name: Pattern,
    text: Pattern,
    /// What [`Mistake::fill`] must know, and what it must not.
    when: Vec<&'static str>,
    not: Vec<&'static str>,
    /// The code of the fault, if it is not `type`.
    code: Option<&'static str>,
    help: &'static str,
}

static HELPS: LazyLock<BTreeMap<&str, Vec<Row>>> =
    LazyLock::new(|| yaml::built_in!("manifest/faults/helps"));

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
    fn help(&self, of: &Mistake<'_, '_>) -> Option<String> {
        let any = |options: &[&str], fits: &dyn Fn(&str) -> bool| {
            options.is_empty() || options.iter().any(|option| fits(option))
        };
        let at = of.at;
        let keys: Vec<_> =
            at.node.entries().iter().map(|(key, _)| format!("{} ", key.name)).collect();
        let fits = any(&self.want, &|want| of.types.contains(&want))
            && (!self.only || of.types.iter().all(|of| *of == "null" || self.want.contains(of)))
            && any(&self.is, &|data| at.is_data(data))
            && self.key.fits(at.key.map_or("", |key| &key.name))
            && self.keys.fits(&keys.concat().to_lowercase())
            && self.name.fits(of.name)
            && self.text.fits(at.node.text().unwrap_or_default())
            && self.when.iter().all(|fact| of.fill(fact).is_some())
            && !self.not.iter().any(|fact| of.fill(fact).is_some());
        let mut parts = self.help.split('<');
        let mut help = parts.next().filter(|_| fits)?.to_owned();
        for part in parts {
            let (name, rest) = part.split_once('>')?;
            help.push_str(&of.fill(name)?);
            help.push_str(rest);
        }
        Some(help)
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
        self.suggest(list).map(|(_, help)| help)
    }

    /// The code and the help of the first row of `list` that fits.
    pub(super) fn suggest(&self, list: &str) -> Option<(&'static str, String)> {
        HELPS.get(list)?.iter().find_map(|row| Some((row.code.unwrap_or("type"), row.help(self)?)))
    }

    /// What stands for `name` in a row; nothing if there is no such thing here. A fact is an empty text.
    fn fill(&self, name: &str) -> Option<String> {
        let (at, node) = (self.at, self.at.node);
        let (entries, text) = (node.entries(), node.text().unwrap_or_default());
        let fact = |is: bool| is.then(String::new);
        let key = at.key.map_or("", |key| &key.name);
        let field = Field::of(at.schema);
        let first = entries.first();
        match name {
            "item" => fact(at.is_item),
            "top" => fact(at.depth == 1),
            "deep" => fact(at.depth > 3),
            "nested" => fact(at.depth > 1 && !at.is_item && at.key.is_some()),
            "required" => fact(at.is_required()),
            "several" => fact(node.items().len() > 1 || entries.len() > 1),
            "nullable" => fact(field.nullable),
            "expression" => fact(field.is_expression()),
            "date" => fact(at.schema["format"] == "date"),
            "json" => fact(at.description().is_some_and(|about| about.contains("JSON"))),
            "names_user" => fact(at.names() == Some(USERNAME)),
            "identity_of_entry" => fact(at.depth == 3 && at.tells_apart(key)),
            "item_or_identity" => fact(at.is_item || at.tells_apart(key)),
            "takes_star" => fact(at.takes("*")),
            "any_text" => fact(at.schema.get("enum").is_none()),
            "state_only" => fact(has_just(entries, "state")),
            "fields_of_item" => fact(has_all(node, &at.schema["items"])),
            "fields_in_items" => fact(node.items().iter().all(|item| has_all(item, at.schema))),
            "in_braces" => fact(first?.0.span.start != node.span.start),
            "entries_by_name" => fact(at.are_entries(entries)),
            "first_is_field" => fact(at.property_names().contains(&&*first?.0.name)),
            "first_empty" => fact(first?.1.data == Data::Null),
            "all_empty" => fact(entries.iter().all(|(_, value)| value.data == Data::Null)),
            "change_only" => fact(CHANGE.iter().any(|change| has_just(entries, change))),
            "reference_only" => fact(
                ["env", "file"].iter().any(|of| has_just(entries, of)) && first?.1.text().is_some(),
            ),
            "tried" => fact(at.is_reference_tried()),
            "reference" => fact(field.secrecy() == Secrecy::Reference),
            "only_projects" => fact(at.other_home() == Some(Scope::Project)),
            "only_groups" => fact(at.other_home() == Some(Scope::Group)),
            "single" => fact(entries.len() == 1),
            "of_section" => fact(at.is_of_section()),
            "field_of_entry" => {
                let of_entry = &at.root["properties"][&*at.section]["items"]["properties"];
                fact(of_entry.get(self.name).is_some())
            }
            "has_extra" => fact(at.property_names().contains(&"extra")),
            "fields_inside" => {
                let fields = at.current_names();
                let inside = self.inside();
                let is_field = |(key, _): &(Key, Node)| fields.contains(&key.name.as_str());
                fact(!inside.is_empty() && inside.iter().all(is_field))
            }
            "scalar_alias" => {
                let target = at.alias(self.name).and_then(Meaning::field).unwrap_or_default();
                let target = &at.schema["properties"][target];
                fact(target["properties"].is_null() && !crate::kind::is_list(target))
            }

            "key" => Some(key.to_owned()),
            "name" => Some(self.name).filter(|name| is_name(name)).map(str::to_owned),
            "pattern" => Some(self.name.to_owned()),
            "first" => first.map(|(key, _)| key.name.clone()).filter(|name| is_name(name)),
            "description" => at.description(),
            "open" => {
                let open = self.open();
                let is_some = open.iter().any(|name| !words::OF_ENTRIES.contains(name));
                (is_some && open.len() <= MOST_NAMES).then(|| alternatives(&open))
            }
            "names" => at.names().map(str::to_owned),
            "example" => at.example(),
            "entry" => at.entry_example(),
            "mapping" => at.mapping_example(),
            "list" => at.list_example(),
            "identity" => {
                let of = kinds::everywhere().find(|of| of.section == at.section)?;
                let is_missing = |name: &&&str| node.get(name).is_none();
                let identity = of.identity.first().filter(is_missing)?;
                let is_inside = self.inside().iter().any(|(key, _)| key.name == **identity);
                (!is_inside).then(|| (*identity).to_owned())
            }
            "removable" => {
                let of = kinds::everywhere().find(|of| of.section == at.section)?;
                of.is_removable().then(|| of.section.to_owned())
            }
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
                let of = kinds::everywhere().find(|of| of.section == at.section)?;
                let keys = entries.iter().map(|(key, _)| &*key.name);
                let (only, field) = words::by_place(of, keys)?;
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
            "only" => {
                let mut names = at.current_names();
                names.retain(|name| !words::OF_ENTRIES.contains(name));
                let [only] = names[..] else { return None };
                self.open().contains(&only).then(|| only.to_owned())
            }
            "kind" => Some(node.get("kind")?.1.text()?.to_lowercase()),

            "alias_of_none" => Some(at.alias_of("[]")?.help()),
            "alias_of_list" => Some(at.alias_of("[...]")?.help()),
            "none_word" => words::option(&scalar(node)?, ["null"]).map(str::to_owned),
            "switch" => match entries {
                [(_, Node { data: Data::Bool(value), .. })] => Some(value.to_string()),
                _ => None,
            },
            "boolean" => words::option(&scalar(node)?, ["true", "false"]).map(str::to_owned),
            "in_unit" => at.in_unit(node.text()?),
            "digits" => {
                let word = || words::option(text, ["0", "1", "2", "3", "4", "5", "10"]);
                let first = || text.split(' ').next().filter(|_| text.contains(" of "));
                digits(text).or_else(|| word().map(str::to_owned)).or_else(|| digits(first()?))
            }
            "alias_as_object" => at.alias_as_object(),
            "alias_as_list" => {
                let value = scalar(node)?;
                let of_any =
                    || words::alias(&["list"], &value).filter(|_| at.entry_example().is_some());
                Some(at.alias_of(&value).or_else(of_any)?.help())
            }
            "alias_of_key" => entries.iter().find_map(|(name, value)| {
                let alias = words::alias_in(at.schema, &[key, "change", words::ANY], &name.name)?;
                let is_whole = matches!(alias, Meaning::Write(_) | Meaning::Leave(_));
                (is_whole || matches!(value.data, Data::List(_))).then(|| alias.help())
            }),
            "alias_of_first" => {
                let alias = at.alias_of(&first?.0.name)?;
                (!matches!(alias, Meaning::Field(_))).then(|| alias.help())
            }
            "alias_of_word" => {
                let is_manifest = at.root["properties"].get("kind").is_some() && at.depth < 4;
                Some(at.alias_of(&scalar(node).filter(|_| is_manifest)?)?.help())
            }
            "alias_in_row" => {
                let is_manifest = at.root["properties"].get("kind").is_some() && at.depth > 3;
                Some(words::alias(&["row"], &scalar(node).filter(|_| is_manifest)?)?.help())
            }
            "section_of_items" => at.section_of(node.items()).map(str::to_owned),
            "signs" => at.separators().map(|(_, signs)| signs.to_owned()),
            "separated" => {
                let (sign, _) = at.separators()?;
                let examples = at.schema["examples"].as_array().into_iter().flatten();
                let mut examples = examples.filter_map(Json::as_str);
                examples.find(|example| example.contains(sign)).map(str::to_owned)
            }
            "day" => day(&scalar(node).filter(|_| at.schema["format"] == "date")?),
            "inner_text" => {
                let written = first?.1.text().filter(|text| {
                    NAMES.contains(&first.map_or("", |(key, _)| &key.name))
                        && is_name(&text.replace('/', "."))
                });
                let written = written.filter(|_| !may_be_secret(at.schema));
                let example = written.or_else(|| at.schema["examples"][0].as_str());
                Some(example.unwrap_or("...").to_owned())
            }
            "by_rule" => Some(BY_RULE.to_owned()),
            "home_of_text" => {
                let name = text.rsplit(['.', '/']).next()?;
                homes(name, at.root, true).into_iter().next()
            }
            "near" => at
                .option_among(self.options)
                .filter(|near| {
                    // A name that begins with a word is not that word, misspelt.
                    !text.strip_prefix(near).is_some_and(|rest| rest.starts_with(['/', '-']))
                })
                .map(str::to_owned),
            "address" => at.guarded().map(str::to_owned),
            "many" => (self.options.len() > MOST_NAMES).then(|| alternatives(self.options)),
            "with_hash" => Some(format!("#{text}")).filter(|text| at.takes(text)),
            "option" => {
                let option = words::options(text).find(|word| *word != "null" && at.takes(word));
                option.map(|option| quoted(option, false))
            }
            "unwanted" => {
                let is_shown = field.secrecy() == Secrecy::Open && text.len() <= 255;
                unwanted(Some(text).filter(|_| is_shown)?, |text| at.takes(text))
            }
            "stray" => {
                let (_, schema) = at.parent.filter(|_| at.is_reference_tried())?;
                let mut keys = entries.iter().map(|(key, _)| &key.name);
                keys.find(|key| schema["properties"].get(key).is_some()).cloned()
            }
            "reference_near" => match entries {
                [(key, _)] => nearest(&key.name.to_lowercase(), ["env", "file"]).map(str::to_owned),
                _ => None,
            },
            list => self.suggest(list).map(|(_, help)| help),
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
        at.instead(&[kind]).1.filter(|_| is_other && is_open)
    }
}

impl Located<'_> {
    /// The code for a value whose type is none of `types`, and what to write instead.
    pub(super) fn instead(&self, types: &[&str]) -> (&'static str, Option<String>) {
        let mistake = Mistake::of_value(self, types);
        mistake.suggest("type").map_or(("type", None), |(code, help)| (code, Some(help)))
    }

    fn is_data(&self, name: &str) -> bool {
        match &self.node.data {
            Data::Null => name == "null",
            Data::Bool(_) => name == "bool",
            Data::Number(_) => name == "number",
            Data::Text(_) => name == "text",
            Data::List(_) => name == "list",
            Data::Map(inner) => {
                name == "map" || name == "fields" && !inner.is_empty() && self.section != "params"
            }
            Data::Unreadable => false,
        }
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
        let section = self.key.map_or("", |key| &key.name);
        let same = fields.iter().copied().find(|field| *field == name);
        same.or_else(|| words::suggest_field(self.schema, section, name, fields))
    }

    /// The mapping that a word in its place is short for.
    fn alias_as_object(&self) -> Option<String> {
        let text = scalar(self.node)?;
        let word = match &self.node.data {
            Data::Number(_) => "count",
            _ if text.contains("://") => "url",
            _ => &text,
        };
        let name = match self.alias_of(word)? {
            Meaning::Field(name) => name,
            alias => return Some(alias.help()),
        };
        let is_switch = self.schema["properties"][name]["type"] == "boolean";
        let count = digits(&text).map(|_| text.clone()).or(is_switch.then(|| "true".to_owned()));
        Some(match (count, self.entry_example()) {
            (Some(value), _) => format!("write `{{{name}: {value}}}`"),
            (None, Some(entry)) => format!("write its fields, as in `{entry}`"),
            (None, None) => format!("write its fields: `{name}` and others"),
        })
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
        let section = self.key.map_or("", |key| &key.name);
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

/// Whether a mapping has this one key.
fn has_just(entries: &[(Key, Node)], name: &str) -> bool {
    entries.len() == 1 && entries[0].0.name == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_the_tables_can_be_compiled() {
        let rows = HELPS.values().flatten();
        let helps = rows.flat_map(|row| [&row.key, &row.keys, &row.name, &row.text]);
        for pattern in helps.chain(crate::manifest::faults::slips::patterns()) {
            assert!(pattern.is_valid(), "{pattern:?}");
        }
    }
}
