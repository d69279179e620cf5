//! What a document says, without the text: every part knows where it is written.
//!
//! Small, because all documents are there at once: a large organisation writes fields by the
//! million.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    desired::{Acknowledgement, Declared, Life, State, Unlisted},
    field::Scope,
    kind,
    origin::{Origin, Sourced},
};

/// One document.
#[derive(Debug)]
pub(in crate::manifest) enum Document {
    /// About a group or project.
    Container(Container),
    /// What a guard may let pass.
    Acknowledge(Box<Acknowledge>),
}

/// What one document says about a group or project.
#[derive(Debug)]
pub(in crate::manifest) struct Container {
    pub(in crate::manifest) scope: Scope,
    /// The full path as written, and where its key is.
    pub(in crate::manifest) path: Sourced<Arc<str>>,
    /// Whether the file was named, or is in the folder that was.
    pub(in crate::manifest) is_named: bool,
    /// What becomes of it as a whole.
    pub(in crate::manifest) life: Life,
    pub(in crate::manifest) body: Body,
}

/// What layers say: sections, and what becomes of what they do not list.
#[derive(Debug, Default)]
pub(in crate::manifest) struct Body {
    /// The sections, ordered by name, the container's own (`create`) included.
    pub(in crate::manifest) sections: Vec<Section>,
    /// What to do with live entries that no manifest lists, by the name of the section.
    pub(in crate::manifest) unlisted: BTreeMap<&'static str, Sourced<Unlisted>>,
}

/// A section.
#[derive(Debug)]
pub(in crate::manifest) struct Section {
    pub(in crate::manifest) of: kind::Section,
    /// Where its key is.
    pub(in crate::manifest) origin: Origin,
    /// What it holds, as it is written. A section that is no list has exactly one part.
    pub(in crate::manifest) parts: Vec<Part>,
}

/// An entry, or the one thing that a section is.
#[derive(Debug)]
pub(in crate::manifest) struct Part {
    /// Where it begins: its first key, or the key of the section.
    pub(in crate::manifest) origin: Origin,
    /// Whether it is to be there. `create: false` and `push_rule: null` are absent parts.
    pub(in crate::manifest) state: State,
    /// Whether its schema accepts all of it. Its kind looks at nothing else.
    pub(in crate::manifest) is_sound: bool,
    /// Its fields, those below `extra:` included.
    pub(in crate::manifest) fields: Declared,
}

/// What a guard may let pass.
#[derive(Debug)]
pub(in crate::manifest) struct Acknowledge {
    pub(in crate::manifest) known: Acknowledgement,
    /// Where it says until when.
    pub(in crate::manifest) until: Option<Origin>,
}
