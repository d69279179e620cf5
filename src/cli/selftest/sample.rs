//! The manifests of a selftest: every kind in every scope, created, changed and removed.
//!
//! The manifests are generated from the tables of the kinds, so a new kind is tested without code
//! here. Fields of the identity and required fields get the example values of their schema. Then
//! one more field is changed. With [`TestSetup::tests_all_fields`], every other field is changed
//! too, each in a separate group or project, so that a deviation can be attributed to one field.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::{
    catalogue,
    field::{Equality, NamedObject, Readback, Scope, Secrecy, Tier, WriteRequest},
    kind::{FieldSpec, ReadSource, Section, Shape},
    release::{DetectedRelease, REFERENCE},
    value::{Json, Object},
};

/// A phase of the selftest: one operation on all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SamplePhase {
    /// All objects are created.
    Create,
    /// One field of each object is changed.
    Change,
    /// All objects are removed, or changed back if they cannot be removed.
    Remove,
}

impl SamplePhase {
    /// All phases, in order.
    pub(super) const ALL: [Self; 3] = [Self::Create, Self::Change, Self::Remove];
}

impl fmt::Display for SamplePhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The parameters from which the manifests are generated.
#[derive(Clone, Debug)]
pub(super) struct TestSetup {
    /// The path of the new group.
    pub(super) root: String,
    /// A user other than the caller, to add as a member.
    pub(super) user: Option<String>,
    /// The tier of the service.
    pub(super) tier: Tier,
    /// The release of the service.
    pub(super) release: DetectedRelease,
    /// True if every field is tested separately, in addition to one field for each kind.
    pub(super) tests_all_fields: bool,
}

/// A single test: of a kind, or of one field in a separate group or project.
#[derive(Clone, Copy)]
pub(super) struct Trial {
    section: Section,
    pub(super) field: Option<&'static FieldSpec>,
}

impl Trial {
    /// The scope and the section.
    fn scope_and_section(self) -> (Scope, &'static str) {
        (self.section.scoped_kind.scope, self.section.section)
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scope, section) = self.scope_and_section();
        write!(f, "{} {section}", scope.noun())?;
        self.field.map_or(Ok(()), |field| write!(f, " {}", field.name))
    }
}

impl TestSetup {
    /// The manifest documents for a phase.
    pub(super) fn documents(&self, phase: SamplePhase) -> Vec<Json> {
        let mut documents = self.kind_documents(phase);
        let field_trials: Vec<_> =
            self.split_trials().0.into_iter().filter(|trial| trial.field.is_some()).collect();
        if !field_trials.is_empty() {
            documents.push(new_document(
                Scope::Group,
                &self.path_in_root(ATTRIBUTE_GROUP),
                true.into(),
            ));
        }
        for trial in field_trials {
            let Trial { section, field } = trial;
            let Ok(value) = self.entry_value(section, field, phase) else { continue };
            let scope = section.scoped_kind.scope;
            // A schedule needs a branch, which the readme creates.
            let create = match scope {
                Scope::Group => true.into(),
                Scope::Project => serde_json::json!({"initialize_with_readme": true}),
            };
            let mut document = new_document(scope, &self.trial_path(trial), create);
            document.insert(section.section.to_owned(), value);
            if let Some(parent) = section.scoped_kind.parent
                && let Some(parent_section) = catalogue::find_section(scope, parent.section)
                && let Ok(parent_value) =
                    self.entry_value(parent_section, None, SamplePhase::Create)
            {
                document.insert(parent_section.section.to_owned(), parent_value);
            }
            documents.push(document);
        }
        documents.into_iter().map(Json::Object).collect()
    }

    /// The path of the separate group or project in which a field is tested.
    fn trial_path(&self, trial: Trial) -> String {
        self.path_in_root(&format!("{ATTRIBUTE_GROUP}/{}", trial.to_string().replace(' ', "-")))
    }

