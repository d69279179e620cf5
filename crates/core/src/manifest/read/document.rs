//! The parsed content of a document. The text itself is not kept. Every part has an origin.
//!
//! The content must be small. All documents are in memory at once, and a large organisation writes
//! millions of fields.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use jiff::civil::Date;

use crate::{
    address::Globs,
    desired::{Acknowledgement, ContainerLifecycle, DeclaredFields, Unlisted},
    field::Scope,
    kind,
    origin::{Origin, Sourced},
    secret::Reference,
    value::{Json, Value},
};

/// One document.
#[derive(Debug)]
pub(in crate::manifest) enum Document {
    /// A group or project.
    Container(Box<DeclaredContainer>),
    /// A rule for many groups or projects.
    Rule(Box<Rule>),
    /// An acknowledgement.
    Acknowledge(Box<DocumentAcknowledgement>),
}

/// The declaration of a group or project, from one document or merged from all layers.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct DeclaredContainer {
    pub(in crate::manifest) scope: Scope,
    /// The full path as written, with the origin of its key.
    pub(in crate::manifest) path: Sourced<Arc<str>>,
    /// True if the command names the file or a folder above it.
    pub(in crate::manifest) is_selected_by_command: bool,
    /// True if the document declares several paths.
    pub(in crate::manifest) shares_document: bool,
    /// The former paths and the state of the container.
    pub(in crate::manifest) lifecycle: ContainerLifecycle,
    pub(in crate::manifest) body: LayerBody,
}

/// A rule for many groups or many projects: `Defaults` apply to matching paths, and a `Profile`
/// applies to the documents and rules that use the profile.
#[derive(Debug)]
pub(in crate::manifest) struct Rule {
    pub(in crate::manifest) scope: Scope,
    /// The globs of the paths that the rule applies to; empty for a profile.
    pub(in crate::manifest) path_globs: Globs,
    pub(in crate::manifest) excluded_globs: Option<Sourced<Globs>>,
    /// The name of the profile; `None` for `Defaults`.
    pub(in crate::manifest) profile: Option<Arc<str>>,
    /// The parameters that each document with the profile must set.
    pub(in crate::manifest) required_params: Vec<Sourced<Arc<str>>>,
    /// The origin of the key `match` or `name`.
    pub(in crate::manifest) origin: Origin,
    /// True if the command names the file or a folder above it.
    pub(in crate::manifest) is_selected_by_command: bool,
    /// True if the rule includes existing containers that no document declares.
    pub(in crate::manifest) includes_undeclared: bool,
    pub(in crate::manifest) body: LayerBody,
}

/// The content of a layer: sections, policies for unlisted entries, and the keys that decide how
/// layers are merged.
#[derive(Clone, Debug, Default)]
pub(in crate::manifest) struct LayerBody {
    /// The sections, ordered by name, including the section of the container itself (`create`).
    pub(in crate::manifest) sections: Vec<DocumentSection>,
    /// The policies for unlisted live entries, by section.
    pub(in crate::manifest) unlisted: BTreeMap<&'static str, Sourced<Unlisted>>,
    /// The profiles that the layer uses.
    pub(in crate::manifest) uses: Option<UsedProfiles>,
    /// The parameters for templates, by name. After merging, only the parameters that templates
    /// use.
    pub(in crate::manifest) params: BTreeMap<Arc<str>, Sourced<Value>>,
    /// The sections for which lower layers are ignored.
    pub(in crate::manifest) ignored_sections: Vec<&'static str>,
    /// If true, the container is only compared and reported.
    pub(in crate::manifest) watch: Option<Sourced<bool>>,
    /// The secrets whose names were filled in. Empty before merging.
    pub(in crate::manifest) filled_names: BTreeSet<FilledName>,
}

/// A secret whose name was a template, with the filled-in name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) struct FilledName {
    pub(in crate::manifest) secret: Reference,
    /// First the filled-in name, then the texts inserted into it. Two containers may share a secret only if these
    /// texts are equal.
    pub(in crate::manifest) inserted_texts: Vec<String>,
    /// The origin of the field.
    pub(in crate::manifest) origin: Origin,
}

/// The profiles that a layer uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::manifest) struct UsedProfiles {
    /// The origin of the key `uses`.
    pub(in crate::manifest) origin: Origin,
    /// True if the profiles are added to those of lower layers. False if they replace them.
    pub(in crate::manifest) adds_to_lower: bool,
    /// The names of the profiles. Later profiles outrank earlier profiles.
    pub(in crate::manifest) names: Vec<Sourced<Arc<str>>>,
}

/// A section of a layer.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct DocumentSection {
    pub(in crate::manifest) section_kind: kind::Section,
    /// The origin of the section's key.
    pub(in crate::manifest) origin: Origin,
    /// The content as written. A section that is not a list has one entry.
    pub(in crate::manifest) entries: Vec<LayerEntry>,
}

/// An entry, or the whole content of a section that is not a list.
#[derive(Clone, Debug)]
pub(in crate::manifest) struct LayerEntry {
    /// The origin of the entry's first key. If the section is not a list, the origin of the
    /// section's key.
    pub(in crate::manifest) origin: Origin,
    /// The state. `create: false` and `push_rule: null` mean absent.
    pub(in crate::manifest) state: EntryState,
    /// The validity of the entry by the schema.
    pub(in crate::manifest) validity: Validity,
    /// True if a field contains a form that replaces a value: see [`templates`](super::templates).
    pub(in crate::manifest) has_templates: bool,
    /// The fields, including keys below `extra:`.
    pub(in crate::manifest) fields: DeclaredFields,
    /// The key of the entry within the section, computed on first use.
    pub(in crate::manifest) key: OnceLock<String>,
}

/// The validity of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::manifest) enum Validity {
    /// The schema refuses the entry. The rules of its kind are not applied.
    Invalid,
    /// The identity is valid. The schema refuses only values of other fields, or misspelled names
    /// of fields.
    IdentityOnly,
    /// The schema accepts the entry.
    Valid,
}

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::manifest) enum EntryState {
    /// The entry must exist as declared.
    Present,
    /// The entry must not exist.
    Absent,
    /// The entry is managed elsewhere.
    Unmanaged,
}

impl LayerEntry {
    /// The key of the entry within the section.
    pub(in crate::manifest) fn key(&self, section: kind::Section) -> &str {
        self.key.get_or_init(|| {
            identify_entry(section, &|name| self.fields.get(name).map(|field| field.value)).name
        })
    }
}

/// The identity of an entry. `field_value` returns the value of the field with a name.
pub(in crate::manifest) fn identify_entry(
    section: kind::Section,
    field_value: &dyn Fn(&str) -> Option<Value>,
) -> kind::Identity {
    section.rules().identify(section, &|name| {
        Some(Cow::Owned(match field_value(name)? {
            Value::Plain(json) => json,
            // The text of a reference identifies the secret.
            Value::Secret(reference) => Json::from(reference.to_string()),
            Value::File(path) => Json::from(path),
        }))
    })
}

/// An acknowledgement.
#[derive(Debug)]
pub(in crate::manifest) struct DocumentAcknowledgement {
    /// The content; `None` if a field is invalid.
    pub(in crate::manifest) acknowledgement: Option<Acknowledgement>,
    /// The last day of the acknowledgement; `None` if it does not expire or the day is invalid.
    pub(in crate::manifest) until: Option<Sourced<Date>>,
}
