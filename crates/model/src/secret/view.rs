//! Removes escapes from a text. Each byte of the result keeps its position in the original text.
//!
//! A copy of a text may be escaped several times, by several rules. A list of all forms cannot be
//! complete, but each escape of JSON, programming languages, URLs and HTML can be recognised on its
//! own.

use std::{borrow::Cow, ops::Range};

/// The maximum length of an escape in bytes.
const MAX_ESCAPE_BYTES: usize = 12;

/// The names of HTML entities, each followed by its character. These characters are special in
/// a format in which a secret can be written, such as JSON or a URL.
const ENTITIES: &str = "amp& apos' ast* bsol\\ colon: comma, commat@ dollar$ equals= excl! grave` gt> Hat^ \
    lbrace{ lbrack[ lcub{ lowbar_ lpar( lsqb[ lt< nbsp\u{a0} NewLine\n num# percnt% \
    period. plus+ quest? quot\" rbrace} rbrack] rcub} rpar) rsqb] semi; sol/ Tab\t \
    verbar| vert|";

/// Bytes, each with its range in the original text.
#[derive(Clone, Debug, Default)]
pub(super) struct MappedText<'t> {
    bytes: Cow<'t, [u8]>,
    /// The range of each byte in the original text; `None` if the bytes are the original text.
    spans: Option<Vec<(u32, u32)>>,
}

impl<'t> MappedText<'t> {
    /// The unchanged `text`. Its length must fit in 32 bits.
    pub(super) const fn from_text(text: &'t [u8]) -> Self {
        Self { bytes: Cow::Borrowed(text), spans: None }
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The range in the original text that corresponds to the non-empty `range` of bytes.
    pub(super) fn source_range(&self, range: Range<usize>) -> Range<usize> {
        match &self.spans {
            None => range,
            Some(spans) => spans[range.start].0 as usize..spans[range.end - 1].1 as usize,
        }
    }

    /// Each byte with its range in the original text.
    fn mapped_bytes(&self) -> impl Iterator<Item = (u8, Range<usize>)> {
        self.bytes.iter().enumerate().map(|(i, byte)| (*byte, self.source_range(i..i + 1)))
    }

    /// Removes one level of escapes; `None` if there are none.
    pub(super) fn unescape_once(&self) -> Option<MappedText<'static>> {
        let mut unescaped = MappedText::default();
        let (mut unescaped_end, mut has_escape) = (0, false);
        self.may_have_escapes().then_some(())?;
        for (byte, span) in self.mapped_bytes() {
            unescaped.push(byte, span);
            if let Some((length, decoded)) = escape_at_end(&unescaped.bytes[unescaped_end..]) {
                unescaped.replace_end(length, &decoded);
                (unescaped_end, has_escape) = (unescaped.bytes.len(), true);
            }
        }
        has_escape.then_some(unescaped)
    }

    /// Removes all levels of escapes, for comparing. The result of an escape may be part of another
    /// escape. All backslashes are removed, because their number depends on the number of levels. A
    /// control character is replaced by the letter of its escape: a newline becomes `n`.
    pub(super) fn strip_escapes(&self) -> MappedText<'static> {
        let mut unescaped = MappedText::default();
        for (byte, span) in self.mapped_bytes() {
            unescaped.push(byte, span);
            while let Some((length, decoded)) = char_code_at_end(&unescaped.bytes) {
                unescaped.replace_end(length, &decoded);
            }
        }
        let mut normalized = unescaped.drop_bytes(|byte| byte == b'\\');
        normalized.bytes.to_mut().iter_mut().for_each(|byte| *byte = escape_letter(*byte));
        normalized
    }

    /// True if there may be escapes.
    pub(super) fn may_have_escapes(&self) -> bool {
        self.bytes.iter().any(|byte| matches!(byte, b'\\' | b'%' | b'&'))
    }

    /// Removes the bytes that `is_dropped` selects.
    pub(super) fn drop_bytes(&self, is_dropped: impl Fn(u8) -> bool) -> MappedText<'static> {
        self.mapped_bytes().filter(|(byte, _)| !is_dropped(*byte)).collect()
    }

    /// Adds a byte with its range in the original text.
    fn push(&mut self, byte: u8, span: Range<usize>) {
        let [start, end] = [span.start, span.end].map(|end| u32::try_from(end).unwrap_or(u32::MAX));
        self.bytes.to_mut().push(byte);
        self.spans.get_or_insert_default().push((start, end));
    }

    /// Replaces the last `length` bytes by `result`.
    fn replace_end(&mut self, length: usize, result: &EscapeResult) {
        let start = self.bytes.len() - length;
        let span = self.source_range(start..self.bytes.len());
        self.bytes.to_mut().truncate(start);
        self.spans.get_or_insert_default().truncate(start);
        match result {
            EscapeResult::Byte(byte) => self.push(*byte, span),
            EscapeResult::Char(c) => {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer).bytes().for_each(|byte| self.push(byte, span.clone()));
            }
        }
    }
}

