//! Reads the live state of declared containers.
//!
//! The input is the declarations, and a client that cannot write. The output is a [`LiveContainer`]
//! for each container. This module does not plan. It only [reads the extra
//! facts](Observer::read_extra_facts) that a plan requests. Each object is read once. Projects are
//! read from list pages if that costs fewer requests than single reads. Collections are read only
//! for declared sections. A failed read makes its container or section `Unreadable`, never absent.
//! A failure ends the run only if every further read would fail too, for example because the service
//! refuses the token.

mod cache;
mod destination;
mod exist;
mod extra_facts;
mod find;
mod former;
pub(crate) mod keys;
mod lookups;
mod roster;
mod sections;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, future, stream};
use tokio::sync::mpsc;

use cache::ObserverCache;
pub use exist::ExistingContainers;
pub(crate) use exist::{descendants_request, outermost_paths};
use find::{
    LiveObject,
    LocateResult::{self, Absent, Present},
};
pub(crate) use find::{entries_in_object, paths_are_equal};

use crate::{
    api::{ApiError, ReadClient, Result},
    catalogue,
    cause::Cause,
    desired::{Container, CreationPolicy, DeclaredSection, Moves},
    field::Scope,
    kind::forms,
    live::{Caller, LiveContainer, LiveEntries, Presence, ReadTime, TokenProperties},
    operation, text,
};

/// The header with which the sandbox identifies itself in every response.
pub(crate) const SANDBOX_HEADER: &str = "x-undrift-sandbox";

/// The maximum number of listed projects that wait to be read: enough to keep all readers busy
/// while the next page loads.
const QUEUE_CAPACITY: usize = 256;

/// Reads the live state of containers. Caches the results of look-ups.
pub struct Observer {
    client: ReadClient,
    caller: Caller,
    is_sandbox: bool,
    /// The declared former paths.
    moves: Arc<Moves>,
    cache: ObserverCache,
}

impl Observer {
    /// Creates an observer, and reads the token's user.
    ///
    /// # Errors
    /// [`ApiError`] if the service cannot be reached or does not accept the token.
    pub async fn connect(client: ReadClient) -> Result<Self> {
        let response =
            client.get_object(operation::CURRENT_USER.request(), &["id", "username"]).await?;
        let user = &response.body;
        let caller = Caller {
            id: user["id"].as_u64().unwrap_or_default(),
            username: user["username"].as_str().unwrap_or_default().to_owned(),
            is_administrator: user["is_admin"] == true,
        };
        let is_sandbox = response.headers.contains_key(SANDBOX_HEADER);
        Ok(Self {
            client,
            caller,
            is_sandbox,
            moves: Arc::default(),
            cache: ObserverCache::default(),
        })
    }

    /// Sets the declared former paths that the observer follows.
    #[must_use]
    pub fn with_moves(self, moves: Arc<Moves>) -> Self {
        Self { moves, ..self }
    }

