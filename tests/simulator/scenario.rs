//! What is there and what is declared: small organisations, each for one thing that a run has to
//! do.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value as Json, json};
use undrift::{
    desired::Desired,
    manifest,
    sandbox::{Conditions, Image, Model, Seed},
};

/// The token of the administrator, which no output may hold.
pub(crate) const TOKEN: &str = "root-token-canary-0123456789";
/// The token of a maintainer.
pub(crate) const MAINTAINER: &str = "bobs-token-canary-0123456789";

/// Secrets that manifests refer to. No output may hold one of them.
pub(crate) const SECRETS: [(&str, &str); 4] = [
    ("HOOK_TOKEN", "hook-token-canary-1234"),
    ("VALUE", "value-canary-56789-abcdef"),
    ("CHAT_URL", "https://chat.example.org/hooks/path-canary"),
    ("MULTILINE", "first-line-canary\nsecond-line-canary\n"),
];

/// A live value that nobody declares and no output may hold.
pub(crate) const LIVE: &str = "live-value-canary-7";

/// What is there, and what is declared.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    projects: Vec<Json>,
    documents: Vec<Json>,
    pub(crate) resend: &'static [&'static str],
    pub(crate) token: &'static str,
}

/// A scenario with everything that each of its runs starts from.
pub(crate) struct Prepared {
    pub(crate) scenario: Scenario,
    pub(crate) desired: Desired,
    pub(crate) image: Image,
    folder: tempfile::TempDir,
}

impl Scenario {
    fn new(name: &'static str, projects: &[Json], documents: &[Json]) -> Self {
        Self {
            name,
            projects: projects.to_vec(),
            documents: documents.to_vec(),
            resend: &[],
            token: TOKEN,
        }
    }

    fn seed(&self) -> Json {
        let users = ["alice", "bob", "carol", "dave"].map(|name| match name {
            "bob" => json!({"username": name, "token": MAINTAINER}),
            _ => json!({"username": name}),
        });
        let members =
            json!([{"user": "root", "access_level": 50}, {"user": "bob", "access_level": 40}]);
        json!({
            "tier": "ultimate",
            "users": users,
            "groups": [{"path": "acme", "visibility": "public", "members": members}, {"path": "beta", "visibility": "public"}],
            "projects": self.projects,
        })
    }

    pub(crate) fn prepare(self) -> Arc<Prepared> {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<_> = self.documents.iter().map(Json::to_string).collect();
        std::fs::write(folder.path().join("all.yaml"), text.join("\n---\n")).unwrap();
        std::fs::write(folder.path().join("logo.png"), [0x89, b'P', b'N', b'G', 13, 10, 26, 10])
            .unwrap();
        let loaded = manifest::load(
            folder.path(),
            &manifest::Surroundings {
                folder: folder.path().into(),
                today: jiff::civil::date(2030, 1, 1),
            },
        );
        let desired = loaded.desired.unwrap_or_else(|| {
            panic!("{}", loaded.diagnostics.render(undrift::diagnostic::Style::default()))
        });
        let mut model =
            Model::new(&Seed::from_json(self.seed()).unwrap(), TOKEN, Conditions::default())
                .unwrap();
        let image = model.image().unwrap();
        Arc::new(Prepared { scenario: self, desired, image, folder })
    }
}

