//! Formats texts for people (escaping, counting, comparing, masking), for URLs (percent-encoding)
//! and for machines (words).
//!
//! Names, values and messages come from manifests and the service, and may be hostile. All output
//! passes [`escape`] or [`escape_lines`]. Output that may contain secrets also passes
//! [`judge`](crate::secret::judge).

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    ops::Range,
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serializer;
use unicode_width::UnicodeWidthStr as _;

/// The replacement for text that must not be shown.
pub const MASK: &str = "***";

/// Returns `text` on one line. Characters that could move the cursor, change colours, reorder text
/// or hide text become visible escapes.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_unless(text, |_| false)
}

/// Like [`escape`], but keeps line feeds and tabs.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_unless(text, |c| matches!(c, '\n' | '\t'))
}

fn escape_unless(text: &str, is_allowed: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(|c| is_unsafe(c) && !is_allowed(c)) {
        return Cow::Borrowed(text);
    }
    let mut escaped_text = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            _ if !is_unsafe(c) || is_allowed(c) => escaped_text.push(c),
            '\n' | '\r' | '\t' => escaped_text.extend(c.escape_default()),
            _ => escaped_text.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(escaped_text)
}

/// True if `c` is a control character (C0, DEL, C1), a line separator, a direction control, or has
/// no width.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// True if `text` looks like the name of a field. Any other text could be a secret whose quotes are
/// missing.
pub fn looks_like_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// The question "did you mean" with the candidate that is most similar to `name`; `None` if no
/// candidate is similar.
pub fn did_you_mean<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    nearest(name, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The candidate that `name` most likely means: the candidate with the fewest typing errors. At
/// most one error per three letters is accepted. Every word must be similar: `allowed_to_delete`
/// does not mean `allowed_to_merge`.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    const MAX_LENGTH: usize = 80;
    if name.len() > MAX_LENGTH {
        return None;
    }
    let name = snake_case(name);
    let length = name.chars().count();
    let max_errors = (length / 3).max(1);
    let candidates = candidates.into_iter().inspect(|_| crate::steps::count_step());
    let candidates = candidates.filter(|candidate| candidate.len() <= MAX_LENGTH);
    let rated_candidates = candidates.filter_map(|candidate| {
        let snake_candidate = snake_case(candidate);
        // The difference in length is a lower bound for the errors, and much faster to compute.
        if snake_candidate.chars().count().abs_diff(length) > max_errors {
            return None;
        }
        let error_count = strsim::osa_distance(&name, &snake_candidate);
        (error_count <= max_errors && has_similar_words(&name, &snake_candidate))
            .then_some((error_count, candidate))
    });
    rated_candidates.min_by_key(|(errors, _)| *errors).map(|(_, candidate)| candidate)
}

/// True if two names have a different number of words, or if each pair of words is similar.
fn has_similar_words(name: &str, other_name: &str) -> bool {
    name.split('_').count() != other_name.split('_').count()
        || name.split('_').zip(other_name.split('_')).all(
            |(name_word, other_word): (&str, &str)| {
                strsim::osa_distance(name_word, other_word)
                    <= (name_word.len().max(other_word.len()) / 2).max(1)
            },
        )
}

/// A name in lower case, with `_` between its words.
pub fn snake_case(name: &str) -> String {
    split_words(name).join("_")
}

/// The candidates that `name` may mean. The first of these results that is not empty is returned:
/// - the nearest candidate;
/// - all candidates that contain each word of `name`: for `ssl_verification`, the candidate
///   `enable_ssl_verification`;
/// - of the candidates whose words are all in `name`, the ones with the most words.
pub fn likely_candidates<'c>(name: &str, candidates: &[&'c str]) -> Vec<&'c str> {
    if let Some(nearest_candidate) = nearest(name, candidates.iter().copied()) {
        return vec![nearest_candidate];
    }
    let name_words = split_words(name);
    let candidates: Vec<_> =
        candidates.iter().map(|candidate| (split_words(candidate), *candidate)).collect();
    let mut matches = candidates.clone();
    matches.retain(|(words, _)| are_words_within(&name_words, words));
    if matches.is_empty() {
        matches = candidates;
        matches.retain(|(words, _)| are_words_within(words, &name_words));
        let max_word_count = matches.iter().map(|(words, _)| words.len()).max();
        matches.retain(|(words, _)| Some(words.len()) == max_word_count);
    }
    matches.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The only candidate that `name` may mean; `None` for several candidates or no candidate.
