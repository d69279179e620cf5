//! Writes YAML as a person would write it. Short values are on one line, and long values on several
//! lines. Texts have quotes only if a reader of YAML 1.1 or 1.2 would misread the text without
//! quotes. Comments are above a value, or after the value in an aligned column.

use crate::{
    text::{escape, is_unsafe, wrap_lines},
    value::Json,
};

/// The maximum width of a line in characters.
const MAX_LINE_WIDTH: usize = 100;
/// The maximum number of fields in a mapping that is written on the same line as its key.
const MAX_INLINE_FIELDS: usize = 3;
/// Comments after values are aligned up to this column. A longer line moves its own comment to the
/// right.
const MAX_COMMENT_COLUMN: usize = 60;

/// A node to write.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputNode {
    /// A value, on one line unless it is a multi-line text.
    Value(Json),
    /// A mapping.
    Map(Vec<MapItem>),
    /// A list of mappings, each with a comment.
    List(Vec<(Vec<MapItem>, Option<String>)>),
}

impl OutputNode {
    /// The value without comments.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Value(value) => value.clone(),
            Self::Map(items) => mapping(items),
            Self::List(entries) => entries.iter().map(|(items, _)| mapping(items)).collect(),
        }
    }
}

/// The mapping of `items` without comments.
pub fn mapping(items: &[MapItem]) -> Json {
    items.iter().map(|item| (item.key.clone(), item.node.to_json())).collect()
}

/// A key of a mapping with its value and its comments.
#[derive(Clone, Debug, PartialEq)]
pub struct MapItem {
    /// The key.
    pub key: String,
    /// The value.
    pub node: OutputNode,
    /// Comment lines above the key.
    pub comments_above: Vec<String>,
    /// A comment after the value.
    pub comment_after: Option<String>,
}

impl MapItem {
    /// A key with a plain value.
    pub fn value(key: impl Into<String>, value: impl Into<Json>) -> Self {
        Self::new(key, OutputNode::Value(value.into()))
    }

    /// A key with a node.
    pub fn new(key: impl Into<String>, node: OutputNode) -> Self {
        Self { key: key.into(), node, comments_above: Vec::new(), comment_after: None }
    }

    /// Adds a comment after the value.
    #[must_use]
    pub fn with_comment(self, comment: impl Into<String>) -> Self {
        Self { comment_after: Some(comment.into()), ..self }
    }

    fn escaped_comment(&self) -> Option<String> {
        Some(escape(self.comment_after.as_deref()?).into_owned())
    }
}

/// Adds `leaf` to `items` at the path `keys`. Missing mappings are created.
pub fn insert_nested(items: &mut Vec<MapItem>, keys: &[impl AsRef<str>], leaf: MapItem) {
    let [first_key, nested_keys @ ..] = keys else { return };
    let name = first_key.as_ref();
    if nested_keys.is_empty() {
        return items.push(MapItem { key: name.to_owned(), ..leaf });
    }
    match items.iter_mut().find(|item| item.key == name) {
        Some(MapItem { node: OutputNode::Map(nested_items), .. }) => {
            insert_nested(nested_items, nested_keys, leaf);
        }
        _ => {
            let mut new_items = Vec::new();
            insert_nested(&mut new_items, nested_keys, leaf);
            items.push(MapItem::new(name, OutputNode::Map(new_items)));
        }
    }
}

/// A line, or a value for a line, with the comment that follows.
#[derive(Debug)]
struct OutputLine {
    text: String,
    comment: Option<String>,
}

impl OutputLine {
    /// Puts `head` in front of the text of this line.
    fn with_head(self, head: &str) -> Self {
        Self { text: format!("{head}{}", self.text), ..self }
    }

    /// Adds the comment of `item`; `None` if the line already has a different comment.
    fn with_comment_of(self, item: &MapItem) -> Option<Self> {
        let item_comment = item.escaped_comment();
        let can_share_comment =
            item_comment.is_none() || self.comment.is_none() || item_comment == self.comment;
        can_share_comment.then(|| Self { comment: item_comment.or(self.comment), ..self })
    }

    /// True if the line and its comment fit into the maximum width.
    fn fits(&self) -> bool {
        char_count(&self.text) <= MAX_LINE_WIDTH && self.has_room(char_count(&self.text))
    }

    /// True if the comment fits into the maximum width after `column` characters.
    fn has_room(&self, column: usize) -> bool {
        self.comment
            .as_ref()
            .is_none_or(|comment| column + char_count(comment) + 4 <= MAX_LINE_WIDTH)
    }
}

/// The lines of a document.
pub fn render_document(items: &[MapItem]) -> String {
    render_lines(|lines| items.iter().for_each(|item| write_item(lines, item, 0)))
}

