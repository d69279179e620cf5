//! Tests of absorbing many differences: the work grows in proportion to their number.

use serde_json::json;

use super::*;
use crate::{
    address::Selector,
    export::{self, Excerpt},
    kind::{FieldSelection, NameIndex},
    live::testing::{caller, live_container_with},
    manifest::{self, Config},
    plan, release,
    selection::Selection,
    steps,
};

/// Manifests and the live state of their projects.
struct AbsorbScenario {
    text: String,
    live: Json,
}

impl AbsorbScenario {
    fn load(&self, edited: &FileTexts) -> Result<Desired, String> {
        let name: FileName = "all.yaml".into();
        let text = edited.get(&name).unwrap_or(&self.text).clone();
        let today = jiff::civil::date(2030, 1, 1);
        manifest::load_texts([(name, text)], today, &Config::default())
            .map_err(|faults| format!("{faults:?}"))
    }

    /// Absorbs all differences, and returns the new text.
    fn absorb(&self, mode: AbsorbMode) -> String {
        self.absorb_only(mode, &["**", "**#*/**"])
    }

    /// Absorbs the differences that the selectors `only` select, and returns the new text.
    fn absorb_only(&self, mode: AbsorbMode, only: &[&str]) -> String {
        let (text, refusals) = self.absorb_part(mode, only);
        assert_eq!(refusals, []);
        text
    }

    /// Absorbs the selected differences, and returns the new text and the refusals of `find_drift`.
    fn absorb_part(&self, mode: AbsorbMode, only: &[&str]) -> (String, Vec<AbsorbRefusal>) {
        let (absorbed, refusals) = self.try_absorb(mode, only);
        let text = absorbed.unwrap().files.into_values().next();
        (text.map_or(self.text.clone(), |(_, new)| new), refusals)
    }

    /// Absorbs the selected differences, and returns the result of `absorb` and the refusals of
    /// `find_drift`.
    fn try_absorb(
        &self,
        mode: AbsorbMode,
        only: &[&str],
    ) -> (Result<EditedFiles, AbsorbError>, Vec<AbsorbRefusal>) {
        let before = self.load(&FileTexts::new()).unwrap();
        let export_settings = export::ExportSettings::for_caller(
            caller(),
            release::DetectedRelease::Known(release::REFERENCE),
        );
        let settings = plan::PlanSettings::for_run(caller(), std::sync::Arc::default(), &before);
        let only = only.iter().map(|glob| Selector::parse(glob).unwrap()).collect();
        let selection = Selection { only, ..Selection::default() };
        let (mut goals, mut refusals) = (Vec::new(), Vec::new());
        for container in &before.containers {
            let live = live_container_with(container, &self.live, FieldSelection::All);
            let plan = plan::plan_container(container, &live, &settings);
            let names = NameIndex::default();
            let excerpt = Excerpt::from_live(
                container.scope,
                &container.path,
                &live,
                &names,
                &export_settings,
            )
            .unwrap();
            let comparison = ContainerComparison {
                container,
                plan: &plan,
                live: &live,
                names: &names,
                excerpt: Some(&excerpt),
            };
            let (new_goals, new_refusals) = find_drift(&comparison, &selection);
            goals.extend(new_goals);
            refusals.extend(new_refusals);
        }
        let read = |_: &FileName| Ok(self.text.clone());
        (absorb(&before, &goals, mode, &read, &|edited| self.load(edited)), refusals)
    }
}

/// The live state with `count` labels.
fn live_labels(count: usize) -> Json {
    let label = |index| json!({"name": format!("l{index}"), "color": "#ff0000"});
    json!({"labels": (0..count).map(label).collect::<Vec<_>>()})
}

/// `count` labels as entries of a manifest.
fn labels(count: usize, color: &str) -> Vec<String> {
    (0..count).map(|index| format!("{{name: l{index}, color: '{color}'}}")).collect()
}

fn document(path: &str, labels: &[String]) -> String {
    let lines: String = labels.iter().map(|label| format!("  - {label}\n")).collect();
    format!("kind: Project\npath: {path}\nlabels:\n{lines}")
}

#[test]
fn absorbing_grows_linearly_with_entries() {
    for mode in [AbsorbMode::OwnDocument, AbsorbMode::AtSource] {
        let absorb = |text: String, live: Json| AbsorbScenario { text, live }.absorb(mode);
        steps::assert_linear_growth("changed entries", |n| {
            let document = |color| document("acme/shop", &labels(n, color));
            assert_eq!(absorb(document("#00ff00"), live_labels(n)), document("#ff0000"));
        });
        steps::assert_linear_growth("changed entries in one line", |n| {
            let document = |color| {
                let labels = labels(n, color).join(", ");
                format!("{{kind: Project, path: acme/shop, labels: [{labels}]}}\n")
            };
            assert_eq!(absorb(document("#00ff00"), live_labels(n)), document("#ff0000"));
        });
        steps::assert_linear_growth("changed projects", |n| {
            let document = |color| {
                let project = |index| document(&format!("acme/p{index}"), &labels(1, color));
                (0..n).map(project).collect::<Vec<_>>().join("---\n")
            };
            assert_eq!(absorb(document("#00ff00"), live_labels(1)), document("#ff0000"));
        });
        steps::assert_linear_growth("removed entries", |n| {
            let absorbed = absorb(document("acme/shop", &labels(n, "#ff0000")), live_labels(0));
            assert_eq!(absorbed, "kind: Project\npath: acme/shop\nlabels: []\n");
        });
        steps::assert_linear_growth("added entries", |n| {
            let absorbed = absorb(document("acme/shop", &labels(1, "#ff0000")), live_labels(n));
            assert_eq!(absorbed.lines().count(), 3 + n);
        });
    }
}

