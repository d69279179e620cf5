//! `--kinds`: collections that a user describes, from check to export.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

use crate::{harness::Place, sandbox::Server};

const DESCRIPTION: &str = "section: milestones
noun: milestone
about: A goal of issues and merge requests.
identity: [title]
fields:
  - {name: title, about: What it is called., type: text, example: '1.0'}
  - {name: description, about: What it is for., type: text, nullable: true}
  - {name: due_date, about: The day on which it ends., type: date, nullable: true}
homes:
  - path: /projects/:id/milestones
";

const RELEASE: &str = "kind: Project\npath: acme/shop\nmilestones:\n  - {title: '1.0', description: The first one, due_date: 2099-01-31}\n";

/// The sandbox with a collection that it does not have: one project's milestones.
struct Service {
    url: String,
    milestones: Arc<Mutex<BTreeMap<u64, Value>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Service {
    fn before(sandbox: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let sandbox = sandbox.trim_start_matches("http://").to_owned();
        let service = Self { url, milestones: Arc::default(), requests: Arc::default() };
        let (milestones, requests) =
            (Arc::clone(&service.milestones), Arc::clone(&service.requests));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (milestones, requests) = (Arc::clone(&milestones), Arc::clone(&requests));
                let sandbox = sandbox.clone();
                // A client that goes away ends no test.
                thread::spawn(move || {
                    serve(client.unwrap(), &sandbox, &milestones, &requests).ok()
                });
            }
        });
        service
    }

    /// What was written since this was asked last.
    fn writes(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *self.requests.lock().unwrap());
        requests.into_iter().filter(|request| !request.starts_with("GET ")).collect()
    }
}

