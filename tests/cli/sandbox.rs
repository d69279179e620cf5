//! The embedded service as a server, and signals.
#![cfg(all(unix, feature = "sandbox"))]

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use crate::harness::Workspace;

const SHOP: &str =
    "kind: Project\npath: acme/shop\ncreate: true\nsettings: {description: What we sell}\n";
const SEED: &str = "groups: [{path: acme, members: [{user: root, access_level: owner}]}]\n";

/// A running server with its output at the start.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(place: &Workspace, arguments: &str) -> Self {
        let mut child = place
            .command(&format!("sandbox {arguments}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let url = line
            .trim()
            .strip_prefix("listening on ")
            .unwrap_or_else(|| panic!("{line:?}"))
            .to_owned();
        Self { child, stdout, url }
    }

    /// Ends it with a signal; returns the rest of its output, and its exit code.
    pub(crate) fn end(mut self, signal: &str) -> (String, Option<i32>) {
        send(signal, &self.child);
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

/// A failing test leaves no server behind.
impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.child.kill().and_then(|()| self.child.wait()).expect("the server ends");
        }
    }
}

pub(crate) fn send(signal: &str, child: &Child) {
    assert!(
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success()
    );
}

#[test]
fn a_server_prints_its_address_and_ends_with_0_on_a_signal() {
    let place = Workspace::new().env("UNDRIFT_SANDBOX_TOKEN", "chosen-token");
    for signal in ["-TERM", "-INT"] {
        let server = Server::start(&place, "");
        assert!(server.url.starts_with("http://127.0.0.1:"));
        assert_eq!(
            server.end(signal),
            (String::new(), Some(0)),
            "a token that was given is not told"
        );
    }
    let (rest, code) = Server::start(&Workspace::new(), "").end("-TERM");
    assert!(rest.starts_with("token: ") && code == Some(0), "{rest}");
}

#[test]
fn a_server_for_all_addresses_responses_to_them_and_to_names_that_are_allowed() {
    let server =
        Server::start(&Workspace::new(), "--listen 0.0.0.0:0 --allow-host box --allow-host other");
    let port = server
        .url
        .strip_prefix("http://0.0.0.0:")
        .unwrap_or_else(|| panic!("{}", server.url))
        .to_owned();
    let status = |host: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        write!(stream, "GET /api/v4/version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).map(str::to_owned)
    };
    let own_address = format!("0.0.0.0:{port}");
    for (host, answered) in [
        (&*own_address, "401"),
        ("192.0.2.1:9000", "401"),
        ("box:80", "401"),
        ("Other", "401"),
        ("third", "403"),
    ] {
        assert_eq!(status(host).as_deref(), Some(answered), "{host}");
    }
    assert_eq!(server.end("-TERM").1, Some(0));
    for wrong in ["http://box", "box:80", "''"] {
        let refused = Workspace::new().run(&format!("sandbox --allow-host {wrong}"));
        assert!(
            refused.contains("without scheme and port") && refused.ends_with("---- exit code 3\n"),
            "{refused}"
        );
    }
}

#[test]
fn a_seed_that_is_wrong_is_refused_with_its_lines_and_without_its_secrets() {
    let seed = "\
users: [{username: ann, token: CANARY}, {token: 5, nmae: Ann}]
projects:
  - {path: acme/shop, hooks: CANARY}
";
    let place = Workspace::new().file("m/shop.yaml", SHOP).file("m/sandbox.yaml", seed);
    let refused = place.run("plan m --sandbox");
    for told in [
        "m/sandbox.yaml:1:42",
        "`username` is missing",
        "users: [{username: ann, token: ***}, {token: ***, nmae: Ann}]",
        "m/sandbox.yaml:1:49",
        "`token` must be text",
        "unknown field `nmae`",
        "did you mean `name`?",
        "m/sandbox.yaml:3:30",
        "`hooks` must be a list",
    ] {
        assert!(refused.contains(told), "{told}: {refused}");
    }
    assert!(!refused.contains("CANARY"), "{refused}");
    assert!(refused.ends_with("---- exit code 3\n"), "{refused}");
}

