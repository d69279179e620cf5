//! Turns one live entry into an entry of a manifest, field by field.

use super::{
    ExportSettings, SecretHandling,
    declare::DocumentBuilder,
    document::{DocEntry, SecretReference, UNMANAGED, env_reference},
};
use crate::{
    address::Address,
    catalogue::preset,
    cause::Cause,
    field::{Equality, Readback, Secrecy},
    kind::{
        FieldSpec, LiveEntry, ReadSource, Section, Shape, forms, is_readable, limits,
        needs::is_off, plain_text,
    },
    manifest::schema::find_refusal,
    secret::{Secret, is_reserved, judge},
    text::MASK,
    value::{Json, Object, texts},
    yaml::is_forbidden_char,
};

/// The reason for an omission if a response lacks a field that every response should have.
const MISSING_IN_RESPONSE: &str = "the response lacks it";

/// The reason for an omission if a live value may be secret.
const MAY_BE_CREDENTIAL: &str = "it may hold a credential";

/// An entry that is being written.
pub(super) struct EntryWriter<'d, 'a> {
    builder: &'d mut DocumentBuilder<'a>,
    section: Section,
    live: &'d LiveEntry,
    /// True if the object has fields that every edit sends, and one of these fields differs from
    /// its default. Then all of these fields are exported, even with default values, because
    /// somebody edited the object.
    is_edited: bool,
    /// The fields without which the service refuses the entry.
    needed_fields: &'static [&'static str],
    entry: DocEntry,
    /// The omitted parts, each with the reason.
    omitted_parts: Vec<String>,
}

impl<'d, 'a> EntryWriter<'d, 'a> {
    /// Converts `live` to an entry of `section`. For a section that is not a list, adds the omitted
    /// parts to `comments`.
    pub(super) fn write_entry(
        builder: &'d mut DocumentBuilder<'a>,
        section: Section,
        live: &'d LiveEntry,
        comments: &mut Vec<String>,
    ) -> DocEntry {
        let raw = live.fields.raw();
        let mut specs = section.specs().iter().filter(|spec| spec.field.with_every_edit);
        let is_edited = section.shape == Shape::Mapping
            && specs.any(|spec| {
                let value = raw.get(spec.name);
                value.is_some_and(|value| {
                    !is_default_or_empty(section, spec.name, value, builder.path)
                })
            });
        let (needed_fields, omitted_parts) = (section.needed_fields(raw), Vec::new());
        let entry = DocEntry { key: section.entry_name(raw), ..DocEntry::default() };
        let mut writer =
            Self { builder, section, live, is_edited, needed_fields, entry, omitted_parts };
        let settings = writer.builder.settings;
        for spec in section.specs().iter().filter(|spec| is_exported(section, spec, settings)) {
            let is_top_level_only =
                spec.field.available.is_only_top_level() && writer.builder.path.contains('/');
            if is_top_level_only || !section.has_field(raw, spec.name) {
                continue;
            }
            match raw.get(spec.name) {
                None => writer.record_unshown_field(spec),
                Some(value) => {
                    if let Some(reason) = writer.add_value(spec, value) {
                        return unmanaged_entry(writer.entry, spec, value, &reason);
                    }
                }
            }
        }
        writer.finish_entry();
        let Self { entry, omitted_parts, .. } = writer;
        if section.shape == Shape::List {
            let comment = (!omitted_parts.is_empty()).then(|| omitted_parts.join("; "));
            return DocEntry { comment, ..entry };
        }
        comments.extend(omitted_parts);
        entry
    }

