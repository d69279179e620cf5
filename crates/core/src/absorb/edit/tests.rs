//! Tests of edits: the requested value is set, and everything else is unchanged.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{steps, yaml};

impl TextEdit {
    /// Applies the edit to `text`.
    fn apply(&self, text: &str) -> Result<String, EditFailure> {
        let parsed = yaml::parse(text);
        let mut pass = pass::EditPass::default();
        pass.add(self, self.changes(text, &parsed)?, &parsed);
        Ok(pass.apply(text))
    }
}

fn pointer(path: &str) -> Pointer {
    let step = |word: &str| match word.parse() {
        Ok(item) => PathStep::Item(item),
        Err(_) => PathStep::Key(word.to_owned()),
    };
    Pointer {
        document: 0,
        steps: path.split('/').filter(|word| !word.is_empty()).map(step).collect(),
    }
}

fn alphabet() -> Vec<&'static str> {
    "a b c d e f g h i j k l m n o p q r s t u v w x y z".split(' ').collect()
}

/// The edit that sets the value at the keys in `path`. `//` separates the path of the mapping from
/// the keys below it. New keys are inserted in alphabetical order.
fn put(path: &str, value: Json) -> TextEdit {
    let (steps, keys) = path.split_once("//").unwrap_or(("", path));
    TextEdit::Put {
        target: pointer(steps),
        keys: keys.split('/').map(str::to_owned).collect(),
        value: OutputNode::Value(value),
        order: alphabet(),
    }
}

fn remove(key: &str, item: usize) -> TextEdit {
    TextEdit::Remove { target: pointer(""), key: key.to_owned(), item }
}

fn push(key: &str, entry: &Json, comment_text: Option<&str>) -> TextEdit {
    let items = entry.as_object().unwrap().iter();
    let entry = items.map(|(key, value)| MapItem::value(key, value.clone())).collect();
    let comment = comment_text.map(str::to_owned);
    TextEdit::Push { target: pointer(""), key: key.to_owned(), entry, comment, order: alphabet() }
}

fn assert_edit(edit: &TextEdit, before: &str, after: &str) {
    let edited = edit.apply(before).unwrap_or_else(|failure| panic!("{before}\n{failure:?}"));
    assert_eq!(edited, after, "\nof:\n{before}");
}

#[test]
fn a_scalar_keeps_its_place_quotes_and_comments() {
    for (before, new_value, after) in [
        ("a: 1\n", json!(2), "a: 2\n"),
        ("a: 1", json!(2), "a: 2"),
        ("a:   old   # why\nb: 2\n", json!("new"), "a:   new   # why\nb: 2\n"),
        ("a: 'old' # why\n", json!("it's"), "a: 'it''s' # why\n"),
        ("a: \"old\" # why\n", json!("new\n"), "a: \"new\\n\" # why\n"),
        ("a: 'old'\n", json!(true), "a: true\n"),
        ("a: old\n", json!("yes"), "a: 'yes'\n"),
        ("a: true\n", json!("x: y"), "a: 'x: y'\n"),
        ("# top\n\na: ä  # ö\n", json!("ü"), "# top\n\na: ü  # ö\n"),
        ("a: old\r\nb: 2\r\n", json!("new"), "a: new\r\nb: 2\r\n"),
        ("\u{feff}a: old\n", json!("new"), "\u{feff}a: new\n"),
        ("a:\t1\t# tab\n", json!(2), "a:\t2\t# tab\n"),
        ("a: 1\n---\na: 1\n", json!(2), "a: 2\n---\na: 1\n"),
        ("a:\nb: 1\n", json!(2), "a: 2\nb: 1\n"),
        ("a: # why\nb: 1\n", json!(2), "a: 2 # why\nb: 1\n"),
        ("a: null\n", json!([]), "a: []\n"),
        ("{a: 1, b: 2}\n", json!("x, y"), "{a: 'x, y', b: 2}\n"),
        ("{b: 2, a: }\n", json!(2), "{b: 2, a: 2 }\n"),
        ("b: &x 1\na: *x\n", json!(2), "b: &x 1\na: 2\n"),
        ("a:\n  some long\n  text\nb: 1\n", json!("short"), "a: short\nb: 1\n"),
    ] {
        assert_edit(&put("a", new_value), before, after);
    }
}

