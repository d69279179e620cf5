//! Checks whether a text is a regular expression in RE2 syntax, and returns the service's refusal
//! if not.
//!
//! The grammar is a list of what may come next, in the order in which RE2 reads, because a refusal
//! names the first fault. Nothing is matched here.

use std::sync::LazyLock;

use regex::Regex;

/// The service's refusal of a text as an expression, if any.
pub(crate) fn refusal(text: &str) -> Option<String> {
    let fault = Reader { whole: text, at: 0 }.read().err()?;
    Some(format!("not valid RE2 syntax: {fault}"))
}

/// The maximum number of repetitions, with nested ones multiplied.
const MOST_REPETITIONS: u64 = 1_000;

type Read<T = ()> = Result<T, String>;

/// A part of an expression.
#[derive(Clone, Copy)]
enum Token {
    Open,
    Close,
    Or,
    Repeat,
    /// The start of a class in brackets.
    Class,
    /// A character.
    Item,
    /// Several characters.
    Set,
    /// Flags alone.
    Flags,
    Fault(&'static str),
    /// A fault at the end of the text, which is not quoted.
    Cut(&'static str),
}

/// Patterns with what they are. The first one that matches counts.
type Rules = LazyLock<Vec<(Regex, Token)>>;

fn rules(rules: &[&[(&str, Token)]]) -> Vec<(Regex, Token)> {
    let compiled = |(pattern, token): &(&str, Token)| {
        let pattern = Regex::new(&format!("^(?s:{pattern})"));
        (pattern.expect("each test of expressions compiles them"), *token)
    };
    rules.iter().copied().flatten().map(compiled).collect()
}

static OUTSIDE: Rules = LazyLock::new(|| rules(&[GROUPS, OPERATORS, SETS, CHARACTERS]));
static IN_BRACKETS: Rules = LazyLock::new(|| rules(&[POSIX, SETS, CHARACTERS]));
static CHARACTER: Rules = LazyLock::new(|| rules(&[CHARACTERS]));

const GROUPS: &[(&str, Token)] = &[
    (r"\(\?P?<[_\p{Alphabetic}\p{N}]+>", Token::Open),
    (r"\(\?P?<[^>]*>?", Token::Fault("invalid named capture group")),
    (r"\(\?[imsU]*(-[imsU]+)?:", Token::Open),
    (r"\(\?[imsU]*(-[imsU]+)?\)", Token::Flags),
    (r"\(\?[imsU]*(-[imsU]*)?.?", Token::Fault("invalid perl operator")),
    (r"\(", Token::Open),
    (r"\)", Token::Close),
];

const OPERATORS: &[(&str, Token)] = &[
    (r"\|", Token::Or),
    // A brace that is not a repetition is a literal.
    (r"([*+?]|\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\})\??", Token::Repeat),
    (r"\[", Token::Class),
    (r"\\Q(.*?\\E|.*)", Token::Item),
    (r"\\[bBAzC]", Token::Item),
];

/// Classes in brackets: `[:alpha:]`.
const POSIX: &[(&str, Token)] = &[
    (
        r"\[:\^?(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]",
        Token::Set,
    ),
    (r"\[:.*?:\]", Token::Fault("invalid character class range")),
];

/// Escapes for several characters. Of Unicode's names, short ones are categories, or the one script
/// with such a name. Longer ones are scripts and are not checked.
const SETS: &[(&str, Token)] = &[
    (r"\\[dDsSwW]", Token::Set),
    (
        r"\\[pP]([CLMNPSZ]|\{\^?(C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Yi|Z[lps]?|[A-Z][A-Za-z_]{2,})\})",
        Token::Set,
    ),
    (r"\\[pP]$", Token::Cut("invalid UTF-8")),
    (r"\\[pP](\{[^}]*\}?|.)", Token::Fault("invalid character class range")),
];

const CHARACTERS: &[(&str, Token)] = &[
    // A single digit would refer to a group.
    (r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})", Token::Item),
    // Above the last character.
    (r"\\x\{0*((1[1-9a-fA-F]|[2-9a-fA-F][[:xdigit:]])[[:xdigit:]]{4}|10[[:xdigit:]]{5})", ESCAPE),
    (r"\\x(\{[[:xdigit:]]+\}|[[:xdigit:]]{2})", Token::Item),
    (r"\\x(\{[[:xdigit:]]*|[[:xdigit:]]?).?", ESCAPE),
    (r"\\([nrtafv]|[[:ascii:]--[:alnum:]])", Token::Item),
    (r"\\.", ESCAPE),
    (r"\\", Token::Cut("trailing \\")),
    (r"[^\\]", Token::Item),
];

const ESCAPE: Token = Token::Fault("invalid escape sequence");

/// The number of a character, which may be escaped.
fn number_of(text: &str) -> u32 {
    let escape = text.strip_prefix('\\').unwrap_or_default();
    let octal = || u32::from_str_radix(escape, 8);
    let hexadecimal = |rest: &str| u32::from_str_radix(rest.trim_matches(['{', '}']), 16);
    let number = escape.strip_prefix('x').map_or_else(octal, hexadecimal);
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

struct Reader<'a> {
    whole: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.whole[self.at..]
    }

