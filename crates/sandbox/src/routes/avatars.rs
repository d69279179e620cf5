//! Avatars of projects, groups and users. A multipart form uploads an avatar, and responses show
//! its URL (reference 2, 4.3). As in the real service, everybody can download avatars from their
//! URLs.

use super::prelude::*;

/// Routes outside `/api/v4`.
pub(super) const PAGE_ROUTES: &[Route] =
    &[get("/uploads/-/system/{kind}/avatar/{id}/{name}", download_avatar)];

pub(super) const ROUTES: &[Route] = &[get("/{holder}/avatar", |call| {
    image_answer(call, GroupOrProject::from_call_if_visible(call)?.holder())?.or_not_found("Avatar")
})];

/// The maximum size of an avatar, in bytes. [`IMAGE_TYPES`] has the allowed file extensions with
/// their media types.
const MAX_AVATAR_BYTES: usize = 200 * 1024;
const IMAGE_TYPES: [(&str, &str); 9] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("bmp", "image/bmp"),
    ("tiff", "image/tiff"),
    ("ico", "image/vnd.microsoft.icon"),
    ("webp", "image/webp"),
    ("tif", "image/tiff"),
];

/// Stores the avatar in a call. If the call clears the avatar, the stored avatar is removed.
pub(crate) fn store_avatar(call: &Call<'_>, holder: Holder, params: &Params) -> Result<()> {
    let Some(file) = read_avatar(params)? else { return Ok(()) };
    let (column, id) = holder.column_and_id();
    call.execute(&format!("DELETE FROM avatars WHERE {column} = ?1"), [id])?;
    if let Some(file) = file {
        let sql = format!("INSERT INTO avatars ({column}, name, content) VALUES (?1, ?2, ?3)");
        call.execute(&sql, params![id, file.file_name, &file.bytes[..]])?;
    }
    match holder {
        // The project's row also has the file name, so that lists need no further query.
        Holder::Project(id) => {
            call.set_column("projects", id, "avatar", file.map(|file| &file.file_name))
        }
        _ => Ok(()),
    }
}

/// The URL of the stored avatar; `None` if no avatar is stored.
pub(super) fn stored_avatar_url(call: &Call<'_>, holder: Holder) -> Result<Option<String>> {
    let (column, id) = holder.column_and_id();
    let sql = format!("SELECT name FROM avatars WHERE {column} = ?1");
    let name: Option<String> = call.query_optional_value(&sql, [id])?;
    Ok(name.map(|name| avatar_url(&call.base_url, holder, &name)))
}

/// The URL of an avatar with this file name.
pub(crate) fn avatar_url(base_url: &str, holder: Holder, name: &str) -> String {
    let (column, id) = holder.column_and_id();
    let owner_type = column.trim_end_matches("_id");
    format!("{base_url}/uploads/-/system/{owner_type}/avatar/{id}/{name}")
}

/// Refuses an avatar that is not a file.
pub(super) fn check_avatar_type(params: &Params) -> Result<()> {
    match params.text("avatar")? {
        Some(text) if !text.is_empty() && params.file("avatar").is_none() => {
            Err(ErrorResponse::invalid_parameter("avatar"))
        }
        _ => Ok(()),
    }
}

/// Reads the avatar from a multipart body; `None` if the body has no avatar. `Some(None)` means an
/// empty value, which removes the stored avatar.
fn read_avatar(params: &Params) -> Result<Option<Option<&Upload>>> {
    check_avatar_type(params)?;
    let Some(file) = params.file("avatar") else {
        return Ok(params.text("avatar")?.map(|_| None));
    };
    refuse_if(image_media_type(&file.file_name).is_none(), || {
        let formats = IMAGE_TYPES.map(|(extension, _)| extension).join(", ");
        let text =
            "file format is not supported. Please try one of the following supported formats";
        ErrorResponse::field_error("avatar", format!("{text}: {formats}"))
    })?;
    let message = "is too big (should be at most 200 KiB)";
    refuse_if(file.bytes.len() > MAX_AVATAR_BYTES, || {
        ErrorResponse::field_error("avatar", message)
    })?;
    Ok(Some(Some(file)))
}

fn image_media_type(name: &str) -> Option<&'static str> {
    let extension = name.rsplit('.').next().unwrap_or_default();
    let mut images = IMAGE_TYPES.iter();
    Some(images.find(|(image_extension, _)| image_extension.eq_ignore_ascii_case(extension))?.1)
}

fn download_avatar(call: &Call<'_>) -> Result<Answer> {
    let id = call.segment_id("id")?;
    let holder = match call.segment("kind") {
        "project" => Holder::Project(id),
        "group" => Holder::Group(id),
        "user" => Holder::User(id),
        _ => return Err(ErrorResponse::route_not_found()),
    };
    image_answer(call, holder)?.ok_or_else(ErrorResponse::route_not_found)
}

fn image_answer(call: &Call<'_>, holder: Holder) -> Result<Option<Answer>> {
    let (column, id) = holder.column_and_id();
    let sql = format!("SELECT name, content FROM avatars WHERE {column} = ?1");
    let stored_avatar = call.query_rows::<(String, Vec<u8>)>(&sql, [id])?.pop();
    Ok(stored_avatar.map(|(name, content)| {
        let mut answer = Answer::with_json_text(StatusCode::OK, content);
        let media_type = image_media_type(&name).unwrap_or("application/octet-stream");
        answer.headers.push(("content-type", media_type.to_owned()));
        answer
    }))
}
