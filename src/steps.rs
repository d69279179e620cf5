//! Counts steps of work that could grow faster than its input. Tests use them instead of a clock.

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

/// The number of steps of `work`, including threads that it waits for.
#[cfg(test)]
pub(crate) fn taken(work: impl FnOnce()) -> u64 {
    let before = TAKEN.get();
    work();
    TAKEN.get() - before
}

/// Requires that `work` on ten times as many things takes at most fifteen times as many steps.
#[cfg(test)]
pub(crate) fn grow_in_proportion(about: &str, work: impl Fn(usize)) {
    let (few, many) = (taken(|| work(30)), taken(|| work(300)));
    assert!(few >= 30, "{about}: {few} steps are counted, which tells nothing");
    assert!(many <= 15 * few, "{about}: {few} steps, and {many} for ten times as many");
}
