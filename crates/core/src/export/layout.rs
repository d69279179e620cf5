//! The names of exported files: one file for each group with its projects, next to a folder for its
//! subgroups.

use crate::{address::group_of, field::Scope};

/// Names that manifests of groups must not have at the root: other files use them.
const RESERVED_NAMES: [&str; 3] = ["undrift", "sandbox", SHARED_NAME];
/// The name of the file with the rules for several top-level groups.
const SHARED_NAME: &str = "defaults";
/// Names that some systems reserve for devices, also with an extension.
const DEVICE_NAMES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// The maximum length of a name; leaves room for a suffix.
const MAX_NAME_BYTES: usize = 200;

/// The path of the file for the group or project at `path`, without extension. Different groups never
/// share a file. An empty path means all groups.
pub fn file_stem(scope: Scope, path: &str) -> String {
    if path.is_empty() {
        return SHARED_NAME.to_owned();
    }
    let group = match scope {
        Scope::Group => path,
        Scope::Project => group_of(path).unwrap_or(path),
    };
    let segments = group.split('/').enumerate();
    let names: Vec<_> = segments.map(|(at, segment)| file_name(segment, at == 0)).collect();
    names.join("/")
}

/// A name for `segment` that any file system accepts. Unsafe characters, and the first character of a
/// reserved name, become `%` and a code; no path of the service contains `%`.
fn file_name(segment: &str, is_first: bool) -> String {
    let lower = segment.to_lowercase();
    let device = lower.split('.').next().unwrap_or_default();
    let device_number = ["com", "lpt"].into_iter().find_map(|port| device.strip_prefix(port));
    let is_port = device_number.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']));
    let is_special = segment.is_empty()
        || segment.starts_with('.')
        || DEVICE_NAMES.contains(&device)
        || is_port
        || (is_first && RESERVED_NAMES.contains(&&*lower));
    let mut name = String::new();
    for (at, c) in segment.char_indices() {
        let is_last = at + c.len_utf8() == segment.len();
        let is_safe = c.is_alphanumeric() || "-_.+".contains(c);
        if !is_safe || (is_special && at == 0) || (is_last && c == '.') {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| name += &format!("%{byte:02X}"));
        } else {
            name.push(c);
        }
    }
    if segment.is_empty() {
        name.push('%');
    }
    if name.len() > MAX_NAME_BYTES {
        let cut =
            (0..=MAX_NAME_BYTES).rev().find(|at| name.is_char_boundary(*at)).unwrap_or_default();
        name.truncate(cut);
        name += &format!("~{:08x}", hash(segment));
    }
    name
}

/// A hash that is the same in every release (FNV-1a).
pub(super) fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_its_projects_share_a_file_beside_the_folder_of_subgroups() {
        assert_eq!(file_stem(Scope::Group, "acme"), "acme");
        assert_eq!(file_stem(Scope::Project, "acme/shop"), "acme");
        assert_eq!(file_stem(Scope::Group, "acme/web"), "acme/web");
        assert_eq!(file_stem(Scope::Project, "acme/web/site.io"), "acme/web");
    }

    #[test]
    fn names_that_are_not_valid_file_names_are_escaped() {
        for (path, expected) in [
            ("..", "%2E%2E"),
            (".", "%2E"),
            (".hidden/x", "%2Ehidden/x"),
            ("acme/..", "acme/%2E%2E"),
            ("acme/a.", "acme/a%2E"),
            ("nul", "%6Eul"),
            ("acme/Con.d", "acme/%43on.d"),
            ("acme/com1", "acme/%63om1"),
            ("acme/coma", "acme/coma"),
            ("sandbox", "%73andbox"),
            ("Undrift", "%55ndrift"),
            ("acme/sandbox", "acme/sandbox"),
            ("a b/c:d\\e", "a%20b/c%3Ad%5Ce"),
            ("a//b", "a/%/b"),
        ] {
            assert_eq!(file_stem(Scope::Group, path), expected, "{path}");
        }
        let [long, other] = ["a", "b"].map(|end| file_stem(Scope::Group, &("x".repeat(250) + end)));
        assert!(long != other && long.len() < 220, "{long}");
    }
}
