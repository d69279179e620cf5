//! The plan of one container: whether it is there, its sections, and what it comes into being with.

use std::collections::BTreeMap;

use super::{
    ContainerPlan, Settings, guard,
    lifecycle::{closed_to_moves, deleting, halfway, twice},
    order,
};
use crate::{
    address::Address,
    cause::Cause,
    desired::{Container, Creation, Declared, DeclaredSection, Entry},
    diff::{self, Action, Bound, Context, Findings, Fit, Incomplete, Note, Problem, Reason, Step},
    field::Scope,
    kind::{
        Arrival, Capability, Effect, Facts, Job, Namespace, NamespaceOwner, Shape, Target,
        calls::Act, forms, marked_above,
    },
    kinds,
    level::OWNER,
    live::{Collection, Live, Presence, Question},
    origin::{Origin, Sourced},
    release::Known,
    text::escape,
    value::{Fields, Object},
};

/// Plans one container. If [`Findings::questions`](diff::Findings::questions) is not empty, the
/// plan is not: answer them and ask again.
pub fn container(declared: &Container, live: &Live, settings: &Settings) -> ContainerPlan {
    let mut plan = ContainerPlan::default();
    let address = declared.address();
    let names = live.names.with(&settings.created).for_caller(settings.caller.id);
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
                let reason = Cause::new(missing_namespace(declared, &address, group).message);
                plan.closed = Some(reason.clone());
                plan.findings.incomplete.push(Incomplete { address, reason });
            }
        }
        Presence::Missing(_) | Presence::NoNamespace(_) | Presence::Moved { .. }
            if declared.brought_in.is_some() =>
        {
            plan.vanished(declared);
        }
        Presence::Missing(target) => planning(target, &nothing).missing(&mut plan),
        // What is in a group that this run creates is missing too.
        Presence::NoNamespace(group) => match settings.created.id(Scope::Group, group) {
            Some(id) => {
                let namespace = Some(Namespace { id, owner: NamespaceOwner::Group });
                let path = declared.path.clone();
                let target = Target { namespace, ..Target::new(declared.scope, path) };
                planning(&target, &nothing).missing(&mut plan);
            }
            None => plan.close(missing_namespace(declared, &address, group)),
        },
        Presence::Moved { to } => plan.close(moved(declared, &address, to.as_deref())),
        Presence::Twice { at, other } => plan.close(twice(declared, &address, at, other)),
        Presence::Halfway { from, at } => plan.close(halfway(declared, &address, from, at)),
        Presence::Unreadable(reason) => {
            plan.closed = Some(reason.clone());
            plan.findings.incomplete.push(Incomplete { address, reason: reason.clone() });
        }
    }
    if declared.is_watched || settings.held_until(&declared.address()).is_some() {
        plan.findings.watched.append(&mut plan.findings.steps);
        plan.findings.refusals.clear();
    }
    settings.holds.say(declared, &mut plan.findings, &settings.moves);
    plan
}

pub(super) fn missing(declared: &Container, address: &Address, unselected: bool) -> Problem {
    let noun = declared.scope.noun();
    let code = match declared.scope {
        Scope::Group => "missing-group",
        Scope::Project => "missing-project",
    };
    let help = if unselected {
        format!("select it as a whole to create it: `--only {}`", address.path)
    } else {
        "write `create: true` to allow undrift to create it, or correct `path`".to_owned()
    };
    Problem {
        address: address.clone(),
        code,
        message: format!("the {noun} `{}` does not exist", address.path),
        help: Some(help),
        origin: declared.origin.clone(),
    }
}

pub(super) fn missing_namespace(
    declared: &Container,
    address: &Address,
    namespace: &str,
) -> Problem {
    let namespace = escape(namespace);
    Problem {
        address: address.clone(),
        code: "missing-namespace",
        message: format!("no group or user `{namespace}` exists, or the token cannot see it"),
        help: Some(format!(
            "declare the group with `create: true`, select it too if it is (`--only {namespace}`), or correct `path`"
        )),
        origin: declared.origin.clone(),
    }
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
    Problem {
        address: address.clone(),
        code: match declared.scope {
            Scope::Group => "moved-group",
            Scope::Project => "moved-project",
        },
        message,
        help: Some(help),
        origin: declared.origin.clone(),
    }
}

fn import_failed(declared: &Container, address: &Address, why: Option<&str>) -> Problem {
    let (noun, path) = (declared.scope.noun(), &address.path);
    let why = why.unwrap_or("the service does not say why");
    Problem {
        address: address.clone(),
        code: "import-failed",
        message: format!("the import of `{path}` failed: {why}"),
        help: Some(format!(
            "delete the {noun} and run again; to keep it as it is, take out of its manifest what it is created from"
        )),
        origin: declared.origin.clone(),
    }
}

