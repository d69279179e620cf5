//! Live state as manifests: `check` passes, the plan is empty, the bytes are stable, and
//! applying them to an empty service gives the same state.

use std::{collections::BTreeSet, path::Path, sync::Mutex};

use serde_json::{Value as Json, json};
use undrift::{
    address::Glob,
    desired::{Container, Desired},
    diff::Reason,
    export::{self, Export, ExportBuilder, ExportSettings, SecretHandling},
    live::LiveContainer,
    sandbox::Profile,
};

use crate::{
    random,
    world::{Outcome, World, seed},
};

/// The settings of an export.
pub(crate) fn export_settings(
    values: SecretHandling,
) -> impl Fn(&undrift::live::Caller) -> ExportSettings {
    move |caller| ExportSettings {
        secret_handling: values,
        extracts_defaults: true,
        writes_create: values == SecretHandling::Env,
        writes_sandbox_seed: values == SecretHandling::Env,
        ..ExportSettings::for_caller(
            caller.clone(),
            undrift::release::DetectedRelease::Known(undrift::release::REFERENCE),
        )
    }
}

impl World {
    /// Everything at and below `paths`, as the holder of `token` sees it.
    pub(crate) async fn export_as(
        &self,
        token: &str,
        paths: &[&str],
        settings: impl Fn(&undrift::live::Caller) -> ExportSettings,
    ) -> (Export, Vec<String>) {
        let (observer, _) = self.connect_as(token, &Desired::default()).await.unwrap();
        let globs: Vec<_> = paths.iter().map(|path| Glob::for_paths(path).unwrap()).collect();
        let existing = observer.list_existing(&globs).await.unwrap();
        assert_eq!(existing.unmatched_globs, [""; 0]);
        let settings = settings(observer.caller());
        let containers = existing.containers.into_values();
        let containers: Vec<_> = containers
            .map(|(scope, path)| export::readable_container(scope, path, &settings))
            .collect();
        let builder = Mutex::new(ExportBuilder::new(settings, existing.pending_deletion));
        let each = async |container: &Container, live: LiveContainer| {
            let names =
                observer.read_names(ExportBuilder::referenced_ids(container.scope, &live)).await?;
            builder.lock().unwrap().add(container.scope, &container.path, &live, &names);
            Ok(())
        };
        observer.read_all(&containers, 16, each).await.unwrap();
        let mut builder = builder.into_inner().unwrap();
        let missing =
            builder.missing_reads().iter().map(|missing| format!("{missing:?}")).collect();
        (builder.finish(), missing)
    }

    /// All of `acme`, as root sees it.
    pub(crate) async fn export(&self, values: SecretHandling) -> Export {
        let token = self.sandbox.token().to_owned();
        let (written, missing) = self.export_as(&token, &["acme"], export_settings(values)).await;
        assert_eq!(missing, [""; 0]);
        written
    }

    /// Replaces the manifests by the export, and sets the values of its references.
    pub(crate) fn adopt(&mut self, written: &Export) {
        let root = self.root();
        std::fs::remove_dir_all(&root).unwrap();
        for file in &written.files {
            let path = root.join(&file.path);
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).unwrap();
            std::fs::write(path, &file.text).unwrap();
        }
        for (name, value) in &written.secrets {
            self.set_variable(name, value.expose());
        }
    }

    /// The export plans to nothing, and the only notes are about unverified fields.
    pub(crate) async fn assert_empty_plan(&mut self, written: &Export) {
        self.adopt(written);
        let plan = self.plan().await;
        let text = || join_files(written);
        assert!(plan.steps.is_empty(), "{:#?}\n{}", plan.steps, text());
        assert!(plan.problems.is_empty(), "{:#?}\n{}", plan.problems, text());
        assert!(plan.incomplete.is_empty(), "{:#?}\n{}", plan.incomplete, text());
        let said = plan
            .notes
            .iter()
            .filter(|note| !matches!(note.reason, Reason::CannotVerify | Reason::Archived));
        let notes: Vec<_> = said.collect();
        assert!(notes.is_empty(), "{notes:#?}\n{}", text());
    }
}

/// All files as one text.
pub(crate) fn join_files(written: &Export) -> String {
    let file = |file: &export::ExportedFile| format!("==> {}\n{}", file.path, file.text);
    written.files.iter().map(file).collect()
}

