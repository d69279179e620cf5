//! Deploy keys of a project. The reference does not describe deploy keys. This module follows the
//! real service.
//!
//! All projects that use a key share the key and its title. Only `can_push` is stored for each
//! project. The key is removed together with its last project.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use md5::Md5;

use super::prelude::*;

pub(super) const ROUTES: &[Route] = &[
    get("/deploy_keys", list_all),
    get("/projects/{id}/deploy_keys", list),
    post("/projects/{id}/deploy_keys", create),
    get("/projects/{id}/deploy_keys/{key_id}", show),
    put("/projects/{id}/deploy_keys/{key_id}", update),
    delete("/projects/{id}/deploy_keys/{key_id}", remove),
    post("/projects/{id}/deploy_keys/{key_id}/enable", enable),
];

const KEY_TYPES: &str = "ssh-rsa ssh-dss ssh-ed25519 ecdsa-sha2-nistp256 ecdsa-sha2-nistp384 \
    ecdsa-sha2-nistp521 sk-ecdsa-sha2-nistp256@openssh.com sk-ssh-ed25519@openssh.com";

const FORBIDDEN_TYPE_TEXT: &str =
    "type is forbidden. Must be RSA, DSA, ECDSA, ED25519, ECDSA_SK, or ED25519_SK";

struct DeployKey {
    id: i64,
    title: String,
    key: String,
    fingerprint: String,
    created_at: String,
    expires_at: Option<String>,
}

stored!(DeployKey: deploy_keys k, id, title, key, fingerprint, created_at, expires_at);

impl DeployKey {
    /// The ids of the projects that use the key.
    fn project_ids(&self, call: &Call<'_>) -> Result<Vec<i64>> {
        call.query_column("SELECT project_id FROM deploy_key_projects WHERE key_id = ?1", [self.id])
    }

    /// True if the key belongs to a project in which the caller is a member.
    fn is_visible_to_caller(&self, call: &Call<'_>) -> Result<bool> {
        try_any(self.project_ids(call)?, |id| {
            let project = Project::find_by_id(call.db, id)?;
            project.map_or(Ok(false), |project| Ok(call.caller_level_in_project(&project)? > 0))
        })
    }

    /// True if the project may push with the key; `None` if the project does not use it.
    fn can_push(&self, call: &Call<'_>, project_id: i64) -> Result<Option<bool>> {
        let sql = "SELECT can_push FROM deploy_key_projects WHERE project_id = ?1 AND key_id = ?2";
        call.query_optional_value(sql, [project_id, self.id])
    }

    fn add_to_project(&self, call: &Call<'_>, project_id: i64, can_push: bool) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO deploy_key_projects (key_id, project_id, can_push) VALUES (?1, ?2, ?3)";
        call.execute(sql, params![self.id, project_id, can_push]).map(drop)
    }

    /// The JSON of the key in responses, without the fields that depend on the project.
    fn json(&self, call: &Call<'_>) -> Value {
        let mut body =
            self.json_columns("id title key fingerprint fingerprint_sha256 created_at expires_at");
        body["fingerprint"] = self.md5_fingerprint().into();
        body["fingerprint_sha256"] = self.column("fingerprint");
        set_field_if(&mut body, call.is_observed_release_or_later(), "last_used_at", Value::Null);
        set_field_if(
            &mut body,
            call.is_observed_release_or_later(),
            "usage_type",
            "auth_and_signing",
        );
        body
    }

    /// The MD5 fingerprint.
    fn md5_fingerprint(&self) -> String {
        let material =
            self.key.split_whitespace().nth(1).and_then(decode_material).unwrap_or_default();
        let digits = Md5::digest(&material);
        digits.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
    }

    fn project_json(&self, call: &Call<'_>, project_id: i64) -> Result<Value> {
        let mut body = self.json(call);
        body["can_push"] = self.can_push(call, project_id)?.unwrap_or_default().into();
        Ok(body)
    }
}

fn decode_material(material: &str) -> Option<Vec<u8>> {
    STANDARD.decode(material).ok().or_else(|| STANDARD_NO_PAD.decode(material).ok())
}

