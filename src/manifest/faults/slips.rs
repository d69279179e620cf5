//! Typing errors that YAML reads as something else, recognised from the faults that they cause.

use std::ops::Range;

use super::Findings;

/// Characters that look like a blank.
const ODD_BLANKS: [(char, &str); 7] = [
    ('\u{a0}', "a no-break space (U+00A0)"),
    ('\u{2007}', "a figure space (U+2007)"),
    ('\u{2009}', "a thin space (U+2009)"),
    ('\u{200b}', "a space without width (U+200B)"),
    ('\u{202f}', "a narrow no-break space (U+202F)"),
    ('\u{3000}', "a wide space (U+3000)"),
    ('\u{feff}', "a byte order mark (U+FEFF)"),
];

/// Typographic quotes.
const QUOTES: &str = "‘’‚‛“”„‟«»";

/// The code of the faults of a second document without `---` before it.
const TWICE: &str = "duplicate-key";

impl Findings {
    /// Adds the typing error to faults, if the lines show it.
    pub(in crate::manifest) fn explain_slips(&mut self, text: &str) {
        self.second_documents(text);
        for finding in &mut self.findings {
            let help = slip(text, finding.code, &finding.at);
            if help.is_some() {
                finding.help = help;
            }
        }
    }

    /// Joins the faults that a second `kind` and the keys after it cause.
    fn second_documents(&mut self, text: &str) {
        let is_first =
            |at: &Range<usize>| text[..at.start].chars().next_back().is_none_or(|c| c == '\n');
        let begins = |finding: &super::Finding| {
            let key = text.get(finding.at.clone()).unwrap_or_default();
            finding.code == TWICE && is_first(&finding.at) && key == "kind"
        };
        let Some(at) = self.findings.iter().position(begins) else { return };
        let first = &mut self.findings[at];
        let start = first.at.start;
        first.message = "a second document begins here".to_owned();
        first.help("write `---` on a line of its own in front of it");
        self.findings.retain(|finding| {
            finding.code != TWICE || finding.at.start <= start || !is_first(&finding.at)
        });
    }
}

/// The typing error at the position of a fault with this code, and help.
fn slip(text: &str, code: &str, at: &Range<usize>) -> Option<String> {
    let number = text.get(..at.start)?.matches('\n').count();
    let line = |number: usize| text.lines().nth(number).unwrap_or_default();
    let own = line(number);
    let before = (0..number).rev().find(|number| !line(*number).trim().is_empty());
    let odd = |number: usize| {
        let content = line(number).split(" #").next()?.trim_end_matches('\r');
        let (_, name) = ODD_BLANKS.iter().find(|(blank, _)| content.contains(*blank))?;
        Some(format!("line {} has {name}: write a plain space", number + 1))
    };
    let is_shape = ["null", "syntax", "type", "unknown-field"].contains(&code);
    let odd = is_shape.then(|| odd(number).or_else(|| odd(number + 1))).flatten();
    odd.or_else(|| match code {
        "null" => comment(text, at),
        "syntax" if own.trim_end().ends_with(',') && own.trim_end().len() > 1 => {
            Some("take the comma at the end of the line away".to_owned())
        }
        "syntax" => {
            [Some(number), before].into_iter().flatten().find_map(|at| joined(line(at), at))
        }
        "type" => joined(own, number),
        _ => {
            let value = text.get(at.clone())?.trim();
            let is_quoted = value.starts_with(|c| QUOTES.contains(c));
            is_quoted.then(|| "write `'` or `\"`: other quotes are part of the text".to_owned())
        }
    })
}

/// A value that is empty because `#` made it a comment.
fn comment(text: &str, at: &Range<usize>) -> Option<String> {
    let value = text.get(at.end..)?.lines().next()?.trim_start().strip_prefix(": ")?;
    let comment = value.trim_start().strip_prefix('#')?;
    let is_value = comment.starts_with(|c: char| c.is_alphanumeric());
    is_value.then(|| "put it in quotes, as in `'#ff0000'`: ` #` starts a comment".to_owned())
}

/// A line with a key, a colon and a value without a blank between them. The value is not quoted.
fn joined(line: &str, number: usize) -> Option<String> {
    let (key, value) = line.trim_start_matches([' ', '-']).split_once(':')?;
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let is_value = value.starts_with(|c: char| c.is_alphanumeric() || "'\"[{".contains(c));
    let help =
        || format!("line {}: write a space behind the colon, as in `{key}: ...`", number + 1);
    (is_key && is_value).then(help)
}
