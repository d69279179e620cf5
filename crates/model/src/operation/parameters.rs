//! Lists of parameters that several operations share. The lists are in `parameters.yaml`.

use std::{collections::BTreeMap, sync::LazyLock};

use super::Parameter;
use crate::yaml;

/// The shared lists by name, read on first use.
static SHARED_LISTS: LazyLock<BTreeMap<&str, Vec<Parameter>>> =
    LazyLock::new(|| yaml::built_in!("operation/parameters"));

/// A list of parameters of an operation.
#[derive(Clone, Copy, Debug)]
pub enum ParameterList {
    /// The shared list with this name in `parameters.yaml`.
    Named(&'static str),
    /// A list made for one operation.
    Custom(&'static [Parameter]),
}

impl ParameterList {
    /// The parameters.
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::Named(name) => SHARED_LISTS.get(name).map_or(&[], Vec::as_slice),
            Self::Custom(parameters) => parameters,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::operation::OPERATIONS;

    #[test]
    fn every_list_of_the_file_is_used_and_every_used_list_is_in_the_file() {
        let lists = OPERATIONS.iter().flat_map(|op| op.row().parameters);
        let used_names: BTreeSet<_> = lists
            .filter_map(|list| match list {
                ParameterList::Named(name) => Some(*name),
                ParameterList::Custom(_) => None,
            })
            .collect();
        let nested_lists = ["scope", "stages", "new_grant", "changed_grant"];
        let file_names: BTreeSet<_> =
            SHARED_LISTS.keys().copied().filter(|name| !nested_lists.contains(name)).collect();
        assert_eq!(used_names, file_names);
        let parameters = SHARED_LISTS.values().flatten();
        let is_described = |parameter: &Parameter| {
            parameter.about.ends_with('.')
                && parameter.deprecated == parameter.replaced_by.is_some()
        };
        assert!(parameters.clone().all(is_described));
        assert!(parameters.clone().all(|parameter| parameter.required
            || parameter.location != super::super::ParameterLocation::Path));
    }
}
