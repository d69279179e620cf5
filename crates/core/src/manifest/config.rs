//! The configuration of runs: `undrift.yaml`, next to the manifests.
//!
//! This file never sets the address of the service. A person who can edit the file must not be able
//! to send the token to another address.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    LoadEnvironment,
    faults::{FileFaults, file_diagnostic, placeholders, texts},
    lints::{self, Lint},
    read::files,
    schema,
    surroundings::Root,
};
use crate::{
    address::{Address, Glob, GlobIndex, Globs},
    catalogue,
    desired::Container,
    diagnostic::{Diagnostics, FileName},
    field::Tier,
    release::{REFERENCE, Release},
    text::did_you_mean,
    yaml::{Node, ParsedYaml},
};

/// The name of the configuration file.
pub const CONFIG_FILE: &str = "undrift.yaml";

/// A common wrong name of the configuration file.
pub(super) const MISNAMED_FILE: &str = "undrift.yml";

/// Configuration of undrift for these manifests.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The version of this format, always 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// The service of the manifests.
    #[serde(default)]
    pub service: ServiceConfig,
    /// Limits that stop a run before its first write.
    #[serde(default)]
    pub guards: GuardConfig,
    /// The groups and projects that these manifests may declare, so that several repositories can
    /// share one service. Declaring anything else is an error. Default: everything.
    #[schemars(with = "Option<Vec<Managed>>")]
    pub manages: Option<ManagedPaths>,
    /// Levels of warnings about manifests. The last matching entry applies. With a base, the
    /// stricter of two levels applies: the level of the branch and the level of the base.
    #[serde(default)]
    pub lints: Vec<Lint>,
    /// The number of concurrent requests.
    #[schemars(range(min = 1, max = 64))]
    pub concurrency: Option<u16>,
}

/// Groups and projects that these manifests may declare.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Managed {
    /// A glob for full paths: `*` stays within a path segment, `**` crosses segments.
    #[schemars(length(min = 1), example = &"acme/**")]
    pub path: String,
    /// Excluded paths.
    #[serde(default)]
    pub except: Vec<String>,
    /// The only sections that these manifests may declare in the matching groups and projects.
    /// Default: all sections.
    pub sections: Option<Vec<String>>,
}

impl Managed {
    /// True if these manifests may declare `section` in the matching groups and projects.
    pub(super) fn allows_section(&self, section: &str) -> bool {
        self.sections.as_ref().is_none_or(|sections| sections.iter().any(|name| name == section))
    }
}

/// All groups and projects that these manifests may declare, with compiled globs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Vec<Managed>")]
pub struct ManagedPaths {
    entries: Vec<Managed>,
    /// For each entry, the globs of its path and of its excluded paths. A broken glob matches
    /// nothing.
    globs: Vec<(Globs, Globs)>,
    path_index: GlobIndex,
}

impl From<Vec<Managed>> for ManagedPaths {
    fn from(entries: Vec<Managed>) -> Self {
        let globs = entries.iter().map(|managed| {
            let except_globs = managed.except.iter().filter_map(|glob| Glob::for_paths(glob).ok());
            (Glob::for_paths(&managed.path).into_iter().collect(), except_globs.collect())
        });
        let mut glob_index = GlobIndex::default();
        for (index, managed) in entries.iter().enumerate() {
            glob_index.insert(index, &managed.path);
        }
        Self { globs: globs.collect(), path_index: glob_index, entries }
    }
}

impl ManagedPaths {
    /// The reason why no entry of `manages` allows `path`, as a hint about the globs of the
    /// entries.
    pub(super) fn explain_exclusion(&self, path: &str) -> String {
        let lower_path = path.to_lowercase();
        let mut candidates = self.path_index.candidates(&lower_path).into_iter();
        if candidates.any(|index| self.globs[index].0.matches(&lower_path)) {
            return "`except` excludes it".to_owned();
        }
        let mut globs = self.entries.iter().map(|managed| &*managed.path);
        let inner_glob = globs.clone().find(|glob| {
            let glob = glob.to_lowercase();
            glob.trim_end_matches('*').strip_suffix('/') == Some(&lower_path)
        });
        let outer_glob = globs.find(|glob| {
            lower_path.strip_prefix(&glob.to_lowercase()).is_some_and(|tail| tail.starts_with('/'))
        });
        match (inner_glob, outer_glob) {
            (Some(glob), _) => {
                format!(
                    "`{glob}` matches only what is below this group; add `{{path: {path}}}` for the group itself"
                )
            }
            (None, Some(glob)) => {
                format!("`{glob}` matches only this group; `{glob}/**` matches everything below it")
            }
            (None, None) => {
                "`*` matches within one part of a path, `**` matches everything below".to_owned()
            }
        }
    }

