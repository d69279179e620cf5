//! The comparison of one declared entry: its values, its identity and its problems.
//!
//! `fields` compares the entry with its live entry, `steps` plans the steps.

mod fields;
mod steps;

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    DiffContext, Findings, Incomplete, Note, Problem, Reason, Support, release_support,
    texts::{self, PlaceholderValues, ProblemTexts, placeholders},
};
use crate::{
    address::Address,
    cause::Cause,
    desired::{DeclaredEntry, EntryPresence},
    field::{Equality, Field},
    kind::{FORMER_FIELD, FieldSpec, Identity, LiveEntry, Section, forms},
    origin::Origin,
    text,
    value::{Fields, Object, Value},
};

/// The comparison of one declared entry with its live entry.
pub(super) struct EntryDiff<'a> {
    section: Section,
    entry: &'a DeclaredEntry,
    context: DiffContext<'a>,
    address: Address,
    /// The declared fields.
    values: Fields,
    /// True if no other entry has the same text in request paths.
    has_unique_path: bool,
}

impl<'a> EntryDiff<'a> {
    pub(super) fn new(
        section: Section,
        entry: &'a DeclaredEntry,
        context: DiffContext<'a>,
    ) -> Self {
        let section_address = context.container_address.with_section(section.section);
        let address = if entry.key.is_empty() {
            section_address
        } else {
            section_address.with_entry(entry.key.as_str())
        };
        Self { section, entry, context, address, values: entry.values(), has_unique_path: true }
    }

    /// The fields to send. Omits fields that the service has only in later releases, because only
    /// undrift uses them.
    fn fields_to_send(&self) -> Cow<'_, Fields> {
        let is_local = |(name, value): &(&String, &Value)| {
            release_support(self.section, name, value, self.context.release) == Support::LocalOnly
        };
        if !self.values.iter().any(|field| is_local(&field)) {
            return Cow::Borrowed(&self.values);
        }
        let sent_fields = self.values.iter().filter(|field| !is_local(field));
        Cow::Owned(sent_fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// A copy in which a list replaces each list condition, such as `at_least`. The list is the
    /// live list, changed so that it meets the condition. `None` if there are no list conditions.
    fn resolve_list_conditions(&self, live: &Object) -> Option<Self> {
        Some(self.with_values(forms::resolve_conditions(self.section, &self.values, live)?))
    }

    /// A copy with other values.
    fn with_values(&self, values: Fields) -> Self {
        Self { values, address: self.address.clone(), ..*self }
    }

    /// A copy that also has the undeclared fields that a create request must contain, with their
    /// defaults. `None` if there are no such fields.
    fn with_create_defaults(&self) -> Option<Self> {
        let default_fields = self.section.specs().iter().filter_map(|spec| {
            let default = spec.field.default.create.as_ref()?;
            let is_missing = !self.values.contains_key(spec.name);
            is_missing.then(|| (spec.name.to_owned(), default.clone().into()))
        });
        let mut missing_defaults = default_fields.peekable();
        missing_defaults.peek()?;
        Some(self.with_values(self.values.clone().into_iter().chain(missing_defaults).collect()))
    }

    /// Sets `has_unique_path` to false if `ambiguous_segments` contains the text of the entry in
    /// request paths.
    pub(super) fn mark_ambiguous_path(self, ambiguous_segments: &BTreeSet<String>) -> Self {
        let path_key = self.section.scoped_kind.address_keys.first();
        let path_text = path_key.and_then(|path| self.values.get(path.field)?.text());
        let has_unique_path =
            !path_text.is_some_and(|request_text| ambiguous_segments.contains(request_text));
        Self { has_unique_path, ..self }
    }

    fn spec(&self, name: &str) -> Option<&'static FieldSpec> {
        self.section.spec(name)
    }

