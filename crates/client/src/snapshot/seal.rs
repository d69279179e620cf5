//! Keeps secret values as keyed digests. In URLs that identify entries, masks possible credentials.
//!
//! With the key, a plan from the snapshot can only check if a secret value equals the declared
//! value. CI jobs of other branches must not be able to read the key, because they could guess
//! values with it. Without the key, secret values count as not returned by the service. A masked
//! URL then only shows that its entry differs from declared entries with another host or path.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex},
};

use super::contents::ReadFailure;
use crate::{
    desired::{DeclaredEntry, Desired},
    digest::DigestKey,
    field::{Equality, Scope, Secrecy},
    kind::{self, FieldSpec, Section},
    lock,
    secret::{
        Secrets,
        judge::{self, mask_url},
    },
    text::{self, MASK},
    value::{Json, Object, Value},
};

/// The fields of the JSON object that replaces a sensitive value: the digest of the value, and the
/// masked URL.
const DIGEST_FIELD: &str = "undrift_digest";
const MASKED_URL_FIELD: &str = "undrift_masked";

/// A section of a container: the scope and the path of the container, and the name of the section.
type SectionKey = (Scope, String, &'static str);

/// Declared sensitive values.
#[derive(Debug, Default)]
struct DeclaredValues {
    /// Field names and values, by section and by current or former path of the container.
    values: BTreeMap<SectionKey, Vec<(String, Json)>>,
    /// True if a container has too many former paths, so that not all of them are known.
    has_unknown_paths: bool,
}

impl DeclaredValues {
    /// The declared values of `section` in the container that is now at `path`.
    fn values_in(&self, section: Section, path: &str) -> &[(String, Json)] {
        let key = (section.scoped_kind.scope, path.to_owned(), section.section);
        self.values.get(&key).map_or(&[], Vec::as_slice)
    }
}

/// A field of an entry in the container at `path`.
pub(super) struct SealedField<'a> {
    pub(super) section: Section,
    pub(super) path: &'a str,
    pub(super) spec: &'a FieldSpec,
    /// The entry, as the service returned it.
    pub(super) raw: &'a Object,
}

impl SealedField<'_> {
    /// Returns the object that replaces the sensitive `value` of the field; `None` if nothing is
    /// kept. Equal values of two objects have different digests. If `shows_url` is false, not even
    /// the masked form of a URL is kept, because the URL contains a known secret.
    pub(super) fn seal(
        &self,
        key: Option<&DigestKey>,
        value: &Json,
        shows_url: bool,
    ) -> Option<Json> {
        let digest = key.map(|key| key.digest(&self.digest_input(value)));
        let url = value.as_str().filter(|_| shows_url && self.is_identity_url());
        let sealed_parts = [(DIGEST_FIELD, digest), (MASKED_URL_FIELD, url.and_then(mask_if_safe))];
        let present_parts = sealed_parts
            .into_iter()
            .filter_map(|(name, part)| Some((name.to_owned(), part?.into())));
        let sealed_fields: Object = present_parts.collect();
        (!sealed_fields.is_empty()).then_some(Json::Object(sealed_fields))
    }

    pub(super) fn is_identity(&self) -> bool {
        self.section.identity.contains(&self.spec.name)
    }

    fn is_identity_url(&self) -> bool {
        self.spec.field.secrecy() == Secrecy::Address && self.is_identity()
    }

    /// The input of the digest of `value`.
    fn digest_input(&self, value: &Json) -> Json {
        let Self { section, path, spec, raw } = self;
        let value = match (spec.field.compare, value) {
            (Equality::Url, Json::String(url)) => text::normal_url(url).into(),
            (Equality::Location, Json::String(url)) => text::url_without_user(url).into(),
            _ => value.clone(),
        };
        let scope = section.scoped_kind.scope.noun();
        let parent = section.scoped_kind.parent.iter().map(|parent| &parent.argument);
        let keys = section.scoped_kind.entry_keys.identity_keys.iter().chain(parent);
        let identity: Vec<_> = keys.map(|key| raw.get(*key)).collect();
        serde_json::json!([scope, path, section.section, identity, spec.name, value])
    }
}

