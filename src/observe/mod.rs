//! Reading the live state of declared containers, and nothing else.
//!
//! In: what is declared, and a client that cannot write. Out: a [`Live`] for each container. It
//! knows no plan: what a plan needs besides, it is [asked for](Observer::answer). It reads each
//! object once: projects from list pages where that costs less than single reads, collections only
//! for sections that are declared. What fails to be read becomes `Unreadable` for its container or
//! section and never looks like absence; only what makes every further read pointless (the token,
//! the address, a budget) ends a run.

mod exist;
mod find;
mod lookups;
mod place;
mod roster;
mod wanted;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, future, stream};
use tokio::sync::mpsc;

pub use exist::Existing;
use find::{Found, Seen};
use lookups::LookUps;

use crate::{
    api::{ApiError, ReadClient},
    cause::Cause,
    desired::{Container, Creation, DeclaredSection, Moves, State},
    field::{Named, Scope},
    kind::{Facts, Id, LiveEntry, Names, Namespace, Place, Section, Target, forms},
    kinds,
    level::MAINTAINER,
    live::{Caller, Collection, Inherited, Live, OwnAccess, Presence, Question, Token},
    operation::{self, Op, Read, Request},
    page::{Complete, Rows},
    release::Known,
    text,
    value::{Json, Object},
};

/// The header by which the sandbox says what it is, in every answer.
const SANDBOX_HEADER: &str = "x-undrift-sandbox";

/// How many projects that lists brought may wait to be read: enough to have the next ones while a
/// page is on its way, and few, whatever the number of projects.
const QUEUED: usize = 256;

/// Reads live state.
pub struct Observer {
    client: ReadClient,
    caller: Caller,
    sandbox: bool,
    ids: LookUps<Option<u64>>,
    namespaces: LookUps<Option<Namespace>>,
    inherited: LookUps<Inherited>,
    groups_above: LookUps<Arc<Object>>,
    /// What is declared to have had other paths.
    moves: Arc<Moves>,
    /// Where the groups among that are.
    places: LookUps<String>,
    release: LookUps<Known>,
    called: LookUps<Option<String>>,
    /// Declared fields that single answers lack as well as list answers, so that asking again
    /// brings nothing.
    in_no_answer: Mutex<BTreeSet<String>>,
    /// What the roster brought, until it is looked at.
    rows: Mutex<roster::Rows>,
}

impl Observer {
    /// Asks the service who the token belongs to.
    ///
    /// # Errors
    /// [`ApiError`] if the service cannot be reached or does not accept the token.
    pub async fn connect(client: ReadClient) -> Result<Self, ApiError> {
        let answer =
            client.get_known(operation::CURRENT_USER.request(), &["id", "username"]).await?;
        let field = |name| answer.body.get(name).cloned().unwrap_or_default();
        let caller = Caller {
            id: field("id").as_u64().unwrap_or_default(),
            username: field("username").as_str().unwrap_or_default().to_owned(),
            administrator: field("is_admin") == true,
        };
        let sandbox = answer.headers.contains_key(SANDBOX_HEADER);
        Ok(Self {
            client,
            caller,
            sandbox,
            ids: LookUps::default(),
            namespaces: LookUps::default(),
            inherited: LookUps::default(),
            groups_above: LookUps::default(),
            moves: Arc::default(),
            places: LookUps::default(),
            release: LookUps::default(),
            called: LookUps::default(),
            in_no_answer: Mutex::default(),
            rows: Mutex::default(),
        })
    }

    /// With what is declared to have had other paths.
    #[must_use]
    pub fn following(self, moves: Arc<Moves>) -> Self {
        Self { moves, ..self }
    }

