//! Recognises probable secrets by name or value. In doubt, a value counts as a secret: leaving it
//! out costs a line, but a secret in Git is compromised.

use crate::text::{SECRET_ADDRESSES, mask_url};

/// Words in names of secrets, in upper case.
const WORDS: &str = "APIKEY AUTH BEARER CERT CERTIFICATE COOKIE CRED CREDENTIAL CREDENTIALS CREDS \
    DSN JWT KEY KEYS LICENSE PASS PASSPHRASE PASSWD PASSWORD PAT PRIVATE PWD SALT SECRET SECRETS \
    TOKEN";
/// The beginnings of tokens of well-known services. Ordinary text does not start like this.
const TOKENS: &str = "AKIA AIza dop_v1_ ghp_ gho_ ghs_ github_pat_ glcbt- gldt- glft- glpat- \
    glptt- glrt- xoxb- xoxp- xoxs-";
/// The minimum length of a token. Its beginning has at least 4 characters.
const SHORTEST: usize = 16;
/// The word for a password in a URL.
pub const PASSWORD: &str = "a password";
/// Other beginnings of secrets.
const BEGINNINGS: &str = "-----BEGIN AKIA AIza dop_v1_ eyJ ghp_ gho_ ghs_ github_pat_ glp gldt- \
    sk- sk_ xox";
/// The minimum length of a run of letters and digits that may be a secret.
const LONG: usize = 20;
/// The minimum length if all of them are hexadecimal digits.
const LONG_HEX: usize = 32;
/// The minimum entropy of a secret in bits per character.
const BITS: f64 = 3.5;

/// Whether `name` is a typical name of a secret: it contains or ends with one of the words.
pub fn is_named_like_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let ends = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY"];
    words.any(|word| {
        WORDS.split(' ').any(|known| known == word) || ends.iter().any(|end| word.ends_with(end))
    })
}

/// Whether `value` looks like a secret: a key, a URL with credentials, or a text that is too
/// irregular to be written by a person.
pub fn is_like_secret(value: &str) -> bool {
    value.contains("PRIVATE KEY")
        || mask_url(value) != value && value.contains("://")
        || value.split(|c: char| !is_of_token(c)).any(is_random)
        || value.split(|c: char| !is_of_token(c) || c == '/').any(begins_so)
}

fn begins_so(word: &str) -> bool {
    BEGINNINGS.split(' ').any(|beginning| goes_on(word, beginning, 8))
}

/// Whether `word` starts with `beginning` and has at least `least` more bytes.
fn goes_on(word: &str, beginning: &str, least: usize) -> bool {
    word.strip_prefix(beginning).is_some_and(|rest| rest.len() >= least)
}

/// The sort of certain credential in `value`, as the end of a sentence that starts with "it has".
pub fn credential(value: &str) -> Option<&'static str> {
    // Most values are too short: of the shorter ones, only a URL can have a password.
    if value.len() < SHORTEST && !value.contains(':') {
        return None;
    }
    let is_token = |word: &str| {
        word.len() >= SHORTEST
            && TOKENS.split(' ').any(|beginning| goes_on(word, beginning, SHORTEST - 4))
    };
    // Most URLs have neither a password nor parameters.
    let url = value.contains(['@', '?']).then(|| url::Url::parse(value).ok()).flatten();
    let has_password = |url: &url::Url| url.password().is_some_and(|password| !password.is_empty());
    let is_secret = |name: &str, value: &str| {
        is_named_like_secret(name) && value.len() >= 8 && value.chars().all(is_of_token)
    };
    let has_parameter =
        |url: &url::Url| url.query_pairs().any(|(name, value)| is_secret(&name, &value));
    if value.split(|c: char| !is_of_token(c) || "+/=".contains(c)).any(is_token) {
        Some("a token")
    } else if value.contains("PRIVATE KEY-----") {
        Some("a private key")
    } else if url.as_ref().is_some_and(has_password) {
        Some(PASSWORD)
    } else if url.as_ref().is_some_and(has_parameter) {
        Some("a secret parameter")
    } else {
        let is_open =
            |address: &&str| value.split(*address).nth(1).is_some_and(|rest| rest.len() >= 8);
        SECRET_ADDRESSES.iter().any(is_open).then_some("an address that is a secret")
    }
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=_-".contains(c)
}

/// Whether a run of letters, digits and other characters of tokens is random.
fn is_random(run: &str) -> bool {
    let hex: String = run.chars().filter(|c| *c != '-').collect();
    let has = |test: fn(&char) -> bool| run.chars().any(|c| test(&c));
    let is_hex = hex.len() >= LONG_HEX && hex.chars().all(|c| c.is_ascii_hexdigit());
    if is_hex {
        return has(char::is_ascii_digit);
    }
    // Words joined by separators, as in paths, are not a run.
    let longest = run.split(['/', '-', '_']).max_by_key(|part| part.len()).unwrap_or_default();
    let kinds = [char::is_ascii_lowercase, char::is_ascii_uppercase, char::is_ascii_digit];
    let kinds = kinds.into_iter().filter(|kind| longest.chars().any(|c| kind(&c))).count();
    longest.len() >= LONG && kinds >= 2 && has(char::is_ascii_digit) && bits(longest) >= BITS
}

/// The entropy of `text` in bits per character, from the frequency of its characters.
fn bits(text: &str) -> f64 {
    let mut counts = [0_u32; 128];
    text.bytes().filter(u8::is_ascii).for_each(|byte| counts[usize::from(byte)] += 1);
    let all = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let share = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / all);
    share.map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(is_like_secret(value), "{value}");
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
            assert!(!is_like_secret(value), "{value}");
        }
    }

    #[test]
    fn credentials_and_words_are_distinguished() {
        let slack = "https://hooks.slack.com/services/T0/B0/abcdefgh";
        for (value, expected) in [
            ("glpat-abcDEF123456789", Some("a token")),
            ("use glrt-0123456789abcdefghij here", Some("a token")),
            ("https://h/api?private_token=glpat-abcDEF123456789", Some("a token")),
            ("ghp_0123456789abcdefghij", Some("a token")),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE", Some("a private key")),
            ("https://bob:hunter2@git.example.org/a.git", Some("a password")),
            ("postgres://app:pw@db/app", Some("a password")),
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
            assert_eq!(credential(value), expected, "{value}");
        }
    }
}
