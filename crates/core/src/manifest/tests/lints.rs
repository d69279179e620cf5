//! Tests of the levels of warnings.

use super::*;
use crate::{diagnostic::Severity, manifest::Lint};

const OLD: &str = "kind: Project\npath: acme/old\nsettings: {wiki_enabled: true}\n";
const SHOP: &str = "kind: Project\npath: acme/shop\nsettings: {wiki_enabled: true}\n";

fn config_with_lints(lines: &str) -> String {
    format!("version: 1\nlints:\n{lines}")
}

fn load_with_config(config: &str) -> LoadedManifests {
    load_files(&[("undrift.yaml", config), ("Legacy/old.yaml", OLD), ("shop.yaml", SHOP)])
}

/// The severity of the warning about a deprecated field, for each file that has one.
fn deprecation_severities(diagnostics: &Diagnostics) -> Vec<(Severity, String)> {
    let is_deprecation = |fault: &&Diagnostic| fault.code == "deprecated";
    let file = |diagnostic: &Diagnostic| {
        diagnostic.location.as_ref().unwrap().file.rsplit('/').next().unwrap().to_owned()
    };
    diagnostics
        .sorted()
        .into_iter()
        .filter(is_deprecation)
        .map(|diagnostic| (diagnostic.severity, file(diagnostic)))
        .collect()
}

#[test]
fn the_last_matching_lint_applies() {
    let (warning, error) = (Severity::Warning, Severity::Error);
    let expected_severities =
        |old: Severity, shop| vec![(old, "old.yaml".to_owned()), (shop, "shop.yaml".to_owned())];
    for (lines, expected) in [
        ("- {code: date, level: deny}\n", expected_severities(warning, warning)),
        ("- {code: deprecated, level: allow}\n", vec![]),
        ("- {code: deprecated, level: deny}\n", expected_severities(error, error)),
        ("- {code: deprecated, in: legacy/**, level: deny}\n", expected_severities(error, warning)),
        (
            "- {code: deprecated, level: deny}\n- {code: deprecated, in: legacy/**, level: allow}\n",
            vec![(error, "shop.yaml".to_owned())],
        ),
        (
            "- {code: deprecated, in: legacy/**, level: allow}\n- {code: deprecated, level: deny}\n",
            expected_severities(error, error),
        ),
    ] {
        let loaded = load_with_config(&config_with_lints(lines));
        assert_eq!(deprecation_severities(&loaded.diagnostics), expected, "{lines}");
        assert_eq!(
            loaded.desired.is_none(),
            expected.iter().any(|(severity, _)| *severity == error),
            "{lines}"
        );
    }
}

#[test]
fn errors_keep_their_level_and_faults_of_lints_are_reported() {
    for (lint, code) in [
        ("{code: unknown-field, level: allow}", "unknown-field"),
        ("{code: deprecatd, level: allow}", "choice"),
        ("{code: previously, level: allow}", "lints"),
        ("{code: deprecated, level: loud}", "choice"),
        ("{code: deprecated, in: '[', level: allow}", "glob"),
        ("{code: deprecated}", "missing"),
    ] {
        let faulty_shop = SHOP.replace("wiki_enabled", "wikki");
        let config = config_with_lints(&format!("- {lint}\n"));
        let loaded = load_files(&[("undrift.yaml", &config), ("shop.yaml", &faulty_shop)]);
        let codes: Vec<_> = loaded.diagnostics.sorted().into_iter().map(|diag| diag.code).collect();
        assert!(codes.contains(&code) && codes.contains(&"unknown-field"), "{lint}: {codes:?}");
    }
}

#[test]
fn with_a_base_the_stricter_level_applies() {
    let (allow, deny) =
        ("- {code: deprecated, level: allow}\n", "- {code: deprecated, level: deny}\n");
    let base_lints = |lines: &str| load_with_config(&config_with_lints(lines)).config.lints;
    let severities_with_base = |branch_lints: &str, base: &[Lint]| {
        let mut loaded = load_with_config(&config_with_lints(branch_lints));
        loaded.apply_base_lints(base);
        let severities = deprecation_severities(&loaded.diagnostics);
        assert_eq!(loaded.desired.is_none(), loaded.diagnostics.has_errors(), "{branch_lints}");
        severities.into_iter().map(|(severity, _)| severity).collect::<Vec<_>>()
    };
    let (warnings, errors) = (vec![Severity::Warning; 2], vec![Severity::Error; 2]);
    assert_eq!(severities_with_base(allow, &[]), warnings);
    assert_eq!(severities_with_base(allow, &base_lints(allow)), []);
    assert_eq!(severities_with_base(allow, &base_lints(deny)), errors);
    assert_eq!(severities_with_base("- {code: date, level: warn}\n", &base_lints(deny)), errors);
    assert_eq!(severities_with_base("- {code: date, level: warn}\n", &[]), warnings);
    // The branch itself makes these errors.
    assert_eq!(severities_with_base(deny, &[]), errors);
}
