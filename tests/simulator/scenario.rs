//! Live states and declarations: small organisations, each for one task of a run.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value as Json, json};
use undrift::{
    desired::Desired,
    manifest,
    sandbox::{Model, ModelImage, Seed, ServiceOptions},
};

/// The token of the administrator, which no output may contain.
pub(crate) const TOKEN: &str = "root-token-canary-0123456789";
/// The token of a maintainer.
pub(crate) const MAINTAINER: &str = "bobs-token-canary-0123456789";

/// Secrets in manifests. No output may contain one of them.
pub(crate) const SECRETS: [(&str, &str); 6] = [
    ("HOOK_TOKEN", "hook-token-canary-1234"),
    ("VALUE", "value-canary-56789-abcdef"),
    ("OTHER", "other-canary-24680-ghijkl"),
    ("MIRROR_URL", "https://bot:mirror-canary-13579@git.example.org/shop.git"),
    ("CHAT_URL", "https://chat.example.org/hooks/path-canary"),
    ("MULTILINE", "first-line-canary\nsecond-line-canary\n"),
];

/// All users, in the order of their ids, which begin at 1.
pub(crate) const USERS: [&str; 5] = ["root", "alice", "bob", "carol", "dave"];

/// An undeclared live value that no output may contain.
pub(crate) const LIVE_VALUE: &str = "live-value-canary-7";

/// A live state and declarations.
pub(crate) struct Scenario {
    pub(crate) name: Cow<'static, str>,
    tier: &'static str,
    /// Groups in addition to those of every scenario.
    groups: Vec<Json>,
    projects: Vec<Json>,
    /// Groups that the first project is shared with, each with its level.
    shares: Vec<(&'static str, u8)>,
    /// Further objects to add, each with the path of its list.
    added: Vec<(&'static str, Json)>,
    /// Protections of the first project that name users added only now.
    protections: Vec<Json>,
    documents: Vec<Json>,
    /// The acknowledgements, as on the command line.
    pub(crate) acknowledged: &'static [&'static str],
    pub(crate) resend: &'static [&'static str],
    pub(crate) token: &'static str,
    /// Duration of forks and imports.
    pub(crate) import_delay: Duration,
}

/// A scenario with everything that its runs start from.
pub(crate) struct Prepared {
    pub(crate) scenario: Scenario,
    pub(crate) desired: Desired,
    pub(crate) image: ModelImage,
    folder: tempfile::TempDir,
}

impl Scenario {
    pub(crate) fn new(
        name: impl Into<Cow<'static, str>>,
        projects: &[Json],
        documents: &[Json],
    ) -> Self {
        Self {
            name: name.into(),
            tier: "ultimate",
            groups: Vec::new(),
            projects: projects.to_vec(),
            shares: Vec::new(),
            added: Vec::new(),
            protections: Vec::new(),
            documents: documents.to_vec(),
            acknowledged: &["protection:**", "visibility:**"],
            resend: &[],
            token: TOKEN,
            import_delay: Duration::ZERO,
        }
    }

    fn seed(&self) -> Json {
        let user = |name: &&str| match *name {
            "bob" => json!({"username": name, "token": MAINTAINER}),
            _ => json!({"username": name}),
        };
        // The service has its own administrator.
        let users: Vec<_> = USERS[1..].iter().map(user).collect();
        let members =
            json!([{"user": "root", "access_level": 50}, {"user": "bob", "access_level": 40}]);
        let mut groups = vec![
            json!({"path": "acme", "visibility": "public", "members": members}),
            json!({"path": "beta", "visibility": "public"}),
        ];
        groups.extend(self.groups.iter().cloned());
        json!({
            "tier": self.tier,
            "users": users,
            "groups": groups,
            "projects": self.projects,
        })
    }

    /// Adds what a seed cannot express.
    fn add_objects(&self, model: &Model) {
        let call = |method: &str, path: &str, body: &Json| {
            let request = http::Request::builder()
                .method(method)
                .uri(format!("/api/v4{path}"))
                .header("private-token", TOKEN)
                .header("content-type", "application/json");
            let response = model.answer(request.body(body.to_string().into()).unwrap());
            assert!(response.status().is_success(), "{path} {body}: {:?}", response.body());
            serde_json::from_slice::<Json>(response.body()).unwrap()
        };
        let id = |group: &str| call("GET", &format!("/groups/{group}"), &Json::Null)["id"].clone();
        for (group, level) in &self.shares {
            let body = json!({"group_id": id(group), "group_access": level});
            call("POST", "/projects/1/share", &body);
        }
        for (list, body) in &self.added {
            call("POST", list, body);
        }
        for protection in &self.protections {
            let mut body = protection.clone();
            for list in ["allowed_to_push", "allowed_to_merge"] {
                let rows = body.get_mut(list).and_then(Json::as_array_mut);
                for row in rows.into_iter().flatten() {
                    if let Some(group) = row["group"].as_str() {
                        *row = json!({"group_id": id(group)});
                    }
                }
            }
            call("POST", "/projects/1/protected_branches", &body);
        }
    }

