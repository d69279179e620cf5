//! The service as a model: called directly, restarted many times from one image, and dumped.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use undrift_sandbox::{Clock, Model, Profile, RandomSource, Seed, ServiceOptions};

use super::client::{ROOT, usual_seed};
use super::dump::dump;
use super::facts::fact;

const SHOP: &str = "/projects/acme%2Fshop";
const HOOKS: &str = "/projects/acme%2Fshop/hooks";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB";
const VARIABLES: &str = "/projects/acme%2Fshop/variables";

/// The same conditions each time, with a clock that starts at this second.
fn service_options(second: i64) -> ServiceOptions {
    let time = jiff::Timestamp::from_second(second).expect("a time");
    ServiceOptions {
        clock: Clock::new(move || time),
        random: RandomSource::seeded(second.unsigned_abs()),
        ..ServiceOptions::default()
    }
}

fn usual_model(second: i64) -> Model {
    Model::new(&Seed::from_json(usual_seed()).expect("a seed"), ROOT, service_options(second))
        .expect("a model")
}

/// Makes a call as `root`; returns its status and body.
fn call(model: &Model, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v4{path}"))
        .header("private-token", ROOT);
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let response = model
        .answer(request.header("content-type", "application/json").body(body).expect("a request"));
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap_or_default())
}

/// Changes some data of every type.
fn change(model: &Model) {
    for (method, path, body, status) in [
        ("PUT", SHOP, json!({"description": "new"}), 200),
        ("POST", HOOKS, json!({"url": "https://a.example/", "token": "secret of the hook"}), 201),
        ("POST", VARIABLES, json!({"key": "A", "value": "1"}), 201),
        ("POST", "/groups", json!({"name": "ops", "path": "ops"}), 201),
        ("POST", "/projects/2/share", json!({"group_id": 10, "group_access": 30}), 201),
        ("POST", "/projects/1/protected_branches", json!({"name": "main"}), 201),
        ("POST", "/projects/1/protected_tags", json!({"name": "v*"}), 201),
        ("POST", "/projects/1/labels", json!({"name": "bug", "color": "red", "priority": 1}), 201),
        ("POST", "/projects/1/approvals", json!({"reset_approvals_on_push": false}), 201),
        (
            "POST",
            "/projects/1/approval_rules",
            json!({"name": "r", "approvals_required": 1, "user_ids": [4], "group_ids": [9], "protected_branch_ids": [1]}),
            201,
        ),
        (
            "POST",
            "/groups/acme/badges",
            json!({"link_url": "https://a.example", "image_url": "https://b.example"}),
            201,
        ),
        ("POST", "/projects/1/remote_mirrors", json!({"url": "https://u:p@a.example"}), 201),
        ("POST", "/projects/1/deploy_keys", json!({"title": "k", "key": KEY}), 201),
        (
            "POST",
            "/projects/1/pipeline_schedules",
            json!({"description": "n", "ref": "main", "cron": "0 4 * * *"}),
            201,
        ),
        (
            "POST",
            "/projects/1/freeze_periods",
            json!({"freeze_start": "0 4 * * *", "freeze_end": "0 5 * * *", "cron_timezone": "UTC"}),
            201,
        ),
        ("POST", "/groups/acme/hooks", json!({"url": "https://b.example/"}), 201),
        ("POST", "/groups/acme/push_rule", json!({"prevent_secrets": true}), 201),
        ("POST", "/projects/2/archive", json!({}), 201),
        ("DELETE", "/projects/1/members/4", json!({}), 404),
        ("POST", "/projects", json!({"path": "made", "namespace_id": 9}), 201),
        ("POST", "/projects/1/star", json!({}), 201),
        ("PUT", "/projects/1/push_rule", json!({"member_check": true}), 404),
        ("POST", "/projects/1/push_rule", json!({"member_check": true}), 201),
        ("POST", "/projects/1/members", json!({"user_id": 7, "access_level": 30}), 201),
    ] {
        let (got, answer) = call(model, method, path, &body);
        assert_eq!(got, status, "{method} {path}: {answer}");
    }
}

// Dumps are compared without printing them, because they are long.
#[test]
fn a_model_from_an_image_has_no_later_changes() {
    let mut model = usual_model(1_900_000_000);
    let (prepared, before) =
        (model.take_image().expect("an image"), model.inspect(dump).expect("a dump"));
    change(&model);
    let (changed, after) =
        (model.take_image().expect("an image"), model.inspect(dump).expect("a dump"));
    assert!(before != after);
    for (image, held) in
        [(&prepared, &before), (&prepared, &before), (&changed, &after), (&prepared, &before)]
    {
        model.reset(image, service_options(1_900_000_000)).expect("reset");
        assert!(&model.inspect(dump).expect("a dump") == held);
        let refused = call(&model, "POST", HOOKS, &json!({"url": "no url"}));
        assert!(
            refused.0 == 422 && &model.inspect(dump).expect("a dump") == held,
            "a refused call changes nothing"
        );
        assert_eq!(call(&model, "PUT", SHOP, &json!({"description": "newer"})).0, 200);
        let other = Model::from_image(image, service_options(0)).expect("a model");
        assert!(&other.inspect(dump).expect("a dump") == held, "an image stays what it was");
    }
}

