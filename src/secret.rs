//! Secrets: where they come from, a type that cannot be printed, and the last line of defence that strikes them from text.
//!
//! A manifest names a secret by a [`Reference`]. [`Secrets`] looks references up when they are needed and never stores what it found
//! outside memory. What leaves the process as text and may quote the service passes [`Secrets::redact`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use schemars::JsonSchema;
use serde::Serialize;

use crate::text;

/// Text that must not be shown. It has neither `Display` nor `Serialize`, and its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes `text` into custody.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself: for a request's header or body, and for comparing, only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Where a secret comes from, as a manifest writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// `{env: NAME}`: an environment variable.
    Env(String),
    /// `{file: PATH}`: a file inside the manifest folder, one trailing newline stripped.
    File(String),
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// The environment names that hold undrift's own token; they are never a manifest's secret.
pub const TOKEN_NAMES: [&str; 3] = ["UNDRIFT_TOKEN", "GITLAB_TOKEN", "UNDRIFT_SANDBOX_TOKEN"];

/// The largest file that a manifest's reference may name, in MiB.
const MAX_FILE: u64 = 1;

/// The largest file that a command line may name, in MiB: what the service takes as an attachment.
const MAX_TYPED_FILE: u64 = 10;

/// Texts shorter than this are not struck out: they would hit innocent words. Types protect those.
const MIN_REDACTED: usize = 6;

/// What a reference could not be resolved for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// The environment variable is not set, or is not text.
    #[error("environment variable `{0}` is not set")]
    Env(String),
    /// What was found is the empty text: whatever was to set it did not.
    #[error("`{0}` is empty")]
    Empty(Reference),
    /// The name holds undrift's own token.
    #[error("environment variable `{0}` holds undrift's own token and is never a value")]
    OwnToken(String),
    /// The file cannot be read.
    #[error("cannot read `{path}`: {why}")]
    File {
        /// The path as written.
        path: String,
        /// What the system or the rules for files said.
        why: String,
    },
}

/// Looks secrets up, remembers them, and strikes them from text.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The folder below which files are; `None` if they are wherever a person says.
    root: Option<PathBuf>,
    environment: BTreeMap<String, Secret>,
    found: BTreeMap<Reference, Result<Secret, Missing>>,
    /// Texts to strike that no reference names, such as undrift's own token.
    others: Vec<Secret>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("references", &self.found.keys().collect::<Vec<_>>()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// Looks files up below `root`, and names in `environment`.
    pub fn new(root: impl Into<PathBuf>, environment: impl IntoIterator<Item = (String, String)>) -> Self {
        let environment = environment.into_iter().map(|(name, value)| (name, Secret(value))).collect();
        Self { root: Some(root.into()), environment, ..Self::default() }
    }

    /// Looks up what a person named on a command line: files wherever they are, and names in `environment`.
    pub fn of_command_line(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { root: None, ..Self::new("", environment) }
    }

    /// Strikes `secret` from text too.
    pub fn also_redact(&mut self, secret: Secret) {
        self.others.push(secret);
    }

    /// Looks up each of `references` once.
    pub fn resolve<'r>(&mut self, references: impl IntoIterator<Item = &'r Reference>) {
        for reference in references {
            if !self.found.contains_key(reference) {
                let found = self.look_up(reference);
                self.found.insert(reference.clone(), found);
            }
        }
    }

    /// The secret that a resolved reference names; `None` if it is missing or was never asked for.
    pub fn get(&self, reference: &Reference) -> Option<&Secret> {
        self.found.get(reference)?.as_ref().ok()
    }

    /// Every reference that could not be resolved, with the reason.
    pub fn missing(&self) -> impl Iterator<Item = (&Reference, &Missing)> {
        self.found.iter().filter_map(|(reference, found)| Some((reference, found.as_ref().err()?)))
    }

    /// The bytes of a file to upload: regular and at most 10 MiB; inside the root, if there is one, no symbolic link, and at most 1 MiB.
    ///
    /// # Errors
    /// [`Missing::File`] with what stands in the way.
    pub fn read_file(&self, path: &str) -> Result<Vec<u8>, Missing> {
        let read = match &self.root {
            Some(root) => read_below(root, path),
            None => read_regular(Path::new(path), MAX_TYPED_FILE),
        };
        read.map_err(|why| Missing::File { path: path.to_owned(), why })
    }

    fn look_up(&self, reference: &Reference) -> Result<Secret, Missing> {
        let secret = self.read(reference)?;
        if secret.expose().is_empty() { Err(Missing::Empty(reference.clone())) } else { Ok(secret) }
    }

    fn read(&self, reference: &Reference) -> Result<Secret, Missing> {
        match reference {
            Reference::Env(name) if TOKEN_NAMES.contains(&name.as_str()) => Err(Missing::OwnToken(name.clone())),
            Reference::Env(name) => self.environment.get(name).cloned().ok_or_else(|| Missing::Env(name.clone())),
            Reference::File(path) => {
                let bytes = self.read_file(path)?;
                let text =
                    String::from_utf8(bytes).map_err(|_| Missing::File { path: path.clone(), why: "it is not UTF-8 text".into() })?;
                let text = text.strip_suffix('\n').map_or(text.as_str(), |t| t.strip_suffix('\r').unwrap_or(t));
                Ok(Secret::new(text))
            }
        }
    }

    /// `text` with every known secret struck out, as it is and as it looks in a URL, in JSON and in base64.
    pub fn redact(&self, text: &str) -> String {
        let known = self.found.values().filter_map(|found| found.as_ref().ok()).chain(&self.others);
        let forms: BTreeSet<String> = known.flat_map(|secret| forms(secret.expose())).collect();
        let mut forms: Vec<_> = forms.into_iter().filter(|form| form.len() >= MIN_REDACTED).collect();
        // The longest first, so that no piece of a longer form is left standing.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms
            .iter()
            .fold(text.to_owned(), |text, form| if text.contains(form.as_str()) { text.replace(form.as_str(), "[secret]") } else { text })
    }
}