    fn tier(self, tier: &'static str) -> Self {
        Self { tier, ..self }
    }

    pub(crate) fn group(self, path: &str, members: Json) -> Self {
        self.group_seen_by(path, "public", members)
    }

    fn group_seen_by(mut self, path: &str, visibility: &str, members: Json) -> Self {
        self.groups.push(json!({"path": path, "visibility": visibility, "members": members}));
        self
    }

    fn added(mut self, list: &'static str, body: Json) -> Self {
        self.added.push((list, body));
        self
    }

    fn shared(mut self, group: &'static str, level: u8) -> Self {
        self.shares.push((group, level));
        self
    }

    fn protected(mut self, protection: Json) -> Self {
        self.protections.push(protection);
        self
    }

    fn importing_for(self, seconds: u64) -> Self {
        Self { import_delay: Duration::from_secs(seconds), ..self }
    }

    pub(crate) fn acknowledging(self, acknowledged: &'static [&'static str]) -> Self {
        Self { acknowledged, ..self }
    }

    pub(crate) fn prepare(self) -> Arc<Prepared> {
        Arc::new(self.prepared().unwrap_or_else(|refused| panic!("{refused}")))
    }

    /// `None` if `check` refuses its documents.
    pub(crate) fn try_prepare(self) -> Option<Prepared> {
        self.prepared().inspect_err(|refused| print_refusal(refused)).ok()
    }

    fn prepared(self) -> Result<Prepared, String> {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<_> = self.documents.iter().map(Json::to_string).collect();
        std::fs::write(folder.path().join("all.yaml"), text.join("\n---\n")).unwrap();
        std::fs::write(folder.path().join("logo.png"), [0x89, b'P', b'N', b'G', 13, 10, 26, 10])
            .unwrap();
        let loaded = manifest::load(
            folder.path(),
            &manifest::LoadEnvironment {
                working_folder: folder.path().into(),
                today: jiff::civil::date(2030, 1, 1),
                ..manifest::LoadEnvironment::for_process()
            },
        );
        let Some(desired) = loaded.desired else {
            return Err(loaded.diagnostics.render(undrift::diagnostic::TextStyle::default()));
        };
        let mut model =
            Model::new(&Seed::from_json(self.seed()).unwrap(), TOKEN, ServiceOptions::default())
                .unwrap();
        self.add_objects(&model);
        let image = model.take_image().unwrap();
        Ok(Prepared { scenario: self, desired, image, folder })
    }
}