#[test]
fn each_model_has_its_own_options() {
    let mut model = usual_model(1_900_000_000);
    let image = model.take_image().expect("an image");
    let profile =
        Profile { absent_delete: undrift_sandbox::AbsentDelete::NotFound, ..Profile::default() };
    for (profile, status) in [(Profile::default(), 204), (profile, 404), (Profile::default(), 204)]
    {
        model
            .reset(&image, ServiceOptions { profile, ..service_options(2_000_000_000) })
            .expect("reset");
        assert_eq!(
            call(&model, "DELETE", &format!("{HOOKS}/9"), &Value::Null).0,
            status,
            "{}",
            fact("hook-delete-absent")
        );
        let made = call(&model, "POST", HOOKS, &json!({"url": "https://a.example/"})).1;
        assert_eq!(made["created_at"], "2033-05-18T03:33:20.000Z");
    }
}

#[test]
fn a_dump_has_what_no_call_returns_and_no_token() {
    let model = usual_model(1_900_000_000);
    change(&model);
    let dump = model.inspect(dump).expect("a dump");
    let row = |table: &str, column: &str, value: Value| {
        let mut rows = dump[table].as_array().into_iter().flatten();
        rows.find(|row| row[column] == value)
            .cloned()
            .unwrap_or_else(|| panic!("no {column} {value} in {table}"))
    };
    let shop = row("projects", "full_path", "acme/shop".into());
    assert_eq!((&shop["attributes"]["description"], &shop["archived"]), (&json!("new"), &json!(0)));
    assert_eq!(row("projects", "full_path", "acme/site".into())["archived"], 1);
    assert_eq!(row("hooks", "project_id", 1.into())["settings"]["token"], "secret of the hook");
    assert_eq!(row("hooks", "project_id", 1.into())["settings"]["url"], "https://a.example/");
    let mut variables = dump["variables"].as_array().into_iter().flatten();
    assert!(
        variables.any(|row| (&row["settings"]["key"], &row["settings"]["value"])
            == (&json!("A"), &json!("1")))
    );
    assert_eq!(row("push_rules", "project_id", 1.into())["settings"]["member_check"], true);
    assert_eq!(row("shares", "project_id", 2.into())["access_level"], 30);
    assert_eq!(row("protected_branches", "name", "main".into())["project_id"], 1);
    assert_eq!(row("protected_branch_grants", "action", "push".into())["access_level"], 40);
    let tag = &row("protected_tags", "project_id", 1.into())["settings"];
    assert_eq!((&tag["name"], &tag["grants"][0]["level"]), (&json!("v*"), &json!(40)));
    let approvals = row("approval_settings", "project_id", 1.into());
    assert_eq!(approvals["settings"]["reset_approvals_on_push"], false);
    let rule = &row("approval_rules", "project_id", 1.into())["settings"];
    assert_eq!((&rule["name"], &rule["approvals_required"]), (&json!("r"), &json!(1)));
    for (list, id) in [("users", 4), ("groups", 9), ("protected_branch_ids", 1)] {
        assert_eq!(rule[list], json!([id]), "{list}");
    }
    assert_eq!(row("hooks", "group_id", 9.into())["settings"]["url"], "https://b.example/");
    assert_eq!(row("push_rules", "group_id", 9.into())["settings"]["prevent_secrets"], true);
    let mirror = row("remote_mirrors", "project_id", 1.into());
    assert_eq!(mirror["settings"]["url"], "https://u:p@a.example");
    assert_eq!(row("pipeline_schedules", "project_id", 1.into())["settings"]["owner_id"], 1);
    let label = &row("labels", "project_id", 1.into())["settings"];
    assert_eq!((&label["title"], &label["color"]), (&json!("bug"), &json!("#FF0000")));
    assert_eq!(label["priorities"], json!({"1": 1}));
    assert_eq!(row("members", "user_id", 7.into())["project_id"], 1);
    assert_eq!(row("namespaces", "full_path", "acme".into())["visibility"], "public");
    let token = row("tokens", "user_id", 1.into());
    assert_eq!((token.get("digest"), token.get("prefix")), (None, None));
}