#[test]
fn the_rules_of_the_sandbox_are_listed() {
    let table = Workspace::new().run("sandbox --facts");
    assert!(table.contains("variable-ambiguous") && table.contains(" inferred; "), "{table}");
    assert!(table.ends_with("---- exit code 0\n"), "{table}");
}

#[test]
fn plan_and_apply_work_against_a_sandbox_server() {
    let place = Workspace::new().file("m/shop.yaml", SHOP).file("seed.yaml", SEED);
    let place =
        place.env("UNDRIFT_SANDBOX_TOKEN", "chosen-token").env("UNDRIFT_TOKEN", "chosen-token");
    let server = Server::start(&place, "--seed seed.yaml --request-log log --data data.db");
    let code = |arguments: &str| {
        place.output(&format!("{arguments} m --url {}/api/v4/", server.url)).status.code()
    };
    assert_eq!(code("plan --exit-code"), Some(2));
    assert_eq!(code("plan --max-requests 1"), Some(8), "the budget is spent");
    assert_eq!(code("apply --yes"), Some(0));
    assert_eq!(code("drift"), Some(0));
    let second = place.output("plan m --sandbox=data.db");
    assert_eq!(second.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&second.stderr).contains("is in use by another sandbox"));
    assert_eq!(server.end("-TERM").1, Some(0));
    assert!(!std::fs::read_to_string(place.path().join("log")).unwrap().contains("chosen-token"));
}

#[test]
fn a_wrong_token_has_its_own_exit_code() {
    let place =
        Workspace::new().file("m/shop.yaml", SHOP).env("UNDRIFT_TOKEN", "wrong-canary-token");
    let server = Server::start(&place, "");
    let denied = place.run(&format!("plan m -vv --url {}", server.url));
    assert!(denied.ends_with("---- exit code 7\n") && !denied.contains("canary"), "{denied}");
    server.end("-TERM");
}

#[test]
fn forbidden_reads_make_a_run_incomplete() {
    let variables = "variables: [{key: MODE, value: fast}]\n";
    let place = Workspace::new().file("m/shop.yaml", &format!("{SHOP}{variables}"));
    let members = "members: [{user: dora, access_level: developer}]";
    let seed = format!(
        "users: [{{username: dora, token: token-of-dora}}]\nprojects: [{{path: acme/shop, {members}}}]\n"
    );
    let place = place.file("seed.yaml", &seed).env("UNDRIFT_TOKEN", "token-of-dora");
    let server = Server::start(&place, "--seed seed.yaml");
    let drift = place.run(&format!("drift m --url {}", server.url));
    assert!(
        drift.contains("acme/shop#variables")
            && drift.contains("incomplete: 1 group or project could not be read completely"),
        "{drift}"
    );
    assert!(
        drift.ends_with("---- exit code 10\n"),
        "incomplete goes before the difference of the settings: {drift}"
    );
    server.end("-TERM");
}

/// A proxy between undrift and the service that holds back the first write.
struct GatedProxy {
    url: String,
    held: Receiver<()>,
    release: Sender<()>,
}

impl GatedProxy {
    fn before(service: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let service = service.trim_start_matches("http://").to_owned();
        let (tell, held) = channel();
        let (release, wait) = channel();
        let gate = Arc::new(Mutex::new(Some((tell, wait))));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&service).unwrap());
                let (mut back_from, mut back_to) =
                    (server.try_clone().unwrap(), client.try_clone().unwrap());
                thread::spawn(move || {
                    io::copy(&mut back_from, &mut back_to)
                        .and_then(|_| back_to.shutdown(Shutdown::Both))
                });
                let gate = Arc::clone(&gate);
                thread::spawn(move || forward(client, server, &gate));
            }
        });
        Self { url, held, release }
    }
}

