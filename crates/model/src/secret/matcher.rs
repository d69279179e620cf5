//! Finds secrets in texts: unchanged, escaped, broken into lines, or encoded.
//!
//! First, escapes are removed from the text ([`MappedText`]). Then parts that may be base64 or hex
//! are decoded, at every possible start of the secret. Both steps are repeated on the result. Each
//! secret is stored in several forms ([`search_forms`]). An automaton finds the beginnings of the
//! forms.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, OnceLock},
};

use aho_corasick::{AhoCorasick, MatchKind};

use super::view::MappedText;
use crate::text;

/// The replacement for a secret.
pub const SECRET_MARK: &str = "[secret]";

/// The minimum length of a form in bytes. Shorter forms would match ordinary words. Shorter secrets
/// are only protected by the type `Secret`, which is never printed.
const MIN_SECRET_BYTES: usize = 6;

/// A secret of at least this many bytes is matched regardless of case and white space.
const MIN_LOOSE_MATCH_BYTES: usize = 16;

/// The maximum number of bytes of a form that are in the automaton. The other bytes are compared
/// directly, because a large secret would make the automaton too large.
const MAX_PREFIX_BYTES: usize = 64;

/// The maximum number of nested escapes, and of nested encodings.
const MAX_NESTING: usize = 3;

/// The number of bytes of a text that are searched at once. A search needs about twenty bytes of
/// memory for each byte of the text.
const WINDOW_BYTES: usize = 1 << 18;

/// The number of bytes by which windows overlap, so that each secret is in one window as a whole.
/// Escapes and encodings make a secret longer.
const OVERLAP_BYTES: usize = 1 << 16;

/// The maximum factor by which escapes and encodings make a secret longer. For long secrets, the
/// overlap is the length of the longest form times this factor, if the product exceeds
/// [`OVERLAP_BYTES`].
const MAX_EXPANSION: usize = 64;

/// A set of secrets.
#[derive(Clone, Default)]
pub(super) struct SecretMatcher {
    forms: BTreeSet<Arc<[u8]>>,
    /// Built when first needed, because secrets are added one by one.
    finder: OnceLock<FormFinder>,
}

impl SecretMatcher {
    /// Adds `secret`.
    pub(super) fn add(&mut self, secret: &str) {
        // The text may contain the secret without the surrounding white space, or only one of its lines.
        let secret_parts = [secret, secret.trim()].into_iter().chain(secret.lines().map(str::trim));
        self.forms.extend(secret_parts.flat_map(search_forms).map(Arc::from));
        self.finder = OnceLock::new();
    }

    /// Adds each substring of `secret` with `length` characters.
    pub(super) fn add_pieces(&mut self, secret: &str, length: usize) {
        let escape_free_text = MappedText::from_text(secret.as_bytes()).strip_escapes();
        for form in [secret, &String::from_utf8_lossy(escape_free_text.bytes())] {
            let chars: Vec<char> = form.chars().collect();
            let pieces = chars.windows(length).map(|window| String::from_iter(window).into_bytes());
            self.forms.extend(pieces.map(Arc::from));
        }
        self.finder = OnceLock::new();
    }

    /// The ranges of secrets in `text`, ordered and merged.
    pub(super) fn find_known_secrets(&self, text: &str) -> Vec<Range<usize>> {
        // A text in one window needs no overlap.
        let forms = self.forms.iter().filter(|_| text.len() > WINDOW_BYTES);
        let max_form_length = forms.map(|form| form.len()).max().unwrap_or_default();
        let overlap_bytes = OVERLAP_BYTES.max(max_form_length.saturating_mul(MAX_EXPANSION));
        self.find_in_windows(text, WINDOW_BYTES, overlap_bytes)
    }

