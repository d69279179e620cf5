//! Addresses of managed objects, and the globs that select them.
//!
//! An [`Address`] is `PATH#SECTION/ENTRY`: `acme/shop`, `acme/shop#settings`,
//! `acme/shop#variables/TOKEN@prod%2F*`. The entry part is percent-encoded and never holds a
//! credential. A [`Selector`] is a glob over the path, optionally `#` and one over the section and
//! entry: `*` stays within a path segment, `**` crosses them.

use std::{fmt, sync::Arc};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::text::encode;

/// The name of one managed object. Ordered by path, section and entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "AddressForm")]
pub struct Address {
    /// The full path of the group or project.
    pub path: Arc<str>,
    /// The section of the manifest; `None` for the group or project itself.
    pub section: Option<&'static str>,
    /// The entry within a section that is a list.
    pub entry: Option<String>,
}

impl Address {
    /// The group or project itself.
    pub const fn container(path: Arc<str>) -> Self {
        Self { path, section: None, entry: None }
    }

    /// A whole section of this address's group or project.
    pub fn section(&self, section: &'static str) -> Self {
        Self { path: self.path.clone(), section: Some(section), entry: None }
    }

    /// An entry of this address's section.
    pub fn entry(&self, entry: impl Into<String>) -> Self {
        Self { entry: Some(entry.into()), ..self.clone() }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(section) = self.section {
            write!(f, "#{section}")?;
        }
        if let Some(entry) = &self.entry {
            // `@` between the parts of an identity and `*` for every environment read better as
            // they are, and nothing becomes ambiguous.
            write!(f, "/{}", encode(entry).to_string().replace("%40", "@").replace("%2A", "*"))?;
        }
        Ok(())
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { path, section, entry } = self;
        AddressForm { full: self.to_string(), path, section: *section, entry: entry.as_deref() }
            .serialize(serializer)
    }
}

/// The form that an address serializes to.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Address")]
struct AddressForm<'a> {
    /// The whole address: `PATH`, `PATH#SECTION` or `PATH#SECTION/ENTRY`, the entry
    /// percent-encoded.
    full: String,
    /// The full path of the group or project.
    path: &'a str,
    /// The section of the manifest; `null` for the group or project itself.
    #[serde(serialize_with = "crate::text::word_if_any")]
    section: Option<&'static str>,
    /// The entry within a section that is a list, or `null`.
    entry: Option<&'a str>,
}

/// A glob over addresses.
#[derive(Clone, Debug)]
pub struct Selector {
    written: String,
    path: GlobMatcher,
    rest: Option<GlobMatcher>,
    /// The part of `rest` that is over the section alone.
    section: Option<GlobMatcher>,
}

impl Selector {
    /// Reads `GLOB` or `GLOB#GLOB`.
    ///
    /// # Errors
    /// What is wrong with the glob, as text.
    pub fn parse(written: &str) -> Result<Self, String> {
        let (path, rest) =
            written.split_once('#').map_or((written, None), |(path, rest)| (path, Some(rest)));
        if path.is_empty() {
            return Err("a selector starts with a path, such as `acme/**` or `**#variables`".into());
        }
        let path = glob(&path.to_lowercase())?;
        let section =
            rest.map(|rest| glob(rest.split('/').next().unwrap_or_default())).transpose()?;
        Ok(Self { written: written.to_owned(), path, rest: rest.map(glob).transpose()?, section })
    }

    /// The text that it was read from.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether it is over entries, and not only over what holds them.
    pub fn is_of_entries(&self) -> bool {
        self.written.split_once('#').is_some_and(|(_, rest)| rest.contains('/'))
    }

    /// Whether the project at `path` may hold something selected. Paths are the same in any case.
    pub fn touches(&self, path: &str) -> bool {
        self.path.is_match(path.to_lowercase())
    }

    /// Whether something in the section that `address` names may be selected.
    pub fn touches_section(&self, address: &Address) -> bool {
        self.touches(&address.path)
            && self
                .section
                .as_ref()
                .is_none_or(|glob| address.section.is_none_or(|section| glob.is_match(section)))
    }

