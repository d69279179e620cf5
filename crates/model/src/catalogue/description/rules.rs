//! The rules of kinds without rules in Rust: all that a description says about them.

use super::make::act_before;
use crate::{
    catalogue::{members, protected_branches::effects},
    field::{Named, ValueType},
    kind::{
        Capability, Effect, Fault, FieldOf, Identity, Job, Kind, Risk, Rules, Section, Unable,
        calls::{Act, Call},
        forms, texts,
    },
    text,
    value::{self, Fields, Json, Object},
};

/// What a description adds to the rules of a plain collection.
pub(super) struct DescribedRules {
    noun: &'static str,
    grants: &'static [&'static str],
    /// Whether rules name its entries, which must grant something by then.
    is_named: bool,
    /// The fields of the identity of which each entry has one.
    either: &'static [&'static str],
    /// The field with the level of access that an entry gives. undrift does not know which people
    /// get it.
    level: Option<&'static str>,
    name_field: Option<&'static str>,
    /// The field with the name or pattern of what is protected, if an entry grants something.
    pattern: &'static str,
    /// The fields that grant something, each with the verb for what they allow.
    lets: &'static [(&'static str, &'static str)],
    /// The fields that require approvals, each with the verb for what needs them.
    approves: &'static [(&'static str, &'static str)],
    /// The note that another call precedes the removal.
    before_removal: Option<super::make::ActBefore>,
    /// Whether its entries are runners.
    takes_jobs: bool,
}

impl DescribedRules {
    /// The rules of `kind`.
    pub(super) fn of(kind: &Kind) -> Self {
        let lists_of = |value| -> &'static [_] {
            let of = kind.fields.iter().filter(|field| field.value_type == value);
            let of = of.filter_map(|field| Some((field.name, field.grants.lets?)));
            of.collect::<Vec<_>>().leak()
        };
        let level = kind.fields.iter().find(|field| field.value_type == ValueType::Level);
        Self {
            noun: kind.noun,
            name_field: kind.name_field,
            takes_jobs: kind.fields.iter().any(|of| of.names == Some(Named::Runner)),
            pattern: kind.identity.first().copied().unwrap_or_default(),
            lets: lists_of(ValueType::Grants),
            approves: lists_of(ValueType::Approvals),
            grants: kind.grants,
            is_named: kind.called_by.is_some(),
            either: kind.either,
            level: level.map(|field| field.name),
            before_removal: kind.before_removal.map(|text| {
                let parameter = act_before(kind).and_then(|(_, parameter)| parameter);
                (&*String::leak(format!("sends `POST …/{text}` first")), parameter)
            }),
        }
    }
}

impl Rules for DescribedRules {
    fn identify(&self, section: Section, field: FieldOf<'_>) -> Identity {
        let plain = forms::identify(section, field);
        let name = self.name_field.and_then(|name| Some(field(name)?.as_str()?.to_owned()));
        match name.filter(|name| !name.is_empty()) {
            Some(name) => Identity {
                name: crate::secret::judge::masked_name(&name),
                service_name: Some(name),
                ..plain
            },
            None => plain,
        }
    }

    fn check(&self, declared: &Fields, _written: bool, report: &mut dyn FnMut(Fault)) {
        let has_one = self.either.iter().any(|name| declared.contains_key(name));
        if let Some(first) = self.either.first().filter(|_| !has_one) {
            let (one, names) = (text::with_article(self.noun), text::alternatives(self.either));
            report(
                Fault::of(texts::NONE_OF_SEVERAL, first).fill("one", &one).fill("names", &names),
            );
        }
        for (list, _) in self.approves {
            let rows = declared.get(list).and_then(value::Value::list).into_iter().flatten();
            let has_one =
                |row: &Json| WHO.iter().filter(|name| !row[**name].is_null()).count() == 1;
            if !rows.clone().all(has_one) {
                let names = text::alternatives(&WHO);
                report(Fault::of(texts::ROWS_NAME_ONE, list).fill("names", &names));
            }
        }
    }

    fn effects(&self, _: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let is_new = before.is_empty();
        let gives = |fields: &Object, name: &str| fields.get(name).is_some_and(|it| *it != false);
        // The stake of a switch suffices.
        let given = |name: &&&str| is_new && after.get(**name).is_some_and(|it| !it.is_boolean());
        let given = self.grants.iter().filter(given);
        // A new project has to say whose job tokens it accepts, but not whose code runs its jobs.
        let given = given.map(|_| match self.takes_jobs {
            true => Effect::Risk(Risk::Opens, format!("add a {}", self.noun)),
            false => Effect::Risk(Risk::Weakens, format!("add a {}", self.noun)),
        });
        let lists: Vec<_> = self.lets.iter().chain(self.approves).map(|(list, _)| *list).collect();
        let list = |fields: &Object, name: &str| fields.get(name).and_then(Json::as_array).cloned();
        let fewer = self.approves.iter().filter(|(name, _)| {
            list(before, name).zip(list(after, name)).is_some_and(|(was, is)| are_fewer(&was, &is))
        });
        let fewer = fewer.map(|(_, does)| {
            Effect::Risk(Risk::Weakens, format!("require fewer approvals to {does}"))
        });
        let rule = || effects(self.pattern, before, after, self.lets, &lists, false);
        let access = self.level.map(|name| Effect::Share {
            group: None,
            before: members::level(before, name),
            after: members::level(after, name),
            ends: false,
        });
        let rules = (!lists.is_empty()).then(rule).into_iter().flatten();
        let any = |fields: &Object| self.grants.iter().any(|name| gives(fields, name));
        let [had, has] = [any(before), any(after)];
        let people = (self.is_named && had != has).then_some(Effect::Capability {
            what: Capability::People,
            before: had,
            after: has,
        });
        given.chain(access).chain(rules).chain(fewer).chain(people).collect()
    }

    fn calls(&self, job: &Job<'_>) -> Result<Vec<Call>, Unable> {
        let mut calls = job.plain()?;
        if let Act::Remove(live) = job.act {
            let before = job.section.home.operations.others.iter().zip(self.before_removal);
            let before = before.map(|(op, (side_effect, parameter))| {
                let request = job.addressed(*op, live);
                let request = parameter
                    .into_iter()
                    .fold(request, |request, (name, value)| request.query(name, value));
                Call { side_effect: Some(side_effect), ..request.into() }
            });
            calls.splice(..0, before);
        }
        Ok(calls)
    }
}

/// The keys of a row of which it has one.
const WHO: [&str; 3] = ["access_level", "user", "group"];

/// Whether an approval that `before` requires is no longer required, or can be given by others too.
fn are_fewer(before: &[Json], after: &[Json]) -> bool {
    let number = |row: &Json, name: &str| row[name].as_u64().unwrap_or_default();
    let still = |was: &Json, is: &Json| {
        ["access_level", "user_id", "group_id"].iter().all(|name| was[*name] == is[*name])
            && number(is, "required_approvals") >= number(was, "required_approvals")
            && number(is, "group_inheritance_type") <= number(was, "group_inheritance_type")
    };
    before.iter().any(|was| !after.iter().any(|is| still(was, is)))
}
