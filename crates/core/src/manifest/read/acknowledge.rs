//! Reads an `Acknowledge` document.

use jiff::civil::Date;

use super::{Document, Reader, document::Acknowledge};
use crate::{
    address::Selector,
    catalogue,
    desired::{Acknowledgement, Guard},
    manifest::schema,
    origin::Sourced,
    text::{did_you_mean, is_name},
    yaml::Node,
};

impl Reader<'_, '_> {
    /// The content of `document`.
    pub(super) fn acknowledge(&mut self, document: &Node) -> Document {
        let fits = self.refused.is_empty();
        let written: Option<schema::Acknowledge> = self.findings.deserialize(document, fits);
        let (at, until) = (self.at(document), self.until(document));
        let origin = |name: &str| Some(self.origin(document.get(name)?.0.span.start));
        let known = written.zip(at).map(|(written, at)| Acknowledgement {
            guard: written.guard,
            at,
            at_most: written.at_most,
            until,
            reason: written.reason,
            origin: origin("at"),
        });
        let until = until.zip(origin("until")).map(|(value, origin)| Sourced { value, origin });
        Document::Acknowledge(Box::new(Acknowledge { known, until }))
    }

    fn at(&mut self, document: &Node) -> Option<Selector> {
        let (_, node) = document.get("at")?;
        let text = node.text().filter(|text| !text.is_empty())?;
        let guard = text.split_once(':').map_or("", |(guard, _)| guard);
        let section = text.split_once('#').map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
        let is_section = |name: &str| catalogue::everywhere().any(|of| of.section == name);
        let parts = section.and_then(|section| section.split_once(['.', ':']));
        let unknown = section.filter(|name| is_name(name) && !is_section(name));
        let (message, help) = if Guard::ALL.iter().any(|known| known.to_string() == guard) {
            let help = format!("take `{guard}:` away: `guard` names it");
            ("`at` must be an address, without the guard in front".to_owned(), Some(help))
        } else if let Some((section, entry)) = parts.filter(|(section, _)| is_section(section)) {
            let path = text.split('#').next().unwrap_or_default();
            let help = format!("write `{path}#{section}/{entry}`");
            ("`at` must have a `/` between the section and the entry".to_owned(), Some(help))
        } else if let Some(section) = unknown {
            let near = did_you_mean(section, catalogue::everywhere().map(|of| of.section));
            (format!("there is no section `{section}`"), near)
        } else {
            match Selector::parse(text) {
                Ok(at) => return Some(at),
                Err(why) => {
                    let help =
                        "write the address that the guard prints, such as `acme/shop#members`";
                    (format!("`at` is no glob over addresses: {why}"), Some(help.to_owned()))
                }
            }
        };
        self.findings.error("glob", message, node.span.clone()).help_if(help);
        None
    }

    fn until(&mut self, document: &Node) -> Option<Date> {
        let (_, node) = document.get("until")?;
        let day = node.text()?;
        let parsed = day.parse();
        if parsed.is_err() && is_like_a_day(day) {
            let none = self.findings.error("date", "there is no such day", node.span.clone());
            none.help("write a day of the calendar as YYYY-MM-DD");
        }
        parsed.ok()
    }
}

/// Whether `text` has the form of a date.
fn is_like_a_day(text: &str) -> bool {
    text.len() == 10
        && text.char_indices().all(|(at, c)| match at {
            4 | 7 => c == '-',
            _ => c.is_ascii_digit(),
        })
}