/// The stored form of a key and the fingerprint of its content. The stored form has only the first
/// word of the comment. `None` if the text is not a key.
fn parse_key(text: &str) -> Option<(String, String)> {
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    let (key_type, material) = (words.first()?, words.get(1)?);
    let bytes = decode_material(material)?;
    // The content begins with the length of the type, in four bytes, and the type.
    let (length, key_content) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let is_known_type = KEY_TYPES.split(' ').any(|name| name == *key_type);
    let is_valid = is_known_type
        && key_content.get(..length)? == key_type.as_bytes()
        && key_content.len() > length;
    let fingerprint = format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(&bytes)));
    is_valid.then(|| (words.join(" "), fingerprint))
}

/// Reads the title, and adds its errors to `errors`.
fn read_title(call: &Call<'_>, errors: &mut FieldErrors) -> Result<String> {
    const FIELD: &str = "deploy_key.title";
    let title = call.text("title")?.unwrap_or_default();
    errors.add_if(title.trim().is_empty(), FIELD, BLANK_TEXT);
    errors.check_length(FIELD, &title, MAX_NAME_LENGTH);
    Ok(title)
}

/// The key in the path, if the project uses it.
fn find_project_key(call: &Call<'_>, project_id: i64) -> Result<Option<DeployKey>> {
    let condition = "WHERE k.id = ?1 AND k.id IN (SELECT key_id FROM deploy_key_projects WHERE project_id = ?2)";
    Ok(DeployKey::find_first(call.db, condition, [call.segment_id("key_id")?, project_id])?)
}

fn list(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_project(MAINTAINER)?.id;
    let clauses =
        "JOIN deploy_key_projects p ON p.key_id = k.id WHERE p.project_id = ?1 ORDER BY k.id";
    let keys = DeployKey::list(call.db, clauses, [project_id])?;
    page::list_objects(call, &keys, |key| key.project_json(call, project_id))
}

/// All keys of all projects, each with the projects to which it may push. No key of the sandbox is
/// public.
fn list_all(call: &Call<'_>) -> Result<Answer> {
    call.require_administrator()?;
    let is_public = call.is_true("public")?;
    let keys = DeployKey::list(call.db, "WHERE NOT ?1 ORDER BY k.id", [is_public])?;
    page::list_objects(call, &keys, |key| {
        let ids = key.project_ids(call)?;
        let writable_ids = try_filter(ids, |id| Ok(key.can_push(call, *id)? == Some(true)))?;
        let writable_projects = writable_ids.into_iter().map(|id| {
            let project = Project::find_by_id(call.db, id)?.or_no_record()?;
            projects::short_json(call, &project)
        });
        let mut body = key.json(call);
        body["projects_with_write_access"] = writable_projects.collect::<Result<_>>()?;
        Ok(body)
    })
}

fn show(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_project(MAINTAINER)?.id;
    let key = find_project_key(call, project_id)?.or_no_record()?;
    Answer::ok(&key.project_json(call, project_id)?)
}

/// Adds a key to a project. An existing key is found only if its stored text equals the text in the
/// call. The stored text may have a shorter comment than the text that was sent.
fn create(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_writable_project(MAINTAINER)?.id;
    call.require(&["key", "title"])?;
    let key_text = call.text("key")?.unwrap_or_default().trim().to_owned();
    let can_push = call.is_true("can_push")?;
    if let Some(existing_key) = DeployKey::find_first(call.db, "WHERE k.key = ?1", [&key_text])? {
        let is_used = existing_key.can_push(call, project_id)?.is_some();
        if !is_used && existing_key.is_visible_to_caller(call)? {
            existing_key.add_to_project(call, project_id, can_push)?;
        }
        if is_used || existing_key.can_push(call, project_id)?.is_some() {
            return Answer::created(&existing_key.project_json(call, project_id)?);
        }
    }
    let mut errors = FieldErrors::default();
    let title = read_title(call, &mut errors)?;
    let expires_at = call.time_or_day("expires_at")?.map(clock::format_time);
    let is_expired = expires_at.as_deref().is_some_and(|expiry| expiry < call.time_text());
    errors.add_if(is_expired, "deploy_key.key", "has expired");
    let Some((key, fingerprint)) = parse_key(&key_text) else {
        for text in [FORBIDDEN_TYPE_TEXT, "is invalid"] {
            errors.add("deploy_key.key", text);
        }
        errors.add("deploy_key.fingerprint_sha256", "cannot be generated");
        return Err(errors.into());
    };
    if DeployKey::find_first(call.db, "WHERE k.fingerprint = ?1", [&fingerprint])?.is_some() {
        let suffix = if call.profile().errors_as_after_16 { "_sha256" } else { "" };
        errors.add(&format!("deploy_key.fingerprint{suffix}"), TAKEN_TEXT);
    }
    errors.into_result()?;
    let created_at = call.time_text().to_owned();
    let mut new_key = DeployKey { id: 0, title, key, fingerprint, created_at, expires_at };
    new_key.id = new_key.upsert(call.db)?;
    new_key.add_to_project(call, project_id, can_push)?;
    Answer::created(&new_key.project_json(call, project_id)?)
}

