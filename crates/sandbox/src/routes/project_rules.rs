//! The rules for names, paths and visibilities of projects, with the error texts of the service's
//! models. Most errors are reported twice: for the project, and for the namespace that belongs to
//! the project.

use super::group_rules::visibility_rank;
use super::prelude::*;

const TOO_SHORT_TEXT: &str = "is too short (minimum is 1 character)";
const NAME_FORM_TEXT: &str = "can contain only letters, digits, emoji, '_', '.', '+', dashes, or spaces. \
                    It must start with a letter, digit, emoji, or '_'.";
const PATH_FORM_TEXT: &str = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', \
                    end in '.git' or end in '.atom'";

/// The requested name and path of a project, with two flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestedName<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
    /// True if the path was neither sent nor can be made from the name.
    pub(crate) has_no_path: bool,
    /// True if a name was sent, even an empty name.
    pub(crate) is_name_sent: bool,
}

/// Two flags: true if the name is taken, and true if the path is taken.
pub(super) type TakenFlags = (bool, bool);

impl<'a> RequestedName<'a> {
    /// A name and path with both flags off.
    pub(crate) fn new(namespace: &'a Namespace, name: &'a str, path: &'a str) -> Self {
        Self { namespace, name, path, has_no_path: false, is_name_sent: false }
    }

    /// Refuses an invalid name or path, with all errors at once.
    pub(crate) fn check(self, (is_name_taken, is_path_taken): TakenFlags) -> Result<()> {
        let mut errors = FieldErrors::default();
        check_name(&mut errors, self, is_name_taken);
        check_path(&mut errors, self);
        errors.add_if(is_path_taken, "path", TAKEN_TEXT);
        errors.into_result()
    }

    /// Refuses a name or path that is taken. The errors do not mention the namespace.
    pub(crate) fn check_not_taken(self, call: &Call<'_>) -> Result<()> {
        let (is_name_taken, is_path_taken) = self.read_taken_flags(call, None)?;
        let mut errors = FieldErrors::default();
        errors.add_if(is_name_taken, "name", TAKEN_TEXT);
        errors.add_if(is_path_taken, "path", TAKEN_TEXT);
        errors.into_result()
    }

    pub(crate) fn read_taken_flags(
        self,
        call: &Call<'_>,
        excluded_id: Option<i64>,
    ) -> Result<TakenFlags> {
        let Self { namespace, name, path, .. } = self;
        let full_path = format!("{}/{path}", namespace.full_path);
        let sql = "SELECT EXISTS (SELECT 1 FROM projects WHERE namespace_id = ?1 AND name = ?2 AND id IS NOT ?3)";
        let is_name_taken = call.query_value(sql, params![namespace.id, name, excluded_id])?;
        let sql = "SELECT EXISTS (SELECT 1 FROM projects WHERE full_path = ?1 AND id IS NOT ?2)
                       OR EXISTS (SELECT 1 FROM namespaces WHERE full_path = ?1)";
        Ok((is_name_taken, call.query_value(sql, params![full_path, excluded_id])?))
    }
}

/// The name and the path of a new project. If the call omits the path, it is made from the name. If
/// the name is empty, it is the path.
pub(super) fn read_name_and_path(
    call: &Call<'_>,
    params: &Params,
    namespace: &Namespace,
) -> Result<(String, String)> {
    let read_or_empty = |name| Ok::<_, ErrorResponse>(params.text(name)?.unwrap_or_default());
    let (mut name, mut path) =
        (read_or_empty("name")?.trim_start().to_owned(), read_or_empty("path")?);
    if path.is_empty() {
        path = make_path(&name);
    } else if name.is_empty() {
        name.clone_from(&path);
    }
    let requested_name = RequestedName {
        has_no_path: path.is_empty() && !params.has("path"),
        is_name_sent: params.text("name")?.is_some(),
        ..RequestedName::new(namespace, &name, &path)
    };
    requested_name.check(requested_name.read_taken_flags(call, None)?)?;
    Ok((name, path))
}

/// Refuses a visibility that only administrators may use.
pub(super) fn check_restriction(call: &Call<'_>, visibility: &str) -> Result<()> {
    refuse_if(instance::is_visibility_restricted(call, visibility)?, || {
        ErrorResponse::field_error("visibility_level", group_rules::restricted_text(visibility))
    })
}

/// Refuses a visibility that is wider than the visibility of the group.
pub(crate) fn check_visibility(namespace: &Namespace, visibility: &str) -> Result<()> {
    let is_wider = visibility_rank(visibility) > visibility_rank(&namespace.visibility);
    refuse_if(namespace.is_group() && is_wider, || {
        let message = format!("{visibility} is not allowed in a {} group.", namespace.visibility);
        ErrorResponse::field_error("visibility_level", message)
    })
}

