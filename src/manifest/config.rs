//! `undrift.yaml`: how to run, beside the manifests that say what to declare.
//!
//! It never supplies the address of the service: whoever edits a manifest must not be able to send
//! the token elsewhere.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Surroundings, faults::Findings, mask, read::files, schema, surroundings::Root};
use crate::{
    diagnostic::{Diagnostic, Diagnostics, FileName, Place, Source},
    field::Tier,
    release::Release,
    yaml,
};

/// The name of the file.
pub const FILE: &str = "undrift.yaml";

/// A name that is easily written instead.
pub(super) const MISNAMED: &str = "undrift.yml";

/// How to run.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The version of this format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// The service that the manifests are for.
    #[serde(default)]
    pub service: Service,
    /// Limits that stop a run before its first write.
    #[serde(default)]
    pub guards: Guards,
    /// How many requests are in flight at once.
    #[serde(default)]
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u16>,
}

/// The service that the manifests are for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Service {
    /// Its address. It only confirms: a run against another one is refused.
    #[schemars(regex(pattern = "^https?://[^/?#@]+(/[^?#@]*)?$"), example = &"https://gitlab.example.org")]
    pub url: Option<String>,
    /// Its tier; fields that need a higher one are errors.
    pub tier: Option<Tier>,
    /// Its release, as text: `'18.2'`. Fields that it does not have are errors, and old spellings
    /// that it does not replace yet are no warnings. A run that needs to know asks the service.
    pub release: Option<Release>,
    /// What it calls the hosts that projects are imported from.
    pub import_hosts: ImportHosts,
}

/// What the service calls the hosts for which its documentation has neutral words (reference 1, 1),
/// for `undrift call`. Without a name the word itself is sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImportHosts {
    /// What stands for `extgit`, the hosted Git service, in `/import/extgit` and `extgit_hostname`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"githost")]
    pub extgit: Option<String>,
    /// What stands for `extserver`, the self-hosted server, in `/import/extserver`, `extserver_url`
    /// and the like.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"git_server")]
    pub extserver: Option<String>,
}

/// Limits that stop a run before its first write.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guards {
    /// How much may be removed at once.
    pub removals: Removals,
}

/// How much may be removed at once; what is left out has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Removals {
    /// At most so many objects.
    pub count: Option<u32>,
    /// At most this share of what is there, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: Option<f64>,
}

/// Reads the file that counts in `folder`: its own, or the nearest one upwards in the repository.
/// With it comes the folder that it is in, or `folder` if there is none.
pub fn find(
    folder: &Path,
    around: &Surroundings,
    diagnostics: &mut Diagnostics,
) -> (PathBuf, Config) {
    let root = Root::of(folder, around);
    let config = load(&root, diagnostics);
    (root.folder, config)
}

/// Reads the file of `root`, if there is one. It holds the guards, so what cannot be read is not
/// passed over.
pub(super) fn load(root: &Root, diagnostics: &mut Diagnostics) -> Config {
    let path = root.folder.join(FILE);
    let name = root.name(&path);
    match files::irregular(&path) {
        Ok(None) => read(&path, &name, diagnostics),
        Ok(Some(what)) => {
            let message = format!("`{FILE}` must be a regular file, not {what}");
            diagnostics.push(
                Diagnostic::error("unreadable", message)
                    .at(Place::file(name))
                    .help("put the file itself there, or take it away"),
            );
            Config::default()
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if root.folder.join(MISNAMED).exists() {
                let name = name.replace(FILE, MISNAMED);
                let misnamed = Diagnostic::error(
                    "unreadable",
                    format!("`{MISNAMED}` must be called `{FILE}`"),
                )
                .at(Place::file(name));
                diagnostics.push(
                    misnamed.help("rename the file; under this name its guards do not count"),
                );
            }
            Config::default()
        }
        // What stands in the way is said by who reads it, or by who reads the folder.
        Err(_) => read(&path, &name, diagnostics),
    }
}

/// Reads the file at `path`, which messages call `name`.
pub fn read(path: &Path, name: &str, diagnostics: &mut Diagnostics) -> Config {
    let name = FileName::from(name);
    let text = match files::read(path, &name) {
        Ok(text) => text,
        Err(fault) => {
            diagnostics.push(*fault);
            return Config::default();
        }
    };
    let parsed = yaml::parse(&text);
    let mut source = Source::new(name, &text);
    let mut findings = Findings::default();
    findings.add_yaml(&parsed);
    let mut config = None;
    if let [document] = &parsed.documents[..] {
        let json = document.to_json();
        findings.add_schema(document, &json, &schema::CONFIG);
        config = Config::deserialize(&json).ok();
    } else if !parsed.is_broken {
        findings
            .error("document", "the file must hold one document", 0..0)
            .help("start with `version: 1`");
    }
    if !findings.is_empty() {
        let schema = &schema::CONFIG.schema;
        mask::hide(&mut source, &parsed, |_| schema, &[schema]);
    }
    let (found, more) = findings.place(&source);
    diagnostics.extend(found);
    diagnostics.extend(more.diagnostic(source.name));
    config.unwrap_or_default()
}
