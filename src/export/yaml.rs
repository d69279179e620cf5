//! YAML as a person would write it: short things on one line, long ones on many, and quotes only
//! where a reader of YAML 1.1 or 1.2 would else take a text for something else.

use crate::{text::is_unsafe, value::Json};

/// How wide a line may be.
const WIDTH: usize = 100;
/// How many fields of a mapping stand on one line at most, where its key stands there too.
const SHORT: usize = 3;

/// Something to write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// A value, on one line unless it is a text of many.
    Value(Json),
    /// A mapping.
    Map(Vec<Item>),
    /// A list of mappings, each with what is said about it.
    List(Vec<(Vec<Item>, Option<String>)>),
}

/// A key of a mapping with what it has, and what is said about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    /// The key.
    pub(crate) key: String,
    /// What it has.
    pub(crate) node: Node,
    /// Lines of comment above it.
    pub(crate) above: Vec<String>,
}

impl Item {
    /// A key with a value.
    pub(crate) fn value(key: impl Into<String>, value: impl Into<Json>) -> Self {
        Self::new(key, Node::Value(value.into()))
    }

    /// A key with what it has.
    pub(crate) fn new(key: impl Into<String>, node: Node) -> Self {
        Self { key: key.into(), node, above: Vec::new() }
    }
}

/// The lines of a document.
pub(crate) fn document(items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
        write_item(&mut text, item, 0);
    }
    text
}

/// The lines of one key with what it has, `indent` characters from the left.
pub(crate) fn item(item: &Item, indent: usize) -> String {
    let mut text = String::new();
    write_item(&mut text, item, indent);
    text
}

/// The lines of an entry of a list, the dash of which is `indent` characters from the left.
pub(crate) fn entry(items: &[Item], about: Option<&str>, indent: usize) -> String {
    let mut text = String::new();
    write_entry(&mut text, items, about, indent);
    text
}

/// Lines of comment, each no wider than a line may be. Nothing in `text` can end a comment.
pub(crate) fn comment(text: &str, indent: usize) -> String {
    let text = crate::text::escape(text);
    let most = WIDTH.saturating_sub(indent + 2).max(40);
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().filter(|line| {
            line.is_empty() || line.chars().count() + 1 + word.chars().count() <= most
        });
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    let margin = " ".repeat(indent);
    lines.iter().map(|line| format!("{margin}# {line}\n")).collect()
}

fn write_item(out: &mut String, item: &Item, indent: usize) {
    for line in &item.above {
        *out += &comment(line, indent);
    }
    let margin = " ".repeat(indent);
    let key = format!("{margin}{}:", scalar(&item.key, false));
    if let Some(flow) = flow(&item.node, false).filter(|flow| {
        let is_short = !matches!(&item.node, Node::Map(items) if items.len() > SHORT);
        is_short && (width(&key) + 1 + width(flow) <= WIDTH || is_scalar(&item.node))
    }) {
        *out += &format!("{key} {flow}\n");
        return;
    }
    *out += &key;
    match &item.node {
        Node::Value(Json::String(text)) => write_literal(out, text, indent + 2),
        Node::Value(Json::Array(items)) => {
            *out += "\n";
            for value in items {
                *out += &format!("{margin}  - {}\n", inline(value, false));
            }
        }
        Node::Value(Json::Object(object)) => {
            *out += "\n";
            for (key, value) in object {
                write_item(out, &Item::value(key, value.clone()), indent + 2);
            }
        }
        Node::Value(_) => *out += "\n",
        Node::Map(items) => {
            *out += "\n";
            items.iter().for_each(|item| write_item(out, item, indent + 2));
        }
        Node::List(entries) => {
            *out += "\n";
            for (entry, about) in entries {
                write_entry(out, entry, about.as_deref(), indent + 2);
            }
        }
    }
}

/// An entry of a list, on one line if it fits.
fn write_entry(out: &mut String, items: &[Item], about: Option<&str>, indent: usize) {
    let margin = " ".repeat(indent);
    let line = flow_map(items).map(|flow| format!("{margin}- {flow}"));
    let line = line.filter(|line| width(line) <= WIDTH);
    let own = about.map(|about| format!("  # {}", crate::text::escape(about)));
    let beside = line.as_ref().zip(own.as_ref()).filter(|(l, c)| width(l) + width(c) <= WIDTH);
    if let (Some(about), None) = (about, &beside) {
        *out += &comment(about, indent);
    }
    match (&line, &beside) {
        (_, Some((line, own))) => *out += &format!("{line}{own}\n"),
        (Some(line), None) => *out += &format!("{line}\n"),
        (None, _) => {
            let mut block = String::new();
            items.iter().for_each(|item| write_item(&mut block, item, indent + 2));
            // The first key stands beside the dash.
            block.replace_range(indent..=indent, "-");
            *out += &block;
        }
    }
}

