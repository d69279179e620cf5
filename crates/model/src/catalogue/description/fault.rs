//! Faults of descriptions. Their texts, and the types that keys fit, are data:
//! `description_faults.yaml`.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use crate::{field::ValueType, value::Json, yaml};

/// A fault of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionFault {
    /// The place in the description: keys and positions, separated by `/`.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: &'static str,
}

/// The content of the data file.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), deny_unknown_fields)]
pub(super) struct FaultTable {
    pub(super) keys: Vec<KeyFit>,
    /// Names in paths, by the fault that they mean.
    pub(super) paths: BTreeMap<&'static str, Vec<&'static str>>,
    /// The message and the help of each fault.
    pub(super) faults: BTreeMap<&'static str, (&'static str, &'static str)>,
}

/// The types that a key fits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyFit {
    pub(super) key: &'static str,
    /// The values that it is about; all, if it names none.
    #[serde(default)]
    pub(super) values: Vec<Json>,
    pub(super) types: Vec<ValueType>,
    pub(super) help: &'static str,
}

pub(super) static DATA: LazyLock<FaultTable> =
    LazyLock::new(|| yaml::built_in!("catalogue/description/faults"));

/// The fault `name` of the data file at `at`, with `about` in place of `{}` in its message.
pub(super) fn fault(at: impl Into<String>, name: &str, about: &str) -> DescriptionFault {
    let (message, help) = DATA.faults[name];
    DescriptionFault { pointer: at.into(), message: message.replace("{}", about), help }
}
