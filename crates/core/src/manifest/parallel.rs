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
    let results: Vec<_> = items.iter().map(|_| None).collect();
    let work_list = Mutex::new((items.into_iter().enumerate(), results));
    let next = |done: Option<(usize, R)>| {
        let mut list = work_list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, result)) = done {
            list.1[at] = Some(result);
        }
        list.0.next()
    };
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut next_item = next(None);
                while let Some((at, item)) = next_item {
                    next_item = next(Some((at, work(item))));
                }
                taken.fetch_add(steps::so_far(), Ordering::Relaxed);
            });
        }
    });
    steps::add(taken.into_inner());
    let (_, results) = work_list.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().flatten().collect()
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
