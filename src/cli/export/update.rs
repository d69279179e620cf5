//! `export --update`: adds existing objects that the manifests lack.
//!
//! New groups and projects get documents; missing sections and entries are added to existing
//! documents. Existing text is never changed. Differences are shown as the edits that `absorb`
//! would make, and only `absorb` writes them. All files are written, or none.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{Args, find_existing, folder, report_unread, unwritten_failure};
use crate::{
    absorb::{
        self, AbsorbError, AbsorbMode, AbsorbRefusal, ContainerComparison, EditedFiles, FileTexts,
        Goal, RefusalKind,
    },
    address::{Address, Selector},
    api::ApiError,
    cli::{
        CommandError, CommandResult, Exit, Result, RunContext, Session,
        absorb::{FileEdits, ManifestEditor, compare_containers, render_edits},
    },
    desired::{Container, Desired},
    export::{self, Excerpt, ExportBuilder, ExportSettings},
    field::Scope,
    live::{LiveContainer, Presence},
    manifest::ManagedPaths,
    report::terminal::SCREEN_LINES,
    selection::Selection,
    text::{count, escape, shell_argument},
    yaml::write::{self, MapItem},
};

/// The differences between manifests and live state: additions, changes, and differences that
/// cannot be declared.
#[derive(Default)]
struct Differences {
    additions: Vec<Goal>,
    changes: Vec<Goal>,
    refusals: Vec<AbsorbRefusal>,
    /// The live texts that are not secrets.
    public_texts: BTreeSet<String>,
}

impl ManifestEditor<'_> {
    /// The declarations of all manifests.
    fn reload_desired(&self) -> Result<Desired> {
        self.reload(&FileTexts::new()).map_err(|message| self.report_invalid(&message))
    }

    fn report_invalid(&self, message: &str) -> CommandError {
        self.cx.output.eprint(message);
        let failure = unwritten_failure("the extended manifests would have errors");
        failure.help("leave out the named objects with `--exclude`, or declare them by hand")
    }

    /// Starts a document for the container at `path`, in the file that an export would use.
    fn begin_document(&mut self, scope: Scope, path: &str, watch: bool) {
        let file = self.dir.join(export::file_stem(scope, path) + ".yaml");
        let existing_name =
            self.paths.iter().find(|(_, path)| **path == file).map(|(name, _)| name);
        let name = existing_name.cloned().unwrap_or_else(|| {
            file.strip_prefix(".").unwrap_or(&file).display().to_string().into()
        });
        let old_text = self.read_text(&name).ok();
        let text = old_text.clone().unwrap_or_default();
        let separator = if text.trim().is_empty() {
            folder::modeline(&file)
        } else if text.ends_with('\n') {
            "---\n".to_owned()
        } else {
            "\n---\n".to_owned()
        };
        let mut head =
            vec![MapItem::value("kind", scope.document_kind()), MapItem::value("path", path)];
        head.extend(watch.then(|| MapItem::value("watch", true)));
        let document = write::render_document(&head);
        self.paths.entry(name.clone()).or_insert(file);
        self.old_texts.entry(name.clone()).or_insert(old_text);
        self.new_texts.insert(name, text + &separator + &document);
    }

    /// Edits the manifests so that they declare `goals`. Adds refusals for goals that no edit can reach, and
    /// returns the other goals with the edits.
    fn edit_texts(
        &self,
        desired: &Desired,
        mut goals: Vec<Goal>,
        refusals: &mut Vec<AbsorbRefusal>,
    ) -> Result<(EditedFiles, Vec<Goal>)> {
        loop {
            match self.absorb(desired, &goals, AbsorbMode::OwnDocument) {
                Ok(edits) => return Ok((edits, goals)),
                Err(AbsorbError::InvalidResult(message)) => {
                    return Err(self.report_invalid(&message));
                }
                Err(AbsorbError::Refused(new_refusals)) => {
                    let old_count = goals.len();
                    let addresses: BTreeSet<_> =
                        new_refusals.iter().map(|refusal| &refusal.address).collect();
                    goals.retain(|goal| !addresses.contains(&goal.address));
                    if goals.len() == old_count {
                        return Err(unwritten_failure("an edit failed"));
                    }
                    refusals.extend(new_refusals);
                }
            }
        }
    }

    /// The old and new text of each file.
    fn list_edits(&self) -> FileEdits {
        let files = self.new_texts.iter().map(|(name, new_text)| {
            let old_text = self.old_texts[name].clone().unwrap_or_default();
            (name.clone(), (old_text, new_text.clone()))
        });
        files.collect()
    }
}

