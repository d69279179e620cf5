//! Messages for values that a field does not accept.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};

use super::{Finding, Located};
use crate::{
    field::{Field, Named},
    kind::forms::CONDITION,
    kinds::{self, words},
    level::{LEVELS, Level},
    manifest::{mask::may_be_secret, read::templates::CHANGE},
    text::{alternatives, is_name, nearest},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The level of access that a word or a number in quotes stands for.
pub(super) fn level(text: &str) -> Option<&'static str> {
    let number = || text.parse::<u8>().ok().and_then(|number| Level::parse(&number.into()));
    let known = Level::parse(&text.into()).or_else(number);
    let words = LEVELS.into_iter().map(|level| level.word).chain(["no_access"]);
    let one = text.trim_end_matches('s');
    let known = known.or_else(|| Level::parse(&one.into()));
    known.map(|level| level.word).or_else(|| words::option(text, words))
}

/// What a name may stand below where only the name should be.
const NAMES: [&str; 6] = ["group", "name", "path", "project", "user", "username"];

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
                Finding::error("value", message, self.span()).with_help(self.description())
            }
        }
    }

    fn wrong_type(&self, expected: &[&str]) -> Finding {
        let name = self.name();
        if self.node.data == Data::Null {
            let help = match (self.depth, expected.contains(&"array")) {
                _ if self.is_item => "write what it is to be, or take the line away",
                (1, _) if self.is_required() => "write what it is to be",
                (1, true) => "write `[]` for none, or leave it out: then it is not managed",
                (1, false) => "write what it is to be, or leave it out: then it is not managed",
                _ => "leave it out: then it is not managed; the API has no way to clear it",
            };
            let message = format!("{name} is empty");
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
        let required = self.root["required"].as_array().into_iter().flatten();
        self.key.is_some_and(|key| required.clone().any(|name| *name == key.name))
    }

    /// The code for a value whose type is not in `expected`, and what to write instead.
    fn instead(&self, expected: &[&str]) -> (&'static str, Option<String>) {
        let wants = |kind: &str| expected.contains(&kind);
        let help = |code, help: &str| (code, Some(help.to_owned()));
        match &self.node.data {
            Data::Text(text) if wants("boolean") => match yes_or_no(text) {
                Some(_) if text == "true" || text == "false" => {
                    help("boolean", "take the quotes away")
                }
                Some(meant) => {
                    let only = "only `true` and `false` are booleans";
                    help("boolean", &format!("write `{meant}`: {only}"))
                }
                None if wants("array") => {
                    let list = self.list_example().unwrap_or_else(|| "[...]".to_owned());
                    ("type", Some(format!("write it as a list: `{list}`")))
                }
                None => ("type", self.description()),
            },
            Data::Number(number) if wants("boolean") && !wants("number") => match number.as_u64() {
                Some(0) => help("boolean", "write `false`"),
                Some(1) => help("boolean", "write `true`"),
                _ => ("type", self.description()),
            },
            Data::Map(entries) if wants("boolean") && !wants("object") && entries.len() == 1 => {
                let value = matches!(entries[0].1.data, Data::Bool(true));
                let name = self.key.map_or("", |key| &key.name);
                ("type", Some(format!("write only the value: `{name}: {value}`")))
            }
            Data::Text(text)
                if (wants("integer") || wants("number")) && text.parse::<f64>().is_ok() =>
            {
                help("type", "take the quotes away")
            }
            Data::Text(text) if wants("integer") && digits(text).is_some() => {
                ("type", digits(text).map(|digits| format!("write `{digits}`: only digits")))
            }
            Data::Number(_) | Data::Bool(_) if wants("string") && self.names().is_some() => {
                ("type", self.names().map(|what| format!("write {what}, not an id")))
            }
            Data::Number(_) if self.schema["format"] == "date" => {
                help("type", "write the day as in `2099-01-31`")
            }
            Data::Number(_) | Data::Bool(_) if wants("string") => {
                help("quote", "put it in quotes: without them YAML may change it (`1.10` is `1.1`)")
            }
            Data::List(_) if wants("object") && self.is_item => {
                help("type", "take one `- ` away: it is a list within a list")
            }
            _ if wants("object") && self.is_item => {
                let entry = self.entry_example();
                ("type", entry.map(|entry| format!("write its fields, as in `- {entry}`")))
            }
            Data::List(items) if wants("object") && self.section_of(items).is_some() => {
                let section = self.section_of(items).unwrap_or_default();
                ("type", Some(format!("these are entries of `{section}`")))
            }
            Data::List(items) if wants("object") && items.iter().all(is_map) => help(
                "type",
                "take the `- ` in front of its fields away: it has fields, not entries",
            ),
            Data::Text(_) | Data::Number(_) | Data::Bool(_) | Data::List(_)
                if wants("object")
                    && expected.iter().all(|kind| ["object", "null"].contains(kind)) =>
            {
                let example = self.mapping_example();
                let help = example.map(|fields| format!("write its fields, as in `{fields}`"));
                ("type", help.or_else(|| self.description()))
            }
            Data::Map(entries) if wants("array") => {
                let known = self.schema["items"]["properties"].as_object();
                let is_known = |key: &Key| known.is_some_and(|known| known.contains_key(&key.name));
                let is_entry = !entries.is_empty() && entries.iter().all(|(key, _)| is_known(key));
                let help = match (self.entry_example(), self.list_example()) {
                    _ if is_entry => {
                        "put `- ` in front of the first field: it is a list of entries".to_owned()
                    }
                    (Some(entry), _) => format!("write a list of entries, as in `- {entry}`"),
                    (None, Some(list)) => format!("write it as a list: `{list}`"),
                    (None, None) => "write a list, each entry with `- ` in front".to_owned(),
                };
                ("type", Some(help))
            }
            Data::Text(_) | Data::Number(_) | Data::Bool(_) if wants("array") => {
                let entry = self.entry_example().map(|entry| format!("[{entry}]"));
                let list = entry.or_else(|| self.list_example());
                let list = list.unwrap_or_else(|| "[...]".to_owned());
                ("type", Some(format!("write it as a list: `{list}`")))
            }
            Data::List(_) if wants("string") => {
                match (self.depth, self.key.map(|key| &*key.name)) {
                    (1, Some("path")) => help(
                        "type",
                        "write a document for each, with a line `---` in between, or a rule for many: `kind: Defaults` with `match`",
                    ),
                    (3, Some(name)) if self.tells_apart(name) => {
                        help("type", "write an entry for each of them")
                    }
                    _ if self.description().is_some_and(|text| text.contains("comma")) => {
                        help("type", "write one text, with commas in between")
                    }
                    _ => help("type", "write one value, without the brackets of a list"),
                }
            }
            Data::Map(entries) if wants("string") && !entries.is_empty() => {
                let (key, value) = &entries[0];
                let own = value.text().filter(|text| {
                    NAMES.contains(&key.name.as_str()) && is_name(&text.replace('/', "."))
                });
                let own = own.filter(|_| !may_be_secret(self.schema));
                let example = own.or_else(|| self.schema["examples"][0].as_str()).unwrap_or("...");
                let name = self.key.map_or("", |key| &key.name);
                let value = match self.is_item {
                    true => format!(", as in `- {example}`"),
                    false => format!(": `{name}: {example}`"),
                };
                ("type", Some(format!("write only the value{value}")))
            }
            _ => ("type", self.description()),
        }
    }

    /// What it holds, if that is the name of something.
    fn names(&self) -> Option<&'static str> {
        Field::of(self.schema).names.map(|named| match named {
            Named::User => "the username",
            Named::Group | Named::Project => "the full path, as in `acme/team`",
        })
    }

    /// Whether the field `name` tells entries of its section apart.
    fn tells_apart(&self, name: &str) -> bool {
        kinds::everywhere().any(|of| of.section == self.section && of.identity.contains(&name))
    }

    /// The section that has `items` for its entries, if this mapping has not their fields.
    fn section_of(&self, items: &[Node]) -> Option<&str> {
        let has = |schema: &Json| {
            let mut names = items.first().into_iter().flat_map(Node::entries);
            names.all(|(key, _)| schema["properties"].get(&key.name).is_some())
        };
        let mut sections = self.root["properties"].as_object()?.iter();
        let found = sections.find(|(_, section)| has(&section["items"])).map(|(name, _)| &**name);
        found.filter(|_| items.first().is_some_and(is_map) && !has(self.schema))
    }

    /// What is wrong with something that would change a list and does not.
    fn empty_change(&self) -> Option<Finding> {
        let entries = self.node.entries();
        let is_change = |name: &str| CHANGE.contains(&name) || CONDITION.contains(&name);
        let is_for_list = crate::kind::is_list(self.schema) && !entries.is_empty();
        if !is_for_list || !entries.iter().all(|(key, _)| is_change(&key.name)) {
            return None;
        }
        let odd = entries.iter().find(|(_, list)| list.items().is_empty());
        let (message, help, at) = match odd {
            Some((key, list)) if !matches!(list.data, Data::List(_)) => (
                format!("`{}` must be a list", key.name),
                "put what it lists in brackets, as in `[...]`",
                key.span.clone(),
            ),
            Some((key, _)) => (
                format!("`{}` must list something", key.name),
                "leave it out if there is nothing to list",
                key.span.clone(),
            ),
            None => (
                format!("{} mixes what changes a list with conditions on it", self.name()),
                "write `add` and `remove`, or `at_least` and `none_of`",
                self.span(),
            ),
        };
        Some(Finding::error("type", message, at).with_help(Some(help)))
    }

    fn not_among(&self, options: &[String]) -> Finding {
        let message = format!("{} must be {}", self.name(), alternatives(options));
        let finding = Finding::error("choice", message, self.span());
        if matches!(self.node.data, Data::List(_)) {
            let help = "write only one of them; for several, write an entry for each";
            return finding.with_help(Some(help));
        }
        let written = match &self.node.data {
            Data::Text(text) => Some(text.clone()),
            Data::Number(number) => Some(number.to_string()),
            Data::Bool(value) => Some(value.to_string()),
            _ => None,
        };
        let near = written.as_deref().and_then(|text| {
            let all = || options.iter().map(String::as_str);
            let meant = words::option(text, all()).or_else(|| level(text));
            let meant = meant.filter(|meant| all().any(|option| option == *meant));
            meant.or_else(|| nearest(text, all()))
        });
        let help = near.map(|near| format!("did you mean `{near}`?"));
        finding.with_help(help.or_else(|| self.description()))
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
        let help = match (nothing, self.names()) {
            (Some(nothing), _) => format!("write `{nothing}` for none"),
            (None, Some(what)) if text.contains(['@', ' ']) => match text.strip_prefix('@') {
                Some(_) => "leave the `@` away".to_owned(),
                None => format!("write {what}: it has no `@` and no blanks"),
            },
            _ => self.description().unwrap_or_else(|| format!("it has to match `{pattern}`")),
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

fn is_map(node: &Node) -> bool {
    matches!(node.data, Data::Map(_))
}

/// The digits of a number that is written with something in between.
fn digits(text: &str) -> Option<String> {
    let digits = text.replace(['_', ',', '\'', ' '], "");
    digits.chars().all(|c| c.is_ascii_digit()).then_some(digits).filter(|digits| !digits.is_empty())
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

/// The boolean for a word that other YAML readers read as a boolean.
fn yes_or_no(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "yes" | "y" | "on" | "true" | "1" | "enabled" | "required" => Some(true),
        "no" | "n" | "off" | "false" | "0" | "disabled" | "never" => Some(false),
        _ => None,
    }
}

fn strings(options: &Json) -> Vec<String> {
    options.as_array().into_iter().flatten().map(crate::kind::plain_text).collect()
}
