//! Tests of the root: the manifests, the selected files, and their names in messages.

use super::*;

#[test]
fn a_single_file_is_a_manifest() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), "kind: Project\npath: acme/shop\n").unwrap();
    fs::write(folder.path().join("b.yaml"), "broken: [").unwrap();
    let named_path = folder.path().join("a.yaml");
    let loaded = load(&named_path, &environment_in(folder.path()));
    assert_eq!((loaded.root.as_path(), loaded.paths.len()), (folder.path(), 1));
    assert!(loaded.desired.is_some());
    assert!(
        load(Path::new("does/not/exist.yaml"), &environment_in(Path::new("/")))
            .diagnostics
            .has_errors()
    );
}

/// Loads `named_path` in a folder with these files and a `.git`. `working_folder` is the working
/// directory.
fn load_below(
    files: &[(&str, &str)],
    named_path: &str,
    working_folder: &str,
) -> (Config, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("repository/.git")).unwrap();
    for (name, text) in files {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    let loaded = load(&root.join(named_path), &environment_in(&root.join(working_folder)));
    let describe = |fault: &Diagnostic| {
        format!("{} {}", fault.code, fault.location.as_ref().map_or("", |location| &*location.file))
    };
    let faults = loaded.diagnostics.sorted().into_iter().map(describe);
    (loaded.config, loaded.paths.keys().map(ToString::to_string).chain(faults).collect())
}

#[test]
fn the_configuration_applies_in_any_folder_below_it() {
    const CONFIG: &str = "version: 1\nguards: {removals: {count: 3}}\n";
    const SHOP: &str = "kind: Project\npath: acme/shop\nsettings: {avatar: {file: team/a.png}}\n";
    let files = [
        ("repository/undrift.yaml", CONFIG),
        ("repository/team/web/shop.yaml", SHOP),
        ("repository/team/a.png", ""),
    ];
    for (named_path, working_folder, file) in [
        ("repository", "repository", "team/web/shop.yaml"),
        ("repository/team/web", "repository", "team/web/shop.yaml"),
        ("repository/team/web", "repository/team", "web/shop.yaml"),
        ("repository/team/web/shop.yaml", "repository/team/web", "shop.yaml"),
    ] {
        let (config, names_and_faults) = load_below(&files, named_path, working_folder);
        assert_eq!(
            (config.guards.removals.count, &names_and_faults[..]),
            (Some(3), &[file.to_owned()][..]),
            "{named_path} from {working_folder}"
        );
    }
    let broken_files = [files[1], ("repository/undrift.yaml", "version: 2\n"), files[2]];
    for (working_folder, config) in [
        ("repository", "undrift.yaml"),
        ("repository/team", "../undrift.yaml"),
        ("repository/team/web", "../../undrift.yaml"),
        ("", "repository/undrift.yaml"),
    ] {
        let (_, lines) = load_below(&broken_files, "repository/team/web", working_folder);
        assert_eq!(lines[1], format!("value {config}"), "{lines:?}");
    }
}

#[test]
fn the_configuration_is_not_searched_above_the_repository() {
    const SHOP: &str = "kind: Project\npath: acme/shop\n";
    let files = [
        ("undrift.yaml", "version: 2\n"),
        ("repository/shop.yaml", SHOP),
        ("repository/web/undrift.yaml", "version: 1\n"),
    ];
    let (_, lines) = load_below(&files, "repository", "repository");
    assert_eq!(
        lines,
        ["shop.yaml", "web/undrift.yaml", "document web/undrift.yaml"],
        "`undrift.yaml` below the root is no configuration"
    );
    let (_, lines) = load_below(&[files[0], ("plain/shop.yaml", SHOP)], "plain", "plain");
    assert_eq!(
        lines[1], "value ../undrift.yaml",
        "without a repository, the search continues upwards"
    );
}

/// The paths that are declared and selected, and the codes of all faults.
fn load_selected(files: &[(&str, &str)], named_path: &str) -> (Vec<String>, Vec<&'static str>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    if files.iter().any(|(name, _)| *name == "latin.yaml") {
        fs::write(folder.path().join("latin.yaml"), [b'a', b':', b' ', 0xe4]).unwrap();
    }
    let loaded = load(&folder.path().join(named_path), &environment_in(folder.path()));
    let codes = loaded.diagnostics.sorted().into_iter().map(|fault| fault.code).collect();
    let desired = loaded.desired.unwrap_or_default();
    let containers = desired.containers.iter().map(|container| container.path.to_string());
    let acknowledgements = desired.acknowledgements.iter().map(ToString::to_string);
    (containers.chain(acknowledgements).collect(), codes)
}

