//! Counts steps of work that could grow faster than its input. Tests use them instead of a clock.

#[cfg(test)]
mod testing;
#[cfg(test)]
pub(crate) use testing::grow_in_proportion;

#[cfg(test)]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a step.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    TAKEN.set(TAKEN.get() + 1);
}

/// The number of steps of this thread.
pub(crate) fn so_far() -> u64 {
    #[cfg(test)]
    return TAKEN.get();
    #[cfg(not(test))]
    0
}

/// Adds the steps of other threads that worked for this one.
pub(crate) fn add(_steps: u64) {
    #[cfg(test)]
    TAKEN.set(TAKEN.get() + _steps);
}
