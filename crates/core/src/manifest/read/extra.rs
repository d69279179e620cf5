//! Checks the keys below `extra:`: fields of an object that undrift does not know yet.
//!
//! These fields are sent unchanged, in one body with the parameters that address the object. Some
//! keys are refused: they would select another object or namespace, act as another user, or set a
//! visibility that no guard checks. The service only uses the part of a name before `[`, so only
//! this part is compared. The comparison ignores case.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use crate::{
    catalogue::{
        self,
        operations::{self, request_parameters},
    },
    field::Scope,
    kind::{FieldSpec, Operations, Section},
    manifest::faults::{LocatedFault, placeholders, texts},
    operation::{AnyOp, Op, Operation},
    yaml::{Node, NodeValue},
};

/// Names of parameters that address or select objects, impersonate users, or force any operation.
const RESERVED_NAMES: &str = "access_token filter force id job_token namespace namespace_id path \
    private_token sudo user_id username";

/// Names of visibility parameters in older releases of the service.
const OLD_VISIBILITY_NAMES: [&str; 2] = ["public", "visibility_level"];

/// The parameters of the operations that write each section, by scope and name of the section.
static WRITE_PARAMETERS: LazyLock<BTreeMap<(Scope, &'static str), BTreeSet<&'static str>>> =
    LazyLock::new(|| {
        let parameter_sets = catalogue::all_sections().map(|section| {
            let parameters = writing_operations(section).flat_map(request_parameters);
            let names = parameters.map(|parameter| parameter.name).collect();
            ((section.scoped_kind.scope, section.section), names)
        });
        parameter_sets.collect()
    });

/// The operations that write `section`.
fn writing_operations(section: Section) -> impl Iterator<Item = &'static Operation> {
    let scoped_kind = section.scoped_kind;
    let Operations { create, edit, delete, .. } = scoped_kind.operations;
    let kind_operations: Vec<_> =
        [create, edit, delete].into_iter().flatten().map(Op::row).collect();
    let write_operations = operations::all_operations()
        .filter_map(|op| if let AnyOp::Write(op) = op { Some(op.row()) } else { None });
    write_operations.filter(move |row| {
        row.fields
            .is_some_and(|(section_key, _)| section_key == (scoped_kind.scope, section.section))
            || kind_operations.contains(row)
    })
}

/// Checks that `key` is allowed below the `extra:` of a section.
///
/// # Errors
/// A fault that quotes only names of undrift and the service.
pub(super) fn check_extra_key<A>(
    section: Section,
    key: &str,
    position: A,
) -> Result<(), LocatedFault<A>> {
    let (name, section_name, scope) =
        (parameter_name(key), section.section, section.scoped_kind.scope);
    let (container, _) = catalogue::container(scope);
    // `state` on the service has another meaning than `state` of an entry.
    let removal_hint = match catalogue::words::find_meaning(&[section_name], "state") {
        Some(catalogue::words::Meaning::Leave(reason)) => format!(": {reason}"),
        _ => "; to remove an entry, write `state: absent` next to `extra`".to_owned(),
    };
    let spec = find_spec(section.specs(), &name);
    let is_in_container = spec.is_none()
        && name != "state"
        && section.is_created_with_container()
        && find_spec(container.specs(), &name).is_some();
    let fault_texts = match spec {
        Some(spec) if spec.name != name => texts::EXTRA_OTHER_NAME,
        Some(_) => texts::EXTRA_KNOWN,
        None if name == "state" => texts::EXTRA_STATE,
        None if is_in_container => texts::EXTRA_KNOWN,
        None if OLD_VISIBILITY_NAMES.contains(&&*name) => texts::EXTRA_VISIBILITY,
        None if name.starts_with('_') => texts::EXTRA_UNDERSCORE,
        None if name == "path" => texts::EXTRA_PATH,
        None if RESERVED_NAMES.split(' ').any(|reserved| reserved == name)
            || WRITE_PARAMETERS
                .get(&(scope, section_name))
                .is_some_and(|names| names.contains(&*name)) =>
        {
            texts::EXTRA_RESERVED
        }
        None => return Ok(()),
    };
    let field = spec.map_or("", |spec| spec.name);
    let section = if is_in_container { container.section } else { section_name };
    let args = placeholders![name, section, field, instead = removal_hint];
    Err(LocatedFault::new(fault_texts, position, args))
}

