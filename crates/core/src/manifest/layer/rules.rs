//! Selects the rules that apply to a group or project, and orders them.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use crate::{
    address::{Glob, GlobIndex, Globs, is_literal},
    desired::PROJECTS_KEY,
    field::Scope,
    manifest::{
        faults::{Faults, NodePosition, texts, words},
        read::document::{LayerBody, Rule, Uses},
    },
    origin::{Origin, Sourced},
    text::{alternatives, nearest},
    value::Value,
};

/// All rules.
#[derive(Debug, Default)]
pub(in crate::manifest) struct LayerRules {
    /// Ordered by origin.
    pub(super) rules: Vec<TrackedRule>,
    /// The positions of profiles in `rules`.
    pub(super) profiles: BTreeMap<(Scope, Arc<str>), usize>,
    /// The positions of rules in `rules`, by glob.
    glob_index: GlobIndex,
}

/// The maximum number of names before and after a misspelled one, in alphabetical order, that are
/// compared with it.
const MAX_NEARBY: usize = 100;

/// The maximum number of names that help compares or lists.
pub(super) const MAX_LISTED: usize = 10;

/// A rule and its use.
#[derive(Debug)]
pub(super) struct TrackedRule {
    pub(super) rule: Rule,
    pub(super) is_used: AtomicBool,
    /// For each section of its `unlisted`, the numbers of containers that declare it and that do not.
    pub(super) unlisted_counts: BTreeMap<&'static str, [AtomicUsize; 2]>,
    /// For each of its parameters, whether a container uses it.
    pub(super) params: BTreeMap<Arc<str>, AtomicBool>,
}

/// The precision of a glob: its numbers of literal parts, partly literal parts, and `*`.
type Rank = (usize, usize, usize);

/// The layers of one group or project.
#[derive(Debug, Default)]
pub(super) struct Layers<'r> {
    /// The rules with their ranks. A higher rank wins; two rules can have equal rank.
    pub(super) rules: Vec<(usize, &'r TrackedRule)>,
    /// The parameters for templates, including those of the document itself.
    pub(super) params: BTreeMap<Arc<str>, Sourced<Value>>,
    /// The missing parameters of profiles, which are reported.
    pub(super) missing_params: BTreeSet<Arc<str>>,
}

impl Layers<'_> {
    pub(super) const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// True if a text of the merged `body` uses the parameter `name`, or a profile needs it.
    pub(super) fn uses_param(&self, name: &Arc<str>, body: &LayerBody) -> bool {
        let mut required_params =
            self.rules.iter().flat_map(|(_, tracked)| &tracked.rule.required_params);
        body.params.contains_key(name) || required_params.any(|param| param.value == *name)
    }
}

impl LayerRules {
    /// Adds all rules, and reports faults between them.
    pub(super) fn new(mut rules: Vec<Rule>, faults: &mut Faults) -> Self {
        rules.sort_by(|a, b| a.origin.cmp(&b.origin));
        let mut profiles = BTreeMap::new();
        for (index, rule) in rules.iter().enumerate() {
            let Some(name) = &rule.profile else { continue };
            if let Some(first) = profiles.insert((rule.scope, name.clone()), index) {
                let at = [&rule.origin, &rules[first].origin];
                faults.report_values(texts::DUPLICATE_PROFILE, at, words![name]);
            }
        }
        let mut glob_index = GlobIndex::default();
        for (at, rule) in rules.iter().enumerate() {
            rule.paths.iter().for_each(|glob| glob_index.insert(at, glob.pattern()));
        }
        let rules = rules.into_iter().map(TrackedRule::new).collect();
        let layer_rules = Self { rules, profiles, glob_index };
        for TrackedRule { rule, .. } in &layer_rules.rules {
            for name in rule.body.uses.iter().flat_map(|uses| &uses.names) {
                layer_rules.check_profile(rule.scope, name, faults);
            }
        }
        layer_rules.report_circles(faults);
        layer_rules
    }

