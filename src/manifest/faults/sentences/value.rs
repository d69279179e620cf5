//! Messages for values that a field does not accept.

use jiff::civil::Date;
use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};

use super::{BY_RULE, Finding, Located, example::value_example, homes};
use crate::{
    field::{Field, Named, Scope, Secrecy},
    kind::{Section, forms::CONDITION},
    kinds::{
        self,
        words::{self, Meaning},
    },
    level::{LEVELS, Level},
    manifest::{faults::NO_REFERENCE, mask::may_be_secret, read::templates::CHANGE},
    text::{alternatives, is_name, joined, nearest},
    value::Json,
    yaml::{Data, Key, Node, write::scalar as quoted},
};

/// The level of access that a word or a number in quotes stands for.
pub(super) fn level(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let number = || text.parse::<u8>().ok().and_then(|number| Level::parse(&number.into()));
    let known = Level::parse(&text.into()).or_else(number);
    let words = LEVELS.into_iter().map(|level| level.word).chain(["no_access"]);
    let one = text.trim_end_matches('s');
    let known = known.or_else(|| Level::parse(&one.into()));
    known.map(|level| level.word).or_else(|| words::option(text, words))
}

/// A code, and what to write instead.
type Instead = Option<(&'static str, String)>;

/// Help for a number or a boolean where text should be.
pub(super) const QUOTE: &str =
    "put it in quotes: without them YAML may change it (`1.10` is `1.1`)";

/// What a field holds that names a user.
const USERNAME: &str = "the username";

/// Units in which a field counts, and how many of them are in others, by how these begin.
const UNITS: [(&str, &[(&str, f64)]); 5] = [
    ("in seconds", &[("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)]),
    ("in minutes", &[("m", 1.0), ("h", 60.0), ("d", 1440.0)]),
    ("in hours", &[("h", 1.0), ("d", 24.0), ("w", 168.0)]),
    ("in megabytes", &[("m", 1.0), ("g", 1024.0)]),
    ("from 0 to 1", &[("%", 0.01)]),
];

/// What a name may stand below where only the name should be.
pub(super) const NAMES: [&str; 6] = ["group", "name", "path", "project", "user", "username"];

impl Located<'_> {
    /// The message for a value that its field does not accept.
    pub(super) fn wrong(&self, error: &ValidationError<'_>) -> Finding {
        match error.kind() {
            Kind::Type { kind } => self.wrong_type(&type_names(kind)),
            Kind::Enum { options } => self.not_among(&strings(options)),
            Kind::Constant { expected_value } => {
                self.not_among(&strings(&Json::Array(vec![(**expected_value).clone()])))
            }
            Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } | Kind::OneOfMultipleValid { .. } => {
                self.no_alternative()
            }
            Kind::Pattern { pattern } => self.pattern(pattern),
            kind => {
                let other = || error.masked_with("the value").to_string();
                let message = self.limit(kind).unwrap_or_else(other);
                let none = self.key.filter(|_| self.node.data == Data::List(Vec::new()));
                let none = none.and_then(|_| self.meant_by("[]")).map(Meaning::help);
                let several = matches!(kind, Kind::MaxProperties { limit: 1 }) && self.is_item;
                let several = several.then(|| "write an entry for each of them".to_owned());
                let once = matches!(kind, Kind::UniqueItems).then(|| "write each item once; of two lists, as `at_least` and `none_of`, in one of them".to_owned());
                let help = none.or(several).or(once).or_else(|| self.description());
                Finding::error("value", message, self.span()).with_help(help)
            }
        }
    }

    fn wrong_type(&self, expected: &[&str]) -> Finding {
        let name = self.name();
        if self.node.data == Data::Null {
            let help = match (self.depth, expected.contains(&"array")) {
                _ if self.is_item => "write what it is to be, or take the line away",
                _ if self.is_required() => "write what it is to be",
                (1, true) => {
                    "leave it out: then it is not managed; `[]`, with `delete` below `unlisted:`, removes what is there"
                }
                (1, false) => "write what it is to be, or leave it out: then it is not managed",
                (_, true) => {
                    "write `[]` for an empty list, or leave it out: then it is not managed"
                }
                _ => "leave it out: then it is not managed; the API has no way to clear it",
            };
            let message = format!("{name} is empty");
            let none = self.meant_by("[]").map(Meaning::help);
            let example = self.example().zip(self.key).filter(|_| self.depth > 1 && !self.is_item);
            let value = |(value, key): (String, &Key)| match self.is_required() {
                true => format!("write a value, as in `{}: {value}`", key.name),
                false => format!("write a value, as in `{}: {value}`, or {help}", key.name),
            };
            let help = none.or(example.map(value)).unwrap_or_else(|| help.to_owned());
            return Finding::error("null", message, self.span()).with_help(Some(help));
        }
        if let Some(finding) = self.empty_change() {
            return finding;
        }
        let options = strings(&self.schema["enum"]);
        let is_scalar = matches!(self.node.data, Data::Bool(_) | Data::Number(_));
        if is_scalar && expected == ["string"] && !options.is_empty() {
            return self.not_among(&options);
        }
        let words: Vec<_> =
            expected.iter().filter(|kind| **kind != "null").map(|kind| in_words(kind)).collect();
        let message = format!("{name} must be {}", words.join(" or "));
        let (code, help) = self.instead(expected);
        Finding::error(code, message, self.span()).with_help(help)
    }

    /// Whether a document requires it.
    fn is_required(&self) -> bool {
        let parent = self.parent.map_or(self.root, |(_, schema)| schema);
        let required = parent["required"].as_array().into_iter().flatten();
        self.key.is_some_and(|key| {
            required.clone().any(|name| *name == key.name) || self.tells_apart(&key.name)
        })
    }

    /// The code for a value whose type is not in `expected`, and what to write instead.
    pub(super) fn instead(&self, expected: &[&str]) -> (&'static str, Option<String>) {
        if expected.contains(&"array")
            && let [(key, name)] = self.node.entries()
            && ["env", "file"].contains(&&*key.name)
            && name.text().is_some()
        {
            return ("type", Some(NO_REFERENCE.to_owned()));
        }
        let wants = |kind: &str| expected.contains(&kind);
        let is_none = |word: &String| words::option(word, ["null"]).is_some();
        if wants("null") && scalar(self.node).as_ref().is_some_and(is_none) {
            return ("type", Some("write `null` for none".to_owned()));
        }
        let is_only = |kinds: [&str; 2]| expected.iter().all(|kind| kinds.contains(kind));
        let has_number = wants("integer") || wants("number");
        let boolean = || wants("boolean").then(|| self.boolean(is_only(["boolean", "null"])));
        let number = || has_number.then(|| self.number());
        let object = || wants("object").then(|| self.mapping(is_only(["object", "null"])));
        let array = || wants("array").then(|| self.list());
        let string = || wants("string").then(|| self.text());
        let found = boolean().flatten().or_else(|| number().flatten());
        let found = found.or_else(|| object().flatten()).or_else(|| array().flatten());
        match found.or_else(|| string().flatten()) {
            Some((code, help)) => (code, Some(help)),
            None => ("type", self.description()),
        }
    }

    /// What to write instead of something that should be a boolean.
    fn boolean(&self, is_only: bool) -> Instead {
        if let (Data::Map(entries), true) = (&self.node.data, is_only)
            && let [(_, Node { data: Data::Bool(value), .. })] = &entries[..]
        {
            let name = self.key.map_or("", |key| &key.name);
            return Some(("type", format!("write only the value: `{name}: {value}`")));
        }
        let written = scalar(self.node)?;
        if written == "true" || written == "false" {
            return Some(("boolean", "take the quotes away".to_owned()));
        }
        let meant = words::option(&written, ["true", "false"])?;
        Some(("boolean", format!("write `{meant}`: only `true` and `false` are booleans")))
    }

    /// What to write instead of a text that should be a number.
    fn number(&self) -> Instead {
        let text = self.node.text()?;
        let word = || words::option(text, ["0", "1", "2", "3", "4", "5", "10"]).map(str::to_owned);
        let first = || text.split(' ').next().filter(|_| text.contains(" of ")).and_then(digits);
        let help = match (text.parse::<f64>(), self.in_own_unit(text)) {
            (Ok(_), _) => "take the quotes away".to_owned(),
            (Err(_), Some(help)) => help,
            _ => format!("write `{}`: only digits", digits(text).or_else(word).or_else(first)?),
        };
        Some(("type", help))
    }

    /// The number for one that is written with another unit.
    fn in_own_unit(&self, text: &str) -> Option<String> {
        let (count, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let unit = unit.trim().to_lowercase();
        let own = self.schema["description"].as_str()?;
        let (base, units) = UNITS.iter().find(|(base, _)| own.contains(base))?;
        let is_word = !unit.contains(' ') && !unit.starts_with("mo");
        let (_, one) = units.iter().find(|(name, _)| is_word && unit.starts_with(name))?;
        let number = count.parse::<f64>().ok()? * one;
        Some(format!("write `{number}`: it is {base}"))
    }

    /// What to write instead of something that should be a mapping.
    fn mapping(&self, is_only: bool) -> Instead {
        let fields = |example: String| format!("write its fields, as in `{example}`");
        let word = scalar(self.node).map(|text| match &self.node.data {
            Data::Number(_) => "count".to_owned(),
            _ if text.contains("://") => "url".to_owned(),
            _ => text,
        });
        let meant = word.and_then(|word| self.meant_by(&word));
        let help = match &self.node.data {
            _ if meant.is_some() => match meant? {
                Meaning::Field(name) => {
                    let count = scalar(self.node).filter(|text| digits(text).is_some());
                    let is_switch = self.schema["properties"][name]["type"] == "boolean";
                    match count.or(is_switch.then(|| "true".to_owned())) {
                        Some(value) => format!("write `{{{name}: {value}}}`"),
                        None => match self.entry_example() {
                            Some(entry) => fields(entry),
                            None => format!("write its fields: `{name}` and others"),
                        },
                    }
                }
                meant => meant.help(),
            },
            Data::List(_) if self.is_item => {
                "it is a list within a list: write its entries themselves, without a second `- ` and not by an alias".to_owned()
            }
            _ if self.is_item => fields(format!("- {}", self.entry_example()?)),
            Data::List(items) if self.section_of(items).is_some() => {
                format!("these are entries of `{}`", self.section_of(items)?)
            }
            Data::List(items) if items.iter().all(|item| has_all(item, self.schema)) => {
                "take the `- ` in front of its fields away: it has fields, not entries".to_owned()
            }
            Data::Map(_) => return None,
            _ if is_only => self.mapping_example().map(fields).or_else(|| self.description())?,
            _ => return None,
        };
        Some(("type", help))
    }

    /// What to write instead of something that should be a list.
    fn list(&self) -> Instead {
        let value = scalar(self.node).and_then(|value| {
            let of_any =
                || words::meant(&["list"], &value).filter(|_| self.entry_example().is_some());
            self.meant_by(&value).or_else(of_any)
        });
        let help = match (&self.node.data, self.entry_example(), self.list_example()) {
            _ if value.is_some() => value?.help(),
            (Data::Map(entries), ..) if has_just(entries, "state") => format!(
                "`state` belongs to an entry; leave `{}` out, and its entries stay as they are",
                self.key?.name
            ),
            (Data::Map(_), ..) if has_all(self.node, &self.schema["items"]) => {
                let is_in_braces = self.node.entries()[0].0.span.start != self.node.span.start;
                match is_in_braces {
                    true => "put `[` in front of the brace and `]` behind the other: it is a list of entries",
                    false => "put `- ` in front of the first field: it is a list of entries",
                }
                .to_owned()
            }
            (Data::Map(entries), ..) if self.keyed(entries).is_some() => self.keyed(entries)?,
            (Data::Map(entries), ..) if self.are_entries(entries) => format!(
                "write `- ` in place of `{}:`, before its first field: an entry has no name in front",
                entries[0].0.name
            ),
            (Data::Map(_), Some(entry), _) => format!("write a list of entries, as in `- {entry}`"),
            (Data::Map(_), None, None) => match self.example() {
                Some(example) => format!("write a list of entries, as in `{example}`"),
                None => "write a list, each entry with `- ` in front".to_owned(),
            },
            (_, Some(entry), _) => format!("write it as a list: `[{entry}]`"),
            (_, None, list) => {
                format!("write it as a list: `{}`", list.as_deref().unwrap_or("[...]"))
            }
        };
        Some(("type", help))
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

    /// Help for a key in the place of a list, if it is known to mean something.
    fn keyed(&self, entries: &[(Key, Node)]) -> Option<String> {
        let place = self.key.map_or("", |key| &key.name);
        entries.iter().find_map(|(key, value)| {
            match words::meant(&[place, "change", words::ANY], &key.name)? {
                meant @ (Meaning::Write(_) | Meaning::Leave(_)) => Some(meant.help()),
                meant if matches!(value.data, Data::List(_)) => Some(meant.help()),
                _ => None,
            }
        })
    }

    /// What `word` means in the place of its value.
    fn meant_by(&self, word: &str) -> Option<Meaning> {
        words::meant(&[&self.key?.name], word)
    }

    /// What to write instead of something that should be text.
    fn text(&self) -> Instead {
        let own = scalar(self.node);
        let day = || day(own.as_deref().filter(|_| self.schema["format"] == "date")?);
        let help = match (&self.node.data, self.depth, self.key.map_or("", |key| &key.name)) {
            (Data::Number(_) | Data::Bool(_), ..) if self.names().is_some() => {
                let more = match self.node.data {
                    Data::Number(_) if self.names() == Some(USERNAME) => {
                        ", or put it in quotes if it is one"
                    }
                    _ => "",
                };
                format!("write {}, not an id{more}", self.names()?)
            }
            (Data::Number(_), ..) if self.schema["format"] == "date" => {
                day().unwrap_or_else(|| "write the day as in `2099-01-31`".to_owned())
            }
            (Data::Bool(_), ..) if self.example().is_some() => {
                format!("write text, as in `{}`", self.example()?)
            }
            (Data::Number(_) | Data::Bool(_), ..) => return Some(("quote", QUOTE.to_owned())),
            (Data::List(_), 1, "path") => "write a document for each, with a line `---` in between, or a rule for many: `kind: Defaults` with `match`".to_owned(),
            (Data::List(_), 3, name) if self.tells_apart(name) => "write an entry for each of them".to_owned(),
            (Data::List(_), ..) if self.separators().is_some() => {
                let (sign, signs) = self.separators()?;
                let examples = self.schema["examples"].as_array().into_iter().flatten();
                let mut examples = examples.filter_map(Json::as_str);
                let example = examples.find(|example| example.contains(sign));
                let example = example.map(|example| format!(", as in `{example}`"));
                format!("write one text, with {signs} in between{}", example.unwrap_or_default())
            }
            (Data::List(items), ..) if items.len() > 1 => {
                "write one value, without the brackets of a list; for several, an entry for each".to_owned()
            }
            (Data::List(_), ..) => "write one value, without the brackets of a list".to_owned(),
            (Data::Map(entries), _, name) if !entries.is_empty() && self.section != "params" => {
                let (key, value) = &entries[0];
                let is_text = |meant: &Meaning| !matches!(meant, Meaning::Field(_));
                let meant = self.meant_by(&key.name).filter(is_text);
                if let Some(meant) = meant {
                    return Some(("type", meant.help()));
                }
                if key.name == "file" && !self.property_names().contains(&"file") {
                    return Some(("type", "write the text itself: undrift reads no file here".to_owned()));
                }
                if key.name == "env" && !self.property_names().contains(&"env") {
                    return Some(("type", "write the text itself: undrift reads no environment variable here, as this is no secret".to_owned()));
                }
                if entries.len() > 1 && entries.iter().all(|(_, value)| value.data == Data::Null) {
                    return Some(("type", format!("write a text of several lines as `{name}: |`, with its lines below that")));
                }
                if value.data == Data::Null {
                    return Some(("type", format!("`{}` is empty: write what it is to be", key.name)));
                }
                let is_free = self.schema.get("enum").is_none();
                let is_json = self.description().is_some_and(|own| own.contains("JSON"));
                if is_json {
                    return Some(("type", format!("write one text that is JSON, in single quotes: `{name}: '{{\"KEY\": \"VALUE\"}}'`")));
                }
                if is_free && entries.len() > 1 && !self.property_names().contains(&&*key.name) {
                    return Some(("type", "put the whole text in single quotes, or write it as a text of several lines behind `|`".to_owned()));
                }
                if self.is_item && CHANGE.iter().any(|change| has_just(entries, change)) {
                    return Some(("type", format!("write the mapping in place of the list, as in `{{{}: [...]}}`, without the brackets around it", key.name)));
                }
                let own = value.text().filter(|text| {
                    NAMES.contains(&key.name.as_str()) && is_name(&text.replace('/', "."))
                });
                let own = own.filter(|_| !may_be_secret(self.schema));
                let example = own.or_else(|| self.schema["examples"][0].as_str()).unwrap_or("...");
                match self.is_item {
                    true => format!("write only the value, as in `- {example}`"),
                    false => format!("write only the value: `{name}: {example}`"),
                }
            }
            _ => return None,
        };
        Some(("type", help))
    }

    /// What stands between the parts of the text, if it has some.
    fn separators(&self) -> Option<(char, &'static str)> {
        let own = self.description()?;
        [(',', "commas"), (' ', "blanks")].into_iter().find(|(_, signs)| own.contains(signs))
    }

    /// What it may hold, if its schema shows that.
    fn example(&self) -> Option<String> {
        Some(value_example(self.schema)).filter(|example| example != "..." && example != "[...]")
    }

    /// What it holds, if that is the name of something.
    fn names(&self) -> Option<&'static str> {
        let list = self.parent.filter(|_| self.is_item).map(|(_, list)| Field::of(list).names);
        Field::of(self.schema).names.or(list.flatten()).map(|named| match named {
            Named::User => USERNAME,
            Named::Runner => "the description or the id",
            Named::Role => "the name of a custom role",
            Named::Group | Named::Project => "the full path, as in `acme/team`",
        })
    }

    /// Whether the field `name` tells entries of its section apart.
    pub(super) fn tells_apart(&self, name: &str) -> bool {
        kinds::everywhere().any(|of| of.section == self.section && of.identity.contains(&name))
    }

    /// The section that has `items` for its entries, if this mapping has not their fields.
    pub(super) fn section_of(&self, items: &[Node]) -> Option<&str> {
        let first = items.first().filter(|first| !has_all(first, self.schema))?;
        let mut sections = self.root["properties"].as_object()?.iter();
        let found = sections.find(|(_, section)| has_all(first, &section["items"]));
        found.map(|(name, _)| &**name)
    }

    /// What is wrong with something that would change a list and does not.
    fn empty_change(&self) -> Option<Finding> {
        let entries = self.node.entries();
        let is_change = |name: &str| CHANGE.contains(&name) || CONDITION.contains(&name);
        let is_for_list = crate::kind::is_list(self.schema) && !entries.is_empty();
        let other = entries.iter().find(|(key, _)| is_for_list && !is_change(&key.name));
        if let Some((key, _)) = other {
            let meant = words::meant(&["change"], &key.name)?.field()?;
            let message = format!("unknown key `{}` in place of a list", key.name);
            let finding = Finding::error("unknown-field", message, key.span.clone());
            return Some(finding.with_help(Some(format!("write `{{{meant}: [...]}}`"))));
        }
        if !is_for_list {
            return None;
        }
        let odd = entries.iter().find(|(_, list)| list.items().is_empty());
        let name = odd.map_or_else(|| self.name(), |(key, _)| format!("`{}`", key.name));
        let at = odd.map_or_else(|| self.span(), |(key, _)| key.span.clone());
        let (what, help) = match odd.map(|(_, list)| &list.data) {
            Some(Data::List(_)) => {
                ("must list something", "leave it out if there is nothing to list")
            }
            Some(_) => ("must be a list", "put what it lists in brackets, as in `[...]`"),
            None if self.name() == "`uses`" => ("takes only `add`", "write `{add: [...]}`"),
            None if self.depth == 1 => (
                "is a list of entries, which is not changed like this",
                "write the entries directly below it: those of all layers count together, and others stay unless `unlisted` says otherwise",
            ),
            None => (
                "mixes what changes a list with conditions on it",
                "write `add` and `remove`, or `at_least` and `none_of`",
            ),
        };
        Some(Finding::error("type", format!("{name} {what}"), at).with_help(Some(help)))
    }

    fn not_among(&self, options: &[String]) -> Finding {
        let all = alternatives(options);
        let are_many = options.len() > 12;
        let must = if are_many { format!("one of {} words", options.len()) } else { all.clone() };
        let message = format!("{} must be {must}", self.name());
        let finding = Finding::error("choice", message, self.span());
        if matches!(self.node.data, Data::List(_)) {
            let help = "write only one of them; for several, write an entry for each";
            return finding.with_help(Some(help));
        }
        let instead = || {
            let is_manifest = self.root["properties"].get("kind").is_some();
            let written = scalar(self.node).filter(|_| is_manifest)?;
            let in_row = || words::meant(&["row"], &written);
            let meant = if self.depth < 4 { self.meant_by(&written) } else { in_row() };
            meant.map(Meaning::help)
        };
        // A name that begins with a word is not that word, misspelt.
        let is_longer = |near: &&str| {
            let rest = self.node.text().and_then(|written| written.strip_prefix(near));
            rest.is_some_and(|rest| rest.starts_with(['/', '-']))
        };
        let near = self.option_among(options).filter(|near| !is_longer(near));
        let help = near.map(|near| match self.guarded() {
            Some((_, at)) => format!("write `guard: {near}`, and `at: {at}`"),
            None => format!("did you mean `{near}`?"),
        });
        let elsewhere = self.other_home().map(|scope| {
            let rule = if scope == Scope::Project { BY_RULE } else { "" };
            format!("only a {0} has it: declare it in the document of a {0}{rule}", scope.noun())
        });
        let whole = self.key.filter(|key| key.name == "ignore_layers").and_then(|_| {
            let written = self.node.text()?;
            let name = written.rsplit(['.', '/']).next().unwrap_or(written);
            let homes = homes(name, self.root, true);
            let home = homes.first()?;
            Some(format!("take it away: it is a field {home}, and `ignore_layers` takes whole sections; a value here outranks those of rules"))
        });
        let help = elsewhere.or(whole).or(help);
        let others = || if are_many { Some(format!("write {all}")) } else { self.description() };
        finding.with_help(instead().or(help).or_else(others))
    }

    /// The other scope whose documents take this word here.
    pub(super) fn other_home(&self) -> Option<Scope> {
        let (word, key) = (self.node.text()?, self.key?);
        let takes =
            |schema: &Json| schema["enum"].as_array()?.iter().find(|one| *one == word).map(|_| ());
        let others = kinds::everywhere().filter(|of| of.section == self.section);
        let takes_it =
            |of: &Section| of.table().get(&key.name).and_then(|spec| takes(&spec.schema)).is_some();
        let is_own = takes(self.schema).is_some() || self.schema.get("enum").is_none();
        others.filter(|_| !is_own).find(takes_it).map(|of| of.home.scope)
    }

    /// The guard and the address, if they are written in one, as on the command line.
    pub(super) fn guarded(&self) -> Option<(&str, &str)> {
        let (guard, at) = self.node.text()?.split_once(':')?;
        Some((guard, at)).filter(|_| self.key.is_some_and(|key| key.name == "guard"))
    }

    /// The option of its schema that is meant by another word, if it takes only some.
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

    /// The one of `options` that is meant.
    fn option_among<'o>(&self, options: &'o [String]) -> Option<&'o str> {
        let written = scalar(self.node)?;
        let all = || options.iter().map(String::as_str);
        let level = || all().find(|option| level(&written) == Some(option));
        let begins = || all().find(|option| written.split([':', ' ', '(']).next() == Some(option));
        let meant = level().or_else(|| words::option(&written, all())).or_else(begins);
        let is_text = matches!(self.node.data, Data::Text(_));
        meant.or_else(|| nearest(&written, all()).filter(|_| is_text))
    }

    /// The message if no alternative matches: one list of what they accept.
    fn no_alternative(&self) -> Finding {
        let choices = ["anyOf", "oneOf"]
            .iter()
            .filter_map(|keyword| self.schema.get(keyword)?.as_array())
            .flatten();
        let (mut options, mut types) = (Vec::new(), Vec::new());
        for choice in choices {
            match (choice.get("enum").or_else(|| choice.get("const")), choice["type"].as_str()) {
                // Numbers that replace words are accepted but not mentioned.
                (Some(Json::Array(words)), _) if words.iter().all(Json::is_string) => {
                    options.extend(strings(&choice["enum"]));
                }
                (None, Some(kind)) if kind != "null" => types.push(in_words(kind)),
                _ => {}
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
        let name = self.name();
        let example = self.schema["examples"][0].as_str();
        let message = match example {
            Some(example) => format!("{name} must be as in `{example}`"),
            None => format!("{name} has a form that is not allowed"),
        };
        let field = Field::of(self.schema);
        let text = self.node.text().unwrap_or_default();
        let nothing = words::option(text, ["null"]).filter(|_| field.nullable);
        let day = day(text).filter(|_| self.schema["format"] == "date");
        let is_several = text.contains([',', ';'])
            && (self.is_item || self.key.is_some_and(|key| self.tells_apart(&key.name)));
        let fits = |option: &&str| {
            *option != "null" && jsonschema::is_valid(self.schema, &Json::from(*option))
        };
        let help = match (nothing, self.names()) {
            _ if text.starts_with("AAAA") && !text.contains(' ') => {
                "write the whole line of the `.pub` file: the type of the key comes first".to_owned()
            }
            _ if text.contains("PRIVATE KEY-----") => {
                "this is a private key: write the public one, and make another pair, as this one is in Git now".to_owned()
            }
            _ if text == "null" && field.nullable => "take the quotes away".to_owned(),
            (Some(nothing), _) => format!("write `{nothing}` for none"),
            _ if day.is_some() => day.unwrap_or_default(),
            _ if text.contains('*')
                && !fits(&"*")
                && self.depth == 3
                && self.key.is_some_and(|key| self.tells_apart(&key.name)) =>
            {
                "write an entry for each of them: `*` stands for several only with `state: unmanaged`".to_owned()
            }
            _ if is_several => "write an entry for each of them".to_owned(),
            _ if text.starts_with("refs/") => {
                "leave `refs/heads/` or `refs/tags/` in front of the name away".to_owned()
            }
            (None, Some(what)) if text.contains(['@', ' ', '/']) => match text.strip_prefix('@') {
                Some(path) if path.contains('/') => {
                    "that is a group: give it access with `shares` at the top of the document"
                        .to_owned()
                }
                Some(_) => "leave the `@` away".to_owned(),
                None => format!("write {what}: it has no `@`, no `/` and no blanks"),
            },
            _ if fits(&&*format!("#{text}")) => format!("write `'#{text}'`, with the quotes"),
            _ => match words::options(text).find(fits) {
                Some(option) => format!("write `{}`", quoted(option, false)),
                None => {
                    let is_shown = field.secrecy == Secrecy::Open && text.len() <= 255;
                    let unwanted = is_shown.then(|| unwanted(text, fits)).flatten();
                    match (self.description(), unwanted) {
                        (Some(what), Some(unwanted)) => format!("{what}, without {unwanted}"),
                        (Some(what), None) => what,
                        (None, Some(unwanted)) => format!("it must not have {unwanted}"),
                        (None, None) => format!("it has to match `{pattern}`"),
                    }
                }
            },
        };
        Finding::error("pattern", message, self.span()).with_help(Some(help))
    }

    /// The message for an exceeded limit.
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

/// The characters of `text` that a field accepts nowhere, if `fits` accepts the text without them.
fn unwanted(text: &str, fits: impl Fn(&&str) -> bool) -> Option<String> {
    let characters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    let mut unwanted: Vec<_> = characters.collect();
    unwanted.sort_unstable();
    unwanted.dedup();
    unwanted.retain(|c| !fits(c) && !fits(&&*format!("a{c}a")) && !fits(&&*format!("1{c}1")));
    let rest = unwanted.iter().fold(text.to_owned(), |rest, c| rest.replace(c, ""));
    // With more of them, something else is wrong.
    ((1..=3).contains(&unwanted.len()) && fits(&&*rest)).then_some(())?;
    let named = |c: &&str| if *c == " " { "blanks".to_owned() } else { alternatives(&[c]) };
    Some(joined(&unwanted.iter().map(named).collect::<Vec<_>>()))
}

/// Whether it is a mapping with fields of `schema` only.
fn has_all(node: &Node, schema: &Json) -> bool {
    let is_known = |(key, _): &(Key, Node)| schema["properties"].get(&key.name).is_some();
    !node.entries().is_empty() && node.entries().iter().all(is_known)
}

/// A scalar as text.
pub(super) fn scalar(node: &Node) -> Option<String> {
    match &node.data {
        Data::Text(text) => Some(text.clone()),
        Data::Number(number) => Some(number.to_string()),
        Data::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Help for a day that is written in another form, if it can be only one.
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
    Some(format!("write `{date}`"))
}

/// The digits of a number that is written with something in between.
fn digits(text: &str) -> Option<String> {
    let digits = text.replace(['_', ',', '\'', ' '], "");
    digits.chars().all(|c| c.is_ascii_digit()).then_some(digits).filter(|digits| !digits.is_empty())
}

fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(kind) => vec![kind.as_str()],
        TypeKind::Multiple(kinds) => kinds.iter().map(JsonType::as_str).collect(),
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

fn strings(options: &Json) -> Vec<String> {
    options.as_array().into_iter().flatten().map(crate::kind::plain_text).collect()
}

/// Whether a mapping has this one key.
fn has_just(entries: &[(Key, Node)], name: &str) -> bool {
    entries.len() == 1 && entries[0].0.name == name
}
