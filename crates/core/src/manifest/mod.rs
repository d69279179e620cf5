//! Loads manifests: reads, merges and checks them, and makes [`Desired`].
//!
//! [`load`] finds the root, which is the folder of `undrift.yaml`. It processes all manifests below
//! the root in three parts. `read` parses each file into documents with positions. `layer` merges
//! the documents into groups and projects. `check` finds faults that span documents, and makes
//! [`Desired`]. The folder or file that a command names only selects the groups and projects of the
//! run.
//!
//! Every fault of every file is reported in one run, with its file and line. `mask` hides the
//! secrets in quoted lines. The order of files and documents never matters.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    path::{Path, PathBuf},
};

mod check;
pub mod config;
pub mod descriptions;
mod effective;
mod faults;
mod include;
mod layer;
mod lints;
mod locate;
mod mask;
mod parallel;
mod read;
mod report;
pub mod schema;
mod surroundings;

pub use config::{Config, ManagedPaths};
pub use include::IncludeRules;
pub use layer::{ChainLink, LayerEffect, LayerValue, Trace, TracedLayer, TracedValue};
pub use lints::{Lint, Warnings};
pub use read::files::{
    MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES, RESERVED_FILES, containing_folder,
    is_manifest_name, suggest_path,
};
pub use surroundings::LoadEnvironment;

use check::CheckContext;
use faults::{FileFaults, LocatedFault, texts};
use jiff::civil::Date;
use mask::TextState;
use read::{ManifestFile, files};
use schema::Checker;
use surroundings::Root;

use crate::{
    address::Glob,
    desired::Desired,
    diagnostic::{Diagnostics, FileName, FilePaths, Severity, SourceLocation, SourceText},
    field::{Field, Scope},
    secret::{AllowedVariables, Secrets},
    value::Json,
    yaml::{self, Node},
};

/// The result of loading a folder or file.
#[derive(Debug)]
pub struct LoadedManifests {
    /// The folder of `undrift.yaml`, or the named folder if there is no `undrift.yaml`. Paths of
    /// secret files are relative to this folder.
    pub root: PathBuf,
    /// The name of the root in messages; `None` if the root is not above the named path.
    root_name: Option<String>,
    /// The path of each manifest, by the name of the file in messages.
    pub paths: BTreeMap<FileName, PathBuf>,
    /// The number of manifests that the command names, or that are below the named folder.
    pub named_file_count: usize,
    /// The declarations of the named manifests; `None` if any manifest has an error.
    pub desired: Option<Desired>,
    /// The rules that include undeclared groups and projects. `None` if there is no such rule, or
    /// if any manifest has an error.
    pub include_rules: Option<IncludeRules>,
    /// The content of `undrift.yaml`, or the defaults if there is no such file.
    pub config: Config,
    /// All errors, and the warnings that are shown.
    pub diagnostics: Diagnostics,
    /// All warnings, each with its level.
    pub warnings: Warnings,
    /// The requested traces of merged layers.
    pub traces: Vec<Trace>,
}

impl LoadedManifests {
    /// Keeps errors, warnings without a place, and warnings at places that `is_wanted` accepts.
    pub fn retain_warnings(&mut self, is_wanted: impl Fn(&SourceLocation) -> bool) {
        self.diagnostics.retain(|diagnostic| {
            diagnostic.severity == Severity::Error
                || diagnostic.location.as_ref().is_none_or(&is_wanted)
        });
        self.warnings.retain(|diagnostic| diagnostic.location.as_ref().is_none_or(&is_wanted));
    }

    /// Also applies the `lints` of a base. Each warning gets the stricter of two levels: the level
    /// of the branch and the level of the base. Call this method only if the manifests have no
    /// error.
    pub fn apply_base_lints(&mut self, lints: &[Lint]) {
        self.diagnostics = std::mem::take(&mut self.warnings).apply_base_levels(lints);
        self.desired.take_if(|_| self.diagnostics.has_errors());
    }

    /// The path of each manifest relative to the root, by the name of the file in messages.
    pub fn paths_below_root(&self) -> FilePaths {
        let paths = self.paths.iter().map(|(name, path)| {
            (name.clone(), path.strip_prefix(&self.root).unwrap_or(path).into())
        });
        paths.collect()
    }
}

/// Loads `undrift.yaml` and all manifests below the root of the folder or file `named_path`.
pub fn load(named_path: &Path, environment: &LoadEnvironment) -> LoadedManifests {
    load_with_options(named_path, environment, &LoadOptions::default())
}

/// Options for loading.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions<'a> {
    /// Texts by file name. Each text replaces the content of the file with that name. If there is
    /// no such file, the text is a new file.
    pub replaced_texts: Option<&'a BTreeMap<FileName, String>>,
    /// The globs of the paths to trace: each group and project with a matching path gets a
    /// [`Trace`].
    pub traced_globs: &'a [Glob],
    /// True if the files that manifests name may be missing on this machine. These files are then
    /// not checked.
    pub allows_missing_files: bool,
}

