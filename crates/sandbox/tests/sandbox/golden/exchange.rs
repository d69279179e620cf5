//! One recorded exchange, and the file of all of them.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Map, Value};

const RECORDINGS: &[u8] = include_bytes!("recordings.jsonl.gz");

/// A request, and the answer of the service's own code. `{name}` in a request stands for a value
/// from an earlier answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Exchange {
    /// `SCENARIO-NUMBER`; see [`Exchange::module`].
    pub(crate) name: String,
    pub(crate) method: String,
    /// The route.
    pub(crate) template: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) query: Value,
    pub(crate) body: Option<Value>,
    pub(crate) form: Option<Map<String, Value>>,
    pub(crate) raw: Option<String>,
    pub(crate) content_type: Option<String>,
    /// The caller: `admin`, `owner`, `anon` and so on.
    pub(crate) role: String,
    /// It only prepares others and is not compared.
    #[serde(default)]
    pub(crate) setting: bool,
    /// The names in later requests for values of this answer, with their paths in it (`0.id`).
    #[serde(default)]
    pub(crate) save: Map<String, Value>,
    /// It is sent but not compared: the answer depended on other data of the installation, or the
    /// service failed.
    #[serde(default)]
    note: bool,
    pub(crate) status: u16,
    pub(crate) headers: Map<String, Value>,
    pub(crate) answer: Value,
}

impl Exchange {
    /// All exchanges, in order.
    pub(crate) fn all() -> Vec<Self> {
        let mut text = String::new();
        GzDecoder::new(RECORDINGS).read_to_string(&mut text).expect("gzip");
        text.lines().map(|line| serde_json::from_str(line).expect("an exchange")).collect()
    }

    /// Exchanges of one module share a world: `s_five-0001` prepares `five/fork-0002`.
    pub(crate) fn module(&self) -> &str {
        let name = self.name.strip_prefix("s_").unwrap_or(&self.name);
        name.split(['/', '-']).next().unwrap_or(name)
    }

    pub(crate) fn is_compared(&self) -> bool {
        !self.setting && !self.note
    }

    pub(crate) fn is_write(&self) -> bool {
        !["GET", "HEAD", "OPTIONS"].contains(&self.method.as_str())
    }
}