/// Whether a declared switch gives the container what it lacks, or closes it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Switch {
    /// This run gives it.
    Opens,
    /// It is not there, as declared.
    Closed,
}

/// One container under way.
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

    /// What differs in a section. What is held there is only watched.
    fn compare(&self, section: &DeclaredSection, found: &Collection) -> Result<Findings, Cause> {
        let mut findings = diff::section(section, found, self.context)?;
        self.settings.leave_held(&mut findings);
        Ok(findings)
    }

    /// What a section may need under `condition`. What is held there is only watched.
    fn possible(&self, section: &DeclaredSection, condition: &'static str) -> Findings {
        let mut findings = diff::possible(section, condition, self.context);
        self.settings.leave_held(&mut findings);
        findings
    }

    /// Whether a whole section is held.
    fn is_held(&self, section: &str) -> bool {
        let of = self.declared.section(section);
        of.is_some_and(|of| {
            self.settings.held_until(&self.address.section(of.of.section)).is_some()
        })
    }

    /// The container is there.
    fn here(&self, facts: &Facts, plan: &mut ContainerPlan) {
        if self.declared.life.absent().is_some() {
            return self.absent(facts, plan);
        }
        if let Some(arrival) = &facts.arrival {
            return self.arrives(arrival, plan);
        }
        // What nobody declares is never brought back.
        let switches = self.switches();
        let is_closed =
            facts.archived && switches.get(&Capability::Writable).copied() != Some(Switch::Closed);
        if self.declared.brought_in.is_some() && (facts.deleting.is_some() || is_closed) {
            return plan.vanished(self.declared);
        }
        if let Some(since) = &facts.deleting {
            let may_restore = self.settings.caller.administrator || facts.level >= Some(OWNER);
            if !may_restore || self.context.target.former.is_some() {
                return plan.close(deleting(self.declared, self.address, since.as_deref()));
            }
            match self.restoration(since.as_deref()) {
                Ok(step) => plan.findings.steps.push(step),
                Err(problem) => return plan.close(*problem),
            }
        }
        self.undeclared_projects(plan);
        // What is restored comes out of the archive, if marking it had put it there.
        let restored = facts.deleting.is_some().then_some(Switch::Opens);
        let writable = switches.get(&Capability::Writable).copied().or(restored);
        if facts.archived && writable != Some(Switch::Opens) {
            if let Some(former) = &self.context.target.former {
                let closed = closed_to_moves(self.declared, self.address, &former.path);
                return plan.close(closed);
            }
            return self.archived(writable == Some(Switch::Closed), plan);
        }
        if let Some(former) = &self.context.target.former {
            match self.relocation(former, facts) {
                Ok(step) => plan.findings.steps.push(step),
                Err(problem) => return plan.close(*problem),
            }
        }
        for (name, section) in self.in_order() {
            let address = self.address.section(name);
            let unread = Collection::Unreadable(Cause::new("not read"));
            let found = self.live.sections.get(name).unwrap_or(&unread);
            match self.compare(section, found) {
                Ok(findings) => {
                    if let (Shape::List, Ok(entries)) = (section.of.shape, found.entries()) {
                        plan.findings.refusals.extend(guard::removals(
                            &address,
                            &section.origin,
                            entries.len(),
                            &findings.steps,
                            &self.settings.limits,
                        ));
                    }
                    plan.compared.insert(name);
                    plan.findings.extend(findings);
                }
                Err(reason) => {
                    let needs = section.of.home.needs.iter();
                    let mut lacked: Vec<_> =
                        needs.filter_map(|n| Some((*n, *switches.get(n)?))).collect();
                    lacked.extend(facts.archived.then_some((Capability::Writable, Switch::Opens)));
                    // What stays closed cannot be made up for by what opens.
                    let closed = lacked.iter().find(|(_, switch)| *switch == Switch::Closed);
                    let lacked = closed.or(lacked.first()).copied();
                    match lacked {
                        Some((_, Switch::Opens)) => {
                            let condition = "unless it turns out to be so already";
                            plan.findings.extend(self.possible(section, condition));
                        }
                        Some((needed, Switch::Closed)) => {
                            let why = needed.reason(self.declared.scope).to_owned();
                            let note = self.note(Reason::Closed { why }, &section.origin);
                            plan.findings.notes.push(Note { address, ..note });
                            plan.shut.insert(name);
                        }
                        None => plan.findings.incomplete.push(Incomplete { address, reason }),
                    }
                }
            }
        }
        self.refuse_low_shares(plan);
        self.after_replacements(plan);
        self.say_what_goes_along(plan);
        self.say_besides(plan);
        let refused = guard::steps(&plan.findings.steps, self.live, self.declared, self.context);
        plan.findings.extend(refused);
        order::arrange(self.declared.scope, &self.settings.caller, &mut plan.findings.steps);
    }

    /// Says what steps do that their fields do not show.
    fn say_besides(&self, plan: &mut ContainerPlan) {
        let notes = plan.steps.iter().flat_map(|step| {
            step.effects.iter().filter_map(|effect| match effect {
                Effect::Besides(what) => {
                    let note = self.note(Reason::Besides { what: what.clone() }, &step.origin);
                    Some(Note { address: step.address.clone(), ..note })
                }
                _ => None,
            })
        });
        let notes: Vec<_> = notes.collect();
        plan.findings.notes.extend(notes);
    }

    /// It is there, and its contents are not: nothing is written into it meanwhile.
    fn arrives(&self, arrival: &Arrival, plan: &mut ContainerPlan) {
        plan.arrival = Some(arrival.clone());
        match arrival {
            Arrival::Running => {
                let running = Cause::new("its contents are still being imported").transient();
                let reason = running.help("run again when they are there");
                plan.closed = Some(reason.clone());
                let address = self.address.clone();
                plan.findings.incomplete.push(Incomplete { address, reason });
            }
            Arrival::Failed(why) => {
                plan.close(import_failed(self.declared, self.address, why.as_deref()));
            }
        }
    }

    /// It is archived and stays so.
    fn archived(&self, as_declared: bool, plan: &mut ContainerPlan) {
        plan.closed = Some(Cause::new("the project is archived"));
        if let Some(section) = self.in_order().find_map(|(name, section)| {
            let opens = Effect::Provides(Capability::Writable);
            let is_it = self.is_held(name) && self.declared_effects(name, section).contains(&opens);
            is_it.then_some(section)
        }) {
            let note = self.note(Reason::ArchivedByHand, &section.origin);
            let address = self.address.section(section.of.section);
            plan.findings.notes.push(Note { address, ..note });
        } else if as_declared {
            plan.findings.notes.push(self.note(Reason::Archived, &self.declared.origin));
            // Nothing else could be seen of it, but that it is archived.
            let says_so =
                self.effects().filter(|(_, effect)| *effect == Effect::Lacks(Capability::Writable));
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

    /// What the container's own object does as declared, whether that differs or not; a part of it
    /// that is held, as it is.
    fn effects(&self) -> impl Iterator<Item = (&'static str, Effect)> {
        self.in_order().flat_map(|(name, section)| {
            let effects = match self.live.sections.get(name) {
                Some(Collection::One(Some(live))) if self.is_held(name) => {
                    section.of.rules.effects(None, &live.fields, &live.fields)
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

    fn switches(&self) -> BTreeMap<Capability, Switch> {
        self.effects()
            .filter_map(|(_, effect)| match effect {
                Effect::Provides(capability) => Some((capability, Switch::Opens)),
                Effect::Lacks(capability) => Some((capability, Switch::Closed)),
                _ => None,
            })
            .collect()
    }

    /// The container is not there.
    fn missing(&self, plan: &mut ContainerPlan) {
        match &self.declared.create {
            Creation::Allowed(create) => self.create(create, plan),
            other => {
                let unselected = matches!(other, Creation::Unselected { .. });
                plan.close(missing(self.declared, self.address, unselected));
            }
        }
    }

    /// It comes first, with what comes into being along with it, and
    /// everything else after it.
    fn create(&self, create: &Declared, plan: &mut ContainerPlan) {
        match self.creation(create, plan) {
            Ok(step) => plan.findings.steps.push(step),
            Err(problem) => return plan.close(*problem),
        }
        let branch = Effect::Provides(Capability::Branch);
        let is_empty = !plan.steps.iter().any(|step| step.effects.contains(&branch));
        let inside = Planning { context: Context { is_empty, ..self.context }, ..*self };
        for (name, section) in self.in_order().filter(|(_, s)| !s.of.comes_with_container()) {
            // Nothing is there yet, but that those whom a section names are known may have to be
            // read.
            let found = self.live.sections.get(name).unwrap_or(&Collection::Fresh);
            let comes_along = plan.steps.iter().any(|step| step.effects.contains(&Effect::Fills));
            let findings = match found.entries() {
                Ok(_) if comes_along => {
                    let condition = "unless it comes along with what the project is created from";
                    Ok(self.possible(section, condition))
                }
                _ => inside.compare(section, found),
            };
            match findings {
                Ok(findings) => plan.findings.extend(findings),
                Err(reason) => {
                    let address = self.address.section(name);
                    plan.findings.incomplete.push(Incomplete { address, reason });
                }
            }
        }
        self.refuse_low_shares(plan);
        self.say_besides(plan);
        order::arrange(self.declared.scope, &self.settings.caller, &mut plan.findings.steps);
    }

    /// The container itself, with what comes along with it. What has to wait becomes a note.
    fn creation(&self, create: &Declared, plan: &mut ContainerPlan) -> Result<Step, Box<Problem>> {
        let (own, _) = kinds::container(self.declared.scope);
        let own_fields = create.iter().map(|(name, field)| (own, name, field));
        let along = || self.in_order().filter(|(_, section)| section.of.comes_with_container());
        let along_fields = along().flat_map(|(_, section)| {
            let met = |entry: &Entry| forms::met(section.of, &entry.values(), &Object::new());
            section.entries.iter().flat_map(move |entry| {
                let mut met = met(entry).unwrap_or_default();
                entry.fields.iter().map(move |(name, field)| {
                    let value = met.remove(name).unwrap_or(field.value);
                    (section.of, name, Sourced { value, ..field })
                })
            })
        });
        let fields: BTreeMap<_, _> = own_fields
            .chain(along_fields)
            .map(|(section, name, field)| (name, (section, field)))
            .collect();
        let values: Fields = fields
            .iter()
            .map(|(name, (_, field))| ((*name).to_owned(), field.value.clone()))
            .collect();
        let mut changes = Vec::new();
        for (name, (section, field)) in &fields {
            match diff::fit(*section, name, &field.value, self.context.release) {
                Fit::Depends => plan.findings.ask(Question::Release),
                Fit::Unfit(unfit) => {
                    let address = match section.shape {
                        Shape::Container => self.address.clone(),
                        _ => self.address.section(section.section),
                    };
                    return Err(Box::new(unfit.problem(address, field.origin.clone())));
                }
                Fit::Fits | Fit::Local => {}
            }
            let own = section.field(name);
            let late = match diff::bound(own, name, &field.value, self.context, &mut plan.findings)
            {
                Some(Bound::Refused(message, help)) => {
                    return Err(Box::new(Problem {
                        address: self.address.section(section.section),
                        code: "too-visible",
                        message,
                        help: Some(help),
                        origin: field.origin.clone(),
                    }));
                }
                Some(Bound::Waits(why)) => Some(why),
                None => section.rules.waits(*section, name, &values, None, true).map(str::to_owned),
            };
            match late {
                Some(why) => {
                    let note = self.note(Reason::Waits { why }, &field.origin);
                    plan.findings.notes.push(Note {
                        address: self.address.section(section.section),
                        fields: vec![(*name).to_owned()],
                        ..note
                    });
                }
                None => changes.push(diff::creation_change(section.field(name), name, field)),
            }
        }
        let job = Job {
            is_alone: true,
            section: own,
            target: self.context.target,
            names: self.context.names,
            release: self.context.release,
            act: Act::Create(&values),
        };
        let origin = self.declared.origin.clone();
        let at = |name: &str| {
            fields.get(name).map_or_else(|| origin.clone(), |(_, field)| field.origin.clone())
        };
        let mut sends = own.rules.calls(&job).map_err(|unable| {
            let problem = diff::problem(unable, self.address, at);
            Box::new(problem.unwrap_or_else(|| missing(self.declared, self.address, false)))
        })?;
        for (neutral, name) in &self.settings.hosts {
            for call in &mut sends {
                call.request = call.request.clone().rename(neutral, name);
            }
        }
        let step = Step::new(
            self.declared.scope,
            self.address.clone(),
            Action::Create,
            origin,
            changes,
            sends,
        );
        let after = forms::plain(&values);
        let effects = along().flat_map(|(_, s)| s.of.rules.effects(None, &Object::new(), &after));
        let visibility = effects.filter(|effect| matches!(effect, Effect::Visibility { .. }));
        let effects = std::iter::once(Effect::Provides(Capability::Exists))
            .chain(visibility)
            .chain(self.follows())
            .chain(own.rules.effects(None, &Object::new(), &after));
        Ok(Step { effects: effects.collect(), ..step })
    }
}