    /// Reports that there is no profile `name`.
    fn check_profile(&self, scope: Scope, name: &Sourced<Arc<str>>, faults: &mut Faults) {
        if self.profile_position(scope, &name.value).is_some() {
            return;
        }
        let nearby: Vec<_> = self.nearby_profiles(scope, &name.value).collect();
        let mut scopes = Scope::ALL.into_iter();
        let other_scope =
            scopes.find_map(|scope| Some((scope, self.profile_position(scope, &name.value)?)));
        let words = words![
            name = crate::text::escape(&name.value),
            scope = scope.noun(),
            document = scope.document(),
            other = other_scope.map_or("", |(scope, _)| scope.noun()),
            profiles = alternatives(&nearby)
        ];
        if let Some((_, other_index)) = other_scope {
            let fault = faults.report_key(texts::PROFILE_OF_OTHER_SCOPE, &name.origin, words);
            fault.related(NodePosition::value(&self.rules[other_index].rule.origin));
        } else {
            let has_few = (1..=MAX_LISTED).contains(&nearby.len());
            let texts = if has_few { texts::NONE_OF_FEW_PROFILES } else { texts::NO_PROFILE };
            let fault = faults.report_key(texts, &name.origin, words);
            fault.suggest(nearest(&name.value, nearby.iter().copied()));
        }
    }

    /// The position of the profile `name`.
    pub(super) fn profile_position(&self, scope: Scope, name: &Arc<str>) -> Option<usize> {
        self.profiles.get(&(scope, name.clone())).copied()
    }

    /// The names of profiles around `name` in alphabetical order: all of them, unless there are
    /// very many.
    fn nearby_profiles(&self, scope: Scope, name: &Arc<str>) -> impl Iterator<Item = &str> {
        let at = (scope, name.clone());
        let before = self.profiles.range(..at.clone()).rev().take(MAX_NEARBY);
        let names = before.chain(self.profiles.range(at..).take(MAX_NEARBY));
        names.filter(move |((of, _), _)| *of == scope).map(|((_, name), _)| &**name)
    }

    /// Reports profiles that use each other in a circle.
    fn report_circles(&self, faults: &mut Faults) {
        let mut finished = BTreeSet::new();
        for start in self.profiles.values().copied().collect::<BTreeSet<_>>() {
            // The current path, with the profiles still to follow at each step.
            let mut path: Vec<(usize, Vec<usize>)> = vec![(start, self.profiles_used_by(start))];
            while let Some((index, remaining)) = path.last_mut() {
                let Some(next) = remaining.pop() else {
                    finished.insert(*index);
                    path.pop();
                    continue;
                };
                match path.iter().position(|(on_path, _)| *on_path == next) {
                    _ if finished.contains(&next) => {}
                    Some(first) => self.report_circle(&path[first..], faults),
                    None => path.push((next, self.profiles_used_by(next))),
                }
            }
        }
    }

    fn report_circle(&self, circle: &[(usize, Vec<usize>)], faults: &mut Faults) {
        let mut circle: Vec<_> = circle.iter().map(|(index, _)| &self.rules[*index].rule).collect();
        let first = (0..circle.len()).min_by_key(|at| &circle[*at].profile);
        circle.rotate_left(first.unwrap_or_default());
        let profiles = circle.iter().chain(circle.first()).filter_map(|rule| rule.profile.as_ref());
        let names: Vec<_> = profiles.map(|name| format!("`{name}`")).collect();
        let Rule { origin, body, .. } = circle[0];
        let at = body.uses.as_ref().map_or(origin, |uses| &uses.origin);
        faults.report_key(texts::PROFILE_CIRCLE, at, words![names = names.join(" uses ")]);
    }

