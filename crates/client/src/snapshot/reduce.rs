//! Decides what a snapshot keeps of an answer: the fields that plans use, without secrets.
//!
//! The kept fields are listed, never the excluded ones: the fields in the tables of kinds, and what
//! their data names in addition. A sensitive value, or a text that [may be](judge) or contain a
//! secret, is kept only if the manifests declare that very value in plain text, because every reader
//! of the snapshot can read it there. Otherwise it is marked as withheld, as if the service did not
//! return it, or kept as a digest ([`seal`](super::seal)). If it identifies an entry, the whole
//! collection counts as not read.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    question::Query,
    seal::{SealedField, withheld},
};
use crate::{
    catalogue::{self, copies::COMPUTED},
    desired::Desired,
    digest::DigestKey,
    field::{Compare, Scope, Secrecy},
    kind::{self, FieldSelection, Parent, ReadSource, Section, Spec, forms},
    observe::keys,
    operation::{self, KeyFilter, Op, Read},
    secret::{Secrets, judge},
    text,
    value::{self, Json, Object},
};

/// The fields that plans use of entries that no kind describes, by operation.
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
    (operation::GROUP_MEMBER_GET_ALL, &["id", "username", "access_level", "state"]),
];
/// Fields that, in addition to declared ones, distinguish copies of one object from similar
/// objects.
const COPY_FIELDS: [&str; 4] = ["id", "created_at", "updated_at", "next_run_at"];