/// An organisation with an entry of every kind, and with entries that must not be exported.
fn organisation() -> Json {
    let mut seed = seed(&[
        json!({
            "path": "acme/shop",
            "settings": {
                "description": "yes", "visibility": "internal", "merge_method": "ff", "topics": ["b", "a"],
                "initialize_with_readme": true, "default_branch": "trunk",
                "container_expiration_policy_attributes": {"enabled": true, "keep_n": 5},
                "merge_commit_template": "%{title}\n\n%{description}\n",
            },
            "variables": [
                {"key": "PLAIN", "value": "on"},
                {"key": "TOKEN", "value": "canary-1"},
                {"key": "MASKED", "value": "canary-2-masked", "masked": true, "environment_scope": "prod/*"},
                {"key": "FILED", "value": "canary-3", "variable_type": "file"},
                {"key": "RANDOM", "value": "canary4xQ9ZrT2mW8vK1pL5sD7"},
            ],
            "members": [
                {"user": "alice", "access_level": "owner"},
                {"user": "bob", "access_level": 30, "expires_at": "2099-01-31"},
                {"user": "project_7_bot", "access_level": 40},
            ],
            "hooks": [
                {"url": "https://ci.example.org/x", "push_events": false, "tag_push_events": true, "token": "canary-5"},
                {"url": "https://chat.example.org/x?token=canary-6"},
            ],
            "push_rule": {"commit_message_regex": "^(feat|fix): ", "max_file_size": 5},
            "protected_branches": [{"name": "release/*", "allowed_to_push": [{"access_level": 30}]}],
        }),
        json!({"path": "acme/team/site", "settings": {"visibility": "private"}}),
        json!({"path": "acme/team/old", "settings": {"visibility": "private"}, "archived": true}),
    ]);
    seed["users"].as_array_mut().unwrap().push(json!({"username": "project_7_bot", "bot": true}));
    seed["groups"].as_array_mut().unwrap().extend([
        json!({"path": "acme/team", "visibility": "internal", "members": [{"user": "carol", "access_level": 40}]}),
        json!({"path": "acme/security"}),
    ]);
    seed
}

