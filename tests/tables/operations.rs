//! Checks the table of operations against the facts of the reference, and for consistency.
//!
//! The facts are in `data/operations.tsv`: method and path of each operation of the reference.

use std::collections::BTreeSet;

use undrift::{
    catalogue::{
        self,
        operations::{self, operation_remarks, parameter_remarks, request_parameters},
    },
    field::{Scope, WriteRequest},
    operation::{
        AnyOp, Method, Operation, Parameter, ParameterLocation, ParameterType, ResponseBody,
    },
    release::Release,
    value::Object,
};

use super::reached::{Reach, reach};

fn rows() -> impl Iterator<Item = &'static Operation> {
    operations::all_operations().map(AnyOp::row)
}

/// The names of the parameters of a path.
fn path_parameters(row: &Operation) -> BTreeSet<&'static str> {
    row.path.split('/').filter_map(|segment| segment.strip_prefix(':')).collect()
}

/// The parameters of an operation, including nested ones.
fn all_parameters(row: &Operation) -> Vec<&'static Parameter> {
    request_parameters(row)
        .into_iter()
        .flat_map(|parameter| std::iter::once(parameter).chain(parameter.value_type.keys()))
        .collect()
}

fn parameter_names(row: &Operation, is_chosen: impl Fn(&Parameter) -> bool) -> Vec<&'static str> {
    request_parameters(row)
        .into_iter()
        .filter(|parameter| is_chosen(parameter))
        .map(|parameter| parameter.name)
        .collect()
}

/// The names of the parameters in one place that the reference's release has.
fn reference_parameters(id: &str, place: ParameterLocation) -> Vec<&'static str> {
    let is_late = |p: &Parameter| p.since.is_some_and(Release::is_after_reference);
    parameter_names(find(id), |p| p.location == place && !is_late(p))
}

fn find(id: &str) -> &'static Operation {
    operations::find_operation(id).unwrap_or_else(|| panic!("no {id}")).row()
}

#[test]
fn every_operation_of_the_reference_is_a_row_and_every_row_one_of_them() {
    let facts: BTreeSet<_> = include_str!("data/operations.tsv")
        .lines()
        .skip(1)
        .map(|line| line.rsplit_once('\t').unwrap().0)
        .collect();
    assert_eq!(facts.len(), 68);
    let table_rows: Vec<_> = rows()
        .filter(|row| row.source != "supporting")
        .map(|row| format!("{}\t{}", row.method, row.path))
        .collect();
    assert_eq!(table_rows.iter().map(String::as_str).collect::<BTreeSet<_>>(), facts);
    assert_eq!(table_rows.len(), facts.len());
}

/// The numbers of operations of the reference used for declarations, for reads, and for single
/// actions. `undrift call` covers all.
#[test]
fn every_operation_of_the_reference_is_reached() {
    let of_reference = || rows().filter(|row| row.source != "supporting").map(reach);
    let declaring = of_reference().filter(|reach| matches!(reach, Reach::Declaring(..))).count();
    let reading = of_reference().filter(|reach| *reach == Reach::Reading).count();
    assert_eq!((declaring, reading, of_reference().count()), (40, 6, 68));
    assert_eq!(reach(find("project-fork")), Reach::Declaring(Scope::Project, "create"));
    assert_eq!(reach(find("fork-relation-delete")), Reach::Declaring(Scope::Project, "fork_of"));
    assert_eq!(reach(find("project-archive")), Reach::Declaring(Scope::Project, "archived"));
    assert_eq!(reach(find("group-create")), Reach::Declaring(Scope::Group, "create"));
    assert_eq!(reach(find("project-star")), Reach::Calling);
}

