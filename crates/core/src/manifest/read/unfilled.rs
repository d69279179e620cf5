//! Finds texts with placeholders of other tools, which undrift sends unchanged.

use std::sync::LazyLock;

use jsonschema::is_valid;
use serde::Deserialize;

use super::{DocumentReader, container::parse_reference, templates::template_text};
use crate::{
    catalogue::variables::check_maskable,
    field::Secrecy,
    kind::Spec,
    manifest::faults::{Pattern, texts, words},
    secret::judge,
    value::Json,
    yaml::{self, MappingKey, Node, NodeValue},
};

/// The syntax of something that undrift does not fill in.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), default, deny_unknown_fields)]
struct UnfilledSyntax {
    of: Vec<TextPlace>,
    but: Option<Pattern>,
    text: Pattern,
    fault: [&'static str; 4],
}

/// Where a text is written.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum TextPlace {
    /// In a field that takes no reference to a secret.
    Open,
    /// In a field that takes one.
    Secret,
    /// In a parameter.
    Param,
    /// Below `extra:`.
    Extra,
}

impl TextPlace {
    /// The place of the values of a field.
    pub(super) fn for_field(spec: &Spec) -> Self {
        match spec.field.secrecy() {
            Secrecy::Open if !spec.has_secret_rows() => Self::Open,
            _ => Self::Secret,
        }
    }
}

static ROWS: LazyLock<Vec<UnfilledSyntax>> =
    LazyLock::new(|| yaml::built_in!("manifest/read/unfilled"));

impl DocumentReader<'_, '_> {
    /// Reports a credential in `value`, which no field of a kind has.
    pub(super) fn check_other_value(&mut self, place: TextPlace, key: &MappingKey, value: &Node) {
        if let Some(what) = texts(value).into_iter().find_map(judge::find_credential) {
            let words = words![name = key.name, what = what.noun_phrase()];
            self.findings.report(texts::PLAIN_CREDENTIAL, key.span.clone(), words);
        }
        self.check_filled(place, key, value, &Json::Bool(true));
    }

    /// Reports the first text in `value` that contains a placeholder of another tool. `key` is its
    /// key; `schema` must accept the value.
    pub(super) fn check_filled(
        &mut self,
        place: TextPlace,
        key: &MappingKey,
        value: &Node,
        schema: &Json,
    ) {
        // A template without a brace fills in nothing.
        let template =
            template_text(value).filter(|text| !text.text().unwrap_or_default().contains('{'));
        let value = template.unwrap_or(value);
        let sign = texts(value).into_iter().find_map(|text| find_syntax(place, key, text));
        if let Some((row, sign)) = sign.filter(|_| is_valid(schema, &value.to_json())) {
            let [severity, code, message, help] = row.fault;
            let texts = [severity, code, message, help, ""];
            // The name is not quoted where it may be a password.
            self.findings.report(texts, key.span.clone(), words![name = key.name, sign]);
        }
    }
}

/// True if `value` is an expression of another tool that the entry `node` masks: a check reports it.
pub(super) fn is_masked_expression(node: &Node, value: &Node) -> bool {
    let is_on = |name: &str| node[name].data == NodeValue::Bool(true);
    let text = value.text().filter(|_| is_on("masked") || is_on("masked_and_hidden"));
    text.is_some_and(|text| text.contains("{{") && check_maskable(text, is_on("raw")).is_err())
}

/// The first row that fits `text`, and the sign that it finds.
fn find_syntax<'t>(
    place: TextPlace,
    key: &MappingKey,
    text: &'t str,
) -> Option<(&'static UnfilledSyntax, &'t str)> {
    // Most texts contain none of these characters, so they are not searched.
    let may_match = text.contains(['{', '$', '[', '<'])
        || ["env", "file:", "vault:"].iter().any(|sign| text.starts_with(sign));
    let mut rows = ROWS.iter().filter(|row| {
        may_match
            && row.of.contains(&place)
            && !row.but.as_ref().is_some_and(|but| but.fits(&key.name))
    });
    rows.find_map(|row| Some((row, row.text.find(text)?)))
}

/// The texts in `value`, without those of templates and references.
fn texts(value: &Node) -> Vec<&str> {
    if template_text(value).is_some() || parse_reference(value).is_some() {
        return Vec::new();
    }
    let inner = value.entries().iter().map(|(_, value)| value).chain(value.items());
    value.text().into_iter().chain(inner.flat_map(texts)).collect()
}
