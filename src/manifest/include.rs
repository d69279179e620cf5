//! What rules with `undeclared: include` bring in, once it is known what exists.
//!
//! [`Includes`] are the rules, kept after everything that is declared was merged and checked. They
//! say [what has to be known](Includes::ask) of the service; what they [bring in](Includes::bring_in)
//! is put together and checked like everything else. It reads no service: whoever does hands the
//! roster over.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    check::{self, Context},
    faults::Faults,
    layer::Rules,
    locate, parallel,
    read::File,
};
use crate::{
    cause::Cause,
    desired::{Ask, Desired, Roster, Standing},
    diagnostic::{Diagnostics, Severity},
    field::Scope,
    kind::Section,
    text::escape,
    value::Value,
};

/// Rules that bring in what nobody declares.
#[derive(Debug)]
pub struct Includes {
    rules: Rules,
    context: Context,
    files: Vec<File>,
    /// The paths of everything that is declared, named or not, in lower case.
    declared: BTreeSet<String>,
}

impl Includes {
    pub(super) fn of(
        rules: Rules,
        context: Context,
        files: Vec<File>,
        declared: BTreeSet<String>,
    ) -> Option<Self> {
        let includes = rules.including_globs().next().is_some();
        includes.then_some(Self { rules, context, files, declared })
    }

    /// What has to be known of what exists beside what is `desired`.
    pub fn ask<'a>(&'a self, desired: &'a Desired) -> Ask<'a> {
        Ask {
            globs: self
                .rules
                .including_globs()
                .map(|(scope, glob)| (scope, glob.clone()))
                .collect(),
            fields: self.fields(),
            declared: &desired.containers,
            standing: Box::new(|scope, path| self.standing(desired, scope, path)),
        }
    }

    /// The fields that may be declared of what they bring in.
    fn fields(&self) -> Vec<(Section, BTreeSet<String>)> {
        let mut fields: BTreeMap<_, (Section, BTreeSet<String>)> = BTreeMap::new();
        for (scope, body) in self.rules.bodies() {
            for section in &body.sections {
                let known = fields.entry((scope, section.of.section));
                let (_, names) = known.or_insert_with(|| (section.of, BTreeSet::new()));
                let all = section.parts.iter().flat_map(|part| part.fields.keys());
                names.extend(all.map(str::to_owned));
            }
        }
        fields.into_values().collect()
    }

    /// The secrets and the files to upload that rules name.
    pub fn named(&self) -> impl Iterator<Item = Value> {
        let parts = self.rules.bodies().flat_map(|(_, body)| &body.sections);
        let fields = parts.flat_map(|section| &section.parts).map(|part| &part.fields);
        fields.flat_map(|fields| fields.named().map(|named| named.value))
    }

    /// What is at `path`, where `desired` says that it was elsewhere before too.
    fn standing(&self, desired: &Desired, scope: Scope, path: &str) -> Standing {
        let home = desired.moves.home(path);
        if self.declared.contains(&home.to_lowercase()) {
            Standing::Declared
        } else if self.rules.includes(scope, &home) && self.context.manages(&home) {
            Standing::Included
        } else {
            Standing::Other
        }
    }

    /// `desired` with what the rules bring in of `roster`. Where something was looked for and nothing
    /// is, the roster is incomplete, unless the caller sees everything or declares what is to be
    /// there.
    ///
    /// # Errors
    /// What is wrong with rules where they hold for what they bring in. Their warnings were told when
    /// the manifests were loaded.
    pub fn bring_in(
        &self,
        desired: Desired,
        roster: &mut Roster,
        sees_all: bool,
    ) -> Result<Desired, Diagnostics> {
        let is_hidden = |root: &&String| !sees_all && !self.declared.contains(&root.to_lowercase());
        let nowhere = roster.nowhere.iter().filter(is_hidden).map(|root| {
            let name = escape(root);
            let why = format!("no group or user `{name}` exists, or the token cannot see it");
            (format!("{root}/**").into(), Cause::new(why))
        });
        roster.incomplete.extend(nowhere);
        let members = roster.members.iter().filter(|member| member.exception.is_none());
        let paths = members.map(|member| (member.scope, desired.moves.home(&member.path)));
        let brought = parallel::for_each(paths.collect(), |(scope, path)| {
            let (included, faults) = self.rules.include(scope, &path)?;
            let (container, found) = check::included(included, &self.context);
            Some((container, faults.0.into_iter().chain(found.0)))
        });
        let (mut containers, mut faults) = (Vec::new(), Faults::default());
        for (container, found) in brought.into_iter().flatten() {
            containers.push(container);
            faults.0.extend(found.filter(|fault| fault.severity == Severity::Error));
        }
        if !faults.0.is_empty() {
            let placed = locate::place(faults, locate::Counts::new(), &self.files);
            return Err(placed.into_iter().collect());
        }
        Ok(desired.with(containers))
    }
}
