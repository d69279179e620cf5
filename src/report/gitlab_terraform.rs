//! The number of changes, for the widget of merge requests that was made for Terraform: `{"create":
//! 1, "update": 2, "delete": 0}`.
//!
//! If a key is missing, the widget shows that the report could not be generated. So a run with
//! unknown changes writes `{}`. With zeros, or without a file, the widget would show that nothing
//! changes.

use serde_json::json;

use super::model::{Report, ReportContent};
use crate::diff::Action;

/// Renders the counts of `report`: the steps in a plan or drift, or the steps that were applied.
/// The object has no keys if there are no steps and something could not be read or must be repaired
/// first. The object also has no keys if the run made no plan.
pub fn render(report: &Report<'_>) -> String {
    let actions: Option<Vec<Action>> = match report.content() {
        Some(ReportContent::Plan(planned)) => {
            let plan = planned.plan;
            let is_complete = plan.incomplete.is_empty() && plan.problems.is_empty();
            (is_complete || !plan.steps.is_empty())
                .then(|| plan.branch_steps().map(|step| step.action).collect())
        }
        Some(ReportContent::Apply(outcomes)) => {
            let succeeded = outcomes.applied.steps.iter().filter(|step| step.outcome.is_success());
            Some(succeeded.map(|step| step.action).collect())
        }
        Some(ReportContent::Check(_)) | None => None,
    };
    let Some(actions) = actions else { return "{}\n".to_owned() };
    let [create, update, delete] = [Action::Create, Action::Update, Action::Delete]
        .map(|counted_action| actions.iter().filter(|action| **action == counted_action).count());
    let counts = json!({"create": create, "update": update, "delete": delete});
    format!("{counts}\n")
}

#[cfg(test)]
mod tests {
    use crate::report::testing::ReportFixture;

    #[test]
    fn unknown_changes_are_not_counted() {
        let mut fixture = ReportFixture::new();
        let render_report = |report_fixture: &ReportFixture, name: &str| {
            report_fixture.render_named(name, super::render)
        };
        for name in ["unfinished", "failed", "check"] {
            assert_eq!(render_report(&fixture, name), "{}\n", "{name}");
        }
        for name in ["plan", "drift"] {
            let counts = "{\"create\":1,\"update\":3,\"delete\":1}\n";
            assert_eq!(render_report(&fixture, name), counts, "{name}");
        }
        assert_eq!(render_report(&fixture, "apply"), "{\"create\":1,\"update\":1,\"delete\":0}\n");
        assert_eq!(
            render_report(&ReportFixture::new().labelled(), "plan"),
            "{\"create\":1,\"update\":2,\"delete\":0}\n",
            "without what differed before"
        );
        fixture.plan.steps.clear();
        assert_eq!(render_report(&fixture, "plan"), "{}\n", "a problem, and something unread");
        fixture.plan.problems.clear();
        assert_eq!(render_report(&fixture, "plan"), "{}\n", "something unread");
        fixture.plan.incomplete.clear();
        assert_eq!(render_report(&fixture, "plan"), "{\"create\":0,\"update\":0,\"delete\":0}\n");
    }
}
