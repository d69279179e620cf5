//! How loud warnings about manifests are: `lints` of `undrift.yaml`.
//!
//! An error is never less than one. With a base the louder of both sides counts, so that no branch silences what it
//! brings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{config::FILE, faults::Findings};
use crate::{
    address::Glob,
    diagnostic::{Diagnostic, Diagnostics, FileName, Severity, codes},
    text::nearest,
    yaml::Node,
};

/// How loud warnings of one code are.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lint {
    /// The code, as it stands in the brackets of a warning.
    #[schemars(example = &"literal-secret")]
    pub code: String,
    /// A glob over the manifests in which this counts, by their paths from the folder of this file; all
    /// if it is left out.
    #[serde(default, rename = "in")]
    #[schemars(length(min = 1), example = &"legacy/**")]
    pub files: Option<String>,
    /// How loud.
    pub level: Level,
}

/// How loud a warning is; of two the later one is louder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It is not shown.
    Allow,
    /// It is shown.
    Warn,
    /// It is an error.
    Deny,
}

/// What is always said: where something was is what keeps it from being taken for something else.
const FIRM: [&str; 2] = ["previously", "too-many-faults"];

/// The warnings of manifests as they were found, each with its file and how loud it is told.
#[derive(Debug, Default)]
pub struct Warnings(Vec<(Diagnostic, String, Level)>);

/// Makes each warning of `diagnostics` as loud as `lints` say. Where there is one, `paths` says where the
/// files are from the root, in lower case.
pub(super) fn apply(
    lints: &[Lint],
    diagnostics: &mut Diagnostics,
    paths: impl FnOnce() -> BTreeMap<FileName, String>,
) -> Warnings {
    if diagnostics.count(Severity::Warning) == 0 {
        return Warnings::default();
    }
    let paths = paths();
    let mut found = Warnings::default();
    let all = std::mem::take(diagnostics).into_iter();
    let globs = globs(lints);
    diagnostics.extend(all.filter_map(|diagnostic| {
        if diagnostic.severity == Severity::Error {
            return Some(diagnostic);
        }
        let file = diagnostic.place.as_ref().and_then(|place| paths.get(&place.file));
        let file = file.cloned().unwrap_or_default();
        let level = level(lints, &globs, diagnostic.code, &file);
        found.0.push((diagnostic.clone(), file, level));
        told(diagnostic, level)
    }));
    found
}

impl Warnings {
    /// Drops those that are not `wanted`.
    pub fn retain(&mut self, wanted: impl Fn(&Diagnostic) -> bool) {
        self.0.retain(|(warning, ..)| wanted(warning));
    }

    /// What is told louder by the `lints` of a base than by those of the branch.
    pub fn louder_at(self, lints: &[Lint]) -> Diagnostics {
        let globs = globs(lints);
        let louder = self.0.into_iter().filter_map(|(warning, file, own)| {
            let base = level(lints, &globs, warning.code, &file);
            let warning = told(warning, base).filter(|_| base > own)?;
            Some(warning.help(format!("this branch lowers it in `{FILE}`; at the base it counts")))
        });
        louder.collect()
    }
}

/// The globs of `lints`; one that is broken matches nothing.
fn globs(lints: &[Lint]) -> Vec<Option<Glob>> {
    let glob = |lint: &Lint| lint.files.as_deref().and_then(|files| Glob::over_paths(files).ok());
    lints.iter().map(glob).collect()
}

/// What the last of `lints` says that is about this code and this file.
fn level(lints: &[Lint], globs: &[Option<Glob>], code: &str, file: &str) -> Level {
    let is_about = |(lint, glob): &(&Lint, &Option<Glob>)| {
        lint.code == code
            && (lint.files.is_none() || glob.as_ref().is_some_and(|glob| glob.matches(file)))
    };
    let last = lints.iter().zip(globs).rfind(is_about);
    last.map_or(Level::Warn, |(lint, _)| lint.level)
}

fn told(warning: Diagnostic, level: Level) -> Option<Diagnostic> {
    match level {
        Level::Allow => None,
        Level::Warn => Some(warning),
        Level::Deny => Some(Diagnostic { severity: Severity::Error, ..warning }),
    }
}

/// Says what is wrong with one of `lints`.
pub(super) fn check(lint: &Node, findings: &mut Findings) {
    let under = |key| lint.get(key).and_then(|(_, node)| Some((node.text()?, node.span.clone())));
    if let Some((files, span)) = under("in")
        && let Err(why) = Glob::over_paths(files)
    {
        let wrong = findings.error("glob", format!("this is no glob over files: {why}"), span);
        wrong.help("write a path in which `*` and `**` stand for something, such as `legacy/**`");
    }
    let Some((code, span)) = under("code") else { return };
    let lowers = under("level").is_some_and(|(level, _)| level == "allow");
    if codes::of(code).is_none() {
        let near = nearest(code, codes::CODES.iter().map(|known| known.name));
        findings
            .error("choice", "there is no message with this code", span)
            .help_if(near.map(|near| format!("did you mean `{near}`?")));
    } else if lowers && FIRM.contains(&code) {
        findings
            .error("lints", "this warning protects what is there, and is always told", span)
            .help("mend what it is about, or leave the lint out");
    }
}
