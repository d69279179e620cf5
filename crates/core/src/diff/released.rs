//! Compares declarations with the release of the service.

use super::Problem;
use crate::{
    address::Address,
    kind::{Section, Unsupported},
    origin::Origin,
    release::{Known, Release},
    value::Value,
};

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
    Unfit(NotInRelease),
}

/// Why the service cannot do it, and its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotInRelease(Unsupported, Release);

impl NotInRelease {
    /// The problem to repair at `address`.
    pub fn problem(self, address: Address, origin: Origin) -> Problem {
        let Self(unfit, release) = self;
        let message = format!("{}; the service has release {release}", unfit.message);
        Problem { address, code: "release", message, help: Some(unfit.help), origin }
    }
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
            Some(unfit) => Support::Unfit(NotInRelease(unfit, release)),
            None => Support::Fits,
        },
    }
}
