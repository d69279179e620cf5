//! Damaged or invented inputs, from reproducible randomness.

use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value as Json, json};

use crate::numbers::Numbers;

/// Texts that are difficult for readers.
const TOKENS: [&str; 60] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "- ",
    "---\n",
    "...\n",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "? ",
    "|\n",
    ">-\n",
    "\t",
    "\r",
    "\n",
    "\n  ",
    "\u{feff}",
    "\u{0}",
    "\u{1b}[31m",
    "\u{85}",
    "\u{ad}",
    "\u{301}",
    "\u{2028}",
    "\u{202e}",
    "'",
    "\"",
    "\\",
    "\\ud800",
    "%",
    "%2f",
    "%00",
    "#",
    "@",
    "`",
    "**",
    "/",
    "//",
    "../",
    "?",
    "[!",
    "{a,b}",
    "{{",
    "}}",
    "null",
    "~",
    "-0",
    "1e999",
    "18446744073709551616",
    "-9223372036854775809",
    "0.1e-400",
    "0x1F",
    "9999-99-99",
    "é",
    "ß",
    "İ",
    "𝒳",
];

impl Numbers {
    /// True once in `times` calls, on average.
    pub(super) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// `sample` with a few parts inserted, removed, doubled or changed.
    pub(super) fn bytes(&mut self, sample: &[u8]) -> Vec<u8> {
        let mut bytes = sample.to_vec();
        for _ in 0..=self.below(5) {
            let from = self.below(bytes.len() + 1);
            let to = from + self.below((bytes.len() - from).min(60) + 1);
            match self.below(8) {
                0 => drop(bytes.drain(from..to)),
                1 => bytes.truncate(from),
                2 => {
                    let part = bytes[from..to].repeat(1 + self.below(40));
                    bytes.splice(from..from, part);
                }
                3 => {
                    let token = self.pick(&TOKENS).repeat(1 + self.below(3) * self.below(200));
                    bytes.splice(from..to, token.into_bytes());
                }
                4 => {
                    if let Some(byte) = bytes.get_mut(from) {
                        *byte = u8::try_from(self.below(256)).unwrap();
                    }
                }
                5 => {
                    let other = self.below(bytes.len() + 1);
                    let part = bytes[from..to].to_vec();
                    bytes.splice(other..other, part);
                }
                6 => {
                    let digits = self.number();
                    bytes.splice(from..from, digits.into_bytes());
                }
                _ => bytes.splice(from..to, self.pick(&TOKENS).bytes()).for_each(drop),
            }
        }
        bytes
    }

    pub(super) fn text(&mut self, sample: &str) -> String {
        String::from_utf8_lossy(&self.bytes(sample.as_bytes())).into_owned()
    }

    /// The beginning of `one` and the end of `other`.
    pub(super) fn splice(&mut self, one: &[u8], other: &[u8]) -> Vec<u8> {
        let mut spliced = one[..self.below(one.len() + 1)].to_vec();
        spliced.extend_from_slice(&other[self.below(other.len() + 1)..]);
        spliced
    }

    /// A number that may be slightly too large for its reader.
    fn number(&mut self) -> String {
        let power = 1_u128 << self.below(128);
        match self.below(4) {
            0 => (power - 1).to_string(),
            1 => format!("-{power}"),
            2 => "9".repeat(1 + self.below(400)),
            _ => power.to_string(),
        }
    }

    /// A text of tokens and letters only.
    pub(super) fn noise(&mut self) -> String {
        if self.once_in(8) {
            let (open, close) = *self.pick(&[
                ("{a,", "}"),
                ("[", "]"),
                ("{a: ", "}"),
                ("- ", ""),
                ("(", ")"),
                ("**/", ""),
                ("a:\n ", ""),
            ]);
            let depth = self.below(400);
            return open.repeat(depth) + "a" + &close.repeat(depth);
        }
        let length = self.below(40);
        (0..length)
            .map(|_| match self.below(3) {
                0 => char::from(b'a' + u8::try_from(self.below(26)).unwrap()).to_string(),
                _ => (*self.pick(&TOKENS)).to_owned(),
            })
            .collect()
    }

