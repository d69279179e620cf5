//! The hidden first line of a Markdown report, which identifies its comment: `<!-- undrift:NAME
//! -->`.

use std::{fmt, str::FromStr};

use super::json::ReportKind;

const START: &str = "<!-- undrift:";
const END: &str = " -->";

/// The name in a marker. Several jobs that comment on one merge request use different names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker(String);

impl Marker {
    /// The maximum length of a name, in bytes.
    const MAX_NAME_BYTES: usize = 64;

    /// The marker in the first line of `text`.
    pub fn from_text(text: &str) -> Option<Self> {
        let name = text.lines().next()?.trim_end().strip_prefix(START)?.strip_suffix(END)?;
        name.parse().ok()
    }
}

/// The default marker, for a command without `--marker`.
impl From<ReportKind> for Marker {
    fn from(kind: ReportKind) -> Self {
        Self(kind.word().to_owned())
    }
}

impl FromStr for Marker {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_valid = (1..=Self::MAX_NAME_BYTES).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c));
        // Two hyphens would end the HTML comment.
        if is_valid && !name.contains("--") {
            Ok(Self(name.to_owned()))
        } else {
            Err(format!(
                "a name has up to {} letters, digits, `.`, `_`, `/` and single `-`",
                Self::MAX_NAME_BYTES
            ))
        }
    }
}

/// The marker as the first line of a report, without a line feed.
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
            let marker: Marker = name.parse().unwrap();
            assert_eq!(marker.to_string(), format!("<!-- undrift:{name} -->"));
            for text in [format!("{marker}"), format!("{marker}\r\nx"), format!("{marker} \nx")] {
                assert_eq!(Marker::from_text(&text), Some(marker.clone()), "{text:?}");
            }
            for text in [
                format!("\n{marker}"),
                format!(" {marker}"),
                format!("> {marker}\n"),
                format!("{marker}x"),
            ] {
                assert_eq!(Marker::from_text(&text), None, "{text:?}");
            }
        }
    }

    #[test]
    fn a_name_cannot_end_the_html_comment() {
        for wrong in ["", "a b", "a-->", "a--b", "é", "a\n", &"a".repeat(65)] {
            assert!(wrong.parse::<Marker>().is_err(), "{wrong:?}");
            assert_eq!(
                Marker::from_text(&format!("<!-- undrift:{wrong} -->\n")),
                None,
                "{wrong:?}"
            );
        }
    }
}
