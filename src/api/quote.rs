//! What no text may quote of an answer: the sensitive values that its request carried.
//!
//! A service repeats what it refuses: "`hunter2…` is not a valid value". The values that a body
//! carries besides known secrets, such as the live value of a variable that an edit repeats, are
//! known to that one request only. Here they are struck from what is quoted.

use std::sync::OnceLock;

use crate::{
    planted::Bug,
    secret::{Secret, Secrets},
    text,
};

/// What stands in the place of a message that may not be quoted at all.
const WITHHELD: &str = "(not quoted, because the request carried a short secret)";

/// The fewest characters of a value that are recognised in a text. Fewer would hit innocent words.
const RECOGNISED: usize = 8;

/// The sensitive values of one request's body.
#[derive(Default)]
pub(super) struct Unquotable {
    values: Vec<Secret>,
    /// Made when it is first needed: most requests are not refused.
    known: OnceLock<Secrets>,
}

impl Unquotable {
    /// Strikes `value` from now on.
    pub(super) fn add(&mut self, value: &str) {
        if !value.is_empty() {
            self.values.push(Secret::new(value));
        }
    }

    /// `text` as it may be quoted: without the values, however they are written, without long
    /// pieces of them, because a service may quote the beginning only, and without credentials in
    /// addresses.
    pub(super) fn strike(&self, text: &str) -> String {
        if Bug::QuoteEverything.is_planted() {
            return text.to_owned();
        }
        let is_short = |value: &Secret| value.expose().chars().count() < RECOGNISED;
        if self.values.iter().any(is_short) && !text.trim().is_empty() {
            return WITHHELD.to_owned();
        }
        let known = self.known.get_or_init(|| {
            let mut known = Secrets::default();
            for value in &self.values {
                known.also_redact(value.clone());
                known.also_redact_pieces(value, RECOGNISED);
            }
            known
        });
        text::mask_url(&known.redact(text)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unquotable(values: &[&str]) -> Unquotable {
        let mut unquotable = Unquotable::default();
        values.iter().for_each(|value| unquotable.add(value));
        unquotable
    }

    #[test]
    fn a_value_is_struck_whole_in_pieces_and_encoded() {
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
            assert_eq!(live.strike(text), quoted);
        }
    }

    #[test]
    fn with_a_short_value_nothing_is_quoted() {
        assert_eq!(unquotable(&["hunter2"]).strike("'hunter2' is invalid"), WITHHELD);
        assert_eq!(unquotable(&["hunter2"]).strike(" "), " ");
        assert_eq!(unquotable(&[""]).strike("is invalid"), "is invalid");
    }

    #[test]
    fn addresses_are_quoted_without_credentials() {
        assert_eq!(
            unquotable(&[]).strike("bad url https://user:canary@h/?k=canary"),
            "bad url https://***@h/?k=***"
        );
    }
}
