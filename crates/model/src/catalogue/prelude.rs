//! Imports that most kinds need.

pub(super) use crate::{
    field::{Accepted, Compare, Field, NamedObject, Scope, Secrecy, Tier, WriteRequest},
    kind::{
        CallContext, Capability, Effect, EntryFault, FieldLookup, KindRules, LiveEntry, NoCalls,
        PlannedCall, Risk, Section, calls::CallPurpose, texts,
    },
    operation::{self, Op, Write},
    text,
    value::{self, Fields, Json, Object, Value, is_true},
};
