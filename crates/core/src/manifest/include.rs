//! Rules with `undeclared: include`, applied once the existing groups and projects are known.
//!
//! [`Includes`] keeps the rules after all declarations were merged and checked.
//! [`Includes::roster_request`] returns the query to send to the service.
//! [`Includes::include_from`] merges and checks the included containers like declared ones. It does
//! not read the service: the caller passes the roster.

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
    /// The lower-case paths of all declared containers, whether their files are named or not.
    declared: BTreeSet<String>,
}

impl Includes {
    pub(super) fn new(
        rules: LayerRules,
        context: CheckContext,
        files: Vec<ManifestFile>,
        declared: BTreeSet<String>,
    ) -> Option<Self> {
        let has_including_rule = rules.including_globs().next().is_some();
        has_including_rule.then_some(Self { rules, context, files, declared })
    }

    /// The query for the groups and projects that must be listed, in addition to those in
    /// `desired`.
    pub fn roster_request<'a>(&'a self, desired: &'a Desired) -> RosterQuery<'a> {
        RosterQuery {
            globs: self
                .rules
                .including_globs()
                .map(|(scope, glob)| (scope, glob.clone()))
                .collect(),
            fields: self.declared_fields(),
            declared: &desired.containers,
            classify: Box::new(|scope, path| self.classify(desired, scope, path)),
        }
    }

    /// The fields that included containers may declare.
    fn declared_fields(&self) -> Vec<(Section, BTreeSet<String>)> {
        let mut fields: BTreeMap<_, (Section, BTreeSet<String>)> = BTreeMap::new();
        for rule in self.rules.iter() {
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
    pub fn referenced_values(&self) -> impl Iterator<Item = Value> {
        let params = self.rules.iter().flat_map(|rule| rule.body.params.values());
        let params = params.map(|param| param.value.clone());
        let sections = self.rules.iter().flat_map(|rule| &rule.body.sections);
        let parts = sections.flat_map(|section| &section.parts);
        let values = parts.flat_map(|part| part.fields.iter().map(|(_, field)| field.value));
        params.chain(values).flat_map(|value| match value {
            Value::Plain(json) => find_references(&json).into_iter().map(Value::Secret).collect(),
            reference => vec![reference],
        })
    }

    /// The class of `path` in the manifests. `desired` has the former paths of declared containers.
    fn classify(&self, desired: &Desired, scope: Scope, path: &str) -> PathClass {
        let new_path = desired.moves.declared_path(path);
        let lower = new_path.to_lowercase();
        if self.declared.contains(&lower) {
            PathClass::Declared
        } else if self.rules.including_rule(scope, &lower, true).is_some()
            && self.context.manages(&new_path)
        {
            PathClass::Included
        } else {
            PathClass::Unmatched
        }
    }

    /// The faults with their places.
    fn place_faults(&self, faults: Faults) -> Diagnostics {
        locate::place_faults(faults, locate::Counts::new(), &self.files).into_iter().collect()
    }

    /// Adds the containers that the rules include from `roster` to `desired`. Marks the roster as
    /// incomplete if a searched group or user does not exist and is not declared. Adds warnings
    /// about rules that match nothing if every list could be read.
    ///
    /// # Errors
    /// The faults of rules in the containers that they include. Their warnings were reported when
    /// the manifests were loaded.
    pub fn include_from(
        &self,
        desired: Desired,
        roster: &mut Roster,
    ) -> Result<Desired, Diagnostics> {
        if roster.incomplete.is_empty() {
            let existing_paths: Vec<_> = roster
                .members
                .iter()
                .map(|member| {
                    (member.scope, desired.moves.declared_path(&member.path).to_lowercase())
                })
                .collect();
            let missing_groups: Vec<_> = roster
                .absent_roots
                .iter()
                .map(|path| desired.moves.declared_path(path).to_lowercase())
                .collect();
            let mut idle_rules = Faults::default();
            self.rules.report_idle_live(
                &self.declared,
                &existing_paths,
                &missing_groups,
                &mut idle_rules,
            );
            roster.idle_rules = self.place_faults(idle_rules);
        }
        for root in &roster.absent_roots {
            if !self.declared.contains(&root.to_lowercase()) {
                let reason = format!(
                    "no group or user `{}` exists, or the token cannot see it",
                    escape(root)
                );
                roster.incomplete.push((format!("{root}/**").into(), Cause::new(reason)));
            }
        }
        let members = roster.members.iter().filter(|member| member.exception.is_none());
        let paths: Vec<_> = members
            .map(|member| (member.scope, desired.moves.declared_path(&member.path)))
            .collect();
        let included = parallel::map_parallel(paths, |(scope, path)| {
            let (included, faults) = self.rules.include_path(scope, &path)?;
            let (container, check_faults) = check::check_included(included, &self.context);
            Some((container, faults.items.into_iter().chain(check_faults.items)))
        });
        let (mut containers, mut faults) = (Vec::new(), Faults::default());
        for (container, found) in included.into_iter().flatten() {
            containers.push(container);
            faults.items.extend(found.filter(|fault| fault.severity == Severity::Error));
        }
        if !faults.is_empty() {
            return Err(self.place_faults(faults));
        }
        Ok(desired.with_included(containers))
    }
}
