//! Checks that all former paths together are consistent.
//!
//! It must be possible to tell from the paths alone which container is at a path: before a run,
//! after a run, and after an interrupted run.

use std::{collections::HashMap, ops::Range, sync::Arc};

use aho_corasick::AhoCorasick;

use super::path;
use crate::{
    desired::{Container, CreationPolicy, Moves},
    field::{NamedObject, Scope},
    kind::forms,
    manifest::faults::{Faults, placeholders, texts},
    origin::Sourced,
    steps,
    value::{Json, texts},
};

/// Checks the former paths of `containers`, and returns them.
pub(super) fn check_former_paths(containers: &[Container], faults: &mut Faults) -> Moves {
    let moves = Moves::from_containers(containers);
    if moves.is_empty() {
        return moves;
    }
    let containers_by_path: HashMap<_, _> =
        containers.iter().map(|container| (container.path.to_lowercase(), container)).collect();
    let mut first_by_path: HashMap<String, (&Container, &Sourced<Arc<str>>)> = HashMap::new();
    let mut is_consistent = true;
    for (container, former_path) in former_paths(containers) {
        let lower_path = former_path.value.to_lowercase();
        let args = placeholders![path = former_path.value];
        if let Err(why) = path::check(container.scope, &former_path.value, false) {
            let fault =
                faults.report_value(texts::FORMER_PATH, &former_path.origin, placeholders![why]);
            fault.set_optional_help(path::suggest_path_fix(&former_path.value));
            continue;
        }
        is_consistent &= !check_self_move(container, former_path, faults);
        if lower_path == container.path.to_lowercase() {
            continue;
        }
        // Compare the canonical forms of paths. One container may list a path twice: with the
        // former path and with the new path of a moved group.
        let canonical_path = moves.canonical_path(&former_path.value).to_lowercase();
        let (first_container, first_path) =
            *first_by_path.entry(canonical_path).or_insert((container, former_path));
        let is_repeated =
            first_container.path != container.path || first_path.value.to_lowercase() == lower_path;
        if is_repeated && !std::ptr::eq(first_path, former_path) {
            let origins = [&former_path.origin, &first_path.origin];
            faults.report_values(texts::FORMER_OF_TWO, origins, args);
        }
        // If another container is declared at this former path, it must have former paths itself,
        // or `create`.
        let other_container = containers_by_path.get(&lower_path).filter(|other| {
            moves.find_moved_container(&other.path).is_none()
                && !matches!(other.creation_policy, CreationPolicy::Allowed(_))
        });
        if let Some(other_container) = other_container {
            let args = placeholders![path = former_path.value, noun = other_container.scope.noun()];
            let origins = [&former_path.origin, &other_container.origin];
            faults.report_values(texts::FORMER_DECLARED, origins, args);
        }
    }
    // Further faults may be consequences of an impossible former path.
    if !is_consistent {
        return moves;
    }
    check_circle(containers, &moves, faults);
    let finder =
        FormerPathFinder::new(former_paths(containers).map(|(_, path)| &*path.value).collect());
    for container in containers {
        check_former_names(container, &moves, &finder, faults);
    }
    moves
}

/// Reports a former path that is the path of the container itself. For a group, also reports the
/// path of a group above, because a group cannot move below itself. Returns true after a fault.
fn check_self_move(
    container: &Container,
    former_path: &Sourced<Arc<str>>,
    faults: &mut Faults,
) -> bool {
    let path = container.path.to_lowercase();
    let problem_texts = match path.strip_prefix(&former_path.value.to_lowercase()) {
        Some("") => texts::FORMER_IS_CURRENT,
        Some(suffix) if container.scope == Scope::Group && suffix.starts_with('/') => {
            texts::MOVED_BELOW_ITSELF
        }
        _ => return false,
    };
    faults.report_value(
        problem_texts,
        &former_path.origin,
        placeholders![noun = container.scope.noun()],
    );
    true
}

