//! Builds the bodies of requests from declared values, and from live values that an edit would
//! reset otherwise.

use crate::{
    cause::Cause,
    field::{Equality, Field, Secrecy, WriteRequest},
    kind::{FieldSpec, LiveEntry, NameIndex, NoCalls, Section, limits::is_on},
    level::AccessLevel,
    planted::Bug,
    secret::judge::{self, Credential},
    text,
    value::{self, Fields, Json, Object, Value, is_true},
};

/// Encodes declared fields as fields of a request.
#[derive(Clone, Copy, Debug)]
pub struct Encoder<'n> {
    /// The section of the entry.
    pub section: Section,
    /// The ids of the users, groups and other objects that the entry refers to.
    pub names: &'n NameIndex,
}

impl Encoder<'_> {
    /// The fields of an entry that `request` accepts.
    ///
    /// # Errors
    /// If a field refers to an object that does not exist.
    pub fn encode_body(self, declared: &Fields, request: WriteRequest) -> Result<Fields, NoCalls> {
        let accepted_fields =
            declared.iter().filter(|(name, _)| self.section.field(name).accepted.includes(request));
        let accepted_fields = self.drop_unset_conflicts(accepted_fields.collect());
        accepted_fields.into_iter().map(|(name, value)| self.encode_field(name, value)).collect()
    }

    /// Drops unset fields that the service refuses together with another of the `fields`
    /// ([`Relations::not_with`](crate::field::Relations::not_with)).
    fn drop_unset_conflicts<'d>(
        self,
        fields: Vec<(&'d String, &'d Value)>,
    ) -> Vec<(&'d String, &'d Value)> {
        let mut kept_fields = fields.clone();
        kept_fields.retain(|(name, value)| {
            is_on(value) || !fields.iter().any(|(other, _)| self.are_exclusive(name, other))
        });
        kept_fields
    }

    /// True if the service refuses a request with both fields.
    fn are_exclusive(self, first_name: &str, second_name: &str) -> bool {
        [(first_name, second_name), (second_name, first_name)].iter().any(|(name, other_name)| {
            self.section.field(name).relations.not_with == Some(other_name)
        })
    }

    /// The body of an edit: the changed fields, and the declared values of fields that the service
    /// would reset.
    ///
    /// # Errors
    /// The errors of [`Self::encode_body`].
    pub fn encode_edit_body(
        self,
        declared: &Fields,
        live: &LiveEntry,
        changed: &[&str],
    ) -> Result<Fields, NoCalls> {
        let Self { section, .. } = self;
        let needed_names = section.needed_fields(live.fields.raw());
        let sent_fields = declared.iter().filter(|(name, _)| {
            let field = section.field(name);
            // A field that cannot be compared is not sent with other changes.
            (field.accepted.includes(WriteRequest::Edit) || section.renaming_field(name).is_some())
                && (changed.contains(&name.as_str())
                    || needed_names.contains(&name.as_str())
                    || (field.with_every_edit && !is_hidden_in_responses(field, live))
                    || is_reset(field, changed)
                    || (is_sent_with_switch(field, declared, changed)
                        && !section.identity.contains(&name.as_str())))
        });
        let mut body = Fields::new();
        for (name, value) in self.drop_unset_conflicts(sent_fields.collect()) {
            let (sent_name, mut value) = self.encode_field(name, value)?;
            if let Some(spec) = section.spec(name).filter(|spec| spec.has_rows())
                && let Value::Plain(rows) = &value
            {
                value = Value::Plain(spec.row_changes(rows, live.fields.raw().get(name)));
            }
            let new_name = section.renaming_field(name).map(|field| field.name.to_owned());
            body.insert(new_name.unwrap_or(sent_name), value);
        }
        self.add_required_fields(&mut body, declared, Some(live))?;
        Ok(body)
    }

    /// Adds the fields that the service requires together with fields of `body`, with their declared
    /// value or else their live value.
    ///
    /// # Errors
    /// The errors of [`Self::encode_body`].
    pub fn add_required_fields(
        self,
        body: &mut Fields,
        declared: &Fields,
        live: Option<&LiveEntry>,
    ) -> Result<(), NoCalls> {
        for spec in self.section.specs() {
            let companion_name = spec
                .field
                .relations
                .sent_with
                .filter(|_| body.contains_key(spec.field.sent_name()));
            let Some(companion) = companion_name.and_then(|name| self.section.spec(name)) else {
                continue;
            };
            if body.contains_key(companion.field.sent_name()) {
                continue;
            }
            // Responses show a URL without its credentials, so the live URL must not be sent.
            let readable_entry = live.filter(|_| companion.field.secrecy() == Secrecy::Open);
            let live_value = readable_entry.and_then(|live| live.fields.raw().get(companion.name));
            let value = declared
                .get(companion.name)
                .cloned()
                .or_else(|| live_value.cloned().map(Value::Plain));
            if let Some(value) = value {
                body.extend([self.encode_field(companion.name, &value)?]);
            }
        }
        Ok(())
    }

    /// The live fields that an edit must send again, because the service would reset them otherwise.
    ///
    /// # Errors
    /// If such a field is neither in the response nor declared.
    pub fn repeated_fields(self, declared: &Fields, live: &LiveEntry) -> Result<Object, NoCalls> {
        if Bug::OmitRepeatedValues.is_planted() {
            return Ok(Object::new());
        }
        require_shown(self.section, live, "which this edit would reset", |spec| {
            spec.field.with_every_edit && !declared.contains_key(spec.name)
        })
        .map_err(|cause| cause.with_help("declare it, and the edit sends what is declared"))?;
        let repeated_specs = self.section.specs().iter().filter(|spec| spec.field.with_every_edit);
        let repeated_values = repeated_specs.filter_map(|spec| {
            let value = live.fields.raw().get(spec.name).filter(|value| !value.is_null())?;
            let (name, encoded_value) = self.encode_field(spec.name, &value.clone().into()).ok()?;
            Some((name, encoded_value.plain_json()?.clone()))
        });
        Ok(repeated_values.collect())
    }

    /// Encodes one field: returns its name and value for requests.
    ///
    /// # Errors
    /// The errors of [`Self::encode_body`].
    pub fn encode_field(self, name: &str, value: &Value) -> Result<(String, Value), NoCalls> {
        let Self { section, names } = self;
        let field = section.field(name);
        let sent_name = section.table().sent_name(name).to_owned();
        let Value::Plain(json_value) = value else { return Ok((sent_name, value.clone())) };
        let row_spec = section.spec(name).filter(|spec| spec.has_rows());
        let encoded_value = match (json_value, row_spec) {
            (Json::Array(rows), Some(spec)) => {
                rows.iter().map(|row| spec.encode_row(row, names)).collect::<Result<_, _>>()?
            }
            (Json::Array(items), None) => items
                .iter()
                .map(|item| encode_item(field, item, names, field.name))
                .collect::<Result<_, _>>()?,
            (Json::String(_), _) if field.names.is_some() => {
                encode_item(field, json_value, names, field.name)?
            }
            _ if field.is_level() => AccessLevel::convert_to_number(json_value),
            _ => replace_null(json_value),
        };
        Ok((sent_name, Value::Plain(encoded_value)))
    }
}