pub fn likely_candidate<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    if let [candidate] = likely_candidates(name, candidates)[..] { Some(candidate) } else { None }
}

/// True if each of `words` is in `other_words`, and at least one of `words` has more than two
/// characters.
fn are_words_within(words: &[String], other_words: &[String]) -> bool {
    words.iter().any(|word| word.len() > 2)
        && words
            .iter()
            .all(|word| other_words.iter().any(|other| is_word_or_abbreviation(word, other)))
}

/// The words of a name, in lower case.
fn split_words(name: &str) -> Vec<String> {
    let mut spaced_name = String::with_capacity(name.len());
    for c in name.chars().take(80) {
        let starts_word =
            c.is_ascii_uppercase() && spaced_name.ends_with(|c: char| c.is_ascii_lowercase());
        spaced_name.extend(starts_word.then_some(' '));
        spaced_name.push(if matches!(c, '_' | '-' | '.') { ' ' } else { c.to_ascii_lowercase() });
    }
    spaced_name.split_whitespace().map(str::to_owned).collect()
}

/// True if the words are equal, or the shorter word is an abbreviation of the longer word.
fn is_word_or_abbreviation(word: &str, other_word: &str) -> bool {
    let (short_word, long_word) =
        if word.len() < other_word.len() { (word, other_word) } else { (other_word, word) };
    short_word == long_word || (short_word.len() > 2 && long_word.starts_with(short_word))
}

/// `text` as one shell word, in single quotes.
pub fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `text` as an argument of a shell, quoted if necessary.
pub fn shell_argument(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-".contains(c));
    if is_plain && !text.is_empty() { text.to_owned() } else { shell_word(text) }
}

/// A count with its noun: `1 variable`, `2 entries`.
pub fn count(number: impl TryInto<usize>, noun: &str) -> String {
    let n = number.try_into().unwrap_or(usize::MAX);
    if n == 1 { format!("1 {noun}") } else { format!("{n} {}", plural(noun)) }
}

