//! `export --update`: adds existing objects that the manifests lack.
//!
//! New groups and projects get documents; missing sections and entries are added to existing
//! documents. Existing text is never changed: differences are shown as edits of `absorb`, and only
//! `absorb` writes them. All files are written, or none.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{Args, folder, found, nothing_written, tell_unread};
use crate::{
    absorb::{self, Absorbed, Compared, Contents, Failed, Goal, Mode, Refusal},
    address::{Address, Selector},
    api::ApiError,
    cli::{
        Context, Exit, Failure, Manifests, Opening, Outcome, Session, SessionArgs,
        absorb::{Texts, compare, shown},
        usable,
    },
    desired::{Container, Desired},
    diagnostic::FileName,
    export::{self, Estate, Excerpt, Settings},
    field::Scope,
    live::{Live, Presence},
    manifest::{self, Manages, Surroundings},
    report::terminal::SCREEN,
    selection::Selection,
    text::{count, escape},
    yaml::write::{self, Item},
};

/// The additions, the differences, and objects that cannot be declared.
#[derive(Default)]
struct Sorted {
    additions: Vec<Goal>,
    changes: Vec<Goal>,
    refused: Vec<Refusal>,
    /// The texts that are live and no secrets.
    plain: BTreeSet<String>,
}

impl Texts<'_> {
    /// The declarations of all manifests.
    fn desired(&self) -> Result<Desired, Failure> {
        self.reload(&Contents::new()).map_err(|why| self.wrong(&why))
    }

    fn wrong(&self, why: &str) -> Failure {
        self.cx.output.tell(why);
        let failure = nothing_written("the extended manifests would have errors");
        failure.help("leave out what is named with `--exclude`, or declare it by hand")
    }

    /// Starts a document for the container at `path`, in the file that an export would use.
    fn begin(&mut self, scope: Scope, path: &str, watch: bool) {
        let place = self.dir.join(export::stem(scope, path) + ".yaml");
        let name = self.paths.iter().find(|(_, known)| **known == place).map(|(name, _)| name);
        let name = name.cloned().unwrap_or_else(|| {
            place.strip_prefix(".").unwrap_or(&place).display().to_string().into()
        });
        let before = self.read(&name).ok();
        let text = before.clone().unwrap_or_default();
        let between = match text.trim().is_empty() {
            true => folder::modeline(&place),
            false if text.ends_with('\n') => "---\n".to_owned(),
            false => "\n---\n".to_owned(),
        };
        let watch = watch.then(|| Item::value("watch", true));
        let head = [Item::value("kind", scope.document()), Item::value("path", path)];
        let document = write::document(&head.into_iter().chain(watch).collect::<Vec<_>>());
        self.paths.entry(name.clone()).or_insert(place);
        self.old.entry(name.clone()).or_insert(before);
        self.new.insert(name, text + &between + &document);
    }

    /// Edits the texts so that they declare the live values; refuses what cannot be edited.
    fn edited(
        &self,
        before: &Desired,
        mut goals: Vec<Goal>,
        refused: &mut Vec<Refusal>,
    ) -> Result<(Absorbed, Vec<Goal>), Failure> {
        let (read, reload) = (|file: &FileName| self.read(file), |texts: &_| self.reload(texts));
        loop {
            match absorb::absorb(before, &goals, Mode::Own, &read, &reload) {
                Ok(absorbed) => return Ok((absorbed, goals)),
                Err(Failed::Wrong(why)) => return Err(self.wrong(&why)),
                Err(Failed::Refused(some)) => {
                    let number = goals.len();
                    goals.retain(|goal| some.iter().all(|it| it.address != goal.address));
                    if goals.len() == number {
                        return Err(nothing_written("an edit failed"));
                    }
                    refused.extend(some);
                }
            }
        }
    }

    /// The old and new text of each file.
    fn files(&self) -> BTreeMap<FileName, (String, String)> {
        let file = |(name, new): (&FileName, &String)| {
            let old = self.old[name].clone().unwrap_or_default();
            (name.clone(), (old, new.clone()))
        };
        self.new.iter().map(file).collect()
    }
}