#[test]
fn every_row_has_a_name_and_a_route_of_its_own_and_reads_only_with_get() {
    let distinct = |key: fn(&Operation) -> String| rows().map(key).collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(|row| row.id.to_owned()), operations::all_operations().count());
    assert_eq!(
        distinct(|row| format!("{} {}", row.method, row.path)),
        operations::all_operations().count()
    );
    for op in operations::all_operations() {
        let row = op.row();
        assert_eq!(matches!(op, AnyOp::Read(_)), row.method == Method::Get, "{}", row.id);
        assert!(row.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", row.id);
        assert!(!row.purpose.is_empty() && !row.purpose.ends_with('.'), "{}", row.id);
        let source = row.source == "supporting"
            || ["1, 4.", "2, 4."].iter().any(|chapter| row.source.starts_with(chapter));
        assert!(source, "{}: {}", row.id, row.source);
        assert_eq!(operations::find_operation(row.id).map(AnyOp::row), Some(row));
    }
    assert!(operations::find_operation("project").is_none());
}

#[test]
fn paths_and_their_parameters_agree() {
    for row in rows() {
        let path_params: Vec<_> = request_parameters(row)
            .into_iter()
            .filter(|parameter| parameter.location == ParameterLocation::Path)
            .collect();
        assert_eq!(
            path_params.iter().map(|parameter| parameter.name).collect::<BTreeSet<_>>(),
            path_parameters(row),
            "{}",
            row.id
        );
        assert!(
            path_params.iter().all(|parameter| parameter.required && !parameter.secret),
            "{}",
            row.id
        );
    }
}

#[test]
fn every_parameter_is_documented() {
    for row in rows() {
        let parameters = all_parameters(row);
        for parameter in &parameters {
            let at = format!("{} {}", row.id, parameter.name);
            assert!(!parameter.name.is_empty() && parameter.about.ends_with('.'), "{at}");
            assert!(parameter.value_type.words().is_none_or(|words| !words.is_empty()), "{at}");
            assert!(
                parameter.location != ParameterLocation::Body
                    || matches!(row.method, Method::Post | Method::Put | Method::Patch),
                "{at}: a body"
            );
            assert!(
                parameter.location == ParameterLocation::Body
                    || !parameter.secret && parameter.value_type != ParameterType::File,
                "{at}: shown in logs"
            );
            assert!(!parameter.secret || parameter.value_type == ParameterType::Text, "{at}");
            let replaced = parameter.replaced_by.is_none_or(|name| {
                parameters.iter().any(|other| other.name == name && !other.deprecated)
            });
            assert!(replaced && (parameter.deprecated || parameter.replaced_by.is_none()), "{at}");
            if let ParameterType::Object(keys) | ParameterType::Objects(keys) = parameter.value_type
            {
                assert!(
                    !keys.is_empty()
                        && keys.iter().all(|key| key.value_type.keys().is_empty() && !key.required),
                    "{at}"
                );
            }
        }
        let names = parameter_names(row, |_| true);
        assert_eq!(
            names.iter().collect::<BTreeSet<_>>().len(),
            names.len(),
            "{}: a name twice",
            row.id
        );
        assert!(row.one_of.iter().all(|name| names.contains(name)), "{}", row.id);
        let paged = names.contains(&"page") && names.contains(&"per_page");
        assert!(paged == (row.response == ResponseBody::List) || row.unpaged, "{}", row.id);
    }
}

