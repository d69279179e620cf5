//! The part of the declared state that a run works on.
//!
//! A [`Selection`] is applied once, before anything is read. Later code gets only the selected
//! part. If only a part of a section is selected, the run ignores the unlisted live entries of that
//! section. Otherwise, the run would report excluded entries as unlisted.

use crate::{
    address::{Address, Selector},
    desired::{Container, CreationPolicy, DeclaredSection, Desired, Moves, Unlisted},
};

/// The objects that a run works on.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The objects to include. If the list is empty, all objects are included.
    pub only: Vec<Selector>,
    /// The objects to exclude.
    pub exclude: Vec<Selector>,
}

impl Selection {
    /// The selected part of `desired`.
    pub fn select(&self, desired: Desired) -> Desired {
        if self.only.is_empty() && self.exclude.is_empty() {
            return desired;
        }
        let moves = &desired.moves;
        let containers = desired
            .containers
            .into_iter()
            .filter_map(|container| self.select_container(container, moves));
        let containers = containers.collect();
        Desired { containers, ..desired }.without_idle_acknowledgements()
    }

    fn select_container(&self, mut container: Container, moves: &Moves) -> Option<Container> {
        let address = container.address();
        let is_whole = self.selects_by_any_path(&address, moves);
        let imports_contents = container.imports_contents();
        let sections = container.sections.into_iter();
        container.sections =
            sections.filter_map(|section| self.select_section(section, &address, moves)).collect();
        if !is_whole {
            container.lifecycle.unlisted_projects = None;
        } else if container.lifecycle.unlisted_projects.is_some() {
            // Excluded projects must not be treated as unlisted.
            container.lifecycle.excluded_selectors.clone_from(&self.exclude);
        }
        if !is_whole && matches!(container.creation_policy, CreationPolicy::Allowed(_)) {
            container.creation_policy = CreationPolicy::Unselected { imports_contents };
        }
        (is_whole || !container.sections.is_empty()).then_some(container)
    }

    fn select_section(
        &self,
        mut section: DeclaredSection,
        container_address: &Address,
        moves: &Moves,
    ) -> Option<DeclaredSection> {
        let address = container_address.with_section(section.kind.section);
        let is_whole = self.selects_by_any_path(&address, moves)
            && !self.excludes(&address, moves, Selector::matches_section);
        if is_whole {
            return Some(section);
        }
        section.unlisted.value = Unlisted::Ignore;
        let mut entries = std::mem::take(&mut section.entries);
        entries.retain(|entry| {
            self.selects_by_any_path(&section.address_of(entry, container_address), moves)
        });
        section.entries = entries;
        (!section.entries.is_empty()).then_some(section)
    }

    /// True if the object at `address`, or something in it, may be selected.
    pub fn may_select_part(&self, address: &Address, moves: &Moves) -> bool {
        self.includes(address, moves, Selector::matches_section)
    }

    /// True if the object at `address` is selected. Former paths are not considered.
    pub fn selects(&self, address: &Address) -> bool {
        self.selects_by_any_path(address, &Moves::default())
    }

    /// True if the container that is now at `path` is selected by its declared path or a former
    /// path.
    pub fn selects_path(&self, path: &str, moves: &Moves) -> bool {
        self.selects_by_any_path(&Address::container(moves.declared_path(path)), moves)
    }

    /// True if the object at `address` is selected by its declared path or by a former path. A
    /// rename therefore changes neither the selection nor the exclusion of an object.
    pub fn selects_by_any_path(&self, address: &Address, moves: &Moves) -> bool {
        self.includes(address, moves, Selector::matches)
    }

    fn includes(
        &self,
        address: &Address,
        moves: &Moves,
        matches_at: fn(&Selector, &Address) -> bool,
    ) -> bool {
        (self.only.is_empty()
            || self.only.iter().any(|selector| {
                matches_at(selector, address)
                    || moves
                        .any_former_matches(address, |former| matches_at(selector, former))
                        .unwrap_or(false)
            }))
            && !self.excludes(address, moves, Selector::matches)
    }