/// Changes a key. Only administrators may change the title of a shared key; a title from another
/// caller is ignored.
fn update(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_writable_project(MAINTAINER)?.id;
    call.require_any(&["title", "can_push"])?;
    let mut key = find_project_key(call, project_id)?.or_no_record()?;
    let can_edit_title = call.is_administrator() || key.project_ids(call)? == [project_id];
    if call.has("title") && can_edit_title {
        let mut errors = FieldErrors::default();
        key.title = read_title(call, &mut errors)?;
        errors.into_result()?;
        key.upsert(call.db)?;
    }
    if call.has("can_push") {
        let can_push = call.flag("can_push")?;
        let can_push = can_push.ok_or_else(|| ErrorResponse::null_column("can_push"))?;
        key.add_to_project(call, project_id, can_push)?;
    }
    Answer::ok(&key.project_json(call, project_id)?)
}

fn remove(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_writable_project(MAINTAINER)?.id;
    let key = find_project_key(call, project_id)?.or_not_found("Deploy key")?;
    call.check_unmodified(&key.created_at)?;
    let sql = "DELETE FROM deploy_key_projects WHERE project_id = ?1 AND key_id = ?2";
    call.execute(sql, [project_id, key.id])?;
    Ok(Answer::no_content())
}

/// Adds an existing key to the project, without the right to push. If the project already uses the key,
/// nothing changes.
fn enable(call: &Call<'_>) -> Result<Answer> {
    let project_id = call.require_writable_project(MAINTAINER)?.id;
    match DeployKey::find_by_id(call.db, call.segment_id("key_id")?)? {
        Some(key) if key.is_visible_to_caller(call)? => {
            if key.can_push(call, project_id)?.is_none() {
                key.add_to_project(call, project_id, false)?;
            }
            Answer::created(&key.json(call))
        }
        _ => Err(ErrorResponse::not_found("Deploy key")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_contains_its_type_twice() {
        let make_material = |key_type: &str, content: &[u8]| {
            let mut bytes = (key_type.len() as u32).to_be_bytes().to_vec();
            bytes.extend(key_type.as_bytes());
            bytes.extend(content);
            STANDARD.encode(bytes)
        };
        let blob = make_material("ssh-ed25519", b"1234");
        let (kept, fingerprint) = parse_key(&format!("ssh-ed25519  {blob} a b c")).expect("a key");
        assert_eq!(kept, format!("ssh-ed25519 {blob} a"));
        assert!(fingerprint.starts_with("SHA256:") && !fingerprint.ends_with('='));
        let invalid_keys = [
            String::new(),
            "ssh-ed25519".to_owned(),
            blob.clone(),
            "ssh-ed25519 AAAA".to_owned(),
            "ssh-ed25519 !!!!".to_owned(),
            format!("ssh-rsa {blob}"),
            format!("ssh-new {}", make_material("ssh-new", b"1")),
            format!("ssh-ed25519 {}", make_material("ssh-ed25519", b"")),
        ];
        for text in invalid_keys {
            assert!(parse_key(&text).is_none(), "{text}");
        }
    }
}
