//! Decides whether a value may be a secret: by its name, by its form, and by the secrecy of its
//! field.
//!
//! All output is checked here: reports, snapshots, manifests, quotations and names of entries. In
//! doubt, a value is treated as a secret, because a secret in Git is compromised. The secrecy of
//! the field determines how much doubt is enough. A text of an open field is hidden only if it has
//! the form of a credential. In an address, each part that may be a credential is hidden.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, MatchKind};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use crate::{
    field::Secrecy,
    text::{mask_ranges, merge_ranges},
    value::{self, Json},
};

/// Patterns of secrets, from `signs.yaml`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'static"), deny_unknown_fields)]
struct SecretPatterns {
    words: Vec<&'static str>,
    ends: Vec<&'static str>,
    tokens: Vec<&'static str>,
    like_tokens: Vec<&'static str>,
    beginnings: Vec<&'static str>,
    addresses: Vec<&'static str>,
}

static PATTERNS: LazyLock<SecretPatterns> = LazyLock::new(|| {
    let patterns_json = include_str!(concat!(env!("OUT_DIR"), "/tables/secret/signs.json"));
    serde_json::from_str(patterns_json).expect("the build writes JSON of this form")
});

/// The minimum length of a token in bytes, and the minimum length of its part after the known
/// beginning.
const MIN_TOKEN_AND_TAIL_LENGTHS: [usize; 2] = [16, 10];
/// The minimum length of a value whose name is typical of a secret, and of the secret part of an
/// address.
const MIN_NAMED_LENGTH: usize = 8;
/// The minimum length of a run of letters and digits that may be a secret.
const MIN_RUN_LENGTH: usize = 20;
/// The minimum length of a run of hexadecimal digits only.
const MIN_HEX_LENGTH: usize = 32;
/// The minimum entropy of a secret in bits per character.
const MIN_ENTROPY_BITS: f64 = 3.5;
/// An automaton for the markers before or at the start of a possible secret (`://`, `=`, a key, or
/// a token), and the index of the first marker whose token must also be random.
static MARKERS: LazyLock<(AhoCorasick, usize)> = LazyLock::new(|| {
    let markers =
        [&["://", "=", PRIVATE_KEY_MARK], &*PATTERNS.tokens, &*PATTERNS.like_tokens].concat();
    let first_lookalike = markers.len() - PATTERNS.like_tokens.len();
    // One beginning can be a prefix of another beginning.
    let automaton = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(markers);
    (automaton.expect("a few short patterns"), first_lookalike)
});

/// The text in the first line of every private key.
const PRIVATE_KEY_MARK: &str = "PRIVATE KEY";

/// The kinds of possible secrets, the most certain first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Credential {
    /// A text with the form of a known token.
    Token,
    /// A private key.
    PrivateKey,
    /// A password in a URL.
    Password,
    /// A value whose name is typical of a secret.
    Parameter,
    /// A URL that lets everyone who knows it write.
    Address,
    /// A part that may be a secret. It is ignored in open fields.
    Possible,
}

impl Credential {
    /// The object of a sentence such as "`description` has a token".
    pub const fn noun_phrase(self) -> &'static str {
        match self {
            Self::Token => "a token",
            Self::PrivateKey => "a private key",
            Self::Password => "a password",
            Self::Parameter => "a secret parameter",
            Self::Address => "an address that is a secret",
            Self::Possible => "a possible secret",
        }
    }
}

/// True if `name` is a typical name of a secret: it contains or ends with one of the words.
pub fn is_named_like_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        PATTERNS.words.contains(&word) || PATTERNS.ends.iter().any(|end| word.ends_with(end))
    })
}

/// The byte ranges of the parts of `text` that may be secret, ordered and merged. `text` is a value
/// of a field with this `secrecy`. A sensitive value is never shown. Its secret parts only decide
/// if a file may contain the value.
pub fn find_secrets(text: &str, secrecy: Secrecy) -> Vec<Range<usize>> {
    merge_ranges(
        find_candidates(text, secrecy).into_iter().map(|(_, range)| range).collect(),
        false,
    )
}

