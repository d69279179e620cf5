//! Takes a snapshot: a transport that asks the service for what the snapshot lacks, stores the kept
//! part of the answer, and answers from that.
//!
//! So a plan made through it equals one from the snapshot, and everything it asks is in the
//! snapshot. [`Recorder::widen`] adds what this plan did not need but one of other manifests may.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard},
};

use futures_util::{StreamExt as _, future::BoxFuture, stream};

use super::{
    Head, Snapshot,
    contents::{self, Contents, Failed, ObjectRow, Packed, Recorded},
    keep::{Keep, Literals, placed},
    offline::{refusal, reply, unknown},
    question::Parsed,
};
use crate::{
    address::group_of,
    api::{
        ApiError, Failure, Phase, ReadClient, Result, SendError, Transport, WireRequest,
        WireResponse,
    },
    catalogue,
    desired::Desired,
    digest::Key,
    field::Scope,
    kind::{Place, Section},
    lock,
    observe::{all_in, ends_everything, outermost},
    operation::{self, Answer, Method, Op, Read, Request},
    page::{Complete, Pager, Rows},
    secret::Secrets,
    value::{Json, Object},
};

/// The maximum number of pages of users, or of namespaces, that are read to know all of them.
const FEW_PAGES: u64 = 100;
/// How many requests run in parallel.
const AT_ONCE: usize = 8;

/// A snapshot that is being taken.
#[derive(Debug)]
pub struct Recorder {
    client: ReadClient,
    head: Head,
    keep: Mutex<Arc<Keep>>,
    contents: Mutex<Contents>,
}

impl Transport for Recorder {
    fn send(&self, request: WireRequest) -> BoxFuture<'_, Result<WireResponse, SendError>> {
        Box::pin(self.ask(request))
    }
}

impl Recorder {
    /// Takes a snapshot with `client`; `head` names the service and the time. Values in `secrets`
    /// are removed, and secret values are kept as digests under `key`.
    pub fn new(client: ReadClient, head: Head, secrets: Arc<Secrets>, key: Option<Key>) -> Self {
        let head = Head { key: key.as_ref().map(Key::id), ..head };
        let keep = Keep { literals: Literals::default(), secrets, key };
        Self { client, head, keep: Mutex::new(Arc::new(keep)), contents: Mutex::default() }
    }

    /// Uses the present declarations.
    pub fn declare(&self, desired: &Desired) {
        let mut keep = lock(&self.keep);
        let (secrets, key) = (Arc::clone(&keep.secrets), keep.key.clone());
        *keep = Arc::new(Keep { literals: Literals::of(desired), secrets, key });
    }

    /// The snapshot as taken so far.
    pub fn finish(&self) -> Snapshot {
        Snapshot { head: self.head.clone(), contents: std::mem::take(&mut *self.contents()) }
    }

    /// The client that asks the service.
    pub const fn client(&self) -> &ReadClient {
        &self.client
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        lock(&self.contents)
    }

    fn keep(&self) -> Arc<Keep> {
        Arc::clone(&lock(&self.keep))
    }

    async fn ask(&self, request: WireRequest) -> Result<WireResponse, SendError> {
        let asked = Parsed::read(&request.target).filter(|_| request.method == Method::Get);
        let Some(asked) = asked else { return Err(unknown("a snapshot has no such thing")) };
        if let Err(error) = self.look(&asked).await {
            if !error.is_unauthorized() {
                return Err(SendError::new(Phase::NotSent, Failure::Offline, &chain(&error)));
            }
            // The run is over: the calling client must know, and stop.
            let failed = Failed::because(error.message().unwrap_or_default().to_owned());
            return Ok(refusal(401, &failed, &self.head));
        }
        let found = self.contents().answer(&asked);
        reply(&asked, found, &self.head, |why| why.unwrap_or("the service did not tell").to_owned())
    }

    /// Asks the service, unless the answer is known.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too. Any other failure is stored.
    async fn look(&self, asked: &Parsed) -> Result<()> {
        let scope = contents::container_of(asked);
        let is_known = {
            let contents = self.contents();
            match (contents.answer(asked), scope) {
                // A list lacks what was renamed; only the service redirects the old path.
                (Some(Err(_)), Some(scope)) => {
                    contents.missing.contains_key(&(scope, asked.of().to_lowercase()))
                }
                (found, _) => found.is_some(),
            }
        };
        match scope {
            _ if is_known => Ok(()),
            Some(scope) => self.object(scope, asked).await,
            None => match (contents::roster_of(asked), contents::username(asked)) {
                (Some((scope, root)), _) => self.roster(scope, &root, asked).await,
                (None, Some(name)) => self.user(name, asked).await,
                (None, None) => self.other(asked).await,
            },
        }
    }

