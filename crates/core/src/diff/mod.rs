//! Compares a declared section with the live section.
//!
//! Input: a [`DeclaredSection`], the live [`LiveEntries`], and further facts in [`DiffContext`].
//! Output: [`Findings`], with an unordered step for each object that differs. This module sends no
//! requests, prints nothing and knows no section by name; the result depends only on the input. A
//! field that cannot be compared becomes a note, never a step. Otherwise, each run would plan the
//! same step again.

mod bound;
mod entry;
mod findings;
mod matching;
mod step;
#[cfg(test)]
mod tests;
pub(crate) mod texts;

pub use bound::{Support, ValueLimit, release_support};
pub use findings::{Findings, GuardRefusal, HeldObject, Incomplete, Note, Problem, Reason};
pub use step::{Action, Edge, FieldChange, Label, Shown, ShownCall, Step};
pub(crate) use step::{KeptLive, StepInterner};

use std::collections::{BTreeMap, BTreeSet};

use entry::EntryDiff;
use matching::{EntryMatcher, Match};
use texts::placeholders;

use crate::{
    address::{Address, Selector},
    catalogue::{pipeline_schedules, preset},
    cause::Cause,
    desired::{DeclaredSection, GroupDeclarations, Unlisted, subject_field},
    field::{Field, NamedObject, Secrecy},
    kind::{
        self, CallContext, Capability, ContainerFacts, Effect, EntryFault, FieldSpec, LiveEntry,
        NameIndex, NoCalls, Section, Shape, Target, calls::CallPurpose, forms, risk,
    },
    live::{Caller, LiveContainer, LiveEntries},
    origin::{Origin, Sourced},
    planted::Bug,
    release::DetectedRelease,
    secret::{Reference, Secrets, judge},
    text,
    value::{Fields, Json, Object, Value},
};

/// Facts for a comparison in addition to the declared and the live section.
#[derive(Clone, Copy)]
pub struct DiffContext<'a> {
    /// The container.
    pub target: &'a Target,
    /// The address of the container.
    pub container_address: &'a Address,
    /// The token's user.
    pub caller: &'a Caller,
    /// The facts from the live object of the container; for a missing container, the facts of a new
    /// container.
    pub facts: &'a ContainerFacts,
    /// The live state of the container, with the facts that earlier
    /// [questions](Findings::questions) named.
    pub live: &'a LiveContainer,
    /// The ids of the objects that entries name.
    pub names: &'a NameIndex,
    /// The declared sections of the container.
    pub declared_sections: &'a [DeclaredSection],
    /// The declarations of the groups in the run.
    pub group_declarations: &'a GroupDeclarations,
    /// The release of the service, if it was read.
    pub release: DetectedRelease,
    /// The values of the secret references that are set.
    pub secrets: &'a Secrets,
    /// The objects whose write-only fields are sent again.
    pub resend_selectors: &'a [Selector],
}

impl DiffContext<'_> {
    /// The context of calls with this `purpose` for an entry of `section`.
    pub(crate) fn call_context<'j>(
        &'j self,
        section: Section,
        purpose: CallPurpose<'j>,
    ) -> CallContext<'j> {
        let Self { target, names, release, .. } = *self;
        CallContext { section, target, names, release, has_unique_address: true, purpose }
    }
}

