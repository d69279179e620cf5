//! The body of a request: its maximum length, and its parameters.

use crate::prelude::*;
use futures_util::FutureExt as _;
use futures_util::stream;
use multer::Multipart;

/// The maximum sizes of a body and of an upload, in bytes.
const MAX_BODY_BYTES: usize = 1024 * 1024;
const MAX_UPLOAD_BYTES: usize = 10 * 1024 * 1024;

const MULTIPART: &str = "multipart/form-data";

/// The maximum length of the body of a request with these headers, in bytes.
pub(crate) fn max_body_length(headers: &HeaderMap) -> usize {
    if media_type(headers) == MULTIPART { MAX_UPLOAD_BYTES } else { MAX_BODY_BYTES }
}

/// The 413 for a body that is too large.
pub(crate) fn too_large_error() -> ErrorResponse {
    ErrorResponse::error(StatusCode::PAYLOAD_TOO_LARGE, "413 Request Entity Too Large")
}

/// Parses a body and adds its parameters to `params`.
pub(crate) fn add_body_params(headers: &HeaderMap, body: Bytes, params: &mut Params) -> Result<()> {
    refuse_if(body.len() > max_body_length(headers), too_large_error)?;
    match media_type(headers).as_str() {
        MULTIPART => add_multipart_params(headers, body, params),
        _ if body.is_empty() => Ok(()),
        "application/json" => params.add_json(&body),
        // A body without a content type is a form.
        "application/x-www-form-urlencoded" | "" => {
            params.add_form(&String::from_utf8_lossy(&body))
        }
        other => Err(ErrorResponse::error(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("The provided content-type '{other}' is not supported."),
        )),
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn media_type(headers: &HeaderMap) -> String {
    content_type(headers).split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn malformed_body_error() -> ErrorResponse {
    ErrorResponse::error(StatusCode::BAD_REQUEST, "message body does not match declared format")
}

fn add_multipart_params(headers: &HeaderMap, body: Bytes, params: &mut Params) -> Result<()> {
    let boundary =
        multer::parse_boundary(content_type(headers)).map_err(|_| malformed_body_error())?;
    let mut form = Multipart::new(stream::iter([Ok::<_, std::io::Error>(body)]), boundary);
    let read_parts = async {
        while let Some(part) = form.next_field().await.map_err(|_| malformed_body_error())? {
            let name = part.name().unwrap_or_default().to_owned();
            let file_name = part.file_name().map(sanitize_file_name);
            let bytes = part.bytes().await.map_err(|_| malformed_body_error())?;
            match file_name {
                Some(file_name) => params.add_file(Upload { field: name, file_name, bytes }),
                None => params
                    .add(&name, Value::String(String::from_utf8_lossy(&bytes).into_owned()))?,
            }
        }
        Ok(())
    };
    // The whole body is in memory, and the parser never has to wait.
    read_parts.now_or_never().unwrap_or_else(|| Err(malformed_body_error()))
}

/// The last segment of a client's file name, limited to characters that are safe in paths, URLs and
/// Markdown.
fn sanitize_file_name(name: &str) -> String {
    let file_name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let safe_name: String = file_name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
        .take(200)
        .collect();
    let visible_name = safe_name.trim_start_matches('.').to_owned();
    if visible_name.is_empty() { "file".to_owned() } else { visible_name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(content_type: &'static str, body: &'static str) -> Result<Params> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, content_type.parse().expect("a header value"));
        let mut params = Params::default();
        add_body_params(&headers, body.into(), &mut params).map(|()| params)
    }

    #[test]
    fn a_multipart_body_has_parameters_and_files() {
        let body = "--Xy\r\nContent-Disposition: form-data; name=\"a[b]\"\r\n\r\nvalue\r\n\
                    --Xy\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../a b.PNG\"\r\n\r\nDATA\r\n--Xy--\r\n";
        let params = form("Multipart/Form-Data; boundary=Xy", body).expect("a form");
        assert_eq!(params.get("a"), Some(&serde_json::json!({"b": "value"})));
        let file = params.file("file").expect("a file");
        assert_eq!((file.file_name.as_str(), &file.bytes[..]), ("a_b.PNG", &b"DATA"[..]));
        for (content_type, body) in [
            ("multipart/form-data; boundary=xy", body),
            ("multipart/form-data", body),
            ("multipart/form-data; boundary=Xy", &body[..body.len() - 20]),
            ("multipart/form-data; boundary=Xy", ""),
        ] {
            let failure = form(content_type, body).expect_err("malformed");
            assert_eq!(failure.status, StatusCode::BAD_REQUEST, "{content_type} {body}");
        }
    }
}
