//! Reports rules that match nothing, exceptions from nothing, parameters that no text uses, and
//! policies for sections that nothing declares.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use super::{
    path_key,
    rules::{LayerRules, TrackedRule},
};
use crate::{
    address::{Glob, is_literal},
    diagnostic::Severity,
    field::Scope,
    kind::refs::overlap,
    manifest::{
        config::is_expression,
        faults::{Faults, NodePosition, texts, words},
        read::document::{DeclaredContainer, Rule},
    },
    origin::Origin,
    text::{count, nearest},
};

impl LayerRules {
    /// True if `rule` may match what another rule includes.
    fn may_match_included(&self, rule: &Rule) -> bool {
        let including =
            self.all().filter(|other| other.includes_undeclared && other.scope == rule.scope);
        let mut included = including.flat_map(|other| other.paths.iter());
        included.any(|other| rule.paths.iter().any(|one| may_overlap(one, other)))
    }

    /// Reports including rules that match neither a `declared` nor an `existing` path. All paths are in
    /// lower case. Missing groups are reported elsewhere.
    pub(in crate::manifest) fn report_idle_live(
        &self,
        declared: &BTreeSet<String>,
        existing: &[(Scope, String)],
        missing_groups: &[String],
        faults: &mut Faults,
    ) {
        for rule in self.all().filter(|rule| rule.includes_undeclared && rule.is_named) {
            let mut exists = existing.iter().filter(|(scope, _)| *scope == rule.scope);
            let is_idle = !declared.iter().any(|path| rule.best_match(path).is_some())
                && !exists.any(|(_, path)| rule.best_match(path).is_some());
            // Those of one part were reported before.
            if is_idle && !has_single_part_globs(rule) && !starts_with_group(rule, missing_groups) {
                report_idle_rule(rule, "declared or existing", &[], faults);
            }
        }
    }

    /// Reports rules without effect on `containers`, which are in order of their paths.
    pub(super) fn report_idle(&self, containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
        let is_clean = faults.found.iter().all(|fault| fault.severity == Severity::Warning);
        for (index, TrackedRule { rule, is_used, unlisted_counts: declared, params }) in
            self.rules.iter().enumerate()
        {
            // Only the service knows what it, or another rule, includes; and of two profiles with one
            // name, it is unknown which one is used.
            let is_second = rule
                .profile
                .as_ref()
                .is_some_and(|name| self.profile_position(rule.scope, name) != Some(index));
            if !is_used.load(Ordering::Relaxed) {
                let may_be_live = !has_single_part_globs(rule)
                    && (rule.includes_undeclared || self.may_match_included(rule));
                if !is_second && !may_be_live {
                    report_idle_rule(rule, "declared", containers, faults);
                }
                continue;
            }
            if !rule.includes_undeclared {
                report_idle_exceptions(rule, containers, faults);
            }
            let unused = params.iter().filter(|(_, is_used)| !is_used.load(Ordering::Relaxed));
            for (name, _) in unused.filter(|_| is_clean && !rule.includes_undeclared) {
                report_idle_param(name, &rule.body.params[name].origin, &[], faults);
            }
            for (name, numbers) in declared {
                let [with, without] = numbers.each_ref().map(|all| all.load(Ordering::Relaxed));
                let all = count(with + without, rule.scope.noun());
                let texts = match (with, without) {
                    (0, _) => texts::UNLISTED_NOWHERE,
                    (_, 0) => continue,
                    _ => texts::UNLISTED_WITHOUT,
                };
                let origin = &rule.body.unlisted[name].origin;
                faults.report_key(texts, origin, words![name, without, all]);
            }
        }
    }
}

/// Reports a parameter that no text uses. Help names a similar one of the `used` parameters.
pub(super) fn report_idle_param<'u>(
    name: &str,
    at: &Origin,
    used: impl IntoIterator<Item = &'u Arc<str>>,
    faults: &mut Faults,
) {
    let fault = faults.report_key(texts::IDLE_PARAM, at, words![param = name]);
    fault.suggest(nearest(name, used.into_iter().map(|name| &**name)));
}

/// The first container whose path starts with `prefix`. They are in order of their paths.
fn find_by_prefix<'c>(
    containers: &'c [Box<DeclaredContainer>],
    prefix: &str,
) -> Option<&'c DeclaredContainer> {
    let prefix = prefix.to_lowercase();
    let at = containers.partition_point(|container| path_key(container) < prefix);
    containers.get(at).map(Box::as_ref).filter(|next| path_key(next).starts_with(&prefix))
}

