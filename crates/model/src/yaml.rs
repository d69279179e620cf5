//! Parses YAML text to a tree in which every node has its position.
//!
//! The rules are stricter than YAML's: the YAML 1.2 core schema decides what is a boolean, keys are
//! text and written once, a tag has to be one of the core ones, and aliases may not multiply the
//! text. Every fault is reported, not only the first: what is well-formed but forbidden leaves a
//! [`Data::Unreadable`] hole or is left out of the tree, and after broken syntax reading goes on
//! with the next document. No message quotes a scalar, because any scalar may be a secret.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use granit_parser::{BorrowedInput, ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde::Deserialize;

use crate::{steps, text, value::Json};

mod number;
mod syntax;
pub mod write;

/// The maximum depth of nested collections. Manifests need less than ten.
pub const MAX_DEPTH: usize = 64;

/// The maximum number of nodes in the documents of one text, with its aliases expanded.
const MAX_NODES: usize = 1_000_000;

/// The maximum size in bytes of all scalars in one text, with its aliases expanded.
const MAX_BYTES: usize = 16 << 20;

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub data: Data,
    /// The byte range in the text; for an alias, that of the alias.
    pub span: Range<usize>,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that JSON and 64 bits can hold.
    Number(serde_json::Number),
    /// Text.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in its written order.
    Map(Vec<(Key, Node)>),
    /// A value that is reported as a fault already.
    Unreadable,
}

/// The key of a mapping's entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The text of the key.
    pub name: String,
    /// The byte range in the text; for a merged key, where it was first written.
    pub span: Range<usize>,
}

/// A fault of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The code, one of `syntax`, `duplicate-key`, `null`, `yaml-key`, `yaml-tag`, `yaml-number`,
    /// `yaml-limit` and `control-character`, or `no-effect` for a warning.
    pub code: &'static str,
    /// A lower-case fragment.
    pub message: Cow<'static, str>,
    /// What to do about it.
    pub help: Option<&'static str>,
    /// The byte range in the text.
    pub span: Range<usize>,
    /// The first occurrence, for a duplicate.
    pub first: Option<Range<usize>>,
}

impl Fault {
    fn new(code: &'static str, message: impl Into<Cow<'static, str>>, span: Range<usize>) -> Self {
        Self { code, message: message.into(), help: None, span, first: None }
    }

    fn help(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
    }
}

/// The readable part of a text.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    /// The documents with valid syntax.
    pub documents: Vec<Node>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// Parts of the text that are in no document: entries whose key is not text or has no value,
    /// values of duplicate keys, and what a merge dropped.
    pub dropped: Vec<Range<usize>>,
    /// Whether a document is missing because of broken syntax.
    pub is_broken: bool,
}

/// The content of a YAML file below `src`, named without its end: `built_in!("kinds/presets")`.
#[macro_export]
macro_rules! built_in {
    ($name:literal) => {
        $crate::yaml::read_table(include_str!(concat!(env!("OUT_DIR"), "/tables/", $name, ".json")))
    };
}

pub use built_in;

/// Reads the JSON that the build made of a YAML file of the program. The result lives as long as the
/// program.
///
/// # Panics
/// If it has another form than expected. Each such file is read by a test.
pub fn read_table<T: Deserialize<'static>>(json: &str) -> T {
    let content = serde_json::from_str(json).expect("the build writes JSON");
    read_for_good(content).expect("a part of the program is well-formed")
}

/// Reads `content`, which then stays until the end of the process: what is read borrows its texts.
///
/// # Errors
/// If it has another form than expected.
pub fn read_for_good<T: Deserialize<'static>>(content: Json) -> serde_json::Result<T> {
    T::deserialize(&*Box::leak(Box::new(content)))
}

/// Parses every document of `text`.
pub fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    if let Some((at, c)) = text.char_indices().find(|(_, c)| is_forbidden(*c)) {
        parsed.faults.push(control_character(at..at + c.len_utf8()));
        parsed.is_broken = true;
        return parsed;
    }
    let options =
        granit_parser::options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let mut composer = Composer {
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        faults: Vec::new(),
        dropped: Vec::new(),
        nodes_left: MAX_NODES,
        bytes_left: MAX_BYTES,
        text,
    };
    loop {
        match composer.document() {
            Ok(Some(document)) => parsed.documents.push(document),
            Ok(None) => break,
            Err(fault) => {
                parsed.is_broken = true;
                let is_exhausted = composer.nodes_left == 0 || composer.bytes_left == 0;
                composer.faults.push(fault);
                if is_exhausted || !composer.events.proceed_next_document().unwrap_or(false) {
                    break;
                }
            }
        }
    }
    parsed.faults = composer.faults;
    parsed.dropped = composer.dropped;
    parsed
}