    async fn look_for(&self, request: Request<Read>) -> Result<()> {
        match Parsed::read(&request.target()) {
            Some(asked) => self.look(&asked).await,
            None => Ok(()),
        }
    }

    async fn object(&self, scope: Scope, asked: &Parsed) -> Result<()> {
        let itself = catalogue::lookup(scope);
        let request = asked.request().keeping(self.keep().wanted(scope));
        let at = asked.of();
        match self.client.get_known(request, &["id", itself.path]).await {
            Ok(answer) => self.add(scope, &answer.object().cloned().unwrap_or_default(), Some(at)),
            Err(error) => {
                let failed = failed(error)?;
                self.contents().missing.insert((scope, at.to_lowercase()), failed);
            }
        }
        Ok(())
    }

    /// Adds the object `raw` that was requested `at` a path or id, or is a row of a list; records
    /// why not, if it is not kept.
    fn add(&self, scope: Scope, raw: &Object, at: Option<&str>) {
        let kept = self.keep().object(scope, raw);
        let mut contents = self.contents();
        match kept {
            Ok(kept) => {
                let row = ObjectRow::of(scope, &kept, at.is_some());
                row.into_iter().for_each(|row| contents.add(row, at));
            }
            Err(why) => {
                let at = at.unwrap_or_else(|| catalogue::lookup(scope).path_in(raw)).to_lowercase();
                contents.missing.insert((scope, at), Failed::because(why));
            }
        }
    }

    async fn roster(&self, scope: Scope, root: &str, asked: &Parsed) -> Result<()> {
        let (own, _) = catalogue::container(scope);
        let request = asked.request().query("order_by", "id").query("sort", "asc");
        let request = match scope {
            Scope::Project => request.query("include_subgroups", true),
            Scope::Group => request,
        };
        let request = request.keeping(self.keep().wanted(scope));
        let roster = match self.client.list_known(request, own.home.rows).await {
            Ok(rows) => {
                rows.iter().for_each(|row| self.add(scope, row, None));
                Ok(rows.iter().filter_map(|row| row.get("id")?.as_u64()).collect())
            }
            Err(error) => Err(failed(error)?),
        };
        let mut contents = self.contents();
        let root = if root.is_empty() { String::new() } else { contents.root(root) };
        contents.rosters.insert((scope, root), roster);
        Ok(())
    }

    async fn user(&self, name: &str, asked: &Parsed) -> Result<()> {
        match self.client.get(asked.request()).await {
            Ok(answer) => {
                let key = name.to_lowercase();
                let mut users = answer.body.as_array().into_iter().flatten().filter_map(user);
                let found = users.find(|(username, _)| *username == key);
                self.contents().users.insert(key, found.and_then(|(_, user)| user));
            }
            Err(error) => {
                let failed = Recorded::Failed(failed(error)?);
                self.contents().answers.insert(asked.question.clone(), failed);
            }
        }
        Ok(())
    }

    async fn other(&self, asked: &Parsed) -> Result<()> {
        let (path, keep) = (self.contents().path_of(asked), self.keep());
        let kept = match asked.op.row().answer {
            Answer::List => match self.client.list(asked.request()).await {
                Ok(rows) => keep
                    .list(asked.op, &path, &rows.map(|row| placed(asked, row)))
                    .map(|rows| Recorded::Entries(rows.iter().map(Packed::new).collect())),
                Err(error) => Ok(Recorded::Failed(failed(error)?)),
            },
            _ => match self.client.get_optional(asked.request(), &[]).await {
                Ok(answer) => {
                    let one = answer.as_ref().and_then(|answer| answer.object());
                    let one = one.map(|raw| placed(asked, raw.clone()));
                    let one = one.map(|raw| keep.one(asked.op, &path, &raw)).transpose();
                    one.map(|one| Recorded::One(one.map(|one| Packed::new(&Json::Object(one)))))
                }
                Err(error) => Ok(Recorded::Failed(failed(error)?)),
            },
        };
        let kept = kept.unwrap_or_else(|why| Recorded::Failed(Failed::because(why)));
        let mut contents = self.contents();
        if let Recorded::Entries(entries) = &kept {
            // Every member is a user.
            for (username, user) in entries.iter().filter_map(|entry| user(&entry.json())) {
                contents.users.entry(username).or_insert(user);
            }
        }
        let key = contents.key(asked);
        contents.answers.insert(key, kept);
        Ok(())
    }

