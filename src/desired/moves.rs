//! Where declared groups and projects were before they got the path that is declared, and what is
//! declared at all.
//!
//! `previously` names former paths, as somebody remembers them: written before or after a group
//! above was renamed. Here all of them have one form, as if every group above had its declared path
//! already. What lives at such a path is told by observing; nothing here depends on that.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::Container;
use crate::{address::Address, field::Scope};

/// The groups and projects that are declared to have had other paths, those included that a run does
/// not look at.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    by_path: BTreeMap<String, Move>,
    /// By a former path in lower case, the declared one of whoever left it, in lower case.
    left: BTreeMap<String, String>,
    /// The former paths at which something else is declared, in lower case.
    declared: BTreeSet<String>,
    /// Of these, those at which it has a declared name.
    named: BTreeSet<String>,
    /// The paths that are declared, by the order of their lower case.
    all: Vec<Arc<str>>,
    /// By the path, in lower case, that a group has when it was renamed and not moved yet, the declared
    /// one of that group in lower case; none if several pass there, or something is declared there.
    passed: BTreeMap<String, Option<String>>,
    /// The paths of all declared projects in lower case, if somebody asks for those that are not.
    projects: Option<BTreeSet<String>>,
}

/// The most paths that one group or project can have had, as far as they are worked out.
const MOST_NAMES: usize = 1000;
/// The most groups that are looked at on the way to one of them.
const DEEPEST: usize = 64;

/// A group or project that had other paths.
#[derive(Clone, Debug)]
pub struct Move {
    /// Which of the two.
    pub scope: Scope,
    /// The full path as declared.
    pub path: Arc<str>,
    /// The former ones, in the order in which they are written.
    pub former: Vec<Arc<str>>,
}

impl Moves {
    /// What `containers` say.
    pub fn of(containers: &[Container]) -> Self {
        let mut moved: Vec<_> =
            containers.iter().filter(|container| !container.life.previously.is_empty()).collect();
        // What is below a group is told by the group's new path, so that has to be known first.
        let depth = |path: &str| path.matches('/').count();
        moved.sort_by_key(|container| {
            let former = container.life.previously.iter().map(|former| depth(&former.value));
            (container.scope == Scope::Project, former.min())
        });
        let written: BTreeSet<_> =
            moved.iter().flat_map(|container| container.former()).map(str::to_lowercase).collect();
        let is_left = |path: &String| !moved.is_empty() && written.contains(path);
        let declared = containers.iter().map(|container| container.path.to_lowercase());
        let mut moves = Self { declared: declared.filter(is_left).collect(), ..Self::default() };
        for container in moved {
            let path = container.path.clone();
            let former = container.former().map(|former| moves.canonical(former));
            let former: Vec<Arc<str>> = former.collect();
            for former in &former {
                moves.left.insert(former.to_lowercase(), path.to_lowercase());
            }
            let scope = container.scope;
            moves.by_path.insert(path.to_lowercase(), Move { scope, path, former });
        }
        let declared = containers.iter().filter(|container| moves.left(&container.path).is_some());
        let declared: Vec<_> = declared.map(|container| container.path.to_lowercase()).collect();
        moves.declared.extend(declared);
        if !moves.declared.is_empty() {
            let named = containers.iter().filter(|container| container.declares_name());
            let named = named.map(|container| container.path.to_lowercase());
            moves.named = named.filter(|path| moves.declared.contains(path)).collect();
        }
        moves.all = containers.iter().map(|container| container.path.clone()).collect();
        moves.all.sort_by_cached_key(|path| path.to_lowercase());
        moves.passed = moves.passed();
        if containers.iter().any(|container| container.life.unlisted_projects.is_some()) {
            let projects = containers.iter().filter(|container| container.scope == Scope::Project);
            moves.projects = Some(projects.map(|project| project.path.to_lowercase()).collect());
        }
        moves
    }

    fn passed(&self) -> BTreeMap<String, Option<String>> {
        let mut passed = BTreeMap::<String, Option<String>>::new();
        for (home, group) in self.by_path.iter().filter(|(_, of)| of.scope == Scope::Group) {
            let renamed = group.former.iter().filter_map(|former| renamed(former, &group.path));
            for path in renamed.map(|path| path.to_lowercase()) {
                let is_free = !self.declares(&path) && !self.left.contains_key(&path);
                let own = Some(home.clone()).filter(|_| is_free);
                let known = passed.entry(path).or_insert_with(|| own.clone());
                if *known != own {
                    *known = None;
                }
            }
        }
        passed
    }