/// Each former path with its container.
fn former_paths(
    containers: &[Container],
) -> impl Iterator<Item = (&Container, &Sourced<Arc<str>>)> {
    containers.iter().flat_map(|container| {
        container.lifecycle.former_paths.iter().map(move |former_path| (container, former_path))
    })
}

/// Reports containers that swap paths: the paths look the same before and after a run.
fn check_circle(containers: &[Container], moves: &Moves, faults: &mut Faults) {
    let Some(circle) = moves.find_circle() else { return };
    let mut path_pairs = former_paths(containers);
    let first_pair = path_pairs.find(|(container, _)| circle.contains(&&container.path));
    let Some((_, former_path)) = first_pair else { return };
    let paths: Vec<&str> = circle.iter().map(|path| &***path).collect();
    let args = placeholders![paths = crate::text::list_names(&paths)];
    faults.report_value(texts::SWAPPED_PATHS, &former_path.origin, args);
}

/// Reports former paths in declared values, which are wrong after the move. These are names in
/// fields for groups and projects, and probable paths in other texts.
fn check_former_names(
    container: &Container,
    moves: &Moves,
    finder: &FormerPathFinder<'_>,
    faults: &mut Faults,
) {
    if let Some(now) = moves.path_after_move(&container.path) {
        faults.report_value(texts::MOVED_GROUP, &container.origin, placeholders![now]);
    }
    for section in &container.sections {
        for entry in &section.entries {
            let references = forms::referenced_names(section.kind, &entry.values());
            for (field, object_type, name) in &references {
                if !matches!(object_type, NamedObject::Group | NamedObject::Project) {
                    continue;
                }
                if let Some((now, name_origin)) =
                    moves.path_after_move(name).zip(entry.fields.origin(field))
                {
                    let args = placeholders![noun = object_type.noun(), name, now];
                    faults.report_value(texts::MOVED_NAME, &name_origin, args);
                }
            }
            for (field, Sourced { value, origin }) in entry.fields.iter() {
                let is_name = references.iter().any(|(name, ..)| name == field);
                let text = value.plain_json().filter(|_| !is_name);
                let former_path =
                    text.and_then(|text| Some(finder.paths[finder.find_first(text)?]));
                if let Some((former, now)) =
                    former_path.and_then(|former| Some((former, moves.path_after_move(former)?)))
                {
                    faults.report_value(texts::MOVED_PATH, &origin, placeholders![former, now]);
                }
            }
        }
    }
}

/// Finds former paths in texts, only for warnings. If the automaton is too large to build, finds
/// nothing.
struct FormerPathFinder<'f> {
    paths: Vec<&'f str>,
    automaton: Option<AhoCorasick>,
}

impl<'f> FormerPathFinder<'f> {
    fn new(paths: Vec<&'f str>) -> Self {
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(&paths);
        Self { automaton: automaton.ok(), paths }
    }

    /// The lowest index in `paths` of a former path that a text of `value` contains.
    fn find_first(&self, value: &Json) -> Option<usize> {
        let automaton = self.automaton.as_ref()?;
        let path_indices = texts(value).flat_map(|text| {
            let all_matches = automaton.find_overlapping_iter(text);
            let counted_matches = all_matches.inspect(|_| steps::count_step());
            let path_matches =
                counted_matches.filter(|path_match| is_path_at(text, path_match.range()));
            path_matches.map(|path_match| path_match.pattern().as_usize())
        });
        path_indices.min()
    }
}

/// True if the match at `span` of `text` is a path. A single word is a path only with `/` or `@`
/// before it and `/` after it.
fn is_path_at(text: &str, span: Range<usize>) -> bool {
    let path = &text[span.clone()];
    let char_before = text[..span.start].chars().next_back();
    let char_after = text[span.end..].chars().next();
    let is_delimited =
        !continues_word(char_before) && char_before != Some('.') && !continues_word(char_after);
    let is_path =
        path.contains('/') || (matches!(char_before, Some('/' | '@')) && char_after == Some('/'));
    is_delimited && is_path
}

/// True if `c` is a character that can continue a name.
fn continues_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}