#[test]
fn a_rename_that_was_not_applied_stays_as_it_is_declared() {
    let document = |color: &str, other: &str| {
        let renamed = format!("{{name: new, previously: [l0], color: '{color}'}}");
        document("acme/shop", &[renamed, format!("{{name: l1, color: '{other}'}}")])
    };
    let (live_color, old_color, new_color) = ("#ff0000", "#00ff00", "#ff0000");
    for (text, only, expected) in [
        (document(old_color, old_color), "**#*/**", document(new_color, new_color)),
        (document(old_color, old_color), "**#labels/new/name", document(old_color, old_color)),
        (document(live_color, old_color), "**#labels/*", document(live_color, new_color)),
        (
            document(live_color, live_color),
            "acme/shop#labels/new",
            document(live_color, live_color),
        ),
    ] {
        let scenario = AbsorbScenario { text, live: live_labels(2) };
        let (absorbed, refusals) = scenario.absorb_part(AbsorbMode::OwnDocument, &[only]);
        assert_eq!(absorbed, expected, "{only}");
        let refused: Vec<_> =
            refusals.iter().map(|refusal| (refusal.address.to_string(), refusal.kind)).collect();
        let rename_refusal = ("acme/shop#labels/new".to_owned(), RefusalKind::PendingRename);
        assert_eq!(refused, [rename_refusal], "{only}");
    }
}

/// A document with a label that several projects share.
fn shared_document(paths: &str, params: &str, color: &str) -> String {
    let labels = format!("labels:\n  # the first\n  - {{name: l0, color: '{color}'}}\n");
    format!("kind: Project\n{paths}\n{params}{labels}")
}

#[test]
fn a_change_of_one_path_gets_a_document_of_its_own() {
    let other = "---\nkind: Project\npath: acme/z\nlabels: []\n";
    for (before, after, own_path, own_params) in [
        (
            "paths: [acme/a, acme/b, acme/c] # three",
            "paths: [acme/a, acme/c] # three",
            "path: acme/b # three",
            "",
        ),
        (
            "paths:\n  - acme/a # one\n  - acme/b # two\n  - acme/c # three",
            "paths:\n  - acme/a # one\n  - acme/c # three",
            "path: acme/b # three",
            "",
        ),
        (
            "paths:\n  acme/a:\n  acme/b: {port: 1}\n  acme/c: # three",
            "paths:\n  acme/a:\n  acme/c: # three",
            "path: acme/b\nparams: {x: 2, port: 1} # three",
            "",
        ),
        (
            "paths: {acme/a: , acme/b: {previously: [acme/old]}, acme/c: }",
            "paths: {acme/a: , acme/c: }",
            "path: acme/b\npreviously: [acme/old]",
            "params: {x: 2}\n",
        ),
    ] {
        let params = if before.contains("acme/a:") { "params: {x: 2}\n" } else { "" };
        let text = |paths, color| shared_document(paths, params, color);
        let scenario =
            AbsorbScenario { text: text(before, "#00ff00") + other, live: live_labels(1) };
        let own_document = shared_document(own_path, own_params, "#ff0000");
        let expected = format!("{}{other}---\n{own_document}", text(after, "#00ff00"));
        assert_eq!(
            scenario.absorb_only(AbsorbMode::OwnDocument, &["acme/b", "acme/b#*/**"]),
            expected
        );
        // If all projects change, or the source is edited, the shared document changes.
        for (mode, only) in [(AbsorbMode::OwnDocument, "acme/?"), (AbsorbMode::AtSource, "acme/b")]
        {
            let expected = text(before, "#ff0000") + other;
            assert_eq!(scenario.absorb_only(mode, &[only]), expected);
        }
    }
}

/// The refusal contains the line in the original file, not the line in the separated text.
#[test]
fn a_value_that_cannot_be_edited_is_refused_with_its_line() {
    let text = "kind: Project\npaths:\n  - acme/a\n  - acme/b\nsettings:\n  description: {text: 'of {name}'}\n";
    let scenario =
        AbsorbScenario { text: text.to_owned(), live: json!({"settings": {"description": "x"}}) };
    let (absorbed, refusals) = scenario.try_absorb(AbsorbMode::OwnDocument, &["acme/b#settings"]);
    assert_eq!(refusals, []);
    let Err(AbsorbError::Refused(refusals)) = absorbed else { panic!("{absorbed:?}") };
    let lines: Vec<_> =
        refusals.iter().map(|refusal| refusal.origin.as_ref().map(|origin| origin.line)).collect();
    assert_eq!(lines, [Some(5)]);
}

#[test]
fn separating_many_paths_grows_linearly() {
    steps::assert_linear_growth("paths with another label", |n| {
        let paths: Vec<_> = (0..=n).map(|i| format!("acme/p{i}")).collect();
        let text = shared_document(&format!("paths: [{}]", paths.join(", ")), "", "#00ff00");
        let scenario = AbsorbScenario { text, live: live_labels(1) };
        let absorbed =
            scenario.absorb_only(AbsorbMode::OwnDocument, &["acme/p[1-9]*", "acme/p[1-9]*#*/**"]);
        assert_eq!(absorbed.matches("#ff0000").count(), n);
        assert!(absorbed.starts_with(&shared_document("paths: [acme/p0]", "", "#00ff00")));
    });
}
