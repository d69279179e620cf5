//! Relations between steps of different containers: edges from one container to another, and
//! conflicts between their steps.
//!
//! - A step in a group that the run creates, or that names it, comes after the creation. So does a
//!   project that is created from a project of the run.
//! - A container is created after the changes of the settings that its groups hand down.
//! - A step in a group that the run moves comes after the move, unless it narrows visibility.
//! - A container takes a path after the container that leaves it, and after the moves of groups
//!   above.
//! - Nothing is more visible than its group: a group is widened before its contents, and narrowed
//!   after them.
//! - What a setting of a group decides about is changed after it, and created while it allows that.
//! - A rule that names users comes after the groups above have given them access.
//! - A user with a level in a group has at least that level in everything below.
//!
//! An edge leads to the nearest container above with such a step, which has its own edge to the
//! next. So the number of edges does not grow with the depth.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::{
    address::Address,
    diff::{Action, Change, Edge, Problem, Shown, Step},
    field::Scope,
    kind::{Capability, Effect, VISIBILITIES, visibility_rank},
    kinds::{
        constraints::{self, Constraint, How, Setting},
        settings,
    },
    level::Level,
    text,
    value::Json,
};

/// Adds the edges between steps of different containers. Returns the conflicts between their steps.
pub(super) fn connect(steps: &mut [Step]) -> Vec<Problem> {
    created(steps);
    handed_down(steps);
    named(steps);
    moved(steps);
    let mut problems = wait_for_path(steps);
    problems.extend(too_visible(steps));
    visible(steps);
    problems.extend(constrained(steps));
    let granted = granted(steps);
    people(steps, &granted);
    problems.extend(refuse_outsiders(steps, &granted));
    taken_along(steps);
    problems.extend(refuse_lower_levels(steps, &granted));
    problems.extend(circular(steps));
    problems
}

/// The paths of the groups above `path`, nearest first, in lower case.
fn groups_above(path: &str) -> impl Iterator<Item = String> {
    let path = path.to_lowercase();
    let ends: Vec<_> = path.match_indices('/').map(|(at, _)| at).collect();
    ends.into_iter().rev().map(move |end| path[..end].to_owned())
}

/// A step that names a group or project of the run comes after its creation.
fn created(steps: &mut [Step]) {
    let new = steps.iter().filter(|step| step.address.section.is_none());
    let new: HashMap<_, _> = new
        .map(|step| (step.address.path.to_lowercase(), (step.address.clone(), step.scope)))
        .collect();
    for step in steps {
        let paths: BTreeSet<_> = step.waits_for().filter(|named| !named.contains('#')).collect();
        let edge = |path: &str| {
            let created = new.get(&path.to_lowercase()).cloned();
            let (address, scope) =
                created.unwrap_or_else(|| (Address::container(path.into()), Scope::Group));
            Edge { address, reason: Capability::Exists.reason(scope) }
        };
        let edges: Vec<_> = paths.into_iter().map(edge).collect();
        step.after.extend(edges);
    }
}

/// New containers start with the new settings of the groups above.
fn handed_down(steps: &mut [Step]) {
    let is_new = |step: &Step| step.effects.contains(&Effect::Provides(Capability::Exists));
    let mut by_group: HashMap<_, Vec<_>> = HashMap::new();
    // Steps in a new group come after its creation anyway.
    for step in steps.iter().filter(|step| !is_new(step)) {
        if step.effects.contains(&Effect::HandsDown) {
            let group = step.address.path.to_lowercase();
            by_group.entry(group).or_default().push(step.address.clone());
        }
    }
    let reason = "a new group or project starts with the settings of the group above";
    for step in steps.iter_mut().filter(|step| !by_group.is_empty() && is_new(step)) {
        let earlier =
            groups_above(&step.address.path).filter_map(|group| by_group.get(&group)).flatten();
        step.after.extend(earlier.cloned().map(|address| Edge { address, reason }));
    }
}