fn is_scalar(node: &Node) -> bool {
    matches!(node, Node::Value(value) if !value.is_array() && !value.is_object())
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// `node` on one line; nothing if it holds a text of many lines or something has to be said about
/// a part of it.
fn flow(node: &Node, within: bool) -> Option<String> {
    match node {
        Node::Value(value) if has_literal(value) => None,
        Node::Value(value) => Some(inline(value, within)),
        Node::Map(items) => flow_map(items),
        Node::List(entries) => entries.is_empty().then(|| "[]".to_owned()),
    }
}

fn flow_map(items: &[Item]) -> Option<String> {
    let item = |item: &Item| {
        let value = flow(&item.node, true).filter(|_| item.above.is_empty())?;
        Some(format!("{}: {value}", scalar(&item.key, true)))
    };
    Some(format!("{{{}}}", items.iter().map(item).collect::<Option<Vec<_>>>()?.join(", ")))
}

/// Whether a text of many lines is in `value`.
fn has_literal(value: &Json) -> bool {
    match value {
        Json::String(text) => is_literal(text),
        Json::Array(items) => items.iter().any(has_literal),
        Json::Object(object) => object.values().any(has_literal),
        _ => false,
    }
}

/// `value` on one line, whatever it holds, within brackets or not.
pub(crate) fn inline(value: &Json, within: bool) -> String {
    match value {
        Json::String(text) => scalar(text, within),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(|value| inline(value, true)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(object) => {
            let item = |(key, value): (&String, &Json)| {
                format!("{}: {}", scalar(key, true), inline(value, true))
            };
            format!("{{{}}}", object.iter().map(item).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// Whether `text` reads best as a literal block: it has many lines, all of which come back as they
/// are, also past editors that strip white space from the end of lines.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with([' ', '\t', '\n'])
        && !body.ends_with('\n')
        && !body.contains(|c: char| is_unsafe(c) && c != '\n')
        && body.lines().all(|line| !line.ends_with(' '))
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    let margin = " ".repeat(indent);
    *out += if text.ends_with('\n') { " |\n" } else { " |-\n" };
    for line in text.lines() {
        *out += &if line.is_empty() { "\n".to_owned() } else { format!("{margin}{line}\n") };
    }
}

/// A text as a scalar on one line, within brackets or not.
pub(crate) fn scalar(text: &str, within: bool) -> String {
    if is_plain(text, within) {
        text.to_owned()
    } else if text.contains(is_unsafe) {
        double_quoted(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// A text in double quotes, on one line.
pub(crate) fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\r' => quoted += "\\r",
            c if is_unsafe(c) => match u32::from(c) {
                code @ 0..=0xff => quoted += &format!("\\x{code:02x}"),
                code @ 0..=0xffff => quoted += &format!("\\u{code:04x}"),
                code => quoted += &format!("\\U{code:08x}"),
            },
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Whether `text` needs no quotes: every reader takes it for this text.
fn is_plain(text: &str, within: bool) -> bool {
    const INDICATORS: &[char] = &[
        '-', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@',
        '`',
    ];
    let starts_well = !text.starts_with(INDICATORS)
        || (text.starts_with('-')
            && text[1..].starts_with(|c: char| c.is_ascii_alphabetic())
            && !within);
    let is_edged = text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace);
    let has_end = text.contains(": ") || text.contains(" #") || text.ends_with(':');
    let has_bracket = within && text.contains([',', '[', ']', '{', '}']);
    !text.is_empty()
        && starts_well
        && !is_edged
        && !has_end
        && !has_bracket
        && !text.contains(is_unsafe)
        && !text.starts_with("...")
        && !is_other(text)
}

/// Whether some reader takes a plain `text` for something else than a text.
fn is_other(text: &str) -> bool {
    const WORDS: [&str; 13] =
        ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<", ".nan"];
    let lower = text.to_ascii_lowercase();
    WORDS.contains(&&*lower) || is_number(&lower)
}

/// Whether some reader takes `text`, in lower case, for a number, a day or a time: also with
/// underscores, with base 60, and the hexadecimal, octal and binary ones.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == ".inf" {
        return true;
    }
    let of_base = |prefix: &str, base: u32| {
        let digits = unsigned.strip_prefix(prefix);
        digits.is_some_and(|digits| digits.chars().all(|c| c == '_' || c.is_digit(base)))
    };
    if of_base("0x", 16) || of_base("0o", 8) || of_base("0b", 2) {
        return true;
    }
    let is_part = |c: char| c.is_ascii_digit() || "_.:e+-tz ".contains(c);
    let starts = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    starts && unsigned.contains(|c: char| c.is_ascii_digit()) && unsigned.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_quoted_only_where_some_reader_needs_it() {
        for plain in [
            "main",
            "Signs people in",
            "release/*",
            "https://ci.example.org/x?a=b",
            "^(feat|fix): x$x",
            "v1",
            "90d",
            "it's",
            "a#b",
            "a:b",
            "%",
            "-Xmx",
            "größe",
            "acme/shop",
            "10 people",
            "1abc",
        ] {
            let expected = ["%", "^(feat|fix): x$x"].contains(&plain);
            assert_eq!(scalar(plain, false).starts_with('\''), expected, "{plain}");
        }
        for quoted in [
            "",
            "yes",
            "No",
            "on",
            "OFF",
            "y",
            "~",
            "null",
            "True",
            "12",
            "1_000",
            "12:30:45",
            "0x1F",
            "0o17",
            "017",
            "1.5",
            "1e3",
            ".inf",
            "-.INF",
            ".NaN",
            "2099-01-31",
            "2001-12-14t21:59:43Z",
            "=",
            "<<",
            "*",
            "&a",
            "!t",
            "@x",
            "`x",
            "- a",
            "a: b",
            "a #b",
            "a:",
            " a",
            "a ",
            "#a",
            "'a",
            "?",
            "[a",
            "{a",
            "...",
            "---",
            "|",
            ">",
        ] {
            assert_eq!(
                scalar(quoted, false),
                format!("'{}'", quoted.replace('\'', "''")),
                "{quoted}"
            );
        }
        assert_eq!(scalar("a, b", false), "a, b");
        assert_eq!(scalar("a, b", true), "'a, b'");
        assert_eq!(scalar("a\tb\r\u{ad}\u{2028}", true), "\"a\\tb\\r\\xad\\u2028\"");
    }

    #[test]
    fn what_is_long_stands_on_many_lines() {
        let long = "x".repeat(40);
        let entry = |fields: &[(&str, Json)]| -> Vec<Item> {
            fields.iter().map(|(key, value)| Item::value(*key, value.clone())).collect()
        };
        let items = [
            Item::value("path", "acme/shop"),
            Item::new("settings", Node::Map(entry(&[("visibility", json!("private"))]))),
            Item::new(
                "hooks",
                Node::List(vec![
                    (
                        entry(&[
                            ("url", json!("https://a.example")),
                            ("token", json!({"env": "A"})),
                        ]),
                        Some("said".into()),
                    ),
                    (
                        entry(&[
                            ("url", json!(long)),
                            ("b", json!(long)),
                            ("list", json!(["a", "b, c"])),
                        ]),
                        Some("long".into()),
                    ),
                ]),
            ),
            Item::value("text", "one\n\ntwo\n"),
            Item::value("odd", "one \ntwo"),
        ];
        let expected = format!(
            "path: acme/shop\nsettings: {{visibility: private}}\nhooks:\n  - {{url: https://a.example, token: {{env: A}}}}  # said\n  # long\n  - url: {long}\n    b: {long}\n    list: [a, 'b, c']\ntext: |\n  one\n\n  two\nodd: \"one \\ntwo\"\n"
        );
        assert_eq!(document(&items), expected);
    }

    /// What undrift's own reader and another one, of YAML 1.1 in what it takes for other types, make
    /// of `text`.
    fn read_back(written: &str) -> [Json; 2] {
        let parsed = crate::yaml::parse(written);
        assert!(parsed.faults.is_empty(), "{written:?}: {:?}", parsed.faults);
        [parsed.documents[0].to_json(), serde_yaml::from_str(written).unwrap()]
    }

    proptest! {
        #[test]
        fn any_value_reads_back(text in r"(\PC|[\r\n\t :#'-]|\p{Cf}|[\u{2028}\u{feff}]){0,30}", number in -5..5i32) {
            let value = json!({"a": text, "b": [text, number], "c": {"d": text}});
            let items: Vec<_> = value.as_object().unwrap().iter()
                .map(|(key, value)| Item::value(key, value.clone())).collect();
            let list = Item::new("l", Node::List(vec![(items.clone(), None)]));
            for read in read_back(&document(&items)) {
                prop_assert_eq!(&read, &value);
            }
            for read in read_back(&document(&[list])) {
                prop_assert_eq!(&read["l"][0], &value);
            }
        }
    }
}
