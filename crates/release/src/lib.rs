//! Releases of the service, such as 18.2, and names of time zones. undrift and its sandbox share
//! these facts.
//!
//! A feature without an explicit release belongs to [`REFERENCE`]. The reference is the API
//! documentation of the service for this release.

pub mod time_zone;

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A release, as `MAJOR.MINOR`. All its patches have the same features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u16,
    minor: u16,
}

impl Default for Release {
    fn default() -> Self {
        REFERENCE
    }
}

/// The release that the reference describes.
pub const REFERENCE: Release = Release::new(15, 8);

impl Release {
    /// The release `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// True if the release is later than [`REFERENCE`], so that a service may lack its features.
    pub fn is_after_reference(self) -> bool {
        self > REFERENCE
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Release {
    type Err = &'static str;

    /// Parses a release such as `18.2`, or a version of the service such as `18.2.1-ee` or
    /// `18.2.0-pre`. A pre-release has the features of its release.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(['.', '-', '+']);
        let [major, minor] = [(); 2].map(|()| {
            let digits = parts.next().filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
            digits.and_then(|digits| digits.parse().ok())
        });
        let (major, minor) = major.zip(minor).ok_or("must be a release such as `18.2`")?;
        Ok(Self { major, minor })
    }
}

impl Serialize for Release {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Release {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'_, str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Release {
    fn schema_name() -> Cow<'static, str> {
        "Release".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]+)?(-[0-9A-Za-z.-]+)?$",
            "examples": ["18.2"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_parsed_in_each_notation() {
        for (text, expected) in [
            ("15.8", Some("15.8")),
            ("15.8.0-ee", Some("15.8")),
            ("18.2.0-pre", Some("18.2")),
            ("16.11.3", Some("16.11")),
            ("18.9-ce.0", Some("18.9")),
            ("18", None),
            ("v18.2", None),
            ("18.x", None),
            ("", None),
            (".", None),
            ("99999999.1", None),
        ] {
            let parsed = text.parse::<Release>().ok();
            assert_eq!(parsed.map(|release| release.to_string()).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn releases_are_in_order_of_their_numbers() {
        let release = |text: &str| text.parse::<Release>().unwrap();
        assert!(release("16.2") < release("16.11") && release("16.11") < release("17.0"));
        assert!(!REFERENCE.is_after_reference() && release("15.9").is_after_reference());
    }
}
