//! Saved plans: one CI job makes a plan, somebody approves the file, and another job applies the
//! plan.
//!
//! A file is canonical JSON with a digest of itself ([`SealedPlan`]). Therefore each plan has
//! exactly one text, and a file that was cut or edited is refused. A file contains no secret, and
//! nothing from which a secret could be guessed. Of a hidden value, it contains only the HMAC, and
//! only if there is a key.
//!
//! The steps of the file are never executed. Apply plans again; [`SavedPlan::compare`] finds the
//! groups and projects for which the new plan and the file agree, and [`Plan::approve`] skips the
//! others. Guards, acknowledgements and problems come from the new plan. Therefore an edited file
//! can at most skip steps.

mod compare;
mod content;
mod form;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, str::FromStr as _};

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::json;

pub use compare::{ChangeSides, FieldDifference, PlanComparison, StaleObject};
pub use content::PlanRecorder;
pub use form::{Declaration, FORMAT, PlanFileKind, SavedPlan, SealedPlan};

use super::Plan;
use crate::{
    desired::Container,
    diff::{self, Shown},
    digest::{self, DigestKey},
    value::Json,
};
use form::Sent;

/// The maximum size of a file, in bytes. The plan of a change to 10,000 projects takes a tenth of
/// this size.
pub const MAX_BYTES: u64 = 64 << 20;
/// The maximum age of a saved plan, in hours.
const MAX_AGE_HOURS: i64 = 7 * 24;
/// The maximum number of hours by which the clock of the saving machine may be ahead.
const MAX_CLOCK_LEAD_HOURS: i64 = 1;

/// The time, the service, the caller and the selection of a plan that is saved.
#[derive(Clone, Debug)]
pub struct SaveContext {
    /// The time of the plan.
    pub made_at: Timestamp,
    /// The address of the service.
    pub target: String,
    /// The username that the token belongs to.
    pub caller: String,
    /// True if the service is the embedded sandbox.
    pub is_sandbox: bool,
    /// The folder of manifests relative to the working directory; `None` if the folder is not below
    /// that directory.
    pub manifests: Option<String>,
    /// The values of `--only`, `--exclude` and `--resend`.
    pub selectors: [Vec<String>; 3],
}

/// The reason why a file cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnusablePlan {
    /// The reason, as a message.
    pub message: String,
    /// The advice for the user.
    pub help: &'static str,
    /// True if the file is not a saved plan at all.
    pub is_other_file: bool,
}

impl UnusablePlan {
    fn new(message: impl Into<String>, help: &'static str) -> Self {
        Self { message: message.into(), help, is_other_file: false }
    }

    fn other_file(message: impl Into<String>) -> Self {
        Self { is_other_file: true, ..Self::new(message, SAVE_AGAIN_HELP) }
    }
}

/// The beginning of every file.
const FILE_START: &str = r#"{"undrift":"saved_plan","#;

const SAVE_AGAIN_HELP: &str = "save the plan again with `undrift plan -o FILE`";

impl SavedPlan {
    /// The saved form of `plan`, which was made for `containers`.
    pub fn from_plan(
        plan: &Plan,
        containers: &[Container],
        source: SaveContext,
        recorder: PlanRecorder<'_>,
    ) -> Self {
        let (steps, containers) = content::record_all(&plan.steps, containers, recorder);
        let SaveContext { made_at, selectors: [only, exclude, resend], .. } = source;
        Self {
            undrift: PlanFileKind::SavedPlan,
            format_version: FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            created_at: made_at.round(jiff::Unit::Second).unwrap_or(made_at).to_string(),
            target: recorder.redact_text(&source.target),
            caller: recorder.redact_text(&source.caller),
            sandbox: source.is_sandbox,
            manifests: source.manifests.map(|folder| recorder.redact_text(&folder)),
            only,
            exclude,
            resend,
            containers,
            steps,
        }
    }

    /// Adds the id of the plan, and a seal if there is a `key`.
    pub fn seal(self, key: Option<&DigestKey>) -> SealedPlan {
        let id = digest::json_digest(&json!(self));
        let seal = key.map(|key| key.digest(&json!({ "seal": id })));
        SealedPlan { plan: self, id, seal }
    }

    /// True if the plan has hidden values. Without a key, the file does not contain their digests.
    pub fn hides_values(&self) -> bool {
        let is_hidden = |shown: &Shown| matches!(shown, Shown::Hidden);
        let mut changes = self.steps.iter().flat_map(|step| &step.changes);
        let mut calls = self.steps.iter().flat_map(|step| &step.calls);
        changes.any(|change| is_hidden(&change.before) || is_hidden(&change.after))
            || calls.any(|call| call.body.values().any(|sent| *sent == Sent::AsItIs(None)))
    }

    /// The steps in the form of a plan, without requests.
    pub fn shown_steps(&self) -> Vec<diff::Step> {
        self.steps.iter().filter_map(|step| step.to_step().ok()).collect()
    }

