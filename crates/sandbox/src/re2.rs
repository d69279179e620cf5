//! Checks whether a text is a regular expression in RE2 syntax, and returns the service's refusal
//! if not.
//!
//! The grammar is a list of patterns for the next element, in the order in which RE2 tries them,
//! because a refusal names the first fault. Expressions are only parsed, not applied to texts.

use std::sync::LazyLock;

use regex::Regex;

/// The service's refusal of a text as an expression, if any.
pub(crate) fn refusal(text: &str) -> Option<String> {
    let fault = Parser { text, position: 0 }.parse().err()?;
    Some(format!("not valid RE2 syntax: {fault}"))
}

/// The maximum number of repetitions, with nested ones multiplied.
const MAX_REPETITIONS: u64 = 1_000;

type Parsed<T = ()> = Result<T, String>;

/// A part of an expression.
#[derive(Clone, Copy)]
enum Element {
    Open,
    Close,
    Or,
    Repeat,
    /// The start of a class in brackets.
    Class,
    /// A character.
    Character,
    /// Several characters.
    Set,
    /// Flags without a group.
    Flags,
    Fault(&'static str),
    /// A fault at the end of the text, which is not quoted.
    FaultAtEnd(&'static str),
}

/// Patterns with the elements that they match. The first one that matches counts.
type Grammar = LazyLock<Vec<(Regex, Element)>>;

fn grammar(lists: &[&[(&str, Element)]]) -> Vec<(Regex, Element)> {
    let patterns = lists.iter().copied().flatten().map(|(pattern, element)| {
        let pattern = Regex::new(&format!("^(?s:{pattern})"));
        (pattern.expect("each test of expressions compiles them"), *element)
    });
    patterns.collect()
}

static OUTSIDE_GRAMMAR: Grammar = LazyLock::new(|| grammar(&[GROUPS, OPERATORS, SETS, CHARACTERS]));
static BRACKET_GRAMMAR: Grammar = LazyLock::new(|| grammar(&[POSIX, SETS, CHARACTERS]));
static CHARACTER_GRAMMAR: Grammar = LazyLock::new(|| grammar(&[CHARACTERS]));

const GROUPS: &[(&str, Element)] = &[
    (r"\(\?P?<[_\p{Alphabetic}\p{N}]+>", Element::Open),
    (r"\(\?P?<[^>]*>?", Element::Fault("invalid named capture group")),
    (r"\(\?[imsU]*(-[imsU]+)?:", Element::Open),
    (r"\(\?[imsU]*(-[imsU]+)?\)", Element::Flags),
    (r"\(\?[imsU]*(-[imsU]*)?.?", Element::Fault("invalid perl operator")),
    (r"\(", Element::Open),
    (r"\)", Element::Close),
];

const OPERATORS: &[(&str, Element)] = &[
    (r"\|", Element::Or),
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
    (r"\[:.*?:\]", Element::Fault("invalid character class range")),
];

/// Escapes for several characters. Of Unicode's names, short ones are categories, or the one script
/// with such a name. Longer ones are scripts and are not checked.
const SETS: &[(&str, Element)] = &[
    (r"\\[dDsSwW]", Element::Set),
    (
        r"\\[pP]([CLMNPSZ]|\{\^?(C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Yi|Z[lps]?|[A-Z][A-Za-z_]{2,})\})",
        Element::Set,
    ),
    (r"\\[pP]$", Element::FaultAtEnd("invalid UTF-8")),
    (r"\\[pP](\{[^}]*\}?|.)", Element::Fault("invalid character class range")),
];

const CHARACTERS: &[(&str, Element)] = &[
    // A single digit would refer to a group.
    (r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})", Element::Character),
    // Above the last character.
    (r"\\x\{0*((1[1-9a-fA-F]|[2-9a-fA-F][[:xdigit:]])[[:xdigit:]]{4}|10[[:xdigit:]]{5})", ESCAPE),
    (r"\\x(\{[[:xdigit:]]+\}|[[:xdigit:]]{2})", Element::Character),
    (r"\\x(\{[[:xdigit:]]*|[[:xdigit:]]?).?", ESCAPE),
    (r"\\([nrtafv]|[[:ascii:]--[:alnum:]])", Element::Character),
    (r"\\.", ESCAPE),
    (r"\\", Element::FaultAtEnd("trailing \\")),
    (r"[^\\]", Element::Character),
];

const ESCAPE: Element = Element::Fault("invalid escape sequence");

/// The number of a character, which may be escaped.
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

