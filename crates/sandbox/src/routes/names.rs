//! Rules for names and paths that groups and projects share, with the service's error texts.

use super::prelude::*;

pub(super) const BLANK_TEXT: &str = "can't be blank";
pub(super) const TAKEN_TEXT: &str = "has already been taken";
pub(super) const TOO_LONG_TEXT: &str = "is too long (maximum is 255 characters)";
/// The error text for a call that has neither of two parameters that exclude each other.
pub(super) const NONE_OF_TWO_TEXT: &str = "are missing, exactly one parameter must be provided";
/// The rule for paths that become names of images, in the words of 18.9 and later.
pub(super) const PLAIN_PATH_TEXT: &str = "can only include non-accented letters, digits, '_', '-' and '.'. \
     It must not start with '-', '_', or '.', nor end with '-', '_', '.', '.git', or '.atom'.";

/// The maximum length of a name and of a full path, in characters.
pub(super) const MAX_NAME_LENGTH: usize = 255;

/// The names of a project's own pages. A project or group in a group cannot have such a path.
const RESERVED_NAMES: &str = "\
    - badges blame blob builds commits create create_dir edit files find_file new preview raw \
    refs tree update wikis";

/// True if a path is reserved for a page. A project or group in a group cannot have such a path.
pub(super) fn is_reserved_path(path: &str) -> bool {
    RESERVED_NAMES.split(' ').any(|name| path.eq_ignore_ascii_case(name))
}

/// True if a name starts with a letter, digit, emoji or `_`, and has only such characters and
/// `special_chars`.
pub(super) fn has_name_syntax(name: &str, special_chars: &str) -> bool {
    let is_first_char = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
    name.starts_with(is_first_char)
        && name.chars().all(|c| is_first_char(c) || special_chars.contains(c))
}

/// True if a path consists of letters and digits, with single `-`, `_` or `.` in between.
pub(super) fn is_plain_path(path: &str) -> bool {
    path.split(['-', '_', '.'])
        .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// True if a path has only letters, digits, `_`, `-` and `.`. It must not start with `-`, and must
/// not end with one of `forbidden_ends`.
pub(super) fn has_path_syntax(path: &str, forbidden_ends: &[&str]) -> bool {
    !path.is_empty()
        && path.bytes().all(|byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !path.starts_with('-')
        && !forbidden_ends.iter().any(|end| path.ends_with(end))
}

/// True for null and for an empty text.
pub(super) fn is_blank(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// True for the characters of keys of variables.
pub(super) fn is_key_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// True for the characters that a masked value may have.
pub(super) fn is_maskable_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_+=/@:.~-".contains(c)
}

/// Converts the field errors of a refusal to sentences. Other refusals stay unchanged.
pub(super) fn convert_to_sentences(failure: ErrorResponse) -> ErrorResponse {
    let has_field_errors = failure.body["message"].is_object();
    if has_field_errors {
        ErrorResponse::message(failure.status, error_sentences(&failure))
    } else {
        failure
    }
}

/// The label of a field at the start of a sentence.
pub(super) fn field_label(field: &str) -> String {
    let mut label = field.replace(['_', '.'], " ");
    label[..1].make_ascii_uppercase();
    label
}

/// The errors of an object as sentences, such as "Project namespace path is too long".
pub(super) fn error_sentences(failure: &ErrorResponse) -> Vec<String> {
    let mut sentences = Vec::new();
    for (field, texts) in failure.body["message"].as_object().into_iter().flatten() {
        let label = field_label(field);
        let texts = texts.as_array().into_iter().flatten().filter_map(Value::as_str);
        sentences.extend(texts.map(|text| format!("{label} {text}")));
    }
    sentences
}