/// Forwards the client's requests; the first `POST` waits at the gate.
fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    gate: &Mutex<Option<(Sender<()>, Receiver<()>)>>,
) {
    let mut bytes = [0; 1 << 16];
    while let Ok(length @ 1..) = client.read(&mut bytes) {
        if bytes.starts_with(b"POST ")
            && let Some((tell, wait)) = gate.lock().unwrap().take()
        {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        }
        server.write_all(&bytes[..length]).unwrap();
    }
    // The other side may have disconnected first.
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn an_interrupted_apply_finishes_its_calls_and_starts_no_more() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let variables = "variables: [{key: MODE, value: fast}]\n";
        let place = Workspace::new()
            .file("m/shop.yaml", &format!("{SHOP}{variables}"))
            .file("seed.yaml", SEED);
        let place =
            place.env("UNDRIFT_SANDBOX_TOKEN", "chosen-token").env("UNDRIFT_TOKEN", "chosen-token");
        let server = Server::start(&place, "--seed seed.yaml");
        let gate = GatedProxy::before(&server.url);
        let mut command = place.command(&format!("apply m --yes --url {}", gate.url));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        gate.held.recv().unwrap();
        send(signal, &child);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let told = stderr.lines().find(|line| line.as_ref().unwrap().starts_with("interrupted: "));
        assert!(told.is_some());
        gate.release.send(()).unwrap();
        let output = child.wait_with_output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        assert!(
            report.contains("+ project  done\n  + variables/MODE@*  not started\n"),
            "{report}"
        );
        assert_eq!(output.status.code(), Some(code));
        let rest = place.output(&format!("apply m --yes --url {}", server.url));
        assert_eq!(rest.status.code(), Some(0), "another run finishes it");
        server.end("-TERM");
    }
}

/// A seed is checked like a manifest, and settings that the service would ignore are faults.
#[test]
fn check_reports_faults_of_a_seed_too() {
    for (seed, says, code) in [
        ("group: [{path: acme}]\n", "use `groups`", 3),
        ("groups: [acme]\n", "must be a mapping", 3),
        // A section of projects has the same name, and other entries.
        ("runners: builder\n", "`runners` must be a list", 3),
        ("runners: [builder]\n", "must be a mapping", 3),
        ("projects: [{path: acme/shop, variables: {A: b}}]\n", "[{key: LOG_LEVEL, ", 3),
        (
            "groups: [{path: acme}]\nprojects:\n  - path: acme/shop\n    members: [{user: bob, access_level: owner}]\n",
            "m/sandbox.yaml:4:22",
            3,
        ),
        (
            "users: [{username: alice}]\ngroups: [{path: acme, members: [{user: alcie, access_level: owner}]}]\n",
            "did you mean `alice`? Otherwise list it under `users`",
            3,
        ),
        // The sandbox also refuses another field than the unknown one.
        (
            "groups: [{path: acme}]\nprojects: [{path: acme/shop, settings: {visibility: public, merge_metod: ff}}]\n",
            "m/sandbox.yaml:2:53",
            3,
        ),
        ("projects:\n  - path: acme/shop\n    hooks: [{url: a}]\n", "m/sandbox.yaml:3:14", 3),
        ("projects: [{path: acme/shop, settings: {visibility: secret}}]\n", "sandbox.yaml:1:53", 3),
        (
            "projects:\n  - {path: acme/shop, settings: {merge_metod: ff}}\n",
            "did you mean `merge_method`?",
            3,
        ),
        (
            "groups: [{path: acme}]\nprojects: [{path: acme/shop, settings: {merge_method: ff}}]\n",
            "",
            0,
        ),
    ] {
        let place = Workspace::new()
            .file("m/shop.yaml", "kind: Project\npath: acme/shop\n")
            .file("m/sandbox.yaml", seed);
        for command in ["check m", "plan m --sandbox"] {
            let output = place.run(command);
            assert!(output.contains(says), "{output}");
            assert_eq!(output.contains("m/sandbox.yaml:"), code == 3, "{output}");
            assert!(output.ends_with(&format!("---- exit code {code}\n")), "{output}");
        }
    }
}

