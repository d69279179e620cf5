//! Tests of the parser, with `serde_yaml` as a second implementation.

use std::{fmt::Write as _, fs, path::Path};

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse_valid(text: &str) -> Json {
    let parsed = parse(text);
    assert_eq!(
        (parsed.faults, parsed.is_broken, parsed.documents.len()),
        (vec![], false, 1),
        "{text}"
    );
    parsed.documents[0].to_json()
}

fn fault_codes(text: &str) -> Vec<&'static str> {
    parse(text).faults.iter().map(|fault| fault.code).collect()
}

#[test]
fn scalars_follow_yaml_1_2() {
    for (text, value) in [
        ("true", json!(true)),
        ("FALSE", json!(false)),
        ("~", json!(null)),
        ("", json!(null)),
        ("yes", json!("yes")),
        ("off", json!("off")),
        ("0", json!(0)),
        ("0.5", json!(0.5)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("+5", json!(5)),
        ("-3", json!(-3)),
        ("+-3", json!("+-3")),
        ("--3", json!("--3")),
        ("-9223372036854775808", json!(i64::MIN)),
        ("1_000", json!("1_000")),
        ("12:30:45", json!("12:30:45")),
        ("1e3", json!(1000)),
        ("-.5", json!(-0.5)),
        ("1.", json!(1)),
        ("1.2.3", json!("1.2.3")),
        ("infinity", json!("infinity")),
        ("'12'", json!("12")),
        ("!!str 12", json!("12")),
        ("!!int \"12\"", json!(12)),
        ("|\n    a\n    b\n", json!("a\nb\n")),
        (">-\n    a\n    b\n", json!("a b")),
    ] {
        assert_eq!(parse_valid(&format!("k: {text}")), json!({ "k": value }), "{text}");
    }
}

#[test]
fn forbidden_yaml_has_a_code_and_the_rest_stays_readable() {
    for (text, code) in [
        ("a: 1\nb: 2\na: 3\n", "duplicate-key"),
        ("{<<: {a: 1}, <<: {b: 2}}", "duplicate-key"),
        ("1: x", "yaml-key"),
        ("~: x", "yaml-key"),
        ("true: x", "yaml-key"),
        ("? [a]\n: x", "yaml-key"),
        ("{a}", "yaml-key"),
        ("? a", "yaml-key"),
        ("a: !secret x", "yaml-tag"),
        ("a: !!map x", "yaml-tag"),
        ("a: !!int x", "yaml-tag"),
        ("a: !thing [x]", "yaml-tag"),
        ("a: .nan", "yaml-number"),
        ("a: -.inf", "yaml-number"),
        ("a: 1e999", "yaml-number"),
        ("a: 9223372036854775808", "yaml-number"),
        ("a: \"\\0\"", "control-character"),
        ("a: \"\\e[31m\"", "control-character"),
        ("<<: 3", "syntax"),
    ] {
        let parsed = parse(text);
        assert_eq!(
            parsed.faults.iter().map(|fault| fault.code).collect::<Vec<_>>(),
            [code],
            "{text}"
        );
        assert_eq!((parsed.is_broken, parsed.documents.len()), (false, 1), "{text}");
    }
}

#[test]
fn a_duplicate_key_shows_both_spans() {
    let parsed = parse("a: 1\nb: 2\na: 3\n");
    assert_eq!(
        (parsed.faults[0].span.clone(), parsed.faults[0].first_span.clone()),
        (10..11, Some(0..1))
    );
    assert_eq!(parsed.documents[0].to_json(), json!({"a": 1, "b": 2}));
}

#[test]
fn broken_syntax_does_not_hide_other_documents() {
    let parsed = parse("a: 1\n---\nb: [1, 2\n---\nc: 1\nc: 2\n---\nd: 'x\n");
    assert!(parsed.is_broken);
    assert_eq!(
        parsed.documents.iter().map(Node::to_json).collect::<Vec<_>>(),
        [json!({"a": 1}), json!({"c": 1})]
    );
    assert_eq!(
        parsed.faults.iter().map(|fault| fault.code).collect::<Vec<_>>(),
        ["syntax", "duplicate-key", "syntax"]
    );
}

#[test]
fn every_broken_text_is_a_fault() {
    for text in [
        "a: [",
        "a: }",
        "a: b: c",
        "a:\n\t- x",
        "a: *b",
        "a: &b [*b]",
        "a: \"\\q\"",
        "- a\nb: c",
        "a: @x",
        "\u{0}",
        "a: \u{1b}",
    ] {
        let parsed = parse(text);
        assert!(parsed.is_broken && !parsed.faults.is_empty(), "{text:?}");
    }
}

#[test]
fn written_keys_win_over_merged_ones() {
    let text = "x: &x {p: 1, q: 2}\nz: &z {q: 8, r: 9}\ny: {<<: [*x, *z], p: 3}\n";
    assert_eq!(parse_valid(text)["y"], json!({"p": 3, "q": 2, "r": 9}));
    assert_eq!(parse_valid("{'<<': 1}"), json!({"<<": 1}), "a quoted key is a key");
}

#[test]
fn aliases_do_not_multiply() {
    let mut lists = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for i in 1..9 {
        writeln!(lists, "a{i}: &a{i} [{}]", vec![format!("*a{}", i - 1); 9].join(",")).unwrap();
    }
    let long_scalar =
        format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1000].join(","));
    let nested_anchors = format!(
        "{}{}{}",
        (0..60).map(|i| format!("&a{i} [")).collect::<String>(),
        "x,".repeat(100_000),
        "]".repeat(60)
    );
    for text in [lists, long_scalar, nested_anchors] {
        assert_eq!(fault_codes(&text), ["yaml-limit"]);
    }
}

