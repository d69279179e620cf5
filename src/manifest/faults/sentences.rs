//! Messages for schema errors, with help.

mod example;
mod value;

use std::collections::BTreeSet;

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};

use super::{
    Finding, Findings,
    locate::{Located, first_sentence, locate},
};
use crate::{
    desired::PROJECTS,
    field::{Field, Scope, Secrecy},
    kind::Shape,
    kinds::{
        self,
        words::{self, Meaning},
    },
    level::Level,
    text::{alternatives, did_you_mean, is_name, likely, listed, nearest, plural},
    value::Json,
    yaml::{Data, Key, Node},
};

/// The maximum number of names in a help text.
const MOST_NAMES: usize = 12;

/// The most names that a hint offers for one.
const MOST_LIKELY: usize = 4;

/// The most names of one mapping that are compared with each known one. No sensible mapping has more.
const MOST_COMPARED: usize = 1_000;

/// How a group's document says something about its projects.
const BY_RULE: &str =
    "; a rule declares it for all projects below: `kind: Defaults` with `match: {path: GROUP/**}`";

/// The maximum number of places for one name in a help text.
const MOST_HOMES: usize = 3;

/// The message for `error`. Of several errors at one place only the first is reported (`is_new`),
/// unless each has its own message.
pub(super) fn explain(
    error: &ValidationError<'_>,
    document: &Node,
    root: &Json,
    is_new: bool,
    findings: &mut Findings,
) {
    let Some(spot) = locate(error.instance_path().as_str(), document, root) else { return };
    if spot.node.data == Data::Unreadable {
        return;
    }
    if Field::of(spot.schema).secrecy != Secrecy::Open {
        if is_new {
            findings.push(spot.secret());
        }
        return;
    }
    if let Some(section) = spot.has_fields_of() {
        if is_new {
            let message = format!("these are the fields of an entry of `{section}`");
            let help = format!("write it below `{section}:`: is that line missing, or a comment?");
            findings
                .push(Finding::error("unknown-field", message, spot.span()).with_help(Some(help)));
        }
        return;
    }
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let is_foreign = |name: &&String| matches!(spot.meant(name), Some(Meaning::Foreign(_)));
            if let Some(name) = unexpected.iter().find(is_foreign) {
                findings.push(spot.unknown(name));
                return;
            }
            let mut unknown: Vec<_> = unexpected.iter().map(String::as_str).collect();
            if spot.is_only_elsewhere() {
                unknown.retain(|name| spot.of_other_scope(name).is_none());
            }
            for (key, _) in spot.node.entries() {
                let strays = strays(spot.node, spot.schema, key);
                if !strays.is_empty() {
                    unknown.retain(|name| !strays.contains(name));
                    findings.push(emptied(key, &strays));
                }
            }
            let shown = unknown.len().min(findings.room());
            for name in &unknown[..shown] {
                findings.push(spot.unknown(name));
            }
            findings.skip(unknown.len() - shown);
        }
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            if spot.has_another_name_for(property) {
                return;
            }
            let missing = findings.push(missing(property, spot.schema, spot.span()));
            if spot.is_item {
                missing.label("in this entry");
            }
        }
        // Unknown ones among them are reported.
        Kind::MaxProperties { .. } if spot.has_unknown() => {}
        _ if is_new && !spot.has_strays() => drop(findings.push(spot.wrong(error))),
        _ => {}
    }
}

/// What stands in `document` under other names than those that are meant, under these, and mappings in
/// the place of lists as the lists that are meant: the keys tell entries apart.
pub(super) fn meant(document: &Node, root: &Json) -> Node {
    let mut seen = BTreeSet::new();
    let entries = locate("", document, root).into_iter().flat_map(|top| {
        document.entries().iter().filter_map(move |(key, value)| {
            let is_known = top.schema["properties"].get(&key.name).is_some();
            let name = match top.meant(&key.name) {
                Some(Meaning::Field(name)) if !is_known => name.to_owned(),
                _ => key.name.clone(),
            };
            let listed = as_list(&name, value, &top.schema["properties"][&name]);
            let is_meant = is_known && listed.is_none() || !is_known && name == key.name;
            let key = Key { name, span: key.span.clone() };
            (!is_meant).then(|| (key, listed.unwrap_or_else(|| value.clone())))
        })
    });
    // Two names can stand for one key.
    let entries = entries.filter(|(key, _)| seen.insert(key.name.clone()));
    Node { data: Data::Map(entries.collect()), span: document.span.clone() }
}