/// Runs the command.
pub(super) async fn run(args: &Args, cx: &RunContext) -> CommandResult {
    let (editor, manifests) = ManifestEditor::load(&args.dir, &[], cx)?;
    let (desired, managed_paths) = (manifests.desired.clone(), manifests.config.manages.clone());
    let session = editor.open_session(manifests, &args.connect.clone().into()).await?;
    update(args, editor, managed_paths.as_ref(), desired, &session).await
}

async fn update(
    args: &Args,
    mut editor: ManifestEditor<'_>,
    managed_paths: Option<&ManagedPaths>,
    mut desired: Desired,
    session: &Session,
) -> CommandResult {
    let cx = editor.cx;
    let settings = args.read_settings(&session.observer, managed_paths).await?;
    let existing = find_existing(args, &settings, &session.observer, cx).await?;
    let selected_containers = &existing.containers;
    let mut new_paths: BTreeSet<&str> = selected_containers.keys().map(String::as_str).collect();
    for container in &desired.containers {
        for path in container.former_paths().chain([&*container.path]) {
            new_paths.remove(&*path.to_lowercase());
        }
    }
    let is_selected =
        |container: &&Container| selected_containers.contains_key(&container.path.to_lowercase());
    let missing_containers = desired
        .containers
        .iter()
        .filter(|declared| !new_paths.is_empty() && !is_selected(declared));
    let (renamed_refusals, unlocated_refusals) = find_renamed(missing_containers, session).await?;
    new_paths.retain(|lower_path| {
        unlocated_refusals.is_empty() && !renamed_refusals.contains_key(*lower_path)
    });
    for (scope, path) in new_paths.iter().map(|lower_path| &selected_containers[*lower_path]) {
        editor.begin_document(*scope, path, args.watch);
    }
    if !new_paths.is_empty() {
        desired = editor.reload_desired()?;
    }
    let containers: Vec<&Container> = desired.containers.iter().filter(is_selected).collect();
    let mut builder = ExportBuilder::new(settings.clone(), existing.pending_deletion.clone());
    let Differences { additions, changes, mut refusals, public_texts } =
        find_differences(&containers, &new_paths, &settings, &mut builder, session, cx).await?;
    let renamed_refusals = renamed_refusals
        .into_iter()
        .filter(|(lower_path, _)| selected_containers.contains_key(lower_path));
    refusals.extend(renamed_refusals.map(|(_, refusal)| refusal));
    refusals.extend(unlocated_refusals);
    let is_complete = report_unread(&mut builder, args, cx)?;
    let (addition_edits, additions) = editor.edit_texts(&desired, additions, &mut refusals)?;
    editor.store_edits(&addition_edits);
    let (change_edits, changes) =
        editor.edit_texts(&editor.reload_desired()?, changes, &mut refusals)?;
    print_edits(&editor.list_edits(), &change_edits.files, &public_texts, cx)?;
    for AbsorbRefusal { address, reason, .. } in &refusals {
        cx.output
            .eprint(&format!("warning: not added: {}: {reason}\n", escape(&address.to_string())));
    }
    editor.write()?;
    cx.output.eprint(&summary_text(
        args,
        new_paths.len(),
        &additions,
        &changes,
        editor.new_texts.len(),
    ));
    Ok(Exit::Incomplete.only_if(!is_complete || !refusals.is_empty()))
}

/// Prints the edits that add entries, and the edits for `differences`, which are not written. Both
/// share the lines of the screen.
fn print_edits(
    additions: &FileEdits,
    differences: &FileEdits,
    public_texts: &BTreeSet<String>,
    cx: &RunContext,
) -> Result<()> {
    let (output, style) = (&cx.output, cx.output.style);
    let max_lines = if differences.is_empty() { SCREEN_LINES } else { SCREEN_LINES / 2 };
    output.print(&render_edits(additions, public_texts, max_lines, style))?;
    if !differences.is_empty() {
        output.print("\ndifferent in the manifests; not written:\n")?;
        output.print(&render_edits(differences, public_texts, max_lines, style))?;
    }
    Ok(())
}

