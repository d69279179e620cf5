//! The items of a report: problems, failures and acknowledgements, as one type.

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    Report, ReportContent, RunReportState, action_word,
    outcome::{
        common_cause, common_mismatch_reason, describe_cause, mismatch_reason, outcome_words,
        unread_cause,
    },
};
use crate::{
    address::{Address, groups_above},
    desired::Guard,
    diagnostic::{Diagnostic, Severity, SourceLocation},
    diff::{GuardRefusal, Incomplete, Problem, Step},
    origin::Origin,
    plan::{Acknowledged, Plan},
    report::{ApplyContent, json},
    text::count,
};

/// The group of a [`ReportItem`], in display order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemGroup {
    /// The run itself did not finish.
    Run,
    /// A guard refused, and the refusal is acknowledged.
    Acknowledged,
    /// A guard refuses.
    Refused,
    /// Something must be repaired first.
    Problem,
    /// A manifest is wrong.
    Error,
    /// A step was not applied.
    NotApplied,
    /// Something does not match its manifest after the run.
    Mismatch,
    /// A group or project was not applied.
    Skipped,
    /// Something could not be read.
    Incomplete,
    /// A refusal, a problem or an unread part of drift, which does not block a branch.
    Drift,
    /// A manifest should be changed.
    Warning,
}

impl ItemGroup {
    /// The heading of the items in this group.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Run => "The run did not finish",
            Self::Acknowledged => "Acknowledged refusals of guards",
            Self::Refused => "Refused by a guard",
            Self::Problem => "Problems to fix first",
            Self::Error => "Errors in the manifests",
            Self::NotApplied => "Not applied",
            Self::Mismatch => "Does not match its manifest after the run",
            Self::Skipped => "Left out",
            Self::Incomplete => "Could not be read; nothing is planned there",
            Self::Drift => "Problems of drift; they do not block this branch",
            Self::Warning => "Warnings about the manifests",
        }
    }

    /// True if an item of this group prevents the expected result of the run.
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Acknowledged | Self::Drift | Self::Warning)
    }
}

/// A problem, failure or acknowledgement that a reader must see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportItem<'a> {
    /// The group of the item.
    pub group: ItemGroup,
    /// The code for programs: the code of a diagnostic, or a similar word.
    pub code: Cow<'static, str>,
    /// The object.
    pub address: Option<&'a Address>,
    /// The message.
    pub message: Cow<'a, str>,
    /// The file, and the line and the column, from 1, if they are known.
    pub location: Option<(&'a str, Option<(u32, u32)>)>,
    /// The advice for the user.
    pub help: Option<Cow<'a, str>>,
    /// The refusal, if an acknowledgement would accept it.
    pub refusal: Option<&'a GuardRefusal>,
    /// The part of the message that other objects can share, if it differs from the message.
    pub common_message: Option<String>,
    /// True if the message is a part of the item's identity, with the code, object and file. False
    /// if the message contains numbers that change from run to run.
    pub is_identified_by_message: bool,
}

impl<'a> ReportItem<'a> {
    fn new(
        group: ItemGroup,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'a, str>>,
    ) -> Self {
        ReportItem {
            group,
            code: code.into(),
            address: None,
            message: message.into(),
            location: None,
            help: None,
            refusal: None,
            common_message: None,
            is_identified_by_message: true,
        }
    }

    /// The common key of items with the same text, or of refusals that one acknowledgement accepts.
    pub fn fold_key(&self) -> (ItemGroup, Cow<'static, str>, String, Option<String>) {
        let message = match self.refusal {
            Some(refusal) => format!("{:?}", acknowledgement_key(refusal)),
            None => self.strip_object(self.common_message.as_deref().unwrap_or(&self.message)),
        };
        let help = self.help.as_deref().map(|help| self.strip_object(help));
        (self.group, self.code.clone(), message, help)
    }

    /// `text` without the path of the object, and without quoted paths of its parent groups.
    fn strip_object(&self, text: &str) -> String {
        let Some(Address { path, .. }) = self.address else { return text.to_owned() };
        let parent_groups = groups_above(path).map(|group| format!("`{group}`"));
        parent_groups.fold(text.replace(&**path, ""), |text, group| text.replace(&group, "``"))
    }

    /// The object as text, or else the location.
    pub fn object_or_location(&self) -> Option<String> {
        self.address.map(ToString::to_string).or_else(|| self.location_text())
    }

    /// The file, with the line if it is known.
    pub fn location_text(&self) -> Option<String> {
        self.location.map(|(file, position)| match position {
            Some((line, _)) => format!("{file}:{line}"),
            None => file.to_owned(),
        })
    }

    fn with_origin(self, origin: Option<&'a Origin>) -> Self {
        Self {
            location: origin.map(|origin| (&*origin.file, Some((origin.line, origin.column)))),
            ..self
        }
    }

    fn with_address(self, address: &'a Address) -> Self {
        Self { address: Some(address), ..self }
    }

