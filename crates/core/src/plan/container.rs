//! The plan of one container: whether it exists, its sections, and its creation.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    ContainerPlan, Settings, guard,
    lifecycle::{closed_to_moves, deleting, halfway, twice},
    order,
};
use crate::{
    address::Address,
    cause::Cause,
    desired::{Container, DeclaredSection, State},
    diff::{self, Action, Context, Findings, Incomplete, Note, Problem, Reason, Step},
    field::Scope,
    kind::{
        Arrival, Capability, Effect, Facts, Namespace, NamespaceOwner, Shape, Target, marked_above,
    },
    kinds,
    level::OWNER,
    live::{Collection, Live, Presence, entry_ids},
    origin::Origin,
    release::Known,
    text::escape,
    value::Json,
};

/// Plans one container. If [`Findings::questions`](diff::Findings::questions) is not empty, the
/// plan is not complete: answer them and call again. Every presence is told apart here, so the
/// function is long.
pub fn container(declared: &Container, live: &Live, settings: &Settings) -> ContainerPlan {
    let mut plan = ContainerPlan::default();
    let address = declared.address();
    let mut names = live.names.with(&settings.created).for_caller(settings.caller.id);
    // Rules have the ids of members and of groups that it is shared with.
    for of in kinds::sections(declared.scope) {
        let found = live.sections.get(of.section).and_then(|found| found.entries().ok());
        let Some((found, (_, named))) = found.zip(diff::subject(of)) else { continue };
        for (id, entry) in found.iter().filter_map(|one| Some((one.id()?, one))) {
            names.insert_name(named, id, &of.name(entry.fields.raw()));
        }
    }
    // Those that this run created have ids by now.
    for of in kinds::sections(declared.scope).filter(|of| of.called_by.is_some()) {
        if let Some(found) =
            live.sections.get(of.section).filter(|_| names.entries(of.section).is_some())
        {
            names.insert_entries(of.section, entry_ids(of, declared, found));
        }
    }
    let planning = |target, facts: &Facts| Planning {
        declared,
        live,
        settings,
        address: &address,
        context: Context {
            target,
            container: &address,
            caller: &settings.caller,
            is_empty: facts.is_empty,
            is_unlicensed: facts.is_unlicensed,
            personal_owner: facts.personal_owner,
            names: &names,
            inherited: live.inherited.as_ref(),
            group_above: live.group_above.as_deref(),
            groups: &settings.groups,
            release: match live.release {
                Known::Hidden => settings.release.map_or(Known::Hidden, Known::Is),
                told => told,
            },
            secrets: &settings.secrets,
            resend: &settings.resend,
        },
    };
    let nothing = Facts { is_empty: true, ..Facts::default() };
    match &live.presence {
        Presence::Here(target, facts) => {
            planning(target, facts).here(facts, &mut plan);
        }
        Presence::Missing(_) if declared.life.absent().is_some() => {}
        Presence::NoNamespace(group) if declared.life.absent().is_some() => {
            // Only an administrator sees every group and user.
            if !settings.caller.administrator {
                let reason = Cause::new(
                    missing_namespace(declared, &address, group, settings.is_offline).message,
                );
                plan.leave_unread(address, reason);
            }
        }
        Presence::Missing(_) | Presence::NoNamespace(_) | Presence::Moved { .. }
            if declared.brought_in.is_some() =>
        {
            plan.vanished(declared);
        }
        Presence::Missing(target) => planning(target, &nothing).missing(&mut plan),
        // Everything in a group that this run creates is missing too.
        Presence::NoNamespace(group) => match settings.created.id(Scope::Group, group) {
            Some(id) => {
                let namespace = Some(Namespace { id, owner: NamespaceOwner::Group });
                let path = declared.path.clone();
                let target = Target { namespace, ..Target::new(declared.scope, path) };
                planning(&target, &nothing).missing(&mut plan);
            }
            None => plan.close(missing_namespace(declared, &address, group, settings.is_offline)),
        },
        Presence::Moved { to } => plan.close(moved(declared, &address, to.as_deref())),
        Presence::Twice { at, other } => plan.close(twice(declared, &address, at, other)),
        Presence::Halfway { from, at } => plan.close(halfway(declared, &address, from, at)),
        Presence::Unreadable(reason) => plan.leave_unread(address, reason.clone()),
    }
    if declared.is_watched || settings.held_until(&declared.address()).is_some() {
        plan.findings.watched.append(&mut plan.findings.steps);
        plan.findings.refusals.clear();
        plan.user_rules.clear();
    }
    settings.holds.say(declared, &mut plan.findings, &settings.moves);
    plan
}