    /// The reason why a field is not tested on its own; `None` if the field is tested.
    fn skip_reason(&self, section: Section, spec: &FieldSpec) -> Option<String> {
        if section.identity.contains(&spec.name) {
            return Some("identifies the entry".to_owned());
        }
        self.untestable_reason(spec).or_else(|| match find_two_values(spec) {
            None => Some("has no two values that are always valid".to_owned()),
            Some(_) => match self.entry_value(section, Some(spec), SamplePhase::Create) {
                Ok(entry) => entry.get("import_url").map(|_| "needs an import".to_owned()),
                Err(reason) => Some(reason),
            },
        })
    }

    /// The reason why a change of this field cannot be made or observed; `None` if both are
    /// possible.
    fn untestable_reason(&self, spec: &FieldSpec) -> Option<String> {
        let field = &spec.field;
        let reason = match () {
            () if spec.name.contains('.') => "is part of another field",
            () if !field.accepted.includes(WriteRequest::Edit) => {
                "is set when something is created"
            }
            () if field.read == Readback::Never => "is not shown by the service",
            () if field.secrecy() != Secrecy::Open || spec.has_secret_rows() => "may hold a secret",
            () if field.names.is_some() => "refers to another object",
            () if field.available.needs_administrator() => "is for administrators",
            () if field.available.is_only_top_level() => "exists only in top-level groups",
            () if field.available.until.is_some() || field.replacement_name().is_some() => {
                "has a successor"
            }
            () if field.available.tier > self.tier => {
                return Some(format!("needs the tier {}", field.available.tier));
            }
            () if !self.is_in_release(spec) => "needs a later release",
            () => return None,
        };
        Some(reason.to_owned())
    }

    /// The documents for every kind.
    fn kind_documents(&self, phase: SamplePhase) -> Vec<Object> {
        // Schedules and rules refer to a branch, so the project needs a branch.
        let create_with_branch = serde_json::json!({"initialize_with_readme": true});
        let mut documents = vec![
            new_document(Scope::Group, &self.root, true.into()),
            new_document(Scope::Group, &self.path_in_root(PEER_GROUP), true.into()),
            new_document(Scope::Group, &self.path_in_root(Scope::Group.noun()), true.into()),
            new_document(
                Scope::Project,
                &self.path_in_root(Scope::Project.noun()),
                create_with_branch,
            ),
        ];
        for section in tested_sections() {
            let Ok(value) = self.section_value(section, phase) else { continue };
            if section.shape == Shape::Switch {
                // A switch, such as archiving a project, affects all other sections.
                let path = self.path_in_root(&format!("{PEER_GROUP}/{}", section.section));
                let mut document = new_document(section.scoped_kind.scope, &path, true.into());
                document.insert(section.section.to_owned(), value);
                documents.push(document);
            } else {
                let document_index = if section.scoped_kind.scope == Scope::Group { 2 } else { 3 };
                documents[document_index].insert(section.section.to_owned(), value);
            }
        }
        documents
    }

