//! How much changes, as the widget of merge requests reads it that was made for Terraform:
//! `{"create": 1, "update": 2, "delete": 0}`.
//!
//! Where a key is missing, the widget says that the report could not be generated. So a run of which
//! nobody knows what would change says that with `{}`: without a file, or with zeros, the widget would
//! say that nothing changes.

use serde::Serialize;

use super::model::{Content, Report};
use crate::{diff::Action, plan::Plan};

/// The counts of a report, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    #[serde(flatten)]
    known: Option<Known>,
}

/// How many objects there are of each.
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

    /// What `plan` would do, without what differed before a branch: nothing is known of one that does
    /// nothing because of what could not be read, or has to be put right first.
    fn of_plan(plan: &Plan) -> Option<Self> {
        let is_whole = plan.incomplete.is_empty() && plan.problems.is_empty();
        (is_whole || !plan.steps.is_empty()).then(|| Self::of(plan.own().map(|step| step.action)))
    }
}

/// The counts of `report`: of what a plan or drift would do, or of what apply did.
///
/// # Errors
/// None that numbers could bring about.
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
    fn nothing_is_counted_of_which_nothing_is_known() {
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