/// The plural of a noun: `variables`, `entries`, `addresses`.
pub fn plural(noun: &str) -> String {
    if let Some(prefix) = noun.strip_suffix("group or project") {
        return format!("{prefix}groups and projects");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// `noun` with its article: `a label`, `an environment`.
pub fn with_article(noun: &str) -> String {
    let starts_with_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']) && !noun.starts_with("us");
    let article = if starts_with_vowel { "an" } else { "a" };
    format!("{article} {noun}")
}

/// Words as a list in a sentence: `` `a`, `b` or `c` ``.
pub fn alternatives<S: AsRef<str>>(words: &[S]) -> String {
    let quoted_words: Vec<_> =
        words.iter().map(|word| format!("`{}`", escape(word.as_ref()))).collect();
    join_with(&quoted_words, "or")
}

/// Words as a list with "and": `a, b and c`.
pub fn join_words<S: AsRef<str>>(words: &[S]) -> String {
    join_with(words, "and")
}

fn join_with<S: AsRef<str>>(words: &[S], conjunction: &str) -> String {
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, others @ [_, ..])) => format!("{} {conjunction} {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Names as a list: `` `a`, `b` ``.
pub fn list_names(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{}`", escape(name))).collect::<Vec<_>>().join(", ")
}

/// Like [`list_names`], but lists only ten names, and the number of the other names.
pub fn list_first(names: &[&str]) -> String {
    const MAX_LISTED: usize = 10;
    match names.get(MAX_LISTED..) {
        Some(others) if !others.is_empty() => {
            format!("{} and {} more", list_names(&names[..MAX_LISTED]), others.len())
        }
        _ => list_names(names),
    }
}

/// `url` in normal form without user and password.
pub fn url_without_user(url: &str) -> String {
    let Some(mut parsed_url) = parse_url(url) else { return url.to_owned() };
    // These calls fail only for URLs that cannot have a user.
    let _ = parsed_url.set_username("");
    let _ = parsed_url.set_password(None);
    normal_url(parsed_url.as_str())
}

/// `url` in normal form (RFC 3986, 6.2.2 and 6.2.3): scheme and host in lower case, no default
/// port, no dot segments, `/` for an empty path, and no unnecessary percent-encoding. Text that is
/// not a URL is returned unchanged.
pub fn normal_url(url: &str) -> String {
    let Some(parsed_url) = parse_url(url) else { return url.to_owned() };
    let mut normal_form = String::new();
    let mut unread_text = parsed_url.as_str();
    while let Some(index) = unread_text.find('%') {
        normal_form.push_str(&unread_text[..index]);
        let hex = unread_text
            .get(index + 1..index + 3)
            .filter(|hex| hex.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(code) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
            normal_form.push('%');
            unread_text = &unread_text[index + 1..];
            continue;
        };
        let c = char::from(code);
        if c.is_ascii_alphanumeric() || "-._~".contains(c) {
            normal_form.push(c);
        } else {
            normal_form.push_str(&format!("%{code:02X}"));
        }
        unread_text = &unread_text[index + 3..];
    }
    normal_form + unread_text
}

/// Parses a URL; `None` for other text. A URL with `*` in its host is a pattern, whose normal form
/// would match other URLs.
fn parse_url(url: &str) -> Option<url::Url> {
    let parsed_url = url::Url::parse(url).ok()?;
    let is_pattern = parsed_url.host_str().is_some_and(|host| host.contains('*'));
    (!is_pattern).then_some(parsed_url)
}

/// Sorts `ranges`, and merges ranges that overlap. If `merges_touching` is true, also merges ranges
/// that touch each other.
pub fn merge_ranges(mut ranges: Vec<Range<usize>>, merges_touching: bool) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    ranges.dedup_by(|next_range, range| {
        let are_joined = next_range.start < range.end + usize::from(merges_touching);
        if are_joined {
            range.end = range.end.max(next_range.end);
        }
        are_joined
    });
    ranges
}

/// Replaces each of `ranges` (ordered, not overlapping, on character boundaries) in `text` by
/// `mark`.
pub fn replace_ranges<'t>(text: &'t str, ranges: &[Range<usize>], mark: &str) -> Cow<'t, str> {
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut marked_text, mut copied_end) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        marked_text.push_str(&text[copied_end..range.start]);
        marked_text.push_str(mark);
        copied_end = range.end;
    }
    Cow::Owned(marked_text + &text[copied_end..])
}

/// Like [`replace_ranges`], with [`MASK`].
pub fn mask_ranges<'t>(text: &'t str, ranges: &[Range<usize>]) -> Cow<'t, str> {
    replace_ranges(text, ranges, MASK)
}

/// The characters that are encoded in a path segment or query part: all except the unreserved
/// characters of RFC 3986.
const ENCODED_CHARS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// `text` as one path segment or query part: everything except the unreserved characters of RFC
/// 3986 is percent-encoded.
pub fn encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED_CHARS)
}

/// Serializes a fixed word, such as a code, as an enum variant. Reports redact strings, but never
/// variants.
///
/// # Errors
/// The errors of `serializer`.
pub fn serialize_word<S: Serializer>(
    word: &&'static str,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_unit_variant("Word", 0, word)
}

/// Like [`serialize_word`], for an optional word.
///
/// # Errors
/// The errors of `serializer`.
pub fn serialize_optional_word<S: Serializer>(
    optional_word: &Option<&'static str>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match optional_word {
        Some(some_word) => serialize_word(some_word, serializer),
        None => serializer.serialize_none(),
    }
}

/// Breaks `text` at spaces into lines of at most `max_width` columns. Words that are longer stay
/// whole.
pub fn wrap_lines(text: &str, max_width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        lines.push(String::new());
        for word in line.split(' ') {
            match lines.last_mut() {
                Some(last) if last.is_empty() => *last += word,
                Some(last) if last.width() + 1 + word.width() <= max_width => {
                    *last += &format!(" {word}");
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    lines.join("\n")
}

/// The values of the placeholders in braces in a text, by name.
pub type PlaceholderValues<'w> = &'w [(&'w str, &'w dyn fmt::Display)];

/// The [`PlaceholderValues`] of a text, as in `placeholders![noun, path = group.path]`.
#[macro_export]
macro_rules! placeholders {
    (@value $name:ident) => { $name };
    (@value $name:ident $value:expr) => { $value };
    ($($name:ident $(= $value:expr)?),*) => {
        &[$((stringify!($name), &$crate::placeholders!(@value $name $($value)?) as &dyn std::fmt::Display)),*]
    };
}

/// Replaces each placeholder `{name}` in `text` by its value.
pub fn fill(text: &str, values: PlaceholderValues<'_>) -> String {
    let mut parts = text.split('{');
    let mut filled_text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let replacement = part.split_once('}').and_then(|(name, rest)| {
            let (_, value) = values.iter().find(|(placeholder, _)| *placeholder == name)?;
            Some((value, rest))
        });
        // Writing to a `String` cannot fail.
        let _ = match replacement {
            Some((value, rest)) => write!(filled_text, "{value}{rest}"),
            None => write!(filled_text, "{{{part}"),
        };
    }
    filled_text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_recognised_by_its_words() {
        let known_names =
            ["enable_ssl_verification", "push_events", "push_rule", "variables", "url"];
        for (name, expected) in [
            ("ssl_verification", &["enable_ssl_verification"][..]),
            ("sslVerification", &["enable_ssl_verification"]),
            ("push", &["push_events", "push_rule"]),
            ("project_variables", &["variables"]),
            ("ulr", &["url"]),
            ("on", &[]),
            ("something", &[]),
        ] {
            assert_eq!(likely_candidates(name, &known_names), expected, "{name}");
        }
    }
    use proptest::prelude::*;

    #[test]
    fn nouns_have_their_plural() {
        let nouns = ["variable", "entry", "key", "push mirror", "address", "branch", "suffix"];
        let plurals =
            ["variables", "entries", "keys", "push mirrors", "addresses", "branches", "suffixes"];
        assert_eq!(nouns.map(plural), plurals);
        assert_eq!(
            (count(1, "address"), count(2, "entry")),
            ("1 address".into(), "2 entries".into())
        );
    }

    #[test]
    fn a_long_list_shows_its_first_names() {
        let names: Vec<_> = ('a'..='l').map(String::from).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(list_first(&names[..2]), "`a`, `b`");
        assert!(list_first(&names[..10]).ends_with("`i`, `j`"));
        assert!(list_first(&names).ends_with("`i`, `j` and 2 more"));
        assert_eq!(count(2, "new group or project"), "2 new groups and projects");
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(escape("plain tëxt ☃"), "plain tëxt ☃");
        assert_eq!(escape("a\u{1b}[31mb\u{9b}c\u{7f}"), "a\\u{1b}[31mb\\u{9b}c\\u{7f}");
        assert_eq!(escape("x\u{202e}y\u{200b}z\r\n\t"), "x\\u{202e}y\\u{200b}z\\r\\n\\t");
        assert_eq!(escape_lines("a\n\tb\r"), "a\n\tb\\r");
    }

    #[test]
    fn a_text_becomes_one_shell_word() {
        assert_eq!(shell_word("removals:acme/*"), "'removals:acme/*'");
        assert_eq!(["my dir", "a/b.c-d"].map(shell_argument), ["'my dir'", "a/b.c-d"]);
        assert_eq!(shell_word("a'; rm -rf b"), r"'a'\''; rm -rf b'");
    }

    #[test]
    fn the_nearest_word_has_few_errors() {
        let words = ["visibility", "merge_method", "topics", "protected"];
        for (typo, expected) in [
            ("visiblity", Some("visibility")),
            ("merge-method", Some("merge_method")),
            ("Topic", Some("topics")),
            ("protcetde", Some("protected")),
            ("name", None),
            ("", None),
        ] {
            assert_eq!(nearest(typo, words), expected, "{typo}");
        }
    }

    #[test]
    fn counts_agree_with_their_noun() {
        let counts =
            [(0, "hook"), (1, "entry"), (2, "entry"), (3, "key")].map(|(n, noun)| count(n, noun));
        assert_eq!(counts, ["0 hooks", "1 entry", "2 entries", "3 keys"]);
        assert_eq!(alternatives(&["a", "b", "c"]), "`a`, `b` or `c`");
        let nouns = ["label", "odd key", "user list", "upstream"].map(with_article);
        assert_eq!(nouns, ["a label", "an odd key", "a user list", "an upstream"]);
    }

    proptest! {
        #[test]
        fn escaped_text_is_harmless(text in r"(\PC|\p{C}){0,40}") {
            prop_assert!(!escape(&text).contains(is_unsafe));
        }
    }

    #[test]
    fn a_url_without_user_has_no_credential() {
        for (url, location) in [
            ("https://u:p@H/x.git", "https://h/x.git"),
            ("https://*****:*****@h/x.git", "https://h/x.git"),
            ("https://*****@h:443/x.git", "https://h/x.git"),
            ("ssh://git@h/x.git", "ssh://h/x.git"),
            ("https://h/%7ex", "https://h/~x"),
            ("git@h:x.git", "git@h:x.git"),
            // A pattern is not a URL.
            ("https://*", "https://*"),
            ("https://h.*/x", "https://h.*/x"),
            ("https://H/*", "https://h/*"),
            ("", ""),
        ] {
            assert_eq!(super::url_without_user(url), location, "{url}");
        }
    }

    #[test]
    fn a_url_has_one_normal_form() {
        for (url, normal_form) in [
            // Scheme and host in lower case, no default port, `/` for an empty path.
            ("HTTPS://CI.Example.org", "https://ci.example.org/"),
            ("https://h:443/x", "https://h/x"),
            ("http://h:80/x", "http://h/x"),
            ("https://h:80/x", "https://h:80/x"),
            ("https://h:/x", "https://h/x"),
            // No dot segments.
            ("https://h/a/./b/../c", "https://h/a/c"),
            ("https://h/../x", "https://h/x"),
            // No unnecessary percent-encoding. Necessary codes are in upper case.
            ("https://h/%7Ea%2d%61", "https://h/~a-a"),
            ("https://h/a%2fb%3a", "https://h/a%2Fb%3A"),
            ("https://h/a b", "https://h/a%20b"),
            ("https://h/\u{e9}", "https://h/%C3%A9"),
            ("https://h/%c3%a9", "https://h/%C3%A9"),
            // An incomplete code is kept.
            ("https://h/100%", "https://h/100%"),
            ("https://h/%zz%4", "https://h/%zz%4"),
            ("https://h/%+a", "https://h/%+a"),
            // A difference that changes the target is kept.
            ("https://h/X/", "https://h/X/"),
            ("https://h/x?", "https://h/x?"),
            ("https://h/x?b=2&a=1", "https://h/x?b=2&a=1"),
            ("https://h/x#f", "https://h/x#f"),
            ("https://u:p@h/x", "https://u:p@h/x"),
            ("https://h//x", "https://h//x"),
            // Text that is not a URL is kept.
            ("", ""),
            ("env:HOOK", "env:HOOK"),
            ("acme/shop", "acme/shop"),
            ("https://", "https://"),
        ] {
            assert_eq!(normal_url(url), normal_form, "{url}");
            assert_eq!(normal_url(normal_form), normal_form, "it is normal: {url}");
        }
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        let words = crate::placeholders![a = "{b}", b = 1];
        assert_eq!(fill("{a} and `{b}`", words), "{b} and `1`");
        assert_eq!(fill("write `{{a}: 1, c: {c}}` {", words), "write `{{b}: 1, c: {c}}` {");
    }
}
