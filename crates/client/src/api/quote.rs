//! Redacts the sensitive values of a request in quoted messages of its response.
//!
//! A service quotes the value that it refuses: "`hunter2…` is not a valid value". A body can
//! contain sensitive values that are not known secrets, such as the live value of a variable that
//! an edit repeats. Only the request contains such values, so this module redacts them.

use std::sync::OnceLock;

use crate::{
    planted::Bug,
    secret::{Secret, Secrets, judge},
};

/// The text shown instead of a message that must not be quoted.
const WITHHELD_MESSAGE: &str = "(not quoted, because the request carried a short secret)";

/// The minimum length, in characters, of a value that is redacted. Shorter values match ordinary
/// words.
pub(super) const MIN_REDACTED_CHARS: usize = 8;

/// The sensitive values of one request's body.
#[derive(Default)]
pub(super) struct QuoteRedactor {
    values: Vec<Secret>,
    /// The redactions. They are built on first use, because most requests are not refused.
    secrets: OnceLock<Secrets>,
}

impl QuoteRedactor {
    /// Adds a value to redact.
    pub(super) fn add(&mut self, value: &str) {
        if !value.is_empty() {
            self.values.push(Secret::new(value));
        }
    }

    /// Redacts the values in `text` in any encoding, and credentials in URLs. Long pieces of a
    /// value are redacted too, because a service may quote only its beginning.
    pub(super) fn redact(&self, text: &str) -> String {
        if Bug::QuoteUnredacted.is_planted() {
            return text.to_owned();
        }
        let mut lengths = self.values.iter().map(|value| value.expose().chars().count());
        if lengths.any(|length| length < MIN_REDACTED_CHARS) && !text.trim().is_empty() {
            return WITHHELD_MESSAGE.to_owned();
        }
        let secrets = self.secrets.get_or_init(|| {
            let mut secrets = Secrets::default();
            for value in &self.values {
                secrets.add_redaction(value.clone());
                secrets.add_piece_redactions(value, MIN_REDACTED_CHARS);
            }
            secrets
        });
        judge::mask_url(&secrets.redact(text)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor_for(values: &[&str]) -> QuoteRedactor {
        let mut redactor = QuoteRedactor::default();
        values.iter().for_each(|value| redactor.add(value));
        redactor
    }

    #[test]
    fn a_secret_is_redacted_whole_in_parts_and_encoded() {
        let live = redactor_for(&["live-value-77/x"]);
        for (text, quoted) in [
            ("'live-value-77/x' is invalid", "'[secret]' is invalid"),
            ("'live-val...' is invalid", "'[secret]...' is invalid"),
            ("?v=live-value-77%2Fx", "?v=[secret]"),
            (r"'live\u002dva\u006cu...'", "'[secret]...'"),
            ("bGl2ZS12YWx1ZQ==", "[secret]"), // Base64 of `live-value`.
            ("key is taken", "key is taken"),
            ("", ""),
        ] {
            assert_eq!(live.redact(text), quoted);
        }
    }

    #[test]
    fn with_a_short_value_nothing_is_quoted() {
        assert_eq!(redactor_for(&["hunter2"]).redact("'hunter2' is invalid"), WITHHELD_MESSAGE);
        assert_eq!(redactor_for(&["hunter2"]).redact(" "), " ");
        assert_eq!(redactor_for(&[""]).redact("is invalid"), "is invalid");
    }

    #[test]
    fn addresses_are_quoted_without_credentials() {
        assert_eq!(
            redactor_for(&[]).redact("bad url https://user:canary@h/?k=canary"),
            "bad url https://***@h/?k=***"
        );
    }
}
