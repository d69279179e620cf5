//! The push rule of a project (reference 2, 4.6; Premium), and the push rule of a group, which new
//! projects copy. The reference does not describe push rules of groups.

use super::prelude::*;

const PUSH_RULES: RecordTable = RecordTable("push_rules");

pub(super) const CALLBACKS: &[Callbacks] = &[Callbacks {
    table: PUSH_RULES,
    // The caller must be a maintainer. In a group, other callers get 404.
    find_scope: |_, call| {
        let scope = GroupOrProject::from_call_read_archived(call, [MAINTAINER, 0])?;
        let is_hidden = call.is_group_operation() && scope.caller_level(call)? < MAINTAINER;
        refuse_if(is_hidden, ErrorResponse::not_found_hidden).map(|()| scope)
    },
    find: |call| find_rule(call)?.ok_or_else(|| missing_rule_error(call)),
    complete: |call, rule| {
        store_fields(rule, call)?;
        refuse_if(rule.id == 0 && find_rule(call)?.is_some(), || {
            let group_message = "Group push rule exists, try updating";
            let text = call.scope.choose("Project push rule exists", group_message);
            let has_later_errors = call.profile().errors_as_after_16;
            if has_later_errors {
                ErrorResponse::invalid_record(text)
            } else {
                ErrorResponse::unprocessable(text)
            }
        })
    },
    check_removal: |_, _| Ok(()),
    to_json: |call, rule| Ok(push_rule_json(call, rule)),
    ..Callbacks::DEFAULT
}];

/// Flags that a project's rule shows as null while they are off.
const NULL_WHILE_OFF: [&str; 3] =
    ["commit_committer_check", "reject_unsigned_commits", "reject_non_dco_commits"];

/// The attributes of push rules in this release, in the service's order.
fn rule_attributes(call: &Call<'_>) -> impl Iterator<Item = &'static Attribute> {
    call.edition().filter_existing(&ATTRIBUTE_TABLE.push_rules)
}

/// A push rule as the service shows it. The rule of a group does not contain the id of the group.
fn push_rule_json(call: &CollectionCall<'_>, rule: &Record) -> Value {
    let mut body = json!({ "id": rule.id, "created_at": rule.created_at });
    let project_id = call.scope.project_id();
    if let Some(id) = project_id {
        body["project_id"] = id.into();
    }
    for attribute in rule_attributes(call) {
        let is_null = project_id.is_some() && NULL_WHILE_OFF.contains(&attribute.name);
        body[attribute.name] = match rule.settings.get(attribute.name) {
            Some(Value::Bool(false)) if is_null => Value::Null,
            Some(value) => value.clone(),
            None => attribute.preset.clone(),
        };
    }
    body
}

/// Stores the fields of a call. The call must have at least one field.
fn store_fields(rule: &mut Record, call: &Call<'_>) -> Result<()> {
    call.require_any(&rule_attributes(call).map(|attribute| attribute.name).collect::<Vec<_>>())?;
    let mut errors = FieldErrors::default();
    for attribute in rule_attributes(call).filter(|attribute| call.has(attribute.name)) {
        let name = attribute.name;
        let (value, name_errors): (Value, Vec<String>) = match attribute.kind {
            ValueKind::Pattern(max_length) => {
                let regex = call.text(name)?;
                let regex_errors =
                    find_regex_errors(call, max_length, regex.as_deref().unwrap_or_default());
                (regex.into(), regex_errors)
            }
            ValueKind::Number(bounds) => {
                let size = call.integer(name)?;
                (size.into(), number_error(size, bounds.most).into_iter().collect())
            }
            _ => (call.flag(name)?.into(), Vec::new()),
        };
        let needs_value =
            attribute.on_null == NullHandling::Unsaved && matches!(attribute.kind, ValueKind::Flag);
        refuse_if(needs_value && value.is_null(), || ErrorResponse::null_column(name))?;
        name_errors.into_iter().for_each(|text| errors.add(name, text));
        rule.set(name, value);
    }
    errors.into_result()
}

/// The errors of a regular expression.
fn find_regex_errors(call: &Call<'_>, max_length: usize, regex: &str) -> Vec<String> {
    let limit = if call.is_at_least(16, 4) { max_length } else { max_length.min(511) };
    // Older releases also store invalid expressions.
    let syntax_error = if call.is_at_least(18, 2) { re2::syntax_error(regex) } else { None };
    length_error(regex, limit).into_iter().chain(syntax_error).collect()
}

/// Copies the rule of the nearest group above that has a rule to a new project.
pub(super) fn copy_group_rule(
    call: &Call<'_>,
    project_id: i64,
    namespace: &Namespace,
) -> Result<()> {
    let is_licensed = call.is_premium();
    for group_id in traversal_ids(&namespace.traversal).rev().filter(|_| is_licensed) {
        if let Some(rule) = PUSH_RULES.find_single(call, Holder::Group(group_id))? {
            let mut new_rule = Record { settings: rule.settings, ..Record::new(call.time_text()) };
            return Ok(PUSH_RULES.save(call, Holder::Project(project_id), &mut new_rule)?);
        }
    }
    Ok(())
}

fn find_rule(call: &CollectionCall<'_>) -> Result<Option<Record>> {
    Ok(PUSH_RULES.find_single(call, call.scope.holder())?)
}

/// The response if the rule is missing: `null` for a read in a project, 404 otherwise.
fn missing_rule_error(call: &CollectionCall<'_>) -> ErrorResponse {
    match call.scope {
        GroupOrProject::Project(_) if !call.is_write => ErrorResponse::not_saved(),
        GroupOrProject::Group(_) if call.method != Method::PUT => ErrorResponse::not_found_hidden(),
        _ if call.profile().errors_as_after_16 => ErrorResponse::not_found("Push rule"),
        _ => ErrorResponse::not_found("Push Rule"),
    }
}
