//! The group itself: how one is found and created. undrift never deletes one.

use super::creation::Creation;
use crate::{
    field::{Field, Route, Scope},
    kind::{Call, Facts, Home, Itself, Job, Kind, Place, Rules, Shape, Unable, calls::Act},
    level::OWNER,
    operation,
    page::Rows,
    value::{Json, Object},
};

/// The group itself.
pub static KIND: Kind = Kind {
    section: "create",
    noun: "group",
    shape: Shape::Container,
    identity: &[],
    required: &[],
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
            looked_at: &["id", "full_path", "marked_for_deletion_on", RUNNERS_TOKEN],
            arrives_with: &[],
            level: Some(|group, user| {
                operation::GROUP_MEMBER_GET_ALL.request().arg("id", group).arg("user_id", user)
            }),
        }),
        rows: Rows::with_id(&["full_path"]),
        acts: &[operation::GROUP_CREATE],
        ..Home::PLAIN
    }],
    rules: &Group,
};

struct Group;

impl Rules for Group {
    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let Act::Create(declared) = job.act else { return Err(Unable::Needless) };
        let parent = job.target.namespace.as_ref();
        let parent = parent.map(|parent| ("parent_id".to_owned(), parent.id.sent().into()));
        let within = job.target.naming().into_iter().chain(parent).collect();
        let post = operation::GROUP_CREATE.request();
        let takes = |_: &str, field: &Field, _: &str| field.accepted.on(Route::Create);
        let edit = operation::GROUP_UPDATE;
        Creation { post, takes: &takes, edit, within }.calls(job, declared)
    }
}

/// The field that the service shows to owners only. Its value is never looked at.
const RUNNERS_TOKEN: &str = "runners_token";

/// What the object of a group says whatever is declared. It does not tell the caller's level, but
/// what it shows to owners only does.
fn facts(raw: &Object) -> Facts {
    let mark = raw.get("marked_for_deletion_on").filter(|mark| !mark.is_null());
    Facts {
        id: raw.get("id").and_then(Json::as_u64),
        level: raw.contains_key(RUNNERS_TOKEN).then_some(OWNER),
        deleting: mark.map(|mark| mark.as_str().map(str::to_owned)),
        ..Facts::default()
    }
}
