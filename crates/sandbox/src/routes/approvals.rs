//! The approval settings of projects and of top-level groups (Premium). A project shows its
//! settings in two forms; some flags are inverted in the newer form. The reference does not
//! describe approval settings. This module follows the real service.

use super::prelude::*;

/// The settings in the newer form.
pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: APPROVAL_SETTINGS,
    find_scope: |_, call| {
        if call.is_group_operation() {
            // Only top-level groups with Premium have these settings. All others get 403.
            let group = call.require_group(OWNER)?;
            let has_no_settings = !call.is_premium() || group.parent_id.is_some();
            refuse_if(has_no_settings, ErrorResponse::forbidden)?;
            return Ok(group.into());
        }
        let scope = GroupOrProject::from_call_read_archived(call, [MAINTAINER; 2])?;
        call.require_tier(ServiceTier::Premium).map(|()| scope)
    },
    complete: complete_settings,
    to_json: |call, row| Ok(settings_in_newer_form(call, &EffectiveSettings::read(call, row)?)),
    ..Callbacks::DEFAULT
}];

const APPROVAL_SETTINGS: RecordTable = RecordTable("approval_settings");

pub(super) const ROUTES: &[Route] = &[
    get("/projects/{id}/approvals", show_settings),
    post("/projects/{id}/approvals", update_settings),
];

/// A row of `approval_settings.jsonc`: a flag. `name` is its name in the older form, in which flags
/// are stored, and `newer` is its name in the newer form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalFlag {
    name: &'static str,
    newer: &'static str,
    /// True if the flag is inverted in the newer form.
    #[serde(default)]
    opposite: bool,
    /// The value in a new project. If a call sends null, the flag gets the value of the field `null`. If this
    /// field is `None`, the call is refused.
    #[serde(default)]
    preset: bool,
    null: Option<bool>,
    /// The stricter value, which the group or the service can enforce.
    strict: bool,
    /// The setting of the service that enforces the stricter value.
    lock: Option<&'static str>,
    #[serde(default)]
    since: Release,
    /// The position of the flag in the newer form.
    at: u8,
}

/// All flags, in the order of the older form.
static APPROVAL_FLAGS: LazyLock<Vec<ApprovalFlag>> =
    LazyLock::new(|| read_table(include_str!("../approval_settings.jsonc")));

const RESET_ON_PUSH: &str = "reset_approvals_on_push";
const SELECTIVE_REMOVAL: &str = "selective_code_owner_removals";
const REQUIRE_PASSWORD: &str = "require_password_to_approve";
/// Another name of [`REQUIRE_PASSWORD`], from release 17.1 on.
const REQUIRE_REAUTHENTICATION: &str = "require_reauthentication_to_approve";
/// The setting of the service that allows only administrators to change rules.
pub(super) const RULES_LOCK: &str = "disable_overriding_approvers_per_merge_request";
/// The attribute of the project that calls for approval settings can also read and write.
pub(super) const APPROVALS_BEFORE_MERGE: &str = "approvals_before_merge";

impl ApprovalFlag {
    /// The name under which the flag is stored.
    fn key(&self) -> &'static str {
        if self.name == REQUIRE_REAUTHENTICATION { REQUIRE_PASSWORD } else { self.name }
    }

    /// The value of the flag in a call. Null becomes the value in `null`, or an error.
    fn read_param(&self, call: &Call<'_>, name: &str) -> Result<bool> {
        call.flag(name)?.or(self.null).ok_or_else(|| ErrorResponse::null_column(name))
    }
}