/// A container gets its name after the sibling that gives that name up.
fn named(steps: &mut [Step]) {
    let place = |step: &Step, name: &str| {
        let path = step.address.path.to_lowercase();
        let (namespace, slug) = path.rsplit_once('/').unwrap_or(("", &path));
        let name = if name.is_empty() { slug.to_owned() } else { name.to_lowercase() };
        (namespace.to_owned(), name)
    };
    let of = |step: &Step, side: fn(&Change) -> &Shown| {
        let change = step.changes.iter().find(|change| &*change.field == "name")?;
        match side(change) {
            Shown::Value(name) => name.as_str().map(str::to_owned),
            _ => None,
        }
    };
    let given_up: HashMap<_, _> = steps
        .iter()
        .filter(|step| step.address.section == Some(settings::KIND.section))
        .filter_map(|step| {
            let before = of(step, |change| &change.before)?;
            Some((place(step, &before), step.address.clone()))
        })
        .collect();
    let is_new = |step: &&mut Step| step.effects.contains(&Effect::Provides(Capability::Exists));
    for step in steps.iter_mut().filter(|_| !given_up.is_empty()).filter(is_new) {
        let name = of(step, |change| &change.after).unwrap_or_default();
        if let Some(address) = given_up.get(&place(step, &name)) {
            let reason = "its name has to be free first";
            step.after.push(Edge { address: address.clone(), reason });
        }
    }
}

/// Below a group that moves, a container is at its declared path only after the move, and so is a
/// project that a request names. Until then the service uses the former path.
fn moved(steps: &mut [Step]) {
    let moves = |scope: Scope| {
        let in_place = Effect::Provides(Capability::InPlace);
        let of_scope = steps.iter().filter(|step| step.scope == scope);
        let moves = of_scope.filter(|step| step.effects.contains(&in_place));
        moves.map(|step| (step.address.path.to_lowercase(), step.address.clone())).collect()
    };
    let projects: HashMap<String, Address> = moves(Scope::Project);
    let groups: HashMap<String, Address> = moves(Scope::Group);
    for step in steps.iter_mut().filter(|_| !projects.is_empty()) {
        let named = step.named().map(str::to_lowercase);
        let first: BTreeSet<_> = named.filter_map(|path| projects.get(&path).cloned()).collect();
        let reason = Capability::InPlace.reason(Scope::Project);
        step.after.extend(first.into_iter().map(|address| Edge { address, reason }));
    }
    let reason = Capability::InPlace.reason(Scope::Group);
    for step in steps.iter_mut().filter(|_| !groups.is_empty()) {
        let nearest = groups_above(&step.address.path).find_map(|group| groups.get(&group));
        if let Some(address) = nearest.filter(|_| !super::order::narrows(step)) {
            step.after.push(Edge { address: address.clone(), reason });
        }
    }
}

/// A step that takes a path comes after the move that frees it.
fn wait_for_path(steps: &mut [Step]) -> Vec<Problem> {
    let moved: BTreeSet<_> = steps
        .iter()
        .filter(|step| step.address.section.is_none())
        .map(|step| step.address.clone())
        .collect();
    let mut problems = Vec::new();
    for step in steps {
        let follows = step.effects.iter().filter_map(|effect| match effect {
            Effect::Follows(path) => Some(Address::container(path.clone())),
            _ => None,
        });
        for address in follows.collect::<Vec<_>>() {
            if step.after.iter().any(|edge| edge.address == address) {
                continue;
            }
            if moved.contains(&address) {
                step.after.push(Edge { address, reason: "it has to move first" });
            } else {
                let message =
                    format!("`{address}` has to move first, and this run does not move it");
                let help = format!("select it too (`--only {address}`), or resolve its problem");
                let (address, origin) = (&step.address, &step.origin);
                problems.push(Problem::new(address, "previously", message, help, origin));
            }
        }
    }
    problems
}