#[test]
fn a_text_of_many_lines_changes_as_a_whole() {
    for (before, new_value, after) in [
        ("a: |\n  one\n  two\nb: 1\n", "one\nthree\n", "a: |\n  one\n  three\nb: 1\n"),
        (
            "a: |-  # why\n  one\n  two\n\n# of b\nb: 1\n",
            "x\ny\n",
            "a: |  # why\n  x\n  y\n\n# of b\nb: 1\n",
        ),
        ("a: |  # why\n    one\n", "short", "a: short  # why\n"),
        ("a: >\n  one\n  two\n", "x\ny", "a: |-\n  x\n  y\n"),
        ("a: old  # why\nb: 1\n", "x\ny\n", "a: |  # why\n  x\n  y\nb: 1\n"),
        ("a: old", "x\ny\n", "a: |\n  x\n  y"),
        ("{a: old}\n", "x\ny\n", "{a: \"x\\ny\\n\"}\n"),
        ("a: |\r\n  one\r\nb: 1\r\n", "x\ny\n", "a: |\r\n  x\r\n  y\r\nb: 1\r\n"),
    ] {
        // If the text has no final line feed, the edited text has no final line feed.
        if before.ends_with('\n') || new_value == "short" {
            assert_edit(&put("a", new_value.into()), before, after);
        } else {
            assert_eq!(put("a", new_value.into()).apply(before).as_deref(), Ok(after));
        }
    }
}

#[test]
fn a_list_changes_item_by_item_where_that_keeps_its_order() {
    for (before, new_value, after) in [
        ("a: [x, y]  # why\n", json!(["x", "z"]), "a: [x, z]  # why\n"),
        (
            "a:\n  - x  # first\n  # of y\n  - y\nb: 1\n",
            json!(["x", "y", "z"]),
            "a:\n  - x  # first\n  # of y\n  - y\n  - z\nb: 1\n",
        ),
        ("a:\n- x  # first\n- y\nb: 1\n", json!(["y", "z"]), "a:\n- y\n- z\nb: 1\n"),
        ("a:\n  - x\n  - y", json!(["x", "z"]), "a:\n  - x\n  - z"),
        ("a:\n  - x\n  - z\nb: 1\n", json!(["z", "x"]), "a: [z, x]\nb: 1\n"),
        ("a:\n  - x\nb: 1\n", json!([]), "a: []\nb: 1\n"),
        (
            "a:\n  - {u: 1}\n  - u: 2\n    v: 3\n",
            json!([{"u": 2, "v": 3}, {"u": 4}]),
            "a:\n  - u: 2\n    v: 3\n  - {u: 4}\n",
        ),
    ] {
        assert_edit(&put("a", new_value), before, after);
    }
}

#[test]
fn a_key_is_added_in_the_order_of_the_documentation() {
    for (before, path, after) in [
        ("a: 1  # x\nc: 3\n", "b", "a: 1  # x\nb: 9\nc: 3\n"),
        ("a: 1", "b", "a: 1\nb: 9"),
        ("c: 1\n", "b", "c: 1\nb: 9\n"),
        ("a: 1\n\n# of the end\n", "b", "a: 1\nb: 9\n\n# of the end\n"),
        ("a: 1\n---\nb: 1\n", "b", "a: 1\nb: 9\n---\nb: 1\n"),
        ("a: 1\r\nc: 1\r\n", "b", "a: 1\r\nb: 9\r\nc: 1\r\n"),
        (
            "a:\n  - x\n  - y: 1\n    z: 2\nc: 1\n",
            "b",
            "a:\n  - x\n  - y: 1\n    z: 2\nb: 9\nc: 1\n",
        ),
        ("a: |\n  text\n\nc: 1\n", "b", "a: |\n  text\nb: 9\n\nc: 1\n"),
        ("{a: 1}\n", "b", "{a: 1, b: 9}\n"),
        ("a: {}\n", "a/b", "a: {b: 9}\n"),
        ("a: {c: 1,\n    d: 2,\n}\n", "a/b", "a: {c: 1,\n    d: 2, b: 9\n}\n"),
        ("a:\n    c: 1\nd: 1\n", "a/e/f", "a:\n    c: 1\n    e: {f: 9}\nd: 1\n"),
        ("a: 1\n", "b/c/d", "a: 1\nb: {c: {d: 9}}\n"),
        (
            "x: &x {b: 1}\na:\n  <<: *x\n  c: 1\n",
            "a/b",
            "x: &x {b: 1}\na:\n  <<: *x\n  c: 1\n  b: 9\n",
        ),
        (
            "l:\n  - a: 1  # x\n    c: 2\n  - a: 3\n",
            "l/0//b",
            "l:\n  - a: 1  # x\n    b: 9\n    c: 2\n  - a: 3\n",
        ),
        ("l:\n  - {a: 1}  # x\n", "l/0//b", "l:\n  - {a: 1, b: 9}  # x\n"),
        ("l: [{a: 1}, {a: 2}]\n", "l/1//b", "l: [{a: 1}, {a: 2, b: 9}]\n"),
    ] {
        assert_edit(&put(path, json!(9)), before, after);
    }
}

