//! Checks whether a text is a regular expression in RE2 syntax, and returns the service's refusal
//! if not.
//!
//! The grammar is read in the same order as in RE2, because a refusal names the first fault.
//! Nothing is matched here.

/// The service's refusal of a text as an expression, if any.
pub(crate) fn refusal(text: &str) -> Option<String> {
    let fault = Reader { whole: text, at: 0 }.read().err()?;
    Some(format!("not valid RE2 syntax: {fault}"))
}

/// The maximum number of repetitions, with nested ones multiplied.
const MOST_REPETITIONS: u64 = 1_000;
/// Classes in brackets: `[:alpha:]`.
const POSIX: &str = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word \
    xdigit";
/// Unicode's categories, and the one script with a name as short. Longer names are scripts and are
/// not checked.
const CATEGORIES: &str = "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So \
     Yi Z Zl Zp Zs";

type Read<T = ()> = Result<T, String>;

/// What may be repeated next: how often it repeats already; `None` at the start of a group or
/// branch.
type Operand = Option<u64>;

struct Reader<'a> {
    whole: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.whole[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Consumes `text`, if it comes next.
    fn takes(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// A fault in the text since `start`.
    fn fault<T>(&self, words: &str, start: usize) -> Read<T> {
        Err(format!("{words}: {}", &self.whole[start..self.at]))
    }

    /// Reads the whole text. It is long because all operators share the state of repetitions.
    fn read(&mut self) -> Read {
        // The largest repetition before each open group.
        let mut groups: Vec<u64> = Vec::new();
        let (mut greatest, mut operand): (u64, Operand) = (1, None);
        let mut repetition: Option<usize> = None;
        while let Some(next) = self.peek() {
            let start = self.at;
            let previous = repetition.take();
            match next {
                '(' => {
                    if self.opens()? {
                        groups.push(greatest);
                        (greatest, operand) = (1, None);
                    }
                }
                ')' => {
                    let Some(outer) = groups.pop() else {
                        return Err(format!("unexpected ): {}", self.whole));
                    };
                    self.next();
                    operand = Some(greatest);
                    greatest = greatest.max(outer);
                }
                '|' => {
                    self.next();
                    operand = None;
                }
                '*' | '+' | '?' | '{' => {
                    let Some(times) = self.repetition() else {
                        // A brace that is not a repetition is a literal.
                        self.next();
                        operand = Some(1);
                        continue;
                    };
                    self.takes("?");
                    if let Some(first) = previous {
                        return self.fault("bad repetition operator", first);
                    }
                    let (least, most) = times.unwrap_or((0, 1));
                    let size = "invalid repetition size";
                    if most < least || most > MOST_REPETITIONS {
                        return self.fault(size, start);
                    }
                    let Some(inner) = operand else {
                        return self.fault("no argument for repetition operator", start);
                    };
                    let product = inner * most.max(1);
                    if product > MOST_REPETITIONS {
                        return self.fault(size, start);
                    }
                    greatest = greatest.max(product);
                    operand = Some(product);
                    repetition = Some(start);
                }
                _ => {
                    match next {
                        '[' => self.class()?,
                        '\\' => self.escaped()?,
                        _ => drop(self.next()),
                    }
                    operand = Some(1);
                }
            }
        }
        match groups.is_empty() {
            true => Ok(()),
            false => Err(format!("missing ): {}", self.whole)),
        }
    }

    /// Reads a repetition, with its bounds if it has some. `None` if the text is not one.
    fn repetition(&mut self) -> Option<Option<(u64, u64)>> {
        if self.peek() != Some('{') {
            self.next();
            return Some(None);
        }
        let (inside, after) = self.rest()[1..].split_once('}')?;
        let number = |text: &str| {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit());
            let leading = text.len() > 1 && text.starts_with('0');
            (plain && !text.is_empty() && !leading).then(|| text.parse().unwrap_or(u64::MAX))
        };
        let bounds = match inside.split_once(',') {
            None => number(inside).map(|times| (times, times)),
            // Without an upper bound, only the lower one counts.
            Some((least, "")) => number(least).map(|least| (least, least)),
            Some((least, most)) => number(least).zip(number(most)),
        }?;
        self.at = self.whole.len() - after.len();
        Some(Some(bounds))
    }

    /// Reads the start of a group, with its name or flags. False if it only sets flags.
    fn opens(&mut self) -> Read<bool> {
        let start = self.at;
        self.next();
        if !self.takes("?") {
            return Ok(true);
        }
        if self.takes("P<") || self.takes("<") {
            let named = self.rest().split_once('>');
            let bad = "invalid named capture group";
            let Some((name, after)) = named else {
                self.at = self.whole.len();
                return self.fault(bad, start);
            };
            self.at = self.whole.len() - after.len();
            let valid = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
            return if valid { Ok(true) } else { self.fault(bad, start) };
        }
        let (mut negated, mut flags) = (false, false);
        let opens = loop {
            match self.next() {
                Some('i' | 'm' | 's' | 'U') => flags = true,
                Some('-') if !negated => (negated, flags) = (true, false),
                Some(end @ (':' | ')')) if flags || !negated => break end == ':',
                _ => return self.fault("invalid perl operator", start),
            }
        };
        Ok(opens)
    }

    /// Reads an escape outside a class.
    fn escaped(&mut self) -> Read {
        if self.takes("\\Q") {
            let length = self.rest().find("\\E").map_or(self.rest().len(), |end| end + 2);
            self.at += length;
            return Ok(());
        }
        if ["\\b", "\\B", "\\A", "\\z", "\\C"].iter().any(|escape| self.takes(escape)) {
            return Ok(());
        }
        if self.group()? { Ok(()) } else { self.character().map(drop) }
    }

    /// Reads an escape that is a class of characters, if one comes next.
    fn group(&mut self) -> Read<bool> {
        let start = self.at;
        if ["\\d", "\\D", "\\s", "\\S", "\\w", "\\W"].iter().any(|escape| self.takes(escape)) {
            return Ok(true);
        }
        if !(self.takes("\\p") || self.takes("\\P")) {
            return Ok(false);
        }
        let name = if self.takes("{") {
            let Some((name, after)) = self.rest().split_once('}') else {
                self.at = self.whole.len();
                return self.fault("invalid character class range", start);
            };
            self.at = self.whole.len() - after.len();
            name
        } else {
            let letter = self.rest();
            self.next().ok_or("invalid UTF-8")?;
            &letter[..letter.len() - self.rest().len()]
        };
        let name = name.strip_prefix('^').unwrap_or(name);
        let long = name.len() > 2
            && name.starts_with(|first: char| first.is_ascii_uppercase())
            && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphabetic());
        match long || CATEGORIES.split(' ').any(|category| category == name) {
            true => Ok(true),
            false => self.fault("invalid character class range", start),
        }
    }

    /// Reads a class in brackets.
    fn class(&mut self) -> Read {
        let whole = self.rest();
        let missing = || format!("missing ]: {whole}");
        self.next();
        self.takes("^");
        let mut first = true;
        loop {
            let start = self.at;
            match self.peek().ok_or_else(missing)? {
                ']' if !first => break,
                '[' if self.posix()? => {}
                '\\' if self.group()? => {}
                _ => {
                    let least = self.character()?;
                    let range = self.rest().starts_with('-')
                        && !self.rest().starts_with("-]")
                        && self.rest().len() > 1;
                    if range {
                        self.next();
                        self.peek().ok_or_else(missing)?;
                        if self.character()? < least {
                            return self.fault("invalid character class range", start);
                        }
                    }
                }
            }
            first = false;
        }
        self.next();
        Ok(())
    }

    /// Reads a named class inside brackets, if one comes next.
    fn posix(&mut self) -> Read<bool> {
        let start = self.at;
        let Some((name, after)) =
            self.rest().strip_prefix("[:").and_then(|rest| rest.split_once(":]"))
        else {
            return Ok(false);
        };
        self.at = self.whole.len() - after.len();
        let name = name.strip_prefix('^').unwrap_or(name);
        match POSIX.split(' ').any(|class| class == name) {
            true => Ok(true),
            false => self.fault("invalid character class range", start),
        }
    }

    /// Reads one character, which may be escaped.
    fn character(&mut self) -> Read<u32> {
        let start = self.at;
        let first = self.next().map_or(0, u32::from);
        if first != u32::from('\\') {
            return Ok(first);
        }
        let Some(next) = self.next() else { return Err("trailing \\".to_owned()) };
        let value = match next {
            // A single digit would refer to a group.
            '1'..='7' if !self.peek().is_some_and(|digit| digit.is_digit(8)) => None,
            '0'..='7' => {
                let mut value = next.to_digit(8).unwrap_or_default();
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|digit| digit.to_digit(8)) else {
                        break;
                    };
                    value = value * 8 + digit;
                    self.next();
                }
                Some(value)
            }
            'x' => self.hexadecimal(),
            'n' => Some(10),
            'r' => Some(13),
            't' => Some(9),
            'a' => Some(7),
            'f' => Some(12),
            'v' => Some(11),
            other => (other.is_ascii() && !other.is_ascii_alphanumeric()).then_some(other.into()),
        };
        match value {
            Some(value) => Ok(value),
            None => self.fault("invalid escape sequence", start),
        }
    }

    /// The value of `41` or `{41}` after `\x`.
    fn hexadecimal(&mut self) -> Option<u32> {
        let braces = self.takes("{");
        let (mut value, mut digits) = (0, 0);
        loop {
            match self.next()? {
                '}' if braces && digits > 0 => return Some(value),
                next => value = value * 16 + next.to_digit(16)?,
            }
            digits += 1;
            if value > u32::from(char::MAX) {
                return None;
            }
            if !braces && digits == 2 {
                return Some(value);
            }
        }
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