/// The flags of this release.
fn release_flags(call: &Call<'_>) -> impl Iterator<Item = &'static ApprovalFlag> {
    let release = call.release();
    APPROVAL_FLAGS.iter().filter(move |flag| flag.since <= release)
}

/// The flags of this release, in the order of the newer form.
fn newer_flags(call: &Call<'_>) -> Vec<&'static ApprovalFlag> {
    let mut sorted_flags: Vec<_> = release_flags(call).collect();
    sorted_flags.sort_by_key(|flag| flag.at);
    sorted_flags
}

/// The settings of a project or group, with the flags that the group or the service enforces.
struct EffectiveSettings {
    settings: Object,
    is_group: bool,
    /// The settings of the top-level group above a project; `None` if the group has none.
    group_settings: Option<Object>,
    /// The flags that the service enforces, by name.
    enforced_flags: Vec<&'static str>,
}

impl EffectiveSettings {
    fn read(call: &CollectionCall<'_>, row: &Record) -> Result<Self> {
        let group_row = match call.scope {
            GroupOrProject::Project(project) => APPROVAL_SETTINGS
                .find_single(call, Holder::Group(protection::root_group_id(&project.namespace)))?,
            GroupOrProject::Group(_) => None,
        };
        let enforced_flags = try_filter(APPROVAL_FLAGS.iter(), |flag| {
            flag.lock.map_or(Ok(false), |setting| is_instance_setting_on(call, setting))
        })?;
        Ok(Self {
            settings: row.settings.clone(),
            is_group: call.scope.project_id().is_none(),
            group_settings: group_row.map(|record| record.settings),
            enforced_flags: enforced_flags.into_iter().map(|flag| flag.name).collect(),
        })
    }

    fn stored_value(&self, flag: &ApprovalFlag) -> bool {
        let stored_value = self.settings.get(flag.key()).and_then(Value::as_bool);
        stored_value.unwrap_or(if self.is_group { !flag.strict } else { flag.preset })
    }

    /// The level that enforces a flag: `instance` for the service, or `group`; `None` if no level
    /// enforces the flag.
    fn enforcing_level(&self, flag: &ApprovalFlag) -> Option<&'static str> {
        let settings = self.group_settings.as_ref().or(self.is_group.then_some(&self.settings));
        let stored_flag =
            |name: &str| settings.and_then(|settings| settings.get(name)).and_then(Value::as_bool);
        if self.enforced_flags.contains(&flag.name) {
            return Some("instance");
        }
        // Selective removal is possible only if a push does not reset all approvals.
        let is_enforced = match flag.name {
            SELECTIVE_REMOVAL => stored_flag(RESET_ON_PUSH) == Some(true),
            _ => !self.is_group && stored_flag(flag.key()) == Some(flag.strict),
        };
        is_enforced.then_some("group")
    }

    /// The effective value of a flag.
    fn value(&self, flag: &ApprovalFlag) -> bool {
        match self.enforcing_level(flag) {
            Some(_) if flag.name == SELECTIVE_REMOVAL => false,
            Some(_) => flag.strict,
            None => self.stored_value(flag),
        }
    }

    /// Stores a value, unless the group or the service enforces another value. Administrators can
    /// store a value even if the service enforces another value.
    fn set_unless_enforced(&mut self, call: &Call<'_>, flag: &ApprovalFlag, requested_value: bool) {
        let is_dropped = match self.enforcing_level(flag) {
            Some("instance") => !call.is_administrator(),
            level => level.is_some(),
        };
        if !is_dropped {
            self.settings.insert(flag.key().to_owned(), requested_value.into());
        }
    }

    /// Fails with 400 if two settings contradict each other. With the first, a push removes all
    /// approvals. With the second, a push removes only the approvals of code owners.
    /// `condition_text` is the condition under which the second setting is allowed.
    fn check_removal_settings(&self, condition_text: &str) -> Result<()> {
        let [removes_selectively, resets_on_push] = [SELECTIVE_REMOVAL, RESET_ON_PUSH]
            .map(|name| self.settings.get(name).and_then(Value::as_bool));
        let text = format!("{SELECTIVE_REMOVAL} can only be enabled when {condition_text}");
        let is_wrong = removes_selectively == Some(true) && resets_on_push != Some(false);
        refuse_if(is_wrong, || ErrorResponse::field_error("base", text))
    }
}

/// The project of a call that reads rules. Callers who may open merge requests can read rules, and
/// maintainers always can.
pub(super) fn readable_project(call: &Call<'_>) -> Result<Project> {
    let project = call.require_project(0)?;
    let level = call.caller_level_in_project(&project)?;
    let may_open =
        !project.archived && call.may_use_feature(&project, "merge_requests_access_level")?;
    refuse_if(level < MAINTAINER && !may_open, ErrorResponse::forbidden)?;
    call.require_tier(ServiceTier::Premium).map(|()| project)
}

/// The project of a call that changes rules or approval settings.
pub(super) fn writable_project(call: &Call<'_>) -> Result<Project> {
    let project = call.require_writable_project(MAINTAINER)?;
    call.require_tier(ServiceTier::Premium).map(|()| project)
}

/// True if a setting of the service is on.
pub(super) fn is_instance_setting_on(call: &Call<'_>, setting: &str) -> Result<bool> {
    Ok(instance::read_setting(call, setting)? == Value::Bool(true))
}

fn show_settings(call: &Call<'_>) -> Result<Answer> {
    let collection = find_built_in(APPROVAL_SETTINGS);
    Answer::ok(&settings_in_older_form(&CollectionCall {
        collection,
        scope: &collection.find_scope(call)?,
        call,
    })?)
}

fn settings_in_older_form(call: &CollectionCall<'_>) -> Result<Value> {
    let effective_settings = EffectiveSettings::read(call, &call.find_entry()?)?;
    let count = call.project()?.attributes(call.db)?.remove(APPROVALS_BEFORE_MERGE);
    Ok(build_older_form(call, count, |flag| effective_settings.value(flag)))
}

fn build_older_form(
    call: &Call<'_>,
    approval_count: impl Into<Value>,
    get_value: impl Fn(&ApprovalFlag) -> bool,
) -> Value {
    // The two lists are obsolete, because rules name the approvers.
    let mut body = json!({ "approvers": [], "approver_groups": [] });
    body[APPROVALS_BEFORE_MERGE] = approval_count.into();
    release_flags(call).for_each(|flag| body[flag.name] = get_value(flag).into());
    body
}

fn settings_in_newer_form(call: &Call<'_>, effective_settings: &EffectiveSettings) -> Value {
    let shown_flags = newer_flags(call).into_iter().map(|flag| {
        let origin = effective_settings.enforcing_level(flag);
        let value = effective_settings.value(flag) != flag.opposite;
        let value = json!({ "value": value, "locked": origin.is_some(), "inherited_from": origin });
        (flag.newer.to_owned(), value)
    });
    Value::Object(shown_flags.collect())
}

/// Changes the settings that the call contains. Without a licence, release 18.9 ignores these
/// settings.
fn update_settings(call: &Call<'_>) -> Result<Answer> {
    if !call.is_premium() && call.is_observed_release_or_later() {
        return answer_unlicensed(call);
    }
    let project = writable_project(call)?;
    refuse_if(project.archived && call.is_observed_release_or_later(), ErrorResponse::forbidden)?;
    require_any_flag(call)?;
    let scope = &GroupOrProject::from(project.clone());
    let call = &CollectionCall { collection: find_built_in(APPROVAL_SETTINGS), scope, call };
    let mut row = call.find_entry()?;
    let mut effective_settings = EffectiveSettings::read(call, &row)?;
    for flag in release_flags(call).filter(|flag| call.has(flag.name)) {
        effective_settings.set_unless_enforced(call, flag, flag.read_param(call, flag.name)?);
    }
    effective_settings.check_removal_settings("reset_approvals_on_push is disabled")?;
    row.settings = effective_settings.settings;
    call.store(&mut row)?;
    if call.has(APPROVALS_BEFORE_MERGE) {
        let Some(count) = call.integer(APPROVALS_BEFORE_MERGE)? else {
            return Err(ErrorResponse::field_error(APPROVALS_BEFORE_MERGE, "is not a number"));
        };
        let mut attributes = project.attributes(call.db)?;
        let former_count = attributes.insert(APPROVALS_BEFORE_MERGE.to_owned(), count.into());
        project.save_attributes(call.db, &attributes, call.time_text())?;
        let counts = [former_count.as_ref(), Some(&count.into())];
        if !approval_rules::require_approvals(call, project.id, counts)? {
            return Answer::created(&Value::Null);
        }
    }
    Answer::created(&settings_in_older_form(call)?)
}

/// Fails with 400 if a call contains no setting.
fn require_any_flag(call: &Call<'_>) -> Result<()> {
    let names =
        [APPROVALS_BEFORE_MERGE].into_iter().chain(release_flags(call).map(|flag| flag.name));
    call.require_any(&names.collect::<Vec<_>>())
}

/// Answers a call to a service without a licence: all settings are off.
fn answer_unlicensed(call: &Call<'_>) -> Result<Answer> {
    call.require_writable_project(MAINTAINER)?;
    require_any_flag(call)?;
    Answer::created(&build_older_form(call, 0, |_| false))
}

/// Reads the flags of a call in the newer form. A call without flags, or with a null flag, gets 400.
fn read_flags(call: &Call<'_>) -> Result<Vec<(&'static ApprovalFlag, bool)>> {
    let flags = newer_flags(call);
    call.require_any(&flags.iter().map(|flag| flag.newer).collect::<Vec<_>>())?;
    let mut flag_values = Vec::new();
    for flag in flags.into_iter().filter(|flag| call.has(flag.newer)) {
        let is_on =
            call.flag(flag.newer)?.ok_or_else(|| ErrorResponse::empty_parameter(flag.newer))?;
        flag_values.push((flag, is_on != flag.opposite));
    }
    Ok(flag_values)
}

/// Stores the flags in a call. The first call for a group sets omitted flags to false.
fn complete_settings(call: &CollectionCall<'_>, row: &mut Record) -> Result<()> {
    let (flag_values, mut effective_settings) =
        (read_flags(call)?, EffectiveSettings::read(call, row)?);
    if !effective_settings.is_group {
        flag_values
            .into_iter()
            .for_each(|(flag, is_on)| effective_settings.set_unless_enforced(call, flag, is_on));
        effective_settings.check_removal_settings("retain_approvals_on_push is enabled")?;
        row.settings = effective_settings.settings;
        return Ok(());
    }
    if row.id == 0 {
        APPROVAL_FLAGS.iter().for_each(|flag| row.set(flag.key(), flag.opposite));
    }
    let stored_flags = flag_values.into_iter().filter(|(flag, _)| flag.name != SELECTIVE_REMOVAL);
    stored_flags.for_each(|(flag, is_on)| row.set(flag.key(), is_on));
    Ok(())
}
