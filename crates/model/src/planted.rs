//! Intentional bugs, for a test which proves that the simulator finds them.
//!
//! Each is a plausible mistake, at the place where it would be made. They exist only with the
//! feature `planted`, which only that test switches on.

/// A bug to plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A create request whose response was lost is sent again at once.
    RepeatCreates,
    /// A create request that could make a duplicate is sent again after the first read.
    ResendEarly,
    /// A write whose response was lost counts as done.
    LostIsDone,
    /// A list that contradicts itself counts as complete.
    TrustLists,
    /// Only the first page of a list is read.
    FirstPageOnly,
    /// A row that lacks its identity counts as an entry.
    TrustRows,
    /// A project that could not be read counts as done.
    UnreadIsDone,
    /// A project is archived even if other steps are not done.
    ArchiveUnverified,
    /// Writes are not read back.
    SkipReadBack,
    /// An edit may send live values that are too old. (Some edits must repeat unchanged values.)
    KeepStaleValues,
    /// An edit omits unchanged values that the service would otherwise reset.
    RepeatNothing,
    /// The scope of a variable is left out of its address.
    DropFilter,
    /// The secret of a hook is not sent again with a new URL.
    ForgetToken,
    /// `Retry-After` is ignored.
    IgnoreRetryAfter,
    /// The run continues after a signal.
    GoOnAfterSignal,
    /// The run continues after the token is refused.
    GoOnAfterRefusal,
    /// Messages quote responses without redaction.
    QuoteEverything,
    /// Every 404 of a project counts as a missing project.
    AnyNotFoundIsMissing,
    /// A project with another path counts as the requested one.
    IgnoreRename,
    /// Unlisted entries are removed.
    RemoveUnlisted,
    /// An entry that a failed replacement removed is not restored.
    LeaveRemoved,
    /// The removal of a replacement is sent again while the first may still arrive.
    RemoveTwice,
    /// The response to a write counts as the whole list.
    TakeAnswerForList,
    /// Fields that the response to a write lacks count as unchanged.
    TrustBareAnswers,
    /// Entries that became readable during the run are removed, although the plan did not list them.
    RemovePossible,
    /// Steps do not wait for other containers.
    IgnoreOtherContainers,
}

impl Bug {
    /// True if the bug is planted on this thread.
    #[cfg(feature = "planted")]
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }

    /// Always `false` without the feature.
    #[cfg(not(feature = "planted"))]
    #[must_use]
    pub const fn is_planted(self) -> bool {
        false
    }

    /// Runs `work` with the bug planted on this thread.
    #[cfg(feature = "planted")]
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        PLANTED.set(Some(self));
        let result = work();
        PLANTED.set(None);
        result
    }
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}
