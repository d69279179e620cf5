//! One line for each finding and each difference, for editors and `grep`:
//! `file:line:col: code: message`.

use super::model::{
    Report, ReportContent, ReportItem, ReportPart, StepItem, action_word, item::declaration_origin,
    note, step::full_name,
};
use crate::{diff::Action, secret::Secrets, text::escape};

/// Renders the findings of `report` and the differences that it plans, without `secrets`. The text
/// is empty if there are none.
pub fn render(report: &Report<'_>, secrets: &Secrets) -> String {
    let items = report.items();
    let items = items.iter().map(|item| item_line(item, report.manifests, secrets));
    let is_planned = matches!(report.content(), Some(ReportContent::Plan(_)));
    let steps = report.steps().into_iter().filter(|_| is_planned).map(|item| step_line(&item));
    let notes = report.plan().into_iter().flat_map(|plan| &plan.notes);
    let notes = notes.filter(|note| is_planned && note.reason.is_difference()).map(|note| {
        let origin = note.origin.as_ref();
        let location = origin.map_or_else(|| report.manifests.to_owned(), ToString::to_string);
        let (address, (_, title)) = (full_name(&note.address), note::note_kind(&note.reason));
        format!("{location}: difference: {address}: {title}")
    });
    let differences = steps.chain(notes);
    let differences = differences.map(|text| escape(&secrets.redact(&text)).into_owned() + "\n");
    items.chain(differences).collect()
}

/// The line for a step, with the names of its changed fields.
fn step_line(StepItem { step, part, .. }: &StepItem<'_>) -> String {
    let changes = step.changes.iter().filter(|_| step.action == Action::Update);
    let fields: Vec<_> = changes.map(|change| &*change.field).collect();
    let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
    let part = match part {
        ReportPart::Changes => "",
        ReportPart::Drift => " (drift)",
        ReportPart::Watched => " (watched)",
    };
    let (location, object) = (declaration_origin(step), full_name(&step.address));
    format!("{location}: {}{part}: {object}{fields}", action_word(step.action))
}

fn item_line(item: &ReportItem<'_>, manifests: &str, secrets: &Secrets) -> String {
    let location = match item.location {
        Some((file, Some((line, column)))) => format!("{file}:{line}:{column}"),
        Some((file, None)) => file.to_owned(),
        None => manifests.to_owned(),
    };
    let prefix = item.address.map(|address| format!("{address}: ")).unwrap_or_default();
    let text = format!("{location}: {}: {prefix}{}", item.code, item.message);
    escape(&secrets.redact(&text)).into_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{report::testing::ReportFixture, secret::Secret};

    #[test]
    fn each_finding_is_a_line_with_its_place_and_code() {
        let render_named = |name: &str| {
            ReportFixture::new()
                .render_named(name, |report| super::render(report, &Secrets::default()))
        };
        insta::assert_snapshot!(render_named("plan"), @r#"
        shop.yaml:17:3: guard-visibility: acme/shop#hooks: visibility: would remove 6 entries of 8; the limit is 5
        shop.yaml:17:3: guard-removals: acme/shop#hooks: removals: would remove 6 entries of 8; the limit is 5
        shop.yaml:2:3: missing-project: acme/shop: the project `acme/shop` does not exist
        shop.yaml:3:1: unknown-field: unknown field `visiblity`
        ./manifests: not-read: acme/shop#variables: variable-list: answered 403
        ./manifests: deprecated: `wiki_enabled` is deprecated
        shop.yaml:3:1: change: acme/shop#settings: container_expiration_policy, description, issues_template, topics, visibility
        shop.yaml:17:17: change: acme/shop#variables/MODE@*: value
        shop.yaml:16:18: create: acme/shop#variables/TOKEN@prod/*
        shop.yaml:21:12: remove: acme/shop#variables/OLD@*
        shop.yaml:20:1: change: acme/shop#archived: archived
        "#);
        assert_eq!(
            render_named("failed").lines().next(),
            Some("./manifests: failed: no service address given")
        );
    }

    #[test]
    fn no_secret_is_in_a_line() {
        let mut secrets = Secrets::default();
        secrets.add_redaction(Secret::new("would remove 6 entries"));
        ReportFixture::new().for_each_report(|name, report| {
            let text = super::render(report, &secrets);
            assert!(!text.contains("would remove"), "{name}: {text}");
        });
    }
}
