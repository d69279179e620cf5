//! Every kind that undrift manages. A new one is a file here and a line below.

pub mod operations;
pub mod reference;
pub mod words;

use std::{collections::BTreeSet, sync::LazyLock};

use serde::{Serialize, Serializer};

use crate::{
    kind::Kind,
    operation::{OPERATIONS, Parameter},
    text,
    value::Json,
};

macro_rules! kinds {
    ($($module:ident::$kind:ident,)*) => {
        $(pub mod $module;)*
        /// In the order in which they are planned, shown and documented.
        pub static KINDS: &[&dyn Kind] = &[$(&$module::$kind,)*];
    };
}

kinds! {
    settings::Settings,
    variable::Variables,
    member::Members,
    hook::Hooks,
    push_rule::PushRule,
    archived::Archived,
}

/// The kind of a manifest section.
pub fn of_section(section: &str) -> Option<&'static dyn Kind> {
    KINDS.iter().copied().find(|kind| kind.section() == section)
}

/// The names of all fields of manifests and requests, those within others included.
static NAMES: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    fn of_schema(schema: &'static Json, names: &mut BTreeSet<&'static str>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            names.insert(name);
            of_schema(property, names);
        }
    }
    fn of_parameter(parameter: &Parameter, names: &mut BTreeSet<&'static str>) {
        names.insert(parameter.name);
        parameter.value.keys().iter().for_each(|part| of_parameter(part, names));
    }
    let mut names = BTreeSet::new();
    KINDS
        .iter()
        .map(|kind| kind.table())
        .chain([settings::create_table()])
        .for_each(|table| of_schema(&table.schema, &mut names));
    let parameters = OPERATIONS.iter().flat_map(|op| operations::parameters(op.row()));
    parameters.for_each(|parameter| of_parameter(parameter, &mut names));
    names
});

/// `name`, if it is that of a field: then it is a word that undrift itself wrote, and no data.
pub fn name(name: &str) -> Option<&'static str> {
    NAMES.get(name).copied()
}

/// Serializes what a field is called: as a word, if it is a field that undrift knows, and not one
/// below `extra:`.
///
/// # Errors
/// Those of `serializer`.
pub fn serialize_name<S: Serializer>(written: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match name(written) {
        Some(name) => text::word(&name, serializer),
        None => serializer.serialize_str(written),
    }
}

/// Serializes what fields are called, each as [`serialize_name`] does.
///
/// # Errors
/// Those of `serializer`.
pub fn serialize_names<S: Serializer>(
    written: &[String],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Name<'n>(&'n str);
    impl Serialize for Name<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serialize_name(self.0, serializer)
        }
    }
    serializer.collect_seq(written.iter().map(|name| Name(name)))
}
