//! Selects the rules that apply to a group or project, and orders them.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::{
    address::{Glob, GlobIndex, is_literal},
    desired::{PROJECTS_KEY, find_circles},
    field::Scope,
    manifest::{
        faults::{Faults, NodePosition, placeholders, texts},
        read::document::{DeclaredContainer, LayerBody, Rule, UsedProfiles},
    },
    origin::{Origin, Sourced},
    text::{alternatives, nearest},
    value::Value,
};

/// All rules of the manifests.
#[derive(Debug, Default)]
pub(in crate::manifest) struct LayerRules {
    /// The rules, ordered by origin.
    pub(super) rules: Vec<TrackedRule>,
    /// The positions of profiles in `rules`, by scope and name.
    pub(super) profile_positions: BTreeMap<(Scope, Arc<str>), usize>,
    /// The positions of rules in `rules`, by glob.
    glob_index: GlobIndex,
}

/// A misspelled name is compared with up to this number of names before it, and as many after it,
/// in alphabetical order.
const MAX_NEARBY_NAMES: usize = 100;

/// The maximum number of names that a help text compares or lists.
pub(super) const MAX_LISTED_NAMES: usize = 10;

/// A rule, with records of where it was used.
#[derive(Debug)]
pub(super) struct TrackedRule {
    pub(super) rule: Rule,
    pub(super) is_used: AtomicBool,
    /// For each section in the `unlisted` of the rule: the number of containers with this section,
    /// and the number of containers without it.
    pub(super) unlisted_counts: BTreeMap<&'static str, [AtomicUsize; 2]>,
    /// For each parameter of the rule: true if a container uses the parameter.
    pub(super) param_uses: BTreeMap<Arc<str>, AtomicBool>,
}

/// The precision of a glob: its numbers of literal segments, partly literal segments, and `*`.
type Precision = (usize, usize, usize);

/// The layers of one group or project.
#[derive(Debug, Default)]
pub(super) struct ContainerLayers<'r> {
    /// The rules with their ranks. A rule with a higher rank decides. Two rules can have equal
    /// rank.
    pub(super) rules: Vec<(usize, &'r TrackedRule)>,
    /// The parameters for templates, including the parameters of the document itself.
    pub(super) params: BTreeMap<Arc<str>, Sourced<Value>>,
    /// The parameters that profiles need and that are missing. These parameters are already
    /// reported.
    pub(super) missing_params: BTreeSet<Arc<str>>,
}

impl ContainerLayers<'_> {
    /// True if a template of the merged `body` used the parameter `name`, or a profile needs it.
    pub(super) fn uses_param(&self, name: &Arc<str>, body: &LayerBody) -> bool {
        let mut required_params =
            self.rules.iter().flat_map(|(_, tracked_rule)| &tracked_rule.rule.required_params);
        body.params.contains_key(name) || required_params.any(|param| param.value == *name)
    }
}

impl LayerRules {
    /// Indexes all rules, and reports faults that span rules.
    pub(super) fn new(mut rules: Vec<Rule>, faults: &mut Faults) -> Self {
        rules.sort_by(|a, b| a.origin.cmp(&b.origin));
        let (mut profile_positions, mut glob_index) = (BTreeMap::new(), GlobIndex::default());
        for (index, rule) in rules.iter().enumerate() {
            rule.path_globs.iter().for_each(|glob| glob_index.insert(index, glob.pattern()));
            let Some(name) = &rule.profile else { continue };
            if let Some(first_index) = profile_positions.insert((rule.scope, name.clone()), index) {
                let origins = [&rule.origin, &rules[first_index].origin];
                faults.report_values(texts::DUPLICATE_PROFILE, origins, placeholders![name]);
            }
        }
        let rules = rules.into_iter().map(TrackedRule::new).collect();
        let layer_rules = Self { rules, profile_positions, glob_index };
        for TrackedRule { rule, .. } in &layer_rules.rules {
            for name in rule.body.uses.iter().flat_map(|uses| &uses.names) {
                layer_rules.check_profile_exists(rule.scope, name, faults);
            }
        }
        layer_rules.report_profile_circles(faults);
        layer_rules
    }

