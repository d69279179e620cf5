//! Rules for branches and tags. Several rules can apply to the same branch.
//!
//! A branch without a rule is open to developers. If several rules apply, a permission in one of
//! them is enough to push, merge, create or force. Code owners must approve if one rule requires it.
//! To unprotect a branch, a user needs permission from each rule.

use std::collections::HashMap;

use serde_json::json;

use crate::{
    level::AccessLevel,
    steps,
    value::{Json, Object, is_true},
};

/// A rule for the branches, or tags, that its pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefRule {
    /// The name of a branch or tag, or a pattern in which `*` matches any text.
    pub pattern: String,
    /// The permissions, each with the rows of the people who have it. If several rules apply, a
    /// permission in one of them is enough.
    pub permissions: Vec<(&'static str, Vec<Json>)>,
    /// The rows of the people who may unprotect.
    pub unprotect_rows: Vec<Json>,
    /// True if pushes may be forced.
    pub allows_force: bool,
    /// True if code owners must approve.
    pub needs_code_owners: bool,
}

impl RefRule {
    /// The rule of an entry with these comparable fields; `None` if there is no entry.
    /// `pattern_field` is the field with the pattern. `permission_lists` are pairs of a field with
    /// rows and the name of its permission. An empty list of rows means nobody. A missing list
    /// means the service's default in a new entry. In other entries, a missing list is unknown and
    /// treated as empty.
    pub fn from_fields(
        fields: &Object,
        pattern_field: &str,
        permission_lists: &[(&'static str, &'static str)],
        is_new: bool,
    ) -> Option<Box<Self>> {
        let pattern = fields.get(pattern_field)?.as_str()?.to_owned();
        let default_rows = vec![json!({"access_level": "maintainer"})];
        let find_rows = |list_field: &str| fields.get(list_field).and_then(Json::as_array).cloned();
        let permissions = permission_lists.iter().map(|(list_field, permission)| {
            let rows = find_rows(list_field).or_else(|| is_new.then(|| default_rows.clone()));
            (*permission, rows.unwrap_or_default())
        });
        let unprotect_rows = find_rows("allowed_to_unprotect").filter(|rows| !rows.is_empty());
        Some(Box::new(Self {
            pattern,
            permissions: permissions.collect(),
            // Without rows, maintainers may unprotect.
            unprotect_rows: unprotect_rows.unwrap_or(default_rows),
            allows_force: is_true(fields, "allow_force_push"),
            needs_code_owners: is_true(fields, "code_owner_approval_required"),
        }))
    }

    fn has_wildcard(&self) -> bool {
        self.pattern.contains('*')
    }

    fn covers(&self, other: &Self) -> bool {
        // No pattern contains `\0`. A pattern that matches `\0` in place of a `*` matches any text
        // in this place.
        patterns_overlap(&self.pattern, &other.pattern.replace('*', "\0"))
    }

    fn permitted_rows(&self, permission: &str) -> &[Json] {
        let permission_rows = self.permissions.iter().find(|(name, _)| *name == permission);
        permission_rows.map_or(&[], |(_, rows)| rows)
    }
}

/// A weaker protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeakerProtection {
    /// The pattern of the old or new rule that causes the weaker protection.
    pub pattern: String,
    /// The protection that becomes weaker, as the end of a sentence that starts with "would".
    pub description: String,
}

/// Finds all protections that are weaker with the rules `after` than with the rules `before`.
pub fn find_weaker_protections(before: &[RefRule], after: &[RefRule]) -> Vec<WeakerProtection> {
    let (old_rules, new_rules) = (&RuleIndex::new(before), &RuleIndex::new(after));
    // Compute the covering rules only once, because each pair of rules needs them.
    let covering_old_rules: Vec<_> =
        new_rules.rules.iter().map(|rule| old_rules.covering_rules(rule)).collect();
    let branch_sets = before.iter().map(|old_rule| BranchSet {
        old_rule,
        old_rules,
        new_rules,
        covering_old_rules: &covering_old_rules,
    });
    branch_sets.flat_map(|set| set.find_weaknesses()).collect()
}

/// An index of rules by pattern, so that a rule for one branch is compared only with patterns and
/// with rules for the same branch.
struct RuleIndex<'r> {
    rules: &'r [RefRule],
    pattern_positions: Vec<usize>,
    positions_by_name: HashMap<&'r str, Vec<usize>>,
}

