//! Finding projects: in lists where that costs less than single reads, with a point read otherwise.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{MutexGuard, PoisonError},
};

use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use super::{Observer, declared_names, ends_everything, wanted};
use crate::{
    api::ApiError,
    kind::{LiveEntry, Namespace, NamespaceOwner, Source, Target},
    live::{Facts, Presence},
    manifest::Project,
    operation::{self, Read, Request, Wanted},
    page::{Pager, Rows},
    planted::Bug,
    value::{Json, Object},
};

/// The role from which on a caller sees every entry of a list below a project (reference 1, 2.1 and
/// 2.3).
const SEES_ALL: u64 = 40;
/// The field of a project object that says what the caller may do.
const PERMISSIONS: &str = "permissions";
/// The status by which the service says that it gives a list no further by page number.
const NO_FURTHER: u16 = 405;
/// A list of everything is tried for more than this many projects that no group's list brought.
const KEYSET_FROM: usize = 10;

/// What a project's own read came to, before its sections are read.
pub(super) enum Found {
    Here(Seen),
    Not(Presence),
}

/// The parts of a project object that are looked at later, so that thousands of them fit into
/// memory.
pub(super) struct Seen {
    pub(super) facts: Facts,
    /// Whether the caller's role is high enough to see every entry of every list below the project.
    pub(super) sees_all: bool,
    /// The declared sections that are part of the project object.
    pub(super) sections: BTreeMap<&'static str, LiveEntry>,
    /// Declared fields that the answer says nothing of although the service could.
    pub(super) lacking: Vec<String>,
}

/// Projects as they are found, each with what a list said of it; without, it has to be read by
/// itself. Bounded, so that lists are not read far ahead of the rest.
pub(super) type Sender<'p> = mpsc::Sender<(&'p Project, Option<Seen>)>;

/// Declared projects that are still looked for, by their path in lower case.
type Sought<'p> = BTreeMap<String, &'p Project>;

/// How far a list was read.
enum Listed {
    /// There is no such list.
    Nowhere,
    /// To its end, or as far as it was worth it or could be read.
    Done,
    /// As far as the service gives a list by page number (reference 1, 8); the last id on it.
    CutOff(u64),
}

