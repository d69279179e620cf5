//! Templates: `{text: 'https://{name}.example.org:{port}'}`.
//!
//! `{name}` is replaced by the value of a parameter. `{{` and `}}` are literal braces. There are no
//! functions and no conditions. If the field does not accept text, the result is parsed as a number
//! or a boolean. `{env:NAME}`, `{file:PATH}`, and parameters that are references are not replaced
//! by their values. They are therefore only allowed in fields that accept a reference.
//!
//! The name of a variable or file may be a template too: `{env: 'DEPLOY_{name}'}`. Such a template
//! is only allowed for declared containers. Otherwise, a person who can create a container that a
//! rule includes could choose the secret.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::rules::{ContainerLayers, MAX_LISTED_NAMES};
use crate::{
    catalogue::words::{self, Meaning},
    field::Secrecy,
    kind::{Section, allows_type, forms, is_list},
    manifest::{
        faults::{
            FaultTexts, LocatedFault, NodeFault, NodePosition, PlaceholderValues, placeholders,
            texts,
        },
        read::{
            document::{FilledName, LayerBody},
            layers::BUILT_IN_PARAMS,
        },
    },
    origin::{Layer, Origin, Sourced},
    secret::{Reference, TextPiece, ValueWithSecrets, reference_parts},
    text::{likely_candidate, list_names, looks_like_name},
    value::{Json, Value},
};

/// Fills in the templates of one group or project.
#[derive(Debug)]
pub(super) struct Filler<'w> {
    path: &'w Sourced<Arc<str>>,
    layers: &'w ContainerLayers<'w>,
    /// The secrets whose names were filled in so far.
    filled_names: RefCell<BTreeSet<FilledName>>,
    /// The parameters that templates used so far.
    used_params: RefCell<BTreeMap<Arc<str>, Sourced<Value>>>,
}

/// The error of a template that cannot be filled in.
#[derive(Debug, PartialEq)]
pub(super) struct FillError {
    pub(super) fault: Box<NodeFault>,
    /// The name of the missing parameter, if one is missing.
    missing_param: Option<String>,
}

impl FillError {
    fn new(texts: FaultTexts, origin: &Origin, args: PlaceholderValues<'_>) -> Self {
        let fault = LocatedFault::new(texts, NodePosition::key(origin), args);
        Self { fault: Box::new(fault), missing_param: None }
    }
}

impl<'w> Filler<'w> {
    pub(super) fn new(path: &'w Sourced<Arc<str>>, layers: &'w ContainerLayers<'_>) -> Self {
        Self { path, layers, filled_names: RefCell::default(), used_params: RefCell::default() }
    }

    /// Stores the used parameters, and the secrets whose names were filled in, in `body`.
    pub(super) fn store_uses(self, body: &mut LayerBody) {
        (body.filled_names, body.params) =
            (self.filled_names.into_inner(), self.used_params.into_inner());
    }

    /// True if a profile needs the missing parameter. Another fault reports this at the use of the
    /// profile.
    pub(super) fn is_reported_as_missing(&self, error: &FillError) -> bool {
        let missing_param = error.missing_param.as_deref();
        missing_param.is_some_and(|name| self.layers.missing_params.contains(name))
    }

