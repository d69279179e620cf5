//! Which part of what is declared a run looks at.
//!
//! A [`Selection`] is applied once, before anything is read: what comes after it knows only the
//! part that is selected. What is excluded never counts as unlisted: where less than a whole
//! section is selected, live entries that no manifest lists are left alone.

use crate::{
    address::{Address, Selector},
    desired::{Container, Creation, DeclaredSection, Desired, Unlisted},
};

/// The objects that a run looks at.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only these, if there are any.
    pub only: Vec<Selector>,
    /// Not these.
    pub exclude: Vec<Selector>,
}

impl Selection {
    /// The part of `desired` that is selected.
    pub fn of(&self, desired: Desired) -> Desired {
        if self.only.is_empty() && self.exclude.is_empty() {
            return desired;
        }
        let containers = desired.containers.into_iter().filter_map(|c| self.container(c));
        let containers = containers.collect();
        Desired { containers, ..desired }.without_idle_acknowledgements()
    }

    fn container(&self, mut container: Container) -> Option<Container> {
        let address = container.address();
        let is_whole = self.holds(&address);
        container.sections = container
            .sections
            .into_iter()
            .filter_map(|(name, section)| Some((name, self.section(section, &address)?)))
            .collect();
        if !is_whole && matches!(container.create, Creation::Allowed(_)) {
            container.create = Creation::Unselected;
        }
        (is_whole || !container.sections.is_empty()).then_some(container)
    }

    fn section(&self, mut section: DeclaredSection, of: &Address) -> Option<DeclaredSection> {
        let address = of.section(section.of.section);
        let is_whole = self.holds(&address)
            && !self.exclude.iter().any(|selector| selector.touches_section(&address));
        if is_whole {
            return Some(section);
        }
        section.unlisted.value = Unlisted::Ignore;
        let mut entries = std::mem::take(&mut section.entries);
        entries.retain(|entry| self.holds(&section.address_of(entry, of)));
        section.entries = entries;
        (!section.entries.is_empty()).then_some(section)
    }

    /// Whether `address` is selected.
    pub fn holds(&self, address: &Address) -> bool {
        (self.only.is_empty() || self.only.iter().any(|s| s.matches(address)))
            && !self.exclude.iter().any(|s| s.matches(address))
    }
}
