//! The imports of most modules.

pub(crate) use std::borrow::Cow;
pub(crate) use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
pub(crate) use std::sync::{Arc, LazyLock, Mutex, PoisonError};
pub(crate) use std::time::Duration;

pub(crate) use bytes::Bytes;
pub(crate) use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
pub(crate) use jiff::Timestamp;
pub(crate) use jiff::civil::Date;
pub(crate) use jiff::tz::TimeZone;
pub(crate) use regex::{Captures, Regex};
pub(crate) use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};
pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use serde_json::{Map, Value, json};
pub(crate) use sha2::{Digest, Sha256};
pub(crate) use undrift_release::Release;

pub(crate) use super::access::{
    AccessToken, DEVELOPER, GUEST, MAINTAINER, MINIMAL, Memberships, OWNER, PLANNER, REPORTER,
    ROLE_LEVELS, level_name, traversal_ids,
};
pub(crate) use super::answer::{
    Answer, ErrorResponse, FieldErrors, Object, OrRefusal as _, Result, add_fields, length_error,
    number_error, refuse_field, refuse_if, remove_fields, set_if, try_any, try_filter,
};
pub(crate) use super::attributes::{
    ATTRIBUTE_TABLE, Attribute, AttributeTier, Audience, Edition, OnNull, VISIBILITIES, ValueKind,
    WriteRoute, read_table,
};
pub(crate) use super::call::{ARCHIVED, Call, ParsedRequest};
pub(crate) use super::closed::{self, ArchiveRefusal};
pub(crate) use super::cron::Cron;
pub(crate) use super::page::Page;
pub(crate) use super::params::{
    NONE_SENT_TEXT, Need, Params, Upload, read_allowed_integer, read_flag, read_integer, read_text,
};
pub(crate) use super::profile::{AbsentDelete, OBSERVED_RELEASE, Profile};
pub(crate) use super::scope::GroupOrProject;
pub(crate) use super::store::holder::Holder;
pub(crate) use super::store::merge_request::{MergeRequestRow, NoteRow};
pub(crate) use super::store::namespace::{Namespace, NewGroup};
pub(crate) use super::store::project::{Import, NewProject, Project};
pub(crate) use super::store::protection::{
    self, Grant, Grantee, ProtectedAction, Protection, matches_pattern,
};
pub(crate) use super::store::record::{Record, RecordTable};
pub(crate) use super::store::repository::{
    BRANCHES, Commit, CommitEdit, GitRef, RefKind, Repository, RepositoryFile, TAGS, digest_id,
    is_ref_name,
};
pub(crate) use super::store::stored::{Stored, execute, query_rows, stored};
pub(crate) use super::store::user::User;
pub(crate) use super::stored_settings::{GROUP_SETTINGS, USER_SETTINGS};
pub(crate) use super::{ServiceState, access, clock, page, params, re2, settings, urls};
