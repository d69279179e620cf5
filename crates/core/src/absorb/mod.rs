//! Takes justified drift back into the manifests: the pure part of `undrift absorb`.
//!
//! [`drift`] finds what must be declared to remove a difference; [`absorb`] edits the texts
//! accordingly. `locate` finds the place of a declaration, `edit` changes the text there and
//! preserves the rest. Then the edited manifests are loaded: they must declare every goal, and
//! otherwise the same as before. If one goal cannot be edited, it is refused and nothing is
//! changed.

mod drift;
mod edit;
mod locate;
mod templates;
mod verify;

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

pub use drift::{Compared, Goal, addresses, drift, lacking};

use crate::{
    address::Address,
    desired::{Container, Desired},
    diagnostic::{FileName, Source},
    origin::{Layer, Origin},
    value::Json,
    yaml::{self, Node, Parsed},
};
use drift::GoalChange;
use edit::Edit;
use locate::Edits;

/// The texts of manifests, by file name.
pub type Contents = BTreeMap<FileName, String>;

/// Which document to edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The document of the group or project itself.
    Own,
    /// The document with the present declaration.
    AtSource,
}

/// Why a difference cannot be absorbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The object.
    pub address: Address,
    /// The reason, as the end of a sentence.
    pub why: String,
    /// The place that the reason concerns, if any.
    pub origin: Option<Origin>,
    /// Whether the object could not be read.
    pub is_unread: bool,
}

impl Refusal {
    /// Why the object at `address` cannot be absorbed.
    pub fn new(address: &Address, why: impl Into<String>) -> Self {
        Self { address: address.clone(), why: why.into(), origin: None, is_unread: false }
    }
}

/// The edited manifests.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Absorbed {
    /// The files that change, with their old and new texts.
    pub files: BTreeMap<FileName, (String, String)>,
    /// Other groups and projects whose declarations change.
    pub others: BTreeSet<String>,
    /// Whether `Defaults` or a `Profile` change, which also count for what rules include.
    pub edits_rules: bool,
}

/// Why nothing is edited.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    /// Some differences cannot be absorbed.
    Refused(Vec<Refusal>),
    /// The edited manifests would not be valid, for this reason.
    Wrong(String),
}

/// A manifest as it is before the edits.
struct Manifest {
    file: FileName,
    text: String,
    parsed: Parsed,
}

impl Manifest {
    /// The byte at `origin`.
    fn offset(&self, origin: &Origin) -> usize {
        Source::new(self.file.clone(), &self.text).offset(origin.line, origin.column)
    }
}

/// The texts of manifests, read on demand.
struct Manifests<'a> {
    read: &'a dyn Fn(&FileName) -> Result<String, String>,
    loaded: BTreeMap<FileName, Rc<Manifest>>,
}

impl Manifests<'_> {
    fn get(&mut self, file: &FileName) -> Result<Rc<Manifest>, String> {
        if let Some(loaded) = self.loaded.get(file) {
            return Ok(Rc::clone(loaded));
        }
        let text = (self.read)(file)?;
        let text = Rc::new(Manifest { file: file.clone(), parsed: yaml::parse(&text), text });
        self.loaded.insert(file.clone(), Rc::clone(&text));
        Ok(text)
    }
}

/// Edits the manifests so that they declare the goals. `read` returns the text of a file; `reload`
/// returns the declarations of all manifests with some texts replaced.
///
/// # Errors
/// Why nothing is edited.
pub fn absorb(
    before: &Desired,
    goals: &[Goal],
    mode: Mode,
    read: &dyn Fn(&FileName) -> Result<String, String>,
    reload: &dyn Fn(&Contents) -> Result<Desired, String>,
) -> Result<Absorbed, Failed> {
    let mut texts = Manifests { read, loaded: BTreeMap::new() };
    let mut covered: BTreeSet<&Address> = BTreeSet::new();
    loop {
        let edits = locate_all(before, goals, mode, &covered, &mut texts)?;
        let edited = apply_edits(goals, edits, &texts.loaded)?;
        let after = reload(&edited).map_err(Failed::Wrong)?;
        // An entry removed from a document may still be declared by a lower layer.
        let still = |goal: &&Goal| goal.what == GoalChange::Gone && verify::declares(&after, goal);
        let still: BTreeSet<_> = goals.iter().filter(still).map(|goal| &goal.address).collect();
        if mode == Mode::Own && covered.is_empty() && !still.is_empty() {
            covered = still;
            continue;
        }
        let others = verify::check(before, &after, goals, mode).map_err(Failed::Refused)?;
        let files = edited.into_iter().filter_map(|(file, text)| {
            let old = &texts.loaded.get(&file)?.text;
            (*old != text).then(|| (file, (old.clone(), text)))
        });
        let files: BTreeMap<_, _> = files.collect();
        let edits_rules =
            files.values().any(|(old, new)| rule_documents(old) != rule_documents(new));
        return Ok(Absorbed { files, others, edits_rules });
    }
}

/// The `Defaults` and `Profile`s of a text.
fn rule_documents(text: &str) -> Vec<Json> {
    let is_rule = |node: &Node| {
        let kind = node.get("kind").and_then(|(_, kind)| kind.text());
        kind.is_some_and(|kind| Layer::RULES.contains(&kind))
    };
    let documents = yaml::parse(text).documents;
    documents.iter().filter(|node| is_rule(node)).map(Node::to_json).collect()
}

/// The edits for each goal.
fn locate_all(
    before: &Desired,
    goals: &[Goal],
    mode: Mode,
    covered: &BTreeSet<&Address>,
    texts: &mut Manifests<'_>,
) -> Result<Vec<(usize, Edits)>, Failed> {
    let (mut placed, mut refused) = (Vec::new(), Vec::new());
    for (number, goal) in goals.iter().enumerate() {
        let is_target = |container: &&Container| container.path == goal.container.path;
        let Some(container) = before.containers.iter().find(is_target) else { continue };
        match locate::locate_edits(goal, container, mode, covered.contains(&goal.address), texts) {
            Ok(edits) => placed.push((number, edits)),
            Err(refusal) => refused.push(refusal),
        }
    }
    if refused.is_empty() { Ok(placed) } else { Err(Failed::Refused(refused)) }
}

/// Applies all edits to the texts, in an order that keeps positions valid.
fn apply_edits(
    goals: &[Goal],
    edits: Vec<(usize, Edits)>,
    texts: &BTreeMap<FileName, Rc<Manifest>>,
) -> Result<Contents, Failed> {
    let mut by_file: BTreeMap<FileName, Vec<(usize, Edit)>> = BTreeMap::new();
    for (number, edits) in edits {
        for (file, edit) in edits {
            by_file.entry(file).or_default().push((number, edit));
        }
    }
    let (mut edited, mut refused) = (BTreeMap::new(), Vec::new());
    for (file, mut edits) in by_file {
        edits.sort_by_key(|(_, edit)| match edit {
            Edit::Put { .. } => (0, 0),
            Edit::Push { .. } => (1, 0),
            Edit::Remove { item, .. } => (2, usize::MAX - item),
        });
        let text = texts[&file].text.clone();
        let text = edit::apply_all(text, edits, &mut |number, stuck, text| {
            let refusal = Refusal::new(&goals[number].address, stuck.why);
            refused.push(stuck.at(refusal, &file, text));
        });
        edited.insert(file, text);
    }
    if refused.is_empty() { Ok(edited) } else { Err(Failed::Refused(refused)) }
}
