//! Matches paths against many globs. An index avoids trying every combination of thousands of paths
//! and thousands of globs.

use std::collections::HashMap;

use super::{Glob, literal_length};

/// Maps the beginning and the end of paths to the numbers of the globs that may match them.
#[derive(Clone, Debug, Default)]
pub struct GlobIndex(HashMap<String, HashMap<String, Vec<usize>>>);

impl GlobIndex {
    /// Adds the glob with this `number`. Numbers must not decrease.
    pub fn insert(&mut self, number: usize, glob: &str) {
        let glob = glob.to_lowercase();
        let (beginning, end) = literal_parts(&glob);
        let numbers_by_end = self.0.entry(beginning.to_owned()).or_default();
        let numbers = numbers_by_end.entry(end.to_owned()).or_default();
        if numbers.last() != Some(&number) {
            numbers.push(number);
        }
    }

    /// The numbers of the globs that may match the lower-case `path`, in order.
    pub fn candidates(&self, path: &str) -> Vec<usize> {
        let slash_indices = path.match_indices('/').map(|(index, _)| index);
        let endings = slash_indices.clone().map(|index| &path[index + 1..]).chain([path, ""]);
        let beginnings = slash_indices.chain([path.len()]).map(|end| &path[..end]).chain([""]);
        let maps_by_end = beginnings.filter_map(|beginning| self.0.get(beginning));
        let mut numbers: Vec<usize> = maps_by_end
            .flat_map(|numbers_by_end| endings.clone().filter_map(|end| numbers_by_end.get(end)))
            .flatten()
            .copied()
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// Returns two parts of `glob`: the whole path segments before its first wildcard, and the whole
/// path segments after its last wildcard. Every matching path begins with the first part and ends
/// with the second part. For a glob without wildcards, the first part is the whole glob.
fn literal_parts(glob: &str) -> (&str, &str) {
    let first_wildcard = literal_length(glob);
    if first_wildcard == glob.len() {
        return (glob, "");
    }
    let last_wildcard = glob.rfind(super::SPECIAL_CHARACTERS).unwrap_or(first_wildcard);
    let beginning = glob[..first_wildcard].rfind('/').map_or("", |end| &glob[..end]);
    (
        beginning,
        glob[last_wildcard..].find('/').map_or("", |offset| &glob[last_wildcard + offset + 1..]),
    )
}

/// Globs for paths, with an index.
#[derive(Clone, Debug, Default)]
pub struct Globs {
    globs: Vec<Glob>,
    index: GlobIndex,
}

impl FromIterator<Glob> for Globs {
    fn from_iter<I: IntoIterator<Item = Glob>>(globs: I) -> Self {
        let globs: Vec<_> = globs.into_iter().collect();
        let mut index = GlobIndex::default();
        globs.iter().enumerate().for_each(|(number, glob)| index.insert(number, glob.pattern()));
        Self { globs, index }
    }
}

impl Globs {
    /// All globs.
    pub fn iter(&self) -> impl Iterator<Item = &Glob> {
        self.globs.iter()
    }

    /// The globs that match `path`, which must be in lower case.
    pub fn matching_globs(&self, path: &str) -> impl Iterator<Item = &Glob> {
        let candidates = self.index.candidates(path).into_iter().map(|number| &self.globs[number]);
        candidates.filter(move |glob| glob.matches(path))
    }

    /// True if a glob matches `path`, which must be in lower case.
    pub fn matches(&self, path: &str) -> bool {
        self.matching_globs(path).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PIECES: [&str; 22] = [
        "a",
        "b",
        "A",
        "/",
        "/",
        "*",
        "**",
        "**/",
        "/**",
        "?",
        "[ab]",
        "[!a]",
        "{a,b}",
        "{a/b,b}",
        "{a{/b,},b}",
        r"\a",
        r"\*",
        r"\/",
        "-",
        "]",
        "!",
        "}",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

        #[test]
        fn every_matching_glob_is_found(
            pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..7),
            path in "[ab]{1,2}(/[ab]{1,2}){0,3}",
        ) {
            let pattern = pieces.concat();
            if let Ok(glob) = Glob::for_paths(&pattern) {
                let globs = Globs::from_iter([glob.clone()]);
                prop_assert_eq!(globs.matches(&path), glob.matches(&path), "{} {}", pattern, path);
            }
        }
    }

    #[test]
    fn candidates_share_the_ends_of_the_path() {
        for template in ["acme/p{}", "acme/p{}/**", "*/p{}", "**/p{}/x", "acme/*/p{}"] {
            let globs: Vec<_> = (0..100).map(|i| template.replace("{}", &i.to_string())).collect();
            let mut index = GlobIndex::default();
            globs.iter().enumerate().for_each(|(position, glob)| index.insert(position, glob));
            let path = globs[7].replace("**", "y").replace('*', "z");
            assert_eq!(index.candidates(&path), [7], "{template}");
        }
    }
}
