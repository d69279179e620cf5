//! Selects the differences to absorb, and creates the goals that remove them.

use std::collections::BTreeMap;

use super::{
    AbsorbRefusal, RefusalKind,
    goal::{EXTRA_KEY, FieldValues, Goal, GoalChange, split_keys, split_names},
};
use crate::{
    address::Address,
    catalogue,
    desired::{Container, DeclaredEntry, EntryPresence},
    diff::{Action, Incomplete, Problem, Reason, Step},
    export::Excerpt,
    field::Secrecy,
    kind::{
        Capability, Effect, FORMER_FIELD, FieldSpec, LiveEntry, NameIndex, Section, Shape, forms,
        is_list, is_readable,
    },
    live::LiveContainer,
    origin::Origin,
    plan::ContainerPlan,
    secret::judge,
    selection::Selection,
    steps,
    value::{Json, Object, Value},
};

/// The declaration and the live state of a group or project, with their plan.
pub struct ContainerComparison<'a> {
    /// The declaration.
    pub container: &'a Container,
    /// The plan.
    pub plan: &'a ContainerPlan,
    /// The live state.
    pub live: &'a LiveContainer,
    /// The names of the users and groups in the live state.
    pub names: &'a NameIndex,
    /// The live state in the form of a manifest; `None` if the container does not exist.
    pub excerpt: Option<&'a Excerpt>,
}

/// The goals that remove the selected differences, and refusals for selected differences that
/// cannot be absorbed. Unlisted entries are included if their section reports them as differences,
/// or if a selector selects entries and not only their container.
pub fn find_drift(
    comparison: &ContainerComparison<'_>,
    selection: &Selection,
) -> (Vec<Goal>, Vec<AbsorbRefusal>) {
    let mut drift = DriftCollector {
        comparison,
        selection,
        live_entries_by_name: BTreeMap::new(),
        goals: Vec::new(),
        refusals: Vec::new(),
    };
    for step in comparison.plan.steps.iter().chain(&comparison.plan.watched) {
        drift.absorb_step(step);
    }
    for note in &comparison.plan.notes {
        let address = &note.address;
        match note.reason {
            Reason::Unlisted if drift.selects_entry(address) => drift.absorb_unlisted(address),
            Reason::UnlistedFails if drift.selects(address) => drift.absorb_unlisted(address),
            Reason::ArchivedByHand => drift.absorb_archiving(),
            _ => {}
        }
    }
    for problem in &comparison.plan.problems {
        drift.absorb_problem(problem);
    }
    for Incomplete { address, reason, .. } in &comparison.plan.incomplete {
        let is_selected = selection.only.iter().any(|selector| match address.entry {
            Some(_) => selector.matches(address),
            None => selector.matches_section(address),
        });
        if is_selected && !drift.is_excluded(address) {
            let reason = format!("it could not be read: {reason}");
            let refusal = AbsorbRefusal::new(address, reason);
            drift.refusals.push(AbsorbRefusal { kind: RefusalKind::Unread, ..refusal });
        }
    }
    drift.goals.sort_by(|a, b| a.address.cmp(&b.address));
    (drift.goals, drift.refusals)
}

/// The goals that add declarations for live sections without a declaration. With `includes_fields`,
/// the goals also add the fields that a declared section lacks.
pub fn find_undeclared(comparison: &ContainerComparison<'_>, includes_fields: bool) -> Vec<Goal> {
    let container = comparison.container.address();
    let mut goals = Vec::new();
    for (section, key, exported_entry) in comparison.excerpt.into_iter().flat_map(Excerpt::entries)
    {
        let change = match comparison.container.section(section.section) {
            // `find_drift` handles switches such as `archived`.
            None if section.shape == Shape::Switch && !includes_fields => continue,
            None if exported_entry.is_absent() => GoalChange::RemoveEntry,
            None if exported_entry.fields.is_empty() => continue,
            None => GoalChange::from_exported_entry(exported_entry),
            Some(declared_section) if includes_fields && section.shape == Shape::Mapping => {
                let mut missing_fields = split_names(exported_entry.fields);
                missing_fields.retain(|(keys, _)| {
                    let mut entries = declared_section.entries.iter();
                    !entries.any(|entry| entry.fields.contains_key(&keys[0]))
                });
                if missing_fields.is_empty() {
                    continue;
                }
                GoalChange::SetFields(missing_fields)
            }
            Some(_) => continue,
        };
        let mut address = container.with_section(section.section);
        if section.shape == Shape::List && !key.is_empty() {
            address = address.with_entry(key);
        }
        goals.push(Goal::new(address, section, key, change));
    }
    goals
}

