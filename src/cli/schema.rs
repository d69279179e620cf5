//! `undrift schema`: the JSON schemas of all formats that undrift reads or writes, generated from
//! the types.

use std::path::{Path, PathBuf};

use schemars::{JsonSchema, generate::SchemaSettings};

use super::{CommandError, CommandResult, Exit, RunContext, input, write_failure};
use crate::{
    manifest,
    plan::saved,
    report::{
        ApplyContent, CheckContent, FORMAT_VERSION, PlanContent, json::JsonReport,
        run_record::RecordLine,
    },
    snapshot::file,
    text::{alternatives, did_you_mean},
    value::Json,
};

/// A schema's name and the function that makes it. Its file is `NAME.schema.json`.
type NamedSchema = (&'static str, fn() -> Json);

/// Every schema.
const SCHEMAS: &[NamedSchema] = &[
    ("manifest", manifest::schema::manifest_schema),
    ("undrift", manifest::schema::config_schema),
    ("kind", manifest::schema::description_schema),
    #[cfg(feature = "sandbox")]
    ("sandbox", || manifest::schema::published_schema("sandbox", super::embedded::seed_schema())),
    ("plan", || report_schema::<JsonReport<'static, PlanContent<'static>>>("plan", FORMAT_VERSION)),
    ("apply", || {
        report_schema::<JsonReport<'static, ApplyContent<'static>>>("apply", FORMAT_VERSION)
    }),
    ("check", || {
        report_schema::<JsonReport<'static, CheckContent<'static>>>("check", FORMAT_VERSION)
    }),
    ("snapshot", || report_schema::<file::SnapshotFile<'static>>("snapshot", file::FORMAT_VERSION)),
    ("record", || report_schema::<RecordLine>("record", FORMAT_VERSION)),
    ("saved-plan", || report_schema::<saved::SealedPlan>("saved-plan", saved::FORMAT)),
];

/// The schema of a report as it is serialized, with the id for `name` and `version`.
fn report_schema<T: JsonSchema>(name: &str, version: u32) -> Json {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    crate::schema::add_schema_id(name, version, schema)
}

/// The options of `schema`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = include_str!("help/schema.txt"))]
pub(super) struct Args {
    /// Schema to print: manifest, undrift, kind, sandbox, plan, apply, check, snapshot, record or
    /// saved-plan
    #[arg(value_name = "NAME", default_value = "manifest", conflicts_with_all = ["write", "check"])]
    name: String,
    /// Write all schemas into this folder, as NAME.schema.json
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Exit with 2 if the schemas in this folder are out of date
    #[arg(long, value_name = "DIR", conflicts_with = "write")]
    check: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args, cx: &RunContext) -> CommandResult {
    match (&args.write, &args.check) {
        (Some(folder), _) => write_schemas(folder),
        (_, Some(folder)) => check_schemas(folder, cx),
        _ => {
            let names: Vec<_> = SCHEMAS.iter().map(|(name, _)| *name).collect();
            let Some((_, schema)) = SCHEMAS.iter().find(|(name, _)| *name == args.name) else {
                let failure = CommandError::usage(format!(
                    "no schema `{}`; available: {}",
                    args.name,
                    alternatives(&names)
                ));
                return Err(CommandError { help: did_you_mean(&args.name, names), ..failure });
            };
            cx.output.print(&schema_text(*schema))?;
            Ok(Exit::Success)
        }
    }
}

fn schema_text(schema: fn() -> Json) -> String {
    format!("{:#}\n", schema())
}

fn schema_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.schema.json"))
}

fn write_schemas(folder: &Path) -> CommandResult {
    for (name, schema) in SCHEMAS {
        let path = schema_path(folder, name);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, schema_text(*schema)))
            .map_err(|error| write_failure(&path, &error))?;
    }
    Ok(Exit::Success)
}

fn check_schemas(folder: &Path, cx: &RunContext) -> CommandResult {
    let mut stale_files = Vec::new();
    for (name, schema) in SCHEMAS {
        let (path, text) = (schema_path(folder, name), schema_text(*schema));
        let bytes = input::read_file(&path, text.len() as u64);
        if !bytes.is_ok_and(|bytes| bytes == text.into_bytes()) {
            stale_files.push(path.display().to_string());
        }
    }
    if stale_files.is_empty() {
        return Ok(Exit::Success);
    }
    cx.output.eprint(&format!("out of date: {}\n", stale_files.join(", ")));
    Ok(Exit::Differences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        apply::ApplyResult,
        diagnostic::{Diagnostic, Diagnostics},
        plan::Plan,
        report::{ReportKind, ReportedRun, RunReportState},
        secret::Secrets,
    };

    /// Asserts that the schema accepts a report, and refuses it with a wrong field.
    fn assert_matches_schema(name: &str, report: &str, wrong_field: (&str, Json)) {
        let (_, schema) = SCHEMAS.iter().find(|(id, _)| *id == name).unwrap();
        let report: Json = serde_json::from_str(report).unwrap();
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let errors: Vec<_> =
            validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {report:#}");
        let mut invalid = report;
        invalid[wrong_field.0] = wrong_field.1;
        assert!(!validator.is_valid(&invalid), "the schema of {name} accepts {invalid:#}");
    }

    #[test]
    fn every_schema_has_its_own_id() {
        for (name, schema) in SCHEMAS {
            let version = u8::from(["apply", "check", "plan", "record"].contains(name));
            assert_eq!(schema()["$id"], format!("urn:undrift:schema:{name}:{version}"));
        }
    }

    #[test]
    fn reports_fit_their_schemas() {
        let no_secrets = &Secrets::default();
        let run = ReportedRun {
            target: "https://x.example".into(),
            caller: "alice".into(),
            sandbox: false,
            rehearsed: Vec::new(),
            snapshot: None,
            token: None,
        };
        let (plan, applied) = (Plan::default(), ApplyResult::default());
        let diagnostics: Diagnostics =
            [Diagnostic::error("syntax", "it is broken")].into_iter().collect();
        let finished_reports = [
            (
                "plan",
                JsonReport::finished(ReportKind::Plan, 0, PlanContent::new(&run, &plan))
                    .to_text(no_secrets),
            ),
            (
                "apply",
                JsonReport::finished(
                    ReportKind::Apply,
                    6,
                    ApplyContent::new(&run, &plan, &applied, &[]),
                )
                .to_text(no_secrets),
            ),
            (
                "check",
                JsonReport::finished(ReportKind::Check, 3, CheckContent::new(&diagnostics, 0))
                    .to_text(no_secrets),
            ),
        ];
        for (name, report) in finished_reports {
            let report = report.unwrap();
            assert_matches_schema(name, &report, ("exit_code", "none".into()));
            assert_matches_schema(name, &report, ("status", "unheard".into()));
            assert_matches_schema(name, &report, ("counts", Json::Null));
            let render = |state: RunReportState<'_>| {
                JsonReport::new(ReportKind::Plan, state).to_text(no_secrets).unwrap()
            };
            let failed = render(RunReportState::failed(7, "no", None, &diagnostics));
            assert_matches_schema(name, &failed, ("exit_code", Json::Null));
            assert_matches_schema(name, &failed, ("status", "finished".into()));
            assert_matches_schema(
                name,
                &render(RunReportState::UNFINISHED),
                ("status", "failed".into()),
            );
        }
    }
}