/// Runs the command.
pub(super) async fn run(args: &Args, cx: &Context) -> Outcome {
    let around = Surroundings::of_process();
    let loaded = manifest::load(&args.dir, &around);
    let (paths, manages) = (loaded.paths(), loaded.config.manages.clone());
    let manifests = usable(loaded, cx)?;
    let desired = manifests.desired.clone();
    let manifests = Manifests { includes: None, ..manifests };
    let of_session = SessionArgs::choosing(&args.dir, &[], &args.connect, Vec::new());
    let session = Opening::of(&of_session).with(manifests, around.today, cx).await?;
    let texts = Texts::new(&args.dir, &around, paths, cx);
    update(args, texts, manages.as_ref(), desired, &session).await
}

async fn update(
    args: &Args,
    mut texts: Texts<'_>,
    manages: Option<&Manages>,
    mut desired: Desired,
    session: &Session,
) -> Outcome {
    let cx = texts.cx;
    let settings = args.settings(&session.observer, manages).await?;
    let existing = found(args, &settings, &session.observer, cx).await?;
    let names = |container: &Container| -> Vec<String> {
        container.former().chain([&*container.path]).map(str::to_lowercase).collect()
    };
    let known: BTreeSet<String> = desired.containers.iter().flat_map(names).collect();
    let selected = existing.containers.iter();
    let selected: BTreeMap<&str, &(Scope, _)> =
        selected.map(|(lower, found)| (lower.as_str(), found)).collect();
    let mut new: BTreeSet<&str> =
        selected.keys().copied().filter(|lower| !known.contains(*lower)).collect();
    let lower = |container: &Container| container.path.to_lowercase();
    let elsewhere = |one: &&Container| !new.is_empty() && !selected.contains_key(&*lower(one));
    let (renamed, lost) = moved(desired.containers.iter().filter(elsewhere), session).await?;
    new.retain(|lower| lost.is_empty() && !renamed.contains_key(*lower));
    for (scope, path) in new.iter().map(|lower| selected[lower]) {
        texts.begin(*scope, path, args.watch);
    }
    if !new.is_empty() {
        desired = texts.desired()?;
    }
    let containers = desired.containers.iter();
    let containers = containers.filter(|one| selected.contains_key(lower(one).as_str()));
    let containers: Vec<&Container> = containers.collect();
    let is_new = |container: &Container| new.contains(lower(container).as_str());
    let mut estate = Estate::new(settings.clone(), existing.deleting.clone());
    let Sorted { additions, changes, mut refused, plain } =
        sort(&containers, is_new, &settings, &mut estate, session, cx).await?;
    refused
        .extend(renamed.into_iter().filter(|(at, _)| selected.contains_key(&**at)).map(|it| it.1));
    refused.extend(lost);
    let is_read = tell_unread(&mut estate, args, cx)?;
    let (added, additions) = texts.edited(&desired, additions, &mut refused)?;
    texts.take(&added);
    let (changed, changes) = texts.edited(&texts.desired()?, changes, &mut refused)?;
    // Both share the screen.
    let most = if changes.is_empty() { SCREEN } else { SCREEN / 2 };
    let style = cx.output.style;
    cx.output.print(&shown(&texts.files(), &plain, most, style))?;
    if !changes.is_empty() {
        cx.output.print("\ndifferent in the manifests; not written:\n")?;
        cx.output.print(&shown(&changed.files, &plain, most, style))?;
    }
    for Refusal { address, why, .. } in &refused {
        cx.output.tell(&format!("warning: not added: {}: {why}\n", escape(&address.to_string())));
    }
    texts.write()?;
    cx.output.tell(&summary(args, new.len(), &additions, &changes, texts.new.len()));
    Ok(Exit::Incomplete.when(!is_read || !refused.is_empty()))
}

