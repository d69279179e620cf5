//! How long apply takes where the service limits requests.
//!
//! Without a limit nobody can tell and nobody has to: answers take milliseconds. With one, the limit
//! decides: that of the user, or of an operation that is limited by itself.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::Plan;

/// About how long apply takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Requests: the calls, and what is read back because their answers do not show it.
    pub requests: u64,
    /// About how many seconds that takes, in whole minutes.
    pub seconds: u64,
    /// How many requests a minute of what takes longest the service answers.
    pub a_minute: u64,
    /// What takes longest, if it is an operation with a limit of its own; else it is all requests
    /// together.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::text::word_if_any")]
    pub operation: Option<&'static str>,
}

impl Plan {
    /// About how long it takes to carry out all steps on a service that answers so many requests
    /// `a_minute`; nothing if that is less than a minute, or nothing is limited.
    #[must_use]
    pub fn estimated(mut self, a_minute: Option<u64>) -> Self {
        self.estimate = a_minute.and_then(|a_minute| self.estimate(a_minute));
        self
    }

    fn estimate(&self, a_minute: u64) -> Option<Estimate> {
        let mut calls: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        let mut read_back = BTreeSet::new();
        let mut requests = 0;
        for step in &self.steps {
            for call in step.sends.iter().filter(|call| !call.is_spare()) {
                let operation = call.request.operation;
                requests += 1;
                if let Some(limit) = operation.a_minute {
                    calls.entry(operation.id).or_insert((0, limit.into())).0 += 1;
                }
                if !operation.shows {
                    read_back.insert((&step.address.path, step.address.section));
                }
            }
        }
        requests += read_back.len() as u64;
        let own = calls.into_iter().map(|(id, (count, limit))| (Some(id), count, limit));
        let estimates = own.chain([(None, requests, a_minute)]).map(|(operation, count, limit)| {
            // What fits into a minute's budget is sent at once; each further one takes a minute.
            let minutes = count.saturating_sub(1) / limit.max(1);
            Estimate { requests, seconds: 60 * minutes, a_minute: limit, operation }
        });
        // Of several that take as long, all requests together are the last.
        estimates.max_by_key(|estimate| estimate.seconds).filter(|estimate| estimate.seconds > 0)
    }
}