    /// A JSON body with damaged values, or else damaged bytes.
    pub(super) fn body(&mut self, body: &[u8]) -> Vec<u8> {
        match serde_json::from_slice::<Json>(body) {
            Ok(mut json) if !self.once_in(10) => {
                (0..=self.below(3)).for_each(|_| self.damage(&mut json));
                json.to_string().into_bytes()
            }
            _ => self.bytes(body),
        }
    }

    /// Changes something in `value`, at any depth. No text moves to another key.
    pub(super) fn damage(&mut self, value: &mut Json) {
        let deeper = !self.once_in(16);
        match value {
            Json::Object(fields) if deeper && !fields.is_empty() => {
                let at = self.below(fields.len());
                let name = fields.keys().nth(at).unwrap().clone();
                match self.below(16) {
                    0 => drop(fields.shift_remove(&name)),
                    1 => {
                        let noise = self.noise();
                        let value = self.extreme_value();
                        fields.insert(noise, value);
                    }
                    _ => self.damage(&mut fields[&name]),
                }
            }
            Json::Array(items) if deeper && !items.is_empty() => {
                let at = self.below(items.len());
                match self.below(12) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    2 => items.swap(0, at),
                    _ => self.damage(&mut items[at]),
                }
            }
            Json::Number(_) if self.once_in(2) => {
                *value = serde_json::from_str(&self.number()).unwrap_or_default();
            }
            value => *value = self.extreme_value(),
        }
    }

    fn extreme_value(&mut self) -> Json {
        if self.once_in(3) {
            return json!(self.noise());
        }
        match self.below(20) {
            0 => Json::Null,
            1 => json!(true),
            2 => json!(0),
            3 => json!(-1),
            4 => json!(u64::MAX),
            5 => json!(i64::MIN),
            6 => json!(1e308),
            7 => json!(0.5),
            8 => json!([]),
            9 => json!({}),
            10 => json!([null]),
            11 => json!([[], {}]),
            12 => json!({"": {"": ""}}),
            13 => json!({"id": 1}),
            14 => (0..100).fold(Json::Null, |inner, _| json!([inner])),
            15 => json!("x".repeat(5000)),
            16 => json!("https://[::"),
            17 => json!("0000-00-00T99:99:99Z"),
            18 => json!(" "),
            _ => json!("."),
        }
    }

    /// Possible headers of a response, with impossible values.
    pub(super) fn headers(&mut self, headers: &mut HeaderMap) {
        const NAMES: [&str; 15] = [
            "link",
            "x-page",
            "x-per-page",
            "x-total",
            "x-total-pages",
            "x-next-page",
            "retry-after",
            "ratelimit-reset",
            "ratelimit-limit",
            "ratelimit-remaining",
            "date",
            "etag",
            "content-type",
            "x-request-id",
            "location",
        ];
        const VALUES: [&str; 19] = [
            "",
            "0",
            "-1",
            "1",
            "2",
            "18446744073709551615",
            "18446744073709551616",
            "1.5",
            "soon",
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Fri, 31 Dec 9999 23:59:59 GMT",
            "4000000060",
            "<https://a/?page=2>; rel=\"next\"",
            "<>; rel=next, <",
            "<?page=99999999999999999999>; rel=next",
            "<https://gitlab.example.org/api/v4/x?page=2&per_page=100>; rel=\"next\"",
            "https://gitlab.example.org/api/v4/projects/42",
            "/api/v4/projects/18446744073709551616?x",
            "application/json; charset",
        ];
        for _ in 0..=self.below(3) {
            let name = HeaderName::from_static(NAMES[self.below(NAMES.len())]);
            let value = self.pick(&VALUES).as_bytes();
            let value = if self.once_in(3) { self.bytes(value) } else { value.to_vec() };
            let Ok(value) = HeaderValue::from_bytes(&value) else { continue };
            if self.once_in(2) {
                headers.append(name, value);
            } else {
                headers.insert(name, value);
            }
        }
    }
}