/// The mapping `value` of mappings as the list that the section `name` is.
fn as_list(name: &str, value: &Node, schema: &Json) -> Option<Node> {
    let identity = *kinds::everywhere().find(|of| of.section == name)?.identity.first()?;
    let known = &schema["items"]["properties"];
    let items = value.entries().iter().map(|(key, inner)| {
        let Data::Map(fields) = &inner.data else { return None };
        let is_entry = known.get(&key.name).is_none()
            && fields.iter().all(|(key, value)| {
                known.get(&key.name).is_some() || !matches!(value.data, Data::Map(_))
            });
        if !is_entry {
            return None;
        }
        let own = Node { data: Data::Text(key.name.clone()), span: key.span.clone() };
        let own = (Key { name: identity.to_owned(), span: key.span.clone() }, own);
        let own = inner.get(identity).is_none().then_some(own);
        let fields = own.into_iter().chain(fields.iter().cloned()).collect();
        Some(Node { data: Data::Map(fields), span: inner.span.clone() })
    });
    let items: Vec<_> = items.collect::<Option<_>>()?;
    let is_list = known.get(identity).is_some() && !items.is_empty();
    is_list.then(|| Node { data: Data::List(items), span: value.span.clone() })
}

/// A missing required field. `schema` is that of its parent.
pub(in crate::manifest) fn missing<A>(property: &str, schema: &Json, at: A) -> Finding<A> {
    let help = match property {
        "match" => {
            Some("write the paths that it applies to, as in `match: {path: 'acme/**'}`".into())
        }
        "file" => Some(
            "write the path, which may have parameters in it, as in `{file: 'avatars/{name}.png'}`"
                .into(),
        ),
        _ => schema["properties"].get(property).and_then(first_sentence),
    };
    Finding::error("missing", format!("`{property}` is missing"), at).with_help(help)
}