/// Masks the parts of `text` that [`find_secrets`] returns.
pub fn mask_text(text: &str, secrecy: Secrecy) -> Cow<'_, str> {
    mask_ranges(text, &find_secrets(text, secrecy))
}

/// Masks the possible credentials in `url`.
pub fn mask_url(url: &str) -> Cow<'_, str> {
    mask_text(url, Secrecy::Address)
}

/// Masks the parts of an entry's name that may be secret.
pub fn mask_name(name: &str) -> String {
    mask_text(name, Secrecy::Open).into_owned()
}

/// True if `text` has a part that may be secret.
pub fn may_be_secret(text: &str, secrecy: Secrecy) -> bool {
    mask_text(text, secrecy) != text
}

/// True if a text in `value`, or in a list or mapping in it, has a part that may be secret.
pub fn contains_secret(value: &Json, secrecy: Secrecy) -> bool {
    value::texts(value).any(|text| may_be_secret(text, secrecy))
}

/// A live value of a field with this `secrecy`, with secret parts masked; `None` if it must be
/// hidden.
pub fn mask_live_value(value: &Json, secrecy: Secrecy) -> Option<Json> {
    match (value, secrecy) {
        (_, Secrecy::Sensitive | Secrecy::Reference) => None,
        (Json::String(url), Secrecy::Address) => Some(mask_url(url).into()),
        (Json::Array(items), Secrecy::Address) => {
            items.iter().map(|item| mask_live_value(item, secrecy)).collect()
        }
        _ => (!contains_secret(value, Secrecy::Open)).then(|| value.clone()),
    }
}

/// The most certain credential in `text`.
pub fn find_credential(text: &str) -> Option<Credential> {
    find_candidates(text, Secrecy::Open).into_iter().map(|(credential, _)| credential).min()
}

/// True if `text` has a run that is too irregular to be written by a person. Digests and UUIDs are
/// ignored.
pub fn has_random_run(text: &str) -> bool {
    text.split(|c| !is_token_char(c)).any(|run| is_random(run, false))
}

/// Possible secrets: the kind and the byte range of each.
type Candidates = Vec<(Credential, Range<usize>)>;

/// Like [`find_secrets`], with the kind of each secret, unordered and not merged.
fn find_candidates(text: &str, secrecy: Secrecy) -> Candidates {
    let mut candidates = Vec::new();
    let (markers, first_lookalike) = &*MARKERS;
    for marker in markers.find_iter(text) {
        let (start, end) = (marker.start(), marker.end());
        let (kind, range) = match marker.pattern().as_usize() {
            0 => {
                // One URL can be inside another URL.
                add_url_secrets(text, end, &mut candidates);
                continue;
            }
            1 => (Credential::Parameter, secret_parameter_range(text, start)),
            2 => (Credential::PrivateKey, private_key_range(text, start)),
            index => {
                let must_be_random = index >= *first_lookalike;
                (Credential::Token, token_range(text, marker.range(), must_be_random))
            }
        };
        candidates.extend(range.map(|range| (kind, range)));
    }
    // The paths of requests contain percent-encoded texts.
    let encoded_text = if text.contains('%') { text } else { "" };
    let encoded_parts = encoded_text.split(|c: char| c.is_whitespace() || "/?&=\"'`<>".contains(c));
    for encoded_part in encoded_parts.filter(|part| part.contains('%')) {
        let decoded_part = percent_decode_str(encoded_part).decode_utf8_lossy();
        let credential = Some(&decoded_part)
            .filter(|decoded| *decoded != encoded_part)
            .and_then(|text| find_credential(text));
        candidates.extend(credential.map(|kind| (kind, subslice_range(text, encoded_part))));
    }
    match secrecy {
        Secrecy::Open => candidates.retain(|(kind, _)| *kind != Credential::Possible),
        Secrecy::Address => {}
        Secrecy::Sensitive | Secrecy::Reference => {
            let words = text.split(|c: char| !is_token_char(c));
            let doubtful_words = words.filter(|word| {
                let mut beginnings = PATTERNS.beginnings.iter();
                is_random(word, true)
                    || beginnings.any(|beginning| {
                        word.split('/').any(|part| has_long_tail(part, beginning, MIN_NAMED_LENGTH))
                    })
            });
            candidates.extend(
                doubtful_words.map(|word| (Credential::Possible, subslice_range(text, word))),
            );
            candidates.extend(
                text.find(PRIVATE_KEY_MARK)
                    .map(|mark_start| (Credential::Possible, mark_start..text.len())),
            );
        }
    }
    candidates
}