/// Whether texts of manifests must not contain `c`: control characters except tab, line feed and
/// carriage return.
pub fn is_forbidden(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r')
}

fn control_character(span: Range<usize>) -> Fault {
    Fault::new("control-character", "a control character", span)
        .help("remove it; the service and most editors cannot keep it")
}

/// A node with the costs of copying it.
struct Counted {
    node: Node,
    nodes: usize,
    bytes: usize,
    /// The depth of its nested collections.
    depth: usize,
}

impl Counted {
    /// A collection without its children.
    const fn collection(span: Range<usize>) -> Self {
        Self { node: Node { data: Data::Null, span }, nodes: 1, bytes: 0, depth: 1 }
    }

    /// Counts a child and returns its node.
    fn add(&mut self, child: Self) -> Node {
        self.nodes += child.nodes;
        self.bytes += child.bytes;
        self.depth = self.depth.max(child.depth + 1);
        child.node
    }
}

/// A key in the text.
struct Found<'t> {
    name: Cow<'t, str>,
    span: Range<usize>,
    /// Whether it is a plain `<<`.
    is_merge: bool,
}

/// Builds trees from events of the parser.
struct Composer<'t, I: BorrowedInput<'t>> {
    events: Parser<'t, I>,
    anchors: HashMap<usize, Counted>,
    faults: Vec<Fault>,
    dropped: Vec<Range<usize>>,
    nodes_left: usize,
    bytes_left: usize,
    text: &'t str,
}