#[test]
fn an_entry_is_added_at_the_end_of_its_list() {
    let entry = json!({"k": "x", "v": 1});
    for (before, after) in [
        ("l:\n  - {k: a}  # one\nm: 1\n", "l:\n  - {k: a}  # one\n  - {k: x, v: 1}\nm: 1\n"),
        ("l:\n- k: a\n  v: 2\n", "l:\n- k: a\n  v: 2\n- {k: x, v: 1}\n"),
        ("l: [{k: a}]\n", "l: [{k: a}, {k: x, v: 1}]\n"),
        ("l: []  # none\nm: 1\n", "l:  # none\n  - {k: x, v: 1}\nm: 1\n"),
        ("k: 1\nm: 1\n", "k: 1\nl:\n  - {k: x, v: 1}\nm: 1\n"),
        ("k: 1", "k: 1\nl:\n  - {k: x, v: 1}"),
        ("{k: 1}\n", "{k: 1, l: [{k: x, v: 1}]}\n"),
        ("l:\r\n  - {k: a}\r\n", "l:\r\n  - {k: a}\r\n  - {k: x, v: 1}\r\n"),
    ] {
        assert_edit(&push("l", &entry, None), before, after);
    }
    let expected = "l:\n  - {k: a}\n  - {k: x, v: 1}  # said\n";
    assert_edit(&push("l", &entry, Some("said")), "l:\n  - {k: a}\n", expected);
}

#[test]
fn the_lines_of_an_entry_are_removed() {
    for (before, item, after) in [
        ("l:\n  - a  # x\n  - b\nm: 1\n", 0, "l:\n  - b\nm: 1\n"),
        ("l:\n  - a\n  # of b\n  - b  # x\nm: 1\n", 1, "l:\n  - a\n  # of b\nm: 1\n"),
        ("l:\n  - k: a\n    v: |\n      text\n  - k: b\n", 0, "l:\n  - k: b\n"),
        ("l:\n  - a\n  - b", 1, "l:\n  - a"),
        ("l:\n  - a\nm: 1\n", 0, "l: []\nm: 1\n"),
        ("l: [a, b, c]\n", 0, "l: [b, c]\n"),
        ("l: [a, b, c]\n", 2, "l: [a, b]\n"),
        ("l: [{k: a}, {k: b}]\n", 1, "l: [{k: a}]\n"),
        ("l:\r\n  - a\r\n  - b\r\n", 0, "l:\r\n  - b\r\n"),
    ] {
        assert_edit(&remove("l", item), before, after);
    }
}

#[test]
fn aliases_tags_and_commented_entries_are_not_edited() {
    for (before, edit) in [
        ("a: &x 1\nb: *x\n", put("a", json!(2))),
        ("a: !!str 1\n", put("a", json!(2))),
        ("x: &x {b: 1}\na: *x\n", put("a/b", json!(2))),
        ("x: &x {b: 1}\na:\n  <<: *x\n", put("a/c", json!(2))),
        ("x: &x [1]\nl: *x\n", push("l", &json!({"k": 1}), None)),
        ("x: &x [1, 2]\nl: *x\n", remove("l", 0)),
        ("l:\n  - # said\n    k: 1\n  - k: 2\n", remove("l", 0)),
        ("a: 1\n", put("b/0//c", json!(1))),
    ] {
        assert!(edit.apply(before).is_err(), "{before}: {:?}", edit.apply(before));
    }
}

