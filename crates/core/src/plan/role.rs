//! Refuses a container if the role of the token's user is certainly too low for a step.

use std::collections::{BTreeMap, BTreeSet};

use super::{ContainerPlan, container::ContainerPlanner};
use crate::{
    catalogue::roles::{NeededRole, needed_roles},
    diff::{
        Action, Findings, Incomplete, Problem, Step,
        texts::{self, placeholders},
    },
    kind::{Effect, ReadSource},
    level::{AccessLevel, OWNER},
    live::{ExtraFact, Presence},
    release::DetectedRelease,
    text::{escape, join_words},
};

impl ContainerPlanner<'_> {
    /// Adds one problem if steps need a higher role than the token's user has. The problem also names the
    /// sections that could not be read for the same reason, and replaces their messages. Most
    /// objects show a role without access from shares, and no custom role. Therefore the role is
    /// read before something is refused.
    pub(super) fn refuse_low_role(&self, plan: &mut ContainerPlan) {
        let (facts, caller) = (self.context.facts, self.context.caller);
        let exists = matches!(self.context.live.presence, Presence::Existing(..));
        let is_personal_owner = facts.personal_owner_id == Some(caller.id);
        let Some(shown_level) = facts.caller_level else { return };
        if !self.settings.may_write || !exists {
            return;
        }
        if caller.is_administrator
            || is_personal_owner
            || shown_level >= OWNER
            || self.steps_above(shown_level, &mut plan.findings).is_empty()
        {
            return;
        }
        let level = match self.context.live.caller_role {
            None => return plan.findings.add_missing_fact(ExtraFact::CallerRole),
            Some(None) => return,
            Some(Some(level)) => level,
        };
        let steps = self.steps_above(level, &mut plan.findings);
        let Some((_, first_step)) = steps.first() else { return };
        let origin = first_step.origin.clone();
        let mut names_by_level: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for (needed_level, step) in steps {
            names_by_level.entry(needed_level).or_default().insert(describe_object(step));
        }
        let unread_sections =
            plan.findings.incomplete.extract_if(.., |unread| self.is_hidden_by_role(unread, level));
        for unread in unread_sections {
            let Some((needed_level, name)) = self.hidden_section(&unread) else { continue };
            names_by_level.entry(needed_level).or_default().insert(format!("`{name}`"));
        }
        let problem = self.low_role_problem(level, &names_by_level);
        plan.findings.problems.push(Problem { origin, ..problem });
    }

    /// The problem that the token's user has `level`, although `names_by_level` need more.
    fn low_role_problem(
        &self,
        level: u8,
        names_by_level: &BTreeMap<u8, BTreeSet<String>>,
    ) -> Problem {
        let needs = names_by_level.iter().map(|(needed_level, names)| {
            let verb = if names.len() == 1 { "needs" } else { "need" };
            let names: Vec<_> = names.iter().collect();
            format!("{} {verb} {}", join_words(&names), level_word(*needed_level))
        });
        let needs = needs.collect::<Vec<_>>().join("; ");
        let highest = names_by_level.keys().next_back().copied().unwrap_or_default();
        let args = placeholders![
            user = escape(&self.context.caller.username),
            role = level_word(level),
            needs,
            needed = level_word(highest)
        ];
        Problem::from_texts(texts::LOW_ROLE, args, self.address, &self.declared.origin)
    }

    /// The steps that certainly need a higher level than `level`, each with the level that it needs.
    fn steps_above<'p>(&self, level: u8, findings: &'p mut Findings) -> Vec<(u8, &'p Step)> {
        let mut needs_release = false;
        let mut is_certain = |needed: &NeededRole| match (needed.since, self.context.release) {
            (None, _) => true,
            (Some(since), DetectedRelease::Known(release)) => release >= since,
            (Some(_), DetectedRelease::NotRequested) => {
                needs_release = true;
                false
            }
            (Some(_), DetectedRelease::Hidden) => false,
        };
        let mut needed_level = |step: &Step| {
            let calls = step.planned_calls.iter().filter(|call| !call.is_only_after_failure());
            let roles = calls.flat_map(|call| needed_roles(&call.request));
            let levels = roles.filter_map(|needed| {
                let needed_level = needed.level()?.number;
                let applies =
                    needed_level > level && (!needed.concerns_owner || is_for_owner(step));
                (applies && is_certain(needed)).then_some(needed_level)
            });
            levels.max()
        };
        let levels: Vec<_> = findings.steps.iter().map(&mut needed_level).collect();
        if needs_release {
            findings.add_missing_fact(ExtraFact::Release);
        }
        let steps = levels.into_iter().zip(&findings.steps);
        steps.filter_map(|(needed_level, step)| Some((needed_level?, step))).collect()
    }

    /// The lowest role that sees the whole of the section that is `unread`, and its name.
    fn hidden_section(&self, unread: &Incomplete) -> Option<(u8, &'static str)> {
        let section = self.declared.section(unread.address.section?)?.kind;
        let is_list = matches!(section.scoped_kind.read_source, ReadSource::List(_));
        let is_hidden = is_list && unread.address.entry.is_none();
        is_hidden.then(|| (section.scoped_kind.min_read_level(), section.section))
    }

    /// True if the section that is `unread` is a list that a user with `level` cannot read completely.
    fn is_hidden_by_role(&self, unread: &Incomplete, level: u8) -> bool {
        self.hidden_section(unread).is_some_and(|(needed_level, _)| needed_level > level)
    }
}

/// True if `step` gives or takes the access of an owner.
fn is_for_owner(step: &Step) -> bool {
    step.effects.iter().any(|effect| {
        matches!(effect, Effect::Access { before, after, .. } if OWNER == *before.max(after))
    })
}

