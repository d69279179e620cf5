//! Identities of users at sign-in providers. A user has at most one identity per provider.
//! Identities are stored with the settings of the user.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[delete("/users/{user_id}/identities/{provider}", remove)];

const IDENTITIES: &str = "identities";

/// All identities of a user, as responses show them.
pub(super) fn list_identities(call: &Call<'_>, user_id: i64) -> Result<Vec<Value>> {
    let settings = USER_SETTINGS.stored_values(call.db, user_id)?;
    Ok(settings.get(IDENTITIES).and_then(Value::as_array).cloned().unwrap_or_default())
}

/// The provider in the call, and the user's name at this provider. Fails with 400 if the call
/// contains only one of the two.
pub(super) fn read_identity(call: &Call<'_>) -> Result<Option<[String; 2]>> {
    match (call.text("provider")?, call.text("extern_uid")?) {
        (None, None) => Ok(None),
        (Some(provider), Some(name)) => Ok(Some([provider, name])),
        _ => Err(ErrorResponse::parameter_error(
            "extern_uid, provider",
            "provide all or none of parameters",
        )),
    }
}

/// Stores the identity in the call; it replaces the identity of the same provider.
pub(super) fn store_identity(call: &Call<'_>, user_id: i64) -> Result<()> {
    let Some([provider, name]) = read_identity(call)? else { return Ok(()) };
    let mut identities = list_identities(call, user_id)?;
    identities.retain(|identity| identity["provider"] != *provider);
    identities.push(json!({ "provider": provider, "extern_uid": name, "saml_provider_id": null }));
    USER_SETTINGS.put_value(call.db, user_id, IDENTITIES, identities)
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    let user = call.segment_user()?;
    let identities = list_identities(call, user.id)?;
    let (removed_identities, remaining_identities): (Vec<_>, Vec<_>) = identities
        .into_iter()
        .partition(|identity| identity["provider"] == call.segment("provider"));
    refuse_if(removed_identities.is_empty(), || ErrorResponse::not_found("Identity"))?;
    USER_SETTINGS.put_value(call.db, user.id, IDENTITIES, remaining_identities)?;
    Ok(Answer::no_content())
}
