//! Tests of locations and of their rendering.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::origin::{Layer, Origin};

/// The range of bytes of `part` in `text`.
fn find_range(text: &str, part: &str) -> std::ops::Range<usize> {
    let start = text.find(part).unwrap();
    start..start + part.len()
}

fn render_fault(text: &str, marked_part: &str, hidden_parts: &[&str]) -> String {
    let mut source = SourceText::new("a.yaml", text);
    source.hide_ranges(hidden_parts.iter().map(|part| find_range(text, part)));
    Diagnostic::error("type", "wrong")
        .with_location(source.locate(&find_range(text, marked_part)))
        .to_text()
}

impl Diagnostic {
    fn to_text(&self) -> String {
        render::render(self, &[], TextStyle::default())
    }
}

/// The displayed line for a fault at `marked_part`, and the marked text in this line.
fn displayed_line(text: &str, marked_part: &str, hidden_parts: &[&str]) -> (String, String) {
    let mut source = SourceText::new("a.yaml", text);
    source.hide_ranges(hidden_parts.iter().map(|part| find_range(text, part)));
    let (line, (start, end)) =
        source.locate(&find_range(text, marked_part)).position.unwrap().snippet.unwrap();
    let marked_text = line[start..end].to_owned();
    (line, marked_text)
}