/// Those of `declared` that were renamed by hand, by their present path in lower case, and those
/// that may have any path: each with the reason why nothing is added for it.
async fn moved(
    declared: impl Iterator<Item = &Container>,
    session: &Session,
) -> Result<(BTreeMap<String, Refusal>, Vec<Refusal>), ApiError> {
    let bare = |container: &Container| {
        let mut bare = Container { sections: Vec::new(), ..container.clone() };
        bare.life.unlisted_projects = None;
        bare
    };
    let declared: Vec<_> = declared.map(bare).collect();
    let found = RefCell::<(BTreeMap<_, _>, Vec<_>)>::default();
    let look = async |container: &Container, live: Live| {
        let (path, origin) = (escape(&container.path), &container.origin);
        let why = match live.presence {
            Presence::Here(..) | Presence::Missing(_) | Presence::NoNamespace(_) => return Ok(()),
            Presence::Moved { to: Some(to) } => {
                let new = escape(&to);
                let why =
                    format!("it is `{path}`, renamed by hand: write `path: {new}` in {origin}");
                let refusal = Refusal::new(&Address::container(to.as_str().into()), why);
                found.borrow_mut().0.insert(to.to_lowercase(), refusal);
                return Ok(());
            }
            Presence::Moved { to: None } => "it was renamed by hand".to_owned(),
            Presence::Twice { other, .. } => format!("`{}` exists too", escape(&other)),
            Presence::Halfway { at, .. } => format!("something exists at `{}`", escape(&at)),
            Presence::Unreadable(cause) => cause.to_string(),
        };
        let why = format!("{why}; each new group or project may be this one, so none is added");
        let refusal = Refusal::new(&container.address(), why);
        found.borrow_mut().1.push(refusal);
        Ok(())
    };
    let declared: Vec<_> = declared.iter().collect();
    session.observer.all(&declared, session.ahead, look).await?;
    let (renamed, mut lost) = found.into_inner();
    lost.sort_by(|a, b| a.address.cmp(&b.address));
    Ok((renamed, lost))
}

/// Reads `containers`, and sorts their differences from the manifests.
async fn sort(
    containers: &[&Container],
    is_new: impl Fn(&Container) -> bool,
    settings: &Settings,
    estate: &mut Estate,
    session: &Session,
    cx: &Context,
) -> Result<Sorted, Failure> {
    let only = ["**", "**#*/**"].map(Selector::parse).into_iter().flatten().collect();
    let chosen = Selection { only, exclude: Vec::new() };
    let is_meant = |address: &Address| settings.holds(address);
    let mut sorted = Sorted::default();
    let each = |seen: &Compared<'_>| {
        let Compared { container, live, names, .. } = seen;
        let (goals, refused) = absorb::drift(seen, &chosen);
        let goals = goals.into_iter().filter(|goal| is_meant(&goal.address));
        let (found, changes): (Vec<_>, Vec<_>) =
            goals.partition(|goal| goal.is_addition(container));
        estate.add(container.scope, &container.path, live, names);
        let before = sorted.additions.len();
        sorted.additions.extend(absorb::lacking(seen, is_new(container)));
        sorted.additions.extend(found);
        // What is no secret here may be one elsewhere.
        let is_edited = sorted.additions.len() > before || !changes.is_empty();
        let words = seen.words.filter(|_| is_edited).into_iter();
        sorted.plain.extend(words.flat_map(Excerpt::texts));
        sorted.changes.extend(changes);
        // The estate reports sections that were not read.
        let refused = refused.into_iter().filter(|it| !it.is_unread && is_meant(&it.address));
        sorted.refused.extend(refused);
    };
    compare(session, containers, (export::whole, settings), cx, each).await?;
    sorted.additions.sort_by(|a, b| a.address.cmp(&b.address));
    sorted.changes.sort_by(|a, b| a.address.cmp(&b.address));
    sorted.refused.sort_by(|a, b| a.address.cmp(&b.address));
    Ok(sorted)
}

fn summary(args: &Args, new: usize, added: &[Goal], changes: &[Goal], files: usize) -> String {
    let counted = [(new, "new group or project"), (added.len(), "entry")];
    let counted = counted.into_iter().filter(|(number, _)| *number > 0);
    let counted: Vec<_> = counted.map(|(number, noun)| count(number, noun)).collect();
    let added = match counted.is_empty() {
        true => "nothing to add\n".to_owned(),
        false => format!("added {} to {}\n", counted.join(" with "), count(files, "file")),
    };
    let dir = args.dir.display();
    match changes.iter().map(Goal::differences).sum() {
        0 => added,
        number => format!(
            "{added}{} not written; to write one, run `undrift absorb ADDRESS -d {dir} --write`\n",
            count(number, "difference")
        ),
    }
}
