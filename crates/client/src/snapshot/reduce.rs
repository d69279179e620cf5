//! Reduces responses to the part that a snapshot keeps: the fields that plans use, without secrets.
//!
//! Only known fields are kept: the fields in the tables of kinds, and further fields that the kinds
//! list. A sensitive value, or a text that [may contain](judge) a secret, is kept only if the
//! manifests declare the same value in plain text. Everybody who gets the snapshot can then read
//! the value in the manifests anyway. Any other such value is marked as withheld, as if the service
//! did not return it, or is kept as a digest ([`seal`](super::seal)). If a withheld value
//! identifies an entry, the whole collection is marked as not read.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    question::Query,
    seal::{SealedField, withheld_failure},
};
use crate::{
    catalogue::{self, copies::COMPUTED_FIELDS},
    desired::Desired,
    digest::DigestKey,
    field::{Equality, Scope, Secrecy},
    kind::{self, FieldSelection, FieldSpec, Parent, ReadSource, Section, forms},
    observe::keys,
    operation::{self, KeyFilter, Op, Read},
    secret::{Secrets, judge},
    text,
    value::{self, Json, Object},
};

/// The fields that plans read from objects without a kind, by operation.
const FIELDS_WITHOUT_KIND: &[(Op<Read>, &[&str])] = &[
    (operation::CURRENT_USER, &["id", "username", "is_admin"]),
    (operation::VERSION_GET, &["version"]),
    (operation::NAMESPACE_GET, &["id", "full_path", "kind"]),
    (operation::NAMESPACE_FIND, &["id", "full_path", "kind"]),
    (operation::USER_FIND, &["id", "username"]),
    (operation::RUNNER_LIST, &["id", "description"]),
    (operation::RUNNER_LIST_ALL, &["id", "description"]),
    (operation::MEMBER_ROLE_LIST, &["id", "name", "base_access_level"]),
    (operation::GROUP_MEMBER_ROLE_LIST, &["id", "name", "base_access_level"]),
    (operation::GROUP_MEMBER_LIST_ALL, &["id", "username", "access_level", "state"]),
    (operation::MEMBER_LIST_ALL, &["id", "username", "access_level", "state"]),
    (operation::GROUP_MEMBER_GET_ALL, &["id", "username", "access_level", "state", "member_role"]),
    (operation::MEMBER_GET_ALL, &["id", "username", "access_level", "state", "member_role"]),
];
/// Further fields that are kept if a section allows copies of an entry. These fields decide which
/// copy stays.
const COPY_FIELDS: [&str; 4] = ["id", "created_at", "updated_at", "next_run_at"];