impl Observer {
    /// Finds what it can of `projects` in lists, sends it on, and returns the rest.
    pub(super) async fn find_in_lists<'p>(
        &self,
        projects: &[&'p Project],
        sender: &Sender<'p>,
    ) -> Result<Vec<&'p Project>, ApiError> {
        let mut groups: BTreeMap<String, Sought<'p>> = BTreeMap::new();
        for project in projects {
            let path = project.path.to_lowercase();
            let top = path.split('/').next().unwrap_or_default().to_owned();
            groups.entry(top).or_default().insert(path, project);
        }
        let wanted = &wanted::of_objects(projects.iter().copied());
        let lists = groups.into_iter().map(|(top, mut sought)| async move {
            if sought.len() > 1 {
                self.find_in_group(&top, wanted, &mut sought, sender).await?;
            }
            Ok::<_, ApiError>(sought)
        });
        let rest: Vec<Sought<'p>> = stream::iter(lists)
            .buffered(4)
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect::<Result<_, _>>()?;
        let mut rest: Sought<'p> = rest.into_iter().flatten().collect();
        if rest.len() > KEYSET_FROM {
            let everything = operation::PROJECT_LIST.request().keeping(wanted.clone());
            self.find_in_list(everything, &mut rest, sender).await?;
        }
        Ok(rest.into_values().collect())
    }

    /// Looks for `sought` in the list of the top-level group, or user, `top`, and behind the point
    /// up to which the service gives such a list, in that of all projects.
    async fn find_in_group<'p>(
        &self,
        top: &str,
        wanted: &Wanted,
        sought: &mut Sought<'p>,
        sender: &Sender<'p>,
    ) -> Result<(), ApiError> {
        let by_id = |list: Request<Read>| {
            list.query("order_by", "id").query("sort", "asc").keeping(wanted.clone())
        };
        let of_group = operation::GROUP_PROJECTS.request().arg("id", top);
        let of_group = by_id(of_group.query("include_subgroups", true));
        let mut listed = self.find_in_list(of_group, sought, sender).await?;
        if matches!(listed, Listed::Nowhere) {
            let of_user = by_id(operation::USER_PROJECTS.request().arg("user_id", top));
            listed = self.find_in_list(of_user, sought, sender).await?;
        }
        if let Listed::CutOff(last) = listed
            && sought.len() > KEYSET_FROM
        {
            let younger = operation::PROJECT_LIST.request().query("id_after", last);
            self.find_in_list(younger.keeping(wanted.clone()), sought, sender).await?;
        }
        Ok(())
    }

    /// Takes out of `sought` what the list brings, and stops when going on would cost more calls
    /// than it saves.
    async fn find_in_list<'p>(
        &self,
        list: Request<Read>,
        sought: &mut Sought<'p>,
        sender: &Sender<'p>,
    ) -> Result<Listed, ApiError> {
        let mut pager = Pager::passing(list);
        let (mut pages, mut hits) = (0, 0);
        let mut last = None;
        loop {
            match self.client.page(&mut pager).await {
                Ok(None) => return Ok(Listed::Done),
                Ok(Some(objects)) => {
                    pages += 1;
                    last = objects.last().and_then(|raw| raw.get("id")?.as_u64()).or(last);
                    for raw in objects {
                        let Some(project) = sought.remove(&path_of(raw).to_lowercase()) else {
                            continue;
                        };
                        hits += 1;
                        // One that is going away is looked at by itself.
                        let seen = deletion(raw).is_none().then(|| self.seen(project, raw));
                        // If nobody receives any more, the run is over.
                        let _ = sender.send((project, seen)).await;
                    }
                }
                Err(error) if ends_everything(&error) => return Err(error),
                Err(error) if pages == 0 && error.is_not_found() => return Ok(Listed::Nowhere),
                // What the list did not bring is read one by one.
                Err(error) => {
                    let last = last.filter(|_| error.status() == Some(NO_FURTHER));
                    return Ok(last.map_or(Listed::Done, Listed::CutOff));
                }
            }
            let pages_left = pager.total_pages().map_or(1, |total| {
                usize::try_from(total).unwrap_or(usize::MAX).saturating_sub(pages)
            });
            if pages_left > sought.len() || pages > hits + KEYSET_FROM {
                return Ok(Listed::Done);
            }
        }
    }

    /// The project as a list gave it, or as a single read gives it where the list's answer lacks a
    /// declared field.
    pub(super) async fn completed(&self, project: &Project, seen: Seen) -> Result<Found, ApiError> {
        if seen.lacking.is_empty() {
            return Ok(Found::Here(seen));
        }
        // Others that are read meanwhile do not wait for this to be known: a lock over a read would
        // make all of them come one by one.
        if seen.lacking.iter().all(|name| self.in_no_answer().contains(name)) {
            return Ok(Found::Here(seen));
        }
        let found = self.point_read(project).await?;
        if let Found::Here(seen) = &found {
            self.in_no_answer().extend(seen.lacking.iter().cloned());
        }
        Ok(found)
    }

    fn in_no_answer(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.in_no_answer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is looked at of a project object.
    fn seen(&self, project: &Project, raw: &Object) -> Seen {
        let facts = facts(project, raw);
        let mut sections = BTreeMap::new();
        let mut lacking = Vec::new();
        for section in project
            .sections
            .values()
            .filter(|section| matches!(section.kind.source(&facts.target), Source::Project))
        {
            let names = declared_names(section);
            let table = section.kind.table();
            let unsaid = |name: &&&str| {
                table.field(name).live_name(name).is_some_and(|live| !raw.contains_key(live))
            };
            lacking.extend(names.iter().filter(unsaid).map(|name| (*name).to_owned()));
            sections.insert(
                section.kind.section(),
                section.kind.read(raw, &|name| names.contains(name)),
            );
        }
        // Some lists do not say what the caller may do, and without that no list below the project
        // can be trusted to be whole.
        let has_lists = project
            .sections
            .values()
            .any(|section| matches!(section.kind.source(&facts.target), Source::List(_)));
        if has_lists && !self.caller.administrator && !raw.contains_key(PERMISSIONS) {
            lacking.push(PERMISSIONS.to_owned());
        }
        Seen {
            sees_all: self.caller.administrator || role(raw) >= Some(SEES_ALL),
            facts,
            sections,
            lacking,
        }
    }

    pub(super) async fn point_read(&self, project: &Project) -> Result<Found, ApiError> {
        let request = operation::PROJECT_GET
            .request()
            .arg("id", &project.path)
            .keeping(wanted::of_objects([project]));
        match self.client.get_known(request, &["id", "path_with_namespace"]).await {
            Ok(answer) => {
                let raw = answer.object().cloned().unwrap_or_default();
                let path = path_of(&raw);
                Ok(match deletion(&raw) {
                    Some(since) => Found::Not(Presence::Deleting { since }),
                    None if path.to_lowercase() == project.path.to_lowercase()
                        || Bug::IgnoreRename.is_planted() =>
                    {
                        Found::Here(self.seen(project, &raw))
                    }
                    None => Found::Not(Presence::Moved { to: Some(path.to_owned()) }),
                })
            }
            Err(error) if error.is_moved() => self.moved(error.moved_to()).await.map(Found::Not),
            Err(error) if error.is_project_not_found() => {
                self.missing(project).await.map(Found::Not)
            }
            Err(error) => Err(error),
        }
    }

    /// Where the project with `id` has gone. Some releases rename what they are about to delete.
    async fn moved(&self, id: Option<u64>) -> Result<Presence, ApiError> {
        let Some(id) = id else { return Ok(Presence::Moved { to: None }) };
        let answer = self.client.get(operation::PROJECT_GET.request().arg("id", id)).await?;
        if let Some(since) = answer.object().and_then(deletion) {
            return Ok(Presence::Deleting { since });
        }
        Ok(Presence::Moved {
            to: answer.body.get("path_with_namespace").and_then(Json::as_str).map(str::to_owned),
        })
    }

    /// A project that was not found is missing only for a caller who sees the namespace that it
    /// would be in.
    async fn missing(&self, project: &Project) -> Result<Presence, ApiError> {
        let parent = project.path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let namespace = self.namespace(parent).await?;
        Ok(match namespace {
            Some(namespace) => Presence::Missing(Target {
                path: project.path.clone(),
                id: None,
                namespace: Some(namespace),
            }),
            None => Presence::NoNamespace(parent.to_owned()),
        })
    }

    /// The namespace at `path`, looked up once.
    async fn namespace(&self, path: &str) -> Result<Option<Namespace>, ApiError> {
        let look_up = async || {
            let found = match self.namespace_at(path).await? {
                Some(namespace) => namespace,
                // A path of digits is taken for an id.
                None => self.namespace_among(path).await?,
            };
            Ok(match (found["id"].as_u64(), &found["kind"]) {
                (Some(id), kind) if kind == "user" => {
                    Some(Namespace { id, owner: self.namespace_owner(path).await? })
                }
                (Some(id), _) => Some(Namespace { id, owner: NamespaceOwner::Group }),
                (None, _) => None,
            })
        };
        self.namespaces.of(&path.to_lowercase(), look_up).await
    }

    /// The namespace that the service names `path`, `null` if there is none; `None` if it took
    /// `path` for something else.
    async fn namespace_at(&self, path: &str) -> Result<Option<Json>, ApiError> {
        let request = operation::NAMESPACE_GET.request().arg("id", path);
        match self.client.get_known(request, &["id", "full_path"]).await {
            Ok(answer) => Ok(Some(answer.body).filter(|namespace| is_at(namespace, path))),
            Err(error) if error.is_not_found() && !error.is_unknown_route() => Ok(Some(Json::Null)),
            Err(error) => Err(error),
        }
    }

    /// The namespace at `path` as a search finds it; `null` if it does not.
    async fn namespace_among(&self, path: &str) -> Result<Json, ApiError> {
        let request = operation::NAMESPACE_FIND.request().query("search", path);
        let found =
            self.client.list_known(request, Rows::with_id(&["full_path"])).await?.into_vec();
        Ok(found
            .into_iter()
            .map(Json::Object)
            .find(|namespace| is_at(namespace, path))
            .unwrap_or_default())
    }

    async fn namespace_owner(&self, username: &str) -> Result<NamespaceOwner, ApiError> {
        if username.eq_ignore_ascii_case(&self.caller.username) {
            return Ok(NamespaceOwner::Caller);
        }
        Ok(self.user(username).await?.map_or(NamespaceOwner::Caller, NamespaceOwner::User))
    }
}