impl Prepared {
    pub(crate) fn root(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn environment() -> BTreeMap<String, String> {
        SECRETS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// The declaration of a project, as written.
    pub(crate) fn documents(&self) -> &[Json] {
        &self.scenario.documents
    }
}

/// Prints why an estate is refused (`UNDRIFT_VERBOSE=1`).
fn print_refusal(refused: &str) {
    if std::env::var_os("UNDRIFT_VERBOSE").is_some() {
        println!("{refused}");
    }
}

/// An existing project.
fn live_project(sections: Json) -> Json {
    with_path("acme/shop", sections)
}

fn with_path(path: &str, mut sections: Json) -> Json {
    sections["path"] = path.into();
    sections
}

/// A declared project.
fn declared(sections: Json) -> Json {
    declared_at("acme/shop", sections)
}

fn declared_at(path: &str, sections: Json) -> Json {
    let mut document = json!({"kind": "Project", "path": path});
    document.as_object_mut().unwrap().extend(sections.as_object().unwrap().clone());
    document
}

fn variable(key: &str, value: &str) -> Json {
    json!({"key": key, "value": value})
}

/// The parts of a small project with all kinds.
fn all_kinds() -> Json {
    json!({
        "settings": {"description": "new", "topics": ["a", "b"], "visibility": "private"},
        "variables": [variable("A", "new-value-1234"), {"key": "S", "value": {"env": "VALUE"}, "masked": true}],
        "members": [{"user": "alice", "access_level": "developer"}],
        "hooks": [{"name": "ci", "url": "https://ci.example.org/x", "push_events": true, "token": {"env": "HOOK_TOKEN"}}],
        "push_rule": {"commit_message_regex": "^b"},
    })
}

/// Every scenario; the five smallest come first.
pub(crate) fn all_scenarios() -> Vec<Scenario> {
    let hook = |url: &str| json!({"url": url});
    let hooks = |range: std::ops::Range<usize>| {
        range.map(|i| hook(&format!("https://h{i:02}.example.org/"))).collect::<Vec<_>>()
    };
    let variables = |range: std::ops::Range<usize>| {
        range.map(|i| variable(&format!("K{i:03}"), "v")).collect::<Vec<_>>()
    };
    let create = |mut sections: Json| {
        sections["create"] = true.into();
        sections
    };
    let archived = |mut sections: Json| {
        sections["archived"] = true.into();
        sections
    };
    let live = json!({"key": "A", "value": LIVE_VALUE, "masked": true});
    let new = Scenario::new;
    let mut all = vec![
        new(
            "one-hook",
            &[live_project(json!({}))],
            &[declared(
                json!({"hooks": [{"url": "https://h.example.org/x", "token": {"env": "HOOK_TOKEN"}}]}),
            )],
        ),
        new(
            "one-variable",
            &[live_project(json!({}))],
            &[declared(json!({"variables": [{"key": "A", "value": {"env": "VALUE"}}]}))],
        ),
        new(
            "one-setting",
            &[live_project(json!({"settings": {"description": "old"}}))],
            &[declared(json!({"settings": {"description": "new"}}))],
        ),
        new(
            "one-flag",
            &[live_project(json!({"variables": [live]}))],
            &[declared(json!({"variables": [{"key": "A", "protected": true}]}))],
        ),
        new(
            "archive",
            &[live_project(json!({}))],
            &[declared(json!({"settings": {"description": "last words"}, "archived": true}))],
        ),
        new(
            "nothing",
            &[live_project(json!({"variables": [variable("A", "v")]}))],
            &[declared(json!({"variables": [variable("A", "v")]}))],
        ),
        new(
            "member-add",
            &[live_project(json!({}))],
            &[declared(json!({"members": [{"user": "alice", "access_level": "developer"}]}))],
        ),
        new(
            "member-change",
            &[live_project(
                json!({"members": [{"user": "alice", "access_level": 30, "expires_at": "2099-01-31"}]}),
            )],
            &[declared(json!({"members": [{"user": "alice", "access_level": "maintainer"}]}))],
        ),
        new(
            "member-remove",
            &[live_project(
                json!({"members": [{"user": "alice", "access_level": 30}, {"user": "carol", "access_level": 20}]}),
            )],
            &[declared(json!({"members": [{"user": "alice", "state": "absent"}]}))],
        ),
        new(
            "push-rule-add",
            &[live_project(json!({}))],
            &[declared(json!({"push_rule": {"commit_message_regex": "^b", "max_file_size": 5}}))],
        ),
        new(
            "push-rule-change",
            &[live_project(json!({"push_rule": {"commit_message_regex": "^a"}}))],
            &[declared(json!({"push_rule": {"commit_message_regex": "^b"}}))],
        ),
        new(
            "push-rule-remove",
            &[live_project(json!({"push_rule": {"member_check": true}}))],
            &[declared(json!({"push_rule": null}))],
        ),
        new(
            "unarchive",
            &[live_project(json!({"archived": true}))],
            &[declared(json!({"archived": false, "settings": {"description": "new"}}))],
        ),
        new(
            "create",
            &[],
            &[declared(create(
                json!({"settings": {"description": "new", "visibility": "private"}}),
            ))],
        ),
        new("create-all", &[], &[declared(create(all_kinds()))]),
        new(
            "create-and-archive",
            &[],
            &[declared(archived(create(
                json!({"settings": {"description": "old"}, "variables": [variable("A", "v")]}),
            )))],
        ),
        new(
            "create-for-user",
            &[],
            &[declared_at(
                "alice/own",
                create(
                    json!({"settings": {"merge_pipelines_enabled": true, "merge_trains_enabled": true, "ci_default_git_depth": 7}}),
                ),
            )],
        ),
        new(
            "create-two",
            &[],
            &[
                declared(create(all_kinds())),
                declared_at("beta/site", create(json!({"variables": [variable("B", "v")]}))),
            ],
        ),
        new(
            "change-all",
            &[live_project(
                json!({"variables": [live], "push_rule": {"commit_message_regex": "^a"}}),
            )],
            &[declared(all_kinds())],
        ),
        new(
            "change-all-and-archive",
            &[live_project(json!({"variables": [variable("A", "old")]}))],
            &[declared(archived(all_kinds()))],
        ),
        new(
            "remove-some",
            &[live_project(json!({
                "variables": variables(0..4),
                "hooks": hooks(0..4),
                "members": [{"user": "carol", "access_level": 20}, {"user": "alice", "access_level": 20}],
            }))],
            &[declared(json!({
                "variables": [{"key": "K000", "state": "absent"}, variable("K001", "new")],
                "hooks": [{"url": "https://h00.example.org/", "state": "absent"}],
                "members": [{"user": "carol", "state": "absent"}],
            }))],
        ),
        new(
            "remove-unlisted",
            &[live_project(json!({"variables": variables(0..6), "hooks": hooks(0..6)}))],
            &[declared(json!({
                "variables": variables(0..5),
                "hooks": hooks(0..5),
                "unlisted": {"variables": "delete", "hooks": "delete"},
            }))],
        ),
        new(
            "scopes",
            &[live_project(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "value": "old"}, {"key": "A", "environment_scope": "test", "value": LIVE_VALUE}]}),
            )],
            &[declared(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "value": "new"}, {"key": "A", "environment_scope": "test", "protected": true}, {"key": "A", "value": "all"}]}),
            )],
        ),
        new(
            "scope-moved",
            &[live_project(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "value": "v"}, variable("B", "v"), variable("C", "v")]}),
            )],
            &[declared(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "state": "absent"}, variable("A", "v")]}),
            )],
        ),
        new(
            "twenty-hooks",
            &[live_project(json!({"hooks": hooks(0..18)}))],
            &[declared(json!({"hooks": hooks(0..20)}))],
        ),
        new(
            "two-pages",
            &[live_project(json!({"variables": variables(0..110)}))],
            &[declared(json!({"variables": variables(0..112)}))],
        ),
        new(
            "hook-moved",
            &[live_project(
                json!({"hooks": [{"url": "https://old.example.org/x", "push_events": true}]}),
            )],
            &[declared(
                json!({"hooks": [{"name": "ci", "url": "https://new.example.org/x", "previously": ["https://old.example.org/x"], "token": {"env": "HOOK_TOKEN"}}]}),
            )],
        ),
        new(
            "secret-url",
            &[live_project(json!({"hooks": hooks(0..1)}))],
            &[declared(json!({"hooks": [{"url": {"env": "CHAT_URL"}, "push_events": true}]}))],
        ),
        new(
            "hook-copies",
            &[live_project(json!({"hooks": hooks(0..6)}))],
            &[declared(
                json!({"hooks": [{"url": "https://h00.example.org/", "issues_events": true}]}),
            )],
        ),
        new(
            "picture",
            &[live_project(json!({}))],
            &[declared(
                json!({"settings": {"avatar": {"file": "logo.png"}, "description": "new"}}),
            )],
        ),
        new(
            "file-variable",
            &[live_project(json!({}))],
            &[declared(
                json!({"variables": [{"key": "F", "value": {"env": "MULTILINE"}, "variable_type": "file"}]}),
            )],
        ),
        new(
            "three-projects",
            &[
                live_project(json!({})),
                with_path("acme/site", json!({})),
                with_path("beta/tool", json!({})),
            ],
            &[
                declared(json!({"settings": {"description": "new"}, "hooks": hooks(0..1)})),
                declared_at("acme/site", json!({"variables": variables(0..2)})),
                declared_at(
                    "beta/tool",
                    json!({"members": [{"user": "dave", "access_level": "guest"}]}),
                ),
            ],
        ),
        new(
            "missing",
            &[live_project(json!({}))],
            &[
                declared(json!({"settings": {"description": "new"}})),
                declared_at("acme/none", json!({"variables": []})),
            ],
        ),
    ];
    let mut resend = Scenario::new(
        "resend",
        &[live_project(json!({"hooks": [{"url": "https://h.example.org/x", "token": "old"}]}))],
        &[declared(
            json!({"hooks": [{"url": "https://h.example.org/x", "token": {"env": "HOOK_TOKEN"}}]}),
        )],
    );
    resend.resend = &["**#hooks"];
    let mirror = json!([{"url": {"env": "MIRROR_URL"}, "enabled": true}]);
    let mut rotation = Scenario::new(
        "resend-mirror",
        &[live_project(json!({}))],
        &[declared(json!({"remote_mirrors": mirror}))],
    )
    .added(
        "/projects/1/remote_mirrors",
        json!({
            "url": format!("https://bot:{LIVE_VALUE}@git.example.org/shop.git"), "enabled": true,
            // Without this field in responses, undrift replaces no mirror.
            "keep_divergent_refs": false,
        }),
    );
    rotation.resend = &["**#remote_mirrors"];
    let schedule =
        json!([{"description": "nightly", "ref": "refs/heads/main", "cron": "0 1 * * *"}]);
    let repeatable = Scenario::new(
        "repeatable",
        &[live_project(json!({}))],
        &[declared(json!({
            "remote_mirrors": mirror,
            "pipeline_schedules": schedule,
            "pipeline_schedule_variables": [{"schedule": "nightly", "key": "A", "value": "x"}],
        }))],
    );
    let mut maintainer = Scenario::new(
        "maintainer",
        &[live_project(json!({"variables": [live]}))],
        &[declared(
            json!({"variables": [variable("B", "v"), {"key": "A", "protected": true}], "hooks": hooks(0..1)}),
        )],
    );
    maintainer.token = MAINTAINER;
    all.extend([resend, rotation, repeatable, maintainer]);
    let later = [
        group_members(),
        group_shares(),
        protections(),
        opening_steps(),
        new_groups(),
        group_parts(),
        visibility_changes(),
        moves(),
        project_sources(),
        secrets(),
        takeover(),
    ];
    let later = later.into_iter().flatten();
    let acknowledged = &["protection:**", "visibility:**", "transfer:**", "deletion:acme/shop"];
    all.extend(later.map(|scenario| scenario.acknowledging(acknowledged)));
    all
}

