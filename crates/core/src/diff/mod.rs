//! Compares a declared section with the live one.
//!
//! In: a [`DeclaredSection`], the live [`LiveEntries`], and further facts in [`DiffContext`]. Out:
//! [`Findings`], with a step for each object that differs, not in order yet. This module reads
//! nothing, prints nothing and knows no section by name: the same input gives the same findings in
//! the same order. A field that cannot be compared becomes a note, never a step, so a run that
//! changed nothing plans nothing.

mod bound;
mod entry;
mod findings;
mod matching;
mod step;
#[cfg(test)]
mod tests;
pub(crate) mod texts;

pub use bound::{Support, ValueLimit, fit};
pub use findings::{Findings, GuardRefusal, Held, Incomplete, Note, Problem, Reason};
pub(crate) use step::Shared;
pub use step::{Action, Edge, FieldChange, Label, Shown, ShownCall, Step};

use std::collections::{BTreeMap, BTreeSet};

use entry::EntryDiff;
use matching::{EntryMatcher, Match};
use texts::words;

use crate::{
    address::{Address, Selector},
    catalogue::preset,
    cause::Cause,
    desired::{DeclaredSection, EntryPresence, Groups, Unlisted, subject},
    field::{Field, NamedObject, Secrecy},
    kind::{
        self, CallContext, Effect, EntryFault, LiveEntry, Names, NoCalls, Section, Shape, Spec,
        Target, calls::CallPurpose, forms, risk,
    },
    live::{Caller, EntriesAbove, Inherited, LiveEntries},
    origin::{Origin, Sourced},
    planted::Bug,
    release::DetectedRelease,
    secret::{Reference, Secrets, judge},
    text,
    value::{Fields, Json, Object, Value},
};

/// Facts for a comparison other than the two sides.
#[derive(Clone, Copy)]
pub struct DiffContext<'a> {
    /// The container.
    pub target: &'a Target,
    /// Its address.
    pub container: &'a Address,
    /// The token's user.
    pub caller: &'a Caller,
    /// Whether its repository has no branch yet.
    pub is_empty: bool,
    /// Whether the container shows that the service has no licence.
    pub is_unlicensed: bool,
    /// The owner, if the container is in a personal namespace.
    pub personal_owner: Option<u64>,
    /// The ids of the names in entries.
    pub names: &'a Names,
    /// The access levels in the group above, once they were read.
    pub inherited: Option<&'a Inherited>,
    /// The entries of groups above, once they were read.
    pub entries_above: &'a EntriesAbove,
    /// The object of the group above, once it was read.
    pub group_above: Option<&'a Object>,
    /// The declarations of the groups in the run.
    pub groups: &'a Groups,
    /// The release of the service, once it was read.
    pub release: DetectedRelease,
    /// The values of secret references, as far as they are set.
    pub secrets: &'a Secrets,
    /// The objects whose write-only fields are sent again.
    pub resend: &'a [Selector],
}

impl DiffContext<'_> {
    /// What calls need to know to do `act` to an entry of `section`.
    pub(crate) fn job<'j>(&'j self, section: Section, act: CallPurpose<'j>) -> CallContext<'j> {
        let Self { target, names, release, .. } = *self;
        CallContext { section, target, names, release, is_alone: true, act }
    }
}

