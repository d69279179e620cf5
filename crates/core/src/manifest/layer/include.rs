//! Merges the rules for groups and projects that a rule with `undeclared: include` includes. These
//! groups and projects exist, and no document declares them.
//!
//! Every rule that matches the path of an included container applies, as for a declared container.
//! There is no document above the rules. `create` is dropped, because included containers exist.
//! Only the service knows the paths of included containers. Offline, each rule is checked at a
//! sample path.

use std::{collections::BTreeSet, sync::Arc};

use super::{LayerRules, MergeResult, merge_container, path_key};
use crate::{
    address::Glob,
    catalogue,
    desired::ContainerLifecycle,
    field::Scope,
    manifest::{
        faults::Faults,
        read::document::{DeclaredContainer, LayerBody, Rule},
    },
    origin::Sourced,
};

impl LayerRules {
    /// Merges the rules for the container at `path`. Also returns the glob of the rule that
    /// includes the container. Returns `None` if no rule in a named file includes the container.
    /// The container must exist, and no document may declare it.
    pub(in crate::manifest) fn include_path(
        &self,
        scope: Scope,
        path: &Arc<str>,
    ) -> Option<(&Glob, Box<DeclaredContainer>, Faults)> {
        let (rule, glob) = self.including_rule(scope, &path.to_lowercase(), true)?;
        let (declaration, faults) = self.merge_rules(path, rule);
        Some((glob, declaration, faults))
    }

    /// Merges all rules for the container at `path`, which `rule` includes.
    fn merge_rules(&self, path: &Arc<str>, rule: &Rule) -> (Box<DeclaredContainer>, Faults) {
        let container = DeclaredContainer {
            scope: rule.scope,
            path: Sourced { value: path.clone(), origin: rule.origin.clone() },
            is_selected_by_command: true,
            shares_document: false,
            lifecycle: ContainerLifecycle::default(),
            body: LayerBody::default(),
        };
        let (mut declaration, _, faults) = merge_container(Box::new(container), self, &[]);
        let (create_section, _) = catalogue::container(rule.scope);
        let sections = &mut declaration.body.sections;
        sections.retain(|section| section.section_kind.section != create_section.section);
        (declaration, faults)
    }

    /// The globs of the rules in named files that include existing containers, each with the scope
    /// of its rule.
    pub(in crate::manifest) fn including_globs(&self) -> impl Iterator<Item = (Scope, &Glob)> {
        let including_rules =
            self.iter().filter(|rule| rule.includes_undeclared && rule.is_selected_by_command);
        including_rules.flat_map(|rule| rule.path_globs.iter().map(|glob| (rule.scope, glob)))
    }
}

/// Makes a sample path for each rule, and merges the rules for this path. A rule that only applies
/// to containers included by other rules also gets a sample path. Skips declared paths. Adds the
/// merged containers and their faults to `result`.
pub(super) fn merge_sample_paths(rules: &LayerRules, result: &mut MergeResult) {
    let declared_paths: BTreeSet<String> =
        result.containers.iter().map(|container| path_key(container)).collect();
    let mut tested_paths = BTreeSet::new();
    for rule in rules.iter() {
        let mut paths = rule.path_globs.iter().flat_map(|glob| sample_paths(rule.scope, glob));
        let sample_path = paths.find_map(|path| {
            let (including_rule, _) = rules.including_rule(rule.scope, &path, false)?;
            let is_matched = rule.best_match(&path).is_some() && !declared_paths.contains(&path);
            is_matched.then_some((path, including_rule))
        });
        let Some((path, including_rule)) =
            sample_path.filter(|(path, _)| tested_paths.insert(path.clone()))
        else {
            continue;
        };
        result.sample_containers.push(rules.merge_rules(&path.into(), including_rule));
    }
}

/// Lower-case paths that `glob` matches, made by replacing its wildcards.
fn sample_paths(scope: Scope, glob: &Glob) -> impl Iterator<Item = String> {
    let name = format!("some-undeclared-{}", scope.noun());
    let star_texts = [name.clone(), format!("some-undeclared-group/{name}"), String::new()];
    let choices = expand_braces(&glob.pattern().to_lowercase());
    let paths = choices.into_iter().flat_map(move |choice| {
        let name = name.clone();
        star_texts.clone().into_iter().map(move |double_star_text| {
            let segments = choice.split('/').map(|segment| match segment {
                "**" => double_star_text.clone(),
                "*" => name.clone(),
                segment => sample_text(segment),
            });
            segments.filter(|segment| !segment.is_empty()).collect::<Vec<_>>().join("/")
        })
    });
    paths.filter(move |path| {
        let mut characters = path.chars();
        (path.contains('/') || scope == Scope::Group)
            && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '.' | '_'))
            && glob.matches(path)
    })
}

/// Expands the alternatives `{a,b}` of `glob`. [`Glob`] limits their number.
fn expand_braces(glob: &str) -> Vec<String> {
    // The first `}` closes an innermost brace.
    let brace_parts = glob.split_once('}').and_then(|(start, suffix)| {
        let (prefix, choices) = start.rsplit_once('{')?;
        Some((prefix, choices, suffix))
    });
    let Some((prefix, choices, suffix)) = brace_parts else { return vec![glob.to_owned()] };
    choices
        .split(',')
        .flat_map(|choice| expand_braces(&format!("{prefix}{choice}{suffix}")))
        .collect()
}

/// A short text that a segment of a glob without alternatives probably matches.
fn sample_text(segment: &str) -> String {
    let mut text = String::new();
    let mut chars = segment.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' | '?' => text.push('x'),
            '\\' => text.extend(chars.next()),
            '[' => {
                text.extend(chars.next().filter(|c| *c != '!' && *c != '^'));
                chars.by_ref().find(|c| *c == ']');
            }
            literal => text.push(literal),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_glob_has_a_sample_path() {
        let first_path =
            |scope, glob: &str| sample_paths(scope, &Glob::for_paths(glob).unwrap()).next();
        for (glob, path) in [
            ("acme/**", "acme/some-undeclared-project"),
            ("Acme/web/*", "acme/web/some-undeclared-project"),
            ("acme/**/lib-*", "acme/some-undeclared-project/lib-x"),
            ("acme/{a,b}/s?[xyz]*", "acme/a/sxxx"),
            ("acme/*-svc", "acme/x-svc"),
            ("**/shop", "some-undeclared-project/shop"),
            ("acme/shop", "acme/shop"),
            ("{acme{/old,/web},other}/*", "acme/old/some-undeclared-project"),
        ] {
            assert_eq!(first_path(Scope::Project, glob).as_deref(), Some(path), "{glob}");
        }
        assert_eq!(
            first_path(Scope::Group, "acme/*").as_deref(),
            Some("acme/some-undeclared-group")
        );
        // A project is never at the top level.
        let paths: Vec<_> = sample_paths(Scope::Project, &Glob::for_paths("**").unwrap()).collect();
        assert_eq!(paths, ["some-undeclared-group/some-undeclared-project"]);
    }
}