    fn with_common_message(self, message: String) -> Self {
        Self { common_message: Some(message), ..self }
    }

    fn with_help(self, help: Option<impl Into<Cow<'a, str>>>) -> Self {
        Self { help: help.map(Into::into), ..self }
    }
}

impl<'a> Report<'a> {
    /// The items, in display order.
    pub fn items(&self) -> Vec<ReportItem<'a>> {
        let mut items: Vec<ReportItem<'a>> = Vec::new();
        match self.state {
            RunReportState::Unfinished(_) => items.push(
                ReportItem::new(
                    ItemGroup::Run,
                    "unfinished",
                    "the run is still running, or was killed",
                )
                .with_help(Some("check the log of the job")),
            ),
            RunReportState::Failed(json::FailedRun { error, help, .. }) => {
                items.push(ReportItem::new(ItemGroup::Run, "failed", error).with_help(help));
            }
            RunReportState::Finished(_) => {}
        }
        items.extend(self.plan().into_iter().flat_map(plan_items));
        if let Some(ReportContent::Apply(outcomes)) = self.content() {
            items.extend(outcome_items(outcomes));
        }
        let diagnostics = match self.content() {
            Some(ReportContent::Check(checked)) => checked.diagnostics,
            _ => self.diagnostics,
        };
        items.extend(diagnostics.sorted().into_iter().map(diagnostic_item));
        items.sort_by_key(|item| item.group);
        items
    }
}

fn plan_items(plan: &Plan) -> Vec<ReportItem<'_>> {
    let acknowledged_items = plan.acknowledged.iter().map(|acknowledged| {
        let Acknowledged { refusal, reason, by, is_new } = acknowledged;
        let item = refusal_item(ItemGroup::Acknowledged, refusal);
        let acknowledgement_text = match (reason, by) {
            (Some(reason), _) => format!("acknowledged: {reason}"),
            (None, Some(_)) => "acknowledged in a manifest, without a reason".into(),
            (None, None) => "acknowledged on the command line".into(),
        };
        let branch_note = if *is_new { "; only on this branch" } else { "" };
        let item = item.with_help(Some(acknowledgement_text + branch_note));
        ReportItem { refusal: None, ..item.with_origin(by.as_ref().or(Some(&refusal.origin))) }
    });
    let refusals = plan.refusals.iter().map(|refusal| refusal_item(ItemGroup::Refused, refusal));
    let problem_items =
        plan.problems.iter().map(|problem| problem_item(ItemGroup::Problem, problem));
    let drift_items = plan.base.iter().flat_map(|base| {
        let refusals = base.refusals.iter();
        let refusals = refusals
            .map(|refusal| ReportItem { refusal: None, ..refusal_item(ItemGroup::Drift, refusal) });
        let problems = base.problems.iter().map(|problem| problem_item(ItemGroup::Drift, problem));
        let unread = base.incomplete.iter().map(|part| unread_item(ItemGroup::Drift, part));
        refusals.chain(problems).chain(unread)
    });
    let incomplete = plan.incomplete.iter().map(|part| unread_item(ItemGroup::Incomplete, part));
    acknowledged_items
        .chain(refusals)
        .chain(problem_items)
        .chain(incomplete)
        .chain(drift_items)
        .collect()
}

/// The common key of refusals that one acknowledgement accepts: the guard and the section. For a
/// deletion, it also includes the address, because each deletion must be acknowledged by name.
pub fn acknowledgement_key(
    refusal: &GuardRefusal,
) -> (Guard, Option<&'static str>, Option<Address>) {
    let GuardRefusal { guard, address, .. } = refusal;
    (*guard, address.section, (*guard == Guard::Deletion).then(|| address.clone()))
}

/// The acknowledgement, in the form of `--ack`, that accepts `first_refusal` and `others`. All are
/// refusals of the same guard and section.
pub fn joint_acknowledgement<'r>(
    first_refusal: &GuardRefusal,
    others: impl Iterator<Item = &'r GuardRefusal>,
) -> String {
    let others: Vec<_> = others.map(|refusal| &*refusal.address.path).collect();
    if others.is_empty() {
        return first_refusal.acknowledgement.clone();
    }
    // The narrowest glob that matches all paths. If the paths differ, it is their longest common
    // prefix that ends with a slash, and `**`.
    let path = &first_refusal.address.path;
    let mut prefixes = path.match_indices('/').map(|(index, _)| &path[..=index]);
    let common_prefix = prefixes.rfind(|prefix| others.iter().all(|path| path.starts_with(prefix)));
    let glob = if others.iter().all(|other| *other == &**path) {
        path.to_string()
    } else {
        format!("{}**", common_prefix.unwrap_or_default())
    };
    let section = first_refusal.address.section.map_or_else(String::new, |name| format!("#{name}"));
    format!("{}:{glob}{section}", first_refusal.guard)
}

