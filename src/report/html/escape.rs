//! A page that escapes text from manifests and the service for HTML.

use std::{collections::BTreeMap, ops::AddAssign};

use crate::{secret::Secrets, text::escape};

/// A page that is being written. The escaped texts are safe as the content of an element and in
/// quoted attributes.
pub(super) struct HtmlPage<'s> {
    /// The page so far.
    pub(super) html: String,
    /// The secrets to remove.
    pub(super) secrets: &'s Secrets,
    /// The numbers of the steps that links can point to, by address.
    pub(super) step_numbers: BTreeMap<String, usize>,
}

impl AddAssign<&str> for HtmlPage<'_> {
    fn add_assign(&mut self, html: &str) {
        self.html += html;
    }
}

impl HtmlPage<'_> {
    /// Removes secrets from `text`, and escapes it. The result is on one line.
    pub(super) fn escape_text(&self, text: &str) -> String {
        escape_html_text(&escape(&self.secrets.redact(text)))
    }

    /// Escapes a message. Text between backticks becomes `<code>`.
    pub(super) fn escape_message(&self, text: &str) -> String {
        let text = self.escape_text(text);
        if text.matches('`').count() % 2 == 1 {
            return text;
        }
        let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
            1 => format!("<code>{part}</code>"),
            _ => part.to_owned(),
        });
        parts.collect()
    }

    /// Escapes a line of a text whose secrets were already removed. Tabs are kept.
    pub(super) fn escape_line(line: &str) -> String {
        escape_html_text(&line.split('\t').map(escape).collect::<Vec<_>>().join("\t"))
    }
}

/// `text` with the special characters of HTML escaped.
fn escape_html_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::is_unsafe;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_breaks_out_of_the_markup(text in "(\\PC|\\p{C}|[<>&\"'=/]|</script>|\n|\t){0,20}") {
            let no_secrets = Secrets::default();
            let page = HtmlPage { html: String::new(), secrets: &no_secrets, step_numbers: BTreeMap::new() };
            let message = page.escape_message(&text).replace("<code>", "").replace("</code>", "");
            for escaped in [page.escape_text(&text), HtmlPage::escape_line(&text), message] {
                prop_assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
                prop_assert!(!escaped.contains(|c| is_unsafe(c) && c != '\t'), "{escaped}");
                let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
                let bare = entities.iter().fold(escaped, |text, entity| text.replace(entity, ""));
                prop_assert!(!bare.contains('&'), "{bare}");
            }
        }
    }
}