/// What to do about something that a snapshot lacks: it may exist under another path, and creating it
/// would make a second one.
const OFFLINE: &str = "correct `path`; if it was renamed, only a plan without a snapshot shows it";

pub(super) fn missing(
    declared: &Container,
    address: &Address,
    unselected: bool,
    is_offline: bool,
) -> Problem {
    let noun = declared.scope.noun();
    let code = declared.scope.of("missing-group", "missing-project");
    let help = if unselected {
        format!("select it as a whole to create it: `--only {}`", address.path)
    } else if is_offline {
        OFFLINE.to_owned()
    } else {
        "write `create: true` to allow undrift to create it, or correct `path`".to_owned()
    };
    let message = match address.path.contains('/') {
        true => format!("the {noun} `{}` does not exist", address.path),
        // Nothing above it shows whether it is only hidden.
        false => {
            format!("the {noun} `{}` does not exist, or the token cannot see it", address.path)
        }
    };
    Problem::new(address, code, message, help, &declared.origin)
}

pub(super) fn missing_namespace(
    declared: &Container,
    address: &Address,
    namespace: &str,
    is_offline: bool,
) -> Problem {
    let namespace = escape(namespace);
    let message = format!("no group or user `{namespace}` exists, or the token cannot see it");
    let help = match is_offline {
        true => OFFLINE.to_owned(),
        false => format!(
            "declare the group with `create: true`, select it too if it is (`--only {namespace}`), or correct `path`"
        ),
    };
    Problem::new(address, "missing-namespace", message, help, &declared.origin)
}

fn moved(declared: &Container, address: &Address, to: Option<&str>) -> Problem {
    let noun = declared.scope.noun();
    let (message, help) = match to.map(escape) {
        Some(to) => match marked_above(&to) {
            Some(group) => (
                format!(
                    "the {noun} `{}` is in a group that is marked for deletion, `{group}`",
                    address.path
                ),
                format!(
                    "restore it (`undrift call group-restore id={group}`), or remove the manifest"
                ),
            ),
            None => (
                format!("the {noun} `{}` is now `{to}`", address.path),
                format!("write `path: {to}`"),
            ),
        },
        None => {
            (format!("the {noun} `{}` was renamed", address.path), "write its new path".to_owned())
        }
    };
    let code = declared.scope.of("moved-group", "moved-project");
    Problem::new(address, code, message, help, &declared.origin)
}

fn import_failed(declared: &Container, address: &Address, why: Option<&str>) -> Problem {
    let (noun, path) = (declared.scope.noun(), &address.path);
    let why = why.unwrap_or("the service gave no reason");
    let message = format!("the import of `{path}` failed: {why}");
    let help = format!(
        "delete the {noun} and run again; to keep it as it is, remove its source from the manifest"
    );
    Problem::new(address, "import-failed", message, help, &declared.origin)
}

/// The capabilities that declared switches keep from a container, each with whether this run turns its
/// switch on.
type Switches = BTreeMap<Capability, bool>;

/// What the declared switches do to a set of settings that close a section while all are off.
fn switched(
    set: &[&'static str],
    switches: &Switches,
    is_off: impl Fn(&str) -> bool,
) -> Option<(Capability, bool)> {
    let of = |name: &&'static str| {
        let feature = Capability::Feature(name);
        Some((feature, *switches.get(&feature)?))
    };
    let opens = set.iter().filter_map(of).find(|(_, opens)| *opens);
    // The others may be off without a declaration.
    let closed =
        || set.iter().find_map(of).filter(|_| set.iter().all(|n| of(n).is_some() || is_off(n)));
    opens.or_else(closed)
}

/// A container that is being planned.
pub(super) struct Planning<'a> {
    pub(super) declared: &'a Container,
    pub(super) live: &'a Live,
    pub(super) settings: &'a Settings,
    pub(super) address: &'a Address,
    pub(super) context: Context<'a>,
}