fn url_secret_ranges(url: &str) -> Vec<Range<usize>> {
    judge::find_secrets(url, Secrecy::Address)
}

/// Masks `url` in the same way as in addresses of entries; `None` if the masked form may still
/// contain a secret.
fn mask_if_safe(url: &str) -> Option<String> {
    let is_web_url = url::Url::parse(url).is_ok_and(|parsed_url| parsed_url.has_host())
        && url.matches("://").count() == 1;
    let (masked_url, normalized_url) = (mask_url(url), text::normal_url(url));
    let is_safe = is_web_url
        && url.chars().all(|c| c.is_ascii_graphic() && !"\"'<>`\\^{|}".contains(c))
        && url_secret_ranges(url).len() == url_secret_ranges(&normalized_url).len()
        && !masked_url.split(MASK).any(|text| judge::may_be_secret(text, Secrecy::Sensitive));
    is_safe.then(|| masked_url.into_owned())
}

/// True if comparisons ignore the masked parts of `url`.
fn ignores_masked_parts(spec: &FieldSpec, url: &str) -> bool {
    spec.field.compare == Equality::Location && !text::url_without_user(url).contains(MASK)
}

/// Builds a URL whose masked form is `masked_url`. It differs from every other URL, because `nonce`
/// is random.
fn fill_mask(masked_url: &str, nonce: &str) -> Option<String> {
    let url = text::replace_ranges(masked_url, &url_secret_ranges(masked_url), nonce);
    (url != masked_url && mask_url(&url) == masked_url).then(|| url.into_owned())
}

/// Replaces each digest with the declared value that has this digest.
#[derive(Debug)]
pub(super) struct Unsealer {
    key: Option<DigestKey>,
    /// A random text that replaces masked parts of URLs.
    nonce: String,
    current_values: Mutex<Arc<DeclaredValues>>,
}

impl Unsealer {
    /// Creates an unsealer. Without `key`, the unsealer recognises no digest.
    pub(super) fn new(key: Option<DigestKey>) -> Self {
        let nonce = format!("sealed{:032x}", rand::random::<u128>());
        Self { key, nonce, current_values: Mutex::default() }
    }

    /// Sets the declarations and secret values whose digests are recognised.
    pub(super) fn use_declarations(&self, desired: &Desired, secrets: &Secrets) {
        let mut declared_values = DeclaredValues::default();
        for container in &desired.containers {
            // The container may still be at a former path.
            let former_paths = desired.moves.former_paths(&container.path);
            declared_values.has_unknown_paths |= former_paths.is_none();
            let mut paths = former_paths.unwrap_or_default();
            paths.push(container.path.to_lowercase());
            for section in &container.sections {
                let values = section.entries.iter().flat_map(DeclaredEntry::values);
                let values = values.filter_map(|(name, value)| {
                    let is_open = section.kind.field(&name).secrecy() == Secrecy::Open;
                    let value = match value {
                        Value::Plain(json) => json,
                        Value::Secret(reference) => secrets.get(&reference)?.expose().into(),
                        Value::File(_) => return None,
                    };
                    (!is_open).then_some((name, value))
                });
                let values: Vec<_> = values.collect();
                for path in paths.iter().filter(|_| !values.is_empty()) {
                    let section_key = (container.scope, path.clone(), section.kind.section);
                    declared_values
                        .values
                        .entry(section_key)
                        .or_default()
                        .extend(values.iter().cloned());
                }
            }
        }
        *lock(&self.current_values) = Arc::new(declared_values);
    }

