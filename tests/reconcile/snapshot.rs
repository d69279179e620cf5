//! Plans from a snapshot: the same as against the service, or smaller where something is missing.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use undrift::{
    api::{ReadClient, ServiceAddress},
    diff::{FieldChange, Shown},
    digest::DigestKey,
    plan::Plan,
    sandbox::{FaultEffect, InjectedFault, Profile},
    secret::Secret,
    snapshot::{OfflineTransport, Snapshot, SnapshotHeader, SnapshotRecorder},
};

use crate::{
    random,
    world::{World, group, instant_settings, project, seed},
};

impl World {
    /// The text of a snapshot for the manifests, taken with `key`.
    pub(crate) async fn snapshot_with(&self, key: Option<DigestKey>) -> String {
        let desired = self.desired();
        let (client, secrets) = self.client_as(self.sandbox.token(), &desired);
        let head = SnapshotHeader {
            service_address: self.sandbox.url(),
            is_sandbox: true,
            started_at: "2030-01-01T10:00:00Z".parse().unwrap(),
            key_id: None,
        };
        let taking = Arc::new(SnapshotRecorder::new(client, head, secrets.clone(), key));
        let service = ServiceAddress::parse(&self.sandbox.url(), false).unwrap();
        let through = ReadClient::new(service, taking.clone(), secrets.clone(), instant_settings());
        let (observer, mut settings) = self.connect_with(through, secrets, &desired).await.unwrap();
        let (desired, roster) = self.include_live(&observer, desired, &mut settings).await.unwrap();
        taking.use_declarations(&desired);
        taking.fetch_extra(&desired).await.unwrap();
        self.plan_with_roster(roster, &observer, &desired, &settings).await.unwrap();
        let mut text = Vec::new();
        taking.take_snapshot().write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    pub(crate) async fn snapshot(&self) -> String {
        self.snapshot_with(None).await
    }

    /// The plan of the manifests from a snapshot.
    pub(crate) async fn plan_from(&self, text: &str) -> Plan {
        self.plan_with_key(text, None).await
    }

    pub(crate) async fn plan_with_key(&self, text: &str, key: Option<DigestKey>) -> Plan {
        let snapshot = Snapshot::read(text.as_bytes()).unwrap();
        let desired = self.desired();
        let (_, secrets) = self.client_as(self.sandbox.token(), &desired);
        let service = ServiceAddress::parse("http://127.0.0.1:9", false).unwrap();
        let offline = Arc::new(OfflineTransport::new(snapshot, key));
        let client = ReadClient::new(service, offline.clone(), secrets.clone(), instant_settings());
        let (observer, mut settings) = self.connect_with(client, secrets, &desired).await.unwrap();
        let (desired, roster) = self.include_live(&observer, desired, &mut settings).await.unwrap();
        offline.use_declarations(&desired, &settings.secrets);
        self.plan_with_roster(roster, &observer, &desired, &settings).await.unwrap()
    }
}

fn plan_json(plan: &Plan) -> Json {
    serde_json::to_value(plan).unwrap()
}

fn addresses<'p>(parts: impl Iterator<Item = &'p undrift::address::Address>) -> Vec<String> {
    parts.map(ToString::to_string).collect()
}

/// Every step of `less` is one of `whole`, and missing ones are reported.
fn assert_part_of(partial: &Plan, whole: &Plan) {
    let said = addresses(partial.incomplete.iter().map(|scope| &scope.address));
    let noted = addresses(partial.notes.iter().map(|note| &note.address));
    for step in &partial.steps {
        let address = step.address.to_string();
        let other = whole.steps.iter().find(|other| other.address == step.address);
        let Some(other) = other else { panic!("{address} is only in the plan from the snapshot") };
        for change in &step.changes {
            let is_there = other.changes.iter().any(|other| other.field == change.field);
            assert!(is_there, "{address}: {}", change.field);
        }
        assert_eq!(step.action, other.action, "{address}");
    }
    for step in &whole.steps {
        let address = step.address.to_string();
        let own = partial.steps.iter().find(|own| own.address == step.address);
        let is_said =
            said.iter().any(|said| address.starts_with(said.as_str())) || noted.contains(&address);
        // A value that is not kept is not shown as removed either.
        let is_open = |change: &&FieldChange| *change.before != Shown::Hidden;
        let same = own.is_some_and(|own| {
            step.changes
                .iter()
                .filter(is_open)
                .all(|change| own.changes.iter().any(|other| other.field == change.field))
        });
        assert!(same || is_said, "{address} is missing, and nothing says so: {said:?} {noted:?}");
    }
}