impl Prepared {
    pub(crate) fn root(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn environment() -> BTreeMap<String, String> {
        SECRETS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// What is declared of a project, as it was written.
    pub(crate) fn documents(&self) -> &[Json] {
        &self.scenario.documents
    }
}

/// A project that is there.
fn there(sections: Json) -> Json {
    with_path("acme/shop", sections)
}

fn with_path(path: &str, mut sections: Json) -> Json {
    sections["path"] = path.into();
    sections
}

/// A project that is declared.
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

/// Everything that a small project has, for a run that touches all kinds.
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
pub(crate) fn all() -> Vec<Scenario> {
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
    let live = json!({"key": "A", "value": LIVE, "masked": true});
    let new = Scenario::new;
    let mut all = vec![
        new(
            "one-hook",
            &[there(json!({}))],
            &[declared(
                json!({"hooks": [{"url": "https://h.example.org/x", "token": {"env": "HOOK_TOKEN"}}]}),
            )],
        ),
        new(
            "one-variable",
            &[there(json!({}))],
            &[declared(json!({"variables": [{"key": "A", "value": {"env": "VALUE"}}]}))],
        ),
        new(
            "one-setting",
            &[there(json!({"settings": {"description": "old"}}))],
            &[declared(json!({"settings": {"description": "new"}}))],
        ),
        new(
            "one-flag",
            &[there(json!({"variables": [live]}))],
            &[declared(json!({"variables": [{"key": "A", "protected": true}]}))],
        ),
        new(
            "archive",
            &[there(json!({}))],
            &[declared(json!({"settings": {"description": "last words"}, "archived": true}))],
        ),
        new(
            "nothing",
            &[there(json!({"variables": [variable("A", "v")]}))],
            &[declared(json!({"variables": [variable("A", "v")]}))],
        ),
        new(
            "member-add",
            &[there(json!({}))],
            &[declared(json!({"members": [{"user": "alice", "access_level": "developer"}]}))],
        ),
        new(
            "member-change",
            &[there(
                json!({"members": [{"user": "alice", "access_level": 30, "expires_at": "2099-01-31"}]}),
            )],
            &[declared(json!({"members": [{"user": "alice", "access_level": "maintainer"}]}))],
        ),
        new(
            "member-remove",
            &[there(
                json!({"members": [{"user": "alice", "access_level": 30}, {"user": "carol", "access_level": 20}]}),
            )],
            &[declared(json!({"members": [{"user": "alice", "state": "absent"}]}))],
        ),
        new(
            "push-rule-add",
            &[there(json!({}))],
            &[declared(json!({"push_rule": {"commit_message_regex": "^b", "max_file_size": 5}}))],
        ),
        new(
            "push-rule-change",
            &[there(json!({"push_rule": {"commit_message_regex": "^a"}}))],
            &[declared(json!({"push_rule": {"commit_message_regex": "^b"}}))],
        ),
        new(
            "push-rule-remove",
            &[there(json!({"push_rule": {"member_check": true}}))],
            &[declared(json!({"push_rule": null}))],
        ),
        new(
            "unarchive",
            &[there(json!({"archived": true}))],
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
                    json!({"settings": {"merge_trains_enabled": true, "ci_default_git_depth": 7}}),
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
            &[there(json!({"variables": [live], "push_rule": {"commit_message_regex": "^a"}}))],
            &[declared(all_kinds())],
        ),
        new(
            "change-all-and-archive",
            &[there(json!({"variables": [variable("A", "old")]}))],
            &[declared(archived(all_kinds()))],
        ),
        new(
            "remove-some",
            &[there(json!({
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
            &[there(json!({"variables": variables(0..6), "hooks": hooks(0..6)}))],
            &[declared(json!({
                "variables": variables(0..5),
                "hooks": hooks(0..5),
                "unlisted": {"variables": "delete", "hooks": "delete"},
            }))],
        ),
        new(
            "scopes",
            &[there(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "value": "old"}, {"key": "A", "environment_scope": "test", "value": LIVE}]}),
            )],
            &[declared(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "value": "new"}, {"key": "A", "environment_scope": "test", "protected": true}, {"key": "A", "value": "all"}]}),
            )],
        ),
        new(
            "scope-moved",
            &[there(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "value": "v"}, variable("B", "v"), variable("C", "v")]}),
            )],
            &[declared(
                json!({"variables": [{"key": "A", "environment_scope": "prod", "state": "absent"}, variable("A", "v")]}),
            )],
        ),
        new(
            "twenty-hooks",
            &[there(json!({"hooks": hooks(0..18)}))],
            &[declared(json!({"hooks": hooks(0..20)}))],
        ),
        new(
            "two-pages",
            &[there(json!({"variables": variables(0..110)}))],
            &[declared(json!({"variables": variables(0..112)}))],
        ),
        new(
            "hook-moved",
            &[there(json!({"hooks": [{"url": "https://old.example.org/x", "push_events": true}]}))],
            &[declared(
                json!({"hooks": [{"name": "ci", "url": "https://new.example.org/x", "previously": ["https://old.example.org/x"], "token": {"env": "HOOK_TOKEN"}}]}),
            )],
        ),
        new(
            "secret-url",
            &[there(json!({"hooks": hooks(0..1)}))],
            &[declared(json!({"hooks": [{"url": {"env": "CHAT_URL"}, "push_events": true}]}))],
        ),
        new(
            "hook-copies",
            &[there(json!({"hooks": hooks(0..6)}))],
            &[declared(
                json!({"hooks": [{"url": "https://h00.example.org/", "issues_events": true}]}),
            )],
        ),
        new(
            "picture",
            &[there(json!({}))],
            &[declared(
                json!({"settings": {"avatar": {"file": "logo.png"}, "description": "new"}}),
            )],
        ),
        new(
            "file-variable",
            &[there(json!({}))],
            &[declared(
                json!({"variables": [{"key": "F", "value": {"env": "MULTILINE"}, "variable_type": "file"}]}),
            )],
        ),
        new(
            "three-projects",
            &[
                there(json!({})),
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
            &[there(json!({}))],
            &[
                declared(json!({"settings": {"description": "new"}})),
                declared_at("acme/none", json!({"variables": []})),
            ],
        ),
    ];
    let mut resend = Scenario::new(
        "resend",
        &[there(json!({"hooks": [{"url": "https://h.example.org/x", "token": "old"}]}))],
        &[declared(
            json!({"hooks": [{"url": "https://h.example.org/x", "token": {"env": "HOOK_TOKEN"}}]}),
        )],
    );
    resend.resend = &["**#hooks"];
    let mut maintainer = Scenario::new(
        "maintainer",
        &[there(json!({"variables": [live]}))],
        &[declared(
            json!({"variables": [variable("B", "v"), {"key": "A", "protected": true}], "hooks": hooks(0..1)}),
        )],
    );
    maintainer.token = MAINTAINER;
    all.extend([resend, maintainer]);
    all
}
