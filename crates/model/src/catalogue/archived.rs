//! The archived state of a project. An archived project is read-only and hidden from lists.

use crate::operation;

use super::prelude::*;

pub(super) struct Archived;

impl KindRules for Archived {
    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let op = match context.purpose {
            CallPurpose::Create(declared) | CallPurpose::Change(declared, ..)
                if declared.is_on("archived") =>
            {
                operation::PROJECT_ARCHIVE
            }
            CallPurpose::Change(..) => operation::PROJECT_UNARCHIVE,
            // A new project is not archived.
            CallPurpose::Create(_) | CallPurpose::Remove(_) | CallPurpose::Container(_) => {
                return Err(NoCalls::NotNeeded);
            }
        };
        Ok(vec![context.target.request(op).into()])
    }

    fn effects(&self, _subject_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let [was_writable, is_writable] =
            [before, after].map(|fields| Some(!fields.get("archived")?.as_bool()?));
        Effect::capability_change(Capability::Writable, was_writable, is_writable)
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        kind::testing::{
            creation_requests, edit_requests_for, fields, project_section, removal_requests,
        },
        operation::{Op, PROJECT_ARCHIVE, PROJECT_UNARCHIVE, Write},
    };

    #[test]
    fn separate_operations_archive_and_unarchive() {
        let (on_fields, off_fields) =
            (fields(json!({"archived": true})), fields(json!({"archived": false})));
        let request = |op: Op<Write>| op.request().with_argument("id", 7);
        assert_eq!(
            edit_requests_for(
                project_section("archived"),
                &on_fields,
                json!({"archived": false}),
                &["archived"]
            ),
            [request(PROJECT_ARCHIVE)]
        );
        assert_eq!(
            edit_requests_for(
                project_section("archived"),
                &off_fields,
                json!({"archived": true}),
                &["archived"]
            ),
            [request(PROJECT_UNARCHIVE)]
        );
        assert_eq!(
            creation_requests(project_section("archived"), &on_fields),
            [request(PROJECT_ARCHIVE)]
        );
        assert_eq!(creation_requests(project_section("archived"), &off_fields), []);
        assert_eq!(removal_requests(project_section("archived"), json!({"archived": true})), []);
    }
}