#[test]
fn a_plan_from_a_snapshot_equals_the_live_plan() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let states =
        (random::group(), random::project_sections(), random::group(), random::project_sections());
    random::cases(12)
        .run(&states, |(old_group, old, new_group, new)| {
            runtime.block_on(async {
                let world = random::world().await;
                world.declare(&random::documents(old_group.clone(), old.clone()));
                world.converge("from nothing").await;
                let before = world.snapshot().await;
                world.declare(&random::documents(new_group.clone(), new.clone()));
                let against = world.plan().await;
                // Taken for these manifests, and for the earlier ones.
                let after = world.snapshot().await;
                let from = world.plan_from(&after).await;
                assert_part_of(&from, &against);
                assert_part_of(&world.plan_from(&before).await, &against);
                // With the key nothing is missing.
                let after = world.snapshot_with(Some(key())).await;
                let from = world.plan_with_key(&after, Some(key())).await;
                assert_eq!(plan_json(&from), plan_json(&against));
            });
            Ok(())
        })
        .unwrap();
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

/// The usual merge requests: all changes are planned from an earlier snapshot.
#[test]
fn additions_of_a_merge_request_can_be_planned() {
    runtime().block_on(async {
        let mut seed = seed(&[json!({"path": "acme/shop"}), json!({"path": "acme/site"})]);
        let groups = seed["groups"].as_array_mut().unwrap();
        groups.push(json!({"path": "acme/leads"}));
        groups.push(json!({"path": "acme/team"}));
        let world = World::new(Profile::default(), seed).await;
        let shop = |sections| project("acme/shop", sections);
        world.declare(&[shop(json!({
            "settings": {"description": "a"}, "variables": [{"key": "A", "value": "x"}],
            "members": [{"user": "alice", "access_level": "developer"}], "shares": [],
        }))]);
        world.converge("before").await;
        let snapshot = world.snapshot().await;
        let requests = world.requests().len();
        let edited = shop(json!({
            "settings": {"description": "b", "merge_method": "ff", "wiki_access_level": "disabled"},
            "variables": [{"key": "A", "value": "y"}, {"key": "B", "value": "z"}],
            "members": [
                {"user": "alice", "access_level": "maintainer"},
                {"user": "carol", "access_level": "developer"},
            ],
            "shares": [{"group": "acme/leads", "group_access": "reporter"}],
        }));
        let create = json!({"create": true, "settings": {"visibility": "private"}, "members": [{"user": "bob", "access_level": "developer"}]});
        let group = group("acme/neo", json!({"create": true}));
        world.declare(&[
            edited,
            project("acme/team/fresh", create.clone()),
            project("acme/neo/inner", create.clone()),
            group,
            project("acme/site", json!({"settings": {"description": "adopted"}})),
        ]);
        let plan = world.plan_from(&snapshot).await;
        assert_eq!(world.requests().len(), requests, "nobody was asked");
        assert_eq!(plan.incomplete, [], "{:#?}", plan.incomplete);
        assert_eq!(plan.problems, [], "{:#?}", plan.problems);
        let against = world.plan().await;
        assert_eq!(plan_json(&plan), plan_json(&against));
        // Missing objects are not planned, but reported.
        let unknown = shop(json!({"hooks": [{"url": "https://a.example.org"}], "settings": {"description": "c"}}));
        world.declare(&[unknown, project("other/x", create)]);
        let plan = world.plan_from(&snapshot).await;
        assert_eq!(addresses(plan.steps.iter().map(|step| &step.address)), ["acme/shop#settings"]);
        let said = plan.incomplete.iter().map(|scope| format!("{}: {}", scope.address, scope.reason));
        let said: Vec<_> = said.collect();
        let why = "was not sent: the snapshot of 2030-01-01 10:00 UTC does not contain it";
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(said.iter().all(|said| said.contains(why)), "{said:#?}");
        // An unknown name certainly belongs to no user.
        world.declare(&[shop(json!({"members": [{"user": "nobody", "access_level": "developer"}]}))]);
        let plan = world.plan_from(&snapshot).await;
        assert_eq!(plan.problems[0].code, "unknown-user", "{:#?} {:#?}", plan.problems, plan.incomplete);
    });
}

