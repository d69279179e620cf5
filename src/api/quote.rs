//! What no text may quote of an answer: the sensitive values that its request carried.
//!
//! A service repeats what it refuses: "`hunter2…` is not a valid value". The values that a body
//! carries besides known secrets, such as the live value of a variable that an edit repeats, are
//! known to that one request only. Here they are struck from what is quoted.

use crate::{planted::Bug, secret::Secrets, text};

/// What stands in the place of a message that may not be quoted at all.
const WITHHELD: &str = "(not quoted, because the request carried a short secret)";

/// What stands in the place of a value.
const STRUCK: &str = "[secret]";

/// The fewest characters of a value that are recognised in a text. Fewer would hit innocent words.
const RECOGNISED: usize = 8;

/// The sensitive values of one request's body.
#[derive(Default)]
pub(super) struct Unquotable {
    values: Secrets,
    plain: Vec<Vec<char>>,
    /// Whether one of them is too short to be recognised.
    short: bool,
}

impl Unquotable {
    /// Strikes `value` from now on.
    pub(super) fn add(&mut self, value: &str) {
        if value.is_empty() {
            return;
        }
        let chars: Vec<_> = value.chars().collect();
        self.short |= chars.len() < RECOGNISED;
        self.values.also_redact(crate::secret::Secret::new(value));
        self.plain.push(chars);
    }

    /// `text` as it may be quoted: without the values, in whatever form, without long pieces of
    /// them, and without credentials in addresses.
    pub(super) fn strike(&self, text: &str) -> String {
        if Bug::QuoteEverything.is_planted() {
            return text.to_owned();
        }
        if self.short && !text.trim().is_empty() {
            return WITHHELD.to_owned();
        }
        let text = self.values.redact(text);
        let text = self.plain.iter().fold(text, |text, value| without_pieces(&text, value));
        text::mask_url(&text).into_owned()
    }
}

/// `text` without any run of [`RECOGNISED`] characters or more that `value` has too: a service may
/// quote the beginning only.
fn without_pieces(text: &str, value: &[char]) -> String {
    let chars: Vec<_> = text.chars().collect();
    let pieces: std::collections::HashSet<&[char]> = value.windows(RECOGNISED).collect();
    let mut struck = vec![false; chars.len()];
    for (at, window) in chars.windows(RECOGNISED).enumerate() {
        if pieces.contains(window) {
            struck[at..at + RECOGNISED].fill(true);
        }
    }
    let mut out = String::with_capacity(text.len());
    for (at, c) in chars.iter().enumerate() {
        match (struck[at], at > 0 && struck[at - 1]) {
            (false, _) => out.push(*c),
            (true, false) => out.push_str(STRUCK),
            (true, true) => {}
        }
    }
    out
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