fn group(path: &str, members: &Json) -> Json {
    json!({"kind": "Group", "path": path, "members": members})
}

fn member(user: &str, level: &str) -> Json {
    json!({"user": user, "access_level": level})
}

/// Members of groups, and a rule below that names one.
fn group_members() -> Vec<Scenario> {
    let new = Scenario::new;
    let owner = member("alice", "owner");
    let rule = json!({"name": "main", "allowed_to_push": [{"user": "carol"}]});
    vec![
        new(
            "group-members",
            &[live_project(json!({}))],
            &[group(
                "team",
                &json!([member("carol", "developer"), member("bob", "maintainer"), {"user": "dave", "state": "absent"}]),
            )],
        )
        .group(
            "team",
            json!([
                owner,
                {"user": "bob", "access_level": "developer", "expires_at": "2099-01-31"},
                member("dave", "guest"),
            ]),
        ),
        new(
            "group-owner-swap",
            &[live_project(json!({}))],
            &[group("team", &json!([{"user": "alice", "state": "absent"}, member("carol", "owner")]))],
        )
        .group("team", json!([owner])),
        new(
            "group-member-and-rule",
            &[live_project(json!({}))],
            &[
                declared(json!({"protected_branches": [rule], "variables": [variable("A", "v")]})),
                group("acme", &json!([member("carol", "developer")])),
            ],
        ),
        new(
            "group-member-and-rules",
            &[live_project(json!({"protected_branches": [{"name": "main"}]})), with_path("acme/site", json!({}))],
            &[
                declared(json!({"protected_branches": [rule]})),
                group("acme", &json!([member("carol", "developer"), member("dave", "guest")])),
                declared_at("acme/site", json!({"protected_branches": [rule]})),
            ],
        ),
    ]
}

