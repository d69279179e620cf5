//! Functions for the behaviour of a collection that its description cannot express.

use super::prelude::*;

type EntryLimit = (&'static str, [i64; 2], fn(String) -> ErrorResponse);

/// The key that marks a row of another project or group.
pub(super) const INHERITED: &str = "inherited";

/// The functions of a collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callbacks {
    /// The table of the collections that use these functions.
    pub(super) table: RecordTable,
    /// The maximum number of entries: the plural of the entry's name in the error, the limits for a project
    /// and for a group, and the function that makes the error.
    pub(super) limit: Option<EntryLimit>,
    /// Further operations, or other ones than the common operations: the method, the path relative to the path of
    /// the collection, and the handler.
    pub(super) operations: &'static [(Method, &'static str, CollectionOperation)],
    /// Finds the project or group of the call. Refuses callers who may not use the collection.
    pub(super) find_scope: fn(&Collection, &Call<'_>) -> Result<GroupOrProject>,
    /// Returns the entries of other projects and groups that this list also contains, marked with [`INHERITED`].
    pub(super) list_inherited: fn(&CollectionCall<'_>) -> Result<Vec<Record>>,
    /// Fills in the fields of a row that the call does not set, and checks the row before it is stored.
    pub(super) complete: fn(&CollectionCall<'_>, &mut Record) -> Result<()>,
    /// Applies further filters and the order of a list.
    pub(super) filter: fn(&CollectionCall<'_>, &mut Vec<Record>) -> Result<()>,
    /// Refuses to remove a row that cannot be removed.
    pub(super) check_removal: fn(&CollectionCall<'_>, &Record) -> Result<()>,
    /// Removes a row.
    pub(super) remove: fn(&CollectionCall<'_>, &mut Record) -> Result<()>,
    /// Finds the row that the call names.
    pub(super) find: fn(&CollectionCall<'_>) -> Result<Record>,
    /// Makes the error for an entry that does not exist.
    pub(super) not_found_error: fn() -> ErrorResponse,
    pub(super) to_json: fn(&CollectionCall<'_>, &Record) -> Result<Value>,
}

impl Callbacks {
    /// The functions of a collection that follows only its description.
    pub(super) const DEFAULT: Self = Self {
        table: RecordTable(""),
        limit: None,
        operations: &[],
        find_scope: |collection, call| {
            let Collection { read_level, write_level, allows_anonymous, .. } = *collection;
            let levels = if call.is_write { write_level } else { read_level };
            if allows_anonymous {
                GroupOrProject::from_call_allowing_anonymous(call, levels)
            } else {
                GroupOrProject::from_call_read_archived(call, levels)
            }
        },
        list_inherited: |_| Ok(Vec::new()),
        complete: |call, row| call.check_unique(row),
        filter: |_, _| Ok(()),
        check_removal: |call, row| call.check_unmodified(&row.updated_at),
        remove: |call, row| Ok(call.collection.table.remove(call, row)?),
        find: |call| call.select_named_row(call.stored_rows()?),
        not_found_error: ErrorResponse::record_not_found,
        to_json: |call, row| call.json_with_names(row),
    };
}

impl Default for Callbacks {
    fn default() -> Self {
        Self::DEFAULT
    }
}