    /// Like [`Self::find_known_secrets`], in windows that begin at the start of a line. The lengths
    /// are in bytes.
    fn find_in_windows(
        &self,
        text: &str,
        window_length: usize,
        overlap_length: usize,
    ) -> Vec<Range<usize>> {
        if self.forms.is_empty() || text.len() < MIN_SECRET_BYTES {
            return Vec::new();
        }
        let whole_range = 0..text.len();
        let finder = self.finder.get_or_init(|| FormFinder::new(&self.forms));
        let Some(automaton) = &finder.automaton else { return [whole_range].into() };
        let mut ranges = Vec::new();
        let mut window_start = 0;
        while window_start < text.len() {
            let next_start = next_line_start(text, window_start.saturating_add(window_length));
            let end = next_line_start(text, next_start.saturating_add(overlap_length));
            if u32::try_from(end - window_start).is_err() {
                return [whole_range].into();
            }
            let mut search = SecretSearch { finder, automaton, ranges: Vec::new() };
            search.search_layers(&MappedText::from_text(&text.as_bytes()[window_start..end]), 0);
            let found = search.ranges.into_iter();
            ranges.extend(found.map(|range| window_start + range.start..window_start + range.end));
            window_start = if end == text.len() { end } else { next_start };
        }
        if ranges.is_empty() {
            return ranges;
        }
        // Marks count as matches, so that a second redaction changes nothing, even if a secret is a part of
        // the mark.
        let mark_ranges =
            text.match_indices(SECRET_MARK).map(|(start, mark)| start..start + mark.len());
        extend_to_whole_chars(text, ranges.into_iter().chain(mark_ranges).collect())
    }
}

/// The start of the first line of `text` after the byte `offset`, or the end of `text`.
fn next_line_start(text: &str, offset: usize) -> usize {
    let bytes_after = text.as_bytes().get(offset..).unwrap_or_default();
    bytes_after
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |line_length| offset + line_length + 1)
}

/// The forms of `secret`: unchanged, without escapes, and without line breaks.
fn search_forms(secret: &str) -> Vec<Vec<u8>> {
    let mapped_secret = MappedText::from_text(secret.as_bytes());
    let mut escape_free_form = mapped_secret.strip_escapes().bytes().to_vec();
    // In a text, a last `%` or `&` and the characters after it could form an escape.
    while escape_free_form.pop_if(|byte| matches!(byte, b'%' | b'&')).is_some() {}
    let plus_form =
        escape_free_form.iter().map(|byte| if *byte == b' ' { b'+' } else { *byte }).collect();
    let unbroken_form = strip_whitespace(&mapped_secret).bytes().to_vec();
    let mut forms = vec![secret.into()];
    if unbroken_form.len() >= MIN_SECRET_BYTES {
        forms.extend([escape_free_form, plus_form]);
    }
    if unbroken_form.len() >= MIN_LOOSE_MATCH_BYTES {
        forms.push(unbroken_form);
    }
    forms.retain(|form| form.len() >= MIN_SECRET_BYTES);
    forms
}

/// Removes white space, because long texts are broken into lines.
fn strip_whitespace(mapped: &MappedText<'_>) -> MappedText<'static> {
    mapped.drop_bytes(|byte| byte.is_ascii_whitespace())
}

/// Extends `ranges` to whole characters of the text; returns them ordered and merged.
fn extend_to_whole_chars(full_text: &str, mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    for range in &mut ranges {
        while !full_text.is_char_boundary(range.start) {
            range.start -= 1;
        }
        while !full_text.is_char_boundary(range.end) {
            range.end += 1;
        }
    }
    text::merge_ranges(ranges, false)
}

/// Finds forms by their beginnings. If the automaton is too large to be built, every text is treated
/// as secret.
#[derive(Clone)]
struct FormFinder {
    automaton: Option<AhoCorasick>,
    /// The forms with the same case-insensitive beginning, by the index of this beginning in the automaton.
    forms: Vec<Vec<Arc<[u8]>>>,
    /// The length of the shortest form.
    min_form_length: usize,
}

impl FormFinder {
    fn new(forms: &BTreeSet<Arc<[u8]>>) -> Self {
        let mut forms_by_prefix: BTreeMap<Vec<u8>, Vec<Arc<[u8]>>> = BTreeMap::new();
        for form in forms {
            let prefix = form[..form.len().min(MAX_PREFIX_BYTES)].to_ascii_lowercase();
            forms_by_prefix.entry(prefix).or_default().push(Arc::clone(form));
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(forms_by_prefix.keys())
            .ok();
        let min_form_length = forms.iter().map(|form| form.len()).min().unwrap_or(MIN_SECRET_BYTES);
        Self { automaton, forms: forms_by_prefix.into_values().collect(), min_form_length }
    }
}

/// An encoding of bytes as digits.
struct Encoding {
    /// The number of bits per digit.
    bits_per_digit: usize,
    /// The number of digits in a group that encodes whole bytes. The first digit of a secret may be
    /// at any offset in a group.
    digits_per_group: usize,
    decode_digit: fn(u8) -> Option<u8>,
    /// Bytes that may separate two digits.
    is_separator: fn(u8) -> bool,
}

/// Both alphabets of base64, and hexadecimal digits with common separators.
const ENCODINGS: [Encoding; 2] = [
    Encoding {
        bits_per_digit: 6,
        digits_per_group: 4,
        decode_digit: base64_digit,
        is_separator: |_| false,
    },
    Encoding {
        bits_per_digit: 4,
        digits_per_group: 2,
        decode_digit: hex_digit,
        is_separator: |b| matches!(b, b':' | b'-'),
    },
];

const fn base64_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16)?.try_into().ok()
}