impl<'r> RuleIndex<'r> {
    fn new(rules: &'r [RefRule]) -> Self {
        let (mut patterns, mut names) = (Vec::new(), HashMap::<_, Vec<_>>::new());
        for (position, rule) in rules.iter().enumerate() {
            if rule.has_wildcard() {
                patterns.push(position);
            } else {
                names.entry(rule.pattern.as_str()).or_default().push(position);
            }
        }
        Self { rules, pattern_positions: patterns, positions_by_name: names }
    }

    /// The positions of the rules that may apply to the same branch as `other`, in order.
    fn find_positions(&self, other: &RefRule) -> Vec<usize> {
        if other.has_wildcard() {
            return (0..self.rules.len()).collect();
        }
        let same_name_positions = self.positions_by_name.get(other.pattern.as_str());
        let mut positions: Vec<_> = same_name_positions
            .into_iter()
            .flatten()
            .chain(&self.pattern_positions)
            .copied()
            .collect();
        positions.sort_unstable();
        positions
    }

    /// The rules that apply to all branches of `other`.
    fn covering_rules(&self, other: &RefRule) -> Vec<&'r RefRule> {
        let candidates =
            self.find_positions(other).into_iter().map(|position| &self.rules[position]);
        candidates.filter(|rule| rule.covers(other)).collect()
    }
}

/// The branches of one old rule, to be compared before and after the change.
struct BranchSet<'r> {
    old_rule: &'r RefRule,
    old_rules: &'r RuleIndex<'r>,
    new_rules: &'r RuleIndex<'r>,
    /// For each new rule, the old rules that apply to all of its branches.
    covering_old_rules: &'r [Vec<&'r RefRule>],
}

impl BranchSet<'_> {
    fn find_weaknesses(&self) -> Vec<WeakerProtection> {
        let mut weaknesses = Vec::new();
        // The new rules that apply to all branches of the old rule.
        let new_covering_rules = self.new_rules.covering_rules(self.old_rule);
        if new_covering_rules.is_empty() {
            weaknesses.push(self.describe_weakness("remove the protection"));
        }
        let old_covering_rules = self.old_rules.covering_rules(self.old_rule);
        for position in self.new_rules.find_positions(self.old_rule) {
            let rule = &self.new_rules.rules[position];
            if patterns_overlap(&rule.pattern, &self.old_rule.pattern) {
                self.add_new_permissions(
                    rule,
                    old_covering_rules.iter().chain(&self.covering_old_rules[position]),
                    &mut weaknesses,
                );
            }
        }
        if self.old_rule.needs_code_owners
            && !new_covering_rules.iter().any(|rule| rule.needs_code_owners)
        {
            weaknesses
                .push(self.describe_weakness("no longer require the approval of code owners"));
        }
        if !new_covering_rules.is_empty()
            && !new_covering_rules
                .iter()
                .any(|rule| !allows_more(self.old_rule.unprotect_rows.iter(), &rule.unprotect_rows))
        {
            weaknesses.push(self.describe_weakness("let more people unprotect"));
        }
        weaknesses
    }

    fn describe_weakness(&self, description: &str) -> WeakerProtection {
        WeakerProtection {
            pattern: self.old_rule.pattern.clone(),
            description: description.to_owned(),
        }
    }

    /// Adds to `weaknesses` the permissions that the new rule `rule` gives and that no rule in
    /// `covering_old_rules` gives. `covering_old_rules` are the old rules that apply to all
    /// branches of `rule`, or to all branches of the old rule.
    fn add_new_permissions<'k>(
        &self,
        rule: &RefRule,
        covering_old_rules: impl Iterator<Item = &'k &'k RefRule> + Clone,
        weaknesses: &mut Vec<WeakerProtection>,
    ) {
        let (object_suffix, target_suffix) = if rule.pattern == self.old_rule.pattern {
            Default::default()
        } else {
            let other_description =
                format!("what `{}` protects", crate::text::escape(&self.old_rule.pattern));
            (format!(" {other_description}"), format!(" to {other_description}"))
        };
        let mut add_weakness = |description| {
            weaknesses.push(WeakerProtection { pattern: rule.pattern.clone(), description });
        };
        for (permission, rows) in &rule.permissions {
            if allows_more(
                covering_old_rules.clone().flat_map(|rule| rule.permitted_rows(permission)),
                rows,
            ) {
                add_weakness(format!("let more people {permission}{object_suffix}"));
            }
        }
        if rule.allows_force && !covering_old_rules.clone().any(|rule| rule.allows_force) {
            add_weakness(format!("allow force pushes{target_suffix}"));
        }
    }
}

