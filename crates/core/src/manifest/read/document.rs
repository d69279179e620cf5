//! The content of a document without its text. Every part has its origin.
//!
//! It is small, because all documents are in memory at once: a large organisation writes millions
//! of fields.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use jiff::civil::Date;

use crate::{
    address::Globs,
    desired::{Acknowledgement, ContainerLife, Declared, Unlisted},
    field::Scope,
    kind,
    origin::{Origin, Sourced},
    secret::Reference,
    value::{Json, Value},
};

/// One document.
#[derive(Debug)]
pub(in crate::manifest) enum Document {
    /// About a group or project.
    Container(Box<DeclaredContainer>),
    /// About many of them.
    Rule(Box<Rule>),
    /// An acknowledgement.
    Acknowledge(Box<DocumentAcknowledgement>),
}

/// The declaration of a group or project: of one document, or merged from all layers.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct DeclaredContainer {
    pub(in crate::manifest) scope: Scope,
    /// The full path as written, and the position of its key.
    pub(in crate::manifest) path: Sourced<Arc<str>>,
    /// Whether the file was named or is in the named folder.
    pub(in crate::manifest) is_named: bool,
    /// Whether its document declares others, too.
    pub(in crate::manifest) is_shared: bool,
    /// The changes of the whole container.
    pub(in crate::manifest) lifecycle: ContainerLife,
    pub(in crate::manifest) body: LayerBody,
}

/// A document about many groups or many projects: `Defaults` apply to matching paths, a `Profile` to
/// the documents that use it.
#[derive(Debug)]
pub(in crate::manifest) struct Rule {
    pub(in crate::manifest) scope: Scope,
    /// The globs for paths that it applies to; none for a profile.
    pub(in crate::manifest) paths: Globs,
    pub(in crate::manifest) except: Option<Sourced<Globs>>,
    /// The name of a profile.
    pub(in crate::manifest) profile: Option<Arc<str>>,
    /// The parameters that each user of the profile must set.
    pub(in crate::manifest) required_params: Vec<Sourced<Arc<str>>>,
    /// The position of its `match` or name.
    pub(in crate::manifest) origin: Origin,
    /// Whether the file was named or is in the named folder.
    pub(in crate::manifest) is_named: bool,
    /// Whether it includes existing containers that are not declared.
    pub(in crate::manifest) includes_undeclared: bool,
    pub(in crate::manifest) body: LayerBody,
}

/// The content of a layer: sections, policies for unlisted entries, and how it combines with other
/// layers.
#[derive(Clone, Debug, Default)]
pub(in crate::manifest) struct LayerBody {
    /// The sections, ordered by name, including that of the container itself (`create`).
    pub(in crate::manifest) sections: Vec<DocumentSection>,
    /// The policies for unlisted live entries, by section.
    pub(in crate::manifest) unlisted: BTreeMap<&'static str, Sourced<Unlisted>>,
    /// The profiles that it uses.
    pub(in crate::manifest) uses: Option<Uses>,
    /// The parameters for templates, by name; once merged, only used ones.
    pub(in crate::manifest) params: BTreeMap<Arc<str>, Sourced<Value>>,
    /// The sections for which lower layers are ignored.
    pub(in crate::manifest) ignored_sections: Vec<&'static str>,
    /// Whether the container is only compared and reported.
    pub(in crate::manifest) watch: Option<Sourced<bool>>,
    /// Once merged: the secrets whose names were filled in.
    pub(in crate::manifest) filled_names: BTreeSet<FilledName>,
}

/// A secret whose name was filled in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) struct FilledName {
    pub(in crate::manifest) secret: Reference,
    /// The inserted texts. Two containers may share a secret only if these are equal.
    pub(in crate::manifest) fillings: Vec<String>,
    /// The place of the field.
    pub(in crate::manifest) origin: Origin,
}

/// The profiles that a layer uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::manifest) struct Uses {
    /// The position.
    pub(in crate::manifest) origin: Origin,
    /// Whether they are added to the profiles of lower layers.
    pub(in crate::manifest) adds_to_lower: bool,
    /// Their names; a later one outranks an earlier one.
    pub(in crate::manifest) names: Vec<Sourced<Arc<str>>>,
}

/// A section.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct DocumentSection {
    pub(in crate::manifest) kind: kind::Section,
    /// The position of its key.
    pub(in crate::manifest) origin: Origin,
    /// Its content as written. A section that is not a list has exactly one part.
    pub(in crate::manifest) parts: Vec<SectionPart>,
}

/// An entry, or the whole content of a section that is not a list.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct SectionPart {
    /// Its start: its first key, or the key of the section.
    pub(in crate::manifest) origin: Origin,
    /// Its state. `create: false` and `push_rule: null` are absent parts.
    pub(in crate::manifest) state: EntryState,
    /// The extent to which its schema accepts it.
    pub(in crate::manifest) validity: Validity,
    /// Whether a field contains a template or a change of a list: see [`templates`](super::templates).
    pub(in crate::manifest) has_templates_or_changes: bool,
    /// The fields, including keys below `extra:`.
    pub(in crate::manifest) fields: Declared,
    /// See [`SectionPart::key`].
    pub(in crate::manifest) key: OnceLock<String>,
}

/// The extent to which a schema accepts a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) enum Validity {
    /// Its kind does not check it.
    Unchecked,
    /// All but values of known fields.
    NamesOnly,
    /// All of it.
    Full,
}

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::manifest) enum EntryState {
    /// It must exist as declared.
    Present,
    /// It must not exist.
    Absent,
    /// Others manage it.
    Unmanaged,
}

impl SectionPart {
    /// Its key within the section.
    pub(in crate::manifest) fn key(&self, section: kind::Section) -> &str {
        self.key.get_or_init(|| {
            identity(section, &|name| self.fields.get(name).map(|field| field.value)).name
        })
    }
}

/// The identity of an entry with these fields.
pub(in crate::manifest) fn identity(
    section: kind::Section,
    field: &dyn Fn(&str) -> Option<Value>,
) -> kind::Identity {
    section.rules().identify(section, &|name| {
        Some(Cow::Owned(match field(name)? {
            Value::Plain(json) => json,
            // A reference to a secret is the text of the reference.
            Value::Secret(reference) => Json::from(reference.to_string()),
            Value::File(path) => Json::from(path),
        }))
    })
}

/// An acknowledgement.
#[derive(Debug)]
pub(in crate::manifest) struct DocumentAcknowledgement {
    /// The acknowledgement, unless a part is refused.
    pub(in crate::manifest) content: Option<Acknowledgement>,
    /// Its last day.
    pub(in crate::manifest) until: Option<Sourced<Date>>,
}
