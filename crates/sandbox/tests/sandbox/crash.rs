//! After `kill -9`, a valid file has every answered write.
//!
//! A normal run takes a few rounds; `UNDRIFT_CRASH_ROUNDS=200` sets their number.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use undrift_sandbox::{DataLocation, SandboxConfig, start};

use super::client::{ROOT, client, usual_seed};

const ROUNDS: usize = 20;
const WRITERS: usize = 4;
/// The maximum number of answered writes in a round.
const MAX_ANSWERS: usize = 60;

/// The environment variables with the file of the data and with the seed.
const FILE_VARIABLE: &str = "UNDRIFT_CRASH_FILE";
const SEED_VARIABLE: &str = "UNDRIFT_CRASH_SEED";

/// The sandbox as a process, and its address: this program, with only the test [`serve_until_killed`].
fn sandbox(file: &Path) -> (Child, String) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["crash::serve_until_killed", "--exact", "--ignored", "--nocapture"])
        .env_clear()
        .env(FILE_VARIABLE, file)
        .env(SEED_VARIABLE, usual_seed().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a process");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut lines = lines.map(|line| line.expect("a line"));
    let url = lines.find_map(|line| Some(line.split_once("listening on ")?.1.to_owned()));
    (child, url.expect("it starts"))
}

/// The process of the other test.
#[tokio::test]
#[ignore = "it ends only when it is killed"]
async fn serve_until_killed() {
    let Some(file) = std::env::var_os(FILE_VARIABLE) else { return };
    let seed = std::env::var(SEED_VARIABLE).expect("a seed");
    let config = SandboxConfig {
        data: DataLocation::File(file.into()),
        seed: Some(serde_json::from_str(&seed).expect("a seed")),
        token: Some(ROOT.to_owned()),
        ..SandboxConfig::default()
    };
    let sandbox = start(config).await.expect("it starts");
    writeln!(std::io::stdout(), "listening on {}", sandbox.url()).expect("a reader");
    std::future::pending::<()>().await;
}

/// Creates variables in both projects until the service stops; sends the key of each answered one.
async fn write(url: String, name: String, answered: mpsc::UnboundedSender<String>) {
    let http = client();
    for number in 0.. {
        let key = format!("{name}_{number}");
        let address = format!("{url}/api/v4/projects/{}/variables", number % 2 + 1);
        let body = json!({"key": key, "value": "x".repeat(number)}).to_string();
        let request = http
            .post(address)
            .header("PRIVATE-TOKEN", ROOT)
            .header("content-type", "application/json")
            .body(body);
        match request.send().await {
            Ok(response) if response.status() == 201 => {
                if answered.send(key).is_err() {
                    return;
                }
            }
            Ok(response) => panic!("{}", response.status()),
            Err(_) => return,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_sandbox_has_lost_nothing_that_it_answered() {
    let rounds = std::env::var("UNDRIFT_CRASH_ROUNDS")
        .map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("data.db");
    let mut kept: Vec<String> = Vec::new();
    for round in 0..rounds {
        let (mut child, url) = sandbox(&file);
        let (tell, mut answered) = mpsc::unbounded_channel();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                tokio::spawn(write(url.clone(), format!("R{round}_{writer}"), tell.clone()))
            })
            .collect();
        drop(tell);
        // The other writers are in the middle of their calls.
        for _ in 0..rand::random_range(1..=MAX_ANSWERS) {
            kept.push(answered.recv().await.expect("writers go on while the service is there"));
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        for writer in writers {
            writer.await.expect("a writer ends with the service");
        }
        // Answers that were in flight.
        while let Some(key) = answered.recv().await {
            kept.push(key);
        }

        let data = Connection::open(&file).expect("it opens again");
        let integrity: String =
            data.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
        assert_eq!(integrity, "ok", "round {round}");
        let lost: Vec<Value> = data
            .prepare(
                "SELECT value FROM json_each(?1) WHERE value NOT IN (SELECT settings ->> 'key' FROM variables)",
            )
            .expect("a query")
            .query_map([Value::from(kept.clone()).to_string()], |row| {
                row.get::<_, String>(0).map(Value::from)
            })
            .expect("rows")
            .collect::<Result<_, _>>()
            .expect("keys");
        assert!(lost.is_empty(), "round {round}: answered and lost: {lost:?}");
    }
    assert!(kept.len() >= rounds, "there was something to lose");
}