/// The ways in which a secret may turn up in a text.
fn forms(secret: &str) -> Vec<String> {
    let json = serde_json::Value::from(secret).to_string();
    let mut forms = vec![secret.to_owned(), text::encode(secret).to_string(), json.trim_matches('"').to_owned()];
    forms.extend(secret.lines().map(str::to_owned));
    // Base64 of a text depends on where in a group of three bytes it starts; the ends depend on the neighbours and are cut off.
    forms.extend((0..3).filter_map(|offset| base64_core(secret.as_bytes(), offset)));
    forms.push(secret.bytes().map(|b| format!("{b:02x}")).collect());
    forms
}

/// The part of `bytes`' base64 form that does not depend on what stands around it, if they start `offset` bytes into a group.
fn base64_core(bytes: &[u8], offset: usize) -> Option<String> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let whole = bytes.get((3 - offset) % 3..)?;
    let core: String = whole
        .chunks_exact(3)
        .flat_map(|group| {
            let bits = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
            [18, 12, 6, 0].map(|shift| char::from(ALPHABET[(bits >> shift & 63) as usize]))
        })
        .collect();
    (core.len() >= 8).then_some(core)
}

fn read_below(root: &Path, path: &str) -> Result<Vec<u8>, String> {
    let relative = Path::new(path);
    if path.is_empty() || !relative.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir)) {
        return Err("it has to be a path below the manifest folder, without `..`".into());
    }
    let mut full = root.to_owned();
    for component in relative.components() {
        full.push(component);
        let kind = std::fs::symlink_metadata(&full).map_err(|e| plain_io(&e))?.file_type();
        if kind.is_symlink() {
            return Err("symbolic links are not followed".into());
        }
    }
    read_regular(&full, MAX_FILE)
}

/// The bytes of a regular file of at most `limit` MiB.
fn read_regular(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    // Asked before it is opened: a pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(|e| plain_io(&e))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".into());
    }
    let file = std::fs::File::open(path).map_err(|e| plain_io(&e))?;
    let mut bytes = Vec::new();
    file.take((limit << 20) + 1).read_to_end(&mut bytes).map_err(|e| plain_io(&e))?;
    if bytes.len() as u64 > limit << 20 {
        return Err(format!("it is larger than {limit} MiB"));
    }
    Ok(bytes)
}

