//! The help of `undrift call`, as text for people.

use crate::{
    catalogue::operations::{self, operation_remarks, parameter_remarks, request_parameters},
    operation::{AnyOp, Parameter, ParameterType},
    text::wrap_lines,
};

/// Each row has a section of the reference that describes operations, and the subject of these
/// operations.
const SUBJECTS: [(&str, &str); 10] = [
    ("1, 4.1", "Variables"),
    ("1, 4.2", "Imports"),
    ("1, 4.3", "Members"),
    ("2, 4.1", "Lists of projects"),
    ("2, 4.2", "A project"),
    ("2, 4.3", "Creating and editing projects"),
    ("2, 4.4", "Actions on a project"),
    ("2, 4.5", "Hooks"),
    ("2, 4.6", "Push rules"),
    ("supporting", "Supporting"),
];

/// The list of all operations, by subject, each with its effect and purpose.
pub(super) fn list_text() -> String {
    let width = operations::all_operations()
        .map(|operation| operation.row().id.len())
        .max()
        .unwrap_or_default();
    let mut text = String::new();
    for (source, subject) in SUBJECTS {
        text += &format!("{}{subject}:\n", if text.is_empty() { "" } else { "\n" });
        for operation in
            operations::all_operations().filter(|operation| operation.row().source == source)
        {
            let operation_row = operation.row();
            text += &format!(
                "  {:width$}  {:5}  {}\n",
                operation_row.id,
                operation.effect(),
                operation_row.purpose
            );
        }
    }
    text
}

/// The help of one operation, with all its parameters.
pub(super) fn operation_text(operation: AnyOp) -> String {
    let operation_row = operation.row();
    let mut text = format!(
        "{}: {}\n\n{} {}  ({})\n",
        operation_row.id,
        operation_remarks(operation_row).join("; "),
        operation_row.method,
        operation_row.path,
        operation.effect()
    );
    if !request_parameters(operation_row).is_empty() {
        text += "\nParameters (* required):\n";
    }
    for (name, type_text, about) in
        request_parameters(operation_row).into_iter().flat_map(parameter_lines)
    {
        text += &format!("  {name}: {type_text}\n");
        for line in wrap_lines(&about, 94).lines() {
            text += &format!("      {line}\n");
        }
    }
    text
}

/// The name, the type and the description of a parameter; for an object, also of each key.
fn parameter_lines(parameter: &Parameter) -> Vec<(String, String, String)> {
    let name = parameter.name;
    let item_suffix =
        if matches!(parameter.value_type, ParameterType::Objects(_)) { "[]" } else { "" };
    let key_suffix =
        if matches!(parameter.value_type, ParameterType::Object(_) | ParameterType::Map) {
            "[KEY]"
        } else {
            ""
        };
    let keys = parameter.value_type.keys();
    let keys =
        keys.iter().map(|key| parameter_line(format!("{name}{item_suffix}[{}]", key.name), key));
    std::iter::once(parameter_line(format!("{name}{key_suffix}"), parameter)).chain(keys).collect()
}

fn parameter_line(name: String, parameter: &Parameter) -> (String, String, String) {
    let mut description = parameter.about.to_owned();
    if let Some(words) = parameter.value_type.words() {
        description = format!("{} ({})", description.trim_end_matches('.'), words.join(", "));
    }
    let remarks = parameter_remarks(parameter);
    if !remarks.is_empty() {
        description += &format!(" [{}]", remarks.join("; "));
    }
    (
        name + if parameter.required { "*" } else { "" },
        parameter.value_type.to_string(),
        description,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_listed_once() {
        let list = list_text();
        for operation in operations::all_operations() {
            let id = operation.row().id;
            assert_eq!(
                list.lines().filter(|line| line.split_whitespace().next() == Some(id)).count(),
                1,
                "{id}"
            );
        }
    }

    #[test]
    fn the_help_of_an_operation_explains_every_parameter() {
        for op in operations::all_operations() {
            let help = operation_text(op);
            let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
            for parameter in request_parameters(op.row()) {
                assert!(
                    help.contains(parameter.name)
                        && words.contains(parameter.about.trim_end_matches('.')),
                    "{help}"
                );
            }
            let too_long = |line: &&str| line.starts_with("      ") && line.chars().count() > 100;
            assert_eq!(help.lines().find(too_long), None);
        }
    }
}
