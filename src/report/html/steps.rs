//! The steps of a page: an article for each group or project, with a `details` for each object.

use std::collections::BTreeMap;

use similar::ChangeTag;

use super::escape::HtmlPage;
use crate::{
    diff::{Action, Step},
    report::{
        compare::{self, TextComparison},
        model::{
            FoldMode, FoldedSteps, ReportPart, StepItem, StepRow, ValueText, action_sign,
            action_word, build_rows, file_line, fold_steps, label_word, remarks, step::object_name,
        },
    },
    text::count,
};

/// The maximum number of earlier steps that are named for one reason.
const MAX_NAMED_STEPS: usize = 3;

/// The numbers of the steps that links can point to, by address. Of equal steps in several groups or
/// projects only the first is written to the page, so links can point only to that one.
pub(super) fn linked_step_numbers(
    parts: &[(ReportPart, Vec<StepItem<'_>>)],
) -> BTreeMap<String, usize> {
    let groups = parts.iter().flat_map(|(_, items)| fold_steps(items, FoldMode::Steps));
    let excerpts = groups.flat_map(|folded| folded.steps);
    excerpts.map(|excerpt| (excerpt.item.step.address.to_string(), excerpt.item.number)).collect()
}

/// Writes the steps of one part.
pub(super) fn write_part(
    page: &mut HtmlPage<'_>,
    items: &[StepItem<'_>],
    part: ReportPart,
    is_open: bool,
) {
    // Steps are not split, so that links can point to each of them.
    let folded_steps = fold_steps(items, FoldMode::Steps);
    *page += &format!(
        "<section class=\"part\">\n<h2>{} <span class=\"count\">{}</span></h2>\n",
        part.title(),
        items.len()
    );
    if part != ReportPart::Watched {
        *page += "<p class=\"order\">In each group or project, steps run in this order. Different groups and projects run at the same time, unless a step names the steps that must come before it.</p>\n";
    }
    for folded in folded_steps {
        let FoldedSteps { steps, others, .. } = &folded;
        let times_attribute = match others.len() {
            0 => String::new(),
            other_count => format!(" data-times=\"{}\"", other_count + 1),
        };
        *page += &format!(
            "<article{times_attribute}>\n<h3>{} <span class=\"count\">{}</span></h3>\n",
            page.escape_text(&folded.first_step().address.path),
            steps.len()
        );
        if let Some(shared) = folded.shared_remark() {
            *page += &format!("<p class=\"remark\">{shared}</p>\n");
        }
        let noun = format!("more {}", folded.first_step().scope.noun());
        write_others(page, folded.alike_text(), &count(others.len(), &noun), others);
        for excerpt in steps {
            write_step(page, &excerpt.item, is_open);
        }
        *page += "</article>\n";
    }
    *page += "</section>\n";
}

/// Writes a closed list of `others`: the paths of the groups and projects with the same content.
/// Writes nothing if there are none.
pub(super) fn write_others(
    page: &mut HtmlPage<'_>,
    alike_text: &str,
    title: &str,
    others: &[impl AsRef<str>],
) {
    if others.is_empty() {
        return;
    }
    *page +=
        &format!("<details class=\"alike\"><summary>{alike_text} in {title}</summary>\n<ul>\n");
    for other in others {
        *page += &format!("<li><code>{}</code></li>\n", page.escape_text(other.as_ref()));
    }
    *page += "</ul>\n</details>\n";
}

fn write_step(page: &mut HtmlPage<'_>, item: &StepItem<'_>, is_open: bool) {
    let (step, action) = (item.step, action_word(item.step.action));
    let section = step.address.section.unwrap_or(step.scope.noun());
    let label = step.label.map(label_word);
    let mut data_attributes = String::new();
    for (name, value) in [("whose", label), ("outcome", item.outcome)] {
        if let Some(value) = value {
            data_attributes += &format!(" data-{name}=\"{}\"", page.escape_text(value));
        }
    }
    let (_, sign) = action_sign(step.action);
    *page += &format!(
        "<details class=\"step {action}\" id=\"step-{}\" data-action=\"{action}\" data-section=\"{}\"{data_attributes}{}>\n\
         <summary><span class=\"sign\" title=\"{action}\">{sign}</span> <span class=\"object\">{}</span>",
        item.number,
        page.escape_text(section),
        if is_open { " open" } else { "" },
        page.escape_text(&object_name(step.scope, &step.address)),
    );
    for badge in [label, item.outcome].into_iter().flatten() {
        *page += &format!(" <span class=\"badge\">{}</span>", page.escape_text(badge));
    }
    *page += &format!(
        " <span class=\"origin\">{}</span> <span class=\"number\">#{}</span></summary>\n<div class=\"body\">\n",
        page.escape_text(&file_line(&step.origin)),
        item.number
    );
    for remark in remarks(step) {
        *page += &format!("<p class=\"remark\">{}</p>\n", page.escape_text(&remark));
    }
    write_predecessors(page, step);
    let rows = build_rows(step, &step.changes, true);
    if !rows.is_empty() {
        *page += "<table>\n";
        *page += match step.action {
            Action::Create => "<thead><tr><th>Field</th><th>Value</th></tr></thead>\n",
            Action::Delete => "<thead><tr><th>Field</th><th>Removed value</th></tr></thead>\n",
            Action::Update => {
                "<thead><tr><th>Field</th><th>Before</th><th>After</th></tr></thead>\n"
            }
        };
        *page += "<tbody>\n";
        for row in &rows {
            write_field(page, row);
        }
        *page += "</tbody>\n</table>\n";
    }
    write_calls(page, step);
    *page += "</div>\n</details>\n";
}

/// Writes the steps that must run before `step`, with links.
fn write_predecessors(page: &mut HtmlPage<'_>, step: &Step) {
    let mut links_by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for edge in &step.after {
        let address = edge.address.to_string();
        let text = page.escape_text(&address);
        let link = match page.step_numbers.get(&address) {
            Some(number) => format!("<a href=\"#step-{number}\">#{number} {text}</a>"),
            None => format!("<code>{text}</code>"),
        };
        links_by_reason.entry(edge.reason).or_default().push(link);
    }
    for (reason, links) in links_by_reason {
        let omitted_count = links.len().saturating_sub(MAX_NAMED_STEPS);
        let rest_text = if omitted_count > 0 {
            format!(" and {}", count(omitted_count, "more step"))
        } else {
            String::new()
        };
        let named_links = links[..links.len() - omitted_count].join(", ");
        *page += &format!(
            "<p class=\"remark\">after {named_links}{rest_text}: {}</p>\n",
            page.escape_text(reason)
        );
    }
}

fn write_field(page: &mut HtmlPage<'_>, row: &StepRow<'_>) {
    let origin = row.origin.map_or_else(String::new, |origin| {
        format!(" <span class=\"origin\">{}</span>", page.escape_text(&file_line(origin)))
    });
    let label = row.label.map(label_word).map_or_else(String::new, |label| {
        format!(" <span class=\"badge\">{}</span>", page.escape_text(label))
    });
    *page += &format!("<tr><th scope=\"row\">{}{label}{origin}</th>", page.escape_text(&row.name));
    let column_count = if row.step.action == Action::Update { 2 } else { 1 };
    match row.multi_line_texts() {
        Some((before, after)) => {
            *page += &format!("<td class=\"text\" colspan=\"{column_count}\">");
            write_comparison(page, before, after);
            *page += "</td>";
        }
        None => write_values(page, row),
    }
    *page += "</tr>\n";
}

/// Writes the values before and after; a creation or removal has only one of them.
fn write_values(page: &mut HtmlPage<'_>, row: &StepRow<'_>) {
    for (class, side) in ["before", "after"].into_iter().zip(row.before_and_after_texts()) {
        *page += &match side {
            None => continue,
            Some(ValueText::Remark(remark)) => format!(
                "<td class=\"{class}\"><span class=\"aside\">{}</span></td>",
                page.escape_text(&remark)
            ),
            Some(ValueText::Value(text)) => {
                format!("<td class=\"{class}\"><code>{}</code></td>", page.escape_text(&text))
            }
        };
    }
}

/// Writes the comparison of two texts.
fn write_comparison(page: &mut HtmlPage<'_>, before: &str, after: &str) {
    let lines = match compare::compare_texts(before, after, |text| page.secrets.redact(text)) {
        TextComparison::Remark(remark) => {
            *page += &format!("<span class=\"aside\">{}</span>", page.escape_text(&remark));
            return;
        }
        TextComparison::Lines(lines) => lines,
    };
    *page += "<pre class=\"diff\" tabindex=\"0\">";
    for (tag, line) in lines {
        let class = match tag {
            None => "head",
            Some(ChangeTag::Equal) => "same",
            Some(ChangeTag::Delete) => "out",
            Some(ChangeTag::Insert) => "in",
        };
        let (sign, line) = (compare::line_sign(tag), HtmlPage::escape_line(&line));
        *page += &format!("<span class=\"{class}\">{sign} {line}\n</span>");
    }
    *page += "</pre>";
}

/// Writes the calls that `apply` sends for `step`.
fn write_calls(page: &mut HtmlPage<'_>, step: &Step) {
    if step.calls.is_empty() {
        return;
    }
    *page += "<ul class=\"calls\">\n";
    for call in &step.calls {
        let condition = match call {
            _ if call.restores => ", only if the call before it failed",
            _ if call.undoes => {
                ", only if the service did not save the limit from the previous call"
            }
            _ => "",
        };
        *page += &format!(
            "<li><code>{} {}</code> <span class=\"aside\">{}{condition}</span></li>\n",
            call.method,
            page.escape_text(&call.path),
            page.escape_text(&call.fields.join(", "))
        );
    }
    *page += "</ul>\n";
}
