//! Checks single fields and pairs of fields.

use std::collections::BTreeSet;

use jiff::civil::Date;

use super::{ContainerCheck, is_inside_folder, path};
use crate::{
    desired::DeclaredFields,
    field::{Field, NamedObject, Requirement, Tier, ValueType, is_on},
    kind::{FieldSpec, Section, UnsupportedValue, needs, replacement_advice},
    manifest::{
        config,
        faults::{KeyPart, NodePosition, placeholders, texts},
    },
    origin::Sourced,
    secret::{RESERVED_PREFIXES, Reference, allowable_prefix},
    text::alternatives,
    value::{Json, Value},
};

impl ContainerCheck<'_> {
    /// Checks the fields of an entry.
    pub(super) fn check_fields(&mut self, section: Section, fields: &DeclaredFields) {
        for (name, field) in fields.iter() {
            let field = &field;
            for reference in field.value.sources() {
                self.check_reference(name, &reference, NodePosition::key(&field.origin));
            }
            let Some(spec) = section.spec(name) else { continue };
            self.check_tier(section, spec, field);
            self.check_release(section, spec, field);
            let modern = spec.field.replacement_name();
            match modern.and_then(|modern| Some((modern, fields.origin(modern)?))) {
                Some((modern, replacement_origin)) => {
                    let problem_texts = match spec.field.has_opposite_replacement() {
                        true => texts::BOTH_SPELLINGS_OPPOSITE,
                        false => texts::BOTH_SPELLINGS,
                    };
                    let origins = [&field.origin, &replacement_origin];
                    self.faults.report_keys(problem_texts, origins, placeholders![name, modern]);
                }
                None => self.check_deprecated(section, spec, field),
            }
            self.check_mapping(spec, field);
            self.check_related_fields(spec, field, fields);
            self.check_ascii(spec, field);
            self.check_expiry(spec, field);
            self.check_names(spec, field);
        }
    }

    /// Reports a field that the declared tier does not have.
    fn check_tier(&mut self, section: Section, spec: &'static FieldSpec, field: &Sourced<Value>) {
        let value = field.value.plain_json();
        if spec.has_default() && value.is_some() && value == spec.schema.get("default") {
            return;
        }
        // If the tier lacks the whole section, that is reported once, for the section.
        if spec.field.available.tier > section.tier() {
            let position = NodePosition::key(&field.origin);
            return self.check_required_tier(spec.name, spec.field.available.tier, position);
        }
        for (field_name, needed_tier) in spec.used_key_tiers(&field.value) {
            if needed_tier > section.tier() {
                let position = part_position(field, KeyPart::NestedValue(field_name));
                self.check_required_tier(field_name, needed_tier, position);
            }
        }
    }

    /// Reports `name` if the declared tier is lower than `needed`.
    pub(super) fn check_required_tier(&mut self, name: &str, needed: Tier, position: NodePosition) {
        if let Some(tier) = self.context.config.service.tier.filter(|tier| *tier < needed) {
            self.faults.report(texts::TIER, position, placeholders![name, needed, tier]);
        }
    }

    /// Reports a field or value that the declared release does not have.
    fn check_release(&mut self, section: Section, spec: &FieldSpec, field: &Sourced<Value>) {
        let Some(release) = self.context.config.service.release else { return };
        // If the release lacks the whole section, that is reported once, for the section.
        let unsupported = section.table().unsupported_value(spec, &field.value, release);
        if let Some(UnsupportedValue { message: what, help }) = unsupported
            && section.first_release().is_none_or(|since| since <= release)
        {
            self.faults.report_key(
                texts::RELEASE,
                &field.origin,
                placeholders![what, help, release],
            );
        }
    }

    /// Reports a field whose switch is off, and a level that exceeds its limit.
    fn check_related_fields(
        &mut self,
        spec: &FieldSpec,
        field: &Sourced<Value>,
        fields: &DeclaredFields,
    ) {
        let name = spec.name;
        let Some(value) = field.value.plain_json() else { return };
        let switch = spec.field.relations.switch_field();
        if let Some(switch) = switch.filter(|_| !needs::is_off(value))
            && let Some(switch_field) = fields.get(switch)
            && switch_field.value.plain_json().is_some_and(needs::is_off)
        {
            let origins = [&field.origin, &switch_field.origin];
            self.faults.report_keys(texts::SWITCHED_OFF, origins, placeholders![name, switch]);
        }
        if let Some(most) = spec.field.relations.at_most
            && let Some(limit) = fields.get(most)
            && limit.value.plain_json().is_some_and(|limit| needs::exceeds_limit(value, limit))
        {
            let args = placeholders![name, most];
            let origins = [&field.origin, &limit.origin];
            let fault = self.faults.report_values(texts::SHOWS_MORE, origins, args);
            let level = limit.value.text();
            fault.set_optional_help(
                level.map(|level| format!("write `{level}` or less, or raise `{most}`")),
            );
        }
    }

    /// Reports texts with non-ASCII characters in a field for which newer releases refuse them.
    fn check_ascii(&mut self, spec: &FieldSpec, field: &Sourced<Value>) {
        let Some(from) = spec.field.valid.ascii_from else { return };
        let items = field.value.plain_json().and_then(Json::as_array).into_iter().flatten();
        if items.filter_map(Json::as_str).all(str::is_ascii) {
            return;
        }
        let release = self.context.config.service.release;
        let is_refused = release.is_some_and(|release| release >= from);
        let problem_texts = if is_refused { texts::NO_ASCII } else { texts::NO_ASCII_LATER };
        self.faults.report_value(
            problem_texts,
            &field.origin,
            placeholders![name = spec.name, from],
        );
    }

    /// Reports a mapping that has a renamed key under both names, or a switch that is on without
    /// its limit.
    fn check_mapping(&mut self, spec: &FieldSpec, field: &Sourced<Value>) {
        let Some(object) = field.value.plain_json().and_then(Json::as_object) else { return };
        let key_position =
            |key: &str| part_position(field, KeyPart::NestedKey(vec![key.to_owned()]));
        for key_field in spec.key_fields {
            let key = key_field.name;
            let old_field =
                spec.key_fields.iter().find(|candidate| candidate.replacement_name() == Some(key));
            let old_name = old_field.map(|old| old.name).filter(|old| object.contains_key(*old));
            if let Some(old_name) = old_name.filter(|_| object.contains_key(key)) {
                let args = placeholders![name = old_name, modern = key];
                let positions = [key_position(old_name), key_position(key)];
                self.faults.report_pair(texts::BOTH_SPELLINGS_WITHIN, positions, args);
            }
            let limited_switch = key_field.relations.limits;
            let Some(switch) =
                limited_switch.filter(|_| key_field.required == Requirement::WithLimited)
            else {
                continue;
            };
            let limit = object.get(key).or_else(|| object.get(old_name?));
            if object.get(switch).is_some_and(is_on) && !limit.is_some_and(is_on) {
                let args = placeholders![name = spec.name, key];
                self.faults.report(texts::UNLIMITED, key_position(switch), args);
            }
        }
    }

    /// Warns about a deprecated field, also within a value, if the declared release has its
    /// replacement.
    fn check_deprecated(&mut self, section: Section, spec: &FieldSpec, field: &Sourced<Value>) {
        let release = self.context.config.service.release;
        let until = spec.field.available.until;
        if release.zip(until).is_some_and(|(release, until)| release >= until) {
            // `check_release` reports an error.
            return;
        }
        let new_spec = spec.field.replacement_name().and_then(|name| section.spec(name));
        let since = new_spec
            .and_then(|spec| spec.field.available.since)
            .filter(|since| since.is_after_reference());
        if let (Some(new_spec), Some(since)) = (new_spec, since) {
            if release.is_none_or(|release| release >= since) {
                let args = placeholders![name = spec.name, since];
                let fault = self.faults.report_key(texts::DEPRECATED_FROM, &field.origin, args);
                let mut help = spec.field.replacement_hint(new_spec.name);
                if release.is_none() {
                    help += "; for an older service, set `service.release` in ";
                    help += config::CONFIG_FILE;
                }
                fault.set_help(help);
            }
            return;
        }
        for (name, advice, inner_names) in
            find_deprecated(spec.name, &spec.schema, field.value.plain_json(), &[])
        {
            let key_part =
                if inner_names.is_empty() { KeyPart::Key } else { KeyPart::NestedKey(inner_names) };
            let position = part_position(field, key_part);
            self.faults
                .report(texts::DEPRECATED, position, placeholders![name])
                .set_optional_help(advice);
        }
    }

    /// Checks the name of a secret or file, without reading the secret or file.
    fn check_reference(&mut self, name: &str, reference: &Reference, position: NodePosition) {
        let (Reference::Env(target) | Reference::File(target)) = reference else { return };
        let allowed = &self.context.variables;
        let problem_texts = match reference {
            // The merge reports why the name could not be filled in.
            _ if reference.is_template() => return,
            Reference::Env(_) if !is_variable_name(target) => match target.chars().next() {
                Some('$' | '%') => texts::DOLLAR_VARIABLE,
                Some(' ') => texts::BLANK_VARIABLE,
                _ => texts::NO_VARIABLE,
            },
            Reference::Env(_) if allowed.refuses_reserved(target) => {
                match allowable_prefix(target) {
                    Some(_) => texts::RESERVED_VARIABLE,
                    None => texts::FORBIDDEN_VARIABLE,
                }
            }
            Reference::Env(_) if !allowed.matches_globs(target) => texts::VARIABLE_NOT_ALLOWED,
            Reference::File(_) if target.contains(char::is_control) => texts::CONTROL_IN_PATH,
            Reference::File(_) if !is_inside_folder(target) => texts::OUTSIDE_FILE,
            _ => return,
        };
        let (reserved, globs) =
            (alternatives(&RESERVED_PREFIXES), alternatives(&allowed.patterns()));
        let args = placeholders![name, variable = target, reserved, globs];
        self.faults.report(problem_texts, position, args);
    }

    /// Reports names of groups and projects that are not full paths, and names that are listed
    /// twice.
    fn check_names(&mut self, spec: &FieldSpec, field: &Sourced<Value>) {
        let (object_type, value) = (spec.field.names, field.value.plain_json());
        let args = placeholders![name = spec.name];
        if let Some(path) =
            value.and_then(|value| find_wrong_path(object_type, &spec.schema, value))
        {
            let fault = self.faults.report_value(texts::NO_FULL_PATH, &field.origin, args);
            fault.help = path::suggest_path_fix(path).or(fault.help.take());
        }
        let is_name_list = matches!(object_type, Some(NamedObject::User | NamedObject::Group));
        let items = value.and_then(Json::as_array).filter(|_| is_name_list);
        let mut seen_names = BTreeSet::new();
        let mut listed_names = items.into_iter().flatten().filter_map(Json::as_str);
        if !listed_names.all(|name| seen_names.insert(name.to_lowercase())) {
            self.faults.report_value(texts::LISTED_TWICE, &field.origin, args);
        }
    }

    /// Warns about access that has expired: the service refuses such entries.
    fn check_expiry(&mut self, spec: &FieldSpec, field: &Sourced<Value>) {
        let is_access_end =
            spec.field.value_type == ValueType::Date && spec.name.ends_with("expires_at");
        let text = field.value.text().filter(|_| is_access_end);
        let date = text.and_then(|day| day.parse::<Date>().ok());
        if date.is_some_and(|day| day < self.context.today) {
            // This is only a warning, because a date that has passed must not block all other
            // projects.
            let args = placeholders![name = spec.name];
            self.faults.report_key(texts::PAST_EXPIRY, &field.origin, args);
        }
    }
}

