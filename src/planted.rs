//! Bugs on purpose, for the test that the simulator would find them.
//!
//! Each is a mistake that somebody could make, at the place where it would be made. Without the
//! feature `planted`, which only that test switches on, there are none, and the compiler removes
//! the questions.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A create whose answer was lost is sent again at once.
    RepeatCreates,
    /// What could come twice is sent again after the first look.
    ResendEarly,
    /// A write whose answer was lost is taken for done.
    LostIsDone,
    /// A list that contradicts itself is taken for whole.
    TrustLists,
    /// Only the first page of a list is read.
    FirstPageOnly,
    /// An entry that does not say what it is counts as one.
    TrustRows,
    /// A project that could not be read has nothing left to do.
    UnreadIsDone,
    /// A project is archived whether the rest is done or not.
    ArchiveUnverified,
    /// What was carried out is not read back.
    SkipReadBack,
    /// Live values that an edit repeats are never too old.
    KeepStaleValues,
    /// An edit repeats nothing.
    RepeatNothing,
    /// The scope of a variable is left out where it is addressed.
    DropFilter,
    /// A hook's secret is not sent again with another URL.
    ForgetToken,
    /// A wait that the service asks for is not kept.
    IgnoreRetryAfter,
    /// A signal ends nothing.
    GoOnAfterSignal,
    /// A token that is refused ends nothing.
    GoOnAfterRefusal,
    /// Answers are quoted as they are.
    QuoteEverything,
    /// Every 404 of a project means that it is missing.
    AnyNotFoundIsMissing,
    /// A project with another path is the one that is meant.
    IgnoreRename,
    /// What is not listed is removed.
    RemoveUnlisted,
    /// What a failed replacement removed is not put back.
    LeaveRemoved,
    /// The removal of a replacement is sent again while the first may still arrive.
    RemoveTwice,
    /// What a write answers is taken for the whole list.
    TakeAnswerForList,
    /// What a write does not answer is taken for what it was.
    TrustBareAnswers,
    /// What a step made readable is also removed, where the plan said nothing of it.
    RemovePossible,
    /// A step waits for no other container.
    IgnoreOtherContainers,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::RepeatCreates,
        Self::ResendEarly,
        Self::LostIsDone,
        Self::TrustLists,
        Self::FirstPageOnly,
        Self::TrustRows,
        Self::UnreadIsDone,
        Self::ArchiveUnverified,
        Self::SkipReadBack,
        Self::KeepStaleValues,
        Self::RepeatNothing,
        Self::DropFilter,
        Self::ForgetToken,
        Self::IgnoreRetryAfter,
        Self::GoOnAfterSignal,
        Self::GoOnAfterRefusal,
        Self::QuoteEverything,
        Self::AnyNotFoundIsMissing,
        Self::IgnoreRename,
        Self::RemoveUnlisted,
        Self::LeaveRemoved,
        Self::RemoveTwice,
        Self::TakeAnswerForList,
        Self::TrustBareAnswers,
        Self::RemovePossible,
        Self::IgnoreOtherContainers,
    ];

    /// Whether it is there, on this thread.
    #[cfg(feature = "planted")]
    pub fn is_planted(self) -> bool {
        PLANTED.get() == Some(self)
    }

    /// Whether it is there: never.
    #[cfg(not(feature = "planted"))]
    #[must_use]
    pub const fn is_planted(self) -> bool {
        false
    }

    /// Does `work` with it there, on this thread.
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
