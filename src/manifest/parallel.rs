//! Parallel work on all processors.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use crate::steps;

/// Does `work` on every item and drops the item afterwards. The results have the order of the
/// items.
pub(super) fn for_each<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut own = Vec::new();
                while let Some((at, item)) = next() {
                    own.push((at, work(item)));
                }
                results.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
                taken.fetch_add(steps::so_far(), Ordering::Relaxed);
            });
        }
    });
    steps::add(taken.into_inner());
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        let items: Vec<_> = (0..1000).collect();
        let doubled: Vec<_> = items.iter().map(|item| item * 2).collect();
        assert_eq!(for_each(items, |item| item * 2), doubled);
        assert_eq!(for_each(Vec::new(), |item: u8| item), [0; 0]);
    }
}
