//! The line by which a report is known again as a comment: `<!-- undrift:NAME -->`, its first one.
//! People do not see it.

use std::fmt;

const START: &str = "<!-- undrift:";
const END: &str = " -->";
/// The longest name, in characters.
const LONGEST: usize = 100;

/// The first line of a report that can be a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// The marker with a name; `None` if that is blank, is longer than 100 characters, or has
    /// others than ASCII letters, digits, `-`, `_`, `.` and `/`.
    pub fn new(name: &str) -> Option<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let is_good = !name.is_empty() && name.len() <= LONGEST && name.chars().all(fits);
        // Two hyphens in a row may end a comment of HTML.
        (is_good && !name.contains("--")).then(|| Self(name.to_owned()))
    }

    /// The marker in the first line of `text`.
    pub fn of(text: &str) -> Option<Self> {
        let name = text.lines().next()?.trim_end().strip_prefix(START)?.strip_suffix(END)?;
        Self::new(name)
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{START}{}{END}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_found_again_in_the_first_line_alone() {
        for name in ["plan", "acme/shop.prod_2", "a-b"] {
            let marker = Marker::new(name).unwrap();
            for text in [format!("{marker}"), format!("{marker}\r\nx"), format!("{marker} \nx")] {
                assert_eq!(Marker::of(&text), Some(marker.clone()), "{text:?}");
            }
            for text in [
                format!("\n{marker}"),
                format!(" {marker}"),
                format!("> {marker}\n"),
                format!("{marker}x"),
            ] {
                assert_eq!(Marker::of(&text), None, "{text:?}");
            }
        }
        for name in ["", "a b", "a--b", "ü", "-->", &"x".repeat(101)] {
            assert_eq!(Marker::new(name), None, "{name:?}");
            assert_eq!(Marker::of(&format!("<!-- undrift:{name} -->\n")), None, "{name:?}");
        }
    }
}
