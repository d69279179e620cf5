//! The imports of most operations.

pub(super) use super::super::attributes::WriteRoute;
pub(super) use super::super::prelude::*;
pub(super) use super::callbacks::Callbacks;
pub(super) use super::conditions::SqlConditions;
pub(super) use super::default_branches::{BRANCH_PROTECTION, DEFAULT_BRANCH, PROTECTION_DEFAULTS};
pub(super) use super::fields::missing_key_errors;
pub(super) use super::member_roles::MemberRole;
pub(super) use super::names::*;
pub(super) use super::project_rules::RequestedName;
pub(super) use super::registry::find_built_in;
pub(super) use super::rows::{Collection, CollectionCall, CollectionOperation};
pub(super) use super::terms::{self, MembershipTerms};
pub(super) use super::view::{self, ExtraFields};
pub(super) use super::{
    Route, actions, approval_rules, avatars, custom_attributes, default_branches, delete, get,
    grants, group_moves, group_rules, group_settings, groups, instance, member_roles, members,
    patch, post, project_list, project_rules, projects, protected_branches, put, shares, users,
};
