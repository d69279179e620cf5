//! Compares one declared entry with its live entry, and concludes what to do.

mod fields;

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    Action, DiffContext, FieldChange, Findings, Incomplete, Note, Problem, Reason, Step, Support,
    plan_removal, problem_without_calls, release_support, subject_id,
    texts::{self, ProblemTexts, Words, words},
};
use crate::{
    address::Address,
    catalogue::{self, preset},
    cause::Cause,
    desired::{DesiredEntry, EntryPresence, subject_field},
    diagnostic::Severity,
    field::{Compare, Field},
    kind::{
        CallContext, Effect, FORMER_FIELD, FieldSelection, Identity, LiveEntry, NoCalls,
        PlannedCall, Section, Spec, calls::CallPurpose, forms, is_readable, risk,
    },
    level::AccessLevel,
    live::ExtraFact,
    origin::Origin,
    text,
    value::{Fields, Object, Value},
};

/// A declared entry under comparison.
pub(super) struct EntryDiff<'a> {
    section: Section,
    entry: &'a DesiredEntry,
    context: DiffContext<'a>,
    address: Address,
    /// The declared fields.
    values: Fields,
    /// Whether no other entry has the same address in paths.
    has_unique_path: bool,
}

impl<'a> EntryDiff<'a> {
    pub(super) fn new(section: Section, entry: &'a DesiredEntry, context: DiffContext<'a>) -> Self {
        let section_address = context.container.section(section.section);
        let address = if entry.key.is_empty() {
            section_address
        } else {
            section_address.entry(entry.key.as_str())
        };
        Self { section, entry, context, address, values: entry.values(), has_unique_path: true }
    }

    /// The fields for requests: without local ones, which this release lacks and which then only
    /// steer undrift.
    fn fields_to_send(&self) -> Cow<'_, Fields> {
        let is_local = |(name, value): &(&String, &Value)| {
            release_support(self.section, name, value, self.context.release) == Support::LocalOnly
        };
        if !self.values.iter().any(|field| is_local(&field)) {
            return Cow::Borrowed(&self.values);
        }
        let sent = self.values.iter().filter(|field| !is_local(field));
        Cow::Owned(sent.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// A copy in which each condition on a list is replaced by the list that meets it, given the
    /// `live` entry.
    fn resolve_list_conditions(&self, live: &Object) -> Option<Self> {
        Some(self.with_values(forms::resolve_conditions(self.section, &self.values, live)?))
    }

    /// A copy with other values.
    fn with_values(&self, values: Fields) -> Self {
        Self { values, address: self.address.clone(), ..*self }
    }

    /// A copy with the fields that a create must send although no manifest declares them.
    fn with_create_defaults(&self) -> Option<Self> {
        let missing = self.section.table().specs().iter().filter_map(|spec| {
            let default = spec.field.default.create.as_ref()?;
            let is_missing = !self.values.contains_key(spec.name);
            is_missing.then(|| (spec.name.to_owned(), default.clone().into()))
        });
        let mut missing = missing.peekable();
        missing.peek()?;
        Some(self.with_values(self.values.clone().into_iter().chain(missing).collect()))
    }

    /// Records whether its text in paths is one of the `ambiguous` ones, which address several
    /// entries.
    pub(super) fn with_ambiguous_texts(self, ambiguous: &BTreeSet<String>) -> Self {
        let path = self.section.scoped_kind.handle.first();
        let address = path.and_then(|path| self.values.get(path.field)?.text());
        let is_alone = !address.is_some_and(|handle| ambiguous.contains(handle));
        Self { has_unique_path: is_alone, ..self }
    }

    fn spec(&self, name: &str) -> Option<&'static Spec> {
        self.section.table().get(name)
    }

