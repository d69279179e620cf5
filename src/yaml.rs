//! YAML text to a tree in which every node knows where it stands.
//!
//! The rules are stricter than YAML's: the YAML 1.2 core schema decides what is a boolean, a key may
//! be written once, a tag has to be one of the core ones, and aliases may not multiply the document.

use std::{collections::HashMap, ops::Range};

use granit_parser::{Event, Options, Parser, ScalarStyle, Span};
use serde_json::{Number, Value};

/// More nodes than this in one document means that aliases multiply it.
const MAX_NODES: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub data: Data,
    /// Bytes in the source; for an alias, those of the alias.
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub name: String,
    pub span: Range<usize>,
}

#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{message}")]
pub struct Error {
    pub message: String,
    pub span: Range<usize>,
    /// Where the thing that the error speaks of was first written.
    pub first: Option<Range<usize>>,
}

impl Error {
    fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, first: None }
    }
}

/// Reads every document of `text`.
pub fn parse(text: &str) -> Result<Vec<Node>, Error> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut composer = Composer { events: Parser::new_from_str_with_options(text, options), anchors: HashMap::new(), left: MAX_NODES };
    let mut documents = Vec::new();
    loop {
        match composer.next()? {
            (Event::StreamEnd, _) => return Ok(documents),
            (Event::StreamStart | Event::DocumentEnd, _) => {}
            (Event::DocumentStart(..), _) => {
                composer.anchors.clear();
                let (event, span) = composer.next()?;
                documents.push(composer.node(event, span)?.0);
            }
            (event, _) => unreachable!("{event:?} between documents"),
        }
    }
}

struct Composer<'t, I: granit_parser::BorrowedInput<'t>> {
    events: Parser<'t, I>,
    /// Each anchored node with its size.
    anchors: HashMap<usize, (Node, usize)>,
    left: usize,
}

impl<'t, I: granit_parser::BorrowedInput<'t>> Composer<'t, I> {
    fn next(&mut self) -> Result<(Event<'t>, Range<usize>), Error> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, bytes(span))),
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or(0);
                Err(Error::new(error.info().to_string(), at..at))
            }
            None => Ok((Event::StreamEnd, 0..0)),
        }
    }

    /// The node that `event` starts, and how many nodes it holds.
    fn node(&mut self, event: Event<'t>, span: Range<usize>) -> Result<(Node, usize), Error> {
        let mut size = 1;
        let (anchor, data, end) = match event {
            Event::Alias(id) => {
                let (target, size) =
                    self.anchors.get(&id).cloned().ok_or_else(|| Error::new("an alias inside the node it names", span.clone()))?;
                self.spend(size, &span)?;
                return Ok((Node { data: target.data, span }, size));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = match tag.as_deref() {
                    None => None,
                    Some(tag) => Some(
                        tag.core_suffix().ok_or_else(|| Error::new(format!("unknown tag `{}`", tag.original()), span.clone()))?.to_owned(),
                    ),
                };
                (anchor, scalar(&text, style, tag.as_deref()).map_err(|why| Error::new(why, span.clone()))?, span.end)
            }
            Event::SequenceStart(_, anchor, _) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if let Event::SequenceEnd = event {
                        break (anchor, Data::List(items), span.end);
                    }
                    let (item, more) = self.node(event, span)?;
                    items.push(item);
                    size += more;
                }
            }
            Event::MappingStart(_, anchor, _) => {
                let mut entries: Vec<(Key, Node)> = Vec::new();
                let mut merged = Vec::new();
                loop {
                    let (event, at) = self.next()?;
                    if let Event::MappingEnd = event {
                        merge(&mut entries, merged);
                        break (anchor, Data::Map(entries), at.end);
                    }
                    let Event::Scalar(name, style, ..) = event else {
                        return Err(Error::new("a key has to be a plain word", at));
                    };
                    let key = Key { name: name.into_owned(), span: at };
                    let (event, at) = self.next()?;
                    let (value, more) = self.node(event, at)?;
                    size += more;
                    if style == ScalarStyle::Plain && key.name == "<<" {
                        merged.push(mergeable(value)?);
                    } else if let Some((first, _)) = entries.iter().find(|(k, _)| k.name == key.name) {
                        return Err(Error {
                            first: Some(first.span.clone()),
                            ..Error::new(format!("`{}` is written twice", key.name), key.span)
                        });
                    } else {
                        entries.push((key, value));
                    }
                }
            }
            event => unreachable!("{event:?} where a node starts"),
        };
        self.spend(1, &span)?;
        let node = Node { data, span: span.start..end };
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok((node, size))
    }

    fn spend(&mut self, nodes: usize, at: &Range<usize>) -> Result<(), Error> {
        self.left = self.left.checked_sub(nodes).ok_or_else(|| Error::new("the document is too large: aliases multiply it", at.clone()))?;
        Ok(())
    }
}

fn mergeable(value: Node) -> Result<Vec<(Key, Node)>, Error> {
    match value.data {
        Data::Map(entries) => Ok(entries),
        Data::List(items) => Ok(items.into_iter().map(mergeable).collect::<Result<Vec<_>, _>>()?.concat()),
        _ => Err(Error::new("`<<` merges a mapping or a list of mappings", value.span)),
    }
}

