//! The push rule of a project or group. It defines the pushes that the service refuses.

use super::prelude::*;

pub(super) struct PushRule;

impl KindRules for PushRule {
    // A new project gets a copy of the rule of the closest group above it.
    fn effects(&self, _subject_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        if before == after { Vec::new() } else { vec![Effect::AffectsNewContainers] }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        field::Equality,
        kind::{
            are_equal,
            testing::{
                creation_requests, edit_requests_for, fields, project_section, removal_requests,
            },
        },
        operation::{PUSH_RULE_CREATE, PUSH_RULE_DELETE, PUSH_RULE_UPDATE},
    };

    #[test]
    fn a_rule_is_created_once_and_later_edited_with_the_changed_fields() {
        let declared =
            fields(json!({"commit_message_regex": null, "max_file_size": 5, "member_check": true}));
        let body =
            fields(json!({"commit_message_regex": "", "max_file_size": 5, "member_check": true}));
        assert_eq!(
            creation_requests(project_section("push_rule"), &declared),
            [PUSH_RULE_CREATE.request().with_argument("id", 7).with_fields(body)]
        );
        let raw = json!({"id": 1, "commit_message_regex": "x", "max_file_size": 5});
        let body = fields(json!({"commit_message_regex": ""}));
        assert_eq!(
            edit_requests_for(
                project_section("push_rule"),
                &declared,
                raw.clone(),
                &["commit_message_regex"]
            ),
            [PUSH_RULE_UPDATE.request().with_argument("id", 7).with_fields(body)]
        );
        assert_eq!(
            removal_requests(project_section("push_rule"), raw),
            [PUSH_RULE_DELETE.request().with_argument("id", 7)]
        );
    }

    #[test]
    fn a_changed_rule_affects_new_projects() {
        let rule = |size: u32| json!({"max_file_size": size}).as_object().cloned().unwrap();
        let no_rule = Object::new();
        for (before, after, expected) in [
            (no_rule.clone(), rule(5), vec![Effect::AffectsNewContainers]),
            (rule(5), rule(6), vec![Effect::AffectsNewContainers]),
            (rule(5), no_rule, vec![Effect::AffectsNewContainers]),
            (rule(5), rule(5), Vec::new()),
        ] {
            assert_eq!(PushRule.effects(None, &before, &after), expected, "{before:?} {after:?}");
        }
    }

    #[test]
    fn an_unset_expression_equals_null_and_empty_text() {
        for declared in [json!(null), json!("")] {
            assert!(are_equal(Equality::Exact, &declared, &json!(null)));
            assert!(are_equal(Equality::Exact, &declared, &json!("")));
            assert!(!are_equal(Equality::Exact, &declared, &json!("x")));
        }
    }
}