/// The lines of a key with its value, indented by `indent` spaces.
pub fn render_item(item: &MapItem, indent: usize) -> String {
    render_lines(|lines| write_item(lines, item, indent))
}

/// The lines of a list entry whose dash is after `indent` spaces.
pub fn render_entry(items: &[MapItem], comment: Option<&str>, indent: usize) -> String {
    render_lines(|lines| write_entry(lines, items, comment, indent))
}

/// Renders the lines that `write` adds, with their comments aligned where possible.
fn render_lines(write: impl FnOnce(&mut Vec<OutputLine>)) -> String {
    let mut lines = Vec::new();
    write(&mut lines);
    let commented_lines = lines.iter().filter(|line| line.comment.is_some());
    let widths = commented_lines.map(|line| (line, char_count(&line.text)));
    let fitting_lines =
        widths.filter(|(line, width)| *width <= MAX_COMMENT_COLUMN && line.has_room(*width));
    let comment_column = fitting_lines.map(|(_, width)| width).max().unwrap_or_default();
    let mut text = String::new();
    for line in &lines {
        write_line(&mut text, line, comment_column);
    }
    text
}

/// Writes a line with its comment at `column`, if the comment fits there. Otherwise the comment
/// directly follows the text, or is above the line.
fn write_line(out: &mut String, line: &OutputLine, column: usize) {
    let length = char_count(&line.text);
    match &line.comment {
        None => *out += &line.text,
        Some(comment) if line.has_room(length) => {
            let pad = if line.has_room(column) { column.saturating_sub(length) } else { 0 };
            *out += &format!("{}{:pad$}  # {comment}", line.text, "");
        }
        Some(comment) => {
            let indent = line.text.len() - line.text.trim_start().len();
            *out += &format!("{}# {comment}\n{}", " ".repeat(indent), line.text);
        }
    }
    out.push('\n');
}

/// `text` as comment lines within the maximum width. Line feeds in `text` are escaped, so `text`
/// cannot end the comment.
fn comment_lines(text: &str, indent: usize) -> Vec<OutputLine> {
    let max_width = MAX_LINE_WIDTH.saturating_sub(indent + 2).max(40);
    let margin = " ".repeat(indent);
    let text = wrap_lines(&escape(text), max_width);
    text.split('\n').map(|line| line_without_comment(format!("{margin}# {line}"))).collect()
}

/// A line without a comment.
const fn line_without_comment(text: String) -> OutputLine {
    OutputLine { text, comment: None }
}

fn write_item(out: &mut Vec<OutputLine>, item: &MapItem, indent: usize) {
    for line in &item.comments_above {
        out.extend(comment_lines(line, indent));
    }
    let margin = " ".repeat(indent);
    let key = format!("{margin}{}:", format_scalar(&item.key, false));
    if let Some(flow) = flow_form(&item.node, false).and_then(|flow| flow.with_comment_of(item)) {
        let is_short =
            !matches!(&item.node, OutputNode::Map(items) if items.len() > MAX_INLINE_FIELDS);
        let line = flow.with_head(&format!("{key} "));
        if (is_short && line.fits()) || is_scalar(&item.node) {
            out.push(line);
            return;
        }
    }
    let mut head_line = OutputLine { text: key, comment: item.escaped_comment() };
    if let OutputNode::Value(Json::String(text)) = &item.node {
        head_line.text += if text.ends_with('\n') { " |" } else { " |-" };
    }
    out.push(head_line);
    match &item.node {
        OutputNode::Value(Json::String(text)) => {
            out.extend(text.lines().map(|line| match line {
                "" => line_without_comment(String::new()),
                line => line_without_comment(format!("{margin}  {line}")),
            }));
        }
        OutputNode::Value(Json::Array(items)) => {
            out.extend(items.iter().map(|value| {
                line_without_comment(format!("{margin}  - {}", format_inline(value, false)))
            }));
        }
        OutputNode::Value(Json::Object(object)) => {
            for (key, value) in object {
                write_item(out, &MapItem::value(key, value.clone()), indent + 2);
            }
        }
        OutputNode::Value(_) => {}
        OutputNode::Map(items) => items.iter().for_each(|item| write_item(out, item, indent + 2)),
        OutputNode::List(entries) => {
            for (entry, comment) in entries {
                write_entry(out, entry, comment.as_deref(), indent + 2);
            }
        }
    }
}

