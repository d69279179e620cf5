//! Protected tags of a project. The reference does not describe protected tags. This module follows
//! the real service. A protected tag cannot be updated: remove its protection and protect the tag
//! again.

use super::fields::next_row_id;
use super::grants::GrantPlan;
use super::prelude::*;

const PROTECTED_TAGS: RecordTable = RecordTable("protected_tags");

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: PROTECTED_TAGS,
    find_scope: |_, call| {
        let project = call.project_allowing_anonymous(MAINTAINER)?;
        if call.is_write {
            call.check_writable(&project)?;
        }
        Ok(project.into())
    },
    complete: complete_new_tag,
    // Responses do not show the id of a protected tag.
    to_json: |call, tag| {
        let grants = existing_grants(call, tag)?;
        let grants = grants.iter().map(|grant| grants::grant_json(call, grant));
        let grants = grants.collect::<Result<Vec<_>>>()?;
        Ok(json!({ "name": tag.text("name"), "create_access_levels": grants }))
    },
    ..Callbacks::DEFAULT
}];

const GRANTS: &str = "grants";

/// Adds the grants to a new protected tag, and checks the tag.
fn complete_new_tag(call: &CollectionCall<'_>, tag: &mut Record) -> Result<()> {
    let tier =
        if call.profile().tag_allowed_to_create_ignored { ServiceTier::Free } else { call.tier() };
    let changes = grants::read_initial_grants(call, tier, &[ProtectedAction::Create])?;
    let mut plan = GrantPlan::new(call, call.scope, &[], &changes)?;
    tag.set("name", tag.text("name").to_owned());
    if tag.text("name").trim().is_empty() {
        plan.errors.insert(0, "Name can't be blank".to_owned());
    }
    if tag.has_duplicate(&call.stored_rows()?, "name") {
        plan.errors.insert(0, "Name has already been taken".to_owned());
    }
    plan.check_errors()?;
    for grant in &mut plan.grants {
        grant.id = next_row_id(call)?;
    }
    tag.set(GRANTS, json!(plan.grants));
    Ok(())
}

/// The grants of a protected tag, without grants to a user, group or key that no longer exists.
fn existing_grants(call: &Call<'_>, tag: &Record) -> Result<Vec<Grant>> {
    let stored_grants: Vec<Grant> = serde_json::from_value(tag.value(GRANTS)).unwrap_or_default();
    try_filter(stored_grants, |grant| Ok(grants::grantee_name(call, grant.grantee())?.is_some()))
}

impl Project {
    /// The grants for creating the tag `name`, as one list for each protected tag whose pattern
    /// matches.
    pub(super) fn tag_grants(&self, call: &Call<'_>, name: &str) -> Result<Vec<Vec<Grant>>> {
        let mut protected_tags = PROTECTED_TAGS.list(call, Holder::Project(self.id))?;
        protected_tags.retain(|tag| matches_pattern(tag.text("name"), name));
        protected_tags.iter().map(|tag| existing_grants(call, tag)).collect()
    }
}