    /// Who asks.
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What the token is; `None` if the service does not tell, as of a job's own token.
    ///
    /// # Errors
    /// [`ApiError`] if going on with anything would be pointless.
    pub async fn token(&self) -> Result<Option<Token>, ApiError> {
        match self.client.get(operation::OWN_TOKEN.request()).await {
            Ok(answer) => Ok(answer.object().and_then(Token::read)),
            // Whether it may be told says nothing about what the token may.
            Err(error) if error.status().is_some() => Ok(None),
            Err(error) if ends_everything(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Whether the service says of itself that it is undrift's sandbox.
    pub const fn is_sandbox(&self) -> bool {
        self.sandbox
    }

    /// The client that it reads with.
    pub const fn client(&self) -> &ReadClient {
        &self.client
    }

    /// Reads `containers`, `ahead` of them at a time, and hands each over as soon as it is
    /// complete, in no particular order.
    ///
    /// # Errors
    /// [`ApiError`] if going on would be pointless. Containers may have been handed over before.
    pub async fn all<'c>(
        &self,
        containers: &[&'c Container],
        ahead: usize,
        each: impl AsyncFn(&'c Container, Live) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let (sender, receiver) = mpsc::channel(QUEUED);
        let listing = async {
            let rest = self.find_in_lists(containers, &sender).await?;
            for container in rest {
                let _ = sender.send((container, None)).await;
            }
            drop(sender);
            Ok::<_, ApiError>(())
        };
        let found = stream::unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        });
        let reading = found
            .map(|(container, seen): (&'c Container, Option<Seen>)| {
                let each = &each;
                async move { each(container, self.one(container, seen).await?).await }
            })
            .buffer_unordered(ahead)
            .try_collect::<()>();
        future::try_join(listing, reading).await.map(|_| ())
    }

    /// Reads one container and its declared sections: the one with this `id`, if it was found or
    /// created before.
    ///
    /// # Errors
    /// [`ApiError`] if going on with anything would be pointless.
    pub async fn container(
        &self,
        container: &Container,
        id: Option<u64>,
    ) -> Result<Live, ApiError> {
        let found = self.point_read(container, id).await;
        self.read(container, found).await
    }

    /// Reads again the sections of `live` that `stale` names, and takes the rest as it is. A group
    /// itself is looked at in any case: it may have another path by now, and requests go by the id.
    ///
    /// # Errors
    /// As [`Self::container`].
    pub async fn again(
        &self,
        container: &Container,
        mut live: Live,
        stale: &BTreeSet<&'static str>,
    ) -> Result<Live, ApiError> {
        let sections = stale.iter().filter_map(|name| container.section(name));
        let (objects, lists): (Vec<_>, Vec<_>) =
            sections.partition(|section| section.of.is_in_object());
        let Presence::Here(target, facts) = &live.presence else {
            return self.container(container, None).await;
        };
        let (mut target, mut facts) = (target.clone(), facts.clone());
        if !objects.is_empty() || facts.arrival.is_some() || target.scope == Scope::Group {
            match self.point_read(container, target.id).await {
                Ok(Found::Here(seen)) => {
                    (target, facts) = (seen.target.clone(), seen.facts.clone());
                    live.take_in(seen);
                }
                Ok(Found::Not(presence)) => return self.absent(container, presence).await,
                Err(error) if ends_everything(&error) => return Err(error),
                Err(error) => {
                    return Ok(Live::of(Presence::Unreadable(Cause::from(&error)), self.now()));
                }
            }
        }
        // What has not arrived is not looked at.
        let is_read =
            !matches!(&live.presence, Presence::Here(_, facts) if facts.arrival.is_some());
        for section in lists.into_iter().filter(|_| is_read) {
            let collection = self.section(section, &target, &facts).await?;
            live.sections.insert(section.of.section, collection);
        }
        // What is no longer there may have to be named now.
        for section in stale.iter().filter_map(|name| container.section(name)) {
            let name = section.of.section;
            let Some(collection) = live.sections.remove(name) else { continue };
            match self.names_in(section, &collection).await {
                Ok(names) => {
                    live.names.extend(names);
                    let collection = self.with_declared_names(section, collection, &live.names);
                    live.sections.insert(name, collection);
                }
                Err(error) if ends_everything(&error) => return Err(error),
                Err(error) => {
                    live.sections.insert(name, Collection::Unreadable(Cause::from(&error)));
                }
            }
        }
        live.read_at = self.now();
        Ok(live)
    }

    /// Answers what a plan asked about a container.
    ///
    /// # Errors
    /// As [`Self::container`].
    pub async fn answer(
        &self,
        container: &Container,
        live: &mut Live,
        questions: &[Question],
    ) -> Result<(), ApiError> {
        for question in questions {
            match question {
                Question::Inherited => {
                    let home = self.live_path(&container.path).await?;
                    live.inherited = Some(self.above(&home).await?);
                }
                Question::InheritedBefore => {
                    if let Presence::Here(Target { former: Some(former), .. }, _) = &live.presence {
                        live.inherited_before = Some(self.above(&former.path).await?);
                    }
                }
                Question::GroupAbove => {
                    let home = self.live_path(&container.path).await?;
                    live.group_above = Some(self.group_above(&home).await?);
                }
                Question::Own => live.own = Some(self.own_access(container, live).await?),
                Question::Entries(name) => {
                    let entries = self.entries(container, live, name).await?;
                    live.names.insert_entries(name, entries);
                }
                Question::Release => live.release = self.release().await?,
            }
        }
        Ok(())
    }

    async fn one(&self, container: &Container, seen: Option<Seen>) -> Result<Live, ApiError> {
        let found = match seen {
            Some(seen) => self.completed(container, seen).await,
            None => self.read_by_path(container).await,
        };
        self.read(container, found).await
    }

    /// Reads the declared sections of what was `found`.
    async fn read(
        &self,
        container: &Container,
        found: Result<Found, ApiError>,
    ) -> Result<Live, ApiError> {
        match found {
            Ok(Found::Here(seen)) => {
                let live = self.here(container, seen).await?;
                self.unless_gone(container, live).await
            }
            Ok(Found::Not(presence)) => self.absent(container, presence).await,
            Err(error) if ends_everything(&error) => Err(error),
            Err(error) => Ok(Live::of(Presence::Unreadable(Cause::from(&error)), self.now())),
        }
    }

    /// `live`, unless the container was brought in by a rule and is gone since: then nothing of it
    /// is found, and that is no failure.
    async fn unless_gone(&self, container: &Container, live: Live) -> Result<Live, ApiError> {
        let is_not_found = |collection: &Collection| matches!(collection, Collection::Unreadable(cause) if cause.status == Some(404));
        if container.brought_in.is_none() || !live.sections.values().any(is_not_found) {
            return Ok(live);
        }
        match self.read_by_path(container).await {
            Ok(Found::Not(presence)) => Ok(Live::of(presence, self.now())),
            Err(error) if ends_everything(&error) => Err(error),
            Ok(Found::Here(_)) | Err(_) => Ok(live),
        }
    }

    fn rows(&self) -> MutexGuard<'_, roster::Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a container that is not there. What its sections name is looked up if it is
    /// about to be created.
    async fn absent(&self, container: &Container, presence: Presence) -> Result<Live, ApiError> {
        let creates = matches!(presence, Presence::Missing(_) | Presence::NoNamespace(_))
            && matches!(container.create, Creation::Allowed(_));
        let mut live = Live::of(presence, self.now());
        if let Some(fields) = container.create.fields().filter(|_| creates) {
            let (own, _) = kinds::container(container.scope);
            for (_, named, name) in forms::named_by(own, &fields.values()) {
                match self.id(named, &name).await {
                    Ok(id) => live.names.insert(named, &name, id),
                    Err(error) if ends_everything(&error) => return Err(error),
                    Err(error) => {
                        let why = format!("`{}` could not be looked up", text::escape(&name));
                        let presence = Presence::Unreadable(Cause::from(&error).context(why));
                        return Ok(Live::of(presence, self.now()));
                    }
                }
            }
        }
        for section in container.sections.iter().filter(|_| creates) {
            match self.names_in(section, &Collection::Fresh).await {
                Ok(names) => live.names.extend(names),
                Err(error) if ends_everything(&error) => return Err(error),
                Err(error) => {
                    let unread = Collection::Unreadable(Cause::from(&error));
                    live.sections.insert(section.of.section, unread);
                }
            }
        }
        Ok(live)
    }

    /// Forgets what was looked up about the container at `path`, which got there since.
    pub fn appeared(&self, path: &str) {
        self.places.clear();
        let path = path.to_lowercase();
        self.ids.forget(&lookups::group_key(&path));
        self.ids.forget(&lookups::project_key(&path));
        self.namespaces.forget(&path);
        self.inherited.forget(&path);
        self.groups_above.forget(&path);
    }

    fn now(&self) -> Duration {
        self.client.clock().now()
    }

    /// Reads the declared sections of a container that is there.
    async fn here(&self, container: &Container, mut seen: Seen) -> Result<Live, ApiError> {
        let presence = Presence::Here(seen.target.clone(), seen.facts.clone());
        let mut live = Live::of(presence, self.now());
        let is_read = (!seen.facts.archived || container.unarchives(&seen.object))
            && seen.facts.arrival.is_none();
        let (target, facts) = (&seen.target, &seen.facts);
        let mut reads = Vec::new();
        for section in kinds::sections(container.scope)
            .filter_map(|section| container.section(section.section))
        {
            let name = section.of.section;
            let object = seen.object.remove(name).map(|part| Collection::One(Some(part)));
            let part = object.or_else(|| seen.within.remove(name).map(Collection::Within));
            if part.is_none() && !is_read {
                continue;
            }
            reads.push(async move {
                let collection = match part {
                    Some(part) => part,
                    None => self.section(section, target, facts).await?,
                };
                Ok::<_, ApiError>((section, collection))
            });
        }
        for (section, collection) in future::try_join_all(reads).await? {
            let collection = match self.names_in(section, &collection).await {
                Ok(names) => {
                    live.names.extend(names);
                    self.with_declared_names(section, collection, &live.names)
                }
                Err(error) if ends_everything(&error) => return Err(error),
                Err(error) => Collection::Unreadable(Cause::from(&error)),
            };
            live.sections.insert(section.of.section, collection);
        }
        if container.life.undeclared_projects.is_some() {
            let projects = self.projects_below(target, &seen.at, facts.level).await?;
            live.projects = Some(projects);
        }
        live.read_at = seen.read_at.unwrap_or_else(|| self.now());
        Ok(live)
    }

    /// Reads a section that is not part of the container's own object.
    async fn section(
        &self,
        section: &DeclaredSection,
        target: &Target,
        facts: &Facts,
    ) -> Result<Collection, ApiError> {
        let home = section.of.home;
        let sees_all = self.caller.administrator || facts.level >= Some(home.seen_from);
        let result = match home.place {
            Place::Part { .. } => {
                let why = "the token does not see what it names";
                Ok(Collection::Partial(Cause::new(why)))
            }
            Place::Itself(_) | Place::Object | Place::In(_) => {
                let noun = target.scope.noun();
                Ok(Collection::Partial(format!("it was not part of the {noun} object").into()))
            }
            Place::List(_) if !sees_all => {
                let role = role(home.seen_from);
                Ok(Collection::Partial(
                    format!("the token's role is below {role}, so the list may be incomplete")
                        .into(),
                ))
            }
            Place::List(_) if home.is_closed(facts) => {
                let switches = home.closed_by.iter().map(|name| format!("`{name}`"));
                let switches = switches.collect::<Vec<_>>().join(" and ");
                let why = format!("the service shows none while {switches} are disabled");
                Ok(Collection::Unreadable(why.into()))
            }
            Place::List(op) => self.list(section, target, op).await,
            Place::Optional(op) => self.optional(section, target, op, facts, sees_all).await,
        };
        match result {
            Err(error) if ends_everything(&error) => Err(error),
            Err(error) if error.page_error().is_some() => {
                Ok(Collection::Partial(Cause::from(&error)))
            }
            Err(error) => Ok(Collection::Unreadable(Cause::from(&error))),
            Ok(collection) => Ok(collection),
        }
    }

    /// Reads a list to its end.
    async fn list(
        &self,
        section: &DeclaredSection,
        target: &Target,
        op: Op<Read>,
    ) -> Result<Collection, ApiError> {
        let home = section.of.home;
        let names: BTreeSet<&str> = section.names().collect();
        let request = target.addressed(op.request());
        let request =
            home.query.iter().fold(request, |request, (name, value)| request.query(*name, value));
        let all = self.client.list_known(request, home.rows).await?;
        if let Some(key) = all.iter().find_map(|raw| section.of.misread(raw)) {
            return Ok(Collection::Unreadable(misread(section.of, key)));
        }
        let all = all.filter_map(|raw| {
            home.is_own(&raw).then(|| section.of.read(&raw, &|name| names.contains(name)))
        });
        self.with_beside(section, target, all).await.map(Collection::Complete)
    }

    /// Reads the one object that is there or not, for a caller who `sees_all`, or may not.
    async fn optional(
        &self,
        section: &DeclaredSection,
        target: &Target,
        op: Op<Read>,
        facts: &Facts,
        sees_all: bool,
    ) -> Result<Collection, ApiError> {
        let names: BTreeSet<&str> = section.names().collect();
        let read = |raw: &Object| section.of.read(raw, &|name| names.contains(name));
        let hides_absence = section.of.home.hides_absence;
        let is_licensed = facts.tier >= section.of.tier();
        let request = target.addressed(op.request());
        match self.client.get_optional_known(request, section.of.home.rows.keys).await {
            Ok(answer) => {
                let raw = answer.as_ref().and_then(|answer| answer.object());
                if let Some(key) = raw.and_then(|raw| section.of.misread(raw)) {
                    return Ok(Collection::Unreadable(misread(section.of, key)));
                }
                Ok(Collection::One(answer.and_then(|answer| Some(read(answer.object()?)))))
            }
            Err(error)
                if section.of.is_removable()
                    && error.is_not_found()
                    && (!error.is_unknown_route()
                        || (hides_absence && sees_all && is_licensed && error.is_hidden()))
                    && !error.is_container_missing() =>
            {
                Ok(Collection::One(None))
            }
            Err(error) if hides_absence && sees_all && error.is_hidden() => {
                Ok(Collection::Unreadable(unlicensed(section.of, target.scope, &error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Adds the field that another list tells, if somebody declares it and the list can be read.
    async fn with_beside(
        &self,
        section: &DeclaredSection,
        target: &Target,
        entries: Complete<LiveEntry>,
    ) -> Result<Complete<LiveEntry>, ApiError> {
        let beside = section.of.home.beside;
        let Some(beside) = beside.filter(|beside| section.names().any(|n| n == beside.field))
        else {
            return Ok(entries);
        };
        let request = target.addressed(beside.list.request());
        match self.client.list_known(request, beside.rows).await {
            Ok(others) => Ok(entries.map(|mut entry| {
                let value = (beside.value)(&entry, &others);
                entry.fields.insert(beside.field.to_owned(), value);
                entry
            })),
            Err(error) if ends_everything(&error) => Err(error),
            // Without it the field is not in the answer.
            Err(_) => Ok(entries),
        }
    }

    /// The ids of what entries of `section` name. Whoever has an entry there already is known by
    /// it.
    async fn names_in(
        &self,
        section: &DeclaredSection,
        live: &Collection,
    ) -> Result<Names, ApiError> {
        let mut names = Names::default();
        // Nothing is planned in a section that was not read, so nothing is looked up for it.
        let Ok(live) = live.entries() else { return Ok(names) };
        let mut known: Option<BTreeSet<String>> = None;
        for entry in section.entries.iter().filter(|entry| entry.state == State::Present) {
            for (field, named, name) in forms::named_by(section.of, &entry.values()) {
                let is_identity = section.of.identity.contains(&&*field);
                let known = known.get_or_insert_with(|| {
                    live.iter().map(|entry| section.of.name(&entry.fields)).collect()
                });
                if !(is_identity && known.contains(&entry.key)) {
                    names.insert(named, &name, self.id(named, &name).await?);
                }
            }
        }
        Ok(names)
    }

    /// The id of what is called `name`, looked up once.
    async fn id(&self, named: Named, name: &str) -> Result<Option<u64>, ApiError> {
        match named {
            Named::User => self.user(name).await,
            Named::Group => self.group(name).await,
            Named::Project => self.project(name).await,
        }
    }

    /// The release of the service, read once; it tells only whom it knows, and not on every
    /// installation.
    pub async fn release(&self) -> Result<Known, ApiError> {
        let look_up = async || {
            let answer = self.client.get(operation::VERSION_GET.request()).await?;
            let version = answer.body["version"].as_str().and_then(|text| text.parse().ok());
            Ok(version.map_or(Known::Hidden, Known::Is))
        };
        match self.release.of("", look_up).await {
            Err(error) if !ends_everything(&error) => Ok(Known::Hidden),
            found => found,
        }
    }

    /// The ids of the entries of a section by their names: of those that are there, and the addresses
    /// of those that are declared, or why the section could not be read. What was read already is
    /// not read again.
    async fn entries(
        &self,
        container: &Container,
        live: &Live,
        name: &str,
    ) -> Result<Result<BTreeMap<String, Id>, Cause>, ApiError> {
        let Some(of) = kinds::section(container.scope, name) else {
            return Ok(Ok(BTreeMap::new()));
        };
        let declared = container.section(name);
        let mut ids = BTreeMap::new();
        for entry in declared.iter().flat_map(|section| &section.entries) {
            if entry.state == State::Present {
                let address = container.address().section(of.section).entry(entry.key.clone());
                ids.insert(entry.key.clone(), Id::OfStep(address.to_string().into()));
            }
        }
        if let Presence::Here(target, facts) = &live.presence {
            let collection = match live.sections.get(name) {
                Some(known) => known.clone(),
                None => {
                    let nothing = DeclaredSection::with(of, &container.origin, Vec::new());
                    self.section(&nothing, target, facts).await?
                }
            };
            match collection.entries() {
                Ok(entries) => ids.extend(entries.iter().filter_map(|entry| {
                    Some((of.name(&entry.fields), Id::Known(of.id_of(entry)?)))
                })),
                Err(cause) => return Ok(Err(cause.clone())),
            }
        }
        Ok(Ok(ids))
    }

    /// The levels of access from the group above the container at `path`.
    async fn above(&self, path: &str) -> Result<Inherited, ApiError> {
        let Some((group, _)) = path.rsplit_once('/') else { return Ok(Arc::default()) };
        match self.levels(group).await {
            Err(error) if !ends_everything(&error) => Ok(Arc::default()),
            found => found,
        }
    }

    /// What the group above the container at `path` says of itself, read once for each group. What
    /// could not be read is empty: nothing follows from what is not in it.
    async fn group_above(&self, path: &str) -> Result<Arc<Object>, ApiError> {
        let Some((group, _)) = path.rsplit_once('/') else { return Ok(Arc::default()) };
        let look_up = async || {
            let (_, itself) = kinds::container(Scope::Group);
            let answer = self.client.get_known((itself.get)(group), &["id", itself.path]).await?;
            Ok(Arc::new(answer.object().cloned().unwrap_or_default()))
        };
        match self.groups_above.of(&group.to_lowercase(), look_up).await {
            Err(error) if !ends_everything(&error) => Ok(Arc::default()),
            found => found,
        }
    }

    /// The levels of access to a group, inherited ones too, read once for each group.
    async fn levels(&self, group: &str) -> Result<Inherited, ApiError> {
        let look_up = async || {
            let all = operation::GROUP_MEMBER_LIST_ALL.request().arg("id", group);
            Ok(Arc::new(self.levels_in(all).await?))
        };
        self.inherited.of(&group.to_lowercase(), look_up).await
    }

    async fn levels_in(&self, list: Request<Read>) -> Result<BTreeMap<u64, u8>, ApiError> {
        let members = self.client.list_known(list, Rows::with_id(&["access_level"])).await?;
        let mut levels = BTreeMap::new();
        let is_active =
            |member: &&Object| member.get("state").is_none_or(|state| state == "active");
        for member in members.iter().filter(is_active) {
            let number = |name: &str| member.get(name)?.as_u64();
            let level = number("access_level").and_then(|level| u8::try_from(level).ok());
            if let Some((id, level)) = number("id").zip(level) {
                let known = levels.entry(id).or_insert(level);
                *known = level.max(*known);
            }
        }
        Ok(levels)
    }

    /// By which ways the caller has access to a container.
    async fn own_access(&self, container: &Container, live: &Live) -> Result<OwnAccess, ApiError> {
        let own = |found: Result<BTreeMap<u64, u8>, ApiError>| match found {
            Ok(levels) => Ok(Ok(levels.get(&self.caller.id).copied().unwrap_or(0))),
            // Who is a member of a group sees it.
            Err(error) if error.is_not_found() => Ok(Ok(0)),
            Err(error) if ends_everything(&error) => Err(error),
            Err(error) => Ok(Err(Cause::from(&error))),
        };
        let all = |found: Result<Inherited, ApiError>| own(found.map(|levels| (*levels).clone()));
        let path = self.live_path(&container.path).await?;
        // The object of a project tells of memberships alone, that of a group of shares, too.
        let direct = match &live.presence {
            Presence::Here(_, facts) if container.scope == Scope::Project => {
                Ok(facts.level.unwrap_or(0))
            }
            _ => {
                own(self.levels_in(operation::GROUP_MEMBER_LIST.request().arg("id", &path)).await)?
            }
        };
        let inherited = match path.rsplit_once('/') {
            Some((group, _)) => all(self.levels(group).await)?,
            None => Ok(0),
        };
        let otherwise = match (direct, inherited) {
            (Ok(direct), Ok(inherited)) => Ok(direct.max(inherited)),
            (Ok(level), Err(_)) | (Err(_), Ok(level)) if level >= MAINTAINER => Ok(level),
            (Err(cause), _) | (_, Err(cause)) => Err(cause),
        };
        let mut groups = BTreeMap::new();
        for (section, entries) in container.sections.iter().filter_map(|section| {
            Some((section.of, live.sections.get(section.of.section)?.entries().ok()?))
        }) {
            let named = |name: &&&str| section.field(name).names == Some(Named::Group);
            let Some(name) = section.identity.iter().find(named) else { continue };
            for entry in entries {
                let path = entry.fields.get(*name).and_then(Json::as_str);
                if let Some((id, path)) = entry.id().zip(path) {
                    groups.insert(id, all(self.levels(path).await)?);
                }
            }
        }
        Ok(OwnAccess { otherwise, groups })
    }
}

impl Live {
    /// Takes in what was seen of the container's own object.
    fn take_in(&mut self, seen: Seen) {
        self.presence = Presence::Here(seen.target, seen.facts);
        let object = seen.object.into_iter();
        self.sections.extend(object.map(|(name, part)| (name, Collection::One(Some(part)))));
        let within = seen.within.into_iter();
        self.sections.extend(within.map(|(name, rows)| (name, Collection::Within(rows))));
    }
}

/// Why nothing is known of a section in which something has the wrong type under `key`.
fn misread(of: Section, key: &str) -> Cause {
    let message = format!("the service shows a {} whose `{key}` has the wrong type", of.noun);
    Cause::new(message).help("see what changes answers between here and the service")
}

/// Why a 404 that may mean two things proves nothing.
fn unlicensed(of: Section, scope: Scope, error: &ApiError) -> Cause {
    let (noun, tier) = (of.noun, of.tier());
    let message = format!("the service answers 404 both without a {noun} and without a licence");
    let message = format!("{message}, and the {} shows no sign of one", scope.noun());
    let help = format!(
        "renew the service's licence for {tier}, or remove `{}` from the manifest",
        of.section
    );
    Cause { message: message.into(), help: Some(help.into()), ..Cause::from(error) }
}

/// What a level of access is called in a sentence.
fn role(level: u8) -> &'static str {
    if level > crate::level::MAINTAINER { "Owner" } else { "Maintainer" }
}

/// Whether every further request would meet the same.
pub(crate) fn ends_everything(error: &ApiError) -> bool {
    error.is_unauthorized()
        || error.is_stopped()
        || error.is_tls()
        || error.is_over_budget()
        || error.is_not_sent()
}
