//! The former paths of declared groups and projects.
//!
//! A path in `previously` may be written before or after a group above was renamed. This module
//! makes all former paths canonical: a canonical path contains the declared paths of the groups
//! above. This module does not depend on live state. `observe` reads which containers exist at
//! these paths.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Container, find_circles};
use crate::{
    address::{Address, groups_above},
    field::Scope,
    kind::{FORMER_FIELD, forms},
};

/// The groups and projects with declared former paths, including those that a run does not select.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// The containers with former paths, by lower-case declared path.
    moved_by_path: BTreeMap<String, MovedContainer>,
    /// The lower-case declared path of a container, by each lower-case former path.
    declared_by_former_path: BTreeMap<String, String>,
    /// Lower-case former paths at which another container is declared. The value is true if that
    /// container declares a display name.
    reoccupied_paths: BTreeMap<String, bool>,
    /// The declared paths, ordered by their lower-case form.
    declared_paths: Vec<Arc<str>>,
    /// The declared paths of groups that need both a rename and a move, by the path after the
    /// rename. Both paths are in lower case. The value is `None` if the path after the rename is
    /// ambiguous: several groups have it, or another container is or was declared at it.
    intermediate_paths: BTreeMap<String, Option<String>>,
    /// The lower-case paths of all declared projects, if a policy for unlisted projects needs them.
    project_paths: Option<BTreeSet<String>>,
    /// The former addresses of entries that may be renamed.
    former_addresses: BTreeMap<Address, Vec<Address>>,
}

/// The maximum number of former paths that are derived for one container.
const MAX_FORMER_PATHS: usize = 1000;
/// The maximum number of groups above, or of successive moves, to follow for one path.
const MAX_GROUP_DEPTH: usize = 64;

/// A group or project with former paths.
#[derive(Clone, Debug)]
pub struct MovedContainer {
    /// The scope: group or project.
    pub scope: Scope,
    /// The full path as declared.
    pub path: Arc<str>,
    /// The canonical former paths, in their written order.
    pub former_paths: Vec<Arc<str>>,
}

/// The addresses of the entries of `container` with former names, each with its former addresses.
fn renamed_entry_addresses(container: &Container) -> impl Iterator<Item = (Address, Vec<Address>)> {
    let sections = container.sections.iter();
    let renamable = sections.filter(|section| section.kind.spec(FORMER_FIELD).is_some());
    renamable.flat_map(move |section| {
        let section_address = container.address().with_section(section.kind.section);
        let renamed_entries =
            section.entries.iter().filter(|entry| entry.fields.get(FORMER_FIELD).is_some());
        renamed_entries.filter_map(move |entry| {
            let identity = section.kind.identify(&forms::plain_fields(&entry.values()));
            let former_addresses: Vec<_> = identity
                .former_keys
                .iter()
                .map(|name| section_address.with_entry(&**name))
                .collect();
            (!former_addresses.is_empty())
                .then(|| (section_address.with_entry(&*entry.key), former_addresses))
        })
    })
}