/// Writes a list entry, on one line if the entry fits on one line.
fn write_entry(
    out: &mut Vec<OutputLine>,
    items: &[MapItem],
    entry_comment: Option<&str>,
    indent: usize,
) {
    let margin = " ".repeat(indent);
    let line = flow_mapping(items).map(|flow| flow.with_head(&format!("{margin}- ")));
    let line = line.filter(OutputLine::fits);
    let comment = entry_comment.map(|comment_text| format!("  # {}", escape(comment_text)));
    let line_and_comment = line.as_ref().zip(comment.as_ref()).filter(|(line, comment)| {
        line.comment.is_none() && char_count(&line.text) + char_count(comment) <= MAX_LINE_WIDTH
    });
    if let (Some(comment_text), None) = (entry_comment, &line_and_comment) {
        out.extend(comment_lines(comment_text, indent));
    }
    match (&line, &line_and_comment) {
        (_, Some((line, comment))) => {
            out.push(line_without_comment(format!("{}{comment}", line.text)));
        }
        (Some(_), None) => out.extend(line),
        (None, _) => {
            let mut block = Vec::new();
            items.iter().for_each(|item| write_item(&mut block, item, indent + 2));
            if let Some(first_line) = block.first_mut() {
                // The first key is on the line of the dash.
                first_line.text.replace_range(indent..=indent, "-");
            }
            out.append(&mut block);
        }
    }
}

fn is_scalar(node: &OutputNode) -> bool {
    matches!(node, OutputNode::Value(value) if !value.is_array() && !value.is_object())
}

fn char_count(text: &str) -> usize {
    text.chars().count()
}

/// `node` on one line. `None` if `node` contains a multi-line text, if a part has a comment above,
/// or if parts have different comments.
fn flow_form(node: &OutputNode, is_bracketed: bool) -> Option<OutputLine> {
    match node {
        OutputNode::Value(value) if has_multiline_text(value) => None,
        OutputNode::Value(value) => Some(line_without_comment(format_inline(value, is_bracketed))),
        OutputNode::Map(items) => flow_mapping(items),
        OutputNode::List(entries) => {
            entries.is_empty().then(|| line_without_comment("[]".to_owned()))
        }
    }
}

fn flow_mapping(items: &[MapItem]) -> Option<OutputLine> {
    let (mut texts, mut comments) = (Vec::new(), Vec::new());
    for item in items {
        let value = flow_form(&item.node, true)
            .filter(|_| item.comments_above.is_empty())?
            .with_comment_of(item)?;
        texts.push(format!("{}: {}", format_scalar(&item.key, true), value.text));
        comments.push(value.comment);
    }
    let have_same_comment = comments.windows(2).all(|pair| pair[0] == pair[1]);
    let shared_comment = comments.into_iter().next().flatten();
    have_same_comment
        .then(|| OutputLine { text: format!("{{{}}}", texts.join(", ")), comment: shared_comment })
}

/// True if `value` contains a multi-line text.
fn has_multiline_text(value: &Json) -> bool {
    match value {
        Json::String(text) => is_block_text(text),
        Json::Array(items) => items.iter().any(has_multiline_text),
        Json::Object(object) => object.values().any(has_multiline_text),
        _ => false,
    }
}

