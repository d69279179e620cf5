//! No command shows a secret, at any verbosity; and commands that only read never write.
#![cfg(all(unix, feature = "sandbox"))]

use serde_json::Value;

use crate::{harness::Workspace, sandbox::Server};

/// Secrets, each with its location. None may be shown.
const CANARIES: &[(&str, &str)] = &[
    ("undrift's token", "canary-token/of+undrift=="),
    ("a variable's value", "canary-variable-from-env"),
    ("a value that cannot be masked", "canary refused \"as masked\""),
    ("a hook's token", "canary-hook-token"),
    ("a hook's URL", "https://canary-user:canary-pass@hooks.example.org/canary-path?canary=1"),
    ("a file", "canary-in-a-file\ncanary-second-line"),
    ("an import", "https://canary-import:canary-import-pass@git.example.org/x.git"),
    ("a live variable", "canary-live-variable"),
    ("a live hook", "canary-live-user:canary-live-pass"),
    ("a live query", "canary-live-query"),
    ("a masked literal", "canary-masked-literal"),
];

fn place() -> Workspace {
    let manifest = r#"kind: Project
path: acme/shop
settings: {description: new}
variables:
  - {key: FROM_ENV, value: {env: VARIABLE}, masked: true}
  - {key: FROM_FILE, value: {file: secret.txt}}
  - {key: LITERAL, value: canary-masked-literal, masked: true}
  - {key: LIVE, value: {env: VARIABLE}}
hooks:
  - {name: ci, url: {env: HOOK_URL}, token: {env: HOOK_TOKEN}}
  - {name: live, url: "https://new.example.org", previously: ["https://canary-live-user:canary-live-pass@old.example.org/?k=canary-live-query"], token: {env: HOOK_TOKEN}}
---
kind: Project
path: acme/imported
create: true
settings: {import_url: {env: IMPORT_URL}}
"#;
    let seed = r#"groups: [{path: acme, members: [{user: root, access_level: owner}]}]
projects:
  - path: acme/shop
    variables:
      - {key: LIVE, value: canary-live-variable}
      - {key: UNLISTED, value: canary-live-variable}
    hooks:
      - {url: "https://canary-live-user:canary-live-pass@old.example.org/?k=canary-live-query"}
      - {url: "https://canary-live-user:canary-live-pass@unlisted.example.org/?k=canary-live-query"}
"#;
    let canary = |about: &str| CANARIES.iter().find(|(name, _)| *name == about).unwrap().1;
    Workspace::new()
        .file("m/shop.yaml", manifest)
        .file("m/secret.txt", canary("a file"))
        .file("refused/refused.yaml", "kind: Project\npath: acme/shop\nvariables: [{key: A, value: {env: REFUSED}, masked: true}]\n")
        .file("seed.yaml", seed)
        .env("UNDRIFT_TOKEN", canary("undrift's token"))
        .env("UNDRIFT_SANDBOX_TOKEN", canary("undrift's token"))
        .env("UNDRIFT_LOG", "trace")
        .env("VARIABLE", canary("a variable's value"))
        .env("REFUSED", canary("a value that cannot be masked"))
        .env("HOOK_TOKEN", canary("a hook's token"))
        .env("HOOK_URL", canary("a hook's URL"))
        .env("IMPORT_URL", canary("an import"))
}

/// The forms in which a text may leak.
fn leak_forms(secret: &str) -> Vec<String> {
    let mut forms: Vec<String> = secret.lines().map(str::to_owned).collect();
    forms.push(undrift::text::encode(secret).to_string());
    forms.push(serde_json::Value::from(secret).to_string().trim_matches('"').to_owned());
    forms.push(secret.bytes().map(|byte| format!("{byte:02x}")).collect());
    forms.push(secret.chars().rev().collect());
    forms.push(base64(secret.as_bytes()).trim_end_matches('=').to_owned());
    // Each part of a URL could be used by somebody.
    forms.extend(
        secret
            .split(['/', '@', ':', '?', '='])
            .filter(|part| part.contains("canary"))
            .map(str::to_owned),
    );
    forms
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        (0..4)
            .map(move |i| {
                if i > group.len() {
                    '='
                } else {
                    char::from(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize])
                }
            })
            .collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

