//! Invitations by e-mail to people who may have no account yet. The reference shows invitations
//! among the pending members of a root group (1, 2.6), but does not describe operations on them.
//! The operations here follow the real service.

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/{holder}/invitations", |call| list(call, &invitation_scope(call)?)),
    post("/{holder}/invitations", |call| create(call, &invitation_scope(call)?)),
    put("/{holder}/invitations/{email}", |call| update(call, &invitation_scope(call)?)),
    delete("/{holder}/invitations/{email}", |call| remove(call, &invitation_scope(call)?)),
];

fn invitation_scope(call: &Call<'_>) -> Result<GroupOrProject> {
    GroupOrProject::from_call(call, [MAINTAINER, OWNER])
}

/// The invitations to a group or project: the invitation for the address `email`, or all
/// invitations if `email` is empty.
fn list_invitations(call: &Call<'_>, scope: &GroupOrProject, email: &str) -> Result<Vec<Value>> {
    let sql = format!(
        "SELECT json_object('access_level', m.access_level, 'created_at', m.created_at,
                    'expires_at', m.expires_at, 'invite_email', m.email,
                    'invite_token', m.id || ' ' || m.email, 'created_by_name', u.name)
         FROM members m LEFT JOIN users u ON u.id = m.created_by
         WHERE m.{} = ?1 AND m.email IS NOT NULL AND (?2 = '' OR m.email = ?2) ORDER BY m.id",
        scope.id_column()
    );
    let mut invitations = call.query_objects(&sql, params![scope.id(), email])?;
    for invitation in &mut invitations {
        // The token is never used, because nobody can accept an invitation of the sandbox.
        let token_seed = invitation["invite_token"].as_str().unwrap_or_default();
        invitation["invite_token"] = format!("{:x}", Sha256::digest(token_seed)).into();
    }
    Ok(invitations)
}

fn list(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let query = call.text("query")?.unwrap_or_default();
    page::list_page(call, list_invitations(call, scope, &query)?)
}

/// Invites each address. Users with an account become members immediately. Existing invitations and
/// members get the new level.
fn create(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    call.require_all(&[ParamRequirement::AllowedValue("access_level")])?;
    let emails = call.texts("email")?.unwrap_or_default();
    let are_valid = emails.iter().all(|email| User::is_email_address(email));
    let text = "contains an invalid email address";
    refuse_if(!are_valid, || ErrorResponse::parameter_error("email", text))?;
    // A list of ids is a text or an array; a single number is ignored.
    let has_id_list = call.get("user_id").is_some_and(|ids| !ids.is_number());
    let ids = if has_id_list { call.integers("user_id")?.unwrap_or_default() } else { Vec::new() };
    let message = "Must provide either email or user_id as a parameter";
    refuse_if(emails.is_empty() && ids.is_empty(), || ErrorResponse::bad_request(message))?;
    let terms = MembershipTerms::from_call(call, scope)?;
    let mut user_results = Vec::new();
    for id in ids {
        if let Some(user) = User::find_by_id(call.db, id)? {
            let result = terms.grant(call, scope, &user);
            user_results.push((user.username, result));
        }
    }
    for email in emails {
        match User::find_by_email(call.db, &email)? {
            Some(user) => user_results.push((email, terms.grant(call, scope, &user))),
            None => terms.invite(call, scope, &email)?,
        }
    }
    members::answer_user_results(user_results)
}

fn update(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let email = call.segment("email");
    let find_invitation =
        || Ok::<_, ErrorResponse>(list_invitations(call, scope, email)?.into_iter().next());
    let invitation = find_invitation()?.ok_or_else(ErrorResponse::not_found_hidden)?;
    let level = if call.has("access_level") {
        terms::requested_level(call, scope)?
    } else {
        invitation["access_level"].as_i64().unwrap_or_default()
    };
    let expires_at = match terms::requested_expiry(call)? {
        Some(day) => day,
        None => invitation["expires_at"].as_str().map(str::to_owned),
    };
    MembershipTerms { expires_at, ..MembershipTerms::granted_by_caller(call, level) }
        .invite(call, scope, email)?;
    Answer::ok(&find_invitation()?)
}

fn remove(call: &Call<'_>, scope: &GroupOrProject) -> Result<Answer> {
    let sql = format!("DELETE FROM members WHERE {} = ?1 AND email = ?2", scope.id_column());
    let removed_count = call.execute(&sql, params![scope.id(), call.segment("email")])?;
    refuse_if(removed_count == 0, ErrorResponse::not_found_hidden)?;
    Ok(Answer::no_content())
}
