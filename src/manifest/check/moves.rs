//! Former paths: whether all of them together can be true.
//!
//! What is at a path has to be known from paths alone, before a run and after it, whether that ended
//! or not.

use std::{collections::HashMap, sync::Arc};

use super::path;
use crate::{
    desired::{Container, Creation, Moves},
    field::Scope,
    manifest::faults::{Faults, Spot},
    origin::{Origin, Sourced},
};

/// Checks the former paths of `containers`.
pub(super) fn check(containers: &[Container], faults: &mut Faults) -> Moves {
    let moves = Moves::of(containers);
    if moves.is_empty() {
        return moves;
    }
    let at: HashMap<_, _> = containers.iter().map(|c| (c.path.to_lowercase(), c)).collect();
    let mut claimed: HashMap<String, &Origin> = HashMap::new();
    let mut stays = false;
    for (container, written) in former(containers) {
        let spot = || Spot::value(&written.origin);
        let noun = container.scope.noun();
        let own = container.path.to_lowercase();
        if let Err(why) = path::check(container.scope, &written.value, false) {
            faults.error("path", format!("the former path {why}"), spot());
            continue;
        }
        let before = written.value.to_lowercase();
        if before == own {
            stays = true;
            let message = format!("`previously` names the path that the {noun} has");
            faults.error("previously", message, spot()).help("take it away");
            continue;
        }
        let is_within = own.strip_prefix(&before).is_some_and(|rest| rest.starts_with('/'));
        if container.scope == Scope::Group && is_within {
            let message = "a group cannot be moved below itself";
            let below = faults.error("previously", message, spot());
            below.help("give the group that is moved another path first, in a run of its own");
        }
        if let Some(first) = claimed.insert(before.clone(), &written.origin) {
            let message = format!("`{}` is the former path of two", written.value);
            let twice = faults.error("previously", message, spot());
            twice.related(Spot::value(first), "first named here");
            twice.help("keep it where it is true: one path leads to one group or project");
        }
        // Whatever is at a path has to be told from what was there before.
        let other = at.get(&before).filter(|other| {
            other.former().next().is_none() && !matches!(other.create, Creation::Allowed(_))
        });
        if let Some(other) = other {
            let message = format!("`{}` is also declared as it is", written.value);
            let declared = faults.error("previously", message, spot());
            declared.related(Spot::value(&other.origin), "declared here");
            declared.help(format!(
                "say there where it comes from: `create: true` for a new {}, or `previously`",
                other.scope.noun()
            ));
        }
    }
    if !stays {
        circle(containers, &moves, faults);
    }
    moves
}

/// Each former path with the container that had it.
fn former(containers: &[Container]) -> impl Iterator<Item = (&Container, &Sourced<Arc<str>>)> {
    containers.iter().flat_map(|container| {
        container.life.previously.iter().map(move |former| (container, former))
    })
}

/// Two that change places look the same before and after.
fn circle(containers: &[Container], moves: &Moves, faults: &mut Faults) {
    let Some(circle) = moves.circle() else { return };
    let first = former(containers).find(|(container, _)| circle.contains(&&container.path));
    let Some((_, written)) = first else { return };
    let paths: Vec<&str> = circle.iter().map(|path| &***path).collect();
    let message = format!("{} need each other's path", crate::text::listed(&paths));
    let circle = faults.error("previously", message, Spot::value(&written.origin));
    circle.help("move one of them out of the way first, in a run of its own");
}
