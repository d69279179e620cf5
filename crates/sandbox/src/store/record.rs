//! Rows of collections that store their fields as one JSON object, such as badges and milestones.

use crate::prelude::*;
use rusqlite::{Params, Result};

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: i64,
    pub(crate) settings: Object,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
}

impl Record {
    /// A text field; empty if it is not set.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.settings.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn value(&self, name: &str) -> Value {
        self.settings.get(name).cloned().unwrap_or_default()
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.settings.get(name) == Some(&Value::Bool(true))
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.settings.insert(name.to_owned(), value.into());
    }

    /// A JSON object with the columns and settings in `names`, which is separated by spaces. A setting
    /// that is not set is null.
    pub(crate) fn json_fields(&self, space_separated_names: &str) -> Value {
        let values = space_separated_names.split(' ').map(|name| match name {
            "id" => (name.to_owned(), self.id.into()),
            "created_at" => (name.to_owned(), self.created_at.as_str().into()),
            "updated_at" => (name.to_owned(), self.updated_at.as_str().into()),
            setting => (name.to_owned(), self.value(setting)),
        });
        values.collect()
    }

    /// True if another row has the same text in the field `name`.
    pub(crate) fn has_duplicate(&self, rows: &[Self], name: &str) -> bool {
        rows.iter().any(|other| other.id != self.id && other.text(name) == self.text(name))
    }

    /// A row that is not stored yet.
    pub(crate) fn new(now: &str) -> Self {
        Self { id: 0, settings: Map::new(), created_at: now.to_owned(), updated_at: now.to_owned() }
    }

    fn from_row(row: &Row<'_>) -> Result<Self> {
        let settings: String = row.get(1)?;
        Ok(Self {
            id: row.get(0)?,
            settings: serde_json::from_str(&settings).unwrap_or_default(),
            created_at: row.get(2)?,
            updated_at: row.get(3)?,
        })
    }
}

/// A table of [`Record`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct RecordTable(pub(crate) &'static str);

impl RecordTable {
    /// All rows of a project or group, in order of creation.
    pub(crate) fn list(self, call: &Call<'_>, holder: Holder) -> Result<Vec<Record>> {
        let (column, holder_id) = holder.column_and_id();
        self.select(call.db, &format!("WHERE {column} = ?1"), [holder_id])
    }

    fn select(
        self,
        db: &Connection,
        where_clause: &str,
        values: impl Params,
    ) -> Result<Vec<Record>> {
        let columns = "id, settings, created_at, updated_at";
        let sql = format!("SELECT {columns} FROM {} {where_clause} ORDER BY id", self.0);
        db.prepare_cached(&sql)?.query_map(values, Record::from_row)?.collect()
    }

    /// The rows that belong to a project or group, and have the text `value` in the setting `name`.
    pub(crate) fn list_with_text(
        self,
        call: &Call<'_>,
        holder: Holder,
        name: &str,
        value: &str,
    ) -> Result<Vec<Record>> {
        let (column, holder_id) = holder.column_and_id();
        let condition = format!("WHERE {column} = ?1 AND json_extract(settings, '$.' || ?2) = ?3");
        self.select(call.db, &condition, (holder_id, name, value))
    }

    /// The number of rows of a project or group.
    pub(crate) fn count(self, call: &Call<'_>, holder: Holder) -> Result<i64> {
        let (column, holder_id) = holder.column_and_id();
        let sql = format!("SELECT count(*) FROM {} WHERE {column} = ?1", self.0);
        call.db.prepare_cached(&sql)?.query_row([holder_id], |row| row.get(0))
    }

    /// The row of `holder` in a table that has at most one row for each holder.
    pub(crate) fn find_single(self, call: &Call<'_>, holder: Holder) -> Result<Option<Record>> {
        Ok(self.list(call, holder)?.pop())
    }

    /// All rows of the table, of every project and group.
    pub(crate) fn list_all(self, call: &Call<'_>) -> Result<Vec<Record>> {
        self.select(call.db, "", [])
    }

    pub(crate) fn find(self, call: &Call<'_>, holder: Holder, id: i64) -> Result<Option<Record>> {
        let (column, holder_id) = holder.column_and_id();
        Ok(self
            .select(call.db, &format!("WHERE {column} = ?1 AND id = ?2"), [holder_id, id])?
            .pop())
    }

    /// Stores a row, with the time of the call as `updated_at`, and gives a new row its id.
    pub(crate) fn save(self, call: &Call<'_>, holder: Holder, record: &mut Record) -> Result<()> {
        let (column, holder_id) = holder.column_and_id();
        call.time_text().clone_into(&mut record.updated_at);
        let sql = format!(
            "INSERT INTO {} (id, {column}, settings, created_at, updated_at)
             VALUES (nullif(?1, 0), ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO UPDATE SET settings = excluded.settings, updated_at = excluded.updated_at
             RETURNING id",
            self.0
        );
        let settings = Value::Object(record.settings.clone()).to_string();
        let row = params![record.id, holder_id, settings, record.created_at, call.time_text()];
        record.id = call.db.prepare_cached(&sql)?.query_row(row, |row| row.get(0))?;
        Ok(())
    }

    pub(crate) fn remove(self, call: &Call<'_>, record: &Record) -> Result<()> {
        let sql = format!("DELETE FROM {} WHERE id = ?1", self.0);
        call.db.prepare_cached(&sql)?.execute([record.id]).map(drop)
    }
}