impl Moves {
    /// The moves that `containers` declare.
    pub fn from_containers(containers: &[Container]) -> Self {
        let mut moved_containers: Vec<_> = containers
            .iter()
            .filter(|container| !container.lifecycle.former_paths.is_empty())
            .collect();
        // Paths below a group depend on the group's new path. Therefore groups come first.
        moved_containers.sort_by_key(|container| {
            let depths = container.former_paths().map(|former| former.matches('/').count());
            (container.scope == Scope::Project, depths.min())
        });
        let former_paths = moved_containers.iter().flat_map(|moved| moved.former_paths());
        let written_paths: BTreeSet<_> = former_paths.map(str::to_lowercase).collect();
        let mut moves = Self::default();
        if !moved_containers.is_empty() {
            moves.add_reoccupied_paths(containers, |_, path| written_paths.contains(path));
        }
        for container in moved_containers {
            let path = container.path.clone();
            let mut canonical_paths: Vec<Arc<str>> = Vec::new();
            for written_path in container.former_paths() {
                let path = moves.canonical_path(written_path);
                let is_same = |other: &str| path.to_lowercase() == other.to_lowercase();
                // A path that was written before a group above moved may equal another former path,
                // or the declared path, in canonical form. If it equals the declared path, the move
                // of the group also moves this container.
                let follows_group_move = is_same(&container.path) && !is_same(written_path);
                if !follows_group_move && !canonical_paths.iter().any(|other| is_same(other)) {
                    canonical_paths.push(path);
                }
            }
            if canonical_paths.is_empty() {
                continue;
            }
            for former in &canonical_paths {
                moves.declared_by_former_path.insert(former.to_lowercase(), path.to_lowercase());
            }
            let scope = container.scope;
            moves.moved_by_path.insert(
                path.to_lowercase(),
                MovedContainer { scope, path, former_paths: canonical_paths },
            );
        }
        moves.add_reoccupied_paths(containers, |moves, path| {
            moves.declared_by_former_path.contains_key(path)
        });
        moves.declared_paths = containers.iter().map(|container| container.path.clone()).collect();
        moves.declared_paths.sort_by_cached_key(|path| path.to_lowercase());
        moves.intermediate_paths = moves.find_intermediate_paths();
        moves.former_addresses = containers.iter().flat_map(renamed_entry_addresses).collect();
        if containers.iter().any(|container| container.lifecycle.unlisted_projects.is_some()) {
            let projects = containers.iter().filter(|container| container.scope == Scope::Project);
            moves.project_paths =
                Some(projects.map(|project| project.path.to_lowercase()).collect());
        }
        moves
    }

    /// Records the former paths of other containers at which `containers` are declared.
    fn add_reoccupied_paths(
        &mut self,
        containers: &[Container],
        is_former: impl Fn(&Self, &str) -> bool,
    ) {
        for container in containers {
            let path = container.path.to_lowercase();
            if is_former(self, &path) {
                self.reoccupied_paths.insert(path, container.declares_name());
            }
        }
    }

    fn find_intermediate_paths(&self) -> BTreeMap<String, Option<String>> {
        let mut intermediate_paths = BTreeMap::<String, Option<String>>::new();
        for (group_path, group) in
            self.moved_by_path.iter().filter(|(_, moved)| moved.scope == Scope::Group)
        {
            let former_paths = group.former_paths.iter();
            let renamed_paths =
                former_paths.filter_map(|path| path_after_rename(path, &group.path));
            for path in renamed_paths.map(|path| path.to_lowercase()) {
                let is_free = !self.declares_container(&path)
                    && !self.declared_by_former_path.contains_key(&path);
                let owner = Some(group_path.clone()).filter(|_| is_free);
                let recorded_owner =
                    intermediate_paths.entry(path).or_insert_with(|| owner.clone());
                if *recorded_owner != owner {
                    *recorded_owner = None;
                }
            }
        }
        intermediate_paths
    }

    /// Adds containers that rules include.
    pub(super) fn add_included(&mut self, containers: &[Container]) {
        let Some(paths) = &mut self.project_paths else { return };
        let projects = containers.iter().filter(|container| container.scope == Scope::Project);
        paths.extend(projects.map(|project| project.path.to_lowercase()));
    }

    /// Returns `path` with the declared path of every group above. The move of a group is ignored
    /// if another container is declared at the group's former path.
    pub fn canonical_path(&self, path: &str) -> Arc<str> {
        let (mut path, mut canonical_len) = (path.to_owned(), 0);
        while let Some(end) = path[canonical_len..].find('/').map(|slash| canonical_len + slash) {
            let group = path[..end].to_lowercase();
            let group_move = self
                .declared_by_former_path
                .get(&group)
                .and_then(|moved_to| self.moved_by_path.get(moved_to));
            canonical_len = match group_move.filter(|moved| moved.scope == Scope::Group) {
                Some(group_move) if !self.reoccupied_paths.contains_key(&group) => {
                    path.replace_range(..end, &group_move.path);
                    group_move.path.len() + 1
                }
                _ => end + 1,
            };
        }
        path.into()
    }

    /// True if no former paths are declared.
    pub fn is_empty(&self) -> bool {
        self.moved_by_path.is_empty()
    }

