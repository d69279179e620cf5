//! Access of users across containers: what gives it comes before the rules that name them, and what takes
//! it away after those.

use std::collections::{BTreeSet, HashMap};

use super::values_above;
use crate::{
    address::{Address, groups_above},
    diff::{
        Edge, Note, Problem, Reason, Step,
        texts::{self, words},
    },
    field::Scope,
    kind::{Capability, Effect},
    level::{AccessLevel, MAINTAINER},
    plan::grants::UserRule,
    text,
};

/// Adds the edges between steps that change access and steps that need it. Returns their conflicts.
pub(super) fn connect_access(steps: &mut [Step]) -> Vec<Problem> {
    let grants = collect_grants(steps);
    follow_access(steps, &grants);
    let mut problems = refuse_outsiders(steps, &grants);
    order_removals(steps, &grants);
    problems.extend(refuse_lower_levels(steps, &grants));
    problems
}

/// A step that gives a user access to a container.
struct AccessGrant {
    address: Address,
    scope: Scope,
    before: u8,
    after: u8,
}

/// The grants to each user, by the path of their container in lower case.
type Grants = HashMap<u64, HashMap<String, AccessGrant>>;

fn collect_grants(steps: &[Step]) -> Grants {
    let mut grants = Grants::new();
    for step in steps {
        for (user, before, after) in step.accesses().filter(|(_, before, after)| before < after) {
            let (address, scope) = (step.address.clone(), step.scope);
            let path = step.address.path.to_lowercase();
            let grant = AccessGrant { address, scope, before, after };
            grants.entry(user).or_default().insert(path, grant);
        }
    }
    grants
}

/// The grants to one user in groups: the project may be shared with any of them.
fn group_grants(grants: &HashMap<String, AccessGrant>) -> impl Iterator<Item = &AccessGrant> {
    grants.values().filter(|grant| grant.scope == Scope::Group)
}

/// Users named in a rule get access first: in a group above or by its shares, or an outsider in any group.
fn follow_access(steps: &mut [Step], grants: &Grants) {
    let reason = Capability::People.order_reason(Scope::Project);
    let mut shared: HashMap<_, Vec<_>> = HashMap::new();
    for step in steps.iter().filter(|step| step.scope == Scope::Group && raises_share(step)) {
        shared.entry(step.address.path.to_lowercase()).or_default().push(step.address.clone());
    }
    for step in steps.iter_mut().filter(|_| !grants.is_empty() || !shared.is_empty()) {
        let path = &step.address.path;
        let mut first: Vec<&Address> = Vec::new();
        for (user, outsider) in step.needed_users() {
            let Some(grants) = grants.get(&user) else { continue };
            let mut matching_grants: Vec<_> = match outsider {
                None => values_above(grants, path).collect(),
                Some(_) => group_grants(grants).collect(),
            };
            if outsider.is_some() {
                matching_grants.sort_by_key(|grant| &grant.address.path);
            }
            let given = matching_grants.into_iter().filter(|grant| grant.before == 0);
            first.extend(given.map(|grant| &grant.address));
        }
        if step.needed_users().next().is_some() {
            first.extend(values_above(&shared, path).flatten());
        }
        let edges = first.into_iter().map(|address| Edge { address: address.clone(), reason });
        let edges: Vec<_> = edges.collect();
        step.after.extend(edges);
    }
}

/// Whether a step shares a group or project with a group, or at a higher level.
fn raises_share(step: &Step) -> bool {
    step.effects
        .iter()
        .any(|effect| matches!(effect, Effect::Share { before, after, .. } if before < after))
}

/// Rules may name only users who have access, or get it in a group.
fn refuse_outsiders(steps: &[Step], grants: &Grants) -> Vec<Problem> {
    let transfers = |effect: &Effect| matches!(effect, Effect::Transfers { .. });
    let open = steps.iter().filter(|step| step.effects.iter().any(transfers));
    let open: BTreeSet<_> = open.map(|step| step.address.path.to_lowercase()).collect();
    steps
        .iter()
        .filter_map(|step| {
            let path = step.address.path.to_lowercase();
            let min_level = step.scope.choose(MAINTAINER, 1);
            let gets_access = |user| {
                let mut all = grants.get(&user).into_iter().flat_map(group_grants);
                all.any(|grant| grant.after >= min_level)
            };
            let names =
                step.needed_users().filter_map(|(user, name)| name.filter(|_| !gets_access(user)));
            let names: BTreeSet<_> = names.collect();
            let own_path = (step.scope == Scope::Group).then_some(&*path);
            let mut places = own_path.into_iter().chain(groups_above(&path));
            if names.is_empty() || places.any(|place| open.contains(place)) {
                return None;
            }
            let names: Vec<_> = names.into_iter().collect();
            let (have, user) = if names.len() == 1 { ("has", "user") } else { ("have", "users") };
            let words = words![names = text::list_names(&names), have, user];
            let texts = step.scope.choose(texts::NO_MAINTAINERS, texts::OUTSIDERS);
            Some(Problem::from_texts(texts, words, &step.address, &step.origin))
        })
        .collect()
}