/// Encodes `item`, a value of `field`: a name becomes the id of the object, any other value is
/// unchanged. Faults are reported for `reported_field`.
pub(super) fn encode_item(
    field: &Field,
    item: &Json,
    names: &NameIndex,
    reported_field: &'static str,
) -> Result<Json, NoCalls> {
    Ok(match (field.names, field.relations.names_entries, item) {
        (Some(object_type), _, Json::String(text)) => {
            names.require_id(object_type, text, reported_field)?.to_json()
        }
        (None, Some(section), Json::String(text)) => {
            names.require_entry_id(section, text, reported_field)?.to_json()
        }
        _ => item.clone(),
    })
}

/// True if the service resets `field` when `changed` fields change.
pub fn is_reset(field: &Field, changed: &[&str]) -> bool {
    field.relations.reset_by.is_some_and(|field_name| changed.contains(&field_name))
        && !Bug::OmitHookSecret.is_planted()
}

/// True if an edit of the `changed` fields turns on the switch that `field` limits.
fn is_sent_with_switch(field: &Field, declared: &Fields, changed: &[&str]) -> bool {
    let Some(switch) = field.relations.limits else { return false };
    changed.contains(&switch) && declared.get(switch).is_some_and(is_on)
}

/// True if the service shows `null` instead of the value of `field` in this entry.
pub fn is_hidden_in_responses(field: &Field, live: &LiveEntry) -> bool {
    field.relations.hidden_by.is_some_and(|flag| is_true(live.fields.raw(), flag))
}