    /// The path of the group or project.
    pub(super) fn path(&self) -> &'w str {
        &self.path.value
    }

    /// The value of the parameter `name`; `None` if the parameter has no value.
    fn resolve_param(&self, name: &str) -> Option<TextPiece> {
        let path = self.path();
        let (group, last_name) = path.rsplit_once('/').unwrap_or(("", path));
        Some(TextPiece::Shown(match name {
            "path" => path.to_owned(),
            "name" => last_name.to_owned(),
            "group" if group.is_empty() => return None,
            "group" => group.to_owned(),
            "path_slug" => make_slug(path),
            param_name => {
                if let Some(reference) = inline_reference(param_name) {
                    return Some(TextPiece::Secret(reference));
                }
                let (name, param) = self.layers.params.get_key_value(param_name)?;
                self.used_params.borrow_mut().entry(name.clone()).or_insert_with(|| param.clone());
                match &param.value {
                    Value::Secret(reference) => return Some(TextPiece::Secret(reference.clone())),
                    value => value.text().unwrap_or_default().to_owned(),
                }
            }
        }))
    }

    /// Fills in the parameters of `template`.
    ///
    /// # Errors
    /// If a parameter is missing, or a brace is not part of a parameter.
    fn fill_template(&self, template: &str, origin: &Origin) -> Result<Value, FillError> {
        let (mut pieces, mut shown_text) = (Vec::new(), String::new());
        let mut remaining_text = template;
        while let Some(brace_start) = remaining_text.find(['{', '}']) {
            let is_after_percent = remaining_text[..brace_start].ends_with('%');
            shown_text += &remaining_text[..brace_start];
            let brace = &remaining_text[brace_start..=brace_start];
            remaining_text = &remaining_text[brace_start + 1..];
            if let Some(text_after) = remaining_text.strip_prefix(brace) {
                let text_before = &template[..template.len() - text_after.len() - 2];
                let name = expression_name(text_before, text_after).filter(|_| brace == "{");
                if let Some(param) = name.filter(|name| self.resolve_param(name).is_some()) {
                    return Err(FillError::new(texts::DOUBLE_BRACES, origin, placeholders![param]));
                }
                shown_text += brace;
                remaining_text = text_after;
                continue;
            }
            let name = remaining_text.split_once('}').filter(|_| brace == "{");
            let Some((name, text_after)) = name else {
                let problem_texts =
                    if brace == "{" { texts::OPEN_BRACE } else { texts::STRAY_BRACE };
                return Err(FillError::new(problem_texts, origin, &[]));
            };
            match self.resolve_param(name) {
                Some(TextPiece::Secret(reference)) => {
                    let secret = TextPiece::Secret(self.fill_name(&reference, origin)?);
                    pieces.extend([TextPiece::Shown(std::mem::take(&mut shown_text)), secret]);
                }
                Some(TextPiece::Shown(text)) => shown_text += &text,
                None if is_after_percent && looks_like_name(name) => {
                    let fault_texts = texts::PLACEHOLDER_OF_SERVICE;
                    return Err(FillError::new(fault_texts, origin, placeholders![param = name]));
                }
                None => return Err(self.unknown_param_error(name, text_after, origin)),
            }
            remaining_text = text_after;
        }
        pieces.push(TextPiece::Shown(shown_text + remaining_text));
        pieces.retain(|piece| !matches!(piece, TextPiece::Shown(text) if text.is_empty()));
        Ok(match &mut pieces[..] {
            [] => "".into(),
            [TextPiece::Shown(text)] => Json::from(std::mem::take(text)).into(),
            [TextPiece::Secret(reference)] => Value::Secret(reference.clone()),
            _ => Value::Secret(Reference::Text(pieces)),
        })
    }

    /// The error for the unknown parameter `name`. The message also names the unknown parameters in
    /// `text_after`.
    fn unknown_param_error(&self, name: &str, text_after: &str, origin: &Origin) -> FillError {
        if name == "group" {
            return FillError::new(texts::NO_GROUP, origin, &[]);
        }
        let params = self.layers.params.keys().take(MAX_LISTED_NAMES).map(|name| &**name);
        let candidates: Vec<_> = BUILT_IN_PARAMS.into_iter().chain(params).collect();
        let alias = words::find_meaning(&["template"], name).and_then(Meaning::field);
        let near_name = alias.or_else(|| likely_candidate(name, &candidates));
        let problem_texts = match near_name {
            _ if name.trim_start().starts_with(['"', '\'']) => texts::BRACES_OF_JSON,
            _ if name.contains('{') => texts::BRACE_WITHIN,
            _ if name.starts_with("env") => texts::PARAM_LIKE_ENV,
            _ if looks_like_variable(name) => texts::PARAM_LIKE_VARIABLE,
            Some(_) if alias.is_some() => texts::PARAM_ALIAS,
            Some(_) => texts::PARAM_NEAR,
            None if looks_like_name(name) => texts::NO_PARAM,
            None => texts::BRACES_OF_TEXT,
        };
        let near = near_name.unwrap_or_default();
        let mut error = FillError::new(problem_texts, origin, placeholders![param = name, near]);
        if name.contains('{') {
            error.fault.message = "`{` is never closed".to_owned();
        } else if !looks_like_name(name) {
            error.fault.message = "the text between `{` and `}` is not a parameter".to_owned();
        } else {
            let next_names = text_after.split('{').filter_map(|part| Some(part.split_once('}')?.0));
            let unknown_names = next_names.filter(|other| {
                looks_like_name(other) && *other != name && self.resolve_param(other).is_none()
            });
            let names: Vec<_> = std::iter::once(name).chain(unknown_names).collect();
            if names.len() > 1 {
                error.fault.message = format!("unknown parameters {}", list_names(&names));
            }
        }
        FillError { missing_param: Some(name.to_owned()), ..error }
    }

    /// The first parameter in `template` whose value is a secret.
    fn find_secret_param<'t>(&self, template: &'t str) -> Option<&'t str> {
        let mut names = template_params(template);
        names.find(|name| matches!(self.resolve_param(name), Some(TextPiece::Secret(_))))
    }

    /// Fills in the name in `reference`. Records the result for the check for shared secrets.
    fn fill_name(&self, reference: &Reference, origin: &Origin) -> Result<Reference, FillError> {
        let name = match reference {
            Reference::Env(name) | Reference::File(name) if reference.is_template() => name,
            _ => return Ok(reference.clone()),
        };
        // The container has no document, because a rule includes it.
        if self.path.origin.layer <= Layer::Profile {
            return Err(FillError::new(texts::SECRET_OF_INCLUDED, origin, &[]));
        }
        // Check this before filling in, because the names of two secrets could contain each other.
        if self.find_secret_param(name).is_some() {
            return Err(FillError::new(texts::SECRET_IN_SECRET, origin, &[]));
        }
        let text = self.fill_template(name, origin)?.text().unwrap_or_default().to_owned();
        let secret = match reference {
            Reference::Env(_) => Reference::Env(variable_name(&text)),
            _ => Reference::File(text.clone()),
        };
        // `path`, `name` and `path_slug` depend on this container. Record the path of the container
        // instead of their values.
        let inserted_texts =
            template_params(name).filter_map(|param| match (param, self.resolve_param(param)?) {
                ("path" | "name" | "path_slug", _) => Some(self.path().to_owned()),
                (_, TextPiece::Shown(text)) => Some(text),
                (_, TextPiece::Secret(_)) => None,
            });
        let recorded_texts = [text].into_iter().chain(inserted_texts).collect();
        let filled_name = FilledName {
            secret: secret.clone(),
            inserted_texts: recorded_texts,
            origin: origin.clone(),
        };
        self.filled_names.borrow_mut().insert(filled_name);
        Ok(secret)
    }

    /// Fills in every reference and template of `json`, a value without a schema.
    fn fill_json(&self, json: &Json, origin: &Origin) -> Result<ValueWithSecrets, FillError> {
        let value = match reference_parts(json) {
            Some(("text", template)) => self.fill_template(&template, origin)?,
            Some((source_word, name)) => match Reference::parse(source_word, name) {
                Some(reference) => Value::Secret(self.fill_name(&reference, origin)?),
                None => json.clone().into(),
            },
            None => json.clone().into(),
        };
        Ok(match value {
            Value::Secret(reference) => ValueWithSecrets::Secret(Box::new(reference)),
            Value::Plain(Json::Array(items)) => {
                let items = items.iter().map(|item| self.fill_json(item, origin));
                ValueWithSecrets::List(items.collect::<Result<_, _>>()?)
            }
            Value::Plain(Json::Object(object)) => {
                let entries = object
                    .iter()
                    .map(|(key, json)| Ok((key.clone(), self.fill_json(json, origin)?)));
                ValueWithSecrets::Map(entries.collect::<Result<_, _>>()?)
            }
            Value::Plain(json) => ValueWithSecrets::Plain(json.to_string()),
            Value::File(_) => unreachable!("a template cannot be uploaded"),
        })
    }

    /// Fills in every template in the value of `field`, which has the name `name` in `section`.
    ///
    /// # Errors
    /// Like [`fill_template`](Self::fill_template).
    pub(super) fn fill_field(
        &self,
        section: Section,
        name: &str,
        field: &mut Sourced<Value>,
    ) -> Result<(), FillError> {
        let Sourced { value, origin } = field;
        let json = match &mut *value {
            Value::Secret(reference) => {
                *reference = self.fill_name(reference, origin)?;
                return Ok(());
            }
            Value::File(path) => {
                if let Reference::File(filled_path) =
                    self.fill_name(&Reference::File(path.clone()), origin)?
                {
                    *path = filled_path;
                }
                return Ok(());
            }
            Value::Plain(json) => json,
        };
        let Some(spec) = section.spec(name).filter(|spec| !spec.has_secret_rows()) else {
            *value = self.fill_json(json, origin)?.into();
            return Ok(());
        };
        if let Some(template) = template_text(&spec.schema, json)
            && spec.field.secrecy() != Secrecy::Open
        {
            *value = self.fill_template(template, origin)?;
            let is_plain = matches!(value, Value::Plain(_));
            if spec.field.secrecy() == Secrecy::Reference && is_plain {
                return Err(FillError::new(texts::NO_SECRET, origin, &[]));
            }
            return Ok(());
        }
        self.fill_value(&spec.schema, json, origin)?;
        forms::normalize_spelling(spec, value);
        Ok(())
    }

    fn fill_value(&self, schema: &Json, json: &mut Json, origin: &Origin) -> Result<(), FillError> {
        if let Some(template) = template_text(schema, json) {
            let filled_value = self.fill_template(template, origin).map_err(|mut error| {
                // The field accepts no secret, so the help must not suggest a reference.
                if error.missing_param.is_some()
                    && error.fault.help.as_ref().is_some_and(|help| help.contains("{env:"))
                {
                    error.fault.help = Some(texts::PARAM_IN_OPEN_FIELD[3].to_owned());
                }
                error
            })?;
            let Value::Plain(Json::String(text)) = filled_value else {
                let secret = self.find_secret_param(template).filter(|name| looks_like_name(name));
                let secret =
                    secret.map_or("the filled-in text".into(), |name| format!("`{{{name}}}`"));
                return Err(FillError::new(texts::SECRET_IN_TEXT, origin, placeholders![secret]));
            };
            *json = parse_scalar(schema, text);
            return Ok(());
        }
        match json {
            Json::Object(object) => object.iter_mut().try_for_each(|(name, json)| {
                inner_schema(schema, name)
                    .map_or(Ok(()), |schema| self.fill_value(schema, json, origin))
            }),
            Json::Array(items) => items
                .iter_mut()
                .try_for_each(|item| self.fill_value(&schema["items"], item, origin)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
        }
    }
}

