//! Reading rows: one list of fields defines both what a query selects and what is read.

use rusqlite::{Connection, OptionalExtension as _, Params, Result, Row, ToSql};

#[cfg(test)]
thread_local! {
    /// How many rows this thread has read, for tests of growth.
    pub(crate) static ROWS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A type that is read from rows; [`stored!`] implements it.
pub(crate) trait Stored: Sized {
    /// Its table, with the alias used in conditions.
    const TABLE: &str;
    /// Its columns, which come first in a row.
    const COLUMNS: &str;
    /// The number of those columns.
    const WIDTH: usize;

    /// Reads a row that begins with those columns.
    fn from_row(row: &Row<'_>) -> Result<Self>;

    /// A query for all its rows; joins, conditions and orders may follow.
    fn query(rest: &str) -> String {
        format!("SELECT {} FROM {} {rest}", Self::COLUMNS, Self::TABLE)
    }

    /// All rows of [`Self::query`].
    fn list(db: &Connection, rest: &str, with: impl Params) -> Result<Vec<Self>> {
        db.prepare_cached(&Self::query(rest))?.query_map(with, Self::from_row)?.collect()
    }

    /// Its id, which is its first column.
    fn key(&self) -> &dyn ToSql;

    /// Removes it.
    fn remove(&self, db: &Connection) -> Result<()> {
        let sql = format!("DELETE FROM {} WHERE id = ?1", Self::TABLE.replace(' ', " AS "));
        db.prepare_cached(&sql)?.execute([self.key()]).map(drop)
    }

    /// All rows with the columns `more`, which begin at [`Self::WIDTH`]; `read` combines both.
    fn list_with<T>(
        db: &Connection,
        more: &str,
        rest: &str,
        with: impl Params,
        mut read: impl FnMut(Self, &Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let sql = format!("SELECT {}, {more} FROM {} {rest}", Self::COLUMNS, Self::TABLE);
        db.prepare_cached(&sql)?.query_map(with, |row| read(Self::from_row(row)?, row))?.collect()
    }

    /// The first row of [`Self::query`].
    fn first(db: &Connection, rest: &str, with: impl Params) -> Result<Option<Self>> {
        db.prepare_cached(&Self::query(rest))?.query_row(with, Self::from_row).optional()
    }
}

/// `stored!(Type: table alias, field, field = "expression"; other)`: all fields of a type, each
/// with the column of its name or an expression. Fields after the semicolon are not read and get
/// their defaults.
macro_rules! stored {
    ($type:ty: $table:ident $alias:ident,
     $first:ident $(, $field:ident $(= $column:literal)?)* $(; $($other:ident),*)?) => {
        impl $crate::store::stored::Stored for $type {
            const TABLE: &str = concat!(stringify!($table), " ", stringify!($alias));
            const COLUMNS: &str = concat!(
                stringify!($alias), ".", stringify!($first)
                $(, ", ", $crate::store::stored::stored!(@ $alias $field $($column)?))*
            );
            const WIDTH: usize = [stringify!($first) $(, stringify!($field))*].len();

            fn key(&self) -> &dyn rusqlite::ToSql {
                &self.$first
            }

            fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
                #[cfg(test)]
                $crate::store::stored::ROWS.set($crate::store::stored::ROWS.get() + 1);
                let mut columns = 0..Self::WIDTH;
                let mut next = || columns.next().unwrap_or_default();
                Ok(Self {
                    $first: row.get(next())?,
                    $($field: row.get(next())?,)*
                    $($($other: Default::default(),)*)?
                })
            }
        }
    };
    (@ $alias:ident $field:ident) => { concat!(stringify!($alias), ".", stringify!($field)) };
    (@ $alias:ident $field:ident $column:literal) => { $column };
}
pub(crate) use stored;
