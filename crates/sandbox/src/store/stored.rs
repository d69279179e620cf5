//! Reads rows. One list of fields defines both the selected columns and the fields that are read.

use rusqlite::{Connection, OptionalExtension as _, Params, Result, Row, ToSql, params_from_iter};
use serde_json::Value;

#[cfg(test)]
thread_local! {
    /// The number of rows that this thread has read, for tests of the amount of work.
    pub(crate) static ROWS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// A type that is read from rows. [`stored!`] implements this trait.
pub(crate) trait Stored: Sized {
    /// The table of the type, with the alias that conditions use.
    const TABLE: &str;
    /// The columns of the type, which come first in a row.
    const COLUMNS: &str;
    /// The number of [`Self::COLUMNS`].
    const COLUMN_COUNT: usize;

    /// Reads a row in which [`Self::COLUMNS`] begin at the index `first_column`.
    fn read(row: &Row<'_>, first_column: usize) -> Result<Self>;

    /// The values of [`Self::COLUMNS`].
    fn values(&self) -> Vec<&dyn ToSql>;

    /// The value of a column as JSON; null if the type has no such column.
    fn column(&self, name: &str) -> Value;

    /// A JSON object with the columns in `names`, which are separated by spaces. A name without a
    /// column gets null, which the caller may replace.
    fn json_columns(&self, names: &str) -> Value {
        names.split(' ').map(|name| (name.to_owned(), self.column(name))).collect()
    }

    /// Reads a row that begins with [`Self::COLUMNS`].
    fn from_row(row: &Row<'_>) -> Result<Self> {
        Self::read(row, 0)
    }

    /// A query for all rows of the table. `clauses` may contain joins, conditions and orders.
    fn select_rows_sql(clauses: &str) -> String {
        format!("SELECT {} FROM {} {clauses}", Self::COLUMNS, Self::TABLE)
    }

    /// All rows of [`Self::query`].
    fn list(db: &Connection, clauses: &str, params: impl Params) -> Result<Vec<Self>> {
        db.prepare_cached(&Self::select_rows_sql(clauses))?
            .query_map(params, Self::from_row)?
            .collect()
    }

    /// Replaces the stored row with the same id, or inserts a new row if the id is 0. Returns the
    /// id. This works only for types without computed columns.
    fn upsert(&self, db: &Connection) -> Result<i64> {
        let (table, alias) = Self::TABLE.split_once(' ').unwrap_or_default();
        let names = Self::COLUMNS.replace(&format!("{alias}."), "");
        let assignments = names.split(", ").skip(1).map(|name| format!("{name} = excluded.{name}"));
        let sql = format!(
            "INSERT INTO {table} ({names}) VALUES (nullif(?, 0){})
             ON CONFLICT (id) DO UPDATE SET {} RETURNING id",
            ", ?".repeat(Self::COLUMN_COUNT - 1),
            assignments.collect::<Vec<_>>().join(", ")
        );
        db.prepare_cached(&sql)?.query_row(params_from_iter(self.values()), |row| row.get(0))
    }

    /// Removes the row.
    fn remove(&self, db: &Connection) -> Result<()> {
        let sql = format!("DELETE FROM {} WHERE id = ?1", Self::TABLE.replace(' ', " AS "));
        execute(db, &sql, params_from_iter(self.values().first()))
    }

    /// All rows with `extra_columns`, which begin at the index [`Self::COLUMN_COUNT`]. `read`
    /// combines the type with the extra columns.
    fn list_with<T>(
        db: &Connection,
        extra_columns: &str,
        clauses: &str,
        params: impl Params,
        mut read: impl FnMut(Self, &Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let sql =
            format!("SELECT {}, {extra_columns} FROM {} {clauses}", Self::COLUMNS, Self::TABLE);
        db.prepare_cached(&sql)?.query_map(params, |row| read(Self::from_row(row)?, row))?.collect()
    }

    /// The row with this id.
    fn find_by_id(db: &Connection, id: i64) -> Result<Option<Self>> {
        let (_, alias) = Self::TABLE.split_once(' ').unwrap_or_default();
        Self::find_first(db, &format!("WHERE {alias}.id = ?1"), [id])
    }

    /// Like [`Self::find_by_id`], for an optional id.
    fn find_by_optional_id(db: &Connection, id: Option<i64>) -> Result<Option<Self>> {
        id.map_or(Ok(None), |id| Self::find_by_id(db, id))
    }

    /// The first row of [`Self::query`].
    fn find_first(db: &Connection, clauses: &str, params: impl Params) -> Result<Option<Self>> {
        db.prepare_cached(&Self::select_rows_sql(clauses))?
            .query_row(params, Self::from_row)
            .optional()
    }
}

/// Executes a statement.
pub(crate) fn execute(db: &Connection, sql: &str, params: impl Params) -> Result<()> {
    db.prepare_cached(sql)?.execute(params).map(drop)
}

/// All rows of a result, as tuples.
pub(crate) fn query_rows<T>(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<T>>
where
    T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
{
    db.prepare_cached(sql)?.query_map(params, |row| row.try_into())?.collect()
}

/// Implements [`Stored`]: `stored!(Type: table alias, field, field = "expression"; other)` lists
/// all fields of a type. A field is read from the column with its name, or from the expression.
/// Fields after the semicolon are not read and get their defaults.
macro_rules! stored {
    ($type:ty: $table:ident $alias:ident,
     $first:ident $(, $field:ident $(= $column:literal)?)* $(; $($other:ident),*)?) => {
        impl $crate::store::stored::Stored for $type {
            const TABLE: &str = concat!(stringify!($table), " ", stringify!($alias));
            const COLUMNS: &str = concat!(
                stringify!($alias), ".", stringify!($first)
                $(, ", ", $crate::store::stored::stored!(@ $alias $field $($column)?))*
            );
            const COLUMN_COUNT: usize = [stringify!($first) $(, stringify!($field))*].len();

            fn values(&self) -> Vec<&dyn rusqlite::ToSql> {
                vec![&self.$first $(, &self.$field)*]
            }

            fn column(&self, name: &str) -> serde_json::Value {
                match name {
                    stringify!($first) => serde_json::json!(self.$first),
                    $(stringify!($field) => serde_json::json!(self.$field),)*
                    _ => serde_json::Value::Null,
                }
            }

            fn read(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Self> {
                #[cfg(test)]
                $crate::store::stored::ROWS.set($crate::store::stored::ROWS.get() + 1);
                let mut columns = first..first + Self::COLUMN_COUNT;
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
