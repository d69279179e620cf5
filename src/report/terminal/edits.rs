//! Renders edits of files: as a patch for programs, and for people in a shorter form that shows
//! equal edits once.

use std::collections::BTreeSet;

use similar::{Change, ChangeTag, TextDiff};

use super::fold::{MAX_NAMED, others_text};
use crate::{
    diagnostic::FileName,
    report::{Canvas, Line, Paint, TextStyle, model::fold_equal},
    secret::Secrets,
    text::{count, escape_lines},
};

/// The approximate number of lines of edits that a terminal gets without `--full`.
pub const SCREEN_LINES: usize = 50;
/// The number of unchanged lines that are shown around an edit.
const CONTEXT_LINES: usize = 3;

/// A file with its text before and after.
pub(super) type EditedFile = (FileName, [String; 2]);

/// A line of a comparison.
type LineChange<'f> = Change<&'f str>;

/// Lines that are replaced together.
struct LineReplacement<'f> {
    file: &'f FileName,
    /// The lines of the file in parts: changed and unchanged parts alternate.
    parts: &'f [Vec<LineChange<'f>>],
    /// The index of the replaced part.
    index: usize,
}

/// Renders the edits of `files`, which must be without secrets. On a terminal, equal edits are
/// shown once, in about `max_lines` lines. Other outputs get a patch that can be applied.
pub fn render_edits_text(files: &[EditedFile], max_lines: usize, style: TextStyle) -> String {
    if style.is_full || style.width.is_none() {
        return escape_lines(&files.iter().map(file_patch).collect::<String>()).into_owned();
    }
    let file_diffs: Vec<_> =
        files.iter().map(|(name, [old, new])| (name, TextDiff::from_lines(old, new))).collect();
    let parts_by_file: Vec<_> =
        file_diffs.iter().map(|(name, diff)| (*name, line_parts(diff))).collect();
    let replacements = parts_by_file.iter().flat_map(|(file, parts)| {
        let changed_parts = (0..parts.len()).filter(|index| is_edit(&parts[*index][0]));
        changed_parts.map(move |index| LineReplacement { file, parts, index })
    });
    let replacements: Vec<_> = replacements.collect();
    let folded_edits = fold_equal(&replacements, false, |replacement| -> Vec<_> {
        replacement.changed_lines().iter().map(|line| (line.tag(), line.value())).collect()
    });
    let hunks: Vec<_> = folded_edits.chunk_by(|(a, _), (b, _)| a.is_near(b)).collect();
    let no_secrets = Secrets::default();
    let mut canvas = Canvas::new(style, &no_secrets);
    let (mut remaining_lines, mut file) = (max_lines, None);
    let mut omitted_edits: Vec<&LineReplacement<'_>> = Vec::new();
    for hunk in hunks {
        let text = hunk_text(hunk.iter().map(|(edit, _)| *edit));
        let line_count = text.lines().count();
        if !omitted_edits.is_empty()
            || (line_count > remaining_lines && remaining_lines < max_lines)
        {
            omitted_edits
                .extend(hunk.iter().flat_map(|(edit, others)| others.iter().chain([edit])));
            continue;
        }
        let name = hunk[0].0.file;
        if file.replace(name) != Some(name) {
            canvas.add_verbatim(&escape_lines(&format!("--- a/{name}\n+++ b/{name}\n")));
        }
        let shown_text: String = text.split_inclusive('\n').take(remaining_lines).collect();
        canvas.add_verbatim(&escape_lines(&shown_text));
        if line_count > remaining_lines {
            draw_omitted(&mut canvas, &count(line_count - remaining_lines, "more line"));
        }
        remaining_lines = remaining_lines.saturating_sub(line_count);
        for (_, others) in hunk {
            let locations: Vec<_> = others.iter().map(|edit| edit.location()).collect();
            if let Some(repeats_text) =
                others_text("the same edit at", "more place", &locations, MAX_NAMED)
            {
                canvas.add_line(&Line::with_text(Paint::Note, repeats_text));
                remaining_lines = remaining_lines.saturating_sub(2);
            }
        }
    }
    if !omitted_edits.is_empty() {
        draw_omitted(&mut canvas, &omitted_edits_text(&omitted_edits));
    }
    canvas.finish()
}

fn omitted_edits_text(edits: &[&LineReplacement<'_>]) -> String {
    let files: BTreeSet<_> = edits.iter().map(|edit| edit.file).collect();
    format!("{} in {}", count(edits.len(), "more edit"), count(files.len(), "file"))
}

/// The patch of a file.
fn file_patch((name, [old, new]): &EditedFile) -> String {
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string()
}

/// Draws a line with the number of omitted lines or edits.
fn draw_omitted(canvas: &mut Canvas<'_>, omitted_text: &str) {
    canvas
        .add_line(&Line::with_text(Paint::Dim, format!("… and {omitted_text} (--full shows all)")));
}

/// The lines of a file in parts: changed and unchanged parts alternate.
fn line_parts<'d>(diff: &'d TextDiff<'_, '_, str>) -> Vec<Vec<LineChange<'d>>> {
    let lines: Vec<_> = diff.iter_all_changes().collect();
    lines.chunk_by(|a, b| is_edit(a) == is_edit(b)).map(<[_]>::to_vec).collect()
}

fn is_edit(line: &LineChange<'_>) -> bool {
    line.tag() != ChangeTag::Equal
}

