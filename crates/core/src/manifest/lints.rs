//! Levels of warnings about manifests: `lints` of `undrift.yaml`.
//!
//! The level of an error cannot be changed. With a base, the stricter of two levels applies: the
//! level of the branch and the level of the base. A branch therefore cannot hide its own warnings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    config::CONFIG_FILE,
    faults::{FileFaults, placeholders, texts},
};
use crate::{
    address::Glob,
    diagnostic::{Diagnostic, Diagnostics, FileName, Severity, SourceLocation, codes},
    text::likely_candidates,
    yaml::Node,
};

/// The level of warnings with one code.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lint {
    /// The code, as in the brackets of a warning.
    #[schemars(example = &"literal-secret")]
    pub code: String,
    /// A glob for the paths of manifests, relative to the folder of this file. Default: all
    /// manifests.
    #[serde(default, rename = "in")]
    #[schemars(length(min = 1), example = &"legacy/**")]
    pub files: Option<String>,
    /// The level.
    pub level: LintLevel,
}

/// The level of a warning, from the least strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LintLevel {
    /// The warning is not shown.
    Allow,
    /// The warning is shown.
    Warn,
    /// The warning is an error.
    Deny,
}

/// The codes of warnings that cannot be hidden. If `previously` were hidden, nobody would notice
/// that undrift mistakes one container for another.
const FIXED_WARNING_CODES: [&str; 2] = ["previously", "too-many-faults"];

/// The codes of warnings whose level can be changed. All other codes, except
/// [`FIXED_WARNING_CODES`], are errors.
const ADJUSTABLE_CODES: &str = "acknowledgement adds-nothing ascii date deprecated duplicate-entry \
    exclusive expression idle-rule inherited-access literal-secret low-share missing-file \
    nearly-the-same no-effect null reference template unknown-entry unlisted";

/// True if the level of warnings with this code can be changed.
fn is_adjustable(code: &str) -> bool {
    ADJUSTABLE_CODES.split(' ').any(|adjustable| adjustable == code)
}

/// The warnings of manifests before levels are applied, each with the path of its file and its
/// level.
#[derive(Debug, Default)]
pub struct Warnings(Vec<(Diagnostic, String, LintLevel)>);

/// Applies `lints` to the warnings of `diagnostics`. `paths` returns the lower-case paths of the
/// files, relative to the root.
pub(super) fn apply(
    lints: &[Lint],
    diagnostics: &mut Diagnostics,
    paths: impl FnOnce() -> BTreeMap<FileName, String>,
) -> Warnings {
    if diagnostics.count_severity(Severity::Warning) == 0 {
        return Warnings::default();
    }
    let paths = paths();
    let mut warnings = Warnings::default();
    let originals = std::mem::take(diagnostics).into_iter();
    let globs = compile_globs(lints);
    diagnostics.extend(originals.filter_map(|diagnostic| {
        if diagnostic.severity == Severity::Error {
            return Some(diagnostic);
        }
        let file = diagnostic.location.as_ref().and_then(|location| paths.get(&location.file));
        let file = file.cloned().unwrap_or_default();
        let level = find_level(lints, &globs, diagnostic.code, &file);
        warnings.0.push((diagnostic.clone(), file, level));
        set_level(diagnostic, level)
    }));
    warnings
}

impl Warnings {
    /// The source location of the first warning with this code.
    pub(super) fn first_location(&self, code: &str) -> Option<SourceLocation> {
        let first_warning = self.0.iter().find(|(warning, ..)| warning.code == code);
        first_warning.and_then(|(warning, ..)| warning.location.clone())
    }

    /// Keeps only the warnings that `is_wanted` accepts.
    pub fn retain(&mut self, is_wanted: impl Fn(&Diagnostic) -> bool) {
        self.0.retain(|(warning, ..)| is_wanted(warning));
    }

