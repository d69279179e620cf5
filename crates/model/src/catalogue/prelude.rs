//! Imports that most kinds need.

pub(super) use crate::{
    field::{Accepted, Compare, Field, Named, Route, Scope, Secrecy, Tier},
    kind::{
        Call, Capability, Effect, Fault, FieldLookup, Job, LiveEntry, NoCalls, Risk, Rules,
        Section, calls::Act, texts,
    },
    operation::{self, Op, Write},
    text,
    value::{self, Fields, Json, Object, Value, is_true},
};
