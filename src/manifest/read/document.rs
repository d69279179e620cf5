//! What a document says, without the text: every part knows where it is written.
//!
//! Small, because all documents are there at once: a large organisation writes fields by the
//! million.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use crate::{
    address::Globs,
    desired::{Acknowledgement, Declared, Life, Unlisted},
    field::Scope,
    kind,
    origin::{Origin, Sourced},
    value::{Fields, Json, Object, Value},
};

/// One document.
#[derive(Debug)]
pub(in crate::manifest) enum Document {
    /// About a group or project.
    Container(Box<Container>),
    /// About many of them.
    Rule(Box<Rule>),
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

/// What one document says about many groups, or about many projects.
#[derive(Debug)]
pub(in crate::manifest) struct Rule {
    pub(in crate::manifest) scope: Scope,
    pub(in crate::manifest) holds: Holds,
    /// Where it says which ones.
    pub(in crate::manifest) origin: Origin,
    /// Whether the file was named, or is in the folder that was.
    pub(in crate::manifest) is_named: bool,
    /// Whether it also brings in what exists where it holds and nobody declares.
    pub(in crate::manifest) includes: bool,
    pub(in crate::manifest) body: Body,
}

/// Which groups or projects a rule is about.
#[derive(Debug)]
pub(in crate::manifest) enum Holds {
    /// `Defaults`: those of which the path matches one of the first globs and none of the others.
    Where { paths: Globs, except: Globs },
    /// `Profile`: those that use it, each of which has to give the parameters that it needs.
    Whoever { name: Arc<str>, needs: Vec<Sourced<Arc<str>>> },
}

/// What layers say: sections, what becomes of what they do not list, and how layers combine.
#[derive(Clone, Debug, Default)]
pub(in crate::manifest) struct Body {
    /// The sections, ordered by name, the container's own (`create`) included.
    pub(in crate::manifest) sections: Vec<Section>,
    /// What to do with live entries that no manifest lists, by the name of the section.
    pub(in crate::manifest) unlisted: BTreeMap<&'static str, Sourced<Unlisted>>,
    /// The profiles that are used.
    pub(in crate::manifest) uses: Option<Uses>,
    /// What templates fill in, by name.
    pub(in crate::manifest) params: BTreeMap<Arc<str>, Sourced<Arc<str>>>,
    /// The sections for which nothing is taken from lower layers.
    pub(in crate::manifest) ignores: Vec<&'static str>,
    /// Whether it is only compared and reported.
    pub(in crate::manifest) watch: Option<Sourced<bool>>,
}

/// The profiles that a layer uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::manifest) struct Uses {
    /// Where it says so.
    pub(in crate::manifest) origin: Origin,
    /// Whether they come in addition to what lower layers use.
    pub(in crate::manifest) is_added: bool,
    /// Their names, the later outranking the earlier.
    pub(in crate::manifest) names: Vec<Sourced<Arc<str>>>,
}

/// A section.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct Section {
    pub(in crate::manifest) of: kind::Section,
    /// Where its key is.
    pub(in crate::manifest) origin: Origin,
    /// What it holds, as it is written. A section that is no list has exactly one part.
    pub(in crate::manifest) parts: Vec<Part>,
}

/// An entry, or the one thing that a section is.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct Part {
    /// Where it begins: its first key, or the key of the section.
    pub(in crate::manifest) origin: Origin,
    /// What is to become of it. `create: false` and `push_rule: null` are absent parts.
    pub(in crate::manifest) state: State,
    /// Whether its schema accepts all of it. Its kind looks at nothing else.
    pub(in crate::manifest) is_sound: bool,
    /// Whether something else than a value stands in a field: see
    /// [`instead`](super::instead).
    pub(in crate::manifest) is_open: bool,
    /// Its fields, those below `extra:` included.
    pub(in crate::manifest) fields: Declared,
    /// See [`Part::key`].
    pub(in crate::manifest) key: OnceLock<String>,
}

/// What is to become of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::manifest) enum State {
    /// It is to be there, as declared.
    Present,
    /// It is to be gone.
    Absent,
    /// It is somebody else's.
    Unmanaged,
}

impl Part {
    /// What tells it from others of its section.
    pub(in crate::manifest) fn key(&self, of: kind::Section) -> &str {
        self.key.get_or_init(|| identity(of, self.fields.values()).name)
    }
}

/// What tells an entry with these fields from others of its section.
pub(in crate::manifest) fn identity(of: kind::Section, fields: Fields) -> kind::Identity {
    // A reference to a secret is the text that names it.
    let json = |value| match value {
        Value::Plain(json) => json,
        Value::Secret(reference) => Json::from(reference.to_string()),
        Value::File(path) => Json::from(path),
    };
    let fields: Object = fields.into_iter().map(|(name, value)| (name, json(value))).collect();
    of.rules.identify(of, &fields)
}

/// What a guard may let pass.
#[derive(Debug)]
pub(in crate::manifest) struct Acknowledge {
    pub(in crate::manifest) known: Acknowledgement,
    /// Where it says until when.
    pub(in crate::manifest) until: Option<Origin>,
}
