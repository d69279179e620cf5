//! Compares two texts line by line. The result is data for the renderers.
//!
//! Secrets are removed before the texts are split into lines, because short lines of a multi-line
//! secret would not be recognised. The result does not depend on the load of the machine, because
//! texts that are too large are not compared at all.

use similar::{ChangeTag, TextDiff};

/// Larger texts, in bytes, are not compared.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Texts with more lines are not compared, because the time grows with the square of the number of
/// lines.
const MAX_TEXT_LINES: usize = 8_000;
/// The number of unchanged lines that are shown around a change.
const CONTEXT_LINES: usize = 3;

/// A line of a comparison, without its line feed, and the tag of its change. A line without a tag
/// names the position of the lines that follow it.
pub(super) type ComparedLine = (Option<ChangeTag>, String);

/// The sign at the start of a line with this tag.
pub(super) fn line_sign(tag: Option<ChangeTag>) -> char {
    match tag {
        Some(ChangeTag::Delete) => '-',
        Some(ChangeTag::Insert) => '+',
        Some(ChangeTag::Equal) | None => ' ',
    }
}

/// The result of comparing two texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextComparison {
    /// The texts were not compared; this remark is shown instead.
    Remark(String),
    /// The lines of the comparison.
    Lines(Vec<ComparedLine>),
}

/// Compares `before` with `after`, after `redact` has removed secrets from both.
pub(super) fn compare_texts(
    before: &str,
    after: &str,
    redact: impl Fn(&str) -> String,
) -> TextComparison {
    let is_too_long =
        |text: &str| text.len() > MAX_TEXT_BYTES || text.matches('\n').count() > MAX_TEXT_LINES;
    if is_too_long(before) || is_too_long(after) {
        let remark = format!("changed ({} bytes → {} bytes)", before.len(), after.len());
        return TextComparison::Remark(remark);
    }
    let (before, after) = (redact(before), redact(after));
    if before == after {
        return TextComparison::Remark("changed in a secret, which is not shown".into());
    }
    let diff = TextDiff::from_lines(&before, &after);
    let mut unified = diff.unified_diff();
    let mut lines = Vec::new();
    for hunk in unified.context_radius(CONTEXT_LINES).iter_hunks() {
        lines.push((None, hunk.header().to_string()));
        for change in hunk.iter_changes() {
            let line = change.value();
            let ending = if line.ends_with('\n') { "" } else { " (no line feed at the end)" };
            let text = format!("{}{ending}", line.trim_end_matches('\n'));
            lines.push((Some(change.tag()), text));
        }
    }
    TextComparison::Lines(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_texts_are_not_compared() {
        let repeat_lines = |lines: usize| "a\n".repeat(lines);
        let redact = |text: &str| text.to_owned();
        assert!(matches!(
            compare_texts(&repeat_lines(MAX_TEXT_LINES), "b\n", redact),
            TextComparison::Lines(_)
        ));
        for text in [repeat_lines(MAX_TEXT_LINES + 1), "x".repeat(MAX_TEXT_BYTES + 1)] {
            let words = format!("changed ({} bytes → 2 bytes)", text.len());
            assert_eq!(compare_texts(&text, "y\n", redact), TextComparison::Remark(words));
        }
    }
}
