//! Assertions about the number of steps, for tests.

use super::STEP_COUNT;

/// The number of steps of `work`, including the threads for which `work` waits.
fn count_steps(work: impl FnOnce()) -> u64 {
    let steps_before = STEP_COUNT.get();
    work();
    STEP_COUNT.get() - steps_before
}

/// Asserts that `work` on ten times as many items takes at most fifteen times as many steps.
pub fn assert_linear_growth(label: &str, work: impl Fn(usize)) {
    let (few, large_step_count) = (count_steps(|| work(30)), count_steps(|| work(300)));
    assert!(few >= 30, "{label}: {few} steps are counted, which tells nothing");
    assert!(
        large_step_count <= 15 * few,
        "{label}: {few} steps, and {large_step_count} for ten times as many"
    );
}
