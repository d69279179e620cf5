//! Tests of the visible parts of wrong manifests.

use serde_json::json;

use super::*;
use crate::{field::Field, text::mask_ranges};

/// The visible part of a broken text.
fn visible_text(text: &str) -> String {
    let harmless_names =
        ["key", "path", "variables", "settings", "masked", "description"].map(str::to_owned).into();
    mask_ranges(text, &find_secrets_in_lines(text, &harmless_names)).into_owned()
}

#[test]
fn without_a_tree_only_harmless_words_are_shown() {
    for (text, expected) in [
        ("path: acme/shop\n", "path: acme/shop\n"),
        ("\u{feff}path: acme/shop\r\nvalue: s\r\n", "\u{feff}path: acme/shop\r\nvalue: ***\r\n"),
        ("value: s", "value: ***"),
        ("tokne: s", "tokne: ***"),
        ("- {key: A, value: s, masked: yes", "- {key: A, value: ***, masked: yes"),
        ("- {key: A, value: \"s, masked: yes", "- {key: A, value: ***"),
        ("- {key: A, value: [s, s], masked: yes}", "- {key: A, value: ***"),
        ("description: a, 's'", "description: ***"),
        ("variables: [{key: A, value: s}, s]", "variables: [{key: A, value: ***}, ***"),
        ("value: |\n  path: s\n  s\npath: a", "value: ***\n  ***\n  ***\npath: a"),
        ("description: |\n  path: s\n", "description: ***\n  ***\n"),
        ("value:\n  path: s\n  - s\n", "value:\n  ***\n  ***\n"),
        ("value:\n- path: s\n- s\nkey: A", "value:\n***\n***\nkey: A"),
        ("value: \"s\n  s\npath: s\n---\npath: a", "value: ***\n  ***\n***\n---\npath: a"),
        ("value: 's'\npath: a", "value: ***\npath: a"),
        ("value: {env: s}\npath: a", "value: ***\npath: a"),
        ("variables: [\npath: s\n", "variables: [\n***\n"),
        ("s\n", "***\n"),
        ("path: a # s", "path: ***"),
        ("path: &s a", "path: ***"),
        ("settings:\n  <<: *common\n", "settings:\n  <<: *common\n"),
        ("value: <<: *common", "value: ***"),
        ("? s", "***"),
    ] {
        assert_eq!(visible_text(text), expected, "{text}");
    }
}

#[test]
fn with_a_tree_open_fields_are_shown() {
    let mut secret = json!({"type": "string"});
    Field::attach_sensitive(&mut secret);
    let item = json!({"type": "object", "properties": {"key": {"type": "string"}, "on": {"type": "boolean"}, "value": secret}});
    let schema = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": item},
        "words": {"type": "array", "items": {"type": "string"}},
        "inner": {"type": "object", "properties": {"n": {"type": "integer"}}},
        "inputs": {"type": "array", "items": {"type": "object", "properties": {"value": {"type": "string"}}}},
    }});
    for (text, expected) in [
        ("inputs: [{value: a}]", "inputs: [{value: a}]"),
        ("inner: {inputs: [{value: s}]}", "inner: {inputs: [{value: ***}]}"),
        ("list: [{key: A, value: s, on: true}]", "list: [{key: A, value: ***, on: true}]"),
        ("list: [{key: A, vlaue: {s: s}}]", "list: [{key: A, vlaue: ***}]"),
        ("list: [{value: &s t, key: A}]", "list: [{value: ***, key: A}]"),
        ("list: [{value: !s t, key: A}]", "list: [{value: ***, key: A}]"),
        ("list: [{value: &s , key: A}]", "list: [{value: *** , key: A}]"),
        ("list: [{'s s': s, key: A}]", "list: [{***: ***, key: A}]"),
        ("list: [&s s, s, [s]]", "list: [***, ***, [***]]"),
        ("list: {a: s}", "list: {a: ***}"),
        ("list: &s", "list: ***"),
        ("list: s", "list: ***"),
        ("words: [a, \"b\n  s\"]", "words: [a, \"b***]"),
        ("words: |\n  b\n  s\n\non: true", "words: |\n  ***\n\non: true"),
        ("words:\n  - a\n  -\n    b\n", "words:\n  - a\n  -\n    b\n"),
        ("inner:\n  n:\n    3\n", "inner:\n  n:\n    ***\n"),
        ("list: null", "list: null"),
        ("words: [a, {s: s}]", "words: [a, {s: ***}]"),
        ("words: a", "words: a"),
        ("inner: {n: 5MB}", "inner: {n: 5MB}"),
        ("on: maybe", "on: maybe"),
        ("other: true", "other: true"),
        ("other: &s true", "other: ***true"),
        ("inner: {n: '12', m: word}", "inner: {n: '12', m: word}"),
        ("inner: {n: '12', token: s}", "inner: {n: '12', token: ***}"),
        ("inner: [{n: 1}, word]", "inner: [{n: 1}, word]"),
        ("wordz: [a]", "wordz: [a]"),
        ("lits: [s]", "lits: ***"),
        ("list: [{key: A, vale: s, kye: B}]", "list: [{key: A, vale: ***, kye: B}]"),
        (
            "inner: {words: [a, b], list: [{key: A, value: s}]}",
            "inner: {words: [a, b], list: [{key: A, value: ***}]}",
        ),
        ("inner: {other: {words: [s]}}", "inner: {other: ***}"),
        ("words: [a]\ninner: &c {n: 1}\n<<: *c", "words: [a]\ninner: &c {n: 1}\n<<: *c"),
        ("inner: {n: !s x}", "inner: {n: ***}"),
        ("other:\n  - s\n  - s\ninner: {}", "other:\n  ***\ninner: {}"),
        ("s", "***"),
    ] {
        let parsed = crate::yaml::parse(text);
        let mut hidden_ranges =
            find_secrets(text, &parsed.documents[0], TextState::MayHaveFaults, &schema);
        hidden_ranges.retain(|range| !range.is_empty());
        hidden_ranges.sort_by_key(|range| range.start);
        assert_eq!(mask_ranges(text, &hidden_ranges), expected, "{text}");
    }
}