/// Names of columns, and of members in JSON, whose values depend on the clock or on randomness.
const VOLATILE_NAMES: [&str; 8] = [
    "created_at",
    "updated_at",
    "last_activity_at",
    "starred_since",
    "import_done_at",
    "due_at",
    "next_run_at",
    "runners_token",
];

/// Removes the volatile values.
fn remove_volatile(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(remove_volatile),
        Value::Object(members) => {
            members.retain(|name, _| !VOLATILE_NAMES.contains(&name.as_str()));
            members.values_mut().for_each(remove_volatile);
        }
        _ => {}
    }
}

#[test]
fn values_from_time_and_randomness_are_listed() {
    let [one, other] = [1_900_000_000, 2_000_000_000].map(|second| {
        let model = usual_model(second);
        change(&model);
        model.inspect(dump).expect("a dump")
    });
    assert!(one != other);
    let [one, other] = [one, other].map(|mut dump| {
        remove_volatile(&mut dump);
        dump
    });
    assert!(one == other);
}

#[test]
fn links_begin_with_the_host_of_the_request() {
    let model = usual_model(1_900_000_000);
    for (uri, host, base) in [
        ("/api/v4/projects/1", Some("a.example:1"), "http://a.example:1"),
        ("http://b.example:2/api/v4/projects/1", None, "http://b.example:2"),
        ("/api/v4/projects/1", None, "http://localhost"),
    ] {
        let request = Request::builder().uri(uri).header("private-token", ROOT);
        let request = host.into_iter().fold(request, |request, host| request.header("host", host));
        let response = model.answer(request.body(Bytes::new()).expect("a request"));
        let body: Value = serde_json::from_slice(response.body()).expect("JSON");
        assert_eq!(body["web_url"], format!("{base}/acme/shop"), "{uri}");
    }
}

#[test]
fn models_and_images_can_be_shared_among_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Model>();
    shared::<undrift_sandbox::ModelImage>();
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let model = usual_model(1_900_000_000);
    assert_eq!(call(&model, "PUT", SHOP, &json!({"description": "x".repeat(1024 * 1024)})).0, 413);
}

#[test]
fn a_dialect_saves_texts_in_another_spelling() {
    let profile = Profile { normalizes_values: true, ..Profile::default() };
    let model = Model::from_image(
        &usual_model(0).take_image().expect("an image"),
        ServiceOptions { profile, ..service_options(0) },
    )
    .expect("a model");
    for (method, path, sent, kept) in [
        (
            "POST",
            HOOKS,
            json!({"url": "https://Hook.Example"}),
            json!({"url": "https://hook.example/"}),
        ),
        (
            "PUT",
            "/projects/acme%2Fshop/hooks/1",
            json!({"url": "https://OTHER.example?A"}),
            json!({"url": "https://other.example/?A"}),
        ),
        (
            "PUT",
            SHOP,
            json!({"description": " a b \n", "name": " Shop"}),
            json!({"description": "a b", "name": "Shop"}),
        ),
        (
            "POST",
            "/projects",
            json!({"name": "Newer ", "description": "x "}),
            json!({"description": "x", "name": "Newer"}),
        ),
    ] {
        let (_, got) = call(&model, method, path, &sent);
        let kept = kept.as_object().into_iter().flatten();
        assert!(
            kept.clone().all(|(name, value)| got[name] == *value),
            "{method} {path} {sent}: {got}"
        );
    }
}

#[test]
fn a_dialect_quotes_sent_values_in_errors() {
    let profile = Profile { echoes_input: true, ..Profile::default() };
    let model = Model::from_image(
        &usual_model(0).take_image().expect("an image"),
        ServiceOptions { profile, ..service_options(0) },
    )
    .expect("a model");
    for (method, path, body) in [
        ("POST", VARIABLES, json!({"key": "A", "value": "geheim", "masked": true})),
        ("POST", VARIABLES, json!({"value": "geheim"})),
        (
            "PUT",
            "/projects/acme%2Fshop/hooks/9",
            json!({"url": "https://a.example", "token": "geheim"}),
        ),
        ("POST", "/nothing", json!({"value": "geheim"})),
        ("PATCH", SHOP, json!({"value": "geheim"})),
    ] {
        let (status, answer) = call(&model, method, path, &body);
        let words = answer.get("message").or(answer.get("error")).expect("words").clone();
        let quoted = [&words, &words["base"][0]]
            .iter()
            .any(|words| words.as_str().is_some_and(|text| text.ends_with(&body.to_string())));
        assert!((400..500).contains(&status) && quoted, "{method} {path}: {status} {answer}");
    }
    let (_, fine) = call(&model, "POST", VARIABLES, &json!({"key": "A", "value": "v"}));
    assert_eq!(fine["key"], "A");
}
