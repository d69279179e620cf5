//! Tests that ten times the input takes about ten times the steps, for each part of the input.

use super::*;
use crate::steps;

/// Documents, one per line.
fn write_documents(documents: impl IntoIterator<Item = Json>) -> String {
    documents.into_iter().map(|document| format!("---\n{document}\n")).collect()
}

/// The values that `make_value` returns for each number below `n`.
fn make_values(n: usize, make_value: impl Fn(usize) -> Json) -> Vec<Json> {
    (0..n).map(make_value).collect()
}

/// A project with `entries` in a section.
fn make_project(section: &str, entries: &[Json]) -> Vec<Json> {
    vec![json!({"kind": "Project", "path": "acme/p", section: entries})]
}

/// `n` projects with these additional `fields`.
fn projects(n: usize, fields: impl Fn(usize) -> Json) -> Vec<Json> {
    make_values(n, |i| {
        let mut project = json!({"kind": "Project", "path": format!("acme/p{i}")});
        project.as_object_mut().unwrap().extend(fields(i).as_object().unwrap().clone());
        project
    })
}

fn plain_projects(n: usize) -> Vec<Json> {
    projects(n, |_| json!({}))
}

fn defaults(matches: &Json) -> Json {
    json!({"kind": "Defaults", "match": matches, "settings": {"description": "x"}})
}

fn numbered_paths(n: usize, start: &str) -> Vec<String> {
    (0..n).map(|i| format!("{start}{i}")).collect()
}

