//! Independent clients of the service against the sandbox: code from outside this project must work
//! with it.
//!
//! The clients come from the registries of their languages. `UNDRIFT_CLIENTS` names the folder in
//! which they are installed: a Python environment `venv` with `python-gitlab`, `node_modules` with
//! `@gitbeaker/rest`, and `go`, a Go workspace whose `src` has `github.com/xanzy/go-gitlab`. A test
//! without its client reports that it did not run. `.ci/run` installs the available ones and sets
//! the variable.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use tokio::process::Command;
use undrift_sandbox::{RunningSandbox, SandboxConfig, ServiceTier, start};

/// The folder of the clients, if `client` is at `place` in it; otherwise reports on standard error
/// that the test does not run.
fn client_folder(client: &str, place: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("UNDRIFT_CLIENTS")
        .map(PathBuf::from)
        .filter(|folder| folder.join(place).exists());
    if folder.is_none() {
        // Without the captured macros, so that it is also visible without `--nocapture`.
        let _ = writeln!(
            std::io::stderr(),
            "not run: {client}, because there is no {place} in UNDRIFT_CLIENTS (see .ci/run)"
        );
    }
    folder
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandbox/clients").join(name)
}

/// Runs a client's script against a fresh sandbox; it must succeed.
async fn run(mut client: Command) {
    let sandbox: RunningSandbox =
        start(SandboxConfig { tier: Some(ServiceTier::Premium), ..SandboxConfig::default() })
            .await
            .expect("the sandbox starts");
    client.env("UNDRIFT_CLIENT_URL", sandbox.url()).env("UNDRIFT_CLIENT_TOKEN", sandbox.token());
    let output = client.output().await.expect("the client starts");
    let said = [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat();
    assert!(output.status.success(), "{said}");
    sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_gitlab() {
    let Some(clients) = client_folder("python-gitlab", "venv") else { return };
    let mut client = Command::new(clients.join("venv/bin/python"));
    client.arg(script("python_gitlab.py"));
    run(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gitbeaker() {
    let Some(clients) = client_folder("@gitbeaker/rest", "node_modules/@gitbeaker/rest") else {
        return;
    };
    let mut client = Command::new("node");
    client.arg(script("gitbeaker.cjs")).env("NODE_PATH", clients.join("node_modules"));
    run(client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn go_gitlab() {
    let Some(clients) = client_folder("go-gitlab", "go/src/github.com/xanzy/go-gitlab") else {
        return;
    };
    let mut client = Command::new("go");
    client.args(["test", "-count=1"]).arg(script("go_gitlab_test.go"));
    client.env("GO111MODULE", "off").env("GOPATH", clients.join("go"));
    run(client).await;
}
