//! Checks the Dockerfile without a container engine: small, not root, and with the Rust release
//! that the package requires.

use crate::{file, root};

/// A stage: its name, its base, and its instructions with their arguments.
struct Stage {
    name: String,
    base: String,
    instructions: Vec<(String, String)>,
}

impl Stage {
    fn all(&self, instruction: &str) -> Vec<&str> {
        let of = self.instructions.iter().filter(|(name, _)| name == instruction);
        of.map(|(_, arguments)| arguments.as_str()).collect()
    }
}

fn stages() -> Vec<Stage> {
    let text = file("Dockerfile");
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut stages: Vec<Stage> = Vec::new();
    for line in lines.join("\n").replace("\\\n", " ").lines().filter(|line| !line.is_empty()) {
        let (instruction, arguments) = line.split_once(' ').expect("an instruction");
        if instruction == "FROM" {
            let (base, name) = arguments.split_once(" AS ").expect("a stage with a name");
            let (name, base) = (name.to_owned(), base.to_owned());
            stages.push(Stage { name, base, instructions: Vec::new() });
        } else {
            let last = stages.last_mut().expect("FROM comes first");
            last.instructions.push((instruction.to_owned(), arguments.to_owned()));
        }
    }
    stages
}

#[test]
fn the_image_is_small_and_does_not_run_as_root() {
    let stages = stages();
    let names: Vec<_> = stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(names, ["build", "minimal", "ci"]);
    let rust = file("Cargo.toml");
    let rust = rust.split_once("rust-version = \"").unwrap().1.split('"').next().unwrap();
    assert_eq!(stages[0].base, format!("rust:{rust}-alpine"));
    assert_eq!(stages[1].base, "scratch");
    for (index, stage) in stages.iter().enumerate().skip(1) {
        assert!(stage.base == "scratch" || stage.base.contains(':'), "a release of {}", stage.base);
        assert_eq!(stage.all("ENTRYPOINT"), ["[\"/usr/bin/undrift\"]"]);
        // A number, so that orchestrators can see that it is not root.
        assert_eq!(stage.all("USER"), ["65532:65532"]);
        assert!(stage.all("COPY").contains(&"--from=build /undrift /usr/bin/undrift"));
        for copy in stage.all("COPY") {
            let from = copy.split_whitespace().next().and_then(|from| from.strip_prefix("--from="));
            let known = names[..index].contains(&from.expect("nothing of the context"));
            assert!(known, "{copy}");
        }
        let order: Vec<_> = stage.instructions.iter().map(|(name, _)| name.as_str()).collect();
        let last_run = order.iter().rposition(|name| *name == "RUN");
        assert!(last_run < order.iter().position(|name| *name == "USER"), "{order:?}");
    }
}

/// The images of `.ci/release` come from another distribution, and are used the same way.
#[test]
fn a_release_configures_its_images_as_the_dockerfile_does() {
    let release = file(".ci/release");
    for stage in &stages()[1..] {
        let [user, folder, entry] =
            ["USER", "WORKDIR", "ENTRYPOINT"].map(|instruction| stage.all(instruction)[0]);
        let words = format!("--user {user} --workingdir {folder} --entrypoint '{entry}'");
        assert!(release.contains(&words), "{words}");
    }
    let packages = stages()[2].all("RUN").join(" ");
    for package in ["ca-certificates", "curl", "git"] {
        assert!(packages.contains(package) && release.contains(package), "{package}");
    }
    assert!(packages.contains("safe.directory '*'") && release.contains("safe.directory '*'"));
}

#[test]
fn the_docker_context_has_only_files_of_the_build() {
    let ignored = file(".dockerignore");
    let lines: Vec<_> = ignored.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines[0], "*");
    for kept in &lines[1..] {
        let path = kept.strip_prefix('!').expect("an exception");
        let folder = path.split('*').next().unwrap();
        assert!(root().join(folder).exists(), "{path}");
    }
    // Files that are compiled into the binary, and the targets of the package.
    for needed in ["!Cargo.toml", "!Cargo.lock", "!src", "!crates", "!benches/*.rs"] {
        assert!(lines.contains(&needed), "{needed}");
    }
}
