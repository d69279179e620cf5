//! Decides which part of a plan may run. No other module decides that.
//!
//! A problem, a refusal or an unreadable part affects one group or project. The run skips and
//! reports only that one, because in an organisation with thousands of projects, one project is
//! always broken. If too many containers are skipped, there is probably a common cause, and nothing
//! runs. If the service withholds a section ([`Withheld`](crate::cause::Withheld)),
//! only that section is skipped, unless a step archives the project.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Plan, connect::StepGraph, extend_to_closure, saved::PlanComparison};
use crate::{
    address::{Address, Selector, is_literal},
    desired::{Acknowledgement, Guard, Moves},
    diagnostic::{Diagnostic, SourceLocation},
    diff::{GuardRefusal, Step},
    live::LiveContainer,
    origin::Origin,
    text::{count, did_you_mean, escape},
};

/// Nothing is applied if more than this number of containers, and also more than the share
/// [`MAX_SKIPPED_SHARE`] of all containers, are skipped.
const MAX_SKIPPED: usize = 3;
const MAX_SKIPPED_SHARE: f64 = 0.05;

/// True if so many of `total` containers are skipped that nothing may run.
fn exceeds_skip_limit(skipped: usize, total: usize) -> bool {
    skipped > MAX_SKIPPED && skipped as f64 > total as f64 * MAX_SKIPPED_SHARE
}

/// The path of a refusal for the run as a whole.
pub(super) const WHOLE_RUN: &str = "**";

/// The conditions under which a part of a plan may run.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApprovalPolicy<'s> {
    /// Block the whole run if any container is skipped.
    pub all_or_nothing: bool,
    /// The comparison with a saved plan, if only the saved steps may run.
    pub comparison: Option<&'s PlanComparison>,
}

/// The part of a plan that may run. Only [`Plan::approve`] creates it, and apply accepts nothing
/// else.
#[derive(Debug)]
pub struct ApprovedPlan<'p> {
    plan: &'p Plan,
    skipped_paths: BTreeSet<Arc<str>>,
    /// The dependencies between all steps, computed on first use.
    graph: OnceLock<StepGraph>,
}

impl ApprovedPlan<'_> {
    /// The steps that run, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> + Clone {
        self.plan.steps.iter().filter(|step| !self.skipped_paths.contains(&step.address.path))
    }

    /// True if `target` must run after the step at `address`, directly or through other steps.
    /// `target` is the address of a step of the same container, or of a section. A section means
    /// the steps of the section that are earlier in the plan than the step at `address`.
    pub fn comes_after(&self, target: &Address, address: &Address) -> bool {
        let steps = &self.plan.steps;
        let start = steps.partition_point(|step| step.address.path < address.path);
        let container_steps =
            steps[start..].iter().take_while(|step| step.address.path == address.path);
        let Some(position) = container_steps.clone().position(|step| step.address == *address)
        else {
            return false;
        };
        let graph = self.graph.get_or_init(|| StepGraph::from_steps(steps));
        let followers = graph.followers(start + position);
        container_steps.enumerate().any(|(index, step)| {
            let is_earlier = index < position && step.address.section == target.section;
            let is_target = step.address == *target || (is_earlier && target.entry.is_none());
            is_target && followers.contains(&(start + index))
        })
    }

    /// True if the approved part contains every difference of the container at `path`.
    pub fn covers_container(&self, path: &str) -> bool {
        self.plan.limited.is_none() && !self.skipped_paths.contains(path)
    }

    /// The live state of the container at `path` when the plan was made.
    pub fn live(&self, path: &str) -> Option<&LiveContainer> {
        self.plan.live(path)
    }

    /// True if `refusal`, from the current guards, was already acknowledged when the plan was made.
    pub fn acknowledges(&self, refusal: &GuardRefusal) -> bool {
        self.plan.acknowledged.iter().any(|acknowledged| {
            acknowledged.refusal.guard == refusal.guard
                && acknowledged.refusal.address == refusal.address
                && refusal.objects <= acknowledged.refusal.objects
        })
    }
}

/// A group or project that the run skips.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedContainer {
    /// The group or project.
    pub address: Address,
    /// The number of its steps. None of them runs.
    pub steps: usize,
}

/// The reason why nothing runs, as a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedRun(pub String);