    /// Reports a missing profile.
    fn check_profile_exists(&self, scope: Scope, name: &Sourced<Arc<str>>, faults: &mut Faults) {
        if self.profile_position(scope, &name.value).is_some() {
            return;
        }
        let nearby_names: Vec<_> = self.nearby_profiles(scope, &name.value).collect();
        let mut scopes = Scope::ALL.into_iter();
        let other_scope =
            scopes.find_map(|scope| Some((scope, self.profile_position(scope, &name.value)?)));
        let args = placeholders![
            name = crate::text::escape(&name.value),
            scope = scope.noun(),
            document = scope.document_kind(),
            other = other_scope.map_or("", |(scope, _)| scope.noun()),
            profiles = alternatives(&nearby_names)
        ];
        if let Some((_, other_index)) = other_scope {
            let fault = faults.report_key(texts::PROFILE_OF_OTHER_SCOPE, &name.origin, args);
            fault.set_related(NodePosition::value(&self.rules[other_index].rule.origin));
        } else {
            let has_few = (1..=MAX_LISTED_NAMES).contains(&nearby_names.len());
            let problem_texts =
                if has_few { texts::NONE_OF_FEW_PROFILES } else { texts::NO_PROFILE };
            let fault = faults.report_key(problem_texts, &name.origin, args);
            fault.suggest_name(nearest(&name.value, nearby_names.iter().copied()));
        }
    }

    /// The position of the profile `name` in the rules.
    pub(super) fn profile_position(&self, scope: Scope, name: &Arc<str>) -> Option<usize> {
        self.profile_positions.get(&(scope, name.clone())).copied()
    }

    /// The names of profiles near `name` in alphabetical order. These are all names, unless there
    /// are very many.
    fn nearby_profiles(&self, scope: Scope, name: &Arc<str>) -> impl Iterator<Item = &str> {
        let key = (scope, name.clone());
        let profiles_before =
            self.profile_positions.range(..key.clone()).rev().take(MAX_NEARBY_NAMES);
        let names =
            profiles_before.chain(self.profile_positions.range(key..).take(MAX_NEARBY_NAMES));
        names
            .filter(move |((profile_scope, _), _)| *profile_scope == scope)
            .map(|((_, name), _)| &**name)
    }

    /// Reports profiles that use each other in a circle.
    fn report_profile_circles(&self, faults: &mut Faults) {
        let list_uses = |index: usize| {
            let rule = &self.rules[index].rule;
            let names = rule.body.uses.iter().flat_map(|uses| uses.names.iter().rev());
            names.filter_map(|name| self.profile_position(rule.scope, &name.value)).collect()
        };
        let indices: BTreeSet<_> = self.profile_positions.values().copied().collect();
        for (_, circle) in find_circles(indices, list_uses) {
            let mut circle: Vec<_> = circle.iter().map(|index| &self.rules[*index].rule).collect();
            let first_position =
                (0..circle.len()).min_by_key(|circle_index| &circle[*circle_index].profile);
            circle.rotate_left(first_position.unwrap_or_default());
            let profiles = circle.iter().chain(circle.first());
            let names = profiles.filter_map(|rule| Some(format!("`{}`", rule.profile.as_ref()?)));
            let names = names.collect::<Vec<_>>().join(" uses ");
            let Rule { origin, body, .. } = circle[0];
            let uses_origin = body.uses.as_ref().map_or(origin, |uses| &uses.origin);
            faults.report_key(texts::PROFILE_CIRCLE, uses_origin, placeholders![names]);
        }
    }

