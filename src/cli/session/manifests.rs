//! The manifests of a session: loaded, told of what is wrong with them, and looked through for
//! secrets.

use std::path::PathBuf;

use crate::{
    cli::{Context, exit::Failure, reports::Reports},
    desired::{Container, Desired},
    diagnostic::Diagnostics,
    manifest::{Config, Includes, Loaded, Warnings},
    secret::Secrets,
    value::Value,
};

/// Manifests without a fault.
pub(in crate::cli) struct Manifests {
    /// What they declare.
    pub(in crate::cli) desired: Desired,
    /// The rules that bring in more, if there are any.
    pub(in crate::cli) includes: Option<Includes>,
    /// Their folder.
    pub(in crate::cli) root: PathBuf,
    /// What `undrift.yaml` says.
    pub(in crate::cli) config: Config,
    /// How loud warnings are.
    pub(in crate::cli) warnings: Warnings,
}

/// What was `loaded`, after saying what is wrong with it.
///
/// # Errors
/// If something is wrong with it.
pub(in crate::cli) fn usable(
    loaded: Loaded,
    reports: &mut Reports,
    cx: &Context,
) -> Result<Manifests, Failure> {
    match (loaded.desired, tell(loaded.diagnostics, reports, cx)) {
        (Some(desired), _) => {
            let Loaded { includes, root, config, warnings, .. } = loaded;
            Ok(Manifests { desired, includes, root, config, warnings })
        }
        (None, unusable) => Err(unusable),
    }
}

/// Says what is wrong with manifests; if that is an error, the run ends with it.
pub(super) fn tell(diagnostics: Diagnostics, reports: &mut Reports, cx: &Context) -> Failure {
    if !diagnostics.is_empty() {
        cx.output.tell(&diagnostics.render(cx.output.stderr.into()));
    }
    let summary = diagnostics.summary().unwrap_or_default();
    reports.keep(diagnostics);
    Failure::usage(format!("cannot use the manifests: {summary}"))
}

/// `secrets` with what those of `desired`, and of what rules may bring in besides, stand for.
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
