//! Addresses of managed objects, and the globs that select them.
//!
//! An [`Address`] is `PATH#SECTION/ENTRY`: `acme/shop`, `acme/shop#settings`,
//! `acme/shop#variables/TOKEN@prod%2F*`. The entry is percent-encoded and never contains a
//! credential. A [`Selector`] is a glob for the path, optionally followed by `#` and a glob for the
//! section and entry: `*` stays within a path segment, `**` crosses segments.

mod globs;

use std::{fmt, sync::Arc};

use globset::{GlobBuilder, GlobMatcher};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{steps, text::encode};

pub use globs::{GlobIndex, Globs};

/// The address of a managed object. Addresses are ordered by path, section and entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[schemars(with = "AddressForm")]
pub struct Address {
    /// The full path of the group or project.
    pub path: Arc<str>,
    /// The section of the manifest; `None` for the group or project itself.
    pub section: Option<&'static str>,
    /// The entry in a list section.
    pub entry: Option<String>,
}

impl Address {
    /// The group or project itself.
    pub const fn container(path: Arc<str>) -> Self {
        Self { path, section: None, entry: None }
    }

    /// A whole section of this address's group or project.
    pub fn with_section(&self, section: &'static str) -> Self {
        Self { path: self.path.clone(), section: Some(section), entry: None }
    }

    /// An entry of this address's section.
    pub fn with_entry(&self, entry: impl Into<String>) -> Self {
        Self { entry: Some(entry.into()), ..self.clone() }
    }
}

/// The paths of the groups above `path`, nearest first.
pub fn groups_above(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(index, _)| &path[..index])
}

/// The path of the group that `path` is directly in.
pub fn parent_group_path(path: &str) -> Option<&str> {
    groups_above(path).next()
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(section) = self.section {
            write!(f, "#{section}")?;
        }
        if let Some(entry) = &self.entry {
            // Do not encode `@` between the parts of an identity and `*` for every environment.
            // Both characters are more readable unencoded, and the address stays unambiguous.
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

/// The serialized form of an address.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Address")]
struct AddressForm<'a> {
    /// The whole address: `PATH`, `PATH#SECTION` or `PATH#SECTION/ENTRY`, with a percent-encoded
    /// entry.
    full: String,
    /// The full path of the group or project.
    path: &'a str,
    /// The section of the manifest; `null` for the group or project itself.
    #[serde(serialize_with = "crate::text::serialize_optional_word")]
    section: Option<&'static str>,
    /// The entry in a list section, or `null`.
    entry: Option<&'a str>,
}

/// A glob that selects addresses.
#[derive(Clone, Debug)]
pub struct Selector {
    pattern: String,
    path_glob: GlobMatcher,
    object_glob: Option<GlobMatcher>,
    /// The glob for the section alone; `None` for any section.
    section_glob: Option<GlobMatcher>,
}

impl Selector {
    /// Reads `GLOB` or `GLOB#GLOB`.
    ///
    /// # Errors
    /// If a glob is invalid.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (path, object_pattern) =
            text.split_once('#').map_or((text, None), |(path, glob)| (path, Some(glob)));
        if object_pattern == Some("") {
            return Err("it has nothing after `#`".into());
        }
        if path.is_empty() {
            return Err("a selector starts with a path, such as `acme/**` or `**#variables`".into());
        }
        let path_glob = compile_path_glob(&path.to_lowercase())?;
        let object_glob = object_pattern.map(compile_object_glob).transpose()?;
        // If the first slash is in braces, any section may contain a selected entry.
        let section = object_pattern.and_then(|pattern| pattern.split('/').next());
        let section_glob = section.and_then(|section| compile_glob(section, true).ok());
        Ok(Self { pattern: text.to_owned(), path_glob, object_glob, section_glob })
    }

    /// The original text of the selector.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The pattern for paths.
    pub fn path_pattern(&self) -> &str {
        self.pattern.split('#').next().unwrap_or_default()
    }

    /// True if the selector has a pattern for entries.
    pub fn selects_entries(&self) -> bool {
        self.pattern.split_once('#').is_some_and(|(_, object_pattern)| object_pattern.contains('/'))
    }

    /// True if the group or project at `path` may contain a selected object. Paths are
    /// case-insensitive.
    pub fn matches_path(&self, path: &str) -> bool {
        steps::count_step();
        self.path_glob.is_match(path.to_lowercase())
    }

    /// True if the section of `address` may contain a selected object.
    pub fn matches_section(&self, address: &Address) -> bool {
        self.matches_path(&address.path)
            && self
                .section_glob
                .as_ref()
                .is_none_or(|glob| address.section.is_none_or(|section| glob.is_match(section)))
    }

    /// True if the selector selects `address`, or the section or container that contains the
    /// object.
    pub fn matches(&self, address: &Address) -> bool {
        if !self.matches_path(&address.path) {
            return false;
        }
        let Some(object_glob) = &self.object_glob else { return true };
        let Some(section) = address.section else { return false };
        let address_text = address.to_string();
        let object_text = address_text.split_once('#').map_or("", |(_, suffix)| suffix);
        // An entry can be selected as in addresses (percent-encoded) and as in plans (unencoded).
        let is_selected_as_shown = address
            .entry
            .as_ref()
            .is_some_and(|entry| object_glob.is_match(format!("{section}/{entry}")));
        object_glob.is_match(section) || object_glob.is_match(object_text) || is_selected_as_shown
    }
}

