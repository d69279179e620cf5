//! The options of a session: which manifests, which service, which part of both, and what else a plan
//! depends on.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::civil::Date;

use crate::{
    address::Selector,
    cli::{
        connect::ConnectArgs,
        environment::Environment,
        exit::{Exit, Failure},
    },
    desired::{Acknowledgement, Container, Desired, Moves, Roster},
    diagnostic::{Diagnostics, FileName},
    manifest::Loaded,
    plan::{Holds, saved::SavedPlan},
    secret::Allowed,
    selection::Selection,
};

/// Where it is looked for which environment variables manifests may use, after `--allow-env`.
const ALLOW_NAME: &str = "UNDRIFT_ALLOW_ENV";
/// Where acknowledgements are looked for, after `--ack`.
const ACK_NAME: &str = "UNDRIFT_ACK";
/// Where holds are looked for. Only there: a hold is about one emergency, not about a command line,
/// and never about a manifest.
const HOLD_NAME: &str = "UNDRIFT_HOLD";

/// Which manifests, which service, which part of both.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct SessionArgs {
    /// Folder of manifests, or one file
    #[arg(value_name = "DIR", default_value = ".")]
    pub(in crate::cli) dir: PathBuf,
    /// Let manifests use only matching environment variables (never CI_*, GITLAB_* or UNDRIFT_*);
    /// may be repeated [env: UNDRIFT_ALLOW_ENV]
    #[arg(long, value_name = "GLOB")]
    allow_env: Vec<String>,
    #[command(flatten)]
    pub(super) select: SelectArgs,
    #[command(flatten)]
    pub(super) connect: ConnectArgs,
}

impl SessionArgs {
    /// Those of a run that chooses in its own way what it looks at: `only` this, or everything.
    pub(in crate::cli) fn choosing(
        dir: &Path,
        allow_env: &[String],
        connect: &ConnectArgs,
        only: Vec<Selector>,
    ) -> Self {
        Self {
            dir: dir.to_owned(),
            allow_env: allow_env.to_vec(),
            select: SelectArgs { only, ..SelectArgs::default() },
            connect: connect.clone(),
        }
    }

    /// Those of a run that carries out `saved`: it looks at what that is about.
    ///
    /// # Errors
    /// If something else is selected, or what `saved` selects cannot be read.
    pub(in crate::cli) fn of_saved(
        &self,
        saved: &Arc<SavedPlan>,
        dir: PathBuf,
    ) -> Result<Self, Failure> {
        if !(self.select.only.is_empty() && self.select.exclude.is_empty()) {
            return Err(Failure::usage("a saved plan says itself what it is about")
                .help("leave out `--only` and `--exclude`, or save another plan with them"));
        }
        let select = SelectArgs {
            only: selectors(&saved.only)?,
            exclude: selectors(&saved.exclude)?,
            saved: Some(Arc::clone(saved)),
        };
        Ok(Self { dir, select, ..self.clone() })
    }

    /// What is selected, as it was written: `--only` and `--exclude`.
    pub(in crate::cli) fn selected(&self) -> [Vec<String>; 2] {
        [written(&self.select.only), written(&self.select.exclude)]
    }

    /// The environment variables that manifests may use: as the options say, else as
    /// UNDRIFT_ALLOW_ENV does.
    pub(super) fn allowed(&self, env: &Environment) -> Result<Allowed, Failure> {
        let (name, globs) = match env.get(ALLOW_NAME) {
            _ if !self.allow_env.is_empty() => {
                ("--allow-env", self.allow_env.iter().map(String::as_str).collect())
            }
            Some(globs) => (ALLOW_NAME, words(globs).collect::<Vec<_>>()),
            None => return Ok(Allowed::default()),
        };
        Allowed::only(globs).map_err(|why| {
            Failure::usage(format!("{name}: {why}")).help("write a glob such as `SHOP_*`")
        })
    }
}

/// Which part of what is declared.
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
    /// What is carried out, if it was saved: nothing else is looked at.
    #[arg(skip)]
    pub(super) saved: Option<Arc<SavedPlan>>,
}

impl SelectArgs {
    /// Whether something is selected that no document of `desired` declares, for all that is known
    /// before it is read what rules bring in. What rules bring in also says of a group which projects
    /// are declared nowhere.
    pub(super) fn reaches_beyond(&self, desired: &Desired) -> bool {
        if let Some(saved) = &self.saved {
            let is_declared = |path: &str| desired.containers.iter().any(|c| *c.path == *path);
            return !saved.containers.iter().all(|container| is_declared(&container.path));
        }
        let is_declared = |selector: &Selector| {
            let path = selector.written().split('#').next().unwrap_or_default().to_lowercase();
            desired.containers.iter().any(|container| {
                container.path.to_lowercase() == path
                    && container.life.undeclared_projects.is_none()
            })
        };
        self.only.is_empty() || !self.only.iter().all(is_declared)
    }

    /// The part of what a roster says that is selected, given where it is declared to be.
    pub(super) fn of_roster(&self, mut roster: Roster, moves: &Moves) -> Roster {
        let selection = self.selection();
        roster.members.retain(|member| selection.holds_at(&member.path, moves));
        roster
    }

    /// Takes out of `desired` what a saved plan is not about.
    pub(super) fn apart(&self, desired: &mut Desired) -> Vec<Container> {
        let Some(saved) = &self.saved else { return Vec::new() };
        let paths: BTreeSet<_> = saved.containers.iter().map(|one| one.path.as_str()).collect();
        let containers = std::mem::take(&mut desired.containers);
        let (about, apart) = containers.into_iter().partition(|one| paths.contains(&*one.path));
        desired.containers = about;
        apart
    }

