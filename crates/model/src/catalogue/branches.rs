//! Branches that must exist. undrift creates missing branches, and never changes a branch.

use super::prelude::*;

pub(super) struct Branches;

impl KindRules for Branches {
    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let name = declared.text("name");
        if name.is_some() && name == declared.text("ref") {
            report(EntryFault::for_field(fault_text::BRANCH_OF_ITSELF, "ref"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::kind::testing::{fields, project_section};

    #[test]
    fn a_branch_has_another_source_than_itself() {
        for (source, fault_count) in [("main", 0), ("release", 1)] {
            let mut faults = Vec::new();
            let declared = fields(json!({"name": "release", "ref": source}));
            project_section("branches").check(&declared, true, &mut |fault| faults.push(fault));
            assert_eq!(faults.len(), fault_count, "{source}");
        }
    }
}
