//! Checks that all former paths together are possible.
//!
//! The container at a path must be known from paths alone, before and after a run, even if the run
//! was interrupted.

use std::{collections::HashMap, ops::Range, sync::Arc};

use aho_corasick::AhoCorasick;

use super::path;
use crate::{
    desired::{Container, Creation, Moves},
    field::{Named, Scope},
    kind::forms,
    manifest::faults::{Faults, Spot},
    origin::Sourced,
    steps,
    value::Json,
};

/// Checks the former paths of `containers`.
pub(super) fn check(containers: &[Container], faults: &mut Faults) -> Moves {
    let moves = Moves::of(containers);
    if moves.is_empty() {
        return moves;
    }
    let at: HashMap<_, _> = containers.iter().map(|c| (c.path.to_lowercase(), c)).collect();
    let mut claimed: HashMap<String, (&Container, &Sourced<Arc<str>>)> = HashMap::new();
    let mut is_sound = true;
    for (container, written) in former(containers) {
        let spot = || Spot::value(&written.origin);
        let (own, before) = (container.path.to_lowercase(), written.value.to_lowercase());
        if let Err(why) = path::check(container.scope, &written.value, false) {
            let wrong = faults.error("path", format!("the former path {why}"), spot());
            wrong.help_if(path::help(&written.value));
            continue;
        }
        is_sound &= !leads_to_itself(container, written, faults);
        if before == own {
            continue;
        }
        // However it is written; one container may have both forms of it.
        let one = moves.canonical(&written.value).to_lowercase();
        let (of, first) = *claimed.entry(one).or_insert((container, written));
        let is_repeated = of.path != container.path || first.value.to_lowercase() == before;
        if is_repeated && !std::ptr::eq(first, written) {
            let message = format!("`{}` is the former path of two", written.value);
            let twice = faults.error("previously", message, spot());
            twice.related(Spot::value(&first.origin), "first named here");
            twice.help("keep it where it is true: one path leads to one group or project");
        }
        // Each path must have one container only.
        let other = at.get(&before).filter(|other| {
            moves.at(&other.path).is_none() && !matches!(other.create, Creation::Allowed(_))
        });
        if let Some(other) = other {
            let (path, noun) = (&written.value, other.scope.noun());
            let message = format!("`{path}` is also declared as it is");
            let declared = faults.error("previously", message, spot());
            declared.related(Spot::value(&other.origin), "declared here");
            declared.help(format!(
                "take the document of `{path}` away; only if another {noun} is to have that path, say there where it comes from: `create: true` or `previously`"
            ));
        }
    }
    // Consequences of an impossible former path are not reported.
    if !is_sound {
        return moves;
    }
    circle(containers, &moves, faults);
    let formers = Paths::of(former(containers).map(|(_, written)| &*written.value).collect());
    for container in containers {
        still_former(container, &moves, &formers, faults);
    }
    moves
}

/// Whether the former path `written` is that of the container itself, or of a group above a group, which
/// is reported.
fn leads_to_itself(
    container: &Container,
    written: &Sourced<Arc<str>>,
    faults: &mut Faults,
) -> bool {
    let (own, before) = (container.path.to_lowercase(), written.value.to_lowercase());
    let (message, help) = match own.strip_prefix(&before) {
        Some("") => (
            format!("`previously` names the path that the {} has", container.scope.noun()),
            "write the path that it had before, or take the line away",
        ),
        Some(rest) if container.scope == Scope::Group && rest.starts_with('/') => (
            "a group cannot be moved below itself".to_owned(),
            "give the group that is moved another path first, in a run of its own",
        ),
        _ => return false,
    };
    faults.error("previously", message, Spot::value(&written.origin)).help(help);
    true
}

/// Each former path with its container.
fn former(containers: &[Container]) -> impl Iterator<Item = (&Container, &Sourced<Arc<str>>)> {
    containers.iter().flat_map(|container| {
        container.life.previously.iter().map(move |former| (container, former))
    })
}

