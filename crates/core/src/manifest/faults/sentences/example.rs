//! What should be written instead, with as much of what is written as may be shown.

use crate::{
    kind::is_list,
    kinds::{self, words},
    level::{LEVELS, Level},
    manifest::mask::may_be_secret,
    secret::judge,
    text::is_name,
    value::Json,
    yaml::{Data, Key, Node, write::scalar as quoted},
};

use super::Located;

/// The longest text that is quoted in an example.
const LONGEST: usize = 40;

/// The most fields of a mapping of which the first one can be guessed to be meant.
const FEW: usize = 6;

/// What a name may be the value of where only the name should be.
pub(super) const NAMES: [&str; 6] = ["group", "name", "path", "project", "user", "username"];

/// What a field holds that names a user.
pub(super) const USERNAME: &str = "the username";

/// The level of access that a word or a number in quotes stands for.
pub(super) fn level(text: &str) -> Option<&'static str> {
    let text = text.trim();
    let number = || text.parse::<u8>().ok().and_then(|number| Level::parse(&number.into()));
    let words = LEVELS.into_iter().map(|level| level.word).chain(["no_access"]);
    let one = || Level::parse(&text.trim_end_matches('s').into());
    let level = Level::parse(&text.into()).or_else(number).or_else(one);
    level.map(|level| level.word).or_else(|| words::option(text, words))
}

/// Whether it is a mapping with fields of `schema` only.
pub(super) fn has_all(node: &Node, schema: &Json) -> bool {
    let is_field = |(key, _): &(Key, Node)| schema["properties"].get(&key.name).is_some();
    !node.entries().is_empty() && node.entries().iter().all(is_field)
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

impl Located<'_> {
    /// An entry of the list `written`, which is of another shape, or of which this is an entry of another
    /// shape: with what tells entries apart and what each of them needs.
    pub(super) fn entry_example(&self) -> Option<String> {
        let item = if self.is_item { self.schema } else { self.schema.get("items")? };
        let properties = item.get("properties")?.as_object()?;
        let has = |name: &&str| properties.contains_key(*name);
        // A seed has lists with the names of sections, and entries of their own.
        let is_own = |of: &crate::kind::Section| {
            of.section == self.section && of.identity.iter().chain(of.required).all(&has)
        };
        let of_kind = || kinds::everywhere().find(is_own);
        let kind = (self.depth == 1 + usize::from(self.is_item)).then(of_kind).flatten();
        let names = match &kind {
            Some(of) => {
                let known = of.table().schema["required"].as_array();
                let known = known.into_iter().flatten().filter_map(Json::as_str);
                let mut names: Vec<&str> = known.chain(of.required.iter().copied()).collect();
                names.retain(has);
                if names.is_empty() {
                    names.extend(of.identity.first());
                }
                names
            }
            None => {
                let required = item["required"].as_array().into_iter().flatten();
                required.filter_map(Json::as_str).collect()
            }
        };
        let (name, level) = written(self.node);
        let name = name.filter(|_| self.is_marked());
        let name = name.filter(|_| !may_be_secret(item) || matches!(self.node.data, Data::Map(_)));
        // A key is what tells entries apart, which need not be the first of what they need.
        let is_key = matches!(self.node.data, Data::Map(_));
        let fits = |of: &crate::kind::Section| of.identity.first() == names.first();
        let name = name.filter(|_| !is_key || kind.as_ref().is_none_or(fits));
        let everybody = ["enabled", "no_access"];
        let name = name.filter(|name| words::option(name, everybody).is_none());
        let first = match (names.first(), level, name.as_deref()) {
            (Some(first), ..) => *first,
            (None, Some(_), _) if has(&"access_level") => "access_level",
            (None, None, Some(path)) if path.contains('/') && has(&"group") => "group",
            (None, None, Some(_)) if has(&"user") => "user",
            (None, ..) => properties.keys().next()?,
        };
        let rest = names.iter().copied().filter(|name| *name != first);
        let fields = std::iter::once(first).chain(rest).map(|field| {
            let schema = &properties[field];
            let inner = || self.node.entries().first()?.1.get(field)?.1.text().map(str::to_owned);
            let inner = || inner().filter(|text| is_name(text) && self.is_marked());
            let named = (field == first && !may_be_secret(schema)).then(inner).flatten();
            let own = match (level, &named.or_else(|| name.clone())) {
                (Some(level), _) if field.contains("access") => Some(level.to_owned()),
                (_, Some(name)) if field == first && (is_key || level.is_none()) => {
                    Some(quoted(name, true))
                }
                _ => None,
            };
            format!("{field}: {}", own.unwrap_or_else(|| value_example(schema)))
        });
        let more = if kind.is_none() && names.len() == 1 && level.is_none() { ", ..." } else { "" };
        Some(format!("{{{}{more}}}", fields.collect::<Vec<_>>().join(", ")))
    }

    /// The mapping that a scalar, or a list, should be.
    pub(super) fn mapping_example(&self) -> Option<String> {
        let Some(properties) = self.schema["properties"].as_object() else {
            let first = self.schema["examples"][0].as_object()?;
            return Some(Json::from(first.clone()).to_string().replace('"', "").replace(':', ": "));
        };
        let node = self.node.items().first().unwrap_or(self.node);
        let text = scalar(node).unwrap_or_default();
        let switches = ["true", "false"];
        let is_switch = switches.into_iter().find(|switch| *switch == text);
        if let Some(value) = is_switch.or_else(|| words::option(&text, switches))
            && properties.contains_key("enabled")
        {
            return Some(format!("{{enabled: {value}}}"));
        }
        let has_option = |schema: &&Json| {
            let options = schema["enum"].as_array();
            node.text().is_some_and(|text| options.is_some_and(|all| all.contains(&text.into())))
        };
        let of_option = properties.iter().find(|(_, schema)| has_option(schema));
        let required = self.schema["required"][0].as_str();
        let is_clear = required.or(of_option.map(|(name, _)| &**name));
        let few = properties.keys().next().filter(|_| properties.len() <= FEW);
        let Some(first) = is_clear.or(few.map(String::as_str)) else {
            let first = properties.iter().find(|(_, schema)| schema.get("enum").is_some());
            return first.map(|(name, schema)| format!("{{{name}: {}}}", value_example(schema)));
        };
        let schema = &properties[first];
        let text = plain(node).filter(|_| self.is_marked() && !may_be_secret(schema));
        let kinds = schema["type"].to_string();
        let is_option = |text: &String| {
            schema["enum"].as_array().is_none_or(|all| all.contains(&text.as_str().into()))
        };
        let value = text.filter(is_option).and_then(|text| match &node.data {
            Data::Text(_) if kinds.contains("string") || schema.get("type").is_none() => {
                Some(quoted(&text, true))
            }
            Data::Number(_) => kinds.contains("integer").then_some(text),
            _ => None,
        });
        Some(format!("{{{first}: {}}}", value.unwrap_or_else(|| value_example(schema))))
    }

    /// Whether the schema marks what is secret, as those of manifests and of `undrift.yaml` do.
    fn is_marked(&self) -> bool {
        ["kind", "version", "section"].iter().any(|key| self.root["properties"].get(key).is_some())
    }

    /// The list of texts that something else should be.
    pub(super) fn list_example(&self) -> Option<String> {
        let items = self.schema.get("items").filter(|items| items.get("properties").is_none())?;
        let texts: Vec<String> = match &self.node.data {
            Data::Text(text) => {
                let inner = text.trim_matches(['(', ')', '<', '>']);
                inner.split([',', ';']).map(|part| part.trim().to_owned()).collect()
            }
            Data::Map(entries) if entries.iter().any(|(_, value)| !value.items().is_empty()) => {
                return None;
            }
            Data::Map(entries) => {
                let own = |(key, value): &(Key, Node)| match value.text() {
                    Some(text) if NAMES.contains(&key.name.as_str()) => text.to_owned(),
                    _ => key.name.clone(),
                };
                entries.iter().map(own).collect()
            }
            _ => Vec::new(),
        };
        let is_shown =
            |text: &String| (1..LONGEST).contains(&text.len()) && judge::credential(text).is_none();
        let fits = self.is_marked()
            && !texts.is_empty()
            && texts.iter().all(is_shown)
            && !may_be_secret(items);
        let texts = texts.iter().map(|text| quoted(text, true));
        fits.then(|| format!("[{}]", texts.collect::<Vec<_>>().join(", ")))
    }
}

