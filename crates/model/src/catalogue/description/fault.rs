//! Faults of descriptions. The file `faults.yaml` contains their texts, and the field types that
//! allow each key.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use crate::{field::ValueType, value::Json, yaml};

/// A fault of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionFault {
    /// The location in the description: keys and positions, separated by `/`.
    pub pointer: String,
    /// The problem.
    pub message: String,
    /// The advice.
    pub help: &'static str,
}

/// The content of `faults.yaml`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), deny_unknown_fields)]
pub(super) struct FaultTable {
    pub(super) keys: Vec<KeyTypes>,
    /// Names in paths, by the key of the fault that they cause.
    pub(super) paths: BTreeMap<&'static str, Vec<&'static str>>,
    /// The message and the help of each fault.
    pub(super) faults: BTreeMap<&'static str, (&'static str, &'static str)>,
}

/// The field types that allow a key of descriptions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyTypes {
    pub(super) key: &'static str,
    /// The values of the key that only these types allow. An empty list means all values.
    #[serde(default)]
    pub(super) values: Vec<Json>,
    pub(super) types: Vec<ValueType>,
    pub(super) help: &'static str,
}

pub(super) static FAULT_TABLE: LazyLock<FaultTable> =
    LazyLock::new(|| yaml::built_in!("catalogue/description/faults"));

/// The fault `key` of the table at `pointer`, with `detail` in place of `{}` in its message.
pub(super) fn new_fault(pointer: impl Into<String>, key: &str, detail: &str) -> DescriptionFault {
    let (message, help) = FAULT_TABLE.faults[key];
    DescriptionFault { pointer: pointer.into(), message: message.replace("{}", detail), help }
}