    /// Whether nothing is left out.
    pub(super) const fn is_everything(&self) -> bool {
        self.only.is_empty() && self.exclude.is_empty()
    }

    /// Drops the warnings of `loaded` at documents of groups and projects that are not selected.
    pub(super) fn without_others(&self, loaded: &mut Loaded) {
        let Some(desired) = loaded.desired.as_ref().filter(|_| !self.is_everything()) else {
            return;
        };
        let selection = self.selection();
        let start = |one: &Container| {
            (
                (FileName::clone(&one.origin.file), one.origin.line),
                selection.touches(one, &desired.moves),
            )
        };
        let starts: BTreeMap<_, _> = desired.containers.iter().map(start).collect();
        loaded.retain_warnings(|place| {
            let Some(line) = place.line() else { return true };
            let before = starts.range(..=(place.file.clone(), line)).next_back();
            before.is_none_or(|((file, _), is_selected)| *file != place.file || *is_selected)
        });
    }

    fn selection(&self) -> Selection {
        Selection { only: self.only.clone(), exclude: self.exclude.clone() }
    }

    /// The part of `desired` that is selected. Each selector has to match something, those that say
    /// what to `resend` too.
    pub(super) fn of(&self, desired: Desired, resend: &[Selector]) -> Result<Desired, Failure> {
        if self.saved.is_some() {
            // What it selects and is not there any more makes it stale, which is told later.
            return Ok(self.selection().of(desired));
        }
        for selector in self.only.iter().chain(&self.exclude).chain(resend) {
            selects_something(selector, &desired)?;
        }
        let selected = self.selection().of(desired);
        if selected.containers.is_empty() && !self.exclude.is_empty() {
            return Err(Failure::usage("`--exclude` excludes everything that is selected"));
        }
        Ok(selected)
    }
}

/// What else a plan to be applied depends on.
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
    /// Change only the first N groups and projects that have changes, and what those depend on
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<NonZeroUsize>,
}

impl ChangeArgs {
    /// What the command line acknowledges, or else UNDRIFT_ACK.
    pub(super) fn acknowledged(&self, env: &Environment) -> Result<Vec<Acknowledgement>, Failure> {
        match env.get(ACK_NAME) {
            Some(written) if self.ack.is_empty() => words(written)
                .map(Acknowledgement::parse)
                .collect::<Result<_, _>>()
                .map_err(|why| Failure::usage(format!("{ACK_NAME}: {why}"))),
            _ => Ok(self.ack.clone()),
        }
    }

    /// Those of a run that carries out `saved`.
    ///
    /// # Errors
    /// As [`SessionArgs::of_saved`].
    pub(in crate::cli) fn of_saved(&self, saved: &SavedPlan) -> Result<Self, Failure> {
        if !self.resend.is_empty() || self.limit.is_some() {
            return Err(Failure::usage("a saved plan says itself how far it goes")
                .help("leave out `--limit` and `--resend`, or save another plan with them"));
        }
        Ok(Self { resend: selectors(&saved.resend)?, ..self.clone() })
    }

    /// What is sent again, as it was written.
    pub(in crate::cli) fn resent(&self) -> Vec<String> {
        written(&self.resend)
    }
}

fn written(selectors: &[Selector]) -> Vec<String> {
    selectors.iter().map(|selector| selector.written().to_owned()).collect()
}

/// The selectors of a saved plan.
fn selectors(written: &[String]) -> Result<Vec<Selector>, Failure> {
    let selectors = written.iter().map(|glob| Selector::parse(glob)).collect::<Result<_, _>>();
    selectors.map_err(|why| Failure::new(Exit::Stale, anyhow::anyhow!("the saved plan: {why}")))
}

/// What UNDRIFT_HOLD says is left alone on `today`, and which of that is over.
pub(super) fn holds(env: &Environment, today: Date) -> Result<(Holds, Diagnostics), Failure> {
    let written = env.get(HOLD_NAME).unwrap_or_default();
    let (holds, over) = Holds::parse(words(written), today).map_err(|why| {
        Failure::usage(format!("{HOLD_NAME}: {why}"))
            .help("for example `acme/shop#members@2027-01-10`; the address may be a glob")
    })?;
    Ok((holds, over.into_iter().collect()))
}

/// The words of a list in an environment variable.
fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split([',', ' ', '\t', '\n', '\r']).filter(|word| !word.is_empty())
}

/// Refuses a selector that matches nothing declared: it is a slip of the pen, and "nothing to do"
/// would hide it.
pub(in crate::cli) fn selects_something(
    selector: &Selector,
    desired: &Desired,
) -> Result<(), Failure> {
    let declared = || desired.containers.iter().flat_map(Container::addresses);
    if declared().any(|address| selector.matches(&address)) {
        return Ok(());
    }
    let failure =
        Failure::usage(format!("`{}` matches nothing that is declared", selector.written()));
    let near = match selector.written().split_once('#') {
        None => declared()
            .filter(|address| address.section.is_none())
            .map(|address| address.to_string())
            .collect(),
        // The section may be misspelt behind a glob, too.
        Some((path, _)) => {
            let sections: BTreeSet<_> = declared().filter_map(|address| address.section).collect();
            let within = sections.iter().map(|section| format!("{path}#{section}"));
            let entries = declared()
                .filter(|address| address.entry.is_some())
                .map(|address| address.to_string());
            within.chain(entries).collect::<Vec<_>>()
        }
    };
    Err(match crate::text::nearest(selector.written(), near.iter().map(String::as_str)) {
        Some(near) => failure.help(format!("did you mean `{near}`?")),
        None => failure.help(
            "`*` matches within a path segment, `**` across segments: `acme/**`, `**#variables`",
        ),
    })
}