/// A single glob.
#[derive(Clone, Debug)]
pub struct Glob {
    pattern: String,
    matcher: Matcher,
}

#[derive(Clone, Debug)]
enum Matcher {
    Exact(String),
    Glob(GlobMatcher),
}

impl Glob {
    /// A case-insensitive glob for full paths: `*` stays within a segment, `**` crosses segments.
    ///
    /// # Errors
    /// If the glob is invalid.
    pub fn for_paths(text: &str) -> Result<Self, String> {
        let matcher = Matcher::Glob(compile_path_glob(&text.to_lowercase())?);
        Ok(Self { pattern: text.to_owned(), matcher })
    }

    /// A glob for the names of entries, in which `*` matches any text.
    ///
    /// # Errors
    /// If the glob is invalid.
    pub fn for_names(text: &str) -> Result<Self, String> {
        let matcher = Matcher::Glob(compile_glob(text, false)?);
        Ok(Self { pattern: text.to_owned(), matcher })
    }

    /// The glob that only matches the entry called `name`.
    pub fn exact(name: &str) -> Self {
        // Within brackets, the backslash is not an escape character.
        let pattern = globset::escape(name).replace('\\', r"\\");
        Self { pattern, matcher: Matcher::Exact(name.to_owned()) }
    }

    /// The original text of the glob.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The text with which every match starts; for paths, in lower case.
    pub fn literal_prefix(&self) -> &str {
        &self.pattern[..literal_length(&self.pattern)]
    }

    /// True if the glob matches `text`. Paths must be in lower case.
    pub fn matches(&self, text: &str) -> bool {
        steps::count_step();
        match &self.matcher {
            Matcher::Exact(name) => name == text,
            Matcher::Glob(glob) => glob.is_match(text),
        }
    }
}

/// Characters with a special meaning in globs.
const SPECIAL_CHARACTERS: [char; 8] = ['*', '?', '[', ']', '{', '}', '!', '\\'];

/// The position of the first special character of a glob.
fn literal_length(glob: &str) -> usize {
    glob.find(SPECIAL_CHARACTERS).unwrap_or(glob.len())
}

/// True if `glob` has no special character, so that it matches only its own text.
pub fn is_literal(glob: &str) -> bool {
    literal_length(glob) == glob.len()
}

/// Compiles a glob for paths.
fn compile_path_glob(text: &str) -> Result<GlobMatcher, String> {
    path_glob_fault(text).map_or_else(|| compile_glob(text, true), Err)
}

/// Compiles a glob for a section, or for a section and an entry. The name of an entry may be a URL.
fn compile_object_glob(text: &str) -> Result<GlobMatcher, String> {
    let parts = text.split_once('/');
    let parts = parts.filter(|(section, entry)| !section.is_empty() && !entry.is_empty());
    let fault = path_glob_fault(parts.map_or(text, |(section, _)| section));
    fault.map_or_else(|| compile_glob(text, true), Err)
}

