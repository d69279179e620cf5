//! Every operation, as a constant for each row of `table.yaml`. The build generates the constants.

use super::{AnyOp, Method, Op, Operation, ParameterList, Read, ResponseBody, RetrySafety, Write};
use crate::{
    field::{Scope, Tier, WriteRequest},
    release::Release,
};

include!(concat!(env!("OUT_DIR"), "/operations.rs"));