/// A refusal with an acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Acknowledged {
    /// The refusal.
    pub refusal: GuardRefusal,
    /// The reason written in the acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The place of the acknowledgement; absent if it came from the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Origin>,
    /// True if the branch added the acknowledgement: the base does not have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Plan {
    /// Removes acknowledged refusals. Warns of acknowledgements that are exceeded or unused.
    /// Ignores expired acknowledgements, because the check of the manifests warns of them.
    pub fn acknowledge(
        &mut self,
        acknowledgements: &[Acknowledgement],
        moves: &Moves,
        today: Date,
    ) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let refusals = std::mem::take(&mut self.findings.refusals);
        let new_addresses = self.new_addresses(&refusals);
        let valid_acks = acknowledgements.iter().filter(|ack| !ack.has_expired(today));
        let valid_acks: Vec<_> =
            valid_acks.map(|ack| rename_acknowledgement(ack, &new_addresses)).collect();
        let valid_acks: Vec<_> = valid_acks.iter().map(|ack| &**ack).collect();
        let mut used_flags = vec![false; valid_acks.len()];
        let excess_reasons: Vec<_> =
            valid_acks.iter().map(|ack| excess_reason(ack, &refusals, &valid_acks)).collect();
        for refusal in refusals {
            let mut covering_ack = None;
            for (index, ack) in valid_acks.iter().copied().enumerate() {
                if !applies_to(ack, &refusal, &valid_acks) {
                    continue;
                }
                // An excess is reported once.
                let is_first_match = !std::mem::replace(&mut used_flags[index], true);
                match (&excess_reasons[index], rename_conflict(ack, &refusal, moves)) {
                    (Some((message, help)), _) if is_first_match => {
                        warnings.push(new_warning(ack, message).with_help(help));
                    }
                    (Some(_), _) => {}
                    (None, Some(why)) => warnings.push(new_warning(ack, &why)),
                    (None, None) => covering_ack = covering_ack.or(Some(ack)),
                }
            }
            match covering_ack {
                Some(ack) => self.acknowledged.push(Acknowledged {
                    refusal,
                    reason: ack.reason.clone(),
                    by: ack.origin.clone(),
                    is_new: false,
                }),
                None => self.findings.refusals.push(refusal),
            }
        }
        let unused_acks = valid_acks.into_iter().zip(used_flags).filter(|(_, used)| !used);
        warnings.extend(unused_acks.map(|(ack, _)| {
            let refusal_texts =
                self.findings.refusals.iter().map(|refusal| &*refusal.acknowledgement);
            // Suggest only another spelling of the same address, because a similar address may
            // belong to another object.
            let respellings =
                refusal_texts.filter(|other| split_words(other) == split_words(&ack.to_string()));
            new_warning(ack, &format!("`{ack}` acknowledges nothing that this run refuses"))
                .with_optional_help(
                    suggest_separation(ack).or_else(|| did_you_mean(&ack.to_string(), respellings)),
                )
        }));
        warnings
    }

    /// The new address of each entry that the run renames, by its old address in lower case. Omits
    /// an old address that one of `refusals` has, because it belongs to another entry now.
    fn new_addresses(&self, refusals: &[GuardRefusal]) -> BTreeMap<String, String> {
        let refused_addresses: BTreeSet<_> =
            refusals.iter().map(|refusal| &refusal.address).collect();
        let renames = self.steps.iter().filter_map(|step| {
            let old_address =
                step.address.with_section(step.address.section?).with_entry(step.former_name()?);
            let is_taken = refused_addresses.contains(&old_address);
            let key = old_address.to_string().to_lowercase();
            (!is_taken).then(|| (key, step.address.to_string()))
        });
        renames.collect()
    }

    /// True if a guard refuses the whole run. A refusal of the reach guard always refuses the whole
    /// run: it concerns a rule, and a rule has no steps to skip.
    pub fn is_refused(&self) -> bool {
        self.refusals
            .iter()
            .any(|refusal| &*refusal.address.path == WHOLE_RUN || refusal.guard == Guard::Reach)
    }

    /// Decides which steps may run: the steps of containers without a problem, a refusal or an
    /// unread part. Also returns the skipped containers.
    ///
    /// # Errors
    /// If nothing may run.
    pub fn approve(
        &self,
        policy: ApprovalPolicy<'_>,
    ) -> Result<(ApprovedPlan<'_>, Vec<SkippedContainer>), BlockedRun> {
        let mut broken_paths = self.broken_containers();
        if self.is_refused() {
            return Err(BlockedRun("a guard refuses the whole run".into()));
        }
        let container_count = self.projects + self.groups;
        // Containers that do not agree with the saved plan are skipped too, but do not suggest a
        // common cause.
        let unsaved_paths = self.unsaved_paths(policy.comparison);
        if policy.all_or_nothing {
            broken_paths.extend(unsaved_paths.iter().cloned());
        }
        let describe_broken = || match self.groups {
            0 => format!(
                "{} of {} cannot be applied",
                broken_paths.len(),
                count(container_count, "project")
            ),
            _ => format!(
                "{} of {container_count} groups and projects cannot be applied",
                broken_paths.len()
            ),
        };
        if !broken_paths.is_empty() && policy.all_or_nothing {
            return Err(BlockedRun(format!(
                "{}, and `--all-or-nothing` was given",
                describe_broken()
            )));
        }
        if exceeds_skip_limit(broken_paths.len(), container_count) {
            return Err(BlockedRun(format!(
                "{}: more than {MAX_SKIPPED} and {:.0} %, which suggests a common cause: fix it first, or apply a part with `--only`",
                describe_broken(),
                MAX_SKIPPED_SHARE * 100.0
            )));
        }
        broken_paths.extend(unsaved_paths);
        // Containers with steps that depend on a skipped container are skipped too.
        extend_to_closure(&mut broken_paths, |broken| {
            let other_steps = self.steps.iter().filter(|step| !broken.contains(&step.address.path));
            let dependants = other_steps
                .filter(|step| step.after.iter().any(|edge| broken.contains(&edge.address.path)));
            dependants.map(|step| step.address.path.clone()).collect()
        });
        let skipped_containers = broken_paths.iter().map(|path| {
            let steps = self.steps.iter().filter(|step| step.address.path == *path).count();
            SkippedContainer { address: Address::container(path.clone()), steps }
        });
        let skipped_containers = skipped_containers.collect();
        Ok((
            ApprovedPlan { plan: self, skipped_paths: broken_paths, graph: OnceLock::new() },
            skipped_containers,
        ))
    }
}