fn key() -> DigestKey {
    DigestKey::new(&Secret::new("the key of the protected branch"))
}

const CANARY: &str = "canary-1f6a";

/// The file contains no secret, and a plan from it does not show whether a guess is right.
#[test]
fn a_snapshot_has_no_secret_and_confirms_no_guess() {
    runtime().block_on(async {
        let url = format!("https://user:{CANARY}@h.example.org/x");
        let hook = format!("https://h.example.org/?token={CANARY}");
        let seed = seed(&[json!({
            "path": "acme/shop",
            "settings": {"description": format!("see {url}")},
            "variables": [
                {"key": "A", "value": CANARY},
                {"key": "B", "value": CANARY, "masked": true},
            ],
            "hooks": [{"url": hook, "token": CANARY}],
        })]);
        let world = World::new(Profile::default(), seed).await;
        let declare = |a: &str| {
            let sections = json!({
                "settings": {"description": "mine"},
                "variables": [{"key": "A", "value": a}, {"key": "B", "value": a, "masked": true}],
                "hooks": [{"url": "https://h.example.org/?token=guess"}],
                "unlisted": {"variables": "report", "hooks": "report"},
            });
            world.declare(&[project("acme/shop", sections)]);
        };
        declare("a-declared-value");
        let snapshot = world.snapshot().await;
        assert!(!snapshot.contains(CANARY), "{snapshot}");
        assert!(!snapshot.contains(world.sandbox.token()));
        let mut plans = Vec::new();
        for guess in [CANARY, "canary-0000"] {
            declare(guess);
            let plan = plan_json(&world.plan_from(&snapshot).await).to_string();
            plans.push(plan.replace(guess, "[guess]"));
        }
        assert_eq!(plans[0], plans[1]);
        // Digests confirm a value only to owners of their key.
        declare("a-declared-value");
        let snapshot = world.snapshot_with(Some(key())).await;
        assert!(!snapshot.contains(CANARY), "{snapshot}");
        let mut plans = Vec::new();
        for guess in [CANARY, "canary-0000"] {
            declare(guess);
            let plan = plan_json(&world.plan_from(&snapshot).await).to_string();
            plans.push(plan.replace(guess, "[guess]"));
            let plan = world.plan_with_key(&snapshot, Some(key())).await;
            let changes =
                plan.steps.iter().filter(|step| step.address.to_string().contains("variables"));
            assert_eq!(changes.count(), if guess == CANARY { 0 } else { 2 });
            assert!(guess == CANARY || !plan_json(&plan).to_string().contains(CANARY));
        }
        assert_eq!(plans[0], plans[1]);
        // A value that manifests declare in plain text is kept, because readers of the manifests
        // know it.
        declare(CANARY);
        let text = world.snapshot().await;
        assert_eq!(text.matches(CANARY).count(), 1, "what is masked is not: {text}");
    });
}

