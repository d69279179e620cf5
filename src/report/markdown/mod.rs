//! A report as the comment of a merge request, in the service's Markdown.
//!
//! The first line is a hidden [`Marker`], which identifies the comment later. Equal reports have
//! the same bytes. A page has a size limit. Important items come first, then tables of changes,
//! then folded details. Elements that do not fit are counted. An element is shown as a whole or not
//! at all.

mod escape;
mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{
    compare::{self, TextComparison},
    marker::Marker,
    model::{
        FoldMode, FoldedSteps, ItemGroup, Report, ReportItem, ReportPart, StepExcerpt, StepItem,
        StepRow, action_sign, build_rows, file_line, fold_equal, fold_objects, fold_steps,
        group_by_key, joint_acknowledgement, label_word, note, predecessors, remarks,
        step::object_name,
    },
};
use crate::{diff::GuardRefusal, secret::Secrets, text::count, value::Json};
use escape::MarkdownEscaper;
use page::{MarkdownPage, PageBudget};

/// The size limit of a page. The service accepts a million characters, but shows such comments slowly,
/// and nobody reads more lines than this.
const PAGE_BUDGET: PageBudget = PageBudget { bytes: 60_000, lines: 200 };
/// The maximum number of shown lines of a text or a comparison.
const MAX_TEXT_LINES: usize = 40;
/// The maximum number of names in a list, as of groups and projects with the same change, of objects of a
/// note, or of earlier steps.
const MAX_NAMED: usize = 20;
/// The maximum number of listed items with the same code. Refusals are all listed.
const MAX_ITEMS_PER_CODE: usize = 10;

/// Renders `report` as a comment with `marker`, without `secrets`.
pub fn render(report: &Report<'_>, marker: &Marker, secrets: &Secrets) -> String {
    render_on(MarkdownPage::new(PAGE_BUDGET, MarkdownEscaper { secrets }), report, marker)
}

/// Renders `report` on `page`, which must have room for the summary.
fn render_on(mut page: MarkdownPage<'_>, report: &Report<'_>, marker: &Marker) -> String {
    write_head(&mut page, report, marker);
    let items = report.items();
    write_items(&mut page, &items, |group| group != ItemGroup::Warning);
    let steps = report.steps();
    let text_rows = write_changes(&mut page, report, &steps, ReportPart::Changes);
    for part in [ReportPart::Drift, ReportPart::Watched] {
        let step_count = steps.iter().filter(|item| item.part == part).count();
        if step_count > 0 {
            let title = format!("{} ({})", part.title(), count(step_count, "object"));
            write_collapsible(&mut page, &title, |page| {
                drop(write_changes(page, report, &steps, part));
            });
        }
    }
    write_items(&mut page, &items, |group| group == ItemGroup::Warning);
    write_comparisons(&mut page, &text_rows);
    write_order(&mut page, &steps);
    write_notes(&mut page, report);
    if page.has_omissions {
        let omitted_titles = std::mem::take(&mut page.omitted_titles);
        let omitted_list: String =
            omitted_titles.iter().map(|title| format!("- {title}\n")).collect();
        if !omitted_list.is_empty() {
            page.append_reserved(&format!("No room here for:\n\n{omitted_list}\n"));
        }
        page.append_reserved("This report is not complete: see the other reports of this run.\n");
    }
    page.text
}

fn write_head(page: &mut MarkdownPage<'_>, report: &Report<'_>, marker: &Marker) {
    let escaper = page.escaper;
    let summary = report.summary();
    let mut lines = summary.iter().map(String::as_str);
    let first_line = lines.next().unwrap_or_default();
    page.try_add(&format!("{marker}\n### undrift {first_line}\n\n"));
    for line in lines {
        page.try_add(&format!("**{line}**\n\n"));
    }
    if let Some(run) = report.run() {
        let target = if run.sandbox { "the sandbox".into() } else { escaper.code(&run.target) };
        page.try_add(&format!("For {target} as {}.\n\n", escaper.code(&run.caller)));
    }
    for line in report.footnotes() {
        page.try_add(&format!("{line}\n\n"));
    }
}