/// True if the value of `field` is masked in job logs. Then undrift's output must not contain the
/// value either, even if the value is a literal in Git.
pub fn is_masked_in_logs(field: &Field, values: &Fields) -> bool {
    field.secrecy() == Secrecy::Sensitive
        && ["masked"].into_iter().chain(field.relations.hidden_by).any(|flag| values.is_on(flag))
}

/// The first certain credential in the texts of `value`.
pub fn find_credential_in(value: &Json) -> Option<Credential> {
    value::texts(value).find_map(judge::find_credential)
}

/// True if reports must not show a literal `value` of `field`. A secret in plain text must not
/// spread from Git into reports. `check` reports such a secret.
pub fn is_literal_hidden(field: &Field, value: &Json, values: &Fields) -> bool {
    is_masked_in_logs(field, values)
        || field.secrecy() == Secrecy::Sensitive && values.is_on("protected")
        || field.secrecy() != Secrecy::Address && find_credential_in(value).is_some()
}

/// Checks that the response contains the fields that `is_relevant` selects, if the service's tier
/// has them ([`LiveEntry::tier`]). A field may be missing if it is nullable, or newer than the
/// release of the reference.
///
/// # Errors
/// If fields are missing. The message ends with `reason`, a relative clause.
pub fn require_shown(
    section: Section,
    live: &LiveEntry,
    reason: &str,
    is_relevant: impl Fn(&&'static FieldSpec) -> bool,
) -> Result<(), Cause> {
    let expected_specs = section.specs().iter().filter(|spec| {
        spec.field.is_always_shown()
            && !spec.field.nullable
            && !spec.field.is_newer_than_reference()
            && spec.field.available.tier <= live.tier
            && section.has_field(live.fields.raw(), spec.name)
    });
    let relevant_specs = expected_specs.filter(is_relevant);
    let missing_specs = relevant_specs.filter(|spec| !live.fields.raw().contains_key(spec.name));
    let missing_names: Vec<_> = missing_specs.map(|spec| spec.name).collect();
    if missing_names.is_empty() {
        return Ok(());
    }
    Err(Cause::new(format!(
        "the service's answer lacks {}, {reason}",
        text::list_names(&missing_names)
    )))
}

/// Replaces each list that contains a single access level by the parameter for one level, which is
/// available in all tiers.
pub fn prefer_single_levels(section: Section, body: &mut Fields) {
    for FieldSpec { field, .. } in section.specs() {
        if let Some(single_parameter) = field.grants.single_level_as
            && let Some([row]) = body.list_field(field.sent_name()).map(Vec::as_slice)
            && let Some(level) = row.get("access_level").cloned()
        {
            body.remove(field.sent_name());
            body.insert(single_parameter.to_owned(), level.into());
        }
    }
}

/// Replaces `null` by an empty text, also within mappings. Both values clear a text, but other
/// clients send `null` for "not set".
fn replace_null(value: &Json) -> Json {
    match value {
        Json::Null => "".into(),
        Json::Object(object) => {
            object.iter().map(|(name, value)| (name.clone(), replace_null(value))).collect()
        }
        _ => value.clone(),
    }
}

/// The names of body fields whose values must not be quoted in messages.
pub fn sensitive_fields(section: Section) -> impl Iterator<Item = &'static str> {
    let specs = section.specs().iter();
    let sensitive_specs = specs.filter(|spec| spec.field.secrecy() != Secrecy::Open);
    sensitive_specs.map(|spec| spec.field.sent_name())
}

