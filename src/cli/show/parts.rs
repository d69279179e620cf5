//! Joins the plans of several jobs, from their JSON reports. Each job applied guards to its own plan and
//! has an exit code; the most important of these codes becomes the exit code of the run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{
    address::Address,
    cause::Cause,
    cli::{CommandError, Exit, ReportedExit, Result, RunContext, input},
    diagnostic::Severity,
    diff::Incomplete,
    plan::Plan,
    report::{FORMAT_VERSION, ReportKind, ReportedRun},
};

/// The maximum size of a report, in bytes. Reports of the largest organisations are much smaller.
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

/// A diagnostic of the manifests, as in a report.
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
    run: ReportedRun,
    #[serde(flatten)]
    plan: Plan,
}

/// The report of one job.
struct JobReport {
    kind: ReportKind,
    exit: Exit,
    run: Option<ReportedRun>,
    plan: Plan,
}

/// Shows the reports in `files` as one.
pub(super) fn show(files: &[PathBuf], cx: &RunContext) -> Result<ReportedExit> {
    let reports: Vec<_> = files.iter().map(|file| read_report(file)).collect::<Result<_, _>>()?;
    if let Some(reason) = find_conflict(files, &reports) {
        return Err(CommandError::usage(reason).help("each group and project must be in one part"));
    }
    let exit = Exit::first_of(reports.iter().map(|part| part.exit));
    let run = reports.iter().find_map(|part| part.run.clone()).unwrap_or_default();
    let is_all_drift = reports.iter().all(|part| part.kind == ReportKind::Drift);
    let kind = if is_all_drift { ReportKind::Drift } else { ReportKind::Plan };
    let plan = Plan::join(reports.into_iter().map(|part| part.plan));
    Ok(cx.reports.finish_plan(&run, &plan, kind, exit))
}

/// The reason why the reports cannot be joined: two of them are for different services or bases, or
/// change the same object.
fn find_conflict(files: &[PathBuf], reports: &[JobReport]) -> Option<String> {
    let mut service: Option<(&Path, &str)> = None;
    let mut base: Option<(&Path, &str)> = None;
    let mut report_by_address: BTreeMap<&Address, usize> = BTreeMap::new();
    for (index, (file, report)) in files.iter().zip(reports).enumerate() {
        let target = report.run.as_ref().map(|run| &*run.target);
        let revision = report.plan.base.as_ref().map(|base| &*base.revision);
        for (first_use, value, noun) in
            [(&mut service, target, "the service"), (&mut base, revision, "the base")]
        {
            let Some(value) = value else { continue };
            let (first_file, first_value) = *first_use.get_or_insert((file, value));
            if first_value != value {
                let (first_name, file) = (first_file.display(), file.display());
                return Some(format!(
                    "`{first_name}` is for {noun} {first_value}, and `{file}` for {value}"
                ));
            }
        }
        for step in &report.plan.findings.steps {
            let other_index = *report_by_address.entry(&step.address).or_insert(index);
            if other_index != index {
                let (other_file, file) = (files[other_index].display(), file.display());
                return Some(format!("both `{other_file}` and `{file}` change {}", step.address));
            }
        }
    }
    None
}

/// Reads the report in `file`. If its run failed or was killed, the plan only contains one part that
/// could not be read, with the reason.
fn read_report(file: &Path) -> Result<JobReport> {
    let bytes = input::read_file(file, MAX_REPORT_BYTES)?;
    // Leak the text, because the plan borrows names of sections, for example, until the process ends.
    let bytes: &'static [u8] = bytes.leak();
    parse_report(file, bytes).map_err(|reason| {
        let failure = CommandError::usage(format!(
            "`{}` is not a report of a plan: {reason}",
            file.display()
        ));
        failure.help("make it with `undrift plan --out json=FILE`, of the same version")
    })
}

/// Parses the report in `bytes`. The error is the reason why they are not a report of a plan.
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
    let reason =
        match head.diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
            Some(first) => format!("{reason}: {}", first.sentence()),
            None => reason,
        };
    let mut plan = Plan::default();
    plan.findings.incomplete.push(Incomplete {
        address: Address::container(file.to_string_lossy().into()),
        reason: Cause::new(reason),
        origin: None,
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
        plan::BaseComparison,
    };

    fn read_part(folder: &Path, text: &str) -> Result<JobReport, String> {
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
            let part = read_part(folder.path(), &text).unwrap();
            let [scope] = &part.plan.incomplete[..] else { panic!("{state}") };
            assert_eq!((part.exit, &*scope.reason.message), (exit, reason));
            assert!(scope.address.path.ends_with("part.json"));
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
        let part = read_part(folder.path(), &text).unwrap();
        let [scope] = &part.plan.incomplete[..] else { panic!("{text}") };
        assert_eq!(&*scope.reason.message, "failed: 1 error: unknown field (a.yaml:3)");
    }

    #[test]
    fn parts_of_two_services_or_bases_or_of_the_same_object_are_refused() {
        let files = [PathBuf::from("a.json"), PathBuf::from("b.json")];
        let make_report = |target: &str, section: &'static str| {
            let address = Address::container("acme/shop".into()).with_section(section);
            let (origin, action) = (origin(1), Action::Update);
            let step = Step::new(Scope::Project, address, action, origin, Vec::new(), Vec::new());
            let mut plan = Plan::default();
            plan.findings.steps.push(step);
            let run = Some(ReportedRun { target: target.to_owned(), ..ReportedRun::default() });
            JobReport { kind: ReportKind::Plan, exit: Exit::Success, run, plan }
        };
        let report_with_base = |revision: &str, section: &'static str| {
            let mut part = make_report("https://one", section);
            let revision = revision.to_owned();
            part.plan.base = Some(BaseComparison { revision, ..BaseComparison::default() });
            part
        };
        let reports_of_two_bases =
            [report_with_base("1a2b", "members"), report_with_base("3c4d", "settings")];
        let reason = "`a.json` is for the base 1a2b, and `b.json` for 3c4d";
        assert_eq!(find_conflict(&files, &reports_of_two_bases).as_deref(), Some(reason));
        let first_part = || make_report("https://one", "settings");
        for (second_part, reason) in [
            (make_report("https://one", "members"), None),
            (
                make_report("https://two", "members"),
                Some("`a.json` is for the service https://one, and `b.json` for https://two"),
            ),
            (
                make_report("https://one", "settings"),
                Some("both `a.json` and `b.json` change acme/shop#settings"),
            ),
        ] {
            assert_eq!(find_conflict(&files, &[first_part(), second_part]).as_deref(), reason);
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
            let Err(reason) = read_part(folder.path(), &text) else { panic!("{text}") };
            assert!(reason.contains(words), "{words}: {reason}");
        }
    }
}