#[test]
fn a_wrong_file_or_address_gets_its_cure() {
    let shop = format!("{SHOP}variables: [{{key: A, value: b}}]\n");
    let place = Workspace::new()
        .file("manifests/shop.yaml", &shop)
        .file("manifests/sandbox.yaml", SEED)
        .file("other/shop.yaml.j2", &shop);
    let seed = "where `--sandbox` alone reads it";
    for (arguments, cure) in [
        ("plan manifests --sandbox=manifests/sandbox.yaml", seed),
        ("plan manifests --sandbox manifests/sandbox.yaml", seed),
        ("plan manifests --sandbox --out json=reports/plan.json", "`mkdir -p reports`"),
        ("check manifest", "did you mean `manifests`?"),
        ("check other", "skipped here: `other/shop.yaml.j2`"),
        ("sandbox --seed manifests/sandbx.yaml", "did you mean `manifests/sandbox.yaml`?"),
        (
            "absorb acme/shop#variables/A -d manifests --sandbox",
            "did you mean `acme/shop#variables/A@*`?",
        ),
    ] {
        let output = place.run(arguments);
        assert!(output.contains(cure), "{output}");
        assert!(output.ends_with("---- exit code 3\n"), "{output}");
    }
}

#[test]
fn a_new_sandbox_without_a_seed_names_its_file() {
    let place = Workspace::new().file("m/shop.yaml", "kind: Project\npath: acme/shop\n");
    let note = "note: the sandbox starts empty; write its initial users, groups and projects to `m/sandbox.yaml`";
    assert!(place.run("plan m --sandbox").contains(note));
    assert!(!place.run("plan m --sandbox").contains(note), "it has data");
    place.write("m/sandbox.yaml", "groups: [{path: acme}]\n");
    assert!(!place.run("plan m --sandbox=new.db").contains(note));
}

/// As in manifests, in any case, and as the service shows them.
#[test]
fn levels_of_members_in_a_seed_may_be_words() {
    let check = |level: &str| {
        let member = format!("{{user: alice, access_level: {level}}}");
        let seed = format!(
            "users: [{{username: alice}}]\ngroups: [{{path: acme, members: [{member}]}}]\n"
        );
        let group = "kind: Group\npath: acme\n";
        let place = Workspace::new().file("sandbox.yaml", &seed).file("acme.yaml", group);
        place.run("check .") + &place.run("call group-get id=acme --sandbox=s.db")
    };
    for level in ["Owner", "OWNER", "minimal_access", "Minimal Access", "50"] {
        let said = check(level);
        assert_eq!(said.matches("exit code 0").count(), 2, "{said}");
    }
    let said = check("boss");
    assert!(said.contains("must be `minimal_access`") && !said.contains("exit code 0"), "{said}");
}

#[test]
fn levels_of_protected_branches_in_a_seed_may_be_words() {
    let seed = |level: &str| {
        format!(
            "groups: [{{path: acme}}]
projects:
  - path: acme/shop
    protected_branches:
      - {{name: main, push_access_level: {level}, merge_access_level: no_access}}
      - {{name: x, allowed_to_push: [{{access_level: Developer}}]}}
"
        )
    };
    let place = Workspace::new().file("sandbox.yaml", &seed("maintainer"));
    let said = place.run("export acme -d out --sandbox=s.db");
    assert!(said.contains("exit code 0"), "{said}");
    let text = std::fs::read_to_string(place.path().join("out/acme.yaml")).unwrap();
    assert!(text.contains("access_level: developer"), "{text}");
    let place = Workspace::new().file("sandbox.yaml", &seed("maintaner"));
    let said = place.run("export acme -d out --sandbox=s.db");
    assert!(said.contains("sandbox.yaml:5:41") && said.contains("exit code 3"), "{said}");
}
