//! All stored data of a sandbox as JSON: for tests that compare the data, not the responses.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Result};
use serde_json::{Map, Value};

/// Columns that are left out: digests of tokens.
const OMITTED_COLUMNS: [(&str, &str); 2] = [("tokens", "digest"), ("tokens", "prefix")];
/// Columns that hold JSON text.
const JSON_COLUMNS: [&str; 2] = ["attributes", "settings"];

/// All data with secrets, regardless of rights, limits and dialects: an object of all tables, each a
/// list of rows, each an object of columns. Rows are ordered by their columns; a file becomes the
/// digits of its content.
pub(crate) fn dump(db: &Connection) -> Result<Value> {
    let mut statement = db.prepare_cached("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")?;
    let names: Vec<String> =
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let tables = names.into_iter().map(|name| Ok((name.clone(), dump_table(db, &name)?)));
    tables.collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn dump_table(db: &Connection, name: &str) -> Result<Value> {
    let query = format!("SELECT * FROM {name}");
    let columns: Vec<String> =
        db.prepare_cached(&query)?.column_names().map(str::to_owned).collect();
    let order: Vec<String> = (1..=columns.len()).map(|number| number.to_string()).collect();
    let mut statement = db.prepare_cached(&format!("{query} ORDER BY {}", order.join(", ")))?;
    let mut rows = statement.query([])?;
    let mut values = Vec::new();
    while let Some(row) = rows.next()? {
        let mut object = Map::new();
        for (index, column) in columns
            .iter()
            .enumerate()
            .filter(|(_, column)| !OMITTED_COLUMNS.contains(&(name, column.as_str())))
        {
            object.insert(column.clone(), dump_value(column, row.get_ref(index)?));
        }
        values.push(Value::Object(object));
    }
    Ok(Value::Array(values))
}

fn dump_value(column: &str, value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => {
            let json =
                JSON_COLUMNS.contains(&column).then(|| serde_json::from_slice(text).ok()).flatten();
            json.unwrap_or_else(|| String::from_utf8_lossy(text).into())
        }
        ValueRef::Blob(bytes) => format!("{bytes:02x?}").into(),
    }
}
