//! The rules of the names and paths of projects, with the words in which the service's models
//! refuse them: each fault is told of the project and of its namespace of one.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::super::answer::Failure;
use super::super::call::Call;
use super::super::store::namespace::Namespace;
use super::projects::taken;

const BLANK: &str = "can't be blank";
const TAKEN: &str = "has already been taken";
const LONG: &str = "is too long (maximum is 255 characters)";
const SHORT: &str = "is too short (minimum is 1 character)";
const NAME: &str = "can contain only letters, digits, emoji, '_', '.', '+', dashes, or spaces. \
                    It must start with a letter, digit, emoji, or '_'.";
const PATH: &str = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', \
                    end in '.git' or end in '.atom'";
const STRICT: &str = "can only include non-accented letters, digits, '_', '-' and '.'. It must not start with \
     '-', '_', or '.', nor end with '-', '_', '.', '.git', or '.atom'.";
/// Names of the pages of a project, which nothing below a group can have.
const RESERVED: [&str; 18] = [
    "-",
    "badges",
    "blame",
    "blob",
    "builds",
    "commits",
    "create",
    "create_dir",
    "edit",
    "files",
    "find_file",
    "new",
    "preview",
    "raw",
    "refs",
    "tree",
    "update",
    "wikis",
];
const MOST: usize = 255;

/// Whether a page of the service has this path below a group.
pub(super) fn is_reserved(path: &str) -> bool {
    RESERVED.contains(&path.to_ascii_lowercase().as_str())
}

impl<'a> Wanted<'a> {
    /// What was sent as it is, or is not blank.
    pub(crate) fn new(namespace: &'a Namespace, name: &'a str, path: &'a str) -> Self {
        Self { namespace, name, path, unnamed: false, blank_name: false, own: None }
    }
}

/// A name and a path that a project is to have. Blank ones are none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
    /// Whether the path was neither sent nor could be made of the name.
    pub(crate) unnamed: bool,
    /// Whether a blank name was sent, and not left out.
    pub(crate) blank_name: bool,
    /// The project that may have them already.
    pub(crate) own: Option<i64>,
}

/// Refuses a name or path in all words at once.
pub(crate) fn check(call: &Call<'_>, wanted: Wanted<'_>) -> Result<(), Failure> {
    refuse(wanted, taken(call, wanted.namespace, wanted.name, wanted.path, wanted.own)?)
}

/// The same, whether they are taken or not.
pub(crate) fn check_words(wanted: Wanted<'_>) -> Result<(), Failure> {
    refuse(wanted, (false, false))
}

fn refuse(wanted: Wanted<'_>, (name_taken, path_taken): (bool, bool)) -> Result<(), Failure> {
    let mut faults = Faults::default();
    check_name(&mut faults, wanted, name_taken);
    check_path(&mut faults, wanted);
    if path_taken {
        faults.add("path", TAKEN);
    }
    faults.into()
}

/// Refuses what is taken, without a word of the namespace.
pub(crate) fn check_free(
    call: &Call<'_>,
    namespace: &Namespace,
    name: &str,
    path: &str,
) -> Result<(), Failure> {
    let (name_taken, path_taken) = taken(call, namespace, name, path, None)?;
    let mut faults = Faults::default();
    for (field, is_taken) in [("name", name_taken), ("path", path_taken)] {
        if is_taken {
            faults.add(field, TAKEN);
        }
    }
    faults.into()
}

/// What is wrong, by field.
#[derive(Debug, Default)]
struct Faults(Map<String, Value>);

impl Faults {
    fn add(&mut self, field: &str, text: &str) {
        let texts = self.0.entry(field).or_insert_with(|| json!([]));
        if let Some(texts) = texts.as_array_mut() {
            texts.push(text.into());
        }
    }

    /// The same of the project and of its namespace.
    fn add_both(&mut self, field: &str, text: &str) {
        self.add(&format!("project_namespace.{field}"), text);
        self.add(field, text);
    }
}

impl From<Faults> for Result<(), Failure> {
    fn from(faults: Faults) -> Self {
        match faults.0.is_empty() {
            true => Ok(()),
            false => Err(Failure::message(StatusCode::BAD_REQUEST, faults.0)),
        }
    }
}

