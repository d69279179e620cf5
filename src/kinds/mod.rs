//! Every kind that undrift manages. A new one is a file here and a line below.

pub mod operations;
pub mod reference;

use crate::kind::Kind;

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
