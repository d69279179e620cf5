//! The number of changes, for the widget of merge requests that was made for Terraform: `{"create":
//! 1, "update": 2, "delete": 0}`.
//!
//! If a key is missing, the widget shows that the report could not be generated. So a run with
//! unknown changes writes `{}`. Without a file, or with zeros, the widget would show that nothing
//! changes.

use serde::Serialize;

use super::model::{Content, Report};
use crate::{diff::Action, plan::Plan};

/// The counts of a report, or no keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    #[serde(flatten)]
    known: Option<Known>,
}

/// How many objects are created, changed and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Known {
    create: usize,
    update: usize,
    delete: usize,
}

impl Known {
    fn of(actions: impl Iterator<Item = Action> + Clone) -> Self {
        let count = |wanted| actions.clone().filter(|action| *action == wanted).count();
        Self {
            create: count(Action::Create),
            update: count(Action::Update),
            delete: count(Action::Delete),
        }
    }

    /// The steps of `plan` without drift. `None` if there are no steps and something could not be
    /// read or must be repaired first.
    fn of_plan(plan: &Plan) -> Option<Self> {
        let is_whole = plan.incomplete.is_empty() && plan.problems.is_empty();
        (is_whole || !plan.steps.is_empty()).then(|| Self::of(plan.own().map(|step| step.action)))
    }
}

/// The counts of `report`: of the steps in a plan or drift, or of those that apply carried out.
///
/// # Errors
/// Does not happen with numbers.
pub fn report(report: &Report<'_>) -> serde_json::Result<String> {
    let known = match report.content() {
        Some(Content::Planned(planned)) => Known::of_plan(planned.plan),
        Some(Content::Outcomes(outcomes)) => {
            let done = outcomes.applied.steps.iter().filter(|step| step.outcome.is_success());
            Some(Known::of(done.map(|step| step.action)))
        }
        Some(Content::Checked(_)) | None => None,
    };
    Ok(serde_json::to_string(&Counts { known })? + "\n")
}

#[cfg(test)]
mod tests {
    use crate::report::testing::World;

    #[test]
    fn unknown_changes_are_not_counted() {
        let mut world = World::new();
        let written = |world: &World, name: &str| {
            world.written(name, |report| super::report(report).unwrap())
        };
        for name in ["unfinished", "failed", "check"] {
            assert_eq!(written(&world, name), "{}\n", "{name}");
        }
        for name in ["plan", "drift"] {
            let counts = "{\"create\":1,\"update\":3,\"delete\":1}\n";
            assert_eq!(written(&world, name), counts, "{name}");
        }
        assert_eq!(written(&world, "apply"), "{\"create\":1,\"update\":1,\"delete\":0}\n");
        assert_eq!(
            written(&World::new().labelled(), "plan"),
            "{\"create\":1,\"update\":2,\"delete\":0}\n",
            "without what differed before"
        );
        world.plan.steps.clear();
        assert_eq!(written(&world, "plan"), "{}\n", "a problem, and something unread");
        world.plan.problems.clear();
        assert_eq!(written(&world, "plan"), "{}\n", "something unread");
        world.plan.incomplete.clear();
        assert_eq!(written(&world, "plan"), "{\"create\":0,\"update\":0,\"delete\":0}\n");
    }
}