/// The position of `part` of a field.
fn part_position(field: &Sourced<Value>, part: KeyPart) -> NodePosition {
    NodePosition { origin: field.origin.clone(), key_part: part }
}

/// The deprecated fields: the field `name` itself, if its `schema` says so, and fields within its
/// `value`. Each has its name, a help text, and the path of keys to it. `keys` is the path to the
/// field `name`.
fn find_deprecated(
    name: &str,
    schema: &Json,
    value: Option<&Json>,
    keys: &[String],
) -> Vec<(String, Option<String>, Vec<String>)> {
    let mut deprecated_fields = Vec::new();
    if schema["deprecated"] == true {
        let replacement_help = Field::from_schema(schema)
            .replacement_name()
            .map(|new_name| format!("use `{new_name}`"));
        let advice = replacement_help.or_else(|| replacement_advice(schema));
        deprecated_fields.push((name.to_owned(), advice, keys.to_vec()));
    }
    for (name, value) in value.and_then(Json::as_object).into_iter().flatten() {
        if let Some(schema) = schema["properties"].get(name) {
            let keys = [keys, std::slice::from_ref(name)].concat();
            deprecated_fields.extend(find_deprecated(name, schema, Some(value), &keys));
        }
    }
    deprecated_fields
}

/// The first name of a group or project in a `value` of `schema` that is not a full path. The field
/// names objects of the type `object_type`. The caller passes this type, because reading it from a
/// schema is slow.
fn find_wrong_path<'v>(
    object_type: Option<NamedObject>,
    schema: &Json,
    value: &'v Json,
) -> Option<&'v str> {
    let is_path = matches!(object_type, Some(NamedObject::Group | NamedObject::Project));
    match value {
        Json::String(path) => {
            let has_wrong_form = path.contains([' ', ':', '@', '$', '<'])
                || path.contains("{{")
                || path.starts_with('/');
            let has_group =
                path.is_empty() || path.contains('/') || object_type != Some(NamedObject::Project);
            Some(path.as_str()).filter(|_| is_path && (has_wrong_form || !has_group))
        }
        Json::Array(items) => {
            let schema = if is_path { schema } else { &schema["items"] };
            let object_type = if is_path { object_type } else { Field::from_schema(schema).names };
            items.iter().find_map(|item| find_wrong_path(object_type, schema, item))
        }
        Json::Object(fields) => fields.iter().find_map(|(name, value)| {
            let schema = &schema["properties"][name];
            find_wrong_path(Field::from_schema(schema).names, schema, value)
        }),
        _ => None,
    }
}

/// True if `name` is a valid name of an environment variable.
fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
