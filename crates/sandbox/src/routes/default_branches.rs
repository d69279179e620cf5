//! The name and the protection of default branches, as groups and the service set them for new
//! projects.

use super::prelude::*;

pub(super) const DEFAULT_BRANCH: &str = "default_branch";
pub(super) const BRANCH_PROTECTION: &str = "default_branch_protection";
pub(super) const PROTECTION_DEFAULTS: &str = "default_branch_protection_defaults";

/// Reads the protection of default branches from a call. Omitted keys are not stored.
pub(super) fn read_protection(call: &Call<'_>) -> Result<Option<Value>> {
    let requested_defaults = match call.get(PROTECTION_DEFAULTS).filter(|_| call.is_at_least(16, 3))
    {
        Some(Value::Object(defaults)) => defaults,
        None | Some(Value::Null) => return Ok(None),
        Some(_) => return Err(ErrorResponse::invalid_parameter(PROTECTION_DEFAULTS)),
    };
    let mut protection = Map::new();
    for name in ["allowed_to_push", "allowed_to_merge"] {
        let field = format!("{PROTECTION_DEFAULTS}[{name}]");
        let rows = match requested_defaults.get(name) {
            Some(Value::Array(rows)) => rows,
            None | Some(Value::Null) => continue,
            Some(_) => return Err(ErrorResponse::invalid_parameter(&field)),
        };
        let levels = rows.iter().enumerate().map(|(number, row)| {
            let field = format!("{field}[{number}][access_level]");
            let level = read_integer(&field, &row["access_level"])?;
            let is_allowed = level.is_some_and(|level| [DEVELOPER, MAINTAINER].contains(&level));
            refuse_if(!is_allowed, || ErrorResponse::unlisted_parameter_value(&field))?;
            Ok(json!({ "access_level": level }))
        });
        protection.insert(name.to_owned(), levels.collect::<Result<_>>()?);
    }
    for name in ["allow_force_push", "code_owner_approval_required", "developer_can_initial_push"] {
        if let Some(value) = requested_defaults.get(name) {
            let is_on = read_flag(&format!("{PROTECTION_DEFAULTS}[{name}]"), value)?;
            protection.insert(name.to_owned(), is_on.into());
        }
    }
    Ok(Some(protection.into()))
}

/// Stores the name and, if `sets_protection`, the protection of default branches. In an edit, the
/// old parameter, a number, also sets the new parameter, an object.
pub(super) fn store_defaults(
    call: &Call<'_>,
    group_id: i64,
    route: WriteRoute,
    sets_protection: bool,
) -> Result<()> {
    if call.is_at_least(16, 11) && call.has(DEFAULT_BRANCH) {
        let name = call.text(DEFAULT_BRANCH)?.filter(|name| is_valid_ref_name(name));
        GROUP_SETTINGS.put_value(call.db, group_id, DEFAULT_BRANCH, name)?;
    }
    if !sets_protection {
        return Ok(());
    }
    let protection_number = call.integer(BRANCH_PROTECTION)?.filter(|_| route == WriteRoute::Edit);
    match read_protection(call)?.or(protection_number.map(protection_from_number)) {
        Some(defaults) => {
            GROUP_SETTINGS.put_value(call.db, group_id, PROTECTION_DEFAULTS, defaults)
        }
        None => Ok(()),
    }
}

/// Converts the old parameter, a number, to the new form of the protection.
pub(super) fn protection_from_number(number: i64) -> Value {
    let (push_level, merge_level, allows_force_push, allows_initial_push) = match number {
        0 => (DEVELOPER, DEVELOPER, true, false),
        1 => (DEVELOPER, MAINTAINER, false, false),
        3 => (MAINTAINER, DEVELOPER, false, false),
        4 => (MAINTAINER, MAINTAINER, false, true),
        _ => (MAINTAINER, MAINTAINER, false, false),
    };
    let mut body = json!({
        "allowed_to_push": [{ "access_level": push_level }], "allow_force_push": allows_force_push,
        "allowed_to_merge": [{ "access_level": merge_level }], "developer_can_initial_push": allows_initial_push,
    });
    set_field_if(&mut body, [0, 4].contains(&number), "code_owner_approval_required", false);
    body
}

/// The future default branch of an empty project. Its name comes from the setting of the nearest
/// group, of the top-level group, or of the service.
pub(super) fn preferred_branch_name(call: &Call<'_>, namespace: &Namespace) -> Result<Value> {
    if call.profile().empty_has_no_branch {
        return Ok(Value::Null);
    }
    let root_id = traversal_ids(&namespace.traversal).next();
    let group_ids = [Some(namespace.id), root_id].into_iter().flatten();
    for group_id in group_ids.filter(|_| namespace.is_group()) {
        if let Some(Value::String(name)) =
            GROUP_SETTINGS.stored_values(call.db, group_id)?.remove(DEFAULT_BRANCH)
        {
            return Ok(name.into());
        }
    }
    Ok(match instance::read_setting(call, "default_branch_name")? {
        Value::String(name) if !name.is_empty() => name.into(),
        _ => "main".into(),
    })
}
