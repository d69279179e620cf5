//! Tests of comments, as posted and as a Markdown parser reads them.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::*;
use crate::{
    address::Address,
    diagnostic::Diagnostic,
    diff::{Edge, Note, Problem, Reason},
    report::{
        ApplyContent, PlanContent, ReportContent, ReportKind, RunReportState,
        terminal::tests::{hostile_content, repeated_plan, sample_run},
        testing::ReportFixture,
    },
    secret::{Secret, judge},
    text::is_unsafe,
};

fn marker() -> Marker {
    "plan".parse().unwrap()
}

fn render_report(report: &Report<'_>) -> String {
    super::render(report, &marker(), &Secrets::default())
}

#[test]
fn a_plan() {
    insta::assert_snapshot!(ReportFixture::new().render_named("plan", render_report));
}

/// Readers of a comment have no command line, so the acknowledgement is a document to copy.
#[test]
fn a_refusal_is_acknowledged_by_a_document() {
    let fixture = ReportFixture::new();
    let refusal = &fixture.plan.refusals[0];
    let text = acknowledge_document(refusal, &[]);
    let expected = serde_json::json!({
        "kind": "Acknowledge", "guard": "removals", "at": "acme/shop#hooks", "at_most": refusal.objects,
    });
    assert_eq!(crate::yaml::parse(&text).documents[0].to_json(), expected, "{text}");
    assert!(fixture.render_named("plan", render_report).contains(&text), "{text}");
}

/// The items after the counted ones must still fit into the comment.
#[test]
fn many_items_with_one_code_are_counted() {
    let mut fixture = ReportFixture::new();
    let missing_secret = |index: usize| {
        let name = char::from_u32(0x4e00 + index as u32).unwrap();
        Diagnostic::error("missing-secret", format!("no value for `TOKEN_{name}`"))
    };
    fixture.diagnostics.extend((0..MAX_ITEMS_PER_CODE + 30).map(missing_secret));
    let text = fixture.render_named("plan", render_report);
    assert_eq!(text.matches("no value for").count(), MAX_ITEMS_PER_CODE, "{text}");
    assert!(text.contains("… and 30 more with the code `missing-secret`"), "{text}");
    assert!(text.contains("unknown field `visiblity`"), "{text}");
}

/// Each error names another user, and all have the same help.
#[test]
fn the_same_help_is_written_once() {
    let mut fixture = ReportFixture::new();
    let problem = fixture.plan.problems[0].clone();
    let problem = |n: usize| Problem {
        message: format!("the service has no user `ghost-{n}`"),
        help: Some("correct the username".into()),
        ..problem.clone()
    };
    fixture.plan.findings.problems = (0..5).map(problem).collect();
    let text = fixture.render_named("plan", render_report);
    assert_eq!(text.matches("ghost-").count(), 5, "{text}");
    assert_eq!(text.matches("correct the username").count(), 1, "{text}");
}

/// Omitted folds are named at the end, and no fold is empty.
#[test]
fn a_fold_without_room_is_named_at_the_end() {
    let (mut plan, run, fixture) =
        (repeated_plan(3, |at| at + 51), sample_run(), ReportFixture::new());
    let note = |n: usize| Note {
        address: Address::container(format!("acme/p{n}").into()),
        reason: Reason::Archived,
        fields: Vec::new(),
        origin: None,
    };
    plan.notes = (0..2).map(note).collect();
    let planned = PlanContent::new(&run, &plan);
    let state = RunReportState::finished(0, ReportContent::Plan(&planned));
    let report =
        Report { kind: ReportKind::Plan, manifests: ".", diagnostics: &fixture.diagnostics, state };
    let no_secrets = Secrets::default();
    let render_at = |lines| {
        let room = PageBudget { bytes: 60_000, lines };
        let page = MarkdownPage::new(room, MarkdownEscaper { secrets: &no_secrets });
        render_on(page, &report, &marker())
    };
    let title = "archived, as declared; skipped (2)";
    let has_fold = |lines| render_at(lines).contains(&format!("<summary>{title}"));
    let sufficient_lines = (40..200).find(|lines| has_fold(*lines)).unwrap();
    for lines in 40..sufficient_lines {
        let text = render_at(lines);
        assert!(text.contains("Warnings about the manifests"), "{lines}: {text}");
        assert!(!text.contains("more entry"), "{text}");
        assert!(
            text.contains("No room here for:\n\n") && text.contains(&format!("\n- {title}\n")),
            "{lines}: {text}"
        );
        assert!(!text.contains("<details>"), "{lines}: {text}");
    }
}

#[test]
fn all_earlier_steps_are_named_or_counted() {
    let mut fixture = ReportFixture::new();
    let edge = |n: usize| Edge {
        address: Address::container(format!("acme/p{n}").into()),
        reason: "it must move first",
    };
    fixture.plan.findings.steps[0].after = (0..MAX_NAMED + 2).map(edge).collect();
    let text = fixture.render_named("plan", render_report);
    assert!(text.contains("after `acme/p0`, `acme/p1`"), "{text}");
    assert!(text.contains(" and 2 more: it must move first"), "{text}");
}

