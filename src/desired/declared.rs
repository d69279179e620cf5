//! The fields of one entry, compact: a large organisation declares them by the million.

use std::borrow::Cow;

use crate::{
    origin::Sourced,
    value::{Fields, Value},
};

/// The name of a field: one of a table's, or one that was written below `extra:`.
pub type Name = Cow<'static, str>;

/// Named values with their origins, in the order of their names. A sorted list, because a map
/// spends more on its nodes than a handful of fields takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared(Vec<(Name, Sourced<Value>)>);

impl Declared {
    /// The field `name`.
    pub fn get(&self, name: &str) -> Option<&Sourced<Value>> {
        self.at(name).ok().map(|at| &self.0[at].1)
    }

    /// Whether there is a field `name`.
    pub fn contains_key(&self, name: &str) -> bool {
        self.at(name).is_ok()
    }

    /// Puts a field in, in place of one with the same name.
    pub fn insert(&mut self, name: impl Into<Name>, field: Sourced<Value>) {
        let name = name.into();
        match self.at(&name) {
            Ok(at) => self.0[at].1 = field,
            Err(at) => self.0.insert(at, (name, field)),
        }
    }

    /// Every name with its field.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Sourced<Value>)> {
        self.0.iter().map(|(name, field)| (&**name, field))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Sourced<Value>)> {
        self.0.iter_mut().map(|(name, field)| (&**name, field))
    }

    /// Every name.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// The fields without their origins.
    pub fn values(&self) -> Fields {
        self.iter().map(|(name, field)| (name.to_owned(), field.value.clone())).collect()
    }

    /// Gives back what was set aside for more fields. For when no more come.
    #[must_use]
    pub fn compact(mut self) -> Self {
        self.0.shrink_to_fit();
        self
    }

    fn at(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| (**other).cmp(name))
    }
}

impl<N: Into<Name>> FromIterator<(N, Sourced<Value>)> for Declared {
    fn from_iter<I: IntoIterator<Item = (N, Sourced<Value>)>>(fields: I) -> Self {
        let mut declared = Self::default();
        for (name, field) in fields {
            declared.insert(name, field);
        }
        declared
    }
}