/// Finds `containers` that were renamed on the service. Returns a refusal for each of them, by its
/// new path in lower case, and refusals for the containers whose new path is unknown.
async fn find_renamed(
    containers: impl Iterator<Item = &Container>,
    session: &Session,
) -> Result<(BTreeMap<String, AbsorbRefusal>, Vec<AbsorbRefusal>), ApiError> {
    let bare_containers: Vec<Container> = containers
        .map(|container| {
            let mut bare_container = Container { sections: Vec::new(), ..container.clone() };
            bare_container.lifecycle.unlisted_projects = None;
            bare_container
        })
        .collect();
    let collected_refusals = RefCell::<(BTreeMap<_, _>, Vec<_>)>::default();
    let classify_container = async |container: &Container, live: LiveContainer| {
        let (path, origin) = (escape(&container.path), &container.origin);
        let reason = match live.presence {
            Presence::Existing(..) | Presence::Missing(_) | Presence::MissingNamespace(_) => {
                return Ok(());
            }
            Presence::Redirected { new_path: Some(destination) } => {
                let new_path = escape(&destination);
                let refusal_reason = format!(
                    "it is `{path}`, renamed by hand: write `{new_path}` instead in {origin}"
                );
                let refusal = AbsorbRefusal::new(
                    &Address::container(destination.as_str().into()),
                    refusal_reason,
                );
                collected_refusals.borrow_mut().0.insert(destination.to_lowercase(), refusal);
                return Ok(());
            }
            Presence::Redirected { new_path: None } => "it was renamed by hand".to_owned(),
            Presence::Ambiguous { other_path: other, .. } => {
                format!("`{}` exists too", escape(&other))
            }
            Presence::PartlyMoved { intermediate_path: at, .. } => {
                format!("something exists at `{}`", escape(&at))
            }
            Presence::Unreadable(cause) => cause.to_string(),
        };
        let refusal_reason =
            format!("{reason}; each new group or project may be this one, so none is added");
        collected_refusals
            .borrow_mut()
            .1
            .push(AbsorbRefusal::new(&container.address(), refusal_reason));
        Ok(())
    };
    session.observer.read_all(&bare_containers, session.concurrency, classify_container).await?;
    let (renamed_refusals, mut unlocated_refusals) = collected_refusals.into_inner();
    unlocated_refusals.sort_by(|a, b| a.address.cmp(&b.address));
    Ok((renamed_refusals, unlocated_refusals))
}

/// Reads `containers` and separates their differences into additions, changes and refusals. Containers
/// with a lower-case path in `new_paths` are new.
async fn find_differences(
    containers: &[&Container],
    new_paths: &BTreeSet<&str>,
    settings: &ExportSettings,
    builder: &mut ExportBuilder,
    session: &Session,
    cx: &RunContext,
) -> Result<Differences> {
    let only = ["**", "**#*/**"].map(Selector::parse).into_iter().flatten().collect();
    let all_objects = Selection { only, exclude: Vec::new() };
    let mut differences = Differences::default();
    let collect_differences = |comparison: &ContainerComparison<'_>| {
        let ContainerComparison { container, live, names, .. } = comparison;
        let (goals, refusals) = absorb::find_drift(comparison, &all_objects);
        let goals = goals.into_iter().filter(|goal| settings.selects_address(&goal.address));
        let (additions, changes): (Vec<_>, Vec<_>) =
            goals.partition(|goal| goal.is_addition(container));
        builder.add(container.scope, &container.path, live, names);
        let is_new = new_paths.contains(container.path.to_lowercase().as_str());
        let mut all_additions = absorb::find_undeclared(comparison, is_new);
        all_additions.extend(additions);
        // A text that is not secret in this container may be a secret in another one.
        let excerpt =
            comparison.excerpt.filter(|_| !all_additions.is_empty() || !changes.is_empty());
        differences.public_texts.extend(excerpt.into_iter().flat_map(Excerpt::texts));
        differences.additions.extend(all_additions);
        differences.changes.extend(changes);
        // Unread sections are skipped here: `report_unread` reports them.
        let other_refusals =
            refusals.into_iter().filter(|refusal| refusal.kind != RefusalKind::Unread);
        differences
            .refusals
            .extend(other_refusals.filter(|refusal| settings.selects_address(&refusal.address)));
    };
    compare_containers(
        session,
        containers,
        (export::widen_to_all_sections, settings),
        cx,
        collect_differences,
    )
    .await?;
    differences.additions.sort_by(|a, b| a.address.cmp(&b.address));
    differences.changes.sort_by(|a, b| a.address.cmp(&b.address));
    differences.refusals.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(differences)
}

fn summary_text(
    args: &Args,
    new_count: usize,
    additions: &[Goal],
    changes: &[Goal],
    file_count: usize,
) -> String {
    let counts = [(new_count, "new group or project"), (additions.len(), "entry")];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    let count_texts: Vec<_> = counts.map(|(number, noun)| count(number, noun)).collect();
    let summary = if count_texts.is_empty() {
        "nothing to add\n".to_owned()
    } else {
        format!("added {} to {}\n", count_texts.join(" with "), count(file_count, "file"))
    };
    let dir = shell_argument(&args.dir.display().to_string());
    match changes.iter().map(Goal::count_differences).sum() {
        0 => summary,
        number => format!(
            "{summary}{} not written; to write one, run `undrift absorb ADDRESS -d {dir} --write`\n",
            count(number, "difference")
        ),
    }
}