/// Groups that a project is shared with, and rules that name them.
fn group_shares() -> Vec<Scenario> {
    let new = |name, sections| {
        let scenario = Scenario::new(name, &[live_project(json!({}))], &[declared(sections)]);
        scenario.group("leads", json!([])).group("others", json!([]))
    };
    let share = |level: &str| json!({"group": "leads", "group_access": level});
    let rule = json!({"name": "main", "allowed_to_push": [{"group": "leads"}, {"access_level": "maintainer"}]});
    let rule_there =
        json!({"name": "main", "allowed_to_push": [{"group": "leads"}, {"access_level": 40}]});
    vec![
        new("share-add", json!({"shares": [share("developer")]})),
        new("share-replace", json!({"shares": [share("maintainer")]}))
            .shared("leads", 30)
            .shared("others", 20),
        new("share-remove", json!({"shares": [{"group": "leads", "state": "absent"}]}))
            .shared("others", 20)
            .shared("leads", 30),
        new(
            "share-until",
            json!({"shares": [{"group": "leads", "group_access": "developer", "expires_at": "2099-01-31"}]}),
        )
        .shared("leads", 30),
        new("share-and-rule", json!({"shares": [share("developer")], "protected_branches": [rule]})),
        new(
            "share-replace-and-rule",
            json!({"shares": [share("maintainer")], "protected_branches": [rule]}),
        )
        .shared("leads", 30)
        .protected(rule_there),
        new(
            "share-replace-and-new-rule",
            json!({"shares": [share("maintainer")], "protected_branches": [
                {"name": "main", "allowed_to_merge": [{"group": "leads"}], "allow_force_push": false},
                {"name": "release/*", "allowed_to_push": [{"group": "leads"}]},
            ]}),
        )
        .shared("leads", 30)
        .protected(json!({"name": "main", "allow_force_push": true})),
    ]
}