impl Encoding {
    /// The bytes that `digits` encode, without an incomplete last byte.
    fn decode(&self, digits: &[u8]) -> Vec<u8> {
        let (mut buffer, mut bit_count) = (0_u32, 0);
        let mut bytes = Vec::with_capacity(digits.len() * self.bits_per_digit / 8);
        for digit in digits {
            buffer = buffer << self.bits_per_digit | u32::from(*digit);
            bit_count += self.bits_per_digit;
            if bit_count >= 8 {
                bit_count -= 8;
                bytes.push((buffer >> bit_count).to_le_bytes()[0]);
            }
        }
        bytes
    }

    /// The range of digits that encodes a range of bytes.
    const fn digit_range(&self, bytes: &Range<usize>) -> Range<usize> {
        8 * bytes.start / self.bits_per_digit..(8 * bytes.end).div_ceil(self.bits_per_digit)
    }
}

/// The search for the secrets of one text.
struct SecretSearch<'f> {
    finder: &'f FormFinder,
    automaton: &'f AhoCorasick,
    /// The ranges found so far.
    ranges: Vec<Range<usize>>,
}

impl SecretSearch<'_> {
    /// Searches `mapped` and all texts that are encoded in it. `depth` is the number of encodings
    /// that were removed before.
    fn search_layers(&mut self, mapped: &MappedText<'_>, depth: usize) {
        let unescaped_text = self.search_escaped(mapped, 0);
        let unbroken_text = strip_whitespace(unescaped_text.as_ref().unwrap_or(mapped));
        self.search_plain(unbroken_text.bytes(), |range| unbroken_text.source_range(range));
        for encoding in &ENCODINGS {
            if unbroken_text.bytes().iter().any(|byte| (encoding.is_separator)(*byte)) {
                let digits = unbroken_text.drop_bytes(encoding.is_separator);
                self.search_encoded(&digits, encoding, depth);
            } else {
                self.search_encoded(&unbroken_text, encoding, depth);
            }
        }
    }

    /// Searches `mapped`, and again after removing each level of escapes. `level` is the number of
    /// levels that were removed before. Returns the text without escapes; `None` if it has no
    /// escapes.
    fn search_escaped(
        &mut self,
        mapped: &MappedText<'_>,
        level: usize,
    ) -> Option<MappedText<'static>> {
        self.search_plain(mapped.bytes(), |range| mapped.source_range(range));
        if !mapped.may_have_escapes() {
            return None;
        }
        let escape_free_text = mapped.strip_escapes();
        self.search_plain(escape_free_text.bytes(), |range| escape_free_text.source_range(range));
        let unescaped_text = mapped.unescape_once().filter(|_| level < MAX_NESTING)?;
        Some(self.search_escaped(&unescaped_text, level + 1).unwrap_or(unescaped_text))
    }

    /// Searches `bytes` for forms. `source_range` returns the original range.
    fn search_plain(&mut self, bytes: &[u8], source_range: impl Fn(Range<usize>) -> Range<usize>) {
        for prefix_match in self.automaton.find_overlapping_iter(bytes) {
            let (start, end) = (prefix_match.start(), prefix_match.end());
            let forms = &self.finder.forms[prefix_match.pattern()];
            let lengths =
                forms.iter().filter_map(|form| matched_length(&bytes[start..], form, end - start));
            self.ranges.extend(lengths.max().map(|length| source_range(start..start + length)));
        }
    }

    /// Searches all parts of `mapped` that may be encoded.
    fn search_encoded(&mut self, mapped: &MappedText<'_>, encoding: &Encoding, depth: usize) {
        let bytes = mapped.bytes();
        let mut end = 0;
        while end < bytes.len() {
            let start = end;
            let digits: Vec<u8> =
                bytes[start..].iter().map_while(|byte| (encoding.decode_digit)(*byte)).collect();
            end += digits.len().max(1);
            if digits.len() * encoding.bits_per_digit < 8 * self.finder.min_form_length {
                continue;
            }
            // Padding is part of the encoded text.
            let padding = bytes[end..].iter().take_while(|byte| **byte == b'=').count();
            for skipped_digits in 0..encoding.digits_per_group {
                let decoded_bytes = encoding.decode(&digits[skipped_digits..]);
                let source_range = |range: Range<usize>| {
                    let digit_range = encoding.digit_range(&range);
                    let padding = if range.end == decoded_bytes.len() { padding } else { 0 };
                    let first_digit = start + skipped_digits;
                    mapped.source_range(
                        first_digit + digit_range.start..first_digit + digit_range.end + padding,
                    )
                };
                self.search_plain(&decoded_bytes, source_range);
                if depth < MAX_NESTING {
                    self.search_decoded(&decoded_bytes, source_range, depth + 1);
                }
            }
        }
    }

    /// Searches the text in `bytes`, which may be escaped or encoded again.
    fn search_decoded(
        &mut self,
        bytes: &[u8],
        source_range: impl Fn(Range<usize>) -> Range<usize>,
        depth: usize,
    ) {
        let mut chunk_end = 0;
        for chunk in bytes.utf8_chunks() {
            let chunk_start = chunk_end;
            chunk_end += chunk.valid().len() + chunk.invalid().len();
            for text in chunk.valid().split(|c: char| c.is_control() && !c.is_ascii_whitespace()) {
                if text.len() < self.finder.min_form_length {
                    continue;
                }
                let text_start = chunk_start + text.as_ptr().addr() - chunk.valid().as_ptr().addr();
                let mapped_bytes = (text_start..)
                    .zip(text.bytes())
                    .map(|(index, byte)| (byte, source_range(index..index + 1)));
                self.search_layers(&mapped_bytes.collect(), depth);
            }
        }
    }
}