    /// The token's user.
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The token's properties; `None` if the service does not show them, as for a CI job token.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn read_token_properties(&self) -> Result<Option<TokenProperties>> {
        match self.client.get(operation::OWN_TOKEN.request()).await {
            Ok(response) => Ok(response.object().and_then(TokenProperties::parse_response)),
            // A refusal does not end the run: the service may refuse this request for a valid token.
            Err(error) if error.status().is_none() && is_fatal(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// True if the service identifies itself as undrift's sandbox.
    pub const fn is_sandbox(&self) -> bool {
        self.is_sandbox
    }

    /// The client for reading.
    pub const fn client(&self) -> &ReadClient {
        &self.client
    }

    /// Estimates the number of requests to read `containers`. Counts one request for each declared
    /// section that is not part of the container's own object, and one for each hundred containers.
    pub fn estimate_requests(containers: &[Container]) -> u64 {
        let pages = containers.len() / 100;
        let sections = containers.iter().flat_map(|container| &container.sections);
        (pages + sections.filter(|section| !section.kind.is_part_of_container()).count()) as u64
    }

    /// Reads `containers`, at most `max_concurrent` at a time, and calls `handle_live` for each
    /// container as soon as its live state is complete, in any order.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too. `handle_live` may have been called
    /// before.
    pub async fn read_all<'c>(
        &self,
        containers: &'c [Container],
        max_concurrent: usize,
        handle_live: impl AsyncFn(&'c Container, LiveContainer) -> Result<()>,
    ) -> Result<()> {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        let list_future = async {
            for container in self.find_in_lists(containers, &sender).await? {
                let _ = sender.send((container, None)).await;
            }
            drop(sender);
            Ok::<_, ApiError>(())
        };
        let located_containers = stream::unfold(receiver, |mut receiver| async {
            Some((receiver.recv().await?, receiver))
        });
        let read_future = located_containers
            .map(|(container, row_object): (&'c Container, Option<LiveObject>)| {
                let handle = &handle_live;
                async move {
                    let located = match row_object {
                        Some(row_object) => self.complete_row(container, row_object).await,
                        None => self.read_by_path(container).await,
                    };
                    handle(container, self.read_declared_sections(container, located).await?).await
                }
            })
            .buffer_unordered(max_concurrent)
            .try_collect::<()>();
        future::try_join(list_future, read_future).await.map(|_| ())
    }

    /// Reads one container and its declared sections. Reads by `id` if the container was found or
    /// created before.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn read_container(
        &self,
        container: &Container,
        id: Option<u64>,
    ) -> Result<LiveContainer> {
        let object = self.read_by_id_or_path(container, id).await;
        self.read_declared_sections(container, object).await
    }

    /// Reads the `stale_sections` of `live` again, and keeps all other sections. Always reads the
    /// object of a group too: requests use the id of the group, so they succeed after the group was
    /// renamed, and only the object shows the new path.
    ///
    /// # Errors
    /// The errors of [`Self::read_container`].
    pub async fn reread_sections(
        &self,
        container: &Container,
        mut live: LiveContainer,
        stale_sections: &BTreeSet<&'static str>,
    ) -> Result<LiveContainer> {
        let Presence::Existing(target, facts) = &live.presence else {
            return self.read_container(container, None).await;
        };
        let sections = stale_sections.iter().filter_map(|name| container.section(name));
        if sections.clone().any(|section| section.kind.is_part_of_container())
            || facts.import_state.is_some()
            || target.scope == Scope::Group
        {
            match split_located(self.read_by_id_or_path(container, target.id).await)? {
                Present(object) => {
                    live.read_times.object =
                        ReadTime { start: object.read_at, end: object.read_at };
                    live.presence = Presence::Existing(object.target, object.facts);
                    live.sections.extend(object.sections);
                }
                Absent(presence) => {
                    return self.describe_absent(container, presence).await;
                }
            }
        }
        // Sections are not read before the import of the contents ends.
        let reads_lists =
            matches!(&live.presence, Presence::Existing(_, facts) if facts.import_state.is_none());
        self.read_sections(container, &mut live, sections, (reads_lists, 1)).await?;
        Ok(live)
    }

    /// Reads `sections` of a container, up to `max_concurrent` at a time, and then the sections
    /// whose entries have parents. Also looks up the ids of objects that entries name. If
    /// `reads_lists` is false, sends no requests for sections, and only uses the sections that
    /// `live` already contains.
    async fn read_sections<'c>(
        &self,
        container: &Container,
        live: &mut LiveContainer,
        sections: impl Iterator<Item = &'c DeclaredSection>,
        (reads_lists, max_concurrent): (bool, usize),
    ) -> Result<()> {
        let Presence::Existing(target, facts) = &live.presence.clone() else { return Ok(()) };
        let (nested_sections, flat_sections): (Vec<_>, Vec<_>) =
            sections.partition(|section| section.kind.scoped_kind.parent.is_some());
        let sections_to_read = flat_sections.into_iter().filter_map(|section| {
            let entries = live.sections.remove(section.kind.section);
            let object_entries =
                entries.filter(|_| section.kind.is_part_of_container() || !reads_lists);
            (object_entries.is_some() || reads_lists).then_some((section, object_entries))
        });
        let reads: Vec<_> = sections_to_read.collect();
        let reads = reads.into_iter().map(|(section, object_entries)| async move {
            if let Some(shown_entries) = object_entries {
                return Ok((section, shown_entries, None));
            }
            let start = self.now();
            let read_entries = self.read_section(section, (target, facts), &[]).await?;
            Ok::<_, ApiError>((section, read_entries, Some(ReadTime { start, end: self.now() })))
        });
        let read_results: Vec<_> =
            stream::iter(reads).buffered(max_concurrent).try_collect().await?;
        for (section, read_entries, time) in read_results {
            live.read_times.sections.extend(time.map(|time| (section.kind.section, time)));
            self.insert_section(container, section, read_entries, live).await?;
        }
        for section in nested_sections.into_iter().filter(|_| reads_lists) {
            let Some(parent) = section.kind.scoped_kind.parent else { continue };
            let nested_entries = self.read_nested_section(container, section, parent, live).await?;
            self.insert_section(container, section, nested_entries, live).await?;
        }
        self.read_referenced_entry_ids(container, live).await
    }

    /// Adds the entries of a section to `live`, with the ids of the objects that the entries name.
    async fn insert_section(
        &self,
        container: &Container,
        section: &DeclaredSection,
        entries: LiveEntries,
        live: &mut LiveContainer,
    ) -> Result<()> {
        let entries =
            match split_fatal(self.resolve_names(&container.path, section, &entries).await)? {
                Ok(names) => {
                    live.names.extend(names);
                    // The runners are cached, because `resolve_names` has read them.
                    let runners = self.read_runners_if_named(section.kind).await?;
                    self.use_declared_names(section, entries, &live.names, &runners)
                }
                Err(cause) => LiveEntries::Unreadable(cause),
            };
        live.sections.insert(section.kind.section, entries);
        Ok(())
    }