/// The name and the level that are written where an entry should be.
fn written(node: &Node) -> (Option<String>, Option<&'static str>) {
    let first = |node: &Node| match &node.data {
        Data::Map(entries) => entries.first().cloned(),
        _ => None,
    };
    match first(node) {
        None => {
            let text = plain(node);
            let level = text.as_deref().and_then(level);
            (text.map(|text| text.trim_start_matches('@').to_owned()), level)
        }
        // As in `alice: maintainer`, but not `users: {alice: {...}}`.
        Some((key, value)) => {
            let is_group =
                value.entries().iter().any(|(_, inner)| matches!(inner.data, Data::Map(_)));
            let is_odd = matches!(value.data, Data::List(_) | Data::Bool(_)) || is_group;
            let name =
                is_name(&key.name.replace('/', ".")) && !is_odd && level(&key.name).is_none();
            let level = plain(&value).as_deref().and_then(level);
            (name.then_some(key.name), level)
        }
    }
}

/// A scalar as it may be quoted.
fn plain(node: &Node) -> Option<String> {
    let text = scalar(node).filter(|_| !matches!(node.data, Data::Bool(_)))?;
    let is_odd = text.contains(['\n', '[', ']', '{', '}', '`', '(', ',']) || text == "...";
    let is_shown = (1..LONGEST).contains(&text.len()) && !is_odd;
    (is_shown && judge::credential(&text).is_none()).then_some(text)
}

/// What a field may hold.
pub(super) fn value_example(schema: &Json) -> String {
    let options = schema["enum"].as_array().and_then(|options| options.first());
    let first = schema["examples"].as_array().and_then(|examples| examples.first());
    match first.or(options) {
        Some(Json::String(text)) if !text.contains(": ") => quoted(text, true),
        Some(Json::Number(number)) => number.to_string(),
        Some(Json::Array(rows)) if rows.iter().all(Json::is_object) => {
            let row =
                |row: &Json| row.to_string().replace('"', "").replace(':', ": ").replace(',', ", ");
            format!("[{}]", rows.iter().map(row).collect::<Vec<_>>().join(", "))
        }
        _ if is_list(schema) => "[...]".to_owned(),
        _ if schema["type"] == "integer" => "1".to_owned(),
        _ if Level::parse(&schema["default"]).is_some() => schema["default"].to_string(),
        _ => "...".to_owned(),
    }
}
