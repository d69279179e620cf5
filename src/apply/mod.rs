//! Applying a plan.

mod event;

pub use event::{Applied, Event, Outcome, StepResult, Unstuck, UnstuckReason};
