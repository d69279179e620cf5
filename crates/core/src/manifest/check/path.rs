//! Rules for full paths of groups and projects.

use crate::{field::Scope, manifest::faults::suggest_for_text};

/// The special characters that are allowed in names.
const SEPARATORS: [char; 3] = ['.', '-', '_'];

/// Names below a namespace that the service uses for its own pages.
const RESERVED_NAMES: &str = "\
    - badges blame blob builds commits create create_dir edit files find_file new preview raw \
    refs tree update wikis";

/// Names at the top level that the service uses for its own pages.
const RESERVED_TOP_LEVEL_NAMES: &str = "\
    - admin api assets dashboard explore files groups health_check help import jwt login oauth \
    profile projects public s search sitemap snippets unsubscribes uploads users v2";

/// True if a move from `former` to `path` changes the name, or leads to or from the top level,
/// where other names are reserved.
pub(super) fn is_renamed(former: &str, path: &str) -> bool {
    let name_key = |path: &str| {
        let parts = path.rsplit_once('/');
        (parts.is_some(), parts.map_or(path, |(_, name)| name).to_lowercase())
    };
    name_key(former) != name_key(path)
}

/// Checks a full path. Some rules only apply if the container may be created or renamed (`is_new`),
/// because existing containers keep their paths. Since release 14.9, projects have stricter rules
/// (reference 1, 8).
///
/// # Errors
/// The broken rule, as the end of a sentence that starts with "the path".
pub(in crate::manifest) fn check(
    scope: Scope,
    path: &str,
    is_new: bool,
) -> Result<(), &'static str> {
    if path.contains("://") || (path.contains('@') && path.contains(':')) {
        return Err("must be as in `acme/shop`, without the address of the service");
    }
    let segments: Vec<_> = path.split('/').collect();
    let has_segment = |is_wrong: fn(&str) -> bool| segments.iter().any(|segment| is_wrong(segment));
    if has_segment(str::is_empty) && path.contains('/') {
        return Err("must not have an empty part, nor start or end with `/`");
    }
    if segments.len() < 2 && scope == Scope::Project {
        return Err("must have a namespace, as in `acme/shop`");
    }
    if path.is_empty() {
        return Err("must not be empty");
    }
    if !path.chars().all(|c| c.is_ascii_alphanumeric() || c == '/' || SEPARATORS.contains(&c)) {
        return Err("must have only letters, digits, `.`, `-`, `_` and `/`");
    }
    if has_segment(|segment| matches!(segment, "." | "..")) {
        return Err("must be the full path, without `.` or `..`");
    }
    if has_segment(|name| {
        name.starts_with('-') || name.ends_with(".git") || name.ends_with(".atom")
    }) {
        return Err("must not have a part that starts with `-` or ends with `.git` or `.atom`");
    }
    if has_segment(|segment| segment.len() > 255) {
        return Err("must be shorter: at most 255 characters in each part");
    }
    if path.len() > 1024 {
        return Err("must be shorter: at most 1024 characters");
    }
    if is_new {
        check_new_name(scope, segments[segments.len() - 1], segments.len() == 1)
    } else {
        Ok(())
    }
}

/// Checks the last segment of a path that a container may get.
fn check_new_name(scope: Scope, name: &str, is_top_level: bool) -> Result<(), &'static str> {
    let reserved_names = if is_top_level { RESERVED_TOP_LEVEL_NAMES } else { RESERVED_NAMES };
    if reserved_names.split(' ').any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err("ends with a name that the service keeps for its own pages");
    }
    let mut pairs = name.as_bytes().windows(2);
    match scope {
        Scope::Group if name.len() < 2 || name.ends_with('.') => {
            Err("must have two characters or more in its last part, and no `.` at its end")
        }
        Scope::Project if name.starts_with(SEPARATORS) || name.ends_with(SEPARATORS) => {
            Err("must not start or end its last part with `.`, `-` or `_`")
        }
        Scope::Project
            if pairs.any(|pair| pair.iter().all(|byte| SEPARATORS.contains(&(*byte).into()))) =>
        {
            Err("must not have two of `.`, `-` and `_` in a row in its last part")
        }
        _ => Ok(()),
    }
}