    /// Unseals the entries of `section` in the container at `path`, or the single object of the
    /// section.
    ///
    /// # Errors
    /// If an identifying value is unknown and may equal a declared value.
    pub(super) fn unseal(
        &self,
        section: Section,
        path: &str,
        json: Json,
    ) -> Result<Json, ReadFailure> {
        match json {
            Json::Array(entries) => {
                entries.into_iter().map(|entry| self.unseal(section, path, entry)).collect()
            }
            Json::Object(mut raw) => {
                for spec in section.specs() {
                    let Some(live_name) = spec.field.live_name() else { continue };
                    let sealed_value = raw.get(live_name);
                    let [digest, masked_url] = [DIGEST_FIELD, MASKED_URL_FIELD].map(|part_name| {
                        sealed_value
                            .and_then(|sealed| Some(sealed.get(part_name)?.as_str()?.to_owned()))
                    });
                    if digest.is_none() && masked_url.is_none() {
                        continue;
                    }
                    let field = SealedField { section, path, spec, raw: &raw };
                    let value =
                        match self.unseal_value(&field, digest.as_deref(), masked_url.as_deref()) {
                            Some(value) => value,
                            None if field.is_identity() => {
                                return Err(ambiguous_failure(
                                    section,
                                    live_name,
                                    digest.is_some(),
                                ));
                            }
                            None => kind::withheld_placeholder(),
                        };
                    raw.insert(live_name.to_owned(), value);
                }
                Ok(Json::Object(raw))
            }
            other => Ok(other),
        }
    }

    /// Returns the value of a field, or a placeholder that differs from all declared values; `None`
    /// if the value is unknown.
    fn unseal_value(
        &self,
        field: &SealedField<'_>,
        digest: Option<&str>,
        masked_url: Option<&str>,
    ) -> Option<Json> {
        let value = match (&self.key, digest, masked_url) {
            (Some(key), Some(digest), _) => self.declared_value(key, field, digest),
            (_, _, Some(url)) if ignores_masked_parts(field.spec, url) => Some(url.into()),
            (_, _, Some(url)) if self.is_endpoint_undeclared(field, url) => None,
            _ => return None,
        };
        Some(value.unwrap_or_else(|| self.unequal_placeholder(field, masked_url)))
    }

    /// The values of the current declarations.
    fn declared_values(&self) -> Arc<DeclaredValues> {
        Arc::clone(&lock(&self.current_values))
    }

    /// The declared value with this digest.
    fn declared_value(
        &self,
        key: &DigestKey,
        field: &SealedField<'_>,
        digest: &str,
    ) -> Option<Json> {
        let declared_values = self.declared_values();
        // An entry is also identified by its former URLs, which another field lists.
        let accepts_former_urls = field.is_identity_url();
        let values = declared_values.values_in(field.section, field.path).iter();
        let values = values.flat_map(|(name, value)| match value {
            Json::Array(urls) if accepts_former_urls => urls.as_slice(),
            value if *name == field.spec.name => std::slice::from_ref(value),
            _ => &[],
        });
        let mut values = values.filter(|value| key.digest(&field.digest_input(value)) == digest);
        values.next().cloned()
    }

    /// A value that equals no other value. For an identifying field, the value contains the entry's
    /// id, so that two entries never get the same name.
    fn unequal_placeholder(&self, field: &SealedField<'_>, masked_url: Option<&str>) -> Json {
        if !field.is_identity() {
            return format!("sealed:{:032x}", rand::random::<u128>()).into();
        }
        let keys = field.section.scoped_kind.entry_keys.identity_keys.iter();
        let identity = keys.filter_map(|key| field.raw.get(*key)).map(Json::to_string);
        let identity = identity.collect::<Vec<_>>().join("-");
        let url =
            masked_url.and_then(|masked| fill_mask(masked, &format!("{}-{identity}", self.nonce)));
        url.unwrap_or_else(|| format!("sealed:{identity}")).into()
    }

