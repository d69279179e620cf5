//! Decides which part of a plan may run. No other module decides that.
//!
//! A problem, a refusal or an unreadable scope concerns one group or project. That one is left out
//! and named, and the rest may run: among thousands of projects one is always broken. If too many
//! are left out, the cause is probably common to all, and nothing runs. A section that the service
//! withholds ([`Withheld`](crate::cause::Withheld)) is left out alone: no other step needs it but
//! the one that archives the project.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Plan, connect::Graph, extend_to_closure, saved::PlanComparison};
use crate::{
    address::{Address, Selector, is_literal},
    catalogue,
    desired::{Acknowledgement, Guard, Moves},
    diagnostic::{Diagnostic, SourceLocation},
    diff::{Action, GuardRefusal, Step},
    live::Live,
    origin::Origin,
    text::{count, escape},
};

/// Nothing is applied if more containers than this number, and more than this share, are skipped.
const MAX_LEFT_OUT: usize = 3;
const MAX_LEFT_OUT_SHARE: f64 = 0.05;

/// True if so many of `total` containers are skipped that nothing may run.
fn are_too_many_skipped(skipped: usize, total: usize) -> bool {
    skipped > MAX_LEFT_OUT && skipped as f64 > total as f64 * MAX_LEFT_OUT_SHARE
}

/// The path of a refusal for the run as a whole.
pub(super) const WHOLE_RUN: &str = "**";

/// How much of a plan may be left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Policy<'s> {
    /// Whether nothing is applied if any container is skipped.
    pub all_or_nothing: bool,
    /// The comparison with a saved plan, if only the saved steps may run.
    pub saved: Option<&'s PlanComparison>,
}

/// A plan from which everything that may not run was removed. Only [`Plan::approve`] makes one, and
/// apply accepts nothing else.
#[derive(Debug)]
pub struct Approved<'p> {
    plan: &'p Plan,
    skipped_paths: BTreeSet<Arc<str>>,
    /// The links between the steps, once they are needed.
    links: OnceLock<Graph>,
}

impl Approved<'_> {
    /// The steps that run, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> + Clone {
        self.plan.steps.iter().filter(|step| !self.skipped_paths.contains(&step.address.path))
    }

    /// Whether `target`, a step of the same container or the earlier steps of a section, comes after
    /// the step at `address`, directly or through others.
    pub fn comes_after(&self, target: &Address, address: &Address) -> bool {
        let steps = &self.plan.steps;
        let first = steps.partition_point(|step| step.address.path < address.path);
        let of_container =
            steps[first..].iter().take_while(|step| step.address.path == address.path);
        let Some(position) = of_container.clone().position(|step| step.address == *address) else {
            return false;
        };
        let links = self.links.get_or_init(|| Graph::from_steps(steps));
        let followers = links.followers(first + position);
        of_container.enumerate().any(|(at, step)| {
            let is_earlier = at < position && step.address.section == target.section;
            let is_target = step.address == *target || (is_earlier && target.entry.is_none());
            is_target && followers.contains(&(first + at))
        })
    }

    /// True if the approved part contains every difference of the container at `path`.
    pub fn covers_container(&self, path: &str) -> bool {
        self.plan.limited.is_none() && !self.skipped_paths.contains(path)
    }

    /// The live state of the container at `path` when the plan was made.
    pub fn live(&self, path: &str) -> Option<&Live> {
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

/// A group or project that is not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The group or project.
    pub address: Address,
    /// How many of its steps are not carried out.
    pub steps: usize,
}

/// Why nothing runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked(pub String);

