//! What rules with `undeclared: include` bring in: groups and projects that exist and that no
//! document declares.
//!
//! Every rule that matches such a path holds for it, as for one that is declared; there is no
//! document above them. `create` is for documents: what is brought in exists. The service alone
//! knows the paths, so that offline each rule is tried on one invented path, which finds what is
//! wrong with it.

use std::{collections::BTreeSet, sync::Arc};

use super::{Layered, Merged, Rules, one};
use crate::{
    address::Glob,
    desired::Life,
    field::Scope,
    kinds,
    manifest::{
        faults::Faults,
        read::document::{Body, Container, Holds, Rule},
    },
    origin::Sourced,
};

/// What one rule brings in.
#[derive(Debug)]
pub(in crate::manifest) struct Included {
    pub(in crate::manifest) merged: Merged,
    /// The glob by which the rule does.
    pub(in crate::manifest) by: Arc<str>,
}

impl Rules {
    /// What exists at `path` and no document declares, put together from the rules, if one of those
    /// that were named brings it in.
    pub(in crate::manifest) fn include(
        &self,
        scope: Scope,
        path: &Arc<str>,
    ) -> Option<(Included, Faults)> {
        let (rule, glob) = self.including(scope, &path.to_lowercase(), true)?;
        let (merged, faults) = merge(self, scope, path, rule);
        Some((Included { merged, by: glob.written().into() }, faults))
    }

    /// Whether a rule that was named brings in what exists at `path`, if nobody declares it.
    pub(in crate::manifest) fn includes(&self, scope: Scope, path: &str) -> bool {
        self.including(scope, &path.to_lowercase(), true).is_some()
    }

    /// Below which globs what exists is brought in by rules that were named.
    pub(in crate::manifest) fn including_globs(&self) -> impl Iterator<Item = (Scope, &Glob)> {
        self.all().filter(|rule| rule.includes && rule.is_named).flat_map(|rule| {
            let paths = match &rule.holds {
                Holds::Where { paths, .. } => Some(paths.iter()),
                Holds::Whoever { .. } => None,
            };
            paths.into_iter().flatten().map(|glob| (rule.scope, glob))
        })
    }

    /// What any rule says, with the scope that it is for.
    pub(in crate::manifest) fn bodies(&self) -> impl Iterator<Item = (Scope, &Body)> {
        self.all().map(|rule| (rule.scope, &rule.body))
    }
}

/// What `rules` say of what exists at `path`, which `rule` brings in.
fn merge(rules: &Rules, scope: Scope, path: &Arc<str>, rule: &Rule) -> (Merged, Faults) {
    let container = Container {
        scope,
        path: Sourced { value: path.clone(), origin: rule.origin.clone() },
        is_named: true,
        life: Life::default(),
        body: Body::default(),
    };
    let (mut merged, _, faults) = one(container, rules, &[]);
    let (own, _) = kinds::container(scope);
    merged.body.sections.retain(|section| section.of.section != own.section);
    (merged, faults)
}

/// What rules would bring in at one invented path for each rule, also for those that hold only of
/// what others bring in; not where something is declared. What is wrong comes with it.
pub(super) fn invented(rules: &Rules, layered: &mut Layered) {
    let declared: BTreeSet<String> =
        layered.containers.iter().map(|known| known.path.value.to_lowercase()).collect();
    let mut tried = BTreeSet::new();
    for rule in rules.all() {
        let Holds::Where { paths, .. } = &rule.holds else { continue };
        let brought = paths.iter().flat_map(|glob| invent(rule.scope, glob)).find_map(|path| {
            let (by, _) = rules.including(rule.scope, &path, false)?;
            let is_of_it = rules.holds(rule, &path) && !declared.contains(&path);
            is_of_it.then_some((path, by))
        });
        let Some((path, by)) = brought.filter(|(path, _)| tried.insert(path.clone())) else {
            continue;
        };
        layered.invented.push(merge(rules, rule.scope, &path.into(), by));
    }
}

/// Paths in lower case that `glob` matches: where it leaves something open, that says what it is.
fn invent(scope: Scope, glob: &Glob) -> impl Iterator<Item = String> {
    let own = format!("some-undeclared-{}", scope.noun());
    let across = [own.clone(), format!("some-undeclared-group/{own}"), String::new()];
    let choices = choices(&glob.written().to_lowercase());
    let paths = choices.into_iter().flat_map(move |choice| {
        let own = own.clone();
        across.clone().into_iter().map(move |across| {
            let segments = choice.split('/').map(|segment| match segment {
                "**" => across.clone(),
                "*" => own.clone(),
                other => literal(other),
            });
            segments.filter(|segment| !segment.is_empty()).collect::<Vec<_>>().join("/")
        })
    });
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '.' | '_');
    paths.filter(move |path| {
        let is_possible = path.contains('/') || scope == Scope::Group;
        is_possible && path.chars().all(is_path) && glob.matches(path)
    })
}

/// The globs without `{a,b}` that `glob` stands for; a [`Glob`] has a limit for them.
fn choices(glob: &str) -> Vec<String> {
    // The first one that closes holds no other.
    let innermost = glob.split_once('}').and_then(|(start, after)| {
        let (before, inner) = start.rsplit_once('{')?;
        Some((before, inner, after))
    });
    let Some((before, inner, after)) = innermost else { return vec![glob.to_owned()] };
    inner.split(',').flat_map(|choice| choices(&format!("{before}{choice}{after}"))).collect()
}

/// The shortest text that a segment of a glob without choices is likely to match.
fn literal(segment: &str) -> String {
    let mut text = String::new();
    let mut chars = segment.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' => {}
            '?' => text.push('x'),
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
    fn a_path_is_invented_for_any_usual_glob() {
        let first = |scope, glob: &str| invent(scope, &Glob::over_paths(glob).unwrap()).next();
        for (glob, path) in [
            ("acme/**", "acme/some-undeclared-project"),
            ("Acme/web/*", "acme/web/some-undeclared-project"),
            ("acme/**/lib-*", "acme/some-undeclared-project/lib-"),
            ("acme/{a,b}/s?[xyz]*", "acme/a/sxx"),
            ("**/shop", "some-undeclared-project/shop"),
            ("acme/shop", "acme/shop"),
            ("{acme{/old,/web},other}/*", "acme/old/some-undeclared-project"),
        ] {
            assert_eq!(first(Scope::Project, glob).as_deref(), Some(path), "{glob}");
        }
        assert_eq!(first(Scope::Group, "acme/*").as_deref(), Some("acme/some-undeclared-group"));
        // A project is never at the top.
        let paths: Vec<_> = invent(Scope::Project, &Glob::over_paths("**").unwrap()).collect();
        assert_eq!(paths, ["some-undeclared-group/some-undeclared-project"]);
    }
}
