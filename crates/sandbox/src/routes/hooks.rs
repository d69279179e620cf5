//! Hooks of projects (reference 2, 4.5) and of groups (Premium). The reference does not describe
//! hooks of groups. Hooks are stored and validated, but the sandbox delivers nothing.

use super::hook_secrets::{self, HEADERS, SECRET_KINDS, SecretKind, URL_VARIABLES};
use super::prelude::*;

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: RecordTable("hooks"),
    limit: Some(("hooks", [100, 50], |text| ErrorResponse::unprocessable(&text))),
    operations: &[
        (Method::PUT, "/{hook_id}/url_variables/{key}", CHANGE_URL_VARIABLE),
        (Method::DELETE, "/{hook_id}/url_variables/{key}", CHANGE_URL_VARIABLE),
        (Method::PUT, "/{hook_id}/custom_headers/{key}", CHANGE_HEADER),
        (Method::DELETE, "/{hook_id}/custom_headers/{key}", CHANGE_HEADER),
        (Method::POST, "/{hook_id}/test/{trigger}", CollectionOperation::Custom(test_hook)),
    ],
    // Only callers who manage the project or group can use its hooks.
    find_scope: |_, call| {
        let scope = GroupOrProject::from_call_read_archived(call, [MAINTAINER, OWNER])?;
        if call.is_group_operation() {
            call.require_tier(ServiceTier::Premium)?;
        }
        Ok(scope)
    },
    complete: complete_hook,
    check_removal: |call, hook| call.check_unmodified(&hook.created_at),
    to_json: |call, hook| Ok(hook_json(call, hook)),
    ..Callbacks::DEFAULT
}];

const CHANGE_URL_VARIABLE: CollectionOperation =
    CollectionOperation::Custom(|call| change_secret(call, &URL_VARIABLES));
const CHANGE_HEADER: CollectionOperation =
    CollectionOperation::Custom(|call| change_secret(call, &HEADERS));