/// Writes a list for each group of items that `is_wanted` accepts.
fn write_items(
    page: &mut MarkdownPage<'_>,
    items: &[ReportItem<'_>],
    is_wanted: impl Fn(ItemGroup) -> bool,
) {
    for group_items in items.chunk_by(|a, b| a.group == b.group) {
        let Some(first_item) = group_items.first().filter(|item| is_wanted(item.group)) else {
            continue;
        };
        let head = format!("**{}**\n\n", first_item.group.title());
        let mut code_counts: BTreeMap<_, usize> = BTreeMap::new();
        let mut groups = fold_equal(group_items, false, ReportItem::fold_key);
        let omitted_groups = groups.extract_if(.., |(item, _)| {
            let seen_count = code_counts.entry(item.code.clone()).or_default();
            *seen_count += 1;
            *seen_count > MAX_ITEMS_PER_CODE && item.refusal.is_none()
        });
        let omitted_items: Vec<_> = omitted_groups.collect();
        // Adjacent items with the same help show the help once.
        let (escaper, mut last_help) = (page.escaper, None);
        let groups = groups.into_iter().map(|(item, others)| {
            let is_new = last_help.replace(&item.help) != Some(&item.help);
            item_text(item, &others, item.help.as_deref().filter(|_| is_new), escaper)
        });
        let group_count = groups.len();
        let omitted_count = page.add_list(&head, groups);
        if omitted_count == group_count {
            // The heading of the group did not fit either.
            page.omitted_titles.push(format!(
                "{} ({})",
                first_item.group.title(),
                group_items.len()
            ));
            continue;
        }
        write_omitted(page, omitted_count, "entry");
        for same_code_items in group_by_key(&omitted_items, |(item, _)| item.code.clone()) {
            let number: usize = same_code_items.iter().map(|(_, others)| 1 + others.len()).sum();
            page.append_reserved(&format!(
                "… and {number} more with the code `{}`\n\n",
                same_code_items[0].0.code
            ));
        }
    }
}

/// The list item for `item` and for the equal items `others`, with `help`.
fn item_text(
    item: &ReportItem<'_>,
    others: &[&ReportItem<'_>],
    help: Option<&str>,
    escaper: MarkdownEscaper<'_>,
) -> String {
    let mut text = String::from("- ");
    if let Some(address) = item.address {
        text += &format!("{} ", escaper.code(&address.to_string()));
    }
    text += &escaper.code(&item.message);
    if let Some(location) = item.location_text() {
        text += &format!(" at {}", escaper.code(&location));
    }
    let other_names: Vec<_> = others.iter().filter_map(|item| item.object_or_location()).collect();
    text += &others_text("the same", &other_names, escaper);
    if let Some(help) = help {
        text += &format!("\\\n  {}", escaper.code(help));
    }
    if let Some(refusal) = item.refusal {
        let others: Vec<_> = others.iter().filter_map(|item| item.refusal).collect();
        let document = acknowledge_document(refusal, &others);
        text += &format!("\\\n  if intended, add {} to the manifests", escaper.code(&document));
    }
    text + "\n"
}

/// The manifest document that acknowledges `refusal` and the similar refusals in `others`. Readers of a
/// comment have no command line, so a `--ack` option would not help them.
fn acknowledge_document(refusal: &GuardRefusal, others: &[&GuardRefusal]) -> String {
    let acknowledgement = joint_acknowledgement(refusal, others.iter().copied());
    let address = acknowledgement.split_once(':').map_or("", |(_, at)| at);
    let objects = refusal.objects + others.iter().map(|other| other.objects).sum::<usize>();
    let (guard, at) = (refusal.guard, Json::from(address));
    format!("{{kind: Acknowledge, guard: {guard}, at: {at}, at_most: {objects}}}")
}

/// Writes a table of the steps of `part` for each group or project. Returns the rows whose texts have
/// several lines, which do not fit into a table.
fn write_changes<'a>(
    page: &mut MarkdownPage<'_>,
    report: &Report<'_>,
    steps: &[StepItem<'a>],
    part: ReportPart,
) -> Vec<StepRow<'a>> {
    let escaper = page.escaper;
    let steps: Vec<_> = steps.iter().copied().filter(|item| item.part == part).collect();
    let blocked_paths = report.blocked_paths();
    let mut groups = fold_steps(&steps, FoldMode::Fields);
    // The most important groups come first, because the last groups may not fit.
    groups.sort_by_cached_key(|folded| {
        let mut steps = folded.steps.iter();
        let has_container_step = steps.any(|excerpt| excerpt.item.step.address.section.is_none());
        let mut paths = folded.others.iter().copied().chain([&*folded.first_step().address.path]);
        let is_blocked = paths.any(|path| blocked_paths.contains(path));
        (!has_container_step, !is_blocked, folded.others.is_empty())
    });
    let (mut omitted_count, mut multi_line_rows) = (0, Vec::new());
    for folded in groups {
        let shared_remark =
            folded.shared_remark().map(|more| format!(" ({more})")).unwrap_or_default();
        let columns = Columns::for_steps(&folded.steps);
        let path = escaper.code(&folded.first_step().address.path);
        let others_suffix = others_text(folded.alike_text(), &folded.others, escaper);
        let head = format!("{path}{shared_remark}{others_suffix}\n\n{}", columns.head());
        let steps = folded.steps.into_iter();
        let rows: Vec<_> = steps
            .flat_map(|excerpt| columns.rows(excerpt, escaper, &mut multi_line_rows))
            .collect();
        omitted_count += page.add_list(&head, rows.into_iter());
    }
    write_omitted(page, omitted_count, "line");
    multi_line_rows
}

/// The text that names the other objects with the same content.
fn others_text(
    alike_text: &str,
    others: &[impl AsRef<str>],
    escaper: MarkdownEscaper<'_>,
) -> String {
    if others.is_empty() {
        return String::new();
    }
    format!(
        ", and {alike_text} in {}: {}",
        count(others.len(), "other"),
        shorten_names(others, escaper)
    )
}

/// The first of `names`, and the number of the others.
fn shorten_names(names: &[impl AsRef<str>], escaper: MarkdownEscaper<'_>) -> String {
    let named: Vec<_> =
        names.iter().take(MAX_NAMED).map(|name| escaper.code(name.as_ref())).collect();
    let omitted_count = names.len() - named.len();
    let rest_text =
        if omitted_count > 0 { format!(" and {omitted_count} more") } else { String::new() };
    named.join(", ") + &rest_text
}

/// The optional columns of a table of steps.
#[derive(Clone, Copy)]
struct Columns {
    has_labels: bool,
    has_outcomes: bool,
}

impl Columns {
    fn for_steps(steps: &[StepExcerpt<'_>]) -> Self {
        Self {
            has_labels: steps.iter().any(|excerpt| excerpt.item.step.label.is_some()),
            has_outcomes: steps.iter().any(|excerpt| excerpt.item.outcome.is_some()),
        }
    }

    /// A row of the table. `label` and `outcome` are omitted if the table does not have their columns.
    fn row(self, object: &str, cells: [&str; 4], label: &str, outcome: &str) -> String {
        let mut row = format!("| {object} |");
        for cell in cells {
            row += &format!(" {cell} |");
        }
        for (has_column, cell) in [(self.has_labels, label), (self.has_outcomes, outcome)] {
            if has_column {
                row += &format!(" {cell} |");
            }
        }
        row + "\n"
    }

    fn head(self) -> String {
        let names = ["Field", "Before", "After", "Declared at"];
        self.row("Object", names, "Whose", "Outcome") + &self.row("---", ["---"; 4], "---", "---")
    }

    /// The rows of a step. Rows with texts of several lines are also added to `multi_line_rows`.
    fn rows<'a>(
        self,
        StepExcerpt { item, changes }: StepExcerpt<'a>,
        escaper: MarkdownEscaper<'_>,
        multi_line_rows: &mut Vec<StepRow<'a>>,
    ) -> Vec<String> {
        let step = item.step;
        let sign = escaper.cell(&action_sign(step.action).1.to_string());
        let object = format!("{sign} {}", escaper.cell(&object_name(step.scope, &step.address)));
        let outcome = item.outcome.unwrap_or_default();
        let mut rows = Vec::new();
        let remark = remarks(step).join("; ");
        let fields = build_rows(step, changes, false);
        if !remark.is_empty() || fields.is_empty() {
            let cells = [&*remark, "", "", &escaper.cell(&file_line(&step.origin))];
            rows.push(self.row(&object, cells, step.label.map_or("", label_word), outcome));
        }
        for row in fields {
            let origin = escaper.cell(&file_line(row.origin.unwrap_or(&step.origin)));
            let [before, after] = row
                .before_and_after_texts()
                .map(|side| side.map_or_else(String::new, |side| escaper.value_cell(&side)));
            let cells = [&*escaper.cell(&row.name), &before, &after, &origin];
            // The object and the outcome are shown once.
            let (object, outcome) = if rows.is_empty() { (&*object, outcome) } else { ("", "") };
            rows.push(self.row(
                object,
                cells,
                row.label.or(step.label).map_or("", label_word),
                outcome,
            ));
            if row.multi_line_texts().is_some() {
                multi_line_rows.push(row);
            }
        }
        rows
    }
}

/// Writes the line-by-line comparisons of texts with several lines, in a collapsible section.
fn write_comparisons(page: &mut MarkdownPage<'_>, text_rows: &[StepRow<'_>]) {
    let escaper = page.escaper;
    let blocks = text_rows.iter().filter_map(|row| {
        let (before, after) = row.multi_line_texts()?;
        let address = escaper.code(&row.step.address.to_string());
        let head = format!("{address} {}\n\n", escaper.code(&row.name));
        let comparison =
            match compare::compare_texts(before, after, |text| escaper.secrets.redact(text)) {
                TextComparison::Remark(remark) => format!("{remark}\n"),
                TextComparison::Lines(lines) => {
                    let shown_lines = &lines[..lines.len().min(MAX_TEXT_LINES)];
                    let omitted_text = match lines.len() - shown_lines.len() {
                        0 => String::new(),
                        more => format!("\n… {}\n", count(more, "more line")),
                    };
                    escaper.diff_block(shown_lines) + &omitted_text
                }
            };
        Some(format!("{head}{comparison}\n"))
    });
    let blocks: Vec<_> = blocks.collect();
    write_details(page, "Texts, line by line", blocks.len(), blocks, "text");
}

