//! All collections, with their database tables: the collections of the sandbox, and the collections
//! that a caller describes.

use super::prelude::*;
use super::{ALL_CALLBACKS, RouteTable, build_router, expand_holder, find_route};

/// The operations of the sandbox's own collections.
pub(super) fn routes() -> impl Iterator<Item = Route> {
    built_in_collections().flat_map(Collection::routes)
}

/// Every collection that the service has.
pub(super) fn all_collections(call: &Call<'_>) -> impl Iterator<Item = &'static Collection> {
    built_in_collections().chain(
        call.service.described_collections.iter().flat_map(|described| described.collections),
    )
}

/// The sandbox's own collections, with their callbacks.
static BUILT_IN_COLLECTIONS: LazyLock<Vec<Collection>> = LazyLock::new(|| {
    let rows: Vec<Collection> = read_table(include_str!("../collections.jsonc"));
    let complete_row = |row: Collection, path: &'static str| {
        let table = if row.table.0.is_empty() { Collection::new(path).table } else { row.table };
        let mut all_callbacks = ALL_CALLBACKS.iter().copied().flatten();
        let callbacks = all_callbacks.find(|callbacks| callbacks.table == table);
        let callbacks = *callbacks.unwrap_or(&Callbacks::DEFAULT);
        Collection { path, table, callbacks, ..row }
    };
    rows.iter()
        .flat_map(|row| expand_holder(row.path).into_iter().map(|path| complete_row(*row, path)))
        .collect()
});

fn built_in_collections() -> impl Iterator<Item = &'static Collection> {
    BUILT_IN_COLLECTIONS.iter()
}

/// The sandbox's own collection with this table.
pub(super) fn find_built_in(table: RecordTable) -> &'static Collection {
    let collection = built_in_collections().find(|collection| collection.table == table);
    collection.expect("each operation that names a table is tested")
}

/// The collections of projects that a seed may fill, each with the end of its path as its name.
pub(crate) fn seedable_collections() -> impl Iterator<Item = (&'static str, &'static Collection)> {
    built_in_collections()
        .filter(|collection| !collection.is_document && !collection.is_created_by_put)
        .filter_map(|collection| {
            Some((collection.path.strip_prefix("/projects/{id}/")?, collection))
        })
        .filter(|(name, _)| !name.contains('{') && *name != "access_requests")
}

/// Finds a collection by its name in a seed.
pub(crate) fn find_seedable(name: &str) -> Option<&'static Collection> {
    seedable_collections()
        .find(|(collection_name, _)| *collection_name == name)
        .map(|(_, collection)| collection)
}

/// True if the sandbox itself has a writable collection at a path, such as `/projects/:id/milestones`.
pub fn serves_path(path: &str) -> bool {
    let path = format!("/api/v4{}", path.replace(":id", "1"));
    let entry_path = format!("{path}/1");
    let write_methods = [Method::POST, Method::PUT, Method::PATCH];
    write_methods.iter().any(|method| {
        [&path, &entry_path].iter().any(|tested_path| find_route(None, method, tested_path).is_ok())
    })
}

/// Collections that the caller describes. They live as long as the program, like the sandbox's own
/// collections.
#[derive(Debug)]
pub(crate) struct DescribedCollections {
    collections: &'static [Collection],
    pub(super) route_table: RouteTable,
}

impl DescribedCollections {
    /// Registers the described collections that the sandbox does not have itself; `None` if no such
    /// collection exists.
    pub(crate) fn new(mut collections: Vec<Collection>) -> Option<&'static Self> {
        collections.retain(|collection| !serves_path(&collection.path.replace("{id}", ":id")));
        for collection in &mut collections {
            collection.table = RecordTable(
                format!("told_{}", collection.table.0.replace('/', "__").replace(['{', '}'], "_"))
                    .leak(),
            );
        }
        let collections: &'static [Collection] = collections.leak();
        let routes: &'static [Route] =
            collections.iter().flat_map(Collection::routes).collect::<Vec<_>>().leak();
        let paths = routes.iter().map(|route| (format!("/api/v4{}", route.path), route));
        let table = build_router(paths);
        (!collections.is_empty())
            .then(|| &*Box::leak(Box::new(Self { collections, route_table: table })))
    }
}

/// Creates missing tables for all collections.
pub(crate) fn create_missing_tables(
    db: &Connection,
    described_collections: Option<&DescribedCollections>,
) -> Result<(), rusqlite::Error> {
    let collections = built_in_collections()
        .chain(described_collections.iter().flat_map(|described_set| described_set.collections));
    let tables: BTreeSet<&str> = collections.map(|collection| collection.table.0).collect();
    let sql = include_str!("../store/collection.sql");
    tables.into_iter().try_for_each(|name| db.execute_batch(&sql.replace("NAME", name)))
}