    /// Reads the declared sections of a container. `object` is the result of reading the container's
    /// object, for example with `GET /projects/:id`.
    async fn read_declared_sections(
        &self,
        container: &Container,
        object: Result<LocateResult>,
    ) -> Result<LiveContainer> {
        let live = match split_located(object)? {
            Present(object) => self.read_present(container, object).await?,
            Absent(presence) => {
                return self.describe_absent(container, presence).await;
            }
        };
        if container.including_glob.is_none()
            || !live.sections.values().any(|entries| {
                matches!(entries, LiveEntries::Unreadable(cause) if cause.status == Some(404))
            })
        {
            return Ok(live);
        }
        // A rule included the container, so a removal in the meantime is no error.
        Ok(match split_fatal(self.read_by_path(container).await)? {
            Ok(Absent(presence)) => LiveContainer::with_presence(presence, self.now()),
            Ok(Present(_)) | Err(_) => live,
        })
    }

    /// The live state of a container that does not exist. The names in its sections are looked up
    /// if the container is about to be created.
    async fn describe_absent(
        &self,
        container: &Container,
        mut presence: Presence,
    ) -> Result<LiveContainer> {
        let will_be_created =
            matches!(presence, Presence::Missing(_) | Presence::MissingNamespace(_))
                && matches!(container.creation_policy, CreationPolicy::Allowed(_));
        if let Presence::Missing(target) = &mut presence
            && will_be_created
        {
            match split_fatal(self.find_occupant(target).await)? {
                Ok(occupant) => target.occupant_scope = occupant,
                Err(cause) => {
                    return Ok(LiveContainer::with_presence(
                        Presence::Unreadable(cause),
                        self.now(),
                    ));
                }
            }
        }
        let mut live = LiveContainer::with_presence(presence, self.now());
        if let Some(fields) = container.creation_policy.create_fields().filter(|_| will_be_created)
        {
            let (container_kind, _) = catalogue::container(container.scope);
            for (_, object_type, name) in forms::referenced_names(container_kind, &fields.values())
            {
                match split_fatal(self.find_id(object_type, &name).await)? {
                    Ok(id) => live.names.insert(object_type, &name, id),
                    Err(cause) => {
                        let reason = format!("could not look up `{}`", text::escape(&name));
                        let presence = Presence::Unreadable(cause.with_context(reason));
                        return Ok(LiveContainer::with_presence(presence, self.now()));
                    }
                }
            }
        }
        for section in container.sections.iter().filter(|_| will_be_created) {
            match split_fatal(
                self.resolve_names(&container.path, section, &LiveEntries::NoContainer).await,
            )? {
                Ok(names) => live.names.extend(names),
                Err(cause) => {
                    live.sections.insert(section.kind.section, LiveEntries::Unreadable(cause));
                }
            }
        }
        Ok(live)
    }

    /// Records that `container` exists at its path, with this `id`.
    pub fn record_created(&self, container: &Container, id: u64) {
        self.cache.record_id(container.scope, &container.path, id);
    }

    /// Records that `container` was removed from its path.
    pub fn record_removed(&self, container: &Container) {
        self.cache.forget(&container.path);
    }

    fn now(&self) -> Duration {
        self.client.clock().now()
    }

    /// Reads the declared sections of a container that exists.
    async fn read_present(
        &self,
        container: &Container,
        object: LiveObject,
    ) -> Result<LiveContainer> {
        let (path, level) = (object.path.clone(), object.facts.caller_level);
        let stays_archived = object.facts.is_archived
            && !container.unarchives(|name: &str| match object.sections.get(name) {
                Some(LiveEntries::Single(entry)) => entry.as_deref(),
                _ => None,
            });
        let reads_lists = !stays_archived && object.facts.import_state.is_none();
        let mut live = LiveContainer::with_presence(
            Presence::Existing(object.target, object.facts),
            object.read_at,
        );
        live.sections = object.sections;
        let sections = catalogue::sections(container.scope);
        let sections = sections.filter_map(|section| container.section(section.section));
        self.read_sections(container, &mut live, sections, (reads_lists, usize::MAX)).await?;
        if let Presence::Existing(target, _) = &live.presence
            && container.lifecycle.unlisted_projects.is_some()
        {
            live.projects_below = Some(self.list_projects_below(target, &path, level).await?);
        }
        Ok(live)
    }
}

/// Turns the 404 of an absent object into `None`.
fn none_if_absent<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Err(error) if error.is_object_not_found() => Ok(None),
        result => result.map(Some),
    }
}

/// Returns a fatal error as `Err`, and turns any other error into a cause.
fn split_fatal<T>(result: Result<T>) -> Result<Result<T, Cause>> {
    match result {
        Err(error) if is_fatal(&error) => Err(error),
        result => Ok(result.map_err(|error| Cause::from(&error))),
    }
}

/// Returns a fatal error as `Err`. Turns any other error into an unreadable presence with the cause.
fn split_located(location: Result<LocateResult>) -> Result<LocateResult> {
    let location = split_fatal(location)?;
    Ok(location.unwrap_or_else(|cause| Absent(Presence::Unreadable(cause))))
}

/// True if every further request would fail in the same way.
pub(crate) fn is_fatal(error: &ApiError) -> bool {
    error.is_unauthorized()
        || error.ends_run_or_budget()
        || error.is_tls_failure()
        || error.has_failed_to_connect()
}