    /// The warnings at the stricter of two levels: the level of the branch, and the level in the
    /// `lints` of the base.
    pub(super) fn apply_base_levels(self, lints: &[Lint]) -> Diagnostics {
        let globs = compile_globs(lints);
        let shown_warnings = self.0.into_iter().filter_map(|(warning, file, branch_level)| {
            let base_level = find_level(lints, &globs, warning.code, &file);
            let help = format!(
                "this branch lowers its level in `{CONFIG_FILE}`, but the level at the base applies"
            );
            let warning = set_level(warning, branch_level.max(base_level))?;
            Some(if base_level > branch_level { warning.with_help(help) } else { warning })
        });
        shown_warnings.collect()
    }
}

/// The globs of `lints`. A broken glob matches nothing.
fn compile_globs(lints: &[Lint]) -> Vec<Option<Glob>> {
    let files = lints.iter().map(|lint| lint.files.as_deref());
    files.map(|files| Glob::for_paths(files?).ok()).collect()
}

/// The level of the last lint that matches the code and the file; the default is
/// [`LintLevel::Warn`].
fn find_level(lints: &[Lint], globs: &[Option<Glob>], code: &str, file: &str) -> LintLevel {
    let last_match = lints.iter().zip(globs).rfind(|(lint, glob)| {
        lint.code == code
            && (lint.files.is_none() || glob.as_ref().is_some_and(|glob| glob.matches(file)))
    });
    last_match.map_or(LintLevel::Warn, |(lint, _)| lint.level)
}

fn set_level(warning: Diagnostic, level: LintLevel) -> Option<Diagnostic> {
    match level {
        LintLevel::Allow => None,
        LintLevel::Warn => Some(warning),
        LintLevel::Deny => Some(Diagnostic { severity: Severity::Error, ..warning }),
    }
}

/// The first folder of `manifest_paths` with the same name as the last folder in `glob`.
fn find_similar_folder<'m>(glob: &str, manifest_paths: &'m [String]) -> Option<&'m str> {
    let folder_name = glob.split('/').rfind(|part| !part.contains(['*', '?', '[', '{', '.']))?;
    let folders = manifest_paths.iter().filter_map(|path| Some(path.rsplit_once('/')?.0));
    let path_end = format!("/{}", folder_name.to_lowercase());
    folders.into_iter().find(|folder| format!("/{folder}").ends_with(&path_end))
}

/// Checks one entry of `lints`. `manifest_paths` are the lower-case paths of all manifests relative
/// to the root; `None` if they are unknown.
pub(super) fn check(lint: &Node, manifest_paths: Option<&[String]>, findings: &mut FileFaults) {
    if let Some((_, node)) = lint.get("in")
        && let Some(glob) = findings.check_glob(node, "files", "legacy/**")
    {
        let manifest_paths = manifest_paths.unwrap_or_default();
        if !manifest_paths.is_empty() && !manifest_paths.iter().any(|path| glob.matches(path)) {
            let similar_folder = find_similar_folder(glob.pattern(), manifest_paths);
            let near = similar_folder.map(|near| format!(", here `{near}/**`")).unwrap_or_default();
            findings.report(texts::IDLE_LINT, node.span.clone(), placeholders![near]);
        }
    }
    let Some((_, node)) = lint.get("code") else { return };
    let (Some(code), span) = (node.text(), node.span.clone()) else { return };
    let level = lint["level"].text().unwrap_or_default();
    let is_fixed = FIXED_WARNING_CODES.contains(&code);
    if codes::find_code(code).is_none() {
        let names: Vec<_> = codes::CODES.iter().map(|code| code.name).collect();
        let fault = findings.report(texts::NO_CODE, span, &[]);
        fault.suggest_name(likely_candidates(code, &names).first());
    } else if level == "allow" && is_fixed {
        findings.report(texts::FIRM_WARNING, span, &[]);
    } else if ["allow", "warn"].contains(&level) && !is_fixed && !is_adjustable(code) {
        findings.report(texts::ALWAYS_ERROR, span, placeholders![code]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus;

    #[test]
    fn every_warning_of_the_corpus_has_a_known_code() {
        for case in corpus::cases() {
            let warnings = case.report.lines().filter_map(|line| line.strip_prefix("warning["));
            for code in warnings.filter_map(|line_end| line_end.split(']').next()) {
                assert!(
                    is_adjustable(code) || FIXED_WARNING_CODES.contains(&code),
                    "{}: {code}",
                    case.name
                );
            }
        }
    }
}
