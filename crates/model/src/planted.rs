//! Intentional bugs. A test proves that the simulator finds each of them.
//!
//! Each bug is a plausible mistake, in the code where somebody could make this mistake. The bugs
//! exist only with the feature `planted`. Only the test of the simulator switches this feature on.

/// A bug to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A create request whose response was lost is sent again at once.
    ResendLostCreates,
    /// A create request that could make a duplicate is sent again after the first read.
    ResendEarly,
    /// A write whose response was lost is treated as done.
    AssumeLostWriteApplied,
    /// A list that contradicts itself is treated as complete.
    AcceptInconsistentLists,
    /// Only the first page of a list is read.
    FirstPageOnly,
    /// A row that lacks its identity is treated as an entry.
    AcceptRowsWithoutIdentity,
    /// A project that could not be read is treated as done.
    AssumeUnreadProjectDone,
    /// A project is archived before its other steps are done.
    ArchiveUnfinishedProject,
    /// Writes are not read back.
    SkipReadBack,
    /// An edit may send live values that are too old. (Some edits must repeat unchanged values.)
    SendStaleValues,
    /// An edit omits unchanged values that the service would otherwise reset.
    OmitRepeatedValues,
    /// Requests for a variable omit its environment scope.
    OmitVariableScope,
    /// The secret of a hook is not sent again with a new URL.
    OmitHookSecret,
    /// `Retry-After` is ignored.
    IgnoreRetryAfter,
    /// The run continues after a signal.
    ContinueAfterSignal,
    /// The run continues after the token is refused.
    ContinueAfterTokenRefusal,
    /// Messages quote responses without redaction.
    QuoteUnredacted,
    /// Every 404 of a project is treated as a missing project.
    TreatAnyNotFoundAsMissing,
    /// A project with another path is treated as the requested project.
    IgnoreRename,
    /// Unlisted entries are removed.
    RemoveUnlisted,
    /// An entry that a failed replacement removed is not restored.
    SkipRestore,
    /// The removal in a replacement is sent again although the first request may still arrive.
    ResendRemovals,
    /// The response to a write is treated as the whole list.
    TreatResponseAsWholeList,
    /// Fields that the response to a write lacks are treated as unchanged.
    TrustIncompleteResponses,
    /// Entries that became readable during the run are removed, although the plan did not list them.
    RemoveUnplannedEntries,
    /// Steps do not wait for other containers.
    IgnoreOtherContainers,
}

impl Bug {
    /// True if the bug is planted on this thread.
    #[cfg(feature = "planted")]
    pub fn is_planted(self) -> bool {
        PLANTED_BUG.get() == Some(self)
    }

    /// Returns `false`, because the feature `planted` is off.
    #[cfg(not(feature = "planted"))]
    #[must_use]
    pub const fn is_planted(self) -> bool {
        false
    }

    /// Runs `work` with the bug planted on this thread.
    #[cfg(feature = "planted")]
    pub fn run_with_bug<T>(self, work: impl FnOnce() -> T) -> T {
        PLANTED_BUG.set(Some(self));
        let result = work();
        PLANTED_BUG.set(None);
        result
    }
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED_BUG: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}