/// A refusal with an acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Acknowledged {
    /// The refusal.
    pub refusal: GuardRefusal,
    /// The reason written in the acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where the acknowledgement is written; `None` if it came from the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<Origin>,
    /// Whether the branch added it: the base does not have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Plan {
    /// Removes acknowledged refusals. Warns of acknowledgements that are exceeded or unused. Those
    /// that expired before `today` are skipped here: the check of the manifests warns of them.
    pub fn acknowledge(
        &mut self,
        acknowledgements: &[Acknowledgement],
        moves: &Moves,
        today: Date,
    ) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let refusals = std::mem::take(&mut self.findings.refusals);
        let new_addresses = self.new_addresses(&refusals);
        let valid = acknowledgements.iter().filter(|ack| !ack.has_expired(today));
        let valid: Vec<_> = valid.map(|ack| under_new_name(ack, &new_addresses)).collect();
        let valid: Vec<_> = valid.iter().map(|ack| &**ack).collect();
        let mut used = vec![false; valid.len()];
        let excesses: Vec<_> =
            valid.iter().map(|ack| excess_reason(ack, &refusals, &valid)).collect();
        for refusal in refusals {
            let mut granted = None;
            for (at, ack) in valid.iter().copied().enumerate() {
                if !applies_to(ack, &refusal, &valid) {
                    continue;
                }
                // An excess is reported once.
                let is_new = !std::mem::replace(&mut used[at], true);
                match (&excesses[at], rename_conflict(ack, &refusal, moves)) {
                    (Some(why), _) if is_new => warnings.push(warning(ack, why)),
                    (Some(_), _) => {}
                    (None, Some(why)) => warnings.push(warning(ack, &why)),
                    (None, None) => granted = granted.or(Some(ack)),
                }
            }
            match granted {
                Some(ack) => self.acknowledged.push(Acknowledged {
                    refusal,
                    reason: ack.reason.clone(),
                    by: ack.origin.clone(),
                    is_new: false,
                }),
                None => self.findings.refusals.push(refusal),
            }
        }
        warnings.extend(valid.into_iter().zip(used).filter(|(_, used)| !used).map(|(ack, _)| {
            warning(ack, &format!("`{ack}` acknowledges nothing that this run refuses"))
        }));
        warnings
    }

    /// The new address of each entry that the run renames, by its old one in lower case. An old name
    /// that another entry takes, and that one of `refusals` is about, is no longer that of the renamed entry.
    fn new_addresses(&self, refusals: &[GuardRefusal]) -> BTreeMap<String, String> {
        let refused: BTreeSet<_> = refusals.iter().map(|refusal| &refusal.address).collect();
        let renames = self.steps.iter().filter(|step| step.action == Action::Update);
        let renames = renames.filter_map(|step| {
            let section = catalogue::section(step.scope, step.address.section?)?;
            let [name] = section.identity else { return None };
            let old_name = step.change(name)?.before.value()?.as_str()?;
            let old_address = step.address.section(section.section).entry(old_name);
            let is_taken = refused.contains(&old_address);
            let key = old_address.to_string().to_lowercase();
            (!is_taken).then(|| (key, step.address.to_string()))
        });
        renames.collect()
    }

    /// True if a guard refuses the whole run. A refusal for a rule does, because a rule has no
    /// steps that could be left out.
    pub fn is_refused(&self) -> bool {
        self.refusals
            .iter()
            .any(|refusal| &*refusal.address.path == WHOLE_RUN || refusal.guard == Guard::Reach)
    }

    /// Decides what may run: all containers without a problem, a refusal or an unreadable scope.
    ///
    /// # Errors
    /// Why nothing may run.
    pub fn approve(&self, policy: Policy<'_>) -> Result<(Approved<'_>, Vec<LeftOut>), Blocked> {
        let mut broken = self.broken_containers();
        if self.is_refused() {
            return Err(Blocked("a guard refuses the whole run".into()));
        }
        let container_count = self.projects + self.groups;
        // Containers outside the saved plan are left out too, but are no sign of a common cause.
        let not_saved = self.not_in_saved(policy.saved);
        if policy.all_or_nothing {
            broken.extend(not_saved.iter().cloned());
        }
        let describe_broken = || match self.groups {
            0 => format!(
                "{} of {} cannot be applied",
                broken.len(),
                count(container_count, "project")
            ),
            _ => format!(
                "{} of {container_count} groups and projects cannot be applied",
                broken.len()
            ),
        };
        if !broken.is_empty() && policy.all_or_nothing {
            return Err(Blocked(format!(
                "{}, and `--all-or-nothing` was given",
                describe_broken()
            )));
        }
        if are_too_many_skipped(broken.len(), container_count) {
            return Err(Blocked(format!(
                "{}: more than {MAX_LEFT_OUT} and {:.0} %, which suggests a common cause: fix it first, or apply a part with `--only`",
                describe_broken(),
                MAX_LEFT_OUT_SHARE * 100.0
            )));
        }
        broken.extend(not_saved);
        // Steps that depend on a step of a broken container are left out too.
        extend_to_closure(&mut broken, |broken| {
            let whole = self.steps.iter().filter(|step| !broken.contains(&step.address.path));
            let dependants = whole
                .filter(|step| step.after.iter().any(|edge| broken.contains(&edge.address.path)));
            dependants.map(|step| step.address.path.clone()).collect()
        });
        let skipped = broken.iter().map(|path| {
            let steps = self.steps.iter().filter(|step| step.address.path == *path).count();
            LeftOut { address: Address::container(path.clone()), steps }
        });
        let skipped = skipped.collect();
        Ok((Approved { plan: self, skipped_paths: broken, links: OnceLock::new() }, skipped))
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

    /// The containers that are left out because something in them could not be read.
    pub fn unread_containers(&self) -> BTreeSet<&Arc<str>> {
        let closing = self.steps.iter().filter(|step| step.closes_container());
        let closing: BTreeSet<_> = closing.map(|step| &step.address.path).collect();
        self.incomplete
            .iter()
            .filter(|scope| !scope.is_withheld_section() || closing.contains(&scope.address.path))
            .map(|scope| &scope.address.path)
            .collect()
    }

    /// True if so many containers are broken that nothing will be applied.
    pub fn is_mostly_broken(&self) -> bool {
        are_too_many_skipped(self.broken_containers().len(), self.projects + self.groups)
    }

    /// The containers with steps that differ from the `saved` plan.
    fn not_in_saved(&self, saved: Option<&PlanComparison>) -> BTreeSet<Arc<str>> {
        let paths = self.steps.iter().map(|step| &step.address.path);
        paths
            .filter(|path| saved.is_some_and(|saved| !saved.agreed.contains(*path)))
            .cloned()
            .collect()
    }
}