/// The range of the subslice `slice` in `text`.
fn subslice_range(text: &str, slice: &str) -> Range<usize> {
    let start = slice.as_ptr().addr() - text.as_ptr().addr();
    start..start + slice.len()
}

/// True if `word` starts with `beginning` and has at least `min_tail` more bytes.
fn has_long_tail(word: &str, beginning: &str, min_tail: usize) -> bool {
    word.strip_prefix(beginning).is_some_and(|tail| tail.len() >= min_tail)
}

/// The range of the token with a known beginning at `prefix`; `None` if it is no token.
fn token_range(text: &str, prefix: Range<usize>, must_be_random: bool) -> Option<Range<usize>> {
    let Range { start, end: prefix_end } = prefix;
    let text_before = &text[..start];
    let is_encoded = text_before.len() >= 3 && text_before.as_bytes()[start - 3] == b'%';
    if !is_encoded && text_before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let is_token_part = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let mut runs = text[prefix_end..].split(|c: char| !is_token_part(c) && c != '.');
    // A dot is only part of a token between two other parts.
    let mut runs = runs.next().unwrap_or_default().split("..");
    let tail = runs.next().unwrap_or_default().trim_end_matches('.');
    let token_end = prefix_end + tail.len();
    let [min_length, min_tail] = MIN_TOKEN_AND_TAIL_LENGTHS;
    let is_long = token_end - start >= min_length && tail.len() >= min_tail;
    (is_long && (!must_be_random || is_random(tail, false))).then_some(start..token_end)
}

/// The range of the private key whose first line has [`PRIVATE_KEY_MARK`] at `mark_start`.
fn private_key_range(text: &str, mark_start: usize) -> Option<Range<usize>> {
    let text_after_mark = text[mark_start + PRIVATE_KEY_MARK.len()..].trim_start_matches(" BLOCK");
    let start =
        text[..mark_start].rfind("-----").filter(|_| text_after_mark.starts_with("-----"))?;
    if !text[start..].starts_with("-----BEGIN") {
        return None;
    }
    let end = text[mark_start..].find("-----END").map(|end| mark_start + end);
    let key_end = end.and_then(|end| Some(end + text[end + 8..].find("-----")? + 13));
    Some(start..key_end.unwrap_or(text.len()))
}

/// The range of the value after the `=` at `equals_index`, if the value may be a secret.
fn secret_parameter_range(text: &str, equals_index: usize) -> Option<Range<usize>> {
    let is_name_delimiter = |c: char| !c.is_ascii_alphanumeric() && !"_-.%[]".contains(c);
    let name = text[..equals_index].rsplit(is_name_delimiter).next().unwrap_or_default();
    let is_delimiter = |c: char| c.is_whitespace() || "&;#\"'`<>()|,".contains(c);
    let value = text[equals_index + 1..].split(is_delimiter).next().unwrap_or_default();
    is_secret_parameter(&percent_decode_str(name).decode_utf8_lossy(), value)
        .then(|| equals_index + 1..equals_index + 1 + value.len())
}

/// True if `value` may be a secret because of its name.
fn is_secret_parameter(name: &str, value: &str) -> bool {
    value.chars().take_while(|c: &char| is_token_char(*c) || ".~%@!:".contains(*c)).count()
        >= MIN_NAMED_LENGTH
        && is_named_like_secret(name)
        && !is_secret_placeholder(value)
}