    /// True if the project that is now at `path` is declared or included, at this path or at a new one.
    pub fn declares_project(&self, path: &str) -> bool {
        let path = self.canonical_path(path);
        self.project_paths.as_ref().is_some_and(|paths| paths.contains(&path.to_lowercase()))
            || self.former_occupant(&path).is_some_and(|project| project.scope == Scope::Project)
    }

    /// The container declared at `path`, if it has former paths.
    pub fn find_moved_container(&self, path: &str) -> Option<&MovedContainer> {
        self.moved_by_path.get(&path.to_lowercase())
    }

    /// The nearest group above `path` with former paths.
    pub fn nearest_moved_group_above(&self, path: &str) -> Option<&MovedContainer> {
        if self.is_empty() {
            return None;
        }
        let path = path.to_lowercase();
        let mut moves = groups_above(&path).filter_map(|group| self.moved_by_path.get(group));
        moves.find(|moved| moved.scope == Scope::Group)
    }

    /// The declared paths of the groups with former paths below the lower-case `path`.
    pub fn moved_groups_below(&self, path: &str) -> impl Iterator<Item = &Arc<str>> {
        let moves = self.moved_by_path.iter().filter(|(_, group)| group.scope == Scope::Group);
        let moves_below = moves
            .filter(move |(moved_path, _)| groups_above(moved_path).any(|group| group == path));
        moves_below.map(|(_, group)| &group.path)
    }

    /// The container with the former path `path`.
    pub fn former_occupant(&self, path: &str) -> Option<&MovedContainer> {
        self.moved_by_path.get(self.declared_by_former_path.get(&path.to_lowercase())?)
    }

    /// True if another container is declared at this former path.
    pub fn is_reoccupied(&self, former: &str) -> bool {
        self.reoccupied_paths.contains_key(&former.to_lowercase())
    }

    /// True if the container that is declared at `former` gets the default display name of that
    /// path, or probably has it. `former` must be the former path of one container and the declared
    /// path of another container. The other container gets the default name if it is created
    /// without a declared name, or if it is renamed from a path for which this function returns
    /// true. It keeps its name if it moves from another group.
    pub fn gets_default_name(&self, former: &str) -> bool {
        let mut path = former.to_lowercase();
        // The number of rounds is limited, because containers may swap paths.
        for _ in 0..MAX_GROUP_DEPTH {
            if self.reoccupied_paths.get(&path) != Some(&false) {
                return false;
            }
            let Some(former_path) =
                self.moved_by_path.get(&path).and_then(|moved| moved.former_paths.first())
            else {
                return true;
            };
            let former_path = former_path.to_lowercase();
            let [(group, name), (former_group, former_name)] =
                [&path, &former_path].map(|path| split_last_segment(path));
            if former_group != group {
                return former_name == name;
            }
            path = former_path;
        }
        false
    }

    /// The declared path of the container that is at `former` now. `former` is a former path, or a
    /// path below a former path. `None` if the container does not move.
    pub fn path_after_move(&self, former: &str) -> Option<Arc<str>> {
        let path = self.canonical_path(former);
        let moved = self.former_occupant(&path).filter(|_| !self.is_reoccupied(&path));
        let declared_path = moved.map_or(path, |moved| moved.path.clone());
        (declared_path.to_lowercase() != former.to_lowercase()).then_some(declared_path)
    }

    /// The declared path of the container that is at `path` now.
    pub fn declared_path(&self, path: &str) -> Arc<str> {
        self.path_after_move(path).unwrap_or_else(|| path.into())
    }

    /// True if `is_match` is true for `address`, or for `address` with a former path or a former
    /// name. Also true if there are too many former paths.
    pub fn any_path_matches(&self, address: &Address, is_match: impl Fn(&Address) -> bool) -> bool {
        is_match(address) || self.any_former_matches(address, is_match).unwrap_or(true)
    }