/// True if an acknowledgement matches a refusal.
fn names_refusal(ack: &Acknowledgement, refusal: &GuardRefusal) -> bool {
    if ack.guard != refusal.guard {
        return false;
    }
    match &*refusal.address.path {
        WHOLE_RUN => ack.selector.pattern() == WHOLE_RUN,
        // A glob within a glob: `acme/*` differs from `acme/**`.
        glob if refusal.guard == Guard::Reach => {
            let (at, glob) = (ack.selector.pattern().to_lowercase(), glob.to_lowercase());
            let above = at.strip_suffix("**").filter(|start| is_literal(start));
            at == WHOLE_RUN || at == glob || above.is_some_and(|start| glob.starts_with(start))
        }
        path if refusal.guard == Guard::Deletion => {
            ack.selector.pattern().to_lowercase() == path.to_lowercase()
        }
        _ => ack.selector.matches(&refusal.address),
    }
}

/// `ack`, for the new name of an entry if it is for the old one alone.
fn under_new_name<'a>(
    ack: &'a Acknowledgement,
    new_addresses: &BTreeMap<String, String>,
) -> Cow<'a, Acknowledgement> {
    let new_address = new_addresses.get(&ack.selector.pattern().to_lowercase());
    match new_address.map(|address| Selector::parse(address)) {
        Some(Ok(selector)) => Cow::Owned(Acknowledgement { selector, ..ack.clone() }),
        _ => Cow::Borrowed(ack),
    }
}

/// True if an acknowledgement applies to a refusal, given all that are `valid`. One with a number
/// leaves refusals to others that name them.
fn applies_to(ack: &Acknowledgement, refusal: &GuardRefusal, valid: &[&Acknowledgement]) -> bool {
    names_refusal(ack, refusal)
        && (ack.max_objects.is_none()
            || names_exactly(ack, refusal)
            || !valid.iter().any(|other| names_exactly(other, refusal)))
}

/// True if an acknowledgement is for one refusal alone, with its address as printed.
fn names_exactly(ack: &Acknowledgement, refusal: &GuardRefusal) -> bool {
    ack.guard == refusal.guard
        && ack.selector.pattern().to_lowercase() == refusal.address.to_string().to_lowercase()
}

/// The reason why an acknowledgement does not count, if the matching refusals exceed its `at_most`.
fn excess_reason(
    ack: &Acknowledgement,
    refusals: &[GuardRefusal],
    valid: &[&Acknowledgement],
) -> Option<String> {
    let max_objects = ack.max_objects?;
    let matching: Vec<_> =
        refusals.iter().filter(|refusal| applies_to(ack, refusal, valid)).collect();
    // A refusal of the whole run is about the same objects again.
    let (whole_run, single_refusals): (Vec<&GuardRefusal>, Vec<&GuardRefusal>) =
        matching.iter().partition(|refusal| &*refusal.address.path == WHOLE_RUN);
    let whole_run_objects = whole_run.iter().map(|refusal| refusal.objects).max();
    let single_objects: usize = single_refusals.iter().map(|refusal| refusal.objects).sum();
    let objects = single_objects.max(whole_run_objects.unwrap_or(0));
    let matching_text = match matching[..] {
        [one] => format!("`{}` has {objects}", one.address),
        _ => format!("the {} refusals that it matches have {objects} together", matching.len()),
    };
    let is_over = objects > max_objects;
    is_over.then(|| {
        format!("the acknowledgement of `{ack}` allows at most {max_objects}, and {matching_text}")
    })
}

/// Returns the reason if a glob matches the refusal at its new path but not at a former one:
/// otherwise a branch could choose its acknowledgements by a rename. A path without a wildcard
/// always counts.
fn rename_conflict(ack: &Acknowledgement, refusal: &GuardRefusal, moves: &Moves) -> Option<String> {
    let path = &refusal.address.path;
    let written = ack.selector.pattern().split('#').next().unwrap_or_default();
    let is_exact =
        ack.selector.pattern().to_lowercase() == refusal.address.to_string().to_lowercase();
    let mut entries = moves.former_entries(&refusal.address).iter();
    if let Some(former) = entries.find(|former| !is_exact && !ack.selector.matches(former)) {
        return Some(format!(
            "the acknowledgement of `{ack}` does not cover `{former}`, the former name of `{}`; write `{}`",
            refusal.address, refusal.acknowledgement
        ));
    }
    if refusal.guard == Guard::Reach || written.to_lowercase() == path.to_lowercase() {
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

fn warning(ack: &Acknowledgement, message: &str) -> Diagnostic {
    let warning = Diagnostic::warning("acknowledgement", message.to_owned());
    match &ack.origin {
        Some(origin) => warning.at_place(SourceLocation::from(origin)),
        None => warning,
    }
}
