//! What a written address that nothing declared has probably means.

use crate::{
    catalogue,
    desired::{Container, Desired},
    field::Scope,
    kind::Shape,
    text::{did_you_mean, list_names},
};

/// The smallest part that an address can name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressPart {
    /// A section, or an entry of a list.
    Section,
    /// A field.
    Field,
}

/// The help for the address `written`, which may be a glob: where its path ends, or which section or
/// field of all that exist it names.
pub(super) fn suggest_address(
    written: &str,
    desired: &Desired,
    smallest_part: AddressPart,
) -> Option<String> {
    const SEPARATORS: [char; 4] = ['#', '/', '.', ':'];
    let lower = written.to_lowercase();
    let containers = desired.containers.iter().filter(|container| {
        let rest = lower.strip_prefix(&container.path.to_lowercase());
        rest.is_some_and(|rest| rest.starts_with(SEPARATORS))
    });
    let container = containers.max_by_key(|container| container.path.len());
    let (path, object) = match container {
        Some(container) => {
            let (path, rest) = written.split_at_checked(container.path.len())?;
            (path, rest.get(1..)?)
        }
        None => written.split_once('#')?,
    };
    let scope = container.map_or(Scope::Project, |container| container.scope);
    let (name, inner) =
        object.split_once(SEPARATORS).map_or((object, None), |(name, inner)| (name, Some(inner)));
    let Some(section) = catalogue::section(scope, name) else {
        let mut settings =
            catalogue::sections(scope).filter(|section| section.shape == Shape::Mapping);
        if let Some(section) = settings.find(|section| section.spec(name).is_some()) {
            return Some(match smallest_part {
                AddressPart::Field => format!("did you mean `{path}#{}/{name}`?", section.section),
                AddressPart::Section => format!(
                    "write `{path}#{}`: `{name}` is a field, and only whole sections and entries are selected",
                    section.section
                ),
            });
        }
        let addresses: Vec<_> = catalogue::sections(scope)
            .map(|section| format!("{path}#{}", section.section))
            .collect();
        return did_you_mean(&format!("{path}#{name}"), addresses.iter().map(String::as_str));
    };
    let address = match inner {
        Some(_) if section.shape != Shape::List && smallest_part == AddressPart::Section => {
            format!("{path}#{name}")
        }
        Some(inner) => format!("{path}#{name}/{inner}"),
        None => format!("{path}#{name}"),
    };
    if address != written {
        return Some(format!("did you mean `{address}`?"));
    }
    container.filter(|container| container.section(name).is_none()).map(explain_sections)
}

/// The sections that `container` declares.
fn explain_sections(container: &Container) -> String {
    let names: Vec<_> = container.section_names().collect();
    match names[..] {
        [] => format!("`{}` declares no sections", container.path),
        _ => format!("`{}` declares {}", container.path, list_names(&names)),
    }
}