/// Writes a collapsible list of the steps that must come after other steps, with the reasons.
fn write_order(page: &mut MarkdownPage<'_>, steps: &[StepItem<'_>]) {
    let escaper = page.escaper;
    let mut lines = Vec::new();
    for FoldedSteps { steps, others, .. } in fold_steps(steps, FoldMode::Steps) {
        let others_suffix = others_text("the same", &others, escaper);
        for step in steps.iter().map(|excerpt| excerpt.item.step) {
            let address = escaper.code(&step.address.to_string());
            for (reason, earlier_steps) in predecessors(step) {
                let earlier_text = shorten_names(&earlier_steps, escaper);
                lines.push(format!("- {address} after {earlier_text}: {reason}{others_suffix}\n"));
            }
        }
    }
    write_details(page, "Order: what comes first, and why", lines.len(), lines, "line");
}

/// Writes the notes, in a collapsible list for each kind.
fn write_notes(page: &mut MarkdownPage<'_>, report: &Report<'_>) {
    let escaper = page.escaper;
    for ((_, title), notes) in report.notes() {
        let objects = notes.iter().map(|note| (&*note.address.path, note::note_object(note)));
        let lines = fold_objects(objects, false).into_iter().map(|group| {
            let objects = group.objects.iter().map(String::as_str);
            let objects: Vec<_> = objects.filter(|object| !object.is_empty()).collect();
            if objects.is_empty() {
                let paths: Vec<_> = [group.path].into_iter().chain(group.others).collect();
                return format!("- {}\n", shorten_names(&paths, escaper));
            }
            let title_suffix = group.title().replacen(group.path, "", 1);
            format!(
                "- {}{title_suffix} {}\n",
                escaper.code(group.path),
                shorten_names(&objects, escaper)
            )
        });
        // The title is HTML, where backticks have no meaning.
        write_details(page, &title.replace('`', ""), notes.len(), lines.collect(), "line");
    }
}

