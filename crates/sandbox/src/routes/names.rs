//! What holds for names and paths of groups and projects alike, and the words of the service's models
//! about them.

pub(super) const BLANK: &str = "can't be blank";
pub(super) const TAKEN: &str = "has already been taken";
pub(super) const TOO_LONG: &str = "is too long (maximum is 255 characters)";
/// What paths have to be where images are named after them, as the service says it from 18.9 on.
pub(super) const PLAIN_PATH: &str = "can only include non-accented letters, digits, '_', '-' and '.'. \
     It must not start with '-', '_', or '.', nor end with '-', '_', '.', '.git', or '.atom'.";

/// The most characters of a name, and of a whole path.
pub(super) const LONGEST: usize = 255;

/// Names of the pages of a project, which nothing below a group can have.
const RESERVED: &str = "\
    - badges blame blob builds commits create create_dir edit files find_file new preview raw \
    refs tree update wikis";

/// Whether a page of the service has this path below a group.
pub(super) fn is_reserved(path: &str) -> bool {
    RESERVED.split(' ').any(|name| path.eq_ignore_ascii_case(name))
}

/// Whether a path is of letters and digits, with single special characters in between.
pub(super) fn is_plain_path(path: &str) -> bool {
    path.split(['-', '_', '.'])
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
