//! The conditions of a list, built from the filters in a call.

use super::prelude::*;

/// Conditions in SQL, with the values of their parameters.
#[derive(Default)]
pub(crate) struct SqlConditions {
    texts: Vec<Cow<'static, str>>,
    bound_values: Vec<(String, Box<dyn ToSql>)>,
}

impl SqlConditions {
    /// A single condition with its value.
    pub(super) fn with_value(text: &'static str, value: impl ToSql + 'static) -> Self {
        let mut conditions = Self::default();
        conditions.add_with_value(text, Some(value));
        conditions
    }

    /// Adds a condition if `is_added`.
    pub(super) fn add_if(&mut self, is_added: bool, text: impl Into<Cow<'static, str>>) {
        self.texts.extend(is_added.then(|| text.into()));
    }

    /// Adds a condition if its value is `Some`. The value is bound to the first parameter in the
    /// text, such as `:name`.
    pub(super) fn add_with_value<T: ToSql + 'static>(
        &mut self,
        text: impl Into<Cow<'static, str>>,
        value: Option<T>,
    ) {
        let Some(value) = value else { return };
        let text = text.into();
        let name = text.split(':').nth(1).unwrap_or_default();
        let end = name.find(|c: char| !c.is_ascii_alphabetic() && c != '_').unwrap_or(name.len());
        self.bind(&format!(":{}", &name[..end]), value);
        self.texts.push(text);
    }

    pub(super) fn bind(&mut self, name: &str, value: impl ToSql + 'static) {
        self.bound_values.push((name.to_owned(), Box::new(value)));
    }

    /// The `WHERE` clause of a query; empty without conditions.
    pub(super) fn clause(&self) -> String {
        match self.texts.as_slice() {
            [] => String::new(),
            texts => format!(" WHERE {}", texts.join(" AND ")),
        }
    }

    pub(super) fn bound_params(&self) -> Vec<(&str, &dyn ToSql)> {
        self.bound_values.iter().map(|(name, value)| (name.as_str(), value.as_ref())).collect()
    }
}