    /// A fault in the text since `start`.
    fn fault<T>(&self, words: &str, start: usize) -> Read<T> {
        Err(format!("{words}: {}", &self.whole[start..self.at]))
    }

    /// Reads what comes next.
    fn next(&mut self, rules: &Rules) -> Read<(Token, &'a str)> {
        let (start, rest) = (self.at, self.rest());
        let mut found = rules.iter().filter_map(|(of, token)| Some((of.find(rest)?, *token)));
        let (text, token) = found.next().ok_or("the text has ended")?;
        self.at += text.len();
        match token {
            Token::Fault(words) => self.fault(words, start),
            Token::Cut(words) => Err(words.to_owned()),
            token => Ok((token, text.as_str())),
        }
    }

    /// Reads the whole text.
    fn read(&mut self) -> Read {
        // The largest repetition before each open group.
        let mut groups: Vec<u64> = Vec::new();
        // How often that repeats already which may be repeated next; `None` at the start of a group
        // or branch.
        let (mut greatest, mut operand) = (1, None);
        let mut repetition: Option<usize> = None;
        while !self.rest().is_empty() {
            let (start, previous) = (self.at, repetition.take());
            let (token, text) = self.next(&OUTSIDE)?;
            match token {
                Token::Open => {
                    groups.push(greatest);
                    (greatest, operand) = (1, None);
                }
                Token::Close => {
                    let unexpected = || format!("unexpected ): {}", self.whole);
                    let outer = groups.pop().ok_or_else(unexpected)?;
                    operand = Some(greatest);
                    greatest = greatest.max(outer);
                }
                Token::Or => operand = None,
                Token::Repeat => {
                    if let Some(first) = previous {
                        return self.fault("bad repetition operator", first);
                    }
                    let times = self.repeated(text, operand, start)?;
                    greatest = greatest.max(times);
                    (operand, repetition) = (Some(times), Some(start));
                }
                Token::Class => {
                    self.class(start)?;
                    operand = Some(1);
                }
                Token::Item | Token::Set => operand = Some(1),
                Token::Flags | Token::Fault(_) | Token::Cut(_) => {}
            }
        }
        if groups.is_empty() { Ok(()) } else { Err(format!("missing ): {}", self.whole)) }
    }

    /// How often something repeats after a repetition.
    fn repeated(&self, text: &str, operand: Option<u64>, start: usize) -> Read<u64> {
        let number = |text: &str| text.parse().unwrap_or(u64::MAX);
        let inside = text.strip_prefix('{').and_then(|rest| rest.split('}').next());
        let (least, most) =
            match inside.map(|inside| inside.split_once(',').unwrap_or((inside, ""))) {
                None => (0, 1),
                // Without an upper bound, only the lower one counts.
                Some((least, "")) => (number(least), number(least)),
                Some((least, most)) => (number(least), number(most)),
            };
        let size = "invalid repetition size";
        if most < least || most > MOST_REPETITIONS {
            return self.fault(size, start);
        }
        match operand.map(|inner| inner * most.max(1)) {
            None => self.fault("no argument for repetition operator", start),
            Some(times) if times > MOST_REPETITIONS => self.fault(size, start),
            Some(times) => Ok(times),
        }
    }

    /// Reads a class in brackets after its bracket.
    fn class(&mut self, start: usize) -> Read {
        let missing = || format!("missing ]: {}", &self.whole[start..]);
        self.at += usize::from(self.rest().starts_with('^'));
        let first = self.at;
        while self.at == first || !self.rest().starts_with(']') {
            if self.rest().is_empty() {
                return Err(missing());
            }
            let start = self.at;
            let (token, text) = self.next(&IN_BRACKETS)?;
            let rest = self.rest();
            let is_item = matches!(token, Token::Item);
            if is_item && rest.starts_with('-') && !rest.starts_with("-]") && rest.len() > 1 {
                self.at += 1;
                let (_, last) = self.next(&CHARACTER)?;
                if number_of(last) < number_of(text) {
                    return self.fault("invalid character class range", start);
                }
            }
        }
        self.at += 1;
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