struct DriftCollector<'a> {
    comparison: &'a ContainerComparison<'a>,
    selection: &'a Selection,
    /// The live entries, by section and by name.
    live_entries_by_name: BTreeMap<&'static str, BTreeMap<String, Vec<&'a LiveEntry>>>,
    goals: Vec<Goal>,
    refusals: Vec<AbsorbRefusal>,
}

impl DriftCollector<'_> {
    fn selects(&self, address: &Address) -> bool {
        self.selection.selects(address)
    }

    fn is_excluded(&self, address: &Address) -> bool {
        self.selection.exclude.iter().any(|selector| selector.matches(address))
    }

    /// True if a selector for entries, not only for containers, selects `address`.
    fn selects_entry(&self, address: &Address) -> bool {
        let mut entry_selectors =
            self.selection.only.iter().filter(|selector| selector.selects_entries());
        entry_selectors.any(|selector| selector.matches(address)) && self.selects(address)
    }

    fn refuse(&mut self, address: &Address, reason: impl Into<String>, origin: Option<&Origin>) {
        let refusal = AbsorbRefusal::new(address, reason);
        self.refusals.push(AbsorbRefusal { origin: origin.cloned(), ..refusal });
    }

    fn add_goal(&mut self, address: &Address, section: Section, key: &str, change: GoalChange) {
        self.goals.push(Goal::new(address.clone(), section, key, change));
    }

    /// The section of `address`, and the declared entry at `address`; `None` if no manifest
    /// declares the entry.
    fn find_declared(&self, address: &Address) -> Option<(Section, Option<&DeclaredEntry>)> {
        let section = catalogue::find_section(self.comparison.container.scope, address.section?)?;
        let key = address.entry.as_deref().unwrap_or_default();
        Some((section, self.comparison.container.entry(section.section, key)))
    }

    fn absorb_step(&mut self, step: &Step) {
        let address = &step.address;
        let is_fully_selected = self.selects(address);
        let mut changes = step.changes.iter();
        let is_partly_selected = step.action == Action::Update
            && changes.any(|change| self.selects(&field_address(address, &change.field)));
        if !is_fully_selected && !is_partly_selected {
            return;
        }
        let Some((section, entry)) = self.find_declared(address) else {
            let reason = match step.action {
                Action::Create => "it does not exist; remove its document, or let apply create it",
                Action::Delete => "it is declared absent; remove `state: absent` to keep it",
                Action::Update if step.provides(Capability::AtDeclaredPath) => {
                    return self.refuse_rename(step, "move", "path");
                }
                Action::Update => "it is marked for deletion, and apply restores it",
            };
            return self.refuse(address, reason, Some(&step.origin));
        };
        let entry = entry.cloned();
        match (step.action, &entry, step.live_entry()) {
            _ if step.removes_copy => {
                self.refuse(address, "it exists twice; remove one of them", Some(&step.origin));
            }
            _ if let Some(condition) = step.possible => match &step.certain_part {
                Some(certain) => self.absorb_step(certain),
                // The object was compared and matches, so there is nothing to absorb.
                None if self.comparison.plan.has_compared(step) => {}
                None => {
                    let reason = format!("it cannot be read yet; it would change {condition}");
                    self.refuse(address, reason, Some(&step.origin));
                }
            },
            (Action::Create, Some(entry), _) => {
                self.add_goal(address, section, &entry.key, GoalChange::RemoveEntry);
            }
            (Action::Update, Some(entry), Some(live)) => {
                self.absorb_fields(section, entry, live, step);
            }
            (Action::Delete, Some(entry), Some(live)) if entry.state == EntryPresence::Absent => {
                self.absorb_entry(address, section, &entry.key, live);
            }
            (Action::Delete, _, _) => self.absorb_unlisted(address),
            (Action::Create | Action::Update, ..) => {
                self.refuse(address, "its live value is unknown", Some(&step.origin));
            }
        }
    }

    /// Absorbs the fields of an entry that differ.
    fn absorb_fields(
        &mut self,
        section: Section,
        entry: &DeclaredEntry,
        live: &LiveEntry,
        step: &Step,
    ) {
        let mut fields = Vec::new();
        let is_renamed = is_pending_rename(section, entry, live);
        // Skip write-only fields: requests contain them only together with other fields.
        let is_fully_selected = self.selects(&step.address);
        let readable_changes =
            step.changes.iter().filter(|change| is_readable(section.field(&change.field)));
        for change in readable_changes {
            let address = field_address(&step.address, &change.field);
            if self.is_excluded(&address) || (!is_fully_selected && !self.selects(&address)) {
                continue;
            }
            if is_renamed && section.identity.contains(&&*change.field) {
                self.refuse_rename(step, "rename", "name");
                continue;
            }
            match self.values_to_declare(section, entry, live, &change.field) {
                Ok(values) => fields.extend(values),
                Err(obstacle) => {
                    let reason = format!("`{}`: {obstacle}", change.field);
                    return self.refuse(&step.address, reason, change.origin.as_ref());
                }
            }
        }
        if !fields.is_empty() {
            self.add_goal(&step.address, section, &entry.key, GoalChange::SetFields(fields));
        }
    }

    /// Refuses to absorb a rename or move that is declared but not applied yet.
    fn refuse_rename(&mut self, step: &Step, rename: &str, name: &str) {
        let reason = format!(
            "its {rename} is declared and not applied yet; to keep the live {name}, declare that \
             one without `{FORMER_FIELD}`"
        );
        let refusal = AbsorbRefusal::new(&step.address, reason);
        self.refusals.push(AbsorbRefusal { kind: RefusalKind::PendingRename, ..refusal });
    }

    /// The values to declare for the field `name`, or the reason why the field cannot be absorbed.
    fn values_to_declare(
        &self,
        section: Section,
        entry: &DeclaredEntry,
        live: &LiveEntry,
        name: &str,
    ) -> Result<FieldValues, &'static str> {
        let declared = entry.fields.get(name).map(|field| field.value);
        let Some(Value::Plain(declared)) = declared else {
            return Err(super::DECLARED_BY_REFERENCE);
        };
        let live_json = live.fields.raw().get(name);
        let Some(spec) = section.spec(name) else {
            let live_value = live_json.cloned().unwrap_or_default();
            if judge::contains_secret(&live_value, Secrecy::Open) {
                return Err(NOT_EXPRESSIBLE);
            }
            return Ok(vec![(vec![EXTRA_KEY.to_owned(), name.to_owned()], live_value)]);
        };
        if is_list(&spec.schema) && declared.is_object() {
            return Err("it is declared as a condition on the live value");
        }
        let key = section.entry_name(live.fields.raw());
        let excerpt = self.comparison.excerpt;
        let exported_fields = excerpt.map_or(&[][..], |state| state.fields(section.section, &key));
        if let (Some(object), Some(live_value)) = (declared.as_object(), live_json) {
            let changed_fields = exported_fields.iter().filter_map(|(field_name, value)| {
                let inner_key = field_name.strip_prefix(name)?.strip_prefix('.')?;
                let inner_value = object.get(inner_key)?;
                let inner_object =
                    Json::Object(Object::from_iter([(inner_key.to_owned(), inner_value.clone())]));
                let declared_object =
                    forms::to_comparable(Some(spec), &inner_object, self.comparison.names);
                let is_same = forms::are_equal(spec.field.compare, &declared_object, live_value);
                (!is_same).then(|| (split_keys(field_name), value.clone()))
            });
            let changed_fields: Vec<_> = changed_fields.collect();
            if changed_fields.is_empty() {
                return Err(NOT_EXPRESSIBLE);
            }
            return Ok(changed_fields);
        }
        let value =
            match (exported_fields.iter().find(|(field_name, _)| field_name == name), live_json) {
                (Some((_, value)), _) => keep_declared_order(spec, &declared, value.clone()),
                (None, None) => Json::Null,
                // The field has a deprecated name, which an export does not write.
                (None, Some(found_value))
                    if spec.field.secrecy() == Secrecy::Open
                        && !judge::contains_secret(found_value, Secrecy::Open) =>
                {
                    forms::to_readable(Some(spec), found_value, self.comparison.names)
                }
                (None, Some(_)) => return Err(NOT_EXPRESSIBLE),
            };
        Ok(vec![(split_keys(name), value)])
    }

    /// Absorbs a live entry that no manifest lists.
    fn absorb_unlisted(&mut self, address: &Address) {
        let Some((section, None)) = self.find_declared(address) else { return };
        let comparison = self.comparison;
        let names = self.live_entries_by_name.entry(section.section).or_insert_with(|| {
            let mut names = BTreeMap::<_, Vec<_>>::new();
            for live in comparison.live.entries(section.section).unwrap_or_default() {
                steps::count_step();
                names.entry(section.entry_name(live.fields.raw())).or_default().push(live);
            }
            names
        });
        let listed_name = address.entry.as_deref().unwrap_or_default();
        // If several entries have the same name, the address ends with `@` and the id.
        let name_match = names.get_key_value(listed_name).or_else(|| {
            listed_name.match_indices('@').find_map(|(at_sign, _)| {
                let named_entries = names.get_key_value(&listed_name[..at_sign])?;
                let listed_address = &listed_name[at_sign + 1..];
                let mut entries = named_entries.1.iter();
                let is_listed = entries.any(|live| live.address_text() == listed_address);
                is_listed.then_some(named_entries)
            })
        });
        let Some((key, entries)) = name_match else {
            let reason = "it may be a declared entry whose secret is not set here";
            return self.refuse(address, reason, None);
        };
        if entries.len() > 1 || self.comparison.container.entry(section.section, key).is_some() {
            return self.refuse(address, "it exists twice; remove one of them", None);
        }
        let (key, live) = (key.clone(), entries[0]);
        self.absorb_entry(address, section, &key, live);
    }

    /// Absorbs a whole entry: declares its live state.
    fn absorb_entry(&mut self, address: &Address, section: Section, key: &str, live: &LiveEntry) {
        let (name, excerpt) = (section.entry_name(live.fields.raw()), self.comparison.excerpt);
        let entry = excerpt.and_then(|excerpt| excerpt.entry(section.section, &name));
        let Some(entry) = entry else { return self.refuse(address, NOT_EXPRESSIBLE, None) };
        self.add_goal(address, section, key, GoalChange::from_exported_entry(entry));
    }

    /// Declares that the container is archived.
    fn absorb_archiving(&mut self) {
        let mut sections = catalogue::sections(self.comparison.container.scope);
        let archiving_section = sections.find(|section| {
            let fields = Object::from_iter([(section.section.to_owned(), true.into())]);
            let effects = section.rules().effects(None, &fields, &fields);
            section.shape == Shape::Switch && effects.contains(&Effect::lacks(Capability::Writable))
        });
        let Some(section) = archiving_section else { return };
        let container = self.comparison.container.address();
        let address = container.with_section(section.section);
        if self.selects(&address) || self.selects(&container) {
            let fields = vec![(vec![section.section.to_owned()], true.into())];
            self.add_goal(&address, section, "", GoalChange::SetFields(fields));
        }
    }

    fn absorb_problem(&mut self, problem: &Problem) {
        let address = &problem.address;
        // If the container does not exist or has moved, none of its sections was compared.
        let is_container = address.section.is_none();
        let is_path_selected = is_container
            && self.selection.only.iter().any(|selector| selector.matches_path(&address.path));
        if !self.selects(address) && !is_path_selected {
            return;
        }
        // An entry with this problem does not exist, and cannot be created without the field.
        if problem.code == "missing-field"
            && let Some((section, Some(entry))) = self.find_declared(address)
        {
            let key = entry.key.clone();
            return self.add_goal(address, section, &key, GoalChange::RemoveEntry);
        }
        self.refuse(address, problem.message.clone(), Some(&problem.origin));
    }
}