    /// Reads what plans of other manifests may need: what exists below managed groups, their
    /// members, and the users. Call it before planning, so that the plan finds more in lists.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn widen(&self, desired: &Desired) -> Result<()> {
        self.look_for(operation::CURRENT_USER.request()).await?;
        self.look_for(operation::VERSION_GET.request()).await?;
        let groups = managed(desired);
        for root in outermost(&groups) {
            self.everything_below(&root).await?;
        }
        if self.contents().sees_all() {
            let list = operation::GROUP_LIST.request().query("top_level_only", true);
            self.look_for(list.query("all_available", true)).await?;
        }
        self.namespaces().await?;
        self.everybody().await?;
        let groups: BTreeSet<_> = {
            let contents = self.contents();
            let rosters = contents.rosters.iter();
            let below = rosters.filter(|((of, root), _)| *of == Scope::Group && !root.is_empty());
            let below = below.flat_map(|(_, ids)| ids.iter().flatten().copied());
            let managed = groups.iter().filter_map(|group| contents.id(Scope::Group, group));
            below.chain(managed).collect()
        };
        let members = operation::GROUP_MEMBER_LIST_ALL;
        let members = groups.iter().map(|group| members.request().arg("id", group));
        self.also(members.collect(), || {}).await?;
        let namespaces: Vec<_> = {
            let contents = self.contents();
            let groups = groups.iter().filter_map(|id| contents.objects.get(&(Scope::Group, *id)));
            groups.map(|group| operation::NAMESPACE_GET.request().arg("id", &group.path)).collect()
        };
        self.also(namespaces, || {}).await
    }

    /// Reads what [`Self::sections`] returned, and calls `each` after each answer. A section that is
    /// refused here is not declared yet, so the snapshot is still complete.
    ///
    /// # Errors
    /// [`ApiError`] if all further requests would fail too.
    pub async fn also(&self, requests: Vec<Request<Read>>, each: impl Fn()) -> Result<()> {
        let looks = requests.into_iter().map(|request| self.look_for(request));
        let mut looks = stream::iter(looks).buffer_unordered(AT_ONCE);
        while let Some(looked) = looks.next().await {
            looked?;
            each();
        }
        Ok(())
    }

    /// What was requested and could not be read, with reasons.
    pub fn incomplete(&self) -> Vec<(String, String)> {
        let told = |(what, why): (String, &Failed)| (what, why.to_string());
        self.contents().incomplete().map(told).collect()
    }

    /// Reads the group at `root` and everything below it. Also checks whether rows have all fields
    /// of the object; if not, groups are read one by one.
    async fn everything_below(&self, root: &str) -> Result<()> {
        let alone = |scope: Scope, at: &str| (catalogue::lookup(scope).get)(at);
        self.look_for(alone(Scope::Group, root)).await?;
        if self.contents().id(Scope::Group, root).is_none() {
            return Ok(());
        }
        for scope in Scope::ALL {
            self.look_for(all_in(scope).arg("id", root)).await?;
        }
        for scope in Scope::ALL {
            let rows: Vec<_> = {
                let contents = self.contents();
                let rows = contents.objects.range((scope, 0)..=(scope, u64::MAX));
                let rows = rows.filter(|(_, thing)| !thing.by_itself);
                rows.map(|((_, id), thing)| (*id, thing.clone())).collect()
            };
            let Some((id, row)) = rows.first() else { continue };
            if let Some(asked) = Parsed::read(&alone(scope, &id.to_string()).target()) {
                self.object(scope, &asked).await?;
            }
            let says_all = {
                let mut contents = self.contents();
                let whole = contents.objects.get(&(scope, *id)).filter(|whole| whole.by_itself);
                let is_whole = whole.is_some_and(|whole| keys(whole).is_subset(&keys(row)));
                let says_all = contents.whole_rows.entry(scope).or_insert(true);
                *says_all &= is_whole;
                *says_all
            };
            if scope == Scope::Group && !says_all {
                let each = rows.iter().skip(1).map(|(id, _)| alone(scope, &id.to_string()));
                self.also(each.collect(), || {}).await?;
            }
        }
        Ok(())
    }

    /// Reads all namespaces, if there are not too many. One that is not in the list may still
    /// exist.
    async fn namespaces(&self) -> Result<()> {
        let Some(all) = self.few(operation::NAMESPACE_FIND, &["full_path"]).await? else {
            return Ok(());
        };
        for raw in all.iter() {
            let path = raw.get("full_path").and_then(Json::as_str).unwrap_or_default();
            let asked = Parsed::read(&operation::NAMESPACE_GET.request().arg("id", path).target());
            // The service would read a path of digits as an id.
            let asked = asked.filter(|_| contents::number(path).is_none());
            let kept = self.keep().one(operation::NAMESPACE_GET, "", raw);
            if let (Some(asked), Ok(kept)) = (asked, kept) {
                let kept = Recorded::One(Some(Packed::new(&Json::Object(kept))));
                self.contents().answers.insert(asked.question, kept);
            }
        }
        Ok(())
    }

    /// Reads all users, if there are not too many.
    async fn everybody(&self) -> Result<()> {
        let Some(all) = self.few(operation::USER_FIND, &["username"]).await? else {
            return Ok(());
        };
        let mut contents = self.contents();
        contents.users.extend(all.iter().filter_map(|row| user(&Json::Object(row.clone()))));
        contents.all_users = true;
        Ok(())
    }

    /// The complete list that `op` reads, unless it is long or fails.
    async fn few(
        &self,
        op: Op<Read>,
        also: &'static [&'static str],
    ) -> Result<Option<Complete<Object>>> {
        let Ok(mut pager) = Pager::new(op.request(), Rows::with_id(also)) else { return Ok(None) };
        loop {
            match self.client.page(&mut pager).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(pager.finish().ok()),
                Err(error) => return failed(error).map(|_| None),
            }
            // The service counts at most 10,000 entries.
            if pager.total_pages().is_none_or(|pages| pages > FEW_PAGES) {
                return Ok(None);
            }
        }
    }

    /// Requests for all sections of every declared group and project that were not read yet, because
    /// a branch may declare them: for those without parents, or for those with parents, below each
    /// parent that was read.
    pub fn sections(&self, desired: &Desired, are_nested: bool) -> Vec<Request<Read>> {
        let contents = self.contents();
        let mut requests = Vec::new();
        for container in &desired.containers {
            let Some(id) = contents.id(container.scope, &container.path) else { continue };
            let all_of = |section: Section| match section.home.place {
                Place::List(op) | Place::Optional(op) => {
                    Some(section.home.list_request(op.request().arg("id", id)))
                }
                _ => None,
            };
            // The entries of a section that was read.
            let entries = |section: Section| -> Vec<Json> {
                let all = all_of(section).and_then(|all| Parsed::read(&all.target()));
                match all.map(|all| contents.answer(&all)) {
                    Some(Some(Ok(Json::Array(rows)))) => rows,
                    _ => Vec::new(),
                }
            };
            for section in catalogue::sections(container.scope) {
                let (home, Some(request)) = (section.home, all_of(section)) else { continue };
                match (home.parent, section.detail.and(home.operations.get)) {
                    (None, _) if !are_nested => requests.push(request),
                    (None, Some(get)) => {
                        let one = get.request().arg("id", id);
                        let rows = entries(section).into_iter();
                        let one = rows.filter_map(|row| home.one(one.clone(), row.as_object()?));
                        requests.extend(one);
                    }
                    (Some(parent), _) if are_nested => {
                        let of = catalogue::section(container.scope, parent.section);
                        let ids = of.into_iter().flat_map(entries);
                        let ids = ids.filter_map(|row| row["id"].as_u64());
                        requests.extend(ids.map(|id| request.clone().arg(parent.argument, id)));
                    }
                    _ => {}
                }
            }
        }
        requests.retain(|request| {
            let asked = Parsed::read(&request.target());
            asked.is_some_and(|asked| contents.answer(&asked).is_none())
        });
        requests
    }
}

