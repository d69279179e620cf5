//! Reports placeholders of other tools in texts, because undrift does not fill them in.

use std::sync::LazyLock;

use jsonschema::is_valid;
use serde::Deserialize;

use super::{DocumentReader, container::parse_reference, templates::template_text};
use crate::{
    catalogue::variables::{check_maskable, is_expression},
    field::Secrecy,
    kind::FieldSpec,
    manifest::faults::{Pattern, placeholders, texts},
    secret::judge,
    value::Json,
    yaml::{self, MappingKey, Node, NodeValue},
};

/// The syntax of a placeholder of another tool. The head of `unfilled.yaml` explains the fields.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), default, deny_unknown_fields)]
struct PlaceholderSyntax {
    of: Vec<TextPlace>,
    but: Option<Pattern>,
    text: Pattern,
    fault: [&'static str; 4],
}

/// The place of a text.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum TextPlace {
    /// A field that accepts no reference to a secret.
    Open,
    /// A field that accepts a reference to a secret.
    Secret,
    /// A parameter.
    Param,
    /// Below `extra:`.
    Extra,
}

impl TextPlace {
    /// The place of the values of a field.
    pub(super) fn for_field(spec: &FieldSpec) -> Self {
        match spec.field.secrecy() {
            Secrecy::Open if !spec.has_secret_rows() => Self::Open,
            _ => Self::Secret,
        }
    }
}

static PLACEHOLDER_SYNTAXES: LazyLock<Vec<PlaceholderSyntax>> =
    LazyLock::new(|| yaml::built_in!("manifest/read/unfilled"));

impl DocumentReader<'_, '_> {
    /// Reports a credential or a placeholder in a parameter or below `extra:`, where no schema
    /// describes the value.
    pub(super) fn check_untyped_value(&mut self, place: TextPlace, key: &MappingKey, value: &Node) {
        if let Some(credential) = plain_texts(value).into_iter().find_map(judge::find_credential) {
            let args = placeholders![name = key.name, what = credential.noun_phrase()];
            self.findings.report(texts::PLAIN_CREDENTIAL, key.span.clone(), args);
        }
        self.check_placeholders(place, key, value, &Json::Bool(true));
    }

    /// Reports the first text in `value` that contains a placeholder of another tool. `key` is the
    /// key of `value`. If `schema` refuses the value, reports nothing.
    pub(super) fn check_placeholders(
        &mut self,
        place: TextPlace,
        key: &MappingKey,
        value: &Node,
        schema: &Json,
    ) {
        // A template without braces is a plain text.
        let template =
            template_text(value).filter(|text| !text.text().unwrap_or_default().contains('{'));
        let value = template.unwrap_or(value);
        let syntax_match =
            plain_texts(value).into_iter().find_map(|text| find_syntax(place, key, text));
        if let Some((syntax, sign)) = syntax_match.filter(|_| is_valid(schema, &value.to_json())) {
            let [severity, code, message, help] = syntax.fault;
            let texts = [severity, code, message, help, ""];
            // Help texts do not quote a name that may be a password.
            self.findings.report(texts, key.span.clone(), placeholders![name = key.name, sign]);
        }
    }
}

/// True if `value` is an expression of another tool in the masked entry `node`. The check of masked
/// values reports this fault.
pub(super) fn is_masked_expression(node: &Node, value: &Node) -> bool {
    let is_on = |name: &str| node[name].data == NodeValue::Bool(true);
    let text = value.text().filter(|_| is_on("masked") || is_on("masked_and_hidden"));
    text.is_some_and(|text| is_expression(text) && check_maskable(text, is_on("raw")).is_err())
}

/// The first syntax that matches `text`, with the matched part.
fn find_syntax<'t>(
    place: TextPlace,
    key: &MappingKey,
    text: &'t str,
) -> Option<(&'static PlaceholderSyntax, &'t str)> {
    // Most texts contain none of these characters. For such a text, the patterns are not tried.
    let may_match = text.contains(['{', '$', '[', '<'])
        || ["env", "file:", "vault:"].iter().any(|sign| text.starts_with(sign));
    let mut syntaxes = PLACEHOLDER_SYNTAXES.iter().filter(|syntax| {
        may_match
            && syntax.of.contains(&place)
            && !syntax.but.as_ref().is_some_and(|excluded_key| excluded_key.is_match(&key.name))
    });
    syntaxes.find_map(|syntax| Some((syntax, syntax.text.find(text)?)))
}

/// The texts in `value`, except for templates and references.
fn plain_texts(value: &Node) -> Vec<&str> {
    if template_text(value).is_some() || parse_reference(value).is_some() {
        return Vec::new();
    }
    value.text().into_iter().chain(value.children().flat_map(plain_texts)).collect()
}