/// Sensitive values that manifests declare in plain text, by scope, path and section. Each value
/// has the key of its entry and the name of its field.
type PlainValues = BTreeMap<(Scope, String, &'static str), Vec<(String, String, Json)>>;

/// The parts of manifests that decide which values a snapshot keeps.
#[derive(Clone, Debug, Default)]
pub(super) struct DeclaredLiterals {
    plain_values: PlainValues,
    /// The names of declared fields that are not in any table, by scope and section.
    extra_fields: BTreeMap<(Scope, &'static str), BTreeSet<String>>,
}

impl DeclaredLiterals {
    /// Collects the literals from `desired`.
    pub(super) fn collect(desired: &Desired) -> Self {
        let mut literals = Self::default();
        for container in &desired.containers {
            for section in &container.sections {
                let (kind, section_name) = (section.kind, section.kind.section);
                let extra_fields = section.field_names().filter(|name| kind.spec(name).is_none());
                let extra_fields: BTreeSet<_> = extra_fields.map(str::to_owned).collect();
                literals
                    .extra_fields
                    .entry((container.scope, section_name))
                    .or_default()
                    .extend(extra_fields);
                let key = (container.scope, container.path.to_lowercase(), section_name);
                for entry in &section.entries {
                    let values = entry.values();
                    let plain_fields = values.iter().filter_map(|(name, value)| {
                        let field = kind.field(name);
                        let value = value.plain_json()?;
                        let may_be_secret = field.secrecy() != Secrecy::Open
                            || judge::contains_secret(value, Secrecy::Open);
                        let is_kept_as_declared =
                            may_be_secret && !forms::is_masked_in_logs(field, &values);
                        is_kept_as_declared.then(|| (name.clone(), value.clone()))
                    });
                    let plain_rows =
                        plain_fields.map(|(name, value)| (entry.key.clone(), name, value));
                    literals.plain_values.entry(key.clone()).or_default().extend(plain_rows);
                }
            }
        }
        literals.plain_values.retain(|_, values| !values.is_empty());
        literals
    }
}

/// Reduces responses to the part that a snapshot keeps. An error is the reason why a response
/// cannot be kept, as a fragment of a sentence.
#[derive(Debug)]
pub(super) struct Reducer {
    pub(super) literals: DeclaredLiterals,
    pub(super) secrets: Arc<Secrets>,
    /// The key for digests of secret values; `None` if no digests are kept.
    pub(super) key: Option<DigestKey>,
}

impl Reducer {
    /// The fields that are kept from objects of `scope`.
    pub(super) fn kept_keys(&self, scope: Scope) -> KeyFilter {
        let (container, _) = catalogue::container(scope);
        let mut keys: BTreeSet<&str> = container.looked_at.iter().copied().collect();
        for section in catalogue::sections(scope) {
            let extra_fields =
                self.literals.extra_fields.get(&(scope, section.section)).into_iter().flatten();
            let names = section.specs().iter().map(|spec| spec.name);
            let names = names.chain(extra_fields.map(String::as_str)).collect();
            keys::add_section_keys(section, &names, &mut keys);
        }
        keys::filter_for_keys(keys)
    }

    /// Reduces the object `raw` of a group or project.
    ///
    /// # Errors
    /// The reason why the object cannot be kept.
    pub(super) fn reduce_object(&self, scope: Scope, raw: &Object) -> Result<Object, String> {
        let (container, lookup) = catalogue::container(scope);
        let path = lookup.read_path(raw).to_lowercase();
        let mut reduced_object = Object::new();
        for name in container.looked_at {
            if let Some(value) = raw.get(*name) {
                let is_secret_fact = lookup.secret_facts.contains(name);
                let value = if is_secret_fact { Json::Null } else { self.redact_unknown(value) };
                reduced_object.insert((*name).to_owned(), value);
            }
        }
        for section in catalogue::sections(scope) {
            match section.scoped_kind.read_source {
                ReadSource::Object => {
                    reduced_object.extend(self.reduce_entry(section, &path, raw)?);
                }
                ReadSource::ListField(field) => {
                    reduced_object.extend(self.reduce_field(section, &path, raw, field)?);
                }
                ReadSource::ObjectField { field, marker_field: marker } => {
                    reduced_object.extend(self.reduce_field(section, &path, raw, field)?);
                    if let Some(value) = raw.get(marker) {
                        reduced_object.entry(marker).or_insert_with(|| strip_values(value));
                    }
                }
                ReadSource::Container | ReadSource::List(_) | ReadSource::Optional(_) => {}
            }
        }
        Ok(reduced_object)
    }

    /// Reduces the entries of `section` in the field `field` of an object.
    fn reduce_field(
        &self,
        section: Section,
        path: &str,
        raw: &Object,
        field: &str,
    ) -> Result<Option<(String, Json)>, String> {
        let Some(value) = raw.get(field) else { return Ok(None) };
        let reduced_value = match value {
            Json::Array(rows) => {
                let rows = rows.iter().filter_map(Json::as_object);
                let rows = rows.map(|row| self.reduce_entry(section, path, row).map(Json::Object));
                Json::Array(rows.collect::<Result<_, _>>()?)
            }
            Json::Object(object) => Json::Object(self.reduce_entry(section, path, object)?),
            _ => Json::Null,
        };
        Ok(Some((field.to_owned(), reduced_value)))
    }

    /// Reduces the rows of a list that `op` read for the container at `path`.
    ///
    /// # Errors
    /// The reason why the rows cannot be kept.
    pub(super) fn reduce_list(
        &self,
        op: Op<Read>,
        path: &str,
        rows: &[Object],
    ) -> Result<Vec<Json>, String> {
        let reduced_rows = rows.iter().map(|row| self.reduce_row(op, path, row).map(Json::Object));
        let reduced_rows: Vec<_> = reduced_rows.collect::<Result<_, _>>()?;
        let section_with_duplicates =
            find_read_section(op).filter(|section| section.allows_duplicates());
        let Some(section) = section_with_duplicates else { return Ok(reduced_rows) };
        let mut removed_fields_by_entry = BTreeMap::new();
        for (row, reduced_row) in rows.iter().zip(&reduced_rows) {
            let mut removed_fields = row.clone();
            removed_fields.retain(|name, _| {
                reduced_row.get(name).is_none_or(kind::is_withheld)
                    && !COMPUTED_FIELDS.contains(&name.as_str())
            });
            let name = section.entry_name(section.read(row, FieldSelection::All).fields.raw());
            let earlier_removed_fields =
                removed_fields_by_entry.insert(name, removed_fields.clone());
            if earlier_removed_fields.is_some_and(|other| other != removed_fields) {
                return Err(format!(
                    "several {} have the same name and differ in fields that are not kept",
                    text::plural(section.noun)
                ));
            }
        }
        Ok(reduced_rows)
    }

    /// Reduces one object or entry that `op` read for the container at `path`.
    ///
    /// # Errors
    /// The reason why the object or entry cannot be kept.
    pub(super) fn reduce_row(
        &self,
        op: Op<Read>,
        path: &str,
        raw: &Object,
    ) -> Result<Object, String> {
        if op.row() == operation::USER_PROJECTS.row() {
            return self.reduce_object(Scope::Project, raw);
        }
        if let Some(section) = find_read_section(op) {
            return self.reduce_entry(section, path, raw);
        }
        let mut nested_fields = Object::new();
        for (section, field) in nested_sections(op)
            .filter_map(|(nested, _)| Some((nested, nested.scoped_kind.nested_field?)))
        {
            nested_fields.extend(self.reduce_field(section, path, raw, field)?);
            nested_fields.extend(raw.get("id").map(|id| ("id".to_owned(), id.clone())));
        }
        if !nested_fields.is_empty() {
            return Ok(nested_fields);
        }
        let fields_of_op = FIELDS_WITHOUT_KIND.iter().find(|(other, _)| other.row() == op.row());
        let mut keys: BTreeSet<&str> =
            fields_of_op.into_iter().flat_map(|(_, keys)| *keys).copied().collect();
        for section in catalogue::all_sections() {
            let side_list = catalogue::side_list(section);
            if let Some(side_list) = side_list.filter(|side| side.list_op.row() == op.row()) {
                keys.extend(
                    side_list
                        .entry_keys
                        .identity_keys
                        .iter()
                        .chain(side_list.entry_keys.other_keys),
                );
                keys.extend(section.looked_at);
            }
        }
        let selected_fields = raw.iter().filter(|(name, _)| keys.contains(name.as_str()));
        Ok(selected_fields
            .map(|(name, value)| (name.clone(), self.redact_unknown(value)))
            .collect())
    }

    /// Reduces an entry of `section`.
    fn reduce_entry(&self, section: Section, path: &str, raw: &Object) -> Result<Object, String> {
        let mut reduced_entry = Object::new();
        let (scoped_kind, raw) = (section.scoped_kind, &*section.flatten_detail(raw));
        let extra_fields = self.literals.extra_fields.get(&(scoped_kind.scope, section.section));
        let extra_names = extra_fields.into_iter().flatten().map(String::as_str);
        for name in
            extra_names.filter(|_| !matches!(scoped_kind.read_source, ReadSource::Container))
        {
            let value = raw.get(name).filter(|value| !self.may_be_secret(value));
            reduced_entry.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
        for spec in section.specs() {
            let replacement_name = spec.field.replacement_name();
            let replacement_name = replacement_name.filter(|name| section.spec(name).is_none());
            let replacement_field = replacement_name.and_then(|name| Some((name, raw.get(name)?)));
            let replacement_value =
                replacement_field.filter(|(_, value)| !self.may_be_secret(value));
            reduced_entry
                .extend(replacement_value.map(|(name, value)| (name.to_owned(), value.clone())));
            let Some(live_name) = spec.field.live_name() else { continue };
            let Some(value) = raw.get(live_name) else { continue };
            let field = SealedField { section, path, spec, raw };
            let value = if !self.is_sensitive(&field, value) {
                readable_value(spec, value)
            } else if let Some(sealed_value) = self.seal_value(&field, value) {
                sealed_value
            } else if field.is_identity() {
                return Err(withheld_failure(section, live_name).message);
            } else {
                kind::withheld_placeholder()
            };
            reduced_entry.insert(live_name.to_owned(), value);
        }
        let copy_fields = COPY_FIELDS.iter().filter(|_| section.allows_duplicates());
        let address_fields = scoped_kind.address_keys.iter().map(|address_key| &address_key.field);
        let inherited_fields = scoped_kind.inherited.iter().map(|inherited| &inherited.field);
        let required_fields = scoped_kind
            .entry_keys
            .identity_keys
            .iter()
            .chain(scoped_kind.entry_keys.other_keys)
            .chain(section.looked_at);
        for name in required_fields.chain(address_fields).chain(inherited_fields).chain(copy_fields)
        {
            let mut specs = section.specs().iter();
            if let Some(value) = raw.get(*name)
                && !specs.any(|spec| spec.field.live_name() == Some(name))
            {
                reduced_entry.entry(*name).or_insert_with(|| self.redact_unknown(value));
            }
        }
        Ok(reduced_entry)
    }

    /// Returns the digest or masked form of the sensitive `value` of a field; `None` if neither is
    /// kept.
    fn seal_value(&self, field: &SealedField<'_>, value: &Json) -> Option<Json> {
        if field.section.is_part_of_container() || field.spec.field.secrecy() == Secrecy::Open {
            return None;
        }
        field.seal(self.key.as_ref(), value, !self.contains_known_secret(value))
    }

    /// True if the `value` of a field without a specification may be secret.
    fn may_be_secret(&self, value: &Json) -> bool {
        self.contains_known_secret(value) || judge::contains_secret(value, Secrecy::Open)
    }

    /// True if a text in `value` contains a secret of this run.
    fn contains_known_secret(&self, value: &Json) -> bool {
        value::texts(value).any(|text| matches!(self.secrets.redact_values(text), Cow::Owned(_)))
    }

    /// True if the live `value` of a field is or may be secret. A value that the manifests declare
    /// in plain text counts as secret only if it contains a secret of this run.
    fn is_sensitive(&self, field: &SealedField<'_>, value: &Json) -> bool {
        let SealedField { section, path, spec, raw } = *field;
        let (secrecy, compare) = (spec.field.secrecy(), spec.field.compare);
        if self.contains_known_secret(value) {
            return true;
        }
        let is_suspicious = match secrecy {
            Secrecy::Open | Secrecy::Address => judge::contains_secret(value, secrecy),
            Secrecy::Sensitive | Secrecy::Reference => !value.is_null(),
        };
        if !is_suspicious {
            return false;
        }
        let key = (section.scoped_kind.scope, path.to_owned(), section.section);
        let is_identity = field.is_identity();
        let name = section.entry_name(section.read(raw, FieldSelection::All).fields.raw());
        let mut declared_values = self.literals.plain_values.get(&key).into_iter().flatten();
        // The key of a declared entry may begin with its parent, but responses do not contain the
        // parent.
        let is_nested = section.scoped_kind.parent.is_some();
        !declared_values.any(|(entry_key, field_name, declared_value)| {
            let is_same_entry = entry_key
                .strip_suffix(&*name)
                .is_some_and(|prefix| prefix.is_empty() || (is_nested && prefix.ends_with('@')));
            *field_name == spec.name
                && (is_identity || is_same_entry)
                && forms::are_equal(compare, declared_value, value)
        })
    }

    /// Redacts the `value` of a field without a specification: removes secrets from a text, and
    /// [most texts](strip_values) from objects and lists.
    fn redact_unknown(&self, value: &Json) -> Json {
        match value {
            Json::Object(_) | Json::Array(_) => strip_values(value),
            Json::String(text) => self.secrets.redact(text).into(),
            other => other.clone(),
        }
    }
}

/// The part that is kept from the `value` of a field that is not sensitive. If rows in the value
/// refer to other objects, only the identifying and readable fields of each row are kept.
fn readable_value(spec: &FieldSpec, value: &Json) -> Json {
    let Json::Array(rows) = value else { return value.clone() };
    let has_names = spec.field.names.is_some() || spec.field.compare == Equality::Rows;
    if spec.field.relations.names_entries.is_some() {
        let rows = rows.iter();
        rows.map(|row| serde_json::json!({ "id": row["id"], "name": row["name"] })).collect()
    } else if spec.has_secret_rows() || spec.has_named_rows() {
        rows.iter().map(|row| readable_row(spec, row)).collect()
    } else if has_names && rows.iter().all(Json::is_object) {
        strip_values(value)
    } else {
        value.clone()
    }
}

/// The readable fields of a row.
fn readable_row(spec: &FieldSpec, row: &Json) -> Json {
    let readable = spec.key_fields.iter().filter(|key_field| kind::is_readable(key_field));
    let fields = readable.filter_map(|key_field| {
        Some((key_field.name.to_owned(), row.get(key_field.name)?.clone()))
    });
    Json::Object(fields.collect())
}

/// The sections whose entries `op` reads.
fn sections_read_by(op: Op<Read>) -> impl Iterator<Item = Section> {
    catalogue::all_sections().filter(move |section| match section.scoped_kind.read_source {
        ReadSource::List(list_op) | ReadSource::Optional(list_op) => {
            let detail = section.detail.and(section.scoped_kind.operations.get);
            list_op == op || detail == Some(op)
        }
        ReadSource::Container
        | ReadSource::Object
        | ReadSource::ListField(_)
        | ReadSource::ObjectField { .. } => false,
    })
}

/// The section whose entries `op` reads directly, not in a field of an object.
pub(super) fn find_read_section(op: Op<Read>) -> Option<Section> {
    sections_read_by(op).find(|section| section.scoped_kind.nested_field.is_none())
}

/// The sections whose entries have a parent and are read by `op`, each with its parent.
pub(super) fn nested_sections(op: Op<Read>) -> impl Iterator<Item = (Section, &'static Parent)> {
    sections_read_by(op).filter_map(|section| Some((section, section.scoped_kind.parent?)))
}

/// Adds the parent's id to each entry of the response to `query`, so that entries of different
/// parents can be distinguished.
pub(super) fn add_parent_id(query: &Query, mut raw: Object) -> Object {
    for (section, parent) in nested_sections(query.op) {
        let id = Json::from(query.argument(parent.argument));
        match section.scoped_kind.nested_field {
            None => drop(raw.insert(parent.argument.to_owned(), id)),
            Some(field) => {
                let rows = raw.get_mut(field).and_then(Json::as_array_mut).into_iter().flatten();
                for row in rows.filter_map(Json::as_object_mut) {
                    row.insert(parent.argument.to_owned(), id.clone());
                }
            }
        }
    }
    raw
}

/// Removes all nulls in objects, and almost all texts. Keeps only texts that are a single word in
/// lower case, such as the name of a type.
fn strip_values(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(strip_values).collect(),
        Json::Object(object) => {
            let fields = object.iter().map(|(name, value)| (name.clone(), strip_values(value)));
            Json::Object(fields.filter(|(_, value)| !value.is_null()).collect())
        }
        Json::String(text) => {
            let is_single_word =
                text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_lowercase());
            if is_single_word { text.as_str().into() } else { Json::Null }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reducer() -> Reducer {
        Reducer { literals: DeclaredLiterals::default(), secrets: Arc::default(), key: None }
    }

    /// The live fields of the entry `raw`, as read from a snapshot and from the service.
    fn read_live_fields(op: Op<Read>, raw: &Json) -> [kind::LiveFields; 2] {
        let raw = raw.as_object().unwrap();
        let reduced = reducer().reduce_row(op, "acme/shop", raw).unwrap();
        [&reduced, raw]
            .map(|raw| find_read_section(op).unwrap().read(raw, FieldSelection::Known).fields)
    }

    #[test]
    fn rows_of_a_list_are_kept_with_their_keys() {
        let make_row = |key: &str| json!([{"key": key}]);
        let hook = json!({
            "id": 1, "url": "https://h.example.org/{Path-1}",
            "custom_headers": make_row("X-Token"), "url_variables": make_row("Path-1"),
        });
        let inputs = json!([{"name": "deploy_env", "value": "A B"}]);
        let schedule = json!({"id": 1, "description": "nightly", "inputs": inputs});
        for (op, raw) in [
            (operation::HOOK_LIST, hook.clone()),
            (operation::GROUP_HOOK_LIST, hook),
            (operation::SCHEDULE_LIST, schedule),
        ] {
            let [reduced, live] = read_live_fields(op, &raw);
            assert_eq!(reduced.raw(), live.raw());
        }
    }

    #[test]
    fn a_custom_role_is_kept_with_its_level() {
        let role = json!({"id": 1, "name": "auditor", "base_access_level": 20});
        let mut raw = role.as_object().unwrap().clone();
        raw.insert("description".to_owned(), "not needed".into());
        for op in [operation::MEMBER_ROLE_LIST, operation::GROUP_MEMBER_ROLE_LIST] {
            let reduced = reducer().reduce_row(op, "acme", &raw).unwrap();
            assert_eq!(Json::Object(reduced), role);
        }
    }

    #[test]
    fn a_withheld_field_is_unknown_under_its_old_name_too() {
        let reducer = reducer();
        let raw = json!({"id": 1, "topics": ["https://bot:hunter2@h.example.org"]});
        let raw = raw.as_object().unwrap();
        let reduced = reducer.reduce_object(Scope::Project, raw).unwrap();
        let settings = catalogue::sections(Scope::Project)
            .find(|section| section.section == "settings")
            .unwrap();
        let live = settings.read(&reduced, FieldSelection::Known).fields;
        for name in ["topics", "tag_list"] {
            assert!(live.is_withheld(name) && !live.raw().contains_key(name), "{name}");
        }
    }
}