/// The name in `{{ name }}`. `text_before` and `text_after` are the texts before and after the two
/// opening braces. Other tools fill in such a name. In templates of undrift, the braces are
/// literal.
fn expression_name<'t>(text_before: &str, text_after: &'t str) -> Option<&'t str> {
    let (inner, _) = text_after.split_once("}}")?;
    let is_expression = inner.starts_with(' ') && !text_before.ends_with(['{', '$', '%']);
    inner.split(['|', '.']).next().map(str::trim).filter(|_| is_expression)
}

/// True if `name` looks like the name of an environment variable.
fn looks_like_variable(name: &str) -> bool {
    looks_like_name(name) && name.len() > 1 && !name.contains(|c: char| c.is_ascii_lowercase())
}

/// Parses `env:NAME` or `file:PATH` within braces.
fn inline_reference(parameter: &str) -> Option<Reference> {
    let (source_word, name) = parameter.split_once(':')?;
    Reference::parse(source_word, name.to_owned())
}

/// The references to secrets in `json`, also in its templates, with unfilled names.
pub(in crate::manifest) fn find_references(json: &Json) -> Vec<Reference> {
    match (reference_parts(json), json) {
        (Some(("text", template)), _) => {
            template_params(&template).filter_map(inline_reference).collect()
        }
        (Some((source_word, name)), _) => Reference::parse(source_word, name).into_iter().collect(),
        (None, Json::Array(items)) => items.iter().flat_map(find_references).collect(),
        (None, Json::Object(object)) => object.values().flat_map(find_references).collect(),
        (None, _) => Vec::new(),
    }
}