#[test]
fn no_secret_is_in_any_output() {
    let place = place();
    let server = Server::start(&place, "--seed seed.yaml --request-log log");
    let mut outputs = vec![("the request log".to_owned(), String::new())];
    for command in [
        "check m",
        "plan m -vv --out json=plan.json --full",
        "plan m -vv --out json=-",
        "apply m -vv --yes --out json=apply.json",
        "plan m -vv",
        "apply m -vv --yes --resend **",
        "drift m -vv",
        "drift m -vv --out json=-",
        "plan refused -vv",
        "apply refused -vv --yes",
    ] {
        let url = if command.starts_with("check") {
            String::new()
        } else {
            format!("--url {}", server.url)
        };
        let output = place.output(&format!("{command} {url}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        outputs.push((command.to_owned(), text));
    }
    server.end("-TERM");
    for file in ["plan.json", "apply.json", "log"] {
        outputs.push((file.to_owned(), std::fs::read_to_string(place.path().join(file)).unwrap()));
    }
    let applied =
        &outputs.iter().find(|(name, _)| name.starts_with("apply m -vv --yes --out")).unwrap().1;
    assert!(applied.contains("hooks/ci  done"), "nothing was tried: {applied}");
    for (name, text) in &outputs {
        for (about, canary) in CANARIES {
            for form in leak_forms(canary) {
                assert!(
                    !text.contains(&form),
                    "{about} is in the output of `{name}` as `{form}`:\n{text}"
                );
            }
        }
    }
}

/// Secrets that would break JSON or its keys if they were removed from the finished text.
const AWKWARD_SECRETS: [&str; 6] = [
    "{\n  \"auths\": {\n    \"a.example.org\": {\"auth\": \"QUJDREVG\"},\n    \"b.example.org\": {}\n  }\n}",
    "a \"quoted\" \\ word\nand a second line",
    "address",
    "update",
    "description",
    "[secret]",
];

/// Every text in `json`, without keys.
fn texts(json: &Value) -> Vec<&str> {
    match json {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(object) => object.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// A project whose description contains all of [`AWKWARD_SECRETS`], and a manifest that refers to them as
/// `S0` and so on.
fn awkward_place() -> Workspace {
    let settings = serde_json::json!({"description": AWKWARD_SECRETS.join(" and ")});
    let seed = format!(
        "groups: [{{path: acme}}]\nprojects: [{{path: acme/shop, settings: {settings}}}]\n"
    );
    let variables: Vec<_> = (0..AWKWARD_SECRETS.len())
        .map(|i| format!("{{key: K{i}, value: {{env: S{i}}}}}"))
        .collect();
    let variables =
        format!("variables: [{{key: KEY, value: {{env: KEY}}}}, {}]\n", variables.join(", "));
    let settings = "settings: {description: new, extra: {canary-key: {canary-key: 1}}}\n";
    let place = Workspace::new()
        .file("shop.yaml", &format!("kind: Project\npath: acme/shop\n{settings}{variables}"));
    let place = place.file("sandbox.yaml", &seed).env("KEY", "canary-key");
    AWKWARD_SECRETS
        .iter()
        .enumerate()
        .fold(place, |place, (i, secret)| place.env(&format!("S{i}"), secret))
}

fn assert_no_secret(json: &Value) {
    let secret_texts: Vec<_> = texts(json)
        .into_iter()
        .filter(|text| ["QUJDREVG", "quoted", "canary"].iter().any(|part| text.contains(part)))
        .collect();
    assert_eq!(secret_texts, [""; 0], "{json:#}");
}

#[test]
fn a_report_does_not_depend_on_the_secrets() {
    let place = awkward_place();
    for command in ["plan --sandbox --resend ** --out json=-", "drift --sandbox --out json=-"] {
        let report: Value = serde_json::from_slice(&place.output(command).stdout).unwrap();
        assert_no_secret(&report);
        let (step, variable) = (&report["steps"][0], &report["steps"][1]);
        assert_eq!(
            (step["address"]["full"].as_str(), step["action"].as_str()),
            (Some("acme/shop#settings"), Some("update"))
        );
        let description = step["changes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|change| change["field"] == "description")
            .unwrap();
        let before = description["before"]["value"].as_str().unwrap();
        assert_eq!(before, ["[secret]"; AWKWARD_SECRETS.len()].join(" and "));
        assert_eq!(variable["action"], "create");
    }
    let report: Value =
        serde_json::from_slice(&place.output("plan --sandbox --resend ** --out json=-").stdout)
            .unwrap();
    let extra = &report["steps"][0]["changes"][0];
    assert_eq!(
        (extra["field"].as_str(), extra["after"]["value"].get("[secret]").is_some()),
        (Some("[secret]"), true),
        "{extra:#}"
    );
}

#[test]
fn a_response_does_not_depend_on_the_secret() {
    let place = awkward_place();
    for i in 0..AWKWARD_SECRETS.len() {
        let output = place.output(&format!(
            "call project-edit id=acme/shop description=@env:S{i} --sandbox --yes"
        ));
        let response: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_no_secret(&response);
        assert_eq!(
            (response["description"].as_str(), response["path"].as_str()),
            (Some("[secret]"), Some("shop")),
            "{response:#}"
        );
    }
}

#[test]
fn commands_that_only_read_write_nothing() {
    let place = place();
    let server = Server::start(&place, "--seed seed.yaml --request-log log");
    for command in ["plan m", "plan m --exit-code", "drift m", "plan m --resend **"] {
        place.output(&format!("{command} --url {}", server.url));
    }
    place.output("check m");
    server.end("-TERM");
    let log = std::fs::read_to_string(place.path().join("log")).unwrap();
    assert!(log.lines().count() > 10, "{log}");
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["method"], "GET", "{line}");
    }
}

#[test]
fn the_token_of_undrift_is_not_a_value_under_any_name() {
    const TOKEN: &str = "canary-token-of-undrift";
    let shop = |rest: &str| format!("kind: Project\npath: acme/shop\n{rest}\n");
    let place = Workspace::new()
        .file("seed.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n")
        .file("env/a.yaml", &shop("variables: [{key: A, value: {env: ADMIN_TOKEN}}]"))
        .file("part/a.yaml", &shop("hooks: [{url: {env: MIRROR}}]"))
        .file("file/a.yaml", &shop("variables: [{key: A, value: {file: token}}]"))
        .file("file/token", &format!("{TOKEN}\n"))
        .file("upload/a.yaml", &shop("settings: {avatar: {file: token.png}}"))
        .file("upload/token.png", &format!("{TOKEN}\n"))
        .env("UNDRIFT_SANDBOX_TOKEN", TOKEN)
        .env("ADMIN_TOKEN", TOKEN)
        .env("MIRROR", &format!("https://oauth2:{TOKEN}@mirror.example.org/x.git"));
    let server = Server::start(&place, "--seed seed.yaml --request-log log");
    for (manifests, reference) in [
        ("env", "env:ADMIN_TOKEN"),
        ("part", "env:MIRROR"),
        ("file", "file:token"),
        ("upload", "file:token.png"),
    ] {
        let arguments = format!("{manifests} --token-file file/token --url {}", server.url);
        let plan = place.run(&format!("plan {arguments}"));
        assert!(
            plan.contains(&format!("({reference})\n")) && plan.ends_with("exit code 0\n"),
            "{plan}"
        );
        let apply = place.run(&format!("apply --yes {arguments}"));
        let refused = format!(
            "error[own-token]: `{reference}` holds undrift's own token and must not be a value"
        );
        assert!(apply.contains(&refused) && apply.ends_with("---- exit code 3\n"), "{apply}");
        assert!(!plan.contains("canary") && !apply.contains("canary"), "{plan}{apply}");
    }
    server.end("-TERM");
    assert!(!std::fs::read_to_string(place.path().join("log")).unwrap().contains("\"POST\""));
}

#[test]
fn manifests_use_only_the_environment_variables_that_are_allowed() {
    let variables =
        "variables: [{key: A, value: {env: SHOP_KEY}}, {key: B, value: {env: OTHER_KEY}}]\n";
    let place = || {
        let place = Workspace::new().file(
            "shop.yaml",
            &format!("kind: Project\npath: acme/shop\ncreate: true\n{variables}"),
        );
        place
            .file("sandbox.yaml", "groups: [{path: acme}]\n")
            .env("SHOP_KEY", "canary-of-shop")
            .env("OTHER_KEY", "canary-of-another")
    };
    for (options, variable, refused) in [
        ("", None, None),
        ("--allow-env SHOP_*", None, Some("OTHER_KEY")),
        ("--allow-env SHOP_* --allow-env OTHER_KEY", None, None),
        ("", Some("A_*, OTHER_*"), Some("SHOP_KEY")),
        ("", Some("SHOP_*\nOTHER_*"), None),
        ("--allow-env *", Some("A_*"), None),
    ] {
        let place = variable
            .into_iter()
            .fold(place(), |place, globs| place.env("UNDRIFT_ALLOW_ENV", globs));
        let story = place.run(&format!("apply --sandbox=:memory: --yes {options}"));
        let message = refused.map(|name| {
            format!(
                "error[missing-secret]: `{name}` must not be a value: `--allow-env` or UNDRIFT_ALLOW_ENV allows only `"
            )
        });
        let check = place.run(&format!("check {options}"));
        assert_eq!(
            message.as_ref().is_some_and(|message| check.contains(message)),
            check.ends_with("---- exit code 3\n"),
            "{check}"
        );
        assert_eq!(story.ends_with("---- exit code 3\n"), refused.is_some(), "{story}");
        assert!(
            message.is_none_or(|message| story.contains(&message)) && !story.contains("canary"),
            "{story}"
        );
    }
    let story = place().run("plan --sandbox --allow-env SHOP_[");
    assert!(story.starts_with("$ undrift plan --sandbox --allow-env SHOP_[\n---- stderr\nerror: --allow-env: `SHOP_[`: "), "{story}");
}

/// Live credentials in open fields: in the identity of an entry, alone, in a sentence, and in a
/// template.
const LIVE_MANIFEST: &str = r"kind: Project
path: acme/shop
settings: {description: deploy with glpat-LiveCanary0123456789}
environments:
  - {name: a, external_url: 'https://bot:LiveCanary0123456789@e.example.org'}
badges:
  - {link_url: 'https://ci.example.org', image_url: 'https://ci.example.org/b?private_token=LiveCanary0123456789'}
labels:
  - {name: c, color: '#ff0000', description: 'https://hooks.slack.com/services/T0/B0/LiveCanary0123456789'}
milestones:
  - {title: d, description: 'see https://h.example.org/x#access_token=LiveCanary0123456789 for more'}
integrations:
  - slug: redmine
    project_url: https://h.example.org
    issues_url: https://h.example.org/x?token=LiveCanary0123456789/:id
    new_issue_url: https://h.example.org
";

/// The same with other values, and one entry less.
const CHANGED_MANIFEST: &str = r"kind: Project
path: acme/shop
settings: {description: new}
environments:
  - {name: a, external_url: 'https://e.example.org'}
badges: []
labels: []
milestones: []
unlisted: {milestones: delete}
integrations:
  - slug: redmine
    project_url: https://h.example.org
    issues_url: https://h.example.org/:id
    new_issue_url: https://h.example.org
";

#[test]
fn a_live_credential_leaves_in_no_output_and_no_file() {
    let seed = "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n";
    let place =
        Workspace::new().file("org/sandbox.yaml", seed).file("org/shop.yaml", LIVE_MANIFEST);
    let applied = place.run("apply org --yes --sandbox=state.db");
    assert!(applied.contains("exit code 0"), "{applied}");
    place.write("org/shop.yaml", CHANGED_MANIFEST);
    let formats = ["json", "markdown", "gitlab-terraform", "codequality", "html", "concise"]
        .map(|format| format!(" --out {format}=out/{format}"));
    std::fs::create_dir(place.path().join("out")).unwrap();
    let plan = format!("plan org --full --sandbox=state.db -o out/saved.json{}", formats.concat());
    let mut shown: Vec<(&str, String)> = Vec::new();
    for command in [
        &*plan,
        "drift org --sandbox=state.db",
        "snapshot org -o out/live.json --sandbox=state.db",
        "plan org --live out/live.json",
        "explain acme/shop#environments/a -d org --sandbox=state.db",
        "absorb acme/shop#** -d org --sandbox=state.db",
        "absorb acme/shop#settings -d org --sandbox=state.db",
        "export acme/shop -d out/plain --partial --sandbox=state.db",
        "export acme/shop -d out/env --values env --partial --sandbox=state.db",
        "export acme/shop -d out/none --values none --all --partial --sandbox=state.db",
        "export acme/shop -d org --update --partial --sandbox=state.db",
        "call project-get id=acme/shop --sandbox=state.db",
        "call environment-list id=acme/shop --sandbox=state.db",
        "apply org --yes --sandbox=state.db -vv --out json=out/applied.json",
    ] {
        let output = place.output(command);
        let text = [output.stdout, output.stderr].concat();
        shown.push((command, String::from_utf8(text).unwrap()));
    }
    let mut folders = vec![place.path().join("out"), place.path().join("org")];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            if file.is_dir() {
                folders.push(file);
            } else {
                shown.push(("a file", std::fs::read_to_string(file).unwrap()));
            }
        }
    }
    assert!(shown[0].1.contains("\nplan: "), "{}", shown[0].1);
    assert!(shown.len() > 14 + 13, "{shown:#?}");
    for (what, text) in shown {
        assert!(!text.contains("LiveCanary"), "{what}: {text}");
    }
}