/// The more restrictive of `visibility` and the visibility of the group.
pub(super) fn stricter_visibility<'a>(visibility: &'a str, namespace: &'a Namespace) -> &'a str {
    check_visibility(namespace, visibility).map_or(&namespace.visibility, |()| visibility)
}

/// Adds an error for the project and for its namespace, if `is_wrong`.
fn add_errors(errors: &mut FieldErrors, is_wrong: bool, field: &str, text: &str) {
    errors.add_if(is_wrong, &format!("project_namespace.{field}"), text);
    errors.add_if(is_wrong, field, text);
}

fn check_name(errors: &mut FieldErrors, requested_name: RequestedName<'_>, is_taken: bool) {
    let name = requested_name.name;
    add_errors(errors, name.is_empty(), "name", BLANK_TEXT);
    add_errors(errors, name.chars().count() > MAX_NAME_LENGTH, "name", TOO_LONG_TEXT);
    let is_wrong =
        if name.is_empty() { requested_name.is_name_sent } else { !has_name_syntax(name, ".+- ") };
    errors.add_if(is_wrong, "name", NAME_FORM_TEXT);
    add_errors(errors, is_taken && !name.is_empty(), "name", TAKEN_TEXT);
}

fn check_path(errors: &mut FieldErrors, requested_name: RequestedName<'_>) {
    let path = requested_name.path;
    let is_long = path.len() > MAX_NAME_LENGTH;
    add_errors(errors, path.is_empty(), "path", BLANK_TEXT);
    // The error for the length has different positions for the namespace and for the project.
    let namespace_field = "project_namespace.path";
    errors.add_if(is_long, namespace_field, TOO_LONG_TEXT);
    let is_not_plain = !is_plain_path(path) && !requested_name.has_no_path;
    errors.add_if(is_not_plain, namespace_field, PLAIN_PATH_TEXT);
    add_errors(errors, !is_valid_path(path), "path", PATH_FORM_TEXT);
    errors.add_if(is_not_plain, "path", PLAIN_PATH_TEXT);
    for text in [TOO_SHORT_TEXT, BLANK_TEXT] {
        errors.add_if(requested_name.has_no_path, "path", text);
    }
    add_errors(errors, is_reserved_path(path), "path", &format!("{path} is a reserved name"));
    errors.add_if(is_long, "path", TOO_LONG_TEXT);
    // A full path that is too long gets the same error.
    let is_full_path_long =
        requested_name.namespace.full_path.len() + 1 + path.len() > MAX_NAME_LENGTH;
    errors.add_if(is_full_path_long, "path", TOO_LONG_TEXT);
}

/// True if a text is a valid path of a project.
pub(super) fn is_valid_path(path: &str) -> bool {
    path.len() <= MAX_NAME_LENGTH && has_path_syntax(path, &[".git", ".atom"])
}

/// Checks only the path, for other objects whose names follow the rules of projects.
pub(crate) fn check_path_only(path: &str) -> Result<()> {
    let error = match (is_valid_path(path), is_plain_path(path)) {
        _ if path.len() > MAX_NAME_LENGTH => TOO_LONG_TEXT,
        (false, _) => PATH_FORM_TEXT,
        (true, false) => PLAIN_PATH_TEXT,
        (true, true) => return Ok(()),
    };
    Err(ErrorResponse::field_error("path", error))
}

/// A path made from a name: in lower case, with dashes, and without accents.
pub(crate) fn make_path(name: &str) -> String {
    let mut path = String::new();
    for c in name.to_lowercase().chars() {
        let mut lines = ASCII_REPLACEMENTS.lines().filter_map(|line| line.split_once(' '));
        match lines.find(|(letters, _)| letters.contains(c)) {
            Some((_, plain)) => path.push_str(plain),
            None if c.is_ascii_alphanumeric() || c == '_' => path.push(c),
            None if !path.ends_with('-') => path.push('-'),
            None => {}
        }
    }
    path.trim_matches('-').to_owned()
}

/// Letters with their replacements in ASCII: a line for each replacement.
const ASCII_REPLACEMENTS: &str = include_str!("letters.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_from_names_and_follow_the_rules() {
        for (name, path) in [
            ("My Project", "my-project"),
            ("a  --  b", "a-b"),
            ("Web.App_2", "web-app_2"),
            ("(x)", "x"),
            ("Ünï cödé", "uni-code"),
            ("emoji \u{1f600}", "emoji"),
        ] {
            assert_eq!(make_path(name), path);
            assert!(check_path_only(path).is_ok(), "{path}");
        }
        for path in ["", "-a", "a-", "a..b", "a_-b", ".a", "a/b", "a b", "a.git", "ä"] {
            assert!(check_path_only(path).is_err(), "{path}");
        }
    }
}