/// True if the rows `new_rows` allow somebody whom the rows `old_rows` do not allow.
fn allows_more<'r>(old_rows: impl Iterator<Item = &'r Json> + Clone, new_rows: &[Json]) -> bool {
    fn lowest_level<'r>(rows: impl Iterator<Item = &'r Json>) -> u8 {
        let levels = rows.filter_map(|row| AccessLevel::parse(row.get("access_level")?));
        levels.map(|level| level.number).filter(|level| *level > 0).min().unwrap_or(u8::MAX)
    }
    fn find_subject(row: &Json) -> Option<(&'static str, &Json)> {
        let names = ["user_id", "group_id", "deploy_key_id"];
        names.into_iter().find_map(|name| Some((name, row.get(name)?)))
    }
    let mut new_subjects = new_rows.iter().filter_map(find_subject);
    lowest_level(new_rows.iter()) < lowest_level(old_rows.clone())
        || new_subjects.any(|new_subject| {
            !old_rows.clone().filter_map(find_subject).any(|old_subject| old_subject == new_subject)
        })
}

/// True if any text matches both patterns.
pub fn patterns_overlap(pattern: &str, other_pattern: &str) -> bool {
    steps::count_step();
    let pattern_chars: Vec<char> = pattern.chars().collect();
    let other_chars: Vec<char> = other_pattern.chars().collect();
    // For each position in `pattern`: true if the pattern after this position overlaps the
    // processed part of `other_pattern`.
    let (mut next_matches, mut current_matches) =
        (vec![false; pattern_chars.len() + 1], vec![false; pattern_chars.len() + 1]);
    for other_index in (0..=other_chars.len()).rev() {
        for pattern_index in (0..=pattern_chars.len()).rev() {
            current_matches[pattern_index] =
                match (pattern_chars.get(pattern_index), other_chars.get(other_index)) {
                    (None, None) => true,
                    (Some('*'), None) => current_matches[pattern_index + 1],
                    (None, Some('*')) => next_matches[pattern_index],
                    (Some('*'), Some(_)) | (Some(_), Some('*')) => {
                        current_matches[pattern_index + 1] || next_matches[pattern_index]
                    }
                    (Some(a), Some(b)) => a == b && next_matches[pattern_index + 1],
                    (Some(_), None) | (None, Some(_)) => false,
                };
        }
        std::mem::swap(&mut next_matches, &mut current_matches);
    }
    next_matches[0]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::kind::testing::object;

    const PERMISSION_LISTS: [(&str, &str); 2] =
        [("allowed_to_push", "push"), ("allowed_to_merge", "merge")];

    fn rule(fields: Json) -> RefRule {
        *RefRule::from_fields(&object(fields), "name", &PERMISSION_LISTS, true).unwrap()
    }

    fn weakness_texts(before: &[RefRule], after: &[RefRule]) -> Vec<String> {
        find_weaker_protections(before, after)
            .into_iter()
            .map(|w| format!("{}: {}", w.pattern, w.description))
            .collect()
    }

    #[test]
    fn each_weaker_protection_of_one_rule_is_named() {
        let rule_with_rows = |rows: Json| rule(json!({"name": "main", "allowed_to_push": rows}));
        let nobody = json!([{"access_level": "no_access"}]);
        let maintainers = json!([{"id": 1, "access_level": "maintainer"}]);
        let developers = json!([{"access_level": "developer"}]);
        let alice = json!([{"access_level": "maintainer"}, {"user_id": 5}]);
        for (before, after, is_weaker) in [
            (&maintainers, &developers, true),
            (&nobody, &maintainers, true),
            (&maintainers, &nobody, false),
            (&developers, &maintainers, false),
            (&maintainers, &alice, true),
            (&alice, &maintainers, false),
            (&alice, &alice, false),
        ] {
            let weaknesses =
                weakness_texts(&[rule_with_rows(before.clone())], &[rule_with_rows(after.clone())]);
            let expected: &[&str] = if is_weaker { &["main: let more people push"] } else { &[] };
            assert_eq!(weaknesses, expected, "{before} {after}");
        }
        assert_eq!(
            weakness_texts(&[], &[rule_with_rows(developers)]),
            [""; 0],
            "it was open before"
        );
        assert_eq!(
            weakness_texts(&[rule_with_rows(maintainers)], &[]),
            ["main: remove the protection"]
        );
        let owner_rule = json!({"name": "main", "code_owner_approval_required": true});
        let force_rule = json!({"name": "main", "allow_force_push": true});
        let actions = ["allow force pushes", "no longer require the approval of code owners"];
        assert_eq!(
            weakness_texts(&[rule(owner_rule)], &[rule(force_rule)]),
            actions.map(|weakness| format!("main: {weakness}"))
        );
        let unprotect_rule = |level: &str| {
            rule(json!({"name": "main", "allowed_to_unprotect": [{"access_level": level}]}))
        };
        assert_eq!(
            weakness_texts(&[unprotect_rule("admin")], &[unprotect_rule("maintainer")]),
            ["main: let more people unprotect"]
        );
        assert_eq!(
            weakness_texts(&[unprotect_rule("maintainer")], &[unprotect_rule("admin")]),
            [""; 0]
        );
    }

    /// If each rule is for one branch, ten times as many rules need ten times as many comparisons.
    #[test]
    fn rules_for_different_branches_are_not_compared() {
        steps::assert_linear_growth("rules for branches", |n| {
            let rules = |force: bool| -> Vec<_> {
                let names = (0..n).map(|index| format!("b{index}")).chain(["x*".to_owned()]);
                names.map(|name| rule(json!({"name": name, "allow_force_push": force}))).collect()
            };
            assert_eq!(find_weaker_protections(&rules(false), &rules(true)).len(), n + 1);
        });
    }

    /// Ten times as many pairs of overlapping patterns need ten times as many comparisons.
    #[test]
    fn patterns_are_compared_in_pairs() {
        steps::assert_linear_growth("patterns for branches", |n| {
            let pattern_count = n.isqrt();
            let rules = |force: bool| -> Vec<_> {
                let names = (0..pattern_count).map(|index| format!("*a{index}*"));
                names.map(|name| rule(json!({"name": name, "allow_force_push": force}))).collect()
            };
            assert!(find_weaker_protections(&rules(false), &rules(true)).len() >= pattern_count);
        });
    }

    #[test]
    fn the_most_permissive_of_several_rules_counts() {
        let make_rule = |name: &str, level: &str| {
            rule(json!({"name": name, "allowed_to_push": [{"access_level": level}]}))
        };
        let main = make_rule("main", "no_access");
        let wider = "let more people push what `main` protects";
        for (before, after, expected_parts) in [
            (
                vec![main.clone()],
                vec![main.clone(), make_rule("m*", "developer")],
                vec!["m*", wider],
            ),
            // The default of a new rule is maintainers.
            (vec![main.clone()], vec![main.clone(), rule(json!({"name": "*"}))], vec!["*", wider]),
            (vec![main.clone()], vec![main.clone(), make_rule("v*", "developer")], vec![]),
            (vec![main.clone()], vec![main.clone(), make_rule("m*", "no_access")], vec![]),
            (
                vec![main.clone(), make_rule("m*", "developer")],
                vec![make_rule("m*", "developer")],
                vec![],
            ),
            (
                vec![main.clone(), make_rule("*", "developer")],
                vec![main.clone(), make_rule("*", "no_access")],
                vec![],
            ),
            (vec![main.clone()], vec![make_rule("main*", "no_access")], vec![]),
            (
                vec![make_rule("m*", "no_access")],
                vec![make_rule("m*", "no_access"), make_rule("*n", "developer")],
                vec!["*n", "let more people push what `m*` protects"],
            ),
            (
                vec![make_rule("m*", "no_access")],
                vec![make_rule("ma*", "no_access")],
                vec!["m*", "remove the protection"],
            ),
        ] {
            let expected: Vec<_> = expected_parts.chunks(2).map(|parts| parts.join(": ")).collect();
            let is_not_about_merge = |weakness: &String| !weakness.contains("merge");
            let mut weaknesses = weakness_texts(&before, &after);
            weaknesses.retain(is_not_about_merge);
            assert_eq!(weaknesses, expected, "{before:?} {after:?}");
        }
        let owners_rule =
            |name: &str| rule(json!({"name": name, "code_owner_approval_required": true}));
        let plain_rule = |name: &str| rule(json!({"name": name}));
        assert_eq!(
            weakness_texts(&[owners_rule("main"), plain_rule("m*")], &[plain_rule("m*")]),
            ["main: no longer require the approval of code owners"]
        );
        assert_eq!(
            weakness_texts(&[owners_rule("main"), owners_rule("m*")], &[owners_rule("m*")]),
            [""; 0]
        );
    }

    #[test]
    fn patterns_overlap_if_some_text_matches_both() {
        for (pattern, other_pattern, expected) in [
            ("main", "main", true),
            ("main", "Main", false),
            ("m*", "main", true),
            ("m*", "*n", true),
            ("m*", "n*", false),
            ("*", "", true),
            ("a*b", "a", false),
            ("a*b*c", "*b", false),
            ("a*b*c", "*b*", true),
            ("release/*", "*/1.0", true),
        ] {
            assert_eq!(
                patterns_overlap(pattern, other_pattern),
                expected,
                "{pattern} {other_pattern}"
            );
            assert_eq!(
                patterns_overlap(other_pattern, pattern),
                expected,
                "{other_pattern} {pattern}"
            );
        }
    }

    /// All names of up to four letters `a` and `b`.
    fn short_branch_names() -> Vec<String> {
        let mut all_texts = vec![String::new()];
        let mut range_start = 0;
        for _ in 0..4 {
            let range_end = all_texts.len();
            for index in range_start..range_end {
                for letter in ["a", "b"] {
                    all_texts.push(all_texts[index].clone() + letter);
                }
            }
            range_start = range_end;
        }
        all_texts
    }

    /// The permissions with the levels that have them, true if code owners must approve, and the
    /// lowest level that may unprotect.
    type BranchProtection = (BTreeSet<(String, u8)>, bool, u8);

    /// The protection of the branch `name` against developers (30) and maintainers (40); `None` if
    /// no rule applies.
    fn branch_protection(rules: &[RefRule], name: &str) -> Option<BranchProtection> {
        let matching_rules: Vec<_> =
            rules.iter().filter(|rule| patterns_overlap(&rule.pattern, name)).collect();
        let min_level = |rows: &[Json]| {
            let levels = rows.iter().filter_map(|row| AccessLevel::parse(row.get("access_level")?));
            levels.map(|l| l.number).filter(|l| *l > 0).min().unwrap_or(u8::MAX)
        };
        let mut permissions = BTreeSet::new();
        for rule in &matching_rules {
            for (permission, rows) in &rule.permissions {
                permissions.extend(
                    [30, 40]
                        .into_iter()
                        .filter(|l| *l >= min_level(rows))
                        .map(|l| ((*permission).to_owned(), l)),
                );
            }
            permissions.extend(rule.allows_force.then(|| ("force".to_owned(), 0)));
        }
        let unprotect_level =
            matching_rules.iter().map(|rule| min_level(&rule.unprotect_rows)).max()?;
        Some((
            permissions,
            matching_rules.iter().any(|rule| rule.needs_code_owners),
            unprotect_level,
        ))
    }

    /// True if the rules `after` protect any branch less than the rules `before`.
    fn is_any_branch_weaker(before: &[RefRule], after: &[RefRule]) -> bool {
        short_branch_names().iter().any(|name| {
            match (branch_protection(before, name), branch_protection(after, name)) {
                (None, _) => false,
                (Some(_), None) => true,
                (
                    Some((old_permissions, old_owners, old_level)),
                    Some((new_permissions, new_owners, new_level)),
                ) => {
                    !new_permissions.is_subset(&old_permissions)
                        || (old_owners && !new_owners)
                        || new_level < old_level
                }
            }
        })
    }

    fn any_rule() -> impl Strategy<Value = Json> {
        let level = || prop::sample::select(vec!["no_access", "developer", "maintainer"]);
        let unprotect = prop::sample::select(vec!["maintainer", "admin"]);
        let pattern = prop::sample::select(vec!["a", "b", "a*", "*", "*b", "a*b", "ab", "*a*"]);
        (pattern, level(), level(), unprotect, any::<bool>(), any::<bool>()).prop_map(
            |(name, push, merge, unprotect, force, owners)| {
                let rows = |level: &str| json!([{"access_level": level}]);
                json!({
                    "name": name, "allowed_to_push": rows(push), "allowed_to_merge": rows(merge),
                    "allowed_to_unprotect": rows(unprotect), "allow_force_push": force,
                    "code_owner_approval_required": owners,
                })
            },
        )
    }

    fn any_rules(max_rules: usize) -> impl Strategy<Value = Vec<RefRule>> {
        prop::collection::vec(any_rule(), 0..=max_rules).prop_map(|rules| {
            let mut seen_patterns = BTreeSet::new();
            let rules = rules.into_iter().map(rule);
            rules.filter(|rule| seen_patterns.insert(rule.pattern.clone())).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Every weaker protection of a branch is found. A change of a single rule that weakens no
        /// branch is never refused.
        #[test]
        fn comparing_patterns_agrees_with_comparing_branches(
            before in any_rules(3), after in any_rules(3), own in any_rule(), other in any_rule(),
        ) {
            if is_any_branch_weaker(&before, &after) {
                prop_assert!(!find_weaker_protections(&before, &after).is_empty());
            }
            let (old_rule, mut new_rule) = (rule(own), rule(other));
            new_rule.pattern.clone_from(&old_rule.pattern);
            let (was, is) = ([old_rule], [new_rule]);
            prop_assert_eq!(!find_weaker_protections(&was, &is).is_empty(), is_any_branch_weaker(&was, &is));
        }
    }
}
