//! Direct members of a project or group.
//!
//! Inherited members are neither read nor changed. A level is a word in manifests and plans, and a
//! number in requests.

use crate::{
    kind::SideList,
    level::{AccessLevel, MINIMAL_ACCESS},
    page::EntryKeys,
};

use super::prelude::*;

/// The list of pending memberships. Other lists do not show which members are pending.
pub(super) static PENDING_LIST: SideList = SideList {
    field: "membership",
    list_op: operation::PENDING_MEMBER_LIST,
    // Do not require a username: invited people without an account have none.
    entry_keys: EntryKeys::with_id(&["approved"]),
    find_value: |member, pending| {
        let username = value::text(member.fields.raw(), "user").unwrap_or_default().to_lowercase();
        let is_pending = pending.iter().any(|row| {
            row.get("approved") == Some(&Json::Bool(false))
                && value::text(row, "username").unwrap_or_default().to_lowercase() == username
        });
        if is_pending { "awaiting".into() } else { "active".into() }
    },
};

pub(super) struct Members;

impl KindRules for Members {
    // Bot users of access tokens are listed as members. The service removes a bot user only
    // together with its token.
    fn protection_reason(&self, raw: &Object) -> Option<&'static str> {
        let name = value::text(raw, "username")?;
        let id_and_suffix =
            name.strip_prefix("project_").or_else(|| name.strip_prefix("group_"))?;
        let after_id = id_and_suffix.trim_start_matches(|c: char| c.is_ascii_digit());
        let suffix =
            after_id.strip_prefix("_bot").filter(|_| after_id.len() < id_and_suffix.len())?;
        // `project_7_bot`, `project_7_bot2` and `project_7_bot_4f0c` are bot users.
        // `project_7_bottle` is a person.
        let is_bot = suffix.starts_with('_') || suffix.bytes().all(|byte| byte.is_ascii_digit());
        is_bot.then_some("bot user")
    }

    fn calls(&self, context: &CallContext<'_>) -> Calls {
        let separate_fields = ["override", "membership"];
        if let CallPurpose::Create(declared) | CallPurpose::Change(declared, ..) = context.purpose
            && let Some(level) = declared.plain_json("access_level")
            && AccessLevel::parse(level).is_some_and(|level| level.number == MINIMAL_ACCESS)
            && (context.target.scope == Scope::Project || context.target.path.contains('/'))
        {
            return Err(EntryFault::for_field(fault_text::MINIMAL_ACCESS, "access_level").into());
        }
        check_role_level(context)?;
        let (declared, user_id, changed) = match context.purpose {
            CallPurpose::Remove(live) if context.target.scope == Scope::Group => {
                // Without this parameter, the service also removes memberships below the group. No
                // plan would show these removals.
                let request = context.removal_request(live)?.with_query("skip_subresources", true);
                return Ok(vec![request.into()]);
            }
            CallPurpose::Remove(_) | CallPurpose::Container(_) => return context.default_calls(),
            CallPurpose::Create(declared) => {
                let name = declared.text("user").unwrap_or_default();
                (declared, context.names.numeric_id(NamedObject::User, name), None)
            }
            CallPurpose::Change(declared, live, changed) => (declared, live.id(), Some(changed)),
        };
        let needs_request = |name: &str| match changed {
            Some(changed) => changed.contains(&name),
            // A new membership is active, and its level may come from LDAP. Other values need a
            // request.
            None => separate_fields.contains(&name) && declared.contains_key(name),
        };
        let mut calls = match changed {
            Some(changed) if changed.iter().all(|name| separate_fields.contains(name)) => {
                Vec::new()
            }
            _ => context.default_calls()?,
        };
        let member_request = |op: Op<Write>| {
            context.target.request(op).with_argument("user_id", user_id.unwrap_or_default())
        };
        if needs_request("override") {
            match (declared.is_on("override"), changed) {
                (true, _) => calls.push(member_request(operation::GROUP_MEMBER_OVERRIDE).into()),
                (false, Some(_)) => {
                    calls.push(member_request(operation::GROUP_MEMBER_OVERRIDE_DELETE).into());
                }
                (false, None) => {}
            }
        }
        if needs_request("membership")
            && let Some(state) = declared.get("membership")
        {
            let body = Fields::from([("state".to_owned(), state.clone())]);
            calls.push(member_request(operation::GROUP_MEMBER_STATE).with_fields(body).into());
        }
        Ok(calls)
    }

    fn effects(&self, user_id: Option<u64>, before: &Object, after: &Object) -> Vec<Effect> {
        let has_new_end_date = gets_end_date(before, after);
        let [old_role, new_role] = [before, after].map(|fields| fields.get("member_role"));
        let lost_role =
            old_role.and_then(Json::as_str).filter(|_| new_role.is_some() && new_role != old_role);
        let lost_role = lost_role.map(str::to_owned);
        let [level_before, level_after] =
            [before, after].map(|fields| level_number(fields, "access_level"));
        vec![Effect::Access {
            user_id,
            before: level_before,
            after: level_after,
            inherited_level: 0,
            memberships_above: Vec::new(),
            gets_end_date: has_new_end_date,
            lost_role,
        }]
    }
}

