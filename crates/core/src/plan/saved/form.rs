//! The file format of a saved plan. Contains only serialisable types.
//!
//! No text in a file contains a secret. A file must be read with
//! [`SavedPlan::read`](super::SavedPlan::read), which verifies it.

use std::{collections::BTreeMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SAVE_AGAIN_HELP, UnusablePlan};
use crate::{
    address::Address,
    catalogue::{self, operations},
    diff::{self, Action, Shown, ShownCall},
    field::Scope,
    operation::AnyOp,
    origin::Origin,
    value::Json,
};

/// The version of the format. The version 0 is still unstable.
pub const FORMAT: u32 = 0;

/// Shown as the condition of a possible step, because files do not store the condition.
const SAVED_CONDITION: &str = "if it is still needed once the steps before it are done";

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanFileKind {
    /// A plan to be applied later.
    SavedPlan,
}

/// A saved plan with its digest, and its signature if there is a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedPlan")]
pub struct SealedPlan {
    /// The plan.
    #[serde(flatten)]
    pub plan: SavedPlan,
    /// The SHA-256 of everything except `seal`, in canonical JSON.
    pub id: String,
    /// The HMAC-SHA-256 of `id` under `UNDRIFT_PLAN_KEY`; absent if that key was not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// A plan that is applied later, perhaps by somebody else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedPlan {
    /// The kind of the file.
    pub undrift: PlanFileKind,
    /// The version of the format; 0 is unstable.
    pub format_version: u32,
    /// The version of undrift that wrote the file.
    pub tool_version: String,
    /// The time of the plan, in UTC.
    pub created_at: String,
    /// The address of the service.
    pub target: String,
    /// The username that the token belonged to.
    pub caller: String,
    /// True if the service is the embedded sandbox.
    pub sandbox: bool,
    /// The folder of manifests relative to the working directory; absent if the folder is not below
    /// that directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<String>,
    /// The selected part, as in `--only`.
    pub only: Vec<String>,
    /// The excluded part, as in `--exclude`.
    pub exclude: Vec<String>,
    /// The objects whose write-only fields are sent again, as in `--resend`.
    pub resend: Vec<String>,
    /// The groups and projects that the plan changes.
    pub containers: Vec<Declaration>,
    /// The steps, in order.
    pub steps: Vec<SavedStep>,
}

/// The declaration of a group or project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// The scope: group or project.
    pub scope: Scope,
    /// The full path.
    pub path: String,
    /// The SHA-256 of the declaration with all layers merged. Of hidden values, only the HMACs are
    /// included.
    pub declared: String,
}

/// One object to create, change or remove.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedStep")]
pub struct SavedStep {
    /// The scope: `group` for a group and for objects in a group, `project` for a project and for
    /// objects in a project.
    pub scope: Scope,
    /// The full path of the group or project.
    pub path: Arc<str>,
    /// The section of the manifest; absent for the group or project itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The entry within a section that is a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// The action on the object.
    pub action: Action,
    /// True if the object is removed and added again.
    pub replaces: bool,
    /// True if the step may be unnecessary, or a smaller change, once its object can be read.
    pub possible: bool,
    /// The place of the declaration.
    pub origin: Origin,
    /// The changes, field by field.
    pub changes: Vec<SavedChange>,
    /// The calls, in order.
    pub calls: Vec<SavedCall>,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedChange")]
pub struct SavedChange {
    /// The name of the field in the manifest.
    pub field: String,
    /// The live value.
    pub before: Shown,
    /// The declared value.
    pub after: Shown,
    /// The HMAC of the live value, if it is hidden and `UNDRIFT_PLAN_KEY` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The place of the declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// A call of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedCall")]
pub struct SavedCall {
    /// The id of the operation.
    pub operation: String,
    /// The path and the query below `/api/v4`. A container that the run creates is named by its
    /// path.
    pub path: String,
    /// The fields of the body.
    pub body: BTreeMap<String, Sent>,
    /// True if the call is sent only if the call before it failed.
    pub restores: bool,
    /// True if the call is sent only if the call before it turned on a switch, and the response
    /// lacks the limit of that switch.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoes: bool,
    /// True if the call waits for the import of the contents.
    pub awaits: bool,
}

/// A value of a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", content = "value", rename_all = "snake_case")]
pub enum Sent {
    /// Plain data; `{"id_of": PATH}` is the id of a container that the run creates.
    Value(Json),
    /// A declared value that is hidden.
    Hidden,
    /// The value of a secret, by its source.
    Secret(String),
    /// The content of a file.
    File(String),
    /// The live value at the time of the call. The SHA-256 of the value that was read is saved. For
    /// a hidden value, its HMAC is saved if `UNDRIFT_PLAN_KEY` was set, and nothing otherwise.
    AsItIs(Option<String>),
}

impl SavedStep {
    /// Converts the step for display, without requests. Fails if the step names a section or an
    /// operation that undrift does not know.
    pub(super) fn to_step(&self) -> Result<diff::Step, UnusablePlan> {
        let section = self.section.as_ref().map(|name| {
            let section = catalogue::find_section(self.scope, name).map(|section| section.section);
            section.ok_or_else(|| {
                let unknown_section = format!("`{name}`, a section that undrift does not know");
                let help = "pass the `--kinds` files that the plan was made with";
                UnusablePlan::new(format!("the saved plan names {unknown_section}"), help)
            })
        });
        let section = section.transpose()?;
        let address = Address { path: self.path.clone(), section, entry: self.entry.clone() };
        let changes = self.changes.iter().map(|change| {
            let SavedChange { field, before, after, origin, .. } = change.clone();
            diff::FieldChange::new(&field, before, after, origin)
        });
        let (changes, origin) = (changes.collect(), self.origin.clone());
        let step = diff::Step::new(self.scope, address, self.action, origin, changes, Vec::new());
        let calls = self.calls.iter().map(SavedCall::to_shown_call).collect::<Result<_, _>>()?;
        let possible = self.possible.then_some(SAVED_CONDITION);
        Ok(diff::Step { replaces: self.replaces, possible, calls, ..step })
    }
}

impl SavedCall {
    fn to_shown_call(&self) -> Result<ShownCall, UnusablePlan> {
        let Some(AnyOp::Write(op)) = operations::find_operation(&self.operation) else {
            let unknown_operation =
                format!("`{}`, an operation that undrift does not know", self.operation);
            let message = format!("the saved plan sends {unknown_operation}");
            return Err(UnusablePlan::new(message, SAVE_AGAIN_HELP));
        };
        Ok(ShownCall {
            operation: op.row().id,
            method: op.row().method.as_str(),
            path: self.path.clone(),
            fields: self.body.keys().cloned().collect(),
            restores: self.restores,
            undoes: self.undoes,
            awaits: self.awaits,
        })
    }
}
