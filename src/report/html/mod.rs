//! A report as one HTML page.
//!
//! The page is complete without its script: everything is text, folded with `details`. The script
//! adds filters, which the URL's fragment can set (`#action=remove&q=hook`), and buttons to fold
//! and copy. Nothing is loaded from elsewhere. A content security policy allows only the page's own
//! style and script, by their digests. So text from a name is never executed.

mod escape;
mod steps;
#[cfg(test)]
mod tests;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use super::model::{
    ItemGroup, Report, ReportContent, ReportItem, ReportPart, StepItem, action_word,
    fold::fold_equal, item::joint_acknowledgement, note::note_object,
};
use crate::{
    diff::Action,
    secret::Secrets,
    text::{count, shell_word},
};
use escape::HtmlPage;

/// The style of the page.
const STYLE: &str = include_str!("page.css");
/// The filters. Filters need the script, so they are hidden until the script shows them.
const FILTERS: &str = include_str!("filters.html");
/// The script of the page.
const SCRIPT: &str = include_str!("page.js");

/// If a report has more steps than this, all steps are folded when the page opens.
const MAX_OPEN_STEPS: usize = 300;

/// Renders `report` as a page, without `secrets`.
pub fn render(report: &Report<'_>, secrets: &Secrets) -> String {
    let steps = report.steps();
    let parts = ReportPart::ALL.map(|part| {
        (part, steps.iter().copied().filter(|item| item.part == part).collect::<Vec<_>>())
    });
    let html = String::with_capacity(4_096 + steps.len() * 1_024);
    let mut page = HtmlPage { html, secrets, step_numbers: steps::linked_step_numbers(&parts) };
    let summary = report.summary();
    let title = summary.first().map_or("", |line| line);
    page += &format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>undrift {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n",
        content_security_policy(),
        page.escape_text(title)
    );
    write_header(&mut page, report, &steps);
    page += "<main>\n";
    let report_items = report.items();
    let warning_start = report_items.partition_point(|item| item.group < ItemGroup::Warning);
    write_items(&mut page, &report_items[..warning_start]);
    if !steps.is_empty() {
        page += &FILTERS.replace("{all}", &count(steps.len(), "object"));
    }
    let is_open = steps.len() <= MAX_OPEN_STEPS;
    for (part, items) in parts.iter().filter(|(_, items)| !items.is_empty()) {
        let is_open = is_open && *part != ReportPart::Drift;
        steps::write_part(&mut page, items, *part, is_open);
    }
    write_items(&mut page, &report_items[warning_start..]);
    write_notes(&mut page, report);
    page += "</main>\n";
    page += &format!("<script>{SCRIPT}</script>\n</body>\n</html>\n");
    page.html
}