/// The maximum length of a glob in bytes.
const MAX_GLOB_BYTES: usize = 4096;
/// The maximum nesting of `{` in a glob.
const MAX_GLOB_DEPTH: usize = 8;
/// The maximum number of texts that the `{a,b}` of a glob expand to.
const MAX_GLOB_CHOICES: usize = 1000;

/// The reason why a glob cannot match any path.
fn path_glob_fault(text: &str) -> Option<String> {
    Some(match text {
        _ if text.starts_with(['/', '!']) => format!("it starts with `{}`", &text[..1]),
        _ if text.contains(['\\', '#']) => "it must not contain `\\` or `#`".to_owned(),
        _ if text.len() > 1 && text.ends_with('/') => {
            "it ends with `/`: write `/**` for everything below".to_owned()
        }
        _ if text.contains("://") => {
            "it has the address of the service in front of the path".to_owned()
        }
        _ => return None,
    })
}

/// Compiles every glob. If `stays_in_segment` is true, `*` does not match `/`. The function
/// enforces limits, because the glob compiler panics if a glob is too large, and expanding choices
/// needs memory.
fn compile_glob(text: &str, stays_in_segment: bool) -> Result<GlobMatcher, String> {
    steps::count_step();
    if text.len() > MAX_GLOB_BYTES {
        return Err(format!("it is longer than {MAX_GLOB_BYTES} bytes"));
    }
    let (depth, choices) = measure_braces(text);
    if depth > MAX_GLOB_DEPTH {
        return Err(format!("more than {MAX_GLOB_DEPTH} braces are within each other"));
    }
    if choices > MAX_GLOB_CHOICES {
        return Err(format!("its braces expand to more than {MAX_GLOB_CHOICES} texts"));
    }
    let glob = GlobBuilder::new(text)
        .literal_separator(stays_in_segment)
        .backslash_escape(true)
        .build()
        .map_err(|error| error.kind().to_string())?;
    Ok(glob.compile_matcher())
}