/// Checks that the member gets the level of its declared custom role. The service refuses any other
/// level. All members with a custom role have the level of the role. Therefore, if the role does
/// not change, its level is the live level of the member.
fn check_role_level(context: &CallContext<'_>) -> Result<(), NoCalls> {
    let (declared, live) = match context.purpose {
        CallPurpose::Create(declared) => (declared, None),
        CallPurpose::Change(declared, live, _) => (declared, Some(live.fields.raw())),
        CallPurpose::Remove(_) | CallPurpose::Container(_) => return Ok(()),
    };
    let Some(role) = declared.text("member_role") else { return Ok(()) };
    let [old_level, old_role] =
        ["access_level", "member_role"].map(|name| live.and_then(|live| live.get(name)));
    let old_level = old_level.and_then(AccessLevel::parse);
    let new_level = declared.plain_json("access_level").and_then(AccessLevel::parse);
    let required_level = if old_role.is_some_and(|old| old == role) {
        old_level
    } else {
        context.names.role_level(role).and_then(|level| AccessLevel::parse(&level.into()))
    };
    let (Some(required_level), Some(new_level)) = (required_level, new_level.or(old_level)) else {
        return Ok(());
    };
    if required_level == new_level {
        return Ok(());
    }
    let fault = EntryFault::for_field(fault_text::LEVEL_OF_ROLE, "member_role")
        .fill("level", new_level.word);
    Err(fault.fill("needed", required_level.word).fill("role", &text::escape(role)).into())
}

/// The number of the access level in the field `name`; 0 means no access.
pub(super) fn level_number(fields: &Object, name: &str) -> u8 {
    fields.get(name).and_then(AccessLevel::parse).map_or(0, |level| level.number)
}

