//! The plans of several jobs as one, from their JSON reports. Each job had its own guards and exit
//! code; the first of these codes in order is that of the whole.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    address::Address,
    cause::Cause,
    cli::{CommandError, Exit, Reported, RunContext, input},
    diagnostic::Severity,
    diff::Incomplete,
    plan::Plan,
    report::{FORMAT_VERSION, ReportKind, Run},
};

/// The largest report that is read, in bytes: many more than those of the largest organisations.
const MAX_REPORT_BYTES: u64 = 1 << 30;

/// The fields that every report has.
#[derive(Deserialize)]
struct ReportHead {
    undrift: ReportKind,
    format_version: u32,
    exit_code: Option<u8>,
    error: Option<String>,
    #[serde(default)]
    diagnostics: Vec<ReportedDiagnostic>,
}

/// The diagnostics of the manifests.
#[derive(Deserialize)]
struct ReportedDiagnostic {
    severity: Severity,
    message: String,
    file: Option<String>,
    line: Option<u32>,
}

impl ReportedDiagnostic {
    fn sentence(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{} ({file}:{line})", self.message),
            (Some(file), None) => format!("{} ({file})", self.message),
            (None, _) => self.message.clone(),
        }
    }
}

/// The fields of a report about a plan or drift whose run has finished.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct FinishedReport {
    #[serde(flatten)]
    run: Run,
    #[serde(flatten)]
    plan: Plan,
}

/// One job's part.
struct JobReport {
    kind: ReportKind,
    exit: Exit,
    run: Option<Run>,
    plan: Plan,
}

/// Shows the reports in `files` as one.
pub(super) fn show(files: &[PathBuf], cx: &RunContext) -> Result<Reported, CommandError> {
    let parts: Vec<_> = files.iter().map(|file| read_report(file)).collect::<Result<_, _>>()?;
    if let Some(reason) = find_overlap(files, &parts) {
        return Err(CommandError::usage(reason).help("each group and project must be in one part"));
    }
    let exit = Exit::first_of(parts.iter().map(|part| part.exit));
    let run = parts.iter().find_map(|part| part.run.clone()).unwrap_or_default();
    let is_all_drift = parts.iter().all(|part| part.kind == ReportKind::Drift);
    let kind = if is_all_drift { ReportKind::Drift } else { ReportKind::Plan };
    let plan = Plan::join(parts.into_iter().map(|part| part.plan));
    Ok(cx.reports.finish_plan(&run, &plan, kind, exit))
}

/// The reason why the parts cannot be joined: two are of different services, or change the same
/// object.
fn find_overlap(files: &[PathBuf], parts: &[JobReport]) -> Option<String> {
    let mut service: Option<(&Path, &str)> = None;
    let mut changed: BTreeMap<&Address, usize> = BTreeMap::new();
    for (index, (file, part)) in files.iter().zip(parts).enumerate() {
        if let Some(run) = &part.run {
            let (first, target) = *service.get_or_insert((file, &run.target));
            if target != run.target {
                let (first, file) = (first.display(), file.display());
                return Some(format!("`{first}` is for {target}, and `{file}` for {}", run.target));
            }
        }
        for step in &part.plan.findings.steps {
            let other = *changed.entry(&step.address).or_insert(index);
            if other != index {
                let (other, file) = (files[other].display(), file.display());
                return Some(format!("both `{other}` and `{file}` change {}", step.address));
            }
        }
    }
    None
}

/// The part in a report. That of a run that failed or was killed has nothing but the reason.
fn read_report(file: &Path) -> Result<JobReport, CommandError> {
    let bytes = input::read_file(file, MAX_REPORT_BYTES)?;
    // Words of undrift in it, such as the names of sections, are kept as long as the process.
    let bytes: &'static [u8] = bytes.leak();
    parse_report(file, bytes).map_err(|reason| {
        let failure = CommandError::usage(format!(
            "`{}` is not a report of a plan: {reason}",
            file.display()
        ));
        failure.help("make it with `undrift plan --out json=FILE`, of the same version")
    })
}