#[test]
fn depth_is_bounded() {
    let nested_list = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(fault_codes(&nested_list(MAX_DEPTH)), [""; 0]);
    assert_eq!(fault_codes(&nested_list(MAX_DEPTH + 1)), ["yaml-limit"]);
    for unit in ["[", "{a: ", "- ", "[[{a: "] {
        assert_eq!(fault_codes(&unit.repeat(100_000)), ["yaml-limit"], "{unit}");
    }
    // Aliases have the same depth limit as brackets.
    let alias_chain = |links: usize| {
        (1..links).map(|i| format!("a{i}: &a{i} [*a{}]\n", i - 1)).collect::<String>()
    };
    assert_eq!(fault_codes(&format!("a0: &a0 []\n{}", alias_chain(MAX_DEPTH))), [""; 0]);
    assert_eq!(fault_codes(&format!("a0: &a0 []\n{}", alias_chain(MAX_DEPTH + 1))), ["yaml-limit"]);
    let block_maps: String = (0..200).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    assert_eq!(fault_codes(&block_maps), ["yaml-limit"]);
}

#[test]
fn a_node_has_its_position() {
    let text = "\u{feff}kind: Pröject\r\nspec:\r\n  topics: [a, \"b c\"]\r\n";
    let parsed = parse(text);
    let (key, topics) = parsed.documents[0].get("spec").unwrap().1.get("topics").unwrap();
    assert_eq!(
        (&text[key.span.clone()], &text[topics.items()[1].span.clone()]),
        ("topics", "\"b c\"")
    );
    assert_eq!(&text[parsed.documents[0].get("kind").unwrap().1.span.clone()], "Pröject");
}

#[test]
fn files_may_be_empty_or_contain_several_documents() {
    assert_eq!(parse("").documents.len(), 0);
    assert_eq!(parse("# only a comment\n").documents.len(), 0);
    assert_eq!(parse("a: 1\n---\na: 2\n...\n---\na: 3").documents.len(), 3);
}

/// JSON values that both parsers read in the same way.
fn any_json() -> impl Strategy<Value = Json> {
    let text = proptest::string::string_regex("[ -~äß☃\n\t]{0,12}").unwrap();
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e9..1e9).prop_map(Json::from),
        text.prop_map(Json::from)
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map("[a-z ~#:-]{1,6}", inner, 0..5)
                .prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn both_readers_agree(value in any_json()) {
        let text = serde_yaml::to_string(&value).unwrap();
        let parsed = parse(&text);
        prop_assert_eq!(&parsed.faults, &[], "{}", text);
        prop_assert_eq!(parsed.documents[0].to_json(), value, "{}", text);
    }

    #[test]
    fn any_text_gives_documents_or_faults(text in "[\\PC\n\t{}\\[\\],:&*!|>'\"#-]{0,60}") {
        let parsed = parse(&text);
        for fault in &parsed.faults {
            prop_assert!(text.get(fault.span.clone()).is_some(), "{:?}", fault);
        }
        prop_assert_eq!(parsed.is_broken && parsed.faults.is_empty(), false);
    }
}

/// The build reads the tables of the program with `serde_yaml`, not with this parser.
#[test]
fn the_build_reads_a_table_as_manifests_are_read() {
    fn check(folder: &Path) -> usize {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files
            .map(|file| {
                if file.is_dir() {
                    return check(&file);
                }
                if file.extension().is_none_or(|end| end != "yaml") {
                    return 0;
                }
                let text = fs::read_to_string(&file).unwrap();
                let mut table: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
                table.apply_merge().unwrap();
                let table = serde_json::to_value(table).unwrap();
                assert_eq!(parse_valid(&text), table, "{}", file.display());
                1
            })
            .sum()
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let tables = ["model/src", "core/src"].map(|folder| check(&crates.join(folder)));
    assert!(tables[0] > 40 && tables[1] > 3, "{tables:?}");
}

#[test]
fn the_message_contains_the_depth_limit() {
    assert!(texts::TOO_DEEP[1].contains(&MAX_DEPTH.to_string()));
}
