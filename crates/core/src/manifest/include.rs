//! Rules with `undeclared: include`, applied once the existing groups and projects are known.
//!
//! [`Includes`] keeps the rules after everything declared was merged and checked. It knows [what to
//! ask](Includes::roster_request) the service. The containers that it [includes](Includes::bring_in) are
//! merged and checked like declared ones. It does not read the service: the caller passes the
//! roster.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    check::{self, CheckContext},
    faults::Faults,
    layer::{LayerRules, find_references},
    locate, parallel,
    read::ManifestFile,
};
use crate::{
    cause::Cause,
    desired::{Desired, PathClass, Roster, RosterQuery},
    diagnostic::{Diagnostics, Severity},
    field::Scope,
    kind::Section,
    text::escape,
    value::Value,
};

/// Rules that include undeclared groups and projects.
#[derive(Debug)]
pub struct Includes {
    rules: LayerRules,
    context: CheckContext,
    files: Vec<ManifestFile>,
    /// The lower-case paths of everything declared, named or not.
    declared: BTreeSet<String>,
}

impl Includes {
    pub(super) fn new(
        rules: LayerRules,
        context: CheckContext,
        files: Vec<ManifestFile>,
        declared: BTreeSet<String>,
    ) -> Option<Self> {
        let includes = rules.including_globs().next().is_some();
        includes.then_some(Self { rules, context, files, declared })
    }

    /// The part of the service that must be listed, in addition to `desired`.
    pub fn roster_request<'a>(&'a self, desired: &'a Desired) -> RosterQuery<'a> {
        RosterQuery {
            globs: self.rules.including_globs().map(|(of, glob)| (of, glob.clone())).collect(),
            fields: self.declared_fields(),
            declared: &desired.containers,
            classify: Box::new(|scope, path| self.classify(desired, scope, path)),
        }
    }

    /// The fields that included containers may declare.
    fn declared_fields(&self) -> Vec<(Section, BTreeSet<String>)> {
        let mut fields: BTreeMap<_, (Section, BTreeSet<String>)> = BTreeMap::new();
        for rule in self.rules.all() {
            for section in &rule.body.sections {
                let (_, names) = fields
                    .entry((rule.scope, section.kind.section))
                    .or_insert_with(|| (section.kind, BTreeSet::new()));
                let parts = section.parts.iter();
                names.extend(parts.flat_map(|part| part.fields.keys()).map(str::to_owned));
            }
        }
        fields.into_values().collect()
    }

    /// The secrets and uploads that rules name, also within templates and data.
    pub fn named(&self) -> impl Iterator<Item = Value> {
        let params = self.rules.all().flat_map(|rule| rule.body.params.values());
        let params = params.map(|param| param.value.clone());
        let sections = self.rules.all().flat_map(|rule| &rule.body.sections);
        let parts = sections.flat_map(|section| &section.parts);
        let values = parts.flat_map(|part| part.fields.iter().map(|(_, field)| field.value));
        params.chain(values).flat_map(|value| match value {
            Value::Plain(json) => find_references(&json).into_iter().map(Value::Secret).collect(),
            named => vec![named],
        })
    }

    /// The class of `path` in the manifests. `desired` has the former paths of declared containers.
    fn classify(&self, desired: &Desired, scope: Scope, path: &str) -> PathClass {
        let home = desired.moves.home(path);
        let lower = home.to_lowercase();
        if self.declared.contains(&lower) {
            PathClass::Declared
        } else if self.rules.including_rule(scope, &lower, true).is_some()
            && self.context.manages(&home)
        {
            PathClass::Included
        } else {
            PathClass::Other
        }
    }

    /// The faults with their places.
    fn place_faults(&self, faults: Faults) -> Diagnostics {
        locate::place_faults(faults, locate::Counts::new(), &self.files).into_iter().collect()
    }

    /// `desired` with the containers that the rules include from `roster`. If a searched group or
    /// user does not exist, the roster counts as incomplete, unless the manifests declare it. Adds
    /// warnings about rules that match nothing to a complete one.
    ///
    /// # Errors
    /// The faults of rules in the containers that they include. Their warnings were reported when
    /// the manifests were loaded.
    pub fn bring_in(&self, desired: Desired, roster: &mut Roster) -> Result<Desired, Diagnostics> {
        if roster.incomplete.is_empty() {
            let existing_paths: Vec<_> = roster
                .members
                .iter()
                .map(|member| (member.scope, desired.moves.home(&member.path).to_lowercase()))
                .collect();
            let missing_groups: Vec<_> = roster
                .absent_roots
                .iter()
                .map(|path| desired.moves.home(path).to_lowercase())
                .collect();
            let mut idle_rules = Faults::default();
            self.rules.report_idle_live(
                &self.declared,
                &existing_paths,
                &missing_groups,
                &mut idle_rules,
            );
            roster.idle = self.place_faults(idle_rules);
        }
        for root in &roster.absent_roots {
            if !self.declared.contains(&root.to_lowercase()) {
                let why = format!(
                    "no group or user `{}` exists, or the token cannot see it",
                    escape(root)
                );
                roster.incomplete.push((format!("{root}/**").into(), Cause::new(why)));
            }
        }
        let members = roster.members.iter().filter(|member| member.exception.is_none());
        let paths: Vec<_> =
            members.map(|member| (member.scope, desired.moves.home(&member.path))).collect();
        let included = parallel::for_each(paths, |(scope, path)| {
            let (included, faults) = self.rules.include_path(scope, &path)?;
            let (container, found) = check::check_included(included, &self.context);
            Some((container, faults.found.into_iter().chain(found.found)))
        });
        let (mut containers, mut faults) = (Vec::new(), Faults::default());
        for (container, found) in included.into_iter().flatten() {
            containers.push(container);
            faults.found.extend(found.filter(|fault| fault.severity == Severity::Error));
        }
        if !faults.is_empty() {
            return Err(self.place_faults(faults));
        }
        Ok(desired.with(containers))
    }
}
