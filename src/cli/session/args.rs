//! The options of a session: the manifests, the service, the selection, and further inputs of a plan.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{Span, civil::Date};

use crate::{
    address::{Address, Selector},
    cli::{
        CommandError, ConnectArgs, Environment, Exit, ManifestFolder, Result, RunContext,
        near_address::suggest_address,
    },
    desired::{Acknowledgement, Container, Desired},
    diagnostic::{Diagnostics, FileName},
    manifest::{LoadEnvironment, LoadedManifests},
    plan::{Holds, saved::SavedPlan},
    secret::AllowedVariables,
    selection::Selection,
    text::did_you_mean,
};

/// The variable with the globs of environment variables that manifests may use; `--allow-env` takes
/// precedence over it.
const ALLOW_VARIABLE: &str = "UNDRIFT_ALLOW_ENV";
/// The variable with the acknowledgements; `--ack` takes precedence over it.
const ACK_VARIABLE: &str = "UNDRIFT_ACK";
/// The variable with the holds. There is no option and no manifest key for them, because a hold is only
/// for an emergency.
const HOLD_VARIABLE: &str = "UNDRIFT_HOLD";

/// The manifests, the service, and the selection.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct SessionArgs {
    #[command(flatten)]
    pub(in crate::cli) dir: ManifestFolder,
    #[command(flatten)]
    pub(super) select: SelectArgs,
    #[command(flatten)]
    pub(super) access: AccessArgs,
}

/// The service, and the environment variables that manifests may use.
#[derive(Clone, Debug, Default, clap::Args)]
pub(in crate::cli) struct AccessArgs {
    /// Let manifests use only matching environment variables; a name that starts with CI_ or
    /// GITLAB_ needs a GLOB that starts the same way; may be repeated [env: UNDRIFT_ALLOW_ENV]
    #[arg(long, value_name = "GLOB")]
    pub(in crate::cli) allow_env: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) connect: ConnectArgs,
}

impl From<ConnectArgs> for AccessArgs {
    fn from(connect: ConnectArgs) -> Self {
        Self { connect, ..Self::default() }
    }
}

impl SessionArgs {
    /// The options of a command without `--only` and `--exclude`. The command selects `only`, or
    /// everything if `only` is empty.
    pub(in crate::cli) fn with_selection(
        dir: &Path,
        access: &AccessArgs,
        only: Vec<Selector>,
    ) -> Self {
        let select = SelectArgs { only, ..SelectArgs::default() };
        Self { dir: dir.to_owned().into(), select, access: access.clone() }
    }

    /// The options of a run that applies the plan `saved`. The run has the selectors of that plan.
    ///
    /// # Errors
    /// If other options select something, or a selector in `saved` is not valid.
    pub(in crate::cli) fn for_saved_plan(
        &self,
        saved: &Arc<SavedPlan>,
        dir: PathBuf,
    ) -> Result<Self> {
        if !(self.select.only.is_empty() && self.select.exclude.is_empty()) {
            return Err(saved_plan_conflict("`--only` and `--exclude`"));
        }
        let select = SelectArgs {
            only: parse_selectors(&saved.only)?,
            exclude: parse_selectors(&saved.exclude)?,
            saved_plan: Some(Arc::clone(saved)),
        };
        Ok(Self { dir: dir.into(), select, ..self.clone() })
    }

    /// The values of `--only` and `--exclude`, as written.
    pub(in crate::cli) fn selectors(&self) -> [Vec<String>; 2] {
        [selector_patterns(&self.select.only), selector_patterns(&self.select.exclude)]
    }
}

/// The environment variables that manifests may use: from the option `allow_env`, or else from
/// UNDRIFT_ALLOW_ENV.
pub(super) fn read_allowed_variables(
    allow_env: &[String],
    env: &Environment,
) -> Result<AllowedVariables> {
    let (name, globs) = match env.get(ALLOW_VARIABLE) {
        _ if !allow_env.is_empty() => {
            ("--allow-env", allow_env.iter().map(String::as_str).collect())
        }
        Some(globs) => (ALLOW_VARIABLE, split_words(globs).collect::<Vec<_>>()),
        None => return Ok(AllowedVariables::default()),
    };
    AllowedVariables::from_globs(globs).map_err(|reason| {
        CommandError::usage(format!("{name}: {reason}")).help("write a glob such as `SHOP_*`")
    })
}

impl RunContext {
    /// The environment for loading manifests that may use the environment variables in `allow_env`.
    pub(in crate::cli) fn make_load_environment(
        &self,
        allow_env: &[String],
    ) -> Result<LoadEnvironment> {
        let variables = read_allowed_variables(allow_env, &self.env)?;
        Ok(LoadEnvironment { variables, ..LoadEnvironment::for_process() })
    }
}