#[tokio::test]
async fn an_export_gives_an_empty_plan_and_has_no_secret() {
    for values in [SecretHandling::Plain, SecretHandling::None, SecretHandling::Env] {
        let mut world = World::new(Profile::default(), organisation()).await;
        world
            .call("POST", "/groups/acme/variables", Some(json!({"key": "R", "value": "eu"})))
            .await;
        let security = world.get("/groups/acme%2Fsecurity").await["id"].clone();
        let share = json!({"group_id": security, "group_access": 30});
        world.call("POST", "/projects/acme%2Fshop/share", Some(share)).await;
        let alice = world.get("/users?username=alice").await[0]["id"].clone();
        let rule = json!({
            "name": "Owners", "approvals_required": 1, "user_ids": [alice], "group_ids": [security],
        });
        world.call("POST", "/projects/acme%2Fshop/approval_rules", Some(rule)).await;
        let written = world.export(values).await;
        assert_eq!(written, world.export(values).await, "twice the same");
        let text = join_files(&written);
        assert!(!text.contains("canary"), "{text}");
        assert_eq!(text.contains("value: 'on'"), values != SecretHandling::None, "{text}");
        for expected in [
            "approval_rules:\n  - {name: Owners, approvals_required: 1, users: [alice], groups: [acme/security]}",
            "shares:\n  - {group: acme/security, group_access: developer}",
            match values {
                SecretHandling::Env => "path: acme/team/old\ncreate: true\narchived: true\n",
                _ => "path: acme/team/old\narchived: true\n",
            },
            "expires_at: '2099-01-31'",
            "description: 'yes'",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        for left_out in ["_bot", "user: root"] {
            assert!(!text.contains(left_out), "{left_out}: {text}");
        }
        let names: BTreeSet<_> = written.secrets.keys().map(String::as_str).collect();
        let expected = [
            "ACME_SHOP__CHAT_EXAMPLE_ORG",
            "ACME_SHOP__FILED",
            "ACME_SHOP__MASKED_PROD__",
            "ACME_SHOP__RANDOM",
            "ACME_SHOP__TOKEN",
        ];
        let expected = expected.into_iter().filter(|_| values == SecretHandling::Env);
        assert_eq!(names, expected.collect());
        world.assert_empty_plan(&written).await;
    }
}

/// Exports, applies to an empty service and exports again: the same bytes.
async fn round_trip(world: &mut World) {
    let written = world.export(SecretHandling::Env).await;
    world.assert_empty_plan(&written).await;
    let is_seed = |file: &&export::ExportedFile| file.path == "sandbox.yaml";
    let seed = &written.files.iter().find(is_seed).unwrap().text;
    let mut other = World::new(Profile::default(), serde_yaml::from_str(seed).unwrap()).await;
    other.adopt(&written);
    // A new project may inherit something from its group, which the next run removes.
    for _ in 0..2 {
        let Outcome { plan, applied, .. } = other.apply().await;
        assert!(plan.problems.is_empty(), "{:#?}\n{}", plan.problems, join_files(&written));
        let applied = applied.unwrap_or_else(|| panic!("{:#?}", plan.refusals));
        let failed: Vec<_> =
            applied.steps.iter().filter(|step| !step.outcome.is_success()).collect();
        assert!(failed.is_empty(), "{failed:#?}\n{}", join_files(&written));
    }
    let again = other.export(SecretHandling::Env).await;
    let (again_text, text) = (join_files(&again), join_files(&written));
    let diff = similar::TextDiff::from_lines(&text, &again_text);
    assert!(again == written, "{}{}", diff.unified_diff(), text);
}

/// Forty projects with a common policy, as in real organisations: most follow it completely, each
/// has something of its own, and some differ.
fn forty_projects() -> Json {
    let mut projects = Vec::new();
    for number in 0..40 {
        let team = ["web", "data", "ops"][number % 3];
        let mut project = json!({
            "path": format!("acme/{team}/service-{number:02}"),
            "settings": {
                "description": format!("Service number {number}"), "visibility": "internal", "merge_method": "ff",
                "squash_option": "default_on", "only_allow_merge_if_pipeline_succeeds": true,
                "only_allow_merge_if_all_discussions_are_resolved": true, "topics": [team],
                "ci_config_path": "pipeline.yml@acme/ci", "wiki_access_level": "disabled",
                "snippets_access_level": "disabled", "auto_devops_enabled": false,
                "merge_commit_template": "%{title}\n\nSee merge request %{reference}\n",
                "container_expiration_policy_attributes": {"enabled": true, "cadence": "7d", "keep_n": 5},
            },
            "variables": [{"key": "SERVICE", "value": format!("service-{number}")}, {"key": "TEAM", "value": team}],
            "members": [{"user": "alice", "access_level": 40}],
            "hooks": [
                {"url": "https://audit.example.org/x", "tag_push_events": true, "merge_requests_events": true},
                {"url": format!("https://{team}.example.org/x"), "push_events": false, "pipeline_events": true},
            ],
            "push_rule": {"commit_message_regex": "^(feat|fix): ", "prevent_secrets": true, "max_file_size": 20},
            "protected_branches": [
                {"name": "main", "allowed_to_push": [{"access_level": 0}], "allowed_to_merge": [{"access_level": 40}]},
                {"name": "release/*", "allowed_to_push": [{"access_level": 40}]},
            ],
        });
        match number {
            7 => project["settings"]["merge_method"] = "merge".into(),
            8 => drop(project["hooks"].as_array_mut().unwrap().remove(0)),
            9 => project["push_rule"] = json!(null),
            10 => project["push_rule"]["max_file_size"] = 0.into(),
            11 => project["protected_branches"] = json!([]),
            12 => project["archived"] = true.into(),
            13 => project["members"] = json!([{"user": "bob", "access_level": 30}]),
            14 => {
                project["settings"]["container_expiration_policy_attributes"] =
                    json!({"keep_n": 5});
            }
            _ => {}
        }
        projects.push(project);
    }
    seed(&projects)
}

#[tokio::test]
async fn values_common_to_forty_projects_are_in_defaults() {
    let mut world = World::new(Profile::default(), forty_projects()).await;
    let token = world.sandbox.token().to_owned();
    let full_settings = |caller: &undrift::live::Caller| ExportSettings {
        extracts_defaults: false,
        ..export_settings(SecretHandling::Plain)(caller)
    };
    let (full, _) = world.export_as(&token, &["acme"], full_settings).await;
    world.assert_empty_plan(&full).await;
    let short = world.export(SecretHandling::Plain).await;
    world.assert_empty_plan(&short).await;
    let size = |written: &Export| (join_files(written).lines().count(), join_files(written).len());
    let ((lines, bytes), (full_lines, full_bytes)) = (size(&short), size(&full));
    // Measured at first: 341 of 1,511 lines, and 9 of 50 kilobytes.
    let sizes = format!("{lines} of {full_lines} lines, {bytes} of {full_bytes} bytes");
    assert!(lines * 3 <= full_lines && bytes * 3 <= full_bytes, "{sizes}\n{}", join_files(&short));
    round_trip(&mut world).await;
}

#[tokio::test]
async fn an_exported_organisation_can_be_built_from_nothing() {
    let mut world = World::new(Profile::default(), organisation()).await;
    round_trip(&mut world).await;
}

#[test]
fn any_export_gives_an_empty_plan_and_builds_the_same_state() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    random::cases(8)
        .run(&(random::group(), random::project_sections()), |(group, declared)| {
            runtime.block_on(async {
                let mut world = random::world().await;
                world.declare(&random::documents(group.clone(), declared.clone()));
                world.converge("before the export").await;
                round_trip(&mut world).await;
            });
            Ok(())
        })
        .unwrap();
}

