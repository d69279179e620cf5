//! Copies and restores a store in memory.
//!
//! [`Store::image`] and [`Store::restore`] leave a transaction open, and later calls run inside it.
//! The image that was taken or restored last is restored by a rollback. A rollback is fast after
//! few changes, and keeps prepared statements. Any other image is copied page by page.

use std::sync::{Arc, Mutex, OnceLock};

use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::{Store, configure_connection, create_tables, lock_mutex};

/// The content of a store at some time. Clones share one image.
#[derive(Clone, Debug)]
pub(crate) struct StoreImage(Arc<Mutex<Connection>>);

impl StoreImage {
    /// The content of a new store. The image is made only once. Copying tables takes microseconds,
    /// but creating tables takes much longer.
    pub(super) fn empty() -> rusqlite::Result<Self> {
        static EMPTY: OnceLock<StoreImage> = OnceLock::new();
        if let Some(empty_image) = EMPTY.get() {
            return Ok(empty_image.clone());
        }
        let database = Connection::open_in_memory()?;
        create_tables(&database)?;
        Ok(EMPTY.get_or_init(|| Self(Arc::new(Mutex::new(database)))).clone())
    }

    pub(super) fn copy_to(&self, target: &mut Connection) -> rusqlite::Result<()> {
        copy_pages(&lock_mutex(&self.0), target)
    }
}

impl Store {
    /// A store in memory with the content of the image.
    pub(crate) fn from_image(image: &StoreImage) -> rusqlite::Result<Self> {
        let mut store =
            Self::new_in_memory(Connection::open_in_memory().and_then(configure_connection)?);
        store.restore(image)?;
        Ok(store)
    }

    /// Copies the current content of this store, which is in memory.
    pub(crate) fn take_image(&mut self) -> rusqlite::Result<StoreImage> {
        self.rollback_image = None;
        let writer = lock_mutex(&self.writer);
        if !writer.is_autocommit() {
            writer.execute_batch("COMMIT")?;
        }
        let mut image_database = Connection::open_in_memory()?;
        copy_pages(&writer, &mut image_database)?;
        writer.execute_batch("BEGIN")?;
        let image = StoreImage(Arc::new(Mutex::new(image_database)));
        self.rollback_image = Some(image.clone());
        Ok(image)
    }

    /// Gives this store, which is in memory, the content of the image.
    pub(crate) fn restore(&mut self, image: &StoreImage) -> rusqlite::Result<()> {
        let last_image = self.rollback_image.take();
        let mut writer = lock_mutex(&self.writer);
        if !writer.is_autocommit() {
            writer.execute_batch("ROLLBACK")?;
        }
        if !last_image.is_some_and(|stored_image| Arc::ptr_eq(&stored_image.0, &image.0)) {
            image.copy_to(&mut writer)?;
        }
        writer.execute_batch("BEGIN")?;
        self.rollback_image = Some(image.clone());
        Ok(())
    }
}

fn copy_pages(source: &Connection, target: &mut Connection) -> rusqlite::Result<()> {
    const ALL_PAGES: i32 = -1;
    Backup::new(source, target)?.step(ALL_PAGES).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::super::answer::{ErrorResponse, Result};
    use super::super::DataLocation;
    use super::*;

    fn add(store: &Store, key: &str) {
        store
            .write(|db| db.execute("INSERT INTO meta (key, value) VALUES (?1, '')", [key]))
            .expect("written");
    }

    fn keys(store: &Store) -> Vec<String> {
        let keys = |db: &Connection| -> Result<Vec<String>> {
            let mut statement = db.prepare_cached("SELECT key FROM meta ORDER BY key")?;
            Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
        };
        store.read(keys).expect("read")
    }

    #[test]
    fn a_store_goes_back_to_any_image_any_number_of_times() {
        let mut store = Store::open(&DataLocation::Memory, false).expect("memory");
        add(&store, "a");
        let first_image = store.take_image().expect("an image");
        add(&store, "b");
        let second_image = store.take_image().expect("an image");
        let mut other_store = Store::from_image(&first_image).expect("another store");
        for store in [&mut store, &mut other_store] {
            for (image, expected) in [
                (&first_image, &["a"][..]),
                (&second_image, &["a", "b"]),
                (&second_image, &["a", "b"]),
                (&first_image, &["a"]),
            ] {
                store.restore(image).expect("restored");
                assert_eq!(keys(store), expected);
                add(store, "c");
                let result = store.write(|db| {
                    db.execute("DELETE FROM meta", [])
                        .map_err(ErrorResponse::from)
                        .and(Err::<(), _>(ErrorResponse::forbidden()))
                });
                assert!(result.is_err(), "a failed write is undone");
                assert_eq!(keys(store), [expected, &["c"]].concat());
            }
        }
    }
}
