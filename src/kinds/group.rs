//! The group itself: how one is found. undrift neither creates nor deletes one yet.

use crate::{
    field::Scope,
    kind::{Facts, Home, Itself, Kind, Place, Plain, Shape},
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
            // Its projects are a list of their own; here they would cost much and say nothing.
            get: |path| {
                operation::GROUP_GET.request().arg("id", path).query("with_projects", false)
            },
            path: "full_path",
            facts,
            looked_at: &["id", "full_path", "marked_for_deletion_on", RUNNERS_TOKEN],
            level: Some(|group, user| {
                operation::GROUP_MEMBER_GET_ALL.request().arg("id", group).arg("user_id", user)
            }),
        }),
        rows: Rows::with_id(&["full_path"]),
        ..Home::PLAIN
    }],
    rules: &Plain,
};

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