    /// True if these manifests may declare the group or project at `path`.
    pub fn allows_path(&self, path: &str) -> bool {
        !self.matching_entries(path).is_empty()
    }

    /// True if these manifests may declare every section of the group or project at `path`.
    pub fn allows_all_sections(&self, path: &str) -> bool {
        self.matching_entries(path).iter().any(|managed| managed.sections.is_none())
    }

    /// True if these manifests may declare `section` of the group or project at `path`.
    pub fn allows_section(&self, path: &str, section: &str) -> bool {
        self.matching_entries(path).iter().any(|managed| managed.allows_section(section))
    }

    /// The entries of `manages` that match the group or project at `path`.
    pub(super) fn matching_entries(&self, path: &str) -> Vec<&Managed> {
        let path = path.to_lowercase();
        let mut candidates = self.path_index.candidates(&path);
        candidates.retain(|index| {
            let (path_globs, except_globs) = &self.globs[*index];
            path_globs.matches(&path) && !except_globs.matches(&path)
        });
        candidates.into_iter().map(|index| &self.entries[index]).collect()
    }
}

impl Config {
    /// The address of the first part of `container` that these manifests must not declare, with a
    /// message. `None` if these manifests may declare every part.
    pub fn find_unmanaged(&self, container: &Container) -> Option<(Address, String)> {
        let manages = self.manages.as_ref()?;
        let mut declared_paths = std::iter::once(&*container.path).chain(container.former_paths());
        if let Some(path) = declared_paths.find(|path| manages.matching_entries(path).is_empty()) {
            let message = format!("the base does not manage `{path}`");
            return Some((container.address(), message));
        }
        let matching_entries = manages.matching_entries(&container.path);
        let mut names = container.section_names();
        let name = names
            .find(|name| !matching_entries.iter().any(|managed| managed.allows_section(name)))?;
        let message = format!("the base does not manage `{name}` of `{}`", container.path);
        Some((container.address().with_section(name), message))
    }
}

/// The service of the manifests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceConfig {
    /// The address of the service. It is only compared: a run with another service is refused.
    #[schemars(regex(pattern = "^https?://[^/?#@]+(/[^?#@]*)?$"), example = &"https://gitlab.example.org")]
    pub url: Option<String>,
    /// The tier of the service. Fields that need a higher tier are errors.
    pub tier: Option<Tier>,
    /// The release of the service, as text: `'18.2'`. Fields that this release lacks are errors. A
    /// deprecated field causes a warning only if the release has its replacement. A run that needs
    /// the release requests it from the service.
    pub release: Option<Release>,
    /// The names of the hosts that projects are imported from.
    pub import_hosts: ImportHosts,
}

/// The names of two hosts in import requests. The reference of the service uses neutral words for
/// these hosts (reference 1, 1). Without a name, the neutral word is sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImportHosts {
    /// The name of `extgit`, the hosted Git service, in `/import/extgit` and `extgit_hostname`:
    /// `github`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"github")]
    pub extgit: Option<String>,
    /// The name of `extserver`, the self-hosted server, in `/import/extserver`, `extserver_url` and
    /// the like: `bitbucket_server`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_]*$"), example = &"bitbucket_server")]
    pub extserver: Option<String>,
}

impl ImportHosts {
    /// The neutral words that are configured, each with the name that the service uses.
    pub fn names(&self) -> Vec<(&'static str, String)> {
        let names = [("extgit", &self.extgit), ("extserver", &self.extserver)].into_iter();
        names.filter_map(|(neutral_word, name)| Some((neutral_word, name.clone()?))).collect()
    }
}

/// Limits that stop a run before its first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GuardConfig {
    /// The maximum number or share of entries that one run may remove.
    pub removals: ChangeLimit,
    /// The maximum number or share of groups and projects that one run may change because of rules
    /// that include undeclared groups and projects (`undeclared: include`). Default: a count of 50
    /// and a share of a tenth. Five groups and projects may always change.
    pub reach: ChangeLimit,
}

/// A limit for the changes of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeLimit {
    /// The maximum number.
    #[schemars(range(max = 1_000_000))]
    pub count: Option<u32>,
    /// The maximum share, from 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: Option<f64>,
}

