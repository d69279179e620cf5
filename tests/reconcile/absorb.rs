//! Drift that is absorbed: afterwards the plan is empty there, other texts in the manifests are
//! unchanged, and nothing is left to absorb.

use std::sync::Mutex;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use undrift::{
    absorb::{
        self, AbsorbError, AbsorbMode, AbsorbRefusal, ContainerComparison, EditedFiles, Goal,
    },
    address::Selector,
    apply,
    desired::Container,
    export::{self, Excerpt, ExportBuilder, SecretHandling},
    live::LiveContainer,
    manifest::{self, LoadEnvironment, LoadOptions},
    sandbox::Profile,
    selection::Selection,
};

use crate::{
    export::export_settings,
    random,
    world::{World, seed},
};

impl World {
    fn load_environment(&self) -> LoadEnvironment {
        LoadEnvironment {
            working_folder: self.root(),
            today: jiff::civil::date(2030, 1, 1),
            ..LoadEnvironment::for_process()
        }
    }

    /// The differences that `chosen` selects, as goals.
    async fn drift(&self, globs: &[&str]) -> (Vec<Goal>, Vec<AbsorbRefusal>) {
        let only = globs.iter().map(|glob| Selector::parse(glob).unwrap()).collect();
        let chosen = Selection { only, ..Selection::default() };
        let desired = self.desired();
        let (observer, settings) = self.connect(&desired).await.unwrap();
        let words = export::ExportSettings {
            extracts_defaults: false,
            ..export_settings(SecretHandling::Plain)(observer.caller())
        };
        let whole: Vec<_> = desired
            .containers
            .iter()
            .map(|container| export::widen_to_all_fields(container, &words))
            .collect();
        let results = Mutex::new((Vec::new(), Vec::new()));
        let compare = async |container: &Container, mut live: LiveContainer| {
            let path = &container.path;
            let container = desired.containers.iter().find(|own| own.path == *path).unwrap();
            let plan =
                apply::plan_with_extra_facts(&observer, container, &mut live, &settings).await?;
            let names =
                observer.read_names(ExportBuilder::referenced_ids(container.scope, &live)).await?;
            let words = Excerpt::from_live(container.scope, path, &live, &names, &words);
            let (plan, words) = (&plan, words.as_ref());
            let seen =
                ContainerComparison { container, plan, live: &live, names: &names, excerpt: words };
            let (goals, refused) = absorb::find_drift(&seen, &chosen);
            let mut found = results.lock().unwrap();
            found.0.extend(goals);
            found.1.extend(refused);
            Ok(())
        };
        observer.read_all(&whole, 16, compare).await.unwrap();
        results.into_inner().unwrap()
    }

    /// Edits the manifests so that they declare the goals.
    fn absorb(&self, goals: &[Goal], mode: AbsorbMode) -> Result<EditedFiles, AbsorbError> {
        let read = |file: &std::sync::Arc<str>| {
            std::fs::read_to_string(self.root().join(&**file)).map_err(|error| error.to_string())
        };
        let reload = |texts: &_| {
            let loaded = manifest::load_with_options(
                &self.root(),
                &self.load_environment(),
                &LoadOptions { replaced_texts: Some(texts), ..LoadOptions::default() },
            );
            let said = loaded.diagnostics.render(undrift::diagnostic::TextStyle::default());
            loaded.desired.ok_or(said)
        };
        let absorbed = absorb::absorb(&self.desired(), goals, mode, &read, &reload)?;
        for (file, (_, text)) in &absorbed.files {
            std::fs::write(self.root().join(&**file), text).unwrap();
        }
        Ok(absorbed)
    }

    /// Takes everything that differs at `chosen` into the manifests, and returns their text.
    pub(crate) async fn absorb_all(&self, chosen: &[&str]) -> String {
        let (goals, refused) = self.drift(chosen).await;
        assert_eq!(refused, []);
        self.absorb(&goals, AbsorbMode::OwnDocument).unwrap();
        self.text()
    }

    fn write(&self, text: &str) {
        std::fs::write(self.root().join("all.yaml"), text).unwrap();
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.root().join("all.yaml")).unwrap()
    }
}

/// `documents` in many lines, with a comment above each key and after each line.
fn commented(documents: &[Json]) -> String {
    let mut said = 0;
    let mut line = |line: &str| {
        said += 1;
        if line.starts_with(' ') || line.starts_with('-') {
            format!("{line}  # beside {said}\n")
        } else {
            format!("# above {said}.\n{line}\n")
        }
    };
    let mut document = |document: &Json| {
        serde_yaml::to_string(document).unwrap().lines().map(&mut line).collect::<String>()
    };
    documents.iter().map(&mut document).collect::<Vec<_>>().join("---\n")
}