fn check_name(faults: &mut Faults, wanted: Wanted<'_>, is_taken: bool) {
    let name = wanted.name;
    if name.is_empty() {
        faults.add_both("name", BLANK);
        if wanted.blank_name {
            faults.add("name", NAME);
        }
        return;
    }
    let first = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
    let rest = |c: char| first(c) || ".+- ".contains(c);
    if name.chars().count() > MOST {
        faults.add_both("name", LONG);
    }
    if !name.starts_with(first) || !name.chars().all(rest) {
        faults.add("name", NAME);
    }
    if is_taken {
        faults.add_both("name", TAKEN);
    }
}

fn check_path(faults: &mut Faults, wanted: Wanted<'_>) {
    let path = wanted.path;
    let is_long = path.len() > MOST;
    if path.is_empty() {
        faults.add_both("path", BLANK);
    }
    // The namespace and the project look at it in another order.
    let of_namespace = "project_namespace.path";
    if is_long {
        faults.add(of_namespace, LONG);
    }
    if !is_strict(path) && !wanted.unnamed {
        faults.add(of_namespace, STRICT);
    }
    if !is_plain(path) {
        faults.add_both("path", PATH);
    }
    if !is_strict(path) && !wanted.unnamed {
        faults.add("path", STRICT);
    }
    if wanted.unnamed {
        faults.add("path", SHORT);
        faults.add("path", BLANK);
    }
    if is_reserved(path) {
        faults.add_both("path", &format!("{path} is a reserved name"));
    }
    if is_long {
        faults.add("path", LONG);
    }
    // So is the whole path.
    if wanted.namespace.full_path.len() + 1 + path.len() > MOST {
        faults.add("path", LONG);
    }
}

/// What a path of a project may be.
fn is_plain(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !path.is_empty()
        && path.len() <= MOST
        && path.bytes().all(plain)
        && !path.starts_with('-')
        && ![".git", ".atom"].iter().any(|end| path.ends_with(end))
}

/// Whether each special character stands alone between others.
fn is_strict(path: &str) -> bool {
    path.split(['-', '_', '.'])
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// The rules of the path alone, for what else is named like a project.
pub(crate) fn check_path_alone(path: &str) -> Result<(), Failure> {
    let fault = match (is_plain(path), is_strict(path)) {
        _ if path.len() > MOST => LONG,
        (false, _) => PATH,
        (true, false) => STRICT,
        (true, true) => return Ok(()),
    };
    Err(Failure::model("path", fault))
}

/// A path made from a name: lower case with dashes, and letters without their accents.
pub(crate) fn path_from(name: &str) -> String {
    let mut path = String::new();
    for c in name.to_lowercase().chars() {
        match LETTERS.iter().find(|(letters, _)| letters.contains(c)) {
            Some((_, plain)) => path.push_str(plain),
            None if c.is_ascii_alphanumeric() || c == '_' => path.push(c),
            None if !path.ends_with('-') => path.push('-'),
            None => {}
        }
    }
    path.trim_matches('-').to_owned()
}

/// Letters by what is written for them where there is ASCII alone.
const LETTERS: [(&str, &str); 25] = [
    ("àáâãäåāăą", "a"),
    ("æ", "ae"),
    ("çćĉċč", "c"),
    ("ďđð", "d"),
    ("èéêëēĕėęě", "e"),
    ("ĝğġģ", "g"),
    ("ĥħ", "h"),
    ("ìíîïĩīĭįı", "i"),
    ("ĳ", "ij"),
    ("ĵ", "j"),
    ("ķĸ", "k"),
    ("ĺļľŀł", "l"),
    ("ñńņňŉ", "n"),
    ("ŋ", "ng"),
    ("òóôõöøōŏő", "o"),
    ("œ", "oe"),
    ("ŕŗř", "r"),
    ("śŝşš", "s"),
    ("ß", "ss"),
    ("ţťŧ", "t"),
    ("þ", "th"),
    ("ùúûüũūŭůűų", "u"),
    ("ŵ", "w"),
    ("ýÿŷ", "y"),
    ("źżž", "z"),
];

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
            assert_eq!(path_from(name), path);
            assert!(check_path_alone(path).is_ok(), "{path}");
        }
        for path in ["", "-a", "a-", "a..b", "a_-b", ".a", "a/b", "a b", "a.git", "ä"] {
            assert!(check_path_alone(path).is_err(), "{path}");
        }
    }
}