    fn excludes(
        &self,
        address: &Address,
        moves: &Moves,
        matches_at: fn(&Selector, &Address) -> bool,
    ) -> bool {
        self.exclude.iter().any(|selector| {
            moves.any_path_matches(address, |candidate| matches_at(selector, candidate))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        desired::{
            DeclaredFields,
            testing::{self, container, shop},
        },
        field::Scope,
    };

    /// The declarations of a group, and of a project that may be created. The project has settings,
    /// two variables and a hook.
    fn desired() -> Desired {
        let sections = json!({
            "settings": {"merge_method": "ff"},
            "variables": [
                {"key": "A", "environment_scope": "*", "value": {"env": "A"}},
                {"key": "B", "environment_scope": "prod/*", "value": "x"},
            ],
            "hooks": [{"name": "ci", "url": {"env": "HOOK"}}],
        });
        let mut shop = shop(&sections, Unlisted::Delete);
        shop.creation_policy = CreationPolicy::Allowed(DeclaredFields::default());
        let members = json!({"members": [{"user": "alice", "access_level": "owner"}]});
        let group = container(Scope::Group, "acme", &members, Unlisted::Fail);
        Desired { containers: vec![group, shop], ..Desired::default() }
    }

    fn select(only: &[&str], exclude: &[&str]) -> Desired {
        let parse = |globs: &[&str]| globs.iter().map(|g| Selector::parse(g).unwrap()).collect();
        Selection { only: parse(only), exclude: parse(exclude) }.select(desired())
    }

    /// The selected part as lines: each container, with `+` if it may be created or `-` if it is not
    /// created because it is only partly selected, and each section with its policy and entries.
    fn describe(desired: &Desired) -> Vec<String> {
        let mut lines = Vec::new();
        for container in &desired.containers {
            let create = match container.creation_policy {
                CreationPolicy::Allowed(_) => " +",
                CreationPolicy::Forbidden => "",
                CreationPolicy::Unselected { .. } => " -",
            };
            lines.push(format!("{}{create}", container.path));
            for section in &container.sections {
                let name = section.kind.section;
                let entries: Vec<_> = section.entries.iter().map(|e| e.key.as_str()).collect();
                let unlisted = section.unlisted.value;
                lines.push(format!("{name} {unlisted:?} {}", entries.join(" ")));
            }
        }
        lines
    }

    const GROUP: [&str; 2] = ["acme", "members Fail alice"];
    const SETTINGS: &str = "settings Delete ";
    const VARIABLES: &str = "variables Delete A@* B@prod/*";

    #[test]
    fn everything_is_selected_by_default() {
        let mut expected = GROUP.to_vec();
        expected.extend(["acme/shop +", "hooks Delete ci", SETTINGS, VARIABLES]);
        assert_eq!(describe(&select(&[], &[])), expected);
        assert_eq!(describe(&select(&["**"], &[])), expected);
        assert_eq!(describe(&select(&["**"], &["other/**"])), expected);
    }

    #[test]
    fn containers_are_selected_by_their_path() {
        assert_eq!(describe(&select(&["acme"], &[])), GROUP);
        assert_eq!(describe(&select(&[], &["acme/**"])), GROUP);
        let shop = ["acme/shop +", "hooks Delete ci", SETTINGS, VARIABLES];
        assert_eq!(describe(&select(&["ACME/*"], &[])), shop);
        assert_eq!(describe(&select(&[], &["acme"])), shop);
        assert_eq!(describe(&select(&["acme/**"], &["**"])), [""; 0]);
    }

    /// The selected part as lines. The project has the former path `acme/old`.
    fn select_moved(only: &[&str], exclude: &[&str]) -> Vec<String> {
        let mut desired = desired();
        desired.containers[1].lifecycle.former_paths = vec![testing::former_path("acme/old")];
        desired.moves = Moves::from_containers(&desired.containers).into();
        let parse = |globs: &[&str]| globs.iter().map(|g| Selector::parse(g).unwrap()).collect();
        describe(&Selection { only: parse(only), exclude: parse(exclude) }.select(desired))
    }

    #[test]
    fn an_excluded_project_stays_excluded_when_it_is_renamed() {
        assert_eq!(select_moved(&[], &["acme/old"]), GROUP);
        let mut expected = GROUP.to_vec();
        expected.extend(["acme/shop +", SETTINGS, VARIABLES]);
        assert_eq!(select_moved(&[], &["acme/o*#hooks"]), expected);
    }

    #[test]
    fn a_selected_project_stays_selected_when_it_is_renamed() {
        let shop = ["acme/shop +", "hooks Delete ci", SETTINGS, VARIABLES];
        assert_eq!(select_moved(&["acme/old"], &[]), shop);
        assert_eq!(select_moved(&["acme/shop"], &[]), shop);
        assert_eq!(select_moved(&["acme/old#variables"], &[]), ["acme/shop -", VARIABLES]);
        assert_eq!(select_moved(&["acme/old"], &["acme/shop"]), [""; 0]);
        assert_eq!(select_moved(&["acme/other"], &[]), [""; 0]);
    }

    #[test]
    fn a_project_is_selected_by_its_declared_path() {
        let mut group = container(Scope::Group, "acme", &json!({}), Unlisted::Fail);
        group.lifecycle.former_paths = vec![testing::former_path("old")];
        let moves = Moves::from_containers(&[group]);
        for (only, exclude, expected) in [
            ("acme/**", "x", true),
            ("old/**", "x", true),
            ("other/**", "x", false),
            ("**", "acme/*", false),
            ("**", "old/*", false),
        ] {
            let [only, exclude] = [only, exclude].map(|glob| vec![Selector::parse(glob).unwrap()]);
            let selection = Selection { only, exclude };
            // The path of the project before and after the move of its group.
            for path in ["old/shop", "acme/shop"] {
                assert_eq!(selection.selects_path(path, &moves), expected, "{selection:?} {path}");
            }
        }
    }

    #[test]
    fn a_renamed_entry_is_selected_by_both_names() {
        let labels = json!({"labels": [
            {"name": "defect", "previously": ["bug"], "color": "#AABBCC"},
            {"name": "other", "color": "#AABBCC"},
        ]});
        let moves = Moves::from_containers(&[shop(&labels, Unlisted::Delete)]);
        let count_former = |name: &str| {
            let label =
                Address::container("acme/shop".into()).with_section("labels").with_entry(name);
            moves.former_addresses(&label).len()
        };
        assert_eq!((count_former("defect"), count_former("other")), (1, 0));
        for (only, exclude, expected) in [
            ("**#labels/defect", "x", true),
            ("**#labels/bug", "x", true),
            ("**#labels/other", "x", false),
            ("**", "**#labels/bug", false),
            ("**", "**#labels/defect", false),
        ] {
            let [only, exclude] = [only, exclude].map(|glob| vec![Selector::parse(glob).unwrap()]);
            let selection = Selection { only, exclude };
            let label =
                Address::container("acme/shop".into()).with_section("labels").with_entry("defect");
            assert_eq!(selection.selects_by_any_path(&label, &moves), expected, "{selection:?}");
        }
    }

    #[test]
    fn a_whole_section_keeps_its_policy_and_its_project_is_not_created() {
        assert_eq!(describe(&select(&["**#variables"], &[])), ["acme/shop -", VARIABLES]);
        assert_eq!(describe(&select(&["**#members"], &[])), GROUP, "a group is not created anyway");
        let expected = ["acme/shop +", "hooks Delete ci", VARIABLES];
        assert_eq!(describe(&select(&["acme/shop"], &["**#settings"])), expected);
    }

    #[test]
    fn a_part_of_a_section_ignores_unlisted_entries() {
        let first_entry = ["acme/shop -", "variables Ignore A@*"];
        assert_eq!(describe(&select(&["**#variables/A@*"], &[])), first_entry);
        let remaining = ["acme/shop +", "hooks Delete ci", SETTINGS, "variables Ignore B@prod/*"];
        assert_eq!(describe(&select(&["acme/shop"], &["**#variables/A@*"])), remaining);
        // The excluded entry may exist only in the live state.
        let both_entries = ["acme/shop -", "variables Ignore A@* B@prod/*"];
        assert_eq!(describe(&select(&["**#variables"], &["**#variables/OTHER@*"])), both_entries);
        assert_eq!(describe(&select(&["**#variables/OTHER@*"], &[])), [""; 0]);
    }

    #[test]
    fn an_unselected_part_needs_no_secret() {
        let list_secrets = |desired: Desired| -> Vec<_> {
            desired.references().map(|(.., reference)| reference.to_string()).collect()
        };
        assert_eq!(list_secrets(select(&[], &[])), ["env:HOOK", "env:A"]);
        assert_eq!(list_secrets(select(&["**#hooks"], &[])), ["env:HOOK"]);
        assert_eq!(list_secrets(select(&[], &["**#hooks", "**#variables/A*"])), [""; 0]);
    }
}
