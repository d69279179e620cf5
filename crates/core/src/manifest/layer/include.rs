//! The groups and projects that rules with `undeclared: include` include: they exist, and no
//! document declares them.
//!
//! Every rule that matches such a path applies, as for a declared container, but there is no
//! document above the rules. `create` is only for documents, because included containers exist.
//! Only the service knows the paths, so offline each rule is checked at an invented path.

use std::{collections::BTreeSet, sync::Arc};

use super::{LayerRules, Layered, merge_container, path_key};
use crate::{
    address::Glob,
    catalogue,
    desired::ContainerLife,
    field::Scope,
    manifest::{
        faults::Faults,
        read::document::{DeclaredContainer, LayerBody, Rule},
    },
    origin::Sourced,
};

/// A container that a rule includes.
#[derive(Debug)]
pub(in crate::manifest) struct Included {
    pub(in crate::manifest) merged: Box<DeclaredContainer>,
    /// The glob of the rule.
    pub(in crate::manifest) rule_glob: Arc<str>,
}

impl LayerRules {
    /// The container at `path`, merged from the rules, if a named rule includes it. It exists and
    /// no document declares it.
    pub(in crate::manifest) fn include_path(
        &self,
        scope: Scope,
        path: &Arc<str>,
    ) -> Option<(Included, Faults)> {
        let (rule, glob) = self.including_rule(scope, &path.to_lowercase(), true)?;
        let (merged, faults) = merge_rules(self, scope, path, rule);
        Some((Included { merged, rule_glob: glob.pattern().into() }, faults))
    }

    /// The globs of named rules that include existing containers.
    pub(in crate::manifest) fn including_globs(&self) -> impl Iterator<Item = (Scope, &Glob)> {
        let including_rules = self.iter().filter(|rule| rule.includes_undeclared && rule.is_named);
        including_rules.flat_map(|rule| rule.paths.iter().map(|glob| (rule.scope, glob)))
    }
}

/// The merged rules for the container at `path`, which `rule` includes.
fn merge_rules(
    rules: &LayerRules,
    scope: Scope,
    path: &Arc<str>,
    rule: &Rule,
) -> (Box<DeclaredContainer>, Faults) {
    let container = DeclaredContainer {
        scope,
        path: Sourced { value: path.clone(), origin: rule.origin.clone() },
        is_named: true,
        is_shared: false,
        lifecycle: ContainerLife::default(),
        body: LayerBody::default(),
    };
    let (mut merged, _, faults) = merge_container(Box::new(container), rules, &[]);
    let (create_section, _) = catalogue::container(scope);
    merged.body.sections.retain(|section| section.kind.section != create_section.section);
    (merged, faults)
}

/// Merges the rules at one invented path for each rule, also for rules that only apply to
/// containers that other rules include. Declared paths are skipped. Stores the merged containers
/// and their faults in `layered`.
pub(super) fn check_invented_paths(rules: &LayerRules, layered: &mut Layered) {
    let declared: BTreeSet<String> =
        layered.containers.iter().map(|container| path_key(container)).collect();
    let mut tested_paths = BTreeSet::new();
    for rule in rules.iter() {
        let mut paths = rule.paths.iter().flat_map(|glob| invent_paths(rule.scope, glob));
        let invented = paths.find_map(|path| {
            let (including, _) = rules.including_rule(rule.scope, &path, false)?;
            let is_matched = rule.best_match(&path).is_some() && !declared.contains(&path);
            is_matched.then_some((path, including))
        });
        let Some((path, including)) =
            invented.filter(|(path, _)| tested_paths.insert(path.clone()))
        else {
            continue;
        };
        layered.invented_containers.push(merge_rules(rules, rule.scope, &path.into(), including));
    }
}

/// Lower-case paths that `glob` matches, with invented text for its wildcards.
fn invent_paths(scope: Scope, glob: &Glob) -> impl Iterator<Item = String> {
    let name = format!("some-undeclared-{}", scope.noun());
    let double_star_texts = [name.clone(), format!("some-undeclared-group/{name}"), String::new()];
    let choices = expand_braces(&glob.pattern().to_lowercase());
    let paths = choices.into_iter().flat_map(move |choice| {
        let name = name.clone();
        double_star_texts.clone().into_iter().map(move |double_star_text| {
            let segments = choice.split('/').map(|segment| match segment {
                "**" => double_star_text.clone(),
                "*" => name.clone(),
                other => sample_text(other),
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

/// The globs without `{a,b}` that `glob` expands to. A [`Glob`] limits their number.
fn expand_braces(glob: &str) -> Vec<String> {
    // The first `}` closes an innermost brace.
    let innermost = glob.split_once('}').and_then(|(start, after)| {
        let (before, inner) = start.rsplit_once('{')?;
        Some((before, inner, after))
    });
    let Some((before, inner, after)) = innermost else { return vec![glob.to_owned()] };
    inner.split(',').flat_map(|choice| expand_braces(&format!("{before}{choice}{after}"))).collect()
}

/// A short text that a segment of a glob without choices probably matches.
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
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_invented_for_any_usual_glob() {
        let first = |scope, glob: &str| invent_paths(scope, &Glob::for_paths(glob).unwrap()).next();
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
            assert_eq!(first(Scope::Project, glob).as_deref(), Some(path), "{glob}");
        }
        assert_eq!(first(Scope::Group, "acme/*").as_deref(), Some("acme/some-undeclared-group"));
        // A project is never at the top level.
        let paths: Vec<_> = invent_paths(Scope::Project, &Glob::for_paths("**").unwrap()).collect();
        assert_eq!(paths, ["some-undeclared-group/some-undeclared-project"]);
    }
}
