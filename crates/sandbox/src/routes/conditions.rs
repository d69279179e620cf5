//! The conditions of a list, put together from the filters in a call.

use std::borrow::Cow;

use rusqlite::ToSql;

/// Conditions in SQL, with the values of their parameters.
#[derive(Default)]
pub(crate) struct SqlConditions {
    texts: Vec<Cow<'static, str>>,
    bound_values: Vec<(&'static str, Box<dyn ToSql>)>,
}

impl SqlConditions {
    /// A condition on one value.
    pub(super) fn with_value(
        text: &'static str,
        name: &'static str,
        value: impl ToSql + 'static,
    ) -> Self {
        Self { texts: vec![text.into()], bound_values: vec![(name, Box::new(value))] }
    }

    /// Adds a condition if `is_added`.
    pub(super) fn add_if(&mut self, is_added: bool, text: impl Into<Cow<'static, str>>) {
        self.texts.extend(is_added.then(|| text.into()));
    }

    /// Adds a condition on a value if it is `Some`.
    pub(super) fn add_with_value(
        &mut self,
        text: impl Into<Cow<'static, str>>,
        name: &'static str,
        value: Option<impl ToSql + 'static>,
    ) {
        self.add_if(value.is_some(), text);
        value.into_iter().for_each(|value| self.bind(name, value));
    }

    pub(super) fn bind(&mut self, name: &'static str, value: impl ToSql + 'static) {
        self.bound_values.push((name, Box::new(value)));
    }

    /// The clause of a query; empty without conditions.
    pub(super) fn clause(&self) -> String {
        match self.texts.as_slice() {
            [] => String::new(),
            texts => format!(" WHERE {}", texts.join(" AND ")),
        }
    }

    pub(super) fn bound_params(&self) -> Vec<(&str, &dyn ToSql)> {
        self.bound_values.iter().map(|(name, value)| (*name, value.as_ref())).collect()
    }
}
