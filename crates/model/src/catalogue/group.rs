//! The group itself: its lookup, creation, renaming, move and restoration. undrift never deletes a
//! group.

use crate::{
    kind::{ContainerFacts, ContainerLookup, calls::Lifecycle},
    level::OWNER,
    operation,
};

use super::{
    creation::{self, CreationRequests},
    prelude::*,
};

/// Finds and reads a group.
pub(super) static LOOKUP: ContainerLookup = ContainerLookup {
    creator_level: OWNER,
    // undrift reads projects from another list. Projects in this response would only slow it down.
    get_request: |path| {
        operation::GROUP_GET.request().with_argument("id", path).with_query("with_projects", false)
    },
    path_field: "full_path",
    read_facts,
    secret_facts: &[RUNNERS_TOKEN_FIELD],
    import_fields: &[],
    level_request: Some(|group_id, user_id| {
        operation::GROUP_MEMBER_GET_ALL
            .request()
            .with_argument("id", group_id)
            .with_argument("user_id", user_id)
    }),
};

pub(super) struct GroupRules;

impl KindRules for GroupRules {
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let declared = match context.purpose {
            CallPurpose::Create(declared) => declared,
            // A moved group without a parent group becomes a top-level group.
            CallPurpose::Container(Lifecycle::Move(former_location)) => {
                let ops = [operation::GROUP_UPDATE, operation::GROUP_TRANSFER];
                return Ok(creation::relocation_calls(context, former_location, ops, "group_id"));
            }
            CallPurpose::Container(Lifecycle::Restore) => {
                return Ok(vec![context.target.request(operation::GROUP_RESTORE).into()]);
            }
            CallPurpose::Container(Lifecycle::Delete)
            | CallPurpose::Change(..)
            | CallPurpose::Remove(_) => {
                return Err(NoCalls::NotNeeded);
            }
        };
        let parent_namespace = context.target.namespace.as_ref();
        let parent_field =
            parent_namespace.map(|parent| ("parent_id".to_owned(), parent.id.to_json().into()));
        let base_fields = context.target.naming_fields().into_iter().chain(parent_field).collect();
        let create_request = operation::GROUP_CREATE.request();
        let accepts =
            &|_: &str, field: &Field, _: &str| field.accepted.includes(WriteRequest::Create);
        let edit_op = operation::GROUP_UPDATE;
        CreationRequests { create_request, accepts, edit_op, base_fields }
            .plan_calls(context, declared)
    }
}

/// A field that the service shows only to owners. Its value is never read.
const RUNNERS_TOKEN_FIELD: &str = "runners_token";

/// A field that responses contain only with a Premium licence, for every caller. Other Premium
/// fields, such as `wiki_access_level`, are in every response of the enterprise edition, even
/// without a licence.
const LICENSED_FIELD: &str = "ip_restriction_ranges";

/// Reads the facts in the object of a group. The object does not contain the caller's level. But a
/// field that only owners see proves that the caller is an owner.
fn read_facts(raw: &Object) -> ContainerFacts {
    let deletion_day = raw.get("marked_for_deletion_on").filter(|day| !day.is_null());
    ContainerFacts {
        id: raw.get("id").and_then(Json::as_u64),
        name: value::text(raw, "name").map(str::to_owned),
        visibility: value::text(raw, "visibility").map(str::to_owned),
        caller_level: raw.contains_key(RUNNERS_TOKEN_FIELD).then_some(OWNER),
        tier: if raw.contains_key(LICENSED_FIELD) { Tier::Premium } else { Tier::Free },
        deletion_mark: deletion_day.map(|day| day.as_str().map(str::to_owned)),
        ..ContainerFacts::default()
    }
}