/// The content security policy, which allows only the page's own style and script.
fn content_security_policy() -> String {
    let [style, script] = [STYLE, SCRIPT].map(|text| BASE64_STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

fn write_header(page: &mut HtmlPage<'_>, report: &Report<'_>, steps: &[StepItem<'_>]) {
    let mut lines = report.summary().into_iter();
    let first_line = lines.next().unwrap_or_default();
    // The line above the heading already names the kind of report.
    let headline =
        first_line.strip_prefix(&format!("{}: ", report.kind.word())).unwrap_or(&first_line);
    *page += "<header>\n";
    *page += &format!(
        "<p class=\"brand\">undrift <b>{}</b></p>\n<h1>{}</h1>\n",
        report.kind.word(),
        page.escape_text(headline)
    );
    for line in lines.chain(report.footnotes()) {
        *page += &format!("<p class=\"lead\">{}</p>\n", page.escape_text(&line));
    }
    *page += "<p class=\"about\">";
    if let Some(run) = report.run() {
        let target = if run.sandbox { "the sandbox" } else { &run.target };
        *page += &format!(
            "for <code>{}</code> as <code>{}</code>",
            page.escape_text(target),
            page.escape_text(&run.caller)
        );
    } else {
        *page += &format!("of <code>{}</code>", page.escape_text(report.manifests));
    }
    if let Some(code) = report.exit_code() {
        *page += &format!(" · exit code {code}");
    }
    *page += &format!(" · undrift {}</p>\n", env!("CARGO_PKG_VERSION"));
    if !steps.is_empty() {
        write_counts(page, report, steps);
    }
    *page += "</header>\n";
}

/// Writes how many objects will be created, changed and removed. After apply, writes how many were.
fn write_counts(page: &mut HtmlPage<'_>, report: &Report<'_>, steps: &[StepItem<'_>]) {
    let is_applied = matches!(report.content(), Some(ReportContent::Apply(_)));
    *page += "<ul class=\"tally\">\n";
    for action in [Action::Create, Action::Update, Action::Delete] {
        let counted_items = steps.iter().filter(|item| {
            item.step.action == action
                && if is_applied { item.is_done } else { item.part != ReportPart::Watched }
        });
        let (number, word) = (counted_items.count(), action_word(action));
        let action_text = match action {
            _ if !is_applied => format!("to {word}"),
            Action::Create => "created".into(),
            Action::Update => "changed".into(),
            Action::Delete => "removed".into(),
        };
        *page += &format!("<li class=\"{word}\"><b>{number}</b> {action_text}</li>\n");
    }
    *page += "</ul>\n";
}

/// Writes the items, in a section for each group.
fn write_items(page: &mut HtmlPage<'_>, items: &[ReportItem<'_>]) {
    for group_items in items.chunk_by(|a, b| a.group == b.group) {
        let Some(first_item) = group_items.first() else { continue };
        let css_class = match first_item.group {
            ItemGroup::Acknowledged => "acknowledged",
            group if group.is_failure() => "bad",
            _ => "warning",
        };
        *page += &format!(
            "<section class=\"items {css_class}\">\n<h2>{} <span class=\"count\">{}</span></h2>\n<ul>\n",
            page.escape_text(first_item.group.title()),
            group_items.len()
        );
        for (listed_item, others) in fold_equal(group_items, false, ReportItem::fold_key) {
            write_item(page, listed_item, &others);
        }
        *page += "</ul>\n</section>\n";
    }
}

fn write_item(page: &mut HtmlPage<'_>, item: &ReportItem<'_>, others: &[&ReportItem<'_>]) {
    *page += "<li>";
    if let Some(address) = item.address {
        *page +=
            &format!("<code class=\"address\">{}</code> ", page.escape_text(&address.to_string()));
    }
    *page += &format!("<span class=\"message\">{}</span>", page.escape_message(&item.message));
    if let Some(location) = item.location_text() {
        *page += &format!(" <span class=\"origin\">{}</span>", page.escape_text(&location));
    }
    if let Some(help) = &item.help {
        *page += &format!("<p class=\"help\">{}</p>", page.escape_message(help));
    }
    if let Some(refusal) = item.refusal {
        let others = others.iter().filter_map(|item| item.refusal);
        let ack_option = format!("--ack {}", shell_word(&joint_acknowledgement(refusal, others)));
        *page += &format!(
            "<p class=\"help\">If intended, pass <code class=\"copied\">{}</code> \
             <button type=\"button\" class=\"copy\" hidden>Copy</button></p>",
            page.escape_text(&ack_option)
        );
    }
    let others: Vec<_> = others.iter().filter_map(|item| item.object_or_location()).collect();
    steps::write_others(page, "the same", &count(others.len(), "more place"), &others);
    *page += "</li>\n";
}

/// Writes the notes, folded.
fn write_notes(page: &mut HtmlPage<'_>, report: &Report<'_>) {
    let notes_by_kind = report.notes();
    if notes_by_kind.is_empty() {
        return;
    }
    *page += "<section class=\"notes\">\n<h2>Notes</h2>\n";
    for ((_, title), notes) in notes_by_kind {
        *page += &format!(
            "<details>\n<summary>{} <span class=\"count\">{}</span></summary>\n<ul>\n",
            page.escape_message(title),
            notes.len()
        );
        for note in notes {
            *page += &format!(
                "<li><code class=\"address\">{}</code> {}</li>\n",
                page.escape_text(&note.address.path),
                page.escape_text(&note_object(note))
            );
        }
        *page += "</ul>\n</details>\n";
    }
    *page += "</section>\n";
}