impl FromIterator<(u8, Range<usize>)> for MappedText<'static> {
    fn from_iter<I: IntoIterator<Item = (u8, Range<usize>)>>(mapped_bytes: I) -> Self {
        let mut mapped = Self::default();
        mapped_bytes.into_iter().for_each(|(byte, span)| mapped.push(byte, span));
        mapped
    }
}

/// The byte or character that an escape encodes.
enum EscapeResult {
    Byte(u8),
    Char(char),
}

/// The escape at the end of `bytes`: its length and its result.
fn escape_at_end(bytes: &[u8]) -> Option<(usize, EscapeResult)> {
    match bytes {
        [.., b'\\', last] if last.is_ascii_punctuation() || *last == b' ' => {
            Some((2, EscapeResult::Byte(*last)))
        }
        [.., b'\\', last] => {
            let escape_pair = ESCAPE_LETTERS.iter().find(|(letter, _)| letter == last);
            escape_pair
                .map(|(_, decoded)| (2, EscapeResult::Byte(*decoded)))
                .or_else(|| char_code_at_end(bytes))
        }
        _ => char_code_at_end(bytes),
    }
}

/// The escape at the end of `bytes` that consists of a number or name, such as `%3c` or `&lt;`: its length and its
/// result.
fn char_code_at_end(bytes: &[u8]) -> Option<(usize, EscapeResult)> {
    match bytes.last()? {
        b';' => html_entity(bytes),
        b'}' => braced_escape(bytes),
        last if last.is_ascii_hexdigit() => numeric_escape(bytes),
        _ => None,
    }
}

/// Control characters that are escaped as a backslash and a letter.
const ESCAPE_LETTERS: [(u8, u8); 8] = [
    (b'n', b'\n'),
    (b'r', b'\r'),
    (b't', b'\t'),
    (b'a', 0x07),
    (b'b', 0x08),
    (b'v', 0x0b),
    (b'f', 0x0c),
    (b'e', 0x1b),
];

/// `byte`, or the letter of its escape.
fn escape_letter(byte: u8) -> u8 {
    ESCAPE_LETTERS.iter().find(|(_, control)| *control == byte).map_or(byte, |(letter, _)| *letter)
}

/// The HTML entity at the end of `bytes`, such as `&lt;`, `&#60;` or `&#x3c;`: its length and its
/// result.
fn html_entity(bytes: &[u8]) -> Option<(usize, EscapeResult)> {
    let tail = &bytes[bytes.len().saturating_sub(MAX_ESCAPE_BYTES)..bytes.len() - 1];
    let name = &tail[tail.iter().rposition(|byte| *byte == b'&')? + 1..];
    let name = str::from_utf8(name).ok()?;
    let c = match name.strip_prefix('#') {
        None => ENTITIES.split(' ').find_map(|entity| entity.strip_prefix(name)?.parse().ok())?,
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => char::from_u32(u32::from_str_radix(digits, 16).ok()?)?,
            None => char::from_u32(number.parse().ok()?)?,
        },
    };
    Some((name.len() + 2, EscapeResult::Char(c)))
}

/// The escape with braces at the end of `bytes`, such as `\u{3c}` or `\x{3c}`: its length and its
/// result.
fn braced_escape(bytes: &[u8]) -> Option<(usize, EscapeResult)> {
    let tail = &bytes[bytes.len().saturating_sub(MAX_ESCAPE_BYTES)..bytes.len() - 1];
    let brace_index = tail.iter().rposition(|byte| *byte == b'{')?;
    let has_prefix = matches!(tail[..brace_index], [.., b'\\', b'u' | b'x']);
    let c = char::from_u32(parse_digits(&tail[brace_index + 1..], 16)?).filter(|_| has_prefix)?;
    Some((tail.len() - brace_index + 3, EscapeResult::Char(c)))
}

/// The escapes that contain a number. Each row has the beginning of the escape, the number of
/// digits, the base, and true if the number is a byte (false if it is a character).
const NUMERIC_ESCAPES: [(&[u8], usize, u32, bool); 6] = [
    (b"%", 2, 16, true),
    (b"\\x", 2, 16, true),
    (b"\\", 3, 8, true),
    (b"\\U", 8, 16, false),
    (b"\\u", 4, 16, false),
    (b"%u", 4, 16, false),
];