/// Compares a declared section with the live section.
///
/// # Errors
/// If the live section was not read completely.
pub fn compare_section(
    declared: &DeclaredSection,
    live: &LiveEntries,
    context: DiffContext<'_>,
) -> Result<Findings, Cause> {
    let entries = live.entries().map_err(Cause::clone)?;
    let mut findings = Findings::default();
    let mut matcher = EntryMatcher::new(declared, entries);
    let mut unlisted_doubt = UnlistedDoubt::default();
    let ambiguous_segments = ambiguous_path_segments(declared, entries);
    for entry in &declared.entries {
        let entry_diff =
            EntryDiff::new(declared.kind, entry, context).mark_ambiguous_path(&ambiguous_segments);
        let (previous_match_count, identity) = (matcher.matched_count(), entry_diff.identity());
        let step_count = findings.steps.len();
        match matcher.find(&identity, entry_diff.has_unset_identity()) {
            Match::None => entry_diff.plan_absent(&mut findings),
            Match::Found(kept_entry, copies) => {
                entry_diff.plan_present(kept_entry, &mut findings);
                let copies =
                    copies.into_iter().map(|copy| entry_diff.plan_copy_removal(copy, kept_entry));
                findings.steps.extend(copies);
            }
            Match::NearlyEqual(live) => findings.problems.push(entry_diff.near_match_problem(live)),
            Match::BothNamesLive(live) => {
                findings.problems.push(entry_diff.both_live_problem(live));
            }
            Match::AlreadyMatched => {
                let reason = "another entry already matches the same live object";
                entry_diff.add_incomplete(reason, &mut findings);
            }
            Match::Ambiguous(reason) => {
                unlisted_doubt.has_ambiguous_match = true;
                entry_diff.add_incomplete(reason, &mut findings);
            }
            Match::SecretUnset => unlisted_doubt.has_ambiguous_match = true,
        }
        // If another entry renames the live entry that has this name, the step of that rename must
        // come first.
        let renaming_entry = matcher.find_renaming_entry(&identity);
        let renaming_address =
            renaming_entry.map(|entry| declared.address_of(entry, context.container_address));
        for step in findings.steps.iter_mut().skip(step_count) {
            step.effects.extend(renaming_address.clone().map(Effect::follows));
        }
        unlisted_doubt.has_unmatched_secret |=
            matcher.matched_count() == previous_match_count && entry_diff.has_secret_identity();
        entry_diff.note_missing_secrets(&mut findings);
        entry_diff.check_secrets(&mut findings);
    }
    for entry in matcher.unmatched_entries().filter(|entry| !declared.is_managed_elsewhere(entry)) {
        plan_unlisted(declared, entry, unlisted_doubt, context, &mut findings);
    }
    refuse_second_exclusive(declared, entries, context, &mut findings);
    mark_slot_freeing_removals(declared.kind, entries.len(), &mut findings);
    add_replacement_risks(declared.kind, context, &mut findings);
    Ok(findings)
}

/// Adds risks to a step that creates an entry while an entry with the same name but another scope
/// is removed. The new entry may protect less than the removed entry.
fn add_replacement_risks(section: Section, context: DiffContext<'_>, findings: &mut Findings) {
    let [name_key, _, ..] = section.scoped_kind.address_keys[..] else { return };
    let removals = findings.steps.iter().filter(|step| step.action == Action::Delete);
    let removed_entries: BTreeMap<_, _> = removals
        .filter_map(Step::live_entry)
        .map(|live| (live.address_text(), live.clone()))
        .collect();
    let risky_specs = section.specs().iter().filter(|spec| spec.field.weakens.risk().is_some());
    let risky_fields: Vec<&str> = risky_specs.map(|spec| spec.name).collect();
    for step in findings.steps.iter_mut().filter(|step| step.action == Action::Create) {
        let value_after = |name: &str| step.change(name)?.after.value().cloned();
        let text = value_after(name_key.field).map(|text| forms::plain_text(&text));
        let Some(old_entry) = text.and_then(|text| removed_entries.get(&text)) else { continue };
        let find_default =
            |name: &str| preset::service_default(section, name, &context.target.path);
        let fields_after = risky_fields.iter().map(|field| {
            ((*field).to_owned(), value_after(field).unwrap_or_else(|| find_default(field)))
        });
        let (before, after) = (old_entry.fields.raw(), fields_after.collect());
        step.effects.extend(risk::change_risks(section, &risky_fields, before, &after));
    }
}

/// The service limits the number of entries. Marks the removals that must come before the creations,
/// so that this limit is not exceeded.
fn mark_slot_freeing_removals(section: Section, live_count: usize, findings: &mut Findings) {
    let Some(max_count) = pipeline_schedules::max_entries(section) else { return };
    let creations = findings.steps.iter().filter(|step| step.action == Action::Create);
    let excess = (live_count + creations.count()).saturating_sub(max_count);
    let removals = findings.steps.iter_mut().filter(|step| step.action == Action::Delete);
    let free_slot = Effect::provides(Capability::FreeSlot);
    removals.take(excess).for_each(|step| step.effects.push(free_slot.clone()));
}

/// Refuses a new entry of an exclusive group while another entry of that group stays. A container
/// can have only one entry of an exclusive group. If the other entry is protected, also refuses an
/// update.
fn refuse_second_exclusive(
    declared: &DeclaredSection,
    live: &[LiveEntry],
    context: DiffContext<'_>,
    findings: &mut Findings,
) {
    let kind = declared.kind;
    let find_step = |name: &str, findings: &Findings| {
        let entry_address = context.container_address.with_section(kind.section).with_entry(name);
        let position = findings.steps.iter().position(|step| step.address == entry_address)?;
        Some((position, findings.steps[position].action))
    };
    for entry in &declared.entries {
        let Some(what) = kind.exclusive_set(&entry.key) else { continue };
        let Some((position, action)) = find_step(&entry.key, findings) else { continue };
        let names =
            live.iter().map(|live| (kind.entry_name(live.fields.raw()), live.protection_reason));
        let Some((other_name, reason)) = names.into_iter().find(|(name, reason)| {
            *name != entry.key
                && kind.exclusive_set(name) == Some(what)
                && (action == Action::Create || (action == Action::Update && reason.is_some()))
                && find_step(name, findings).is_none_or(|(_, action)| action != Action::Delete)
        }) else {
            continue;
        };
        let address = findings.steps.remove(position).address;
        let problem_texts =
            if reason.is_some() { texts::EXCLUSIVE_PROTECTED } else { texts::EXCLUSIVE };
        let args = placeholders![
            noun = context.target.scope.noun(),
            what,
            other = text::escape(&other_name),
            why = reason.unwrap_or_default(),
            identity = kind.identity[0]
        ];
        findings.problems.push(Problem::from_texts(problem_texts, args, &address, &entry.origin));
    }
}

