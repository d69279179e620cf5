//! The forms in which a secret may turn up in a text: as it is, escaped, or encoded.

use std::collections::BTreeSet;

use base64::prelude::{
    BASE64_STANDARD as STANDARD, BASE64_STANDARD_NO_PAD as STANDARD_NO_PAD,
    BASE64_URL_SAFE as URL_SAFE, BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD, Engine as _,
};

use crate::text;

/// Shorter forms are not struck: they would hit innocent words. Types protect the secrets behind
/// them.
const SHORTEST: usize = 6;
/// Shorter base64 forms are not struck, for the same reason: any word is base64.
const SHORTEST_BASE64: usize = 8;
/// A larger secret, in bytes, is known as it is and escaped only: its thirty encodings would take
/// more memory than they are worth.
const LARGEST_ENCODED: usize = 1 << 16;

/// Every form of `secret` that is long enough to be told from innocent text.
pub(super) fn of(secret: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    // Whoever repeats a secret may leave out the white space around it.
    for whole in [secret, secret.trim()] {
        forms.extend(escaped(whole));
        if whole.len() > LARGEST_ENCODED {
            continue;
        }
        forms.extend(percent_encoded(whole));
        forms.extend(
            ["0123456789abcdef", "0123456789ABCDEF"].map(|digits| hex(whole.as_bytes(), digits)),
        );
        forms.extend(base64(whole.as_bytes()));
    }
    // A text of several lines may be shown line by line.
    for line in secret.lines().map(str::trim) {
        forms.extend([line.to_owned(), text::escape(line).into_owned()]);
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// As it is, and as JSON, HTML, the `Debug` of a text and [`text::escape`] write it.
fn escaped(secret: &str) -> Vec<String> {
    let inner = |quoted: String| quoted[1..quoted.len() - 1].to_owned();
    let json = inner(serde_json::Value::from(secret).to_string());
    let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let html = html.replace('"', "&quot;").replace('\'', "&#39;");
    let debug = inner(format!("{secret:?}"));
    let shown = [secret, &json].map(|text| text::escape(text).into_owned());
    [secret.to_owned(), json, html, debug].into_iter().chain(shown).collect()
}

/// As parts of URLs and of forms have it: senders differ in what they leave as it is, in how they
/// write a blank and in the digits.
fn percent_encoded(secret: &str) -> Vec<String> {
    // RFC 3986's unreserved characters, those of HTML forms, those of `encodeURIComponent`.
    let kept = ["-_.~", "*-._", "-_.~!*'()"];
    let blanks = ["%20", "+"];
    let digits = ["0123456789ABCDEF", "0123456789abcdef"];
    let encode = |kept: &str, blank: &str, digits: &str| -> String {
        let byte = |byte: u8| match char::from(byte) {
            c if c.is_ascii_alphanumeric() || kept.contains(c) => c.to_string(),
            ' ' => blank.to_owned(),
            _ => format!("%{}", hex(&[byte], digits)),
        };
        secret.bytes().map(byte).collect()
    };
    let senders = kept.iter().flat_map(|kept| blanks.iter().map(move |blank| (kept, blank)));
    senders.flat_map(|(kept, blank)| digits.map(|digits| encode(kept, blank, digits))).collect()
}

fn hex(bytes: &[u8], digits: &str) -> String {
    let digit = |value: u8| char::from(digits.as_bytes()[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// In both alphabets of base64, wherever in a group of three bytes the secret starts. First what
/// depends on nothing around it, then the same up to the end of the data, without padding and with
/// it.
fn base64(bytes: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for offset in 0..3 {
        let placed = [&[0; 2][..offset], bytes].concat();
        // A character holds six bits, so that of the first ones some hold bits of what stands
        // before.
        let first = (8 * offset).div_ceil(6);
        let certain = 8 * placed.len() / 6;
        for (plain, padded) in [(STANDARD_NO_PAD, STANDARD), (URL_SAFE_NO_PAD, URL_SAFE)] {
            let [plain, padded] = [plain, padded].map(|engine| engine.encode(&placed));
            // What is still to come is at most the last character, which is one byte.
            let core = plain.get(first..certain).unwrap_or_default().to_owned();
            forms.extend([core, padded[first..].to_owned(), plain[first..].to_owned()]);
        }
    }
    forms.retain(|form| form.len() >= SHORTEST_BASE64);
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_in_every_form() {
        let forms = of("p@ss \"w0rd\"/<é>&'x'");
        for form in [
            "p@ss \"w0rd\"/<é>&'x'",
            r#"p@ss \"w0rd\"/<é>&'x'"#,
            "p@ss &quot;w0rd&quot;/&lt;é&gt;&amp;&#39;x&#39;",
            "p%40ss%20%22w0rd%22%2F%3C%C3%A9%3E%26%27x%27",
            "p%40ss%20%22w0rd%22%2f%3c%c3%a9%3e%26%27x%27",
            "p%40ss+%22w0rd%22%2F%3C%C3%A9%3E%26%27x%27",
            "p%40ss+%22w0rd%22%2f%3c%c3%a9%3e%26%27x%27",
            "p%40ss%20%22w0rd%22%2F%3C%C3%A9%3E%26'x'",
            "70407373202277307264222f3cc3a93e26277827",
            "70407373202277307264222F3CC3A93E26277827",
            "cEBzcyAidzByZCIvPMOpPiYneCc",
            "cEBzcyAidzByZCIvPMOpPiYneCc=",
        ] {
            assert!(forms.contains(form), "{form}");
        }
        let forms = of("line \u{1b}\u{202e} one\r\n\tline \"two\"\nabc\n");
        for form in [
            "line \u{1b}\u{202e} one",
            r"line \u{1b}\u{202e} one",
            "line \"two\"",
            r#"line \u{1b}\u{202e} one\r\n\tline "two"\nabc\n"#,
            r#"line \u001b\u{202e} one\r\n\tline \"two\"\nabc"#,
            r#"line \u{1b}\u{202e} one\r\n\tline \"two\"\nabc"#,
        ] {
            assert!(forms.contains(form), "{form}");
        }
        assert!(!forms.contains("abc"), "it is too short to be told from a word");
    }

    #[test]
    fn base64_is_known_wherever_it_starts_and_ends() {
        // The same letters before and behind, so that only the place changes: `xx…yy`, without its
        // ends and at the end of the data.
        let forms = of("p@ss>?~w0rd");
        for (encoded, url) in [
            ("cEBzcz4/fncwcmR5", "cEBzcz4_fncwcmR5"),         // SECRETy
            ("eHBAc3M+P353MHJkeQ==", "eHBAc3M-P353MHJkeQ=="), // xSECRETy
            ("eHhwQHNzPj9+dzByZHk=", "eHhwQHNzPj9-dzByZHk="), // xxSECRETy
            ("eHhwQHNzPj9+dzByZA==", "eHhwQHNzPj9-dzByZA=="), // xxSECRET
        ] {
            for encoded in [encoded, url] {
                let struck = forms
                    .iter()
                    .filter(|form| encoded.contains(form.as_str()))
                    .map(String::len)
                    .max();
                assert!(
                    struck.is_some_and(|length| length >= 13),
                    "{encoded}: {struck:?} of {forms:?}"
                );
            }
        }
        assert!(
            forms.contains("cEBzcz4/fncwcmQ=") && forms.contains("cEBzcz4_fncwcmQ"),
            "{forms:?}"
        );
    }

    #[test]
    fn what_is_short_is_no_form() {
        assert_eq!(of("abc").into_iter().collect::<Vec<_>>(), ["616263"]);
        assert!(of("").is_empty() && of("\n").is_empty());
    }
}