/// The escape with a number at the end of `bytes`: its length and its result. Examples are `%3c`,
/// `%u003c`, `\x3c`, `\u003c`, `\U0000003c`, `\074`, and surrogate pairs such as `\ud83d\ude00`.
fn numeric_escape(bytes: &[u8]) -> Option<(usize, EscapeResult)> {
    let (length, number, is_byte) =
        NUMERIC_ESCAPES.iter().find_map(|(prefix, digit_count, radix, is_byte)| {
            let length = prefix.len() + digit_count;
            let escape = bytes.get(bytes.len().checked_sub(length)?..)?;
            Some((length, parse_digits(escape.strip_prefix(*prefix)?, *radix)?, *is_byte))
        })?;
    if is_byte {
        return Some((length, EscapeResult::Byte(u8::try_from(number).ok()?)));
    }
    let high_escape = bytes
        .len()
        .checked_sub(2 * length)
        .map(|high_start| &bytes[high_start..bytes.len() - length]);
    if let Some([b'\\', b'u', high_digits @ ..]) = high_escape
        && let (Some(high_unit @ 0xd800..=0xdbff), 0xdc00..=0xdfff) =
            (parse_digits(high_digits, 16), number)
    {
        let c = 0x1_0000 + ((high_unit & 0x3ff) << 10 | number & 0x3ff);
        return Some((2 * length, EscapeResult::Char(char::from_u32(c)?)));
    }
    Some((length, EscapeResult::Char(char::from_u32(number)?)))
}

/// The value of up to eight digits with this base; `None` if they are no number.
fn parse_digits(digits: &[u8], base: u32) -> Option<u32> {
    let is_valid = (1..=8).contains(&digits.len())
        && digits.iter().all(|digit| char::from(*digit).is_digit(base));
    u32::from_str_radix(str::from_utf8(digits).ok().filter(|_| is_valid)?, base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(mapped: &MappedText<'_>) -> String {
        String::from_utf8_lossy(mapped.bytes()).into_owned()
    }

    fn unescape(escaped: &str) -> String {
        MappedText::from_text(escaped.as_bytes())
            .unescape_once()
            .map_or_else(|| escaped.into(), |mapped| text(&mapped))
    }

    fn remove_escapes(escaped: &str) -> String {
        text(&MappedText::from_text(escaped.as_bytes()).strip_escapes())
    }

    #[test]
    fn every_escape_is_removed_once() {
        for (text, expected) in [
            (r"a\u0026\u003cb\u{3e}\x{3e}\U0000002a\x2b\053%u003f", "a&<b>>*++?"),
            (r#"\"\/\\\n\t\r\'\#\$\ "#, "\"/\\\n\t\r'#$ "),
            ("%2f%2F%25", "//%"),
            ("&amp;&lt;&#38;&#x26;&#X26;&sol;&NewLine;", "&<&&&/\n"),
            (r"\ud83d\ude00 \303\251 %C3%A9", "😀 é é"),
            (r"%252F \\u002F \\\\n &amp;#47; %5Cn", r"%2F \u002F \\n &#47; \n"),
        ] {
            assert_eq!(unescape(text), expected, "{text}");
        }
    }

    #[test]
    fn nested_escapes_are_removed() {
        for text in [
            "%252F",
            "%25252F",
            r"\\u002F",
            r"\\\\u002F",
            "&amp;#47;",
            "&amp;amp;sol;",
            "%5Cu002F",
            "%5C%75%30%30%32%46",
            r"\u00252F",
            "%26sol%3B",
        ] {
            assert_eq!(remove_escapes(text), "/", "{text}");
        }
        for text in ["\\n \n", r"\\n \\\n", r"\u005c\u006e\u0020\u000a", "%5Cn%20%0a"] {
            assert_eq!(remove_escapes(text), "n n", "{text}");
        }
    }

    #[test]
    fn other_text_is_unchanged() {
        for text in [
            "",
            "100 %",
            "%zz",
            r"\q",
            r"\u12",
            r"\u{}",
            "&;",
            "&#;",
            "&#x110000;",
            "&eacute;",
            "a;b}c",
        ] {
            assert_eq!(unescape(text), text);
            assert_eq!(remove_escapes(text), text.replace('\\', ""));
        }
    }

    #[test]
    fn each_byte_keeps_its_position() {
        let text = r"a%25252Fb\u00e9";
        let mapped = MappedText::from_text(text.as_bytes()).strip_escapes();
        assert_eq!(mapped.bytes(), "a/bé".as_bytes());
        let sources: Vec<_> =
            (0..5).map(|index| &text[mapped.source_range(index..index + 1)]).collect();
        assert_eq!(sources, ["a", "%25252F", "b", r"\u00e9", r"\u00e9"]);
    }
}