/// The fault of the first malformed reference or template in `value`. Below `extra`, the keys
/// `env`, `file`, and `text` with braces are always references and templates.
pub(super) fn find_malformed_form(value: &Node) -> Option<LocatedFault> {
    let entries = value.entries();
    let malformed_entry = entries.iter().find_map(|(key, value)| {
        let form = match &*key.name {
            "env" => ("reference", "{env: NAME}"),
            "file" => ("reference", "{file: PATH}"),
            "text" if has_braces(value) => ("template", "{text: '...'}"),
            _ => return None,
        };
        let is_well_formed =
            entries.len() == 1 && !matches!(value.data, NodeValue::List(_) | NodeValue::Map(_));
        (!is_well_formed).then_some((key, form))
    });
    let Some((key, (what, form))) = malformed_entry else {
        return value.children().find_map(find_malformed_form);
    };
    let args = placeholders![key = key.name, what, form];
    Some(LocatedFault::new(texts::EXTRA_MALFORMED, key.span.clone(), args))
}

/// True if a text in `value` has braces.
fn has_braces(value: &Node) -> bool {
    value.text().is_some_and(|text| text.contains('{')) || value.children().any(has_braces)
}

/// The name as the service parses it: without nested keys in brackets, and without white space
/// around the name. In lower case.
fn parameter_name(key: &str) -> String {
    key.trim_start_matches(|c: char| c == '[' || c == ']' || c.is_whitespace())
        .split(['[', ']'])
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_lowercase()
}

/// The field that is called `name` in manifests, requests or responses.
fn find_spec<'s>(specs: &'s [FieldSpec], name: &str) -> Option<&'s FieldSpec> {
    specs.iter().find(|spec| {
        spec.name == name || spec.field.sent_name() == name || spec.field.live_name() == Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{Shape, testing};

    fn is_refused(section: &str, name: &str) -> bool {
        check_extra_key(testing::project_section(section), name, ()).is_err()
    }

    /// The operations that write a section, found by their paths.
    fn find_write_operations(section: &str) -> Vec<&'static Operation> {
        let rows =
            operations::all_operations().filter(|op| matches!(op, AnyOp::Write(_))).map(AnyOp::row);
        let writes_section = |row: &&Operation| match section {
            "settings" => {
                ["project-create", "project-create-for-user", "project-edit"].contains(&row.id)
            }
            "shares" => row.path.starts_with("/projects/:id/share"),
            "pipeline_schedule_variables" => row.path.contains("_schedule_id/variables"),
            "branches"
            | "job_token_scope"
            | "job_token_allowlist"
            | "job_token_groups_allowlist"
            | "package_protection_rules"
            | "registry_protection_rules" => {
                row.fields.is_some_and(|((_, section_name), _)| section_name == section)
            }
            section => {
                let base = format!("/projects/:id/{section}");
                let excluded = ["_schedule_id/variables", "/custom_headers/", "/url_variables/"];
                row.path.starts_with(&base) && !excluded.iter().any(|part| row.path.contains(part))
            }
        };
        rows.filter(writes_section).collect()
    }

    #[test]
    fn no_parameter_of_an_operation_is_allowed_below_extra() {
        let has_fields = |section: &Section| matches!(section.shape, Shape::List | Shape::Mapping);
        for kind in catalogue::sections(Scope::Project).filter(has_fields) {
            let (section, rows) = (kind.section, find_write_operations(kind.section));
            assert!(!rows.is_empty(), "{section}");
            let parameter_names =
                rows.into_iter().flat_map(request_parameters).map(|parameter| parameter.name);
            let field_names = kind.specs().iter().map(|spec| spec.name);
            for name in parameter_names
                .chain(field_names)
                .chain(RESERVED_NAMES.split(' '))
                .chain(OLD_VISIBILITY_NAMES)
                .chain(["_method", "_", "state"])
            {
                for spelling in [
                    name.to_owned(),
                    name.to_uppercase(),
                    format!("{name}[a]"),
                    format!("{name}[]"),
                    format!("[{name}]"),
                    format!(" {name} "),
                ] {
                    assert!(is_refused(section, &spelling), "{section}: {spelling}");
                }
            }
            for name in [
                "new_thing",
                "idle",
                "sudoku",
                "paths",
                "filters",
                "new_thing[id]",
                "token_format",
                "new_",
            ] {
                assert!(!is_refused(section, name), "{section}: {name}");
            }
        }
        assert!(
            is_refused("members", "tasks_project_id") && is_refused("members", "skip_subresources")
        );
    }

    #[test]
    fn the_message_names_the_place_of_a_known_field() {
        let extra_help = |section, name| {
            check_extra_key(testing::project_section(section), name, ()).unwrap_err().help.unwrap()
        };
        assert_eq!(extra_help("settings", "Description"), "write it directly in `settings`");
        assert_eq!(
            extra_help("settings", "initialize_with_readme"),
            "write it directly in `create`"
        );
        assert_eq!(
            extra_help("settings", "container_expiration_policy_attributes"),
            "write `container_expiration_policy` directly in `settings`"
        );
        assert_eq!(extra_help("settings", "avatar_url"), "write `avatar` directly in `settings`");
        assert_eq!(extra_help("members", "username"), "write `user` directly in `members`");
        assert_eq!(extra_help("settings", "visibility_level"), "write `visibility` in `settings`");
    }
}