    /// True if the section of `field` declares no URL with the host and path of `masked_url`,
    /// regardless of a final `/`.
    fn is_endpoint_undeclared(&self, field: &SealedField<'_>, masked_url: &str) -> bool {
        let (endpoint, declared_values) = (host_and_path(masked_url), self.declared_values());
        let values = declared_values.values_in(field.section, field.path).iter();
        let values = values.flat_map(|(_, value)| match value {
            Json::Array(urls) => urls.as_slice(),
            value => std::slice::from_ref(value),
        });
        let mut urls = values.filter_map(Json::as_str);
        !declared_values.has_unknown_paths && urls.all(|url| host_and_path(url) != endpoint)
    }
}

/// The host and path of a URL without credentials.
fn host_and_path(url: &str) -> String {
    let url = text::url_without_user(url);
    let masked_url = mask_url(&url);
    let endpoint = masked_url.split(['?', '#']).next().unwrap_or_default();
    endpoint.trim_end_matches('/').to_owned()
}

/// The failure of a read whose identifying field is withheld.
pub(super) fn withheld_failure(section: Section, name: &str) -> ReadFailure {
    ReadFailure::from_message(format!("the `{name}` of a {} may hold a credential", section.noun))
}

/// Like [`withheld_failure`], for a value that a plan with the key can compare.
fn ambiguous_failure(section: Section, name: &str, has_digest: bool) -> ReadFailure {
    let help = if has_digest {
        "only a plan with UNDRIFT_SNAPSHOT_KEY, as on the default branch, can compare it"
    } else {
        "take the snapshot with UNDRIFT_SNAPSHOT_KEY, and plan on the default branch"
    };
    ReadFailure::from_message(format!("{}; {help}", withheld_failure(section, name).message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_url_shows_nothing_that_may_be_a_secret() {
        for (url, expected) in [
            ("https://h.example/hook?project=shop", Some("https://h.example/hook?project=***")),
            ("https://bob:pw@h.example/x#f", Some("https://***@h.example/x#***")),
            (
                "https://hooks.slack.com/services/T0/B0/abcdefgh?a=b",
                Some("https://hooks.slack.com/services/***?a=***"),
            ),
            ("https://h.example/?a;b=c&d", Some("https://h.example/?***;b=***&***")),
            // The end of the secret, or of the host, is uncertain.
            ("https://h.example/?token=a b", None),
            ("https://bob:a'b@h.example/", None),
            ("https://bob:pwh.example/x", None),
            ("bob:pw@h.example", None),
            (
                "https://HOOKS.slack.com/services/T0/B0/abcdefgh?a=b",
                Some("https://HOOKS.slack.com/services/***?a=***"),
            ),
            (
                "https://h.example/wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY?a=b",
                Some("https://h.example/***?a=***"),
            ),
            ("https://h.example/?glpat-abcDEF123456789=b", Some("https://h.example/?***=***")),
            // The unmasked part looks like a secret.
            ("https://h.example/https://bob:pw@h2.example/?a=b", None),
        ] {
            assert_eq!(mask_if_safe(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_filled_mask_is_shown_as_the_url_and_equals_no_other_url() {
        for url in [
            "https://h.example/hook?project=shop&flag",
            "https://bob:pw@h.example/***/x",
            "https://h.example/x#f",
        ] {
            let masked_url = mask_if_safe(url).unwrap();
            let filled = fill_mask(&masked_url, "nonce-7").unwrap();
            assert_eq!(mask_url(&filled), masked_url);
            assert!(filled.contains("nonce-7") && text::normal_url(&filled).contains("nonce-7"));
            assert_eq!(filled.contains("/***/"), url.contains("/***/"));
        }
        // The text of a manipulated file must not cause a panic.
        for text in ["", "***", "https://h.example/x", "https://h.example/?a=***'b"] {
            let _ = fill_mask(text, "nonce-7");
        }
        assert_eq!(fill_mask("https://h.example/x", "nonce-7"), None);
    }
}