/// Steps that wait for each other would never start, such as those of two projects that are created
/// from each other.
fn circular(steps: &[Step]) -> Vec<Problem> {
    let positions: HashMap<_, _> =
        steps.iter().enumerate().map(|(at, step)| (&step.address, at)).collect();
    // As when they are carried out: an edge to a section stands for its earlier steps.
    let earlier = |at: usize, edge: &Edge| -> Vec<usize> {
        let path = &steps[at].address.path;
        match positions.get(&edge.address) {
            Some(one) => vec![*one],
            None if edge.address.path != *path || edge.address.entry.is_some() => Vec::new(),
            None => {
                let before = (0..at).rev().take_while(|other| steps[*other].address.path == *path);
                let section = edge.address.section;
                before.filter(|other| steps[*other].address.section == section).collect()
            }
        }
    };
    let mut open: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut later: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        let before: BTreeSet<_> = step.after.iter().flat_map(|edge| earlier(at, edge)).collect();
        before.iter().for_each(|other| later.entry(*other).or_default().push(at));
        open.insert(at, before);
    }
    let mut ready: Vec<_> =
        open.iter().filter(|(_, before)| before.is_empty()).map(|(at, _)| *at).collect();
    while let Some(done) = ready.pop() {
        open.remove(&done);
        for at in later.remove(&done).unwrap_or_default() {
            let before = open.get_mut(&at);
            if before.is_some_and(|before| before.remove(&done) && before.is_empty()) {
                ready.push(at);
            }
        }
    }
    // What is left is in a circle, or after one.
    let next_in_circle = |at: usize| {
        open[&at].iter().copied().find(|next| {
            let (mut seen, mut reached) = (BTreeSet::new(), vec![*next]);
            while let Some(other) = reached.pop() {
                if other == at {
                    return true;
                }
                reached.extend(open[&other].iter().filter(|before| seen.insert(**before)));
            }
            false
        })
    };
    let circular = open.keys().filter_map(|at| Some((&steps[*at], &steps[next_in_circle(*at)?])));
    circular.map(|(step, next)| waits_for_itself(step, next)).collect()
}

fn waits_for_itself(step: &Step, next: &Step) -> Problem {
    let (address, other) = (&step.address, &next.address);
    let message = format!("`{address}` comes after `{other}`, which comes after `{address}`");
    let help = "correct one of them, or do one of them in an earlier run";
    Problem::new(address, "circular", message, help, &step.origin)
}

/// The visibilities before and after a step, as ranks from the narrowest; before is `None` for a
/// creation.
fn visibility(step: &Step) -> Option<(Option<usize>, usize)> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Visibility { before, after } => {
            let is_new = step.effects.contains(&Effect::Provides(Capability::Exists));
            let known = before.as_deref().and_then(visibility_rank);
            let before = if is_new { None } else { Some(known.unwrap_or(0)) };
            Some((before, visibility_rank(after)?))
        }
        _ => None,
    })
}

/// Refuses visibility above what the same run gives the group. A new group that does not declare it is
/// private, unless the administrators of the service changed that.
fn too_visible(steps: &[Step]) -> Vec<Problem> {
    let is_new_group = |step: &Step| {
        let is_new = step.effects.contains(&Effect::Provides(Capability::Exists));
        // A group that is restored has the visibility that it had.
        step.scope == Scope::Group && step.action == Action::Create && is_new
    };
    let seen = |step: &Step| {
        let declared = visibility(step).map(|(_, after)| after);
        declared.or_else(|| is_new_group(step).then_some(0))
    };
    let groups: HashMap<_, _> = steps
        .iter()
        .filter(|step| step.scope == Scope::Group)
        .filter_map(|step| Some((step.address.path.to_lowercase(), (step, seen(step)?))))
        .collect();
    let mut problems = Vec::new();
    for step in steps.iter().filter(|_| !groups.is_empty()) {
        let nearest = || groups_above(&step.address.path).find_map(|group| groups.get(&group));
        if let Some(own) = seen(step)
            && let Some((group, most)) = nearest()
            && own > *most
        {
            problems.push(more_visible_than(step, own, group, *most));
        }
    }
    problems
}

