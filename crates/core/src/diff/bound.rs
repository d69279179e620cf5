//! Finds limits of declared values and of creations. A limit comes from a setting of a group above,
//! or from the release of the service.

use std::{borrow::Cow, sync::Arc};

use super::{
    DiffContext, Findings, Problem, Step,
    texts::{self, placeholders},
};
use crate::{
    address::{Address, groups_above, parent_group_path},
    catalogue::{
        self,
        constraints::{self, Constraint, ConstraintEffect, SETTINGS_ABOVE_KEY},
        settings,
    },
    field::Scope,
    kind::{Effect, Id, LiveNamespace, NamespaceOwner, Section, Target, are_equal},
    live::ExtraFact,
    origin::Origin,
    release::DetectedRelease,
    text,
    value::{Json, Value, items},
};

/// The reason why the service does not accept a declared value now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueLimit {
    /// The service refuses the value. Contains the code, the message and the help of the problem.
    Refused(&'static str, String, String),
    /// The value would have no effect yet. Contains the end of a sentence that begins with `waits`.
    NotYetEffective(String),
}

impl ValueLimit {
    /// The problem at `address`.
    ///
    /// # Errors
    /// If the value only waits: the end of a sentence that begins with `waits`.
    pub fn into_problem(self, address: &Address, origin: &Origin) -> Result<Problem, String> {
        match self {
            Self::Refused(code, message, help) => {
                Ok(Problem::new(address, code, message, help, origin))
            }
            Self::NotYetEffective(reason) => Err(reason),
        }
    }
}

impl<'c> DiffContext<'c> {
    /// Returns the limit if a setting of a group above does not allow `value` for the field `name`.
    /// Adds a question if the limit depends on an unknown fact. The declared value of the setting
    /// takes precedence over its live value. `check` reports conflicts of declared values.
    pub fn group_limit(
        self,
        section: Section,
        name: &str,
        value: &Value,
        findings: &mut Findings,
    ) -> Option<ValueLimit> {
        let plain_value = value.plain_json()?;
        constraints::find_constraints(section.section, Some(name)).find_map(|constraint| {
            let (group, group_value, source) =
                self.deciding_value(constraint, plain_value, findings)?;
            let is_declared = matches!(source, ValueSource::Declared);
            if !constraint.contradicts(&group_value, plain_value)
                || (is_declared
                    && constraint.effect == ConstraintEffect::Bounds
                    && self.declares_field(section, name))
            {
                return None;
            }
            let setting = &constraint.group_setting.field;
            if constraint.effect == ConstraintEffect::Replaces {
                return Some(ValueLimit::NotYetEffective(format!(
                    "until `{setting}` of `{group}` allows it"
                )));
            }
            let value_text = text::escape(group_value.as_str().unwrap_or_default());
            let is = match source {
                ValueSource::ReplacedIn(outer) => {
                    format!("`{outer}` sets to `{value_text}` in this run")
                }
                ValueSource::Live | ValueSource::Declared => format!("is `{value_text}`"),
            };
            let args = placeholders![name, setting, group, is];
            let [code, message, help] = texts::BEYOND_GROUP;
            Some(ValueLimit::Refused(code, text::fill(message, args), text::fill(help, args)))
        })
    }

    /// True if the container declares the field `name` of `section`.
    fn declares_field(self, section: Section, name: &str) -> bool {
        let mut sections = self
            .declared_sections
            .iter()
            .filter(|declared| declared.kind.section == section.section);
        sections.any(|declared| declared.field_names().any(|field| field == name))
    }

    /// The problem if a group above forbids `step`, which adds an entry to `section`, and this run does
    /// not lift the limit.
    pub fn creation_problem(
        self,
        section: Section,
        step: &Step,
        findings: &mut Findings,
    ) -> Option<Problem> {
        let advice = if step.replaces {
            "keep the entry unchanged: a change removes it and adds it again"
        } else if step.creates_container() {
            "leave out `create`"
        } else {
            "remove the entry"
        };
        let name = step.address.entry.as_deref().unwrap_or_default();
        let candidates = constraints::find_constraints(section.section, None);
        let candidates = candidates
            .filter(|constraint| constraint.includes_groups || self.target.scope == Scope::Project);
        candidates.filter(|constraint| constraint.applies_to(&self.target.path, name)).find_map(
            |constraint| {
                let (groups, group_value) =
                    match self.deciding_value(constraint, &Json::Null, findings) {
                        // A declared limit matters only if it is also live. If it is not live, the
                        // run sets the limit after the creation.
                        Some((_, group_value, ValueSource::Declared))
                            if !constraint.forbids(&group_value, self.target.scope) =>
                        {
                            return None;
                        }
                        _ => self.live_value_above(constraint, findings)?,
                    };
                let (setting, text, scope) =
                    (&constraint.group_setting.field, &constraint.text, self.target.scope);
                // This run lifts the limit in groups that declare another value.
                let lowest_path = self.path_below_groups(constraint);
                let declarations = self
                    .group_declarations
                    .declarations_above(&lowest_path, &constraint.group_setting);
                let lifting_declarations = declarations.filter(|(_, group_value)| {
                    group_value
                        .is_some_and(|declared_value| !constraint.forbids(declared_value, scope))
                });
                let lifting_groups: Vec<_> = lifting_declarations.map(|(path, _)| path).collect();
                let mut groups = groups.iter();
                let group = groups.find(|group| {
                    !lifting_groups.iter().any(|path| path.eq_ignore_ascii_case(group))
                })?;
                constraint.forbids(&group_value, scope).then(|| {
                    let message = format!("`{setting}` of `{group}` {text}");
                    let help = format!("change `{setting}` of `{group}` first, or {advice}");
                    Problem::new(&step.address, &constraint.code, message, help, &step.origin)
                })
            },
        )
    }