/// The length of the part of `form` that `text` starts with. A short form must match completely and in the same case.
/// For a long form, the first `prefix_length` bytes are known to be equal apart from case.
fn matched_length(text: &[u8], form: &[u8], prefix_length: usize) -> Option<usize> {
    if form.len() < MIN_LOOSE_MATCH_BYTES {
        return text.starts_with(form).then_some(form.len());
    }
    let byte_pairs = text[prefix_length..].iter().zip(&form[prefix_length..]);
    Some(prefix_length + byte_pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count())
}

#[cfg(test)]
mod tests {
    use base64::prelude::{
        BASE64_STANDARD as STANDARD, BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD, Engine as _,
    };
    use proptest::prelude::*;

    use super::*;

    fn matcher_with<'s>(secrets: impl IntoIterator<Item = &'s str>) -> SecretMatcher {
        let mut matcher = SecretMatcher::default();
        secrets.into_iter().for_each(|secret| matcher.add(secret));
        matcher
    }

    fn redact(matcher: &SecretMatcher, text: &str) -> String {
        text::replace_ranges(text, &matcher.find_known_secrets(text), SECRET_MARK).into_owned()
    }

    #[test]
    fn overlapping_secrets_are_redacted_as_one() {
        let matcher = matcher_with(["abcdefgh", "efghijkl", "abcdefghijklmnop"]);
        for (text, result) in [
            ("abcdefgh", "[secret]"),
            ("-abcdefghijkl-", "-[secret]-"),
            ("abcdefghijklmnop", "[secret]"),
            ("abcdefghabcdefgh", "[secret][secret]"),
            ("abcdefg", "abcdefg"),
            ("", ""),
        ] {
            assert_eq!(redact(&matcher, text), result, "{text}");
        }
        assert_eq!(redact(&super::SecretMatcher::default(), "abcdefgh"), "abcdefgh");
    }

    #[test]
    fn a_secret_that_looks_like_the_mark_is_redacted_once() {
        for secret in ["secret", "[secret]", "[secret", "secret]"] {
            let matcher = matcher_with([secret, "another one"]);
            for text in [
                format!("is {secret}."),
                format!("is [secret]{secret}."),
                "is another one.".to_owned(),
                "is [secret].".to_owned(),
            ] {
                let redacted = redact(&matcher, &text);
                assert_eq!(redact(&matcher, &redacted), redacted, "{secret}: {text}");
                assert_eq!(redacted.replace(SECRET_MARK, ""), "is .", "{secret}: {text}");
            }
        }
    }

    #[test]
    fn the_beginning_of_a_large_secret_is_redacted_too() {
        let secret: String = (0..9_000).map(|i| format!("{i}é")).collect();
        let matcher = matcher_with([secret.as_str(), "0é1é2é3é4é5é and something else"]);
        for (text, tail) in [
            (format!("<{secret}>"), ">"),
            (format!("<{}… and so on", &secret[..1_001]), "… and so on"),
            (format!("<{}è", &secret[..1_001]), "è"),
        ] {
            assert_eq!(redact(&matcher, &text), format!("<[secret]{tail}"));
        }
    }

    #[test]
    fn forms_are_prepared_once_and_not_for_every_text() {
        let mut matcher = matcher_with(["one secret"]);
        let finder_address =
            |secret_matcher: &SecretMatcher| secret_matcher.finder.get().map(std::ptr::from_ref);
        assert_eq!(
            (finder_address(&matcher), redact(&matcher, "one secret")),
            (None, SECRET_MARK.to_owned())
        );
        let first_address = finder_address(&matcher);
        assert!(
            first_address.is_some()
                && redact(&matcher, "one secret") == SECRET_MARK
                && finder_address(&matcher) == first_address
        );
        matcher.add("another");
        assert_eq!(
            (finder_address(&matcher), redact(&matcher, "another")),
            (None, SECRET_MARK.to_owned())
        );
    }

    type NamedEncoding = (&'static str, fn(&str) -> String);

    /// Encodings of a text, each tested alone and combined.
    fn encodings() -> Vec<NamedEncoding> {
        fn map_bytes(text: &str, byte: impl Fn(u8) -> String) -> String {
            text.bytes().map(byte).collect()
        }
        fn percent_encode(text: &str, unescaped_chars: &str) -> String {
            map_bytes(text, |byte| match char::from(byte) {
                c if c.is_ascii_alphanumeric() || unescaped_chars.contains(c) => c.into(),
                _ => format!("%{byte:02X}"),
            })
        }
        fn escape_json(text: &str) -> String {
            let quoted = serde_json::Value::from(text).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        }
        fn escape_utf16(text: &str) -> String {
            text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        fn break_into_lines(text: &str, width: usize) -> String {
            let chars: Vec<_> = text.chars().collect();
            chars.chunks(width).map(String::from_iter).collect::<Vec<_>>().join("\r\n")
        }
        fn escape_html(text: &str) -> String {
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            text.replace('"', "&quot;").replace('\'', "&#39;")
        }
        vec![
            ("json", escape_json),
            ("rails", |text| {
                let text = escape_json(text).replace('&', "\\u0026");
                text.replace('<', "\\u003c").replace('>', "\\u003e")
            }),
            ("utf16", escape_utf16),
            ("debug", |text| {
                let quoted = format!("{text:?}");
                quoted[1..quoted.len() - 1].to_owned()
            }),
            ("shown", |text| crate::text::escape(text).into_owned()),
            ("percent", |text| percent_encode(text, "-_.~")),
            ("percent, / kept", |text| percent_encode(text, "-_.~/")),
            ("percent, all", |text| map_bytes(text, |byte| format!("%{byte:02x}"))),
            ("form", |text| percent_encode(text, "*-._ ").replace(' ', "+")),
            ("html", escape_html),
            ("html, numbers", |text| {
                text.chars().map(|c| format!("&#{};", u32::from(c))).collect()
            }),
            ("git", |text| {
                map_bytes(text, |byte| match byte {
                    b'"' | b'\\' => format!("\\{}", char::from(byte)),
                    b' '..=b'~' => char::from(byte).into(),
                    _ => format!("\\{byte:03o}"),
                })
            }),
            ("python", |text| map_bytes(text, |byte| format!("\\x{byte:02x}"))),
            ("hex", |text| map_bytes(text, |byte| format!("{byte:02x}"))),
            ("hex, colons", |text| map_bytes(text, |byte| format!("{byte:02X}:"))),
            ("base64", |text| STANDARD.encode(text)),
            ("base64, lines", |text| break_into_lines(&STANDARD.encode(text), 20)),
            ("base64, url", |text| URL_SAFE_NO_PAD.encode(text)),
            ("base64, within", |text| STANDARD.encode(format!("x: {text} y"))),
            ("base64, further within", |text| URL_SAFE_NO_PAD.encode(format!("xy: {text}"))),
        ]
    }

    /// The part of `text` that is not redacted; `None` if no secret is found.
    fn visible_text(matcher: &SecretMatcher, text: &str) -> Option<String> {
        let found_ranges = matcher.find_known_secrets(text);
        let redacted_text = redact(matcher, text);
        (!found_ranges.is_empty()).then(|| redacted_text.replace(SECRET_MARK, ""))
    }

    #[test]
    fn a_secret_is_found_in_every_form_and_in_two_combined() {
        let secret = "k3y&<é l'on\"g>/s%25cr\\et+c?n~ry=";
        let matcher = matcher_with([secret]);
        for (outer_name, encode_outer) in encodings() {
            for (inner_name, encode_inner) in
                encodings().into_iter().chain([("plain", str::to_owned as _)])
            {
                let text = format!("refused: '{}'.", encode_outer(&encode_inner(secret)));
                let unredacted = visible_text(&matcher, &text)
                    .unwrap_or_else(|| panic!("{outer_name} of {inner_name}: {text}"));
                assert!(
                    unredacted.len() <= "refused: ''. ".len() + 48,
                    "{outer_name} of {inner_name}: {unredacted}"
                );
            }
        }
    }

    #[test]
    fn short_secrets_are_not_searched() {
        for secret in ["abc", "", "\n", "      \n", "%41%42"] {
            let text = format!("is {secret}, abc, 616263, YWJj, AB and      all that");
            assert!(
                secret == "      \n" || redact(&matcher_with([secret]), &text).contains("all that")
            );
        }
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        let matcher = matcher_with([
            "secret-of-acme",
            "production",
            "Zq7Zq7Zq7Zq7Zq7Zq7",
            "a b c d e f g h i j k l m n o p",
        ]);
        for text in [
            "Production and PRODUCTIVE, the secret of acme; 50 % of a\\b & c",
            "YWJj ZGVm feed:beef:cafe 00:11:22 https://e.org/a%20b?c=%2F&d=e",
            "abcdefgh",
        ] {
            assert_eq!(redact(&matcher, text), text);
        }
        assert_eq!(
            redact(&matcher, "ZQ7zQ7zQ7zQ7zQ7zQ7 and a b c\nd e f g h i j k l m n o  p"),
            "[secret] and [secret]"
        );
    }

    proptest! {
        #[test]
        fn a_text_in_windows_has_the_secrets_of_the_whole_text(
            indices in proptest::collection::vec(0..20_usize, 0..2),
            before in r#"([a-z "/=]{0,9}\n){0,9}"#,
            after in r#"(\n[a-z "/=]{0,9}){0,9}"#,
            window_length in 1..60_usize,
        ) {
            let (secret, all_encodings) = ("a secret,\nof \"two\" lines", encodings());
            let encoded = indices.iter().fold(secret.to_owned(), |text, index| (all_encodings[*index].1)(&text));
            let text = format!("{before}{encoded} {after}{encoded} {after}");
            let matcher = matcher_with([secret]);
            let expected_ranges = matcher.find_known_secrets(&text);
            prop_assert!(expected_ranges.len() >= 2);
            prop_assert_eq!(matcher.find_in_windows(&text, window_length, encoded.len()), expected_ranges);
        }

        #[test]
        fn every_encoded_secret_is_redacted(
            secret in r#"[ -~é]{16,40}"#,
            indices in proptest::collection::vec(0..20_usize, 0..3),
            before in r#"[a-z "/=]{0,9}[ "=:]"#,
        ) {
            prop_assume!(secret.trim().len() >= MIN_LOOSE_MATCH_BYTES);
            let all_encodings = encodings();
            let text = indices.iter().fold(secret.clone(), |text, way| (all_encodings[*way].1)(&text));
            let text = format!("{before}{text}.");
            let unredacted = visible_text(&matcher_with([secret.as_str()]), &text);
            prop_assert!(unredacted.is_some_and(|left| left.len() <= before.len() + 60), "{}", text);
        }

        #[test]
        fn redacting_twice_changes_nothing(
            secrets in proptest::collection::vec("[ab\"\\\\é&\n ]{6,9}", 1..4),
            text in "[ab\"\\\\é&\n ]{0,40}",
        ) {
            let matcher = matcher_with(secrets.iter().map(String::as_str));
            let redacted = redact(&matcher, &format!("{text}{}{text}", secrets[0]));
            prop_assert!(!redacted.contains(&secrets[0]));
            prop_assert_eq!(redact(&matcher, &redacted), redacted);
        }
    }
}