/// Values that the service gives to new objects by itself are not written.
#[tokio::test]
async fn presets_of_the_service_are_left_out() {
    let mut seed =
        seed(&[json!({"path": "acme/neo", "settings": {"initialize_with_readme": true}})]);
    seed["groups"].as_array_mut().unwrap().push(json!({"path": "acme/team"}));
    let world = World::new(Profile::default(), seed).await;
    for (path, body) in [
        ("projects/acme%2Fneo/variables", json!({"key": "A", "value": "b"})),
        ("projects/acme%2Fneo/hooks", json!({"url": "https://a.example.org/"})),
        ("projects/acme%2Fneo/push_rule", json!({"deny_delete_tag": true})),
        ("projects/acme%2Fneo/labels", json!({"name": "a", "color": "#FF0000"})),
        (
            "projects/acme%2Fneo/approval_rules",
            json!({"name": "a", "approvals_required": 1, "rule_type": "regular"}),
        ),
        ("projects/acme%2Fneo/protected_branches", json!({"name": "b"})),
        ("groups/acme%2Fteam/variables", json!({"key": "A", "value": "b"})),
        ("groups/acme%2Fteam/hooks", json!({"url": "https://a.example.org/"})),
        ("groups/acme%2Fteam/push_rule", json!({"deny_delete_tag": true})),
    ] {
        let response = world.call("POST", &format!("/{path}"), Some(body)).await;
        assert!(response["message"].is_null() && response["error"].is_null(), "{path}: {response}");
    }
    let written = world.export(SecretHandling::Plain).await;
    let text = join_files(&written);
    let documents: Vec<&str> = text.split("kind: ").skip(1).collect();
    let body = |path: &str| {
        let found = documents.iter().find(|text| text.contains(&format!("path: {path}\n")));
        let text = found.unwrap().split(&format!("path: {path}\n")).nth(1).unwrap();
        text.split("---\n").next().unwrap().split("==> ").next().unwrap()
    };
    let both = "variables:\n  - {key: A, value: b}\n";
    let hooks = "hooks:\n  - {url: https://a.example.org/}\npush_rule: {deny_delete_tag: true}\n";
    assert_eq!(
        body("acme/team"),
        format!(
            "settings: {{visibility: public, project_creation_level: developer, default_branch_protection: 2}}\n{both}{hooks}"
        )
    );
    let protected = |name: &str| {
        format!(
            "  - name: {name}\n    allowed_to_push: [{{access_level: maintainer}}]\n    allowed_to_merge: [{{access_level: maintainer}}]\n"
        )
    };
    assert_eq!(
        body("acme/neo"),
        format!(
            "settings: {{visibility: private, auto_devops_enabled: true, shared_runners_enabled: true}}\n{both}protected_branches:\n{}{}approval_rules:\n  - {{name: a, approvals_required: 1}}\n{hooks}labels:\n  - {{name: a, color: '#FF0000'}}\n",
            protected("b"),
            protected("main"),
        )
    );
}