impl Planning<'_> {
    pub(super) fn note(&self, reason: Reason, origin: &Origin) -> Note {
        Note {
            address: self.address.clone(),
            reason,
            fields: Vec::new(),
            origin: Some(origin.clone()),
        }
    }

    /// Compares a section. Held differences are only watched.
    pub(super) fn compare(
        &self,
        section: &DeclaredSection,
        found: &Collection,
    ) -> Result<Findings, Cause> {
        let mut findings = diff::section(section, found, self.context)?;
        self.settings.leave_held(section.of, &mut findings);
        Ok(findings)
    }

    /// Plans a section that can be read only under `condition`. Held differences are only watched.
    pub(super) fn possible(&self, section: &DeclaredSection, condition: &'static str) -> Findings {
        let mut findings = diff::possible(section, condition, self.context);
        self.settings.leave_held(section.of, &mut findings);
        findings
    }

    /// Whether a whole section is held.
    fn is_held(&self, section: &str) -> bool {
        let of = self.declared.section(section);
        of.is_some_and(|of| {
            self.settings.held_until(&self.address.section(of.of.section)).is_some()
        })
    }

    /// Plans a container that exists.
    fn here(&self, facts: &Facts, plan: &mut ContainerPlan) {
        if self.declared.life.absent().is_some() {
            return self.absent(facts, plan);
        }
        if let Some(arrival) = &facts.arrival {
            return self.arrives(arrival, plan);
        }
        let switches = self.switches();
        let writable = switches.get(&Capability::Writable).copied();
        // An undeclared container is never unarchived.
        let is_closed = facts.archived && writable != Some(false);
        if self.declared.brought_in.is_some() && (facts.deleting.is_some() || is_closed) {
            return plan.vanished(self.declared);
        }
        if let Err(problem) = self.restored(facts, plan) {
            return plan.close(*problem);
        }
        self.unlisted_projects(plan);
        // Restoring also unarchives, if the deletion mark had archived it.
        let restored = facts.deleting.is_some().then_some(true);
        let writable = writable.or(restored);
        let former = self.context.target.former.as_ref();
        if facts.archived && writable != Some(true) {
            return match former {
                Some(former) => {
                    plan.close(closed_to_moves(self.declared, self.address, &former.path));
                }
                None => self.archived(writable == Some(false), plan),
            };
        }
        match former.map(|former| self.relocation(former, facts)).transpose() {
            Ok(step) => plan.findings.steps.extend(step),
            Err(problem) => return plan.close(*problem),
        }
        for (name, section) in self.in_order() {
            self.section(name, section, (&switches, facts.archived), plan);
        }
        self.arrange(plan);
    }

    /// Restores it if it is marked for deletion.
    fn restored(&self, facts: &Facts, plan: &mut ContainerPlan) -> Result<(), Box<Problem>> {
        let Some(since) = &facts.deleting else { return Ok(()) };
        let may_restore = self.settings.caller.administrator || facts.level >= Some(OWNER);
        if !may_restore || self.context.target.former.is_some() {
            return Err(Box::new(deleting(self.declared, self.address, since.as_deref())));
        }
        plan.findings.steps.push(self.restoration(since.as_deref())?);
        Ok(())
    }

    /// Compares a section, or records why it cannot be compared.
    fn section(
        &self,
        name: &'static str,
        section: &DeclaredSection,
        closed: (&Switches, bool),
        plan: &mut ContainerPlan,
    ) {
        let unread = Collection::Unreadable(Cause::new("not read"));
        let found = self.live.sections.get(name).unwrap_or(&unread);
        let mut findings = match self.compare(section, found) {
            Ok(findings) => findings,
            Err(reason) => return self.unread(name, section, reason, closed, plan),
        };
        self.go_with_parents(section, &mut findings, &plan.findings.steps);
        if let (Shape::List, Ok(entries)) = (section.of.shape, found.entries()) {
            plan.findings.refusals.extend(guard::removals(
                &self.address.section(name),
                &section.origin,
                entries.len(),
                &findings.steps,
                &self.settings.limits,
            ));
        }
        plan.compared.insert(name);
        plan.findings.extend(findings);
    }

    /// Plans a section that could not be read for `reason`: a switch that this run turns on, a
    /// switch that stays off, or another reason.
    fn unread(
        &self,
        name: &'static str,
        section: &DeclaredSection,
        reason: Cause,
        (switches, is_archived): (&Switches, bool),
        plan: &mut ContainerPlan,
    ) {
        let address = self.address.section(name);
        let sets = section.of.home.closed_by.iter();
        let is_off = |name: &str| match &self.live.presence {
            Presence::Here(_, facts) => facts.disabled.contains(name),
            _ => false,
        };
        let mut lacked: Vec<_> = sets.filter_map(|set| switched(set, switches, is_off)).collect();
        lacked.extend(is_archived.then_some((Capability::Writable, true)));
        // A switch that stays off cannot be compensated by one that is turned on.
        let closed = lacked.iter().find(|(_, opens)| !opens);
        match closed.or(lacked.first()) {
            Some((_, true)) => {
                let condition = "unless it turns out to be so already";
                plan.findings.extend(self.possible(section, condition));
            }
            Some((needed, false)) => self.close(name, section, *needed, plan),
            None if self.has_copied_parents(section, &plan.findings.steps) => {
                let why =
                    format!("until the copies of its parents are removed: {}", reason.message);
                let note = self.note(Reason::Waits { why }, &section.origin);
                let fields: BTreeSet<_> = section.names().map(str::to_owned).collect();
                let fields = fields.into_iter().collect();
                plan.findings.notes.push(Note { address, fields, ..note });
            }
            None => plan.findings.incomplete.push(Incomplete { address, reason }),
        }
    }

    /// Leaves out a section, because something that it needs is declared to be off.
    pub(super) fn close(
        &self,
        name: &'static str,
        section: &DeclaredSection,
        needed: Capability,
        plan: &mut ContainerPlan,
    ) {
        let why = needed.reason(self.declared.scope).to_owned();
        plan.findings.notes.push(self.closed(self.address.section(name), why, &section.origin));
        plan.shut.insert(name);
    }

    /// The note that `address` is left out, because something that it needs is off.
    pub(super) fn closed(&self, address: Address, why: String, origin: &Origin) -> Note {
        Note { address, ..self.note(Reason::Closed { why }, origin) }
    }

    /// Turns what could not be compared into notes if it names entries of a section that a declared
    /// switch closes.
    fn close_with_named(&self, plan: &mut ContainerPlan) {
        let shut = plan.shut.iter().filter_map(|name| self.live.sections.get(name));
        let reasons: Vec<_> = shut.filter_map(|found| found.entries().err()).collect();
        let is_shut = |scope: &mut Incomplete| reasons.contains(&&scope.reason);
        let shut = plan.findings.incomplete.extract_if(.., is_shut);
        let notes = shut.map(|Incomplete { address, reason }| {
            self.closed(address, reason.message.to_string(), &self.declared.origin)
        });
        plan.findings.notes.extend(notes.collect::<Vec<_>>());
    }

    /// Whether `steps` remove copies of the parents of a section. A section that cannot be read
    /// must not prevent that.
    fn has_copied_parents(&self, section: &DeclaredSection, steps: &[Step]) -> bool {
        let parent = section.of.home.parent.map(|parent| parent.section);
        parent.is_some() && steps.iter().any(|s| s.is_copy && s.address.section == parent)
    }

    /// Considers all steps together, and sorts them.
    fn arrange(&self, plan: &mut ContainerPlan) {
        self.close_with_named(plan);
        self.refuse_low_shares(plan);
        self.refuse_removed(plan);
        self.after_replacements(plan);
        self.mark_outsiders(plan);
        plan.user_rules = self.user_rules();
        self.note_lost_grants(plan);
        self.note_side_effects(plan);
        let refused = guard::steps(&plan.findings.steps, self.live, self.declared, self.context);
        plan.findings.extend(refused);
        order::arrange(self.declared.scope, &self.settings.caller, &mut plan.findings.steps);
    }

    /// Drops the removals of entries whose parent is removed, and reports entries that are declared
    /// below one.
    fn go_with_parents(&self, section: &DeclaredSection, findings: &mut Findings, steps: &[Step]) {
        let Some(parent) = section.of.home.parent else { return };
        let Some(of) = kinds::section(self.declared.scope, parent.section) else { return };
        let removes = |step: &&Step| {
            step.action == Action::Delete
                && !step.is_copy
                && step.address.section == Some(of.section)
        };
        let live = steps.iter().filter(removes).filter_map(|step| step.live.as_ref());
        let gone: BTreeSet<_> = live.map(|live| of.name(live.0.fields.raw())).collect();
        if gone.is_empty() {
            return;
        }
        findings.steps.retain(|step| {
            let above = step.live.as_ref().and_then(|live| live.0.fields.raw().get(parent.field));
            !above.and_then(Json::as_str).is_some_and(|name| gone.contains(name))
        });
        for entry in section.entries.iter().filter(|entry| entry.state == State::Present) {
            let named = entry.fields.get(parent.field);
            let named = named.as_ref().and_then(|named| named.value.text());
            if let Some(name) = named.filter(|name| gone.contains(*name)) {
                let noun = of.noun;
                findings.problems.push(Problem {
                    address: section.address_of(entry, self.address),
                    code: "unknown-entry",
                    message: format!(
                        "the {noun} `{}` is removed, and this entry with it",
                        escape(name)
                    ),
                    help: Some(format!("remove this entry too, or keep the {noun}")),
                    origin: entry.origin.clone(),
                });
            }
        }
    }

    /// Adds notes for effects of steps that their fields do not show.
    pub(super) fn note_side_effects(&self, plan: &mut ContainerPlan) {
        let notes = plan.steps.iter().flat_map(|step| {
            step.effects.iter().filter_map(|effect| match effect {
                Effect::SideEffect(what) => {
                    let note = self.note(Reason::Besides { what: what.clone() }, &step.origin);
                    Some(Note { address: step.address.clone(), ..note })
                }
                _ => None,
            })
        });
        let notes: Vec<_> = notes.collect();
        plan.findings.notes.extend(notes);
    }

    /// Plans a container whose contents have not arrived: nothing is written into it before.
    fn arrives(&self, arrival: &Arrival, plan: &mut ContainerPlan) {
        plan.arrival = Some(arrival.clone());
        match arrival {
            Arrival::Running => {
                let running = Cause::new("its contents are still being imported").transient();
                let reason = running.help("run again when they are there");
                plan.leave_unread(self.address.clone(), reason);
            }
            Arrival::Failed(why) => {
                plan.close(import_failed(self.declared, self.address, why.as_deref()));
            }
        }
    }

    /// Plans a container that is archived and stays archived.
    fn archived(&self, as_declared: bool, plan: &mut ContainerPlan) {
        plan.closed = Some(Cause::new("the project is archived"));
        if let Some(section) = self.in_order().find_map(|(name, section)| {
            let opens = Effect::provides(Capability::Writable);
            let is_it = self.is_held(name) && self.declared_effects(name, section).contains(&opens);
            is_it.then_some(section)
        }) {
            let note = self.note(Reason::ArchivedByHand, &section.origin);
            let address = self.address.section(section.of.section);
            plan.findings.notes.push(Note { address, ..note });
        } else if as_declared {
            plan.findings.notes.push(self.note(Reason::Archived, &self.declared.origin));
            // Nothing else of it could be read than that it is archived.
            let says_so =
                self.effects().filter(|(_, effect)| *effect == Effect::lacks(Capability::Writable));
            plan.compared.extend(says_so.map(|(name, _)| name));
        } else {
            plan.findings.notes.push(self.note(Reason::ArchivedByHand, &self.declared.origin));
        }
    }

    /// The declared sections, in the order of their kinds.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (&'static str, &DeclaredSection)> {
        kinds::sections(self.declared.scope)
            .filter_map(|section| Some((section.section, self.declared.section(section.section)?)))
    }

    /// The effects of the container's own declared values, whether they differ or not. A held value
    /// counts as it is live.
    fn effects(&self) -> impl Iterator<Item = (&'static str, Effect)> {
        self.in_order().flat_map(|(name, section)| {
            let effects = match self.live.sections.get(name) {
                Some(Collection::One(Some(live))) if self.is_held(name) => {
                    section.of.rules.effects(None, live.fields.raw(), live.fields.raw())
                }
                _ => self.declared_effects(name, section),
            };
            effects.into_iter().map(move |effect| (name, effect))
        })
    }

    fn declared_effects(&self, name: &str, section: &DeclaredSection) -> Vec<Effect> {
        match self.live.sections.get(name) {
            Some(Collection::One(Some(live))) => section.effects_on(live),
            _ => Vec::new(),
        }
    }

    fn switches(&self) -> Switches {
        let switch = |(_, effect)| match effect {
            Effect::Capability { what, before: false, after } => Some((what, after)),
            _ => None,
        };
        self.effects().filter_map(switch).collect()
    }
}
