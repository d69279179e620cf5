//! Templates: `{text: 'https://{name}.example.org:{port}'}`.
//!
//! `{name}` is replaced by a parameter; `{{` and `}}` are braces. There are no functions and no
//! conditions. If the field does not accept text, the result is read as a number or a boolean.
//! `{env:NAME}`, `{file:PATH}`, and parameters that are references stay secrets, so they are only
//! for fields that take a reference.
//!
//! The name of a variable or file may depend on the path too: `{env: 'DEPLOY_{name}'}`. That is
//! only for declared containers: whoever may create one that a rule includes would choose the
//! secret.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::rules::{FEW, Layers};
use crate::{
    catalogue::words::{self, Meaning},
    field::Secrecy,
    kind::{Section, forms, is_list},
    manifest::read::{
        document::{Body, FilledName},
        layers::BUILT_IN,
    },
    origin::{Layer, Origin, Sourced},
    secret::{Data, Piece, Reference, written},
    text::{is_name, likely, nearest},
    value::{Json, Value},
};

/// The parameters of one group or project.
#[derive(Debug)]
pub(super) struct Words<'w> {
    path: &'w Sourced<Arc<str>>,
    layers: &'w Layers<'w>,
    /// The secrets whose names it filled in.
    named: RefCell<BTreeSet<FilledName>>,
    /// The parameters that texts used.
    used: RefCell<BTreeMap<Arc<str>, Sourced<Value>>>,
}

/// Why a template cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfilled {
    pub(super) message: String,
    pub(super) help: String,
    /// The parameter that is not given, if that is why.
    lacks: Option<String>,
}

impl Unfilled {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), lacks: None }
    }

    /// `%{name}`, which is not for undrift to fill in.
    fn of_service(name: &str) -> Self {
        let message = format!("`%{{{name}}}` is for the service to fill in, not a parameter");
        Self::new(message, format!("double its braces within `text:`: `%{{{{{name}}}}}`"))
    }
}

impl<'w> Words<'w> {
    pub(super) fn new(path: &'w Sourced<Arc<str>>, layers: &'w Layers<'_>) -> Self {
        Self { path, layers, named: RefCell::default(), used: RefCell::default() }
    }

    /// Adds the parameters that texts used, and the secrets whose names were filled in.
    pub(super) fn add_to(self, body: &mut Body) {
        body.named = self.named.into_inner();
        body.params = self.used.into_inner();
    }

    /// Whether a fault of `template` is reported where the parameter would have to be given.
    pub(super) fn is_missed(&self, template: &Unfilled) -> bool {
        template.lacks.as_ref().is_some_and(|name| self.layers.missed.contains(&**name))
    }

