//! The hidden first line of a report in Markdown, by which a comment is known again.

use std::{fmt, str::FromStr};

use super::json::Sort;

/// The name in a marker: of several jobs that comment on one merge request, each has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// The longest name, in bytes.
    const LONGEST: usize = 64;
}

/// The marker of a command that was given no name.
impl From<Sort> for Marker {
    fn from(sort: Sort) -> Self {
        Self(sort.word().to_owned())
    }
}

impl FromStr for Marker {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = (1..=Self::LONGEST).contains(&name.len()) && name.chars().all(is_plain);
        // Two hyphens would end the comment that the marker is.
        if fits && !name.contains("--") {
            Ok(Self(name.to_owned()))
        } else {
            Err(format!(
                "a name has up to {} letters, digits, `.`, `_` and single `-`",
                Self::LONGEST
            ))
        }
    }
}

/// The line, without a line feed.
impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<!-- undrift:{} -->", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_comment() {
        assert_eq!("plan".parse::<Marker>().unwrap().to_string(), "<!-- undrift:plan -->");
        for wrong in ["", "a b", "a-->", "a--b", "é", "a\n", &"a".repeat(65)] {
            assert!(wrong.parse::<Marker>().is_err(), "{wrong}");
        }
    }
}