    /// True if `is_match` is true for `address` with a former path or a former name. `None` if
    /// there are too many former paths.
    pub fn any_former_matches(
        &self,
        address: &Address,
        is_match: impl Fn(&Address) -> bool,
    ) -> Option<bool> {
        let former_addresses = self.former_addresses(address);
        if former_addresses.iter().any(&is_match) {
            return Some(true);
        }
        let mut former_paths = self.former_paths(&address.path)?.into_iter();
        Some(former_paths.any(|path| {
            let path: Arc<str> = path.into();
            let mut addresses = std::iter::once(address).chain(former_addresses);
            addresses.any(|candidate| {
                is_match(&Address { path: Arc::clone(&path), ..candidate.clone() })
            })
        }))
    }

    /// The addresses with the former names of the entry at `address`, below its container's declared path.
    pub fn former_addresses(&self, address: &Address) -> &[Address] {
        self.former_addresses.get(address).map_or(&[], Vec::as_slice)
    }

    /// The lower-case former paths of the container declared at `path`, including the paths that
    /// result from former paths of groups above. `None` if there are too many.
    pub fn former_paths(&self, path: &str) -> Option<Vec<String>> {
        if self.is_empty() {
            return Some(Vec::new());
        }
        let path = path.to_lowercase();
        let paths = self.current_and_former_paths(&path, 0)?;
        Some(paths.into_iter().filter(|name| *name != path).collect())
    }

    /// `path` and its former paths; `None` if there are too many.
    fn current_and_former_paths(&self, path: &str, depth: usize) -> Option<BTreeSet<String>> {
        if depth > MAX_GROUP_DEPTH {
            return None;
        }
        let former_paths =
            self.moved_by_path.get(path).map(|moved| &moved.former_paths[..]).unwrap_or_default();
        let lower_former_paths = former_paths.iter().map(|former| former.to_lowercase());
        let mut paths = BTreeSet::new();
        for full_path in lower_former_paths.chain([path.to_owned()]) {
            match full_path.rsplit_once('/') {
                Some((group, name)) => {
                    let group_paths = self.current_and_former_paths(group, depth + 1)?;
                    paths.extend(group_paths.iter().map(|group| format!("{group}/{name}")));
                }
                None => drop(paths.insert(full_path)),
            }
            if paths.len() > MAX_FORMER_PATHS {
                return None;
            }
        }
        Some(paths)
    }

    /// True if the container that is now at `path` is declared, at this path or at a new one.
    pub fn declares_container(&self, path: &str) -> bool {
        let declared_path = self.declared_path(path).to_lowercase();
        self.declared_paths.binary_search_by_key(&declared_path, |path| path.to_lowercase()).is_ok()
    }

    /// The group for which `path` is the intermediate path. A group that exists at `path` is
    /// renamed, but not moved yet.
    pub fn intermediate_group(&self, path: &str) -> Option<&MovedContainer> {
        self.moved_by_path.get(self.intermediate_paths.get(&path.to_lowercase())?.as_ref()?)
    }

    /// True if, because of a move, the container declared at `path` may still be elsewhere, or another
    /// container may still be at `path`.
    pub fn is_path_affected(&self, path: &str) -> bool {
        self.find_moved_container(path).is_some()
            || self.former_occupant(path).is_some()
            || self.nearest_moved_group_above(path).is_some()
    }

    /// The declared paths of the containers in a circle of moves; `None` if there is no circle. A
    /// container in a circle cannot be found.
    pub fn find_circle(&self) -> Option<Vec<&Arc<str>>> {
        let prerequisites = |path: &Arc<str>| {
            let moved = self.find_moved_container(path);
            let former_paths = moved.into_iter().flat_map(|moved| &moved.former_paths);
            let container_paths = std::iter::once(path).chain(former_paths);
            let groups = container_paths.filter_map(|path| self.nearest_moved_group_above(path));
            groups.chain(self.former_occupant(path)).map(|other| &other.path).collect()
        };
        let paths = self.moved_by_path.values().map(|moved| &moved.path);
        find_circles(paths, prerequisites).next().map(|(_, circle)| circle)
    }
}

