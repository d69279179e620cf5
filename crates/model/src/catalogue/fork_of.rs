//! The upstream project of a fork.
//!
//! The module [`source`](super::source) creates a new project as a fork.

use crate::{kind::plain_text, operation::Request};

use super::prelude::*;

/// The name of the section, of its field, and of the same field in `create`.
pub const FORK_OF: &str = "fork_of";

const UPSTREAM_ARGUMENT: &str = "forked_from_id";

pub(super) struct ForkRelation;

impl KindRules for ForkRelation {
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        match context.purpose {
            CallPurpose::Create(declared) => Ok(vec![relation_request(context, declared)?.into()]),
            CallPurpose::Remove(live) => Ok(vec![context.removal_request(live)?.into()]),
            // A project can have only one fork relation. Therefore the old relation is removed
            // first, and is restored if the new relation fails.
            CallPurpose::Change(declared, live, _) => Ok(vec![
                context.removal_request(live)?.prevent_resend().into(),
                relation_request(context, declared)?.into(),
                PlannedCall { is_restore: true, ..former_relation_request(context, live).into() },
            ]),
            CallPurpose::Container(_) => Err(NoCalls::NotNeeded),
        }
    }

    fn effects(&self, _subject_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let former_upstream =
            value::text(before, FORK_OF).filter(|_| before.get(FORK_OF) != after.get(FORK_OF));
        let effect = former_upstream.map(|path| {
            let upstream = text::escape(path);
            Effect::SideEffect(format!(
                "closes this project's open merge requests into `{upstream}`"
            ))
        });
        effect.into_iter().collect()
    }
}

/// The request that makes the project a fork of the declared upstream.
pub(super) fn relation_request(
    context: &CallContext<'_>,
    declared: &Fields,
) -> Result<Request<Write>, NoCalls> {
    let path = declared.text(FORK_OF).unwrap_or_default();
    let id = context.names.require_id(NamedObject::Project, path, FORK_OF)?;
    let request = context.target.request(operation::FORK_RELATION_CREATE);
    Ok(request.with_argument_by_path(UPSTREAM_ARGUMENT, path, id.number()))
}

/// The request that restores the former upstream.
fn former_relation_request(context: &CallContext<'_>, live: &LiveEntry) -> Request<Write> {
    let path = live.fields.raw().get(FORK_OF).map(plain_text).unwrap_or_default();
    let request = context.target.request(operation::FORK_RELATION_CREATE);
    request.with_argument_by_path(UPSTREAM_ARGUMENT, &path, live.id())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            FieldSelection, NameIndex,
            testing::{
                existing_target, fields, live_entry, object, project_section, request_parts,
                requests_for,
            },
        },
        operation::{FORK_RELATION_CREATE, FORK_RELATION_DELETE},
    };

    fn names() -> NameIndex {
        let mut names = NameIndex::default();
        names.insert(NamedObject::Project, "acme/up", Some(4));
        names
    }

    fn upstream() -> Json {
        json!({"id": 9, "path_with_namespace": "acme/old", "name": "old"})
    }

    #[test]
    fn a_relation_is_added_replaced_and_removed() {
        let section = project_section("fork_of");
        let declared = fields(json!({"fork_of": "acme/up"}));
        let creation_request = |path: &str, id| {
            let request = FORK_RELATION_CREATE.request().with_argument("id", 7);
            request.with_argument_by_path("forked_from_id", path, Some(id))
        };
        let removal_request = || FORK_RELATION_DELETE.request().with_argument("id", 7);
        let (target, names) = (existing_target(), names());
        let creation_requests = requests_for(section, &names, CallPurpose::Create(&declared));
        assert_eq!(
            request_parts(&creation_requests),
            request_parts(&[creation_request("acme/up", 4)])
        );
        let live = live_entry(section, upstream());
        let release = crate::release::DetectedRelease::NotRequested;
        let context_for = |purpose| CallContext {
            section,
            target: &target,
            names: &names,
            release,
            has_unique_address: true,
            purpose,
        };
        let calls = section
            .rules()
            .calls(&context_for(CallPurpose::Change(&declared, &live, &["fork_of"])))
            .unwrap();
        let restore_flags: Vec<_> = calls.iter().map(|call| call.is_restore).collect();
        let requests: Vec<_> = calls.into_iter().map(|call| call.request).collect();
        assert_eq!(restore_flags, [false, false, true]);
        let expected = [
            removal_request().prevent_resend(),
            creation_request("acme/up", 4),
            creation_request("acme/old", 9),
        ];
        assert_eq!(request_parts(&requests), request_parts(&expected));
        assert_eq!(
            request_parts(&requests_for(section, &names, CallPurpose::Remove(&live))),
            request_parts(&[removal_request()])
        );
        let unknown_result = section.rules().calls(&CallContext {
            names: &NameIndex::default(),
            ..context_for(CallPurpose::Create(&declared))
        });
        assert!(matches!(
            unknown_result,
            Err(NoCalls::Impossible(EntryFault { code: "unknown-project", .. }))
        ));
    }

    #[test]
    fn a_project_without_fork_fields_is_no_fork() {
        let read_fork =
            |raw: Json| project_section("fork_of").read_nested(&object(raw), FieldSelection::Known);
        let entries =
            read_fork(json!({"forked_from_project": upstream(), "mr_default_target_self": false}));
        assert_eq!(entries.unwrap()[0].fields.raw(), &object(json!({"fork_of": "acme/old"})));
        assert!(read_fork(json!({"name": "x"})).unwrap().is_empty());
        assert!(read_fork(json!({"forked_from_project": null})).unwrap().is_empty());
        assert!(read_fork(json!({"mr_default_target_self": false})).is_none());
        assert!(read_fork(json!({"forked_from_project": {"id": 9}})).is_none());
    }

    #[test]
    fn the_effect_of_removing_a_relation_is_shown() {
        let count_effects = |before: Json, after: Json| {
            ForkRelation.effects(None, &object(before), &object(after)).len()
        };
        let (first_fork, second_fork) =
            (json!({"fork_of": "acme/one"}), json!({"fork_of": "acme/two"}));
        assert_eq!(count_effects(first_fork.clone(), json!({})), 1);
        assert_eq!(count_effects(first_fork.clone(), second_fork), 1);
        assert_eq!(count_effects(json!({}), first_fork.clone()), 0);
        assert_eq!(count_effects(first_fork.clone(), first_fork), 0);
    }
}
