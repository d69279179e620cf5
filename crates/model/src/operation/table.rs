//! Every operation, a constant for each row of `table.yaml`. The build writes them.

use super::{Again, Answer, AnyOp, List, Method, Op, Operation, Read, Write};
use crate::{
    field::{Route, Scope, Tier},
    release::Release,
};

include!(concat!(env!("OUT_DIR"), "/operations.rs"));