impl Plan {
    /// The containers with a problem, a refusal or something that could not be read.
    fn broken_containers(&self) -> BTreeSet<Arc<str>> {
        let problems = self.problems.iter().map(|problem| &problem.address);
        let refusals = self.refusals.iter().map(|refusal| &refusal.address);
        let affected_paths = problems.chain(refusals).map(|address| &address.path);
        affected_paths.chain(self.unread_containers()).cloned().collect()
    }

    /// The containers that are skipped because something in them could not be read.
    pub fn unread_containers(&self) -> BTreeSet<&Arc<str>> {
        let archiving_steps = self.steps.iter().filter(|step| step.archives_container());
        let archived_paths: BTreeSet<_> = archiving_steps.map(|step| &step.address.path).collect();
        self.incomplete
            .iter()
            .filter(|unread| {
                !unread.is_withheld_section() || archived_paths.contains(&unread.address.path)
            })
            .map(|unread| &unread.address.path)
            .collect()
    }

    /// True if so many containers are broken that nothing will be applied.
    pub fn has_too_many_problems(&self) -> bool {
        exceeds_skip_limit(self.broken_containers().len(), self.projects + self.groups)
    }

    /// The containers with steps that the saved plan does not contain.
    fn unsaved_paths(&self, comparison: Option<&PlanComparison>) -> BTreeSet<Arc<str>> {
        let paths = self.steps.iter().map(|step| &step.address.path);
        paths
            .filter(|path| comparison.is_some_and(|saved| !saved.agreed_paths.contains(*path)))
            .cloned()
            .collect()
    }
}

/// True if an acknowledgement matches a refusal.
fn matches_refusal(ack: &Acknowledgement, refusal: &GuardRefusal) -> bool {
    if ack.guard != refusal.guard {
        return false;
    }
    match &*refusal.address.path {
        WHOLE_RUN => ack.selector.pattern() == WHOLE_RUN,
        // The address is a glob too. Therefore compare the texts: `acme/*` differs from `acme/**`.
        glob if refusal.guard == Guard::Reach => {
            let (pattern, glob) = (ack.selector.pattern().to_lowercase(), glob.to_lowercase());
            let literal_prefix = pattern.strip_suffix("**").filter(|start| is_literal(start));
            pattern == WHOLE_RUN
                || pattern == glob
                || literal_prefix.is_some_and(|start| glob.starts_with(start))
        }
        path if refusal.guard == Guard::Deletion => {
            ack.selector.pattern().to_lowercase() == path.to_lowercase()
        }
        _ => ack.selector.matches(&refusal.address),
    }
}

/// Returns `ack` with the new address of a renamed entry, if `ack` has exactly the old address of
/// the entry. Otherwise returns `ack` unchanged.
fn rename_acknowledgement<'a>(
    ack: &'a Acknowledgement,
    new_addresses: &BTreeMap<String, String>,
) -> Cow<'a, Acknowledgement> {
    let new_address = new_addresses.get(&ack.selector.pattern().to_lowercase());
    match new_address.map(|address| Selector::parse(address)) {
        Some(Ok(selector)) => Cow::Owned(Acknowledgement { selector, ..ack.clone() }),
        _ => Cow::Borrowed(ack),
    }
}

