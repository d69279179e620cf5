//! Checks that all former paths together are possible.
//!
//! The container at a path must be known from paths alone, before and after a run, even if the run
//! was interrupted.

use std::{collections::HashMap, ops::Range, sync::Arc};

use aho_corasick::AhoCorasick;

use super::path;
use crate::{
    desired::{Container, CreationPolicy, Moves},
    field::{NamedObject, Scope},
    kind::forms,
    manifest::faults::{Faults, texts, words},
    origin::Sourced,
    steps,
    value::Json,
};

/// Checks the former paths of `containers`.
pub(super) fn check(containers: &[Container], faults: &mut Faults) -> Moves {
    let moves = Moves::from_containers(containers);
    if moves.is_empty() {
        return moves;
    }
    let by_path: HashMap<_, _> =
        containers.iter().map(|container| (container.path.to_lowercase(), container)).collect();
    let mut first_claims: HashMap<String, (&Container, &Sourced<Arc<str>>)> = HashMap::new();
    let mut is_consistent = true;
    for (container, former) in former_paths(containers) {
        let former_path = former.value.to_lowercase();
        let words = words![path = former.value];
        if let Err(why) = path::check(container.scope, &former.value, false) {
            let fault = faults.report_value(texts::FORMER_PATH, &former.origin, words![why]);
            fault.help_if(path::suggest_path_fix(&former.value));
            continue;
        }
        is_consistent &= !check_self_move(container, former, faults);
        if former_path == container.path.to_lowercase() {
            continue;
        }
        // Compared in canonical form: one container may list both forms of a path.
        let canonical = moves.canonical(&former.value).to_lowercase();
        let (first_container, first) =
            *first_claims.entry(canonical).or_insert((container, former));
        let is_repeated =
            first_container.path != container.path || first.value.to_lowercase() == former_path;
        if is_repeated && !std::ptr::eq(first, former) {
            let at = [&former.origin, &first.origin];
            faults.report_values(texts::FORMER_OF_TWO, at, words);
        }
        // Each path must have one container only.
        let other = by_path.get(&former_path).filter(|other| {
            moves.declared_at(&other.path).is_none()
                && !matches!(other.create, CreationPolicy::Allowed(_))
        });
        if let Some(other) = other {
            let words = words![path = former.value, noun = other.scope.noun()];
            let at = [&former.origin, &other.origin];
            faults.report_values(texts::FORMER_DECLARED, at, words);
        }
    }
    // Consequences of an impossible former path are not reported.
    if !is_consistent {
        return moves;
    }
    check_circle(containers, &moves, faults);
    let formers =
        FormerPaths::new(former_paths(containers).map(|(_, path)| &*path.value).collect());
    for container in containers {
        check_former_names(container, &moves, &formers, faults);
    }
    moves
}

/// True if the path `former` is that of the container itself, or of a group above a group, which is
/// reported.
fn check_self_move(container: &Container, former: &Sourced<Arc<str>>, faults: &mut Faults) -> bool {
    let path = container.path.to_lowercase();
    let texts = match path.strip_prefix(&former.value.to_lowercase()) {
        Some("") => texts::FORMER_IS_CURRENT,
        Some(rest) if container.scope == Scope::Group && rest.starts_with('/') => {
            texts::MOVED_BELOW_ITSELF
        }
        _ => return false,
    };
    faults.report_value(texts, &former.origin, words![noun = container.scope.noun()]);
    true
}

/// Each former path with its container.
fn former_paths(
    containers: &[Container],
) -> impl Iterator<Item = (&Container, &Sourced<Arc<str>>)> {
    containers.iter().flat_map(|container| {
        container.lifecycle.previously.iter().map(move |former| (container, former))
    })
}

/// Two containers that swap paths look the same before and after.
fn check_circle(containers: &[Container], moves: &Moves, faults: &mut Faults) {
    let Some(circle) = moves.find_circle() else { return };
    let mut formers = former_paths(containers);
    let first = formers.find(|(container, _)| circle.contains(&&container.path));
    let Some((_, former)) = first else { return };
    let paths: Vec<&str> = circle.iter().map(|path| &***path).collect();
    let words = words![paths = crate::text::list_names(&paths)];
    faults.report_value(texts::SWAPPED_PATHS, &former.origin, words);
}

/// Reports names of former paths, which become wrong when the path changes: certain in fields that
/// name groups and projects, probable in other texts.
fn check_former_names(
    container: &Container,
    moves: &Moves,
    formers: &FormerPaths<'_>,
    faults: &mut Faults,
) {
    if let Some(now) = moves.new_path(&container.path) {
        faults.report_value(texts::MOVED_GROUP, &container.origin, words![now]);
    }
    for section in &container.sections {
        for entry in &section.entries {
            let references = forms::referenced_names(section.section, &entry.values());
            for (field, object_type, name) in &references {
                if !matches!(object_type, NamedObject::Group | NamedObject::Project) {
                    continue;
                }
                if let Some((now, at)) = moves.new_path(name).zip(entry.fields.origin(field)) {
                    let words = words![noun = object_type.noun(), name, now];
                    faults.report_value(texts::MOVED_NAME, &at, words);
                }
            }
            for (field, Sourced { value, origin }) in entry.fields.iter() {
                let is_name = references.iter().any(|(name, ..)| name == field);
                let text = value.plain().filter(|_| !is_name);
                let former = text.and_then(|text| formers.find_in(text));
                if let Some((former, now)) =
                    former.and_then(|former| Some((former, moves.new_path(former)?)))
                {
                    faults.report_value(texts::MOVED_PATH, &origin, words![former, now]);
                }
            }
        }
    }
}

/// Former paths, with an automaton that finds all of them in a text. If the automaton cannot be
/// built because it is too large, nothing is found: the result is only used for warnings.
struct FormerPaths<'f> {
    paths: Vec<&'f str>,
    automaton: Option<AhoCorasick>,
}

impl<'f> FormerPaths<'f> {
    fn new(paths: Vec<&'f str>) -> Self {
        let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(&paths);
        Self { automaton: automaton.ok(), paths }
    }

    /// The first former path in a text of `value`.
    fn find_in(&self, value: &Json) -> Option<&'f str> {
        self.find_first(value).map(|number| self.paths[number])
    }

    fn find_first(&self, value: &Json) -> Option<usize> {
        match value {
            Json::String(text) => {
                let all_matches = self.automaton.as_ref()?.find_overlapping_iter(text);
                let counted_matches = all_matches.inspect(|_| steps::step());
                let path_matches = counted_matches.filter(|found| is_path_at(text, found.range()));
                path_matches.map(|found| found.pattern().as_usize()).min()
            }
            Json::Array(items) => items.iter().filter_map(|item| self.find_first(item)).min(),
            Json::Object(fields) => {
                fields.values().filter_map(|field| self.find_first(field)).min()
            }
            _ => None,
        }
    }
}

/// True if the match at `span` of `text` is a path. A single word only counts if more of a path
/// follows.
fn is_path_at(text: &str, span: Range<usize>) -> bool {
    let path = &text[span.clone()];
    let before = text[..span.start].chars().next_back();
    let after = text[span.end..].chars().next();
    let is_part = !continues_word(before) && before != Some('.') && !continues_word(after);
    let is_path = path.contains('/') || (matches!(before, Some('/' | '@')) && after == Some('/'));
    is_part && is_path
}

/// True if this character continues a name.
fn continues_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
}