    /// Adds an effect to `step` for each entry of a group above that collides with the entry of
    /// `step`. Entries with the same name collide. Different entries also collide in a new project
    /// if a project can have only one of them, because the service copies the entry of the group
    /// into the project.
    pub(super) fn mark_collision(self, section: Section, step: &mut Step, findings: &mut Findings) {
        let Some(key) = step.address.entry.as_deref() else { return };
        let gets_copies = self.target.id.is_none() && section.exclusive_set(key).is_some();
        if !(section.is_name_unique_above() || gets_copies) || !self.has_group_above() {
            return;
        }
        let Some(entries_above) = self.live.entries_above.get(section.section) else {
            return findings.add_missing_fact(ExtraFact::EntriesAbove(section.section));
        };
        let Target { scope, path, .. } = self.target;
        let collisions = entries_above.iter().filter(|(name, group)| {
            section.may_collide_with(group, *scope, path) && section.collides_with_parent(key, name)
        });
        step.effects.extend(collisions.map(|(name, group)| {
            let group = Address::container(Arc::clone(group));
            Effect::follows(group.with_section(section.section).with_entry(name))
        }));
    }

    /// True if `key` names an inherited entry that no group above has any more.
    pub(super) fn is_orphaned(self, section: Section, key: &str, findings: &mut Findings) -> bool {
        if section.detail.is_none() || !self.has_group_above() {
            return false;
        }
        let Some(entries_above) = self.live.entries_above.get(section.section) else {
            findings.add_missing_fact(ExtraFact::EntriesAbove(section.section));
            return false;
        };
        !entries_above.iter().any(|(name, _)| name == key)
    }

