//! Compares declarations with the release of the service.

use super::Limit;
use crate::{kind::Section, release::Known, value::Value};

/// Whether the service can do what a field declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can, as far as known.
    Fits,
    /// It has no such field; the field then only steers undrift.
    Local,
    /// That depends on its release, which was not read yet.
    Depends,
    /// It cannot.
    Unfit(Limit),
}

/// Whether a service of this release can do what the field `name` declares.
pub fn fit(section: Section, name: &str, declared: &Value, release: Known) -> Support {
    let table = section.table();
    let Some(spec) = table.get(name).filter(|spec| spec.depends_on_release(declared)) else {
        return Support::Fits;
    };
    let is_there = spec.field.available.since.is_some_and(|since| release.has(since));
    match release {
        Known::NotAsked => Support::Depends,
        _ if spec.field.available.local_before && !is_there => Support::Local,
        Known::Hidden => Support::Fits,
        Known::Is(release) => match table.unfit(spec, declared, release) {
            Some(unfit) => {
                let message = format!("{}; the service has release {release}", unfit.message);
                Support::Unfit(Limit::Refused("release", message, unfit.help))
            }
            None => Support::Fits,
        },
    }
}
