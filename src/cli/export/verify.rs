//! Checks the manifests of an export before they are written. The manifests must be valid. A plan
//! from them and the live state that was just read must have no steps. Without this check, a bug in
//! the export would change live values in the next apply.

use std::sync::Arc;

use super::{
    super::{Result, RunContext},
    LiveStates,
};
use crate::{
    apply,
    export::Export,
    kind::CreatedContainers,
    manifest::{self, Config, LoadEnvironment, RESERVED_FILES},
    observe::Observer,
    plan,
    secret::{Reference, Secrets},
};

/// Compares the manifests in `export` with the live state. Returns one line per difference or error.
///
/// # Errors
/// A fatal error, after which all further requests would fail too.
pub(super) async fn verify_export(
    export: &Export,
    mut live_states: LiveStates,
    observer: &Observer,
    config: &Config,
    cx: &RunContext,
) -> Result<Vec<String>> {
    let files = export.files.iter().filter(|file| {
        file.path.ends_with(".yaml") && !RESERVED_FILES.contains(&file.path.as_str())
    });
    let texts = files.map(|file| (file.path.as_str().into(), file.text.clone()));
    let today = LoadEnvironment::for_process().today;
    let desired = match manifest::load_texts(texts, today, config) {
        Ok(desired) => desired,
        Err(diagnostics) => {
            cx.output.eprint_diagnostics(&diagnostics);
            return Ok(vec!["the exported manifests have errors".to_owned()]);
        }
    };
    let values = export.secrets.iter();
    let values = values.map(|(name, value)| (name.clone(), value.expose().to_owned()));
    let mut secrets = Secrets::new("", values);
    secrets.resolve(export.secrets.keys().cloned().map(Reference::Env));
    let settings = plan::PlanSettings {
        creatable_containers: CreatedContainers::default(),
        ..plan::PlanSettings::for_run(observer.caller().clone(), Arc::new(secrets), &desired)
    };
    let mut faults = Vec::new();
    for container in &desired.containers {
        let Some(live) = live_states.get_mut(&container.path) else { continue };
        let plan = apply::plan_with_extra_facts(observer, container, live, &settings).await?;
        let steps = plan.steps.iter().chain(&plan.watched).map(|step| &step.address);
        faults.extend(steps.map(|address| format!("a plan would change `{address}`")));
        let problems = plan.problems.iter();
        faults.extend(problems.map(|problem| format!("{}: {}", problem.address, problem.message)));
        let incomplete_parts = plan.incomplete.iter();
        faults.extend(incomplete_parts.map(|scope| format!("{}: {}", scope.address, scope.reason)));
    }
    Ok(faults)
}