#[test]
fn diagnostics_look_like_cargo_errors() {
    let text = "a: 1\nb: [x, y]\n";
    let source = SourceText::new("a.yaml", text);
    let other_source = SourceText::new("b.yaml", "c: 3");
    let diagnostic = Diagnostic::warning("type", "`b` is a list")
        .with_location(source.locate(&find_range(text, "[x, y]")))
        .with_label("here")
        .with_related(other_source.locate(&(0..1)), "as `c` is not")
        .with_help("write a number");
    insta::assert_snapshot!(diagnostic.to_text(), @"
    warning[type]: `b` is a list
     --> a.yaml:2:4
      |
    2 | b: [x, y]
      |    ^^^^^^ here
      |
     ::: b.yaml:1:1
      |
    1 | c: 3
      | - as `c` is not
      |
      = help: write a number
    ");
    let json = json!({
        "severity": "warning", "code": "type", "message": "`b` is a list", "file": "a.yaml", "line": 2, "column": 4,
        "help": "write a number", "related": [{"file": "b.yaml", "line": 1, "column": 1, "message": "as `c` is not"}],
    });
    assert_eq!(serde_json::to_value(&diagnostic).unwrap(), json);
}

#[test]
fn hidden_parts_do_not_shift_columns() {
    let text = "a: {v: a long secret, w: 1}\n";
    insta::assert_snapshot!(render_fault(text, "w", &["a long secret"]), @"
    error[type]: wrong
     --> a.yaml:1:23
      |
    1 | a: {v: ***, w: 1}
      |             ^
    ");
}

#[test]
fn a_column_that_is_a_prefix_of_another_is_kept() {
    // The mask is ten characters shorter than the secret, so the renderer shows `w` at column 13.
    // `a.yaml:1:13` is also the start of `a.yaml:1:133`, the location of `z`.
    let text = format!("a: {{v: a long secret, w: 1, x: {}, z: 1}}\n", "y".repeat(99));
    let mut source = SourceText::new("a.yaml", &text);
    source.hide_ranges([find_range(&text, "a long secret")]);
    let [w, z] = ["w", "z"].map(|part| source.locate(&find_range(&text, part)));
    let rendered =
        Diagnostic::error("type", "wrong").with_location(z).with_related(w, "here").to_text();
    let location_lines: Vec<_> = rendered.lines().filter(|line| line.contains("a.yaml")).collect();
    assert_eq!(location_lines, [" --> a.yaml:1:133", " ::: a.yaml:1:23"], "{rendered}");
}

#[test]
fn a_location_without_text_is_shown() {
    let origin = Origin::new("a.yaml", 3, 4, Layer::Project);
    let diagnostic =
        |location| Diagnostic::error("type", "wrong").with_location(location).to_text();
    assert!(diagnostic(SourceLocation::from(&origin)).contains("a.yaml:3:4"));
    assert!(diagnostic(SourceLocation::whole_file("a.yaml")).contains("--> a.yaml"));
    assert_eq!(Diagnostic::error("type", "wrong").to_text(), "error[type]: wrong");
}

#[test]
fn columns_count_characters_but_not_a_byte_order_mark() {
    let text = "\u{feff}ä: 1\r\nb: ☃x\r\n";
    let source = SourceText::new("a.yaml", text);
    let position = |part| source.origin(find_range(text, part).start, Layer::Project).to_string();
    let positions = ["ä", "1", "b", "x", ": 1", "ä"].map(position);
    assert_eq!(
        positions,
        ["a.yaml:1:1", "a.yaml:1:4", "a.yaml:2:1", "a.yaml:2:5", "a.yaml:1:2", "a.yaml:1:1"]
    );
    assert_eq!(displayed_line(text, "☃", &[]), ("b: ☃x".into(), "☃".into()));
}

#[test]
fn comments_are_dropped() {
    for (line, expected) in [
        ("a: 1 # s", "a: 1"),
        ("# s", ""),
        ("a: x#y # s", "a: x#y"),
        ("a: 'x # y' # s", "a: 'x # y'"),
        ("a: 'it''s # y' # s", "a: 'it''s # y'"),
        ("a: \"x \\\" # y\" # s", "a: \"x \\\" # y\""),
        ("a: it's # s'", "a: it's"),
        ("a: x 'y # s' z", "a: x 'y"),
        ("- 'a' x # 's'", "- 'a' x"),
        ("{a: 'x', b: 1} # 's'", "{a: 'x', b: 1}"),
        ("a: 'x # s", "a: 'x"),
    ] {
        let source = SourceText::new("a.yaml", line);
        let snippet = source.locate(&(0..1)).position.unwrap().snippet.map(|(line, _)| line);
        assert_eq!(snippet.unwrap_or_default(), expected, "{line}");
    }
}

#[test]
fn hidden_parts_may_touch_overlap_and_span_lines() {
    let text = "a: one two three\n  four\nb: five";
    assert_eq!(
        displayed_line(text, "three", &["one", "two three\n  four"]),
        ("a: *** *******".into(), "***".into())
    );
    assert_eq!(displayed_line(text, "four", &["three\n  four"]), ("  ***".into(), "***".into()));
    assert_eq!(
        displayed_line(text, "one two", &["one two", "two three"]),
        ("a: ***".into(), "***".into())
    );
    assert_eq!(
        displayed_line("u: https://a:s@h/x?k=s#s", "u", &[]).0,
        "u: https://***@h/x?k=***#***"
    );
}

#[test]
fn a_line_and_a_column_give_the_byte() {
    for text in ["\u{feff}ä: 1\r\nb: ☃x\r\n", "", "a", "\n\na: b"] {
        let source = SourceText::new("a.yaml", text);
        for (offset, _) in text.char_indices().filter(|(_, c)| !matches!(c, '\u{feff}' | '\n')) {
            let origin = source.origin(offset, Layer::Project);
            assert_eq!(source.offset(origin.line, origin.column), offset, "{text:?}");
        }
        for (line, column) in [(0, 0), (1, 99), (99, 1), (u32::MAX, u32::MAX)] {
            assert!(text.is_char_boundary(source.offset(line, column)), "{text:?}");
        }
    }
}

#[test]
fn a_long_line_is_cut_around_the_fault() {
    let text = format!("{}: {}", "a".repeat(10_000), "ä".repeat(10_000));
    let (line, marked) = displayed_line(&text, ": ", &[]);
    assert_eq!((line.chars().count(), marked.as_str()), (242, ": "));
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let text = "a: \u{9b}x\u{202e}\ty";
    assert_eq!(displayed_line(text, "x", &[]).0, "a: \\u{9b}x\\u{202e} y");
    let diagnostic = Diagnostic::error("type", "a\u{1b}b")
        .with_location(SourceLocation::whole_file("c\u{1b}d"))
        .with_help("e\u{1b}f")
        .to_text();
    assert!(!diagnostic.contains('\u{1b}'), "{diagnostic}");
}

#[test]
fn diagnostics_are_ordered_when_they_are_shown() {
    let text = "a\nb\nc\n";
    let source = SourceText::new("a.yaml", text);
    let locate = |part| source.locate(&find_range(text, part));
    let diagnostics = Diagnostics::from_iter([
        Diagnostic::error("type", "second").with_location(locate("b")),
        Diagnostic::warning("type", "fourth").with_location(locate("c")),
        Diagnostic::error("type", "third").with_location(locate("c")),
        Diagnostic::error("type", "first"),
    ]);
    let messages: Vec<_> =
        diagnostics.sorted().into_iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    assert_eq!(messages, ["first", "second", "third", "fourth"]);
    assert_eq!(diagnostics.summary().as_deref(), Some("3 errors, 1 warning"));
    assert_eq!(Diagnostics::default().summary(), None);
    assert!(diagnostics.has_errors() && !Diagnostics::default().has_errors());
}

proptest! {
    #[test]
    fn hidden_parts_are_never_shown(text in "[a-c #'\"\n:ä\u{feff}-]{0,40}", after in "[ a-c#'\n]{0,20}", at in 0_usize..90) {
        let full_text = format!("{text}CANARY{after}");
        let mut source = SourceText::new("a.yaml", &full_text);
        source.hide_ranges(std::iter::once(text.len()..text.len() + 6));
        let start = full_text.floor_char_boundary(at.min(full_text.len()));
        for end in start..=full_text.len() {
            let location = source.locate(&(start..end));
            let text = Diagnostic::error("type", "wrong").with_location(location.clone()).to_text();
            prop_assert!(!text.contains("CANARY") && !format!("{location:?}").contains("CANARY"), "{}", text);
        }
    }
}

/// The location of the `x` in `a: x`, moved to `line`.
fn location_on_line(line: u32) -> SourceLocation {
    let mut location = SourceText::new("a.yaml", "a: x\n").locate(&(3..4));
    location.position.as_mut().unwrap().line = line;
    location
}

/// 800 diagnostics of one code are shown as one diagnostic, with the locations of the first three.
/// Diagnostics of other codes are shown in full.
#[test]
fn many_of_one_code_are_one() {
    let diagnostic = |n: u32| {
        Diagnostic::warning("type", "wrong").with_location(location_on_line(n)).with_help("mend it")
    };
    let mut diagnostics: Diagnostics = (1..=800).map(diagnostic).collect();
    diagnostics.push(Diagnostic::error("choice", "other").with_location(location_on_line(3)));
    let text = diagnostics.render(TextStyle::default());
    assert_eq!(text.matches("= also:").count(), 1, "{text}");
    insta::assert_snapshot!(text);
    assert_eq!(diagnostics.summary().as_deref(), Some("1 error, 800 warnings (800 type)"));
    let full = diagnostics.render(TextStyle { is_full: true, ..TextStyle::default() });
    assert_eq!(full.matches("warning[type]").count(), 800);
}

#[test]
fn long_output_omits_later_source_lines() {
    let diagnostic = |n: u32| {
        let code: &'static str = format!("code-{n}").leak();
        Diagnostic::error(code, format!("wrong {n}"))
            .with_location(location_on_line(n))
            .with_help(format!("mend {n}"))
    };
    let mut diagnostics: Diagnostics = (1..=12).map(diagnostic).collect();
    diagnostics.extend((1..=9).map(|_| diagnostic(13)));
    let text = diagnostics.render(TextStyle::default());
    assert!(text.lines().count() <= render::SCREEN_LINES, "{text}");
    for n in 1..=13 {
        assert!(
            text.contains(&format!("wrong {n}")) && text.contains(&format!("= help: mend {n}"))
        );
    }
    assert!(text.contains("1 | a: x") && !text.contains("12 | a: x"), "{text}");
    assert!(text.contains("\nerror[code-13]: a.yaml:13:4: wrong 13 (and 8 more)\n"), "{text}");
    assert!(text.ends_with("\n(--full shows the lines of all)\n\n"), "{text}");
    let full = diagnostics.render(TextStyle { is_full: true, ..TextStyle::default() });
    assert_eq!(full.matches("a: x").count(), 21);
}

/// A rule reports the same fault for each project that it includes.
#[test]
fn equal_faults_at_one_location_are_shown_once() {
    let text = "a: x\nb: x\nc: x\nd: x\n";
    let source = SourceText::new("a.yaml", text);
    let make_error = |part| {
        Diagnostic::error("type", "wrong").with_location(source.locate(&find_range(text, part)))
    };
    let diagnostics: Diagnostics =
        "aaaabbbcd".split("").filter(|part| !part.is_empty()).map(make_error).collect();
    let text = diagnostics.render(TextStyle::default());
    for part in ["here (3 times)", "a.yaml:2:1 (3 times)", "2 more (--full shows all)"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// A note about one omitted diagnostic would need as many lines as the location of this diagnostic.
#[test]
fn a_single_omitted_fault_is_shown_instead() {
    let diagnostics = |diagnostic_count: u32| -> Diagnostics {
        let make_error = |n: u32| {
            Diagnostic::error("type", "wrong")
                .with_location(location_on_line(n))
                .with_help(format!("mend {n}"))
        };
        (1..=diagnostic_count).map(make_error).collect()
    };
    let text = diagnostics(4).render(TextStyle::default());
    assert!((1..=4).all(|n| text.contains(&format!("mend {n}"))), "{text}");
    assert!(diagnostics(5).render(TextStyle::default()).contains("and 2 more"));
}

#[test]
fn each_refusal_is_shown() {
    let diagnostic = |n: usize| {
        let code: &'static str = format!("code-{n}").leak();
        Diagnostic::error(code, format!("wrong {n}")).with_help(format!("mend {n}"))
    };
    let refusal = |n: usize| Diagnostic::error("guard", format!("would {n};")).with_help("pass it");
    for others in [0, 30] {
        let diagnostics: Diagnostics =
            (0..others).map(diagnostic).chain((1..=9).map(refusal)).collect();
        for width in [60, 140] {
            let text = diagnostics.render(TextStyle { width: Some(width), ..TextStyle::default() });
            assert!((1..=9).all(|n| text.contains(&format!("would {n};"))), "{text}");
        }
    }
}

/// A terminal would break long lines inside words.
#[test]
fn words_of_messages_are_not_cut_in_a_narrow_terminal() {
    let words = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda";
    let diagnostic = Diagnostic::error("syntax", words).with_help(words);
    let diagnostics: Diagnostics = [diagnostic].into_iter().collect();
    for width in [40, 60, 80] {
        let text = diagnostics.render(TextStyle { width: Some(width), ..TextStyle::default() });
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert_eq!(
            text.split_whitespace().filter(|word| words.contains(word)).count(),
            22,
            "{text}"
        );
    }
}

/// A warning counts as old only if the base has the same warning in the same file. The name of the
/// folder does not matter.
#[test]
fn old_warnings_are_matched_by_file() {
    let warnings_in = |root: &str, files: &[&str]| {
        let file_name = |file: &str| FileName::from(format!("{root}{file}"));
        let warning = |file: &&str| {
            Diagnostic::warning("type", "wrong")
                .with_location(SourceLocation::whole_file(file_name(file)))
        };
        let paths: FilePaths =
            ["x.yaml", "a/x.yaml"].map(|file| (file_name(file), file.into())).into_iter().collect();
        (files.iter().map(warning).collect::<Diagnostics>(), paths)
    };
    let (base, base_paths) = warnings_in("manifests/", &["a/x.yaml"]);
    for (branch_files, expected) in [
        (&["a/x.yaml"][..], &["base"][..]),
        (&["x.yaml"], &["type"]),
        (&["x.yaml", "a/x.yaml", "a/x.yaml"], &["type", "type", "base"]),
    ] {
        let (mut diagnostics, paths) = warnings_in("", branch_files);
        diagnostics.replace_old_warnings(&paths, &base, &base_paths);
        let codes: Vec<_> = diagnostics.0.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes, expected, "{branch_files:?}");
    }
}