    /// Takes in what rules bring in.
    pub(super) fn bring_in(&mut self, containers: &[Container]) {
        let Some(known) = &mut self.projects else { return };
        let projects = containers.iter().filter(|container| container.scope == Scope::Project);
        known.extend(projects.map(|project| project.path.to_lowercase()));
    }

    /// `path` as if every group above had its declared path. What is below a path at which something
    /// is declared is below that.
    fn canonical(&self, path: &str) -> Arc<str> {
        let (mut path, mut settled) = (path.to_owned(), 0);
        let new_path = |group: String| {
            let new = self.by_path.get(self.left.get(&group)?)?;
            (new.scope == Scope::Group && !self.declared.contains(&group)).then(|| new.path.clone())
        };
        while let Some(end) = path[settled..].find('/').map(|at| settled + at) {
            settled = match new_path(path[..end].to_lowercase()) {
                Some(new) => {
                    path.replace_range(..end, &new);
                    new.len() + 1
                }
                None => end + 1,
            };
        }
        path.into()
    }

    /// Whether nothing is declared to have had another path.
    pub fn is_empty(&self) -> bool {
        self.by_path.is_empty()
    }

    /// Whether a manifest declares, or brings in, the project that is at `path`, where that is its
    /// former path too.
    pub fn declare_project(&self, path: &str) -> bool {
        let path = self.canonical(path);
        let left = || self.left(&path).is_some_and(|project| project.scope == Scope::Project);
        let is_known = |known: &BTreeSet<String>| known.contains(&path.to_lowercase());
        self.projects.as_ref().is_some_and(is_known) || left()
    }

    /// What is declared at `path`, if it had other paths.
    pub fn at(&self, path: &str) -> Option<&Move> {
        self.by_path.get(&path.to_lowercase())
    }

    /// The nearest group above `path` that had other paths.
    pub fn above(&self, path: &str) -> Option<&Move> {
        if self.is_empty() {
            return None;
        }
        let path = path.to_lowercase();
        let ends: Vec<_> = path.match_indices('/').map(|(at, _)| at).collect();
        let groups = ends.into_iter().rev().filter_map(|end| self.by_path.get(&path[..end]));
        groups.into_iter().find(|group| group.scope == Scope::Group)
    }

    /// What was at `path` and is declared to be elsewhere.
    pub fn left(&self, path: &str) -> Option<&Move> {
        self.by_path.get(self.left.get(&path.to_lowercase())?)
    }

    /// Whether something is declared at a path that something else has left.
    pub fn is_declared(&self, former: &str) -> bool {
        self.declared.contains(&former.to_lowercase())
    }

    /// Whether what is declared at a path that something else has left takes the name that is like that
    /// path: it is created there without another name, or comes from a path of which the same holds.
    pub fn takes_name(&self, former: &str) -> bool {
        let mut path = former.to_lowercase();
        // Two may change places.
        for _ in 0..DEEPEST {
            if !self.declared.contains(&path) || self.named.contains(&path) {
                return false;
            }
            let Some(from) = self.by_path.get(&path).and_then(|own| own.former.first()) else {
                return true;
            };
            path = from.to_lowercase();
        }
        false
    }

    /// The declared path of what was at `former`, or below a group that was; `None` if that is no
    /// former path.
    pub fn now(&self, former: &str) -> Option<Arc<str>> {
        let path = self.canonical(former);
        let left = self.left(&path).filter(|_| !self.is_declared(&path));
        let now = left.map_or(path, |left| left.path.clone());
        (now.to_lowercase() != former.to_lowercase()).then_some(now)
    }

    /// The declared path of what is at `path`: the one that it has, unless that is a former one.
    pub fn home(&self, path: &str) -> Arc<str> {
        self.now(path).unwrap_or_else(|| path.into())
    }

    /// Whether `is_so` of an address, or of the same below a former path; too many of these to tell
    /// may include any.
    pub fn any(&self, address: &Address, is_so: impl Fn(&Address) -> bool) -> bool {
        is_so(address) || self.was(address, is_so).unwrap_or(true)
    }

    /// Whether `is_so` of what is at `address` below one of its former paths; `None` if these are too
    /// many to tell.
    pub fn was(&self, address: &Address, is_so: impl Fn(&Address) -> bool) -> Option<bool> {
        let at = |path: String| Address { path: path.into(), ..address.clone() };
        let former = self.former(&address.path)?;
        Some(former.into_iter().any(|path| is_so(&at(path))))
    }

    /// The former paths of what is declared at `path`, in lower case: its own, and those that come of
    /// former ones of the groups above; `None` if they are too many.
    pub fn former(&self, path: &str) -> Option<Vec<String>> {
        if self.is_empty() {
            return Some(Vec::new());
        }
        let path = path.to_lowercase();
        let names = self.names(&path, 0)?;
        Some(names.into_iter().filter(|name| *name != path).collect())
    }