/// The same at releases that have more settings.
#[tokio::test]
async fn presets_of_later_releases_are_left_out() {
    for release in ["15.8", "16.9", "17.10", "18.2", "18.9"] {
        let release = release.parse().unwrap();
        let mut seed = seed(&[json!({"path": "acme/neo"})]);
        seed["groups"].as_array_mut().unwrap().push(json!({"path": "acme/team"}));
        let world = World::new(Profile::default().with_release(release), seed).await;
        let entries = [
            ("variables", json!({"key": "A", "value": "b"})),
            ("hooks", json!({"url": "https://a.example.org/"})),
            ("push_rule", json!({"deny_delete_tag": true})),
        ];
        for path in ["projects/acme%2Fneo", "groups/acme%2Fteam"] {
            for (section, body) in &entries {
                let at = format!("/{path}/{section}");
                let response = world.call("POST", &at, Some(body.clone())).await;
                assert!(response["message"].is_null() && response["error"].is_null(), "{response}");
            }
        }
        let token = world.sandbox.token().to_owned();
        let how = |caller: &undrift::live::Caller| {
            ExportSettings::for_caller(
                caller.clone(),
                undrift::release::DetectedRelease::Known(release),
            )
        };
        let (written, missing) = world.export_as(&token, &["acme"], how).await;
        assert_eq!(missing, [""; 0]);
        let said = written.files.iter().flat_map(|file| file.text.split("---\n"));
        let said: Vec<_> = said.map(|text| serde_yaml::from_str::<Json>(text).unwrap()).collect();
        for (section, body) in &entries {
            let of = |document: &&Json| !document[section].is_null();
            assert_eq!(said.iter().filter(of).count(), 2, "{section} {release}");
            for document in said.iter().filter(of) {
                let own = &document[section];
                assert_eq!(own.as_array().map_or(own, |entries| &entries[0]), body, "{release}");
            }
        }
        let said = said.iter().filter_map(|document| document["settings"].as_object().cloned());
        let names: BTreeSet<String> =
            said.flat_map(|settings| settings.into_iter().map(|it| it.0)).collect();
        // Values from the installation or a parent group are written.
        let inherited_fields = [
            "auto_devops_enabled",
            "ci_pipeline_variables_minimum_override_role",
            "default_branch_protection",
            "project_creation_level",
            "shared_runners_enabled",
            "visibility",
        ];
        let others: Vec<_> =
            names.iter().filter(|name| !inherited_fields.contains(&name.as_str())).collect();
        assert_eq!(others, [""; 0], "{release}");
    }
}

/// Somebody raised them in the group later. The service does not add such a member.
#[tokio::test]
async fn members_below_the_inherited_level_are_left_out_of_a_rehearsal() {
    let member = |user: &str, level: &str| json!({"user": user, "access_level": level});
    let mut seed = seed(&[json!({
        "path": "acme/shop",
        "members": [member("bob", "developer"), member("carol", "developer")],
    })]);
    let above = [member("bob", "maintainer"), member("carol", "developer")];
    seed["groups"][0]["members"].as_array_mut().unwrap().extend(above);
    let world = World::new(Profile::default(), seed).await;
    let members = |written: &Export| {
        let text = join_files(written);
        let shop = text.split("path: acme/shop\n").nth(1).unwrap().to_owned();
        ["bob", "carol"].map(|user| shop.contains(&format!("user: {user},")))
    };
    assert_eq!(members(&world.export(SecretHandling::Plain).await), [true, true]);
    let written = world.export(SecretHandling::Env).await;
    assert_eq!(members(&written), [false, true]);
    let note = "left out, because their level is below the inherited one: 1 member";
    assert!(written.notes.iter().any(|said| said == note), "{:?}", written.notes);
    let seed = &written.files.iter().find(|file| file.path == "sandbox.yaml").unwrap().text;
    let mut copy = World::new(Profile::default(), serde_yaml::from_str(seed).unwrap()).await;
    copy.adopt(&written);
    let plan = copy.plan().await;
    assert!(plan.problems.is_empty() && !plan.steps.is_empty(), "{:#?}", plan.problems);
}

/// Set fields without a manifest field are counted: they are lost when applied to a new group.
#[tokio::test]
async fn fields_that_no_manifest_has_are_counted() {
    let world = World::new(Profile::default().with_release(crate::world::NEWEST), seed(&[])).await;
    for (url, strategy) in [("a", "regex"), ("b", "all_branches"), ("c", "wildcard")] {
        let url = format!("https://{url}.example.org");
        let hook = json!({"url": url, "branch_filter_strategy": strategy});
        world.call("POST", "/groups/acme/hooks", Some(hook)).await;
    }
    let written = world.export(SecretHandling::Plain).await;
    let note = "set, but left out, because manifests have no such field: `hooks.branch_filter_strategy` (2 entries)";
    assert!(written.notes.iter().any(|own| own == note), "{:?}", written.notes);
}

