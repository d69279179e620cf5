//! Grants that depend on a share: rules that must be repaired after a share is replaced, and grants
//! that are lost with it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::civil::Date;

use super::{
    ContainerPlan,
    container::ContainerPlanner,
    order::{narrows_visibility, visibility_change},
};
use crate::{
    address::{Address, groups_above},
    catalogue::{self, shares},
    desired::{self, DeclaredSection, DesiredEntry, EntryPresence, Unlisted, subject_field},
    diff::{
        Action, Findings, Held, Note, Problem, Reason, Step,
        texts::{self, words},
    },
    field::{Compare, NamedObject, Scope},
    kind::{Capability, Effect, Id, Section, forms, visibility_rank},
    level::{AccessLevel, DEVELOPER, MAINTAINER},
    live::{ExtraFact, LiveEntries, Presence},
    text::escape,
};

impl ContainerPlanner<'_> {
    /// Plans the repair of rules whose grants the service may remove when a share is replaced or a
    /// membership ends although access stays.
    pub(super) fn repair_grants(&self, plan: &mut ContainerPlan) {
        let losers: Vec<_> =
            plan.findings.steps.iter().filter_map(|step| self.grant_loser(step)).collect();
        if losers.is_empty() {
            return;
        }
        let closed_sections = plan.closed_sections.clone();
        let open = self
            .ordered_sections()
            .filter(|section| !closed_sections.contains(section.section.section));
        for section in open {
            let Some(repairs) = self.without_grants(section, &losers) else { continue };
            let mut watched = repairs.watched.iter();
            if let Some(until) = watched.find_map(|step| self.settings.held_until(&step.address)) {
                return self.hold_replacements(until, plan);
            }
            // Report what cannot be repaired afterwards, so that nothing is removed.
            for scope in repairs.incomplete {
                if !plan.incomplete.contains(&scope) {
                    plan.findings.incomplete.push(scope);
                }
            }
            for step in repairs.steps {
                add_possible(step, &mut plan.findings.steps);
            }
        }
    }

    /// The group or user that may lose grants with `step` without losing access.
    fn grant_loser(&self, step: &Step) -> Option<(NamedObject, u64)> {
        let stays = step.provides(Capability::People);
        match step.action {
            Action::Delete if stays => Some((NamedObject::User, step.live_id()?)),
            _ if step.replaces && self.is_of_group(step) => {
                Some((NamedObject::Group, step.live_id()?))
            }
            _ => None,
        }
    }

    /// The differences of a section if its grants to `losers` were lost; `None` if it names nobody,
    /// or was not read.
    fn without_grants(
        &self,
        section: &DeclaredSection,
        losers: &[(NamedObject, u64)],
    ) -> Option<Findings> {
        let names_people = section.section.scoped_kind.names_people;
        let found =
            self.context.live.sections.get(section.section.section).filter(|_| names_people)?;
        let mut supposed = found.entries().ok()?.to_vec();
        for entry in &mut supposed {
            for (named, id) in losers {
                *entry = entry.without_grants(section.section.table(), *named, &[*id]);
            }
        }
        self.compare_section(section, &LiveEntries::Written(supposed)).ok()
    }

    /// Refuses steps whose rules name somebody without enough access: in a project, a group whose
    /// share (declared or live) is missing or below developer; in a group, a group outside it, or a
    /// member below maintainer.
    pub(super) fn refuse_low_access(&self, plan: &mut ContainerPlan) {
        let mut effects = plan.findings.steps.iter().flat_map(|step| &step.effects);
        if !effects.any(|effect| matches!(effect, Effect::NeedsAccess { .. })) {
            return;
        }
        // Of the others, no level decides.
        let decisive = self.declared.scope.choose(NamedObject::User, NamedObject::Group);
        let levels = self.declared_and_live_levels(decisive);
        for step in std::mem::take(&mut plan.findings.steps) {
            let mut seen = BTreeSet::new();
            let problems_before = plan.findings.problems.len();
            for effect in &step.effects {
                let Effect::NeedsAccess { of, id, .. } = effect else { continue };
                if !seen.insert((*of, id)) {
                    continue;
                }
                let name = match id {
                    Id::Known(id) => self.context.names.name(*of, *id).unwrap_or_default(),
                    Id::OfStep(path) => path,
                };
                let level = levels.get(id).filter(|_| *of == decisive);
                let texts = match (self.declared.scope, of, level) {
                    (Scope::Group, NamedObject::Group, _) if !self.is_within(name) => {
                        texts::GROUP_OUTSIDE
                    }
                    (Scope::Group, NamedObject::User, Some(level))
                        if level.number < MAINTAINER && !self.may_give_more() =>
                    {
                        texts::LOW_MEMBER
                    }
                    (Scope::Project, NamedObject::Group, Some(level))
                        if level.number < DEVELOPER =>
                    {
                        texts::LOW_SHARE
                    }
                    (Scope::Project, NamedObject::Group, None)
                        if id.number().is_none()
                            || step.possible.is_none()
                                && self.knows_all_shares(&mut plan.findings) =>
                    {
                        texts::NO_SHARE
                    }
                    _ => continue,
                };
                let level = level.map_or("", |level| level.word);
                let words = words![name = escape(name), level];
                let problem = Problem::from_texts(texts, words, &step.address, &step.origin);
                plan.findings.problems.push(problem);
            }
            if plan.findings.problems.len() == problems_before {
                plan.findings.steps.push(step);
            }
        }
    }

    /// Whether the group that is now at `path` is declared in this one.
    fn is_within(&self, path: &str) -> bool {
        let declared_path = self.settings.moves.declared_path(path).to_lowercase();
        groups_above(&declared_path).any(|group| *group == self.address.path.to_lowercase())
    }

    /// Whether a group above, or a share, may give a member a higher level.
    fn may_give_more(&self) -> bool {
        self.context.has_group_above()
            || !self.declared_and_live_levels(NamedObject::Group).is_empty()
    }

    /// True if all groups that the container is shared with are known.
    fn knows_all_shares(&self, findings: &mut Findings) -> bool {
        match self.context.live.sections.get(shares::SECTION) {
            _ if !matches!(self.context.live.presence, Presence::Here(..)) => true,
            Some(shares) => shares.entries().is_ok(),
            None => {
                findings.add_question(ExtraFact::Shares);
                false
            }
        }
    }

    /// Marks steps whose rules name users without access to this project, or without maintainer
    /// access to this group. `connect` refuses them unless a step elsewhere grants the access. Only
    /// for administrators: others cannot see all shares with private groups.
    pub(super) fn mark_outsiders(&self, plan: &mut ContainerPlan) {
        let mut effects = plan.findings.steps.iter().flat_map(|step| &step.effects);
        let owner = self.context.facts.personal_owner;
        let scope = self.declared.scope;
        let is_certain = self.context.caller.is_administrator
            && (scope == Scope::Group || owner.is_some() || self.context.has_group_above())
            && !effects.any(|effect| *effect == Effect::Fills);
        if !is_certain {
            return;
        }
        let accesses = plan.findings.steps.iter().flat_map(Step::accesses);
        let min_level = scope.choose(MAINTAINER, 1);
        let members = accesses.filter(|(.., after)| *after >= min_level).map(|(user, ..)| user);
        let live_users = self.context.live.users_with_access.iter().flatten().flatten().copied();
        let mut inside: BTreeSet<_> = members.chain(live_users).chain(owner).collect();
        if !matches!(self.context.live.presence, Presence::Here(..)) {
            inside.insert(self.context.caller.id);
        }
        let mut asks = false;
        let steps = plan.findings.steps.iter_mut().filter(|step| step.possible.is_none());
        for effect in steps.flat_map(|step| &mut step.effects) {
            let Effect::NeedsAccess { of: NamedObject::User, id: Id::Known(id), outsider } = effect
            else {
                continue;
            };
            match &self.context.live.users_with_access {
                _ if inside.contains(id) => {}
                None => asks = true,
                Some(Ok(_)) => {
                    *outsider = self.context.names.name(NamedObject::User, *id).map(str::to_owned);
                }
                Some(Err(_)) => {}
            }
        }
        if asks {
            plan.findings.add_question(ExtraFact::UsersWithAccess);
        }
    }

    /// Adds to a step that narrows a group the contents that would be more visible than the group.
    pub(super) fn mark_contents(&self, plan: &mut ContainerPlan) {
        let mut steps = plan.findings.steps.iter_mut().filter(|step| step.scope == Scope::Group);
        let Some(step) = steps.find(|step| narrows_visibility(step)) else { return };
        let Some(contents) = &self.context.live.visibilities_below else {
            return plan.findings.add_question(ExtraFact::VisibilitiesBelow);
        };
        let Some((_, max_rank)) = visibility_change(step) else { return };
        for effect in &mut step.effects {
            let Effect::Visibility { more_visible, .. } = effect else { continue };
            more_visible.extend(contents.iter().filter_map(|(path, visibility)| {
                let rank = visibility_rank(visibility).filter(|rank| *rank > max_rank)?;
                Some((self.settings.moves.declared_path(path), rank))
            }));
        }
    }

    /// Reports rules that name someone whose access this run takes away: the service then takes them
    /// out of the rule. Marks the removal of members who keep access by a group above.
    pub(super) fn refuse_named_leavers(&self, plan: &mut ContainerPlan) {
        let mut rules: HashMap<_, Vec<_>> = HashMap::new();
        for section in self.ordered_sections() {
            for (grantee, rule) in grantees(section) {
                rules.entry(grantee).or_default().push((section, rule));
            }
        }
        let (mut found, mut asks) = (Vec::new(), false);
        for step in &mut plan.findings.steps {
            if step.action != Action::Delete || step.is_copy {
                continue;
            }
            let Some(grantee) = access_loser(step) else { continue };
            let Some(rules) = rules.get(&grantee) else { continue };
            let user = step.effects.iter().find_map(|effect| match effect {
                Effect::Access { user, .. } => Some(*user),
                _ => None,
            });
            if let Some(user) = user {
                let path = &self.address.path;
                let levels_above =
                    self.context.live.levels_above.as_ref().filter(|_| path.contains('/'));
                if self.settings.groups.has_member_above(path, &grantee.1)
                    || levels_above.is_some_and(|above| {
                        // An empty list may be one that could not be read.
                        above.is_empty() || user.is_none_or(|user| above.contains_key(&user))
                    })
                {
                    let is_other = user != Some(self.context.caller.id);
                    step.effects.extend(is_other.then_some(Effect::provides(Capability::People)));
                    continue;
                }
                asks |= levels_above.is_none() && path.contains('/');
            }
            let member_name = escape(step.address.entry.as_deref().unwrap_or_default());
            found.extend(rules.iter().map(|(section, rule)| {
                let address = section.address_of(rule, self.address);
                Problem::from_texts(
                    texts::ACCESS_ENDS,
                    &[("key", &member_name)],
                    &address,
                    &rule.origin,
                )
            }));
        }
        if asks {
            plan.findings.add_question(ExtraFact::Inherited);
        }
        plan.findings.problems.extend(found);
    }

    /// The rules that name users whose access no group above declares, by username.
    pub(super) fn user_rules(&self) -> Vec<(String, UserRule)> {
        let members: BTreeSet<_> = desired::declared_members(self.declared).collect();
        let mut rules = Vec::new();
        for section in self.ordered_sections() {
            for ((named, name), rule) in grantees(section) {
                let is_given = self.settings.groups.has_member_above(&self.address.path, &name);
                if named == Some(NamedObject::User) && !is_given {
                    let address = section.address_of(rule, self.address);
                    let is_member = members.contains(&*name);
                    rules.push((name, UserRule { address, is_member }));
                }
            }
        }
        rules
    }

    /// The levels of the container's members or shares with groups, by id, where they are declared or were read.
    fn declared_and_live_levels(&self, named: NamedObject) -> BTreeMap<Id, AccessLevel> {
        let mut levels = BTreeMap::new();
        for section in catalogue::sections(self.declared.scope) {
            let Some((identity, _)) = subject_field(section).filter(|of| of.1 == named) else {
                continue;
            };
            let mut specs = section.table().specs().iter();
            let Some(level) = specs.find(|spec| spec.field.is_level()) else { continue };
            levels.extend(
                self.context.live.entries(section.section).into_iter().flatten().filter_map(
                    |entry| {
                        Some((
                            Id::Known(entry.id()?),
                            AccessLevel::parse(entry.fields.raw().get(level.name)?)?,
                        ))
                    },
                ),
            );
            let declared = self.declared.present(section.section);
            levels.extend(declared.filter_map(|entry| {
                let name = entry.fields.get(identity)?.value;
                let id = self.context.names.id(named, name.text()?)?;
                let level = entry.fields.get(level.name)?.value;
                Some((id, AccessLevel::parse(level.plain()?)?))
            }));
        }
        levels
    }

    /// Holds all replacements of shares and removals of members that would also remove something that is held.
    fn hold_replacements(&self, until: Date, plan: &mut ContainerPlan) {
        let spared: Vec<_> =
            plan.findings.steps.extract_if(.., |step| self.grant_loser(step).is_some()).collect();
        let held = spared.iter().map(|step| Held { address: step.address.clone(), until });
        plan.findings.held.extend(held);
        plan.findings.watched.extend(spared);
    }

    /// Adds notes for steps that remove or replace a share: the service also removes the group's
    /// grants in rules, and no manifest declares those.
    pub(super) fn note_lost_grants(&self, plan: &mut ContainerPlan) {
        let notes = plan.findings.steps.iter().filter_map(|step| self.lost_grants_note(step));
        plan.findings.notes.extend(notes);
    }

    fn lost_grants_note(&self, step: &Step) -> Option<Note> {
        let removes = step.replaces || step.action == Action::Delete;
        let group = step.live_id().filter(|_| removes && self.is_of_group(step))?;
        let rules = catalogue::sections(self.declared.scope).filter(|section| {
            let mut specs = section.table().specs().iter();
            section.scoped_kind.names_people
                && specs.any(|spec| spec.field.compare == Compare::Rows)
        });
        let grants_of: Vec<_> =
            rules.flat_map(|section| self.undeclared_grants(section, group)).collect();
        let reason = Reason::TakesAlong { grants_of: grants_of.clone() };
        let note = Note::new(&step.address, reason, &step.origin);
        (!grants_of.is_empty()).then_some(note)
    }

    /// The entries of `section` that stay and grant something to the group with the id `group` in
    /// an undeclared field; the section itself if it was not read.
    fn undeclared_grants(&self, section: Section, group: u64) -> Vec<Address> {
        let address = self.address.section(section.section);
        let declared = self.declared.section(section.section);
        let found = self.context.live.entries(section.section);
        let (Some(declared), Some(entries)) = (declared, found) else { return vec![address] };
        let entries = entries.iter().filter(|entry| {
            let name = section.name(entry.fields.raw());
            let entry_declared = declared.entry(&name);
            let stays = match entry_declared {
                Some(entry_declared) => entry_declared.state == EntryPresence::Present,
                None => declared.unlisted.value != Unlisted::Delete,
            };
            let stripped =
                entry.without_grants(section.table(), NamedObject::Group, &[group]).fields;
            let fields = entry.fields.raw().iter();
            let mut lost =
                fields.filter(|(field, value)| stripped.raw().get(*field) != Some(value));
            stays
                && lost.any(|(field, _)| {
                    entry_declared.is_none_or(|declared| !declared.fields.contains_key(field))
                })
        });
        entries.map(|entry| address.entry(section.name(entry.fields.raw()))).collect()
    }

    /// True if the identity of the entry of `step` is the group in it.
    fn is_of_group(&self, step: &Step) -> bool {
        let section = step.address.section.and_then(|name| self.declared.section(name));
        let subject = section.and_then(|section| subject_field(section.section));
        subject.is_some_and(|(_, named)| named == NamedObject::Group)
    }
}