/// The part in the report `bytes`, or the reason why they are no report.
fn parse_report(file: &Path, bytes: &'static [u8]) -> Result<JobReport, String> {
    let head: ReportHead = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if !matches!(head.undrift, ReportKind::Plan | ReportKind::Drift) {
        return Err(format!("a report of `{}` has no plan", head.undrift.word()));
    }
    if head.format_version != FORMAT_VERSION {
        return Err(format!("it has format {}", head.format_version));
    }
    // An unfinished report has no exit code.
    let exit = head.exit_code.map_or(Some(Exit::Terminated), Exit::from_code);
    let exit = exit.ok_or("its exit code is unknown")?;
    if head.exit_code.is_some() && head.error.is_none() {
        let FinishedReport { run, plan }: FinishedReport =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        return Ok(JobReport { kind: head.undrift, exit, run: Some(run), plan });
    }
    let reason = head.error.map_or("not finished".into(), |error| format!("failed: {error}"));
    let reason = match head.diagnostics.iter().find(|what| what.severity == Severity::Error) {
        Some(first) => format!("{reason}: {}", first.sentence()),
        None => reason,
    };
    let mut plan = Plan::default();
    plan.findings.incomplete.push(Incomplete {
        address: Address::container(file.to_string_lossy().into()),
        reason: Cause::new(reason),
    });
    Ok(JobReport { kind: head.undrift, exit, run: None, plan })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        desired::testing::origin,
        diff::{Action, Step},
        field::Scope,
    };

    fn part(folder: &Path, text: &str) -> Result<JobReport, String> {
        let file = folder.join("part.json");
        std::fs::write(&file, text).unwrap();
        read_report(&file).map_err(|failure| failure.error.unwrap().to_string())
    }

    #[test]
    fn a_job_that_did_not_finish_counts_as_not_read() {
        let folder = tempfile::tempdir().unwrap();
        for (state, exit, reason) in [
            (r#""status": "unfinished""#, Exit::Terminated, "not finished"),
            (
                r#""status": "failed", "exit_code": 8, "error": "no route""#,
                Exit::Unreachable,
                "failed: no route",
            ),
        ] {
            let text = format!(r#"{{"undrift": "plan", "format_version": 1, {state}}}"#);
            let part = part(folder.path(), &text).unwrap();
            let [unread] = &part.plan.incomplete[..] else { panic!("{state}") };
            assert_eq!((part.exit, &*unread.reason.message), (exit, reason));
            assert!(unread.address.path.ends_with("part.json"));
        }
    }

    #[test]
    fn a_part_with_wrong_manifests_names_the_first_fault() {
        let folder = tempfile::tempdir().unwrap();
        let fault =
            r#"{"severity": "error", "message": "unknown field", "file": "a.yaml", "line": 3}"#;
        let text = format!(
            r#"{{"undrift": "plan", "format_version": 1, "exit_code": 3, "error": "1 error", "diagnostics": [{fault}]}}"#
        );
        let part = part(folder.path(), &text).unwrap();
        let [unread] = &part.plan.incomplete[..] else { panic!("{text}") };
        assert_eq!(&*unread.reason.message, "failed: 1 error: unknown field (a.yaml:3)");
    }

    #[test]
    fn parts_of_two_services_or_of_the_same_object_are_refused() {
        let files = [PathBuf::from("a.json"), PathBuf::from("b.json")];
        let part = |target: &str, section: &'static str| {
            let address = Address::container("acme/shop".into()).section(section);
            let (origin, action) = (origin(1), Action::Update);
            let step = Step::new(Scope::Project, address, action, origin, Vec::new(), Vec::new());
            let mut plan = Plan::default();
            plan.findings.steps.push(step);
            let run = Some(Run { target: target.to_owned(), ..Run::default() });
            JobReport { kind: ReportKind::Plan, exit: Exit::Success, run, plan }
        };
        let first = || part("https://one", "settings");
        for (second, reason) in [
            (part("https://one", "members"), None),
            (
                part("https://two", "members"),
                Some("`a.json` is for https://one, and `b.json` for https://two"),
            ),
            (
                part("https://one", "settings"),
                Some("both `a.json` and `b.json` change acme/shop#settings"),
            ),
        ] {
            assert_eq!(find_overlap(&files, &[first(), second]).as_deref(), reason);
        }
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let head = |kind, version, code| {
            format!(r#"{{"undrift": "{kind}", "format_version": {version}, "exit_code": {code}}}"#)
        };
        for (text, words) in [
            ("kind: Project".to_owned(), "is not a report of a plan"),
            (head("apply", 1, 0), "a report of `apply` has no plan"),
            (head("plan", 9, 0), "it has format 9"),
            (head("plan", 1, 99), "its exit code is unknown"),
            (head("plan", 1, 0), "missing field"),
        ] {
            let Err(reason) = part(folder.path(), &text) else { panic!("{text}") };
            assert!(reason.contains(words), "{words}: {reason}");
        }
    }
}
