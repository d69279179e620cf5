//! Escapes text from manifests and the service for HTML.

use crate::{secret::Secrets, text::escape};

/// Escapes text from manifests and the service, for content and quoted attributes.
#[derive(Clone, Copy)]
pub(super) struct HtmlInk<'s> {
    /// The secrets to remove.
    pub(super) secrets: &'s Secrets,
}

impl HtmlInk<'_> {
    /// `text` on one line.
    pub(super) fn text(self, text: &str) -> String {
        escape_html_text(&escape(&self.secrets.redact(text)))
    }

    /// A message; text between backticks becomes code.
    pub(super) fn prose(self, text: &str) -> String {
        let text = self.text(text);
        if text.matches('`').count() % 2 == 1 {
            return text;
        }
        let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
            1 => format!("<code>{part}</code>"),
            _ => part.to_owned(),
        });
        parts.collect()
    }

    /// A line of a text whose secrets were already removed; tabs stay.
    pub(super) fn line(self, line: &str) -> String {
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
            let nothing = Secrets::default();
            let ink = HtmlInk { secrets: &nothing };
            let prose = ink.prose(&text).replace("<code>", "").replace("</code>", "");
            for safe in [ink.text(&text), ink.line(&text), prose] {
                prop_assert!(!safe.contains(['<', '>', '"', '\'']), "{safe}");
                prop_assert!(!safe.contains(|c| is_unsafe(c) && c != '\t'), "{safe}");
                let entities = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
                let bare = entities.iter().fold(safe, |text, entity| text.replace(entity, ""));
                prop_assert!(!bare.contains('&'), "{bare}");
            }
        }
    }
}
