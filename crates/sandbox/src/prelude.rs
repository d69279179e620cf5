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

pub(crate) use super::access::*;
pub(crate) use super::answer::*;
pub(crate) use super::attributes::*;
pub(crate) use super::call::{ARCHIVED, Call, ParsedRequest};
pub(crate) use super::closed::{self, ArchiveRefusal};
pub(crate) use super::cron::Cron;
pub(crate) use super::page::Page;
pub(crate) use super::params::*;
pub(crate) use super::profile::{AbsentDelete, OBSERVED_RELEASE, Profile};
pub(crate) use super::scope::GroupOrProject;
pub(crate) use super::store::holder::Holder;
pub(crate) use super::store::merge_request::{MergeRequestRow, NoteRow};
pub(crate) use super::store::namespace::{Namespace, NewGroup};
pub(crate) use super::store::project::{Import, NewProject, Project};
pub(crate) use super::store::protection::{self, *};
pub(crate) use super::store::record::{Record, RecordTable};
pub(crate) use super::store::repository::*;
pub(crate) use super::store::stored::{Stored, execute, query_rows, stored};
pub(crate) use super::store::user::User;
pub(crate) use super::stored_settings::{GROUP_SETTINGS, USER_SETTINGS};
pub(crate) use super::{ServiceState, access, clock, page, params, re2, settings, urls};