/// A rule that names a user.
#[derive(Clone, Debug)]
pub(super) struct UserRule {
    /// The rule.
    pub(super) address: Address,
    /// Whether the same document declares the user as a member.
    pub(super) is_member: bool,
}

/// A user or group, or a deploy key, by its name in lower case.
pub type Grantee = (Option<NamedObject>, String);

/// The grantee whose access `step` removes or reduces, or the deploy key that it changes.
pub fn access_loser(step: &Step) -> Option<Grantee> {
    let kind = catalogue::section(step.scope, step.address.section?)?;
    if let Some(title) = kind.called_by.filter(|_| step.action != Action::Create) {
        let title = step.live_entry()?.fields.raw().get(title)?.as_str()?;
        return Some((None, title.to_lowercase()));
    }
    let loses_access = step.effects.iter().any(|effect| match effect {
        Effect::Access { before, after, .. } | Effect::Share { before, after, .. } => {
            after < before
        }
        _ => false,
    });
    let (_, named) = subject_field(kind)?;
    let name = step.address.entry.as_ref().filter(|_| loses_access)?;
    Some((Some(named), name.to_lowercase()))
}

/// The users, groups and deploy keys that rules in `section` name, each with its rule.
pub fn grantees(section: &DeclaredSection) -> impl Iterator<Item = (Grantee, &DesiredEntry)> {
    let names_people = section.section.scoped_kind.names_people;
    section.present().filter(move |_| names_people).flat_map(|rule| {
        let values = rule.values();
        let people = forms::referenced_names(section.section, &values).into_iter();
        let people = people.map(|(_, named, name)| (Some(named), name.to_lowercase()));
        let fields = forms::plain_fields(&values);
        let keys = forms::referenced_entries(section.section, &fields);
        let keys = keys.filter_map(|(_, title)| Some((None, title.as_str()?.to_lowercase())));
        let rule_grantees: BTreeSet<_> = people.chain(keys).collect();
        rule_grantees.into_iter().map(move |grantee| (grantee, rule))
    })
}

/// Adds a step that is needed if the service removes grants, as far as it does more than the
/// step planned for the same object.
fn add_possible(step: Step, steps: &mut Vec<Step>) {
    let planned = steps.iter_mut().find(|planned| planned.address == step.address);
    if step.changes.iter().all(|change| {
        planned.as_ref().is_some_and(|planned| planned.change(&change.field).is_some())
    }) {
        return;
    }
    // For the present live state, only the known step is needed.
    let effects = planned.as_ref().map(|planned| planned.effects.clone()).unwrap_or_default();
    let condition = "if the service removes what rules grant together with the share or membership";
    let step = Step { possible: Some(condition), effects, ..step };
    match planned {
        Some(planned) => {
            let certain = std::mem::replace(planned, step);
            planned.certain = Some(Box::new(certain));
        }
        None => steps.push(step),
    }
}