/// New and blocked projects must fit even if there are many changed settings.
#[test]
fn new_and_blocked_projects_come_before_changed_settings() {
    let (mut plan, run, fixture) =
        (repeated_plan(60, |at| at + 51), sample_run(), ReportFixture::new());
    let problem = fixture.plan.problems[0].clone();
    let blocked_path = plan.steps[57].address.path.clone();
    plan.findings.problems =
        vec![Problem { address: Address::container(blocked_path.clone()), ..problem }];
    let new_path = plan.steps[58].address.path.clone();
    plan.steps[58].address.section = None;
    let planned = PlanContent::new(&run, &plan);
    let state = RunReportState::finished(0, ReportContent::Plan(&planned));
    let report =
        Report { kind: ReportKind::Plan, manifests: ".", diagnostics: &fixture.diagnostics, state };
    let text = render_report(&report);
    let find_path = |path: &str| text.find(&format!("\n`{path}`\n"));
    let first = find_path(&plan.steps[0].address.path);
    assert!(
        find_path(&new_path) < find_path(&blocked_path)
            && find_path(&blocked_path) < first
            && first.is_some(),
        "{text}"
    );
}

#[test]
fn the_result_of_an_apply() {
    insta::assert_snapshot!(ReportFixture::new().render_named("apply", render_report));
}

#[test]
fn a_run_that_failed() {
    insta::assert_snapshot!(ReportFixture::new().render_named("failed", render_report));
}

#[test]
fn a_branch_sees_its_own_changes_first() {
    let text = ReportFixture::new().labelled().render_named("plan", render_report);
    let branch_start = text.find("| this branch |").unwrap();
    let fold_start = text.find("<details><summary>Drift: ").unwrap();
    let drift = text.find("| drift |").unwrap();
    assert!(branch_start < fold_start && fold_start < drift, "{text}");
    assert!(!text[..fold_start].contains("| drift |"), "{text}");
}

#[test]
fn every_report_begins_with_the_marker_and_is_the_same_twice() {
    let fixture = ReportFixture::new();
    fixture.for_each_report(|name, report| {
        let text = render_report(report);
        assert!(text.starts_with("<!-- undrift:plan -->\n### undrift "), "{name}: {text}");
        assert_eq!(text, render_report(report), "{name}");
    });
}

#[test]
fn no_secret_is_in_a_comment() {
    let mut secrets = Secrets::default();
    for secret in ["would remove 6 entries", "Where customers buy", "What should have"] {
        secrets.add_redaction(Secret::new(secret));
    }
    ReportFixture::new().for_each_report(|name, report| {
        let text = super::render(report, &marker(), &secrets);
        assert!(
            !["would remove", "customers", "should have"].iter().any(|s| text.contains(s)),
            "{name}: {text}"
        );
    });
}

/// The content of a comment, as a Markdown parser sees it.
#[derive(Debug, Default)]
struct ParsedComment {
    /// HTML elements and comments, word for word.
    html: Vec<String>,
    /// Code, in spans and in lines of blocks.
    code: Vec<String>,
    /// All other text.
    plain_text: String,
    /// Links, images and everything else that a comment never contains.
    unexpected: Vec<String>,
    /// The number of cells in each row of a table.
    rows: Vec<usize>,
}

fn parse_comment(text: &str) -> ParsedComment {
    let mut doc = ParsedComment::default();
    let mut in_block = false;
    let options = Options::all()
        - Options::ENABLE_OLD_FOOTNOTES
        - Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        - Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS
        - Options::ENABLE_SMART_PUNCTUATION;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => doc.html.push(html.trim().to_owned()),
            Event::Code(code) => doc.code.push(code.into_string()),
            Event::Text(text) if in_block => {
                doc.code.extend(text.lines().map(str::to_owned));
            }
            Event::Text(text) => doc.plain_text.push_str(&text),
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Start(Tag::TableRow | Tag::TableHead) => doc.rows.push(0),
            Event::Start(Tag::TableCell) => {
                if let Some(row) = doc.rows.last_mut() {
                    *row += 1;
                }
            }
            Event::Start(
                Tag::Paragraph
                | Tag::Heading { .. }
                | Tag::List(None)
                | Tag::Item
                | Tag::Strong
                | Tag::Table(_)
                | Tag::HtmlBlock,
            )
            | Event::End(_)
            | Event::SoftBreak
            | Event::HardBreak => {}
            other => doc.unexpected.push(format!("{other:?}")),
        }
    }
    doc
}

/// True if undrift wrote the element or comment `html`.
fn is_own_markup(html: &str) -> bool {
    let title =
        html.strip_prefix("<details><summary>").and_then(|rest| rest.strip_suffix("</summary>"));
    html.is_empty()
        || ["<!-- undrift:plan -->", "</details>"].contains(&html)
        || title.is_some_and(|title| !title.contains(['<', '>', '&', '`']))
}