/// Protected branches.
fn protections() -> Vec<Scenario> {
    let new =
        |name, sections| Scenario::new(name, &[live_project(json!({}))], &[declared(sections)]);
    let level = |level: &str| json!([{"access_level": level}]);
    let main =
        |push: Json| json!({"protected_branches": [{"name": "main", "allowed_to_push": push}]});
    let branch = |name: &str, push: u8| json!({"name": name, "push_access_level": push});
    let of_a_new_project = json!({
        "create": {"initialize_with_readme": true},
        "protected_branches": [{"name": "main", "allowed_to_push": level("no_access"), "allow_force_push": true}],
        "variables": [variable("A", "v")],
    });
    vec![
        new(
            "protect",
            json!({"protected_branches": [
                {"name": "main", "allowed_to_push": level("no_access"), "code_owner_approval_required": true},
                {"name": "release/*", "allowed_to_merge": level("developer")},
            ]}),
        ),
        new("protect-edit", main(json!([{"user": "bob"}, {"access_level": "maintainer"}])))
            .protected(json!({
                "name": "main", "code_owner_approval_required": true,
                "allowed_to_push": [{"access_level": 40}, {"access_level": 30}, {"user_id": 1}],
                "allowed_to_merge": [{"access_level": 30}],
            })),
        new("protect-replace", main(level("no_access")))
            .tier("free")
            .protected(branch("main", 40))
            .protected(branch("other", 40)),
        new("protect-weaken", main(level("developer"))).tier("free").protected(branch("main", 40)),
        new("protect-remove", json!({"protected_branches": [{"name": "main", "state": "absent"}]}))
            .protected(branch("main", 40))
            .protected(branch("other", 40)),
        Scenario::new("protect-new-default", &[], &[declared(of_a_new_project.clone())]),
        Scenario::new("protect-new-default-free", &[], &[declared(of_a_new_project)]).tier("free"),
    ]
}

