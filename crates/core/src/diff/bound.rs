//! Compares declared values and creations with what the groups above allow, and with the release of
//! the service.

use std::{borrow::Cow, sync::Arc};

use super::{
    DiffContext, Findings, Problem, Step,
    texts::{self, words},
};
use crate::{
    address::{Address, group_of, groups_above},
    catalogue::{
        self,
        constraints::{self, Constraint, ConstraintEffect, SETTINGS_ABOVE},
        settings,
    },
    field::Scope,
    kind::{Effect, Id, LiveNamespace, NamespaceOwner, Section, are_equal},
    live::ExtraFact,
    origin::Origin,
    release::DetectedRelease,
    text,
    value::{Json, Value},
};

/// Why the service does not take a declared value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueLimit {
    /// The service refuses it: the code, what is wrong, and what to do.
    Refused(&'static str, String, String),
    /// It would have no effect; the end of a sentence that begins with `waits`.
    Waits(String),
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
            Self::Waits(reason) => Err(reason),
        }
    }
}

impl<'c> DiffContext<'c> {
    /// Returns why a group above prevents `value` for the field `name`, if so. Adds a question if
    /// that depends on an unknown fact. Conflicts with groups of the same run were found when the
    /// manifests were read; their live state before the run does not count.
    pub fn group_limit(
        self,
        section: Section,
        name: &str,
        value: &Value,
        findings: &mut Findings,
    ) -> Option<ValueLimit> {
        let plain = value.plain()?;
        constraints::constraints_over(section.section, Some(name)).find_map(|row| {
            let (group, by, source) = self.deciding_value(row, plain, findings)?;
            let is_declared = matches!(source, BoundSource::Declared);
            if !row.contradicts(&by, plain) || (is_declared && row.how == ConstraintEffect::Bounds)
            {
                return None;
            }
            let setting = &row.by.field;
            if row.how == ConstraintEffect::Replaces {
                return Some(ValueLimit::Waits(format!(
                    "until `{setting}` of `{group}` allows it"
                )));
            }
            let by = text::escape(by.as_str().unwrap_or_default());
            let is = match source {
                BoundSource::ReplacedIn(outer) => format!("`{outer}` sets to `{by}` in this run"),
                BoundSource::Live | BoundSource::Declared => format!("is `{by}`"),
            };
            let words = words![name, setting, group, is];
            let [code, message, help] = texts::BEYOND_GROUP;
            Some(ValueLimit::Refused(code, text::fill(message, words), text::fill(help, words)))
        })
    }

    /// Returns a problem if a group above prevents `step`, which adds an entry to `section`, and
    /// this run does not change that.
    pub fn creation_problem(
        self,
        section: Section,
        step: &Step,
        findings: &mut Findings,
    ) -> Option<Problem> {
        let instead = if step.replaces {
            "keep the entry unchanged: a change removes it and adds it again"
        } else if step.creates_container() {
            "leave out `create`"
        } else {
            "remove the entry"
        };
        let name = step.address.entry.as_deref().unwrap_or_default();
        let rows = constraints::constraints_over(section.section, None);
        let rows = rows.filter(|row| row.groups || self.target.scope == Scope::Project);
        rows.filter(|row| row.applies_to(&self.target.path, name)).find_map(|row| {
            let (groups, by) = match self.deciding_value(row, &Json::Null, findings) {
                // It counts only if it is live, too: otherwise the run changes it after the creation.
                Some((_, by, BoundSource::Declared)) if !row.forbids(&by, self.target.scope) => {
                    return None;
                }
                _ => self.live_value_above(row, findings)?,
            };
            let (setting, text, scope) = (&row.by.field, &row.text, self.target.scope);
            // This run lifts it in a group that declares another value.
            let lowest_path = self.path_below_groups(row);
            let lifted = self.groups.declarations_above(&lowest_path, &row.by);
            let lifted = lifted.filter(|(_, by)| by.is_some_and(|by| !row.forbids(by, scope)));
            let lifted: Vec<_> = lifted.map(|(path, _)| path).collect();
            let mut groups = groups.iter();
            let group =
                groups.find(|group| !lifted.iter().any(|path| path.eq_ignore_ascii_case(group)))?;
            row.forbids(&by, scope).then(|| {
                let message = format!("`{setting}` of `{group}` {text}");
                let help = format!("change `{setting}` of `{group}` first, or {instead}");
                Problem::new(&step.address, &row.code, message, help, &step.origin)
            })
        })
    }

    /// Adds to `step` the entries of groups above beside which the service refuses its entry: those with the
    /// same name, or others of which a new project gets a copy and can have only one.
    pub(super) fn mark_collision(self, section: Section, step: &mut Step, findings: &mut Findings) {
        let Some(key) = step.address.entry.as_deref() else { return };
        let gets_copies = self.target.id.is_none() && section.exclusive_group(key).is_some();
        if !(section.is_name_unique_above() || gets_copies) || !self.has_group_above() {
            return;
        }
        let Some(above) = self.live.entries_above.get(section.section) else {
            return findings.add_question(ExtraFact::EntriesAbove(section.section));
        };
        let colliding = above.iter().filter(|(name, _)| section.collides_with_parent(key, name));
        step.effects.extend(colliding.map(|(name, group)| {
            let group = Address::container(Arc::clone(group));
            Effect::follows(group.section(section.section).entry(name))
        }));
    }