/// True if `text` only marks the place of a value that a person has to write: `<token>`,
/// `CHANGEME` or `xxx`.
pub fn is_filler(text: &str) -> bool {
    let compact_text = text.to_lowercase().replace(['-', '_', ' '], "");
    let bracketed = text.strip_prefix('<').and_then(|inner| inner.strip_suffix('>'));
    text.len() > 2 && repeats_mark(text)
        || bracketed.is_some_and(|inner| !inner.is_empty() && !inner.contains(['<', '>', '/', '=']))
        || ["changeme", "replaceme"].iter().any(|word| compact_text.starts_with(word))
        || compact_text.starts_with("your") && compact_text.ends_with("here")
        || ["fixme", "placeholder", "tbd", "todo"].contains(&&*compact_text)
}

/// True if `text` consists of one sign, as in `***` or `xxx`.
fn repeats_mark(text: &str) -> bool {
    text.starts_with(|first| "*.xX".contains(first) && text.chars().all(|c| c == first))
}

/// True if `text` is a placeholder for a secret.
fn is_secret_placeholder(text: &str) -> bool {
    ["@env:", "@file:", "{env:", "{file:"].iter().any(|prefix| text.starts_with(prefix))
        || text.strip_prefix('$').is_some_and(|name| {
            let mut chars = name.chars();
            chars.all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || "_{}".contains(c))
        })
        || (text.starts_with(['{', '<', '[']) || text.starts_with("%{"))
            && text.ends_with(['}', '>', ']'])
            && !text.contains(':')
        || repeats_mark(text)
}

/// Adds the possible secrets in the URL whose authority begins at `start`.
fn add_url_secrets(text: &str, start: usize, candidates: &mut Candidates) {
    // The first of `signs` in the range, or the end of the range.
    let find_sign = |range: Range<usize>, signs: &[char]| {
        text[range.clone()].find(signs).map_or(range.end, |length| range.start + length)
    };
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`');
    let end = text[start..].find(is_end).map_or(text.len(), |length| start + length);
    let path_start = find_sign(start..end, &['/', '?', '#']);
    let authority = &text[start..path_start];
    let mut host_start = start;
    if let Some(length) = authority.rfind('@') {
        candidates.push((classify_user_info(text, start, length), start..start + length));
        host_start = start + length + 1;
    } else if !has_empty_or_numeric_port(authority) || authority.ends_with(':') {
        // The text in the place of the port may be a password that contains a `/`, `?` or `#`. The
        // `@` after the password may also be missing.
        let length = text[start..end].rfind('@');
        let credential =
            length.map_or(Credential::Possible, |length| classify_user_info(text, start, length));
        candidates.push((credential, start..length.map_or(path_start, |length| start + length)));
        host_start = length.map_or(start, |length| start + length + 1);
    }
    let fragment_start = find_sign(path_start..end, &['#']);
    let query_start = find_sign(path_start..fragment_start, &['?']);
    if host_start <= query_start {
        add_path_secrets(text, host_start..query_start, candidates);
    }
    for parameter in text[query_start..fragment_start].trim_start_matches('?').split(['&', ';']) {
        let value = parameter.split_once('=').map_or(parameter, |(_, value)| value);
        if !value.is_empty() {
            let credential =
                if has_random_run(value) { Credential::Parameter } else { Credential::Possible };
            candidates.push((credential, subslice_range(text, value)));
        }
    }
    if fragment_start + 1 < end {
        candidates.push((Credential::Possible, fragment_start + 1..end));
    }
}

/// The kind of the user information in a URL. It has `length` bytes from `start`.
fn classify_user_info(text: &str, start: usize, length: usize) -> Credential {
    let user_info = &text[start..start + length];
    let is_ssh = text[..start].ends_with("ssh://");
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    match password {
        "" if !is_ssh
            && user.len() >= MIN_TOKEN_AND_TAIL_LENGTHS[0]
            && user.contains(char::is_numeric) =>
        {
            Credential::Token
        }
        "" => Credential::Possible,
        _ if is_secret_placeholder(password) => Credential::Possible,
        _ => Credential::Password,
    }
}