impl Located<'_> {
    /// The section whose fields the entry has, if it has none of its own section.
    fn has_fields_of(&self) -> Option<&str> {
        let own = |(key, _): &(Key, Node)| {
            self.schema["properties"].get(&key.name).is_some() || self.meant(&key.name).is_some()
        };
        let is_strange = self.is_item && self.depth == 2 && !self.node.entries().iter().any(own);
        let section = self.section_of(std::slice::from_ref(self.node)).filter(|_| is_strange)?;
        let of = kinds::everywhere().find(|of| of.section == section)?;
        of.identity.iter().all(|name| self.node.get(name).is_some()).then_some(section)
    }

    fn secret(&self) -> Finding {
        let form = "`{env: NAME}` or `{file: PATH}`";
        let keys = self.node.entries().iter().map(|(key, _)| key.name.to_lowercase());
        let keys: Vec<_> = keys.collect();
        let any =
            |words: &[&str]| keys.iter().any(|key| words.iter().any(|word| key.contains(word)));
        let is_tried = keys.iter().any(|key| key == "env" || key == "file");
        let is_reference = Field::of(self.schema).secrecy == Secrecy::Reference;
        let (code, message) = match &self.node.data {
            Data::Null => ("null", "is empty"),
            Data::Map(_) if is_tried => ("reference", "is not a well-formed reference to a secret"),
            _ if is_reference => ("reference", "must be a reference to a secret"),
            Data::Bool(_) | Data::Number(_) => ("quote", "must be text"),
            _ => ("reference", "must be text or a reference to a secret"),
        };
        let stray = self.node.entries().iter().map(|(key, _)| key.name.as_str()).find(|key| {
            self.parent.is_some_and(|(_, schema)| schema["properties"].get(key).is_some())
        });
        let help = match code {
            _ if is_tried && stray.is_some() => {
                format!("write `{}` beside it, outside of its braces", stray.unwrap_or_default())
            }
            "null" => format!("write `''` for an empty text, or a reference to a secret: {form}"),
            "quote" => value::QUOTE.to_owned(),
            _ if matches!(self.node.data, Data::List(_)) => {
                "write one value, without the brackets of a list".to_owned()
            }
            _ if self
                .node
                .text()
                .is_some_and(|text| text.contains("{{") || text.contains("${")) =>
            {
                format!("write {form}: expressions of other tools are not filled in")
            }
            _ if self.node.text().is_some_and(|text| text.starts_with('{')) => {
                "take the quotes away: in them it is text".to_owned()
            }
            _ if keys.len() == 1 && !is_tried && nearest(&keys[0], ["env", "file"]).is_some() => {
                did_you_mean(&keys[0], ["env", "file"]).unwrap_or_default()
            }
            _ if any(&["vault", "sops", "secret", "ssm", "command"]) => format!(
                "write {form}: undrift reads nothing else, so let the job put the secret there"
            ),
            _ if !is_reference && any(&["template", "format", "string"]) => {
                "write `{text: '...'}` for text with parameters in braces".to_owned()
            }
            _ if is_reference || is_tried || any(&["env", "file", "var", "text"]) => {
                format!("write exactly one of {form}")
            }
            _ => format!("put it in quotes if it is text; a secret is exactly one of {form}"),
        };
        let at = self.key.map_or_else(|| self.span(), |key| key.span.clone());
        Finding::error(code, format!("{} {message}", self.name()), at).with_help(Some(help))
    }

    fn unknown(&self, name: &str) -> Finding {
        let span = self.node.get(name).map_or_else(|| self.span(), |(key, _)| key.span.clone());
        let what = if self.depth == 0 && self.key.is_none() { "key" } else { "field" };
        let meant = self.meant(name);
        let (code, message) = match meant {
            Some(Meaning::NotYet) => ("not-supported", format!("`{name}` is not supported yet")),
            Some(Meaning::Foreign(tool)) => {
                ("unknown-field", format!("`{name}` is a key of {tool}, not of undrift"))
            }
            // It may be anything, so that it is not quoted.
            _ if !is_name(name) => ("unknown-field", format!("an unknown {what}")),
            _ => ("unknown-field", format!("unknown {what} `{name}`")),
        };
        let help = match meant {
            Some(meant) => Some(self.as_written(name, meant)),
            None if is_name(name) => {
                self.of_other_scope(name).or_else(|| self.known_instead_of(name))
            }
            None => Some(did_you_mean(name, self.property_names()).unwrap_or_else(|| {
                "names are made of letters, digits and `_`; check the quotes around it".to_owned()
            })),
        };
        Finding::error(code, message, span).with_help(help)
    }

    /// Help for `name`, with what was written as its value where that has to change too.
    fn as_written(&self, name: &str, meant: Meaning) -> String {
        let help = meant.help();
        let Some((key, node)) = self.node.get(name) else { return help };
        if let (Meaning::Write(_), Some(path)) =
            (meant, node.text().filter(|path| path.contains('/')))
        {
            return help.replace("acme/**", path);
        }
        if let Meaning::Field(field) = meant {
            let spot = self.at(key, node, field);
            let schema = spot.schema;
            let is_list = crate::kind::is_list(schema) && !matches!(node.data, Data::List(_));
            let is_mapping = schema["properties"].is_object() && matches!(node.data, Data::List(_));
            let expected = if is_list { "array" } else { "object" };
            let shape = || spot.instead(&[expected]).1.map(|shape| format!("{help}, and {shape}"));
            let option = || spot.option().map(|option| format!("write `{field}: {option}`"));
            let is_open = Field::of(schema).secrecy == Secrecy::Open;
            let whole = if is_list || is_mapping { shape() } else { option() };
            return whole.filter(|_| is_open).unwrap_or(help);
        }
        let number = || Some(Level::parse(&node.to_json())?.word);
        let level = node.text().and_then(value::level).or_else(number).unwrap_or("maintainer");
        match (meant, &node.data) {
            (Meaning::Opposite(field), Data::Bool(value)) => format!("write `{field}: {}`", !value),
            (Meaning::Level(field), Data::Bool(true)) => format!("write `{field}: enabled`"),
            (Meaning::Level(field), Data::Bool(false)) => format!("write `{field}: disabled`"),
            _ => help.replace("access_level: maintainer", &format!("access_level: {level}")),
        }
    }

    /// Whether it is an empty key and what belongs to it is beside it.
    fn has_strays(&self) -> bool {
        let parent = self.parent.zip(self.key).filter(|_| !self.is_item);
        parent.is_some_and(|((node, schema), key)| !strays(node, schema, key).is_empty())
    }

    /// Whether an unknown name probably means the missing `property`. That is reported once.
    fn has_another_name_for(&self, property: &str) -> bool {
        let known = self.property_names();
        let is_in_guard =
            |(key, value): &(Key, Node)| self.at(key, value, &key.name).guarded().is_some();
        if property == "at" && self.node.entries().iter().any(is_in_guard) {
            return true;
        }
        let names = self.node.entries().iter().map(|(key, _)| key.name.as_str());
        names.take(MOST_COMPARED).any(|name| {
            !known.contains(&name)
                && match self.meant(name) {
                    Some(Meaning::Foreign(_)) => true,
                    // What tells the entry from others belongs elsewhere, or to several entries.
                    Some(Meaning::Write(_)) if self.is_item && self.tells_apart(property) => true,
                    Some(meant) => meant.field() == Some(property),
                    None => likely(name, &known) == [property],
                }
        })
    }

    /// The scope whose documents have the section `name`, or this field of the section, if it is
    /// not this scope.
    fn of_other_scope(&self, name: &str) -> Option<String> {
        let is_container = self.root["properties"].get("unlisted").is_some();
        let mut everywhere = kinds::everywhere().filter(|_| is_container);
        if self.depth == 1 && self.key.is_some_and(|key| key.name == "unlisted") {
            let list = everywhere.find(|of| of.section == name && of.shape == Shape::List);
            if let Some(of) = list.filter(|of| of.only_edits()) {
                let all = plural(of.noun);
                return Some(format!(
                    "leave it out: {all} that no manifest lists stay as they are"
                ));
            }
            let owner = list.map(|of| of.home.scope);
            let owner = owner.or((name == PROJECTS).then_some(Scope::Group))?;
            return Some(format!(
                "only a {0} has this: write it in the document of a {0}",
                owner.noun()
            ));
        }
        if self.depth == 0 {
            let other = everywhere.find(|section| section.section == name)?;
            let is_rule = self.root["properties"].get("for").is_some();
            let rule = match other.home.scope {
                Scope::Project if is_rule => "; write a rule without `for: Group` for projects",
                Scope::Project => BY_RULE,
                Scope::Group => "",
            };
            return Some(format!("only a {} has this section{rule}", other.home.scope.noun()));
        }
        let other = everywhere
            .find(|of| of.section == self.section && of.table().get(name).is_some())
            .filter(|_| self.is_of_section())?;
        let rule = self.root["properties"].get("for").filter(|_| other.home.scope == Scope::Group);
        let rule = match (rule, other.home.scope) {
            (Some(_), _) => "; write `for: Group` for a rule about groups",
            (None, Scope::Project) if !self.is_item => BY_RULE,
            (None, _) => "",
        };
        Some(format!("only a {} has this field{rule}", other.home.scope.noun()))
    }

    /// The scope that has the entry's first identity, a word, if this one does not.
    fn is_only_elsewhere(&self) -> bool {
        let of = kinds::everywhere().find(|of| of.section == self.section);
        let name = of.and_then(|of| of.identity.first()).filter(|_| self.is_item);
        let found = name.and_then(|name| self.node.get(name).map(|(key, node)| (name, key, node)));
        found.is_some_and(|(name, key, node)| self.at(key, node, name).other_home().is_some())
    }

    /// Whether a key of the mapping is unknown.
    fn has_unknown(&self) -> bool {
        let known = &self.schema["properties"];
        self.node.entries().iter().any(|(key, _)| known.get(&key.name).is_none())
    }

    /// Whether the position is a section or one of its entries.
    fn is_of_section(&self) -> bool {
        self.depth == usize::from(!self.section.is_empty()) + usize::from(self.is_item)
    }

    /// The known name that an unknown one probably means.
    fn known_instead_of(&self, name: &str) -> Option<String> {
        let known = self.current_names();
        // A hint must not lead to a key that is there already.
        let written: BTreeSet<_> = self.node.entries().iter().map(|(key, _)| &*key.name).collect();
        let open: Vec<_> = known.iter().copied().filter(|known| !written.contains(known)).collect();
        let inner = self.node.get(name).map_or(&[][..], |(_, value)| value.entries());
        if !inner.is_empty() && inner.iter().all(|(key, _)| known.contains(&key.name.as_str())) {
            let place = match self.key {
                None => "at the top of the document".to_owned(),
                Some(_) if self.is_item => "in the entry".to_owned(),
                Some(key) => format!("below `{}:`", key.name),
            };
            return Some(format!("take `{name}:` away: its fields belong directly {place}"));
        }
        if name == "state" {
            let of = kinds::everywhere().find(|of| self.depth == 1 && of.section == self.section);
            return Some(match of.filter(|of| of.is_removable()) {
                Some(of) => format!("write `{}: null` to remove it", of.section),
                None => {
                    "leave it out: entries of lists have a `state`, and whole documents".to_owned()
                }
            });
        }
        if let Some((section, field)) = name.split_once('.').filter(|(own, _)| known.contains(own))
        {
            return Some(format!("write `{field}` below `{section}:`"));
        }
        if name.starts_with("x-") || name.starts_with('.') {
            return Some("no key is hidden: set an anchor where its value is first used, or share it by a `kind: Profile`".to_owned());
        }
        let of_entry = &self.root["properties"][&*self.section]["items"]["properties"];
        if let Some(list) = self.key.filter(|_| self.is_item && !self.is_of_section())
            && of_entry.get(name).is_some()
        {
            return Some(format!("write it beside `{}`, not within it", list.name));
        }
        // `unlisted` and `match` are no sections, although they have fields of such names.
        let is_section = |key: &Key| !["unlisted", "match"].contains(&key.name.as_str());
        // A field of an entry that is none there never means a field elsewhere.
        let homes = if self.key.is_none_or(is_section) && !self.is_item {
            let is_of_itself =
                |of: crate::kind::Section| of.section == self.section && of.is_in_object();
            let is_within = self.depth > 0 && !kinds::everywhere().any(is_of_itself);
            homes(name, self.root, is_within)
        } else {
            Vec::new()
        };
        let near = nearest(name, open.iter().copied());
        let likely = match (near, homes.len()) {
            (Some(near), _) => vec![near],
            (None, 1 | 2) => Vec::new(),
            (None, _) => likely(name, &open),
        };
        let is_of_any = |name: &&str| words::OF_ENTRIES.contains(name);
        let by_place = || self.by_place(name).filter(|_| near.is_none());
        if let Some(missing) = by_place() {
            Some(format!("did you mean `{missing}`, which is missing here?"))
        } else if let Some(entry) = self.entry_example().filter(|_| {
            let is_alone = self.is_item && self.node.entries().len() == 1;
            is_alone && likely.is_empty() && homes.is_empty() && self.is_of_section()
        }) {
            Some(format!("write its fields, as in `- {entry}`"))
        } else if (1..=MOST_LIKELY).contains(&likely.len()) {
            let meant = format!("did you mean {}?", alternatives(&likely));
            let shape = if let [only] = likely[..] { self.shape_of(name, only) } else { None };
            Some(shape.map_or(meant.clone(), |shape| format!("{meant} {shape}")))
        } else if !homes.is_empty() {
            Some(format!("`{name}` belongs {}", homes.join(" or ")))
        } else if let Some(near) = self.setting_near(name) {
            Some(format!("did you mean `{near}` below `settings:`?"))
        } else if let [only] =
            known.iter().filter(|known| !is_of_any(known)).collect::<Vec<_>>()[..]
            && open.contains(only)
        {
            Some(format!("did you mean `{only}`?"))
        } else if open.len() <= MOST_NAMES && !open.iter().all(is_of_any) {
            Some(format!("it can be {}", alternatives(&open)))
        } else if known.contains(&"extra") {
            let place = self.key.map_or("", |key| &key.name);
            Some(format!(
                "`undrift explain {place}` lists what there is; only what the API has and undrift does not know goes below `extra:`"
            ))
        } else {
            // The top of a document.
            let kind = self.node.get("kind").and_then(|(_, kind)| kind.text());
            kind.map(|kind| {
                format!("`undrift explain {}` lists what there is", kind.to_lowercase())
            })
        }
    }

    /// How the list that stands under `name` must be written for the field `meant`, which is none.
    fn shape_of(&self, name: &str, meant: &str) -> Option<String> {
        let (key, node) = self.node.get(name)?;
        let spot = self.at(key, node, meant);
        let kind = spot.schema["type"].as_str()?;
        let is_other = matches!(node.data, Data::List(_)) && kind != "array";
        let is_open = Field::of(spot.schema).secrecy == Secrecy::Open;
        spot.instead(&[kind]).1.filter(|_| is_other && is_open)
    }

    /// The field of an entry that an unknown name stands for by its place.
    fn by_place(&self, name: &str) -> Option<&'static str> {
        let of = kinds::everywhere()
            .find(|of| of.section == self.section)
            .filter(|_| self.is_item && self.is_of_section())?;
        let keys = self.node.entries().iter().map(|(key, _)| &*key.name);
        words::by_place(of, keys).filter(|(only, _)| *only == name).map(|(_, field)| field)
    }

    /// The setting that a key at the top of a document is nearly the same as.
    fn setting_near(&self, name: &str) -> Option<&str> {
        let settings = self.root["properties"]["settings"]["properties"].as_object();
        let settings = settings.filter(|_| self.key.is_none())?;
        nearest(name, settings.keys().map(String::as_str))
    }

    /// The known meaning of an unknown key.
    fn meant(&self, name: &str) -> Option<Meaning> {
        let kind = self.root["properties"].get("kind").map(|kind| &kind["enum"][0]);
        let places = match (self.key, kind.and_then(Json::as_str)) {
            (Some(key), _) if key.name == "unlisted" => {
                let own = words::meant(&["unlisted"], name);
                let field = words::meant(&[words::TOP], name).filter(|of| of.field().is_some());
                return own.or(field
                    .filter(|of| self.property_names().contains(&of.field().unwrap_or_default())));
            }
            (Some(key), Some(_)) if self.is_of_section() => vec![&*key.name, words::ANY],
            (Some(key), _) => vec![&*key.name],
            (None, Some(kind)) => vec![kind, words::TOP],
            (None, None) => vec![self.root["title"].as_str().unwrap_or_default()],
        };
        // The field may be there already; then the word means something else.
        let fits = |meant: &Meaning| match meant {
            Meaning::Field(field) => {
                self.property_names().contains(field) && self.node.get(field).is_none()
            }
            _ => true,
        };
        words::meant(&places, name).filter(fits)
    }
}