/// What the system said, without its number.
fn plain_io(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(pairs: &[(&str, &str)]) -> Secrets {
        let mut secrets = Secrets::new("/nowhere", pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let references: Vec<_> = pairs.iter().map(|(n, _)| Reference::Env((*n).to_owned())).collect();
        secrets.resolve(&references);
        secrets
    }

    #[test]
    fn a_secret_cannot_be_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2hunter2")), "[secret]");
        assert!(!format!("{:?}", secrets(&[("A", "hunter2hunter2")])).contains("hunter2"));
    }

    #[test]
    fn a_secret_is_struck_out_in_every_form() {
        let secrets = secrets(&[("A", "p@ss \"w0rd\"/é")]);
        let base64 = "eHggcEBzcyAidzByZCIvw6kgeXk="; // of `xx SECRET yy`
        for text in ["is p@ss \"w0rd\"/é", "?t=p%40ss%20%22w0rd%22%2F%C3%A9", r#"{"t":"p@ss \"w0rd\"/é"}"#, base64] {
            let redacted = secrets.redact(text);
            assert!(redacted.contains("[secret]"), "{text} -> {redacted}");
            assert!(!redacted.contains("w0rd") && !redacted.contains("InczByZ"), "{text} -> {redacted}");
        }
    }

    #[test]
    fn the_own_token_is_never_a_value() {
        let reference = Reference::Env("GITLAB_TOKEN".into());
        let mut secrets = Secrets::new("/", [("GITLAB_TOKEN".to_owned(), "x".repeat(20))]);
        secrets.resolve([&reference]);
        assert_eq!(secrets.get(&reference), None);
        assert!(matches!(secrets.missing().next(), Some((_, Missing::OwnToken(_)))));
    }

    #[test]
    fn an_empty_secret_is_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("nothing", ""), ("newline", "\n"), ("space", " \n")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let mut secrets = Secrets::new(folder.path(), [("EMPTY".to_owned(), String::new())]);
        let [env, nothing, newline, space] = [
            Reference::Env("EMPTY".into()),
            Reference::File("nothing".into()),
            Reference::File("newline".into()),
            Reference::File("space".into()),
        ];
        secrets.resolve([&env, &nothing, &newline, &space]);
        let missing: Vec<_> = secrets.missing().map(|(_, missing)| missing.to_string()).collect();
        assert_eq!(missing, ["`env:EMPTY` is empty", "`file:newline` is empty", "`file:nothing` is empty"]);
        assert_eq!(secrets.get(&space).unwrap().expose(), " ");
    }

    #[test]
    fn a_file_loses_one_newline_and_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "line\n\n").unwrap();
        let mut secrets = Secrets::new(folder.path(), []);
        let inside = Reference::File("key".into());
        secrets.resolve([&inside]);
        assert_eq!(secrets.get(&inside).unwrap().expose(), "line\n");
        for path in ["../key", "/etc/hostname", "", ".", "absent", "a/../../key"] {
            let reference = Reference::File(path.into());
            secrets.resolve([&reference]);
            assert_eq!(secrets.get(&reference), None, "{path}");
        }
    }

    #[test]
    fn a_person_may_name_any_regular_file_up_to_ten_megabytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let secrets = Secrets::of_command_line([]);
        for (size, fits) in [(2 << 20, true), (10 << 20, true), ((10 << 20) + 1, false)] {
            std::fs::write(&path, vec![b'x'; size]).unwrap();
            assert_eq!(secrets.read_file(path.to_str().unwrap()).is_ok(), fits, "{size}");
            assert!(Secrets::new(folder.path(), []).read_file("large").is_err(), "{size}");
        }
        assert!(secrets.read_file(folder.path().to_str().unwrap()).is_err(), "a folder");
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "x").unwrap();
        std::os::unix::fs::symlink(folder.path().join("key"), folder.path().join("link")).unwrap();
        assert!(Secrets::new(folder.path(), []).read_file("link").is_err());
    }
}