/// Writes `elements` as a collapsible list with `title`, if there are any.
fn write_details(
    page: &mut MarkdownPage<'_>,
    title: &str,
    number: usize,
    elements: Vec<String>,
    noun: &str,
) {
    if elements.is_empty() {
        return;
    }
    let title = format!("{title} ({number})");
    write_collapsible(page, &title, |page| {
        let omitted = page.add_list("", elements.into_iter());
        write_omitted(page, omitted, noun);
    });
}

/// Writes a collapsible section with `title`, whose content `write_content` writes. The title is not
/// escaped, so it must not contain text from manifests or the service.
fn write_collapsible(
    page: &mut MarkdownPage<'_>,
    title: &str,
    write_content: impl FnOnce(&mut MarkdownPage<'_>),
) {
    const END_TAG: &str = "</details>\n\n";
    // Write both tags or none: without its end tag, the section would contain all later elements.
    let head = format!("<details><summary>{title}</summary>\n\n");
    if page.try_add_section(&head, write_content) {
        page.append_reserved(END_TAG);
    } else {
        page.omitted_titles.push(title.to_owned());
    }
}

/// Writes the number of omitted elements, if there are any.
fn write_omitted(page: &mut MarkdownPage<'_>, omitted: usize, noun: &str) {
    if omitted > 0 {
        page.append_reserved(&format!("… and {}\n\n", count(omitted, &format!("more {noun}"))));
    }
}
