//! Recognises, reads and writes files of saved plans, and reads the key of their seal.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    ChangeArgs, CommandError, Environment, Exit, Result, RunContext, Session, SessionArgs, input,
    reports, write_failure,
};
use crate::{
    digest::DigestKey,
    plan::{
        Plan,
        saved::{MAX_BYTES, PlanRecorder, SaveContext, SavedPlan, SealedPlan, UnusablePlan},
    },
    text,
};

/// The number of bytes at the start of a file that are read to recognise a file of undrift.
const HEADER_BYTES: u64 = 64;
/// The variable with the key that seals saved plans.
pub(super) const KEY_VARIABLE: &str = "UNDRIFT_PLAN_KEY";

/// True if the file at `path` begins like a file that undrift writes: a saved plan, or a report that
/// was named by mistake. [`read_saved_plan`] checks whether it is a valid saved plan.
pub(super) fn is_undrift_file(path: &Path) -> bool {
    path.is_file()
        && !is_yaml(path)
        && input::read_bytes(path, HEADER_BYTES).is_ok_and(|mut header| {
            header.retain(|byte| !byte.is_ascii_whitespace());
            header.starts_with(br#"{"undrift":"#)
        })
}

pub(super) fn is_yaml(path: &Path) -> bool {
    let extension = path.extension().and_then(std::ffi::OsStr::to_str);
    extension.is_some_and(|extension| matches!(&*extension.to_lowercase(), "yaml" | "yml"))
}

/// Reads the saved plan at `path`.
///
/// # Errors
/// If the file cannot be read, or is not a saved plan.
pub(super) fn read_saved_plan(path: &Path) -> Result<SealedPlan> {
    let bytes =
        input::read_bytes(path, MAX_BYTES).map_err(|error| input::read_failure(path, &error))?;
    SealedPlan::read(&bytes).map_err(|error| {
        let message = format!("cannot use `{}`: {error}", path.display());
        let exit = if error.is_other_file { Exit::Usage } else { Exit::Stale };
        CommandError::new(exit, anyhow::anyhow!(message)).help(error.help)
    })
}

/// The folder of manifests that a saved plan names. The manifests in that folder are loaded and
/// planned again.
///
/// # Errors
/// If the folder is not below the working directory.
pub(super) fn manifests_folder(plan: &SavedPlan) -> Result<PathBuf> {
    let folder = plan.manifests.as_deref().unwrap_or(".");
    relative_path(Path::new(folder)).map(PathBuf::from).ok_or_else(|| {
        let shown_folder = text::escape(folder);
        CommandError::usage(format!(
            "the saved plan is for `{shown_folder}`, which is not below the current folder"
        ))
        .help("name the folder of manifests: `undrift apply FILE -d DIR`")
    })
}

/// The path of `folder`, relative to the working directory; `None` for a folder outside of it.
fn relative_path(folder: &Path) -> Option<String> {
    let current_folder = Path::new(".").canonicalize().ok()?;
    let relative_folder =
        folder.canonicalize().ok()?.strip_prefix(current_folder).ok()?.to_str()?.to_owned();
    Some(if relative_folder.is_empty() { ".".to_owned() } else { relative_folder })
}

/// The failure for a saved plan that cannot be used.
pub(super) fn unusable_failure(error: UnusablePlan) -> CommandError {
    CommandError::new(Exit::Stale, anyhow::anyhow!(error.message)).help(error.help)
}

/// The target of `plan -o`.
pub(super) struct SavedPlanTarget {
    path: PathBuf,
    key: Option<DigestKey>,
}

impl SavedPlanTarget {
    /// Removes an old file, so that it is not mistaken for the plan of this run.
    ///
    /// # Errors
    /// If apply would read the file as a manifest, the key is not valid, or the old file cannot be
    /// removed.
    pub(super) fn begin(path: &Path, env: &Environment) -> Result<Self> {
        if is_yaml(path) {
            return Err(reports::manifest_refusal(
                path,
                "choose another extension: a saved plan is JSON",
            ));
        }
        let key = env.digest_key(KEY_VARIABLE)?;
        if fs::symlink_metadata(path).is_ok_and(|old| old.is_file()) {
            fs::remove_file(path).map_err(|error| write_failure(path, &error))?;
        }
        Ok(Self { path: path.to_owned(), key })
    }

    /// Writes `plan`. Prints a note if the plan hides values and the user set no key.
    ///
    /// # Errors
    /// If the plan is too large, or the file cannot be written.
    pub(super) fn write(
        self,
        plan: &Plan,
        session: &Session,
        (args, changes): (&SessionArgs, &ChangeArgs),
        cx: &RunContext,
    ) -> Result<()> {
        let Self { path, key } = self;
        let [only, exclude] = args.selectors();
        let plan_source = SaveContext {
            made_at: jiff::Timestamp::now(),
            target: session.run.target.clone(),
            caller: session.run.caller.clone(),
            is_sandbox: session.run.sandbox,
            manifests: relative_path(&args.dir),
            selectors: [only, exclude, changes.resend_selectors()],
        };
        let recorder = PlanRecorder { secrets: &session.settings.secrets, key: key.as_ref() };
        let saved_plan =
            SavedPlan::from_plan(plan, &session.desired.containers, plan_source, recorder);
        let lacks_key = key.is_none() && saved_plan.hides_values();
        let text = saved_plan.seal(key.as_ref()).to_text();
        if text.len() as u64 > MAX_BYTES {
            return Err(CommandError::usage("the plan is too large to be saved: more than 64 MiB")
                .help("save it in parts, with `--only` or `--limit`"));
        }
        reports::write_text(&path, &text).map_err(|error| write_failure(&path, &error))?;
        if lacks_key {
            cx.output.eprint(&format!(
                "note: without {KEY_VARIABLE}, `apply` cannot check whether hidden values changed after this plan was saved\n"
            ));
        }
        Ok(())
    }
}