/// The path that a project object says.
fn path_of(raw: &Object) -> &str {
    raw.get("path_with_namespace").and_then(Json::as_str).unwrap_or_default()
}

/// What is known of a project whatever is declared.
fn facts(project: &Project, raw: &Object) -> Facts {
    let in_personal = raw.get("namespace").is_some_and(|namespace| namespace["kind"] == "user");
    Facts {
        target: Target {
            path: project.path.clone(),
            id: raw.get("id").and_then(Json::as_u64),
            namespace: None,
        },
        archived: raw.get("archived").and_then(Json::as_bool).unwrap_or(false),
        personal_owner: raw
            .get("owner")
            .filter(|_| in_personal)
            .and_then(|owner| owner["id"].as_u64()),
    }
}

/// The day on which a project was marked for deletion, if it was and the service tells; `None` if
/// it was not.
fn deletion(raw: &Object) -> Option<Option<String>> {
    let marks = ["marked_for_deletion_on", "marked_for_deletion_at"].map(|name| raw.get(name));
    let mark = marks.into_iter().flatten().find(|mark| !mark.is_null())?;
    Some(mark.as_str().map(str::to_owned))
}

/// Whether a namespace is the one at `path`. Paths are the same in any case.
fn is_at(namespace: &Json, path: &str) -> bool {
    namespace["full_path"]
        .as_str()
        .is_some_and(|full_path| full_path.to_lowercase() == path.to_lowercase())
}

/// The caller's highest level in the project, as the project object says.
fn role(raw: &Object) -> Option<u64> {
    let permissions = raw.get(PERMISSIONS)?;
    let level = |name| permissions[name]["access_level"].as_u64();
    level("project_access").max(level("group_access"))
}
