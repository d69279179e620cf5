//! Checks of what one group or project declares in several sections.

use super::for_projects;
use crate::{
    catalogue::{self, approval_rules},
    desired::{Container, DeclaredSection, Entry, State, Unlisted},
    field::Scope,
    kind::refs::overlap,
    level::{Level, MINIMAL},
    manifest::faults::{Faults, Spot},
    origin::Sourced,
    text::nearest,
    value::Json,
};

/// Checks all sections of `container` together.
pub(super) fn check(container: &Container, faults: &mut Faults) {
    for own in &container.sections {
        entries_of_others(own, container, faults);
        outside_itself(own, container, faults);
        top_level(own, container, faults);
    }
    itself(container, faults);
    idle_allowlists(container, faults);
    approvals(container, faults);
}

/// Checks fields that name entries of another section.
fn entries_of_others(own: &DeclaredSection, container: &Container, faults: &mut Faults) {
    let parent = own.of.home.parent.map(|parent| (parent.field, parent.section));
    let specs = own.of.table().specs().iter();
    let named = specs.filter_map(|spec| Some((spec.name, spec.field.relations.names_entries?)));
    for (field, section) in named.chain(parent) {
        let Some(other) = container.section(section) else { continue };
        let is_parent = parent.is_some_and(|(own, _)| own == field);
        own.entries.iter().for_each(|entry| names_entries(other, field, is_parent, entry, faults));
    }
}

/// Reports the names in the `field` of `entry` that are those of no entry of `other`, which may be the
/// parent of this one.
fn names_entries(
    other: &DeclaredSection,
    field: &str,
    is_parent: bool,
    entry: &Entry,
    faults: &mut Faults,
) {
    let Some(Sourced { value, origin }) = entry.fields.get(field) else { return };
    let noun = other.of.noun;
    let is_kept = entry.state == State::Present;
    let names = value.list().into_iter().flatten().filter_map(Json::as_str);
    for name in names.chain(value.text()) {
        let at = Spot::item(&origin, name);
        let known = || other.entries.iter().map(|entry| &*entry.key);
        if let Some(declared) = other.entries.iter().find(|entry| &*entry.key == name) {
            if is_kept && declared.state == State::Absent {
                let message = match is_parent {
                    true => format!("the {noun} of this entry is removed, and the entry with it"),
                    false => format!("`{field}` names a {noun} that is removed"),
                };
                let gone = faults.error("unknown-entry", message, at);
                gone.related(Spot::key(&declared.origin), "removed here");
                gone.help(format!("take this away, or keep the {noun}"));
            }
            continue;
        }
        if other.unmanaged.iter().any(|glob| glob.matches(name)) {
            continue;
        }
        let message = format!("`{field}` names a {noun} that is not declared");
        let is_like = |known: &&str| known.contains('*') && overlap(known, name);
        let near = nearest(name, known()).or_else(|| known().find(is_like));
        if other.unlisted.value == Unlisted::Delete && is_kept {
            let message = format!("{message}, and `unlisted` deletes it");
            let unknown = faults.error("unknown-entry", message, at);
            unknown.related(Spot::value(&other.unlisted.origin), "which deletes it");
            unknown.help(match near {
                Some(near) => format!("write `{near}`, the name as it is declared"),
                None => format!("declare it in `{}`, or take it out of here", other.of.section),
            });
        } else if let Some(near) = near {
            let unknown = faults.warning("unknown-entry", message, at);
            unknown.help(format!("did you mean `{near}`?"));
        }
    }
}

/// Reports fields that must start with the path and do not.
fn outside_itself(own: &DeclaredSection, container: &Container, faults: &mut Faults) {
    let path = &*container.path;
    for spec in own.of.table().specs().iter().filter(|spec| spec.field.valid.starts_with_path) {
        for field in own.entries.iter().filter_map(|entry| entry.fields.get(spec.name)) {
            let rest = field.value.text().map(|text| text.strip_prefix(path));
            let is_below = |rest: &str| rest.is_empty() || rest.starts_with(['/', '*']);
            if rest.is_some_and(|rest| !rest.is_some_and(is_below)) {
                let (name, noun) = (spec.name, container.scope.noun());
                let message = format!("`{name}` must start with the path of the {noun}");
                let outside = faults.error("path", message, Spot::value(&field.origin));
                outside.help(format!("write it as in `{path}/*`"));
            }
        }
    }
}