    fn field(&self, name: &str) -> &'static Field {
        self.section.field(name)
    }

    /// Returns `value` for comparison only: a secret is resolved if it is set, or if it does not
    /// matter.
    fn expose_secret<'v>(&self, name: &str, value: &'v Value) -> Cow<'v, Value> {
        let Value::Secret(reference) = value else { return Cow::Borrowed(value) };
        let secret = self.context.secrets.value(reference);
        let plain = secret.or_else(|| {
            reference.masked().filter(|masked| match self.field(name).compare {
                Compare::Location => masked
                    .as_str()
                    .is_some_and(|url| !text::url_without_user(url).contains(text::MASK)),
                // Responses show the keys of rows, never their secrets.
                compare => compare == Compare::Rows,
            })
        });
        plain.map_or(Cow::Borrowed(value), |plain| Cow::Owned(plain.into()))
    }

    /// All fields for comparison only, with the secrets that are set.
    fn expose_all(&self) -> Cow<'_, Fields> {
        if !self.values.values().any(|value| matches!(value, Value::Secret(_))) {
            return Cow::Borrowed(&self.values);
        }
        Cow::Owned(
            self.values
                .iter()
                .map(|(name, value)| (name.clone(), self.expose_secret(name, value).into_owned()))
                .collect(),
        )
    }

    /// Its identity.
    pub(super) fn identity(&self) -> Identity {
        let identity = self.section.rules().identify(self.section, &|name| {
            Some(match self.expose_secret(name, self.values.get(name)?) {
                Cow::Borrowed(value) => Cow::Borrowed(value.plain()?),
                Cow::Owned(value) => Cow::Owned(value.plain()?.clone()),
            })
        });
        // What is to be absent is not what it was called before.
        let is_present = self.entry.state == EntryPresence::Present;
        let former = if is_present { identity.former } else { Vec::new() };
        Identity { former, ..identity }
    }

    /// True if its identity contains a secret that is not set.
    pub(super) fn has_unset_identity(&self) -> bool {
        let identity = self.section.identity.iter();
        identity
            .filter_map(|name| Some((*name, self.values.get(name)?)))
            .any(|(name, value)| matches!(*self.expose_secret(name, value), Value::Secret(_)))
    }

    /// True if its identity contains a secret.
    pub(super) fn has_secret_identity(&self) -> bool {
        self.section
            .identity
            .iter()
            .any(|name| matches!(self.values.get(name), Some(Value::Secret(_))))
    }

    pub(super) fn add_incomplete(&self, reason: impl Into<Cause>, findings: &mut Findings) {
        findings
            .incomplete
            .push(Incomplete { address: self.address.clone(), reason: reason.into() });
    }

    /// The step that removes a copy of its live entry, which stays.
    pub(super) fn plan_copy_removal(&self, copy: &LiveEntry, stays: &LiveEntry) -> Step {
        let address = self.address.entry(format!("{}@{}", self.entry.key, copy.address_text()));
        let step = plan_removal(self.section, address, &self.entry.origin, copy, self.context);
        match step {
            Ok(mut step) => {
                let id = stays.address_text();
                let reason = format!("it is a copy of the {} with the id {id}", self.section.noun);
                step.effects.push(Effect::SideEffect(reason));
                Step { is_copy: true, ..step }
            }
            Err(_) => unreachable!("what may come twice can be removed, as a test holds"),
        }
    }

    /// The problem that a nearly identical entry is live.
    pub(super) fn near_match_problem(&self, live: &LiveEntry) -> Problem {
        let name = self.section.name(live.fields.raw());
        let words = words![name = text::escape(&name), id = live.address_text()];
        self.problem(texts::NEAR, words, self.section.identity.last().copied().unwrap_or_default())
    }

    /// The problem that the entry is live, and so is one with a former name.
    pub(super) fn both_live(&self, live: &LiveEntry) -> Problem {
        let other = self.section.name(live.fields.raw());
        self.problem(texts::BOTH_LIVE, words![other = text::escape(&other)], FORMER_FIELD)
    }

    fn origin(&self, field: &str) -> Origin {
        self.entry.fields.origin(field).unwrap_or_else(|| self.entry.origin.clone())
    }

    /// A problem of the field `field`. The texts may name the noun and the key of the entry.
    fn problem(&self, texts: ProblemTexts, words: Words<'_>, field: &str) -> Problem {
        let key = text::escape(&self.entry.key);
        let of_entry = words![noun = self.section.noun, key];
        Problem::from_texts(texts, &[words, of_entry].concat(), &self.address, &self.origin(field))
    }

    /// True if the service lacks a declared field.
    fn has_release_problem(&self, findings: &Findings) -> bool {
        findings.problems.iter().any(|p| p.code == "release" && p.address == self.address)
    }

    /// Why a field cannot be set yet.
    fn waits(&self, name: &str, live: Option<&LiveEntry>) -> Option<String> {
        let is_empty = self.context.facts.is_empty;
        let why = self.section.describe_wait(name, &self.values, live, is_empty);
        why.or_else(|| self.waits_for_opening(name, live?))
    }

    /// Why a field of the container itself waits that names an entry of a closed section: the edit that
    /// opens the section would fail.
    fn waits_for_opening(&self, name: &str, live: &LiveEntry) -> Option<String> {
        let followed =
            self.field(name).relations.follows.filter(|_| self.section.is_in_object())?;
        let section = self.context.sections.iter().find(|of| of.section.section == followed)?;
        let is_closed = section.section.scoped_kind.closing_settings(self.context.facts).is_some();
        let value = self.values.plain(name)?;
        let waits = is_closed
            && live.fields.raw().get(name) != Some(value)
            && section.present().any(|entry| *value == *entry.key);
        waits.then(|| format!("until the {} can be created", section.section.noun))
    }

    fn new_note(&self, reason: Reason, fields: Vec<String>) -> Note {
        Note { fields, ..Note::new(&self.address, reason, &self.entry.origin) }
    }

    /// Adds a note with the secrets that are not set, so that a plan does not look more certain
    /// than it is.
    pub(super) fn note_missing_secrets(&self, findings: &mut Findings) {
        if self.entry.state == EntryPresence::Absent {
            return;
        }
        let secrets = self.context.secrets;
        let missing = self.values.iter().filter_map(|(name, value)| {
            let sources = value.sources();
            let missing_source = sources.iter().find(|source| match value {
                Value::File(_) => secrets.missing_reason(source).is_some(),
                Value::Secret(_) | Value::Plain(_) => secrets.get(source).is_none(),
            });
            Some((name.clone(), missing_source?.to_string()))
        });
        let (fields, references): (Vec<_>, Vec<_>) = missing.unzip();
        if !fields.is_empty() {
            findings
                .notes
                .push(self.new_note(Reason::SecretMissing { secrets: references }, fields));
        }
    }

    /// Adds a problem for each secret that the service would refuse. Plain values were checked when
    /// the manifests were read.
    pub(super) fn check_secrets(&self, findings: &mut Findings) {
        let is_secret = |name: &str| matches!(self.values.get(name), Some(Value::Secret(_)));
        if self.entry.state == EntryPresence::Present
            && self.values.keys().any(|name| is_secret(name))
        {
            self.section.check(&self.expose_all(), false, &mut |fault| {
                if is_secret(fault.field) {
                    let message = self.context.secrets.redact(&fault.message);
                    let (at, origin) = (&self.address, self.origin(fault.field));
                    let problem = Problem::new(at, fault.code, message, fault.help, &origin);
                    findings.problems.push(problem);
                }
            });
        }
    }

    /// Adds a problem for each changed field that the service refuses together with an undeclared one, as it
    /// is in `after`. Returns true if there is one.
    fn check_with_live(&self, changed: &[&str], after: &Object, findings: &mut Findings) -> bool {
        let fields = after.iter().map(|(name, value)| (name.clone(), value.clone().into()));
        let known_problems = findings.problems.len();
        self.section.check(&fields.collect(), false, &mut |fault| {
            let names = [fault.field, fault.other_field.unwrap_or(fault.field)];
            if fault.severity == Severity::Error
                && names.iter().any(|name| !self.values.contains_key(name))
                && let Some(name) = names.iter().find(|name| changed.contains(name))
            {
                let (at, origin) = (&self.address, self.origin(name));
                let problem = Problem::new(at, fault.code, fault.message, fault.help, &origin);
                findings.problems.push(problem);
            }
        });
        findings.problems.len() > known_problems
    }

    fn call_context<'j>(&'j self, purpose: CallPurpose<'j>) -> CallContext<'j> {
        CallContext {
            has_unique_address: self.has_unique_path,
            ..self.context.call_context(self.section, purpose)
        }
    }

    /// The calls for a job; records why there are none.
    fn plan_calls(
        &self,
        context: &CallContext<'_>,
        findings: &mut Findings,
    ) -> Option<Vec<PlannedCall>> {
        match self.section.rules().calls(context) {
            Ok(calls) => return Some(calls),
            Err(NoCalls::LiveUnknown(cause)) => self.add_incomplete(cause, findings),
            Err(NoCalls::DependsOnRelease) => findings.add_question(ExtraFact::Release),
            Err(NoCalls::DependsOnEntries(name)) => {
                let needed_section = catalogue::section(self.context.target.scope, &name);
                needed_section
                    .into_iter()
                    .for_each(|of| findings.add_question(ExtraFact::Entries(of.section)));
            }
            Err(other) => {
                let problem =
                    problem_without_calls(other, &self.address, |field| self.origin(field));
                findings.problems.extend(problem);
            }
        }
        None
    }

    /// Compares the entry with its live entry.
    pub(super) fn plan_present(&self, live: &LiveEntry, findings: &mut Findings) {
        // Of entries that are read one by one, only inherited ones are protected, and read only if they
        // are declared as absent.
        if let Some(why) = live.protection_reason {
            if self.section.detail.is_some() {
                findings.problems.push(self.problem(texts::INHERITED, &[("why", &why)], ""));
            } else {
                findings
                    .notes
                    .push(self.new_note(Reason::Protected { why: why.into() }, Vec::new()));
            }
            return;
        }
        if self.entry.state == EntryPresence::Absent {
            let address = self.address.clone();
            let origin = &self.entry.origin;
            findings.add_removal(plan_removal(self.section, address, origin, live, self.context));
            return;
        }
        let live_after_groups = self.with_group_changes(live, findings);
        let resolved_diff = self.resolve_list_conditions(live.fields.raw());
        resolved_diff.as_ref().unwrap_or(self).plan_change(
            live,
            live_after_groups.as_ref().unwrap_or(live),
            findings,
        );
    }

    /// Adds the step that changes `live`. Risks are judged from `before`: to undo what a group of
    /// this run sets meanwhile needs no acknowledgement.
    fn plan_change(&self, before: &LiveEntry, live: &LiveEntry, findings: &mut Findings) {
        let changes = self.changes(live, findings);
        if changes.is_empty()
            || self.has_release_problem(findings)
            || self.check_visibility(live, &changes, findings)
        {
            return;
        }
        if let Some(step) = self.change_step(before, live, changes, findings) {
            self.add_step(step.with_live(live), findings);
        }
    }

    /// The step that makes these `changes` to `live`, without the live entry.
    fn change_step(
        &self,
        before: &LiveEntry,
        live: &LiveEntry,
        mut changes: Vec<FieldChange>,
        findings: &mut Findings,
    ) -> Option<Step> {
        let changed: Vec<&str> = changes.iter().map(|change| &*change.field).collect();
        let fields = self.fields_to_send();
        let context = self.call_context(CallPurpose::Change(&fields, live, &changed));
        let sends = self.plan_calls(&context, findings)?;
        let forgotten = fields.keys().filter(|name| {
            let field = self.field(name);
            let mut goes_with = changed.iter().map(|change| self.field(change).relations.sent_with);
            !changed.contains(&name.as_str())
                && (forms::is_reset(field, &changed)
                    // A secret that each request must contain is written again, too.
                    || (field.with_every_edit && !is_readable(field))
                    || (!live.fields.raw().contains_key(name.as_str())
                        && goes_with.any(|with| with == Some(name.as_str()))))
        });
        let forgotten: Vec<_> = forgotten.map(|name| self.new_change(name, Some(live))).collect();
        changes.extend(forgotten);
        let step = self.new_step(Action::Update, changes, sends);
        let after = self.object_after(live.fields.raw());
        let changed: Vec<_> = step.changes.iter().map(|change| &*change.field).collect();
        if self.check_with_live(&changed, &after, findings) {
            return None;
        }
        let subject = subject_id(self.section, live);
        let before = before.fields.raw();
        let effects = self.section.rules().effects(subject, before, &after);
        let risks =
            risk::change_risks(self.section, &changed, before, &self.add_secret_values(after));
        Some(step.with_effects(effects, risks))
    }

    /// Plans an entry that is not live.
    pub(super) fn plan_absent(&self, findings: &mut Findings) {
        if self.entry.state == EntryPresence::Absent {
            return;
        }
        if self.section.only_edits() {
            let fields: Vec<_> = self.other_fields().map(str::to_owned).collect();
            let why = format!("until the service has the {}", self.section.noun);
            let waits = (!fields.is_empty()).then(|| self.new_note(Reason::Waits { why }, fields));
            return findings.notes.extend(waits);
        }
        let missing: Vec<_> =
            self.section.required.iter().filter(|name| !self.values.contains_key(name)).collect();
        if !missing.is_empty() {
            let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
            let words = words![names = names.join(", ")];
            return findings.problems.push(self.problem(texts::MISSING_FIELD, words, ""));
        }
        let mut needed = self.section.required.iter();
        if let Some((name, why)) = needed.find_map(|name| Some((name, self.waits(name, None)?))) {
            let note = self.new_note(Reason::Waits { why }, vec![(*name).to_owned()]);
            return findings.notes.push(note);
        }
        if let Some(step) = self.creation(findings) {
            self.add_step(step, findings);
        }
    }

    /// Plans an entry that may turn out to be absent, or to differ, under `condition`.
    pub(super) fn plan_possible(&self, condition: &'static str, findings: &mut Findings) {
        let step = if !self.section.only_edits() {
            self.creation(findings)
        } else if self.context.target.id.is_some() {
            self.edit_of_unread(findings)
        } else {
            // It comes into being later.
            return self.plan_absent(findings);
        };
        if let Some(step) = step {
            self.add_step(Step { possible: Some(condition), ..step }, findings);
        }
    }

    /// The step that sets all declared fields of an entry that is live, but cannot be read yet.
    fn edit_of_unread(&self, findings: &mut Findings) -> Option<Step> {
        for (name, value) in &self.values {
            self.check_support(name, value, findings);
        }
        if self.other_fields().next().is_none() || self.has_release_problem(findings) {
            return None;
        }
        let identity = self.section.identity.iter();
        let known = identity
            .filter_map(|name| Some(((*name).to_owned(), self.values.get(name)?.plain()?.clone())));
        let live = self.section.read(&known.collect(), FieldSelection::All);
        let changes = self.other_fields().map(|name| self.new_change(name, Some(&live))).collect();
        self.change_step(&live, &live, changes, findings)
    }

    /// The declared fields that do not identify the entry.
    fn other_fields(&self) -> impl Iterator<Item = &str> {
        let names = self.values.keys().map(String::as_str);
        names.filter(|name| !self.section.identity.contains(name))
    }

    fn creation(&self, findings: &mut Findings) -> Option<Step> {
        if let Some(met) = self.resolve_list_conditions(&Object::new()) {
            return met.creation(findings);
        }
        if let Some(whole) = self.with_create_defaults() {
            return whole.creation(findings);
        }
        for (name, value) in &self.values {
            self.check_support(name, value, findings);
        }
        if self.has_release_problem(findings) {
            return None;
        }
        let sent = self.fields_to_send();
        let sends = self.plan_calls(&self.call_context(CallPurpose::Create(&sent)), findings)?;
        let changes = sent.keys().filter(|name| !self.is_local_only(name));
        let changes = changes.map(|name| self.new_change(name, None)).collect();
        let subject_id = subject_field(self.section).and_then(|(name, named)| {
            self.context.names.numeric_id(named, self.values.get(name)?.text()?)
        });
        let nothing = Object::new();
        let after = self.object_after(&nothing);
        let effects = self.section.rules().effects(subject_id, &nothing, &after);
        let preset =
            |name: &str| preset::service_default(self.section, name, &self.context.target.path);
        let risks = risk::creation_risks(self.section, preset, &self.add_secret_values(after));
        Some(self.new_step(Action::Create, changes, sends).with_effects(effects, risks))
    }

    /// The fields `after` with those that are declared as secrets, for guards only.
    fn add_secret_values(&self, mut after: Object) -> Object {
        for (name, value) in &self.values {
            if matches!(value, Value::Secret(_)) {
                // No value equals a secret that is not set.
                let value = self.expose_secret(name, value).plain().cloned().unwrap_or(true.into());
                let value = forms::to_comparable(self.spec(name), &value, self.context.names);
                after.insert(name.clone(), value);
            }
        }
        after
    }

    fn new_step(&self, action: Action, changes: Vec<FieldChange>, sends: Vec<PlannedCall>) -> Step {
        let (address, origin) = (self.address.clone(), self.entry.origin.clone());
        Step::new(self.context.target.scope, address, action, origin, changes, sends)
    }

    /// The live object `before` with the declared changes, in comparable form.
    fn object_after(&self, before: &Object) -> Object {
        let mut after = before.clone();
        let plain = self.values.iter().filter_map(|(name, value)| Some((name, value.plain()?)));
        after.extend(plain.map(|(name, value)| {
            (name.clone(), forms::to_comparable(self.spec(name), value, self.context.names))
        }));
        after
    }

    /// Adds a step, unless the service would refuse it because of the group above.
    fn add_step(&self, mut step: Step, findings: &mut Findings) {
        let access = step.accesses().next();
        if let Some((user, ..)) = access.filter(|_| self.context.has_group_above()) {
            match &self.context.live.levels_above {
                None => findings.add_question(ExtraFact::Inherited),
                Some(inherited) => {
                    let declared = self.values.get("access_level").and_then(Value::plain);
                    let declared = declared.and_then(AccessLevel::parse);
                    let inherited_level = inherited.get(&user).copied().unwrap_or(0);
                    if let Some(declared) = declared.filter(|level| level.number < inherited_level)
                    {
                        findings
                            .problems
                            .push(self.below_inherited_problem(declared, inherited_level));
                        return;
                    }
                }
            }
        }
        if step.possible.is_none() {
            if step.adds_entry()
                && let Some(problem) = self.context.creation_problem(self.section, &step, findings)
            {
                return findings.problems.push(problem);
            }
            if step.taken_name().is_some() {
                self.context.mark_collision(self.section, &mut step, findings);
            }
        }
        findings.steps.push(step);
    }

    fn below_inherited_problem(&self, declared: AccessLevel, above: u8) -> Problem {
        let above = AccessLevel::parse(&above.into()).map_or("a higher level", |level| level.word);
        let words = words![above, level = declared.word];
        self.problem(texts::BELOW_INHERITED, words, "access_level")
    }
}