/// The text of the template `json`, a value of `schema`; `None` if `json` is not a template.
fn template_text<'j>(schema: &Json, json: &'j Json) -> Option<&'j str> {
    let object = json.as_object().filter(|object| object.len() == 1)?;
    object.get("text").filter(|_| schema.get("properties").is_none())?.as_str()
}

/// The texts between the braces of `template`.
fn template_params(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| part.split('}').next())
}

/// The schema of the key `name` in a value of `schema`, which is a mapping or a list form.
fn inner_schema<'s>(schema: &'s Json, name: &str) -> Option<&'s Json> {
    if is_list(schema) { Some(schema) } else { schema["properties"].get(name) }
}

/// True if a value of `schema` contains a template.
pub(super) fn has_template(schema: &Json, json: &Json) -> bool {
    if template_text(schema, json).is_some() {
        return true;
    }
    match json {
        Json::Object(object) => object.iter().any(|(name, json)| {
            inner_schema(schema, name).is_some_and(|schema| has_template(schema, json))
        }),
        Json::Array(items) => items.iter().any(|item| has_template(&schema["items"], item)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// Parses `text` as a value of `schema`: a number or boolean if the schema does not accept text.
fn parse_scalar(schema: &Json, text: String) -> Json {
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Json::as_array);
    let mut choices = choices.map_or(std::slice::from_ref(schema), Vec::as_slice).iter();
    let takes_text =
        choices.any(|choice| choice.get("type").is_none() || allows_type(choice, "string"));
    let parsed_json = text.parse().ok().filter(|_| !takes_text);
    let scalar = parsed_json.filter(|json: &Json| json.is_number() || json.is_boolean());
    scalar.unwrap_or_else(|| text.into())
}

/// Converts `text` for the name of a variable: all characters except letters and digits become `_`.
pub(super) fn variable_name(text: &str) -> String {
    text.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

/// Converts a path to a label of a host name: lower case, at most 63 characters, only letters,
/// digits and `-`.
fn make_slug(path: &str) -> String {
    let slug = path.replace(|c: char| !c.is_ascii_alphanumeric(), "-").to_ascii_lowercase();
    let slug: String = slug.chars().take(63).collect();
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Layer, Origin};

    fn path(text: &str) -> Sourced<Arc<str>> {
        let origin = Origin::new("a.yaml", 1, 1, Layer::Project);
        Sourced { value: text.into(), origin }
    }

    fn params(values: &[(&str, &str)]) -> BTreeMap<Arc<str>, Sourced<Value>> {
        let new_origin = || Origin::new("a.yaml", 1, 1, Layer::Project);
        let new_param = |(name, value): &(&str, &str)| {
            ((*name).into(), Sourced { value: (*value).into(), origin: new_origin() })
        };
        values.iter().map(new_param).collect()
    }

    #[test]
    fn a_template_is_filled_in() {
        let params = params(&[("port", "8080"), ("empty", ""), ("brace", "{port}")]);
        let layers = ContainerLayers { params, ..ContainerLayers::default() };
        let path = path("Acme/web_team/Shop.api");
        let filler = Filler::new(&path, &layers);
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
            assert_eq!(
                filler.fill_template(template, &path.origin),
                Ok(filled.into()),
                "{template}"
            );
        }
    }

    #[test]
    fn a_secret_stays_a_reference() {
        let mut layers =
            ContainerLayers { params: params(&[("user", "bot")]), ..ContainerLayers::default() };
        let token = Reference::Env("TOKEN".into());
        let mut secret = layers.params["user"].clone();
        secret.value = Value::Secret(token.clone());
        layers.params.insert("token".into(), secret);
        let path = path("acme/shop");
        let filler = Filler::new(&path, &layers);
        for template in ["{token}", "{env:TOKEN}"] {
            assert_eq!(
                filler.fill_template(template, &path.origin),
                Ok(Value::Secret(token.clone())),
                "{template}"
            );
        }
        let template = "https://{user}:{token}@git/{path}/{{}}";
        let Ok(Value::Secret(filled)) = filler.fill_template(template, &path.origin) else {
            panic!("no secret")
        };
        assert_eq!(filled.masked_json().unwrap(), "https://bot:***@git/acme/shop/{}");
        let written = filled.to_string();
        assert_eq!(written, "https://bot:{env:TOKEN}@git/acme/shop/{{}}");
        assert_eq!(
            filler.fill_template(&written, &path.origin),
            Ok(Value::Secret(filled)),
            "a filled-in template can be read again"
        );
    }

    #[test]
    fn a_fault_explains_why_a_template_cannot_be_filled_in() {
        let layers = ContainerLayers::default();
        let path = path("acme");
        let filler = Filler::new(&path, &layers);
        for (template, message) in [
            ("{port}", "unknown parameter `port`"),
            ("{{ name }}", "`{{` is a literal brace, which fills in nothing"),
            ("{Name}", "unknown parameter `Name`"),
            ("{port} {name} {host} {port}", "unknown parameters `port`, `host`"),
            ("{group}", "`{group}` has no value"),
            ("{a b}", "the text between `{` and `}` is not a parameter"),
            ("{}", "the text between `{` and `}` is not a parameter"),
            ("{open", "`{` is never closed"),
            ("shut}", "`}` closes nothing"),
            ("{{x}", "`}` closes nothing"),
        ] {
            assert_eq!(
                filler.fill_template(template, &path.origin).unwrap_err().fault.message,
                message,
                "{template}"
            );
        }
    }

    #[test]
    fn a_slug_is_a_valid_part_of_a_host_name() {
        assert_eq!(make_slug("A/b.C_d"), "a-b-c-d");
        assert_eq!(make_slug(&format!("{}/{}", "a".repeat(62), "b")), "a".repeat(62));
    }
}
