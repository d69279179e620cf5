//! Faults and differences at their lines, in the subset of the Code Climate format that the widget
//! of merge requests reads.
//!
//! The widget compares two lists by fingerprint. It shows an entry that is missing in the new list
//! as fixed. So the list of an unfinished run has an entry, located at the folder of the manifests.
//! A fingerprint depends neither on lines nor on numbers in messages. The service drops entries
//! with equal fingerprints, so repeated entries get a number.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::{
    KeyMeaning, RedactedValue, ReportKind,
    json::escape_unsafe,
    model::{self, ItemGroup, Report, ReportItem, StepItem, group_by_key, local_name, note},
};
use crate::{
    address::Address,
    diff::{Action, FieldChange, Step},
    digest,
    secret::Secrets,
    text::{count, escape},
    value::Json,
};

/// The maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// An entry of the list.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Issue {
    description: String,
    check_name: String,
    fingerprint: String,
    #[serde(serialize_with = "crate::text::serialize_word")]
    severity: &'static str,
    location: Json,
}

/// Renders the list, without `secrets`.
///
/// # Errors
/// If a value cannot be written as JSON. Values of reports always can.
pub fn render(report: &Report<'_>, secrets: &Secrets) -> serde_json::Result<String> {
    let mut issue_list = IssueList {
        manifests: report.manifests,
        secrets,
        issues: Vec::new(),
        key_counts: BTreeMap::new(),
    };
    // Equal faults at the same line are one finding.
    for group in group_by_key(&report.items(), |item| (item.fold_key(), item.location_text())) {
        issue_list.add_item(group[0], group.len() - 1);
    }
    // A step that was applied is not a finding.
    let mut findings = Vec::new();
    for StepItem { step, .. } in report.steps().into_iter().filter(|item| item.outcome.is_none()) {
        if step.action == Action::Update {
            findings.extend(step.changes.iter().map(|change| (step, Some(change))));
        } else {
            findings.push((step, None));
        }
    }
    let groups = group_by_key(&findings, |(step, change)| {
        let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
        let field = change.map(|change| change.field.clone());
        let is_drift = step.is_drift();
        (origin.file.clone(), origin.line, step.action, local_name(&step.address), field, is_drift)
    });
    for group in groups {
        issue_list.add_step(*group[0], group.len() - 1, report.kind);
    }
    issue_list.add_notes(report);
    let redacted = RedactedValue::new(&issue_list.issues, KeyMeaning::Words, secrets);
    Ok(escape_unsafe(&serde_json::to_string_pretty(&redacted)?) + "\n")
}

/// The text for the number of other objects with the same finding; empty for 0.
fn others_text(other_count: usize) -> String {
    if other_count == 0 {
        String::new()
    } else {
        format!(", and in {}", count(other_count, "other"))
    }
}

/// The identity of a finding's object. The identity of a finding for several objects contains no
/// path, so it stays the same if another object becomes the first.
fn finding_identity(address: &Address, other_count: usize) -> String {
    if other_count == 0 { address.to_string() } else { local_name(address) }
}

/// A list that is being built.
struct IssueList<'a> {
    manifests: &'a str,
    secrets: &'a Secrets,
    issues: Vec<Issue>,
    /// The number of entries by key.
    key_counts: BTreeMap<String, usize>,
}

