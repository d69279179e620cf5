//! What is live in one group or project, in the words of a manifest, for who writes it into manifests
//! that are there already.

use super::{
    Settings,
    declare::{self, Found},
    document::{Document, UNMANAGED},
};
use crate::{field::Scope, kind::Names, live::Live, value::Json};

/// What a manifest would say of what is live, entry by entry. A field within a mapping is named with
/// a dot.
pub struct Words {
    /// With everything that the service shows.
    whole: Document,
    /// Without what the service does by itself.
    short: Document,
}

/// What an entry would say.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Its fields, in the order of the documentation.
    pub fields: Vec<(String, Json)>,
    /// What is left out of it, and why.
    pub about: Option<String>,
}

impl Words {
    /// For what was found at `path`; nothing if it is not there. `names` are those of
    /// [`Estate::ids`](super::Estate::ids).
    pub fn of(
        scope: Scope,
        path: &str,
        live: &Live,
        names: &Names,
        settings: &Settings,
    ) -> Option<Self> {
        let declared = |all| {
            let settings = Settings { all, ..settings.clone() };
            match declare::declare(scope, path, live, names, &settings) {
                Found::Document { document, .. } => Some(*document),
                Found::Deleting | Found::Unread(_) => None,
            }
        };
        Some(Self { whole: declared(true)?, short: declared(false)? })
    }

    /// Every field of the entry `key` that a manifest may say.
    pub fn fields(&self, section: &str, key: &str) -> &[(String, Json)] {
        let part = self.whole.part(section);
        let entry = part.and_then(|part| part.entries.iter().find(|entry| entry.key == key));
        entry.map_or(&[], |entry| &entry.fields)
    }

    /// The entry `key` as an export writes it; nothing if what tells it from others must not be
    /// written.
    pub fn entry(&self, section: &str, key: &str) -> Option<Said> {
        let part = self.short.part(section)?;
        let entry = part.entries.iter().find(|entry| entry.key == key)?;
        let about = entry.about.clone().or_else(|| {
            (!part.about.is_empty() && entry.key.is_empty()).then(|| part.about.join("; "))
        });
        (entry.state != Some(UNMANAGED)).then(|| Said { fields: entry.fields.clone(), about })
    }
}