#[test]
fn named_files_are_selected_and_the_whole_root_is_loaded() {
    const ACKNOWLEDGE: &str = "kind: Acknowledge\nguard: removals\nat: acme/web/*\n---\nkind: Acknowledge\nguard: visibility\nat: acme/shop\n";
    let files = [
        ("undrift.yaml", "version: 1\n"),
        ("acme.yaml", "kind: Group\npath: acme\n"),
        ("acknowledge.yaml", ACKNOWLEDGE),
        ("shop.yaml", "kind: Project\npath: acme/shop\n"),
        ("web/site.yaml", "kind: Project\npath: acme/web/site\n"),
        ("web-2/site.yaml", "kind: Project\npath: acme/web-2/site\n"),
        (".ci/runner.yaml", "kind: Project\npath: acme/runner\n"),
    ];
    let removals = "removals:acme/web/*";
    let visibility = "visibility:acme/shop";
    for (named_path, expected) in [
        ("", vec!["acme", "acme/shop", "acme/web-2/site", "acme/web/site", removals, visibility]),
        ("web", vec!["acme/web/site", removals]),
        ("web/", vec!["acme/web/site", removals]),
        ("web/../web", vec!["acme/web/site", removals]),
        ("web/site.yaml", vec!["acme/web/site", removals]),
        ("shop.yaml", vec!["acme/shop", visibility]),
        (".ci", vec!["acme/runner"]),
        (".ci/runner.yaml", vec!["acme/runner"]),
    ] {
        let (found_paths, codes) = load_selected(&files, named_path);
        assert_eq!(
            (found_paths, codes),
            (expected.iter().map(ToString::to_string).collect(), vec![]),
            "{named_path}"
        );
    }
    let (paths, codes) = load_selected(&files, "undrift.yaml");
    assert_eq!((paths, codes), (vec![], vec!["document"]), "a named `undrift.yaml` is a manifest");
    let (paths, codes) = load_selected(&files, "acknowledge.yaml");
    assert_eq!((paths, codes), (vec![], vec!["no-manifests"]));
}

#[test]
fn a_fault_anywhere_below_the_root_is_reported() {
    let files = [
        ("undrift.yaml", "version: 1\n"),
        ("a/shop.yaml", "kind: Project\npath: acme/shop\n"),
        ("b/shop.yaml", "kind: Project\npath: ACME/shop\nx: 1\n"),
        ("c/broken.yaml", "kind: Defaults\na: [\n"),
    ];
    assert_eq!(
        load_selected(&files, "a"),
        (vec![], vec!["duplicate-project", "unknown-field", "syntax"])
    );
    let (paths, codes) = load_selected(&files[1..], "a");
    assert_eq!(
        (paths, codes),
        (vec!["acme/shop".to_owned()], vec![]),
        "without a root, only `a` is loaded"
    );
}

/// The broken file may contain the profile that is missing.
#[test]
fn a_broken_profile_causes_no_further_errors() {
    for kind in ["Profile", "\"Profile\"", "'Profile'"] {
        let broken = format!("kind: {kind}\nname: p\na: [\n");
        let files = [("a.yaml", "kind: Project\npath: acme/x\nuses: [p]\n"), ("b.yaml", &broken)];
        let (_, codes) = load_selected(&files, "");
        assert_eq!(codes, ["syntax"], "{kind}");
    }
}

/// `undrift.yaml` may be at the top of a repository that also holds the files of other tools.
#[test]
fn files_of_other_tools_count_only_in_the_named_folder() {
    let files = [
        ("undrift.yaml", "version: 1\n"),
        ("manifests/shop.yaml", "kind: Project\npath: acme/shop\n"),
        ("manifests/sandbox.yaml", "groups: [{path: acme}]\n"),
        ("chart/templates/x.yaml", "{{- if .Values.x }}\nkind: Deployment\nspec: [\n"),
        ("chart/values.yaml", "replicaCount: 1\n"),
        ("ops/projects.yaml", "- kind: ProjectList\n"),
        ("latin.yaml", "name: x\n"),
        ("elsewhere/shop.json.yaml", "{\"kind\": \"Project\", \"path\": \"acme/shop\"}\n"),
    ];
    assert_eq!(load_selected(&files[..7], "manifests"), (vec!["acme/shop".to_owned()], vec![]));
    assert_eq!(load_selected(&files, "manifests"), (vec![], vec!["duplicate-project"]));
    let (paths, codes) = load_selected(&files[..5], "");
    assert_eq!(
        (paths.len(), codes.contains(&"document")),
        (0, true),
        "files in the named folder are manifests"
    );
}

#[test]
fn files_outside_the_named_folder_have_relative_names() {
    let files = [
        ("repository/undrift.yaml", "version: 1\n"),
        ("repository/team/web/shop.yaml", "kind: Project\npath: acme/shop\n"),
        ("repository/ops/tool.yaml", "kind: Project\npath: acme/tool\n"),
    ];
    for (working_folder, expected) in [
        ("repository", ["ops/tool.yaml", "team/web/shop.yaml"]),
        ("repository/team", ["../ops/tool.yaml", "web/shop.yaml"]),
        ("repository/team/web", ["../../ops/tool.yaml", "shop.yaml"]),
        ("", ["repository/ops/tool.yaml", "repository/team/web/shop.yaml"]),
    ] {
        let (_, lines) = load_below(&files, "repository/team/web", working_folder);
        assert_eq!(lines, expected, "{working_folder}");
    }
}