/// True if `live` still has a former name of the declared `entry`.
fn is_pending_rename(section: Section, entry: &DeclaredEntry, live: &LiveEntry) -> bool {
    if !entry.fields.contains_key(FORMER_FIELD) {
        return false;
    }
    let declared_identity = section.identify(&forms::plain_fields(&entry.values()));
    let live_identity = section.identify(live.fields.raw());
    let live_key = live_identity.current_key();
    live_key != declared_identity.current_key()
        && declared_identity.former_keys.iter().any(|key| key == live_key)
}

/// The address of a field for selectors: the address of the object, and the name of the field after
/// it.
fn field_address(address: &Address, field: &str) -> Address {
    let entry_prefix = address.entry.as_ref().map(|entry| format!("{entry}/"));
    address.with_entry(entry_prefix.unwrap_or_default() + field)
}

/// All addresses that can be selected: the addresses of declarations, their fields, steps and
/// notes.
pub fn selectable_addresses(comparison: &ContainerComparison<'_>) -> Vec<Address> {
    let container = comparison.container.address();
    let mut addresses: Vec<_> = comparison.container.addresses().collect();
    for section in &comparison.container.sections {
        for entry in &section.entries {
            let address = section.address_of(entry, &container);
            addresses.extend(entry.fields.keys().map(|field| field_address(&address, field)));
        }
    }
    addresses.extend(comparison.plan.steps.iter().map(|step| step.address.clone()));
    addresses.extend(comparison.plan.notes.iter().map(|note| note.address.clone()));
    addresses
}

/// The reason for a refusal if the live value is not in the excerpt.
const NOT_EXPRESSIBLE: &str = "no manifest can express the live value, or it may be a secret";

/// The live value to declare. A list whose order has no meaning keeps the order of the declared
/// list, and new items come last.
fn keep_declared_order(spec: &FieldSpec, declared: &Json, live: Json) -> Json {
    match (declared, live) {
        (Json::Array(declared), Json::Array(live)) if spec.field.ignores_order() => {
            let mut list: Vec<Json> =
                declared.iter().filter(|item| live.contains(item)).cloned().collect();
            list.extend(live.into_iter().filter(|item| !declared.contains(item)));
            list.into()
        }
        (_, live) => live,
    }
}