impl IssueList<'_> {
    /// Adds an item. `other_count` is the number of other objects with the same item.
    fn add_item(&mut self, item: &ReportItem<'_>, other_count: usize) {
        let severity = match item.group {
            ItemGroup::Run => "blocker",
            ItemGroup::Refused | ItemGroup::Problem | ItemGroup::Error | ItemGroup::NotApplied => {
                "critical"
            }
            ItemGroup::Mismatch | ItemGroup::Skipped | ItemGroup::Incomplete => "major",
            ItemGroup::Drift | ItemGroup::Warning => "minor",
            ItemGroup::Acknowledged => "info",
        };
        let object = item.address.map(|address| finding_identity(address, other_count));
        let message = item.is_identified_by_message.then(|| match other_count {
            0 => item.message.to_string(),
            _ => item.fold_key().2,
        });
        let prefix = item.address.map(|address| format!("{address}{}: ", others_text(other_count)));
        let object_prefix = prefix.unwrap_or_default();
        let acknowledged = matches!(item.group, ItemGroup::Acknowledged).then_some("acknowledged");
        let key = json!([object, message, acknowledged]);
        let location = item.location.map(|(file, position)| (file, position.map(|(line, _)| line)));
        self.add_issue(
            format!("{object_prefix}{}", item.message),
            &item.code,
            severity,
            location,
            &key,
        );
    }

    /// Adds a step, or one of its changes. `other_count` is the number of other objects with the same
    /// step or change from the same line.
    fn add_step(
        &mut self,
        (step, change): (&Step, Option<&FieldChange>),
        other_count: usize,
        kind: ReportKind,
    ) {
        let is_drift = matches!(kind, ReportKind::Drift) || step.is_drift();
        let severity = if is_drift { "minor" } else { "info" };
        let check = if is_drift { "drift" } else { "change" };
        let head = format!(
            "{} {}{}",
            model::action_word(step.action),
            step.address,
            others_text(other_count)
        );
        let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
        let field = change.map(|change| &change.field);
        let text = field.map_or_else(|| head.clone(), |field| format!("{head}: {field}"));
        let key = json!([finding_identity(&step.address, other_count), step.action, field]);
        self.add_issue(text, check, severity, Some((&origin.file, Some(origin.line))), &key);
    }

    /// Adds differences that apply does not change.
    fn add_notes(&mut self, report: &Report<'_>) {
        for ((_, title), mut notes) in report.notes() {
            notes.retain(|note| note.reason.is_difference());
            let groups = group_by_key(&notes, |note| {
                let location =
                    note.origin.as_ref().map(|origin| (origin.file.clone(), origin.line));
                (location.ok_or_else(|| note.address.to_string()), note::note_object(note))
            });
            for group in groups {
                let (note, other_count) = (*group[0], group.len() - 1);
                let location =
                    note.origin.as_ref().map(|origin| (&*origin.file, Some(origin.line)));
                let text = format!("{}{}: {title}", note.address, others_text(other_count));
                let key =
                    json!([finding_identity(&note.address, other_count), note::note_object(note)]);
                self.add_issue(text, "drift", "minor", location, &key);
            }
        }
    }

    /// Adds an entry; `key` identifies it among the entries of its check and file.
    fn add_issue(
        &mut self,
        description: String,
        check: &str,
        severity: &'static str,
        location: Option<(&str, Option<u32>)>,
        key: &Json,
    ) {
        let (file, line) = location.unwrap_or((self.manifests, None));
        let path = match file.trim_start_matches("./") {
            "" => ".",
            path => path,
        };
        // Remove secrets first, because a secret could be guessed from its digest.
        let key = self.secrets.redact(&digest::canonical_text(&json!([check, path, key])));
        let repeat_count = self.key_counts.entry(key.clone()).or_default();
        let fingerprint = digest::json_digest(&json!([key, repeat_count]));
        *repeat_count += 1;
        let description = self.secrets.redact(&description);
        let description = escape(&description).chars().take(MAX_DESCRIPTION_CHARS).collect();
        self.issues.push(Issue {
            description,
            check_name: format!("undrift/{check}"),
            fingerprint,
            severity,
            location: json!({"path": path, "lines": {"begin": line.unwrap_or(1)}}),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::apply::{StepOutcome, StepResult};
    use crate::diff::{Note, Reason};
    use crate::origin::Origin;
    use crate::report::{
        json::PlanContent,
        model::{ReportContent, RunReportState},
        terminal::tests::hostile_content,
        testing::ReportFixture,
    };

    fn render_report(report: &Report<'_>) -> String {
        super::render(report, &Secrets::default()).unwrap()
    }

    /// The list, after checking the format of each entry.
    fn parse_list(text: &str) -> Vec<Json> {
        let list: Vec<Json> = serde_json::from_str(text).unwrap();
        let mut digests = BTreeSet::new();
        for issue in &list {
            let names: Vec<_> = issue.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, ["description", "check_name", "fingerprint", "severity", "location"]);
            assert!(digests.insert(issue["fingerprint"].as_str().unwrap().to_owned()), "{issue:#}");
            let severities = ["info", "minor", "major", "critical", "blocker"];
            assert!(severities.contains(&issue["severity"].as_str().unwrap()), "{issue:#}");
            assert!(!issue["location"]["path"].as_str().unwrap().starts_with("./"), "{issue:#}");
            assert!(issue["location"]["lines"]["begin"].as_u64().unwrap() >= 1, "{issue:#}");
        }
        list
    }

    #[test]
    fn every_run_has_a_list_and_a_failed_run_has_an_entry() {
        ReportFixture::new().for_each_report(|name, report| {
            let list = parse_list(&render_report(report));
            assert!(!list.is_empty(), "{name}");
            let is_blocker = |issue: &&Json| issue["severity"] == "blocker";
            let blockers: Vec<_> = list.iter().filter(is_blocker).collect();
            let has_no_result = ["unfinished", "failed"].contains(&name);
            assert_eq!(blockers.len(), usize::from(has_no_result), "{name}: {list:#?}");
            if has_no_result {
                assert_eq!(blockers[0]["location"]["path"], "manifests");
            }
        });
    }

    #[test]
    fn a_change_stands_at_its_line_and_a_refusal_too() {
        let text = ReportFixture::new().render_named("plan", render_report);
        insta::assert_snapshot!(
            parse_list(&text)
                .iter()
                .map(|issue| {
                    let text_of_value = |value: &Json| value.as_str().unwrap().to_owned();
                    let location = &issue["location"];
                    let file = text_of_value(&location["path"]);
                    let file = file.rsplit('/').next().unwrap().to_owned();
                    format!(
                        "{file}:{} {} {}: {}\n",
                        location["lines"]["begin"],
                        text_of_value(&issue["severity"]),
                        text_of_value(&issue["check_name"]),
                        text_of_value(&issue["description"])
                    )
                })
                .collect::<String>()
        );
    }

    #[test]
    fn one_line_of_a_rule_is_one_finding() {
        let findings = |paths: &[&str]| {
            let mut fixture = ReportFixture::new();
            let template = fixture.plan.steps.remove(0);
            let step_at = |path: &&str| {
                let mut step = template.clone();
                step.address.path = (*path).into();
                step
            };
            fixture.plan.steps = paths.iter().map(step_at).collect();
            let mut list = parse_list(&fixture.render_named("plan", render_report));
            list.retain(|issue| issue["check_name"] == "undrift/change");
            list
        };
        let (single_findings, joint_findings) =
            (findings(&["acme/a"]), findings(&["acme/a", "acme/b", "acme/c"]));
        assert!(
            !single_findings.is_empty() && joint_findings.len() == single_findings.len(),
            "{joint_findings:#?}"
        );
        let issue_values = |list: &[Json], name: &str| -> Vec<Json> {
            list.iter().map(|issue| issue[name].clone()).collect()
        };
        let descriptions = issue_values(&joint_findings, "description");
        let is_joint = |text: &Json| text.as_str().unwrap().contains(", and in 2 others");
        assert!(descriptions.iter().all(is_joint), "{descriptions:#?}");
        let remaining_findings = findings(&["acme/b", "acme/c"]);
        assert_eq!(
            issue_values(&remaining_findings, "fingerprint"),
            issue_values(&joint_findings, "fingerprint")
        );
        assert_ne!(
            issue_values(&single_findings, "fingerprint"),
            issue_values(&joint_findings, "fingerprint")
        );
    }

    #[test]
    fn failures_of_one_rule_are_one_finding_at_its_line() {
        let mut fixture = ReportFixture::new();
        let mut template = fixture.plan.steps.remove(0);
        let rule = Origin::new("rules.yaml", 7, template.origin.column, template.origin.layer);
        template.changes.truncate(1);
        template.changes[0].origin = Some(rule);
        let step_at_line = |(line, path): (u32, &str)| {
            let mut step = template.clone();
            step.address.path = path.into();
            step.origin = Origin::new("projects.yaml", line, 1, template.origin.layer);
            step
        };
        fixture.plan.steps = [(1, "acme/a"), (2, "acme/b"), (3, "acme/c")].map(step_at_line).into();
        let failed_result = |step: &Step| StepResult {
            scope: step.scope,
            address: step.address.clone(),
            action: step.action,
            outcome: StepOutcome::Failed("project-update: answered 422: is not allowed".into()),
            origin: None,
        };
        fixture.applied.steps = fixture.plan.steps.iter().map(failed_result).collect();
        let mut list = parse_list(&fixture.render_named("apply", render_report));
        list.retain(|issue| issue["check_name"] == "undrift/not-applied");
        assert_eq!(list.len(), 1, "{list:#?}");
        assert_eq!(list[0]["location"], json!({"path": "rules.yaml", "lines": {"begin": 7}}));
    }

    #[test]
    fn unlisted_entries_of_one_rule_are_one_finding() {
        let findings = |paths: &[&str]| {
            let mut fixture = ReportFixture::new();
            let step = &fixture.plan.steps[0];
            let (template, origin) = (step.address.clone(), Some(step.origin.clone()));
            let unlisted_note = |path: &&str| Note {
                address: Address { path: (*path).into(), ..template.clone() },
                reason: Reason::UnlistedFails,
                fields: Vec::new(),
                origin: origin.clone(),
            };
            fixture.plan.notes = paths.iter().map(unlisted_note).collect();
            let mut list = parse_list(&fixture.render_named("plan", render_report));
            list.retain(|issue| issue["check_name"] == "undrift/drift");
            list
        };
        let all = findings(&["acme/a", "acme/b", "acme/c"]);
        assert_eq!(all.len(), 1, "{all:#?}");
        assert!(
            all[0]["description"].as_str().unwrap().contains(", and in 2 others: "),
            "{all:#?}"
        );
        let remaining_findings = findings(&["acme/b", "acme/c"]);
        assert_eq!(remaining_findings[0]["fingerprint"], all[0]["fingerprint"]);
    }

    #[test]
    fn a_fingerprint_depends_neither_on_a_line_nor_on_a_number() {
        let fingerprints = |fixture: &ReportFixture| {
            let list = parse_list(&fixture.render_named("plan", render_report));
            list.iter().map(|issue| issue["fingerprint"].to_string()).collect::<Vec<_>>()
        };
        let mut fixture = ReportFixture::new();
        let before = fingerprints(&fixture);
        fixture.plan.refusals[0].reason = "would remove 7 entries of 8; the limit is 5".into();
        for step in &mut fixture.plan.steps {
            step.origin.line += 10;
            let origins = step.changes.iter_mut().filter_map(|change| change.origin.as_mut());
            origins.for_each(|origin| origin.line += 10);
        }
        assert_eq!(fingerprints(&fixture), before);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn hostile_text_is_text(text in "(\\PC|\\p{C}|\"|\\\\|\n){0,12}") {
            let (run, plan, _) = hostile_content(&text);
            let planned = PlanContent::new(&run, &plan);
            let state = RunReportState::finished(0, ReportContent::Plan(&planned));
            let no_diagnostics = Default::default();
            let report = Report { kind: ReportKind::Plan, manifests: &text, diagnostics: &no_diagnostics, state };
            parse_list(&render_report(&report));
        }
    }
}
