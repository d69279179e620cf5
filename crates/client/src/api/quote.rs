//! Removes the sensitive values of a request from quotations of its answer.
//!
//! A service repeats what it refuses: "`hunter2…` is not a valid value". A body can hold values
//! that are not known secrets, such as the live value of a variable that an edit repeats. Only that
//! request knows them. This module removes them from quotations.

use std::sync::OnceLock;

use crate::{
    planted::Bug,
    secret::{Secret, Secrets, judge},
};

/// Replaces a message that must not be quoted at all.
const WITHHELD_MESSAGE: &str = "(not quoted, because the request carried a short secret)";

/// The minimum length, in characters, of a value to search for. Shorter ones match ordinary words.
pub(super) const MIN_SEARCHED_LENGTH: usize = 8;

/// The sensitive values of one request's body.
#[derive(Default)]
pub(super) struct QuoteRedactor {
    values: Vec<Secret>,
    /// Built on first use: most requests are not refused.
    secrets: OnceLock<Secrets>,
}

impl QuoteRedactor {
    /// Adds a value to remove.
    pub(super) fn add(&mut self, value: &str) {
        if !value.is_empty() {
            self.values.push(Secret::new(value));
        }
    }

    /// `text` without the values in any spelling, without long pieces of them (a service may quote
    /// only the beginning), and without credentials in URLs.
    pub(super) fn redact(&self, text: &str) -> String {
        if Bug::QuoteEverything.is_planted() {
            return text.to_owned();
        }
        let mut lengths = self.values.iter().map(|value| value.expose().chars().count());
        if lengths.any(|length| length < MIN_SEARCHED_LENGTH) && !text.trim().is_empty() {
            return WITHHELD_MESSAGE.to_owned();
        }
        let secrets = self.secrets.get_or_init(|| {
            let mut secrets = Secrets::default();
            for value in &self.values {
                secrets.add_redaction(value.clone());
                secrets.add_piece_redactions(value, MIN_SEARCHED_LENGTH);
            }
            secrets
        });
        judge::mask_url(&secrets.redact(text)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unquotable(values: &[&str]) -> QuoteRedactor {
        let mut unquotable = QuoteRedactor::default();
        values.iter().for_each(|value| unquotable.add(value));
        unquotable
    }

    #[test]
    fn a_secret_is_redacted_whole_in_parts_and_encoded() {
        let live = unquotable(&["live-value-77/x"]);
        for (text, quoted) in [
            ("'live-value-77/x' is invalid", "'[secret]' is invalid"),
            ("'live-val...' is invalid", "'[secret]...' is invalid"),
            ("?v=live-value-77%2Fx", "?v=[secret]"),
            (r"'live\u002dva\u006cu...'", "'[secret]...'"),
            ("bGl2ZS12YWx1ZQ==", "[secret]"), // of `live-value`
            ("key is taken", "key is taken"),
            ("", ""),
        ] {
            assert_eq!(live.redact(text), quoted);
        }
    }

    #[test]
    fn with_a_short_value_nothing_is_quoted() {
        assert_eq!(unquotable(&["hunter2"]).redact("'hunter2' is invalid"), WITHHELD_MESSAGE);
        assert_eq!(unquotable(&["hunter2"]).redact(" "), " ");
        assert_eq!(unquotable(&[""]).redact("is invalid"), "is invalid");
    }

    #[test]
    fn addresses_are_quoted_without_credentials() {
        assert_eq!(
            unquotable(&[]).redact("bad url https://user:canary@h/?k=canary"),
            "bad url https://***@h/?k=***"
        );
    }
}
