//! Imports that most kinds need.

pub(super) use crate::{
    field::{Accepted, Compare, Field, Named, Route, Scope, Secrecy, Tier},
    kind::{
        Call, Capability, Effect, Fault, FieldOf, Job, LiveEntry, Risk, Rules, Section, Unable,
        calls::Act, texts,
    },
    operation::{self, Op, Write},
    text,
    value::{Fields, Json, Object, Value},
};