/// The paths of declared groups, and of groups of declared projects, in lower case.
fn managed(desired: &Desired) -> BTreeSet<String> {
    let groups = desired.containers.iter().filter_map(|container| match container.scope {
        Scope::Group => Some(container.path.to_lowercase()),
        Scope::Project => group_of(&container.path).map(str::to_lowercase),
    });
    groups.collect()
}

fn keys(thing: &ObjectRow) -> BTreeSet<String> {
    match thing.object.json() {
        Json::Object(object) => object.into_iter().map(|(name, _)| name).collect(),
        _ => BTreeSet::new(),
    }
}

/// A user as a snapshot holds it, if `raw` is one: the name in lower case, the id and the name.
fn user(raw: &Json) -> Option<(String, Option<(u64, String)>)> {
    let (id, username) = (raw["id"].as_u64()?, raw["username"].as_str()?.to_owned());
    Some((username.to_lowercase(), Some((id, username))))
}

/// The kept part of a failure.
///
/// # Errors
/// The failure itself, if all further requests would fail too.
fn failed(error: ApiError) -> Result<Failed> {
    if ends_everything(&error) {
        return Err(error);
    }
    let message = error.message().filter(|_| !error.is_transient());
    Ok(match (message, error.status()) {
        (Some(message), Some(status)) => Failed {
            status: Some(status),
            message: message.to_owned(),
            is_route: error.is_unknown_route() && !error.is_hidden(),
            request_id: error.request_id().map(str::to_owned),
            moved_to: error.moved_to(),
        },
        _ => Failed::because(chain(&error)),
    })
}

/// The error with its sources.
fn chain(error: &ApiError) -> String {
    crate::cause::Cause::from(error).to_string()
}
