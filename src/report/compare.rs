//! How one text becomes another, line by line, as data: the renderers only walk it.
//!
//! Secrets are struck from the texts before they become lines: of a secret of several lines, the
//! short ones would not be recognised. The same texts give the same lines, however busy the machine
//! is: what would take long is not compared at all.

use similar::{ChangeTag, TextDiff};

/// Texts that are larger, in bytes, are not compared line by line.
const LARGEST: usize = 1 << 20;
/// Texts of more lines are not compared either: the time grows with the square of their number.
const LONGEST: usize = 8_000;
/// How many lines around a change are shown.
const AROUND: usize = 3;

/// What a line of a comparison is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Where the lines that follow are.
    Head,
    /// In both texts.
    Same,
    /// Only in the text before.
    Out,
    /// Only in the text after.
    In,
}

impl Sign {
    /// What a line starts with.
    pub(super) const fn character(self) -> char {
        match self {
            Self::Head | Self::Same => ' ',
            Self::Out => '-',
            Self::In => '+',
        }
    }
}

/// What comparing two texts comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// Words in the place of a comparison.
    Aside(String),
    /// Its lines, each without its line feed.
    Lines(Vec<(Sign, String)>),
}

/// Compares `before` with `after`, from both of which `strike` takes the secrets.
pub(super) fn texts(before: &str, after: &str, strike: impl Fn(&str) -> String) -> Compared {
    let lines = |text: &str| text.matches('\n').count();
    if before.len().max(after.len()) > LARGEST || lines(before).max(lines(after)) > LONGEST {
        let words = format!("changed ({} bytes → {} bytes)", before.len(), after.len());
        return Compared::Aside(words);
    }
    let (before, after) = (strike(before), strike(after));
    if before == after {
        return Compared::Aside("changed in a secret, which is not shown".into());
    }
    let diff = TextDiff::from_lines(&before, &after);
    let mut unified = diff.unified_diff();
    let mut lines = Vec::new();
    for hunk in unified.context_radius(AROUND).iter_hunks() {
        lines.push((Sign::Head, hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => Sign::Same,
                ChangeTag::Delete => Sign::Out,
                ChangeTag::Insert => Sign::In,
            };
            let line = change.value();
            let ending = if line.ends_with('\n') { "" } else { " (no line feed at the end)" };
            lines.push((sign, format!("{}{ending}", line.trim_end_matches('\n'))));
        }
    }
    Compared::Lines(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_long_is_not_compared() {
        let long = |lines: usize| "a\n".repeat(lines);
        let strike = |text: &str| text.to_owned();
        assert!(matches!(texts(&long(LONGEST), "b\n", strike), Compared::Lines(_)));
        for text in [long(LONGEST + 1), "x".repeat(LARGEST + 1)] {
            let words = format!("changed ({} bytes → 2 bytes)", text.len());
            assert_eq!(texts(&text, "y\n", strike), Compared::Aside(words));
        }
    }
}
