//! The texts of manifests before the edits. Each file is read when it is first needed, and is
//! indexed by line and column to find the declaration at an origin.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use super::edit::{PathStep, Pointer, written_entries};
use crate::{
    diagnostic::{FileName, SourceText},
    origin::{Layer, Origin},
    yaml::{self, Node},
};

/// Reads each manifest only once.
pub(super) struct SourceFiles<'a> {
    read: &'a dyn Fn(&FileName) -> Result<String, String>,
    files: BTreeMap<FileName, Rc<SourceFile>>,
}

/// A manifest before the edits.
pub(super) struct SourceFile {
    pub(super) name: FileName,
    pub(super) text: String,
    documents: Vec<Node>,
    /// The keys of all mappings, by line and column.
    key_locations: HashMap<(u32, u32), Location>,
    /// The items of the lists in documents, by line and column.
    item_locations: HashMap<(u32, u32), Location>,
}

/// The location of a key in a manifest, or of an item in the list with this key.
#[derive(Clone)]
pub(super) struct Location {
    /// The mapping that contains the key.
    pub(super) mapping: Pointer,
    pub(super) key: String,
    /// The index of the item in the list; `None` for the key itself.
    pub(super) item: Option<usize>,
}

impl<'a> SourceFiles<'a> {
    /// Starts without files. `read` returns the text of a file.
    pub(super) fn new(read: &'a dyn Fn(&FileName) -> Result<String, String>) -> Self {
        Self { read, files: BTreeMap::new() }
    }

    /// The file `name`. The first call with a name reads the file.
    pub(super) fn open(&mut self, name: &FileName) -> Result<Rc<SourceFile>, String> {
        if let Some(file) = self.files.get(name) {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(SourceFile::new(name, (self.read)(name)?));
        self.files.insert(name.clone(), Rc::clone(&file));
        Ok(file)
    }

    /// The text of the file `name`, if [`Self::open`] has read the file.
    pub(super) fn text(&self, name: &FileName) -> Option<&str> {
        self.files.get(name).map(|file| &*file.text)
    }
}

impl SourceFile {
    fn new(name: &FileName, text: String) -> Self {
        let documents = yaml::parse(&text).documents;
        let (mut keys, mut items) = (HashMap::new(), HashMap::new());
        let source = SourceText::new(name.clone(), &text);
        for (document, node) in documents.iter().enumerate() {
            let root = Pointer { document, steps: Vec::new() };
            add_keys(node, &root, &source, &mut keys);
            for (key, list) in written_entries(node) {
                for (index, item) in list.items().iter().enumerate() {
                    let (mapping, key) = (root.clone(), key.name.clone());
                    let location = Location { mapping, key, item: Some(index) };
                    let position = line_and_column(&source, item.start_offset());
                    items.entry(position).or_insert(location);
                }
            }
        }
        Self { name: name.clone(), documents, key_locations: keys, item_locations: items, text }
    }

    /// The key that is declared at `origin`.
    pub(super) fn key_location(&self, origin: &Origin) -> Option<&Location> {
        self.key_locations.get(&(origin.line, origin.column))
    }

    /// The entry of a section that is declared at `origin`.
    pub(super) fn item_location(&self, origin: &Origin) -> Option<&Location> {
        self.item_locations.get(&(origin.line, origin.column))
    }

    /// The location of the `path`, or of the item in `paths`, that is declared at `origin`.
    pub(super) fn path_location(&self, origin: &Origin) -> Option<Location> {
        let location = self.key_location(origin).or_else(|| self.item_location(origin))?;
        let root = Pointer { document: location.mapping.document, steps: Vec::new() };
        let (key, item) = match (&location.mapping.steps[..], &*location.key) {
            ([], "path") => ("path", None),
            ([], "paths") => ("paths", Some(location.item?)),
            ([PathStep::Key(paths)], path) if paths == "paths" => {
                let node = self.node(&location.mapping)?;
                ("paths", Some(node.entries().iter().position(|(key, _)| key.name == path)?))
            }
            _ => return None,
        };
        Some(Location { mapping: root, key: key.to_owned(), item })
    }

    /// The node at `pointer`.
    pub(super) fn node(&self, pointer: &Pointer) -> Option<&Node> {
        let document = self.documents.get(pointer.document)?;
        pointer.steps.iter().try_fold(document, |node, step| step.follow(node))
    }
}

/// Adds the keys in `node`, which is at `pointer`, in the order of the text.
fn add_keys(
    node: &Node,
    pointer: &Pointer,
    source: &SourceText<'_>,
    keys: &mut HashMap<(u32, u32), Location>,
) {
    for (key, value) in written_entries(node) {
        let location = Location { mapping: pointer.clone(), key: key.name.clone(), item: None };
        keys.entry(line_and_column(source, key.span.start)).or_insert(location);
        add_keys(value, &pointer.child(PathStep::Key(key.name.clone())), source, keys);
    }
    for (index, item) in node.items().iter().enumerate() {
        add_keys(item, &pointer.child(PathStep::Item(index)), source, keys);
    }
}

/// The line and the column of the byte at offset `byte`, both from 1.
fn line_and_column(source: &SourceText<'_>, byte: usize) -> (u32, u32) {
    let Origin { line, column, .. } = source.origin(byte, Layer::Project);
    (line, column)
}
