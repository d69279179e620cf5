//! The texts of problems. They are data, in `problems.yaml`.

use std::fmt::{Display, Write as _};

include!(concat!(env!("OUT_DIR"), "/tables/diff/problems.rs"));

/// The code, the message and the help of a problem.
pub(crate) type Texts = [&'static str; 3];

/// What the names in braces of a text mean.
pub(crate) type Words<'w> = &'w [(&'w str, &'w dyn Display)];

/// `text` with `words` in place of their names in braces.
pub(super) fn fill(text: &str, words: Words<'_>) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let named = part.split_once('}').and_then(|(name, rest)| {
            let (_, word) = words.iter().find(|(known, _)| *known == name)?;
            Some((word, rest))
        });
        let _ = match named {
            Some((word, rest)) => write!(filled, "{word}{rest}"),
            None => write!(filled, "{{{part}"),
        };
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_filled_in_once() {
        let words: Words<'_> = &[("a", &"{b}"), ("b", &1)];
        assert_eq!(fill("{a} and `{b}`", words), "{b} and `1`");
        assert_eq!(fill("write `{{a}: 1, c: {c}}` {", words), "write `{{b}: 1, c: {c}}` {");
    }
}