/// The user who loses access by a step.
fn user_losing_access(step: &Step) -> Option<u64> {
    step.accesses().find(|(.., after)| *after == 0).map(|(user, ..)| user)
}

/// A user gets access above before it ends below, and the rules that name the user are changed before it ends
/// in a group. The service also removes a member of a group from what is below it, so new members there come
/// later.
fn order_removals(steps: &mut [Step], grants: &Grants) {
    let mut by_user: HashMap<_, HashMap<_, _>> = HashMap::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| step.scope == Scope::Group) {
        if let Some(user) = user_losing_access(step) {
            by_user.entry(user).or_default().insert(step.address.path.to_lowercase(), at);
        }
    }
    let mut edges = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let path = &step.address.path;
        if let Some(all) = user_losing_access(step).and_then(|user| grants.get(&user)) {
            let first = values_above(all, path).find(|grant| grant.before == 0);
            let reason = "the user keeps access through the group above";
            edges.extend(first.map(|grant| (at, grant.address.clone(), reason)));
        }
        for (user, ..) in step.accesses().filter(|(.., after)| *after > 0) {
            let nearest = by_user.get(&user).and_then(|of| values_above(of, path).next());
            let reason =
                "the service also removes a group's members from its subgroups and projects";
            edges.extend(nearest.map(|first| (at, steps[*first].address.clone(), reason)));
        }
        for (user, _) in step.needed_users().filter(|_| !by_user.is_empty()) {
            let later_removals =
                by_user.get(&user).filter(|_| !gains_access_at(grants, user, path));
            let reason = "access ends after the changes that need it";
            let later = later_removals.into_iter().flat_map(HashMap::values);
            edges.extend(later.map(|later| (*later, step.address.clone(), reason)));
        }
    }
    for (at, address, reason) in edges {
        steps[at].after.push(Edge { address, reason });
    }
}

/// Whether a user gets access at `path`, or in a group above.
fn gains_access_at(grants: &Grants, user: u64, path: &str) -> bool {
    grants.get(&user).is_some_and(|all| {
        all.contains_key(&path.to_lowercase()) || values_above(all, path).next().is_some()
    })
}

/// Notes for members removed from groups, if rules of `rules`, by username, need the access.
pub(in crate::plan) fn note_lost_access(
    steps: &[Step],
    rules: &HashMap<String, Vec<UserRule>>,
) -> Vec<Note> {
    let grants = if rules.is_empty() { Grants::new() } else { collect_grants(steps) };
    let note = |step: &Step| {
        let user = user_losing_access(step).filter(|_| step.scope == Scope::Group)?;
        let of_user = rules.get(&step.address.entry.as_deref()?.to_lowercase())?;
        let group = step.address.path.to_lowercase();
        let affected_rules: Vec<_> = of_user
            .iter()
            .filter(|rule| {
                let path = &rule.address.path;
                let is_below = groups_above(&path.to_lowercase()).any(|above| above == group);
                (is_below || !rule.is_member) && !gains_access_at(&grants, user, path)
            })
            .map(|rule| rule.address.to_string())
            .collect();
        let hit: Vec<_> = affected_rules.iter().map(String::as_str).collect();
        let what = format!("it may end access that rules need: {}", text::list_first(&hit));
        let note = Note::new(&step.address, Reason::Besides { what }, &step.origin);
        (!hit.is_empty()).then_some(note)
    };
    steps.iter().filter(|_| !rules.is_empty()).filter_map(note).collect()
}

/// The service refuses a level below one that the same run gives in a group above.
fn refuse_lower_levels(steps: &[Step], grants: &Grants) -> Vec<Problem> {
    let mut problems = Vec::new();
    for step in steps.iter().filter(|_| !grants.is_empty()) {
        for (user, _, after) in step.accesses().filter(|(.., after)| *after > 0) {
            let Some(grants) = grants.get(&user) else { continue };
            let higher = values_above(grants, &step.address.path).find(|grant| grant.after > after);
            problems.extend(higher.map(|grant| below_granted_problem(step, after, grant)));
        }
    }
    problems
}

fn below_granted_problem(step: &Step, level: u8, grant: &AccessGrant) -> Problem {
    let word = |level: u8| AccessLevel::parse(&level.into()).map_or("a level", |level| level.word);
    let key = text::escape(step.address.entry.as_deref().unwrap_or_default());
    let (above, level, group) = (word(grant.after), word(level), &grant.address.path);
    let words = words![key, above, group, level];
    Problem::from_texts(texts::BELOW_GRANTED, words, &step.address, &step.origin)
}