/// Finds and reads `undrift.yaml` in `folder`, or in the nearest folder above it in the repository.
/// Also returns the folder of `undrift.yaml`. If there is no such file, returns `folder` and the
/// defaults.
pub fn find(
    folder: &Path,
    environment: &LoadEnvironment,
    diagnostics: &mut Diagnostics,
) -> (PathBuf, Config) {
    let root = Root::find(folder, environment);
    let config = load(&root, None, diagnostics);
    (root.folder, config)
}

/// Reads `undrift.yaml` of `root`. Returns the defaults if there is no such file. The file contains
/// the guards, so an unreadable file is an error. `manifest_paths` are the lower-case paths of all
/// manifests relative to the root; `None` if they are unknown.
pub(super) fn load(
    root: &Root,
    manifest_paths: Option<&[String]>,
    diagnostics: &mut Diagnostics,
) -> Config {
    let path = root.folder.join(CONFIG_FILE);
    let name = root.display_path(&path);
    match files::special_file_type(&path) {
        Ok(Some(what)) => {
            diagnostics.push(file_diagnostic(texts::IRREGULAR_CONFIG, name, placeholders![what]));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if root.folder.join(MISNAMED_FILE).exists() {
                let name = name.replace(CONFIG_FILE, MISNAMED_FILE);
                diagnostics.push(file_diagnostic(texts::MISNAMED_CONFIG, name, &[]));
            }
        }
        // Other errors are reported when the file is read.
        Ok(None) | Err(_) => return read(&path, &name, manifest_paths, diagnostics),
    }
    Config::default()
}

/// Reads the configuration at `path`. `name` is the name of the file in messages. `manifest_paths`
/// are the lower-case paths of all manifests relative to the root; `None` if they are unknown.
pub fn read(
    path: &Path,
    name: &str,
    manifest_paths: Option<&[String]>,
    diagnostics: &mut Diagnostics,
) -> Config {
    let name = FileName::from(name);
    let Ok(text) = files::read(path, &name).map_err(|fault| diagnostics.push(*fault)) else {
        return Config::default();
    };
    let (config, faults) = FileFaults::collect_from_file(
        name,
        &text,
        &schema::CONFIG_CHECKER.schema,
        |parsed, findings| read_content(parsed, manifest_paths, findings),
    );
    diagnostics.extend(faults);
    config.unwrap_or_default()
}

/// Reads the configuration. Reports violations of its schema, and faults that the schema cannot
/// express.
fn read_content(
    parsed: &ParsedYaml,
    manifest_paths: Option<&[String]>,
    findings: &mut FileFaults,
) -> Option<Config> {
    let [document] = &parsed.documents[..] else {
        let second_start = parsed.documents.get(1).map_or(0, |second| second.span.start);
        let has_manifest = parsed.documents.iter().any(|document| document.get("kind").is_some());
        if !parsed.is_broken {
            let texts =
                if has_manifest { texts::MANIFEST_IN_CONFIG } else { texts::SEVERAL_CONFIGS };
            findings.report(texts, second_start..second_start, &[]);
        }
        return None;
    };
    let refused_pointers = findings.add_schema_faults(document, &schema::CONFIG_CHECKER);
    let config = findings.deserialize::<Config>(document, refused_pointers.is_empty());
    for managed in document["manages"].items() {
        check_managed(managed, findings);
    }
    let release = config.as_ref().and_then(|config| config.service.release);
    if release.is_some_and(|release| release < REFERENCE) {
        let span = document["service"]["release"].span.clone();
        findings.report(texts::OLD_RELEASE, span, placeholders![first = REFERENCE]);
    }
    for lint in document["lints"].items() {
        lints::check(lint, manifest_paths, findings);
    }
    config
}

/// True if `glob` looks like a regular expression.
pub(super) fn looks_like_regex(glob: &str) -> bool {
    glob.contains(".*") || glob.starts_with('^') || glob.ends_with('$')
}

/// Checks the globs and sections of one entry of `manages`.
fn check_managed(managed: &Node, findings: &mut FileFaults) {
    for node in [&managed["path"]].into_iter().chain(managed["except"].items()) {
        let glob = findings.check_glob(node, "paths", "acme/**");
        if glob.is_some_and(|glob| looks_like_regex(glob.pattern())) {
            findings.report(texts::EXPRESSION, node.span.clone(), &[]);
        }
    }
    let sections: Vec<_> = catalogue::all_sections().map(|kind| kind.section).collect();
    for node in managed["sections"].items() {
        if let Some(name) = node.text().filter(|name| !sections.contains(name)) {
            let fault = findings.report(texts::NO_SUCH_SECTION, node.span.clone(), &[]);
            fault.set_optional_help(did_you_mean(name, sections.iter().copied()));
        }
    }
}
