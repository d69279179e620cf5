//! The group itself: how one is found, created, renamed, moved (beyond: groups, A.6) and restored
//! (A.7). undrift never deletes one.

use crate::{
    kind::{Facts, Former, Itself, calls::Turn},
    level::OWNER,
    operation,
};

use super::{
    creation::{self, Creation},
    prelude::*,
};

/// The group itself.
pub static KIND: Kind = Kind {
    section: "create",
    noun: "group",
    shape: Shape::Container,
    identity: &[],
    required: &[],
    removal: Removal::Nothing,
    homes: &[Home {
        scope: Scope::Group,
        place: Place::Itself(&Itself {
            creator: OWNER,
            // Its projects are a list of their own; here they would cost much and say nothing.
            get: |path| {
                operation::GROUP_GET.request().arg("id", path).query("with_projects", false)
            },
            path: "full_path",
            facts,
            looked_at: &[
                "id",
                "name",
                "full_path",
                "marked_for_deletion_on",
                RUNNERS_TOKEN,
                LICENSED[0],
                LICENSED[1],
            ],
            signs: &[RUNNERS_TOKEN],
            arrives_with: &[],
            level: Some(|group, user| {
                operation::GROUP_MEMBER_GET_ALL.request().arg("id", group).arg("user_id", user)
            }),
        }),
        rows: Rows::with_id(&["full_path"]),
        acts: &[operation::GROUP_CREATE, operation::GROUP_TRANSFER, operation::GROUP_RESTORE],
        ..Home::PLAIN
    }],
    rules: &Group,
};

struct Group;

impl Rules for Group {
    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let declared = match job.act {
            Act::Create(declared) => declared,
            Act::Itself(Turn::Move(former)) => return Ok(relocate(job, former)),
            Act::Itself(Turn::Restore) => {
                let restore = job.target.addressed(operation::GROUP_RESTORE.request());
                return Ok(vec![restore.into()]);
            }
            Act::Itself(Turn::Delete) | Act::Change(..) | Act::Remove(_) => {
                return Err(Unable::Needless);
            }
        };
        let parent = job.target.namespace.as_ref();
        let parent = parent.map(|parent| ("parent_id".to_owned(), parent.id.sent().into()));
        let within = job.target.naming().into_iter().chain(parent).collect();
        let post = operation::GROUP_CREATE.request();
        let takes = |_: &str, field: &Field, _: &str| field.accepted.on(Route::Create);
        let edit = operation::GROUP_UPDATE;
        Creation { post, takes: &takes, edit, within }.calls(job, declared)
    }
}

/// Renames it where it is, and then moves it: the service has no call for both. Without a group to
/// move to, it goes to the top.
fn relocate(job: &Job<'_>, former: &Former) -> Vec<Call> {
    let renamed = former.renames.then(|| creation::rename(job, operation::GROUP_UPDATE, former));
    let moved = former.transfers.then(|| {
        let parent = job.target.namespace.as_ref();
        let to = parent.map(|parent| ("group_id".to_owned(), parent.id.sent().into()));
        let transfer = job.target.addressed(operation::GROUP_TRANSFER.request());
        transfer.fields(to.into_iter().collect()).naming(["group_id".to_owned()])
    });
    renamed.into_iter().chain(moved).map(Call::from).collect()
}

/// The field that the service shows to owners only. Its value is never looked at.
const RUNNERS_TOKEN: &str = "runners_token";

/// The fields that a service shows, to everybody, with a licence for Premium only (beyond: groups, F).
const LICENSED: [&str; 2] = ["ip_restriction_ranges", "wiki_access_level"];

/// What the object of a group says whatever is declared. It does not tell the caller's level, but
/// what it shows to owners only does.
fn facts(raw: &Object) -> Facts {
    let mark = raw.get("marked_for_deletion_on").filter(|mark| !mark.is_null());
    Facts {
        id: raw.get("id").and_then(Json::as_u64),
        name: raw.get("name").and_then(Json::as_str).map(str::to_owned),
        level: raw.contains_key(RUNNERS_TOKEN).then_some(OWNER),
        tier: if LICENSED.iter().any(|name| raw.contains_key(*name)) {
            Tier::Premium
        } else {
            Tier::Free
        },
        deleting: mark.map(|mark| mark.as_str().map(str::to_owned)),
        ..Facts::default()
    }
}