#[test]
fn required_parameters_are_listed() {
    for (id, required) in [
        ("variable-create", vec!["key", "value"]),
        ("variable-update", vec!["value"]),
        ("import-extgit", vec!["personal_access_token", "repo_id", "target_namespace"]),
        ("import-extgit-cancel", vec!["project_id"]),
        ("import-extgit-gists", vec!["personal_access_token"]),
        (
            "import-extserver",
            vec![
                "personal_access_token",
                "extserver_url",
                "extserver_username",
                "extserver_project",
                "extserver_repo",
            ],
        ),
        ("group-member-add", vec!["user_id", "access_level"]),
        ("group-member-edit", vec!["access_level"]),
        ("project-member-add", vec!["user_id", "access_level"]),
        ("project-member-edit", vec!["access_level"]),
        ("group-member-state", vec!["state"]),
        ("project-create-for-user", vec!["name"]),
        ("project-upload", vec!["file"]),
        ("project-share", vec!["group_id", "group_access"]),
        ("hook-add", vec!["url"]),
        ("hook-edit", vec!["url"]),
        ("protected-branch-add", vec!["name"]),
        ("group-create", vec!["path"]),
        ("group-share", vec!["group_id", "group_access"]),
        ("group-hook-add", vec!["url"]),
        ("group-hook-edit", vec!["url"]),
        ("group-variable-create", vec!["key", "value"]),
        ("group-variable-update", vec!["value"]),
        ("pipeline-schedule-create", vec!["description", "ref", "cron"]),
        ("approval-rule-add", vec!["name", "approvals_required"]),
        ("approval-rule-edit", vec![]),
        ("user-find", vec!["username"]),
        ("merge-request-note-create", vec!["body"]),
        ("merge-request-note-edit", vec![]),
    ] {
        assert_eq!(
            parameter_names(find(id), |p| p.required && p.location != ParameterLocation::Path),
            required,
            "{id}"
        );
    }
    // A described operation requires what its description requires for a create.
    let described = catalogue::registry().described_operations().iter().map(|op| op.row());
    for row in described.clone() {
        let required: BTreeSet<_> =
            parameter_names(row, |p| p.required && p.location != ParameterLocation::Path)
                .into_iter()
                .collect();
        let of = row.fields.filter(|(_, route)| *route == WriteRequest::Create);
        let of = of.map(|((scope, section), _)| catalogue::find_section(scope, section).unwrap());
        let names = of.into_iter().flat_map(|of| {
            let all = of.identity.iter().chain(of.required_fields);
            // Of two fields that exclude each other, neither is required.
            let all = all.filter(move |name| of.has_field(&Object::new(), name));
            // The path has what an entry is below.
            let all =
                all.filter(move |name| of.scoped_kind.parent.is_none_or(|p| p.field != **name));
            all.map(move |name| of.table().sent_name(name))
        });
        assert_eq!(required, names.collect(), "{}", row.id);
    }
    let with: BTreeSet<_> = rows()
        .filter(|row| !described.clone().any(|other| other == *row))
        .filter(|row| {
            !parameter_names(row, |p| p.required && p.location != ParameterLocation::Path)
                .is_empty()
        })
        .map(|row| row.id)
        .collect();
    assert_eq!(with.len(), 30, "{with:?}");
    assert_eq!(find("project-create").one_of, ["name", "path"]);
}

#[test]
fn lists_of_projects_have_the_filters_of_the_reference() {
    let everywhere = 14;
    for (id, filters) in [
        ("project-list", everywhere + 3 + 10),
        ("user-project-list", everywhere + 3),
        ("starred-project-list", everywhere),
        ("fork-list", everywhere),
    ] {
        let names = parameter_names(find(id), |p| {
            p.location == ParameterLocation::Query && !["page", "per_page"].contains(&p.name)
        });
        assert_eq!(names.len(), filters, "{id}: {names:?}");
    }
    let order = |id| {
        request_parameters(find(id))
            .into_iter()
            .find(|p| p.name == "order_by")
            .and_then(|p| p.value_type.words())
            .unwrap()
            .len()
    };
    assert_eq!([order("project-list"), order("user-project-list")], [11, 6]);
}