    /// `path` and its former ones.
    fn names(&self, path: &str, depth: usize) -> Option<BTreeSet<String>> {
        if depth > DEEPEST {
            return None;
        }
        let former = self.by_path.get(path).map(|own| &own.former[..]).unwrap_or_default();
        let former = former.iter().map(|former| former.to_lowercase());
        let mut names = BTreeSet::new();
        for name in former.chain([path.to_owned()]) {
            match name.rsplit_once('/') {
                Some((group, last)) => {
                    let groups = self.names(group, depth + 1)?;
                    names.extend(groups.iter().map(|group| format!("{group}/{last}")));
                }
                None => drop(names.insert(name)),
            }
            if names.len() > MOST_NAMES {
                return None;
            }
        }
        Some(names)
    }

    /// Whether a manifest declares what is at `path`, there or at the path that it is to get.
    pub fn declares(&self, path: &str) -> bool {
        let home = self.home(path).to_lowercase();
        self.all.binary_search_by_key(&home, |known| known.to_lowercase()).is_ok()
    }

    /// The group that is on its way to where it is declared if a group is at `path`: renamed, and not
    /// moved yet.
    pub fn passing(&self, path: &str) -> Option<&Move> {
        self.by_path.get(self.passed.get(&path.to_lowercase())?.as_ref()?)
    }

    /// Whether it takes more than a look at `path` to find what is declared there.
    pub fn concern(&self, path: &str) -> bool {
        self.at(path).is_some() || self.left(path).is_some() || self.above(path).is_some()
    }

    /// Something of which it cannot be told where it is without knowing where it is: the paths of
    /// its circle, if there is one.
    pub fn circle(&self) -> Option<Vec<&Arc<str>>> {
        let mut settled = BTreeSet::new();
        self.by_path
            .values()
            .find_map(|start| self.circle_from(start, &mut Vec::new(), &mut settled))
    }

    fn circle_from<'m>(
        &'m self,
        from: &'m Move,
        way: &mut Vec<&'m Arc<str>>,
        settled: &mut BTreeSet<&'m Arc<str>>,
    ) -> Option<Vec<&'m Arc<str>>> {
        if let Some(at) = way.iter().position(|path| **path == from.path) {
            return Some(way[at..].to_vec());
        }
        if settled.contains(&from.path) {
            return None;
        }
        way.push(&from.path);
        let groups = std::iter::once(&from.path).chain(&from.former);
        let groups = groups.filter_map(|path| self.above(path));
        let needed: Vec<_> = groups.chain(self.left(&from.path)).collect();
        let circle = needed.into_iter().find_map(|other| self.circle_from(other, way, settled));
        way.pop();
        settled.insert(&from.path);
        circle
    }
}