    /// The declared value of the setting in the nearest group above that declares the setting.
    /// `None` if this run changes the setting in no group above.
    pub(super) fn changed_setting(
        self,
        constraint: &'static Constraint,
        findings: &mut Findings,
    ) -> Option<&'c Json> {
        if self.group_declarations.is_applied || !self.has_group_above() {
            return None;
        }
        let declarations: Vec<_> = self
            .group_declarations
            .declarations_above(&self.target.path, &constraint.group_setting)
            .collect();
        let nearest_value = declarations.first()?.1?;
        let Some(parent_settings) = &self.live.group_above else {
            findings.add_missing_fact(ExtraFact::GroupAbove);
            return None;
        };
        let spec = catalogue::find_section(Scope::Group, &constraint.group_setting.section)?
            .field(&constraint.group_setting.field);
        let is_changed = declarations.iter().any(|(group, group_value)| {
            let live_value = parent_settings.get(SETTINGS_ABOVE_KEY).and_then(|group_settings| {
                group_settings.get(group)?.get(&constraint.group_setting.field)
            });
            group_value.zip(live_value).is_some_and(|(group_value, live)| {
                constraint.value_below(group_value).is_some()
                    && !are_equal(spec.compare, group_value, live)
            })
        });
        is_changed.then_some(nearest_value)
    }

    /// The value of the setting that limits `value`, with its group and source. If the declared
    /// value allows `value`, the live value is checked too, because an undeclared group in between
    /// may be stricter.
    fn deciding_value(
        self,
        constraint: &'static Constraint,
        value: &Json,
        findings: &mut Findings,
    ) -> Option<(String, Json, ValueSource)> {
        if !self.is_decided_by_group(constraint) {
            return None;
        }
        let lowest_path = self.path_below_groups(constraint);
        let mut declarations =
            self.group_declarations.declarations_above(&lowest_path, &constraint.group_setting);
        let nearest_declaration = declarations.next();
        let deciding_declaration = nearest_declaration
            .iter()
            .cloned()
            .chain(declarations.filter(|_| constraint.from_all_ancestors))
            .find(|(_, declared_value)| {
                declared_value
                    .is_some_and(|declared_value| constraint.contradicts(declared_value, value))
            });
        if let Some((group, group_value)) = deciding_declaration.or(nearest_declaration) {
            let group_value = group_value?;
            let is_direct = lowest_path.rfind('/') == Some(group.len());
            let subgroup_value = constraint.value_in_subgroups(group_value);
            if is_direct
                || constraint.contradicts(group_value, value)
                || subgroup_value == Some(group_value)
            {
                return Some((group, group_value.clone(), ValueSource::Declared));
            }
            if let Some(replacement) =
                subgroup_value.filter(|_| self.changed_setting(constraint, findings).is_some())
            {
                let parent_group = parent_group_path(&self.target.path)?.to_owned();
                return Some((parent_group, replacement.clone(), ValueSource::ReplacedIn(group)));
            }
        }
        let (groups, group_value) = self.live_value_above(constraint, findings)?;
        Some((groups.into_iter().next_back()?, group_value, ValueSource::Live))
    }

    /// The live value of the setting in the group above, and the groups that set it, nearest first.
    pub(super) fn live_value_above(
        self,
        constraint: &'static Constraint,
        findings: &mut Findings,
    ) -> Option<(Vec<String>, Json)> {
        let is_new =
            matches!(self.target.namespace, Some(LiveNamespace { id: Id::Pending(_), .. }));
        let is_unknown = is_new && !constraint.from_all_ancestors && !constraint.is_inherited();
        if is_unknown || !self.is_decided_by_group(constraint) {
            return None;
        }
        let section =
            catalogue::find_section(Scope::Group, &constraint.group_setting.section)?.section;
        if section != settings::SECTION {
            let (path, setting) = (&self.target.path, &constraint.group_setting);
            if self.group_declarations.declarations_above(path, setting).next().is_some() {
                // This run sets it.
                return None;
            }
            let Some(settings_above) = self.live.settings_above.get(section) else {
                findings.add_missing_fact(ExtraFact::SettingsAbove(section));
                return None;
            };
            let group = groups_above(path).last()?.to_owned();
            return Some((vec![group], settings_above.get(&setting.field)?.clone()));
        }
        let Some(parent_settings) = &self.live.group_above else {
            findings.add_missing_fact(ExtraFact::GroupAbove);
            return None;
        };
        let path = self.path_below_groups(constraint);
        let path = parent_group_path(&path).unwrap_or_default();
        if is_new && !constraint.from_all_ancestors {
            let settings = parent_settings.get(SETTINGS_ABOVE_KEY)?;
            let path = path.to_lowercase();
            let mut values_above = groups_above(&path)
                .filter_map(|outer| settings.get(outer)?.get(&constraint.group_setting.field));
            let value = constraint.value_in_subgroups(values_above.next()?)?.clone();
            return Some((vec![path.clone()], value));
        }
        let named_groups = items(parent_settings, &constraint.deciding_groups_key());
        let mut groups: Vec<_> = named_groups.filter_map(Json::as_str).map(str::to_owned).collect();
        if groups.is_empty() {
            groups.push(path.to_owned());
        }
        Some((groups, parent_settings.get(&constraint.group_setting.field)?.clone()))
    }

    /// A path directly below the lowest group whose setting is relevant for `constraint`.
    fn path_below_groups(self, constraint: &Constraint) -> Cow<'c, str> {
        if constraint.includes_groups && self.target.scope == Scope::Group {
            return format!("{}/", self.target.path).into();
        }
        (&*self.target.path).into()
    }

    fn is_decided_by_group(self, constraint: &Constraint) -> bool {
        self.has_group_above() || (constraint.includes_groups && self.target.scope == Scope::Group)
    }

    /// True if the container is in a group.
    pub(crate) fn has_group_above(self) -> bool {
        let namespace = self.target.namespace.as_ref();
        let is_in_user_namespace =
            namespace.is_some_and(|namespace| !matches!(namespace.owner, NamespaceOwner::Group));
        self.target.path.contains('/')
            && self.facts.personal_owner_id.is_none()
            && !is_in_user_namespace
    }
}

/// The source of the value of a setting.
enum ValueSource {
    Live,
    /// The group declares the value.
    Declared,
    /// This run changes the setting in this group, and the service then sets the value in the
    /// groups below it.
    ReplacedIn(String),
}

/// The support of the service for a declared field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// The service probably supports the field.
    Supported,
    /// The service lacks the field. Only undrift uses it.
    LocalOnly,
    /// The support depends on the service's release, which was not read yet.
    UnknownRelease,
    /// The service does not support the field or its value.
    Unsupported(ValueLimit),
}

/// The support of a service with this release for the field `name` with the value `declared`.
pub fn release_support(
    section: Section,
    name: &str,
    declared: &Value,
    release: DetectedRelease,
) -> Support {
    let table = section.table();
    let Some(spec) = table.get(name).filter(|spec| spec.depends_on_release(declared)) else {
        return Support::Supported;
    };
    let is_in_release = spec.field.available.since.is_some_and(|since| release.is_at_least(since));
    match release {
        DetectedRelease::NotRequested => Support::UnknownRelease,
        _ if spec.field.available.local_before && !is_in_release => Support::LocalOnly,
        DetectedRelease::Hidden => Support::Supported,
        DetectedRelease::Known(release) => match table.unsupported_value(spec, declared, release) {
            Some(fault) => {
                let message = format!("{}; the service has release {release}", fault.message);
                Support::Unsupported(ValueLimit::Refused("release", message, fault.help))
            }
            None => Support::Supported,
        },
    }
}