/// Compares a declared section with the live one.
///
/// # Errors
/// Why the live section is not known well enough; nothing is concluded then.
pub fn section(
    declared: &DeclaredSection,
    live: &LiveEntries,
    context: DiffContext<'_>,
) -> Result<Findings, Cause> {
    let entries = live.entries().map_err(Cause::clone)?;
    let mut findings = Findings::default();
    let mut matcher = EntryMatcher::new(declared, entries);
    let mut doubt = Doubt::default();
    let ambiguous = ambiguous_texts(declared, entries);
    for entry in &declared.entries {
        let entry_diff =
            EntryDiff::new(declared.section, entry, context).with_ambiguous(&ambiguous);
        let (before, identity) = (matcher.matched_count(), entry_diff.identity());
        let first_step = findings.steps.len();
        match matcher.find(&identity, entry_diff.has_unset_identity()) {
            Match::None => entry_diff.plan_absent(&mut findings),
            Match::One(found, copies) => {
                entry_diff.plan_present(found, &mut findings);
                let copies = copies.into_iter().map(|copy| entry_diff.copy_removal(copy, found));
                findings.steps.extend(copies);
            }
            Match::Near(live) => findings.problems.push(entry_diff.near_match(live)),
            Match::Both(live) => findings.problems.push(entry_diff.both_live(live)),
            Match::Taken => entry_diff.add_incomplete(
                "another entry already matches the same live object",
                &mut findings,
            ),
            Match::Ambiguous(reason) => {
                doubt.unmatched = true;
                entry_diff.add_incomplete(reason, &mut findings);
            }
            Match::Unknown => doubt.unmatched = true,
        }
        // Its name is free only after the other one has its new name.
        let taker = matcher.taker(&identity);
        let freed = taker.map(|entry| declared.address_of(entry, context.container));
        for step in findings.steps.iter_mut().skip(first_step) {
            step.effects.extend(freed.clone().map(Effect::Follows));
        }
        doubt.secret |= matcher.matched_count() == before && entry_diff.has_secret_identity();
        entry_diff.note_missing_secrets(&mut findings);
        entry_diff.check_secrets(&mut findings);
    }
    for entry in matcher.unmatched_entries().filter(|entry| !declared.is_managed_elsewhere(entry)) {
        plan_unlisted(declared, entry, doubt, context, &mut findings);
    }
    refuse_second(declared, entries, context, &mut findings);
    judge_replacements(declared.section, context, &mut findings);
    Ok(findings)
}

/// Judges a new entry as a change of one with the same name in another scope that goes.
fn judge_replacements(section: Section, context: DiffContext<'_>, findings: &mut Findings) {
    let [name, _, ..] = section.home.handle[..] else { return };
    let goes = findings.steps.iter().filter(|step| step.action == Action::Delete);
    let gone: BTreeMap<_, _> =
        goes.filter_map(Step::live_entry).map(|live| (live.handle_text(), live.clone())).collect();
    let judged = section.table().specs().iter().filter(|spec| spec.field.weakens.risk().is_some());
    let judged: Vec<&str> = judged.map(|spec| spec.name).collect();
    for step in findings.steps.iter_mut().filter(|step| step.action == Action::Create) {
        let after = |name: &str| step.change(name)?.after.value().cloned();
        let text = after(name.field).map(|text| forms::plain_text(&text));
        let Some(before) = text.and_then(|text| gone.get(&text)) else { continue };
        let preset = |name: &str| preset::of(section, name, &context.target.path);
        let after =
            judged.iter().map(|it| ((*it).to_owned(), after(it).unwrap_or_else(|| preset(it))));
        step.effects.extend(risk::change_risks(
            section,
            &judged,
            before.fields.raw(),
            &after.collect(),
        ));
    }
}

/// Refuses new entries of which a container can have only one, and has another one that stays; beside
/// an inherited one also changes.
fn refuse_second(
    declared: &DeclaredSection,
    live: &[LiveEntry],
    context: DiffContext<'_>,
    findings: &mut Findings,
) {
    let of = declared.section;
    let step = |name: &str, findings: &Findings| {
        let at = context.container.section(of.section).entry(name);
        let place = findings.steps.iter().position(|step| step.address == at)?;
        Some((place, findings.steps[place].action))
    };
    for entry in &declared.entries {
        let Some(what) = of.only_one(&entry.key) else { continue };
        let Some((place, action)) = step(&entry.key, findings) else { continue };
        let names = live.iter().map(|live| (of.name(live.fields.raw()), live.protected));
        let Some((other, reason)) = names.into_iter().find(|(name, reason)| {
            *name != entry.key
                && of.only_one(name) == Some(what)
                && (action == Action::Create || (action == Action::Update && reason.is_some()))
                && step(name, findings).is_none_or(|(_, action)| action != Action::Delete)
        }) else {
            continue;
        };
        let address = findings.steps.remove(place).address;
        let texts = if reason.is_some() { texts::EXCLUSIVE_PROTECTED } else { texts::EXCLUSIVE };
        let words = words![
            noun = context.target.scope.noun(),
            what,
            other = text::escape(&other),
            why = reason.unwrap_or_default(),
            identity = of.identity[0]
        ];
        findings.problems.push(Problem::of(texts, words, &address, &entry.origin));
    }
}