    /// Adds references for required secrets, and a field if a removable object has none. Records
    /// required fields that are missing.
    fn finish_entry(&mut self) {
        let (section, raw) = (self.section, self.live.fields.raw());
        for (name, usual_value) in section.unmanaged_fields() {
            let value = raw.get(name).unwrap_or(&Json::Null);
            if !is_empty_value(value) && *value != false && value != usual_value {
                let name = format!("{}.{name}", section.section);
                *self.builder.document.unmanaged_fields.entry(name).or_default() += 1;
            }
        }
        // Required secrets are in no response: write references.
        for name in self.needed_fields {
            if let Some(spec) = section.spec(name).filter(|spec| !is_readable(spec.field)) {
                self.add_reference(spec, None);
            }
        }
        // If the response lacks a required field, the entry was not read completely.
        for name in section.required_fields {
            let value = raw.get(*name).filter(|value| !value.is_null());
            let field = section.field(name);
            let is_open = field.secrecy() == Secrecy::Open;
            if !value.is_some_and(|value| is_open || value.is_string())
                && (is_open || !forms::is_hidden_in_responses(field, self.live))
            {
                self.record_omitted_field(name, MISSING_IN_RESPONSE);
            }
        }
        // Write at least one field: a removable object without fields would not be declared.
        if section.is_removable() && self.entry.fields.is_empty() {
            let first_field = section.specs().iter().find_map(|spec| {
                let value = raw.get(spec.name)?;
                let is_usable = !is_empty_value(value)
                    && is_expressible(section, spec.name, value)
                    && self.confidential_reason(spec, value).is_none();
                is_usable.then(|| (spec.name.to_owned(), value.clone()))
            });
            self.entry.fields.extend(first_field);
        }
    }

    /// Records a live field that is not written.
    fn record_omitted_field(&mut self, field: &str, reason: &str) {
        let omitted_field = format!("{}/{}.{field}", self.section.section, self.entry.key);
        self.builder.document.omitted_parts.push((omitted_field, Cause::new(reason.to_owned())));
    }

    /// Records a field that the response lacks.
    fn record_unshown_field(&mut self, spec: &FieldSpec) {
        // Do not report fields that only some installations show, or whose switch is off.
        let switch = spec.field.relations.switch_field();
        let is_switch_off =
            switch.and_then(|switch| self.live.fields.raw().get(switch)).map(is_off);
        if spec.field.read != Readback::IfPresent && is_switch_off != Some(true) {
            // Report each missing field of an entry. For settings, only list the names of the
            // missing fields, because the caller's role may hide them.
            match self.section.scoped_kind.read_source {
                ReadSource::Optional(_) if !spec.field.is_nested() => {
                    self.record_omitted_field(spec.name, MISSING_IN_RESPONSE);
                }
                _ => {
                    let name = format!("{}.{}", self.section.section, spec.name);
                    self.builder.document.hidden_fields.push(name);
                }
            }
        }
        self.entry.unknown_fields.push(spec.name.to_owned());
    }

    /// Adds a field. If its value must not be written, adds a reference or records the omission
    /// instead. Returns the reason if the whole entry must not be written.
    fn add_value(&mut self, spec: &FieldSpec, value: &Json) -> Option<String> {
        let Some(reason) = self.confidential_reason(spec, value) else {
            self.add_field(spec, value);
            return None;
        };
        let (section, settings) = (self.section, self.builder.settings);
        let is_secret = value.is_string() && spec.field.secrecy() != Secrecy::Open;
        let uses_references = settings.secret_handling == SecretHandling::Env;
        if is_secret && (uses_references || self.needed_fields.contains(&spec.name)) {
            self.add_reference(spec, Some(value));
        } else if forms::is_hidden_in_responses(spec.field, self.live)
            && section.required_fields.contains(&spec.name)
            && settings.writes_create
            && uses_references
        {
            // Without this field, `apply` could not create the entry.
            self.add_reference(spec, None);
        } else if section.identity.contains(&spec.name) {
            return Some(reason);
        } else {
            self.omitted_parts.push(format!("{} not exported: {reason}", spec.name));
            self.entry.unknown_fields.push(spec.name.to_owned());
        }
        None
    }