/// Like [`load`], but with `options`.
pub fn load_with_options(
    named_path: &Path,
    environment: &LoadEnvironment,
    options: &LoadOptions<'_>,
) -> LoadedManifests {
    let mut diagnostics = Diagnostics::default();
    let folder = files::containing_folder(named_path);
    let root = Root::find(folder, environment);
    let mut manifest_files =
        files::find_manifests(named_path, &root, environment, &mut diagnostics);
    if let Some(replacements) = options.replaced_texts {
        manifest_files = files::replace_texts(manifest_files, replacements);
    }
    let lowercase_paths = manifest_files.iter().map(|file| {
        let path = file.path.strip_prefix(&root.folder).unwrap_or(&file.path);
        path.to_string_lossy().to_lowercase()
    });
    let manifest_paths = lowercase_paths.collect::<Vec<_>>();
    let config = config::load(&root, Some(&manifest_paths), &mut diagnostics);
    let context = CheckContext {
        config: config.clone(),
        today: environment.today,
        file_reader: (!options.allows_missing_files).then(|| Secrets::new(&root.folder, [])),
        variables: environment.variables.clone(),
    };
    let is_root_above = root.is_configured && root.folder != named_path;
    let root_name = is_root_above.then(|| root.display_path(&root.folder));
    let paths: BTreeMap<_, _> =
        manifest_files.iter().map(|file| (file.name.clone(), file.path.clone())).collect();
    let named_file_count = manifest_files.iter().filter(|file| file.is_named_by_command).count();
    let only_file = if let [only] = &*manifest_files { Some(only.name.clone()) } else { None };
    let (desired, includes, traces) =
        read_layer_check(manifest_files, context, options.traced_globs, &mut diagnostics);
    let warnings = lints::apply(&config.lints, &mut diagnostics, || {
        paths.keys().cloned().zip(manifest_paths).collect()
    });
    if desired.containers.is_empty() && includes.is_none() && !diagnostics.has_errors() {
        let location = SourceLocation::whole_file(
            only_file.unwrap_or_else(|| environment.display_path(named_path).into()),
        );
        report_empty(warnings.first_location("idle-rule"), location, &mut diagnostics);
    }
    LoadedManifests {
        root_name,
        root: root.folder,
        named_file_count,
        paths,
        include_rules: includes.filter(|_| !diagnostics.has_errors()),
        desired: (!diagnostics.has_errors()).then_some(desired),
        config,
        diagnostics,
        warnings,
        traces,
    }
}

/// Reports the error that no manifest declares anything. Manifests without declarations are
/// probably a mistake, and the result "nothing to do" would hide the mistake.
fn report_empty(
    idle_rule: Option<SourceLocation>,
    searched_location: SourceLocation,
    diagnostics: &mut Diagnostics,
) {
    let (location, texts) = match idle_rule {
        Some(rule) => (rule, texts::ONLY_RULES),
        None => (searched_location, texts::NO_DECLARATION),
    };
    // Nothing is declared, so no rule can match. Drop the warnings about rules that match nothing,
    // except about globs that look like regular expressions.
    let regex_help = Some(texts::IDLE_EXPRESSION[3]);
    diagnostics.retain(|fault| fault.code != "idle-rule" || fault.help.as_deref() == regex_help);
    diagnostics.push(LocatedFault::new(texts, location, &[]).into_diagnostic(Clone::clone));
}

/// Loads the manifests in `texts`, without reading files, and returns their declarations. `config`
/// describes the service.
///
/// # Errors
/// All faults of the manifests, if one of the faults is an error.
pub fn load_texts(
    texts: impl IntoIterator<Item = (FileName, String)>,
    today: Date,
    config: &Config,
) -> Result<Desired, Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    let files = texts.into_iter().map(|(name, text)| ManifestFile::from_text(name, text)).collect();
    let config = Config { manages: None, ..config.clone() };
    let allowed = AllowedVariables::default();
    let context = CheckContext { config, today, file_reader: None, variables: allowed };
    let (desired, ..) = read_layer_check(files, context, &[], &mut diagnostics);
    if diagnostics.has_errors() { Err(diagnostics) } else { Ok(desired) }
}

/// True if a new group or project can have this `path`.
pub fn is_valid_new_path(scope: Scope, path: &str) -> bool {
    check::path::check(scope, path, true).is_ok()
}

