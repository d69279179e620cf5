//! Digests of values. With a digest, a new value can be compared with an old value that is not
//! stored.
//!
//! The digest of JSON is the digest of its canonical form, with sorted keys and no white space, so
//! equal values have equal digests. Digests of sensitive values use a key. Without a key, somebody
//! could find a short secret by comparing its digest with the digests of many words.

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::{secret::Secret, value::Json};

/// A key for digests of sensitive values.
#[derive(Clone)]
pub struct DigestKey(Hmac<Sha256>);

impl std::fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[key]")
    }
}

impl DigestKey {
    /// The key made from `secret`. The secret may have any length.
    pub fn new(secret: &Secret) -> Self {
        match Hmac::new_from_slice(secret.expose().as_bytes()) {
            Ok(key) => Self(key),
            Err(_) => unreachable!("HMAC takes keys of any length"),
        }
    }

    /// An id of the key. The id does not reveal the key.
    pub fn id(&self) -> String {
        self.digest(&Json::Null)
    }

    /// The digest of `json` under this key, in lower-case hexadecimal digits.
    pub fn digest(&self, json: &Json) -> String {
        let mut mac = self.0.clone();
        mac.update(canonical_text(json).as_bytes());
        format!("{:x}", mac.finalize().into_bytes())
    }
}

/// The SHA-256 of the canonical form of `json`, in lower-case hexadecimal digits.
pub fn json_digest(json: &Json) -> String {
    format!("{:x}", Sha256::digest(canonical_text(json)))
}

/// The canonical text of `json`: keys in the order of their characters, without white space.
pub fn canonical_text(json: &Json) -> String {
    let mut sorted_json = json.clone();
    sorted_json.sort_all_objects();
    sorted_json.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn digests_ignore_only_the_order_of_keys() {
        let (unsorted, canonical_form) = (
            json!({"b": [1, {"d": null, "c": 2}], "a": ""}),
            r#"{"a":"","b":[1,{"c":2,"d":null}]}"#,
        );
        assert_eq!(canonical_text(&unsorted), canonical_form);
        assert_eq!(
            json_digest(&unsorted),
            json_digest(&serde_json::from_str(canonical_form).unwrap())
        );
        for other in [json!({"b": [1], "a": ""}), json!(null), json!([]), json!("null")] {
            assert_ne!(json_digest(&unsorted), json_digest(&other), "{other}");
        }
    }

    #[test]
    fn digests_follow_the_standards() {
        // The digests were computed with another implementation. The first key is longer than a
        // block.
        assert_eq!(
            json_digest(&json!("")),
            "12ae32cb1ec02d01eda3581b127c1fee3b0dc53572ed6baf239721a03d82e126"
        );
        for (key, digest) in [
            ("k".repeat(131), "030883233440727df6d1494db9c1e34758dd873568b14bff01974b4a1d2d35f2"),
            ("k".to_owned(), "7d13e4106960ecfd6ffdd105228f98a3c5e464ea51a4fd736783b3edb5227161"),
        ] {
            assert_eq!(DigestKey::new(&Secret::new(key)).digest(&json!("a")), digest);
        }
    }
}