/// The selected part of the declarations.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(super) struct SelectArgs {
    /// Include only matching objects: a glob over PATH, PATH#SECTION or PATH#SECTION/ENTRY; may be
    /// repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse)]
    only: Vec<Selector>,
    /// Exclude matching objects; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse)]
    exclude: Vec<Selector>,
    /// The saved plan to apply, if there is one. Only the groups and projects in that plan are
    /// selected.
    #[arg(skip)]
    pub(super) saved_plan: Option<Arc<SavedPlan>>,
}

impl SelectArgs {
    /// True if the selection may contain a group or project that no document in `desired` declares:
    /// one that a rule includes, or an unlisted project of a selected group with a policy for unlisted
    /// projects.
    pub(super) fn may_include_undeclared(&self, desired: &Desired) -> bool {
        if let Some(saved_plan) = &self.saved_plan {
            let declared_paths: BTreeSet<_> =
                desired.containers.iter().map(|container| &*container.path).collect();
            return saved_plan
                .containers
                .iter()
                .any(|container| !declared_paths.contains(&*container.path));
        }
        if self.only.is_empty() {
            return true;
        }
        let declared_paths: BTreeSet<_> = desired
            .containers
            .iter()
            .filter(|container| container.lifecycle.unlisted_projects.is_none())
            .map(|container| container.path.to_lowercase())
            .collect();
        let mut paths = self.only.iter().map(|selector| selector.pattern().split('#').next());
        !paths.all(|path| declared_paths.contains(&path.unwrap_or_default().to_lowercase()))
    }

    /// Removes the containers that are not in the saved plan from `desired`, and returns them.
    pub(super) fn take_unplanned(&self, desired: &mut Desired) -> Vec<Container> {
        let Some(saved_plan) = &self.saved_plan else { return Vec::new() };
        let paths: BTreeSet<_> =
            saved_plan.containers.iter().map(|container| container.path.as_str()).collect();
        let containers = std::mem::take(&mut desired.containers);
        let (planned_containers, unplanned_containers) =
            containers.into_iter().partition(|container| paths.contains(&*container.path));
        desired.containers = planned_containers;
        unplanned_containers
    }

    /// True if everything is selected.
    pub(super) const fn is_everything(&self) -> bool {
        self.only.is_empty() && self.exclude.is_empty()
    }

    /// Removes the warnings of `loaded` for documents of groups and projects that are not selected.
    pub(super) fn drop_other_warnings(&self, loaded: &mut LoadedManifests) {
        let Some(desired) = loaded.desired.as_ref().filter(|_| !self.is_everything()) else {
            return;
        };
        let selection = self.selection();
        let document_starts = desired.containers.iter().map(|container| {
            let start_position = (FileName::clone(&container.origin.file), container.origin.line);
            (start_position, selection.may_select_part(&container.address(), &desired.moves))
        });
        let selection_by_start: BTreeMap<_, _> = document_starts.collect();
        loaded.retain_warnings(|location| {
            let Some(line) = location.line() else { return true };
            let document_start =
                selection_by_start.range(..=(location.file.clone(), line)).next_back();
            document_start
                .is_none_or(|((file, _), is_selected)| *file != location.file || *is_selected)
        });
    }

    pub(super) fn selection(&self) -> Selection {
        Selection { only: self.only.clone(), exclude: self.exclude.clone() }
    }

    /// The selected part of `desired`. Each selector must match something. This also applies to the
    /// selectors in `resend`.
    pub(super) fn select(&self, desired: Desired, resend: &[Selector]) -> Result<Desired> {
        if self.saved_plan.is_some() {
            // If a saved selector matches nothing, the plan is stale. A later check reports that.
            return Ok(self.selection().select(desired));
        }
        for selector in self.only.iter().chain(&self.exclude).chain(resend) {
            require_match(selector, &desired)?;
        }
        let selected = self.selection().select(desired);
        if selected.containers.is_empty() && !self.exclude.is_empty() {
            return Err(CommandError::usage("`--exclude` excludes everything that is selected"));
        }
        Ok(selected)
    }
}

/// Further inputs of a plan to apply.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Selection")]
pub(in crate::cli) struct ChangeArgs {
    /// Acknowledge a guard's refusal, as printed (GUARD:ADDRESS); the address may be a glob; may be
    /// repeated [env: UNDRIFT_ACK]
    #[arg(long, value_name = "GUARD:ADDRESS", value_parser = Acknowledgement::parse)]
    ack: Vec<Acknowledgement>,
    /// Resend write-only fields of matching objects; may be repeated
    #[arg(long, value_name = "GLOB", value_parser = Selector::parse)]
    pub(super) resend: Vec<Selector>,
    /// Change only the first N groups and projects that have changes, and their dependencies
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<NonZeroUsize>,
}