fn more_visible_than(step: &Step, own: usize, group: &Step, most: usize) -> Problem {
    let word = |rank: usize| VISIBILITIES[rank];
    let change = step.changes.iter().find(|change| &*change.field == "visibility");
    let message = format!(
        "it would be {} in the group `{}`, which would be {}: the service refuses that",
        word(own),
        group.address.path,
        word(most)
    );
    let help =
        format!("write `visibility: {}`, or `visibility: {}` for the group", word(most), word(own));
    let origin = change.and_then(|change| change.origin.as_ref()).unwrap_or(&step.origin);
    Problem::new(&step.address, "more-visible", message, help, origin)
}

fn visible(steps: &mut [Step]) {
    let (mut widened, mut narrowed) = (HashMap::new(), HashMap::new());
    for (at, step) in steps.iter().enumerate() {
        match visibility(step) {
            Some((before, after)) if before.is_none_or(|before| before < after) => {
                widened.insert(step.address.path.to_lowercase(), at);
            }
            Some((Some(before), after)) if after < before => {
                narrowed.insert(step.address.path.to_lowercase(), at);
            }
            _ => {}
        }
    }
    let mut edges: Vec<(usize, usize, &'static str)> = Vec::new();
    for (path, at) in &widened {
        if let Some(group) = groups_above(path).find_map(|group| widened.get(&group)) {
            edges.push((*at, *group, "nothing is more visible than the group that it is in"));
        }
    }
    for (path, at) in &narrowed {
        if let Some(group) = groups_above(path).find_map(|group| narrowed.get(&group)) {
            edges.push((*group, *at, "what is in a group is never more visible than it"));
        }
    }
    edges.sort_unstable();
    for (later, earlier, reason) in edges {
        let address = steps[earlier].address.clone();
        let after = &mut steps[later].after;
        if !after.iter().any(|edge| edge.address == address) {
            after.push(Edge { address, reason });
        }
    }
}

/// The value of `by` before and after a step of a group.
fn decision<'s>(
    step: &'s Step,
    by: &Setting,
) -> Option<(&'s Change, Option<&'s Json>, Option<&'s Json>)> {
    let section = step.address.section.unwrap_or(settings::KIND.section);
    let is_group = step.scope == Scope::Group && *section == by.section;
    let change = step.changes.iter().find(|change| is_group && *change.field == by.field)?;
    let value = |shown: &'s Shown| match shown {
        Shown::Value(value) => Some(value),
        _ => None,
    };
    Some((change, value(&change.before), value(&change.after)))
}

/// What a setting of a group decides about is changed after it. What it forbids is created before it
/// forbids that, or after it allows it again. [`visible`] handles visibility, where a group may have to
/// come last.
fn constrained(steps: &mut [Step]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for row in constraints::all().filter(|row| row.by.field != "visibility") {
        let deciding =
            steps.iter().enumerate().filter(|(_, step)| decision(step, &row.by).is_some());
        let deciding: HashMap<_, _> =
            deciding.map(|(at, step)| (step.address.path.to_lowercase(), at)).collect();
        let mut edges = Vec::new();
        // A level counts only for what is directly in its group.
        let reach = if row.over.section == "create" { 1 } else { usize::MAX };
        let most = if row.every { usize::MAX } else { 1 };
        let decided = steps.iter().enumerate().filter(|(_, step)| is_over(row, step));
        let decided = decided.filter(|_| !deciding.is_empty()).flat_map(|(at, step)| {
            let above = groups_above(&step.address.path).take(reach);
            let above = above.filter_map(|path| deciding.get(&path).copied()).take(most);
            above.map(move |first| (at, step, first))
        });
        for (at, step, first) in decided {
            let group = &steps[first];
            let Some((change, before, after)) = decision(group, &row.by) else { continue };
            let forbids = |by: Option<&Json>| by.is_some_and(|by| row.forbids(by, step.scope));
            if row.how != How::Forbids || (forbids(before) && !forbids(after)) {
                if !super::order::narrows(step) {
                    edges.push((at, first, "the group above has to allow it first"));
                }
                continue;
            }
            if !forbids(after) {
                continue;
            }
            // A project does not get the level of its group, but it may need what else the step changes.
            let follows = |step: &Step| step.after.iter().any(|edge| edge.address == group.address);
            let is_its_creation = row.over.section == "create";
            let needs_other = if is_its_creation {
                follows(step) && group.changes.len() > 1
            } else {
                depends_on(steps, at, &group.address)
            };
            if group.address.section.is_none() || needs_other {
                problems.push(forbidden(row, step, group, change));
            } else {
                edges.push((first, at, "then the group above forbids it"));
            }
        }
        for (later, earlier, reason) in edges {
            let after = steps[later].address.clone();
            steps[earlier].after.retain(|edge| edge.address != after);
            let address = steps[earlier].address.clone();
            if !steps[later].after.iter().any(|edge| edge.address == address) {
                steps[later].after.push(Edge { address, reason });
            }
        }
    }
    problems
}