    /// The path of the group or project.
    pub(super) fn path(&self) -> &'w str {
        &self.path.value
    }

    /// The value of the parameter `name`.
    fn word(&self, name: &str) -> Option<Piece> {
        let path = self.path();
        let (group, own) = path.rsplit_once('/').unwrap_or(("", path));
        let shown = match name {
            "path" => path.to_owned(),
            "name" => own.to_owned(),
            "group" if group.is_empty() => return None,
            "group" => group.to_owned(),
            "path_slug" => slug(path),
            other => {
                return match source(other) {
                    Some(source) => Some(Piece::Secret(source)),
                    None => Some(match &self.param(other)?.value {
                        Value::Secret(source) => Piece::Secret(source.clone()),
                        value => Piece::Shown(value.text().unwrap_or_default().to_owned()),
                    }),
                };
            }
        };
        Some(Piece::Shown(shown))
    }

    /// The parameter `name`, which is used.
    fn param(&self, name: &str) -> Option<&'w Sourced<Value>> {
        let (name, value) = self.layers.params.get_key_value(name)?;
        self.used.borrow_mut().entry(name.clone()).or_insert_with(|| value.clone());
        Some(value)
    }

    /// The text of `template` with its parameters filled in.
    ///
    /// # Errors
    /// If a parameter is missing, or a brace is not part of a parameter.
    fn fill(&self, template: &str, origin: &Origin) -> Result<Value, Unfilled> {
        let mut filled = Filled::default();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            let is_of_service = rest[..at].ends_with('%');
            filled.push(Piece::Shown(rest[..at].to_owned()));
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                self.expression(&template[..template.len() - after.len() - 2], brace, after)?;
                filled.push(Piece::Shown(brace.to_owned()));
                rest = after;
                continue;
            }
            let name = rest.split_once('}').filter(|_| brace == "{");
            let Some((name, after)) = name else {
                let what = if brace == "{" { "is never closed" } else { "closes nothing" };
                let help = "write `{{` and `}}` for braces; `{name}` fills in what it names";
                return Err(Unfilled::new(format!("a `{brace}` that {what}"), help));
            };
            let unknown = || match is_of_service && is_name(name) {
                true => Unfilled::of_service(name),
                false => self.unknown(name),
            };
            filled.push(match self.word(name).ok_or_else(unknown)? {
                Piece::Secret(source) => Piece::Secret(self.named(&source, origin)?),
                shown @ Piece::Shown(_) => shown,
            });
            rest = after;
        }
        filled.push(Piece::Shown(rest.to_owned()));
        Ok(filled.value())
    }

    /// Refuses `{{ name }}`, which other tools fill in.
    fn expression(&self, before: &str, brace: &str, after: &str) -> Result<(), Unfilled> {
        let inner = after.split_once("}}").map_or("", |(inner, _)| inner);
        let name = inner.trim().split([' ', '|', '.']).next().unwrap_or_default();
        let is_meant = inner.starts_with(' ') && !before.ends_with(['{', '$', '%']);
        if brace == "{" && is_meant && self.word(name).is_some() {
            let message = "`{{` is a brace, and fills in nothing";
            return Err(Unfilled::new(message, format!("write `{{{name}}}`")));
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> Unfilled {
        if name == "group" {
            return Unfilled::new("`{group}` has no value", "there is no group above it");
        }
        let params = self.layers.params.keys().take(FEW).map(|name| &**name);
        let known: Vec<_> = BUILT_IN.into_iter().chain(params).collect();
        let help = match nearest(name, known.iter().copied()) {
            _ if name.trim_start().starts_with(['"', '\'']) => {
                "write `{{` and `}}` for the braces of JSON".into()
            }
            _ if name.contains('{') => {
                "write `}` behind the first name, and `{{` for a brace that is part of the text".into()
            }
            _ if name.starts_with("env") => "write `{env:NAME}` for an environment variable".into(),
            _ if is_upper_case(name) => {
                format!("write `{{env:{name}}}` for an environment variable, without a `$` before it")
            }
            _ if let Some(near) = words::alias(&["template"], name).and_then(Meaning::field) => {
                format!("write `{{{near}}}`")
            }
            Some(near) => format!("did you mean `{{{near}}}`?"),
            None => match likely(name, &known)[..] {
                [near] => format!("did you mean `{{{near}}}`?"),
                _ if !is_name(name) => "write `{{` and `}}` for braces that are part of the text".into(),
                _ => "give it in `params:`; without them there are `{path}`, `{name}`, `{group}` and `{path_slug}`".into(),
            },
        };
        let message = match is_name(name) {
            true => format!("there is no parameter `{name}`"),
            false if name.contains('{') => "a `{` that is never closed".to_owned(),
            false => "what is between `{` and `}` is no parameter".to_owned(),
        };
        Unfilled { message, help, lacks: Some(name.to_owned()) }
    }

    /// The first parameter in `template` that is a secret.
    fn secret_in<'t>(&self, template: &'t str) -> Option<&'t str> {
        let mut inner = parameters(template);
        inner.find(|name| matches!(self.word(name), Some(Piece::Secret(_))))
    }

    /// What fills in `template`. A word for the path, or for a part of it, stands for this container
    /// alone.
    fn words_of(&self, template: &str) -> Vec<String> {
        let words = parameters(template).filter_map(|name| match (name, self.word(name)?) {
            ("path" | "name" | "path_slug", _) => Some(self.path().to_owned()),
            (_, Piece::Shown(text)) => Some(text),
            (_, Piece::Secret(_)) => None,
        });
        words.collect()
    }

    /// `source` with its name filled in. Every such name is recorded here, because another container
    /// may come to the same one.
    fn named(&self, source: &Reference, origin: &Origin) -> Result<Reference, Unfilled> {
        let name = match source {
            Reference::Env(name) | Reference::File(name) if source.is_template() => name,
            _ => return Ok(source.clone()),
        };
        // Only a rule declares it.
        if self.path.origin.layer <= Layer::Profile {
            let message = "its path would choose the secret, and no document declares it";
            let help = "name the secret without `{...}`, or take `undeclared: include` away: whoever may create a project would choose one";
            return Err(Unfilled::new(message, help));
        }
        // Looked for first: two of them could name each other.
        if self.secret_in(name).is_some() {
            let help =
                "name it by `{path}`, `{name}`, `{group}`, `{path_slug}` and plain parameters";
            return Err(Unfilled::new("a secret cannot name another one", help));
        }
        let text = self.fill(name, origin)?.text().unwrap_or_default().to_owned();
        let secret = match source {
            Reference::Env(_) => Reference::Env(variable_name(&text)),
            _ => Reference::File(text.clone()),
        };
        let from = [text].into_iter().chain(self.words_of(name)).collect();
        let filled = FilledName { secret: secret.clone(), from, origin: origin.clone() };
        self.named.borrow_mut().insert(filled);
        Ok(secret)
    }

    /// `json`, as written, with every reference and template filled in.
    fn data(&self, json: &Json, origin: &Origin) -> Result<Data, Unfilled> {
        let value = match written(json) {
            Some(("text", template)) => self.fill(&template, origin)?,
            Some((from, name)) => match Reference::of(from, name) {
                Some(source) => Value::Secret(self.named(&source, origin)?),
                None => json.clone().into(),
            },
            None => json.clone().into(),
        };
        let item = |json: &Json| self.data(json, origin);
        Ok(match value {
            Value::Secret(source) => Data::Secret(Box::new(source)),
            Value::Plain(Json::Array(items)) => {
                Data::List(items.iter().map(item).collect::<Result<_, _>>()?)
            }
            Value::Plain(Json::Object(object)) => {
                let entries = object.iter().map(|(key, json)| Ok((key.clone(), item(json)?)));
                Data::Map(entries.collect::<Result<_, _>>()?)
            }
            Value::Plain(json) => Data::Plain(json.to_string()),
            Value::File(_) => unreachable!("a template is no upload"),
        })
    }

    /// Fills in every template in the value of `field`, which is called `name` in `of`.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub(super) fn fill_field(
        &self,
        of: Section,
        name: &str,
        field: &mut Sourced<Value>,
    ) -> Result<(), Unfilled> {
        let Sourced { value, origin } = field;
        let json = match &mut *value {
            Value::Secret(source) => {
                *source = self.named(source, origin)?;
                return Ok(());
            }
            Value::File(path) => {
                if let Reference::File(filled) =
                    self.named(&Reference::File(path.clone()), origin)?
                {
                    *path = filled;
                }
                return Ok(());
            }
            Value::Plain(json) => json,
        };
        let Some(spec) = of.table().get(name).filter(|spec| !spec.has_secret_rows()) else {
            *value = self.data(json, origin)?.into();
            return Ok(());
        };
        if let Some(template) = template(&spec.schema, json)
            && spec.field.secrecy() != Secrecy::Open
        {
            *value = self.fill(template, origin)?;
            return match (spec.field.secrecy(), &*value) {
                (Secrecy::Reference, Value::Plain(_)) => Err(Unfilled::new(
                    "this text refers to no secret",
                    "write `{env: NAME}`, or `{env:NAME}` in the text",
                )),
                _ => Ok(()),
            };
        }
        self.fill_in(&spec.schema, json, origin)?;
        forms::normalise(spec, value);
        Ok(())
    }

    fn fill_in(&self, schema: &Json, json: &mut Json, origin: &Origin) -> Result<(), Unfilled> {
        if let Some(template) = template(schema, json) {
            let Value::Plain(Json::String(text)) = self.fill(template, origin)? else {
                let secret = self.secret_in(template).filter(|name| is_name(name));
                let secret =
                    secret.map_or("what is filled in".into(), |name| format!("`{{{name}}}`"));
                let message = format!("{secret} is a secret, and this field takes none");
                let help = "use another parameter: a secret may only be in a field that also takes `{env: NAME}`";
                return Err(Unfilled::new(message, help));
            };
            *json = read_as(schema, text);
            return Ok(());
        }
        match json {
            Json::Object(object) => object.iter_mut().try_for_each(|(name, json)| {
                within(schema, name).map_or(Ok(()), |schema| self.fill_in(schema, json, origin))
            }),
            Json::Array(items) => {
                items.iter_mut().try_for_each(|item| self.fill_in(&schema["items"], item, origin))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
        }
    }
}

