//! Counts the steps of algorithms, in builds for tests. The tests check that the count grows in
//! proportion to the input. A count is the same on every machine, unlike a time. These steps have
//! nothing to do with the steps of a plan.

#[cfg(debug_assertions)]
mod testing;
#[cfg(debug_assertions)]
pub use testing::assert_linear_growth;

#[cfg(debug_assertions)]
thread_local! {
    static STEP_COUNT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a step.
#[inline]
pub fn count_step() {
    add_steps(1);
}

/// The number of steps that this thread counted; 0 without debug assertions.
pub fn counted_steps() -> u64 {
    #[cfg(debug_assertions)]
    return STEP_COUNT.get();
    #[cfg(not(debug_assertions))]
    0
}

/// Counts several steps at once, for example the steps of other threads that worked for this
/// thread.
pub fn add_steps(_steps: u64) {
    #[cfg(debug_assertions)]
    STEP_COUNT.set(STEP_COUNT.get() + _steps);
}