/// The path segments that several live or declared entries have in common. Only the query of a
/// request distinguishes these entries.
fn ambiguous_path_segments(declared: &DeclaredSection, live: &[LiveEntry]) -> BTreeSet<String> {
    let section = declared.kind;
    let [path_key, .., _] = &section.scoped_kind.address_keys[..] else { return BTreeSet::new() };
    if section.edit != kind::EditMethod::OrReplace {
        return BTreeSet::new();
    }
    let declared_names = declared.present_entries().filter_map(|entry| {
        Some((entry.fields.get(path_key.field)?.value.text()?.to_owned(), entry.key.clone()))
    });
    let live_names =
        live.iter().map(|entry| (entry.address_text(), section.entry_name(entry.fields.raw())));
    let mut names_by_address: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (address_text, name) in declared_names.chain(live_names) {
        names_by_address.entry(address_text).or_default().insert(name);
    }
    names_by_address.retain(|_, names| names.len() > 1);
    names_by_address.into_keys().collect()
}

/// Plans a section that can be read only later, as if each entry were absent. `condition` describes
/// when the steps are needed. The steps never remove anything.
pub fn plan_possible(
    declared: &DeclaredSection,
    condition: &'static str,
    context: DiffContext<'_>,
) -> Findings {
    let mut findings = Findings::default();
    for entry in declared.present_entries() {
        let entry_diff = EntryDiff::new(declared.kind, entry, context);
        entry_diff.plan_possible(condition, &mut findings);
        entry_diff.note_missing_secrets(&mut findings);
        entry_diff.check_secrets(&mut findings);
    }
    findings
}

/// The reasons why an unlisted live entry may be a declared entry.
#[derive(Clone, Copy, Default)]
struct UnlistedDoubt {
    /// True if the match of a declared entry is ambiguous. The unlisted entry may be that declared
    /// entry.
    has_ambiguous_match: bool,
    /// True if a declared entry with a secret in its identity was not found. The unlisted entry may
    /// contain that secret, or a former value of the secret.
    has_unmatched_secret: bool,
}

/// The reason why an unlisted entry is not removed if it may be a declared entry.
const AMBIGUOUS_REASON: &str = "may be a declared entry: the match is ambiguous";

/// Plans a live entry that no manifest lists.
fn plan_unlisted(
    declared: &DeclaredSection,
    live: &LiveEntry,
    unlisted_doubt: UnlistedDoubt,
    context: DiffContext<'_>,
    findings: &mut Findings,
) {
    let section = declared.kind;
    if section.shape != Shape::List || declared.unlisted.value == Unlisted::Ignore {
        return;
    }
    let user_id =
        live.id().filter(|_| matches!(subject_field(section), Some((_, NamedObject::User))));
    let is_caller = user_id == Some(context.caller.id);
    let is_owner = user_id.is_some() && user_id == context.facts.personal_owner_id;
    let caller_reason = is_caller.then_some("the token's own access");
    let protection = live
        .protection_reason
        .or(caller_reason)
        .or_else(|| is_owner.then_some("the owner of the personal namespace"));
    let policy =
        if Bug::RemoveUnlisted.is_planted() { Unlisted::Delete } else { declared.unlisted.value };
    // Do not report bots, which exist only as long as their tokens. Do not report the access of the
    // run itself. Nobody declares such members.
    if protection.is_some() && policy != Unlisted::Delete {
        return;
    }
    let (address, origin) = (
        unlisted_address(
            section,
            live,
            unlisted_doubt.has_unmatched_secret,
            context.container_address,
        ),
        &declared.unlisted.origin,
    );
    let reason = match (
        policy,
        protection.or(unlisted_doubt.has_ambiguous_match.then_some(AMBIGUOUS_REASON)),
    ) {
        (_, Some(why)) => Reason::Protected { why: why.into() },
        (Unlisted::Delete, None) => {
            return add_removal(section, &address, origin, live, context, findings);
        }
        (Unlisted::Fail, None) => Reason::UnlistedFails,
        _ => Reason::Unlisted,
    };
    findings.notes.push(Note::new(&address, reason, origin));
}