/// `value` on one line. `is_bracketed` is true if the value is within brackets.
pub fn format_inline(value: &Json, is_bracketed: bool) -> String {
    match value {
        Json::String(text) => format_scalar(text, is_bracketed),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().map(|value| format_inline(value, true)).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(object) => {
            let items = object.iter();
            let items = items.map(|(key, value)| {
                [format_scalar(key, true), format_inline(value, true)].join(": ")
            });
            format!("{{{}}}", items.collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// True if `text` should be a literal block. A literal block has several lines, and is read back
/// unchanged even after an editor removed trailing white space.
fn is_block_text(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with([' ', '\t', '\n'])
        && !body.ends_with('\n')
        && !body.contains(|c: char| is_unsafe(c) && c != '\n')
        && body.lines().all(|line| !line.ends_with(' '))
}

/// A text as a scalar on one line. `is_bracketed` is true if the scalar is within brackets.
pub fn format_scalar(text: &str, is_bracketed: bool) -> String {
    if is_plain(text, is_bracketed) {
        text.to_owned()
    } else if text.contains(is_unsafe) {
        quote_double(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// A text in double quotes, on one line.
pub fn quote_double(text: &str) -> String {
    let mut quoted_text = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted_text.extend(['\\', c]),
            '\n' => quoted_text += "\\n",
            '\t' => quoted_text += "\\t",
            '\r' => quoted_text += "\\r",
            c if is_unsafe(c) => match u32::from(c) {
                code @ 0..=0xff => quoted_text += &format!("\\x{code:02x}"),
                code @ 0..=0xffff => quoted_text += &format!("\\u{code:04x}"),
                code => quoted_text += &format!("\\U{code:08x}"),
            },
            c => quoted_text.push(c),
        }
    }
    quoted_text + "\""
}

/// True if `text` needs no quotes, because every reader reads it as the same text.
fn is_plain(text: &str, is_bracketed: bool) -> bool {
    const INDICATORS: &[char] = &[
        '-', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@',
        '`',
    ];
    let has_plain_start = !text.starts_with(INDICATORS)
        || (text.starts_with('-')
            && text[1..].starts_with(|c: char| c.is_ascii_alphabetic())
            && !is_bracketed);
    let has_outer_space =
        text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace);
    let has_key_or_comment = text.contains(": ") || text.contains(" #") || text.ends_with(':');
    // Within brackets, older readers end a key at `:?`.
    let has_bracket =
        is_bracketed && (text.contains([',', '[', ']', '{', '}']) || text.contains(":?"));
    !text.is_empty()
        && has_plain_start
        && !has_outer_space
        && !has_key_or_comment
        && !has_bracket
        && !text.contains(is_unsafe)
        && !text.starts_with("...")
        && !is_misread(text)
}

/// True if some reader would read an unquoted `text` as another type.
fn is_misread(text: &str) -> bool {
    const WORDS: [&str; 13] =
        ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "=", "<<", ".nan"];
    let lower_text = text.to_ascii_lowercase();
    WORDS.contains(&&*lower_text) || is_number(&lower_text)
}

/// True if some reader would read the lower-case `text` as a number, a date or a time, including
/// underscores, base 60, and hexadecimal, octal and binary numbers.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == ".inf" {
        return true;
    }
    if [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().any(|(prefix, radix)| {
        let digits = unsigned.strip_prefix(prefix);
        digits.is_some_and(|digits| digits.chars().all(|c| c == '_' || c.is_digit(radix)))
    }) {
        return true;
    }
    let starts_like_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    starts_like_number
        && unsigned.contains(|c: char| c.is_ascii_digit())
        && unsigned.chars().all(|c: char| c.is_ascii_digit() || "_.:e+-tz ".contains(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_only_quoted_where_some_reader_needs_it() {
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
            assert_eq!(format_scalar(plain, false).starts_with('\''), expected, "{plain}");
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
                format_scalar(quoted, false),
                format!("'{}'", quoted.replace('\'', "''")),
                "{quoted}"
            );
        }
        assert_eq!(format_scalar("a:?b", false), "a:?b");
        assert_eq!(format_scalar("a:?b", true), "'a:?b'");
        assert_eq!(format_scalar("a, b", false), "a, b");
        assert_eq!(format_scalar("a, b", true), "'a, b'");
        assert_eq!(format_scalar("a\tb\r\u{ad}\u{2028}", true), "\"a\\tb\\r\\xad\\u2028\"");
    }

    #[test]
    fn long_values_have_several_lines() {
        let long_text = "x".repeat(40);
        let make_entry = |fields: &[(&str, Json)]| -> Vec<MapItem> {
            fields.iter().map(|(key, value)| MapItem::value(*key, value.clone())).collect()
        };
        let items = [
            MapItem::value("path", "acme/shop"),
            MapItem::new(
                "settings",
                OutputNode::Map(make_entry(&[("visibility", json!("private"))])),
            ),
            MapItem::new(
                "hooks",
                OutputNode::List(vec![
                    (
                        make_entry(&[
                            ("url", json!("https://a.example")),
                            ("token", json!({"env": "A"})),
                        ]),
                        Some("said".into()),
                    ),
                    (
                        make_entry(&[
                            ("url", json!(long_text)),
                            ("b", json!(long_text)),
                            ("list", json!(["a", "b, c"])),
                        ]),
                        Some("long".into()),
                    ),
                ]),
            ),
            MapItem::value("text", "one\n\ntwo\n"),
            MapItem::value("odd", "one \ntwo"),
        ];
        let expected = format!(
            "path: acme/shop\nsettings: {{visibility: private}}\nhooks:\n  - {{url: https://a.example, token: {{env: A}}}}  # said\n  # long\n  - url: {long_text}\n    b: {long_text}\n    list: [a, 'b, c']\ntext: |\n  one\n\n  two\nodd: \"one \\ntwo\"\n"
        );
        assert_eq!(render_document(&items), expected);
    }

    /// The text as read by undrift's reader, and by another reader that uses the types of YAML 1.1.
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
                .map(|(key, value)| MapItem::value(key, value.clone())).collect();
            let list = MapItem::new("l", OutputNode::List(vec![(items.clone(), None)]));
            for read in read_back(&render_document(&items)) {
                prop_assert_eq!(&read, &value);
            }
            for read in read_back(&render_document(&[list])) {
                prop_assert_eq!(&read["l"][0], &value);
            }
        }
    }
}