    /// The positions of profiles that a profile uses.
    fn profiles_used_by(&self, index: usize) -> Vec<usize> {
        let rule = &self.rules[index].rule;
        let names = rule.body.uses.iter().flat_map(|uses| &uses.names);
        names.filter_map(|name| self.profile_position(rule.scope, &name.value)).collect()
    }

    /// The layers of the group or project at `path`, which has this `document`.
    pub(super) fn collect_layers(
        &self,
        scope: Scope,
        path: &Sourced<Arc<str>>,
        document: &LayerBody,
        faults: &mut Faults,
    ) -> Layers<'_> {
        let lower = path.value.to_lowercase();
        let candidates = self.glob_index.candidates(&lower).into_iter();
        let candidates = candidates.filter(|index| self.rules[*index].rule.scope == scope);
        let mut matched: Vec<(Rank, usize)> = candidates
            .filter_map(|index| Some((self.rules[index].rule.best_match(&lower)?.0, index)))
            .collect();
        matched.sort_unstable();
        let mut layers = Layers::default();
        let mut number = 0;
        for equal_matches in matched.chunk_by(|(a, _), (b, _)| a == b) {
            layers
                .rules
                .extend(equal_matches.iter().map(|(_, index)| (number, &self.rules[*index])));
            number += 1;
        }
        let used_profiles = merge_uses(&layers.rules, document, &path.value, faults);
        for name in document.uses.iter().flat_map(|uses| &uses.names) {
            self.check_profile(scope, name, faults);
        }
        let profiles = self.flatten_profiles(scope, &used_profiles);
        layers.rules.extend((number..).zip(profiles.iter().map(|(index, _)| &self.rules[*index])));
        layers.params = merge_params(&layers.rules, document, &path.value, faults);
        for (index, name) in profiles {
            for required in &self.rules[index].rule.required_params {
                if layers.params.contains_key(&required.value) {
                    continue;
                }
                layers.missing_params.insert(required.value.clone());
                let param_names = layers.params.keys().take(MAX_LISTED).map(|name| &**name);
                let near = nearest(&required.value, param_names);
                let at = near.map_or(&name.origin, |near| &layers.params[near].origin);
                let words = words![path = path.value, profile = name.value, param = required.value];
                let fault = faults.report_key(texts::MISSING_PARAM, at, words);
                fault.related(NodePosition::key(&required.origin));
                if let Some(near) = near {
                    fault.help(format!("write `{}` in the place of `{near}`", required.value));
                }
            }
        }
        layers
    }

    /// The profiles `names` and the profiles that they use, lowest first. A profile is above the
    /// profiles that it uses, and is only listed at its last position.
    fn flatten_profiles(
        &self,
        scope: Scope,
        names: &[Sourced<Arc<str>>],
    ) -> Vec<(usize, Sourced<Arc<str>>)> {
        let mut listed = BTreeSet::new();
        let mut flat = Vec::new();
        // From the end, so that the last position is found first.
        let mut pending: Vec<&Sourced<Arc<str>>> = names.iter().collect();
        while let Some(name) = pending.pop() {
            let at = self.profile_position(scope, &name.value);
            if let Some(at) = at.filter(|at| listed.insert(*at)) {
                flat.push((at, name.clone()));
                pending.extend(self.rules[at].rule.body.uses.iter().flat_map(|uses| &uses.names));
            }
        }
        flat.reverse();
        flat
    }

    /// All rules.
    pub(in crate::manifest) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(|tracked| &tracked.rule)
    }

    /// The rule that includes the undeclared container at the lower-case `path`, and its glob. Of
    /// several, the one with the highest rank. If `only_named`, only rules of named files count.
    pub(in crate::manifest) fn including_rule(
        &self,
        scope: Scope,
        path: &str,
        only_named: bool,
    ) -> Option<(&Rule, &Glob)> {
        let candidates =
            self.glob_index.candidates(path).into_iter().map(|index| &self.rules[index].rule);
        let including_rules = candidates.filter(|rule| {
            rule.includes_undeclared && rule.scope == scope && (rule.is_named || !only_named)
        });
        let matched = including_rules.filter_map(|rule| Some((rule.best_match(path)?, rule)));
        let ((_, glob), rule) = matched.max_by_key(|((rank, _), _)| *rank)?;
        Some((rule, glob))
    }

    /// Marks the rules that apply to the merged `body` as used. A container that is to be absent has no
    /// sections.
    pub(super) fn track_use(layers: &Layers<'_>, body: &LayerBody, is_absent: bool) {
        for (_, tracked) in &layers.rules {
            tracked.is_used.store(true, Ordering::Relaxed);
            for (name, [with, without]) in tracked.unlisted_counts.iter().filter(|_| !is_absent) {
                let number = if body.has_section(name) { with } else { without };
                number.fetch_add(1, Ordering::Relaxed);
            }
            for (name, is_used) in &tracked.params {
                if layers.uses_param(name, body) {
                    is_used.store(true, Ordering::Relaxed);
                }
            }
        }
    }
}

