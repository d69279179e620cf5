//! Removes secrets from texts while a value is serialized as JSON.
//!
//! Removing secrets from the finished JSON would not be safe. A secret that is a common word could
//! rename keys, and a secret with several lines could break the JSON. So this serializer wraps the
//! serializer that writes, and changes only texts. Names of fields and variants are words of the
//! format and are not changed. A text that is a word of the format serializes as a variant
//! ([`crate::text::serialize_word`]).

use serde::{
    Serialize, Serializer,
    ser::{
        SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};

use crate::{catalogue, secret::Secrets};

/// Decides which keys of mappings are data. Field names of structs are never data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMeaning {
    /// All keys are words of the format.
    Words,
    /// Keys are data, except those of the outermost mapping.
    Data,
}

/// A value that is serialized without secrets.
pub struct RedactedValue<'v, T: ?Sized> {
    value: &'v T,
    rule: RedactionRule<'v>,
}

impl<'v, T: ?Sized> RedactedValue<'v, T> {
    /// `value` without `secrets`.
    pub const fn new(value: &'v T, keys: KeyMeaning, secrets: &'v Secrets) -> Self {
        Self { value, rule: RedactionRule { secrets, keys, depth: Depth::Outermost } }
    }
}

impl<T: Serialize + ?Sized> Serialize for RedactedValue<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(RedactingSerializer { inner: serializer, rule: self.rule })
    }
}

#[derive(Clone, Copy)]
struct RedactionRule<'s> {
    secrets: &'s Secrets,
    keys: KeyMeaning,
    depth: Depth,
}

/// The position of a part in the redacted value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outermost,
    Key,
    Inner,
}

impl<'s> RedactionRule<'s> {
    /// `value`, a part of the redacted value, with this rule at `depth`.
    const fn redact_at<'v, T: ?Sized>(self, value: &'v T, depth: Depth) -> RedactedValue<'v, T>
    where
        's: 'v,
    {
        RedactedValue { value, rule: RedactionRule { depth, ..self } }
    }

    const fn redact_inside<'v, T: ?Sized>(self, value: &'v T) -> RedactedValue<'v, T>
    where
        's: 'v,
    {
        self.redact_at(value, Depth::Inner)
    }
}

/// Removes secrets from texts and passes them to `inner`.
struct RedactingSerializer<'s, S> {
    inner: S,
    rule: RedactionRule<'s>,
}

/// Passes on values without text.
macro_rules! pass {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method(self, $($argument: $type),*) -> Result<S::Ok, S::Error> {
            self.inner.$method($($argument),*)
        })*
    };
}

/// Begins values with parts; the same rule applies to the parts.
macro_rules! begin {
    ($($method:ident($($argument:ident: $type:ty),*) -> $parts:ident;)*) => {
        $(type $parts = RedactingSerializer<'s, S::$parts>;
        fn $method(self, $($argument: $type),*) -> Result<Self::$parts, S::Error> {
            Ok(RedactingSerializer { inner: self.inner.$method($($argument),*)?, rule: self.rule })
        })*
    };
}

impl<'s, S: Serializer> Serializer for RedactingSerializer<'s, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    pass! {
        serialize_bool(v: bool);
        serialize_i8(v: i8);
        serialize_i16(v: i16);
        serialize_i32(v: i32);
        serialize_i64(v: i64);
        serialize_u8(v: u8);
        serialize_u16(v: u16);
        serialize_u32(v: u32);
        serialize_u64(v: u64);
        serialize_f32(v: f32);
        serialize_f64(v: f64);
        serialize_char(v: char);
        serialize_bytes(v: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        match self.rule.depth {
            Depth::Key if catalogue::known_field_name(text).is_some() => {
                self.inner.serialize_str(text)
            }
            _ => self.inner.serialize_str(&self.rule.secrets.redact(text)),
        }
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.inner.serialize_some(&self.rule.redact_at(value, self.rule.depth))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_struct(name, &self.rule.redact_at(value, self.rule.depth))
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_newtype_variant(name, index, variant, &self.rule.redact_inside(value))
    }

    begin! {
        serialize_seq(length: Option<usize>) -> SerializeSeq;
        serialize_tuple(length: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, length: usize) -> SerializeTupleStruct;
        serialize_tuple_variant(name: &'static str, index: u32, variant: &'static str, length: usize) -> SerializeTupleVariant;
        serialize_map(length: Option<usize>) -> SerializeMap;
        serialize_struct(name: &'static str, length: usize) -> SerializeStruct;
        serialize_struct_variant(name: &'static str, index: u32, variant: &'static str, length: usize) -> SerializeStructVariant;
    }
}

/// Serializes the elements of lists and the fields of structs. Names of fields are words of the
/// format.
macro_rules! parts {
    ($($trait:ident::$method:ident($($name:ident)?);)*) => {
        $(impl<S: $trait> $trait for RedactingSerializer<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;
            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Result<(), S::Error> {
                self.inner.$method($($name,)? &self.rule.redact_inside(value))
            }
            fn end(self) -> Result<S::Ok, S::Error> {
                self.inner.end()
            }
        })*
    };
}