fn assert_harmless(text: &str) {
    let doc = parse_comment(text);
    assert!(doc.html.iter().all(|html| is_own_markup(html)), "{:?} in {text}", doc.html);
    assert_eq!(doc.unexpected, [""; 0], "{text}");
    // In these tests, every text from manifests and the service contains the word `canary`.
    assert!(!doc.plain_text.contains("canary"), "{} in {text}", doc.plain_text);
    assert!(doc.rows.iter().all(|cells| (5..=7).contains(cells)), "{:?} in {text}", doc.rows);
    assert!(!text.contains(|c| is_unsafe(c) && c != '\n' && c != '\t'), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with('/')), "{text}");
}

/// Text made of pieces that have a meaning in Markdown, for the service, for a terminal or in HTML.
fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => proptest::sample::select(vec![
            "`", "``", "```", "|", "\\", "\\|", "\n", "\r\n", "\r", "\n\n", "/close", "\n/close\n",
            "@all", "#1", "!1", "~bug", "$1", "&1", "%1", "<b>", "</details>", "<script>", "-->",
            "<!--", "&amp;", "![x](http://x)", "[x](http://x)", "http://x.example", "www.x.example",
            "a@b.example", "*", "_", "~~", "[^1]", "[[x]]", "---", "===", "    ", "\t", "> ", "- ",
            "$`x`$", "$$", "{+ +}", ":smile:", "\u{202e}", "\u{200b}", "\u{1b}[31m", "\u{2028}",
            "+", "# ", "\u{85}", "::include{file=x}", "canary", " ",
        ]).prop_map(str::to_owned),
        1 => "(\\PC|\\p{C}){1,3}",
    ];
    proptest::collection::vec(piece, 0..8)
        .prop_map(|pieces| format!("canary{}canary", pieces.concat()))
        // The pieces may form a URL with a password. Reports hide passwords, so such a text would
        // not stay unchanged.
        .prop_filter("a credential", |text| judge::mask_name(text) == *text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn text_of_others_is_code_and_stays_unchanged(text in hostile_text()) {
        let (run, plan, applied) = hostile_content(&text);
        let planned = PlanContent::new(&run, &plan);
        let outcomes = ApplyContent::new(&run, &plan, &applied, &[]);
        let no_diagnostics = Default::default();
        let failed = RunReportState::failed(3, &text, Some(&text), &no_diagnostics);
        let finished = |content| RunReportState::finished(0, content);
        for state in [failed, finished(ReportContent::Plan(&planned)), finished(ReportContent::Apply(&outcomes))] {
            let report = Report { kind: ReportKind::Plan, manifests: &text, diagnostics: &no_diagnostics, state };
            let page = render_report(&report);
            assert_harmless(&page);
            let message = crate::text::escape(&text).into_owned();
            if message.chars().count() < 200 {
                let code = parse_comment(&page).code;
                prop_assert!(code.contains(&message), "{message:?} not in {code:?}");
            }
        }
    }

    #[test]
    fn a_cell_keeps_its_text(text in hostile_text()) {
        let no_secrets = Secrets::default();
        let escaper = MarkdownEscaper { secrets: &no_secrets };
        let page = format!("| a | b |\n| --- | --- |\n| {} | {} |\n", escaper.cell(&text), escaper.cell("b"));
        let doc = parse_comment(&page);
        prop_assert_eq!(&doc.rows, &[2, 2], "{}", page);
        let shown = crate::text::escape(&text).replace("\\|", "\\u{5c}|");
        prop_assert_eq!(&doc.code, &[shown, "b".to_owned()], "{}", page);
    }

    #[test]
    fn a_page_fits_its_budget_and_closes_its_elements(bytes in 6_000_usize..40_000, lines in 40_usize..300, projects in 1_usize..80) {
        let budget = PageBudget { bytes, lines };
        let (plan, run, fixture) = (repeated_plan(projects, |at| at + 51), sample_run(), ReportFixture::new());
        let planned = PlanContent::new(&run, &plan);
        let state = RunReportState::finished(0, ReportContent::Plan(&planned));
        let diagnostics = &fixture.diagnostics;
        let report = Report { kind: ReportKind::Plan, manifests: ".", diagnostics, state };
        let no_secrets = Secrets::default();
        let page = MarkdownPage::new(budget, MarkdownEscaper { secrets: &no_secrets });
        let text = render_on(page, &report, &marker());
        prop_assert!(text.len() <= bytes && text.lines().count() <= lines, "{} of {budget:?}", text.len());
        assert_harmless(&text);
        prop_assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        let rows = text.matches("`ci_default_git_depth`").count();
        let more = if rows < plan.steps.len() { format!("… and {}", count(plan.steps.len() - rows, "more line")) } else { String::new() };
        prop_assert!(text.contains(&more), "{rows} of {} in {text}", plan.steps.len());
    }
}
