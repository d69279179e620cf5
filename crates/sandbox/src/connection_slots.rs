//! Limits the number of connections, so that slow clients cannot keep all slots.
//!
//! While the service answers a request that it received completely, the connection keeps its slot. At all other times the connection waits for its client, or for memory for a body. If
//! all slots are taken, a new connection gets the slot of the connection that has waited longest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The connection slots of a service.
#[derive(Debug)]
pub(crate) struct ConnectionSlots {
    max_connections: usize,
    table: Mutex<SlotTable>,
    /// Notified when a connection ends or begins to wait.
    change_signal: Notify,
}

#[derive(Debug, Default)]
struct SlotTable {
    connections: BTreeMap<u64, TrackedConnection>,
    /// The number of events so far, as a logical clock for `TrackedConnection::waiting_since`.
    event_count: u64,
}

#[derive(Debug)]
struct TrackedConnection {
    waiting_since: Option<u64>,
    eviction: Arc<Notify>,
}

impl SlotTable {
    fn next_event(&mut self) -> u64 {
        self.event_count += 1;
        self.event_count
    }

    /// Drops the connection that has waited longest. Returns false if no connection waits.
    fn evict_waiting_connection(&mut self) -> bool {
        let waiting = self
            .connections
            .iter()
            .filter_map(|(number, connection)| Some((connection.waiting_since?, *number)));
        let connection = waiting.min().and_then(|(_, number)| self.connections.remove(&number));
        if let Some(connection) = &connection {
            connection.eviction.notify_one();
        }
        connection.is_some()
    }
}

impl ConnectionSlots {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            max_connections: limit,
            table: Mutex::default(),
            change_signal: Notify::new(),
        })
    }

    /// Takes a slot as soon as a slot is free or a waiting connection can be evicted. At first, the
    /// new connection counts as waiting for its client.
    pub(crate) async fn acquire(self: &Arc<Self>) -> ConnectionSlot {
        loop {
            if let Some(slot) = self.try_acquire() {
                return slot;
            }
            self.change_signal.notified().await;
        }
    }

    fn try_acquire(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut table = self.lock();
        if table.connections.len() >= self.max_connections && !table.evict_waiting_connection() {
            return None;
        }
        let (number, eviction) = (table.next_event(), Arc::new(Notify::new()));
        let connection =
            TrackedConnection { waiting_since: Some(number), eviction: Arc::clone(&eviction) };
        table.connections.insert(number, connection);
        Some(ConnectionSlot { slots: Arc::clone(self), number, eviction })
    }

    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of one connection. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    eviction: Arc<Notify>,
}

impl ConnectionSlot {
    /// Marks the connection as waiting: from now on it may be evicted.
    pub(crate) fn mark_waiting(&self) {
        let mut table = self.slots.lock();
        let event_number = table.next_event();
        if let Some(connection) = table.connections.get_mut(&self.number) {
            connection.waiting_since = Some(event_number);
        }
        drop(table);
        self.slots.change_signal.notify_one();
    }

    /// Marks the connection as busy: it keeps its slot until the next
    /// [`ConnectionSlot::mark_waiting`]. Returns false if the connection was evicted already.
    pub(crate) fn mark_busy(&self) -> bool {
        let mut table = self.slots.lock();
        let connection = table.connections.get_mut(&self.number);
        connection.map(|connection| connection.waiting_since = None).is_some()
    }

    /// Completes when the connection must close.
    pub(crate) async fn wait_for_eviction(&self) {
        self.eviction.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.lock().connections.remove(&self.number);
        self.slots.change_signal.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_evicted(slot: &ConnectionSlot) -> bool {
        slot.wait_for_eviction().now_or_never().is_some()
    }

    #[test]
    fn a_new_connection_evicts_the_longest_waiting_one() {
        let slots = ConnectionSlots::new(2);
        let (first, second) =
            (slots.try_acquire().expect("free"), slots.try_acquire().expect("free"));
        assert!(first.mark_busy());
        first.mark_waiting();
        let third = slots.try_acquire().expect("the second has waited longer than the first");
        assert!(is_evicted(&second) && !is_evicted(&first));
        assert!(!second.mark_busy(), "it is too late");
        drop(second);
        assert!(slots.lock().connections.len() == 2, "its slot was taken already");
        let fourth = slots.try_acquire().expect("the first waits");
        assert!(is_evicted(&first) && !is_evicted(&third) && !is_evicted(&fourth));
    }

    #[tokio::test]
    async fn a_busy_connection_is_not_evicted() {
        let slots = ConnectionSlots::new(2);
        let (first_slot, second_slot) = (slots.acquire().await, slots.acquire().await);
        assert!(first_slot.mark_busy() && second_slot.mark_busy());
        assert!(slots.acquire().now_or_never().is_none());
        second_slot.mark_waiting();
        let third = slots.acquire().await;
        assert!(is_evicted(&second_slot) && !is_evicted(&first_slot) && third.mark_busy());
        assert!(slots.acquire().now_or_never().is_none());
        drop(first_slot);
        assert!(slots.acquire().now_or_never().is_some() && !is_evicted(&third));
    }
}