/// Adds the secret parts in the host and path of a URL. If the URL has the known beginning of an
/// address that allows writing, the part after this beginning is secret. Otherwise random parts
/// after a word such as `hook` are secret, and other random parts are possible secrets.
fn add_path_secrets(text: &str, url: Range<usize>, candidates: &mut Candidates) {
    let Range { start: host_start, end: query_start } = url;
    let lower_url = text[host_start..query_start].to_ascii_lowercase();
    let host_name = lower_url.split('/').next().unwrap_or_default();
    // A known address may begin at any label of the host.
    let mut labels = std::iter::once(0).chain(host_name.match_indices('.').map(|(dot, _)| dot + 1));
    if let Some(secret_start) = labels.find_map(|label_start| {
        let address = PATTERNS
            .addresses
            .iter()
            .find(|address| lower_url[label_start..].starts_with(**address))?;
        Some(host_start + label_start + address.len())
    }) {
        let is_too_short = query_start - secret_start < MIN_NAMED_LENGTH;
        let credential = if is_too_short { Credential::Possible } else { Credential::Address };
        candidates.extend(
            (secret_start < query_start).then_some((credential, secret_start..query_start)),
        );
        return;
    }
    let mut is_after_hook = false;
    for run in text[host_start..query_start].split(|c: char| !is_token_char(c) || c == '/') {
        if is_random(run, is_after_hook) {
            let credential = if is_after_hook { Credential::Address } else { Credential::Possible };
            candidates.push((credential, subslice_range(text, run)));
        }
        is_after_hook |= run.to_ascii_lowercase().contains("hook");
    }
}

/// True if the part of `authority` after the host is empty or a port.
fn has_empty_or_numeric_port(authority: &str) -> bool {
    let bracket_index = authority.rfind(']').unwrap_or_default();
    let port = authority[bracket_index..].split_once(':').map_or("", |(_, port)| port);
    port.chars().all(|c| c.is_ascii_digit())
}

/// The ranges of possible credentials in a text that should be a URL; `None` if the whole text may
/// be a credential.
pub fn find_address_secrets(text: &str) -> Option<Vec<Range<usize>>> {
    const SCHEMES: [&str; 5] = ["ftp", "git", "http", "https", "ssh"];
    if text.contains(|c: char| !c.is_ascii_alphanumeric() && !"-._~:/?#[]@!$&'()*+,;=%".contains(c))
    {
        return None;
    }
    if let Some((scheme, _)) = text.split_once("://")
        && SCHEMES.iter().any(|known_scheme| known_scheme.eq_ignore_ascii_case(scheme))
    {
        return Some(find_secrets(text, Secrecy::Address));
    }
    // Without a scheme, the start of the host is unknown: everything before an `@` may be a
    // password, including slashes.
    let user_end = text.rfind('@').unwrap_or_default();
    let path_end =
        text[user_end..].find(['?', '#']).map_or(text.len(), |length| user_end + length + 1);
    let ranges = [0..user_end, path_end.min(text.len())..text.len()];
    let visible_part = &text[user_end..path_end.min(text.len())];
    visible_part
        .contains(['.', '/'])
        .then(|| ranges.into_iter().filter(|range| !range.is_empty()).collect())
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=_-".contains(c)
}

/// True if a run of token characters is random. Digests and UUIDs are random only if `counts_hex`.
fn is_random(run: &str, counts_hex: bool) -> bool {
    if run.len() < MIN_RUN_LENGTH {
        return false;
    }
    let dashless_run: String = run.chars().filter(|c| *c != '-').collect();
    let has_digit = run.contains(|c: char| c.is_ascii_digit());
    let is_hex =
        dashless_run.len() >= MIN_HEX_LENGTH && dashless_run.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex {
        return counts_hex && has_digit;
    }
    // Words joined by separators, as in paths, are not a run.
    let longest_word = run.split(['/', '-', '_']).max_by_key(|part| part.len()).unwrap_or_default();
    let char_classes = [char::is_ascii_lowercase, char::is_ascii_uppercase, char::is_ascii_digit];
    let class_count = char_classes
        .into_iter()
        .filter(|is_in_class| longest_word.chars().any(|c| is_in_class(&c)))
        .count();
    longest_word.len() >= MIN_RUN_LENGTH
        && class_count >= 2
        && has_digit
        && entropy(longest_word) >= MIN_ENTROPY_BITS
}

