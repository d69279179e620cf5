//! Faults of declared entries. The file `faults.yaml` contains their texts.

use crate::{diagnostic::Severity, text};

/// The severity, the code, the message and the help of a fault.
pub type FaultTexts = [&'static str; 4];

/// The texts of each fault, which the build reads from `faults.yaml`.
pub(crate) mod fault_text {
    include!(concat!(env!("OUT_DIR"), "/tables/kind/faults.rs"));
}

/// Receives the faults of an entry, one by one.
pub type Reporter<'r> = &'r mut dyn FnMut(EntryFault);

/// A fault of a declared entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFault {
    /// The severity.
    pub severity: Severity,
    /// The code of the message, for example `masked-value`.
    pub code: &'static str,
    /// The field that has the fault.
    pub field: &'static str,
    /// The key within the field, if only that key has the fault.
    pub inner_key: Option<&'static str>,
    /// The other field that the fault concerns.
    pub other_field: Option<&'static str>,
    /// The problem, as a lower-case fragment. It never quotes a value that may be secret.
    pub message: String,
    /// The advice.
    pub help: String,
}

impl EntryFault {
    /// The fault of `field` with these texts.
    pub fn for_field([severity, code, message, help]: FaultTexts, field: &'static str) -> Self {
        let severity = Severity::from_word(severity);
        let (message, help) = (message.to_owned(), help.to_owned());
        Self { severity, code, field, inner_key: None, other_field: None, message, help }
            .fill("field", field)
    }

    /// Adds the other field that the fault concerns.
    pub fn with_other_field(self, other: &'static str) -> Self {
        Self { other_field: Some(other), ..self.fill("other", other) }
    }

    /// Replaces `{name}` in the message and the help by `text`.
    pub fn fill(self, name: &str, text: &str) -> Self {
        let [message, help] =
            [&self.message, &self.help].map(|template| text::fill(template, &[(name, &text)]));
        Self { message, help, ..self }
    }
}