impl TrackedRule {
    fn new(rule: Rule) -> Self {
        // A policy beside its own section has an effect.
        let names = rule.body.unlisted.keys().copied();
        let unlisted_counts = names
            .filter(|name| *name != PROJECTS_KEY && !rule.body.has_section(name))
            .map(|name| (name, Default::default()));
        let params = rule.body.params.keys().map(|name| (name.clone(), AtomicBool::default()));
        let (declared, params) = (unlisted_counts.collect(), params.collect());
        Self { unlisted_counts: declared, params, is_used: AtomicBool::new(false), rule }
    }
}

impl Rule {
    /// The glob that matches the lower-case `path` best, with its precision.
    pub(super) fn best_match(&self, path: &str) -> Option<(Rank, &Glob)> {
        find_best_glob(path, &self.paths, self.except.as_ref())
    }
}

fn find_best_glob<'g>(
    path: &str,
    paths: &'g Globs,
    except: Option<&Sourced<Globs>>,
) -> Option<(Rank, &'g Glob)> {
    let ranked = paths.matching(path).map(|glob| (precision(glob.pattern()), glob));
    let best = ranked.max_by_key(|(rank, _)| *rank)?;
    (!except.is_some_and(|except| except.value.matches(path))).then_some(best)
}

/// The precision of a glob.
fn precision(glob: &str) -> Rank {
    let mut rank = (0, 0, 0);
    for segment in glob.split('/') {
        match segment {
            "**" => {}
            "*" => rank.2 += 1,
            other if !is_literal(other) => rank.1 += 1,
            _ => rank.0 += 1,
        }
    }
    rank
}

/// The names of the profiles that a document and the `rules` for it use.
fn merge_uses(
    rules: &[(usize, &TrackedRule)],
    document: &LayerBody,
    path: &str,
    faults: &mut Faults,
) -> Vec<Sourced<Arc<str>>> {
    fn comparable_content(uses: &Uses) -> impl PartialEq {
        (uses.adds_to_lower, uses.names.iter().map(|name| &name.value).collect::<Vec<_>>())
    }
    let rule_uses =
        rules.iter().filter_map(|(rank, tracked)| Some((*rank, tracked.rule.body.uses.as_ref()?)));
    let document_uses = document.uses.as_ref().map(|uses| (usize::MAX, uses));
    let all_uses: Vec<_> = rule_uses.chain(document_uses).collect();
    let (mut used_names, mut conflict) = (Vec::new(), None);
    for equal_uses in all_uses.chunk_by(|(a, _), (b, _)| a == b) {
        let (_, first) = equal_uses[0];
        if !first.adds_to_lower {
            used_names.clear();
            conflict = None;
        }
        used_names.extend(first.names.iter().cloned());
        let other = equal_uses
            .iter()
            .rfind(|(_, other)| comparable_content(other) != comparable_content(first));
        conflict = other.map(|(_, other)| (first, other)).or(conflict);
    }
    if let Some((first, other)) = conflict {
        report_ambiguous("uses", path, &first.origin, Some(&other.origin), faults);
    }
    used_names
}