    /// Collects the layers of the group or project that `container` declares.
    pub(super) fn collect_layers(
        &self,
        container: &DeclaredContainer,
        faults: &mut Faults,
    ) -> ContainerLayers<'_> {
        let DeclaredContainer { scope, path, body: document, .. } = container;
        let scope = *scope;
        let lower_path = path.value.to_lowercase();
        let candidates = self.glob_index.candidates(&lower_path).into_iter();
        let candidates = candidates.filter(|index| self.rules[*index].rule.scope == scope);
        let mut matches: Vec<(Precision, usize)> = candidates
            .filter_map(|index| Some((self.rules[index].rule.best_match(&lower_path)?.0, index)))
            .collect();
        matches.sort_unstable();
        let mut layers = ContainerLayers::default();
        let mut rank = 0;
        for equal_matches in matches.chunk_by(|(a, _), (b, _)| a == b) {
            layers.rules.extend(equal_matches.iter().map(|(_, index)| (rank, &self.rules[*index])));
            rank += 1;
        }
        let used_profiles = merge_uses(&layers.rules, document, &path.value, faults);
        for name in document.uses.iter().flat_map(|uses| &uses.names) {
            self.check_profile_exists(scope, name, faults);
        }
        let profiles = self.flatten_profiles(scope, &used_profiles);
        layers.rules.extend((rank..).zip(profiles.iter().map(|(index, _)| &self.rules[*index])));
        layers.params = merge_params(&layers.rules, document, &path.value, faults);
        for (index, name) in profiles {
            for required_param in &self.rules[index].rule.required_params {
                if layers.params.contains_key(&required_param.value) {
                    continue;
                }
                layers.missing_params.insert(required_param.value.clone());
                let param_names = layers.params.keys().take(MAX_LISTED_NAMES).map(|name| &**name);
                let similar_param = nearest(&required_param.value, param_names);
                let (problem_texts, origin) = match similar_param {
                    Some(near) => (texts::MISSPELLED_PARAM, &layers.params[near].origin),
                    None if container.shares_document => {
                        (texts::MISSING_PARAM_OF_PATH, &path.origin)
                    }
                    None => (texts::MISSING_PARAM, &name.origin),
                };
                let args = placeholders![
                    path = path.value,
                    profile = name.value,
                    param = required_param.value,
                    near = similar_param.unwrap_or_default()
                ];
                faults.report_keys(problem_texts, [origin, &required_param.origin], args);
            }
        }
        layers
    }

    /// The profiles `names` and all profiles that they use, lowest layer first. A profile comes
    /// after the profiles that it uses. Each profile is listed once, at its last position.
    fn flatten_profiles(
        &self,
        scope: Scope,
        names: &[Sourced<Arc<str>>],
    ) -> Vec<(usize, Sourced<Arc<str>>)> {
        let mut listed_positions = BTreeSet::new();
        let mut flat_profiles = Vec::new();
        // Read the names from the end, so that the last position is found first.
        let mut pending_names: Vec<&Sourced<Arc<str>>> = names.iter().collect();
        while let Some(name) = pending_names.pop() {
            let found_position = self.profile_position(scope, &name.value);
            if let Some(position) = found_position.filter(|index| listed_positions.insert(*index)) {
                flat_profiles.push((position, name.clone()));
                pending_names.extend(
                    self.rules[position].rule.body.uses.iter().flat_map(|uses| &uses.names),
                );
            }
        }
        flat_profiles.reverse();
        flat_profiles
    }

    /// All rules.
    pub(in crate::manifest) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|tracked_rule| &tracked_rule.rule)
    }

    /// The rule that includes the undeclared container at the lower-case `path`, with its glob. If
    /// several rules include the container, returns the rule with the most precise glob. If
    /// `only_named` is true, skips rules in files that the command does not name.
    pub(in crate::manifest) fn including_rule(
        &self,
        scope: Scope,
        path: &str,
        only_named: bool,
    ) -> Option<(&Rule, &Glob)> {
        let candidates =
            self.glob_index.candidates(path).into_iter().map(|index| &self.rules[index].rule);
        let including_rules = candidates.filter(|rule| {
            rule.includes_undeclared
                && rule.scope == scope
                && (rule.is_selected_by_command || !only_named)
        });
        let matches = including_rules.filter_map(|rule| Some((rule.best_match(path)?, rule)));
        let ((_, glob), rule) = matches.max_by_key(|((precision, _), _)| *precision)?;
        Some((rule, glob))
    }

    /// Records the use of `layers` by the merged `body`. Sections are not counted for a container
    /// that must be absent.
    pub(super) fn track_use(layers: &ContainerLayers<'_>, body: &LayerBody, is_absent: bool) {
        for (_, tracked_rule) in &layers.rules {
            tracked_rule.is_used.store(true, Ordering::Relaxed);
            for (name, [declaring_count, other_count]) in
                tracked_rule.unlisted_counts.iter().filter(|_| !is_absent)
            {
                let counter = if body.has_section(name) { declaring_count } else { other_count };
                counter.fetch_add(1, Ordering::Relaxed);
            }
            for (name, is_used) in &tracked_rule.param_uses {
                if layers.uses_param(name, body) {
                    is_used.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

impl TrackedRule {
    fn new(rule: Rule) -> Self {
        // A policy in the same rule as its section always has an effect, so it is not tracked.
        let names = rule.body.unlisted.keys().copied();
        let unlisted_counts = names
            .filter(|name| *name != PROJECTS_KEY && !rule.body.has_section(name))
            .map(|name| (name, Default::default()));
        let params = rule.body.params.keys().map(|name| (name.clone(), AtomicBool::default()));
        let (counts, params) = (unlisted_counts.collect(), params.collect());
        Self { unlisted_counts: counts, param_uses: params, is_used: AtomicBool::new(false), rule }
    }
}

impl Rule {
    /// The most precise glob that matches the lower-case `path`; `None` if no glob matches, or if
    /// `path` is excluded.
    pub(super) fn best_match(&self, path: &str) -> Option<(Precision, &Glob)> {
        let matches = self.path_globs.matching_globs(path);
        let matches = matches.map(|glob| (precision(glob.pattern()), glob));
        let best_match = matches.max_by_key(|(precision, _)| *precision)?;
        let is_excluded =
            self.excluded_globs.as_ref().is_some_and(|globs| globs.value.matches(path));
        (!is_excluded).then_some(best_match)
    }
}

/// The precision of a glob.
fn precision(glob: &str) -> Precision {
    let mut precision = (0, 0, 0);
    for segment in glob.split('/') {
        match segment {
            "**" => {}
            "*" => precision.2 += 1,
            segment if !is_literal(segment) => precision.1 += 1,
            _ => precision.0 += 1,
        }
    }
    precision
}

/// Merges the keys `uses` of the document and of its `rules`. Returns the names of the profiles.
fn merge_uses(
    rules: &[(usize, &TrackedRule)],
    document: &LayerBody,
    path: &str,
    faults: &mut Faults,
) -> Vec<Sourced<Arc<str>>> {
    fn comparable_content(uses: &UsedProfiles) -> impl PartialEq {
        (uses.adds_to_lower, uses.names.iter().map(|name| &name.value).collect::<Vec<_>>())
    }
    let rule_uses = rules
        .iter()
        .filter_map(|(rank, tracked_rule)| Some((*rank, tracked_rule.rule.body.uses.as_ref()?)));
    let document_uses = document.uses.as_ref().map(|uses| (usize::MAX, uses));
    let all_uses: Vec<_> = rule_uses.chain(document_uses).collect();
    let (mut used_names, mut conflict) = (Vec::new(), None);
    for equal_uses in all_uses.chunk_by(|(a, _), (b, _)| a == b) {
        let (_, first_uses) = equal_uses[0];
        if !first_uses.adds_to_lower {
            used_names.clear();
            conflict = None;
        }
        used_names.extend(first_uses.names.iter().cloned());
        let different_uses = equal_uses
            .iter()
            .rfind(|(_, other)| comparable_content(other) != comparable_content(first_uses));
        conflict = different_uses.map(|(_, other)| (first_uses, other)).or(conflict);
    }
    if let Some((first, other)) = conflict {
        report_ambiguous("uses", path, &first.origin, Some(&other.origin), faults);
    }
    used_names
}

/// Merges the `params` of the document and of its `rules`.
fn merge_params(
    rules: &[(usize, &TrackedRule)],
    document: &LayerBody,
    path: &str,
    faults: &mut Faults,
) -> BTreeMap<Arc<str>, Sourced<Value>> {
    let mut values_by_name: BTreeMap<&Arc<str>, RankedValue<Value>> = BTreeMap::new();
    let rule_bodies = rules.iter().map(|(rank, tracked_rule)| (*rank, &tracked_rule.rule.body));
    for (rank, body) in rule_bodies.chain([(usize::MAX, document)]) {
        for (name, value) in &body.params {
            RankedValue::add(values_by_name.entry(name), rank, value);
        }
    }
    let values = values_by_name.into_iter();
    values.map(|(name, value)| (name.clone(), value.resolve(name, path, faults))).collect()
}

/// The value of the highest layer so far, with its rank.
#[derive(Debug)]
pub(super) struct RankedValue<T> {
    rank: usize,
    pub(super) value: Sourced<T>,
    /// The origin of a different value in a layer of the same rank.
    conflict: Option<Origin>,
}

impl<T: Clone + PartialEq> RankedValue<T> {
    /// Adds the value of a layer, whose `rank` must not be lower than the rank of earlier layers.
    pub(super) fn add<K: Ord>(entry: Entry<'_, K, Self>, rank: usize, value: &Sourced<T>) {
        let ranked_value =
            entry.or_insert_with(|| Self { rank, value: value.clone(), conflict: None });
        if ranked_value.rank < rank {
            *ranked_value = Self { rank, value: value.clone(), conflict: None };
        } else if ranked_value.value.value != value.value {
            ranked_value.conflict = Some(value.origin.clone());
        }
    }

    /// Returns the value. Reports a conflict if layers of equal rank set `name` differently.
    pub(super) fn resolve(self, name: &str, path: &str, faults: &mut Faults) -> Sourced<T> {
        report_ambiguous(name, path, &self.value.origin, self.conflict.as_ref(), faults);
        self.value
    }
}

/// Reports two layers of equal rank that set `what` to different values. Does nothing if
/// `other_origin` is `None`.
pub(super) fn report_ambiguous(
    what: &str,
    path: &str,
    first_origin: &Origin,
    other_origin: Option<&Origin>,
    faults: &mut Faults,
) {
    if let Some(other) = other_origin {
        let origins = [first_origin.min(other), first_origin.max(other)];
        let fault = faults.report_keys(texts::AMBIGUOUS, origins, placeholders![what]);
        fault.set_label(format!("for `{path}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_precise_match_wins() {
        let ordered_globs = [
            "**",
            "**/*",
            "*/**/*",
            "*/*/*",
            "a*/**",
            "a*/*",
            "**/shop",
            "acme/**",
            "acme/**/*",
            "acme/*",
            "acme/*/*",
            "acme/s*",
            "acme/s*/*",
            "acme/shop",
            "acme/web/*",
            "acme/web/shop",
        ];
        for pair in ordered_globs.windows(2) {
            let [low, high] = pair else { continue };
            assert!(precision(low) <= precision(high), "{low} {high}");
        }
        assert_eq!(precision("acme/**"), precision("**/shop"));
    }

    #[test]
    fn the_best_match_of_a_list_counts() {
        let globs =
            |texts: &[&str]| texts.iter().map(|text| Glob::for_paths(text).unwrap()).collect();
        let origin = Origin::new("rules.yaml", 1, 1, crate::origin::Layer::Defaults);
        let excluded_globs = Sourced { value: globs(&["acme/old/*"]), origin: origin.clone() };
        let rule = Rule {
            scope: Scope::Project,
            path_globs: globs(&["acme/**", "ACME/web/*", "other"]),
            excluded_globs: Some(excluded_globs),
            profile: None,
            required_params: Vec::new(),
            origin,
            is_selected_by_command: true,
            includes_undeclared: false,
            body: LayerBody::default(),
        };
        let best_match = |path: &str| rule.best_match(path).map(|(rank, _)| rank);
        assert_eq!(best_match("acme/web/shop"), Some((2, 0, 1)));
        assert_eq!(best_match("acme/shop"), Some((1, 0, 0)));
        assert_eq!(best_match("acme"), None, "the glob matches paths below `acme`, not `acme`");
        assert_eq!(best_match("acme/old/shop"), None);
        assert_eq!(best_match("acme/old/deep/shop"), Some((1, 0, 0)));
    }
}
