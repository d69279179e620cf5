//! Reports parts of rules that have no effect: `match` and `except` globs that match nothing,
//! parameters that no text uses, and `unlisted` policies for sections that no document declares.

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
    kind::refs::patterns_overlap,
    manifest::{
        config::looks_like_regex,
        faults::{Faults, NodePosition, placeholders, texts},
        read::document::{DeclaredContainer, Rule},
    },
    origin::Origin,
    text::{count, nearest},
};

impl LayerRules {
    /// True if `rule` may match a container that is managed only because of `undeclared: include`.
    fn may_match_included(&self, rule: &Rule) -> bool {
        let including_rules = self.iter().filter(|including_rule| {
            including_rule.includes_undeclared && including_rule.scope == rule.scope
        });
        let mut including_globs =
            including_rules.flat_map(|including_rule| including_rule.path_globs.iter());
        including_globs.any(|including_glob| {
            rule.path_globs.iter().any(|glob| can_overlap(glob, including_glob))
        })
    }

    /// Reports rules with `undeclared: include` that match neither a declared nor an existing path.
    /// All paths must be in lower case. Skips rules below `missing_groups`: these groups are
    /// reported elsewhere.
    pub(in crate::manifest) fn report_idle_includes(
        &self,
        declared_paths: &BTreeSet<String>,
        existing_paths: &[(Scope, String)],
        missing_groups: &[String],
        faults: &mut Faults,
    ) {
        for rule in
            self.iter().filter(|rule| rule.includes_undeclared && rule.is_selected_by_command)
        {
            let mut scope_paths = existing_paths.iter().filter(|(scope, _)| *scope == rule.scope);
            let is_idle = !declared_paths.iter().any(|path| rule.best_match(path).is_some())
                && !scope_paths.any(|(_, path)| rule.best_match(path).is_some());
            // Rules with single-part globs were reported when the manifests were loaded.
            if is_idle && !has_single_part_globs(rule) && !starts_with_group(rule, missing_groups) {
                report_idle_rule(rule, "declared or existing", &[], faults);
            }
        }
    }

    /// Reports rules, and parts of rules, without effect on `containers`, which must be ordered by
    /// path.
    pub(super) fn report_idle(&self, containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
        let is_error_free = faults.items.iter().all(|fault| fault.severity == Severity::Warning);
        for (index, TrackedRule { rule, is_used, unlisted_counts, param_uses: params }) in
            self.rules.iter().enumerate()
        {
            // Do not report a rule that may match included paths, because only the service knows
            // these paths. Do not report one of two profiles with the same name, because it is
            // unknown which of them is used.
            let is_duplicate_profile = rule
                .profile
                .as_ref()
                .is_some_and(|name| self.profile_position(rule.scope, name) != Some(index));
            if !is_used.load(Ordering::Relaxed) {
                let may_match_live = !has_single_part_globs(rule)
                    && (rule.includes_undeclared || self.may_match_included(rule));
                if !is_duplicate_profile && !may_match_live {
                    report_idle_rule(rule, "declared", containers, faults);
                }
                continue;
            }
            if !rule.includes_undeclared {
                report_idle_exceptions(rule, containers, faults);
            }
            let unused_params =
                params.iter().filter(|(_, is_used)| !is_used.load(Ordering::Relaxed));
            for (name, _) in unused_params.filter(|_| is_error_free && !rule.includes_undeclared) {
                report_idle_param(name, &rule.body.params[name].origin, &[], faults);
            }
            for (name, counts) in unlisted_counts {
                let [count_with, without] =
                    counts.each_ref().map(|counter| counter.load(Ordering::Relaxed));
                let all = count(count_with + without, rule.scope.noun());
                let problem_texts = match (count_with, without) {
                    (0, _) => texts::UNLISTED_NOWHERE,
                    (_, 0) => continue,
                    _ => texts::UNLISTED_WITHOUT,
                };
                let origin = &rule.body.unlisted[name].origin;
                faults.report_key(problem_texts, origin, placeholders![name, without, all]);
            }
        }
    }
}

/// Reports a parameter that no text uses. The help suggests a similar name from `used_names`.
pub(super) fn report_idle_param<'u>(
    name: &str,
    origin: &Origin,
    used_names: impl IntoIterator<Item = &'u Arc<str>>,
    faults: &mut Faults,
) {
    let fault = faults.report_key(texts::IDLE_PARAM, origin, placeholders![param = name]);
    fault.suggest_name(nearest(name, used_names.into_iter().map(|name| &**name)));
}

/// The first container whose path starts with `prefix`, ignoring case. `containers` must be ordered
/// by path.
fn find_by_prefix<'c>(
    containers: &'c [Box<DeclaredContainer>],
    prefix: &str,
) -> Option<&'c DeclaredContainer> {
    let prefix = prefix.to_lowercase();
    let index = containers.partition_point(|container| path_key(container) < prefix);
    containers.get(index).map(Box::as_ref).filter(|next| path_key(next).starts_with(&prefix))
}