fn problem_item(group: ItemGroup, problem: &Problem) -> ReportItem<'_> {
    ReportItem::new(group, problem.code, &problem.message)
        .with_address(&problem.address)
        .with_origin(Some(&problem.origin))
        .with_help(problem.help.as_deref())
}

fn unread_item(group: ItemGroup, part: &Incomplete) -> ReportItem<'_> {
    ReportItem::new(group, "not-read", describe_cause(&part.reason))
        .with_address(&part.address)
        .with_help(part.reason.help.as_deref())
        .with_common_message(common_cause(&part.reason, &part.address))
}

fn refusal_item(group: ItemGroup, refusal: &GuardRefusal) -> ReportItem<'_> {
    let message = format!("{}: {}", refusal.guard, refusal.reason);
    let item = ReportItem::new(group, format!("guard-{}", refusal.guard), message)
        .with_address(&refusal.address);
    ReportItem {
        refusal: Some(refusal),
        help: refusal.guard.alternative().map(Into::into),
        is_identified_by_message: false,
        ..item.with_origin(Some(&refusal.origin))
    }
}

fn outcome_items<'a>(outcomes: &'a ApplyContent<'a>) -> Vec<ReportItem<'a>> {
    let origins: BTreeMap<_, _> =
        outcomes.plan.steps.iter().map(|step| (&step.address, declaration_origin(step))).collect();
    let failed_steps = outcomes.applied.steps.iter().filter(|step| !step.outcome.is_success());
    let failed_items = failed_steps.map(|step| {
        let (_, outcome) = outcome_words(&step.outcome);
        let cause = step.outcome.cause();
        let message = match cause {
            Some(cause) => {
                format!("{}: {outcome}: {}", action_word(step.action), describe_cause(cause))
            }
            None => format!("{}: {outcome}", action_word(step.action)),
        };
        let shared_cause =
            cause.map(|cause| common_cause(cause, &step.address)).unwrap_or_default();
        ReportItem::new(ItemGroup::NotApplied, "not-applied", message)
            .with_address(&step.address)
            .with_origin(origins.get(&step.address).copied())
            .with_help(cause.and_then(|cause| cause.help.as_deref()))
            .with_common_message(format!("{outcome}: {shared_cause}"))
    });
    let mismatch_items = outcomes.applied.mismatches.iter().map(|mismatch| {
        let reason = mismatch_reason(&mismatch.reason);
        let message = match &mismatch.fields[..] {
            [] => reason,
            fields => format!("{}: {reason}", fields.join(", ")),
        };
        let cause_help = unread_cause(mismatch).and_then(|cause| cause.help.as_deref());
        let common_message =
            format!("{}: {}", mismatch.fields.join(", "), common_mismatch_reason(mismatch));
        ReportItem::new(ItemGroup::Mismatch, "mismatch", message)
            .with_address(&mismatch.address)
            .with_origin(origins.get(&mismatch.address).copied())
            .with_help(mismatch.help.as_deref().or(cause_help))
            .with_common_message(common_message)
    });
    let run_error_items = outcomes.applied.fatal_error.iter().map(|error| {
        ReportItem::new(ItemGroup::Run, "ended", error.to_string())
            .with_help(error.hint().map(str::to_owned))
    });
    let skipped_items = outcomes.left_out.iter().map(|container| {
        let message = format!("not applied, with {}", count(container.steps, "change"));
        ReportItem {
            is_identified_by_message: false,
            ..ReportItem::new(ItemGroup::Skipped, "left-out", message)
                .with_address(&container.address)
        }
    });
    run_error_items.chain(failed_items).chain(mismatch_items).chain(skipped_items).collect()
}

/// The origin that all changes of a step share, such as the line of a rule. If the changes have
/// different origins, the origin of the step.
pub fn declaration_origin(step: &Step) -> &Origin {
    let mut origins = step.changes.iter().filter_map(|change| change.origin.as_ref());
    let first_origin = origins.next().unwrap_or(&step.origin);
    let is_shared = origins
        .all(|origin| (&origin.file, origin.line) == (&first_origin.file, first_origin.line));
    if is_shared { first_origin } else { &step.origin }
}

fn diagnostic_item(diagnostic: &Diagnostic) -> ReportItem<'_> {
    let group = match diagnostic.severity {
        Severity::Error => ItemGroup::Error,
        Severity::Warning => ItemGroup::Warning,
    };
    let location = diagnostic.location.as_ref();
    let item = ReportItem::new(group, diagnostic.code, &diagnostic.message);
    let message = match &diagnostic.label {
        Some(label) if !label.is_empty() => format!("{}: {label}", diagnostic.message).into(),
        _ => item.message.clone(),
    };
    ReportItem {
        message,
        location: location.map(|source_location: &SourceLocation| {
            (&*source_location.file, source_location.line().zip(source_location.column()))
        }),
        ..item
    }
    .with_help(diagnostic.help.as_deref())
}