/// True if the access gets an end date that differs from the end date before.
pub(super) fn gets_end_date(before: &Object, after: &Object) -> bool {
    let [old_day, new_day] = [before, after]
        .map(|fields| value::text(fields, "expires_at").filter(|day| !day.is_empty()));
    new_day.is_some() && new_day != old_day
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            NameIndex, Target,
            testing::{
                edit_requests_for, fields, find_faults, live_entry, object, project_section,
                removal_requests, request_parts, requests_for,
            },
        },
        operation::{MEMBER_CREATE, MEMBER_DELETE, MEMBER_UPDATE},
        release::DetectedRelease,
    };

    const RAW: &str =
        r#"{"id": 4, "username": "Alice", "access_level": 30, "expires_at": "2099-01-31"}"#;

    fn raw() -> Json {
        serde_json::from_str(RAW).unwrap()
    }

    #[test]
    fn a_live_member_has_the_form_of_a_manifest() {
        let member = live_entry(project_section("members"), raw());
        assert_eq!(
            *member.fields.raw(),
            object(json!({
                "user": "Alice", "access_level": "developer", "expires_at": "2099-01-31", "member_role": null,
            }))
        );
        assert_eq!(project_section("members").entry_name(member.fields.raw()), "alice");
        assert_eq!(
            live_entry(project_section("members"), json!({"access_level": 35})).fields.raw()["access_level"],
            json!(35)
        );
    }

    #[test]
    fn a_member_is_added_by_id_and_an_unknown_user_is_refused() {
        let mut names = NameIndex::default();
        names.insert(NamedObject::User, "alice", Some(4));
        names.insert(NamedObject::User, "nobody", None);
        let add_member = |declared: &Fields| {
            requests_for(project_section("members"), &names, CallPurpose::Create(declared))
        };
        let declared =
            fields(json!({"user": "ALICE", "access_level": "developer", "expires_at": null}));
        let body = fields(json!({"user_id": 4, "access_level": 30, "expires_at": ""}));
        assert_eq!(
            add_member(&declared),
            [MEMBER_CREATE.request().with_argument("id", 7).with_fields(body)]
        );
        for unknown_user in ["nobody", "never-looked-up"] {
            assert_eq!(
                add_member(&fields(json!({"user": unknown_user, "access_level": "guest"}))),
                []
            );
        }
    }

    #[test]
    fn minimal_access_is_for_top_level_groups() {
        let mut names = NameIndex::default();
        names.insert(NamedObject::User, "alice", Some(4));
        let declared = fields(json!({"user": "alice", "access_level": "minimal_access"}));
        for (scope, path, is_refused) in [
            (Scope::Group, "acme", false),
            (Scope::Group, "acme/sub", true),
            (Scope::Project, "acme/shop", true),
        ] {
            let target = Target::new(scope, path.into());
            let context = CallContext {
                section: crate::catalogue::find_section(scope, "members").unwrap(),
                target: &target,
                names: &names,
                release: DetectedRelease::NotRequested,
                has_unique_address: true,
                purpose: CallPurpose::Create(&declared),
            };
            let was_refused = matches!(
                Members.calls(&context),
                Err(NoCalls::Impossible(EntryFault { code: "top-level", .. }))
            );
            assert_eq!(was_refused, is_refused, "{path}");
        }
    }

    #[test]
    fn an_end_date_of_access_is_an_effect() {
        let find_effect = |before: Json, after: Json| match Members
            .effects(Some(4), &object(before), &object(after))
            .pop()
        {
            Some(Effect::Access { before, after, gets_end_date: ends, .. }) => {
                (before, after, ends)
            }
            other => panic!("{other:?}"),
        };
        let owner = json!({"access_level": "owner"});
        let fields_until = |day: &str| json!({"access_level": "owner", "expires_at": day});
        assert_eq!(find_effect(owner.clone(), owner.clone()), (50, 50, false));
        assert_eq!(find_effect(owner.clone(), fields_until("2099-01-31")), (50, 50, true));
        assert_eq!(
            find_effect(fields_until("2099-01-31"), fields_until("2099-01-31")),
            (50, 50, false)
        );
        assert_eq!(find_effect(json!({}), json!({"access_level": "guest"})), (0, 10, false));
        assert_eq!(find_effect(owner, json!({})), (50, 0, false));
    }

    #[test]
    fn an_edit_contains_level_and_expiry() {
        let put_request = |body| {
            MEMBER_UPDATE
                .request()
                .with_argument("id", 7)
                .with_argument("user_id", 4)
                .with_fields(fields(body))
        };
        let level = fields(json!({"user": "alice", "access_level": "owner"}));
        let level_edit =
            edit_requests_for(project_section("members"), &level, raw(), &["access_level"]);
        assert_eq!(
            request_parts(&level_edit),
            request_parts(&[put_request(json!({"access_level": 50, "expires_at": "2099-01-31"}))])
        );
        let expiry = fields(json!({"user": "alice", "expires_at": null}));
        let expiry_edit =
            edit_requests_for(project_section("members"), &expiry, raw(), &["expires_at"]);
        assert_eq!(
            request_parts(&expiry_edit),
            request_parts(&[put_request(json!({"access_level": 30, "expires_at": ""}))])
        );
        let removal = MEMBER_DELETE.request().with_argument("id", 7).with_argument("user_id", 4);
        assert_eq!(removal_requests(project_section("members"), raw()), [removal]);
    }

    #[test]
    fn bot_users_are_never_changed() {
        for (username, is_bot) in [
            ("project_12_bot", true),
            ("project_12_bot_a1b2", true),
            ("group_3_bot1", true),
            ("project__bot", false),
            ("project_x_bot", false),
            ("project_7_bottle", false),
            ("my_project_12_bot", false),
            ("alice", false),
        ] {
            assert_eq!(
                live_entry(project_section("members"), json!({"username": username}))
                    .protection_reason
                    .is_some(),
                is_bot,
                "{username}"
            );
        }
    }

    #[test]
    fn an_invalid_date_is_refused() {
        for (day, is_valid) in [
            ("2099-01-31", true),
            ("2096-02-29", true),
            ("2099-02-29", false),
            ("2099-13-01", false),
            ("2099-00-10", false),
        ] {
            for (section_name, declared) in [
                ("members", json!({"user": "alice", "expires_at": day})),
                ("milestones", json!({"title": "1.0", "due_date": day})),
            ] {
                let found_faults = find_faults(project_section(section_name), &fields(declared));
                assert_eq!(found_faults.is_empty(), is_valid, "{section_name}: {day}");
            }
        }
    }
}
