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

use super::{
    Surroundings,
    faults::Findings,
    lints::{self, Lint},
    mask,
    read::files,
    schema,
    surroundings::Root,
};
use crate::{
    address::{Address, Ends, Glob, Globs},
    desired::Container,
    diagnostic::{Diagnostic, Diagnostics, FileName, Place, Source},
    field::Tier,
    kinds,
    release::Release,
    text::nearest,
    yaml::{self, Node},
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
    /// The groups and projects that these manifests are about, so that several repositories can share
    /// one service: to declare anything else is an error. Without it they may be about everything.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Managed>>")]
    pub manages: Option<Manages>,
    /// How loud warnings about manifests are. The last one about a code and a file counts; with a base, the
    /// louder of both sides.
    #[serde(default)]
    pub lints: Vec<Lint>,
    /// How many requests are in flight at once.
    #[serde(default)]
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u16>,
}

/// Groups and projects that these manifests are about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Managed {
    /// A glob over full paths: `*` matches within a part of a path, `**` across.
    #[schemars(length(min = 1), example = &"acme/**")]
    pub path: String,
    /// Paths that are not meant.
    #[serde(default)]
    pub except: Vec<String>,
    /// The only sections that may be declared there; all of them if it is left out.
    #[serde(default)]
    pub sections: Option<Vec<String>>,
}

impl Managed {
    /// Whether `section` may be declared there.
    pub(super) fn has(&self, section: &str) -> bool {
        self.sections.as_ref().is_none_or(|sections| sections.iter().any(|own| own == section))
    }
}

/// All groups and projects that these manifests are about, with the globs made ready once.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<Managed>")]
pub struct Manages {
    all: Vec<Managed>,
    /// The paths and the exceptions of each. A glob that is broken matches nothing.
    globs: Vec<(Globs, Globs)>,
    by_path: Ends,
}

impl From<Vec<Managed>> for Manages {
    fn from(all: Vec<Managed>) -> Self {
        let glob = |written: &String| Glob::over_paths(written).ok();
        let globs = |managed: &Managed| {
            let except = managed.except.iter().filter_map(glob).collect();
            (glob(&managed.path).into_iter().collect(), except)
        };
        let mut by_path = Ends::default();
        all.iter().enumerate().for_each(|(at, managed)| by_path.insert(at, &managed.path));
        Self { globs: all.iter().map(globs).collect(), by_path, all }
    }
}

impl PartialEq for Manages {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Manages {
    /// What holds the group or project at `path`.
    pub(super) fn holding(&self, path: &str) -> Vec<&Managed> {
        let path = path.to_lowercase();
        let holds = |at: &usize| {
            let (paths, except) = &self.globs[*at];
            paths.matches(&path) && !except.matches(&path)
        };
        self.by_path.of(&path).into_iter().filter(holds).map(|at| &self.all[at]).collect()
    }
}

impl Config {
    /// What of `container` is outside of what these manifests manage, and a sentence that says so.
    pub fn outside(&self, container: &Container) -> Option<(Address, String)> {
        let manages = self.manages.as_ref()?;
        let mut paths = std::iter::once(&*container.path).chain(container.former());
        if let Some(path) = paths.find(|path| manages.holding(path).is_empty()) {
            let message = format!("`{path}` is outside of what the manifests manage at the base");
            return Some((container.address(), message));
        }
        let holding = manages.holding(&container.path);
        let mut names = container.section_names();
        let name = names.find(|name| !holding.iter().any(|managed| managed.has(name)))?;
        let message = format!("`{name}` of `{}` is not managed at the base", container.path);
        Some((container.address().section(name), message))
    }
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

/// What the service calls the hosts for which the reference has neutral words (reference 1, 1), in
/// every request for an import. Without a name the neutral word itself is sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImportHosts {
    /// Its word for `extgit`, the hosted Git service, in `/import/extgit` and `extgit_hostname`:
    /// `github`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"github")]
    pub extgit: Option<String>,
    /// Its word for `extserver`, the self-hosted server, in `/import/extserver`, `extserver_url` and
    /// the like: `bitbucket_server`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"bitbucket_server")]
    pub extserver: Option<String>,
}

impl ImportHosts {
    /// The neutral words with what the service calls them.
    pub fn names(&self) -> Vec<(&'static str, String)> {
        let names = [("extgit", &self.extgit), ("extserver", &self.extserver)];
        names.into_iter().filter_map(|(neutral, name)| Some((neutral, name.clone()?))).collect()
    }
}

/// Limits that stop a run before its first write.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Guards {
    /// How much may be removed at once.
    pub removals: Removals,
    /// How much may change at once of what only a rule brings in (`undeclared: include`).
    pub reach: Reach,
}

/// How much may change at once of what only a rule brings in; what is left out has its default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reach {
    /// At most so many groups and projects (default: 50).
    pub count: Option<u32>,
    /// At most this share of them, from 0 to 1 (default: 0.1); 5 of them always may.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: Option<f64>,
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
        for managed in document.get("manages").map_or(&[][..], |(_, list)| list.items()) {
            check_managed(managed, &mut findings);
        }
        for lint in document.get("lints").map_or(&[][..], |(_, list)| list.items()) {
            lints::check(lint, &mut findings);
        }
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

/// Says what is wrong with the globs and the sections of one thing that is managed.
fn check_managed(managed: &Node, findings: &mut Findings) {
    let under = |key| managed.get(key).map(|(_, node)| node);
    let except = under("except").map_or(&[][..], Node::items);
    for node in under("path").into_iter().chain(except) {
        if let Some(Err(why)) = node.text().map(Glob::over_paths) {
            let message = format!("this is no glob over paths: {why}");
            let wrong = findings.error("glob", message, node.span.clone());
            wrong.help("write a path in which `*` and `**` stand for something, such as `acme/**`");
        }
    }
    for node in under("sections").map_or(&[][..], Node::items) {
        let is = |name: &str| kinds::everywhere().any(|section| section.section == name);
        if node.text().is_some_and(|name| !is(name)) {
            let wrong = findings.error("choice", "there is no such section", node.span.clone());
            let names = kinds::everywhere().map(|section| section.section);
            let near = node.text().and_then(|name| nearest(name, names));
            wrong.help_if(near.map(|near| format!("did you mean `{near}`?")));
        }
    }
}