/// The name of a case, and a function that makes its documents. One part of the documents grows in
/// proportion to `n`.
type GrowthCase = (&'static str, fn(usize) -> Vec<Json>);

const GROWTH_CASES: [GrowthCase; 35] = [
    ("paths of a document", |n| {
        let variables = [json!({"key": "A"}), json!({"key": "B", "value": {"text": "{name}"}})];
        vec![
            json!({"kind": "Project", "paths": numbered_paths(n, "acme/p"), "variables": variables}),
        ]
    }),
    ("paths with parameters", |n| {
        let path_params =
            numbered_paths(n, "acme/p").into_iter().map(|path| (path, json!({"port": 1})));
        let variables = [json!({"key": "A", "value": {"text": "{port}"}})];
        vec![
            json!({"kind": "Project", "paths": path_params.collect::<Json>(), "variables": variables}),
        ]
    }),
    ("paths of a faulty document", |n| {
        vec![
            json!({"kind": "Project", "paths": numbered_paths(n, "acme/p"), "variables": [{"key": "A B"}]}),
        ]
    }),
    ("projects", |n| projects(n, |i| json!({"variables": [{"key": format!("V{i}")}]}))),
    ("entries", |n| {
        make_project("variables", &make_values(n, |i| json!({"key": format!("V{i}")})))
    }),
    ("hooks", |n| {
        make_project("hooks", &make_values(n, |i| json!({"url": format!("https://h/{i}")})))
    }),
    ("branches", |n| {
        make_project("protected_branches", &make_values(n, |i| json!({"name": format!("b{i}")})))
    }),
    ("people in a rule", |n| {
        let users = make_values(n, |i| json!({"user": format!("u{i}")}));
        make_project("protected_branches", &[json!({"name": "b", "allowed_to_push": users})])
    }),
    ("fields below `extra`", |n| {
        let extra: Json = (0..n).map(|i| (format!("k{i}"), json!(i))).collect();
        projects(1, |_| json!({"settings": {"extra": extra}}))
    }),
    ("keys that are unknown", |n| {
        let fields: Json = (0..n).map(|i| (format!("k{i}"), json!(i))).collect();
        projects(1, |_| fields.clone())
    }),
    ("entries that the schema refuses", |n| {
        make_project("variables", &make_values(n, |i| json!({"key": format!("V{i}"), "value": 3})))
    }),
    ("entries with unknown keys", |n| {
        make_project("variables", &make_values(n, |i| json!({"key": format!("V{i}"), "valu": "3"})))
    }),
    ("entries that kinds refuse", |n| {
        let variable = |i| json!({"key": format!("V{i}"), "value": "x", "masked": true});
        make_project("variables", &make_values(n, variable))
    }),
    ("the same entry", |n| make_project("variables", &make_values(n, |_| json!({"key": "V"})))),
    ("the same project", |n| make_values(n, |_| json!({"kind": "Project", "path": "acme/p"}))),
    ("documents of no kind", |n| make_values(n, |i| json!({"kind": format!("Projec{i}")}))),
    ("files that are missing", |n| {
        let missing_file = |i| json!({"key": format!("V{i}"), "value": {"file": format!("f{i}")}});
        make_project("variables", &make_values(n, missing_file))
    }),
    ("entries of two layers", |n| {
        let mut documents =
            make_project("variables", &make_values(n, |i| json!({"key": format!("V{i}")})));
        let variables = make_values(n, |i| json!({"key": format!("V{i}"), "value": "x"}));
        documents
            .push(json!({"kind": "Defaults", "match": {"path": "**"}, "variables": variables}));
        documents
    }),
    ("unmanaged entries", |n| {
        let glob_entry = |i| json!({"key": format!("W{i}_*"), "state": "unmanaged"});
        let mut documents = make_project("variables", &make_values(n, glob_entry));
        let variables = make_values(n, |i| json!({"key": format!("V{i}"), "value": "x"}));
        documents
            .push(json!({"kind": "Defaults", "match": {"path": "**"}, "variables": variables}));
        documents
    }),
    ("items that a layer adds and removes", |n| {
        let topics = json!({"add": numbered_paths(n, "new"), "remove": numbered_paths(n, "old")});
        let mut documents = projects(1, |_| json!({"settings": {"topics": topics}}));
        documents.push(json!({"kind": "Defaults", "match": {"path": "**"}, "settings": {"topics": numbered_paths(n, "old")}}));
        documents
    }),
    ("parameters", |n| {
        let params: Json = (0..n).map(|i| (format!("k{i}"), json!("x"))).collect();
        let variable = |i| json!({"key": format!("V{i}"), "value": {"text": format!("{{k{i}}}")}});
        let variables = make_values(n, variable);
        projects(1, |_| json!({"params": params, "variables": variables}))
    }),
    ("parameters that are missing", |n| {
        let params: Json = (0..n).map(|i| (format!("k{i}"), json!("x"))).collect();
        let variable = |i| json!({"key": format!("V{i}"), "value": {"text": format!("{{l{i}}}")}});
        let variables = make_values(n, variable);
        projects(1, |_| json!({"params": params, "variables": variables}))
    }),
    ("rules for one path each", |n| {
        let rules = make_values(n, |i| defaults(&json!({"path": format!("acme/p{i}")})));
        [plain_projects(n), rules].concat()
    }),
    ("rules for one name each", |n| {
        let rules = make_values(n, |i| defaults(&json!({"path": format!("*/p{i}")})));
        [plain_projects(n), rules].concat()
    }),
    ("rules that include", |n| {
        let include = |i| json!({"kind": "Defaults", "match": {"path": format!("acme/g{i}/*")}, "undeclared": "include"});
        [plain_projects(n), make_values(n, include)].concat()
    }),
    ("paths of one rule", |n| {
        [plain_projects(n), vec![defaults(&json!({"path": numbered_paths(n, "acme/p")}))]].concat()
    }),
    ("exceptions of one rule", |n| {
        let rule = json!({"path": "**", "except": numbered_paths(n, "acme/q")});
        [plain_projects(n), vec![defaults(&rule)]].concat()
    }),
    ("profiles", |n| {
        let profile = |i| json!({"kind": "Profile", "name": format!("x{i}"), "watch": true});
        [projects(n, |i| json!({"uses": [format!("x{i}")]})), make_values(n, profile)].concat()
    }),
    ("profiles that use the next", |n| {
        let next_profile = |i| json!({"kind": "Profile", "name": format!("x{i}"), "uses": [format!("x{}", i + 1)]});
        let last_profile = json!({"kind": "Profile", "name": format!("x{n}"), "watch": true});
        [projects(1, |_| json!({"uses": ["x0"]})), make_values(n, next_profile), vec![last_profile]]
            .concat()
    }),
    ("profiles that do not exist", |n| {
        let profile = |i| json!({"kind": "Profile", "name": format!("x{i}"), "watch": true});
        [projects(n, |i| json!({"uses": [format!("y{i}")]})), make_values(n, profile)].concat()
    }),
    ("acknowledgements", |n| {
        let acknowledge = |i| json!({"kind": "Acknowledge", "guard": "removals", "at": format!("acme/p{i}#members")});
        [plain_projects(n), make_values(n, acknowledge)].concat()
    }),
    ("former paths", |n| {
        projects(
            n,
            |i| json!({"previously": [format!("old/q{i}")], "settings": {"description": "see old/x"}}),
        )
    }),
    ("groups that each take the path of the next", |n| {
        make_values(
            n,
            |i| json!({"kind": "Group", "path": format!("g{i}"), "previously": [format!("g{}", i + 1)], "settings": {"description": "see g"}}),
        )
    }),
    ("groups above", |n| {
        let private = |i| json!({"kind": "Group", "path": format!("g{i}"), "settings": {"visibility": "private"}});
        let public = |i| json!({"kind": "Project", "path": format!("g{i}/p"), "settings": {"visibility": "public"}});
        [make_values(n, private), make_values(n, public)].concat()
    }),
    ("groups within each other", |n| {
        let path = |i: usize| format!("g{}", "/g".repeat(i % 20));
        make_values(n, |i| json!({"kind": "Group", "path": format!("h{}/{}", i / 20, path(i))}))
    }),
];

#[test]
fn loading_grows_in_proportion() {
    for (name, make_documents) in GROWTH_CASES {
        steps::assert_linear_growth(name, |n| {
            load_files(&[("a.yaml", &write_documents(make_documents(n)))]);
        });
    }
}

#[test]
fn loading_many_files_grows_in_proportion() {
    let load_many = |n: usize, text: &dyn Fn(usize) -> String| {
        let texts: Vec<_> = (0..n).map(|i| (format!("f{i}.yaml"), text(i))).collect();
        let files: Vec<_> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
        load_files(&files);
    };
    let project = |i: usize, value: &str| {
        format!(
            "kind: Project\npath: acme/p{i}\nvariables: [{{key: A, masked: true, value: {value}}}]\n"
        )
    };
    for (name, value) in [("files", "{env: A}"), ("refused", "3"), ("wrong", "x"), ("broken", "{")]
    {
        steps::assert_linear_growth(name, |n| load_many(n, &|i| project(i, value)));
    }
}

#[test]
fn checking_manages_takes_linear_time() {
    let load_managed = |n: usize, manages: Json| {
        let config = json!({"version": 1, "manages": manages}).to_string();
        load_files(&[("a.yaml", &write_documents(plain_projects(n))), ("undrift.yaml", &config)]);
    };
    let paths = |n: usize, start: &str| -> Json {
        numbered_paths(n, start).into_iter().map(|path| json!({"path": path})).collect()
    };
    steps::assert_linear_growth("managed paths", |n| load_managed(n, paths(n, "acme/p")));
    steps::assert_linear_growth("projects outside of `manages`", |n| {
        load_managed(n, paths(n, "other/p"));
    });
    steps::assert_linear_growth("exceptions", |n| {
        load_managed(n, json!([{"path": "**", "except": self::numbered_paths(n, "acme/q")}]));
    });
}

#[test]
fn reading_yaml_grows_in_proportion() {
    let head = "kind: Project\npath: acme/p\nvariables:\n";
    let lines = |n: usize, line: fn(usize) -> String| -> String { (0..n).map(line).collect() };
    steps::assert_linear_growth("merged mappings", |n| {
        let entries = lines(n, |i| format!("- {{<<: *a, key: V{i}}}\n"));
        load_files(&[("a.yaml", &format!("{head}- &a {{key: V, value: x}}\n{entries}"))]);
    });
    steps::assert_linear_growth("merged lists of mappings", |n| {
        let anchors = lines(n, |i| format!("- &a{i} {{key: V{i}, value: x}}\n"));
        let names: Vec<_> = (0..n).map(|i| format!("*a{i}")).collect();
        let text = format!("{head}{anchors}- {{<<: [{}], key: Z}}\n", names.join(", "));
        load_files(&[("a.yaml", &text)]);
    });
    steps::assert_linear_growth("keys that are written twice", |n| {
        let repeats = lines(n, |_| "  description: x\n".to_owned());
        load_files(&[("a.yaml", &format!("kind: Project\npath: acme/p\nsettings:\n{repeats}"))]);
    });
    steps::assert_linear_growth("broken documents", |n| {
        load_files(&[("a.yaml", &lines(n, |_| "a: [b, c, d, e\n---\n".to_owned()))]);
    });
}
