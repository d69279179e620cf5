//! Reading the live state of declared projects, and nothing else.
//!
//! An [`Observer`] holds a client that cannot write. It reads each object once: projects from list
//! pages where that costs less than single reads, sub-collections only for sections that are
//! declared. What fails to be read becomes `Unreadable` for its project or section and never looks
//! like absence; only what makes every further read pointless (the token, the address, a budget)
//! ends a run.

mod find;
mod wanted;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, future, stream};
use tokio::sync::{OnceCell, mpsc};

use find::{Found, Seen};

use crate::{
    api::{ApiError, ReadClient},
    cause::Cause,
    kind::{LiveEntry, Namespace, Source, Target, Users},
    kinds,
    live::{Caller, Collection, Live, Presence},
    manifest::{Project, Section, State, Unlisted},
    operation,
    page::Rows,
    plan::Selection,
    value::{Json, Object},
};

/// The header by which the sandbox says what it is, in every answer.
const SANDBOX_HEADER: &str = "x-undrift-sandbox";
/// How many projects that lists brought may wait to be read: enough to have the next ones while a
/// page is on its way, and few, whatever the number of projects.
const QUEUED: usize = 256;
/// The level of an owner (reference 1, 2.1).
const OWNER: u8 = 50;

/// What is looked up once for each name, whatever comes of it. Whoever asks first reads; the others
/// wait for that answer and then read nothing themselves, also where it failed: one by one they
/// would fail as long as the service does.
struct LookUps<T>(Mutex<BTreeMap<String, LookUp<T>>>);

/// One of them, under way or ended.
type LookUp<T> = Arc<OnceCell<Result<T, ApiError>>>;

impl<T: Clone> LookUps<T> {
    async fn of(
        &self,
        name: &str,
        look_up: impl AsyncFnOnce() -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let known = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(name.to_owned())
            .or_default()
            .clone();
        known.get_or_init(|| async { look_up().await }).await.clone()
    }
}