/// Sensitive values that manifests declare in plain text, by container and section, with entry and
/// field.
type PlainValues = BTreeMap<(Scope, String, &'static str), Vec<(String, String, Json)>>;

/// The parts of manifests that decide what is kept.
#[derive(Clone, Debug, Default)]
pub(super) struct DeclaredLiterals {
    plain_values: PlainValues,
    /// Declared fields that are not in any table.
    extra_fields: BTreeMap<(Scope, &'static str), BTreeSet<String>>,
}

impl DeclaredLiterals {
    /// Collects them from `desired`.
    pub(super) fn collect(desired: &Desired) -> Self {
        let mut literals = Self::default();
        for container in &desired.containers {
            for section in &container.sections {
                let (of, name) = (section.section, section.section.section);
                let extra = section.names().filter(|name| of.table().get(name).is_none());
                let extra: BTreeSet<_> = extra.map(str::to_owned).collect();
                literals.extra_fields.entry((container.scope, name)).or_default().extend(extra);
                let key = (container.scope, container.path.to_lowercase(), name);
                for entry in &section.entries {
                    let values = entry.values();
                    let plain = values.iter().filter_map(|(name, value)| {
                        let field = of.field(name);
                        let value = value.plain()?;
                        let counts = field.secrecy() != Secrecy::Open
                            || judge::contains_secret(value, Secrecy::Open);
                        let counts = counts && !forms::is_masked_in_logs(field, &values);
                        counts.then(|| (name.clone(), value.clone()))
                    });
                    let plain = plain.map(|(name, value)| (entry.key.clone(), name, value));
                    literals.plain_values.entry(key.clone()).or_default().extend(plain);
                }
            }
        }
        literals.plain_values.retain(|_, values| !values.is_empty());
        literals
    }
}

/// Reduces answers to the kept part. Errors are reasons why nothing is kept, as fragments of a
/// sentence.
#[derive(Debug)]
pub(super) struct Reducer {
    pub(super) literals: DeclaredLiterals,
    pub(super) secrets: Arc<Secrets>,
    /// The key for digests of secret values, if there is one.
    pub(super) key: Option<DigestKey>,
}

impl Reducer {
    /// The fields to request of objects of `scope`.
    pub(super) fn wanted_keys(&self, scope: Scope) -> KeyFilter {
        let (container, _) = catalogue::container(scope);
        let mut keys: BTreeSet<&str> = container.looked_at.iter().copied().collect();
        for section in catalogue::sections(scope) {
            let extra =
                self.literals.extra_fields.get(&(scope, section.section)).into_iter().flatten();
            let names = section.table().specs().iter().map(|spec| spec.name);
            keys::add_section_keys(
                section,
                &names.chain(extra.map(String::as_str)).collect(),
                &mut keys,
            );
        }
        keys::key_filter(keys)
    }

    /// The kept part of the object `raw` of a group or project.
    ///
    /// # Errors
    /// Why nothing is kept.
    pub(super) fn reduce_object(&self, scope: Scope, raw: &Object) -> Result<Object, String> {
        let (container, lookup) = catalogue::container(scope);
        let path = lookup.path_in(raw).to_lowercase();
        let mut reduced = Object::new();
        for name in container.looked_at {
            if let Some(value) = raw.get(*name) {
                let is_sign = lookup.secret_facts.contains(name);
                let value = if is_sign { Json::Null } else { self.plain(value) };
                reduced.insert((*name).to_owned(), value);
            }
        }
        for section in catalogue::sections(scope) {
            match section.scoped_kind.place {
                ReadSource::Object => reduced.extend(self.reduce_entry(section, &path, raw)?),
                ReadSource::ListField(field) | ReadSource::ObjectField { field, .. } => {
                    reduced.extend(self.reduce_field(section, &path, raw, field)?);
                    if let ReadSource::ObjectField { sign, .. } = section.scoped_kind.place
                        && let Some(value) = raw.get(sign)
                    {
                        reduced.entry(sign).or_insert_with(|| strip_values(value));
                    }
                }
                ReadSource::Container | ReadSource::List(_) | ReadSource::Optional(_) => {}
            }
        }
        Ok(reduced)
    }

    /// The kept part of the entries of `section` in the field `field` of an object.
    fn reduce_field(
        &self,
        section: Section,
        path: &str,
        raw: &Object,
        field: &str,
    ) -> Result<Option<(String, Json)>, String> {
        let Some(value) = raw.get(field) else { return Ok(None) };
        let reduced = match value {
            Json::Array(rows) => {
                let rows = rows.iter().filter_map(Json::as_object);
                let rows = rows.map(|row| self.reduce_entry(section, path, row).map(Json::Object));
                Json::Array(rows.collect::<Result<_, _>>()?)
            }
            Json::Object(part) => Json::Object(self.reduce_entry(section, path, part)?),
            _ => Json::Null,
        };
        Ok(Some((field.to_owned(), reduced)))
    }

    /// The kept part of the entries of a list, read by `op` for the container at `path`.
    ///
    /// # Errors
    /// Why nothing is kept.
    pub(super) fn reduce_list(
        &self,
        op: Op<Read>,
        path: &str,
        rows: &[Object],
    ) -> Result<Vec<Json>, String> {
        let reduced = rows.iter().map(|row| self.reduce_one(op, path, row).map(Json::Object));
        let reduced: Vec<_> = reduced.collect::<Result<_, _>>()?;
        let twice = section_of(op).filter(|section| section.allows_duplicates());
        let mut removed_by_name = BTreeMap::new();
        for (section, (row, reduced)) in twice
            .into_iter()
            .flat_map(|section| rows.iter().zip(&reduced).map(move |of| (section, of)))
        {
            let mut removed = row.clone();
            removed.retain(|name, _| {
                reduced.get(name).is_none_or(kind::is_withheld)
                    && !COMPUTED.contains(&name.as_str())
            });
            let name = section.name(section.read(row, FieldSelection::All).fields.raw());
            if removed_by_name.insert(name, removed.clone()).is_some_and(|other| other != removed) {
                return Err(format!(
                    "two {} are alike in all that is kept",
                    text::plural(section.noun)
                ));
            }
        }
        Ok(reduced)
    }

    /// The kept part of one object, or entry, read by `op` for the container at `path`.
    ///
    /// # Errors
    /// Why nothing is kept.
    pub(super) fn reduce_one(
        &self,
        op: Op<Read>,
        path: &str,
        raw: &Object,
    ) -> Result<Object, String> {
        if op.row() == operation::USER_PROJECTS.row() {
            return self.reduce_object(Scope::Project, raw);
        }
        if let Some(section) = section_of(op) {
            return self.reduce_entry(section, path, raw);
        }
        let mut nested_fields = Object::new();
        for (section, field) in nested(op).filter_map(|(of, _)| Some((of, of.scoped_kind.within?)))
        {
            nested_fields.extend(self.reduce_field(section, path, raw, field)?);
            nested_fields.extend(raw.get("id").map(|id| ("id".to_owned(), id.clone())));
        }
        if !nested_fields.is_empty() {
            return Ok(nested_fields);
        }
        let listed_fields = FIELDS_WITHOUT_KIND.iter().find(|(other, _)| other.row() == op.row());
        let mut keys: BTreeSet<&str> =
            listed_fields.into_iter().flat_map(|(_, keys)| *keys).copied().collect();
        for section in catalogue::all_sections() {
            let side = catalogue::side_list(section);
            if let Some(side) = side.filter(|side| side.list.row() == op.row()) {
                keys.extend(side.rows.keys.iter().chain(side.rows.other_keys));
                keys.extend(section.looked_at);
            }
        }
        let reduced = raw.iter().filter(|(name, _)| keys.contains(name.as_str()));
        Ok(reduced.map(|(name, value)| (name.clone(), self.plain(value))).collect())
    }

    /// The kept part of an entry of `section`.
    fn reduce_entry(&self, section: Section, path: &str, raw: &Object) -> Result<Object, String> {
        let mut reduced = Object::new();
        let (scoped_kind, raw) = (section.scoped_kind, &*section.flatten_detail(raw));
        let extra = self.literals.extra_fields.get(&(scoped_kind.scope, section.section));
        let extra = extra.into_iter().flatten().map(String::as_str);
        for name in extra.filter(|_| !matches!(scoped_kind.place, ReadSource::Container)) {
            let value = raw.get(name).filter(|value| !self.may_be_secret(value));
            reduced.extend(value.map(|value| (name.to_owned(), value.clone())));
        }
        for spec in section.table().specs() {
            let modern = spec.field.replaced_by();
            let modern = modern.filter(|name| section.table().get(name).is_none());
            let modern = modern.and_then(|name| Some((name, raw.get(name)?)));
            let modern = modern.filter(|(_, value)| !self.may_be_secret(value));
            reduced.extend(modern.map(|(name, value)| (name.to_owned(), value.clone())));
            let Some(live) = spec.field.live_name() else { continue };
            let Some(value) = raw.get(live) else { continue };
            let field = SealedField { section, path, spec, raw };
            let value = if !self.is_sensitive(&field, value) {
                readable_value(spec, value)
            } else if let Some(sealed) = self.seal_value(&field, value) {
                sealed
            } else if field.is_identity() {
                return Err(withheld(section, live).message);
            } else {
                kind::withheld_field()
            };
            reduced.insert(live.to_owned(), value);
        }
        let copies = COPY_FIELDS.iter().filter(|_| section.allows_duplicates());
        let address_fields = scoped_kind.handle.iter().map(|handle| &handle.field);
        let inherited = scoped_kind.inherited.iter().map(|inherited| &inherited.field);
        let needed = scoped_kind
            .rows
            .keys
            .iter()
            .chain(scoped_kind.rows.other_keys)
            .chain(section.looked_at);
        for name in needed.chain(address_fields).chain(inherited).chain(copies) {
            let mut specs = section.table().specs().iter();
            if let Some(value) = raw.get(*name)
                && !specs.any(|spec| spec.field.live_name() == Some(name))
            {
                reduced.entry(*name).or_insert_with(|| self.plain(value));
            }
        }
        Ok(reduced)
    }

    /// The digest or masked form that replaces the sensitive `value` of a field, if any.
    fn seal_value(&self, field: &SealedField<'_>, value: &Json) -> Option<Json> {
        if field.section.is_in_object() || field.spec.field.secrecy() == Secrecy::Open {
            return None;
        }
        field.sealed(self.key.as_ref(), value, !self.contains_known_secret(value))
    }

    /// True if a text of unknown meaning may be secret.
    fn may_be_secret(&self, value: &Json) -> bool {
        self.contains_known_secret(value) || judge::contains_secret(value, Secrecy::Open)
    }

    /// True if a text in `value` contains a secret of this run.
    fn contains_known_secret(&self, value: &Json) -> bool {
        value::texts(value).any(|text| matches!(self.secrets.redact_values(text), Cow::Owned(_)))
    }

    /// True if the live `value` of a field is secret, or may be.
    fn is_sensitive(&self, field: &SealedField<'_>, value: &Json) -> bool {
        let SealedField { section, path, spec, raw } = *field;
        let (secrecy, compare) = (spec.field.secrecy(), spec.field.compare);
        if self.contains_known_secret(value) {
            return true;
        }
        let may_be = match secrecy {
            Secrecy::Open | Secrecy::Address => judge::contains_secret(value, secrecy),
            Secrecy::Sensitive | Secrecy::Reference => !value.is_null(),
        };
        if !may_be {
            return false;
        }
        let key = (section.scoped_kind.scope, path.to_owned(), section.section);
        let is_identity = field.is_identity();
        let name = section.name(section.read(raw, FieldSelection::All).fields.raw());
        let mut declared = self.literals.plain_values.get(&key).into_iter().flatten();
        // Responses do not contain the parent.
        let is_nested = section.scoped_kind.parent.is_some();
        !declared.any(|(entry, field, declared)| {
            let is_entry = entry
                .strip_suffix(&*name)
                .is_some_and(|rest| rest.is_empty() || (is_nested && rest.ends_with('@')));
            *field == spec.name
                && (is_identity || is_entry)
                && forms::are_equal(compare, declared, value)
        })
    }

    /// A value of unknown meaning: text without what may be secret, and objects without their
    /// [values](strip_values).
    fn plain(&self, value: &Json) -> Json {
        match value {
            Json::Object(_) | Json::Array(_) => strip_values(value),
            Json::String(text) => self.secrets.redact(text).into(),
            other => other.clone(),
        }
    }
}

/// The value of a field that is not sensitive. Names in it are kept by id.
fn readable_value(spec: &Spec, value: &Json) -> Json {
    let Json::Array(rows) = value else { return value.clone() };
    let has_names = spec.field.names.is_some() || spec.field.compare == Compare::Rows;
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

/// The parts of a row that names nobody.
fn readable_row(spec: &Spec, row: &Json) -> Json {
    let parts = spec.parts.iter().filter(|part| kind::is_readable(part));
    let shown = parts.filter_map(|part| Some((part.name.to_owned(), row.get(part.name)?.clone())));
    Json::Object(shown.collect())
}

/// The sections whose live entries `op` brings.
fn sections_of(op: Op<Read>) -> impl Iterator<Item = Section> {
    catalogue::all_sections().filter(move |section| match section.scoped_kind.place {
        ReadSource::List(all) | ReadSource::Optional(all) => {
            let detail_operation = section.detail.and(section.scoped_kind.operations.get);
            all == op || detail_operation == Some(op)
        }
        ReadSource::Container
        | ReadSource::Object
        | ReadSource::ListField(_)
        | ReadSource::ObjectField { .. } => false,
    })
}

/// The section whose live entries `op` reads and that is not a field of an object.
pub(super) fn section_of(op: Op<Read>) -> Option<Section> {
    sections_of(op).find(|section| section.scoped_kind.within.is_none())
}

/// The sections with parents whose live entries `op` reads.
pub(super) fn nested(op: Op<Read>) -> impl Iterator<Item = (Section, &'static Parent)> {
    sections_of(op).filter_map(|section| Some((section, section.scoped_kind.parent?)))
}

/// The response to `query` with the id of the parent in each entry, which distinguishes entries of
/// different parents.
pub(super) fn placed(query: &Query, mut raw: Object) -> Object {
    for (section, parent) in nested(query.op) {
        let id = Json::from(query.argument(parent.argument));
        match section.scoped_kind.within {
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

/// `value` without nulls in objects and without texts, except single words such as types.
fn strip_values(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(strip_values).collect(),
        Json::Object(object) => {
            let parts = object.iter().map(|(name, value)| (name.clone(), strip_values(value)));
            Json::Object(parts.filter(|(_, value)| !value.is_null()).collect())
        }
        Json::String(text) => {
            let is_word = text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_lowercase());
            if is_word { text.as_str().into() } else { Json::Null }
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

    /// The live fields of the entry `raw`, from a snapshot and from the service.
    fn both(op: Op<Read>, raw: &Json) -> [kind::LiveFields; 2] {
        let raw = raw.as_object().unwrap();
        let reduced = reducer().reduce_one(op, "acme/shop", raw).unwrap();
        [&reduced, raw].map(|raw| section_of(op).unwrap().read(raw, FieldSelection::Known).fields)
    }

    #[test]
    fn rows_of_a_list_are_kept_with_their_keys() {
        let row = |key: &str| json!([{"key": key}]);
        let hook = json!({
            "id": 1, "url": "https://h.example.org/{Path-1}",
            "custom_headers": row("X-Token"), "url_variables": row("Path-1"),
        });
        let inputs = json!([{"name": "deploy_env", "value": "A B"}]);
        let schedule = json!({"id": 1, "description": "nightly", "inputs": inputs});
        for (op, raw) in [
            (operation::HOOK_LIST, hook.clone()),
            (operation::GROUP_HOOK_LIST, hook),
            (operation::SCHEDULE_LIST, schedule),
        ] {
            let [reduced, live] = both(op, &raw);
            assert_eq!(reduced.raw(), live.raw());
        }
    }

    #[test]
    fn a_custom_role_is_kept_with_its_level() {
        let role = json!({"id": 1, "name": "auditor", "base_access_level": 20});
        let mut raw = role.as_object().unwrap().clone();
        raw.insert("description".to_owned(), "not needed".into());
        for op in [operation::MEMBER_ROLE_LIST, operation::GROUP_MEMBER_ROLE_LIST] {
            let reduced = reducer().reduce_one(op, "acme", &raw).unwrap();
            assert_eq!(Json::Object(reduced), role);
        }
    }

    #[test]
    fn a_withheld_field_is_unknown_under_its_old_name_too() {
        let reducer = reducer();
        let raw = json!({"id": 1, "topics": ["https://bot:hunter2@h.example.org"]});
        let raw = raw.as_object().unwrap();
        let reduced = reducer.reduce_object(Scope::Project, raw).unwrap();
        let settings =
            catalogue::sections(Scope::Project).find(|of| of.section == "settings").unwrap();
        let live = settings.read(&reduced, FieldSelection::Known).fields;
        for name in ["topics", "tag_list"] {
            assert!(live.is_withheld(name) && !live.raw().contains_key(name), "{name}");
        }
    }
}