    /// The path of `name` in the new group.
    fn path_in_root(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// Returns the trials to run, and the skipped ones with the reason: first kinds, then fields.
    pub(super) fn split_trials(&self) -> (Vec<Trial>, Vec<(Trial, String)>) {
        let (mut trials, mut skipped_trials) = (Vec::new(), Vec::new());
        let kinds = tested_sections().map(|section| Trial { section, field: None });
        for trial in kinds.chain(all_field_trials().filter(|_| self.tests_all_fields)) {
            let reason = match trial.field {
                None => self.section_value(trial.section, SamplePhase::Create).err(),
                Some(spec) => self.skip_reason(trial.section, spec),
            };
            match reason {
                None => trials.push(trial),
                Some(reason) => skipped_trials.push((trial, reason)),
            }
        }
        (trials, skipped_trials)
    }

    /// The content of `section` in a document, with one field to change.
    ///
    /// # Errors
    /// The reason why the section is not tested.
    fn section_value(&self, section: Section, phase: SamplePhase) -> Result<Json, String> {
        let changeable_specs = section.specs().iter().filter(|spec| self.is_changeable(spec));
        let changeable_fields =
            changeable_specs.filter(|spec| !section.identity.contains(&spec.name));
        // Prefer booleans, because every service accepts both values.
        let field_to_change =
            changeable_fields.min_by_key(|spec| (!is_boolean(spec), !spec.field.is_level()));
        let value = self.entry_value(section, field_to_change, phase)?;
        let Json::Array(entries) = &value else { return Ok(value) };
        if phase != SamplePhase::Remove || section.cannot_remove_entries() {
            return Ok(value);
        }
        let mut entry = entries[0].as_object().cloned().unwrap_or_default();
        entry.retain(|name, _| section.identity.contains(&&**name));
        entry.insert("state".to_owned(), "absent".into());
        Ok(Json::Array(vec![entry.into()]))
    }

    /// The value of a section with one entry: the required fields with example values, and the field
    /// to change with its value for `phase`.
    fn entry_value(
        &self,
        section: Section,
        field_to_change: Option<&FieldSpec>,
        phase: SamplePhase,
    ) -> Result<Json, String> {
        let tier = lowest_tier(section);
        if tier > self.tier {
            return Err(format!("needs the tier {tier}"));
        }
        if section.is_only_edited() {
            return Err("can only be edited, not created".to_owned());
        }
        if section.shape == Shape::Switch {
            let spec = section.specs().first().ok_or("has no field")?;
            if phase == SamplePhase::Create {
                return self.sample_value(spec, phase);
            }
            return Ok(if is_boolean(spec) { false.into() } else { Json::Null });
        }
        if !section.specs().iter().any(|spec| self.is_in_release(spec)) {
            return Err("needs a later release".to_owned());
        }
        let example_field =
            field_to_change.map(|spec| spec.name).or(section.identity.first().copied());
        let mut fields =
            example_field.map(|name| section.example_siblings(name)).unwrap_or_default();
        let mut specs = fields.keys().filter_map(|name| section.spec(name));
        if specs.any(|spec| spec.field.secrecy() == Secrecy::Reference) {
            return Err("needs a secret".to_owned());
        }
        self.add_required_fields(section, &mut fields)?;
        if let Some(spec) = field_to_change {
            self.add_changed_field(section, spec, phase, &mut fields)?;
        }
        if fields.is_empty() {
            return Err(format!("no field of the tier {} can be changed on its own", self.tier));
        }
        Ok(match section.shape {
            Shape::Mapping => fields.into(),
            _ => Json::Array(vec![fields.into()]),
        })
    }

    /// Adds sample values of the identifying and required fields that `fields` lacks.
    fn add_required_fields(&self, section: Section, fields: &mut Object) -> Result<(), String> {
        let required_names = section.identity.iter().chain(section.required_fields);
        let required_specs = required_names.filter_map(|name| section.spec(name));
        // An identifying field of a higher tier has a default.
        for spec in required_specs.filter(|spec| spec.field.available.tier <= self.tier) {
            // Only one of two fields that exclude each other is set.
            let mut excluded_names =
                fields.keys().map(|name| section.field(name).relations.not_with);
            if fields.contains_key(spec.name)
                || excluded_names.any(|other| other == Some(spec.name))
            {
                continue;
            }
            let value = match spec.field.names {
                // A project must not refer to itself.
                Some(NamedObject::Project) => {
                    self.path_in_root(&format!("{PEER_GROUP}/archived")).into()
                }
                _ => self.sample_value(spec, SamplePhase::Create)?,
            };
            fields.insert(spec.name.to_owned(), value);
        }
        Ok(())
    }

    /// Adds the value of `spec` for `phase`. Also adds the fields whose level must not be wider
    /// than that value. Turns on the switches without which the field has no effect.
    fn add_changed_field(
        &self,
        section: Section,
        spec: &FieldSpec,
        phase: SamplePhase,
        fields: &mut Object,
    ) -> Result<(), String> {
        let value = self.sample_value(spec, phase)?;
        let specs = section.specs().iter();
        let dependent_fields =
            specs.filter(|other| other.field.relations.at_most == Some(spec.name));
        fields.extend(dependent_fields.map(|other| (other.name.to_owned(), value.clone())));
        let mut needed_switch = spec.field.relations.switch_field();
        while let Some(name) = needed_switch {
            let switch = section.spec(name);
            let on_value = match switch.filter(|switch| !is_boolean(switch)) {
                Some(switch) => self.sample_value(switch, SamplePhase::Create)?,
                None => true.into(),
            };
            fields.entry(name.to_owned()).or_insert(on_value);
            needed_switch = switch.and_then(|switch| switch.field.relations.switch_field());
        }
        fields.insert(spec.name.to_owned(), value);
        Ok(())
    }

    /// True if the service's release has the field.
    fn is_in_release(&self, spec: &FieldSpec) -> bool {
        let release = self.release.release().unwrap_or(REFERENCE);
        spec.field.available.since.is_none_or(|since| since <= release)
    }

    /// True if the field can be changed alone and the change can be read back.
    fn is_changeable(&self, spec: &FieldSpec) -> bool {
        let field = &spec.field;
        let has_two_values = is_boolean(spec)
            || field.is_level()
            || spec.schema["enum"].as_array().is_some_and(|values| values.len() > 1);
        has_two_values
            && field.accepted.includes(WriteRequest::Create)
            && field.read != Readback::IfPresent
            && self.untestable_reason(spec).is_none()
    }

    /// The value of a field in a phase: the second sample value in [`SamplePhase::Change`], else the
    /// first.
    fn sample_value(&self, spec: &FieldSpec, phase: SamplePhase) -> Result<Json, String> {
        match spec.field.names {
            Some(NamedObject::User) => {
                return self.user.clone().map(Json::from).ok_or("needs `--user`".to_owned());
            }
            Some(NamedObject::Runner) => return Err("needs a runner".to_owned()),
            Some(NamedObject::Role) => return Err("needs a custom role".to_owned()),
            Some(NamedObject::Group) => return Ok(self.path_in_root(PEER_GROUP).into()),
            Some(NamedObject::Project) => {
                return Ok(self.path_in_root(Scope::Project.noun()).into());
            }
            None => {}
        }
        match spec.field.compare {
            // The service looks up a short name among the existing branches.
            Equality::Ref => return Ok("refs/heads/main".into()),
            // The key must be unique to this run, because the service refuses a key that another
            // user has.
            Equality::PublicKey => {
                let random = STANDARD.encode(&Sha256::digest(&self.root)[..30]);
                return Ok(format!("{KEY_START}{random}").into());
            }
            _ => {}
        }
        if spec.field.valid.starts_with_path {
            return Ok(serde_json::json!({"text": "{path}/*"}));
        }
        let is_changed = phase == SamplePhase::Change;
        if let Some([first, other]) = find_two_values(spec) {
            return Ok(if is_changed { other } else { first });
        }
        let example = &spec.schema["examples"][0];
        Ok(if example.is_null() { "selftest".into() } else { example.clone() })
    }
}

/// The scope, section and field that a [`TestSetup::trial_path`] encodes.
pub(super) fn parse_trial_path(path: &str) -> Option<(Scope, &str, &str)> {
    let (_, name) =
        path.rsplit_once('/').filter(|(parent, _)| parent.ends_with(ATTRIBUTE_GROUP))?;
    let (noun, section_and_field) = name.split_once('-')?;
    let (section, field) = section_and_field.split_once('-')?;
    let scope = Scope::ALL.into_iter().find(|scope| scope.noun() == noun)?;
    Some((scope, section, field))
}

/// The scope with which the name of a test container starts.
pub(super) fn trial_scope(path: &str) -> Option<Scope> {
    let name = path.rsplit('/').next().and_then(|name| name.split('-').next());
    Scope::ALL.into_iter().find(|scope| Some(scope.noun()) == name)
}

/// Two values of a field that are valid with all other declarations; `None` if there are no two.
fn find_two_values(spec: &FieldSpec) -> Option<[Json; 2]> {
    if is_boolean(spec) {
        return Some([true.into(), false.into()]);
    }
    if spec.field.is_level() {
        return Some(["developer".into(), "reporter".into()]);
    }
    let schema = &spec.schema;
    if let Some(enum_values) = schema["enum"].as_array() {
        let mut values = enum_values.iter().filter(|word| !word.is_null()).cloned();
        return Some([values.next()?, values.next()?]);
    }
    let has_type = |name: &str| match &schema["type"] {
        Json::Array(types) => types.iter().any(|json_type| json_type == name),
        json_type => json_type == name,
    };
    let example = &schema["examples"][0];
    if has_type("integer") {
        let number = example.as_i64().or_else(|| schema["minimum"].as_i64())?;
        let maximum = schema["maximum"].as_i64().unwrap_or(i64::MAX);
        return Some([
            number.into(),
            if number < maximum { number + 1 } else { number - 1 }.into(),
        ]);
    }
    if spec.has_named_rows() {
        return Some([example.clone(), Json::Array(Vec::new())]);
    }
    if has_type("string") && spec.field.nullable {
        let text = if example.is_null() { "selftest".into() } else { example.clone() };
        return Some([text, Json::Null]);
    }
    None
}

/// The type of a public key, and the first two of its 32 bytes.
const KEY_START: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAB";
/// The group with which other groups and projects are shared. This group also contains the groups
/// and projects that test switches.
const PEER_GROUP: &str = "peer";
/// The group below which each field is tested in its own group or project.
const ATTRIBUTE_GROUP: &str = "attributes";

/// Every kind in every scope, except the containers themselves. Sections that only top-level groups
/// have are left out too, because the test group is a subgroup.
fn tested_sections() -> impl Iterator<Item = Section> {
    catalogue::all_sections()
        .filter(|section| section.shape != Shape::Container && !section.is_only_top_level())
}

/// Every field of every kind, except switches, which are tested as a whole.
fn all_field_trials() -> impl Iterator<Item = Trial> {
    let kinds = tested_sections().filter(|section| section.shape != Shape::Switch);
    kinds.flat_map(|section| {
        section.specs().iter().map(move |spec| Trial { section, field: Some(spec) })
    })
}

fn new_document(scope: Scope, path: &str, create: Json) -> Object {
    let fields =
        [("kind", scope.document_kind().into()), ("path", path.into()), ("create", create)];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The lowest tier in which the kind of `section` is available.
fn lowest_tier(section: Section) -> Tier {
    let read_tier = match section.scoped_kind.read_source {
        ReadSource::List(operation) | ReadSource::Optional(operation) => operation.row().tier,
        _ => Tier::Free,
    };
    let delete_tier =
        section.scoped_kind.operations.delete.map_or(Tier::Free, |operation| operation.row().tier);
    let fields = section.specs().iter().map(|spec| spec.field.available.tier);
    read_tier.max(delete_tier).max(fields.min().unwrap_or(Tier::Free))
}

fn is_boolean(spec: &FieldSpec) -> bool {
    spec.schema["type"] == "boolean"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::manifest::{self, LoadEnvironment};

    fn setup(user: Option<&str>, tier: Tier) -> TestSetup {
        let user = user.map(str::to_owned);
        TestSetup {
            root: "acme/void/own".to_owned(),
            user,
            tier,
            release: DetectedRelease::Known("18.9".parse().unwrap()),
            tests_all_fields: false,
        }
    }

    #[test]
    fn every_kind_is_tried_where_the_service_has_it() {
        let (trials, untested_trials) = setup(Some("alice"), Tier::Ultimate).split_trials();
        let kinds: BTreeSet<_> =
            tested_sections().map(|kind| (kind.scoped_kind.scope, kind.section)).collect();
        let untested_kinds: BTreeSet<_> =
            untested_trials.into_iter().map(|(trial, _)| trial.scope_and_section()).collect();
        let is_untestable =
            |section: &Section| section.is_only_edited() || section.refers_to(NamedObject::Runner);
        let untestable = tested_sections()
            .filter(is_untestable)
            .map(|kind| (kind.scoped_kind.scope, kind.section));
        assert_eq!(untested_kinds, untestable.collect());
        let tried: BTreeSet<_> = trials.into_iter().map(Trial::scope_and_section).collect();
        assert_eq!(tried, &kinds - &untested_kinds);
    }

    #[test]
    fn untested_kinds_are_named() {
        for (user, tier) in [(None, Tier::Free), (None, Tier::Ultimate), (Some("a"), Tier::Free)] {
            let (trials, untested_trials) = setup(user, tier).split_trials();
            assert_eq!(trials.len() + untested_trials.len(), tested_sections().count());
            let reasons: BTreeSet<_> =
                untested_trials.into_iter().map(|(_, reason)| reason).collect();
            let tier_reasons = ["needs the tier premium", "needs the tier ultimate"];
            let tier_reason = tier_reasons.into_iter().filter(|_| tier == Tier::Free);
            let user_reason = user.is_none().then_some("needs `--user`");
            let edit_only_reason = tested_sections()
                .any(Section::is_only_edited)
                .then_some("can only be edited, not created");
            let expected = user_reason
                .into_iter()
                .chain(["needs a runner"])
                .chain(edit_only_reason)
                .chain(tier_reason);
            assert_eq!(reasons, expected.map(str::to_owned).collect());
        }
    }

    #[test]
    fn each_field_is_changed_and_restored_or_skipped() {
        let release = DetectedRelease::Known("18.9".parse().unwrap());
        let setup = setup(Some("alice"), Tier::Ultimate);
        let setup = TestSetup { tests_all_fields: true, release, ..setup };
        let (mut changed_trials, mut untested_trials) = setup.split_trials();
        changed_trials.retain(|trial| trial.field.is_some());
        untested_trials.retain(|(trial, _)| trial.field.is_some());
        assert_eq!(changed_trials.len() + untested_trials.len(), all_field_trials().count());
        // The groups of the test are no top-level groups.
        let top_level_count = all_field_trials()
            .filter(|trial| trial.field.unwrap().field.available.is_only_top_level())
            .count();
        // Most integrations need a secret.
        let is_integration = |trial: &Trial| trial.section.section == "integrations";
        let integration_count =
            untested_trials.iter().filter(|(trial, _)| is_integration(trial)).count();
        let edit_only_count =
            untested_trials.iter().filter(|(trial, _)| trial.section.is_only_edited()).count();
        let import_count =
            untested_trials.iter().filter(|(_, reason)| reason == "needs an import").count();
        let other_count = untested_trials.len()
            - top_level_count
            - integration_count
            - edit_only_count
            - import_count;
        assert!(2 * changed_trials.len() > 3 * other_count, "{other_count}");
        for trial in changed_trials {
            let entry_value = |phase| setup.entry_value(trial.section, trial.field, phase);
            let [first_value, other_value, restored_value] =
                SamplePhase::ALL.map(|phase| entry_value(phase).expect("a value"));
            assert!(first_value != other_value && first_value == restored_value, "{trial}");
            let (scope, section) = trial.scope_and_section();
            let trial_identity = (scope, section, trial.field.unwrap().name);
            assert_eq!(parse_trial_path(&setup.trial_path(trial)), Some(trial_identity));
        }
    }

    #[test]
    fn no_two_declarations_contradict_each_other() {
        let setup = TestSetup { tests_all_fields: true, ..setup(Some("alice"), Tier::Ultimate) };
        for phase in SamplePhase::ALL {
            let folder = tempfile::tempdir().unwrap();
            let documents: Vec<_> = setup.documents(phase).iter().map(Json::to_string).collect();
            std::fs::write(folder.path().join("a.yaml"), documents.join("\n---\n")).unwrap();
            let loaded = manifest::load(folder.path(), &LoadEnvironment::for_process());
            assert!(loaded.desired.is_some(), "{phase}: {:#?}", loaded.diagnostics);
        }
    }

    /// Each section has a value in each phase. More than half of the sections, and all that are no
    /// lists, have another value in the change phase.
    #[test]
    fn the_change_phase_changes_most_kinds() {
        let setup = setup(Some("alice"), Tier::Ultimate);
        let section_value = |section, phase| setup.section_value(section, phase).expect("a value");
        let tried_sections = || {
            tested_sections().filter(|candidate| {
                !candidate.refers_to(NamedObject::Runner) && !candidate.is_only_edited()
            })
        };
        let changed_count = tried_sections()
            .filter(|section| {
                section_value(*section, SamplePhase::Create)
                    != section_value(*section, SamplePhase::Change)
            })
            .count();
        assert!(2 * changed_count > tried_sections().count(), "{changed_count}");
        for section in tried_sections().filter(|section| section.shape != Shape::List) {
            assert_ne!(
                section_value(section, SamplePhase::Create),
                section_value(section, SamplePhase::Change),
                "{section:?}"
            );
        }
    }
}