/// A text field of hooks: its name, its first release, and its maximum length.
type HookTextField = (&'static str, Release, usize);

const TEXT_FIELDS: [HookTextField; 3] = [
    ("name", Release::new(17, 1), 255),
    ("description", Release::new(17, 1), 2_048),
    ("custom_webhook_template", Release::new(16, 10), 4_096),
];

const FILTER_STRATEGY: &str = "branch_filter_strategy";
const FILTER_STRATEGIES: [&str; 3] = ["wildcard", "regex", "all_branches"];
const STRATEGY_SINCE: Release = Release::new(17, 2);
/// The maximum length of a URL, in bytes.
const MAX_URL_LENGTH: usize = 8_192;
const TOKEN: &str = "token";
const BRANCH_FILTER: &str = "push_events_branch_filter";
const MAX_FILTER_LENGTH: usize = 4_000;

/// The flags of the hooks of a project or group.
fn hook_flags(call: &CollectionCall<'_>) -> impl Iterator<Item = &'static Attribute> + use<> {
    let edition = call.edition();
    let group_flags: &[Attribute] = call.scope.choose(&[], &ATTRIBUTE_TABLE.group_hooks);
    edition.filter_existing(&ATTRIBUTE_TABLE.hooks).chain(edition.filter_existing(group_flags))
}

/// The text fields of hooks in this release.
fn text_fields(call: &Call<'_>) -> impl Iterator<Item = &'static HookTextField> {
    let release = call.release();
    TEXT_FIELDS.iter().filter(move |field| field.1 <= release)
}

fn has_filter_strategy(call: &Call<'_>) -> bool {
    call.release() >= STRATEGY_SINCE
}

/// A hook as the service shows it. Settings that were never set show the default.
fn hook_json(call: &CollectionCall<'_>, hook: &Record) -> Value {
    let scope = call.scope;
    let mut body = json!({
        "id": hook.id,
        "url": hook.text("url"),
        "created_at": hook.created_at,
        "alert_status": "executable",
        "disabled_until": null,
        "repository_update_events": false,
        scope.id_column(): scope.id(),
    });
    let find_stored_value = |name| hook.settings.get(name).cloned();
    for flag in hook_flags(call) {
        body[flag.name] = find_stored_value(flag.name).unwrap_or_else(|| flag.preset.clone());
    }
    for name in text_fields(call).map(|text| text.0).chain([BRANCH_FILTER]) {
        body[name] = find_stored_value(name).into();
    }
    if has_filter_strategy(call) {
        body[FILTER_STRATEGY] =
            find_stored_value(FILTER_STRATEGY).unwrap_or_else(|| FILTER_STRATEGIES[0].into());
    }
    // From 16.7 on, lists of a project's hooks omit the keys of secrets.
    let is_listed = !call.is_write && call.segment("hook_id").is_empty();
    if !is_listed || matches!(scope, GroupOrProject::Group(_)) || !call.is_at_least(16, 7) {
        for kind in SECRET_KINDS.iter().filter(|kind| kind.is_supported(call)) {
            body[kind.name] = kind.keys_json(&hook.settings);
        }
    }
    body
}

/// Copies the fields of a call into `hook`, and checks the result.
fn store_fields(call: &CollectionCall<'_>, hook: &mut Record) -> Result<()> {
    let params = &call.params;
    let former_settings = hook.settings.clone();
    if params.has("url") || !hook.settings.contains_key("url") {
        let url = params.text("url")?.unwrap_or_default().trim().to_owned();
        if hook.text("url") != url {
            hook.settings.remove(TOKEN);
        }
        hook.set("url", url);
    }
    if params.has(TOKEN) {
        hook.set(TOKEN, params.text(TOKEN)?.filter(|token| !token.is_empty()));
    }
    for flag in hook_flags(call).filter(|flag| params.has(flag.name)) {
        let is_on = params.flag(flag.name)?;
        let is_refused = is_on.is_none() && flag.on_null == NullHandling::Unsaved;
        refuse_if(is_refused, || ErrorResponse::null_column(flag.name))?;
        hook.set(flag.name, is_on);
    }
    for name in
        text_fields(call).map(|text| text.0).chain([BRANCH_FILTER]).filter(|name| params.has(name))
    {
        hook.set(name, params.text(name)?);
    }
    if has_filter_strategy(call)
        && let Some(strategy) = params.allowed_text(FILTER_STRATEGY, &FILTER_STRATEGIES)?
    {
        hook.set(FILTER_STRATEGY, strategy);
    }
    for kind in SECRET_KINDS.iter().filter(|secret_kind| secret_kind.is_supported(call)) {
        kind.add(&mut hook.settings, kind.read_secrets(params)?);
    }
    check_hook(hook, call, &former_settings)
}

/// Refuses invalid hooks. If the URL changed since `former_settings`, the secrets are cleared, even
/// the secrets in the same call.
fn check_hook(hook: &mut Record, call: &Call<'_>, former_settings: &Object) -> Result<()> {
    hook_secrets::clear_secrets(&mut hook.settings, former_settings);
    let target_url = hook_secrets::fill_url(&hook.settings);
    let own_url = instance::own_url_if_local_blocked(call)?;
    let is_url_valid = hook.text("url").len() <= MAX_URL_LENGTH
        && target_url
            .is_some_and(|url| urls::url_error(&url, &["http", "https"], own_url).is_none());
    refuse_if(!is_url_valid, || ErrorResponse::unprocessable("Invalid url given"))?;
    let is_filter_valid = normalize_filter(hook);
    refuse_if(!is_filter_valid, || ErrorResponse::unprocessable("Invalid branch filter given"))?;
    let has_line_break = hook.text(TOKEN).contains('\n');
    refuse_if(has_line_break, || ErrorResponse::unprocessable("Token is invalid"))?;
    let length_errors = text_fields(call).filter_map(|(name, _, max_length)| {
        let error = length_error(hook.text(name), *max_length)?;
        Some(format!("{} {error}", field_label(name)))
    });
    let secret_errors = SECRET_KINDS.iter().filter(|kind| !kind.is_valid(&hook.settings));
    let secret_errors =
        secret_errors.map(|kind| format!("{} must be a valid json schema", field_label(kind.name)));
    let error = length_errors.chain(secret_errors).next();
    error.map_or(Ok(()), |text| Err(ErrorResponse::unprocessable(&text)))
}

/// Normalises the branch filter: removes superfluous spaces from a filter by name, and the filter of the strategy
/// `all_branches`. Returns true if the filter is valid.
fn normalize_filter(hook: &mut Record) -> bool {
    let filter = hook.text(BRANCH_FILTER);
    match hook.text(FILTER_STRATEGY) {
        "all_branches" => {
            hook.set(BRANCH_FILTER, Value::Null);
            true
        }
        "regex" => re2::syntax_error(filter).is_none(),
        _ => {
            let filter = filter.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_valid = filter.is_empty()
                || is_valid_ref_name(&filter.replace('*', "x"))
                    && filter.len() <= MAX_FILTER_LENGTH;
            if hook.settings.get(BRANCH_FILTER).is_some_and(Value::is_string) {
                hook.set(BRANCH_FILTER, filter);
            }
            is_valid
        }
    }
}

/// Fills in and checks a new or changed hook. An edit needs at least one field. Before 18.9, an
/// edit of a project's hook needs the URL, as in the reference.
fn complete_hook(call: &CollectionCall<'_>, hook: &mut Record) -> Result<()> {
    if hook.id != 0 {
        require_any_field(call)?;
    }
    if hook.id == 0 || call.profile().put_resets_omitted_flags {
        for flag in hook_flags(call) {
            hook.set(flag.name, flag.preset.clone());
        }
    }
    store_fields(call, hook)
}

/// Refuses an edit without fields.
fn require_any_field(call: &CollectionCall<'_>) -> Result<()> {
    if matches!(call.scope, GroupOrProject::Project(_)) && !call.is_observed_release_or_later() {
        call.require(&["url"])?;
    }
    let mut fields = ["url", TOKEN, BRANCH_FILTER, FILTER_STRATEGY]
        .into_iter()
        .chain(text_fields(call).map(|text| text.0))
        .chain(hook_flags(call).map(|flag| flag.name));
    let mut secrets = SECRET_KINDS.iter().filter(|kind| kind.is_supported(call));
    let has_secrets = secrets.any(|kind| {
        call.get(kind.name).and_then(Value::as_array).is_some_and(|items| !items.is_empty())
    });
    let is_empty = !fields.any(|name| call.has(name)) && !has_secrets;
    refuse_if(is_empty, || ErrorResponse::error(StatusCode::BAD_REQUEST, "No parameters provided"))
}

/// Sets or removes one header or variable.
fn change_secret(call: &CollectionCall<'_>, kind: &SecretKind) -> Result<Answer> {
    refuse_if(!kind.is_supported(call), ErrorResponse::route_not_found)?;
    let is_put = call.method == Method::PUT;
    if is_put {
        call.require(&["value"])?;
    }
    let mut hook = call.find_entry()?;
    let (former_settings, key) = (hook.settings.clone(), call.segment("key"));
    let error_text = if is_put {
        let value = call.text("value")?;
        kind.add(&mut hook.settings, [(key.to_owned(), value.into())]);
        "Illegal key or value".to_owned()
    } else {
        let is_removed = kind.remove(&mut hook.settings, key);
        refuse_if(!is_removed, || ErrorResponse::not_found(kind.noun))?;
        format!("Could not unset {}", kind.noun)
    };
    check_hook(&mut hook, call, &former_settings)
        .map_err(|_| ErrorResponse::unprocessable(&error_text))?;
    call.store(&mut hook)?;
    Ok(Answer::no_content())
}

/// Tests a hook. Nothing is delivered, and every test succeeds.
fn test_hook(call: &CollectionCall<'_>) -> Result<Answer> {
    refuse_if(!call.is_at_least(16, 11), ErrorResponse::route_not_found)?;
    let trigger = call.segment("trigger");
    let is_known =
        trigger.ends_with("_events") && hook_flags(call).any(|flag| flag.name == trigger);
    refuse_if(!is_known, || ErrorResponse::unlisted_parameter_value("trigger"))?;
    call.find_entry()?;
    Answer::created(&json!({ "message": "201 Created" }))
}