/// Hooks whose address may hold a credential do not need the key, unless they may be declared ones.
#[test]
fn a_hook_with_a_possible_credential_is_distinguished_by_its_host_and_path() {
    runtime().block_on(async {
        let seed = seed(&[json!({
            "path": "acme/shop",
            "hooks": [
                {"url": format!("https://deploy.example.net/hook?project={CANARY}")},
                {"url": format!("https://bot:{CANARY}@old.example.org/x")},
                {"url": "https://ci.example.org/"},
                {"url": format!("https://hooks.slack.com/services/T0/B0/{CANARY}")},
            ],
        })]);
        let world = World::new(Profile::default(), seed).await;
        let declare = |hooks: &[Json]| {
            let sections = json!({"hooks": hooks, "unlisted": {"hooks": "report"}});
            world.declare(&[project("acme/shop", sections)]);
        };
        let others = [
            json!({"url": "*deploy.example.net*", "state": "unmanaged"}),
            json!({"url": "*hooks.slack.com*", "state": "unmanaged"}),
            json!({"url": "https://ci.example.org/"}),
        ];
        for taken_with in [None, Some(key())] {
            declare(&others);
            let against = plan_json(&world.plan().await);
            let snapshot = world.snapshot_with(taken_with.clone()).await;
            assert!(!snapshot.contains(CANARY), "{snapshot}");
            for key in [None, taken_with.clone()] {
                let plan = world.plan_with_key(&snapshot, key).await;
                assert_eq!(
                    addresses(plan.notes.iter().map(|note| &note.address)),
                    ["acme/shop#hooks/https%3A%2F%2F***@old.example.org%2Fx@2"]
                );
                assert_eq!(plan_json(&plan), against);
            }
            // An address that no live hook has.
            let text = "https://deploy.example.net/other?project=***";
            declare(&[json!({"url": text}), others[1].clone(), others[2].clone()]);
            let plan = world.plan_from(&snapshot).await;
            assert_eq!((plan.steps.len(), plan.incomplete.len()), (1, 0), "{:#?}", plan.incomplete);
            assert_eq!(plan_json(&plan), plan_json(&world.plan().await));
            // Its former address, which only the key can tell.
            let former = format!("https://deploy.example.net/hook?project={CANARY}");
            declare(&[json!({"url": "https://a.example.org/", "previously": [former]})]);
            assert_eq!(world.plan_from(&snapshot).await.steps.len(), 0);
            let plan = world.plan_with_key(&snapshot, taken_with.clone()).await;
            let against = if taken_with.is_some() { world.plan().await.steps.len() } else { 0 };
            assert_eq!(plan.steps.len(), against);
            // It may be this one: only the key can tell.
            let slack = "https://hooks.slack.com/services/T0/B0/another1";
            let hook = |url: &str| json!([{"url": url}]);
            let renamed = json!({"previously": ["acme/shop"], "hooks": hook(slack)});
            for document in [
                project("acme/shop", json!({"hooks": hook(&text.replace("other", "hook"))})),
                project("acme/shop", json!({"hooks": hook(slack)})),
                project("acme/store", renamed),
            ] {
                world.declare(&[document]);
                let plan = world.plan_from(&snapshot).await;
                let hooks = plan.steps.iter().filter(|step| step.address.section == Some("hooks"));
                assert_eq!(hooks.count(), 0);
                let why = plan.incomplete[0].reason.to_string();
                assert!(why.contains("UNDRIFT_SNAPSHOT_KEY"), "{why}");
            }
        }
    });
}

/// An address with a known secret is stored as a digest or not at all; its placeholder is no
/// difference.
#[test]
fn an_address_with_a_known_secret_is_no_difference() {
    runtime().block_on(async {
        let url = "https://chat.example.org/hooks/the-chat-of-the-team";
        let seed = seed(&[json!({"path": "acme/shop", "hooks": [{"url": url}]})]);
        let mut world = World::new(Profile::default(), seed).await;
        world.set_variable("CHAT_URL", url);
        let sections = json!({"hooks": [{"url": {"env": "CHAT_URL"}}]});
        world.declare(&[project("acme/shop", sections)]);
        assert_eq!(world.plan().await.steps.len(), 0);
        for (key, unread) in [(None, vec!["acme/shop#hooks"]), (Some(key()), vec![])] {
            let snapshot = world.snapshot_with(key.clone()).await;
            assert!(!snapshot.contains("the-chat"), "{snapshot}");
            let plan = world.plan_with_key(&snapshot, key).await;
            assert_eq!(plan.steps.len(), 0, "{:#?}", plan.steps);
            let incomplete = plan.incomplete.iter().map(|scope| &scope.address);
            assert_eq!(addresses(incomplete), unread);
        }
    });
}

