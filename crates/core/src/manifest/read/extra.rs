//! Checks the keys below `extra:`, which are fields of an object that undrift does not know yet.
//!
//! They are sent unchanged, in one body with the parameters that address the object. So a key must
//! not be one that the service reads as something else: the object, its namespace, another user to
//! act as, or a visibility that no guard checks. Names are compared as the service parses a form:
//! the part before `[`, here in any case.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use crate::{
    catalogue::{
        self,
        operations::{self, parameters},
    },
    field::Scope,
    kind::{Operations, Section, Spec},
    operation::{AnyOp, Op, Operation},
    yaml::{Data, Key, Node},
};

/// Names that address, select, impersonate or force in any operation.
const RESERVED: &str = "access_token filter force id job_token namespace namespace_id path \
    private_token sudo user_id username";

/// Names of the visibility in older releases of the service.
const VISIBILITY: [&str; 2] = ["public", "visibility_level"];

/// The parameters of the operations that write a section.
static PARAMETERS: LazyLock<BTreeMap<(Scope, &'static str), BTreeSet<&'static str>>> =
    LazyLock::new(|| {
        let names = |section: Section| {
            operations_of(section).flat_map(parameters).map(|parameter| parameter.name).collect()
        };
        catalogue::everywhere()
            .map(|section| ((section.home.scope, section.section), names(section)))
            .collect()
    });

/// The operations that write `section`.
fn operations_of(section: Section) -> impl Iterator<Item = &'static Operation> {
    let home = section.home;
    let Operations { create, edit, delete, .. } = home.operations;
    let own: Vec<_> = [create, edit, delete].into_iter().flatten().map(Op::row).collect();
    let writes = operations::all()
        .filter_map(|op| if let AnyOp::Write(op) = op { Some(op.row()) } else { None });
    writes.filter(move |row| {
        row.fields.is_some_and(|(of, _)| of == (home.scope, section.section)) || own.contains(row)
    })
}

/// Why a name is not allowed below `extra:`, and help. Only names of undrift and the service are
/// quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) help: String,
}

/// Whether `written` is allowed below the `extra:` of `section`.
///
/// # Errors
/// Why it is not allowed.
pub(super) fn check(of: Section, written: &str) -> Result<(), Refused> {
    let (name, section, scope) = (base(written), of.section, of.home.scope);
    let (container, _) = catalogue::container(scope);
    let is_of_creation =
        || of.comes_with_container() && find(container.table().specs(), &name).is_some();
    let known = match find(of.table().specs(), &name) {
        Some(spec) if spec.name != name => {
            Some(format!("write `{}` directly in `{section}`", spec.name))
        }
        None if name != "state" => {
            is_of_creation().then(|| format!("write it directly in `{}`", container.section))
        }
        _ => Some(format!("write it directly in `{section}`")),
    };
    if let Some(help) = known {
        return Err(Refused { message: format!("`{name}` is known to undrift"), help });
    }
    let is_parameter = || PARAMETERS.get(&(scope, section)).is_some_and(|all| all.contains(&*name));
    let selects = "it selects what a request is for, or who sends it";
    let (what, why, help) = if VISIBILITY.contains(&&*name) {
        (format!("`{name}`"), "it sets the visibility", "write `visibility` in `settings`")
    } else if name.starts_with('_') {
        let help = "leave it out; `extra` is for fields of the object itself";
        ("a name that starts with `_`".to_owned(), selects, help)
    } else if RESERVED.split(' ').any(|reserved| reserved == name) || is_parameter() {
        let help = match &*name {
            "path" => {
                "to rename it, write the new `path` at the top, and the former one in `previously`"
            }
            _ => "leave it out; `extra` is for fields of the object itself",
        };
        (format!("`{name}`"), selects, help)
    } else {
        return Ok(());
    };
    let message = format!("{what} must not stand below `extra`: {why}");
    Err(Refused { message, help: help.to_owned() })
}

