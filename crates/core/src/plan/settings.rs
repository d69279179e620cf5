//! The settings of a plan.

use std::sync::Arc;

use jiff::civil::Date;

use super::{GuardLimits, Holds};
use crate::{
    address::{Address, Selector},
    desired::{Desired, GroupDeclarations, Moves},
    kind::CreatedContainers,
    live::Caller,
    release::Release,
    secret::Secrets,
};

/// The inputs of a plan in addition to declarations and live state.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// The token's user.
    pub caller: Caller,
    /// The values of the secret references that are set.
    pub secrets: Arc<Secrets>,
    /// The configured release, for a service that does not show its release.
    pub release: Option<Release>,
    /// The missing containers that the run may create.
    pub creatable_containers: CreatedContainers,
    /// The declared paths and the former paths of containers.
    pub moves: Arc<Moves>,
    /// The declarations of the groups in the run.
    pub group_declarations: GroupDeclarations,
    /// The objects whose write-only fields are sent again.
    pub resend_selectors: Vec<Selector>,
    /// The holds of the run.
    pub holds: Holds,
    /// The limits of guards.
    pub guard_limits: GuardLimits,
    /// The service's names for hosts that have a neutral word in the reference, as (word, name).
    pub host_names: Vec<(&'static str, String)>,
    /// True if the token that plans may also write the plan, so that the role of its user matters.
    pub may_write: bool,
    /// True if the live state comes from a snapshot, which does not redirect former paths.
    pub is_offline: bool,
}

impl PlanSettings {
    /// The settings for a run of `desired` by `caller`, without options.
    pub fn for_run(caller: Caller, secrets: Arc<Secrets>, desired: &Desired) -> Self {
        Self {
            caller,
            secrets,
            release: None,
            creatable_containers: desired.creatable_containers(|_| false),
            moves: Arc::clone(&desired.moves),
            group_declarations: GroupDeclarations::from_containers(&desired.containers),
            resend_selectors: Vec::new(),
            holds: Holds::default(),
            guard_limits: GuardLimits::default(),
            host_names: Vec::new(),
            may_write: true,
            is_offline: false,
        }
    }

    /// The settings for the plan after the run. Write-only fields are not sent again, because the
    /// run already sent them.
    #[must_use]
    pub fn for_plan_after_run(self) -> Self {
        let mut settings = Self { resend_selectors: Vec::new(), ..self };
        settings.group_declarations.is_applied = true;
        settings
    }

    /// The last day on which the object at `address` is held; `None` if it is not held.
    pub(super) fn held_until(&self, address: &Address) -> Option<Date> {
        self.holds.held_until(address, &self.moves)
    }
}