/// True if one of `containers` that `rule` may be about has this `path`.
fn is_declared(rule: &Rule, path: &str, containers: &[Box<DeclaredContainer>]) -> bool {
    find_by_prefix(containers, path)
        .is_some_and(|of| of.scope == rule.scope && of.path.value.eq_ignore_ascii_case(path))
}

/// True if a path may match both globs. All special characters count as `*`.
fn may_overlap(first: &Glob, other: &Glob) -> bool {
    let [one, other] = [first, other].map(|glob| {
        // `**/` also matches nothing.
        let text = glob.written().to_lowercase().replace("**/", "*");
        match text.find(['?', '[', '{', '\\']) {
            Some(at) => format!("{}*", &text[..at]),
            None => text,
        }
    });
    overlap(&one, &other)
}

/// True if a glob of `rule` starts with one of the lower-case paths of `groups`. A regular expression
/// is about no group.
fn starts_with_group(rule: &Rule, groups: &[String]) -> bool {
    rule.paths.iter().map(Glob::written).filter(|glob| !is_expression(glob)).any(|glob| {
        let glob = format!("{}/", glob.to_lowercase());
        groups.iter().any(|group| {
            glob.strip_prefix(group.as_str()).is_some_and(|rest| rest.starts_with('/'))
        })
    })
}

/// True if all globs of a rule for projects have one part, which the path of no project has.
fn has_single_part_globs(rule: &Rule) -> bool {
    let is_for_projects = rule.scope == Scope::Project && rule.profile.is_none();
    let mut globs = rule.paths.iter().map(Glob::written);
    is_for_projects && globs.all(|glob| !glob.contains('/') && !glob.contains("**"))
}

/// Reports a rule without effect on `containers`, which are all of this `sort`.
fn report_idle_rule(
    rule: &Rule,
    sort: &str,
    containers: &[Box<DeclaredContainer>],
    faults: &mut Faults,
) {
    let Rule { paths, except, .. } = rule;
    let noun = rule.scope.noun();
    if let Some(name) = &rule.profile {
        faults.report_key(texts::IDLE_PROFILE, &rule.origin, words![noun, name]);
        return;
    }
    if let Some(except) = except
        && containers.iter().any(|of| of.scope == rule.scope && paths.matches(&path_key(of)))
    {
        faults.report_key(texts::IDLE_EXCEPT, &except.origin, words![noun]);
        return;
    }
    let is_above = |glob: &Glob| {
        let prefix = glob.written().strip_suffix('*').unwrap_or_default();
        prefix.ends_with('/') && find_by_prefix(containers, prefix).is_some()
    };
    let is_below = |glob: &Glob| {
        let outer = glob.written().strip_suffix("/**").unwrap_or_default();
        is_declared(rule, outer, containers)
    };
    let texts = match paths {
        _ if paths.iter().any(|glob| is_expression(glob.written())) => texts::IDLE_EXPRESSION,
        _ if paths.iter().any(is_above) => texts::IDLE_STAR,
        _ if paths.iter().any(is_below) => texts::IDLE_BELOW,
        _ if paths.iter().all(|glob| is_literal(glob.written())) => texts::IDLE_LITERAL,
        _ if has_single_part_globs(rule) => texts::IDLE_ONE_PART,
        _ => texts::IDLE_MATCH,
    };
    let first = paths.iter().next().map(Glob::written).unwrap_or_default();
    faults.report(texts, NodePosition::item(&rule.origin, first), words![sort, noun]);
}

/// Reports paths in `except` that are not declared. Globs there may be for what comes later.
fn report_idle_exceptions(rule: &Rule, containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    let Some(except) = &rule.except else { return };
    let paths = except.value.iter().map(Glob::written);
    for path in paths.filter(|path| is_literal(path) && !is_declared(rule, path, containers)) {
        let has_below = find_by_prefix(containers, &format!("{path}/")).is_some();
        let texts = if has_below { texts::EXCEPT_WITHOUT_STAR } else { texts::UNKNOWN_EXCEPT };
        let words = words![noun = rule.scope.noun(), path];
        faults.report(texts, NodePosition::item(&except.origin, path), words);
    }
}
