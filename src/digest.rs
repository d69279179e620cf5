//! Digests of values: so that what was there can be told from what is there, without keeping it.
//!
//! JSON is digested in its canonical form, in which keys are in order and nothing is between them, so
//! that one value has one digest. What nobody may guess at is digested under a key: without it, the
//! digest of a short secret would tell the secret to whoever tries a list of words.

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::{secret::Secret, value::Json};

/// A key for digests of sensitive values.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[key]")
    }
}

impl Key {
    /// The key that `secret` is, of any length.
    pub fn new(secret: &Secret) -> Self {
        // HMAC fills a short key up with zeros, and takes the digest of one longer than a block.
        let secret = secret.expose().as_bytes();
        let mut block = [0; 64];
        match block.get_mut(..secret.len()) {
            Some(start) => start.copy_from_slice(secret),
            None => block[..32].copy_from_slice(&Sha256::digest(secret)),
        }
        Self(Hmac::new(&block.into()))
    }

    /// What tells this key from others. To find a key from it one has to try all that there are.
    pub fn id(&self) -> String {
        self.of(&Json::Null)
    }

    /// The digest of `json` under this key, in lower-case hexadecimal digits.
    pub fn of(&self, json: &Json) -> String {
        let mut mac = self.0.clone();
        mac.update(canonical(json).as_bytes());
        hexadecimal(&mac.finalize().into_bytes())
    }
}

/// The SHA-256 of the canonical form of `json`, in lower-case hexadecimal digits.
pub fn of(json: &Json) -> String {
    hexadecimal(&Sha256::digest(canonical(json)))
}

/// The one text of `json` in which the keys of objects are in the order of their characters, with no
/// space between anything.
pub fn canonical(json: &Json) -> String {
    let mut sorted = json.clone();
    sorted.sort_all_objects();
    sorted.to_string()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_matter_and_anything_else_does() {
        let (a, b) = (
            json!({"b": [1, {"d": null, "c": 2}], "a": ""}),
            r#"{"a":"","b":[1,{"c":2,"d":null}]}"#,
        );
        assert_eq!(canonical(&a), b);
        assert_eq!(of(&a), of(&serde_json::from_str(b).unwrap()));
        for other in [json!({"b": [1], "a": ""}), json!(null), json!([]), json!("null")] {
            assert_ne!(of(&a), of(&other), "{other}");
        }
    }

    #[test]
    fn digests_are_those_of_the_standards() {
        // Computed with another implementation; the first key is longer than a block.
        assert_eq!(
            of(&json!("")),
            "12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"
        );
        for (key, digest) in [
            ("k".repeat(131), "030883233440727df6d1494db9c1e34758dd873568b14bff01974b4a1d2d35f2"),
            ("k".to_owned(), "7d13e4106960ecfd6ffdd105228f98a3c5e464ea51a4fd736783b3edb5227161"),
        ] {
            assert_eq!(Key::new(&Secret::new(key)).of(&json!("a")), digest);
        }
    }
}
