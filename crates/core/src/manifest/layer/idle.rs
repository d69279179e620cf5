//! Reports what has no effect: rules that match nothing, exceptions from nothing, parameters that no text uses,
//! and policies for sections that nothing declares.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
};

use super::rules::{Counted, Rules};
use crate::{
    address::{Glob, is_literal},
    diagnostic::Severity,
    field::Scope,
    kind::refs::overlap,
    manifest::{
        config::{NO_EXPRESSION, is_expression},
        faults::{Faults, Spot},
        read::document::{Container, Rule},
    },
    origin::Origin,
    text::{count, nearest},
};

impl Rules {
    /// Whether `rule` may match what another rule includes.
    fn may_hold_for_included(&self, rule: &Rule) -> bool {
        let including = self.all().filter(|other| other.includes && other.scope == rule.scope);
        let mut included = including.flat_map(|other| other.paths.iter());
        included.any(|other| rule.paths.iter().any(|one| may_meet(one, other)))
    }

    /// Reports rules that include what exists and match neither a `declared` path nor one that
    /// `exists`. All paths are in lower case. That a group is in `nowhere` is reported elsewhere.
    pub(in crate::manifest) fn idle_live(
        &self,
        declared: &BTreeSet<String>,
        exists: &[(Scope, String)],
        nowhere: &[String],
        faults: &mut Faults,
    ) {
        for rule in self.all().filter(|rule| rule.includes && rule.is_named) {
            let mut exists = exists.iter().filter(|(scope, _)| *scope == rule.scope);
            let is_idle = !declared.iter().any(|path| rule.best(path).is_some())
                && !exists.any(|(_, path)| rule.best(path).is_some());
            // Those of one part were reported before.
            if is_idle && !is_of_one_part(rule) && !is_for_one_of(rule, nowhere) {
                idle_rule(rule, "declared or existing", &[], faults);
            }
        }
    }

    /// Reports rules without effect on `containers`, which are in order of their paths.
    pub(super) fn idle(&self, containers: &[Box<Container>], faults: &mut Faults) {
        let is_clean = faults.found.iter().all(|fault| fault.severity == Severity::Warning);
        for (at, Counted { rule, is_used, declared, params }) in self.rules.iter().enumerate() {
            // Only the service knows what it, or another rule, includes; and of two profiles with one
            // name, it is unknown which one is used.
            let is_second = rule
                .profile
                .as_ref()
                .is_some_and(|name| self.position(rule.scope, name) != Some(at));
            if !is_used.load(Ordering::Relaxed) {
                let includes = || rule.includes || self.may_hold_for_included(rule);
                if !(is_second || !is_of_one_part(rule) && includes()) {
                    idle_rule(rule, "declared", containers, faults);
                }
                continue;
            }
            if !rule.includes {
                idle_exceptions(rule, containers, faults);
            }
            let unused = params.iter().filter(|(_, is_used)| !is_used.load(Ordering::Relaxed));
            for (name, _) in unused.filter(|_| is_clean && !rule.includes) {
                idle_param(name, &rule.body.params[name].origin, &[], faults);
            }
            for (name, numbers) in declared {
                let [with, without] = numbers.each_ref().map(|all| all.load(Ordering::Relaxed));
                let at = Spot::key(&rule.body.unlisted[name].origin);
                if with == 0 {
                    let message = format!(
                        "`unlisted` names `{name}`, which nothing declares where this holds"
                    );
                    let idle = faults.error("unlisted", message, at);
                    idle.help(format!("write `{name}: []` if there are to be none"));
                } else if without > 0 {
                    let all = count(with + without, rule.scope.noun());
                    let message =
                        format!("`unlisted` does nothing in {without} of {all}: no `{name}` there");
                    let idle = faults.warning("unlisted", message, at);
                    idle.help(format!("write `{name}: []` beside it to compare all of them"));
                }
            }
        }
    }
}

/// Reports a parameter that no text uses. Those that are `used` may be meant.
pub(super) fn idle_param<'u>(
    name: &str,
    at: &Origin,
    used: impl IntoIterator<Item = &'u Arc<str>>,
    faults: &mut Faults,
) {
    let message = format!("no text uses the parameter `{name}` here");
    let near = nearest(name, used.into_iter().map(|name| &**name));
    faults.warning("idle-rule", message, Spot::key(at)).help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("take it out, or write `{{{name}}}` in a `{{text: ...}}`"),
    });
}

/// The first of `containers`, in order of their paths, of which the path starts with `prefix`.
fn first_from<'c>(containers: &'c [Box<Container>], prefix: &str) -> Option<&'c Container> {
    let (prefix, path) =
        (prefix.to_lowercase(), |container: &Container| container.path.value.to_lowercase());
    let at = containers.partition_point(|container| path(container) < prefix);
    containers.get(at).map(Box::as_ref).filter(|next| path(next).starts_with(&prefix))
}

