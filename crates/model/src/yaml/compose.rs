//! Builds the trees of documents from the events of the parser.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, btree_map::Entry},
    ops::Range,
};

use granit_parser::{BorrowedInput, Event, Parser, ScalarStyle, Span, Tag};

use super::{
    MAX_DEPTH, MappingKey, Node, NodeValue, ParsedYaml, YamlFault, is_forbidden_char, number, texts,
};
use crate::steps;

/// The maximum number of nodes in the documents of one text, with its aliases expanded.
const MAX_NODES: usize = 1_000_000;

/// The maximum size in bytes of all scalars in one text, with its aliases expanded.
const MAX_BYTES: usize = 16 << 20;

/// Parses every document of `text`.
pub fn parse(text: &str) -> ParsedYaml {
    let options =
        granit_parser::options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let mut composer = Composer {
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        parsed: ParsedYaml::default(),
        remaining_nodes: MAX_NODES,
        remaining_bytes: MAX_BYTES,
        text,
    };
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| is_forbidden_char(*c)) {
        composer.report(texts::CONTROL_CHARACTER, offset..offset + c.len_utf8());
        composer.parsed.is_broken = true;
        return composer.parsed;
    }
    loop {
        match composer.read_document() {
            Ok(Some(document)) => composer.parsed.documents.push(document),
            Ok(None) => return composer.parsed,
            Err(fault) => {
                composer.parsed.is_broken = true;
                composer.parsed.faults.push(fault);
                let is_exhausted = composer.remaining_nodes == 0 || composer.remaining_bytes == 0;
                if is_exhausted || !composer.events.proceed_next_document().unwrap_or(false) {
                    return composer.parsed;
                }
            }
        }
    }
}

/// The size of a node, which is the cost of a copy.
#[derive(Clone, Copy)]
struct NodeSize {
    nodes: usize,
    bytes: usize,
    /// The maximum depth of the nested collections in the node.
    depth: usize,
}

/// A node with its size.
struct CountedNode {
    node: Node,
    size: NodeSize,
}

/// A node, or a fault that makes the rest of the document unreadable.
type NodeResult = Result<CountedNode, YamlFault>;

impl CountedNode {
    /// A collection without its children.
    const fn collection(span: Range<usize>) -> Self {
        let size = NodeSize { nodes: 1, bytes: 0, depth: 1 };
        Self { node: Node { data: NodeValue::Null, span }, size }
    }

    /// Counts a child and returns its node.
    fn add_child(&mut self, child: Self) -> Node {
        self.size.nodes += child.size.nodes;
        self.size.bytes += child.size.bytes;
        self.size.depth = self.size.depth.max(child.size.depth + 1);
        child.node
    }
}

/// A key of a mapping.
struct ParsedKey<'t> {
    name: Cow<'t, str>,
    span: Range<usize>,
    /// True if the key is an unquoted `<<`.
    is_merge_key: bool,
}

/// Builds the trees of the documents in one text.
pub(super) struct Composer<'t, I: BorrowedInput<'t>> {
    events: Parser<'t, I>,
    anchors: HashMap<usize, CountedNode>,
    /// The result so far.
    parsed: ParsedYaml,
    remaining_nodes: usize,
    remaining_bytes: usize,
    pub(super) text: &'t str,
}

