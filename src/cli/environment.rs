//! The environment variables as a value, so that tests can replace them.

use std::collections::BTreeMap;

use super::{CommandError, Result};
use crate::{digest::DigestKey, secret::Secret};

/// The minimum length of a key, in bytes.
const MIN_KEY_BYTES: usize = 16;

/// The environment variables whose values are UTF-8.
#[derive(Clone, Default)]
pub(super) struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process. Values that are not UTF-8 are left out: they can be neither
    /// addresses nor tokens.
    pub(super) fn from_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
        )
    }

    /// The value of a variable. An empty value is treated as not set, because CI systems and shells often
    /// set variables to empty texts.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The value of the variable `name`, as a key for digests. The key must be long. With a short
    /// key, somebody who has a digest could try all keys, and so find the digested value.
    ///
    /// # Errors
    /// If the value is shorter than [`MIN_KEY_BYTES`].
    pub(super) fn digest_key(&self, name: &str) -> Result<Option<DigestKey>> {
        let Some(key) = self.get(name) else { return Ok(None) };
        if key.len() < MIN_KEY_BYTES {
            return Err(CommandError::usage(format!(
                "{name} is shorter than {MIN_KEY_BYTES} bytes"
            ))
            .help("use a long random text, for example of `openssl rand -hex 32`"));
        }
        Ok(Some(DigestKey::new(&Secret::new(key))))
    }

    /// The first of `names` that is set, with its value.
    pub(super) fn first_set<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    /// All variables.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        self.0.clone()
    }

    /// Adds `variables`, which replace those with the same names.
    #[cfg(any(test, feature = "sandbox"))]
    #[must_use]
    pub(super) fn with_variables(
        mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.0.extend(variables);
        self
    }
}

/// Shows only the names of the variables, because values may be secrets.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