/// The path that what was at `former` has when it got its new name and not its namespace, if it gets
/// both.
pub fn renamed(former: &str, home: &str) -> Option<String> {
    let apart = |path: &str| match path.rsplit_once('/') {
        Some((namespace, name)) => (format!("{namespace}/"), name.to_owned()),
        None => (String::new(), path.to_owned()),
    };
    let ((from, old), (to, new)) = (apart(former), apart(home));
    (from != to && old != new).then(|| from + &new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        desired::{Unlisted, testing},
        value::Json,
    };

    /// Groups, and projects that start with `:`, each with its former paths.
    fn moves(declared: &[(&str, &[&str])]) -> Moves {
        let container = |(path, former): &(&str, &[&str])| {
            let scope = if path.starts_with(':') { Scope::Project } else { Scope::Group };
            let path = path.trim_start_matches(':');
            let mut container = testing::container(scope, path, &Json::Null, Unlisted::Report);
            container.life.previously = former.iter().map(|path| testing::former(path)).collect();
            container
        };
        Moves::of(&declared.iter().map(container).collect::<Vec<_>>())
    }

    fn former(moves: &Moves, path: &str) -> Vec<String> {
        moves.at(path).unwrap().former.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn former_paths_have_one_form_however_they_are_remembered() {
        for written in ["old/x/p", "new/x/p", "new/g/p", "OLD/x/p"] {
            let moves = moves(&[
                (":new/g/q", &[written]),
                ("new/g", &["old/x"]),
                ("new", &["old"]),
                ("other", &[]),
            ]);
            assert_eq!(former(&moves, "new/g"), ["new/x"]);
            assert_eq!(former(&moves, "new/g/q"), ["new/g/p"], "{written}");
            assert_eq!(&*moves.above("New/g/a/b").unwrap().path, "new/g");
            assert_eq!(&*moves.left("NEW/g/P").unwrap().path, "new/g/q");
            assert_eq!(moves.now("old/x/p").as_deref(), Some("new/g/q"));
            assert_eq!(moves.now("old/x/other").as_deref(), Some("new/g/other"));
            assert_eq!((moves.now("new/g/q"), moves.now("elsewhere/p")), (None, None));
            assert!(moves.concern("new/other") && !moves.concern("other/x"));
            assert!(moves.circle().is_none());
        }
    }

    #[test]
    fn former_paths_are_its_own_and_those_of_the_groups_above() {
        let moves = moves(&[
            (":new/g/q", &["old/x/p", "elsewhere/q"]),
            ("new/g", &["old/x"]),
            ("new", &["old"]),
        ]);
        let former = |path: &str| moves.former(path).unwrap().join(" ");
        assert_eq!(former("new"), "old");
        assert_eq!(
            former("New/g/Q"),
            "elsewhere/q new/g/p new/x/p new/x/q old/g/p old/g/q old/x/p old/x/q"
        );
        assert_eq!(former("new/other"), "old/other");
        assert_eq!((former("old/x"), former("other")), (String::new(), String::new()));
        let names: Vec<_> = (0..40).map(|at| (format!("g{at}/x"), format!("g{at}/y"))).collect();
        let groups: Vec<_> = (1..=40).map(|at| format!("g{at}")).collect();
        let declared: Vec<_> = groups.iter().zip(&names).collect();
        let formers: Vec<_> = declared.iter().map(|(_, (x, y))| [x.as_str(), y]).collect();
        let declared: Vec<_> =
            declared.iter().zip(&formers).map(|((path, _), of)| (path.as_str(), &of[..])).collect();
        assert_eq!(self::moves(&declared).former("g40"), None, "too many");
    }

    #[test]
    fn a_group_is_told_halfway_only_where_nothing_else_can_be() {
        let passing = |declared: &[(&str, &[&str])], path: &str| {
            moves(declared).passing(path).map(|group| group.path.to_string())
        };
        let own = ("acme/bb", &["old/aa"][..]);
        assert_eq!(passing(&[own], "Old/bb").as_deref(), Some("acme/bb"));
        assert_eq!(passing(&[own], "acme/aa"), None, "it is renamed first");
        assert_eq!(passing(&[("acme/aa", &["old/aa"])], "old/aa"), None);
        assert_eq!(passing(&[(":acme/bb", &["old/aa"])], "old/bb"), None, "a project is found");
        for other in [("old/bb", &[][..]), ("other/bb", &["old/cc"]), ("x", &["old/bb"])] {
            assert_eq!(passing(&[own, other], "old/bb"), None, "{other:?}");
        }
    }

    #[test]
    fn what_is_declared_is_known_by_its_path_and_by_the_one_before() {
        let moves = moves(&[("b", &["a"]), (":c/P", &[])]);
        assert!(["a", "B", "c/p"].iter().all(|path| moves.declares(path)));
        assert!(!moves.declares("c/q"));
    }

    #[test]
    fn what_is_created_takes_the_name_that_is_like_its_path() {
        let moves = moves(&[("g/a", &[]), ("g/b", &["g/a"]), ("g/c", &["g/b"]), ("g/d", &["g/x"])]);
        assert_eq!(
            ["g/a", "g/b", "g/c", "g/x"].map(|at| moves.takes_name(at)),
            [true, true, false, false]
        );
        let swapped = self::moves(&[("g/a", &["g/b"]), ("g/b", &["g/a"])]);
        assert!(!swapped.takes_name("g/a"));
    }

    #[test]
    fn what_is_declared_at_a_former_path_keeps_what_is_below() {
        let moves = moves(&[("b", &["a"]), ("a", &["z"]), (":c/p", &["a/p"])]);
        assert_eq!(former(&moves, "c/p"), ["a/p"]);
        assert_eq!(&*moves.left("a").unwrap().path, "b");
    }

    #[test]
    fn a_circle_is_found() {
        let circle = |declared: &[(&str, &[&str])]| {
            moves(declared).circle().map(|way| way.into_iter().map(ToString::to_string).collect())
        };
        let none: Option<Vec<String>> = None;
        assert_eq!(circle(&[("b", &["a"]), ("c", &["b"]), ("d", &["c"])]), none);
        let swap = circle(&[("a", &["b"]), ("b", &["a"])]);
        assert_eq!(swap.unwrap(), ["a", "b"]);
        let inside = circle(&[("x/a", &["y/a"]), ("x", &["x/a/y"])]);
        assert!(inside.is_some());
    }
}