parts! {
    SerializeSeq::serialize_element();
    SerializeTuple::serialize_element();
    SerializeTupleStruct::serialize_field();
    SerializeTupleVariant::serialize_field();
    SerializeStruct::serialize_field(name);
    SerializeStructVariant::serialize_field(name);
}

impl<S: SerializeMap> SerializeMap for RedactingSerializer<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    // A report is a struct with flattened fields, so it serializes as a mapping: the outermost one.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        match self.rule {
            RedactionRule { keys: KeyMeaning::Data, depth: Depth::Inner, .. } => {
                self.inner.serialize_key(&self.rule.redact_at(key, Depth::Key))
            }
            _ => self.inner.serialize_key(key),
        }
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.inner.serialize_value(&self.rule.redact_inside(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.inner.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::{
        diagnostic::{Diagnostic, Diagnostics},
        report::{
            ApplyContent, CheckContent, PlanContent, ReportKind, RunReportState,
            json::JsonReport,
            terminal::tests::{blocked_plan, sample_applied, sample_run, shop_plan},
        },
        secret::{SECRET_MARK, Secret},
        value::{Json, Object},
    };

    fn secrets_with<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Secrets {
        let mut result = Secrets::default();
        secrets.into_iter().for_each(|secret| result.add_redaction(Secret::new(secret.as_ref())));
        result
    }

    fn redact_json(value: &Json, keys: KeyMeaning, secrets: &Secrets) -> Json {
        serde_json::from_str(
            &serde_json::to_string(&RedactedValue::new(value, keys, secrets)).unwrap(),
        )
        .unwrap()
    }

    /// Reports of every kind, without `secrets`.
    fn make_reports(secrets: &Secrets) -> Vec<Json> {
        let (run, plan, blocked, applied) =
            (sample_run(), shop_plan(), blocked_plan(), sample_applied());
        let diagnostics: Diagnostics =
            [Diagnostic::error("syntax", "it is broken").with_help("mend it")]
                .into_iter()
                .collect();
        let render_state =
            |kind, state: RunReportState<'_>| JsonReport::new(kind, state).to_text(secrets);
        let (error, help) = ("it was refused", Some("use another token"));
        let failed = RunReportState::failed(7, error, help, &diagnostics);
        let texts = [
            JsonReport::finished(ReportKind::Plan, 0, PlanContent::new(&run, &plan))
                .to_text(secrets),
            JsonReport::finished(ReportKind::Drift, 3, PlanContent::new(&run, &blocked))
                .to_text(secrets),
            JsonReport::finished(
                ReportKind::Apply,
                6,
                ApplyContent::new(&run, &plan, &applied, &[]),
            )
            .to_text(secrets),
            JsonReport::finished(ReportKind::Check, 3, CheckContent::new(&diagnostics, 0))
                .to_text(secrets),
            render_state(ReportKind::Apply, failed),
            render_state(ReportKind::Check, RunReportState::UNFINISHED),
        ];
        texts.into_iter().map(|text| serde_json::from_str(&text.unwrap()).unwrap()).collect()
    }

    /// Every key and every text of `json`.
    fn collect_words(json: &Json, words: &mut BTreeSet<String>) {
        match json {
            Json::String(text) => drop(words.insert(text.clone())),
            Json::Array(items) => items.iter().for_each(|item| self::collect_words(item, words)),
            Json::Object(object) => object.iter().for_each(|(key, value)| {
                words.insert(key.clone());
                self::collect_words(value, words);
            }),
            _ => {}
        }
    }

    /// Adds to `changed` the path of every text that lost a secret in `redacted`. The paths contain
    /// no indices of lists.
    fn collect_changes(path: &str, whole: &Json, redacted: &Json, changed: &mut BTreeSet<String>) {
        match (whole, redacted) {
            (Json::Array(whole), Json::Array(redacted)) => {
                assert_eq!(whole.len(), redacted.len());
                whole
                    .iter()
                    .zip(redacted)
                    .for_each(|(whole, redacted)| collect_changes(path, whole, redacted, changed));
            }
            (Json::Object(whole), Json::Object(redacted)) => {
                assert_eq!(
                    whole.keys().collect::<Vec<_>>(),
                    redacted.keys().collect::<Vec<_>>(),
                    "keys at {path}"
                );
                whole.iter().zip(redacted.values()).for_each(|((key, whole), redacted)| {
                    collect_changes(&format!("{path}/{key}"), whole, redacted, changed);
                });
            }
            (whole, redacted) if whole == redacted => {}
            (Json::String(_), Json::String(text)) if text.contains(SECRET_MARK) => {
                changed.insert(path.to_owned());
            }
            _ => panic!("{path}: {whole} became {redacted}"),
        }
    }

    /// Even if every word of a report were a secret, the keys and the words of the format would not be
    /// redacted.
    #[test]
    fn no_word_of_the_format_is_redacted() {
        let originals = make_reports(&Secrets::default());
        let mut words = BTreeSet::from([env!("CARGO_PKG_VERSION").to_owned()]);
        originals.iter().for_each(|report| collect_words(report, &mut words));
        let mut changed = BTreeSet::new();
        for (whole, redacted) in originals.iter().zip(&make_reports(&secrets_with(&words))) {
            collect_changes("", whole, redacted, &mut changed);
        }
        let keys: BTreeSet<&str> =
            changed.iter().map(|path| path.rsplit('/').next().unwrap()).collect();
        let data = [
            "acknowledgement",
            "caller",
            "description",
            "entry",
            "error",
            "file",
            "full",
            "help",
            "message",
            "path",
            "reason",
            "secrets",
            "target",
            "value",
            "why",
        ];
        assert!(
            keys.iter().all(|end| data.contains(end)) && !changed.contains("/steps/after/reason"),
            "{changed:?}"
        );
        for data in [
            "/target",
            "/steps/address/full",
            "/steps/changes/after/value",
            "/steps/outcome/cause/message",
            "/problems/message",
            "/diagnostics/help",
        ] {
            assert!(changed.contains(data), "{data} is not struck: {changed:?}");
        }
    }

    #[test]
    fn keys_below_extra_are_data() {
        let secrets = secrets_with(["canary-key", "description", "cadence"]);
        let value = json!({"changes": [{"value": {"canary-key": {"cadence": 1, "x canary-key": "canary-key"}}}], "canary-key": 1});
        let data = json!({"changes": [{"value": {SECRET_MARK: {"cadence": 1, "x [secret]": SECRET_MARK}}}], "canary-key": 1});
        assert_eq!(redact_json(&value, KeyMeaning::Data, &secrets), data);
        let words = json!({"changes": [{"value": {"canary-key": {"cadence": 1, "x canary-key": SECRET_MARK}}}], "canary-key": 1});
        assert_eq!(redact_json(&value, KeyMeaning::Words, &secrets), words);
        let rendered_names = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            #[derive(Serialize)]
            struct Fields(#[serde(serialize_with = "catalogue::serialize_names")] Vec<String>);
            serde_json::to_value(RedactedValue::new(&Fields(names), KeyMeaning::Data, &secrets))
                .unwrap()
        };
        assert_eq!(
            rendered_names(&["description", "cadence", "canary-key"]),
            json!(["description", "cadence", SECRET_MARK])
        );
    }

    /// `json` without secrets, by a simple second implementation.
    fn redact_simply(json: &Json, secrets: &Secrets) -> Json {
        match json {
            Json::String(text) => secrets.redact(text).into(),
            Json::Array(items) => items.iter().map(|item| redact_simply(item, secrets)).collect(),
            Json::Object(object) => object
                .iter()
                .map(|(key, value)| (key.clone(), redact_simply(value, secrets)))
                .collect::<Object>()
                .into(),
            other => other.clone(),
        }
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let text = r#"[a\n\\" <]{0,9}"#;
        let leaf = prop_oneof![
            text.prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            Just(json!(null)),
            Just(json!(true))
        ];
        leaf.prop_recursive(3, 12, 4, move |inner| {
            let list = proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from);
            let object = proptest::collection::vec((text, inner), 0..4);
            prop_oneof![
                list,
                object.prop_map(|entries| entries.into_iter().collect::<Object>().into())
            ]
        })
    }

    proptest! {
        #[test]
        fn only_texts_lose_secrets(value in any_json(), secret in r#"[a\n\\" <]{6,9}"#, is_deep: bool) {
            let value = if is_deep { json!({"a": [value, format!("x{secret}y")]}) } else { value };
            let secrets = secrets_with([&secret]);
            prop_assert_eq!(redact_json(&value, KeyMeaning::Words, &secrets), redact_simply(&value, &secrets));
        }
    }
}
