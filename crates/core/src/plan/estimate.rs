//! The size of a plan, and an estimate of how long apply takes if the service limits requests.
//!
//! Without a limit, no estimate is needed, because each response takes only milliseconds. With a
//! limit, the time depends on the limit for all requests, or on the limit for a single operation.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Plan;
use crate::{
    catalogue::operations,
    diff::{Action, Step},
    operation::{AnyOp, count_minutes},
};

/// The size of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    /// The number of objects that are created.
    pub create: usize,
    /// The number of objects that change.
    pub update: usize,
    /// The number of objects that are removed.
    pub delete: usize,
    /// The number of calls if no call fails.
    pub calls: usize,
    /// The number of groups and projects with steps.
    pub projects: usize,
}

impl Counts {
    /// The size of `steps`.
    pub fn from_steps<'s>(steps: impl Iterator<Item = &'s Step> + Clone) -> Self {
        let count_steps = |action| steps.clone().filter(|step| step.action == action).count();
        let paths: BTreeSet<_> = steps.clone().map(|step| &step.address.path).collect();
        Self {
            create: count_steps(Action::Create),
            update: count_steps(Action::Update),
            delete: count_steps(Action::Delete),
            calls: steps
                .map(|step| step.calls.iter().filter(|call| !call.is_fallback()).count())
                .sum(),
            projects: paths.len(),
        }
    }
}

/// The estimated time of apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The number of requests: the calls, and the reads after calls whose responses do not show the
    /// object.
    pub requests: u64,
    /// The time in seconds, rounded to whole minutes.
    pub seconds: u64,
    /// The limit that decides the time, in requests per minute.
    pub a_minute: u64,
    /// The operation whose own limit decides the time; `None` if the limit of all requests decides.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "crate::text::serialize_optional_word"
    )]
    pub operation: Option<&'static str>,
}

impl Plan {
    /// Estimates the time of all steps on a service with a limit of `per_minute` requests; `None`
    /// below one minute, or without a limit.
    #[must_use]
    pub fn with_estimate(mut self, per_minute: Option<u64>) -> Self {
        self.estimate = per_minute.and_then(|limit| self.estimate(limit));
        self
    }

    fn estimate(&self, per_minute: u64) -> Option<Estimate> {
        let mut calls_by_operation: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        let mut reread_sections = BTreeSet::new();
        let (mut requests, mut operation_rows) = (0, BTreeMap::new());
        for step in &self.steps {
            for call in step.calls.iter().filter(|call| !call.is_fallback()) {
                requests += 1;
                let Some(operation) = operation_rows
                    .entry(call.operation)
                    .or_insert_with(|| operations::find_operation(call.operation).map(AnyOp::row))
                else {
                    continue;
                };
                if let Some(limit) = operation.requests_per_minute {
                    calls_by_operation.entry(operation.id).or_insert((0, limit.into())).0 += 1;
                }
                if !operation.shows_object {
                    reread_sections.insert((&step.address.path, step.address.section));
                }
            }
        }
        requests += reread_sections.len() as u64;
        let limited_ops =
            calls_by_operation.into_iter().map(|(id, (count, limit))| (Some(id), count, limit));
        let estimates =
            limited_ops.chain([(None, requests, per_minute)]).map(|(operation, count, limit)| {
                let seconds = 60 * count_minutes(count, limit);
                Estimate { requests, seconds, a_minute: limit, operation }
            });
        // If times are equal, `max_by_key` returns the last one: the time of all requests together.
        estimates.max_by_key(|estimate| estimate.seconds).filter(|estimate| estimate.seconds > 0)
    }
}