    /// A fault in the text since `start`.
    fn fault<T>(&self, words: &str, start: usize) -> Parsed<T> {
        Err(format!("{words}: {}", &self.text[start..self.position]))
    }

    /// Reads the next element.
    fn next_element(&mut self, grammar: &Grammar) -> Parsed<(Element, &'a str)> {
        let (start, remaining) = (self.position, self.remaining_text());
        let mut matches =
            grammar.iter().filter_map(|(regex, element)| Some((regex.find(remaining)?, *element)));
        let (text, element) = matches.next().ok_or("the text has ended")?;
        self.position += text.len();
        match element {
            Element::Fault(words) => self.fault(words, start),
            Element::FaultAtEnd(words) => Err(words.to_owned()),
            element => Ok((element, text.as_str())),
        }
    }

    /// Reads the whole text.
    fn parse(&mut self) -> Parsed {
        // The largest repetition before each open group, and in the present one.
        let (mut outer_groups, mut largest) = (Vec::<u64>::new(), 1);
        // The repetitions of the operand of the next operator; `None` at the start of a group or
        // branch.
        let mut operand = None;
        let mut repetition: Option<usize> = None;
        while !self.remaining_text().is_empty() {
            let (start, previous) = (self.position, repetition.take());
            let (element, text) = self.next_element(&OUTSIDE_GRAMMAR)?;
            match element {
                Element::Open => {
                    outer_groups.push(largest);
                    (largest, operand) = (1, None);
                }
                Element::Close => {
                    let Some(outer) = outer_groups.pop() else {
                        return Err(format!("unexpected ): {}", self.text));
                    };
                    operand = Some(largest);
                    largest = largest.max(outer);
                }
                Element::Or => operand = None,
                Element::Repeat => {
                    if let Some(first) = previous {
                        return self.fault("bad repetition operator", first);
                    }
                    let repetitions = self.total_repetitions(text, operand, start)?;
                    largest = largest.max(repetitions);
                    (operand, repetition) = (Some(repetitions), Some(start));
                }
                Element::Class => {
                    self.read_class(start)?;
                    operand = Some(1);
                }
                Element::Character | Element::Set => operand = Some(1),
                Element::Flags | Element::Fault(_) | Element::FaultAtEnd(_) => {}
            }
        }
        if outer_groups.is_empty() { Ok(()) } else { Err(format!("missing ): {}", self.text)) }
    }

    /// The repetitions of an operand after an operator.
    fn total_repetitions(&self, text: &str, operand: Option<u64>, start: usize) -> Parsed<u64> {
        let (min, max) = match text.strip_prefix('{').and_then(|rest| rest.split('}').next()) {
            None => (0, 1),
            Some(bounds) => {
                let (min, max) = bounds.split_once(',').unwrap_or((bounds, ""));
                // Without an upper bound, the lower one is the number of repetitions.
                let max = if max.is_empty() { min } else { max };
                (min.parse().unwrap_or(u64::MAX), max.parse().unwrap_or(u64::MAX))
            }
        };
        let size_fault = "invalid repetition size";
        if max < min || max > MAX_REPETITIONS {
            return self.fault(size_fault, start);
        }
        match operand.map(|inner| inner * max.max(1)) {
            None => self.fault("no argument for repetition operator", start),
            Some(times) if times > MAX_REPETITIONS => self.fault(size_fault, start),
            Some(times) => Ok(times),
        }
    }

    /// Reads a class in brackets after its bracket.
    fn read_class(&mut self, start: usize) -> Parsed {
        self.position += usize::from(self.remaining_text().starts_with('^'));
        let first = self.position;
        while self.position == first || !self.remaining_text().starts_with(']') {
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
                let (_, last) = self.next_element(&CHARACTER_GRAMMAR)?;
                if code_point(last) < code_point(text) {
                    return self.fault("invalid character class range", item_start);
                }
            }
        }
        self.position += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn re2_syntax_is_taken() {
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
            assert_eq!(refusal(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_fault_is_named() {
        for (text, words) in [
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
            assert_eq!(refusal(text), Some(format!("not valid RE2 syntax: {words}")), "{text}");
        }
    }
}