/// What is written in the mapping wins over what is merged into it, and the first merged over the next.
fn merge(entries: &mut Vec<(Key, Node)>, merged: Vec<Vec<(Key, Node)>>) {
    for (key, value) in merged.into_iter().flatten() {
        if !entries.iter().any(|(k, _)| k.name == key.name) {
            entries.push((key, value));
        }
    }
}

/// The YAML 1.2 core schema.
fn scalar(text: &str, style: ScalarStyle, tag: Option<&str>) -> Result<Data, String> {
    if tag == Some("str") || (tag.is_none() && style != ScalarStyle::Plain) {
        return Ok(Data::Text(text.to_owned()));
    }
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        _ => match number(text)? {
            Some(number) => Data::Number(number),
            None => Data::Text(text.to_owned()),
        },
    })
}

fn number(text: &str) -> Result<Option<Number>, String> {
    let too_large = || format!("`{text}` is too large for a number; quote it if it is text");
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x', ..] => (&text[2..], 16),
        [b'0', b'o', ..] => (&text[2..], 8),
        _ => (text.strip_prefix('+').unwrap_or(text), 10),
    };
    let unsigned = digits.strip_prefix('-').filter(|_| radix == 10).unwrap_or(digits);
    if !unsigned.is_empty() && unsigned.chars().all(|c| c.is_digit(radix)) {
        return i64::from_str_radix(digits, radix).map(|n| Some(n.into())).map_err(|_| too_large());
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !unsigned.contains(|c: char| c.is_ascii_digit()) {
        return match text {
            ".inf" | "-.inf" | "+.inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN" => {
                Err(format!("`{text}` is not a number the API knows"))
            }
            _ => Ok(None),
        };
    }
    match digits.parse::<f64>() {
        Ok(float) => Number::from_f64(float).map(Some).ok_or_else(too_large),
        Err(_) => Ok(None),
    }
}

fn bytes(span: Span) -> Range<usize> {
    span.byte_range().unwrap_or(0..0)
}

impl Node {
    pub fn to_json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(b) => Value::Bool(*b),
            Data::Number(n) => Value::Number(n.clone()),
            Data::Text(t) => Value::String(t.clone()),
            Data::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Data::Map(entries) => Value::Object(entries.iter().map(|(k, v)| (k.name.clone(), v.to_json())).collect()),
        }
    }

    pub fn get(&self, name: &str) -> Option<(&Key, &Node)> {
        let Data::Map(entries) = &self.data else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(key, value)| (key, value))
    }

    /// The node at a JSON pointer.
    pub fn at(&self, pointer: &str) -> Option<&Node> {
        pointer.split('/').skip(1).try_fold(self, |node, token| match &node.data {
            Data::List(items) => items.get(token.parse::<usize>().ok()?),
            _ => node.get(&token.replace("~1", "/").replace("~0", "~")).map(|(_, value)| value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(text: &str) -> Result<Value, Error> {
        parse(text).map(|documents| documents[0].to_json())
    }

    #[test]
    fn scalars_follow_yaml_1_2() {
        let text = "[true, yes, no, on, ~, '', 017, 0o17, 0x1F, 1_000, 12:30:45, 1e3, 1.10, +12, -3, v1, '1', .5, 1.]";
        let want = json!([true, "yes", "no", "on", null, "", 17, 15, 31, "1_000", "12:30:45", 1000.0, 1.1, 12, -3, "v1", "1", 0.5, 1.0]);
        assert_eq!(one(text), Ok(want));
    }

    #[test]
    fn a_key_is_written_once() {
        let error = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!((error.message.as_str(), error.span, error.first), ("`a` is written twice", 10..11, Some(0..1)));
    }

    #[test]
    fn what_is_written_wins_over_what_is_merged() {
        let text = "x: &x {p: 1, q: 2}\nz: &z {q: 8, r: 9}\ny: {<<: [*x, *z], p: 3}\n";
        assert_eq!(one(text).unwrap()["y"], json!({"p": 3, "q": 2, "r": 9}));
    }

    #[test]
    fn aliases_do_not_multiply() {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for i in 1..9 {
            text += &format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 9].join(","));
        }
        assert_eq!(parse(&text).unwrap_err().message, "the document is too large: aliases multiply it");
        assert!(parse(&"[".repeat(100_000)).is_err());
        assert!(parse("a: &a [*a]").is_err());
    }

    #[test]
    fn a_node_knows_where_it_stands() {
        let text = "kind: Project\nspec:\n  topics: [a, \"b c\"]\n";
        let node = &parse(text).unwrap()[0];
        assert_eq!(&text[node.at("/spec/topics/1").unwrap().span.clone()], "\"b c\"");
        assert_eq!(&text[node.at("/spec").unwrap().get("topics").unwrap().0.span.clone()], "topics");
    }

    #[test]
    fn odds_and_ends() {
        assert_eq!(one("\u{feff}a: 1\r\nb: 2\r\n"), Ok(json!({"a": 1, "b": 2})));
        assert_eq!(parse("").unwrap().len(), 0);
        assert_eq!(parse("a: 1\n---\na: 2\n").unwrap().len(), 2);
        assert_eq!(parse("a: !secret x").unwrap_err().message, "unknown tag `!secret`");
        assert_eq!(one("a: !!str 12"), Ok(json!({"a": "12"})));
        assert!(one("a: 18446744073709551616").is_err());
        assert!(one("a: .nan").is_err());
    }
}