    /// Adds a field with its value. The keys of a mapping become separate fields.
    fn add_field(&mut self, spec: &FieldSpec, value: &Json) {
        let section = self.section;
        let readable_value =
            sort_if_order_ignored(spec, forms::to_readable(Some(spec), value, self.builder.names));
        let properties = spec.schema["properties"].as_object();
        let fields: Vec<(String, Json)> = match (properties, &readable_value) {
            (Some(properties), Json::Object(object)) => properties
                .keys()
                .filter(|name| properties[name.as_str()].get("deprecated").is_none())
                .filter_map(|name| {
                    Some((format!("{}.{name}", spec.name), object.get(name)?.clone()))
                })
                .collect(),
            _ => vec![(spec.name.to_owned(), readable_value.clone())],
        };
        for (name, value) in fields {
            let is_limit = name
                .split_once('.')
                .is_some_and(|(_, key)| limits::is_limit_required(spec, key, &readable_value));
            let is_needed = is_limit
                || section.required_fields.contains(&name.as_str())
                || (self.is_edited && spec.field.with_every_edit);
            let may_omit = !self.builder.settings.includes_defaults && !is_needed;
            if may_omit && is_default_or_empty(section, &name, &value, self.builder.path) {
                continue;
            }
            if is_expressible(section, &name, &value) {
                self.entry.fields.push((name, value));
                continue;
            }
            if !is_empty_value(&value) {
                let is_collection = value.is_array() || value.is_object();
                let reason = match is_collection {
                    _ if spec.has_secret_rows() => "the service never shows its secrets",
                    true => "it names something that the token cannot see",
                    false => "a manifest cannot express it",
                };
                if !is_collection {
                    self.record_omitted_field(&name, reason);
                }
                self.omitted_parts.push(format!("{name} not exported: {reason}"));
            }
            self.entry.unknown_fields.push(name);
        }
    }

    /// The reason if the live value of a field must not be written into a manifest.
    fn confidential_reason(&self, spec: &FieldSpec, value: &Json) -> Option<String> {
        let raw = self.live.fields.raw();
        if spec.field.secrecy() == Secrecy::Open {
            return judge::contains_secret(value, Secrecy::Open).then(|| MAY_BE_CREDENTIAL.into());
        }
        if value.is_null() && !forms::is_hidden_in_responses(spec.field, self.live) {
            return Some("it has no value, which a manifest cannot express".into());
        }
        let Some(text) = value.as_str() else { return Some("the service hides it".into()) };
        if spec.field.secrecy() == Secrecy::Address {
            return judge::may_be_secret(text, Secrecy::Sensitive)
                .then(|| MAY_BE_CREDENTIAL.into());
        }
        let mut names =
            self.section.identity.iter().filter_map(|name| raw.get(*name)).map(plain_text);
        let has_secret_name = names.any(|name| judge::is_named_like_secret(&name));
        let reason = match self.section.rules().secrecy_reason(raw) {
            _ if self.builder.settings.secret_handling == SecretHandling::None => "`--values none`",
            Some(reason) => reason,
            None if has_secret_name => "its name is that of a secret",
            None if judge::may_be_secret(text, Secrecy::Sensitive) => "it looks like a secret",
            None => return None,
        };
        Some(reason.into())
    }

    /// Adds a reference instead of `value`. `value` is `None` if the service does not show the
    /// value.
    fn add_reference(&mut self, spec: &FieldSpec, value: Option<&Json>) {
        let key = &self.entry.key;
        let address =
            Address::container(self.builder.path.into()).with_section(self.section.section);
        // Name a URL by its host, because its path may be secret. The service never shows the
        // values of `Secrecy::Reference`. Add the field to their name, because an entry may have
        // several of them.
        let name_source = match spec.field.secrecy() {
            Secrecy::Address => value.map(url_host).unwrap_or_default(),
            Secrecy::Reference => format!("{key}_{}", spec.name),
            _ => key.clone(),
        };
        let name = variable_name(&address.with_entry(name_source));
        let text = value.map(plain_text).unwrap_or_default();
        let user = text.rsplit_once('@').map_or("", |(user, _)| user);
        let is_masked = spec.field.secrecy() == Secrecy::Address && user.contains(MASK);
        self.builder.document.secrets.push(SecretReference {
            section: self.section,
            key: key.clone(),
            field: spec.name.to_owned(),
            name: name.clone(),
            is_shown: value.is_some() && !is_masked,
            value: Secret::new(text),
        });
        self.entry.fields.push((spec.name.to_owned(), env_reference(&name)));
    }
}

