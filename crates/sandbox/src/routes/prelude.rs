//! The imports of most operations.

pub(super) use http::StatusCode;
pub(super) use rusqlite::params;
pub(super) use serde_json::{Map, Value, json};
pub(super) use undrift_release::Release;

pub(super) use super::super::access::{DEVELOPER, GUEST, MAINTAINER, OWNER, REPORTER, ids};
pub(super) use super::super::answer::{
    Answer, Complaints, Failure, Result, number_fault, refuse_if, set_if,
};
pub(super) use super::super::attributes::{Route as Accepts, Tier, VISIBILITIES};
pub(super) use super::super::call::Call;
pub(super) use super::super::page;
pub(super) use super::super::params::{Need, Params};
pub(super) use super::super::profile::OBSERVED;
pub(super) use super::super::scope::Scope;
pub(super) use super::super::store::holder::Holder;
pub(super) use super::super::store::namespace::Namespace;
pub(super) use super::super::store::project::Project;
pub(super) use super::super::store::record::Record;
pub(super) use super::super::store::stored::Stored as _;
pub(super) use super::super::store::user::User;
pub(super) use super::super::stored_settings::OF_GROUPS;
pub(super) use super::{Route, delete, get, patch, post, put};
