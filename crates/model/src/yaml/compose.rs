//! Builds trees from events of the parser.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use granit_parser::{BorrowedInput, Event, Parser, ScalarStyle, Span, Tag};

use super::{
    MAX_DEPTH, MappingKey, Node, NodeValue, Parsed, YamlFault, is_forbidden, number, texts,
};
use crate::steps;

/// The maximum number of nodes in the documents of one text, with its aliases expanded.
const MAX_NODES: usize = 1_000_000;

/// The maximum size in bytes of all scalars in one text, with its aliases expanded.
const MAX_BYTES: usize = 16 << 20;

/// Parses every document of `text`.
pub fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    if let Some((at, c)) = text.char_indices().find(|(_, c)| is_forbidden(*c)) {
        parsed.faults.push(YamlFault::new(texts::CONTROL_CHARACTER, at..at + c.len_utf8()));
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
        nodes_budget: MAX_NODES,
        bytes_budget: MAX_BYTES,
        text,
    };
    loop {
        match composer.read_document() {
            Ok(Some(document)) => parsed.documents.push(document),
            Ok(None) => break,
            Err(fault) => {
                parsed.is_broken = true;
                let is_exhausted = composer.nodes_budget == 0 || composer.bytes_budget == 0;
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

/// A node with the costs of copying it.
struct CountedNode {
    node: Node,
    nodes: usize,
    bytes: usize,
    /// The depth of its nested collections.
    depth: usize,
}

/// A node, or the fault after which the rest of the document is broken.
type Composed = Result<CountedNode, YamlFault>;

impl CountedNode {
    /// A collection without its children.
    const fn collection(span: Range<usize>) -> Self {
        Self { node: Node { data: NodeValue::Null, span }, nodes: 1, bytes: 0, depth: 1 }
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
struct FoundKey<'t> {
    name: Cow<'t, str>,
    span: Range<usize>,
    /// Whether it is a plain `<<`.
    is_merge: bool,
}

/// Builds trees from events of the parser.
pub(super) struct Composer<'t, I: BorrowedInput<'t>> {
    events: Parser<'t, I>,
    anchors: HashMap<usize, CountedNode>,
    pub(super) faults: Vec<YamlFault>,
    dropped: Vec<Range<usize>>,
    nodes_budget: usize,
    bytes_budget: usize,
    pub(super) text: &'t str,
}

impl<'t, I: BorrowedInput<'t>> Composer<'t, I> {
    /// The next document; `None` at the end. An error means that the rest of the document is
    /// broken.
    fn read_document(&mut self) -> Result<Option<Node>, YamlFault> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(None),
                (Event::DocumentStart(..), _) => {
                    self.anchors.clear();
                    let (event, span) = self.next()?;
                    return Ok(Some(self.read_node(event, span, 0)?.node));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'t>, Range<usize>), YamlFault> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, byte_range(span))),
            Some(Err(error)) => Err(self.syntax_fault(&error)),
            None => Ok((Event::StreamEnd, self.text.len()..self.text.len())),
        }
    }

    /// The node that `event` starts, at this depth.
    fn read_node(&mut self, event: Event<'t>, span: Range<usize>, depth: usize) -> Composed {
        if depth > MAX_DEPTH {
            return Err(YamlFault::new(texts::TOO_DEEP, span));
        }
        let (anchor, counted) = match event {
            Event::Alias(id) => return self.expand_alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let (bytes, data) =
                    (text.len(), self.read_scalar(text, style, tag.as_deref(), &span));
                (anchor, CountedNode { node: Node { data, span }, nodes: 1, bytes, depth: 0 })
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", &span);
                (anchor, self.read_list(span, depth)?)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", &span);
                (anchor, self.read_map(span, depth)?)
            }
            _ => return Err(YamlFault::new(texts::NO_VALUE, span)),
        };
        let scalar_bytes = if counted.node.is_collection() { 0 } else { counted.bytes };
        self.spend(1, scalar_bytes, &counted.node.span)?;
        if anchor != 0 {
            // The copy for aliases counts too, because anchors may be nested.
            self.spend(counted.nodes, counted.bytes, &counted.node.span)?;
            self.anchors.insert(anchor, CountedNode { node: counted.node.clone(), ..counted });
        }
        Ok(counted)
    }

    fn expand_alias(&mut self, id: usize, span: Range<usize>, depth: usize) -> Composed {
        let Some(target) = self.anchors.get(&id) else {
            return Err(YamlFault::new(texts::ALIAS_OF_ITSELF, span));
        };
        let (nodes, bytes, target_depth) = (target.nodes, target.bytes, target.depth);
        if depth + target_depth > MAX_DEPTH + 1 {
            return Err(YamlFault::new(texts::TOO_DEEP, span));
        }
        self.spend(nodes, bytes, &span)?;
        let data = self.anchors[&id].node.data.clone();
        Ok(CountedNode { node: Node { data, span }, nodes, bytes, depth: target_depth })
    }

    fn read_list(&mut self, start: Range<usize>, depth: usize) -> Composed {
        let mut list = CountedNode::collection(start);
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                list.node.span.end = span.end.max(list.node.span.end);
                list.node.data = NodeValue::List(items);
                return Ok(list);
            }
            items.push(list.add(self.read_node(event, span, depth + 1)?));
        }
    }

    fn read_map(&mut self, start: Range<usize>, depth: usize) -> Composed {
        let mut map = CountedNode::collection(start);
        let (mut entries, mut merged) = (Vec::new(), Vec::new());
        let dropped_count = self.dropped.len();
        let mut first_spans: BTreeMap<Cow<'t, str>, Range<usize>> = BTreeMap::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                self.merge_entries(&mut entries, &mut first_spans, merged);
                map.node.span.end = span.end.max(map.node.span.end);
                // If only dropped keys remain, their faults are reported already.
                let is_lost = entries.is_empty() && self.dropped.len() > dropped_count;
                map.node.data =
                    if is_lost { NodeValue::Unreadable } else { NodeValue::Map(entries) };
                return Ok(map);
            }
            let (key_start, key_end) = (span.start, span.end);
            let key = self.read_key(event, span, depth)?;
            let (event, span) = self.next()?;
            let mut value = map.add(self.read_node(event, span, depth + 1)?);
            let Some(FoundKey { name, span, is_merge }) = key else {
                self.dropped.push(key_start..value.span.end.max(key_end));
                continue;
            };
            map.bytes += name.len();
            if value.data == NodeValue::Null && self.is_commented_out(key_end) {
                self.faults.push(YamlFault::new(texts::COMMENTED_OUT, span.clone()));
                value.data = NodeValue::Unreadable;
            }
            self.report_comment_in_text(key_start..key_end, &value);
            if value.data == NodeValue::Null && !self.has_colon(key_end) {
                self.faults.push(YamlFault::new(texts::KEY_WITHOUT_VALUE, span.clone()));
                self.dropped.push(span);
            } else if let Some(first) = first_spans.get(&name) {
                let is_collection = value.is_collection();
                let name = if is_collection { texts::COLLECTION_TWICE } else { texts::KEY_TWICE };
                self.faults.push(YamlFault {
                    first_span: Some(first.clone()),
                    ..YamlFault::new(name, span)
                });
                self.dropped.push(key_end..value.span.end);
            } else {
                first_spans.insert(name.clone(), span.clone());
                if is_merge {
                    self.collect_merged(value, &mut merged);
                } else {
                    entries.push((MappingKey { name: name.into_owned(), span }, value));
                }
            }
        }
    }

    /// A key. A key that is not text is reported and skipped.
    fn read_key(
        &mut self,
        event: Event<'t>,
        span: Range<usize>,
        depth: usize,
    ) -> Result<Option<FoundKey<'t>>, YamlFault> {
        if let Event::Scalar(text, style, _, tag) = event {
            let is_plain = style == ScalarStyle::Plain;
            let (name, found) =
                (text.clone(), self.read_scalar(text, style, tag.as_deref(), &span));
            if matches!(found, NodeValue::Text(_)) {
                self.spend(0, name.len(), &span)?;
                return Ok(Some(FoundKey { is_merge: is_plain && name == "<<", name, span }));
            }
            if found == NodeValue::Unreadable {
                return Ok(None);
            }
        } else {
            self.read_node(event, span.clone(), depth + 1)?;
        }
        self.faults.push(YamlFault::new(texts::KEY_OF_NO_TEXT, span));
        Ok(None)
    }

    fn collect_merged(&mut self, value: Node, merged: &mut Vec<(MappingKey, Node)>) {
        match value.data {
            NodeValue::Map(entries) => merged.extend(entries),
            NodeValue::List(items)
                if !items.iter().any(|item| matches!(item.data, NodeValue::List(_))) =>
            {
                for item in items {
                    self.collect_merged(item, merged);
                }
            }
            NodeValue::Unreadable => {}
            _ => {
                self.dropped.push(value.span.clone());
                self.faults.push(YamlFault::new(texts::NO_MERGE, value.span));
            }
        }
    }

    /// Written keys win over merged ones, and earlier merges over later ones.
    fn merge_entries(
        &mut self,
        entries: &mut Vec<(MappingKey, Node)>,
        seen: &mut BTreeMap<Cow<'t, str>, Range<usize>>,
        merged: Vec<(MappingKey, Node)>,
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
            self.faults.push(YamlFault::new(texts::TAG, span.clone()));
        }
    }

    /// The value of a scalar. A forbidden one is reported.
    fn read_scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Range<usize>,
    ) -> NodeValue {
        // Only escapes can contain characters that the text must not.
        if style == ScalarStyle::DoubleQuoted && text.contains(is_forbidden) {
            self.faults.push(YamlFault::new(texts::CONTROL_ESCAPE, span.clone()));
            return NodeValue::Unreadable;
        }
        let tag = match tag.map(Tag::core_suffix) {
            None => None,
            Some(Some(tag @ ("str" | "int" | "float" | "bool" | "null"))) => Some(tag),
            Some(_) => {
                self.faults.push(YamlFault::new(texts::TAG, span.clone()));
                return NodeValue::Unreadable;
            }
        };
        if tag == Some("str") || (tag.is_none() && style != ScalarStyle::Plain) {
            return NodeValue::Text(text.into_owned());
        }
        let data = match &*text {
            "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
            "true" | "True" | "TRUE" => NodeValue::Bool(true),
            "false" | "False" | "FALSE" => NodeValue::Bool(false),
            word => match number::parse(word) {
                Ok(Some(number)) => NodeValue::Number(number),
                Ok(None) => {
                    if let Some(comment) = self.find_joined_comment(span.end) {
                        self.faults.push(YamlFault::new(texts::CUT_BY_COMMENT, comment));
                    }
                    NodeValue::Text(text.into_owned())
                }
                Err(message) => {
                    let fault = YamlFault::new(texts::NUMBER, span.clone());
                    self.faults.push(YamlFault { message: message.into(), ..fault });
                    return NodeValue::Unreadable;
                }
            },
        };
        let matches_tag = match (tag, &data) {
            (None, _)
            | (Some("null"), NodeValue::Null)
            | (Some("bool"), NodeValue::Bool(_))
            | (Some("float"), NodeValue::Number(_)) => true,
            (Some("int"), NodeValue::Number(number)) => number.is_i64(),
            _ => false,
        };
        if !matches_tag {
            self.faults.push(YamlFault::new(texts::OTHER_TYPE, span.clone()));
            return NodeValue::Unreadable;
        }
        data
    }

    fn spend(&mut self, nodes: usize, bytes: usize, at: &Range<usize>) -> Result<(), YamlFault> {
        steps::add(nodes as u64);
        let remaining =
            self.nodes_budget.checked_sub(nodes).zip(self.bytes_budget.checked_sub(bytes));
        (self.nodes_budget, self.bytes_budget) = remaining.unwrap_or((0, 0));
        remaining.map(|_| ()).ok_or_else(|| YamlFault::new(texts::TOO_LARGE, at.clone()))
    }
}

fn byte_range(span: Span) -> Range<usize> {
    span.byte_range().unwrap_or(0..0)
}