/// Reports fields and levels that only top-level groups have. Of a section that only they have, the first one
/// of an entry.
fn top_level(own: &DeclaredSection, container: &Container, faults: &mut Faults) {
    if container.scope == Scope::Group && !container.path.contains('/') {
        return;
    }
    let above = container.path.split('/').next().unwrap_or_default();
    let is_whole = own.of.is_of_top();
    for entry in &own.entries {
        let found = entry.fields.iter().filter_map(|(name, field)| {
            let spec = own.of.table().get(name)?;
            let level = field.value.plain().filter(|_| spec.field.is_level());
            let is_minimal = level.and_then(Level::parse).is_some_and(|of| of.number == MINIMAL);
            let is_of_top = spec.field.available.is_of_top();
            (is_of_top || is_minimal).then_some((name, field.origin, is_of_top))
        });
        for (name, origin, is_of_top) in found.take(if is_whole { 1 } else { usize::MAX }) {
            let name = if is_whole { own.of.section } else { name };
            let message = match is_of_top {
                true => format!("only top-level groups have `{name}`"),
                false => "only top-level groups have members with minimal access".to_owned(),
            };
            let at = if is_whole { &own.origin } else { &origin };
            let rule = for_projects(own.of).filter(|_| is_whole).map(|section| {
                format!(", or `{section}` for the projects below in a `kind: Defaults`")
            });
            faults.error("top-level", message, Spot::key(at)).help(match is_of_top {
                true => {
                    let rule = rule.unwrap_or_default();
                    format!("declare it in `kind: Group` with `path: {above}`{rule}")
                }
                false => format!("write `guest` or more, or declare it in `{above}`"),
            });
        }
    }
}

/// Reports who may use a job's token, where everybody may.
fn idle_allowlists(container: &Container, faults: &mut Faults) {
    let scope = container.setting("job_token_scope", "inbound_enabled");
    let Some(scope) = scope.filter(|field| field.value.flag() == Some(false)) else { return };
    let lists = ["job_token_allowlist", "job_token_groups_allowlist"];
    for list in lists.iter().filter_map(|name| container.section(name)) {
        let message = format!("`{}` has no effect as long as everybody may", list.of.section);
        let idle = faults.warning("no-effect", message, Spot::key(&list.origin));
        idle.related(Spot::value(&scope.origin), "which lets everybody");
        idle.help("write `inbound_enabled: true`, or leave the list out");
    }
}

/// Reports fields that name the project itself, or a group above it.
fn itself(container: &Container, faults: &mut Faults) {
    let path = container.path.to_lowercase();
    for (section, field) in [("fork_of", "fork_of"), ("shares", "group")] {
        for entry in container.section(section).into_iter().flat_map(|own| &own.entries) {
            let Some(named) = entry.fields.get(field) else { continue };
            let other = named.value.text().unwrap_or_default().to_lowercase();
            let is_below = path.starts_with(&format!("{other}/"));
            let is_above = section == "shares" && container.scope == Scope::Project;
            if path == other || is_above && is_below {
                let message =
                    format!("`{field}` names what this document is about, or a group above it");
                let itself = faults.error("path", message, Spot::value(&named.origin));
                itself.help("name another one: members of a group above have access already");
            }
        }
    }
}

/// The service makes a rule from `approvals_before_merge`, so both must not be declared.
fn approvals(container: &Container, faults: &mut Faults) {
    let name = approval_rules::BEFORE_MERGE;
    let count = container
        .setting(catalogue::settings::SECTION, name)
        .filter(|count| count.value.plain().and_then(Json::as_u64).is_some_and(|count| count > 0));
    let rules = container.section(approval_rules::SECTION);
    let Some((count, rules)) = count.zip(rules) else { return };
    let any = rules.entries.iter().find(|entry| approval_rules::is_any(&entry.values()));
    let (at, label) = match any {
        Some(any) => (&any.origin, "which decides about it too"),
        None if rules.unlisted.value == Unlisted::Delete => {
            (&rules.unlisted.origin, "which removes the rule that it makes")
        }
        None => return,
    };
    let message = format!("`{name}` and `{}` decide about one rule", rules.of.section);
    let twice = faults.error("approvals-twice", message, Spot::value(&count.origin));
    twice
        .related(Spot::key(at), label)
        .help(format!("leave out `{name}`, and declare a rule with `rule_type: any_approver`"));
}