/// Whether `name` is written as variables of the environment are.
fn is_upper_case(name: &str) -> bool {
    is_name(name) && name.len() > 1 && !name.contains(|c: char| c.is_ascii_lowercase())
}

/// The secret that `env:NAME` or `file:PATH` within braces names.
fn source(parameter: &str) -> Option<Reference> {
    let (from, name) = parameter.split_once(':')?;
    Reference::of(from, name.to_owned())
}

/// The secrets that `json` names as written, also in its templates.
pub(in crate::manifest) fn sources(json: &Json) -> Vec<Reference> {
    match (written(json), json) {
        (Some(("text", template)), _) => parameters(&template).filter_map(source).collect(),
        (Some((from, name)), _) => Reference::of(from, name).into_iter().collect(),
        (None, Json::Array(items)) => items.iter().flat_map(sources).collect(),
        (None, Json::Object(object)) => object.values().flat_map(sources).collect(),
        (None, _) => Vec::new(),
    }
}

/// A text that is being filled in.
#[derive(Default)]
struct Filled(Vec<Piece>);

impl Filled {
    fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (Some(Piece::Shown(text)), Piece::Shown(more)) => *text += &more,
            (_, Piece::Shown(text)) if text.is_empty() => {}
            (_, piece) => self.0.push(piece),
        }
    }

    fn value(mut self) -> Value {
        match &mut self.0[..] {
            [] => "".into(),
            [Piece::Shown(text)] => Json::from(std::mem::take(text)).into(),
            [Piece::Secret(source)] => Value::Secret(source.clone()),
            _ => Value::Secret(Reference::Text(self.0)),
        }
    }
}