/// Whether the step at `from` comes after the one at `address`, by edges of any number of steps.
fn depends_on(steps: &[Step], from: usize, address: &Address) -> bool {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(at) = open.pop() {
        for edge in &steps[at].after {
            if edge.address == *address {
                return true;
            }
            let is_it = |step: &Step| {
                let Address { path, section, entry } = &edge.address;
                step.address.path == *path
                    && step.address.section == *section
                    && (entry.is_none() || step.address.entry == *entry)
            };
            let earlier = steps.iter().enumerate().filter(|(_, step)| is_it(step));
            open.extend(earlier.map(|(at, _)| at).filter(|at| seen.insert(*at)));
        }
    }
    false
}

/// Whether `step` changes or creates what `row` is about.
fn is_over(row: &Constraint, step: &Step) -> bool {
    let section = step.address.section.unwrap_or(settings::KIND.section);
    match &row.over.field {
        _ if row.over.section == "create" => {
            step.effects.contains(&Effect::Provides(Capability::Exists))
        }
        None => *section == row.over.section && step.action == Action::Create,
        Some(name) => {
            *section == row.over.section
                && step.changes.iter().any(|change| *change.field == **name)
        }
    }
}

fn forbidden(row: &'static Constraint, step: &Step, group: &Step, change: &Change) -> Problem {
    let (path, setting) = (&group.address.path, &row.by.field);
    let message =
        format!("`{setting}` of `{path}` {}, and this run would do so after it", row.text);
    let help = format!("leave out `{setting}` of `{path}` until everything in it exists");
    let origin = change.origin.as_ref().unwrap_or(&step.origin);
    Problem::new(&step.address, &row.code, message, help, origin)
}

/// A step that gives a user access to a container.
struct Grant {
    address: Address,
    before: u8,
    after: u8,
}

/// The grants to each user, by the path of their container in lower case.
type Grants = HashMap<u64, BTreeMap<String, Grant>>;

fn granted(steps: &[Step]) -> Grants {
    let mut grants = Grants::new();
    for step in steps {
        for effect in &step.effects {
            if let Effect::Access { user: Some(user), before, after, .. } = effect
                && before < after
            {
                let grant = Grant { address: step.address.clone(), before: *before, after: *after };
                let path = step.address.path.to_lowercase();
                grants.entry(*user).or_default().insert(path, grant);
            }
        }
    }
    grants
}

/// Users named in a rule get access first.
fn people(steps: &mut [Step], grants: &Grants) {
    let reason = Capability::People.reason(Scope::Project);
    for step in steps.iter_mut().filter(|_| !grants.is_empty()) {
        let named = step.effects.iter().filter_map(|effect| match effect {
            Effect::NeedsAccess { user, .. } => grants.get(user),
            _ => None,
        });
        let path = &step.address.path;
        let edges: Vec<_> = named
            .flat_map(|grants| groups_above(path).filter_map(|group| grants.get(&group)))
            .filter(|grant| grant.before == 0)
            .map(|grant| Edge { address: grant.address.clone(), reason })
            .collect();
        step.after.extend(edges);
    }
}