    /// Whether `address` is selected: itself, or the section or project that holds it.
    pub fn matches(&self, address: &Address) -> bool {
        if !self.touches(&address.path) {
            return false;
        }
        let Some(rest) = &self.rest else { return true };
        let Some(section) = address.section else { return false };
        let written = address.to_string();
        let written = written.split_once('#').map_or("", |(_, written)| written);
        // An entry may be named as an address writes it, and as a plan shows it.
        let shown =
            address.entry.as_ref().is_some_and(|entry| rest.is_match(format!("{section}/{entry}")));
        rest.is_match(section) || rest.is_match(written) || shown
    }
}

/// A glob that stands alone.
#[derive(Clone, Debug)]
pub struct Glob {
    written: String,
    matcher: GlobMatcher,
}

impl Glob {
    /// A glob over full paths, in any case: `*` matches within a segment, `**` across.
    ///
    /// # Errors
    /// What is wrong with it, as text.
    pub fn over_paths(written: &str) -> Result<Self, String> {
        Ok(Self { written: written.to_owned(), matcher: glob(&written.to_lowercase())? })
    }

    /// A glob over the names of entries, in which `*` stands for any text.
    ///
    /// # Errors
    /// What is wrong with it, as text.
    pub fn over_names(written: &str) -> Result<Self, String> {
        let glob = GlobBuilder::new(written).backslash_escape(true).build();
        let matcher = glob.map_err(|e| e.kind().to_string())?.compile_matcher();
        Ok(Self { written: written.to_owned(), matcher })
    }

    /// The glob that matches nothing but the entry called `name`.
    ///
    /// # Errors
    /// As text, that it is too long for a glob.
    pub fn name(name: &str) -> Result<Self, String> {
        Self::over_names(&globset::escape(name))
    }

    /// The text that it was read from.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether it matches `text`; a path has to be in lower case.
    pub fn matches(&self, text: &str) -> bool {
        self.matcher.is_match(text)
    }
}

fn glob(text: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build();
    glob.map(|g| g.compile_matcher()).map_err(|e| e.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(path: &str, section: Option<&'static str>, entry: Option<&str>) -> Address {
        Address { path: path.into(), section, entry: entry.map(str::to_owned) }
    }

    #[test]
    fn an_address_is_written_in_one_way() {
        assert_eq!(address("acme/shop", None, None).to_string(), "acme/shop");
        let variable = address("acme/shop", Some("variables"), Some("TOKEN@prod/*"));
        assert_eq!(variable.to_string(), "acme/shop#variables/TOKEN@prod%2F*");
    }

    #[test]
    fn a_selector_matches_what_it_names_and_what_that_holds() {
        let variable = address("acme/web/shop", Some("variables"), Some("TOKEN@*"));
        for (selector, selected) in [
            ("acme/web/shop", true),
            ("ACME/web/*", true),
            ("acme/*", false),
            ("acme/**", true),
            ("**#variables", true),
            ("**#variables/*", true),
            ("**#variables/TOKEN@[*]", true),
            ("**#variables/OTHER*", false),
            ("**#hooks", false),
        ] {
            assert_eq!(
                Selector::parse(selector).unwrap().matches(&variable),
                selected,
                "{selector}"
            );
        }
    }

    #[test]
    fn an_entry_is_selected_as_it_is_written_and_as_it_is_shown() {
        let variable = address("acme/shop", Some("variables"), Some("TOKEN@prod/*"));
        for selector in [
            "acme/shop#variables/TOKEN@prod%2F*",
            "acme/shop#variables/TOKEN@prod/*",
            "**#variables/TOKEN@*/*",
        ] {
            assert!(Selector::parse(selector).unwrap().matches(&variable), "{selector}");
        }
    }

    #[test]
    fn a_broken_selector_says_why() {
        assert!(Selector::parse("acme/[").unwrap_err().contains("class"));
        assert!(Selector::parse("#variables").is_err());
    }
}