/// Help for an invalid path, if the form of the path shows what the user meant.
pub(super) fn suggest_path_fix(path: &str) -> Option<String> {
    match path_in_url(path) {
        Some(path) => Some(format!("write only the path: `{path}`")),
        None => suggest_for_text("path", path).map(str::to_owned),
    }
}

/// The path in the URL of a group, project or repository; `None` if `text` is not such a URL.
fn path_in_url(text: &str) -> Option<&str> {
    let path = match (text.split_once("://"), text.split_once('@')) {
        (Some((_, without_scheme)), _) => without_scheme.split_once('/')?.1,
        (None, Some((_, remote))) => remote.split_once(':').map_or(remote, |(_, path)| path),
        (None, None) => text,
    };
    let path = path.split("/-/").next()?.trim_matches('/');
    let path = path.strip_prefix("groups/").unwrap_or(path);
    let path = path.strip_suffix(".git").unwrap_or(path);
    Some(path).filter(|path| *path != text && check(Scope::Group, path, false).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_rules() {
        for (path, is_old_valid, is_new_valid) in [
            ("acme/shop", true, true),
            ("acme/web/shop-2.x_y", true, true),
            ("shop", false, false),
            ("acme/Badges", true, false),
            ("acme/badges/shop", true, true),
            ("acme/wikis", true, false),
            ("", false, false),
            ("/acme/shop", false, false),
            ("acme/shop/", false, false),
            ("acme//shop", false, false),
            ("acme/sh op", false, false),
            ("acme/shöp", false, false),
            ("acme/shop.git", false, false),
            ("acme/shop.atom", false, false),
            ("acme.git/shop", false, false),
            ("acme/-shop", false, false),
            ("acme/./shop", false, false),
            ("acme/../shop", false, false),
            ("acme/..", false, false),
            ("https://gitlab.example.org/acme/shop", false, false),
            ("git@gitlab.example.org:acme/shop", false, false),
            ("acme/.shop", true, false),
            ("acme/_shop", true, false),
            ("acme/shop-", true, false),
            ("acme/sh--op", true, false),
            ("acme/sh-_op", true, false),
            ("my--group/shop", true, true),
        ] {
            assert_eq!(
                (
                    check(Scope::Project, path, false).is_ok(),
                    check(Scope::Project, path, true).is_ok()
                ),
                (is_old_valid, is_new_valid),
                "{path}"
            );
        }
        let long_path = format!("acme/{}", "a".repeat(256));
        assert!(check(Scope::Project, &long_path, false).is_err());
    }

    #[test]
    fn a_path_is_found_in_a_url() {
        for url in [
            "https://gitlab.example.org/acme/shop",
            "https://gitlab.example.org/acme/shop.git",
            "https://gitlab.example.org/acme/shop/-/issues",
            "https://gitlab.example.org/groups/acme/shop",
            "ssh://git@gitlab.example.org/acme/shop.git",
            "git@gitlab.example.org:acme/shop.git",
            "@acme/shop",
        ] {
            assert_eq!(path_in_url(url), Some("acme/shop"), "{url}");
        }
        assert_eq!(path_in_url("acme/shop"), None);
        assert_eq!(path_in_url("https://gitlab.example.org"), None);
    }

    #[test]
    fn a_move_gives_a_new_name_unless_only_the_namespace_changes() {
        assert!(is_renamed("acme/old", "acme/new") && is_renamed("acme/admin", "admin"));
        assert!(!is_renamed("Acme/New", "other/new") && !is_renamed("files", "Files"));
    }

    #[test]
    fn a_group_needs_no_namespace() {
        for (path, is_old_valid, is_new_valid) in [
            ("acme", true, true),
            ("acme/web", true, true),
            ("acme/my--team_", true, true),
            ("a", true, false),
            ("acme/a", true, false),
            ("acme.", true, false),
            ("", false, false),
            ("acme/", false, false),
            ("/acme", false, false),
            ("-acme", false, false),
            ("acme.git", false, false),
            (".", false, false),
        ] {
            let is_valid = |is_new| check(Scope::Group, path, is_new).is_ok();
            assert_eq!((is_valid(false), is_valid(true)), (is_old_valid, is_new_valid), "{path:?}");
        }
    }
}