/// The unknown names in `node` that belong below its empty `key`, and are indented as it is.
fn strays<'d>(node: &'d Node, schema: &Json, key: &Key) -> Vec<&'d str> {
    let is_empty = || node.get(&key.name).is_some_and(|(_, value)| value.data == Data::Null);
    let Some(below) = schema["properties"].get(&key.name).filter(|_| is_empty()) else {
        return Vec::new();
    };
    if !below["properties"].is_object() && !below["items"]["properties"].is_object() {
        return Vec::new();
    }
    let knows = |schema: &Json, name: &str| schema["properties"].get(name).is_some();
    let is_stray =
        |name: &&str| !knows(schema, name) && (knows(below, name) || knows(&below["items"], name));
    node.entries().iter().map(|(key, _)| &*key.name).filter(is_stray).collect()
}

/// The fault of an empty key to which `strays` belong.
fn emptied(key: &Key, strays: &[&str]) -> Finding {
    let message = format!("`{}` is empty: what belongs to it is not indented", key.name);
    let help = format!("indent {} deeper than `{}:`", listed(strays), key.name);
    Finding::error("null", message, key.span.clone()).with_help(Some(help))
}

/// Other places of a document where a key is known, as the end of a sentence that starts with "it
/// belongs": no other entries for what `is_within` one.
fn homes(name: &str, root: &Json, is_within: bool) -> Vec<String> {
    let knows = |schema: &Json| schema["properties"].get(name).is_some();
    // Entries may have a field of the same name, which is meant less often.
    if knows(root) {
        return vec!["at the top of the document".to_owned()];
    }
    let mut homes = Vec::new();
    for (section, schema) in root["properties"].as_object().into_iter().flatten() {
        if section != "unlisted" && knows(schema) {
            homes.push(format!("below `{section}:`"));
        } else if knows(&schema["items"]) && !is_within {
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
