//! Messages for values that a field does not accept.

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind as Kind},
};

use super::{Finding, Located};
use crate::{
    kinds,
    level::Level,
    text::{alternatives, nearest},
    value::Json,
    yaml::Data,
};

/// Names of access levels in the user interface of the service.
const MEANT: [(&str, &str); 4] = [
    ("no one", "no_access"),
    ("noone", "no_access"),
    ("nobody", "no_access"),
    ("developers + maintainers", "developer"),
];

/// The access level for a word, or for a number in quotes.
pub(super) fn level(text: &str) -> Option<&'static str> {
    let meant = MEANT.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    let number = || text.parse::<u8>().ok().and_then(|number| Level::parse(&number.into()));
    let known = || Level::parse(&text.into()).or_else(number);
    meant.map(|(_, meant)| *meant).or_else(|| Some(known()?.word))
}

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
                let mut finding = Finding::error("value", message, self.span());
                finding.help_if(self.description());
                finding
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
            let mut finding = Finding::error("null", format!("{name} is empty"), self.span());
            finding.help(help);
            return finding;
        }
        let words: Vec<_> =
            expected.iter().filter(|kind| **kind != "null").map(|kind| in_words(kind)).collect();
        let message = format!("{name} must be {}", words.join(" or "));
        let (code, help) = self.instead(expected);
        let mut finding = Finding::error(code, message, self.span());
        finding.help_if(help);
        finding
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
                    let only = "in YAML 1.2 only `true` and `false` are booleans";
                    help("boolean", &format!("write `{meant}`: {only}"))
                }
                None => ("type", self.description()),
            },
            Data::Text(text)
                if (wants("integer") || wants("number")) && text.parse::<f64>().is_ok() =>
            {
                help("type", "take the quotes away")
            }
            Data::Number(_) | Data::Bool(_) if wants("string") => {
                help("quote", "put it in quotes: without them YAML may change it (`1.10` is `1.1`)")
            }
            _ if wants("object") && self.is_item => {
                let first = self.property_names().first().copied();
                ("type", first.map(|first| format!("write its fields, as in `- {first}: ...`")))
            }
            Data::Text(_) | Data::Number(_) | Data::Bool(_)
                if expected.iter().all(|kind| ["object", "null"].contains(kind)) =>
            {
                let required = self.schema["required"][0].as_str();
                let first = required.or_else(|| self.property_names().first().copied());
                let help = first.map(|first| format!("write its fields, as in `{{{first}: ...}}`"));
                ("type", help.or_else(|| self.description()))
            }
            Data::Map(_) if wants("array") => match self.example(None) {
                Some(entry) => help("type", &format!("write a list of entries, as in `- {entry}`")),
                None => help("type", "write a list of entries, each with `- ` in front"),
            },
            Data::Text(_) | Data::Number(_) if wants("array") => {
                let json = self.node.to_json();
                let number = || Level::parse(&json).map(|level| level.word);
                let written = json.as_str().map_or_else(number, level);
                let entry = self.example(written).unwrap_or_else(|| "...".to_owned());
                help("type", &format!("write it as a list: `[{entry}]`"))
            }
            _ => ("type", self.description()),
        }
    }

    /// An example entry of the list: with the level `written`, if entries have one, or with the
    /// identity.
    fn example(&self, written: Option<&str>) -> Option<String> {
        let items = self.schema.get("items")?;
        let properties = items.get("properties")?.as_object()?;
        if let Some(level) = written.filter(|_| properties.contains_key("access_level")) {
            return Some(format!("{{access_level: {level}}}"));
        }
        let required = items["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        let mut kinds = kinds::all().kinds().iter().filter(|_| self.depth == 1);
        let kind = kinds.find(|kind| kind.section == self.section);
        let first = properties.keys().map(String::as_str).take(1);
        let names: Vec<_> = match kind {
            Some(kind) => kind.identity.to_vec(),
            None => required.collect(),
        };
        let names = if names.is_empty() { first.collect() } else { names };
        let shown = names.into_iter().enumerate().filter_map(|(at, name)| {
            let example = properties.get(name).map(|property| &property["examples"][0]);
            let example = example.and_then(Json::as_str).filter(|text| !text.contains(": "));
            let is_shown = at == 0 || example.is_some();
            is_shown.then(|| format!("{name}: {}", example.unwrap_or("...")))
        });
        let shown: Vec<_> = shown.collect();
        (!shown.is_empty()).then(|| format!("{{{}, ...}}", shown.join(", ")))
    }

    fn not_among(&self, options: &[String]) -> Finding {
        let mut finding = Finding::error(
            "choice",
            format!("{} must be {}", self.name(), alternatives(options)),
            self.span(),
        );
        let near = self.node.text().and_then(|text| {
            let meant = level(text);
            let meant = meant.filter(|meant| options.iter().any(|option| option == meant));
            meant.or_else(|| nearest(text, options.iter().map(String::as_str)))
        });
        finding.help_if(
            near.map_or_else(|| self.description(), |near| Some(format!("did you mean `{near}`?"))),
        );
        finding
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
                (Some(_), _) => {}
                (None, Some(kind)) if kind != "null" => types.push(in_words(kind)),
                (None, _) => {}
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
        let mut finding = Finding::error(
            "pattern",
            format!("{} has a form that is not allowed", self.name()),
            self.span(),
        );
        let example =
            self.schema["examples"][0].as_str().map(|example| format!("for example `{example}`"));
        let help: Vec<_> = self.description().into_iter().chain(example).collect();
        finding.help(if help.is_empty() {
            format!("it has to match `{pattern}`")
        } else {
            help.join("; ")
        });
        finding
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
        "yes" | "y" | "on" | "true" => Some(true),
        "no" | "n" | "off" | "false" => Some(false),
        _ => None,
    }
}

fn strings(options: &Json) -> Vec<String> {
    options.as_array().into_iter().flatten().map(crate::kind::plain_text).collect()
}
