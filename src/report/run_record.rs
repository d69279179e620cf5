//! The record of apply runs: one line of JSON per run, to find out later who changed what from
//! where.
//!
//! The record separates the facts that undrift itself finds from the variables of the job, which
//! the author of the pipeline can set.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    FORMAT_VERSION, KeyMeaning, RedactedValue, ReportedRun,
    json::{OutcomeCounts, escape_unsafe},
};
use crate::secret::Secrets;

/// The maximum length of a text from a variable of the job, in characters.
const MAX_VARIABLE_CHARS: usize = 256;

/// One line of a record.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct RecordLine {
    /// The kind of the line.
    pub undrift: RecordKind,
    /// The version of the format; 0 is unstable.
    pub format_version: u32,
    /// The version of undrift that wrote the line.
    #[serde(serialize_with = "crate::text::serialize_word")]
    pub tool_version: &'static str,
    /// The time when the run began (RFC 3339, UTC).
    pub started_at: String,
    /// The time when the run ended (RFC 3339, UTC).
    pub ended_at: String,
    /// The service and the user; null if the run ended before they were known.
    pub run: Option<ReportedRun>,
    /// The variables of the job.
    pub job: CiJob,
    /// The number of steps by outcome; null if no step was started.
    pub counts: Option<OutcomeCounts>,
    /// The number of groups and projects that were skipped because of a problem, a refusal or a failed read.
    pub left_out: usize,
    /// The acknowledged refusals, as for `--ack`.
    pub acknowledgements: Vec<String>,
    /// The exit code of the run.
    pub exit_code: u8,
    /// The error that ended the run; null if the run finished.
    pub error: Option<String>,
}

/// The kind of a line.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// The record of a run.
    #[default]
    Record,
}

/// The variables of the job, null if not set. The author of the pipeline can set them: they are
/// claims, not proofs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CiJob {
    /// The full path of the job's project.
    pub project: Option<String>,
    /// The number of the merge request.
    pub merge_request: Option<String>,
    /// The id of the pipeline.
    pub pipeline: Option<String>,
    /// The id of the job.
    pub job: Option<String>,
    /// The commit.
    pub commit: Option<String>,
    /// The branch or tag.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The username of the user who started the job.
    pub user: Option<String>,
}

impl CiJob {
    /// Reads the variables through `variable`, cut to 256 characters.
    pub fn from_variables<'v>(variable: impl Fn(&str) -> Option<&'v str>) -> Self {
        let read_variable =
            |name| variable(name).map(|value| value.chars().take(MAX_VARIABLE_CHARS).collect());
        Self {
            project: read_variable("CI_PROJECT_PATH"),
            merge_request: read_variable("CI_MERGE_REQUEST_IID"),
            pipeline: read_variable("CI_PIPELINE_ID"),
            job: read_variable("CI_JOB_ID"),
            commit: read_variable("CI_COMMIT_SHA"),
            reference: read_variable("CI_COMMIT_REF_NAME"),
            user: read_variable("GITLAB_USER_LOGIN"),
        }
    }
}

impl RecordLine {
    /// The record of a run in a job that began at `started_at`.
    pub fn new(started_at: String, job: CiJob) -> Self {
        let (format_version, tool_version) = (FORMAT_VERSION, env!("CARGO_PKG_VERSION"));
        Self { format_version, tool_version, started_at, job, ..Self::default() }
    }

    /// The line with its line feed, without `secrets`.
    ///
    /// # Errors
    /// If a value cannot be written as JSON. Values of reports always can.
    pub fn to_line(&self, secrets: &Secrets) -> serde_json::Result<String> {
        Ok(escape_unsafe(&serde_json::to_string(&RedactedValue::new(
            self,
            KeyMeaning::Data,
            secrets,
        ))?) + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a_record_is_one_line_without_secrets() {
        let long_path = "x".repeat(1_000);
        let job = CiJob::from_variables(|name| match name {
            "CI_PROJECT_PATH" => Some(long_path.as_str()),
            "CI_COMMIT_SHA" => Some("a\nb\u{1b}[31m\u{202e}"),
            "GITLAB_USER_LOGIN" => Some("my-own-canary-token"),
            _ => None,
        });
        let mut secrets = Secrets::default();
        secrets.add_redaction(Secret::new("my-own-canary-token"));
        let line = RecordLine::new("2030-01-01T00:00:00Z".into(), job).to_line(&secrets).unwrap();
        assert_eq!(line.lines().count(), 1);
        assert!(line.len() < 1_000 && !line.contains("canary"), "{line}");
        assert!(!line.trim_end().contains(crate::text::is_unsafe), "{line:?}");
        let parsed: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["job"]["commit"], "a\nb\u{1b}[31m\u{202e}");
        assert!(parsed["job"]["ref"].is_null() && parsed["run"].is_null());
    }
}