/// Steps that make something readable, or close it.
fn opening_steps() -> Vec<Scenario> {
    let new = |name, there: Json, sections| {
        Scenario::new(name, &[with_path("acme/shop", there)], &[declared(sections)])
    };
    let ci = |level: &str| json!({"builds_access_level": level});
    let there = json!({
        "settings": ci("enabled"), "variables": [variable("A", "old"), variable("B", "v")],
        "hooks": [{"url": "https://h.example.org/x"}], "protected_branches": [{"name": "main"}],
    });
    let without_ci = json!({"settings": ci("disabled"), "variables": [variable("A", "old"), variable("B", "v")]});
    let archived = {
        let mut archived = there.clone();
        archived["archived"] = true.into();
        archived
    };
    let sections = json!({
        "variables": [variable("A", "new"), variable("C", "v")],
        "hooks": [{"url": "https://h.example.org/x", "issues_events": true}],
        "protected_branches": [{"name": "main", "allowed_to_push": [{"access_level": "no_access"}]}],
        "members": [member("alice", "developer")],
    });
    let with = |more: Json| {
        let mut all = sections.clone();
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let variables = json!([variable("A", "new"), variable("C", "v")]);
    let mut archived_variables = without_ci.clone();
    archived_variables["settings"] = ci("enabled");
    archived_variables["archived"] = true.into();
    vec![
        new(
            "unarchive-all",
            archived,
            with(json!({"archived": false, "settings": {"description": "new"}})),
        ),
        new(
            "unarchive-remove",
            archived_variables,
            json!({"archived": false, "variables": [
                variable("A", "new"), {"key": "B", "state": "absent"},
            ]}),
        ),
        new("ci-on", without_ci, json!({"settings": ci("enabled"), "variables": variables})),
        new("ci-off", there, json!({"settings": ci("disabled"), "variables": variables})),
    ]
}

/// A declared group.
fn declared_group(path: &str, sections: Json) -> Json {
    let mut document = json!({"kind": "Group", "path": path});
    document.as_object_mut().unwrap().extend(sections.as_object().unwrap().clone());
    document
}

/// Groups that do not exist yet, their contents, and entries that name them.
fn new_groups() -> Vec<Scenario> {
    let settings = json!({"description": "new", "visibility": "internal", "project_creation_level": "maintainer"});
    let guild = json!({"group": "guild", "group_access": "developer"});
    let rule = json!({"name": "main", "allowed_to_push": [{"group": "guild"}, {"access_level": "maintainer"}]});
    let empty = json!({"create": true, "settings": {"visibility": "public"}});
    vec![
        Scenario::new(
            "group-create",
            &[],
            &[
                declared_group(
                    "acme/crew",
                    json!({"create": true, "settings": settings, "members": [member("carol", "developer")]}),
                ),
                declared_at(
                    "acme/crew/app",
                    json!({"create": true, "variables": [
                        variable("A", "v"), {"key": "S", "value": {"env": "VALUE"}, "masked": true},
                    ]}),
                ),
            ],
        ),
        Scenario::new(
            "group-create-tree",
            &[],
            &[
                declared_group("tree", empty.clone()),
                declared_group(
                    "guild",
                    json!({"create": true, "settings": {"visibility": "internal"}}),
                ),
                declared_group(
                    "tree/sub",
                    json!({"create": true, "settings": {"visibility": "internal"}, "shares": [guild]}),
                ),
                declared_at(
                    "tree/sub/app",
                    json!({
                        "create": {"initialize_with_readme": true},
                        "shares": [guild], "protected_branches": [rule],
                    }),
                ),
            ],
        ),
        Scenario::new(
            "group-create-named",
            &[live_project(json!({}))],
            &[
                declared_group("guild", empty),
                declared(json!({"shares": [guild], "protected_branches": [rule]})),
            ],
        ),
    ]
}

/// Parts of groups other than members.
fn group_parts() -> Vec<Scenario> {
    let of_team = |name, sections| {
        Scenario::new(name, &[], &[declared_group("team", sections)]).group("team", json!([]))
    };
    let scoped =
        |scope: &str, value: &str| json!({"key": "A", "environment_scope": scope, "value": value});
    let list = "/groups/team/variables";
    vec![
        of_team("group-variable-scopes", json!({"variables": [scoped("prod", "new")]}))
            .added(list, scoped("*", LIVE_VALUE))
            .added(list, {
                let mut old = scoped("prod", "old");
                old["protected"] = true.into();
                old
            })
            .added(list, scoped("test", "other")),
        of_team(
            "group-sections",
            json!({
                "settings": {"description": "new"},
                "variables": [variable("A", "new"), {"key": "S", "value": {"env": "VALUE"}, "masked": true}],
                "labels": [
                    {"name": "bug", "color": "#112233"}, {"name": "idea", "color": "#445566"},
                    {"name": "gone", "state": "absent"},
                ],
                "hooks": [{"url": "https://h.example.org/x", "issues_events": true, "token": {"env": "HOOK_TOKEN"}}],
                "push_rule": {"commit_message_regex": "^b"},
                "shares": [{"group": "guild", "group_access": "maintainer"}],
            }),
        )
        .group("guild", json!([]))
        .added(list, variable("A", "old"))
        .added("/groups/team/labels", json!({"name": "bug", "color": "#FFFFFF", "description": "kept"}))
        .added("/groups/team/labels", json!({"name": "gone", "color": "#FFFFFF"}))
        .added("/groups/team/push_rule", json!({"commit_message_regex": "^a"})),
    ]
}

/// Groups and their contents that become more or less visible.
fn visibility_changes() -> Vec<Scenario> {
    let new = |name, before: &str, after: &str| {
        let seen = json!({"settings": {"visibility": after}});
        let there = with_path("team/sub/app", json!({"settings": {"visibility": before}}));
        let documents = [
            declared_group("team", seen.clone()),
            declared_group("team/sub", seen.clone()),
            declared_at("team/sub/app", seen),
        ];
        Scenario::new(name, &[there], &documents)
            .group_seen_by("team", before, json!([]))
            .group_seen_by("team/sub", before, json!([]))
    };
    vec![
        new("group-visibility-wide", "private", "internal"),
        new("group-visibility-narrow", "public", "private"),
    ]
}

/// Groups and projects that move, and a project that is deleted.
fn moves() -> Vec<Scenario> {
    let sections = || json!({"variables": [variable("A", "old"), variable("B", LIVE_VALUE)]});
    let moved = |path: &str, former: &str| {
        declared_at(
            path,
            json!({
                "previously": [former],
                "settings": {"description": "new"},
                "variables": [variable("A", "new"), variable("C", "v")],
            }),
        )
    };
    let project = |name, former: &str, path: &str| {
        Scenario::new(name, &[with_path(former, sections())], &[moved(path, former)])
    };
    let group = |name, path: &str| {
        let top = json!({"previously": ["team"], "settings": {"description": "new"}});
        Scenario::new(
            name,
            &[with_path("team/app", sections()), with_path("team/sub/tool", sections())],
            &[
                declared_group(path, top),
                declared_at(
                    &format!("{path}/app"),
                    json!({
                        "variables": [variable("A", "new")],
                        "shares": [{"group": format!("{path}/sub"), "group_access": "developer"}],
                    }),
                ),
                moved(&format!("{path}/gear"), "team/sub/tool"),
            ],
        )
        .group("team", json!([member("alice", "developer")]))
        .group("team/sub", json!([]))
    };
    vec![
        project("project-rename", "acme/old", "acme/shop"),
        project("project-move", "beta/shop", "acme/shop"),
        project("project-rename-and-move", "beta/old", "acme/shop"),
        Scenario::new(
            "project-chain",
            &[with_path("acme/a", sections()), with_path("acme/b", sections())],
            &[moved("acme/b", "acme/a"), moved("acme/c", "acme/b")],
        ),
        group("group-rename", "crew"),
        group("group-move", "acme/team"),
        Scenario::new(
            "project-delete",
            &[live_project(sections())],
            &[declared(json!({"state": "absent"}))],
        ),
    ]
}

/// Projects created from something, and the relation of a fork.
fn project_sources() -> Vec<Scenario> {
    let new = Scenario::new;
    let public = json!({"settings": {"visibility": "public"}});
    let upstream = || with_path("acme/up", public.clone());
    let settings = json!({"visibility": "private", "description": "mine", "merge_method": "ff"});
    let fork = |create: Json| {
        declared(json!({
            "create": create, "fork_of": "acme/up", "settings": settings,
            "variables": [variable("A", "v")], "labels": [{"name": "bug", "color": "#ff0000"}],
        }))
    };
    let import = |token: &str| {
        let from = json!({"repo_id": 7, "personal_access_token": {"env": token}});
        declared(json!({
            "create": {"import": {"extgit": from}}, "settings": settings,
            "hooks": [{"url": "https://h.example.org/x", "token": {"env": "HOOK_TOKEN"}}],
        }))
    };
    let team = json!({"create": true, "members": [member("alice", "developer")]});
    vec![
        new("fork", &[upstream()], &[fork(json!(true))]).importing_for(7),
        new(
            "fork-of-new",
            &[],
            &[
                fork(json!({"members_from": "beta/team"})),
                declared_at("acme/up", json!({"create": {"initialize_with_readme": true}})),
                declared_at("beta/team", team),
            ],
        )
        .importing_for(20),
        new("import", &[], &[import("VALUE")]).importing_for(40),
        new(
            "fork-related",
            &[live_project(json!({})), upstream()],
            &[declared(json!({"fork_of": "acme/up", "settings": {"description": "new"}}))],
        ),
        new(
            "fork-moved",
            &[live_project(json!({})), upstream(), with_path("acme/old", public.clone())],
            &[declared(json!({"fork_of": "acme/up", "variables": [variable("A", "v")]}))],
        )
        .added("/projects/1/fork/3", Json::Null),
        new(
            "fork-ended",
            &[live_project(json!({})), upstream()],
            &[declared(json!({"fork_of": null}))],
        )
        .added("/projects/1/fork/2", Json::Null),
    ]
}

/// Secrets, each for one group or project only.
fn secrets() -> Vec<Scenario> {
    let new = Scenario::new;
    let variable = |name: &str| json!([{"key": "S", "value": {"env": name}, "masked": true}, variable("A", "v")]);
    let hook = json!([{"url": "https://h.example.org/x", "token": {"env": "HOOK_TOKEN"}}]);
    let crew = |sections| declared_group("acme/crew", sections);
    vec![
        new(
            "secrets-of-two",
            &[live_project(json!({})), with_path("acme/site", json!({}))],
            &[
                declared(json!({"variables": variable("VALUE")})),
                declared_at("acme/site", json!({"hooks": hook})),
            ],
        ),
        new(
            "secrets-of-a-group",
            &[with_path("acme/crew/app", json!({}))],
            &[
                crew(json!({"variables": variable("VALUE")})),
                declared_at("acme/crew/app", json!({"hooks": hook})),
            ],
        )
        .group("acme/crew", json!([]))
        .group("acme/dock", json!([])),
        new(
            "secrets-of-new",
            &[],
            &[
                crew(json!({"hooks": hook})),
                declared_at(
                    "acme/crew/app",
                    json!({"create": true, "variables": variable("OTHER")}),
                ),
            ],
        )
        .group("acme/crew", json!([])),
        new(
            "secrets-of-moved",
            &[with_path("acme/old", json!({})), with_path("acme/site", json!({}))],
            &[
                declared(json!({"previously": ["acme/old"], "variables": variable("VALUE")})),
                declared_at("acme/site", json!({"variables": variable("OTHER")})),
            ],
        ),
    ]
}

/// Many kinds of differences, all of which can be absorbed.
fn takeover() -> Vec<Scenario> {
    let hook = |url: &str| json!({"url": url, "issues_events": true});
    let shop = json!({
        "settings": {"description": "live", "visibility": "internal", "merge_method": "ff", "topics": ["a", "b"]},
        "variables": [variable("A", "live"), variable("B", "v")],
        "hooks": [hook("https://h.example.org/x")],
        "members": [{"user": "alice", "access_level": 30}],
        "protected_branches": [{"name": "main"}],
        "push_rule": {"commit_message_regex": "^live"},
    });
    vec![
        Scenario::new(
            "takeover",
            &[live_project(shop), with_path("acme/site", json!({"variables": [variable("S", "v")]}))],
            &[
                declared_group("acme", json!({"settings": {"description": "declared"}})),
                declared(json!({
                    "settings": {"description": "declared", "merge_method": "merge", "topics": ["c"]},
                    "variables": [variable("A", "declared"), variable("GONE", "v")],
                    "members": [member("alice", "maintainer")],
                    "push_rule": {"commit_message_regex": "^declared"},
                })),
                declared_at("acme/site", json!({"settings": {"lfs_enabled": false}})),
            ],
        )
        .added("/projects/1/labels", json!({"name": "bug", "color": "#112233"})),
    ]
}