    /// Checks that the plan is for the service `target` and not too old.
    ///
    /// # Errors
    /// If the plan is for another service, is too old, or has a time in the future.
    pub fn check_target(&self, target: &str, now: Timestamp) -> Result<(), UnusablePlan> {
        if self.target != target {
            let message = format!("the saved plan is for `{}`, not for `{target}`", self.target);
            return Err(UnusablePlan::new(message, "name the service that it was made for"));
        }
        let Ok(created_at) = Timestamp::from_str(&self.created_at) else {
            return Err(damaged_plan());
        };
        let age = now.duration_since(created_at);
        if age > SignedDuration::from_hours(MAX_AGE_HOURS) {
            let message = format!(
                "the saved plan of {} has expired: it is older than 7 days",
                self.created_at
            );
            return Err(UnusablePlan::new(message, SAVE_AGAIN_HELP));
        }
        if age < SignedDuration::from_hours(-MAX_CLOCK_LEAD_HOURS) {
            let message = format!("the saved plan is from the future: {}", self.created_at);
            return Err(UnusablePlan::new(message, "set the clocks of both machines"));
        }
        Ok(())
    }

    /// Checks that undrift could have written this content.
    ///
    /// # Errors
    /// If a step is unknown, occurs twice, or is not in one of the containers.
    pub fn check(&self) -> Result<(), UnusablePlan> {
        let paths: BTreeSet<_> =
            self.containers.iter().map(|container| container.path.as_str()).collect();
        let mut addresses = BTreeSet::new();
        for step in &self.steps {
            let decoded_step = step.to_step()?;
            if !paths.contains(&*step.path) || !addresses.insert(decoded_step.address) {
                return Err(damaged_plan());
            }
        }
        if paths.len() < self.containers.len() {
            return Err(damaged_plan());
        }
        Ok(())
    }
}

impl SealedPlan {
    /// The text of the file.
    pub fn to_text(&self) -> String {
        file_text(json!(self))
    }

    /// Reads a file, and accepts only the exact output of [`Self::to_text`]. Call [`SavedPlan::check`]
    /// afterwards, when all kinds are loaded.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn read(bytes: &[u8]) -> Result<Self, UnusablePlan> {
        if bytes.len() as u64 > MAX_BYTES {
            let help = "save a smaller plan, with `--only` or `--limit`";
            return Err(UnusablePlan::new("the file is larger than 64 MiB", help));
        }
        check_file_header(bytes)?;
        let sealed: Self = serde_json::from_slice(bytes).map_err(|_| damaged_plan())?;
        // This comparison refuses spaces, duplicate or unknown keys, and other spellings of
        // numbers.
        if sealed.to_text().as_bytes() != bytes
            || digest::json_digest(&json!(sealed.plan)) != sealed.id
        {
            return Err(damaged_plan());
        }
        Ok(sealed)
    }

    /// Checks that the plan was saved with `key`; if `key` is `None`, that it was saved without a
    /// key.
    ///
    /// # Errors
    /// If the plan was saved with another key, or if only one side has a key.
    pub fn check_seal(&self, key: Option<&DigestKey>) -> Result<(), UnusablePlan> {
        let seal = key.map(|key| key.digest(&json!({ "seal": self.id })));
        let help = "set the same UNDRIFT_PLAN_KEY for `plan -o` and `apply`";
        let seal_difference = match (&self.seal, seal) {
            (saved, expected) if *saved == expected => return Ok(()),
            (None, _) => "without",
            (Some(_), None) => "with",
            (Some(_), Some(_)) => "with another",
        };
        Err(UnusablePlan::new(
            format!("the plan was saved {seal_difference} UNDRIFT_PLAN_KEY"),
            help,
        ))
    }
}

/// The text of the file for `plan`, the JSON form of a [`SealedPlan`]: first the kind and the format
/// version, then the other keys in alphabetical order.
pub fn file_text(mut plan: Json) -> String {
    let mut take =
        |name| plan.as_object_mut().and_then(|keys| keys.remove(name)).unwrap_or_default();
    let (_, version) = (take("undrift"), take("format_version"));
    let plan_json = digest::canonical_text(&plan);
    format!("{FILE_START}\"format_version\":{version},{}\n", &plan_json[1..])
}

/// Checks that `bytes` begin with the header of a saved plan in the current format.
fn check_file_header(bytes: &[u8]) -> Result<(), UnusablePlan> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct PlanHeader {
        undrift: Json,
        format_version: Json,
    }
    let header: PlanHeader = match serde_json::from_slice(bytes) {
        Ok(header) => header,
        Err(_) if bytes.starts_with(FILE_START.as_bytes()) => return Err(damaged_plan()),
        Err(_) => return Err(UnusablePlan::other_file("the file is not a saved plan")),
    };
    match header.undrift.as_str() {
        Some("saved_plan") => {}
        Some(kind @ ("plan" | "drift" | "apply" | "check")) => {
            let message = format!("the file is a report of `{kind}`, not a saved plan");
            return Err(UnusablePlan::other_file(message));
        }
        _ => return Err(UnusablePlan::other_file("the file is not a saved plan")),
    }
    if header.format_version != FORMAT {
        let message = format!(
            "the saved plan has format {}, and this undrift reads format {FORMAT}",
            header.format_version
        );
        let help = "use the same version of undrift to plan and to apply";
        return Err(UnusablePlan::new(message, help));
    }
    Ok(())
}

fn damaged_plan() -> UnusablePlan {
    UnusablePlan::new("the saved plan is damaged, or was edited", SAVE_AGAIN_HELP)
}