/// The parameters for the templates of a document.
fn merge_params(
    rules: &[(usize, &TrackedRule)],
    document: &LayerBody,
    path: &str,
    faults: &mut Faults,
) -> BTreeMap<Arc<str>, Sourced<Value>> {
    let mut claims: BTreeMap<&Arc<str>, Claim<Value>> = BTreeMap::new();
    let rule_bodies = rules.iter().map(|(rank, tracked)| (*rank, &tracked.rule.body));
    for (rank, body) in rule_bodies.chain([(usize::MAX, document)]) {
        for (name, value) in &body.params {
            Claim::add(claims.entry(name), rank, value);
        }
    }
    claims
        .into_iter()
        .map(|(name, claim)| (name.clone(), claim.resolve(name, path, faults)))
        .collect()
}

/// The value in the highest layers so far.
#[derive(Debug)]
pub(super) struct Claim<T> {
    rank: usize,
    pub(super) value: Sourced<T>,
    /// The origin of a different value in a layer of the same rank.
    conflict: Option<Origin>,
}

impl<T: Clone + PartialEq> Claim<T> {
    /// Adds the value of a layer with `rank`. Ranks must not decrease.
    pub(super) fn add<K: Ord>(entry: Entry<'_, K, Self>, rank: usize, value: &Sourced<T>) {
        let claim = entry.or_insert_with(|| Self { rank, value: value.clone(), conflict: None });
        if claim.rank < rank {
            *claim = Self { rank, value: value.clone(), conflict: None };
        } else if claim.value.value != value.value {
            claim.conflict = Some(value.origin.clone());
        }
    }

    /// Returns the value. Reports a conflict if layers of equal rank set `name` differently.
    pub(super) fn resolve(self, name: &str, path: &str, faults: &mut Faults) -> Sourced<T> {
        report_ambiguous(name, path, &self.value.origin, self.conflict.as_ref(), faults);
        self.value
    }
}

/// Reports that an `other` layer of equal rank sets `what` differently and no higher one decides.
pub(super) fn report_ambiguous(
    what: &str,
    path: &str,
    first: &Origin,
    other: Option<&Origin>,
    faults: &mut Faults,
) {
    if let Some(other) = other {
        let fault = faults.report_key(texts::AMBIGUOUS, first.min(other), words![what]);
        fault.related(NodePosition::key(first.max(other))).label(format!("for `{path}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_precise_match_wins() {
        let ordered = [
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
        for pair in ordered.windows(2) {
            let [low, high] = pair else { continue };
            assert!(precision(low) <= precision(high), "{low} {high}");
        }
        assert_eq!(precision("acme/**"), precision("**/shop"));
    }

    #[test]
    fn the_best_match_of_a_list_counts() {
        let globs = |texts: &[&str]| -> Globs {
            texts.iter().map(|text| Glob::for_paths(text).unwrap()).collect()
        };
        let paths = globs(&["acme/**", "ACME/web/*", "other"]);
        let origin = Origin::new("rules.yaml", 1, 1, crate::origin::Layer::Defaults);
        let except = Sourced { value: globs(&["acme/old/*"]), origin };
        let of = |path: &str| find_best_glob(path, &paths, Some(&except)).map(|(rank, _)| rank);
        assert_eq!(of("acme/web/shop"), Some((2, 0, 1)));
        assert_eq!(of("acme/shop"), Some((1, 0, 0)));
        assert_eq!(of("acme"), None, "what is below `acme`, not `acme` itself");
        assert_eq!(of("acme/old/shop"), None);
        assert_eq!(of("acme/old/deep/shop"), Some((1, 0, 0)));
    }
}