/// The address of a live entry that no manifest lists. The address contains the id if the section
/// accepts duplicates. If `hides_name` is true, the address contains only the id.
fn unlisted_address(
    section: Section,
    live: &LiveEntry,
    hides_name: bool,
    container: &Address,
) -> Address {
    let name = || section.entry_name(live.fields.raw());
    let entry = match (hides_name, section.allows_duplicates()) {
        (true, _) => format!("id:{}", live.address_text()),
        (false, true) => format!("{}@{}", name(), live.address_text()),
        (false, false) => name(),
    };
    container.with_section(section.section).with_entry(entry)
}

/// The id of the user or group in a live entry.
fn subject_id(section: Section, live: &LiveEntry) -> Option<u64> {
    live.id().filter(|_| subject_field(section).is_some())
}

/// Adds the step that removes `live`, or the reason why there is none.
fn add_removal(
    section: Section,
    address: &Address,
    origin: &Origin,
    live: &LiveEntry,
    context: DiffContext<'_>,
    findings: &mut Findings,
) {
    match plan_removal(section, address, origin, live, context) {
        Ok(step) => findings.steps.push(step),
        Err(no_calls) => {
            let scope = context.target.scope;
            findings.add_no_calls(no_calls, scope, address, origin, |_| origin.clone());
        }
    }
}

/// The step that removes `live`.
///
/// # Errors
/// The reason why there are no calls.
fn plan_removal(
    section: Section,
    address: &Address,
    origin: &Origin,
    live: &LiveEntry,
    context: DiffContext<'_>,
) -> Result<Step, NoCalls> {
    let call_context = context.call_context(section, CallPurpose::Remove(live));
    let planned_calls = section.rules().calls(&call_context)?;
    let changes = live.fields.raw().iter().filter(|(name, _)| {
        !section.identity.contains(&name.as_str()) && section.spec(name).is_some()
    });
    let changes = changes.map(|(name, value)| {
        let before = show_live(section.spec(name), Some(value), context.names);
        FieldChange::new(name, before, Shown::Absent, None)
    });
    let (scope, changes, origin) = (context.target.scope, changes.collect(), origin.clone());
    let step = Step::new(scope, address.clone(), Action::Delete, origin, changes, planned_calls);
    let subject = subject_id(section, live);
    let effects = section.rules().effects(subject, live.fields.raw(), &Object::new());
    Ok(step.with_live(live).with_effects(effects, risk::removal_risks(section, live.fields.raw())))
}

/// Converts a live value for display, without secrets.
pub fn show_live(spec: Option<&FieldSpec>, value: Option<&Json>, names: &NameIndex) -> Shown {
    let secrecy = spec.map_or(Secrecy::Open, |spec| spec.field.secrecy());
    match value.map(|value| judge::mask_live_value(value, secrecy)) {
        None => Shown::Unknown,
        Some(None) => Shown::Hidden,
        Some(Some(value)) => Shown::Value(forms::to_readable(spec, &value, names)),
    }
}

/// Converts a declared value of `field` for display, without secrets. `other_fields` contains the other fields of
/// the entry.
pub fn show_declared(field: &Field, value: &Value, other_fields: &Fields) -> Shown {
    match value {
        Value::Plain(value) if forms::is_literal_hidden(field, value, other_fields) => {
            Shown::Hidden
        }
        Value::Plain(Json::String(url)) if field.secrecy() == Secrecy::Address => {
            Shown::Value(judge::mask_url(url).into())
        }
        Value::Plain(value) => Shown::Value(value.clone()),
        Value::Secret(reference) => show_secret(reference),
        Value::File(path) => Shown::File(path.clone()),
    }
}

/// Converts a reference to a secret for display.
pub fn show_secret(reference: &Reference) -> Shown {
    match reference.masked_json() {
        Some(masked) => Shown::Value(masked),
        None => Shown::Secret(reference.to_string()),
    }
}

/// The change of a field in the creation of a container.
pub fn creation_change(field: &Field, name: &str, declared: &Sourced<Value>) -> FieldChange {
    let after = show_declared(field, &declared.value, &Fields::new());
    FieldChange::new(name, Shown::Absent, after, Some(declared.origin.clone()))
}

/// The problem that explains why there are no calls; `None` if no calls are needed.
pub fn problem_without_calls(
    no_calls: NoCalls,
    address: &Address,
    origin: impl Fn(&str) -> Origin,
) -> Option<Problem> {
    let NoCalls::Impossible(EntryFault { code, message, help, field, .. }) = no_calls else {
        return None;
    };
    Some(Problem::new(address, code, message, help, &origin(field)))
}