/// The numbers of a line, from 0: in the old text and in the new text, if they have this line.
fn line_numbers(line: &LineChange<'_>) -> [Option<usize>; 2] {
    [line.old_index(), line.new_index()]
}

impl<'f> LineReplacement<'f> {
    fn changed_lines(&self) -> &'f [LineChange<'f>] {
        &self.parts[self.index]
    }

    /// The file, and the line in the new text. If lines are only removed, it is the line in the old
    /// text.
    fn location(&self) -> String {
        let [old, new] = [0, 1]
            .map(|side| self.changed_lines().iter().find_map(|line| line_numbers(line)[side]));
        format!("{}:{}", self.file, new.or(old).unwrap_or_default() + 1)
    }

    /// True if `next` is near enough to be in the same hunk.
    fn is_near(&self, next: &Self) -> bool {
        self.file == next.file
            && self.index + 2 == next.index
            && self.parts[self.index + 1].len() <= 2 * CONTEXT_LINES
    }

    /// The unchanged lines before and after the replacement.
    fn context(&self) -> [&'f [LineChange<'f>]; 2] {
        let part_at = |index: Option<usize>| {
            index.and_then(|index| self.parts.get(index)).map_or(&[][..], |part| part)
        };
        [part_at(self.index.checked_sub(1)), part_at(Some(self.index + 1))]
    }
}

/// A hunk of a patch: edits that are near each other, with some of the lines around them.
fn hunk_text<'f>(edits: impl Iterator<Item = &'f LineReplacement<'f>>) -> String {
    let mut lines: Vec<&LineChange<'_>> = Vec::new();
    let mut trailing_lines: &[LineChange<'_>] = &[];
    for edit in edits {
        let [lines_before, lines_after] = edit.context();
        let start =
            if lines.is_empty() { lines_before.len().saturating_sub(CONTEXT_LINES) } else { 0 };
        lines.extend(&lines_before[start..]);
        lines.extend(edit.changed_lines());
        trailing_lines = &lines_after[..lines_after.len().min(CONTEXT_LINES)];
    }
    lines.extend(trailing_lines);
    let [old_range, new_range] = [0, 1].map(|side| {
        let numbers: Vec<_> = lines.iter().filter_map(|line| line_numbers(line)[side]).collect();
        format!("{},{}", numbers.first().map_or(0, |first| first + 1), numbers.len())
    });
    let mut text = format!("@@ -{old_range} +{new_range} @@\n");
    for line in lines {
        let (tag, line) = (line.tag(), line.value());
        let ending = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
        text += &format!("{tag}{line}{ending}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal() -> TextStyle {
        TextStyle { width: Some(80), ..TextStyle::default() }
    }

    /// A file with one document per project. In the new text, each document also has the lines that
    /// `added_lines` returns.
    fn edited_file(
        name: &str,
        projects: usize,
        added_lines: impl Fn(usize) -> String,
    ) -> EditedFile {
        let render_documents = |edited: &dyn Fn(usize) -> String| {
            let document_text = |i| {
                format!(
                    "---\nkind: Project\npath: acme/p{i}\nsettings:\n  a: 1\n  b: 2\n  c: 3\n  d: 4\n{}",
                    edited(i)
                )
            };
            (0..projects).map(document_text).collect::<String>()
        };
        (name.into(), [render_documents(&|_| String::new()), render_documents(&added_lines)])
    }

    #[test]
    fn equal_edits_are_shown_once_also_within_a_file() {
        let edited_line = |i| match i {
            4 => "archived: false\n".to_owned(),
            _ => "archived: true\n".to_owned(),
        };
        let files =
            [edited_file("a.yaml", 6, edited_line), edited_file("b.yaml", 4, |_| edited_line(0))];
        insta::assert_snapshot!(render_edits_text(&files, SCREEN_LINES, terminal()), @r"
        --- a/a.yaml
        +++ b/a.yaml
        @@ -6,6 +6,7 @@
           b: 2
           c: 3
           d: 4
        +archived: true
         ---
         kind: Project
         path: acme/p1
        the same edit at 8 more places: a.yaml:18, a.yaml:27, a.yaml:36, …; --full shows
        each
        @@ -38,6 +42,7 @@
           b: 2
           c: 3
           d: 4
        +archived: false
         ---
         kind: Project
         path: acme/p5
        ");
    }

    #[test]
    fn a_terminal_gets_at_most_a_screen_and_a_pipe_a_whole_patch() {
        let files: Vec<_> = (0..9)
            .map(|n| edited_file(&format!("{n}.yaml"), 9, move |i| format!("e: {n}{i}\n")))
            .collect();
        let shown = render_edits_text(&files, SCREEN_LINES, terminal());
        assert!(shown.lines().count() <= 60, "{shown}");
        assert!(shown.ends_with("… and 75 more edits in 9 files (--full shows all)\n"), "{shown}");
        for style in [TextStyle::default(), TextStyle { is_full: true, ..terminal() }] {
            let text = render_edits_text(&files, SCREEN_LINES, style);
            assert_eq!(text.matches("\n+e: ").count(), 81, "{text}");
            assert!(!text.contains("more"), "{text}");
        }
        let new_file = [("new.yaml".into(), [String::new(), "a: 1\n".repeat(200)])];
        let shown = render_edits_text(&new_file, SCREEN_LINES, terminal());
        assert!(shown.ends_with("… and 151 more lines (--full shows all)\n"), "{shown}");
    }
}