/// The names of body fields that contain ids of referenced objects.
pub fn id_fields(section: Section) -> Vec<String> {
    let specs = section.specs().iter();
    let id_specs = specs.filter(|FieldSpec { field, .. }| {
        field.names.is_some()
            || field.relations.names_entries.is_some()
            || field.compare == Equality::Rows
    });
    id_specs.map(|spec| spec.field.sent_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        kind::{
            CallContext, EntryFault, PlannedCall,
            calls::CallPurpose,
            forms::tests::names,
            testing::{
                edit_requests_for, existing_target, fields, live_entry, object, project_section,
                request_parts, with_flags,
            },
        },
        operation::PROJECT_UPDATE,
        release::DetectedRelease,
    };

    fn calls(section: Section, purpose: CallPurpose<'_>) -> Result<Vec<PlannedCall>, NoCalls> {
        let (target, names) = (existing_target(), names());
        let (target, names, release) = (&target, &names, DetectedRelease::NotRequested);
        section.rules().calls(&CallContext {
            section,
            target,
            names,
            release,
            has_unique_address: true,
            purpose,
        })
    }

    #[test]
    fn an_unknown_name_gives_a_reason_instead_of_a_call() {
        let push_fields = |row: Json| json!({"name": "x", "allowed_to_push": [row]});
        for (section_name, declared, fault_field, code) in [
            ("members", json!({"user": "nobody", "access_level": "guest"}), "user", "unknown-user"),
            ("shares", json!({"group": "acme/never-asked"}), "group", "unknown-group"),
            (
                "protected_branches",
                push_fields(json!({"group": "a/gone"})),
                "allowed_to_push",
                "unknown-group",
            ),
            (
                "protected_branches",
                push_fields(json!({"user": "nobody"})),
                "allowed_to_push",
                "unknown-user",
            ),
        ] {
            match calls(
                project_section(section_name),
                CallPurpose::Create(&fields(declared.clone())),
            ) {
                Err(NoCalls::Impossible(EntryFault { code: actual_code, field, .. })) => {
                    assert_eq!((actual_code, field), (code, fault_field), "{declared}");
                }
                other => panic!("{declared}: {other:?}"),
            }
        }
    }

    #[test]
    fn id_fields_are_the_fields_that_name_objects() {
        for (name, expected) in [
            ("members", &["user_id", "member_role_id"][..]),
            ("shares", &["group_id"]),
            ("protected_tags", &["allowed_to_create"]),
            ("variables", &[]),
        ] {
            assert_eq!(id_fields(project_section(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_file_is_sent_in_a_request_of_its_own() {
        let mut declared = fields(json!({"description": "new", "name": "Shop"}));
        declared.insert("avatar".into(), Value::File("shop.png".into()));
        let raw = json!({"description": "old", "name": "Shop", "avatar_url": null});
        let edits = edit_requests_for(
            project_section("settings"),
            &declared,
            raw,
            &["description", "avatar"],
        );
        let put_request = |body| PROJECT_UPDATE.request().with_argument("id", 7).with_fields(body);
        let file = Fields::from([("avatar".to_owned(), Value::File("shop.png".into()))]);
        let expected = [put_request(fields(json!({"description": "new"}))), put_request(file)];
        assert_eq!(request_parts(&edits), request_parts(&expected));
    }

    #[test]
    fn an_entry_that_is_never_removed_needs_no_call() {
        let result = calls(
            project_section("settings"),
            CallPurpose::Remove(&live_entry(project_section("settings"), json!({}))),
        );
        assert_eq!(result, Err(NoCalls::NotNeeded));
    }

    /// The reason why a live entry without `missing_field` cannot be changed; `None` if it can.
    fn block_reason(
        section_name: &str,
        declared: &Json,
        raw: &Json,
        missing_field: &str,
    ) -> Option<String> {
        let mut raw = with_flags(project_section(section_name), object(raw.clone()));
        raw.remove(missing_field);
        let (live, declared) =
            (live_entry(project_section(section_name), raw.into()), fields(declared.clone()));
        let changed: Vec<_> = declared.keys().map(String::as_str).collect();
        match calls(project_section(section_name), CallPurpose::Change(&declared, &live, &changed))
        {
            Ok(_) => None,
            Err(NoCalls::LiveUnknown(cause)) => Some(cause.to_string()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn fields_that_a_change_would_reset_must_be_known() {
        let existing_hook =
            json!({"id": 3, "url": "https://h/x", "push_events_branch_filter": "main"});
        let pushes = json!({"push_events": false});
        assert_eq!(block_reason("hooks", &pushes, &existing_hook, "created_at"), None);
        let message = "the service's answer lacks `job_events`, which this edit would reset";
        assert_eq!(block_reason("hooks", &pushes, &existing_hook, "job_events").unwrap(), message);
        assert_eq!(
            block_reason("hooks", &json!({"job_events": true}), &existing_hook, "job_events"),
            None
        );
        let filter = "push_events_branch_filter";
        assert_eq!(block_reason("hooks", &pushes, &existing_hook, filter), None, "that is null");

        let share =
            json!({"group_id": 5, "group_full_path": "acme/kids", "group_access_level": 10});
        let level = json!({"group_access": "guest"});
        assert_eq!(block_reason("shares", &level, &share, "expires_at"), None, "that is null");
        let why = "the service's answer lacks `group_access`, which cannot be put back";
        assert_eq!(block_reason("shares", &level, &share, "group_access_level").unwrap(), why);
    }
}