/// True if a field is exported: manifests may declare the field, and the service shows it to the
/// caller.
fn is_exported(section: Section, spec: &FieldSpec, settings: &ExportSettings) -> bool {
    is_readable(spec.field)
        && !spec.field.is_upload()
        && !lacks_credential(section, spec)
        && section.table().is_current(spec, settings.release)
        && (settings.caller.is_administrator || !spec.field.available.needs_administrator())
}

/// True if responses omit the credential of a field. A declaration of the value without the
/// credential would remove the credential.
pub(super) fn lacks_credential(section: Section, spec: &FieldSpec) -> bool {
    spec.field.compare == Equality::Location && !section.identity.contains(&spec.name)
}

/// The entry to write if an identity field is secret: an unmanaged entry with a glob for the host of
/// its URL.
fn unmanaged_entry(entry: DocEntry, spec: &FieldSpec, value: &Json, reason: &str) -> DocEntry {
    let glob = format!("*{}*", url_host(value));
    let fields = vec![(spec.name.to_owned(), glob.into())];
    let comment = Some(format!("{} not exported: {reason}", spec.name));
    DocEntry { key: entry.key, fields, comment, state: Some(UNMANAGED), unknown_fields: Vec::new() }
}

/// The host in the URL `value`; empty if `value` is not a URL with a host.
fn url_host(value: &Json) -> String {
    let url = value.as_str().and_then(|text| url::Url::parse(text).ok());
    url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// The name of the environment variable for the field at `address`.
fn variable_name(address: &Address) -> String {
    let entry = address.entry.as_deref().unwrap_or_default();
    // The default scope of a variable is left out.
    let entry = entry.strip_suffix("@*").unwrap_or(entry);
    let mut name = String::new();
    for c in format!("{}__{entry}", address.path).chars() {
        match c.to_ascii_uppercase() {
            c if c.is_ascii_alphanumeric() => name.push(c),
            _ => name.push('_'),
        }
    }
    let is_usable = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_reserved(&name);
    if is_usable { name } else { format!("THE_{name}") }
}

/// True if a value equals the default of the service, or is empty and the field has no default.
fn is_default_or_empty(section: Section, name: &str, value: &Json, path: &str) -> bool {
    let default_value = preset::service_default(section, name, path);
    forms::are_equal(Equality::Exact, &default_value, value)
        || (default_value.is_null() && is_empty_value(value))
}

fn is_empty_value(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// True if a document may contain `value` for the field `name`.
pub(super) fn is_expressible(section: Section, name: &str, value: &Json) -> bool {
    // No manifest may contain such a text.
    if texts(value).any(|text| text.contains(is_forbidden_char)) {
        return false;
    }
    match name.split_once('.') {
        None => find_refusal(section, name, value).is_none(),
        Some((outer, inner)) => {
            let mapping = Object::from_iter([(inner.to_owned(), value.clone())]);
            find_refusal(section, outer, &mapping.into()).is_none()
        }
    }
}

/// Sorts a list whose order has no meaning: levels, then users, then groups.
fn sort_if_order_ignored(spec: &FieldSpec, mut value: Json) -> Json {
    if let Some(items) = value.as_array_mut().filter(|_| spec.field.ignores_order()) {
        let row_properties = spec.schema["items"]["properties"].as_object();
        items.sort_by_cached_key(|item| {
            let first_key = item.as_object().and_then(|item| item.keys().next());
            let position = first_key
                .and_then(|first_key| row_properties?.keys().position(|key| key == first_key));
            (position, item.to_string())
        });
    }
    value
}