/// The object of a step, for a message.
fn describe_object(step: &Step) -> String {
    match (step.address.section, step.action) {
        (Some(section), _) => format!("`{section}`"),
        (None, Action::Delete) => "the deletion".to_owned(),
        (None, _) => "the move".to_owned(),
    }
}

fn level_word(level: u8) -> &'static str {
    let known_level = AccessLevel::parse(&level.into()).filter(|level| level.number > 0);
    known_level.map_or("no member", |level| level.word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        cause::Cause,
        desired::{Unlisted, testing::shop},
        kind::FieldSelection,
        level::{DEVELOPER, MAINTAINER},
        live::{LiveEntries, testing::live_container_with},
        plan::{plan_container, tests::settings},
        value::Json,
    };

    /// Plans `declared` for a user with these roles: the one of the object, and the one that was read.
    fn plan_as(
        declared: &Json,
        shown_level: Option<u8>,
        role: Option<Option<u8>>,
        release: DetectedRelease,
    ) -> ContainerPlan {
        let declared = shop(declared, Unlisted::Report);
        let live_json = json!({
            "settings": {"description": "a", "visibility": "private"},
            "archived": {"archived": false}, "members": [],
        });
        let mut live = live_container_with(&declared, &live_json, FieldSelection::All);
        let unread = LiveEntries::Partial(Cause::new("the list may be incomplete"));
        live.sections.insert("variables", unread);
        if let Presence::Existing(_, facts) = &mut live.presence {
            facts.caller_level = shown_level;
        }
        live.names.insert(crate::field::NamedObject::User, "bob", Some(9));
        live.levels_above = Some(std::sync::Arc::default());
        live.group_above = Some(std::sync::Arc::default());
        live.caller_role = role;
        live.read_release = release;
        let mut settings = settings(&[]);
        settings.caller.is_administrator = false;
        settings.caller.username = "alice".into();
        plan_container(&declared, &live, &settings)
    }

    #[test]
    fn a_step_that_needs_a_higher_role_is_one_problem_of_the_project() {
        let newest = DetectedRelease::Known("18.9".parse().unwrap());
        let variables = json!([{"key": "A", "environment_scope": "*", "value": "x"}]);
        let sections = json!({"settings": {"description": "b"}, "variables": variables});
        let refused = |declared: &Json, level: u8| -> Vec<_> {
            let plan = plan_as(declared, Some(level), Some(Some(level)), newest);
            assert!(plan.questions.is_empty(), "{plan:#?}");
            let problems = plan.problems.iter().filter(|problem| problem.code == "low-role");
            problems
                .map(|problem| problem.message.replace("the token's user `alice` is ", ""))
                .collect()
        };
        let both = "developer of `acme/shop`; `settings` and `variables` need maintainer";
        assert_eq!(refused(&sections, DEVELOPER), [both]);
        for (declared, needs) in [
            (json!({"settings": {"description": "b"}}), None),
            (json!({"settings": {"visibility": "internal"}}), Some("`settings` needs owner")),
            (json!({"archived": {"archived": true}}), Some("`archived` needs owner")),
            (
                json!({"members": [{"user": "bob", "access_level": "owner"}]}),
                Some("`members` needs owner"),
            ),
            (json!({"members": [{"user": "bob", "access_level": "guest"}]}), None),
        ] {
            let expected: Vec<_> = needs
                .map(|needs| format!("maintainer of `acme/shop`; {needs}"))
                .into_iter()
                .collect();
            assert_eq!(refused(&declared, MAINTAINER), expected, "{declared}");
            assert_eq!(refused(&declared, OWNER), [] as [&str; 0]);
        }
        // What replaces the messages of the sections.
        let plan = plan_as(&sections, Some(DEVELOPER), Some(Some(DEVELOPER)), newest);
        assert!(plan.incomplete.is_empty() && plan.problems.len() == 1, "{plan:#?}");
        let help = "give `alice` maintainer there or above, or use a token of somebody who has it";
        assert_eq!(plan.problems[0].help.as_deref(), Some(help));
    }

    /// The role is read only if the one that the object shows is too low.
    #[test]
    fn nothing_is_refused_unless_the_role_is_known() {
        let newest = DetectedRelease::Known("18.9".parse().unwrap());
        let archived = json!({"archived": {"archived": true}});
        for (shown, role, asks, refuses) in [
            (None, None, false, false),
            (Some(OWNER), None, false, false),
            (Some(MAINTAINER), None, true, false),
            // A custom role, and a share that gives more.
            (Some(MAINTAINER), Some(None), false, false),
            (Some(MAINTAINER), Some(Some(OWNER)), false, false),
            (Some(MAINTAINER), Some(Some(MAINTAINER)), false, true),
        ] {
            let plan = plan_as(&archived, shown, role, newest);
            let case = format!("{shown:?} {role:?}");
            assert_eq!(plan.questions.contains(&ExtraFact::CallerRole), asks, "{case}");
            assert_eq!(!plan.problems.is_empty(), refuses, "{case}");
        }
        // Older releases let maintainers add owners.
        let owner = json!({"members": [{"user": "bob", "access_level": "owner"}]});
        for (release, asks) in [
            (DetectedRelease::NotRequested, true),
            (DetectedRelease::Hidden, false),
            (DetectedRelease::Known("15.8".parse().unwrap()), false),
        ] {
            let plan = plan_as(&owner, Some(MAINTAINER), Some(Some(MAINTAINER)), release);
            assert_eq!(plan.questions.contains(&ExtraFact::Release), asks, "{release:?}");
            assert!(plan.problems.is_empty(), "{release:?}");
        }
    }
}
