//! Suggests the address that a user probably meant.

use crate::{
    catalogue,
    desired::Desired,
    field::Scope,
    kind::Shape,
    text::{did_you_mean, list_names},
};

/// Help for an address (or glob) that matches nothing: the address with the right separators, or a similar
/// section or field. `takes_fields` is true if the command takes addresses of fields.
pub(super) fn suggest_address(
    input: &str,
    desired: &Desired,
    takes_fields: bool,
) -> Option<String> {
    const SEPARATORS: [char; 4] = ['#', '/', '.', ':'];
    let lower_input = input.to_lowercase();
    let containers = desired.containers.iter().filter(|container| {
        let suffix = lower_input.strip_prefix(&container.path.to_lowercase());
        suffix.is_some_and(|rest| rest.starts_with(SEPARATORS))
    });
    let container = containers.max_by_key(|container| container.path.len());
    let path_length =
        container.map_or_else(|| input.find('#'), |container| Some(container.path.len()))?;
    let (path, object) = (input.get(..path_length)?, input.get(path_length + 1..)?);
    let scope = container.map_or(Scope::Project, |container| container.scope);
    let mut segments = object.splitn(2, SEPARATORS);
    let (name, inner_address) = (segments.next()?, segments.next());
    let Some(section) = catalogue::find_section(scope, name) else {
        let mut mappings = catalogue::sections(scope).filter(|s| s.shape == Shape::Mapping);
        return match mappings.find(|section| section.spec(name).is_some()).map(|s| s.section) {
            Some(section) if takes_fields => {
                Some(format!("did you mean `{path}#{section}/{name}`?"))
            }
            Some(section) => Some(format!(
                "write `{path}#{section}`: `{name}` is a field, and only whole sections and entries are selected"
            )),
            None => {
                let sections = catalogue::sections(scope).map(|s| format!("{path}#{}", s.section));
                let addresses: Vec<_> = sections.collect();
                did_you_mean(input, addresses.iter().map(String::as_str))
            }
        };
    };
    let mut address = format!("{path}#{name}");
    if let Some(inner) = inner_address.filter(|_| takes_fields || section.shape == Shape::List) {
        address = format!("{address}/{inner}");
    }
    if address != input {
        return Some(format!("did you mean `{address}`?"));
    }
    let container = container.filter(|container| container.section(name).is_none())?;
    let names: Vec<_> = container.section_names().collect();
    Some(format!(
        "`{path}` declares {}",
        if names.is_empty() { "no sections".into() } else { list_names(&names) }
    ))
}
