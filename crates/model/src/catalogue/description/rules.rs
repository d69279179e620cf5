//! The rules of kinds without rules in Rust: all that a description says about them.

use crate::{
    catalogue::{members, protected_branches::rule_effects},
    field::{NamedObject, ValueType},
    kind::{Capability, Effect, EntryFault, Kind, KindRules, Reporter, Risk, texts},
    text,
    value::{self, Fields, Json, Object},
};

impl Kind {
    /// The lists of this type, each with the verb for what it allows, or for what needs approvals.
    fn lists_of(&self, value_type: ValueType) -> Vec<(&'static str, &'static str)> {
        let lists = self.fields.iter().filter(|field| field.value_type == value_type);
        lists.filter_map(|field| Some((field.name, field.grants.lets?))).collect()
    }
}

impl KindRules for Kind {
    fn check(&self, declared: &Fields, _is_as_written: bool, report: Reporter<'_>) {
        let has_one = self.either.iter().any(|name| declared.contains_key(name));
        if let Some(first) = self.either.first().filter(|_| !has_one) {
            let (one, names) = (text::with_article(self.noun), text::alternatives(self.either));
            report(
                EntryFault::for_field(texts::NONE_OF_SEVERAL, first)
                    .fill("one", &one)
                    .fill("names", &names),
            );
        }
        for (list, _) in self.lists_of(ValueType::Approvals) {
            let rows = declared.get(list).and_then(value::Value::list).into_iter().flatten();
            if !rows
                .clone()
                .all(|row| GRANTEE_KEYS.iter().filter(|name| !row[**name].is_null()).count() == 1)
            {
                let names = text::alternatives(&GRANTEE_KEYS);
                report(EntryFault::for_field(texts::ROWS_NAME_ONE, list).fill("names", &names));
            }
        }
    }

    fn effects(&self, _: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        // The stake of a switch suffices.
        let declared_grants = self.grants.iter().filter(|name| {
            before.is_empty() && after.get(**name).is_some_and(|value| !value.is_boolean())
        });
        // A new project has to declare whose job tokens it accepts, but not whose code runs its jobs.
        let grant_effects = declared_grants.map(|_| {
            let risk =
                if self.names_any(NamedObject::Runner) { Risk::Opens } else { Risk::Weakens };
            Effect::Risk(risk, format!("add a {}", self.noun))
        });
        let (grant_lists, approval_lists) =
            (self.lists_of(ValueType::Grants), self.lists_of(ValueType::Approvals));
        let weakened_approvals = approval_lists.iter().filter(|(name, _)| {
            let [old, new] =
                [before, after].map(|fields| fields.get(*name).and_then(Json::as_array));
            old.zip(new).is_some_and(|(old, new)| are_weakened(old, new))
        });
        let fewer = weakened_approvals.map(|(_, does)| {
            Effect::Risk(Risk::Weakens, format!("require fewer approvals to {does}"))
        });
        let lists: Vec<_> =
            grant_lists.iter().chain(&approval_lists).map(|(list, _)| *list).collect();
        // An entry that grants something has the name or pattern of what is protected.
        let pattern = self.identity.first().filter(|_| !lists.is_empty());
        let rules =
            pattern.map(|name| rule_effects(name, before, after, &grant_lists, &lists, false));
        // undrift does not know which people get the level.
        let level = self.fields.iter().find(|field| field.value_type == ValueType::Level);
        let access = level.map(|level| Effect::Share {
            group: None,
            before: members::level_number(before, level.name),
            after: members::level_number(after, level.name),
            ends: false,
        });
        let [had_grants, has_grants] = [before, after].map(|fields| {
            self.grants.iter().any(|name| fields.get(*name).is_some_and(|value| *value != false))
        });
        // Rules name its entries, which must grant something by then.
        let people =
            (self.called_by.is_some() && had_grants != has_grants).then_some(Effect::Capability {
                what: Capability::People,
                before: had_grants,
                after: has_grants,
            });
        let rules = rules.into_iter().flatten();
        grant_effects.chain(access).chain(rules).chain(fewer).chain(people).collect()
    }
}

/// The keys of a row of which it has one.
const GRANTEE_KEYS: [&str; 3] = ["access_level", "user", "group"];

/// True if an approval that `before` requires is no longer required, or can be given by others too.
fn are_weakened(before: &[Json], after: &[Json]) -> bool {
    before.iter().any(|old| !after.iter().any(|new| requires_as_much(old, new)))
}

/// True if the approval `new` is by the same people as `old`, and requires no less.
fn requires_as_much(old: &Json, new: &Json) -> bool {
    let [[old_number, old_type], [new_number, new_type]] = [old, new].map(|row| {
        ["required_approvals", "group_inheritance_type"]
            .map(|name| row[name].as_u64().unwrap_or_default())
    });
    ["access_level", "user_id", "group_id"].iter().all(|name| old[*name] == new[*name])
        && new_number >= old_number
        && new_type <= old_type
}