/// The template in place of a value of `schema`.
fn template<'j>(schema: &Json, json: &'j Json) -> Option<&'j str> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    object.get("text").filter(|_| schema.get("properties").is_none())?.as_str()
}

/// The names in the braces of `template`.
fn parameters(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| part.split('}').next())
}

/// The schema of the value of `name` in a mapping that is a value of `schema`, or in the place of a list.
fn within<'s>(schema: &'s Json, name: &str) -> Option<&'s Json> {
    if is_list(schema) { Some(schema) } else { schema["properties"].get(name) }
}

/// Whether a value of `schema` contains a template.
pub(super) fn has_template(schema: &Json, json: &Json) -> bool {
    if template(schema, json).is_some() {
        return true;
    }
    match json {
        Json::Object(object) => object.iter().any(|(name, json)| {
            within(schema, name).is_some_and(|schema| has_template(schema, json))
        }),
        Json::Array(items) => items.iter().any(|item| has_template(&schema["items"], item)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// `text` as a value of `schema`: a number or boolean if the schema does not accept text.
fn read_as(schema: &Json, text: String) -> Json {
    fn all<'j>(list: &'j Json, one: &'j Json) -> &'j [Json] {
        list.as_array().map_or(std::slice::from_ref(one), Vec::as_slice)
    }
    let choices = if schema.get("anyOf").is_some() { &schema["anyOf"] } else { &schema["oneOf"] };
    let takes_text = all(choices, schema).iter().any(|choice| {
        let mut types = all(&choice["type"], &choice["type"]).iter();
        types.any(|kind| kind.as_str().is_none_or(|kind| kind == "string"))
    });
    if takes_text {
        return text.into();
    }
    let read = text.parse().ok().filter(|json: &Json| json.is_number() || json.is_boolean());
    read.unwrap_or_else(|| text.into())
}

/// `text` in the name of a variable: other characters than letters and digits become `_`.
pub(super) fn variable_name(text: &str) -> String {
    text.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// A path as a part of a host name: lower case, at most 63 characters, only letters, digits and
/// `-`.
fn slug(path: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let slug: String = path.chars().map(plain).take(63).collect();
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Layer, Origin};

    fn path(written: &str) -> Sourced<Arc<str>> {
        let origin = Origin::new("a.yaml", 1, 1, Layer::Project);
        Sourced { value: written.into(), origin }
    }

    fn params(given: &[(&str, &str)]) -> BTreeMap<Arc<str>, Sourced<Value>> {
        let origin = || Origin::new("a.yaml", 1, 1, Layer::Project);
        let param = |(name, value): &(&str, &str)| {
            ((*name).into(), Sourced { value: (*value).into(), origin: origin() })
        };
        given.iter().map(param).collect()
    }

    #[test]
    fn a_template_is_filled_in() {
        let params = params(&[("port", "8080"), ("empty", ""), ("brace", "{port}")]);
        let layers = Layers { params, ..Layers::default() };
        let path = path("Acme/web_team/Shop.api");
        let words = Words::new(&path, &layers);
        for (template, filled) in [
            ("", ""),
            ("plain", "plain"),
            ("https://{name}:{port}/", "https://Shop.api:8080/"),
            ("{path}", "Acme/web_team/Shop.api"),
            ("{group}/leads", "Acme/web_team/leads"),
            ("{path_slug}", "acme-web-team-shop-api"),
            ("{{{port}}}", "{8080}"),
            ("{{port}}", "{port}"),
            ("[0-9]{{3}}{empty}", "[0-9]{3}"),
            // Inserted text is not a template.
            ("{brace}", "{port}"),
            ("ä{port}ö", "ä8080ö"),
        ] {
            assert_eq!(words.fill(template, &path.origin), Ok(filled.into()), "{template}");
        }
    }

    #[test]
    fn a_secret_stays_a_reference() {
        let mut layers = Layers { params: params(&[("user", "bot")]), ..Layers::default() };
        let token = Reference::Env("TOKEN".into());
        let mut secret = layers.params["user"].clone();
        secret.value = Value::Secret(token.clone());
        layers.params.insert("token".into(), secret);
        let path = path("acme/shop");
        let words = Words::new(&path, &layers);
        for alone in ["{token}", "{env:TOKEN}"] {
            assert_eq!(
                words.fill(alone, &path.origin),
                Ok(Value::Secret(token.clone())),
                "{alone}"
            );
        }
        let template = "https://{user}:{token}@git/{path}/{{}}";
        let Ok(Value::Secret(filled)) = words.fill(template, &path.origin) else {
            panic!("no secret")
        };
        assert_eq!(filled.masked().unwrap(), "https://bot:***@git/acme/shop/{}");
        let written = filled.to_string();
        assert_eq!(written, "https://bot:{env:TOKEN}@git/acme/shop/{{}}");
        assert_eq!(
            words.fill(&written, &path.origin),
            Ok(Value::Secret(filled)),
            "it can be written again"
        );
    }

    #[test]
    fn the_reason_why_a_template_cannot_be_filled_in_is_given() {
        let layers = Layers::default();
        let path = path("acme");
        let words = Words::new(&path, &layers);
        for (template, message) in [
            ("{port}", "there is no parameter `port`"),
            ("{{ name }}", "`{{` is a brace, and fills in nothing"),
            ("{Name}", "there is no parameter `Name`"),
            ("{group}", "`{group}` has no value"),
            ("{a b}", "what is between `{` and `}` is no parameter"),
            ("{}", "what is between `{` and `}` is no parameter"),
            ("{open", "a `{` that is never closed"),
            ("shut}", "a `}` that closes nothing"),
            ("{{x}", "a `}` that closes nothing"),
        ] {
            assert_eq!(
                words.fill(template, &path.origin).unwrap_err().message,
                message,
                "{template}"
            );
        }
    }

    #[test]
    fn a_slug_is_a_valid_part_of_a_host_name() {
        assert_eq!(slug("A/b.C_d"), "a-b-c-d");
        assert_eq!(slug(&format!("{}/{}", "a".repeat(62), "b")), "a".repeat(62));
    }
}