/// A text with a mapping in one of several common styles.
fn arbitrary_text() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "1",
        "old",
        "'old'",
        "\"o\\nld\"",
        "[x, y]",
        "{m: 1}",
        "|\n    one\n    two",
        "\n    - x # c\n    - y",
        "\n    m: 1\n    n: [2]",
        "",
    ]);
    let line = (value, prop::sample::select(vec!["", "  # said", "\n  # said"]));
    let lines = prop::collection::vec(line, 1..5);
    (lines, any::<bool>(), any::<bool>()).prop_map(|(lines, has_crlf, has_final_line_feed)| {
        let line = |(index, (value, comment)): (usize, (&str, &str))| {
            let comment =
                if value.contains('\n') { comment.trim_start_matches("  ") } else { comment };
            let comment =
                if value.contains('\n') && !comment.starts_with('\n') { "" } else { comment };
            format!("  {}: {value}{comment}\n", char::from(b'a' + u8::try_from(index).unwrap_or(0)))
        };
        let mut text =
            format!("# top\ns:\n{}", lines.into_iter().enumerate().map(line).collect::<String>());
        if !has_final_line_feed {
            text.truncate(text.trim_end().len());
        }
        if has_crlf { text.replace('\n', "\r\n") } else { text }
    })
}

proptest! {
    #[test]
    fn an_edit_sets_its_value_and_preserves_the_rest(
        text in arbitrary_text(),
        key in "[a-f]",
        to in prop_oneof![
            any::<i32>().prop_map(Json::from),
            r"(\PC|[\n :#'-]){0,12}".prop_map(Json::from),
            prop::collection::vec("[x-z]", 0..3).prop_map(Json::from),
        ],
    ) {
        let parse_to_json = |text: &str| {
            let parsed = yaml::parse(text);
            // A comment below a block text only causes a warning.
            let is_error = |fault: &yaml::YamlFault| fault.code != "no-effect";
            assert!(!parsed.faults.iter().any(is_error), "{text}\n{:?}", parsed.faults);
            parsed.documents[0].to_json()
        };
        let edited = put(&format!("s/{key}"), to.clone()).apply(&text).unwrap();
        let mut expected = parse_to_json(&text);
        expected["s"][key.as_str()] = to;
        prop_assert_eq!(parse_to_json(&edited), expected, "{:?} -> {:?}", text, edited);
        let count = |text: &str| text.matches("# said").count() + text.matches("# top").count();
        prop_assert_eq!(count(&text), count(&edited), "{:?} -> {:?}", text, edited);
    }
}

/// Edits that are applied together have the same result as edits that are applied one by one.
/// Together they need fewer parses.
#[test]
fn many_edits_are_made_in_few_passes() {
    let root_pointer = || Pointer { document: 0, steps: Vec::new() };
    let item_pointer = |n: usize| Pointer {
        document: 0,
        steps: vec![PathStep::Key("labels".into()), PathStep::Item(n)],
    };
    let edit_makers: [&dyn Fn(usize) -> TextEdit; 4] = [
        &|n| TextEdit::Put {
            target: item_pointer(n),
            keys: vec!["color".into()],
            value: OutputNode::Value(format!("new {n}").into()),
            order: Vec::new(),
        },
        &|n| TextEdit::Put {
            target: item_pointer(n / 2),
            keys: vec![format!("new-{n}")],
            value: OutputNode::Value(n.into()),
            order: Vec::new(),
        },
        &|n| TextEdit::Push {
            target: root_pointer(),
            key: "labels".into(),
            entry: vec![MapItem::value("name", format!("pushed {n}"))],
            comment: None,
            order: Vec::new(),
        },
        &|n| TextEdit::Remove { target: root_pointer(), key: "labels".into(), item: n },
    ];
    let block_items = |n: usize| -> String {
        (0..n).map(|n| format!("  - name: l{n} # said\n    color: old\n")).collect()
    };
    let flow = |n: usize| -> String {
        (0..n).map(|n| format!("  - {{name: l{n}, color: old}}\n")).collect()
    };
    let texts: [&dyn Fn(usize) -> String; 3] = [
        &|n| format!("labels:\n{}path: a\n", block_items(n)),
        &|n| format!("labels:\n{}", flow(n)),
        &|n| format!("path: a\nlabels:\n{}", flow(n).replace('\n', "\r\n")),
    ];
    for (kind, make_edit) in edit_makers.iter().enumerate() {
        for text in texts {
            let edits = |n: usize| (0..n).rev().map(|n| (n, make_edit(n)));
            let apply = |n: usize| {
                apply_all(text(n), edits(n).collect(), &mut |_, failure, _| panic!("{failure:?}"))
            };
            let one_by_one = edits(40).fold(text(40), |text, (_, edit)| edit.apply(&text).unwrap());
            assert_eq!(apply(40), one_by_one, "{kind}");
            // Each pass parses the text, which counts a step for each node.
            steps::assert_linear_growth("edits", |n| drop(apply(n)));
        }
    }
}