/// The documents, with some sections of the last one moved into rules: those whose bit is set in
/// `moved`.
fn move_into_rules(mut documents: Vec<Json>, moved: u16) -> Vec<Json> {
    const FIXED_KEYS: [&str; 4] = ["kind", "path", "create", "unlisted"];
    let document = documents.last_mut().unwrap().as_object_mut().unwrap();
    let mut rules = json!({"kind": "Defaults", "match": {"path": document["path"]}});
    let names: Vec<_> = document.keys().cloned().collect();
    for (index, name) in names.into_iter().enumerate() {
        if !FIXED_KEYS.contains(&name.as_str()) && moved & (1 << index) != 0 {
            let section = document.shift_remove(&name).unwrap();
            rules[name] = section;
        }
    }
    documents.push(rules);
    documents
}

/// The comments above keys.
fn comments_above(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("# above")).collect()
}

#[test]
fn any_drift_can_be_absorbed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let states =
        (random::group(), random::project_sections(), random::group(), random::project_sections());
    // Which sections are in rules, and whether the rules are edited.
    let layers = (any::<u16>(), any::<bool>());
    random::cases(12)
        .run(&(states, layers), |((old_group, old, new_group, new), (moved, at_source))| {
            let mode = if at_source { AbsorbMode::AtSource } else { AbsorbMode::OwnDocument };
            runtime.block_on(async {
                let world = random::world().await;
                let old = move_into_rules(random::documents(old_group.clone(), old.clone()), moved);
                world.declare(&old);
                world.converge("as it was declared").await;
                world.declare(&random::documents(new_group.clone(), new.clone()));
                world.converge("as it drifted").await;
                let before = commented(&old);
                world.write(&before);
                let (goals, refused) = world.drift(&["**"]).await;
                let is_secret =
                    |refusal: &AbsorbRefusal| refusal.reason.contains("may be a secret");
                assert!(refused.iter().all(is_secret), "{refused:#?}\n{before}");
                world
                    .absorb(&goals, mode)
                    .unwrap_or_else(|failed| panic!("{failed:#?}\n{goals:#?}\n{before}"));
                let after = world.text();
                assert_eq!(comments_above(&before), comments_above(&after), "{before}\n{after}");
                let refused: Vec<_> = refused.iter().map(|refusal| &refusal.address).collect();
                let plan = world.plan().await;
                let left: Vec<_> =
                    plan.steps.iter().filter(|step| !refused.contains(&&step.address)).collect();
                assert!(left.is_empty(), "{left:#?}\n{before}\n{after}");
                assert!(plan.incomplete.is_empty(), "{:#?}\n{after}", plan.incomplete);
                let (again, _) = world.drift(&["**"]).await;
                assert!(again.is_empty(), "{again:?}: {after}");
            });
            Ok(())
        })
        .unwrap();
}

