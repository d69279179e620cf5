//! Limits the number of connections, so that slow clients cannot keep all places.
//!
//! A connection keeps its place only while a completely received request is answered. Otherwise it
//! waits, for its client or for memory for a body. If all places are taken, a new connection gets
//! the place of the one that has waited longest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of a service.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    taken: Mutex<Occupied>,
    /// A connection left, or began to wait.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Occupied {
    seats: BTreeMap<u64, Seat>,
    /// Counts events, to find out who waits longer.
    count: u64,
}

#[derive(Debug)]
struct Seat {
    waiting_since: Option<u64>,
    leave: Arc<Notify>,
}

impl Occupied {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Drops the connection that has waited longest; false if none waits.
    fn make_room(&mut self) -> bool {
        let waiting =
            self.seats.iter().filter_map(|(number, seat)| Some((seat.waiting_since?, *number)));
        let seat = waiting.min().and_then(|(_, number)| self.seats.remove(&number));
        if let Some(seat) = &seat {
            seat.leave.notify_one();
        }
        seat.is_some()
    }
}

impl Places {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default(), changed: Notify::new() })
    }

    /// Takes a place, as soon as one is free or its connection waits. A new connection waits for
    /// its client.
    pub(crate) async fn enter(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.try_enter() {
                return place;
            }
            self.changed.notified().await;
        }
    }

    fn try_enter(self: &Arc<Self>) -> Option<Place> {
        let mut taken = self.lock();
        if taken.seats.len() >= self.most && !taken.make_room() {
            return None;
        }
        let (number, leave) = (taken.next(), Arc::new(Notify::new()));
        taken.seats.insert(number, Seat { waiting_since: Some(number), leave: Arc::clone(&leave) });
        Some(Place { places: Arc::clone(self), number, leave })
    }

    fn lock(&self) -> MutexGuard<'_, Occupied> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one connection; dropping it frees it.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    leave: Arc<Notify>,
}

impl Place {
    /// Marks the connection as waiting: from now on it may be dropped.
    pub(crate) fn wait(&self) {
        let mut taken = self.places.lock();
        let now = taken.next();
        if let Some(seat) = taken.seats.get_mut(&self.number) {
            seat.waiting_since = Some(now);
        }
        drop(taken);
        self.places.changed.notify_one();
    }

    /// Marks the connection as answering: until the next [`Place::wait`] it keeps its place. False
    /// if it was dropped already.
    pub(crate) fn work(&self) -> bool {
        let mut taken = self.places.lock();
        let seat = taken.seats.get_mut(&self.number);
        seat.map(|seat| seat.waiting_since = None).is_some()
    }

    /// Completes when the connection must close.
    pub(crate) async fn sent_away(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().seats.remove(&self.number);
        self.places.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_gone(place: &Place) -> bool {
        place.sent_away().now_or_never().is_some()
    }

    #[test]
    fn a_new_connection_replaces_the_longest_idle_one() {
        let places = Places::new(2);
        let (first, second) =
            (places.try_enter().expect("free"), places.try_enter().expect("free"));
        assert!(first.work());
        first.wait();
        let third = places.try_enter().expect("the second has waited longer than the first");
        assert!(is_gone(&second) && !is_gone(&first));
        assert!(!second.work(), "it is too late");
        drop(second);
        assert!(places.lock().seats.len() == 2, "its place was taken already");
        let fourth = places.try_enter().expect("the first waits");
        assert!(is_gone(&first) && !is_gone(&third) && !is_gone(&fourth));
    }

    #[tokio::test]
    async fn a_connection_being_answered_is_not_replaced() {
        let places = Places::new(2);
        let (first, second) = (places.enter().await, places.enter().await);
        assert!(first.work() && second.work());
        assert!(places.enter().now_or_never().is_none());
        second.wait();
        let third = places.enter().await;
        assert!(is_gone(&second) && !is_gone(&first) && third.work());
        assert!(places.enter().now_or_never().is_none());
        drop(first);
        assert!(places.enter().now_or_never().is_some() && !is_gone(&third));
    }
}
