//! The database of the sandbox: one writer, any number of readers, one transaction per call.
//!
//! A database file is in write-ahead mode, and reads never wait for a write. `FILE.lock` locks the
//! file against other processes. Without a file, one connection reads and writes, one call at a
//! time. Otherwise a reader could see an unfinished write in memory. The transaction of each call
//! is then a savepoint, because an outer transaction can be open around all calls (see [`image`]).

pub(crate) mod holder;
pub(crate) mod image;
pub(crate) mod merge_request;
pub(crate) mod namespace;
pub(crate) mod project;
pub(crate) mod protection;
pub(crate) mod record;
pub(crate) mod repository;
pub(crate) mod stored;
pub(crate) mod user;

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

use rusqlite::config::DbConfig;
use rusqlite::{Transaction, TransactionBehavior};

use super::StartError;
use crate::prelude::*;
use image::StoreImage;

/// The statements that create the tables.
const SCHEMA: &str = include_str!("schema.sql");
/// The `PRAGMA user_version` of a file with these tables. Increase it with each change of the
/// tables.
const FORMAT_VERSION: i64 = 29;
/// The maximum number of idle readers. Further readers are closed after use.
const MAX_IDLE_READERS: usize = 8;
/// The page size in bytes. A project's row has about eight kilobytes, and would need several pages
/// of the usual four kilobytes.
const PAGE_SIZE: i64 = 16_384;
/// The maximum part of the file that is mapped into memory, in bytes.
const MAX_MAPPED_BYTES: i64 = 1 << 30;
/// The maximum length of the write-ahead log in bytes. A longer log is moved into the file.
const MAX_LOG_BYTES: u64 = 16 << 20;
/// The number of prepared statements that a connection caches: more than the handlers have.
const MAX_CACHED_STATEMENTS: usize = 256;

/// The location of the sandbox's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DataLocation {
    /// In memory. The data is lost when the sandbox stops.
    #[default]
    Memory,
    /// In this SQLite file, which is created if missing. `FILE.lock` is next to the file.
    File(PathBuf),
}

/// An open database.
#[derive(Debug)]
pub(crate) struct Store {
    writer: Mutex<Connection>,
    /// `None` in memory, where the writer also reads.
    readers: Option<ReaderPool>,
    /// The image to which the transaction around all calls rolls back; `None` without such a
    /// transaction.
    rollback_image: Option<StoreImage>,
    /// The lock file. The lock is held until the store is dropped.
    _lock: Option<File>,
}

#[derive(Debug)]
struct ReaderPool {
    path: PathBuf,
    /// The path of the write-ahead log.
    log_path: PathBuf,
    idle_connections: Mutex<Vec<Connection>>,
}

impl Store {
    /// Opens or creates the database. With `is_durable` every commit is flushed to the disk.
    pub(crate) fn open(location: &DataLocation, is_durable: bool) -> Result<Self, StartError> {
        match location {
            DataLocation::Memory => Self::open_memory().map_err(StartError::Memory),
            DataLocation::File(path) => Self::open_file(path, is_durable),
        }
    }

    fn open_memory() -> rusqlite::Result<Self> {
        let mut writer = Connection::open_in_memory().and_then(configure_connection)?;
        StoreImage::empty()?.copy_to(&mut writer)?;
        Ok(Self::new_in_memory(writer))
    }

    fn new_in_memory(writer: Connection) -> Self {
        Self { writer: Mutex::new(writer), readers: None, rollback_image: None, _lock: None }
    }