impl<'t, I: BorrowedInput<'t>> Composer<'t, I> {
    /// The next document; `None` at the end. An error means that the rest of the document is
    /// broken.
    fn document(&mut self) -> Result<Option<Node>, Fault> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(None),
                (Event::DocumentStart(..), _) => {
                    self.anchors.clear();
                    let (event, span) = self.next()?;
                    return Ok(Some(self.node(event, span, 0)?.node));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Range<usize>), Fault> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, bytes(span))),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((Event::StreamEnd, self.text.len()..self.text.len())),
        }
    }

    fn syntax(&self, error: &ScanError) -> Fault {
        let at = error.marker().byte_offset().unwrap_or(self.text.len());
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => too_deep(at..at),
            ErrorKind::UnknownAnchor if self.is_elsewhere(at) => {
                Fault::new("syntax", "an alias of an anchor in another document", at..at)
                    .help("anchors hold within one document; to share between documents, write a `kind: Profile` or `kind: Defaults`")
            }
            ErrorKind::UnknownAnchor if self.is_merged(at) => {
                Fault::new("syntax", "`<<` names an anchor that this document does not have", at..at)
                    .help("set it with `&name` earlier in the same document; to share between documents, write a `kind: Profile` or `kind: Defaults`")
            }
            ErrorKind::UnknownAnchor if self.is_alias(at) => {
                Fault::new("syntax", "no anchor of this name is in the document before it", at..at)
                    .help("anchors hold within one document; to share between documents, write a `kind: Profile` or `kind: Defaults`. Text that starts with `*` must be in quotes")
            }
            ErrorKind::UnknownAnchor => Fault::new("syntax", "text that starts with `*` must be in quotes", at..at)
                .help("put it in quotes; without them it names a YAML alias, and this document has no anchor of that name before it"),
            kind => {
                if let Some(fault) = self.dollar(at) {
                    return fault;
                }
                let (message, help) = syntax::in_words(kind);
                let tab = self.text.get(at..).filter(|_| syntax::is_tab(kind)).and_then(|rest| rest.find('\t'));
                let at = tab.map_or(at, |tab| self.first_tab(at + tab));
                Fault { help, ..Fault::new("syntax", message, at..at) }
            }
        }
    }

    /// The tab that indents the first of the lines up to the one of the byte `at` that are indented so.
    fn first_tab(&self, at: usize) -> usize {
        let of = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let mut first = at;
        let mut end = self.text[..at].rfind('\n');
        while let Some(line) = end.map(|end| &self.text[..end]) {
            let start = line.rfind('\n').map_or(0, |end| end + 1);
            let Some(tab) = line[start..start + of(&line[start..])].find('\t') else { break };
            (first, end) = (start + tab, start.checked_sub(1));
        }
        first
    }

    /// Whether the alias at the byte `at` has an anchor before its document.
    fn is_elsewhere(&self, at: usize) -> bool {
        let (before, rest) = self.text.split_at_checked(at).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || ",]}".contains(c);
        let name = rest.split(ends).next().and_then(|alias| alias.strip_prefix('*'));
        let Some(anchor) = name.map(|name| format!("&{name}")) else { return false };
        let mut found = before.match_indices(&anchor);
        found.any(|(at, _)| before[at + anchor.len()..].chars().next().is_none_or(ends))
    }

    /// Whether what is at the byte `at` has the form of an alias, and not of a glob or a schedule.
    fn is_alias(&self, at: usize) -> bool {
        let rest = self.text.get(at + 1..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let name = rest.split([' ', ',', ']', '}']).next().unwrap_or_default();
        let after = rest[name.len()..].trim_start();
        name.starts_with(|c: char| c != '-')
            && text::is_name(name)
            && (after.is_empty() || after.starts_with(['#', ',', ']', '}']))
    }

    /// Whether what is at the byte `at` is merged into a mapping.
    fn is_merged(&self, at: usize) -> bool {
        let before = self.text.get(..at).map(|before| before.trim_end_matches([' ', '[', ',']));
        before.is_some_and(|before| before.ends_with("<<:"))
    }

    /// The fault of `${NAME}` within brackets, if the error at the byte `at` is about its brace:
    /// YAML reads the brace as a mapping.
    fn dollar(&self, at: usize) -> Option<Fault> {
        let before = self.text.get(..at)?;
        if !before.ends_with('$') || !self.text[at..].starts_with('{') {
            return None;
        }
        let fault =
            Fault::new("syntax", "`${...}` within `{}` or `[]` must be in quotes", at - 1..at);
        Some(fault.help("write `{env: NAME}` to take a secret from the environment, or put the text in quotes to send it as it is"))
    }

    /// The node that `event` starts, at this depth.
    fn node(
        &mut self,
        event: Event<'t>,
        span: Range<usize>,
        depth: usize,
    ) -> Result<Counted, Fault> {
        if depth > MAX_DEPTH {
            return Err(too_deep(span));
        }
        let (anchor, counted) = match event {
            Event::Alias(id) => return self.alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let (bytes, data) = (text.len(), self.scalar(text, style, tag.as_deref(), &span));
                (anchor, Counted { node: Node { data, span }, nodes: 1, bytes, depth: 0 })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", &span);
                (anchor, self.list(span, depth)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", &span);
                (anchor, self.map(span, depth)?)
            }
            _ => return Err(Fault::new("syntax", "a value is missing here", span)),
        };
        let own = if counted.node.is_collection() { 0 } else { counted.bytes };
        self.spend(1, own, &counted.node.span)?;
        if anchor != 0 {
            // The copy for aliases counts too, because anchors may be nested.
            self.spend(counted.nodes, counted.bytes, &counted.node.span)?;
            self.anchors.insert(anchor, Counted { node: counted.node.clone(), ..counted });
        }
        Ok(counted)
    }

    fn alias(&mut self, id: usize, span: Range<usize>, depth: usize) -> Result<Counted, Fault> {
        let Some(target) = self.anchors.get(&id) else {
            return Err(Fault::new("syntax", "an alias inside the value that it stands for", span));
        };
        let (nodes, bytes, deeper) = (target.nodes, target.bytes, target.depth);
        if depth + deeper > MAX_DEPTH + 1 {
            return Err(too_deep(span));
        }
        self.spend(nodes, bytes, &span)?;
        let data = self.anchors[&id].node.data.clone();
        Ok(Counted { node: Node { data, span }, nodes, bytes, depth: deeper })
    }

    fn list(&mut self, start: Range<usize>, depth: usize) -> Result<Counted, Fault> {
        let mut list = Counted::collection(start);
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                list.node.span.end = span.end.max(list.node.span.end);
                list.node.data = Data::List(items);
                return Ok(list);
            }
            items.push(list.add(self.node(event, span, depth + 1)?));
        }
    }

    fn map(&mut self, start: Range<usize>, depth: usize) -> Result<Counted, Fault> {
        let mut map = Counted::collection(start);
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        let dropped = self.dropped.len();
        let mut seen: BTreeMap<Cow<'t, str>, Range<usize>> = BTreeMap::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                self.merge(&mut entries, &mut seen, merged);
                map.node.span.end = span.end.max(map.node.span.end);
                // All that is left of keys that are none has a fault already.
                let is_lost = entries.is_empty() && self.dropped.len() > dropped;
                map.node.data = if is_lost { Data::Unreadable } else { Data::Map(entries) };
                return Ok(map);
            }
            let (key_start, key_end) = (span.start, span.end);
            let key = self.key(event, span, depth)?;
            let (event, span) = self.next()?;
            let mut value = map.add(self.node(event, span, depth + 1)?);
            let Some(Found { name, span, is_merge }) = key else {
                self.dropped.push(key_start..value.span.end.max(key_end));
                continue;
            };
            map.bytes += name.len();
            if value.data == Data::Null && self.is_commented_out(key_end) {
                let message = "the value is empty: ` #` starts a comment";
                let fault = Fault::new("null", message, span.clone());
                let help = "put it in quotes, as in `'#ff0000'`; if nothing is meant, write `null`";
                self.faults.push(fault.help(help));
                value.data = Data::Unreadable;
            }
            self.comment_in_text(key_start..key_end, &value);
            if value.data == Data::Null && !self.has_colon(key_end) {
                let fault = Fault::new("yaml-key", "a key without a value", span.clone());
                self.faults.push(fault.help("write `key: value`; in braces a `,` ends a value, so put a text that has one in quotes"));
                self.dropped.push(span);
            } else if let Some(first) = seen.get(&name) {
                let fault =
                    Fault::new("duplicate-key", "a key that is written twice in one mapping", span);
                let help = match value.data {
                    Data::Map(_) | Data::List(_) => "write what is below it once, below the first",
                    _ => "keep one of the two",
                };
                self.faults.push(Fault { first: Some(first.clone()), ..fault.help(help) });
                self.dropped.push(key_end..value.span.end);
            } else {
                seen.insert(name.clone(), span.clone());
                if is_merge {
                    self.mergeable(value, &mut merged);
                } else {
                    entries.push((Key { name: name.into_owned(), span }, value));
                }
            }
        }
    }

    /// Whether a colon follows the key that ends at `key_end`. A key without one, as in `{word}`,
    /// may be a secret that was meant as a value.
    fn has_colon(&self, key_end: usize) -> bool {
        self.text.get(key_end..).is_some_and(|rest| rest.trim_start().starts_with(':'))
    }

    /// Whether what looks like the value of the key that ends at `key_end` is a comment, as in
    /// `color: #ff0000`.
    fn is_commented_out(&self, key_end: usize) -> bool {
        let on_line = |rest: &'t str| rest.trim_start_matches([' ', '\t']);
        let value = self.text.get(key_end..).and_then(|rest| on_line(rest).strip_prefix(':'));
        let comment = value.and_then(|value| on_line(value).strip_prefix('#'));
        comment.is_some_and(|comment| comment.starts_with(|c: char| c.is_alphanumeric()))
    }

    /// Reports a line with `#` that seems to belong to the text over several lines that is the `value` of
    /// `key`, and is a comment because of its indentation.
    fn comment_in_text(&mut self, key: Range<usize>, value: &Node) {
        let Data::Text(text) = &value.data else { return };
        // Most values are none of these: nothing else of the text is read for them.
        let own = self.text.get(key.end..).and_then(|rest| rest.trim_start().strip_prefix(':'));
        if !own.is_some_and(|own| own.trim_start().starts_with(['|', '>'])) {
            return;
        }
        let start = key.start;
        let column = |line: &str| line.len() - line.trim_start().len();
        let own = start - self.text[..start].rfind('\n').map_or(0, |end| end + 1);
        let mut lines = self.text[start..].split_inclusive('\n');
        let head = lines.next().unwrap_or_default();
        let mut at = start + head.len();
        let (mut depth, mut is_parted) = (None, false);
        for line in lines.by_ref() {
            let is_blank = line.trim().is_empty();
            let is_inside = column(line) >= depth.unwrap_or(own + 1);
            if !is_blank && !is_inside {
                let next =
                    lines.find(|line| !line.trim().is_empty() && !line.trim().starts_with('#'));
                let is_beside = column(line) == own && next.is_some_and(|line| column(line) == own);
                let is_comment = line.trim_start().starts_with('#') && column(line) >= own;
                let at = at + column(line);
                if is_comment && text.is_empty() {
                    let fault =
                        Fault::new("null", "the text is empty: ` #` starts a comment", at..at + 1);
                    self.faults.push(fault.help(
                        "indent the text deeper than its key; if nothing is meant, write `''`",
                    ));
                } else if is_comment && !is_parted && !is_beside {
                    let fault = Fault::new(
                        "no-effect",
                        "a comment that is not a part of the text above",
                        at..at + 1,
                    );
                    self.faults.push(fault.help("indent it as the text is; if a comment is meant, write an empty line in front"));
                }
                return;
            }
            if !is_blank {
                depth = depth.or(Some(column(line)));
            }
            is_parted = is_blank;
            at += line.len();
        }
    }

    /// A key. A key that is not text is reported and skipped.
    fn key(
        &mut self,
        event: Event<'t>,
        span: Range<usize>,
        depth: usize,
    ) -> Result<Option<Found<'t>>, Fault> {
        if let Event::Scalar(text, style, _, tag) = event {
            let is_plain = style == ScalarStyle::Plain;
            let (name, found) = (text.clone(), self.scalar(text, style, tag.as_deref(), &span));
            if matches!(found, Data::Text(_)) {
                self.spend(0, name.len(), &span)?;
                return Ok(Some(Found { is_merge: is_plain && name == "<<", name, span }));
            }
            if found == Data::Unreadable {
                return Ok(None);
            }
        } else {
            self.node(event, span.clone(), depth + 1)?;
        }
        let fault = Fault::new("yaml-key", "a key that is not text", span);
        self.faults
            .push(fault.help("put a number, `true` or `null` in quotes if it is meant as a name"));
        Ok(None)
    }

    fn mergeable(&mut self, value: Node, merged: &mut Vec<(Key, Node)>) {
        match value.data {
            Data::Map(entries) => merged.extend(entries),
            Data::List(items) if !items.iter().any(|item| matches!(item.data, Data::List(_))) => {
                for item in items {
                    self.mergeable(item, merged);
                }
            }
            Data::Unreadable => {}
            _ => {
                self.dropped.push(value.span.clone());
                let message = "`<<` merges a mapping or a list of mappings";
                let fault = Fault::new("syntax", message, value.span);
                self.faults.push(fault.help("write `<<: *name`, with the name of an anchor"));
            }
        }
    }

    /// Written keys win over merged ones, and earlier merges over later ones.
    fn merge(
        &mut self,
        entries: &mut Vec<(Key, Node)>,
        seen: &mut BTreeMap<Cow<'t, str>, Range<usize>>,
        merged: Vec<(Key, Node)>,
    ) {
        for (key, value) in merged {
            if seen.contains_key(key.name.as_str()) {
                self.dropped.push(value.span);
            } else {
                seen.insert(Cow::Owned(key.name.clone()), key.span.clone());
                entries.push((key, value));
            }
        }
    }

    fn check_tag(&mut self, tag: Option<&Tag>, expected: &str, span: &Range<usize>) {
        if tag.is_some_and(|tag| tag.core_suffix() != Some(expected)) {
            self.faults.push(unknown_tag(span.clone()));
        }
    }

    /// The value of a scalar. A forbidden one is reported.
    fn scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Range<usize>,
    ) -> Data {
        // Only escapes can contain characters that the text must not.
        if style == ScalarStyle::DoubleQuoted && text.contains(is_forbidden) {
            let message = "an escape that stands for a control character";
            let fault = Fault::new("control-character", message, span.clone());
            let help = "put the text in single quotes: they keep a `\\` as it is";
            self.faults.push(fault.help(help));
            return Data::Unreadable;
        }
        let tag = match tag.map(Tag::core_suffix) {
            None => None,
            Some(Some(tag @ ("str" | "int" | "float" | "bool" | "null"))) => Some(tag),
            Some(_) => {
                self.faults.push(unknown_tag(span.clone()));
                return Data::Unreadable;
            }
        };
        if tag == Some("str") || (tag.is_none() && style != ScalarStyle::Plain) {
            return Data::Text(text.into_owned());
        }
        let data =
            match &*text {
                "" | "~" | "null" | "Null" | "NULL" => Data::Null,
                "true" | "True" | "TRUE" => Data::Bool(true),
                "false" | "False" | "FALSE" => Data::Bool(false),
                word => match number::parse(word) {
                    Ok(Some(number)) => Data::Number(number),
                    Ok(None) => Data::Text(text.into_owned()),
                    Err(message) => {
                        self.faults.push(Fault::new("yaml-number", message, span.clone()).help(
                            "put it in quotes if it is text; write no `0` in front of a number",
                        ));
                        return Data::Unreadable;
                    }
                },
            };
        let fits = match (tag, &data) {
            (None, _)
            | (Some("null"), Data::Null)
            | (Some("bool"), Data::Bool(_))
            | (Some("float"), Data::Number(_)) => true,
            (Some("int"), Data::Number(number)) => number.is_i64(),
            _ => false,
        };
        if !fits {
            self.faults.push(Fault::new(
                "yaml-tag",
                "a value that is not what its tag says",
                span.clone(),
            ));
            return Data::Unreadable;
        }
        data
    }

    fn spend(&mut self, nodes: usize, bytes: usize, at: &Range<usize>) -> Result<(), Fault> {
        steps::add(nodes as u64);
        let left = self.nodes_left.checked_sub(nodes).zip(self.bytes_left.checked_sub(bytes));
        (self.nodes_left, self.bytes_left) = left.unwrap_or((0, 0));
        left.map(|_| ()).ok_or_else(|| {
            Fault::new("yaml-limit", "the file is too large once its aliases are expanded", at.clone())
                .help("write out what differs instead of nesting aliases; the limits are 16 MiB and 1,000,000 values")
        })
    }
}

