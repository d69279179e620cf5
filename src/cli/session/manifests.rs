//! The manifests of a session: loading them, reporting their faults, and finding their secrets.

use std::path::PathBuf;

use crate::{
    cli::{Context, Failure},
    desired::{Container, Desired},
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
pub(in crate::cli) fn usable(loaded: Loaded, cx: &Context) -> Result<Manifests, Failure> {
    let Loaded { includes, root, config, .. } = loaded;
    let Some(desired) = loaded.desired else {
        return Err(cx.unusable("the manifests", loaded.diagnostics));
    };
    cx.output.tell_faults(&loaded.diagnostics);
    cx.reports.keep(loaded.diagnostics);
    Ok(Manifests { desired, includes, root, config })
}

/// Adds to `secrets` those that `manifests` refer to, also in rules.
pub(super) fn secrets_of(manifests: &Manifests, mut secrets: Secrets) -> Secrets {
    let declared = manifests.desired.containers.iter().flat_map(Container::named);
    let of_rules = manifests.includes.iter().flat_map(Includes::named);
    let named = declared.map(|(.., value)| value).chain(of_rules);
    for value in named {
        match value {
            Value::Secret(reference) => secrets.resolve([reference]),
            Value::File(path) => secrets.look_through([path]),
            Value::Plain(_) => {}
        }
    }
    secrets
}