#[test]
fn request_bodies_have_the_fields_of_the_kinds() {
    // The three columns of the reference's table of attributes (2, 4.3); `id` is in the path.
    let mut facts =
        include_str!("data/attributes.csv").lines().map(|line| line.split(',').collect::<Vec<_>>());
    let columns = facts.next().unwrap();
    let facts: Vec<_> = facts.filter(|row| row[0] != "id").collect();
    for (id, column) in [
        ("project-create", "create"),
        ("project-create-for-user", "create_for_user"),
        ("project-edit", "edit"),
    ] {
        let at = columns.iter().position(|name| *name == column).unwrap();
        let accepted: BTreeSet<_> =
            facts.iter().filter(|row| row[at] != "-").map(|row| row[0]).collect();
        // The service's own code ignores these in a create.
        let dropped: &[&str] = match id {
            "project-create" => &["merge_pipelines_enabled", "merge_trains_enabled"],
            _ => &[],
        };
        let mut names: BTreeSet<_> =
            reference_parameters(id, ParameterLocation::Body).into_iter().collect();
        names.extend(dropped);
        assert_eq!(names, accepted, "{id}");
    }
    assert_eq!(reference_parameters("push-rule-add", ParameterLocation::Body).len(), 11);
    // The reference leaves out `url_variables`, which the service has had since 15.2.
    assert_eq!(reference_parameters("hook-edit", ParameterLocation::Body).len(), 16 + 1);
    let all = [
        reference_parameters("variable-update", ParameterLocation::Query),
        reference_parameters("variable-update", ParameterLocation::Body),
    ];
    assert_eq!(
        all.concat(),
        ["filter", "environment_scope", "value", "variable_type", "protected", "masked", "raw"]
    );
    let secrets: BTreeSet<_> = rows().flat_map(|row| parameter_names(row, |p| p.secret)).collect();
    assert_eq!(
        secrets,
        BTreeSet::from([
            "api_key",
            "import_url",
            "password",
            "personal_access_token",
            "shared_secret",
            "token",
            "url",
            "user_key",
            "webhook"
        ])
    );
    let files: BTreeSet<_> = rows()
        .flat_map(|row| parameter_names(row, |p| p.value_type == ParameterType::File))
        .collect();
    assert_eq!(files, BTreeSet::from(["avatar", "file"]));
}

const INTRODUCTION: &str = "\
# Operations

The operations of the service: `undrift call OPERATION name=value...` sends one. Lists are read completely, unless `page` is given.
The last column of the table shows what else uses an operation. Parameters with a star are required. Secrets must be given as `@env:NAME` or `@file:PATH`, files as `@file:PATH`.

This page is generated: `UPDATE_SNAPSHOTS=1 cargo test --test tables` writes it again.
";

/// The whole page: an index, then a section for each operation.
fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    page +=
        "\n| operation | request | effect | what it does | reached by |\n|---|---|---|---|---|\n";
    for op in operations::all_operations() {
        let row = op.row();
        page += &format!(
            "| [`{0}`](#{0}) | `{1} {2}` | {3} | {4} | {5} |\n",
            row.id,
            row.method,
            row.path,
            op.effect(),
            row.purpose,
            reach(row)
        );
    }
    for op in operations::all_operations() {
        let row = op.row();
        page += &format!(
            "\n## `{}`\n\n`{} {}`: {}.\n",
            row.id,
            row.method,
            row.path,
            operation_remarks(row).join("; ")
        );
        let parameters = request_parameters(row);
        if !parameters.is_empty() {
            page += "\n| parameter | in | value | meaning |\n|---|---|---|---|\n";
            parameters.into_iter().for_each(|parameter| parameter_rows(&mut page, "", parameter));
        }
    }
    page
}

/// One row for a parameter, and one for each that is nested in it.
fn parameter_rows(page: &mut String, prefix: &str, parameter: &Parameter) {
    let remarks = parameter_remarks(parameter);
    let remarks =
        if remarks.is_empty() { String::new() } else { format!(" *{}.*", remarks.join("; ")) };
    let name = if prefix.is_empty() {
        parameter.name.to_owned()
    } else {
        format!("{prefix}[{}]", parameter.name)
    };
    let words: Vec<_> = parameter
        .value_type
        .words()
        .into_iter()
        .flatten()
        .map(|word| format!("`{word}`"))
        .collect();
    let value = if words.is_empty() { parameter.value_type.to_string() } else { words.join(", ") };
    let place = match parameter.location {
        ParameterLocation::Path => "path",
        ParameterLocation::Query => "query",
        ParameterLocation::Body => "body",
    };
    let star = if parameter.required { " \\*" } else { "" };
    *page += &format!(
        "| `{name}`{star} | {place} | {value} | {}{remarks} |\n",
        parameter.about.replace('|', "\\|")
    );
    let name = if matches!(parameter.value_type, ParameterType::Objects(_)) {
        format!("{name}[]")
    } else {
        name
    };
    parameter.value_type.keys().iter().for_each(|key| parameter_rows(page, &name, key));
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/operations.md");
    let page = page();
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/operations.md is out of date: run `UPDATE_SNAPSHOTS=1 cargo test --test tables`"
    );
}
