//! Rules for names and paths of both groups and projects, and the words of the service's models.

use super::prelude::*;

pub(super) const BLANK: &str = "can't be blank";
pub(super) const TAKEN: &str = "has already been taken";
pub(super) const TOO_LONG: &str = "is too long (maximum is 255 characters)";
/// The complaint about two parameters of which a call needs one.
pub(super) const NONE_OF_TWO: &str = "are missing, exactly one parameter must be provided";
/// The rule for paths that become names of images, in the words of 18.9 and later.
pub(super) const PLAIN_PATH: &str = "can only include non-accented letters, digits, '_', '-' and '.'. \
     It must not start with '-', '_', or '.', nor end with '-', '_', '.', '.git', or '.atom'.";

/// The maximum length of a name, and of a full path.
pub(super) const LONGEST: usize = 255;

/// Names of a project's own pages, which nothing in a group can have.
const RESERVED: &str = "\
    - badges blame blob builds commits create create_dir edit files find_file new preview raw \
    refs tree update wikis";

/// True if a page of the service has this path in a group.
pub(super) fn is_reserved(path: &str) -> bool {
    RESERVED.split(' ').any(|name| path.eq_ignore_ascii_case(name))
}

/// True if a name starts with a letter, digit, emoji or `_`, and has only these and `special` ones.
pub(super) fn is_name(name: &str, special: &str) -> bool {
    let first = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
    name.starts_with(first) && name.chars().all(|c| first(c) || special.contains(c))
}

/// True if a path consists of letters and digits, with single special characters in between.
pub(super) fn is_plain_path(path: &str) -> bool {
    path.split(['-', '_', '.'])
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// True if a path has only letters, digits, `_`, `-` and `.`, no `-` first, and none of these `ends`.
pub(super) fn is_path(path: &str, ends: &[&str]) -> bool {
    !path.is_empty()
        && path.bytes().all(|byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !path.starts_with('-')
        && !ends.iter().any(|end| path.ends_with(end))
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
pub(super) fn is_maskable(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_+=/@:.~-".contains(c)
}

/// A failure with its complaints as sentences.
pub(super) fn in_sentences(failure: ErrorResponse) -> ErrorResponse {
    let is_model = failure.body["message"].is_object();
    if is_model { ErrorResponse::message(failure.status, sentences(&failure)) } else { failure }
}

/// The complaints of a model as sentences, such as "Project namespace path is too long".
pub(super) fn sentences(failure: &ErrorResponse) -> Vec<String> {
    let mut sentences = Vec::new();
    for (field, texts) in failure.body["message"].as_object().into_iter().flatten() {
        let mut words = field.replace(['_', '.'], " ");
        words[..1].make_ascii_uppercase();
        let texts = texts.as_array().into_iter().flatten().filter_map(Value::as_str);
        sentences.extend(texts.map(|text| format!("{words} {text}")));
    }
    sentences
}