    fn field(&self, name: &str) -> &'static Field {
        self.section.field(name)
    }

    /// Returns `value` for comparison only. A secret that is set is replaced by its value. A secret
    /// that is not set is replaced by its masked form if the comparison ignores the masked parts.
    fn expose_secret<'v>(&self, name: &str, value: &'v Value) -> Cow<'v, Value> {
        let Value::Secret(reference) = value else { return Cow::Borrowed(value) };
        let secret = self.context.secrets.request_value(reference);
        let plain_value = secret.or_else(|| {
            reference.masked_json().filter(|masked| match self.field(name).compare {
                Equality::Location => masked
                    .as_str()
                    .is_some_and(|url| !text::url_without_user(url).contains(text::MASK)),
                // Responses show the keys of rows, never their secrets.
                compare => compare == Equality::Rows,
            })
        });
        plain_value.map_or(Cow::Borrowed(value), |plain| Cow::Owned(plain.into()))
    }

    /// The declared fields with the values of secrets that are set, for comparison only.
    fn expose_all(&self) -> Cow<'_, Fields> {
        if !self.values.values().any(|value| matches!(value, Value::Secret(_))) {
            return Cow::Borrowed(&self.values);
        }
        let exposed = self
            .values
            .iter()
            .map(|(name, value)| (name.clone(), self.expose_secret(name, value).into_owned()));
        Cow::Owned(exposed.collect())
    }

    /// The identity that the live entry must have.
    pub(super) fn identity(&self) -> Identity {
        let identity = self.section.rules().identify(self.section, &|name| {
            Some(match self.expose_secret(name, self.values.get(name)?) {
                Cow::Borrowed(value) => Cow::Borrowed(value.plain_json()?),
                Cow::Owned(value) => Cow::Owned(value.plain_json()?.clone()),
            })
        });
        // An entry that must be absent does not match by former names.
        let is_present = self.entry.state == EntryPresence::Present;
        let former_keys = if is_present { identity.former_keys } else { Vec::new() };
        Identity { former_keys, ..identity }
    }

    /// True if the declared value of `name` is a secret.
    fn is_secret(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some(Value::Secret(_)))
    }

    /// True if the identity contains a secret that is not set.
    pub(super) fn has_unset_identity(&self) -> bool {
        let identity = self.section.identity.iter();
        let mut values = identity.filter_map(|name| Some((*name, self.values.get(name)?)));
        values.any(|(name, value)| matches!(*self.expose_secret(name, value), Value::Secret(_)))
    }

    /// True if the identity contains a secret.
    pub(super) fn has_secret_identity(&self) -> bool {
        let mut identity = self.section.identity.iter();
        identity.any(|name| self.is_secret(name))
    }

    pub(super) fn add_incomplete(&self, reason: impl Into<Cause>, findings: &mut Findings) {
        let (address, reason) = (self.address.clone(), reason.into());
        let origin = Some(self.entry.origin.clone());
        findings.incomplete.push(Incomplete { address, reason, origin });
    }

    /// The problem if a live entry has nearly the same identity.
    pub(super) fn near_match_problem(&self, live: &LiveEntry) -> Problem {
        let name = self.section.entry_name(live.fields.raw());
        let args = placeholders![name = text::escape(&name), id = live.address_text()];
        self.problem(texts::NEAR, args, self.section.identity.last().copied().unwrap_or_default())
    }

    /// The problem if the entry is live and an entry with its former name is live too.
    pub(super) fn both_live_problem(&self, live: &LiveEntry) -> Problem {
        let other_name = self.section.entry_name(live.fields.raw());
        self.problem(
            texts::BOTH_LIVE,
            placeholders![other = text::escape(&other_name)],
            FORMER_FIELD,
        )
    }

    fn origin(&self, field: &str) -> Origin {
        self.entry.fields.origin(field).unwrap_or_else(|| self.entry.origin.clone())
    }

    /// A problem of `field`. The texts may contain the placeholders `noun` and `key` of the entry.
    fn problem(&self, texts: ProblemTexts, args: PlaceholderValues<'_>, field: &str) -> Problem {
        let key = text::escape(&self.entry.key);
        let all_placeholders = [args, placeholders![noun = self.section.noun, key]].concat();
        Problem::from_texts(texts, &all_placeholders, &self.address, &self.origin(field))
    }

    /// The reason why a field cannot be set yet; `None` if it can be set.
    fn wait_reason(&self, name: &str, live: Option<&LiveEntry>) -> Option<String> {
        let is_empty = self.context.facts.has_no_branch;
        let reason = self.section.describe_wait(name, &self.values, live, is_empty);
        reason.or_else(|| self.closed_section_reason(name, live?))
    }

    /// The reason why a field of the container waits; `None` if the field can be set. A field waits
    /// if it names a declared entry of a closed section. The edit that opens the section would also
    /// set the field, and would fail because the entry does not exist yet.
    fn closed_section_reason(&self, name: &str, live: &LiveEntry) -> Option<String> {
        let followed_section =
            self.field(name).relations.follows.filter(|_| self.section.is_part_of_container())?;
        let mut sections = self.context.declared_sections.iter();
        let section = sections.find(|section| section.kind.section == followed_section)?;
        let is_closed = section.kind.scoped_kind.closing_settings(self.context.facts).is_some();
        let value = self.values.plain_json(name)?;
        let must_wait = is_closed
            && live.fields.raw().get(name) != Some(value)
            && section.present_entries().any(|entry| *value == *entry.key);
        must_wait.then(|| format!("until the {} can be created", section.kind.noun))
    }

    fn new_note(&self, reason: Reason, fields: Vec<String>) -> Note {
        Note { fields, ..Note::new(&self.address, reason, &self.entry.origin) }
    }

    /// Adds a note about secrets that are not set, because the plan cannot compare them.
    pub(super) fn note_missing_secrets(&self, findings: &mut Findings) {
        if self.entry.state == EntryPresence::Absent {
            return;
        }
        let secrets = self.context.secrets;
        let missing_sources = self.values.iter().filter_map(|(name, value)| {
            let sources = value.sources();
            let missing_source = sources.iter().find(|source| match value {
                Value::File(_) => secrets.unresolved_reason(source).is_some(),
                Value::Secret(_) | Value::Plain(_) => secrets.get(source).is_none(),
            });
            Some((name.clone(), missing_source?.to_string()))
        });
        let (fields, references): (Vec<_>, Vec<_>) = missing_sources.unzip();
        if !fields.is_empty() {
            let reason = Reason::SecretMissing { secrets: references };
            findings.notes.push(self.new_note(reason, fields));
        }
    }

    /// Adds a problem for each secret that the service would refuse. Plain values were checked when
    /// the manifests were read.
    pub(super) fn check_secrets(&self, findings: &mut Findings) {
        if self.entry.state == EntryPresence::Present
            && self.values.keys().any(|name| self.is_secret(name))
        {
            self.section.check(&self.expose_all(), false, &mut |fault| {
                if self.is_secret(fault.field) {
                    let message = self.context.secrets.redact(&fault.message);
                    let (address, origin) = (&self.address, self.origin(fault.field));
                    let problem = Problem::new(address, fault.code, message, fault.help, &origin);
                    findings.problems.push(problem);
                }
            });
        }
    }
}