/// Rules may name only users who have access, or get it from a group above.
fn refuse_outsiders(steps: &[Step], grants: &Grants) -> Vec<Problem> {
    let brings_others = |effect: &Effect| match effect {
        Effect::Share { before, after, .. } => before < after,
        effect => *effect == Effect::Provides(Capability::InPlace),
    };
    let open = steps.iter().filter(|step| step.effects.iter().any(brings_others));
    let open: BTreeSet<_> = open.map(|step| step.address.path.to_lowercase()).collect();
    let outsider = |step: &Step| {
        let path = &step.address.path;
        let name = step.effects.iter().find_map(|effect| {
            let Effect::NeedsAccess { user, outsider } = effect else { return None };
            let grants = grants.get(user);
            let gets = |group: String| {
                open.contains(&group) || grants.is_some_and(|all| all.contains_key(&group))
            };
            outsider.as_deref().filter(|_| !groups_above(path).any(gets))
        })?;
        let name = text::escape(name);
        let message = format!(
            "it names `{name}`, who has no access to `{path}`, and the service refuses that"
        );
        let help = format!("add `{name}` to the members, or take the user out of the rule");
        Some(Problem::new(&step.address, "low-share", message, help, &step.origin))
    };
    steps.iter().filter_map(outsider).collect()
}

/// The service also removes a member of a group from what is below it, so new members there come later.
fn taken_along(steps: &mut [Step]) {
    let access = |step: &Step, is_removal: bool| {
        step.effects.iter().find_map(|effect| match effect {
            Effect::Access { user: Some(user), after, .. } if (*after == 0) == is_removal => {
                Some(*user)
            }
            _ => None,
        })
    };
    let removed = steps.iter().filter(|step| step.scope == Scope::Group);
    let removed: HashMap<_, _> = removed
        .filter_map(|step| {
            Some(((access(step, true)?, step.address.path.to_lowercase()), step.address.clone()))
        })
        .collect();
    for step in steps.iter_mut().filter(|_| !removed.is_empty()) {
        let Some(user) = access(step, false) else { continue };
        let nearest = groups_above(&step.address.path).find_map(|path| removed.get(&(user, path)));
        let reason = "the service removes members of a group from what is below it too";
        step.after.extend(nearest.map(|address| Edge { address: address.clone(), reason }));
    }
}

/// The service refuses a level below one that the same run gives in a group above.
fn refuse_lower_levels(steps: &[Step], grants: &Grants) -> Vec<Problem> {
    let mut problems = Vec::new();
    for step in steps.iter().filter(|_| !grants.is_empty()) {
        for effect in &step.effects {
            let Effect::Access { user: Some(user), after: after @ 1.., .. } = effect else {
                continue;
            };
            let Some(grants) = grants.get(user) else { continue };
            let higher = groups_above(&step.address.path)
                .filter_map(|group| grants.get(&group))
                .find(|grant| grant.after > *after);
            if let Some(grant) = higher {
                problems.push(below_granted(step, *after, grant));
            }
        }
    }
    problems
}

fn below_granted(step: &Step, level: u8, grant: &Grant) -> Problem {
    let word = |level: u8| Level::parse(&level.into()).map_or("a level", |level| level.word);
    let who = step.address.entry.as_deref().unwrap_or_default();
    let message = format!(
        "this run makes `{}` {} of the group `{}` above, and the service then refuses {} here",
        text::escape(who),
        word(grant.after),
        grant.address.path,
        word(level)
    );
    let help =
        format!("write `access_level: {}` or more, or take the entry away", word(grant.after));
    Problem::new(&step.address, "inherited-access", message, help, &step.origin)
}