/// The intermediate path of a container that needs a rename and a move: its new name in its old
/// group. `None` if the container does not need both.
pub fn path_after_rename(former: &str, declared: &str) -> Option<String> {
    let [(old_parent, old_name), (new_parent, new_name)] =
        [former, declared].map(split_last_segment);
    (old_parent != new_parent && old_name != new_name).then(|| format!("{old_parent}{new_name}"))
}

/// The path of the group above, with the `/` at its end, and the last segment of `path`.
fn split_last_segment(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |slash| slash + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        desired::{Unlisted, testing},
        value::Json,
    };

    /// The moves of containers with these paths and former paths. A path with the prefix `:` is the
    /// path of a project; other paths are paths of groups.
    fn moves(declared: &[(&str, &[&str])]) -> Moves {
        let new_container = |(path, former): &(&str, &[&str])| {
            let scope = if path.starts_with(':') { Scope::Project } else { Scope::Group };
            let path = path.trim_start_matches(':');
            let mut container = testing::container(scope, path, &Json::Null, Unlisted::Report);
            container.lifecycle.former_paths =
                former.iter().map(|path| testing::former_path(path)).collect();
            container
        };
        Moves::from_containers(&declared.iter().map(new_container).collect::<Vec<_>>())
    }

    fn former_paths(moves: &Moves, path: &str) -> Vec<String> {
        moves
            .find_moved_container(path)
            .unwrap()
            .former_paths
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn former_paths_have_one_form_whenever_they_were_written() {
        for former_path in ["old/x/p", "new/x/p", "new/g/p", "OLD/x/p"] {
            let moves = moves(&[
                (":new/g/q", &[former_path]),
                ("new/g", &["old/x"]),
                ("new", &["old"]),
                ("other", &[]),
            ]);
            assert_eq!(former_paths(&moves, "new/g"), ["new/x"]);
            assert_eq!(former_paths(&moves, "new/g/q"), ["new/g/p"], "{former_path}");
            assert_eq!(&*moves.nearest_moved_group_above("New/g/a/b").unwrap().path, "new/g");
            assert_eq!(&*moves.former_occupant("NEW/g/P").unwrap().path, "new/g/q");
            assert_eq!(moves.path_after_move("old/x/p").as_deref(), Some("new/g/q"));
            assert_eq!(moves.path_after_move("old/x/other").as_deref(), Some("new/g/other"));
            assert_eq!(
                (moves.path_after_move("new/g/q"), moves.path_after_move("elsewhere/p")),
                (None, None)
            );
            assert!(moves.is_path_affected("new/other") && !moves.is_path_affected("other/x"));
            assert!(moves.find_circle().is_none());
        }
    }

    #[test]
    fn former_paths_implied_by_the_move_of_a_group_are_no_moves() {
        let moves = moves(&[
            ("acme/neu", &["acme/old"]),
            (":acme/neu/shop", &["acme/old/shop"]),
            (":acme/neu/site", &["Acme/Old/Site", "acme/old/page"]),
            (":target/cart", &["acme/old/cart", "acme/neu/cart"]),
        ]);
        assert!(
            moves.find_moved_container("acme/neu/shop").is_none() && moves.find_circle().is_none()
        );
        assert_eq!(former_paths(&moves, "acme/neu/site"), ["acme/neu/page"]);
        assert_eq!(former_paths(&moves, "target/cart"), ["acme/neu/cart"]);
        assert_eq!(moves.path_after_move("acme/old/shop").as_deref(), Some("acme/neu/shop"));
    }

    #[test]
    fn former_paths_include_those_of_the_groups_above() {
        let moves = moves(&[
            (":new/g/q", &["old/x/p", "elsewhere/q"]),
            ("new/g", &["old/x"]),
            ("new", &["old"]),
        ]);
        let join_former = |path: &str| moves.former_paths(path).unwrap().join(" ");
        assert_eq!(join_former("new"), "old");
        assert_eq!(
            join_former("New/g/Q"),
            "elsewhere/q new/g/p new/x/p new/x/q old/g/p old/g/q old/x/p old/x/q"
        );
        assert_eq!(join_former("new/other"), "old/other");
        assert_eq!((join_former("old/x"), join_former("other")), (String::new(), String::new()));
        let path_pairs: Vec<_> = (0..40).map(|i| (format!("g{i}/x"), format!("g{i}/y"))).collect();
        let groups: Vec<_> = (1..=40).map(|at| format!("g{at}")).collect();
        let groups_and_paths: Vec<_> = groups.iter().zip(&path_pairs).collect();
        let former_path_lists: Vec<_> =
            groups_and_paths.iter().map(|(_, (x, y))| [x.as_str(), y]).collect();
        let declarations: Vec<_> = groups_and_paths
            .iter()
            .zip(&former_path_lists)
            .map(|((path, _), former_paths)| (path.as_str(), &former_paths[..]))
            .collect();
        assert_eq!(self::moves(&declarations).former_paths("g40"), None, "too many");
    }

    #[test]
    fn an_intermediate_path_is_recognised_only_if_it_is_unambiguous() {
        let find_intermediate = |declared: &[(&str, &[&str])], path: &str| {
            moves(declared).intermediate_group(path).map(|group| group.path.to_string())
        };
        let renamed_and_moved = ("acme/bb", &["old/aa"][..]);
        assert_eq!(find_intermediate(&[renamed_and_moved], "Old/bb").as_deref(), Some("acme/bb"));
        assert_eq!(find_intermediate(&[renamed_and_moved], "acme/aa"), None, "it is renamed first");
        assert_eq!(find_intermediate(&[("acme/aa", &["old/aa"])], "old/aa"), None);
        assert_eq!(
            find_intermediate(&[(":acme/bb", &["old/aa"])], "old/bb"),
            None,
            "a project is found"
        );
        for other in [("old/bb", &[][..]), ("other/bb", &["old/cc"]), ("x", &["old/bb"])] {
            assert_eq!(find_intermediate(&[renamed_and_moved, other], "old/bb"), None, "{other:?}");
        }
    }

    #[test]
    fn a_container_is_declared_by_its_current_and_its_former_path() {
        let moves = moves(&[("b", &["a"]), (":c/P", &[])]);
        assert!(["a", "B", "c/p"].iter().all(|path| moves.declares_container(path)));
        assert!(!moves.declares_container("c/q"));
    }

    #[test]
    fn a_created_container_gets_the_default_name_of_its_path() {
        let moves = moves(&[("g/a", &[]), ("g/b", &["g/a"]), ("g/c", &["g/b"]), ("g/d", &["g/x"])]);
        assert_eq!(
            ["g/a", "g/b", "g/c", "g/x"].map(|path| moves.gets_default_name(path)),
            [true, true, false, false]
        );
        let swapped = self::moves(&[("g/a", &["g/b"]), ("g/b", &["g/a"])]);
        let entered =
            self::moves(&[("g/a", &["h/a"]), ("g/b", &["g/a", "g/c"]), ("g/c", &["h/x"])]);
        assert_eq!(["g/a", "g/c"].map(|path| entered.gets_default_name(path)), [true, false]);
        assert!(!swapped.gets_default_name("g/a"));
    }

    #[test]
    fn a_container_declared_at_a_former_path_keeps_its_contents() {
        let moves = moves(&[("b", &["a"]), ("a", &["z"]), (":c/p", &["a/p"])]);
        assert_eq!(former_paths(&moves, "c/p"), ["a/p"]);
        assert_eq!(&*moves.former_occupant("a").unwrap().path, "b");
    }

    #[test]
    fn a_circle_is_found() {
        let find_circle = |declared: &[(&str, &[&str])]| {
            moves(declared)
                .find_circle()
                .map(|circle| circle.into_iter().map(ToString::to_string).collect())
        };
        let none: Option<Vec<String>> = None;
        assert_eq!(find_circle(&[("b", &["a"]), ("c", &["b"]), ("d", &["c"])]), none);
        let swap = find_circle(&[("a", &["b"]), ("b", &["a"])]);
        assert_eq!(swap.unwrap(), ["a", "b"]);
        let inside = find_circle(&[("x/a", &["y/a"]), ("x", &["x/a/y"])]);
        assert!(inside.is_some());
    }
}
