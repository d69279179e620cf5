//! The words of other tools on their page: `check` has a lead for each resource of Terraform.

use std::{collections::BTreeSet, fs};

use undrift::{
    diagnostic::TextStyle,
    manifest::{self, LoadEnvironment},
};

use super::file;

/// The help where nothing better is known.
const GENERIC_HELP: &str = "another collection of the API can be described";

#[test]
fn every_terraform_resource_has_a_specific_help() {
    let page = file("docs/reference/other-tools.md");
    let is_name = |text: &&str| {
        text.starts_with("gitlab_") && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let names: BTreeSet<_> = page.split('`').skip(1).step_by(2).filter(is_name).collect();
    assert!(names.len() > 100, "{names:?}");
    let without_lead = names.into_iter().filter(|name| {
        // The names of older releases are on the page for those who search them.
        if *name == "gitlab_managed_license" {
            return false;
        }
        let folder = tempfile::tempdir().unwrap();
        let kind = if name.starts_with("gitlab_group") { "Group" } else { "Project" };
        let text = format!("kind: {kind}\npath: acme/shop\n{name}: [{{a: b}}]\n");
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        let loaded = manifest::load(folder.path(), &LoadEnvironment::for_process());
        let report = loaded.diagnostics.render(TextStyle::default());
        assert!(report.contains("help: "), "{report}");
        report.contains(GENERIC_HELP)
    });
    let without_help: Vec<_> = without_lead.collect();
    assert!(without_help.is_empty(), "{without_help:#?}");
}