/// Two containers that swap paths look the same before and after.
fn circle(containers: &[Container], moves: &Moves, faults: &mut Faults) {
    let Some(circle) = moves.circle() else { return };
    let first = former(containers).find(|(container, _)| circle.contains(&&container.path));
    let Some((_, written)) = first else { return };
    let paths: Vec<&str> = circle.iter().map(|path| &***path).collect();
    let message = format!("{} need each other's path", crate::text::listed(&paths));
    let circle = faults.error("previously", message, Spot::value(&written.origin));
    circle.help("move one of them out of the way first, in a run of its own");
}

/// Reports names of former paths, which become wrong when the path changes: certain in fields that
/// name groups and projects, probable in other texts.
fn still_former(container: &Container, moves: &Moves, formers: &Paths<'_>, faults: &mut Faults) {
    let write = |now: &str| format!("write `{now}`");
    if let Some(now) = moves.now(&container.path) {
        let message = "the path is below a group that is declared to be elsewhere";
        faults.error("previously", message, Spot::value(&container.origin)).help(write(&now));
    }
    for section in &container.sections {
        for entry in &section.entries {
            let named = forms::referenced_names(section.of, &entry.values());
            let is_path = |named| matches!(named, Named::Group | Named::Project);
            for (field, of, name) in named.iter().filter(|(_, named, _)| is_path(*named)) {
                if let Some((now, at)) = moves.now(name).zip(entry.fields.origin(field)) {
                    let message = format!("the {} `{name}` is declared to be `{now}`", of.noun());
                    faults.error("previously", message, Spot::value(&at)).help(write(&now));
                }
            }
            for (field, Sourced { value, origin }) in entry.fields.iter() {
                let is_name = named.iter().any(|(name, ..)| name == field);
                let text = value.plain().filter(|_| !is_name);
                let found = text.and_then(|text| formers.first_in(text));
                if let Some((former, now)) =
                    found.and_then(|former| Some((former, moves.now(former)?)))
                {
                    let message = format!("`{former}` is declared to be `{now}`");
                    let old = faults.warning("previously", message, Spot::value(&origin));
                    old.help(format!("if this means its path, {}", write(&now)));
                }
            }
        }
    }
}

/// Former paths, with an automaton that finds all of them in a text. If the automaton cannot be
/// built because it is too large, nothing is found: the result is only used for warnings.
struct Paths<'f> {
    paths: Vec<&'f str>,
    automaton: Option<AhoCorasick>,
}

impl<'f> Paths<'f> {
    fn of(paths: Vec<&'f str>) -> Self {
        Self { automaton: AhoCorasick::new(&paths).ok(), paths }
    }

    /// The first former path in a text of `value`.
    fn first_in(&self, value: &Json) -> Option<&'f str> {
        self.numbers(value).map(|number| self.paths[number])
    }

    fn numbers(&self, value: &Json) -> Option<usize> {
        match value {
            Json::String(text) => {
                let found = self.automaton.as_ref()?.find_overlapping_iter(text);
                let named = found.inspect(|_| steps::step());
                let named = named.filter(|found| is_named(text, found.range()));
                named.map(|found| found.pattern().as_usize()).min()
            }
            Json::Array(items) => items.iter().filter_map(|item| self.numbers(item)).min(),
            Json::Object(fields) => fields.values().filter_map(|field| self.numbers(field)).min(),
            _ => None,
        }
    }
}

/// Whether the match at `span` of `text` is a path. A single word only counts if more of a path
/// follows.
fn is_named(text: &str, span: Range<usize>) -> bool {
    let path = &text[span.clone()];
    let before = text[..span.start].chars().next_back();
    let after = text[span.end..].chars().next();
    let goes_on =
        |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    let is_part = !goes_on(before) && before != Some('.') && !goes_on(after);
    let is_path = path.contains('/') || (matches!(before, Some('/' | '@')) && after == Some('/'));
    is_part && is_path
}