#[tokio::test]
async fn fields_hidden_by_a_role_are_reported_and_left_out() {
    let mut seed = organisation();
    let users = seed["users"].as_array_mut().unwrap();
    users.push(json!({"username": "dev", "token": "dev-token"}));
    let members = seed["groups"][0]["members"].as_array_mut().unwrap();
    members.push(json!({"user": "dev", "access_level": 30}));
    let mut world = World::new(Profile::default(), seed).await;
    let (written, missing) =
        world.export_as("dev-token", &["acme"], export_settings(SecretHandling::Plain)).await;
    assert_eq!(missing, [""; 0], "what is hidden is left out");
    let text = join_files(&written);
    for hidden in ["# Not exported: variables", "# Not exported: hooks"] {
        assert!(text.contains(hidden), "{hidden}: {text}");
    }
    assert!(!text.contains("user: dev,") && !text.contains("\nvariables:"), "{text}");
    world.adopt(&written);
    let desired = world.desired();
    let (observer, settings) = world.connect_as("dev-token", &desired).await.unwrap();
    let plan = world.plan_with(&observer, &desired, &settings).await.unwrap();
    assert!(plan.steps.is_empty() && plan.incomplete.is_empty(), "{plan:#?}");
}

/// A glob over everything excludes them.
#[tokio::test]
async fn projects_in_personal_namespaces_are_counted_and_not_exported() {
    let mut seed = organisation();
    let projects = seed["projects"].as_array_mut().unwrap();
    projects.extend(["alice/tool", "alice/toy", "bob/tool"].map(|path| json!({"path": path})));
    let world = World::new(Profile::default(), seed).await;
    let (observer, _) = world.connect(&Desired::default()).await.unwrap();
    for (glob, personal, count) in [("**", 3, 6), ("*/tool", 2, 0), ("acme", 0, 6), ("alice", 0, 2)]
    {
        let existing = observer.list_existing(&[Glob::for_paths(glob).unwrap()]).await.unwrap();
        assert_eq!(
            (existing.personal_project_count, existing.containers.len()),
            (personal, count),
            "{glob}"
        );
    }
}

#[tokio::test]
async fn existing_containers_are_found_by_path() {
    let world = World::new(Profile::default(), organisation()).await;
    let (observer, _) = world.connect(&Desired::default()).await.unwrap();
    let find = async |globs: &[&str]| {
        let globs: Vec<_> = globs.iter().map(|glob| Glob::for_paths(glob).unwrap()).collect();
        let existing = observer.list_existing(&globs).await.unwrap();
        let found: Vec<_> =
            existing.containers.into_values().map(|(_, path)| path.to_string()).collect();
        (found.join(" "), existing.unmatched_globs.join(" "))
    };
    let all = "acme acme/security acme/shop acme/team acme/team/old acme/team/site";
    for (globs, expected, unmatched) in [
        (&["acme"][..], all, ""),
        (&["**"], all, ""),
        (&["ACME", "acme/team"], all, ""),
        (&["acme/team"], "acme/team acme/team/old acme/team/site", ""),
        (&["acme/t*"], "acme/team acme/team/old acme/team/site", ""),
        (&["acme/shop"], "acme/shop", ""),
        (&["*/s*"], "acme/security acme/shop", ""),
        (&["acme/shop", "acme/gone", "other/**"], "acme/shop", "acme/gone other/**"),
    ] {
        assert_eq!(find(globs).await, (expected.into(), unmatched.into()), "{globs:?}");
    }
}

/// The service makes a rule of the number, and `check` refuses both.
#[tokio::test]
async fn a_number_of_approvals_is_exported_as_its_rule() {
    let mut world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
    let namespace = world.get("/groups/acme").await["id"].clone();
    let number = json!({"approvals_before_merge": 2});
    world.call("PUT", "/projects/acme%2Fshop", Some(number)).await;
    let new = json!({"name": "docs", "path": "docs", "namespace_id": namespace, "approvals_before_merge": 2});
    world.call("POST", "/projects", Some(new)).await;
    let written = world.export(SecretHandling::Plain).await;
    let text = join_files(&written);
    assert!(text.contains("rule_type: any_approver"), "{text}");
    assert!(!text.contains("approvals_before_merge"), "{text}");
    world.assert_empty_plan(&written).await;
}
