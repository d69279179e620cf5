//! The texts of manifests before the edits, read on demand, and where something is declared in
//! them.

use std::{collections::BTreeMap, rc::Rc};

use super::edit::{PathStep, Pointer, written_entries, written_entry};
use crate::{
    diagnostic::{FileName, Source},
    origin::{Layer, Origin},
    yaml::{self, Key, Node, Parsed},
};

/// The files that are read so far.
pub(super) struct SourceFiles<'a> {
    read: &'a dyn Fn(&FileName) -> Result<String, String>,
    files: BTreeMap<FileName, Rc<SourceFile>>,
}

/// A manifest before the edits.
pub(super) struct SourceFile {
    pub(super) name: FileName,
    pub(super) text: String,
    parsed: Parsed,
    /// The line, the column and the byte of each key and list item, in order.
    positions: Vec<(u32, u32, usize)>,
}

/// A key in a manifest, or an item of the list with that key.
pub(super) struct Location<'t> {
    /// The mapping with the key.
    pub(super) pointer: Pointer,
    pub(super) mapping: &'t Node,
    pub(super) key: String,
    /// The position of the item in the list.
    pub(super) item: Option<usize>,
}

impl<'a> SourceFiles<'a> {
    /// No files; `read` returns the text of one.
    pub(super) fn new(read: &'a dyn Fn(&FileName) -> Result<String, String>) -> Self {
        Self { read, files: BTreeMap::new() }
    }

    /// The file `name`, which is read the first time.
    pub(super) fn open(&mut self, name: &FileName) -> Result<Rc<SourceFile>, String> {
        if let Some(file) = self.files.get(name) {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(SourceFile::new(name, (self.read)(name)?));
        self.files.insert(name.clone(), Rc::clone(&file));
        Ok(file)
    }

    /// The text of the file `name`, if it is read.
    pub(super) fn text(&self, name: &FileName) -> Option<&str> {
        self.files.get(name).map(|file| &*file.text)
    }
}

impl SourceFile {
    fn new(name: &FileName, text: String) -> Self {
        let parsed = yaml::parse(&text);
        let mut starts = Vec::new();
        parsed.documents.iter().for_each(|document| add_starts(document, &mut starts));
        starts.sort_unstable();
        starts.dedup();
        let source = Source::new(name.clone(), &text);
        let positions = starts.into_iter().map(|start| {
            let Origin { line, column, .. } = source.origin(start, Layer::Project);
            (line, column, start)
        });
        let positions = positions.collect();
        Self { name: name.clone(), parsed, positions, text }
    }

    /// The byte of the key or item at `origin`.
    fn offset(&self, origin: &Origin) -> Option<usize> {
        let position = (origin.line, origin.column);
        let at =
            self.positions.binary_search_by_key(&position, |(line, column, _)| (*line, *column));
        at.ok().map(|at| self.positions[at].2)
    }

    /// The document around `offset`, with its number.
    fn document(&self, offset: usize) -> Option<(usize, &Node)> {
        let documents = &self.parsed.documents;
        let number = documents.partition_point(|node| node.span.start <= offset).checked_sub(1)?;
        Some((number, &documents[number]))
    }

    /// The document whose `path` is at `origin`, with its number.
    pub(super) fn document_of(&self, origin: &Origin) -> Option<(usize, &Node)> {
        let offset = self.offset(origin)?;
        let (number, document) = self.document(offset)?;
        let (path, _) = written_entry(document, "path")?;
        (path.span.start == offset).then_some((number, document))
    }

    /// The position of the item of `list` that is declared at `origin`.
    pub(super) fn item(&self, list: &Node, origin: &Origin) -> Option<usize> {
        let offset = self.offset(origin)?;
        list.items().binary_search_by_key(&offset, Node::beginning).ok()
    }

    /// The entry of a section that is declared at `origin`.
    pub(super) fn locate_item(&self, origin: &Origin) -> Option<Location<'_>> {
        let (document, mapping) = self.document(self.offset(origin)?)?;
        written_entries(mapping).find_map(|(key, list)| {
            let item = Some(self.item(list, origin)?);
            let pointer = Pointer { document, steps: Vec::new() };
            Some(Location { pointer, mapping, key: key.name.clone(), item })
        })
    }

    /// The key that is declared at `origin`.
    pub(super) fn locate_key(&self, origin: &Origin) -> Option<Location<'_>> {
        let offset = self.offset(origin)?;
        let (document, mut node) = self.document(offset)?;
        let mut steps = Vec::new();
        loop {
            let step;
            if let Some((key, value)) = last_entry(node, offset) {
                if key.span.start == offset {
                    let (pointer, key) = (Pointer { document, steps }, key.name.clone());
                    return Some(Location { pointer, mapping: node, key, item: None });
                }
                (step, node) = (PathStep::Key(key.name.clone()), value);
            } else {
                let items = node.items();
                let after = items.partition_point(|item| item.span.start <= offset);
                let item = after.checked_sub(1)?;
                (step, node) = (PathStep::Item(item), &items[item]);
            }
            steps.push(step);
        }
    }
}

/// The last entry of a mapping that starts at or before `offset`.
fn last_entry(mapping: &Node, offset: usize) -> Option<(&Key, &Node)> {
    let before = written_entries(mapping).filter(|(key, _)| key.span.start <= offset);
    before.max_by_key(|(key, _)| key.span.start)
}

/// Adds the bytes at which keys and list items in `node` start.
fn add_starts(node: &Node, starts: &mut Vec<usize>) {
    for (key, value) in written_entries(node) {
        starts.push(key.span.start);
        add_starts(value, starts);
    }
    for item in node.items() {
        starts.push(item.beginning());
        add_starts(item, starts);
    }
}
