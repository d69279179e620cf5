//! The manifests of a session: loading them, reporting their faults, and finding their secrets.

use std::path::PathBuf;

use crate::{
    cli::{Context, exit::Failure, reports::Reports},
    desired::{Container, Desired},
    diagnostic::Diagnostics,
    manifest::{Config, Includes, Loaded},
    secret::Secrets,
    value::Value,
};

/// Manifests without errors.
pub(in crate::cli) struct Manifests {
    /// Their declarations.
    pub(in crate::cli) desired: Desired,
    /// Their rules with `undeclared: include`, if there are any.
    pub(in crate::cli) includes: Option<Includes>,
    /// Their folder.
    pub(in crate::cli) root: PathBuf,
    /// Their `undrift.yaml`.
    pub(in crate::cli) config: Config,
}

/// The manifests in `loaded`, after reporting its diagnostics.
///
/// # Errors
/// If it has errors.
pub(in crate::cli) fn usable(
    loaded: Loaded,
    reports: &mut Reports,
    cx: &Context,
) -> Result<Manifests, Failure> {
    match (loaded.desired, tell(loaded.diagnostics, reports, cx)) {
        (Some(desired), _) => {
            let Loaded { includes, root, config, .. } = loaded;
            Ok(Manifests { desired, includes, root, config })
        }
        (None, unusable) => Err(unusable),
    }
}

/// Reports the faults of manifests, and returns the failure of the run.
pub(super) fn tell(diagnostics: Diagnostics, reports: &mut Reports, cx: &Context) -> Failure {
    cx.output.tell_faults(&diagnostics);
    let summary = diagnostics.summary().unwrap_or_default();
    reports.keep(diagnostics);
    Failure::usage(format!("cannot use the manifests: {summary}"))
}

/// Adds to `secrets` those that `desired` refers to, and those of the rules.
pub(super) fn secrets_of(
    desired: &Desired,
    includes: Option<&Includes>,
    mut secrets: Secrets,
) -> Secrets {
    let declared = desired.containers.iter().flat_map(Container::named);
    let named = declared.map(|(.., value)| value).chain(includes.iter().flat_map(|i| i.named()));
    for value in named {
        match value {
            Value::Secret(reference) => secrets.resolve([reference]),
            Value::File(path) => secrets.look_through([path]),
            Value::Plain(_) => {}
        }
    }
    secrets
}