/// Whether one of `containers` that `rule` may be about has this `path`.
fn is_declared(rule: &Rule, path: &str, containers: &[Box<Container>]) -> bool {
    let is_it = |of: &Container| of.scope == rule.scope && of.path.value.eq_ignore_ascii_case(path);
    first_from(containers, path).is_some_and(is_it)
}

/// Whether a path may match both globs: what is special in them but `*` counts as any text.
fn may_meet(one: &Glob, other: &Glob) -> bool {
    let [one, other] = [one, other].map(|glob| {
        // `**/` also matches nothing.
        let text = glob.written().to_lowercase().replace("**/", "*");
        match text.find(['?', '[', '{', '\\']) {
            Some(at) => format!("{}*", &text[..at]),
            None => text,
        }
    });
    overlap(&one, &other)
}

/// Whether a glob of `rule` starts with one of the lower-case paths of `groups`. A regular expression
/// is about no group.
fn is_for_one_of(rule: &Rule, groups: &[String]) -> bool {
    rule.paths.iter().map(Glob::written).filter(|glob| !is_expression(glob)).any(|glob| {
        let glob = format!("{}/", glob.to_lowercase());
        groups.iter().any(|group| {
            glob.strip_prefix(group.as_str()).is_some_and(|rest| rest.starts_with('/'))
        })
    })
}

/// Whether all globs of a rule for projects have one part, which the path of no project has.
fn is_of_one_part(rule: &Rule) -> bool {
    let is_short = |glob: &str| !glob.contains('/') && !glob.contains("**");
    let is_for_projects = rule.scope == Scope::Project && rule.profile.is_none();
    is_for_projects && rule.paths.iter().all(|glob| is_short(glob.written()))
}

/// Reports a rule without effect on `containers`, which are all of this `sort`.
fn idle_rule(rule: &Rule, sort: &str, containers: &[Box<Container>], faults: &mut Faults) {
    let Rule { paths, except, .. } = rule;
    let noun = rule.scope.noun();
    if let Some(name) = &rule.profile {
        let message = format!("no declared {noun} uses the profile `{name}`");
        let idle = faults.warning("idle-rule", message, Spot::key(&rule.origin));
        idle.help("name it in `uses`, or take the document away");
        return;
    }
    let matches =
        |of: &Container| of.scope == rule.scope && paths.matches(&of.path.value.to_lowercase());
    if let Some(except) = except.as_ref().filter(|_| containers.iter().any(|own| matches(own))) {
        let message = format!("`except` leaves out each {noun} that `path` matches");
        let idle = faults.warning("idle-rule", message, Spot::key(&except.origin));
        idle.help("take it out, write less in it, or take the document away");
        return;
    }
    let is_above = |glob: &Glob| {
        let prefix = glob.written().strip_suffix('*').unwrap_or_default();
        prefix.ends_with('/') && first_from(containers, prefix).is_some()
    };
    let is_below = |glob: &Glob| {
        let outer = glob.written().strip_suffix("/**").unwrap_or_default();
        is_declared(rule, outer, containers)
    };
    let is_plain = |glob: &Glob| is_literal(glob.written());
    let help = match paths {
        _ if paths.iter().any(|glob| is_expression(glob.written())) => NO_EXPRESSION,
        _ if paths.iter().any(is_above) => {
            "`*` stays within one part of a path, and `**` matches all below: write `/**`, or take the document away"
        }
        _ if paths.iter().any(is_below) => {
            "`/**` matches what is below a path, and not the path itself: write both, as in `[acme, acme/**]`"
        }
        _ if paths.iter().all(is_plain) => {
            "a path without `*` matches only itself: write `/**` behind it for all below, or take the document away"
        }
        _ if is_of_one_part(rule) => {
            "`*` stays within one part of a path, and a project has two or more: write `**` for all, or the group in front"
        }
        _ => "correct `match`, or take the document away",
    };
    let first = paths.iter().next().map(Glob::written).unwrap_or_default();
    let message = format!("this matches no {sort} {noun}");
    faults.warning("idle-rule", message, Spot::item(&rule.origin, first)).help(help);
}

/// Reports paths in `except` that are not declared. Globs there may be for what comes later.
fn idle_exceptions(rule: &Rule, containers: &[Box<Container>], faults: &mut Faults) {
    let Some(except) = &rule.except else { return };
    let paths = except.value.iter().map(Glob::written);
    for path in paths.filter(|path| is_literal(path) && !is_declared(rule, path, containers)) {
        let message = format!("`except` names no declared {}", rule.scope.noun());
        let idle = faults.warning("idle-rule", message, Spot::item(&except.origin, path));
        idle.help(match first_from(containers, &format!("{path}/")) {
            Some(_) => {
                format!("a path without `*` is only itself: write `{path}/**` for all below")
            }
            None => "correct it, or take it out".to_owned(),
        });
    }
}