impl<'t, I: BorrowedInput<'t>> Composer<'t, I> {
    /// The next document; `None` at the end. An error makes the rest of the document unreadable.
    fn read_document(&mut self) -> Result<Option<Node>, YamlFault> {
        loop {
            match self.next_event()? {
                (Event::StreamEnd, _) => return Ok(None),
                (Event::DocumentStart(..), _) => {
                    self.anchors.clear();
                    let (event, span) = self.next_event()?;
                    return Ok(Some(self.read_node(event, span, 0)?.node));
                }
                _ => {}
            }
        }
    }

    fn next_event(&mut self) -> Result<(Event<'t>, Range<usize>), YamlFault> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, byte_range(span))),
            Some(Err(error)) => Err(self.syntax_fault(&error)),
            None => Ok((Event::StreamEnd, self.text.len()..self.text.len())),
        }
    }

    /// The node that starts with `event`. `depth` is the number of collections around the node.
    fn read_node(&mut self, event: Event<'t>, span: Range<usize>, depth: usize) -> NodeResult {
        if depth > MAX_DEPTH {
            return Err(YamlFault::new(texts::TOO_DEEP, span));
        }
        let (anchor, CountedNode { node, size }) = match event {
            Event::Alias(id) => return self.expand_alias(id, span, depth),
            Event::Scalar(text, style, anchor, tag) => {
                let size = NodeSize { nodes: 1, bytes: text.len(), depth: 0 };
                let data = self.read_scalar(text, style, tag.as_deref(), &span);
                (anchor, CountedNode { node: Node { data, span }, size })
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
        self.spend_budget(1, if node.is_collection() { 0 } else { size.bytes }, &node.span)?;
        if anchor != 0 {
            // Count the copy for aliases too, because nested anchors could multiply the copies.
            self.spend_budget(size.nodes, size.bytes, &node.span)?;
            self.anchors.insert(anchor, CountedNode { node: node.clone(), size });
        }
        Ok(CountedNode { node, size })
    }

    fn expand_alias(&mut self, id: usize, span: Range<usize>, depth: usize) -> NodeResult {
        let Some(size) = self.anchors.get(&id).map(|target| target.size) else {
            return Err(YamlFault::new(texts::ALIAS_OF_ITSELF, span));
        };
        if depth + size.depth > MAX_DEPTH + 1 {
            return Err(YamlFault::new(texts::TOO_DEEP, span));
        }
        self.spend_budget(size.nodes, size.bytes, &span)?;
        let data = self.anchors[&id].node.data.clone();
        Ok(CountedNode { node: Node { data, span }, size })
    }

    fn read_list(&mut self, start_span: Range<usize>, depth: usize) -> NodeResult {
        let mut list = CountedNode::collection(start_span);
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next_event()?;
            if matches!(event, Event::SequenceEnd) {
                list.node.span.end = span.end.max(list.node.span.end);
                list.node.data = NodeValue::List(items);
                return Ok(list);
            }
            items.push(list.add_child(self.read_node(event, span, depth + 1)?));
        }
    }

    fn read_map(&mut self, start_span: Range<usize>, depth: usize) -> NodeResult {
        let mut map = CountedNode::collection(start_span);
        let (mut entries, mut merged_entries) = (Vec::new(), Vec::<(MappingKey, Node)>::new());
        let dropped_count = self.parsed.dropped_ranges.len();
        let mut first_spans: BTreeMap<Cow<'t, str>, Range<usize>> = BTreeMap::new();
        loop {
            let (event, span) = self.next_event()?;
            if matches!(event, Event::MappingEnd) {
                // Keys of the mapping take precedence over merged keys, and earlier merged keys
                // over later merged keys.
                for (key, value) in merged_entries {
                    match first_spans.entry(Cow::Owned(key.name.clone())) {
                        Entry::Occupied(_) => self.parsed.dropped_ranges.push(value.span),
                        Entry::Vacant(entry) => {
                            entry.insert(key.span.clone());
                            entries.push((key, value));
                        }
                    }
                }
                map.node.span.end = span.end.max(map.node.span.end);
                // If all keys were dropped, their faults are reported already.
                let has_only_dropped =
                    entries.is_empty() && self.parsed.dropped_ranges.len() > dropped_count;
                map.node.data =
                    if has_only_dropped { NodeValue::Unreadable } else { NodeValue::Map(entries) };
                return Ok(map);
            }
            let (key_start, key_end) = (span.start, span.end);
            let key = self.read_key(event, span, depth)?;
            let (event, span) = self.next_event()?;
            let mut value = map.add_child(self.read_node(event, span, depth + 1)?);
            let Some(ParsedKey { name, span, is_merge_key: is_merge }) = key else {
                self.parsed.dropped_ranges.push(key_start..value.span.end.max(key_end));
                continue;
            };
            map.size.bytes += name.len();
            if value.data == NodeValue::Null && self.is_commented_out(key_end) {
                self.report(texts::COMMENTED_OUT, span.clone());
                value.data = NodeValue::Unreadable;
            }
            self.report_comment_in_text(key_start..key_end, &value);
            if value.data == NodeValue::Null && !self.has_colon(key_end) {
                self.report(texts::KEY_WITHOUT_VALUE, span.clone());
                self.parsed.dropped_ranges.push(span);
            } else if let Some(first_span) = first_spans.get(&name) {
                let is_collection = value.is_collection();
                let fault_texts =
                    if is_collection { texts::COLLECTION_TWICE } else { texts::KEY_TWICE };
                self.report(fault_texts, span).first_span = Some(first_span.clone());
                self.parsed.dropped_ranges.push(key_end..value.span.end);
            } else {
                first_spans.insert(name.clone(), span.clone());
                if is_merge {
                    self.collect_merged(value, &mut merged_entries);
                } else {
                    entries.push((MappingKey { name: name.into_owned(), span }, value));
                }
            }
        }
    }

    /// Reads a key. A key that is not text is reported and skipped.
    fn read_key(
        &mut self,
        event: Event<'t>,
        span: Range<usize>,
        depth: usize,
    ) -> Result<Option<ParsedKey<'t>>, YamlFault> {
        if let Event::Scalar(text, style, _, tag) = event {
            let is_plain = style == ScalarStyle::Plain;
            let (name, value) =
                (text.clone(), self.read_scalar(text, style, tag.as_deref(), &span));
            if matches!(value, NodeValue::Text(_)) {
                self.spend_budget(0, name.len(), &span)?;
                return Ok(Some(ParsedKey { is_merge_key: is_plain && name == "<<", name, span }));
            }
            if value == NodeValue::Unreadable {
                return Ok(None);
            }
        } else {
            self.read_node(event, span.clone(), depth + 1)?;
        }
        self.report(texts::KEY_OF_NO_TEXT, span);
        Ok(None)
    }

    fn collect_merged(&mut self, value: Node, merged_entries: &mut Vec<(MappingKey, Node)>) {
        match value.data {
            NodeValue::Map(entries) => merged_entries.extend(entries),
            NodeValue::List(items)
                if !items.iter().any(|item| matches!(item.data, NodeValue::List(_))) =>
            {
                for item in items {
                    self.collect_merged(item, merged_entries);
                }
            }
            NodeValue::Unreadable => {}
            _ => {
                self.parsed.dropped_ranges.push(value.span.clone());
                self.report(texts::NO_MERGE, value.span);
            }
        }
    }

    fn check_tag(&mut self, tag: Option<&Tag>, expected_tag: &str, span: &Range<usize>) {
        if tag.is_some_and(|tag| tag.core_suffix() != Some(expected_tag)) {
            self.report(texts::TAG, span.clone());
        }
    }

    /// The value of a scalar. A forbidden value is reported.
    fn read_scalar(
        &mut self,
        text: Cow<'t, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: &Range<usize>,
    ) -> NodeValue {
        // Forbidden characters can only come from escapes, because the text itself was already
        // checked.
        if style == ScalarStyle::DoubleQuoted && text.contains(is_forbidden_char) {
            self.report(texts::CONTROL_ESCAPE, span.clone());
            return NodeValue::Unreadable;
        }
        let tag = match tag.map(Tag::core_suffix) {
            None => None,
            Some(Some(tag @ ("str" | "int" | "float" | "bool" | "null"))) => Some(tag),
            Some(_) => {
                self.report(texts::TAG, span.clone());
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
                        self.report(texts::CUT_BY_COMMENT, comment);
                    }
                    NodeValue::Text(text.into_owned())
                }
                Err(message) => {
                    self.report(texts::NUMBER, span.clone()).message = message.into();
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
            self.report(texts::OTHER_TYPE, span.clone());
            return NodeValue::Unreadable;
        }
        data
    }

    /// Adds a fault with these texts.
    pub(super) fn report(
        &mut self,
        texts: [&'static str; 3],
        span: Range<usize>,
    ) -> &mut YamlFault {
        let faults = &mut self.parsed.faults;
        faults.push(YamlFault::new(texts, span));
        let last_index = faults.len() - 1;
        &mut faults[last_index]
    }

    fn spend_budget(
        &mut self,
        nodes: usize,
        bytes: usize,
        span: &Range<usize>,
    ) -> Result<(), YamlFault> {
        steps::add_steps(nodes as u64);
        let remaining_budget =
            self.remaining_nodes.checked_sub(nodes).zip(self.remaining_bytes.checked_sub(bytes));
        (self.remaining_nodes, self.remaining_bytes) = remaining_budget.unwrap_or((0, 0));
        remaining_budget.map(|_| ()).ok_or_else(|| YamlFault::new(texts::TOO_LARGE, span.clone()))
    }
}

fn byte_range(span: Span) -> Range<usize> {
    span.byte_range().unwrap_or(0..0)
}
