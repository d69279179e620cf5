//! Checks the users and groups that rules name: their access may be missing, too low or removed.
//! `lost` handles the grants that end with a share or membership.

mod lost;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    ContainerPlan,
    container::ContainerPlanner,
    order::{narrows_visibility, visibility_change},
};
use crate::{
    address::{Address, groups_above},
    catalogue::{self, shares},
    desired::{self, DeclaredEntry, DeclaredSection, subject_field},
    diff::{
        Action, Findings, Problem, Step,
        texts::{self, placeholders},
    },
    field::{NamedObject, Scope},
    kind::{Capability, Effect, Id, Outsider, forms, visibility_rank},
    level::{AccessLevel, DEVELOPER, MAINTAINER},
    live::{ExtraFact, Presence},
    text::escape,
};

impl ContainerPlanner<'_> {
    /// Refuses steps whose rules name a user or group without enough access. A rule of a project
    /// must not name a group whose declared or live share is missing or below developer. A rule of
    /// a group must not name a group outside that group, or a member below maintainer.
    pub(super) fn refuse_low_access(&self, plan: &mut ContainerPlan) {
        let mut effects = plan.findings.steps.iter().flat_map(|step| &step.effects);
        if !effects.any(|effect| matches!(effect, Effect::NeedsAccess { .. })) {
            return;
        }
        // The levels of the other type of grantee do not matter.
        let deciding_type = self.declared.scope.choose(NamedObject::User, NamedObject::Group);
        let levels = self.merged_levels(deciding_type);
        for step in std::mem::take(&mut plan.findings.steps) {
            let mut seen_grantees = BTreeSet::new();
            let problem_count = plan.findings.problems.len();
            for effect in &step.effects {
                let Effect::NeedsAccess { object_type: grantee_type, id, .. } = effect else {
                    continue;
                };
                if !seen_grantees.insert((*grantee_type, id)) {
                    continue;
                }
                let name = match id {
                    Id::Known(id) => {
                        self.context.names.name(*grantee_type, *id).unwrap_or_default()
                    }
                    Id::Pending(path) => path,
                };
                let level = levels.get(id).filter(|_| *grantee_type == deciding_type);
                let problem_texts = match (self.declared.scope, grantee_type, level) {
                    (Scope::Group, NamedObject::Group, _) if !self.is_path_within(name) => {
                        texts::GROUP_OUTSIDE
                    }
                    (Scope::Group, NamedObject::User, Some(level))
                        if level.number < MAINTAINER && !self.may_raise_members() =>
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
                let args = placeholders![name = escape(name), level];
                let problem = Problem::from_texts(problem_texts, args, &step.address, &step.origin);
                plan.findings.problems.push(problem);
            }
            if plan.findings.problems.len() == problem_count {
                plan.findings.steps.push(step);
            }
        }
    }

    /// True if the group that is now at `path` is declared inside this group.
    fn is_path_within(&self, path: &str) -> bool {
        let declared_path = self.settings.moves.declared_path(path).to_lowercase();
        groups_above(&declared_path).any(|group| *group == self.address.path.to_lowercase())
    }

    /// True if a group above, or a share, may give a member a higher level.
    fn may_raise_members(&self) -> bool {
        self.context.has_group_above() || !self.merged_levels(NamedObject::Group).is_empty()
    }

    /// True if all groups that the container is shared with are known.
    fn knows_all_shares(&self, findings: &mut Findings) -> bool {
        match self.context.live.sections.get(shares::SECTION) {
            _ if !matches!(self.context.live.presence, Presence::Existing(..)) => true,
            Some(shares) => shares.entries().is_ok(),
            None => {
                findings.add_missing_fact(ExtraFact::Shares);
                false
            }
        }
    }

    /// Marks steps whose rules name users without access to this project, or without maintainer
    /// access to this group. `connect` refuses them unless a step elsewhere grants the access.
    /// Marks nothing if the caller is not an administrator, because other callers cannot see all
    /// shares with private groups.
    pub(super) fn mark_outsiders(&self, plan: &mut ContainerPlan) {
        let mut effects = plan.findings.steps.iter().flat_map(|step| &step.effects);
        let owner_id = self.context.facts.personal_owner_id;
        let scope = self.declared.scope;
        let is_certain = self.context.caller.is_administrator
            && (scope == Scope::Group || owner_id.is_some() || self.context.has_group_above())
            && !effects.any(|effect| *effect == Effect::AddsContents);
        if !is_certain {
            return;
        }
        let access_changes = plan.findings.steps.iter().flat_map(Step::user_access_changes);
        let min_level = scope.choose(MAINTAINER, 1);
        let members =
            access_changes.filter(|(.., after)| *after >= min_level).map(|(user, ..)| user);
        let live_users = self.context.live.users_with_access.iter().flatten().flatten().copied();
        let mut users_inside: BTreeSet<_> = members.chain(live_users).chain(owner_id).collect();
        if !matches!(self.context.live.presence, Presence::Existing(..)) {
            users_inside.insert(self.context.caller.id);
        }
        let (mut needs_users, mut needs_groups) = (false, false);
        let steps = plan.findings.steps.iter_mut().filter(|step| step.possible.is_none());
        for effect in steps.flat_map(|step| &mut step.effects) {
            let Effect::NeedsAccess { object_type: NamedObject::User, id: Id::Known(id), outsider } =
                effect
            else {
                continue;
            };
            match &self.context.live.users_with_access {
                _ if users_inside.contains(id) => {}
                None => needs_users = true,
                Some(Ok(_)) => match &self.context.live.sharing_groups {
                    None => needs_groups = true,
                    Some(Ok(groups)) => {
                        let name = self.context.names.name(NamedObject::User, *id);
                        let sharing_groups = Arc::clone(groups);
                        *outsider =
                            name.map(|name| Outsider { name: name.to_owned(), sharing_groups });
                    }
                    Some(Err(_)) => {}
                },
                Some(Err(_)) => {}
            }
        }
        if needs_users {
            plan.findings.add_missing_fact(ExtraFact::UsersWithAccess);
        }
        if needs_groups {
            plan.findings.add_missing_fact(ExtraFact::SharingGroups);
        }
    }

    /// Finds the step that narrows the visibility of the group, and adds to that step the contents
    /// that would be more visible than the group.
    pub(super) fn record_more_visible(&self, plan: &mut ContainerPlan) {
        let mut steps = plan.findings.steps.iter_mut().filter(|step| step.scope == Scope::Group);
        let Some(step) = steps.find(|step| narrows_visibility(step)) else { return };
        let Some(contents) = &self.context.live.visibilities_below else {
            return plan.findings.add_missing_fact(ExtraFact::VisibilitiesBelow);
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

    /// Adds the levels that users have from the group above to the steps that change their access.
    /// The service refuses a level below these; `connect` knows which of them this run lowers.
    pub(super) fn add_inherited_levels(&self, plan: &mut ContainerPlan) {
        let (steps, live) = (&mut plan.findings.steps, self.context.live);
        let (mut needs_levels, mut needs_memberships) = (false, false);
        for step in steps.iter_mut().filter(|_| self.context.has_group_above()) {
            let is_group = step.scope == Scope::Group;
            for effect in &mut step.effects {
                let Effect::Access {
                    user_id: Some(user_id),
                    after,
                    inherited_level: inherited,
                    memberships_above,
                    ..
                } = effect
                else {
                    continue;
                };
                match &live.levels_above {
                    Some(levels) => *inherited = levels.get(user_id).copied().unwrap_or(0),
                    // A user who loses all access may keep the level of a group above. This matters
                    // only if the container is a group, for the containers below it.
                    None => needs_levels |= *after > 0 || is_group,
                }
                match &live.memberships_above {
                    Some(groups) => {
                        let memberships = groups.iter().filter_map(|(group, levels)| {
                            Some((Arc::clone(group), *levels.get(user_id)?))
                        });
                        memberships_above.extend(memberships);
                    }
                    None => needs_memberships |= *after > 0 && *inherited > *after,
                }
            }
        }
        if needs_levels {
            plan.findings.add_missing_fact(ExtraFact::LevelsAbove);
        }
        if needs_memberships {
            plan.findings.add_missing_fact(ExtraFact::MembershipsAbove);
        }
    }

    /// Reports rules that name a user or group whose access this run removes, because the service would
    /// remove the name from the rule. Marks removals of members who keep access through a group above.
    pub(super) fn refuse_lost_access(&self, plan: &mut ContainerPlan) {
        let mut rules: HashMap<_, Vec<_>> = HashMap::new();
        for section in self.ordered_sections() {
            for (grantee, rule) in grantees(section) {
                rules.entry(grantee).or_default().push((section, rule));
            }
        }
        let has_group_above = self.context.has_group_above();
        let (mut problems, mut needs_levels_above) = (Vec::new(), false);
        for step in &mut plan.findings.steps {
            if step.action != Action::Delete || step.removes_copy {
                continue;
            }
            let Some(grantee) = grantee_losing_access(step) else { continue };
            let Some(rules) = rules.get(&grantee) else { continue };
            let losing_user_id = step.effects.iter().find_map(|effect| match effect {
                Effect::Access { user_id: user, .. } => Some(*user),
                _ => None,
            });
            if let Some(user_id) = losing_user_id {
                let path = &self.address.path;
                let levels_above =
                    self.context.live.levels_above.as_ref().filter(|_| has_group_above);
                if self.settings.group_declarations.has_member_above(path, &grantee.1)
                    || levels_above.is_some_and(|levels| {
                        // An empty map may mean that the levels could not be read.
                        levels.is_empty() || user_id.is_none_or(|user| levels.contains_key(&user))
                    })
                {
                    let is_other = user_id != Some(self.context.caller.id);
                    step.effects
                        .extend(is_other.then_some(Effect::provides(Capability::NamedAccess)));
                    continue;
                }
                needs_levels_above |= levels_above.is_none() && has_group_above;
            }
            let key = escape(step.address.entry.as_deref().unwrap_or_default());
            problems.extend(rules.iter().map(|(section, rule)| {
                let (address, args) = (section.address_of(rule, self.address), placeholders![key]);
                Problem::from_texts(texts::ACCESS_ENDS, args, &address, &rule.origin)
            }));
        }
        if needs_levels_above {
            plan.findings.add_missing_fact(ExtraFact::LevelsAbove);
        }
        plan.findings.problems.extend(problems);
    }

    /// The rules that name users for whom no group above declares access, by username.
    pub(super) fn user_rules(&self) -> Vec<(String, UserRule)> {
        let members: BTreeSet<_> = desired::declared_members(self.declared).collect();
        let mut rules = Vec::new();
        for section in self.ordered_sections() {
            for ((grantee_type, name), rule) in grantees(section) {
                let is_member_above =
                    self.settings.group_declarations.has_member_above(&self.address.path, &name);
                if grantee_type == Some(NamedObject::User) && !is_member_above {
                    let address = section.address_of(rule, self.address);
                    let is_member = members.contains(&*name);
                    rules.push((name, UserRule { address, is_member }));
                }
            }
        }
        rules
    }

    /// The levels of the container's members or group shares, by id. A declared level replaces the
    /// live level.
    fn merged_levels(&self, object_type: NamedObject) -> BTreeMap<Id, AccessLevel> {
        let mut levels = BTreeMap::new();
        for section in catalogue::sections(self.declared.scope) {
            let Some((identity, _)) =
                subject_field(section).filter(|subject| subject.1 == object_type)
            else {
                continue;
            };
            let mut specs = section.specs().iter();
            let Some(level_spec) = specs.find(|spec| spec.field.is_level()) else { continue };
            let live_entries = self.context.live.entries(section.section).into_iter().flatten();
            levels.extend(live_entries.filter_map(|entry| {
                let level = entry.fields.raw().get(level_spec.name)?;
                Some((Id::Known(entry.id()?), AccessLevel::parse(level)?))
            }));
            let declared_entries = self.declared.present_entries(section.section);
            levels.extend(declared_entries.filter_map(|entry| {
                let name = entry.fields.get(identity)?.value;
                let id = self.context.names.id(object_type, name.text()?)?;
                let level = entry.fields.get(level_spec.name)?.value;
                Some((id, AccessLevel::parse(level.plain_json()?)?))
            }));
        }
        levels
    }
}

/// A rule that names a user.
#[derive(Clone, Debug)]
pub(super) struct UserRule {
    /// The address of the rule.
    pub(super) address: Address,
    /// True if the same document declares the user as a member.
    pub(super) is_member: bool,
}

/// The type and the lower-case name of a user, a group or a deploy key. The type of a deploy key is
/// `None`.
pub type Grantee = (Option<NamedObject>, String);

/// The grantee whose access `step` removes or reduces, or the deploy key that it changes.
pub fn grantee_losing_access(step: &Step) -> Option<Grantee> {
    let kind = catalogue::find_section(step.scope, step.address.section?)?;
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
    let (_, object_type) = subject_field(kind)?;
    let name = step.address.entry.as_ref().filter(|_| loses_access)?;
    Some((Some(object_type), name.to_lowercase()))
}

/// The users, groups and deploy keys that rules in `section` name, each with its rule.
pub fn grantees(section: &DeclaredSection) -> impl Iterator<Item = (Grantee, &DeclaredEntry)> {
    let requires_members = section.kind.scoped_kind.requires_members;
    section.present_entries().filter(move |_| requires_members).flat_map(|rule| {
        let values = rule.values();
        let subjects = forms::referenced_names(section.kind, &values).into_iter();
        let subjects =
            subjects.map(|(_, object_type, name)| (Some(object_type), name.to_lowercase()));
        let fields = forms::plain_fields(&values);
        let keys = forms::referenced_entries(section.kind, &fields);
        let keys = keys.filter_map(|(_, title)| Some((None, title.as_str()?.to_lowercase())));
        let rule_grantees: BTreeSet<_> = subjects.chain(keys).collect();
        rule_grantees.into_iter().map(move |grantee| (grantee, rule))
    })
}