/// A project with settings from rules, and the service after somebody changed it.
const LAYERED: &str = "\
kind: Defaults
match: {path: acme/**}
settings:
  merge_method: ff  # everywhere
  squash_option: default_on
  topics: [acme, web]
variables:
  - {key: LEVEL, value: '1'}
  - {key: REGION, value: eu}
---
kind: Project
path: acme/shop  # ours
create: true
uses: [policy]
params: {port: 8080}
settings:
  description: 'A shop'  # for people
  container_expiration_policy: {enabled: true, keep_n: 5, name_regex: '.*'}
variables:
  # Only here.
  - key: OWN
    value: x
---
kind: Project
path: acme/other
create: true
uses: [policy]
params: {port: 8081}
---
kind: Profile
name: policy
needs: [port]
settings: {lfs_enabled: true}
variables:
  - {key: URL, value: {text: 'https://{name}.example.org:{port}'}}
";

/// The lines in which `edited` and LAYERED differ.
fn changed_lines(edited: &str) -> String {
    let diff = similar::TextDiff::from_lines(LAYERED, edited);
    let changes =
        diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
    changes.map(|change| format!("{}{}", change.tag(), change.value())).collect()
}

async fn layered_world() -> World {
    let world = World::new(Profile::default(), seed(&[])).await;
    world.write(LAYERED);
    world.converge("as it was declared").await;
    world
}

async fn absorb_drift(world: &World, chosen: &[&str], mode: AbsorbMode) -> (String, EditedFiles) {
    let (goals, refused) = world.drift(chosen).await;
    assert_eq!(refused, []);
    let absorbed = world.absorb(&goals, mode).unwrap();
    let edited = world.text();
    let (again, refused) = world.drift(chosen).await;
    assert!(again.is_empty() && refused.is_empty(), "{again:#?} {refused:#?}\n{edited}");
    (changed_lines(&edited), absorbed)
}

#[tokio::test]
async fn drift_goes_into_the_own_document_not_into_rules() {
    let world = layered_world().await;
    let shop = "/projects/acme%2Fshop";
    let settings = json!({
        "merge_method": "merge", "description": "It's a shop", "topics": ["web", "new"],
        "container_expiration_policy_attributes": {"enabled": true, "keep_n": 10},
    });
    world.call("PUT", shop, Some(settings)).await;
    world.call("DELETE", &format!("{shop}/variables/LEVEL"), None).await;
    world.call("DELETE", &format!("{shop}/variables/OWN"), None).await;
    world.call("PUT", &format!("{shop}/variables/REGION"), Some(json!({"value": "us"}))).await;
    let hidden = json!({"key": "NEW", "value": "glpat-0123456789abcdef"});
    world.call("POST", &format!("{shop}/variables"), Some(hidden)).await;
    let (changed, absorbed) =
        absorb_drift(&world, &["acme/shop", "acme/shop#variables/*"], AbsorbMode::OwnDocument)
            .await;
    assert_eq!(
        changed,
        "\
-  description: 'A shop'  # for people
-  container_expiration_policy: {enabled: true, keep_n: 5, name_regex: '.*'}
+  description: 'It''s a shop'  # for people
+  topics: [web, new]
+  merge_method: merge
+  container_expiration_policy: {enabled: true, keep_n: 10, name_regex: '.*'}
-  - key: OWN
-    value: x
+  - {key: LEVEL, state: absent}
+  - {key: NEW}  # value not exported: it looks like a secret
+  - {key: REGION, value: us}
"
    );
    assert!(absorbed.other_containers.is_empty());
    let plan = world.plan().await;
    assert!(plan.steps.is_empty() && plan.problems.is_empty(), "{plan:#?}");
}

#[tokio::test]
async fn grants_lost_with_a_share_do_not_prevent_absorbing() {
    let world = random::world().await;
    let declared = |access: &str| {
        format!(
            "\
kind: Project
path: acme/shop
create: true
shares:
- {{group: acme/leads, group_access: {access}}}
protected_tags:
- {{name: v*, allowed_to_create: [{{group: acme/leads}}, {{access_level: {access}}}]}}
- {{name: w*, allowed_to_create: [{{group: acme/leads}}]}}
protected_branches:
- name: main
  allowed_to_push: [{{access_level: {access}}}]
  allowed_to_merge: [{{access_level: maintainer}}, {{group: acme/leads}}]
unlisted: {{shares: delete, protected_tags: delete, protected_branches: delete}}
"
        )
    };
    let (old, new) = (declared("developer"), declared("maintainer"));
    for text in [&old, &new] {
        world.write(text);
        world.converge("what is declared").await;
    }
    world.write(&old);
    let plan = world.plan().await;
    for (entry, is_possible, has_certain) in
        [("v*", false, false), ("w*", true, false), ("main", true, true)]
    {
        let mut steps = plan.steps.iter();
        let step = steps.find(|step| step.address.entry.as_deref() == Some(entry)).unwrap();
        let found = (step.possible.is_some(), step.certain_part.is_some());
        assert_eq!(found, (is_possible, has_certain), "{entry}");
    }
    let (goals, refused) = world.drift(&["**"]).await;
    assert_eq!(refused, []);
    world.absorb(&goals, AbsorbMode::OwnDocument).unwrap();
    assert_eq!(world.text(), new);
}

#[tokio::test]
async fn rules_are_edited_at_their_source_on_request() {
    let world = layered_world().await;
    let shop = "/projects/acme%2Fshop";
    let settings = json!({"merge_method": "merge", "topics": ["web"], "lfs_enabled": false});
    world.call("PUT", shop, Some(settings)).await;
    world.call("DELETE", &format!("{shop}/variables/LEVEL"), None).await;
    let (changed, absorbed) = absorb_drift(&world, &["acme/shop"], AbsorbMode::AtSource).await;
    assert_eq!(
        changed,
        "\
-  merge_method: ff  # everywhere
+  merge_method: merge  # everywhere
-  topics: [acme, web]
+  topics: [web]
-  - {key: LEVEL, value: '1'}
-settings: {lfs_enabled: true}
+settings: {lfs_enabled: false}
"
    );
    let others: Vec<_> = absorbed.other_containers.iter().map(String::as_str).collect();
    assert_eq!(others, ["acme/other"]);
}

#[tokio::test]
async fn absorbed_list_changes_stay_add_and_remove() {
    let world = World::new(Profile::default(), seed(&[])).await;
    let text = |change: &str| {
        format!(
            "kind: Defaults\nmatch: {{path: acme/*}}\nsettings: {{topics: [a, b]}}\n---\nkind: Project\npath: acme/shop\ncreate: true\nsettings:\n  topics: {{{change}}}  # more\n"
        )
    };
    for (before, live, after) in [
        ("add: [c]", ["a", "b", "c", "d"].as_slice(), Some("add: [c, d]")),
        ("add: [c]", &["a", "c"], Some("add: [c], remove: [b]")),
        ("add: [c, d]", &["a", "b", "d"], Some("add: [d]")),
        ("remove: [a]", &["b", "c"], Some("remove: [a], add: [c]")),
        ("add: [c]", &["a", "b"], None),
    ] {
        world.write(&text(before));
        world.converge(before).await;
        world.call("PUT", "/projects/acme%2Fshop", Some(json!({"topics": live}))).await;
        let (goals, refused) = world.drift(&["acme/shop"]).await;
        assert_eq!(refused, []);
        let absorbed = world.absorb(&goals, AbsorbMode::OwnDocument);
        assert_eq!(absorbed.is_ok(), after.is_some(), "{before}: {absorbed:?}");
        assert_eq!(world.text(), text(after.unwrap_or(before)));
    }
}

#[tokio::test]
async fn values_without_a_manifest_form_are_refused_with_locations() {
    let world = layered_world().await;
    let shop = "/projects/acme%2Fshop";
    let masked = json!({"value": "masked-1234567", "masked": true});
    world.call("PUT", &format!("{shop}/variables/REGION"), Some(masked)).await;
    let (goals, refused) = world.drift(&["acme/shop"]).await;
    assert!(goals.is_empty(), "{goals:?}");
    let reason: Vec<_> = refused.iter().map(|refusal| refusal.reason.as_str()).collect();
    assert_eq!(reason, ["`value`: no manifest can express the live value, or it may be a secret"]);
    assert_eq!(
        refused[0].origin.as_ref().map(ToString::to_string).as_deref(),
        Some("all.yaml:9:19")
    );
    world.call("PUT", &format!("{shop}/variables/URL"), Some(json!({"value": "x"}))).await;
    let (goals, _) = world.drift(&["acme/shop#variables/URL@*"]).await;
    let Err(AbsorbError::Refused(refused)) = world.absorb(&goals, AbsorbMode::AtSource) else {
        panic!()
    };
    assert_eq!(refused[0].reason, "it is written as a template");
    assert_eq!(world.text(), LAYERED);
}

#[tokio::test]
async fn a_project_archived_by_hand_is_declared_archived() {
    let world = layered_world().await;
    world.call("POST", "/projects/acme%2Fshop/archive", None).await;
    let (changed, _) = absorb_drift(&world, &["acme/shop"], AbsorbMode::OwnDocument).await;
    assert_eq!(changed, "+archived: true\n");
}

#[tokio::test]
async fn a_shared_value_is_not_edited_for_one_entry() {
    let text = |rest: &str| {
        format!(
            "kind: Project\npath: acme/shop\ncreate: true\nvariables:\n  - &all {{key: A, value: x, protected: true}}\n  - {{<<: *all, key: B{rest}}}  # the same\n"
        )
    };
    let world = World::new(Profile::default(), seed(&[])).await;
    world.write(&text(""));
    world.converge("as it was declared").await;
    let variable = |key: &str| format!("/projects/acme%2Fshop/variables/{key}");
    let open = || Some(json!({"value": "x", "protected": false}));
    world.call("PUT", &variable("A"), open()).await;
    let (goals, _) = world.drift(&["acme/shop"]).await;
    let Err(AbsorbError::Refused(refused)) = world.absorb(&goals, AbsorbMode::OwnDocument) else {
        panic!()
    };
    let why =
        "the edit would also change the declaration of `acme/shop#variables`; edit it by hand";
    assert_eq!((refused[0].reason.as_str(), world.text()), (why, text("")));
    world.call("PUT", &variable("A"), Some(json!({"value": "x", "protected": true}))).await;
    world.call("PUT", &variable("B"), open()).await;
    let (goals, _) = world.drift(&["acme/shop#variables/B@*"]).await;
    world.absorb(&goals, AbsorbMode::OwnDocument).unwrap();
    assert_eq!(world.text(), text(", protected: false"));
    assert!(world.plan().await.steps.is_empty());
}
