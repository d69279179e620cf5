//! The imports of most operations.

pub(super) use http::{Method, StatusCode};
pub(super) use rusqlite::params;
pub(super) use serde_json::{Map, Value, json};
pub(super) use undrift_release::Release;

pub(super) use super::super::access::{
    AccessToken, DEVELOPER, GUEST, MAINTAINER, MINIMAL, Memberships, OWNER, PLANNER, REPORTER,
    ROLE_LEVELS, level_name, traversal_ids,
};
pub(super) use super::super::answer::{
    Answer, ErrorResponse, FieldErrors, Result, add_fields, length_error, number_error,
    refuse_field, refuse_if, remove_fields, set_if, try_any, try_filter,
};
pub(super) use super::super::attributes::{
    ATTRIBUTE_TABLE, Attribute, AttributeTier, Audience, OnNull, VISIBILITIES, ValueKind,
    WriteRoute as Accepts, strip_comments,
};
pub(super) use super::super::call::{ARCHIVED, Call};
pub(super) use super::super::cron::Cron;
pub(super) use super::super::page::Page;
pub(super) use super::super::params::{
    NONE_SENT_TEXT, Need, Params, Upload, read_allowed_integer, read_flag, read_integer,
};
pub(super) use super::super::profile::{AbsentDelete, OBSERVED_RELEASE, Profile};
pub(super) use super::super::scope::GroupOrProject;
pub(super) use super::super::store::holder::Holder;
pub(super) use super::super::store::merge_request::{MergeRequestRow, NoteRow};
pub(super) use super::super::store::namespace::{Namespace, NewGroup};
pub(super) use super::super::store::project::{Import, NewProject, Project};
pub(super) use super::super::store::protection::{
    self, Grant, Grantee, ProtectedAction, Protection, matches_pattern,
};
pub(super) use super::super::store::record::{Record, RecordTable};
pub(super) use super::super::store::repository::{
    BRANCHES, Commit, CommitEdit, GitRef, RefKind, Repository, RepositoryFile, TAGS, digest_id,
    is_ref_name,
};
pub(super) use super::super::store::stored::{Stored as _, stored};
pub(super) use super::super::store::user::User;
pub(super) use super::super::stored_settings::{GROUP_SETTINGS, USER_SETTINGS};
pub(super) use super::super::urls::UrlTargets;
pub(super) use super::super::{clock, page, params, re2, settings, urls};
pub(super) use super::fields::{FieldType, ReferencedType, RowField};
pub(super) use super::rows::{Collection, CollectionCall, Verb};
pub(super) use super::terms::{self, MembershipTerms};
pub(super) use super::view::{self, Extras};
pub(super) use super::{Route, delete, get, patch, post, put};