/// The entropy of `text` in bits per character, from the frequency of its characters.
fn entropy(text: &str) -> f64 {
    let mut counts = [0_u32; 128];
    text.bytes().filter(u8::is_ascii).for_each(|byte| counts[usize::from(byte)] += 1);
    let length = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let frequencies =
        counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / length);
    frequencies.map(|frequency| -frequency * frequency.log2()).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_filler_marks_the_place_of_a_value() {
        for text in
            ["<your-token-here>", "CHANGEME123", "change-me", "xxxx", "***", "your_key_here"]
        {
            assert!(is_filler(text), "{text}");
        }
        for text in ["", "x", "..", "<b>x</b>", "<>", "xyz", "yours", "todo list", "change"] {
            assert!(!is_filler(text), "{text}");
        }
    }

    #[test]
    fn names_of_secrets_are_recognised_by_their_words() {
        for name in [
            "DEPLOY_TOKEN",
            "deploy_token",
            "API_KEY",
            "APIKEY",
            "MYAPIKEY",
            "DB_PASSWORD",
            "PGPASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "SENTRY_DSN",
            "SSH_PRIVATE_KEY",
            "GITHUBTOKEN",
        ] {
            assert!(is_named_like_secret(name), "{name}");
        }
        for name in
            ["LOG_LEVEL", "REGISTRY", "KEYBOARD", "PASSENGER_COUNT", "AUTHOR", "MONKEY", "REGION"]
        {
            assert!(!is_named_like_secret(name), "{name}");
        }
    }

    #[test]
    fn secret_values_are_recognised() {
        for value in [
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "glpat-abcDEF123456",
            "https://bob:hunter2@registry.example.org",
            "postgres://app:pw@db.example.org/app",
            "https://h.example/x?token=abc",
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "--token=q8Zr2LxV9tPm4KsW7nYb3",
        ] {
            assert!(may_be_secret(value, Secrecy::Sensitive), "{value}");
        }
        for value in [
            "",
            "debug",
            "production",
            "registry.example.org",
            "https://payments.example.org/api/v2",
            "DE,FR,NL",
            "1.2.3-rc.1",
            "a sentence with many words of 2 sorts in it",
            "key-2099",
            "--release --features sandbox-and-something-else-2",
            "acme/platform/gateway-service-v2",
            "-Xmx2048m -XX:+UseG1GC",
            "2099-01-31T00:00:00Z",
        ] {
            assert!(!may_be_secret(value, Secrecy::Sensitive), "{value}");
        }
    }

    /// Ordinary values of open fields and of protected variables.
    #[test]
    fn harmless_values_are_no_secrets() {
        for value in [
            "da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            "registry.example.org:5000/acme/shop@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
            "registry.example.org/acme/build-image-for-ci:2026.11.29-alpine3.20",
            "https://git.example.org:8443/acme/shop/-/blob/main/src/main.rs#L10-20",
            "https://ci.example.org/job/shop?ref=main&per_page=20",
            "https://git.example.org/acme/shop/-/commit/da39a3ee5e6b4b0d3255bfef95601890afd80709",
            "https://ci.example.org/%{project_path}/badges/%{default_branch}/pipeline.svg?ignore_skipped=true",
            "https://issues.example.org/browse/:id",
            "https://hooks.example.org/acme/shop",
            "https://api.example.org/projects/12/hooks/34",
            "https://user:${CI_JOB_TOKEN}@git.example.org/acme/shop.git",
            "https://example.org/search?token={token}&key=<your-api-key>",
            "https://registry.npmjs.org/@acme/shop",
            "ssh://git@git.example.org:2222/acme/shop.git",
            "git@git.example.org:acme/shop.git",
            "db-1.eu-west-1.prod.internal.example.org:5432",
            "192.0.2.17:8080",
            "[2001:db8::1]:443",
            "v1.2.3-rc.1+build.20261129",
            "*/15 4-6 * * 1-5",
            "^(feat|fix|chore)(\\([a-z-]+\\))?: .{1,72}$",
            "(?i)(token|key|secret)=[A-Za-z0-9]{20,}",
            "charts/payments/values-production-eu-central-1.yaml",
            "C:\\builds\\acme\\shop",
            "bob.builder+ci@example.org, ops@example.org",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGhJ8t2X0Yw4S1p7C6mK9aBcDeFgHiJkLmNoPqRsTuVw bob@laptop",
            "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGLYhQWzrjKVYzIbgQk",
            "group/sub-group/project-with-a-long-name-2026",
            "acme_platform_gateway_service_configuration_v2",
            "2026-11-29T01:02:03.000Z",
            "The highs_and_lows_of_2026 in the token-service, see key-2099 and sk-SK",
            "Authentication: uses OAuth (see docs), passwords are in the vault",
            "task-runner-for-glrt- prefixed names",
            "-Xmx2048m -XX:+UseG1GC --features=sandbox-and-more",
            "max-age=31536000; includeSubDomains",
            "DE,FR,NL",
        ] {
            assert_eq!(find_credential(value), None, "{value}");
            assert!(!may_be_secret(value, Secrecy::Open), "{value}");
        }
    }

    /// Each credential is found alone and in a sentence.
    #[test]
    fn credentials_are_masked_in_any_text() {
        for (text, shown) in [
            ("https://bob:hunter2@h.example.org/x", "https://***@h.example.org/x"),
            ("https://bob:hun/ter@2@h.example.org/x", "https://***@h.example.org/x"),
            ("https://q8Zr2LxV9tPm4KsW7nYb3@h.example.org/x", "https://***@h.example.org/x"),
            ("https://0123456789abcdef0123:@h.example.org/x", "https://***@h.example.org/x"),
            ("see https://bob:#hunter2@h.example.org/x", "see https://***@h.example.org/x"),
            ("see https://bob:?hunter2@h.example.org/x", "see https://***@h.example.org/x"),
            ("made with glrtr-abcdef1234567890", "made with ***"),
            ("https://h/x?token=abcdef123456/:id", "https://h/x?token=***"),
            ("https://h/x?u=https://bob:hunter2@i/x", "https://h/x?u=https://***@i/x"),
            ("https://h/x#access_token=abcdef123456&a=b", "https://h/x#access_token=***&a=b"),
            ("https://h/x?a=b&private%5Ftoken=abcdef123456", "https://h/x?a=b&private%5Ftoken=***"),
            (
                "h.example.org/b.svg?private_token=abcdef123456",
                "h.example.org/b.svg?private_token=***",
            ),
            (
                "https://h/run?sp=%2Ftriggers&sig=aB3dE5gH7jK9mN1pQ3sT5vW7",
                "https://h/run?sp=%2Ftriggers&sig=***",
            ),
            (
                "https://HOOKS.slack.com/services/T0/B0/abcdefgh",
                "https://HOOKS.slack.com/services/***",
            ),
            (
                "https://a.webhook.office.com/webhookb2/1@2/IncomingWebhook/3",
                "https://a.webhook.office.com/webhookb2/***",
            ),
            (
                "https://chat.example.org/hooks/xhs8w3pd7fd8ufo3q9yq1dkqjc",
                "https://chat.example.org/hooks/***",
            ),
            (
                "https://webhook.site/6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "https://webhook.site/***",
            ),
            ("glpat-abc_DEF123456789.01.0w1a2b", "***"),
            ("token:glptt-abcDEF123456789", "token:***"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "***"),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n",
                "***\n",
            ),
            ("/variables/https%3A%2F%2Fbob%3Ahunter2%40h", "/variables/***"),
        ] {
            assert_eq!(mask_text(text, Secrecy::Open), shown);
            let sentence = format!("See {text} for more.");
            let expected = format!("See {shown} for more.");
            assert_eq!(mask_text(&sentence, Secrecy::Open), expected);
            assert_eq!(mask_text(&expected, Secrecy::Open), expected, "a second time");
        }
    }

    #[test]
    fn every_token_prefix_is_found() {
        for beginning in &PATTERNS.tokens {
            let token = format!("{beginning}plain-rest-of-a-token");
            assert_eq!(find_credential(&token), Some(Credential::Token), "{token}");
        }
    }

    #[test]
    fn credentials_and_words_are_distinguished() {
        let slack = "https://hooks.slack.com/services/T0/B0/abcdefgh";
        for (value, expected) in [
            ("glpat-abcDEF123456789", Some("a token")),
            ("https://h/api?private_token=glpat-abcDEF123456789", Some("a token")),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", Some("a private key")),
            ("https://bob:hunter2@git.example.org/a.git", Some("a password")),
            (slack, Some("an address that is a secret")),
            ("https://ci.example.org/h?token=abcdef123456", Some("a secret parameter")),
            ("https://ci.example.org/h?token=$TOKEN_OF_CI", None),
            ("https://ci.example.org/h?token=short", None),
            ("https://ci.example.org/h?job=abcdef123456", None),
            ("glpat-…", None),
            ("the glpat-token", None),
            ("https://bob@git.example.org/a.git", None),
            ("ssh://git@git.example.org/a.git", None),
            ("git@git.example.org:a.git", None),
            ("https://bob:@git.example.org/a.git", None),
            ("https://hooks.slack.com/services/", None),
            ("key-2099", None),
        ] {
            assert_eq!(find_credential(value).map(Credential::noun_phrase), expected, "{value}");
        }
    }

    #[test]
    fn a_url_is_shown_without_credentials() {
        for (url, shown) in [
            ("https://ci.example.org/x", "https://ci.example.org/x"),
            ("https://bob:s3cret@ci.example.org/@x", "https://***@ci.example.org/@x"),
            ("https://token@h", "https://***@h"),
            ("https://h:8080/x and http://[::1]:80", "https://h:8080/x and http://[::1]:80"),
            ("https://bob:s3creth/x", "https://***/x"),
            ("https://h/p?token=abc&b=&c", "https://h/p?token=***&b=&***"),
            ("https://h?a=1;b=2#frag", "https://h?a=***;b=***#***"),
            ("see 'http://a:b@c/d' and ftp://e@f g@h", "see 'http://***@c/d' and ftp://***@f g@h"),
            ("no address", "no address"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
    }

    #[test]
    fn each_url_of_a_list_is_shown_without_credentials() {
        let urls = serde_json::json!(["https://u:pw@h/a", "https://h/b"]);
        let shown = mask_live_value(&urls, Secrecy::Address).unwrap();
        assert_eq!(shown[1], "https://h/b");
        assert_eq!(shown[0], *mask_url("https://u:pw@h/a"));
    }

    #[test]
    fn a_text_that_should_be_a_url_is_shown_without_credentials() {
        for (text, shown) in [
            ("ci.example.org/x", Some("ci.example.org/x")),
            ("bob:s3cret@ci.example.org/x", Some("***@ci.example.org/x")),
            ("htps//bob:s3/cret@ci.example.org/x?token=s", Some("***@ci.example.org/x?***")),
            ("https://bob:s3cret@h/x?a=s", Some("https://***@h/x?a=***")),
            ("s3cret://h", Some("s3cret://h")),
            ("s3cret", None),
            ("two words.", None),
            ("s3cret@", None),
            ("", None),
        ] {
            assert_eq!(
                find_address_secrets(text)
                    .map(|secrets| mask_ranges(text, &secrets).into_owned())
                    .as_deref(),
                shown,
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_password_is_never_shown(user in "[a-z]{0,5}", path in "[a-z/]{0,9}") {
            let url = format!("https://{user}:canary7@host/{path}?k={user}canary8&canary9#canary0");
            prop_assert!(!mask_url(&url).contains("canary"));
        }

        #[test]
        fn masking_twice_changes_nothing(text in r"(\PC|\p{C}|[:/@?&=#%-]){0,40}") {
            for secrecy in [Secrecy::Open, Secrecy::Address, Secrecy::Sensitive] {
                let masked_text = mask_text(&format!("://{text}"), secrecy).into_owned();
                if secrecy == Secrecy::Open {
                    prop_assert_eq!(mask_text(&masked_text, secrecy), &*masked_text);
                }
            }
        }
    }
}
