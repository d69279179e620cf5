//! The attributes of a project that a caller can read.
//!
//! Each row of [`attributes`] defines which callers can read the attribute, and this module checks the
//! caller. This module also computes values that depend on several attributes, and fields that are not
//! attributes.

use super::attributes::{AnswerKey, RESTRICT_VARIABLES, VARIABLES_OVERRIDE_ROLE};
use super::routes::view::ExtraFields;
use super::settings::ROLE_ONLY_SINCE;
use crate::prelude::*;

/// A project as the caller sees it.
#[derive(Clone, Copy)]
pub(crate) struct ProjectView<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) project: &'a Project,
    /// The effective attributes.
    pub(crate) attributes: &'a Object,
    /// The caller's level; 0 for none.
    pub(crate) caller_level: i64,
    /// The optional fields of the response.
    pub(crate) extras: ExtraFields,
}

/// A key of a response with its value.
type AnswerField<'a> = (&'static str, Cow<'a, Value>);

impl<'a> ProjectView<'a> {
    /// The fields of the simple form.
    pub(crate) fn simple_form_fields(&self) -> impl Iterator<Item = AnswerField<'a>> {
        let tag_list =
            self.attributes.get("topics").map(|topics| ("tag_list", Cow::Borrowed(topics)));
        self.visible_attributes(true).chain(tag_list)
    }

    /// The fields that only the full form has.
    pub(crate) fn full_form_only_fields(&self) -> impl Iterator<Item = AnswerField<'a>> {
        self.visible_attributes(false).chain(self.derived_fields())
    }

    /// The existing attributes that this caller can see: those of the simple form if `is_simple`,
    /// else all others.
    fn visible_attributes(&self, is_simple: bool) -> impl Iterator<Item = AnswerField<'a>> {
        let view = *self;
        let release = self.call.release();
        let hides_unlisted = self.call.profile().unlisted_attributes_hidden;
        self.call
            .edition()
            .project_attributes()
            .filter(move |attribute| (attribute.answer_key == AnswerKey::Simple) == is_simple)
            .filter(move |attribute| {
                let is_shown_to_all = release < attribute.guarded_since;
                attribute.is_shown_at(release)
                    && (is_shown_to_all || view.is_in_audience(attribute.audience))
            })
            .filter(move |attribute| {
                !(hides_unlisted && attribute.answer_key == AnswerKey::Unlisted)
            })
            // From 16.3 on, the value depends on the groups above, and another function adds it.
            .filter(move |attribute| {
                attribute.name != "emails_disabled" || release < Release::new(16, 3)
            })
            .map(move |attribute| {
                let key = match attribute.answer_key {
                    AnswerKey::As(key) => key,
                    _ => attribute.name,
                };
                (key, view.visible_value(attribute))
            })
    }

    fn visible_value(&self, attribute: &'static Attribute) -> Cow<'a, Value> {
        let is_on = match attribute.kind {
            ValueKind::TwinOf(target) => self.may_use_feature(target),
            ValueKind::OppositeOf(target) => !self.is_on(target),
            // Merge trains need pipelines for merged results. Skipping a merge train also needs a merge
            // method other than `ff`.
            _ if attribute.name == "merge_trains_enabled" => self.has_merge_trains(),
            _ if attribute.name == "merge_trains_skip_train_allowed" => {
                self.has_merge_trains()
                    && self.is_on(attribute.name)
                    && self.attributes.get("merge_method") != Some(&"ff".into())
            }
            _ if attribute.name == RESTRICT_VARIABLES && self.call.release() >= ROLE_ONLY_SINCE => {
                self.attributes.get(VARIABLES_OVERRIDE_ROLE).is_some_and(|role| role != "developer")
            }
            // A project that was stored before the attribute existed has no value for it. The preset
            // is its value then.
            _ => {
                let value = self.attributes.get(attribute.name);
                return Cow::Borrowed(value.unwrap_or(attribute.preset));
            }
        };
        Cow::Owned(Value::Bool(is_on))
    }

    /// Fields of the response that are not attributes.
    fn derived_fields(&self) -> impl Iterator<Item = AnswerField<'a>> {
        let view = *self;
        let requirements = self.may_use_feature("requirements_access_level");
        let compliance = self.may_use_feature("security_and_compliance_access_level");
        let may_write = self.call.caller.is_some() && !self.project.archived;
        let can_create_merge_request =
            self.is_in_audience(Audience::WithMergeRequests) && may_write;
        [
            (Audience::Always, "requirements_enabled", requirements.into()),
            (Audience::Always, "security_and_compliance_enabled", compliance.into()),
            (Audience::Always, "can_create_merge_request_in", can_create_merge_request.into()),
            (Audience::Always, "compliance_frameworks", json!([])),
            (Audience::WithIssues, "open_issues_count", json!(0)),
            (Audience::ByHelpers, "service_desk_address", Value::Null),
            (Audience::By(MAINTAINER), "ci_job_token_scope_enabled", json!(false)),
            (Audience::By(MAINTAINER), "runner_token_expiration_interval", Value::Null),
        ]
        .into_iter()
        .filter(move |(audience, ..)| view.is_in_audience(*audience))
        .map(|(_, key, value)| (key, Cow::Owned(value)))
    }

    fn is_on(&self, name: &str) -> bool {
        self.attributes.get(name) == Some(&Value::Bool(true))
    }

    fn has_merge_trains(&self) -> bool {
        self.is_on("merge_pipelines_enabled") && self.is_on("merge_trains_enabled")
    }

    fn access_level(&self, feature: &str) -> &'a str {
        self.attributes.get(feature).and_then(Value::as_str).unwrap_or("enabled")
    }

    /// True if the caller may use a feature. `feature` is the name of the attribute with its access level.
    pub(crate) fn may_use_feature(&self, feature: &str) -> bool {
        let min_level = match feature {
            "merge_requests_access_level" | "container_registry_access_level" => REPORTER,
            "repository_access_level" if self.project.visibility == "private" => REPORTER,
            _ => GUEST,
        };
        match self.access_level(feature) {
            "disabled" => false,
            "private" => self.caller_level >= min_level,
            _ => true,
        }
    }

    /// True if the caller may read the repository. Guests may not read it in a private project.
    pub(crate) fn may_read_code(&self) -> bool {
        self.may_use_feature("repository_access_level")
            && (self.project.visibility != "private" || self.caller_level >= REPORTER)
    }

    pub(crate) fn is_in_audience(&self, audience: Audience) -> bool {
        match audience {
            Audience::Always => true,
            Audience::WithCode => self.may_read_code(),
            Audience::WithIssues => self.may_use_feature("issues_access_level"),
            Audience::WithMergeRequests => {
                self.may_use_feature("merge_requests_access_level") && self.may_read_code()
            }
            Audience::ByHelpers => {
                self.caller_level >= REPORTER
                    && !self.project.archived
                    && self.is_in_audience(Audience::WithIssues)
            }
            Audience::WhileMirroring => self.is_on("mirror"),
            Audience::InForks => self.project.forked_from_id.is_some(),
            Audience::By(level) => self.caller_level >= level,
            Audience::ByAdministrators => self.call.is_administrator(),
        }
    }
}