impl<T> Default for LookUps<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Reads live state.
pub struct Observer {
    client: ReadClient,
    caller: Caller,
    sandbox: bool,
    users: LookUps<Option<u64>>,
    namespaces: LookUps<Option<Namespace>>,
    /// Declared fields that single answers lack as well as list answers, so that asking again
    /// brings nothing.
    in_no_answer: Mutex<BTreeSet<String>>,
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
            users: LookUps::default(),
            namespaces: LookUps::default(),
            in_no_answer: Mutex::default(),
        })
    }

    /// Who asks.
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether the service says of itself that it is undrift's sandbox.
    pub const fn is_sandbox(&self) -> bool {
        self.sandbox
    }

    /// The client that it reads with.
    pub const fn client(&self) -> &ReadClient {
        &self.client
    }

    /// Reads `projects`, `ahead` of them at a time, and hands each over as soon as it is complete,
    /// in no particular order.
    ///
    /// # Errors
    /// [`ApiError`] if going on would be pointless. Projects may have been handed over before.
    pub async fn all<'p>(
        &self,
        projects: &[&'p Project],
        selection: &Selection,
        ahead: usize,
        mut each: impl FnMut(&'p Project, Live),
    ) -> Result<(), ApiError> {
        let (sender, receiver) = mpsc::channel(QUEUED);
        let listing = async {
            let rest = self.find_in_lists(projects, &sender).await?;
            for project in rest {
                let _ = sender.send((project, None)).await;
            }
            drop(sender);
            Ok::<_, ApiError>(())
        };
        let found = stream::unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        });
        let reading = async {
            let live = found
                .map(|(project, seen): (&'p Project, Option<Seen>)| async move {
                    (project, self.one(project, seen, selection).await)
                })
                .buffer_unordered(ahead);
            let mut live = std::pin::pin!(live);
            while let Some((project, live)) = live.next().await {
                each(project, live?);
            }
            Ok(())
        };
        future::try_join(listing, reading).await.map(|_| ())
    }

    /// Reads one project and its declared sections.
    ///
    /// # Errors
    /// [`ApiError`] if going on with anything would be pointless.
    pub async fn project(
        &self,
        project: &Project,
        selection: &Selection,
    ) -> Result<Live, ApiError> {
        self.one(project, None, selection).await
    }

    async fn one(
        &self,
        project: &Project,
        seen: Option<Seen>,
        selection: &Selection,
    ) -> Result<Live, ApiError> {
        let found = match seen {
            Some(seen) => self.completed(project, seen).await,
            None => self.point_read(project).await,
        };
        match found {
            Ok(Found::Here(seen)) => self.here(project, seen, selection).await,
            Ok(Found::Not(presence)) => self.absent(project, presence).await,
            Err(error) if ends_everything(&error) => Err(error),
            Err(error) => Ok(Live::of(Presence::Unreadable(Cause::from(&error)), self.now())),
        }
    }

    /// What is known of a project that is not there. Whom its sections name is looked up if it is
    /// about to be created.
    async fn absent(&self, project: &Project, presence: Presence) -> Result<Live, ApiError> {
        let creates = matches!(presence, Presence::Missing(_)) && project.create.is_some();
        let mut live = Live::of(presence, self.now());
        for section in project.sections.values().filter(|_| creates) {
            match self.users_of(section, &Collection::Fresh).await {
                Ok(users) => live.users.extend(users),
                Err(error) if ends_everything(&error) => return Err(error),
                Err(error) => {
                    live.sections.insert(
                        section.kind.section(),
                        Collection::Unreadable(Cause::from(&error)),
                    );
                }
            }
        }
        Ok(live)
    }

    fn now(&self) -> Duration {
        self.client.clock().now()
    }

    /// Reads the declared sections of a project that is there.
    async fn here(
        &self,
        project: &Project,
        mut seen: Seen,
        selection: &Selection,
    ) -> Result<Live, ApiError> {
        let mut live = Live::of(Presence::Here(seen.facts.clone()), self.now());
        if seen.facts.archived && project.archived() != Some(false) {
            return Ok(live);
        }
        let address = project.address();
        let (target, sees_all) = (&seen.facts.target, seen.sees_all);
        let mut reads = Vec::new();
        for section in kinds::KINDS.iter().filter_map(|kind| project.sections.get(kind.section())) {
            let name = section.kind.section();
            if !selection.touches(&address, name) {
                continue;
            }
            let part = seen.sections.remove(name);
            reads.push(async move {
                let collection = match part {
                    Some(part) => Collection::One(Some(part)),
                    None => self.section(section, target, sees_all).await?,
                };
                Ok::<_, ApiError>((section, collection))
            });
        }
        for (section, collection) in future::try_join_all(reads).await? {
            let collection = match self.users_of(section, &collection).await {
                Ok(users) => {
                    live.users.extend(users);
                    collection
                }
                Err(error) if ends_everything(&error) => return Err(error),
                Err(error) => Collection::Unreadable(Cause::from(&error)),
            };
            if loses_an_owner(section, &collection) {
                live.owners = self.owners(target).await?;
            }
            live.sections.insert(section.kind.section(), collection);
        }
        live.read_at = self.now();
        Ok(live)
    }

    /// Reads a section that is not part of the project object.
    async fn section(
        &self,
        section: &Section,
        target: &Target,
        sees_all: bool,
    ) -> Result<Collection, ApiError> {
        let kind = section.kind;
        let names = declared_names(section);
        let read = |raw: &Object| kind.read(raw, &|name| names.contains(name));
        let result = match kind.source(target) {
            Source::Project => {
                Ok(Collection::Partial("it was not part of the project object".into()))
            }
            Source::List(_) if !sees_all => Ok(Collection::Partial(
                "the token's role is below Maintainer, so the list may be incomplete".into(),
            )),
            Source::List(request) => self
                .client
                .list_known(request, kind.rows())
                .await
                .map(|all| Collection::Complete(all.map(|raw| read(&raw)))),
            Source::Optional(request) => {
                match self.client.get_optional_known(request, kind.rows().keys).await {
                    Ok(answer) => {
                        Ok(Collection::One(answer.and_then(|answer| Some(read(answer.object()?)))))
                    }
                    Err(error)
                        if error.is_not_found()
                            && !error.is_unknown_route()
                            && !error.is_project_not_found() =>
                    {
                        Ok(Collection::One(None))
                    }
                    Err(error) => Err(error),
                }
            }
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

    /// The ids of the users whom entries of `section` name and who have none there yet.
    async fn users_of(&self, section: &Section, live: &Collection) -> Result<Users, ApiError> {
        // Nothing is planned in a section that was not read, so nobody is looked up for it.
        let Ok(live) = live.entries() else { return Ok(Users::new()) };
        let known: BTreeSet<String> =
            live.iter().map(|entry| section.kind.key(&entry.fields)).collect();
        let mut users = Users::new();
        for entry in section
            .entries
            .iter()
            .filter(|entry| entry.state == State::Present && !known.contains(&entry.key))
        {
            let values = entry.values();
            if let Some(name) = section.kind.user(&values) {
                users.insert(name.to_lowercase(), self.user(name).await?);
            }
        }
        Ok(users)
    }

    /// The id of the user with this name, looked up once.
    async fn user(&self, name: &str) -> Result<Option<u64>, ApiError> {
        let key = name.to_lowercase();
        let look_up = async || {
            let answer =
                self.client.get(operation::USER_FIND.request().query("username", name)).await?;
            let is_named = |user: &&Json| {
                user["username"].as_str().is_some_and(|username| username.to_lowercase() == key)
            };
            Ok(answer
                .body
                .as_array()
                .into_iter()
                .flatten()
                .find(is_named)
                .and_then(|user| user["id"].as_u64()))
        };
        self.users.of(&key, look_up).await
    }

    /// The active owners of a project, inherited ones too; `None` if they cannot be read.
    async fn owners(&self, target: &Target) -> Result<Option<Vec<u64>>, ApiError> {
        match self
            .client
            .list_known(
                operation::MEMBER_LIST_ALL.request().arg("id", target.id()),
                Rows::with_id(&["access_level"]),
            )
            .await
        {
            Ok(members) => {
                let owners = members.iter().filter(|member| {
                    member.get("access_level").and_then(Json::as_u64) == Some(OWNER.into())
                });
                let active = owners
                    .filter(|member| member.get("state").is_none_or(|state| state == "active"));
                Ok(Some(active.filter_map(|member| member.get("id")?.as_u64()).collect()))
            }
            Err(error) if ends_everything(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

/// Whether every further request would meet the same.
pub(crate) fn ends_everything(error: &ApiError) -> bool {
    error.is_unauthorized()
        || error.is_stopped()
        || error.is_tls()
        || error.is_over_budget()
        || error.is_not_sent()
}

/// The fields that any entry of `section` declares.
fn declared_names(section: &Section) -> BTreeSet<&str> {
    section.entries.iter().flat_map(|entry| entry.fields.keys()).collect()
}

/// Whether what is declared takes an owner's level away from somebody who has it directly.
fn loses_an_owner(section: &Section, live: &Collection) -> bool {
    let Ok(entries) = live.entries() else { return false };
    let is_owner = |entry: &&LiveEntry| section.kind.access(&entry.fields) == Some(OWNER);
    entries.iter().filter(is_owner).any(|owner| {
        let key = section.kind.key(&owner.fields);
        match section.entries.iter().find(|entry| entry.key == key) {
            None => section.unlisted == Unlisted::Delete,
            Some(entry) => {
                let plain = entry
                    .values()
                    .into_iter()
                    .filter_map(|(name, value)| Some((name, value.plain()?.clone())))
                    .collect();
                entry.state == State::Absent
                    || section.kind.access(&plain).is_some_and(|level| level < OWNER)
            }
        }
    })
}