/// The texts in paths that address several live or declared entries, which only the query
/// distinguishes.
fn ambiguous_texts(declared: &DeclaredSection, live: &[LiveEntry]) -> BTreeSet<String> {
    let section = declared.section;
    let [path, .., _] = &section.home.handle[..] else { return BTreeSet::new() };
    if section.edit != kind::EditMethod::OrReplace {
        return BTreeSet::new();
    }
    let present = declared.entries.iter().filter(|entry| entry.state == EntryPresence::Present);
    let present = present.filter_map(|entry| {
        Some((entry.fields.get(path.field)?.value.text()?.to_owned(), entry.key.clone()))
    });
    let live = live.iter().map(|entry| (entry.handle_text(), section.name(entry.fields.raw())));
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (handle, name) in present.chain(live) {
        names.entry(handle).or_default().insert(name);
    }
    names.retain(|_, names| names.len() > 1);
    names.into_keys().collect()
}

/// Plans a section that can be read only later, under `condition`, as if each entry were absent.
/// Nothing is ever removed this way.
pub fn plan_possible(
    declared: &DeclaredSection,
    condition: &'static str,
    context: DiffContext<'_>,
) -> Findings {
    let mut findings = Findings::default();
    for entry in declared.entries.iter().filter(|entry| entry.state == EntryPresence::Present) {
        let entry_diff = EntryDiff::new(declared.section, entry, context);
        entry_diff.plan_possible(condition, &mut findings);
        entry_diff.note_missing_secrets(&mut findings);
        entry_diff.check_secrets(&mut findings);
    }
    findings
}

/// Why an unlisted live entry may still be a declared one.
#[derive(Clone, Copy, Default)]
struct Doubt {
    /// The match of a declared entry is ambiguous, so it may be this one.
    unmatched: bool,
    /// A declared entry with a secret in its identity was not found. This entry may have that
    /// secret, or its former value.
    secret: bool,
}

/// Why a live entry that may be a declared one is not removed.
const UNMATCHED: &str = "may be a declared one: ambiguous";

/// Plans a live entry that no manifest lists.
fn plan_unlisted(
    declared: &DeclaredSection,
    live: &LiveEntry,
    doubt: Doubt,
    context: DiffContext<'_>,
    findings: &mut Findings,
) {
    let section = declared.section;
    if section.shape != Shape::List || declared.unlisted.value == Unlisted::Ignore {
        return;
    }
    let user = live.id().filter(|_| matches!(subject(section), Some((_, NamedObject::User))));
    let is_caller = user == Some(context.caller.id);
    let is_owner = user.is_some() && user == context.personal_owner;
    let callers = is_caller.then_some("the token's own access");
    let never = live
        .protected
        .or(callers)
        .or_else(|| is_owner.then_some("the owner of the personal namespace"));
    let policy =
        if Bug::RemoveUnlisted.is_planted() { Unlisted::Delete } else { declared.unlisted.value };
    // Nobody is expected to declare bots, which come and go with their tokens, or the access of
    // the run itself: reports of them would never end.
    if never.is_some() && policy != Unlisted::Delete {
        return;
    }
    let (address, origin) = (
        unlisted_address(section, live, doubt.secret, context.container),
        &declared.unlisted.origin,
    );
    let reason = match (policy, never.or(doubt.unmatched.then_some(UNMATCHED))) {
        (_, Some(why)) => Reason::Protected { why: why.into() },
        (Unlisted::Delete, None) => {
            return findings.remove(removal(section, address, origin, live, context));
        }
        (Unlisted::Fail, None) => Reason::UnlistedFails,
        _ => Reason::Unlisted,
    };
    findings.notes.push(Note::new(&address, reason, origin));
}