    fn open_file(path: &Path, is_durable: bool) -> Result<Self, StartError> {
        let lock = lock_file(path)?;
        let database_error = |source| StartError::Database { path: path.to_owned(), source };
        // The file contains tokens, and only its owner can read it. SQLite gives the journals of
        // the file the same mode.
        drop(owner_only_options().open(path));
        let writer =
            Connection::open(path).and_then(configure_connection).map_err(database_error)?;
        // The page size has an effect only while the file is empty.
        writer.pragma_update(None, "page_size", PAGE_SIZE).map_err(database_error)?;
        writer.pragma_update(None, "journal_mode", "wal").map_err(database_error)?;
        writer.pragma_update(None, "wal_autocheckpoint", 0).map_err(database_error)?;
        if is_durable {
            writer.pragma_update(None, "synchronous", "full").map_err(database_error)?;
        }
        let version: i64 = writer
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .map_err(database_error)?;
        match version {
            0 => create_tables(&writer).map_err(database_error)?,
            FORMAT_VERSION => {}
            _ => return Err(StartError::OtherVersion { path: path.to_owned(), version }),
        }
        Ok(Self {
            writer: Mutex::new(writer),
            readers: Some(ReaderPool {
                path: path.to_owned(),
                log_path: path_with_suffix(path, "-wal"),
                idle_connections: Mutex::new(Vec::new()),
            }),
            rollback_image: None,
            _lock: Some(lock),
        })
    }

    /// Runs `work` in a transaction, which shows one consistent state and is always rolled back.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let Some(readers) = &self.readers else {
            return work(&*lock_mutex(&self.writer).savepoint()?);
        };
        let idle_reader = lock_mutex(&readers.idle_connections).pop();
        let reader = match idle_reader {
            Some(reader) => reader,
            None => Connection::open(&readers.path).and_then(configure_connection)?,
        };
        let result = {
            let transaction = Transaction::new_unchecked(&reader, TransactionBehavior::Deferred)?;
            work(&transaction)
        };
        let mut idle_readers = lock_mutex(&readers.idle_connections);
        if idle_readers.len() < MAX_IDLE_READERS {
            idle_readers.push(reader);
        }
        result
    }

    /// Runs `work` in a transaction. The transaction is committed if `work` succeeds, and rolled
    /// back if `work` fails or panics.
    pub(crate) fn write<T, E: From<rusqlite::Error>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut writer = lock_mutex(&self.writer);
        if self.readers.is_none() {
            let savepoint = writer.savepoint()?;
            let value = work(&savepoint)?;
            savepoint.commit()?;
            return Ok(value);
        }
        let transaction = Transaction::new_unchecked(&writer, TransactionBehavior::Immediate)?;
        let value = work(&transaction)?;
        transaction.commit()?;
        self.checkpoint_long_log(&writer);
        Ok(value)
    }

    /// Runs `work` outside of all transactions, for tests. `work` must only read.
    pub(crate) fn inspect<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        work(&lock_mutex(&self.writer))
    }

    /// Moves a long write-ahead log into the file, after waiting for the readers. SQLite's automatic checkpoint
    /// does not wait: while there are readers, it flushes after each commit and never shortens the log.
    fn checkpoint_long_log(&self, writer: &Connection) {
        let Some(readers) = &self.readers else { return };
        let is_long =
            std::fs::metadata(&readers.log_path).is_ok_and(|log| log.len() > MAX_LOG_BYTES);
        if is_long && let Err(error) = writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            // After a failure the data is still in the log, and the next write tries again.
            tracing::warn!(%error, "the write-ahead log could not be shortened");
        }
    }

    /// True if every commit is flushed to the disk, according to SQLite.
    pub(crate) fn is_durable(&self) -> rusqlite::Result<bool> {
        const FULL: i64 = 2;
        let level: i64 =
            lock_mutex(&self.writer).pragma_query_value(None, "synchronous", |row| row.get(0))?;
        Ok(self.readers.is_some() && level >= FULL)
    }

    /// Moves the write-ahead log into the file.
    pub(crate) fn checkpoint(&self) -> rusqlite::Result<()> {
        if let Some(readers) = &self.readers {
            lock_mutex(&readers.idle_connections).clear();
            lock_mutex(&self.writer).execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Ok(())
    }
}

/// Locks a mutex, even a poisoned one. A panic in a handler rolls its transaction back, and the
/// data stays valid.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn configure_connection(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    // With the write-ahead log, a commit survives a crash of this process immediately. It survives
    // a crash of the machine after the next checkpoint.
    connection.pragma_update(None, "synchronous", "normal")?;
    // Readers share the file through the system's page cache instead of filling caches of their
    // own.
    connection.pragma_update(None, "mmap_size", MAX_MAPPED_BYTES)?;
    connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
    // Without this option, SQLite prepares a statement again for each new LIMIT or OFFSET, and
    // therefore for each page.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Creates all tables, or no table if an error occurs.
fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
    transaction.commit()
}

/// The path of a file next to the data.
fn path_with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Options to open a file for writing. Only the owner can read a file that they create.
fn owner_only_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Locks `FILE.lock` for this process. The lock ends with the process; the file is not removed.
fn lock_file(path: &Path) -> Result<File, StartError> {
    let lock_path = path_with_suffix(path, ".lock");
    let lock_error = |source| StartError::Lock { path: lock_path.clone(), source };
    let file = owner_only_options().open(&lock_path).map_err(lock_error)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::InUse(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(lock_error(source)),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::answer::ErrorResponse;
    use super::*;

    fn count(db: &Connection) -> Result<i64> {
        Ok(db.query_row("SELECT count(*) FROM meta", [], |row| row.get(0))?)
    }

    fn insert(db: &Connection) -> Result<()> {
        db.execute("INSERT INTO meta (key, value) VALUES (hex(randomblob(8)), '')", [])?;
        Ok(())
    }

    fn for_both_stores(check: impl Fn(&Store)) {
        let folder = tempfile::tempdir().expect("a folder");
        check(&Store::open(&DataLocation::Memory, false).expect("memory"));
        check(
            &Store::open(&DataLocation::File(folder.path().join("data.db")), false)
                .expect("a file"),
        );
    }

    #[test]
    fn only_successful_writes_are_committed() {
        for_both_stores(|store| {
            store.write(insert).expect("written");
            let result = store.write(|db| insert(db).and(Err::<(), _>(ErrorResponse::forbidden())));
            assert!(result.is_err());
            let unwind_result = catch_unwind(AssertUnwindSafe(|| {
                store.write(|db| -> Result<()> {
                    insert(db)?;
                    std::panic::panic_any("planted")
                })
            }));
            assert!(unwind_result.is_err());
            assert_eq!(store.read(count).expect("read"), 1);
            store.write(insert).expect("still usable");
            assert_eq!(store.read(count).expect("read"), 2);
        });
    }

    #[test]
    fn a_read_does_not_wait_for_a_write_and_does_not_see_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            Store::open(&DataLocation::File(folder.path().join("data.db")), false).expect("a file");
        let row_count = store.write(|db| {
            insert(db)?;
            store.read(count)
        });
        assert_eq!(row_count.expect("read"), 0);
        assert_eq!(store.read(count).expect("read"), 1);
    }

    #[test]
    fn the_write_ahead_log_stays_small_with_concurrent_readers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.db");
        let store = Store::open(&DataLocation::File(path.clone()), false).expect("a file");
        for number in 0..40 {
            store
                .write(|db| {
                    Ok::<_, ErrorResponse>(db.execute(
                        "INSERT INTO meta VALUES (?1, hex(zeroblob(1000000)))",
                        [number],
                    )?)
                })
                .expect("written");
            assert_eq!(store.read(count).expect("read"), number + 1);
        }
        let log = std::fs::metadata(path_with_suffix(&path, "-wal")).expect("a log").len();
        assert!(log <= MAX_LOG_BYTES, "80 MB were written, and the log has {log} bytes");
    }

    #[test]
    fn a_file_is_opened_again_and_one_of_another_format_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data.db");
        let open = || Store::open(&DataLocation::File(path.clone()), false);
        open().expect("created").write(insert).expect("written");
        assert_eq!(open().expect("opened").read(count).expect("read"), 1);
        for other in [1, FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
            let file = Connection::open(&path).expect("a file");
            file.pragma_update(None, "user_version", other).expect("set");
            drop(file);
            let error = open().expect_err("refused");
            assert!(matches!(error, StartError::OtherVersion { version, .. } if version == other));
            let advice = format!("has format {other}, which this version does not know; delete it");
            assert!(error.to_string().contains(&advice), "{error}");
        }
    }
}
