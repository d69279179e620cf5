//! Steps where work could grow faster than its input, counted for tests: these look at no clock.

#[cfg(test)]
thread_local! {
    static TAKEN: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A step is taken.
#[inline]
pub(crate) fn step() {
    #[cfg(test)]
    TAKEN.set(TAKEN.get() + 1);
}

/// How many steps this thread has taken.
pub(crate) fn so_far() -> u64 {
    #[cfg(test)]
    return TAKEN.get();
    #[cfg(not(test))]
    0
}

/// Other threads have taken steps for this one.
pub(crate) fn add(_steps: u64) {
    #[cfg(test)]
    TAKEN.set(TAKEN.get() + _steps);
}

/// How many steps `work` takes on this thread, and on those that it waits for.
#[cfg(test)]
pub(crate) fn taken(work: impl FnOnce()) -> u64 {
    let before = TAKEN.get();
    work();
    TAKEN.get() - before
}

/// Requires of `work` on so many things that ten times as many take at most fifteen times the steps.
#[cfg(test)]
pub(crate) fn grow_in_proportion(about: &str, work: impl Fn(usize)) {
    let (few, many) = (taken(|| work(30)), taken(|| work(300)));
    assert!(few >= 30, "{about}: {few} steps are counted, which tells nothing");
    assert!(many <= 15 * few, "{about}: {few} steps, and {many} for ten times as many");
}
