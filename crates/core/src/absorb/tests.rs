//! The work of absorbing grows in proportion to the number of differences.

use serde_json::json;

use super::*;
use crate::{
    address::Selector,
    export::{self, Excerpt},
    kind::{FieldSelection, Names},
    live::testing::{caller, here_reading},
    manifest::{self, Config},
    plan, release,
    selection::Selection,
    steps,
};

/// Manifests and the live state of their projects.
struct World {
    text: String,
    live: Json,
}

impl World {
    fn load(&self, edited: &Contents) -> Result<Desired, String> {
        let name: FileName = "all.yaml".into();
        let text = edited.get(&name).unwrap_or(&self.text).clone();
        let today = jiff::civil::date(2030, 1, 1);
        manifest::load_texts([(name, text)], today, &Config::default())
            .map_err(|faults| format!("{faults:?}"))
    }

    /// Absorbs all differences, and returns the new text.
    fn absorb(&self, mode: AbsorbMode) -> String {
        let before = self.load(&Contents::new()).unwrap();
        let export = export::ExportSettings::plain(
            caller(),
            release::DetectedRelease::Known(release::REFERENCE),
        );
        let settings = plan::PlanSettings::for_run(caller(), std::sync::Arc::default(), &before);
        let only = ["**", "**#*/**"].map(|glob| Selector::parse(glob).unwrap()).into();
        let chosen = Selection { only, ..Selection::default() };
        let mut goals = Vec::new();
        for container in &before.containers {
            let live = here_reading(container, &self.live, FieldSelection::All);
            let plan = plan::container(container, &live, &settings);
            let names = Names::default();
            let words =
                Excerpt::from_live(container.scope, &container.path, &live, &names, &export)
                    .unwrap();
            let seen = ContainerComparison {
                container,
                plan: &plan,
                live: &live,
                names: &names,
                excerpt: Some(&words),
            };
            let (found, refused) = find_drift(&seen, &chosen);
            assert_eq!(refused, []);
            goals.extend(found);
        }
        let read = |_: &FileName| Ok(self.text.clone());
        let absorbed = absorb(&before, &goals, mode, &read, &|edited| self.load(edited)).unwrap();
        absorbed.files.into_values().next().unwrap().1
    }
}

/// The live state with so many labels.
fn live(count: usize) -> Json {
    let label = |at| json!({"name": format!("l{at}"), "color": "#ff0000"});
    json!({"labels": (0..count).map(label).collect::<Vec<_>>()})
}

/// So many labels as entries of a manifest.
fn labels(count: usize, color: &str) -> Vec<String> {
    (0..count).map(|at| format!("{{name: l{at}, color: '{color}'}}")).collect()
}

fn document(path: &str, labels: &[String]) -> String {
    let lines: String = labels.iter().map(|label| format!("  - {label}\n")).collect();
    format!("kind: Project\npath: {path}\nlabels:\n{lines}")
}

#[test]
fn absorbing_grows_linearly_with_entries() {
    for mode in [AbsorbMode::OwnDocument, AbsorbMode::AtSource] {
        let absorb = |text: String, live: Json| World { text, live }.absorb(mode);
        steps::grow_in_proportion("changed entries", |n| {
            let document = |color| document("acme/shop", &labels(n, color));
            assert_eq!(absorb(document("#00ff00"), live(n)), document("#ff0000"));
        });
        steps::grow_in_proportion("changed entries in one line", |n| {
            let document = |color| {
                let labels = labels(n, color).join(", ");
                format!("{{kind: Project, path: acme/shop, labels: [{labels}]}}\n")
            };
            assert_eq!(absorb(document("#00ff00"), live(n)), document("#ff0000"));
        });
        steps::grow_in_proportion("changed projects", |n| {
            let document = |color| {
                let project = |at| document(&format!("acme/p{at}"), &labels(1, color));
                (0..n).map(project).collect::<Vec<_>>().join("---\n")
            };
            assert_eq!(absorb(document("#00ff00"), live(1)), document("#ff0000"));
        });
        steps::grow_in_proportion("removed entries", |n| {
            let absorbed = absorb(document("acme/shop", &labels(n, "#ff0000")), live(0));
            assert_eq!(absorbed, "kind: Project\npath: acme/shop\nlabels: []\n");
        });
        steps::grow_in_proportion("added entries", |n| {
            let absorbed = absorb(document("acme/shop", &labels(1, "#ff0000")), live(n));
            assert_eq!(absorbed.lines().count(), 3 + n);
        });
    }
}
