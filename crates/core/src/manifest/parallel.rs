//! Runs work in parallel on all processors.

use std::{
    iter,
    panic::resume_unwind,
    sync::{Mutex, PoisonError},
    thread,
};

use crate::steps;

/// Calls `work` with every item, on several threads. The results have the order of the items.
pub(super) fn map_parallel<T: Send, R: Send>(
    items: Vec<T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let thread_count = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if thread_count < 2 {
        return items.into_iter().map(work).collect();
    }
    let queue = Mutex::new(items.into_iter().enumerate());
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let run_worker = || {
            let tasks =
                iter::from_fn(|| queue.lock().unwrap_or_else(PoisonError::into_inner).next());
            let results: Vec<_> = tasks.map(|(index, item)| (index, work(item))).collect();
            (results, steps::counted_steps())
        };
        let workers: Vec<_> = (0..thread_count).map(|_| scope.spawn(run_worker)).collect();
        let all_results = workers.into_iter().flat_map(|worker| {
            let (results, step_count) = worker.join().unwrap_or_else(|cause| resume_unwind(cause));
            steps::add_steps(step_count);
            results
        });
        all_results.collect()
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        let items: Vec<_> = (0..1000).collect();
        let doubled: Vec<_> = items.iter().map(|item| item * 2).collect();
        assert_eq!(map_parallel(items, |item| item * 2), doubled);
        assert_eq!(map_parallel(Vec::new(), |item: u8| item), [0; 0]);
    }
}
