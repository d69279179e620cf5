//! The build without the sandbox has everything except the embedded service.
#![cfg(not(feature = "sandbox"))]

use std::process::Command;

#[test]
fn the_lean_build_checks_manifests_and_has_no_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.yaml"), "kind: Project\npath: acme/shop\n").unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_undrift"));
        command.args(arguments).current_dir(folder.path()).env_clear().output().unwrap()
    };
    assert_eq!(run(&["check"]).status.code(), Some(0));
    assert_eq!(
        run(&["plan", "--url", "http://127.0.0.1:9"]).status.code(),
        Some(3),
        "no token given"
    );
    for arguments in [&["sandbox"][..], &["plan", "--sandbox"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(3));
        assert!(String::from_utf8_lossy(&output.stderr).contains("sandbox"), "{arguments:?}");
    }
}
