//! Imports that most kinds need.

pub(super) use crate::{
    field::{Acceptance, Field, NamedObject, Scope, Secrecy, Tier, WriteRequest},
    kind::{
        CallContext, Calls, Capability, Effect, EntryFault, FieldLookup, KindRules, LiveEntry,
        NoCalls, PlannedCall, Reporter, Risk, Section, calls::CallPurpose, fault_text,
    },
    operation::{self, Op, Write},
    text,
    value::{self, Fields, Json, Object, Value, is_true},
};
