//! The fields of a kind in one scope.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use crate::{
    field::{Availability, Field, Readback, Tier, ValueType, Variant, Weakening, Word},
    level::AccessLevel,
    release::{DetectedRelease, Release},
    text::alternatives,
    value::{self, Json, Value},
};

use super::property;

/// A field of a kind: its name, its description and its schema.
#[derive(Clone, Debug)]
pub struct FieldSpec {
    /// The name in manifests.
    pub name: &'static str,
    /// The description.
    pub field: &'static Field,
    /// The JSON schema of the value of this field.
    pub schema: Json,
    /// The keys of a mapping, or of a row of a list, in the order of their description.
    pub key_fields: &'static [Field],
}

impl FieldSpec {
    /// True if the field has a default, so that manifests need not declare the field.
    pub const fn has_default(&self) -> bool {
        self.field.default.manifest.is_some()
    }

    /// True if the value of the field is a mapping that is treated as a single field.
    pub const fn is_mapping(&self) -> bool {
        matches!(self.field.value_type, ValueType::Mapping | ValueType::File)
    }

    /// The description of a key of a mapping, or of a row of a list.
    pub fn key_field(&self, key: &str) -> Option<&'static Field> {
        self.key_fields.iter().find(|field| field.name == key)
    }

    /// The keys of the rows in the declared `value`, each with its tier.
    pub fn used_key_tiers(&self, value: &Value) -> Vec<(&'static str, Tier)> {
        let rows = value.list().map_or(&[][..], Vec::as_slice);
        let used_keys = self
            .key_fields
            .iter()
            .filter(|field| rows.iter().any(|row| row.get(field.name).is_some()));
        used_keys.map(|field| (field.name, field.available.tier)).collect()
    }

    /// The first part of the declared `value` that does not exist in every release, with the release
    /// that added it. The part is a level, a word, a key of a row, or the field itself.
    pub fn required_release(&self, value: &Value) -> Option<(&str, Release)> {
        let level =
            value.plain_json().filter(|_| self.field.is_level()).and_then(AccessLevel::parse);
        let level = level.map(|level| (level.word, level.since));
        let word = self.word(value).map(|word| (word.word, word.available.since));
        let rows = value.list().filter(|_| self.has_rows()).map_or(&[][..], Vec::as_slice);
        let newer_keys =
            self.key_fields.iter().filter(|key_field| key_field.available.since.is_some());
        let newer_keys =
            newer_keys.filter(|key_field| rows.iter().any(|row| !row[key_field.name].is_null()));
        let key_requirements =
            newer_keys.map(|key_field| (key_field.name, key_field.available.since));
        let field = (self.name, self.field.available.since);
        let mut requirements = level.into_iter().chain(word).chain(key_requirements).chain([field]);
        requirements.find_map(|(name, since)| Some((name, since?)))
    }

    /// The name of the field, or the word in the declared `value`, that a release removed, with
    /// this release; `None` if no release removed them.
    fn removal_release(&self, value: &Value) -> Option<(&str, Release)> {
        let field_removal = self.field.available.until.map(|until| (self.name, until));
        field_removal
            .or_else(|| self.word(value).and_then(|word| Some((word.word, word.available.until?))))
    }

    /// The word in the declared `value`, with its releases.
    fn word(&self, value: &Value) -> Option<&'static Word> {
        let text = value.text()?;
        self.field.words.iter().find(|word| word.word == text)
    }

    /// True if a supported release does not accept a part of `value`, because the part was added after
    /// the release of the reference, or because a release removed the part.
    pub fn depends_on_release(&self, value: &Value) -> bool {
        self.removal_release(value).is_some()
            || self.required_release(value).is_some_and(|(_, since)| since.is_after_reference())
    }
}

/// The advice "use …" for a deprecated field that several fields replace. The text of the advice
/// follows ": use " in the description of `schema`.
pub fn replacement_advice(schema: &Json) -> Option<String> {
    let (_, replacement) = schema["description"].as_str()?.split_once(": use ")?;
    Some(format!("use {}", replacement.trim_end_matches('.')))
}

/// The reason why a service does not support a declared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedValue {
    /// The problem, without the release of the service.
    pub message: String,
    /// The advice.
    pub help: String,
}

/// True if a value of `schema` may have this type.
pub fn allows_type(schema: &Json, name: &str) -> bool {
    value::texts(&schema["type"]).any(|allowed_type| allowed_type == name)
}

/// True if `schema` describes a list.
pub fn is_list(schema: &Json) -> bool {
    allows_type(schema, "array")
}