    /// The declared value of the setting in the nearest group above that declares it, if this run changes
    /// it there or further above, where the change counts below.
    pub(super) fn changed_setting(
        self,
        row: &'static Constraint,
        findings: &mut Findings,
    ) -> Option<&'c Json> {
        if self.groups.is_applied || !self.has_group_above() {
            return None;
        }
        let declared: Vec<_> = self.groups.declarations_above(&self.target.path, &row.by).collect();
        let nearest = declared.first()?.1?;
        let Some(above) = &self.live.group_above else {
            findings.add_question(ExtraFact::GroupAbove);
            return None;
        };
        let spec = catalogue::section(Scope::Group, &row.by.section)?.field(&row.by.field);
        let is_changed = declared.iter().any(|(group, by)| {
            let live = above.get(SETTINGS_ABOVE).and_then(|all| all.get(group)?.get(&row.by.field));
            by.zip(live).is_some_and(|(by, live)| {
                row.value_below(by).is_some() && !are_equal(spec.compare, by, live)
            })
        });
        is_changed.then_some(nearest)
    }

    /// The value of the setting that decides about `value`, with its group and source. A group in between
    /// may be stricter, so a declared value that allows is not enough.
    fn deciding_value(
        self,
        row: &'static Constraint,
        value: &Json,
        findings: &mut Findings,
    ) -> Option<(String, Json, BoundSource)> {
        if !self.is_decided_by_group(row) {
            return None;
        }
        let lowest_path = self.path_below_groups(row);
        let mut declared = self.groups.declarations_above(&lowest_path, &row.by);
        let nearest = declared.next();
        let deciding = nearest
            .iter()
            .cloned()
            .chain(declared.filter(|_| row.every))
            .find(|(_, by)| by.is_some_and(|by| row.contradicts(by, value)));
        if let Some((group, by)) = deciding.or(nearest) {
            let by = by?;
            let is_direct = lowest_path.rfind('/') == Some(group.len());
            let value_between = row.value_between(by);
            if is_direct || row.contradicts(by, value) || value_between == Some(by) {
                return Some((group, by.clone(), BoundSource::Declared));
            }
            if let Some(given) =
                value_between.filter(|_| self.changed_setting(row, findings).is_some())
            {
                let between = group_of(&self.target.path)?.to_owned();
                return Some((between, given.clone(), BoundSource::ReplacedIn(group)));
            }
        }
        let (groups, by) = self.live_value_above(row, findings)?;
        Some((groups.into_iter().next_back()?, by, BoundSource::Live))
    }

    /// The live value of the setting in the group above, and the groups that have it, from the nearest on.
    fn live_value_above(
        self,
        row: &'static Constraint,
        findings: &mut Findings,
    ) -> Option<(Vec<String>, Json)> {
        let is_new = matches!(self.target.namespace, Some(LiveNamespace { id: Id::OfStep(_), .. }));
        let is_unknown = is_new && !row.every && !row.is_handed_down();
        if row.by.section != settings::SECTION || is_unknown || !self.is_decided_by_group(row) {
            return None;
        }
        let Some(group) = &self.live.group_above else {
            findings.add_question(ExtraFact::GroupAbove);
            return None;
        };
        let path = self.path_below_groups(row);
        let path = group_of(&path).unwrap_or_default();
        if is_new && !row.every {
            let settings = group.get(SETTINGS_ABOVE)?;
            let path = path.to_lowercase();
            let mut above =
                groups_above(&path).filter_map(|outer| settings.get(outer)?.get(&row.by.field));
            return Some((vec![path.clone()], row.value_between(above.next()?)?.clone()));
        }
        let named_groups =
            group.get(&row.deciding_groups_key()).and_then(Json::as_array).into_iter().flatten();
        let group_paths: Vec<_> =
            named_groups.filter_map(Json::as_str).map(str::to_owned).collect();
        let groups = if group_paths.is_empty() { vec![path.to_owned()] } else { group_paths };
        Some((groups, group.get(&row.by.field)?.clone()))
    }

    /// The path below the groups whose setting `row` counts.
    fn path_below_groups(self, row: &Constraint) -> Cow<'c, str> {
        if row.groups && self.target.scope == Scope::Group {
            return format!("{}/", self.target.path).into();
        }
        (&*self.target.path).into()
    }

    fn is_decided_by_group(self, row: &Constraint) -> bool {
        self.has_group_above() || (row.groups && self.target.scope == Scope::Group)
    }

    /// True if the container is in a group.
    pub(crate) fn has_group_above(self) -> bool {
        let of_user = self
            .target
            .namespace
            .as_ref()
            .is_some_and(|namespace| !matches!(namespace.owner, NamespaceOwner::Group));
        self.target.path.contains('/') && self.facts.personal_owner.is_none() && !of_user
    }
}

/// Where the value of a setting comes from.
enum BoundSource {
    Live,
    /// The group declares it.
    Declared,
    /// This run changes the setting in this group, which gives it.
    ReplacedIn(String),
}

/// Whether the service can do what a field declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It probably can.
    Supported,
    /// It has no such field; the field then only steers undrift.
    LocalOnly,
    /// That depends on its release, which was not read yet.
    UnknownRelease,
    /// It cannot.
    Unsupported(ValueLimit),
}

/// Whether a service of this release can do what the field `name` declares.
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
            Some(unfit) => {
                let message = format!("{}; the service has release {release}", unfit.message);
                Support::Unsupported(ValueLimit::Refused("release", message, unfit.help))
            }
            None => Support::Supported,
        },
    }
}
