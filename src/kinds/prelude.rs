//! Imports that most kinds need.

pub(super) use std::sync::LazyLock;

pub(super) use crate::{
    field::{Accepted, Compare, Field, Keys, Named, Route, Scope, Secrecy, Tier, ValueType, Word},
    kind::{
        Call, Capability, Change, Create, Effect, Fault, FieldOf, Handle, Home, Job, Kind,
        LiveEntry, Place, Removal, Rules, Section, Shape, Table, Unable, calls::Act,
    },
    operation::{self, Op, Write},
    page::Rows,
    text,
    value::{Fields, Json, Object, Value},
    yaml,
};
