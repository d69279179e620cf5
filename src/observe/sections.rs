//! Reads a section that is not part of the container's own object.

use std::collections::BTreeSet;

use super::{Observer, ends_everything};
use crate::{
    api::ApiError,
    cause::Cause,
    desired::DeclaredSection,
    field::Scope,
    kind::{Facts, LiveEntry, Place, Section, Target},
    live::Collection,
    operation::{Op, Read},
    page::Complete,
    value::Object,
};

impl Observer {
    pub(super) async fn section(
        &self,
        section: &DeclaredSection,
        target: &Target,
        facts: &Facts,
    ) -> Result<Collection, ApiError> {
        let home = section.of.home;
        let sees_all = self.caller.administrator || facts.level >= Some(home.seen_from);
        let result = match home.place {
            Place::Part { .. } => {
                let why = "the token does not see what it names";
                Ok(Collection::Partial(Cause::new(why)))
            }
            Place::Itself(_) | Place::Object | Place::In(_) => {
                let noun = target.scope.noun();
                Ok(Collection::Partial(format!("it was not part of the {noun} object").into()))
            }
            Place::List(_) if !sees_all => {
                let role = role(home.seen_from);
                Ok(Collection::Partial(
                    format!("the token's role is below {role}, so the list may be incomplete")
                        .into(),
                ))
            }
            Place::List(_) if home.is_closed(facts) => {
                let switches = home.closed_by.iter().map(|name| format!("`{name}`"));
                let switches = switches.collect::<Vec<_>>().join(" and ");
                let why = format!("the service shows none while {switches} are disabled");
                Ok(Collection::Unreadable(why.into()))
            }
            Place::List(op) => self.list(section, target, op).await,
            Place::Optional(op) => self.optional(section, target, op, facts, sees_all).await,
        };
        match result {
            Err(error) if ends_everything(&error) => Err(error),
            Err(error) if error.page_error().is_some() => {
                Ok(Collection::Partial(Cause::from(&error)))
            }
            Err(error) => Ok(Collection::Unreadable(Cause::from(&error))),
            Ok(collection) => Ok(collection),
        }
    }

    /// Reads a list to its end.
    async fn list(
        &self,
        section: &DeclaredSection,
        target: &Target,
        op: Op<Read>,
    ) -> Result<Collection, ApiError> {
        let home = section.of.home;
        let names: BTreeSet<&str> = section.names().collect();
        let request = target.addressed(op.request());
        let request =
            home.query.iter().fold(request, |request, (name, value)| request.query(*name, value));
        let all = self.client.list_known(request, home.rows).await?;
        if let Some(key) = all.iter().find_map(|raw| section.of.mistyped(raw)) {
            return Ok(Collection::Unreadable(mistyped(section.of, key)));
        }
        let all = all.filter_map(|raw| {
            (!home.is_inherited(&raw)).then(|| section.of.read(&raw, &|name| names.contains(name)))
        });
        self.with_beside(section, target, all).await.map(Collection::Complete)
    }

    /// Reads an object that may be absent. `sees_all`: whether the caller's role makes absence
    /// certain.
    async fn optional(
        &self,
        section: &DeclaredSection,
        target: &Target,
        op: Op<Read>,
        facts: &Facts,
        sees_all: bool,
    ) -> Result<Collection, ApiError> {
        let names: BTreeSet<&str> = section.names().collect();
        let read = |raw: &Object| section.of.read(raw, &|name| names.contains(name));
        let hides_absence = section.of.home.hides_absence;
        let is_licensed = facts.tier >= section.of.tier();
        let request = target.addressed(op.request());
        match self.client.get_optional_known(request, section.of.home.rows.keys).await {
            Ok(answer) => {
                let raw = answer.as_ref().and_then(|answer| answer.object());
                if let Some(key) = raw.and_then(|raw| section.of.mistyped(raw)) {
                    return Ok(Collection::Unreadable(mistyped(section.of, key)));
                }
                Ok(Collection::One(answer.and_then(|answer| Some(read(answer.object()?)))))
            }
            Err(error)
                if section.of.is_removable()
                    && error.is_not_found()
                    && (!error.is_unknown_route()
                        || (hides_absence && sees_all && is_licensed && error.is_hidden()))
                    && !error.is_container_missing() =>
            {
                Ok(Collection::One(None))
            }
            Err(error) if hides_absence && sees_all && error.is_hidden() => {
                Ok(Collection::Unreadable(unlicensed(section.of, target.scope, &error)))
            }
            Err(error) => Err(error),
        }
    }

    /// Adds a field from another list, if it is declared and that list can be read.
    async fn with_beside(
        &self,
        section: &DeclaredSection,
        target: &Target,
        entries: Complete<LiveEntry>,
    ) -> Result<Complete<LiveEntry>, ApiError> {
        let beside = section.of.home.side_list;
        let Some(beside) = beside.filter(|beside| section.names().any(|n| n == beside.field))
        else {
            return Ok(entries);
        };
        let request = target.addressed(beside.list.request());
        match self.client.list_known(request, beside.rows).await {
            Ok(others) => Ok(entries.map(|mut entry| {
                let value = (beside.value)(&entry, &others);
                entry.fields.insert(beside.field.to_owned(), value);
                entry
            })),
            Err(error) if ends_everything(&error) => Err(error),
            // Without that list the field is unknown.
            Err(_) => Ok(entries),
        }
    }
}

/// Why a section is unreadable if the value of `key` has the wrong type.
fn mistyped(of: Section, key: &str) -> Cause {
    let message = format!("the service shows a {} whose `{key}` has the wrong type", of.noun);
    Cause::new(message).help("see what changes answers between here and the service")
}

/// Why a 404 with two possible meanings proves nothing.
fn unlicensed(of: Section, scope: Scope, error: &ApiError) -> Cause {
    let (noun, tier) = (of.noun, of.tier());
    let message = format!("the service answers 404 both without a {noun} and without a licence");
    let message = format!("{message}, and the {} shows no sign of one", scope.noun());
    let help = format!(
        "renew the service's licence for {tier}, or remove `{}` from the manifest",
        of.section
    );
    Cause { message: message.into(), help: Some(help.into()), ..Cause::from(error) }
}

/// The name of an access level in a sentence.
fn role(level: u8) -> &'static str {
    if level > crate::level::MAINTAINER { "Owner" } else { "Maintainer" }
}