/// Positions of fields, by [`name_key`].
type Positions = BTreeMap<(usize, &'static str), usize>;

/// The name with its length first. Most names differ in their length, and lengths are compared
/// faster than texts.
const fn name_key(name: &str) -> (usize, &str) {
    (name.len(), name)
}

/// Every field of a kind in one scope, built once from the description of the kind.
#[derive(Debug)]
pub struct FieldTable {
    specs: Vec<FieldSpec>,
    name_positions: Positions,
    /// The positions of fields, by the name in responses. If several fields have the same name in
    /// responses, the position of the first one.
    live_name_positions: Positions,
    /// The positions of the fields that every edit repeats.
    edit_positions: Vec<usize>,
    /// The positions of the fields that only a licensed service shows, or whose rows can prove a
    /// licence.
    evidence_positions: Vec<usize>,
    /// Pairs of positions in `specs`: a field, and another field that must be read with it.
    companion_pairs: Vec<(usize, usize)>,
    /// The variants of entries, by the word in the entry's first field. Empty if all entries have the
    /// same fields.
    variants: BTreeMap<&'static str, &'static Variant>,
    /// The schema of an entry.
    pub schema: Json,
}

/// The description of a key below `extra:`. Its value is sent unchanged, and is compared if the
/// response contains the key.
static EXTRA_FIELD: LazyLock<Field> =
    LazyLock::new(|| Field { read: Readback::IfPresent, nullable: true, ..Field::default() });

impl FieldTable {
    /// The table of `entry_field`, a mapping made by [`Field::with_implied_properties`].
    pub fn new(entry: Field) -> Self {
        let entry: &'static Field = Box::leak(Box::new(entry));
        let schema = property::mapping_schema(entry);
        let mut specs = Vec::new();
        collect_specs(None, entry, &schema, &mut specs);
        let name_positions = specs
            .iter()
            .enumerate()
            .map(|(position, spec)| (name_key(spec.name), position))
            .collect();
        let companion_pairs = find_companion_pairs(&specs, &name_positions);
        let select_positions = |is_selected: fn(&FieldSpec) -> bool| {
            let selected_specs = specs.iter().enumerate().filter(|(_, spec)| is_selected(spec));
            selected_specs.map(|(position, _)| position).collect()
        };
        let edit_positions = select_positions(|spec| spec.field.with_every_edit);
        let evidence_positions =
            select_positions(|spec| spec.field.available.tier > Tier::Free || spec.has_rows());
        let mut live_name_positions = BTreeMap::new();
        for (position, spec) in specs.iter().enumerate() {
            if let Some(live_name) = spec.field.live_name() {
                live_name_positions.entry(name_key(live_name)).or_insert(position);
            }
        }
        Self {
            specs,
            name_positions,
            live_name_positions,
            edit_positions,
            evidence_positions,
            companion_pairs,
            variants: entry.keys.first().into_iter().flat_map(Field::variants).collect(),
            schema,
        }
    }

    /// True if entries differ in their fields.
    pub fn has_variants(&self) -> bool {
        !self.variants.is_empty()
    }

    /// The variant of the entries with `word` in their first field.
    pub fn variant(&self, word: &str) -> Option<&'static Variant> {
        self.variants.get(word).copied()
    }

    /// The fields in the order of their description.
    pub fn specs(&self) -> &[FieldSpec] {
        &self.specs
    }

    /// A field by name.
    pub fn get(&self, name: &str) -> Option<&FieldSpec> {
        self.name_positions.get(&name_key(name)).map(|position| &self.specs[*position])
    }

    /// The first field that responses call `key`.
    pub fn find_by_live_name(&self, key: &str) -> Option<&FieldSpec> {
        self.live_name_positions.get(&name_key(key)).map(|position| &self.specs[*position])
    }

    /// The fields that can prove that the service is licensed: fields that only a licensed service
    /// shows, and lists with rows that only a licensed service has.
    pub fn tier_evidence(&self) -> impl Iterator<Item = &FieldSpec> {
        self.evidence_positions.iter().map(|position| &self.specs[*position])
    }

    /// The fields to read, in the order of their description: those in `selected_names`, the
    /// `always_read` fields, the fields that [must be read with](Self::companion_fields) the
    /// selected ones, and the fields that every edit repeats.
    pub fn fields_to_read(
        &self,
        selected_names: &BTreeSet<&str>,
        always_read: impl Iterator<Item = &'static str>,
    ) -> Vec<&FieldSpec> {
        let mut read_flags = vec![false; self.specs.len()];
        for position in
            selected_names.iter().filter_map(|name| self.name_positions.get(&name_key(name)))
        {
            read_flags[*position] = true;
        }
        let companion_positions = self
            .companion_pairs
            .iter()
            .filter(|(field, _)| read_flags[*field])
            .map(|(_, other)| *other);
        let always_read_positions =
            always_read.filter_map(|name| self.name_positions.get(&name_key(name)).copied());
        let repeated_positions = self.edit_positions.iter().copied();
        let other_positions: Vec<_> =
            companion_positions.chain(always_read_positions).chain(repeated_positions).collect();
        for position in other_positions {
            read_flags[position] = true;
        }
        self.specs
            .iter()
            .zip(read_flags)
            .filter_map(|(spec, is_wanted)| is_wanted.then_some(spec))
            .collect()
    }

    /// The fields that must be read with the selected fields. A selected field depends on them, or
    /// the service checks their values together with the value of a selected field.
    pub fn companion_fields(
        &self,
        is_selected: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &'static str> {
        let named_companion_pairs =
            self.companion_pairs.iter().map(|(field, other)| (self.specs[*field].name, *other));
        named_companion_pairs
            .filter(move |(field, _)| is_selected(field))
            .map(|(_, other)| self.specs[other].name)
    }

    /// True if `name` is a mapping whose keys are separate fields.
    pub fn is_spread(&self, name: &str) -> bool {
        let mut suffixes = self.specs.iter().filter_map(|spec| spec.name.strip_prefix(name));
        suffixes.any(|suffix| suffix.starts_with('.'))
    }

    /// True if manifests for a service of `release` should use `spec`: the service has the field
    /// and no replacement for it. An unknown release counts as the release of the reference.
    pub fn is_current(&self, spec: &FieldSpec, release: DetectedRelease) -> bool {
        let is_available = |spec: &FieldSpec| {
            let Availability { since, until, .. } = spec.field.available;
            since.is_none_or(|since| !since.is_after_reference() || release.is_at_least(since))
                && until.is_none_or(|until| !release.is_at_least(until))
        };
        let replacement = spec.field.replacement_name().map(|new_name| self.get(new_name));
        let is_replaced = match replacement {
            Some(replacement) => replacement.is_none_or(is_available),
            None => spec.schema.get("deprecated").is_some(),
        };
        is_available(spec) && !is_replaced
    }

    /// The reason why a service of `release` does not support the declared `value` of `spec`;
    /// `None` if the service supports it.
    pub fn unsupported_value(
        &self,
        spec: &FieldSpec,
        value: &Value,
        release: Release,
    ) -> Option<UnsupportedValue> {
        let name = spec.name;
        if let Some((removed_name, until)) =
            spec.removal_release(value).filter(|(_, until)| release >= *until)
        {
            let message = format!("`{removed_name}` is gone from release {until} on");
            let help = match replacement_advice(&spec.schema) {
                _ if removed_name != name => {
                    let options = spec.schema["enum"].as_array().into_iter().flatten();
                    let options =
                        options.filter_map(Json::as_str).filter(|word| *word != removed_name);
                    let other_words: Vec<_> = options.collect();
                    if other_words.is_empty() {
                        "use another value".into()
                    } else {
                        format!("use {}", alternatives(&other_words))
                    }
                }
                Some(advice) => advice,
                None => "leave it out".into(),
            };
            return Some(UnsupportedValue { message, help });
        }
        let (newer_name, since) =
            spec.required_release(value).filter(|_| !spec.field.available.local_before)?;
        let deprecated_spec = self
            .specs
            .iter()
            .find(|deprecated_spec| deprecated_spec.field.replacement_name() == Some(name));
        let help = deprecated_spec.map_or_else(
            || "leave it out".into(),
            |older_spec| older_spec.field.replacement_hint(older_spec.name),
        );
        let message = format!("`{newer_name}` needs release {since} or later");
        (release < since).then_some(UnsupportedValue { message, help })
    }

    /// The description of the field `name`. A name outside the table was declared below `extra:`.
    pub fn field(&self, name: &str) -> &'static Field {
        self.get(name).map_or(&*EXTRA_FIELD, |spec| spec.field)
    }

    /// The name of a field in requests.
    pub fn sent_name<'n>(&self, name: &'n str) -> &'n str {
        self.get(name).map_or(name, |spec| spec.field.sent_name())
    }

    /// The name of a field in responses, if they contain it.
    pub fn live_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        self.get(name).map_or(Some(name), |spec| spec.field.live_name())
    }
}