/// Hides the secrets in the text of a manifest that was loaded without a fault. Scalars in
/// `visible_texts` stay visible.
pub fn hide_secrets(text: &str, visible_texts: &BTreeSet<String>) -> String {
    let parsed = yaml::parse(text);
    let mut source = SourceText::new("", text);
    read::hide_manifest_secrets(&mut source, &parsed, TextState::Faultless);
    source.visible_text(|hidden_text| {
        // The value of a block text ends with a line feed, which `hidden_text` does not contain.
        let hidden_text = format!("{hidden_text}\n");
        let documents = yaml::parse(&hidden_text).documents;
        documents.iter().filter_map(Node::text).any(|text| visible_texts.contains(text))
    })
}

/// The faults of a sandbox seed. `text` must contain one document, which must fit `schema`. If the
/// document has no other fault, `find_refusal` may return the message and the byte range of one
/// more fault. Quoted lines hide the value of the property at `secret_pointer`, a JSON pointer into
/// the schema.
pub fn find_seed_faults(
    text: &str,
    name: FileName,
    schema: Json,
    secret_pointer: &str,
    find_refusal: impl FnOnce(&Node) -> Option<(String, Option<String>, Range<usize>)>,
) -> Diagnostics {
    let mut marked_schema = schema.clone();
    if let Some(secret_schema) = marked_schema.pointer_mut(secret_pointer) {
        Field::attach_sensitive(secret_schema);
    }
    let ((), faults) =
        FileFaults::collect_from_file(name, text, &marked_schema, |parsed, findings| {
            if !findings.is_empty() {
                return;
            }
            if let Some((kind_key, _)) =
                parsed.documents.iter().find_map(|document| document.get("kind"))
            {
                findings.report(texts::MANIFEST_IN_SEED, kind_key.span.clone(), &[]);
            } else if let [document] = &parsed.documents[..] {
                drop(findings.add_schema_faults(document, &Checker::new(schema)));
                // The sandbox ignores unknown settings, so it can also refuse other fields.
                let is_readable = findings.items.iter().all(|fault| fault.code == "unknown-field");
                if let Some((message, help, range)) =
                    is_readable.then(|| find_refusal(document)).flatten()
                {
                    findings
                        .push(LocatedFault::error("value", message, range))
                        .set_optional_help(help);
                }
            } else {
                let second_start = parsed.documents.get(1).map_or(0, |second| second.span.start);
                findings.report(texts::SEVERAL_SEEDS, second_start..second_start, &[]);
            }
        });
    faults.into_iter().collect()
}

/// Reads, merges and checks `files`, and traces the containers that `traced_globs` match. Returns
/// the declarations, the rules that include undeclared containers, and the traces.
fn read_layer_check(
    files: Vec<ManifestFile>,
    context: CheckContext,
    traced_globs: &[Glob],
    diagnostics: &mut Diagnostics,
) -> (Desired, Option<IncludeRules>, Vec<Trace>) {
    let (mut documents, mut counts) = (Vec::new(), locate::FaultCounts::new());
    let (mut may_miss_rules, mut described_sections) = (false, Vec::new());
    let contents = parallel::map_parallel(files.iter().collect(), read::read_file);
    for (file, content) in files.iter().zip(contents) {
        if !content.diagnostics.is_empty() {
            counts.insert(file.name.clone(), (content.diagnostics.len(), content.hidden_faults));
        }
        may_miss_rules |= content.may_miss_rules;
        described_sections.extend(content.described_sections);
        diagnostics.extend(content.diagnostics);
        documents.extend(content.documents);
    }
    // A description among the manifests is not in use, and is reported once. Do not report each key
    // of its section too.
    let unknown_keys: BTreeSet<_> =
        described_sections.iter().map(|section| format!("unknown key `{section}`")).collect();
    diagnostics.retain(|fault| !unknown_keys.contains(&fault.message));
    let mut merge_result = layer::merge_documents(documents, traced_globs);
    let rules = std::mem::take(&mut merge_result.rules);
    let mut traces = std::mem::take(&mut merge_result.traces);
    traces.retain(|trace| trace.declaration.is_selected_by_command);
    let containers = merge_result.containers.iter();
    let paths = containers.map(|container| container.path.value.to_lowercase()).collect();
    let (desired, mut faults) = check::check_declarations(merge_result, &rules, &context);
    if may_miss_rules {
        faults.drop_follow_up_faults();
    }
    diagnostics.extend(locate::locate_faults(faults, counts, &files));
    if diagnostics.has_errors() {
        // A rule that seems idle may match a document that has an error.
        diagnostics.retain(|fault| fault.code != "idle-rule");
    }
    match IncludeRules::new(rules, context, files, paths) {
        // Keep acknowledgements that match no declared object: a rule may include the object later.
        Some(includes) => (desired, Some(includes), traces),
        None => (desired.without_idle_acknowledgements(), None, traces),
    }
}

#[cfg(test)]
mod tests;
