//! Applies rules with `undeclared: include`, once the existing groups and projects are known.
//!
//! [`IncludeRules`] keeps the rules after all declarations were merged and checked.
//! [`IncludeRules::roster_query`] describes what the caller must list on the service.
//! [`IncludeRules::include_from`] merges and checks the included containers like declared
//! containers. This module requests nothing from the service: the caller passes the roster.

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
    desired::{Container, Desired, PathClass, Roster, RosterQuery},
    diagnostic::{Diagnostics, Severity},
    field::Scope,
    kind::Section,
    text::escape,
    value::Value,
};

/// Rules that include undeclared groups and projects.
#[derive(Debug)]
pub struct IncludeRules {
    rules: LayerRules,
    context: CheckContext,
    files: Vec<ManifestFile>,
    /// The lower-case paths of all declared containers, including containers in files that the
    /// command does not name.
    declared_paths: BTreeSet<String>,
}

impl IncludeRules {
    pub(super) fn new(
        rules: LayerRules,
        context: CheckContext,
        files: Vec<ManifestFile>,
        lower_paths: BTreeSet<String>,
    ) -> Option<Self> {
        let has_including_rule = rules.including_globs().next().is_some();
        has_including_rule.then_some(Self { rules, context, files, declared_paths: lower_paths })
    }

    /// The query for the groups and projects that exist in addition to those in `desired`.
    pub fn roster_query<'a>(&'a self, desired: &'a Desired) -> RosterQuery<'a> {
        let globs = self.rules.including_globs();
        RosterQuery {
            globs: globs.map(|(scope, glob)| (scope, glob.clone())).collect(),
            fields: self.declared_fields(),
            declared: &desired.containers,
            classify: Box::new(|scope, path| self.classify(desired, scope, path)),
        }
    }

    /// The fields that included containers may declare, by section.
    fn declared_fields(&self) -> Vec<(Section, BTreeSet<String>)> {
        let mut fields: BTreeMap<_, (Section, BTreeSet<String>)> = BTreeMap::new();
        for rule in self.rules.iter() {
            for section in &rule.body.sections {
                let (_, field_names) = fields
                    .entry((rule.scope, section.section_kind.section))
                    .or_insert_with(|| (section.section_kind, BTreeSet::new()));
                let entries = section.entries.iter();
                field_names
                    .extend(entries.flat_map(|entry| entry.fields.keys()).map(str::to_owned));
            }
        }
        fields.into_values().collect()
    }

    /// The secrets and uploads in rules, also within templates, lists and mappings.
    pub fn referenced_values(&self) -> impl Iterator<Item = Value> {
        let params = self.rules.iter().flat_map(|rule| rule.body.params.values());
        let params = params.map(|param| param.value.clone());
        let sections = self.rules.iter().flat_map(|rule| &rule.body.sections);
        let entries = sections.flat_map(|section| &section.entries);
        let values = entries.flat_map(|entry| entry.fields.iter().map(|(_, field)| field.value));
        params.chain(values).flat_map(|value| match value {
            Value::Plain(json) => find_references(&json).into_iter().map(Value::Secret).collect(),
            reference => vec![reference],
        })
    }

    /// Classifies the container at the live `path`: declared, included by a rule, or unmatched.
    /// `desired` knows the former paths of declared containers.
    fn classify(&self, desired: &Desired, scope: Scope, path: &str) -> PathClass {
        let new_path = desired.moves.declared_path(path);
        let lower_path = new_path.to_lowercase();
        if self.declared_paths.contains(&lower_path) {
            PathClass::Declared
        } else if self.rules.including_rule(scope, &lower_path, true).is_some()
            && self.context.manages(&new_path)
        {
            PathClass::Included
        } else {
            PathClass::Unmatched
        }
    }

    /// Converts faults to diagnostics.
    fn locate_faults(&self, faults: Faults) -> Diagnostics {
        locate::locate_faults(faults, locate::FaultCounts::new(), &self.files).into_iter().collect()
    }

    /// Adds to `desired` the containers of `roster` that the rules include. If a searched group or
    /// user does not exist and is not declared, marks the roster as incomplete. If every list could
    /// be read, adds warnings about rules that match nothing to the roster.
    ///
    /// # Errors
    /// The errors of rules in the containers that they include. Warnings were already reported when
    /// the manifests were loaded.
    pub fn include_from(
        &self,
        desired: Desired,
        roster: &mut Roster,
    ) -> Result<Desired, Diagnostics> {
        if roster.incomplete_globs.is_empty() {
            let (moves, live_containers) = (&desired.moves, roster.containers.iter());
            let existing_paths: Vec<_> = live_containers
                .map(|container| {
                    (container.scope, moves.declared_path(&container.path).to_lowercase())
                })
                .collect();
            let missing_namespaces = roster.missing_namespaces.iter();
            let missing_groups: Vec<_> =
                missing_namespaces.map(|path| moves.declared_path(path).to_lowercase()).collect();
            let mut idle_rules = Faults::default();
            self.rules.report_idle_includes(
                &self.declared_paths,
                &existing_paths,
                &missing_groups,
                &mut idle_rules,
            );
            roster.idle_rule_warnings = self.locate_faults(idle_rules);
        }
        for namespace in &roster.missing_namespaces {
            if !self.declared_paths.contains(&namespace.to_lowercase()) {
                let name = escape(namespace);
                let reason =
                    format!("no group or user `{name}` exists, or the token cannot see it");
                roster
                    .incomplete_globs
                    .push((format!("{namespace}/**").into(), Cause::new(reason)));
            }
        }
        let live_containers =
            roster.containers.iter().filter(|container| container.exclusion.is_none());
        let paths: Vec<_> = live_containers
            .map(|container| (container.scope, desired.moves.declared_path(&container.path)))
            .collect();
        let checked_containers = parallel::map_parallel(paths, |(scope, path)| {
            let (glob, declaration, faults) = self.rules.include_path(scope, &path)?;
            let (container, check_faults) = check::check_container(declaration, &self.context);
            let including_glob = Some(glob.pattern().into());
            let container = Container { including_glob, ..container };
            Some((container, faults.items.into_iter().chain(check_faults.items)))
        });
        let (mut containers, mut faults) = (Vec::new(), Faults::default());
        for (container, container_faults) in checked_containers.into_iter().flatten() {
            containers.push(container);
            faults.items.extend(container_faults.filter(|fault| fault.severity == Severity::Error));
        }
        if !faults.is_empty() {
            return Err(self.locate_faults(faults));
        }
        Ok(desired.with_included(containers))
    }
}