/// The key in `value` that begins a reference or a template which is not well-formed, and the
/// error. Below `extra`, `env` and `file` mean nothing else, nor does `text` with braces in it.
pub(super) fn malformed(value: &Node) -> Option<(&Key, Refused)> {
    let entries = value.entries();
    let found = entries.iter().find(|(key, value)| {
        let is_whole = entries.len() == 1 && !matches!(value.data, Data::List(_) | Data::Map(_));
        let is_reference = match &*key.name {
            "env" | "file" => true,
            "text" => has_braces(value),
            _ => false,
        };
        is_reference && !is_whole
    });
    let Some((key, _)) = found else {
        return entries.iter().map(|(_, value)| value).chain(value.items()).find_map(malformed);
    };
    let (what, form) = match &*key.name {
        "env" => ("reference", "{env: NAME}"),
        "file" => ("reference", "{file: PATH}"),
        _ => ("template", "{text: '...'}"),
    };
    let message = format!("`{}` below `extra` is not a well-formed {what}", key.name);
    let help = format!("write `{form}`: one text, and no other key beside it");
    Some((key, Refused { message, help }))
}

/// Whether a text in `value` has braces.
fn has_braces(value: &Node) -> bool {
    let mut inner = value.entries().iter().map(|(_, value)| value).chain(value.items());
    value.text().is_some_and(|text| text.contains('{')) || inner.any(has_braces)
}

/// The name as the service reads it: brackets are nested keys, and surrounding white space may be
/// ignored.
fn base(written: &str) -> String {
    let brackets = |c: char| c == '[' || c == ']' || c.is_whitespace();
    written
        .trim_start_matches(brackets)
        .split(['[', ']'])
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_lowercase()
}

/// The field that is called `name` in manifests, requests or responses.
fn find<'s>(specs: &'s [Spec], name: &str) -> Option<&'s Spec> {
    specs.iter().find(|spec| {
        spec.name == name || spec.field.sent_name() == name || spec.field.live_name() == Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::{Shape, testing};

    fn is_refused(section: &str, name: &str) -> bool {
        check(testing::section(section), name).is_err()
    }

    /// The operations that write a section, found by their paths.
    fn writes(section: &str) -> Vec<&'static Operation> {
        let rows = operations::all().filter(|op| matches!(op, AnyOp::Write(_))).map(AnyOp::row);
        let is_written = |row: &&Operation| match section {
            "settings" => {
                ["project-create", "project-create-for-user", "project-edit"].contains(&row.id)
            }
            "shares" => row.path.starts_with("/projects/:id/share"),
            "pipeline_schedule_variables" => row.path.contains("_schedule_id/variables"),
            "job_token_scope"
            | "job_token_allowlist"
            | "job_token_groups_allowlist"
            | "package_protection_rules"
            | "registry_protection_rules" => row.fields.is_some_and(|((_, of), _)| of == section),
            section => {
                let below = format!("/projects/:id/{section}");
                let is_below = ["_schedule_id/variables", "/custom_headers/", "/url_variables/"];
                row.path.starts_with(&below) && !is_below.iter().any(|part| row.path.contains(part))
            }
        };
        rows.filter(is_written).collect()
    }

    #[test]
    fn no_parameter_of_an_operation_is_allowed_below_extra() {
        let fielded = |section: &Section| matches!(section.shape, Shape::List | Shape::Mapping);
        for kind in catalogue::sections(Scope::Project).filter(fielded) {
            let (section, rows) = (kind.section, writes(kind.section));
            assert!(!rows.is_empty(), "{section}");
            let taken = rows.into_iter().flat_map(parameters).map(|parameter| parameter.name);
            let own = kind.table().specs().iter().map(|spec| spec.name);
            for name in taken
                .chain(own)
                .chain(RESERVED.split(' '))
                .chain(VISIBILITY)
                .chain(["_method", "_", "state"])
            {
                for written in [
                    name.to_owned(),
                    name.to_uppercase(),
                    format!("{name}[a]"),
                    format!("{name}[]"),
                    format!("[{name}]"),
                    format!(" {name} "),
                ] {
                    assert!(is_refused(section, &written), "{section}: {written}");
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
        let help = |section, name| check(testing::section(section), name).unwrap_err().help;
        assert_eq!(help("settings", "Description"), "write it directly in `settings`");
        assert_eq!(help("settings", "initialize_with_readme"), "write it directly in `create`");
        assert_eq!(
            help("settings", "container_expiration_policy_attributes"),
            "write `container_expiration_policy` directly in `settings`"
        );
        assert_eq!(help("settings", "avatar_url"), "write `avatar` directly in `settings`");
        assert_eq!(help("members", "username"), "write `user` directly in `members`");
        assert_eq!(help("settings", "visibility_level"), "write `visibility` in `settings`");
    }
}