/// The address of a live entry that no manifest lists. If the service may hold the same entry
/// twice, only the id identifies it.
fn unlisted_address(
    section: Section,
    live: &LiveEntry,
    hidden: bool,
    container: &Address,
) -> Address {
    let id = || live.handle_text();
    let entry = if hidden {
        format!("id:{}", id())
    } else if section.may_come_twice() {
        format!("{}@{}", section.name(live.fields.raw()), id())
    } else {
        section.name(live.fields.raw())
    };
    container.section(section.section).entry(entry)
}

/// The user or group in a live entry.
fn subject_id(section: Section, live: &LiveEntry) -> Option<u64> {
    live.id().filter(|_| subject(section).is_some())
}

/// The step that removes `live`.
///
/// # Errors
/// Why there is none: undrift never removes it, or the service would refuse.
fn removal(
    section: Section,
    address: Address,
    origin: &Origin,
    live: &LiveEntry,
    context: DiffContext<'_>,
) -> Result<Step, Option<Box<Problem>>> {
    let job = context.job(section, CallPurpose::Remove(live));
    let sends = section
        .rules()
        .calls(&job)
        .map_err(|unable| problem(unable, &address, |_| origin.clone()).map(Box::new))?;
    let changes = live.fields.raw().iter().filter(|(name, _)| {
        !section.identity.contains(&name.as_str()) && section.table().get(name).is_some()
    });
    let changes = changes.map(|(name, value)| {
        let before = shown_live(section.table().get(name), Some(value), context.names);
        FieldChange::new(name, before, Shown::Absent, None)
    });
    let (scope, changes, origin) = (context.target.scope, changes.collect(), origin.clone());
    let step = Step::new(scope, address, Action::Delete, origin, changes, sends);
    let who = subject_id(section, live);
    let effects = section.rules().effects(who, live.fields.raw(), &Object::new());
    Ok(step.of(live).with(effects, risk::removal_risks(section, live.fields.raw())))
}

/// A live value in a form that may be shown.
pub fn shown_live(spec: Option<&Spec>, value: Option<&Json>, names: &Names) -> Shown {
    let secrecy = spec.map_or(Secrecy::Open, |spec| spec.field.secrecy());
    match value.map(|value| judge::shown(value, secrecy)) {
        None => Shown::Unknown,
        Some(None) => Shown::Hidden,
        Some(Some(value)) => Shown::Value(forms::shown(spec, &value, names)),
    }
}

/// A declared value of `field` in a form that may be shown; `beside` holds the other fields.
pub fn shown_declared(field: &Field, value: &Value, beside: &Fields) -> Shown {
    match value {
        Value::Plain(value) if forms::is_secret(field, value, beside) => Shown::Hidden,
        Value::Plain(Json::String(url)) if field.secrecy() == Secrecy::Address => {
            Shown::Value(judge::mask_url(url).into())
        }
        Value::Plain(value) => Shown::Value(value.clone()),
        Value::Secret(reference) => shown_secret(reference),
        Value::File(path) => Shown::File(path.clone()),
    }
}

/// A reference to a secret in a form that may be shown.
pub fn shown_secret(reference: &Reference) -> Shown {
    match reference.masked() {
        Some(masked) => Shown::Value(masked),
        None => Shown::Secret(reference.to_string()),
    }
}

/// A field of a container that is about to be created.
pub fn creation_change(field: &Field, name: &str, declared: &Sourced<Value>) -> FieldChange {
    let after = shown_declared(field, &declared.value, &Fields::new());
    FieldChange::new(name, Shown::Absent, after, Some(declared.origin.clone()))
}

/// The problem that explains why there are no calls; `None` if none are needed.
pub fn problem(
    unable: NoCalls,
    address: &Address,
    origin: impl Fn(&str) -> Origin,
) -> Option<Problem> {
    let NoCalls::Impossible(EntryFault { code, message, help, field, .. }) = unable else {
        return None;
    };
    Some(Problem::new(address, code, message, help, &origin(field)))
}
