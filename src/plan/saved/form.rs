//! The format of a saved plan: types that are written and read, and nothing else.
//!
//! Everything is text that was struck of secrets before it came here. What a file says is believed
//! only after [`SavedPlan::read`](super::SavedPlan::read) has looked at it.

use std::{collections::BTreeMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    address::Address,
    diff::{self, Action, Shown, ShownCall},
    field::Scope,
    kinds::{self, operations},
    operation::AnyOp,
    origin::Origin,
    value::Json,
};

/// The version of the format. 0: still unstable.
pub const FORMAT: u32 = 0;

/// What stands in place of the condition of a possible step, which a file does not hold.
const POSSIBLE: &str = "if it is still needed once the steps before it are done";

/// What the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// A plan to be applied later.
    SavedPlan,
}

/// A saved plan with what proves that nobody edited it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedPlan")]
pub struct Sealed {
    /// The plan.
    #[serde(flatten)]
    pub plan: SavedPlan,
    /// The SHA-256 of everything else but `seal`, in canonical JSON.
    pub id: String,
    /// The HMAC-SHA-256 of `id` under `UNDRIFT_PLAN_KEY`, if that was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

/// A plan that is applied later, perhaps by somebody else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SavedPlan {
    /// What it is.
    pub undrift: Sort,
    /// The version of the format; 0 is unstable.
    pub format_version: u32,
    /// The version of undrift that wrote it.
    pub tool_version: String,
    /// When it was made, in UTC.
    pub created_at: String,
    /// The address of the service that it is for.
    pub target: String,
    /// The username that the token belonged to.
    pub caller: String,
    /// Whether the service is the embedded sandbox.
    pub sandbox: bool,
    /// The folder of manifests, from the working directory, if it is below that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifests: Option<String>,
    /// Which part of what is declared it is about, as `--only` says it.
    pub only: Vec<String>,
    /// What it is not about, as `--exclude` says it.
    pub exclude: Vec<String>,
    /// What is sent again, as `--resend` says it.
    pub resend: Vec<String>,
    /// The groups and projects that it changes.
    pub containers: Vec<Declaration>,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// What manifests declared of a group or project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Declaration {
    /// Which of the two.
    pub scope: Scope,
    /// Its full path.
    pub path: String,
    /// The SHA-256 of what is declared of it, all layers merged. Values that are not shown are in it
    /// only as their HMAC.
    pub declared: String,
}

/// One object to create, change or remove.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedStep")]
pub struct Step {
    /// Whether it is about a group or a project, or about something in one.
    pub scope: Scope,
    /// The full path of the group or project.
    pub path: Arc<str>,
    /// The section of the manifest; none for the group or project itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// The entry within a section that is a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    /// What is done to it.
    pub action: Action,
    /// Whether it is removed and added anew.
    pub replaces: bool,
    /// Whether it may turn out to be needless, or a smaller change.
    pub possible: bool,
    /// Where it is declared.
    pub origin: Origin,
    /// What changes, field by field.
    pub changes: Vec<Change>,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedChange")]
pub struct Change {
    /// Its name in the manifest.
    pub field: String,
    /// What was there.
    pub before: Shown,
    /// What is to be there.
    pub after: Shown,
    /// The HMAC of what was there, if that is not shown and `UNDRIFT_PLAN_KEY` was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// Where it is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// A call of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SavedCall")]
pub struct Call {
    /// The id of the operation.
    pub operation: String,
    /// The path and the query below `/api/v4`. What the run creates is named by its path.
    pub path: String,
    /// What the body says.
    pub body: BTreeMap<String, Sent>,
    /// Whether it is sent only if the call before it failed.
    pub restores: bool,
    /// Whether it is sent only if the answer to the call before it does not show what limits a switch
    /// that this one turned on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undoes: bool,
    /// Whether what was started by then is waited for.
    pub awaits: bool,
}

/// A value of a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "is", content = "value", rename_all = "snake_case")]
pub enum Sent {
    /// Plain data; `{"id_of": PATH}` stands for the id of what the run creates.
    Value(Json),
    /// A declared value that is not shown.
    Hidden,
    /// The value of a secret, by where it comes from.
    Secret(String),
    /// The content of a file.
    File(String),
    /// What is there, as it is there when the call is sent: the SHA-256 of what was there; the HMAC
    /// if that is not shown and `UNDRIFT_PLAN_KEY` was set, else nothing.
    AsItIs(Option<String>),
}

impl Step {
    /// The step as plans show it. It sends nothing. Nothing if it names a section or an operation
    /// that undrift does not know: then which.
    pub(super) fn shown(&self) -> Result<diff::Step, Unknown> {
        let section = match &self.section {
            None => None,
            Some(name) => {
                let section = kinds::section(self.scope, name);
                Some(section.ok_or_else(|| Unknown::Section(name.clone()))?.section)
            }
        };
        let address = Address { path: self.path.clone(), section, entry: self.entry.clone() };
        let changes = self.changes.iter().map(|change| diff::Change {
            field: change.field.clone(),
            before: change.before.clone(),
            after: change.after.clone(),
            origin: change.origin.clone(),
            label: None,
        });
        let (changes, origin) = (changes.collect(), self.origin.clone());
        let step = diff::Step::new(self.scope, address, self.action, origin, changes, Vec::new());
        let calls = self.calls.iter().map(Call::shown).collect::<Result<_, _>>()?;
        let possible = self.possible.then_some(POSSIBLE);
        Ok(diff::Step { replaces: self.replaces, possible, calls, ..step })
    }
}

impl Call {
    fn shown(&self) -> Result<ShownCall, Unknown> {
        let Some(AnyOp::Write(op)) = operations::find(&self.operation) else {
            return Err(Unknown::Operation(self.operation.clone()));
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

/// What a file names and undrift does not know.
pub(super) enum Unknown {
    Section(String),
    Operation(String),
}