/// True if an acknowledgement applies to a refusal. `acks` contains all valid acknowledgements. An
/// acknowledgement with `at_most` does not apply if another acknowledgement has exactly the address
/// of the refusal.
fn applies_to(ack: &Acknowledgement, refusal: &GuardRefusal, acks: &[&Acknowledgement]) -> bool {
    matches_refusal(ack, refusal)
        && (ack.max_objects.is_none()
            || has_same_address(ack, refusal)
            || !acks.iter().any(|other| has_same_address(other, refusal)))
}

/// True if an acknowledgement has the address of this refusal, as printed.
fn has_same_address(ack: &Acknowledgement, refusal: &GuardRefusal) -> bool {
    ack.guard == refusal.guard
        && ack.selector.pattern().to_lowercase() == refusal.address.to_string().to_lowercase()
}

/// The reason why an acknowledgement does not count, and the advice for the user. `None` if the
/// matching refusals do not exceed the `at_most` of the acknowledgement.
fn excess_reason(
    ack: &Acknowledgement,
    refusals: &[GuardRefusal],
    acks: &[&Acknowledgement],
) -> Option<(String, String)> {
    let max_objects = ack.max_objects?;
    let matching_refusals: Vec<_> =
        refusals.iter().filter(|refusal| applies_to(ack, refusal, acks)).collect();
    // The number of objects of a refusal of the whole run includes the objects of the single refusals.
    let (whole_run_refusals, single_refusals): (Vec<&GuardRefusal>, Vec<&GuardRefusal>) =
        matching_refusals.iter().partition(|refusal| &*refusal.address.path == WHOLE_RUN);
    let whole_run_objects = whole_run_refusals.iter().map(|refusal| refusal.objects).max();
    let single_objects: usize = single_refusals.iter().map(|refusal| refusal.objects).sum();
    let objects = single_objects.max(whole_run_objects.unwrap_or(0));
    let matching_text = match matching_refusals[..] {
        [one] => format!("`{}` has {objects}", one.address),
        _ => format!(
            "the {} refusals that it matches have {objects} together",
            matching_refusals.len()
        ),
    };
    let is_excess = objects > max_objects;
    is_excess.then(|| {
        let message = format!(
            "the acknowledgement of `{ack}` allows at most {max_objects}, and {matching_text}"
        );
        (message, format!("write `at_most: {objects}` if that is intended"))
    })
}

/// Returns the reason if a glob matches the refused object at its new path, but not at a former
/// path. Otherwise, a branch could gain an acknowledgement by a rename. A path without a wildcard
/// is always accepted.
fn rename_conflict(ack: &Acknowledgement, refusal: &GuardRefusal, moves: &Moves) -> Option<String> {
    let path = &refusal.address.path;
    let pattern_path = ack.selector.pattern().split('#').next().unwrap_or_default();
    let is_exact =
        ack.selector.pattern().to_lowercase() == refusal.address.to_string().to_lowercase();
    let mut former_addresses = moves.former_addresses(&refusal.address).iter();
    if let Some(former) = former_addresses.find(|former| !is_exact && !ack.selector.matches(former))
    {
        return Some(format!(
            "the acknowledgement of `{ack}` does not cover `{former}`, the former name of `{}`; write `{}`",
            refusal.address, refusal.acknowledgement
        ));
    }
    if refusal.guard == Guard::Reach || pattern_path.to_lowercase() == path.to_lowercase() {
        return None;
    }
    let uncovered_path = match moves.former_paths(path) {
        None => "every former path".to_owned(),
        Some(former) => {
            let former = former.into_iter().find(|former| {
                !ack.selector
                    .matches(&Address { path: (**former).into(), ..refusal.address.clone() })
            });
            format!("`{}`, the former path", escape(&former?))
        }
    };
    Some(format!(
        "the acknowledgement of `{ack}` does not cover {uncovered_path} of `{path}`; write `{}`",
        refusal.acknowledgement
    ))
}

fn new_warning(ack: &Acknowledgement, message: &str) -> Diagnostic {
    let warning = Diagnostic::warning("acknowledgement", message.to_owned());
    match &ack.origin {
        Some(origin) => warning.with_location(SourceLocation::from(origin)),
        None => warning,
    }
}

/// Help if the address of `ack` contains further acknowledgements.
fn suggest_separation(ack: &Acknowledgement) -> Option<String> {
    let text = ack.to_string();
    let parts: Vec<_> = text.split([';', '|']).collect();
    let is_list = parts.len() > 1 && parts.iter().all(|part| Acknowledgement::parse(part).is_ok());
    let separated = parts.join(",");
    is_list.then(|| format!("UNDRIFT_ACK separates acknowledgements by commas: `{separated}`"))
}

/// The words of an address in lower case, without separators.
fn split_words(address: &str) -> Vec<String> {
    let words = address.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