/// The depth of nested braces in a glob, and the number of texts to which the braces expand. Both
/// numbers are upper bounds, because escaped braces are counted too.
fn measure_braces(glob: &str) -> (usize, usize) {
    // For the innermost open brace: the number of texts of its earlier choices, and of its current choice.
    // `outer_counts` has these two numbers for each outer brace.
    let (mut earlier_choices, mut choices) = (0_usize, 1_usize);
    let (mut outer_counts, mut max_depth) = (Vec::new(), 0);
    let unclosed = glob.bytes().filter(|byte| *byte == b'{').map(|_| b'}');
    for byte in glob.bytes().chain(unclosed) {
        match byte {
            b'{' => {
                outer_counts.push((
                    std::mem::take(&mut earlier_choices),
                    std::mem::replace(&mut choices, 1),
                ));
                max_depth = max_depth.max(outer_counts.len());
            }
            b',' if !outer_counts.is_empty() => {
                earlier_choices =
                    earlier_choices.saturating_add(std::mem::replace(&mut choices, 1));
            }
            b'}' => {
                if let Some((outer_earlier_choices, outer_choices)) = outer_counts.pop() {
                    choices = outer_choices.saturating_mul(earlier_choices.saturating_add(choices));
                    earlier_choices = outer_earlier_choices;
                }
            }
            _ => {}
        }
    }
    (max_depth, choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(path: &str, section: Option<&'static str>, entry: Option<&str>) -> Address {
        Address { path: path.into(), section, entry: entry.map(str::to_owned) }
    }

    #[test]
    fn an_address_has_one_form() {
        assert_eq!(address("acme/shop", None, None).to_string(), "acme/shop");
        let variable = address("acme/shop", Some("variables"), Some("TOKEN@prod/*"));
        assert_eq!(variable.to_string(), "acme/shop#variables/TOKEN@prod%2F*");
    }

    #[test]
    fn a_selector_matches_an_object_and_everything_in_it() {
        let variable = address("acme/web/shop", Some("variables"), Some("TOKEN@*"));
        for (selector, is_selected) in [
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
                is_selected,
                "{selector}"
            );
        }
    }

    #[test]
    fn an_entry_is_selected_in_the_form_of_addresses_and_of_plans() {
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
    fn entry_globs_are_not_path_globs() {
        let hook = address("acme/shop", Some("hooks"), Some("https://h/x/"));
        let variable = address("acme/shop", Some("variables"), Some("A#1"));
        for (selector, selects_hook, selects_variable) in [
            ("acme/shop#hooks/https://h/x/", true, false),
            ("acme/shop#hooks/https:%2F%2Fh%2Fx%2F", false, false),
            ("**#{variables/A*,hooks/B}", false, true),
            ("**#{variables/B,hooks/**}", true, false),
            (r"**#variables/A\#1", false, true),
            ("**#variables/A#1", false, true),
        ] {
            let parsed = Selector::parse(selector).unwrap();
            for (object, is_selected) in [(&hook, selects_hook), (&variable, selects_variable)] {
                assert_eq!(parsed.matches(object), is_selected, "{selector} {object}");
                assert!(!is_selected || parsed.matches_section(object), "{selector} {object}");
            }
        }
        for selector in ["a#!hooks", "a#/hooks", "a#hooks/", "a#{variables/A"] {
            assert!(Selector::parse(selector).is_err(), "{selector}");
        }
    }

    #[test]
    fn globs_have_limits() {
        let nested_glob = |depth: usize| "{a,".repeat(depth) + "b" + &"}".repeat(depth);
        for (glob, message) in [
            (nested_glob(8), None),
            (nested_glob(9), Some("within each other")),
            (nested_glob(250), Some("within each other")),
            ("{a,b}".repeat(9), None),
            ("{a,b}".repeat(10), Some("more than 1000 texts")),
            ("{a,b}".repeat(30), Some("more than 1000 texts")),
            ("{a,{b,c},{d,e}{f,g}}".repeat(3), None),
            ("{a,{b,c},{d,e}{f,g}}".repeat(4), Some("more than 1000 texts")),
            // No path contains a backslash.
            (r"\{a,b\}".repeat(30), Some("")),
            (format!("{{{}}}", "a,".repeat(999)), None),
            (format!("{{{}}}", "a,".repeat(1000)), Some("more than 1000 texts")),
            ("a,".repeat(1500), None),
            (["{a,b}".repeat(9), "{a,b}".repeat(9)].join(","), Some("more than 1000 texts")),
            ("?".repeat(4096), None),
            ("**/".repeat(1364) + "a", None),
            ("[!a-zA-Z0-9é]".repeat(290), None),
            ("?".repeat(4097), Some("longer than 4096 bytes")),
        ] {
            let glob_start: String = glob.chars().take(20).collect();
            for parse in [Glob::for_paths, Glob::for_names] {
                let error = parse(&glob).map(|_| ()).err();
                assert_eq!(error.is_some(), message.is_some(), "{glob_start}: {error:?}");
                assert!(
                    error.unwrap_or_default().contains(message.unwrap_or_default()),
                    "{glob_start}"
                );
            }
            assert_eq!(
                Selector::parse(&format!("a#{glob}")).is_err(),
                message.is_some(),
                "{glob_start}"
            );
        }
        let long_glob = "{a,b}[*]".repeat(1000);
        assert!(
            Glob::exact(&long_glob).matches(&long_glob) && !Glob::exact(&long_glob).matches("a")
        );
    }

    #[test]
    fn an_exact_glob_matches_only_its_name() {
        for (name, other) in [("a*b?", "axbc"), (r"a\*b", "a*b"), (r"\", ""), ("{a,b}[c]", "ac")] {
            let glob = Glob::for_names(Glob::exact(name).pattern()).unwrap();
            assert!(glob.matches(name) && !glob.matches(other), "{name}");
        }
    }

    #[test]
    fn an_invalid_selector_has_an_error() {
        assert!(Selector::parse("acme/[").unwrap_err().contains("class"));
        assert!(Selector::parse("#variables").is_err());
    }
}
