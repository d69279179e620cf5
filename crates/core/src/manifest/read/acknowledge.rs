//! Reads an `Acknowledge` document.

use jiff::civil::Date;
use serde::Deserialize;

use super::{Document, DocumentReader, document::DocumentAcknowledgement};
use crate::{
    address::Selector,
    catalogue,
    desired::{Acknowledgement, Guard},
    manifest::faults::{PlaceholderValues, placeholders, texts},
    origin::Sourced,
    text::{did_you_mean, looks_like_name},
    yaml::Node,
};

/// The fields that need no parser.
#[derive(Deserialize)]
struct PlainFields {
    guard: Guard,
    at_most: Option<usize>,
    #[expect(dead_code, reason = "`read_until` parses it; here it only has to be text")]
    until: Option<String>,
    reason: Option<String>,
}

impl DocumentReader<'_, '_> {
    /// Reads an acknowledgement.
    pub(super) fn read_acknowledgement(&mut self, document: &Node) -> Document {
        let is_valid = self.refused_pointers.is_empty();
        let plain_fields: Option<PlainFields> = self.findings.deserialize(document, is_valid);
        let (selector, until) = (self.read_selector(document), self.read_expiry_date(document));
        let [origin, until_origin] = ["at", "until"].map(|name| {
            let (key, _) = document.get(name)?;
            Some(self.origin(key.span.start))
        });
        let acknowledgement = plain_fields.zip(selector).map(
            |(PlainFields { guard, at_most, reason, .. }, selector)| Acknowledgement {
                guard,
                selector,
                max_objects: at_most,
                until,
                reason,
                origin,
            },
        );
        let until = until.zip(until_origin).map(|(value, origin)| Sourced { value, origin });
        Document::Acknowledge(Box::new(DocumentAcknowledgement { acknowledgement, until }))
    }

    fn read_selector(&mut self, document: &Node) -> Option<Selector> {
        let (_, node) = document.get("at")?;
        let text = node.text().filter(|text| !text.is_empty())?;
        let guard = text.split_once(':').map_or("", |(guard, _)| guard);
        let (path, section_and_entry) = text.split_once('#').unwrap_or((text, ""));
        let section = section_and_entry.split('/').next().unwrap_or(section_and_entry);
        let sections: Vec<_> = catalogue::all_sections().map(|kind| kind.section).collect();
        let wrong_separation =
            section.split_once(['.', ':']).filter(|(name, _)| sections.contains(name));
        let mut report = |texts, args: PlaceholderValues<'_>| {
            self.findings.report(texts, node.span.clone(), args);
        };
        if Guard::ALL.iter().any(|candidate| candidate.to_string() == guard) {
            report(texts::GUARD_IN_ADDRESS, placeholders![guard]);
        } else if let Some((section, entry)) = wrong_separation {
            report(texts::ADDRESS_WITHOUT_SLASH, placeholders![path, section, entry]);
        } else if looks_like_name(section) && !sections.contains(&section) {
            let near = did_you_mean(section, sections).unwrap_or_default();
            report(texts::NO_SECTION, placeholders![section, near]);
        } else {
            match Selector::parse(text) {
                Ok(selector) => return Some(selector),
                Err(why) => report(texts::ADDRESS_GLOB, placeholders![why]),
            }
        }
        None
    }

    fn read_expiry_date(&mut self, document: &Node) -> Option<Date> {
        let (_, node) = document.get("until")?;
        let date = node.text()?.parse();
        // The schema already refuses a text that does not have the form of a date.
        if date.is_err() && !self.refused_pointers.contains("/until") {
            self.findings.report(texts::NO_DAY, node.span.clone(), &[]);
        }
        date.ok()
    }
}