/// True if a container with this `path` and the scope of `rule` is declared.
fn is_declared(rule: &Rule, path: &str, containers: &[Box<DeclaredContainer>]) -> bool {
    find_by_prefix(containers, path).is_some_and(|container| {
        container.scope == rule.scope && container.path.value.eq_ignore_ascii_case(path)
    })
}

/// True if a path may match both globs. After the first special character other than `*`, any text
/// is treated as a match.
fn can_overlap(first: &Glob, other: &Glob) -> bool {
    let [first_pattern, other_pattern] = [first, other].map(|glob| {
        // `**/` also matches an empty text.
        let text = glob.pattern().to_lowercase().replace("**/", "*");
        match text.find(['?', '[', '{', '\\']) {
            Some(literal_len) => format!("{}*", &text[..literal_len]),
            None => text,
        }
    });
    patterns_overlap(&first_pattern, &other_pattern)
}

/// True if a glob of `rule` starts with the path of one of `groups`, which must be in lower case.
/// Globs that look like regular expressions are ignored.
fn starts_with_group(rule: &Rule, groups: &[String]) -> bool {
    rule.path_globs.iter().map(Glob::pattern).filter(|glob| !looks_like_regex(glob)).any(|glob| {
        let glob = format!("{}/", glob.to_lowercase());
        groups.iter().any(|group| {
            glob.strip_prefix(group.as_str()).is_some_and(|suffix| suffix.starts_with('/'))
        })
    })
}

/// True if the rule is for projects and all its globs have one part. Paths of projects have at
/// least two parts.
fn has_single_part_globs(rule: &Rule) -> bool {
    let is_for_projects = rule.scope == Scope::Project && rule.profile.is_none();
    let mut globs = rule.path_globs.iter().map(Glob::pattern);
    is_for_projects && globs.all(|glob| !glob.contains('/') && !glob.contains("**"))
}

/// Reports a rule that matches none of `containers`. In the message, `sort` is the adjective for
/// the compared paths: "declared" or "declared or existing".
fn report_idle_rule(
    rule: &Rule,
    sort: &str,
    containers: &[Box<DeclaredContainer>],
    faults: &mut Faults,
) {
    let Rule { path_globs: globs, excluded_globs: except, .. } = rule;
    let noun = rule.scope.noun();
    if let Some(name) = &rule.profile {
        faults.report_key(texts::IDLE_PROFILE, &rule.origin, placeholders![noun, name]);
        return;
    }
    if let Some(except_globs) = except
        && containers
            .iter()
            .any(|container| container.scope == rule.scope && globs.matches(&path_key(container)))
    {
        faults.report_key(texts::IDLE_EXCEPT, &except_globs.origin, placeholders![noun]);
        return;
    }
    let mut prefixes = globs.iter().filter_map(|glob| glob.pattern().strip_suffix('*'));
    let has_containers_below = prefixes
        .any(|prefix| prefix.ends_with('/') && find_by_prefix(containers, prefix).is_some());
    let mut bases = globs.iter().filter_map(|glob| glob.pattern().strip_suffix("/**"));
    let problem_texts = match globs {
        _ if globs.iter().any(|glob| looks_like_regex(glob.pattern())) => texts::IDLE_EXPRESSION,
        _ if has_containers_below => texts::IDLE_STAR,
        _ if bases.any(|base| is_declared(rule, base, containers)) => texts::IDLE_BELOW,
        _ if globs.iter().all(|glob| is_literal(glob.pattern())) => texts::IDLE_LITERAL,
        _ if has_single_part_globs(rule) => texts::IDLE_ONE_PART,
        _ => texts::IDLE_MATCH,
    };
    let first_glob = globs.iter().next().map(Glob::pattern).unwrap_or_default();
    faults.report(
        problem_texts,
        NodePosition::item(&rule.origin, first_glob),
        placeholders![sort, noun],
    );
}

/// Reports literal paths in `except` that are not declared. Globs are ignored: they may match
/// containers that are declared later.
fn report_idle_exceptions(rule: &Rule, containers: &[Box<DeclaredContainer>], faults: &mut Faults) {
    let Some(except_globs) = &rule.excluded_globs else { return };
    let paths = except_globs.value.iter().map(Glob::pattern);
    for path in paths.filter(|path| is_literal(path) && !is_declared(rule, path, containers)) {
        let has_children = find_by_prefix(containers, &format!("{path}/")).is_some();
        let problem_texts =
            if has_children { texts::EXCEPT_WITHOUT_STAR } else { texts::UNKNOWN_EXCEPT };
        let args = placeholders![noun = rule.scope.noun(), path];
        faults.report(problem_texts, NodePosition::item(&except_globs.origin, path), args);
    }
}