/// The pairs of fields that must be read together, as positions in `specs`.
fn find_companion_pairs(specs: &[FieldSpec], positions: &Positions) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for (position, FieldSpec { field, .. }) in specs.iter().enumerate() {
        let find_position = |name: &str| positions.get(&name_key(name)).copied();
        let switch = field.relations.switch_field().and_then(find_position);
        pairs.extend(switch.map(|switch| (position, switch)));
        // The service refuses some combinations of the values of these two fields.
        let relations = &field.relations;
        let related_names = [relations.at_most, relations.not_with, relations.not_before];
        let related_positions = related_names.into_iter().flatten().filter_map(find_position);
        pairs.extend(related_positions.flat_map(|other| [(position, other), (other, position)]));
        // The visibility of the container also determines who can see a feature.
        let visibility_position =
            find_position("visibility").filter(|_| field.weakens == Weakening::Shows);
        pairs.extend(visibility_position.map(|visibility| (position, visibility)));
    }
    pairs
}

/// Adds the keys of `mapping`, whose schema is `schema`, to `specs`. `prefix` is the name of a
/// spread mapping.
fn collect_specs(
    prefix: Option<&str>,
    mapping: &'static Field,
    schema: &Json,
    specs: &mut Vec<FieldSpec>,
) {
    for field in &mapping.keys {
        let schema = &schema["properties"][field.name];
        let name =
            prefix.map_or(field.name, |spread_name| format!("{spread_name}.{}", field.name).leak());
        if field.value_type == ValueType::Spread {
            collect_specs(Some(name), field, schema, specs);
            continue;
        }
        let (field, schema) = match prefix {
            None => (field, schema.clone()),
            Some(_) => {
                let spread_field =
                    Field { name, send_as: Some(field.sent_name()), ..field.clone() };
                let leaked_field: &'static Field = Box::leak(Box::new(spread_field));
                (leaked_field, property::field_schema(leaked_field))
            }
        };
        let key_fields = &property::key_defining_field(field).keys;
        specs.push(FieldSpec { name, field, schema, key_fields });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::yaml;

    /// A table of `fields`, which are descriptions in YAML.
    fn table(fields: &str) -> FieldTable {
        let fields = fields.replace("\n            ", "\n");
        let parsed = yaml::parse(&format!("- {fields}"));
        let keys = yaml::read_leaked(parsed.documents[0].to_json()).unwrap();
        FieldTable::new(Field { keys, ..Field::default() }.with_implied_properties())
    }

    #[test]
    fn a_word_is_available_in_a_range_of_releases() {
        let table = table(
            "{name: own, about: A word., type: word, weakens: never, words: [
                {word: new, about: New., available: {since: '17.7'}}, {word: old, about: Old., available: {until: '18.9'}},
            ]}",
        );
        let find_fault = |word: &str, major, minor| {
            let release = Release::new(major, minor);
            let fault =
                table.unsupported_value(&table.specs()[0], &Value::from(Json::from(word)), release);
            fault.map(|unsupported| unsupported.message)
        };
        let message = "`new` needs release 17.7 or later";
        assert_eq!(find_fault("new", 17, 6).as_deref(), Some(message));
        assert_eq!(find_fault("new", 17, 7), None);
        assert_eq!(find_fault("old", 18, 8), None);
        assert_eq!(find_fault("old", 18, 9).as_deref(), Some("`old` is gone from release 18.9 on"));
        assert_eq!(find_fault("other", 15, 8), None);
    }

    #[test]
    fn a_nullable_list_is_a_list() {
        for (json_type, expected) in [
            (json!("array"), true),
            (json!(["array", "null"]), true),
            (json!(["string", "null"]), false),
            (json!("string"), false),
        ] {
            assert_eq!(is_list(&json!({"type": json_type})), expected, "{json_type}");
        }
    }

    #[test]
    fn a_feature_is_read_with_the_visibility() {
        let table = table(
            "{name: visibility, about: Who., type: text, weakens: shows}
            - {name: wiki, about: A wiki., type: text, weakens: shows}
            - {name: name, about: A name., type: text, weakens: never}",
        );
        let companions_of = |selected_name: &str| {
            table.companion_fields(|name| name == selected_name).collect::<Vec<_>>()
        };
        assert_eq!(companions_of("wiki"), ["visibility"]);
        assert_eq!(companions_of("name"), [""; 0]);
    }

    #[test]
    fn the_keys_of_a_spread_mapping_are_separate_fields() {
        let table = table(
            "{name: own, about: One., type: text, weakens: never}
            - name: from
              about: Two.
              type: spread
              weakens: never
              keys:
              - name: host
                about: Three.
                type: spread
                weakens: never
                keys: [{name: id, about: Four., type: integer, weakens: never}]",
        );
        let names: Vec<_> = table.specs().iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["own", "from.host.id"]);
        assert_eq!(table.field("from.host.id").sent_name(), "id");
        assert!(table.is_spread("from") && table.is_spread("from.host"));
        assert!(!table.is_spread("own") && !table.is_spread("from.host.id"));
    }
}