/// Answers one request.
fn serve(
    mut client: TcpStream,
    sandbox: &str,
    milestones: &Mutex<BTreeMap<u64, Value>>,
    requests: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        if !lower.starts_with("connection:") {
            head += &line;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request = first.trim_end_matches(" HTTP/1.1\r\n").to_owned();
    let own = request.split_once("/milestones").map(|(_, rest)| rest.to_owned());
    requests.lock().unwrap().push(request.clone());
    if let Some(rest) = own {
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let id = rest.strip_prefix('/').map(|id| id.parse().unwrap());
        let answer = answer(&request, id, body, &mut milestones.lock().unwrap());
        client.write_all(answer.as_bytes())?;
    } else {
        let mut server = TcpStream::connect(sandbox)?;
        write!(server, "{first}{head}connection: close\r\n\r\n")?;
        server.write_all(&body)?;
        io::copy(&mut server, &mut client)?;
    }
    client.shutdown(Shutdown::Both)
}

fn answer(
    request: &str,
    id: Option<u64>,
    body: Value,
    milestones: &mut BTreeMap<u64, Value>,
) -> String {
    let method = request.split(' ').next().unwrap();
    let set = |milestone: &mut Value, body: Value| {
        milestone.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        milestone.clone()
    };
    let (status, found) = match (method, id) {
        ("GET", None) => ("200 OK", milestones.values().cloned().collect()),
        ("POST", None) => {
            let id = milestones.keys().last().map_or(1, |last| last + 1);
            let milestone = milestones.entry(id).or_insert_with(
                || json!({"id": id, "created_at": "2026-01-01T00:00:00.000Z", "due_date": null}),
            );
            ("201 Created", set(milestone, body))
        }
        ("PUT", Some(id)) => ("200 OK", set(milestones.get_mut(&id).unwrap(), body)),
        ("DELETE", Some(id)) => {
            milestones.remove(&id);
            ("204 No Content", Value::Null)
        }
        _ => panic!("unexpected: {request}"),
    };
    let text = if found.is_null() { String::new() } else { found.to_string() };
    let pages = found.as_array().map_or_else(String::new, |list| {
        format!("x-page: 1\r\nx-per-page: 100\r\nx-next-page: \r\nx-total: {}\r\n", list.len())
    });
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{pages}content-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

#[test]
fn a_described_collection_is_planned_applied_and_exported_as_any_other() {
    let place = Place::new()
        .file("kinds/milestones.yaml", DESCRIPTION)
        .file("m/shop.yaml", RELEASE)
        .file("seed.yaml", "groups: [{path: acme}]\nprojects: [{path: acme/shop}]\n");
    let place = place.env("UNDRIFT_SANDBOX_TOKEN", "a-token").env("UNDRIFT_TOKEN", "a-token");
    let server = Server::start(&place, "--seed seed.yaml");
    let service = Service::before(&server.url);
    let run = |arguments: &str| {
        place.run(&format!("{arguments} --kinds kinds/milestones.yaml --url {}", service.url))
    };
    let milestone = |id: u64| service.milestones.lock().unwrap().get(&id).cloned();

    insta::assert_snapshot!(run("plan m --exit-code").replace(&service.url, "[URL]"));
    assert_eq!(service.writes(), [] as [String; 0], "planning writes nothing");
    let applied = run("apply m --yes");
    assert!(applied.ends_with("---- exit code 0\n"), "{applied}");
    assert_eq!(service.writes(), ["POST /api/v4/projects/1/milestones"]);
    assert_eq!(milestone(1).unwrap()["due_date"], "2099-01-31");
    assert!(run("drift m").ends_with("---- exit code 0\n"));

    service.milestones.lock().unwrap().get_mut(&1).unwrap()["due_date"] = "2098-01-31".into();
    assert!(run("drift m").ends_with("---- exit code 2\n"));
    assert!(run("apply m --yes").ends_with("---- exit code 0\n"));
    assert_eq!(service.writes(), ["PUT /api/v4/projects/1/milestones/1"]);
    assert_eq!(milestone(1).unwrap()["due_date"], "2099-01-31");

    let exported = run("export acme -d out");
    assert!(exported.ends_with("---- exit code 0\n"), "{exported}");
    let written = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert!(written.contains("milestones:") && written.contains("2099-01-31"), "{written}");
    assert!(run("plan out --exit-code").ends_with("---- exit code 0\n"));
    let unknown = place.run("check out");
    assert!(unknown.contains("milestones") && unknown.ends_with("---- exit code 3\n"));

    place.write("m/shop.yaml", &RELEASE.replace("2099-01-31", "2099-01-31, state: absent"));
    let wrong = run("plan m");
    assert!(wrong.contains("error[absent]"), "{wrong}");
    place.write(
        "m/shop.yaml",
        &RELEASE.replace("description: The first one, due_date: 2099-01-31", "state: absent"),
    );
    let refused = run("apply m --yes");
    assert!(refused.contains("removals:acme/shop#milestones"), "{refused}");
    assert!(refused.ends_with("---- exit code 4\n") && milestone(1).is_some(), "{refused}");
    let removed = run("apply m --yes --ack removals:acme/shop#milestones");
    assert!(removed.ends_with("---- exit code 0\n"), "{removed}");
    assert_eq!(service.writes(), ["DELETE /api/v4/projects/1/milestones/1"]);
    let listed = run("call milestone-list id=acme/shop");
    assert!(listed.contains("---- stdout\n[]\n"), "{listed}");
    server.end("-TERM");
}

#[test]
fn schemas_and_lists_of_operations_have_what_is_described() {
    let place = Place::new().file("kinds/milestones.yaml", DESCRIPTION);
    let with = |arguments: &str| place.run(&format!("{arguments} --kinds kinds/milestones.yaml"));
    assert!(with("schema manifest").contains("A goal of issues and merge requests."));
    assert!(!place.run("schema manifest").contains("A goal of issues"));
    assert!(with("call --list").contains("milestone-delete"));
    assert!(with("completions bash").contains("milestone-delete"));
    insta::assert_snapshot!(with("call milestone-edit --help"));
}

#[test]
fn what_is_wrong_with_a_description_is_said_with_its_place() {
    let place = Place::new().file("m/shop.yaml", "kind: Project\npath: acme/shop\n");
    let wrong = "section: labels
noun: milestone
about: A goal of issues and merge requests.
identity: [name]
fields:
  - {name: title, about: What it is called., type: text, pattern: '[a-'}
  - {name: title, about: What it is for., type: text, create_only: true}
homes:
  - path: /projects/:id
  - path: /groups/:id/access_tokens
";
    let kind = DESCRIPTION.replace("type: date,", "type: dat,").replace("noun", "nown");
    let place = place
        .file("kinds/wrong.yaml", wrong)
        .file("kinds/schema.yaml", &kind)
        .file("kinds/broken.yaml", "section: a\nnoun: [b\n")
        .file("kinds/two.yaml", &format!("{DESCRIPTION}---\n{DESCRIPTION}"))
        .file("kinds/good.yaml", DESCRIPTION);
    let story = ["wrong", "schema", "broken", "two", "missing"]
        .map(|name| place.run(&format!("check m --kinds kinds/{name}.yaml")));
    insta::assert_snapshot!(story.join("\n"));
    let twice = place.run("check m --kinds kinds/good.yaml --kinds kinds/good.yaml");
    assert!(twice.contains("there is a section `milestones` already"), "{twice}");
    let reports = place.run("check m --kinds kinds/two.yaml --out json=-");
    assert!(
        reports.contains("\"code\":\"document\"") || reports.contains("\"code\": \"document\""),
        "{reports}"
    );
}

/// Whoever opens a merge request can change what is in the folder of the manifests.
#[test]
fn a_description_in_the_folder_of_the_manifests_is_not_read() {
    let place = Place::new().file("m/shop.yaml", RELEASE).file("m/kind.txt", DESCRIPTION);
    for arguments in ["check m --kinds m/kind.txt", "check m/shop.yaml --kinds m/kind.txt"] {
        let refused = place.run(arguments);
        assert!(refused.contains("error[kind-description-place]"), "{refused}");
        assert!(refused.ends_with("---- exit code 3\n"), "{refused}");
    }
    place.write("undrift.yaml", "version: 1\nkinds: [kind.txt]\n");
    place.write("kind.txt", DESCRIPTION);
    let refused = place.run("check m --kinds kind.txt");
    assert!(refused.contains("error[kind-description-place]"), "the root is above: {refused}");
    assert!(place.run("check m").contains("unknown key `kinds`"));
}
