//! Checks that a text is a regular expression in RE2 syntax. For other texts, it returns the
//! service's error text.
//!
//! The grammar is a list of patterns for the next element. The patterns have the order in which RE2
//! tries them, because the error text names the first error. Expressions are only parsed, not
//! applied to texts.

use std::sync::LazyLock;

use regex::Regex;

/// The service's error text for an invalid expression; `None` for a valid one.
pub(crate) fn syntax_error(text: &str) -> Option<String> {
    let error = Parser { text, position: 0 }.parse().err()?;
    Some(format!("not valid RE2 syntax: {error}"))
}

/// The maximum number of repetitions. The numbers of nested repetitions are multiplied.
const MAX_REPETITIONS: u64 = 1_000;

type ParseResult<T = ()> = Result<T, String>;

/// A part of an expression.
#[derive(Clone, Copy)]
enum Element {
    Open,
    Close,
    Alternation,
    Repeat,
    /// The start of a class in brackets.
    Class,
    /// A character.
    Character,
    /// An escape or class that matches several characters.
    Set,
    /// Flags without a group.
    Flags,
    Error(&'static str),
    /// An error at the end of the text. The message does not quote the text.
    ErrorAtEnd(&'static str),
}

/// Patterns with the elements that they match. The first matching pattern decides.
type Grammar = LazyLock<Vec<(Regex, Element)>>;

fn grammar(lists: &[&[(&str, Element)]]) -> Vec<(Regex, Element)> {
    let patterns = lists.iter().copied().flatten().map(|(pattern, element)| {
        let pattern = Regex::new(&format!("^(?s:{pattern})"));
        (pattern.expect("each test of expressions compiles them"), *element)
    });
    patterns.collect()
}

static TOP_LEVEL_GRAMMAR: Grammar =
    LazyLock::new(|| grammar(&[GROUPS, OPERATORS, SETS, CHARACTERS]));
static BRACKET_GRAMMAR: Grammar = LazyLock::new(|| grammar(&[POSIX, SETS, CHARACTERS]));
static CHARACTER_GRAMMAR: Grammar = LazyLock::new(|| grammar(&[CHARACTERS]));

const GROUPS: &[(&str, Element)] = &[
    (r"\(\?P?<[_\p{Alphabetic}\p{N}]+>", Element::Open),
    (r"\(\?P?<[^>]*>?", Element::Error("invalid named capture group")),
    (r"\(\?[imsU]*(-[imsU]+)?:", Element::Open),
    (r"\(\?[imsU]*(-[imsU]+)?\)", Element::Flags),
    (r"\(\?[imsU]*(-[imsU]*)?.?", Element::Error("invalid perl operator")),
    (r"\(", Element::Open),
    (r"\)", Element::Close),
];

const OPERATORS: &[(&str, Element)] = &[
    (r"\|", Element::Alternation),
    // A brace that is not a repetition is a literal.
    (r"([*+?]|\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\})\??", Element::Repeat),
    (r"\[", Element::Class),
    (r"\\Q(.*?\\E|.*)", Element::Character),
    (r"\\[bBAzC]", Element::Character),
];

/// Classes in brackets: `[:alpha:]`.
const POSIX: &[(&str, Element)] = &[
    (
        r"\[:\^?(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]",
        Element::Set,
    ),
    (r"\[:.*?:\]", Element::Error("invalid character class range")),
];

/// Escapes that match several characters. A Unicode name of one or two letters is a category, or
/// `Yi`, the only script with such a name. Longer names are scripts and are not checked.
const SETS: &[(&str, Element)] = &[
    (r"\\[dDsSwW]", Element::Set),
    (
        r"\\[pP]([CLMNPSZ]|\{\^?(C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Yi|Z[lps]?|[A-Z][A-Za-z_]{2,})\})",
        Element::Set,
    ),
    (r"\\[pP]$", Element::ErrorAtEnd("invalid UTF-8")),
    (r"\\[pP](\{[^}]*\}?|.)", Element::Error("invalid character class range")),
];

const CHARACTERS: &[(&str, Element)] = &[
    // A single digit would be a reference to a group.
    (r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})", Element::Character),
    // The number is above the last character of Unicode.
    (
        r"\\x\{0*((1[1-9a-fA-F]|[2-9a-fA-F][[:xdigit:]])[[:xdigit:]]{4}|10[[:xdigit:]]{5})",
        INVALID_ESCAPE,
    ),
    (r"\\x(\{[[:xdigit:]]+\}|[[:xdigit:]]{2})", Element::Character),
    (r"\\x(\{[[:xdigit:]]*|[[:xdigit:]]?).?", INVALID_ESCAPE),
    (r"\\([nrtafv]|[[:ascii:]--[:alnum:]])", Element::Character),
    (r"\\.", INVALID_ESCAPE),
    (r"\\", Element::ErrorAtEnd("trailing \\")),
    (r"[^\\]", Element::Character),
];

const INVALID_ESCAPE: Element = Element::Error("invalid escape sequence");

/// The code point of a character, which may be written as an escape.
fn code_point(text: &str) -> u32 {
    let escape = text.strip_prefix('\\').unwrap_or_default();
    let number = match escape.strip_prefix('x') {
        Some(digits) => u32::from_str_radix(digits.trim_matches(['{', '}']), 16),
        None => u32::from_str_radix(escape, 8),
    };
    number.unwrap_or_else(|_| match escape {
        "n" => 10,
        "r" => 13,
        "t" => 9,
        "a" => 7,
        "f" => 12,
        "v" => 11,
        _ => text.chars().last().map_or(0, u32::from),
    })
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn remaining_text(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// Fails with a message that quotes the text from `start` to the current position.
    fn error<T>(&self, message: &str, start: usize) -> ParseResult<T> {
        Err(format!("{message}: {}", &self.text[start..self.position]))
    }

    /// Reads the next element.
    fn next_element(&mut self, grammar: &Grammar) -> ParseResult<(Element, &'a str)> {
        let (start, unread_text) = (self.position, self.remaining_text());
        let mut matches = grammar
            .iter()
            .filter_map(|(regex, element)| Some((regex.find(unread_text)?, *element)));
        let (text, element) = matches.next().ok_or("the text has ended")?;
        self.position += text.len();
        match element {
            Element::Error(message) => self.error(message, start),
            Element::ErrorAtEnd(message) => Err(message.to_owned()),
            element => Ok((element, text.as_str())),
        }
    }

    /// Reads the whole text.
    fn parse(&mut self) -> ParseResult {
        // The highest number of repetitions so far: in each enclosing group, and in the current
        // group.
        let (mut outer_max_repetitions, mut max_repetitions) = (Vec::<u64>::new(), 1);
        // The repetitions of the operand of the next operator; `None` at the start of a group or
        // branch.
        let mut operand_repetitions = None;
        let mut repetition_start: Option<usize> = None;
        while !self.remaining_text().is_empty() {
            let (start, previous_start) = (self.position, repetition_start.take());
            let (element, text) = self.next_element(&TOP_LEVEL_GRAMMAR)?;
            match element {
                Element::Open => {
                    outer_max_repetitions.push(max_repetitions);
                    (max_repetitions, operand_repetitions) = (1, None);
                }
                Element::Close => {
                    let Some(outer_maximum) = outer_max_repetitions.pop() else {
                        return Err(format!("unexpected ): {}", self.text));
                    };
                    operand_repetitions = Some(max_repetitions);
                    max_repetitions = max_repetitions.max(outer_maximum);
                }
                Element::Alternation => operand_repetitions = None,
                Element::Repeat => {
                    if let Some(first_start) = previous_start {
                        return self.error("bad repetition operator", first_start);
                    }
                    let repetitions = self.total_repetitions(text, operand_repetitions, start)?;
                    max_repetitions = max_repetitions.max(repetitions);
                    (operand_repetitions, repetition_start) = (Some(repetitions), Some(start));
                }
                Element::Class => {
                    self.read_class(start)?;
                    operand_repetitions = Some(1);
                }
                Element::Character | Element::Set => operand_repetitions = Some(1),
                Element::Flags | Element::Error(_) | Element::ErrorAtEnd(_) => {}
            }
        }
        if outer_max_repetitions.is_empty() {
            Ok(())
        } else {
            Err(format!("missing ): {}", self.text))
        }
    }

    /// The number of repetitions by an operator, multiplied by the repetitions inside its operand.
    fn total_repetitions(
        &self,
        text: &str,
        operand_repetitions: Option<u64>,
        start: usize,
    ) -> ParseResult<u64> {
        let (min, max) =
            match text.strip_prefix('{').and_then(|bounds_text| bounds_text.split('}').next()) {
                None => (0, 1),
                Some(bounds) => {
                    let (min_text, upper_text) = bounds.split_once(',').unwrap_or((bounds, ""));
                    // Without an upper bound, the lower bound is the number of repetitions.
                    let max_text = if upper_text.is_empty() { min_text } else { upper_text };
                    (min_text.parse().unwrap_or(u64::MAX), max_text.parse().unwrap_or(u64::MAX))
                }
            };
        let size_error = "invalid repetition size";
        if max < min || max > MAX_REPETITIONS {
            return self.error(size_error, start);
        }
        match operand_repetitions.map(|count| count * max.max(1)) {
            None => self.error("no argument for repetition operator", start),
            Some(repetitions) if repetitions > MAX_REPETITIONS => self.error(size_error, start),
            Some(times) => Ok(times),
        }
    }

    /// Reads a class in brackets, from the position after its opening bracket.
    fn read_class(&mut self, start: usize) -> ParseResult {
        self.position += usize::from(self.remaining_text().starts_with('^'));
        let class_start = self.position;
        while self.position == class_start || !self.remaining_text().starts_with(']') {
            if self.remaining_text().is_empty() {
                return Err(format!("missing ]: {}", &self.text[start..]));
            }
            let item_start = self.position;
            let (element, text) = self.next_element(&BRACKET_GRAMMAR)?;
            let remaining_text = self.remaining_text();
            let is_single = matches!(element, Element::Character);
            if is_single
                && remaining_text.starts_with('-')
                && !remaining_text.starts_with("-]")
                && remaining_text.len() > 1
            {
                self.position += 1;
                let (_, range_end) = self.next_element(&CHARACTER_GRAMMAR)?;
                if code_point(range_end) < code_point(text) {
                    return self.error("invalid character class range", item_start);
                }
            }
        }
        self.position += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::syntax_error;

    #[test]
    fn valid_syntax_is_accepted() {
        for text in [
            "",
            "^a$",
            "(?i)abc",
            r"(?-i:x)(?P<n>y)(?<m>z)",
            "a|b|",
            "(|a)*",
            "a{2}{",
            "a{,3}",
            "a{1,3}?b*?",
            "x{1000}",
            "[]a]",
            "[^]]",
            "[a-]",
            "[-a-c-]",
            r"[\d\-[:alpha:]\p{Greek}]",
            "[[:foo]",
            r"\p{Lu}\PL\pN",
            r"\Qa(b\E(c)",
            r"\Q(",
            r"\bA\z\A\B\C",
            r"\x41\x{1F600}\012\0\_\.\/\-",
            "ü+",
            r"^(feat|fix): \[[A-Z]{2,5}-\d+\] .{10,}$",
            "(((a{10}){10}){10})",
        ] {
            assert_eq!(syntax_error(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_error_is_named() {
        for (text, message) in [
            ("(", "missing ): ("),
            ("a(b|(c)", "missing ): a(b|(c)"),
            ("a)b", "unexpected ): a)b"),
            ("\\", "trailing \\"),
            ("[\\", "trailing \\"),
            ("(?=x)", "invalid perl operator: (?="),
            ("a(?!x)", "invalid perl operator: (?!"),
            ("(?", "invalid perl operator: (?"),
            ("(?i-)", "invalid perl operator: (?i-)"),
            (r"\d+(?<!x)", "invalid named capture group: (?<!x)"),
            ("(?<!a)b>c", "invalid named capture group: (?<!a)b>"),
            ("(?P<>a)", "invalid named capture group: (?P<>"),
            ("(?P=n)", "invalid perl operator: (?P"),
            ("*", "no argument for repetition operator: *"),
            ("a|+?b", "no argument for repetition operator: +?"),
            ("({2})", "no argument for repetition operator: {2}"),
            ("a**", "bad repetition operator: **"),
            ("a+{2}?b", "bad repetition operator: +{2}?"),
            ("a{1001}", "invalid repetition size: {1001}"),
            ("a{2,1}", "invalid repetition size: {2,1}"),
            ("((a{100}){11})", "invalid repetition size: {11}"),
            ("x[a", "missing ]: [a"),
            ("[a-", "missing ]: [a-"),
            ("[]", "missing ]: []"),
            ("[z-a]", "invalid character class range: z-a"),
            ("[[:foo:]]", "invalid character class range: [:foo:]"),
            (r"\p{foo}x", r"invalid character class range: \p{foo}"),
            (r"\pX", r"invalid character class range: \pX"),
            (r"\p{L", r"invalid character class range: \p{L"),
            (r"\1", r"invalid escape sequence: \1"),
            (r"a\Zb", r"invalid escape sequence: \Z"),
            (r"[a-\d]", r"invalid escape sequence: \d"),
            (r"\x{110000}", r"invalid escape sequence: \x{110000"),
            (r"\xg1", r"invalid escape sequence: \xg"),
        ] {
            assert_eq!(
                syntax_error(text),
                Some(format!("not valid RE2 syntax: {message}")),
                "{text}"
            );
        }
    }
}