fn too_deep(span: Range<usize>) -> Fault {
    Fault::new("yaml-limit", format!("collections lie deeper than {MAX_DEPTH} in each other"), span)
}

fn unknown_tag(span: Range<usize>) -> Fault {
    Fault::new("yaml-tag", "an unknown tag", span)
        .help("a secret is written as `{env: NAME}` or `{file: PATH}`; put text that starts with `!` in quotes")
}

fn bytes(span: Span) -> Range<usize> {
    span.byte_range().unwrap_or(0..0)
}

impl Node {
    /// The value as JSON; unreadable parts are `null`.
    pub fn to_json(&self) -> Json {
        match &self.data {
            Data::Null | Data::Unreadable => Json::Null,
            Data::Bool(value) => Json::Bool(*value),
            Data::Number(number) => Json::Number(number.clone()),
            Data::Text(text) => Json::String(text.clone()),
            Data::List(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Data::Map(entries) => Json::Object(
                entries.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect(),
            ),
        }
    }

    /// The entry of a mapping with this key.
    pub fn get(&self, name: &str) -> Option<(&Key, &Self)> {
        let mut entries = self.entries().iter().inspect(|_| steps::step());
        entries.find(|(key, _)| key.name == name).map(|(key, value)| (key, value))
    }

    /// Where an entry begins, which its origin records: at its first key, or its alias.
    pub fn beginning(&self) -> usize {
        let first = self.entries().first().map(|(key, _)| key.span.start);
        first.filter(|at| self.span.contains(at)).unwrap_or(self.span.start)
    }

    /// The entries of a mapping; empty for other values.
    pub fn entries(&self) -> &[(Key, Self)] {
        if let Data::Map(entries) = &self.data { entries } else { &[] }
    }

    /// The items of a list; empty for other values.
    pub fn items(&self) -> &[Self] {
        if let Data::List(items) = &self.data { items } else { &[] }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Data::Text(text) = &self.data { Some(text) } else { None }
    }

    /// Whether it contains a fault that is reported already.
    pub fn has_unreadable(&self) -> bool {
        self.data == Data::Unreadable
            || self.items().iter().any(Self::has_unreadable)
            || self.entries().iter().any(|(_, value)| value.has_unreadable())
    }

    /// Whether it is a list or a mapping.
    pub const fn is_collection(&self) -> bool {
        matches!(self.data, Data::List(_) | Data::Map(_))
    }
}

impl From<Json> for Node {
    /// The value without a position.
    fn from(value: Json) -> Self {
        let data = match value {
            Json::Null => Data::Null,
            Json::Bool(value) => Data::Bool(value),
            Json::Number(number) => Data::Number(number),
            Json::String(text) => Data::Text(text),
            Json::Array(items) => Data::List(items.into_iter().map(Self::from).collect()),
            Json::Object(object) => {
                let entry = |(name, value)| (Key { name, span: 0..0 }, Self::from(value));
                Data::Map(object.into_iter().map(entry).collect())
            }
        };
        Self { data, span: 0..0 }
    }
}

#[cfg(test)]
mod tests;