/// A refused token ends a snapshot as it ends a plan.
#[test]
fn a_refused_token_ends_a_snapshot() {
    runtime().block_on(async {
        let world = World::new(Profile::default(), seed(&[])).await;
        world.declare(&[project("acme/shop", json!({"members": []}))]);
        let desired = world.desired();
        let (client, secrets) = world.client_as("a-token-of-nobody-012345", &desired);
        let head =
            SnapshotHeader { service_address: world.sandbox.url(), ..SnapshotHeader::default() };
        let taking = Arc::new(SnapshotRecorder::new(client, head, secrets.clone(), None));
        let service = ServiceAddress::parse(&world.sandbox.url(), false).unwrap();
        let through = ReadClient::new(service, taking.clone(), secrets.clone(), instant_settings());
        let error = world.connect_with(through, secrets, &desired).await.err().unwrap();
        assert!(error.is_unauthorized(), "{error}");
        assert_eq!(taking.client().request_count(), 1);
    });
}

/// A user who could not be looked up is no user that the snapshot lacks: the next one would not help.
#[test]
fn a_failed_look_up_of_a_user_keeps_its_reason() {
    runtime().block_on(async {
        let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
        let member = json!({"members": [{"user": "bob", "access_level": "developer"}]});
        world.declare(&[project("acme/shop", member)]);
        world.sandbox.add_fault(InjectedFault {
            method: None,
            path_contains: "/users?".to_owned(),
            nth: 0,
            effect: FaultEffect::StatusBefore(403),
        });
        let text = world.snapshot().await;
        assert!(text.contains("user-find of `bob`"), "{text}");
        let plan = world.plan_from(&text).await;
        let reasons: Vec<_> = plan.incomplete.iter().map(|part| part.reason.to_string()).collect();
        assert!(reasons.iter().any(|reason| reason.contains("403")), "{reasons:?}");
    });
}

/// A file that was cut or changed is read or refused; the same for plans from it.
#[test]
fn a_file_that_is_cut_or_changed_is_refused_or_read() {
    let text = runtime().block_on(async {
        let world = World::new(Profile::default(), seed(&[json!({"path": "acme/shop"})])).await;
        world.declare(&[project("acme/shop", json!({"members": []}))]);
        world.snapshot().await
    });
    let text = text.trim_end();
    for end in 0..text.len() {
        assert!(Snapshot::read(&text.as_bytes()[..end]).is_err(), "cut at {end}");
    }
    let strategy = (prop::collection::vec((0..text.len(), any::<u8>()), 1..4), any::<bool>());
    random::cases(2000)
        .run(&strategy, |(changes, printable)| {
            let mut bytes = text.as_bytes().to_vec();
            for (at, byte) in changes {
                bytes[at] = if printable { b' ' + byte % 95 } else { byte };
            }
            let _ = Snapshot::read(&bytes);
            Ok(())
        })
        .unwrap();
    for (wrong, why) in [
        ("{}", "it is not a snapshot"),
        ("[]", "it is not a snapshot"),
        ("[", "it is truncated"),
        ("{\"undrift\":\"plan\",\"format_version\":0}", "it is not a snapshot"),
        ("{\"undrift\":\"snapshot\",\"format_version\":9}", "it has format 9"),
        ("{\"undrift\":\"snapshot\",\"format_version\":0}", "it is truncated"),
    ] {
        let error = Snapshot::read(wrong.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}
