//! The default rules of kinds, derived from their descriptions. Some kinds have rules in Rust instead.

use crate::{
    catalogue::{members, protected_branches::rule_effects},
    field::{NamedObject, ValueType},
    kind::{Capability, Effect, EntryFault, Kind, KindRules, Reporter, Risk, fault_text},
    text,
    value::{self, Fields, Json, Object},
};

impl Kind {
    /// The fields of this type, each with a verb such as `deploy`. The verb names what the listed
    /// people may do, or what needs their approval.
    fn fields_with_verbs(&self, value_type: ValueType) -> Vec<(&'static str, &'static str)> {
        let lists = self.fields.iter().filter(|field| field.value_type == value_type);
        lists.filter_map(|field| Some((field.name, field.grants.lets?))).collect()
    }
}

impl KindRules for Kind {
    fn check(&self, declared: &Fields, _is_unresolved: bool, report: Reporter<'_>) {
        let has_either = self.either.iter().any(|name| declared.contains_key(name));
        if let Some(first_name) = self.either.first().filter(|_| !has_either) {
            let (noun_phrase, names) =
                (text::with_article(self.noun), text::alternatives(self.either));
            report(
                EntryFault::for_field(fault_text::NONE_OF_SEVERAL, first_name)
                    .fill("one", &noun_phrase)
                    .fill("names", &names),
            );
        }
        for (list, _) in self.fields_with_verbs(ValueType::Approvals) {
            let rows = declared.get(list).and_then(value::Value::list).into_iter().flatten();
            if !rows
                .clone()
                .all(|row| GRANTEE_KEYS.iter().filter(|name| !row[**name].is_null()).count() == 1)
            {
                let names = text::alternatives(&GRANTEE_KEYS);
                report(
                    EntryFault::for_field(fault_text::ROWS_NAME_ONE, list).fill("names", &names),
                );
            }
        }
    }

    fn effects(&self, _: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        // Flags are skipped, because the risk of a flag is described at its field.
        let added_grants = self.grants.iter().filter(|name| {
            before.is_empty() && after.get(**name).is_some_and(|value| !value.is_boolean())
        });
        // Runners use `Opens`, which guards also check in a new project. The other lists use
        // `Weakens`, which guards do not check in a new project. Each new project must declare
        // whose job tokens it accepts.
        let grant_effects = added_grants.map(|_| {
            let risk =
                if self.refers_to(NamedObject::Runner) { Risk::Opens } else { Risk::Weakens };
            Effect::Risk(risk, format!("add a {}", self.noun))
        });
        let (grant_lists, approval_lists) = (
            self.fields_with_verbs(ValueType::Grants),
            self.fields_with_verbs(ValueType::Approvals),
        );
        let weakened_approvals = approval_lists.iter().filter(|(name, _)| {
            let [old_rows, new_rows] =
                [before, after].map(|fields| fields.get(*name).and_then(Json::as_array));
            old_rows.zip(new_rows).is_some_and(|(old, new)| are_approvals_weaker(old, new))
        });
        let approval_effects = weakened_approvals.map(|(_, verb)| {
            Effect::Risk(Risk::Weakens, format!("require fewer approvals to {verb}"))
        });
        let list_names: Vec<_> =
            grant_lists.iter().chain(&approval_lists).map(|(list, _)| *list).collect();
        // If an entry has grants, its first identity field is the name or pattern of the protected
        // object.
        let name_field = self.identity.first().filter(|_| !list_names.is_empty());
        let protection_effects = name_field
            .map(|name| rule_effects(name, before, after, &grant_lists, &list_names, false));
        // There is no group id, because undrift does not know who gets the level.
        let level_field = self.fields.iter().find(|field| field.value_type == ValueType::Level);
        let access_effect = level_field.map(|level| Effect::Share {
            group_id: None,
            before: members::level_number(before, level.name),
            after: members::level_number(after, level.name),
            gets_end_date: false,
        });
        let [had_grants, has_grants] = [before, after].map(|fields| {
            self.grants.iter().any(|name| fields.get(*name).is_some_and(|value| *value != false))
        });
        // Entries of a kind with `called_by` are named in rules. A rule can only name an entry that
        // grants something.
        let named_access_effect =
            (self.called_by.is_some() && had_grants != has_grants).then_some(Effect::Capability {
                capability: Capability::NamedAccess,
                had_capability: had_grants,
                has_capability: has_grants,
            });
        let all_protection_effects = protection_effects.into_iter().flatten();
        grant_effects
            .chain(access_effect)
            .chain(all_protection_effects)
            .chain(approval_effects)
            .chain(named_access_effect)
            .collect()
    }
}

/// The keys that name who must approve. A row must have exactly one of them.
const GRANTEE_KEYS: [&str; 3] = ["access_level", "user", "group"];

/// True if an approval that `old_rows` requires is no longer required, or if more people can give it.
fn are_approvals_weaker(old_rows: &[Json], new_rows: &[Json]) -> bool {
    old_rows
        .iter()
        .any(|old_row| !new_rows.iter().any(|new_row| requires_as_much(old_row, new_row)))
}

/// True if `new_row` requires at least as many approvals as `old_row`, from the same people.
fn requires_as_much(old_row: &Json, new_row: &Json) -> bool {
    let [[old_number, old_type], [new_number, new_type]] = [old_row, new_row].map(|row| {
        ["required_approvals", "group_inheritance_type"]
            .map(|name| row[name].as_u64().unwrap_or_default())
    });
    ["access_level", "user_id", "group_id"].iter().all(|name| old_row[*name] == new_row[*name])
        && new_number >= old_number
        && new_type <= old_type
}
