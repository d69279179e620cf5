//! All collections, with their database tables: the collections of the sandbox, and the collections
//! that a caller describes.

use matchit::Router;

use super::prelude::*;
use super::{COLLECTIONS, NumberedRoute, all_routes, build_router, find};

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

fn built_in_collections() -> impl Iterator<Item = &'static Collection> {
    COLLECTIONS.iter().copied().flatten()
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

/// The collection with this name in a seed.
pub(crate) fn find_seedable(name: &str) -> Option<&'static Collection> {
    seedable_collections()
        .find(|(collection_name, _)| *collection_name == name)
        .map(|(_, collection)| collection)
}

/// True if the sandbox itself has a writable collection at a path, such as `/projects/:id/milestones`.
pub fn serves(path: &str) -> bool {
    let path = format!("/api/v4{}", path.replace(":id", "1"));
    let entry_path = format!("{path}/1");
    let write_methods = [Method::POST, Method::PUT, Method::PATCH];
    write_methods.iter().any(|method| {
        [&path, &entry_path].iter().any(|tested_path| find(None, method, tested_path).is_ok())
    })
}

/// Collections that the caller describes. They live as long as the program, like the sandbox's own
/// collections.
#[derive(Debug)]
pub(crate) struct DescribedCollections {
    collections: &'static [Collection],
    pub(super) route_table: Router<Vec<NumberedRoute>>,
}

impl DescribedCollections {
    /// Registers the described collections that the sandbox does not have itself; `None` if no such
    /// collection exists.
    pub(crate) fn new(mut collections: Vec<Collection>) -> Option<&'static Self> {
        collections.retain(|collection| !serves(&collection.path.replace("{id}", ":id")));
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
        let table = build_router((all_routes().count()..).zip(paths));
        (!collections.is_empty())
            .then(|| &*Box::leak(Box::new(Self { collections, route_table: table })))
    }
}

/// Creates missing tables for all collections. Each row belongs to one project or group.
pub(crate) fn create_missing_tables(
    db: &Connection,
    described: Option<&DescribedCollections>,
) -> Result<(), rusqlite::Error> {
    let collections = built_in_collections()
        .chain(described.iter().flat_map(|described_set| described_set.collections));
    let tables: BTreeSet<&str> = collections.map(|collection| collection.table.0).collect();
    for name in tables {
        db.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {name} (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                group_id INTEGER REFERENCES namespaces ON DELETE CASCADE,
                project_id INTEGER REFERENCES projects ON DELETE CASCADE,
                settings TEXT NOT NULL,
                created_at TEXT NOT NULL,
                updated_at TEXT NOT NULL,
                CHECK ((group_id IS NULL) <> (project_id IS NULL))
            );
            CREATE INDEX IF NOT EXISTS {name}_by_project ON {name} (project_id)
                WHERE project_id IS NOT NULL;
            CREATE INDEX IF NOT EXISTS {name}_by_group ON {name} (group_id)
                WHERE group_id IS NOT NULL;"
        ))?;
    }
    Ok(())
}