impl ChangeArgs {
    /// The acknowledgements from the command line, or else from UNDRIFT_ACK.
    pub(super) fn acknowledgements(&self, env: &Environment) -> Result<Vec<Acknowledgement>> {
        match env.get(ACK_VARIABLE) {
            Some(value) if self.ack.is_empty() => split_words(value)
                .map(Acknowledgement::parse)
                .collect::<Result<_, _>>()
                .map_err(|reason| CommandError::usage(format!("{ACK_VARIABLE}: {reason}"))),
            _ => Ok(self.ack.clone()),
        }
    }

    /// The options of a run that applies `saved`.
    ///
    /// # Errors
    /// If `--resend` or `--limit` is given, or a selector in `saved` is not valid.
    pub(in crate::cli) fn for_saved_plan(&self, saved: &SavedPlan) -> Result<Self> {
        if !self.resend.is_empty() || self.limit.is_some() {
            return Err(saved_plan_conflict("`--limit` and `--resend`"));
        }
        Ok(Self { resend: parse_selectors(&saved.resend)?, ..self.clone() })
    }

    /// The values of `--resend`, as written.
    pub(in crate::cli) fn resend_selectors(&self) -> Vec<String> {
        selector_patterns(&self.resend)
    }
}

fn saved_plan_conflict(options: &str) -> CommandError {
    CommandError::usage(format!("{options} cannot be combined with a saved plan"))
        .help("leave them out, or save another plan with them")
}

fn selector_patterns(selectors: &[Selector]) -> Vec<String> {
    selectors.iter().map(|selector| selector.pattern().to_owned()).collect()
}

/// Parses the selectors of a saved plan.
fn parse_selectors(patterns: &[String]) -> Result<Vec<Selector>> {
    let selectors = patterns.iter().map(|glob| Selector::parse(glob)).collect::<Result<_, _>>();
    selectors.map_err(|reason| {
        CommandError::new(Exit::Stale, anyhow::anyhow!("the saved plan: {reason}"))
    })
}

/// The holds in UNDRIFT_HOLD that apply on `today`, with warnings about expired holds.
pub(super) fn parse_holds(env: &Environment, today: Date) -> Result<(Holds, Diagnostics)> {
    let value = env.get(HOLD_VARIABLE).unwrap_or_default();
    let example_day = today.saturating_add(Span::new().days(3));
    let (holds, expired_warnings) = Holds::parse(split_words(value), today).map_err(|reason| {
        CommandError::usage(format!("{HOLD_VARIABLE}: {reason}")).help(format!(
            "for example `acme/shop#members@{example_day}`; the address may be a glob"
        ))
    })?;
    Ok((holds, expired_warnings.into_iter().collect()))
}

/// The words of a list in an environment variable.
fn split_words(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ', '\t', '\n', '\r']).filter(|word| !word.is_empty())
}

/// Refuses a selector that matches nothing. Such a selector is probably a typing error, which the
/// result "no changes" would hide.
pub(in crate::cli) fn require_match(selector: &Selector, desired: &Desired) -> Result<()> {
    let declared_addresses = || desired.containers.iter().flat_map(Container::addresses);
    let matches = |address: &Address| selector.matches(address);
    if declared_addresses().any(|declared_address| {
        matches(&declared_address)
            || desired.moves.any_former_matches(&declared_address, matches).unwrap_or(false)
    }) {
        return Ok(());
    }
    let failure =
        CommandError::usage(format!("`{}` matches nothing that is declared", selector.pattern()));
    let pattern = selector.pattern();
    let similar_addresses: Vec<_> = declared_addresses()
        .filter(|address| {
            if pattern.contains('#') { address.entry.is_some() } else { address.section.is_none() }
        })
        .map(|address| address.to_string())
        .collect();
    let full_address = similar_addresses
        .iter()
        .find(|address| address.strip_prefix(pattern).is_some_and(|scope| scope.starts_with('@')));
    let suggestion = full_address
        .map(|address| format!("did you mean `{address}`? The scope is part of the address"))
        .or_else(|| did_you_mean(pattern, similar_addresses.iter().map(String::as_str)))
        .or_else(|| suggest_address(pattern, desired, false));
    Err(failure.help(suggestion.unwrap_or_else(|| {
        "`*` matches within a path segment, `**` across segments: `acme/**`, `**#variables`".into()
    })))
}
